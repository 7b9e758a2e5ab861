// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Vectors of f32 in portable C: four lanes, written out so that compilers keep them in registers.
// x86/vec_avx2.h, x86/vec_avx512.h and arm/vec_neon.h have the same functions; a kernel file includes exactly
// one of the four and then the templates of its family.
//
//   vf       VEC_N lanes of f32; vm one truth value per lane; vd one double per lane, for sums
//   min, max return the second operand if one is NaN, as the x86 instructions do
//   _n       touch the first n <= VEC_N lanes only; loads give 0 in the others
//   round    nearest even; trunc toward zero; |x| < 2^22 or NaN for round
#ifndef TN_CPU_VEC_GENERIC_H
#define TN_CPU_VEC_GENERIC_H

#include "core/compiler.h"
#include "core/fp16.h"

#include <math.h>
#include <stdbool.h>

#define VEC_N          4
#define VEC_NAME(base) tn_##base##_generic

// Rows of the matrix micro-kernel (attention/gemm_tmpl.h): as many as two vectors each fit the registers.
#define VEC_ROWS        4
#define VEC_REP_ROWS(F) F(0) F(1) F(2) F(3)

typedef struct vf {
    float v[4];
} vf;

typedef struct vm {
    uint32_t v[4]; // all bits or none: selecting is then three bit operations, which compilers put in vectors
} vm;

typedef struct vd {
    double v[4];
} vd;

// e with i = 0, 1, 2, 3 in turn
#define VEC_EACH(e)                                                                                          \
    {                                                                                                        \
        {                                                                                                    \
            e(0), e(1), e(2), e(3)                                                                           \
        }                                                                                                    \
    }

TN_INLINE vf vf_set1(float x)
{
    return (vf){{x, x, x, x}};
}

TN_INLINE vf vf_zero(void)
{
    return vf_set1(0.0f);
}

TN_INLINE vf vf_iota(void)
{
    return (vf){{0.0f, 1.0f, 2.0f, 3.0f}};
}

TN_INLINE vf vf_load(const float *p)
{
    return (vf){{p[0], p[1], p[2], p[3]}};
}

TN_INLINE void vf_store(float *p, vf a)
{
    memcpy(p, a.v, sizeof a.v);
}

TN_INLINE vf vf_load_n(const float *p, int64_t n)
{
    vf a = vf_zero();
    for (int64_t i = 0; i < n; i++) a.v[i] = p[i];
    return a;
}

TN_INLINE void vf_store_n(float *p, vf a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) p[i] = a.v[i];
}

#define VEC_ARITHMETIC(name, op)                                                                             \
    TN_INLINE vf name(vf a, vf b)                                                                            \
    {                                                                                                        \
        return (vf){{a.v[0] op b.v[0], a.v[1] op b.v[1], a.v[2] op b.v[2], a.v[3] op b.v[3]}};               \
    }
VEC_ARITHMETIC(vf_add, +)
VEC_ARITHMETIC(vf_sub, -)
VEC_ARITHMETIC(vf_mul, *)
VEC_ARITHMETIC(vf_div, /)

#define VEC_COMPARE(name, op)                                                                                \
    TN_INLINE vm name(vf a, vf b)                                                                            \
    {                                                                                                        \
        return (vm){{0u - (uint32_t)(a.v[0] op b.v[0]), 0u - (uint32_t)(a.v[1] op b.v[1]),                   \
                     0u - (uint32_t)(a.v[2] op b.v[2]), 0u - (uint32_t)(a.v[3] op b.v[3])}};                 \
    }
VEC_COMPARE(vm_lt, <)
VEC_COMPARE(vm_le, <=)
VEC_COMPARE(vm_eq, ==)

TN_INLINE vm vm_and(vm a, vm b)
{
    return (vm){{a.v[0] & b.v[0], a.v[1] & b.v[1], a.v[2] & b.v[2], a.v[3] & b.v[3]}};
}

TN_INLINE bool vm_any(vm a)
{
    return (a.v[0] | a.v[1] | a.v[2] | a.v[3]) != 0;
}

// a where m, else b
TN_INLINE vf vf_select(vm m, vf a, vf b)
{
#define E(i) tn_f32_from_bits((tn_f32_bits(a.v[i]) & m.v[i]) | (tn_f32_bits(b.v[i]) & ~m.v[i]))
    return (vf)VEC_EACH(E);
#undef E
}

TN_INLINE vf vf_max(vf a, vf b)
{
#define E(i) a.v[i] > b.v[i] ? a.v[i] : b.v[i]
    return (vf)VEC_EACH(E);
#undef E
}

TN_INLINE vf vf_min(vf a, vf b)
{
    return vf_select(vm_lt(a, b), a, b);
}

// a * b + c; whether the product is rounded first differs between levels
TN_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vf_add(vf_mul(a, b), c);
}

// c - a * b
TN_INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return vf_sub(c, vf_mul(a, b));
}

TN_INLINE vf vf_abs(vf a)
{
#define E(i) fabsf(a.v[i])
    return (vf)VEC_EACH(E);
#undef E
}

TN_INLINE vf vf_sqrt(vf a)
{
#define E(i) sqrtf(a.v[i])
    return (vf)VEC_EACH(E);
#undef E
}

// Magnitude of a, sign of b
TN_INLINE vf vf_copysign(vf a, vf b)
{
#define E(i) copysignf(a.v[i], b.v[i])
    return (vf)VEC_EACH(E);
#undef E
}

TN_INLINE vf vf_round(vf a)
{
    vf magic = vf_set1(12582912.0f); // 1.5 * 2^23: the sum's last bit is worth 1
    return vf_sub(vf_add(a, magic), magic);
}

TN_INLINE vf vf_trunc(vf a)
{
#define E(i) fabsf(a.v[i]) < 8388608.0f ? (float)(int32_t)a.v[i] : a.v[i]
    return (vf)VEC_EACH(E);
#undef E
}

// a * 2^n, n whole in [-150, 130] or NaN if a is; two factors reach subnormal results and infinity.
TN_INLINE vf vf_scale2(vf a, vf n)
{
    // 1.5 * 2^23 + n has n in its low bits; 256 more keep the halves positive.
#define BITS(i) (tn_f32_bits(n.v[i] + 12582912.0f) - 0x4b400000u + 256u)
#define E(i)                                                                                                 \
    a.v[i] * tn_f32_from_bits((BITS(i) / 2 - 1) << 23) * tn_f32_from_bits((BITS(i) - BITS(i) / 2 - 1) << 23)
    return (vf)VEC_EACH(E);
#undef E
#undef BITS
}

// a = m * 2^e with m in [sqrt(1/2), sqrt(2)); a positive, normal, finite
TN_INLINE vf vf_frexp(vf a, vf *e)
{
    vf m;
    for (int i = 0; i < 4; i++) {
        uint32_t u = tn_f32_bits(a.v[i]);
        uint32_t k =
            ((u - 0x3f3504f3u + 0x40000000u) >> 23) - 128u; // floor of the logarithm, biased and back
        e->v[i] = (float)(int32_t)k;
        m.v[i] = tn_f32_from_bits(u - (k << 23));
    }
    return m;
}

// Lanes added as a tree: i with i + VEC_N / 2, and so on.
TN_INLINE float vf_sum(vf a)
{
    return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
}

TN_INLINE float vf_hmax(vf a)
{
    float x = a.v[0] > a.v[2] ? a.v[0] : a.v[2], y = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
    return x > y ? x : y;
}

// Lanes 2i and 2i + 1 exchanged
TN_INLINE vf vf_swap_pairs(vf a)
{
    return (vf){{a.v[1], a.v[0], a.v[3], a.v[2]}};
}

TN_INLINE vf vf_load_f16(const uint8_t *p)
{
#define E(i) tn_load_f16(p + 2 * (i))
    return (vf)VEC_EACH(E);
#undef E
}

// One f16 in all lanes
TN_INLINE vf vf_set1_f16(const uint8_t *p)
{
    return vf_set1(tn_load_f16(p));
}

TN_INLINE vf vf_load_bf16(const uint8_t *p)
{
#define E(i) tn_bf16_to_f32(tn_load_u16(p + 2 * (i)))
    return (vf)VEC_EACH(E);
#undef E
}

TN_INLINE void vf_store_f16(uint8_t *p, vf a)
{
    for (int i = 0; i < 4; i++) tn_store_u16(p + 2 * i, tn_f32_to_f16(a.v[i]));
}

TN_INLINE void vf_store_bf16(uint8_t *p, vf a)
{
    for (int i = 0; i < 4; i++) tn_store_u16(p + 2 * i, tn_f32_to_bf16(a.v[i]));
}

TN_INLINE vf vf_load_i8(const uint8_t *p)
{
#define E(i) (float)(int8_t)p[i]
    return (vf)VEC_EACH(E);
#undef E
}

// Low or high nibbles of VEC_N bytes, less 8
TN_INLINE vf vf_load_low4(const uint8_t *p)
{
#define E(i) (float)((p[i] & 15) - 8)
    return (vf)VEC_EACH(E);
#undef E
}

TN_INLINE vf vf_load_high4(const uint8_t *p)
{
#define E(i) (float)((p[i] >> 4) - 8)
    return (vf)VEC_EACH(E);
#undef E
}

// Whole numbers toward zero; |a| < 2^31
TN_INLINE void vf_store_i32(int32_t *p, vf a)
{
    for (int i = 0; i < 4; i++) p[i] = (int32_t)a.v[i];
}

TN_INLINE vd vd_zero(void)
{
    return (vd){{0.0, 0.0, 0.0, 0.0}};
}

TN_INLINE vd vd_add(vd s, vf x)
{
#define E(i) s.v[i] + (double)x.v[i]
    return (vd)VEC_EACH(E);
#undef E
}

// s + (x - c)^2
TN_INLINE vd vd_add_square(vd s, vf x, double c)
{
#define E(i) s.v[i] + ((double)x.v[i] - c) * ((double)x.v[i] - c)
    return (vd)VEC_EACH(E);
#undef E
}

TN_INLINE double vd_sum(vd s)
{
    return (s.v[0] + s.v[2]) + (s.v[1] + s.v[3]);
}

// Four lanes of each of four rows, transposed
TN_INLINE void vec_transpose_store(vf a, vf b, vf c, vf d, float *dst, int64_t stride)
{
    for (int i = 0; i < 4; i++) vf_store(dst + i * stride, (vf){{a.v[i], b.v[i], c.v[i], d.v[i]}});
}

// dst[j][i] = row(i)[j], VEC_N x VEC_N; row: macro that gives a vector; stride in floats
#define VEC_TRANSPOSE(row, dst, stride) vec_transpose_store(row(0), row(1), row(2), row(3), dst, stride)

#endif
