// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = act(norm(x) w^T + bias) + residual, and the same for all six product ops, for up to 8 rows of x, which
// are called columns here: the GEMV of every type. Each weight is read once.
//
// Operands: x [columns, k] f32 or quantised, w [n, k] in planes (up to three weights share a launch, experts
// have [experts, n, k]), y [columns, n] f32.
//
// Work: blocks share the rows of all weights of the step evenly, one block on each multiprocessor. Within a
// block a warp takes a slice of k of its share of the block's rows, in tiles: one chunk (16 bytes of codes)
// for each lane of two rows at a time. Tiles come by asynchronous copies into a ring of the warp in shared
// memory, up to 130 KB in flight on a multiprocessor. The next kernel starts its copies when a block is done,
// while other multiprocessors finish; weights never change, so this is safe.
//
// Activations of quantised weights are quantised by each block: int8 with d = max|x| / 127 for each 16, half
// the groups of the CPU backend, so that blocks can share their results in smaller pieces. A norm is applied
// as x times its weight before quantisation. Its factor 1 / rms is the same for a whole row and is multiplied
// in last, so that nothing waits for it. Sums of slices meet in shared memory; the block finishes its rows
// there in fixed order.
//
// Bytes: weights + 4 k + 4 n for each column. Operations: 2 n k for each column, and the unpacking of each
// weight. The limit of one column is memory. Measured on an H200: decode of 8B bf16 reaches 84 % of the time
// to read its weights (248.1 of 294 tokens per second, 2026-11-22); for one column of Q4_0, Q8_0, Q4_K, Q5_K
// and Q6_K matvec_mma.cuh is used on compute capability 8.0 and later.
//
// Reasons of design, H200, 2026-11-22, tokens per second:
// Slots filled before the predecessor has ended (TN_MATVEC_PLAIN_EARLY), of a ring for plain types. Weights
// that are requested ahead delay x; none leaves the memory idle. 8B bf16: 247.0 with none; 250.1, 252.7,
// 252.2 with 1, 2, 4; 252.0 with all. 1B bf16: 1136, 1174, 1187, 1162, 1168.
// When the next kernel may start (`late`): 8B Q4_K_M 520.9 at the end of the products, 526.9 at the beginning
// of the block; 1B bf16 1187 and 1214.
// Asking L2 for whole lines of 128 or 256 bytes made bf16 slower (248.7 and 236.0 against 249.0), so tiles
// here use plain copies.
#ifndef TN_CUDA_MATVEC_CUH
#define TN_CUDA_MATVEC_CUH

#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/activation.cuh"
#include "backends/cuda/product/matvec/matvec_dot.cuh"
#include "backends/cuda/mma.cuh"
#include "backends/cuda/quantise.cuh"

// --- the share of a warp ----------------------------------------------------------------------------

// A range of rows of a weight.
struct mv_range {
    int from, to;
};

struct mv_warp {
    int lane, slice, slice_shift, group, group_shift; // 2^group_shift groups of warps share the block's rows
    // The block's rows, counted over the rows of all parts.
    int first, end;
    int first_tile, n_tiles; // of the slice
    int64_t expert;          // rows of the weight before those of the expert
    char *ring;              // ring of tiles in shared memory
};

// The block's rows of a part.
static __device__ __forceinline__ mv_range mv_part_rows(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                        int part)
{
    const tn_cuda_matvec_part &p = a.part[part];
    mv_range r = {max(w.first - p.first, 0), min(w.end - p.first, p.n)};
    r.to = max(r.to, r.from);
    return r;
}

// The warp's share of them.
static __device__ __forceinline__ mv_range mv_warp_rows(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                        int part)
{
    mv_range r = mv_part_rows(a, w, part);
    int n = r.to - r.from;
    return {r.from + (n * w.group >> w.group_shift), r.from + (n * (w.group + 1) >> w.group_shift)};
}

// --- the ring ---------------------------------------------------------------------------------------

// Bytes of a block in each plane, from backends/planes.def.
struct mv_plane_field {
    int start, size, plane, at;
};
static constexpr __host__ __device__ int mv_field_bytes(int plane, mv_plane_field a, mv_plane_field b = {},
                                                        mv_plane_field c = {}, mv_plane_field d = {},
                                                        mv_plane_field e = {})
{
    return (a.plane == plane ? a.size : 0) + (b.plane == plane ? b.size : 0) +
           (c.plane == plane ? c.size : 0) + (d.plane == plane ? d.size : 0) +
           (e.plane == plane ? e.size : 0);
}

template <int TYPE> static constexpr __host__ __device__ int mv_plane_block_bytes(int plane)
{
    switch (TYPE) {
#define TN_PLANES(type, ...)                                                                                 \
    case TN_TYPE_##type:                                                                                     \
        return mv_field_bytes(plane, __VA_ARGS__);
#include "backends/planes.def"
    default:
        return plane == 0 ? 16 : 0; // plain types: the 16 bytes that a lane reads at a time
    }
}

template <int TYPE> static constexpr __host__ __device__ int mv_plane_count()
{
    int n = 1;
    while (n < TN_CUDA_MAX_PLANES && mv_plane_block_bytes<TYPE>(n) > 0) n++;
    return n;
}

// A tile of one row in shared memory: the planes one after another, in 16-byte chunks that the lanes copy in
// turns. A plane whose bytes of a block are no multiple of 16 may start anywhere in its first chunk.
template <int TYPE> struct mv_tile {
    static constexpr __host__ __device__ bool fills_chunks(int plane)
    {
        return mv_plane_block_bytes<TYPE>(plane) % 16 == 0;
    }
    static constexpr __host__ __device__ int bytes(int plane)
    {
        return TN_MATVEC_TILE_BLOCKS(TYPE) * mv_plane_block_bytes<TYPE>(plane);
    }
    static constexpr __host__ __device__ int padded_bytes(int plane)
    {
        return TN_MATVEC_TILE_ROOM(TYPE, mv_plane_block_bytes<TYPE>(plane));
    }
    // Written without a loop, because the compiler evaluated a table found by a loop at each copy: Q6_K took
    // 61 us instead of 22 (H200, 2026-11-22).
    static constexpr __host__ __device__ int offset(int plane)
    {
        return (plane > 0 ? padded_bytes(0) : 0) + (plane > 1 ? padded_bytes(1) : 0) +
               (plane > 2 ? padded_bytes(2) : 0) + (plane > 3 ? padded_bytes(3) : 0);
    }
    static constexpr int planes = mv_plane_count<TYPE>(), size = offset(planes),
                         turns = (size / 16 + TN_WARP - 1) / TN_WARP;
    static constexpr __host__ __device__ bool plane_aligned(int plane, int turn)
    {
        return fills_chunks(plane) || offset(plane) >= (turn + 1) * TN_WARP * 16 ||
               offset(plane + 1) <= turn * TN_WARP * 16;
    }
    // Whether all chunks of a turn begin at multiples of 16 bytes in global memory.
    static constexpr __host__ __device__ bool aligned(int turn)
    {
        return plane_aligned(0, turn) && plane_aligned(1, turn) && plane_aligned(2, turn) &&
               plane_aligned(3, turn);
    }
};

// What the lane copies next: its chunks of a tile of two rows. The warp's rows of a part are cut into two
// halves, which overlap by a row where their number is odd; the two rows of a tile go through one half each.
template <int TYPE> struct mv_loader {
    static constexpr int turns = mv_tile<TYPE>::turns;
    const char *from[turns];
    int second_row[turns];        // bytes from the row of the first half to that of the second
    int step[turns], jump[turns]; // bytes to the next tile; bytes added at the end of a row
    int bytes_left[turns];        // bytes to the end of the row
    int part, tiles, rows;        // tiles left of the row, rows left of the half
};

static __device__ __forceinline__ int mv_half_rows(mv_range r)
{
    return (r.to - r.from + 1) >> 1;
}

// Moves the loader to the first tile of the warp's rows of the next part that has any.
template <int TYPE>
static __device__ __forceinline__ void mv_loader_enter_part(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                            mv_loader<TYPE> &f)
{
    typedef mv_tile<TYPE> tile;
    mv_range r = {0, 0};
    while (r.from >= r.to && f.part + 1 < a.n_parts) r = mv_warp_rows(a, w, ++f.part);
    f.rows = mv_half_rows(r);
    if (f.rows == 0) return;
    const tn_cuda_matvec_part &p = a.part[f.part];
    f.tiles = w.n_tiles;
#pragma unroll
    for (int i = 0; i < tile::turns; i++) {
        int at = (i * TN_WARP + w.lane) * 16;
#pragma unroll
        for (int plane = 0; plane < tile::planes; plane++) {
            if (at < tile::offset(plane) || at >= tile::offset(plane + 1)) continue;
            int first = w.first_tile * tile::bytes(plane) + at - tile::offset(plane),
                row_size = (int)p.row_size[plane];
            f.from[i] = p.plane[plane] + (w.expert + r.from) * p.row_size[plane] + first;
            f.second_row[i] = (r.to - r.from - f.rows) * row_size;
            f.step[i] = tile::bytes(plane);
            f.jump[i] = row_size - w.n_tiles * f.step[i];
            f.bytes_left[i] = row_size - first;
        }
    }
}

// Starts the copies of the next tiles into a slot, if there are any left. A group is committed in any case,
// so that waits can count groups.
template <int TYPE, bool FULL>
static __device__ __forceinline__ void mv_loader_copy_next(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                           mv_loader<TYPE> &f, char *slot)
{
    typedef mv_tile<TYPE> tile;
    if (f.rows > 0) {
        slot += w.lane * 16;
#pragma unroll
        for (int r = 0; r < TN_MATVEC_ROWS; r++) {
#pragma unroll
            for (int i = 0; i < tile::turns; i++) {
                const char *from = f.from[i] + (r ? f.second_row[i] : 0);
                int misalignment = tile::aligned(i) ? 0 : (int)(uintptr_t)from & 15;
                bool own = (i + 1) * TN_WARP * 16 <= tile::size || (i * TN_WARP + w.lane) * 16 < tile::size;
                // Bytes past the end of the row are not copied. Whole tiles of aligned planes end with the
                // row.
                if (!FULL || !tile::aligned(i)) own = own && f.bytes_left[i] + misalignment > 0;
                if (own) tn_copy16(slot + r * tile::size + i * TN_WARP * 16, from - misalignment, true);
            }
        }
        bool wrap = --f.tiles == 0;
#pragma unroll
        for (int i = 0; i < tile::turns; i++) {
            f.from[i] += f.step[i];
            f.bytes_left[i] -= f.step[i];
        }
        if (wrap) {
            f.tiles = w.n_tiles;
#pragma unroll
            for (int i = 0; i < tile::turns; i++) {
                f.from[i] += f.jump[i];
                f.bytes_left[i] += w.n_tiles * f.step[i];
            }
            if (--f.rows == 0) mv_loader_enter_part<TYPE>(a, w, f);
        }
    }
    tn_copy_commit();
}

template <int TYPE>
static __device__ __forceinline__ void mv_loader_start(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                       mv_loader<TYPE> &f)
{
    f.part = -1;
    mv_loader_enter_part<TYPE>(a, w, f);
}

// Fills slots `from` to `to` - 1. All slots but the last are filled before the first is read.
template <int TYPE, bool FULL>
static __device__ __forceinline__ void mv_loader_fill(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                      mv_loader<TYPE> &f, int from, int to)
{
#pragma unroll 1
    for (int i = from; i < to; i++)
        mv_loader_copy_next<TYPE, FULL>(a, w, f, w.ring + i * (TN_MATVEC_ROWS * mv_tile<TYPE>::size));
}

// --- activations ------------------------------------------------------------------------------------

static __device__ __forceinline__ float4 mv_load4(const float *p, bool aligned)
{
    if (aligned) return __ldcg((const float4 *)p);
    return make_float4(__ldcg(p), __ldcg(p + 1), __ldcg(p + 2), __ldcg(p + 3));
}

// The lane's 8 values, half of a group of 16, as int8, with d and the sum of the group.
struct mv_quantised8 {
    int2 words;
    float d;
    int sum;
};

static __device__ __forceinline__ mv_quantised8 mv_quantise8(const float4 (&v)[2])
{
    uint32_t largest_bits = max(tn_max_magnitude4(v[0]), tn_max_magnitude4(v[1]));
    largest_bits = max(largest_bits, __shfl_xor_sync(0xffffffffu, largest_bits, 1));
    tn_quantise_scale s = tn_quantise_scale_of(largest_bits);
    int2 words = make_int2(tn_quantise4(v[0], s), tn_quantise4(v[1], s));
    int sum = __dp4a(words.x, 0x01010101, __dp4a(words.y, 0x01010101, 0));
    return {words, s.d, sum + __shfl_xor_sync(0xffffffffu, sum, 1)};
}

// Stores quantised elements from `at` on to a row in shared memory, in the layout of mv_x.
struct mv_store_quantised {
    char *row;
    int k;
    __device__ __forceinline__ void operator()(const float4 (&v)[2], int at, bool valid) const
    {
        mv_quantised8 r = mv_quantise8(v);
        if (!valid) return;
        *(int2 *)(row + at) = r.words;
        if (at % 16 == 0)
            ((short *)(row + TN_QUANTISED_SUM(k)))[at / 16] = (short)r.sum,
                                                        ((float *)(row + TN_QUANTISED_D(k)))[at / 16] = r.d;
    }
};

// The quantised activations of a row of k from element `at` on.
static __device__ __forceinline__ mv_x mv_x_at(const char *shared, int k, int at)
{
    return {shared + at, (const float *)(shared + TN_QUANTISED_D(k) + at / 4),
            (const short *)(shared + TN_QUANTISED_SUM(k) + at / 8)};
}

static __device__ __forceinline__ void mv_load8(float4 (&v)[2], const float *p, bool aligned, bool valid)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
        v[i] = valid ? mv_load4(p + 4 * i, aligned) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// All threads: quantises a row of x, times the weight of a norm, 8 values a lane, and passes them to `store`.
// Returns the thread's part of the sum of squares of x. The next values are loaded while the current ones are
// quantised.
template <class STORE>
static __device__ __forceinline__ float mv_quantise_row(const float *x, const float *norm, int k,
                                                        const STORE &store)
{
    bool aligned = (((uintptr_t)x | (uintptr_t)norm) & 15u) == 0;
    float squares = 0.0f;
    int step = blockDim.x * 8, at = threadIdx.x * 8;
    float4 v[2], next[2], g[2];
    mv_load8(v, x + at, aligned, at < k);
#pragma unroll 1
    for (int base = 0; base < k; base += step, at += step) {
        mv_load8(next, x + at + step, aligned, at + step < k);
        if (norm) {
            mv_load8(g, norm + at, aligned, at < k);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                squares += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
                v[i].x *= g[i].x, v[i].y *= g[i].y, v[i].z *= g[i].z, v[i].w *= g[i].w;
            }
        }
        store(v, at, at < k);
#pragma unroll
        for (int i = 0; i < 2; i++) v[i] = next[i];
    }
    return squares;
}

// All threads: copies a row that was stored quantised to shared memory. A thread has 4 loads under way, so
// that it waits for memory once.
static __device__ __forceinline__ void mv_copy_quantised_row(const char *from, int k, char *shared)
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

// A warp: the sum of squares of a row that was stored quantised.
static __device__ __forceinline__ float mv_sum_squares(const char *row, int k, int lane)
{
    const float *squares = (const float *)(row + TN_QUANTISED_SQUARES(k));
    float sum = 0.0f;
#pragma unroll 4
    for (int i = lane; i < k / 16; i += TN_WARP) sum += __ldcg(squares + i);
    return tn_warp_sum(sum);
}

// All threads: copies a row of x, times the weight of a norm, to shared memory as f32. Returns the thread's
// part of the sum of squares of x.
static __device__ __forceinline__ float mv_copy_f32_row(const float *x, const float *norm, int k,
                                                        float *shared)
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

// Sums COLUMNS values over the lanes; value c ends up in lane c * 32 / COLUMNS. In each step a lane sends the
// half of the values that the other lane keeps, so fewer shuffles are needed than for one value after
// another.
template <int COLUMNS> static __device__ __forceinline__ float mv_reduce(float (&v)[COLUMNS], int lane)
{
    int n = COLUMNS;
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) {
        if (n > 1) {
            n /= 2;
            bool upper = lane & i;
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j++) {
                if (j >= n) break;
                float sent = upper ? v[j] : v[j + n], kept = upper ? v[j + n] : v[j];
                v[j] = kept + __shfl_xor_sync(0xffffffffu, sent, i);
            }
        } else {
            v[0] += __shfl_xor_sync(0xffffffffu, v[0], i);
        }
    }
    return v[0];
}

// Bytes of a row of x in shared memory: f32, or int8 with a scale and a sum for each 16.
template <int TYPE> static __device__ __forceinline__ int mv_x_size(int k)
{
    return tn_is_plain(TYPE) ? k * 4 : (k + k / 4 + k / 8 + 15) & ~15;
}

// The activations of chunk `chunk` of tile `t` of a row of n.
template <int TYPE>
static __device__ __forceinline__ void mv_load_acts(typename mv_lane_dot<TYPE>::acts &acts, const char *x,
                                                    int n, int t, int chunk)
{
    constexpr int elems = TN_MATVEC_UNIT_ELEMS(TYPE);
    if constexpr (tn_is_plain(TYPE)) {
        const float *from = (const float *)x + t * (TN_WARP * elems) + chunk * elems;
#pragma unroll
        for (int j = 0; j < elems; j += 4) {
            float4 v = *(const float4 *)(from + j);
            acts.x[j] = v.x, acts.x[j + 1] = v.y, acts.x[j + 2] = v.z, acts.x[j + 3] = v.w;
        }
    } else {
        mv_lane_dot<TYPE>::load(acts, mv_x_at(x, n, t * (TN_WARP * elems)), chunk);
    }
}

// Waits until the oldest of the copies under way, those of all slots but one, has arrived.
// cp.async.wait_group takes an immediate number, so some numbers of slots wait for a little more than they
// need, never for less.
static __device__ __forceinline__ void mv_wait_oldest(int n_slots)
{
    if (n_slots >= 8) tn_copy_wait<6>();
    else if (n_slots >= 5) tn_copy_wait<3>();
    else if (n_slots == 4) tn_copy_wait<2>();
    else if (n_slots == 3) tn_copy_wait<1>();
    else tn_copy_wait<0>();
}

// The warp's rows of a part; sums go to `sums`, [row of the block][slice][column].
template <int TYPE, int COLUMNS, bool FULL>
static __device__ __forceinline__ void mv_run_part(const tn_cuda_matvec_args &a, const mv_warp &w, int part,
                                                   const char *x, float *sums, mv_loader<TYPE> &loader,
                                                   char *&slot)
{
    typedef mv_tile<TYPE> tile;
    // lanes that end up with the same value
    constexpr int rows_at_once = TN_MATVEC_ROWS, values = rows_at_once * COLUMNS, lanes = TN_WARP / values;
    constexpr int slot_size = rows_at_once * tile::size;
    const tn_cuda_matvec_part &p = a.part[part];
    mv_range block = mv_part_rows(a, w, part), rows = mv_warp_rows(a, w, part);
    // the row that the lane has the sum of
    int half = mv_half_rows(rows), second_row = rows.to - rows.from - half, own = w.lane / lanes / COLUMNS;
    sums += (rows.from - block.from + own * second_row) * a.sums_stride + w.slice * COLUMNS +
            w.lane / lanes % COLUMNS;
    const char *const end = w.ring + a.n_slots * slot_size;
#pragma unroll 1
    for (int row = 0; row < half; row++) {
        float v[values];
        // address of the tile, whose low 4 bits say where it begins in its copy
        uint32_t tile_address[rows_at_once][TN_CUDA_MAX_PLANES] = {};
#pragma unroll
        for (int i = 0; i < values; i++) v[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < tile::planes; i++)
#pragma unroll
            for (int r = 0; r < rows_at_once; r++)
                if (!tile::fills_chunks(i))
                    tile_address[r][i] =
                        (uint32_t)(uintptr_t)p.plane[i] +
                        (uint32_t)(w.expert + rows.from + row + r * second_row) * (uint32_t)p.row_size[i] +
                        (uint32_t)(w.first_tile * tile::bytes(i));
#pragma unroll 1
        for (int t = w.first_tile; t < w.first_tile + w.n_tiles; t++) {
            mv_wait_oldest(a.n_slots);
            __syncwarp(); // all lanes have read the slot before, and see this one
            mv_loader_copy_next<TYPE, FULL>(a, w, loader,
                                            slot == w.ring ? (char *)end - slot_size : slot - slot_size);
            int chunks_left = a.n_units - t * TN_WARP;
            bool valid = FULL || w.lane < chunks_left;
            // Past the last chunk a lane reads an early one of the same place in its block, so that whole
            // warps call dot; its result is dropped.
            int chunk = valid ? w.lane : w.lane % 8 < chunks_left ? w.lane % 8 : 0;
            const char *planes[rows_at_once][TN_CUDA_MAX_PLANES] = {};
#pragma unroll
            for (int r = 0; r < rows_at_once; r++)
#pragma unroll
                for (int i = 0; i < tile::planes; i++) {
                    planes[r][i] = slot + r * tile::size + tile::offset(i);
                    if (tile::fills_chunks(i)) continue;
                    planes[r][i] += tile_address[r][i] & 15u;
                    tile_address[r][i] += tile::bytes(i);
                }
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                typename mv_lane_dot<TYPE>::acts acts;
                mv_load_acts<TYPE>(acts, x + (c < a.n_columns ? c : 0) * mv_x_size<TYPE>(a.k), a.k, t, chunk);
#pragma unroll
                for (int r = 0; r < rows_at_once; r++) {
                    float sum = mv_lane_dot<TYPE>::dot(acts, planes[r], chunk, w.lane, v[r * COLUMNS + c]);
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

// Which result a thread finishes: row `v` of the block, which is row `j` of a part, and column c.
struct mv_result {
    int c, v, part, j;
};

template <int COLUMNS>
static __device__ __forceinline__ mv_result mv_result_of(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                         int i)
{
    int n = w.end - w.first, c = COLUMNS == 1 ? 0 : i / n, v = i - c * n, part = 0, j = w.first + v;
    if (!a.is_glu)
        while (part + 1 < a.n_parts && j >= a.part[part + 1].first) part++;
    return {c, v, part, j - a.part[part].first};
}

// What a result needs besides its sum, loaded before the products are done.
struct mv_prefetched {
    float bias, residual, norm; // norm: weight of the norm that the reader of y applies
};

static __device__ __forceinline__ mv_prefetched mv_prefetch_result(const tn_cuda_matvec_args &a,
                                                                   const mv_result &r, int64_t row0)
{
    const float *bias = a.part[r.part].bias;
    return {bias ? __ldg(bias + r.j) : 0.0f,
            a.residual ? __ldcg(a.residual + (row0 + r.c) * a.residual_stride + r.j) : 0.0f,
            a.quantised_y.norm ? __ldg(a.quantised_y.norm + r.j) : 1.0f};
}

// The sum of all slices, in their order, so that it does not depend on which warp was first.
static __device__ __forceinline__ float mv_sum_slices(const tn_cuda_matvec_args &a, const float *sums,
                                                      int stride)
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

// Writes the results of the block's rows from the sums of the slices. `prefetched` belongs to the thread's
// first result.
template <int COLUMNS>
static __device__ __forceinline__ void mv_finish(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                 const float *sums, float (*squares)[TN_WARP], int64_t row0,
                                                 bool no_expert, mv_prefetched prefetched)
{
    int n = w.end - w.first, n_squares = a.quantised_x.rows ? 1 : blockDim.x / TN_WARP;
    for (int i = threadIdx.x; i < n * a.n_columns; i += blockDim.x) {
        mv_result r = mv_result_of<COLUMNS>(a, w, i);
        if (i >= blockDim.x) prefetched = mv_prefetch_result(a, r, row0);
        const float *at = sums + r.v * a.sums_stride + r.c;
        float sum = mv_sum_slices(a, at, COLUMNS),
              up = a.is_glu ? mv_sum_slices(a, at + n * a.sums_stride, COLUMNS) : 0.0f;
        if (a.norm) {
            float s = 0.0f;
#pragma unroll 4
            for (int k = 0; k < n_squares; k++) s += squares[r.c][k];
            s = 1.0f / sqrtf(s / (float)a.k + a.eps);
            sum *= s, up *= s;
        }
        if (no_expert) sum = up = 0.0f;
        const tn_cuda_matvec_part &p = a.part[r.part];
        sum += prefetched.bias;
        if (a.is_glu) sum = tn_glu_of(a.glu, sum, up);
        else if (a.act != TN_UNARY_NONE) sum = tn_act(a.act, sum);
        sum += prefetched.residual;
        p.y[(row0 + r.c) * p.y_stride + r.j] = sum;
        // Whole half warps hold groups of 16, because blocks have multiples of 16 rows in this case.
        if (COLUMNS == 1 && a.quantised_y.rows)
            tn_quantised_store1(a.quantised_y, row0, r.j, sum, prefetched.norm);
    }
}

// Brings the rows of x to shared memory, as f32 or quantised.
template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void mv_load_x(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                 const float *x, int64_t row0, char *shared,
                                                 float (*squares)[TN_WARP])
{
    int warp = threadIdx.x / TN_WARP;
    const char *quantised = a.quantised_x.rows ? a.quantised_x.rows + row0 * a.quantised_x.row_size : nullptr;
    for (int c = 0; c < a.n_columns; c++) {
        char *to = shared + c * mv_x_size<TYPE>(a.k);
        float s;
        if constexpr (tn_is_plain(TYPE))
            s = mv_copy_f32_row(x + c * a.x_stride, a.norm, a.k, (float *)to);
        else if (!quantised)
            s = mv_quantise_row(x + c * a.x_stride, a.norm, a.k, mv_store_quantised{to, a.k});
        else
            mv_copy_quantised_row(quantised + c * a.quantised_x.row_size, a.k, to);
        if (!a.norm || quantised) continue;
        s = tn_warp_sum(s);
        if (w.lane == 0) squares[c][warp] = s;
    }
    if (a.norm && quantised && warp < a.n_columns) {
        float sum = mv_sum_squares(quantised + warp * a.quantised_x.row_size, a.k, w.lane);
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
    w.slice = warp & (a.n_slices - 1), w.slice_shift = a.slice_shift, w.group = warp >> a.slice_shift,
    w.group_shift = a.group_shift;
    w.first = block * a.block_rows + min(block, a.more_rows) * a.row_unit;
    w.end = w.first + a.block_rows + (block < a.more_rows ? a.row_unit : 0);
    w.expert = 0;
    w.first_tile = w.slice * a.slice_tiles, w.n_tiles = min(a.slice_tiles, a.n_tiles - w.first_tile);
    w.ring = shared + a.rings_at + warp * a.ring_size;
    return w;
}

// Requests the weight of the norm from L2 early: between two uses of it the weights of the model evict
// everything else.
static __device__ __forceinline__ void mv_prefetch_norm(const tn_cuda_matvec_args &a)
{
    for (int i = threadIdx.x * 32; a.norm && i < a.k; i += blockDim.x * 32) tn_prefetch(a.norm + i);
}

// Which rows of x and y the block has, and of which expert. no_expert: the id names none, and the result is
// that of a product of zeros.
struct mv_block_io {
    const float *x;
    int64_t y_row, x_row;
    bool no_expert;
};

static __device__ __forceinline__ mv_block_io mv_block_io_of(const tn_cuda_matvec_args &a, mv_warp &w)
{
    mv_block_io r = {a.x, 0, 0, false};
    if (!a.ids) return r;
    r.y_row = blockIdx.y;
    int64_t t = r.y_row / a.n_used, u = r.y_row % a.n_used;
    int e = __ldcg(a.ids + t * a.ids_stride[0] + u * a.ids_stride[1]);
    r.no_expert = e < 0 || e >= a.n_experts;
    w.expert = (int64_t)(r.no_expert ? 0 : e) * a.part[0].n;
    r.x += t * a.x_stride + u * a.x_used_stride;
    r.x_row = a.x_used_stride ? r.y_row : t;
    return r;
}

// All parts, with x in shared memory.
template <int TYPE, int COLUMNS, bool FULL>
static __device__ __forceinline__ void mv_run_parts(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                    char *shared, mv_loader<TYPE> &loader)
{
    float *sums = (float *)(shared + a.sums_at);
    char *slot = w.ring;
    for (int part = 0, rows = 0; part < a.n_parts; part++) {
        mv_run_part<TYPE, COLUMNS, FULL>(a, w, part, shared + a.x_at, sums + rows * a.sums_stride, loader,
                                         slot);
        mv_range r = mv_part_rows(a, w, part);
        rows += r.to - r.from;
    }
}

// One block. FULL: rows are whole tiles.
template <int TYPE, int COLUMNS, bool FULL>
static __device__ __forceinline__ void mv_run_block(const tn_cuda_matvec_args &a, int block)
{
    extern __shared__ __align__(128) char shared[];
    // Sums of squares of x, one from each warp; complete at the barrier before mv_finish.
    __shared__ float squares[COLUMNS][TN_WARP];
    mv_warp w = mv_warp_of(a, block, shared);
    if (!a.late) tn_pdl_trigger();
    mv_loader<TYPE> loader;
    // With experts, a predecessor decides which rows to read, so no copy may start before the wait.
    int early = a.ids ? 0 : a.n_early;
    if (!a.ids) mv_loader_start<TYPE>(a, w, loader);
    mv_loader_fill<TYPE, FULL>(a, w, loader, 0, early);
    mv_prefetch_norm(a);
    tn_pdl_wait();
    mv_block_io r = mv_block_io_of(a, w);
    if (a.ids) {
        mv_loader_start<TYPE>(a, w, loader);
        mv_loader_fill<TYPE, FULL>(a, w, loader, 0, early = a.n_slots - 1);
    }
    mv_load_x<TYPE, COLUMNS>(a, w, r.x, r.x_row, shared + a.x_at, squares);
    mv_loader_fill<TYPE, FULL>(a, w, loader, early, a.n_slots - 1);
    mv_prefetched prefetched = {0.0f, 0.0f, 1.0f};
    if ((int)threadIdx.x < (w.end - w.first) * a.n_columns)
        prefetched = mv_prefetch_result(a, mv_result_of<COLUMNS>(a, w, threadIdx.x), r.y_row);
    mv_run_parts<TYPE, COLUMNS, FULL>(a, w, shared, loader);
    if (a.late) tn_pdl_trigger();
    __syncthreads();
    mv_finish<COLUMNS>(a, w, (const float *)(shared + a.sums_at), squares, r.y_row, r.no_expert, prefetched);
}

template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void mv_run(const tn_cuda_matvec_args &a, int block)
{
    if (a.n_units % TN_WARP == 0) mv_run_block<TYPE, COLUMNS, true>(a, block);
    else mv_run_block<TYPE, COLUMNS, false>(a, block);
}

#define TN_MATVEC(TYPE, COLUMNS)                                                                             \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                 \
        tn_matvec_##TYPE##_##COLUMNS(const __grid_constant__ tn_cuda_matvec_args a)                          \
    {                                                                                                        \
        mv_run<TN_TYPE_##TYPE, COLUMNS>(a, blockIdx.x);                                                      \
    }
// Weights of two types for one row of x: the first blocks compute those of the first type.
#define TN_MATVEC_PAIR(FIRST, SECOND)                                                                        \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                 \
        tn_matvec_##FIRST##_##SECOND(const __grid_constant__ tn_cuda_matvec_pair a)                          \
    {                                                                                                        \
        int n = a.first_blocks, block = blockIdx.x;                                                          \
        if (block < n)                                                                                       \
            mv_run<TN_TYPE_##FIRST, 1>(a.of[0], block);                                                      \
        else                                                                                                 \
            mv_run<TN_TYPE_##SECOND, 1>(a.of[1], block - n);                                                 \
    }
// Kernels for two, four and eight rows of x; for one and four.
#define TN_MATVEC_2_4_8(TYPE) TN_MATVEC(TYPE, 2) TN_MATVEC(TYPE, 4) TN_MATVEC(TYPE, 8)
#define TN_MATVEC_1_4(TYPE)   TN_MATVEC(TYPE, 1) TN_MATVEC(TYPE, 4)

#endif
