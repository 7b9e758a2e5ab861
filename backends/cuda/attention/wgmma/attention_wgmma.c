// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for more than 8 queries per sequence on compute capability 9.0 (attention_wgmma.cuh): caches of
// one type whose pages have a multiple of 64 rows.
#include "backends/cuda/attention/attention.h"
#include "backends/cuda/attention/wgmma/attention_wgmma_args.h"

#include <stdio.h>

enum { ROWS = 128, GROUP = 128, PAGE = 64 }; // as in the kernel

// Parts of keys that a multiprocessor has at most; more would cost more than they save.
enum { PARTS = 3 };

// What a part costs besides its own tiles of keys, in such tiles: 2 to 15 differ by a tenth at most.
static const float part_cost = 6.0f;

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

// Keys of a tile, as in the kernel.
static int32_t count_keys(const tn_step *step)
{
    return step->src[TN_SRC_attention_q].ne[3] == 256 ? 64 : 128;
}

// Whether row tiles fill the device, so that their keys need not be cut. One sequence of 512 queries does,
// where 32 query heads share 8 KV heads: 128 units of work for 132 multiprocessors.
static bool fills(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q];
    return q->ne[1] * q->ne[2] / ROWS * 10 >= (int64_t)cuda->n_sms * 9;
}

// Parts of keys of all row tiles at most.
static int32_t count_slots(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *k = &step->src[TN_SRC_attention_k];
    int64_t keys = step->src[TN_SRC_attention_block_table].ne[3] * k->ne[2],
            parts = keys / (count_keys(step) * TN_CUDA_ATTENTION_WGMMA_PART),
            units = tn_cuda_attention_tiles(step, ROWS) * k->ne[1];
    int64_t most = TN_MIN(cuda->n_sms * PARTS, (int32_t)TN_CUDA_ATTENTION_WGMMA_SLOTS);
    return parts < 2 || fills(cuda, step) ? 0 : (int32_t)TN_MIN(most, units * parts);
}

// Bytes for the results of parts.
static size_t parts_size(const tn_cuda *cuda, const tn_step *step)
{
    size_t lane = (size_t)(step->src[TN_SRC_attention_q].ne[3] / 2 + 4) * sizeof(float);
    return (size_t)count_slots(cuda, step) * 2 * GROUP * lane;
}

size_t tn_cuda_attention_wgmma_scratch(const tn_cuda *cuda, const tn_step *step)
{
    bool mixed = tn_cuda_attention_is_mixed(cuda, step);
    return parts_size(cuda, step) + (mixed ? tn_cuda_attention_token_scratch(cuda, step) : 0);
}

tn_status tn_cuda_attention_wgmma_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    const tn_view *k = &step->src[TN_SRC_attention_k], *v = &step->src[TN_SRC_attention_v];
    tn_cuda_attention_wgmma_args args = {
        .mapped.a = tn_cuda_attention_args_of(step), .early = l->early, .part_cost = part_cost};
    tn_cuda_attention_mapped *m = &args.mapped;
    if (m->a.n_seq == 0 || m->a.n_tokens == 0) return TN_OK;
    const struct variant *variant = find_variant(k->dtype);
    if (!is_aligned(step) || !variant) return tn_cuda_attention_launch(l);
    m->a.n_slots = count_slots(l->cuda, step);
    m->a.partial = (float *)l->scratch;
    if (l->reads_packed16) m->a.q_token /= 2, m->a.q_head /= 2, m->a.q_elem = 2;
    if (l->writes_packed16) {
        m->a.y_token /= 2, m->a.y_head /= 2;
        m->a.y_packed = l->packs_f16 ? TN_CUDA_PACKED_F16_EVEN_FIRST : TN_CUDA_PACKED_BF16;
    }
    bool blocks = variant->warpgroups > 3;
    tn_status status = blocks ? TN_OK : tn_cuda_attention_map(l, k, m->k);
    if (status == TN_OK && !blocks) status = tn_cuda_attention_map(l, v, m->v);
    if (status != TN_OK) return status;
    int32_t d = m->a.k.dim, keys = count_keys(step);
    int64_t units = m->a.n_slots > 0 ? l->cuda->n_sms : tn_cuda_attention_tiles(step, ROWS) * m->a.n_kv;
    char entry[64];
    snprintf(entry, sizeof entry, "tn_attention_wgmma_%d_%s%s", d, variant->name,
             fills(l->cuda, step) ? "" : "_cut");
    // Stages of q, two of k and of v, pages of blocks or else staged results, less than 1024 bytes of tiles
    // and barriers.
    int32_t q_stages = d == 256 ? 1 : 2,
            rest = blocks ? 4 * PAGE * (int32_t)tn_dtype_row_size(k->dtype, d) : ROWS * (64 + 4) * 4;
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(l->cuda->n_sms, units),
                         .y = 1,
                         .z = 1,
                         .threads = (uint32_t)(variant->warpgroups * GROUP),
                         .shared = (uint32_t)((q_stages * ROWS + 4 * keys) * d * 2 + rest + 1024)};
    if (tn_cuda_attention_is_mixed(l->cuda, step)) m->a.which = TN_CUDA_ATTENTION_PIECES;
    status = tn_cuda_run(l, variant->module, entry, &grid, &args);
    if (status != TN_OK || m->a.which == TN_CUDA_ATTENTION_ALL) return status;
    return tn_cuda_attention_single_launch(l, m->a, l->scratch + parts_size(l->cuda, step));
}
