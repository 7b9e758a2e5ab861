// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The ring in shared memory through which a warp of the tensor core GEMV (matvec_mma.cuh) gets its tiles of
// 16 rows times 256 elements (128 of Q8_0).
//
// A slot holds a tile: planes one after another, rows of a plane one after another, in 16-byte chunks that
// the lanes copy in turns by cp.async. Chunks of plane 0 in odd rows are moved by 64 bytes, so that lanes
// that read them have no bank conflicts. Bytes: the weights once; the limit is the number of memory requests
// under way (matvec_mma.cuh has the measurement).
#ifndef TN_CUDA_MATVEC_MMA_RING_CUH
#define TN_CUDA_MATVEC_MMA_RING_CUH

#include "backends/cuda/product/matvec/matvec_tile_ring.cuh"

enum { MT_ROWS = TN_MATVEC_MMA_ROWS, MT_HALF = 128 };

template <int TYPE> struct mt_tile {
    // Bytes of a row of a tile in a plane, and the 16-byte chunks that hold them.
    static constexpr __host__ __device__ int bytes(int plane)
    {
        return TN_MATVEC_MMA_K(TYPE) / TN_MATVEC_BLOCK_ELEMS(TYPE) * mv_plane_block_bytes<TYPE>(plane);
    }
    static constexpr __host__ __device__ int chunks(int plane)
    {
        return TN_MATVEC_MMA_PIECES(TYPE, mv_plane_block_bytes<TYPE>(plane));
    }
    static constexpr __host__ __device__ int offset(int plane)
    {
        return 16 * MT_ROWS *
               ((plane > 0 ? chunks(0) : 0) + (plane > 1 ? chunks(1) : 0) + (plane > 2 ? chunks(2) : 0) +
                (plane > 3 ? chunks(3) : 0));
    }
    static constexpr int planes = mv_plane_count<TYPE>(), size = offset(planes),
                         halves = TN_MATVEC_MMA_K(TYPE) / MT_HALF;
    // Of the last plane a tile may begin anywhere in its first chunk.
    static constexpr bool last_unaligned = bytes(planes - 1) % 16 != 0;
};

// Where in a slot the lane's copies of planes go: x of the first plane, y of all others.
template <int TYPE> static __device__ __forceinline__ int2 mt_copy_offsets(int lane)
{
    const int chunks = mt_tile<TYPE>::chunks(0), row = lane / chunks;
    return make_int2(mt_opaque((row * chunks + (lane % chunks ^ row % 2 * 4)) * 16), mt_opaque(lane * 16));
}

// The policy of weights in L2: they are evicted first, because each is read once, and kernels and activations
// stay.
static __device__ __forceinline__ uint64_t mt_weight_policy()
{
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

// cp.async of 16 bytes of a line of 128 with an L2 policy. Compute capability 8.0.
static __device__ __forceinline__ void mt_copy16(void *to, const void *from, uint64_t policy)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(tn_shared(to)),
                 "l"(from), "l"(policy)
                 : "memory");
#else
    __trap();
#endif
}

// Starts the copies of a tile: `from` is the lane's first chunk of each plane, rows are row_size bytes apart.
// Whole lines of 128 bytes are requested from L2, because the number of requests under way is what limits the
// copies, and the small planes have only 2 to 64 bytes of a row in a tile. 8B Q4_K_M on an H200 (2026-11-22,
// two builds): 527.3 tokens per second without, 536.8 with lines of the small planes, 533.3 with 256 bytes;
// 555.0 with lines of all planes where only the small ones gave 550.0.
// LAST_USE: the weights are evicted from L2 first. Experts' are not, as another token may use them.
template <int TYPE, bool LAST_USE>
static __device__ __forceinline__ void mt_copy(int lane, int2 slot_to,
                                               const char *const (&from)[TN_CUDA_MAX_PLANES],
                                               const int (&row_size)[TN_CUDA_MAX_PLANES], char *slot)
{
    typedef mt_tile<TYPE> tile;
    uint64_t policy = LAST_USE ? mt_weight_policy() : 0;
#pragma unroll
    for (int i = 0; i < tile::planes; i++) {
        const int chunks = tile::chunks(i), rows = TN_WARP / chunks; // rows that one copy of the warp covers
        char *to = slot + tile::offset(i) + (i == 0 ? slot_to.x : slot_to.y);
        const char *at = from[i];
        if (tile::last_unaligned && i + 1 == tile::planes)
            at = (const char *)((uintptr_t)at & ~(uintptr_t)15);
#pragma unroll
        for (int j = 0; j < MT_ROWS; j += rows)
            if (rows <= MT_ROWS || lane < MT_ROWS) {
                if constexpr (LAST_USE)
                    mt_copy16(to + j * chunks * 16, at + (int64_t)row_size[i] * j, policy);
                else
                    tn_copy16_line(to + j * chunks * 16, at + (int64_t)row_size[i] * j);
            }
    }
}

// What the warp copies next.
struct mt_loader {
    const char *from[TN_CUDA_MAX_PLANES]; // the lane's first chunks of tile 0
    int row_size[TN_CUDA_MAX_PLANES];
    // Rows of tiles left of the part (0: none are left at all), and the tile of the first of them.
    int part, rows, t;
    int2 to; // mt_copy_offsets
};

// The rows of tiles of a block's rows that a group of warps has.
static __device__ __forceinline__ int mt_rows(const mv_warp &w, mv_range block)
{
    int n = (block.to - block.from) / MT_ROWS - w.group;
    return n <= 0 ? 0 : (n + (1 << w.group_shift) - 1) >> w.group_shift;
}

// Moves the loader to the warp's first tile of the next part that it has rows of; without one no tiles are
// left.
template <int TYPE>
static __device__ __forceinline__ void mt_loader_enter_part(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                            mt_loader &f)
{
    typedef mt_tile<TYPE> tile;
    mv_range r;
    do {
        if (f.part + 1 >= a.n_parts) return;
        r = mv_part_rows(a, w, ++f.part);
        f.rows = mt_rows(w, r);
    } while (f.rows == 0);
    const tn_cuda_matvec_part &p = a.part[f.part];
    int row = r.from + w.group * MT_ROWS;
    f.t = w.slice;
#pragma unroll
    for (int i = 0; i < tile::planes; i++) {
        f.row_size[i] = (int)p.row_size[i];
        f.from[i] = p.plane[i] + (w.expert + row + w.lane / tile::chunks(i)) * p.row_size[i] +
                    w.lane % tile::chunks(i) * 16;
    }
}

// Starts the copies of the next tile into a slot, if there is one left.
template <int TYPE>
static __device__ __forceinline__ void mt_loader_copy_next(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                           mt_loader &f, char *slot)
{
    typedef mt_tile<TYPE> tile;
    if (f.rows > 0) {
        const char *from[TN_CUDA_MAX_PLANES];
#pragma unroll
        for (int i = 0; i < tile::planes; i++) from[i] = f.from[i] + (int64_t)f.t * tile::bytes(i);
        mt_copy<TYPE, true>(w.lane, f.to, from, f.row_size, slot);
        f.t += 1 << w.slice_shift;
        if (f.t >= a.n_tiles) {
            f.t = w.slice;
#pragma unroll
            for (int i = 0; i < tile::planes; i++)
                f.from[i] += (int64_t)f.row_size[i] * (MT_ROWS << w.group_shift);
            if (--f.rows == 0) mt_loader_enter_part<TYPE>(a, w, f);
        }
    }
    mt_commit_tile(a);
}

template <int TYPE>
static __device__ __forceinline__ void mt_loader_start(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                       mt_loader &f)
{
    f.part = -1, f.rows = 0;
    f.to = mt_copy_offsets<TYPE>(w.lane);
    mt_loader_enter_part<TYPE>(a, w, f);
}

// Fills slots `from` to `to` - 1. All slots but the last are filled before the first is read.
template <int TYPE>
static __device__ __forceinline__ void mt_loader_fill(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                      mt_loader &f, int from, int to)
{
#pragma unroll 1
    for (int i = from; i < to; i++) mt_loader_copy_next<TYPE>(a, w, f, w.ring + i * mt_tile<TYPE>::size);
}

#endif
