// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a warp does in decode attention with one tile of 16 keys after the other. The tiles come as
// operands of mma.m16n8k16 (attention_tile.cuh): S^T[16 keys, 8 rows] = K Q^T, online softmax per column,
// O^T[Dv, 8 rows] += V^T P^T, where a row is a (token, head) pair. Q is split into two 16-bit parts, so that
// the matrix products are as exact as those of f32; the weights P are one f16, or two bf16 parts.
//
// q8_0 and q4_0 are converted to integers in f16 in registers, right before the product that needs them.
// Converting the keys of the next tile after the matrix products instead made q8_0 2 % slower (NVIDIA H200,
// 2026-11-20).
#ifndef TN_CUDA_ATTENTION_WARP_CUH
#define TN_CUDA_ATTENTION_WARP_CUH

#include "backends/cuda/attention/attention_tile.cuh"
#include "backends/cuda/product/skinny/skinny_stream_args.h"
#include "backends/cuda/quantise.cuh"

enum { KEYS = 16 }; // of a tile
// Weights are scaled to at most 2^WEIGHT_SHIFT, so that small ones keep their bits in f16, also times a scale
// of q8_0.
#define WEIGHT_SHIFT 6.0f

// What a block works on.
struct part {
    int seq, kv_head, group;
    int first_token, n_rows; // of the sequence; rows are (token, head of the group) pairs
    int kv_len;
    int split, n_splits; // number of this split, and of splits that have tiles
    int tile, end;       // tiles [tile, end) of this split
    int first_pages;     // one of the sequence's first pages in each lane, loaded together with the lengths
};

// A column of S^T, which is one row of Q: the keys [lo, hi) that it sees, its position and its slope.
struct column {
    int lo, hi, position;
    float slope;
};

static __device__ __forceinline__ column find_column(const tn_cuda_attention_args &a, const part &p, int row)
{
    column c = {0, 0, 0, 0.0f};
    if (row >= p.n_rows) return c;
    c.position = p.kv_len - p.n_rows / p.group + row / p.group;
    c.slope = tn_attention_slope(a, p.kv_head * p.group + row % p.group);
    tn_attention_range(a, c.position, p.kv_len, &c.lo, &c.hi);
    return c;
}

// --- a warp's tiles ------------------------------------------------------------------------------------

// Q as operand B, [tile of 8 rows][group of 32 elements][lane] with 8 elements each, as upper and lower part.
template <int DK, int NT> struct query_storage {
    uint4 hi[NT][DK / 32][TN_WARP], lo[NT][DK / 32][TN_WARP];
};

// What a warp keeps in registers. With lane l = 4 g + c:
template <int TYPE, int DK, int DV, int NT> struct warp_state {
    tn_key_part<TYPE, DK> key[2];     // rows g, g + 8
    tn_value_part<TYPE, DV> value[4]; // keys 2c, 2c + 1, 2c + 8, 2c + 9
    float o[DV / 16][NT][4];
    float max[NT][2], sum[NT][2]; // of columns 2c, 2c + 1; max times log2(e); sums of this lane's keys
};

template <int TYPE, int DK, int DV, int NT>
static __device__ __forceinline__ void load_keys(const tn_cuda_attention_args &a,
                                                 warp_state<TYPE, DK, DV, NT> &w, const char *row0)
{
    int lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
    w.key[0].load(row0 + g * a.k.row_size, c, a.k.dim);
    w.key[1].load(row0 + (g + 8) * a.k.row_size, c, a.k.dim);
}

// Keys from `end` on do not exist. Their memory may hold NaN, which even a weight of 0 would not remove, so
// they are cleared.
template <int TYPE, int DK, int DV, int NT>
static __device__ __forceinline__ void load_values(const tn_cuda_attention_args &a,
                                                   warp_state<TYPE, DK, DV, NT> &w, const char *row0, int end)
{
    int lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int j = 2 * c + i % 2 + i / 2 * 8;
        if (j < end) w.value[i].load(row0 + j * a.v.row_size, g, a.v.dim);
        else w.value[i].clear();
    }
}

template <int TYPE, int DK, int DV, int NT>
static __device__ __forceinline__ void multiply_keys(const warp_state<TYPE, DK, DV, NT> &w,
                                                     const query_storage<DK, NT> &shared, float (&s)[NT][4])
{
    constexpr bool BF16 = tn_cache_traits<TYPE>::BF16;
    int lane = threadIdx.x % TN_WARP;
    const uint32_t *k0 = w.key[0].w, *k1 = w.key[1].w;
#pragma unroll
    for (int nt = 0; nt < NT; nt++) {
        float low[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int e = 0; e < 4; e++) s[nt][e] = 0.0f;
#pragma unroll
        for (int i = 0; i < DK / 32; i++) {
            uint4 hi = shared.hi[nt][i][lane], lo = shared.lo[nt][i][lane];
            tn_mma_16816<BF16>(s[nt], k0[4 * i], k1[4 * i], k0[4 * i + 1], k1[4 * i + 1], hi.x, hi.y);
            tn_mma_16816<BF16>(low, k0[4 * i], k1[4 * i], k0[4 * i + 1], k1[4 * i + 1], lo.x, lo.y);
            tn_mma_16816<BF16>(s[nt], k0[4 * i + 2], k1[4 * i + 2], k0[4 * i + 3], k1[4 * i + 3], hi.z, hi.w);
            tn_mma_16816<BF16>(low, k0[4 * i + 2], k1[4 * i + 2], k0[4 * i + 3], k1[4 * i + 3], lo.z, lo.w);
        }
#pragma unroll
        for (int e = 0; e < 4; e++) s[nt][e] += low[e];
    }
}

// Scores from quantised keys. Codes are integers that are exact in f16; the scale of each 32 elements is
// applied after their product.
template <int TYPE, int DK, int DV, int NT>
static __device__ __forceinline__ void multiply_quants(const warp_state<TYPE, DK, DV, NT> &w,
                                                       const query_storage<DK, NT> &shared, float (&s)[NT][4])
{
    int lane = threadIdx.x % TN_WARP, c = lane % 4;
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[nt][e] = 0.0f;
#pragma unroll
    for (int i = 0; i < DK / 32; i++) {
        uint32_t h[2][4];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            uint32_t lo, hi, bias = tn_quant_bias<TYPE>();
            w.key[r].bytes(i, c, lo, hi);
            h[r][0] = tn_half2_bits(tn_bytes_half2(lo, 0x4140, bias));
            h[r][1] = tn_half2_bits(tn_bytes_half2(lo, 0x4342, bias));
            h[r][2] = tn_half2_bits(tn_bytes_half2(hi, 0x4140, bias));
            h[r][3] = tn_half2_bits(tn_bytes_half2(hi, 0x4342, bias));
        }
        float d0 = w.key[0].scale(i), d1 = w.key[1].scale(i);
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            uint4 hi = shared.hi[nt][i][lane], lo = shared.lo[nt][i][lane];
            float t[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            tn_mma_16816<false>(t, h[0][0], h[1][0], h[0][1], h[1][1], hi.x, hi.y);
            tn_mma_16816<false>(t, h[0][2], h[1][2], h[0][3], h[1][3], hi.z, hi.w);
            tn_mma_16816<false>(t, h[0][0], h[1][0], h[0][1], h[1][1], lo.x, lo.y);
            tn_mma_16816<false>(t, h[0][2], h[1][2], h[0][3], h[1][3], lo.z, lo.w);
            s[nt][0] += d0 * t[0], s[nt][1] += d0 * t[1], s[nt][2] += d1 * t[2], s[nt][3] += d1 * t[3];
        }
    }
}

// Turns the scores of one tile into weights, times 2^WEIGHT_SHIFT, and rescales o and the sums if there is a
// new maximum. Row g of the tile is key `key`, row g + 8 is key `key` + `step`.
template <int TYPE, int DK, int DV, int NT>
static __device__ __forceinline__ void weigh(const tn_cuda_attention_args &a, warp_state<TYPE, DK, DV, NT> &w,
                                             const column (&col)[NT][2], int key, float (&s)[NT][4],
                                             int step = 8)
{
    bool plain = a.softcap <= 0.0f && a.max_bias <= 0.0f, rescale = false;
    float factor = a.scale * TN_LOG2E, shrink[NT][2];
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const column &u = col[nt][h];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float &x = s[nt][2 * r + h];
                int j = key + step * r;
                x = plain ? x * factor
                          : tn_attention_bias(a, x * a.scale, u.slope, u.position - j) * TN_LOG2E;
                if (j < u.lo || j >= u.hi) x = -INFINITY;
            }
            float top = fmaxf(s[nt][h], s[nt][2 + h]);
            for (int i = 4; i < TN_WARP; i *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, i));
            top = fmaxf(top, w.max[nt][h]);
            float base = top > -INFINITY ? top - WEIGHT_SHIFT : 0.0f;
            shrink[nt][h] = w.max[nt][h] > -INFINITY ? tn_exp2(w.max[nt][h] - top) : 1.0f;
            rescale = rescale || shrink[nt][h] != 1.0f;
            w.max[nt][h] = top;
            s[nt][h] = tn_exp2(s[nt][h] - base);
            s[nt][2 + h] = tn_exp2(s[nt][2 + h] - base);
            w.sum[nt][h] = w.sum[nt][h] * shrink[nt][h] + s[nt][h] + s[nt][2 + h];
        }
    if (!__any_sync(0xffffffffu, rescale)) return;
#pragma unroll
    for (int i = 0; i < DV / 16; i++)
#pragma unroll
        for (int nt = 0; nt < NT; nt++)
#pragma unroll
            for (int e = 0; e < 4; e++) w.o[i][nt][e] *= shrink[nt][e % 2];
}

// The scales of elements 2t, 2t + 1 of group j, for this lane's keys 2c + 8r and 2c + 8r + 1.
template <int TYPE, int DK, int DV, int NT>
static __device__ __forceinline__ __half2 value_scales(const warp_state<TYPE, DK, DV, NT> &w, int j, int t,
                                                       int r)
{
    int g = threadIdx.x % TN_WARP / 4;
    uint32_t d =
        __byte_perm(w.value[2 * r].scale(j, g, t / 2), w.value[2 * r + 1].scale(j, g, t / 2), 0x5410);
    return *reinterpret_cast<__half2 *>(&d);
}

// Operand A for 16 elements of V^T, of which this lane has elements 2t, 2t + 1 of group j.
template <int TYPE, int DK, int DV, int NT>
static __device__ __forceinline__ void value_operand(const warp_state<TYPE, DK, DV, NT> &w, int j, int t,
                                                     uint32_t (&x)[4])
{
    typedef tn_cache_traits<TYPE> traits;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const tn_value_part<TYPE, DV> &even = w.value[2 * r], &odd = w.value[2 * r + 1];
        if (!traits::QUANT) {
            x[2 * r] = __byte_perm(even.w[4 * j + t], odd.w[4 * j + t], 0x5410);
            x[2 * r + 1] = __byte_perm(even.w[4 * j + t], odd.w[4 * j + t], 0x7632);
            continue;
        }
        int g = threadIdx.x % TN_WARP / 4;
        uint32_t lo[2], hi[2], bias = tn_quant_bias<TYPE>();
        even.bytes(j, g, lo[0], hi[0]);
        odd.bytes(j, g, lo[1], hi[1]);
        uint32_t both = t < 2 ? __byte_perm(lo[0], lo[1], t % 2 ? 0x7362 : 0x5140)
                              : __byte_perm(hi[0], hi[1], t % 2 ? 0x7362 : 0x5140);
        __half2 lower = tn_bytes_half2(both, 0x4140, bias), upper = tn_bytes_half2(both, 0x4342, bias);
        // In q4_0, lanes of a group have elements of different blocks, so the scale cannot go into the
        // weights as in add_values() and is applied here.
        if (TYPE == TN_CUDA_CACHE_Q4_0) {
            __half2 d = value_scales(w, j, t, r);
            lower = __hmul2(lower, d), upper = __hmul2(upper, d);
        }
        x[2 * r] = tn_half2_bits(lower);
        x[2 * r + 1] = tn_half2_bits(upper);
    }
}

template <int TYPE, int DK, int DV, int NT>
static __device__ __forceinline__ void add_values(warp_state<TYPE, DK, DV, NT> &w, const float (&s)[NT][4])
{
    constexpr bool BF16 = tn_cache_traits<TYPE>::BF16;
    uint32_t p[NT][2], low[NT][2];
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            uint32_t hi = tn_pack16<BF16>(s[nt][2 * r], s[nt][2 * r + 1]);
            p[nt][r] = tn_transpose_8x8(hi);
            if (!BF16) continue;
            float2 back = tn_unpack16<BF16>(hi);
            low[nt][r] = tn_transpose_8x8(tn_pack16<BF16>(s[nt][2 * r] - back.x, s[nt][2 * r + 1] - back.y));
        }
#pragma unroll
    for (int i = 0; i < DV / 16; i++) {
        uint32_t x[4];
        value_operand(w, i / 4, i % 4, x);
        // In q8_0 the scale of 32 elements is applied to the weights, so that the integers stay exact.
        __half2 d0, d1;
        if (TYPE == TN_CUDA_CACHE_Q8_0)
            d0 = value_scales(w, i / 4, i % 4, 0), d1 = value_scales(w, i / 4, i % 4, 1);
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
            uint32_t p0 = p[nt][0], p1 = p[nt][1];
            if (TYPE == TN_CUDA_CACHE_Q8_0)
                p0 = tn_half2_bits(__hmul2(*reinterpret_cast<__half2 *>(&p0), d0)),
                p1 = tn_half2_bits(__hmul2(*reinterpret_cast<__half2 *>(&p1), d1));
            tn_mma_16816<BF16>(w.o[i][nt], x[0], x[1], x[2], x[3], p0, p1);
            if (BF16) tn_mma_16816<BF16>(w.o[i][nt], x[0], x[1], x[2], x[3], low[nt][0], low[nt][1]);
        }
    }
}

// Where a warp is: its next tile, and the pages of its next 32 tiles from tile `base` on, one in each lane.
struct cursor {
    int tile, base, pages;
    const char *k, *v; // of the KV head
};

template <int WARPS>
static __device__ __forceinline__ void find_pages(const tn_cuda_attention_args &a, const part &p, cursor &at)
{
    int tile = at.tile + WARPS * ((int)threadIdx.x % TN_WARP);
    at.base = at.tile;
    at.pages = a.table[(int64_t)p.seq * a.max_blocks + min(tile, p.end - 1) * KEYS / a.block];
}

// The page of the warp's next tile.
template <int WARPS> static __device__ __forceinline__ int64_t page_of(const cursor &at)
{
    return __shfl_sync(0xffffffffu, at.pages, (at.tile - at.base) / WARPS);
}

// Stores elements k .. k + 3 of the result of a token as x of the product that reads it, in the stages of
// product/skinny/skinny_stream_args.h for -row_size columns. Means of values of a cache in f16 are within the
// range of f16, and they are needed no finer than its values are, so the power of two of all rows is 1. Eight
// lanes have a run of 32 elements.
static __device__ __forceinline__ void store_stages(const tn_cuda_quantised &r, int token, int k,
                                                    const float4 &o)
{
    int columns = -(int)r.row_size, in_stage = k % TN_SKINNY_K;
    char *stage = r.rows + (int64_t)(k / TN_SKINNY_K) * TN_SKINNY_STREAM_STAGE(columns);
    int at = 16 * TN_SKINNY_STREAM_PIECE(in_stage / 16, 0, token, columns) + k % 16;
    __half2 even = __floats2half2_rn(o.x, o.z), odd = __floats2half2_rn(o.y, o.w);
    *(__half2 *)(stage + at) = even;
    *(__half2 *)(stage + (at ^ 16)) = odd; // the other part of the same run
    float2 a = __half22float2(even), b = __half22float2(odd);
    float sum = a.x + a.y + (b.x + b.y);
#pragma unroll
    for (int i = 1; i < 8; i *= 2) sum += __shfl_xor_sync(0xffu << (threadIdx.x & 24), sum, i);
    if (k == 0) *(float *)(r.rows + TN_SKINNY_STAGED_SCALE(columns, r.k) + 4 * token) = 1.0f;
    if (k % 32 != 0) return;
    float mean = 0.03125f * sum, high = __half2float(__float2half_rn(mean));
    *(__half2 *)(stage + TN_SKINNY_STREAM_SUM(in_stage / 32, token, columns)) =
        __floats2half2_rn(high, mean - high);
}

// Stores elements d .. d + 3 of a head of a token, from the maximum of its scores, the sum of its weights and
// the weighted sum o of its values.
static __device__ __forceinline__ void store_result(const tn_cuda_attention_args &a, int token, int head,
                                                    int d, float max, float sum, float4 o)
{
    if (a.sinks) {
        float sink = a.sinks[head] * TN_LOG2E, top = fmaxf(max, sink);
        float keep = max > -INFINITY ? tn_exp2(max - top) : 0.0f;
        sum = sum * keep + (top > -INFINITY ? tn_exp2(sink - top) : 0.0f);
        o.x *= keep, o.y *= keep, o.z *= keep, o.w *= keep;
    }
    float r = sum > 0.0f ? 1.0f / sum : 0.0f;
    char *row = a.y + (int64_t)token * a.y_token + (int64_t)head * a.y_head;
    o.x *= r, o.y *= r, o.z *= r, o.w *= r;
    if (a.y_packed == TN_CUDA_PACKED_BF16) {
        ((uint2 *)row)[d / 4] = make_uint2(tn_pack16<true>(o.x, o.y), tn_pack16<true>(o.z, o.w));
        return;
    }
    if (a.y_packed) { // of each 16 elements the even ones first
        uint32_t *run = (uint32_t *)row + d / 16 * 8 + d % 16 / 4;
        run[0] = tn_pack16<false>(o.x, o.z), run[4] = tn_pack16<false>(o.y, o.w);
        return;
    }
    float *y = (float *)row + d;
    y[0] = o.x, y[1] = o.y, y[2] = o.z, y[3] = o.w;
    // Adjacent lanes have adjacent elements of a row, so four lanes have a group of 16 that is quantised
    // together.
    if (a.quantised_y.rows && a.quantised_y.row_size < 0)
        store_stages(a.quantised_y, token, head * a.v.dim + d, o);
    else if (a.quantised_y.rows)
        tn_quantised_store4(a.quantised_y, token, head * a.v.dim + d, o, 0xfu << (threadIdx.x & 28));
}

#endif
