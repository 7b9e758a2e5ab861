// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What steps cost. Every operand counts once, as far as the step needs it: of tables and caches the rows in
// question, of experts those that are used. What kernels read again, or keep in a cache of the processor, is
// not the step's but the kernel's.
#include "ops/cost.h"

#include "ops/operands.h"
#include "ops/product.h"

#include <math.h>

static double bytes(const tn_view *v)
{
    return v && v->ne[3] > 0 ? (double)tn_dtype_row_size(v->dtype, v->ne[3]) * (double)tn_view_n_rows(v)
                             : 0.0;
}

static double n_elems(const tn_view *v)
{
    return v && v->ne[3] > 0 ? (double)tn_view_n_elems(v) : 0.0;
}

static double row_bytes(const tn_view *v)
{
    return (double)tn_dtype_row_size(v->dtype, v->ne[3]);
}

// Of n draws of `used` different things out of `all` each: how many different things they are on average.
static double distinct(double n, double used, double all)
{
    return all > 0.0 ? all * (1.0 - pow(1.0 - TN_MIN(used / all, 1.0), n)) : 0.0;
}

// --- families ----------------------------------------------------------------------------------------------
// Each is called with all sources read and all new results written once, and corrects that.

static void cost_elementwise(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    TN_UNUSED(l);
    enum { FUNCTION = 4, GLU = 5 }; // silu: exp, add, divide, multiply
    double each = 1.0;
    if (s->op == TN_OP_glu) each = GLU;
    if (s->op == TN_OP_unary)
        each = ((const tn_unary_params *)s->params)->kind == TN_UNARY_AFFINE ? 2 : FUNCTION;
    c->ops = each * n_elems(&s->dst[0]);
}

static void cost_move(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    TN_UNUSED(l);
    if (s->op == TN_OP_get_rows) {
        const tn_view *table = &s->src[TN_SRC_get_rows_table];
        double rows = n_elems(&s->src[TN_SRC_get_rows_ids]);
        c->read[TN_SRC_get_rows_table] = row_bytes(table) * TN_MIN(rows, (double)tn_view_n_rows(table));
    }
    if (s->op == TN_OP_cache_write) {
        double rows = (double)tn_view_n_rows(&s->src[TN_SRC_cache_write_x]);
        c->read[TN_SRC_cache_write_cache] = 0.0;
        c->written[0] = rows * row_bytes(&s->src[TN_SRC_cache_write_cache]);
    }
}

static void cost_norm(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    TN_UNUSED(l);
    // square and add, two multiplications; layer_norm also subtracts the mean, which takes a sum, and adds
    enum { RMS = 4, LAYER = 8 };
    double add = s->op == TN_OP_add_rms_norm ? 1.0 : 0.0;
    c->ops = ((s->op == TN_OP_layer_norm ? LAYER : RMS) + add) * n_elems(&s->src[0]);
}

enum { ROPE_OPS = 3, ROPE_NORM_OPS = 4 }; // of an element: 4 multiplications and 2 additions a pair

static void cost_rope(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    TN_UNUSED(l);
    if (s->op != TN_OP_rope_cache) {
        c->ops = (ROPE_OPS + (s->op == TN_OP_norm_rope ? ROPE_NORM_OPS : 0)) * n_elems(&s->src[0]);
        return;
    }
    const tn_rope_cache_params *p = s->params;
    tn_rope_cache_views v = tn_rope_cache_views_get(s);
    c->read[TN_SRC_rope_cache_cache_k] = c->read[TN_SRC_rope_cache_cache_v] = 0.0;
    c->written[0] = (double)tn_view_n_rows(v.k) * row_bytes(v.cache_k);
    c->written[1] = (double)tn_view_n_rows(v.v) * row_bytes(v.cache_v);
    c->ops = (ROPE_OPS + (p->has_norm[0] ? ROPE_NORM_OPS : 0)) * n_elems(v.q) +
             (ROPE_OPS + (p->has_norm[1] ? ROPE_NORM_OPS : 0)) * n_elems(v.k);
}

static void cost_softmax(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    TN_UNUSED(l);
    // scale, largest, exp, sum, divide; and of the others the comparison or addition, for the logarithm exp
    double each = s->op == TN_OP_softmax ? 5.0 : s->op == TN_OP_argmax_logprob ? 3.0 : 1.0;
    if (s->op == TN_OP_softmax && tn_step_has_src(s, TN_SRC_softmax_mask)) each += 1.0;
    c->ops = each * n_elems(&s->src[0]);
}

// Of the query at position p: the first position that it sees.
static int64_t first_seen(const tn_attention_params *p, int64_t at)
{
    int64_t first = 0;
    if (p->window > 0) first = at - p->window + 1;
    if (p->chunk > 0) first = TN_MAX(first, at / p->chunk * p->chunk);
    return TN_MAX(first, 0);
}

// Adds the keys that a sequence of n queries and `length` keys reads, and the pairs of query and key.
static void count_keys(const tn_attention_params *p, int64_t n, int64_t length, double *keys, double *pairs)
{
    if (n <= 0 || length <= 0) return;
    int64_t start = TN_MAX(length - n, 0); // position of the first query
    *keys += (double)(length - first_seen(p, start));
    for (int64_t i = start; i < length; i++)
        *pairs += (double)((p->causal ? i + 1 : length) - first_seen(p, i));
}

static void cost_attention(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    const tn_attention_params *p = s->params;
    tn_attention_views v = tn_attention_views_get(s);
    int64_t n_seqs = v.kv_len->ne[3], n_tokens = v.q->ne[1], heads = v.q->ne[2];
    double keys = 0.0, pairs = 0.0;
    for (int64_t i = 0; i < n_seqs; i++) {
        int64_t n = l->q_start ? l->q_start[i + 1] - l->q_start[i]
                               : n_tokens * (i + 1) / n_seqs - n_tokens * i / n_seqs;
        count_keys(p, n, l->kv_len ? l->kv_len[i] : l->depth + n, &keys, &pairs);
    }
    // Compressed caches: the values are the first part of the keys' rows, and are read with them.
    bool in_keys = v.v->nb[2] == v.k->nb[2] && v.v->ne[3] < v.k->ne[3];
    double kv_heads = (double)v.k->ne[1];
    c->read[TN_SRC_attention_k] = keys * kv_heads * row_bytes(v.k);
    c->read[TN_SRC_attention_v] = in_keys ? 0.0 : keys * kv_heads * row_bytes(v.v);
    c->ops = 2.0 * pairs * (double)heads * (double)(v.k->ne[3] + v.v->ne[3]);
    c->product_ops = c->ops;
}

static void cost_product(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    TN_UNUSED(l);
    tn_product p = tn_product_get(s);
    double used = 1.0; // share of the weights that is read
    if (p.ids) {
        double slots = (double)p.ids->ne[3], tokens = n_elems(p.ids) / TN_MAX(slots, 1.0);
        used = distinct(tokens, slots, (double)p.n_experts) / (double)p.n_experts;
    }
    for (int32_t i = 0; i < p.n_weights; i++) {
        c->read[p.at.w[i]] = used * bytes(p.w[i]);
        c->product_ops += 2.0 * (double)p.m * (double)p.k * (double)p.w[i]->ne[2];
    }
    c->ops = c->product_ops;
    if (p.norm) c->ops += 4.0 * n_elems(p.x);
    if (p.glu) c->ops += 5.0 * n_elems(p.y[0]);
    if (p.act != TN_UNARY_NONE) c->ops += 4.0 * n_elems(p.y[0]);
    if (p.residual) c->ops += n_elems(p.residual);
    for (int32_t i = 0; i < p.n_weights; i++)
        if (p.bias[i]) c->ops += (double)p.m * n_elems(p.bias[i]);
}

static void cost_moe(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    TN_UNUSED(l);
    c->ops = n_elems(&s->src[0]); // comparisons, or additions
    if (s->op == TN_OP_moe_sum || s->op == TN_OP_moe_combine) c->ops *= 2.0;
    if (s->op != TN_OP_moe_route) return;
    tn_moe_route_sources at = tn_moe_route_sources_get(s->params);
    if (at.router < 0) return;
    const tn_view *x = &s->src[at.x], *router = &s->src[at.router];
    c->product_ops = 2.0 * (double)tn_view_n_rows(x) * n_elems(router);
    c->ops = c->product_ops + (double)(tn_view_n_rows(x) * tn_view_n_rows(router));
    if (at.norm >= 0) c->ops += 4.0 * n_elems(x);
}

// Each sequence reads one state and writes one.
static void cost_recurrent(const tn_step *s, const tn_cost_lengths *l, tn_cost *c)
{
    TN_UNUSED(l);
    const tn_view *state = &s->src[0];
    bool conv = s->op == TN_OP_short_conv;
    const tn_view *slots = &s->src[conv ? TN_SRC_short_conv_slots : TN_SRC_delta_rule_slots];
    // [slots, C - 1, N] has its slots at 1, [slots, heads, Sk, Sv] at 0
    double of_one = bytes(state) / (double)(conv ? state->ne[1] : state->ne[0]);
    c->read[0] = c->written[0] = (double)slots->ne[2] * of_one;
    if (conv) {
        c->ops = 2.0 * n_elems(&s->src[TN_SRC_short_conv_x]) * (double)s->src[TN_SRC_short_conv_w].ne[3];
        return;
    }
    // S := decay S, then S += k (beta (v - k S))^T, and q S: 7 of each element of the state for each token
    double tokens = n_elems(&s->src[TN_SRC_delta_rule_v]) / (double)(state->ne[1] * state->ne[3]);
    c->ops = 7.0 * tokens * (double)(state->ne[1] * state->ne[2] * state->ne[3]);
}

// --- the table ---------------------------------------------------------------------------------------------

static void (*const families[TN_FAMILY_COUNT])(const tn_step *, const tn_cost_lengths *, tn_cost *) = {
#define TN_FAMILY(name, set) cost_##name,
#include "ops/families.def"
};

tn_cost tn_step_cost(const tn_step *step, const tn_cost_lengths *lengths)
{
    static const tn_cost_lengths none = {0};
    const tn_op_info *op = tn_op_info_get(step->op);
    tn_cost c = {.ops = 0.0};
    if (op->flags & TN_OP_VIEW) return c;
    for (int32_t i = 0; i < step->n_src; i++) c.read[i] = bytes(&step->src[i]);
    for (int32_t i = 0; i < step->n_dst; i++)
        c.written[i] = tn_op_aliases(op->flags, i) ? 0.0 : bytes(&step->dst[i]);
    families[op->family](step, lengths ? lengths : &none, &c);
    return c;
}

double tn_step_work(const tn_step *step)
{
    tn_cost_lengths half = {0};
    if (step->op == TN_OP_attention)
        half.depth = step->src[TN_SRC_attention_block_table].ne[3] * step->src[TN_SRC_attention_k].ne[2] / 2;
    return tn_step_cost(step, &half).ops / 2.0;
}

double tn_cost_bytes(const tn_cost *c)
{
    double sum = 0.0;
    for (int32_t i = 0; i < TN_MAX_SRC; i++) sum += c->read[i];
    for (int32_t i = 0; i < TN_MAX_DST; i++) sum += c->written[i];
    return sum;
}
