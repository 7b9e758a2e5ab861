// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of many rows on tensor cores. x is rounded (or split) to what the precision asks for into scratch, weights
// that are not such rows already are expanded into scratch piece by piece, then tiles are multiplied
// (product/gemm/gemm_wgmma.cu, gemm_mma.cu). All ops are one list of products of one x with up to three weights.
#include "backends/cuda/product/gemm/gemm.h"

#include "core/compiler.h"
#include "ops/quant.h"

#include <stdio.h>
#include <string.h>

// Bytes of scratch for expanded weights: the largest matrices of common models in one piece; and for weights
// that only need it when their address is odd.
#define WEIGHT_ROOM (256u << 20)
#define SPARE_ROOM  (8u << 20)
enum { MIN_ROWS = 9, ALIGN = 256 };

// --- what a step asks for ----------------------------------------------------------------------------

int32_t tn_cuda_gemm_n_weights(const tn_step *step)
{
    if (step->op == TN_OP_matmul_multi) return ((const tn_matmul_multi_params *)step->params)->n_weights;
    return step->op == TN_OP_matmul_glu || step->op == TN_OP_matmul_id_glu ? 2 : 1;
}

static bool is_glu(const tn_step *step)
{
    return step->op == TN_OP_matmul_glu;
}

tn_cuda_gemm_operands tn_cuda_gemm_find(const tn_step *step)
{
    tn_cuda_gemm_operands o = {.act = TN_UNARY_NONE};
    if (step->op == TN_OP_linear) {
        const tn_linear_params *p = step->params;
        int32_t next = 2;
        if (p->has_bias) o.bias[0] = &step->src[next++];
        if (p->has_residual) o.residual = &step->src[next++];
        if (p->has_norm) o.norm = &step->src[next++];
        o.eps = p->eps;
        o.act = p->act;
    }
    if (step->op == TN_OP_matmul_multi) {
        const tn_matmul_multi_params *p = step->params;
        int32_t next = 1 + p->n_weights;
        for (int32_t i = 0; i < p->n_weights; i++)
            if (p->has_bias[i]) o.bias[i] = &step->src[next++];
        if (p->has_norm) o.norm = &step->src[next++];
        o.eps = p->eps;
    }
    if (step->op == TN_OP_matmul_glu) {
        const tn_matmul_glu_params *p = step->params;
        if (p->has_norm) o.norm = &step->src[3];
        o.eps = p->eps;
        o.act = p->glu.act;
    }
    return o;
}

bool tn_cuda_gemm_act_known(int32_t act)
{
    return act == TN_UNARY_NONE || (act >= TN_UNARY_SILU && act <= TN_UNARY_SIGMOID);
}

static bool f32_rows(const tn_view *v)
{
    return v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v);
}

int64_t tn_cuda_row_stride(const tn_view *v)
{
    int64_t stride = v->ne[2] > 1 ? v->nb[2] : v->ne[1] > 1 ? v->nb[1] : v->ne[0] > 1 ? v->nb[0] : v->nb[2];
    bool one = (v->ne[1] == 1 || v->nb[1] == stride * v->ne[2]) && (v->ne[0] == 1 || v->nb[0] == stride * v->ne[2] * v->ne[1]);
    return one && stride % (int64_t)sizeof(float) == 0 ? stride : 0;
}

bool tn_cuda_gemm_type_known(tn_dtype type)
{
    bool integer = type >= TN_TYPE_I8 && type <= TN_TYPE_I64;
    return tn_quant_info_get(type)->to_f32 && !integer && type != TN_TYPE_F64;
}

bool tn_cuda_gemm_accepts(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *x = &step->src[0];
    tn_cuda_gemm_operands o = tn_cuda_gemm_find(step);
    int64_t m = tn_view_n_rows(x);
    if (cuda->compute < 75 || m < MIN_ROWS || m > INT32_MAX / 2 || x->ne[3] == 0 || x->ne[3] > INT32_MAX / 4) return false;
    if (!f32_rows(x) || !tn_cuda_gemm_act_known(o.act) || (o.residual && (!f32_rows(o.residual) || tn_cuda_row_stride(o.residual) == 0)) || (o.norm && !f32_rows(o.norm))) return false;
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++) {
        const tn_view *w = &step->src[1 + i];
        if (!tn_cuda_gemm_type_known(w->dtype) || w->ne[2] == 0 || w->ne[2] > INT32_MAX / 2) return false;
        if (o.bias[i] && !f32_rows(o.bias[i])) return false;
    }
    for (int32_t i = 0; i < step->n_dst; i++)
        if (step->dst[i].dtype != TN_TYPE_F32 || !tn_view_contiguous(&step->dst[i])) return false;
    return true;
}

bool tn_cuda_gemm_all_weights(const tn_step *step, tn_dtype type)
{
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++)
        if (step->src[1 + i].dtype != type) return false;
    return true;
}

// Sums of e4m3 products keep 14 bits of the largest of them (product/gemm/gemm_wgmma.cu): that much is little against a sum, but not
// against what a clamp leaves of it.
static bool clamps(const tn_step *step)
{
    const tn_glu_params *glu = step->op == TN_OP_matmul_glu      ? &((const tn_matmul_glu_params *)step->params)->glu
                               : step->op == TN_OP_matmul_id_glu ? &((const tn_matmul_id_glu_params *)step->params)->glu
                                                                 : NULL;
    return glu && glu->limit > 0.0f;
}

int32_t tn_cuda_gemm_mode(const tn_cuda *cuda, const tn_step *step)
{
    static const struct {
        int32_t mode, compute;
    } asked[TN_PRECISION_COUNT] = {
        [TN_PRECISION_f32] = {TN_GEMM_BF16X3, 80}, [TN_PRECISION_tf32] = {TN_GEMM_TF32, 80}, [TN_PRECISION_bf16] = {TN_GEMM_BF16, 80},
        [TN_PRECISION_f16] = {TN_GEMM_F16, 75},    [TN_PRECISION_fp8] = {TN_GEMM_E4M3, 89},
    };
    bool asks = asked[step->precision].compute > 0 && !(step->precision == TN_PRECISION_fp8 && clamps(step));
    if (asks) return cuda->compute >= asked[step->precision].compute ? asked[step->precision].mode : -1;
    if (cuda->compute >= 80 && tn_cuda_gemm_all_weights(step, TN_TYPE_BF16)) return TN_GEMM_BF16;
    return cuda->compute >= 80 && tn_cuda_gemm_all_weights(step, TN_TYPE_F32) ? TN_GEMM_BF16X3 : TN_GEMM_F16;
}

bool tn_cuda_gemm_accepts_bf16(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_gemm_accepts(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_BF16;
}

bool tn_cuda_gemm_accepts_f32(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_gemm_accepts(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_BF16X3;
}

bool tn_cuda_gemm_accepts_f16(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_gemm_accepts(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_F16;
}

bool tn_cuda_gemm_accepts_tf32(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_gemm_accepts(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_TF32;
}

bool tn_cuda_gemm_accepts_e4m3(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_gemm_accepts(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_E4M3;
}

// --- plan --------------------------------------------------------------------------------------------

static int64_t round_up(int64_t v, int64_t to)
{
    return tn_div_up(v, to) * to;
}

int64_t tn_cuda_gemm_row_units(int32_t mode, int64_t k)
{
    if (mode == TN_GEMM_E4M3) return round_up(k, 16) / 2;
    return mode == TN_GEMM_TF32 ? round_up(k, 4) * 2 : round_up(k, 8) * (mode == TN_GEMM_BF16X3 ? 3 : 1);
}

bool tn_cuda_gemm_scales_x(int32_t mode)
{
    return mode == TN_GEMM_F16 || mode == TN_GEMM_E4M3;
}

bool tn_cuda_gemm_scales_w(int32_t mode)
{
    return mode == TN_GEMM_E4M3;
}

typedef struct plan {
    int32_t mode;
    int64_t m, k, ld; // ld: units of a row
    size_t x_size, scale_size, w_scale_size, w_size;
} plan;

static plan make_plan(const tn_cuda *cuda, const tn_step *step)
{
    plan p = {.mode = tn_cuda_gemm_mode(cuda, step), .m = tn_view_n_rows(&step->src[0]), .k = step->src[0].ne[3]};
    p.ld = tn_cuda_gemm_row_units(p.mode, p.k);
    p.x_size = (size_t)round_up(p.m * p.ld * 2, ALIGN);
    p.scale_size = (size_t)round_up(p.m * 4, ALIGN);
    int64_t rows = 0;
    bool ready = true; // weights that are rows of the right type, if their address allows
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++) {
        const tn_view *w = &step->src[1 + i];
        bool same = p.mode == TN_GEMM_BF16 ? w->dtype == TN_TYPE_BF16 : p.mode == TN_GEMM_F16 && w->dtype == TN_TYPE_F16;
        ready = ready && same && p.k % 8 == 0;
        rows += round_up(w->ne[2], TN_GEMM_UNIT);
    }
    size_t least = (size_t)(TN_GEMM_MAX_SEGS * TN_GEMM_UNIT * p.ld * 2), most = (size_t)(rows * p.ld * 2);
    p.w_size = TN_MIN(most, TN_MAX(least, ready ? SPARE_ROOM : WEIGHT_ROOM));
    if (tn_cuda_gemm_scales_w(p.mode)) p.w_scale_size = (size_t)round_up(rows * 4, ALIGN);
    return p;
}

size_t tn_cuda_gemm_scratch(const tn_cuda *cuda, const tn_step *step)
{
    plan p = make_plan(cuda, step);
    return p.x_size + p.scale_size + p.w_scale_size + p.w_size;
}

// --- operands into scratch ---------------------------------------------------------------------------

tn_status tn_cuda_gemm_prepare_x(const tn_cuda_launch *l, tn_cuda_gemm_x_args a, const tn_cuda_gemm_operands *o)
{
    const tn_view *x = &l->step->src[0];
    a.x = tn_cuda_view_of(x);
    a.norm = o->norm ? o->norm->data : NULL;
    a.eps = o->eps;
    a.k = (int32_t)x->ne[3];
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(a.m, 64 * l->cuda->n_sms), .y = 1, .z = 1, .threads = 256};
    return tn_cuda_run(l, TN_CUDA_MODULE_gemm_prepare, "tn_gemm_x", &grid, &a);
}

const void *tn_cuda_gemm_x(const tn_cuda_launch *l)
{
    return l->reads_packed16 ? l->step->src[0].data : l->scratch;
}

tn_status tn_cuda_gemm_prepare_w(const tn_cuda_launch *l, tn_cuda_gemm_w_args a, const tn_view *w, int64_t n_groups)
{
    char name[48];
    bool any = a.mode != TN_GEMM_F16 || tn_dtype_block_elems(w->dtype) == 1;
    snprintf(name, sizeof name, "tn_gemm_w_%s%s", tn_dtype_name(w->dtype), any ? "_any" : "");
    a.w = tn_cuda_weight_planes(w);
    a.k = (int32_t)w->ne[3];
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(a.n_rows, 64 * l->cuda->n_sms), .y = (uint32_t)n_groups, .z = 1, .threads = 256};
    return tn_cuda_run(l, TN_CUDA_MODULE_gemm_prepare, name, &grid, &a);
}

bool tn_cuda_gemm_direct(int32_t mode, const tn_view *w)
{
    bool same = mode == TN_GEMM_BF16 ? w->dtype == TN_TYPE_BF16 : mode == TN_GEMM_F16 && w->dtype == TN_TYPE_F16;
    return same && w->ne[3] % 8 == 0 && (uintptr_t)w->data % 16 == 0;
}

// --- pieces ------------------------------------------------------------------------------------------

// Rows [first, first + n) of a weight.
typedef struct rows {
    int32_t weight;
    int64_t first, n;
} rows;

// Columns of the result that are made by one launch: rows of up to three weights, and where they are.
typedef struct piece {
    int32_t n_segs;
    struct {
        rows rows;
        const void *w;
        float *w_scale;
    } seg[TN_GEMM_MAX_SEGS];
    size_t used;      // bytes of scratch for expanded rows
    int64_t n_scaled; // rows with a scale
} piece;

static void *first_column(const tn_view *y, int64_t column, bool units)
{
    return (char *)y->data + column * (units ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float));
}

static void fill_args(const tn_cuda_launch *l, const plan *p, const tn_cuda_gemm_operands *o, const piece *c, tn_cuda_gemm_args *a)
{
    const tn_step *step = l->step;
    int64_t units = 0;
    for (int32_t i = 0; i < c->n_segs; i++) {
        int32_t k = c->seg[i].rows.weight;
        const tn_view *y = &step->dst[is_glu(step) ? 0 : k];
        tn_cuda_gemm_seg *s = &a->seg[i];
        *s = (tn_cuda_gemm_seg){.y = first_column(y, c->seg[i].rows.first, l->writes_packed16), .w = c->seg[i].w, .w_scale = c->seg[i].w_scale, .ld = y->ne[3], .n = (int32_t)c->seg[i].rows.n};
        if (o->bias[k]) s->bias = (const float *)o->bias[k]->data + c->seg[i].rows.first;
        s->first_unit = (int32_t)units;
        s->wide = s->ld % 4 == 0 && (uintptr_t)s->y % 16 == 0;
        units += tn_div_up(s->n, TN_GEMM_UNIT);
    }
    if (o->residual) {
        a->residual = (const float *)o->residual->data + c->seg[0].rows.first;
        a->residual_ld = tn_cuda_row_stride(o->residual) / (int64_t)sizeof(float);
        a->residual_wide = (uintptr_t)a->residual % 16 == 0 && a->residual_ld % 4 == 0;
    }
    a->n_segs = c->n_segs;
    a->x = tn_cuda_gemm_x(l);
    a->writes_packed16 = l->writes_packed16;
    a->ld = p->ld;
    a->row_scale = tn_cuda_gemm_scales_x(p->mode) ? (const float *)(const void *)(l->scratch + p->x_size) : NULL;
    a->m = (int32_t)p->m;
    a->k = (int32_t)p->ld;
    a->act = o->act;
    if (is_glu(step)) {
        const tn_matmul_glu_params *g = step->params;
        a->glu_limit = g->glu.limit;
        a->glu_alpha = g->glu.alpha;
    }
}

static tn_status run_piece(const tn_cuda_launch *l, const plan *p, const tn_cuda_gemm_operands *o, const piece *c)
{
    tn_cuda_gemm_args a;
    memset(&a, 0, sizeof a);
    fill_args(l, p, o, c, &a);
    return tn_cuda_gemm_run(l, &a, p->mode, is_glu(l->step));
}

// Takes rows of a weight into the piece, expanded if need be; room counts bytes of scratch.
static tn_status take_rows(const tn_cuda_launch *l, const plan *p, piece *c, const rows *r)
{
    int32_t weight = r->weight;
    int64_t first = r->first, n = r->n;
    const tn_view *w = &l->step->src[1 + weight];
    char *scales = l->scratch + p->x_size + p->scale_size, *room = scales + p->w_scale_size;
    int32_t i = c->n_segs++;
    c->seg[i].rows = *r;
    c->seg[i].w = (const char *)w->data + (size_t)(first * p->k) * 2;
    if (tn_cuda_gemm_direct(p->mode, w)) return TN_OK;
    c->seg[i].w = room + c->used;
    c->used += (size_t)(n * p->ld * 2);
    if (tn_cuda_gemm_scales_w(p->mode)) c->seg[i].w_scale = (float *)(void *)scales + c->n_scaled;
    c->n_scaled += n;
    tn_cuda_gemm_w_args a = {.to = (void *)(uintptr_t)c->seg[i].w, .row_scale = c->seg[i].w_scale, .first_row = first, .n_rows = n, .ld = p->ld, .mode = p->mode};
    return tn_cuda_gemm_prepare_w(l, a, w, 1);
}

// Gate and up advance together.
static tn_status run_glu(const tn_cuda_launch *l, const plan *p, const tn_cuda_gemm_operands *o)
{
    const tn_view *gate = &l->step->src[1], *up = &l->step->src[2];
    int64_t n = gate->ne[2], expanded = !tn_cuda_gemm_direct(p->mode, gate) + !tn_cuda_gemm_direct(p->mode, up);
    int64_t step = expanded ? TN_MIN(n, (int64_t)(p->w_size / (size_t)(expanded * p->ld * 2))) : n;
    if (step < n) step = step / TN_GEMM_UNIT * TN_GEMM_UNIT;
    tn_status status = TN_OK;
    for (int64_t first = 0; first < n && status == TN_OK; first += step) {
        piece c = {0};
        int64_t n_rows = TN_MIN(step, n - first);
        for (int32_t i = 0; i < 2 && status == TN_OK; i++) status = take_rows(l, p, &c, &(rows){i, first, n_rows});
        if (status == TN_OK) status = run_piece(l, p, o, &c);
    }
    return status;
}

// As many rows of as many weights as the room takes, then the next.
static tn_status run_products(const tn_cuda_launch *l, const plan *p, const tn_cuda_gemm_operands *o)
{
    piece c = {0};
    tn_status status = TN_OK;
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(l->step); i++) {
        const tn_view *w = &l->step->src[1 + i];
        for (int64_t first = 0, n_rows; first < w->ne[2] && status == TN_OK; first += n_rows) {
            int64_t left = w->ne[2] - first, fits = (int64_t)((p->w_size - c.used) / (size_t)(p->ld * 2));
            n_rows = tn_cuda_gemm_direct(p->mode, w) || fits >= left ? left : fits / TN_GEMM_UNIT * TN_GEMM_UNIT;
            if (n_rows > 0) status = take_rows(l, p, &c, &(rows){i, first, n_rows});
            if (n_rows == left || status != TN_OK) break;
            status = run_piece(l, p, o, &c);
            c = (piece){0};
        }
    }
    return status == TN_OK && c.n_segs > 0 ? run_piece(l, p, o, &c) : status;
}

tn_status tn_cuda_gemm_launch(const tn_cuda_launch *l)
{
    tn_cuda_gemm_operands o = tn_cuda_gemm_find(l->step);
    plan p = make_plan(l->cuda, l->step);
    tn_cuda_gemm_x_args x = {.to = l->scratch, .m = (int32_t)p.m, .ld = p.ld, .mode = p.mode};
    if (tn_cuda_gemm_scales_x(p.mode)) x.row_scale = (float *)(void *)(l->scratch + p.x_size);
    tn_status status = l->reads_packed16 ? TN_OK : tn_cuda_gemm_prepare_x(l, x, &o);
    if (status != TN_OK) return status;
    return is_glu(l->step) ? run_glu(l, &p, &o) : run_products(l, &p, &o);
}
