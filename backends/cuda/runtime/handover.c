// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/handover.h"

#include "backends/cuda/attention/attention.h"
#include "backends/cuda/product/gemm/gemm.h"
#include "backends/cuda/product/matvec/matvec.h"

enum { ALIGN = 256, MAX_ROWS = 64 };

// The result that a step can hand on: of a router the rows that went through its norm, else the first.
static const tn_view *handed(const tn_step *step)
{
    return &step->dst[step->op == TN_OP_moe_route && step->n_dst > 2 ? TN_DST_moe_route_normed : 0];
}

// Its rows as a product reads them: tokens and, of attention, all heads in one.
static int64_t row_elems(const tn_step *step)
{
    const tn_view *y = handed(step);
    return step->op == TN_OP_attention ? y->ne[2] * y->ne[3] : y->ne[3];
}

static bool is_product(int32_t op)
{
    return tn_product_form_get(op) != NULL;
}

// Whether the step could hand on its rows with one kernel or another.
static bool may_make(const tn_step *step)
{
    const tn_view *y = handed(step);
    bool sums = step->op == TN_OP_moe_sum || step->op == TN_OP_moe_combine;
    bool norms = step->op == TN_OP_moe_route && y == &step->dst[TN_DST_moe_route_normed];
    if (step->op != TN_OP_attention && !sums && !norms && !is_product(step->op)) return false;
    int64_t k = row_elems(step), n = tn_view_n_elems(y);
    return n > 0 && y->ne[3] % TN_QUANTISED_GROUP == 0 && k <= INT32_MAX / 2 && n / k <= MAX_ROWS;
}

static size_t rows_size(const tn_step *step)
{
    int64_t k = row_elems(step), n = tn_view_n_elems(handed(step)) / k;
    return ((size_t)n * (size_t)TN_QUANTISED_ROW_SIZE(k) + ALIGN - 1) / ALIGN * ALIGN;
}

size_t tn_cuda_handover_size(const tn_program *program)
{
    size_t size = 0;
    for (int32_t i = 0; i < program->n_steps; i++)
        if (may_make(&program->steps[i])) size += rows_size(&program->steps[i]);
    return size;
}

static bool makes(const tn_step *step, const tn_cuda_kernel *kernel)
{
    if (!(kernel->flags & TN_CUDA_WRITES_QUANTISED) || !may_make(step) || !tn_view_contiguous(handed(step)))
        return false;
    if (step->op == TN_OP_attention) return tn_cuda_attention_decode_writes_quantised(step);
    return !is_product(step->op) || tn_cuda_matvec_writes_quantised(step);
}

// First byte, and the one after the last.
static void extent(const tn_view *v, uintptr_t *from, uintptr_t *to)
{
    int64_t last = 0;
    for (int32_t d = 0; d < 4; d++) last += (v->ne[d] - 1) * v->nb[d];
    *from = (uintptr_t)v->data, *to = *from + (uintptr_t)(last + v->nb[3]);
}

// The last step before `i` that writes anything of x; -1: none.
static int32_t writer_of(const tn_program *program, int32_t i, const tn_view *x)
{
    uintptr_t from, to, first, end;
    extent(x, &from, &to);
    for (int32_t j = i - 1; j >= 0; j--) {
        const tn_step *step = &program->steps[j];
        for (int32_t d = 0; d < step->n_dst; d++) {
            extent(&step->dst[d], &first, &end);
            if (tn_view_n_elems(&step->dst[d]) > 0 && first < to && from < end) return j;
        }
    }
    return -1;
}

// Nobody but the next step reads dst[d] of step `i`.
static bool is_private(const tn_program *program, int32_t i, int32_t d)
{
    return program->only_next && (program->only_next[i] >> d & 1) != 0;
}

// No step writes integers that step `i` reads.
static bool integers_given(const tn_program *program, int32_t i)
{
    const tn_step *step = &program->steps[i];
    for (int32_t k = 0; k < step->n_src; k++)
        if (step->src[k].dtype == TN_TYPE_I32 && writer_of(program, i, &step->src[k]) >= 0) return false;
    return true;
}

// Nothing before step `i` writes the caches that step i + 1 reads.
static bool caches_given(const tn_program *program, int32_t i)
{
    const tn_step *step = &program->steps[i + 1];
    return writer_of(program, i, &step->src[TN_SRC_attention_k]) < 0 &&
           writer_of(program, i, &step->src[TN_SRC_attention_v]) < 0;
}

static bool overlap(const tn_view *u, const tn_view *v)
{
    uintptr_t from, to, first, end;
    extent(u, &from, &to);
    extent(v, &first, &end);
    return first < to && from < end;
}

// Step `next`, attention of one token, does what `rope` before it does, though its result may lie in memory
// of what that reads. Heads are at work side by side: the result of one may only be where its own query was,
// which all that need it have read by then.
static bool outlives(const tn_step *rope, const tn_step *next)
{
    enum { CACHES = 2, Q = 2 };
    const tn_view *q = &rope->src[Q], *y = &next->dst[0];
    bool in_place = q->data == y->data && tn_view_contiguous(q) && tn_view_contiguous(y) &&
                    q->ne[2] == y->ne[2] && q->ne[3] == y->ne[3];
    for (int32_t i = CACHES; i < rope->n_src; i++)
        if (tn_view_n_elems(&rope->src[i]) > 0 && overlap(&rope->src[i], y) && !(i == Q && in_place))
            return false;
    return true;
}

static void plan_rope(const tn_program *program, const tn_cuda_kernel *const *kernels,
                      tn_cuda_handover *handover)
{
    for (int32_t i = 0; i + 1 < program->n_steps; i++) {
        const tn_step *rope = &program->steps[i], *next = &program->steps[i + 1];
        if (rope->op != TN_OP_rope_cache || next->op != TN_OP_attention ||
            !(kernels[i + 1]->flags & TN_CUDA_FUSES_ROPE))
            continue;
        if (!tn_cuda_attention_decode_writes_quantised(next) ||
            !tn_cuda_attention_token_fuses_rope(next, rope) || !is_private(program, i, 2) ||
            !outlives(rope, next))
            continue;
        handover[i].skipped = true;
        handover[i + 1].rope = true;
    }
}

// Whether a weight of a product comes from a step: a matrix made on the way.
static bool weights_computed(const tn_program *program, int32_t i)
{
    if (!is_product(program->steps[i].op)) return false;
    tn_product p = tn_product_get(&program->steps[i]);
    bool computed = false;
    for (int32_t k = 0; k < p.n_weights; k++) computed = computed || writer_of(program, i, p.w[k]) >= 0;
    return computed;
}

// Step `i` sums what the experts of the step before give, and can do that too. Memory of what that reads may
// already be that of the sum.
static bool takes_product(const tn_cuda *cuda, const tn_program *program, int32_t i,
                          const tn_cuda_kernel *const *kernels, const tn_cuda_handover *handover)
{
    if (i == 0 || !(kernels[i]->flags & TN_CUDA_FUSES_PRODUCT) ||
        !(kernels[i - 1]->flags & TN_CUDA_READS_QUANTISED))
        return false;
    const tn_step *sum = &program->steps[i], *product = sum - 1;
    if (!tn_cuda_matvec_fuses_sum(cuda, product, sum)) return false;
    tn_product p = tn_product_get(product);
    if (!handover[i - 1].in.rows && overlap(p.x, &sum->dst[0])) return false;
    return !overlap(p.ids, &sum->dst[0]) && is_private(program, i - 1, 0);
}

static void plan_product(const tn_cuda *cuda, const tn_program *program, int32_t i,
                         const tn_cuda_kernel *const *kernels, tn_cuda_handover *handover)
{
    if (!takes_product(cuda, program, i, kernels, handover)) return;
    handover[i].product = true;
    handover[i].in = handover[i - 1].in;
    handover[i - 1].skipped = true;
}

static void plan_choice(const tn_cuda *cuda, const tn_program *program, int32_t i,
                        const tn_cuda_kernel *const *kernels, tn_cuda_handover *handover)
{
    if (i == 0 || !(kernels[i - 1]->flags & TN_CUDA_DEFERS_ROUTE) ||
        !(kernels[i]->flags & TN_CUDA_READS_QUANTISED))
        return;
    const tn_step *step = &program->steps[i], *route = step - 1;
    if (!tn_cuda_matvec_runs_route(cuda, step, route)) return;
    for (int32_t d = 0; d < 2; d++)
        if (overlap(&route->dst[d], &step->dst[0])) return; // nobody else reads them
    handover[i - 1].defers_route = handover[i].routes = true;
}

// Step `i` multiplies what the step before rounds for it, in the memory of that step's result.
static bool reads_packed16(const tn_program *program, int32_t i, const tn_cuda_kernel *const *kernels)
{
    if (i == 0 || !(kernels[i - 1]->flags & TN_CUDA_WRITES_PACKED16) || !(kernels[i]->flags & TN_CUDA_READS_PACKED16))
        return false;
    const tn_step *reader = &program->steps[i], *maker = reader - 1;
    const tn_view *x = &reader->src[0], *y = &maker->dst[0];
    bool same = x->data == y->data && x->ne[3] == y->ne[3] && tn_view_n_rows(x) == tn_view_n_rows(y) &&
                tn_view_contiguous(x) && tn_view_contiguous(y);
    if (!same || tn_product_get(reader).norm || x->ne[3] % 8 != 0 || (uintptr_t)x->data % 16 != 0) return false;
    for (int32_t d = 0; d < reader->n_dst; d++)
        if (overlap(&reader->dst[d], x)) return false;
    return is_private(program, i - 1, 0);
}

void tn_cuda_handover_plan(const tn_cuda *cuda, const tn_program *program,
                           const tn_cuda_kernel *const *kernels, char *memory, tn_cuda_handover *handover)
{
    for (int32_t i = 0; i < program->n_steps && memory; i++) {
        const tn_step *reader = &program->steps[i];
        plan_product(cuda, program, i, kernels, handover);
        plan_choice(cuda, program, i, kernels, handover);
        if (reads_packed16(program, i, kernels)) handover[i - 1].writes_packed16 = handover[i].reads_packed16 = true;
        if (!is_product(reader->op) || !(kernels[i]->flags & TN_CUDA_READS_QUANTISED) ||
            !tn_cuda_matvec_reads_quantised(reader))
            continue;
        const tn_view *x = &reader->src[0], *norm = tn_cuda_matvec_norm(reader);
        int32_t j = writer_of(program, i, x);
        if (j < 0) continue;
        const tn_step *maker = &program->steps[j];
        const tn_view *y = handed(maker);
        bool same = y->data == x->data && y->dtype == x->dtype && tn_view_n_elems(y) == tn_view_n_elems(x);
        if (!same || row_elems(maker) != x->ne[3] || !makes(maker, kernels[j])) continue;
        tn_cuda_quantised r = {.rows = memory,
                             .row_size = TN_QUANTISED_ROW_SIZE(x->ne[3]),
                             .norm = norm ? norm->data : NULL,
                             .k = (int32_t)x->ne[3]};
        // A second reader can share what is there; another norm would be another rounding.
        if (!handover[j].out.rows) {
            handover[j].out = r;
            memory += rows_size(maker);
        } else if (handover[j].out.norm != r.norm) {
            continue;
        }
        handover[i].in = handover[j].out;
    }
    plan_rope(program, kernels, handover);
    for (int32_t i = 0; i < program->n_steps; i++) handover[i].computed = weights_computed(program, i);
    for (int32_t i = 0; i < program->n_steps; i++)
        if (program->steps[i].op == TN_OP_attention)
            handover[i].early =
                integers_given(program, i) &&
                (!handover[i].rope || (integers_given(program, i - 1) && caches_given(program, i - 1)));
}
