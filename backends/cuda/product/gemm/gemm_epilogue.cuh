// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the sums of a matrix product: scale of the row, bias, activation, residual; or gate and up.
#ifndef TN_CUDA_GEMM_EPILOGUE_CUH
#define TN_CUDA_GEMM_EPILOGUE_CUH

#include "backends/cuda/product/gemm/gemm_args.h"
#include "backends/cuda/product/epilogue.cuh"

// Where row r of x goes; negative: nowhere.
static __device__ __forceinline__ int gemm_row_to(const tn_cuda_gemm_args &a, int r)
{
    return r >= a.m ? -1 : a.row_to ? a.row_to[r] : r;
}

static __device__ __forceinline__ float gemm_row_scale(const tn_cuda_gemm_args &a, int r)
{
    return a.row_scale && r < a.m ? a.row_scale[r] : 1.0f;
}

// Scales of columns c, c + 1 of a segment, of a group's weight; 0 behind the last one.
static __device__ __forceinline__ float2 gemm_column_scale(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s, int group, int c)
{
    const float *at = s.w_scale + group * a.group_rows;
    return make_float2(c < s.n ? at[c] : 0.0f, c + 1 < s.n ? at[c + 1] : 0.0f);
}

// Sums of a warp pass through shared memory, so that memory sees long runs of a row: 16 rows of W floats, in pieces
// of 8 whose place is turned by the row, so that neither side meets in a bank.
template <int W> static __device__ __forceinline__ int gemm_staging_at(int row, int c)
{
    return row * W + (((c >> 3) ^ (row & (W / 8 - 1))) << 3) + (c & 7);
}

// Rows r .. r + 15 and columns c .. c + W - 1 of a segment from `shared`, one element a time and anything that may
// be asked for; with GLU, `shared` holds gate and then up. Not unrolled: code that is rarely needed stays short.
template <int W, bool glu> static __device__ __forceinline__ void gemm_write_any(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s,
                                                                                 const float *shared, int r, int c, int act)
{
    int lane = threadIdx.x % TN_WARP;
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < 16 * W; i += TN_WARP) {
        int row = i / W, column = i % W, to = gemm_row_to(a, r + row);
        float v = shared[gemm_staging_at<W>(row, column)];
        if (glu) v = gemm_glu(a.act, a.glu_limit, a.glu_alpha, v, shared[16 * W + gemm_staging_at<W>(row, column)]);
        column += c;
        if (to < 0 || column >= s.n) continue;
        if (s.bias) v += s.bias[column];
        if (!glu) v = gemm_act(act, v);
        if (a.residual) v += a.residual[to * a.residual_ld + column];
        if (a.writes_packed16) ((__nv_bfloat16 *)s.y)[to * s.ld + column] = __float2bfloat16_rn(v);
        else s.y[to * s.ld + column] = v;
    }
    __syncwarp();
}

// The same without activations and with vectors, where columns are all there and rows start at multiples of 16 bytes.
template <int W> static __device__ __forceinline__ void gemm_write_wide(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s, const float *shared, int r,
                                                                        int c)
{
    constexpr int lanes = W / 4, step = TN_WARP / lanes, n = 16 / step;
    int lane = threadIdx.x % TN_WARP, at = 4 * (lane % lanes), to[n];
    float4 residual[n], bias = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    c += at;
    if (s.bias) bias = make_float4(s.bias[c], s.bias[c + 1], s.bias[c + 2], s.bias[c + 3]);
#pragma unroll
    for (int i = 0; i < n; i++) to[i] = gemm_row_to(a, r + i * step + lane / lanes);
#pragma unroll
    for (int i = 0; i < n; i++) {
        residual[i] = bias;
        if (!a.residual || to[i] < 0) continue;
        float4 v = *(const float4 *)(a.residual + to[i] * a.residual_ld + c);
        residual[i] = make_float4(v.x + bias.x, v.y + bias.y, v.z + bias.z, v.w + bias.w);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < n; i++) {
        float4 v = *(const float4 *)(shared + gemm_staging_at<W>(i * step + lane / lanes, at));
        v = make_float4(v.x + residual[i].x, v.y + residual[i].y, v.z + residual[i].z, v.w + residual[i].w);
        if (to[i] >= 0) *(float4 *)(s.y + to[i] * s.ld + c) = v;
    }
    __syncwarp();
}

// Joined gate and up as bf16.
template <int W> static __device__ __forceinline__ void gemm_write_packed16(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s, const float *shared, int r,
                                                                         int c)
{
    constexpr int lanes = W / 4, step = TN_WARP / lanes, n = 16 / step;
    int lane = threadIdx.x % TN_WARP, at = 4 * (lane % lanes);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < n; i++) {
        int row = i * step + lane / lanes, to = gemm_row_to(a, r + row);
        float4 v = *(const float4 *)(shared + gemm_staging_at<W>(row, at));
        __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y), high = __floats2bfloat162_rn(v.z, v.w);
        if (to >= 0) *(uint2 *)((__nv_bfloat16 *)s.y + to * s.ld + c + at) = make_uint2(*(uint32_t *)&low, *(uint32_t *)&high);
    }
    __syncwarp();
}

template <int W, bool glu> static __device__ __forceinline__ void gemm_write_rows(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s, const float *shared, int r,
                                                                        int c)
{
    bool wide = s.wide && c + W <= s.n && (!a.residual || a.residual_wide);
    if (glu && wide && a.writes_packed16) gemm_write_packed16<W>(a, s, shared, r, c);
    else if (wide) gemm_write_wide<W>(a, s, shared, r, c);
    else gemm_write_any<W, false>(a, s, shared, r, c, TN_UNARY_NONE);
}

// Which segment the unit of columns belongs to.
static __device__ __forceinline__ int gemm_seg_of(const tn_cuda_gemm_args &a, int unit)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < TN_GEMM_MAX_SEGS; i++)
        if (i < a.n_segs && unit >= a.seg[i].first_unit) s = i;
    return s;
}

typedef struct gemm_tile {
    int m, n; // in tiles
} gemm_tile;

static __device__ __forceinline__ int gemm_tiles_m(const tn_cuda_gemm_args &a)
{
    return a.n_tiles ? *a.n_tiles : a.tiles_m;
}

// Tile t of `tiles_m` rows of tiles: down a group of rows of tiles first.
static __device__ __forceinline__ gemm_tile gemm_tile_at(const tn_cuda_gemm_args &a, int tiles_m, int t)
{
    int group = t / (a.group_m * a.tiles_n), first = group * a.group_m;
    int height = min(a.group_m, tiles_m - first), r = t - first * a.tiles_n;
    gemm_tile tile = {first + r % height, r / height};
    return tile;
}

#endif
