// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiling and running a small graph in one call, and contexts for tests of graphs.
#ifndef TN_TESTS_GRAPH_RUN_GRAPH_H
#define TN_TESTS_GRAPH_RUN_GRAPH_H

#include "graph/graph.h"
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

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

#endif
