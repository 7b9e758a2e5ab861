// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups of 256 weights as integers and scales in portable C, and the table of these functions. The formats:
// ops/quant/quant_*.c. Those of IQ1 to IQ3 are in unpack_grids.c.
#include "backends/cpu/c/product/unpack.h"

#include "core/fp16.h"
#include "ops/quant_tables.h"

#include <string.h>

// Nibbles of 32 elements: byte j holds element j below and j + 16 above.
static void nibbles(const uint8_t *p, int8_t *q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t)(p[i] & 15);
        q[i + 16] = (int8_t)(p[i] >> 4);
    }
}

static void fifth_bits(uint32_t h, int8_t *q)
{
    for (int i = 0; i < 32; i++) q[i] = (int8_t)(q[i] + ((h >> i & 1) << 4));
}

static void map_values(const int8_t *values, int8_t *q, int n)
{
    for (int i = 0; i < n; i++) q[i] = values[q[i]];
}

static void unpack_q4_0(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 18) {
        set_block(u, i, tn_load_f16(b), 0.0f);
        nibbles(b + 2, u->q + 32 * i);
    }
    add_all(u->q, -8);
}

static void unpack_q4_1(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 20) {
        set_block(u, i, tn_load_f16(b), tn_load_f16(b + 2));
        nibbles(b + 4, u->q + 32 * i);
    }
}

static void unpack_q5_0(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 22) {
        set_block(u, i, tn_load_f16(b), 0.0f);
        nibbles(b + 6, u->q + 32 * i);
        fifth_bits(tn_load_u32(b + 2), u->q + 32 * i);
    }
    add_all(u->q, -16);
}

static void unpack_q5_1(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 24) {
        set_block(u, i, tn_load_f16(b), tn_load_f16(b + 2));
        nibbles(b + 8, u->q + 32 * i);
        fifth_bits(tn_load_u32(b + 4), u->q + 32 * i);
    }
}

static void unpack_q8_0(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 34) {
        set_block(u, i, tn_load_f16(b), 0.0f);
        memcpy(u->q + 32 * i, b + 2, 32);
    }
}

static void unpack_iq4_nl(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 18) {
        set_block(u, i, tn_load_f16(b), 0.0f);
        nibbles(b + 2, u->q + 32 * i);
    }
    map_values(tn_iq4_values, u->q, TN_MATMUL_GROUP);
}

static void unpack_mxfp4(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 17) {
        uint32_t e = b[0]; // 2^(e - 128); below 2^-126 as a subnormal
        set_block(u, i, tn_f32_from_bits(e >= 2 ? (e - 1) << 23 : 0x200000u << e), 0.0f);
        nibbles(b + 1, u->q + 32 * i);
    }
    map_values(tn_fp4_values, u->q, TN_MATMUL_GROUP);
}

static void unpack_q2_k(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b + 80), dmin = tn_load_f16(b + 82);
    for (int i = 0; i < 256; i++) u->q[i] = (int8_t)(b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
    for (int i = 0; i < 16; i++) {
        u->scale[i] = d * (float)(b[i] & 15);
        u->min[i] = -dmin * (float)(b[i] >> 4);
    }
}

static void unpack_q3_k(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b + 108);
    const uint8_t *k = b + 96;
    for (int i = 0; i < 256; i++) {
        int low = b[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        u->q[i] = (int8_t)(low + (b[i % 32] >> (i / 32) & 1) * 4 - 4);
    }
    for (int i = 0; i < 16; i++) {
        int low = i < 8 ? k[i] & 15 : k[i - 8] >> 4;
        u->scale[i] = d * (float)(low + (k[8 + i % 4] >> (2 * (i / 4)) & 3) * 16 - 32);
        u->min[i] = 0.0f;
    }
}

// Scales and minima of Q4_K and Q5_K: d, dmin, then eight 6-bit pairs in 12 bytes.
static void scales_k(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b), dmin = tn_load_f16(b + 2);
    const uint8_t *k = b + 4;
    for (int g = 0; g < 8; g++) {
        int scale = g < 4 ? k[g] & 63 : (k[g + 4] & 15) + (k[g - 4] >> 6) * 16;
        int min = g < 4 ? k[g + 4] & 63 : (k[g + 4] >> 4) + (k[g] >> 6) * 16;
        set_block(u, g, d * (float)scale, -dmin * (float)min);
    }
}

static void unpack_q4_k(const uint8_t *b, tn_cpu_unpacked *u)
{
    scales_k(b, u);
    for (int i = 0; i < 256; i++) u->q[i] = (int8_t)(b[16 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15);
}

static void unpack_q5_k(const uint8_t *b, tn_cpu_unpacked *u)
{
    scales_k(b, u);
    for (int i = 0; i < 256; i++) {
        int low = b[48 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
        u->q[i] = (int8_t)(low + (b[16 + i % 32] >> (i / 32) & 1) * 16);
    }
}

static void unpack_q6_k(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b + 208);
    for (int i = 0; i < 256; i++) {
        int low = b[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        int high = b[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        u->q[i] = (int8_t)(low + high * 16 - 32);
    }
    for (int i = 0; i < 16; i++) {
        u->scale[i] = d * (float)(int8_t)b[192 + i];
        u->min[i] = 0.0f;
    }
}

static void unpack_iq4_xs(const uint8_t *b, tn_cpu_unpacked *u)
{
    float d = tn_load_f16(b);
    uint32_t high = tn_load_u16(b + 2);
    for (int g = 0; g < 8; g++) {
        int s = (b[4 + g / 2] >> (g % 2 * 4) & 15) + (int)(high >> (2 * g) & 3) * 16 - 32;
        set_block(u, g, d * (float)s, 0.0f);
        nibbles(b + 8 + 16 * g, u->q + 32 * g);
    }
    map_values(tn_iq4_values, u->q, TN_MATMUL_GROUP);
}

static void unpack_nvfp4(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 16; i++) {
        const uint8_t *block = b + i / 4 * 36, *p = block + 4 + i % 4 * 8;
        u->scale[i] = tn_half_ue4m3(block[i % 4]);
        u->min[i] = 0.0f;
        for (int j = 0; j < 8; j++) {
            u->q[16 * i + j] = (int8_t)(p[j] & 15);
            u->q[16 * i + 8 + j] = (int8_t)(p[j] >> 4);
        }
    }
    map_values(tn_fp4_values, u->q, TN_MATMUL_GROUP);
}

static void unpack_tq1_0(const uint8_t *b, tn_cpu_unpacked *u)
{
    static const struct {
        int byte, n_bytes, n_trits;
    } runs[] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};
    int8_t *q = u->q;
    for (size_t r = 0; r < TN_COUNT(runs); r++) {
        uint32_t power = 1;
        for (int t = 0; t < runs[r].n_trits; t++, power *= 3, q += runs[r].n_bytes)
            for (int i = 0; i < runs[r].n_bytes; i++)
                q[i] = (int8_t)((uint8_t)(b[runs[r].byte + i] * power) * 3 >> 8);
    }
    add_all(u->q, -1);
    for (int i = 0; i < 8; i++) set_block(u, i, tn_load_f16(b + 52), 0.0f);
}

static void unpack_tq2_0(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 256; i++) u->q[i] = (int8_t)(b[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
    add_all(u->q, -1);
    for (int i = 0; i < 8; i++) set_block(u, i, tn_load_f16(b + 64), 0.0f);
}

static void unpack_q1_0(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++) {
        const uint8_t *block = b + i / 4 * 18, *p = block + 2 + i % 4 * 4;
        set_block(u, i, tn_load_f16(block), 0.0f);
        for (int j = 0; j < 32; j++) u->q[32 * i + j] = (int8_t)((p[j / 8] >> j % 8 & 1) * 2 - 1);
    }
}

static void unpack_q2_0(const uint8_t *b, tn_cpu_unpacked *u)
{
    for (int i = 0; i < 8; i++) {
        const uint8_t *block = b + i / 2 * 18, *p = block + 2 + i % 2 * 8;
        set_block(u, i, tn_load_f16(block), 0.0f);
        for (int j = 0; j < 32; j++) u->q[32 * i + j] = (int8_t)((p[j / 4] >> 2 * (j % 4) & 3) - 1);
    }
}

const tn_cpu_unpack_fn tn_cpu_unpackers[TN_TYPE_COUNT] = {
    [TN_TYPE_Q4_0] = unpack_q4_0,
    [TN_TYPE_Q4_1] = unpack_q4_1,
    [TN_TYPE_Q5_0] = unpack_q5_0,
    [TN_TYPE_Q5_1] = unpack_q5_1,
    [TN_TYPE_Q8_0] = unpack_q8_0,
    [TN_TYPE_Q2_K] = unpack_q2_k,
    [TN_TYPE_Q3_K] = unpack_q3_k,
    [TN_TYPE_Q4_K] = unpack_q4_k,
    [TN_TYPE_Q5_K] = unpack_q5_k,
    [TN_TYPE_Q6_K] = unpack_q6_k,
    [TN_TYPE_IQ4_NL] = unpack_iq4_nl,
    [TN_TYPE_IQ4_XS] = unpack_iq4_xs,
    [TN_TYPE_MXFP4] = unpack_mxfp4,
    [TN_TYPE_NVFP4] = unpack_nvfp4,
    [TN_TYPE_TQ1_0] = unpack_tq1_0,
    [TN_TYPE_TQ2_0] = unpack_tq2_0,
    [TN_TYPE_Q1_0] = unpack_q1_0,
    [TN_TYPE_Q2_0] = unpack_q2_0,
    [TN_TYPE_IQ1_S] = tn_cpu_unpack_iq1_s,
    [TN_TYPE_IQ1_M] = tn_cpu_unpack_iq1_m,
    [TN_TYPE_IQ2_XXS] = tn_cpu_unpack_iq2_xxs,
    [TN_TYPE_IQ2_XS] = tn_cpu_unpack_iq2_xs,
    [TN_TYPE_IQ2_S] = tn_cpu_unpack_iq2_s,
    [TN_TYPE_IQ3_XXS] = tn_cpu_unpack_iq3_xxs,
    [TN_TYPE_IQ3_S] = tn_cpu_unpack_iq3_s,
};
