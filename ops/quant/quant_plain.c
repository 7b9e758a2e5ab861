// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Types with one value per element: floats of 16, 32 and 64 bits, integers of 8 to 64.
#include "ops/quant/quant_formats.h"

#include "core/compiler.h"

void tn_decode_F32(const void *x, float *y, int64_t n)
{
    memcpy(y, x, (size_t)n * sizeof *y);
}

void tn_encode_F32(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    memcpy(y, x, (size_t)n * sizeof *x);
}

void tn_decode_F16(const void *x, float *y, int64_t n)
{
    const uint8_t *p = x;
    for (int64_t i = 0; i < n; i++) y[i] = tn_load_f16(p + 2 * i);
}

void tn_encode_F16(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *p = y;
    for (int64_t i = 0; i < n; i++) tn_store_u16(p + 2 * i, tn_f32_to_f16(x[i]));
}

void tn_decode_BF16(const void *x, float *y, int64_t n)
{
    const uint8_t *p = x;
    for (int64_t i = 0; i < n; i++) y[i] = tn_bf16_to_f32(tn_load_u16(p + 2 * i));
}

void tn_encode_BF16(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *p = y;
    for (int64_t i = 0; i < n; i++) tn_store_u16(p + 2 * i, tn_f32_to_bf16(x[i]));
}

// A double outside of f32's range becomes an infinity here, by hand: C leaves the conversion undefined.
static float narrow(double v)
{
    const double limit = 3.4028235677973366e38; // halfway from the largest f32 to 2^128
    if (v >= limit) return INFINITY;
    if (v <= -limit) return -INFINITY;
    return (float)v;
}

void tn_decode_F64(const void *x, float *y, int64_t n)
{
    const uint8_t *p = x;
    for (int64_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, p + 8 * i, sizeof v);
        y[i] = narrow(v);
    }
}

// Unaligned loads: rows of files start where they start.
#define DECODE_INT(name, type)                                                                               \
    void tn_decode_##name(const void *x, float *y, int64_t n)                                                \
    {                                                                                                        \
        const uint8_t *p = x;                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            type v;                                                                                          \
            memcpy(&v, p + (size_t)i * sizeof v, sizeof v);                                                  \
            y[i] = (float)v;                                                                                 \
        }                                                                                                    \
    }

DECODE_INT(I8, int8_t)
DECODE_INT(I16, int16_t)
DECODE_INT(I32, int32_t)
DECODE_INT(I64, int64_t)
