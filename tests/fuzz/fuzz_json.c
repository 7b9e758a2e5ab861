// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of JSON: the reader of the library, the one of requests to the server, and the one of the files of
// the tool see the same bytes. What the first accepts the second accepts, and the other way around; written
// by the writer of the tool it reads as the same tree.
#define _GNU_SOURCE // open_memstream
#include "models/text/grammar/json_read.h"
#include "tests/fuzz/fuzz.h"
#include "tools/json/json.h"
#include "tools/json/json_read.h"
#include "tools/server/body.h"

static bool same(const tn_json *a, const tn_json *b)
{
    if (a->kind != b->kind || a->count != b->count) return false;
    if (a->kind == TN_JSON_BOOL) return a->is_true == b->is_true;
    if (a->kind == TN_JSON_NUMBER && a->is_integer) return b->is_integer && a->integer == b->integer;
    if (a->kind == TN_JSON_STRING) return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
    for (a = a->first, b = b->first; a && b; a = a->next, b = b->next)
        if (!same(a, b)) return false;
    return !a && !b;
}

// False: it is too deep for the writer, or has keys with zeros.
static bool write_value(json *j, const tn_json *v, const char *key, int depth)
{
    if (depth >= JSON_DEPTH - 1 || (v->key && strlen(v->key) != v->key_size)) return false;
    bool ok = true;
    switch (v->kind) {
    case TN_JSON_NULL:
        json_null(j, key);
        break;
    case TN_JSON_BOOL:
        json_bool(j, key, v->is_true);
        break;
    case TN_JSON_NUMBER:
        if (v->is_integer)
            json_int(j, key, v->integer);
        else
            json_number(j, key, v->number);
        break;
    case TN_JSON_STRING:
        json_bytes(j, key, v->text, v->size);
        break;
    case TN_JSON_ARRAY:
        json_array(j, key);
        for (const tn_json *e = v->first; e; e = e->next) ok = write_value(j, e, NULL, depth + 1) && ok;
        json_end_array(j);
        break;
    case TN_JSON_OBJECT:
        json_object(j, key);
        for (const tn_json *e = v->first; e; e = e->next) ok = write_value(j, e, e->key, depth + 1) && ok;
        json_end_object(j);
        break;
    }
    return ok;
}

// A number that is not finite is written as null.
static bool has_infinite(const tn_json *v)
{
    if (v->kind == TN_JSON_NUMBER) return v->number > 1e308 || v->number < -1e308;
    for (const tn_json *e = v->first; e; e = e->next)
        if (has_infinite(e)) return true;
    return false;
}

static int depth_of(const tn_json *v)
{
    int most = 0;
    for (const tn_json *e = v->first; e; e = e->next) {
        int depth = depth_of(e);
        most = TN_MAX(most, depth);
    }
    return 1 + most;
}

static void write_and_read(tn_context *ctx, const tn_json *root)
{
    char *text = NULL;
    size_t n = 0;
    json j;
    tn_arena arena;
    const tn_json *again = NULL;
    if (depth_of(root) >= JSON_DEPTH - 1 || (root->kind != TN_JSON_OBJECT && root->kind != TN_JSON_ARRAY))
        return;
    FILE *f = open_memstream(&text, &n);
    fuzz_must(f != NULL);
    json_init(&j, f);
    bool ok = write_value(&j, root, NULL, 0);
    fclose(f);
    tn_arena_init(&arena, ctx);
    if (ok && !has_infinite(root))
        fuzz_must(tn_json_read(&arena, "written", text, n, &again) == TN_OK && same(root, again));
    if (ok) { // the same on one line
        json_one_line(text);
        fuzz_must(tn_json_read(&arena, "written", text, strlen(text), &again) == TN_OK);
    }
    tn_arena_fini(&arena);
    free(text);
}

// The reader of files of the tool takes more (it trusts its own files); it has to end, and leave nothing.
static void read_by_tool(const char *text, size_t n)
{
    json_in in = {.p = text, .end = text + n};
    char *key = NULL;
    if (json_is(&in, '{')) {
        if (!json_open(&in, '{')) return;
        for (int i = 0; json_key(&in, &key); i++) {
            if (i % 2) {
                free(json_copy(&in));
            } else if (json_is(&in, '"')) {
                free(json_string(&in));
            } else {
                json_skip(&in);
            }
            free(key);
            key = NULL;
        }
    } else {
        json_skip(&in);
    }
}

// The server replaces zeros and halves of surrogate pairs, which makes keys equal that were not, and refuses
// numbers that are no doubles.
static void check_difference(tn_context *ctx, bool ok, const char *why)
{
    char message[256] = "";
    if (ok && (strstr(why, "number") || strstr(why, "twice") || strstr(why, "levels"))) return;
    tn_context_error(ctx, message, sizeof message);
    if (!ok && strstr(message, "surrogate")) return;
    fprintf(stderr, "the readers differ: %s; %s\n", ok ? "accepted" : message, ok ? why : "accepted");
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_context *ctx;
    tn_arena arena;
    const tn_json *root = NULL;
    body b;
    if (!ctx) fuzz_must(tn_context_create(NULL, &ctx) == TN_OK);
    char *copy = fuzz_copy(data, size);
    fuzz_cost cost = fuzz_begin(ctx);
    tn_arena_init(&arena, ctx);
    bool ok = tn_json_read(&arena, "fuzz", copy, size, &root) == TN_OK;
    bool accepted = body_parse(&b, copy, size);
    if (ok != accepted) check_difference(ctx, ok, b.why);
    if (accepted) free(node_copy(b.root));
    body_fini(&b);
    if (ok) write_and_read(ctx, root);
    tn_arena_fini(&arena);
    read_by_tool(copy, size);
    fuzz_end(&cost, size);
    free(copy);
    return 0;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    static const char *const words[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"a\":",
                                        "\"b\"",
                                        "\"\\u00e9\"",
                                        "\"\\ud83d\\ude00\"",
                                        "true",
                                        "false",
                                        "null",
                                        "0",
                                        "-1.5",
                                        "1e308",
                                        "9223372036854775807",
                                        "-0",
                                        "\"\\n\\\\\"",
                                        "\"\\ud800\"",
                                        "1e999",
                                        "0.1e-7",
                                        "{\"a\":",
                                        "[[[[[[",
                                        "]]]]",
                                        "\"\u4e2d\"",
                                        " ",
                                        "\n",
                                        "\"",
                                        "\\"};
    size_t n = 0;
    char open[64];
    size_t depth = 0;
    for (uint64_t k = 1 + fuzz_random(state) % 24; k > 0 && n + 100 < max; k--) {
        const char *w = words[fuzz_random(state) % TN_COUNT(words)];
        n = fuzz_put(out, n, max, w);
        for (const char *p = w; *p; p++) {
            if ((*p == '{' || *p == '[') && depth < sizeof open) open[depth++] = *p == '{' ? '}' : ']';
            if ((*p == '}' || *p == ']') && depth > 0) depth--;
        }
        if (fuzz_random(state) % 2)
            n = fuzz_put(out, n, max, depth > 0 && open[depth - 1] == '}' ? ",\"k\":" : ",");
    }
    while (depth > 0 && n < max) out[n++] = (uint8_t)open[--depth];
    return n;
}

#include "tests/fuzz/fuzz_main.h"
