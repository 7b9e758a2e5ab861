// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// argmax: the index of the first largest value of each row of x [rows, n] f32. argmax_logprob: also its log
// probability, -log sum_j exp(x_j - max x). NaN is skipped.
//
// A block has a part of 4096 elements of a row, 16 in the registers of each thread. The block that ends last
// merges the parts of its row; it knows that it is the last by a counter of the row, which it sets back to
// zero. The largest value itself is left out of the sums and added in double precision at the end, which
// keeps the digits of probabilities near one.
//
// Bytes moved: 4 rows n. Limit: latency with one row. NVIDIA H200, 2026-11-21, 151936 values: argmax
// takes 3.4 us for one row and 9.3 us for 32 rows; argmax_logprob takes 5.5 and 15.4 us.
#include "backends/cuda/softmax/softmax_args.h"
#include "backends/cuda/rows.cuh"

enum {
    THREADS = TN_CUDA_ARGMAX_THREADS,
    VECTORS = TN_CUDA_ARGMAX_PART / TN_CUDA_ARGMAX_THREADS / 4,
    NONE = 0x7fffffff
};

static __device__ uint32_t tickets[TN_CUDA_ARGMAX_ROWS];

// A value of a row and its index; NONE if there is no value above -inf.
struct candidate {
    float value;
    int index;
};

// The larger of two candidates; of equal ones the one with the lower index.
static __device__ __forceinline__ candidate better(candidate a, candidate b)
{
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

// Every thread gets the best candidate of the block. The first step reduces each warp, the second the results
// of the warps.
static __device__ __forceinline__ candidate best_of_block(candidate b, candidate *shared)
{
#pragma unroll
    for (int step = 0; step < 2; step++) {
#pragma unroll
        for (int i = 16; i > 0; i >>= 1)
            b = better(b,
                       {__shfl_xor_sync(0xffffffffu, b.value, i), __shfl_xor_sync(0xffffffffu, b.index, i)});
        if (step > 0) break;
        __syncthreads();
        if (threadIdx.x % TN_WARP == 0) shared[threadIdx.x / TN_WARP] = b;
        __syncthreads();
        b = shared[threadIdx.x % (THREADS / TN_WARP)];
    }
    return b;
}

// exp(v - max), which is 1 where both are the same infinity.
static __device__ __forceinline__ float relative_exp(float v, float max)
{
    return v == max ? 1.0f : __expf(v - max);
}

// Stores the result of a row; `sum` is the sum of exp(x - max) over all values but the best. In a row without
// a value above -inf `sum` is the number of its values of -inf, so that they share the probability.
template <bool LOG>
static __device__ __forceinline__ void store(const tn_cuda_argmax_args &a, uint32_t row, candidate b,
                                             float sum)
{
    if (threadIdx.x != 0) return;
    a.best[row] = b.index == NONE ? 0 : b.index;
    if (!LOG) return;
    float first = *(const float *)tn_row32(a.x, row);
    if (b.index != NONE) a.logprob[row] = (float)-log(1.0 + (double)sum);
    else a.logprob[row] = sum > 0.0f && first != first ? first : -logf(sum);
}

// The best candidate of one part of a row, and the sum of exp(x - max) over the other values of the part.
template <bool LOG>
static __device__ __forceinline__ candidate best_of_part(const tn_cuda_argmax_args &a, uint32_t row,
                                                         uint32_t part, candidate *shared, float *sum)
{
    int64_t n = a.x.ne[3], first = (int64_t)part * TN_CUDA_ARGMAX_PART + threadIdx.x * 4;
    const char *x = tn_row32(a.x, row);
    candidate b = {-INFINITY, NONE};
    float4 v[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        v[i] = tn_load_floats(x, a.x.nb[3], first + i * 4 * THREADS, n, a.aligned);
#pragma unroll
    for (int i = 0; i < 4 * VECTORS; i++) {
        int64_t j = first + i / 4 * 4 * THREADS + i % 4;
        float value = (&v[i / 4].x)[i % 4];
        if (j < n && value > b.value) b = {value, (int)j};
    }
    b = best_of_block(b, shared);
    if (!LOG) return b;
    float s = 0.0f;
#pragma unroll
    for (int i = 0; i < 4 * VECTORS; i++) {
        int64_t j = first + i / 4 * 4 * THREADS + i % 4;
        float value = (&v[i / 4].x)[i % 4];
        if (j < n && j != b.index && value == value) s += relative_exp(value, b.value);
    }
    *sum = tn_block_sum(s, (float *)shared);
    return b;
}

// What a block does: its part of a row, and the merge of the row if the block is the last of it to end.
template <bool LOG> static __device__ __forceinline__ void argmax_part(const tn_cuda_argmax_args &a)
{
    __shared__ candidate shared[TN_WARP];
    __shared__ bool last;
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t local = blockIdx.x / a.n_parts, part = blockIdx.x % a.n_parts, row = a.first_row + local;
    float sum = 0.0f;
    candidate b = best_of_part<LOG>(a, row, part, shared, &sum);
    if (a.n_parts == 1) {
        store<LOG>(a, row, b, sum);
        return;
    }
    tn_cuda_argmax_part *parts = a.parts + (int64_t)local * a.n_parts;
    if (threadIdx.x == 0) {
        parts[part] = {b.value, sum, b.index, 0};
        __threadfence();
        last = atomicInc(&tickets[local], a.n_parts - 1) == a.n_parts - 1; // wraps to 0
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    b = {-INFINITY, NONE};
    for (uint32_t i = threadIdx.x; i < a.n_parts; i += THREADS)
        b = better(b, {__ldcg(&parts[i].max), __ldcg(&parts[i].index)});
    b = best_of_block(b, shared);
    sum = 0.0f;
    for (uint32_t i = threadIdx.x; LOG && i < a.n_parts; i += THREADS) {
        int index = __ldcg(&parts[i].index);
        float others = __ldcg(&parts[i].sum) + (index != NONE && index != b.index ? 1.0f : 0.0f);
        sum += others * relative_exp(__ldcg(&parts[i].max), b.value);
    }
    if (LOG) sum = tn_block_sum(sum, (float *)shared);
    store<LOG>(a, row, b, sum);
}

TN_ENTRY __launch_bounds__(THREADS) tn_argmax(const __grid_constant__ tn_cuda_argmax_args a)
{
    argmax_part<false>(a);
}

TN_ENTRY __launch_bounds__(THREADS) tn_argmax_logprob(const __grid_constant__ tn_cuda_argmax_args a)
{
    argmax_part<true>(a);
}
