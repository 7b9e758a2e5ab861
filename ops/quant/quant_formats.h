// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Row converters of all formats, and the rounding rules that they share. Names carry the type as it stands
// in dtypes.def: tn_decode_Q4_K, tn_encode_Q4_K.
//
// Encoders accept every float without undefined behaviour, but infinities and NaNs may vanish in block
// types: check sources first, tn_quant_row_valid(TN_TYPE_F32, ..).
// With importance weights one call must be one row, because some types scale them by the row's mean square.
#ifndef TN_OPS_QUANT_FORMATS_H
#define TN_OPS_QUANT_FORMATS_H

#include "core/fp16.h"
#include "ops/quant.h"

#include <math.h>

// Types that quant.c reads only have no encoder.
#define TN_DTYPE(name, block, bytes, file_id)                                                                \
    void tn_decode_##name(const void *x, float *y, int64_t n);                                               \
    void tn_encode_##name(const float *x, void *y, int64_t n, const float *weights);
#include <tenon/dtypes.def>

// NaN becomes lo.
static inline float tn_clampf(float x, float lo, float hi)
{
    x = x > lo ? x : lo;
    return x < hi ? x : hi;
}

// Nearest integer in [lo, hi], ties to even; |lo|, |hi| < 2^22. Adding 1.5 * 2^23 leaves the integer in the
// low mantissa bits, rounded by the hardware: several times faster than a library call, and vectorisable.
static inline int32_t tn_round_even(float x, float lo, float hi)
{
    return (int32_t)(tn_f32_bits(tn_clampf(x, lo, hi) + 12582912.0f) - 0x4b400000u);
}

// Nearest integer in [lo, hi], ties away from zero.
static inline int32_t tn_round_away(float x, float lo, float hi)
{
    x = tn_clampf(x, lo, hi);
    int32_t t = (int32_t)x;
    float rest = x - (float)t; // exact
    return t + (rest >= 0.5f) - (rest <= -0.5f);
}

// The signed value of largest magnitude, the first one if several.
static inline float tn_signed_max(int n, const float *x)
{
    float amax = 0.0f, max = 0.0f;
    for (int i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        if (a > amax) {
            amax = a;
            max = x[i];
        }
    }
    return max;
}

static inline float tn_abs_max(int n, const float *x)
{
    float amax = 0.0f;
    for (int i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        amax = a > amax ? a : amax;
    }
    return amax;
}

static inline float tn_sum_squares(int64_t n, const float *x)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

// Weights of the squared error from mean squared activations a: a large value of x matters more, but not
// more than the noise sigma2 of its neighbourhood suggests.
static inline void tn_importance(int n, const float *x, const float *a, float sigma2, float *w)
{
    for (int i = 0; i < n; i++) w[i] = a[i] * sqrtf(sigma2 + x[i] * x[i]);
}

#endif
