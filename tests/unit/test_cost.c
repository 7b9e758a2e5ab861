// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What steps cost, for every family of ops, against numbers that were derived by hand: they stand as
// products of the extents, so that they can be followed.
#include "ops/cost.h"
#include "ops/operands.h"
#include "ops/product.h"
#include "tests/unit/test.h"

#include <math.h>

enum { F32 = 4, F16 = 2, I32 = 4 }; // bytes
enum { Q4_K_ROW = 256 / 256 * 144, Q8_0_BLOCK = 34 };

static tn_view view(tn_dtype type, int64_t a, int64_t b, int64_t c, int64_t d)
{
    tn_view v = {.dtype = type, .n_dims = 4, .ne = {a, b, c, d}};
    tn_view_set_contiguous(&v);
    return v;
}

static tn_view mat(tn_dtype type, int64_t m, int64_t n)
{
    return view(type, 1, 1, m, n);
}

static tn_step make(int32_t op, const void *params)
{
    return (tn_step){.op = op, .params = params, .n_dst = tn_op_info_get(op)->n_dst};
}

static void source(tn_step *s, tn_view v)
{
    s->src[s->n_src++] = v;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_elementwise(void)
{
    tn_unary_params affine = {TN_UNARY_AFFINE, 2.0f, 1.0f}, silu = {.kind = TN_UNARY_SILU};
    tn_step s = make(TN_OP_unary, &affine);
    source(&s, mat(TN_TYPE_F32, 3, 100));
    s.dst[0] = mat(TN_TYPE_F32, 3, 100);
    tn_cost c = tn_step_cost(&s, NULL);
    TEST_CHECK(c.read[0] == 3 * 100 * F32 && c.written[0] == 3 * 100 * F32);
    TEST_CHECK(c.ops == 2 * 300 && c.product_ops == 0);
    s.params = &silu;
    TEST_CHECK(tn_step_cost(&s, NULL).ops == 4 * 300);

    tn_binary_params add = {TN_BINARY_ADD};
    tn_step b = make(TN_OP_binary, &add); // a row is added to each of three
    source(&b, mat(TN_TYPE_F32, 3, 100)), source(&b, mat(TN_TYPE_F32, 1, 100));
    b.dst[0] = mat(TN_TYPE_F32, 3, 100);
    c = tn_step_cost(&b, NULL);
    TEST_CHECK(tn_cost_bytes(&c) == (300 + 100 + 300) * F32 && c.ops == 300);
    tn_glu_params glu = {.act = TN_UNARY_SILU};
    b.op = TN_OP_glu, b.params = &glu;
    TEST_CHECK(tn_step_cost(&b, NULL).ops == 5 * 300);
}

static void test_move(void)
{
    tn_get_rows_params rows = {0};
    tn_step s = make(TN_OP_get_rows, &rows);
    source(&s, mat(TN_TYPE_Q4_K, 32000, 256)), source(&s, mat(TN_TYPE_I32, 1, 5));
    s.dst[0] = mat(TN_TYPE_F32, 5, 256);
    tn_cost c = tn_step_cost(&s, NULL);
    TEST_CHECK(c.read[0] == 5 * Q4_K_ROW && c.read[1] == 5 * I32 && c.written[0] == 5 * 256 * F32);
    s.src[0] = mat(TN_TYPE_Q4_K, 3, 256); // more rows are wanted than there are
    TEST_CHECK(tn_step_cost(&s, NULL).read[0] == 3 * Q4_K_ROW);

    tn_step w = make(TN_OP_cache_write, NULL); // 7 tokens with 8 heads of 128, as 4 blocks of 34 bytes each
    source(&w, view(TN_TYPE_Q8_0, 64, 8, 32, 128)), source(&w, view(TN_TYPE_F32, 1, 7, 8, 128));
    source(&w, mat(TN_TYPE_I32, 1, 7));
    w.dst[0] = w.src[0];
    c = tn_step_cost(&w, NULL);
    TEST_CHECK(c.read[0] == 0 && c.read[1] == 7 * 8 * 128 * F32 && c.read[2] == 7 * I32);
    TEST_CHECK(c.written[0] == 7 * 8 * 4 * Q8_0_BLOCK && c.ops == 0);

    tn_copy_params copy = {TN_TYPE_F16};
    tn_step k = make(TN_OP_copy, &copy);
    source(&k, mat(TN_TYPE_F32, 2, 64));
    k.dst[0] = mat(TN_TYPE_F16, 2, 64);
    c = tn_step_cost(&k, NULL);
    TEST_CHECK(c.read[0] == 128 * F32 && c.written[0] == 128 * F16);
    k.op = TN_OP_reshape; // views move nothing
    c = tn_step_cost(&k, NULL);
    TEST_CHECK(tn_cost_bytes(&c) == 0);
}

static void test_norm(void)
{
    tn_add_rms_norm_params p = {1e-6f};
    tn_step s = make(TN_OP_add_rms_norm, &p);
    source(&s, mat(TN_TYPE_F32, 2, 64)), source(&s, mat(TN_TYPE_F32, 2, 64));
    source(&s, mat(TN_TYPE_F32, 1, 64));
    s.dst[0] = s.dst[1] = mat(TN_TYPE_F32, 2, 64);
    tn_cost c = tn_step_cost(&s, NULL);
    TEST_CHECK(tn_cost_bytes(&c) == (4 * 128 + 64) * F32 && c.ops == 5 * 128);
    s.op = TN_OP_rms_norm;
    TEST_CHECK(tn_step_cost(&s, NULL).ops == 4 * 128);
    s.op = TN_OP_layer_norm;
    TEST_CHECK(tn_step_cost(&s, NULL).ops == 8 * 128);
}

static void test_rope(void)
{
    tn_rope_cache_params p = {.has_norm = {0, 1}};
    tn_step s = make(TN_OP_rope_cache, &p); // 3 tokens, 32 heads of queries, 8 of keys, each 128
    for (int i = 0; i < 2; i++) source(&s, view(TN_TYPE_F16, 16, 8, 32, 128));
    source(&s, view(TN_TYPE_F32, 1, 3, 32, 128));
    for (int i = 0; i < 2; i++) source(&s, view(TN_TYPE_F32, 1, 3, 8, 128));
    for (int i = 0; i < 2; i++) source(&s, mat(TN_TYPE_I32, 1, 3));
    s.n_src++; // no norm of q
    source(&s, mat(TN_TYPE_F32, 1, 128));
    s.dst[0] = s.src[0], s.dst[1] = s.src[1], s.dst[2] = view(TN_TYPE_F32, 1, 3, 32, 128);
    tn_cost c = tn_step_cost(&s, NULL);
    TEST_CHECK(c.read[0] == 0 && c.read[1] == 0 && c.read[TN_SRC_rope_cache_q] == 3 * 32 * 128 * F32);
    TEST_CHECK(c.written[0] == 3 * 8 * 128 * F16 && c.written[1] == 3 * 8 * 128 * F16);
    TEST_CHECK(c.written[2] == 3 * 32 * 128 * F32);
    TEST_CHECK(c.ops == 3 * (3 * 32 * 128) + (3 + 4) * (3 * 8 * 128)); // k has a norm as well

    tn_rope_params r = {.n_rot = 128};
    tn_step one = make(TN_OP_rope, &r);
    source(&one, view(TN_TYPE_F32, 1, 3, 32, 128)), source(&one, mat(TN_TYPE_I32, 1, 3));
    one.dst[0] = one.src[0];
    TEST_CHECK(tn_step_cost(&one, NULL).ops == 3 * 3 * 32 * 128);
    one.op = TN_OP_norm_rope; // with the four operations of a norm
    TEST_CHECK(tn_step_cost(&one, NULL).ops == (3 + 4) * 3 * 32 * 128);
}

static void test_softmax(void)
{
    tn_softmax_params p = {0};
    tn_step s = make(TN_OP_softmax, &p);
    source(&s, mat(TN_TYPE_F32, 2, 50));
    s.dst[0] = s.src[0];
    TEST_CHECK(tn_step_cost(&s, NULL).ops == 5 * 100);
    source(&s, mat(TN_TYPE_F32, 2, 50));
    TEST_CHECK(tn_step_cost(&s, NULL).ops == 6 * 100);
    tn_step a = make(TN_OP_argmax, NULL);
    source(&a, mat(TN_TYPE_F32, 2, 50));
    a.dst[0] = mat(TN_TYPE_I32, 1, 2);
    tn_cost c = tn_step_cost(&a, NULL);
    TEST_CHECK(tn_cost_bytes(&c) == 100 * F32 + 2 * I32 && c.ops == 100);
    a.op = TN_OP_argmax_logprob, a.n_dst = 2; // and exp and the sum of all
    a.dst[1] = mat(TN_TYPE_F32, 1, 2);
    c = tn_step_cost(&a, NULL);
    TEST_CHECK(tn_cost_bytes(&c) == 100 * F32 + 2 * I32 + 2 * F32 && c.ops == 3 * 100);
}

// 2 sequences, 4 tokens, 8 heads over 2 of keys, 64 wide; the cache is F16.
static tn_step attention(const tn_attention_params *p)
{
    tn_step s = make(TN_OP_attention, p);
    source(&s, view(TN_TYPE_F32, 1, 4, 8, 64));
    for (int i = 0; i < 2; i++) source(&s, view(TN_TYPE_F16, 10, 2, 32, 64));
    source(&s, mat(TN_TYPE_I32, 1, 3)), source(&s, mat(TN_TYPE_I32, 1, 2));
    source(&s, mat(TN_TYPE_I32, 2, 5));
    s.dst[0] = view(TN_TYPE_F32, 1, 4, 8, 64);
    return s;
}

static void test_attention(void)
{
    tn_attention_params p = {.scale = 1.0f, .causal = 1};
    tn_step s = attention(&p);
    const int32_t q_start[] = {0, 3, 4}, kv_len[] = {10, 21};
    tn_cost_lengths lengths = {.q_start = q_start, .kv_len = kv_len};
    tn_cost c = tn_step_cost(&s, &lengths);
    // keys of both; queries at 7, 8, 9 see 8, 9, 10 keys, the one at 20 sees 21
    TEST_CHECK(c.read[1] == (10 + 21) * 2 * 64 * F16 && c.read[2] == c.read[1]);
    TEST_CHECK(c.read[0] == 4 * 8 * 64 * F32 && c.written[0] == 4 * 8 * 64 * F32);
    TEST_CHECK(c.ops == 2.0 * (8 + 9 + 10 + 21) * 8 * (64 + 64) && c.product_ops == c.ops);
    // without integers: two tokens each behind 100 keys
    c = tn_step_cost(&s, &(tn_cost_lengths){.depth = 100});
    TEST_CHECK(c.read[1] == 2 * 102 * 2 * 64 * F16 && c.ops == 2.0 * 2 * (101 + 102) * 8 * 128);

    p.window = 9; // queries at 7, 8, 9: from 0, 0, 1 on; at 20: from 12
    c = tn_step_cost(&s, &lengths);
    TEST_CHECK(c.read[1] == (10 + 9) * 2 * 64 * F16 && c.ops == 2.0 * (8 + 9 + 9 + 9) * 8 * 128);
    p.window = 0, p.chunk = 8; // 7: from 0; 8 and 9: from 8; 20: from 16
    c = tn_step_cost(&s, &lengths);
    TEST_CHECK(c.read[1] == (10 + 5) * 2 * 64 * F16 && c.ops == 2.0 * (8 + 1 + 2 + 5) * 8 * 128);
    p.chunk = 0, p.causal = 0; // every query sees all keys
    c = tn_step_cost(&s, &lengths);
    TEST_CHECK(c.ops == 2.0 * (3 * 10 + 21) * 8 * 128);

    s.src[TN_SRC_attention_v].ne[3] = 48; // the values are the first part of the keys' rows
    c = tn_step_cost(&s, &lengths);
    TEST_CHECK(c.read[2] == 0 && c.ops == 2.0 * 51 * 8 * (64 + 48));
}

static void test_product(void)
{
    tn_step s = make(TN_OP_matmul, NULL);
    source(&s, mat(TN_TYPE_F32, 5, 256)), source(&s, mat(TN_TYPE_Q4_K, 100, 256));
    s.dst[0] = mat(TN_TYPE_F32, 5, 100);
    tn_cost c = tn_step_cost(&s, NULL);
    TEST_CHECK(c.read[0] == 5 * 256 * F32 && c.read[1] == 100 * Q4_K_ROW && c.written[0] == 5 * 100 * F32);
    TEST_CHECK(c.product_ops == 2.0 * 5 * 100 * 256 && c.ops == c.product_ops);

    tn_linear_params p = {TN_UNARY_SILU, 1, 1, 1, 1e-6f};
    tn_step l = make(TN_OP_linear, &p); // bias, residual, norm
    source(&l, s.src[0]), source(&l, s.src[1]), source(&l, mat(TN_TYPE_F32, 1, 100));
    source(&l, mat(TN_TYPE_F32, 5, 100)), source(&l, mat(TN_TYPE_F32, 1, 256));
    l.dst[0] = s.dst[0];
    c = tn_step_cost(&l, NULL);
    TEST_CHECK(c.read[2] == 100 * F32 && c.read[3] == 500 * F32 && c.read[4] == 256 * F32);
    TEST_CHECK(c.ops == 2.0 * 5 * 100 * 256 + 4 * 1280 + 4 * 500 + 500 + 500);

    tn_matmul_id_glu_params g = {{.act = TN_UNARY_SILU}};
    tn_step e = make(TN_OP_matmul_id_glu, &g); // 3 tokens with 2 of 8 experts each, [16, 256]
    source(&e, view(TN_TYPE_F32, 1, 3, 1, 256));
    for (int i = 0; i < 2; i++) source(&e, view(TN_TYPE_Q4_K, 1, 8, 16, 256));
    source(&e, mat(TN_TYPE_I32, 3, 2));
    e.dst[0] = view(TN_TYPE_F32, 1, 3, 2, 16);
    c = tn_step_cost(&e, NULL);
    double used = 8.0 * (1.0 - 0.75 * 0.75 * 0.75); // each token leaves an expert out with 3 of 4
    TEST_CHECK(near(c.read[1], used * 16 * Q4_K_ROW) && near(c.read[2], c.read[1]));
    TEST_CHECK(c.product_ops == 2.0 * 2 * (3 * 2) * 16 * 256);
    TEST_CHECK(c.ops == c.product_ops + 5 * (3 * 2 * 16));
}

static void test_moe(void)
{
    tn_moe_route_params p = {.top_k = {.k = 2}, .has_product = 1, .has_norm = 1};
    tn_step s = make(TN_OP_moe_route, &p); // 4 tokens of 64, 8 experts
    source(&s, mat(TN_TYPE_F32, 4, 64)), source(&s, mat(TN_TYPE_F32, 8, 64)),
        source(&s, mat(TN_TYPE_F32, 1, 64));
    s.dst[0] = mat(TN_TYPE_I32, 4, 2), s.dst[1] = mat(TN_TYPE_F32, 4, 2), s.dst[2] = mat(TN_TYPE_F32, 4, 64);
    tn_cost c = tn_step_cost(&s, NULL);
    TEST_CHECK(c.product_ops == 2.0 * 4 * 8 * 64 && c.ops == c.product_ops + 4 * 8 + 4 * 4 * 64);
    TEST_CHECK(tn_cost_bytes(&c) == (256 + 512 + 64 + 8 + 8 + 256) * 4);

    tn_step m = make(TN_OP_moe_sum, NULL); // 4 tokens, 2 experts, 64 wide
    source(&m, view(TN_TYPE_F32, 1, 4, 2, 64)), source(&m, mat(TN_TYPE_F32, 4, 2));
    m.dst[0] = mat(TN_TYPE_F32, 4, 64);
    c = tn_step_cost(&m, NULL);
    TEST_CHECK(c.ops == 2 * 4 * 2 * 64 && tn_cost_bytes(&c) == (512 + 8 + 256) * F32);
}

static void test_recurrent(void)
{
    tn_step s = make(TN_OP_short_conv, NULL); // 2 sequences with 5 tokens, 10 slots, 3 rows of 32 in each
    source(&s, view(TN_TYPE_F32, 1, 10, 3, 32)), source(&s, mat(TN_TYPE_F32, 5, 32));
    source(&s, mat(TN_TYPE_F32, 32, 4)), source(&s, mat(TN_TYPE_I32, 1, 3)),
        source(&s, mat(TN_TYPE_I32, 2, 2));
    s.dst[0] = s.src[0], s.dst[1] = mat(TN_TYPE_F32, 5, 32);
    tn_cost c = tn_step_cost(&s, NULL);
    TEST_CHECK(c.read[0] == 2 * 3 * 32 * F32 && c.written[0] == 2 * 3 * 32 * F32 && c.ops == 2 * 5 * 32 * 4);

    tn_delta_rule_params p = {.scale = 1.0f};
    tn_step d = make(TN_OP_delta_rule, &p); // the same sequences, 4 heads of 16 x 8
    source(&d, view(TN_TYPE_F32, 10, 4, 16, 8));
    for (int i = 0; i < 2; i++) source(&d, view(TN_TYPE_F32, 1, 5, 2, 16));
    source(&d, view(TN_TYPE_F32, 1, 5, 4, 8));
    for (int i = 0; i < 2; i++) source(&d, mat(TN_TYPE_F32, 5, 4));
    source(&d, mat(TN_TYPE_I32, 1, 3)), source(&d, mat(TN_TYPE_I32, 2, 2));
    d.dst[0] = d.src[0], d.dst[1] = view(TN_TYPE_F32, 1, 5, 4, 8);
    c = tn_step_cost(&d, NULL);
    TEST_CHECK(c.read[0] == 2 * 4 * 16 * 8 * F32 && c.written[0] == c.read[0]);
    TEST_CHECK(c.ops == 7.0 * 5 * 4 * 16 * 8);
}

// A family without a test does not compile.
int main(void)
{
#define TN_FAMILY(name, set) test_##name();
#include "ops/families.def"
    return test_done();
}
