// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the weights of a model lie. In host memory all of them do: the mapped file is used in place. A device
// with memory of its own gets copies for the last layers and the head, as many as fit or as many as asked for;
// small tensors of the whole model are copied too and can be read on both sides.
#include "models/model.h"

#include "models/decoder.h"
#include "models/run/session.h"
#include "ops/ops.h"
#include "ops/quant.h"

#include <stdlib.h>
#include <string.h>

// Of each weight in the buffer of a device: wide loads, and the lines of its memory.
enum { WEIGHT_ALIGN = 256 };

// Left free on a device when layers are fitted: what drivers take for code, captured work and page tables, what a
// desktop shows, and what the estimate misses. At least 512 MiB; on large devices fragments grow with the size: 5 %.
static const uint64_t margin_least = (uint64_t)512 << 20; // bytes
enum { MARGIN_PERCENT = 5 };

// --- description -----------------------------------------------------------------------------------

// One-dimensional tensors of other float types as F32 in the arena.
static tn_status convert_vector(tn_model *m, const tn_gguf_tensor *t, const void **out)
{
    tn_dequant_fn to_f32 = tn_quant_info_get(t->dtype)->to_f32;
    int64_t n = t->ne[t->n_dims - 1];
    if (!to_f32) return tn_fail(m->ctx, TN_ERR_MODEL, "%s: a vector of %s", t->name, tn_dtype_name(t->dtype));
    if (m->metadata_only) return TN_OK;
    float *values = tn_arena_array(&m->arena, (size_t)n, sizeof *values);
    if (!values) return TN_ERR_MEMORY;
    to_f32(t->data, values, n);
    *out = values;
    return TN_OK;
}

static tn_view weight_view(const tn_weight *w)
{
    tn_view v = {.dtype = w->dtype, .n_dims = w->n_dims, .ne = {1, 1, 1, 1}};
    for (int32_t d = 0; d < w->n_dims; d++) v.ne[TN_MAX_DIMS - w->n_dims + d] = w->ne[d];
    tn_view_set_contiguous(&v);
    return v;
}

static size_t weight_size(const tn_weight *w)
{
    tn_view v = weight_view(w);
    return tn_dtype_row_size(v.dtype, v.ne[3]) * (size_t)tn_view_n_rows(&v);
}

static size_t aligned_size(const tn_weight *w)
{
    return (weight_size(w) + WEIGHT_ALIGN - 1) / WEIGHT_ALIGN * WEIGHT_ALIGN;
}

// Outer dimensions of 1 may stand in the file or not; here they do not.
static tn_weight weight_of(const tn_gguf_tensor *t)
{
    int32_t first = 0;
    while (first < t->n_dims - 1 && t->ne[first] == 1) first++;
    tn_weight w = {.name = t->name, .dtype = t->dtype, .n_dims = t->n_dims - first};
    memcpy(w.ne, t->ne + first, (size_t)w.n_dims * sizeof *w.ne);
    return w;
}

static tn_status describe(tn_model *m)
{
    int64_t n = tn_gguf_n_tensors(m->gguf);
    m->weights = tn_calloc(m->ctx, (size_t)(n + tn_weights_derived_max(m)) + 1, sizeof *m->weights);
    if (!m->weights) return TN_ERR_MEMORY;
    m->n_weights = n;
    for (int64_t i = 0; i < n; i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(m->gguf, i);
        tn_weight *w = &m->weights[i];
        *w = weight_of(t);
        const void *values = t->data;
        if (w->n_dims == 1 && t->dtype != TN_TYPE_F32) {
            w->dtype = TN_TYPE_F32;
            tn_status status = convert_vector(m, t, &values);
            if (status != TN_OK) return status;
        }
        if (!m->metadata_only) w->host = tn_buffer_borrow(m->host, values, weight_size(w));
    }
    return tn_weights_derive(m);
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

// Whether the weight is read on the device when the last n layers are there. Tables are looked up where the first
// layer is; the one of tied models is the head too.
static bool on_device(const tn_model *m, const tn_weight *w, int32_t n)
{
    int32_t layer = layer_of(w->name);
    if (n == 0 || m->device->host_memory || w->unused) return false;
    if (layer >= 0) return layer >= m->config.n_layers - n;
    if (n == m->config.n_layers || !is_table(w)) return true;
    return w->name[0] == 't' && is_tied(m);
}

static uint64_t device_bytes(const tn_model *m, int32_t n)
{
    uint64_t size = 0;
    for (int64_t i = 0; i < m->n_weights; i++)
        if (on_device(m, &m->weights[i], n)) size += aligned_size(&m->weights[i]);
    return size;
}

uint64_t tn_weights_host_size(const tn_model *m)
{
    uint64_t size = 0;
    bool split = m->device != m->host && m->device_layers < m->config.n_layers;
    for (int64_t i = 0; i < m->n_weights; i++) {
        const tn_weight *w = &m->weights[i];
        if (!w->unused && (!on_device(m, w, m->device_layers) || (split && is_table(w)))) size += weight_size(w);
    }
    return size;
}

// --- fitting ---------------------------------------------------------------------------------------

typedef struct fit {
    uint64_t free, margin;
    uint64_t *sessions; // per count of layers on the device: what a session takes there
} fit;

static uint64_t needed(const tn_model *m, const fit *f, int32_t n)
{
    return device_bytes(m, n) + f->sessions[n];
}

// A device that has nothing free may be full or broken. Full is a matter of fitting.
static tn_status device_memory(const tn_model *m, tn_device_info *info)
{
    tn_device_info_get(m->device, info);
    if (info->memory_free > 0) return TN_OK;
    tn_buffer probe = {0};
    tn_status status = tn_buffer_create(m->device, 1, &probe);
    tn_buffer_destroy(&probe);
    return status == TN_ERR_MEMORY ? TN_OK : status;
}

static tn_status begin_fit(tn_model *m, const tn_model_config *cfg, fit *f)
{
    *f = (fit){0};
    tn_device_info info;
    tn_status status = device_memory(m, &info);
    if (status != TN_OK) return status;
    int32_t n_layers = m->config.n_layers;
    f->free = info.memory_free;
    f->margin = TN_MAX(info.memory_total / 100 * MARGIN_PERCENT, margin_least);
    f->sessions = tn_calloc(m->ctx, (size_t)n_layers + 1, sizeof *f->sessions);
    if (!f->sessions) return TN_ERR_MEMORY;
    for (int32_t n = 1; n <= n_layers; n++) f->sessions[n] = cfg->reserve_size;
    if (cfg->reserve_size > 0) return TN_OK;
    m->device_layers = n_layers;
    return tn_session_estimate(m, cfg->session, f->sessions);
}

static int32_t batch_of(const tn_device *device)
{
    return device->n_batch > 0 ? device->n_batch : TN_BATCH_DEFAULT;
}

// The most layers that fit with their session and the margin.
static int32_t most_layers(const tn_model *m, const fit *f)
{
    int32_t n = m->config.n_layers;
    uint64_t room = f->free > f->margin ? f->free - f->margin : 0;
    while (n > 0 && needed(m, f, n) > room) n--;
    return n;
}

static uint64_t mib(uint64_t bytes)
{
    return bytes >> 20;
}

static tn_status tell_fit(tn_model *m, const fit *f, int32_t n)
{
    int32_t n_layers = m->config.n_layers;
    uint64_t all = needed(m, f, n_layers);
    if (n == n_layers) return TN_OK;
    const char *device = m->device->name;
    if (n == 0 && m->no_fallback)
        return tn_fail(m->ctx, TN_ERR_MEMORY, "no layer fits on %s: one takes %llu MiB with a session, %llu MiB are free, of which %llu MiB stay free",
                       device, (unsigned long long)mib(needed(m, f, 1)), (unsigned long long)mib(f->free), (unsigned long long)mib(f->margin));
    return tn_event(m->ctx, TN_EVENT_LAYERS_ON_HOST, "%d of %d layers are on %s, the first %d on %s: all would take %llu MiB with a session, "
                    "%llu MiB are free, of which %llu MiB stay free", n, n_layers, device, n_layers - n, m->host->name,
                    (unsigned long long)mib(all), (unsigned long long)mib(f->free), (unsigned long long)mib(f->margin));
}

static tn_status check_wish(const tn_model *m, const tn_model_config *cfg, int32_t n)
{
    tn_device_info info;
    tn_status status = n > 0 ? device_memory(m, &info) : TN_OK;
    uint64_t want = device_bytes(m, n) + (n > 0 ? cfg->reserve_size : 0);
    if (status != TN_OK || want == 0 || want <= info.memory_free) return status;
    return tn_fail(m->ctx, TN_ERR_MEMORY, "%d layers take %llu MiB on %s, %llu MiB are free; let fewer layers be there", n,
                   (unsigned long long)mib(want), m->device->name, (unsigned long long)mib(info.memory_free));
}

// A smaller batch before fewer layers on the device.
static tn_status fit_layers(tn_model *m, const tn_model_config *cfg, int32_t *out)
{
    fit f;
    tn_status status = begin_fit(m, cfg, &f);
    if (status == TN_OK && most_layers(m, &f) < m->config.n_layers && m->n_batch > batch_of(m->host)) {
        tn_free(m->ctx, f.sessions);
        m->n_batch = batch_of(m->host);
        status = begin_fit(m, cfg, &f);
    }
    if (status == TN_OK) {
        *out = most_layers(m, &f);
        status = tell_fit(m, &f, *out);
    }
    tn_free(m->ctx, f.sessions);
    return status;
}

static tn_status batch_fits(tn_model *m, const tn_model_config *cfg, bool *out)
{
    fit f;
    if (m->n_batch <= batch_of(m->host)) return TN_OK;
    tn_status status = begin_fit(m, cfg, &f);
    if (status == TN_OK) *out = most_layers(m, &f) == m->config.n_layers;
    tn_free(m->ctx, f.sessions);
    return status;
}

static tn_status choose_layers(tn_model *m, const tn_model_config *cfg)
{
    int32_t n_layers = m->config.n_layers, n = n_layers;
    bool fits = true; // a session with the batch of the device
    tn_status status = TN_OK;
    m->n_batch = batch_of(m->device);
    if (!m->device->host_memory && cfg->device_layers >= 0) {
        n = TN_MIN(cfg->device_layers, n_layers);
        status = check_wish(m, cfg, n);
        if (status == TN_OK && n == n_layers) status = batch_fits(m, cfg, &fits);
    } else if (!m->device->host_memory) {
        status = fit_layers(m, cfg, &n);
    }
    // Where layers are left to the host, it is what a prompt waits for, and memory is short.
    if (n < n_layers || !fits) m->n_batch = batch_of(m->host);
    if (n == 0) m->device = m->host; // a model of the host like any other
    m->device_layers = n > 0 ? n : n_layers;
    m->device_size = device_bytes(m, m->device_layers);
    return status;
}

// --- upload ----------------------------------------------------------------------------------------

tn_status tn_weights_progress(tn_model *m, const tn_model_config *cfg, uint64_t done, uint64_t total)
{
    if (cfg->progress && cfg->progress(cfg->progress_user, done, total)) return tn_fail(m->ctx, TN_ERR_CANCELLED, "cancelled");
    return TN_OK;
}

// Copies lie one after the other in as few buffers as the device allows.
typedef struct place {
    int32_t buffer;
    size_t at;
} place;

static void next_place(const tn_model *m, size_t size, place *p)
{
    size_t most = m->device->max_buffer_size;
    if (most == 0 || p->at == 0 || size <= most - TN_MIN(p->at, most)) return;
    p->buffer++;
    p->at = 0;
}

// All of them are reserved before the first byte is read.
static tn_status reserve(tn_model *m)
{
    place p = {0, 0};
    for (int64_t pass = 0; pass < 2; pass++) {
        p = (place){0, 0};
        for (int64_t i = 0; i < m->n_weights; i++) {
            if (!on_device(m, &m->weights[i], m->device_layers)) continue;
            next_place(m, aligned_size(&m->weights[i]), &p);
            p.at += aligned_size(&m->weights[i]);
            if (pass > 0) m->uploaded[p.buffer].size = p.at;
        }
        if (pass > 0) break;
        m->uploaded = tn_calloc(m->ctx, (size_t)p.buffer + 1, sizeof *m->uploaded);
        if (!m->uploaded) return TN_ERR_MEMORY;
        m->n_uploaded = p.buffer + 1;
    }
    tn_status status = TN_OK;
    for (int32_t i = 0; i < m->n_uploaded && status == TN_OK; i++) status = tn_buffer_create(m->device, m->uploaded[i].size, &m->uploaded[i]);
    return status;
}

static tn_status upload(tn_model *m, const tn_model_config *cfg)
{
    tn_status status = reserve(m);
    place p = {0, 0};
    uint64_t done = 0;
    for (int64_t i = 0; i < m->n_weights && status == TN_OK; i++) {
        tn_weight *w = &m->weights[i];
        if (!on_device(m, w, m->device_layers)) continue;
        tn_view v = weight_view(w);
        next_place(m, aligned_size(w), &p);
        w->buffer = tn_buffer_part(&m->uploaded[p.buffer], p.at, weight_size(w));
        status = tn_buffer_write_weight(&w->buffer, 0, &v, w->host.data, weight_size(w));
        if (status != TN_OK) return tn_fail_at(m->ctx, status, "%s", w->name);
        p.at += aligned_size(w);
        done += aligned_size(w);
        status = tn_weights_progress(m, cfg, done, m->device_size);
    }
    return status;
}

tn_status tn_weights_make(tn_model *m, const tn_model_config *cfg)
{
    tn_status status = describe(m);
    // A plan for one token: every tensor the architecture needs is there and has the right shape.
    if (status == TN_OK) status = tn_decoder_check(m);
    if (status == TN_OK) status = choose_layers(m, cfg);
    return status == TN_OK && !m->metadata_only && m->device_size > 0 ? upload(m, cfg) : status;
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
