// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Place: every node goes to the first device that takes it; a value that another device reads is
// transferred once per device, right after it was made. Views stay with their root.
#include "graph/graph.h"

static tn_status choose_device(tn_pass_state *s, tn_node *n)
{
    tn_step step;
    tn_node_step(n, &step);
    for (int32_t d = 0; d < s->n_devices; d++) {
        if (!s->devices[d]->backend->accepts(s->devices[d], &step)) continue;
        n->device = d;
        if (d == 0) return TN_OK;
        return tn_event(s->ctx, TN_EVENT_DEVICE_FALLBACK, "%s (%s) runs on %s: %s has no kernel for it", step.name,
                        tn_op_name(n->op), s->devices[d]->name, s->devices[0]->name);
    }
    char text[96];
    return tn_fail(s->ctx, TN_ERR_UNSUPPORTED, "%s: no device takes %s of %s", step.name, tn_op_name(n->op),
                   tn_view_text(&n->src[0]->view, text, sizeof text));
}

// Inputs are written to, weights and states are bound on, the device of their first reader: those that
// several devices read must be inputs or weights, which are bound once per device by the caller.
static int32_t home(const tn_tensor *t)
{
    while (t->producer && tn_node_is_view(t->producer)) t = t->producer->src[0];
    return t->producer ? t->producer->device : -1;
}

// The value as seen from device d, transferred if it was made elsewhere.
static tn_status on_device(tn_pass_state *s, tn_tensor **value, int32_t d, tn_tensor **transferred)
{
    tn_tensor *t = *value;
    int32_t from = home(t);
    if (from < 0 || from == d) return TN_OK;
    if (t->root->kind == TN_VALUE_STATE)
        return tn_fail(s->ctx, TN_ERR_UNSUPPORTED, "%s: a state cannot move between devices", t->name);
    tn_tensor **slot = &transferred[(size_t)t->id * (size_t)s->n_devices + (size_t)d];
    if (!*slot) {
        tn_node *n;
        tn_status status = TN_OK;
        if (!tn_view_contiguous(&t->view)) { // bytes travel as one run
            status = tn_graph_record(s->graph, TN_OP_copy, 1, &t, &(tn_copy_params){t->view.dtype}, &n);
            if (status != TN_OK) return status;
            n->device = from;
            t = n->dst[0];
        }
        status = tn_graph_record(s->graph, TN_OP_transfer, 1, &t, NULL, &n);
        if (status != TN_OK) return status;
        n->device = d;
        *slot = n->dst[0];
    }
    *value = *slot;
    return TN_OK;
}

tn_status tn_pass_place(tn_pass_state *s)
{
    tn_graph *g = s->graph;
    int32_t n_nodes = g->n_nodes;
    bool mixed = false;
    for (int32_t i = 0; i < n_nodes; i++) {
        tn_node *n = g->nodes[i];
        if (tn_node_is_view(n)) continue;
        tn_status status = choose_device(s, n);
        if (status != TN_OK) return status;
        mixed |= n->device != 0;
    }
    if (!mixed) return TN_OK;
    size_t n_slots = (size_t)g->n_values * (size_t)s->n_devices;
    tn_tensor **transferred = tn_calloc(s->ctx, n_slots, sizeof *transferred);
    if (!transferred) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < n_nodes && status == TN_OK; i++) {
        tn_node *n = g->nodes[i];
        for (int32_t k = 0; k < n->n_src && status == TN_OK && !tn_node_is_view(n); k++)
            if (n->src[k]) status = on_device(s, &n->src[k], n->device, transferred);
    }
    tn_free(s->ctx, transferred);
    return status == TN_OK ? tn_pass_schedule(s) : status; // transfers were appended at the end
}
