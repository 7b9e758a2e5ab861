// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of the matrix products: every weight type, sizes around tiles and blocks, one row to hundreds.
#include "ops/product.h"
#include "ops/quant.h"
#include "tests/check/check.h"

#include <string.h>

typedef struct shape {
    int64_t m, n, k; // k in blocks, or in groups of 32 plus `odd` for plain types
    int64_t odd;
} shape;

// k is short where m or n are large: the reference decodes each row of w once per row of x.
static const shape shapes[] = {
    {1, 1, 1, -31},  {1, 33, 3, 1},   {2, 16, 1, 0},  {3, 15, 2, 1},  {4, 31, 1, -1},
    {5, 32, 5, 0},   {8, 65, 2, 0},   {16, 17, 3, 3}, {17, 64, 1, 0}, {33, 33, 2, 1},
    {128, 48, 2, 0}, {9, 100, 9, -1}, {65, 8, 1, 7},
};
static const shape shapes_quick[] = {{1, 33, 3, 1}, {2, 17, 1, 0}, {5, 31, 2, -1}, {33, 17, 2, 1}};

static int64_t k_of(tn_dtype type, const shape *s)
{
    int64_t block = tn_dtype_block_elems(type);
    return block > 1 ? s->k * block : s->k * 32 + s->odd;
}

check_operand *check_weight(check_case *c, tn_dtype type, int64_t experts, int64_t n, int64_t k)
{
    check_operand *w = experts > 0 ? check_cube(c, type, experts, n, k) : check_mat(c, type, n, k);
    bool integer = type == TN_TYPE_I8 || type == TN_TYPE_I16 || type == TN_TYPE_I32 || type == TN_TYPE_I64;
    if (integer)
        check_range(w, CHECK_INT, -100, 100);
    else
        w->hi = 0.1;
    return w;
}

static bool with_experts(int32_t op)
{
    return tn_product_form_get(op)->has_ids;
}

static bool has_glu(int32_t op)
{
    return tn_product_form_get(op)->glu_off != TN_PRODUCT_NO_PARAM;
}

static int32_t n_weights(int32_t op, int32_t variant)
{
    const tn_product_form *form = tn_product_form_get(op);
    return form->n_weights > 0 ? form->n_weights : 2 + variant % 2;
}

static const int32_t linear_acts[] = {TN_UNARY_NONE, TN_UNARY_SILU, TN_UNARY_GELU,   TN_UNARY_GELU_ERF,
                                      TN_UNARY_RELU, TN_UNARY_TANH, TN_UNARY_SIGMOID};
static const tn_glu_params glus[] = {
    {TN_UNARY_SILU, 0, 0}, {TN_UNARY_GELU, 0, 0}, {TN_UNARY_SILU, 7.0f, 1.702f}, {TN_UNARY_RELU, 0.5f, 0}};

// Far from zero an activation multiplies the relative error of its argument: a GELU of -8 says nothing.
#define ACTIVATED_FLOOR 1e-6

// The norm that x goes through first.
static void add_norm(check_case *c)
{
    const tn_product_form *form = tn_product_form_get(c->op);
    if (form->has_norm_off == TN_PRODUCT_NO_PARAM) return;
    *(int32_t *)tn_product_param(&c->params, form->has_norm_off) = 1;
    *(float *)tn_product_param(&c->params, form->eps_off) = 1e-5f;
    check_range(check_vec(c, TN_TYPE_F32, c->src[0].ne[TN_MAX_DIMS - 1]), CHECK_NORMAL, 1.0, 0.2);
    strcat(c->note, ", norm");
}

// What follows the weights: ids, biases and residual, and the parameters that announce them.
static void add_rest(check_case *c, const shape *s, int64_t experts, int64_t slots, int32_t variant)
{
    if (with_experts(c->op)) // some ids lie outside
        check_range(check_mat(c, TN_TYPE_I32, s->m, slots), CHECK_INT, variant % 3 == 1 ? -1 : 0,
                    (double)experts - (variant % 3 == 1 ? 0 : 1));
    if (c->op == TN_OP_linear) {
        tn_linear_params *p = &c->params.linear;
        *p = (tn_linear_params){.act = linear_acts[(size_t)variant % TN_COUNT(linear_acts)],
                                .has_bias = variant % 2,
                                .has_residual = variant / 2 % 2};
        if (p->has_bias) check_vec(c, TN_TYPE_F32, s->n);
        check_operand *r = p->has_residual ? check_mat(c, TN_TYPE_F32, s->m, s->n) : NULL;
        if (r && variant % 4 == 2) check_strided(r);
        snprintf(c->note, sizeof c->note, "%s%s%s", tn_unary_name(p->act), p->has_bias ? ", bias" : "",
                 p->has_residual ? ", residual" : "");
    }
    if (c->op == TN_OP_matmul_multi) {
        tn_matmul_multi_params *p = &c->params.matmul_multi;
        p->n_weights = n_weights(c->op, variant);
        tn_product_sources at = tn_product_sources_get(c->op, p);
        for (int32_t i = 0; i < p->n_weights; i++) {
            p->has_bias[i] = variant >> i & 1;
            if (p->has_bias[i]) check_vec(c, TN_TYPE_F32, c->src[at.w[i]].ne[2]);
        }
    }
    if (c->op != TN_OP_matmul && c->op != TN_OP_matmul_id && c->op != TN_OP_matmul_multi)
        c->floor = ACTIVATED_FLOOR;
    const tn_glu_params *glu = &glus[(size_t)variant % TN_COUNT(glus)];
    if (has_glu(c->op))
        *(tn_glu_params *)tn_product_param(&c->params, tn_product_form_get(c->op)->glu_off) = *glu;
    if (variant % 5 == 3) add_norm(c);
}

static void build(check_case *c, int32_t op, tn_dtype type, const shape *s, int32_t variant)
{
    int64_t k = k_of(type, s), experts = with_experts(op) ? 1 + variant % 5 : 0, slots = 1 + variant % 3;
    check_begin(c, op);
    c->type = type;
    check_operand *x = with_experts(op) ? check_cube(c, TN_TYPE_F32, s->m, variant % 2 == 0 ? 1 : slots, k)
                                        : check_mat(c, TN_TYPE_F32, s->m, k);
    if (variant % 4 == 3) check_strided(x);
    for (int32_t i = 0; i < n_weights(op, variant); i++) {
        // Q is wider than K and V; gate and up have one shape.
        int64_t n = op == TN_OP_matmul_multi && i > 0 ? (s->n + 1) / 2 : s->n;
        check_operand *w = check_weight(c, type, experts, n, k);
        w->random_blocks = variant % 2 == 1;
        w->shift = variant % 3 == 2 ? 8 : 0;
    }
    add_rest(c, s, experts, slots, variant);
}

// Values that stress the rounding of activations and the range of sums.
static void cases_values(check_run *run, int32_t op, tn_dtype type)
{
    for (int32_t form = 0; form < 4; form++) {
        shape s = {form == 0 ? 3 : 18, 20, 2, 1};
        check_case c;
        build(&c, op, type, &s, 0);
        check_operand *x = &c.src[0];
        bool glu = has_glu(op);
        if (form == 0) check_range(x, CHECK_EXTREME, -30, glu ? 15 : 30); // gate times up stays finite
        if (form == 1)
            check_range(x, CHECK_SPECIAL, 0, 0),
                x->special = CHECK_ZERO | CHECK_NAN | (glu ? 0 : CHECK_POS_INF);
        if (form == 2) check_range(x, CHECK_CONST, 0, 0);
        if (form == 3) check_range(x, CHECK_NORMAL, 100.0, 1.0); // all sums far from zero
        check_emit(run, &c);
    }
}

static void cases_forms(check_run *run, int32_t op)
{
    check_case c;
    if (op == TN_OP_matmul) { // more outer dimensions, and more rows than any tile
        check_begin(&c, op);
        check_strided(check_src(&c, TN_TYPE_F32, 4, (int64_t[]){2, 2, 3, 64}));
        check_weight(&c, TN_TYPE_F16, 0, 21, 64);
        c.type = TN_TYPE_F16;
        check_emit(run, &c);
    }
    static const tn_dtype types[] = {TN_TYPE_F32, TN_TYPE_Q8_0, TN_TYPE_Q4_K};
    for (size_t i = 0; i < TN_COUNT(types); i++) {
        shape s = {600, 5, 1, 0};
        build(&c, op, types[i], &s, (int32_t)i);
        check_emit(run, &c);
    }
    for (int64_t k = 20; k <= 70; k += 50) { // rows of x that a block of threads loads in more than one turn
        shape s = {12, 9, k, 0};
        build(&c, op, TN_TYPE_Q4_K, &s, 0);
        check_emit(run, &c);
    }
    if (n_weights(op, 0) > 1) { // weights of different types, as some files mix them
        static const tn_dtype pairs[][2] = {
            {TN_TYPE_Q4_K, TN_TYPE_Q6_K}, {TN_TYPE_Q8_0, TN_TYPE_Q4_0}, {TN_TYPE_F16, TN_TYPE_F32}};
        for (size_t i = 0; i < TN_COUNT(pairs); i++) {
            shape s = {i == 0 ? 1 : 7, 33, 8, 0};
            for (int32_t m = 0; m < 2; m++) {
                s.m += 20 * m;
                s.k = pairs[i][0] == TN_TYPE_Q4_K ? 1 : 8;
                build(&c, op, pairs[i][0], &s, 2);
                c.src[tn_product_sources_get(op, &c.params).w[1]].dtype = pairs[i][1];
                snprintf(c.note, sizeof c.note, "mixed types");
                check_emit(run, &c);
            }
        }
    }
}

// Every precision, for one row, 20 and many. The error against unrounded operands has to keep within what is
// stated.
static void cases_precisions(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_F32,  TN_TYPE_BF16, TN_TYPE_Q4_K,   TN_TYPE_F16,
                                     TN_TYPE_Q8_0, TN_TYPE_Q5_K, TN_TYPE_IQ4_XS, TN_TYPE_MXFP4};
    static const shape sizes[] = {{1, 70, 6, 0}, {20, 33, 3, 1}, {70, 40, 5, 4}, {150, 65, 1, 9}};
    size_t n_types = run->options.quick ? 3 : TN_COUNT(types),
           n_sizes = run->options.quick ? 3 : TN_COUNT(sizes);
    int32_t variant = 0;
    for (int32_t precision = TN_PRECISION_auto + 1; precision < TN_PRECISION_COUNT; precision++)
        for (size_t i = 0; i < n_types * n_sizes; i++) {
            check_case c;
            shape s = sizes[i % n_sizes];
            if (tn_dtype_block_elems(types[i / n_sizes]) > 32) s.k = (s.k + 1) / 2;
            build(&c, op, types[i / n_sizes], &s, variant++);
            c.precision = precision;
            check_emit(run, &c);
        }
}

// Weights that are some rows of larger ones.
static void cases_parts(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_F32,  TN_TYPE_F16,  TN_TYPE_Q8_0, TN_TYPE_Q4_0,
                                     TN_TYPE_Q4_K, TN_TYPE_Q6_K, TN_TYPE_Q5_0, TN_TYPE_IQ3_S};
    for (size_t i = 0; i < TN_COUNT(types); i++) {
        shape s = {i % 2 == 0 ? 1 : 20, 33, tn_dtype_block_elems(types[i]) == 256 ? 1 : 8, 0};
        check_case c;
        build(&c, op, types[i], &s, 0);
        for (int32_t w = 1; w <= n_weights(op, 0); w++) {
            int32_t d = with_experts(op) ? 1 : 2; // of experts, whole ones
            c.src[w].parent[d] += 24;
            c.src[w].start[d] = 16;
        }
        snprintf(c.note, sizeof c.note, "part of a weight");
        check_emit(run, &c);
    }
}

// Two to eight rows of x and weights of whole tiles of 16 rows times 256 elements. The longest rows of x are
// more than shared memory holds; they have no norm, because with so many elements one of them is rounded the
// other way than in the reference now and then.
static void cases_2_to_8_rows(check_run *run, int32_t op, tn_dtype type)
{
    static const struct {
        int64_t m, n, k;
    } sizes[] = {{2, 48, 1024}, {8, 96, 14336}, {5, 80, 512}, {7, 33, 2304}, {3, 2128, 768}};
    size_t n_sizes = run->options.quick ? 3 : TN_COUNT(sizes);
    for (size_t i = 0; i < n_sizes; i++) {
        shape s = {sizes[i].m, sizes[i].n, sizes[i].k / tn_dtype_block_elems(type), 0};
        check_case c;
        build(&c, op, type, &s, 5 * type + (int32_t)i); // a norm only for i = 3
        check_emit(run, &c);
    }
}

// Weights in stages of 256 x 256 and several tiles, which blocks of skinny GEMMs share: k is counted in 256.
static void cases_stages(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_Q4_K,  TN_TYPE_Q6_K, TN_TYPE_Q8_0, TN_TYPE_Q5_K,
                                     TN_TYPE_Q4_0,  TN_TYPE_Q3_K, TN_TYPE_Q5_1, TN_TYPE_IQ4_XS,
                                     TN_TYPE_MXFP4, TN_TYPE_Q4_1, TN_TYPE_Q5_0, TN_TYPE_IQ4_NL};
    static const shape sizes[] = {{9, 300, 5, 0},  {16, 65, 9, 0}, {17, 127, 3, 0}, {31, 513, 2, 0},
                                  {33, 200, 5, 0}, {63, 70, 7, 0}, {64, 257, 3, 0}, {48, 64, 1, 0}};
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < (run->options.quick ? 1 : TN_COUNT(sizes)); i++) {
            shape s = sizes[run->options.quick ? t % TN_COUNT(sizes) : i];
            s.k *= 256 / tn_dtype_block_elems(types[t]);
            check_case c;
            build(&c, op, types[t], &s, (int32_t)(t + i) * (has_glu(op) ? 4 : 1)); // gated by SiLU
            check_emit(run, &c);
        }
}

// Many rows and 16-bit weights with nothing that changes the sums, as libraries multiply them: plain, with
// strided residual, with norm, with both.
static void cases_plain(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_BF16, TN_TYPE_F16};
    static const int32_t variants[] = {0, 14, 28, 98};
    static const shape sizes[] = {{64, 33, 3, 0}, {80, 40, 2, 0}, {200, 130, 4, 8}};
    size_t n_sizes = run->options.quick ? 2 : TN_COUNT(sizes);
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < TN_COUNT(variants) * n_sizes; i++) {
            check_case c;
            build(&c, op, types[t], &sizes[i % n_sizes], variants[i / n_sizes]);
            check_emit(run, &c);
        }
}

// Many rows and weights of block types in whole runs of 256 of k: odd numbers of rows and columns around
// tiles. They have no norm: of so many elements some are rounded the other way than in the reference, which
// random blocks, whose largest weights decide the result, multiply in single elements.
static void cases_many(check_run *run, int32_t op)
{
    static const shape sizes[] = {{65, 3, 512, 0}, {129, 130, 768, 0}, {127, 1, 256, 0}, {257, 259, 512, 0}};
    size_t n_sizes = run->options.quick ? 2 : TN_COUNT(sizes);
    int32_t variant = 0;
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        if (!tn_quant_info_get(type)->to_f32 || tn_dtype_block_elems(type) == 1) continue;
        for (size_t i = 0; i < n_sizes; i++) {
            check_case c;
            shape s = sizes[i];
            s.k /= tn_dtype_block_elems(type);
            if (variant % 5 == 3) variant++; // a norm, see add_rest
            build(&c, op, type, &s, variant++);
            check_emit(run, &c);
        }
    }
}

// More experts than a token uses, and rows of x for each of them that fill tiles of 16, 32 and 64 or not:
// experts without rows, with one and with more than a tile. k is counted in 256.
typedef struct experts_shape {
    int64_t tokens, n, k, experts, slots;
} experts_shape;

static void case_of_experts(check_run *run, int32_t op, tn_dtype type, const experts_shape *e, int32_t i)
{
    int32_t variant = i * (has_glu(op) ? 4 : 1); // gated by SiLU
    int64_t k = e->k * 256;
    check_case c;
    check_begin(&c, op);
    c.type = type;
    check_cube(&c, TN_TYPE_F32, e->tokens, i % 2 == 0 ? 1 : e->slots, k);
    shape s = {e->tokens, e->n, k, 0};
    for (int32_t w = 0; w < n_weights(op, variant); w++)
        check_weight(&c, type, e->experts, s.n, k)->random_blocks = w == 1;
    add_rest(&c, &s, e->experts, e->slots, variant);
    check_emit(run, &c);
}

static void cases_experts(check_run *run, int32_t op)
{
    static const experts_shape sizes[] = {{9, 257, 2, 40, 3},  {33, 65, 1, 7, 2},   {64, 300, 3, 5, 3},
                                          {127, 130, 1, 4, 1}, {10, 128, 9, 33, 8}, {63, 512, 2, 9, 2},
                                          {31, 127, 4, 2, 1},  {65, 70, 1, 1, 3},   {2100, 8, 1, 290, 8}};
    static const tn_dtype types[] = {TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < (run->options.quick ? 4 : TN_COUNT(sizes)); i++)
            case_of_experts(run, op, types[t], &sizes[i], (int32_t)i);
}

// No more pairs of token and expert than experts, up to 16 tokens; and tiles of weights that blocks share:
// more tiles than multiprocessors, of several steps of 256 of k.
static void cases_pairs(check_run *run, int32_t op)
{
    static const experts_shape sizes[] = {{9, 160, 2, 30, 3},
                                          {16, 48, 3, 33, 2},
                                          {40, 1300, 3, 24, 4},
                                          {17, 80, 1, 90, 5},
                                          {300, 1100, 4, 6, 2}};
    static const tn_dtype types[] = {TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < (run->options.quick ? 3 : TN_COUNT(sizes)); i++)
            case_of_experts(run, op, types[t], &sizes[i], (int32_t)i);
}

// Numbers of rows and sizes around the tiles of kernels for 16-bit weights, which want rows of whole pieces
// of 16 bytes, with everything that a product can have before and after it.
static void cases_tiles(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_BF16, TN_TYPE_F16};
    static const shape sizes[] = {{5, 129, 40, 24},  {9, 257, 6, 8},   {33, 200, 18, 8}, {65, 257, 4, 8},
                                  {127, 128, 6, 0},  {2, 70, 9, 8},    {3, 300, 4, 0},   {4, 80, 33, 16},
                                  {7, 65, 17, 8},    {8, 64, 2, -24},  {16, 128, 8, 0},  {17, 100, 36, 8},
                                  {31, 65, 10, 16},  {63, 130, 20, 0}, {64, 256, 3, 0},  {128, 70, 5, 8},
                                  {129, 190, 3, 24}, {200, 130, 4, 8}, {256, 70, 2, 0},  {257, 40, 2, 0}};
    size_t n_sizes = run->options.quick ? 5 : TN_COUNT(sizes);
    int32_t variant = 0;
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < n_sizes; i++) {
            check_case c;
            build(&c, op, types[t], &sizes[i], variant++);
            check_emit(run, &c);
        }
}

// Weights of few columns in f32, such as the router of experts: rows and columns around tiles of 32, and
// parts of k that blocks share, with and without whole pieces of 16 bytes.
static void cases_narrow(check_run *run, int32_t op)
{
    static const shape sizes[] = {{9, 128, 64, 0}, {31, 33, 9, 1},   {65, 100, 17, 4},  {127, 255, 5, 0},
                                  {33, 1, 40, 3},  {63, 256, 16, 0}, {1000, 60, 8, -1}, {64, 7, 1, -20}};
    int32_t odd = op == TN_OP_linear ? 21 : 7; // with a bias; with rows of x apart
    for (size_t i = 0; i < (run->options.quick ? 3 : TN_COUNT(sizes)); i++) {
        check_case c;
        build(&c, op, TN_TYPE_F32, &sizes[i], i % 2 == 0 ? 0 : odd);
        check_emit(run, &c);
    }
}

// Rows of x and of weights that fill few tiles, and long k: blocks share the k of a tile.
static void cases_shared(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_BF16, TN_TYPE_F16};
    static const shape sizes[] = {{65, 130, 34, 8}, {129, 70, 70, -8}, {200, 257, 36, 0}, {63, 190, 33, 8},
                                  {7, 127, 50, 16}, {100, 66, 100, 0}, {127, 513, 40, 0}};
    size_t n_sizes = run->options.quick ? 2 : TN_COUNT(sizes);
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < n_sizes; i++) {
            check_case c;
            build(&c, op, types[t], &sizes[i], (int32_t)i * (has_glu(op) ? 4 : 1)); // gated by SiLU
            check_emit(run, &c);
        }
}

// The same for weights of block types; k is counted in 256.
static void cases_shared_blocks(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_Q4_K, TN_TYPE_Q6_K, TN_TYPE_Q5_K, TN_TYPE_Q8_0, TN_TYPE_IQ4_XS};
    static const shape sizes[] = {{65, 300, 6, 0}, {127, 257, 5, 8},  {129, 130, 9, 0},
                                  {255, 70, 4, 0}, {1000, 700, 9, 0}, {97, 127, 3, 0}};
    size_t n_types = run->options.quick ? 2 : TN_COUNT(types);
    for (size_t t = 0; t < n_types; t++)
        for (size_t i = 0; i < (run->options.quick ? 2 : TN_COUNT(sizes)); i++) {
            check_case c;
            shape s = sizes[i];
            s.k *= 256 / tn_dtype_block_elems(types[t]);
            build(&c, op, types[t], &s, (int32_t)(2 * i) % 3 * (has_glu(op) ? 4 : 1)); // gated by SiLU
            check_emit(run, &c);
        }
}

// Rows of x around the 2048 and 4096 values that a kernel keeps in registers to norm and round them, with and
// without a norm.
static void cases_long_rows(check_run *run, int32_t op)
{
    static const struct {
        shape size;
        tn_dtype type;
        int32_t variant, precision;
    } rows[] = {{{129, 10, 65, 0}, TN_TYPE_BF16, 28, TN_PRECISION_auto},
                {{129, 7, 128, 8}, TN_TYPE_F16, 28, TN_PRECISION_auto},
                {{9, 20, 64, 0}, TN_TYPE_BF16, 28, TN_PRECISION_fp8},
                {{9, 20, 64, 8}, TN_TYPE_F16, 0, TN_PRECISION_fp8},
                {{10, 9, 128, 0}, TN_TYPE_BF16, 28, TN_PRECISION_fp8},
                {{9, 5, 129, 1}, TN_TYPE_BF16, 28, TN_PRECISION_fp8}};
    for (size_t i = 0; i < (run->options.quick ? 1 : TN_COUNT(rows)); i++) {
        check_case c;
        build(&c, op, rows[i].type, &rows[i].size, rows[i].variant);
        c.precision = rows[i].precision;
        check_emit(run, &c);
    }
}

// Weights of two types that share a launch, in stages of 256 of k that blocks and warps share: the last one
// differs.
static void cases_mixed(check_run *run, int32_t op)
{
    static const tn_dtype pairs[][2] = {
        {TN_TYPE_Q4_K, TN_TYPE_Q6_K}, {TN_TYPE_Q5_K, TN_TYPE_Q6_K}, {TN_TYPE_Q6_K, TN_TYPE_Q4_K}};
    static const shape sizes[] = {{9, 300, 5, 0},  {33, 130, 9, 0}, {64, 65, 17, 0}, {129, 130, 9, 0},
                                  {17, 127, 3, 0}, {97, 300, 5, 0}, {257, 70, 3, 0}};
    for (size_t i = 0; i < (run->options.quick ? 4 : TN_COUNT(pairs) * TN_COUNT(sizes)); i++) {
        check_case c;
        build(&c, op, pairs[i % TN_COUNT(pairs)][0], &sizes[i % TN_COUNT(sizes)], (int32_t)(i % 2));
        int32_t last = n_weights(op, (int32_t)(i % 2)) - 1;
        c.src[tn_product_sources_get(op, &c.params).w[last]].dtype = pairs[i % TN_COUNT(pairs)][1];
        snprintf(c.note, sizeof c.note, "mixed types");
        check_emit(run, &c);
    }
}

// Weights of block types and rows of x that fill tiles of 160 to 240 rows or not; k is counted in 256.
static void cases_row_tiles(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_Q4_K, TN_TYPE_Q6_K,   TN_TYPE_Q8_0, TN_TYPE_Q3_K,
                                     TN_TYPE_Q5_1, TN_TYPE_IQ4_XS, TN_TYPE_MXFP4};
    static const shape sizes[] = {{131, 70, 2, 0},  {145, 130, 6, 0}, {191, 257, 3, 0},
                                  {224, 33, 1, 0},  {330, 65, 2, 0},  {161, 300, 9, 0},
                                  {144, 127, 3, 0}, {225, 64, 2, 0},  {208, 100, 4, 0}};
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = t; i < TN_COUNT(sizes); i += run->options.quick ? 3 : 1 + t / 2) {
            check_case c;
            shape s = sizes[i];
            s.k *= 256 / tn_dtype_block_elems(types[t]);
            build(&c, op, types[t], &s, (int32_t)(2 * i) % 3 * (has_glu(op) ? 4 : 1)); // gated by SiLU
            check_emit(run, &c);
        }
}

// Rows of x that fill tiles of 72 to 112 rows or not, and types that have such tiles; k is counted in 256.
static void cases_96_rows(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_BF16, TN_TYPE_Q4_K, TN_TYPE_F16,    TN_TYPE_Q6_K,
                                     TN_TYPE_Q8_0, TN_TYPE_Q5_K, TN_TYPE_IQ4_XS, TN_TYPE_Q4_1};
    static const shape sizes[] = {{96, 127, 3, 0}, {65, 300, 9, 0}, {73, 1030, 2, 0}, {89, 64, 5, 0},
                                  {97, 66, 4, 0},  {81, 513, 6, 0}, {112, 70, 4, 0},  {72, 80, 9, 0},
                                  {88, 65, 4, 0},  {80, 200, 5, 0}};
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = run->options.quick ? t % 2 : 0; i < TN_COUNT(sizes);
             i += run->options.quick ? 4 : 1) {
            check_case c;
            shape s = sizes[i];
            s.k *= 256 / TN_MAX(tn_dtype_block_elems(types[t]), 32);
            build(&c, op, types[t], &s, (int32_t)(2 * i) % 3 * (has_glu(op) ? 4 : 1)); // gated by SiLU
            check_emit(run, &c);
        }
}

// Weights of 4096 x 4096 and more, which have kernels of their own with 65 to 112 rows; k is counted in 32.
// Seconds each on a processor, so not with --quick.
static void cases_large_weights(check_run *run, int32_t op)
{
    static const tn_dtype types[] = {TN_TYPE_BF16, TN_TYPE_F16};
    static const shape sizes[] = {{65, 4096, 128, 0}, {96, 4160, 128, 0}, {97, 4096, 128, 0}};
    for (size_t t = 0; t < TN_COUNT(types) && !run->options.quick && !with_experts(op); t++)
        for (size_t i = 0; i < TN_COUNT(sizes); i++) {
            check_case c;
            build(&c, op, types[t], &sizes[i], 0);
            check_emit(run, &c);
        }
}

// Each type with so many rows that matrix units of processors take them, and k that ends within their tiles.
static void cases_matrix_units(check_run *run, int32_t op)
{
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        int64_t block = tn_dtype_block_elems(type);
        if (!tn_quant_info_get(type)->to_f32 || block == 1) continue;
        shape s = {70, 75, block == 256 ? 3 : 19, 0};
        check_case c;
        build(&c, op, type, &s, 1);
        check_emit(run, &c);
    }
    if (with_experts(op)) return;
    // So many rows of w that two threads cut them into items of two sizes, and k of more than a tile.
    check_case c;
    build(&c, op, TN_TYPE_Q4_K, &(shape){65, 530, 9, 0}, 0);
    check_emit(run, &c);
}

// More rows of x for each expert than tiles of 64 and 96 rows have.
static void cases_full_experts(check_run *run, int32_t op)
{
    static const experts_shape sizes[] = {{101, 24, 2, 2, 2}, {260, 264, 3, 3, 2}};
    static const tn_dtype types[] = {TN_TYPE_Q4_K, TN_TYPE_Q6_K};
    for (size_t t = 0; t < TN_COUNT(types); t++)
        for (size_t i = 0; i < (run->options.quick ? 1 : TN_COUNT(sizes)); i++)
            case_of_experts(run, op, types[t], &sizes[i], (int32_t)i);
}

void check_cases_product(check_run *run, int32_t op)
{
    bool quick = run->options.quick;
    const shape *list = quick ? shapes_quick : shapes;
    size_t count = quick ? TN_COUNT(shapes_quick) : TN_COUNT(shapes);
    int32_t variant = 0;
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        if (!tn_quant_info_get(type)->to_f32) continue;
        for (size_t i = 0; i < count; i++) {
            check_case c;
            build(&c, op, type, &list[i], variant++);
            check_emit(run, &c);
        }
        cases_values(run, op, type);
        bool model = op == TN_OP_matmul &&
                     (!quick || type == TN_TYPE_F16 || type == TN_TYPE_Q8_0 || type == TN_TYPE_Q4_K);
        if (model) {
            int64_t block = tn_dtype_block_elems(type);
            shape s = {1, 256, block > 1 ? 4096 / block : 128, 0};
            check_case c;
            build(&c, op, type, &s, 1);
            check_emit(run, &c);
        }
    }
    cases_forms(run, op);
    cases_precisions(run, op);
    cases_parts(run, op);
    if (op == TN_OP_matmul || op == TN_OP_linear || op == TN_OP_matmul_multi) cases_plain(run, op);
    // The number of a case is the seed of its data, so what is added stands at the end.
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++)
        if (tn_quant_info_get(type)->to_f32 && tn_dtype_block_elems(type) > 1)
            cases_2_to_8_rows(run, op, type);
    if (with_experts(op)) {
        cases_experts(run, op);
        cases_pairs(run, op);
        cases_matrix_units(run, op);
        cases_full_experts(run, op);
        return;
    }
    cases_many(run, op);
    cases_stages(run, op);
    cases_tiles(run, op);
    if (op == TN_OP_matmul || op == TN_OP_linear) cases_narrow(run, op);
    cases_shared(run, op);
    cases_shared_blocks(run, op);
    if (op == TN_OP_linear || op == TN_OP_matmul_multi) cases_long_rows(run, op);
    if (op == TN_OP_matmul_multi) cases_mixed(run, op);
    cases_row_tiles(run, op);
    cases_96_rows(run, op);
    cases_large_weights(run, op);
    cases_matrix_units(run, op);
}
