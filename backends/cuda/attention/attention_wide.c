// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for heads of more than 256 and for values that are a part of their keys' rows
// (attention_wide.cu): rows of a tile, and into how many splits the keys of a sequence are cut at most.
#include "backends/cuda/attention/attention.h"

#include <stdio.h>

// As in the kernel.
enum {
    THREADS = 256,
    KEYS = 64,
    ROW_BYTES = 1152,
    SCALE_BYTES = 18 * 66 * 2,
    MAX_KEY = 576,
    MAX_VALUE = 512,
    MIN_TILES = 2,
    MAX_SPLITS = 64,
    MAX_WAYS = 16,
};

typedef struct variant {
    int32_t rows, slots;
    int64_t tiles; // of rows, that all blocks together have
    int32_t splits;
    bool quants; // keys or values are
} variant;

// Scales of two slots, queries, weights, maxima, rows of the caches, slots.
static int32_t shared_size(bool quants, int32_t rows, int32_t slots)
{
    int32_t warps = rows == 64 ? 4 : 8;
    return (quants ? 2 * SCALE_BYTES : 0) + rows * ROW_BYTES + rows * KEYS * 2 + warps * rows * 4 +
           2 * KEYS * 8 + slots * KEYS * ROW_BYTES;
}

static bool has_quants(const tn_step *step)
{
    return tn_dtype_block_elems(step->src[TN_SRC_attention_k].dtype) > 1 ||
           tn_dtype_block_elems(step->src[TN_SRC_attention_v].dtype) > 1;
}

static variant select_variant(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k];
    int64_t n_seq = TN_MAX(step->src[TN_SRC_attention_kv_len].ne[3], 1),
            rows = q->ne[1] * (q->ne[2] / k->ne[1]);
    variant c = {.quants = has_quants(step)};
    bool many = rows > 16 * n_seq && shared_size(c.quants, 64, 1) <= cuda->max_shared;
    c.rows = many ? 64 : 16;
    c.slots = shared_size(c.quants, c.rows, 2) <= cuda->max_shared ? 2 : 1;
    c.tiles = TN_MAX(tn_div_up(rows, c.rows), n_seq) * k->ne[1];
    int64_t most = TN_MIN(step->src[TN_SRC_attention_block_table].ne[3] * k->ne[2] / (KEYS * MIN_TILES),
                          (int64_t)MAX_SPLITS);
    c.splits = (int32_t)TN_MAX(TN_MIN(cuda->n_sms / c.tiles, most), (int64_t)1);
    return c;
}

// All rows of v follow each other at equal distances, as those of k do.
static bool is_even(const tn_view *v)
{
    return (v->ne[1] == 1 || v->nb[1] == v->ne[2] * v->nb[2]) && v->nb[0] == v->ne[1] * v->ne[2] * v->nb[2];
}

bool tn_cuda_attention_wide_accepts(const tn_cuda *cuda, const tn_step *step)
{
    if (cuda->compute < 80 || !tn_cuda_attention_common(step)) return false;
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    bool special = q->ne[3] > 256 || v->ne[3] > 256 || !tn_view_contiguous(v);
    bool sizes = k->ne[3] <= MAX_KEY && v->ne[3] <= MAX_VALUE && q->ne[3] % 8 == 0 && k->ne[3] % 8 == 0 &&
                 v->ne[3] % 8 == 0;
    // f32 would lose its precision; blocks have less than f16 keeps of them.
    bool types = k->dtype != TN_TYPE_F32 && v->dtype != TN_TYPE_F32;
    bool aligned = tn_dtype_block_elems(v->dtype) > 1 || v->nb[2] % 16 == 0;
    return special && sizes && types && aligned && is_even(v) &&
           shared_size(has_quants(step), 16, 1) <= cuda->max_shared && k->ne[1] < 65536 &&
           tn_cuda_attention_tiles(step, 16) < 65536;
}

size_t tn_cuda_attention_wide_scratch(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *y = &step->dst[0];
    int32_t splits = select_variant(cuda, step).splits;
    if (tn_cuda_attention_is_latent(cuda, step))
        splits = TN_MAX(splits, tn_cuda_attention_latent_splits(cuda, step));
    return splits == 1 ? 0 : (size_t)splits * (size_t)(y->ne[1] * y->ne[2] * (y->ne[3] + 2)) * sizeof(float);
}

static bool aligned(const tn_view *v)
{
    uintptr_t access = tn_dtype_block_elems(v->dtype) > 1 ? 2 : 16; // bytes
    return (uintptr_t)v->data % access == 0;
}

// Adds the results of the splits.
static tn_status launch_merge(const tn_cuda_launch *l, const tn_cuda_attention_args *a)
{
    int32_t ways = TN_MAX(1, TN_MIN(a->n_splits / 4, (int32_t)MAX_WAYS));
    tn_cuda_grid grid = {.x = (uint32_t)a->n_tokens,
                         .y = (uint32_t)a->n_heads,
                         .z = (uint32_t)tn_div_up(a->v.dim, 128),
                         .threads = (uint32_t)ways * 32};
    return tn_cuda_run(l, TN_CUDA_MODULE_attention_wide, "tn_attention_wide_merge", &grid, a);
}

tn_status tn_cuda_attention_wide_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    const tn_view *k = &step->src[TN_SRC_attention_k], *v = &step->src[TN_SRC_attention_v];
    tn_cuda_attention_args a = tn_cuda_attention_args_of(step);
    variant c = select_variant(l->cuda, step);
    if (a.n_seq == 0 || a.n_tokens == 0) return TN_OK;
    if (!aligned(k) || !aligned(v)) return tn_cuda_attention_launch(l);
    bool latent = tn_cuda_attention_is_latent(l->cuda, step) && k->data == v->data;
    a.n_splits = latent ? tn_cuda_attention_latent_splits(l->cuda, step) : c.splits;
    a.n_slots = c.slots;
    a.partial = (float *)l->scratch;
    tn_status status;
    if (latent) {
        status = tn_cuda_attention_latent_launch(l, &a);
    } else {
        char entry[64];
        snprintf(entry, sizeof entry, "tn_attention_wide_%d_%s", c.rows, c.quants ? "quants" : "plain");
        tn_cuda_grid grid = {.x = (uint32_t)c.splits,
                             .y = (uint32_t)tn_cuda_attention_tiles(step, c.rows),
                             .z = (uint32_t)a.n_kv,
                             .threads = THREADS,
                             .shared = (uint32_t)shared_size(c.quants, c.rows, c.slots)};
        status = tn_cuda_run(l, TN_CUDA_MODULE_attention_wide, entry, &grid, &a);
    }
    return status != TN_OK || a.n_splits == 1 ? status : launch_merge(l, &a);
}
