// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Ids, slots, lengths and block tables from an application are checked before anything is submitted: weights
// when they are bound, inputs before each run that follows a write, both in host memory. What steps compute
// for each other never passes through here: kernels take an id or a slot that is outside as none (zeros are
// read, nothing is written), and lengths and tables, which they trust, must not be computed.
#include "core/context.h"
#include "graph/graph.h"
#include "ops/operands.h"
#include "ops/product.h"

#include <stdio.h>
#include <string.h>

typedef struct checked {
    tn_context *ctx;
    const tn_step *step;
    const char *const *names;
} checked;

static uint32_t bit(int32_t src)
{
    return src < 0 ? 0u : 1u << src;
}

// A bit for each source of the step whose integers kernels trust.
static uint32_t trusted_of(const tn_step *step)
{
    switch (step->op) {
    case TN_OP_attention:
        return bit(TN_SRC_attention_q_start) | bit(TN_SRC_attention_kv_len) |
               bit(TN_SRC_attention_block_table);
    case TN_OP_short_conv:
        return bit(TN_SRC_short_conv_q_start);
    case TN_OP_delta_rule:
        return bit(TN_SRC_delta_rule_q_start);
    default:
        return 0;
    }
}

// A bit for each source that says where to read or write.
static uint32_t indices_of(const tn_step *step)
{
    switch (step->op) {
    case TN_OP_get_rows:
        return bit(TN_SRC_get_rows_ids);
    case TN_OP_moe_weights:
        return bit(TN_SRC_moe_weights_ids);
    case TN_OP_cache_write:
        return bit(TN_SRC_cache_write_slots);
    case TN_OP_rope_cache:
        return bit(TN_SRC_rope_cache_slots);
    case TN_OP_short_conv:
        return trusted_of(step) | bit(TN_SRC_short_conv_slots);
    case TN_OP_delta_rule:
        return trusted_of(step) | bit(TN_SRC_delta_rule_slots);
    case TN_OP_attention:
        return trusted_of(step);
    default:
        return tn_product_form_get(step->op) ? bit(tn_product_get(step).at.ids) : 0;
    }
}

// --- one operand -----------------------------------------------------------------------------------

// Element i of a view, counted in order. Views of callers may have strides.
static int64_t at(const tn_view *v, int64_t i)
{
    const char *row = tn_view_row(v, i / v->ne[3]);
    return *(const int32_t *)(const void *)(row + i % v->ne[3] * v->nb[3]);
}

static tn_status outside(const checked *c, int32_t src, int64_t i, int64_t low, int64_t high)
{
    char buf[32], called[80] = "";
    const char *name = tn_source_name(c->step->op, c->step->params, src, buf, sizeof buf);
    if (c->names[src]) snprintf(called, sizeof called, " (\"%.64s\")", c->names[src]);
    return tn_fail(c->ctx, TN_ERR_ARG, "%s: element %lld of %s%s is %lld, must be %lld to %lld",
                   tn_op_name(c->step->op), (long long)i, name, called, (long long)at(&c->step->src[src], i),
                   (long long)low, (long long)high);
}

// Every element of a source is low to high.
static tn_status check_range(const checked *c, int32_t src, int64_t low, int64_t high)
{
    const tn_view *v = &c->step->src[src];
    int64_t n = v->data ? tn_view_n_elems(v) : 0;
    for (int64_t i = 0; i < n; i++)
        if (at(v, i) < low || at(v, i) > high) return outside(c, src, i, low, high);
    return TN_OK;
}

// Ids that may be negative, which says that there is none.
static tn_status check_or_none(const checked *c, int32_t src, int64_t high)
{
    return check_range(c, src, INT32_MIN, high);
}

// --- sequences -------------------------------------------------------------------------------------

// The tokens of sequence s are start[s] .. start[s + 1] - 1.
static tn_status check_starts(const checked *c, int32_t src, int64_t n_tokens, bool one_each)
{
    const tn_view *v = &c->step->src[src];
    int64_t n = v->data ? v->ne[3] : 0, low = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t high = n_tokens;
        if (one_each) low = high = i;
        if (at(v, i) < low || at(v, i) > high || at(v, i) > n_tokens)
            return outside(c, src, i, low, TN_MIN(high, n_tokens));
        low = at(v, i);
    }
    return TN_OK;
}

static tn_status check_attention(const checked *c)
{
    tn_attention_views in = tn_attention_views_get(c->step);
    const tn_attention_params *p = c->step->params;
    const tn_view *start = in.q_start, *len = in.kv_len, *table = in.block_table;
    int64_t block = in.k->ne[2], n_blocks = in.k->ne[0], max_keys = table->ne[3] * block;
    bool one_each = c->step->join.one_query;
    if (one_each && in.q->ne[1] != len->ne[3])
        return tn_fail(c->ctx, TN_ERR_ARG, "attention: one_query, but %lld tokens of %lld sequences",
                       (long long)in.q->ne[1], (long long)len->ne[3]);
    tn_status status = check_starts(c, TN_SRC_attention_q_start, in.q->ne[1], one_each);
    if (!start->data || !len->data || status != TN_OK) return status;
    for (int64_t s = 0; s < len->ne[3]; s++) {
        int64_t n = at(start, s + 1) - at(start, s), keys = at(len, s);
        if (keys < n || keys > max_keys) return outside(c, TN_SRC_attention_kv_len, s, n, max_keys);
        if (!table->data || n == 0) continue;
        // The first key that the first token sees; what lies before nobody reads.
        int64_t first = keys - n, low = p->window > 0 ? first - p->window + 1 : 0;
        if (p->chunk > 0) low = TN_MAX(low, first / p->chunk * p->chunk);
        for (int64_t b = TN_MAX(low, 0) / block; b * block < keys; b++) {
            int64_t i = s * table->ne[3] + b;
            if (at(table, i) < 0 || at(table, i) >= n_blocks)
                return outside(c, TN_SRC_attention_block_table, i, 0, n_blocks - 1);
        }
    }
    return TN_OK;
}

// State [slots, ..], q_start at source `src` and the slots behind it. A negative slot is none.
static tn_status check_recurrent(const checked *c, int32_t src, int64_t n_tokens, int64_t n_slots)
{
    tn_status status = check_starts(c, src, n_tokens, false);
    return status == TN_OK ? check_or_none(c, src + 1, n_slots - 1) : status;
}

// Sources without data are not checked.
static tn_status check_step(tn_context *ctx, const tn_step *step, const char *const names[TN_MAX_SRC])
{
    checked c = {ctx, step, names};
    const tn_view *src = step->src;
    switch (step->op) {
    case TN_OP_get_rows:
        return check_range(&c, TN_SRC_get_rows_ids, 0, src[TN_SRC_get_rows_table].ne[2] - 1);
    case TN_OP_moe_weights:
        return check_range(&c, TN_SRC_moe_weights_ids, 0, src[TN_SRC_moe_weights_x].ne[3] - 1);
    case TN_OP_cache_write: {
        const tn_view *cache = &src[TN_SRC_cache_write_cache];
        return check_or_none(&c, TN_SRC_cache_write_slots, cache->ne[0] * cache->ne[2] - 1);
    }
    case TN_OP_rope_cache: {
        const tn_view *k = &src[TN_SRC_rope_cache_cache_k];
        return check_or_none(&c, TN_SRC_rope_cache_slots, k->ne[0] * k->ne[2] - 1);
    }
    case TN_OP_short_conv:
        return check_recurrent(&c, TN_SRC_short_conv_q_start, src[TN_SRC_short_conv_x].ne[2],
                               src[TN_SRC_short_conv_state].ne[1]);
    case TN_OP_delta_rule:
        return check_recurrent(&c, TN_SRC_delta_rule_q_start, src[TN_SRC_delta_rule_q].ne[1],
                               src[TN_SRC_delta_rule_state].ne[0]);
    case TN_OP_attention:
        return check_attention(&c);
    default:
        break;
    }
    if (!tn_product_form_get(step->op)) return TN_OK;
    tn_product p = tn_product_get(step);
    return p.ids ? check_range(&c, p.at.ids, 0, p.n_experts - 1) : TN_OK;
}

// --- a plan ----------------------------------------------------------------------------------------

typedef struct check {
    tn_step step; // data of indices that are inputs or weights, NULL for all else
    const char *names[TN_MAX_SRC];
} check;

struct tn_run_checks {
    tn_context *ctx;
    int32_t n;
    check checks[];
};

static const tn_plan_port *port_of(const tn_plan_port *ports, int32_t n, int32_t value)
{
    for (int32_t i = 0; i < n; i++)
        if (ports[i].value == value) return &ports[i];
    return NULL;
}

static const void *bound_data(const tn_binding *bindings, int32_t n, const char *name)
{
    for (int32_t i = 0; i < n; i++)
        if (strcmp(bindings[i].name, name) == 0) return bindings[i].data;
    return NULL;
}

static tn_status not_known(const tn_plan *p, const tn_step *step, int32_t src)
{
    char buf[32];
    return tn_fail(p->ctx, TN_ERR_UNSUPPORTED,
                   "%s: %s must be an input or a weight, because it is checked before it is used",
                   tn_op_name(step->op), tn_source_name(step->op, step->params, src, buf, sizeof buf));
}

typedef struct known {
    const tn_plan *plan;
    const char *host_inputs;
    const tn_binding *bindings;
    int32_t n_bindings;
} known;

// Finds the indices of a step in host memory. *has_input: some of them change with the inputs.
static tn_status find_data(const known *k, const tn_plan_step *s, check *c, bool *has_input)
{
    uint32_t indices = indices_of(&s->step), trusted = trusted_of(&s->step);
    c->step = s->step;
    *has_input = false;
    for (int32_t i = 0; i < s->step.n_src; i++) {
        if (!(indices >> i & 1) || s->src[i].root < 0) continue;
        const tn_tensor *root = k->plan->graph->values[s->src[i].root];
        const char *data = NULL;
        if (root->kind == TN_VALUE_INPUT) {
            const tn_plan_port *port = port_of(k->plan->inputs, k->plan->n_inputs, root->id);
            if (port) data = k->host_inputs + port->offset;
            *has_input = true;
        } else if (root->kind == TN_VALUE_WEIGHT) {
            data = bound_data(k->bindings, k->n_bindings, root->name);
        }
        if (!data && (trusted >> i & 1)) return not_known(k->plan, &s->step, i);
        // Of a step only sources with data are read.
        c->step.src[i].data = data ? (void *)(uintptr_t)(data + s->src[i].offset) : NULL;
        c->names[i] = data ? root->name : NULL;
    }
    return TN_OK;
}

tn_status tn_run_checks_create(const tn_plan *plan, const char *host_inputs, const tn_binding *bindings,
                               int32_t n, tn_run_checks **out)
{
    known k = {plan, host_inputs, bindings, n};
    int32_t n_steps = 0;
    for (int32_t i = 0; i < plan->n_steps; i++) n_steps += indices_of(&plan->steps[i].step) != 0;
    if (n_steps == 0) return TN_OK;
    tn_run_checks *made = tn_calloc(plan->ctx, 1, sizeof *made + (size_t)n_steps * sizeof(check));
    if (!made) return TN_ERR_MEMORY;
    made->ctx = plan->ctx;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < plan->n_steps && status == TN_OK; i++) {
        if (indices_of(&plan->steps[i].step) == 0) continue;
        check *c = &made->checks[made->n];
        bool has_input;
        status = find_data(&k, &plan->steps[i], c, &has_input);
        if (status == TN_OK && !has_input) status = check_step(plan->ctx, &c->step, c->names);
        if (has_input)
            made->n++;
        else
            memset(c, 0, sizeof *c);
    }
    if (status != TN_OK || made->n == 0) tn_run_checks_destroy(&made);
    if (status == TN_OK) *out = made;
    return status;
}

tn_status tn_run_checks_run(const tn_run_checks *checks)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < checks->n && status == TN_OK; i++)
        status = check_step(checks->ctx, &checks->checks[i].step, checks->checks[i].names);
    return status;
}

void tn_run_checks_destroy(tn_run_checks **checks)
{
    if (*checks) tn_free((*checks)->ctx, *checks);
    *checks = NULL;
}
