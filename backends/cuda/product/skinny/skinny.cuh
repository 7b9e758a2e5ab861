// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 9 to 64 rows of x and 16-bit weights (skinny GEMM): as much memory traffic as for one row,
// with the arithmetic on mma.sync.
//
// Operands: x [m, k] 16-bit with zeros behind k, w [n, k] f16 or bf16, y [m, n] f32. Weights are the 16-row
// operand of the instruction, rows of x its columns.
//
// A block computes 64 rows of weights: two groups of 32 (with GLU: of gate and of up) times four quarters of
// each stage of 256 k, one warp each. Lane l of a warp has 16 neighbouring values of rows l / 4, l / 4 + 8
// and so on in registers: values 4 s to 4 s + 3 are its operand of step s, because the order of k inside a
// product is free. x passes through shared memory in three stages. The quarters are summed in shared memory.
// Where several blocks share the stages of a tile (split-k), the last one to arrive sums what all have
// written, in order, and finishes. With groups of rows (experts), blockIdx.y is the tile of rows.
//
// Bytes: weights once, x once for each tile. Operations: 2 m n k. Half of the issue slots are used, memory is
// not the limit. Measured with bf16, 32 rows (H200, 2026-11-20): 4096 + 2 x 1024 columns 26.8 us, 4096
// columns with residual 22.3 us (k 4096), 50.0 us (k 14336), GLU 2 x 14336 81.0 us, which is 2.9 TB/s of
// weights, 66 % of the read peak of 4.42 TB/s.
//
// Tried on the same device without gain: clusters that share k and sum through distributed shared memory lost
// about 10 us a launch against sums in global memory and a counter (4096 columns, k 14336: 70 us against 56).
// Requests to L2 four stages ahead made bf16 slower (81 to 100 us).
#ifndef TN_CUDA_SKINNY_CUH
#define TN_CUDA_SKINNY_CUH

#include "backends/cuda/product/skinny/skinny_args.h"
#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/mma.cuh"

enum { SKINNY_THREADS = 256, SKINNY_AHEAD = 4, SKINNY_LD = TN_SKINNY_K + TN_SKINNY_PAD };

// 16 neighbouring values of a row of weights.
struct skinny_run16 {
    uint32_t v[8];
};

static __device__ __forceinline__ void skinny_load_plain(const tn_cuda_skinny_args &a, const char *row, int k,
                                                         uint32_t (&v)[8])
{
    if (a.wide) {
        k = min(k, a.k - 16);
        uint4 low = *(const uint4 *)(row + 2 * (int64_t)k),
              high = *(const uint4 *)(row + 2 * (int64_t)k + 16);
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

// `w` begins at the first row of the block, so offsets fit 32 bits.
static __device__ __forceinline__ skinny_run16 skinny_load(const tn_cuda_skinny_args &a,
                                                           const tn_cuda_weight &w, int row, int k)
{
    // Behind the end of a row the last values are loaded again and multiplied by zeros of x: a branch here
    // would keep later loads from being issued early.
    skinny_run16 r;
    skinny_load_plain(a, w.plane[0] + (uint32_t)row * (uint32_t)w.row_size[0], k, r.v);
    return r;
}

// Where the rows of a warp are: `w` starts at the first row of its tile.
struct skinny_rows {
    tn_cuda_weight w;
    int row[2][2]; // row of the tile for row tile i of 16, lower (h 0) or upper 8 rows
};

static __device__ __forceinline__ const tn_cuda_skinny_seg *skinny_seg_of(const tn_cuda_skinny_args &a,
                                                                          int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < 3; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return &a.seg[s];
}

static __device__ __forceinline__ skinny_rows skinny_rows_of(const tn_cuda_skinny_args &a, int tile,
                                                             int group, int64_t expert_rows)
{
    skinny_rows f;
    int lane = threadIdx.x % TN_WARP;
    const tn_cuda_skinny_seg *seg = a.glu ? &a.seg[group] : skinny_seg_of(a, tile);
    int first = a.glu ? tile * (TN_SKINNY_ROWS / 2) : (tile - seg->first_tile) * TN_SKINNY_ROWS,
        start = a.glu ? 0 : group * 32;
    f.w = seg->w;
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) f.w.plane[p] += (expert_rows + first) * f.w.row_size[p];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) f.row[i][h] = min(start + 16 * i + 8 * h + lane / 4, seg->n - 1 - first);
    return f;
}

// Which of the rows of x that this warp copies exist, as bits: behind the last row of a group nobody has
// written any. For tiles of 32 rows, which groups have.
static __device__ __forceinline__ int skinny_rows_present(const tn_cuda_skinny_args &a)
{
    int present = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int row = threadIdx.x / TN_WARP + 8 * i;
        if (row < a.m && (!a.row_to || a.row_to[blockIdx.y * a.m + row] >= 0)) present |= 1 << i;
    }
    return present;
}

// Copies a stage of x: NT * 8 rows of 256 values, zeros where there are none; a warp copies a row. `from` is
// this thread's part of the first stage.
template <int NT>
static __device__ __forceinline__ void skinny_copy_x_stage(const tn_cuda_skinny_args &a, uint16_t *to,
                                                           const uint16_t *from, int present, int stage)
{
    int row = threadIdx.x / TN_WARP, c = threadIdx.x % TN_WARP * 8;
    bool inside = stage * TN_SKINNY_K + c < a.ld;
    from += stage * TN_SKINNY_K;
    to += row * SKINNY_LD + c;
#pragma unroll
    for (int i = 0; i < NT; i++) {
        bool full = inside && (NT == 4 ? present >> i & 1 : row + 8 * i < a.m);
        tn_copy16(to + i * 8 * SKINNY_LD, full ? from + i * 8 * (int)a.ld : (const uint16_t *)a.x, full);
    }
}

template <int TYPE, int NT>
static __device__ __forceinline__ void skinny_multiply(const skinny_run16 (&w)[2][2], const uint16_t *x,
                                                       float (&d)[2][NT][4])
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
                for (int h = 0; h < 2; h++)
                    f[h] = w[i][h].v[4 * pair + 2 * s], f[h + 2] = w[i][h].v[4 * pair + 2 * s + 1];
#pragma unroll
                for (int j = 0; j < NT; j++) {
                    uint32_t b0 = s ? b[j].z : b[j].x, b1 = s ? b[j].w : b[j].y;
                    if constexpr (TYPE == TN_TYPE_BF16) tn_mma_bf16(d[i][j], f, b0, b1);
                    else tn_mma_f16(d[i][j], f, b0, b1);
                }
            }
    }
}

// Adds the sums of the four quarters in shared memory: sums[row][column], rows of NT * 8 + pad floats.
template <int NT>
static __device__ __forceinline__ void skinny_sum_quarters(float *shared, const float (&d)[2][NT][4])
{
    constexpr int LD = NT * 8 + TN_SKINNY_PAD, SIZE = TN_SKINNY_ROWS * LD;
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP;
    float *own = shared + warp / 2 * SIZE + (warp % 2 * 32 + lane / 4) * LD + 2 * (lane % 4);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *(float2 *)(own + (16 * i + 8 * h) * LD + 8 * j) =
                    make_float2(d[i][j][2 * h], d[i][j][2 * h + 1]);
    __syncthreads();
    for (int e = threadIdx.x; e < SIZE; e += SKINNY_THREADS)
        shared[e] = ((shared[e] + shared[SIZE + e]) + shared[2 * SIZE + e]) + shared[3 * SIZE + e];
}

// Split-k: writes the sums of this block for a tile that several blocks share. Returns true in the block that
// arrives last.
template <int NT>
static __device__ __forceinline__ bool skinny_publish_sums(const tn_cuda_skinny_args &a, const float *shared,
                                                           int tile, int rank)
{
    constexpr int LD = NT * 8 + TN_SKINNY_PAD;
    __shared__ int last;
    float *to = a.partial + ((int64_t)tile * a.splits + rank) * a.m * TN_SKINNY_ROWS;
    for (int e = threadIdx.x; e < a.m * TN_SKINNY_ROWS; e += SKINNY_THREADS)
        to[e] = shared[e % TN_SKINNY_ROWS * LD + e / TN_SKINNY_ROWS];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&a.arrived[tile], 1) == a.splits - 1;
    __syncthreads();
    __threadfence();
    return last;
}

// Adds the sums of all blocks of a tile, in the order of the blocks, back into `shared`.
template <int NT>
static __device__ __forceinline__ void skinny_add_splits(const tn_cuda_skinny_args &a, float *shared,
                                                         int tile)
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

// Writes the results of a tile; neighbouring threads have neighbouring columns of y. A thread handles four at
// a time, so that their loads do not wait for each other.
template <int NT>
static __device__ __forceinline__ void skinny_write_tile(const tn_cuda_skinny_args &a, const float *shared,
                                                         int tile)
{
    constexpr int LD = NT * 8 + TN_SKINNY_PAD, BATCH = 4;
    const tn_cuda_skinny_seg &s = *skinny_seg_of(a, tile);
    int width = a.glu ? TN_SKINNY_ROWS / 2 : TN_SKINNY_ROWS, first = (tile - s.first_tile) * width,
        j = threadIdx.x % width, c = first + j;
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
    int64_t expert_rows = 0;
    tn_pdl_trigger();
    if (a.tile_group) { // a predecessor decides which expert, so which weights
        tn_pdl_wait();
        if ((int)blockIdx.y >= *a.n_row_tiles) return;
        expert_rows = a.tile_group[blockIdx.y] * a.group_rows;
    }
    skinny_rows rows = skinny_rows_of(a, tile, warp % 2, expert_rows);
    int k = from * TN_SKINNY_K + warp / 2 * 64 + lane % 4 * 16;
    skinny_run16 current[2][2], next[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) next[i / 2][i % 2] = skinny_load(a, rows.w, rows.row[i / 2][i % 2], k);
    tn_pdl_wait();
    int present = NT == 4 ? skinny_rows_present(a) : 0;
    const uint16_t *x = (const uint16_t *)a.x + ((int64_t)blockIdx.y * a.m + warp) * a.ld + lane * 8;
    for (int s = 0; s < TN_SKINNY_STAGES - 1; s++) {
        if (from + s < to)
            skinny_copy_x_stage<NT>(a, skinny_shared + s * NT * 8 * SKINNY_LD, x, present, from + s);
        tn_copy_commit();
    }
    float d[2][NT][4] = {};
    for (int c = from; c < to; c++) {
        tn_copy_wait<TN_SKINNY_STAGES - 2>();
        __syncthreads();
        int ahead = c + TN_SKINNY_STAGES - 1;
        if (ahead < to)
            skinny_copy_x_stage<NT>(a, skinny_shared + (ahead - from) % TN_SKINNY_STAGES * NT * 8 * SKINNY_LD,
                                    x, present, ahead);
        tn_copy_commit();
        k += TN_SKINNY_K;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            current[i / 2][i % 2] = next[i / 2][i % 2];
            next[i / 2][i % 2] = skinny_load(a, rows.w, rows.row[i / 2][i % 2], k);
        }
        skinny_multiply<TYPE, NT>(
            current, skinny_shared + (c - from) % TN_SKINNY_STAGES * NT * 8 * SKINNY_LD + warp / 2 * 64, d);
    }
    tn_copy_wait<0>();
    __syncthreads();
    skinny_sum_quarters<NT>((float *)skinny_shared, d);
    __syncthreads();
    if (a.splits > 1) {
        if (!skinny_publish_sums<NT>(a, (const float *)skinny_shared, tile, rank)) return;
        skinny_add_splits<NT>(a, (float *)skinny_shared, tile);
    }
    skinny_write_tile<NT>(a, (const float *)skinny_shared, tile);
#else
    __trap();
#endif
}

#define SKINNY(TYPE)                                                                                         \
    TN_ENTRY __launch_bounds__(SKINNY_THREADS, 2)                                                            \
        tn_skinny_##TYPE##_32(const __grid_constant__ tn_cuda_skinny_args a)                                 \
    {                                                                                                        \
        skinny_block<TN_TYPE_##TYPE, 4>(a);                                                                  \
    }                                                                                                        \
    TN_ENTRY __launch_bounds__(SKINNY_THREADS, 2)                                                            \
        tn_skinny_##TYPE##_64(const __grid_constant__ tn_cuda_skinny_args a)                                 \
    {                                                                                                        \
        skinny_block<TN_TYPE_##TYPE, 8>(a);                                                                  \
    }

#endif
