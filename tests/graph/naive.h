// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a graph gives if each storage has memory of its own and every op is its reference.
#ifndef TN_TESTS_GRAPH_NAIVE_H
#define TN_TESTS_GRAPH_NAIVE_H

#include "graph/graph.h"

// Runs the ops in the order of recording. memory: of each storage, by the number of its value.
static inline void run_references(const tn_graph *g, void *const *memory)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *node = g->nodes[i];
        tn_step step;
        if (tn_node_is_view(node)) continue;
        tn_node_step(node, &step);
        for (int32_t k = 0; k < node->n_src; k++)
            if (node->src[k])
                step.src[k].data = (char *)memory[node->src[k]->root->id] + node->src[k]->view.offset;
        for (int32_t k = 0; k < node->n_dst; k++)
            step.dst[k].data = (char *)memory[node->dst[k]->root->id] + node->dst[k]->view.offset;
        tn_op_info_get(node->op)->ref(&step);
    }
}

#endif
