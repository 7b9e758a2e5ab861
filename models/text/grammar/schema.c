// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON schema (draft 2020-12, and what older drafts call definitions and items with a list): combinations and
// constants. Each conjunction of schemas becomes one rule; rules are written from a list, so that recursion
// through references ends.
#include "models/text/grammar/schema.h"

#include "models/text/grammar/grammar.h"

#include <stdio.h>
#include <string.h>

enum { DONE_ANY = 1, DONE_ONE = 2 };

static const char base_rules[] =
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n"
    "hex ::= [0-9a-fA-F]\n"
    "char ::= [^\"\\\\\\x00-\\x1F\\x7F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-cA-CefEF] "
    "hex{3} | [dD] [0-7] hex{2}))\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
    "number ::= integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?\n"
    "member ::= string \":\" ws value\n"
    "object ::= \"{\" ws (member (\",\" ws member)* ws)? \"}\"\n"
    "array ::= \"[\" ws (value (\",\" ws value)* ws)? \"]\"\n"
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n";

// --- constants ---------------------------------------------------------------------------------------

static bool has_type(const tn_json *v, int32_t types)
{
    static const int32_t of_kind[] = {TN_S_NULL, TN_S_BOOL, 0, TN_S_STRING, TN_S_ARRAY, TN_S_OBJECT};
    if (v->kind != TN_JSON_NUMBER) return types & of_kind[v->kind];
    bool whole = v->number == (double)(int64_t)(v->number > -9e18 && v->number < 9e18 ? v->number : 0.5);
    return types & TN_S_NUMBER || (types & TN_S_INTEGER && whole);
}

static bool part_has(const tn_schema *s, const tn_json *json, const tn_json *v)
{
    const tn_json *list = tn_json_get(json, "enum"), *one = tn_json_get(json, "const");
    if (one && !tn_schema_same(s, one, v)) return false;
    if (!list) return true;
    for (const tn_json *k = list->first; k && tn_schema_spend(s, 1); k = k->next)
        if (tn_schema_same(s, k, v)) return true;
    return false;
}

static bool allows_constant(const tn_schema *s, const tn_schema_all *all, int32_t types, const tn_json *v)
{
    bool ok = has_type(v, types);
    for (int32_t i = 0; i < all->n && ok; i++) ok = part_has(s, all->parts[i].json, v);
    return ok;
}

// The constants of the first part that has enum or const: *first, and its siblings if *is_list.
static tn_status find_constants(const tn_schema *s, const tn_schema_all *all, const tn_json **first,
                                bool *is_list)
{
    *first = NULL;
    for (int32_t i = 0; i < all->n; i++) {
        const tn_json *json = all->parts[i].json, *list = tn_json_get(json, "enum"),
                      *one = tn_json_get(json, "const");
        if (list && (list->kind != TN_JSON_ARRAY || list->count == 0))
            return tn_schema_fail(s, TN_ERR_ARG, list, "enum is a list of values");
        if (*first || (!list && !one)) continue;
        *first = one ? one : list->first;
        *is_list = !one;
    }
    for (int32_t i = 0; i < all->n && *first; i++)
        for (const tn_json *k = all->parts[i].json->first; k; k = k->next) {
            if (tn_schema_keyword_types(k->key))
                return tn_schema_fail(s, TN_ERR_UNSUPPORTED, k, "%s beside enum or const is not supported",
                                      k->key);
        }
    return TN_OK;
}

// Whether it is obvious that no value satisfies the conjunction: a `false`, or types or constants that
// exclude each other.
static tn_status is_impossible(tn_schema *s, const tn_schema_all *choice, bool *impossible)
{
    tn_schema_all all;
    const tn_json *first = NULL;
    bool is_list = false;
    int32_t types = 0, n = 0;
    tn_status status = tn_schema_flatten(s, choice, &all, impossible);
    if (status == TN_OK) status = tn_schema_types(s, &all, &types);
    if (status == TN_OK) status = find_constants(s, &all, &first, &is_list);
    for (const tn_json *v = first; v && status == TN_OK && tn_schema_spend(s, 1);
         v = is_list ? v->next : NULL)
        n += allows_constant(s, &all, types, v);
    *impossible = *impossible || types == 0 || (first && n == 0);
    return status == TN_OK ? tn_schema_work(s, 0) : status;
}

static tn_status put_constants(tn_schema *s, const tn_schema_all *all, const tn_json *first, bool is_list)
{
    int32_t types, n = 0;
    tn_status status = TN_OK;
    // The type only restricts the constants; it is not one of the alternatives.
    tn_schema_all typed = *all;
    status = tn_schema_types(s, &typed, &types);
    for (const tn_json *v = first; v && status == TN_OK; v = is_list ? v->next : NULL) {
        status = tn_schema_work(s, 1);
        if (status != TN_OK || !allows_constant(s, all, types, v)) continue;
        if (n++) tn_strbuf_puts(s->out, "| ");
        tn_schema_put_constant(s, v);
    }
    if (status == TN_OK) status = tn_schema_work(s, 0);
    if (status == TN_OK && n == 0)
        status = tn_schema_fail(s, TN_ERR_ARG, first, "no value is left of enum and const");
    return status;
}

// --- combinations ------------------------------------------------------------------------------------

static bool required_has(const tn_schema *s, const tn_schema_all *all, const tn_json *name)
{
    for (int32_t i = 0; i < all->n; i++) {
        const tn_json *list = tn_json_get(all->parts[i].json, "required");
        for (const tn_json *k = list ? list->first : NULL; k && tn_schema_spend(s, 1); k = k->next)
            if (tn_schema_same(s, k, name)) return true;
    }
    return false;
}

static bool forbids(const tn_schema *s, const tn_schema_all *all, const char *name)
{
    for (int32_t i = 0; i < all->n; i++) {
        const tn_json *json = all->parts[i].json, *list = tn_json_get(json, "properties"),
                      *p = tn_json_get(list, name);
        const tn_json *more = tn_json_get(json, "additionalProperties");
        if (list) (void)tn_schema_spend(s, list->count);
        if (p && p->kind == TN_JSON_BOOL && !p->is_true) return true;
        if (!p && more && more->kind == TN_JSON_BOOL && !more->is_true) return true;
    }
    return false;
}

static bool constants_apart(const tn_schema *s, const tn_schema_all *a, const tn_schema_all *b)
{
    const tn_json *first = NULL;
    bool is_list = false;
    int32_t types;
    if (find_constants(s, a, &first, &is_list) != TN_OK || !first || tn_schema_types(s, a, &types) != TN_OK)
        return false;
    for (const tn_json *v = first; v && tn_schema_spend(s, 1); v = is_list ? v->next : NULL) {
        if (!allows_constant(s, a, types, v)) continue;
        bool other = true, constant = false;
        for (int32_t i = 0; i < b->n; i++) {
            constant |= tn_json_get(b->parts[i].json, "enum") || tn_json_get(b->parts[i].json, "const");
            other = other && part_has(s, b->parts[i].json, v);
        }
        if (!constant || other) return false;
    }
    return true;
}

static tn_status are_apart(tn_schema *s, const tn_schema_all *a, const tn_schema_all *b, int depth,
                           bool *apart);

// Whether there is a property that both require with values that exclude each other, or that one requires and
// the other forbids.
static tn_status objects_apart(tn_schema *s, const tn_schema_all *a, const tn_schema_all *b, int depth,
                               bool *apart)
{
    for (int32_t i = 0; i < a->n; i++) {
        const tn_json *list = tn_json_get(a->parts[i].json, "required");
        for (const tn_json *name = list ? list->first : NULL; name; name = name->next) {
            if (name->kind != TN_JSON_STRING) continue;
            if ((*apart = forbids(s, b, name->text))) return TN_OK;
            if (!required_has(s, b, name) || depth > 4) continue;
            tn_schema_all x = {.n = 0}, y = {.n = 0};
            tn_status status = TN_OK;
            for (int32_t k = 0; k < a->n + b->n && status == TN_OK; k++) {
                bool first = k < a->n;
                const tn_json *json = first ? a->parts[k].json : b->parts[k - a->n].json;
                const tn_json *p = tn_json_get(tn_json_get(json, "properties"), name->text);
                if (p) status = tn_schema_add(s, first ? &x : &y, p);
            }
            if (status == TN_OK) status = are_apart(s, &x, &y, depth + 1, apart);
            if (status != TN_OK || *apart) return status;
        }
    }
    return TN_OK;
}

// Whether no value satisfies both; false also means: not known.
static tn_status are_apart(tn_schema *s, const tn_schema_all *a, const tn_schema_all *b, int depth,
                           bool *apart)
{
    tn_schema_all x, y;
    bool never_x, never_y;
    int32_t types_x = TN_S_ALL, types_y = TN_S_ALL;
    *apart = false;
    tn_status status = tn_schema_flatten(s, a, &x, &never_x);
    if (status == TN_OK) status = tn_schema_flatten(s, b, &y, &never_y);
    if (status != TN_OK) return status;
    // Only an explicit type excludes other values.
    for (int32_t i = 0; i < x.n + y.n && status == TN_OK; i++) {
        bool first = i < x.n;
        tn_schema_all one = {.n = 1, .parts = {first ? x.parts[i] : y.parts[i - x.n]}};
        int32_t types = TN_S_ALL;
        if (tn_json_get(one.parts[0].json, "type")) status = tn_schema_types(s, &one, &types);
        *(first ? &types_x : &types_y) &= types;
    }
    if (status != TN_OK) return status;
    *apart = never_x || never_y || !(types_x & types_y) || constants_apart(s, &x, &y) ||
             constants_apart(s, &y, &x);
    if (*apart || types_x != TN_S_OBJECT || types_y != TN_S_OBJECT) return TN_OK;
    status = objects_apart(s, &x, &y, depth, apart);
    return status != TN_OK || *apart ? status : objects_apart(s, &y, &x, depth, apart);
}

static tn_status check_one_of(tn_schema *s, const tn_json *list)
{
    for (const tn_json *a = list->first; a; a = a->next)
        for (const tn_json *b = a->next; b; b = b->next) {
            tn_schema_all x = {.n = 0}, y = {.n = 0};
            bool apart = false;
            tn_status status = tn_schema_add(s, &x, a);
            if (status == TN_OK) status = tn_schema_add(s, &y, b);
            if (status == TN_OK) status = are_apart(s, &x, &y, 0, &apart);
            if (status == TN_OK && !apart)
                status = tn_schema_fail(s, TN_ERR_UNSUPPORTED, list,
                                        "two schemas of oneOf may accept the same value; use anyOf, or tell "
                                        "them apart by type or by a "
                                        "required constant");
            if (status != TN_OK) return status;
        }
    return TN_OK;
}

// The alternatives of a list that some value can satisfy.
static tn_status put_list(tn_schema *s, const tn_schema_all *all, const tn_json *list)
{
    const char *separator = "";
    tn_status status = TN_OK;
    for (const tn_json *v = list->first; v && status == TN_OK; v = v->next) {
        tn_schema_all choice = *all;
        int32_t rule = 0;
        bool impossible = false;
        status = tn_schema_add(s, &choice, v);
        if (status == TN_OK) status = is_impossible(s, &choice, &impossible);
        if (status != TN_OK || impossible) continue;
        status = tn_schema_rule(s, &choice, &rule);
        tn_strbuf_printf(s->out, "%sr%d ", separator, (int)rule);
        separator = "| ";
    }
    if (status == TN_OK && !*separator)
        status = tn_schema_fail(s, TN_ERR_ARG, list, "nothing satisfies any of these schemas here");
    return status;
}

// The first anyOf or oneOf without a chosen alternative: each alternative becomes a conjunction. *found:
// there is one.
static tn_status put_choices(tn_schema *s, const tn_schema_all *all, bool *found)
{
    static const char *const names[] = {"anyOf", "oneOf"};
    *found = false;
    for (int32_t i = 0; i < all->n; i++)
        for (int32_t k = 0; k < 2; k++) {
            const tn_json *list = tn_json_get(all->parts[i].json, names[k]);
            if (!list || all->parts[i].done & (k ? DONE_ONE : DONE_ANY)) continue;
            *found = true;
            if (list->kind != TN_JSON_ARRAY || list->count == 0)
                return tn_schema_fail(s, TN_ERR_ARG, list, "%s is a list of schemas", names[k]);
            tn_status status = k ? check_one_of(s, list) : TN_OK;
            tn_schema_all chosen = *all;
            chosen.parts[i].done |= k ? DONE_ONE : DONE_ANY;
            return status == TN_OK ? put_list(s, &chosen, list) : status;
        }
    return TN_OK;
}

// --- rules -------------------------------------------------------------------------------------------

static tn_status put_types(tn_schema *s, const tn_schema_all *all)
{
    int32_t types = 0;
    tn_status status = tn_schema_types(s, all, &types);
    if (status != TN_OK) return status;
    if (types == 0)
        return tn_schema_fail(s, TN_ERR_ARG, all->n ? all->parts[0].json : NULL,
                              "no type satisfies all schemas of this value");
    const char *separator = "";
    for (int32_t type = TN_S_NULL; type <= TN_S_OBJECT && status == TN_OK; type <<= 1) {
        if (!(types & type) || (type == TN_S_INTEGER && types & TN_S_NUMBER)) continue;
        tn_strbuf_puts(s->out, separator);
        separator = "| ";
        if (type == TN_S_NULL) tn_strbuf_puts(s->out, "\"null\" ");
        if (type == TN_S_BOOL) tn_strbuf_puts(s->out, "\"true\" | \"false\" ");
        if (type == TN_S_INTEGER || type == TN_S_NUMBER)
            status = tn_schema_put_number(s, all, type == TN_S_INTEGER);
        if (type == TN_S_STRING) status = tn_schema_put_string(s, all);
        if (type == TN_S_ARRAY) status = tn_schema_put_array(s, all);
        if (type == TN_S_OBJECT) status = tn_schema_put_object(s, all);
    }
    return status;
}

static tn_status put_rule(tn_schema *s, int32_t rule)
{
    tn_schema_all all;
    bool never, found, is_list = false;
    const tn_json *first = NULL;
    tn_status status = tn_schema_flatten(s, s->rules[rule], &all, &never);
    if (status == TN_OK && never)
        status = tn_schema_fail(s, TN_ERR_ARG, s->rules[rule]->parts[0].json, "nothing satisfies false");
    if (status != TN_OK) return status;
    tn_strbuf_printf(s->out, "r%d ::= ", (int)rule);
    status = put_choices(s, &all, &found);
    if (status == TN_OK && !found) {
        status = find_constants(s, &all, &first, &is_list);
        if (status == TN_OK) status = first ? put_constants(s, &all, first, is_list) : put_types(s, &all);
    }
    tn_strbuf_puts(s->out, "\n");
    if (status == TN_OK && s->out->size + s->more.size > TN_GRAMMAR_SIZE_MAX)
        status = tn_schema_fail(s, TN_ERR_UNSUPPORTED, NULL, "its grammar is larger than %d bytes",
                                (int)TN_GRAMMAR_SIZE_MAX);
    return status == TN_OK ? s->out->status : status;
}

tn_status tn_schema_tree_to_gbnf(tn_context *ctx, const tn_json *schema, int64_t *work, tn_strbuf *out)
{
    tn_schema s = {.ctx = ctx, .out = out, .root = schema, .work = work};
    tn_schema_all all = {.n = 0};
    int32_t root;
    tn_arena_init(&s.arena, ctx);
    tn_strbuf_init(&s.more, ctx);
    s.rules = tn_arena_array(&s.arena, TN_SCHEMA_RULES_MAX, sizeof(tn_schema_all *));
    tn_status status = s.rules ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) status = tn_schema_add(&s, &all, s.root);
    if (status == TN_OK) status = tn_schema_rule(&s, &all, &root);
    tn_strbuf_puts(out, "root ::= r0 ws\n");
    for (int32_t i = 0; i < s.n_rules && status == TN_OK; i++) status = put_rule(&s, i);
    if (status == TN_OK) status = tn_schema_work(&s, 0);
    if (s.more.size) tn_strbuf_append(out, s.more.data, s.more.size);
    tn_strbuf_puts(out, base_rules);
    if (status == TN_OK) status = s.more.status;
    tn_strbuf_fini(&s.more);
    tn_arena_fini(&s.arena);
    return status == TN_OK ? out->status : status;
}

tn_status tn_schema_to_gbnf(tn_context *ctx, const char *json, size_t n, tn_strbuf *out)
{
    const tn_json *schema;
    int64_t work = 0;
    tn_arena arena;
    tn_arena_init(&arena, ctx);
    tn_status status = tn_json_read(&arena, "schema", json, n, &schema);
    if (status == TN_OK) status = tn_schema_tree_to_gbnf(ctx, schema, &work, out);
    tn_arena_fini(&arena);
    return status;
}
