// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A network of one's own: two layers that tell whether a point lies in the ring 1/4 < |x| < 3/4, with the
// public API only. The weights are set by hand: 32 hinges relu(d_i . x - b) along 16 directions at two radii.
// Then what each step costs and how long it takes, and with an argument a picture of the plan in that file.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tenon/graph.h>

enum { DIRECTIONS = 16, HIDDEN = 2 * DIRECTIONS, POINTS = 200 };

static tn_status record(tn_graph *g)
{
    tn_tensor *x = tn_graph_input(g, "x", TN_TYPE_F32, 2, (int64_t[]){POINTS, 2});
    tn_tensor *w1 = tn_graph_weight(g, "w1", TN_TYPE_F32, 2, (int64_t[]){HIDDEN, 2});
    tn_tensor *b1 = tn_graph_weight(g, "b1", TN_TYPE_F32, 1, (int64_t[]){HIDDEN});
    tn_tensor *w2 = tn_graph_weight(g, "w2", TN_TYPE_F32, 2, (int64_t[]){2, HIDDEN});
    tn_tensor *b2 = tn_graph_weight(g, "b2", TN_TYPE_F32, 1, (int64_t[]){2});
    tn_tensor *h = tn_op_add(g, tn_op_matmul(g, x, w1), b1); // y[m,n] = x[m,k] w[n,k]^T
    h = tn_op_unary(g, h, &(tn_unary_params){.kind = TN_UNARY_RELU});
    tn_tensor *y = tn_op_add(g, tn_op_matmul(g, h, w2), b2);
    tn_graph_output(g, "class", tn_op_argmax(g, y)); // 1: in the ring
    return tn_graph_status(g);
}

// A table of the steps, from one run that is timed step by step. Returns their sum, in nanoseconds.
static uint64_t print_steps(const tn_plan *plan, tn_runner *run)
{
    tn_plan_step_info s = {.struct_size = sizeof s};
    char shapes[200];
    uint64_t sum = 0;
    if (tn_runner_profile(run, 1) != TN_OK || tn_runner_run(run) != TN_OK) return 0;
    for (int32_t i = 0; tn_plan_step_get(plan, i, 0, &s) == 1; i++) {
        tn_plan_step_shapes(plan, i, shapes, sizeof shapes);
        sum += tn_runner_step_ns(run, i);
        printf("%-7s %6.1f us %6llu bytes %6.0f operations: %s\n", s.op,
               (double)tn_runner_step_ns(run, i) * 1e-3,
               (unsigned long long)(s.weights_read + s.read + s.written), s.ops + s.product_ops, shapes);
    }
    return tn_runner_profile(run, 0) == TN_OK ? sum : 0;
}

// The picture of the plan, also to a file. Returns whether it shows the fused steps and the memory.
static int draw(tn_context *ctx, const tn_plan *plan, const char *path)
{
    char *svg = NULL;
    if (tn_plan_dump(plan, TN_PLAN_SVG, &svg) != TN_OK) return 0;
    int good = strstr(svg, "linear") && strstr(svg, "matmul + bias") && strstr(svg, "bytes of the arena");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (path && (!f || fputs(svg, f) < 0)) good = 0;
    if (f && fclose(f) != 0) good = 0;
    tn_text_free(ctx, svg);
    return good;
}

int main(int argc, char **argv)
{
    float w1[HIDDEN][2], b1[HIDDEN], w2[2][HIDDEN] = {{0}}, b2[2] = {0.91f, 0.0f}, x[POINTS][2];
    for (int i = 0; i < HIDDEN; i++) { // inner hinges raise the score of class 1, outer ones lower it
        double angle = 6.283185307179586 * (i % DIRECTIONS) / DIRECTIONS;
        w1[i][0] = (float)cos(angle), w1[i][1] = (float)sin(angle), b1[i] = i < DIRECTIONS ? -0.05f : -0.4f;
        w2[1][i] = i < DIRECTIONS ? 1.0f : -2.1f;
    }
    for (int i = 0; i < POINTS; i++) { // a spiral from 0 to 1
        double r = (double)i / POINTS, angle = 2.4 * i;
        x[i][0] = (float)(r * cos(angle)), x[i][1] = (float)(r * sin(angle));
    }
    tn_binding weights[] = {
        {"w1", w1, sizeof w1}, {"b1", b1, sizeof b1}, {"w2", w2, sizeof w2}, {"b2", b2, sizeof b2}};
    int32_t class_of[POINTS];
    tn_context *ctx = NULL;
    tn_graph *g = NULL;
    tn_plan *plan = NULL;
    tn_runner *run = NULL;
    tn_status status = tn_context_create(NULL, &ctx);
    if (status == TN_OK) status = tn_graph_create(ctx, &g);
    if (status == TN_OK) status = record(g);
    if (status == TN_OK) status = tn_plan_create(g, NULL, &plan);
    if (status == TN_OK) status = tn_runner_create(plan, weights, 4, &run);
    if (status == TN_OK) status = tn_runner_write(run, "x", x, sizeof x);
    if (status == TN_OK) status = tn_runner_run(run);
    if (status == TN_OK) status = tn_runner_read(run, "class", class_of, sizeof class_of);
    uint64_t ns = status == TN_OK ? print_steps(plan, run) : 0;
    int drawn = status == TN_OK && draw(ctx, plan, argc > 1 ? argv[1] : NULL);
    tn_runner_destroy(&run), tn_plan_unref(&plan), tn_graph_destroy(&g), tn_context_destroy(&ctx);
    int right = 0;
    for (int i = 0; i < POINTS && status == TN_OK; i++)
        right += class_of[i] == (i > POINTS / 4 && i < 3 * POINTS / 4);
    int good = (right >= 195) + (ns > 0) + (drawn != 0);
    printf("%s: %d of %d points right\n%d passed, %d failed\n", tn_status_text(status), right, POINTS, good,
           3 - good);
    return good < 3;
}
