// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantising with an importance matrix in both forms, and with types of the caller's choice.
#include "models/quantize/imatrix.h"
#include "models/quantize/quantize_types.h"
#include "tests/unit/model_files.h"

#include <limits.h>
#include <math.h>
#include <tenon/file.h>

enum { COLS = 512, ROWS = 40, EXPERTS = 3, N_TENSORS = 5 };

static const spec tensors[N_TENSORS] = {
    {"token_embd.weight", TN_TYPE_F32, 2, {64, COLS}},
    {"blk.0.attn_v.weight", TN_TYPE_F32, 2, {ROWS, COLS}},
    {"blk.0.attn_norm.weight", TN_TYPE_F32, 1, {COLS}},
    {"blk.0.ffn_up_exps.weight", TN_TYPE_F32, 3, {EXPERTS, ROWS, COLS}},
    {"blk.0.ffn_down.weight", TN_TYPE_F32, 2, {ROWS, 96}},
};

// Every seventh column matters much, and in the experts others than in attn_v.
static float importance(int expert, int col)
{
    return (col + expert) % 7 == 0 ? 25.0f : 0.04f;
}

// --- files -------------------------------------------------------------------------------------------------

static void write_gguf(const char *name, int experts, float calls)
{
    static const char v[] = "blk.0.attn_v.weight", up[] = "blk.0.ffn_up_exps.weight";
    static float sums[EXPERTS * COLS];
    float counts[EXPERTS];
    char text[80];
    tn_gguf_writer *w = NULL;
    must(tn_gguf_writer_open(ctx, path_of(name), &w));
    must(tn_gguf_writer_put_str(w, "general.type", "imatrix"));
    for (int k = 0; k < 2; k++) {
        int64_t ne[2] = {k ? experts : 1, COLS}, ne_counts[2] = {ne[0], 1};
        snprintf(text, sizeof text, "%s.in_sum2", k ? up : v);
        must(tn_gguf_writer_add_tensor(w, text, TN_TYPE_F32, 2, ne));
        snprintf(text, sizeof text, "%s.counts", k ? up : v);
        must(tn_gguf_writer_add_tensor(w, text, TN_TYPE_F32, 2, ne_counts));
    }
    must(tn_gguf_writer_begin(w));
    for (int k = 0; k < 2; k++) {
        int n = k ? experts : 1;
        for (int e = 0; e < n; e++) counts[e] = calls * (float)(e + 1);
        for (int i = 0; i < n * COLS; i++) {
            float times = counts[i / COLS];
            sums[i] = importance(i / COLS, i % COLS) * (times > 0 && isfinite(times) ? times : 8);
        }
        must(tn_gguf_writer_data(w, sums, (size_t)n * COLS * sizeof *sums));
        must(tn_gguf_writer_data(w, counts, (size_t)n * sizeof *counts));
    }
    must(tn_gguf_writer_commit(&w, NULL, NULL));
}

static void put_u32(FILE *f, uint32_t v)
{
    for (int k = 0; k < 4; k++) fputc((int)(v >> 8 * k & 255), f);
}

static void put_f32(FILE *f, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_u32(f, bits);
}

// The older form: count; length, name, calls, values; then chunks and the text's name.
static void write_records(const char *name, float odd)
{
    static const char *const names[] = {"blk.0.attn_v.weight", "blk.0.ffn_up_exps.weight"};
    FILE *f = fopen(path_of(name), "wb");
    if (!f) abort();
    put_u32(f, 2);
    for (int k = 0; k < 2; k++) {
        int n = k ? EXPERTS : 1;
        put_u32(f, (uint32_t)strlen(names[k]));
        fputs(names[k], f);
        put_u32(f, 8);
        put_u32(f, (uint32_t)(n * COLS));
        for (int i = 0; i < n * COLS; i++)
            put_f32(f, i == 5 && odd != 0 ? odd : importance(i / COLS, i % COLS) * 8);
    }
    put_u32(f, 8);
    put_u32(f, 4);
    fputs("text", f);
    fclose(f);
}

static tn_status quantize(const char *out, const char *type, const char *imatrix, double *rmse)
{
    tn_quantize_config cfg = {
        .struct_size = sizeof cfg, .type = type, .imatrix = imatrix ? path_of(imatrix) : NULL, .rmse = rmse};
    return tn_quantize(ctx, path_of("in.gguf"), path_of(out), &cfg);
}

static bool same_file(const char *a, const char *b)
{
    tn_file_map x = {0}, y = {0};
    bool same = tn_file_map_open(ctx, path_of(a), &x) == TN_OK &&
                tn_file_map_open(ctx, path_of(b), &y) == TN_OK && x.size == y.size &&
                memcmp(x.data, y.data, x.size) == 0;
    tn_file_map_close(ctx, &x);
    tn_file_map_close(ctx, &y);
    return same;
}

// --- importance --------------------------------------------------------------------------------------------

// Squared errors of a tensor, times importance.
static double weighted_error(const char *file, const char *tensor)
{
    static float x[EXPERTS * ROWS * COLS], y[EXPERTS * ROWS * COLS];
    tn_gguf *a = NULL, *b = NULL;
    must(tn_gguf_open(ctx, path_of("in.gguf"), &a));
    must(tn_gguf_open(ctx, path_of(file), &b));
    const tn_gguf_tensor *s = tn_gguf_find_tensor(a, tensor), *t = tn_gguf_find_tensor(b, tensor);
    int64_t n = (int64_t)(s->size / sizeof *x);
    double sum = 0;
    tn_quant_info_get(s->dtype)->to_f32(s->data, x, n);
    tn_quant_info_get(t->dtype)->to_f32(t->data, y, n);
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)y[i];
        sum += d * d * (double)importance((int)(i / COLS / ROWS), (int)(i % COLS));
    }
    tn_gguf_close(&a);
    tn_gguf_close(&b);
    return sum;
}

static void test_importance(void)
{
    static const char *const types[] = {"Q2_K", "Q3_K_S", "Q4_K_S", "Q5_K_S", "Q6_K",  "Q4_0",
                                        "Q4_1", "Q5_0",   "Q5_1",   "IQ4_NL", "IQ4_XS"};
    static const char *const names[] = {"blk.0.attn_v.weight", "blk.0.ffn_up_exps.weight"};
    double total;
    write_gguf("im.gguf", EXPERTS, 4);
    write_records("im.dat", 0);
    for (size_t i = 0; i < TN_COUNT(types); i++) {
        TEST_CHECK_STATUS(quantize("plain", types[i], NULL, &total), TN_OK);
        TEST_CHECK(total > 0 && total < 0.05);
        TEST_CHECK_STATUS(quantize("with", types[i], "im.gguf", NULL), TN_OK);
        TEST_CHECK_STATUS(quantize("with2", types[i], "im.dat", NULL), TN_OK);
        TEST_CHECK(same_file("with", "with2"));
        for (int k = 0; k < 2; k++) {
            double with = weighted_error("with", names[k]), without = weighted_error("plain", names[k]);
            if (!TEST_CHECK(with < 0.97 * without))
                printf("    %s %s: %g, without importance %g\n", types[i], names[k], with, without);
        }
    }
    // These look at no importance.
    TEST_CHECK_STATUS(quantize("plain", "Q8_0", NULL, NULL), TN_OK);
    TEST_CHECK_STATUS(quantize("with", "Q8_0", "im.gguf", NULL), TN_OK);
    TEST_CHECK(same_file("plain", "with"));
}

static void test_threads(void)
{
    for (int32_t n = 1; n <= 5; n += 2) {
        tn_context_config cfg;
        tn_context_config_default(&cfg);
        cfg.n_threads = n;
        tn_context *c = NULL;
        must(tn_context_create(&cfg, &c));
        tn_quantize_config q = {.struct_size = sizeof q, .type = "Q4_0", .imatrix = path_of("im.gguf")};
        TEST_CHECK_STATUS(tn_quantize(c, path_of("in.gguf"), path_of(n == 1 ? "plain" : "with"), &q), TN_OK);
        if (n > 1) TEST_CHECK(same_file("plain", "with"));
        tn_context_destroy(&c);
    }
}

// An expert that no token chose has no importance: as if all its columns mattered alike.
static void test_unused(void)
{
    tn_imatrix *im = NULL;
    static float w[EXPERTS * COLS];
    write_gguf("none.gguf", EXPERTS, 0);
    must(tn_imatrix_open(ctx, path_of("none.gguf"), &im));
    TEST_CHECK_STATUS(tn_imatrix_read(im, "blk.0.ffn_up_exps.weight", EXPERTS, COLS, w), TN_OK);
    for (int i = 0; i < EXPERTS * COLS; i++) TEST_CHECK(w[i] == 1.0f);
    tn_imatrix_close(&im);
    must(tn_imatrix_open(ctx, path_of("im.gguf"), &im));
    TEST_CHECK_STATUS(tn_imatrix_read(im, "blk.0.ffn_up_exps.weight", EXPERTS, COLS, w), TN_OK);
    for (int i = 0; i < EXPERTS * COLS; i++)
        TEST_CHECK(fabsf(w[i] / importance(i / COLS, i % COLS) - 1) < 1e-6f);
    TEST_CHECK_STATUS(tn_imatrix_read(im, "blk.0.attn_v.weight", 2, COLS / 2, w), TN_OK);
    TEST_CHECK_STATUS(tn_imatrix_read(im, "blk.0.attn_v.weight", 1, COLS / 2, w), TN_ERR_FORMAT);
    TEST_CHECK(!tn_imatrix_has(im, "blk.0.attn_v") && !tn_imatrix_has(im, "blk.0.attn_v.weight.in_sum2"));
    TEST_CHECK_STATUS(tn_imatrix_read(im, "blk.0.attn_v", 1, COLS, w), TN_ERR_ARG);
    TEST_CHECK(message_has("has nothing about tensor \"blk.0.attn_v\""));
    tn_imatrix_close(&im);
    unlink(path_of("none.gguf"));
}

// Names and types of the tensors themselves.
static void test_refused_tensors(void)
{
    static const struct {
        const char *sums, *counts;
        tn_dtype sums_type, counts_type;
        const char *part;
    } rows[] = {
        {"a", "a", TN_TYPE_F32, TN_TYPE_F32, NULL},
        {"a", "b", TN_TYPE_F32, TN_TYPE_F32, "\"a.in_sum2\" and \"a.counts\" must be F32 tensors"},
        {"a", "a", TN_TYPE_F16, TN_TYPE_F32, "must be F32 tensors"},
        {"a", "a", TN_TYPE_F32, TN_TYPE_F16, "must be F32 tensors"},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        char text[80];
        tn_gguf_writer *w = NULL;
        tn_imatrix *im = NULL;
        must(tn_gguf_writer_open(ctx, path_of("bad"), &w));
        must(tn_gguf_writer_put_str(w, "general.type", "imatrix"));
        snprintf(text, sizeof text, "%s.in_sum2", rows[i].sums);
        must(tn_gguf_writer_add_tensor(w, text, rows[i].sums_type, 1, (int64_t[]){1}));
        snprintf(text, sizeof text, "%s.counts", rows[i].counts);
        must(tn_gguf_writer_add_tensor(w, text, rows[i].counts_type, 1, (int64_t[]){1}));
        must(tn_gguf_writer_begin(w));
        for (int k = 0; k < 2; k++)
            must(tn_gguf_writer_data(w, (float[]){0},
                                     tn_dtype_row_size(k ? rows[i].counts_type : rows[i].sums_type, 1)));
        must(tn_gguf_writer_commit(&w, NULL, NULL));
        TEST_CHECK_STATUS(tn_imatrix_open(ctx, path_of("bad"), &im), rows[i].part ? TN_ERR_FORMAT : TN_OK);
        TEST_CHECK(!rows[i].part || (!im && message_has(rows[i].part)));
        tn_imatrix_close(&im);
    }
    unlink(path_of("bad"));
}

static void test_refused(void)
{
    int before = n_files();
    write_records("bad", -1);
    TEST_CHECK_STATUS(quantize("out", "Q4_0", "bad", NULL), TN_ERR_FORMAT);
    write_records("bad", NAN);
    TEST_CHECK_STATUS(quantize("out", "Q4_0", "bad", NULL), TN_ERR_FORMAT);
    static const float bad_counts[] = {-1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad_counts / sizeof *bad_counts; i++) {
        write_gguf("bad", EXPERTS, bad_counts[i]);
        TEST_CHECK_STATUS(quantize("out", "Q4_0", "bad", NULL), TN_ERR_FORMAT);
    }
    write_gguf("bad", 1, 4);
    TEST_CHECK_STATUS(quantize("out", "Q4_0", "bad", NULL), TN_ERR_FORMAT);
    TEST_CHECK(message_has("blk.0.ffn_up_exps.weight"));
    TEST_CHECK_STATUS(quantize("out", "Q4_0", "in.gguf", NULL), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(quantize("out", "Q4_0", "absent", NULL), TN_ERR_IO);
    // Of another model.
    FILE *f = fopen(path_of("bad"), "wb");
    if (!f) abort();
    for (int i = 0; i < 7; i++) put_u32(f, i == 0 || i == 2 || i == 3); // a matrix without a name
    fclose(f);
    TEST_CHECK_STATUS(quantize("out", "Q4_0", "bad", NULL), TN_ERR_FORMAT);
    f = fopen(path_of("bad"), "wb");
    if (!f) abort();
    for (int i = 0; i < 2; i++) put_u32(f, 1);
    fputc('x', f);
    for (int i = 0; i < 3; i++) put_u32(f, i == 1 ? 1 : 0);
    fclose(f);
    TEST_CHECK_STATUS(quantize("out", "Q4_0", "bad", NULL), TN_ERR_ARG);
    TEST_CHECK(message_has("another model"));
    unlink(path_of("bad"));
    TEST_CHECK(n_files() == before);
}

// Every end of the older form that comes too soon, and every byte of its head damaged.
static void test_damaged(void)
{
    tn_file_map whole = {0};
    must(tn_file_map_open(ctx, path_of("im.dat"), &whole));
    size_t tail = whole.size - 12;
    for (size_t n = 0; n < whole.size; n += n < 80 || n + 80 > whole.size ? 1 : 97) {
        FILE *f = fopen(path_of("bad"), "wb");
        if (!f || fwrite(whole.data, 1, n, f) != n) abort();
        fclose(f);
        tn_imatrix *im = NULL;
        tn_status status = tn_imatrix_open(ctx, path_of("bad"), &im);
        TEST_CHECK((status == TN_OK) == (n >= tail) && (im != NULL) == (status == TN_OK));
        tn_imatrix_close(&im);
    }
    for (size_t at = 0; at < 40; at++) {
        FILE *f = fopen(path_of("bad"), "wb");
        if (!f || fwrite(whole.data, 1, whole.size, f) != whole.size) abort();
        fseek(f, (long)at, SEEK_SET);
        fputc(whole.data[at] ^ 0x85, f);
        fclose(f);
        tn_imatrix *im = NULL;
        if (tn_imatrix_open(ctx, path_of("bad"), &im) == TN_OK) tn_imatrix_close(&im);
        TEST_CHECK(im == NULL);
    }
    tn_file_map_close(ctx, &whole);
    unlink(path_of("bad"));
}

static void test_no_memory(void)
{
    static const char *const rules[] = {"attn_v=Q6_K"};
    int before = n_files();
    long live = count.live, k = 0;
    for (tn_status status = TN_ERR_MEMORY; status != TN_OK && k < 1000; k++) {
        count.fail_from = count.calls + k;
        count.fail_to = count.fail_from + 1 + (k % 2 ? LONG_MAX / 2 : 0);
        tn_quantize_config cfg = {.struct_size = sizeof cfg,
                                  .type = "Q4_K_M",
                                  .imatrix = path_of("im.gguf"),
                                  .tensor_types = rules,
                                  .n_tensor_types = 1};
        status = tn_quantize(ctx, path_of("in.gguf"), path_of("out"), &cfg);
        count.fail_from = count.fail_to = 0;
        if (status != TN_OK && status != TN_ERR_MEMORY) TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
        if (status != TN_OK) TEST_CHECK(n_files() == before);
        TEST_CHECK(count.live == live);
    }
    TEST_CHECK(k > 20 && k < 1000);
    unlink(path_of("out"));
}

// --- types of the caller's choice --------------------------------------------------------------------------

static void test_patterns(void)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        {"attn_v", "blk.0.attn_v.weight", true},
        {"attn_v", "blk.0.attn_q.weight", false},
        {"blk.1.", "blk.11.attn_v.weight", false},
        {"blk.?.attn", "blk.3.attn_v.weight", true},
        {"blk.?.attn", "blk.13.attn_v", false},
        {"blk.*.attn", "blk.13.attn_v", true},
        {"b*k*w*t", "blk.0.weight", true},
        {"weight*?", "blk.0.weight", false},
        {"*", "x", true},
        {"**", "", true},
        {"a*b*c", "aXbXbXd", false},
        {"ab*ab", "aab", false},
        {"weightx", "weight", false},
        {"?", "", false},
    };
    for (size_t i = 0; i < TN_COUNT(cases); i++)
        if (!TEST_CHECK(tn_quantize_name_matches(cases[i].pattern, strlen(cases[i].pattern), cases[i].name) ==
                        cases[i].matches))
            printf("    %s %s\n", cases[i].pattern, cases[i].name);
}

static tn_status convert(const char *type, const char *const *rules, int n, const char *output,
                         const char *embedding, const tn_dtype *want)
{
    tn_quantize_config cfg = {.struct_size = sizeof cfg,
                              .type = type,
                              .tensor_types = rules,
                              .n_tensor_types = n,
                              .output_type = output,
                              .embedding_type = embedding};
    tn_status status = tn_quantize(ctx, path_of("in.gguf"), path_of("out"), &cfg);
    tn_gguf *gguf = NULL;
    if (status != TN_OK) return status;
    must(tn_gguf_open(ctx, path_of("out"), &gguf));
    for (int i = 0; i < N_TENSORS; i++)
        if (!TEST_CHECK(tn_gguf_find_tensor(gguf, tensors[i].name)->dtype == want[i]))
            printf("    %s\n", tensors[i].name);
    TEST_CHECK_STATUS(tn_gguf_check_data(gguf), TN_OK);
    tn_gguf_close(&gguf);
    unlink(path_of("out"));
    return status;
}

static void test_types(void)
{
#define TYPES(...) ((const tn_dtype[]){__VA_ARGS__})
    const tn_dtype F32 = TN_TYPE_F32, Q4 = TN_TYPE_Q4_0, Q6 = TN_TYPE_Q6_K, Q8 = TN_TYPE_Q8_0;
    static const char *const one[] = {"attn_*=q6_k"}, *const order[] = {"ffn_up=TQ2_0", "ffn=NVFP4"},
                             *const fit[] = {"ffn=Q6_K"};
    static const char *const bad[] = {"attn_v=Q9",        "attn_v",        "=Q8_0",
                                      "attn_v=Q8_K",      "attn_v=I8",     "attn_v=IQ2_XXS",
                                      "ffn_nothing=Q8_0", "attn_norm=Q8_0"};
    TEST_CHECK_STATUS(convert("Q4_0", NULL, 0, NULL, NULL, TYPES(Q6, Q4, F32, Q4, Q4)), TN_OK);
    TEST_CHECK_STATUS(convert("Q4_0", one, 1, NULL, NULL, TYPES(Q6, Q6, F32, Q4, Q4)), TN_OK);
    // The first that matches; rows of 96 fit no block of 256.
    TEST_CHECK_STATUS(
        convert("Q4_0", order, 2, NULL, "Q5_1", TYPES(TN_TYPE_Q5_1, Q4, F32, TN_TYPE_TQ2_0, TN_TYPE_F16)),
        TN_OK);
    TEST_CHECK_STATUS(convert("Q4_0", fit, 1, "IQ4_XS", NULL, TYPES(TN_TYPE_IQ4_XS, Q4, F32, Q6, Q8)), TN_OK);
    TEST_CHECK_STATUS(convert("F16", fit, 1, "Q8_0", "F32", TYPES(F32, TN_TYPE_F16, F32, Q6, Q8)), TN_OK);
    for (size_t i = 0; i < TN_COUNT(bad); i++)
        if (!TEST_CHECK(convert("Q4_0", &bad[i], 1, NULL, NULL, NULL) == TN_ERR_ARG))
            printf("    %s\n", bad[i]);
    TEST_CHECK_STATUS(convert("Q4_0", NULL, 0, "Q0", NULL, NULL), TN_ERR_ARG);
    TEST_CHECK(message_has("Q6_K"));
    TEST_CHECK_STATUS(convert("Q4_0", NULL, 0, NULL, "", NULL), TN_ERR_ARG);
    TEST_CHECK_STATUS(convert("Q4_0", NULL, 2, NULL, NULL, NULL), TN_ERR_ARG);
#undef TYPES
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    ctx = counting_context(&count);
    save_model("in.gguf", tensors, N_TENSORS, EXPERTS);
    test_importance();
    test_threads();
    test_unused();
    test_refused_tensors();
    test_refused();
    test_damaged();
    test_no_memory();
    test_patterns();
    test_types();
    static const char *const made[] = {"in.gguf", "im.gguf", "im.dat", "plain", "with", "with2"};
    for (size_t i = 0; i < TN_COUNT(made); i++) unlink(path_of(made[i]));
    TEST_CHECK(rmdir(folder) == 0);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
