// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/body.h"

#include "tools/json/json_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, VALUES_MAX = 1 << 20, BLOCK_NODES = 256, NUMBER_MAX = 400 };

typedef struct node_block {
    struct node_block *next;
    node nodes[BLOCK_NODES];
} node_block;

static bool broken(body *b, const char *why)
{
    if (!b->why) b->why = why;
    return false;
}

static bool no_memory(body *b)
{
    b->no_memory = true;
    return broken(b, "out of memory");
}

// --- UTF-8 -----------------------------------------------------------------------------------------------

// RFC 3629, section 4: the range of the second byte, and the length, by the first byte.
static size_t char_size(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80) return 1;
    size_t size = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || size > n) return 0;
    unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < size; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return size;
}

static bool is_utf8(body *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t size = char_size((const unsigned char *)text + i, n - i);
        b->at = i;
        if (size == 0) return broken(b, "the text is not UTF-8");
        i += size;
    }
    return true;
}

// --- values ----------------------------------------------------------------------------------------------

static node *new_node(body *b)
{
    if (b->n_nodes >= VALUES_MAX) {
        broken(b, "more than 1048576 values");
        return NULL;
    }
    if (b->n_nodes % BLOCK_NODES == 0) {
        node_block *block = calloc(1, sizeof *block);
        if (!block) {
            no_memory(b);
            return NULL;
        }
        block->next = b->blocks;
        b->blocks = block;
    }
    return &b->blocks->nodes[b->n_nodes++ % BLOCK_NODES];
}

static bool read_text(body *b, json_in *in, const char **text, size_t *n)
{
    if (!json_is(in, '"')) return broken(b, "a string was expected");
    const char *from = in->p;
    char *out = b->strings + b->n_strings;
    if (!json_decode(in, out, n)) return broken(b, "a string is not closed, or has a bad escape");
    for (const char *p = from; p < in->p; p++)
        if ((unsigned char)*p < 0x20) return broken(b, "a control character in a string must be escaped");
    b->n_strings += *n + 1;
    *text = out;
    return true;
}

static size_t digits(const char *p, const char *end)
{
    size_t n = 0;
    while (p + n < end && p[n] >= '0' && p[n] <= '9') n++;
    return n;
}

// RFC 8259, section 6: the length of a number, 0 if it is none.
static size_t number_size(const char *text, const char *end, bool *whole)
{
    const char *p = text;
    p += p < end && *p == '-';
    size_t n = digits(p, end);
    if (n == 0 || (n > 1 && *p == '0')) return 0;
    p += n;
    *whole = true;
    if (p < end && *p == '.') {
        n = digits(++p, end);
        if (n == 0) return 0;
        p += n;
        *whole = false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        n = digits(p, end);
        if (n == 0) return 0;
        p += n;
        *whole = false;
    }
    return (size_t)(p - text);
}

static bool read_number(body *b, json_in *in, node *v)
{
    char copy[NUMBER_MAX + 1];
    bool whole = false;
    size_t n = number_size(in->p, in->end, &whole);
    if (n == 0) return broken(b, "a value was expected");
    if (n > NUMBER_MAX) return broken(b, "a number has more than 400 characters");
    memcpy(copy, in->p, n);
    copy[n] = 0;
    in->p += n;
    v->kind = NODE_NUMBER;
    v->number = strtod(copy, NULL);
    if (!isfinite(v->number)) return broken(b, "a number is too large");
    errno = 0;
    v->integer = whole ? strtoll(copy, NULL, 10) : 0;
    v->whole = whole && errno == 0;
    const double exact = 9007199254740992.0; // 2^53: 1.0 and 1e3 are whole numbers too
    if (!whole && v->number == floor(v->number) && fabs(v->number) <= exact) {
        v->integer = (int64_t)v->number;
        v->whole = true;
    }
    return true;
}

static bool read_word(body *b, json_in *in, node *v)
{
    static const struct {
        const char *word;
        node_kind kind;
        bool truth;
    } words[] = {{"true", NODE_BOOL, true}, {"false", NODE_BOOL, false}, {"null", NODE_NULL, false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(in->end - in->p) < n || memcmp(in->p, words[i].word, n) != 0) continue;
        in->p += n;
        v->kind = words[i].kind;
        v->truth = words[i].truth;
        return true;
    }
    return read_number(b, in, v);
}

// --- containers ------------------------------------------------------------------------------------------

static int by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_double_key(body *b, const node *object)
{
    if (object->n < 2) return false;
    const char **keys = malloc(object->n * sizeof *keys);
    size_t n = 0;
    bool found = false;
    if (!keys) return !no_memory(b);
    for (const node *v = object->first; v; v = v->next) keys[n++] = v->key;
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 1; i < n && !found; i++) found = strcmp(keys[i - 1], keys[i]) == 0;
    free(keys);
    if (found) broken(b, "a key occurs twice in an object");
    return found;
}

static bool read_value(body *b, json_in *in, node *v, int depth);

// The next item behind `last`; its key was read already.
static bool add_item(body *b, json_in *in, node *container, node **last, const char *key, int depth)
{
    node *v = new_node(b);
    if (!v) return false;
    v->key = key;
    if (*last)
        (*last)->next = v;
    else
        container->first = v;
    *last = v;
    container->n++;
    bool ok = read_value(b, in, v, depth + 1);
    in->first = false;
    return ok;
}

static bool read_list(body *b, json_in *in, node *list, int depth)
{
    node *last = NULL;
    list->kind = NODE_LIST;
    json_open(in, '[');
    while (json_item(in))
        if (!add_item(b, in, list, &last, NULL, depth)) return false;
    return !in->failed || broken(b, "a list is not closed, or lacks a comma");
}

// json_key of json/json_read.h gives a copy from malloc; here strings are in one block of memory.
static bool next_key(body *b, json_in *in, const char **key, bool *end)
{
    size_t n;
    *end = json_is(in, '}');
    if (*end) {
        in->p++;
        return true;
    }
    if (!in->first) {
        if (!json_is(in, ',')) return broken(b, "an object is not closed, or lacks a comma");
        in->p++;
    }
    if (!read_text(b, in, key, &n)) return false;
    if (!json_is(in, ':')) return broken(b, "a colon was expected behind a key");
    in->p++;
    return true;
}

static bool read_object(body *b, json_in *in, node *object, int depth)
{
    node *last = NULL;
    const char *key;
    bool end;
    object->kind = NODE_OBJECT;
    json_open(in, '{');
    for (;;) {
        if (!next_key(b, in, &key, &end)) return false;
        if (end) break;
        if (!add_item(b, in, object, &last, key, depth)) return false;
    }
    return !has_double_key(b, object);
}

static bool read_value(body *b, json_in *in, node *v, int depth)
{
    bool ok;
    if (depth > DEPTH_MAX) return broken(b, "more than 64 levels of objects and lists");
    if (json_is(in, '{')) {
        v->raw = in->p;
        ok = read_object(b, in, v, depth);
    } else if (json_is(in, '[')) {
        v->raw = in->p;
        ok = read_list(b, in, v, depth);
    } else if (json_is(in, '"')) {
        v->raw = in->p;
        v->kind = NODE_TEXT;
        ok = read_text(b, in, &v->text, &v->n_text);
    } else { // json_is has skipped the blanks
        v->raw = in->p;
        ok = in->p < in->end ? read_word(b, in, v) : broken(b, "the text ends in the middle");
    }
    v->n_raw = (size_t)(in->p - v->raw);
    return ok;
}

// --- the whole -------------------------------------------------------------------------------------------

bool body_parse(body *b, const char *text, size_t n)
{
    *b = (body){0};
    if (!is_utf8(b, text, n)) return false;
    b->at = 0;
    json_in in = {.p = text, .end = text + n};
    b->strings = malloc(n + 1); // decoded strings are shorter than their JSON text
    node *root = b->strings ? new_node(b) : NULL;
    if (!root) return no_memory(b);
    bool ok = read_value(b, &in, root, 0);
    if (ok && (json_is(&in, 0) || in.p < in.end)) ok = broken(b, "more text behind the value");
    b->at = (size_t)(in.p - text);
    b->root = ok ? root : NULL;
    return ok;
}

void body_fini(body *b)
{
    while (b->blocks) {
        node_block *block = b->blocks;
        b->blocks = block->next;
        free(block);
    }
    free(b->strings);
    *b = (body){0};
}

const node *node_get(const node *object, const char *key)
{
    if (!object || object->kind != NODE_OBJECT) return NULL;
    for (const node *v = object->first; v; v = v->next)
        if (strcmp(v->key, key) == 0) {
            ((node *)(uintptr_t)v)->seen = true; // the tree is in memory of the body
            return v->kind == NODE_NULL ? NULL : v;
        }
    return NULL;
}

// The number of the escape \uXXXX at `at`; -1: there is none.
static long escaped_at(const char *at)
{
    if (at[0] != '\\' || at[1] != 'u') return -1;
    char digits[5] = "";
    strncpy(digits, at + 2, 4);
    return strtol(digits, NULL, 16);
}

// Replaces escapes of zero bytes and of halves of surrogate pairs by that of U+FFFD, as the reader of texts
// does: the library accepts neither.
static void replace_halves(char *json)
{
    for (char *p = json; (p = strchr(p, '\\')); p += 2) {
        long c = escaped_at(p);
        bool high = c >= 0xd800 && c < 0xdc00;
        long next = high ? escaped_at(p + 6) : -1;
        if (next >= 0xdc00 && next < 0xe000)
            p += 6;
        else if (c == 0 || (c >= 0xd800 && c < 0xe000))
            memcpy(p + 2, "fffd", 4);
    }
}

char *node_copy(const node *value)
{
    char *out = malloc(value->n_raw + 1);
    if (!out) return NULL;
    memcpy(out, value->raw, value->n_raw);
    out[value->n_raw] = 0;
    replace_halves(out);
    return out;
}

const char *node_kind_name(const node *value)
{
    static const char *const names[] = {"null", "a boolean", "a number", "a string", "a list", "an object"};
    return names[value->kind];
}
