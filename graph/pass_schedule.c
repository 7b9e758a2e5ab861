// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Schedule: a stable topological order. Nodes keep the order of recording; a node that comes too late for its
// first user moves in front of it. Reads of a state come before the write that replaces what they read.
#include "graph/graph.h"

#include <string.h>

typedef struct sorter {
    tn_graph *g;
    uint8_t *done;     // per position in the old order
    int32_t *position; // of the producer of a value in the old order, -1 if none; per value
    tn_node **order;
    int32_t n;
} sorter;

static bool is_write(const tn_node *n)
{
    return (tn_op_info_get(n->op)->flags & TN_OP_ALIAS) != 0;
}

// The version of a state that a value shows, seen through views.
static const tn_tensor *version(const tn_tensor *t)
{
    while (t->producer && tn_node_is_view(t->producer)) t = t->producer->src[0];
    return t;
}

static bool reads(const tn_node *n, const tn_tensor *state_version)
{
    for (int32_t k = 0; k < n->n_src; k++)
        if (n->src[k] && n->src[k]->root == state_version->root && version(n->src[k]) == state_version)
            return true;
    return false;
}

// Depth is bounded by the longest chain that is out of order, which passes keep short.
static void visit(sorter *s, int32_t i)
{
    if (s->done[i]) return;
    s->done[i] = 1;
    tn_node *n = s->g->nodes[i];
    for (int32_t k = 0; k < n->n_src; k++)
        if (n->src[k] && s->position[n->src[k]->id] >= 0) visit(s, s->position[n->src[k]->id]);
    if (is_write(n)) {
        const tn_tensor *old = version(n->src[0]);
        for (int32_t j = 0; j < s->g->n_nodes; j++)
            if (j != i && !is_write(s->g->nodes[j]) && !tn_node_is_view(s->g->nodes[j]) &&
                reads(s->g->nodes[j], old))
                visit(s, j);
    }
    s->order[s->n++] = n;
}

tn_status tn_pass_schedule(tn_pass_state *state)
{
    tn_graph *g = state->graph;
    sorter s = {.g = g};
    s.done = tn_calloc(g->ctx, (size_t)g->n_nodes + 1, 1);
    s.position = tn_calloc(g->ctx, (size_t)g->n_values + 1, sizeof *s.position);
    s.order = tn_calloc(g->ctx, (size_t)g->n_nodes + 1, sizeof *s.order);
    tn_status status = s.done && s.position && s.order ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        memset(s.position, 0xff, (size_t)g->n_values * sizeof *s.position);
        for (int32_t i = 0; i < g->n_nodes; i++)
            for (int32_t k = 0; k < g->nodes[i]->n_dst; k++) s.position[g->nodes[i]->dst[k]->id] = i;
        for (int32_t i = 0; i < g->n_nodes; i++) visit(&s, i);
        if (g->n_nodes > 0) memcpy(g->nodes, s.order, (size_t)g->n_nodes * sizeof *s.order);
    }
    tn_free(g->ctx, s.order);
    tn_free(g->ctx, s.position);
    tn_free(g->ctx, s.done);
    return status;
}
