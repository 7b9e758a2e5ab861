// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What all files of the schema translator use: errors that name their place, literals, conjunctions of
// schemas and the rules they become, references, the types that keywords mean.
#include "models/text/grammar/schema.h"

#include <stdio.h>
#include <string.h>

// Keywords that constrain nothing.
static const char *const annotations[] = {
    "title",       "description", "default",          "examples",        "example",    "$comment",
    "$schema",     "$defs",       "readOnly",         "writeOnly",       "deprecated", "$anchor",
    "definitions", "$id",         "contentMediaType", "contentEncoding",
};

// Keywords that are read, and the types they are about (0: all).
static const struct {
    const char *name;
    int32_t types;
} keywords[] = {
    {"type", 0},
    {"enum", 0},
    {"const", 0},
    {"anyOf", 0},
    {"oneOf", 0},
    {"allOf", 0},
    {"$ref", 0},
    {"properties", TN_S_OBJECT},
    {"required", TN_S_OBJECT},
    {"additionalProperties", TN_S_OBJECT},
    {"minProperties", TN_S_OBJECT},
    {"maxProperties", TN_S_OBJECT},
    {"items", TN_S_ARRAY},
    {"prefixItems", TN_S_ARRAY},
    {"additionalItems", TN_S_ARRAY},
    {"minItems", TN_S_ARRAY},
    {"maxItems", TN_S_ARRAY},
    {"uniqueItems", TN_S_ARRAY},
    {"minLength", TN_S_STRING},
    {"maxLength", TN_S_STRING},
    {"pattern", TN_S_STRING},
    {"format", TN_S_STRING},
    {"minimum", TN_S_NUMBER},
    {"maximum", TN_S_NUMBER},
    {"exclusiveMinimum", TN_S_NUMBER},
    {"exclusiveMaximum", TN_S_NUMBER},
    {"multipleOf", TN_S_NUMBER},
};

static const struct {
    const char *name;
    int32_t types;
} type_names[] = {
    {"null", TN_S_NULL},       {"boolean", TN_S_BOOL},
    {"integer", TN_S_INTEGER}, {"number", TN_S_NUMBER | TN_S_INTEGER},
    {"string", TN_S_STRING},   {"array", TN_S_ARRAY},
    {"object", TN_S_OBJECT},
};

// --- errors ----------------------------------------------------------------------------------------

// The JSON pointer of a value, found by a search from the root. Keys are escaped as RFC 6901 says.
static bool put_pointer(const tn_json *from, const tn_json *to, tn_strbuf *out)
{
    size_t size = out->size, index = 0;
    if (from == to) return true;
    for (const tn_json *v = from->first; v; v = v->next, index++) {
        tn_strbuf_puts(out, "/");
        if (!v->key) tn_strbuf_printf(out, "%zu", index);
        for (size_t i = 0; v->key && i < TN_MIN(v->key_size, 64); i++) {
            char c = v->key[i];
            if (c == '~' || c == '/')
                tn_strbuf_puts(out, c == '~' ? "~0" : "~1");
            else
                tn_strbuf_append(out, &c, 1);
        }
        if (put_pointer(v, to, out)) return true;
        if (out->status != TN_OK) return false;
        out->size = size;
        out->data[size] = 0;
    }
    return false;
}

tn_status tn_schema_fail(const tn_schema *s, tn_status status, const tn_json *where, const char *fmt, ...)
{
    char why[256];
    tn_strbuf place;
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    tn_strbuf_init(&place, s->ctx);
    tn_strbuf_puts(&place, "");
    bool found = where && put_pointer(s->root, where, &place);
    if (place.status == TN_OK)
        status = tn_fail(s->ctx, status, "schema: %s%s%s", found && place.size ? place.data : "",
                         found && place.size ? ": " : "", why);
    else
        status = place.status;
    tn_strbuf_fini(&place);
    return status;
}

// --- writing ---------------------------------------------------------------------------------------

void tn_schema_put_literal(tn_strbuf *out, const char *bytes, size_t n)
{
    tn_strbuf_puts(out, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\')
            tn_strbuf_printf(out, "\\%c", c);
        else if (c < 0x20)
            tn_strbuf_printf(out, "\\x%02X", c);
        else
            tn_strbuf_append(out, &bytes[i], 1);
    }
    tn_strbuf_puts(out, "\" ");
}

static void put_escaped(tn_strbuf *text, const char *bytes, size_t n)
{
    tn_strbuf_puts(text, "\"");
    tn_strbuf_json(text, bytes, n);
    tn_strbuf_puts(text, "\"");
}

void tn_schema_put_json_string(tn_schema *s, const char *bytes, size_t n)
{
    tn_strbuf text;
    tn_strbuf_init(&text, s->ctx);
    put_escaped(&text, bytes, n);
    if (text.status == TN_OK)
        tn_schema_put_literal(s->out, text.data, text.size);
    else
        s->out->status = text.status;
    tn_strbuf_fini(&text);
}

static void write_json(tn_strbuf *text, const tn_json *v)
{
    bool object = v->kind == TN_JSON_OBJECT;
    switch (v->kind) {
    case TN_JSON_NULL:
        tn_strbuf_puts(text, "null");
        return;
    case TN_JSON_BOOL:
        tn_strbuf_puts(text, v->is_true ? "true" : "false");
        return;
    case TN_JSON_NUMBER:
        tn_strbuf_puts(text, v->text);
        return;
    case TN_JSON_STRING:
        put_escaped(text, v->text, v->size);
        return;
    default:
        break;
    }
    tn_strbuf_puts(text, object ? "{" : "[");
    for (const tn_json *k = v->first; k; k = k->next) {
        if (object) put_escaped(text, k->key, k->key_size);
        if (object) tn_strbuf_puts(text, ": ");
        write_json(text, k);
        if (k->next) tn_strbuf_puts(text, ", ");
    }
    tn_strbuf_puts(text, object ? "}" : "]");
}

void tn_schema_put_constant(tn_schema *s, const tn_json *v)
{
    tn_strbuf text;
    tn_strbuf_init(&text, s->ctx);
    write_json(&text, v);
    if (text.status == TN_OK)
        tn_schema_put_literal(s->out, text.data, text.size);
    else
        s->out->status = text.status;
    tn_strbuf_fini(&text);
}

// --- work --------------------------------------------------------------------------------------------

bool tn_schema_spend(const tn_schema *s, size_t n)
{
    *s->work += (int64_t)TN_MIN(n, TN_SCHEMA_WORK_MAX);
    return *s->work <= TN_SCHEMA_WORK_MAX;
}

tn_status tn_schema_work(const tn_schema *s, size_t n)
{
    if (tn_schema_spend(s, n)) return TN_OK;
    return tn_schema_fail(s, TN_ERR_UNSUPPORTED, NULL, "it takes too much work; make it smaller");
}

// --- parts and rules -------------------------------------------------------------------------------

tn_status tn_schema_add(const tn_schema *s, tn_schema_all *all, const tn_json *json)
{
    if (json->kind != TN_JSON_OBJECT && json->kind != TN_JSON_BOOL)
        return tn_schema_fail(s, TN_ERR_ARG, json, "a schema is an object or a boolean, not %s",
                              tn_json_kind_name(json->kind));
    for (int32_t i = 0; i < all->n; i++)
        if (all->parts[i].json == json) return TN_OK;
    if (all->n == TN_SCHEMA_PARTS_MAX)
        return tn_schema_fail(s, TN_ERR_UNSUPPORTED, json, "more than %d schemas for one value",
                              (int)TN_SCHEMA_PARTS_MAX);
    all->parts[all->n++] = (tn_schema_part){json, 0};
    return TN_OK;
}

tn_status tn_schema_rule(tn_schema *s, const tn_schema_all *all, int32_t *rule)
{
    tn_status status = tn_schema_work(s, 2 * (size_t)s->n_rules);
    if (status != TN_OK) return status;
    for (int32_t i = 0; i < s->n_rules; i++) {
        const tn_schema_all *r = s->rules[i];
        if (r->n != all->n || memcmp(r->parts, all->parts, (size_t)all->n * sizeof *all->parts) != 0)
            continue;
        *rule = i;
        return TN_OK;
    }
    if (s->n_rules == TN_SCHEMA_RULES_MAX)
        return tn_schema_fail(s, TN_ERR_UNSUPPORTED, NULL, "it takes more than %d rules",
                              (int)TN_SCHEMA_RULES_MAX);
    // Only the parts in use are kept.
    size_t size = offsetof(tn_schema_all, parts) + (size_t)TN_MAX(all->n, 1) * sizeof *all->parts;
    tn_schema_all *copy = tn_arena_alloc(&s->arena, TN_MAX(size, sizeof *copy));
    if (!copy) return TN_ERR_MEMORY;
    memcpy(copy->parts, all->parts, (size_t)all->n * sizeof *all->parts);
    copy->n = all->n;
    *rule = s->n_rules;
    s->rules[s->n_rules++] = copy;
    return TN_OK;
}

static int32_t hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// One step of a pointer: "~1" is '/', "~0" '~', %XX a byte. Gives the length of the decoded key.
static size_t read_step(const char **p, char *key, size_t capacity)
{
    size_t n = 0;
    for (; **p && **p != '/'; ++*p) {
        char c = **p;
        if (c == '~' && ((*p)[1] == '0' || (*p)[1] == '1')) {
            c = (*p)[1] == '0' ? '~' : '/';
            ++*p;
        } else if (c == '%' && hex_digit((*p)[1]) >= 0 && hex_digit((*p)[2]) >= 0) {
            c = (char)(hex_digit((*p)[1]) * 16 + hex_digit((*p)[2]));
            *p += 2;
        }
        if (n < capacity) key[n++] = c;
    }
    return n;
}

static tn_status resolve(const tn_schema *s, const tn_json *ref, const tn_json **out)
{
    if (ref->kind != TN_JSON_STRING) return tn_schema_fail(s, TN_ERR_ARG, ref, "a reference is a string");
    const char *p = ref->text;
    const tn_json *v = s->root;
    if (*p != '#' || (p[1] && p[1] != '/'))
        return tn_schema_fail(s, TN_ERR_UNSUPPORTED, ref,
                              "only references within the schema are supported: #/...");
    for (p++; *p == '/' && v;) {
        char key[256];
        p++;
        size_t n = read_step(&p, key, sizeof key), index = 0;
        const tn_json *k = v->first;
        for (size_t i = 0; v->kind == TN_JSON_ARRAY && i < n && i < 9; i++)
            index = index * 10 + (size_t)(key[i] - '0');
        for (; k; k = k->next)
            if (v->kind == TN_JSON_ARRAY ? index-- == 0 : k->key_size == n && memcmp(k->key, key, n) == 0)
                break;
        v = k;
    }
    if (!v) return tn_schema_fail(s, TN_ERR_ARG, ref, "the reference %.64s leads nowhere", ref->text);
    *out = v;
    return TN_OK;
}

static tn_status check_keywords(const tn_schema *s, const tn_json *json)
{
    for (const tn_json *k = json->first; k; k = k->next) {
        bool known = k->key_size > 2 && memcmp(k->key, "x-", 2) == 0;
        for (size_t i = 0; i < TN_COUNT(annotations) && !known; i++)
            known = strcmp(annotations[i], k->key) == 0;
        for (size_t i = 0; i < TN_COUNT(keywords) && !known; i++)
            known = strcmp(keywords[i].name, k->key) == 0;
        if (json != s->root && strcmp(k->key, "$id") == 0) known = false;
        if (!known || strlen(k->key) != k->key_size)
            return tn_schema_fail(s, TN_ERR_UNSUPPORTED, k, "the keyword %.64s is not supported", k->key);
    }
    return TN_OK;
}

static bool is_child(const tn_schema *s, const tn_json *list, const tn_json *v)
{
    if (list) (void)tn_schema_spend(s, list->count);
    for (const tn_json *k = list ? list->first : NULL; k; k = k->next)
        if (k == v) return true;
    return false;
}

// Whether all parts that the schema leads to, by $ref, allOf or a chosen alternative, are `done`.
static bool leads_to_done(const tn_schema *s, const tn_schema_all *all, uint64_t done, const tn_json *json,
                          const tn_json *target)
{
    static const char *const names[] = {"allOf", "anyOf", "oneOf"};
    for (int32_t i = 0; i < all->n; i++) {
        bool meant = all->parts[i].json == target;
        for (size_t k = 0; k < TN_COUNT(names) && json->kind == TN_JSON_OBJECT && !meant; k++)
            meant = is_child(s, tn_json_get(json, names[k]), all->parts[i].json);
        if (meant && !(done >> i & 1)) return false;
    }
    return true;
}

// A schema that leads back to itself for the same value defines nothing, so it is an error.
static tn_status check_loops(const tn_schema *s, const tn_schema_all *all, const tn_json *const targets[])
{
    uint64_t done = 0, before;
    do {
        before = done;
        for (int32_t i = 0; i < all->n; i++)
            if (leads_to_done(s, all, done, all->parts[i].json, targets[i])) done |= (uint64_t)1 << i;
    } while (done != before);
    for (int32_t i = 0; i < all->n; i++)
        if (!(done >> i & 1))
            return tn_schema_fail(s, TN_ERR_ARG, all->parts[i].json, "the schema leads back to itself");
    return TN_OK;
}

tn_status tn_schema_flatten(tn_schema *s, const tn_schema_all *in, tn_schema_all *out, bool *never)
{
    const tn_json *targets[TN_SCHEMA_PARTS_MAX] = {NULL};
    *out = *in;
    *never = false;
    int32_t n = 0;
    for (int32_t i = 0; i < out->n; i++) { // it grows on the way
        const tn_json *json = out->parts[i].json, *target = NULL;
        if (json->kind == TN_JSON_BOOL) {
            *never |= !json->is_true;
            continue;
        }
        const tn_json *ref = tn_json_get(json, "$ref"), *list = tn_json_get(json, "allOf");
        tn_status status = tn_schema_work(s, 100 + 100 * json->count); // each key is looked up in lists
        if (status == TN_OK) status = check_keywords(s, json);
        if (status == TN_OK && ref) status = resolve(s, ref, &target);
        targets[i] = target;
        if (status == TN_OK && target) status = tn_schema_add(s, out, target);
        if (status == TN_OK && list && (list->kind != TN_JSON_ARRAY || list->count == 0))
            status = tn_schema_fail(s, TN_ERR_ARG, list, "allOf is a list of schemas");
        for (const tn_json *k = list ? list->first : NULL; k && status == TN_OK; k = k->next)
            status = tn_schema_add(s, out, k);
        if (status != TN_OK) return status;
    }
    tn_status status = check_loops(s, out, targets);
    for (int32_t i = 0; i < out->n; i++)
        if (out->parts[i].json->kind == TN_JSON_OBJECT) out->parts[n++] = out->parts[i];
    out->n = n;
    return status;
}

// --- types -----------------------------------------------------------------------------------------

static tn_status one_type(const tn_schema *s, const tn_json *name, int32_t *types)
{
    for (size_t i = 0; i < TN_COUNT(type_names); i++)
        if (tn_json_is(name, type_names[i].name)) {
            *types |= type_names[i].types;
            return TN_OK;
        }
    return tn_schema_fail(s, TN_ERR_ARG, name,
                          "unknown type; known are null boolean integer number string array object");
}

int32_t tn_schema_keyword_types(const char *key)
{
    for (size_t i = 0; i < TN_COUNT(keywords); i++)
        if (strcmp(keywords[i].name, key) == 0) return keywords[i].types;
    return 0;
}

static int32_t keyword_types(const tn_json *json)
{
    int32_t types = 0;
    for (size_t i = 0; i < TN_COUNT(keywords); i++)
        if (keywords[i].types && tn_json_get(json, keywords[i].name)) types |= keywords[i].types;
    return types & TN_S_NUMBER ? types | TN_S_INTEGER : types;
}

// Without "type", the keywords decide which types are meant.
tn_status tn_schema_types(const tn_schema *s, const tn_schema_all *all, int32_t *types)
{
    int32_t meant = 0, allowed = TN_S_ALL;
    bool named = false;
    for (int32_t i = 0; i < all->n; i++) {
        const tn_json *type = tn_json_get(all->parts[i].json, "type");
        meant |= keyword_types(all->parts[i].json);
        if (!type) continue;
        int32_t own = 0;
        tn_status status = tn_schema_work(s, type->count);
        if (type->kind == TN_JSON_ARRAY)
            for (const tn_json *k = type->first; k && status == TN_OK; k = k->next)
                status = one_type(s, k, &own);
        else
            status = one_type(s, type, &own);
        if (status != TN_OK) return status;
        allowed &= own;
        named = true;
    }
    *types = named || !meant ? allowed : meant;
    return TN_OK;
}

bool tn_schema_same(const tn_schema *s, const tn_json *a, const tn_json *b)
{
    bool enough = tn_schema_spend(s, 4 + a->count);
    if (!enough || a->kind != b->kind || a->count != b->count) return false;
    if (a->kind == TN_JSON_BOOL) return a->is_true == b->is_true;
    if (a->kind == TN_JSON_NUMBER) return a->number == b->number;
    if (a->kind == TN_JSON_STRING) return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
    const tn_json *y = b->first;
    for (const tn_json *x = a->first; x; x = x->next) {
        if (a->kind == TN_JSON_OBJECT) y = tn_json_get(b, x->key);
        if (!y || !tn_schema_same(s, x, y)) return false;
        if (a->kind == TN_JSON_ARRAY) y = y->next;
    }
    return true;
}
