// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Questions that several patterns of the fusion pass ask about the graph.
#include "graph/fuse.h"

bool tn_fuse_device_accepts(const tn_pass_state *s, const tn_node *n)
{
    tn_step step;
    tn_node_step(n, &step);
    const tn_device *d = s->devices[n->wanted];
    return d->backend->accepts(d, &step);
}

tn_node *tn_fuse_made_by(const tn_tensor *t, int32_t op)
{
    return t && t->producer && t->producer->op == op && t->out == 0 ? t->producer : NULL;
}

bool tn_fuse_private(const tn_fuse_matcher *m, const tn_tensor *t)
{
    return m->n_uses[t->id] == 1 && !t->output;
}

bool tn_fuse_is_add(const tn_node *n)
{
    return n->op == TN_OP_binary && ((const tn_binary_params *)n->params)->kind == TN_BINARY_ADD;
}

bool tn_fuse_is_vector(const tn_tensor *t, int64_t n)
{
    return tn_view_n_rows(&t->view) == 1 && t->view.ne[3] == n && tn_view_rows_contiguous(&t->view) &&
           t->root->kind == TN_VALUE_WEIGHT;
}

bool tn_fuse_is_weight(const tn_tensor *t)
{
    return t->root->kind == TN_VALUE_WEIGHT;
}

tn_node *tn_fuse_only_user(const tn_fuse_matcher *m, const tn_tensor *y)
{
    if (!tn_fuse_private(m, y)) return NULL;
    const tn_graph *g = m->s->graph;
    for (int32_t i = m->positions[y->producer->id] + 1; i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->nodes[i]->n_src; k++)
            if (m->positions[g->nodes[i]->id] >= 0 && g->nodes[i]->src[k] == y) return g->nodes[i];
    return NULL;
}

tn_tensor *tn_fuse_weight_of(const tn_node *matmul)
{
    return matmul->src[tn_product_sources_get(matmul->op, matmul->params).w[0]];
}
