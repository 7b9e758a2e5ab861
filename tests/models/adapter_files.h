// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// LoRA adapters for the models of tiny_model.h, made in memory, and the same change merged into the weights.
#ifndef TN_TESTS_MODELS_ADAPTER_FILES_H
#define TN_TESTS_MODELS_ADAPTER_FILES_H

#include "models/adapter/adapter.h"
#include "tests/models/tiny_model.h"

enum { ADAPTER_TENSORS = 160 };

typedef struct adapter_tensor {
    char name[96];
    tn_dtype dtype;
    int32_t n_dims;
    int64_t ne[TN_MAX_DIMS]; // outermost first
} adapter_tensor;

// Keys that are NULL are not written.
typedef struct adapter_file {
    const char *type, *arch, *kind;
    float alpha; // negative: the key is not written
    bool tokens; // has adapter.alora.invocation_tokens
    uint32_t seed;
    int32_t n_tensors;
    adapter_tensor tensors[ADAPTER_TENSORS];
} adapter_file;

// What an adapter can change: matrices that are multiplied, and the embedding of tokens.
static inline bool adapter_can(const tiny_tensor *t)
{
    static const char *const others[] = {"position_embd.weight", "per_layer_token_embd.weight",
                                         "ssm_conv1d.weight", ".bias"};
    for (size_t i = 0; i < TN_COUNT(others); i++)
        if (strstr(t->name, others[i])) return false;
    return t->n_dims > 1;
}

static inline adapter_tensor *adapter_add(adapter_file *f, const char *weight, char which, tn_dtype dtype)
{
    if (f->n_tensors == ADAPTER_TENSORS) abort();
    adapter_tensor *t = &f->tensors[f->n_tensors++];
    *t = (adapter_tensor){.dtype = dtype};
    snprintf(t->name, sizeof t->name, "%s.lora_%c", weight, which);
    return t;
}

// A pair for one weight of the model.
static inline void adapter_add_pair(adapter_file *f, const tiny_tensor *w, int64_t rank, tn_dtype dtype)
{
    adapter_tensor *a = adapter_add(f, w->name, 'a', dtype), *b = adapter_add(f, w->name, 'b', dtype);
    bool rows = strcmp(w->name, "token_embd.weight") == 0;
    int32_t last = w->n_dims - 1;
    a->n_dims = b->n_dims = w->n_dims;
    if (w->n_dims > 2) a->ne[0] = b->ne[0] = w->ne[0];
    a->ne[last - 1] = rows ? w->ne[0] : rank;
    a->ne[last] = rows ? rank : w->ne[last];
    b->ne[last - 1] = rows ? w->ne[last] : w->ne[last - 1];
    b->ne[last] = rank;
}

// An adapter of all matrices of a model. Every third of them has rank + 2.
static inline void adapter_describe(adapter_file *f, const tiny_file *model, int64_t rank, float alpha,
                                    tn_dtype dtype)
{
    *f = (adapter_file){
        .type = "adapter", .arch = model->shape.arch, .kind = "lora", .alpha = alpha, .seed = (uint32_t)rank};
    for (int32_t i = 0; i < model->n_tensors; i++)
        if (adapter_can(&model->tensors[i]))
            adapter_add_pair(f, &model->tensors[i], i % 3 == 2 ? rank + 2 : rank, dtype);
}

static inline int64_t adapter_count(const adapter_tensor *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i < t->n_dims; i++) n *= t->ne[i];
    return n;
}

static inline void adapter_fill(const adapter_tensor *t, uint32_t seed, void *place)
{
    for (const char *p = t->name; *p; p++) seed = seed * 31 + (uint8_t)*p;
    bool numbers = tn_quant_info_get(t->dtype)->from_f32 != NULL; // else: a type that is refused
    for (int64_t i = 0, n = numbers ? adapter_count(t) : 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        float x = ((float)(seed >> 8) / 16777216.0f - 0.5f) * 0.4f;
        tn_quant_info_get(t->dtype)->from_f32(&x, (char *)place + (size_t)i * tn_dtype_row_size(t->dtype, 1),
                                              1, NULL);
    }
}

// Freed with tn_free.
static inline void *adapter_write(tn_context *ctx, const adapter_file *f, size_t *size)
{
    tn_gguf_writer *w;
    void *data = NULL, *place;
    tiny_must(tn_gguf_writer_open_memory(ctx, &w));
    if (f->type) tiny_must(tn_gguf_writer_put_str(w, "general.type", f->type));
    if (f->arch) tiny_must(tn_gguf_writer_put_str(w, "general.architecture", f->arch));
    if (f->kind) tiny_must(tn_gguf_writer_put_str(w, "adapter.type", f->kind));
    if (!(f->alpha < 0.0f)) tiny_must(tn_gguf_writer_put_f32(w, "adapter.lora.alpha", f->alpha));
    if (f->tokens)
        tiny_must(tn_gguf_writer_put_array(w, "adapter.alora.invocation_tokens", TN_GGUF_U32,
                                           (uint32_t[]){1, 2}, 2));
    for (int32_t i = 0; i < f->n_tensors; i++)
        tiny_must(tn_gguf_writer_add_tensor(w, f->tensors[i].name, f->tensors[i].dtype, f->tensors[i].n_dims,
                                            f->tensors[i].ne));
    tiny_must(tn_gguf_writer_begin(w));
    for (int32_t i = 0; i < f->n_tensors; i++) {
        tiny_must(tn_gguf_writer_place(w, i, &place));
        adapter_fill(&f->tensors[i], f->seed, place);
    }
    tiny_must(tn_gguf_writer_commit(&w, &data, size));
    return data;
}

// --- the same change in the weights ----------------------------------------------------------------

static inline float *adapter_values(const tn_gguf *g, const char *weight, char which, int64_t *rank)
{
    char name[128];
    snprintf(name, sizeof name, "%s.lora_%c", weight, which);
    const tn_gguf_tensor *t = tn_gguf_find_tensor(g, name);
    if (!t) return NULL;
    int64_t n = 1;
    for (int32_t i = 0; i < t->n_dims; i++) n *= t->ne[i];
    float *x = malloc((size_t)n * sizeof *x);
    if (!x) abort();
    tn_quant_info_get(t->dtype)->to_f32(t->data, x, n);
    *rank = t->ne[t->n_dims - 1];
    return x;
}

// One matrix: w [n_out, n_in] += s * b a, with a [rank, n_in] or, of the embedding, w [rows, n_embd] +=
// s * a b^T with a [rows, rank] and b [n_embd, rank].
static inline void adapter_merge_one(float *w, int64_t n_out, int64_t n_in, const float *a, const float *b,
                                     int64_t rank, bool rows, double s)
{
    for (int64_t o = 0; o < n_out; o++)
        for (int64_t i = 0; i < n_in; i++) {
            double sum = 0.0;
            for (int64_t r = 0; r < rank; r++)
                sum += rows ? (double)a[o * rank + r] * b[i * rank + r]
                            : (double)b[o * rank + r] * a[r * n_in + i];
            w[o * n_in + i] = (float)(w[o * n_in + i] + s * sum);
        }
}

// Changes the F32 weights in the bytes of a model file as the adapter with that scale does.
static inline void adapter_merge(tn_context *ctx, void *model, size_t model_size, const void *adapter,
                                 size_t adapter_size, float alpha, float scale)
{
    tn_gguf *m = NULL, *g = NULL;
    tiny_must(tn_gguf_open_memory(ctx, model, model_size, "model", &m));
    tiny_must(tn_gguf_open_memory(ctx, adapter, adapter_size, "adapter", &g));
    for (int64_t k = 0; k < tn_gguf_n_tensors(m); k++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(m, k);
        int64_t rank = 0, ignored;
        float *b = adapter_values(g, t->name, 'b', &rank), *a = adapter_values(g, t->name, 'a', &ignored);
        if (!a || !b) continue;
        if (t->dtype != TN_TYPE_F32) abort();
        int64_t n = t->n_dims > 2 ? t->ne[0] : 1, n_out = t->ne[t->n_dims - 2], n_in = t->ne[t->n_dims - 1];
        bool rows = strcmp(t->name, "token_embd.weight") == 0;
        double s = (double)scale * (alpha > 0.0f ? (double)alpha / (double)rank : 1.0);
        float *w = (float *)(void *)((char *)model + (t->data - (const uint8_t *)model));
        for (int64_t e = 0; e < n; e++)
            adapter_merge_one(w + e * n_out * n_in, n_out, n_in, a + e * rank * n_in, b + e * n_out * rank,
                              rank, rows, s);
        free(a);
        free(b);
    }
    tn_gguf_close(&g);
    tn_gguf_close(&m);
}

#endif
