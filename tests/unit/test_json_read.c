// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON reader: values, places of errors, bounds, failing allocations.
#include "models/text/grammar/json_read.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

static counting allocs;
static tn_context *ctx;
static tn_arena arena;

static const tn_json *read_text(int line, const char *text, size_t n)
{
    const tn_json *v = NULL;
    bool ok = tn_json_read(&arena, "test", text, n, &v) == TN_OK && v;
    if (!test_report(ok, __FILE__, line, text)) abort();
    return v;
}
#define READ(text) read_text(__LINE__, (text), strlen(text))

static void expect_error(int line, const char *text, size_t n, const char *want)
{
    char message[512] = "";
    const tn_json *v = NULL;
    tn_status status = tn_json_read(&arena, "test", text, n, &v);
    tn_context_error(ctx, message, sizeof message);
    bool ok = status == TN_ERR_FORMAT && !v && strstr(message, want);
    if (!test_report(ok, __FILE__, line, want)) printf("    got: %s\n", message);
}
#define BAD(text, want) expect_error(__LINE__, (text), strlen(text), (want))

static void test_values(void)
{
    TEST_CHECK(READ(" null ")->kind == TN_JSON_NULL);
    TEST_CHECK(READ("true")->kind == TN_JSON_BOOL && READ("true")->is_true && !READ("false")->is_true);
    const tn_json *v = READ("\n{\"a\": [1, -2.5e1, \"x\"], \"\": {}, \"b\\u0000c\": null}\t");
    TEST_CHECK(v->kind == TN_JSON_OBJECT && v->count == 3);
    const tn_json *a = tn_json_get(v, "a");
    TEST_CHECK(a && a->kind == TN_JSON_ARRAY && a->count == 3 && a->key_size == 1 &&
               a->next == tn_json_get(v, ""));
    TEST_CHECK(a->first->is_integer && a->first->integer == 1 && a->first->next->number == -25);
    TEST_CHECK(!a->first->next->is_integer && strcmp(a->first->next->text, "-2.5e1") == 0);
    TEST_CHECK(tn_json_is(a->first->next->next, "x") && !tn_json_is(a->first, "1"));
    TEST_CHECK(tn_json_get(v, "")->kind == TN_JSON_OBJECT && tn_json_get(v, "")->count == 0);
    TEST_CHECK(tn_json_get(v, "b") == NULL && tn_json_get(a, "a") == NULL && tn_json_get(NULL, "a") == NULL);
    TEST_CHECK(a->next->next->key_size == 3 && memcmp(a->next->next->key, "b\0c", 3) == 0);
}

static void test_strings(void)
{
    const tn_json *v = READ("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00\xf0\x9f\x98\x80\"");
    TEST_CHECK(strcmp(v->text, "\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf0\x9f\x98\x80") == 0);
    TEST_CHECK(v->size == strlen(v->text) && READ("\"\"")->size == 0);
    BAD("\"a", "column 1: the string is not closed");
    BAD("\"a\\", "not closed");
    BAD("\"a\\\"", "not closed");
    BAD("\"\\x\"", "column 2: unknown escape");
    BAD("\"\\u12g4\"", "four hexadecimal");
    BAD("\"\\u12\"", "four hexadecimal");
    BAD("\"\\ud800\"", "surrogate");
    BAD("\"\\udc00\"", "surrogate");
    BAD("\"\\ud800\\u0041\"", "surrogate");
    BAD("\"\\ud800\\ud800\"", "surrogate");
    BAD("\"a\tb\"", "control character");
    BAD("\"\xff\"", "not UTF-8");
    BAD("\"\xc0\x80\"", "not UTF-8");
    BAD("\"\xed\xa0\x80\"", "not UTF-8");
    BAD("\"\xf4\x90\x80\x80\"", "not UTF-8");
    BAD("\"\xc3\"", "not UTF-8");
    expect_error(__LINE__, "\"a\0b\"", 5, "control character");
    expect_error(__LINE__, "\"\\\0\"", 4, "unknown escape");
}

static void test_numbers(void)
{
    static const struct {
        const char *text;
        double value;
        bool is_integer;
    } rows[] = {
        {"0", 0, true},
        {"-0", 0, true},
        {"9223372036854775807", 9223372036854775807.0, true},
        {"-9223372036854775808", -9223372036854775808.0, true},
        {"9223372036854775808", 9223372036854775808.0, false},
        {"123456789012345678901234567890", 123456789012345678901234567890.0, false},
        {"0.1", 0.1, false},
        {"1e2", 100, false},
        {"1E+2", 100, false},
        {"12.50e-1", 1.25, false},
        {"0.30000000000000000000000000000000001", 0.3, false},
        {"1e-400", 0, false},
        {"0e999999999999", 0, false},
        {"2.2250738585072014e-308", 2.2250738585072014e-308, false},
        {"1.7976931348623157e308", 1.7976931348623157e308, false},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        const tn_json *v = READ(rows[i].text);
        bool near_enough = fabs(v->number - rows[i].value) <= fabs(rows[i].value) * 1e-15;
        if (!TEST_CHECK(v->kind == TN_JSON_NUMBER && near_enough && v->is_integer == rows[i].is_integer))
            printf("    %s: %.17g\n", rows[i].text, v->number);
    }
    TEST_CHECK(READ("-9223372036854775808")->integer == INT64_MIN && READ("-17")->integer == -17);
    static const char *const bad[] = {"01",  "-",    "-a",   "1.",  ".5",  "+1",   "1e",
                                      "1e+", "1.e1", "0x10", "-01", "NaN", "1e999"};
    for (size_t i = 0; i < TN_COUNT(bad); i++) BAD(bad[i], "line 1, column");
}

static void test_errors(void)
{
    BAD("", "line 1, column 1: a value is missing");
    BAD("  ", "a value is missing");
    BAD("{\n  \"a\": 1\n  \"b\": 2}", "line 3, column 3: a ',' or '}' is missing");
    BAD("[1 2]", "a ',' or ']' is missing");
    BAD("[1,]", "no JSON value");
    BAD("{\"a\":1,}", "a key in quotes");
    BAD("{a:1}", "a key in quotes");
    BAD("{\"a\" 1}", "a ':' is missing");
    BAD("{\"a\":1,\"b\":2,\"a\":3}", "a key twice");
    BAD("{", "a key in quotes");
    BAD("[", "a value is missing");
    BAD("[1", "is missing");
    BAD("1 1", "column 3: text behind");
    BAD("tru", "no JSON value");
    BAD("[1] // x", "text behind");
    BAD("\xef\xbb\xbf{}", "no JSON value");
}

static void test_bounds(void)
{
    char text[400] = "";
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    READ(text);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    BAD(text, "deeper than 64");
    size_t n = 2 * (size_t)TN_JSON_VALUES_MAX + 3;
    char *many = malloc(n);
    if (!many) abort();
    for (size_t i = 0; i < n; i++) many[i] = i % 2 ? '1' : ',';
    many[0] = '[';
    many[n - 1] = ']';
    expect_error(__LINE__, many, n, "more than 1048576");
    expect_error(__LINE__, many, (size_t)TN_JSON_SIZE_MAX + 1, "33554433 bytes, at most 33554432");
    free(many);
    // Many keys in one object: found in a table, not by comparing pairs.
    size_t capacity = 2000000;
    char *keys = malloc(capacity);
    if (!keys) abort();
    size_t used = 0;
    for (int i = 0; i < 100000; i++)
        used += (size_t)snprintf(keys + used, capacity - used, "%c\"%d\":0", i ? ',' : '{', i);
    keys[used++] = '}';
    TEST_CHECK(read_text(__LINE__, keys, used)->count == 100000);
    free(keys);
}

static void test_allocations(void)
{
    const char *text = "{\"a\":[1,\"b\"],\"c\":{\"d\":null}}";
    long n_failed = 0;
    tn_status status = TN_ERR_MEMORY;
    for (; status != TN_OK && n_failed < 100; n_failed++) {
        const tn_json *v = NULL;
        tn_arena own;
        tn_arena_init(&own, ctx);
        allocs.fail_from = allocs.calls + n_failed;
        allocs.fail_to = allocs.fail_from + 1;
        status = tn_json_read(&own, "test", text, strlen(text), &v);
        TEST_CHECK(status == TN_ERR_MEMORY ? v == NULL : status == TN_OK && v != NULL);
        tn_arena_fini(&own);
    }
    allocs.fail_from = allocs.fail_to = 0;
    TEST_CHECK(status == TN_OK && n_failed > 2);
}

int main(void)
{
    ctx = counting_context(&allocs);
    tn_arena_init(&arena, ctx);
    test_values();
    test_strings();
    test_numbers();
    test_errors();
    test_bounds();
    test_allocations();
    tn_arena_fini(&arena);
    tn_context_destroy(&ctx);
    TEST_CHECK(allocs.live == 0);
    return test_done();
}
