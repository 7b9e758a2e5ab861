// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar conversions between f32 and the 16-bit floats; exact rules: IEEE 754 binary16 with round to
// nearest even, bfloat16 with round to nearest even and quiet NaNs.
#ifndef TN_CORE_FP16_H
#define TN_CORE_FP16_H

#include <stdint.h>
#include <string.h>

static inline float tn_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t tn_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float tn_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exp = (h >> 10) & 0x1fu, man = h & 0x3ffu;
    if (exp == 0x1f) return tn_f32_from_bits(sign | 0x7f800000u | man << 13);
    if (exp != 0) return tn_f32_from_bits(sign | (exp + 112u) << 23 | man << 13);
    // Subnormal: man * 2^-24, exact in f32.
    float f = (float)man * 5.9604644775390625e-8f;
    return tn_f32_from_bits(sign | tn_f32_bits(f));
}

static inline uint16_t tn_f32_to_f16(float f)
{
    uint32_t u = tn_f32_bits(f), sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((u >> 13) & 0x1ffu)); // NaN stays NaN
    if (u >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);                       // rounds to >= 65520
    if (u < 0x38800000u) { // below 2^-14: subnormal or zero
        // Adding 0.5 puts the last bit of the value at 2^-24, with the hardware's rounding.
        float r = tn_f32_from_bits(u) + 0.5f;
        return (uint16_t)(sign | (tn_f32_bits(r) - 0x3f000000u));
    }
    uint32_t odd = (u >> 13) & 1u;
    return (uint16_t)(sign | ((u - 0x38000000u + 0xfffu + odd) >> 13));
}

static inline float tn_bf16_to_f32(uint16_t h)
{
    return tn_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t tn_f32_to_bf16(float f)
{
    uint32_t u = tn_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// Unaligned little-endian loads, for packed blocks and file bytes.
static inline uint16_t tn_load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t tn_load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void tn_store_u16(void *p, uint16_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline float tn_load_f16(const void *p)
{
    return tn_f16_to_f32(tn_load_u16(p));
}

#endif
