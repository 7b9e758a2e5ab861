// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Four-bit codes into a fixed table of 16 values that follow the distribution of weights.
//
//   IQ4_NL (32)   f16 d, 16 bytes of nibbles (j below, j + 16 above)           y = d * table[q]
//   IQ4_XS (256)  f16 d, u16 high scale bits, 4 bytes low scale bits, 128 bytes of nibbles
//                 (IQ4_NL's order within each group of 32)                     y = d * (sc - 32) * table[q]
#include "ops/quant/quant_formats.h"
#include "ops/quant/quant_k_search.h"
#include "ops/quant_tables.h"

enum { GROUP = 32, BLOCK = 256, N_GROUPS = BLOCK / GROUP, N_TRIALS = 7 };

const int8_t tn_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static void decode_group(const uint8_t *restrict q, float d, float *y)
{
    for (int j = 0; j < GROUP / 2; j++) {
        y[j] = d * (float)tn_iq4_values[q[j] & 15];
        y[j + GROUP / 2] = d * (float)tn_iq4_values[q[j] >> 4];
    }
}

void tn_decode_IQ4_NL(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += GROUP, b += 18) decode_group(b + 2, tn_load_f16(b), y + i);
}

void tn_decode_IQ4_XS(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += BLOCK, b += 136) {
        float d = tn_load_f16(b);
        uint32_t high = tn_load_u16(b + 2);
        for (int g = 0; g < N_GROUPS; g++) {
            uint32_t s = (b[4 + g / 2] >> 4 * (g % 2) & 15u) | (high >> 2 * g & 3u) << 4;
            decode_group(b + 8 + 16 * g, d * (float)((int)s - 32), y + i + GROUP * g);
        }
    }
}

// --- writing ---------------------------------------------------------------------------------------

// Nearest table entry, the larger index on ties.
static uint32_t nearest_code(float x)
{
    static const float mid[15] = {-115.5f, -93.5f, -74.0f, -57.0f, -42.0f, -28.5f, -16.0f, -4.5f,
                                  7.0f,    19.0f,  31.5f,  45.5f,  61.0f,  79.0f,  101.0f};
    uint32_t k = x >= mid[7] ? 8 : 0;
    k += x >= mid[k + 3] ? 4u : 0u;
    k += x >= mid[k + 1] ? 2u : 0u;
    k += x >= mid[k] ? 1u : 0u;
    return k;
}

// sum(w x v)^2 / sum(w v^2) for the table values v nearest to inverse * x; the quotient of the sums is the
// best scale for them.
static float try_scale(const float *x, const float *w, float inverse, float *scale)
{
    float sum_xv = 0.0f, sum_vv = 0.0f;
    for (int j = 0; j < GROUP; j++) {
        float v = (float)tn_iq4_values[nearest_code(inverse * x[j])], wv = w[j] * v;
        sum_xv += wv * x[j];
        sum_vv += wv * v;
    }
    if (!(sum_vv > 0.0f)) return 0.0f;
    *scale = sum_xv / sum_vv;
    return *scale * sum_xv;
}

// Best scale of a group: the largest magnitude is tried at the lowest table value and around it.
static float search_scale(const float *x, const float *w)
{
    float max = tn_signed_max(GROUP, x), scale = 0.0f;
    if (fabsf(max) < TN_SEARCH_EPS) return 0.0f;
    float lowest = (float)tn_iq4_values[0];
    float best = try_scale(x, w, 1.0f / (-max / lowest), &scale);
    for (int t = -N_TRIALS; t <= N_TRIALS; t++) {
        float trial = 0.0f, gain = try_scale(x, w, ((float)t + lowest) / max, &trial);
        if (gain > best) {
            best = gain;
            scale = trial;
        }
    }
    return scale;
}

// Weights x^2, or from importance a.
static void group_weights(const float *x, const float *a, float sigma2, float *w)
{
    if (a) {
        tn_importance(GROUP, x, a, sigma2, w);
        return;
    }
    for (int j = 0; j < GROUP; j++) w[j] = x[j] * x[j];
}

static void pack_group(const float *x, float scale, uint8_t *q)
{
    float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    for (int j = 0; j < GROUP / 2; j++) {
        q[j] = (uint8_t)(nearest_code(inverse * x[j]) | nearest_code(inverse * x[j + GROUP / 2]) << 4);
    }
}

void tn_encode_IQ4_NL(const float *x, void *y, int64_t n, const float *weights)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += GROUP, b += 18) {
        float w[GROUP], sigma2 = 2.0f * tn_sum_squares(GROUP, x + i) / (float)GROUP;
        group_weights(x + i, weights ? weights + i : NULL, sigma2, w);
        float scale = search_scale(x + i, w);
        tn_store_u16(b, tn_f32_to_f16(scale));
        pack_group(x + i, scale, b + 2);
    }
}

void tn_encode_IQ4_XS(const float *x, void *y, int64_t n, const float *weights)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += BLOCK, b += 136) {
        float scales[N_GROUPS], sigma2 = 2.0f * tn_sum_squares(BLOCK, x + i) / (float)BLOCK;
        for (int g = 0; g < N_GROUPS; g++) {
            float w[GROUP];
            int64_t at = i + GROUP * g;
            group_weights(x + at, weights ? weights + at : NULL, sigma2, w);
            scales[g] = search_scale(x + at, w);
        }
        float d = tn_signed_max(N_GROUPS, scales) / -32.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
        uint32_t high = 0;
        memset(b + 4, 0, 4);
        for (int g = 0; g < N_GROUPS; g++) {
            int32_t s = tn_round_even(inverse * scales[g], -32.0f, 31.0f);
            pack_group(x + i + GROUP * g, d * (float)s, b + 8 + 16 * g);
            uint32_t code = (uint32_t)(s + 32);
            b[4 + g / 2] |= (uint8_t)((code & 15u) << 4 * (g % 2));
            high |= (code >> 4) << 2 * g;
        }
        tn_store_u16(b, tn_f32_to_f16(d));
        tn_store_u16(b + 2, (uint16_t)high);
    }
}
