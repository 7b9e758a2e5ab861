// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Unpackers of the quantised weight types, for a group of 256 weights at w:
//   TYPE_unpack(w, h, u)        u[8]: bytes of elements [128 h, 128 h + 128) in natural order, h 0 or 1
//   TYPE_scales(w, scale, min)  of sub-blocks in natural order: 2 vectors (sub-blocks of 32) or 4 (of 16)
// What the bytes mean (bias, minimum): types.h.
#ifndef TN_CPU_ARM_UNPACK_H
#define TN_CPU_ARM_UNPACK_H

#include "backends/cpu/arm/product/product_arm.h"

// --- pieces ------------------------------------------------------------------------------------------------

TN_INLINE int8x16_t low_nibbles(uint8x16_t v)
{
    return as_signed(vandq_u8(v, vdupq_n_u8(15)));
}

TN_INLINE int8x16_t high_nibbles(uint8x16_t v)
{
    return as_signed(vshrq_n_u8(v, 4));
}

// Four blocks of 32 at a stride, each 16 bytes: the low nibbles come first.
TN_INLINE void unpack_blocks(const uint8_t *p, int stride, int8x16_t *u)
{
    TN_UNROLL
    for (int b = 0; b < 4; b++) {
        uint8x16_t v = load_u8(p + b * stride);
        u[2 * b] = low_nibbles(v);
        u[2 * b + 1] = high_nibbles(v);
    }
}

// Two runs of 64, each 32 bytes: the low nibbles of all come first.
TN_INLINE void unpack_runs(const uint8_t *p, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 2; i++) {
        uint8x16_t a = load_u8(p + 32 * i), b = load_u8(p + 32 * i + 16);
        u[4 * i] = low_nibbles(a);
        u[4 * i + 1] = low_nibbles(b);
        u[4 * i + 2] = high_nibbles(a);
        u[4 * i + 3] = high_nibbles(b);
    }
}

TN_INLINE void look_up(int8x16_t values, int8x16_t *u)
{
    TN_UNROLL
    for (int z = 0; z < 8; z++) u[z] = vqtbl1q_s8(values, vreinterpretq_u8_s8(u[z]));
}

// Code book of IQ4_NL and IQ4_XS.
TN_INLINE int8x16_t iq4_values(void)
{
    static const int8_t values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
    return vld1q_s8(values);
}

// Twice E2M1, of MXFP4 and NVFP4.
TN_INLINE int8x16_t fp4_values(void)
{
    static const int8_t values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    return vld1q_s8(values);
}

// u | value where bits and mask have a bit in common
TN_INLINE int8x16_t add_bits(int8x16_t u, uint8x16_t bits, uint8x16_t mask, uint8_t value)
{
    return vorrq_s8(u, as_signed(vandq_u8(vtstq_u8(bits, mask), vdupq_n_u8(value))));
}

// Fifth bits of four blocks of 32 at a stride: bit i of 32 is that of element i.
TN_INLINE void add_fifth_bits(const uint8_t *p, int stride, int8x16_t *u)
{
    static const uint8_t first[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint8x16_t low = vld1q_u8(first), high = vaddq_u8(low, vdupq_n_u8(2));
    const uint8x16_t mask = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    TN_UNROLL
    for (int b = 0; b < 4; b++) {
        uint8x16_t bits = vreinterpretq_u8_u32(vdupq_n_u32(tn_load_u32(p + b * stride)));
        u[2 * b] = add_bits(u[2 * b], vqtbl1q_u8(bits, low), mask, 16);
        u[2 * b + 1] = add_bits(u[2 * b + 1], vqtbl1q_u8(bits, high), mask, 16);
    }
}

// Bits of 32 bytes: bit 4 h + i belongs to elements [32 i, 32 i + 32) of the half.
TN_INLINE void add_planes(const uint8_t *p, int h, uint8_t value, int8x16_t *u)
{
    uint8x16_t a = load_u8(p), b = load_u8(p + 16);
    TN_UNROLL
    for (int i = 0; i < 4; i++) {
        uint8x16_t mask = vdupq_n_u8((uint8_t)(1 << (4 * h + i)));
        u[2 * i] = add_bits(u[2 * i], a, mask, value);
        u[2 * i + 1] = add_bits(u[2 * i + 1], b, mask, value);
    }
}

// Two bits of 32 bytes: bits 2 i and 2 i + 1 belong to elements [32 i, 32 i + 32).
TN_INLINE void unpack_planes(const uint8_t *p, int8x16_t *u)
{
    const uint8x16_t three = vdupq_n_u8(3);
    TN_UNROLL
    for (int i = 0; i < 2; i++) {
        uint8x16_t v = load_u8(p + 16 * i);
        u[i] = as_signed(vandq_u8(v, three));
        u[2 + i] = as_signed(vandq_u8(vshrq_n_u8(v, 2), three));
        u[4 + i] = as_signed(vandq_u8(vshrq_n_u8(v, 4), three));
        u[6 + i] = as_signed(vshrq_n_u8(v, 6));
    }
}

TN_INLINE uint16x4_t load_4_u16(const uint8_t *p, int stride)
{
    uint16x4_t v = vdup_n_u16(tn_load_u16(p));
    v = vset_lane_u16(tn_load_u16(p + stride), v, 1);
    v = vset_lane_u16(tn_load_u16(p + 2 * stride), v, 2);
    return vset_lane_u16(tn_load_u16(p + 3 * stride), v, 3);
}

// 8 half floats at a stride.
TN_INLINE void load_8_f16(const uint8_t *p, int stride, float32x4_t *v)
{
    v[0] = vcvt_f32_f16(vreinterpret_f16_u16(load_4_u16(p, stride)));
    v[1] = vcvt_f32_f16(vreinterpret_f16_u16(load_4_u16(p + 4 * stride, stride)));
}

TN_INLINE float32x4_t load_f16(const uint8_t *p) // one, in all lanes
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(tn_load_u16(p))));
}

TN_INLINE void scale_8(int16x8_t q, float32x4_t d, float32x4_t *v)
{
    v[0] = vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(q))), d);
    v[1] = vmulq_f32(vcvtq_f32_s32(vmovl_high_s16(q)), d);
}

TN_INLINE void scale_16(int8x16_t q, float32x4_t d, float32x4_t *v)
{
    scale_8(vmovl_s8(vget_low_s8(q)), d, v);
    scale_8(vmovl_high_s8(q), d, v + 2);
}

// --- blocks of 32 ------------------------------------------------------------------------------------------

TN_INLINE void q4_0_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_blocks(w + 2 + h * 4 * 18, 18, u);
}

TN_INLINE void q4_0_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    load_8_f16(w, 18, scale);
}

TN_INLINE void q4_1_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_blocks(w + 4 + h * 4 * 20, 20, u);
}

TN_INLINE void q4_1_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    load_8_f16(w, 20, scale);
    load_8_f16(w + 2, 20, min);
}

TN_INLINE void q5_0_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_blocks(w + 6 + h * 4 * 22, 22, u);
    add_fifth_bits(w + 2 + h * 4 * 22, 22, u);
}

TN_INLINE void q5_0_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    load_8_f16(w, 22, scale);
}

TN_INLINE void q5_1_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_blocks(w + 8 + h * 4 * 24, 24, u);
    add_fifth_bits(w + 4 + h * 4 * 24, 24, u);
}

TN_INLINE void q5_1_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    load_8_f16(w, 24, scale);
    load_8_f16(w + 2, 24, min);
}

TN_INLINE void q8_0_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int z = 0; z < 8; z++) u[z] = as_signed(load_u8(w + 2 + (4 * h + z / 2) * 34 + z % 2 * 16));
}

TN_INLINE void q8_0_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    load_8_f16(w, 34, scale);
}

TN_INLINE void iq4_nl_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    q4_0_unpack(w, h, u);
    look_up(iq4_values(), u);
}

TN_INLINE void iq4_nl_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    q4_0_scales(w, scale, min);
}

TN_INLINE void mxfp4_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_blocks(w + 1 + h * 4 * 17, 17, u);
    look_up(fp4_values(), u);
}

// 2^(e - 128), below 2^-126 as subnormals.
TN_INLINE void mxfp4_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    TN_UNROLL
    for (int i = 0; i < 2; i++) {
        uint16x4_t v = vand_u16(load_4_u16(w + i * 4 * 17, 17), vdup_n_u16(255));
        uint32x4_t e = vmovl_u16(v), normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
        uint32x4_t small = vshlq_u32(vdupq_n_u32(0x200000), vreinterpretq_s32_u32(e));
        scale[i] = vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), small, normal));
    }
}

// --- super-blocks of 256 -----------------------------------------------------------------------------------

TN_INLINE void q2_k_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_planes(w + 16 + 32 * h, u);
}

TN_INLINE void q2_k_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    uint8x16_t v = load_u8(w);
    scale_16(low_nibbles(v), load_f16(w + 80), scale);
    scale_16(high_nibbles(v), vnegq_f32(load_f16(w + 82)), min);
}

TN_INLINE void q3_k_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_planes(w + 32 + 32 * h, u);
    add_planes(w, h, 4, u);
}

TN_INLINE void q3_k_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    static const int32_t down[4] = {0, -2, -4, -6};
    TN_UNUSED(min);
    uint8x8_t v = vld1_u8(w + 96);
    uint8x16_t low = vcombine_u8(vand_u8(v, vdup_n_u8(15)), vshr_n_u8(v, 4));
    uint8x16_t high = vreinterpretq_u8_u32(vshlq_u32(vdupq_n_u32(tn_load_u32(w + 104)), vld1q_s32(down)));
    high = vshlq_n_u8(vandq_u8(high, vdupq_n_u8(3)), 4);
    scale_16(as_signed(vsubq_u8(vorrq_u8(low, high), vdupq_n_u8(32))), load_f16(w + 108), scale);
}

TN_INLINE void q4_k_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_runs(w + 16 + 64 * h, u);
}

// d, dmin f16, then eight 6-bit scales and minima in 12 bytes, as 32-bit words a, b, c: bytes of a and b hold
// the first four scales and minima, nibbles of c the others, whose upper two bits lie above in a and b. The
// words are taken apart in general registers, whose units have nothing else to do.
TN_INLINE void q4_k_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    uint64_t a = tn_load_u32(w + 4), b = tn_load_u32(w + 8), c = tn_load_u32(w + 12);
    uint64_t s = (c & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u);
    uint64_t m = (c >> 4 & 0x0f0f0f0fu) | (b >> 2 & 0x30303030u);
    int8x8_t q = vcreate_s8((a & 0x3f3f3f3fu) | s << 32), r = vcreate_s8((b & 0x3f3f3f3fu) | m << 32);
    scale_8(vmovl_s8(q), load_f16(w), scale);
    scale_8(vmovl_s8(r), vnegq_f32(load_f16(w + 2)), min);
}

TN_INLINE void q5_k_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_runs(w + 48 + 64 * h, u);
    add_planes(w + 16, h, 16, u);
}

TN_INLINE void q5_k_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    q4_k_scales(w, scale, min);
}

TN_INLINE void q6_k_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    const uint8x16_t mask = vdupq_n_u8(0x30);
    TN_UNROLL
    for (int i = 0; i < 2; i++) {
        uint8x16_t a = load_u8(w + 64 * h + 16 * i), b = load_u8(w + 64 * h + 32 + 16 * i);
        uint8x16_t high = load_u8(w + 128 + 32 * h + 16 * i);
        u[i] = vorrq_s8(low_nibbles(a), as_signed(vandq_u8(vshlq_n_u8(high, 4), mask)));
        u[2 + i] = vorrq_s8(low_nibbles(b), as_signed(vandq_u8(vshlq_n_u8(high, 2), mask)));
        u[4 + i] = vorrq_s8(high_nibbles(a), as_signed(vandq_u8(high, mask)));
        u[6 + i] = vorrq_s8(high_nibbles(b), as_signed(vandq_u8(vshrq_n_u8(high, 2), mask)));
    }
}

TN_INLINE void q6_k_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    scale_16(as_signed(load_u8(w + 192)), load_f16(w + 208), scale);
}

TN_INLINE void iq4_xs_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_blocks(w + 8 + 64 * h, 16, u);
    look_up(iq4_values(), u);
}

TN_INLINE void iq4_xs_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    static const int32_t low_down[4] = {0, -4, -8, -12}, high_down[4] = {0, -2, -4, -6};
    TN_UNUSED(min);
    float32x4_t d = load_f16(w);
    uint32_t low = tn_load_u32(w + 4), high = tn_load_u16(w + 2);
    TN_UNROLL
    for (int i = 0; i < 2; i++) {
        uint32x4_t a = vshlq_u32(vdupq_n_u32(low >> 16 * i), vld1q_s32(low_down));
        uint32x4_t b = vshlq_u32(vdupq_n_u32(high >> 8 * i), vld1q_s32(high_down));
        a = vandq_u32(a, vdupq_n_u32(15));
        b = vshlq_n_u32(vandq_u32(b, vdupq_n_u32(3)), 4);
        int32x4_t s = vsubq_s32(vreinterpretq_s32_u32(vorrq_u32(a, b)), vdupq_n_s32(32));
        scale[i] = vmulq_f32(vcvtq_f32_s32(s), d);
    }
}

#endif
