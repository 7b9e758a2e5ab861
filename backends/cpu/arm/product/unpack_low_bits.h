// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Unpackers as in unpack.h of the codebook formats (IQ1 to IQ3), TQ1_0, TQ2_0, Q1_0, Q2_0 and NVFP4. The
// formats: ops/quant/quant_iq.c, ops/quant/quant_ternary.c and ops/quant/quant_fp4.c.
#ifndef TN_CPU_ARM_UNPACK_LOW_BITS_H
#define TN_CPU_ARM_UNPACK_LOW_BITS_H

#include "backends/cpu/arm/product/unpack.h"
#include "backends/cpu/grids.h"
#include "ops/quant_tables.h"

// --- pieces -----------------------------------------------------------------------------------------------

TN_INLINE uint8x16_t two_rows(const uint64_t *rows, uint32_t a, uint32_t b)
{
    return vcombine_u8(vcreate_u8(rows[a]), vcreate_u8(rows[b]));
}

TN_INLINE uint8x16_t four_rows(const uint32_t *rows, const uint32_t *n)
{
    return vcombine_u8(vcreate_u8(rows[n[0]] | (uint64_t)rows[n[1]] << 32),
                       vcreate_u8(rows[n[2]] | (uint64_t)rows[n[3]] << 32));
}

// All ones where the bits of two bytes, first those of a, are set.
TN_INLINE uint8x16_t bytes_of_bits(uint8_t a, uint8_t b)
{
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    return vtstq_u8(vcombine_u8(vdup_n_u8(a), vdup_n_u8(b)), bits);
}

// u where the bit of a sign is not set, 2 * bias - u where it is.
TN_INLINE int8x16_t with_signs(uint8x16_t u, uint8_t a, uint8_t b, int bias)
{
    uint8x16_t minus = bytes_of_bits(a, b); // -u = ~u + 1
    uint8x16_t add = vandq_u8(minus, vdupq_n_u8((uint8_t)(2 * bias + 1)));
    return as_signed(vaddq_u8(veorq_u8(u, minus), add));
}

// factor * d * (2 s + 1), of 8 and of 16.
TN_INLINE void odd_scales_8(uint8x8_t s, float32x4_t d, float factor, float32x4_t *v)
{
    int8x8_t odd = vreinterpret_s8_u8(vadd_u8(vadd_u8(s, s), vdup_n_u8(1)));
    scale_8(vmovl_s8(odd), vmulq_n_f32(d, factor), v);
}

TN_INLINE void odd_scales_16(uint8x16_t s, float32x4_t d, float factor, float32x4_t *v)
{
    odd_scales_8(vget_low_u8(s), d, factor, v);
    odd_scales_8(vget_high_u8(s), d, factor, v + 2);
}

// The nibbles of 8 bytes in order.
TN_INLINE uint8x16_t nibbles_of_8(const uint8_t *p)
{
    uint8x8_t v = vld1_u8(p), low = vand_u8(v, vdup_n_u8(15)), high = vshr_n_u8(v, 4);
    return vcombine_u8(vzip1_u8(low, high), vzip2_u8(low, high));
}

// The top four bits of 8 words at a stride.
TN_INLINE uint8x8_t tops_of_words(const uint8_t *p, int stride)
{
    uint64_t v = 0;
    TN_UNROLL
    for (int g = 0; g < 8; g++) v |= (uint64_t)(p[g * stride + 3] >> 4) << 8 * g;
    return vcreate_u8(v);
}

// --- IQ2 --------------------------------------------------------------------------------------------------

TN_INLINE void iq2_xxs_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        const uint8_t *rows = w + 2 + 8 * (4 * h + i / 2);
        uint32_t signs = tn_load_u32(rows + 4) >> 14 * (i % 2);
        uint8x16_t v = two_rows(tn_cpu_iq2xxs_rows, rows[i % 2 * 2], rows[i % 2 * 2 + 1]);
        u[i] = with_signs(v, tn_iq_signs(signs & 127u), tn_iq_signs(signs >> 7 & 127u), TN_IQ2_BIAS);
    }
}

TN_INLINE void iq2_xxs_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    odd_scales_8(tops_of_words(w + 6, 8), load_f16(w), 0.125f, scale);
}

TN_INLINE void iq2_xs_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        uint32_t a = tn_load_u16(w + 2 + 32 * h + 4 * i), b = tn_load_u16(w + 4 + 32 * h + 4 * i);
        uint8x16_t v = two_rows(tn_cpu_iq2xs_rows, a & 511u, b & 511u);
        u[i] = with_signs(v, tn_iq_signs(a >> 9), tn_iq_signs(b >> 9), TN_IQ2_BIAS);
    }
}

TN_INLINE void iq2_xs_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    odd_scales_16(nibbles_of_8(w + 66), load_f16(w), 0.125f, scale);
}

TN_INLINE void iq2_s_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        int r = 16 * h + 2 * i;
        uint32_t high = (uint32_t)w[66 + r / 4] << (8 - i % 2 * 4);
        uint32_t a = w[2 + r] | (high & 0x300), b = w[3 + r] | (high >> 2 & 0x300);
        u[i] = with_signs(two_rows(tn_cpu_iq2s_rows, a, b), w[34 + r], w[35 + r], TN_IQ2_BIAS);
    }
}

TN_INLINE void iq2_s_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    odd_scales_16(nibbles_of_8(w + 74), load_f16(w), 0.125f, scale);
}

// --- IQ3 --------------------------------------------------------------------------------------------------

TN_INLINE void iq3_xxs_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        const uint8_t *p = w + 2 + 32 * h + 4 * i;
        uint32_t n[4] = {p[0], p[1], p[2], p[3]};
        uint32_t signs = tn_load_u32(w + 66 + 4 * (4 * h + i / 2)) >> 14 * (i % 2);
        u[i] = with_signs(four_rows(tn_cpu_iq3xxs_rows, n), tn_iq_signs(signs & 127u),
                          tn_iq_signs(signs >> 7 & 127u), TN_IQ3XXS_BIAS);
    }
}

TN_INLINE void iq3_xxs_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    odd_scales_8(tops_of_words(w + 66, 4), load_f16(w), 0.25f, scale);
}

TN_INLINE void iq3_s_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        const uint8_t *p = w + 2 + 32 * h + 4 * i, *signs = w + 74 + 16 * h + 2 * i;
        uint32_t high = (uint32_t)w[66 + 4 * h + i / 2] << (8 - i % 2 * 4); // the ninth bits
        uint32_t n[4] = {p[0] | (high & 256u), p[1] | (high >> 1 & 256u), p[2] | (high >> 2 & 256u),
                         p[3] | (high >> 3 & 256u)};
        u[i] = with_signs(four_rows(tn_cpu_iq3s_rows, n), signs[0], signs[1], TN_IQ3S_BIAS);
    }
}

TN_INLINE void iq3_s_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    uint8x8_t v = vreinterpret_u8_u32(vdup_n_u32(tn_load_u32(w + 106)));
    v = vzip1_u8(vand_u8(v, vdup_n_u8(15)), vshr_n_u8(v, 4));
    odd_scales_8(v, load_f16(w), 1.0f, scale);
}

// --- IQ1 --------------------------------------------------------------------------------------------------

TN_INLINE void iq1_s_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        const uint8_t *p = w + 2 + 16 * h + 2 * i;
        uint32_t high = (uint32_t)tn_load_u16(w + 34 + 2 * (4 * h + i / 2)) << 8 >> 6 * (i % 2);
        u[i] = as_signed(two_rows(tn_cpu_iq1_rows, p[0] | (high & 0x700), p[1] | (high >> 3 & 0x700)));
    }
}

// value = scale * (code - 1 + shift), so all but the code is a minimum.
TN_INLINE void iq1_s_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    uint16x8_t h = vreinterpretq_u16_u8(load_u8(w + 34));
    odd_scales_8(vmovn_u16(vandq_u16(vshrq_n_u16(h, 12), vdupq_n_u16(7))), load_f16(w), 1.0f, scale);
    const float32x4_t plus = vdupq_n_f32(-0.875f), minus = vdupq_n_f32(-1.125f);
    uint16x8_t is_minus = vtstq_u16(h, vdupq_n_u16(0x8000));
    uint32x4_t low = vreinterpretq_u32_s32(vmovl_s16(vreinterpret_s16_u16(vget_low_u16(is_minus))));
    uint32x4_t high = vreinterpretq_u32_s32(vmovl_high_s16(vreinterpretq_s16_u16(is_minus)));
    min[0] = vmulq_f32(scale[0], vbslq_f32(low, minus, plus));
    min[1] = vmulq_f32(scale[1], vbslq_f32(high, minus, plus));
}

// As eighths: 8 (code - 1) + 1 or - 1, because the shift is that of 8 elements and the scale that of 16.
TN_INLINE void iq1_m_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        const uint8_t *p = w + 16 * h + 2 * i;
        uint32_t both = w[32 + 8 * h + i]; // nibbles: 3 bits of a number, 1 of sign
        uint8x16_t v = two_rows(tn_cpu_iq1_rows, p[0] | (both << 8 & 0x700), p[1] | (both << 4 & 0x700));
        uint8x16_t add = vcombine_u8(vdup_n_u8(both & 8u ? 0 : 2), vdup_n_u8(both & 128u ? 0 : 2));
        u[i] = as_signed(vaddq_u8(vshlq_n_u8(v, 3), add));
    }
}

TN_INLINE void iq1_m_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    uint8_t s[16];
    for (int i = 0; i < 4; i++) {
        uint32_t v = tn_load_u16(w + 48 + 2 * i);
        for (int j = 0; j < 4; j++) s[4 * i + j] = (uint8_t)(v >> 3 * j & 7u);
    }
    float32x4_t d = vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(tn_iq1m_scale(w))));
    odd_scales_16(vld1q_u8(s), d, 0.125f, scale);
}

// --- ternary ----------------------------------------------------------------------------------------------

// Top digits in base 3 of bytes times a power of 3: 3 v / 256.
TN_INLINE int8x16_t top_trits(uint8x16_t v, uint8x16_t powers)
{
    v = vmulq_u8(v, powers);
    uint8x16_t n = vaddq_u8(vcgeq_u8(v, vdupq_n_u8(86)), vcgeq_u8(v, vdupq_n_u8(171)));
    return vnegq_s8(as_signed(n));
}

// Digit n of 32 bytes, then of 16, then of 4.
TN_INLINE void tq1_0_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    static const uint8_t last[16] = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
    uint8x16_t a = load_u8(w), b = load_u8(w + 16), c = load_u8(w + 32);
    if (h == 0) {
        TN_UNROLL
        for (int n = 0; n < 4; n++) {
            u[2 * n] = top_trits(a, vdupq_n_u8(powers[n]));
            u[2 * n + 1] = top_trits(b, vdupq_n_u8(powers[n]));
        }
        return;
    }
    u[0] = top_trits(a, vdupq_n_u8(81));
    u[1] = top_trits(b, vdupq_n_u8(81));
    TN_UNROLL
    for (int n = 0; n < 5; n++) u[2 + n] = top_trits(c, vdupq_n_u8(powers[n]));
    u[7] = top_trits(vreinterpretq_u8_u32(vdupq_n_u32(tn_load_u32(w + 48))), vld1q_u8(last));
}

TN_INLINE void tq1_0_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    scale[0] = scale[1] = load_f16(w + 52);
}

TN_INLINE void tq2_0_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    unpack_planes(w + 32 * h, u);
}

TN_INLINE void tq2_0_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    scale[0] = scale[1] = load_f16(w + 64);
}

// --- bits and pairs of bits in the order of the elements --------------------------------------------------

// Blocks of 128: a scale, and a bit for each element, which becomes 0 or 2.
TN_INLINE void q1_0_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    const uint8_t *p = w + 18 * h + 2;
    TN_UNROLL
    for (int i = 0; i < 8; i++)
        u[i] = as_signed(vandq_u8(bytes_of_bits(p[2 * i], p[2 * i + 1]), vdupq_n_u8(2)));
}

TN_INLINE void q1_0_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    scale[0] = load_f16(w);
    scale[1] = load_f16(w + 18);
}

// Blocks of 64: a scale, and a byte for each four elements.
TN_INLINE void q2_0_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    static const uint8_t first[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    static const int8_t down[16] = {0, -2, -4, -6, 0, -2, -4, -6, 0, -2, -4, -6, 0, -2, -4, -6};
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        uint8x16_t v = load_u8(w + 18 * (2 * h + i / 4) + 2);
        v = vqtbl1q_u8(v, vaddq_u8(vld1q_u8(first), vdupq_n_u8((uint8_t)(i % 4 * 4))));
        u[i] = as_signed(vandq_u8(vshlq_u8(v, vld1q_s8(down)), vdupq_n_u8(3)));
    }
}

TN_INLINE void q2_0_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    float32x4_t d = vcvt_f32_f16(vreinterpret_f16_u16(load_4_u16(w, 18))); // each for two sub-blocks
    scale[0] = vzip1q_f32(d, d);
    scale[1] = vzip2q_f32(d, d);
}

// --- NVFP4 ------------------------------------------------------------------------------------------------

// Blocks of 64: four scales, and 8 bytes for each 16 elements, whose low nibbles are the first 8.
TN_INLINE void nvfp4_unpack(const uint8_t *w, int h, int8x16_t *u)
{
    TN_UNROLL
    for (int i = 0; i < 8; i++) {
        uint8x8_t v = vld1_u8(w + 36 * (2 * h + i / 4) + 4 + 8 * (i % 4));
        u[i] = as_signed(vcombine_u8(vand_u8(v, vdup_n_u8(15)), vshr_n_u8(v, 4)));
    }
    look_up(fp4_values(), u);
}

// Half of E4M3 without a sign: as a half float, whose exponent has one bit more and a bias of 15, times 2^7.
TN_INLINE void nvfp4_scales(const uint8_t *w, float32x4_t *scale, float32x4_t *min)
{
    TN_UNUSED(min);
    const uint8x8_t none = vdup_n_u8(0x7f); // no number reads as 0
    TN_UNROLL
    for (int i = 0; i < 2; i++) {
        uint8x8_t v = vcreate_u8(tn_load_u32(w + 72 * i) | (uint64_t)tn_load_u32(w + 72 * i + 36) << 32);
        v = vand_u8(v, none);
        uint16x8_t half = vshll_n_u8(vbic_u8(v, vceq_u8(v, none)), 7);
        float32x4_t a = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(half)));
        float32x4_t b = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(half)));
        scale[2 * i] = vmulq_n_f32(a, 128.0f);
        scale[2 * i + 1] = vmulq_n_f32(b, 128.0f);
    }
}

#endif
