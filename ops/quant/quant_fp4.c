// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Four-bit floats (E2M1: magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6) under small shared scales.
//
//   MXFP4 (32)  u8 e, 16 bytes of nibbles (j below, j + 16 above)      y = 2^(e - 127) * E2M1
//   NVFP4 (64)  4 scales UE4M3 for 16 elements each, 8 bytes of nibbles per 16 (j below, j + 8 above)
//                                                                      y = UE4M3 * E2M1
// (OCP Microscaling Formats specification 1.0.) The value table is doubled to stay integer, the scales
// halved. Importance weights are not used by these types.
#include "ops/quant/quant_formats.h"
#include "ops/quant_tables.h"

#include "core/compiler.h"

const int8_t tn_fp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128); subnormal for e = 0 and 1. 2^127 for e = 255, which files must not have.
static float half_e8m0(uint8_t e)
{
    return tn_f32_from_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

void tn_decode_MXFP4(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += 32, b += 17, y += 32) {
        float d = half_e8m0(b[0]);
        for (int j = 0; j < 16; j++) {
            y[j] = d * (float)tn_fp4_values[b[1 + j] & 15];
            y[j + 16] = d * (float)tn_fp4_values[b[1 + j] >> 4];
        }
    }
}

void tn_decode_NVFP4(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += 64, b += 36, y += 64) {
        for (int s = 0; s < 4; s++) {
            float d = tn_half_ue4m3(b[s]);
            const uint8_t *p = b + 4 + 8 * s;
            for (int j = 0; j < 8; j++) {
                y[16 * s + j] = d * (float)tn_fp4_values[p[j] & 15];
                y[16 * s + j + 8] = d * (float)tn_fp4_values[p[j] >> 4];
            }
        }
    }
}

// --- writing ---------------------------------------------------------------------------------------

// Nearest code, the smaller magnitude on ties: counts the midpoints below |x|. d * midpoint is exact, so
// this is the same as comparing the sixteen distances. d = 0 gives code 0.
static uint8_t nearest_fp4(float x, float d)
{
    static const float mid[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};
    float a = d > 0.0f ? fabsf(x) : 0.0f;
    uint32_t code = 0;
    for (int k = 0; k < 7; k++) code += a > d * mid[k];
    return (uint8_t)(code | (uint32_t)(x < 0.0f && code > 0) << 3);
}

// Exponent that brings amax between 4 and 8 on the doubled scale; 255 (invalid) for infinities.
static uint8_t e8m0_of(float amax)
{
    uint32_t bits = tn_f32_bits(amax);
    int e = (int)(bits >> 23) - 2; // floor(log2(amax)) + 127, less 2; subnormals end at 0
    if (bits >= 0x7f800000u) return 255;
    return (uint8_t)(e < 0 ? 0 : e);
}

void tn_encode_MXFP4(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += 32, b += 17) {
        b[0] = e8m0_of(tn_abs_max(32, x + i));
        float d = half_e8m0(b[0]);
        for (int j = 0; j < 16; j++) {
            b[1 + j] = (uint8_t)(nearest_fp4(x[i + j], d) | nearest_fp4(x[i + j + 16], d) << 4);
        }
    }
}

// Nearest UE4M3, ties up; at most 0x7e = 448, also for all from 256 on. 0xff (invalid) for infinities.
static uint8_t ue4m3_of(float x)
{
    if (!(x > 0.0f)) return 0;
    if (isinf(x)) return 0xff;
    if (x >= 256.0f) return 0x7e;
    uint32_t bits = tn_f32_bits(x);
    int exp = (int)(bits >> 23) - 127 + 7;
    if (exp <= 0) { // x < 2^-6
        float man = x * 512.0f + 0.5f;
        return (uint8_t)(man < 7.0f ? man : 7.0f);
    }
    uint32_t code = (uint32_t)exp << 3 | (bits >> 20 & 7u);
    code += bits >> 19 & 1u;
    return (uint8_t)(code >= 15u << 3 ? 0x7e : code);
}

void tn_encode_NVFP4(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += 64, b += 36) {
        for (int s = 0; s < 4; s++) {
            const float *v = x + i + 16 * s;
            uint8_t *p = b + 4 + 8 * s;
            b[s] = ue4m3_of(tn_abs_max(16, v) / 6.0f);
            float d = tn_half_ue4m3(b[s]);
            for (int j = 0; j < 8; j++) {
                p[j] = (uint8_t)(nearest_fp4(v[j], d) | nearest_fp4(v[j + 8], d) << 4);
            }
        }
    }
}
