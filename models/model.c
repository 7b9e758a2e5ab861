// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// An open model: its references, and what callers may ask about it. Opening: open.c.
#include "models/model.h"

#include <stdatomic.h>
#include <tenon/session.h>
#include <string.h>

void tn_model_unref(tn_model **model)
{
    if (!model || !*model) return;
    tn_model *m = *model;
    *model = NULL;
    // acq_rel: the last owner must see all writes of the other owners before it frees the object.
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
    if (!model) return NULL;
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
    return model;
}

const char *tn_model_class_label(const tn_model *m, int32_t i)
{
    if (!m) return NULL;
    return i >= 0 && i < m->n_labels ? m->labels[i] : NULL;
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

const char *tn_result_name(int32_t result)
{
    static const char *const names[] = {"logits", "hidden", "scores"};
    return names[result];
}

int32_t tn_result_width(const tn_model *model, int32_t result)
{
    static const char *const heads[] = {"cls.output.weight", "cls.weight"};
    if (result == TN_RESULT_LOGITS) return model->config.whole_texts ? 0 : model->config.n_vocab;
    if (result == TN_RESULT_HIDDEN) return model->config.n_embd;
    for (size_t i = 0; i < TN_COUNT(heads); i++) {
        int32_t w = tn_model_find_weight(model, heads[i]);
        // The outermost of two dimensions; the reader bounds it by the size of the file. A row alone is a
        // vector.
        if (w >= 0 && model->weights[w].n_dims == 1) return 1;
        if (w >= 0 && model->weights[w].n_dims == 2 && model->weights[w].ne[0] <= TN_MAX_WIDTH)
            return (int32_t)model->weights[w].ne[0];
    }
    return 0;
}

// How much of a tensor with n bytes or elements one decoded token reads: one row of the embedding table, the
// share of the selected experts, everything of all other tensors. The table counts in full when it is the
// head too.
static uint64_t active_part(const tn_model *m, const tn_gguf_tensor *t, bool tied, uint64_t n)
{
    bool embeddings =
        strcmp(t->name, "token_embd.weight") == 0 || strcmp(t->name, "position_embd.weight") == 0;
    if (embeddings && !(tied && t->name[0] == 't')) return n / (uint64_t)t->ne[0];
    if (t->n_dims == 3 && m->config.n_experts > 0 && strstr(t->name, "_exps"))
        return n / (uint64_t)m->config.n_experts * (uint64_t)m->config.n_experts_used;
    return n;
}

tn_status tn_model_info_get(const tn_model *m, tn_model_info *out)
{
    TN_NEED(NULL, m);
    tn_model_info now, *info = &now;
    const tn_config *c = &m->config;
    if (m->tokenizer_only) {
        *info = (tn_model_info){
            .arch = "",
            .name = m->name,
            .device = m->device->name,
            .has_tokenizer = m->tokenizer != NULL,
            .n_vocab = m->tokenizer ? tn_tokenizer_n_tokens(m->tokenizer) : 0,
            .file_size = tn_gguf_file_size(m->gguf),
            .owned_size = m->owned_size,
            .host_device = m->host->name,
        };
        return TN_STRUCT_WRITE(m->ctx, tn_model_info, out, info);
    }
    *info = (tn_model_info){
        .arch = c->arch->name,
        .name = m->name,
        .device = m->device->name,
        .n_layers = c->n_layers,
        .n_embd = c->n_embd,
        .n_vocab = c->n_vocab,
        .n_ctx_train = c->n_ctx_train,
        .n_heads = c->layers[0].n_heads,
        .n_kv_heads = c->layers[0].n_kv_heads,
        .head_dim = c->head_dim,
        .n_ff = c->layers[0].n_ff,
        .n_experts = c->n_experts,
        .n_experts_used = c->n_experts_used,
        .has_tokenizer = m->tokenizer != NULL,
        .is_encoder = c->whole_texts,
        .pooling = c->pooling,
        .n_classes = tn_result_width(m, TN_RESULT_SCORES),
        .file_size = tn_gguf_file_size(m->gguf),
        .owned_size = m->owned_size,
        .device_layers = m->device_layers,
        .host_device = m->host->name,
        .device_size = m->device_size,
        .placed_size = tn_weights_placed_size(m, m->device_layers),
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
    return TN_STRUCT_WRITE(m->ctx, tn_model_info, out, info);
}
