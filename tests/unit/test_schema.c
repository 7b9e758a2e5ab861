// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON schemas as grammars: texts that follow them and texts that do not, what is refused and where, failing
// allocations. tests/tools/test_sampling.py lets a model write for random schemas.
#include "models/text/grammar/grammar.h"
#include "models/text/grammar/schema.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

static counting allocs;
static tn_context *ctx;
static tn_vocab_trie *trie;

static void show_error(const char *schema)
{
    char message[1024];
    tn_context_error(ctx, message, sizeof message);
    printf("    %s\n    %s\n", schema, message);
}

// yes and no: texts separated by \x1f.
static void expect_texts(int line, const char *schema, const char *yes, const char *no)
{
    tn_strbuf gbnf;
    tn_grammar *g = NULL;
    tn_matcher *m = NULL;
    tn_strbuf_init(&gbnf, ctx);
    tn_status status = tn_schema_to_gbnf(ctx, schema, strlen(schema), &gbnf);
    if (status == TN_OK) status = tn_grammar_create(ctx, "schema", gbnf.data, gbnf.size, &g);
    if (status == TN_OK) status = tn_matcher_create(ctx, g, trie, 10, &m);
    if (!test_report(status == TN_OK, __FILE__, line, "schema")) show_error(schema);
    const char *lists[2] = {yes, no};
    for (int32_t i = 0; i < 2 && status == TN_OK; i++)
        for (const char *p = lists[i]; p;) {
            size_t n = strcspn(p, "\x1f");
            int32_t got = -9;
            TEST_CHECK_STATUS(tn_matcher_try(m, p, n, &got), TN_OK);
            if (!test_report((got == 1) == (i == 0), __FILE__, line, schema))
                printf("    '%.*s': %d\n%s\n", (int)n, p, (int)got, gbnf.data);
            p = p[n] ? p + n + 1 : NULL;
        }
    tn_matcher_destroy(&m);
    tn_grammar_destroy(&g);
    tn_strbuf_fini(&gbnf);
}
#define TEXTS(schema, yes, no) expect_texts(__LINE__, (schema), (yes), (no))

static void expect_refused(int line, const char *schema, tn_status want_status, const char *want)
{
    tn_strbuf gbnf;
    char message[1024] = "";
    tn_strbuf_init(&gbnf, ctx);
    tn_status status = tn_schema_to_gbnf(ctx, schema, strlen(schema), &gbnf);
    tn_context_error(ctx, message, sizeof message);
    if (!test_report(status == want_status && strstr(message, want), __FILE__, line, want))
        show_error(schema);
    tn_strbuf_fini(&gbnf);
}
#define REFUSED(schema, status, want) expect_refused(__LINE__, (schema), TN_ERR_##status, (want))

static void test_types(void)
{
    TEXTS("{}", "1\x1fnull\x1ftrue\x1f\"a\"\x1f[1, 2]\x1f{\"a\":{}}\x1f[[], \"\\u00e9\\n\"]\n",
          "{\x1f"
          "a\x1f[1,]\x1f\"\\ud800\"\x1f"
          "01");
    TEXTS("true", "1\x1f{}", "x");
    TEXTS("{\"type\":\"null\",\"title\":\"x\",\"x-y\":1}", "null", "1");
    TEXTS("{\"type\":[\"boolean\",\"integer\"]}",
          "true\x1f"
          "false\x1f-12\x1f"
          "0",
          "1.5\x1fnull\x1f-");
    TEXTS("{\"type\":\"number\"}",
          "1\x1f-1.5e+10\x1f"
          "0.5",
          "1.\x1f.5\x1f+1\x1f\"1\"");
    TEXTS("{\"type\":\"object\"}", "{}\x1f{\"a\": 1, \"b\": [null]}\x1f{\n  \"a\":1}",
          "[]\x1f{\"a\"}\x1f{1:2}");
    TEXTS("{\"type\":\"array\"}", "[]\x1f[1, \"a\"]", "{}\x1f[1 2]");
    TEXTS("{\"enum\":[1,\"a\\\"b\",null,[1,{\"x\":true}],1.50]}",
          "1\x1f\"a\\\"b\"\x1fnull\x1f[1, {\"x\": true}]\x1f"
          "1.50",
          "2\x1f\"a\"\x1f"
          "1.5");
    TEXTS("{\"type\":\"string\",\"enum\":[1,\"a\"]}", "\"a\"", "1");
    TEXTS("{\"const\":{\"k\":\"v\"}}", "{\"k\": \"v\"}", "{}");
    TEXTS("{\"allOf\":[{\"enum\":[1,2,3]},{\"enum\":[3,2.0,5]},{\"type\":\"integer\"}]}",
          "2\x1f"
          "3",
          "1\x1f"
          "5");
}

static void test_strings(void)
{
    TEXTS("{\"minLength\":2,\"maxLength\":3}", "\"ab\"\x1f\"\xc3\xa9\xc3\xa9\"\x1f\"\\n\\u00e9a\"",
          "\"a\"\x1f\"abcd\"\x1f"
          "12");
    TEXTS("{\"pattern\":\"^[a-c]+\\\\d{2}$\"}", "\"a12\"\x1f\"abc00\"", "\"a1\"\x1f\"12\"\x1f\"a123\"");
    TEXTS("{\"pattern\":\"b|^c$\"}", "\"b\"\x1f\"abba\"\x1f\"c\"", "\"a\"\x1f\"cc\"");
    TEXTS("{\"pattern\":\"^(?:a|(bc)?)*\\\\.\\\"\\\\\\\\$\"}", "\"abc.\\\"\\\\\"", "\"ab\"\x1f\"a.\\\"\"");
    TEXTS("{\"pattern\":\"^[^a-z\\\"]\\\\w\\\\s\\\\S.$\"}", "\"A_ xy\"\x1f\"\\\\z !\\\"\"",
          "\"a_ xy\"\x1f\"\\\"a xy\"\x1f\"A- xy\"");
    TEXTS("{\"pattern\":\"^[\\\\n\\\"\\\\\\\\-]+$\"}", "\"\\n\\\"\\\\-\"", "\"a\"\x1f\"\"");
    TEXTS("{\"pattern\":\"^[\\\\b]\\\\x7f$\"}", "\"\\u0008\x7f\"", "\"b\x7f\"\x1f\"\\u0008a\"");
    TEXTS("{\"pattern\":\"^\\\\u00e9{1,2}?x*?$\"}", "\"\xc3\xa9\"\x1f\"\xc3\xa9\xc3\xa9xx\"", "\"x\"");
    TEXTS("{\"format\":\"date\"}", "\"2024-02-28\"\x1f\"1999-12-31\"\x1f\"2000-04-30\"",
          "\"2024-02-30\"\x1f\"2024-04-31\"\x1f\"2024-13-01\"\x1f\"24-1-1\"");
    TEXTS("{\"format\":\"date-time\"}", "\"2024-02-28T23:59:59Z\"\x1f\"2024-02-28T00:00:00.5+01:30\"",
          "\"2024-02-28T24:00:00Z\"\x1f\"2024-02-28T00:00:00\"");
    TEXTS("{\"format\":\"time\"}", "\"00:00:00Z\"", "\"00:00Z\"");
    TEXTS("{\"format\":\"uuid\"}", "\"01234567-89ab-cdef-0123-456789ABCDEF\"", "\"0123456789abcdef\"");
}

static void test_choices(void)
{
    TEXTS("{\"$defs\":{\"a\":{\"anyOf\":[{\"type\":[\"integer\",\"null\"]},{\"type\":\"null\"}]}},"
          "\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"type\":\"null\"}]}]}",
          "1\x1fnull", "true\x1f\"a\"");
    // Choices that nothing can satisfy go.
    TEXTS("{\"type\":[\"null\",\"boolean\"],\"anyOf\":[false,{\"type\":\"string\"},{\"enum\":[1,true]},{"
          "\"const\":2},{\"allOf\":[{\"type\":\"null\"},{}]}]}",
          "true\x1fnull",
          "false\x1f"
          "1\x1f"
          "\"a\"");
    REFUSED("{\"type\":\"null\",\"anyOf\":[false,{\"type\":\"string\"}]}", ARG,
            "schema: /anyOf: nothing satisfies");
    REFUSED("{\"$ref\":\"#\"}", ARG, "leads back to itself");
    REFUSED("{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#\"}]}", ARG, "leads back to itself");
    REFUSED("{\"oneOf\":[{\"type\":\"null\"},{\"allOf\":[{\"$ref\":\"#\"},{\"type\":\"string\"}]}]}", ARG,
            "leads back to itself");
    REFUSED("{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/"
            "a\"}},\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/b\"}]}",
            ARG, "leads back to itself");
}

// Counts that a grammar would refuse too, with a message about the grammar (a finding of fuzz_grammar).
static void test_pattern_counts(void)
{
    REFUSED("{\"pattern\":\"a{11111111111111111111,3}\"}", UNSUPPORTED, "counts are");
    REFUSED("{\"pattern\":\"a{100001}\"}", UNSUPPORTED, "counts are");
    REFUSED("{\"pattern\":\"a{1,100001}\"}", UNSUPPORTED, "counts are");
    REFUSED("{\"pattern\":\"a{3,2}\"}", UNSUPPORTED, "counts are");
    REFUSED("{\"pattern\":\"a{1,2,3}\"}", UNSUPPORTED, "counts are");
    REFUSED("{\"pattern\":\"a{,3}\"}", UNSUPPORTED, "counts are {m}, {m,} or {m,n}");
    REFUSED("{\"pattern\":\"a{x}\"}", UNSUPPORTED, "at byte 2: this needs a backslash before it");
}

static void test_string_bounds(void)
{
    REFUSED("{\"format\":\"email\"}", UNSUPPORTED, "schema: /format: ");
    REFUSED("{\"pattern\":\"(?=a)\"}", UNSUPPORTED, "schema: /pattern: pattern, at byte 1");
    REFUSED("{\"pattern\":\"(a)\\\\1\"}", UNSUPPORTED, "escape is not supported");
    REFUSED("{\"pattern\":\"a\\\\b\"}", UNSUPPORTED, "escape is not supported");
    REFUSED("{\"pattern\":\"a^b\"}", UNSUPPORTED, "at the ends only");
    REFUSED("{\"pattern\":\"(a\"}", UNSUPPORTED, "')' is missing");
    REFUSED("{\"pattern\":\"a)\"}", UNSUPPORTED, "without '('");
    REFUSED("{\"pattern\":\"[a\"}", UNSUPPORTED, "not closed");
    TEXTS("{\"pattern\":\"^\\\\x4A\\\\x4b\\\\u00C9$\"}", "\"JK\xc3\x89\"", "\"JJ\xc3\x89\"");
    REFUSED("{\"pattern\":\"\\\\ud800\"}", UNSUPPORTED, "half of a surrogate pair");
    REFUSED("{\"pattern\":\"\\\\udfff\"}", UNSUPPORTED, "half of a surrogate pair");
    REFUSED("{\"pattern\":\"[b-a]\"}", UNSUPPORTED, "a range that is none");
    REFUSED("{\"pattern\":\"*a\"}", UNSUPPORTED, "backslash");
    REFUSED("{\"pattern\":\"a\",\"minLength\":2}", UNSUPPORTED, "one part of varying length");
    REFUSED("{\"pattern\":\"^(ab|c){1,2}$\",\"maxLength\":3}", UNSUPPORTED, "one part of varying length");
    REFUSED("{\"pattern\":\"^a*$|b\",\"maxLength\":3}", UNSUPPORTED, "one part of varying length");
    REFUSED("{\"pattern\":\"^abc[x]*$\",\"maxLength\":2}", ARG, "no text of the lengths");
    REFUSED("{\"pattern\":\"a\",\"format\":\"date\"}", UNSUPPORTED, "only one is supported");
    REFUSED("{\"format\":\"time\",\"maxLength\":9}", UNSUPPORTED, "lengths that exclude");
    TEXTS("{\"format\":\"date\",\"minLength\":1,\"maxLength\":10}", "\"2024-01-31\"",
          "\"\"\x1f"
          "1");
    TEXTS("{\"pattern\":\"^[a-z]+$\",\"maxLength\":3}",
          "\"a\"\x1f"
          "\"abc\"",
          "\"\"\x1f"
          "\"abcd\"\x1f"
          "\"A\"");
    TEXTS("{\"pattern\":\"^ab\",\"minLength\":4,\"maxLength\":5}",
          "\"abcd\"\x1f"
          "\"ab \\\"\\n\"",
          "\"abc\"\x1f"
          "\"abcdef\"\x1f"
          "\"xbcd\"");
    TEXTS("{\"pattern\":\"^[A-Z][a-z]*\\\\d$\",\"minLength\":3,\"maxLength\":4}",
          "\"Ab1\"\x1f"
          "\"Abc2\"",
          "\"A1\"\x1f"
          "\"Abcd1\"\x1f"
          "\"Abcd\"");
    TEXTS("{\"pattern\":\"^\\u00e9{1,9}$\",\"minLength\":2,\"maxLength\":2}", "\"\u00e9\u00e9\"",
          "\"\u00e9\"\x1f"
          "\"\u00e9\u00e9\u00e9\"");
    TEXTS("{\"pattern\":\"^(\\\\d{3}|x)-(ab)*?c?$\",\"minLength\":2}",
          "\"x-\"\x1f"
          "\"123-ababc\"",
          "\"-\"");
    TEXTS("{\"pattern\":\"^(ab|c){1,2}$\",\"minLength\":1,\"maxLength\":4}",
          "\"c\"\x1f"
          "\"abab\"",
          "\"\"\x1f"
          "\"ccc\"");
    REFUSED("{\"minLength\":3,\"maxLength\":2}", ARG, "maxLength is below minLength");
    REFUSED("{\"minLength\":-1}", ARG, "/minLength: minLength is a whole number");
    REFUSED("{\"minLength\":1000000}", UNSUPPORTED, "above 20000");
}

// Every number of a stretch, tried.
static void expect_integers(int line, int64_t lo, int64_t hi)
{
    char schema[128], yes[4096] = "", no[4096] = "";
    snprintf(schema, sizeof schema, "{\"type\":\"integer\",\"minimum\":%lld,\"maximum\":%lld}", (long long)lo,
             (long long)hi);
    for (int64_t i = lo - 15; i <= hi + 15; i++) {
        if (i == lo + 100 && hi > lo + 300) i = hi - 100;
        char *list = i >= lo && i <= hi ? yes : no;
        sprintf(list + strlen(list), "%s%lld", *list ? "\x1f" : "", (long long)i);
    }
    expect_texts(line, schema, yes, no);
}

static void test_numbers(void)
{
    static const int64_t rows[][2] = {{0, 0},           {0, 9},     {0, 10},       {1, 99},
                                      {5, 123},         {17, 17},   {99, 101},     {-5, 5},
                                      {-123, -7},       {-1, 0},    {-1000, 1000}, {998, 100234},
                                      {123456, 123999}, {-99, 0},   {90, 110},     {1000000, 1000005},
                                      {345, 678},       {-10, -10}, {0, 255}};
    for (size_t i = 0; i < TN_COUNT(rows); i++) expect_integers(__LINE__, rows[i][0], rows[i][1]);
    TEXTS("{\"type\":\"integer\",\"minimum\":97}",
          "97\x1f"
          "98\x1f"
          "100\x1f"
          "123456789\x1f"
          "1234567890123456",
          "96\x1f"
          "9\x1f-100\x1f"
          "12345678901234567\x1f" // 16 digits at most
          "0");
    TEXTS("{\"type\":\"integer\",\"maximum\":-3}", "-3\x1f-12\x1f-100000",
          "-2\x1f"
          "0\x1f"
          "3");
    TEXTS("{\"type\":\"integer\",\"maximum\":12}",
          "12\x1f"
          "0\x1f-999",
          "13\x1f"
          "20\x1f"
          "100");
    TEXTS("{\"type\":\"integer\",\"exclusiveMinimum\":2,\"exclusiveMaximum\":4.5}",
          "3\x1f"
          "4",
          "2\x1f"
          "5");
    TEXTS("{\"type\":\"integer\",\"multipleOf\":1}", "3", "3.5");
}

static void test_number_bounds(void)
{
    TEXTS("{\"minimum\":0,\"maximum\":1}",
          "0\x1f"
          "1\x1f"
          "0.5\x1f"
          "0.00001",
          "1.5\x1f-0.5\x1f"
          "2\x1f"
          "0.0\x1f"
          "1.00001");
    TEXTS("{\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}", "0.5",
          "0\x1f"
          "1\x1f"
          "0.0\x1f-0.5");
    TEXTS("{\"minimum\":-1.5,\"maximum\":2.5}",
          "-1\x1f"
          "2\x1f"
          "1.9\x1f-0.3",
          "-2\x1f-1.1\x1f"
          "2.1\x1f"
          "3");
    REFUSED("{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", ARG, "no integer is within");
}

static void test_decimal_bounds(void)
{
    TEXTS("{\"type\":\"number\",\"minimum\":0.2,\"maximum\":0.3}",
          "0.20\x1f"
          "0.30\x1f"
          "0.25",
          "0.19\x1f"
          "0.31\x1f"
          "0\x1f"
          "1\x1f"
          "-0.25\x1f"
          "2.5e-1");
    TEXTS("{\"type\":\"number\",\"exclusiveMinimum\":-0.5,\"exclusiveMaximum\":1.25}",
          "0\x1f"
          "1\x1f"
          "0.5\x1f"
          "-0.49\x1f"
          "-0.01\x1f"
          "1.24\x1f"
          "1.01",
          "-0.50\x1f"
          "1.25\x1f"
          "-1\x1f"
          "-0.5\x1f"
          "2");
    TEXTS("{\"type\":\"number\",\"minimum\":-7.125,\"maximum\":-7.125}", "-7.125",
          "-7.1250001\x1f"
          "-7\x1f"
          "7.125");
    TEXTS("{\"type\":\"number\",\"minimum\":2.5,\"exclusiveMaximum\":3}",
          "2.50\x1f"
          "2.99",
          "2.49\x1f"
          "3\x1f"
          "3.00");
    TEXTS("{\"type\":\"number\",\"minimum\":0.30000000000000004,\"maximum\":0.5}",
          "0.31\x1f"
          "0.50",
          "0.30\x1f"
          "0.51");
    // No decimal that is short enough lies between the whole number and the bound.
    TEXTS("{\"type\":\"number\",\"minimum\":1,\"maximum\":9.000000000000002}",
          "1\x1f"
          "4.5\x1f"
          "9",
          "\x1f"
          "9.1\x1f"
          "10");
    REFUSED("{\"type\":\"number\",\"minimum\":0.3,\"exclusiveMaximum\":0.3}", ARG, "within the bounds");
    REFUSED("{\"type\":\"number\",\"minimum\":0.3,\"maximum\":0.2}", ARG, "within the bounds");
    REFUSED("{\"multipleOf\":5}", UNSUPPORTED, "/multipleOf: ");
    REFUSED("{\"minimum\":1e16}", UNSUPPORTED, "1e15");
    REFUSED("{\"minimum\":\"1\"}", ARG, "is a number");
}

static void test_objects(void)
{
    const char *both = "{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"null\"},\"c\":{"
                       "\"const\":1}},\"required\":[\"b\"]}";
    TEXTS(
        both,
        "{\"a\":1,\"b\":null,\"c\":1}\x1f{\"b\": null}\x1f{\"b\":null, \"c\":1 }\x1f{\"a\":0,\"b\":null}",
        "{}\x1f{\"a\":1}\x1f{\"b\":null,\"a\":1}\x1f{\"b\":null,\"d\":1}\x1f{,\"b\":null}\x1f{\"b\":null,}");
    TEXTS("{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}",
          "{}\x1f{\"a\":1}\x1f{\"b\":2}\x1f{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}\x1f{\"a\":1,\"a\":1}");
    TEXTS("{\"properties\":{\"ab\":{\"const\":1}},\"additionalProperties\":{\"type\":\"null\"}}",
          "{}\x1f{\"ab\":1}\x1f{\"a\":null}\x1f{\"abc\":null}\x1f{\"\":null}\x1f{\"ab\":1,\"x\":null,\"ac\":"
          "null}\x1f{\"b\":null}",
          "{\"ab\":null}\x1f{\"x\":1}\x1f{\"a\\u0062\":null}\x1f{\"x\":null,\"ab\":1}");
    TEXTS("{\"properties\":{\"]-\":{\"const\":1},\"^\":{\"const\":2}},\"additionalProperties\":true}",
          "{\"]-\":1,\"x\":2}\x1f{\"]\":[]}\x1f{\"^\":2}", "{\"]-\":2}\x1f{\"^\":1}");
    TEXTS("{\"properties\":{\"a\":{\"const\":1}},\"required\":[\"z\"]}", "{\"z\":[]}\x1f{\"a\":1,\"z\":0}",
          "{}\x1f{\"a\":1}");
    TEXTS("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}", "{}\x1f{\"a\":1,\"b\":2}",
          "{\"a\":null}");
    TEXTS("{\"type\":\"object\",\"additionalProperties\":false}", "{}", "{\"a\":1}");
    TEXTS("{\"properties\":{\"a\":false,\"b\":true}}", "{}\x1f{\"b\":[1]}", "{\"a\":1}");
    TEXTS("{\"properties\":{\"a\\\"\\u00e9\":{\"const\":1}},\"required\":[\"a\\\"\\u00e9\"]}",
          "{\"a\\\"\xc3\xa9\":1}", "{}");
    TEXTS("{\"allOf\":[{\"properties\":{\"a\":{\"minimum\":3}},\"required\":[\"a\"]},{\"properties\":{\"a\":{"
          "\"type\":\"integer\",\"maximum\":5},\"b\":{\"const\":1}}}]}",
          "{\"a\":4}\x1f{\"a\":5,\"b\":1}", "{\"a\":2}\x1f{\"a\":6}\x1f{\"b\":1}");
    TEXTS("{\"type\":\"object\",\"properties\":{\"x\":{\"const\":0}},\"minProperties\":1,\"required\":[\"x\"]"
          ",\"maxProperties\":3}",
          "{\"x\":0}", "{}");
    REFUSED("{\"properties\":{\"a\":{}},\"required\":[\"b\"],\"additionalProperties\":false}", ARG,
            "schema: /required/0: the property b is required");
    REFUSED("{\"minProperties\":1}", UNSUPPORTED, "minProperties");
    REFUSED("{\"properties\":{\"a/b\":{\"type\":\"array\",\"items\":{\"contains\":{}}}}}", UNSUPPORTED,
            "schema: /properties/a~1b/items/contains: ");
    REFUSED("{\"patternProperties\":{}}", UNSUPPORTED, "/patternProperties");
    REFUSED("{\"propertyNames\":{}}", UNSUPPORTED, "propertyNames");
    REFUSED("{\"required\":\"a\"}", ARG, "a list of names");
    REFUSED("{\"required\":[1]}", ARG, "/required/0: required is a list of names");
    REFUSED("{\"properties\":{\"a\":{}},\"required\":\"a\"}", ARG, "/required: required is a list of names");
    REFUSED("{\"properties\":{\"a\":{}},\"required\":[1]}", ARG, "/required/0: required is a list of names");
    REFUSED("{\"properties\":[]}", ARG, "properties is an object");
    REFUSED("{\"properties\":{\"a\":1}}", ARG, "/properties/a: a schema is");
    char schema[200];
    for (int n = 100; n <= 101; n++) {
        snprintf(schema, sizeof schema, "{\"properties\":{\"%0*d\":{}},\"additionalProperties\":{}}", n, 7);
        if (n == 100)
            TEXTS(schema, "{\"a\":1}", "{\"a\"}");
        else
            REFUSED(schema, UNSUPPORTED, "a name of more than 100 bytes");
    }
}

static void test_arrays(void)
{
    TEXTS("{\"items\":{\"const\":1}}", "[]\x1f[1]\x1f[1, 1,1 ]", "[2]\x1f[1,]\x1f[,1]");
    TEXTS("{\"items\":{\"const\":1},\"minItems\":2,\"maxItems\":3}", "[1,1]\x1f[1,1,1]",
          "[]\x1f[1]\x1f[1,1,1,1]");
    TEXTS("{\"items\":{\"const\":1},\"maxItems\":0}", "[]", "[1]");
    TEXTS("{\"items\":{\"const\":1},\"maxItems\":2}", "[]\x1f[1]\x1f[1,1]", "[1,1,1]");
    TEXTS("{\"items\":false}", "[]", "[1]");
    TEXTS("{\"prefixItems\":[{\"const\":1},{\"const\":2}]}", "[]\x1f[1]\x1f[1,2]", "[2]\x1f[1,2,3]");
    TEXTS("{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":{\"const\":3},\"minItems\":1}",
          "[1]\x1f[1,2]\x1f[1,2,3,3]", "[]\x1f[1,3]");
    TEXTS("{\"prefixItems\":[{\"const\":1}],\"items\":{\"const\":3},\"minItems\":3}", "[1,3,3]\x1f[1,3,3,3]",
          "[1,3]");
    TEXTS("{\"items\":[{\"const\":1}],\"additionalItems\":false}", "[]\x1f[1]", "[1,1]");
    TEXTS("{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"maxItems\":1,\"minItems\":1}", "[1]",
          "[]\x1f[1,2]");
    TEXTS("{\"type\":\"array\",\"minItems\":1,\"uniqueItems\":false}", "[null]", "[]");
    REFUSED("{\"uniqueItems\":true}", UNSUPPORTED, "/uniqueItems");
    REFUSED("{\"items\":false,\"minItems\":1}", ARG, "not allowed");
    REFUSED("{\"minItems\":3,\"maxItems\":2}", ARG, "below minItems");
    REFUSED("{\"prefixItems\":[false],\"minItems\":1}", ARG, "minItems asks for items that are not allowed");
    REFUSED("{\"prefixItems\":{}}", ARG, "/prefixItems: a list of up to");
}

static void test_combinations(void)
{
    TEXTS("{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\",\"maxLength\":1}]}", "null\x1f\"a\"",
          "\"ab\"\x1f"
          "1");
    TEXTS("{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}},\"anyOf\":[{"
          "\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
          "{\"a\":1}\x1f{\"b\":2}\x1f{\"a\":1,\"b\":2}", "{}");
    TEXTS("{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}", "1\x1f\"a\"", "null");
    TEXTS("{\"oneOf\":[{\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{\"const\":1}},\"required\":[\"k\"],"
          "\"type\":\"object\"},"
          "{\"properties\":{\"k\":{\"const\":\"b\"}},\"required\":[\"k\"],\"type\":\"object\"}]}",
          "{\"k\":\"a\",\"x\":1}\x1f{\"k\":\"b\"}", "{\"k\":\"b\",\"x\":1}\x1f{}");
    TEXTS("{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\"],"
          "\"additionalProperties\":false},"
          "{\"type\":\"object\",\"properties\":{\"b\":{}},\"required\":[\"b\"],\"additionalProperties\":"
          "false}]}",
          "{\"a\":1}\x1f{\"b\":[]}", "{}");
    TEXTS("{\"oneOf\":[{\"const\":1},{\"enum\":[2,3]}]}",
          "1\x1f"
          "3",
          "4");
    REFUSED("{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", UNSUPPORTED,
            "/oneOf: two schemas of oneOf");
    REFUSED("{\"oneOf\":[{\"minimum\":3},{\"type\":\"string\"}]}", UNSUPPORTED, "oneOf");
    REFUSED("{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":1}},\"required\":[\"k\"]},"
            "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":2}}}]}",
            UNSUPPORTED, "two schemas of oneOf");
    REFUSED("{\"type\":\"null\",\"enum\":[1,\"a\"]}", ARG, "no value is left of enum and const");
    REFUSED("{\"anyOf\":[]}", ARG, "/anyOf: anyOf is a list of schemas");
    REFUSED("{\"allOf\":1}", ARG, "/allOf: allOf is a list of schemas");
    REFUSED("{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", ARG, "no type satisfies");
    REFUSED("{\"not\":{}}", UNSUPPORTED, "schema: /not: the keyword not is not supported");
    REFUSED("{\"if\":{}}", UNSUPPORTED, "/if");
    REFUSED("false", ARG, "nothing satisfies false");
    REFUSED("{\"enum\":[1],\"minimum\":0}", UNSUPPORTED, "/minimum: minimum beside enum");
    REFUSED("{\"enum\":[]}", ARG, "/enum");
    REFUSED("{\"type\":\"strin\"}", ARG, "unknown type");
    REFUSED("{\"typ\":\"string\"}", UNSUPPORTED, "the keyword typ is not supported");
    REFUSED("[]", ARG, "a schema is an object");
    REFUSED("{", FORMAT, "schema: line 1, column 2");
}

static void test_references(void)
{
    TEXTS("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"null\"}}}", "null", "1");
    TEXTS("{\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"$"
          "ref\":\"#/$defs/n\"}},\"required\":[\"v\"]}},\"$ref\":\"#/$defs/n\"}",
          "{\"v\":1}\x1f{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}", "{\"v\":1,\"next\":{}}");
    TEXTS("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", "[]\x1f[[],[[]]]", "[1]");
    TEXTS("{\"properties\":{\"a\":{\"$ref\":\"#/definitions/x~1y%25\",\"maximum\":5}},\"definitions\":{\"x/"
          "y%\":{\"type\":\"integer\",\"minimum\":4}}}",
          "{\"a\":4}\x1f{\"a\":5}", "{\"a\":6}\x1f{\"a\":3}");
    TEXTS("{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/anyOf/0\"}]}", "null", "1");
    TEXTS("{\"items\":{\"$ref\":\"#/$defs/%2B%2b%zz\"},\"$defs\":{\"++%zz\":{\"const\":1}}}", "[1]", "[2]");
    REFUSED("{\"$ref\":\"#/$defs/b\"}", ARG, "schema: /$ref: the reference #/$defs/b leads nowhere");
    REFUSED("{\"$ref\":\"http://x/y\"}", UNSUPPORTED, "within the schema");
    REFUSED("{\"$ref\":1}", ARG, "a string");
}

// A schema {HEAD 0 MIDDLE, 1 MIDDLE, ... TAIL}: what is compared with each other takes the square of the
// time.
static tn_status translate_large(const char *head, const char *item, int32_t n, const char *tail)
{
    tn_strbuf text, gbnf;
    char message[200] = "";
    tn_strbuf_init(&text, ctx);
    tn_strbuf_init(&gbnf, ctx);
    tn_strbuf_puts(&text, head);
    for (int32_t i = 0; i < n; i++) {
        if (i > 0) tn_strbuf_puts(&text, ",");
        tn_strbuf_printf(&text, item, (int)i);
    }
    tn_strbuf_puts(&text, tail);
    tn_status status = tn_schema_to_gbnf(ctx, text.data, text.size, &gbnf);
    tn_context_error(ctx, message, sizeof message);
    if (status != TN_OK && !TEST_CHECK(strstr(message, "too much work"))) printf("    %s\n", message);
    tn_strbuf_fini(&text);
    tn_strbuf_fini(&gbnf);
    return status;
}

static void test_work(void)
{
    const char one_of[] = "{\"oneOf\":[", constant[] = "{\"const\":%d,\"title\":\"x\"}";
    const char lists[] = "{\"allOf\":[{\"enum\":[-1]},{\"enum\":[";
    const char names[] = "{\"properties\":{\"a\":{}},\"required\":[\"a\",";
    TEST_CHECK_STATUS(translate_large(one_of, constant, 250, "]}"), TN_OK);
    TEST_CHECK_STATUS(translate_large(one_of, constant, 20000, "]}"), TN_ERR_UNSUPPORTED);
    TEST_CHECK_STATUS(translate_large("{\"anyOf\":[", constant, 1000, "]}"), TN_OK);
    TEST_CHECK_STATUS(translate_large("{\"anyOf\":[", constant, 20000, "]}"), TN_ERR_UNSUPPORTED);
    TEST_CHECK_STATUS(translate_large("{\"enum\":[", "%d", 2000, "]}"), TN_OK);
    TEST_CHECK_STATUS(translate_large("{\"enum\":[", "%d", 50000, "]}"), TN_ERR_UNSUPPORTED);
    TEST_CHECK_STATUS(translate_large(lists, "%d", 100000, ",-1]}]}"), TN_OK);
    TEST_CHECK_STATUS(translate_large(names, "\"a\"", 100000, "]}"), TN_OK);
}

// A constant alone that makes the grammar larger than is taken.
static void test_large_grammar(void)
{
    tn_strbuf text;
    tn_strbuf_init(&text, ctx);
    tn_strbuf_puts(&text, "{\"const\":\"");
    for (int32_t i = 0; i <= 4 << 17; i++) tn_strbuf_puts(&text, "77777777");
    tn_strbuf_puts(&text, "\"}");
    REFUSED(text.data, UNSUPPORTED, "its grammar is larger than 4194304 bytes");
    tn_strbuf_fini(&text);
}

// Other names than those that are listed, in whatever order these are.
static void test_other_names(void)
{
    TEXTS("{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"integer\"},\"a\":{\"type\":\"integer\"},"
          "\"bb\":{\"type\":\"integer\"}},\"additionalProperties\":{\"type\":\"string\"}}",
          "{\"b\":1,\"a\":2,\"bb\":3}\x1f{\"ba\":\"x\"}\x1f{\"bbb\":\"x\"}\x1f{\"\":\"x\"}\x1f{\"c\":\"x\"}",
          "{\"b\":\"x\"}\x1f{\"a\":\"x\"}\x1f{\"bb\":\"x\"}");
}

// Fails at each allocation in turn; the status of the text comes when none fails.
static void fail_each_allocation(const char *text, tn_status want, long least)
{
    long live = allocs.live, n_failed = 0;
    tn_status status = TN_ERR_MEMORY;
    for (bool failed = true; failed && n_failed < 300; n_failed++) {
        tn_strbuf gbnf;
        tn_strbuf_init(&gbnf, ctx);
        if (want != TN_OK) tn_strbuf_reserve(&gbnf, 9999); // so that only what reads the schema allocates
        allocs.fail_from = allocs.calls + n_failed;
        allocs.fail_to = allocs.fail_from + 1;
        status = tn_schema_to_gbnf(ctx, text, strlen(text), &gbnf);
        failed = allocs.calls > allocs.fail_from;
        TEST_CHECK_STATUS(status, failed ? TN_ERR_MEMORY : want);
        tn_strbuf_fini(&gbnf);
        TEST_CHECK(allocs.live == live);
    }
    allocs.fail_from = allocs.fail_to = 0;
    if (!TEST_CHECK(status == want && n_failed > least)) printf("    %ld: %s\n", n_failed, text);
}

static void test_allocations(void)
{
    fail_each_allocation("{\"properties\":{\"a\":{\"enum\":[1,\"x\"]},\"b\":{\"pattern\":\"^x[a-z]\\\\d$\"}},"
                         "\"required\":[\"b\"],\"additionalProperties\":{\"minimum\":3}}",
                         TN_OK, 9);
    fail_each_allocation("{\"not\":{}}", TN_ERR_UNSUPPORTED, 2);
}

int main(void)
{
    static tiny_vocab vocab;
    tn_tokenizer *t = NULL;
    ctx = counting_context(&allocs);
    tiny_spm(&vocab);
    tiny_open(ctx, &vocab);
    tiny_must(tn_tokenizer_create(ctx, vocab.gguf, NULL, &t));
    tiny_must(tn_vocab_trie_create(ctx, t, &trie));
    test_types();
    test_strings();
    test_choices();
    test_pattern_counts();
    test_string_bounds();
    test_numbers();
    test_number_bounds();
    test_decimal_bounds();
    test_objects();
    test_arrays();
    test_combinations();
    test_references();
    test_work();
    test_large_grammar();
    test_other_names();
    test_allocations();
    tn_vocab_trie_destroy(&trie);
    tn_tokenizer_destroy(&t);
    tiny_close(ctx, &vocab);
    tn_context_destroy(&ctx);
    TEST_CHECK(allocs.live == 0);
    return test_done();
}
