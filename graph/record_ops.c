// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The recording function of every op.
#include "graph/graph.h"
#include "ops/operands.h"

#include <string.h>

static tn_tensor *fail(tn_graph *g, int32_t id, const char *what, const char *wrong)
{
    if (!g || g->status != TN_OK) return NULL;
    g->status = tn_fail(g->ctx, TN_ERR_ARG, "%s: %s %s", tn_op_name(id), what, wrong);
    tn_context_error(g->ctx, g->error, sizeof g->error);
    return NULL;
}

// Only states are written, and what is read of one is what the last write left.
static const char *wrong_storage(int32_t id, int32_t i, const tn_tensor *t)
{
    const tn_tensor *root = t->root;
    if (tn_op_aliases(tn_op_info_get(id)->flags, i) && root->kind != TN_VALUE_STATE)
        return "is written, but it is no state";
    while (t->producer && tn_node_is_view(t->producer)) t = t->producer->src[0];
    return t == (root->latest ? root->latest : root) || root->kind != TN_VALUE_STATE
               ? NULL
               : "is an earlier version of a state that an op has written since";
}

// A required operand is NULL because an earlier recording call failed, and that failure is kept already; if
// there was no failure, the caller passed NULL by mistake.
static tn_tensor *op(tn_graph *g, int32_t id, int32_t n_src, tn_tensor *const *src, const void *params)
{
    if (!g || g->status != TN_OK) return NULL;
    tn_node *node;
    if (tn_op_info_get(id)->params_size > 0 && !params) return fail(g, id, "params", "is NULL");
    for (int32_t i = 0; i < n_src; i++) {
        const char *wrong = src[i]                              ? wrong_storage(id, i, src[i])
                            : i < tn_op_info_get(id)->n_src_min ? "is NULL"
                                                                : NULL;
        char name[32];
        if (wrong) return fail(g, id, tn_source_name(id, params, i, name, sizeof name), wrong);
    }
    while (n_src > 0 && !src[n_src - 1]) n_src--;
    return tn_graph_record(g, id, n_src, src, params, &node) == TN_OK ? node->dst[0] : NULL;
}

#define SRC(...)                                                                                             \
    (tn_tensor *const[])                                                                                     \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

tn_tensor *tn_op_reshape(tn_graph *g, tn_tensor *x, int32_t n_dims, const int64_t *shape)
{
    tn_reshape_params p = {.n_dims = n_dims};
    if (shape && n_dims >= 1 && n_dims <= TN_MAX_DIMS) memcpy(p.shape, shape, (size_t)n_dims * sizeof *shape);
    return op(g, TN_OP_reshape, 1, SRC(x), &p);
}

tn_tensor *tn_op_permute(tn_graph *g, tn_tensor *x, const int32_t *axes)
{
    tn_permute_params p = {{0}};
    if (x && axes) memcpy(p.axes, axes, (size_t)x->view.n_dims * sizeof *axes);
    return op(g, TN_OP_permute, 1, SRC(x), &p);
}

tn_tensor *tn_op_slice(tn_graph *g, tn_tensor *x, int32_t axis, int64_t start, int64_t length)
{
    return op(g, TN_OP_slice, 1, SRC(x), &(tn_slice_params){axis, start, length});
}

tn_tensor *tn_op_copy(tn_graph *g, tn_tensor *x, tn_dtype dtype)
{
    return op(g, TN_OP_copy, 1, SRC(x), &(tn_copy_params){dtype});
}

tn_tensor *tn_op_concat(tn_graph *g, tn_tensor *a, tn_tensor *b, int32_t axis)
{
    return op(g, TN_OP_concat, 2, SRC(a, b), &(tn_concat_params){axis});
}

tn_tensor *tn_op_unary(tn_graph *g, tn_tensor *x, const tn_unary_params *p)
{
    return op(g, TN_OP_unary, 1, SRC(x), p);
}

tn_tensor *tn_op_binary(tn_graph *g, int32_t kind, tn_tensor *a, tn_tensor *b)
{
    return op(g, TN_OP_binary, 2, SRC(a, b), &(tn_binary_params){kind});
}

tn_tensor *tn_op_add(tn_graph *g, tn_tensor *a, tn_tensor *b)
{
    return tn_op_binary(g, TN_BINARY_ADD, a, b);
}

tn_tensor *tn_op_mul(tn_graph *g, tn_tensor *a, tn_tensor *b)
{
    return tn_op_binary(g, TN_BINARY_MUL, a, b);
}

tn_tensor *tn_op_scale(tn_graph *g, tn_tensor *x, float factor)
{
    return op(g, TN_OP_unary, 1, SRC(x), &(tn_unary_params){TN_UNARY_AFFINE, factor, 0.0f});
}

tn_tensor *tn_op_reduce(tn_graph *g, tn_tensor *x, int32_t kind)
{
    return op(g, TN_OP_reduce, 1, SRC(x), &(tn_reduce_params){kind});
}

tn_tensor *tn_op_softmax(tn_graph *g, tn_tensor *x, tn_tensor *mask, float scale)
{
    return op(g, TN_OP_softmax, 2, SRC(x, mask), &(tn_softmax_params){scale});
}

tn_tensor *tn_op_argmax_logprob(tn_graph *g, tn_tensor *x, tn_tensor **logprob)
{
    tn_tensor *best = op(g, TN_OP_argmax_logprob, 1, SRC(x), NULL);
    if (logprob) *logprob = best ? best->producer->dst[1] : NULL;
    return best;
}

tn_tensor *tn_op_argmax(tn_graph *g, tn_tensor *x)
{
    return op(g, TN_OP_argmax, 1, SRC(x), NULL);
}

tn_tensor *tn_op_top_k(tn_graph *g, tn_tensor *x, tn_tensor *bias, const tn_top_k_params *p)
{
    return op(g, TN_OP_top_k, 2, SRC(x, bias), p);
}

tn_tensor *tn_op_get_rows(tn_graph *g, tn_tensor *table, tn_tensor *ids, float scale)
{
    return op(g, TN_OP_get_rows, 2, SRC(table, ids), &(tn_get_rows_params){scale});
}

tn_tensor *tn_op_rms_norm(tn_graph *g, tn_tensor *x, tn_tensor *w, float eps)
{
    return op(g, TN_OP_rms_norm, 2, SRC(x, w), &(tn_rms_norm_params){eps});
}

tn_tensor *tn_op_layer_norm(tn_graph *g, tn_tensor *x, tn_tensor *w, tn_tensor *b, float eps)
{
    return op(g, TN_OP_layer_norm, 3, SRC(x, w, b), &(tn_layer_norm_params){eps});
}

tn_tensor *tn_op_glu(tn_graph *g, tn_tensor *gate, tn_tensor *up, const tn_glu_params *p)
{
    return op(g, TN_OP_glu, 2, SRC(gate, up), p);
}

tn_tensor *tn_op_rope(tn_graph *g, tn_tensor *x, tn_tensor *pos, tn_tensor *factors, const tn_rope_params *p)
{
    return op(g, TN_OP_rope, 3, SRC(x, pos, factors), p);
}

tn_tensor *tn_op_cache_write(tn_graph *g, tn_tensor *cache, tn_tensor *x, tn_tensor *slots)
{
    return op(g, TN_OP_cache_write, 3, SRC(cache, x, slots), NULL);
}

tn_tensor *tn_op_short_conv(tn_graph *g, const tn_short_conv_args *a, tn_tensor **next)
{
    if (next) *next = NULL;
    if (!a) return fail(g, TN_OP_short_conv, "args", "is NULL");
    tn_tensor *state = op(g, TN_OP_short_conv, 5, SRC(a->state, a->x, a->w, a->q_start, a->slots), NULL);
    if (next) *next = state;
    return state ? state->producer->dst[1] : NULL;
}

tn_tensor *tn_op_delta_rule(tn_graph *g, const tn_delta_rule_args *a, const tn_delta_rule_params *p,
                            tn_tensor **next)
{
    if (next) *next = NULL;
    if (!a) return fail(g, TN_OP_delta_rule, "args", "is NULL");
    tn_tensor *state =
        op(g, TN_OP_delta_rule, 8, SRC(a->state, a->q, a->k, a->v, a->g, a->beta, a->q_start, a->slots), p);
    if (next) *next = state;
    return state ? state->producer->dst[1] : NULL;
}

tn_tensor *tn_op_attention(tn_graph *g, const tn_attention_args *a, const tn_attention_params *p)
{
    if (!a) return fail(g, TN_OP_attention, "args", "is NULL");
    if (a->one_query < TN_QUERIES_ANY || a->one_query > TN_QUERIES_MIXED)
        return fail(g, TN_OP_attention, "one_query", "is none of TN_QUERIES_*");
    tn_tensor *y =
        op(g, TN_OP_attention, 7, SRC(a->q, a->k, a->v, a->q_start, a->kv_len, a->block_table, a->sinks), p);
    if (y) {
        y->producer->one_query = a->one_query == TN_QUERIES_ONE || a->one_query == TN_QUERIES_UNEVEN;
        y->producer->uneven = a->one_query == TN_QUERIES_UNEVEN;
        y->producer->apart = a->one_query == TN_QUERIES_SHORT;
        y->producer->mixed = a->one_query == TN_QUERIES_MIXED;
    }
    return y;
}

tn_tensor *tn_op_matmul(tn_graph *g, tn_tensor *x, tn_tensor *w)
{
    return op(g, TN_OP_matmul, 2, SRC(x, w), NULL);
}

tn_tensor *tn_op_matmul_id(tn_graph *g, tn_tensor *x, tn_tensor *w, tn_tensor *ids)
{
    return op(g, TN_OP_matmul_id, 3, SRC(x, w, ids), NULL);
}

tn_tensor *tn_op_moe_weights(tn_graph *g, tn_tensor *x, tn_tensor *ids, const tn_moe_weights_params *p)
{
    return op(g, TN_OP_moe_weights, 2, SRC(x, ids), p);
}

tn_tensor *tn_op_moe_sum(tn_graph *g, tn_tensor *x, tn_tensor *weights)
{
    return op(g, TN_OP_moe_sum, 2, SRC(x, weights), NULL);
}

tn_tensor *tn_graph_op(tn_graph *g, int32_t id, int32_t n_src, tn_tensor *const *src, const void *params,
                       tn_tensor **results)
{
    if (!g) return NULL;
    for (int32_t i = 0; results && i < TN_MAX_DST; i++) results[i] = NULL;
    // Transfers are planned between devices, not recorded.
    bool known = id >= 0 && id < TN_OP_COUNT && id != TN_OP_transfer;
    const tn_op_info *info = known ? tn_op_info_get(id) : NULL;
    bool bad = !info || n_src < info->n_src_min || n_src > info->n_src_max || (n_src > 0 && !src) ||
               (info->params_size > 0 && !params);
    if (bad && g->status == TN_OK) {
        g->status = tn_fail(g->ctx, TN_ERR_ARG, "%s: %d sources%s", tn_op_name(id), n_src,
                            info && info->params_size > 0 && !params ? " and no parameters" : "");
        tn_context_error(g->ctx, g->error, sizeof g->error);
    }
    if (bad) return NULL;
    tn_tensor *first = op(g, id, n_src, src, params);
    for (int32_t i = 0; results && first && i < first->producer->n_dst; i++)
        results[i] = first->producer->dst[i];
    return first;
}
