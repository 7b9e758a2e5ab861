// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The description of products (ops/product.h), names of operands (ops/operands.h) and sets of ops
// (ops/ops.h): backends read their operands through these, so the order that plans and saved graphs use must
// not move.
#include "ops/operands.h"
#include "ops/product.h"
#include "tests/unit/test.h"

#include <string.h>

static const char *name_of(const tn_step *s, int32_t i)
{
    static char buf[32];
    return tn_source_name(s->op, s->params, i, buf, sizeof buf);
}

static void test_linear(void)
{
    tn_linear_params params = {
        .act = TN_UNARY_GELU, .has_bias = 1, .has_residual = 1, .has_norm = 1, .eps = 0.5f};
    tn_step s = {.op = TN_OP_linear, .n_src = 5, .n_dst = 1, .params = &params};
    s.src[0].ne[3] = 64;
    tn_product p = tn_product_get(&s);
    TEST_CHECK(p.n_weights == 1 && p.n_results == 1 && p.k == 64 && p.act == TN_UNARY_GELU && p.eps == 0.5f);
    TEST_CHECK(p.x == &s.src[0] && p.w[0] == &s.src[1] && p.bias[0] == &s.src[2] && p.residual == &s.src[3]);
    TEST_CHECK(p.norm == &s.src[4] && !p.ids && !p.glu && p.y[0] == &s.dst[0]);
    TEST_CHECK(strcmp(name_of(&s, 1), "w") == 0 && strcmp(name_of(&s, 3), "residual") == 0);
    params.has_bias = 0; // what follows moves up
    TEST_CHECK(tn_product_get(&s).n_weights == 0);
    s.n_src = 4;
    p = tn_product_get(&s);
    TEST_CHECK(!p.bias[0] && p.at.bias[0] == -1 && p.at.residual == 2 && p.at.norm == 3 && p.at.count == 4);
}

static void test_multi(void)
{
    tn_matmul_multi_params params = {.n_weights = 3, .has_bias = {1, 0, 1}, .has_norm = 1};
    tn_step s = {.op = TN_OP_matmul_multi, .n_src = 7, .n_dst = 3, .params = &params};
    tn_product p = tn_product_get(&s);
    TEST_CHECK(p.n_weights == 3 && p.n_results == 3 && p.w[2] == &s.src[3] && p.y[2] == &s.dst[2]);
    TEST_CHECK(p.bias[0] == &s.src[4] && !p.bias[1] && p.bias[2] == &s.src[5] && p.norm == &s.src[6]);
    TEST_CHECK(strcmp(name_of(&s, 5), "bias2") == 0 && strcmp(name_of(&s, 7), "source 7") == 0);
    params.n_weights = 4; // hostile: no more than the operands have places for
    TEST_CHECK(tn_product_get(&s).n_weights == 0 && tn_product_sources_get(s.op, &params).n_weights == 0);
}

static void test_experts(void)
{
    tn_matmul_id_glu_params params = {.glu = {.act = TN_UNARY_SILU}};
    tn_step s = {.op = TN_OP_matmul_id_glu, .n_src = 4, .n_dst = 1, .params = &params};
    for (int32_t d = 0; d < TN_MAX_DIMS; d++) s.src[0].ne[d] = s.src[1].ne[d] = s.src[3].ne[d] = d + 1;
    tn_product p = tn_product_get(&s);
    TEST_CHECK(p.n_weights == 2 && p.n_results == 1 && p.w[1] == &s.src[2] && p.ids == &s.src[3]);
    TEST_CHECK(p.glu == &params.glu && p.y[0] == &s.dst[0] && p.y[1] == &s.dst[0] && p.n_experts == 2 &&
               p.m == 24);
    tn_step one = {.op = TN_OP_matmul_id, .n_src = 3, .n_dst = 1};
    TEST_CHECK(tn_product_get(&one).ids == &one.src[2] && !tn_product_get(&one).glu);
    tn_step none = {.op = TN_OP_glu, .n_src = 2, .n_dst = 1};
    TEST_CHECK(tn_product_get(&none).n_weights == 0 && !tn_product_form_get(TN_OP_glu));
}

static void test_params(void)
{
    tn_matmul_glu_params params = {.has_norm = 0};
    const tn_product_form *f = tn_product_form_get(TN_OP_matmul_glu);
    *(int32_t *)tn_product_param(&params, f->has_norm_off) = 1;
    TEST_CHECK(params.has_norm == 1 && !tn_product_param(&params, f->has_bias_off));
    TEST_CHECK(tn_product_param(&params, f->eps_off) == (void *)&params.eps);
}

// Each op belongs to one family; products are divided into those with experts and those without.
static void test_sets(void)
{
    for (int32_t op = 0; op < TN_OP_COUNT; op++) {
        int32_t families = 0;
        for (int32_t f = 0; f < TN_FAMILY_COUNT; f++) families += tn_op_set_has(TN_OP_COUNT + f, op);
        TEST_CHECK(families == 1 && tn_op_set_has(op, op) && !tn_op_set_has(op, (op + 1) % TN_OP_COUNT));
        bool product = (tn_op_info_get(op)->flags & TN_OP_PRODUCT) != 0;
        TEST_CHECK(tn_op_set_has(TN_SET_PRODUCT, op) == product);
        TEST_CHECK(tn_op_set_has(TN_SET_PRODUCT_DENSE, op) + tn_op_set_has(TN_SET_PRODUCT_ID, op) == product);
        // The name of a source that there may be is known: none is called "source 2".
        static const tn_matmul_multi_params widest = {.n_weights = 3};
        int32_t n =
            product || op == TN_OP_moe_route || op == TN_OP_moe_combine ? 0 : tn_op_info_get(op)->n_src_max;
        for (int32_t i = 0; i < n; i++) {
            tn_step s = {.op = op, .params = &widest};
            TEST_CHECK(strncmp(name_of(&s, i), "source", 6) != 0);
        }
    }
    TEST_CHECK(tn_op_set_has(TN_SET_PRODUCT_LINEAR, TN_OP_matmul_multi));
    TEST_CHECK(!tn_op_set_has(TN_SET_PRODUCT_LINEAR, TN_OP_matmul_glu));
    TEST_CHECK(strcmp(tn_family_name(TN_FAMILY_moe), "moe") == 0);
}

static void test_positions(void)
{
    TEST_CHECK(TN_SRC_rope_cache_norm_k == 8 && TN_SRC_attention_sinks == 6 && TN_SRC_delta_rule_slots == 7);
    TEST_CHECK(TN_DST_rope_cache_q == 2 && TN_SRC_rope_cache_COUNT == 10);
    tn_moe_route_params route = {.has_product = 1, .has_choice_bias = 1, .has_norm = 1};
    tn_moe_route_sources r = tn_moe_route_sources_get(&route);
    TEST_CHECK(r.router == 1 && r.bias == -1 && r.choice_bias == 2 && r.norm == 3 && r.count == 4);
    tn_moe_combine_params combine = {.n_added = 1, .has_factor = 1};
    tn_moe_combine_sources c = tn_moe_combine_sources_get(&combine);
    TEST_CHECK(c.added[0] == 2 && c.added[1] == -1 && c.factor == 3 && c.count == 4);
    tn_step s = {.op = TN_OP_moe_combine, .params = &combine};
    TEST_CHECK(strcmp(name_of(&s, 3), "factor") == 0);
}

int main(void)
{
    test_linear();
    test_multi();
    test_experts();
    test_params();
    test_sets();
    test_positions();
    return test_done();
}
