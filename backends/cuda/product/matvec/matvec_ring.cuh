// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of weights that a warp of a GEMV kernel (matvec.cuh) has, and the ring in shared memory through
// which their tiles come.
//
// A tile is one 16-byte chunk for each lane of two rows, with all planes of the type (backends/planes.def).
// The lanes copy its chunks in turns by cp.async; a slot of the ring holds one tile, and all slots but one
// are under way while one is multiplied, up to 130 KB on a multiprocessor. Bytes: the weights once. The limit
// is memory, and for quantised types the number of requests under way (matvec_mma.cuh has the measurement).
#ifndef TN_CUDA_MATVEC_RING_CUH
#define TN_CUDA_MATVEC_RING_CUH

#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/dequant.cuh"
#include "backends/cuda/mma.cuh"

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
        return TN_MATVEC_TILE_BYTES(TYPE, mv_plane_block_bytes<TYPE>(plane));
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

#endif
