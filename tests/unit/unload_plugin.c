// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The plugin of unload_host.c: a context with several threads, and a sum that they compute together.
#include <tenon/graph.h>

enum { ROWS = 512, COLUMNS = 1024, THREADS = 4 };

TN_API int compute(int32_t threads_by);
static float a[ROWS * COLUMNS], b[ROWS * COLUMNS], sum[ROWS * COLUMNS];

static tn_status record(tn_graph *g)
{
    int64_t shape[] = {ROWS, COLUMNS};
    tn_tensor *x = tn_graph_input(g, "a", TN_TYPE_F32, 2, shape);
    tn_tensor *y = tn_graph_input(g, "b", TN_TYPE_F32, 2, shape);
    tn_graph_output(g, "sum", tn_op_add(g, x, y));
    return tn_graph_status(g);
}

// 0: the sum is right; 77: this build has no such threads.
int compute(int32_t threads_by)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = THREADS, cfg.backend = "cpu", cfg.threads_by = threads_by;
    tn_context *ctx = NULL;
    tn_graph *g = NULL;
    tn_plan *plan = NULL;
    tn_runner *run = NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++) a[i] = (float)i, b[i] = 0.5f;
    tn_status status = tn_context_create(&cfg, &ctx);
    if (status == TN_ERR_UNSUPPORTED && threads_by == TN_THREADS_OPENMP) return 77;
    if (status == TN_OK) status = tn_graph_create(ctx, &g);
    if (status == TN_OK) status = record(g);
    if (status == TN_OK) status = tn_plan_create(g, NULL, &plan);
    if (status == TN_OK) status = tn_runner_create(plan, NULL, 0, &run);
    if (status == TN_OK) status = tn_runner_write(run, "a", a, sizeof a);
    if (status == TN_OK) status = tn_runner_write(run, "b", b, sizeof b);
    for (int i = 0; i < 3 && status == TN_OK; i++) status = tn_runner_run(run);
    if (status == TN_OK) status = tn_runner_read(run, "sum", sum, sizeof sum);
    tn_runner_destroy(&run), tn_plan_unref(&plan), tn_graph_destroy(&g), tn_context_destroy(&ctx);
    for (int i = 0; i < ROWS * COLUMNS && status == TN_OK; i++)
        if (sum[i] != (float)i + 0.5f) return 1;
    return status != TN_OK;
}
