// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuse: a table of patterns, each tried at every node with the op that ends it. A pattern that matches
// fires if its parts are wanted on one device and that device accepts the fused op; otherwise the reason is
// kept, and the plan prints it.
#include "graph/fuse.h"

#include <string.h>

static const struct {
    const char *name;
    int32_t at; // op of the node where it is tried
    tn_fuse_match_fn match;
} patterns[] = {
    {"glu of two matmuls", TN_OP_glu, tn_fuse_match_glu},
    {"routing of experts", TN_OP_moe_weights, tn_fuse_match_route},
    {"router + routing of experts", TN_OP_moe_route, tn_fuse_match_router_matmul},
    {"rms_norm + router", TN_OP_moe_route, tn_fuse_match_router_norm},
    {"sum of experts + shared expert + residual", TN_OP_moe_sum, tn_fuse_match_combine},
    {"matmuls of one input", TN_OP_matmul, tn_fuse_match_multi},
    {"rms_norm + matmuls", TN_OP_rms_norm, tn_fuse_match_norm_matmul},
    {"residual add + rms_norm", TN_OP_rms_norm, tn_fuse_match_add_rms_norm},
    {"rms_norm + rope", TN_OP_rope, tn_fuse_match_norm_rope},
    {"rope + cache writes", TN_OP_attention, tn_fuse_match_rope_cache},
    {"matmul + bias + activation + residual", TN_OP_matmul, tn_fuse_match_linear},
};

static bool wanted_together(const tn_fusion *f)
{
    for (int32_t i = 1; i < f->n_replaced; i++)
        if (f->replaced[i]->wanted != f->replaced[0]->wanted) return false;
    return true;
}

// The precision of the matmul among the parts; all parts have the same.
static int32_t precision_of(const tn_fusion *f)
{
    int32_t precision = TN_PRECISION_auto;
    for (int32_t i = 0; i < f->n_replaced; i++)
        if (f->replaced[i]->precision != TN_PRECISION_auto) precision = f->replaced[i]->precision;
    return precision;
}

static tn_status build(tn_pass_state *s, const tn_fusion *f, tn_node **out)
{
    tn_node *node = tn_arena_alloc(&s->graph->arena, sizeof *node);
    size_t size = tn_op_info_get(f->op)->params_size;
    void *params = tn_arena_alloc(&s->graph->arena, size);
    if (!node || !params) return TN_ERR_MEMORY;
    memcpy(params, &f->params, size);
    *node = (tn_node){.id = f->replaced[0]->id,
                      .op = f->op,
                      .n_src = f->n_src,
                      .n_dst = f->n_dst,
                      .params = params,
                      .wanted = f->replaced[0]->wanted,
                      .device = f->replaced[0]->wanted,
                      .precision = precision_of(f)};
    for (int32_t i = 0; i < f->n_src; i++) node->src[i] = f->src[i];
    for (int32_t i = 0; i < f->n_dst; i++) node->dst[i] = f->dst[i];
    *out = node;
    return TN_OK;
}

// Position of the fused node in the list, -1 if there is none. It is the place of the first replaced node if
// all sources are computed before it, else that of the last one if no result is read before it. A source that
// a replaced node computes has no such place: x (x w^T)^T has two matmuls of the same x, but the second needs
// the first.
static int32_t place_of(const tn_fuse_matcher *m, const tn_fusion *f)
{
    const tn_node *last_replaced = f->replaced[0];
    int32_t first = m->positions[f->replaced[0]->id], last = first, made = -1;
    for (int32_t i = 1; i < f->n_replaced; i++) {
        int32_t at = m->positions[f->replaced[i]->id];
        first = TN_MIN(first, at);
        if (at > last) last = at, last_replaced = f->replaced[i];
    }
    for (int32_t i = 0; i < f->n_src; i++) {
        const tn_node *producer = f->src[i] ? f->src[i]->producer : NULL;
        if (!producer) continue;
        for (int32_t k = 0; k < f->n_replaced; k++)
            if (producer == f->replaced[k]) return -1;
        made = TN_MAX(made, m->positions[producer->id]);
    }
    if (made < first) return first;
    for (int32_t i = 0; i < f->n_dst; i++)
        if (f->dst[i]->producer != last_replaced) return -1;
    for (int32_t i = 0; i < f->n_src; i++) // later its next version may be there
        if (f->src[i] && f->src[i]->root->kind == TN_VALUE_STATE) return -1;
    return made < last ? last : -1;
}

static void replace(tn_graph *g, const tn_fusion *f, tn_node *fused, int32_t at, int32_t *positions)
{
    fused->id = g->nodes[at]->id;
    for (int32_t i = 0; i < f->n_replaced; i++) positions[f->replaced[i]->id] = -1;
    for (int32_t i = 0; i < f->n_dst; i++) {
        f->dst[i]->producer = fused;
        f->dst[i]->out = i;
    }
    g->nodes[at] = fused;
    positions[fused->id] = at;
}

static tn_status try_pattern(tn_pass_state *s, tn_fuse_matcher *m, int32_t *positions, size_t p, int32_t i)
{
    tn_node *n = s->graph->nodes[i], *fused = NULL;
    tn_fusion f;
    const char *reason = patterns[p].match(m, n, &f);
    if (reason && !*reason) return TN_OK;
    if (!reason && !wanted_together(&f)) reason = "the parts belong to different devices";
    int32_t at = reason ? -1 : place_of(m, &f);
    if (!reason && at < 0) reason = "a source is made too late";
    if (!reason) {
        tn_status status = build(s, &f, &fused);
        if (status != TN_OK) return status;
        if (!tn_fuse_device_accepts(s, fused)) reason = "the device has no kernel for the fused op";
    }
    tn_status status = tn_pass_note(s, patterns[p].name, n->dst[0]->name, reason);
    if (status != TN_OK || reason) return status;
    replace(s->graph, &f, fused, at, positions);
    s->n_fused++;
    return TN_OK;
}

// Drops replaced nodes from the list.
static void compact(tn_graph *g, int32_t *positions)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (positions[g->nodes[i]->id] == i) g->nodes[kept++] = g->nodes[i];
    g->n_nodes = kept;
    for (int32_t i = 0; i < kept; i++) positions[g->nodes[i]->id] = i;
}

tn_status tn_pass_fuse(tn_pass_state *s)
{
    tn_graph *g = s->graph;
    if (!s->fusion) return TN_OK;
    int32_t n_ids = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) n_ids = TN_MAX(n_ids, g->nodes[i]->id + 1);
    int32_t *positions = tn_calloc(s->ctx, (size_t)n_ids + 1, sizeof *positions);
    int32_t *n_uses = tn_calloc(s->ctx, (size_t)g->n_values + 1, sizeof *n_uses);
    tn_status status = positions && n_uses ? TN_OK : TN_ERR_MEMORY;
    for (size_t p = 0; p < TN_COUNT(patterns) && status == TN_OK; p++) {
        memset(positions, 0xff, (size_t)n_ids * sizeof *positions);
        memset(n_uses, 0, (size_t)g->n_values * sizeof *n_uses);
        for (int32_t i = 0; i < g->n_nodes; i++) {
            positions[g->nodes[i]->id] = i;
            for (int32_t k = 0; k < g->nodes[i]->n_src; k++)
                if (g->nodes[i]->src[k]) n_uses[g->nodes[i]->src[k]->id]++;
        }
        tn_fuse_matcher m = {s, n_uses, positions};
        for (int32_t i = 0; i < g->n_nodes && status == TN_OK; i++) {
            const tn_node *n = g->nodes[i];
            if (positions[n->id] == i && n->op == patterns[p].at)
                status = try_pattern(s, &m, positions, p, i);
        }
        compact(g, positions);
    }
    tn_free(s->ctx, n_uses);
    tn_free(s->ctx, positions);
    return status;
}
