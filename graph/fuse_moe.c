// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Patterns around the experts of a mixture: routing before them, their sum after them.
#include "graph/fuse.h"

#include <string.h>

// The scores by which experts are selected, if they come from the logits: the logits themselves, or
// probabilities that nothing else reads.
static const char *choice_of(const tn_fuse_matcher *m, const tn_node *top_k, const tn_tensor *logits,
                             tn_fusion *f)
{
    tn_tensor *score = top_k->src[0];
    if (score == logits) return NULL;
    tn_node *n = score->producer;
    if (!n || n->src[0] != logits) return "the experts are not routed by these logits";
    if (n->op == TN_OP_unary && ((const tn_unary_params *)n->params)->kind == TN_UNARY_SIGMOID) {
        f->params.route.choice = TN_GATING_SIGMOID;
    } else if (n->op == TN_OP_softmax && (n->n_src < 2 || !n->src[1])) {
        float scale = ((const tn_softmax_params *)n->params)->scale;
        if (scale != 0.0f && scale != 1.0f) return "the softmax is scaled";
        f->params.route.choice = TN_GATING_SOFTMAX;
    } else {
        return "the experts are not routed by these logits";
    }
    if (!tn_fuse_private(m, score)) return "the probabilities have other uses";
    f->replaced[f->n_replaced++] = n;
    return NULL;
}

// From the logits to the selected experts and their weights: a routing.
const char *tn_fuse_match_route(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    tn_tensor *logits = n->src[0];
    tn_node *top_k = tn_fuse_made_by(n->src[TN_SRC_moe_weights_ids], TN_OP_top_k);
    if (!top_k) return "";
    if (logits->view.ne[3] > TN_MOE_MAX_EXPERTS) return "too many experts";
    *f = (tn_fusion){.op = TN_OP_moe_route, .n_src = 1, .n_dst = 2};
    const char *reason = choice_of(m, top_k, logits, f);
    if (reason) return reason;
    f->params.route.top_k = *(const tn_top_k_params *)top_k->params;
    f->params.route.weights = *(const tn_moe_weights_params *)n->params;
    f->src[0] = logits;
    if (top_k->n_src > TN_SRC_top_k_bias && top_k->src[TN_SRC_top_k_bias]) {
        f->params.route.has_choice_bias = 1;
        f->src[f->n_src++] = top_k->src[TN_SRC_top_k_bias];
    }
    f->dst[TN_DST_moe_route_ids] = top_k->dst[0];
    f->dst[TN_DST_moe_route_weights] = n->dst[0];
    f->replaced[f->n_replaced++] = top_k;
    f->replaced[f->n_replaced++] = n;
    return NULL;
}

// The matmul that computes the logits of a router, and its bias. Kernels read weights before their inputs are
// ready, so no weight may be a computed value.
const char *tn_fuse_match_router_matmul(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    const tn_moe_route_params *p = n->params;
    tn_tensor *y = n->src[0], *bias = NULL;
    if (p->has_product) return "";
    *f = (tn_fusion){.op = TN_OP_moe_route, .n_dst = n->n_dst};
    if (y->producer && tn_fuse_is_add(y->producer) && tn_fuse_is_vector(y->producer->src[1], y->view.ne[3])) {
        if (!tn_fuse_private(m, y)) return "the logits have other uses";
        f->replaced[f->n_replaced++] = y->producer;
        bias = y->producer->src[1];
        y = y->producer->src[0];
    }
    tn_node *matmul = tn_fuse_made_by(y, TN_OP_matmul);
    if (!matmul) return "no matmul computes the logits";
    if (!tn_fuse_private(m, y)) return "the logits have other uses";
    if (!tn_fuse_is_weight(tn_fuse_weight_of(matmul)) || tn_fuse_is_weight(matmul->src[0]))
        return "the router is computed";
    f->params.route = *p;
    f->params.route.has_product = 1;
    f->params.route.has_bias = bias != NULL;
    tn_moe_route_sources at = tn_moe_route_sources_get(&f->params.route),
                         before = tn_moe_route_sources_get(p);
    f->n_src = at.count;
    f->src[at.x] = matmul->src[0];
    f->src[at.router] = tn_fuse_weight_of(matmul);
    if (bias) f->src[at.bias] = bias;
    if (p->has_choice_bias) f->src[at.choice_bias] = n->src[before.choice_bias];
    memcpy(f->dst, n->dst, sizeof n->dst);
    f->replaced[f->n_replaced++] = matmul;
    f->replaced[f->n_replaced++] = n;
    return NULL;
}

// The norm before a router, whose rows the experts read as well.
const char *tn_fuse_match_router_norm(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    TN_UNUSED(m);
    const tn_moe_route_params *p = n->params;
    tn_node *norm = tn_fuse_made_by(n->src[0], TN_OP_rms_norm);
    if (!p->has_product || p->has_norm || !norm) return "";
    if (norm->n_src < 2 || !tn_fuse_is_weight(norm->src[TN_SRC_rms_norm_w])) return "the norm has no weight";
    *f = (tn_fusion){.op = TN_OP_moe_route, .n_dst = 3, .n_replaced = 2};
    f->params.route = *p;
    f->params.route.has_norm = 1;
    f->params.route.eps = ((const tn_rms_norm_params *)norm->params)->eps;
    tn_moe_route_sources at = tn_moe_route_sources_get(&f->params.route);
    memcpy(f->src, n->src, sizeof n->src);
    f->n_src = at.count;
    f->src[at.x] = norm->src[TN_SRC_rms_norm_x];
    f->src[at.norm] = norm->src[TN_SRC_rms_norm_w]; // after all that the node has
    memcpy(f->dst, n->dst, sizeof n->dst);
    f->dst[TN_DST_moe_route_normed] = norm->dst[0];
    f->replaced[0] = norm;
    f->replaced[1] = n;
    return NULL;
}

// The other operand if n adds something of the shape of y to y, else NULL.
static tn_tensor *added_to(const tn_node *n, const tn_tensor *y)
{
    if (!n || !tn_fuse_is_add(n) || n->src[0] == n->src[1]) return NULL;
    tn_tensor *other = n->src[0] == y ? n->src[1] : n->src[0];
    return tn_view_same_shape(&other->view, &y->view) && tn_view_rows_contiguous(&other->view) ? other : NULL;
}

// Rows multiplied by one number each, if nothing else reads the result.
static tn_node *scaled_rows(const tn_fuse_matcher *m, tn_tensor *t)
{
    tn_node *n = tn_fuse_made_by(t, TN_OP_binary);
    if (!n || ((const tn_binary_params *)n->params)->kind != TN_BINARY_MUL || !tn_fuse_private(m, t))
        return NULL;
    const tn_view *a = &n->src[0]->view, *b = &n->src[1]->view;
    bool numbers = b->ne[3] == 1 && b->ne[2] == t->view.ne[2] && tn_view_n_rows(b) == b->ne[2] &&
                   tn_view_rows_contiguous(b);
    return numbers && tn_view_same_shape(a, &t->view) && tn_view_rows_contiguous(a) ? n : NULL;
}

// The sum of the results of the experts, plus a shared expert and the residual or one of them.
const char *tn_fuse_match_combine(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    tn_tensor *y = n->dst[0], *factor = NULL, *added[2];
    tn_moe_combine_params *p = &f->params.combine;
    *f = (tn_fusion){.op = TN_OP_moe_combine, .n_dst = 1, .n_replaced = 1};
    f->replaced[0] = n;
    while (p->n_added < 2) {
        tn_node *add = tn_fuse_only_user(m, y);
        tn_tensor *a = added_to(add, y);
        if (!a) break;
        tn_node *scaled = p->n_added == 0 ? scaled_rows(m, a) : NULL;
        if (scaled) {
            a = scaled->src[0];
            factor = scaled->src[1];
            f->replaced[f->n_replaced++] = scaled;
        }
        added[p->n_added++] = a;
        f->replaced[f->n_replaced++] = add;
        y = add->dst[0];
    }
    p->has_factor = factor != NULL;
    tn_moe_combine_sources at = tn_moe_combine_sources_get(p);
    f->n_src = at.count;
    f->src[at.x] = n->src[TN_SRC_moe_sum_x];
    f->src[at.w] = n->src[TN_SRC_moe_sum_w];
    for (int32_t i = 0; i < p->n_added; i++) f->src[at.added[i]] = added[i];
    if (factor) f->src[at.factor] = factor;
    f->dst[0] = y;
    return p->n_added > 0 ? NULL : "";
}
