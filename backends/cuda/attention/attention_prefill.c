// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for more than 8 queries per sequence on tensor cores (attention_prefill.cu).
#include "backends/cuda/attention/attention.h"

#include <stdio.h>

enum { THREADS = 128, KEYS = 64 }; // as in the kernel

typedef struct variant {
    int32_t dim, rows; // head sizes up to `dim`; rows of a tile
    bool quants;       // keys or values are
} variant;

static variant select_variant(const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *y = &step->dst[0];
    int64_t widest = TN_MAX(q->ne[3], y->ne[3]);
    variant c = {.dim = widest <= 64    ? 64
                        : widest <= 128 ? 128
                                        : 256,
                 .quants = tn_dtype_block_elems(step->src[TN_SRC_attention_k].dtype) > 1 ||
                           tn_dtype_block_elems(step->src[TN_SRC_attention_v].dtype) > 1};
    c.rows = c.dim == 256 ? 64 : 128;
    return c;
}

// q, k, v tiles; scales of keys and of values; rows of the caches.
static uint32_t shared_size(const variant *c)
{
    return (uint32_t)((c->rows + 2 * KEYS) * c->dim * 2 + KEYS * c->dim / 32 * 6 + 2 * KEYS * 8);
}

bool tn_cuda_attention_prefill_accepts(const tn_cuda *cuda, const tn_step *step)
{
    if (!tn_cuda_attention_common(step) || !tn_view_contiguous(&step->src[TN_SRC_attention_v])) return false;
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    variant c = select_variant(step);
    bool sizes =
        q->ne[3] <= 256 && v->ne[3] <= 256 && q->ne[3] % 8 == 0 && k->ne[3] % 8 == 0 && v->ne[3] % 8 == 0;
    // With fewer queries, and heads that the decode kernel does not accept, the general kernel has more
    // blocks.
    bool many = q->ne[1] > TN_CUDA_ATTENTION_DECODE_QUERIES * step->src[TN_SRC_attention_kv_len].ne[3];
    return cuda->compute >= 80 && sizes && many && tn_cuda_attention_tiles(step, c.rows) < 65536 &&
           shared_size(&c) <= (uint32_t)cuda->max_shared;
}

static bool aligned(const tn_view *v)
{
    uintptr_t access = tn_dtype_block_elems(v->dtype) > 1 ? 2 : 16; // bytes
    return (uintptr_t)v->data % access == 0;
}

tn_status tn_cuda_attention_prefill_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    tn_cuda_attention_args a = tn_cuda_attention_args_of(step);
    variant c = select_variant(step);
    if (a.n_seq == 0 || a.n_tokens == 0) return TN_OK;
    bool pairs = ((uintptr_t)a.y | (uintptr_t)a.y_token | (uintptr_t)a.y_head) % 8 == 0;
    if (!aligned(&step->src[TN_SRC_attention_k]) || !aligned(&step->src[TN_SRC_attention_v]) || !pairs)
        return tn_cuda_attention_launch(l);
    char entry[64];
    snprintf(entry, sizeof entry, "tn_attention_prefill_%d_%s", c.dim, c.quants ? "quants" : "plain");
    tn_cuda_grid grid = {.x = (uint32_t)a.n_kv,
                         .y = (uint32_t)tn_cuda_attention_tiles(step, c.rows),
                         .z = 1,
                         .threads = THREADS,
                         .shared = shared_size(&c)};
    return tn_cuda_run(l, TN_CUDA_MODULE_attention_prefill, entry, &grid, &a);
}
