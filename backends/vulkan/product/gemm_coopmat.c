// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM with cooperative matrices (gemm_coopmat.comp). convert_16bit.comp writes x to scratch first; with
// experts sort_by_expert.comp then sorts the rows. Operands are bf16 if all weights are BF16, and f16
// otherwise; a precision that the caller asks for goes first. F32 weights are converted only if the caller
// asks for it. With many rows quantised weights are expanded to 16 bits first (expand_weights.comp).
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"
#include "ops/quant.h"

#include <math.h>

enum {
    MIN_ROWS = TN_VK_GEMV_MAX_ROWS + 1, // GEMV runs what has fewer
    MIN_ROWS_OF_EXPERT = 2,             // on average: with fewer most of a tile would be empty
    MAX_EXPERTS = 4096,                 // counters in shared memory of sort_by_expert.comp
    LEAST_TILE_ROWS = 32,
    SIZE = 16,          // columns of a matrix, and rows of the right one
    SLICE = 64,         // elements of the common dimension that are in shared memory at once
    VECTOR = 16,        // bytes
    EXPANDED_UNIT = 256 // bytes of which the places of expanded weights are multiples
};
// Constants of the shader, and bits of C_FORM.
enum { C_TILE = 2, C_THREADS = 4, C_FORM };
enum { FORM_GATED = 1, FORM_EXPERTS = 2, FORM_WHOLE = 4, FORM_JOINED = 8 };
enum { TOP = 14 }; // the largest exponent of f16 is 15: rows are scaled to one below it

// --- which steps are accepted ------------------------------------------------------------------------------

static bool even_rows(const tn_view *v)
{
    return v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v) && tn_vk_row_stride(v) > 0;
}

// How many experts share the rows; 0: each row is multiplied by all weights.
static int64_t n_experts(const tn_product *p)
{
    return p->ids ? p->n_experts : 0;
}

static bool operands_fit(const tn_step *step, const tn_product *p)
{
    if (p->n_weights == 0 || !tn_vk_accepts_indexable(step) || !even_rows(p->x)) return false;
    if (p->k == 0 || (p->residual && !even_rows(p->residual))) return false;
    for (int32_t i = 0; i < p->n_results; i++)
        if (!even_rows(p->y[i])) return false;
    for (int32_t i = 0; i < p->n_weights; i++) {
        tn_dtype type = p->w[i]->dtype;
        bool number = tn_dtype_block_elems(type) > 1 || type == TN_TYPE_F32 || type == TN_TYPE_F16 ||
                      type == TN_TYPE_BF16;
        if (!number || p->w[i]->ne[2] == 0) return false;
    }
    return true;
}

static bool any_weight(const tn_product *p, tn_dtype type)
{
    for (int32_t i = 0; i < p->n_weights; i++)
        if (p->w[i]->dtype == type) return true;
    return false;
}

// Whether the caller leaves the precision to the device.
static bool may_choose(const tn_step *step)
{
    return step->precision == TN_PRECISION_auto || step->precision == TN_PRECISION_int8;
}

static bool fits_bf16(const tn_step *step, const tn_product *p)
{
    if (step->precision == TN_PRECISION_bf16) return true;
    for (int32_t i = 0; i < p->n_weights; i++)
        if (p->w[i]->dtype != TN_TYPE_BF16) return false;
    return may_choose(step);
}

static bool fits_f16(const tn_step *step, const tn_product *p)
{
    if (step->precision == TN_PRECISION_f16) return true;
    // f16 has neither the range of BF16 nor the bits of F32.
    return may_choose(step) && !any_weight(p, TN_TYPE_F32) && !any_weight(p, TN_TYPE_BF16);
}

bool tn_vk_fits_coopmat(const tn_step *step, const tn_product *p, tn_dtype element)
{
    return operands_fit(step, p) && (element == TN_TYPE_BF16 ? fits_bf16(step, p) : fits_f16(step, p));
}

static bool accepts(const tn_step *step, const tn_product *p, tn_dtype element)
{
    int64_t rows = tn_view_n_rows(&step->dst[0]), experts = n_experts(p);
    if (p->norm || rows < MIN_ROWS || rows < MIN_ROWS_OF_EXPERT * experts || experts > MAX_EXPERTS)
        return false;
    return tn_vk_fits_coopmat(step, p, element);
}

bool tn_vk_accepts_gemm_coopmat_bf16(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return accepts(step, &p, TN_TYPE_BF16);
}

bool tn_vk_accepts_gemm_coopmat_f16(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return accepts(step, &p, TN_TYPE_F16);
}

// gemm_tile.c runs it, with the same operands. Sums in f16 have a small error relative to themselves, but not
// relative to what a clamp leaves of them.
bool tn_vk_accepts_gemm_tile_f16(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    bool clamps = p.glu && p.glu->limit > 0.0f;
    return !p.ids && may_choose(step) && !clamps && tn_vk_accepts_gemm_coopmat_f16(step);
}

// --- tiles -----------------------------------------------------------------------------------------------

// Subgroups along the rows and columns of a tile, and blocks of 16 x 16 of each subgroup along both. A block
// is one matrix, or two of 8 rows.
typedef struct tile {
    int32_t teams_m, teams_n, m, n;
    // Time of a workgroup, and of as many as the device has processors while there are more. They differ
    // where several share a processor; where only one fits, a last round of few takes as long as a full one.
    float alone, many;
} tile;
// Times are ns for each element of the common dimension, bf16, on an H200 (docs/log/vulkan.md, the last
// section), where twenty other tiles, two slices in flight, slices of 32 and two buffers were slower.
static const tile tiles[] = {
    {2, 4, 4, 3, 20.5f, 20.5f}, // 128 x 192
    {2, 4, 4, 2, 16.2f, 16.2f}, // 128 x 128
    {1, 4, 4, 2, 10.0f, 13.9f}, // 64 x 128
    {2, 2, 2, 2, 6.9f, 6.5f},   // 64 x 64
    {1, 4, 2, 2, 7.5f, 6.8f},   // 32 x 128
    {1, 2, 2, 2, 6.3f, 3.9f},   // 32 x 64
    {1, 2, 2, 1, 5.2f, 3.5f},   // 32 x 32
};

static int32_t tile_rows(const tile *t)
{
    return SIZE * t->teams_m * t->m;
}

static int32_t tile_columns(const tile *t)
{
    return SIZE * t->teams_n * t->n;
}

static int32_t tile_threads(const tn_vk *v, const tile *t)
{
    return v->coopmat.subgroup * t->teams_m * t->teams_n;
}

// Shared memory as the shader has it: a slice of both operands, and in their place at the end the sums.
static bool fits(const tn_vk *v, const tile *t)
{
    int64_t slices =
                (int64_t)(tile_rows(t) + tile_columns(t)) * (SLICE * (int64_t)sizeof(uint16_t) / VECTOR + 1),
            sums = (int64_t)t->teams_m * t->teams_n * v->coopmat.rows * (4 * t->n + 1);
    return TN_MAX(slices, sums) * VECTOR <= v->max_shared && tile_threads(v, t) <= (int32_t)v->max_threads;
}

static int64_t groups_of(const tile *t, int64_t rows, int64_t columns)
{
    return tn_vk_div_up(rows, tile_rows(t)) * tn_vk_div_up(columns, tile_columns(t));
}

// Whether all weights are expanded to 16 bits once (expand_weights.comp) instead of once for each tile of
// rows. `like` has the extents that decide. Measured on an H100 with eight layers of an 8B model in Q4_K_M:
// 12 % slower with 128 rows, the same with 192 and 256, 14 % faster with 512, 24 % with 4096. Scratch for it
// is at most a part of the device's memory.
static bool expands(const tn_vk *v, const tn_product *like)
{
    enum { LEAST_ROWS = 257, SHARE_OF_MEMORY = 32 };
    bool asked =
        v->tile == (int32_t)TN_COUNT(tiles) + 1; // by the check tool: with the tile that shape chooses
    int64_t bytes = 0;
    if (like->ids || (!asked && tn_view_n_rows(like->y[0]) < LEAST_ROWS)) return false;
    for (int32_t i = 0; i < like->n_weights; i++) {
        if (tn_dtype_block_elems(like->w[i]->dtype) == 1) return false;
        bytes += like->w[i]->ne[2] * like->k * (int64_t)sizeof(uint16_t);
    }
    return bytes <= (int64_t)(v->device->memory_total / SHARE_OF_MEMORY);
}

static int64_t all_columns(const tn_product *p)
{
    int64_t n = 0;
    for (int32_t i = 0; i < p->n_weights; i++) n += p->w[i]->ne[2];
    return n;
}

// Whether several results are computed by one dispatch, as if they were one with the columns of all: where
// all weights are, or become, numbers of the type of the matrices, and results and biases are where the
// shader finds them.
static bool joins(const tn_vk *v, const tn_product *p, tn_dtype element)
{
    bool expand = expands(v, p);
    if (p->n_results < 2 || p->ids) return false;
    for (int32_t i = 0; i < p->n_results; i++) {
        bool direct = p->w[i]->dtype == element && tn_vk_aligned_elems(p->w[i], 8);
        int32_t bias = p->at.bias[0] < 0 ? -1 : p->at.bias[0] + i;
        if ((!expand && !direct) || p->y[i]->ne[0] * p->y[i]->ne[1] != 1 || p->at.bias[i] != bias)
            return false;
    }
    return true;
}

// Workgroups of all results. Of the tiles of an expert, whose rows follow no rule, half a one is empty.
static double all_groups(const tile *t, const tn_product *p, bool joined)
{
    int64_t rows = tn_view_n_rows(p->y[0]), experts = n_experts(p), across = 0;
    if (joined || p->glu)
        across = tn_vk_div_up(all_columns(p), tile_columns(t));
    else
        for (int32_t i = 0; i < p->n_results; i++) across += tn_vk_div_up(p->w[i]->ne[2], tile_columns(t));
    double down = experts > 0 ? (double)rows / tile_rows(t) + 0.5 * (double)experts
                              : (double)tn_vk_div_up(rows, tile_rows(t));
    return down * (double)across;
}

// The tile with which the product takes least time.
static const tile *choose(const tn_vk *v, const tn_product *p, bool joined)
{
    const tile *best = NULL;
    double least = 0;
    if (v->tile > 0 && v->tile <= (int32_t)TN_COUNT(tiles) && fits(v, &tiles[v->tile - 1]))
        return &tiles[v->tile - 1];
    for (const tile *t = tiles; t < tiles + TN_COUNT(tiles); t++) {
        if (!fits(v, t)) continue;
        double rounds = all_groups(t, p, joined) / (double)v->n_processors,
               time = t->many == t->alone ? t->many * ceil(rounds) : TN_MAX(t->many * rounds, t->alone);
        if (best && time >= least) continue;
        least = time;
        best = t;
    }
    return best;
}

// --- launch ----------------------------------------------------------------------------------------------

static int64_t most_blocks(const tn_product *p, int64_t rows)
{
    return tn_view_n_rows(p->y[0]) / rows + n_experts(p);
}

// As the shaders unpack it (TILE).
static int32_t tile_constant(const tile *t)
{
    return t->teams_m | t->teams_n << 4 | t->m << 8 | t->n << 12;
}

static void launch_sort(const tn_step *step, const tn_product *p, const tile *t, tn_vk_dispatch *d)
{
    tn_vk_product_bind(step, p, 0, d);
    d->constants[0] = d->constants[1] = 0;
    d->constants[C_TILE] = tile_constant(t);
    d->args.n[TN_VK_N_PRODUCT_BLOCKS] = (int32_t)most_blocks(p, tile_rows(t));
    d->shader = TN_VK_SHADER_sort_by_expert;
    d->groups = 1;
}

// --- weights that are expanded before ---------------------------------------------------------------------

// Where in scratch the expanded weight i starts; n_weights: where all end.
static int64_t expanded_at(const tn_step *step, const tn_product *p, int32_t i)
{
    int64_t at =
        tn_vk_div_up(tn_vk_convert_16bit_size(step, TN_VK_ORDER_NONE), EXPANDED_UNIT) * EXPANDED_UNIT;
    for (int32_t w = 0; w < i; w++)
        at += tn_vk_div_up(p->w[w]->ne[2] * p->k * (int64_t)sizeof(uint16_t), EXPANDED_UNIT) * EXPANDED_UNIT;
    return at;
}

static void launch_expand(const tn_step *step, const tn_product *p, int32_t i, tn_dtype element,
                          tn_vk_dispatch *d)
{
    enum { C_ELEMENT = 2, RUN = 16, RUNS = 256 }; // RUNS: of a workgroup
    tn_vk_product_bind(step, p, p->glu ? 0 : i, d);
    tn_vk_weight_planes(p->w[i], &d->args.weight[0]);
    d->constants[0] = d->constants[1] = p->w[i]->dtype;
    d->constants[C_ELEMENT] = element;
    d->args.n[TN_VK_N_PRODUCT_EXPANDED] = (int32_t)(expanded_at(step, p, i) / EXPANDED_UNIT);
    d->shader = TN_VK_SHADER_expand_weights;
    d->groups = p->w[i]->ne[2] * tn_vk_div_up(p->k / RUN, RUNS);
}

// Puts the expanded weights in the place of those of result i.
static void use_expanded(const tn_step *step, const tn_product *p, int32_t i, tn_dtype element,
                         tn_vk_dispatch *d)
{
    for (int32_t w = 0; w < TN_VK_MAX_WEIGHTS; w++) {
        d->args.weight[w] = (tn_vk_weight){.plane = {(uint64_t)expanded_at(step, p, p->glu ? w : i)},
                                           .row_size = {p->k * (int64_t)sizeof(uint16_t)}};
        d->constants[w] = element;
    }
    for (int32_t w = 1; w < p->n_weights && d->constants[C_FORM] & FORM_JOINED; w++) {
        d->args.weight[0].plane[w] = (uint64_t)expanded_at(step, p, w);
        d->args.weight[0].row_size[w] = d->args.weight[0].row_size[0];
    }
    d->constants[TN_VK_LAYOUT] = 1;
    d->expanded = true;
}

// Makes the first result all of them. The weights, which have one plane, take the places of planes.
static void join_results(const tn_product *p, const tile *t, tn_vk_dispatch *d)
{
    for (int32_t i = 1; i < p->n_results; i++) {
        tn_vk_weight w;
        tn_vk_weight_planes(p->w[i], &w);
        d->args.weight[0].plane[i] = w.plane[0];
        d->args.weight[0].row_size[i] = w.row_size[0];
    }
    d->constants[C_FORM] |= FORM_JOINED;
    d->args.n[TN_VK_N_PRODUCT_COLUMNS] = (int32_t)all_columns(p);
    d->groups = groups_of(t, d->args.n[TN_VK_N_PRODUCT_ROWS], all_columns(p));
}

static void launch_result(const tn_step *step, const tn_product *p, int32_t i, const tile *t,
                          tn_vk_dispatch *d)
{
    int32_t *c = d->constants, *n = d->args.n;
    tn_vk_product_bind(step, p, i, d);
    bool gated = p->glu != NULL, experts = p->ids != NULL;
    c[C_TILE] = tile_constant(t);
    c[C_THREADS] = tile_threads(d->v, t);
    c[C_FORM] =
        (gated ? FORM_GATED : 0) | (experts ? FORM_EXPERTS : 0) | (p->k % SLICE == 0 ? FORM_WHOLE : 0);
    c[TN_VK_LAYOUT] = tn_vk_aligned_elems(p->w[i], 8) && (!gated || tn_vk_aligned_elems(p->w[1], 8));
    int64_t columns = (int64_t)n[TN_VK_N_PRODUCT_COLUMNS] * (gated ? 2 : 1);
    d->groups = groups_of(t, n[TN_VK_N_PRODUCT_ROWS], columns);
    if (experts) {
        n[TN_VK_N_PRODUCT_BLOCKS] = (int32_t)most_blocks(p, tile_rows(t));
        d->groups = n[TN_VK_N_PRODUCT_BLOCKS] * groups_of(t, 1, columns);
    }
    d->waits = i == 0;
}

static int32_t launch(const tn_step *step, int32_t i, tn_dtype element, int32_t shader, tn_vk_dispatch *d)
{
    tn_product p = tn_product_get(step), like = tn_product_get(d->like);
    bool expand = expands(d->v, &like), joined = joins(d->v, &like, element);
    const tile *t = choose(d->v, &like, joined);
    int32_t before = p.ids ? 2 : expand ? 1 + p.n_weights : 1; // dispatches before that of the first result
    d->scratch =
        expand ? expanded_at(step, &p, p.n_weights) : tn_vk_convert_16bit_size(step, TN_VK_ORDER_NONE);
    if (p.ids)
        d->scratch += VECTOR * (1 + most_blocks(&p, LEAST_TILE_ROWS)) +
                      tn_view_n_rows(p.y[0]) * (int64_t)sizeof(int32_t);
    if (i == 0) {
        tn_vk_launch_convert_16bit(step, element, TOP, TN_VK_ORDER_NONE, d);
    } else if (i < before) {
        if (expand)
            launch_expand(step, &p, i - 1, element, d);
        else
            launch_sort(step, &p, t, d);
    } else {
        launch_result(step, &p, i - before, t, d);
        if (joined) join_results(&p, t, d);
        if (expand) use_expanded(step, &p, i - before, element, d);
        d->shader = shader;
    }
    return before + (joined ? 1 : p.n_results);
}

int32_t tn_vk_launch_gemm_coopmat_f16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    bool rows_8 = d->v->coopmat.rows == 8;
    return launch(step, i, TN_TYPE_F16,
                  rows_8 ? TN_VK_SHADER_gemm_coopmat_8_f16 : TN_VK_SHADER_gemm_coopmat_f16, d);
}

int32_t tn_vk_launch_gemm_coopmat_bf16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    bool rows_8 = d->v->coopmat.rows == 8;
    return launch(step, i, TN_TYPE_BF16,
                  rows_8 ? TN_VK_SHADER_gemm_coopmat_8_bf16 : TN_VK_SHADER_gemm_coopmat_bf16, d);
}
