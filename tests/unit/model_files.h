// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Small models in a temporary folder, for tests of what reads and writes whole files.
#ifndef TN_TESTS_UNIT_MODEL_FILES_H
#define TN_TESTS_UNIT_MODEL_FILES_H

#include "core/context.h"
#include "models/gguf/gguf.h"
#include "ops/quant.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

static counting count;
static tn_context *ctx;
static char folder[] = "/tmp/tenon_test_XXXXXX";

// The path of a name in the folder; stays valid.
static inline const char *path_of(const char *name)
{
    static char paths[32][256];
    static int n;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (int i = 0; i < n; i++)
        if (strcmp(paths[i], path) == 0) return paths[i];
    if (n == 32) abort();
    return memcpy(paths[n++], path, sizeof path);
}

static inline int n_files(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    if (!d) abort();
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

// The last failure's message contains `part`.
static inline bool message_has(const char *part)
{
    char text[1024];
    tn_context_error(ctx, text, sizeof text);
    if (!strstr(text, part)) printf("    message: %s\n", text);
    return strstr(text, part) != NULL;
}

static inline void must(tn_status status)
{
    char text[1024];
    if (status == TN_OK) return;
    tn_context_error(ctx, text, sizeof text);
    printf("setting up failed: %s\n", text);
    abort();
}

// --- files to work on ----------------------------------------------------------------------------------

// Values like those of weights: bell-shaped, the same in every run.
static inline void random_values(float *x, size_t n, uint32_t seed)
{
    uint32_t s = seed * 2654435761u + 1;
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            s = s * 1664525u + 1013904223u;
            sum += (float)(s >> 8) / 16777216.0f - 0.5f;
        }
        x[i] = sum * 0.1f;
    }
}

typedef struct spec {
    const char *name;
    tn_dtype dtype;
    int32_t n_dims;
    int64_t ne[3];
} spec;

static inline size_t n_elems(const spec *t)
{
    size_t n = 1;
    for (int32_t i = 0; i < t->n_dims; i++) n *= (size_t)t->ne[i];
    return n;
}

enum { MAX_ELEMS = 1 << 18 };

static inline void put_data(tn_gguf_writer *w, const spec *t, uint32_t seed)
{
    static float x[MAX_ELEMS], y[MAX_ELEMS];
    size_t n = n_elems(t);
    random_values(x, n, seed);
    tn_quant_info_get(t->dtype)->from_f32(x, y, (int64_t)n, NULL);
    must(tn_gguf_writer_data(w, y, tn_dtype_row_size(t->dtype, (int64_t)n)));
}

static inline void add_tensors(tn_gguf_writer *w, const spec *t, int n)
{
    for (int i = 0; i < n; i++)
        must(tn_gguf_writer_add_tensor(w, t[i].name, t[i].dtype, t[i].n_dims, t[i].ne));
    must(tn_gguf_writer_begin(w));
    for (int i = 0; i < n; i++) put_data(w, &t[i], (uint32_t)i + 1);
    must(tn_gguf_writer_commit(&w, NULL, NULL));
}

static inline void put_model_keys(tn_gguf_writer *w, uint32_t n_layer, uint32_t n_expert)
{
    must(tn_gguf_writer_put_str(w, "general.architecture", "llama"));
    must(tn_gguf_writer_put_u32(w, "general.file_type", 0));
    must(tn_gguf_writer_put_u32(w, "llama.block_count", n_layer));
    must(tn_gguf_writer_put_u32(w, "llama.attention.head_count", 8));
    must(tn_gguf_writer_put_array(w, "llama.attention.head_count_kv", TN_GGUF_U32, (uint32_t[]){0, 2, 2}, 3));
    must(tn_gguf_writer_put_strs(w, "kept.names", (const char *const[]){"a", "b"}, 2));
    if (n_expert > 0) must(tn_gguf_writer_put_u32(w, "llama.expert_count", n_expert));
}

// Three layers; one tensor has rows that only blocks of 32 fit, and one that none fits.
static const spec dense[] = {
    {"token_embd.weight", TN_TYPE_F32, 2, {96, 256}},
    {"output_norm.weight", TN_TYPE_F32, 1, {256}},
    {"output.weight", TN_TYPE_F32, 2, {96, 256}},
    {"blk.0.attn_v.weight", TN_TYPE_F32, 2, {64, 256}},
    {"blk.2.attn_v.weight", TN_TYPE_F32, 2, {64, 256}},
    {"blk.1.attn_v.weight", TN_TYPE_F16, 2, {64, 256}},
    {"blk.0.ffn_down.weight", TN_TYPE_F32, 2, {256, 512}},
    {"blk.1.ffn_down.weight", TN_TYPE_BF16, 2, {256, 512}},
    {"blk.2.ffn_down.weight", TN_TYPE_F32, 2, {256, 512}},
    {"blk.0.ffn_up.weight", TN_TYPE_F32, 2, {31, 96}},
    {"blk.0.attn_output.weight", TN_TYPE_F32, 2, {256, 256}},
    {"blk.0.odd.weight", TN_TYPE_F32, 2, {3, 33}},
    {"blk.0.attn_norm.weight", TN_TYPE_F32, 1, {256}},
    {"blk.0.attn_q.bias", TN_TYPE_F32, 1, {256}},
    {"blk.0.ffn_gate.weight", TN_TYPE_Q8_0, 2, {8, 256}},
};
enum { N_DENSE = TN_COUNT(dense) };

static inline const char *save_model(const char *name, const spec *t, int n, uint32_t n_expert)
{
    tn_gguf_writer *w = NULL;
    must(tn_gguf_writer_open(ctx, path_of(name), &w));
    put_model_keys(w, 3, n_expert);
    add_tensors(w, t, n);
    return path_of(name);
}

#endif
