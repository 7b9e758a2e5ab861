// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The sums of a tile of a skinny GEMM of block types: how blocks that share a tile (split-k) add their parts,
// and how sums become results y = act(scale * sum + bias) + residual, or act(gate) * up. Used by
// skinny_blocks.cuh.
//
// A part of a tile goes through global memory as it lies in registers, 16 bytes a thread, so neighbouring
// threads write neighbouring addresses. The last block to arrive at the counter of the tile adds all parts in
// the order of the blocks, so results do not depend on which block was last. Bytes: 2 x 4 for each element
// and block that shares the tile, through L2, and 4 for each result. Partial sums and results were 12 to 15 %
// of the samples of a launch of a kernel with wgmma (ncu, GLU of an 8B layer, H200, 2026-11-22).
#ifndef TN_CUDA_SKINNY_SUMS_CUH
#define TN_CUDA_SKINNY_SUMS_CUH

#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/product/skinny/skinny_args.h"

// SKINNY_NT: column tiles of 8 rows of x. SKINNY_EARLY: stages whose weights are requested before the
// predecessor has ended.
enum { SKINNY_NT = TN_SKINNY_BLOCK_COLUMNS / 8, SKINNY_EARLY = TN_SKINNY_EARLY };

// The shape of a block: row tiles of 16 rows of weights that a warp has, and warps.
template <int TILES, int WARPS> struct skinny_block_shape {
    static constexpr int tiles = TILES, threads = 32 * WARPS;
    static constexpr int half = 8 * TILES * WARPS; // rows of weights of half a tile
};

template <int TILES> using skinny_sums = float[TILES][SKINNY_NT][4];

static __device__ __forceinline__ const tn_cuda_skinny_seg *skinny_block_seg(const tn_cuda_skinny_args &a,
                                                                             int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < 3; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return &a.seg[s];
}

// Where block `block` writes its part of a tile that begins in it, or before it: [row tile, columns][thread]
// of four.
template <typename SHAPE>
static __device__ __forceinline__ float4 *skinny_block_part(const tn_cuda_skinny_args &a, int block,
                                                            bool begins)
{
    return (float4 *)a.partial +
           (((int64_t)blockIdx.y * gridDim.x + block) * 2 + begins) *
               (SHAPE::tiles * SKINNY_NT * SHAPE::threads) +
           threadIdx.x;
}

// The block that computes a stage, of those of all tiles in order.
static __device__ __forceinline__ int skinny_block_of(int64_t stage, int64_t n_stages)
{
    return (int)(((stage + 1) * gridDim.x - 1) / n_stages);
}

// Writes this block's part of a tile that several blocks share. Returns true in the block that arrives last.
template <typename SHAPE>
static __device__ __forceinline__ bool skinny_block_publish(const tn_cuda_skinny_args &a,
                                                            const skinny_sums<SHAPE::tiles> &d, int tile,
                                                            int first, int last)
{
    constexpr int MT = SHAPE::tiles;
    __shared__ int arrived;
    float4 *to = skinny_block_part<SHAPE>(a, blockIdx.x, (int)blockIdx.x == first);
#pragma unroll
    for (int e = 0; e < MT * SKINNY_NT; e++) {
        const float(&v)[4] = d[e / SKINNY_NT][e % SKINNY_NT];
        to[e * SHAPE::threads] = make_float4(v[0], v[1], v[2], v[3]);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) arrived = atomicAdd(&a.arrived[blockIdx.y * a.n_tiles + tile], 1);
    __syncthreads();
    __threadfence();
    return arrived == last - first;
}

// Adds the parts of all blocks of a tile, in order. The loads of several blocks are under way at a time.
template <typename SHAPE>
static __device__ __forceinline__ void
skinny_block_add_parts(const tn_cuda_skinny_args &a, skinny_sums<SHAPE::tiles> &d, int first, int last)
{
    constexpr int MT = SHAPE::tiles;
    constexpr int BATCH = 4 / MT;
#pragma unroll
    for (int i = 0; i < MT * SKINNY_NT * 4; i++) d[i / (4 * SKINNY_NT)][i / 4 % SKINNY_NT][i % 4] = 0.0f;
    for (int block = first; block <= last; block += BATCH) {
        float4 v[BATCH][MT * SKINNY_NT];
#pragma unroll
        for (int b = 0; b < BATCH; b++)
#pragma unroll
            for (int e = 0; e < MT * SKINNY_NT; e++)
                v[b][e] = block + b <= last
                              ? __ldcg(skinny_block_part<SHAPE>(a, block + b, block + b == first) +
                                       e * SHAPE::threads)
                              : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int b = 0; b < BATCH; b++)
#pragma unroll
            for (int e = 0; e < MT * SKINNY_NT; e++) {
                float(&to)[4] = d[e / SKINNY_NT][e % SKINNY_NT];
                to[0] += v[b][e].x, to[1] += v[b][e].y, to[2] += v[b][e].z, to[3] += v[b][e].w;
            }
    }
}

// Writes results with the epilogues that most models have, inlined: SiLU of a gated pair, or no activation.
static __device__ __forceinline__ void
skinny_write_common(const tn_cuda_skinny_args &a, const tn_cuda_skinny_seg &s, const int (&first)[2],
                    const int (&to)[SKINNY_NT][2], const float (&scale)[SKINNY_NT][2],
                    const float (&bias)[1][2], const skinny_sums<1> &d, const skinny_sums<1> &r)
{
#pragma unroll
    for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (to[j][i] < 0) continue;
            float *row = s.y + to[j][i] * s.ld;
            float v[2] = {d[0][j][i] * scale[j][i], d[0][j][2 + i] * scale[j][i]};
            v[0] = a.glu ? __fdividef(v[0], 1.0f + __expf(-v[0])) * v[1] : v[0] + bias[0][0] + r[0][j][i];
            v[1] += bias[0][1] + r[0][j][2 + i];
            if (first[0] < s.n) row[first[0]] = v[0];
            if (first[1] < s.n) row[first[1]] = v[1];
        }
}

// Moves all sums and what belongs to them up by one place, so that the loop over them need not be unrolled.
template <int MT>
static __device__ __forceinline__ void
skinny_move_up(int (&to)[SKINNY_NT][2], float (&scale)[SKINNY_NT][2], skinny_sums<MT> &d, skinny_sums<MT> &r)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int first_to = to[0][i];
        float first_scale = scale[0][i];
#pragma unroll
        for (int j = 0; j + 1 < SKINNY_NT; j++) to[j][i] = to[j + 1][i], scale[j][i] = scale[j + 1][i];
        to[SKINNY_NT - 1][i] = first_to, scale[SKINNY_NT - 1][i] = first_scale;
    }
#pragma unroll
    for (int k = 0; k + 1 < MT * SKINNY_NT; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            d[k / SKINNY_NT][k % SKINNY_NT][i] = d[(k + 1) / SKINNY_NT][(k + 1) % SKINNY_NT][i];
            r[k / SKINNY_NT][k % SKINNY_NT][i] = r[(k + 1) / SKINNY_NT][(k + 1) % SKINNY_NT][i];
        }
}

// Writes the results of a tile. If blocks `begin` to `end` share it, their parts are added first, while what
// else the results need is loaded. Four sums at a time are finished and the others move up, because
// activations unrolled for all of them would not fit the instruction cache.
template <typename SHAPE>
static __device__ __forceinline__ void skinny_block_write_tile(const tn_cuda_skinny_args &a,
                                                               skinny_sums<SHAPE::tiles> &d, int tile, int y,
                                                               int begin, int end)
{
    constexpr int MT = SHAPE::tiles;
    int lane = threadIdx.x % TN_WARP, start = y * TN_SKINNY_BLOCK_COLUMNS + 2 * (lane % 4);
    const tn_cuda_skinny_seg &s = *skinny_block_seg(a, tile);
    int half = SHAPE::half, own = 8 * ((int)threadIdx.x / TN_WARP * MT) + lane / 4;
    int first[2] = {(a.glu ? tile * half : 2 * (tile - s.first_tile) * half) + own, 0};
    first[1] = a.glu ? s.n : first[0] + half;
    skinny_sums<MT> r;
    float bias[MT][2], scale[SKINNY_NT][2];
    int to[SKINNY_NT][2];
#pragma unroll
    for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int from = start + 8 * j + i;
            to[j][i] = from >= a.m ? -1 : a.row_to ? a.row_to[from] : from;
            scale[j][i] = from < a.m ? a.row_scale[from] : 1.0f;
        }
#pragma unroll
    for (int t = 0; t < MT; t++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            bias[t][i] = s.bias && first[i] + 8 * t < s.n ? s.bias[first[i] + 8 * t] : 0.0f;
#pragma unroll
    for (int t = 0; t < MT; t++)
#pragma unroll
        for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int from = start + 8 * j + i % 2, c = first[i / 2] + 8 * t;
                r[t][j][i] =
                    a.residual && from < a.m && c < s.n ? a.residual[from * a.residual_ld + c] : 0.0f;
            }
    if (begin <= end) skinny_block_add_parts<SHAPE>(a, d, begin, end);
    bool silu = a.act == TN_UNARY_SILU && a.glu_limit <= 0.0f && a.glu_alpha <= 0.0f;
    if (MT == 1 && (a.glu ? silu : a.act == TN_UNARY_NONE)) {
        if constexpr (MT == 1) skinny_write_common(a, s, first, to, scale, bias, d, r);
        return;
    }
#pragma unroll 1
    for (int e = 0; e < MT * SKINNY_NT; e++) {
        int t = e / SKINNY_NT;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (to[0][i] < 0) continue;
            float *row = s.y + to[0][i] * s.ld;
            float v[2] = {d[0][0][i] * scale[0][i], d[0][0][2 + i] * scale[0][i]};
            if (a.glu) v[0] = gemm_glu(a.act, a.glu_limit, a.glu_alpha, v[0], v[1]);
            else
#pragma unroll
                for (int h = 0; h < 2; h++)
                    v[h] = gemm_act(a.act, v[h] + (MT == 1 || t == 0 ? bias[0][h] : bias[MT - 1][h])) +
                           r[0][0][2 * h + i];
#pragma unroll
            for (int h = 0; h < 2; h++)
                if (first[h] + 8 * t < s.n) row[first[h] + 8 * t] = v[h];
        }
        skinny_move_up<MT>(to, scale, d, r);
    }
}

#endif
