// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of x for product/skinny/skinny_blocks.cuh and skinny_wgmma.cuh: f16 of each row times a power of two, in the order of skinny_args.h, zeros where there is nothing.
// One block a row, a thread 16 values at a time: the squares of a norm, the largest value, then what is written. Bytes moved: 4 (rows of
// more than 16384 values: again from the caches) and 2 for each value; latency is the limit. Blocks of the product making rows themselves were 7 us slower on an
// H200 (8B, 32 sequences: 6.3 ms a step instead of 5.3): what they need stands behind the weights that are asked for ahead.
#include "backends/cuda/product/skinny/skinny_args.h"
#include "backends/cuda/product/gemm/gemm_args.h"
#include "backends/cuda/product/prepare.cuh"

static __device__ __forceinline__ uint32_t skinny_pair(float a, float b)
{
    __half2 h = __floats2half2_rn(a, b);
    return *(uint32_t *)&h;
}

static __device__ __forceinline__ void skinny_load16(const float *row, int k, int n, bool wide, float (&v)[16])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float part[8];
        tn_load8(row, k + 8 * h, n, wide, part);
#pragma unroll
        for (int i = 0; i < 8; i++) v[8 * h + i] = part[i];
    }
}

// Values k .. k + 15 of a row, normed.
static __device__ __forceinline__ void skinny_normed16(const tn_cuda_gemm_x_args &a, const float *row, int k, bool wide, float factor, float (&v)[16])
{
    skinny_load16(row, k, a.k, wide, v);
    if (!a.norm) return;
    float g[16];
    skinny_load16(a.norm, k, a.k, (uintptr_t)a.norm % 16 == 0, g);
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] = v[i] * factor * g[i];
}

// A pair of f16: what f16 holds of a sum, and the rest.
static __device__ __forceinline__ uint32_t skinny_sum(float sum)
{
    return skinny_pair(sum, sum - __half2float(__float2half_rn(sum)));
}

// Values k .. k + 15 of row `column` of a stage, if they are `there`, and their sum. For whole warps: threads 2 i and 2 i + 1 have adjacent ones.
template <bool MATRICES> static __device__ __forceinline__ void skinny_put16(char *stage, int column, int k, bool there, const float (&v)[16])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; i++) sum += __half2float(__float2half_rn(v[i]));
    if (MATRICES) sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (!there) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float *p = v + 8 * h, *e = v + h;
        int at = MATRICES ? TN_SKINNY_MATRIX_UNIT(k / 16, h, column) : column * (TN_SKINNY_K / 8) + TN_SKINNY_UNIT(k / 8 + h, column);
        *(uint4 *)(stage + 16 * at) = MATRICES ? make_uint4(skinny_pair(e[0], e[2]), skinny_pair(e[4], e[6]), skinny_pair(e[8], e[10]), skinny_pair(e[12], e[14]))
                                               : make_uint4(skinny_pair(p[0], p[2]), skinny_pair(p[1], p[3]), skinny_pair(p[4], p[6]), skinny_pair(p[5], p[7]));
    }
    if (!MATRICES) *(uint32_t *)(stage + TN_SKINNY_BLOCK_X + 4 * (column * (TN_SKINNY_K / 16) + k / 16)) = skinny_sum(0.0625f * sum);
    else if (k % 32 == 0) *(uint32_t *)(stage + TN_SKINNY_MATRIX_SUM(k / 32, column)) = skinny_sum(0.03125f * sum);
}

// The power of two for a row whose largest value is `most`; values that are not finite, if there are, spoil the row where the product wants that.
static __device__ __forceinline__ float skinny_row_power(const tn_cuda_gemm_x_args &a, int r, float most, float endless, float (&shared)[2][TN_WARP])
{
    most = tn_block_max(a.finite_rows && endless > 0.0f ? INFINITY : most, shared[1]);
    bool spoilt = most == INFINITY;
    float power = spoilt ? 1.0f : tn_power_of_two_for(most, 14);
    if (threadIdx.x == 0) a.row_scale[r] = spoilt ? __uint_as_float(0x7fc00000u) : 1.0f / power;
    return power;
}

static __device__ __forceinline__ void skinny_largest(const float (&v)[16], float &most, float &endless)
{
#pragma unroll
    for (int i = 0; i < 16; i++) {
        bool finite = fabsf(v[i]) <= 3.4028235e38f;
        most = finite ? fmaxf(most, fabsf(v[i])) : most;
        endless = finite ? endless : 1.0f;
    }
}

static __device__ __forceinline__ float skinny_norm_factor(const tn_cuda_gemm_x_args &a, float sum, float (&shared)[2][TN_WARP])
{
    return (float)(1.0 / sqrt((double)tn_block_sum(sum, shared[0]) / a.k + (double)a.eps));
}

// Row r from row `from` of x, or zeros; `gain` is this thread's part of the norm's weight. Each thread has all its values in registers.
template <bool MATRICES>
static __device__ void skinny_make_row(const tn_cuda_gemm_x_args &a, int r, int from, const float (&gain)[16], float (&shared)[2][TN_WARP])
{
    constexpr int size = MATRICES ? TN_SKINNY_MATRIX_STAGE : TN_SKINNY_BLOCK_STAGE;
    int n_stages = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K, column = r % TN_SKINNY_BLOCK_COLUMNS, k = 16 * threadIdx.x;
    char *to = (char *)a.to + (int64_t)(r / TN_SKINNY_BLOCK_COLUMNS) * n_stages * size;
    const float *row = from < 0 ? nullptr : (const float *)tn_row(a.x, from);
    float power = 1.0f, v[16] = {};
    if (row) {
        skinny_load16(row, k, a.k, (uintptr_t)row % 16 == 0, v);
        if (a.norm) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < 16; i++) sum += v[i] * v[i];
            float factor = skinny_norm_factor(a, sum, shared);
#pragma unroll
            for (int i = 0; i < 16; i++) v[i] = v[i] * factor * gain[i];
        }
        float most = 0.0f, endless = 0.0f;
        skinny_largest(v, most, endless);
        power = skinny_row_power(a, r, most, endless, shared);
    }
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] *= power;
    skinny_put16<MATRICES>(to + (int64_t)(k / TN_SKINNY_K) * size, column, k % TN_SKINNY_K, k < n_stages * TN_SKINNY_K, v);
}

// The same for rows that are longer than the block has registers for: read again for each pass.
template <bool MATRICES> static __device__ void skinny_make_long_row(const tn_cuda_gemm_x_args &a, int r, int from, float (&shared)[2][TN_WARP])
{
    constexpr int size = MATRICES ? TN_SKINNY_MATRIX_STAGE : TN_SKINNY_BLOCK_STAGE;
    int n_stages = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K, column = r % TN_SKINNY_BLOCK_COLUMNS, step = 16 * blockDim.x;
    char *to = (char *)a.to + (int64_t)(r / TN_SKINNY_BLOCK_COLUMNS) * n_stages * size;
    const float *row = from < 0 ? nullptr : (const float *)tn_row(a.x, from);
    bool wide = (uintptr_t)row % 16 == 0;
    float factor = 1.0f, power = 1.0f, v[16];
    if (row && a.norm) {
        float sum = 0.0f;
#pragma unroll 1
        for (int k = 16 * threadIdx.x; k < a.k; k += step) {
            skinny_load16(row, k, a.k, wide, v);
#pragma unroll
            for (int i = 0; i < 16; i++) sum += v[i] * v[i];
        }
        factor = skinny_norm_factor(a, sum, shared);
    }
    if (row) {
        float most = 0.0f, endless = 0.0f;
#pragma unroll 1
        for (int k = 16 * threadIdx.x; k < a.k; k += step) {
            skinny_normed16(a, row, k, wide, factor, v);
            skinny_largest(v, most, endless);
        }
        power = skinny_row_power(a, r, most, endless, shared);
    }
#pragma unroll 1
    for (int first = 16 * (threadIdx.x & ~(TN_WARP - 1)); first < n_stages * TN_SKINNY_K; first += step) { // of the warp
        int k = first + 16 * (threadIdx.x % TN_WARP);
#pragma unroll
        for (int i = 0; i < 16; i++) v[i] = 0.0f;
        if (row) skinny_normed16(a, row, k, wide, factor, v);
#pragma unroll
        for (int i = 0; i < 16; i++) v[i] *= power;
        skinny_put16<MATRICES>(to + (int64_t)(k / TN_SKINNY_K) * size, column, k % TN_SKINNY_K, k < n_stages * TN_SKINNY_K, v);
    }
}

template <bool MATRICES> static __device__ __forceinline__ void skinny_x(const tn_cuda_gemm_x_args &a)
{
    __shared__ float shared[2][TN_WARP];
    bool once = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K * TN_SKINNY_K <= 16 * (int)blockDim.x;
    float gain[16] = {};
    if (once && a.norm) skinny_load16(a.norm, 16 * threadIdx.x, a.k, (uintptr_t)a.norm % 16 == 0, gain);
    tn_pdl_trigger();
    tn_pdl_wait();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n_zero; i += gridDim.x * blockDim.x) a.zero[i] = 0;
    int n = (a.n_tiles ? *a.n_tiles : (a.m + TN_SKINNY_BLOCK_COLUMNS - 1) / TN_SKINNY_BLOCK_COLUMNS) * TN_SKINNY_BLOCK_COLUMNS;
    for (int r = blockIdx.x; r < n; r += gridDim.x) {
        int from = r >= a.m ? -1 : a.row_from ? a.row_from[r] : r;
        if (from < 0 && threadIdx.x == 0) a.row_scale[r] = 1.0f; // read, though nothing comes of it
        if (once) skinny_make_row<MATRICES>(a, r, from, gain, shared);
        else skinny_make_long_row<MATRICES>(a, r, from, shared);
    }
    for (int i = blockIdx.x; a.ids && i < a.n_ids; i += gridDim.x) {
        if (a.ids[i] >= 0 && a.ids[i] < a.n_groups) continue;
        for (int64_t c = threadIdx.x; c < a.y_n; c += blockDim.x) a.y[i * a.y_n + c] = 0.0f;
    }
}

TN_ENTRY __launch_bounds__(1024) tn_skinny_x(const __grid_constant__ tn_cuda_gemm_x_args a)
{
    skinny_x<false>(a);
}

// In the order for wgmma.
TN_ENTRY __launch_bounds__(1024) tn_skinny_x_matrices(const __grid_constant__ tn_cuda_gemm_x_args a)
{
    skinny_x<true>(a);
}
