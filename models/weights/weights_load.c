// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Describing the weights of a file, reading and copying them. In host memory the mapped file, or the copy of
// it in memory, is used in place. A device with memory of its own gets copies for its layers and the head;
// small tensors of the whole model are copied too, and can be read on both sides.
#include "core/cpu_features.h"
#include "models/model.h"
#include "ops/ops.h"
#include "ops/quant.h"

#include <string.h>

// --- description -----------------------------------------------------------------------------------

// One-dimensional tensors of other float types as F32 in the arena. They are read in pieces of whole blocks.
static tn_status convert_vector(tn_model *m, const tn_gguf_tensor *t, const void **out)
{
    enum { ELEMS = 8192, PIECE_SIZE = ELEMS * 8 };
    tn_dequant_fn to_f32 = tn_quant_info_get(t->dtype)->to_f32;
    int64_t n = t->ne[t->n_dims - 1];
    if (!to_f32) return tn_fail(m->ctx, TN_ERR_MODEL, "%s: a vector of %s", t->name, tn_dtype_name(t->dtype));
    if (m->metadata_only) return TN_OK;
    float *values = tn_arena_array(&m->arena, (size_t)n, sizeof *values);
    char *piece = values ? tn_alloc(m->ctx, PIECE_SIZE) : NULL;
    tn_status status = piece ? TN_OK : TN_ERR_MEMORY;
    for (int64_t first = 0; first < n && status == TN_OK; first += ELEMS) {
        int64_t k = TN_MIN(n - first, ELEMS);
        size_t at = tn_dtype_row_size(t->dtype, first), size = tn_dtype_row_size(t->dtype, k);
        status = tn_gguf_tensor_read(m->gguf, t, at, piece, size);
        if (status == TN_OK) to_f32(piece, values + first, k);
    }
    tn_free(m->ctx, piece);
    *out = values;
    return status;
}

static bool is_integer_type(tn_dtype type)
{
    return type == TN_TYPE_I8 || type == TN_TYPE_I16 || type == TN_TYPE_I32 || type == TN_TYPE_I64;
}

// A file may have outer dimensions of 1; the description of a weight has none.
tn_weight tn_weight_of(const tn_gguf_tensor *t)
{
    int32_t first = 0;
    while (first < t->n_dims - 1 && t->ne[first] == 1) first++;
    tn_weight w = {.name = t->name,
                   .dtype = t->dtype,
                   .n_dims = t->n_dims - first,
                   .integers = is_integer_type(t->dtype)};
    memcpy(w.ne, t->ne + first, (size_t)w.n_dims * sizeof *w.ne);
    return w;
}

tn_status tn_weights_describe(tn_model *m)
{
    int64_t n = tn_gguf_n_tensors(m->gguf);
    m->weights = tn_calloc(m->ctx, (size_t)(n + tn_weights_derived_max(m)) + 1, sizeof *m->weights);
    if (!m->weights) return TN_ERR_MEMORY;
    m->n_weights = n;
    for (int64_t i = 0; i < n; i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(m->gguf, i);
        tn_weight *w = &m->weights[i];
        *w = tn_weight_of(t);
        const void *values = t->data;
        if (w->n_dims == 1 && t->dtype != TN_TYPE_F32 && !w->integers) {
            w->dtype = TN_TYPE_F32;
            tn_status status = convert_vector(m, t, &values);
            if (status != TN_OK) return status;
        }
        if (!m->metadata_only) w->host = tn_buffer_borrow(m->host, values, tn_weight_size(w));
    }
    return tn_weights_derive(m);
}

// --- progress --------------------------------------------------------------------------------------

typedef struct loading {
    tn_model *m;
    const tn_model_config *cfg;
    uint64_t done, total; // bytes
    bool read_ahead;
} loading;

static tn_status step(void *user, size_t n)
{
    loading *l = user;
    l->done += n;
    bool cancelled = tn_context_loading_cancelled(l->m->ctx);
    if (!cancelled && l->cfg->progress)
        cancelled = l->cfg->progress(l->cfg->progress_user, l->done, l->total) != 0;
    return cancelled ? tn_fail(l->m->ctx, TN_ERR_CANCELLED, "cancelled") : TN_OK;
}

// --- host memory -----------------------------------------------------------------------------------

// Mapped weights that are read ahead: those that layers on the host use.
static bool is_fetched(const tn_model *m, const tn_weight *w)
{
    return !w->unused && tn_weights_in_host_layers(m, w);
}

static void count_bytes(const tn_model *m, loading *l)
{
    uint64_t total, available, host = tn_weights_host_size(m);
    tn_system_memory(&total, &available);
    l->read_ahead = tn_gguf_is_mapped(m->gguf) && !l->cfg->no_read_ahead && host <= available;
    l->total = m->device_size + tn_gguf_load_size(m->gguf);
    for (int64_t i = 0; i < tn_gguf_n_tensors(m->gguf) && l->read_ahead; i++)
        if (is_fetched(m, &m->weights[i])) l->total += tn_gguf_tensor_at(m->gguf, i)->size;
}

static tn_status read_host_weights(tn_model *m, loading *l)
{
    tn_status status = tn_gguf_load(m->gguf, step, l);
    for (int64_t i = 0; i < tn_gguf_n_tensors(m->gguf) && l->read_ahead && status == TN_OK; i++)
        if (is_fetched(m, &m->weights[i]))
            status = tn_gguf_fetch(m->gguf, tn_gguf_tensor_at(m->gguf, i), step, l);
    return status;
}

static tn_status lock_host_weights(tn_model *m, const loading *l)
{
    for (int64_t i = 0; i < tn_gguf_n_tensors(m->gguf) && l->cfg->lock_memory; i++)
        if (is_fetched(m, &m->weights[i]) && !tn_gguf_lock(m->gguf, tn_gguf_tensor_at(m->gguf, i)))
            return tn_event(m->ctx, TN_EVENT_MEMORY_NOT_LOCKED,
                            "the system does not lock the weights in memory (tensor %s and those behind it); "
                            "'ulimit -l' shows the limit",
                            tn_gguf_tensor_at(m->gguf, i)->name);
    return TN_OK;
}

// --- upload ----------------------------------------------------------------------------------------

// Copies lie one after the other in the smallest number of buffers that the device allows.
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

// All buffers are reserved before the first byte is read: running out of memory then costs no time.
static tn_status reserve(tn_model *m)
{
    place p = {0, 0};
    for (int64_t pass = 0; pass < 2; pass++) {
        p = (place){0, 0};
        for (int64_t i = 0; i < m->n_weights; i++) {
            if (!tn_weights_on_device(m, &m->weights[i], m->device_layers)) continue;
            next_place(m, tn_weight_device_size(&m->weights[i]), &p);
            p.at += tn_weight_device_size(&m->weights[i]);
            if (pass > 0) m->uploaded[p.buffer].size = p.at;
        }
        if (pass > 0) break;
        m->uploaded = tn_calloc(m->ctx, (size_t)p.buffer + 1, sizeof *m->uploaded);
        if (!m->uploaded) return TN_ERR_MEMORY;
        m->n_uploaded = p.buffer + 1;
    }
    tn_status status = TN_OK;
    for (int32_t i = 0; i < m->n_uploaded && status == TN_OK; i++)
        status = tn_buffer_create(m->device, m->uploaded[i].size, &m->uploaded[i]);
    return status;
}

static tn_status upload(tn_model *m, loading *l)
{
    tn_status status = TN_OK;
    place p = {0, 0};
    for (int64_t i = 0; i < m->n_weights && status == TN_OK && m->device_size > 0; i++) {
        tn_weight *w = &m->weights[i];
        if (!tn_weights_on_device(m, w, m->device_layers)) continue;
        tn_view v = tn_weight_view(w);
        next_place(m, tn_weight_device_size(w), &p);
        w->buffer = tn_buffer_part(&m->uploaded[p.buffer], p.at, tn_weight_size(w));
        status = tn_buffer_write_weight(&w->buffer, 0, &v, w->host.data, tn_weight_size(w));
        if (status != TN_OK) return tn_fail_at(m->ctx, status, "%s", w->name);
        p.at += tn_weight_device_size(w);
        status = step(l, tn_weight_device_size(w));
    }
    return status;
}

tn_status tn_weights_load(tn_model *m, const tn_model_config *cfg)
{
    loading l = {.m = m, .cfg = cfg};
    if (m->metadata_only) {
        l.total = tn_gguf_file_size(m->gguf);
        return step(&l, (size_t)l.total);
    }
    count_bytes(m, &l);
    tn_status status = step(&l, 0);
    if (status == TN_OK && m->device_size > 0) status = reserve(m);
    if (status == TN_OK) status = read_host_weights(m, &l);
    if (status == TN_OK) status = upload(m, &l);
    if (status == TN_OK) status = lock_host_weights(m, &l);
    return status;
}
