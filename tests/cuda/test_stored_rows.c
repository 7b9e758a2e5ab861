// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of 6 to 8 rows of x that the product before them left quantised, on the emulated device, with rows
// so long that two blocks of a cluster share k. They give what the kernels give that quantise the same rows
// of x themselves, with sums in another order.
#include "ops/quant.h"
#include "tests/cuda/fake.h"
#include "tests/graph/run_graph.h"

#define MOST 1e-12 // mean square of differences, as a share of that of the results

enum { K = 256, WIDE = 14336, MOST_ROWS = 8, MOST_N = 144 };

typedef struct chain {
    tn_dtype type;   // of the second product
    int64_t rows, n; // columns of the second product
} chain;

typedef struct values {
    float *x, *wide, *y;
} values;

// Weight `name` of n x k, whose bytes are `w`.
static tn_tensor *weight(tn_graph *g, const char *name, tn_dtype type, int64_t n, int64_t k, void *w,
                         tn_binding *bound)
{
    static float plain[WIDE * K];
    fill_value(name, TN_TYPE_F32, plain, (size_t)(n * k) * sizeof *plain);
    tn_quant_info_get(type)->from_f32(plain, w, n * k, NULL);
    *bound = (tn_binding){name, w, tn_dtype_row_size(type, n * k)};
    return tn_graph_weight(g, name, type, SHAPE(n, k));
}

// A gated pair and a product of its result, or, with `second`, that product of the rows that the pair gave.
static void run(const chain *c, bool second, const values *v)
{
    static char w[3][WIDE * K * 2];
    tn_context *ctx = graph_context(NULL, 1);
    tn_graph *g = new_graph(ctx);
    tn_binding bound[3];
    tn_tensor *h = second ? INPUT("h", c->rows, WIDE) : INPUT("x", c->rows, K);
    tn_tensor *down = weight(g, "down", c->type, c->n, WIDE, w[0], &bound[0]);
    if (!second) {
        tn_tensor *gate = weight(g, "gate", TN_TYPE_Q4_K, WIDE, K, w[1], &bound[1]);
        tn_tensor *up = weight(g, "up", TN_TYPE_Q4_K, WIDE, K, w[2], &bound[2]);
        h = tn_op_glu(g, tn_op_matmul(g, h, gate), tn_op_matmul(g, h, up),
                      &(tn_glu_params){.act = TN_UNARY_SILU});
        OUTPUT("h", h);
    }
    OUTPUT("y", tn_op_matmul(g, h, down));
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "cuda");
    cfg.devices = &device, cfg.n_devices = 1;
    size_t wide = (size_t)(c->rows * WIDE) * sizeof(float);
    const tn_binding in = {second ? "h" : "x", second ? v->wide : v->x,
                           second ? wide : (size_t)(c->rows * K) * sizeof(float)};
    const tn_binding out[] = {{"y", v->y, (size_t)(c->rows * c->n) * sizeof(float)}, {"h", v->wide, wide}};
    TEST_CHECK_STATUS(run_graph(g, &(run_args){&cfg, bound, second ? 1 : 3, &in, 1}, out, second ? 1 : 2),
                      TN_OK);
    tn_graph_destroy(&g);
    tn_context_destroy(&ctx);
}

static void check(chain c)
{
    static float x[MOST_ROWS * K], wide[MOST_ROWS * WIDE], y[2][MOST_ROWS * MOST_N];
    fill_value("x", TN_TYPE_F32, x, sizeof x);
    for (int32_t i = 0; i < K; i++) x[i] *= 1e-3f, x[K + i] *= 1e2f; // rows of other sizes
    run(&c, false, &(values){x, wide, y[0]});
    run(&c, true, &(values){x, wide, y[1]});
    for (int64_t row = 0; row < c.rows; row++) {
        double squares = 0, off = 0;
        for (int64_t i = row * c.n; i < (row + 1) * c.n; i++) {
            double d = (double)y[0][i] - (double)y[1][i];
            squares += (double)y[1][i] * (double)y[1][i], off += d * d;
        }
        if (!TEST_CHECK(off <= MOST * squares))
            printf("    %s, row %d of %d: %g\n", tn_dtype_name(c.type), (int)row, (int)c.rows, off / squares);
    }
}

int main(void)
{
    check((chain){TN_TYPE_Q4_K, 8, MOST_N});
    check((chain){TN_TYPE_Q6_K, 7, 136});
    check((chain){TN_TYPE_Q6_K, 6, MOST_N});
    check((chain){TN_TYPE_Q5_K, 8, MOST_N});
    return test_done();
}
