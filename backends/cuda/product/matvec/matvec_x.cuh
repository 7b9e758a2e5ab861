// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How GEMV kernels bring rows of x [k] to shared memory: as f32, quantised by the block itself (int8 with a
// scale and a sum for each 16 elements), or as they were stored quantised by the kernel that made them.
//
// All threads of a block share a row; a thread handles 4 f32 values, 8 values to quantise, or 16 bytes of a
// stored row at a time. Bytes: 4 k read as f32, 1.375 k stored quantised; x mostly comes from L2. The cost is
// latency at the start of the kernel: of a step of 6.5 us (4096 x 4096, Q4_0) reading x, quantising it and
// loading it into registers took 2.3 to 2.9 us (H200, kernels of 2026-11-20).
#ifndef TN_CUDA_MATVEC_X_CUH
#define TN_CUDA_MATVEC_X_CUH

#include "backends/cuda/product/matvec/matvec_dot.cuh"
#include "backends/cuda/quantise.cuh"

static __device__ __forceinline__ float4 mv_load4(const float *p, bool aligned)
{
    if (aligned) return __ldcg((const float4 *)p);
    return make_float4(__ldcg(p), __ldcg(p + 1), __ldcg(p + 2), __ldcg(p + 3));
}

// The lane's 8 values, half of a group of 16, as int8, with d and the sum of the group.
struct mv_quantised8 {
    int2 words;
    float d;
    int sum;
};

static __device__ __forceinline__ mv_quantised8 mv_quantise8(const float4 (&v)[2])
{
    uint32_t largest_bits = max(tn_max_magnitude4(v[0]), tn_max_magnitude4(v[1]));
    largest_bits = max(largest_bits, __shfl_xor_sync(0xffffffffu, largest_bits, 1));
    tn_quantise_scale s = tn_quantise_scale_of(largest_bits);
    int2 words = make_int2(tn_quantise4(v[0], s), tn_quantise4(v[1], s));
    int sum = __dp4a(words.x, 0x01010101, __dp4a(words.y, 0x01010101, 0));
    return {words, s.d, sum + __shfl_xor_sync(0xffffffffu, sum, 1)};
}

// Stores quantised elements from `at` on to a row in shared memory, in the layout of mv_x.
struct mv_store_quantised {
    char *row;
    int k;
    __device__ __forceinline__ void operator()(const float4 (&v)[2], int at, bool valid) const
    {
        mv_quantised8 r = mv_quantise8(v);
        if (!valid) return;
        *(int2 *)(row + at) = r.words;
        if (at % 16 == 0)
            ((short *)(row + TN_QUANTISED_SUM(k)))[at / 16] = (short)r.sum,
                                                        ((float *)(row + TN_QUANTISED_D(k)))[at / 16] = r.d;
    }
};

// The quantised activations of a row of k from element `at` on.
static __device__ __forceinline__ mv_x mv_x_at(const char *shared, int k, int at)
{
    return {shared + at, (const float *)(shared + TN_QUANTISED_D(k) + at / 4),
            (const short *)(shared + TN_QUANTISED_SUM(k) + at / 8)};
}

static __device__ __forceinline__ void mv_load8(float4 (&v)[2], const float *p, bool aligned, bool valid)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
        v[i] = valid ? mv_load4(p + 4 * i, aligned) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// All threads: quantises a row of x, times the weight of a norm, 8 values a lane, and passes them to `store`.
// Returns the thread's part of the sum of squares of x. The next values are loaded while the current ones are
// quantised.
template <class STORE>
static __device__ __forceinline__ float mv_quantise_row(const float *x, const float *norm, int k,
                                                        const STORE &store)
{
    bool aligned = (((uintptr_t)x | (uintptr_t)norm) & 15u) == 0;
    float squares = 0.0f;
    int step = blockDim.x * 8, at = threadIdx.x * 8;
    float4 v[2], next[2], g[2];
    mv_load8(v, x + at, aligned, at < k);
#pragma unroll 1
    for (int base = 0; base < k; base += step, at += step) {
        mv_load8(next, x + at + step, aligned, at + step < k);
        if (norm) {
            mv_load8(g, norm + at, aligned, at < k);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                squares += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
                v[i].x *= g[i].x, v[i].y *= g[i].y, v[i].z *= g[i].z, v[i].w *= g[i].w;
            }
        }
        store(v, at, at < k);
#pragma unroll
        for (int i = 0; i < 2; i++) v[i] = next[i];
    }
    return squares;
}

// All threads: copies a row that was stored quantised to shared memory. A thread has 4 loads under way, so
// that it waits for memory once.
static __device__ __forceinline__ void mv_copy_quantised_row(const char *from, int k, char *shared)
{
    enum { AHEAD = 4 };
    int n = (k + k / 4 + k / 8 + 15) / 16;
    for (int base = threadIdx.x; base < n; base += AHEAD * blockDim.x) {
        int4 v[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (base + i * blockDim.x < n) v[i] = __ldcg((const int4 *)from + base + i * blockDim.x);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (base + i * blockDim.x < n) ((int4 *)shared)[base + i * blockDim.x] = v[i];
    }
}

// A warp: the sum of squares of a row that was stored quantised.
static __device__ __forceinline__ float mv_sum_squares(const char *row, int k, int lane)
{
    const float *squares = (const float *)(row + TN_QUANTISED_SQUARES(k));
    float sum = 0.0f;
#pragma unroll 4
    for (int i = lane; i < k / 16; i += TN_WARP) sum += __ldcg(squares + i);
    return tn_warp_sum(sum);
}

// All threads: copies a row of x, times the weight of a norm, to shared memory as f32. Returns the thread's
// part of the sum of squares of x.
static __device__ __forceinline__ float mv_copy_f32_row(const float *x, const float *norm, int k,
                                                        float *shared)
{
    bool aligned = (((uintptr_t)x | (uintptr_t)norm) & 15u) == 0;
    float squares = 0.0f;
#pragma unroll 4
    for (int at = threadIdx.x * 4; at < k; at += blockDim.x * 4) {
        float4 v = mv_load4(x + at, aligned);
        if (norm) {
            float4 g = mv_load4(norm + at, aligned);
            squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
            v.x *= g.x, v.y *= g.y, v.z *= g.z, v.w *= g.w;
        }
        *(float4 *)(shared + at) = v;
    }
    return squares;
}

#endif
