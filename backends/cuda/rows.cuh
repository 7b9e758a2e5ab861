// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of views, and accesses to four adjacent floats, for elementwise and row-wise kernels.
#ifndef TN_CUDA_ROWS_CUH
#define TN_CUDA_ROWS_CUH

#include "backends/cuda/runtime/row_split.h"
#include "backends/cuda/common.cuh"

// Like tn_row, but for fewer than 2^31 rows. 64-bit divisions take many instructions, and most views have
// only one outer dimension, which needs no division at all.
static __device__ __forceinline__ char *tn_row32(const tn_cuda_view &v, uint32_t r)
{
    if ((v.ne[0] | v.ne[1]) == 1) return v.data + r * v.nb[2];
    uint32_t n2 = (uint32_t)v.ne[2], n1 = (uint32_t)v.ne[1];
    uint32_t q = r / n2;
    return v.data + q / n1 * v.nb[0] + q % n1 * v.nb[1] + r % n2 * v.nb[2];
}

// Finds the row that this thread works on and the index of its element in the row, where a row has
// n_elements. What an element is (a column, four columns, 16 bytes) is up to the caller. Returns false if the
// thread has no element.
static __device__ __forceinline__ bool tn_split_position(const tn_cuda_split &s, int64_t n_elements,
                                                         uint32_t *row, int64_t *element)
{
    if (s.shift >= 0) {
        *row = blockIdx.x * (TN_CUDA_SPLIT_THREADS >> s.shift) + (threadIdx.x >> s.shift);
        *element = threadIdx.x & ((1u << s.shift) - 1);
        return *row < s.n_rows && *element < n_elements;
    }
    *row = blockIdx.x / s.n_chunks;
    *element = (int64_t)(blockIdx.x - *row * s.n_chunks) * TN_CUDA_SPLIT_THREADS + threadIdx.x;
    return *element < n_elements;
}

// The same for rows of n columns of which each thread has four: finds the row and the first of the four
// columns.
static __device__ __forceinline__ bool tn_split_columns4(const tn_cuda_split &s, int64_t n, uint32_t *row,
                                                         int64_t *j)
{
    bool exists = tn_split_position(s, (n + 3) / 4, row, j);
    *j *= 4;
    return exists;
}

// Elements j .. j + 3 of a row of n elements that lie nb bytes apart; elements from n on are zero. `aligned`
// promises adjacent elements and aligned rows: then four existing elements are one access of 16 bytes.
static __device__ __forceinline__ float4 tn_load_floats(const char *row, int64_t nb, int64_t j, int64_t n,
                                                        bool aligned)
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

// Stores those of elements j .. j + 3 that lie below n; they are adjacent.
static __device__ __forceinline__ void tn_store_floats(char *row, int64_t j, int64_t n, bool aligned,
                                                       float4 v)
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
