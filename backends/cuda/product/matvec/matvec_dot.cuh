// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Dot products of a few weights with activations, for each type: what one lane computes for one chunk. A
// chunk is the run of elements that a lane multiplies at a time: those behind 16 bytes of codes
// (TN_MATVEC_LANE_ELEMS), or 16 elements of types without a loop of their own. Chunks are counted along a
// tile of a row, which starts with a block. mv_lane_dot<type> has
//   acts   the activations of a chunk: int8 words in the order of the weights, scales, and what replaces zero
//   points load   fills acts for a chunk from the activations of the tile dot    adds the lane's part of the
//   product, from the planes of the tile in shared memory; whole warps call it
//
// Activations are x = dx * q with one dx for 16 elements (quantise.cuh). An integer dot product starts from
// the bits of the float 1.5 * 2^23, less the zero point times the sum of q, so that its result is the bits of
// a float again: one subtraction replaces the conversion from integer to float.
//
// matvec.cuh says how chunks map to lanes and what bounds the kernel. Fewer instructions here raised decode
// of 8B Q4_K_M from 482.1 to 502.9 tokens per second and of Q4_0 from 537.4 to 548.8 in the tensor core
// kernel (matvec_mma.cuh), whose tiles went from 354 to 280 instructions (H200, 2026-11-22).
#ifndef TN_CUDA_MATVEC_DOT_CUH
#define TN_CUDA_MATVEC_DOT_CUH

#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/dequant.cuh"

// A quantised row of activations in shared memory.
struct mv_x {
    const char *q;    // [k]
    const float *d;   // [k / 16]
    const short *sum; // [k / 16], the sum of q of each group
};

enum { MV_FLOAT_BIAS = 0x4b400000 }; // the bits of the float 1.5 * 2^23 = 12582912

static __device__ __forceinline__ float mv_unbias(int sum)
{
    return __int_as_float(sum) - 12582912.0f;
}

static __device__ __forceinline__ void mv_load_words(int *q, const char *from)
{
    int4 v = *(const int4 *)from;
    q[0] = v.x, q[1] = v.y, q[2] = v.z, q[3] = v.w;
}

static __device__ __forceinline__ int mv_dot4(const uint4 &w, const int *q, int sum)
{
    sum = __dp4a((int)w.x, q[0], sum);
    sum = __dp4a((int)w.y, q[1], sum);
    sum = __dp4a((int)w.z, q[2], sum);
    return __dp4a((int)w.w, q[3], sum);
}

// Adds the dot product with the upper nibbles of v, multiplied in place, so it is 16 times too large.
static __device__ __forceinline__ int mv_dot4_high(const uint4 &v, const int *q, int sum)
{
    sum = tn_dp4a_mixed(v.x & 0xf0f0f0f0u, q[0], sum);
    sum = tn_dp4a_mixed(v.y & 0xf0f0f0f0u, q[1], sum);
    sum = tn_dp4a_mixed(v.z & 0xf0f0f0f0u, q[2], sum);
    return tn_dp4a_mixed(v.w & 0xf0f0f0f0u, q[3], sum);
}

static __device__ __forceinline__ uint4 mv_low_nibbles(const uint4 &v)
{
    return make_uint4(v.x & 0x0f0f0f0fu, v.y & 0x0f0f0f0fu, v.z & 0x0f0f0f0fu, v.w & 0x0f0f0f0fu);
}

static __device__ __forceinline__ uint4 mv_high_nibbles(const uint4 &v)
{
    return make_uint4(v.x >> 4 & 0x0f0f0f0fu, v.y >> 4 & 0x0f0f0f0fu, v.z >> 4 & 0x0f0f0f0fu,
                      v.w >> 4 & 0x0f0f0f0fu);
}

// w with the bits `mask` of v added to it.
static __device__ __forceinline__ uint4 mv_or_bits(const uint4 &w, const uint4 &v, uint32_t mask)
{
    return make_uint4(w.x | (v.x & mask), w.y | (v.y & mask), w.z | (v.z & mask), w.w | (v.w & mask));
}

static __device__ __forceinline__ uint4 mv_shift_left(const uint4 &v, int n)
{
    return make_uint4(v.x << n, v.y << n, v.z << n, v.w << n);
}

static __device__ __forceinline__ uint4 mv_shift_right(const uint4 &v, int n)
{
    return make_uint4(v.x >> n, v.y >> n, v.z >> n, v.w >> n);
}

// --- any block type, 16 elements ------------------------------------------------------------------------

template <int TYPE> struct mv_lane_dot {
    struct acts {
        int q[4];
        float dx, xs;
    };
    static __device__ __forceinline__ void load(acts &a, const mv_x &x, int chunk)
    {
        mv_load_words(a.q, x.q + 16 * chunk);
        a.dx = x.d[chunk];
        a.xs = a.dx * (float)x.sum[chunk];
    }
    static __device__ __forceinline__ float dot(const acts &a, const char *const (&p)[4], int chunk, int lane,
                                                float total)
    {
        tn_cuda_weight w = {{p[0], p[1], p[2], p[3]}, {0, 0, 0, 0}};
        tn_run16 r = tn_unpack16<TYPE>(w, 0, 16 * chunk);
        int sum = MV_FLOAT_BIAS;
#pragma unroll
        for (int i = 0; i < 4; i++) sum = __dp4a(r.q[i], a.q[i], sum);
        total += mv_unbias(sum) * (r.d * a.dx);
        if (tn_has_min(TYPE)) total -= r.m * a.xs;
        return total;
    }
};

template <> struct mv_lane_dot<TN_TYPE_Q8_0> {
    struct acts {
        int q[4];
        float dx;
    };
    static __device__ __forceinline__ void load(acts &a, const mv_x &x, int chunk)
    {
        mv_load_words(a.q, x.q + 16 * chunk);
        a.dx = x.d[chunk];
    }
    static __device__ __forceinline__ float dot(const acts &a, const char *const (&p)[4], int chunk, int lane,
                                                float total)
    {
        int sum = mv_dot4(*(const uint4 *)(p[0] + 16 * chunk), a.q, MV_FLOAT_BIAS);
        return total + mv_unbias(sum) * (tn_half_bits(*(const uint16_t *)(p[1] + chunk / 2 * 2)) * a.dx);
    }
};

// --- blocks of 32 nibbles ---------------------------------------------------------------------------

template <int TYPE> struct mv_nibble_dot {
    static constexpr bool five_bits = TYPE == TN_TYPE_Q5_0 || TYPE == TN_TYPE_Q5_1,
                          has_min = tn_has_min(TYPE);
    static constexpr bool codebook =
        TYPE == TN_TYPE_IQ4_NL || TYPE == TN_TYPE_IQ4_XS || TYPE == TN_TYPE_MXFP4;
    static constexpr bool high_in_place =
        !five_bits && !codebook; // upper nibbles are multiplied in place, 16 times too large
    static constexpr int zero_point = codebook || has_min ? 0 : five_bits ? 16 : 8;
    struct acts {
        int q[8];
        // What the sums of the lower and the upper nibbles start from: the float bias less the zero point
        // times the sum of q.
        int start_low, start_high;
        float d0, d1, xs;
    };
    static __device__ __forceinline__ void load(acts &a, const mv_x &x, int chunk)
    {
        mv_load_words(a.q, x.q + 32 * chunk);
        mv_load_words(a.q + 4, x.q + 32 * chunk + 16);
        float2 d = *(const float2 *)(x.d + 2 * chunk);
        int low = x.sum[2 * chunk], high = x.sum[2 * chunk + 1];
        a.d0 = d.x, a.d1 = high_in_place ? 0.0625f * d.y : d.y;
        a.xs = d.x * (float)low + d.y * (float)high;
        a.start_low = MV_FLOAT_BIAS - zero_point * low,
        a.start_high = MV_FLOAT_BIAS - (high_in_place ? 16 : 1) * zero_point * high;
    }
    static __device__ __forceinline__ void values(const char *const (&p)[4], int chunk, uint4 &low,
                                                  uint4 &high)
    {
        uint4 v = *(const uint4 *)(p[0] + 16 * chunk);
        if constexpr (codebook) {
            const uint32_t *codes = &v.x;
            int *l = (int *)&low.x, *h = (int *)&high.x;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if constexpr (TYPE == TN_TYPE_MXFP4) tn_lookup_fp4(codes[i], l[i], h[i]);
                else tn_lookup_iq4(codes[i], l[i], h[i]);
            }
        } else {
            low = mv_low_nibbles(v), high = mv_high_nibbles(v);
        }
        if constexpr (five_bits) {
            uint32_t bits = *(const uint32_t *)(p[1] + 4 * chunk);
            uint32_t *l = &low.x, *h = &high.x;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                l[i] |= (uint32_t)tn_spread_bits(bits >> 4 * i) << 4;
                h[i] |= (uint32_t)tn_spread_bits(bits >> (16 + 4 * i)) << 4;
            }
        }
    }
    static __device__ __forceinline__ float dot(const acts &a, const char *const (&p)[4], int chunk, int lane,
                                                float total)
    {
        int s0, s1;
        if constexpr (high_in_place) {
            uint4 v = *(const uint4 *)(p[0] + 16 * chunk);
            s0 = mv_dot4(mv_low_nibbles(v), a.q, a.start_low), s1 = mv_dot4_high(v, a.q + 4, a.start_high);
        } else {
            uint4 low, high;
            values(p, chunk, low, high);
            s0 = mv_dot4(low, a.q, a.start_low), s1 = mv_dot4(high, a.q + 4, a.start_high);
        }
        const char *scales = p[five_bits ? 2 : 1];
        float d;
        if constexpr (TYPE == TN_TYPE_MXFP4)
            d = tn_half_e8m0(*(const uint8_t *)(scales + chunk));
        else if constexpr (TYPE == TN_TYPE_IQ4_XS) {
            uint2 head = *(const uint2 *)(scales + chunk / 8 * 8);
            int g = chunk % 8;
            d = tn_half_bits(head.x & 0xffffu) *
                (float)((int)((head.y >> 4 * g & 15u) | (head.x >> (16 + 2 * g) & 3u) << 4) - 32);
        } else if constexpr (has_min) {
            uint32_t both = *(const uint32_t *)(scales + 4 * chunk);
            d = tn_half_bits(both & 0xffffu);
            total += tn_half_bits(both >> 16) * a.xs;
        } else {
            d = tn_half_bits(*(const uint16_t *)(scales + 2 * chunk));
        }
        return total + d * (mv_unbias(s0) * a.d0 + mv_unbias(s1) * a.d1);
    }
};

template <> struct mv_lane_dot<TN_TYPE_Q4_0> : mv_nibble_dot<TN_TYPE_Q4_0> {
};
template <> struct mv_lane_dot<TN_TYPE_Q4_1> : mv_nibble_dot<TN_TYPE_Q4_1> {
};
template <> struct mv_lane_dot<TN_TYPE_Q5_0> : mv_nibble_dot<TN_TYPE_Q5_0> {
};
template <> struct mv_lane_dot<TN_TYPE_Q5_1> : mv_nibble_dot<TN_TYPE_Q5_1> {
};
template <> struct mv_lane_dot<TN_TYPE_IQ4_NL> : mv_nibble_dot<TN_TYPE_IQ4_NL> {
};
template <> struct mv_lane_dot<TN_TYPE_IQ4_XS> : mv_nibble_dot<TN_TYPE_IQ4_XS> {
};
template <> struct mv_lane_dot<TN_TYPE_MXFP4> : mv_nibble_dot<TN_TYPE_MXFP4> {
};

// --- Q4_K, Q5_K ---------------------------------------------------------------------------------------

// Scale d and minimum m of group c from the head of the block (16 bytes, see tn_k4_scales). Everything that
// depends on c alone is loop-invariant, so the compiler computes it before the loop.
//
// 16 bytes of codes are half of the groups g and g + 1 of 32 (low and high nibbles). Of the eight lanes of a
// block lane c decodes the scale and minimum of group c. The pair of lanes that shares two groups exchanges
// the scales, and each lane subtracts one minimum.
static __device__ __forceinline__ void mv_k4_scales(const uint4 &head, int c, float &d, float &m)
{
    bool upper = c >= 4; // 4 bits are in the last word, the 2 above them beside group c - 4
    uint32_t mask = upper ? 15u : 63u, top = upper ? 0x30u : 0u;
    uint32_t sc = (__byte_perm(head.y, head.w, c) & mask) | (__byte_perm(head.y, 0, c & 3) >> 2 & top);
    uint32_t mn = (__byte_perm(head.z, head.w, c) >> (upper ? 4 : 0) & mask) |
                  (__byte_perm(head.z, 0, c & 3) >> 2 & top);
    d = tn_half_bits(head.x & 0xffffu) * (float)sc;
    m = tn_half_bits(head.x >> 16) * (float)mn;
}

template <int TYPE> struct mv_k4_k5_dot {
    struct acts {
        int q[8];
        float d0, d1, xs; // scales of x of the two groups; dx times the sum of q of group c
    };
    static __device__ __forceinline__ void load(acts &a, const mv_x &x, int chunk)
    {
        int c = chunk % 8, at = chunk / 8 * 256 + 64 * (c / 2) + 16 * (c % 2);
        mv_load_words(a.q, x.q + at);
        mv_load_words(a.q + 4, x.q + at + 32);
        float2 d = *(const float2 *)(x.d + 2 * chunk);
        int sums = *(const int *)(x.sum + 2 * chunk);
        a.d0 = x.d[at / 16], a.d1 = (TYPE == TN_TYPE_Q4_K ? 0.0625f : 1.0f) * x.d[at / 16 + 2];
        a.xs = d.x * (float)(short)sums + d.y * (float)(sums >> 16);
    }
    static __device__ __forceinline__ float dot(const acts &a, const char *const (&p)[4], int chunk, int lane,
                                                float total)
    {
        int block = chunk / 8, c = lane % 8; // equals chunk % 8
        uint4 v = *(const uint4 *)(p[0] + 16 * chunk), low = mv_low_nibbles(v);
        float d, m, other, s0, s1;
        mv_k4_scales(*(const uint4 *)(p[TYPE == TN_TYPE_Q5_K ? 2 : 1] + 16 * block), c, d, m);
        other = __shfl_xor_sync(0xffffffffu, d, 1);
        if constexpr (TYPE == TN_TYPE_Q5_K) {
            uint4 high = mv_high_nibbles(v),
                  h = mv_shift_right(*(const uint4 *)(p[1] + 32 * block + 16 * (c % 2)), c & 6);
            low = mv_or_bits(low, mv_shift_left(h, 4), 0x10101010u);
            high = mv_or_bits(high, mv_shift_left(h, 3), 0x10101010u);
            s0 = mv_unbias(mv_dot4(low, a.q, MV_FLOAT_BIAS)),
            s1 = mv_unbias(mv_dot4(high, a.q + 4, MV_FLOAT_BIAS));
        } else {
            s0 = mv_unbias(mv_dot4(low, a.q, MV_FLOAT_BIAS)),
            s1 = mv_unbias(mv_dot4_high(v, a.q + 4, MV_FLOAT_BIAS));
        }
        total += s0 * ((c % 2 ? other : d) * a.d0);
        total += s1 * ((c % 2 ? d : other) * a.d1);
        return total - m * a.xs;
    }
};

template <> struct mv_lane_dot<TN_TYPE_Q4_K> : mv_k4_k5_dot<TN_TYPE_Q4_K> {
};
template <> struct mv_lane_dot<TN_TYPE_Q5_K> : mv_k4_k5_dot<TN_TYPE_Q5_K> {
};

// --- Q6_K ---------------------------------------------------------------------------------------------

// 16 bytes of low nibbles hold two runs of 16 elements that are 64 apart, each with a scale of its own.
template <> struct mv_lane_dot<TN_TYPE_Q6_K> {
    struct acts {
        int q[8];
        int start0, start1;
        float d0, d1;
    };
    static __device__ __forceinline__ void load(acts &a, const mv_x &x, int chunk)
    {
        int c = chunk % 8, at = chunk / 8 * 256 + 128 * (c / 4) + 16 * (c % 4);
        mv_load_words(a.q, x.q + at);
        mv_load_words(a.q + 4, x.q + at + 64);
        a.start0 = MV_FLOAT_BIAS - 32 * x.sum[at / 16], a.start1 = MV_FLOAT_BIAS - 32 * x.sum[at / 16 + 4];
        a.d0 = x.d[at / 16], a.d1 = x.d[at / 16 + 4];
    }
    static __device__ __forceinline__ float dot(const acts &a, const char *const (&p)[4], int chunk, int lane,
                                                float total)
    {
        int block = chunk / 8, c = lane % 8;
        uint4 v = *(const uint4 *)(p[0] + 16 * chunk);
        uint4 h = mv_shift_right(*(const uint4 *)(p[1] + 64 * block + 32 * (c / 4) + 16 * (c % 2)), c & 2);
        uint4 low = mv_or_bits(mv_low_nibbles(v), mv_shift_left(h, 4), 0x30303030u),
              high = mv_or_bits(mv_high_nibbles(v), h, 0x30303030u);
        const char *s = p[2] + 16 * block + 8 * (c / 4) + c % 4;
        float d = tn_half_bits(*(const uint16_t *)(p[3] + 2 * block));
        float a0 = mv_unbias(mv_dot4(low, a.q, a.start0)) * (a.d0 * (float)*(const int8_t *)s);
        float a1 = mv_unbias(mv_dot4(high, a.q + 4, a.start1)) * (a.d1 * (float)*(const int8_t *)(s + 4));
        return total + d * (a0 + a1);
    }
};

// --- plain types: f32 activations -------------------------------------------------------------------------

template <int TYPE> struct mv_plain_dot {
    static constexpr int elems = TN_MATVEC_LANE_ELEMS(TYPE);
    struct acts {
        float x[elems];
    };
    static __device__ __forceinline__ float dot(const acts &a, const char *const (&p)[4], int chunk, int lane,
                                                float total)
    {
        uint4 v = *(const uint4 *)(p[0] + 16 * chunk);
        const uint32_t *w = &v.x;
        float other = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (TYPE == TN_TYPE_F32) {
                total += __uint_as_float(w[i]) * a.x[i];
            } else if constexpr (TYPE == TN_TYPE_BF16) {
                total += __uint_as_float(w[i] << 16) * a.x[2 * i];
                other += __uint_as_float(w[i] & 0xffff0000u) * a.x[2 * i + 1];
            } else {
                float2 f = __half22float2(*(const __half2 *)&w[i]);
                total += f.x * a.x[2 * i];
                other += f.y * a.x[2 * i + 1];
            }
        }
        return total + other;
    }
};

template <> struct mv_lane_dot<TN_TYPE_F32> : mv_plain_dot<TN_TYPE_F32> {
};
template <> struct mv_lane_dot<TN_TYPE_F16> : mv_plain_dot<TN_TYPE_F16> {
};
template <> struct mv_lane_dot<TN_TYPE_BF16> : mv_plain_dot<TN_TYPE_BF16> {
};

#endif
