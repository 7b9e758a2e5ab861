// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Recording: the shape and type rule of every op, sticky failures, missing operands, names, and views
// computed through the references.
#include "tests/graph/run_graph.h"

static tn_context *ctx;
static tn_graph *g; // the graph of the current case
static int32_t n_made;

static tn_tensor *value(tn_dtype dtype, int32_t n_dims, const int64_t *shape)
{
    char name[32];
    snprintf(name, sizeof name, "x%d", n_made++);
    return tn_graph_input(g, name, dtype, n_dims, shape);
}

#define F32(...)      value(TN_TYPE_F32, SHAPE(__VA_ARGS__))
#define I32(...)      value(TN_TYPE_I32, SHAPE(__VA_ARGS__))
#define OF(type, ...) value(TN_TYPE_##type, SHAPE(__VA_ARGS__))
#define STATE(type, ...) tn_graph_state(g, "state", TN_TYPE_##type, SHAPE(__VA_ARGS__))

static void begin(void)
{
    g = new_graph(ctx);
    n_made = 0;
}

static bool has_shape(const tn_tensor *t, tn_dtype dtype, int32_t n_dims, const int64_t *shape)
{
    bool ok = t && tn_tensor_dtype(t) == dtype && tn_tensor_n_dims(t) == n_dims;
    for (int32_t i = 0; i < n_dims && ok; i++) ok = tn_tensor_dim(t, i) == shape[i];
    return ok && tn_tensor_dim(t, -1) == 1 && tn_tensor_dim(t, n_dims) == 1;
}

// The expression records a value of that type and shape on a fresh graph.
#define ACCEPTS(expr, dtype, ...)                                                                            \
    do {                                                                                                     \
        begin();                                                                                             \
        TEST_CHECK(has_shape((expr), TN_TYPE_##dtype, SHAPE(__VA_ARGS__)));                                  \
        if (!TEST_CHECK_STATUS(tn_graph_status(g), TN_OK)) message_has(ctx, "-");                            \
        tn_graph_destroy(&g);                                                                                \
    } while (0)

// The expression fails on a fresh graph with that status.
#define REJECTS(expr, status)                                                                                \
    do {                                                                                                     \
        begin();                                                                                             \
        test_report((expr) == NULL, __FILE__, __LINE__, #expr);                                              \
        TEST_CHECK_STATUS(tn_graph_status(g), status);                                                       \
        tn_graph_destroy(&g);                                                                                \
    } while (0)

// --- what comes from outside -----------------------------------------------------------------------

static void test_inputs(void)
{
    ACCEPTS(F32(7), F32, 7);
    ACCEPTS(OF(Q8_0, 2, 64), Q8_0, 2, 64);
    ACCEPTS(OF(Q4_K, 1, 2, 3, 256), Q4_K, 1, 2, 3, 256);
    ACCEPTS(tn_graph_state(g, "s", TN_TYPE_F16, SHAPE(4, 2, 16, 8)), F16, 4, 2, 16, 8);
    REJECTS(F32(0), TN_ERR_SHAPE);
    REJECTS(F32(2, -1), TN_ERR_SHAPE);
    REJECTS(F32(INT64_MAX, INT64_MAX), TN_ERR_SHAPE);
    REJECTS(OF(Q8_0, 2, 33), TN_ERR_SHAPE);
    REJECTS(value(TN_TYPE_F32, 0, (int64_t[]){1}), TN_ERR_SHAPE);
    REJECTS(value(TN_TYPE_F32, 5, (int64_t[]){1, 1, 1, 1, 1}), TN_ERR_SHAPE);
    REJECTS(value(-1, SHAPE(4)), TN_ERR_TYPE);
    REJECTS(value(TN_TYPE_COUNT, SHAPE(4)), TN_ERR_TYPE);
}

static void test_names(void)
{
    begin();
    char name[] = "weight";
    TEST_CHECK(tn_graph_weight(g, name, TN_TYPE_F32, SHAPE(4)) != NULL);
    name[0] = 'h'; // the name was copied
    TEST_CHECK(tn_graph_input(g, name, TN_TYPE_F32, SHAPE(4)) != NULL);
    TEST_CHECK(tn_graph_state(g, "weight", TN_TYPE_F32, SHAPE(4)) == NULL);
    TEST_CHECK_STATUS(tn_graph_status(g), TN_ERR_ARG);
    tn_graph_destroy(&g);

    begin();
    tn_tensor *x = INPUT("mine", 2), *y = tn_op_scale(g, x, 2.0f), *z = tn_op_scale(g, y, 2.0f);
    TEST_CHECK(tn_graph_name(g, x, "other") == x && strcmp(x->name, "mine") == 0);
    TEST_CHECK(tn_graph_name(g, y, "twice") == y);
    TEST_CHECK(tn_graph_name(g, NULL, "nobody") == NULL);
    TEST_CHECK_STATUS(tn_graph_status(g), TN_OK);
    tn_graph_output(g, "y", y);
    tn_graph_output(g, "z", z);
    tn_plan *plan = NULL;
    TEST_CHECK_STATUS(tn_plan_create(g, NULL, &plan), TN_OK);
    TEST_CHECK(plan && plan_says(plan, "twice"));
    TEST_CHECK(plan && tn_plan_find_output(plan, "z") == 1 && tn_plan_find_output(plan, "twice") < 0);
    tn_plan_unref(&plan);
    tn_graph_output(g, "z", tn_op_scale(g, z, 2.0f)); // the name is taken
    TEST_CHECK_STATUS(tn_graph_status(g), TN_ERR_ARG);
    tn_graph_destroy(&g);
}

static void reject_output(tn_tensor *v, tn_status status)
{
    tn_graph_output(g, "y", v);
    TEST_CHECK_STATUS(tn_graph_status(g), status);
    tn_graph_destroy(&g);
}

static void test_outputs(void)
{
    begin(), reject_output(NULL, TN_ERR_ARG);
    begin(), reject_output(F32(2), TN_ERR_SHAPE);
    begin(), reject_output(tn_op_reshape(g, F32(2, 4), 1, (int64_t[]){8}), TN_ERR_SHAPE);
    begin(), reject_output(tn_op_copy(g, F32(2), TN_TYPE_F16), TN_ERR_TYPE);
    begin(), reject_output(tn_op_slice(g, tn_op_scale(g, F32(2, 4), 2.0f), 1, 0, 2), TN_ERR_SHAPE);
    begin(),
        reject_output(tn_op_permute(g, tn_op_scale(g, F32(2, 4), 2.0f), (int32_t[]){1, 0}), TN_ERR_SHAPE);
    begin();
    tn_tensor *y = tn_op_scale(g, F32(2), 2.0f);
    tn_graph_output(g, "x", y);
    reject_output(y, TN_ERR_ARG);
    begin();
    tn_tensor *s = tn_graph_state(g, "s", TN_TYPE_F32, SHAPE(1, 1, 4, 2));
    reject_output(tn_op_cache_write(g, s, F32(1, 1, 2), I32(1)), TN_ERR_SHAPE);
}

static void test_sticky(void)
{
    begin();
    tn_tensor *a = F32(2, 3), *bad = tn_op_add(g, a, F32(2, 4));
    TEST_CHECK(bad == NULL);
    TEST_CHECK(tn_op_scale(g, bad, 2.0f) == NULL); // does not replace the cause
    TEST_CHECK(tn_op_matmul(g, F32(2), NULL) == NULL);
    TEST_CHECK(tn_graph_weight(g, "w", TN_TYPE_COUNT, SHAPE(1)) == NULL);
    tn_graph_output(g, "y", bad);
    TEST_CHECK_STATUS(tn_graph_status(g), TN_ERR_SHAPE);
    tn_plan *plan = (tn_plan *)(uintptr_t)&n_made;
    tn_fail(ctx, TN_ERR_IO, "something else failed meanwhile");
    TEST_CHECK_STATUS(tn_plan_create(g, NULL, &plan), TN_ERR_SHAPE);
    TEST_CHECK(plan == (tn_plan *)(uintptr_t)&n_made);
    TEST_CHECK(message_has(ctx, "binary: F32 [2, 3] and F32 [2, 4]"));
    tn_graph_destroy(&g);
}

// --- rules -----------------------------------------------------------------------------------------

static void test_views(void)
{
    ACCEPTS(tn_op_reshape(g, F32(2, 6), SHAPE(3, 4)), F32, 3, 4);
    ACCEPTS(tn_op_reshape(g, F32(2, 6), SHAPE(2, -1, 3)), F32, 2, 2, 3);
    ACCEPTS(tn_op_reshape(g, OF(Q8_0, 4, 64), SHAPE(8, 32)), Q8_0, 8, 32);
    REJECTS(tn_op_reshape(g, F32(2, 6), SHAPE(5, 2)), TN_ERR_SHAPE);
    REJECTS(tn_op_reshape(g, F32(2, 6), SHAPE(-1, 5)), TN_ERR_SHAPE);
    REJECTS(tn_op_reshape(g, F32(2, 6), SHAPE(-1, -1)), TN_ERR_SHAPE);
    REJECTS(tn_op_reshape(g, F32(2, 6), SHAPE(0, 12)), TN_ERR_SHAPE);
    REJECTS(tn_op_reshape(g, F32(2, 6), SHAPE(INT64_MAX, 2)), TN_ERR_SHAPE);
    REJECTS(tn_op_reshape(g, F32(2, 6), 5, (int64_t[]){1, 1, 1, 2, 6}), TN_ERR_ARG);
    REJECTS(tn_op_reshape(g, OF(Q8_0, 4, 64), SHAPE(16, 16)), TN_ERR_SHAPE);
    REJECTS(tn_op_reshape(g, tn_op_permute(g, F32(2, 6), (int32_t[]){1, 0}), SHAPE(12)), TN_ERR_SHAPE);

    ACCEPTS(tn_op_permute(g, F32(2, 3, 4), (int32_t[]){2, 0, 1}), F32, 4, 2, 3);
    ACCEPTS(tn_op_permute(g, OF(Q8_0, 2, 3, 32), (int32_t[]){1, 0, 2}), Q8_0, 3, 2, 32);
    REJECTS(tn_op_permute(g, F32(2, 3), (int32_t[]){0, 0}), TN_ERR_ARG);
    REJECTS(tn_op_permute(g, F32(2, 3), (int32_t[]){0, 2}), TN_ERR_ARG);
    REJECTS(tn_op_permute(g, F32(2, 3), (int32_t[]){-1, 1}), TN_ERR_ARG);
    REJECTS(tn_op_permute(g, OF(Q8_0, 2, 32), (int32_t[]){1, 0}), TN_ERR_TYPE);

    ACCEPTS(tn_op_slice(g, F32(4, 6), 0, 1, 3), F32, 3, 6);
    ACCEPTS(tn_op_slice(g, F32(4, 6), 1, 5, 1), F32, 4, 1);
    ACCEPTS(tn_op_slice(g, OF(Q8_0, 4, 96), 1, 32, 64), Q8_0, 4, 64);
    REJECTS(tn_op_slice(g, F32(4, 6), 2, 0, 1), TN_ERR_ARG);
    REJECTS(tn_op_slice(g, F32(4, 6), -1, 0, 1), TN_ERR_ARG);
    REJECTS(tn_op_slice(g, F32(4, 6), 0, 2, 3), TN_ERR_SHAPE);
    REJECTS(tn_op_slice(g, F32(4, 6), 0, 0, 0), TN_ERR_SHAPE);
    REJECTS(tn_op_slice(g, F32(4, 6), 0, -1, 2), TN_ERR_SHAPE);
    REJECTS(tn_op_slice(g, F32(4, 6), 0, 1, INT64_MAX), TN_ERR_SHAPE);
    REJECTS(tn_op_slice(g, OF(Q8_0, 4, 96), 1, 16, 32), TN_ERR_SHAPE);
}

// Operands that are large, and a result that no memory holds.
static void test_sizes(void)
{
    const int64_t many = (int64_t)1 << 32;
    ACCEPTS(tn_op_matmul(g, F32(many, 2), F32(1 << 20, 2)), F32, many, 1 << 20);
    REJECTS(tn_op_matmul(g, F32(many, 2), F32(many, 2)), TN_ERR_SHAPE);
    TEST_CHECK(message_has(ctx, "too large"));
}

static void test_moves(void)
{
    ACCEPTS(tn_op_copy(g, F32(2, 3), TN_TYPE_BF16), BF16, 2, 3);
    ACCEPTS(tn_op_copy(g, OF(Q4_0, 2, 32), TN_TYPE_F32), F32, 2, 32);
    ACCEPTS(tn_op_copy(g, I32(2, 3), TN_TYPE_I32), I32, 2, 3);
    REJECTS(tn_op_copy(g, I32(2, 3), TN_TYPE_F32), TN_ERR_TYPE);
    REJECTS(tn_op_copy(g, F32(2, 3), TN_TYPE_I32), TN_ERR_TYPE);
    REJECTS(tn_op_copy(g, F32(2, 32), TN_TYPE_Q8_0), TN_ERR_TYPE);
    REJECTS(tn_op_copy(g, F32(2, 32), TN_TYPE_COUNT), TN_ERR_TYPE);

    ACCEPTS(tn_op_concat(g, F32(2, 3), F32(2, 4), 1), F32, 2, 7);
    ACCEPTS(tn_op_concat(g, I32(2, 3), I32(1, 3), 0), I32, 3, 3);
    REJECTS(tn_op_concat(g, F32(2, 3), F32(3, 4), 1), TN_ERR_SHAPE);
    REJECTS(tn_op_concat(g, F32(2, 3), I32(2, 3), 1), TN_ERR_TYPE);
    REJECTS(tn_op_concat(g, OF(F16, 2, 3), OF(F16, 2, 3), 1), TN_ERR_TYPE);
    REJECTS(tn_op_concat(g, F32(2, 3), F32(2, 3), 2), TN_ERR_ARG);
    REJECTS(tn_op_concat(g, F32(2, 3), F32(2, 3), -1), TN_ERR_ARG);

    ACCEPTS(tn_op_get_rows(g, OF(Q6_K, 9, 256), I32(3), 1.0f), F32, 3, 256);
    ACCEPTS(tn_op_get_rows(g, F32(9, 5), I32(2, 3), 1.0f), F32, 2, 3, 5);
    REJECTS(tn_op_get_rows(g, F32(9, 5), F32(3), 1.0f), TN_ERR_TYPE);
    REJECTS(tn_op_get_rows(g, F32(2, 9, 5), I32(3), 1.0f), TN_ERR_SHAPE);
}

static tn_tensor *unary(tn_tensor *x, int32_t kind, float a)
{
    return tn_op_unary(g, x, &(tn_unary_params){kind, a, 0.0f});
}

static tn_tensor *glu(tn_tensor *gate, tn_tensor *up, int32_t act)
{
    return tn_op_glu(g, gate, up, &(tn_glu_params){.act = act});
}

static void test_elementwise(void)
{
    for (int32_t kind = 0; kind < TN_UNARY_COUNT; kind++) ACCEPTS(unary(F32(2, 3), kind, 1.0f), F32, 2, 3);
    REJECTS(unary(F32(2), -1, 1.0f), TN_ERR_ARG);
    REJECTS(unary(F32(2), TN_UNARY_COUNT, 1.0f), TN_ERR_ARG);
    REJECTS(unary(F32(2), TN_UNARY_SOFTCAP, 0.0f), TN_ERR_ARG);
    REJECTS(unary(OF(F16, 2), TN_UNARY_SILU, 0.0f), TN_ERR_TYPE);

    for (int32_t kind = 0; kind < TN_BINARY_COUNT; kind++)
        ACCEPTS(tn_op_binary(g, kind, F32(2, 3), F32(3)), F32, 2, 3);
    ACCEPTS(tn_op_mul(g, F32(4, 1, 3), F32(2, 1)), F32, 4, 2, 3);
    REJECTS(tn_op_binary(g, TN_BINARY_COUNT, F32(2), F32(2)), TN_ERR_ARG);
    REJECTS(tn_op_binary(g, -1, F32(2), F32(2)), TN_ERR_ARG);
    REJECTS(tn_op_add(g, F32(2, 3), F32(2)), TN_ERR_SHAPE);
    REJECTS(tn_op_add(g, F32(2), I32(2)), TN_ERR_TYPE);

    ACCEPTS(glu(F32(2, 3), F32(2, 3), TN_UNARY_SILU), F32, 2, 3);
    REJECTS(glu(F32(2, 3), F32(3), TN_UNARY_SILU), TN_ERR_SHAPE);
    REJECTS(glu(F32(3), OF(F16, 3), TN_UNARY_SILU), TN_ERR_TYPE);
    REJECTS(glu(F32(3), F32(3), TN_UNARY_COUNT), TN_ERR_ARG);
}

static tn_tensor *top_k(tn_tensor *x, tn_tensor *bias, int32_t k, int32_t groups, int32_t used)
{
    return tn_op_top_k(g, x, bias, &(tn_top_k_params){k, groups, used});
}

static void test_rows(void)
{
    for (int32_t kind = 0; kind < TN_REDUCE_COUNT; kind++)
        ACCEPTS(tn_op_reduce(g, F32(2, 3), kind), F32, 2, 1);
    REJECTS(tn_op_reduce(g, F32(2, 3), TN_REDUCE_COUNT), TN_ERR_ARG);
    REJECTS(tn_op_reduce(g, I32(2, 3), TN_REDUCE_SUM), TN_ERR_TYPE);
    REJECTS(tn_op_reduce(g, tn_op_permute(g, F32(2, 3), (int32_t[]){1, 0}), TN_REDUCE_SUM), TN_ERR_SHAPE);

    ACCEPTS(tn_op_softmax(g, F32(2, 3), NULL, 1.0f), F32, 2, 3);
    ACCEPTS(tn_op_softmax(g, F32(4, 2, 3), F32(2, 3), 1.0f), F32, 4, 2, 3);
    REJECTS(tn_op_softmax(g, F32(4, 2, 3), F32(2, 1), 1.0f), TN_ERR_SHAPE);
    REJECTS(tn_op_softmax(g, F32(4, 2, 3), F32(3, 3), 1.0f), TN_ERR_SHAPE);
    REJECTS(tn_op_softmax(g, I32(2, 3), NULL, 1.0f), TN_ERR_TYPE);

    ACCEPTS(tn_op_argmax(g, F32(2, 3)), I32, 2, 1);
    REJECTS(tn_op_argmax(g, I32(2, 3)), TN_ERR_TYPE);

    ACCEPTS(top_k(F32(2, 8), NULL, 3, 0, 0), I32, 2, 3);
    ACCEPTS(top_k(F32(2, 8), F32(8), 4, 4, 2), I32, 2, 4);
    REJECTS(top_k(F32(2, 8), NULL, 0, 0, 0), TN_ERR_ARG);
    REJECTS(top_k(F32(2, 8), NULL, 9, 0, 0), TN_ERR_ARG);
    REJECTS(top_k(F32(2, 8), NULL, 2, 3, 1), TN_ERR_ARG);
    REJECTS(top_k(F32(2, 8), NULL, 2, 4, 5), TN_ERR_ARG);
    REJECTS(top_k(F32(2, 8), NULL, 3, 4, 1), TN_ERR_ARG);
    REJECTS(top_k(F32(2, 8), F32(7), 2, 0, 0), TN_ERR_SHAPE);

    ACCEPTS(tn_op_rms_norm(g, F32(2, 8), NULL, 1e-5f), F32, 2, 8);
    ACCEPTS(tn_op_rms_norm(g, F32(2, 8), F32(8), 1e-5f), F32, 2, 8);
    REJECTS(tn_op_rms_norm(g, F32(2, 8), F32(4), 1e-5f), TN_ERR_SHAPE);
    REJECTS(tn_op_rms_norm(g, F32(2, 8), OF(F16, 8), 1e-5f), TN_ERR_TYPE);
    ACCEPTS(tn_op_layer_norm(g, F32(2, 8), NULL, F32(8), 1e-5f), F32, 2, 8);
    ACCEPTS(tn_op_layer_norm(g, F32(2, 8), F32(8), F32(8), 1e-5f), F32, 2, 8);
    REJECTS(tn_op_layer_norm(g, F32(2, 8), F32(8), F32(2, 8), 1e-5f), TN_ERR_SHAPE);
    REJECTS(tn_op_layer_norm(g, OF(BF16, 2, 8), NULL, NULL, 1e-5f), TN_ERR_TYPE);
}

static tn_tensor *rope(tn_tensor *x, tn_tensor *pos, tn_tensor *factors, int32_t mode, int32_t n_rot,
                       float base)
{
    return tn_op_rope(g, x, pos, factors, &(tn_rope_params){.mode = mode, .n_rot = n_rot, .base = base});
}

static tn_tensor *attention_of(tn_tensor *q, tn_tensor *k, tn_tensor *v, int64_t n_seq, int32_t queries)
{
    tn_attention_args a = {q, k, v, I32(n_seq + 1), I32(2), I32(2, 3), NULL, queries};
    return tn_op_attention(g, &a, &(tn_attention_params){.scale = 1.0f, .causal = 1});
}

static tn_tensor *attention(tn_tensor *q, tn_tensor *k, tn_tensor *v, int64_t n_seq)
{
    return attention_of(q, k, v, n_seq, TN_QUERIES_ANY);
}

static void test_positions_and_cache(void)
{
    ACCEPTS(rope(F32(3, 2, 8), I32(3), NULL, TN_ROPE_NEOX, 8, 1e4f), F32, 3, 2, 8);
    ACCEPTS(rope(F32(3, 2, 8), I32(3), F32(3), TN_ROPE_NORM, 6, 1e4f), F32, 3, 2, 8);
    REJECTS(rope(F32(3, 2, 8), I32(3), NULL, TN_ROPE_NORM, 10, 1e4f), TN_ERR_ARG);
    REJECTS(rope(F32(3, 2, 8), I32(3), NULL, TN_ROPE_NORM, 7, 1e4f), TN_ERR_ARG);
    REJECTS(rope(F32(3, 2, 8), I32(3), NULL, TN_ROPE_NORM, 0, 1e4f), TN_ERR_ARG);
    REJECTS(rope(F32(3, 2, 8), I32(3), NULL, 2, 8, 1e4f), TN_ERR_ARG);
    REJECTS(rope(F32(3, 2, 8), I32(3), NULL, TN_ROPE_NORM, 8, 0.0f), TN_ERR_ARG);
    REJECTS(rope(F32(3, 2, 8), I32(2), NULL, TN_ROPE_NORM, 8, 1e4f), TN_ERR_SHAPE);
    REJECTS(rope(F32(3, 2, 8), I32(3), F32(3), TN_ROPE_NORM, 8, 1e4f), TN_ERR_SHAPE);
    REJECTS(rope(F32(3, 8), I32(3), NULL, TN_ROPE_NORM, 8, 1e4f), TN_ERR_SHAPE);
    REJECTS(rope(F32(3, 2, 8), F32(3), NULL, TN_ROPE_NORM, 8, 1e4f), TN_ERR_TYPE);

    ACCEPTS(tn_op_cache_write(g, STATE(Q8_0, 4, 2, 16, 32), F32(3, 2, 20), I32(3)), Q8_0, 4, 2, 16, 32);
    REJECTS(tn_op_cache_write(g, STATE(F16, 4, 2, 16, 8), F32(3, 3, 8), I32(3)), TN_ERR_SHAPE);
    REJECTS(tn_op_cache_write(g, STATE(F16, 4, 2, 16, 8), F32(3, 2, 9), I32(3)), TN_ERR_SHAPE);
    REJECTS(tn_op_cache_write(g, STATE(F16, 4, 2, 16, 8), F32(3, 2, 8), I32(2)), TN_ERR_SHAPE);
    REJECTS(tn_op_cache_write(g, STATE(F16, 2, 16, 8), F32(3, 2, 8), I32(3)), TN_ERR_SHAPE);
    REJECTS(tn_op_cache_write(g, STATE(F16, 4, 2, 16, 8), OF(F16, 3, 2, 8), I32(3)), TN_ERR_TYPE);
    REJECTS(tn_op_cache_write(g, STATE(IQ2_XS, 4, 2, 16, 256), F32(3, 2, 8), I32(3)), TN_ERR_TYPE);
    REJECTS(tn_op_cache_write(g, STATE(F16, 4, 2, 16, 8), F32(3, 2, 8), F32(3)), TN_ERR_TYPE);

    ACCEPTS(attention(F32(5, 4, 8), OF(F16, 6, 2, 16, 8), OF(Q8_0, 6, 2, 16, 32), 2), F32, 5, 4, 32);
    for (int32_t way = TN_QUERIES_ANY; way <= TN_QUERIES_MIXED; way++)
        ACCEPTS(attention_of(F32(2, 4, 8), OF(F16, 6, 2, 16, 8), OF(F16, 6, 2, 16, 8), 2, way), F32, 2, 4, 8);
    for (int32_t way = TN_QUERIES_ANY - 1; way <= TN_QUERIES_MIXED + 1; way += TN_QUERIES_MIXED + 2)
        REJECTS(attention_of(F32(2, 4, 8), OF(F16, 6, 2, 16, 8), OF(F16, 6, 2, 16, 8), 2, way), TN_ERR_ARG);
    REJECTS(attention(F32(5, 3, 8), OF(F16, 6, 2, 16, 8), OF(F16, 6, 2, 16, 8), 2), TN_ERR_SHAPE);
    REJECTS(attention(F32(5, 4, 9), OF(F16, 6, 2, 16, 8), OF(F16, 6, 2, 16, 8), 2), TN_ERR_SHAPE);
    REJECTS(attention(F32(5, 4, 8), OF(F16, 6, 2, 16, 8), OF(F16, 5, 2, 16, 8), 2), TN_ERR_SHAPE);
    REJECTS(attention(F32(5, 4, 8), OF(F16, 6, 2, 16, 8), OF(F16, 6, 2, 8, 8), 2), TN_ERR_SHAPE);
    REJECTS(attention(F32(5, 4, 8), OF(F16, 6, 2, 16, 8), OF(F16, 6, 2, 16, 8), 3), TN_ERR_SHAPE);
    REJECTS(attention(OF(F16, 5, 4, 8), OF(F16, 6, 2, 16, 8), OF(F16, 6, 2, 16, 8), 2), TN_ERR_TYPE);
}

static tn_tensor *short_conv(tn_tensor *state, tn_tensor *x, tn_tensor *w, tn_tensor *slots)
{
    return tn_op_short_conv(g, &(tn_short_conv_args){state, x, w, I32(3), slots}, NULL);
}

#define MATRICES(type) STATE(type, 4, 6, 8, 9) // of four slots with six heads
static tn_tensor *delta_rule(tn_tensor *state, tn_tensor *q, tn_tensor *v, tn_tensor *beta, tn_tensor *slots)
{
    tn_delta_rule_args a = {state, q, q, v, beta, beta, I32(3), slots};
    return tn_op_delta_rule(g, &a, &(tn_delta_rule_params){.scale = 1.0f}, NULL);
}

// Only states are written, and an op reads what the last write left, of itself and through views.
static void test_versions(void)
{
    REJECTS(tn_op_cache_write(g, OF(F16, 4, 2, 16, 8), F32(3, 2, 8), I32(3)), TN_ERR_ARG);
    REJECTS(tn_op_cache_write(g, WEIGHT("w", 4, 2, 16, 8), F32(3, 2, 8), I32(3)), TN_ERR_ARG);
    REJECTS(tn_op_cache_write(g, tn_op_copy(g, OF(F16, 4, 2, 16, 8), TN_TYPE_F16), F32(3, 2, 8), I32(3)),
            TN_ERR_ARG);
    TEST_CHECK(message_has(ctx, "it is no state"));
    for (int32_t read = 0; read < 5; read++) {
        begin();
        tn_tensor *first = STATE(F16, 4, 2, 16, 8), *rows = tn_op_slice(g, first, 0, 1, 2), *kept =
            tn_op_copy(g, first, TN_TYPE_F16), *next = tn_op_cache_write(g, first, F32(3, 2, 8), I32(3));
        tn_tensor *const values[] = {first, rows, kept, next, tn_op_slice(g, next, 0, 1, 2)};
        TEST_CHECK_STATUS(tn_graph_status(g), TN_OK);
        bool old = read < 2;
        TEST_CHECK((tn_op_copy(g, values[read], TN_TYPE_F32) == NULL) == old);
        TEST_CHECK_STATUS(tn_graph_status(g), old ? TN_ERR_ARG : TN_OK);
        TEST_CHECK(!old || message_has(ctx, "an earlier version of a state"));
        tn_graph_destroy(&g);
    }
}

static void test_recurrent(void)
{
    ACCEPTS(short_conv(STATE(F32, 4, 3, 10), F32(5, 10), F32(10, 4), I32(2, 2)), F32, 5, 10);
    REJECTS(short_conv(STATE(F32, 4, 3, 10), F32(5, 9), F32(10, 4), I32(2, 2)), TN_ERR_SHAPE);
    REJECTS(short_conv(STATE(F32, 4, 3, 10), F32(5, 10), F32(10, 3), I32(2, 2)), TN_ERR_SHAPE);
    REJECTS(short_conv(STATE(F32, 4, 3, 10), F32(5, 10), F32(10, 4), I32(3, 2)), TN_ERR_SHAPE);
    REJECTS(short_conv(STATE(F32, 4, 3, 10), F32(5, 10), F32(10, 4), I32(2, 3)), TN_ERR_SHAPE);
    REJECTS(short_conv(STATE(F32, 4, 3, 10), F32(5, 10), F32(10, 4), F32(2, 2)), TN_ERR_TYPE);
    REJECTS(short_conv(STATE(F32, 4, 3, 10), F32(5, 10), OF(F16, 10, 4), I32(2, 2)), TN_ERR_TYPE);
    REJECTS(short_conv(STATE(F16, 4, 3, 10), F32(5, 10), F32(10, 4), I32(2, 2)), TN_ERR_TYPE);

    ACCEPTS(delta_rule(MATRICES(F32), F32(5, 3, 8), F32(5, 6, 9), F32(5, 6), I32(2, 2)), F32, 5, 6, 9);
    REJECTS(delta_rule(MATRICES(F32), F32(5, 4, 8), F32(5, 6, 9), F32(5, 6), I32(2, 2)), TN_ERR_SHAPE);
    REJECTS(delta_rule(MATRICES(F32), F32(5, 3, 9), F32(5, 6, 9), F32(5, 6), I32(2, 2)), TN_ERR_SHAPE);
    REJECTS(delta_rule(MATRICES(F32), F32(5, 3, 8), F32(5, 6, 8), F32(5, 6), I32(2, 2)), TN_ERR_SHAPE);
    REJECTS(delta_rule(MATRICES(F32), F32(5, 3, 8), F32(5, 6, 9), F32(5, 3), I32(2, 2)), TN_ERR_SHAPE);
    REJECTS(delta_rule(MATRICES(F32), F32(5, 3, 8), F32(5, 6, 9), F32(5, 6), I32(3, 2)), TN_ERR_SHAPE);
    REJECTS(delta_rule(MATRICES(F16), F32(5, 3, 8), F32(5, 6, 9), F32(5, 6), I32(2, 2)), TN_ERR_TYPE);
}

static tn_tensor *moe_weights(tn_tensor *x, tn_tensor *ids, int32_t gating)
{
    return tn_op_moe_weights(g, x, ids, &(tn_moe_weights_params){.gating = gating});
}

static void test_products(void)
{
    ACCEPTS(tn_op_matmul(g, F32(3, 64), OF(Q4_0, 5, 64)), F32, 3, 5);
    ACCEPTS(tn_op_matmul(g, F32(2, 3, 8), F32(5, 8)), F32, 2, 3, 5);
    REJECTS(tn_op_matmul(g, F32(3, 8), F32(5, 9)), TN_ERR_SHAPE);
    REJECTS(tn_op_matmul(g, F32(3, 8), F32(2, 5, 8)), TN_ERR_SHAPE);
    REJECTS(tn_op_matmul(g, OF(F16, 3, 8), F32(5, 8)), TN_ERR_TYPE);
    REJECTS(tn_op_matmul(g, I32(3, 8), F32(5, 8)), TN_ERR_TYPE);

    ACCEPTS(tn_op_matmul_id(g, F32(3, 1, 8), F32(4, 5, 8), I32(3, 2)), F32, 3, 2, 5);
    ACCEPTS(tn_op_matmul_id(g, F32(3, 2, 8), F32(4, 5, 8), I32(3, 2)), F32, 3, 2, 5);
    REJECTS(tn_op_matmul_id(g, F32(3, 3, 8), F32(4, 5, 8), I32(3, 2)), TN_ERR_SHAPE);
    REJECTS(tn_op_matmul_id(g, F32(3, 1, 8), F32(4, 5, 9), I32(3, 2)), TN_ERR_SHAPE);
    REJECTS(tn_op_matmul_id(g, F32(3, 1, 8), F32(4, 5, 8), I32(2, 2)), TN_ERR_SHAPE);
    REJECTS(tn_op_matmul_id(g, F32(3, 1, 8), F32(4, 5, 8), F32(3, 2)), TN_ERR_TYPE);

    ACCEPTS(moe_weights(F32(3, 8), I32(3, 2), TN_GATING_SIGMOID), F32, 3, 2);
    REJECTS(moe_weights(F32(3, 8), I32(2, 2), TN_GATING_SIGMOID), TN_ERR_SHAPE);
    REJECTS(moe_weights(F32(3, 8), I32(3, 2), 4), TN_ERR_ARG);
    REJECTS(moe_weights(F32(3, 8), F32(3, 2), TN_GATING_NONE), TN_ERR_TYPE);

    ACCEPTS(tn_op_moe_sum(g, F32(3, 2, 8), F32(3, 2)), F32, 3, 8);
    REJECTS(tn_op_moe_sum(g, F32(3, 2, 8), F32(3, 3)), TN_ERR_SHAPE);
    REJECTS(tn_op_moe_sum(g, F32(3, 2, 8), F32(2, 2)), TN_ERR_SHAPE);
    REJECTS(tn_op_moe_sum(g, F32(3, 2, 8), I32(3, 2)), TN_ERR_TYPE);
}

// Ops that only passes record: through the common entry.
static tn_tensor *fused(int32_t op, int32_t n_src, tn_tensor *const *src, const void *params)
{
    tn_node *n;
    return tn_graph_record(g, op, n_src, src, params, &n) == TN_OK ? n->dst[0] : NULL;
}
#define FUSED(op, params, ...)                                                                               \
    fused(TN_OP_##op, (int32_t)(sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(tn_tensor *)),                 \
          (tn_tensor *const[]){__VA_ARGS__}, params)

static void test_fused(void)
{
    const tn_linear_params bias = {.has_bias = 1, .act = TN_UNARY_NONE},
                           both = {.has_bias = 1, .has_residual = 1};
    ACCEPTS(FUSED(linear, &both, F32(3, 8), F32(5, 8), F32(5), F32(3, 5)), F32, 3, 5);
    REJECTS(FUSED(linear, &both, F32(3, 8), F32(5, 8), F32(5), F32(5)), TN_ERR_SHAPE);
    REJECTS(FUSED(linear, &bias, F32(3, 8), F32(5, 8), F32(4)), TN_ERR_SHAPE);
    REJECTS(FUSED(linear, &bias, F32(3, 8), F32(5, 8)), TN_ERR_ARG);
    const tn_matmul_multi_params two = {.n_weights = 2, .has_bias = {0, 1}}, four = {.n_weights = 4};
    ACCEPTS(FUSED(matmul_multi, &two, F32(3, 8), F32(5, 8), F32(4, 8), F32(4)), F32, 3, 5);
    REJECTS(FUSED(matmul_multi, &two, F32(3, 8), F32(5, 8), F32(4, 8), F32(5)), TN_ERR_SHAPE);
    REJECTS(FUSED(matmul_multi, &two, F32(3, 8), F32(5, 8), F32(4, 8), F32(4), F32(4)), TN_ERR_ARG);
    REJECTS(FUSED(matmul_multi, &four, F32(3, 8), F32(5, 8), F32(4, 8)), TN_ERR_ARG);
    const tn_matmul_glu_params silu = {.glu = {.act = TN_UNARY_SILU}};
    ACCEPTS(FUSED(matmul_glu, &silu, F32(3, 8), F32(5, 8), F32(5, 8)), F32, 3, 5);
    REJECTS(FUSED(matmul_glu, &silu, F32(3, 8), F32(5, 8), F32(4, 8)), TN_ERR_SHAPE);
    REJECTS(FUSED(matmul_glu, &silu, F32(3, 8), F32(5, 8)), TN_ERR_ARG);
    ACCEPTS(FUSED(matmul_id_glu, &silu, F32(3, 1, 8), F32(4, 5, 8), F32(4, 5, 8), I32(3, 2)), F32, 3, 2, 5);
    REJECTS(FUSED(matmul_id_glu, &silu, F32(3, 1, 8), F32(4, 5, 8), F32(4, 6, 8), I32(3, 2)), TN_ERR_SHAPE);
    const tn_add_rms_norm_params eps = {1e-5f};
    ACCEPTS(FUSED(add_rms_norm, &eps, F32(3, 8), F32(3, 8), F32(8)), F32, 3, 8);
    REJECTS(FUSED(add_rms_norm, &eps, F32(3, 8), F32(8)), TN_ERR_SHAPE);
    const tn_norm_rope_params turn = {1e-5f, {.n_rot = 8, .base = 1e4f}};
    ACCEPTS(FUSED(norm_rope, &turn, F32(3, 2, 8), F32(8), I32(3)), F32, 3, 2, 8);
    REJECTS(FUSED(norm_rope, &turn, F32(3, 2, 8), F32(6), I32(3)), TN_ERR_SHAPE);
    const tn_moe_route_params logits = {.top_k = {.k = 2}},
                              routed = {.top_k = {.k = 2}, .has_product = 1, .has_norm = 1};
    const tn_moe_route_params odd = {.top_k = {.k = 2}, .has_norm = 1},
                              chosen = {.top_k = {.k = 2}, .choice = 3};
    ACCEPTS(FUSED(moe_route, &logits, F32(3, 8)), I32, 3, 2);
    ACCEPTS(FUSED(moe_route, &routed, F32(3, 8), F32(6, 8), F32(8)), I32, 3, 2);
    REJECTS(FUSED(moe_route, &routed, F32(3, 8), F32(6, 8), F32(6)), TN_ERR_SHAPE);
    REJECTS(FUSED(moe_route, &routed, F32(3, 8), F32(1, 8), F32(8)), TN_ERR_ARG);
    REJECTS(FUSED(moe_route, &routed, F32(3, 8), F32(6, 8)), TN_ERR_ARG);
    REJECTS(FUSED(moe_route, &odd, F32(3, 8), F32(8)), TN_ERR_ARG);
    REJECTS(FUSED(moe_route, &chosen, F32(3, 8)), TN_ERR_ARG);
    REJECTS(FUSED(moe_route, &logits, F32(1, 3, 8)), TN_ERR_SHAPE);
    REJECTS(FUSED(moe_route, &logits, F32(1, 4097)), TN_ERR_SHAPE);
    const tn_moe_combine_params one = {.n_added = 1}, factor = {.n_added = 2, .has_factor = 1},
                                none = {.n_added = 0};
    ACCEPTS(FUSED(moe_combine, &one, F32(3, 2, 8), F32(3, 2), F32(3, 8)), F32, 3, 8);
    ACCEPTS(FUSED(moe_combine, &factor, F32(3, 2, 8), F32(3, 2), F32(3, 8), F32(3, 8), F32(3, 1)), F32, 3, 8);
    REJECTS(FUSED(moe_combine, &one, F32(3, 2, 8), F32(3, 2), F32(8)), TN_ERR_SHAPE);
    REJECTS(FUSED(moe_combine, &factor, F32(3, 2, 8), F32(3, 2), F32(3, 8), F32(3, 8), F32(3)), TN_ERR_SHAPE);
    REJECTS(FUSED(moe_combine, &none, F32(3, 2, 8), F32(3, 2), F32(3, 8)), TN_ERR_ARG);
    ACCEPTS(FUSED(transfer, NULL, F32(3, 8)), F32, 3, 8);
    REJECTS(FUSED(transfer, NULL, tn_op_slice(g, F32(3, 8), 1, 0, 4)), TN_ERR_SHAPE);
}

static void test_null_operands(void)
{
    tn_attention_args a = {0};
    REJECTS(tn_op_reshape(g, NULL, SHAPE(1)), TN_ERR_ARG);
    REJECTS(tn_op_permute(g, NULL, (int32_t[]){0}), TN_ERR_ARG);
    REJECTS(tn_op_slice(g, NULL, 0, 0, 1), TN_ERR_ARG);
    REJECTS(tn_op_copy(g, NULL, TN_TYPE_F32), TN_ERR_ARG);
    REJECTS(tn_op_concat(g, F32(2), NULL, 0), TN_ERR_ARG);
    REJECTS(unary(NULL, TN_UNARY_SILU, 0.0f), TN_ERR_ARG);
    REJECTS(tn_op_add(g, NULL, F32(2)), TN_ERR_ARG);
    REJECTS(tn_op_mul(g, F32(2), NULL), TN_ERR_ARG);
    REJECTS(tn_op_reduce(g, NULL, TN_REDUCE_SUM), TN_ERR_ARG);
    REJECTS(tn_op_softmax(g, NULL, F32(2), 1.0f), TN_ERR_ARG);
    REJECTS(tn_op_argmax(g, NULL), TN_ERR_ARG);
    REJECTS(top_k(NULL, NULL, 1, 0, 0), TN_ERR_ARG);
    REJECTS(tn_op_get_rows(g, F32(2, 2), NULL, 1.0f), TN_ERR_ARG);
    REJECTS(tn_op_rms_norm(g, NULL, F32(2), 1e-5f), TN_ERR_ARG);
    REJECTS(tn_op_layer_norm(g, NULL, NULL, NULL, 1e-5f), TN_ERR_ARG);
    REJECTS(glu(F32(2), NULL, TN_UNARY_SILU), TN_ERR_ARG);
    REJECTS(rope(F32(3, 2, 8), NULL, NULL, TN_ROPE_NORM, 8, 1e4f), TN_ERR_ARG);
    REJECTS(tn_op_cache_write(g, STATE(F16, 4, 2, 16, 8), F32(3, 2, 8), NULL), TN_ERR_ARG);
    REJECTS(tn_op_attention(g, &a, &(tn_attention_params){0}), TN_ERR_ARG);
    REJECTS(tn_op_matmul(g, F32(2), NULL), TN_ERR_ARG);
    REJECTS(tn_op_matmul_id(g, F32(3, 1, 8), NULL, I32(3, 2)), TN_ERR_ARG);
    REJECTS(moe_weights(F32(3, 8), NULL, TN_GATING_SOFTMAX), TN_ERR_ARG);
    REJECTS(tn_op_moe_sum(g, NULL, F32(3, 2)), TN_ERR_ARG);
}

// --- views, computed -------------------------------------------------------------------------------

enum { D0 = 3, D1 = 4, D2 = 6, N = D0 * D1 * D2 };

static float at(int64_t i, int64_t j, int64_t k)
{
    return (float)((i * D1 + j) * D2 + k);
}

// Copies the view of x [3, 4, 6] = 0, 1, 2, .. to a result; the case ends here.
static bool run_view(tn_tensor *view, float *out, size_t n)
{
    float x[N];
    for (int i = 0; i < N; i++) x[i] = (float)i;
    tn_graph_output(g, "y", tn_op_copy(g, view, TN_TYPE_F32));
    tn_binding in = {"x0", x, sizeof x}, y = {"y", out, n * sizeof *out};
    tn_status status = run_graph(g, &(run_args){.inputs = &in, .n_inputs = 1}, &y, 1);
    tn_graph_destroy(&g);
    return TEST_CHECK_STATUS(status, TN_OK);
}

static void test_view_values(void)
{
    float y[N];
    int bad = 0;
    begin(); // [6, 3, 4] from the last axis first
    if (run_view(tn_op_permute(g, F32(D0, D1, D2), (int32_t[]){2, 0, 1}), y, N))
        for (int i = 0; i < N; i++) bad += y[i] != at(i / D1 % D0, i % D1, i / (D0 * D1));
    begin(); // a slice in the middle of two axes
    if (run_view(tn_op_slice(g, tn_op_slice(g, F32(D0, D1, D2), 2, 2, 3), 1, 1, 2), y, D0 * 2 * 3))
        for (int i = 0; i < D0 * 2 * 3; i++) bad += y[i] != at(i / 6, 1 + i / 3 % 2, 2 + i % 3);
    begin(); // rows of a column slice split into heads: strided, yet a view
    tn_tensor *rows = tn_op_reshape(g, F32(D0, D1, D2), SHAPE(D0 * D1, D2));
    if (run_view(tn_op_reshape(g, tn_op_slice(g, rows, 1, 2, 4), SHAPE(D0, D1, 2, 2)), y, D0 * D1 * 4))
        for (int i = 0; i < D0 * D1 * 4; i++) bad += y[i] != at(i / (D1 * 4), i / 4 % D1, 2 + i % 4);
    begin(); // a permuted view reshaped where nothing needs to move: [4, 3, 6] -> [4, 3, 2, 3]
    tn_tensor *turned = tn_op_permute(g, F32(D0, D1, D2), (int32_t[]){1, 0, 2});
    if (run_view(tn_op_reshape(g, turned, SHAPE(D1, D0, 2, 3)), y, N))
        for (int i = 0; i < N; i++) bad += y[i] != at(i / D2 % D0, i / (D0 * D2), i % D2);
    begin(); // a view of a view of a view
    tn_tensor *v = tn_op_slice(g, F32(D0, D1, D2), 0, 1, 2);
    v = tn_op_slice(g, tn_op_permute(g, v, (int32_t[]){2, 1, 0}), 0, 4, 2);
    if (run_view(tn_op_slice(g, v, 1, 3, 1), y, 4))
        for (int i = 0; i < 4; i++) bad += y[i] != at(1 + i % 2, 3, 4 + i / 2);
    begin(); // an op on a view leaves its source as it is
    tn_tensor *x = F32(D0, D1, D2), *last = tn_op_slice(g, x, 2, D2 - 1, 1);
    if (run_view(tn_op_concat(g, tn_op_scale(g, last, -1.0f), tn_op_slice(g, x, 2, 4, 2), 2), y, D0 * D1 * 3))
        for (int i = 0; i < D0 * D1; i++)
            bad += y[3 * i] != -at(0, i, 5) || y[3 * i + 1] != at(0, i, 4) || y[3 * i + 2] != at(0, i, 5);
    TEST_CHECK(bad == 0);
}

// Ops by their number: the same rules as through their functions.
static void test_by_number(void)
{
    tn_rms_norm_params p = {1e-5f};
    tn_tensor *all[3];
#define BY_NUMBER(op, n_src, params, ...) tn_graph_op(g, op, n_src, (tn_tensor *[]){__VA_ARGS__}, params, all)
    ACCEPTS(BY_NUMBER(TN_OP_rms_norm, 2, &p, F32(3, 8), F32(8)), F32, 3, 8);
    TEST_CHECK(all[0] && !all[1] && !all[2]);
    ACCEPTS(BY_NUMBER(TN_OP_rms_norm, 2, &p, F32(3, 8), NULL), F32, 3, 8);
    ACCEPTS(BY_NUMBER(TN_OP_argmax_logprob, 1, NULL, F32(3, 8)), I32, 3, 1);
    TEST_CHECK(all[0] && all[1] && !all[2]);
    REJECTS(BY_NUMBER(TN_OP_rms_norm, 0, &p, NULL), TN_ERR_ARG);
    REJECTS(BY_NUMBER(TN_OP_rms_norm, 3, &p, F32(3, 8), F32(8), F32(8)), TN_ERR_ARG);
    REJECTS(BY_NUMBER(TN_OP_rms_norm, 1, NULL, F32(3, 8)), TN_ERR_ARG);
    REJECTS(BY_NUMBER(TN_OP_rms_norm, 1, &p, NULL), TN_ERR_ARG);
    REJECTS(BY_NUMBER(TN_OP_transfer, 1, NULL, F32(3, 8)), TN_ERR_ARG);
    REJECTS(BY_NUMBER(-1, 1, NULL, F32(3, 8)), TN_ERR_ARG);
    REJECTS(BY_NUMBER(TN_OP_COUNT, 1, NULL, F32(3, 8)), TN_ERR_ARG);
#undef BY_NUMBER
}

int main(void)
{
    ctx = graph_context("reference", 1);
    test_inputs();
    test_names();
    test_outputs();
    test_sticky();
    test_views();
    test_sizes();
    test_moves();
    test_elementwise();
    test_rows();
    test_positions_and_cache();
    test_versions();
    test_recurrent();
    test_products();
    test_fused();
    test_null_operands();
    test_by_number();
    test_view_values();
    tn_context_destroy(&ctx);
    return test_done();
}
