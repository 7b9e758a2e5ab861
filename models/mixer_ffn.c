// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Feed-forward: gated (two matrices or one fused), plain, and mixtures of experts.
#include "models/builder.h"

#include <stdio.h>

// Halves of the last dimension: gate rows first, then up rows.
static tn_tensor *glu_of_halves(tn_builder *b, tn_tensor *both, int32_t axis, int64_t n_ff, const tn_glu_params *p)
{
    tn_tensor *gate = tn_op_slice(b->g, both, axis, 0, n_ff), *up = tn_op_slice(b->g, both, axis, n_ff, n_ff);
    return tn_op_glu(b->g, gate, up, p);
}

static int64_t rows_of(const tn_builder *b, int32_t layer, const char *name)
{
    tn_builder *any = (tn_builder *)(uintptr_t)b; // records nothing new but the weight itself
    tn_tensor *w = tn_builder_weight(any, layer, name, 0, 2, 0, 0, 0);
    return w ? tn_tensor_dim(w, 0) : 0;
}

tn_tensor *tn_mixer_ffn(tn_builder *b, int32_t layer, tn_tensor *h)
{
    const tn_config *c = b->c;
    int64_t n_ff = c->layers[layer].n_ff, n_embd = c->n_embd;
    tn_glu_params glu = {.act = c->arch->act};
    tn_tensor *y;
    if (b->status == TN_OK && n_ff < 1)
        tn_builder_refuse(b, tn_fail(b->model->ctx, TN_ERR_FORMAT, "key %s.feed_forward_length is missing", c->arch->name));
    if (tn_builder_has(b, layer, "ffn_gate.weight")) {
        tn_tensor *gate = tn_builder_linear(b, layer, "ffn_gate", h, n_ff, n_embd);
        tn_tensor *up = tn_builder_linear(b, layer, "ffn_up", h, n_ff, n_embd);
        y = tn_op_glu(b->g, gate, up, &glu);
    } else if (rows_of(b, layer, "ffn_up.weight") == 2 * n_ff) {
        y = glu_of_halves(b, tn_builder_linear(b, layer, "ffn_up", h, 2 * n_ff, n_embd), 1, n_ff, &glu);
    } else {
        tn_tensor *up = tn_builder_linear(b, layer, "ffn_up", h, n_ff, n_embd);
        y = tn_op_unary(b->g, up, &(tn_unary_params){.kind = c->arch->act});
    }
    return tn_builder_linear(b, layer, "ffn_down", y, n_embd, n_ff);
}

// Rows of x times the matrices of their experts, plus the biases of those if the file has any: "<name>.weight" [n, n_out, n_in],
// "<name>.bias" [n, n_out].
static tn_tensor *expert_linear(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, tn_tensor *ids, int64_t n_out, int64_t n_in)
{
    char text[64];
    int64_t n = b->c->n_experts;
    snprintf(text, sizeof text, "%s.weight", name);
    tn_tensor *y = tn_op_matmul_id(b->g, x, tn_builder_weight(b, layer, text, 0, 3, n, n_out, n_in), ids);
    snprintf(text, sizeof text, "%s.bias", name);
    tn_tensor *bias = tn_builder_weight(b, layer, text, TN_WEIGHT_OPTIONAL, 2, n, n_out, 0);
    return bias ? tn_op_add(b->g, y, tn_op_get_rows(b->g, bias, ids, 1.0f)) : y;
}

// architectures.md 3.4: router, top-k, gathered products, weighted sum.
tn_tensor *tn_mixer_moe(tn_builder *b, int32_t layer, tn_tensor *h)
{
    const tn_config *c = b->c;
    tn_graph *g = b->g;
    int64_t n_embd = c->n_embd, n_ff = c->n_ff_expert, n = c->n_experts;
    if (b->status == TN_OK && n < 1)
        tn_builder_refuse(b, tn_fail(b->model->ctx, TN_ERR_FORMAT, "key %s.expert_count is missing", c->arch->name));
    tn_tensor *logits = tn_builder_linear(b, layer, "ffn_gate_inp", h, n, n_embd);
    tn_tensor *ids = tn_op_top_k(g, logits, NULL, &(tn_top_k_params){.k = c->n_experts_used});
    tn_tensor *weights = tn_op_moe_weights(g, logits, ids, &c->moe);
    tn_tensor *x = tn_op_reshape(g, h, 3, (int64_t[]){-1, 1, n_embd}), *y;
    if (tn_builder_has(b, layer, "ffn_gate_up_exps.weight")) {
        y = glu_of_halves(b, expert_linear(b, layer, "ffn_gate_up_exps", x, ids, 2 * n_ff, n_embd), 2, n_ff, &c->expert_glu);
    } else {
        tn_tensor *gate = expert_linear(b, layer, "ffn_gate_exps", x, ids, n_ff, n_embd);
        y = tn_op_glu(g, gate, expert_linear(b, layer, "ffn_up_exps", x, ids, n_ff, n_embd), &c->expert_glu);
    }
    return tn_op_moe_sum(g, expert_linear(b, layer, "ffn_down_exps", y, ids, n_embd, n_ff), weights);
}
