// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of many rows with matrices of subgroups (shaders/gemm_matrix.comp). x is rounded into
// scratch first. Which elements: those of the weights if all are BF16, else f16; what precision asks for goes
// first. F32 weights are not rounded unless it is asked for.
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"
#include "ops/quant.h"

enum {
    MIN_ROWS = 9,
    MIN_FOR_EXPERT = 2,
    MAX_EXPERTS = 4096,
    LEAST_TILE = 32,
    X_UNIT = 64,
    SUBGROUP = 32,
    SIZE = 16,
    UNIT = 16
};
// Workgroups that a product is split into if it is large enough: enough for the large devices of today.
enum { WANTED_GROUPS = 96 };
// args.n and constants of the shaders, beyond those of all products.
enum { N_X_STRIDE = 12, N_RESIDUAL_STRIDE, N_RESULT_STRIDE, N_BLOCKS };
enum { C_TOP = 1, C_TILE, C_THREADS = 4, C_FORM };
enum { TOP = 14 }; // that of f16 is 15

static int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// --- what is taken -------------------------------------------------------------------------------------

// Bytes from one row to the next; 0: they are not evenly spaced, or further apart than the shaders count.
static int64_t row_stride(const tn_view *v)
{
    int64_t stride = v->ne[2] > 1 ? v->nb[2] : v->ne[1] > 1 ? v->nb[1] : v->ne[0] > 1 ? v->nb[0] : v->nb[2];
    bool even = (v->ne[1] == 1 || v->nb[1] == stride * v->ne[2]) &&
                (v->ne[0] == 1 || v->nb[0] == stride * v->ne[2] * v->ne[1]);
    return even && stride > 0 && stride <= INT32_MAX ? stride : 0;
}

static bool even_rows(const tn_view *v)
{
    return v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v) && row_stride(v) > 0;
}

static int32_t n_weights(const tn_step *step)
{
    if (step->op == TN_OP_matmul_multi) return ((const tn_matmul_multi_params *)step->params)->n_weights;
    return step->op == TN_OP_matmul_glu || step->op == TN_OP_matmul_id_glu ? 2 : 1;
}

// How many experts share the rows; 0: each row meets all weights.
static int64_t n_experts(const tn_step *step)
{
    return step->op == TN_OP_matmul_id || step->op == TN_OP_matmul_id_glu ? step->src[1].ne[1] : 0;
}

static const tn_view *residual_of(const tn_step *step)
{
    const tn_linear_params *p = step->op == TN_OP_linear ? step->params : NULL;
    return p && p->has_residual ? &step->src[2 + (p->has_bias != 0)] : NULL;
}

static bool takes(const tn_step *step)
{
    const tn_view *residual = residual_of(step);
    int64_t rows = tn_view_n_rows(&step->dst[0]), experts = n_experts(step);
    if (!tn_vk_accepts_gemm_tile(step) || rows < MIN_ROWS || !even_rows(&step->src[0])) return false;
    if (rows < MIN_FOR_EXPERT * experts || experts > MAX_EXPERTS) return false;
    if (step->src[0].ne[3] == 0 || (residual && !even_rows(residual))) return false;
    for (int32_t i = 0; i < step->n_dst; i++)
        if (!even_rows(&step->dst[i])) return false;
    for (int32_t i = 1; i <= n_weights(step); i++) {
        tn_dtype type = step->src[i].dtype;
        bool number = tn_dtype_block_elems(type) > 1 || type == TN_TYPE_F32 || type == TN_TYPE_F16 ||
                      type == TN_TYPE_BF16;
        if (!number || step->src[i].ne[2] == 0) return false;
    }
    return true;
}

static bool any_weight(const tn_step *step, tn_dtype type)
{
    for (int32_t i = 1; i <= n_weights(step); i++)
        if (step->src[i].dtype == type) return true;
    return false;
}

// Whether the device may choose.
static bool is_free(const tn_step *step)
{
    return step->precision == TN_PRECISION_auto || step->precision == TN_PRECISION_int8;
}

bool tn_vk_accepts_gemm_coopmat_bf16(const tn_step *step)
{
    if (!takes(step)) return false;
    if (step->precision == TN_PRECISION_bf16) return true;
    for (int32_t i = 1; i <= n_weights(step); i++)
        if (step->src[i].dtype != TN_TYPE_BF16) return false;
    return is_free(step);
}

bool tn_vk_accepts_gemm_coopmat_f16(const tn_step *step)
{
    if (!takes(step)) return false;
    if (step->precision == TN_PRECISION_f16) return true;
    // Neither has the range or the bits to spare.
    return is_free(step) && !any_weight(step, TN_TYPE_F32) && !any_weight(step, TN_TYPE_BF16);
}

// Sums in f16 are off by little against themselves, but not against what a clamp leaves of them.
bool tn_vk_accepts_gemm_tile_f16(const tn_step *step)
{
    bool clamps =
        step->op == TN_OP_matmul_glu && ((const tn_matmul_glu_params *)step->params)->glu.limit > 0.0f;
    return is_free(step) && !clamps && tn_vk_accepts_gemm_coopmat_f16(step);
}

// --- tiles -----------------------------------------------------------------------------------------------

// Subgroups over the rows and columns of a tile, matrices of each of them, matrices in a piece of the common
// dimension, and how many pieces shared memory holds.
typedef struct tile {
    int32_t teams_m, teams_n, m, n, k, buffers;
} tile;
static const tile tiles[] = {
    {2, 4, 4, 2, 4, 1}, // 128 x 128, deep
    {2, 2, 2, 4, 2, 2}, // 64 x 128
    {1, 4, 2, 2, 2, 2}, // 32 x 128
    {1, 2, 2, 2, 4, 2}, // 32 x 64, deep
    {1, 2, 2, 1, 4, 2}, // 32 x 32, deep
    {4, 2, 4, 4, 2, 1}, // 256 x 128
    {2, 2, 4, 4, 4, 1}, // 128 x 128, deep, half the subgroups
    {2, 4, 4, 2, 2, 2}, // 128 x 128, two buffers
};
// The first ones are those that the shape chooses from, larger ones first: they load less for the same work.
// The others are there to be measured. Half the subgroups leave most of a multiprocessor empty where there
// are no more tiles than multiprocessors. Deep pieces: a large device takes longer to bring one than to
// multiply a shallow one. Two pieces on their way, or 128 x 256, were slower everywhere.
enum { N_CHOSEN = 5 };

static int32_t tile_rows(const tile *t)
{
    return SIZE * t->teams_m * t->m;
}

static int32_t tile_columns(const tile *t)
{
    return SIZE * t->teams_n * t->n;
}

static int32_t tile_threads(const tile *t)
{
    return SUBGROUP * t->teams_m * t->teams_n;
}

// As the shader has it.
static bool fits(const tn_vk *v, const tile *t)
{
    int64_t pieces = (int64_t)t->buffers * (tile_rows(t) + tile_columns(t)) * (2 * t->k + 1),
            stage = (int64_t)t->teams_m * t->teams_n * SIZE * (4 * t->n + 1);
    return TN_MAX(pieces, stage) * UNIT <= v->max_shared && tile_threads(t) <= (int32_t)v->max_threads;
}

static int64_t groups_of(const tile *t, int64_t rows, int64_t columns)
{
    return div_up(rows, tile_rows(t)) * div_up(columns, tile_columns(t));
}

// The largest one that makes enough workgroups and is not much higher than there are rows.
static const tile *choose(const tn_vk *v, const tn_step *step)
{
    int64_t rows = tn_view_n_rows(&step->dst[0]), experts = n_experts(step), columns = 0;
    const tile *t = NULL;
    if (v->tile > 0 && v->tile <= (int32_t)TN_COUNT(tiles) && fits(v, &tiles[v->tile - 1]))
        return &tiles[v->tile - 1];
    for (int32_t i = 1; i <= n_weights(step); i++) columns += step->src[i].ne[2];
    if (experts > 0) rows = div_up(rows, experts), columns *= experts;
    for (int32_t i = 0; i < N_CHOSEN; i++) {
        if (!fits(v, &tiles[i])) continue;
        t = &tiles[i];
        if (tile_rows(t) < 2 * rows && groups_of(t, rows, columns) >= WANTED_GROUPS) break;
    }
    return t;
}

// --- launch ----------------------------------------------------------------------------------------------

static bool aligned(const tn_view *v, int64_t elems)
{
    uint64_t bits =
        (uint64_t)(uintptr_t)v->data | (uint64_t)v->nb[0] | (uint64_t)v->nb[1] | (uint64_t)v->nb[2];
    return v->ne[3] % elems == 0 && bits % UNIT == 0;
}

void tn_vk_launch_convert_16bit(const tn_step *step, tn_dtype element, int32_t top, tn_vk_dispatch *d)
{
    const tn_view *x = &step->src[0];
    d->shader = TN_VK_SHADER_convert_16bit;
    d->constants[0] = element;
    d->constants[C_TOP] = top;
    d->constants[TN_VK_LAYOUT] = aligned(x, 4);
    d->args.n[TN_VK_N_ROWS] = (int32_t)tn_view_n_rows(x);
    d->args.n[N_X_STRIDE] = (int32_t)row_stride(x);
    d->groups = tn_view_n_rows(x);
}

int64_t tn_vk_convert_16bit_size(const tn_step *step)
{
    int64_t rows = tn_view_n_rows(&step->src[0]), row = div_up(step->src[0].ne[3], X_UNIT) * X_UNIT * 2;
    return div_up(rows * (int64_t)sizeof(float), 256) * 256 + rows * row;
}

static int64_t most_blocks(const tn_step *step, int64_t rows)
{
    return tn_view_n_rows(&step->dst[0]) / rows + n_experts(step);
}

static int32_t tile_constant(const tile *t)
{
    return t->teams_m | t->teams_n << 4 | t->m << 8 | t->n << 12 | t->k << 16 | t->buffers << 20;
}

static void launch_rows(const tn_step *step, tn_vk_dispatch *d)
{
    const tile *t = choose(d->v, d->like);
    tn_vk_set_product(step, 0, d);
    d->constants[0] = d->constants[1] = 0;
    d->constants[C_TILE] = tile_constant(t);
    d->args.n[N_BLOCKS] = (int32_t)most_blocks(step, tile_rows(t));
    d->shader = TN_VK_SHADER_sort_by_expert;
    d->groups = 1;
}

static void launch_product(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int32_t *c = d->constants, *n = d->args.n;
    const tile *t = choose(d->v, d->like);
    const tn_view *residual = residual_of(step);
    tn_vk_set_product(step, i, d);
    bool gated = n[TN_VK_N_GLU] >= 0, experts = n_experts(step) > 0;
    c[C_TILE] = tile_constant(t);
    c[C_THREADS] = tile_threads(t);
    c[C_FORM] = gated | experts << 1;
    c[TN_VK_LAYOUT] = aligned(&step->src[1 + i], 8) && (!gated || aligned(&step->src[2], 8));
    n[N_RESULT_STRIDE] = (int32_t)row_stride(&step->dst[i]);
    n[N_RESIDUAL_STRIDE] = residual ? (int32_t)row_stride(residual) : 0;
    d->groups = groups_of(t, n[TN_VK_N_ROWS], (int64_t)n[TN_VK_N_COLUMNS] * (gated ? 2 : 1));
    if (experts) {
        n[N_BLOCKS] = (int32_t)most_blocks(step, tile_rows(t));
        d->groups = n[N_BLOCKS] * groups_of(t, 1, (int64_t)n[TN_VK_N_COLUMNS] * (gated ? 2 : 1));
    }
    d->after = i == 0;
}

static int32_t launch(const tn_step *step, int32_t i, tn_dtype element, int32_t shader, tn_vk_dispatch *d)
{
    int32_t before = n_experts(step) > 0 ? 2 : 1; // dispatches
    d->scratch = tn_vk_convert_16bit_size(step);
    if (before == 2)
        d->scratch += UNIT * (1 + most_blocks(step, LEAST_TILE)) +
                      tn_view_n_rows(&step->dst[0]) * (int64_t)sizeof(int32_t);
    if (i == 0) {
        tn_vk_launch_convert_16bit(step, element, TOP, d);
    } else if (i < before) {
        launch_rows(step, d);
    } else {
        launch_product(step, i - before, d);
        d->shader = shader;
    }
    return before + (step->op == TN_OP_matmul_multi ? n_weights(step) : 1);
}

int32_t tn_vk_launch_gemm_coopmat_f16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_F16, TN_VK_SHADER_gemm_coopmat_f16, d);
}

int32_t tn_vk_launch_gemm_coopmat_bf16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_BF16, TN_VK_SHADER_gemm_coopmat_bf16, d);
}
