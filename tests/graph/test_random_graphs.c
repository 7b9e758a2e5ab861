// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Random graphs: every way to compile them gives what the references give when each value has memory of its
// own: fused or not, on the best CPU level or on the references, on one device or spread over two.
//
//     test_random_graphs [COUNT [FIRST SEED]]
#include "tests/graph/naive.h"
#include "tests/graph/run_graph.h"

// Large: the norm of a difference that cancels would blow up the rounding of what is compared.
static const float norm_eps = 0.1f;

enum { MAX_POOL = 96, CAPACITY = 1 << 16 };

typedef struct maker {
    tn_graph *g;
    uint32_t seed;
    int64_t n_rows;
    tn_tensor *pool[MAX_POOL]; // F32 [n_rows, width]
    int32_t n, n_weights;
    bool strided; // with slices of columns
} maker;

static uint32_t dice(maker *m, uint32_t n)
{
    return next_random(&m->seed) % n;
}

static tn_tensor *any(maker *m)
{
    // Recent values more often: chains as in models.
    int32_t back = (int32_t)dice(m, dice(m, 2) ? 3 : (uint32_t)m->n);
    return m->pool[m->n - 1 - (back < m->n ? back : 0)];
}

static int64_t width(const tn_tensor *t)
{
    return tn_tensor_dim(t, 1);
}

// Another value as wide as x, or x itself.
static tn_tensor *partner(maker *m, tn_tensor *x)
{
    for (int i = 0; i < 8; i++) {
        tn_tensor *y = m->pool[dice(m, (uint32_t)m->n)];
        if (width(y) == width(x)) return y;
    }
    return x;
}

static tn_tensor *weight(maker *m, int64_t n_out, int64_t n_in)
{
    char name[32];
    snprintf(name, sizeof name, "w%d", m->n_weights++);
    return n_out ? tn_graph_weight(m->g, name, TN_TYPE_F32, 2, (int64_t[]){n_out, n_in})
                 : tn_graph_weight(m->g, name, TN_TYPE_F32, 1, &n_in);
}

static int64_t any_width(maker *m)
{
    return 8 * (1 + dice(m, 4));
}

// Keeps values near 1, so that differences mean the same everywhere.
static tn_tensor *tame(maker *m, tn_tensor *x)
{
    return dice(m, 2) ? tn_op_rms_norm(m->g, x, dice(m, 2) ? weight(m, 0, width(x)) : NULL, norm_eps)
                      : tn_op_unary(m->g, x, &(tn_unary_params){.kind = TN_UNARY_TANH});
}

static tn_tensor *make_unary(maker *m, tn_tensor *x)
{
    static const int32_t kinds[] = {TN_UNARY_AFFINE, TN_UNARY_SILU, TN_UNARY_GELU,   TN_UNARY_RELU,
                                    TN_UNARY_TANH,   TN_UNARY_ABS,  TN_UNARY_SIGMOID};
    return tn_op_unary(m->g, x, &(tn_unary_params){kinds[dice(m, TN_COUNT(kinds))], 0.75f, 0.25f});
}

static tn_tensor *make_binary(maker *m, tn_tensor *x)
{
    int32_t kind = dice(m, 2) ? TN_BINARY_ADD : (int32_t)dice(m, TN_BINARY_MUL + 1);
    tn_tensor *y = dice(m, 4) ? partner(m, x) : weight(m, 0, width(x));
    if (tn_tensor_n_dims(y) == 2 && dice(m, 4) == 0)
        return tn_op_binary(m->g, kind, tn_op_reduce(m->g, y, TN_REDUCE_MAX), x);
    return tn_op_binary(m->g, kind, x, y);
}

static tn_tensor *make_product(maker *m, tn_tensor *x)
{
    tn_tensor *y = tn_op_matmul(m->g, x, weight(m, any_width(m), width(x)));
    if (dice(m, 2)) y = tn_op_add(m->g, y, weight(m, 0, width(y)));
    if (dice(m, 2)) y = make_unary(m, y);
    if (dice(m, 2)) y = tn_op_add(m->g, y, partner(m, y));
    return y;
}

static tn_tensor *make_glu(maker *m, tn_tensor *x)
{
    int64_t n = any_width(m);
    tn_tensor *gate = tn_op_matmul(m->g, x, weight(m, n, width(x)));
    tn_tensor *up = tn_op_matmul(m->g, dice(m, 4) ? x : partner(m, x), weight(m, n, width(x)));
    return tn_op_glu(m->g, gate, up, &(tn_glu_params){.act = TN_UNARY_SILU});
}

static tn_tensor *make_copy(maker *m, tn_tensor *x)
{
    if (dice(m, 2)) return tn_op_copy(m->g, x, TN_TYPE_F32);
    return dice(m, 2) ? tn_op_scale(m->g, x, 1.0f)
                      : tn_op_reshape(m->g, x, 2, (int64_t[]){m->n_rows, width(x)});
}

static tn_tensor *make_slice(maker *m, tn_tensor *x)
{
    if (!m->strided || width(x) < 16) return make_copy(m, x);
    return tn_op_slice(m->g, x, 1, 8 * dice(m, (uint32_t)width(x) / 8), 8);
}

static tn_tensor *make_value(maker *m)
{
    tn_tensor *x = any(m);
    switch (dice(m, 9)) {
    case 0:
        return make_unary(m, x);
    case 1:
        return tame(m, make_binary(m, x));
    case 2:
        return tame(m, make_product(m, x));
    case 3:
        return make_glu(m, x);
    case 4:
        return make_copy(m, x);
    case 5:
        return make_slice(m, x);
    case 6:
        return width(x) > 64 ? tame(m, x) : tn_op_concat(m->g, x, any(m), 1);
    case 7:
        return tn_op_softmax(m->g, x, dice(m, 2) ? partner(m, x) : NULL, 0.5f);
    default:
        return tn_op_rms_norm(m->g, tn_op_add(m->g, x, partner(m, x)), weight(m, 0, width(x)), norm_eps);
    }
}

static void make_graph(maker *m)
{
    m->n_rows = 1 + dice(m, 6);
    for (int i = 0; i < 2; i++)
        m->pool[m->n++] =
            tn_graph_input(m->g, i ? "x1" : "x0", TN_TYPE_F32, 2, (int64_t[]){m->n_rows, 8 + 8 * i});
    int32_t n = 3 + (int32_t)dice(m, MAX_POOL - 6);
    while (m->n < n) {
        tn_tensor *t = make_value(m);
        if (!t) break;
        m->pool[m->n++] = t;
    }
    int32_t n_outputs = 1 + (int32_t)dice(m, 4);
    for (int32_t i = 0; i < n_outputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        tn_tensor *t = i ? m->pool[2 + dice(m, (uint32_t)m->n - 2)] : m->pool[m->n - 1];
        // The wanted value itself if it may be one, else a copy of it.
        bool direct = t->kind == TN_VALUE_NODE && tn_view_contiguous(&t->view) && !t->output &&
                      t->root->kind == TN_VALUE_NODE;
        tn_graph_output(m->g, name, direct ? t : tn_op_scale(m->g, t, 0.5f));
    }
}

// --- naive evaluation ------------------------------------------------------------------------------

// Every storage has its own memory and every op is its reference, in the order of recording.
static size_t run_naive(const tn_graph *g, float *out)
{
    void **data = calloc((size_t)g->n_values, sizeof *data);
    size_t n = 0;
    for (int32_t i = 0; i < g->n_values; i++) {
        const tn_tensor *t = g->values[i];
        if (t->root != t) continue;
        data[i] = calloc(1, tn_tensor_size(t));
        if (t->kind != TN_VALUE_NODE) fill_value(t->name, t->view.dtype, data[i], tn_tensor_size(t));
    }
    run_references(g, data);
    for (int32_t i = 0; i < g->n_values; i++) {
        const tn_tensor *t = g->values[i];
        if (!t->output) continue;
        memcpy(out + n, (char *)data[t->root->id] + t->view.offset, tn_tensor_size(t));
        n += tn_tensor_size(t) / sizeof *out;
    }
    for (int32_t i = 0; i < g->n_values; i++) free(data[i]);
    free(data);
    return n;
}

// --- comparison ------------------------------------------------------------------------------------

static tn_context *reference, *best;
static double worst_ratio = 1.0;
static int32_t n_fused, n_shared;

static void count_plan(const tn_plan *p)
{
    double ratio = p->info.arena_bound ? (double)p->info.arena_size / (double)p->info.arena_bound : 1.0;
    worst_ratio = ratio > worst_ratio ? ratio : worst_ratio;
    n_fused += p->info.n_fused;
    for (int32_t i = 0; i < p->n_steps; i++) n_shared += p->steps[i].dst[0].root == p->steps[i].src[0].root;
}

// Compiles and runs the graph of a seed in one way; compares with the naive results.
static bool check_one(tn_context *ctx, uint32_t seed, bool fusion, uint64_t refuses, const float *want,
                      size_t n, double tolerance)
{
    static float got[CAPACITY];
    maker m = {.g = new_graph(ctx), .seed = seed, .strided = !refuses};
    tn_device fake = fake_device(ctx), *devices[] = {&fake};
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.fusion = fusion;
    cfg.devices = refuses ? devices : NULL;
    cfg.n_devices = 1;
    fake_refuses = refuses;
    tn_plan *plan = NULL;
    size_t n_got = 0;
    make_graph(&m);
    bool ok = TEST_CHECK_STATUS(tn_plan_create(m.g, &cfg, &plan), TN_OK);
    if (!ok) message_has(ctx, "-");
    const char *wrong = ok ? check_memory(plan) : NULL;
    ok = ok && TEST_CHECK(wrong == NULL) &&
         TEST_CHECK_STATUS(evaluate_plan(plan, got, CAPACITY, &n_got), TN_OK);
    double off = ok && n == n_got ? deviation(got, want, n) : 1e300;
    ok = TEST_CHECK(off <= tolerance) && ok;
    if (!ok)
        printf("    seed %u, fusion %d, refused %llx: off by %g; memory: %s\n", seed, fusion,
               (unsigned long long)refuses, off, wrong ? wrong : "sound");
    if (plan) count_plan(plan);
    tn_plan_unref(&plan);
    tn_graph_destroy(&m.g);
    fake_refuses = 0;
    return ok;
}

static bool check_seed(uint32_t seed)
{
    static float want[CAPACITY];
    static const uint64_t refuse[] = {REFUSE(unary) | REFUSE(softmax), REFUSE(matmul) | REFUSE(linear),
                                      REFUSE(rms_norm) | REFUSE(binary)};
    bool ok = true;
    for (int32_t strided = 1; strided >= 0; strided--) {
        maker m = {.g = new_graph(reference), .seed = seed, .strided = strided};
        make_graph(&m);
        if (!TEST_CHECK_STATUS(tn_graph_status(m.g), TN_OK)) message_has(reference, "-");
        size_t n = run_naive(m.g, want);
        tn_graph_destroy(&m.g);
        if (strided) {
            ok = check_one(reference, seed, false, 0, want, n, 0.0) &&
                 ok; // the same references: the same bits
            ok = check_one(reference, seed, true, 0, want, n, 1e-5) && ok;
            ok = check_one(best, seed, false, 0, want, n, 1e-5) && ok;
            ok = check_one(best, seed, true, 0, want, n, 1e-5) && ok;
        } else {
            ok = check_one(reference, seed, false, refuse[seed % TN_COUNT(refuse)], want, n, 0.0) && ok;
            ok = check_one(best, seed, true, refuse[seed % TN_COUNT(refuse)], want, n, 1e-5) && ok;
        }
    }
    return ok;
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 300;
    uint32_t first = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    reference = graph_context("reference", 1);
    best = graph_context(NULL, 2);
    int n_bad = 0;
    for (uint32_t i = 0; i < count && n_bad < 5; i++) n_bad += !check_seed(first + i);
    printf("%u graphs, %d fusions, %d results in place, arena / lower bound at most %.2f\n", count, n_fused,
           n_shared, worst_ratio);
    TEST_CHECK(n_fused > 0 && n_shared > 0);
    TEST_CHECK(worst_ratio <= 1.5); // small graphs of few sizes: far from what models look like
    tn_context_destroy(&best);
    tn_context_destroy(&reference);
    return test_done();
}
