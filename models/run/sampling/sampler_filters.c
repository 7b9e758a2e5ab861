// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages that drop candidates, the temperature, and the draw. Nothing is sorted: top-k, top-p and
// typical-p are the same problem (the largest candidates whose weights together reach a target, with weight 1
// or the probability), and a radix selection over the bits of the logits solves it in at most three passes
// over the remaining candidates. Probabilities are those of the remaining candidates, at the temperature
// reached so far.
#include "models/run/sampling/sampler_impl.h"

#include <string.h>

// --- candidates --------------------------------------------------------------------------------------

static void collect(tn_sampler *s)
{
    const float *logits = s->logits;
    tn_choice *kept = s->kept;
    int32_t n = 0, n_vocab = s->n_vocab;
    if (s->collected) return;
    for (int32_t i = 0; i < n_vocab; i++) {
        kept[n] = (tn_choice){tn_logit_key(logits[i]), i, 1.0f};
        n += logits[i] > -INFINITY;
    }
    s->n_kept = n;
    s->collected = true;
}

static void find_max(tn_sampler *s)
{
    s->max = -INFINITY;
    for (int32_t i = 0; i < s->n_kept; i++) s->max = TN_MAX(s->max, s->logits[s->kept[i].id]);
}

void tn_logits_open(tn_sampler *s)
{
    if (s->temperature == 1) return;
    collect(s);
    for (int32_t i = 0; i < s->n_kept; i++) {
        float *v = &s->logits[s->kept[i].id];
        *v = tn_logit_sum((double)*v / (double)s->temperature);
    }
    s->temperature = 1;
}

void tn_logits_close(tn_sampler *s)
{
    int32_t n = 0;
    if (!s->collected) {
        s->max = tn_logits_max(s->logits, s->n_vocab);
        return;
    }
    for (int32_t i = 0; i < s->n_kept; i++) {
        int32_t id = s->kept[i].id;
        if (s->logits[id] > -INFINITY) s->kept[n++] = (tn_choice){tn_logit_key(s->logits[id]), id, 1.0f};
    }
    s->n_kept = n;
    find_max(s);
}

// Keeps the candidates with the largest logits, up to and including the one with which the weights
// together reach `target` > 0; among equal logits the lower id comes first.
static void keep_largest(tn_sampler *s, uint64_t target)
{
    static const int32_t shifts[] = {21, 10, 0};
    tn_choice *kept = s->kept;
    uint32_t prefix = 0, known = 0; // known bits of the smallest key that is kept
    uint64_t above = 0;             // weight of all keys above that one
    int32_t n;
    for (size_t round = 0; round < TN_COUNT(shifts); round++) {
        int32_t shift = shifts[round];
        uint32_t digit = ~known >> shift; // mask of the bits of this round
        memset(s->sums, 0, sizeof s->sums);
        for (int32_t i = 0; i < s->n_kept; i++)
            if ((kept[i].key & known) == prefix)
                s->sums[kept[i].key >> shift & digit] += tn_weight_fixed(kept[i].weight);
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
        if (kept[i].key == prefix) above += tn_weight_fixed(kept[i].weight);
        kept[n++] = kept[i];
    }
    s->n_kept = n;
}

// Natural logarithm of a candidate's weight.
static inline float exponent_of(const tn_sampler *s, int32_t id)
{
    return (s->logits[id] - s->max) / s->temperature;
}

// Weights become probabilities relative to the largest. Returns their sum (tn_weight_fixed).
static uint64_t weigh(tn_sampler *s)
{
    uint64_t sum = 0;
    collect(s);
    for (int32_t i = 0; i < s->n_kept; i++) {
        tn_choice *c = &s->kept[i];
        c->weight = tn_exp_negative(exponent_of(s, c->id));
        sum += tn_weight_fixed(c->weight);
    }
    return sum;
}

// In nats, of weights that sum up to `sum`.
static double entropy(const tn_sampler *s, double sum)
{
    double h = 0;
    for (int32_t i = 0; i < s->n_kept; i++)
        if (s->kept[i].weight > 0) h += (double)s->kept[i].weight * (double)exponent_of(s, s->kept[i].id);
    return log(sum) - h / sum;
}

// --- stages ------------------------------------------------------------------------------------------

// "Top-n-sigma: Not All Logits Are You Need" (Tang et al. 2024), with the deviation of all candidates.
void tn_stage_top_n_sigma(tn_sampler *s)
{
    double sum = 0, squares = 0;
    int32_t n = 0;
    collect(s);
    for (int32_t i = 0; i < s->n_kept; i++) sum += (double)s->logits[s->kept[i].id];
    double mean = sum / s->n_kept;
    for (int32_t i = 0; i < s->n_kept; i++) {
        double d = (double)s->logits[s->kept[i].id] - mean;
        squares += d * d;
    }
    double least = (double)s->max - (double)s->cfg.top_n_sigma * sqrt(squares / s->n_kept);
    for (int32_t i = 0; i < s->n_kept; i++)
        if ((double)s->logits[s->kept[i].id] >= least) s->kept[n++] = s->kept[i];
    s->n_kept = n;
}

// Fan et al. 2018.
void tn_stage_top_k(tn_sampler *s)
{
    collect(s);
    if (s->cfg.top_k >= s->n_kept) return;
    for (int32_t i = 0; i < s->n_kept; i++) s->kept[i].weight = 1.0f;
    keep_largest(s, (uint64_t)s->cfg.top_k << TN_WEIGHT_BITS);
}

// Meister et al. 2022, "Locally Typical Sampling": the candidates whose surprise is nearest to the entropy.
void tn_stage_typical(tn_sampler *s)
{
    uint64_t total = weigh(s);
    double sum = tn_weight_value(total), log_sum = log(sum), h = entropy(s, sum);
    for (int32_t i = 0; i < s->n_kept; i++) {
        double surprise = log_sum - (double)exponent_of(s, s->kept[i].id);
        s->kept[i].key = 0xffffffffu - tn_f32_bits((float)fabs(surprise - h)); // the nearest first
    }
    keep_largest(s, tn_weight_share(total, s->cfg.typical_p));
    for (int32_t i = 0; i < s->n_kept; i++) s->kept[i].key = tn_logit_key(s->logits[s->kept[i].id]);
    find_max(s);
}

// Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration".
void tn_stage_top_p(tn_sampler *s)
{
    keep_largest(s, tn_weight_share(weigh(s), s->cfg.top_p)); // the most likely token always stays
}

// Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling".
void tn_stage_min_p(tn_sampler *s)
{
    int32_t n = 0;
    weigh(s);
    for (int32_t i = 0; i < s->n_kept; i++)
        if (s->kept[i].weight >= s->cfg.min_p) s->kept[n++] = s->kept[i];
    s->n_kept = n;
}

// "Exclude Top Choices" (p-e-w 2024, text-generation-webui pull request 6335): of the tokens from the
// threshold up only the least probable stays.
void tn_stage_xtc(tn_sampler *s)
{
    if (tn_rng_uniform(&s->rng) >= (double)s->cfg.xtc_probability) return;
    double least = (double)s->cfg.xtc_threshold * tn_weight_value(weigh(s));
    int32_t n_top = 0, last = -1, n = 0;
    for (int32_t i = 0; i < s->n_kept; i++) {
        if ((double)s->kept[i].weight < least) continue;
        n_top++;
        if (last < 0 || s->kept[i].key <= s->kept[last].key) last = i;
    }
    if (n_top < 2) return;
    for (int32_t i = 0; i < s->n_kept; i++)
        if (i == last || (double)s->kept[i].weight < least) s->kept[n++] = s->kept[i];
    s->n_kept = n;
    find_max(s);
}

// With a range: dynamic temperature by entropy, after Zhu et al. 2023 ("Hot or Cold?"). The temperature goes
// from the lower to the upper end of the range as the entropy goes from 0 to its maximum.
void tn_stage_temperature(tn_sampler *s)
{
    const tn_sampling *c = &s->cfg;
    double t = (double)c->temperature, range = (double)c->dynatemp_range;
    if (range > 0) {
        double low = TN_MAX(t - range, 0), sum = tn_weight_value(weigh(s));
        double share = s->n_kept > 1 ? entropy(s, sum) / log(s->n_kept) : 0;
        t = low + (t + range - low) * pow(TN_MIN(TN_MAX(share, 0), 1), (double)c->dynatemp_exponent);
    }
    s->greedy = s->greedy || t <= 0;
    if (t > 0) s->temperature *= (float)t;
}

// --- the end -----------------------------------------------------------------------------------------

float tn_sampler_mu(const tn_sampler *s)
{
    if (!s->mu) return 0;
    return s->length > 0 ? s->mu[s->length - 1] : 2 * s->cfg.mirostat_tau;
}

// Basu et al. 2021, "Mirostat", algorithm 2: candidates with a surprise above mu are dropped; the surprise of
// the drawn token updates mu.
static void keep_expected(tn_sampler *s)
{
    double log_sum = log(tn_weight_value(weigh(s))), least = log_sum - (double)tn_sampler_mu(s) * log(2.0);
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_kept; i++)
        if ((double)exponent_of(s, s->kept[i].id) >= TN_MIN(least, 0)) s->kept[n++] = s->kept[i];
    s->n_kept = n;
}

int32_t tn_choice_draw(tn_sampler *s)
{
    if (s->mu) keep_expected(s);
    uint64_t random = s->has_drawn ? s->drawn : tn_rng_next(&s->rng), total = weigh(s),
             at = tn_random_below(random, total), weight = 0;
    int32_t i = 0;
    s->has_drawn = false;
    for (; i < s->n_kept - 1; i++) {
        weight = tn_weight_fixed(s->kept[i].weight);
        if (at < weight) break;
        at -= weight;
    }
    weight = tn_weight_fixed(s->kept[i].weight);
    if (s->mu) {
        double surprise = log2((double)total / (double)weight);
        s->mu_chosen =
            tn_sampler_mu(s) - s->cfg.mirostat_eta * (float)(surprise - (double)s->cfg.mirostat_tau);
    }
    return s->kept[i].id;
}

int32_t tn_choice_best(tn_sampler *s)
{
    int32_t id = 0, i = 0;
    if (s->mu) s->mu_chosen = tn_sampler_mu(s);
    if (!s->collected) {
        while (s->logits[id] != s->max) id++;
        return id;
    }
    while (s->logits[s->kept[i].id] != s->max) i++;
    return s->kept[i].id;
}
