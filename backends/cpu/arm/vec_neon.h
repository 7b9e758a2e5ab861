// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Vectors of four f32 for the NEON that every aarch64 processor has; the meaning of each function is in
// c/vec_generic.h.
#ifndef TN_CPU_VEC_NEON_H
#define TN_CPU_VEC_NEON_H

#include "core/compiler.h"
#include "core/fp16.h"

#include <arm_neon.h>
#include <math.h>
#include <stdbool.h>

#define VEC_N          4
#define VEC_NAME(base) tn_##base##_neon

// 24 accumulators, two vectors of b and one of a: of 32 registers.
#define VEC_ROWS        12
#define VEC_REP_ROWS(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)

typedef float32x4_t vf;
typedef uint32x4_t vm;

typedef struct vd {
    float64x2_t lo, hi;
} vd;

TN_INLINE vf vf_set1(float x)
{
    return vdupq_n_f32(x);
}

TN_INLINE vf vf_zero(void)
{
    return vdupq_n_f32(0.0f);
}

TN_INLINE vf vf_load(const float *p)
{
    return vld1q_f32(p);
}

TN_INLINE void vf_store(float *p, vf a)
{
    vst1q_f32(p, a);
}

TN_INLINE vf vf_iota(void)
{
    static const float iota[4] = {0.0f, 1.0f, 2.0f, 3.0f};
    return vld1q_f32(iota);
}

TN_INLINE vf vf_load_n(const float *p, int64_t n)
{
    float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int64_t i = 0; i < n; i++) v[i] = p[i];
    return vld1q_f32(v);
}

TN_INLINE void vf_store_n(float *p, vf a, int64_t n)
{
    float v[4];
    vst1q_f32(v, a);
    for (int64_t i = 0; i < n; i++) p[i] = v[i];
}

TN_INLINE vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}

TN_INLINE vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}

TN_INLINE vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}

TN_INLINE vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}

// FMAX and FMIN would give NaN if either is one.
TN_INLINE vf vf_max(vf a, vf b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

TN_INLINE vf vf_min(vf a, vf b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

TN_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

TN_INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return vfmsq_f32(c, a, b);
}

TN_INLINE vm vm_lt(vf a, vf b)
{
    return vcltq_f32(a, b);
}

TN_INLINE vm vm_le(vf a, vf b)
{
    return vcleq_f32(a, b);
}

TN_INLINE vm vm_eq(vf a, vf b)
{
    return vceqq_f32(a, b);
}

TN_INLINE vm vm_and(vm a, vm b)
{
    return vandq_u32(a, b);
}

TN_INLINE bool vm_any(vm a)
{
    return vmaxvq_u32(a) != 0;
}

TN_INLINE vf vf_select(vm m, vf a, vf b)
{
    return vbslq_f32(m, a, b);
}

TN_INLINE vf vf_abs(vf a)
{
    return vabsq_f32(a);
}

TN_INLINE vf vf_sqrt(vf a)
{
    return vsqrtq_f32(a);
}

TN_INLINE vf vf_copysign(vf a, vf b)
{
    return vbslq_f32(vdupq_n_u32(0x80000000u), b, a);
}

TN_INLINE vf vf_round(vf a)
{
    return vrndnq_f32(a);
}

TN_INLINE vf vf_trunc(vf a)
{
    return vrndq_f32(a);
}

TN_INLINE vf vec_power2(int32x4_t e)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(e, vdupq_n_s32(127)), 23));
}

TN_INLINE vf vf_scale2(vf a, vf n)
{
    int32x4_t e = vcvtnq_s32_f32(n), half = vshrq_n_s32(e, 1);
    return vf_mul(vf_mul(a, vec_power2(half)), vec_power2(vsubq_s32(e, half)));
}

TN_INLINE vf vf_frexp(vf a, vf *e)
{
    int32x4_t u = vreinterpretq_s32_f32(a);
    int32x4_t k = vshrq_n_s32(vsubq_s32(u, vdupq_n_s32(0x3f3504f3)), 23);
    *e = vcvtq_f32_s32(k);
    return vreinterpretq_f32_s32(vsubq_s32(u, vshlq_n_s32(k, 23)));
}

TN_INLINE float vf_sum(vf a)
{
    float32x2_t b = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(vpadd_f32(b, b), 0);
}

TN_INLINE float vf_hmax(vf a)
{
    vf b = vf_max(a, vextq_f32(a, a, 2));
    return vgetq_lane_f32(vf_max(b, vextq_f32(b, b, 1)), 0);
}

TN_INLINE vf vf_swap_pairs(vf a)
{
    return vrev64q_f32(a);
}

TN_INLINE uint16x4_t vec_load_u16(const uint8_t *p)
{
    return vreinterpret_u16_u8(vld1_u8(p));
}

TN_INLINE vf vf_load_f16(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vec_load_u16(p)));
}

TN_INLINE vf vf_set1_f16(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(tn_load_u16(p))));
}

TN_INLINE vf vf_load_bf16(const uint8_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vec_load_u16(p), 16));
}

TN_INLINE void vf_store_f16(uint8_t *p, vf a)
{
    vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32(a)));
}

TN_INLINE void vf_store_bf16(uint8_t *p, vf a)
{
    uint32x4_t u = vreinterpretq_u32_f32(a);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t near = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
    uint32x4_t quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
    uint32x4_t h = vbslq_u32(vceqq_f32(a, a), near, quiet);
    vst1_u8(p, vreinterpret_u8_u16(vshrn_n_u32(h, 16)));
}

// Four bytes as the low half of eight.
TN_INLINE uint8x8_t vec_load_u8(const uint8_t *p)
{
    return vcreate_u8(tn_load_u32(p));
}

TN_INLINE vf vec_widen_s8(int8x8_t q)
{
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(q))));
}

TN_INLINE vf vf_load_i8(const uint8_t *p)
{
    return vec_widen_s8(vreinterpret_s8_u8(vec_load_u8(p)));
}

TN_INLINE vf vf_load_low4(const uint8_t *p)
{
    uint8x8_t q = vand_u8(vec_load_u8(p), vdup_n_u8(15));
    return vec_widen_s8(vsub_s8(vreinterpret_s8_u8(q), vdup_n_s8(8)));
}

TN_INLINE vf vf_load_high4(const uint8_t *p)
{
    uint8x8_t q = vshr_n_u8(vec_load_u8(p), 4);
    return vec_widen_s8(vsub_s8(vreinterpret_s8_u8(q), vdup_n_s8(8)));
}

TN_INLINE void vf_store_i32(int32_t *p, vf a)
{
    vst1q_s32(p, vcvtq_s32_f32(a));
}

TN_INLINE vd vd_zero(void)
{
    return (vd){vdupq_n_f64(0.0), vdupq_n_f64(0.0)};
}

TN_INLINE vd vd_add(vd s, vf x)
{
    return (vd){vaddq_f64(s.lo, vcvt_f64_f32(vget_low_f32(x))), vaddq_f64(s.hi, vcvt_high_f64_f32(x))};
}

TN_INLINE vd vd_add_square(vd s, vf x, double c)
{
    float64x2_t lo = vsubq_f64(vcvt_f64_f32(vget_low_f32(x)), vdupq_n_f64(c));
    float64x2_t hi = vsubq_f64(vcvt_high_f64_f32(x), vdupq_n_f64(c));
    return (vd){vfmaq_f64(s.lo, lo, lo), vfmaq_f64(s.hi, hi, hi)};
}

TN_INLINE double vd_sum(vd s)
{
    return vpaddd_f64(vaddq_f64(s.lo, s.hi));
}

// Four columns of four rows
TN_INLINE void vec_transpose(vf a, vf b, vf c, vf d, vf *out)
{
    float64x2_t ab0 = vreinterpretq_f64_f32(vtrn1q_f32(a, b)), ab1 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
    float64x2_t cd0 = vreinterpretq_f64_f32(vtrn1q_f32(c, d)), cd1 = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
    out[0] = vreinterpretq_f32_f64(vtrn1q_f64(ab0, cd0));
    out[1] = vreinterpretq_f32_f64(vtrn1q_f64(ab1, cd1));
    out[2] = vreinterpretq_f32_f64(vtrn2q_f64(ab0, cd0));
    out[3] = vreinterpretq_f32_f64(vtrn2q_f64(ab1, cd1));
}

#define VEC_TRANSPOSE(row, dst, stride)                                                                      \
    do {                                                                                                     \
        vf out_[4];                                                                                          \
        vec_transpose(row(0), row(1), row(2), row(3), out_);                                                 \
        vf_store(dst, out_[0]);                                                                              \
        vf_store((dst) + (stride), out_[1]);                                                                 \
        vf_store((dst) + 2 * (stride), out_[2]);                                                             \
        vf_store((dst) + 3 * (stride), out_[3]);                                                             \
    } while (0)

#endif
