// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for more than 8 queries per sequence on compute capability 9.0 (attention_wgmma.cuh): caches of
// one type whose pages have a multiple of 64 rows.
#include "backends/cuda/attention/attention.h"
#include "backends/cuda/attention/wgmma/attention_wgmma_args.h"

#include <stdio.h>

enum { ROWS = 128, GROUP = 128, PAGE = 64 }; // as in the kernel

// What the kernels differ in. Those of block types have a fourth warpgroup, which expands pages.
static const struct variant {
    tn_dtype type;
    const char *name;
    int32_t module, warpgroups;
} variants[] = {
    {TN_TYPE_F16, "f16", TN_CUDA_MODULE_attention_wgmma, 3},
    {TN_TYPE_BF16, "bf16", TN_CUDA_MODULE_attention_wgmma_bf16, 3},
    {TN_TYPE_Q8_0, "q8_0", TN_CUDA_MODULE_attention_wgmma_quants, 4},
    {TN_TYPE_Q4_0, "q4_0", TN_CUDA_MODULE_attention_wgmma_quants, 4},
};

static const struct variant *find_variant(tn_dtype type)
{
    for (size_t i = 0; i < TN_COUNT(variants); i++)
        if (variants[i].type == type) return &variants[i];
    return NULL;
}

static bool accepts(const tn_cuda *cuda, const tn_step *step)
{
    if (cuda->compute != 90 || !tn_cuda_attention_common(step) ||
        !tn_view_contiguous(&step->src[TN_SRC_attention_v]))
        return false;
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    int64_t d = q->ne[3];
    bool sizes = (d == 64 || d == 128 || d == 256) && k->ne[3] == d && v->ne[3] == d && k->ne[2] % PAGE == 0;
    return sizes && k->dtype == v->dtype && tn_view_n_rows(k) < INT32_MAX &&
           tn_cuda_attention_tiles(step, ROWS) * k->ne[1] < INT32_MAX;
}

bool tn_cuda_attention_wgmma_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step) && step->src[TN_SRC_attention_k].dtype == TN_TYPE_F16;
}

bool tn_cuda_attention_wgmma_bf16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step) && step->src[TN_SRC_attention_k].dtype == TN_TYPE_BF16;
}

bool tn_cuda_attention_wgmma_quants_accepts(const tn_cuda *cuda, const tn_step *step)
{
    tn_dtype type = step->src[TN_SRC_attention_k].dtype;
    bool narrow = step->src[TN_SRC_attention_q].ne[3] <= 128; // registers of four warpgroups
    return accepts(cuda, step) && narrow && tn_dtype_block_elems(type) > 1 && find_variant(type);
}

bool tn_cuda_attention_wgmma_any(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_attention_wgmma_accepts(cuda, step) || tn_cuda_attention_wgmma_bf16_accepts(cuda, step) ||
           tn_cuda_attention_wgmma_quants_accepts(cuda, step);
}

// Operands are aligned as the kernels need them.
static bool is_aligned(const tn_step *step)
{
    const tn_view *k = &step->src[TN_SRC_attention_k], *v = &step->src[TN_SRC_attention_v],
                  *y = &step->dst[0];
    return ((uintptr_t)k->data | (uintptr_t)v->data) % 16 == 0 &&
           ((uintptr_t)y->data | (uintptr_t)y->nb[1] | (uintptr_t)y->nb[2]) % 8 == 0;
}

bool tn_cuda_attention_wgmma_packs(const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *y = &step->dst[0];
    return is_aligned(step) && tn_view_contiguous(q) && tn_view_contiguous(y) &&
           ((uintptr_t)q->data | (uintptr_t)y->data) % 16 == 0;
}

tn_status tn_cuda_attention_wgmma_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    const tn_view *k = &step->src[TN_SRC_attention_k], *v = &step->src[TN_SRC_attention_v];
    tn_cuda_attention_mapped m = {.a = tn_cuda_attention_args_of(step)};
    if (m.a.n_seq == 0 || m.a.n_tokens == 0) return TN_OK;
    const struct variant *variant = find_variant(k->dtype);
    if (!is_aligned(step) || !variant) return tn_cuda_attention_launch(l);
    if (l->reads_packed16) m.a.q_token /= 2, m.a.q_head /= 2, m.a.q_elem = 2;
    if (l->writes_packed16) {
        m.a.y_token /= 2, m.a.y_head /= 2;
        m.a.y_packed = l->packs_f16 ? TN_CUDA_PACKED_F16_EVEN_FIRST : TN_CUDA_PACKED_BF16;
    }
    bool blocks = variant->warpgroups > 3;
    tn_status status = blocks ? TN_OK : tn_cuda_attention_map(l, k, m.k);
    if (status == TN_OK && !blocks) status = tn_cuda_attention_map(l, v, m.v);
    if (status != TN_OK) return status;
    int32_t d = m.a.k.dim, keys = d == 256 ? 64 : 128;
    char entry[64];
    snprintf(entry, sizeof entry, "tn_attention_wgmma_%d_%s", d, variant->name);
    // Stages of q, two of k and of v, pages of blocks or else staged results, less than 1024 bytes of tiles
    // and barriers.
    int32_t q_stages = d == 256 ? 1 : 2,
            rest = blocks ? 4 * PAGE * (int32_t)tn_dtype_row_size(k->dtype, d) : ROWS * (64 + 4) * 4;
    tn_cuda_grid grid = {.x =
                             (uint32_t)TN_MIN(l->cuda->n_sms, tn_cuda_attention_tiles(step, ROWS) * m.a.n_kv),
                         .y = 1,
                         .z = 1,
                         .threads = (uint32_t)(variant->warpgroups * GROUP),
                         .shared = (uint32_t)((q_stages * ROWS + 4 * keys) * d * 2 + rest + 1024)};
    return tn_cuda_run(l, variant->module, entry, &grid, &m);
}
