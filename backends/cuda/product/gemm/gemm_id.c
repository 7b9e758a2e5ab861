// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of experts (matmul_id, matmul_id_glu) for many tokens: rows of x are sorted by expert on the device,
// each expert beginning a tile of its own, and multiplied like a product whose tiles of rows have different
// weights. With few rows for each expert the kernels of skinny.cuh read the weights as they are, with more
// they are expanded, those of experts that are used.
#include "backends/cuda/product/gemm/gemm.h"
#include "core/compiler.h"

#include <string.h>

#define WEIGHT_ROOM ((size_t)512 << 20) // bytes of scratch for expanded weights
enum { MIN_TOKENS = 9, ALIGN = 256, SKINNY_ROWS = TN_SKINNY_BLOCK_COLUMNS };
// Rows of x for an expert, on average, up to which weights are not worth expanding.
enum { SKINNY_AVERAGE = 40 };

// --- what a step asks for ----------------------------------------------------------------------------

static bool is_glu(const tn_step *step)
{
    return step->op == TN_OP_matmul_id_glu;
}

static const tn_view *ids_of(const tn_step *step)
{
    return &step->src[step->n_src - 1];
}

static bool takes(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *x = &step->src[0], *w = &step->src[1], *ids = ids_of(step), *y = &step->dst[0];
    const tn_matmul_id_glu_params *p = step->params;
    int64_t n_ids = tn_view_n_elems(ids);
    if (cuda->compute < 80 || ids->ne[2] < MIN_TOKENS || n_ids > INT32_MAX / 256 || x->ne[3] == 0 || x->ne[3] > INT32_MAX / 8) return false;
    if (x->dtype != TN_TYPE_F32 || !tn_view_rows_contiguous(x) || !tn_view_contiguous(ids) || !tn_view_contiguous(y)) return false;
    if (w->ne[2] == 0 || w->ne[1] == 0 || w->ne[1] > TN_GEMM_MAX_GROUPS || w->ne[1] * w->ne[2] > INT32_MAX / 2) return false;
    if (is_glu(step) && !tn_cuda_gemm_act_known(p->glu.act)) return false;
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++)
        if (!tn_cuda_gemm_type_known(step->src[1 + i].dtype)) return false;
    return true;
}

bool tn_cuda_gemm_id_accepts_bf16(const tn_cuda *cuda, const tn_step *step)
{
    return takes(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_BF16;
}

bool tn_cuda_gemm_id_accepts_f32(const tn_cuda *cuda, const tn_step *step)
{
    return takes(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_BF16X3;
}

bool tn_cuda_gemm_id_accepts_f16(const tn_cuda *cuda, const tn_step *step)
{
    return takes(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_F16;
}

bool tn_cuda_gemm_id_accepts_tf32(const tn_cuda *cuda, const tn_step *step)
{
    return takes(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_TF32;
}

bool tn_cuda_gemm_id_accepts_e4m3(const tn_cuda *cuda, const tn_step *step)
{
    return takes(cuda, step) && tn_cuda_gemm_mode(cuda, step) == TN_GEMM_E4M3;
}

// --- plan --------------------------------------------------------------------------------------------

typedef struct plan {
    int32_t mode;
    bool few, blocks, glu; // blocks: few rows, weights of block types
    int64_t n_ids, n_groups, n, k, ld;
    int64_t tile_rows, max_tiles; // tiles of rows there can be
    int64_t chunk;                // rows of each expert that are expanded at a time
    size_t x_size, scale_size, table_size, w_scale_size, w_size;
} plan;

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

static bool is_f16(tn_dtype type)
{
    return type == TN_TYPE_F16;
}

static bool skinny_types(const tn_step *step, int32_t mode)
{
    bool f16 = tn_cuda_skinny_all_weights(step, tn_cuda_skinny_block_type) || tn_cuda_skinny_all_weights(step, is_f16);
    bool same = !is_glu(step) || step->src[1].dtype == step->src[2].dtype;
    return same && ((mode == TN_GEMM_F16 && f16) || (mode == TN_GEMM_BF16 && tn_cuda_gemm_all_weights(step, TN_TYPE_BF16)));
}

static plan make_plan(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *w = &step->src[1];
    plan p = {.mode = tn_cuda_gemm_mode(cuda, step), .glu = is_glu(step), .n_ids = tn_view_n_elems(ids_of(step)), .n_groups = w->ne[1], .n = w->ne[2], .k = w->ne[3]};
    p.few = skinny_types(step, p.mode) && p.n_ids <= SKINNY_AVERAGE * p.n_groups;
    p.ld = tn_cuda_gemm_row_units(p.mode, p.k);
    p.tile_rows = p.few ? SKINNY_ROWS : TN_GEMM_ROWS;
    p.max_tiles = p.n_ids / p.tile_rows + TN_MIN(p.n_groups, p.n_ids);
    int64_t rows = p.max_tiles * p.tile_rows;
    p.blocks = p.few && tn_cuda_skinny_block_type(w->dtype);
    p.x_size = p.blocks ? aligned((int64_t)tn_cuda_skinny_block_x_size(p.max_tiles, p.k)) : aligned(rows * p.ld * 2);
    p.scale_size = aligned(rows * 4);
    p.table_size = aligned(4 * (2 * rows + p.max_tiles + p.n_groups + 1));
    int64_t row_size = p.n_groups * p.ld * 2 * tn_cuda_gemm_n_weights(step); // of a row of each expert
    p.chunk = TN_MIN(p.n, TN_MAX((int64_t)WEIGHT_ROOM / row_size / TN_GEMM_ROWS, 1) * TN_GEMM_ROWS);
    if (!p.few) p.w_size = (size_t)(p.chunk * row_size);
    if (tn_cuda_gemm_scales_w(p.mode)) p.w_scale_size = aligned(4 * p.n_groups * p.chunk * tn_cuda_gemm_n_weights(step));
    return p;
}

bool tn_cuda_skinny_id_accepts_blocks(const tn_cuda *cuda, const tn_step *step)
{
    return takes(cuda, step) && make_plan(cuda, step).blocks;
}

bool tn_cuda_skinny_id_accepts_exact(const tn_cuda *cuda, const tn_step *step)
{
    return tn_cuda_skinny_id_accepts_blocks(cuda, step) && tn_cuda_skinny_all_weights(step, tn_cuda_skinny_exact_type);
}

size_t tn_cuda_gemm_id_scratch(const tn_cuda *cuda, const tn_step *step)
{
    plan p = make_plan(cuda, step);
    return p.x_size + p.scale_size + p.table_size + p.w_scale_size + p.w_size;
}

// --- launches ----------------------------------------------------------------------------------------

typedef struct tables {
    int32_t *row_from, *row_to, *tile_group, *counts, *n_tiles;
} tables;

static tables find_tables(const tn_cuda_launch *l, const plan *p)
{
    int64_t rows = p->max_tiles * p->tile_rows;
    int32_t *at = (int32_t *)(void *)(l->scratch + p->x_size + p->scale_size);
    return (tables){at, at + rows, at + 2 * rows, at + 2 * rows + p->max_tiles, at + 2 * rows + p->max_tiles + p->n_groups};
}

static float *scales(const tn_cuda_launch *l, const plan *p)
{
    return tn_cuda_gemm_scales_x(p->mode) ? (float *)(void *)(l->scratch + p->x_size) : NULL;
}

static tn_status sort_rows(const tn_cuda_launch *l, const plan *p, const tables *t)
{
    const tn_view *x = &l->step->src[0], *ids = ids_of(l->step);
    tn_cuda_gemm_groups_args a = {
        .ids = ids->data, .n_ids = (int32_t)p->n_ids, .used = (int32_t)ids->ne[3], .per_id = x->ne[2] > 1, .n_groups = (int32_t)p->n_groups,
        .tile_rows = (int32_t)p->tile_rows, .tile_group = t->tile_group, .row_from = t->row_from, .row_to = t->row_to,
        .n_tiles = t->n_tiles, .counts = t->counts};
    tn_cuda_grid grid = {.x = 1, .y = 1, .z = 1, .threads = TN_GEMM_MAX_GROUPS};
    tn_status status = tn_cuda_run(l, TN_CUDA_MODULE_gemm_prepare, "tn_gemm_groups", &grid, &a);
    if (status != TN_OK) return status;
    tn_cuda_gemm_x_args b = {
        .to = l->scratch, .row_scale = scales(l, p), .row_from = t->row_from, .n_tiles = t->n_tiles, .tile_rows = (int32_t)p->tile_rows,
        .ids = ids->data, .n_ids = (int32_t)p->n_ids, .n_groups = (int32_t)p->n_groups, .y = l->step->dst[0].data, .y_n = p->n,
        .m = (int32_t)(p->max_tiles * p->tile_rows), .ld = p->ld, .mode = p->mode,
        .finite_rows = tn_cuda_skinny_all_weights(l->step, tn_cuda_skinny_exact_type)};
    tn_cuda_gemm_operands none = {.act = TN_UNARY_NONE};
    return p->blocks ? tn_cuda_skinny_prepare_x(l, b, &none) : tn_cuda_gemm_prepare_x(l, b, &none);
}

static tn_status run_skinny(const tn_cuda_launch *l, const plan *p, const tables *t)
{
    const tn_step *step = l->step;
    tn_cuda_skinny_args a;
    memset(&a, 0, sizeof a);
    a.wide = 1;
    for (int32_t i = 0; i < 1 + p->glu; i++) {
        const tn_view *w = &step->src[1 + i];
        a.seg[i] = (tn_cuda_skinny_seg){.w = tn_cuda_weight_planes(w), .y = step->dst[0].data, .ld = p->n, .n = (int32_t)p->n};
        if (tn_dtype_block_elems(w->dtype) == 1 && ((uintptr_t)w->data % 16 != 0 || p->k % 16 != 0)) a.wide = 0;
    }
    a.n_segs = 1 + p->glu;
    a.x = l->scratch;
    a.row_scale = scales(l, p);
    a.tile_group = t->tile_group;
    a.row_to = t->row_to;
    a.n_row_tiles = t->n_tiles;
    a.group_rows = p->n;
    a.ld = p->ld;
    a.m = (int32_t)(p->blocks ? p->max_tiles * p->tile_rows : p->tile_rows);
    a.k = (int32_t)p->k;
    a.glu = p->glu;
    a.act = TN_UNARY_NONE;
    if (p->glu) {
        const tn_matmul_id_glu_params *g = step->params;
        a.act = g->glu.act;
        a.glu_limit = g->glu.limit;
        a.glu_alpha = g->glu.alpha;
    }
    return tn_cuda_skinny_run(l, &a, step->src[1].dtype, p->max_tiles);
}

// Columns [first, first + n) of the result, from the weights themselves or expanded ones.
static tn_status run_chunk(const tn_cuda_launch *l, const plan *p, const tables *t, int64_t first, int64_t n)
{
    const tn_step *step = l->step;
    char *at = l->scratch + p->x_size + p->scale_size + p->table_size, *room = at + p->w_scale_size;
    float *w_scale = tn_cuda_gemm_scales_w(p->mode) ? (float *)(void *)at : NULL;
    tn_cuda_gemm_args a;
    memset(&a, 0, sizeof a);
    bool direct = n == p->n;
    for (int32_t i = 0; i < 1 + p->glu; i++) direct = direct && tn_cuda_gemm_direct(p->mode, &step->src[1 + i]);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < 1 + p->glu && status == TN_OK; i++) {
        float *y = (float *)step->dst[0].data + first;
        a.seg[i] = (tn_cuda_gemm_seg){.y = y, .w = step->src[1 + i].data, .ld = p->n, .n = (int32_t)n};
        a.seg[i].wide = p->n % 4 == 0 && (uintptr_t)y % 16 == 0;
        if (!p->glu || i == 0) a.seg[i].first_unit = 0;
        if (direct) continue;
        tn_cuda_gemm_w_args w = {.to = room, .first_row = first, .n_rows = n, .group_rows = p->n, .counts = t->counts, .ld = p->ld, .mode = p->mode};
        a.seg[i].w = room;
        if (w_scale) a.seg[i].w_scale = w.row_scale = w_scale + i * p->n_groups * n;
        room += p->n_groups * n * p->ld * 2;
        status = tn_cuda_gemm_prepare_w(l, w, &step->src[1 + i], p->n_groups);
    }
    if (status != TN_OK) return status;
    a.n_segs = 1 + p->glu;
    a.x = l->scratch;
    a.row_scale = scales(l, p);
    a.tile_group = t->tile_group;
    a.row_to = t->row_to;
    a.n_tiles = t->n_tiles;
    a.group_rows = n;
    a.n_groups = (int32_t)p->n_groups;
    a.ld = p->ld;
    a.m = (int32_t)(p->max_tiles * p->tile_rows);
    a.k = (int32_t)p->ld;
    a.act = TN_UNARY_NONE;
    if (p->glu) {
        const tn_matmul_id_glu_params *g = step->params;
        a.act = g->glu.act;
        a.glu_limit = g->glu.limit;
        a.glu_alpha = g->glu.alpha;
    }
    return tn_cuda_gemm_run(l, &a, p->mode, p->glu);
}

tn_status tn_cuda_gemm_id_launch(const tn_cuda_launch *l)
{
    plan p = make_plan(l->cuda, l->step);
    tables t = find_tables(l, &p);
    tn_status status = sort_rows(l, &p, &t);
    if (status != TN_OK || p.few) return status == TN_OK ? run_skinny(l, &p, &t) : status;
    bool direct = true;
    for (int32_t i = 0; i < 1 + p.glu; i++) direct = direct && tn_cuda_gemm_direct(p.mode, &l->step->src[1 + i]);
    int64_t chunk = direct ? p.n : p.chunk;
    for (int64_t first = 0; first < p.n && status == TN_OK; first += chunk) status = run_chunk(l, &p, &t, first, TN_MIN(chunk, p.n - first));
    return status;
}
