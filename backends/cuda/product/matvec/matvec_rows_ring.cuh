// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The ring in shared memory through which a warp of the GEMV for 2 to 8 rows of x (matvec_rows.cuh) gets its
// tiles of 16 rows of weights times 256 elements (128 of Q8_0).
//
// A slot holds a tile: planes one after another, rows of a plane one after another, in 16-byte chunks that
// the lanes copy in turns by cp.async. Chunks are moved within a row, so that ldmatrix, which reads a chunk
// of eight rows at a time, finds them in different banks. Bytes: the weights once; the limit is the number of
// memory requests under way (matvec_mma.cuh has the measurement).
#ifndef TN_CUDA_MATVEC_ROWS_RING_CUH
#define TN_CUDA_MATVEC_ROWS_RING_CUH

#include "backends/cuda/product/matvec/matvec_rows_args.h"
#include "backends/cuda/product/matvec/matvec_tile_ring.cuh"

enum { MR_ROWS = TN_MATVEC_MMA_ROWS };

template <int TYPE> struct mr_tile {
    // Bytes of a row of a tile in a plane, the chunks that hold them, and those that a slot has for them.
    static constexpr __host__ __device__ int bytes(int plane)
    {
        return TN_MATVEC_MMA_K(TYPE) / TN_MATVEC_BLOCK_ELEMS(TYPE) * mv_plane_block_bytes<TYPE>(plane);
    }
    static constexpr __host__ __device__ int chunks(int plane) { return TN_MATVEC_ROWS_CHUNKS(bytes(plane)); }
    static constexpr __host__ __device__ int slots(int plane) { return TN_MATVEC_ROWS_SLOTS(bytes(plane)); }
    static constexpr __host__ __device__ int offset(int plane)
    {
        return 16 * MR_ROWS *
               ((plane > 0 ? slots(0) : 0) + (plane > 1 ? slots(1) : 0) + (plane > 2 ? slots(2) : 0) +
                (plane > 3 ? slots(3) : 0));
    }
    static constexpr int planes = mv_plane_count<TYPE>(), size = offset(planes), k = TN_MATVEC_MMA_K(TYPE);
    // Whether the tile begins with a chunk.
    static constexpr __host__ __device__ bool aligned(int plane) { return bytes(plane) % 16 == 0; }
};

// Chunk i of a row with `slots` chunks lies in place i ^ flip.
static constexpr __host__ __device__ int mr_flip(int slots, int row)
{
    return slots == 8 ? row % 2 * 4 + row / 2 % 4 : slots == 4 ? row / 2 % 4 : slots == 2 ? row / 4 % 2 : 0;
}

// Planes whose chunks are moved, because ldmatrix reads them.
template <int TYPE> static constexpr __host__ __device__ bool mr_by_chunks(int plane)
{
    return !TN_MATVEC_ROWS_EXPANDS(TYPE) &&
           (plane == 0 ||
            (plane == 1 && (TYPE == TN_TYPE_Q5_K || TYPE == TN_TYPE_Q6_K || TYPE == TN_TYPE_Q3_K)));
}

// The policy of weights in L2: they are evicted first, because each is read once (H200, 8B Q4_K_M, 8 rows,
// 2026-11-23: 2905 tokens per second with it, 2866 without). Compute capability 8.0.
static __device__ __forceinline__ uint64_t mr_weight_policy()
{
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

// cp.async of 16 bytes of a line of 128 with an L2 policy. Compute capability 8.0.
static __device__ __forceinline__ void mr_copy16(uint32_t to, const void *from, uint64_t policy)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "l"(policy)
                 : "memory");
#else
    __trap();
#endif
}

// What the warp copies next.
struct mr_loader {
    uint64_t policy;
    const char *from[TN_CUDA_MAX_PLANES]; // the lane's first chunks of tile 0
    int row_size[TN_CUDA_MAX_PLANES];
    int to[TN_CUDA_MAX_PLANES]; // where in a slot they go
    // Rows of tiles left of the part (0: none are left at all), and the tile of the first of them. Tiles
    // `first` to `end` - 1 of all parts come before those behind them.
    int part, rows, t, first, end;
    int row, last_row; // first of the tile, if the weight had as many rows; the last that a tile begins at
    int before;        // mr_turns
};

// Starts the copies of a tile. Whole lines of 128 bytes are requested from L2 (matvec_mma_ring.cuh says why).
template <int TYPE> static __device__ __forceinline__ void mr_copy(const mr_loader &f, int lane, char *slot)
{
    typedef mr_tile<TYPE> tile;
#pragma unroll
    for (int i = 0; i < tile::planes; i++) {
        const int slots = tile::slots(i), rows = TN_WARP / slots; // rows that one copy of the warp covers
        const char *at = f.from[i] + (int64_t)f.t * tile::bytes(i);
        if (!tile::aligned(i)) at = (const char *)((uintptr_t)at & ~(uintptr_t)15);
        const bool own = tile::chunks(i) == slots || lane % slots < tile::chunks(i);
        const uint32_t to = tn_shared(slot) + f.to[i];
#pragma unroll
        for (int j = 0; j < MR_ROWS; j += rows, at += (int64_t)f.row_size[i] * rows) {
            // Four rows further on, chunks of planes with eight lie two places away.
            const uint32_t place = mr_by_chunks<TYPE>(i) && slots == 8 && j / rows % 2 ? to ^ 32 : to;
            if (own && (rows <= MR_ROWS || lane < MR_ROWS)) mr_copy16(place + j * slots * 16, at, f.policy);
        }
    }
}

// Groups of warps have the rows of tiles of a block in turns, counted over all parts. Where the last row of
// tiles of a part has fewer than 16 rows of weights, its tile begins earlier, so that it ends with the
// weight.
struct mr_turns {
    int first, count; // the group's first row of tiles in the part, and how many it has
    int before;       // rows of tiles of the parts before the next one
};

static __device__ __forceinline__ mr_turns mr_turns_of(const mv_warp &w, mv_range block, int before)
{
    int groups = 1 << w.group_shift, n = (block.to - block.from + MR_ROWS - 1) / MR_ROWS;
    int first = (w.group - before) & (groups - 1);
    return {first, n <= first ? 0 : (n - first + groups - 1) >> w.group_shift, before + n};
}

// Moves the loader to the warp's first tile of the next part that it has rows of, or of the first such part
// in the next tiles of x; without any no tiles are left.
// HALF: the loader has all tiles of x that the block multiplies (matvec_halves.cu).
template <int TYPE, bool HALF = false>
static __device__ __forceinline__ void mr_loader_enter_part(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                            mr_loader &f)
{
    typedef mr_tile<TYPE> tile;
    mv_range r;
    mr_turns turns;
    do {
        if (f.part + 1 >= a.n_parts) {
            if (HALF || f.end + w.slice >= a.n_tiles) return;
            f.part = -1, f.before = 0, f.first = f.end, f.end = min(f.end + a.slice_tiles, a.n_tiles);
        }
        r = mv_part_rows(a, w, ++f.part);
        turns = mr_turns_of(w, r, f.before);
        f.rows = turns.count, f.before = turns.before;
    } while (f.rows == 0);
    const tn_cuda_matvec_part &p = a.part[f.part];
    f.row = r.from + turns.first * MR_ROWS, f.last_row = p.n - MR_ROWS;
    const int row = min(f.row, f.last_row);
    f.t = f.first + w.slice;
#pragma unroll
    for (int i = 0; i < tile::planes; i++) {
        f.row_size[i] = (int)p.row_size[i];
        f.from[i] = p.plane[i] + (int64_t)(row + w.lane / tile::slots(i)) * p.row_size[i] +
                    w.lane % tile::slots(i) * 16;
    }
}

// Starts the copies of the next tile into a slot, if there is one left.
template <int TYPE, bool HALF = false>
static __device__ __forceinline__ void mr_loader_copy_next(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                           mr_loader &f, char *slot)
{
    typedef mr_tile<TYPE> tile;
    if (f.rows > 0) {
        mr_copy<TYPE>(f, w.lane, slot);
        f.t += 1 << w.slice_shift;
        if (f.t >= f.end) {
            f.t = f.first + w.slice;
            const int before = f.row, next = f.row += MR_ROWS << w.group_shift;
#pragma unroll
            for (int i = 0; i < tile::planes; i++)
                f.from[i] += (int64_t)f.row_size[i] * (min(next, f.last_row) - before);
            if (--f.rows == 0) mr_loader_enter_part<TYPE, HALF>(a, w, f);
        }
    }
    mt_commit_tile(a);
}

// The first chunk of tiles of x that the block multiplies.
template <int TYPE, bool HALF = false>
static __device__ __forceinline__ void mr_loader_start(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                       mr_loader &f, int chunk = 0)
{
    typedef mr_tile<TYPE> tile;
    f.policy = mr_weight_policy();
    f.part = -1, f.rows = 0, f.before = 0;
    f.first = chunk * a.slice_tiles, f.end = min(f.first + a.slice_tiles, a.n_tiles);
#pragma unroll
    for (int i = 0; i < tile::planes; i++) {
        const int slots = tile::slots(i), row = w.lane / slots;
        const int flip = mr_by_chunks<TYPE>(i) ? mr_flip(slots, row) : 0;
        f.to[i] = slots == 1 && i > 0 && tile::slots(i - 1) == 1
                      ? f.to[i - 1] + (tile::offset(i) - tile::offset(i - 1))
                      : mt_opaque(tile::offset(i) + (row * slots + (w.lane % slots ^ flip)) * 16);
    }
    mr_loader_enter_part<TYPE, HALF>(a, w, f);
}

#endif
