// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Choices of a device (ops/sample.h): which samplers they can stand for, their parameters, and what is made
// of their results. A device chooses the token that tn_sampler_choose would, because both use the same
// arithmetic, and the random number comes from the sampler.
#include "models/run/sampling/sampler_impl.h"

#include <string.h>

enum { MOST_BIASES = 512 };

// Where a stage stands among those that do something; -1: it does nothing.
static int32_t place_of(const tn_sampler *s, tn_stage_id id)
{
    int32_t at = 0;
    for (; at < s->n_order && s->order[at] != id; at++) {
    }
    return at < s->n_order && tn_stages[id].active(&s->cfg) ? at : -1;
}

static bool before(int32_t a, int32_t b)
{
    return a < 0 || b < 0 || a < b;
}

// Penalties, top-k, top-p, min-p; the temperature before top-p and min-p, or behind both.
static bool order_fits(const tn_sampler *s)
{
    static const tn_stage_id others[] = {TN_STAGE_DRY, TN_STAGE_TOP_N_SIGMA, TN_STAGE_TYPICAL, TN_STAGE_XTC};
    for (size_t i = 0; i < TN_COUNT(others); i++)
        if (place_of(s, others[i]) >= 0) return false;
    int32_t penalties = place_of(s, TN_STAGE_PENALTIES), k = place_of(s, TN_STAGE_TOP_K),
            p = place_of(s, TN_STAGE_TOP_P), min = place_of(s, TN_STAGE_MIN_P),
            t = place_of(s, TN_STAGE_TEMPERATURE);
    if (s->cfg.temperature <= 0) return true; // the best is not filtered
    if (!before(penalties, k) || !before(penalties, p) || !before(penalties, min) || !before(penalties, t))
        return false;
    if (!before(k, p) || !before(k, min) || !before(p, min)) return false;
    return (before(t, p) && before(t, min)) || (before(p, t) && before(min, t));
}

static bool biases_fit(const tn_sampler *s)
{
    if (s->cfg.n_bias > MOST_BIASES) return false;
    for (int32_t i = 0; i < s->cfg.n_bias; i++)
        for (int32_t k = 0; k < i; k++)
            if (s->bias[i].id == s->bias[k].id) return false;
    return true;
}

bool tn_sampler_fits_device(const tn_sampler *s)
{
    const tn_sampling *c = &s->cfg;
    return s->max_excluded == 0 && c->mirostat == 0 && c->dynatemp_range <= 0 &&
           c->n_logprobs <= TN_SAMPLE_TOP && s->n_vocab <= TN_SAMPLE_MAX_VOCAB && order_fits(s) &&
           biases_fit(s);
}

// --- parameters ----------------------------------------------------------------------------------------

// Negative counts mark tokens that were listed already.
static bool add_edit(tn_sampler *s, int32_t id, float bias, tn_sample_edit *edits, int32_t most, int32_t *n)
{
    int32_t count = s->counts ? s->counts[id] : 0;
    if (count < 0) return true;
    if (*n == most) return false;
    edits[(*n)++] = (tn_sample_edit){.token = id, .count = count, .bias = bias};
    if (count > 0) s->counts[id] = -count;
    return true;
}

static bool list_edits(tn_sampler *s, tn_sample_edit *edits, int32_t most, int32_t *n)
{
    bool fits = true;
    *n = 0;
    for (int32_t i = 0; i < s->cfg.n_bias && fits; i++)
        fits = add_edit(s, s->bias[i].id, s->bias[i].value, edits, most, n);
    int32_t first = s->cfg.penalty_last_n < 0 ? 0 : TN_MAX(s->length - s->cfg.penalty_last_n, 0);
    for (int32_t i = first; i < s->length && s->counts && fits; i++)
        if (s->history[i] >= 0) fits = add_edit(s, s->history[i], 0.0f, edits, most, n);
    for (int32_t i = 0; i < *n; i++)
        if (s->counts && s->counts[edits[i].token] < 0) s->counts[edits[i].token] = edits[i].count;
    return fits;
}

bool tn_sampler_describe(tn_sampler *s, tn_sample_row *row, tn_sample_edit *edits, int32_t most)
{
    const tn_sampling *c = &s->cfg;
    int32_t p = place_of(s, TN_STAGE_TOP_P), min = place_of(s, TN_STAGE_MIN_P),
            t = place_of(s, TN_STAGE_TEMPERATURE), n;
    if (!list_edits(s, edits, most, &n)) return false;
    *row = (tn_sample_row){
        .kind = c->temperature <= 0 ? TN_SAMPLE_BEST : TN_SAMPLE_DRAW,
        .filter_temperature = 1.0f,
        .temperature = t >= 0 && c->temperature > 0 ? c->temperature : 1.0f,
        .top_k = place_of(s, TN_STAGE_TOP_K) >= 0 ? c->top_k : 0,
        .top_p = p >= 0 ? c->top_p : 1.0f,
        .min_p = min >= 0 ? c->min_p : 0.0f,
        .repeat_penalty = c->repeat_penalty,
        .presence_penalty = c->presence_penalty,
        .frequency_penalty = c->frequency_penalty,
        .n_edits = n,
        .mask = -1,
        .n_top = c->n_logprobs,
    };
    if (t >= 0 && ((p >= 0 && t < p) || (min >= 0 && t < min))) row->filter_temperature = row->temperature;
    if (place_of(s, TN_STAGE_PENALTIES) < 0)
        for (int32_t i = 0; i < n; i++) edits[i].count = 0;
    if (row->kind == TN_SAMPLE_DRAW) {
        if (!s->has_drawn) s->drawn = tn_rng_next(&s->rng);
        s->has_drawn = true;
        row->random_low = (uint32_t)s->drawn;
        row->random_high = (uint32_t)(s->drawn >> 32);
    }
    return true;
}

bool tn_sampler_masks(const tn_sampler *s)
{
    return s->matcher != NULL;
}

tn_status tn_sampler_mask(tn_sampler *s, uint32_t *words)
{
    const uint64_t *bits;
    bool any;
    int32_t n = TN_MIN(tn_matcher_n_tokens(s->matcher), s->n_vocab), n_words = (s->n_vocab + 31) / 32;
    tn_status status = s->limit_status;
    if (status == TN_OK) status = tn_matcher_mask(s->matcher, &bits, &any);
    if (status != TN_OK) return status;
    for (int32_t i = 0; i < n_words; i++) words[i] = i * 32 < n ? (uint32_t)(bits[i / 2] >> (i % 2 * 32)) : 0;
    if (n % 32 != 0) words[n / 32] &= (1u << (n % 32)) - 1; // outputs beyond the tokenizer have no text
    return TN_OK;
}

// --- results -------------------------------------------------------------------------------------------

tn_status tn_sampler_chosen(tn_sampler *s, const tn_sample_result *y, int32_t *token, float *logprob)
{
    if (y->max == -INFINITY) return tn_fail(s->ctx, TN_ERR_INTERNAL, "logits are not finite");
    if (y->token < 0 && !s->matcher)
        return tn_fail(s->ctx, TN_ERR_ARG,
                       "sampling: the bias list excludes every token that the model allows");
    double max = (double)y->max, log_sum = log(tn_weight_value((uint64_t)y->sum_high << 32 | y->sum_low));
    s->n_logprobs = TN_MIN(TN_MIN(y->n_top, TN_SAMPLE_TOP), s->cfg.n_logprobs);
    for (int32_t i = 0; i < s->n_logprobs; i++)
        s->logprobs[i] = (tn_logprob){y->top[i].token, (float)((double)y->top[i].logit - max - log_sum)};
    s->has_drawn = false;
    s->chosen = *token = y->token;
    *logprob = y->token < 0 ? 0.0f : (float)((double)y->logit - max - log_sum);
    return TN_OK;
}
