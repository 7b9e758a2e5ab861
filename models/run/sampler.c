// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The sampling chain. Nothing is sorted: top-k and top-p are the same question (the largest candidates
// whose weights together reach a target, with weight 1 or the probability) and a radix selection over the
// bits of the logits answers it in at most three passes over what is left. exp is computed here with plain
// IEEE single precision, so that the same logits and seed give the same token on every machine.
#include "models/run/sampler.h"

#include "core/fp16.h"
#include "models/run/rng.h"

#include <float.h>
#include <math.h>
#include <string.h>

// A compiler that contracts a * b + c by itself would change results from machine to machine.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

enum { RADIX_BINS = 2048 }; // 11 bits: 32-bit keys in three rounds, 16 KiB of sums

typedef struct candidate {
    uint32_t key; // ascending with the logit
    int32_t id;
    float weight; // what the filter at work adds up
} candidate;

typedef struct bias_pair {
    int32_t id;
    float value;
} bias_pair;

struct tn_sampler {
    tn_context *ctx;
    tn_sampling cfg;
    int32_t n_vocab, n_kept, n_history, max_history;
    tn_rng rng;
    float *logits;    // [n_vocab] after bias and penalties
    candidate *kept;  // [n_vocab] candidates left, in order of id
    bias_pair *bias;  // [cfg.n_bias]
    int32_t *history; // [max_history] NULL without penalties
    int32_t *counts;  // [n_vocab] how often a token is among the last penalty_last_n
    double sums[RADIX_BINS];
};

// --- parameters --------------------------------------------------------------------------------------

// clang-format off
#define FLOAT_FIELD(name, min, max) {#name, offsetof(tn_sampling, name), false, (min), (max)}
#define INT_FIELD(name, min, max)   {#name, offsetof(tn_sampling, name), true, (min), (max)}
static const tn_param_range sampling_ranges[] = {
    FLOAT_FIELD(temperature,          0,    100),
    INT_FIELD  (top_k,                0,    INT32_MAX),
    FLOAT_FIELD(top_p,                0,    1),
    FLOAT_FIELD(min_p,                0,    1),
    FLOAT_FIELD(repeat_penalty,       0.01, 100), // a divisor
    FLOAT_FIELD(presence_penalty,    -100,  100),
    FLOAT_FIELD(frequency_penalty,   -100,  100),
    INT_FIELD  (penalty_last_n,      -1,    1000000),
};
// clang-format on

void tn_sampling_default(tn_sampling *s)
{
    *s = (tn_sampling){
        .struct_size = sizeof *s,
        .temperature = 0.8f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .repeat_penalty = 1.0f,
        .penalty_last_n = 64,
    };
}

tn_status tn_params_check(tn_context *ctx, const char *what, const void *params, const tn_param_range *ranges,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const tn_param_range *r = &ranges[i];
        const char *field = (const char *)params + r->offset;
        int32_t as_int;
        float as_float;
        memcpy(&as_int, field, sizeof as_int);
        memcpy(&as_float, field, sizeof as_float);
        double value = r->is_int ? as_int : (double)as_float;
        double min = r->is_int ? r->min : (double)(float)r->min; // a float holds no 0.01
        if (value >= min && value <= r->max) continue;
        return tn_fail(ctx, TN_ERR_ARG, "%s: %s is %.9g, allowed %.10g..%.10g", what, r->name, value, r->min,
                       r->max);
    }
    return TN_OK;
}

tn_status tn_sampling_check(tn_context *ctx, const tn_sampling *sampling, int32_t n_vocab)
{
    const tn_param_range n_bias = INT_FIELD(n_bias, 0, n_vocab);
    if (sampling->struct_size < sizeof *sampling)
        return tn_fail(ctx, TN_ERR_ARG, "sampling: struct_size is %zu, start from tn_sampling_default",
                       sampling->struct_size);
    tn_status status = tn_params_check(ctx, "sampling", sampling, sampling_ranges, TN_COUNT(sampling_ranges));
    if (status == TN_OK) status = tn_params_check(ctx, "sampling", sampling, &n_bias, 1);
    if (status != TN_OK) return status;
    if (sampling->n_bias > 0 && (!sampling->bias_tokens || !sampling->bias_values))
        return tn_fail(ctx, TN_ERR_ARG, "sampling: n_bias is %d, but bias_tokens or bias_values is NULL",
                       (int)sampling->n_bias);
    for (int32_t i = 0; i < sampling->n_bias; i++) {
        int32_t id = sampling->bias_tokens[i];
        if (id < 0 || id >= n_vocab)
            return tn_fail(ctx, TN_ERR_ARG, "sampling: bias_tokens[%d] is %d, allowed 0..%d", (int)i, (int)id,
                           (int)n_vocab - 1);
        if (isnan(sampling->bias_values[i]))
            return tn_fail(ctx, TN_ERR_ARG, "sampling: bias_values[%d] is not a number", (int)i);
    }
    return TN_OK;
}

static bool has_penalties(const tn_sampling *c)
{
    return c->penalty_last_n != 0 &&
           (c->repeat_penalty != 1 || c->presence_penalty != 0 || c->frequency_penalty != 0);
}

static tn_status reserve(tn_sampler *s)
{
    size_t n = (size_t)s->n_vocab;
    s->logits = tn_calloc(s->ctx, n, sizeof *s->logits);
    s->kept = tn_calloc(s->ctx, n, sizeof *s->kept);
    s->bias = tn_calloc(s->ctx, (size_t)s->cfg.n_bias, sizeof *s->bias);
    if (!s->logits || !s->kept || !s->bias) return TN_ERR_MEMORY;
    if (!has_penalties(&s->cfg)) return TN_OK;
    s->history = tn_calloc(s->ctx, (size_t)s->max_history, sizeof *s->history);
    s->counts = tn_calloc(s->ctx, n, sizeof *s->counts);
    return s->history && s->counts ? TN_OK : TN_ERR_MEMORY;
}

tn_status tn_sampler_create(tn_context *ctx, const tn_sampling *sampling, int32_t n_vocab, int32_t n_history,
                            tn_sampler **out)
{
    if (n_vocab < 1 || n_history < 0)
        return tn_fail(ctx, TN_ERR_ARG, "sampler: %d tokens in the vocabulary, %d in the history",
                       (int)n_vocab, (int)n_history);
    tn_status status = tn_sampling_check(ctx, sampling, n_vocab);
    if (status != TN_OK) return status;
    tn_sampler *s = tn_calloc(ctx, 1, sizeof *s);
    if (!s) return TN_ERR_MEMORY;
    s->ctx = ctx;
    s->cfg = *sampling;
    s->cfg.bias_tokens = NULL;
    s->cfg.bias_values = NULL;
    s->n_vocab = n_vocab;
    s->max_history = n_history;
    tn_rng_seed(&s->rng, sampling->seed);
    status = reserve(s);
    if (status != TN_OK) goto fail;
    for (int32_t i = 0; i < sampling->n_bias; i++)
        s->bias[i] = (bias_pair){sampling->bias_tokens[i], sampling->bias_values[i]};
    *out = s;
    return TN_OK;
fail:
    tn_sampler_destroy(&s);
    return status;
}

void tn_sampler_destroy(tn_sampler **sampler)
{
    if (!sampler || !*sampler) return;
    tn_sampler *s = *sampler;
    tn_free(s->ctx, s->counts);
    tn_free(s->ctx, s->history);
    tn_free(s->ctx, s->bias);
    tn_free(s->ctx, s->kept);
    tn_free(s->ctx, s->logits);
    tn_free(s->ctx, s);
    *sampler = NULL;
}

// --- history for the penalties -----------------------------------------------------------------------

static void count(tn_sampler *s, int32_t position, int32_t by)
{
    if (position >= 0 && s->history[position] >= 0) s->counts[s->history[position]] += by;
}

// Position that leaves the window when the list grows from n to n + 1; negative: none does.
static int32_t leaving(const tn_sampler *s, int32_t n)
{
    return s->cfg.penalty_last_n < 0 ? -1 : n - s->cfg.penalty_last_n;
}

void tn_sampler_push(tn_sampler *s, int32_t token)
{
    if (!s->history || s->n_history == s->max_history) return;
    s->history[s->n_history] = token < s->n_vocab ? token : -1;
    count(s, s->n_history, 1);
    count(s, leaving(s, s->n_history), -1);
    s->n_history++;
}

void tn_sampler_set_length(tn_sampler *s, int32_t n)
{
    if (!s->history) return;
    n = TN_MIN(TN_MAX(n, 0), s->max_history);
    while (s->n_history > n) {
        s->n_history--;
        count(s, s->n_history, -1);
        count(s, leaving(s, s->n_history), 1);
    }
    while (s->n_history < n) tn_sampler_push(s, -1);
}

// --- logits ------------------------------------------------------------------------------------------

// NaN becomes -inf, +inf the largest float, -0 becomes 0: after this, order and differences are defined.
static inline float tidy(float v)
{
    return (v <= FLT_MAX ? v : v > FLT_MAX ? FLT_MAX : -INFINITY) + 0.0f;
}

// A sum that overflows stays a number; only -inf stands for "never".
static float tidy_sum(double v)
{
    if (!(v > -INFINITY)) return -INFINITY;
    return tidy((float)TN_MIN(TN_MAX(v, -FLT_MAX), FLT_MAX));
}

// e^x for x <= 0, within 2 units in the last place; 0 below -87. Cephes expf: x = n ln 2 + r, a polynomial
// for e^r, and n into the exponent. Compares and selects with integers, which compilers turn into vector
// code where they leave floats alone: 152 thousand take 0.23 ms, not 0.7 (gcc
// 12, SSE2).
static inline float exp_negative(float x)
{
    int32_t limit = (int32_t)tn_f32_bits(87.0f), size = (int32_t)(tn_f32_bits(x) & 0x7fffffffu);
    float c = -tn_f32_from_bits((uint32_t)TN_MIN(size, limit));
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

// Independent lanes for maxima and sums: the order of additions is fixed, yet vectors can do it.
enum { LANES = 8 };

static float largest(const float *x, int32_t n)
{
    float lanes[LANES];
    int32_t i = 0;
    for (int32_t j = 0; j < LANES; j++) lanes[j] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int32_t j = 0; j < LANES; j++) lanes[j] = TN_MAX(x[i + j], lanes[j]);
    for (; i < n; i++) lanes[0] = TN_MAX(x[i], lanes[0]);
    for (int32_t j = 1; j < LANES; j++) lanes[0] = TN_MAX(lanes[j], lanes[0]);
    return lanes[0];
}

static double sum_exp(const float *x, int32_t n, float max)
{
    double lanes[LANES] = {0}, sum = 0;
    int32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        float e[LANES];
        for (int32_t j = 0; j < LANES; j++) e[j] = exp_negative(x[i + j] - max);
        for (int32_t j = 0; j < LANES; j++) lanes[j] += (double)e[j];
    }
    for (; i < n; i++) sum += (double)exp_negative(x[i] - max);
    for (int32_t j = 0; j < LANES; j++) sum += lanes[j];
    return sum;
}

static void apply_bias(tn_sampler *s)
{
    for (int32_t i = 0; i < s->cfg.n_bias; i++) {
        float *v = &s->logits[s->bias[i].id];
        if (*v > -INFINITY) *v = tidy_sum((double)*v + (double)s->bias[i].value);
    }
}

// Repeat penalty: Keskar et al. 2019, section 4.1, with multiplication for negative logits.
static float penalised(const tn_sampling *c, double v, int32_t n)
{
    v = v > 0 ? v / (double)c->repeat_penalty : v * (double)c->repeat_penalty;
    return tidy_sum(v - ((double)c->presence_penalty + n * (double)c->frequency_penalty));
}

static void apply_penalties(tn_sampler *s)
{
    if (!s->history) return;
    int32_t first = TN_MAX(leaving(s, s->n_history), 0);
    // A count turned negative marks a token that was done: each counts once.
    for (int32_t i = first; i < s->n_history; i++) {
        int32_t id = s->history[i];
        if (id < 0 || s->counts[id] < 0) continue;
        s->logits[id] = penalised(&s->cfg, (double)s->logits[id], s->counts[id]);
        s->counts[id] = -s->counts[id];
    }
    for (int32_t i = first; i < s->n_history; i++) {
        int32_t id = s->history[i];
        if (id >= 0 && s->counts[id] < 0) s->counts[id] = -s->counts[id];
    }
}

// --- filters -----------------------------------------------------------------------------------------

static void collect(tn_sampler *s)
{
    const float *logits = s->logits;
    candidate *kept = s->kept;
    int32_t n = 0, n_vocab = s->n_vocab;
    for (int32_t i = 0; i < n_vocab; i++) {
        uint32_t bits = tn_f32_bits(logits[i]);
        // The sign bit flipped for positive, all bits for negative values: keys sort like the floats.
        uint32_t key = bits ^ ((0u - (bits >> 31)) | 0x80000000u);
        kept[n] = (candidate){key, i, 1.0f};
        n += logits[i] > -INFINITY;
    }
    s->n_kept = n;
}

// Keeps the candidates with the largest logits, up to and including the one with which the weights
// together reach `target` > 0; among equal logits the lower id comes first.
static void keep_largest(tn_sampler *s, double target)
{
    static const int32_t shifts[] = {21, 10, 0};
    candidate *kept = s->kept;
    uint32_t prefix = 0, known = 0; // bits of the border key found so far
    double above = 0;               // weight of all keys above the border
    int32_t n;
    for (size_t round = 0; round < TN_COUNT(shifts); round++) {
        int32_t shift = shifts[round];
        uint32_t digit = ~known >> shift; // mask of the bits of this round
        memset(s->sums, 0, sizeof s->sums);
        for (int32_t i = 0; i < s->n_kept; i++)
            if ((kept[i].key & known) == prefix)
                s->sums[kept[i].key >> shift & digit] += (double)kept[i].weight;
        uint32_t bin = digit;
        for (; bin > 0 && above + s->sums[bin] < target; bin--) above += s->sums[bin];
        prefix |= bin << shift;
        known |= digit << shift;
        n = 0;
        for (int32_t i = 0; i < s->n_kept; i++)
            if ((kept[i].key & known) >= prefix) kept[n++] = kept[i];
        s->n_kept = n;
    }
    n = 0;
    for (int32_t i = 0; i < s->n_kept; i++) {
        if (kept[i].key == prefix && above >= target) continue;
        if (kept[i].key == prefix) above += (double)kept[i].weight;
        kept[n++] = kept[i];
    }
    s->n_kept = n;
}

// Weights become probabilities relative to the largest. Returns their sum.
static double weigh(tn_sampler *s, float max, float temperature)
{
    double sum = 0;
    for (int32_t i = 0; i < s->n_kept; i++) {
        candidate *c = &s->kept[i];
        c->weight = exp_negative((s->logits[c->id] - max) / temperature);
        sum += (double)c->weight;
    }
    return sum;
}

static void keep_likely(tn_sampler *s, float min_weight)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_kept; i++)
        if (s->kept[i].weight >= min_weight) s->kept[n++] = s->kept[i];
    s->n_kept = n;
}

static int32_t draw(tn_sampler *s, double total)
{
    double left = tn_rng_unit(&s->rng) * total;
    int32_t id = -1;
    for (int32_t i = 0; i < s->n_kept; i++) {
        if (s->kept[i].weight <= 0) continue;
        id = s->kept[i].id; // the last one also stands in where rounding leaves a rest
        left -= (double)s->kept[i].weight;
        if (left < 0) break;
    }
    return id;
}

static int32_t sample(tn_sampler *s, float max)
{
    const tn_sampling *c = &s->cfg;
    collect(s);
    if (c->top_k > 0 && c->top_k < s->n_kept) keep_largest(s, c->top_k);
    if (c->top_p < 1) {
        double target = (double)c->top_p * weigh(s, max, 1);
        keep_largest(s, TN_MAX(target, DBL_MIN)); // the most likely token always stays
    }
    if (c->min_p > 0) {
        weigh(s, max, 1);
        keep_likely(s, c->min_p);
    }
    return draw(s, weigh(s, max, c->temperature));
}

bool tn_sampler_is_greedy(const tn_sampler *s)
{
    const tn_sampling *c = &s->cfg;
    return c->temperature <= 0 && c->n_bias == 0 && c->repeat_penalty == 1 && c->presence_penalty == 0 && c->frequency_penalty == 0;
}

tn_status tn_sampler_choose(tn_sampler *s, const float *logits, int32_t *token, float *logprob)
{
    float *x = s->logits;
    for (int32_t i = 0; i < s->n_vocab; i++) x[i] = tidy(logits[i]);
    float model_max = largest(x, s->n_vocab);
    if (model_max == -INFINITY) return tn_fail(s->ctx, TN_ERR_INTERNAL, "logits are not finite");
    double log_sum = log(sum_exp(x, s->n_vocab, model_max));
    apply_bias(s);
    apply_penalties(s);
    float max = largest(x, s->n_vocab);
    if (max == -INFINITY)
        return tn_fail(s->ctx, TN_ERR_ARG,
                       "sampling: the bias list excludes every token that the model allows");
    int32_t id = 0;
    while (x[id] != max) id++;
    if (s->cfg.temperature > 0) id = sample(s, max);
    *token = id;
    *logprob = (float)((double)tidy(logits[id]) - (double)model_max - log_sum);
    return TN_OK;
}
