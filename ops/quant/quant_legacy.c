// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks of 32 elements with one scale (Q4_0, Q5_0, Q8_0), a scale and a minimum (Q4_1, Q5_1), or a scale
// and the sum of the block (Q8_1, for activations).
//
//   Q4_0  f16 d, 16 bytes of nibbles            y = d * (q - 8)
//   Q4_1  f16 d, f16 m, 16 bytes of nibbles     y = d * q + m
//   Q5_0  f16 d, u32 high bits, 16 bytes        y = d * (q - 16)
//   Q5_1  f16 d, f16 m, u32 high bits, 16 bytes y = d * q + m
//   Q8_0  f16 d, 32 i8                          y = d * q
//   Q8_1  f16 d, f16 d * sum(q), 32 i8          y = d * q
//
// Byte j of the nibbles holds element j below and element j + 16 above.
#include "ops/quant/quant_formats.h"
#include "ops/quant/quant_k_search.h"

#include "core/compiler.h"

enum { BLOCK = 32, HALF = 16 };

void tn_decode_Q4_0(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 18, y += BLOCK) {
        float d = tn_load_f16(b);
        for (int j = 0; j < HALF; j++) {
            y[j] = d * (float)((b[2 + j] & 15) - 8);
            y[j + HALF] = d * (float)((b[2 + j] >> 4) - 8);
        }
    }
}

void tn_decode_Q4_1(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 20, y += BLOCK) {
        float d = tn_load_f16(b), m = tn_load_f16(b + 2);
        for (int j = 0; j < HALF; j++) {
            y[j] = d * (float)(b[4 + j] & 15) + m;
            y[j + HALF] = d * (float)(b[4 + j] >> 4) + m;
        }
    }
}

void tn_decode_Q5_0(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 22, y += BLOCK) {
        float d = tn_load_f16(b);
        uint32_t high = tn_load_u32(b + 2);
        for (int j = 0; j < HALF; j++) {
            y[j] = d * (float)((int)((b[6 + j] & 15u) | (high >> j & 1u) << 4) - 16);
            y[j + HALF] = d * (float)((int)((b[6 + j] >> 4) | (high >> (j + HALF) & 1u) << 4) - 16);
        }
    }
}

void tn_decode_Q5_1(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 24, y += BLOCK) {
        float d = tn_load_f16(b), m = tn_load_f16(b + 2);
        uint32_t high = tn_load_u32(b + 4);
        for (int j = 0; j < HALF; j++) {
            y[j] = d * (float)(int)((b[8 + j] & 15u) | (high >> j & 1u) << 4) + m;
            y[j + HALF] = d * (float)(int)((b[8 + j] >> 4) | (high >> (j + HALF) & 1u) << 4) + m;
        }
    }
}

void tn_decode_Q8_0(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 34, y += BLOCK) {
        float d = tn_load_f16(b);
        for (int j = 0; j < BLOCK; j++) y[j] = d * (float)(int8_t)b[2 + j];
    }
}

void tn_decode_Q8_1(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 36, y += BLOCK) {
        float d = tn_load_f16(b);
        for (int j = 0; j < BLOCK; j++) y[j] = d * (float)(int8_t)b[4 + j];
    }
}

// --- writing ---------------------------------------------------------------------------------------

static void pack_nibbles(const uint8_t *q, uint8_t *p)
{
    for (int j = 0; j < HALF; j++) p[j] = (uint8_t)((q[j] & 15) | (q[j + HALF] & 15) << 4);
}

static void pack_fifth_bits(const uint8_t *q, uint8_t *p)
{
    uint32_t high = 0;
    for (int j = 0; j < BLOCK; j++) high |= (uint32_t)(q[j] >> 4 & 1) << j;
    memcpy(p, &high, sizeof high);
}

// q in [0, 2 * half), y = d * (q - half); the value of largest magnitude gets code 0 exactly. Returns d.
static float encode_symmetric(const float *x, const float *w, int half, uint8_t *q)
{
    if (w) {
        int8_t code[BLOCK];
        float d = tn_search_symmetric(BLOCK, half, x, w, code);
        for (int j = 0; j < BLOCK; j++) q[j] = (uint8_t)(code[j] + half);
        return d;
    }
    float d = tn_signed_max(BLOCK, x) / (float)-half;
    float id = d != 0.0f ? 1.0f / d : 0.0f, offset = (float)half + 0.5f;
    for (int j = 0; j < BLOCK; j++) {
        q[j] = (uint8_t)tn_clampf(x[j] * id + offset, 0.0f, (float)(2 * half - 1));
    }
    return d;
}

// q in [0, n_max], y = d * q + m. Returns d.
static float encode_with_min(const float *x, const float *w, int n_max, uint8_t *q, float *m)
{
    if (w) {
        const tn_search_range range = {BLOCK, n_max, -0.9f, 0.05f, 36, false};
        float d = tn_search_scale_min(&range, x, w, q, m);
        *m = -*m;
        return d;
    }
    float lo = x[0], hi = x[0];
    for (int j = 1; j < BLOCK; j++) {
        lo = x[j] < lo ? x[j] : lo;
        hi = x[j] > hi ? x[j] : hi;
    }
    float d = (hi - lo) / (float)n_max;
    float id = d != 0.0f ? 1.0f / d : 0.0f;
    for (int j = 0; j < BLOCK; j++) q[j] = (uint8_t)tn_clampf((x[j] - lo) * id + 0.5f, 0.0f, (float)n_max);
    *m = lo;
    return d;
}

// What differs between the four types: bytes, codes, whether there is a minimum and a fifth bit.
typedef struct legacy_format {
    int size, n_codes;
    bool has_min, has_fifth;
} legacy_format;

static void encode_rows(const legacy_format *f, const float *x, uint8_t *b, int64_t n, const float *weights)
{
    float sigma2 = weights ? tn_sum_squares(n, x) / (float)n : 0.0f;
    for (int64_t i = 0; i < n; i += BLOCK, b += f->size) {
        float w[BLOCK];
        uint8_t q[BLOCK];
        const float *use = weights ? w : NULL;
        if (weights) tn_importance(BLOCK, x + i, weights + i, sigma2, w);
        float d, m = 0.0f;
        uint8_t *p = b + 2;
        if (f->has_min) {
            d = encode_with_min(x + i, use, f->n_codes - 1, q, &m);
            tn_store_u16(p, tn_f32_to_f16(m));
            p += 2;
        } else {
            d = encode_symmetric(x + i, use, f->n_codes / 2, q);
        }
        tn_store_u16(b, tn_f32_to_f16(d));
        if (f->has_fifth) {
            pack_fifth_bits(q, p);
            p += 4;
        }
        pack_nibbles(q, p);
    }
}

void tn_encode_Q4_0(const float *x, void *y, int64_t n, const float *weights)
{
    encode_rows(&(legacy_format){18, 16, false, false}, x, y, n, weights);
}

void tn_encode_Q4_1(const float *x, void *y, int64_t n, const float *weights)
{
    encode_rows(&(legacy_format){20, 16, true, false}, x, y, n, weights);
}

void tn_encode_Q5_0(const float *x, void *y, int64_t n, const float *weights)
{
    encode_rows(&(legacy_format){22, 32, false, true}, x, y, n, weights);
}

void tn_encode_Q5_1(const float *x, void *y, int64_t n, const float *weights)
{
    encode_rows(&(legacy_format){24, 32, true, true}, x, y, n, weights);
}

// 32 codes of 8 bits; returns d, and the sum of the codes.
static float encode_i8(const float *x, uint8_t *q, int32_t *sum)
{
    float d = tn_abs_max(BLOCK, x) / 127.0f;
    float id = d != 0.0f ? 1.0f / d : 0.0f;
    *sum = 0;
    for (int j = 0; j < BLOCK; j++) {
        int32_t code = tn_round_away(x[j] * id, -127.0f, 127.0f);
        q[j] = (uint8_t)code;
        *sum += code;
    }
    return d;
}

void tn_encode_Q8_0(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 34) {
        int32_t sum;
        tn_store_u16(b, tn_f32_to_f16(encode_i8(x + i, b + 2, &sum)));
    }
}

void tn_encode_Q8_1(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 36) {
        int32_t sum;
        float d = encode_i8(x + i, b + 4, &sum);
        tn_store_u16(b, tn_f32_to_f16(d));
        tn_store_u16(b + 2, tn_f32_to_f16(d * (float)sum));
    }
}
