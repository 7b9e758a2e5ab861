// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Encoding of the K formats (layouts: quant_k.c). Three steps per block: each group's scale is searched,
// the scales are quantised over the block, and the codes are taken again from the scales as stored.
#include "ops/quant/quant_formats.h"
#include "ops/quant/quant_k_search.h"

#include "core/compiler.h"

enum { BLOCK = 256, GROUPS_MAX = 16 };

// The f16 that is stored for v, and the value it stands for.
static float store_scale(uint8_t *p, float v)
{
    uint16_t h = tn_f32_to_f16(v);
    tn_store_u16(p, h);
    return tn_f16_to_f32(h);
}

static void pack_planes2(const uint8_t *q, int shift, uint8_t *p)
{
    for (int j = 0; j < 64; j++) {
        const uint8_t *e = q + 128 * (j / 32) + j % 32;
        p[j] = (uint8_t)((e[0] >> shift & 3) | (e[32] >> shift & 3) << 2 | (e[64] >> shift & 3) << 4 |
                         (e[96] >> shift & 3) << 6);
    }
}

// --- Q2_K, Q4_K, Q5_K: scale and minimum -----------------------------------------------------------

// What differs between the three types.
typedef struct min_format {
    int group;                       // elements per group
    int scale_max;                   // largest code of a scale or minimum
    float sigma_factor;              // of the mean square, in importance weights
    tn_search_range plain, weighted; // without and with importance weights
} min_format;

static const min_format q2_format = {
    16, 15, 1.0f, {16, 3, -0.5f, 0.1f, 15, true}, {16, 3, -0.9f, 0.05f, 36, false}};
static const min_format q4_format = {
    32, 63, 2.0f, {32, 15, -1.0f, 0.1f, 20, false}, {32, 15, -0.9f, 0.05f, 36, false}};
static const min_format q5_format = {
    32, 63, 2.0f, {32, 31, -0.5f, 0.1f, 15, false}, {32, 31, -0.9f, 0.05f, 36, false}};

// A block on its way: element codes, and codes of scales and minima.
typedef struct min_block {
    uint8_t q[BLOCK], scale[GROUPS_MAX], min[GROUPS_MAX];
} min_block;

// Weights of one group without importance: |x|, and for squared errors also the group's magnitude.
static void default_weights(const min_format *f, const float *x, float *w)
{
    float level = f->plain.absolute ? 0.0f : sqrtf(tn_sum_squares(f->group, x) / (float)f->group);
    for (int i = 0; i < f->group; i++) w[i] = level + fabsf(x[i]);
}

// Codes of the groups' scales (or minima) and the common factor.
static float quantize_scales(const min_format *f, const float *v, const float *w, bool weighted, uint8_t *q)
{
    int n = BLOCK / f->group;
    if (weighted) return tn_search_positive(n, f->scale_max, v, w, q);
    float max = 0.0f;
    for (int g = 0; g < n; g++) max = v[g] > max ? v[g] : max;
    float inverse = max > 0.0f ? (float)f->scale_max / max : 0.0f;
    for (int g = 0; g < n; g++) q[g] = (uint8_t)tn_round_even(inverse * v[g], 0.0f, (float)f->scale_max);
    return max / (float)f->scale_max;
}

// Fills `out` and stores d and dmin.
static void encode_min_block(const min_format *f, const float *x, const float *a, min_block *out, uint8_t *d,
                             uint8_t *d_min)
{
    int n_groups = BLOCK / f->group;
    float scales[GROUPS_MAX] = {0}, mins[GROUPS_MAX] = {0}, group_weights[GROUPS_MAX] = {0};
    float sigma2 = f->sigma_factor * tn_sum_squares(BLOCK, x) / (float)BLOCK;
    for (int g = 0; g < n_groups; g++) {
        int at = g * f->group;
        float w[32], sum = 0.0f;
        if (a) {
            tn_importance(f->group, x + at, a + at, sigma2, w);
        } else {
            default_weights(f, x + at, w);
        }
        for (int i = 0; i < f->group; i++) sum += w[i];
        group_weights[g] = sum;
        scales[g] = tn_search_scale_min(a ? &f->weighted : &f->plain, x + at, w, out->q + at, &mins[g]);
    }
    float scale = store_scale(d, quantize_scales(f, scales, group_weights, a != NULL, out->scale));
    float min = store_scale(d_min, quantize_scales(f, mins, group_weights, a != NULL, out->min));
    for (int g = 0; g < n_groups; g++) {
        float e = scale * (float)out->scale[g], offset = min * (float)out->min[g];
        if (e == 0.0f) continue;
        for (int i = g * f->group; i < (g + 1) * f->group; i++) {
            out->q[i] = (uint8_t)tn_round_even((x[i] + offset) / e, 0.0f, (float)f->plain.n_max);
        }
    }
}

void tn_encode_Q2_K(const float *x, void *y, int64_t n, const float *weights)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 84) {
        min_block block;
        encode_min_block(&q2_format, x + i, weights ? weights + i : NULL, &block, b + 80, b + 82);
        for (int g = 0; g < 16; g++) b[g] = (uint8_t)(block.scale[g] | block.min[g] << 4);
        pack_planes2(block.q, 0, b + 16);
    }
}

static void pack_scales_mins(const min_block *block, uint8_t *k)
{
    const uint8_t *s = block->scale, *m = block->min;
    for (int g = 0; g < 4; g++) {
        k[g] = (uint8_t)(s[g] | s[g + 4] >> 4 << 6);
        k[g + 4] = (uint8_t)(m[g] | m[g + 4] >> 4 << 6);
        k[g + 8] = (uint8_t)((s[g + 4] & 15) | (m[g + 4] & 15) << 4);
    }
}

// Groups 2k below and 2k + 1 above in each run of 32 bytes.
static void pack_group_nibbles(const uint8_t *q, uint8_t *p)
{
    for (int j = 0; j < 128; j++) {
        const uint8_t *e = q + 64 * (j / 32) + j % 32;
        p[j] = (uint8_t)((e[0] & 15) | (e[32] & 15) << 4);
    }
}

void tn_encode_Q4_K(const float *x, void *y, int64_t n, const float *weights)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 144) {
        min_block block;
        encode_min_block(&q4_format, x + i, weights ? weights + i : NULL, &block, b, b + 2);
        pack_scales_mins(&block, b + 4);
        pack_group_nibbles(block.q, b + 16);
    }
}

void tn_encode_Q5_K(const float *x, void *y, int64_t n, const float *weights)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 176) {
        min_block block;
        encode_min_block(&q5_format, x + i, weights ? weights + i : NULL, &block, b, b + 2);
        pack_scales_mins(&block, b + 4);
        for (int l = 0; l < 32; l++) {
            uint32_t high = 0;
            for (int g = 0; g < 8; g++) high |= (uint32_t)(block.q[32 * g + l] >> 4 & 1) << g;
            b[16 + l] = (uint8_t)high;
        }
        pack_group_nibbles(block.q, b + 48);
    }
}

// --- Q3_K, Q6_K: scale only ------------------------------------------------------------------------

// Codes again, from the scales as stored; a scale of zero leaves those of the search.
static void requantize(int n_max, const float *x, float d, const int8_t *scale, int8_t *q)
{
    for (int g = 0; g < 16; g++) {
        float e = d * (float)scale[g];
        if (e == 0.0f) continue;
        for (int i = 16 * g; i < 16 * g + 16; i++) {
            q[i] = (int8_t)tn_round_even(x[i] / e, (float)-n_max, (float)(n_max - 1));
        }
    }
}

// Group scales of Q3_K and codes for them in [-32, 31]; returns d.
static float q3_scales(const float *x, const float *a, int8_t *q, int8_t *scale)
{
    float scales[16], group_weights[16], sigma2 = 2.0f * tn_sum_squares(BLOCK, x) / (float)BLOCK;
    for (int g = 0; g < 16; g++) {
        int at = 16 * g;
        if (!a) {
            scales[g] = tn_search_refine(16, 4, x + at, q + at);
            continue;
        }
        float w[16], sum = 0.0f;
        tn_importance(16, x + at, a + at, sigma2, w);
        for (int i = 0; i < 16; i++) sum += w[i];
        group_weights[g] = sum;
        scales[g] = tn_search_symmetric(16, 4, x + at, w, q + at);
    }
    if (a) return tn_search_symmetric(16, 32, scales, group_weights, scale);
    float max = tn_signed_max(16, scales), inverse = max != 0.0f ? -32.0f / max : 0.0f;
    for (int g = 0; g < 16; g++) scale[g] = (int8_t)tn_round_even(inverse * scales[g], -32.0f, 31.0f);
    return max != 0.0f ? 1.0f / inverse : 0.0f;
}

void tn_encode_Q3_K(const float *x, void *y, int64_t n, const float *weights)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 110) {
        int8_t q[BLOCK], scale[16];
        uint8_t codes[BLOCK];
        float d = store_scale(b + 108, q3_scales(x + i, weights ? weights + i : NULL, q, scale));
        requantize(4, x + i, d, scale, q);
        memset(b, 0, 32);
        for (int j = 0; j < BLOCK; j++) {
            codes[j] = (uint8_t)(q[j] + 4);
            b[j % 32] |= (uint8_t)((codes[j] >> 2) << (j / 32));
        }
        pack_planes2(codes, 0, b + 32);
        memset(b + 96, 0, 12);
        for (int g = 0; g < 16; g++) {
            uint32_t s = (uint32_t)(scale[g] + 32);
            b[96 + g % 8] |= (uint8_t)((s & 15) << 4 * (g / 8));
            b[104 + g % 4] |= (uint8_t)((s >> 4) << 2 * (g / 4));
        }
    }
}

void tn_encode_Q6_K(const float *x, void *y, int64_t n, const float *weights)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 210) {
        int8_t q[BLOCK], scale[16];
        uint8_t codes[BLOCK];
        float scales[16];
        for (int g = 0; g < 16; g++) {
            const float *w = weights ? weights + i + 16 * g : NULL;
            scales[g] = tn_search_symmetric(16, 32, x + i + 16 * g, w, q + 16 * g);
        }
        float max = tn_signed_max(16, scales);
        if (fabsf(max) < TN_SEARCH_EPS) {
            memset(b, 0, 210);
            continue;
        }
        float inverse = -128.0f / max;
        for (int g = 0; g < 16; g++) scale[g] = (int8_t)tn_round_even(inverse * scales[g], -128.0f, 127.0f);
        requantize(32, x + i, store_scale(b + 208, 1.0f / inverse), scale, q);
        for (int j = 0; j < BLOCK; j++) codes[j] = (uint8_t)(q[j] + 32);
        for (int j = 0; j < 128; j++) { // quarters 0, 1 below and 2, 3 above in each half
            const uint8_t *e = codes + 128 * (j / 64) + j % 64;
            b[j] = (uint8_t)((e[0] & 15) | (e[64] & 15) << 4);
        }
        pack_planes2(codes, 4, b + 128);
        for (int g = 0; g < 16; g++) b[192 + g] = (uint8_t)scale[g];
    }
}

// --- Q8_K ------------------------------------------------------------------------------------------

void tn_encode_Q8_K(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 292) {
        float max = tn_signed_max(BLOCK, x + i);
        float inverse = max != 0.0f ? -127.0f / max : 0.0f, d = max != 0.0f ? 1.0f / inverse : 0.0f;
        memcpy(b, &d, sizeof d);
        for (int g = 0; g < 16; g++) {
            int32_t sum = 0;
            for (int j = 16 * g; j < 16 * g + 16; j++) {
                int32_t q = tn_round_even(inverse * x[i + j], -128.0f, 127.0f);
                b[4 + j] = (uint8_t)q;
                sum += q;
            }
            tn_store_u16(b + 260 + 2 * g, (uint16_t)sum);
        }
    }
}
