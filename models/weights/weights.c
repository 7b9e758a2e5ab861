// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The weights of a model once they are described: finding them, their sizes, and which of them are read on
// the device. Making and copying them: weights_load.c.
#include "models/model.h"

#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

// Alignment of each weight in the buffers of a device, in bytes: the widest loads of kernels, and the cache
// lines of device memory.
enum { WEIGHT_ALIGN = 256 };

// --- finding ---------------------------------------------------------------------------------------

int32_t tn_model_find_weight(const tn_model *m, const char *name)
{
    const tn_gguf_tensor *t = tn_gguf_find_tensor(m->gguf, name);
    if (t) return (int32_t)(t - tn_gguf_tensor_at(m->gguf, 0));
    for (int64_t i = m->n_weights - m->n_derived; i < m->n_weights; i++)
        if (strcmp(m->weights[i].name, name) == 0) return (int32_t)i;
    return -1;
}

tn_status tn_weights_find(const tn_model *m, const tn_device *device, const char *name, const tn_buffer **out)
{
    int32_t i = tn_model_find_weight(m, name);
    if (i < 0) return tn_fail(m->ctx, TN_ERR_INTERNAL, "%s: no such weight", name);
    const tn_weight *w = &m->weights[i];
    *out = device->host_memory ? &w->host : &w->buffer;
    if (!device->host_memory && w->buffer.device != device)
        return tn_fail(m->ctx, TN_ERR_INTERNAL, "%s: not on %s", name, device->name);
    return TN_OK;
}

void tn_weights_destroy(tn_model *m)
{
    for (int64_t i = 0; m->weights && i < m->n_weights; i++) {
        tn_buffer_destroy(&m->weights[i].buffer);
        tn_buffer_destroy(&m->weights[i].host);
    }
    for (int32_t i = 0; i < m->n_uploaded; i++) tn_buffer_destroy(&m->uploaded[i]);
    tn_free(m->ctx, m->uploaded);
    tn_free(m->ctx, m->weights);
}

// --- sizes -----------------------------------------------------------------------------------------

tn_view tn_weight_view(const tn_weight *w)
{
    tn_view v = {.dtype = w->dtype, .n_dims = w->n_dims, .ne = {1, 1, 1, 1}};
    for (int32_t d = 0; d < w->n_dims; d++) v.ne[TN_MAX_DIMS - w->n_dims + d] = w->ne[d];
    tn_view_set_contiguous(&v);
    return v;
}

size_t tn_weight_size(const tn_weight *w)
{
    tn_view v = tn_weight_view(w);
    return tn_dtype_row_size(v.dtype, v.ne[3]) * (size_t)tn_view_n_rows(&v);
}

size_t tn_weight_device_size(const tn_weight *w)
{
    return (tn_weight_size(w) + WEIGHT_ALIGN - 1) / WEIGHT_ALIGN * WEIGHT_ALIGN;
}

tn_status tn_weight_check_type(tn_context *ctx, const tn_weight *w)
{
    if (!w->integers) return TN_OK;
    return tn_fail(ctx, TN_ERR_MODEL, "tensor %s has the type %s, must be floats or blocks", w->name,
                   tn_dtype_name(w->dtype));
}

// --- layers on the device --------------------------------------------------------------------------

// Layer of "blk.7.attn_q.weight", -1: of the whole model.
static int32_t layer_of(const char *name)
{
    if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9') return -1;
    return (int32_t)strtol(name + 4, NULL, 10);
}

static bool is_table(const tn_weight *w)
{
    return strcmp(w->name, "token_embd.weight") == 0 || strcmp(w->name, "position_embd.weight") == 0 ||
           strcmp(w->name, "per_layer_token_embd.weight") == 0;
}

static bool is_tied(const tn_model *m)
{
    return tn_model_find_weight(m, "output.weight") < 0;
}

// Tables of embeddings are read on the device of the first layer; in tied models the token embedding is the
// head too.
bool tn_weights_on_device(const tn_model *m, const tn_weight *w, int32_t n)
{
    int32_t layer = layer_of(w->name);
    if (n == 0 || m->device->host_memory || w->unused || w->place == TN_PLACE_HOST) return false;
    if (w->place == TN_PLACE_DEVICE) return true;
    if (layer >= 0) return layer >= m->config.n_layers - n;
    if (n == m->config.n_layers || !is_table(w)) return true;
    return w->name[0] == 't' && is_tied(m);
}

bool tn_weight_is_expert(const tn_weight *w)
{
    return strstr(w->name, "_exps.") != NULL || strstr(w->name, "_chexps.") != NULL;
}

// What the host says of a weight goes before the layers whose experts lie in host memory.
tn_status tn_weights_place(tn_model *m, const tn_model_config *cfg)
{
    if (cfg->host_experts < 0)
        return tn_fail(m->ctx, TN_ERR_ARG, "experts of %d layers in host memory", cfg->host_experts);
    for (int64_t i = 0; i < m->n_weights && m->device != m->host; i++) {
        tn_weight *w = &m->weights[i];
        tn_device *device = cfg->place ? cfg->place(cfg->place_user, w->name) : NULL;
        if (device && device != m->device && device != m->host)
            return tn_fail(m->ctx, TN_ERR_ARG, "tensor %s is wanted on %s, the model is on %s and %s",
                           w->name, device->name, m->device->name, m->host->name);
        bool expert = tn_weight_is_expert(w) && layer_of(w->name) < cfg->host_experts;
        if (device)
            w->place = device == m->host ? TN_PLACE_HOST : TN_PLACE_DEVICE;
        else if (expert)
            w->place = TN_PLACE_HOST;
    }
    return TN_OK;
}

uint64_t tn_weights_placed_size(const tn_model *m, int32_t n)
{
    uint64_t size = 0;
    for (int64_t i = 0; i < m->n_weights && m->device != m->host; i++) {
        const tn_weight *w = &m->weights[i];
        if (w->place == TN_PLACE_HOST && !w->unused && layer_of(w->name) >= m->config.n_layers - n)
            size += tn_weight_size(w);
    }
    return size;
}

uint64_t tn_weights_device_size(const tn_model *m, int32_t n)
{
    uint64_t size = 0;
    for (int64_t i = 0; i < m->n_weights; i++)
        if (tn_weights_on_device(m, &m->weights[i], n)) size += tn_weight_device_size(&m->weights[i]);
    return size;
}

bool tn_weights_in_host_layers(const tn_model *m, const tn_weight *w)
{
    bool split = m->device != m->host && m->device_layers < m->config.n_layers;
    return !tn_weights_on_device(m, w, m->device_layers) || (split && is_table(w));
}

uint64_t tn_weights_host_size(const tn_model *m)
{
    uint64_t size = 0;
    for (int64_t i = 0; i < m->n_weights; i++) {
        const tn_weight *w = &m->weights[i];
        if (!w->unused && tn_weights_in_host_layers(m, w)) size += tn_weight_size(w);
    }
    return size;
}
