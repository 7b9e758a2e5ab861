// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory: the life of each storage in steps, then offsets in one arena per device. Greedy by size: the
// largest storage takes the lowest offset that is free during its whole life (Pisarchyk and Lee 2020,
// "greedy by size"). Results of elementwise ops take the place of a source that dies there.
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 64 };

// First and last step of every storage; views and in-place results extend their root.
static void find_lifetimes(const tn_graph *g, tn_place *places)
{
    for (int32_t i = 0; i < g->n_values; i++) places[i].first = places[i].last = -1;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        for (int32_t k = 0; k < n->n_dst; k++) {
            tn_place *p = &places[n->dst[k]->root->id];
            if (p->first < 0) p->first = i, p->device = n->device;
            p->last = i;
        }
        for (int32_t k = 0; k < n->n_src; k++)
            if (n->src[k]) places[n->src[k]->root->id].last = i;
    }
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->output) places[g->values[i]->root->id].last = g->n_nodes;
}

static bool same_bytes(const tn_tensor *a, const tn_tensor *b)
{
    return a->view.dtype == b->view.dtype && tn_view_same_shape(&a->view, &b->view) && tn_view_contiguous(&a->view) &&
           tn_view_contiguous(&b->view) && a->view.offset == 0 && tn_tensor_size(a) == tn_tensor_size(a->root);
}

// Gives result 0 of an elementwise node the storage of a source whose last use this is.
static void share_in_place(tn_graph *g, tn_place *places)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        if (!(tn_op_info_get(n->op)->flags & TN_OP_INPLACE)) continue;
        tn_tensor *y = n->dst[0];
        if (y->root != y) continue;
        tn_tensor *x = n->src[0], *root = x->root;
        bool other = false; // another source in the same storage would be overwritten while it is read
        for (int32_t k = 1; k < n->n_src; k++) other |= n->src[k] && n->src[k]->root == root;
        if (other || root->kind != TN_VALUE_NODE || places[root->id].last != i || !same_bytes(x, y) ||
            places[root->id].device != n->device)
            continue;
        for (int32_t v = 0; v < g->n_values; v++)
            if (g->values[v]->root == y) g->values[v]->root = root;
        places[root->id].last = TN_MAX(places[root->id].last, places[y->id].last);
        places[y->id].first = -1;
    }
}

typedef struct item {
    int32_t value;
    size_t size;
} item;

static int larger_first(const void *pa, const void *pb)
{
    const item *a = pa, *b = pb;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->value - b->value;
}

typedef struct placed {
    size_t offset, end;
} placed;

static int lower_first(const void *pa, const void *pb)
{
    const placed *a = pa, *b = pb;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

// Lowest free offset for item n among the items before it that live at the same time.
static size_t find_offset(const tn_place *places, const item *items, int32_t n, placed *busy)
{
    const tn_place *me = &places[items[n].value];
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        const tn_place *p = &places[items[i].value];
        if (p->device == me->device && p->first <= me->last && me->first <= p->last)
            busy[count++] = (placed){p->offset, p->offset + p->size};
    }
    qsort(busy, (size_t)count, sizeof *busy, lower_first);
    size_t at = 0;
    for (int32_t i = 0; i < count; i++) {
        if (busy[i].offset >= at + me->size) break;
        at = TN_MAX(at, busy[i].end);
    }
    return at;
}

static void find_bound(const tn_pass_state *s)
{
    for (int32_t step = 0; step < s->graph->n_nodes; step++) {
        for (int32_t d = 0; d < s->n_devices; d++) {
            size_t live = 0;
            for (int32_t v = 0; v < s->graph->n_values; v++) {
                const tn_place *p = &s->places[v];
                if (p->in_arena && p->device == d && p->first <= step && step <= p->last) live += p->size;
            }
            s->arena_bound[d] = TN_MAX(s->arena_bound[d], live);
        }
    }
}

tn_status tn_pass_memory(tn_pass_state *s)
{
    tn_graph *g = s->graph;
    find_lifetimes(g, s->places);
    share_in_place(g, s->places);
    item *items = tn_calloc(s->ctx, (size_t)g->n_values + 1, sizeof *items);
    placed *busy = tn_calloc(s->ctx, (size_t)g->n_values + 1, sizeof *busy);
    tn_status status = items && busy ? TN_OK : TN_ERR_MEMORY;
    int32_t n = 0;
    for (int32_t i = 0; i < g->n_values && status == TN_OK; i++) {
        const tn_tensor *t = g->values[i];
        if (t->kind != TN_VALUE_NODE || t->root != t || s->places[i].first < 0) continue;
        s->places[i].size = (tn_tensor_size(t) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
        s->places[i].in_arena = true;
        items[n++] = (item){i, s->places[i].size};
    }
    if (status == TN_OK) {
        qsort(items, (size_t)n, sizeof *items, larger_first);
        for (int32_t i = 0; i < n; i++) {
            tn_place *p = &s->places[items[i].value];
            p->offset = find_offset(s->places, items, i, busy);
            s->arena_size[p->device] = TN_MAX(s->arena_size[p->device], p->offset + p->size);
        }
        find_bound(s);
    }
    tn_free(s->ctx, busy);
    tn_free(s->ctx, items);
    return status;
}
