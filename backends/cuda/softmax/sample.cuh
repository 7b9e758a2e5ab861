// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of ops/sample.h in device code, and what a block of 1024 threads does with a row of logits:
// visiting it, scanning, sorting. Multiplications and additions are written as intrinsics, which the compiler
// does not contract.
#ifndef TN_CUDA_SAMPLE_CUH
#define TN_CUDA_SAMPLE_CUH

#include "backends/cuda/softmax/softmax_args.h"
#include "backends/cuda/rows.cuh"

enum {
    SAMPLE_WARPS = TN_CUDA_SAMPLE_THREADS / TN_WARP,
    SAMPLE_BINS = 2 * TN_CUDA_SAMPLE_THREADS,
    SAMPLE_LIST = 2 * TN_CUDA_SAMPLE_THREADS,
};
#define SAMPLE_FLT_MAX 3.402823466e38f

// A row of logits: the model's, or with edits.
struct sample_logits {
    const char *v;
    int n;
    bool aligned;
    float max;
};

struct sample_memory {
    uint32_t count[SAMPLE_BINS], low[SAMPLE_BINS], high[SAMPLE_BINS]; // of tokens, and of their weights
    uint64_t list[SAMPLE_LIST];
    uint64_t warps[SAMPLE_WARPS]; // sums
    uint64_t above, above_count, inside_count;
    int found;
    uint32_t n_list;
};

static __device__ __forceinline__ float sample_tidy(float v)
{
    v = v <= SAMPLE_FLT_MAX ? v : v > SAMPLE_FLT_MAX ? SAMPLE_FLT_MAX : -INFINITY;
    return __fadd_rn(v, 0.0f);
}

static __device__ __forceinline__ float sample_sum(double v)
{
    if (!(v > -(double)INFINITY)) return -INFINITY;
    if (v > (double)SAMPLE_FLT_MAX) return SAMPLE_FLT_MAX;
    return v < -(double)SAMPLE_FLT_MAX ? -SAMPLE_FLT_MAX : __fadd_rn((float)v, 0.0f);
}

static __device__ __forceinline__ uint32_t sample_key(float v)
{
    uint32_t bits = __float_as_uint(v);
    return bits ^ ((0u - (bits >> 31)) | 0x80000000u);
}

static __device__ __forceinline__ float sample_value(uint32_t key)
{
    return __uint_as_float(key >> 31 ? key ^ 0x80000000u : ~key);
}

static __device__ __forceinline__ float sample_exp(float x)
{
    uint32_t limit = __float_as_uint(87.0f), size = __float_as_uint(x) & 0x7fffffffu;
    float c = -__uint_as_float(size < limit ? size : limit);
    float shifted = __fadd_rn(__fmul_rn(c, 1.44269504088896341f), 12582912.0f); // 1.5 * 2^23
    float n = __fsub_rn(shifted, 12582912.0f);
    float r = __fsub_rn(__fsub_rn(c, __fmul_rn(n, 0.693359375f)), __fmul_rn(n, -2.12194440e-4f));
    float p = 1.9875691500e-4f;
    p = __fadd_rn(__fmul_rn(p, r), 1.3981999507e-3f);
    p = __fadd_rn(__fmul_rn(p, r), 8.3334519073e-3f);
    p = __fadd_rn(__fmul_rn(p, r), 4.1665795894e-2f);
    p = __fadd_rn(__fmul_rn(p, r), 1.6666665459e-1f);
    p = __fadd_rn(__fmul_rn(p, r), 5.0000001201e-1f);
    float y = __fadd_rn(__fadd_rn(__fmul_rn(p, __fmul_rn(r, r)), r), 1.0f);
    y = __fmul_rn(y, __uint_as_float((__float_as_uint(shifted) + 127) << 23));
    return size <= limit ? y : 0.0f;
}

static __device__ __forceinline__ float sample_weight(float v, float max, float temperature)
{
    float d = __fsub_rn(v, max);
    return sample_exp(temperature == 1.0f ? d : __fdiv_rn(d, temperature));
}

// A weight in units of 2^-40. The product is exact.
static __device__ __forceinline__ uint64_t sample_fixed(float weight)
{
    return __float2ull_rn(__fmul_rn(weight, (float)(1ull << TN_CUDA_SAMPLE_WEIGHT_BITS)));
}

// --- visiting a row ------------------------------------------------------------------------------------

// Elements that a warp visits: a run of the row, so that sums over warps follow the order of the ids.
static __device__ __forceinline__ int sample_run(int n)
{
    int quads = (n + SAMPLE_WARPS * 4 - 1) / (SAMPLE_WARPS * 4);
    return (quads + TN_WARP - 1) / TN_WARP * TN_WARP * 4;
}

// f(j, v) for every element above -inf, v being tidy.
template <typename F> static __device__ __forceinline__ void sample_each(const sample_logits &l, F f)
{
    enum { UNROLL = 4, STEP = 4 * TN_WARP };
    int run = sample_run(l.n), first = threadIdx.x / TN_WARP * run, last = min(first + run, l.n);
    for (int j = first + threadIdx.x % TN_WARP * 4; j < last; j += UNROLL * STEP) {
        float4 quads[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            quads[i] = tn_load_floats(l.v, 4, j + i * STEP, j + i * STEP < last ? l.n : 0, l.aligned);
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
#pragma unroll
            for (int c = 0; c < 4; c++) {
                float v = sample_tidy((&quads[i].x)[c]);
                int at = j + i * STEP + c;
                if (at < last && v > -INFINITY) f(at, v);
            }
        }
    }
}

// --- scans ---------------------------------------------------------------------------------------------

static __device__ __forceinline__ uint64_t sample_warp_sum(uint64_t x)
{
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) x += __shfl_xor_sync(0xffffffffu, x, i);
    return x;
}

static __device__ __forceinline__ uint64_t sample_warp_max(uint64_t x)
{
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) {
        uint64_t y = __shfl_xor_sync(0xffffffffu, x, i);
        x = y > x ? y : x;
    }
    return x;
}

// The sum of x over the lanes up to this one.
static __device__ __forceinline__ uint64_t sample_warp_scan(uint64_t x)
{
#pragma unroll
    for (int i = 1; i < TN_WARP; i <<= 1) {
        uint64_t y = __shfl_up_sync(0xffffffffu, x, i);
        if ((int)threadIdx.x % TN_WARP >= i) x += y;
    }
    return x;
}

// The sum of x over the threads before this one; *total over all.
static __device__ __forceinline__ uint64_t sample_scan(uint64_t x, sample_memory *m, uint64_t *total)
{
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP;
    uint64_t inclusive = sample_warp_scan(x);
    __syncthreads();
    if (lane == TN_WARP - 1) m->warps[warp] = inclusive;
    __syncthreads();
    uint64_t warps = sample_warp_scan(m->warps[lane]);
    *total = __shfl_sync(0xffffffffu, warps, TN_WARP - 1);
    uint64_t before = __shfl_sync(0xffffffffu, warps, (warp + TN_WARP - 1) % TN_WARP);
    return (warp > 0 ? before : 0) + inclusive - x;
}

// The largest x of all threads.
static __device__ __forceinline__ uint64_t sample_block_max(uint64_t x, sample_memory *m)
{
    x = sample_warp_max(x);
    __syncthreads();
    if (threadIdx.x % TN_WARP == 0) m->warps[threadIdx.x / TN_WARP] = x;
    __syncthreads();
    return sample_warp_max(m->warps[threadIdx.x % TN_WARP]);
}

// The sum of f(j, v) over the row. m->warps keeps the sums of the warps for sample_find.
template <typename F>
static __device__ __forceinline__ uint64_t sample_total(const sample_logits &l, sample_memory *m, F f)
{
    uint64_t sum = 0;
    sample_each(l, [&](int j, float v) { sum += f(j, v); });
    sum = sample_warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % TN_WARP == 0) m->warps[threadIdx.x / TN_WARP] = sum;
    __syncthreads();
    return sample_warp_sum(m->warps[threadIdx.x % TN_WARP]);
}

// The first element, in the order of the ids, up to which the sum of f exceeds `at`, which is less than the
// sum of all. m->warps holds the sums of the warps.
template <typename F>
static __device__ int sample_find(const sample_logits &l, sample_memory *m, uint64_t at, F f)
{
    uint64_t sums = sample_warp_scan(m->warps[threadIdx.x % TN_WARP]);
    int warp = __popc(__ballot_sync(0xffffffffu, sums <= at)), run = sample_run(l.n);
    uint64_t before = __shfl_sync(0xffffffffu, sums, (warp + TN_WARP - 1) % TN_WARP), total;
    if (warp > 0) at -= before;
    int end = min((warp + 1) * run, l.n);
    __syncthreads();
    if (threadIdx.x == 0) m->found = l.n - 1;
    for (int first = warp * run; first < end; first += 4 * TN_CUDA_SAMPLE_THREADS) {
        uint64_t sum = 0, parts[4];
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int j = first + threadIdx.x * 4 + c;
            float v = j < end ? sample_tidy(((const float *)l.v)[j]) : -INFINITY;
            parts[c] = v > -INFINITY ? f(j, v) : 0;
            sum += parts[c];
        }
        uint64_t start = sample_scan(sum, m, &total);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            if (start <= at && at < start + parts[c]) m->found = first + threadIdx.x * 4 + c;
            start += parts[c];
        }
        if (at < total) break;
        at -= total;
    }
    __syncthreads();
    return m->found;
}

// --- sorting -------------------------------------------------------------------------------------------

// The n numbers of m->list ascending (K. E. Batcher, Sorting networks and their applications, 1968). Behind
// them the list has the largest number.
static __device__ __forceinline__ void sample_sort(sample_memory *m, uint32_t n)
{
    uint32_t size = 2;
    while (size < n) size *= 2;
    __syncthreads();
    for (uint32_t i = n + threadIdx.x; i < SAMPLE_LIST; i += TN_CUDA_SAMPLE_THREADS) m->list[i] = ~0ull;
    __syncthreads();
    for (uint32_t run = 2; run <= size; run *= 2) {
        for (uint32_t by = run / 2; by > 0; by /= 2) {
            uint32_t i = 2 * threadIdx.x - (threadIdx.x & (by - 1));
            if (i < size) {
                uint64_t a = m->list[i], b = m->list[i + by];
                if ((a > b) == ((i & run) == 0)) {
                    m->list[i] = b;
                    m->list[i + by] = a;
                }
            }
            __syncthreads();
        }
    }
}

#endif
