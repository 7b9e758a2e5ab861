// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Recording: values and nodes in one arena, shape and type rules applied at once.
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

tn_status tn_graph_create(tn_context *ctx, tn_graph **out)
{
    TN_NEED(NULL, ctx);
    TN_NEED(ctx, out);
    tn_graph *g = tn_calloc(ctx, 1, sizeof *g);
    if (!g) return TN_ERR_MEMORY;
    g->ctx = ctx;
    tn_arena_init(&g->arena, ctx);
    *out = g;
    return TN_OK;
}

void tn_graph_destroy(tn_graph **graph)
{
    if (!graph || !*graph) return;
    tn_graph *g = *graph;
    tn_context *ctx = g->ctx;
    tn_free(ctx, g->values);
    tn_free(ctx, g->nodes);
    tn_arena_fini(&g->arena);
    tn_free(ctx, g);
    *graph = NULL;
}

void tn_graph_want(tn_graph *g, int32_t device)
{
    g->wanted = device;
}

void tn_graph_keep_weight(tn_tensor *weight, int32_t device)
{
    if (weight) weight->home = device;
}

tn_status tn_graph_status(const tn_graph *graph)
{
    TN_NEED(NULL, graph);
    return graph->status;
}

// Keeps the first failure with its message; the context would overwrite it at the next failure.
static tn_status keep(tn_graph *g, tn_status status)
{
    if (status != TN_OK && g->status == TN_OK) {
        g->status = status;
        tn_context_error(g->ctx, g->error, sizeof g->error);
    }
    return status;
}

// Grows a list so that one more pointer fits.
static tn_status grow(tn_context *ctx, void *list, int32_t n, int32_t *capacity)
{
    if (n < *capacity) return TN_OK;
    int32_t more = *capacity ? *capacity * 2 : 64;
    void **old;
    memcpy(&old, list, sizeof old);
    void *p = tn_realloc(ctx, old, (size_t)n * sizeof(void *), (size_t)more * sizeof(void *));
    if (!p) return TN_ERR_MEMORY;
    memcpy(list, &p, sizeof p);
    *capacity = more;
    return TN_OK;
}

static tn_tensor *add_value(tn_graph *g, int32_t kind, const tn_view *view)
{
    if (grow(g->ctx, &g->values, g->n_values, &g->values_capacity) != TN_OK) return NULL;
    tn_tensor *t = tn_arena_alloc(&g->arena, sizeof *t);
    if (!t) return NULL;
    *t = (tn_tensor){.id = g->n_values, .kind = kind, .view = *view, .root = t, .home = -1};
    g->values[g->n_values++] = t;
    return t;
}

// Number of elements with one more dimension, or 0 if they are too many.
static int64_t elements_with(int64_t n, int64_t extent)
{
    return extent < 1 || n > INT64_MAX / 64 / extent ? 0 : n * extent;
}

static tn_status check_shape(tn_graph *g, const char *name, tn_dtype dtype, int32_t n_dims,
                             const int64_t *shape)
{
    if (dtype < 0 || dtype >= TN_TYPE_COUNT) return tn_fail(g->ctx, TN_ERR_TYPE, "%s: type %d", name, dtype);
    if (n_dims < 1 || n_dims > TN_MAX_DIMS) return tn_fail(g->ctx, TN_ERR_SHAPE, "%s: rank %d", name, n_dims);
    int64_t n = 1;
    for (int32_t i = 0; i < n_dims; i++) {
        n = elements_with(n, shape[i]);
        if (n == 0)
            return tn_fail(g->ctx, TN_ERR_SHAPE, "%s: dimension %d is %lld", name, i, (long long)shape[i]);
    }
    if (shape[n_dims - 1] % tn_dtype_block_elems(dtype) != 0)
        return tn_fail(g->ctx, TN_ERR_SHAPE, "%s: rows of %lld are no multiple of the %s block", name,
                       (long long)shape[n_dims - 1], tn_dtype_name(dtype));
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->kind != TN_VALUE_NODE && strcmp(g->values[i]->name, name) == 0)
            return tn_fail(g->ctx, TN_ERR_ARG, "%s: the name is taken", name);
    return TN_OK;
}

static tn_tensor *add_outside(tn_graph *g, int32_t kind, const char *name, tn_dtype dtype, int32_t n_dims,
                              const int64_t *shape)
{
    if (g->status != TN_OK) return NULL;
    if (!name || !shape) {
        keep(g, tn_fail(g->ctx, TN_ERR_ARG, "a value without %s", name ? "shape" : "name"));
        return NULL;
    }
    if (keep(g, check_shape(g, name, dtype, n_dims, shape)) != TN_OK) return NULL;
    tn_view v = {.dtype = dtype, .n_dims = n_dims, .ne = {1, 1, 1, 1}};
    for (int32_t i = 0; i < n_dims; i++) v.ne[TN_MAX_DIMS - n_dims + i] = shape[i];
    tn_view_set_contiguous(&v);
    tn_tensor *t = add_value(g, kind, &v);
    if (t) t->name = tn_arena_strdup(&g->arena, name);
    if (!t || !t->name) {
        keep(g, TN_ERR_MEMORY);
        return NULL;
    }
    return t;
}

tn_tensor *tn_graph_input(tn_graph *g, const char *name, tn_dtype dtype, int32_t n_dims, const int64_t *shape)
{
    if (!g) return NULL;
    return add_outside(g, TN_VALUE_INPUT, name, dtype, n_dims, shape);
}

tn_tensor *tn_graph_weight(tn_graph *g, const char *name, tn_dtype dtype, int32_t n_dims,
                           const int64_t *shape)
{
    if (!g) return NULL;
    return add_outside(g, TN_VALUE_WEIGHT, name, dtype, n_dims, shape);
}

tn_tensor *tn_graph_state(tn_graph *g, const char *name, tn_dtype dtype, int32_t n_dims, const int64_t *shape)
{
    if (!g) return NULL;
    return add_outside(g, TN_VALUE_STATE, name, dtype, n_dims, shape);
}

tn_tensor *tn_graph_name(tn_graph *g, tn_tensor *value, const char *name)
{
    if (!g) return NULL;
    if (!value || !name || g->status != TN_OK) return value;
    if (value->kind != TN_VALUE_NODE) return value; // bindings find it by the name that it has
    const char *copy = tn_arena_strdup(&g->arena, name);
    if (!copy)
        keep(g, TN_ERR_MEMORY);
    else
        value->name = copy;
    return value;
}

void tn_graph_output(tn_graph *g, const char *name, tn_tensor *value)
{
    if (!g) return;
    if (g->status != TN_OK) return;
    if (!name) {
        keep(g, tn_fail(g->ctx, TN_ERR_ARG, "an output without name"));
        return;
    }
    tn_status status = TN_OK;
    bool taken = false;
    for (int32_t i = 0; i < g->n_values; i++)
        taken |= g->values[i]->output && strcmp(g->values[i]->output, name) == 0;
    if (taken)
        status = tn_fail(g->ctx, TN_ERR_ARG, "output %s: the name is taken", name);
    else if (!value)
        status = tn_fail(g->ctx, TN_ERR_ARG, "output %s: no value", name);
    else if (value->view.dtype != TN_TYPE_F32 && value->view.dtype != TN_TYPE_I32)
        status = tn_fail(g->ctx, TN_ERR_TYPE, "output %s: %s", name, tn_dtype_name(value->view.dtype));
    else if (!tn_view_contiguous(&value->view) || value->root->kind != TN_VALUE_NODE)
        status = tn_fail(g->ctx, TN_ERR_SHAPE,
                         "output %s: must be a contiguous result of an op; copy it first", name);
    else if (value->output)
        status = tn_fail(g->ctx, TN_ERR_ARG, "output %s: is already output %s", name, value->output);
    else if (!(value->output = tn_arena_strdup(&g->arena, name)))
        status = TN_ERR_MEMORY;
    keep(g, status);
}

bool tn_node_is_view(const tn_node *node)
{
    return (tn_op_info_get(node->op)->flags & TN_OP_VIEW) != 0;
}

size_t tn_tensor_size(const tn_tensor *t)
{
    return tn_dtype_row_size(t->view.dtype, t->view.ne[3]) * (size_t)tn_view_n_rows(&t->view);
}

bool tn_tensor_external(const tn_tensor *root)
{
    return root->kind == TN_VALUE_WEIGHT || root->kind == TN_VALUE_STATE;
}

void tn_node_step(const tn_node *node, tn_step *step)
{
    *step = (tn_step){.op = node->op,
                      .n_src = node->n_src,
                      .n_dst = node->n_dst,
                      .params = node->params,
                      .precision = node->precision};
    for (int32_t i = 0; i < node->n_src; i++)
        if (node->src[i]) step->src[i] = node->src[i]->view;
    for (int32_t i = 0; i < node->n_dst; i++)
        if (node->dst[i]) step->dst[i] = node->dst[i]->view;
    step->name = node->dst[0] && node->dst[0]->name ? node->dst[0]->name : tn_op_name(node->op);
    step->join = (tn_step_join){.previous = node->join_previous,
                                .next = node->join_next,
                                .early = node->early,
                                .one_query = node->one_query,
                                .uneven = node->uneven,
                                .apart = node->apart,
                                .mixed = node->mixed,
                                .computed_weights = node->computed_weights};
    if (node->staged_x) step->join.staged_x = node->staged_x->view;
    if (node->staged_y) step->join.staged_y = node->staged_y->view;
    if (node->staged_norm) step->join.staged_norm = node->staged_norm->view;
}

tn_tensor *tn_graph_add_staged(tn_graph *g, tn_node *maker, size_t size)
{
    tn_view v = {.dtype = TN_TYPE_I8, .n_dims = 1, .ne = {1, 1, 1, (int64_t)size}};
    tn_view_set_contiguous(&v);
    tn_tensor *t = add_value(g, TN_VALUE_NODE, &v);
    if (t) t->name = tn_arena_printf(&g->arena, "%s staged", maker->dst[0]->name ? maker->dst[0]->name : "");
    if (!t || !t->name) return NULL;
    t->producer = maker;
    return t;
}

// Creates the results of a node with the types and shapes that the rule of the op computed.
static tn_status add_results(tn_graph *g, tn_node *node, const tn_step *step)
{
    int32_t flags = tn_op_info_get(node->op)->flags;
    for (int32_t i = 0; i < node->n_dst; i++) {
        tn_tensor *t = add_value(g, TN_VALUE_NODE, &step->dst[i]);
        if (!t) return TN_ERR_MEMORY;
        t->producer = node;
        t->out = i;
        t->name = tn_arena_printf(&g->arena, "%s_%d", tn_op_name(node->op), node->id);
        if (!t->name) return TN_ERR_MEMORY;
        if (tn_op_aliases(flags, i) || (i == 0 && (flags & TN_OP_VIEW))) {
            // slice gives its offset relative to the source.
            size_t inner = (flags & TN_OP_VIEW) ? step->dst[0].offset : 0;
            if (node->op != TN_OP_slice) inner = 0;
            t->root = node->src[i]->root;
            t->view.offset = node->src[i]->view.offset + inner;
        } else {
            t->view.offset = 0;
        }
        if (tn_op_aliases(flags, i)) t->root->latest = t;
        node->dst[i] = t;
    }
    return TN_OK;
}

static tn_status check_sizes(tn_graph *g, const tn_step *step)
{
    for (int32_t i = 0; i < step->n_dst; i++) {
        int64_t n = 1;
        for (int32_t d = 0; d < TN_MAX_DIMS && n > 0; d++) n = elements_with(n, step->dst[i].ne[d]);
        char text[128];
        if (n == 0)
            return tn_fail(g->ctx, TN_ERR_SHAPE, "%s: a result of %s is too large", tn_op_name(step->op),
                           tn_view_text(&step->dst[i], text, sizeof text));
    }
    return TN_OK;
}

// Weights move a node to their device: of several devices the last in order of preference, to which a state
// can follow. A node with a state does not move to an earlier one.
static void take_sources(tn_node *node, int32_t n_src, tn_tensor *const *src)
{
    int32_t home = -1;
    bool state = false;
    for (int32_t i = 0; i < n_src; i++) {
        node->src[i] = src[i];
        if (src[i]) home = TN_MAX(home, src[i]->root->home);
        state |= src[i] && src[i]->root->kind == TN_VALUE_STATE;
    }
    if (home >= 0 && !(state && home < node->wanted)) node->wanted = node->device = home;
}

static tn_status record(tn_graph *g, int32_t op, int32_t n_src, tn_tensor *const *src, const void *params,
                        tn_node **out)
{
    const tn_op_info *info = tn_op_info_get(op);
    if (n_src < info->n_src_min || n_src > info->n_src_max)
        return tn_fail(g->ctx, TN_ERR_ARG, "%s: %d sources", info->name, n_src);
    tn_node *node = tn_arena_alloc(&g->arena, sizeof *node);
    if (!node || grow(g->ctx, &g->nodes, g->n_nodes, &g->nodes_capacity) != TN_OK) return TN_ERR_MEMORY;
    *node = (tn_node){.id = g->n_nodes,
                      .op = op,
                      .n_src = n_src,
                      .n_dst = info->n_dst,
                      .wanted = g->wanted,
                      .device = g->wanted};
    take_sources(node, n_src, src);
    if (info->params_size > 0) {
        node->params = tn_arena_alloc(&g->arena, info->params_size);
        if (!node->params) return TN_ERR_MEMORY;
        memcpy(node->params, params, info->params_size);
    }
    tn_step step;
    tn_node_step(node, &step);
    tn_status status = info->infer(g->ctx, &step);
    if (status == TN_OK) status = check_sizes(g, &step);
    if (status != TN_OK) return status;
    node->n_dst = step.n_dst;
    status = add_results(g, node, &step);
    if (status != TN_OK) return status;
    g->nodes[g->n_nodes++] = node;
    *out = node;
    return TN_OK;
}

tn_status tn_graph_record(tn_graph *g, int32_t op, int32_t n_src, tn_tensor *const *src, const void *params,
                          tn_node **out)
{
    if (g->status != TN_OK) return g->status;
    return keep(g, record(g, op, n_src, src, params, out));
}

tn_dtype tn_tensor_dtype(const tn_tensor *t)
{
    if (!t) return -1;
    return t->view.dtype;
}

int32_t tn_tensor_n_dims(const tn_tensor *t)
{
    if (!t) return 0;
    return t->view.n_dims;
}

int64_t tn_tensor_dim(const tn_tensor *t, int32_t i)
{
    if (!t) return 1;
    return i >= 0 && i < t->view.n_dims ? t->view.ne[TN_MAX_DIMS - t->view.n_dims + i] : 1;
}

// --- cloning ---------------------------------------------------------------------------------------

static tn_status clone_value(const tn_tensor *t, tn_graph *g)
{
    tn_tensor *c = add_value(g, t->kind, &t->view);
    if (!c) return TN_ERR_MEMORY;
    c->root = g->values[t->root->id];
    c->home = t->home;
    c->out = t->out;
    if (t->name && !(c->name = tn_arena_strdup(&g->arena, t->name))) return TN_ERR_MEMORY;
    if (t->output && !(c->output = tn_arena_strdup(&g->arena, t->output))) return TN_ERR_MEMORY;
    return TN_OK;
}

static tn_status clone_node(const tn_node *n, tn_graph *g)
{
    size_t params_size = tn_op_info_get(n->op)->params_size;
    tn_node *c = tn_arena_alloc(&g->arena, sizeof *c);
    if (!c || grow(g->ctx, &g->nodes, g->n_nodes, &g->nodes_capacity) != TN_OK) return TN_ERR_MEMORY;
    *c = *n;
    if (params_size > 0) {
        c->params = tn_arena_alloc(&g->arena, params_size);
        if (!c->params) return TN_ERR_MEMORY;
        memcpy(c->params, n->params, params_size);
    }
    for (int32_t i = 0; i < n->n_src; i++) c->src[i] = n->src[i] ? g->values[n->src[i]->id] : NULL;
    for (int32_t i = 0; i < n->n_dst; i++) {
        c->dst[i] = g->values[n->dst[i]->id];
        c->dst[i]->producer = c;
    }
    g->nodes[g->n_nodes++] = c;
    return TN_OK;
}

tn_status tn_graph_clone(const tn_graph *graph, tn_graph **out)
{
    tn_graph *g = NULL;
    tn_status status = tn_graph_create(graph->ctx, &g);
    if (status != TN_OK) return status;
    for (int32_t i = 0; i < graph->n_values && status == TN_OK; i++)
        status = clone_value(graph->values[i], g);
    for (int32_t i = 0; i < graph->n_nodes && status == TN_OK; i++) status = clone_node(graph->nodes[i], g);
    if (status != TN_OK)
        tn_graph_destroy(&g);
    else
        *out = g;
    return status;
}
