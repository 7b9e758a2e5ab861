// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T + bias for 9 and more rows of x and f32 weights of few columns, such as the router of experts.
//
// x [m, k], w [n, k], y [m, n], all f32. A block has 32 rows and 32 columns of y, and a part of k if the
// blocks of a cluster share it. Each of its eight warps takes every eighth run of 16 of k, straight from
// memory into registers, so nothing is read twice by a block. A value is the sum of two bf16, and a product
// the sum of three: high * high + high * low + low * high, an error of some 2^-16. Sums of the warps are
// added in shared memory in the order of the warps, then those of the cluster in the order of the blocks.
//
// Bytes from L2 for a block: 256 k, less where blocks share k. Operations: 6 m n k. The limit is latency: 5.2
// us for 32 rows, 128 columns and k 2048 where the bytes take 0.3 (H200, 2026-11-24), 10.1 for 512 rows, and
// 28 for 2048 rows where they take 4. tn_narrow_whole is for k of whole steps in aligned rows, whose loads
// need no branches and are two steps ahead. With branches and one step ahead these were 5.7, 16.7 and 30 us.
#include "backends/cuda/product/narrow/narrow_args.h"
#include "backends/cuda/mma.cuh"
#include "backends/cuda/rows.cuh"

enum {
    ROWS = TN_NARROW_ROWS,
    COLUMNS = TN_NARROW_COLUMNS,
    WARPS = TN_NARROW_WARPS,
    STEP = TN_NARROW_K * WARPS, // elements of k between two steps of a warp
    MT = ROWS / 16,
    NT = COLUMNS / 8,
};

// Four values as two pairs of bf16, and what rounding left over of them.
struct split4 {
    uint32_t high[2], low[2];
};

static __device__ __forceinline__ uint32_t pair(float a, float b)
{
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&v;
}

// The remainder of a value; 0 for values that are not finite, or round to infinity.
static __device__ __forceinline__ float rest(float v, uint32_t high)
{
    return fabsf(v) <= 3.0e38f ? v - __uint_as_float(high) : 0.0f;
}

static __device__ __forceinline__ split4 split(float4 v)
{
    split4 s;
    s.high[0] = pair(v.x, v.y), s.high[1] = pair(v.z, v.w);
    s.low[0] = pair(rest(v.x, s.high[0] << 16), rest(v.y, s.high[0] & 0xffff0000u));
    s.low[1] = pair(rest(v.z, s.high[1] << 16), rest(v.w, s.high[1] & 0xffff0000u));
    return s;
}

// Pairs with values that are not finite as zeros in their place: they must not meet remainders, which may be
// 0, and become NaN.
static __device__ __forceinline__ uint32_t finite_pair(uint32_t v)
{
    uint32_t low = (v & 0x7f80u) == 0x7f80u ? 0 : v & 0xffffu;
    return low | ((v & 0x7f800000u) == 0x7f800000u ? 0 : v & 0xffff0000u);
}

struct narrow_rows {
    const char *x[2 * MT], *w[NT];
};

static __device__ __forceinline__ narrow_rows rows_of(const tn_cuda_narrow_args &a, int column)
{
    int lane = threadIdx.x % TN_WARP;
    narrow_rows r;
#pragma unroll
    for (int i = 0; i < 2 * MT; i++)
        r.x[i] = tn_row(a.x, min((int)blockIdx.y * ROWS + 8 * i + lane / 4, a.m - 1));
#pragma unroll
    for (int j = 0; j < NT; j++)
        r.w[j] = (const char *)(a.w + (int64_t)min(column + 8 * j + lane / 4, a.n - 1) * a.k);
    return r;
}

// What a warp multiplies in a step: four elements of each of its rows. WHOLE: there are four, at a multiple
// of 16 bytes, so loads have no branches.
struct narrow_step {
    float4 x[2 * MT], w[NT];

    template <bool WHOLE>
    static __device__ __forceinline__ float4 four(const tn_cuda_narrow_args &a, const char *row, int k)
    {
        return WHOLE ? *(const float4 *)(row + 4 * (int64_t)k) : tn_load_floats(row, 4, k, a.k, a.aligned);
    }
    template <bool WHOLE>
    __device__ __forceinline__ void load_w(const tn_cuda_narrow_args &a, const narrow_rows &rows, int k)
    {
#pragma unroll
        for (int j = 0; j < NT; j++) w[j] = four<WHOLE>(a, rows.w[j], k);
    }
    template <bool WHOLE>
    __device__ __forceinline__ void load_x(const tn_cuda_narrow_args &a, const narrow_rows &rows, int k)
    {
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) x[i] = four<WHOLE>(a, rows.x[i], k);
    }
};

static __device__ __forceinline__ void multiply(const float4 (&x)[2 * MT], const float4 (&w)[NT],
                                                float (&d)[MT][NT][4])
{
    split4 b[NT];
#pragma unroll
    for (int j = 0; j < NT; j++) b[j] = split(w[j]);
#pragma unroll
    for (int t = 0; t < MT; t++) {
        split4 low = split(x[2 * t]), high = split(x[2 * t + 1]); // rows l/4 and l/4 + 8
        uint32_t first[4] = {low.high[0], high.high[0], low.high[1], high.high[1]};
        uint32_t second[4] = {low.low[0], high.low[0], low.low[1], high.low[1]};
        uint32_t finite[4];
#pragma unroll
        for (int i = 0; i < 4; i++) finite[i] = finite_pair(first[i]);
#pragma unroll
        for (int j = 0; j < NT; j++) {
            tn_mma_bf16(d[t][j], first, b[j].high[0], b[j].high[1]);
            tn_mma_bf16(d[t][j], finite, b[j].low[0], b[j].low[1]);
            tn_mma_bf16(d[t][j], second, b[j].high[0], b[j].high[1]);
        }
    }
}

// Sums of the warps, then of the blocks of the cluster; each block of it writes some of the rows.
static __device__ __forceinline__ void write_sums(const tn_cuda_narrow_args &a, int column, int rank,
                                                  const float (&d)[MT][NT][4], float *shared)
{
    constexpr int size = ROWS * COLUMNS;
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int t = 0; t < MT; t++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *(float2 *)(shared + warp * size + (16 * t + 8 * h + lane / 4) * COLUMNS + 8 * j +
                            2 * (lane % 4)) = make_float2(d[t][j][2 * h], d[t][j][2 * h + 1]);
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += WARPS * TN_WARP) {
        float sum = shared[i];
#pragma unroll
        for (int w = 1; w < WARPS; w++) sum += shared[w * size + i];
        shared[i] = sum;
    }
#ifdef TN_HOPPER
    if (a.splits > 1)
        tn_cluster_sync();
    else
        __syncthreads();
#else
    __syncthreads();
#endif
    int part = size / a.splits;
    for (int i = part * rank + threadIdx.x; i < part * (rank + 1); i += WARPS * TN_WARP) {
        float sum = 0.0f;
#ifdef TN_HOPPER
        if (a.splits > 1)
            for (int b = 0; b < a.splits; b++) sum += tn_cluster_load(shared + i, b);
        else
            sum = shared[i];
#else
        sum = shared[i];
#endif
        int r = blockIdx.y * ROWS + i / COLUMNS, c = column + i % COLUMNS;
        if (r < a.m && c < a.n) a.y[(int64_t)r * a.n + c] = sum + (a.bias ? a.bias[c] : 0.0f);
    }
#ifdef TN_HOPPER
    if (a.splits > 1) tn_cluster_sync(); // nobody reads the shared memory of this block any more
#endif
}

template <bool WHOLE> static __device__ __forceinline__ void narrow(const tn_cuda_narrow_args &a)
{
    constexpr int ahead = WHOLE ? 2 : 1; // steps whose loads are under way while one is multiplied
    __shared__ float shared[WARPS * ROWS * COLUMNS];
    int rank = blockIdx.x % a.splits, column = blockIdx.x / a.splits * COLUMNS;
    int n = (a.k + STEP - 1) / STEP, first = n * rank / a.splits, last = n * (rank + 1) / a.splits;
    int k = (int)threadIdx.x / TN_WARP * TN_NARROW_K + 4 * (threadIdx.x % 4);
    narrow_rows rows = rows_of(a, column);
    float d[MT][NT][4] = {};
    narrow_step step[ahead + 1];
    // Weights do not change, so the first ones are read before the predecessor has ended.
#pragma unroll
    for (int i = 0; i < ahead; i++)
        step[i].template load_w<WHOLE>(a, rows, k + min(first + i, last - 1) * STEP);
    tn_pdl_trigger();
    tn_pdl_wait();
#pragma unroll
    for (int i = 0; i < ahead; i++)
        step[i].template load_x<WHOLE>(a, rows, k + min(first + i, last - 1) * STEP);
#pragma unroll 1
    for (int s0 = first; s0 < last; s0 += ahead + 1)
#pragma unroll
        for (int i = 0; i <= ahead; i++) {
            if (s0 + i >= last) break;
            int next = k + min(s0 + i + ahead, last - 1) * STEP; // behind the last one it is read again
            step[(i + ahead) % (ahead + 1)].template load_x<WHOLE>(a, rows, next);
            step[(i + ahead) % (ahead + 1)].template load_w<WHOLE>(a, rows, next);
            multiply(step[i].x, step[i].w, d);
        }
    write_sums(a, column, rank, d, shared);
}

#if __CUDA_ARCH__ >= 800
#define NARROW_BODY(WHOLE) narrow<WHOLE>(a)
#else
#define NARROW_BODY(WHOLE) __trap()
#endif
#define NARROW(NAME, WHOLE)                                                                                  \
    TN_ENTRY __launch_bounds__(WARPS *TN_WARP)                                                               \
        tn_narrow_##NAME(const __grid_constant__ tn_cuda_narrow_args a)                                      \
    {                                                                                                        \
        NARROW_BODY(WHOLE);                                                                                  \
    }

NARROW(whole, true)
NARROW(any, false)
