// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = act(norm(x) w^T + bias) + residual and its relatives for up to 8 rows of x ("columns"): every weight is read once, so memory is
// the limit, and all that this does is keep it busy.
//
// Blocks share the rows of all weights of the step evenly, one block per multiprocessor. Within a block a warp takes a slice of k
// of its share of the block's rows, in tiles: 16 bytes for each lane of two rows at a time. Tiles come by asynchronous copies
// into a ring of the warp in shared memory, up to 130 KB in flight per multiprocessor. A block has a multiprocessor for itself; the copies of the
// next kernel's start when it is done, while other multiprocessors finish (weights never change).
//
// Activations of quantised weights are rounded by each block: int8 per 16, d = max|x| / 127, half the CPU's groups, so that blocks may share their results in smaller units. A norm is applied as x g
// before rounding; its factor 1 / rms, the same for a whole row, comes last, so that nothing waits for it.
// Sums of slices meet in shared memory; the block finishes its rows there, in fixed order.
//
// Bytes: weights + 4 k + 4 n. Limits and measurements: docs/performance.md, "CUDA: matrix times vector".
#ifndef TN_CUDA_MATVEC_CUH
#define TN_CUDA_MATVEC_CUH

#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/activation.cuh"
#include "backends/cuda/product/matvec/matvec_dot.cuh"
#include "backends/cuda/mma.cuh"
#include "backends/cuda/quantise.cuh"

// --- the share of a warp ----------------------------------------------------------------------------

// Rows of a weight.
struct mv_range {
    int from, to;
};

struct mv_warp {
    int lane, slice, slice_shift, group, group_shift; // 2^group_shift groups of warps share the block's rows
    int first, end;          // of the rows of all parts: the block's
    int first_tile, n_tiles; // of the slice
    int64_t expert;          // rows before those of the expert
    char *ring;              // of the warp
};

// The block's rows of a part.
static __device__ __forceinline__ mv_range mv_part_rows(const tn_cuda_matvec_args &a, const mv_warp &w, int part)
{
    const tn_cuda_matvec_part &p = a.part[part];
    mv_range r = {max(w.first - p.first, 0), min(w.end - p.first, p.n)};
    r.to = max(r.to, r.from);
    return r;
}

// The warp's.
static __device__ __forceinline__ mv_range mv_warp_rows(const tn_cuda_matvec_args &a, const mv_warp &w, int part)
{
    mv_range r = mv_part_rows(a, w, part);
    int n = r.to - r.from;
    return {r.from + (n * w.group >> w.group_shift), r.from + (n * (w.group + 1) >> w.group_shift)};
}

// --- the ring ---------------------------------------------------------------------------------------

// Bytes of a block in each plane, from backends/planes.def.
struct mv_piece {
    int start, size, plane, at;
};
static constexpr __host__ __device__ int mv_plane_size(int plane, mv_piece a, mv_piece b = {}, mv_piece c = {}, mv_piece d = {}, mv_piece e = {})
{
    return (a.plane == plane ? a.size : 0) + (b.plane == plane ? b.size : 0) + (c.plane == plane ? c.size : 0) + (d.plane == plane ? d.size : 0) +
           (e.plane == plane ? e.size : 0);
}

template <int TYPE> static constexpr __host__ __device__ int mv_unit_size(int plane)
{
    switch (TYPE) {
#define TN_PLANES(type, ...) \
    case TN_TYPE_##type: return mv_plane_size(plane, __VA_ARGS__);
#include "backends/planes.def"
    default: return plane == 0 ? 16 : 0; // no planes: what a lane takes at a time
    }
}

template <int TYPE> static constexpr __host__ __device__ int mv_n_planes()
{
    int n = 1;
    while (n < TN_CUDA_MAX_PLANES && mv_unit_size<TYPE>(n) > 0) n++;
    return n;
}

// A tile of one row in shared memory: the planes one after another, in pieces of 16 bytes that the lanes copy in turns.
template <int TYPE> struct mv_tile {
    static constexpr __host__ __device__ bool whole(int plane) { return mv_unit_size<TYPE>(plane) % 16 == 0; }
    static constexpr __host__ __device__ int step(int plane) { return TN_MATVEC_TILE_BLOCKS(TYPE) * mv_unit_size<TYPE>(plane); }
    static constexpr __host__ __device__ int shared(int plane) { return TN_MATVEC_TILE_ROOM(TYPE, mv_unit_size<TYPE>(plane)); }
    // Without loops, so that nothing of it is left to the device.
    static constexpr __host__ __device__ int at(int plane)
    {
        return (plane > 0 ? shared(0) : 0) + (plane > 1 ? shared(1) : 0) + (plane > 2 ? shared(2) : 0) + (plane > 3 ? shared(3) : 0);
    }
    static constexpr int planes = mv_n_planes<TYPE>(), size = at(planes), turns = (size / 16 + TN_WARP - 1) / TN_WARP;
    static constexpr __host__ __device__ bool even(int plane, int turn)
    {
        return whole(plane) || at(plane) >= (turn + 1) * TN_WARP * 16 || at(plane + 1) <= turn * TN_WARP * 16;
    }
    // All pieces of a turn begin at multiples of 16 bytes.
    static constexpr __host__ __device__ bool aligned(int turn) { return even(0, turn) && even(1, turn) && even(2, turn) && even(3, turn); }
};

// What the lane copies next: its pieces of a tile of two rows. The warp's rows of a part are cut in two halves that overlap where they are
// odd in number; the two rows go through one half each.
template <int TYPE> struct mv_feed {
    static constexpr int turns = mv_tile<TYPE>::turns;
    const char *from[turns];
    int second[turns];            // bytes to the row of the second half
    int step[turns], jump[turns]; // bytes to the next tile; more to the next row
    int left[turns];              // to the end of the row
    int part, tiles, rows;        // left of the row, of the half
};

static __device__ __forceinline__ int mv_half(mv_range r)
{
    return (r.to - r.from + 1) >> 1;
}

// To the first tile of the warp's rows of the next part that has any.
template <int TYPE> static __device__ __forceinline__ void mv_feed_part(const tn_cuda_matvec_args &a, const mv_warp &w, mv_feed<TYPE> &f)
{
    typedef mv_tile<TYPE> tile;
    mv_range r = {0, 0};
    while (r.from >= r.to && f.part + 1 < a.n_parts) r = mv_warp_rows(a, w, ++f.part);
    f.rows = mv_half(r);
    if (f.rows == 0) return;
    const tn_cuda_matvec_part &p = a.part[f.part];
    f.tiles = w.n_tiles;
#pragma unroll
    for (int i = 0; i < tile::turns; i++) {
        int piece = (i * TN_WARP + w.lane) * 16;
#pragma unroll
        for (int plane = 0; plane < tile::planes; plane++) {
            if (piece < tile::at(plane) || piece >= tile::at(plane + 1)) continue;
            int first = w.first_tile * tile::step(plane) + piece - tile::at(plane), row_size = (int)p.row_size[plane];
            f.from[i] = p.plane[plane] + (w.expert + r.from) * p.row_size[plane] + first;
            f.second[i] = (r.to - r.from - f.rows) * row_size;
            f.step[i] = tile::step(plane);
            f.jump[i] = row_size - w.n_tiles * f.step[i];
            f.left[i] = row_size - first;
        }
    }
}

// Starts the copies of the next tiles into a slot, if there are any left.
template <int TYPE, bool FULL>
static __device__ __forceinline__ void mv_feed_next(const tn_cuda_matvec_args &a, const mv_warp &w, mv_feed<TYPE> &f, char *slot)
{
    typedef mv_tile<TYPE> tile;
    if (f.rows > 0) {
        slot += w.lane * 16;
#pragma unroll
        for (int r = 0; r < TN_MATVEC_ROWS; r++) {
#pragma unroll
            for (int i = 0; i < tile::turns; i++) {
                const char *from = f.from[i] + (r ? f.second[i] : 0);
                int over = tile::aligned(i) ? 0 : (int)(uintptr_t)from & 15;
                bool mine = (i + 1) * TN_WARP * 16 <= tile::size || (i * TN_WARP + w.lane) * 16 < tile::size;
                // What lies past the end of the row is not needed; whole tiles of aligned planes end with it.
                if (!FULL || !tile::aligned(i)) mine = mine && f.left[i] + over > 0;
                if (mine) tn_copy16(slot + r * tile::size + i * TN_WARP * 16, from - over, true);
            }
        }
        bool wrap = --f.tiles == 0;
#pragma unroll
        for (int i = 0; i < tile::turns; i++) {
            f.from[i] += f.step[i];
            f.left[i] -= f.step[i];
        }
        if (wrap) {
            f.tiles = w.n_tiles;
#pragma unroll
            for (int i = 0; i < tile::turns; i++) {
                f.from[i] += f.jump[i];
                f.left[i] += w.n_tiles * f.step[i];
            }
            if (--f.rows == 0) mv_feed_part<TYPE>(a, w, f);
        }
    }
    tn_copy_commit();
}

template <int TYPE> static __device__ __forceinline__ void mv_feed_start(const tn_cuda_matvec_args &a, const mv_warp &w, mv_feed<TYPE> &f)
{
    f.part = -1;
    mv_feed_part<TYPE>(a, w, f);
}

// Slots from .. to - 1. All but the last are filled before the first is read.
template <int TYPE, bool FULL>
static __device__ __forceinline__ void mv_feed_first(const tn_cuda_matvec_args &a, const mv_warp &w, mv_feed<TYPE> &f, int from, int to)
{
#pragma unroll 1
    for (int i = from; i < to; i++) mv_feed_next<TYPE, FULL>(a, w, f, w.ring + i * (TN_MATVEC_ROWS * mv_tile<TYPE>::size));
}

// --- activations ------------------------------------------------------------------------------------

static __device__ __forceinline__ float4 mv_load4(const float *p, bool aligned)
{
    if (aligned) return __ldcg((const float4 *)p);
    return make_float4(__ldcg(p), __ldcg(p + 1), __ldcg(p + 2), __ldcg(p + 3));
}

// 8 values, the lane's half of a group of 16: their int8, and d and the sum of the group.
struct mv_quantise8 {
    int2 words;
    float d;
    int sum;
};

static __device__ __forceinline__ mv_quantise8 mv_round8(const float4 (&v)[2])
{
    uint32_t top = max(tn_max_magnitude4(v[0]), tn_max_magnitude4(v[1]));
    top = max(top, __shfl_xor_sync(0xffffffffu, top, 1));
    tn_quantise_scale s = tn_quantise_scale_of(top);
    int2 words = make_int2(tn_quantise4(v[0], s), tn_quantise4(v[1], s));
    int sum = __dp4a(words.x, 0x01010101, __dp4a(words.y, 0x01010101, 0));
    return {words, s.d, sum + __shfl_xor_sync(0xffffffffu, sum, 1)};
}

// Elements `at` and on of a row in shared memory, as mv_x has it.
struct mv_to_shared {
    char *row;
    int k;
    __device__ __forceinline__ void operator()(const float4 (&v)[2], int at, bool valid) const
    {
        mv_quantise8 r = mv_round8(v);
        if (!valid) return;
        *(int2 *)(row + at) = r.words;
        if (at % 16 == 0) ((short *)(row + TN_QUANTISED_SUM(k)))[at / 16] = (short)r.sum, ((float *)(row + TN_QUANTISED_D(k)))[at / 16] = r.d;
    }
};

// Rounded activations from element `at` on, of a row of k.
static __device__ __forceinline__ mv_x mv_x_at(const char *shared, int k, int at)
{
    return {shared + at, (const float *)(shared + TN_QUANTISED_D(k) + at / 4), (const short *)(shared + TN_QUANTISED_SUM(k) + at / 8)};
}

static __device__ __forceinline__ void mv_load8(float4 (&v)[2], const float *p, bool aligned, bool valid)
{
#pragma unroll
    for (int i = 0; i < 2; i++) v[i] = valid ? mv_load4(p + 4 * i, aligned) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// All threads: rounds a row of x, times the weight of a norm, 8 values a lane, for `to`. Returns the thread's part of the sum of squares of x. The next values are on
// their way while some are rounded.
template <class TO> static __device__ __forceinline__ float mv_round_row(const float *x, const float *norm, int k, const TO &to)
{
    bool aligned = (((uintptr_t)x | (uintptr_t)norm) & 15u) == 0;
    float squares = 0.0f;
    int step = blockDim.x * 8, at = threadIdx.x * 8;
    float4 v[2], later[2], g[2];
    mv_load8(v, x + at, aligned, at < k);
#pragma unroll 1
    for (int base = 0; base < k; base += step, at += step) {
        mv_load8(later, x + at + step, aligned, at + step < k);
        if (norm) {
            mv_load8(g, norm + at, aligned, at < k);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                squares += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
                v[i].x *= g[i].x, v[i].y *= g[i].y, v[i].z *= g[i].z, v[i].w *= g[i].w;
            }
        }
        to(v, at, at < k);
#pragma unroll
        for (int i = 0; i < 2; i++) v[i] = later[i];
    }
    return squares;
}

// All threads: a row that was rounded before comes to shared memory.
static __device__ __forceinline__ void mv_copy_row(const char *from, int k, char *shared)
{
    enum { AHEAD = 4 };
    int n = (k + k / 4 + k / 8 + 15) / 16;
    for (int base = threadIdx.x; base < n; base += AHEAD * blockDim.x) {
        int4 v[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (base + i * blockDim.x < n) v[i] = __ldcg((const int4 *)from + base + i * blockDim.x);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (base + i * blockDim.x < n) ((int4 *)shared)[base + i * blockDim.x] = v[i];
    }
}

// A warp: the sum of squares of a row that was rounded before.
static __device__ __forceinline__ float mv_sum_squares(const char *row, int k, int lane)
{
    const float *squares = (const float *)(row + TN_QUANTISED_SQUARES(k));
    float sum = 0.0f;
#pragma unroll 4
    for (int i = lane; i < k / 16; i += TN_WARP) sum += __ldcg(squares + i);
    return tn_warp_sum(sum);
}

// All threads: a row of x, times the weight of a norm, to shared memory as it is. Returns the thread's part of the sum of squares of x.
static __device__ __forceinline__ float mv_stage_row(const float *x, const float *norm, int k, float *shared)
{
    bool aligned = (((uintptr_t)x | (uintptr_t)norm) & 15u) == 0;
    float squares = 0.0f;
#pragma unroll 4
    for (int at = threadIdx.x * 4; at < k; at += blockDim.x * 4) {
        float4 v = mv_load4(x + at, aligned);
        if (norm) {
            float4 g = mv_load4(norm + at, aligned);
            squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
            v.x *= g.x, v.y *= g.y, v.z *= g.z, v.w *= g.w;
        }
        *(float4 *)(shared + at) = v;
    }
    return squares;
}

// --- rows -------------------------------------------------------------------------------------------

// Sums over the lanes of COLUMNS values each; value c in lane c * 32 / COLUMNS.
template <int COLUMNS> static __device__ __forceinline__ float mv_reduce(float (&v)[COLUMNS], int lane)
{
    int n = COLUMNS;
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) {
        if (n > 1) {
            n /= 2;
            bool up = lane & i;
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j++) {
                if (j >= n) break;
                float give = up ? v[j] : v[j + n], keep = up ? v[j + n] : v[j];
                v[j] = keep + __shfl_xor_sync(0xffffffffu, give, i);
            }
        } else {
            v[0] += __shfl_xor_sync(0xffffffffu, v[0], i);
        }
    }
    return v[0];
}

// Bytes of a row of x in shared memory.
template <int TYPE> static __device__ __forceinline__ int mv_x_size(int k)
{
    return tn_is_plain(TYPE) ? k * 4 : (k + k / 4 + k / 8 + 15) & ~15;
}

// The activations of unit `unit` of tile `t` of a row of n.
template <int TYPE> static __device__ __forceinline__ void mv_load_acts(typename mv_unit<TYPE>::acts &acts, const char *x, int n, int t, int unit)
{
    constexpr int elems = TN_MATVEC_UNIT_ELEMS(TYPE);
    if constexpr (tn_is_plain(TYPE)) {
        const float *from = (const float *)x + t * (TN_WARP * elems) + unit * elems;
#pragma unroll
        for (int j = 0; j < elems; j += 4) {
            float4 v = *(const float4 *)(from + j);
            acts.x[j] = v.x, acts.x[j + 1] = v.y, acts.x[j + 2] = v.z, acts.x[j + 3] = v.w;
        }
    } else {
        mv_unit<TYPE>::load(acts, mv_x_at(x, n, t * (TN_WARP * elems)), unit);
    }
}

// Until the oldest of the copies under way, those of all slots but one, has arrived. Rather a little more than none too few.
static __device__ __forceinline__ void mv_wait(int n_slots)
{
    if (n_slots >= 8) tn_copy_wait<6>();
    else if (n_slots >= 5) tn_copy_wait<3>();
    else if (n_slots == 4) tn_copy_wait<2>();
    else if (n_slots == 3) tn_copy_wait<1>();
    else tn_copy_wait<0>();
}

// The warp's rows of a part; sums go to `sums`, [row of the block][slice][column].
template <int TYPE, int COLUMNS, bool FULL>
static __device__ __forceinline__ void mv_run_part(const tn_cuda_matvec_args &a, const mv_warp &w, int part, const char *x, float *sums,
                                                   mv_feed<TYPE> &feed, char *&slot)
{
    typedef mv_tile<TYPE> tile;
    constexpr int rows_at_once = TN_MATVEC_ROWS, values = rows_at_once * COLUMNS, lanes = TN_WARP / values; // that end up with the same value
    constexpr int slot_size = rows_at_once * tile::size;
    const tn_cuda_matvec_part &p = a.part[part];
    mv_range block = mv_part_rows(a, w, part), rows = mv_warp_rows(a, w, part);
    int half = mv_half(rows), second = rows.to - rows.from - half, mine = w.lane / lanes / COLUMNS; // the row that the lane has the sum of
    sums += (rows.from - block.from + mine * second) * a.sums_stride + w.slice * COLUMNS + w.lane / lanes % COLUMNS;
    const char *const end = w.ring + a.n_slots * slot_size;
#pragma unroll 1
    for (int row = 0; row < half; row++) {
        float v[values];
        uint32_t over[rows_at_once][TN_CUDA_MAX_PLANES] = {}; // where a tile begins in its copy, in the low bits
#pragma unroll
        for (int i = 0; i < values; i++) v[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < tile::planes; i++)
#pragma unroll
            for (int r = 0; r < rows_at_once; r++)
                if (!tile::whole(i))
                    over[r][i] = (uint32_t)(uintptr_t)p.plane[i] + (uint32_t)(w.expert + rows.from + row + r * second) * (uint32_t)p.row_size[i] +
                                 (uint32_t)(w.first_tile * tile::step(i));
#pragma unroll 1
        for (int t = w.first_tile; t < w.first_tile + w.n_tiles; t++) {
            mv_wait(a.n_slots);
            __syncwarp(); // all have read the slot before, and see this one
            mv_feed_next<TYPE, FULL>(a, w, feed, slot == w.ring ? (char *)end - slot_size : slot - slot_size);
            int left = a.n_units - t * TN_WARP;
            bool valid = FULL || w.lane < left;
            // Past the last unit an early one of the same place in its block, for nothing.
            int unit = valid ? w.lane : w.lane % 8 < left ? w.lane % 8 : 0;
            const char *planes[rows_at_once][TN_CUDA_MAX_PLANES] = {};
#pragma unroll
            for (int r = 0; r < rows_at_once; r++)
#pragma unroll
                for (int i = 0; i < tile::planes; i++) {
                    planes[r][i] = slot + r * tile::size + tile::at(i);
                    if (tile::whole(i)) continue;
                    planes[r][i] += over[r][i] & 15u;
                    over[r][i] += tile::step(i);
                }
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                typename mv_unit<TYPE>::acts acts;
                mv_load_acts<TYPE>(acts, x + (c < a.n_columns ? c : 0) * mv_x_size<TYPE>(a.k), a.k, t, unit);
#pragma unroll
                for (int r = 0; r < rows_at_once; r++) {
                    float sum = mv_unit<TYPE>::dot(acts, planes[r], unit, w.lane, v[r * COLUMNS + c]);
                    v[r * COLUMNS + c] = valid ? sum : v[r * COLUMNS + c];
                }
            }
            slot += slot_size;
            if (slot == end) slot = w.ring;
        }
        float sum = mv_reduce<values>(v, w.lane);
        if (w.lane % lanes == 0) *sums = sum;
        sums += a.sums_stride;
    }
}

// --- the block ----------------------------------------------------------------------------------------

// Which result a thread finishes: row `v` of the block, which is row `j` of a part; column c.
struct mv_result {
    int c, v, part, j;
};

template <int COLUMNS> static __device__ __forceinline__ mv_result mv_result_of(const tn_cuda_matvec_args &a, const mv_warp &w, int i)
{
    int n = w.end - w.first, c = COLUMNS == 1 ? 0 : i / n, v = i - c * n, part = 0, j = w.first + v;
    if (!a.is_glu)
        while (part + 1 < a.n_parts && j >= a.part[part + 1].first) part++;
    return {c, v, part, j - a.part[part].first};
}

// What else a result needs, read before the products are there.
struct mv_ahead {
    float bias, residual, norm; // norm: the reader's weight
};

static __device__ __forceinline__ mv_ahead mv_load_ahead(const tn_cuda_matvec_args &a, const mv_result &r, int64_t row0)
{
    const float *bias = a.part[r.part].bias;
    return {bias ? __ldg(bias + r.j) : 0.0f, a.residual ? __ldcg(a.residual + (row0 + r.c) * a.residual_stride + r.j) : 0.0f,
            a.quantised_y.norm ? __ldg(a.quantised_y.norm + r.j) : 1.0f};
}

// In the order of the slices.
static __device__ __forceinline__ float mv_sum_slices(const tn_cuda_matvec_args &a, const float *sums, int stride)
{
    float sum = 0.0f;
    for (int s0 = 0; s0 < a.n_slices; s0 += 8) {
        float v[8];
#pragma unroll
        for (int s = 0; s < 8; s++) v[s] = s0 + s < a.n_slices ? sums[(s0 + s) * stride] : 0.0f;
#pragma unroll
        for (int s = 0; s < 8; s++) sum += v[s];
    }
    return sum;
}

// Results of the block's rows from the sums of the slices. `ahead` is of the thread's first one.
template <int COLUMNS>
static __device__ __forceinline__ void mv_finish(const tn_cuda_matvec_args &a, const mv_warp &w, const float *sums, float (*squares)[TN_WARP],
                                                 int64_t row0, bool none, mv_ahead ahead)
{
    int n = w.end - w.first, n_squares = a.quantised_x.rows ? 1 : blockDim.x / TN_WARP;
    for (int i = threadIdx.x; i < n * a.n_columns; i += blockDim.x) {
        mv_result r = mv_result_of<COLUMNS>(a, w, i);
        if (i >= blockDim.x) ahead = mv_load_ahead(a, r, row0);
        const float *at = sums + r.v * a.sums_stride + r.c;
        float sum = mv_sum_slices(a, at, COLUMNS), up = a.is_glu ? mv_sum_slices(a, at + n * a.sums_stride, COLUMNS) : 0.0f;
        if (a.norm) {
            float s = 0.0f;
#pragma unroll 4
            for (int k = 0; k < n_squares; k++) s += squares[r.c][k];
            s = 1.0f / sqrtf(s / (float)a.k + a.eps);
            sum *= s, up *= s;
        }
        if (none) sum = up = 0.0f;
        const tn_cuda_matvec_part &p = a.part[r.part];
        sum += ahead.bias;
        if (a.is_glu) sum = tn_glu_of(a.glu, sum, up);
        else if (a.act != TN_UNARY_NONE) sum = tn_act(a.act, sum);
        sum += ahead.residual;
        p.y[(row0 + r.c) * p.y_stride + r.j] = sum;
        // Whole halves of warps: blocks have multiples of 16 rows then.
        if (COLUMNS == 1 && a.quantised_y.rows) tn_quantised_store1(a.quantised_y, row0, r.j, sum, ahead.norm);
    }
}

// Rounded or plain rows of x come to shared memory.
template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void mv_activations(const tn_cuda_matvec_args &a, const mv_warp &w, const float *x, int64_t row0, char *shared,
                                                      float (*squares)[TN_WARP])
{
    int warp = threadIdx.x / TN_WARP;
    const char *ready = a.quantised_x.rows ? a.quantised_x.rows + row0 * a.quantised_x.row_size : nullptr;
    for (int c = 0; c < a.n_columns; c++) {
        char *to = shared + c * mv_x_size<TYPE>(a.k);
        float s;
        if constexpr (tn_is_plain(TYPE)) s = mv_stage_row(x + c * a.x_stride, a.norm, a.k, (float *)to);
        else if (!ready) s = mv_round_row(x + c * a.x_stride, a.norm, a.k, mv_to_shared{to, a.k});
        else mv_copy_row(ready + c * a.quantised_x.row_size, a.k, to);
        if (!a.norm || ready) continue;
        s = tn_warp_sum(s);
        if (w.lane == 0) squares[c][warp] = s;
    }
    if (a.norm && ready && warp < a.n_columns) {
        float sum = mv_sum_squares(ready + warp * a.quantised_x.row_size, a.k, w.lane);
        if (w.lane == 0) squares[warp][0] = sum;
    }
    __syncthreads();
}

// The share of this warp in block `block` of those that share the rows of `a`.
static __device__ __forceinline__ mv_warp mv_warp_of(const tn_cuda_matvec_args &a, int block, char *shared)
{
    int warp = threadIdx.x / TN_WARP;
    mv_warp w;
    w.lane = threadIdx.x % TN_WARP;
    w.slice = warp & (a.n_slices - 1), w.slice_shift = a.slice_shift, w.group = warp >> a.slice_shift, w.group_shift = a.group_shift;
    w.first = block * a.block_rows + min(block, a.more_rows) * a.row_unit;
    w.end = w.first + a.block_rows + (block < a.more_rows ? a.row_unit : 0);
    w.expert = 0;
    w.first_tile = w.slice * a.slice_tiles, w.n_tiles = min(a.slice_tiles, a.n_tiles - w.first_tile);
    w.ring = shared + a.rings_at + warp * a.ring_size;
    return w;
}

// Weights push everything else out of L2 between two uses.
static __device__ __forceinline__ void mv_prefetch_norm(const tn_cuda_matvec_args &a)
{
    for (int i = threadIdx.x * 32; a.norm && i < a.k; i += blockDim.x * 32) tn_prefetch(a.norm + i);
}

// Which rows of x and y the block has, and of which expert; none: an expert that does not exist.
struct mv_row {
    const float *x;
    int64_t y_row, x_row;
    bool none;
};

static __device__ __forceinline__ mv_row mv_row_of(const tn_cuda_matvec_args &a, mv_warp &w)
{
    mv_row r = {a.x, 0, 0, false};
    if (!a.ids) return r;
    r.y_row = blockIdx.y;
    int64_t t = r.y_row / a.n_used, u = r.y_row % a.n_used;
    int e = __ldcg(a.ids + t * a.ids_stride[0] + u * a.ids_stride[1]);
    r.none = e < 0 || e >= a.n_experts;
    w.expert = (int64_t)(r.none ? 0 : e) * a.part[0].n;
    r.x += t * a.x_stride + u * a.x_used_stride;
    r.x_row = a.x_used_stride ? r.y_row : t;
    return r;
}

// All parts, with x in shared memory.
template <int TYPE, int COLUMNS, bool FULL>
static __device__ __forceinline__ void mv_run_parts(const tn_cuda_matvec_args &a, const mv_warp &w, char *shared, mv_feed<TYPE> &feed)
{
    float *sums = (float *)(shared + a.sums_at);
    char *slot = w.ring;
    for (int part = 0, rows = 0; part < a.n_parts; part++) {
        mv_run_part<TYPE, COLUMNS, FULL>(a, w, part, shared + a.x_at, sums + rows * a.sums_stride, feed, slot);
        mv_range r = mv_part_rows(a, w, part);
        rows += r.to - r.from;
    }
}

// Block `block`. FULL: rows are whole tiles.
template <int TYPE, int COLUMNS, bool FULL> static __device__ __forceinline__ void mv_run_block(const tn_cuda_matvec_args &a, int block)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ float squares[COLUMNS][TN_WARP]; // of x, in parts of warps; complete at the barrier before mv_finish
    mv_warp w = mv_warp_of(a, block, shared);
    if (!a.late) tn_pdl_trigger();
    mv_feed<TYPE> feed;
    // Which expert, a predecessor says.
    int early = a.ids ? 0 : a.n_early;
    if (!a.ids) mv_feed_start<TYPE>(a, w, feed);
    mv_feed_first<TYPE, FULL>(a, w, feed, 0, early);
    mv_prefetch_norm(a);
    tn_pdl_wait();
    mv_row r = mv_row_of(a, w);
    if (a.ids) {
        mv_feed_start<TYPE>(a, w, feed);
        mv_feed_first<TYPE, FULL>(a, w, feed, 0, early = a.n_slots - 1);
    }
    mv_activations<TYPE, COLUMNS>(a, w, r.x, r.x_row, shared + a.x_at, squares);
    mv_feed_first<TYPE, FULL>(a, w, feed, early, a.n_slots - 1);
    mv_ahead ahead = {0.0f, 0.0f, 1.0f};
    if ((int)threadIdx.x < (w.end - w.first) * a.n_columns) ahead = mv_load_ahead(a, mv_result_of<COLUMNS>(a, w, threadIdx.x), r.y_row);
    mv_run_parts<TYPE, COLUMNS, FULL>(a, w, shared, feed);
    if (a.late) tn_pdl_trigger();
    __syncthreads();
    mv_finish<COLUMNS>(a, w, (const float *)(shared + a.sums_at), squares, r.y_row, r.none, ahead);
}

template <int TYPE, int COLUMNS> static __device__ __forceinline__ void mv_run(const tn_cuda_matvec_args &a, int block)
{
    if (a.n_units % TN_WARP == 0) mv_run_block<TYPE, COLUMNS, true>(a, block);
    else mv_run_block<TYPE, COLUMNS, false>(a, block);
}

#define TN_MATVEC(TYPE, COLUMNS)                                                                                                     \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                                         \
        tn_matvec_##TYPE##_##COLUMNS(const __grid_constant__ tn_cuda_matvec_args a)                                                  \
    {                                                                                                                                \
        mv_run<TN_TYPE_##TYPE, COLUMNS>(a, blockIdx.x);                                                                              \
    }
// Weights of two types for one row of x: the first blocks have those of the first type.
#define TN_MATVEC_PAIR(FIRST, SECOND)                                                                                                \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                                         \
        tn_matvec_##FIRST##_##SECOND(const __grid_constant__ tn_cuda_matvec_pair a)                                                  \
    {                                                                                                                                \
        int n = a.first_blocks, block = blockIdx.x;                                                                                  \
        if (block < n) mv_run<TN_TYPE_##FIRST, 1>(a.of[0], block);                                                                   \
        else mv_run<TN_TYPE_##SECOND, 1>(a.of[1], block - n);                                                                        \
    }
// Two, four and eight rows; one and four.
#define TN_MATVEC_MORE(TYPE) TN_MATVEC(TYPE, 2) TN_MATVEC(TYPE, 4) TN_MATVEC(TYPE, 8)
#define TN_MATVEC_SOME(TYPE) TN_MATVEC(TYPE, 1) TN_MATVEC(TYPE, 4)

#endif
