// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The ends of tiles of experts.cuh: sums become rows of y in f32, or, of a gated pair that one product alone
// reads (TN_JOIN_PACK), rows as experts_prepare.cu makes them for it: f16 times a power of two, and sums of
// 32 values, which are 32 threads of four warps. The power has to be known before the first result:
// |silu(g) u| <= |x|^2 |w_gate| |w_up| (Cauchy and Schwarz), with the largest norms of rows of the weights.
// The launch that would round x and sort the ids again is not needed then.
//
// Such ends have kernels of their own, with tiles of 16 rows only: in one kernel with the others, prompts
// lost 2 to 3 %, and with tiles of 64 rows they take more than that launch (docs/log/cuda-gemm.md).
#ifndef TN_CUDA_EXPERTS_WRITE_CUH
#define TN_CUDA_EXPERTS_WRITE_CUH

#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/product/experts/experts_args.h"
#include "backends/cuda/product/experts/experts_products.cuh"
#include "backends/cuda/product/prepare.cuh"

enum {
    EXPERTS_ROWS = TN_EXPERTS_TILE,
    EXPERTS_HALF = TN_EXPERTS_TILE / 2,
    EXPERTS_SUM_WARPS = 4 * TN_EXPERTS_CONSUMERS, // whose parts of sums of x of the next product are kept
};

#ifdef TN_HOPPER
// The rows of y of a tile (negative: none), and the bits of a power of two (or NaN) that results of them are
// multiplied by. For the next product: the lowest eight bits, which are 0 in a power of two, are the exponent
// of another one, for the result of the gated pair.
template <int N> struct experts_rows {
    int2 y[N];
};

template <bool NEXT>
static __device__ __forceinline__ int experts_factor(const tn_cuda_experts_args &a, int x_row)
{
    uint32_t bits = __float_as_uint(a.x_scale[x_row]);
    return (int)(NEXT ? bits | __float_as_uint(a.y_power[x_row]) >> 23 : bits);
}

// The tiles of a block, every gridDim.x-th one. Those of the same rows of x follow each other.
struct experts_tile {
    int rows, first; // tile of rows; first row of the weight, within its expert
    __device__ __forceinline__ experts_tile(const tn_cuda_experts_args &a, int t)
    {
        rows = t / a.tiles_n;
        first = (t - rows * a.tiles_n) * (a.glu ? EXPERTS_HALF : EXPERTS_ROWS);
    }
};

// Zeros in rows of y whose id is no expert, by whole warps. What a gated pair leaves for the next product is
// not read there.
static __device__ __forceinline__ void experts_zero(const tn_cuda_experts_args &a, int thread, int n_threads)
{
    int lane = thread % TN_WARP, warps = n_threads / TN_WARP;
    int first = ((int)blockIdx.x * warps + thread / TN_WARP) * TN_WARP;
    for (int i0 = first; i0 < a.n_ids; i0 += (int)gridDim.x * n_threads) {
        int id = i0 + lane < a.n_ids ? a.ids[i0 + lane] : 0;
        uint32_t left = __ballot_sync(0xffffffffu, id < 0 || id >= a.n_groups);
        for (; left; left &= left - 1) {
            float *row = (float *)a.y + (i0 + __ffs((int)left) - 1) * (int64_t)a.n;
            for (int c = lane; c < a.n; c += TN_WARP) row[c] = 0.0f;
        }
    }
}

static __device__ __forceinline__ uint32_t experts_pair(float low, float high)
{
    __half2 h = __floats2half2_rn(low, high);
    return *(uint32_t *)&h;
}

// Writes N columns of two rows of weights; eight lanes write eight columns of a row, a sector of 32 bytes.
// Of gated pairs other than SiLU the loop is short: it is rare, and its code would be long.
template <int N>
static __device__ __forceinline__ void experts_write(const tn_cuda_experts_args &a, const experts_tile &tile,
                                                     int row, int q, const experts_rows<N> &rows,
                                                     experts_sums<N> &total)
{
    int c = tile.first + row;
    bool silu = a.act == TN_UNARY_SILU && a.glu_limit <= 0.0f && a.glu_alpha <= 0.0f, low = c < a.n,
         high = c + EXPERTS_HALF < a.n;
    auto each = [&](int j, const float(&sums)[4], auto f) {
        int4 two = *(const int4 *)&rows.y[8 * j + 2 * q];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int r = i ? two.z : two.x;
            float scale = __int_as_float(i ? two.w : two.y);
            if (r >= 0) f((float *)a.y + (int64_t)r * a.n + c, sums[i] * scale, sums[2 + i] * scale);
        }
    };
    if (!a.glu) {
#pragma unroll
        for (int j = 0; j < N / 8; j++)
            each(j, total[j], [&](float *y, float u, float v) {
                if (low) y[0] = u;
                if (high) y[EXPERTS_HALF] = v;
            });
    } else if (silu) {
#pragma unroll
        for (int j = 0; j < N / 8; j++)
            each(j, total[j], [&](float *y, float gate, float up) {
                if (low) y[0] = __fdividef(gate, 1.0f + __expf(-gate)) * up;
            });
    } else {
#pragma unroll 1
        for (int j = 0; j < N / 8; j++) {
            each(j, total[0], [&](float *y, float gate, float up) {
                float v = gemm_glu(a.act, a.glu_limit, a.glu_alpha, gate, up);
                if (low) y[0] = v;
            });
#pragma unroll
            for (int i = 0; i + 1 < N / 8; i++)
#pragma unroll
                for (int e = 0; e < 4; e++) total[i][e] = total[i + 1][e];
        }
    }
}

// Two lanes whose columns differ by two, which are neighbours in a row, have two rows of them: each gets both
// columns of one row, and stores them together. `sums` has a row of N values for each warp; the next tile has
// another place for them.
template <int N>
static __device__ __forceinline__ void
experts_write_for_next(const tn_cuda_experts_args &a, const experts_tile &tile, int row, int q,
                       const experts_rows<N> &rows, const experts_sums<N> &total, float *sums)
{
    int second = row >> 1 & 1, c = tile.first + row - 2 * second, thread = (int)threadIdx.x % 128;
    int64_t row_bytes = TN_EXPERTS_ROW(a.n);
    char *y = a.y + 2 * ((c & ~15) + (c & 1) * 8 + (c & 15) / 2);
    sums += (row / 32) * 4 * N;
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        int4 two = *(const int4 *)&rows.y[8 * j + 2 * q];
        float v[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t bits = (uint32_t)(i ? two.w : two.y);
            float scale = __uint_as_float(bits & ~0xffu), power = __uint_as_float(bits << 23);
            float gate = total[j][i] * scale, up = total[j][2 + i] * scale;
            v[i] = __fdividef(gate, 1.0f + __expf(-gate)) * up * power;
        }
        float mine = second ? v[1] : v[0], other = __shfl_xor_sync(0xffffffffu, second ? v[0] : v[1], 8);
        uint32_t both = experts_pair(second ? other : mine, second ? mine : other);
        float sum = tn_half_bits(both & 0xffffu) + tn_half_bits(both >> 16);
        sum += __shfl_xor_sync(0xffffffffu, sum, 4);
        sum += __shfl_xor_sync(0xffffffffu, sum, 16);
        int r = second ? two.z : two.x;
        if (r >= 0) *(uint32_t *)(y + r * row_bytes) = both;
        if ((row & 5) == 0) sums[row / 8 % 4 * N + 8 * j + 2 * q + second] = sum;
    }
    tn_named_barrier(1 + row / 32, 128);
    if (thread >= N) return;
    float sum = (sums[thread] + sums[N + thread] + sums[2 * N + thread] + sums[3 * N + thread]) * 0.03125f;
    int r = rows.y[thread].x;
    if (r < 0) return;
    *(uint32_t *)(a.y + r * row_bytes + 2 * a.n + (tile.first + row / 32 * 32) / 8) =
        experts_pair(sum, sum - __half2float(__float2half_rn(sum)));
}
#endif

#endif
