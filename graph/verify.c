// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules of a graph, checked after recording and after every pass. A violation is a bug of the pass
// that is named, never of a file or a caller.
#include "graph/graph.h"

static tn_status broken(const tn_graph *g, const char *after, const tn_node *n, const char *rule)
{
    return tn_fail(g->ctx, TN_ERR_INTERNAL, "graph after %s: node %d (%s): %s", after, n->id,
                   tn_op_name(n->op), rule);
}

// The stride of a dimension with one element has no meaning, and it differs between a tensor and rows sliced
// from a larger one, so it is not compared.
static bool same_view(const tn_view *a, const tn_view *b)
{
    bool same = a->dtype == b->dtype;
    for (int d = 0; d < TN_MAX_DIMS; d++)
        same &= a->ne[d] == b->ne[d] && (a->ne[d] == 1 || a->nb[d] == b->nb[d]);
    return same;
}

static tn_status verify_results(const tn_graph *g, const char *after, const tn_node *n)
{
    tn_step step;
    tn_node_step(n, &step);
    tn_status status = tn_op_info_get(n->op)->infer(g->ctx, &step);
    if (status != TN_OK) return tn_fail_at(g->ctx, TN_ERR_INTERNAL, "graph after %s", after);
    if (step.n_dst != n->n_dst) return broken(g, after, n, "count of results");
    for (int32_t i = 0; i < n->n_dst; i++) {
        const tn_tensor *t = n->dst[i];
        if (t->producer != n || t->out != i) return broken(g, after, n, "a result has another producer");
        if (!same_view(&t->view, &step.dst[i]))
            return broken(g, after, n, "a result has not the shape its op infers");
        int32_t flags = tn_op_info_get(n->op)->flags;
        bool shares = tn_op_aliases(flags, i) || (i == 0 && (flags & TN_OP_VIEW));
        if (shares && t->root != n->src[i]->root) return broken(g, after, n, "a view left its root");
    }
    return TN_OK;
}

// A state has versions: a node that reads one must come before the write that makes the next.
static tn_status verify_versions(const tn_graph *g, const char *after, const tn_tensor **latest)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        for (int32_t k = 0; k < n->n_src; k++) {
            const tn_tensor *s = n->src[k];
            if (!s || s->root->kind != TN_VALUE_STATE) continue;
            const tn_tensor *now = latest[s->root->id] ? latest[s->root->id] : s->root;
            while (s->producer && tn_node_is_view(s->producer)) s = s->producer->src[0];
            if (s != now) return broken(g, after, n, "reads an overwritten version of a state");
        }
        for (int32_t k = 0; k < n->n_dst; k++)
            if (tn_op_aliases(tn_op_info_get(n->op)->flags, k)) latest[n->dst[k]->root->id] = n->dst[k];
    }
    return TN_OK;
}

// What steps share: only neighbours on one device share a launch, and staged rows are written before they are
// read.
static tn_status verify_joins(const tn_graph *g, const char *after)
{
    const tn_node *before = NULL;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        if (tn_node_is_view(n)) continue;
        uint32_t offered = before && before->device == n->device ? before->join_next : 0;
        if (n->join_previous != offered || (before && before->join_next != offered))
            return broken(g, after, n, "it is joined with a step that is not next to it");
        bool made = false;
        for (int32_t k = 0; k < i && n->staged_x; k++) made |= g->nodes[k]->staged_y == n->staged_x;
        if (n->staged_x && !made) return broken(g, after, n, "staged rows come after their use");
        before = n;
    }
    return TN_OK;
}

tn_status tn_graph_verify(const tn_graph *g, const char *after)
{
    uint8_t *defined = tn_calloc(g->ctx, (size_t)g->n_values, 1);
    const tn_tensor **latest = tn_calloc(g->ctx, (size_t)g->n_values, sizeof *latest);
    tn_status status = defined && latest ? TN_OK : TN_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_values && status == TN_OK; i++)
        if (g->values[i]->kind != TN_VALUE_NODE) defined[i] = 1;
    for (int32_t i = 0; i < g->n_nodes && status == TN_OK; i++) {
        const tn_node *n = g->nodes[i];
        for (int32_t k = 0; k < n->n_src && status == TN_OK; k++)
            if (n->src[k] && !defined[n->src[k]->id])
                status = broken(g, after, n, "a source comes after its use");
        if (status == TN_OK) status = verify_results(g, after, n);
        for (int32_t k = 0; k < n->n_dst && status == TN_OK; k++) {
            if (defined[n->dst[k]->id]) status = broken(g, after, n, "a value has two producers");
            defined[n->dst[k]->id] = 1;
        }
    }
    for (int32_t i = 0; i < g->n_values && status == TN_OK; i++)
        if (g->values[i]->output && !defined[i])
            status = tn_fail(g->ctx, TN_ERR_INTERNAL, "graph after %s: output %s is gone", after,
                             g->values[i]->output);
    if (status == TN_OK) status = verify_versions(g, after, latest);
    if (status == TN_OK) status = verify_joins(g, after);
    tn_free(g->ctx, latest);
    tn_free(g->ctx, defined);
    return status;
}
