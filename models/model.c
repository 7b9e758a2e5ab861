// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Opening a model: metadata, hyper-parameters, tokenizer. Where the weights go: weights.c.
#include "models/model.h"

#include "models/decoder.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

void tn_model_config_default(tn_model_config *cfg)
{
    *cfg = (tn_model_config){.struct_size = sizeof *cfg, .device_layers = -1};
}

void tn_model_unref(tn_model **model)
{
    if (!model || !*model) return;
    tn_model *m = *model;
    *model = NULL;
    // acq_rel: the last owner sees what the others did before they let go.
    if (atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
    tn_context *ctx = m->ctx;
    tn_weights_destroy(m);
    tn_tokenizer_destroy(&m->tokenizer);
    tn_config_fini(ctx, &m->config);
    tn_gguf_close(&m->gguf);
    tn_arena_fini(&m->arena);
    tn_free(ctx, m->owned_file);
    tn_free(ctx, m);
}

tn_model *tn_model_ref(tn_model *model)
{
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
    return model;
}

static tn_status choose_device(tn_model *m, tn_device *wanted)
{
    m->device = wanted;
    // Without a wish: the first device that computes something.
    for (int32_t i = 0; !m->device && i < tn_context_n_devices(m->ctx); i++) {
        tn_device *d = tn_context_device_get(m->ctx, i);
        if (d->backend != &tn_backend_null && !d->software) m->device = d;
    }
    if (!m->device) return tn_fail(m->ctx, TN_ERR_DEVICE, "no device");
    m->host = m->device->host_memory ? m->device : tn_context_device_by_name(m->ctx, "cpu");
    return m->host ? TN_OK : tn_fail(m->ctx, TN_ERR_DEVICE, "no device with host memory");
}

static tn_status read_name(tn_model *m)
{
    tn_gguf_str name = {"", 0};
    tn_status status = tn_gguf_get_str(m->gguf, "general.name", &name);
    if (status != TN_OK) return status;
    char *copy = tn_arena_alloc(&m->arena, name.size + 1);
    if (!copy) return TN_ERR_MEMORY;
    memcpy(copy, name.data, name.size);
    m->name = copy;
    return TN_OK;
}

// Names of classes. A list that does not fit the head says nothing about it.
static tn_status read_labels(tn_model *m)
{
    char key[128];
    snprintf(key, sizeof key, "%s.classifier.output_labels", m->config.arch->name);
    const tn_gguf_kv *kv = tn_gguf_find(m->gguf, key);
    int32_t n = tn_result_width(m, TN_RESULT_SCORES);
    if (!kv || kv->type != TN_GGUF_ARRAY || kv->elem_type != TN_GGUF_STRING || n < 1) return TN_OK;
    if (kv->count != (uint64_t)n)
        return tn_event(m->ctx, TN_EVENT_MODEL_WARNING, "%s has %llu names for %d classes: they are left out", key,
                        (unsigned long long)kv->count, (int)n);
    m->labels = tn_arena_array(&m->arena, (size_t)n, sizeof *m->labels);
    if (!m->labels) return TN_ERR_MEMORY;
    size_t cursor = 0;
    for (int32_t i = 0; i < n; i++) {
        tn_gguf_str text;
        tn_status status = tn_gguf_array_next_str(m->gguf, kv, &cursor, &text);
        if (status != TN_OK) return status;
        char *copy = tn_arena_alloc(&m->arena, text.size + 1);
        if (!copy) return TN_ERR_MEMORY;
        memcpy(copy, text.data, text.size);
        m->labels[i] = copy;
    }
    m->n_labels = n;
    return TN_OK;
}

const char *tn_model_class_label(const tn_model *m, int32_t i)
{
    return i >= 0 && i < m->n_labels ? m->labels[i] : NULL;
}

// A pre-tokenizer that the caller named is his mistake, one that the file names is the file's.
static tn_status load_tokenizer(tn_model *m, const char *pre)
{
    tn_status status = tn_tokenizer_create(m->ctx, m->gguf, pre, &m->tokenizer);
    return pre && status == TN_ERR_MODEL ? TN_ERR_ARG : status;
}

static tn_status load(tn_model *m, const tn_model_config *cfg)
{
    tn_status status = choose_device(m, cfg->device);
    if (status == TN_OK && m->tokenizer_only) {
        status = read_name(m);
        return status == TN_OK ? load_tokenizer(m, cfg->pre) : status;
    }
    if (status == TN_OK) status = tn_config_read(m->ctx, m->gguf, &m->config);
    if (status == TN_OK && tn_gguf_n_tensors(m->gguf) == 0)
        status = tn_fail(m->ctx, TN_ERR_MODEL, "the file has no tensors: a vocabulary only");
    if (status == TN_OK) status = read_name(m);
    if (status == TN_OK) status = load_tokenizer(m, cfg->pre);
    if (status == TN_OK && cfg->check_tensors) status = tn_gguf_check_data(m->gguf);
    if (status == TN_OK) status = tn_weights_make(m, cfg);
    if (status == TN_OK) status = read_labels(m);
    return status == TN_OK ? tn_weights_progress(m, cfg, tn_gguf_file_size(m->gguf), tn_gguf_file_size(m->gguf)) : status;
}

static tn_status create(tn_context *ctx, const tn_model_config *given, tn_model **out, tn_model_config *cfg)
{
    tn_model_config_default(cfg);
    if (given) memcpy(cfg, given, TN_MIN(given->struct_size, sizeof *cfg));
    tn_model *m = tn_calloc(ctx, 1, sizeof *m);
    if (!m) return TN_ERR_MEMORY;
    m->ctx = ctx;
    m->tokenizer_only = cfg->tokenizer_only != 0;
    m->no_fallback = cfg->no_fallback != 0;
    m->metadata_only = cfg->metadata_only != 0 || m->tokenizer_only;
    atomic_init(&m->refs, 1);
    tn_arena_init(&m->arena, ctx);
    *out = m;
    return TN_OK;
}

static tn_status finish(tn_model *m, tn_status status, const char *name, const tn_model_config *cfg, size_t before, tn_model **out)
{
    if (status == TN_OK) {
        status = load(m, cfg);
        if (status != TN_OK && status != TN_ERR_CANCELLED && status != TN_ERR_MEMORY) status = tn_fail_at(m->ctx, status, "%s", name);
    }
    if (status != TN_OK) {
        tn_model_unref(&m);
        return status;
    }
    m->owned_size = tn_context_memory(m->ctx) - before;
    *out = m;
    return TN_OK;
}

tn_status tn_model_open(tn_context *ctx, const char *path, const tn_model_config *given, tn_model **out)
{
    tn_model_config cfg;
    tn_model *m;
    size_t before = tn_context_memory(ctx);
    tn_status status = create(ctx, given, &m, &cfg);
    if (status != TN_OK) return status;
    status = tn_gguf_open(ctx, path, &m->gguf);
    return finish(m, status, path, &cfg, before, out);
}

tn_status tn_model_open_memory(tn_context *ctx, void *take_data, size_t size, const char *name,
                               const tn_model_config *given, tn_model **out)
{
    tn_model_config cfg;
    tn_model *m;
    size_t before = tn_context_memory(ctx);
    tn_status status = create(ctx, given, &m, &cfg);
    if (status != TN_OK) {
        tn_free(ctx, take_data);
        return status;
    }
    m->owned_file = take_data;
    status = tn_gguf_open_memory(ctx, take_data, size, name, &m->gguf);
    return finish(m, status, name, &cfg, before, out);
}

tn_context *tn_model_context(const tn_model *m)
{
    return m->ctx;
}

const tn_gguf *tn_model_gguf(const tn_model *m)
{
    return m->gguf;
}

const tn_tokenizer *tn_model_tokenizer(const tn_model *m)
{
    return m->tokenizer;
}

const tn_config *tn_model_config_of(const tn_model *m)
{
    return &m->config;
}

int32_t tn_model_find_weight(const tn_model *m, const char *name)
{
    const tn_gguf_tensor *t = tn_gguf_find_tensor(m->gguf, name);
    if (t) return (int32_t)(t - tn_gguf_tensor_at(m->gguf, 0));
    for (int64_t i = m->n_weights - m->n_derived; i < m->n_weights; i++)
        if (strcmp(m->weights[i].name, name) == 0) return (int32_t)i;
    return -1;
}

// What one decoded token reads of a tensor with n bytes or elements: everything but the embedding table (one row) and the experts that
// are not chosen. The table counts in full when it is the head too.
static uint64_t active_part(const tn_model *m, const tn_gguf_tensor *t, bool tied, uint64_t n)
{
    bool embeddings = strcmp(t->name, "token_embd.weight") == 0 || strcmp(t->name, "position_embd.weight") == 0;
    if (embeddings && !(tied && t->name[0] == 't')) return n / (uint64_t)t->ne[0];
    if (t->n_dims == 3 && m->config.n_experts > 0 && strstr(t->name, "_exps"))
        return n / (uint64_t)m->config.n_experts * (uint64_t)m->config.n_experts_used;
    return n;
}

void tn_model_info_get(const tn_model *m, tn_model_info *info)
{
    const tn_config *c = &m->config;
    if (m->tokenizer_only) {
        *info = (tn_model_info){
            .arch = "", .name = m->name, .device = m->device->name, .has_tokenizer = m->tokenizer != NULL,
            .n_vocab = m->tokenizer ? tn_tokenizer_n_tokens(m->tokenizer) : 0,
            .file_size = tn_gguf_file_size(m->gguf), .owned_size = m->owned_size, .host_device = m->host->name,
        };
        return;
    }
    *info = (tn_model_info){
        .arch = c->arch->name, .name = m->name, .device = m->device->name,
        .n_layers = c->n_layers, .n_embd = c->n_embd, .n_vocab = c->n_vocab, .n_ctx_train = c->n_ctx_train,
        .n_heads = c->layers[0].n_heads, .n_kv_heads = c->layers[0].n_kv_heads, .head_dim = c->head_dim,
        .n_ff = c->layers[0].n_ff, .n_experts = c->n_experts, .n_experts_used = c->n_experts_used,
        .has_tokenizer = m->tokenizer != NULL, .is_encoder = c->whole_texts, .pooling = c->pooling, .n_classes = tn_result_width(m, TN_RESULT_SCORES),
        .file_size = tn_gguf_file_size(m->gguf), .owned_size = m->owned_size,
        .device_layers = m->device_layers, .host_device = m->host->name, .device_size = m->device_size,
    };
    bool tied = tn_model_find_weight(m, "output.weight") < 0;
    for (int64_t i = 0; i < tn_gguf_n_tensors(m->gguf); i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(m->gguf, i);
        uint64_t n = 1;
        for (int32_t d = 0; d < t->n_dims; d++) n *= (uint64_t)t->ne[d];
        info->n_params += n;
        info->weight_size += t->size;
        info->active_weight_size += active_part(m, t, tied, t->size);
        info->n_active_params += active_part(m, t, tied, n);
    }
}
