// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of x for kernels/few_blocks.cuh: f16 of each row times a power of two, in the order of args_few.h, zeros where there is nothing.
// One block a row, a thread 16 values at a time: the squares of a norm, the largest value, then what is written. Bytes moved: 4 (rows of
// more than 16384 values: again from the caches) and 2 for each value; latency is the limit.
#include "backends/cuda/args_few.h"
#include "backends/cuda/args_gemm.h"
#include "backends/cuda/kernels/prepare.cuh"

static __device__ __forceinline__ uint32_t pair(float a, float b)
{
    __half2 h = __floats2half2_rn(a, b);
    return *(uint32_t *)&h;
}

static __device__ __forceinline__ void load16(const float *row, int k, int n, bool wide, float (&v)[16])
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
static __device__ __forceinline__ void normed16(const tn_cuda_gemm_x_args &a, const float *row, int k, bool wide, float factor, float (&v)[16])
{
    load16(row, k, a.k, wide, v);
    if (!a.norm) return;
    float g[16];
    load16(a.norm, k, a.k, (uintptr_t)a.norm % 16 == 0, g);
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] = v[i] * factor * g[i];
}

// Values k .. k + 15 of row `column` of a stage, and their sum.
static __device__ __forceinline__ void put16(char *stage, int column, int k, bool matrices, const float (&v)[16])
{
    float sum = 0.0f;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float *p = v + 8 * h, *e = v + h;
        uint4 unit = make_uint4(pair(p[0], p[2]), pair(p[1], p[3]), pair(p[4], p[6]), pair(p[5], p[7]));
        uint4 part = make_uint4(pair(e[0], e[2]), pair(e[4], e[6]), pair(e[8], e[10]), pair(e[12], e[14]));
        int at = matrices ? TN_FEW_MATRIX_UNIT(k / 16, h, column) : column * (TN_FEW_K / 8) + TN_FEW_UNIT(k / 8 + h, column);
        *(uint4 *)(stage + 16 * at) = matrices ? part : unit;
#pragma unroll
        for (int i = 0; i < 8; i++) sum += __half2float(__float2half_rn(p[i]));
    }
    sum *= 0.0625f;
    *(uint32_t *)(stage + TN_FEW_BLOCK_X + 4 * (column * (TN_FEW_K / 16) + k / 16)) = pair(sum, sum - __half2float(__float2half_rn(sum)));
}

// The power of two for a row whose largest value is `most`; values that are not finite, if there are, spoil the row where the product wants that.
static __device__ __forceinline__ float row_power(const tn_cuda_gemm_x_args &a, int r, float most, float endless, float (&room)[3][TN_WARP])
{
    float power = tn_power_of(tn_block_max(most, room[1]), 14);
    if (a.finite_rows) endless = tn_block_max(endless, room[2]);
    if (threadIdx.x == 0) a.row_scale[r] = endless == 0.0f || !a.finite_rows ? 1.0f / power : __uint_as_float(0x7fc00000u);
    return power;
}

static __device__ __forceinline__ void largest(const float (&v)[16], float &most, float &endless)
{
#pragma unroll
    for (int i = 0; i < 16; i++) {
        bool finite = fabsf(v[i]) <= 3.4028235e38f;
        most = finite ? fmaxf(most, fabsf(v[i])) : most;
        endless = finite ? endless : 1.0f;
    }
}

static __device__ __forceinline__ float norm_factor(const tn_cuda_gemm_x_args &a, float sum, float (&room)[3][TN_WARP])
{
    return (float)(1.0 / sqrt((double)tn_block_sum(sum, room[0]) / a.k + (double)a.eps));
}

// Row r from row `from` of x, or zeros; `gain` is this thread's part of the norm's weight. Each thread has all its values in registers.
static __device__ void make_row(const tn_cuda_gemm_x_args &a, int r, int from, const float (&gain)[16], float (&room)[3][TN_WARP])
{
    int n_stages = (a.k + TN_FEW_K - 1) / TN_FEW_K, column = r % TN_FEW_BLOCK_COLUMNS, k = 16 * threadIdx.x;
    char *to = (char *)a.to + (int64_t)(r / TN_FEW_BLOCK_COLUMNS) * n_stages * TN_FEW_BLOCK_STAGE;
    const float *row = from < 0 ? nullptr : (const float *)tn_row(a.x, from);
    float power = 1.0f, v[16] = {};
    if (row) {
        load16(row, k, a.k, (uintptr_t)row % 16 == 0, v);
        if (a.norm) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < 16; i++) sum += v[i] * v[i];
            float factor = norm_factor(a, sum, room);
#pragma unroll
            for (int i = 0; i < 16; i++) v[i] = v[i] * factor * gain[i];
        }
        float most = 0.0f, endless = 0.0f;
        largest(v, most, endless);
        power = row_power(a, r, most, endless, room);
    }
    if (k >= n_stages * TN_FEW_K) return;
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] *= power;
    put16(to + (int64_t)(k / TN_FEW_K) * TN_FEW_BLOCK_STAGE, column, k % TN_FEW_K, a.matrices, v);
}

// The same for rows that are longer than the block has registers for: read again for each pass.
static __device__ void make_long_row(const tn_cuda_gemm_x_args &a, int r, int from, float (&room)[3][TN_WARP])
{
    int n_stages = (a.k + TN_FEW_K - 1) / TN_FEW_K, column = r % TN_FEW_BLOCK_COLUMNS, step = 16 * blockDim.x;
    char *to = (char *)a.to + (int64_t)(r / TN_FEW_BLOCK_COLUMNS) * n_stages * TN_FEW_BLOCK_STAGE;
    const float *row = from < 0 ? nullptr : (const float *)tn_row(a.x, from);
    bool wide = (uintptr_t)row % 16 == 0;
    float factor = 1.0f, power = 1.0f, v[16];
    if (row && a.norm) {
        float sum = 0.0f;
#pragma unroll 1
        for (int k = 16 * threadIdx.x; k < a.k; k += step) {
            load16(row, k, a.k, wide, v);
#pragma unroll
            for (int i = 0; i < 16; i++) sum += v[i] * v[i];
        }
        factor = norm_factor(a, sum, room);
    }
    if (row) {
        float most = 0.0f, endless = 0.0f;
#pragma unroll 1
        for (int k = 16 * threadIdx.x; k < a.k; k += step) {
            normed16(a, row, k, wide, factor, v);
            largest(v, most, endless);
        }
        power = row_power(a, r, most, endless, room);
    }
#pragma unroll 1
    for (int k = 16 * threadIdx.x; k < n_stages * TN_FEW_K; k += step) {
#pragma unroll
        for (int i = 0; i < 16; i++) v[i] = 0.0f;
        if (row) normed16(a, row, k, wide, factor, v);
#pragma unroll
        for (int i = 0; i < 16; i++) v[i] *= power;
        put16(to + (int64_t)(k / TN_FEW_K) * TN_FEW_BLOCK_STAGE, column, k % TN_FEW_K, a.matrices, v);
    }
}

TN_ENTRY __launch_bounds__(1024) tn_few_x(const __grid_constant__ tn_cuda_gemm_x_args a)
{
    __shared__ float room[3][TN_WARP];
    bool once = (a.k + TN_FEW_K - 1) / TN_FEW_K * TN_FEW_K <= 16 * (int)blockDim.x;
    float gain[16] = {};
    if (once && a.norm) load16(a.norm, 16 * threadIdx.x, a.k, (uintptr_t)a.norm % 16 == 0, gain);
    tn_pdl_trigger();
    tn_pdl_wait();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n_zero; i += gridDim.x * blockDim.x) a.zero[i] = 0;
    int n = (a.n_tiles ? *a.n_tiles : (a.m + TN_FEW_BLOCK_COLUMNS - 1) / TN_FEW_BLOCK_COLUMNS) * TN_FEW_BLOCK_COLUMNS;
    for (int r = blockIdx.x; r < n; r += gridDim.x) {
        int from = r >= a.m ? -1 : a.row_from ? a.row_from[r] : r;
        if (once) make_row(a, r, from, gain, room);
        else make_long_row(a, r, from, room);
    }
    for (int i = blockIdx.x; a.ids && i < a.n_ids; i += gridDim.x) {
        if (a.ids[i] >= 0 && a.ids[i] < a.n_groups) continue;
        for (int64_t c = threadIdx.x; c < a.y_n; c += blockDim.x) a.y[i * a.y_n + c] = 0.0f;
    }
}
