// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The operands of the op `sample` (softmax/sample.c), and the arithmetic that defines which token is chosen.
//
// The same logits, parameters and random numbers give the same token on every device and for every order of
// evaluation, because single precision is rounded after each operation, and because the weights of tokens are
// added up as integers. The samplers of the host (models/run/sampling) use the same functions.
#ifndef TN_OPS_SAMPLE_H
#define TN_OPS_SAMPLE_H

#include "core/fp16.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// A compiler that contracts a * b + c by itself would change results from machine to machine.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

enum {
    TN_SAMPLE_NONE, // the row is not read, and its result is zero with token -1
    TN_SAMPLE_BEST, // the largest logit after the edits; of equal ones the lowest id
    TN_SAMPLE_DRAW, // top-k, top-p, min-p, then a draw
};

enum {
    TN_SAMPLE_TOP = 20, // most probable tokens that a row can ask for
    TN_SAMPLE_MAX_VOCAB = 1 << 22,
    TN_WEIGHT_BITS = 40, // of the fraction of a weight: sums of 2^22 weights fit into 62 bits
};

// A row of `rows`.
typedef struct tn_sample_row {
    int32_t kind;             // TN_SAMPLE_*
    float filter_temperature; // at which the weights of top-p and min-p are computed
    float temperature;        // of the draw
    int32_t top_k;            // 0: off
    float top_p;              // 1: off
    float min_p;              // 0: off
    float repeat_penalty, presence_penalty, frequency_penalty;
    int32_t first_edit, n_edits;      // in `edits`
    int32_t mask;                     // row of `masks`, -1: none
    uint32_t random_low, random_high; // the random number of the draw, 64 bits
    int32_t n_top;                    // TN_SAMPLE_TOP at most
    int32_t unused;
} tn_sample_row;

// A row of `edits`: a token with a bias, or one that was there `count` times and is penalised. A row edits a
// token once.
typedef struct tn_sample_edit {
    int32_t token, count;
    float bias;
    int32_t unused;
} tn_sample_edit;

// A row of the result. Logits are those of the model, before the edits.
typedef struct tn_sample_result {
    int32_t token;              // -1: the edits and the mask leave none
    float logit;                // of the token
    float max;                  // the largest logit; -inf: there is none
    uint32_t sum_low, sum_high; // the sum of the weights of all logits relative to max
    int32_t n_top;
    int32_t unused[2];
    struct {
        int32_t token;
        float logit;
    } top[TN_SAMPLE_TOP]; // the largest logits, the lower id first among equals
} tn_sample_result;

enum {
    TN_SAMPLE_ROW_WORDS = sizeof(tn_sample_row) / 4,
    TN_SAMPLE_EDIT_WORDS = sizeof(tn_sample_edit) / 4,
    TN_SAMPLE_RESULT_WORDS = sizeof(tn_sample_result) / 4,
};

// NaN becomes -inf, +inf the largest float, -0 becomes 0: after this, order and differences are defined.
static inline float tn_logit_tidy(float v)
{
    return (v <= FLT_MAX ? v : v > FLT_MAX ? FLT_MAX : -INFINITY) + 0.0f;
}

// A sum that overflows stays a number; only -inf stands for "never".
static inline float tn_logit_sum(double v)
{
    if (!(v > -INFINITY)) return -INFINITY;
    if (v > (double)FLT_MAX) return FLT_MAX;
    return v < -(double)FLT_MAX ? -FLT_MAX : (float)v + 0.0f;
}

static inline float tn_logit_bias(float v, float bias)
{
    return v > -INFINITY ? tn_logit_sum((double)v + (double)bias) : v;
}

// Repeat penalty: Keskar et al. 2019 (CTRL), section 4.1, with multiplication for negative logits.
static inline float tn_logit_penalise(float logit, float repeat, float presence, float frequency, int32_t n)
{
    double v = (double)logit;
    v = v > 0.0 ? v / (double)repeat : v * (double)repeat;
    return tn_logit_sum(v - ((double)presence + n * (double)frequency));
}

// Sorts like the float: the sign bit flipped for positive, all bits for negative values.
static inline uint32_t tn_logit_key(float v)
{
    uint32_t bits = tn_f32_bits(v);
    return bits ^ ((0u - (bits >> 31)) | 0x80000000u);
}

// e^x for x <= 0, within 2 ulp; 0 below -87. Cephes expf: x = n ln 2 + r, a polynomial
// for e^r, and n into the exponent. Comparing and selecting is done on integers, because compilers vectorise
// that and do not vectorise it for floats: 152 thousand values take 0.23 ms instead of 0.7 (gcc 12, SSE2).
static inline float tn_exp_negative(float x)
{
    int32_t limit = (int32_t)tn_f32_bits(87.0f), size = (int32_t)(tn_f32_bits(x) & 0x7fffffffu);
    float c = -tn_f32_from_bits((uint32_t)(size < limit ? size : limit));
    float shifted = c * 1.44269504088896341f + 0x1.8p23f; // its low bits are the nearest integer
    float n = shifted - 0x1.8p23f;
    float r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    float y = (p * (r * r) + r + 1.0f) * tn_f32_from_bits((tn_f32_bits(shifted) + 127) << 23);
    return tn_f32_from_bits(tn_f32_bits(y) & (0u - (uint32_t)(size <= limit)));
}

// A weight, of at most 1, as an integer: the nearest multiple of 2^-TN_WEIGHT_BITS, the even one of two. The
// addition of 2^52 leaves that integer in the low bits of the double, which compilers vectorise.
static inline uint64_t tn_weight_fixed(float weight)
{
    double d = (double)weight * 0x1p40 + 0x1p52;
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits & (((uint64_t)1 << 52) - 1);
}

// The share of a sum of weights that a filter keeps; at least one token.
static inline uint64_t tn_weight_share(uint64_t sum, float share)
{
    uint64_t part = (uint64_t)((double)share * (double)sum);
    return part > 0 ? part : 1;
}

static inline double tn_weight_value(uint64_t sum)
{
    return (double)sum * 0x1p-40;
}

// The upper 64 bits of a product: a uniform integer below n, if `random` is one below 2^64.
static inline uint64_t tn_random_below(uint64_t random, uint64_t n)
{
    uint64_t a = random >> 32, b = random & 0xffffffffu, c = n >> 32, d = n & 0xffffffffu;
    uint64_t middle = (b * d >> 32) + (a * d & 0xffffffffu) + (b * c & 0xffffffffu);
    return a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
}

#endif
