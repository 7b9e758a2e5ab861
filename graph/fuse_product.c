// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Patterns of matrix products: what stands before and after them becomes a part of them.
#include "graph/fuse.h"

#include <string.h>

// glu of two matmuls of the same x.
const char *tn_fuse_match_glu(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    int32_t op = tn_fuse_made_by(n->src[0], TN_OP_matmul_id) ? TN_OP_matmul_id : TN_OP_matmul;
    tn_node *g = tn_fuse_made_by(n->src[0], op), *u = tn_fuse_made_by(n->src[1], op);
    if (!g || !u) return "";
    if (g->src[0] != u->src[0]) return "gate and up have different inputs";
    if (!tn_fuse_private(m, g->dst[0]) || !tn_fuse_private(m, u->dst[0])) return "gate or up has other uses";
    tn_product_sources part = tn_product_sources_get(op, NULL);
    if (tn_fuse_weight_of(g)->view.dtype != tn_fuse_weight_of(u)->view.dtype)
        return "gate and up have different types";
    if (part.ids >= 0 && g->src[part.ids] != u->src[part.ids]) return "gate and up have different experts";
    *f = (tn_fusion){
        .op = part.ids >= 0 ? TN_OP_matmul_id_glu : TN_OP_matmul_glu, .n_dst = 1, .n_replaced = 3};
    *(tn_glu_params *)tn_product_param(&f->params, tn_product_form_get(f->op)->glu_off) =
        *(const tn_glu_params *)n->params;
    tn_product_sources at = tn_product_sources_get(f->op, &f->params);
    f->n_src = at.count;
    f->src[at.x] = g->src[part.x];
    f->src[at.w[0]] = tn_fuse_weight_of(g);
    f->src[at.w[1]] = tn_fuse_weight_of(u);
    if (at.ids >= 0) f->src[at.ids] = g->src[part.ids];
    f->dst[0] = n->dst[0];
    f->replaced[0] = g;
    f->replaced[1] = u;
    f->replaced[2] = n;
    return NULL;
}

// The bias that is added to a matmul, if it can be fused.
static tn_node *bias_after(const tn_fuse_matcher *m, const tn_node *matmul)
{
    const tn_tensor *y = matmul->dst[0];
    if (!tn_fuse_private(m, y)) return NULL;
    const tn_graph *g = m->s->graph;
    for (int32_t i = m->positions[matmul->id] + 1; i < g->n_nodes; i++) {
        tn_node *n = g->nodes[i];
        if (m->positions[n->id] < 0 || n->n_src < 2 || n->src[0] != y) continue;
        return tn_fuse_is_add(n) && tn_fuse_is_vector(n->src[1], y->view.ne[3]) ? n : NULL;
    }
    return NULL;
}

// Two or three matmuls of the same x; tried at the first of them.
const char *tn_fuse_match_multi(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    if (n->src[0]->root->kind == TN_VALUE_WEIGHT) return "";
    const tn_graph *g = m->s->graph;
    *f = (tn_fusion){.op = TN_OP_matmul_multi};
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
        f->src[at.w[i]] = tn_fuse_weight_of(matmuls[i]);
        f->replaced[f->n_replaced++] = matmuls[i];
        if (biases[i]) {
            f->src[at.bias[i]] = biases[i]->src[TN_SRC_binary_b];
            f->replaced[f->n_replaced++] = biases[i];
        }
        f->dst[f->n_dst++] = biases[i] ? biases[i]->dst[0] : matmuls[i]->dst[0];
    }
    return NULL;
}

// matmul, then any of: bias, activation, residual.
const char *tn_fuse_match_linear(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    *f = (tn_fusion){.op = TN_OP_linear, .n_dst = 1, .n_replaced = 1};
    f->params.linear.act = TN_UNARY_NONE;
    f->replaced[0] = n;
    tn_tensor *y = n->dst[0], *residual = NULL;
    tn_node *bias = bias_after(m, n);
    if (bias) {
        f->params.linear.has_bias = 1;
        f->replaced[f->n_replaced++] = bias;
        y = bias->dst[0];
    }
    tn_node *next = tn_fuse_only_user(m, y);
    if (next && next->op == TN_OP_unary) {
        int32_t kind = ((const tn_unary_params *)next->params)->kind;
        bool plain = kind == TN_UNARY_SILU || kind == TN_UNARY_GELU || kind == TN_UNARY_GELU_ERF ||
                     kind == TN_UNARY_RELU || kind == TN_UNARY_TANH || kind == TN_UNARY_SIGMOID;
        if (plain) {
            f->params.linear.act = kind;
            f->replaced[f->n_replaced++] = next;
            y = next->dst[0];
            next = tn_fuse_only_user(m, y);
        }
    }
    if (next && tn_fuse_is_add(next) && tn_view_same_shape(&next->src[0]->view, &next->src[1]->view)) {
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
    f->src[at.w[0]] = tn_fuse_weight_of(n);
    if (bias) f->src[at.bias[0]] = bias->src[TN_SRC_binary_b];
    if (residual) f->src[at.residual] = residual;
    f->dst[0] = y;
    return f->n_replaced > 1 ? NULL : "";
}

// rms_norm of the rows that a matmul reads, if nothing else reads the normed rows.
const char *tn_fuse_match_norm_matmul(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    if (n->n_src < 2 || n->src[0]->root->kind == TN_VALUE_WEIGHT) return "";
    tn_node *matmul = tn_fuse_only_user(m, n->dst[0]);
    if (!matmul) return "the normed rows have several uses";
    // A matmul has no parameters: as linear it has those of a norm.
    *f = (tn_fusion){.op = matmul->op == TN_OP_matmul ? TN_OP_linear : matmul->op,
                     .n_dst = matmul->n_dst,
                     .n_replaced = 2};
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
