// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Decoding of the K formats: blocks of 256 elements, in groups of 16 or 32 with small integer scales.
//
//   Q2_K  16 x (scale, min) nibbles, 64 B 2-bit planes, f16 d, f16 dmin   y = d * sc * q - dmin * mn
//   Q3_K  32 B high bits, 64 B 2-bit planes, 12 B scales, f16 d           y = d * sc * (q - 4)
//   Q4_K  f16 d, f16 dmin, 12 B scales and mins, 128 B nibbles            y = d * sc * q - dmin * mn
//   Q5_K  f16 d, f16 dmin, 12 B scales and mins, 32 B high bits, 128 B    y = d * sc * q - dmin * mn
//   Q6_K  128 B low nibbles, 64 B 2-bit planes, 16 i8 scales, f16 d       y = d * sc * (q - 32)
//   Q8_K  f32 d, 256 i8, 16 i16 sums of 16 (for activations)              y = d * q
//
// 2-bit planes: byte l of each 32-byte half holds elements l, l + 32, l + 64, l + 96 of that half of the
// block, lowest bits first.
#include "ops/quant/quant_formats.h"

enum { BLOCK = 256 };

void tn_decode_Q2_K(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 84) {
        float d = tn_load_f16(b + 80), d_min = tn_load_f16(b + 82);
        for (int g = 0; g < 16; g++, y += 16) {
            float scale = d * (float)(b[g] & 15), min = d_min * (float)(b[g] >> 4);
            const uint8_t *q = b + 16 + 32 * (g / 8) + 16 * (g % 2);
            int shift = 2 * (g % 8 / 2);
            for (int l = 0; l < 16; l++) y[l] = scale * (float)(q[l] >> shift & 3) - min;
        }
    }
}

// Scale of group g out of 12 bytes: low nibbles of 16 scales first, then their 2 high bits.
static int q3_scale(const uint8_t *k, int g)
{
    int low = g < 8 ? k[g] & 15 : k[g - 8] >> 4;
    return (low | (k[8 + g % 4] >> 2 * (g / 4) & 3) << 4) - 32;
}

void tn_decode_Q3_K(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 110) {
        float d = tn_load_f16(b + 108);
        for (int g = 0; g < 16; g++, y += 16) {
            float scale = d * (float)q3_scale(b + 96, g);
            const uint8_t *q = b + 32 + 32 * (g / 8) + 16 * (g % 2), *high = b + 16 * (g % 2);
            int shift = 2 * (g % 8 / 2), bit = g / 2;
            for (int l = 0; l < 16; l++) {
                y[l] = scale * (float)((q[l] >> shift & 3) + 4 * (high[l] >> bit & 1) - 4);
            }
        }
    }
}

// Scale and minimum of group g, 6 bits each, out of 12 bytes: those of groups 0..3 lie in the low bits of
// bytes 0..7, the others are split between bytes 8..11 and the two top bits.
static void q4_scale_min(const uint8_t *k, int g, int *scale, int *min)
{
    if (g < 4) {
        *scale = k[g] & 63;
        *min = k[g + 4] & 63;
    } else {
        *scale = (k[g + 4] & 15) | k[g - 4] >> 6 << 4;
        *min = k[g + 4] >> 4 | k[g] >> 6 << 4;
    }
}

void tn_decode_Q4_K(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 144) {
        float d = tn_load_f16(b), d_min = tn_load_f16(b + 2);
        for (int g = 0; g < 8; g++, y += 32) {
            int sc, mn, shift = 4 * (g % 2);
            q4_scale_min(b + 4, g, &sc, &mn);
            float scale = d * (float)sc, min = d_min * (float)mn;
            const uint8_t *q = b + 16 + 32 * (g / 2);
            for (int l = 0; l < 32; l++) y[l] = scale * (float)(q[l] >> shift & 15) - min;
        }
    }
}

void tn_decode_Q5_K(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 176) {
        float d = tn_load_f16(b), d_min = tn_load_f16(b + 2);
        for (int g = 0; g < 8; g++, y += 32) {
            int sc, mn, shift = 4 * (g % 2);
            q4_scale_min(b + 4, g, &sc, &mn);
            float scale = d * (float)sc, min = d_min * (float)mn;
            const uint8_t *q = b + 48 + 32 * (g / 2), *high = b + 16;
            for (int l = 0; l < 32; l++) {
                y[l] = scale * (float)((q[l] >> shift & 15) | (high[l] >> g & 1) << 4) - min;
            }
        }
    }
}

void tn_decode_Q6_K(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 210) {
        float d = tn_load_f16(b + 208);
        for (int g = 0; g < 16; g++, y += 16) {
            float scale = d * (float)(int8_t)b[192 + g];
            int half = g / 8, quarter = g % 8 / 2, l0 = 16 * (g % 2); // quarter: 32 elements of 128
            const uint8_t *low = b + 64 * half + 32 * (quarter % 2) + l0, *high = b + 128 + 32 * half + l0;
            int shift = 4 * (quarter / 2), bits = 2 * quarter;
            for (int l = 0; l < 16; l++) {
                y[l] = scale * (float)(((low[l] >> shift & 15) | (high[l] >> bits & 3) << 4) - 32);
            }
        }
    }
}

void tn_decode_Q8_K(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 292, y += BLOCK) {
        float d = tn_f32_from_bits(tn_load_u32(b));
        for (int j = 0; j < BLOCK; j++) y[j] = d * (float)(int8_t)b[4 + j];
    }
}
