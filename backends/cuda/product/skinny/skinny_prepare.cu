// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of x for skinny_blocks.cuh and skinny_stream.cuh: each row as f16 times a power of two, through an
// rms_norm if the product has one, in the layout of skinny_args.h or skinny_stream_args.h, with zeros where
// there is nothing.
//
// to[tile of 32 rows][stage of 256 k] from x [m, k] f32. One block makes a row, a thread 16 values of it: the
// squares of a norm, the largest value, then what is written. Bytes for each value: 4 read and 2 written;
// rows of more than 16384 values are read again, from the caches. The limit is latency. A launch of its own
// pays off: blocks of the product that made their rows themselves were 7 us slower (8B, 32 sequences, H200:
// 6.3 ms a step instead of 5.3), because their loads of x wait behind the weights that are requested ahead.
#include "backends/cuda/product/skinny/skinny_stream_args.h"
#include "backends/cuda/product/gemm/gemm_args.h"
#include "backends/cuda/product/prepare.cuh"

enum { FOR_BLOCKS, FOR_STREAM }; // the layout of x

static __device__ __forceinline__ uint32_t skinny_pair(float a, float b)
{
    __half2 h = __floats2half2_rn(a, b);
    return *(uint32_t *)&h;
}

static __device__ __forceinline__ void skinny_load16(const float *row, int k, int n, bool wide,
                                                     float (&v)[16])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float part[8];
        tn_load8(row, k + 8 * h, n, wide, part);
#pragma unroll
        for (int i = 0; i < 8; i++) v[8 * h + i] = part[i];
    }
}

// Values k to k + 15 of a row after its norm.
static __device__ __forceinline__ void skinny_normed16(const tn_cuda_gemm_x_args &a, const float *row, int k,
                                                       bool wide, float factor, float (&v)[16])
{
    skinny_load16(row, k, a.k, wide, v);
    if (!a.norm) return;
    float g[16];
    skinny_load16(a.norm, k, a.k, (uintptr_t)a.norm % 16 == 0, g);
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] = v[i] * factor * g[i];
}

// A sum as a pair of f16: its nearest f16, and the rest.
static __device__ __forceinline__ uint32_t skinny_sum(float sum)
{
    return skinny_pair(sum, sum - __half2float(__float2half_rn(sum)));
}

// Stores values k to k + 15 of row `column` of a stage, if they are `valid`, and their sum. For whole warps:
// threads 2 i and 2 i + 1 have neighbouring values.
template <int LAYOUT>
static __device__ __forceinline__ void skinny_store16(char *stage, int columns, int column, int k, bool valid,
                                                      const float (&v)[16])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; i++) sum += __half2float(__float2half_rn(v[i]));
    if (LAYOUT == FOR_STREAM) sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (!valid) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float *p = v + 8 * h, *e = v + h;
        int at = LAYOUT == FOR_STREAM ? TN_SKINNY_STREAM_PIECE(k / 16, h, column, columns)
                                      : column * (TN_SKINNY_K / 8) + TN_SKINNY_PIECE(k / 8 + h, column);
        *(uint4 *)(stage + 16 * at) = LAYOUT == FOR_STREAM
                                          ? make_uint4(skinny_pair(e[0], e[2]), skinny_pair(e[4], e[6]),
                                                       skinny_pair(e[8], e[10]), skinny_pair(e[12], e[14]))
                                          : make_uint4(skinny_pair(p[0], p[2]), skinny_pair(p[1], p[3]),
                                                       skinny_pair(p[4], p[6]), skinny_pair(p[5], p[7]));
    }
    if (LAYOUT == FOR_BLOCKS)
        *(uint32_t *)(stage + TN_SKINNY_BLOCK_X + 4 * (column * (TN_SKINNY_K / 16) + k / 16)) =
            skinny_sum(0.0625f * sum);
    else if (k % 32 == 0)
        *(uint32_t *)(stage + TN_SKINNY_STREAM_SUM(k / 32, column, columns)) = skinny_sum(0.03125f * sum);
}

// The power of two for a row whose largest finite value is `largest`. If the row has values that are not
// finite and the product requests it (finite_rows), the scale is NaN, so that all results of the row are NaN.
static __device__ __forceinline__ float skinny_row_power(const tn_cuda_gemm_x_args &a, int r, float largest,
                                                         float has_nonfinite, float (&shared)[2][TN_WARP])
{
    largest = tn_block_max(a.finite_rows && has_nonfinite > 0.0f ? INFINITY : largest, shared[1]);
    bool poisoned = largest == INFINITY;
    float power = poisoned ? 1.0f : tn_power_of_two_for(largest, 14);
    if (threadIdx.x == 0) a.row_scale[r] = poisoned ? __uint_as_float(0x7fc00000u) : 1.0f / power;
    return power;
}

static __device__ __forceinline__ void skinny_update_largest(const float (&v)[16], float &largest,
                                                             float &has_nonfinite)
{
#pragma unroll
    for (int i = 0; i < 16; i++) {
        bool finite = fabsf(v[i]) <= 3.4028235e38f;
        largest = finite ? fmaxf(largest, fabsf(v[i])) : largest;
        has_nonfinite = finite ? has_nonfinite : 1.0f;
    }
}

// 1 / sqrt(sum / k + eps), rounded once: the approximation of f32 with one step of Newton's method in f64. A
// division and a square root of f64 would take as long as the loads of a row.
static __device__ __forceinline__ float skinny_norm_factor(const tn_cuda_gemm_x_args &a, double inverse_k,
                                                           float sum, float (&shared)[2][TN_WARP])
{
    double v = (double)tn_block_sum(sum, shared[0]) * inverse_k + (double)a.eps;
    if (!(v > 1e-30 && v < 1e30)) return (float)(1.0 / sqrt(v)); // f32 may not hold it, or its inverse
    double r = (double)rsqrtf((float)v);
    return (float)(r * (1.5 - 0.5 * v * r * r));
}

// Rows of a tile, and bytes of a stage of them.
template <int LAYOUT> static __device__ __forceinline__ int skinny_columns(const tn_cuda_gemm_x_args &a)
{
    return LAYOUT == FOR_STREAM ? a.tile_rows : TN_SKINNY_BLOCK_COLUMNS;
}

template <int LAYOUT> static __device__ __forceinline__ int skinny_stage_size(int columns)
{
    return LAYOUT == FOR_STREAM ? TN_SKINNY_STREAM_STAGE(columns) : (int)TN_SKINNY_BLOCK_STAGE;
}

// Makes row r from a row of x, or zeros if there is none; `norm_weight` is this thread's part of the norm's
// weight. Each thread keeps its values in registers, so the row is read once.
template <int LAYOUT>
static __device__ void skinny_make_row(const tn_cuda_gemm_x_args &a, int r, const float *row,
                                       double inverse_k, const float (&norm_weight)[16],
                                       float (&shared)[2][TN_WARP])
{
    int columns = skinny_columns<LAYOUT>(a), size = skinny_stage_size<LAYOUT>(columns),
        n_stages = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K, column = r % columns, k = 16 * threadIdx.x;
    char *to = (char *)a.to + (int64_t)(r / columns) * n_stages * size;
    float power = 1.0f, v[16] = {};
    if (row) {
        skinny_load16(row, k, a.k, (uintptr_t)row % 16 == 0, v);
        if (a.norm) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < 16; i++) sum += v[i] * v[i];
            float factor = skinny_norm_factor(a, inverse_k, sum, shared);
#pragma unroll
            for (int i = 0; i < 16; i++) v[i] = v[i] * factor * norm_weight[i];
        }
        float largest = 0.0f, has_nonfinite = 0.0f;
        skinny_update_largest(v, largest, has_nonfinite);
        power = skinny_row_power(a, r, largest, has_nonfinite, shared);
    }
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] *= power;
    skinny_store16<LAYOUT>(to + (int64_t)(k / TN_SKINNY_K) * size, columns, column, k % TN_SKINNY_K,
                           k < n_stages * TN_SKINNY_K, v);
}

// The same for rows that are longer than the registers of the block: they are read again for each pass.
template <int LAYOUT>
static __device__ void skinny_make_long_row(const tn_cuda_gemm_x_args &a, int r, const float *row,
                                            double inverse_k, float (&shared)[2][TN_WARP])
{
    int columns = skinny_columns<LAYOUT>(a), size = skinny_stage_size<LAYOUT>(columns),
        n_stages = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K, column = r % columns, step = 16 * blockDim.x;
    char *to = (char *)a.to + (int64_t)(r / columns) * n_stages * size;
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
        factor = skinny_norm_factor(a, inverse_k, sum, shared);
    }
    if (row) {
        float largest = 0.0f, has_nonfinite = 0.0f;
#pragma unroll 1
        for (int k = 16 * threadIdx.x; k < a.k; k += step) {
            skinny_normed16(a, row, k, wide, factor, v);
            skinny_update_largest(v, largest, has_nonfinite);
        }
        power = skinny_row_power(a, r, largest, has_nonfinite, shared);
    }
#pragma unroll 1
    // first values of the warp
    for (int first = 16 * (threadIdx.x & ~(TN_WARP - 1)); first < n_stages * TN_SKINNY_K; first += step) {
        int k = first + 16 * (threadIdx.x % TN_WARP);
#pragma unroll
        for (int i = 0; i < 16; i++) v[i] = 0.0f;
        if (row) skinny_normed16(a, row, k, wide, factor, v);
#pragma unroll
        for (int i = 0; i < 16; i++) v[i] *= power;
        skinny_store16<LAYOUT>(to + (int64_t)(k / TN_SKINNY_K) * size, columns, column, k % TN_SKINNY_K,
                               k < n_stages * TN_SKINNY_K, v);
    }
}

template <int LAYOUT> static __device__ __forceinline__ void skinny_x(const tn_cuda_gemm_x_args &a)
{
    __shared__ float shared[2][TN_WARP];
    bool once = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K * TN_SKINNY_K <= 16 * (int)blockDim.x;
    float norm_weight[16] = {};
    if (once && a.norm)
        skinny_load16(a.norm, 16 * threadIdx.x, a.k, (uintptr_t)a.norm % 16 == 0, norm_weight);
    // Most blocks make one row. Where it lies takes divisions of 64 bits, so that is computed before the
    // wait.
    const float *first = nullptr;
    if (!a.row_from && (int)blockIdx.x < a.m) first = (const float *)tn_row(a.x, blockIdx.x);
    double inverse_k = 1.0 / a.k;
    tn_pdl_trigger();
    tn_pdl_wait();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n_zero; i += gridDim.x * blockDim.x)
        a.zero[i] = 0;
    int columns = skinny_columns<LAYOUT>(a),
        n = (a.n_tiles ? *a.n_tiles : (a.m + columns - 1) / columns) * columns;
    for (int r = blockIdx.x; r < n; r += gridDim.x) {
        int from = r >= a.m ? -1 : a.row_from ? a.row_from[r] : r;
        // the product reads it, but its row goes nowhere
        if (from < 0 && threadIdx.x == 0) a.row_scale[r] = 1.0f;
        const float *row = from < 0                        ? nullptr
                           : first && r == (int)blockIdx.x ? first
                                                           : (const float *)tn_row(a.x, from);
        if (once)
            skinny_make_row<LAYOUT>(a, r, row, inverse_k, norm_weight, shared);
        else
            skinny_make_long_row<LAYOUT>(a, r, row, inverse_k, shared);
    }
    for (int i = blockIdx.x; a.ids && i < a.n_ids; i += gridDim.x) {
        if (a.ids[i] >= 0 && a.ids[i] < a.n_groups) continue;
        for (int64_t c = threadIdx.x; c < a.y_n; c += blockDim.x) a.y[i * a.y_n + c] = 0.0f;
    }
}

TN_ENTRY __launch_bounds__(1024) tn_skinny_x(const __grid_constant__ tn_cuda_gemm_x_args a)
{
    skinny_x<FOR_BLOCKS>(a);
}

// In that of skinny_stream.cuh: all rows in one tile of a.tile_rows.
TN_ENTRY __launch_bounds__(1024) tn_skinny_x_stream(const __grid_constant__ tn_cuda_gemm_x_args a)
{
    skinny_x<FOR_STREAM>(a);
}
