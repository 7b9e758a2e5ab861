// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the graphs of applications: any ops on values of any shapes and types, in any order, compiled
// with and without fusion and run on the references and on the best level. Six bytes of the input record one
// op; one that is refused ends the recording with a documented status, and is left out when the recording is
// repeated. Plans describe themselves as text, step by step. What runs on the references without fusion
// gives, bit for bit, what the references give when each value has memory of its own; runs of the same plan
// agree.
#include "graph/graph.h"
#include "tests/fuzz/fuzz.h"
#include "tests/graph/naive.h"

#include <tenon/graph.h>

enum {
    CODE = 6,          // bytes of an op
    OPS_MAX = 28,      // of a graph
    REFUSED_MAX = 4,   // ops that are left out, then the input is done
    VALUES_MAX = 64,   // that ops choose their sources from
    RUN_MAX = 1 << 16, // bytes of all values of a graph that is run
    WORK_MAX = 1 << 20 // multiplications and the like
};

static tn_context *reference, *best;

// The values of a recording that later ops choose from, and how those from outside are filled.
typedef struct recording {
    tn_graph *g;
    tn_tensor *values[VALUES_MAX];
    int32_t n;
    int32_t n_named, n_outputs;
} recording;

static const uint8_t *pattern_of; // of each named value, by its number

static void add(recording *r, tn_tensor *t)
{
    if (t && r->n < VALUES_MAX) r->values[r->n++] = t;
}

// A value by a byte, recent ones more often.
static tn_tensor *value(const recording *r, uint8_t b)
{
    if (r->n == 0) return NULL;
    return r->values[b < 128 ? TN_MAX(r->n - 1 - b % 6, 0) : b % r->n];
}

static tn_tensor *value_or_null(const recording *r, uint8_t b)
{
    return b % 3 == 0 ? NULL : value(r, b);
}

static int64_t extent(uint8_t b)
{
    static const int64_t common[] = {1, 2, 3, 4, 8, 16, 32, 64, 5, 256, 33, 7},
                         rare[] = {0, -1, 1 << 20, INT64_MAX};
    return b < 250 ? common[b % TN_COUNT(common)] : rare[b % TN_COUNT(rare)];
}

static tn_dtype type(uint8_t b)
{
    static const tn_dtype common[] = {TN_TYPE_F32, TN_TYPE_F32, TN_TYPE_I32, TN_TYPE_F32,
                                      TN_TYPE_F16, TN_TYPE_F32, TN_TYPE_I32, TN_TYPE_BF16};
    return b < 192 ? common[b % TN_COUNT(common)] : (tn_dtype)(b - 192) % (TN_TYPE_COUNT + 1);
}

// A value from outside, of shape [c, d, e] or a part of it.
static tn_tensor *record_outside(recording *r, const uint8_t *c)
{
    char name[16];
    int64_t shape[TN_MAX_DIMS + 1] = {extent(c[2]), extent(c[3]), extent(c[4]), extent(c[5]), 1};
    int32_t n_dims = c[0] >= 250 ? c[0] - 250 : 1 + c[0] / 32 % TN_MAX_DIMS, kind = c[1] % 3;
    snprintf(name, sizeof name, "v%d", (int)r->n_named++);
    const int64_t *from = n_dims > TN_MAX_DIMS ? shape : shape + TN_MAX_DIMS - TN_MAX(n_dims, 0);
    if (kind == 0) return tn_graph_input(r->g, name, type(c[1]), n_dims, from);
    return kind == 1 ? tn_graph_weight(r->g, name, type(c[1]), n_dims, from)
                     : tn_graph_state(r->g, name, type(c[1]), n_dims, from);
}

static tn_tensor *record_move(recording *r, const uint8_t *c)
{
    tn_tensor *x = value(r, c[1]);
    int64_t shape[TN_MAX_DIMS] = {extent(c[2]), extent(c[3]), extent(c[4]), extent(c[5])};
    int32_t axes[TN_MAX_DIMS] = {c[2] % 5 - (c[2] > 250), c[3] % 4, c[4] % 4, c[5] % 4};
    switch (c[0] / 16 % 7) {
    case 0:
        return tn_op_reshape(r->g, x, c[2] % 4 + (c[2] < 250), c[3] < 64 ? (int64_t[]){-1, 1, 1, 1} : shape);
    case 1:
        if (c[2] < 200) axes[0] = 1, axes[1] = 0, axes[2] = 2, axes[3] = 3;
        return tn_op_permute(r->g, x, axes);
    case 2:
        return tn_op_slice(r->g, x, axes[0], c[3] % 9 - (c[3] > 250), c[4] % 17 - (c[4] > 250));
    case 3:
        return tn_op_copy(r->g, x, type(c[2]));
    case 4:
        return tn_op_concat(r->g, x, value(r, c[2]), c[3] % 5);
    case 5:
        return tn_op_get_rows(r->g, x, value(r, c[2]), (float)(c[3] % 3));
    default:
        return tn_op_cache_write(r->g, x, value(r, c[2]), value(r, c[3]));
    }
}

static tn_tensor *record_elementwise(recording *r, const uint8_t *c)
{
    tn_tensor *x = value(r, c[1]), *y = value(r, c[2]), *other = NULL;
    int32_t kind = c[3] > 250 ? c[3] - 253 : c[3] % TN_UNARY_COUNT;
    float a = (float)(int8_t)c[4] / 32.0f, b = (float)(int8_t)c[5] / 32.0f;
    switch (c[0] / 16 % 12) {
    case 0:
    case 1:
        return tn_op_unary(r->g, x, &(tn_unary_params){kind, a, b});
    case 2:
        return tn_op_binary(r->g, c[3] % (TN_BINARY_COUNT + 1) - (c[3] > 250), x, y);
    case 3:
        return tn_op_add(r->g, x, y);
    case 4:
        return tn_op_reduce(r->g, x, c[3] % (TN_REDUCE_COUNT + 1));
    case 5:
        return tn_op_softmax(r->g, x, value_or_null(r, c[2]), a);
    case 6:
        return tn_op_rms_norm(r->g, x, value_or_null(r, c[2]), b);
    case 7:
        return tn_op_layer_norm(r->g, x, value_or_null(r, c[2]), value_or_null(r, c[3]), b);
    case 8:
        return tn_op_glu(r->g, x, y, &(tn_glu_params){kind, a, b});
    case 9:
        return tn_op_argmax(r->g, x);
    case 10:
        x = tn_op_argmax_logprob(r->g, x, &other);
        add(r, other);
        return x;
    default:
        return tn_op_scale(r->g, x, a);
    }
}

static tn_tensor *record_product(recording *r, const uint8_t *c)
{
    tn_tensor *x = value(r, c[1]), *y = value(r, c[2]), *z = value(r, c[3]);
    switch (c[0] / 16 % 8) {
    case 0:
    case 1:
        return tn_op_matmul(r->g, x, y);
    case 2:
        return tn_op_matmul_id(r->g, x, y, z);
    case 3:
        return tn_op_top_k(r->g, x, value_or_null(r, c[2]),
                           &(tn_top_k_params){c[3] % 9 - 1, c[4] % 4, c[5] % 4 - (c[5] > 250)});
    case 4:
        return tn_op_moe_weights(r->g, x, y, &(tn_moe_weights_params){c[3] % 5, c[4] % 2, (float)(c[5] % 3)});
    case 5:
        return tn_op_moe_sum(r->g, x, y);
    default:
        return tn_op_rope(r->g, x, y, value_or_null(r, c[3]),
                          &(tn_rope_params){.mode = c[4] % 3,
                                            .n_rot = c[5] % 34,
                                            .base = 10000.0f,
                                            .yarn_ext = (float)(c[4] / 3 % 2),
                                            .yarn_high = 4.0f});
    }
}

// Ops with many sources: those of a model or any, by number.
static tn_tensor *record_other(recording *r, const uint8_t *c)
{
    tn_tensor *next = NULL, *y = NULL, *results[3] = {0}, *src[12];
    for (int32_t i = 0; i < 12; i++) src[i] = value(r, (uint8_t)(c[1 + i % 5] + 5 * (i / 5)));
    switch (c[0] / 16 % 5) {
    case 0:
        y = tn_op_short_conv(r->g, &(tn_short_conv_args){src[0], src[1], src[2], src[3], src[4]}, &next);
        add(r, next);
        return y;
    case 1:
        y = tn_op_delta_rule(
            r->g, &(tn_delta_rule_args){src[0], src[1], src[2], src[3], src[4], src[5], src[6], src[7]},
            &(tn_delta_rule_params){0}, &next);
        add(r, next);
        return y;
    case 2:
    case 3:
        return tn_op_attention(r->g,
                               &(tn_attention_args){.q = src[0],
                                                    .k = src[1],
                                                    .v = src[2],
                                                    .q_start = src[3],
                                                    .kv_len = src[4],
                                                    .block_table = src[5],
                                                    .sinks = c[5] % 4 ? NULL : src[6],
                                                    .one_query = c[4] % 6 == 5 ? c[4] / 6 % 7 - 1 : 0},
                               &(tn_attention_params){.scale = 0.125f,
                                                      .causal = c[3] % 2,
                                                      .window = c[3] / 2 % 4,
                                                      .chunk = c[3] / 8 % 3,
                                                      .softcap = (float)(c[3] / 32 % 3),
                                                      .max_bias = (float)(c[3] / 128)});
    default:
        y = tn_graph_op(r->g, c[2] % (TN_OP_COUNT + 2) - 1, c[3] % 13, src, NULL, results);
        add(r, results[1]);
        add(r, results[2]);
        return y;
    }
}

// One op; whether it was recorded.
static bool record(recording *r, const uint8_t *c)
{
    char name[16];
    tn_tensor *t = NULL;
    switch (r->n < 2 ? 0 : c[0] % 16) {
    case 0:
    case 1:
    case 2:
        t = record_outside(r, c);
        break;
    case 3:
    case 4:
    case 5:
        t = record_move(r, c);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        t = record_elementwise(r, c);
        break;
    case 10:
    case 11:
    case 12:
        t = record_product(r, c);
        break;
    case 13:
        t = record_other(r, c);
        break;
    case 14:
        t = tn_graph_name(r->g, value(r, c[1]), c[2] % 8 ? "named" : NULL);
        break;
    default:
        snprintf(name, sizeof name, "o%d", (int)(r->n_outputs++ % (c[2] < 250 ? 1000 : 2)));
        tn_graph_output(r->g, name, value(r, c[1]));
        break;
    }
    add(r, t);
    return tn_graph_status(r->g) == TN_OK;
}

static void must_be_documented(tn_status status, const char *call)
{
    if (status == TN_OK || status == TN_ERR_ARG || status == TN_ERR_SHAPE || status == TN_ERR_TYPE ||
        status == TN_ERR_UNSUPPORTED || status == TN_ERR_STATE)
        return;
    char text[300];
    tn_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", call, tn_status_text(status), text);
    abort();
}

// Records the ops; those that are refused are left out, in one recording after another. NULL: too many were.
static tn_graph *record_all(tn_context *ctx, const uint8_t *codes, int32_t n)
{
    bool left_out[OPS_MAX] = {false};
    for (int32_t refused = 0; refused <= REFUSED_MAX; refused++) {
        recording r = {0};
        fuzz_must(tn_graph_create(ctx, &r.g) == TN_OK);
        int32_t i = 0;
        while (i < n && (left_out[i] || record(&r, codes + i * CODE))) i++;
        if (i == n && r.n > 0 && r.n_outputs == 0) tn_graph_output(r.g, "last", r.values[r.n - 1]);
        if (tn_graph_status(r.g) == TN_OK) return r.g;
        must_be_documented(tn_graph_status(r.g), "recording");
        tn_plan *plan = NULL;
        fuzz_must(tn_plan_create(r.g, NULL, &plan) == tn_graph_status(r.g) && plan == NULL);
        tn_graph_destroy(&r.g);
        if (i == n) return NULL;
        left_out[i] = true;
    }
    return NULL;
}

// --- running ---------------------------------------------------------------------------------------

// Numbers from outside, by name: small floats; integers that count, lengths, small ones, or any.
static void fill(const tn_tensor *t, uint8_t *data, size_t size)
{
    int32_t number = atoi(t->name + 1);
    uint64_t state = fuzz_seed((uint64_t)number + 1);
    uint8_t pattern = pattern_of[number % CODE];
    if (t->view.dtype == TN_TYPE_F32 || t->view.dtype == TN_TYPE_I32) {
        for (size_t i = 0; i + 4 <= size; i += 4) {
            uint64_t random = fuzz_random(&state);
            int32_t count = (int32_t)(i / 4), ints[] = {count,
                                                        1,
                                                        (int32_t)(random % 3),
                                                        count * (pattern / 8 % 4),
                                                        0,
                                                        (int32_t)(random >> 32),
                                                        -1,
                                                        count + 1};
            float x = (float)(int32_t)random / 2147483648.0f;
            memcpy(data + i,
                   t->view.dtype == TN_TYPE_F32 ? (void *)&x : (void *)&ints[pattern % TN_COUNT(ints)], 4);
        }
        return;
    }
    for (size_t i = 0; i < size; i++) data[i] = (uint8_t)fuzz_random(&state) & (i % 2 ? 0x3b : 0xff);
}

// The graph is small enough to be run. It is the one that was recorded: the passes change the nodes, so that
// the same ops could be run without fusion only.
static bool is_small(const tn_graph *g)
{
    size_t sum = 0;
    for (int32_t i = 0; i < g->n_values; i++) {
        const tn_tensor *t = g->values[i];
        size_t size = tn_tensor_size(t);
        if (size > RUN_MAX) return false;
        sum += size;
    }
    double work = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        double n = 1;
        for (int32_t k = 0; k < g->nodes[i]->n_src; k++)
            if (g->nodes[i]->src[k]) n *= 1 + (double)tn_tensor_size(g->nodes[i]->src[k]) / 4096;
        work += n * 4096;
    }
    return sum <= RUN_MAX && work <= WORK_MAX;
}

// What the graph gives if each storage has memory of its own and every op is its reference, in the order of
// recording. `memory` has one pointer for each value.
static void run_naively(const tn_graph *g, void **memory)
{
    for (int32_t i = 0; i < g->n_values; i++) {
        const tn_tensor *t = g->values[i];
        if (t->root != t) continue;
        fuzz_must((memory[i] = calloc(1, tn_tensor_size(t) + 1)) != NULL);
        if (t->kind != TN_VALUE_NODE) fill(t, memory[i], tn_tensor_size(t));
    }
    run_references(g, memory);
}

static void check_result(tn_runner *run, const tn_graph *g, const tn_tensor *t, void *const *memory,
                         const char *name)
{
    size_t size = tn_tensor_size(t);
    uint8_t *first = malloc(size + 1), *wrong = malloc(size + 1);
    TN_UNUSED(g);
    fuzz_must(first != NULL && wrong != NULL);
    fuzz_must(tn_runner_read(run, name, wrong, size + 1) == TN_ERR_ARG);
    fuzz_must(tn_runner_read(run, name, first, size) == TN_OK);
    if (memory) fuzz_must(memcmp(first, (char *)memory[t->root->id] + t->view.offset, size) == 0);
    free(first);
    free(wrong);
}

// Runs a plan; the status of its run.
static tn_status run_plan(tn_plan *plan, bool exact)
{
    const tn_graph *g = plan->graph;
    tn_runner *run = NULL;
    tn_binding *bound = calloc((size_t)plan->n_bound + 1, sizeof *bound);
    void **memory = calloc((size_t)g->n_values + 1, sizeof *memory);
    fuzz_must(bound != NULL && memory != NULL);
    for (int32_t i = 0; i < plan->n_bound; i++) {
        const tn_tensor *t = g->values[plan->bound[i].value];
        size_t size = tn_tensor_size(t);
        uint8_t *data = malloc(size ? size : 1);
        fuzz_must(data != NULL);
        fill(t, data, size);
        bound[i] = (tn_binding){t->name, data, size};
    }
    tn_status status = tn_runner_create(plan, bound, plan->n_bound, &run);
    must_be_documented(status, "tn_runner_create");
    for (int32_t i = 0; i < plan->n_inputs && status == TN_OK; i++) {
        const tn_tensor *t = g->values[plan->inputs[i].value];
        size_t size = tn_tensor_size(t);
        uint8_t *data = malloc(size ? size : 1);
        fuzz_must(data != NULL);
        fill(t, data, size);
        fuzz_must(tn_runner_write(run, t->name, data, size + 1) == TN_ERR_ARG);
        fuzz_must(tn_runner_write(run, t->name, data, size) == TN_OK);
        free(data);
    }
    if (status == TN_OK) {
        status = tn_runner_run(run);
        must_be_documented(status, "tn_runner_run");
    }
    if (status == TN_OK && exact) run_naively(g, memory);
    for (int32_t i = 0; i < plan->n_outputs && status == TN_OK; i++)
        check_result(run, g, g->values[plan->outputs[i].value], exact ? memory : NULL, plan->outputs[i].name);
    tn_runner_destroy(&run);
    for (int32_t i = 0; i < plan->n_bound; i++) free((void *)(uintptr_t)bound[i].data);
    for (int32_t i = 0; i < g->n_values; i++) free(memory[i]);
    free(bound);
    free(memory);
    return status;
}

static void describe(tn_context *ctx, const tn_plan *plan, uint8_t how)
{
    char *text = NULL, shapes[80];
    tn_plan_info info = {.struct_size = sizeof info};
    tn_plan_step_info step = {.struct_size = sizeof step};
    fuzz_must(tn_plan_info_get(plan, &info) == TN_OK && info.n_steps >= 0);
    int32_t i = 0;
    while (tn_plan_step_get(plan, i, how, &step) == 1) {
        fuzz_must(tn_plan_step_shapes(plan, i, shapes, how % sizeof shapes) > 0 && step.ops >= 0);
        i++;
    }
    fuzz_must(i == info.n_steps && tn_plan_step_shapes(plan, i, shapes, sizeof shapes) == 0);
    if (how % 4) return;
    tn_status status = tn_plan_dump(plan, how / 4 % 6 - (how > 250), &text);
    must_be_documented(status, "tn_plan_dump");
    tn_text_free(ctx, text);
}

// Compiles and runs the ops in one way. TN_ERR_STATE: they are not run.
static tn_status compile(tn_context *ctx, const uint8_t *data, const uint8_t *codes, int32_t n, bool fusion)
{
    tn_graph *g = record_all(ctx, codes, n);
    tn_plan *plan = NULL;
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.fusion = fusion;
    if (data[0] % 16 == 1) cfg.precision = data[1] % 9 - (data[1] > 250);
    if (!g) return TN_ERR_STATE;
    tn_status status = tn_plan_create(g, &cfg, &plan);
    must_be_documented(status, "tn_plan_create");
    fuzz_must((status == TN_OK) == (plan != NULL));
    if (plan) {
        describe(ctx, plan, data[1]);
        bool exact = !fusion && ctx == reference && cfg.precision == 0;
        status = is_small(g) ? run_plan(plan, exact) : TN_ERR_STATE;
    }
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!reference) reference = fuzz_context("reference"), best = fuzz_context(NULL);
    if (size < 2 * CODE) return 0;
    uint8_t *copy = fuzz_copy(data, size);
    int32_t n = (int32_t)TN_MIN((size - CODE) / CODE, (size_t)OPS_MAX);
    fuzz_cost costs[] = {fuzz_begin(reference), fuzz_begin(best)};
    pattern_of = copy;
    tn_status status = compile(reference, copy, copy + CODE, n, false);
    // The same integers are refused, whatever is fused.
    tn_status fused = compile(best, copy, copy + CODE, n, true);
    if (copy[0] % 16 != 1) fuzz_must(status == fused);
    for (size_t i = 0; i < TN_COUNT(costs); i++) fuzz_end(&costs[i], size);
    free(copy);
    return 0;
}

// Values from outside, then ops.
static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    size_t n = CODE * (3 + fuzz_random(state) % OPS_MAX);
    for (size_t i = 0; i < n && i < max; i++) out[i] = (uint8_t)fuzz_random(state);
    for (size_t i = 1; i < 6 && i * CODE < n; i++) {
        uint8_t *c = out + i * CODE;
        c[0] = (uint8_t)(fuzz_random(state) % 6 * 32 + (fuzz_random(state) % 2));
        c[4] = c[5] = fuzz_random(state) % 2 ? 7 : c[5] % 250;
    }
    return TN_MIN(n, max);
}

#include "tests/fuzz/fuzz_main.h"
