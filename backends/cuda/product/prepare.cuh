// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels share that make 16-bit rows of f32 ones.
#ifndef TN_CUDA_PREPARE_CUH
#define TN_CUDA_PREPARE_CUH

#include "backends/cuda/common.cuh"

// Values k .. k + 7 of a row of n, zeros behind it; `wide` if it starts at a multiple of 16 bytes.
static __device__ __forceinline__ void tn_load8(const float *row, int64_t k, int64_t n, bool wide, float (&v)[8])
{
    if (wide && k + 8 <= n) {
        float4 a = *(const float4 *)(row + k), b = *(const float4 *)(row + k + 4);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = k + i < n ? row[k + i] : 0.0f;
}

// The power of two that brings `most` to 2^top .. 2^(top + 1).
static __device__ __forceinline__ float tn_power_of(float most, int top)
{
    if (most == 0.0f) return 1.0f;
    int e = max((int)(__float_as_uint(most) >> 23) - 127, -112);
    return __uint_as_float((uint32_t)(127 + top - e) << 23);
}

#endif
