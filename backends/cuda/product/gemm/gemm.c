// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of 9 and more rows on tensor cores, without experts. x is rounded (or split) into scratch,
// to what the precision of the step asks for. Many rows times weights of block types are multiplied without
// expanding those (gemm_blocks.c). Other weights that are not such rows already are expanded into scratch, as
// many rows at a time as the scratch holds, and then multiplied (gemm_tiles.c). All ops are one x times up to
// three weights.
#include "backends/cuda/product/dense/dense.h"
#include "backends/cuda/product/gemm/gemm.h"

#include <string.h>

// Scratch for expanded weights, bytes. It is large enough to hold the largest matrices of common models in
// one piece.
#define EXPANDED_SIZE (256u << 20)
// Where all weights have the right type, only those whose address is not a multiple of 16 bytes are copied
// there.
#define REALIGNED_SIZE (8u << 20)
enum { ALIGN = 256 }; // of the parts of the scratch, bytes

// --- plan --------------------------------------------------------------------------------------------

// The scratch holds x, scales of rows of x, scales of rows of weights, expanded weights and sums of tiles
// that several blocks share, one after another.
typedef struct plan {
    int32_t mode; // TN_GEMM_*
    int64_t ld;   // packed16 of a row of x and of the weights
    size_t x_size, scale_size, w_scale_size, w_size, partial_size;
} plan;

static int64_t round_up(int64_t v, int64_t to)
{
    return tn_div_up(v, to) * to;
}

static plan make_plan(const tn_cuda *cuda, const tn_product *p, int32_t precision)
{
    plan s = {.mode = tn_cuda_gemm_mode(cuda, p, precision)};
    s.ld = tn_cuda_gemm_row_packed16(s.mode, p->k);
    s.x_size = tn_cuda_gemm_x_size(s.mode, p->m, p->k);
    s.scale_size = (size_t)round_up(tn_cuda_gemm_x_scales(s.mode, p->m, p->k) * 4, ALIGN);
    int64_t rows = 0;
    bool direct = true; // weights can be multiplied where they are, if their addresses allow it
    for (int32_t i = 0; i < p->n_weights; i++) {
        direct = direct && tn_cuda_gemm_direct_type(s.mode, p->w[i]);
        rows += round_up(p->w[i]->ne[2], TN_GEMM_TILE64);
    }
    size_t least = (size_t)(TN_GEMM_MAX_SEGS * TN_GEMM_RUN * s.ld * 2), most = (size_t)(rows * s.ld * 2);
    s.w_size = TN_MIN(most, TN_MAX(least, direct ? REALIGNED_SIZE : EXPANDED_SIZE));
    s.w_size = (size_t)round_up((int64_t)s.w_size, ALIGN);
    if (tn_cuda_gemm_scales_w(s.mode)) s.w_scale_size = (size_t)round_up(rows * 4, ALIGN);
    s.partial_size = tn_cuda_gemm_partial_size(cuda, s.mode, p->m);
    return s;
}

size_t tn_cuda_gemm_dense_scratch(const tn_cuda *cuda, const tn_product *p, int32_t precision)
{
    plan s = make_plan(cuda, p, precision);
    if (tn_cuda_gemm_blocks_accepts(cuda, p, s.mode)) return tn_cuda_gemm_blocks_scratch(cuda, p);
    return s.x_size + s.scale_size + s.w_scale_size + s.w_size + s.partial_size;
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

// What all pieces of a product share.
typedef struct work {
    const tn_cuda_launch *l;
    const tn_product *p;
    const plan *plan;
} work;

static void *first_column(const tn_view *y, int64_t column, const work *t)
{
    bool packed16 = t->l->writes_packed16, e4m3 = packed16 && t->plan->mode == TN_GEMM_E4M3;
    return (char *)y->data + column * (e4m3       ? 1
                                       : packed16 ? (int64_t)sizeof(uint16_t)
                                                  : (int64_t)sizeof(float));
}

// Where scales of a result in e4m3 go, from column `first` on: behind its rows.
static float *result_scales(const work *t, int64_t first)
{
    const tn_view *y = t->p->y[0];
    char *at = (char *)y->data + tn_cuda_gemm_x_size(TN_GEMM_E4M3, t->p->m, y->ne[3]);
    return (float *)(void *)at + first / TN_GEMM_RUN * t->p->m;
}

static void set_segs(const work *t, const piece *c, tn_cuda_gemm_args *a)
{
    const tn_product *p = t->p;
    int64_t tiles = 0; // of TN_GEMM_TILE64 columns
    for (int32_t i = 0; i < c->n_segs; i++) {
        const rows *r = &c->seg[i].rows;
        const tn_view *y = p->y[r->weight], *bias = p->bias[r->weight];
        tn_cuda_gemm_seg *s = &a->seg[i];
        *s = (tn_cuda_gemm_seg){.y = first_column(y, r->first, t),
                                .w = c->seg[i].w,
                                .w_scale = c->seg[i].w_scale,
                                .ld = y->ne[3],
                                .n = (int32_t)r->n};
        if (bias) s->bias = (const float *)bias->data + r->first;
        s->first_tile64 = (int32_t)tiles;
        s->wide = s->ld % 4 == 0 && (uintptr_t)s->y % 16 == 0;
        tiles += tn_div_up(s->n, TN_GEMM_TILE64);
    }
    a->n_segs = c->n_segs;
}

static tn_status run_piece(const work *t, const piece *c)
{
    const tn_cuda_launch *l = t->l;
    const tn_product *p = t->p;
    const plan *s = t->plan;
    tn_cuda_gemm_args a;
    memset(&a, 0, sizeof a);
    set_segs(t, c, &a);
    if (p->residual) {
        a.residual = (const float *)p->residual->data + c->seg[0].rows.first;
        a.residual_ld = tn_cuda_row_stride(p->residual) / (int64_t)sizeof(float);
        a.residual_wide = (uintptr_t)a.residual % 16 == 0 && a.residual_ld % 4 == 0;
    }
    if (s->partial_size > 0)
        a.partial = (float *)(void *)(l->scratch + s->x_size + s->scale_size + s->w_scale_size + s->w_size);
    a.w_early = c->used == 0 && !tn_cuda_gemm_scales_w(s->mode); // e4m3 weights may have just been made
    a.x = tn_cuda_gemm_x(l, p);
    a.writes_packed16 = l->writes_packed16;
    if (l->writes_packed16 && s->mode == TN_GEMM_E4M3) a.y_scale = result_scales(t, c->seg[0].rows.first);
    a.ld = s->ld;
    if (tn_cuda_gemm_scales_x(s->mode))
        a.row_scale = (const float *)(const void *)((const char *)a.x + s->x_size);
    a.m = (int32_t)p->m;
    a.k = (int32_t)s->ld;
    a.act = tn_cuda_gemm_act(p);
    if (p->glu) a.glu_limit = p->glu->limit, a.glu_alpha = p->glu->alpha;
    return tn_cuda_gemm_run(l, &a, s->mode, p->glu != NULL);
}

// Whether a weight needs no scratch: the file has its rows as they are multiplied, or they were made before.
static bool is_ready(const work *t, const tn_view *w)
{
    return tn_cuda_gemm_direct(t->plan->mode, w) || tn_cuda_gemm_derived(t->l, t->plan->mode, w);
}

// Adds rows of a weight to the piece, expanded into scratch if need be.
static tn_status add_rows(const work *t, piece *c, const rows *r)
{
    const plan *s = t->plan;
    const tn_view *w = t->p->w[r->weight];
    char *scales = t->l->scratch + s->x_size + s->scale_size, *expanded = scales + s->w_scale_size;
    int32_t i = c->n_segs++;
    c->seg[i].rows = *r;
    c->seg[i].w = (const char *)w->data + (size_t)(r->first * t->p->k) * 2;
    if (tn_cuda_gemm_direct(s->mode, w)) return TN_OK;
    char *derived = tn_cuda_gemm_derived(t->l, s->mode, w);
    if (derived) {
        c->seg[i].w = derived + r->first * s->ld * 2;
        c->seg[i].w_scale =
            (float *)(void *)(derived + tn_cuda_gemm_x_size(s->mode, w->ne[2], t->p->k)) + r->first;
        return TN_OK;
    }
    c->seg[i].w = expanded + c->used;
    c->used += (size_t)(r->n * s->ld * 2);
    if (tn_cuda_gemm_scales_w(s->mode)) c->seg[i].w_scale = (float *)(void *)scales + c->n_scaled;
    c->n_scaled += r->n;
    tn_cuda_gemm_w_args a = {.to = (void *)(uintptr_t)c->seg[i].w,
                             .row_scale = c->seg[i].w_scale,
                             .first_row = r->first,
                             .n_rows = r->n,
                             .ld = s->ld,
                             .mode = s->mode};
    return tn_cuda_gemm_prepare_w(t->l, a, w, 1);
}

// Gate and up: a piece has the same rows of both.
static tn_status run_glu(const work *t)
{
    const plan *s = t->plan;
    const tn_view *gate = t->p->w[0], *up = t->p->w[1];
    int64_t n = gate->ne[2];
    int64_t expanded = !is_ready(t, gate) + !is_ready(t, up);
    int64_t step = expanded ? TN_MIN(n, (int64_t)(s->w_size / (size_t)(expanded * s->ld * 2))) : n;
    if (step < n) step = step / TN_GEMM_RUN * TN_GEMM_RUN;
    tn_status status = TN_OK;
    for (int64_t first = 0; first < n && status == TN_OK; first += step) {
        piece c = {0};
        int64_t n_rows = TN_MIN(step, n - first);
        for (int32_t i = 0; i < 2 && status == TN_OK; i++)
            status = add_rows(t, &c, &(rows){i, first, n_rows});
        if (status == TN_OK) status = run_piece(t, &c);
    }
    return status;
}

// A piece has as many rows of as many weights as the scratch holds.
static tn_status run_weights(const work *t)
{
    const plan *s = t->plan;
    piece c = {0};
    tn_status status = TN_OK;
    for (int32_t i = 0; i < t->p->n_weights; i++) {
        const tn_view *w = t->p->w[i];
        for (int64_t first = 0, n_rows; first < w->ne[2] && status == TN_OK; first += n_rows) {
            int64_t rest = w->ne[2] - first, fits = (int64_t)((s->w_size - c.used) / (size_t)(s->ld * 2));
            bool whole = is_ready(t, w) || fits >= rest;
            n_rows = whole ? rest : fits / TN_GEMM_TILE64 * TN_GEMM_TILE64;
            if (n_rows > 0) status = add_rows(t, &c, &(rows){i, first, n_rows});
            if (n_rows == rest || status != TN_OK) break;
            status = run_piece(t, &c);
            c = (piece){0};
        }
    }
    return status == TN_OK && c.n_segs > 0 ? run_piece(t, &c) : status;
}

static tn_status prepare_x(const tn_cuda_launch *l, const tn_product *p, const plan *s)
{
    float *scale = tn_cuda_gemm_scales_x(s->mode) ? (float *)(void *)(l->scratch + s->x_size) : NULL;
    if (l->cuda->compute == 90 && (s->mode == TN_GEMM_BF16 || s->mode == TN_GEMM_F16)) {
        tn_cuda_dense_x_args a = {
            .to = l->scratch, .row_scale = scale, .ld = s->ld, .f16 = s->mode == TN_GEMM_F16};
        return tn_cuda_dense_prepare_x(l, a, p);
    }
    tn_cuda_gemm_x_args a = {
        .to = l->scratch, .row_scale = scale, .m = (int32_t)p->m, .ld = s->ld, .mode = s->mode};
    return tn_cuda_gemm_prepare_x(l, a, p);
}

tn_status tn_cuda_gemm_dense_launch(const tn_cuda_launch *l, const tn_product *p)
{
    plan s = make_plan(l->cuda, p, l->step->precision);
    if (tn_cuda_gemm_blocks_accepts(l->cuda, p, s.mode)) return tn_cuda_gemm_blocks_launch(l, p);
    tn_status status = l->reads_packed16 ? TN_OK : prepare_x(l, p, &s);
    if (status != TN_OK) return status;
    work t = {l, p, &s};
    return p->glu ? run_glu(&t) : run_weights(&t);
}
