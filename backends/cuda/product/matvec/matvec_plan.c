// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans of the matrix products with up to 8 rows of x: which rows of the weights a block multiplies, which
// slices along k its warps have, and what lies where in shared memory.
#include "backends/cuda/product/matvec/matvec.h"
#include "backends/cuda/product/matvec/matvec_rows_args.h"
#include "backends/cuda/runtime/layout.h"

#include <string.h>

enum {
    STATIC_SIZE = 1536, // bytes of shared memory that the kernels declare, at most
    // Slots of a ring below which blocks have 8 warps with more slots each instead of 16 warps.
    SLOTS_OF_ALL_WARPS = TN_MATVEC_LEAST_SLOTS + 1,
};

// --- rows and types ----------------------------------------------------------------------------------

bool tn_cuda_matvec_quantises(tn_dtype type)
{
    tn_cuda_pack_args planes; // types that stay as in files run the general kernel
    return tn_cuda_layout_get(type, &planes);
}

bool tn_cuda_matvec_plain(tn_dtype type)
{
    return type == TN_TYPE_F32 || type == TN_TYPE_F16 || type == TN_TYPE_BF16;
}

int64_t tn_cuda_row_distance(const tn_view *v)
{
    int64_t distance = 0, expect = 0;
    for (int32_t d = 2; d >= 0; d--) {
        if (v->ne[d] == 1) continue;
        if (distance == 0)
            distance = v->nb[d];
        else if (v->nb[d] != expect)
            return -1;
        expect = v->nb[d] * v->ne[d];
    }
    return distance % 4 == 0 ? distance : -1;
}

bool tn_cuda_matvec_aligned(const tn_product *p)
{
    for (int32_t i = 0; i < p->n_weights; i++)
        if ((uintptr_t)p->w[i]->data % TN_MATVEC_ALIGN != 0) return false;
    return true;
}

static void add_part(const tn_product *p, int32_t i, tn_cuda_matvec_args *a)
{
    const tn_view *w = p->w[i], *y = p->y[i];
    tn_cuda_weight planes = tn_cuda_weight_planes(w);
    tn_cuda_matvec_part *part = &a->part[a->n_parts++];
    *part = (tn_cuda_matvec_part){.bias = p->bias[i] ? p->bias[i]->data : NULL,
                                  .y = y->data,
                                  .y_stride = tn_cuda_row_distance(y) / 4,
                                  .n = (int32_t)w->ne[2],
                                  .first = p->glu ? 0 : a->n_virtual,
                                  .type = w->dtype};
    memcpy(part->plane, planes.plane, sizeof part->plane);
    memcpy(part->row_size, planes.row_size, sizeof part->row_size);
    a->n_virtual = part->first + part->n;
}

tn_cuda_matvec_args tn_cuda_matvec_args_get(const tn_product *p, tn_dtype type)
{
    tn_cuda_matvec_args a = {
        .x = p->x->data,
        .x_stride = tn_cuda_row_distance(p->x) / 4,
        .residual = p->residual ? p->residual->data : NULL,
        .residual_stride = p->residual ? tn_cuda_row_distance(p->residual) / 4 : 0,
        .norm = p->norm ? p->norm->data : NULL,
        .eps = p->eps,
        .act = p->act,
        .is_glu = p->glu != NULL,
        .k = (int32_t)p->k,
        .n_columns = p->ids ? 1 : (int32_t)tn_view_n_rows(p->y[0]),
        .n_used = 1,
        .row_multiple = 1,
    };
    if (p->glu) a.glu = *p->glu;
    if (p->ids) {
        a.ids = p->ids->data;
        a.ids_stride[0] = p->ids->nb[2] / 4, a.ids_stride[1] = p->ids->nb[3] / 4;
        a.x_stride = p->x->nb[1] / 4, a.x_used_stride = p->x->ne[2] > 1 ? p->x->nb[2] / 4 : 0;
        a.n_experts = (int32_t)p->n_experts, a.n_used = (int32_t)p->ids->ne[3];
    }
    for (int32_t i = 0; i < p->n_weights; i++)
        if (p->w[i]->dtype == type) add_part(p, i, &a);
    return a;
}

// Whether the next kernel may start only when the sums are complete, not when the block begins. Rows of 16
// bits and more keep the memory busy by themselves, and blocks of experts are small (H200, tok/s early and
// late: 8B bf16 231 and 236, Qwen3 30B-A3B 316 and 325, 8B Q4_K_M 430 and 410).
static bool starts_next_late(const tn_product *p, tn_dtype type)
{
    return tn_cuda_matvec_plain(type) || p->ids;
}

tn_cuda_matvec_args tn_cuda_matvec_launch_args(const tn_cuda_launch *l, const tn_product *p, tn_dtype type)
{
    tn_cuda_matvec_args a = tn_cuda_matvec_args_get(p, type);
    a.late = starts_next_late(p, type);
    if (l->quantised_x && tn_cuda_matvec_quantises(type)) a.quantised_x = *l->quantised_x;
    if (l->quantised_y) a.quantised_y = *l->quantised_y, a.row_multiple = TN_QUANTISED_GROUP;
    return a;
}

// --- lanes multiply vectors --------------------------------------------------------------------------

static int32_t align_up(int64_t n)
{
    return (int32_t)((n + TN_MATVEC_ALIGN - 1) / TN_MATVEC_ALIGN * TN_MATVEC_ALIGN);
}

// Bytes of a slot of a ring.
static int32_t slot_size(tn_dtype type)
{
    tn_cuda_pack_args layout;
    tn_cuda_layout_get(type, &layout);
    if (tn_cuda_matvec_plain(type)) layout.plane_bytes[0] = TN_MATVEC_ALIGN;
    int32_t size = 0;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        size += TN_MATVEC_TILE_BYTES(type, layout.plane_bytes[p]);
    return TN_MATVEC_ROWS * size;
}

// Bytes of a row of x in shared memory: f32, or int8 with its scales and sums.
static int32_t x_size(tn_dtype type, int32_t k)
{
    return tn_cuda_matvec_plain(type) ? align_up((int64_t)k * 4) : align_up((int64_t)k + k / 4 + k / 8);
}

// As many warps and slots as fit into `free` bytes; returns the warps, 0: not even the fewest fit.
static int32_t select_rings(tn_cuda_matvec_args *a, tn_dtype type, int32_t size, int64_t free)
{
    int32_t of_ring = TN_MIN(TN_MATVEC_RING(type) / size, (int32_t)TN_MATVEC_MOST_SLOTS);
    int64_t most = TN_MAX(of_ring, SLOTS_OF_ALL_WARPS);
    for (int32_t warps = TN_MATVEC_WARPS; warps >= TN_MATVEC_WARPS / 2; warps /= 2) {
        int64_t slots = TN_MIN(most, free / ((int64_t)warps * size));
        a->n_slots = (int32_t)slots;
        if (slots >= (warps == TN_MATVEC_WARPS ? SLOTS_OF_ALL_WARPS : TN_MATVEC_LEAST_SLOTS)) return warps;
    }
    return 0;
}

// The cost of a block's rows when rows are cut into n_slices slices of tiles: that of the warp that has most.
// Adding sums costs about half a tile.
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

// Sets slices, and rows of blocks. Returns the number of blocks, which is above max_blocks where the sums of
// a block would not fit otherwise.
static int32_t share_rows(tn_cuda_matvec_args *a, int32_t warps, int32_t n_columns, int32_t max_blocks)
{
    int64_t shares = a->n_virtual / a->row_multiple, blocks = TN_MAX(1, TN_MIN(max_blocks, shares));
    int64_t rows = tn_div_up(shares, blocks) * a->row_multiple;
    int32_t best = 1;
    for (int32_t n = 1; n <= warps; n *= 2) {
        bool has_empty_slice = (n - 1) * tn_div_up(a->n_tiles, n) >= a->n_tiles;
        if (has_empty_slice) continue;
        if (cost_of(a, warps, n, rows) < cost_of(a, warps, best, rows)) best = n;
    }
    set_slices(a, warps, best);
    a->sums_stride = best * n_columns;
    int64_t most = TN_MATVEC_SUMS / (4 * a->n_slices * n_columns) / (a->is_glu ? 2 : 1); // rows of a block
    blocks *= tn_div_up(shares, blocks * TN_MAX(1, most / a->row_multiple));
    a->block_rows = (int32_t)(shares / blocks) * a->row_multiple, a->more_rows = (int32_t)(shares % blocks);
    return (int32_t)blocks;
}

bool tn_cuda_matvec_plan(const tn_cuda *cuda, int32_t max_blocks, tn_cuda_matvec_args *a, tn_dtype type,
                         int32_t n_columns, tn_cuda_grid *grid)
{
    int32_t lane_elems = TN_MATVEC_LANE_ELEMS(type);
    if (a->k % lane_elems != 0) return false;
    a->n_lane_runs = a->k / lane_elems;
    a->n_tiles = (int32_t)tn_div_up(a->n_lane_runs, 32);
    int64_t sums_at = (int64_t)n_columns * x_size(type, a->k);
    int32_t size = slot_size(type);
    int32_t warps = select_rings(a, type, size, cuda->max_shared - STATIC_SIZE - sums_at - TN_MATVEC_SUMS);
    if (warps == 0) return false;
    if (a->ids) max_blocks = max_blocks / (int32_t)grid->y;
    grid->x = (uint32_t)share_rows(a, warps, n_columns, max_blocks);
    int32_t early = tn_cuda_matvec_plain(type) ? TN_MATVEC_PLAIN_EARLY : TN_MATVEC_MOST_SLOTS;
    a->n_early = TN_MIN(a->n_slots - 1, early);
    a->x_at = 0, a->sums_at = (int32_t)sums_at, a->rings_at = (int32_t)sums_at + TN_MATVEC_SUMS;
    a->ring_size = a->n_slots * size;
    grid->threads = (uint32_t)warps * 32, grid->shared = (uint32_t)(a->rings_at + warps * a->ring_size);
    return true;
}

// --- tensor cores multiply tiles of 16 rows ----------------------------------------------------------

// Bytes of a tile in shared memory.
static int32_t tile_size(tn_dtype type)
{
    tn_cuda_pack_args layout;
    tn_cuda_layout_get(type, &layout);
    int32_t pieces = 0; // of 16 bytes, of a row
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        pieces += TN_MATVEC_MMA_PIECES(type, layout.plane_bytes[p]);
    return TN_MATVEC_MMA_ROWS * 16 * pieces;
}

// Whether the weights consist of whole tiles, of a type that the kernels have.
bool tn_cuda_matvec_has_tiles(const tn_cuda *cuda, const tn_cuda_matvec_args *a, tn_dtype type)
{
    bool known = type == TN_TYPE_Q4_0 || type == TN_TYPE_Q8_0 || type == TN_TYPE_Q4_K ||
                 type == TN_TYPE_Q5_K || type == TN_TYPE_Q6_K;
    for (int32_t i = 0; i < a->n_parts; i++) known = known && a->part[i].n % TN_MATVEC_MMA_ROWS == 0;
    return known && cuda->compute >= 80 && a->k % TN_MATVEC_MMA_K(type) == 0;
}

bool tn_cuda_matvec_slice_tiles(tn_cuda_matvec_args *a, int32_t warps, int64_t rows)
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

bool tn_cuda_matvec_plan_tiles(const tn_cuda *cuda, int32_t max_blocks, tn_cuda_matvec_args *a, tn_dtype type,
                               tn_cuda_grid *grid)
{
    enum { SLOTS_OF_WARP = 3 }; // for which 16 warps are worth it, else 8 have more
    if (!tn_cuda_matvec_has_tiles(cuda, a, type)) return false;
    tn_cuda_matvec_args t = *a;
    t.n_tiles = t.k / TN_MATVEC_MMA_K(type);
    if (t.ids) max_blocks = max_blocks / (int32_t)grid->y;
    int32_t shares = t.n_virtual / TN_MATVEC_MMA_ROWS, blocks = TN_MAX(1, TN_MIN(max_blocks, shares));
    int32_t size = tile_size(type), x_bytes = TN_MATVEC_MMA_X(t.k);
    int64_t free = cuda->max_shared - STATIC_SIZE - x_bytes - TN_MATVEC_MMA_SUMS;
    int32_t warps = free / size >= SLOTS_OF_WARP * TN_MATVEC_WARPS ? TN_MATVEC_WARPS : TN_MATVEC_WARPS / 2;
    t.n_slots = (int32_t)TN_MIN(free / size / warps, TN_MATVEC_MMA_SLOTS);
    if (t.n_slots < TN_MATVEC_LEAST_SLOTS) return false;
    if (!tn_cuda_matvec_slice_tiles(&t, warps, tn_div_up(shares, blocks))) return false;
    t.row_multiple = TN_MATVEC_MMA_ROWS;
    t.block_rows = shares / blocks * TN_MATVEC_MMA_ROWS, t.more_rows = shares % blocks;
    t.n_early = TN_MATVEC_EARLY;
    t.rings_at = 0, t.ring_size = t.n_slots * size;
    t.sums_at = warps * t.ring_size, t.x_at = t.sums_at + TN_MATVEC_MMA_SUMS;
    grid->x = (uint32_t)blocks, grid->threads = (uint32_t)warps * 32;
    grid->shared = (uint32_t)(t.x_at + x_bytes);
    *a = t;
    return true;
}

// Bytes of a slot with a tile of the kernels for 2 to 8 rows.
static int32_t rows_tile_size(tn_dtype type)
{
    tn_cuda_pack_args layout;
    tn_cuda_layout_get(type, &layout);
    int32_t blocks = TN_MATVEC_MMA_K(type) / TN_MATVEC_BLOCK_ELEMS(type), slots = 0;
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        slots += TN_MATVEC_ROWS_SLOTS(blocks * layout.plane_bytes[p]);
    return TN_MATVEC_MMA_ROWS * 16 * slots;
}

// Sums of a block with so many rows of tiles, bytes: those of 8 columns lie together, and an odd number of
// floats lies between rows, so that threads find the sums of their rows in different banks.
static int64_t rows_sums(const tn_cuda_matvec_args *a, int64_t rows, int32_t n_slices)
{
    int64_t stride = (int64_t)n_slices * TN_MATVEC_MAX_COLUMNS + 1;
    return rows * TN_MATVEC_MMA_ROWS * stride * 4 * (a->is_glu ? 2 : 1);
}

// Cuts tiles into slices as tn_cuda_matvec_slice_tiles does, within `most` bytes of sums.
static bool slice_rows(tn_cuda_matvec_args *a, int32_t warps, int64_t rows, int64_t most)
{
    int64_t least = 0;
    int32_t best = 0;
    for (int32_t n = warps; n >= 1; n /= 2) {
        int64_t cost = tn_div_up(a->is_glu ? 2 * rows : rows, warps / n) * (tn_div_up(a->n_tiles, n) * 8 + 1);
        if (n > a->n_tiles || rows_sums(a, rows, n) > most || (best > 0 && cost >= least)) continue;
        best = n, least = cost;
    }
    if (best == 0) return false;
    set_slices(a, warps, best);
    a->sums_stride = best * TN_MATVEC_MAX_COLUMNS + 1;
    return true;
}

// Lays out shared memory for blocks with so many rows of tiles and warps, and x_tiles tiles of x at a time,
// in two places where those are not all. False: it does not fit.
static bool place_rows(const tn_cuda *cuda, tn_cuda_matvec_args *a, tn_dtype type, int64_t rows,
                       int32_t warps, int32_t x_tiles, tn_cuda_grid *grid)
{
    int32_t size = rows_tile_size(type), k = x_tiles * TN_MATVEC_MMA_K(type);
    int64_t x_bytes = TN_MATVEC_ROWS_X((int64_t)k, a->n_columns, TN_MATVEC_ROWS_HAS_SUMS(type));
    if (x_tiles < a->n_tiles) x_bytes *= 2;
    int32_t expanded = warps * TN_MATVEC_ROWS_EXPANDED(type);
    int64_t free = cuda->max_shared - STATIC_SIZE - x_bytes - expanded;
    int64_t least_rings = (int64_t)warps * TN_MATVEC_LEAST_SLOTS * size;
    if (!slice_rows(a, warps, rows, TN_MIN(TN_MATVEC_ROWS_SUMS, free - least_rings))) return false;
    int32_t sums = align_up(rows_sums(a, rows, a->n_slices));
    a->n_slots = (int32_t)TN_MIN((free - sums) / ((int64_t)warps * size), TN_MATVEC_MMA_SLOTS);
    if (a->n_slots < TN_MATVEC_LEAST_SLOTS || a->n_slices > x_tiles) return false;
    a->slice_tiles = x_tiles;
    a->rings_at = 0, a->ring_size = a->n_slots * size;
    a->sums_at = warps * a->ring_size + expanded, a->x_at = a->sums_at + sums;
    grid->threads = (uint32_t)warps * 32, grid->shared = (uint32_t)(a->x_at + x_bytes);
    return true;
}

// All of x at once if it fits, else `chunk` tiles of it at a time. Where all of x leaves so little memory for
// sums that k is cut into fewer slices, some warps have nothing to do, and chunks are faster (H200, `down` of
// 8B in Q6_K with 6 rows had one slice, for two of 16 warps: 2.81 ms a step, 2.36 and 2.48 with 5 and 7
// rows).
static bool place_x(const tn_cuda *cuda, tn_cuda_matvec_args *a, tn_dtype type, int64_t rows, int32_t chunk,
                    tn_cuda_grid *grid)
{
    tn_cuda_matvec_args parts = *a;
    tn_cuda_grid parts_grid = *grid;
    bool whole = place_rows(cuda, a, type, rows, TN_MATVEC_WARPS, a->n_tiles, grid),
         fits = chunk < a->n_tiles &&
                place_rows(cuda, &parts, type, rows, TN_MATVEC_WARPS, chunk, &parts_grid);
    if (fits && (!whole || parts.n_slices > a->n_slices)) *a = parts, *grid = parts_grid;
    return whole || fits ||
           place_rows(cuda, a, type, rows, TN_MATVEC_WARPS / 2, TN_MIN(chunk, a->n_tiles), grid);
}

bool tn_cuda_matvec_plan_rows(const tn_cuda *cuda, int32_t max_blocks, tn_cuda_matvec_args *a, tn_dtype type,
                              tn_cuda_grid *grid)
{
    enum { CHUNK = 4096 }; // elements of x at a time where shared memory does not hold all
    bool fits = cuda->compute >= 80 && tn_cuda_matvec_quantises(type) && a->k % TN_MATVEC_MMA_K(type) == 0;
    for (int32_t i = 0; i < a->n_parts; i++) {
        bool last = a->is_glu || i + 1 == a->n_parts; // a tile has rows of one weight
        fits = fits && a->part[i].n >= TN_MATVEC_MMA_ROWS;
        fits = fits && (last || a->part[i].n % TN_MATVEC_MMA_ROWS == 0);
    }
    if (!fits) return false;
    tn_cuda_matvec_args t = *a;
    t.n_tiles = t.k / TN_MATVEC_MMA_K(type);
    int32_t shares = (int32_t)tn_div_up(t.n_virtual, TN_MATVEC_MMA_ROWS),
            chunk = CHUNK / TN_MATVEC_MMA_K(type);
    // More blocks than multiprocessors where the sums of a block would not fit otherwise.
    int32_t blocks = (int32_t)TN_MAX(TN_MIN(max_blocks, shares), 1);
    while (rows_sums(&t, tn_div_up(shares, blocks), 1) > TN_MATVEC_ROWS_SUMS) blocks += max_blocks;
    int64_t rows = tn_div_up(shares, blocks);
    if (!place_x(cuda, &t, type, rows, chunk, grid)) return false;
    t.row_multiple = TN_MATVEC_MMA_ROWS;
    t.block_rows = shares / blocks * TN_MATVEC_MMA_ROWS, t.more_rows = shares % blocks;
    t.n_early = TN_MATVEC_EARLY;
    // The next kernel may start when the sums are complete (H200, 8B Q4_K_M, 8 rows, 2026-11-23: 2934 tokens
    // per second, 2905 if it may start when the block begins).
    t.late = true;
    grid->x = (uint32_t)blocks;
    *a = t;
    return true;
}

// Two blocks share k where x comes in chunks (H100, 8B Q4_K_M, 2026-11-28, tokens per second with 6, 7 and 8
// rows: 2160, 2545 and 2828 without, 2198, 2595 and 2948 with).
bool tn_cuda_matvec_plan_halves(const tn_cuda *cuda, tn_cuda_matvec_args *a, tn_dtype type,
                                tn_cuda_grid *grid)
{
    bool known = type == TN_TYPE_Q4_0 || type == TN_TYPE_Q8_0 || type == TN_TYPE_Q4_K ||
                 type == TN_TYPE_Q5_K || type == TN_TYPE_Q6_K;
    bool narrow = a->n_columns <= 4; // those have kernels of their own
    bool stored = a->quantised_x.rows && !a->norm && !a->is_glu && a->n_parts == 1;
    if (cuda->compute != 90 || !known || narrow || !stored || a->slice_tiles >= a->n_tiles) return false;
    tn_cuda_matvec_args t = *a;
    tn_cuda_grid own = *grid;
    int32_t shares = (int32_t)tn_div_up(t.n_virtual, TN_MATVEC_MMA_ROWS),
            pairs = (int32_t)TN_MAX(TN_MIN(cuda->n_sms / TN_MATVEC_HALVES, shares), 1);
    int64_t rows = tn_div_up(shares, pairs);
    t.n_tiles = (int32_t)tn_div_up(a->n_tiles, TN_MATVEC_HALVES);
    if (!place_rows(cuda, &t, type, rows, TN_MATVEC_WARPS, t.n_tiles, &own)) return false;
    t.n_tiles = a->n_tiles;
    t.block_rows = shares / pairs * TN_MATVEC_MMA_ROWS, t.more_rows = shares % pairs;
    int32_t left = align_up(TN_MATVEC_HALVES_LEFT(t) * 4), slots = TN_MATVEC_WARPS * rows_tile_size(type);
    t.x_at += left, own.shared += (uint32_t)left;
    if (own.shared > (uint32_t)(cuda->max_shared - STATIC_SIZE)) { // one slot less for each warp
        if (--t.n_slots < TN_MATVEC_LEAST_SLOTS) return false;
        t.ring_size -= rows_tile_size(type), t.sums_at -= slots, t.x_at -= slots;
        own.shared -= (uint32_t)slots;
    }
    own.x = (uint32_t)(pairs * TN_MATVEC_HALVES), own.cluster = TN_MATVEC_HALVES;
    *a = t, *grid = own;
    return true;
}

int32_t tn_cuda_matvec_fit_rings(int32_t shared, tn_cuda_matvec_args *a, tn_dtype type, int32_t rows,
                                 tn_cuda_grid *grid)
{
    int32_t warps = (int32_t)grid->threads / 32, size = tile_size(type), x = TN_MATVEC_MMA_X(a->k);
    int32_t sums = align_up((int64_t)rows * TN_MATVEC_MMA_ROWS * a->sums_stride * 4);
    int64_t tiles = tn_div_up(rows, warps / a->n_slices) * tn_div_up(a->n_tiles, a->n_slices);
    int64_t fit = TN_MIN((shared - STATIC_SIZE - x - sums) / size / warps, TN_MATVEC_MOST_SLOTS);
    a->n_slots = (int32_t)(tiles <= fit ? tiles : TN_MAX(a->n_slots, TN_MIN(fit, tiles)));
    a->ring_size = a->n_slots * size, a->sums_at = warps * a->ring_size, a->x_at = a->sums_at + sums;
    grid->shared = (uint32_t)(a->x_at + x);
    return tiles <= fit ? a->n_slots : a->n_slots - 1;
}
