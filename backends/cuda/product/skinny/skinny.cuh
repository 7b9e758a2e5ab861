// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 9 to 64 rows of x and 16-bit weights: as much memory traffic as for one row, and the arithmetic on
// mma.sync. Weights are the 16-row operand, rows of x the columns.
// A block has 64 rows of weights: two groups of 32 (with GLU: of gate and of up) times four quarters of each stage
// of 256 k, one warp each. Lane l of a warp has 16 adjacent values of rows l/4, l/4 + 8 .. in
// registers: values 4 s .. 4 s + 3 of it are its operand of step s, the order of k inside a product being free. x
// passes through shared memory in three stages. The quarters are summed in shared memory. Where several blocks
// share the stages of a tile, the last one to arrive sums what all have written, in order, and finishes.
// With groups of rows (experts), blockIdx.y is the tile of rows.
// Bytes moved: weights once, x once per tile.
#ifndef TN_CUDA_SKINNY_CUH
#define TN_CUDA_SKINNY_CUH

#include "backends/cuda/product/skinny/skinny_args.h"
#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/mma.cuh"

enum { SKINNY_THREADS = 256, SKINNY_AHEAD = 4, SKINNY_LD = TN_SKINNY_K + TN_SKINNY_PAD };

// 16 adjacent values of a row.
struct skinny_run {
    uint32_t v[8];
};

static __device__ __forceinline__ void skinny_load_plain(const tn_cuda_skinny_args &a, const char *row, int k, uint32_t (&v)[8])
{
    if (a.wide) {
        k = min(k, a.k - 16);
        uint4 low = *(const uint4 *)(row + 2 * (int64_t)k), high = *(const uint4 *)(row + 2 * (int64_t)k + 16);
        v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
        v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        uint32_t e = k + i < a.k ? *(const uint16_t *)(row + 2 * (int64_t)(k + i)) : 0;
        v[i / 2] = i % 2 ? v[i / 2] | e << 16 : e;
    }
}

// `w` begins at the first row of the block: offsets fit 32 bits.
static __device__ __forceinline__ skinny_run skinny_load(const tn_cuda_skinny_args &a, const tn_cuda_weight &w, int row, int k)
{
    // Behind the end of a row the last values stand in, times zeros of x: a branch here would keep loads from running ahead.
    skinny_run r;
    skinny_load_plain(a, w.plane[0] + (uint32_t)row * (uint32_t)w.row_size[0], k, r.v);
    return r;
}

// Where a warp's rows are: `w` from the first row of its tile on.
struct skinny_rows {
    tn_cuda_weight w;
    int row[2][2]; // of tile i, + 8 h
};

static __device__ __forceinline__ const tn_cuda_skinny_seg *skinny_seg_of(const tn_cuda_skinny_args &a, int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < 3; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return &a.seg[s];
}

static __device__ __forceinline__ skinny_rows skinny_rows_of(const tn_cuda_skinny_args &a, int tile, int group, int64_t skip)
{
    skinny_rows f;
    int lane = threadIdx.x % TN_WARP;
    const tn_cuda_skinny_seg *seg = a.glu ? &a.seg[group] : skinny_seg_of(a, tile);
    int first = a.glu ? tile * (TN_SKINNY_ROWS / 2) : (tile - seg->first_tile) * TN_SKINNY_ROWS, start = a.glu ? 0 : group * 32;
    f.w = seg->w;
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) f.w.plane[p] += (skip + first) * f.w.row_size[p];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) f.row[i][h] = min(start + 16 * i + 8 * h + lane / 4, seg->n - 1 - first);
    return f;
}

// Which of the rows of x that this warp copies there are, as bits: behind the last row of a group nobody has written any. For tiles
// of 32 rows, which groups have.
static __device__ __forceinline__ int skinny_rows_there(const tn_cuda_skinny_args &a)
{
    int there = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int row = threadIdx.x / TN_WARP + 8 * i;
        if (row < a.m && (!a.row_to || a.row_to[blockIdx.y * a.m + row] >= 0)) there |= 1 << i;
    }
    return there;
}

// A stage of x: NT * 8 rows of 256 values, zeros where there are none; a warp copies a row. `from` is where this
// thread's part of the first stage is.
template <int NT> static __device__ __forceinline__ void skinny_copy(const tn_cuda_skinny_args &a, uint16_t *to, const uint16_t *from, int there, int stage)
{
    int row = threadIdx.x / TN_WARP, c = threadIdx.x % TN_WARP * 8;
    bool inside = stage * TN_SKINNY_K + c < a.ld;
    from += stage * TN_SKINNY_K;
    to += row * SKINNY_LD + c;
#pragma unroll
    for (int i = 0; i < NT; i++) {
        bool full = inside && (NT == 4 ? there >> i & 1 : row + 8 * i < a.m);
        tn_copy16(to + i * 8 * SKINNY_LD, full ? from + i * 8 * (int)a.ld : (const uint16_t *)a.x, full);
    }
}

template <int TYPE, int NT>
static __device__ __forceinline__ void skinny_multiply(const skinny_run (&w)[2][2], const uint16_t *x, float (&d)[2][NT][4])
{
    int lane = threadIdx.x % TN_WARP;
    x += lane / 4 * SKINNY_LD + lane % 4 * 16;
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        uint4 b[NT];
#pragma unroll
        for (int j = 0; j < NT; j++) b[j] = *(const uint4 *)(x + j * 8 * SKINNY_LD + pair * 8);
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                uint32_t f[4];
#pragma unroll
                for (int h = 0; h < 2; h++) f[h] = w[i][h].v[4 * pair + 2 * s], f[h + 2] = w[i][h].v[4 * pair + 2 * s + 1];
#pragma unroll
                for (int j = 0; j < NT; j++) {
                    uint32_t b0 = s ? b[j].z : b[j].x, b1 = s ? b[j].w : b[j].y;
                    if constexpr (TYPE == TN_TYPE_BF16) tn_mma_bf16(d[i][j], f, b0, b1);
                    else tn_mma_f16(d[i][j], f, b0, b1);
                }
            }
    }
}

// Sums of the four quarters: sums[row][column], rows of NT * 8 + pad floats.
template <int NT> static __device__ __forceinline__ void skinny_gather(float *shared, const float (&d)[2][NT][4])
{
    constexpr int LD = NT * 8 + TN_SKINNY_PAD, SIZE = TN_SKINNY_ROWS * LD;
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP;
    float *mine = shared + warp / 2 * SIZE + (warp % 2 * 32 + lane / 4) * LD + 2 * (lane % 4);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) *(float2 *)(mine + (16 * i + 8 * h) * LD + 8 * j) = make_float2(d[i][j][2 * h], d[i][j][2 * h + 1]);
    __syncthreads();
    for (int e = threadIdx.x; e < SIZE; e += SKINNY_THREADS) shared[e] = ((shared[e] + shared[SIZE + e]) + shared[2 * SIZE + e]) + shared[3 * SIZE + e];
}

// Sums of a tile where several blocks share it: written, and true for the block that came last.
template <int NT> static __device__ __forceinline__ bool skinny_share(const tn_cuda_skinny_args &a, const float *shared, int tile, int rank)
{
    constexpr int LD = NT * 8 + TN_SKINNY_PAD;
    __shared__ int last;
    float *to = a.partial + ((int64_t)tile * a.splits + rank) * a.m * TN_SKINNY_ROWS;
    for (int e = threadIdx.x; e < a.m * TN_SKINNY_ROWS; e += SKINNY_THREADS) to[e] = shared[e % TN_SKINNY_ROWS * LD + e / TN_SKINNY_ROWS];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&a.arrived[tile], 1) == a.splits - 1;
    __syncthreads();
    __threadfence();
    return last;
}

// The sums of all blocks of a tile, in order, back into `shared`.
template <int NT> static __device__ __forceinline__ void skinny_collect(const tn_cuda_skinny_args &a, float *shared, int tile)
{
    constexpr int LD = NT * 8 + TN_SKINNY_PAD;
    const float4 *from = (const float4 *)(a.partial + (int64_t)tile * a.splits * a.m * TN_SKINNY_ROWS);
    int n = a.m * TN_SKINNY_ROWS / 4;
    for (int e = threadIdx.x; e < n; e += SKINNY_THREADS) {
        float4 v = __ldcg(from + e);
#pragma unroll 4
        for (int r = 1; r < a.splits; r++) {
            float4 u = __ldcg(from + r * n + e);
            v = make_float4(v.x + u.x, v.y + u.y, v.z + u.z, v.w + u.w);
        }
        float *to = shared + e * 4 % TN_SKINNY_ROWS * LD + e * 4 / TN_SKINNY_ROWS;
        to[0] = v.x, to[LD] = v.y, to[2 * LD] = v.z, to[3 * LD] = v.w;
    }
    __syncthreads();
}

// The results of a tile; adjacent threads have adjacent columns of y. Four at a time, so that loads do not wait
// for each other.
template <int NT> static __device__ __forceinline__ void skinny_finish(const tn_cuda_skinny_args &a, const float *shared, int tile)
{
    constexpr int LD = NT * 8 + TN_SKINNY_PAD, BATCH = 4;
    const tn_cuda_skinny_seg &s = *skinny_seg_of(a, tile);
    int width = a.glu ? TN_SKINNY_ROWS / 2 : TN_SKINNY_ROWS, first = (tile - s.first_tile) * width, j = threadIdx.x % width, c = first + j;
    if (c >= s.n) return;
    float bias = s.bias ? s.bias[c] : 0.0f;
    for (int row = threadIdx.x / width; row < a.m; row += BATCH * (SKINNY_THREADS / width)) {
        float scale[BATCH], residual[BATCH];
        int to[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int r = row + i * (SKINNY_THREADS / width), from = blockIdx.y * a.m + r;
            to[i] = r >= a.m ? -1 : a.row_to ? a.row_to[from] : r;
            scale[i] = a.row_scale && to[i] >= 0 ? a.row_scale[from] : 1.0f;
            residual[i] = a.residual && to[i] >= 0 ? a.residual[to[i] * a.residual_ld + c] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            if (to[i] < 0) continue;
            const float *at = shared + j * LD + row + i * (SKINNY_THREADS / width);
            float v = *at * scale[i];
            if (a.glu) v = gemm_glu(a.act, a.glu_limit, a.glu_alpha, v, at[32 * LD] * scale[i]);
            else v = gemm_act(a.act, v + bias) + residual[i];
            s.y[to[i] * s.ld + c] = v;
        }
    }
}

template <int TYPE, int NT> static __device__ __forceinline__ void skinny_block(const tn_cuda_skinny_args &a)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(16) uint16_t skinny_shared[];
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP;
    int tile = blockIdx.x / a.splits, rank = blockIdx.x % a.splits;
    int n = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K, from = n * rank / a.splits, to = n * (rank + 1) / a.splits;
    int64_t skip = 0;
    tn_pdl_trigger();
    if (a.tile_group) { // what comes first decides which weights
        tn_pdl_wait();
        if ((int)blockIdx.y >= *a.n_row_tiles) return;
        skip = a.tile_group[blockIdx.y] * a.group_rows;
    }
    skinny_rows rows = skinny_rows_of(a, tile, warp % 2, skip);
    int k = from * TN_SKINNY_K + warp / 2 * 64 + lane % 4 * 16;
    skinny_run now[2][2], next[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) next[i / 2][i % 2] = skinny_load(a, rows.w, rows.row[i / 2][i % 2], k);
    tn_pdl_wait();
    int there = NT == 4 ? skinny_rows_there(a) : 0;
    const uint16_t *x = (const uint16_t *)a.x + ((int64_t)blockIdx.y * a.m + warp) * a.ld + lane * 8;
    for (int s = 0; s < TN_SKINNY_STAGES - 1; s++) {
        if (from + s < to) skinny_copy<NT>(a, skinny_shared + s * NT * 8 * SKINNY_LD, x, there, from + s);
        tn_copy_commit();
    }
    float d[2][NT][4] = {};
    for (int c = from; c < to; c++) {
        tn_copy_wait<TN_SKINNY_STAGES - 2>();
        __syncthreads();
        int ahead = c + TN_SKINNY_STAGES - 1;
        if (ahead < to) skinny_copy<NT>(a, skinny_shared + (ahead - from) % TN_SKINNY_STAGES * NT * 8 * SKINNY_LD, x, there, ahead);
        tn_copy_commit();
        k += TN_SKINNY_K;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            now[i / 2][i % 2] = next[i / 2][i % 2];
            next[i / 2][i % 2] = skinny_load(a, rows.w, rows.row[i / 2][i % 2], k);
        }
        skinny_multiply<TYPE, NT>(now, skinny_shared + (c - from) % TN_SKINNY_STAGES * NT * 8 * SKINNY_LD + warp / 2 * 64, d);
    }
    tn_copy_wait<0>();
    __syncthreads();
    skinny_gather<NT>((float *)skinny_shared, d);
    __syncthreads();
    if (a.splits > 1) {
        if (!skinny_share<NT>(a, (const float *)skinny_shared, tile, rank)) return;
        skinny_collect<NT>(a, (float *)skinny_shared, tile);
    }
    skinny_finish<NT>(a, (const float *)skinny_shared, tile);
#else
    __trap();
#endif
}

#define SKINNY(TYPE)                                                                                                 \
    TN_ENTRY __launch_bounds__(SKINNY_THREADS, 2) tn_skinny_##TYPE##_32(const __grid_constant__ tn_cuda_skinny_args a)     \
    {                                                                                                             \
        skinny_block<TN_TYPE_##TYPE, 4>(a);                                                                          \
    }                                                                                                             \
    TN_ENTRY __launch_bounds__(SKINNY_THREADS, 2) tn_skinny_##TYPE##_64(const __grid_constant__ tn_cuda_skinny_args a)     \
    {                                                                                                             \
        skinny_block<TN_TYPE_##TYPE, 8>(a);                                                                          \
    }

#endif
