// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products with up to 8 rows of x (product/matvec/matvec.cuh): which steps, and how rows, slices and rings are laid out.
#include "backends/cuda/product/matvec/matvec.h"

#include "core/compiler.h"

#include <stdio.h>
#include <string.h>

enum {
    ALIGN = 16,
    MAX_PAIRS = 256,
    STATIC_SIZE = 1536, // at least what the kernels declare
};

// Types of which the kernels round the activations.
static bool rounds(tn_dtype t)
{
    return tn_dtype_block_elems(t) > 1 && t != TN_TYPE_Q8_1 && t != TN_TYPE_Q8_K;
}

static bool plain(tn_dtype t)
{
    return t == TN_TYPE_F32 || t == TN_TYPE_F16 || t == TN_TYPE_BF16;
}

static const struct {
    tn_dtype dtype;
    int32_t module[2];    // one column, more
    const char *entry[4]; // 1, 2, 4, 8 columns
} entries[] = {
#define OFTEN(type)                                               \
    {TN_TYPE_##type,                                              \
     {TN_CUDA_MODULE_matvec_common, TN_CUDA_MODULE_matvec_common_rows},    \
     {"tn_matvec_" #type "_1", "tn_matvec_" #type "_2", "tn_matvec_" #type "_4", "tn_matvec_" #type "_8"}}
#define SELDOM(type, module) \
    {TN_TYPE_##type, {TN_CUDA_MODULE_##module, TN_CUDA_MODULE_##module}, {"tn_matvec_" #type "_1", NULL, "tn_matvec_" #type "_4", NULL}}
    OFTEN(F16), OFTEN(BF16), OFTEN(Q4_0), OFTEN(Q8_0), OFTEN(Q4_K), OFTEN(Q6_K),
    SELDOM(F32, matvec_blocks), SELDOM(Q4_1, matvec_blocks), SELDOM(Q5_0, matvec_blocks), SELDOM(Q5_1, matvec_blocks),
    SELDOM(Q5_K, matvec_blocks), SELDOM(Q2_K, matvec_blocks), SELDOM(Q3_K, matvec_blocks), SELDOM(IQ4_NL, matvec_blocks),
    SELDOM(IQ4_XS, matvec_blocks), SELDOM(MXFP4, matvec_blocks), SELDOM(NVFP4, matvec_blocks),
    SELDOM(IQ2_XXS, matvec_codebook), SELDOM(IQ2_XS, matvec_codebook), SELDOM(IQ2_S, matvec_codebook), SELDOM(IQ3_XXS, matvec_codebook),
    SELDOM(IQ3_S, matvec_codebook), SELDOM(IQ1_S, matvec_codebook), SELDOM(IQ1_M, matvec_codebook), 
    SELDOM(TQ2_0, matvec_codebook), SELDOM(Q1_0, matvec_codebook), SELDOM(Q2_0, matvec_codebook),
};

static int32_t entry_of(tn_dtype t)
{
    for (int32_t i = 0; i < (int32_t)TN_COUNT(entries); i++)
        if (entries[i].dtype == t) return i;
    return -1;
}

// --- the plan -----------------------------------------------------------------------------------------

static int32_t align_up(int64_t n)
{
    return (int32_t)((n + ALIGN - 1) / ALIGN * ALIGN);
}

// Bytes of a slot of a ring.
static int32_t slot_size(tn_dtype type)
{
    tn_cuda_pack_args layout;
    tn_cuda_layout_get(type, &layout);
    if (plain(type)) layout.unit[0] = ALIGN;
    int32_t room = 0;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++) room += TN_MATVEC_TILE_ROOM(type, layout.unit[p]);
    return TN_MATVEC_ROWS * room;
}

static int32_t x_size(tn_dtype type, int32_t k)
{
    return plain(type) ? align_up((int64_t)k * 4) : align_up((int64_t)k + k / 4 + k / 8);
}

// As many warps and slots as fit into `room` bytes; returns the warps, 0: not even few.
static int32_t choose_rings(tn_cuda_matvec_args *a, tn_dtype type, int32_t size, int64_t room)
{
    int64_t most = TN_MAX(TN_MIN(TN_MATVEC_RING(type) / size, (int32_t)TN_MATVEC_MOST_SLOTS), TN_MATVEC_LEAST_SLOTS + 1);
    for (int32_t warps = TN_MATVEC_WARPS; warps >= TN_MATVEC_WARPS / 2; warps /= 2) {
        int64_t slots = TN_MIN(most, room / ((int64_t)warps * size));
        a->n_slots = (int32_t)slots;
        if (slots >= TN_MATVEC_LEAST_SLOTS + (warps == TN_MATVEC_WARPS)) return warps;
    }
    return 0;
}

// The cost of a block's rows when rows are cut into slices of so many tiles: that of the warp that has most. Sums cost about half a tile.
static int64_t cost_of(const tn_cuda_matvec_args *a, int32_t warps, int32_t n_slices, int64_t rows)
{
    int64_t groups = warps / n_slices, tiles = tn_div_up(a->n_tiles, n_slices);
    return tn_div_up(tn_div_up(rows, groups), TN_MATVEC_ROWS) * (2 * tiles + 1);
}

static void set_slices(tn_cuda_matvec_args *a, int32_t warps, int32_t n_slices)
{
    a->n_slices = n_slices;
    a->slice_tiles = (int32_t)tn_div_up(a->n_tiles, n_slices);
    a->slice_shift = a->group_shift = 0;
    while (1 << a->slice_shift < n_slices) a->slice_shift++;
    while (n_slices << a->group_shift < warps) a->group_shift++;
}

// Slices, and rows of blocks; returns the number of blocks, which is above max_blocks where sums need more room.
static int32_t share_rows(tn_cuda_matvec_args *a, int32_t warps, int32_t columns, int32_t max_blocks)
{
    int64_t shares = a->n_virtual / a->row_unit, blocks = TN_MAX(1, TN_MIN(max_blocks, shares)), rows = tn_div_up(shares, blocks) * a->row_unit;
    int32_t best = 1;
    for (int32_t n = 1; n <= warps; n *= 2) {
        // No slice may be empty.
        if ((n - 1) * tn_div_up(a->n_tiles, n) >= a->n_tiles) continue;
        if (cost_of(a, warps, n, rows) < cost_of(a, warps, best, rows)) best = n;
    }
    set_slices(a, warps, best);
    a->sums_stride = best * columns;
    int64_t most = TN_MATVEC_SUMS / (4 * a->n_slices * columns) / (a->is_glu ? 2 : 1); // rows of a block
    blocks *= tn_div_up(shares, blocks * TN_MAX(1, most / a->row_unit));
    a->block_rows = (int32_t)(shares / blocks) * a->row_unit, a->more_rows = (int32_t)(shares % blocks);
    return (int32_t)blocks;
}

// Slices and shared memory for `columns` (1, 2, 4, 8) rows of x at a time; false if that is too much. max_blocks: in one wave.
static bool plan(const tn_cuda *cuda, int32_t max_blocks, tn_cuda_matvec_args *a, tn_dtype type, int32_t columns, tn_cuda_grid *grid)
{
    int32_t unit_elems = TN_MATVEC_UNIT_ELEMS(type);
    if (a->k % unit_elems != 0) return false;
    a->n_units = a->k / unit_elems;
    a->n_tiles = (int32_t)tn_div_up(a->n_units, 32);
    int64_t sums_at = (int64_t)columns * x_size(type, a->k), room = cuda->max_shared - STATIC_SIZE - sums_at - TN_MATVEC_SUMS;
    int32_t size = slot_size(type), warps = choose_rings(a, type, size, room);
    if (warps == 0) return false;
    if (a->ids) max_blocks = max_blocks / (int32_t)grid->y;
    grid->x = (uint32_t)share_rows(a, warps, columns, max_blocks);
    a->n_early = TN_MIN(a->n_slots - 1, plain(type) ? TN_MATVEC_PLAIN_EARLY : TN_MATVEC_MOST_SLOTS);
    a->x_at = 0, a->sums_at = (int32_t)sums_at, a->rings_at = (int32_t)sums_at + TN_MATVEC_SUMS, a->ring_size = a->n_slots * size;
    grid->threads = (uint32_t)warps * 32, grid->shared = (uint32_t)(a->rings_at + warps * a->ring_size);
    return true;
}

// --- the plan in tiles of 16 rows ------------------------------------------------------------------------

static int32_t tile_size(tn_dtype type)
{
    tn_cuda_pack_args layout;
    tn_cuda_layout_get(type, &layout);
    int32_t pieces = 0;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++) pieces += TN_MATVEC_MMA_PIECES(type, layout.unit[p]);
    return TN_MATVEC_MMA_ROWS * 16 * pieces;
}

// Whether a step's weights consist of whole tiles that the kernels have a type for.
static bool has_tiles(const tn_cuda *cuda, const tn_cuda_matvec_args *a, tn_dtype type)
{
    bool known = type == TN_TYPE_Q4_0 || type == TN_TYPE_Q8_0 || type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K || type == TN_TYPE_Q6_K;
    for (int32_t i = 0; i < a->n_parts; i++) known = known && a->part[i].n % TN_MATVEC_MMA_ROWS == 0;
    return known && cuda->compute >= 80 && a->k % TN_MATVEC_MMA_K(type) == 0;
}

// Slices of the warps for blocks with so many rows of tiles. False: sums do not fit.
static bool slice_tiles(tn_cuda_matvec_args *a, int32_t warps, int64_t rows)
{
    int64_t least = 0;
    int32_t best = 0;
    for (int32_t n = warps; n >= 1; n /= 2) {
        int64_t cost = tn_div_up(rows, warps / n) * (tn_div_up(a->n_tiles, n) * 8 + 1);
        int64_t sums = rows * TN_MATVEC_MMA_ROWS * (n | 1) * 4 * (a->is_glu ? 2 : 1);
        if (n > a->n_tiles || sums > TN_MATVEC_MMA_SUMS || (best > 0 && cost >= least)) continue;
        best = n, least = cost;
    }
    if (best == 0) return false;
    set_slices(a, warps, best);
    a->sums_stride = best | 1; // odd, so that threads find the sums of their rows in different banks
    return true;
}

// As plan(), for one row of x and tensor cores; leaves `a` as it was if it returns false.
static bool plan_tiles(const tn_cuda *cuda, int32_t max_blocks, tn_cuda_matvec_args *a, tn_dtype type, tn_cuda_grid *grid)
{
    if (!has_tiles(cuda, a, type)) return false;
    tn_cuda_matvec_args t = *a;
    t.n_tiles = t.k / TN_MATVEC_MMA_K(type);
    if (t.ids) max_blocks = max_blocks / (int32_t)grid->y;
    int32_t shares = t.n_virtual / TN_MATVEC_MMA_ROWS, blocks = TN_MAX(1, TN_MIN(max_blocks, shares)), size = tile_size(type);
    int32_t x_bytes = TN_MATVEC_MMA_X(t.k);
    int64_t room = cuda->max_shared - STATIC_SIZE - x_bytes - TN_MATVEC_MMA_SUMS;
    int32_t warps = room / size >= 3 * TN_MATVEC_WARPS ? TN_MATVEC_WARPS : TN_MATVEC_WARPS / 2;
    t.n_slots = (int32_t)TN_MIN(room / size / warps, TN_MATVEC_MMA_SLOTS);
    if (t.n_slots < TN_MATVEC_LEAST_SLOTS || !slice_tiles(&t, warps, tn_div_up(shares, blocks))) return false;
    t.row_unit = TN_MATVEC_MMA_ROWS, t.block_rows = shares / blocks * TN_MATVEC_MMA_ROWS, t.more_rows = shares % blocks;
    t.n_early = TN_MATVEC_EARLY;
    t.rings_at = 0, t.ring_size = t.n_slots * size, t.sums_at = warps * t.ring_size, t.x_at = t.sums_at + TN_MATVEC_MMA_SUMS;
    grid->x = (uint32_t)blocks, grid->threads = (uint32_t)warps * 32, grid->shared = (uint32_t)(t.x_at + x_bytes);
    *a = t;
    return true;
}

// --- steps --------------------------------------------------------------------------------------------

// Rows of a view counted over the outer dimensions lie at equal distances: returns that, or -1.
static int64_t row_distance(const tn_view *v)
{
    int64_t distance = 0, expect = 0;
    for (int32_t d = 2; d >= 0; d--) {
        if (v->ne[d] == 1) continue;
        if (distance == 0) distance = v->nb[d];
        else if (v->nb[d] != expect) return -1;
        expect = v->nb[d] * v->ne[d];
    }
    return distance % 4 == 0 ? distance : -1;
}

static void get_args(const tn_step *step, const tn_matvec_operands *o, tn_cuda_matvec_args *a)
{
    *a = (tn_cuda_matvec_args){
        .x = o->x->data, .x_stride = row_distance(o->x) / 4, .residual = o->residual ? o->residual->data : NULL,
        .residual_stride = o->residual ? row_distance(o->residual) / 4 : 0, .norm = o->norm ? o->norm->data : NULL, .eps = o->eps, .act = o->act,
        .is_glu = o->glu != NULL, .k = (int32_t)o->x->ne[3], .n_columns = o->ids ? 1 : (int32_t)tn_view_n_rows(&step->dst[0]), .n_used = 1, .row_unit = 1,
    };
    if (o->glu) a->glu = *o->glu;
    if (o->ids) {
        a->ids = o->ids->data;
        a->ids_stride[0] = o->ids->nb[2] / 4, a->ids_stride[1] = o->ids->nb[3] / 4;
        a->x_stride = o->x->nb[1] / 4, a->x_used_stride = o->x->ne[2] > 1 ? o->x->nb[2] / 4 : 0;
        a->n_experts = (int32_t)o->w[0]->ne[1], a->n_used = (int32_t)o->ids->ne[3];
    }
}

// Part i of the step becomes the next one of the launch.
static void add_part(const tn_step *step, const tn_matvec_operands *o, int32_t i, tn_cuda_matvec_args *a)
{
    const tn_view *w = o->w[i], *y = &step->dst[o->glu ? 0 : i];
    tn_cuda_weight planes = tn_cuda_weight_planes(w);
    tn_cuda_matvec_part *p = &a->part[a->n_parts++];
    *p = (tn_cuda_matvec_part){.bias = o->bias[i] ? o->bias[i]->data : NULL, .y = y->data, .y_stride = row_distance(y) / 4,
                               .n = (int32_t)w->ne[2], .first = o->glu ? 0 : a->n_virtual, .type = w->dtype};
    memcpy(p->plane, planes.plane, sizeof p->plane);
    memcpy(p->row_size, planes.row_size, sizeof p->row_size);
    a->n_virtual = p->first + p->n;
}

static bool accepts(const tn_cuda *cuda, const tn_step *step, bool rounding)
{
    tn_matvec_operands o = tn_matvec_operands_get(step);
    const tn_view *y = &step->dst[0];
    if (!tn_matvec_addressable(step, &o) || tn_view_n_elems(y) == 0 || o.x->ne[3] == 0) return false;
    int64_t rows = tn_view_n_rows(y);
    if (o.ids ? o.ids->ne[2] > TN_MATVEC_MAX_COLUMNS || rows > MAX_PAIRS || o.ids->nb[2] % 4 || o.ids->nb[3] % 4 : rows > TN_MATVEC_MAX_COLUMNS) return false;
    if (!o.ids && row_distance(o.x) < 0) return false;
    if (o.residual && row_distance(o.residual) < 0) return false;
    for (int32_t i = 0; i < o.n_w; i++) {
        const tn_view *w = o.w[i];
        if (row_distance(&step->dst[o.glu ? 0 : i]) < 0 || entry_of(w->dtype) < 0 || (rounding ? !rounds(w->dtype) : !plain(w->dtype))) return false;
        if (o.glu && w->dtype != o.w[0]->dtype) return false;
        if (!rounding && (w->ne[3] * (int64_t)tn_dtype_block_size(w->dtype)) % ALIGN != 0) return false;
        tn_cuda_matvec_args a = {.n_parts = 1, .k = (int32_t)w->ne[3], .n_virtual = (int32_t)w->ne[2], .is_glu = o.glu != NULL, .row_unit = 1};
        tn_cuda_grid grid = {.y = 1};
        if (!plan(cuda, cuda->n_sms, &a, w->dtype, 1, &grid)) return false;
    }
    return true;
}

bool tn_cuda_accepts_matvec(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, false);
}

bool tn_cuda_accepts_matvec_i8(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, true);
}

// Wide copies of weights without planes want their rows aligned.
static bool aligned_rows(const tn_matvec_operands *o)
{
    for (int32_t i = 0; i < o->n_w; i++)
        if ((uintptr_t)o->w[i]->data % ALIGN != 0) return false;
    return true;
}

// What launch() can make of its results for the product that reads them next. The sums of a group of rows have to fit into a block.
bool tn_cuda_matvec_writes_quantised(const tn_step *step)
{
    tn_matvec_operands o = tn_matvec_operands_get(step);
    return aligned_rows(&o) && (o.n_w == 1 || o.glu) && (o.ids || tn_view_n_rows(&step->dst[0]) == 1);
}

// And whether it can use what was made so: rows of x one after another.
bool tn_cuda_matvec_reads_quantised(const tn_step *step)
{
    tn_matvec_operands o = tn_matvec_operands_get(step);
    return rounds(o.w[0]->dtype) && o.x->dtype == TN_TYPE_F32 && tn_view_contiguous(o.x);
}

const tn_view *tn_cuda_matvec_norm(const tn_step *step)
{
    return tn_matvec_operands_get(step).norm;
}

// All columns in as few launches as the registers allow.
static tn_status launch_columns(const tn_cuda_launch *l, tn_cuda_matvec_args *a, tn_dtype type, int64_t n_pairs)
{
    int32_t rest = a->n_columns, entry = entry_of(type);
    tn_status status = TN_OK;
    while (rest > 0 && status == TN_OK) {
        int32_t log = rest > 4 ? 3 : rest > 2 ? 2 : rest > 1 ? 1 : 0;
        tn_cuda_grid grid = {.y = (uint32_t)n_pairs, .z = 1};
        if (rest == 1 && plan_tiles(l->cuda, l->cuda->n_sms, a, type, &grid)) {
            char name[48];
            snprintf(name, sizeof name, "tn_matvec_tiles_%s", tn_dtype_name(type));
            return tn_cuda_run(l, TN_CUDA_MODULE_matvec_mma, name, &grid, a);
        }
        if (!entries[entry].entry[log]) log = 2;
        while (!entries[entry].entry[log] || !plan(l->cuda, l->cuda->n_sms, a, type, 1 << log, &grid)) log--;
        a->n_columns = TN_MIN(rest, 1 << log);
        status = tn_cuda_run(l, entries[entry].module[log > 0], entries[entry].entry[log], &grid, a);
        rest -= a->n_columns;
        a->x += a->n_columns * a->x_stride;
        if (a->quantised_x.rows) a->quantised_x.rows += a->n_columns * a->quantised_x.row_size;
        if (a->residual) a->residual += a->n_columns * a->residual_stride;
        for (int32_t i = 0; i < a->n_parts; i++) a->part[i].y += a->n_columns * a->part[i].y_stride;
    }
    return status;
}

// Weights of type `type` as parts of one launch.
static tn_cuda_matvec_args args_for(const tn_step *step, const tn_matvec_operands *o, tn_dtype type)
{
    tn_cuda_matvec_args a;
    get_args(step, o, &a);
    for (int32_t i = 0; i < o->n_w; i++)
        if (o->w[i]->dtype == type) add_part(step, o, i, &a);
    return a;
}

static tn_cuda_matvec_args args_of(const tn_cuda_launch *l, const tn_matvec_operands *o, tn_dtype type)
{
    tn_cuda_matvec_args a = args_for(l->step, o, type);
    // Rows of 16 bits and more keep the memory busy by themselves, and blocks of experts are small (H200: 8B bf16 231 tok/s early, 236 late;
    // Qwen3 30B-A3B 316 and 325; 8B Q4_K_M 430 and 410).
    a.late = plain(type) || o->ids;
    if (l->quantised_x && rounds(type)) a.quantised_x = *l->quantised_x;
    if (l->quantised_y) a.quantised_y = *l->quantised_y, a.row_unit = TN_QUANTISED_GROUP;
    return a;
}

static const struct {
    tn_dtype dtype[2];
    const char *entry[2]; // tiles: false, true
} pairs[] = {
    {{TN_TYPE_Q4_K, TN_TYPE_Q6_K}, {"tn_matvec_Q4_K_Q6_K", "tn_matvec_tiles_Q4_K_Q6_K"}},
    {{TN_TYPE_Q5_K, TN_TYPE_Q6_K}, {"tn_matvec_Q5_K_Q6_K", "tn_matvec_tiles_Q5_K_Q6_K"}},
};

// The row of `pairs` that has exactly the types of the weights; -1: none.
static int32_t pair_of(const tn_matvec_operands *o)
{
    for (int32_t p = 0; p < (int32_t)TN_COUNT(pairs); p++) {
        bool has[2] = {false, false}, other = false;
        for (int32_t i = 0; i < o->n_w; i++) {
            bool first = o->w[i]->dtype == pairs[p].dtype[0], second = o->w[i]->dtype == pairs[p].dtype[1];
            has[0] |= first, has[1] |= second, other |= !first && !second;
        }
        if (has[0] && has[1] && !other) return p;
    }
    return -1;
}

// Both types in one launch: each gets as many multiprocessors as make the longest share short. False where their blocks differ in size.
static bool plan_pair(const tn_cuda_launch *l, const tn_matvec_operands *o, int32_t pair, bool tiles, tn_cuda_matvec_pair *a, tn_cuda_grid *grid)
{
    int32_t n_sms = l->cuda->n_sms, first = 1;
    int64_t least = INT64_MAX, unit = tiles ? TN_MATVEC_MMA_ROWS : 1;
    for (int32_t i = 0; i < 2; i++) a->of[i] = args_of(l, o, pairs[pair].dtype[i]);
    for (int32_t n = 1; n < n_sms; n++) {
        int64_t bytes[2]; // of the block that has most
        for (int32_t i = 0; i < 2; i++)
            bytes[i] = tn_div_up(a->of[i].n_virtual / unit, i == 0 ? n : n_sms - n) * unit * (int64_t)tn_dtype_row_size(pairs[pair].dtype[i], a->of[i].k);
        if (TN_MAX(bytes[0], bytes[1]) < least) first = n, least = TN_MAX(bytes[0], bytes[1]);
    }
    *grid = (tn_cuda_grid){.y = 1, .z = 1};
    for (int32_t i = 0; i < 2; i++) {
        tn_cuda_grid part = {.y = 1, .z = 1};
        tn_dtype t = pairs[pair].dtype[i];
        int32_t most = i == 0 ? first : n_sms - first;
        if (!(tiles ? plan_tiles(l->cuda, most, &a->of[i], t, &part) : plan(l->cuda, most, &a->of[i], t, 1, &part))) return false;
        if (i > 0 && part.threads != grid->threads) return false;
        if (i == 0) a->first_blocks = (int32_t)part.x;
        grid->x += part.x;
        grid->threads = part.threads;
        grid->shared = TN_MAX(grid->shared, part.shared);
    }
    return true;
}

// --- gate and up of experts -------------------------------------------------------------------------------

// Rings of plan_tiles() laid out anew, with room for all tiles of a warp where that is there; then all may be on their way at once, and what
// is left is for the next kernel. Returns the slots to fill first.
static int32_t fit_rings(const tn_cuda *cuda, tn_cuda_matvec_args *a, tn_dtype type, int32_t rows, tn_cuda_grid *grid)
{
    int32_t warps = (int32_t)grid->threads / 32, size = tile_size(type), x = TN_MATVEC_MMA_X(a->k);
    int32_t sums = align_up((int64_t)rows * TN_MATVEC_MMA_ROWS * a->sums_stride * 4);
    int64_t tiles = tn_div_up(rows, warps / a->n_slices) * tn_div_up(a->n_tiles, a->n_slices);
    int64_t room = TN_MIN((cuda->max_shared - STATIC_SIZE - x - sums) / size / warps, TN_MATVEC_MOST_SLOTS);
    a->n_slots = (int32_t)(tiles <= room ? tiles : TN_MAX(a->n_slots, TN_MIN(room, tiles)));
    a->ring_size = a->n_slots * size, a->sums_at = warps * a->ring_size, a->x_at = a->sums_at + sums;
    grid->shared = (uint32_t)(a->x_at + x);
    return tiles <= room ? a->n_slots : a->n_slots - 1;
}

// As plan_tiles(), for groups of warps that share the tiles of both weights.
static bool plan_glu(const tn_cuda *cuda, tn_cuda_matvec_glu_args *s, tn_dtype type, tn_cuda_grid *grid)
{
    tn_cuda_matvec_args *a = &s->of;
    if (!a->ids || !a->is_glu || !plan_tiles(cuda, cuda->n_sms, a, type, grid)) return false;
    int32_t rows = 2 * (a->block_rows / TN_MATVEC_MMA_ROWS + (a->more_rows > 0));
    a->is_glu = 0; // sums of both count as rows
    bool fits = slice_tiles(a, (int32_t)grid->threads / 32, rows);
    a->is_glu = 1;
    if (fits) s->filled = fit_rings(cuda, a, type, rows, grid);
    return fits;
}

bool tn_cuda_matvec_runs_route(const tn_cuda *cuda, const tn_step *step, const tn_step *route)
{
    if (route->op != TN_OP_moe_route || step->op != TN_OP_matmul_id_glu) return false;
    const tn_moe_route_params *p = route->params;
    tn_matvec_operands o = tn_matvec_operands_get(step);
    const tn_view *ids = &route->dst[0], *weights = &route->dst[1];
    bool same = o.ids->data == ids->data && memcmp(o.ids->ne, ids->ne, sizeof ids->ne) == 0 && tn_view_contiguous(o.ids) && tn_view_contiguous(ids);
    bool simple = p->has_product && p->top_k.n_groups <= 1 && !p->has_choice_bias && route->src[1].ne[2] <= TN_MATVEC_CHOICE;
    if (!same || !simple || !tn_view_contiguous(weights) || !aligned_rows(&o)) return false;
    tn_cuda_matvec_glu_args s = {.of = args_for(step, &o, o.w[0]->dtype)};
    tn_cuda_grid grid = {.y = (uint32_t)tn_view_n_rows(&step->dst[0]), .z = 1};
    return plan_glu(cuda, &s, o.w[0]->dtype, &grid);
}

// False where tiles do not fit.
static bool launch_glu(const tn_cuda_launch *l, const tn_matvec_operands *o, tn_status *status)
{
    tn_dtype type = o->w[0]->dtype;
    tn_cuda_matvec_glu_args s = {.of = args_of(l, o, type)};
    tn_cuda_grid grid = {.y = (uint32_t)tn_view_n_rows(&l->step->dst[0]), .z = 1};
    char name[48];
    if (!plan_glu(l->cuda, &s, type, &grid)) return false;
    if (l->route) s.choice = tn_cuda_expert_route_of(l->route), s.logits = (const float *)(const void *)l->scratch;
    snprintf(name, sizeof name, "tn_matvec_glu_%s", tn_dtype_name(type));
    *status = tn_cuda_run(l, TN_CUDA_MODULE_matvec_experts, name, &grid, &s);
    return true;
}

tn_status tn_cuda_launch_matvec(const tn_cuda_launch *l)
{
    tn_matvec_operands o = tn_matvec_operands_get(l->step);
    tn_status status = TN_OK;
    if (!aligned_rows(&o)) return tn_cuda_launch_matmul_any(l);
    if (o.ids && o.glu && launch_glu(l, &o, &status)) return status;
    int32_t pair = o.ids || tn_view_n_rows(&l->step->dst[0]) > 1 ? -1 : pair_of(&o);
    tn_cuda_matvec_pair both;
    tn_cuda_grid grid;
    for (int32_t tiles = 1; pair >= 0 && tiles >= 0; tiles--)
        if (plan_pair(l, &o, pair, tiles, &both, &grid))
            return tn_cuda_run(l, tiles ? TN_CUDA_MODULE_matvec_mma : TN_CUDA_MODULE_matvec_pairs, pairs[pair].entry[tiles], &grid, &both);
    bool done[TN_MATVEC_MAX_WEIGHTS] = {false};
    // Weights of one type share a launch.
    for (int32_t i = 0; i < o.n_w && status == TN_OK; i++) {
        if (done[i]) continue;
        tn_cuda_matvec_args a = args_of(l, &o, o.w[i]->dtype);
        for (int32_t j = i; j < o.n_w; j++) done[j] |= o.w[j]->dtype == o.w[i]->dtype;
        status = launch_columns(l, &a, o.w[i]->dtype, o.ids ? tn_view_n_rows(&l->step->dst[0]) : 1);
    }
    return status;
}

// --- a product of experts and the sum of its results ----------------------------------------------------

enum { MOST_SUMMED = 32 }; // experts of a token: a lane each

// False where tiles do not fit. The long row has k of all experts.
static bool plan_sum(const tn_cuda *cuda, const tn_step *product, const tn_step *sum, tn_cuda_matvec_sum_args *s, tn_cuda_grid *grid)
{
    tn_matvec_operands o = tn_matvec_operands_get(product);
    const tn_view *factors = &sum->src[1], *y = &sum->dst[0], *residual = sum->op == TN_OP_moe_combine ? &sum->src[2] : NULL;
    tn_cuda_matvec_args *a = &s->of;
    *a = args_for(product, &o, o.w[0]->dtype);
    s->k = a->k, s->n_tiles = a->k / TN_MATVEC_MMA_K(o.w[0]->dtype);
    if (a->k % TN_MATVEC_MMA_K(o.w[0]->dtype) != 0 || a->n_used > MOST_SUMMED || a->k > INT32_MAX / 2 / MOST_SUMMED) return false;
    a->k *= a->n_used;
    a->part[0].y = y->data, a->part[0].y_stride = y->nb[2] / 4;
    if (residual) a->residual = residual->data, a->residual_stride = residual->nb[2] / 4;
    s->factors = factors->data, s->factors_stride[0] = factors->nb[2] / 4, s->factors_stride[1] = factors->nb[3] / 4;
    *grid = (tn_cuda_grid){.y = (uint32_t)y->ne[2], .z = 1};
    if (!plan_tiles(cuda, cuda->n_sms, a, o.w[0]->dtype, grid)) return false;
    s->filled = fit_rings(cuda, a, o.w[0]->dtype, a->block_rows / TN_MATVEC_MMA_ROWS + (a->more_rows > 0), grid);
    return true;
}

bool tn_cuda_matvec_fuses_sum(const tn_cuda *cuda, const tn_step *product, const tn_step *sum)
{
    if (product->op != TN_OP_matmul_id) return false;
    tn_matvec_operands o = tn_matvec_operands_get(product);
    const tn_view *x = &sum->src[0], *y = &product->dst[0];
    bool same = x->data == y->data && memcmp(x->ne, y->ne, sizeof x->ne) == 0 && tn_view_contiguous(x) && tn_view_contiguous(y);
    const tn_moe_combine_params *p = sum->op == TN_OP_moe_combine ? sum->params : NULL;
    bool plainly = !p || (p->n_added == 1 && !p->has_factor && row_distance(&sum->src[2]) >= 0);
    bool strided = sum->src[1].nb[2] % 4 == 0 && sum->src[1].nb[3] % 4 == 0 && sum->dst[0].nb[2] % 4 == 0;
    tn_cuda_matvec_sum_args s;
    tn_cuda_grid grid;
    return same && plainly && strided && aligned_rows(&o) && plan_sum(cuda, product, sum, &s, &grid);
}

tn_status tn_cuda_launch_matvec_sum(const tn_cuda_launch *l)
{
    tn_cuda_matvec_sum_args s;
    tn_cuda_grid grid;
    char name[48];
    // The plan is the same as when tn_cuda_matvec_fuses_sum made it.
    if (!plan_sum(l->cuda, l->product, l->step, &s, &grid)) return tn_fail(l->cuda->device->ctx, TN_ERR_INTERNAL, "sum of experts: does not fit");
    if (l->quantised_x) s.of.quantised_x = *l->quantised_x;
    if (l->quantised_y) s.of.quantised_y = *l->quantised_y;
    snprintf(name, sizeof name, "tn_matvec_sum_%s", tn_dtype_name(l->product->src[1].dtype));
    return tn_cuda_run(l, TN_CUDA_MODULE_matvec_experts, name, &grid, &s);
}
