// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Gated delta net (Yang et al. 2024): a layer without attention. Queries, keys and values go through a short
// convolution, then each value head updates its matrix from keys to values and reads it with its query. Files
// name its tensors ssm_*.
#include "models/builder.h"

#include <stdio.h>

typedef struct parts {
    tn_tensor *qkv;          // [T, channels]: all queries, all keys, all values
    tn_tensor *z;            // [T, nv, S], gate of the result
    tn_tensor *beta, *alpha; // [T, nv], before their functions
} parts;

static tn_tensor *reshape2(tn_builder *b, tn_tensor *x, int64_t width)
{
    return tn_op_reshape(b->g, x, 2, (int64_t[]){b->key->n_tokens, width});
}

static tn_tensor *reshape3(tn_builder *b, tn_tensor *x, int64_t heads, int64_t dim)
{
    return tn_op_reshape(b->g, x, 3, (int64_t[]){b->key->n_tokens, heads, dim});
}

// Elements [start, start + n) of each group of x [T, groups, ..], as rows [T, groups * n].
static tn_tensor *gather(tn_builder *b, tn_tensor *x, int64_t groups, int64_t start, int64_t n)
{
    return reshape2(b, tn_op_copy(b->g, tn_op_slice(b->g, x, 2, start, n), TN_TYPE_F32), groups * n);
}

// Older files keep the rows of a key head together: query, key, then values and gates of its value heads.
static void project_interleaved(tn_builder *b, int32_t layer, tn_tensor *h, parts *p)
{
    const tn_delta_config *d = &b->c->delta;
    int64_t nk = d->n_key_heads, s = d->dim, rs = d->n_heads / nk * s, row = 2 * s + 2 * rs;
    tn_tensor *x = reshape3(b, tn_builder_linear(b, layer, "ssm_in", h, nk * row, b->c->n_embd), nk, row);
    p->qkv = tn_op_concat(b->g, gather(b, x, nk, 0, s), gather(b, x, nk, s, s), 1);
    p->qkv = tn_op_concat(b->g, p->qkv, gather(b, x, nk, 2 * s, rs), 1);
    p->z = gather(b, x, nk, 2 * s + rs, rs);
}

static parts project(tn_builder *b, int32_t layer, tn_tensor *h)
{
    const tn_delta_config *d = &b->c->delta;
    int64_t n_embd = b->c->n_embd, nk = d->n_key_heads, nv = d->n_heads, r = nv / nk;
    // only these architectures have files of the older form
    bool grouped = b->c->arch->delta == TN_DELTA_GROUPED;
    parts p;
    if (grouped && !tn_builder_has(b, layer, "attn_qkv.weight")) {
        project_interleaved(b, layer, h, &p);
    } else {
        p.qkv = tn_builder_linear(b, layer, "attn_qkv", h, d->n_channels, n_embd);
        p.z = tn_builder_linear(b, layer, "attn_gate", h, nv * d->dim, n_embd);
    }
    p.z = reshape3(b, p.z, nv, d->dim);
    if (grouped &&
        !tn_builder_has(b, layer, "ssm_beta.weight")) { // per key head: beta, then alpha of its value heads
        tn_tensor *x = reshape3(b, tn_builder_linear(b, layer, "ssm_ba", h, 2 * nv, n_embd), nk, 2 * r);
        p.beta = gather(b, x, nk, 0, r);
        p.alpha = gather(b, x, nk, r, r);
    } else {
        p.beta = tn_builder_linear(b, layer, "ssm_beta", h, nv, n_embd);
        p.alpha = tn_builder_linear(b, layer, "ssm_alpha", h, nv, n_embd);
    }
    return p;
}

static tn_tensor *unary(tn_builder *b, tn_tensor *x, int32_t kind)
{
    return tn_op_unary(b->g, x, &(tn_unary_params){.kind = kind});
}

// Logarithm of the decay: ssm_a, which holds -exp(A), times softplus(alpha + bias).
static tn_tensor *decay(tn_builder *b, int32_t layer, tn_tensor *alpha)
{
    int64_t nv = b->c->delta.n_heads;
    tn_tensor *bias = tn_builder_weight(b, layer, "ssm_dt.bias", 0, 1, nv, 0, 0),
              *a = tn_builder_weight(b, layer, "ssm_a", 0, 1, nv, 0, 0);
    return tn_op_mul(b->g, unary(b, tn_op_add(b->g, alpha, bias), TN_UNARY_SOFTPLUS), a);
}

static tn_tensor *state(tn_builder *b, int32_t layer, const char *what, int32_t n_dims, const int64_t *shape)
{
    char name[32];
    snprintf(name, sizeof name, "state_%s.%d", what, layer);
    return tn_graph_state(b->g, name, TN_TYPE_F32, n_dims, shape);
}

static tn_tensor *convolve(tn_builder *b, int32_t layer, tn_tensor *x)
{
    const tn_delta_config *d = &b->c->delta;
    tn_tensor *w = tn_builder_weight(b, layer, "ssm_conv1d.weight", 0, 2, d->n_channels, d->n_conv, 0);
    if (w && tn_tensor_dtype(w) != TN_TYPE_F32) w = tn_op_copy(b->g, w, TN_TYPE_F32);
    tn_short_conv_args args = {
        .state =
            state(b, layer, "conv", 3, (int64_t[]){b->setup->n_state_slots, d->n_conv - 1, d->n_channels}),
        .x = x,
        .w = w,
        .q_start = b->q_start,
        .slots = b->state_slots,
    };
    return unary(b, tn_op_short_conv(b->g, &args, NULL), TN_UNARY_SILU);
}

tn_tensor *tn_mixer_delta(tn_builder *b, int32_t layer, tn_tensor *h, bool select)
{
    const tn_config *c = b->c;
    const tn_delta_config *d = &c->delta;
    int64_t nk = d->n_key_heads, nv = d->n_heads, s = d->dim;
    parts p = project(b, layer, h);
    tn_tensor *g = decay(b, layer, p.alpha), *beta = unary(b, p.beta, TN_UNARY_SIGMOID);
    tn_builder_enter_cache(b, layer);
    tn_tensor *x = convolve(b, layer, p.qkv);
    tn_delta_rule_args args = {
        .state = state(b, layer, "delta", 4, (int64_t[]){b->setup->n_state_slots, nv, s, s}),
        .q = reshape3(b, tn_op_slice(b->g, x, 1, 0, nk * s), nk, s),
        .k = reshape3(b, tn_op_slice(b->g, x, 1, nk * s, nk * s), nk, s),
        .v = reshape3(b, tn_op_slice(b->g, x, 1, 2 * nk * s, nv * s), nv, s),
        .g = g,
        .beta = beta,
        .q_start = b->q_start,
        .slots = b->state_slots,
    };
    tn_delta_rule_params params = {
        .scale = d->scale, .normalise = 1, .eps = c->eps, .grouped = c->arch->delta == TN_DELTA_GROUPED};
    tn_tensor *y = tn_op_delta_rule(b->g, &args, &params, NULL);
    tn_builder_enter(b, layer);
    y = tn_op_glu(b->g, p.z, tn_builder_norm(b, layer, "ssm_norm", y, s),
                  &(tn_glu_params){.act = TN_UNARY_SILU});
    y = reshape2(b, y, nv * s);
    if (select) y = tn_builder_out_rows(b, y);
    return tn_builder_linear(b, layer, "ssm_out", y, c->n_embd, nv * s);
}
