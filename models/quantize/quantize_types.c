// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/quantize/quantize_types.h"

#include "core/compiler.h"
#include "ops/quant.h"

#include <stdlib.h>
#include <string.h>

// "PATTERN=TYPE" after parsing.
typedef struct rule {
    const char *text;
    size_t pattern; // its length
    tn_dtype type;
    bool used;
} rule;

typedef struct picker {
    tn_context *ctx;
    const tn_gguf *in;
    tn_quant_mix_state state;
    const tn_quant_mix_model *model;
    rule *rules;
    int32_t n_rules;
    tn_dtype output, embedding; // -1: by the mix
} picker;

typedef struct named {
    const char *name;
    int64_t tensor;
} named;

static int compare_named(const void *a, const void *b)
{
    return tn_quant_mix_compare(((const named *)a)->name, ((const named *)b)->name);
}

static bool segment_at(const char *pattern, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!name[i] || (pattern[i] != '?' && pattern[i] != name[i])) return false;
    return true;
}

// Matching each piece between stars at its first possible place leaves the longest rest for the following
// pieces, so no backtracking is needed.
bool tn_quantize_name_matches(const char *pattern, size_t length, const char *name)
{
    const char *end = pattern + length;
    while (pattern < end) {
        const char *star = memchr(pattern, '*', (size_t)(end - pattern));
        size_t n = (size_t)((star ? star : end) - pattern);
        while (!segment_at(pattern, n, name))
            if (!*name++) return false;
        name += n;
        pattern += n + (star ? 1 : 0);
    }
    return true;
}

// Integers are indices or tables, not weights.
static bool is_integer(tn_dtype type)
{
    return type == TN_TYPE_I8 || type == TN_TYPE_I16 || type == TN_TYPE_I32 || type == TN_TYPE_I64;
}

// Types of weights that can be written; Q8_1 and Q8_K are for activations only.
static bool can_be_written(tn_dtype type)
{
    return type >= 0 && !is_integer(type) && type != TN_TYPE_Q8_1 && type != TN_TYPE_Q8_K &&
           tn_quant_info_get(type)->from_f32;
}

static tn_status read_type(tn_context *ctx, const char *name, tn_dtype *out)
{
    char list[320];
    size_t n = 0;
    tn_dtype type = tn_dtype_by_name(name);
    if (can_be_written(type)) {
        *out = type;
        return TN_OK;
    }
    for (tn_dtype t = 0; t < TN_TYPE_COUNT; t++) {
        size_t length = strlen(tn_dtype_name(t));
        if (!can_be_written(t) || n + length + 2 > sizeof list) continue;
        list[n++] = ' ';
        memcpy(list + n, tn_dtype_name(t), length);
        n += length;
    }
    list[n] = 0;
    return tn_fail(ctx, TN_ERR_ARG, "\"%s\" is no type that a tensor can get; there are:%s", name, list);
}

static tn_status read_rules(picker *p, const tn_quantize_config *cfg)
{
    if (cfg->n_tensor_types < 0 || (cfg->n_tensor_types > 0 && !cfg->tensor_types))
        return tn_fail(p->ctx, TN_ERR_ARG, "tn_quantize: a list of tensor types is needed");
    p->rules = tn_calloc(p->ctx, (size_t)cfg->n_tensor_types + 1, sizeof *p->rules);
    if (!p->rules) return TN_ERR_MEMORY;
    for (; p->n_rules < cfg->n_tensor_types; p->n_rules++) {
        const char *text = cfg->tensor_types[p->n_rules], *equal = text ? strrchr(text, '=') : NULL;
        if (!equal || equal == text)
            return tn_fail(p->ctx, TN_ERR_ARG, "\"%s\" is not PATTERN=TYPE, as attn_v=Q6_K",
                           text ? text : "");
        rule *r = &p->rules[p->n_rules];
        *r = (rule){.text = text, .pattern = (size_t)(equal - text)};
        tn_status status = read_type(p->ctx, equal + 1, &r->type);
        if (status != TN_OK) return status;
    }
    tn_status status = cfg->output_type ? read_type(p->ctx, cfg->output_type, &p->output) : TN_OK;
    if (status == TN_OK && cfg->embedding_type)
        status = read_type(p->ctx, cfg->embedding_type, &p->embedding);
    return status;
}

// The type that the caller requests for a tensor, -1: none. Requests for the head and the embedding take
// precedence over patterns.
static tn_dtype wanted_type(picker *p, const char *name)
{
    bool embedding = strcmp(name, "token_embd.weight") == 0;
    bool output = p->model->has_output ? strcmp(name, "output.weight") == 0 : embedding;
    tn_dtype type = -1;
    for (int32_t i = p->n_rules; i-- > 0;) {
        if (!tn_quantize_name_matches(p->rules[i].text, p->rules[i].pattern, name)) continue;
        p->rules[i].used = true;
        type = p->rules[i].type;
    }
    if (output && p->output >= 0) type = p->output;
    if (embedding && p->embedding >= 0) type = p->embedding;
    return type;
}

static tn_status pick_type(picker *p, const tn_gguf_tensor *t, tn_dtype *out)
{
    tn_dtype to = t->dtype;
    if (!is_integer(t->dtype)) {
        to = tn_quant_mix_pick(&p->state, t->name, t->dtype, t->n_dims, t->ne);
        bool keeps = tn_quant_mix_keeps(t->name, t->n_dims, t->ne);
        tn_dtype wanted = keeps ? -1 : wanted_type(p, t->name);
        if (wanted >= 0) to = tn_quant_mix_fit(wanted, t->ne[t->n_dims - 1]);
    }
    if (to != t->dtype && (!tn_quant_info_get(to)->from_f32 || !tn_quant_info_get(t->dtype)->to_f32))
        return tn_fail(p->ctx, TN_ERR_UNSUPPORTED, "tensor \"%s\": %s cannot be converted to %s", t->name,
                       tn_dtype_name(t->dtype), tn_dtype_name(to));
    *out = to;
    return TN_OK;
}

static tn_status pick_all(picker *p, named *order, tn_dtype *types)
{
    size_t n = (size_t)tn_gguf_n_tensors(p->in);
    for (size_t i = 0; i < n; i++) order[i] = (named){tn_gguf_tensor_at(p->in, (int64_t)i)->name, (int64_t)i};
    qsort(order, n, sizeof *order, compare_named);
    for (size_t i = 0; i < n; i++) {
        tn_status status = pick_type(p, tn_gguf_tensor_at(p->in, order[i].tensor), &types[order[i].tensor]);
        if (status != TN_OK) return status;
    }
    for (int32_t i = 0; i < p->n_rules; i++) {
        if (!p->rules[i].used)
            return tn_fail(p->ctx, TN_ERR_ARG, "\"%s\": no tensor that can be quantised has such a name",
                           p->rules[i].text);
    }
    return TN_OK;
}

tn_status tn_quantize_pick_types(tn_context *ctx, const tn_gguf *in, const tn_quantize_config *cfg,
                                 const tn_quant_mix *mix, const tn_quant_mix_model *model, tn_dtype *types)
{
    picker p = {.ctx = ctx,
                .in = in,
                .state = tn_quant_mix_begin(mix, model),
                .model = model,
                .output = -1,
                .embedding = -1};
    tn_status status = read_rules(&p, cfg);
    named *order = status == TN_OK ? tn_calloc(ctx, (size_t)tn_gguf_n_tensors(in) + 1, sizeof *order) : NULL;
    if (status == TN_OK) status = order ? pick_all(&p, order, types) : TN_ERR_MEMORY;
    tn_free(ctx, order);
    tn_free(ctx, p.rules);
    return status;
}
