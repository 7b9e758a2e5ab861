// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups of 256 weights of the codebook formats as integers and scales in portable C. The formats:
// ops/quant/quant_iq.c. Eight bytes of a grid are one integer here, so one operation negates all of them.
#include "backends/cpu/c/product/unpack.h"
#include "backends/cpu/grids.h"
#include "core/fp16.h"
#include "ops/quant_tables.h"

#include <string.h>

#define ALL_8(byte) ((byte)*0x0101010101010101ull)

// u for each byte whose bit of signs is not set, 2 * bias - u for the others; no byte is above 2 * bias.
static uint64_t with_signs(uint64_t u, uint32_t signs, uint64_t bias)
{
    uint64_t bits = ALL_8((uint64_t)(signs & 255u)) & 0x8040201008040201ull;
    uint64_t mask = ((bits + ALL_8(0x7full)) >> 7 & ALL_8(1ull)) * 255u;
    return (u & ~mask) | ((ALL_8(2 * bias) - u) & mask);
}

static uint64_t pair_of(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

// Elements 8 r to 8 r + 7 of the group, less the bias, which no byte is below: with the top bit set and
// cleared around it, no byte borrows from the next one.
static void put_8(tn_cpu_unpacked *u, int r, uint64_t bytes, uint64_t bias)
{
    const uint64_t top = ALL_8(0x80ull);
    bytes = ((bytes | top) - ALL_8(bias)) ^ top;
    for (int i = 0; i < 8; i++) u->q[8 * r + i] = (int8_t)(bytes >> 8 * i & 255); // one store
}

void tn_cpu_unpack_iq2_xxs(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b) * 0.25f;
    for (int g = 0; g < 8; g++) {
        const uint8_t *rows = b + 2 + 8 * g;
        uint32_t word = tn_load_u32(rows + 4);
        set_block(u, g, d * (0.5f + (float)(word >> 28)), 0.0f);
        for (int l = 0; l < 4; l++) {
            uint32_t signs = tn_iq_signs(word >> 7 * l & 127u);
            put_8(u, 4 * g + l, with_signs(tn_cpu_iq2xxs_rows[rows[l]], signs, TN_IQ2_BIAS), TN_IQ2_BIAS);
        }
    }
}

// Scales of IQ2_XS and IQ2_S: nibbles, one for each 16.
static void scales_iq2(const uint8_t *nibbles, float d, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 16; i++) {
        u->scale[i] = d * 0.25f * (0.5f + (float)(nibbles[i / 2] >> 4 * (i % 2) & 15));
        u->min[i] = 0.0f;
    }
}

void tn_cpu_unpack_iq2_xs(const uint8_t *b, tn_cpu_unpacked *u)
{
    scales_iq2(b + 66, tn_load_f16(b), u);
    for (int r = 0; r < 32; r++) {
        uint32_t v = tn_load_u16(b + 2 + 2 * r);
        put_8(u, r, with_signs(tn_cpu_iq2xs_rows[v & 511u], tn_iq_signs(v >> 9), TN_IQ2_BIAS), TN_IQ2_BIAS);
    }
}

void tn_cpu_unpack_iq2_s(const uint8_t *b, tn_cpu_unpacked *u)
{
    scales_iq2(b + 74, tn_load_f16(b), u);
    for (int r = 0; r < 32; r++) {
        uint32_t row = b[2 + r] | (b[66 + r / 4] >> 2 * (r % 4) & 3u) << 8;
        put_8(u, r, with_signs(tn_cpu_iq2s_rows[row], b[34 + r], TN_IQ2_BIAS), TN_IQ2_BIAS);
    }
}

void tn_cpu_unpack_iq3_xxs(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b) * 0.5f;
    for (int g = 0; g < 8; g++) {
        const uint8_t *rows = b + 2 + 8 * g;
        uint32_t word = tn_load_u32(b + 66 + 4 * g);
        set_block(u, g, d * (0.5f + (float)(word >> 28)), 0.0f);
        for (int l = 0; l < 4; l++) {
            uint64_t v = pair_of(tn_cpu_iq3xxs_rows[rows[2 * l]], tn_cpu_iq3xxs_rows[rows[2 * l + 1]]);
            uint32_t signs = tn_iq_signs(word >> 7 * l & 127u);
            put_8(u, 4 * g + l, with_signs(v, signs, TN_IQ3XXS_BIAS), TN_IQ3XXS_BIAS);
        }
    }
}

void tn_cpu_unpack_iq3_s(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b);
    for (int g = 0; g < 8; g++)
        set_block(u, g, d * (float)(1 + 2 * (b[106 + g / 2] >> 4 * (g % 2) & 15)), 0.0f);
    for (int r = 0; r < 32; r++) {
        uint32_t high = (uint32_t)b[66 + r / 4] >> 2 * (r % 4);
        uint32_t low_row = b[2 + 2 * r] | (high & 1u) << 8, high_row = b[3 + 2 * r] | (high & 2u) << 7;
        uint64_t v = pair_of(tn_cpu_iq3s_rows[low_row], tn_cpu_iq3s_rows[high_row]);
        put_8(u, r, with_signs(v, b[74 + r], TN_IQ3S_BIAS), TN_IQ3S_BIAS);
    }
}

// value = scale * (code - 1 + shift)
void tn_cpu_unpack_iq1_s(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b);
    for (int g = 0; g < 8; g++) {
        uint32_t h = tn_load_u16(b + 34 + 2 * g);
        float scale = d * (float)(2 * (h >> 12 & 7u) + 1);
        set_block(u, g, scale, scale * (h >> 15 ? -1.125f : -0.875f));
        for (int l = 0; l < 4; l++)
            put_8(u, 4 * g + l, tn_cpu_iq1_rows[b[2 + 4 * g + l] | (h >> 3 * l & 7u) << 8], 0);
    }
}

// As eighths, because the shift is that of 8 elements and the scale that of 16.
void tn_cpu_unpack_iq1_m(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_f16_to_f32(tn_iq1m_scale(b)) * 0.125f;
    for (int i = 0; i < 16; i++) {
        uint32_t s = tn_load_u16(b + 48 + 2 * (i / 4)) >> 3 * (i % 4) & 7u;
        u->scale[i] = d * (float)(2 * s + 1);
        u->min[i] = 0.0f;
    }
    for (int r = 0; r < 32; r++) {
        uint32_t nibble = b[32 + r / 2] >> 4 * (r % 2) & 15u;
        uint64_t row = tn_cpu_iq1_rows[b[r] | (nibble & 7u) << 8];
        put_8(u, r, row * 8 + (nibble & 8u ? 0 : ALL_8(2ull)), 9);
    }
}
