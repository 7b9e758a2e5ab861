// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which tiles a block of gemm_blocks.cuh multiplies, and what becomes of their sums: y = act(row_scale * sum
// + bias) + residual, or y = act(gate) * up.
//
// A thread of those that multiply holds sums of one weight of the first half of the tile and of one of the
// second half, for rows of x 8 j + 2 (lane % 4) and one further: four sums for each j, quad j. Sums of whole
// tiles are written from registers. Sums of tiles that blocks share go to memory, quads of all threads side
// by side, and tn_gemm_blocks_add_* adds them in the order of the blocks, so results do not depend on which
// one was first. That launch reads 16 bytes for each part of a quad; with 128 to 356 parts of 128 KB it takes
// 6 to 30 us (H200), most of which is the rate of L2.
#ifndef TN_CUDA_GEMM_BLOCKS_SUMS_CUH
#define TN_CUDA_GEMM_BLOCKS_SUMS_CUH

#include "backends/cuda/common.cuh"
#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/product/gemm/gemm_blocks_args.h"

#ifdef TN_HOPPER
struct gemm_blocks_tile {
    int m, n;
};

// What a block multiplies: slices of tiles, TN_GEMM_BLOCK_K of k each, counted through all tiles. Blocks take
// whole tiles, gridDim.x tiles apart, or each a.share slices that follow on each other.
struct gemm_blocks_work {
    int tiles_m, per_tile, at, end, step;
};

// The slices of one tile among them.
struct gemm_blocks_part {
    int tile, k_begin, k_end;
};

// Consecutive tiles go down a group of group_m rows of tiles first, so that blocks that run together share
// operands in L2.
static __device__ __forceinline__ gemm_blocks_tile gemm_blocks_tile_at(const tn_cuda_gemm_blocks_args &a,
                                                                       const gemm_blocks_work &work, int t)
{
    int group = t / (a.group_m * a.tiles_n), first = group * a.group_m;
    int height = min(a.group_m, work.tiles_m - first), r = t - first * a.tiles_n;
    return {first + r % height, r / height};
}

static __device__ __forceinline__ int gemm_blocks_seg_of(const tn_cuda_gemm_blocks_args &a, int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < TN_GEMM_MAX_SEGS; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return s;
}

static __device__ __forceinline__ gemm_blocks_work gemm_blocks_work_of(const tn_cuda_gemm_blocks_args &a)
{
    gemm_blocks_work w;
    w.tiles_m = a.n_tiles ? *a.n_tiles : a.tiles_m, w.per_tile = a.k / TN_GEMM_BLOCK_K;
    int slices = w.tiles_m * a.tiles_n * w.per_tile, block = blockIdx.x;
    w.at = 0;
    if (a.other_tile) {
        int before = w.tiles_m * a.other_tile * w.per_tile;
        if (block < a.first_blocks) slices = before;
        else w.at = before, block -= a.first_blocks;
    }
    w.at += block * (a.share ? a.share : w.per_tile);
    w.end = a.share ? min(w.at + a.share, slices) : slices;
    w.step = a.share ? 0 : gridDim.x * w.per_tile;
    return w;
}

// The first block and the last one of those that share tile t.
static __device__ __forceinline__ int2 gemm_blocks_sharers(const tn_cuda_gemm_blocks_args &a,
                                                           const gemm_blocks_work &w, int t)
{
    int first_tile = w.tiles_m * a.other_tile, before = 0;
    if (a.other_tile && t >= first_tile) t -= first_tile, before = a.first_blocks;
    return make_int2(before + t * w.per_tile / a.share, before + ((t + 1) * w.per_tile - 1) / a.share);
}

static __device__ __forceinline__ bool gemm_blocks_next(gemm_blocks_work &w, gemm_blocks_part &part)
{
    if (w.at >= w.end) return false;
    part.tile = w.at / w.per_tile, part.k_begin = w.at % w.per_tile;
    part.k_end = min(part.k_begin + w.end - w.at, w.per_tile);
    w.at = w.step ? w.at + w.step : w.at + part.k_end - part.k_begin;
    return true;
}

// --- results -----------------------------------------------------------------------------------------

// Where the result of a gated pair goes in a row of f16 that starts at `row`: of 16 columns the even ones
// come first.
static __device__ __forceinline__ __half *gemm_packed_at(const float *row, int64_t column)
{
    return (__half *)row + (column & ~15) + (column & 15) / 2 + (column & 1) * 8;
}

// What a thread needs for four sums: columns c[0] and c[1] of the result, rows r and r + 1.
// `thread` counts those that multiply.
template <typename S> struct gemm_place {
    float *y[2];
    __half *packed; // of a gated pair that is left as f16
    const float *residual[2];
    float bias[2];
    bool inside[2];
};

template <typename S>
static __device__ __forceinline__ gemm_place<S> gemm_place_of(const tn_cuda_gemm_blocks_args &a,
                                                              gemm_blocks_tile tile, int thread)
{
    int warp = thread / TN_WARP, lane = thread % TN_WARP;
    int seg = gemm_blocks_seg_of(a, tile.n);
    const tn_cuda_gemm_blocks_seg &s = a.seg[seg];
    int c = warp * 8 + lane / 4;
    c += a.glu ? tile.n * S::half : (tile.n - s.first_tile) * S::rows;
    gemm_place<S> p;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int at = c + (a.glu ? 0 : h * S::half);
        p.inside[h] = at < s.n && !(a.glu && h == 1);
        p.y[h] = s.y + at;
        p.residual[h] = a.residual ? a.residual + at : NULL;
        p.bias[h] = s.bias && p.inside[h] ? s.bias[at] : 0.0f;
    }
    p.packed = gemm_packed_at(s.y, c);
    return p;
}

static __device__ __forceinline__ float gemm_blocks_silu(float gate, float up)
{
    return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

// Four sums of a thread become results: rows `row` and row + 1, columns of the place. `any`: any activation.
template <typename S, bool any>
static __device__ __forceinline__ void
gemm_finish(const tn_cuda_gemm_blocks_args &a, const gemm_place<S> &p, int64_t ld, const float4 &v,
            const int (&to)[2], const float (&scale)[2], const float (&power)[2], const float (&r)[4])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float low = (i ? v.y : v.x) * scale[i], high = (i ? v.w : v.z) * scale[i];
        if (a.glu) {
            low = any ? gemm_glu(a.act, a.glu_limit, a.glu_alpha, low, high) : gemm_blocks_silu(low, high);
        } else {
            low += p.bias[0], high += p.bias[1];
            if (any) low = gemm_act(a.act, low), high = gemm_act(a.act, high);
            low += r[i], high += r[2 + i];
        }
        if (to[i] >= 0 && p.inside[0] && a.y_power)
            p.packed[to[i] * ld] = __float2half_rn(low * power[i]);
        else if (to[i] >= 0 && p.inside[0])
            p.y[0][to[i] * ld] = low;
        if (to[i] >= 0 && p.inside[1]) p.y[1][to[i] * ld] = high;
    }
}

// The residual of four sums.
template <typename S>
static __device__ __forceinline__ void gemm_load_residual(const tn_cuda_gemm_blocks_args &a,
                                                          const gemm_place<S> &p, const int (&to)[2],
                                                          float (&r)[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool is = a.residual && to[i % 2] >= 0 && p.inside[i / 2];
        r[i] = is ? p.residual[i / 2][to[i % 2] * a.residual_ld] : 0.0f;
    }
}

// Scales of the rows of x of a tile, and where they go in y, negative: nowhere; or, of a gated pair that is
// left as f16, whose rows stay in their order, the powers of two for it. Each warpgroup has its own.
template <typename S> struct alignas(16) gemm_rows {
    float scale[S::n];
    union {
        int to[S::n];
        float power[S::n];
    };
};

template <typename S>
static __device__ __forceinline__ void gemm_fetch_rows(const tn_cuda_gemm_blocks_args &a, gemm_rows<S> &rows,
                                                       int first)
{
    int i = 4 * (threadIdx.x % 128), n = max(min(a.m - first - i, 4), 0);
    if (i >= S::n) return;
    int from = n > 0 ? first + i : 0;
    if (a.row_scale)
        tn_copy16_partial(rows.scale + i, a.row_scale + from, 4 * n);
    else
        *(float4 *)(rows.scale + i) = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    if (a.y_power)
        tn_copy16_partial(rows.power + i, a.y_power + from, 4 * n);
    else if (a.row_to)
        tn_copy16_partial(rows.to + i, a.row_to + from, 4 * n);
    else
        *(int4 *)(rows.to + i) = make_int4(first + i, first + i + 1, first + i + 2, first + i + 3);
    tn_copy_commit();
}

// The residual of J pairs of rows of a tile, from `row` on, as far as they are among its `exist` rows.
template <typename S, int J>
static __device__ __forceinline__ void gemm_load_rest(const tn_cuda_gemm_blocks_args &a,
                                                      const gemm_place<S> &p, const gemm_rows<S> &rows,
                                                      int row, int exist, float (&r)[J][4])
{
#pragma unroll
    for (int i = 0; i < 4 * J; i++) {
        int at = row + 8 * (i / 4) + i % 2, to = at < exist ? rows.to[at] : -1, h = i / 2 % 2;
        if (to >= 0 && p.inside[h]) r[i / 4][i % 4] = p.residual[h][to * a.residual_ld];
    }
}

// Writes the sums of a thread from registers: SiLU of a gated pair, or no activation. Eight lanes write eight
// columns of a row, a sector of 32 bytes; a gated pair may be left as f16. A few sums at a time are finished
// and the others move up: code for all of them in a row would be fetched from L2 for each tile, which takes
// longer than to run it.
template <typename S, bool glu, bool packed>
static __device__ __forceinline__ void gemm_write_sums(const tn_cuda_gemm_blocks_args &a,
                                                       gemm_blocks_tile tile, const gemm_rows<S> &rows,
                                                       float (&d)[S::n / 2])
{
    constexpr int J = S::n % 32 == 0 ? 4 : 2; // pairs of rows that are written at a time
    // The residual of the next pairs is loaded while these are written; four warpgroups have no registers for
    // it.
    constexpr bool ahead = S::groups == 2;
    gemm_place<S> p = gemm_place_of<S>(a, tile, (int)threadIdx.x - S::producer);
    int ld = (int)a.seg[gemm_blocks_seg_of(a, tile.n)].ld, row = 2 * (int)(threadIdx.x % 4);
    int exist = min(a.m - tile.m * S::n, S::n); // rows of the tile
    bool adds = !glu && a.residual;
    float r[J][4] = {}, next[J][4] = {};
    if (adds && ahead) gemm_load_rest<S, J>(a, p, rows, row, exist, next);
#pragma unroll 1
    for (; row < S::n; row += 8 * J) {
        if (adds && ahead) {
#pragma unroll
            for (int i = 0; i < 4 * J; i++) r[i / 4][i % 4] = next[i / 4][i % 4];
            gemm_load_rest<S, J>(a, p, rows, row + 8 * J, exist, next);
        } else if (adds) {
            gemm_load_rest<S, J>(a, p, rows, row, exist, r);
        }
#pragma unroll
        for (int i = 0; i < 2 * J; i++) {
            int at = row + 8 * (i / 2) + i % 2;
            int to = at >= exist ? -1 : packed ? tile.m * S::n + at : rows.to[at];
            const float *v = &d[4 * (i / 2)], *rest = r[i / 2], scale = rows.scale[at];
            float low = v[i % 2] * scale, high = v[2 + i % 2] * scale;
            if (glu)
                low = gemm_blocks_silu(low, high);
            else
                low += p.bias[0] + rest[i % 2], high += p.bias[1] + rest[2 + i % 2];
            int64_t offset = (int64_t)to * ld;
            if (packed && to >= 0 && p.inside[0]) p.packed[offset] = __float2half_rn(low * rows.power[at]);
            if (!packed && to >= 0 && p.inside[0]) p.y[0][offset] = low;
            if (!glu && to >= 0 && p.inside[1]) p.y[1][offset] = high;
        }
#pragma unroll
        for (int e = 0; e < S::n / 2 - 4 * J; e++) d[e] = d[e + 4 * J];
    }
}

// Where four sums go, number e of those of a thread, and what they need.
template <typename S> struct gemm_four {
    gemm_place<S> place;
    int64_t ld;
    int row, to[2];
    float r[4], scale[2], power[2];

    __device__ __forceinline__ void locate(const tn_cuda_gemm_blocks_args &a, gemm_blocks_tile tile, int e,
                                           int thread)
    {
        place = gemm_place_of<S>(a, tile, thread);
        ld = a.seg[gemm_blocks_seg_of(a, tile.n)].ld, row = tile.m * S::n + 8 * e + 2 * (thread % 4);
    }
    __device__ __forceinline__ void load(const tn_cuda_gemm_blocks_args &a)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            to[i] = row + i >= a.m ? -1 : a.row_to ? a.row_to[row + i] : row + i;
            scale[i] = row + i >= a.m ? 0.0f : a.row_scale ? a.row_scale[row + i] : 1.0f;
            power[i] = row + i < a.m && a.y_power ? a.y_power[row + i] : 1.0f;
        }
        gemm_load_residual(a, place, to, r);
    }
    template <bool any>
    __device__ __forceinline__ void write(const tn_cuda_gemm_blocks_args &a, const float4 &v) const
    {
        gemm_finish<S, any>(a, place, ld, v, to, scale, power, r);
    }
};

// Stores the sums of a thread, those of all threads side by side, for rows of x that there are.
template <typename S>
static __device__ __forceinline__ void gemm_store_sums(float4 *to, int rows, float (&d)[S::n / 2])
{
    to += (int)threadIdx.x - S::producer;
#pragma unroll
    for (int j = 0; j < S::n / 8; j++)
        if (8 * j < rows)
            to[j * S::consumers] = make_float4(d[4 * j], d[4 * j + 1], d[4 * j + 2], d[4 * j + 3]);
}

// The place in a.partial of the sums of a part of a tile. Along blocks and tiles both numbers rise, one at a
// time or both together, so no two parts have the same sum of them.
template <typename S>
static __device__ __forceinline__ float4 *gemm_partial(const tn_cuda_gemm_blocks_args &a, int block, int tile)
{
    return (float4 *)a.partial + (int64_t)(block + tile) * (S::rows * S::n / 4);
}

// The sums of the blocks that share a tile, added in their order. A thread adds and writes four; a block of
// GEMM_ADD_THREADS of them has a part of a tile.
enum { GEMM_ADD_THREADS = 256 };
template <typename S, bool any>
static __device__ __forceinline__ void gemm_add_parts(const tn_cuda_gemm_blocks_args &a)
{
    constexpr int sums = S::rows * S::n / 4, BATCH = 8;
    tn_pdl_trigger();
    gemm_blocks_work work = gemm_blocks_work_of(a);
    int at = blockIdx.x * GEMM_ADD_THREADS + threadIdx.x, t = at / sums, i = at % sums;
    int e = i / S::consumers, thread = i % S::consumers;
    gemm_blocks_tile tile = gemm_blocks_tile_at(a, work, t);
    if (tile.m * S::n + 8 * e >= a.m) return;
    const int2 blocks = gemm_blocks_sharers(a, work, t);
    gemm_four<S> four;
    four.locate(a, tile, e, thread);
    tn_pdl_wait();
    four.load(a);
    float4 v = {};
    for (int b0 = blocks.x; b0 <= blocks.y; b0 += BATCH) {
        float4 part[BATCH] = {};
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (b0 + b <= blocks.y) part[b] = gemm_partial<S>(a, b0 + b, t)[i];
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            v.x += part[b].x, v.y += part[b].y, v.z += part[b].z, v.w += part[b].w;
    }
    four.template write<any>(a, v);
}
#endif

#endif
