// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for up to 8 queries per sequence (attention_decode.cu): which variant of the kernel runs, and
// into how many splits the keys of a sequence are cut at most.
#include "backends/cuda/attention/attention.h"

#include <stdio.h>

enum {
    KEYS = 16,        // of a tile, as in the kernel
    MIN_TILES = 4,    // of a split
    MAX_PAIRS = 4096, // of sequence and KV head, up to which keys are split: more fill the device without
    MAX_SPLITS = 64,
};

// What a block costs beside its tiles of keys (start, merge), in tiles: 3.5 us for 0.245 us a tile of f16 and
// 128 elements (NVIDIA H200). Sequences are taken to be as long as the table allows, up to TYPICAL_TILES.
enum { BLOCK_COST = 14, TYPICAL_TILES = 128 };

// A variant of the kernel: head sizes up to `dim`, 8 `n_tiles` rows at a time, so many warps of a block.
typedef struct variant {
    const char *type;
    int32_t dim, n_tiles, warps;
} variant;

static variant select_variant(const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    int64_t widest = TN_MAX(k->ne[3], v->ne[3]), n_seq = TN_MAX(step->src[TN_SRC_attention_kv_len].ne[3], 1);
    int64_t rows = tn_div_up(q->ne[1], n_seq) * (q->ne[2] / k->ne[1]);
    variant c = {.type = tn_cuda_attention_cache_name(k->dtype),
                 .dim = widest <= 64    ? 64
                        : widest <= 128 ? 128
                                        : 256};
    c.n_tiles = rows > 8 && c.dim <= 128 ? 2 : 1;
    c.warps = c.dim == 256 || (c.dim == 128 && c.n_tiles == 2) ? 8 : 12;
    return c;
}

// Bytes of shared memory: query_storage and merge_storage of the kernel.
static uint32_t shared_size(const variant *c)
{
    int32_t queries = c->n_tiles * c->dim * 32, ends = 2 * c->warps * c->n_tiles * 8 * 4;
    return (uint32_t)(queries + ends + c->warps * 8 * (c->dim + 4) * 4);
}

bool tn_cuda_attention_decode_accepts(const tn_cuda *cuda, const tn_step *step)
{
    if (!tn_cuda_attention_common(step) || !tn_view_contiguous(&step->src[TN_SRC_attention_v])) return false;
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    int64_t n_seq = step->src[TN_SRC_attention_kv_len].ne[3];
    bool quantised = tn_dtype_block_elems(k->dtype) > 1;
    variant c = select_variant(step);
    // With several sequences of which some have more queries, the queries of a prompt are most: a block for
    // each sequence and KV head would read the keys of the prompt once for every few of its queries.
    bool apart = tn_cuda_attention_is_apart(cuda, step),
         prompt = !apart && n_seq > 1 && q->ne[1] > n_seq && tn_cuda_attention_wgmma_any(cuda, step);
    bool types = c.type && k->dtype == v->dtype && (k->dtype != TN_TYPE_BF16 || cuda->compute >= 80);
    // Quantised rows are read in pairs of blocks, all of them; others in vectors of 8 elements.
    bool sizes = quantised ? k->ne[3] == c.dim && v->ne[3] == c.dim
                           : k->ne[3] <= c.dim && v->ne[3] <= c.dim && q->ne[3] % 8 == 0 &&
                                 k->ne[3] % 8 == 0 && v->ne[3] % 8 == 0;
    return types && sizes && !prompt && shared_size(&c) <= (uint32_t)cuda->max_shared &&
           k->ne[2] % KEYS == 0 && (apart || q->ne[1] <= TN_CUDA_ATTENTION_DECODE_QUERIES * n_seq) &&
           n_seq < 65536 && k->ne[1] < 65536;
}

// The number of splits with the least time: that of the waves of one block for each multiprocessor.
static int32_t count_splits(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *k = &step->src[TN_SRC_attention_k];
    int64_t pairs = step->src[TN_SRC_attention_kv_len].ne[3] * k->ne[1],
            n_tiles = step->src[TN_SRC_attention_block_table].ne[3] * k->ne[2] / KEYS;
    if (pairs > MAX_PAIRS) return 1;
    double best = 0.0;
    int32_t splits = 1;
    for (int32_t s = 1; s <= MAX_SPLITS && (s == 1 || s * MIN_TILES <= n_tiles); s++) {
        double tiles = (double)TN_MIN(n_tiles, (int64_t)TYPICAL_TILES) / (double)s,
               time = (double)tn_div_up(pairs * s, cuda->n_sms) * (BLOCK_COST + tiles);
        if (s == 1 || time < best) best = time, splits = s;
    }
    return splits;
}

size_t tn_cuda_attention_decode_scratch(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *y = &step->dst[0];
    if (tn_cuda_attention_is_token(step) || tn_cuda_attention_is_apart(cuda, step))
        return tn_cuda_attention_token_scratch(cuda, step);
    int32_t splits = count_splits(cuda, step);
    return splits == 1 ? 0 : (size_t)splits * (size_t)(y->ne[1] * y->ne[2] * (y->ne[3] + 2)) * sizeof(float);
}

static bool aligned(const tn_view *v)
{
    uintptr_t access = tn_dtype_block_elems(v->dtype) > 1 ? 4 : 16; // bytes
    return (uintptr_t)v->data % access == 0;
}

bool tn_cuda_attention_decode_writes_quantised(const tn_step *step)
{
    return aligned(&step->src[TN_SRC_attention_k]) && aligned(&step->src[TN_SRC_attention_v]);
}

tn_status tn_cuda_attention_decode_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    tn_cuda_attention_decode_args d = {.a = tn_cuda_attention_args_of(step)};
    tn_cuda_attention_args *a = &d.a;
    variant c = select_variant(step);
    if (a->n_seq == 0 || a->n_tokens == 0) return TN_OK;
    if (!aligned(&step->src[TN_SRC_attention_k]) || !aligned(&step->src[TN_SRC_attention_v]))
        return tn_cuda_attention_launch(l);
    if (tn_cuda_attention_is_token(step) || tn_cuda_attention_is_apart(l->cuda, step))
        return tn_cuda_attention_token_launch(l);
    a->n_splits = count_splits(l->cuda, step);
    a->partial = (float *)l->scratch;
    tn_cuda_attention_set_staged(l, a);
    d.early = l->early;
    char entry[64];
    snprintf(entry, sizeof entry, "tn_attention_decode_%s_%d_%d", c.type, c.dim, c.n_tiles);
    tn_cuda_grid grid = {.x = (uint32_t)a->n_splits,
                         .y = (uint32_t)a->n_kv,
                         .z = (uint32_t)a->n_seq,
                         .threads = (uint32_t)c.warps * 32,
                         .shared = shared_size(&c)};
    return tn_cuda_run(l, TN_CUDA_MODULE_attention_decode, entry, &grid, &d);
}
