// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of views and runs of four floats, for elementwise and row-wise kernels.
#ifndef TN_CUDA_ROWS_CUH
#define TN_CUDA_ROWS_CUH

#include "backends/cuda/runtime/row_split.h"
#include "backends/cuda/common.cuh"

// As tn_row, for fewer than 2^31 rows: 64-bit divisions are long, and most views have one outer dimension.
static __device__ __forceinline__ char *tn_row_near(const tn_cuda_view &v, uint32_t r)
{
    if ((v.ne[0] | v.ne[1]) == 1) return v.data + r * v.nb[2];
    uint32_t n2 = (uint32_t)v.ne[2], n1 = (uint32_t)v.ne[1];
    uint32_t q = r / n2;
    return v.data + q / n1 * v.nb[0] + q % n1 * v.nb[1] + r % n2 * v.nb[2];
}

// The row and the unit of this thread; false: there is none.
static __device__ __forceinline__ bool tn_place(const tn_cuda_split &s, int64_t n_units, uint32_t *row, int64_t *unit)
{
    if (s.shift >= 0) {
        *row = blockIdx.x * (TN_CUDA_SPLIT_THREADS >> s.shift) + (threadIdx.x >> s.shift);
        *unit = threadIdx.x & ((1u << s.shift) - 1);
        return *row < s.n_rows && *unit < n_units;
    }
    *row = blockIdx.x / s.n_chunks;
    *unit = (int64_t)(blockIdx.x - *row * s.n_chunks) * TN_CUDA_SPLIT_THREADS + threadIdx.x;
    return *unit < n_units;
}

// The same with units of four columns.
static __device__ __forceinline__ bool tn_place4(const tn_cuda_split &s, int64_t n, uint32_t *row, int64_t *j)
{
    bool here = tn_place(s, (n + 3) / 4, row, j);
    *j *= 4;
    return here;
}

// Elements j .. j + 3 of a row, zero from n on. Aligned: one access where all four exist.
static __device__ __forceinline__ float4 tn_load_floats(const char *row, int64_t nb, int64_t j, int64_t n, bool aligned)
{
    if (aligned && j + 4 <= n) return *(const float4 *)(row + 4 * j);
    float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
    const char *p = row + j * nb;
    if (j < n) v.x = *(const float *)p;
    if (j + 1 < n) v.y = *(const float *)(p + nb);
    if (j + 2 < n) v.z = *(const float *)(p + 2 * nb);
    if (j + 3 < n) v.w = *(const float *)(p + 3 * nb);
    return v;
}

static __device__ __forceinline__ void tn_store_floats(char *row, int64_t j, int64_t n, bool aligned, float4 v)
{
    float *p = (float *)row + j;
    if (aligned && j + 4 <= n) {
        *(float4 *)p = v;
        return;
    }
    if (j < n) p[0] = v.x;
    if (j + 1 < n) p[1] = v.y;
    if (j + 2 < n) p[2] = v.z;
    if (j + 3 < n) p[3] = v.w;
}

#endif
