// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/text/grammar/json_read.h"

#include "models/text/tokenizer/unicode.h"

#include <string.h>

typedef struct reader {
    tn_arena *arena;
    const char *what, *start, *p, *end;
    size_t n_values;
} reader;

// --- errors ------------------------------------------------------------------------------------------

static tn_status fail(const reader *r, const char *why)
{
    size_t line = 1, column = 1;
    for (const char *p = r->start; p < r->p; p++) {
        column = *p == '\n' ? 1 : column + (((unsigned char)*p & 0xc0) != 0x80);
        line += *p == '\n';
    }
    return tn_fail(r->arena->ctx, TN_ERR_FORMAT, "%s: line %zu, column %zu: %s", r->what, line, column, why);
}

static void skip_space(reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) r->p++;
}

static bool next_is(const reader *r, char c)
{
    return r->p < r->end && *r->p == c;
}

static bool next_is_digit(const reader *r)
{
    return r->p < r->end && *r->p >= '0' && *r->p <= '9';
}

// --- strings -----------------------------------------------------------------------------------------

static int32_t hex4(const char *p)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int32_t digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
        if (digit < 0) return -1;
        v = v * 16 + digit;
    }
    return v;
}

// \uXXXX at p; two of them where the first is a high surrogate.
static tn_status read_unicode(reader *r, char **w)
{
    int32_t cp = r->end - r->p >= 6 ? hex4(r->p + 2) : -1;
    if (cp < 0) return fail(r, "\\u needs four hexadecimal digits");
    if (cp >= 0xd800 && cp < 0xe000) {
        bool pair = cp < 0xdc00 && r->end - r->p >= 12 && r->p[6] == '\\' && r->p[7] == 'u';
        int32_t low = pair ? hex4(r->p + 8) : -1;
        if (low < 0xdc00 || low >= 0xe000) return fail(r, "half of a surrogate pair is no character");
        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        r->p += 6;
    }
    r->p += 6;
    *w += tn_utf8_encode((uint32_t)cp, *w);
    return TN_OK;
}

static tn_status read_escape(reader *r, char **w)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->end - r->p < 2) return fail(r, "the string is not closed");
    if (r->p[1] == 'u') return read_unicode(r, w);
    const char *at = r->p[1] ? strchr(from, r->p[1]) : NULL;
    if (!at) return fail(r, "unknown escape; known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    *(*w)++ = to[at - from];
    r->p += 2;
    return TN_OK;
}

static bool is_character(const char *p, size_t n, size_t *size)
{
    char again[4];
    uint32_t cp = tn_utf8_decode(p, n, size);
    bool in_range = cp <= 0x10ffff && !(cp >= 0xd800 && cp < 0xe000);
    return in_range && tn_utf8_encode(cp, again) == *size && memcmp(again, p, *size) == 0;
}

// At the opening quote. No escape is shorter than what it stands for.
static tn_status read_string(reader *r, const char **text, size_t *size)
{
    const char *close = r->p + 1;
    while (close < r->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= r->end) return fail(r, "the string is not closed");
    char *out = tn_arena_alloc(r->arena, (size_t)(close - r->p)), *w = out;
    if (!out) return TN_ERR_MEMORY;
    for (r->p++; r->p < close;) {
        size_t n = 1;
        if (*r->p == '\\') {
            tn_status status = read_escape(r, &w);
            if (status != TN_OK) return status;
            continue;
        }
        if ((unsigned char)*r->p < 0x20) return fail(r, "a control character in a string needs an escape");
        if (!is_character(r->p, (size_t)(close - r->p), &n)) return fail(r, "the string is not UTF-8");
        memcpy(w, r->p, n);
        w += n;
        r->p += n;
    }
    r->p = close + 1;
    *w = 0;
    *text = out;
    *size = (size_t)(w - out);
    return TN_OK;
}

// --- numbers -----------------------------------------------------------------------------------------

// strtod would follow the locale. Digits beyond the 18th move the exponent only.
static double number_value(const char *p, const char *end)
{
    uint64_t digits = 0;
    int64_t scale = 0, exponent = 0;
    bool negative = *p == '-', fraction = false, negative_exponent = false;
    for (p += negative; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        bool fits = digits < UINT64_MAX / 10 - 1;
        if (fits) digits = digits * 10 + (uint64_t)(*p - '0');
        scale += fraction ? (fits ? -1 : 0) : (fits ? 0 : 1);
    }
    if (p < end) {
        p++;
        negative_exponent = *p == '-';
        for (p += *p == '-' || *p == '+'; p < end; p++)
            if (exponent < 100000) exponent = exponent * 10 + (*p - '0');
    }
    scale += negative_exponent ? -exponent : exponent;
    long double v = (long double)digits;
    int64_t n = digits == 0 ? 0 : TN_MIN(scale < 0 ? -scale : scale, 1000);
    for (int64_t k; n > 0; n -= k) { // in steps whose power no type overflows
        long double power = 1;
        k = TN_MIN(n, 256);
        for (int64_t i = 0; i < k; i++) power *= 10;
        v = scale < 0 ? v / power : v * power;
    }
    return (double)(negative ? -v : v);
}

static bool integer_value(const char *p, const char *end, int64_t *out)
{
    bool negative = *p == '-';
    uint64_t v = 0, max = (uint64_t)INT64_MAX + negative;
    for (p += negative; p < end; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (*p < '0' || *p > '9' || v > (max - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static tn_status digits(reader *r)
{
    if (!next_is_digit(r)) return fail(r, "a digit is missing");
    while (next_is_digit(r)) r->p++;
    return TN_OK;
}

static tn_status read_number(reader *r, tn_json *v)
{
    const char *start = r->p;
    tn_status status = TN_OK;
    r->p += *r->p == '-';
    if (next_is(r, '0')) {
        r->p++;
        if (next_is_digit(r)) return fail(r, "a number does not begin with 0");
    } else {
        status = digits(r);
    }
    if (status == TN_OK && next_is(r, '.')) {
        r->p++;
        status = digits(r);
    }
    if (status == TN_OK && (next_is(r, 'e') || next_is(r, 'E'))) {
        r->p++;
        r->p += next_is(r, '-') || next_is(r, '+');
        status = digits(r);
    }
    if (status != TN_OK) return status;
    size_t n = (size_t)(r->p - start);
    char *text = tn_arena_alloc(r->arena, n + 1);
    if (!text) return TN_ERR_MEMORY;
    memcpy(text, start, n);
    *v = (tn_json){.kind = TN_JSON_NUMBER, .number = number_value(start, r->p), .text = text, .size = n};
    v->is_integer = integer_value(start, r->p, &v->integer);
    if (!(v->number <= 1.7976931348623157e308 && v->number >= -1.7976931348623157e308)) {
        r->p = start;
        return fail(r, "the number is too large");
    }
    return TN_OK;
}

// --- values ------------------------------------------------------------------------------------------

static tn_status read_value(reader *r, int depth, tn_json **out);

// FNV-1a; a table of positions finds a key that comes twice without comparing all pairs.
static tn_status check_keys(reader *r, const tn_json *object)
{
    size_t capacity = 16;
    while (capacity < object->count * 2) capacity *= 2;
    const tn_json **table = tn_calloc(r->arena->ctx, capacity, sizeof *table);
    if (!table) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (const tn_json *v = object->first; v && status == TN_OK; v = v->next) {
        uint32_t hash = 0x811c9dc5u;
        for (size_t i = 0; i < v->key_size; i++) hash = (hash ^ (unsigned char)v->key[i]) * 0x01000193u;
        size_t at = hash & (capacity - 1);
        for (; table[at] && status == TN_OK; at = (at + 1) & (capacity - 1))
            if (table[at]->key_size == v->key_size && memcmp(table[at]->key, v->key, v->key_size) == 0)
                status = fail(r, "the object that ends here has a key twice");
        table[at] = v;
    }
    tn_free(r->arena->ctx, table);
    return status;
}

static tn_status read_key(reader *r, const char **key, size_t *size)
{
    skip_space(r);
    if (!next_is(r, '"')) return fail(r, "a key in quotes is missing");
    tn_status status = read_string(r, key, size);
    skip_space(r);
    if (status == TN_OK && !next_is(r, ':')) status = fail(r, "a ':' is missing");
    r->p++;
    return status;
}

static tn_status read_items(reader *r, int depth, tn_json *v)
{
    bool object = v->kind == TN_JSON_OBJECT;
    char close = object ? '}' : ']';
    tn_json **last = &v->first;
    if (depth >= TN_JSON_DEPTH_MAX) return fail(r, "nested deeper than 64 levels");
    r->p++;
    skip_space(r);
    if (next_is(r, close)) {
        r->p++;
        return TN_OK;
    }
    for (;;) {
        const char *key = NULL;
        size_t key_size = 0;
        tn_status status = object ? read_key(r, &key, &key_size) : TN_OK;
        if (status == TN_OK) status = read_value(r, depth + 1, last);
        if (status != TN_OK) return status;
        (*last)->key = key;
        (*last)->key_size = key_size;
        last = &(*last)->next;
        v->count++;
        skip_space(r);
        if (next_is(r, close)) break;
        if (!next_is(r, ',')) return fail(r, object ? "a ',' or '}' is missing" : "a ',' or ']' is missing");
        r->p++;
    }
    tn_status status = object ? check_keys(r, v) : TN_OK;
    r->p++;
    return status;
}

static tn_status read_word(reader *r, tn_json *v)
{
    static const struct {
        const char *text;
        tn_json_kind kind;
        bool is_true;
    } words[] = {{"true", TN_JSON_BOOL, true}, {"false", TN_JSON_BOOL, false}, {"null", TN_JSON_NULL, false}};
    for (size_t i = 0; i < TN_COUNT(words); i++) {
        size_t n = strlen(words[i].text);
        if ((size_t)(r->end - r->p) < n || memcmp(r->p, words[i].text, n) != 0) continue;
        v->kind = words[i].kind;
        v->is_true = words[i].is_true;
        r->p += n;
        return TN_OK;
    }
    return fail(r, r->p == r->end ? "a value is missing" : "no JSON value begins like this");
}

static tn_status read_value(reader *r, int depth, tn_json **out)
{
    skip_space(r);
    if (r->n_values++ >= TN_JSON_VALUES_MAX) return fail(r, "more than 1048576 values");
    tn_json *v = tn_arena_alloc(r->arena, sizeof *v);
    if (!v) return TN_ERR_MEMORY;
    tn_status status;
    if (next_is(r, '{') || next_is(r, '[')) {
        v->kind = *r->p == '{' ? TN_JSON_OBJECT : TN_JSON_ARRAY;
        status = read_items(r, depth, v);
    } else if (next_is(r, '"')) {
        v->kind = TN_JSON_STRING;
        status = read_string(r, &v->text, &v->size);
    } else if (next_is(r, '-') || next_is_digit(r)) {
        status = read_number(r, v);
    } else {
        status = read_word(r, v);
    }
    if (status == TN_OK) *out = v;
    return status;
}

tn_status tn_json_read(tn_arena *arena, const char *what, const char *text, size_t n, const tn_json **out)
{
    reader r = {.arena = arena, .what = what, .start = text, .p = text, .end = text + n};
    if (n > TN_JSON_SIZE_MAX)
        return tn_fail(arena->ctx, TN_ERR_FORMAT, "%s: %zu bytes, at most %d are read", what, n,
                       (int)TN_JSON_SIZE_MAX);
    tn_json *v = NULL;
    tn_status status = read_value(&r, 0, &v);
    skip_space(&r);
    if (status == TN_OK && r.p < r.end) status = fail(&r, "text behind the value");
    if (status == TN_OK) *out = v;
    return status;
}

// --- access ------------------------------------------------------------------------------------------

const tn_json *tn_json_get(const tn_json *object, const char *key)
{
    size_t n = strlen(key);
    if (!object || object->kind != TN_JSON_OBJECT) return NULL;
    for (const tn_json *v = object->first; v; v = v->next)
        if (v->key_size == n && memcmp(v->key, key, n) == 0) return v;
    return NULL;
}

bool tn_json_is(const tn_json *string, const char *text)
{
    size_t n = strlen(text);
    return string && string->kind == TN_JSON_STRING && string->size == n &&
           memcmp(string->text, text, n) == 0;
}

const char *tn_json_kind_name(tn_json_kind kind)
{
    static const char *const names[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};
    return names[kind];
}
