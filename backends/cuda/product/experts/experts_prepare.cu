// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the products of experts read (experts.cuh): rows of x as f16 times a power of two, with sums of each
// 32 values, and the ids sorted by expert.
//
// The first blocks sort, the others make rows, so that both are done at the same time. A warp makes a row of
// x: its largest value, then what is written, 8 values of a lane at a time. Bytes for each value of x: 4 read
// and 2.1 written. Rows of up to 1024 or 2048 values stay in registers, longer ones are read again. The limit
// is latency for few rows, memory for many. Rows are made once, however many experts read them.
//
// Of a gated pair whose results are x of the next product (experts_write.cuh) they also make the power of two
// of the results of each row, as gemm/gemm_blocks_x.cu does.
#include "backends/cuda/product/experts/experts_args.h"
#include "backends/cuda/product/prepare.cuh"

#include <cuda_fp16.h>

enum { THREADS = TN_EXPERTS_PREPARE_THREADS, WARPS = THREADS / TN_WARP, RUN = 8 * TN_WARP };

// --- rows of x ---------------------------------------------------------------------------------------

static __device__ __forceinline__ uint32_t pair(float a, float b)
{
    __half2 h = __floats2half2_rn(a, b);
    return *(uint32_t *)&h;
}

// Stores values k to k + 7 of a row, and the sum of the 32 values that four lanes have. For whole warps.
static __device__ __forceinline__ void store8(const tn_cuda_experts_prepare_args &a, char *to, int k,
                                              const float (&v)[8])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) sum += __half2float(__float2half_rn(v[i]));
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (k >= a.k) return;
    uint2 *at = (uint2 *)(to + 2 * (k & ~15)) + (k >> 3 & 1);
    at[0] = make_uint2(pair(v[0], v[2]), pair(v[4], v[6]));
    at[2] = make_uint2(pair(v[1], v[3]), pair(v[5], v[7]));
    sum *= 0.03125f;
    if (k % 32 == 0)
        *(uint32_t *)(to + 2 * a.k + k / 8) = pair(sum, sum - __half2float(__float2half_rn(sum)));
}

static __device__ __forceinline__ void largest_of(const float (&v)[8], float &largest, bool &finite)
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        bool ok = fabsf(v[i]) <= 3.4028235e38f;
        largest = ok ? fmaxf(largest, fabsf(v[i])) : largest;
        finite = finite && ok;
    }
}

// Bounds the results of a row of x whose values times `power` have squares of the sum `squares`.
static __device__ __forceinline__ void bound_results(const tn_cuda_experts_prepare_args &a, int r,
                                                     float power, float squares)
{
    squares = tn_warp_sum(squares);
    double x = (double)squares / power / power;
    float y_power = tn_power_for_bound(x * *a.norm_gate * *a.norm_up);
    int lane = threadIdx.x % TN_WARP;
    if (lane == 0) a.y_power[r] = y_power;
    for (int u = lane; u < a.slots; u += TN_WARP) a.y_scale[r * a.slots + u] = 1.0f / y_power;
}

static __device__ __forceinline__ float squares_of(const float (&v)[8])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) sum += v[i] * v[i];
    return sum;
}

// Rows of up to RUNS times RUN values stay in registers.
template <int RUNS>
static __device__ __forceinline__ void make_row(const tn_cuda_experts_prepare_args &a, int r)
{
    int k0 = 8 * (threadIdx.x % TN_WARP);
    const float *row = (const float *)tn_row(a.x, r);
    char *to = a.to + r * TN_EXPERTS_ROW(a.k);
    bool wide = (uintptr_t)row % 16 == 0, finite = true;
    float v[RUNS][8], largest = 0.0f;
#pragma unroll
    for (int i = 0; i < RUNS; i++) tn_load8(row, k0 + i * RUN, a.k, wide, v[i]);
#pragma unroll
    for (int i = 0; i < RUNS; i++) largest_of(v[i], largest, finite);
    for (int k = k0 + RUN * RUNS; k < a.k; k += RUN) {
        float u[8];
        tn_load8(row, k, a.k, wide, u);
        largest_of(u, largest, finite);
    }
    largest = tn_warp_max(largest);
    bool poisoned = a.finite_rows && !__all_sync(0xffffffffu, finite);
    float power = poisoned ? 1.0f : tn_power_of_two_for(largest, 14);
    if (threadIdx.x % TN_WARP == 0) a.scale[r] = poisoned ? __uint_as_float(0x7fc00000u) : 1.0f / power;
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < RUNS; i++) {
        if (i * RUN >= a.k) break;
#pragma unroll
        for (int j = 0; j < 8; j++) v[i][j] *= power;
        squares += squares_of(v[i]);
        store8(a, to, k0 + i * RUN, v[i]);
    }
    for (int first = RUN * RUNS; first < a.k; first += RUN) {
        float u[8];
        tn_load8(row, k0 + first, a.k, wide, u);
#pragma unroll
        for (int j = 0; j < 8; j++) u[j] *= power;
        squares += squares_of(u);
        store8(a, to, k0 + first, u);
    }
    if (a.y_power) bound_results(a, r, power, squares);
}

// --- ids ---------------------------------------------------------------------------------------------

enum { GROUPS_PER_THREAD = TN_GEMM_MAX_GROUPS / THREADS, BATCH = 8 };

// Calls f(i, id) for those of ids `from` to `to` - 1 that are experts; the loads of a batch are under way at
// a time.
template <class F>
static __device__ __forceinline__ void each_id(const tn_cuda_experts_prepare_args &a, int from, int to, F f)
{
    for (int i0 = from + threadIdx.x; i0 < to; i0 += BATCH * THREADS) {
        int id[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) id[b] = i0 + b * THREADS < to ? a.ids[i0 + b * THREADS] : -1;
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (id[b] >= 0 && id[b] < a.n_groups) f(i0 + b * THREADS, id[b]);
    }
}

// Each of a.sorters blocks counts all ids and places its share of them. The order of the rows of
// an expert depends on the order of atomics. Results do not depend on it, because each row is multiplied on
// its own.
static __device__ void sort_ids(const tn_cuda_experts_prepare_args &a, int sorter)
{
    const tn_cuda_experts_table &to = a.table;
    __shared__ int before[TN_GEMM_MAX_GROUPS], count[TN_GEMM_MAX_GROUPS], shared[TN_WARP];
    int first_group = GROUPS_PER_THREAD * threadIdx.x, tiles = 0;
    int share = (a.n_ids + a.sorters - 1) / a.sorters, from = min(sorter * share, a.n_ids),
        end = min(from + share, a.n_ids);
    for (int g = threadIdx.x; g < TN_GEMM_MAX_GROUPS; g += THREADS) before[g] = count[g] = 0;
    __syncthreads();
    each_id(a, 0, from, [&](int, int id) { atomicAdd(&before[id], 1); });
    each_id(a, from, a.n_ids, [&](int, int id) { atomicAdd(&count[id], 1); });
    __syncthreads();
    for (int g = first_group; g < first_group + GROUPS_PER_THREAD; g++)
        tiles += (before[g] + count[g] + to.tile_rows - 1) / to.tile_rows;
    int at = tn_sum_before(tiles, shared);
    if (sorter == 0 && threadIdx.x == THREADS - 1) *to.n_tiles = at + tiles;
    for (int g = first_group; g < first_group + GROUPS_PER_THREAD; g++) {
        int rows = before[g] + count[g], n = (rows + to.tile_rows - 1) / to.tile_rows;
        before[g] += at * to.tile_rows; // the place of the next row
        if (sorter == 0) {
            for (int t = 0; t < n; t++) to.tile_group[at + t] = g;
            for (int r = rows; r < n * to.tile_rows; r++) to.rows[at * to.tile_rows + r] = -1;
        }
        at += n;
    }
    __syncthreads();
    each_id(a, from, end, [&](int i, int id) { to.rows[atomicAdd(&before[id], 1)] = i; });
}

template <int RUNS> static __device__ __forceinline__ void prepare(const tn_cuda_experts_prepare_args &a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    if ((int)blockIdx.x < a.sorters) {
        sort_ids(a, blockIdx.x);
        return;
    }
    int warp = (blockIdx.x - a.sorters) * WARPS + threadIdx.x / TN_WARP,
        n_warps = (gridDim.x - a.sorters) * WARPS;
    for (int r = warp; r < a.m; r += n_warps) make_row<RUNS>(a, r);
}

#define EXPERTS_PREPARE(RUNS)                                                                                \
    TN_ENTRY __launch_bounds__(THREADS)                                                                      \
        tn_experts_prepare_##RUNS(const __grid_constant__ tn_cuda_experts_prepare_args a)                    \
    {                                                                                                        \
        prepare<RUNS>(a);                                                                                    \
    }

EXPERTS_PREPARE(4)
EXPERTS_PREPARE(8)
