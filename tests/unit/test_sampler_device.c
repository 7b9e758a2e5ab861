// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The op `sample` against the samplers of the host: the same parameters, logits and seed give the same token
// and the same log probabilities to the last bit; which chains the op cannot stand for.
#include "models/run/sampling/sampler.h"
#include "ops/ops.h"
#include "tests/unit/test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_MAX = 3000, HISTORY = 100, EDITS = 200, CHOICES = 4, TOP = 7 };

static tn_context *ctx;
static uint32_t random_state = 9;

static int32_t below(int32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int32_t)((random_state >> 8) % (uint32_t)n);
}

static tn_view matrix(tn_dtype type, int64_t rows, int64_t columns, void *data)
{
    tn_view v = {.dtype = type, .n_dims = 2, .ne = {1, 1, rows, columns}};
    tn_view_set_contiguous(&v);
    v.data = data;
    return v;
}

// What the reference of the op makes of one row.
static tn_sample_result run_op(const float *logits, int32_t n, tn_sample_row *row, tn_sample_edit *edits)
{
    tn_sample_result y;
    tn_step step = {.op = TN_OP_sample, .n_src = 3, .n_dst = 1, .name = "sample"};
    step.src[0] = matrix(TN_TYPE_F32, 1, n, NULL);
    step.src[1] = matrix(TN_TYPE_I32, 1, TN_SAMPLE_ROW_WORDS, NULL);
    step.src[2] = matrix(TN_TYPE_I32, EDITS, TN_SAMPLE_EDIT_WORDS, NULL);
    TEST_CHECK_STATUS(tn_infer_sample(ctx, &step), TN_OK);
    step.src[0].data = (void *)(uintptr_t)logits;
    step.src[1].data = row;
    step.src[2].data = edits;
    step.dst[0].data = &y;
    tn_ref_sample(&step);
    return y;
}

static void fill(float *x, int32_t n)
{
    int32_t form = below(5);
    for (int32_t i = 0; i < n; i++) {
        double u = 0;
        for (int32_t k = 0; k < 4; k++) u += (double)below(1 << 20) / (1 << 20) - 0.5;
        x[i] = (float)(u * (form == 0 ? 0.05 : 8.0));
        if (form == 1) x[i] = (float)below(3);
        if (form == 2 && below(10) == 0) x[i] = below(2) ? -INFINITY : NAN;
        if (form == 3 && below(50) == 0) x[i] = below(2) ? FLT_MAX : -FLT_MAX;
    }
    x[below(n)] = 3.0f; // not all are -inf
}

static tn_sampling random_sampling(void)
{
    static const char *const orders[] = {NULL,
                                         "temperature;top_k;top_p;min_p",
                                         "top_k;temperature;top_p",
                                         "penalties;top_p;min_p;temperature",
                                         "top_k",
                                         ""};
    tn_sampling c;
    tn_sampling_default(&c);
    c.samplers = orders[below(TN_COUNT(orders))];
    c.temperature = below(5) == 0 ? 0.0f : 0.15f * (float)(1 + below(20));
    c.top_k = below(2) * below(200);
    c.top_p = below(3) == 0 ? 1.0f : 0.05f * (float)below(20);
    c.min_p = below(3) == 0 ? 0.0f : 0.05f * (float)below(21);
    c.penalty_last_n = below(4) * 30 - 1;
    c.repeat_penalty = below(2) ? 1.0f : 0.5f + 0.1f * (float)below(12);
    c.presence_penalty = below(2) ? 0.0f : 0.3f * (float)(below(9) - 4);
    c.frequency_penalty = below(2) ? 0.0f : 0.1f * (float)(below(9) - 4);
    c.n_logprobs = below(2) * below(TOP + 1);
    c.seed = (uint64_t)below(1 << 20);
    return c;
}

static void compare(tn_sampler *host, tn_sampler *device, const float *x, int32_t n)
{
    static tn_sample_edit edits[EDITS];
    tn_sample_row row;
    int32_t want, got = -2, n_want, n_got;
    float want_p, got_p = 0.0f;
    TEST_CHECK_STATUS(tn_sampler_choose(host, x, &want, &want_p), TN_OK);
    if (!TEST_CHECK(tn_sampler_describe(device, &row, edits, EDITS))) return;
    tn_sample_result y = run_op(x, n, &row, edits);
    TEST_CHECK_STATUS(tn_sampler_chosen(device, &y, &got, &got_p), TN_OK);
    const tn_logprob *a = tn_sampler_logprobs(host, &n_want), *b = tn_sampler_logprobs(device, &n_got);
    bool same = want == got && memcmp(&want_p, &got_p, sizeof got_p) == 0 && n_want == n_got;
    for (int32_t i = 0; i < n_want && same; i++)
        same = a[i].token == b[i].token && memcmp(&a[i].logprob, &b[i].logprob, sizeof(float)) == 0;
    if (!TEST_CHECK(same))
        printf("    %d tokens: %d with %.9g, the op %d with %.9g\n", n, want, (double)want_p, got,
               (double)got_p);
    tn_sampler_push(host, want);
    tn_sampler_push(device, want);
}

static void test_random(void)
{
    enum { CASES = 600, BIASES = 5 };
    static float x[N_MAX];
    int32_t n_fitting = 0;
    for (int32_t i = 0; i < CASES; i++) {
        int32_t n = i < 20 ? 1 + i / 4 : 1 + below(i % 8 == 0 ? N_MAX : 300), ids[BIASES];
        float values[BIASES];
        tn_sampling c = random_sampling();
        tn_sampler *host = NULL, *device = NULL;
        for (int32_t k = 0; k < BIASES; k++) {
            ids[k] = k * n / BIASES;
            values[k] = k == 0 && n > BIASES ? -INFINITY : (float)(below(9) - 4);
        }
        if (n > BIASES && below(2)) c.n_bias = BIASES, c.bias_tokens = ids, c.bias_values = values;
        TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, n, HISTORY, &host), TN_OK);
        TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, n, HISTORY, &device), TN_OK);
        int32_t length = below(HISTORY - CHOICES);
        for (int32_t k = 0; k < length; k++) {
            int32_t token = below(n);
            tn_sampler_push(host, token);
            tn_sampler_push(device, token);
        }
        n_fitting += tn_sampler_fits_device(device);
        for (int32_t k = 0; k < CHOICES && tn_sampler_fits_device(device); k++) {
            fill(x, n);
            compare(host, device, x, n);
        }
        tn_sampler_destroy(&host);
        tn_sampler_destroy(&device);
    }
    TEST_CHECK(n_fitting > CASES / 2);
}

static bool fits(const tn_sampling *c)
{
    tn_sampler *s = NULL;
    TEST_CHECK_STATUS(tn_sampler_create(ctx, c, 100, HISTORY, &s), TN_OK);
    bool result = tn_sampler_fits_device(s);
    tn_sampler_destroy(&s);
    return result;
}

// The default chain fits; each of these does not.
static void test_chains(void)
{
    int32_t twice[] = {5, 5};
    float values[] = {1.0f, 2.0f};
    tn_sampling d, c;
    tn_sampling_default(&d);
    TEST_CHECK(fits(&d));
    c = d, c.samplers = "top_p;top_k;temperature";
    TEST_CHECK(!fits(&c));
    c = d, c.samplers = "top_p;temperature;min_p";
    TEST_CHECK(!fits(&c));
    c.min_p = 0.0f; // it does nothing, so that its place does not matter
    TEST_CHECK(fits(&c));
    c = d, c.samplers = "top_k;penalties;temperature", c.repeat_penalty = 1.1f;
    TEST_CHECK(!fits(&c));
    c = d, c.typical_p = 0.5f;
    TEST_CHECK(!fits(&c));
    c = d, c.mirostat = 2;
    TEST_CHECK(!fits(&c));
    c = d, c.xtc_probability = 0.5f;
    TEST_CHECK(!fits(&c));
    c = d, c.dry_multiplier = 1.0f;
    TEST_CHECK(!fits(&c));
    c = d, c.dynatemp_range = 0.5f;
    TEST_CHECK(!fits(&c));
    c = d, c.n_logprobs = TN_SAMPLE_TOP + 1;
    TEST_CHECK(!fits(&c));
    c = d, c.n_bias = 2, c.bias_tokens = twice, c.bias_values = values;
    TEST_CHECK(!fits(&c));
}

// With too small a list nothing is drawn, so that the host goes on with the same random numbers.
static void test_full_list(void)
{
    tn_sampling c;
    tn_sampler *s = NULL, *other = NULL;
    tn_sample_edit edits[4];
    tn_sample_row row, second;
    tn_sampling_default(&c);
    c.presence_penalty = 1.0f;
    TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, 100, HISTORY, &s), TN_OK);
    TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, 100, HISTORY, &other), TN_OK);
    for (int32_t i = 0; i < 5; i++) tn_sampler_push(s, i), tn_sampler_push(other, 7);
    TEST_CHECK(!tn_sampler_describe(s, &row, edits, 4));
    TEST_CHECK(tn_sampler_describe(other, &row, edits, 4) && row.n_edits == 1 && edits[0].count == 5);
    tn_sampler_set_length(s, 4);
    TEST_CHECK(tn_sampler_describe(s, &second, edits, 4) && second.n_edits == 4);
    TEST_CHECK(row.random_low == second.random_low && row.random_high == second.random_high);
    tn_sampler_destroy(&s);
    tn_sampler_destroy(&other);
}

// A bias of minus infinity for every token that the model allows: the host says the same.
static void test_nothing_left(void)
{
    const int32_t ids[] = {0, 1, 2};
    const float never[] = {-INFINITY, -INFINITY, -INFINITY}, x[] = {1, 2, 3, -INFINITY};
    tn_sampling c;
    tn_sampler *s = NULL;
    tn_sample_edit edits[EDITS];
    tn_sample_row row;
    int32_t token = -2;
    float logprob;
    char text[256];
    tn_sampling_default(&c);
    c.n_bias = 3, c.bias_tokens = ids, c.bias_values = never;
    TEST_CHECK_STATUS(tn_sampler_create(ctx, &c, 4, HISTORY, &s), TN_OK);
    TEST_CHECK_STATUS(tn_sampler_choose(s, x, &token, &logprob), TN_ERR_ARG);
    if (TEST_CHECK(tn_sampler_describe(s, &row, edits, EDITS))) {
        tn_sample_result y = run_op(x, 4, &row, edits);
        TEST_CHECK_STATUS(tn_sampler_chosen(s, &y, &token, &logprob), TN_ERR_ARG);
        tn_context_error(ctx, text, sizeof text);
        TEST_CHECK(strstr(text, "the bias list excludes every token that the model allows") && token == -2);
    }
    tn_sampler_destroy(&s);
}

// Random integers below n are the upper half of the product.
static void test_random_below(void)
{
    uint64_t all = ~(uint64_t)0;
    TEST_CHECK(tn_random_below(all, all) == all - 1);
    TEST_CHECK(tn_random_below(all, 1) == 0 && tn_random_below(0, all) == 0);
    TEST_CHECK(tn_random_below((uint64_t)1 << 63, 1001) == 500);
    TEST_CHECK(tn_random_below(0x123456789abcdef0u, (uint64_t)1 << 40) == 0x123456789au);
    TEST_CHECK(tn_weight_fixed(1.0f) == (uint64_t)1 << TN_WEIGHT_BITS && tn_weight_fixed(0.0f) == 0);
    TEST_CHECK(tn_weight_fixed(0x1p-40f) == 1 && tn_weight_fixed(0x1p-41f) == 0);
    TEST_CHECK(tn_weight_fixed(0x3p-41f) == 2);
}

int main(void)
{
    if (tn_context_create(NULL, &ctx) != TN_OK) abort();
    test_random();
    test_chains();
    test_full_list();
    test_nothing_left();
    test_random_below();
    tn_context_destroy(&ctx);
    return test_done();
}
