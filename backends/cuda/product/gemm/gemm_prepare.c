// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the matmuls on tensor cores share (gemm.c, gemm_id.c, cublas.c, ../skinny/skinny.c): which operands
// they can address, in which mode a product runs, and the kernels that write x and weights as rows of
// packed16.
#include "backends/cuda/product/gemm/gemm.h"

#include "backends/cuda/runtime/derived.h"
#include "backends/cuda/runtime/staged.h"
#include "ops/quant.h"

#include <stdio.h>

enum {
    MIN_ROWS = 9, // product/matvec/matvec.c has kernels for up to 8
    PREPARE_THREADS = 256,
    // Blocks of the kernels below for each multiprocessor at most; each then runs through several rows.
    PREPARE_BLOCKS = 64,
    ALIGN = 256, // of scales behind rows, bytes
};

// --- operands ----------------------------------------------------------------------------------------

int32_t tn_cuda_gemm_act(const tn_product *p)
{
    return p->glu ? p->glu->act : p->act;
}

bool tn_cuda_gemm_act_known(int32_t act)
{
    return act == TN_UNARY_NONE || (act >= TN_UNARY_SILU && act <= TN_UNARY_SIGMOID);
}

bool tn_cuda_gemm_type_known(tn_dtype type)
{
    bool integer = type >= TN_TYPE_I8 && type <= TN_TYPE_I64;
    return tn_quant_info_get(type)->to_f32 && !integer && type != TN_TYPE_F64;
}

bool tn_cuda_weights_are(const tn_product *p, tn_dtype type)
{
    for (int32_t i = 0; i < p->n_weights; i++)
        if (p->w[i]->dtype != type) return false;
    return true;
}

bool tn_cuda_weights_all(const tn_product *p, bool (*is)(tn_dtype type))
{
    for (int32_t i = 0; i < p->n_weights; i++)
        if (!is(p->w[i]->dtype)) return false;
    return true;
}

int64_t tn_cuda_row_stride(const tn_view *v)
{
    int64_t stride = v->ne[2] > 1 ? v->nb[2] : v->ne[1] > 1 ? v->nb[1] : v->ne[0] > 1 ? v->nb[0] : v->nb[2];
    bool one = (v->ne[1] == 1 || v->nb[1] == stride * v->ne[2]) &&
               (v->ne[0] == 1 || v->nb[0] == stride * v->ne[2] * v->ne[1]);
    return one && stride % (int64_t)sizeof(float) == 0 ? stride : 0;
}

static bool f32_rows(const tn_view *v)
{
    return !v || (v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v));
}

static bool weight_fits(const tn_product *p, int32_t i)
{
    const tn_view *w = p->w[i];
    return tn_cuda_gemm_type_known(w->dtype) && w->ne[2] > 0 && w->ne[2] <= INT32_MAX / 2 &&
           f32_rows(p->bias[i]);
}

bool tn_cuda_gemm_operands_fit(const tn_cuda *cuda, const tn_product *p)
{
    if (cuda->compute < 75 || p->n_weights == 0 || p->ids || p->m > INT32_MAX / 2) return false;
    if (p->k == 0 || p->k > INT32_MAX / 4 || !tn_cuda_gemm_act_known(tn_cuda_gemm_act(p))) return false;
    if (!f32_rows(p->x) || !f32_rows(p->norm) || !f32_rows(p->residual)) return false;
    if (p->residual && tn_cuda_row_stride(p->residual) == 0) return false;
    for (int32_t i = 0; i < p->n_weights; i++)
        if (!weight_fits(p, i)) return false;
    for (int32_t i = 0; i < p->n_results; i++)
        if (p->y[i]->dtype != TN_TYPE_F32 || !tn_view_contiguous(p->y[i])) return false;
    return true;
}

bool tn_cuda_gemm_fits(const tn_cuda *cuda, const tn_product *p)
{
    return p->m >= MIN_ROWS && tn_cuda_gemm_operands_fit(cuda, p);
}

// --- modes -------------------------------------------------------------------------------------------

// Sums of e4m3 values keep 14 bits of the largest of them (gemm_wgmma.cu): that much is little against a
// sum, but not against what a clamp leaves of it.
static bool clamps(const tn_product *p)
{
    return p->glu && p->glu->limit > 0.0f;
}

int32_t tn_cuda_gemm_mode(const tn_cuda *cuda, const tn_product *p, int32_t precision)
{
    // The mode that a precision asks for, and the compute capability from which tensor cores have it.
    static const struct {
        int32_t mode, compute;
    } asked[TN_PRECISION_COUNT] = {
        [TN_PRECISION_f32] = {TN_GEMM_BF16X3, 80}, [TN_PRECISION_tf32] = {TN_GEMM_TF32, 80},
        [TN_PRECISION_bf16] = {TN_GEMM_BF16, 80},  [TN_PRECISION_f16] = {TN_GEMM_F16, 75},
        [TN_PRECISION_fp8] = {TN_GEMM_E4M3, 89},
    };
    bool asks = asked[precision].compute > 0 && !(precision == TN_PRECISION_fp8 && clamps(p));
    if (asks) return cuda->compute >= asked[precision].compute ? asked[precision].mode : -1;
    if (cuda->compute >= 80 && tn_cuda_weights_are(p, TN_TYPE_BF16)) return TN_GEMM_BF16;
    return cuda->compute >= 80 && tn_cuda_weights_are(p, TN_TYPE_F32) ? TN_GEMM_BF16X3 : TN_GEMM_F16;
}

static int64_t round_up(int64_t v, int64_t to)
{
    return tn_div_up(v, to) * to;
}

int64_t tn_cuda_gemm_row_packed16(int32_t mode, int64_t k)
{
    if (mode == TN_GEMM_E4M3) return round_up(k, 16) / 2;
    return mode == TN_GEMM_TF32 ? round_up(k, 4) * 2 : round_up(k, 8) * (mode == TN_GEMM_BF16X3 ? 3 : 1);
}

int64_t tn_cuda_gemm_x_scales(int32_t mode, int64_t rows, int64_t k)
{
    return mode == TN_GEMM_E4M3 ? rows * tn_div_up(k, TN_GEMM_RUN) : rows;
}

bool tn_cuda_gemm_scales_x(int32_t mode)
{
    return mode == TN_GEMM_F16 || mode == TN_GEMM_E4M3;
}

bool tn_cuda_gemm_scales_w(int32_t mode)
{
    return mode == TN_GEMM_E4M3;
}

bool tn_cuda_gemm_direct_type(int32_t mode, const tn_view *w)
{
    bool same =
        mode == TN_GEMM_BF16 ? w->dtype == TN_TYPE_BF16 : mode == TN_GEMM_F16 && w->dtype == TN_TYPE_F16;
    return same && w->ne[3] % 8 == 0;
}

bool tn_cuda_gemm_direct(int32_t mode, const tn_view *w)
{
    return tn_cuda_gemm_direct_type(mode, w) && (uintptr_t)w->data % 16 == 0;
}

// --- operands into scratch ---------------------------------------------------------------------------

tn_status tn_cuda_gemm_prepare_x(const tn_cuda_launch *l, tn_cuda_gemm_x_args a, const tn_product *p)
{
    a.x = tn_cuda_view_of(p->x);
    a.norm = p->norm ? p->norm->data : NULL;
    a.eps = p->eps;
    a.k = (int32_t)p->k;
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(a.m, PREPARE_BLOCKS * l->cuda->n_sms),
                         .y = 1,
                         .z = 1,
                         .threads = PREPARE_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_gemm_prepare, "tn_gemm_x", &grid, &a);
}

const void *tn_cuda_gemm_x(const tn_cuda_launch *l, const tn_product *p)
{
    return l->reads_packed16 ? p->x->data : l->scratch;
}

size_t tn_cuda_gemm_x_size(int32_t mode, int64_t rows, int64_t k)
{
    return (size_t)round_up(rows * tn_cuda_gemm_row_packed16(mode, k) * 2, ALIGN);
}

tn_status tn_cuda_gemm_prepare_w(const tn_cuda_launch *l, tn_cuda_gemm_w_args a, const tn_view *w,
                                 int64_t n_groups)
{
    char name[48];
    bool any = a.mode != TN_GEMM_F16 || tn_dtype_block_elems(w->dtype) == 1;
    snprintf(name, sizeof name, "tn_gemm_w_%s%s", tn_dtype_name(w->dtype), any ? "_any" : "");
    a.w = tn_cuda_weight_planes(w);
    a.k = (int32_t)w->ne[3];
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(a.n_rows, PREPARE_BLOCKS * l->cuda->n_sms),
                         .y = (uint32_t)n_groups,
                         .z = 1,
                         .threads = PREPARE_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_gemm_prepare, name, &grid, &a);
}

// --- what is derived from weights: rows in e4m3, and norms --------------------------------------------

tn_status tn_cuda_gemm_measure(const tn_cuda_launch *l, const tn_view *w, float *norm)
{
    tn_cuda_gemm_x_args zero = {.zero = (int32_t *)(void *)norm, .n_zero = 1};
    tn_cuda_grid grid = {.x = 1, .y = 1, .z = 1, .threads = PREPARE_THREADS};
    tn_status status = tn_cuda_run(l, TN_CUDA_MODULE_gemm_prepare, "tn_gemm_x", &grid, &zero);
    tn_cuda_gemm_w_args a = {.row_scale = norm, .n_rows = w->ne[1] * w->ne[2], .mode = TN_GEMM_NORM};
    return status == TN_OK ? tn_cuda_gemm_prepare_w(l, a, w, 1) : status;
}

static tn_status derive(tn_cuda *c, const tn_view *w, int32_t form, void *to)
{
    tn_cuda_launch l = {.cuda = c};
    if (form == TN_GEMM_NORM) return tn_cuda_gemm_measure(&l, w, to);
    tn_cuda_gemm_w_args a = {
        .to = to,
        .row_scale = (float *)(void *)((char *)to + tn_cuda_gemm_x_size(form, w->ne[2], w->ne[3])),
        .n_rows = w->ne[2],
        .ld = tn_cuda_gemm_row_packed16(form, w->ne[3]),
        .mode = form};
    return tn_cuda_gemm_prepare_w(&l, a, w, 1);
}

// A norm, or rows and their scales.
static size_t derived_size(int32_t form, const tn_view *w)
{
    if (form == TN_GEMM_NORM) return sizeof(float);
    return tn_cuda_gemm_x_size(TN_GEMM_E4M3, w->ne[2], w->ne[3]) + (size_t)w->ne[2] * sizeof(float);
}

// The product of a step from whose weights something is made once for `kernel`, and what; without weights if
// nothing is.
static tn_product derives(const tn_step *step, const tn_cuda_kernel *kernel, int32_t *form)
{
    tn_product p = tn_product_get(step);
    bool e4m3 = (kernel->flags & TN_CUDA_ROUNDS_E4M3) != 0,
         norms = p.glu && (kernel->flags & TN_CUDA_ROUNDS_F16) && (step->join.next & TN_JOIN_PACK);
    *form = e4m3 ? TN_GEMM_E4M3 : TN_GEMM_NORM;
    if (!(norms || (e4m3 && !p.ids)) || step->join.computed_weights) p.n_weights = 0;
    return p;
}

size_t tn_cuda_gemm_derived_size(const tn_step *step, const tn_cuda_kernel *kernel)
{
    int32_t form;
    tn_product p = derives(step, kernel, &form);
    size_t size = 0;
    for (int32_t i = 0; i < p.n_weights; i++) size += derived_size(form, p.w[i]);
    return size;
}

tn_status tn_cuda_gemm_derive_weights(tn_cuda *cuda, const tn_step *step, const tn_cuda_kernel *kernel)
{
    int32_t form;
    tn_product p = derives(step, kernel, &form);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < p.n_weights && status == TN_OK; i++)
        status = tn_cuda_derived_make(cuda, p.w[i], form, derived_size(form, p.w[i]), derive);
    return status;
}

void *tn_cuda_gemm_derived(const tn_cuda_launch *l, int32_t mode, const tn_view *w)
{
    if (mode != TN_GEMM_E4M3 && mode != TN_GEMM_NORM) return NULL;
    // A list of launches has them where they will be, if memory suffices.
    if (l->sink) return l->step->join.computed_weights ? NULL : (void *)(uintptr_t)TN_CUDA_NOWHERE;
    return tn_cuda_derived_find(l->cuda, w, mode);
}
