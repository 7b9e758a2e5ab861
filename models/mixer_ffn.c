// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Feed-forward: gated (two matrices or one fused), plain, and mixtures of experts.
#include "models/builder.h"

#include <stdio.h>

// Halves of the last dimension: gate rows first, then up rows.
static tn_tensor *glu_of_halves(tn_builder *b, tn_tensor *both, int32_t axis, int64_t n_ff,
                                const tn_glu_params *p)
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
        tn_builder_refuse(
            b, tn_fail(b->model->ctx, TN_ERR_FORMAT, "key %s.feed_forward_length is missing", c->arch->name));
    bool has_gate = tn_builder_has(b, layer, "ffn_gate.weight");
    int64_t n_up = has_gate ? n_ff : rows_of(b, layer, "ffn_up.weight");
    if (n_up == 2 * n_ff || (c->arch->gated && n_up != n_ff)) {
        tn_tensor *both = tn_builder_linear(b, layer, "ffn_up", h, 2 * n_ff, n_embd);
        int32_t before = tn_builder_follow(b, layer, "ffn_down.weight");
        y = glu_of_halves(b, both, 1, n_ff, &glu);
        tn_graph_want(b->g, before);
    } else if (c->arch->gated || has_gate) {
        tn_tensor *pair[2] = {NULL};
        tn_builder_linears(b, layer, h, n_embd, 2,
                           (const tn_linear_row[]){{"ffn_gate", n_ff}, {"ffn_up", n_ff}}, pair);
        int32_t before = tn_builder_follow(b, layer, "ffn_down.weight");
        y = tn_op_glu(b->g, pair[0], pair[1], &glu);
        tn_graph_want(b->g, before);
    } else {
        tn_tensor *up = tn_builder_linear(b, layer, "ffn_up", h, n_ff, n_embd);
        int32_t before = tn_builder_follow(b, layer, "ffn_down.weight");
        y = tn_op_unary(b->g, up, &(tn_unary_params){.kind = c->arch->act});
        tn_tensor *scales = tn_builder_weight(b, layer, "ffn.act.scales", TN_WEIGHT_OPTIONAL, 1, n_ff, 0, 0);
        if (scales) y = tn_op_binary(b->g, TN_BINARY_DIV, y, scales);
        tn_graph_want(b->g, before);
    }
    return tn_builder_linear(b, layer, "ffn_down", y, n_embd, n_ff);
}

// Rows of x times the matrices of their experts, plus the biases of those if the file has any:
// "<name>.weight" [n, n_out, n_in], "<name>.bias" [n, n_out], "<name>.scale" [n] (tn_builder_scale).
static tn_tensor *expert_linear(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, tn_tensor *ids,
                                int64_t n_out, int64_t n_in)
{
    char text[64];
    int64_t n = b->c->n_experts;
    snprintf(text, sizeof text, "%s.weight", name);
    int32_t before = tn_builder_follow(b, layer, text);
    tn_tensor *w = tn_builder_weight(b, layer, text, 0, 3, n, n_out, n_in);
    tn_tensor *y = tn_op_matmul_id(b->g, x, w, ids), *scale = tn_builder_scale(b, layer, name, w, n);
    // Factors of NVFP4 are a part of the weights, others belong to the model: what adapters add to the
    // weights is multiplied by the latter only.
    bool first = !w || tn_tensor_dtype(w) != TN_TYPE_NVFP4;
    tn_product_input in = {.x = x, .ids = ids};
    if (first) y = tn_builder_adapt(b, tn_builder_index(b, layer, text), &in, y);
    if (scale)
        y = tn_op_mul(b->g, y,
                      tn_op_get_rows(b->g, tn_op_reshape(b->g, scale, 2, (int64_t[]){n, 1}), ids, 1.0f));
    if (!first) y = tn_builder_adapt(b, tn_builder_index(b, layer, text), &in, y);
    snprintf(text, sizeof text, "%s.bias", name);
    tn_tensor *bias = tn_builder_weight(b, layer, text, TN_WEIGHT_OPTIONAL, 2, n, n_out, 0);
    if (bias) y = tn_op_add(b->g, y, tn_op_get_rows(b->g, bias, ids, 1.0f));
    tn_graph_want(b->g, before);
    return y;
}

// The weight of the shared expert in each row, [T, 1]; NULL: 1.
static tn_tensor *shared_weight(tn_builder *b, int32_t layer, tn_tensor *h)
{
    int32_t optional = b->c->arch->shared_gate ? 0 : TN_WEIGHT_OPTIONAL;
    int64_t n_embd = b->c->n_embd;
    tn_tensor *w = tn_builder_weight(b, layer, "ffn_gate_inp_shexp.weight", optional, 1, n_embd, 0, 0);
    if (!w) return NULL;
    tn_tensor *y = tn_op_matmul(b->g, h, tn_op_reshape(b->g, w, 2, (int64_t[]){1, n_embd}));
    return tn_op_unary(b->g, y, &(tn_unary_params){.kind = TN_UNARY_SIGMOID});
}

// The shared expert: an ordinary gated feed-forward that serves every token, beside the routed experts.
static tn_tensor *shared_expert(tn_builder *b, int32_t layer, tn_tensor *h)
{
    int64_t n_ff = b->c->n_ff_shared, n_embd = b->c->n_embd;
    tn_tensor *weight = shared_weight(b, layer, h);
    tn_tensor *pair[2] = {NULL};
    tn_builder_linears(b, layer, h, n_embd, 2,
                       (const tn_linear_row[]){{"ffn_gate_shexp", n_ff}, {"ffn_up_shexp", n_ff}}, pair);
    int32_t before = tn_builder_follow(b, layer, "ffn_down_shexp.weight");
    tn_tensor *y = tn_op_glu(b->g, pair[0], pair[1], &(tn_glu_params){.act = b->c->arch->act});
    tn_graph_want(b->g, before);
    y = tn_builder_linear(b, layer, "ffn_down_shexp", y, n_embd, n_ff);
    return weight ? tn_op_mul(b->g, y, weight) : y;
}

// With a bias or with groups, experts are selected by probabilities. Without them the logits have the same
// order, so the probabilities are not needed for the selection.
static tn_tensor *choose_experts(tn_builder *b, int32_t layer, tn_tensor *logits)
{
    const tn_config *c = b->c;
    tn_top_k_params p = {
        .k = c->n_experts_used, .n_groups = c->n_expert_groups, .n_groups_used = c->n_expert_groups_used};
    tn_tensor *bias =
        tn_builder_weight(b, layer, "exp_probs_b.bias", TN_WEIGHT_OPTIONAL, 1, c->n_experts, 0, 0);
    tn_tensor *score = logits;
    if ((bias || p.n_groups > 1) && c->moe.gating == TN_GATING_SIGMOID)
        score = tn_op_unary(b->g, logits, &(tn_unary_params){.kind = TN_UNARY_SIGMOID});
    else if ((bias || p.n_groups > 1) && c->moe.gating == TN_GATING_SOFTMAX)
        score = tn_op_softmax(b->g, logits, NULL, 1.0f);
    return tn_op_top_k(b->g, score, bias, &p);
}

// Mixture of experts: the router scores all experts, the best k are selected for each token, their
// feed-forward networks run on the tokens that selected them, and the results are added with the weights of
// the router.
tn_tensor *tn_mixer_moe(tn_builder *b, int32_t layer, tn_tensor *h, tn_tensor *route)
{
    const tn_config *c = b->c;
    tn_graph *g = b->g;
    int64_t n_embd = c->n_embd, n_ff = c->n_ff_expert, n = c->n_experts;
    if (b->status == TN_OK && n < 1)
        tn_builder_refuse(
            b, tn_fail(b->model->ctx, TN_ERR_FORMAT, "key %s.expert_count is missing", c->arch->name));
    tn_tensor *logits = tn_builder_linear(b, layer, "ffn_gate_inp", route, n, n_embd);
    tn_tensor *ids = choose_experts(b, layer, logits);
    tn_tensor *weights = tn_op_moe_weights(g, logits, ids, &c->moe);
    tn_tensor *x = tn_op_reshape(g, h, 3, (int64_t[]){-1, 1, n_embd}), *y;
    // x [T, U, E]: the weights are applied to the input, so the results are added without weights
    if (c->arch->moe_input) {
        x = tn_op_mul(g, tn_op_reshape(g, weights, 3, (int64_t[]){-1, c->n_experts_used, 1}), x);
        weights = tn_op_unary(g, weights, &(tn_unary_params){TN_UNARY_AFFINE, 0.0f, 1.0f});
    }
    bool fused = tn_builder_has(b, layer, "ffn_gate_up_exps.weight");
    tn_tensor *gate = fused ? expert_linear(b, layer, "ffn_gate_up_exps", x, ids, 2 * n_ff, n_embd)
                            : expert_linear(b, layer, "ffn_gate_exps", x, ids, n_ff, n_embd);
    tn_tensor *up = fused ? NULL : expert_linear(b, layer, "ffn_up_exps", x, ids, n_ff, n_embd);
    // The sum follows the experts, too: it is smaller than their results.
    int32_t before = tn_builder_follow(b, layer, "ffn_down_exps.weight");
    y = fused ? glu_of_halves(b, gate, 2, n_ff, &c->expert_glu) : tn_op_glu(g, gate, up, &c->expert_glu);
    y = tn_op_moe_sum(g, expert_linear(b, layer, "ffn_down_exps", y, ids, n_embd, n_ff), weights);
    tn_graph_want(g, before);
    return c->n_ff_shared > 0 ? tn_op_add(g, y, shared_expert(b, layer, h)) : y;
}
