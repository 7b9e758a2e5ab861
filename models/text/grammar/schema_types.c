// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The types of JSON schema: objects, arrays, numbers, strings, each as alternatives of a grammar.
#include "models/text/grammar/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT_MAX = 20000, KEYS_MAX = 512, DIGITS = 16 };

// The largest of `lower` bounds or the smallest of upper bounds, over all parts; -1: there is none.
static tn_status find_count(const tn_schema *s, const tn_schema_all *all, const char *keyword, bool lower,
                            int32_t *out)
{
    *out = -1;
    for (int32_t i = 0; i < all->n; i++) {
        const tn_json *v = tn_json_get(all->parts[i].json, keyword);
        if (!v) continue;
        if (v->kind != TN_JSON_NUMBER || v->number < 0 || v->number != floor(v->number))
            return tn_schema_fail(s, TN_ERR_ARG, v, "%s is a whole number from 0 on", keyword);
        if (v->number > COUNT_MAX && lower) // larger upper bounds are narrowed
            return tn_schema_fail(s, TN_ERR_UNSUPPORTED, v, "%s above %d is not supported", keyword,
                                  (int)COUNT_MAX);
        int32_t n = (int32_t)TN_MIN(v->number, COUNT_MAX);
        *out = *out < 0 ? n : lower ? TN_MAX(*out, n) : TN_MIN(*out, n);
    }
    return TN_OK;
}

static void put_counts(tn_strbuf *out, int32_t min, int32_t max)
{
    if (max < 0)
        tn_strbuf_printf(out, "{%d,} ", (int)min);
    else
        tn_strbuf_printf(out, "{%d,%d} ", (int)min, (int)max);
}

// --- objects -----------------------------------------------------------------------------------------

typedef struct property {
    const tn_json *name; // its key, or its text in `required`
    const char *text;
    size_t size;
    bool required;
    int32_t rule;
} property;

typedef struct object {
    const tn_schema_all *all;
    property *list;
    int32_t n;
    bool open; // others may follow
    int32_t others;
} object;

static tn_status is_required(const tn_schema *s, const tn_schema_all *all, const property *p, bool *out)
{
    *out = false;
    for (int32_t i = 0; i < all->n; i++) {
        const tn_json *list = tn_json_get(all->parts[i].json, "required");
        if (list && list->kind != TN_JSON_ARRAY)
            return tn_schema_fail(s, TN_ERR_ARG, list, "required is a list of names");
        if (list) (void)tn_schema_spend(s, list->count);
        for (const tn_json *k = list ? list->first : NULL; k; k = k->next) {
            if (k->kind != TN_JSON_STRING)
                return tn_schema_fail(s, TN_ERR_ARG, k, "required is a list of names");
            *out |= k->size == p->size && memcmp(k->text, p->text, p->size) == 0;
        }
    }
    return TN_OK;
}

// All schemas of one property: by its name, or by additionalProperties of parts that do not list it.
static tn_status about_property(const tn_schema *s, const tn_schema_all *all, const property *p,
                                tn_schema_all *out)
{
    tn_status status = TN_OK;
    out->n = 0;
    for (int32_t i = 0; i < all->n && status == TN_OK; i++) {
        const tn_json *json = all->parts[i].json, *list = tn_json_get(json, "properties"), *found = NULL;
        if (list) (void)tn_schema_spend(s, list->count);
        for (const tn_json *k = list ? list->first : NULL; k; k = k->next)
            if (k->key_size == p->size && memcmp(k->key, p->text, p->size) == 0) found = k;
        if (!found) found = tn_json_get(json, "additionalProperties");
        if (found) status = tn_schema_add(s, out, found);
    }
    return status;
}

static tn_status add_property(tn_schema *s, object *o, const tn_json *name, const char *text, size_t size)
{
    property p = {.name = name, .text = text, .size = size};
    tn_schema_all about, flat;
    bool never;
    tn_status status = tn_schema_work(s, 1 + (size_t)o->n);
    if (status != TN_OK) return status;
    for (int32_t i = 0; i < o->n; i++)
        if (o->list[i].size == size && memcmp(o->list[i].text, text, size) == 0) return TN_OK;
    status = is_required(s, o->all, &p, &p.required);
    if (status == TN_OK) status = about_property(s, o->all, &p, &about);
    if (status == TN_OK) status = tn_schema_flatten(s, &about, &flat, &never);
    if (status != TN_OK) return status;
    if (never && p.required)
        return tn_schema_fail(s, TN_ERR_ARG, name, "the property %.64s is required and not allowed", text);
    if (o->n == KEYS_MAX)
        return tn_schema_fail(s, TN_ERR_UNSUPPORTED, name, "more than %d properties", (int)KEYS_MAX);
    if (never) {
        p.rule = -1;
    } else {
        status = tn_schema_rule(s, &about, &p.rule);
        if (status != TN_OK) return status;
    }
    o->list[o->n++] = p;
    return TN_OK;
}

static tn_status find_properties(tn_schema *s, object *o)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < o->all->n && status == TN_OK; i++) {
        const tn_json *list = tn_json_get(o->all->parts[i].json, "properties");
        if (list && list->kind != TN_JSON_OBJECT)
            return tn_schema_fail(s, TN_ERR_ARG, list, "properties is an object");
        for (const tn_json *k = list ? list->first : NULL; k && status == TN_OK; k = k->next)
            status = add_property(s, o, k, k->key, k->key_size);
    }
    for (int32_t i = 0; i < o->all->n && status == TN_OK; i++) {
        const tn_json *list = tn_json_get(o->all->parts[i].json, "required");
        if (list && list->kind != TN_JSON_ARRAY)
            return tn_schema_fail(s, TN_ERR_ARG, list, "required is a list of names");
        for (const tn_json *k = list ? list->first : NULL; k && status == TN_OK; k = k->next) {
            if (k->kind != TN_JSON_STRING)
                return tn_schema_fail(s, TN_ERR_ARG, k, "required is a list of names");
            status = add_property(s, o, k, k->text, k->size);
        }
    }
    return status;
}

// Other properties are generated if a part allows them expressly and none forbids them.
static tn_status find_others(tn_schema *s, object *o)
{
    tn_schema_all about = {.n = 0}, flat;
    bool never = false, said = false, free = true;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < o->all->n && status == TN_OK; i++) {
        const tn_json *json = o->all->parts[i].json, *more = tn_json_get(json, "additionalProperties");
        if (more) status = tn_schema_add(s, &about, more);
        said |= more != NULL;
        free = free && !tn_json_get(json, "properties") && !tn_json_get(json, "required");
    }
    if (status == TN_OK) status = tn_schema_flatten(s, &about, &flat, &never);
    o->open = !never && (said || free);
    return status == TN_OK && o->open ? tn_schema_rule(s, &about, &o->others) : status;
}

static tn_status check_property_counts(const tn_schema *s, const object *o)
{
    int32_t min, max, required = 0;
    tn_status status = find_count(s, o->all, "minProperties", true, &min);
    if (status == TN_OK) status = find_count(s, o->all, "maxProperties", false, &max);
    if (status != TN_OK) return status;
    for (int32_t i = 0; i < o->n; i++) required += o->list[i].required;
    if (min > required || (max >= 0 && (o->open || max < o->n)))
        return tn_schema_fail(
            s, TN_ERR_UNSUPPORTED, o->all->parts[0].json,
            "minProperties and maxProperties are supported only where the lists of properties fulfil them");
    return TN_OK;
}

// Characters of a key behind `depth` bytes that it shares with names[0 .. n), sorted: anything but one of
// them. Names are compared as bytes of plain characters; keys with escapes are never generated.
static void put_other_key(tn_strbuf *out, const property *const *names, int32_t n, size_t depth)
{
    bool ends = n > 0 && names[0]->size == depth;
    tn_strbuf_puts(out, "(");
    for (int32_t i = ends; i < n;) {
        unsigned char c = (unsigned char)names[i]->text[depth];
        int32_t last = i;
        while (last < n && (unsigned char)names[last]->text[depth] == c) last++;
        char byte = (char)c;
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            tn_schema_put_literal(out, &byte, 1);
            put_other_key(out, names + i, last - i, depth + 1);
            tn_strbuf_puts(out, "| ");
        }
        i = last;
    }
    // plain ASCII except for the next bytes of the names
    tn_strbuf_puts(out, "[^\"\\\\\\x00-\\x1F\\x7F-\\U0010FFFF");
    for (int32_t i = ends; i < n; i++) {
        unsigned char c = (unsigned char)names[i]->text[depth];
        if (c >= 0x20 && c < 0x7f) tn_strbuf_printf(out, "\\x%02X", c);
    }
    tn_strbuf_puts(out, "] [^\"\\\\\\x00-\\x1F\\x7F]*");
    tn_strbuf_puts(out, ends || n == 0 ? ") " : ")? ");
}

static int by_text(const property *a, const property *b)
{
    int order = memcmp(a->text, b->text, TN_MIN(a->size, b->size));
    return order ? order : a->size < b->size ? -1 : a->size > b->size;
}

static tn_status put_other(tn_schema *s, const object *o)
{
    const property *sorted[KEYS_MAX];
    for (int32_t i = 0; i < o->n; i++) {
        int32_t k = i;
        for (; k > 0 && by_text(&o->list[i], sorted[k - 1]) < 0; k--) sorted[k] = sorted[k - 1];
        sorted[k] = &o->list[i];
    }
    for (int32_t i = 0; i < o->n; i++)
        if (o->list[i].size > 100)
            return tn_schema_fail(s, TN_ERR_UNSUPPORTED, o->list[i].name,
                                  "a name of more than 100 bytes beside additionalProperties");
    tn_strbuf_puts(s->out, "\"\\\"\" ");
    if (o->n == 0)
        tn_strbuf_puts(s->out, "char* ");
    else
        put_other_key(s->out, sorted, o->n, 0);
    tn_strbuf_printf(s->out, "\"\\\"\" \":\" ws r%d ", (int)o->others);
    return TN_OK;
}

static void put_property(tn_schema *s, const property *p)
{
    tn_schema_put_json_string(s, p->text, p->size);
    tn_strbuf_printf(s->out, "\":\" ws r%d ", (int)p->rule);
}

// Property i and its successors, after another property: rules of their own, because several places share
// them.
static tn_status put_tails(tn_schema *s, const object *o, int32_t tail)
{
    tn_strbuf *main = s->out;
    tn_status status = TN_OK;
    s->out = &s->more;
    for (int32_t i = 0; i < o->n; i++) {
        tn_strbuf_printf(s->out, "t%d ::= ", (int)(tail + i));
        if (o->list[i].rule >= 0) {
            tn_strbuf_puts(s->out, "(\",\" ws ");
            put_property(s, &o->list[i]);
            tn_strbuf_puts(s->out, o->list[i].required ? ") " : ")? ");
        }
        tn_strbuf_printf(s->out, "t%d\n", (int)(tail + i + 1));
    }
    tn_strbuf_printf(s->out, "t%d ::= \"\" ", (int)(tail + o->n));
    if (o->open) {
        tn_strbuf_puts(s->out, "(\",\" ws ");
        status = put_other(s, o);
        tn_strbuf_puts(s->out, ")*");
    }
    tn_strbuf_puts(s->out, "\n");
    s->out = main;
    return status == TN_OK ? s->more.status : status;
}

// The first property may be any of those up to the first required one.
static tn_status put_members(tn_schema *s, const object *o)
{
    int32_t n_choices = 0, tail = s->n_tails;
    s->n_tails += o->n + 1;
    tn_status status = put_tails(s, o, tail);
    for (int32_t first = 0; first <= o->n && status == TN_OK; first++) {
        bool others = first == o->n;
        if (others ? !o->open : o->list[first].rule < 0) continue;
        if (n_choices++) tn_strbuf_puts(s->out, "| ");
        if (others)
            status = put_other(s, o);
        else
            put_property(s, &o->list[first]);
        tn_strbuf_printf(s->out, "t%d ", (int)(tail + TN_MIN(first + 1, o->n)));
        if (!others && o->list[first].required) break;
    }
    return status;
}

tn_status tn_schema_put_object(tn_schema *s, const tn_schema_all *all)
{
    object o = {.all = all};
    bool required = false, any = false;
    o.list = tn_arena_array(&s->arena, KEYS_MAX, sizeof *o.list);
    if (!o.list) return TN_ERR_MEMORY;
    tn_status status = find_properties(s, &o);
    if (status == TN_OK) status = find_others(s, &o);
    if (status == TN_OK) status = check_property_counts(s, &o);
    if (status != TN_OK) return status;
    for (int32_t i = 0; i < o.n; i++) {
        required |= o.list[i].required;
        any |= o.list[i].rule >= 0;
    }
    if (!any && !o.open) {
        tn_strbuf_puts(s->out, "\"{\" ws \"}\" ");
        return TN_OK;
    }
    tn_strbuf_puts(s->out, "\"{\" ws ((");
    status = put_members(s, &o);
    tn_strbuf_puts(s->out, required ? ") ws) \"}\" " : ") ws)? \"}\" ");
    return status;
}

// --- arrays ------------------------------------------------------------------------------------------

// The list of element schemas of a part; NULL: none.
static const tn_json *prefix_of(const tn_json *json)
{
    const tn_json *list = tn_json_get(json, "prefixItems"), *items = tn_json_get(json, "items");
    return list ? list : items && items->kind == TN_JSON_ARRAY ? items : NULL;
}

// The schema of elements behind the prefix; NULL: anything.
static const tn_json *rest_of(const tn_json *json)
{
    const tn_json *items = tn_json_get(json, "items");
    return items && items->kind == TN_JSON_ARRAY ? tn_json_get(json, "additionalItems") : items;
}

static tn_status about_element(const tn_schema *s, const tn_schema_all *all, size_t index, tn_schema_all *out)
{
    tn_status status = TN_OK;
    out->n = 0;
    for (int32_t i = 0; i < all->n && status == TN_OK; i++) {
        const tn_json *json = all->parts[i].json, *list = prefix_of(json), *k = list ? list->first : NULL;
        for (size_t n = 0; k && n < index; n++) k = k->next;
        if (!k) k = rest_of(json);
        if (k) status = tn_schema_add(s, out, k);
    }
    return status;
}

static tn_status check_array(const tn_schema *s, const tn_schema_all *all, size_t *n_prefix, bool *said)
{
    for (int32_t i = 0; i < all->n; i++) {
        const tn_json *json = all->parts[i].json, *list = prefix_of(json),
                      *unique = tn_json_get(json, "uniqueItems");
        if (list && (list->kind != TN_JSON_ARRAY || list->count > KEYS_MAX))
            return tn_schema_fail(s, TN_ERR_ARG, list, "a list of up to %d schemas is wanted", (int)KEYS_MAX);
        if (unique && (unique->kind != TN_JSON_BOOL || unique->is_true))
            return tn_schema_fail(s, TN_ERR_UNSUPPORTED, unique, "uniqueItems is not supported");
        if (list) *n_prefix = TN_MAX(*n_prefix, list->count);
        *said |= rest_of(json) != NULL;
    }
    return TN_OK;
}

// The rule of an element, -1 if there can be none.
static tn_status element_rule(tn_schema *s, const tn_schema_all *all, size_t index, int32_t *rule)
{
    tn_schema_all about, flat;
    bool never;
    *rule = -1;
    tn_status status = about_element(s, all, index, &about);
    if (status == TN_OK) status = tn_schema_flatten(s, &about, &flat, &never);
    return status != TN_OK || never ? status : tn_schema_rule(s, &about, rule);
}

// "a, b, c" with the elements of the prefix, then the others, from `min` on as options.
static tn_status put_elements(tn_schema *s, const tn_schema_all *all, int32_t n_prefix, int32_t min,
                              int32_t max)
{
    int32_t open = 0, rule, n = max < 0 ? n_prefix : TN_MIN(n_prefix, max);
    tn_status status = TN_OK;
    bool ended = false;
    for (int32_t i = 0; i < n && status == TN_OK && !ended; i++) {
        status = element_rule(s, all, (size_t)i, &rule);
        if (status != TN_OK) return status;
        ended = rule < 0;
        if (ended && i < min)
            return tn_schema_fail(s, TN_ERR_ARG, all->parts[0].json,
                                  "minItems asks for items that are not allowed");
        if (ended) break;
        if (i >= min) tn_strbuf_puts(s->out, "("), open++;
        tn_strbuf_printf(s->out, "%sr%d ", i ? "\",\" ws " : "", (int)rule);
    }
    if (status == TN_OK && !ended && (max < 0 || max > n)) {
        status = element_rule(s, all, (size_t)n_prefix, &rule);
        if (status == TN_OK && rule < 0 && min > n)
            status = tn_schema_fail(s, TN_ERR_ARG, all->parts[0].json,
                                    "minItems asks for items that are not allowed");
        if (status == TN_OK && rule >= 0 && n == 0) {
            tn_strbuf_printf(s->out, min > 0 ? "r%d (\",\" ws r%d)" : "(r%d (\",\" ws r%d)", (int)rule,
                             (int)rule);
            put_counts(s->out, TN_MAX(min - 1, 0), max < 0 ? -1 : max - 1);
            if (min == 0) tn_strbuf_puts(s->out, ")? ");
        } else if (status == TN_OK && rule >= 0) {
            tn_strbuf_printf(s->out, "(\",\" ws r%d)", (int)rule);
            put_counts(s->out, TN_MAX(min - n, 0), max < 0 ? -1 : max - n);
        }
    }
    for (; open > 0; open--) tn_strbuf_puts(s->out, ")? ");
    return status;
}

tn_status tn_schema_put_array(tn_schema *s, const tn_schema_all *all)
{
    size_t n_prefix = 0;
    int32_t min, max;
    bool said = false;
    tn_status status = check_array(s, all, &n_prefix, &said);
    if (status == TN_OK) status = find_count(s, all, "minItems", true, &min);
    if (status == TN_OK) status = find_count(s, all, "maxItems", false, &max);
    if (status != TN_OK) return status;
    min = TN_MAX(min, 0);
    // If a prefix list says nothing about further elements, there are only as many as minItems requires.
    if (n_prefix > 0 && !said && max < 0) max = TN_MAX((int32_t)n_prefix, min);
    if (max >= 0 && max < min)
        return tn_schema_fail(s, TN_ERR_ARG, all->parts[0].json, "maxItems is below minItems");
    tn_strbuf_puts(s->out, "\"[\" ws ");
    status = put_elements(s, all, (int32_t)n_prefix, min, max);
    tn_strbuf_puts(s->out, "ws \"]\" ");
    return status;
}

// --- numbers -----------------------------------------------------------------------------------------

// Bounds over all parts as whole numbers: lo is the least one allowed, hi the largest.
typedef struct bounds {
    bool has_lo, has_hi;
    int64_t lo, hi;
} bounds;

static tn_status read_bound(const tn_schema *s, const tn_json *json, const char *keyword, bool lower,
                            bool exclusive, bounds *b)
{
    const tn_json *v = tn_json_get(json, keyword);
    if (!v) return TN_OK;
    if (v->kind != TN_JSON_NUMBER) return tn_schema_fail(s, TN_ERR_ARG, v, "%s is a number", keyword);
    if (fabs(v->number) > 1e15)
        return tn_schema_fail(s, TN_ERR_UNSUPPORTED, v, "%s beyond 1e15 is not supported", keyword);
    double whole = lower ? ceil(v->number) : floor(v->number);
    int64_t n = (int64_t)whole;
    if (exclusive && whole == v->number) n += lower ? 1 : -1;
    if (lower)
        b->lo = b->has_lo ? TN_MAX(b->lo, n) : n;
    else
        b->hi = b->has_hi ? TN_MIN(b->hi, n) : n;
    *(lower ? &b->has_lo : &b->has_hi) = true;
    return TN_OK;
}

static tn_status find_bounds(const tn_schema *s, const tn_schema_all *all, bool integer, bounds *b)
{
    tn_status status = TN_OK;
    *b = (bounds){0};
    for (int32_t i = 0; i < all->n && status == TN_OK; i++) {
        const tn_json *json = all->parts[i].json, *step = tn_json_get(json, "multipleOf");
        status = read_bound(s, json, "minimum", true, false, b);
        if (status == TN_OK) status = read_bound(s, json, "maximum", false, false, b);
        if (status == TN_OK) status = read_bound(s, json, "exclusiveMinimum", true, true, b);
        if (status == TN_OK) status = read_bound(s, json, "exclusiveMaximum", false, true, b);
        if (status == TN_OK && step && !(integer && step->kind == TN_JSON_NUMBER && step->number == 1))
            status = tn_schema_fail(s, TN_ERR_UNSUPPORTED, step,
                                    "multipleOf is supported for integers only, as 1");
    }
    return status;
}

static void put_digits(tn_strbuf *out, char lo, char hi)
{
    if (lo == hi)
        tn_strbuf_printf(out, "\"%c\" ", lo);
    else
        tn_strbuf_printf(out, "[%c-%c] ", lo, hi);
}

static void put_any_digits(tn_strbuf *out, size_t n)
{
    if (n > 0) tn_strbuf_printf(out, "[0-9]{%zu} ", n);
}

// Numbers of n digits from lo to hi; the one bound that may be NULL is all 0 or all 9.
static void put_same_length(tn_strbuf *out, const char *lo, const char *hi, size_t n)
{
    if (n == 0) return;
    char a = lo ? *lo : '0', z = hi ? *hi : '9';
    if (a == z) {
        put_digits(out, a, a);
        put_same_length(out, lo ? lo + 1 : NULL, hi ? hi + 1 : NULL, n - 1);
        return;
    }
    const char *separator = "";
    tn_strbuf_puts(out, "(");
    if (lo) {
        put_digits(out, a, a);
        put_same_length(out, lo + 1, NULL, n - 1);
        separator = "| ";
        a++;
    }
    char last = hi ? (char)(z - 1) : z;
    if (a <= last) {
        tn_strbuf_puts(out, separator);
        put_digits(out, a, last);
        put_any_digits(out, n - 1);
        separator = "| ";
    }
    if (hi) {
        tn_strbuf_puts(out, separator);
        put_digits(out, z, z);
        put_same_length(out, NULL, hi + 1, n - 1);
    }
    tn_strbuf_puts(out, ") ");
}

// Whole numbers from lo to hi, both from 0 on; hi below 0: no bound.
static void put_range(tn_strbuf *out, int64_t lo, int64_t hi)
{
    char a[32], z[32];
    int64_t size = 10; // of the numbers above those with as many digits as `lo`
    int n = 1;
    for (; size <= lo; size *= 10) n++;
    tn_strbuf_puts(out, "(");
    for (int64_t from = lo;; from = size, size *= 10, n++) { // numbers of one length at a time
        int64_t to = hi >= 0 ? TN_MIN(size - 1, hi) : size - 1;
        snprintf(a, sizeof a, "%lld", (long long)from);
        snprintf(z, sizeof z, "%lld", (long long)to);
        put_same_length(out, a, z, (size_t)n);
        if (to == hi || n >= DIGITS) break;
        tn_strbuf_puts(out, "| ");
    }
    tn_strbuf_puts(out, ") ");
}

// Alternatives: negative ones, then the others. `with` follows each number ("" or a fraction).
static bool put_signed(tn_strbuf *out, const bounds *b, const char *with, const char *separator)
{
    bool some = false;
    if (!b->has_lo || b->lo < 0) {
        int64_t least = b->has_hi && b->hi < 0 ? -b->hi : 1;
        tn_strbuf_printf(out, "%s\"-\" ", separator);
        put_range(out, least, b->has_lo ? -b->lo : -1);
        tn_strbuf_puts(out, with);
        separator = "| ";
        some = true;
    }
    if (!b->has_hi || b->hi >= 0) {
        tn_strbuf_puts(out, separator);
        put_range(out, b->has_lo ? TN_MAX(b->lo, 0) : 0, b->has_hi ? b->hi : -1);
        tn_strbuf_puts(out, with);
        some = true;
    }
    return some;
}

// n.fraction lies between n and n + 1: those n for which both ends are within the bounds as they are written.
// The fraction is never 0 and short, so that a double holds the sum exactly enough.
static bool put_fractions(tn_strbuf *out, const bounds *b, const char *separator)
{
    static const char fraction[] = "\".\" [0-9]{0,4} [1-9] ";
    enum { WHOLE_MAX = 1000000000 };
    int64_t lo = b->has_lo ? b->lo : -WHOLE_MAX, hi = b->has_hi ? b->hi : WHOLE_MAX;
    bool some = false;
    lo = TN_MAX(lo, -WHOLE_MAX);
    hi = TN_MIN(hi, WHOLE_MAX);
    if (hi - 1 >= TN_MAX(lo, 0)) {
        tn_strbuf_puts(out, separator);
        put_range(out, TN_MAX(lo, 0), hi - 1);
        tn_strbuf_puts(out, fraction);
        separator = "| ";
        some = true;
    }
    if (lo < 0 && -lo - 1 >= TN_MAX(-hi, 0)) {
        tn_strbuf_printf(out, "%s\"-\" ", separator);
        put_range(out, TN_MAX(-hi, 0), -lo - 1);
        tn_strbuf_puts(out, fraction);
        some = true;
    }
    return some;
}

// The ends for fractions: exclusive bounds do not move them.
static tn_status fraction_bounds(const tn_schema *s, const tn_schema_all *all, bounds *b)
{
    tn_status status = TN_OK;
    *b = (bounds){0};
    for (int32_t i = 0; i < all->n && status == TN_OK; i++) {
        const tn_json *json = all->parts[i].json;
        status = read_bound(s, json, "minimum", true, false, b);
        if (status == TN_OK) status = read_bound(s, json, "maximum", false, false, b);
        if (status == TN_OK) status = read_bound(s, json, "exclusiveMinimum", true, false, b);
        if (status == TN_OK) status = read_bound(s, json, "exclusiveMaximum", false, false, b);
    }
    return status;
}

// Bounds as they are written.
typedef struct ends {
    double lo, hi;
    bool open_lo, open_hi;
} ends;

static void read_ends(const tn_schema_all *all, ends *e)
{
    static const struct {
        const char *keyword;
        bool lower, open;
    } rows[] = {{"minimum", true, false},
                {"exclusiveMinimum", true, true},
                {"maximum", false, false},
                {"exclusiveMaximum", false, true}};
    *e = (ends){.lo = -INFINITY, .hi = INFINITY};
    for (int32_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < TN_COUNT(rows); k++) {
            const tn_json *v = tn_json_get(all->parts[i].json, rows[k].keyword);
            double *end = rows[k].lower ? &e->lo : &e->hi;
            bool *open = rows[k].lower ? &e->open_lo : &e->open_hi;
            if (!v || v->kind != TN_JSON_NUMBER) continue;
            bool tighter = rows[k].lower ? v->number > *end : v->number < *end;
            *open = tighter ? rows[k].open : *open || (v->number == *end && rows[k].open);
            if (tighter) *end = v->number;
        }
}

// Of numbers with so many digits behind the point, n / scale, the first and last within. The quotient of two
// whole numbers is the double that its digits mean.
static void steps_within(const ends *e, double scale, int64_t *first, int64_t *last)
{
    *first = (int64_t)ceil(e->lo * scale);
    *last = (int64_t)floor(e->hi * scale);
    while ((double)*first / scale < e->lo || (e->open_lo && (double)*first / scale == e->lo)) ++*first;
    while ((double)*last / scale > e->hi || (e->open_hi && (double)*last / scale == e->hi)) --*last;
}

// Numbers between two neighbouring whole ones: as many digits as ten of them need, or one.
static bool put_between(tn_strbuf *out, ends e)
{
    enum { ENOUGH = 10, DIGITS_MAX = 15 };
    if (e.lo > e.hi) return false;
    bool negative = e.lo < 0;
    if (negative) e = (ends){-e.hi, -e.lo, e.open_hi, e.open_lo};
    int64_t first = 0, last = -1;
    int digits = 0;
    double scale = 1, most = 9e15 / fmax(1, e.hi);
    for (int n = 1; n <= DIGITS_MAX && scale * 10 < most && last - first + 1 < ENOUGH; n++) {
        int64_t a, z;
        scale *= 10;
        steps_within(&e, scale, &a, &z);
        if (a > z || (last >= first && z - a + 1 < ENOUGH)) continue;
        first = a, last = z, digits = n;
    }
    if (digits == 0) return false;
    char a[32], z[32];
    int64_t whole = (int64_t)floor(e.lo), power = 1;
    for (int i = 0; i < digits; i++) power *= 10;
    snprintf(a, sizeof a, "%0*lld", digits, (long long)(first - whole * power));
    snprintf(z, sizeof z, "%0*lld", digits, (long long)(last - whole * power));
    tn_strbuf_printf(out, "\"%s%lld.\" ", negative ? "-" : "", (long long)whole);
    put_same_length(out, a, z, (size_t)digits);
    return true;
}

// The rest at bounds that are not whole: fractions between the bound and the next whole number.
static bool put_edges(tn_strbuf *out, const ends *e, bool some)
{
    double up = floor(e->lo) + 1, down = floor(e->hi);
    bool one = e->hi < up; // both ends between the same whole numbers
    if (isfinite(e->lo) && (one || e->lo != floor(e->lo))) {
        size_t size = out->size;
        if (some) tn_strbuf_puts(out, "| ");
        if (put_between(out, (ends){e->lo, one ? e->hi : up, e->open_lo, one ? e->open_hi : true}))
            some = true;
        else
            out->size = size;
    }
    if (isfinite(e->hi) && !one && e->hi != down) {
        size_t size = out->size;
        if (some) tn_strbuf_puts(out, "| ");
        if (put_between(out, (ends){down, e->hi, true, e->open_hi}))
            some = true;
        else
            out->size = size;
    }
    return some;
}

tn_status tn_schema_put_number(tn_schema *s, const tn_schema_all *all, bool integer)
{
    bounds b, f;
    bool some = false;
    tn_status status = find_bounds(s, all, integer, &b);
    if (status == TN_OK) status = fraction_bounds(s, all, &f);
    if (status != TN_OK) return status;
    if (!b.has_lo && !b.has_hi) {
        tn_strbuf_puts(s->out, integer ? "integer " : "number ");
        return TN_OK;
    }
    tn_strbuf_puts(s->out, "(");
    if (!b.has_lo || !b.has_hi || b.lo <= b.hi) some = put_signed(s->out, &b, "", "");
    if (!integer && (!f.has_lo || !f.has_hi || f.lo <= f.hi))
        some |= put_fractions(s->out, &f, some ? "| " : "");
    ends e;
    read_ends(all, &e);
    if (!integer) some = put_edges(s->out, &e, some);
    tn_strbuf_puts(s->out, ") ");
    if (some) return TN_OK;
    return tn_schema_fail(s, integer || e.lo >= e.hi ? TN_ERR_ARG : TN_ERR_UNSUPPORTED, all->parts[0].json,
                          integer ? "no integer is within the bounds"
                                  : "no short number is within the bounds");
}

// --- strings -----------------------------------------------------------------------------------------

static const struct {
    const char *name;
    int32_t min, max; // characters
    const char *gbnf;
} formats[] = {
#define DATE                                                                                                 \
    "[1-9] [0-9]{3} \"-\" (((\"0\" [1-9]) | (\"1\" [0-2])) \"-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8]) " \
    "| "                                                                                                     \
    "(\"0\" [13-9] | \"1\" [0-2]) \"-\" (\"29\" | \"30\") | (\"0\" [13578] | \"1\" [02]) \"-31\") "
#define TIME                                                                                                 \
    "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? "                    \
    "(\"Z\" | [-+] ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9]) "
    {"date", 10, 10, DATE},
    {"time", 9, 21, TIME},
    {"date-time", 20, 32, DATE "\"T\" " TIME},
    {"uuid", 36, 36, "hex{8} \"-\" hex{4} \"-\" hex{4} \"-\" hex{4} \"-\" hex{12} "},
};

static tn_status put_format(tn_schema *s, const tn_json *format, int32_t min, int32_t max)
{
    for (size_t i = 0; i < TN_COUNT(formats); i++)
        if (tn_json_is(format, formats[i].name)) {
            if (formats[i].min < min || (max >= 0 && formats[i].max > max))
                return tn_schema_fail(s, TN_ERR_UNSUPPORTED, format,
                                      "lengths that exclude texts of the format are not supported");
            tn_strbuf_puts(s->out, formats[i].gbnf);
            return TN_OK;
        }
    return tn_schema_fail(s, TN_ERR_UNSUPPORTED, format,
                          "this format is not supported; known are date, time, date-time, uuid");
}

tn_status tn_schema_put_string(tn_schema *s, const tn_schema_all *all)
{
    const tn_json *pattern = NULL, *format = NULL;
    int32_t min, max, n = 0;
    for (int32_t i = 0; i < all->n; i++) {
        const tn_json *p = tn_json_get(all->parts[i].json, "pattern"),
                      *f = tn_json_get(all->parts[i].json, "format");
        if (p && !(pattern && tn_schema_same(s, p, pattern))) n++, pattern = p;
        if (f && !(format && tn_schema_same(s, f, format))) n++, format = f;
    }
    tn_status status = find_count(s, all, "minLength", true, &min);
    if (status == TN_OK) status = find_count(s, all, "maxLength", false, &max);
    if (status != TN_OK) return status;
    if (n > 1)
        return tn_schema_fail(s, TN_ERR_UNSUPPORTED, pattern ? pattern : format,
                              "of patterns and formats only one is supported for the same string");
    if (max >= 0 && max < min)
        return tn_schema_fail(s, TN_ERR_ARG, all->parts[0].json, "maxLength is below minLength");
    if (!n && min <= 0 && max < 0) {
        tn_strbuf_puts(s->out, "string ");
        return TN_OK;
    }
    tn_strbuf_puts(s->out, "\"\\\"\" ");
    if (pattern) status = tn_schema_put_pattern(s, pattern, TN_MAX(min, 0), max);
    if (format) status = put_format(s, format, min, max);
    if (!n) {
        tn_strbuf_puts(s->out, "char");
        put_counts(s->out, TN_MAX(min, 0), max);
    }
    tn_strbuf_puts(s->out, "\"\\\"\" ");
    return status;
}
