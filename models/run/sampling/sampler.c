// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Choosing a token: NaN and infinities replaced, bias, the chain of stages, the draw. exp is computed with
// plain IEEE single precision, so that the same logits and seed give the same token on every machine.
#include "models/run/sampling/sampler_impl.h"

#include <string.h>

// --- life --------------------------------------------------------------------------------------------

static tn_status reserve(tn_sampler *s, const tn_sampling *cfg)
{
    size_t n = (size_t)s->n_vocab;
    s->logits = tn_calloc(s->ctx, n, sizeof *s->logits);
    s->kept = tn_calloc(s->ctx, n, sizeof *s->kept);
    s->bias = tn_calloc(s->ctx, (size_t)cfg->n_bias, sizeof *s->bias);
    s->logprobs = tn_calloc(s->ctx, (size_t)cfg->n_logprobs, sizeof *s->logprobs);
    if (!s->logits || !s->kept || !s->bias || !s->logprobs) return TN_ERR_MEMORY;
    return tn_history_reserve(s, cfg);
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
    s->n_vocab = n_vocab;
    s->max_history = n_history;
    s->chosen = -1;
    s->text_start = INT32_MAX;
    tn_strbuf_init(&s->piece, ctx);
    tn_rng_seed(&s->rng, sampling->seed);
    status = tn_stages_read(ctx, sampling->samplers, s->order, &s->n_order);
    if (status == TN_OK) status = reserve(s, sampling);
    if (status != TN_OK) goto fail;
    for (int32_t i = 0; i < sampling->n_bias; i++)
        s->bias[i] = (tn_bias_pair){sampling->bias_tokens[i], sampling->bias_values[i]};
    s->cfg.samplers = NULL;
    s->cfg.dry_breakers = NULL;
    s->cfg.bias_tokens = NULL;
    s->cfg.bias_values = NULL;
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
    tn_history_fini(s);
    tn_free(s->ctx, s->excluded);
    tn_free(s->ctx, s->logprobs);
    tn_free(s->ctx, s->bias);
    tn_free(s->ctx, s->kept);
    tn_free(s->ctx, s->logits);
    tn_free(s->ctx, s);
    *sampler = NULL;
}

// --- logits ------------------------------------------------------------------------------------------

static void apply_bias(tn_sampler *s)
{
    for (int32_t i = 0; i < s->cfg.n_bias; i++) {
        float *v = &s->logits[s->bias[i].id];
        *v = tn_logit_bias(*v, s->bias[i].value);
    }
}

// Insertion into a short sorted list; most tokens end at the first comparison.
static void find_logprobs(tn_sampler *s, double max_logit, double log_sum)
{
    int32_t n = 0, capacity = s->cfg.n_logprobs;
    for (int32_t i = 0; i < s->n_vocab && capacity > 0; i++) {
        float v = s->logits[i];
        if (v == -INFINITY || (n == capacity && v <= s->logprobs[n - 1].logprob)) continue;
        int32_t at = n < capacity ? n++ : n - 1;
        for (; at > 0 && s->logprobs[at - 1].logprob < v; at--) s->logprobs[at] = s->logprobs[at - 1];
        s->logprobs[at] = (tn_logprob){i, v};
    }
    for (int32_t i = 0; i < n; i++)
        s->logprobs[i].logprob = (float)((double)s->logprobs[i].logprob - max_logit - log_sum);
    s->n_logprobs = n;
}

const tn_logprob *tn_sampler_logprobs(const tn_sampler *s, int32_t *n)
{
    *n = s->n_logprobs;
    return s->logprobs;
}

// --- choosing ----------------------------------------------------------------------------------------

static bool takes_best(const tn_sampling *c)
{
    return c->temperature <= 0 && c->dynatemp_range <= 0;
}

static bool runs(const tn_sampler *s, const tn_stage *stage)
{
    return stage->active(&s->cfg) && !(stage->filter && s->cfg.mirostat == 2);
}

bool tn_sampler_is_greedy(const tn_sampler *s)
{
    if (!takes_best(&s->cfg) || s->cfg.n_bias > 0 || s->cfg.n_logprobs > 0) return false;
    if (s->matcher || s->max_excluded > 0) return false;
    for (int32_t i = 0; i < s->n_order; i++) {
        const tn_stage *stage = &tn_stages[s->order[i]];
        if (runs(s, stage) && !stage->keeps_best) return false;
    }
    return true;
}

static void run_stages(tn_sampler *s)
{
    s->collected = false;
    s->temperature = 1;
    s->greedy = takes_best(&s->cfg);
    for (int32_t i = 0; i < s->n_order; i++) {
        const tn_stage *stage = &tn_stages[s->order[i]];
        if (runs(s, stage) && !(s->greedy && stage->keeps_best)) stage->apply(s);
    }
}

tn_status tn_sampler_choose(tn_sampler *s, const float *logits, int32_t *token, float *logprob)
{
    float *x = s->logits;
    for (int32_t i = 0; i < s->n_vocab; i++) x[i] = tn_logit_tidy(logits[i]);
    float model_max = tn_logits_max(x, s->n_vocab);
    if (model_max == -INFINITY) return tn_fail(s->ctx, TN_ERR_INTERNAL, "logits are not finite");
    double log_sum = log(tn_weight_value(tn_logits_weight(x, s->n_vocab, model_max)));
    find_logprobs(s, (double)model_max, log_sum);
    apply_bias(s);
    tn_status status = tn_limits_apply(s);
    if (status != TN_OK) return status;
    s->max = tn_logits_max(x, s->n_vocab);
    if (s->max == -INFINITY && (s->matcher || s->n_excluded > 0)) {
        *token = -1;
        *logprob = 0;
        return TN_OK;
    }
    if (s->max == -INFINITY)
        return tn_fail(s->ctx, TN_ERR_ARG,
                       "sampling: the bias list excludes every token that the model allows");
    run_stages(s);
    int32_t id = s->greedy ? tn_choice_best(s) : tn_choice_draw(s);
    s->chosen = *token = id;
    *logprob = (float)((double)tn_logit_tidy(logits[id]) - (double)model_max - log_sum);
    return TN_OK;
}
