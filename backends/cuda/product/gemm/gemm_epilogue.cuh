// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the sums of a matrix product: y = act(row_scale * sum + bias) + residual, or y = act(gate)
// * up.
//
// Each warp passes its sums through 16 rows of shared memory and writes long runs of rows of y [m, n];
// weights that share x are segments of the result, counted in 64-column tiles. Bytes: 4 for an element of y
// (2 if it is written as bf16), 4 more for the residual; a few operations for each.
//
// Why through shared memory, and why there are three writers: sums written from registers, with activations
// and divisions for strides inlined in the unrolled loop, took 31 us for each 128 x 256 tile, as much as half
// the main loop, because the code was too long for the instruction cache; predicted were 4 us. With sums
// staged in shared memory and a loop of its own for rare activations, 4096 x 4096 x 4096 went from 294 to 212
// us (H200, 2026-11-20).
#ifndef TN_CUDA_GEMM_EPILOGUE_CUH
#define TN_CUDA_GEMM_EPILOGUE_CUH

#include "backends/cuda/product/gemm/gemm_args.h"
#include "backends/cuda/product/epilogue.cuh"

// The row of y that row r of x belongs to; negative: none.
static __device__ __forceinline__ int gemm_row_to(const tn_cuda_gemm_args &a, int r)
{
    return r >= a.m ? -1 : a.row_to ? a.row_to[r] : r;
}

static __device__ __forceinline__ float gemm_row_scale(const tn_cuda_gemm_args &a, int r)
{
    return a.row_scale && r < a.m ? a.row_scale[r] : 1.0f;
}

// Scales of columns c and c + 1 of a segment, from the weight of a group; 0 behind the last column.
static __device__ __forceinline__ float2 gemm_column_scale(const tn_cuda_gemm_args &a,
                                                           const tn_cuda_gemm_seg &s, int group, int c)
{
    const float *at = s.w_scale + group * a.group_rows;
    return make_float2(c < s.n ? at[c] : 0.0f, c + 1 < s.n ? at[c + 1] : 0.0f);
}

// Where element (row, c) of the sums of a warp lies in shared memory. A warp stages 16 rows of W floats
// there, so that its stores to global memory are long runs of a row. Runs of 8 floats are permuted by the row
// (exclusive or), so that neither writing nor reading has bank conflicts.
template <int W> static __device__ __forceinline__ int gemm_staging_at(int row, int c)
{
    return row * W + (((c >> 3) ^ (row & (W / 8 - 1))) << 3) + (c & 7);
}

// Writes rows r to r + 15 and columns c to c + W - 1 of a segment from `shared`, one element at a time, with
// any option that may be requested; `w_scale`, if not NULL, scales columns. With GLU, `shared` holds gate and
// then up. The loop is not unrolled, so that rarely needed code stays short.
template <int W, bool glu>
static __device__ __forceinline__ void gemm_write_any(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s,
                                                      const float *w_scale, const float *shared, int r, int c,
                                                      int act)
{
    int lane = threadIdx.x % TN_WARP;
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < 16 * W; i += TN_WARP) {
        int row = i / W, column = i % W, to = gemm_row_to(a, r + row);
        float v = shared[gemm_staging_at<W>(row, column)];
        if (glu)
            v = gemm_glu(a.act, a.glu_limit, a.glu_alpha, v,
                         shared[16 * W + gemm_staging_at<W>(row, column)]);
        column += c;
        if (to < 0 || column >= s.n) continue;
        if (w_scale) v *= w_scale[column];
        if (s.bias) v += s.bias[column];
        if (!glu) v = gemm_act(act, v);
        if (a.residual) v += a.residual[to * a.residual_ld + column];
        if (a.writes_packed16) ((__nv_bfloat16 *)s.y)[to * s.ld + column] = __float2bfloat16_rn(v);
        else s.y[to * s.ld + column] = v;
    }
    __syncwarp();
}

// The same without activations and with vectors of four, for columns that all exist and rows that start at
// multiples of 16 bytes.
template <int W>
static __device__ __forceinline__ void gemm_write_wide(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s,
                                                       const float *w_scale, const float *shared, int r,
                                                       int c)
{
    constexpr int lanes = W / 4, step = TN_WARP / lanes, n = 16 / step;
    int lane = threadIdx.x % TN_WARP, at = 4 * (lane % lanes), to[n];
    float4 residual[n], bias = make_float4(0.0f, 0.0f, 0.0f, 0.0f),
                        scale = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    c += at;
    if (w_scale) scale = make_float4(w_scale[c], w_scale[c + 1], w_scale[c + 2], w_scale[c + 3]);
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
        if (w_scale) v = make_float4(v.x * scale.x, v.y * scale.y, v.z * scale.z, v.w * scale.w);
        v = make_float4(v.x + residual[i].x, v.y + residual[i].y, v.z + residual[i].z, v.w + residual[i].w);
        if (to[i] >= 0) *(float4 *)(s.y + to[i] * s.ld + c) = v;
    }
    __syncwarp();
}

// Writes the joined gate and up as bf16.
template <int W>
static __device__ __forceinline__ void
gemm_write_packed16(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s, const float *shared, int r, int c)
{
    constexpr int lanes = W / 4, step = TN_WARP / lanes, n = 16 / step;
    int lane = threadIdx.x % TN_WARP, at = 4 * (lane % lanes);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < n; i++) {
        int row = i * step + lane / lanes, to = gemm_row_to(a, r + row);
        float4 v = *(const float4 *)(shared + gemm_staging_at<W>(row, at));
        __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y), high = __floats2bfloat162_rn(v.z, v.w);
        if (to >= 0)
            *(uint2 *)((__nv_bfloat16 *)s.y + to * s.ld + c + at) =
                make_uint2(*(uint32_t *)&low, *(uint32_t *)&high);
    }
    __syncwarp();
}

template <int W, bool glu>
static __device__ __forceinline__ void gemm_write_rows(const tn_cuda_gemm_args &a, const tn_cuda_gemm_seg &s,
                                                       const float *w_scale, const float *shared, int r,
                                                       int c)
{
    bool wide = s.wide && c + W <= s.n && (!a.residual || a.residual_wide);
    if (glu && wide && a.writes_packed16) gemm_write_packed16<W>(a, s, shared, r, c);
    else if (wide) gemm_write_wide<W>(a, s, w_scale, shared, r, c);
    else gemm_write_any<W, false>(a, s, w_scale, shared, r, c, TN_UNARY_NONE);
}

// The segment that a 64-column tile of the result belongs to.
static __device__ __forceinline__ int gemm_seg_of(const tn_cuda_gemm_args &a, int tile64)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < TN_GEMM_MAX_SEGS; i++)
        if (i < a.n_segs && tile64 >= a.seg[i].first_tile64) s = i;
    return s;
}

typedef struct gemm_tile {
    int m, n; // row and column of the tile
} gemm_tile;

static __device__ __forceinline__ int gemm_tiles_m(const tn_cuda_gemm_args &a)
{
    return a.n_tiles ? *a.n_tiles : a.tiles_m;
}

// Tile t of `tiles_m` rows of tiles. Consecutive tiles go down a group of group_m rows of tiles first, so
// that blocks that run together share operands in L2.
static __device__ __forceinline__ gemm_tile gemm_tile_at(const tn_cuda_gemm_args &a, int tiles_m, int t)
{
    int group = t / (a.group_m * a.tiles_n), first = group * a.group_m;
    int height = min(a.group_m, tiles_m - first), r = t - first * a.tiles_n;
    gemm_tile tile = {first + r % height, r / height};
    return tile;
}

#endif
