// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// LoRA adapters: opening a file, checking it against the model, copying its matrices. The keys and names are
// those that convert_lora_to_gguf.py of llama.cpp writes.
#include "models/adapter/adapter.h"

#include "models/decoder.h"
#include "models/keys/keys.h"

#include <stdatomic.h>
#include <string.h>

// --- keys ------------------------------------------------------------------------------------------

static bool is_text(const tn_gguf_str *s, const char *text)
{
    return s->size == strlen(text) && memcmp(s->data, text, s->size) == 0;
}

static tn_status read_keys(tn_adapter *a)
{
    tn_gguf_str arch = {"", 0}, kind = {"", 0}, name = {"", 0};
    tn_context *ctx = a->ctx;
    tn_status status = tn_keys_check_adapter(ctx, a->gguf);
    if (status == TN_OK) status = tn_gguf_get_str(a->gguf, "general.architecture", &arch);
    if (status == TN_OK) status = tn_gguf_get_str(a->gguf, "adapter.type", &kind);
    if (status == TN_OK) status = tn_gguf_get_str(a->gguf, "general.name", &name);
    if (status == TN_OK) status = tn_gguf_get_f32(a->gguf, "adapter.lora.alpha", &a->alpha);
    if (status != TN_OK) return status;
    if (!is_text(&kind, "lora"))
        return tn_fail(ctx, TN_ERR_UNSUPPORTED, "adapter.type is \"%.*s\", only \"lora\" is known",
                       (int)TN_MIN(kind.size, 32), kind.data);
    if (tn_gguf_find(a->gguf, "adapter.alora.invocation_tokens"))
        return tn_fail(ctx, TN_ERR_UNSUPPORTED,
                       "the adapter is to be applied behind certain tokens only, which is not supported");
    if (!is_text(&arch, a->model->config.arch->name))
        return tn_fail(ctx, TN_ERR_MODEL, "the adapter is for the architecture %.*s, the model has %s",
                       (int)TN_MIN(arch.size, 32), arch.data, a->model->config.arch->name);
    char *copy = tn_arena_alloc(&a->arena, name.size + 1);
    if (!copy) return TN_ERR_MEMORY;
    memcpy(copy, name.data, name.size);
    a->name = copy;
    return TN_OK;
}

// --- tensors ---------------------------------------------------------------------------------------

// Extent k of a weight counted from the innermost; 1 where it has none.
static int64_t extent(const tn_weight *w, int32_t k)
{
    return k < w->n_dims ? w->ne[w->n_dims - 1 - k] : 1;
}

static bool ends_with(const char *text, size_t n, const char *end)
{
    size_t k = strlen(end);
    return n > k && memcmp(text + n - k, end, k) == 0;
}

// Splits "blk.0.attn_q.weight.lora_a" into the weight and 'a' or 'b'. Norms may be in a file, but other
// programs leave them out, so that answers agree: *which is 0 then.
static tn_status parse_name(tn_adapter *a, const char *name, int32_t *weight, char *which)
{
    char base[TN_WEIGHT_NAME];
    size_t n = strlen(name);
    *which = 0;
    if (ends_with(name, n, "_norm.weight"))
        return tn_event(a->ctx, TN_EVENT_MODEL_WARNING, "the adapter's %s is left out: only matrices count",
                        name);
    if (ends_with(name, n, ".lora_a"))
        *which = 'a';
    else if (ends_with(name, n, ".lora_b"))
        *which = 'b';
    else
        return tn_fail(a->ctx, TN_ERR_MODEL, "tensor %s is neither .lora_a nor .lora_b", name);
    n -= strlen(".lora_a");
    if (n >= sizeof base) return tn_fail(a->ctx, TN_ERR_MODEL, "tensor %.32s..: its name is too long", name);
    memcpy(base, name, n);
    base[n] = 0;
    *weight = tn_model_find_weight(a->model, base);
    if (*weight >= 0) return TN_OK;
    return tn_fail(a->ctx, TN_ERR_MODEL, "tensor %s changes %s, which the model does not have", name, base);
}

static tn_status add_tensor(tn_adapter *a, int32_t i)
{
    int32_t weight = -1;
    char which;
    const tn_gguf_tensor *t = tn_gguf_tensor_at(a->gguf, i);
    tn_status status = parse_name(a, t->name, &weight, &which);
    if (status != TN_OK || !which) return status;
    tn_weight *w = &a->weights[i];
    *w = tn_weight_of(t);
    status = tn_weight_check_type(a->ctx, w);
    if (status != TN_OK) return status;
    if (t->data) w->host = tn_buffer_borrow(a->model->host, t->data, tn_weight_size(w));
    if (a->pair_of[weight] < 0) {
        a->pairs[a->n_pairs] = (tn_adapter_pair){.weight = weight, .a = -1, .b = -1};
        a->pair_of[weight] = a->n_pairs++;
    }
    tn_adapter_pair *p = &a->pairs[a->pair_of[weight]];
    *(which == 'a' ? &p->a : &p->b) = i;
    return TN_OK;
}

static tn_status refuse_shape(const tn_adapter *a, const tn_weight *have, const int64_t want[3])
{
    return tn_fail(a->ctx, TN_ERR_MODEL, "tensor %s has shape [%lld, %lld, %lld], must be [%lld, %lld, %lld]",
                   have->name, (long long)extent(have, 2), (long long)extent(have, 1),
                   (long long)extent(have, 0), (long long)want[0], (long long)want[1], (long long)want[2]);
}

static bool has_shape(const tn_weight *w, const int64_t want[3])
{
    return extent(w, 3) == 1 && extent(w, 2) == want[0] && extent(w, 1) == want[1] && extent(w, 0) == want[2];
}

static tn_status check_pair(tn_adapter *adapter, tn_adapter_pair *p)
{
    const tn_weight *w = &adapter->model->weights[p->weight];
    if (p->a < 0 || p->b < 0)
        return tn_fail(adapter->ctx, TN_ERR_MODEL, "tensor %s.lora_%c is missing", w->name,
                       p->a < 0 ? 'a' : 'b');
    const tn_weight *a = &adapter->weights[p->a], *b = &adapter->weights[p->b];
    int64_t n = extent(w, 2), n_out = extent(w, 1), n_in = extent(w, 0), rank = extent(b, 0);
    if (rank > TN_MAX_WIDTH)
        return tn_fail(adapter->ctx, TN_ERR_MODEL, "tensor %s has rank %lld, must be 1 to %d", b->name,
                       (long long)rank, (int)TN_MAX_WIDTH);
    p->rank = (int32_t)rank;
    p->n_experts = (int32_t)n;
    p->rows = strcmp(w->name, "token_embd.weight") == 0;
    const int64_t rows_a[3] = {n, n_out, rank}, rows_b[3] = {n, n_in, rank}, want_a[3] = {n, rank, n_in},
                  want_b[3] = {n, n_out, rank};
    if (!has_shape(a, p->rows ? rows_a : want_a)) return refuse_shape(adapter, a, p->rows ? rows_a : want_a);
    if (!has_shape(b, p->rows ? rows_b : want_b)) return refuse_shape(adapter, b, p->rows ? rows_b : want_b);
    adapter->rank = TN_MAX(adapter->rank, p->rank);
    return TN_OK;
}

static tn_status read_tensors(tn_adapter *a)
{
    int64_t n = tn_gguf_n_tensors(a->gguf), n_weights = a->model->n_weights;
    if (n < 1) return tn_fail(a->ctx, TN_ERR_MODEL, "the adapter has no tensors");
    a->weights = tn_calloc(a->ctx, (size_t)n, sizeof *a->weights);
    a->pairs = tn_calloc(a->ctx, (size_t)n, sizeof *a->pairs);
    a->pair_of = tn_calloc(a->ctx, (size_t)n_weights + 1, sizeof *a->pair_of);
    if (!a->weights || !a->pairs || !a->pair_of) return TN_ERR_MEMORY;
    for (int64_t i = 0; i < n_weights; i++) a->pair_of[i] = -1;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < n && status == TN_OK; i++) status = add_tensor(a, (int32_t)i);
    for (int32_t i = 0; i < a->n_pairs && status == TN_OK; i++) status = check_pair(a, &a->pairs[i]);
    if (status == TN_OK && a->n_pairs == 0)
        status = tn_fail(a->ctx, TN_ERR_MODEL, "the adapter changes no weight");
    return status;
}

// A recording of the model with the adapter shows which weights it can change.
static tn_status check_use(tn_adapter *a)
{
    bool *used = tn_calloc(a->ctx, (size_t)a->n_pairs, sizeof *used);
    if (!used) return TN_ERR_MEMORY;
    tn_status status = tn_decoder_check(a->model, a, used);
    for (int32_t i = 0; i < a->n_pairs && status == TN_OK; i++)
        if (!used[i])
            status = tn_fail(a->ctx, TN_ERR_UNSUPPORTED,
                             "the adapter changes %s, which is not multiplied as a matrix",
                             a->model->weights[a->pairs[i].weight].name);
    tn_free(a->ctx, used);
    return status;
}

// --- memory ----------------------------------------------------------------------------------------

// Where a pair is read: with its weight; of the token embedding, on the device of the first layer.
static bool on_device(const tn_adapter *a, const tn_adapter_pair *p)
{
    const tn_model *m = a->model;
    if (p->rows && m->device_layers < m->config.n_layers) return false;
    return tn_weights_on_device(m, &m->weights[p->weight], m->device_layers);
}

// Copies one matrix behind the others: into the last buffer, or a further one where that would become larger
// than the device allows. With `size` the copy is only counted: sizes[buffer] grows.
static tn_status place(tn_adapter *a, tn_weight *w, size_t *sizes, size_t *at)
{
    size_t most = a->model->device->max_buffer_size, size = tn_weight_device_size(w);
    if (*at > 0 && most > 0 && size > most - TN_MIN(*at, most)) a->n_uploaded++, *at = 0;
    int32_t k = a->n_uploaded;
    if (sizes) {
        sizes[k] = *at + size;
    } else {
        tn_view v = tn_weight_view(w);
        w->buffer = tn_buffer_part(&a->uploaded[k], *at, tn_weight_size(w));
        tn_status status = tn_buffer_write_weight(&w->buffer, 0, &v, w->host.data, tn_weight_size(w));
        if (status != TN_OK) return tn_fail_at(a->ctx, status, "%s", w->name);
    }
    *at += size;
    return TN_OK;
}

static tn_status place_all(tn_adapter *a, size_t *sizes)
{
    size_t at = 0;
    tn_status status = TN_OK;
    a->n_uploaded = 0;
    for (int32_t i = 0; i < a->n_pairs && status == TN_OK; i++) {
        if (!on_device(a, &a->pairs[i])) continue;
        status = place(a, &a->weights[a->pairs[i].a], sizes, &at);
        if (status == TN_OK) status = place(a, &a->weights[a->pairs[i].b], sizes, &at);
    }
    a->n_uploaded += at > 0;
    return status;
}

static tn_status upload(tn_adapter *a)
{
    for (int32_t i = 0; i < a->n_pairs; i++) {
        size_t size = tn_weight_device_size(&a->weights[a->pairs[i].a]) +
                      tn_weight_device_size(&a->weights[a->pairs[i].b]);
        *(on_device(a, &a->pairs[i]) ? &a->device_size : &a->host_size) += size;
    }
    if (a->model->metadata_only || a->device_size == 0) return TN_OK;
    size_t n = 2 * (size_t)a->n_pairs, *sizes = tn_calloc(a->ctx, n, sizeof *sizes);
    a->uploaded = tn_calloc(a->ctx, n, sizeof *a->uploaded);
    tn_status status = sizes && a->uploaded ? place_all(a, sizes) : TN_ERR_MEMORY;
    for (int32_t i = 0; i < a->n_uploaded && status == TN_OK; i++)
        status = tn_buffer_create(a->model->device, sizes[i], &a->uploaded[i]);
    tn_free(a->ctx, sizes);
    return status == TN_OK ? place_all(a, NULL) : status;
}

// --- public ----------------------------------------------------------------------------------------

static tn_status create(tn_model *model, tn_adapter **out)
{
    tn_context *ctx = model->ctx;
    if (model->tokenizer_only)
        return tn_fail(ctx, TN_ERR_STATE, "the model was opened for its tokenizer only");
    tn_adapter *a = tn_calloc(ctx, 1, sizeof *a);
    if (!a) return TN_ERR_MEMORY;
    a->ctx = ctx;
    a->model = tn_model_ref(model);
    atomic_init(&a->refs, 1);
    tn_arena_init(&a->arena, ctx);
    *out = a;
    return TN_OK;
}

static tn_status next_piece(void *user, size_t n)
{
    TN_UNUSED(user);
    TN_UNUSED(n);
    return TN_OK;
}

static tn_status finish(tn_adapter *a, tn_status status, const char *name, tn_adapter **out)
{
    if (status == TN_OK) {
        status = read_keys(a);
        // Adapters are small: they are read into memory, so that a file may change or go away afterwards.
        bool reads = !a->model->metadata_only && tn_gguf_needs_load(a->gguf);
        if (status == TN_OK && reads) status = tn_gguf_reserve(a->gguf);
        if (status == TN_OK) status = read_tensors(a);
        if (status == TN_OK) status = check_use(a);
        if (status == TN_OK && reads) status = tn_gguf_load(a->gguf, next_piece, NULL);
        if (status == TN_OK) status = upload(a);
        if (status != TN_OK && status != TN_ERR_MEMORY) status = tn_fail_at(a->ctx, status, "%s", name);
    }
    if (status != TN_OK)
        tn_adapter_unref(&a);
    else
        *out = a;
    return status;
}

tn_status tn_adapter_open(tn_model *model, const char *path, tn_adapter **out)
{
    TN_NEED(NULL, model);
    TN_NEED(model->ctx, path);
    TN_NEED(model->ctx, out);
    tn_adapter *a = NULL;
    tn_status status = create(model, &a);
    if (status != TN_OK) return status;
    tn_gguf_source source = {.name = path, .descriptor = -1};
    return finish(a, tn_gguf_open_source(model->ctx, &source, &a->gguf), path, out);
}

tn_status tn_adapter_open_memory(tn_model *model, const void *data, size_t size, const char *name,
                                 tn_adapter **out)
{
    tn_adapter *a = NULL;
    tn_status status = create(model, &a);
    if (status != TN_OK) return status;
    return finish(a, tn_gguf_open_memory(model->ctx, data, size, name, &a->gguf), name, out);
}

tn_adapter *tn_adapter_ref(tn_adapter *a)
{
    if (!a) return NULL;
    atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    return a;
}

void tn_adapter_unref(tn_adapter **adapter)
{
    if (!adapter || !*adapter) return;
    tn_adapter *a = *adapter;
    *adapter = NULL;
    // acq_rel: the last owner must see all writes of the other owners before it frees the object.
    if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1) return;
    tn_context *ctx = a->ctx;
    for (int64_t i = 0; a->weights && i < tn_gguf_n_tensors(a->gguf); i++) {
        tn_buffer_destroy(&a->weights[i].buffer);
        tn_buffer_destroy(&a->weights[i].host);
    }
    for (int32_t i = 0; a->uploaded && i < a->n_uploaded; i++) tn_buffer_destroy(&a->uploaded[i]);
    tn_free(ctx, a->uploaded);
    tn_free(ctx, a->weights);
    tn_free(ctx, a->pairs);
    tn_free(ctx, a->pair_of);
    tn_gguf_close(&a->gguf);
    tn_arena_fini(&a->arena);
    tn_model_unref(&a->model);
    tn_free(ctx, a);
}

tn_status tn_adapter_info_get(const tn_adapter *a, tn_adapter_info *out)
{
    TN_NEED(NULL, a);
    tn_adapter_info info = {.name = a->name,
                            .n_weights = a->n_pairs,
                            .rank = a->rank,
                            .alpha = a->alpha,
                            .file_size = tn_gguf_file_size(a->gguf),
                            .device_size = a->device_size};
    return TN_STRUCT_WRITE(a->ctx, tn_adapter_info, out, &info);
}

// --- for sessions ----------------------------------------------------------------------------------

tn_status tn_adapter_find(const tn_adapter *a, const tn_device *device, const char *name,
                          const tn_buffer **out)
{
    const tn_gguf_tensor *t = tn_gguf_find_tensor(a->gguf, name);
    if (!t) return tn_fail(a->ctx, TN_ERR_INTERNAL, "%s: no such matrix of the adapter", name);
    const tn_weight *w = &a->weights[t - tn_gguf_tensor_at(a->gguf, 0)];
    *out = device->host_memory ? &w->host : &w->buffer;
    if (!device->host_memory && w->buffer.device != device)
        return tn_fail(a->ctx, TN_ERR_INTERNAL, "%s: not on %s", name, device->name);
    return TN_OK;
}
