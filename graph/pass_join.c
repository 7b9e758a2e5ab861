// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Join: a step and a later one that reads its result share work where the device's kernels can (TN_JOIN_* of
// ops/step.h). This pass decides what the data allow, from who reads and writes which value in the order of
// the schedule; what the kernels support the backend says (core/backend.h, joins). The memory pass then keeps
// alive what joined steps still need. Why a pattern fired or did not is kept for the plan.
#include "graph/graph.h"
#include "ops/product.h"

#include <string.h>

// By value that has storage: which steps use it. Positions are indices into the nodes, -1: none.
typedef struct storage_use {
    int32_t first_writer;
    int32_t n_readers, last_reader; // steps, each counted once
    bool is_output;
} storage_use;

typedef struct joiner {
    tn_pass_state *s;
    storage_use *uses;
    int32_t *previous; // by position: that of the step before it, -1: none
    int32_t *producer; // by value: position of the node that makes it, -1: none
} joiner;

// The maker and the reader of a pattern, by op; a reader of ANY_PRODUCT is any matrix product.
enum { ANY_PRODUCT = -1 };
static const struct {
    const char *name;
    uint32_t kind;
    int32_t maker, reader;
} patterns[] = {
    {"rope_cache in attention", TN_JOIN_FOLD, TN_OP_rope_cache, TN_OP_attention},
    {"experts in their sum", TN_JOIN_FOLD, TN_OP_matmul_id, TN_OP_moe_sum},
    {"experts in their sum", TN_JOIN_FOLD, TN_OP_matmul_id, TN_OP_moe_combine},
    {"route in experts", TN_JOIN_DEFER, TN_OP_moe_route, TN_OP_matmul_id_glu},
    {"packed 16-bit rows", TN_JOIN_PACK, TN_OP_matmul_glu, ANY_PRODUCT},
    {"packed 16-bit rows", TN_JOIN_PACK, TN_OP_matmul_id_glu, TN_OP_matmul_id},
    {"packed 16-bit queries", TN_JOIN_PACK, TN_OP_rope_cache, TN_OP_attention},
    {"packed 16-bit rows", TN_JOIN_PACK, TN_OP_attention, ANY_PRODUCT},
};
static const char staged_name[] = "staged activations";

static bool is_product(const tn_node *n)
{
    return (tn_op_info_get(n->op)->flags & TN_OP_PRODUCT) != 0;
}

// --- who uses what -----------------------------------------------------------------------------------

static void note_reads(joiner *j, const tn_node *n, int32_t i)
{
    for (int32_t k = 0; k < n->n_src; k++) {
        if (!n->src[k]) continue;
        storage_use *u = &j->uses[n->src[k]->root->id];
        u->n_readers += u->last_reader != i;
        u->last_reader = i;
    }
}

static void find_uses(joiner *j)
{
    const tn_graph *g = j->s->graph;
    for (int32_t v = 0; v < g->n_values; v++) {
        j->uses[v] = (storage_use){.first_writer = -1, .last_reader = -1};
        j->producer[v] = -1;
    }
    for (int32_t v = 0; v < g->n_values; v++)
        if (g->values[v]->output) j->uses[g->values[v]->root->id].is_output = true;
    for (int32_t i = 0, before = -1; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        j->previous[i] = before;
        for (int32_t k = 0; k < n->n_dst; k++) j->producer[n->dst[k]->id] = i;
        if (tn_node_is_view(n)) continue;
        note_reads(j, n, i);
        for (int32_t k = 0; k < n->n_dst; k++) {
            storage_use *u = &j->uses[n->dst[k]->root->id];
            if (u->first_writer < 0) u->first_writer = i;
        }
        before = i;
    }
}

// Position of the step that made the value, seen through views; -1: it comes from outside.
static int32_t maker_of(const joiner *j, const tn_tensor *t)
{
    while (t->producer && tn_node_is_view(t->producer)) t = t->producer->src[0];
    return j->producer[t->id];
}

static tn_step_pair pair_of(const joiner *j, int32_t m, int32_t r, tn_step steps[2])
{
    const tn_node *maker = j->s->graph->nodes[m], *reader = j->s->graph->nodes[r];
    tn_node_step(maker, &steps[0]);
    tn_node_step(reader, &steps[1]);
    tn_step_pair pair = {.maker = &steps[0], .reader = &steps[1], .adjacent = j->previous[r] == m};
    for (int32_t k = 0; k < TN_MAX_SRC; k++) {
        const tn_tensor *x = k < reader->n_src ? reader->src[k] : NULL;
        pair.from[k] = pair.shared[k] = -1;
        for (int32_t d = 0; d < maker->n_dst && x; d++)
            if (maker->dst[d]->root == x->root && maker->dst[d]->view.offset == x->view.offset)
                pair.from[k] = d;
        for (int32_t d = 0; d < maker->n_src && x; d++)
            if (maker->src[d] == x) pair.shared[k] = d;
    }
    return pair;
}

static bool device_joins(const joiner *j, int32_t maker, int32_t reader, uint32_t kind)
{
    tn_step steps[2];
    tn_step_pair pair = pair_of(j, maker, reader, steps);
    const tn_device *d = j->s->devices[j->s->graph->nodes[reader]->device];
    return (d->backend->joins(d, &pair) & kind) != 0;
}

// --- steps next to each other ------------------------------------------------------------------------

// Why somebody would miss the results of the maker, of which the reader is the step at `at`; NULL: nobody
// would. States stay what they are.
static const char *who_misses(const joiner *j, const tn_node *maker, const tn_node *reader, int32_t at)
{
    for (int32_t d = 0; d < maker->n_dst; d++) {
        const tn_tensor *root = maker->dst[d]->root;
        if (root->kind == TN_VALUE_STATE) continue;
        const storage_use *u = &j->uses[root->id];
        if (u->is_output) return "its result is one of the plan";
        if (u->n_readers > 1 || (u->n_readers == 1 && u->last_reader != at))
            return "another step reads its result too";
        int32_t n = 0;
        for (int32_t k = 0; k < reader->n_src; k++) n += reader->src[k] && reader->src[k]->root == root;
        if (n > 1) return "its result is read in two ways";
    }
    return NULL;
}

// Position of the step with the op `op` that makes a source of the reader; -1: none.
static int32_t find_maker(const joiner *j, const tn_node *reader, int32_t op)
{
    for (int32_t k = 0; k < reader->n_src; k++) {
        int32_t m = reader->src[k] ? maker_of(j, reader->src[k]) : -1;
        if (m >= 0 && j->s->graph->nodes[m]->op == op) return m;
    }
    return -1;
}

static tn_status try_next(joiner *j, size_t p, int32_t i)
{
    tn_node *reader = j->s->graph->nodes[i];
    bool matches = patterns[p].reader == ANY_PRODUCT ? is_product(reader) : reader->op == patterns[p].reader;
    int32_t m = matches ? find_maker(j, reader, patterns[p].maker) : -1;
    if (m < 0) return TN_OK;
    tn_node *maker = j->s->graph->nodes[m];
    bool deferred = patterns[p].kind == TN_JOIN_DEFER; // the results are written all the same
    const char *reason = NULL;
    if (j->previous[i] != m || maker->device != reader->device)
        reason = "another step comes between";
    else if (maker->join_previous & TN_JOIN_FOLD)
        reason = "it does the step before it already";
    else if (reader->join_previous & TN_JOIN_FOLD)
        reason = "the reader does that step already";
    else if (!deferred)
        reason = who_misses(j, maker, reader, i);
    if (!reason && !device_joins(j, m, i, patterns[p].kind)) reason = "the device has no kernels for it";
    if (!reason) {
        maker->join_next |= patterns[p].kind;
        reader->join_previous |= patterns[p].kind;
        j->s->n_joined++;
    }
    return tn_pass_note(j->s, patterns[p].name, reader->dst[0]->name, reason);
}

// --- staged activations ------------------------------------------------------------------------------

static tn_tensor *norm_of(const tn_node *product)
{
    int32_t at = tn_product_sources_get(product->op, product->params).norm;
    return at >= 0 ? product->src[at] : NULL;
}

static bool same_bytes(const tn_tensor *a, const tn_tensor *b)
{
    return a == b || (a && b && a->root == b->root && a->view.offset == b->view.offset);
}

// Values that the maker stages for its first reader.
static tn_status add_staged(joiner *j, tn_node *maker, tn_tensor *norm)
{
    const tn_device *d = j->s->devices[maker->device];
    tn_step step;
    tn_node_step(maker, &step);
    maker->staged_y = tn_graph_add_staged(j->s->graph, maker, d->backend->staged_size(d, &step));
    maker->staged_norm = norm;
    return maker->staged_y ? TN_OK : TN_ERR_MEMORY;
}

static tn_status try_stage(joiner *j, int32_t i)
{
    tn_node *reader = j->s->graph->nodes[i];
    int32_t m = is_product(reader) ? maker_of(j, reader->src[0]) : -1;
    // A transfer is no work of a backend.
    if (m < 0 || j->s->graph->nodes[m]->device != reader->device ||
        j->s->graph->nodes[m]->op == TN_OP_transfer)
        return TN_OK;
    tn_node *maker = j->s->graph->nodes[m];
    tn_tensor *norm = norm_of(reader);
    const char *reason = NULL;
    if (reader->src[0]->root->kind != TN_VALUE_NODE)
        reason = "x is a state";
    else if (norm && norm->root->kind != TN_VALUE_WEIGHT)
        reason = "the weight of the norm is computed";
    else if (reader->join_previous & TN_JOIN_PACK)
        reason = "x comes as 16-bit rows";
    else if (!device_joins(j, m, i, TN_JOIN_STAGE))
        reason = "the device has no kernels for it";
    else if (maker->staged_y && !same_bytes(maker->staged_norm, norm))
        reason = "another reader has another norm";
    tn_status status = reason || maker->staged_y ? TN_OK : add_staged(j, maker, norm);
    if (status != TN_OK) return status;
    if (!reason) {
        reader->staged_x = maker->staged_y;
        j->s->n_joined++;
    }
    return tn_pass_note(j->s, staged_name, reader->dst[0]->name, reason);
}

// --- what can be read early ----------------------------------------------------------------------------

static bool written_before(const joiner *j, const tn_tensor *t, int32_t i)
{
    int32_t first = j->uses[t->root->id].first_writer;
    return first >= 0 && first < i;
}

static bool integers_given(const joiner *j, int32_t i)
{
    const tn_node *n = j->s->graph->nodes[i];
    for (int32_t k = 0; k < n->n_src; k++)
        if (n->src[k] && n->src[k]->view.dtype == TN_TYPE_I32 && written_before(j, n->src[k], i))
            return false;
    return true;
}

static bool states_given(const joiner *j, int32_t i)
{
    const tn_node *n = j->s->graph->nodes[i];
    for (int32_t k = 0; k < n->n_dst; k++)
        if (n->dst[k]->root->kind == TN_VALUE_STATE && written_before(j, n->dst[k], i)) return false;
    return true;
}

static void set_facts(joiner *j, int32_t i)
{
    tn_node *n = j->s->graph->nodes[i];
    int32_t before = j->previous[i];
    n->early = integers_given(j, i);
    if (n->join_previous & TN_JOIN_FOLD)
        n->early = n->early && integers_given(j, before) && states_given(j, before);
    tn_product_sources p = tn_product_sources_get(n->op, n->params);
    for (int32_t k = 0; k < p.n_weights; k++)
        n->computed_weights = n->computed_weights || written_before(j, n->src[p.w[k]], i);
}

static tn_status join_all(joiner *j)
{
    const tn_graph *g = j->s->graph;
    tn_status status = TN_OK;
    int32_t n_nodes = g->n_nodes;
    find_uses(j);
    for (int32_t i = 0; i < n_nodes && status == TN_OK; i++) {
        const tn_node *n = g->nodes[i];
        if (tn_node_is_view(n) || n->op == TN_OP_transfer) continue;
        if (j->s->devices[n->device]->backend->joins) {
            for (size_t p = 0; p < TN_COUNT(patterns) && status == TN_OK; p++) status = try_next(j, p, i);
            if (status == TN_OK) status = try_stage(j, i);
        }
        set_facts(j, i);
    }
    return status;
}

tn_status tn_pass_join(tn_pass_state *s)
{
    size_t n_nodes = (size_t)s->graph->n_nodes + 1, n_values = (size_t)s->graph->n_values + 1;
    joiner j = {.s = s,
                .uses = tn_calloc(s->ctx, n_values, sizeof *j.uses),
                .previous = tn_calloc(s->ctx, n_nodes, sizeof *j.previous),
                .producer = tn_calloc(s->ctx, n_values, sizeof *j.producer)};
    tn_status status = j.uses && j.previous && j.producer ? join_all(&j) : TN_ERR_MEMORY;
    tn_free(s->ctx, j.producer);
    tn_free(s->ctx, j.previous);
    tn_free(s->ctx, j.uses);
    return status;
}
