// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matmuls of experts (matmul_id, matmul_id_glu) for 9 and more tokens on tensor cores. Rows of x are sorted
// by expert on the device, each expert beginning a tile of rows of its own, and multiplied like a product
// whose tiles of rows have different weights. If experts have up to SKINNY_AVERAGE rows each, the skinny
// kernels read the weights as they are, with more rows those of gemm_blocks.cuh do; weights of types that
// neither has are expanded into scratch first, those of the experts that are used.
// product/experts has faster kernels for some types on capability 9.0.
#include "backends/cuda/product/skinny/skinny.h"

#include <string.h>

// Scratch for expanded weights, bytes.
#define EXPANDED_SIZE ((size_t)512 << 20)
enum {
    MIN_TOKENS = 9, // product/matvec/matvec.c has kernels for up to 8
    ALIGN = 256,    // of the parts of the scratch, bytes
    SKINNY_ROWS = TN_SKINNY_BLOCK_COLUMNS,
    // Rows of x for an expert, on average, up to which weights are not worth expanding.
    SKINNY_AVERAGE = 40,
};

// --- what is accepted --------------------------------------------------------------------------------

bool tn_cuda_gemm_id_fits(const tn_cuda *cuda, const tn_product *p)
{
    if (cuda->compute < 80 || p->n_weights == 0 || !p->ids) return false;
    const tn_view *x = p->x, *w = p->w[0], *ids = p->ids;
    int64_t n_ids = tn_view_n_elems(ids);
    if (ids->ne[2] < MIN_TOKENS || n_ids > INT32_MAX / 256 || p->k == 0 || p->k > INT32_MAX / 8) return false;
    if (x->dtype != TN_TYPE_F32 || !tn_view_rows_contiguous(x) || !tn_view_contiguous(ids)) return false;
    if (!tn_view_contiguous(p->y[0]) || w->ne[2] == 0 || w->ne[1] == 0) return false;
    if (w->ne[1] > TN_GEMM_MAX_GROUPS || w->ne[1] * w->ne[2] > INT32_MAX / 2) return false;
    if (p->glu && !tn_cuda_gemm_act_known(p->glu->act)) return false;
    return tn_cuda_weights_all(p, tn_cuda_gemm_type_known);
}

// --- plan --------------------------------------------------------------------------------------------

// The scratch holds x, scales of rows of x, tables of the sorted rows, scales of rows of weights and expanded
// weights, one after another.
typedef struct plan {
    int32_t mode; // TN_GEMM_*
    bool skinny;  // by the skinny kernels
    bool blocks;  // by those of them for block types, which read x in an order of their own
    bool as_is;   // by gemm_blocks.cuh, which multiplies weights as they are
    int64_t n_ids, n_groups, n;
    int64_t ld;                   // packed16 of a row of x and of expanded weights
    int64_t tile_rows, max_tiles; // rows of a tile; tiles that there can be
    int64_t chunk;                // rows of each expert that are expanded at a time
    size_t x_size, scale_size, table_size, w_scale_size, w_size;
} plan;

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

static bool skinny_types(const tn_product *p, int32_t mode)
{
    bool f16 = tn_cuda_weights_all(p, tn_cuda_skinny_block_type) || tn_cuda_weights_are(p, TN_TYPE_F16);
    bool same = !p->glu || p->w[0]->dtype == p->w[1]->dtype;
    return same &&
           ((mode == TN_GEMM_F16 && f16) || (mode == TN_GEMM_BF16 && tn_cuda_weights_are(p, TN_TYPE_BF16)));
}

static plan make_plan(const tn_cuda *cuda, const tn_product *p, int32_t precision)
{
    plan s = {.mode = tn_cuda_gemm_mode(cuda, p, precision),
              .n_ids = p->m,
              .n_groups = p->n_experts,
              .n = p->w[0]->ne[2]};
    s.skinny = skinny_types(p, s.mode) && s.n_ids <= SKINNY_AVERAGE * s.n_groups;
    s.ld = tn_cuda_gemm_row_packed16(s.mode, p->k);
    s.tile_rows = s.skinny ? SKINNY_ROWS : TN_GEMM_ROWS;
    if (!s.skinny && tn_cuda_gemm_blocks_fits(cuda, p, s.mode)) {
        int64_t average = s.n_ids / s.n_groups, rows = tn_cuda_gemm_blocks_tile_rows(p->w[0]->dtype, average);
        s.as_is = 2 * average >= rows; // most of a tile would be padding else
        if (s.as_is) s.tile_rows = rows;
    }
    s.max_tiles = s.n_ids / s.tile_rows + TN_MIN(s.n_groups, s.n_ids);
    int64_t rows = s.max_tiles * s.tile_rows;
    s.blocks = s.skinny && tn_cuda_skinny_block_type(p->w[0]->dtype);
    s.x_size = s.blocks ? aligned((int64_t)tn_cuda_skinny_block_x_size(s.max_tiles, p->k))
                        : aligned(rows * s.ld * 2);
    s.scale_size = aligned(tn_cuda_gemm_x_scales(s.mode, rows, p->k) * 4);
    s.table_size = aligned(4 * (2 * rows + s.max_tiles + s.n_groups + 1));
    int64_t row_size = s.n_groups * s.ld * 2 * p->n_weights; // of a row of each expert
    s.chunk = TN_MIN(s.n, TN_MAX((int64_t)EXPANDED_SIZE / row_size / TN_GEMM_ROWS, 1) * TN_GEMM_ROWS);
    if (!s.skinny && !s.as_is) s.w_size = (size_t)(s.chunk * row_size);
    if (tn_cuda_gemm_scales_w(s.mode)) s.w_scale_size = aligned(4 * s.n_groups * s.chunk * p->n_weights);
    return s;
}

bool tn_cuda_gemm_id_is_skinny_blocks(const tn_cuda *cuda, const tn_product *p, int32_t precision)
{
    return make_plan(cuda, p, precision).blocks;
}

size_t tn_cuda_gemm_id_scratch(const tn_cuda *cuda, const tn_product *p, int32_t precision)
{
    plan s = make_plan(cuda, p, precision);
    return s.x_size + s.scale_size + s.table_size + s.w_scale_size + s.w_size;
}

// --- launches ----------------------------------------------------------------------------------------

typedef struct tables {
    int32_t *row_from, *row_to, *tile_group, *counts, *n_tiles;
} tables;

typedef struct work {
    const tn_cuda_launch *l;
    const tn_product *p;
    plan plan;
    tables tables;
} work;

static tables find_tables(const tn_cuda_launch *l, const plan *s)
{
    int64_t rows = s->max_tiles * s->tile_rows;
    int32_t *row_from = (int32_t *)(void *)(l->scratch + s->x_size + s->scale_size),
            *row_to = row_from + rows;
    int32_t *tile_group = row_to + rows, *counts = tile_group + s->max_tiles;
    return (tables){row_from, row_to, tile_group, counts, counts + s->n_groups};
}

static float *x_scales(const work *t)
{
    return tn_cuda_gemm_scales_x(t->plan.mode) ? (float *)(void *)(t->l->scratch + t->plan.x_size) : NULL;
}

static tn_status sort_rows(const work *t)
{
    const tn_product *p = t->p;
    const plan *s = &t->plan;
    tn_cuda_gemm_groups_args a = {
        .ids = p->ids->data,
        .n_ids = (int32_t)s->n_ids,
        .used = (int32_t)p->ids->ne[3],
        .per_id = p->x->ne[2] > 1,
        .n_groups = (int32_t)s->n_groups,
        .tile_rows = (int32_t)s->tile_rows,
        .tile_group = t->tables.tile_group,
        .row_from = t->tables.row_from,
        .row_to = t->tables.row_to,
        .n_tiles = t->tables.n_tiles,
        .counts = t->tables.counts,
    };
    tn_cuda_grid grid = {.x = 1, .y = 1, .z = 1, .threads = TN_GEMM_MAX_GROUPS};
    return tn_cuda_run(t->l, TN_CUDA_MODULE_gemm_prepare, "tn_gemm_groups", &grid, &a);
}

// Sorted rows of x into scratch, and zeros into the rows of the result whose id is no expert.
static tn_status prepare_x(const work *t)
{
    const tn_product *p = t->p;
    const plan *s = &t->plan;
    tn_cuda_gemm_x_args a = {
        .to = t->l->scratch,
        .row_scale = x_scales(t),
        .row_from = t->tables.row_from,
        .n_tiles = t->tables.n_tiles,
        .tile_rows = (int32_t)s->tile_rows,
        .ids = p->ids->data,
        .n_ids = (int32_t)s->n_ids,
        .n_groups = (int32_t)s->n_groups,
        .y = p->y[0]->data,
        .y_n = s->n,
        .m = (int32_t)(s->max_tiles * s->tile_rows),
        .ld = s->ld,
        .mode = s->as_is ? TN_GEMM_F16_EVEN_FIRST : s->mode,
        .finite_rows = tn_cuda_weights_all(p, tn_cuda_skinny_exact_type),
    };
    return s->blocks ? tn_cuda_skinny_prepare_x(t->l, a, p) : tn_cuda_gemm_prepare_x(t->l, a, p);
}

static tn_status run_skinny(const work *t)
{
    const tn_product *p = t->p;
    const plan *s = &t->plan;
    tn_cuda_skinny_args a;
    memset(&a, 0, sizeof a);
    a.wide = 1;
    for (int32_t i = 0; i < p->n_weights; i++) {
        const tn_view *w = p->w[i];
        bool plain = tn_dtype_block_elems(w->dtype) == 1;
        a.seg[i] = (tn_cuda_skinny_seg){
            .w = tn_cuda_weight_planes(w), .y = p->y[0]->data, .ld = s->n, .n = (int32_t)s->n};
        if (plain && ((uintptr_t)w->data % 16 != 0 || p->k % 16 != 0)) a.wide = 0;
    }
    a.n_segs = p->n_weights;
    a.x = t->l->scratch;
    a.row_scale = x_scales(t);
    a.tile_group = t->tables.tile_group;
    a.row_to = t->tables.row_to;
    a.n_row_tiles = t->tables.n_tiles;
    a.group_rows = s->n;
    a.ld = s->ld;
    a.m = (int32_t)(s->blocks ? s->max_tiles * s->tile_rows : s->tile_rows);
    a.k = (int32_t)p->k;
    a.glu = p->glu != NULL;
    a.act = tn_cuda_gemm_act(p);
    if (p->glu) a.glu_limit = p->glu->limit, a.glu_alpha = p->glu->alpha;
    return tn_cuda_skinny_run(t->l, p, &a, p->w[0]->dtype, s->max_tiles);
}

static tn_status run_as_is(const work *t)
{
    const tn_product *p = t->p;
    const plan *s = &t->plan;
    tn_cuda_gemm_blocks_args a;
    memset(&a, 0, sizeof a);
    for (int32_t i = 0; i < p->n_weights; i++)
        a.seg[i] = (tn_cuda_gemm_blocks_seg){.w = tn_cuda_weight_planes(p->w[i]),
                                             .y = p->y[0]->data,
                                             .ld = s->n,
                                             .n = (int32_t)s->n,
                                             .n_rows = (int32_t)(s->n_groups * s->n)};
    a.n_segs = p->n_weights;
    a.row_scale = x_scales(t);
    a.tile_group = t->tables.tile_group;
    a.row_to = t->tables.row_to;
    a.n_tiles = t->tables.n_tiles;
    a.group_rows = (int32_t)s->n;
    a.m = (int32_t)(s->max_tiles * s->tile_rows);
    a.k = (int32_t)p->k;
    a.act = tn_cuda_gemm_act(p);
    a.glu = p->glu != NULL;
    if (p->glu) a.glu_limit = p->glu->limit, a.glu_alpha = p->glu->alpha;
    return tn_cuda_gemm_blocks_run(t->l, &a, p, (int32_t)s->tile_rows);
}

static bool is_direct(const work *t)
{
    bool direct = true;
    for (int32_t i = 0; i < t->p->n_weights; i++)
        direct = direct && tn_cuda_gemm_direct(t->plan.mode, t->p->w[i]);
    return direct;
}

// Sets the weights of columns [first, first + n) of the result: where they are, or expanded into scratch.
static tn_status set_weights(const work *t, int64_t first, int64_t n, tn_cuda_gemm_args *a)
{
    const tn_product *p = t->p;
    const plan *s = &t->plan;
    char *scales = t->l->scratch + s->x_size + s->scale_size + s->table_size,
         *expanded = scales + s->w_scale_size;
    float *w_scale = tn_cuda_gemm_scales_w(s->mode) ? (float *)(void *)scales : NULL;
    bool direct = n == s->n && is_direct(t);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < p->n_weights && status == TN_OK; i++) {
        float *y = (float *)p->y[0]->data + first;
        a->seg[i] = (tn_cuda_gemm_seg){.y = y, .w = p->w[i]->data, .ld = s->n, .n = (int32_t)n};
        a->seg[i].wide = s->n % 4 == 0 && (uintptr_t)y % 16 == 0;
        if (direct) continue;
        tn_cuda_gemm_w_args w = {.to = expanded,
                                 .first_row = first,
                                 .n_rows = n,
                                 .group_rows = s->n,
                                 .counts = t->tables.counts,
                                 .ld = s->ld,
                                 .mode = s->mode};
        a->seg[i].w = expanded;
        if (w_scale) a->seg[i].w_scale = w.row_scale = w_scale + i * s->n_groups * n;
        expanded += s->n_groups * n * s->ld * 2;
        status = tn_cuda_gemm_prepare_w(t->l, w, p->w[i], s->n_groups);
    }
    return status;
}

// Columns [first, first + n) of the result.
static tn_status run_chunk(const work *t, int64_t first, int64_t n)
{
    const tn_product *p = t->p;
    const plan *s = &t->plan;
    tn_cuda_gemm_args a;
    memset(&a, 0, sizeof a);
    tn_status status = set_weights(t, first, n, &a);
    if (status != TN_OK) return status;
    a.n_segs = p->n_weights;
    a.x = t->l->scratch;
    a.row_scale = x_scales(t);
    a.tile_group = t->tables.tile_group;
    a.row_to = t->tables.row_to;
    a.n_tiles = t->tables.n_tiles;
    a.group_rows = n;
    a.n_groups = (int32_t)s->n_groups;
    a.ld = s->ld;
    a.m = (int32_t)(s->max_tiles * s->tile_rows);
    a.k = (int32_t)s->ld;
    a.act = tn_cuda_gemm_act(p);
    if (p->glu) a.glu_limit = p->glu->limit, a.glu_alpha = p->glu->alpha;
    return tn_cuda_gemm_run(t->l, &a, s->mode, p->glu != NULL);
}

tn_status tn_cuda_gemm_id_launch(const tn_cuda_launch *l, const tn_product *p)
{
    work t = {.l = l, .p = p, .plan = make_plan(l->cuda, p, l->step->precision)};
    const plan *s = &t.plan;
    t.tables = find_tables(l, s);
    tn_status status = sort_rows(&t);
    if (status == TN_OK) status = prepare_x(&t);
    if (status != TN_OK) return status;
    if (s->skinny || s->as_is) return s->skinny ? run_skinny(&t) : run_as_is(&t);
    int64_t chunk = is_direct(&t) ? s->n : s->chunk;
    for (int64_t first = 0; first < s->n && status == TN_OK; first += chunk)
        status = run_chunk(&t, first, TN_MIN(chunk, s->n - first));
    return status;
}
