// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Simplify: ops that change nothing are bypassed, then nodes that no result and no state depends on are
// removed.
#include "graph/graph.h"

// The source that a node returns unchanged, or NULL.
static tn_tensor *repeated(const tn_node *n)
{
    tn_tensor *x = n->src[0];
    // A copy of a state must stay: it preserves the values that a later write replaces.
    if (x->root->kind == TN_VALUE_STATE && !tn_node_is_view(n)) return NULL;
    if (n->op == TN_OP_copy && x->view.dtype == n->dst[0]->view.dtype && tn_view_contiguous(&x->view))
        return x;
    if (n->op == TN_OP_unary) {
        const tn_unary_params *p = n->params;
        if (p->kind == TN_UNARY_AFFINE && p->a == 1.0f && p->b == 0.0f && tn_view_contiguous(&x->view))
            return x;
    }
    if (n->op == TN_OP_reshape && tn_view_same_shape(&x->view, &n->dst[0]->view) &&
        x->view.n_dims == n->dst[0]->view.n_dims)
        return x;
    return NULL;
}

static void replace_uses(tn_graph *g, const tn_tensor *old, tn_tensor *with)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->nodes[i]->n_src; k++)
            if (g->nodes[i]->src[k] == old) g->nodes[i]->src[k] = with;
    // Views of the bypassed value live in the storage of the other one now.
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->root == old && g->values[i] != old) {
            g->values[i]->root = with->root;
            g->values[i]->view.offset += with->view.offset;
        }
}

// Whether t, or a view of it, is a result of the graph.
static bool holds_output(const tn_graph *g, const tn_tensor *t)
{
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->output && (g->values[i] == t || g->values[i]->root == t)) return true;
    return false;
}

tn_status tn_pass_simplify(tn_pass_state *s)
{
    tn_graph *g = s->graph;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        tn_tensor *x = repeated(g->nodes[i]);
        // A result keeps its own storage: that of an input or a weight is not there to be read.
        if (x && !holds_output(g, g->nodes[i]->dst[0])) replace_uses(g, g->nodes[i]->dst[0], x);
    }
    // From the last node to the first: a node stays if it writes a state or computes a value that is needed.
    uint8_t *needed = tn_calloc(s->ctx, (size_t)g->n_values, 1);
    uint8_t *stays = tn_calloc(s->ctx, (size_t)g->n_nodes + 1, 1);
    if (needed && stays) {
        for (int32_t i = g->n_nodes - 1; i >= 0; i--) {
            const tn_node *n = g->nodes[i];
            stays[i] = (tn_op_info_get(n->op)->flags & TN_OP_ALIAS) != 0;
            for (int32_t k = 0; k < n->n_dst; k++) stays[i] |= needed[n->dst[k]->id] || n->dst[k]->output;
            for (int32_t k = 0; k < n->n_src && stays[i]; k++)
                if (n->src[k]) needed[n->src[k]->id] = 1;
        }
        int32_t kept = 0;
        for (int32_t i = 0; i < g->n_nodes; i++)
            if (stays[i]) g->nodes[kept++] = g->nodes[i];
        g->n_nodes = kept;
    }
    tn_status status = needed && stays ? TN_OK : TN_ERR_MEMORY;
    tn_free(s->ctx, stays);
    tn_free(s->ctx, needed);
    return status;
}
