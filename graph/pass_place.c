// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Place: every node gets the device that was requested for it, or the first other one that accepts it. A
// value that another device reads is transferred once per device, right after it was computed. Views stay
// with their root, and all nodes that read or write a state run on the device of that state.
#include "graph/graph.h"

static bool accepts(const tn_pass_state *s, int32_t d, const tn_node *n)
{
    tn_step step;
    tn_node_step(n, &step);
    if (!tn_device_has_precision(s->devices[d], n->precision)) return false;
    return s->devices[d]->backend->accepts(s->devices[d], &step);
}

static tn_status choose_device(tn_pass_state *s, tn_node *n)
{
    n->device = n->wanted;
    if (accepts(s, n->wanted, n)) return TN_OK;
    for (int32_t d = 0; d < s->n_devices; d++) {
        if (d == n->wanted || !accepts(s, d, n)) continue;
        n->device = d;
        return TN_OK;
    }
    char text[96];
    return tn_fail(s->ctx, TN_ERR_UNSUPPORTED, "%s: no device accepts %s of %s", n->dst[0]->name,
                   tn_op_name(n->op), tn_view_text(&n->src[0]->view, text, sizeof text));
}

// A state lies on one device: the last in order of preference among those of its nodes. Moving one node may
// move others through a second state, so this goes on until nothing moves.
static tn_status join_states(tn_pass_state *s)
{
    const tn_graph *g = s->graph;
    int32_t *homes = tn_calloc(s->ctx, (size_t)g->n_values + 1, sizeof *homes); // device + 1
    if (!homes) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (bool moved = true; moved && status == TN_OK;) {
        moved = false;
        for (int32_t i = 0; i < g->n_nodes && status == TN_OK; i++) {
            tn_node *n = g->nodes[i];
            if (tn_node_is_view(n)) continue;
            int32_t d = n->device;
            for (int32_t k = 0; k < n->n_src; k++)
                if (n->src[k] && n->src[k]->root->kind == TN_VALUE_STATE)
                    d = TN_MAX(d, homes[n->src[k]->root->id] - 1);
            for (int32_t k = 0; k < n->n_src; k++) {
                if (!n->src[k] || n->src[k]->root->kind != TN_VALUE_STATE) continue;
                moved |= homes[n->src[k]->root->id] != d + 1;
                homes[n->src[k]->root->id] = d + 1;
            }
            if (d != n->device && !accepts(s, d, n))
                status = tn_fail(s->ctx, TN_ERR_UNSUPPORTED,
                                 "%s: its state lies on %s, which has no kernel for %s", n->dst[0]->name,
                                 s->devices[d]->name, tn_op_name(n->op));
            n->device = d;
        }
    }
    tn_free(s->ctx, homes);
    return status;
}

// --- reports ---------------------------------------------------------------------------------------

// Nodes of one kind that do not run on the device that was requested for them.
typedef struct misfit {
    const tn_node *node;
    int32_t count;
    bool refused; // the device has no kernel; false: the node follows its state to another device
} misfit;

static bool same_kind(const tn_node *a, const tn_node *b)
{
    if (a->op != b->op || a->n_src != b->n_src || a->wanted != b->wanted || a->device != b->device)
        return false;
    for (int32_t k = 0; k < a->n_src; k++) {
        if (!a->src[k] != !b->src[k]) return false;
        if (a->src[k] && a->src[k]->view.dtype != b->src[k]->view.dtype) return false;
    }
    return true;
}

static int32_t find_misfits(const tn_pass_state *s, misfit *list)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->graph->n_nodes; i++) {
        const tn_node *node = s->graph->nodes[i];
        if (tn_node_is_view(node) || node->device == node->wanted) continue;
        bool refused = !accepts(s, node->wanted, node);
        int32_t at = 0;
        while (at < n && !(list[at].refused == refused && same_kind(list[at].node, node))) at++;
        if (at == n) list[n++] = (misfit){node, 0, refused};
        list[at].count++;
    }
    return n;
}

// "matmul (F32, Q4_K) x 7"
static void put_misfit(const misfit *m, tn_strbuf *out)
{
    tn_strbuf_printf(out, "%s (", tn_op_name(m->node->op));
    for (int32_t k = 0, first = 1; k < m->node->n_src; k++) {
        if (!m->node->src[k]) continue;
        tn_strbuf_printf(out, "%s%s", first ? "" : ", ", tn_dtype_name(m->node->src[k]->view.dtype));
        first = 0;
    }
    tn_strbuf_printf(out, ") x %d", m->count);
}

static tn_status refuse(const tn_pass_state *s, const misfit *list, int32_t n)
{
    tn_strbuf text;
    tn_strbuf_init(&text, s->ctx);
    const char *separator = "";
    int32_t first = 0;
    while (first + 1 < n && !list[first].refused) first++;
    for (int32_t i = first; i < n; i++) {
        if (!list[i].refused && i > first) continue;
        tn_strbuf_puts(&text, separator);
        put_misfit(&list[i], &text);
        separator = ", ";
    }
    tn_status status = text.status;
    if (status == TN_OK)
        status = tn_fail(s->ctx, TN_ERR_UNSUPPORTED, "%s has no kernel for %s",
                         s->devices[list[first].node->wanted]->name, text.data);
    tn_strbuf_fini(&text);
    return status;
}

static tn_status report_misfit(const tn_pass_state *s, const misfit *m)
{
    tn_strbuf text;
    tn_strbuf_init(&text, s->ctx);
    put_misfit(m, &text);
    const char *wanted = s->devices[m->node->wanted]->name, *device = s->devices[m->node->device]->name;
    tn_status status = text.status;
    if (status == TN_OK && m->refused)
        status = tn_event(s->ctx, TN_EVENT_DEVICE_FALLBACK, "%s runs on %s: %s has no kernel for it",
                          text.data, device, wanted);
    else if (status == TN_OK)
        status = tn_event(s->ctx, TN_EVENT_DEVICE_FALLBACK, "%s runs on %s, not on %s: its state lies there",
                          text.data, device, wanted);
    tn_strbuf_fini(&text);
    return status;
}

static tn_status report(tn_pass_state *s)
{
    misfit *list = tn_calloc(s->ctx, (size_t)s->graph->n_nodes + 1, sizeof *list);
    if (!list) return TN_ERR_MEMORY;
    int32_t n = find_misfits(s, list);
    bool strict = s->fallback == TN_FALLBACK_ERROR || tn_context_strict(s->ctx);
    tn_status status = strict && n > 0 ? refuse(s, list, n) : TN_OK;
    for (int32_t i = 0; i < n && status == TN_OK && s->fallback == TN_FALLBACK_EVENT; i++)
        status = report_misfit(s, &list[i]);
    tn_free(s->ctx, list);
    return status;
}

// --- transfers -------------------------------------------------------------------------------------

// Inputs and weights belong to no device: each device that reads one gets a copy of it.
static int32_t home(const tn_tensor *t)
{
    while (t->producer && tn_node_is_view(t->producer)) t = t->producer->src[0];
    return t->producer ? t->producer->device : -1;
}

// The value as device d reads it: transferred if another device computed it.
static tn_status on_device(tn_pass_state *s, tn_tensor **value, int32_t d, tn_tensor **transferred)
{
    tn_tensor *t = *value;
    int32_t from = home(t);
    if (from < 0 || from == d) return TN_OK;
    tn_tensor **slot = &transferred[(size_t)t->id * (size_t)s->n_devices + (size_t)d];
    if (!*slot) {
        tn_node *n;
        tn_status status = TN_OK;
        if (!tn_view_contiguous(&t->view)) { // a transfer copies one contiguous range
            status = tn_graph_record(s->graph, TN_OP_copy, 1, &t, &(tn_copy_params){t->view.dtype}, &n);
            if (status != TN_OK) return status;
            n->wanted = n->device = from;
            if (!accepts(s, from, n))
                return tn_fail(s->ctx, TN_ERR_UNSUPPORTED, "%s: %s cannot gather it for %s", t->name,
                               s->devices[from]->name, s->devices[d]->name);
            t = n->dst[0];
        }
        status = tn_graph_record(s->graph, TN_OP_transfer, 1, &t, NULL, &n);
        if (status != TN_OK) return status;
        n->wanted = n->device = d;
        *slot = n->dst[0];
    }
    *value = *slot;
    return TN_OK;
}

static tn_status add_transfers(tn_pass_state *s)
{
    tn_graph *g = s->graph;
    int32_t n_nodes = g->n_nodes;
    tn_tensor **transferred =
        tn_calloc(s->ctx, (size_t)g->n_values * (size_t)s->n_devices + 1, sizeof *transferred);
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

tn_status tn_pass_place(tn_pass_state *s)
{
    const tn_graph *g = s->graph;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < g->n_nodes && status == TN_OK; i++)
        if (!tn_node_is_view(g->nodes[i])) status = choose_device(s, g->nodes[i]);
    if (status == TN_OK) status = join_states(s);
    if (status == TN_OK) status = report(s);
    if (status != TN_OK) return status;
    int32_t first = -1;
    bool mixed = false;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        if (tn_node_is_view(n)) continue;
        if (first < 0) first = n->device;
        mixed |= n->device != first;
    }
    return mixed ? add_transfers(s) : TN_OK;
}
