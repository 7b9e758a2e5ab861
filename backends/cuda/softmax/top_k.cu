// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// top_k: the indices of the k largest values of each row, the largest first; of equal values the lower index
// comes first.
//
// Rows of up to 1024 values lie in the registers of one warp (top_k.cuh), four warps in a block. Of longer
// rows each thread of a block of 1024 keeps the best of its elements. Values may come in groups of which only
// the best are used (DeepSeek-V3, 2024, section 2.1.2). Values with a bias are compared as doubles, because
// sums rounded to f32 could tie. NaN counts as -inf. Bytes moved: 4 per element. Limit: latency of the k
// reductions one after the other.
#include "backends/cuda/softmax/softmax_args.h"
#include "backends/cuda/rows.cuh"
#include "backends/cuda/softmax/top_k.cuh"

static __device__ __forceinline__ double value(const tn_cuda_top_k_args &a, const float *x, int j)
{
    return tn_biased(x[j], a.bias, j);
}

// Selects the groups of a row; called by all threads of the block.
static __device__ __forceinline__ void select_groups(const tn_cuda_top_k_args &a, const float *x,
                                                     double *score, bool *kept)
{
    tn_route_groups((int)a.x.ne[3], a.n_groups, a.n_groups_used, (int)threadIdx.x, (int)blockDim.x, score,
                    kept, [&](int j) { return value(a, x, j); }, [] { __syncthreads(); });
}

// One warp has a row of up to 32 R values. With groups a block has one row, because all its threads select
// the groups.
template <int R, bool GROUPS> static __device__ __forceinline__ void top_k_warp(const tn_cuda_top_k_args &a)
{
    __shared__ double score[GROUPS ? TN_CUDA_MAX_GROUPS : 1];
    __shared__ bool kept[GROUPS ? TN_CUDA_MAX_GROUPS : 1];
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t row = blockIdx.x * (blockDim.x / TN_WARP) + threadIdx.x / TN_WARP;
    int lane = threadIdx.x % TN_WARP, n = (int)a.x.ne[3];
    if (row >= a.n_rows) return;
    const float *x = (const float *)tn_row32(a.x, row);
    int32_t *y = (int32_t *)tn_row32(a.y, row), mine = 0;
    if (GROUPS) select_groups(a, x, score, kept);
    uint64_t key[R];
#pragma unroll
    for (int i = 0; i < R; i++) {
        int j = lane + i * TN_WARP;
        key[i] = j < n ? a.bias ? tn_key_of(value(a, x, j)) : tn_key_of(x[j]) : 0;
        if (GROUPS && j < n && !kept[j / (n / a.n_groups)]) key[i] = 0;
    }
    for (int i = 0; i < a.k; i++) {
        int j = tn_extract_max<R>(key, a.bias != NULL);
        if (lane == i % TN_WARP) mine = j;
        if ((i % TN_WARP == TN_WARP - 1 || i == a.k - 1) && lane <= i % TN_WARP)
            y[i - i % TN_WARP + lane] = mine;
    }
}

#define TN_TOP_K(name, R, GROUPS)                                                                            \
    TN_ENTRY __launch_bounds__(TN_CUDA_TOP_K_WARPS *TN_WARP)                                                 \
        name(const __grid_constant__ tn_cuda_top_k_args a)                                                   \
    {                                                                                                        \
        top_k_warp<R, GROUPS>(a);                                                                            \
    }
TN_TOP_K(tn_top_k_4, 4, false)
TN_TOP_K(tn_top_k_8, 8, false)
TN_TOP_K(tn_top_k_32, 32, false)
TN_TOP_K(tn_top_k_groups_8, 8, true)
TN_TOP_K(tn_top_k_groups_32, 32, true)

// An element of a row: its key (tn_key_of) and index. {0, 0x7fffffff} is worse than every element.
struct candidate {
    uint64_t key;
    int j;
};

// The larger of two candidates; of equal ones the one with the lower index.
static __device__ __forceinline__ candidate better(candidate a, candidate b)
{
    return b.key > a.key || (b.key == a.key && b.j < a.j) ? b : a;
}

// All lanes get the best candidate of the warp.
static __device__ __forceinline__ candidate best_of_warp(candidate p)
{
#pragma unroll
    for (int s = 16; s > 0; s >>= 1)
        p = better(p, {__shfl_xor_sync(0xffffffffu, p.key, s), __shfl_xor_sync(0xffffffffu, p.j, s)});
    return p;
}

struct long_row {
    const tn_cuda_top_k_args &a;
    const float *x;
    const bool *kept;

    // Element j if it comes after `last` in the order of results and its group is kept, otherwise a candidate
    // that is worse than every element.
    __device__ __forceinline__ candidate at(int j, candidate last) const
    {
        int n = (int)a.x.ne[3];
        if (j >= n || (a.n_groups > 1 && !kept[j / (n / a.n_groups)])) return {0, 0x7fffffff};
        uint64_t key = a.bias ? tn_key_of(value(a, x, j)) : tn_key_of(x[j]);
        if (key < last.key || (key == last.key && j > last.j)) return {key, j};
        return {0, 0x7fffffff};
    }
};

// Rows of any length. Each thread keeps the best of its elements that comes after the last result. Only the
// thread that owned the last result has to search its elements again, and the lanes of its warp do that
// together.
TN_ENTRY __launch_bounds__(TN_CUDA_TOP_K_THREADS) tn_top_k_any(const __grid_constant__ tn_cuda_top_k_args a)
{
    enum { THREADS = TN_CUDA_TOP_K_THREADS, WARPS = THREADS / TN_WARP };
    __shared__ double score[TN_CUDA_MAX_GROUPS];
    __shared__ bool kept[TN_CUDA_MAX_GROUPS];
    __shared__ candidate shared[2][WARPS];
    tn_pdl_trigger();
    tn_pdl_wait();
    int n = (int)a.x.ne[3], t = threadIdx.x, lane = t % TN_WARP, warp = t / TN_WARP;
    long_row row = {a, (const float *)tn_row32(a.x, blockIdx.x), kept};
    int32_t *y = (int32_t *)tn_row32(a.y, blockIdx.x);
    if (a.n_groups > 1) select_groups(a, row.x, score, kept);
    candidate last = {~0ull, -1}, mine = {0, 0x7fffffff};
#pragma unroll 4
    for (int j = t; j < n; j += THREADS) mine = better(mine, row.at(j, last));
    for (int i = 0; i < a.k; i++) {
        candidate best = best_of_warp(mine);
        if (lane == 0) shared[i % 2][warp] = best;
        __syncthreads();
        last = best_of_warp(shared[i % 2][lane % WARPS]);
        if (t == 0) y[i] = last.j;
        int owner = last.j % THREADS;
        if (owner / TN_WARP != warp) continue;
        best = {0, 0x7fffffff};
        for (int64_t j = owner + (int64_t)lane * THREADS; j < n; j += TN_WARP * THREADS)
            best = better(best, row.at((int)j, last));
        best = best_of_warp(best);
        if (t == owner) mine = best;
    }
}
