// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One scale, and values of -1, 0 and 1.
//
//   TQ1_0 (256)  48 bytes of five trits, 4 bytes of four trits, f16 d   y = d * (trit - 1)
//   TQ2_0 (256)  64 bytes of 2-bit codes, f16 d                         y = d * (code - 1)
//   Q1_0  (128)  f16 d, 16 bytes of bits                                y = bit ? d : -d
//   Q2_0  (64)   f16 d, 16 bytes of 2-bit codes                         y = d * (code - 1)
//
// A byte of trits is V * 256 / 243 rounded up, V the base-3 number of its digits, first digit most
// significant: multiplying by 3^n in 8 bits brings digit n to the top, where times 3 reads it off.
// Importance weights are not used by these types.
#include "ops/quant/quant_formats.h"

#include "core/compiler.h"

// Runs of TQ1_0: at byte `byte`, `n_bytes` bytes hold `n_trits` digits each; digit n of byte k is element
// first + n * n_bytes + k.
typedef struct trit_run {
    int byte, n_bytes, n_trits, first;
} trit_run;

static const trit_run trit_runs[] = {{0, 32, 5, 0}, {32, 16, 5, 160}, {48, 4, 4, 240}};

static const uint8_t powers_of_3[5] = {1, 3, 9, 27, 81};

void tn_decode_TQ1_0(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += 256, b += 54, y += 256) {
        float d = tn_load_f16(b + 52);
        for (size_t r = 0; r < TN_COUNT(trit_runs); r++) {
            const trit_run run = trit_runs[r];
            for (int t = 0; t < run.n_trits; t++) {
                float *out = y + run.first + t * run.n_bytes;
                for (int k = 0; k < run.n_bytes; k++) {
                    uint8_t v = (uint8_t)(b[run.byte + k] * powers_of_3[t]);
                    out[k] = d * (float)((v * 3 >> 8) - 1);
                }
            }
        }
    }
}

void tn_decode_TQ2_0(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += 256, b += 66, y += 256) {
        float d = tn_load_f16(b + 64);
        for (int g = 0; g < 8; g++) { // group of 32: byte half g / 4, bit pair g % 4
            for (int l = 0; l < 32; l++) {
                y[32 * g + l] = d * (float)((b[32 * (g / 4) + l] >> 2 * (g % 4) & 3) - 1);
            }
        }
    }
}

void tn_decode_Q1_0(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += 128, b += 18, y += 128) {
        float d = tn_load_f16(b);
        for (int j = 0; j < 128; j++) y[j] = b[2 + j / 8] >> j % 8 & 1 ? d : -d;
    }
}

void tn_decode_Q2_0(const void *x, float *y, int64_t n)
{
    const uint8_t *restrict b = x;
    for (int64_t i = 0; i < n; i += 64, b += 18, y += 64) {
        float d = tn_load_f16(b);
        for (int j = 0; j < 64; j++) y[j] = d * (float)((b[2 + j / 4] >> 2 * (j % 4) & 3) - 1);
    }
}

// --- writing ---------------------------------------------------------------------------------------

// Codes 0, 1, 2 for -d, 0, d with d the largest magnitude, which is returned.
static float ternary_codes(int n, const float *x, uint8_t *q)
{
    float d = tn_abs_max(n, x);
    float id = d != 0.0f ? 1.0f / d : 0.0f;
    for (int j = 0; j < n; j++) q[j] = (uint8_t)(tn_round_away(x[j] * id, -1.0f, 1.0f) + 1);
    return d;
}

void tn_encode_TQ1_0(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += 256, b += 54) {
        uint8_t q[256];
        tn_store_u16(b + 52, tn_f32_to_f16(ternary_codes(256, x + i, q)));
        for (size_t r = 0; r < TN_COUNT(trit_runs); r++) {
            const trit_run run = trit_runs[r];
            for (int k = 0; k < run.n_bytes; k++) {
                uint32_t v = 0;
                for (int t = 0; t < 5; t++) { // missing digits of the last run are zero
                    v = 3 * v + (t < run.n_trits ? q[run.first + t * run.n_bytes + k] : 0u);
                }
                b[run.byte + k] = (uint8_t)((v * 256 + 242) / 243);
            }
        }
    }
}

void tn_encode_TQ2_0(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += 256, b += 66) {
        uint8_t q[256];
        tn_store_u16(b + 64, tn_f32_to_f16(ternary_codes(256, x + i, q)));
        for (int j = 0; j < 64; j++) {
            const uint8_t *p = q + 128 * (j / 32) + j % 32;
            b[j] = (uint8_t)(p[0] | p[32] << 2 | p[64] << 4 | p[96] << 6);
        }
    }
}

void tn_encode_Q1_0(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += 128, b += 18) {
        const float *v = x + i;
        float sum = 0.0f;
        for (int j = 0; j < 128; j++) sum += fabsf(v[j]);
        tn_store_u16(b, tn_f32_to_f16(sum / 128.0f));
        for (int k = 0; k < 16; k++) {
            uint32_t bits = 0;
            for (int j = 0; j < 8; j++) bits |= (uint32_t)(v[8 * k + j] >= 0.0f) << j;
            b[2 + k] = (uint8_t)bits;
        }
    }
}

void tn_encode_Q2_0(const float *x, void *y, int64_t n, const float *weights)
{
    TN_UNUSED(weights);
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += 64, b += 18) {
        uint8_t q[64];
        tn_store_u16(b, tn_f32_to_f16(ternary_codes(64, x + i, q)));
        for (int k = 0; k < 16; k++) {
            const uint8_t *p = q + 4 * k;
            b[2 + k] = (uint8_t)(p[0] | p[1] << 2 | p[2] << 4 | p[3] << 6);
        }
    }
}
