// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiling and running a small graph in one call, and contexts for tests of graphs.
#ifndef TN_TESTS_GRAPH_RUN_GRAPH_H
#define TN_TESTS_GRAPH_RUN_GRAPH_H

#include "graph/graph.h"
#include "ops/quant.h"
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

extern const tn_backend tn_backend_cpu;

// A context on a CPU level ("reference", NULL: the best) with some threads.
static inline tn_context *graph_context(const char *isa, int32_t n_threads)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.isa = isa;
    cfg.n_threads = n_threads;
    tn_context *ctx = NULL;
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    return ctx;
}

// The last failure's message contains `part`.
static inline bool message_has(tn_context *ctx, const char *part)
{
    char text[1024];
    tn_context_error(ctx, text, sizeof text);
    if (!strstr(text, part)) printf("    message: %s\n", text);
    return strstr(text, part) != NULL;
}

static inline tn_graph *new_graph(tn_context *ctx)
{
    tn_graph *g = NULL;
    if (tn_graph_create(ctx, &g) != TN_OK) abort();
    return g;
}

// Values of a graph that the test calls g.
// clang-format off
#define SHAPE(...)        \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__}
#define INPUT(name, ...)  tn_graph_input(g, name, TN_TYPE_F32, SHAPE(__VA_ARGS__))
#define IDS(name, ...)    tn_graph_input(g, name, TN_TYPE_I32, SHAPE(__VA_ARGS__))
#define WEIGHT(name, ...) tn_graph_weight(g, name, TN_TYPE_F32, SHAPE(__VA_ARGS__))
#define NAMED(name, ...)  tn_graph_name(g, __VA_ARGS__, name)
#define OUTPUT(name, ...) tn_graph_output(g, name, __VA_ARGS__)
// clang-format on

typedef struct run_args {
    const tn_plan_config *plan; // NULL: defaults
    const tn_binding *bound;    // weights and states
    int32_t n_bound;
    const tn_binding *inputs;
    int32_t n_inputs;
} run_args;

// Runs an existing plan once and reads `n_out` results into the memory of `out`.
static inline tn_status run_plan(tn_plan *plan, const run_args *a, const tn_binding *out, int32_t n_out)
{
    tn_runner *r = NULL;
    tn_status status = tn_runner_create(plan, a->bound, a->n_bound, &r);
    for (int32_t i = 0; i < a->n_inputs && status == TN_OK; i++)
        status = tn_runner_write(r, a->inputs[i].name, a->inputs[i].data, a->inputs[i].size);
    if (status == TN_OK) status = tn_runner_run(r);
    for (int32_t i = 0; i < n_out && status == TN_OK; i++)
        status = tn_runner_read(r, out[i].name, (void *)(uintptr_t)out[i].data, out[i].size);
    tn_runner_destroy(&r);
    return status;
}

static inline tn_status run_graph(const tn_graph *g, const run_args *a, const tn_binding *out, int32_t n_out)
{
    tn_plan *plan = NULL;
    tn_status status = tn_plan_create(g, a->plan, &plan);
    if (status == TN_OK) status = run_plan(plan, a, out, n_out);
    tn_plan_unref(&plan);
    return status;
}

// --- values for everything --------------------------------------------------------------------------

static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u; // Numerical Recipes, 3rd edition, section 7.1
    return *state >> 8;
}

// F32: values in [-1, 1) that depend on the name; I32: 0, 1, 0, 1, .., lengths 1; other types: zeros.
static inline void fill_value(const char *name, tn_dtype dtype, void *data, size_t size)
{
    uint32_t state = 1;
    bool lengths = strcmp(name, "kv_len") == 0;
    for (; *name; name++) state = state * 31 + (uint32_t)*name;
    memset(data, 0, size);
    for (size_t i = 0; i < size / 4; i++) {
        if (dtype == TN_TYPE_F32) ((float *)data)[i] = (float)next_random(&state) / 8388608.0f - 1.0f;
        if (dtype == TN_TYPE_I32) ((int32_t *)data)[i] = lengths || i % 2;
    }
}

// n of those values of F32 as `type`, for the caller to free.
static inline void *values_of(const char *name, tn_dtype type, size_t n)
{
    float *values = malloc(n * sizeof *values);
    fill_value(name, TN_TYPE_F32, values, n * sizeof *values);
    if (type == TN_TYPE_F32) return values;
    void *packed = malloc(tn_dtype_row_size(type, (int64_t)n));
    tn_quant_info_get(type)->from_f32(values, packed, (int64_t)n, NULL);
    free(values);
    return packed;
}

// A weight or input by its name, with values that depend on the name.
typedef struct named_values {
    const char *name;
    tn_dtype type;
    size_t n;
} named_values;

static inline void bind_values(const named_values *given, size_t n, tn_binding *bound)
{
    for (size_t i = 0; i < n; i++)
        bound[i] = (tn_binding){given[i].name, values_of(given[i].name, given[i].type, given[i].n),
                                tn_dtype_row_size(given[i].type, (int64_t)given[i].n)};
}

static inline void free_values(const tn_binding *bound, size_t n)
{
    for (size_t i = 0; i < n; i++) free((void *)(uintptr_t)bound[i].data);
}

// Runs a plan with those values; results one after another into out, at most `room` floats. Gives their
// count.
static inline tn_status evaluate_plan(tn_plan *plan, float *out, size_t room, size_t *n_out)
{
    tn_binding *bound = calloc((size_t)plan->n_bound + 1, sizeof *bound);
    tn_runner *r = NULL;
    for (int32_t i = 0; i < plan->n_bound; i++) {
        const tn_tensor *t = plan->graph->values[plan->bound[i].value];
        void *data = malloc(tn_tensor_size(t));
        fill_value(t->name, t->view.dtype, data, tn_tensor_size(t));
        bound[i] = (tn_binding){t->name, data, tn_tensor_size(t)};
    }
    tn_status status = tn_runner_create(plan, bound, plan->n_bound, &r);
    for (int32_t i = 0; i < plan->n_inputs && status == TN_OK; i++) {
        const tn_tensor *t = plan->graph->values[plan->inputs[i].value];
        void *data = malloc(tn_tensor_size(t));
        fill_value(t->name, t->view.dtype, data, tn_tensor_size(t));
        status = tn_runner_write(r, t->name, data, tn_tensor_size(t));
        free(data);
    }
    // Twice: a second run must not see what the first one left behind.
    for (int32_t k = 0; k < 2 && status == TN_OK; k++) status = tn_runner_run(r);
    size_t n = 0;
    for (int32_t i = 0; i < plan->n_outputs && status == TN_OK; i++) {
        size_t size = tn_tensor_size(plan->graph->values[plan->outputs[i].value]);
        if (n + size / sizeof *out > room) abort();
        status = tn_runner_read(r, plan->outputs[i].name, out + n, size);
        n += size / sizeof *out;
    }
    tn_runner_destroy(&r);
    for (int32_t i = 0; i < plan->n_bound; i++) free((void *)(uintptr_t)bound[i].data);
    free(bound);
    *n_out = n;
    return status;
}

static inline tn_status evaluate(const tn_graph *g, const tn_plan_config *cfg, float *out, size_t room,
                                 size_t *n_out)
{
    tn_plan *plan = NULL;
    tn_status status = tn_plan_create(g, cfg, &plan);
    if (status == TN_OK) status = evaluate_plan(plan, out, room, n_out);
    tn_plan_unref(&plan);
    return status;
}

// Largest difference relative to the largest value; infinite for values that are no numbers.
static inline double deviation(const float *a, const float *b, size_t n)
{
    double diff = 0.0, most = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - b[i], m = b[i];
        if (!(d - d == 0.0)) return 1e300;
        diff = d > diff ? d : -d > diff ? -d : diff;
        most = m > most ? m : -m > most ? -m : most;
    }
    return diff / most;
}

// --- plans -----------------------------------------------------------------------------------------

static inline tn_plan *compile_plan(const tn_graph *graph, int32_t fusion)
{
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.fusion = fusion;
    tn_plan *plan = NULL;
    if (!TEST_CHECK_STATUS(tn_plan_create(graph, &cfg, &plan), TN_OK)) message_has(graph->ctx, "-");
    return plan;
}

static inline int32_t count_steps(const tn_plan *plan, int32_t op)
{
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n_steps; i++) n += plan->steps[i].step.op == op;
    return n;
}

// The plan as text contains `part`.
static inline bool plan_says(const tn_plan *plan, const char *part)
{
    char *text = NULL;
    if (tn_plan_dump(plan, TN_PLAN_TEXT, &text) != TN_OK) return false;
    bool found = strstr(text, part) != NULL;
    if (!found) printf("    not in the plan: %s\n%s", part, text);
    tn_text_free(plan->ctx, text);
    return found;
}

// --- memory ----------------------------------------------------------------------------------------

enum { UNIT = 64 }; // of the arena's alignment

static inline void stamp(const tn_plan *p, int32_t *const *owner, const tn_plan_operand *o)
{
    const tn_place *a = &p->places[o->root];
    for (size_t at = a->offset; a->in_arena && at < a->offset + a->size; at += UNIT)
        owner[a->device][at / UNIT] = o->root + 1;
}

static inline bool has_stamp(const tn_plan *p, int32_t *const *owner, const tn_plan_operand *o)
{
    if (o->root < 0 || !p->places[o->root].in_arena) return true;
    const tn_place *a = &p->places[o->root];
    bool has = owner[a->device][(a->offset + o->offset) / UNIT] == o->root + 1;
    for (size_t at = a->offset; at < a->offset + a->size; at += UNIT)
        has = has && owner[a->device][at / UNIT] == o->root + 1;
    return has;
}

// All that step s reads is there now.
static inline bool reads_stamps(const tn_plan *p, int32_t *const *owner, const tn_plan_step *s)
{
    bool has = has_stamp(p, owner, &s->staged_x);
    for (int32_t k = 0; k < s->step.n_src; k++) has = has && has_stamp(p, owner, &s->src[k]);
    return has;
}

// A result of step s has the storage of a source of `of`, s or what it folds, where its op does not allow it.
static inline bool lies_on_source(const tn_plan *p, const tn_plan_step *s, const tn_plan_step *of)
{
    bool on = false;
    for (int32_t k = 0; k < of->step.n_src; k++) {
        if (of->src[k].root < 0 || !p->places[of->src[k].root].in_arena) continue;
        bool shares = of == s && (tn_op_info_get(s->step.op)->flags & TN_OP_INPLACE) != 0 && k == 0;
        for (int32_t j = 0; j < s->step.n_dst; j++)
            on = on || (s->dst[j].root == of->src[k].root &&
                        !(shares && j == 0 && s->dst[j].offset == of->src[k].offset));
    }
    return on;
}

// Plays the plan on a map of its arenas, in which every step stamps what it writes: a step must find the
// stamps of all it reads. Returns what is wrong, or NULL.
static inline const char *check_memory(const tn_plan *p)
{
    int32_t *owner[8] = {0};
    const char *wrong = NULL;
    for (int32_t d = 0; d < p->n_devices && d < 8; d++)
        owner[d] = calloc(p->arena_size[d] / UNIT + 1, sizeof(int32_t));
    for (int32_t i = 0; i < p->graph->n_values && !wrong; i++) {
        const tn_place *a = &p->places[i];
        if (!a->in_arena) continue;
        if (a->offset % UNIT || a->size % UNIT || a->offset + a->size > p->arena_size[a->device])
            wrong = "a place leaves its arena";
        if (a->size < tn_tensor_size(p->graph->values[i])) wrong = "a place is too small";
        for (int32_t k = 0; k < i; k++) {
            const tn_place *b = &p->places[k];
            bool meet = b->in_arena && a->device == b->device && a->first <= b->last && b->first <= a->last;
            if (meet && a->offset < b->offset + b->size && b->offset < a->offset + a->size)
                wrong = "two live places overlap";
        }
    }
    for (int32_t i = 0; i < p->n_steps && !wrong; i++) {
        const tn_plan_step *s = &p->steps[i], *before = s - 1;
        bool folds = (s->step.join.previous & TN_JOIN_FOLD) != 0;
        if (!reads_stamps(p, owner, s) || (folds && !reads_stamps(p, owner, before)))
            wrong = "a source was overwritten";
        if (lies_on_source(p, s, s) || (folds && lies_on_source(p, s, before)))
            wrong = "a result lies on a source";
        for (int32_t k = 0; k < s->step.n_dst; k++) stamp(p, owner, &s->dst[k]);
        if (s->staged_y.root >= 0) stamp(p, owner, &s->staged_y);
        if (!(s->step.join.previous & TN_JOIN_DEFER)) continue;
        for (int32_t k = 0; k < before->step.n_dst; k++)
            if (!has_stamp(p, owner, &before->dst[k])) wrong = "a result lies on one that is finished here";
    }
    for (int32_t i = 0; i < p->n_outputs && !wrong; i++) {
        int32_t root = p->graph->values[p->outputs[i].value]->root->id;
        const tn_place *a = &p->places[root];
        for (size_t at = a->offset; a->in_arena && at < a->offset + a->size; at += UNIT)
            if (owner[a->device][at / UNIT] != root + 1) wrong = "a result of the graph was overwritten";
    }
    for (int32_t d = 0; d < 8; d++) free(owner[d]);
    return wrong;
}

// --- a device that refuses -------------------------------------------------------------------------

// The CPU under another name, without some ops. One at a time in a test.
static uint64_t fake_refuses; // bit per op
static tn_backend fake_backend;

static inline bool fake_accepts(const tn_device *device, const tn_step *step)
{
    return !(fake_refuses >> step->op & 1) && tn_backend_cpu.accepts(device, step);
}

static inline tn_device fake_device(tn_context *ctx)
{
    tn_device d = *tn_context_device_by_name(ctx, "cpu");
    fake_backend = *d.backend;
    fake_backend.role = TN_BACKEND_ACCELERATOR;
    fake_backend.accepts = fake_accepts;
    d.backend = &fake_backend;
    memcpy(d.name, "fake", 5);
    return d;
}

#define REFUSE(op) ((uint64_t)1 << TN_OP_##op)

#endif
