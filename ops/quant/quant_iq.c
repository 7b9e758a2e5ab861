// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Codebook formats of 1 to 3 bits: a group of 8 (or 4) elements is a row of a fixed grid, with signs apart.
// Blocks of 256; offset: content.
//
//   IQ2_XXS (66)  0: f16 d  2: per 32: 4 row bytes, u32 of 4 x 7 sign bits and 4 scale bits
//   IQ2_XS  (74)  0: f16 d  2: 32 u16 of 9 row and 7 sign bits  66: scale nibbles, one per 16
//   IQ2_S   (82)  0: f16 d  2: low row bytes  34: signs  66: 2 high row bits each  74: scale nibbles per 16
//   IQ3_XXS (98)  0: f16 d  2: 64 row bytes  66: per 32: u32 as in IQ2_XXS
//   IQ3_S   (110) 0: f16 d  2: 64 low row bytes  66: high row bits  74: signs  106: scale nibbles per 32
//   IQ1_S   (50)  0: f16 d  2: low row bytes  34: per 32: u16 of 4 x 3 high row bits, 3 scale bits, shift
//   IQ1_M   (56)  0: low row bytes  32: nibbles of 3 high row bits and shift  48: 4 u16 of 4 x 3 scale bits;
//                 their top nibbles are the f16 d, lowest nibble first
//
// There are no encoders: they would need a search over the grids, and most of them importance weights.
#include "ops/quant/quant_formats.h"
#include "ops/quant_tables.h"

enum { BLOCK = 256 };

// The fourth code does not occur.
static const int8_t levels_iq2[4] = {8, 25, 43, 0};
static const int8_t levels_iq3xxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
static const int8_t levels_iq3s[8] = {1, 3, 5, 7, 9, 11, 13, 15};

// 8 elements of a row of 2-bit codes.
static void put_row8(float scale, uint32_t row, uint32_t signs, float *y)
{
    for (int j = 0; j < 8; j++) {
        int v = levels_iq2[row >> 2 * j & 3u];
        y[j] = scale * (float)(signs >> j & 1u ? -v : v);
    }
}

// 4 elements of a row of 3-bit codes.
static void put_row4(float scale, const int8_t *levels, uint32_t row, uint32_t signs, float *y)
{
    for (int j = 0; j < 4; j++) {
        int v = levels[row >> 3 * j & 7u];
        y[j] = scale * (float)(signs >> j & 1u ? -v : v);
    }
}

// 8 elements of a row of -1, 0, 1 with a common shift.
static void put_ternary8(float scale, uint32_t row, float shift, float *y)
{
    for (int j = 0; j < 8; j++) y[j] = scale * ((float)((int)(row >> 2 * j & 3u) - 1) + shift);
}

void tn_decode_IQ2_XXS(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 66) {
        float d = tn_load_f16(b);
        for (int g = 0; g < 8; g++) {
            const uint8_t *rows = b + 2 + 8 * g;
            uint32_t word = tn_load_u32(rows + 4);
            float scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
            for (int l = 0; l < 4; l++, y += 8) {
                put_row8(scale, tn_iq2xxs_grid[rows[l]], tn_iq_signs(word >> 7 * l & 127u), y);
            }
        }
    }
}

void tn_decode_IQ2_XS(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 74) {
        float d = tn_load_f16(b);
        for (int r = 0; r < 32; r++, y += 8) {
            uint32_t v = tn_load_u16(b + 2 + 2 * r), s = b[66 + r / 4] >> 4 * (r / 2 % 2) & 15u;
            float scale = d * (0.5f + (float)s) * 0.25f;
            put_row8(scale, tn_iq2xs_grid[v & 511u], tn_iq_signs(v >> 9), y);
        }
    }
}

void tn_decode_IQ2_S(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 82) {
        float d = tn_load_f16(b);
        for (int r = 0; r < 32; r++, y += 8) {
            uint32_t row = b[2 + r] | (b[66 + r / 4] >> 2 * (r % 4) & 3u) << 8;
            uint32_t s = b[74 + r / 4] >> 4 * (r / 2 % 2) & 15u;
            put_row8(d * (0.5f + (float)s) * 0.25f, tn_iq2s_grid[row], b[34 + r], y);
        }
    }
}

void tn_decode_IQ3_XXS(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 98) {
        float d = tn_load_f16(b);
        for (int g = 0; g < 8; g++) {
            const uint8_t *rows = b + 2 + 8 * g;
            uint32_t word = tn_load_u32(b + 66 + 4 * g);
            float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
            for (int l = 0; l < 4; l++, y += 8) {
                uint32_t signs = tn_iq_signs(word >> 7 * l & 127u);
                put_row4(scale, levels_iq3xxs, tn_iq3xxs_grid[rows[2 * l]], signs, y);
                put_row4(scale, levels_iq3xxs, tn_iq3xxs_grid[rows[2 * l + 1]], signs >> 4, y + 4);
            }
        }
    }
}

void tn_decode_IQ3_S(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 110) {
        float d = tn_load_f16(b);
        for (int r = 0; r < 64; r++, y += 4) {
            uint32_t row = b[2 + r] | (b[66 + r / 8] >> r % 8 & 1u) << 8;
            uint32_t s = b[106 + r / 16] >> 4 * (r / 8 % 2) & 15u;
            put_row4(d * (float)(1 + 2 * s), levels_iq3s, tn_iq3s_grid[row], b[74 + r / 2] >> 4 * (r % 2), y);
        }
    }
}

void tn_decode_IQ1_S(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 50) {
        float d = tn_load_f16(b);
        for (int g = 0; g < 8; g++) {
            uint32_t h = tn_load_u16(b + 34 + 2 * g);
            float scale = d * (float)(2 * (h >> 12 & 7u) + 1), shift = h >> 15 ? -0.125f : 0.125f;
            for (int l = 0; l < 4; l++, y += 8) {
                uint32_t row = b[2 + 4 * g + l] | (h >> 3 * l & 7u) << 8;
                put_ternary8(scale, tn_iq1_grid[row], shift, y);
            }
        }
    }
}

void tn_decode_IQ1_M(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 56) {
        float d = tn_f16_to_f32(tn_iq1m_scale(b));
        for (int r = 0; r < 32; r++, y += 8) {
            uint32_t nibble = b[32 + r / 2] >> 4 * (r % 2) & 15u;
            uint32_t s = tn_load_u16(b + 48 + 2 * (r / 8)) >> 3 * (r / 2 % 4) & 7u;
            float shift = nibble & 8u ? -0.125f : 0.125f;
            put_ternary8(d * (float)(2 * s + 1), tn_iq1_grid[b[r] | (nibble & 7u) << 8], shift, y);
        }
    }
}
