// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/join.h"

#include "backends/cuda/attention/attention.h"
#include "backends/cuda/product/dense/dense.h"
#include "backends/cuda/product/experts/experts.h"
#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/product/matvec/matvec.h"
#include "backends/cuda/product/skinny/skinny.h"
#include "backends/cuda/runtime/select.h"
#include "backends/cuda/runtime/staged.h"
#include "ops/operands.h"
#include "ops/product.h"

enum { MAX_ROWS = 128, PACKED_ALIGN = 16 };

static bool is_product(const tn_step *step)
{
    return tn_product_form_get(step->op) != NULL;
}

// Whether the kernel reads staged activations as x of the skinny products, in f16, and not in int8; and
// whether the step stages its result so.
static bool reads_f16(const tn_cuda_kernel *kernel)
{
    return (kernel->flags & TN_CUDA_ROUNDS_F16) != 0;
}

static bool writes_f16(const tn_cuda *cuda, const tn_step *step)
{
    return step->op == TN_OP_attention && tn_cuda_attention_decode_writes_stages(cuda, step);
}

// Whether the kernel can stage the result of the step.
static bool stages(const tn_cuda *cuda, const tn_step *step, const tn_cuda_kernel *kernel)
{
    int32_t d = tn_cuda_staged_result(step);
    const tn_view *y = &step->dst[d];
    bool sums = step->op == TN_OP_moe_sum || step->op == TN_OP_moe_combine;
    bool norms = step->op == TN_OP_moe_route && d == TN_DST_moe_route_normed;
    bool kind = step->op == TN_OP_attention || sums || norms || is_product(step);
    if (!(kernel->flags & TN_CUDA_WRITES_QUANTISED) || !kind || !tn_view_contiguous(y)) return false;
    int64_t k = tn_cuda_staged_elems(step), n = tn_view_n_elems(y);
    if (n == 0 || y->ne[3] % TN_QUANTISED_GROUP != 0 || k > INT32_MAX / 2 || n / k > MAX_ROWS) return false;
    if (step->op == TN_OP_attention) return tn_cuda_attention_decode_writes_quantised(step);
    return !is_product(step) || tn_cuda_matvec_writes_quantised(cuda, step);
}

// --- what a pair of steps can share ----------------------------------------------------------------------

// Two steps as the backend is asked about them, with the kernels that run them.
typedef struct couple {
    const tn_cuda *cuda;
    const tn_step *maker, *reader;
    const tn_cuda_kernel *makes, *reads;
    const int32_t *from, *shared; // those of tn_step_pair
} couple;

static bool can_stage(const couple *c)
{
    int32_t d = tn_cuda_staged_result(c->maker);
    const tn_view *x = &c->reader->src[0], *y = &c->maker->dst[d];
    bool f16 = writes_f16(c->cuda, c->maker);
    if (!is_product(c->reader) || !(c->reads->flags & TN_CUDA_READS_QUANTISED) || c->from[0] != d ||
        f16 != reads_f16(c->reads))
        return false;
    bool reads =
        f16 ? tn_cuda_skinny_reads_staged(c->cuda, c->reader) : tn_cuda_matvec_reads_quantised(c->reader);
    bool same = y->dtype == x->dtype && tn_view_n_elems(y) == tn_view_n_elems(x) &&
                tn_cuda_staged_elems(c->maker) == x->ne[3];
    return same && reads && stages(c->cuda, c->maker, c->makes);
}

// rope_cache in the attention of one token.
static bool can_fold_rope(const couple *c)
{
    if (c->maker->op != TN_OP_rope_cache || c->reader->op != TN_OP_attention) return false;
    bool same = c->from[TN_SRC_attention_q] == TN_DST_rope_cache_q &&
                c->from[TN_SRC_attention_k] == TN_DST_rope_cache_cache_k &&
                c->from[TN_SRC_attention_v] == TN_DST_rope_cache_cache_v;
    return same && (c->reads->flags & TN_CUDA_FUSES_ROPE) &&
           tn_cuda_attention_decode_writes_quantised(c->reader) &&
           tn_cuda_attention_token_fuses_rope(c->reader, c->maker);
}

// The last product of experts in the sum of its results.
static bool can_fold_experts(const couple *c)
{
    return (c->reads->flags & TN_CUDA_FUSES_PRODUCT) && (c->makes->flags & TN_CUDA_READS_QUANTISED) &&
           !reads_f16(c->makes) && c->from[0] == 0 && tn_cuda_matvec_fuses_sum(c->cuda, c->maker, c->reader);
}

static bool can_defer_route(const couple *c)
{
    int32_t ids = tn_product_sources_get(c->reader->op, c->reader->params).ids;
    return (c->makes->flags & TN_CUDA_DEFERS_ROUTE) && (c->reads->flags & TN_CUDA_READS_QUANTISED) &&
           !reads_f16(c->reads) && ids >= 0 && c->from[ids] == 0 &&
           tn_cuda_matvec_runs_route(c->cuda, c->reader, c->maker);
}

// Queries in the attention that reads them, which rounds them to the type of its cache.
static bool can_pack_queries(const couple *c)
{
    const tn_view *q = &c->reader->src[TN_SRC_attention_q], *y = &c->maker->dst[TN_DST_rope_cache_q];
    return c->from[TN_SRC_attention_q] == TN_DST_rope_cache_q &&
           c->from[TN_SRC_attention_k] == TN_DST_rope_cache_cache_k && tn_view_same_shape(q, y) &&
           tn_cuda_rope_cache_packs(c->maker) && tn_cuda_attention_wgmma_packs(c->reader);
}

// The result of attention in a product that rounds x to bf16, or to f16: the heads of a token are a row of x.
// Means of values of a cache in f16 are within its range, and no finer than its values are they needed.
static bool can_pack_heads(const couple *c)
{
    const tn_view *x = &c->reader->src[0], *y = &c->maker->dst[0];
    bool f16 = (c->reads->flags & TN_CUDA_ROUNDS_F16) && tn_cuda_gemm_blocks_packs(c->cuda, c->reader) &&
               c->maker->src[TN_SRC_attention_v].dtype == TN_TYPE_F16;
    return (f16 || (c->reads->flags & TN_CUDA_ROUNDS_BF16)) && c->from[0] == 0 && tn_view_contiguous(x) &&
           x->ne[3] == y->ne[2] * y->ne[3] && tn_view_n_elems(x) == tn_view_n_elems(y) &&
           !tn_product_get(c->reader).norm && tn_cuda_attention_wgmma_packs(c->maker);
}

// Both round to bf16, or to e4m3, or to f16 in kernels that leave such rows and read them, or keep what
// rounding to bf16 leaves.
static bool round_alike(const couple *c)
{
    enum { ROUNDS = TN_CUDA_ROUNDS_BF16 | TN_CUDA_ROUNDS_F16 | TN_CUDA_ROUNDS_E4M3 };
    int32_t rounds = c->makes->flags & ROUNDS;
    if (rounds != (c->reads->flags & ROUNDS)) return false;
    if (rounds == 0) return tn_cuda_dense_packs(c->cuda, c->maker) && tn_cuda_dense_packs(c->cuda, c->reader);
    if (rounds == TN_CUDA_ROUNDS_E4M3) return tn_cuda_gemm_writes_e4m3(c->cuda, c->maker);
    return rounds == TN_CUDA_ROUNDS_BF16 ||
           (tn_cuda_gemm_blocks_packs(c->cuda, c->maker) && tn_cuda_gemm_blocks_packs(c->cuda, c->reader));
}

// A gated pair of experts in the product with the same ids.
static bool can_pack_experts(const couple *c)
{
    const tn_view *x = &c->reader->src[0], *y = &c->maker->dst[0];
    if (c->reader->op != TN_OP_matmul_id || c->makes->launch != tn_cuda_experts_launch ||
        c->reads->launch != tn_cuda_experts_launch)
        return false;
    int32_t ids = tn_product_sources_get(c->reader->op, c->reader->params).ids;
    bool same_ids = c->shared[ids] >= 0 &&
                    tn_product_get(c->reader).n_experts == tn_product_get(c->maker).n_experts &&
                    c->shared[ids] == tn_product_sources_get(c->maker->op, c->maker->params).ids;
    return same_ids && c->from[0] == 0 && tn_view_n_elems(x) == tn_view_n_elems(y) && x->ne[3] == y->ne[3] &&
           tn_view_contiguous(x) && tn_view_contiguous(y) && tn_cuda_experts_leaves_next(c->cuda, c->maker);
}

// A gated pair in the product that reads it.
static bool can_pack(const couple *c)
{
    const tn_view *x = &c->reader->src[0], *y = &c->maker->dst[0];
    if (!(c->makes->flags & TN_CUDA_WRITES_PACKED16) || !(c->reads->flags & TN_CUDA_READS_PACKED16))
        return false;
    if (c->maker->op == TN_OP_rope_cache) return c->reader->op == TN_OP_attention && can_pack_queries(c);
    if (c->maker->op == TN_OP_attention) return is_product(c->reader) && can_pack_heads(c);
    if (c->maker->op == TN_OP_matmul_id_glu) return can_pack_experts(c);
    if (c->maker->op != TN_OP_matmul_glu || !round_alike(c)) return false;
    bool same = c->from[0] == 0 && x->ne[3] == y->ne[3] && tn_view_n_rows(x) == tn_view_n_rows(y) &&
                tn_view_contiguous(x) && tn_view_contiguous(y);
    return same && !tn_product_get(c->reader).norm && x->ne[3] % 8 == 0 &&
           (uintptr_t)x->data % PACKED_ALIGN == 0;
}

uint32_t tn_cuda_joins(const tn_device *device, const tn_step_pair *pair)
{
    const tn_cuda *cuda = tn_cuda_of(device);
    const tn_step maker = tn_cuda_step_nowhere(pair->maker), reader = tn_cuda_step_nowhere(pair->reader);
    couple c = {.cuda = cuda,
                .maker = &maker,
                .reader = &reader,
                .makes = tn_cuda_kernel_find(cuda, pair->maker),
                .reads = tn_cuda_kernel_find(cuda, pair->reader),
                .from = pair->from,
                .shared = pair->shared};
    if (!c.makes || !c.reads) return 0;
    return (can_stage(&c) ? TN_JOIN_STAGE : 0u) |
           (can_fold_rope(&c) || can_fold_experts(&c) ? TN_JOIN_FOLD : 0u) |
           (can_defer_route(&c) ? TN_JOIN_DEFER : 0u) | (can_pack(&c) ? TN_JOIN_PACK : 0u);
}

size_t tn_cuda_join_staged_size(const tn_device *device, const tn_step *step)
{
    bool f16 = writes_f16(tn_cuda_of(device), step);
    return f16 ? tn_cuda_skinny_staged_size(step->dst[0].ne[1], tn_cuda_staged_elems(step))
               : tn_cuda_staged_size(device, step);
}

// --- what was decided --------------------------------------------------------------------------------------

bool tn_cuda_join_holds(const tn_cuda *cuda, const tn_step *step)
{
    const tn_step_join *j = &step->join;
    const tn_step *before = step - 1;
    bool folds = (j->previous & TN_JOIN_FOLD) != 0, holds = true;
    if (step->op == TN_OP_attention && (folds || j->staged_y.ne[3] > 0))
        holds = tn_cuda_attention_decode_writes_quantised(step);
    else if (folds)
        holds = tn_cuda_matvec_fuses_sum(cuda, before, step);
    if (is_product(step) && j->staged_y.ne[3] > 0)
        holds = holds && tn_cuda_matvec_writes_quantised(cuda, step);
    if (j->previous & TN_JOIN_DEFER) holds = holds && tn_cuda_matvec_runs_route(cuda, step, before);
    bool packs = ((j->previous | j->next) & TN_JOIN_PACK) != 0;
    if (packs && step->op == TN_OP_attention)
        holds = holds && tn_cuda_attention_wgmma_packs(step);
    else if (packs && step->op == TN_OP_rope_cache)
        holds = holds && tn_cuda_rope_cache_packs(step);
    else if (j->previous & TN_JOIN_PACK)
        holds = holds && (uintptr_t)step->src[0].data % PACKED_ALIGN == 0;
    tn_product p = is_product(step) ? tn_product_get(step) : (tn_product){0};
    if (packs && is_product(step) && tn_cuda_dense_packs(cuda, step)) {
        holds = holds && tn_cuda_dense_aligned(&p);
    } else if (is_product(step) && (j->next & TN_JOIN_PACK)) {
        bool f16 = tn_cuda_gemm_mode(cuda, &p, step->precision) == TN_GEMM_F16;
        bool leaves = p.ids ? tn_cuda_experts_leaves_next(cuda, step)
                            : !f16 || tn_cuda_gemm_blocks_packs(cuda, step);
        holds = holds && leaves;
    }
    return holds;
}
