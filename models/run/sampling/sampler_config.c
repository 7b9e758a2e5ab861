// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of sampling: defaults and ranges from sampling.def, the table of stages, the order of stages.
#include "models/run/sampling/sampler_impl.h"

#include <string.h>

// --- stages ------------------------------------------------------------------------------------------

static bool sigma_active(const tn_sampling *c)
{
    return c->top_n_sigma > 0;
}

static bool top_k_active(const tn_sampling *c)
{
    return c->top_k > 0;
}

static bool typical_active(const tn_sampling *c)
{
    return c->typical_p < 1;
}

static bool top_p_active(const tn_sampling *c)
{
    return c->top_p < 1;
}

static bool min_p_active(const tn_sampling *c)
{
    return c->min_p > 0;
}

static bool xtc_active(const tn_sampling *c)
{
    return c->xtc_probability > 0 && c->xtc_threshold <= 0.5f;
}

static bool temperature_active(const tn_sampling *c)
{
    return c->temperature != 1 || c->dynatemp_range > 0;
}

// clang-format off
const tn_stage tn_stages[TN_STAGE_COUNT] = {
    [TN_STAGE_PENALTIES]   = {"penalties", "", false, false, tn_stage_penalties_active, tn_stage_penalties},
    [TN_STAGE_DRY]         = {"dry", "", false, false, tn_stage_dry_active, tn_stage_dry},
    [TN_STAGE_TOP_N_SIGMA] = {"top_n_sigma", "top_nsigma", true, true, sigma_active, tn_stage_top_n_sigma},
    [TN_STAGE_TOP_K]       = {"top_k", "", true, true, top_k_active, tn_stage_top_k},
    [TN_STAGE_TYPICAL]     = {"typ_p", "typical_p", true, false, typical_active, tn_stage_typical},
    [TN_STAGE_TOP_P]       = {"top_p", "nucleus", true, true, top_p_active, tn_stage_top_p},
    [TN_STAGE_MIN_P]       = {"min_p", "", true, true, min_p_active, tn_stage_min_p},
    [TN_STAGE_XTC]         = {"xtc", "", true, false, xtc_active, tn_stage_xtc},
    [TN_STAGE_TEMPERATURE] = {"temperature", "temp", false, true, temperature_active, tn_stage_temperature},
};
// clang-format on

// Names may be written with - in place of _.
static bool is_name(const char *name, const char *text, size_t n)
{
    if (strlen(name) != n) return false;
    for (size_t i = 0; i < n; i++)
        if (name[i] != (text[i] == '-' ? '_' : text[i])) return false;
    return n > 0;
}

static int32_t stage_by_name(const char *text, size_t n)
{
    int32_t i = 0;
    while (i < TN_STAGE_COUNT && !is_name(tn_stages[i].name, text, n) &&
           !is_name(tn_stages[i].other_name, text, n))
        i++;
    return i;
}

tn_status tn_stages_read(tn_context *ctx, const char *text, uint8_t order[TN_STAGE_COUNT], int32_t *n_order)
{
    *n_order = 0;
    if (!text)
        while (*n_order < TN_STAGE_COUNT) order[*n_order] = (uint8_t)*n_order, ++*n_order;
    while (text && *text) {
        size_t n = strcspn(text, ";");
        int32_t id = stage_by_name(text, n);
        if (id == TN_STAGE_COUNT)
            return tn_fail(ctx, TN_ERR_ARG,
                           "sampling: unknown sampler '%.*s'; known are penalties, dry, top_n_sigma, top_k, "
                           "typ_p, top_p, min_p, xtc, temperature, separated by ';'",
                           (int)TN_MIN(n, 64), text);
        for (int32_t i = 0; i < *n_order; i++)
            if (order[i] == id)
                return tn_fail(ctx, TN_ERR_ARG, "sampling: the sampler '%s' comes twice", tn_stages[id].name);
        order[(*n_order)++] = (uint8_t)id;
        text += n + (text[n] == ';');
    }
    return TN_OK;
}

// --- parameters --------------------------------------------------------------------------------------

#define IS_INT_INT        true
#define IS_INT_FLOAT      false
#define FIELD_RANGE(name) #name, offsetof(tn_sampling, name)

static const tn_param_range sampling_ranges[] = {
#define TN_SAMPLING(kind, field, min, max, def) {FIELD_RANGE(field), IS_INT_##kind, (min), (max)},
#include <tenon/sampling.def>
};

void tn_sampling_init(tn_sampling *s, size_t struct_size)
{
    static const tn_sampling defaults = {
        .n_dry_breakers = -1,
#define TYPE_OF_INT                             int32_t
#define TYPE_OF_FLOAT                           float
#define TN_SAMPLING(kind, field, min, max, def) .field = (TYPE_OF_##kind)(def),
#include <tenon/sampling.def>
    };
    tn_struct_init(s, struct_size, &defaults, sizeof defaults);
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
        double min = r->is_int ? r->min : (double)(float)r->min; // 0.01 as a float is not 0.01 as a double
        if (value >= min && value <= r->max) continue;
        return tn_fail(ctx, TN_ERR_ARG, "%s: %s is %.9g, allowed %.10g..%.10g", what, r->name, value, r->min,
                       r->max);
    }
    return TN_OK;
}

static tn_status check_bias(tn_context *ctx, const tn_sampling *sampling, int32_t n_vocab)
{
    const tn_param_range n_bias = {FIELD_RANGE(n_bias), true, 0, n_vocab};
    tn_status status = tn_params_check(ctx, "sampling", sampling, &n_bias, 1);
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

static tn_status check_breakers(tn_context *ctx, const tn_sampling *c)
{
    const tn_param_range range = {FIELD_RANGE(n_dry_breakers), true, -1, TN_BREAKERS_MAX};
    tn_status status = tn_params_check(ctx, "sampling", c, &range, 1);
    if (status != TN_OK) return status;
    if (c->n_dry_breakers > 0 && !c->dry_breakers)
        return tn_fail(ctx, TN_ERR_ARG, "sampling: n_dry_breakers is %d, but dry_breakers is NULL",
                       (int)c->n_dry_breakers);
    for (int32_t i = 0; i < c->n_dry_breakers; i++) {
        size_t size = c->dry_breakers[i] ? strlen(c->dry_breakers[i]) : 0;
        if (size == 0 || size > TN_BREAKER_SIZE_MAX)
            return tn_fail(ctx, TN_ERR_ARG, "sampling: dry_breakers[%d] has %zu bytes, allowed 1..%d", (int)i,
                           size, (int)TN_BREAKER_SIZE_MAX);
    }
    return TN_OK;
}

tn_status tn_sampling_check(tn_context *ctx, const tn_sampling *sampling, int32_t n_vocab)
{
    uint8_t order[TN_STAGE_COUNT];
    int32_t n_order;
    if (sampling->mirostat != 0 && sampling->mirostat != 2)
        return tn_fail(ctx, TN_ERR_ARG, "sampling: mirostat is %d, allowed 0 and 2", (int)sampling->mirostat);
    tn_status status = tn_params_check(ctx, "sampling", sampling, sampling_ranges, TN_COUNT(sampling_ranges));
    if (status == TN_OK) status = tn_stages_read(ctx, sampling->samplers, order, &n_order);
    if (status == TN_OK) status = check_breakers(ctx, sampling);
    if (status == TN_OK) status = check_bias(ctx, sampling, n_vocab);
    return status;
}
