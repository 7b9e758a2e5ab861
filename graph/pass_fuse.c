// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuse: a table of patterns, each tried at every node with the op that ends it. A pattern that matches
// fires if its parts are wanted on one device and that device accepts the fused op; otherwise the reason is
// kept, and the plan prints it.
#include "graph/graph.h"
#include "ops/operands.h"
#include "ops/product.h"

#include <string.h>

// The fused node that a match proposes.
typedef struct fusion {
    int32_t op;
    int32_t n_src;
    tn_tensor *src[TN_MAX_SRC];
    union {
        tn_linear_params linear;
        tn_matmul_multi_params multi;
        tn_matmul_glu_params glu;
        tn_matmul_id_glu_params id_glu;
        tn_add_rms_norm_params add_norm;
        tn_norm_rope_params norm_rope;
        tn_rope_cache_params rope_cache;
        tn_moe_route_params route;
        tn_moe_combine_params combine;
    } params;
    int32_t n_dst;
    tn_tensor *dst[TN_MAX_DST]; // existing values that the fused node takes over
    int32_t n_replaced;
    tn_node *replaced[8]; // nodes it replaces
} fusion;

typedef struct matcher {
    tn_pass_state *s;
    const int32_t *n_uses;    // per value
    const int32_t *positions; // per node id: index in the list, -1 when replaced
} matcher;

// Fills f, or returns why the pattern does not fit here. "" means that it does not even begin to match, which
// is not worth reporting.
typedef const char *(*match_fn)(const matcher *m, tn_node *n, fusion *f);

static bool device_accepts(const tn_pass_state *s, const tn_node *n)
{
    tn_step step;
    tn_node_step(n, &step);
    const tn_device *d = s->devices[n->wanted];
    return d->backend->accepts(d, &step);
}

static tn_node *made_by(const tn_tensor *t, int32_t op)
{
    return t && t->producer && t->producer->op == op && t->out == 0 ? t->producer : NULL;
}

// Whether only one node reads the value, and it is no result of the graph: fusing may then remove it.
static bool private(const matcher *m, const tn_tensor *t)
{
    return m->n_uses[t->id] == 1 && !t->output;
}

static bool is_add(const tn_node *n)
{
    return n->op == TN_OP_binary && ((const tn_binary_params *)n->params)->kind == TN_BINARY_ADD;
}

static bool is_vector(const tn_tensor *t, int64_t n)
{
    return tn_view_n_rows(&t->view) == 1 && t->view.ne[3] == n && tn_view_rows_contiguous(&t->view) &&
           t->root->kind == TN_VALUE_WEIGHT;
}

// a + b, then rms_norm of the sum.
static const char *match_add_rms_norm(const matcher *m, tn_node *n, fusion *f)
{
    TN_UNUSED(m);
    tn_node *add = n->src[0]->producer;
    if (!add || !is_add(add)) return "";
    if (!tn_view_same_shape(&add->src[0]->view, &add->src[1]->view)) return "the sum broadcasts";
    *f = (fusion){.op = TN_OP_add_rms_norm, .n_src = 1 + n->n_src, .n_dst = 2, .n_replaced = 2};
    f->src[TN_SRC_add_rms_norm_a] = add->src[TN_SRC_binary_a];
    f->src[TN_SRC_add_rms_norm_b] = add->src[TN_SRC_binary_b];
    if (n->n_src > 1) f->src[TN_SRC_add_rms_norm_w] = n->src[TN_SRC_rms_norm_w];
    f->params.add_norm.eps = ((const tn_rms_norm_params *)n->params)->eps;
    f->dst[TN_DST_add_rms_norm_sum] = add->dst[0];
    f->dst[TN_DST_add_rms_norm_normed] = n->dst[0];
    f->replaced[0] = add;
    f->replaced[1] = n;
    return NULL;
}

// rms_norm per head, then rope.
static const char *match_norm_rope(const matcher *m, tn_node *n, fusion *f)
{
    tn_node *norm = made_by(n->src[0], TN_OP_rms_norm);
    if (!norm) return "";
    if (norm->n_src < 2) return "the norm has no weight";
    if (!private(m, norm->dst[0])) return "the norm has other uses";
    *f = (fusion){.op = TN_OP_norm_rope, .n_src = n->n_src + 1, .n_dst = 1, .n_replaced = 2};
    f->src[TN_SRC_norm_rope_x] = norm->src[TN_SRC_rms_norm_x];
    f->src[TN_SRC_norm_rope_w] = norm->src[TN_SRC_rms_norm_w];
    f->src[TN_SRC_norm_rope_pos] = n->src[TN_SRC_rope_pos];
    if (n->n_src > TN_SRC_rope_factors) f->src[TN_SRC_norm_rope_factors] = n->src[TN_SRC_rope_factors];
    f->params.norm_rope = (tn_norm_rope_params){((const tn_rms_norm_params *)norm->params)->eps,
                                                *(const tn_rope_params *)n->params};
    f->dst[0] = n->dst[0];
    f->replaced[0] = norm;
    f->replaced[1] = n;
    return NULL;
}

// The weight of a product that has one.
static tn_tensor *weight_of(const tn_node *matmul)
{
    return matmul->src[tn_product_sources_get(matmul->op, matmul->params).w[0]];
}

// glu of two matmuls of the same x.
static const char *match_glu(const matcher *m, tn_node *n, fusion *f)
{
    int32_t op = made_by(n->src[0], TN_OP_matmul_id) ? TN_OP_matmul_id : TN_OP_matmul;
    tn_node *g = made_by(n->src[0], op), *u = made_by(n->src[1], op);
    if (!g || !u) return "";
    if (g->src[0] != u->src[0]) return "gate and up have different inputs";
    if (!private(m, g->dst[0]) || !private(m, u->dst[0])) return "gate or up has other uses";
    tn_product_sources part = tn_product_sources_get(op, NULL);
    if (weight_of(g)->view.dtype != weight_of(u)->view.dtype) return "gate and up have different types";
    if (part.ids >= 0 && g->src[part.ids] != u->src[part.ids]) return "gate and up have different experts";
    *f = (fusion){.op = part.ids >= 0 ? TN_OP_matmul_id_glu : TN_OP_matmul_glu, .n_dst = 1, .n_replaced = 3};
    *(tn_glu_params *)tn_product_param(&f->params, tn_product_form_get(f->op)->glu_off) =
        *(const tn_glu_params *)n->params;
    tn_product_sources at = tn_product_sources_get(f->op, &f->params);
    f->n_src = at.count;
    f->src[at.x] = g->src[part.x];
    f->src[at.w[0]] = weight_of(g);
    f->src[at.w[1]] = weight_of(u);
    if (at.ids >= 0) f->src[at.ids] = g->src[part.ids];
    f->dst[0] = n->dst[0];
    f->replaced[0] = g;
    f->replaced[1] = u;
    f->replaced[2] = n;
    return NULL;
}

// The bias that is added to a matmul, if it can be fused.
static tn_node *bias_after(const matcher *m, const tn_node *matmul)
{
    const tn_tensor *y = matmul->dst[0];
    if (!private(m, y)) return NULL;
    const tn_graph *g = m->s->graph;
    for (int32_t i = m->positions[matmul->id] + 1; i < g->n_nodes; i++) {
        tn_node *n = g->nodes[i];
        if (m->positions[n->id] < 0 || n->n_src < 2 || n->src[0] != y) continue;
        return is_add(n) && is_vector(n->src[1], y->view.ne[3]) ? n : NULL;
    }
    return NULL;
}

// Two or three matmuls of the same x; tried at the first of them.
static const char *match_multi(const matcher *m, tn_node *n, fusion *f)
{
    if (n->src[0]->root->kind == TN_VALUE_WEIGHT) return "";
    const tn_graph *g = m->s->graph;
    *f = (fusion){.op = TN_OP_matmul_multi};
    tn_node *matmuls[TN_PRODUCT_MAX_WEIGHTS], *biases[TN_PRODUCT_MAX_WEIGHTS];
    int32_t count = 0;
    for (int32_t i = m->positions[n->id]; i < g->n_nodes && count < TN_PRODUCT_MAX_WEIGHTS; i++)
        if (g->nodes[i]->op == TN_OP_matmul && m->positions[g->nodes[i]->id] >= 0 &&
            g->nodes[i]->src[0] == n->src[0])
            matmuls[count++] = g->nodes[i];
    if (count < 2) return "";
    f->params.multi.n_weights = count;
    for (int32_t i = 0; i < count; i++) {
        biases[i] = bias_after(m, matmuls[i]);
        f->params.multi.has_bias[i] = biases[i] != NULL;
    }
    tn_product_sources at = tn_product_sources_get(f->op, &f->params);
    f->n_src = at.count;
    f->src[at.x] = n->src[0];
    for (int32_t i = 0; i < count; i++) {
        f->src[at.w[i]] = weight_of(matmuls[i]);
        f->replaced[f->n_replaced++] = matmuls[i];
        if (biases[i]) {
            f->src[at.bias[i]] = biases[i]->src[TN_SRC_binary_b];
            f->replaced[f->n_replaced++] = biases[i];
        }
        f->dst[f->n_dst++] = biases[i] ? biases[i]->dst[0] : matmuls[i]->dst[0];
    }
    return NULL;
}

// The only node that uses y, if it comes later and was not replaced.
static tn_node *only_user(const matcher *m, const tn_tensor *y)
{
    if (!private(m, y)) return NULL;
    const tn_graph *g = m->s->graph;
    for (int32_t i = m->positions[y->producer->id] + 1; i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->nodes[i]->n_src; k++)
            if (m->positions[g->nodes[i]->id] >= 0 && g->nodes[i]->src[k] == y) return g->nodes[i];
    return NULL;
}

// matmul, then any of: bias, activation, residual.
static const char *match_linear(const matcher *m, tn_node *n, fusion *f)
{
    *f = (fusion){.op = TN_OP_linear, .n_dst = 1, .n_replaced = 1};
    f->params.linear.act = TN_UNARY_NONE;
    f->replaced[0] = n;
    tn_tensor *y = n->dst[0], *residual = NULL;
    tn_node *bias = bias_after(m, n);
    if (bias) {
        f->params.linear.has_bias = 1;
        f->replaced[f->n_replaced++] = bias;
        y = bias->dst[0];
    }
    tn_node *next = only_user(m, y);
    if (next && next->op == TN_OP_unary) {
        int32_t kind = ((const tn_unary_params *)next->params)->kind;
        bool plain = kind == TN_UNARY_SILU || kind == TN_UNARY_GELU || kind == TN_UNARY_GELU_ERF ||
                     kind == TN_UNARY_RELU || kind == TN_UNARY_TANH || kind == TN_UNARY_SIGMOID;
        if (plain) {
            f->params.linear.act = kind;
            f->replaced[f->n_replaced++] = next;
            y = next->dst[0];
            next = only_user(m, y);
        }
    }
    if (next && is_add(next) && tn_view_same_shape(&next->src[0]->view, &next->src[1]->view)) {
        tn_tensor *r = next->src[0] == y ? next->src[1] : next->src[0];
        // The residual must be computed before the place of the matmul.
        bool early = !r->producer || m->positions[r->producer->id] < m->positions[n->id];
        if (early && r != y && tn_view_rows_contiguous(&r->view)) {
            f->params.linear.has_residual = 1;
            residual = r;
            f->replaced[f->n_replaced++] = next;
            y = next->dst[0];
        }
    }
    tn_product_sources at = tn_product_sources_get(f->op, &f->params);
    f->n_src = at.count;
    f->src[at.x] = n->src[0];
    f->src[at.w[0]] = weight_of(n);
    if (bias) f->src[at.bias[0]] = bias->src[TN_SRC_binary_b];
    if (residual) f->src[at.residual] = residual;
    f->dst[0] = y;
    return f->n_replaced > 1 ? NULL : "";
}

// rms_norm of the rows that a matmul reads, if nothing else reads the normed rows.
static const char *match_norm_matmul(const matcher *m, tn_node *n, fusion *f)
{
    if (n->n_src < 2 || n->src[0]->root->kind == TN_VALUE_WEIGHT) return "";
    tn_node *matmul = only_user(m, n->dst[0]);
    if (!matmul) return "the normed rows have several uses";
    // A matmul has no parameters: as linear it has those of a norm.
    *f = (fusion){
        .op = matmul->op == TN_OP_matmul ? TN_OP_linear : matmul->op, .n_dst = matmul->n_dst, .n_replaced = 2};
    const tn_product_form *form = tn_product_form_get(f->op);
    if (!form || form->has_norm_off == TN_PRODUCT_NO_PARAM || matmul->src[0] != n->dst[0]) return "";
    if (matmul->op == TN_OP_matmul)
        f->params.linear.act = TN_UNARY_NONE;
    else
        memcpy(&f->params, matmul->params, tn_op_info_get(f->op)->params_size);
    *(int32_t *)tn_product_param(&f->params, form->has_norm_off) = 1;
    *(float *)tn_product_param(&f->params, form->eps_off) = ((const tn_rms_norm_params *)n->params)->eps;
    tn_product_sources at = tn_product_sources_get(f->op, &f->params);
    memcpy(f->src, matmul->src, sizeof matmul->src);
    f->n_src = at.count;
    f->src[at.x] = n->src[TN_SRC_rms_norm_x];
    f->src[at.norm] = n->src[TN_SRC_rms_norm_w]; // after all that the product has
    memcpy(f->dst, matmul->dst, sizeof matmul->dst);
    f->replaced[0] = matmul;
    f->replaced[1] = n;
    return NULL;
}

// The rotation of q (which 0) or k (which 1): rope or norm_rope whose result only the given user reads.
static const char *rotation_of(const matcher *m, tn_tensor *x, int32_t which, fusion *f,
                               const tn_rope_params **rope)
{
    tn_node *n = made_by(x, TN_OP_norm_rope);
    tn_rope_cache_params *p = &f->params.rope_cache;
    if (n) {
        const tn_norm_rope_params *np = n->params;
        *rope = &np->rope;
        if (p->has_norm[0] && p->eps != np->eps) return "the norms differ";
        p->has_norm[which] = 1;
        p->eps = np->eps;
        f->src[which ? TN_SRC_rope_cache_norm_k : TN_SRC_rope_cache_norm_q] = n->src[TN_SRC_norm_rope_w];
    } else {
        n = made_by(x, TN_OP_rope);
        if (!n) return "q or k is not rotated";
        *rope = n->params;
    }
    if (!private(m, x)) return "rotated values have other uses";
    bool normed = n->op == TN_OP_norm_rope;
    int32_t at_factors = normed ? TN_SRC_norm_rope_factors : TN_SRC_rope_factors;
    tn_tensor *pos = n->src[normed ? TN_SRC_norm_rope_pos : TN_SRC_rope_pos];
    tn_tensor *factors = n->n_src > at_factors ? n->src[at_factors] : NULL;
    tn_tensor **f_pos = &f->src[TN_SRC_rope_cache_pos], **f_factors = &f->src[TN_SRC_rope_cache_factors];
    if (which == 1 && (*f_pos != pos || *f_factors != factors)) return "q and k are rotated differently";
    *f_pos = pos;
    *f_factors = factors;
    f->src[which ? TN_SRC_rope_cache_k : TN_SRC_rope_cache_q] = n->src[0];
    f->replaced[f->n_replaced++] = n;
    return NULL;
}

// The nodes before an attention that can be fused: rotations of q and k, cache writes of k and v.
static const char *match_rope_cache(const matcher *m, tn_node *n, fusion *f)
{
    tn_node *wk = made_by(n->src[TN_SRC_attention_k], TN_OP_cache_write);
    tn_node *wv = made_by(n->src[TN_SRC_attention_v], TN_OP_cache_write);
    if (!wk || !wv || wk == wv) return "";
    const tn_rope_params *rq, *rk;
    *f = (fusion){.op = TN_OP_rope_cache, .n_dst = 3};
    const char *reason = rotation_of(m, n->src[TN_SRC_attention_q], 0, f, &rq);
    if (!reason) reason = rotation_of(m, wk->src[TN_SRC_cache_write_x], 1, f, &rk);
    if (reason) return reason;
    if (memcmp(rq, rk, sizeof *rq) != 0) return "q and k are rotated differently";
    // The node that writes the cache must run on the device that reads it.
    if (!device_accepts(m->s, n)) return "the device has no kernel for the attention";
    if (wk->src[TN_SRC_cache_write_slots] != wv->src[TN_SRC_cache_write_slots])
        return "k and v go to different slots";
    f->params.rope_cache.rope = *rq;
    f->src[TN_SRC_rope_cache_cache_k] = wk->src[TN_SRC_cache_write_cache];
    f->src[TN_SRC_rope_cache_cache_v] = wv->src[TN_SRC_cache_write_cache];
    f->src[TN_SRC_rope_cache_v] = wv->src[TN_SRC_cache_write_x];
    f->src[TN_SRC_rope_cache_slots] = wk->src[TN_SRC_cache_write_slots];
    f->n_src = TN_SRC_rope_cache_COUNT; // less those at the end that are absent
    while (!f->src[f->n_src - 1]) f->n_src--;
    f->dst[TN_DST_rope_cache_cache_k] = wk->dst[0];
    f->dst[TN_DST_rope_cache_cache_v] = wv->dst[0];
    f->dst[TN_DST_rope_cache_q] = n->src[TN_SRC_attention_q];
    f->replaced[f->n_replaced++] = wk;
    f->replaced[f->n_replaced++] = wv;
    return NULL;
}

// --- mixtures of experts -----------------------------------------------------------------------------

// The scores by which experts are selected, if they come from the logits: the logits themselves, or
// probabilities that nothing else reads.
static const char *choice_of(const matcher *m, const tn_node *top_k, const tn_tensor *logits, fusion *f)
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
    if (!private(m, score)) return "the probabilities have other uses";
    f->replaced[f->n_replaced++] = n;
    return NULL;
}

// From the logits to the selected experts and their weights: a routing.
static const char *match_route(const matcher *m, tn_node *n, fusion *f)
{
    tn_tensor *logits = n->src[0];
    tn_node *top_k = made_by(n->src[TN_SRC_moe_weights_ids], TN_OP_top_k);
    if (!top_k) return "";
    if (logits->view.ne[3] > TN_MOE_MAX_EXPERTS) return "too many experts";
    *f = (fusion){.op = TN_OP_moe_route, .n_src = 1, .n_dst = 2};
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

static bool is_weight(const tn_tensor *t)
{
    return t->root->kind == TN_VALUE_WEIGHT;
}

// The matmul that computes the logits of a router, and its bias. Kernels read weights before their inputs are
// ready, so no weight may be a computed value.
static const char *match_router_matmul(const matcher *m, tn_node *n, fusion *f)
{
    const tn_moe_route_params *p = n->params;
    tn_tensor *y = n->src[0], *bias = NULL;
    if (p->has_product) return "";
    *f = (fusion){.op = TN_OP_moe_route, .n_dst = n->n_dst};
    if (y->producer && is_add(y->producer) && is_vector(y->producer->src[1], y->view.ne[3])) {
        if (!private(m, y)) return "the logits have other uses";
        f->replaced[f->n_replaced++] = y->producer;
        bias = y->producer->src[1];
        y = y->producer->src[0];
    }
    tn_node *matmul = made_by(y, TN_OP_matmul);
    if (!matmul) return "no matmul computes the logits";
    if (!private(m, y)) return "the logits have other uses";
    if (!is_weight(weight_of(matmul)) || is_weight(matmul->src[0])) return "the router is computed";
    f->params.route = *p;
    f->params.route.has_product = 1;
    f->params.route.has_bias = bias != NULL;
    tn_moe_route_sources at = tn_moe_route_sources_get(&f->params.route),
                         before = tn_moe_route_sources_get(p);
    f->n_src = at.count;
    f->src[at.x] = matmul->src[0];
    f->src[at.router] = weight_of(matmul);
    if (bias) f->src[at.bias] = bias;
    if (p->has_choice_bias) f->src[at.choice_bias] = n->src[before.choice_bias];
    memcpy(f->dst, n->dst, sizeof n->dst);
    f->replaced[f->n_replaced++] = matmul;
    f->replaced[f->n_replaced++] = n;
    return NULL;
}

// The norm before a router, whose rows the experts read as well.
static const char *match_router_norm(const matcher *m, tn_node *n, fusion *f)
{
    TN_UNUSED(m);
    const tn_moe_route_params *p = n->params;
    tn_node *norm = made_by(n->src[0], TN_OP_rms_norm);
    if (!p->has_product || p->has_norm || !norm) return "";
    if (norm->n_src < 2 || !is_weight(norm->src[TN_SRC_rms_norm_w])) return "the norm has no weight";
    *f = (fusion){.op = TN_OP_moe_route, .n_dst = 3, .n_replaced = 2};
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
    if (!n || !is_add(n) || n->src[0] == n->src[1]) return NULL;
    tn_tensor *other = n->src[0] == y ? n->src[1] : n->src[0];
    return tn_view_same_shape(&other->view, &y->view) && tn_view_rows_contiguous(&other->view) ? other : NULL;
}

// Rows multiplied by one number each, if nothing else reads the result.
static tn_node *scaled_rows(const matcher *m, tn_tensor *t)
{
    tn_node *n = made_by(t, TN_OP_binary);
    if (!n || ((const tn_binary_params *)n->params)->kind != TN_BINARY_MUL || !private(m, t)) return NULL;
    const tn_view *a = &n->src[0]->view, *b = &n->src[1]->view;
    bool numbers = b->ne[3] == 1 && b->ne[2] == t->view.ne[2] && tn_view_n_rows(b) == b->ne[2] &&
                   tn_view_rows_contiguous(b);
    return numbers && tn_view_same_shape(a, &t->view) && tn_view_rows_contiguous(a) ? n : NULL;
}

// The sum of the results of the experts, plus a shared expert and the residual or one of them.
static const char *match_combine(const matcher *m, tn_node *n, fusion *f)
{
    tn_tensor *y = n->dst[0], *factor = NULL, *added[2];
    tn_moe_combine_params *p = &f->params.combine;
    *f = (fusion){.op = TN_OP_moe_combine, .n_dst = 1, .n_replaced = 1};
    f->replaced[0] = n;
    while (p->n_added < 2) {
        tn_node *add = only_user(m, y);
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

static const struct {
    const char *name;
    int32_t at; // op of the node where it is tried
    match_fn match;
} patterns[] = {
    {"glu of two matmuls", TN_OP_glu, match_glu},
    {"routing of experts", TN_OP_moe_weights, match_route},
    {"router + routing of experts", TN_OP_moe_route, match_router_matmul},
    {"rms_norm + router", TN_OP_moe_route, match_router_norm},
    {"sum of experts + shared expert + residual", TN_OP_moe_sum, match_combine},
    {"matmuls of one input", TN_OP_matmul, match_multi},
    {"rms_norm + matmuls", TN_OP_rms_norm, match_norm_matmul},
    {"residual add + rms_norm", TN_OP_rms_norm, match_add_rms_norm},
    {"rms_norm + rope", TN_OP_rope, match_norm_rope},
    {"rope + cache writes", TN_OP_attention, match_rope_cache},
    {"matmul + bias + activation + residual", TN_OP_matmul, match_linear},
};

static tn_status add_note(tn_pass_state *s, const char *pattern, const tn_node *at, const char *reason)
{
    tn_fusion_note *note = tn_arena_alloc(&s->graph->arena, sizeof *note);
    if (!note) return TN_ERR_MEMORY;
    *note = (tn_fusion_note){pattern, at->dst[0]->name ? at->dst[0]->name : "", reason, NULL};
    *s->notes_end = note;
    s->notes_end = &note->next;
    return TN_OK;
}

static bool wanted_together(const fusion *f)
{
    for (int32_t i = 1; i < f->n_replaced; i++)
        if (f->replaced[i]->wanted != f->replaced[0]->wanted) return false;
    return true;
}

// The precision of the matmul among the parts; all parts have the same.
static int32_t precision_of(const fusion *f)
{
    int32_t precision = TN_PRECISION_auto;
    for (int32_t i = 0; i < f->n_replaced; i++)
        if (f->replaced[i]->precision != TN_PRECISION_auto) precision = f->replaced[i]->precision;
    return precision;
}

static tn_status build(tn_pass_state *s, const fusion *f, tn_node **out)
{
    tn_node *node = tn_arena_alloc(&s->graph->arena, sizeof *node);
    size_t size = tn_op_info_get(f->op)->params_size;
    void *params = tn_arena_alloc(&s->graph->arena, size);
    if (!node || !params) return TN_ERR_MEMORY;
    memcpy(params, &f->params, size);
    *node = (tn_node){.id = f->replaced[0]->id,
                      .op = f->op,
                      .n_src = f->n_src,
                      .n_dst = f->n_dst,
                      .params = params,
                      .wanted = f->replaced[0]->wanted,
                      .device = f->replaced[0]->wanted,
                      .precision = precision_of(f)};
    for (int32_t i = 0; i < f->n_src; i++) node->src[i] = f->src[i];
    for (int32_t i = 0; i < f->n_dst; i++) node->dst[i] = f->dst[i];
    *out = node;
    return TN_OK;
}

// Position of the fused node in the list, -1 if there is none. It is the place of the first replaced node if
// all sources are computed before it, else that of the last one if no result is read before it. A source that
// a replaced node computes has no such place: x (x w^T)^T has two matmuls of the same x, but the second needs
// the first.
static int32_t place_of(const matcher *m, const fusion *f)
{
    const tn_node *last_replaced = f->replaced[0];
    int32_t first = m->positions[f->replaced[0]->id], last = first, made = -1;
    for (int32_t i = 1; i < f->n_replaced; i++) {
        int32_t at = m->positions[f->replaced[i]->id];
        first = TN_MIN(first, at);
        if (at > last) last = at, last_replaced = f->replaced[i];
    }
    for (int32_t i = 0; i < f->n_src; i++) {
        const tn_node *producer = f->src[i] ? f->src[i]->producer : NULL;
        if (!producer) continue;
        for (int32_t k = 0; k < f->n_replaced; k++)
            if (producer == f->replaced[k]) return -1;
        made = TN_MAX(made, m->positions[producer->id]);
    }
    if (made < first) return first;
    for (int32_t i = 0; i < f->n_dst; i++)
        if (f->dst[i]->producer != last_replaced) return -1;
    for (int32_t i = 0; i < f->n_src; i++) // later its next version may be there
        if (f->src[i] && f->src[i]->root->kind == TN_VALUE_STATE) return -1;
    return made < last ? last : -1;
}

static void replace(tn_graph *g, const fusion *f, tn_node *fused, int32_t at, int32_t *positions)
{
    fused->id = g->nodes[at]->id;
    for (int32_t i = 0; i < f->n_replaced; i++) positions[f->replaced[i]->id] = -1;
    for (int32_t i = 0; i < f->n_dst; i++) {
        f->dst[i]->producer = fused;
        f->dst[i]->out = i;
    }
    g->nodes[at] = fused;
    positions[fused->id] = at;
}

static tn_status try_pattern(tn_pass_state *s, matcher *m, int32_t *positions, size_t p, int32_t i)
{
    tn_node *n = s->graph->nodes[i], *fused = NULL;
    fusion f;
    const char *reason = patterns[p].match(m, n, &f);
    if (reason && !*reason) return TN_OK;
    if (!reason && !wanted_together(&f)) reason = "the parts belong to different devices";
    int32_t at = reason ? -1 : place_of(m, &f);
    if (!reason && at < 0) reason = "a source is made too late";
    if (!reason) {
        tn_status status = build(s, &f, &fused);
        if (status != TN_OK) return status;
        if (!device_accepts(s, fused)) reason = "the device has no kernel for the fused op";
    }
    tn_status status = add_note(s, patterns[p].name, n, reason);
    if (status != TN_OK || reason) return status;
    replace(s->graph, &f, fused, at, positions);
    s->n_fused++;
    return TN_OK;
}

// Drops replaced nodes from the list.
static void compact(tn_graph *g, int32_t *positions)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (positions[g->nodes[i]->id] == i) g->nodes[kept++] = g->nodes[i];
    g->n_nodes = kept;
    for (int32_t i = 0; i < kept; i++) positions[g->nodes[i]->id] = i;
}

tn_status tn_pass_fuse(tn_pass_state *s)
{
    tn_graph *g = s->graph;
    if (!s->fusion) return TN_OK;
    int32_t n_ids = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) n_ids = TN_MAX(n_ids, g->nodes[i]->id + 1);
    int32_t *positions = tn_calloc(s->ctx, (size_t)n_ids + 1, sizeof *positions);
    int32_t *n_uses = tn_calloc(s->ctx, (size_t)g->n_values + 1, sizeof *n_uses);
    tn_status status = positions && n_uses ? TN_OK : TN_ERR_MEMORY;
    for (size_t p = 0; p < TN_COUNT(patterns) && status == TN_OK; p++) {
        memset(positions, 0xff, (size_t)n_ids * sizeof *positions);
        memset(n_uses, 0, (size_t)g->n_values * sizeof *n_uses);
        for (int32_t i = 0; i < g->n_nodes; i++) {
            positions[g->nodes[i]->id] = i;
            for (int32_t k = 0; k < g->nodes[i]->n_src; k++)
                if (g->nodes[i]->src[k]) n_uses[g->nodes[i]->src[k]->id]++;
        }
        matcher m = {s, n_uses, positions};
        for (int32_t i = 0; i < g->n_nodes && status == TN_OK; i++) {
            const tn_node *n = g->nodes[i];
            if (positions[n->id] == i && n->op == patterns[p].at)
                status = try_pattern(s, &m, positions, p, i);
        }
        compact(g, positions);
    }
    tn_free(s->ctx, n_uses);
    tn_free(s->ctx, positions);
    return status;
}
