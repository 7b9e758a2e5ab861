// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters for lists, and for the members of dictionaries. Where the original returns a generator, these
// return a list.
#include "models/text/jinja/jinja_impl.h"

static value pair(tn_jj *j, value a, value b)
{
    value t = tn_jj_sized(j, JJ_TUPLE, 0);
    tn_jj_append(j, t, a);
    tn_jj_append(j, t, b);
    return t;
}

static value copy_list(tn_jj *j, value v)
{
    const value *items;
    size_t n;
    if (!tn_jj_items(j, v, &items, &n)) return tn_jj_undefined();
    value list = tn_jj_sized(j, JJ_LIST, n);
    if (list.kind == JJ_LIST && n) memcpy(list.u.list->items, items, n * sizeof *items);
    return list;
}

static value filter_list(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    return copy_list(j, v);
}

static value filter_items(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    value list = tn_jj_list(j);
    if (v.kind == JJ_UNDEFINED) return list;
    if (v.kind != JJ_DICT) return tn_jj_error(j, "items: '%s' is no dictionary", tn_jj_kind_name(v));
    for (size_t i = 0; i < v.u.dict->n && tn_jj_step(j); i++)
        tn_jj_append(j, list, pair(j, v.u.dict->entries[i].key, v.u.dict->entries[i].value));
    return list;
}

static value filter_first(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    const value *items;
    size_t n;
    return tn_jj_items(j, v, &items, &n) && n ? items[0] : tn_jj_undefined();
}

static value filter_last(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    const value *items;
    size_t n;
    return tn_jj_items(j, v, &items, &n) && n ? items[n - 1] : tn_jj_undefined();
}

static value filter_reverse(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    value parts[3] = {tn_jj_none(), tn_jj_none(), tn_jj_int(-1)};
    return tn_jj_slice(j, v.kind == JJ_STRING ? v : copy_list(j, v), parts);
}

static value filter_join(tn_jj *j, value v, const tn_jj_args *a)
{
    str between = tn_jj_str(j, tn_jj_arg(a, 0, "d"));
    value attribute = tn_jj_arg(a, 1, "attribute");
    const value *items;
    size_t n;
    tn_jj_builder b;
    if (!tn_jj_items(j, v, &items, &n)) return tn_jj_undefined();
    tn_jj_build(&b, j);
    for (size_t i = 0; i < n && tn_jj_step(j); i++) {
        if (i) tn_jj_add_string(&b, between);
        tn_jj_print(&b, attribute.kind == JJ_UNDEFINED ? items[i] : tn_jj_path(j, items[i], attribute));
    }
    return tn_jj_built(&b);
}

static value filter_sum(tn_jj *j, value v, const tn_jj_args *a)
{
    value attribute = tn_jj_arg(a, 0, "attribute");
    value total = tn_jj_has_arg(a, 1, "start") ? tn_jj_arg(a, 1, "start") : tn_jj_int(0);
    const value *items;
    size_t n;
    if (!tn_jj_items(j, v, &items, &n)) return tn_jj_undefined();
    for (size_t i = 0; i < n && tn_jj_step(j); i++)
        total = tn_jj_binary(j, OP_ADD, total,
                             attribute.kind == JJ_UNDEFINED ? items[i] : tn_jj_path(j, items[i], attribute));
    return total;
}

// --- order -------------------------------------------------------------------------------------------------

// The sort key of items.
typedef struct order_key {
    value attribute; // path into the item, or undefined
    bool by_case, reverse;
} order_key;

static value key_of(tn_jj *j, const order_key *k, value v)
{
    if (k->attribute.kind != JJ_UNDEFINED && k->attribute.kind != JJ_NONE) v = tn_jj_path(j, v, k->attribute);
    return v.kind == JJ_STRING && !k->by_case ? tn_jj_change_case(j, v.u.s, 'l') : v;
}

// Stable merge of two sorted halves of indices; `keys` belong to the items.
static bool merge_sort(tn_jj *j, const value *keys, size_t *index, size_t *spare, size_t n, bool reverse)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t from = 0; from < n; from += 2 * width) {
            size_t middle = TN_MIN(from + width, n), to = TN_MIN(from + 2 * width, n), l = from, r = middle;
            for (size_t k = from; k < to; k++) {
                if (!tn_jj_step(j)) return false;
                bool left = r == to;
                if (l < middle && r < to) {
                    int order = tn_jj_compare(j, keys[index[l]], keys[index[r]]);
                    left = reverse ? order >= 0 : order <= 0;
                }
                spare[k] = left ? index[l++] : index[r++];
            }
        }
        memcpy(index, spare, n * sizeof *index);
    }
    return j->status == TN_OK;
}

static value sort_items(tn_jj *j, value v, const order_key *k)
{
    const value *items;
    size_t n;
    if (!tn_jj_items(j, v, &items, &n)) return tn_jj_undefined();
    value *keys = tn_jj_array(j, n, sizeof *keys);
    size_t *index = tn_jj_array(j, n, sizeof *index), *spare = tn_jj_array(j, n, sizeof *spare);
    value out = tn_jj_sized(j, JJ_LIST, n);
    if (!keys || !index || !spare || out.kind != JJ_LIST) return tn_jj_undefined();
    for (size_t i = 0; i < n && tn_jj_step(j); i++) {
        keys[i] = key_of(j, k, items[i]);
        index[i] = i;
    }
    if (!merge_sort(j, keys, index, spare, n, k->reverse)) return tn_jj_undefined();
    for (size_t i = 0; i < n; i++) out.u.list->items[i] = items[index[i]];
    return out;
}

static value filter_sort(tn_jj *j, value v, const tn_jj_args *a)
{
    order_key k = {.reverse = tn_jj_arg_flag(a, 0, "reverse", false),
                   .by_case = tn_jj_arg_flag(a, 1, "case_sensitive", false),
                   .attribute = tn_jj_arg(a, 2, "attribute")};
    return sort_items(j, v, &k);
}

static value filter_dictsort(tn_jj *j, value v, const tn_jj_args *a)
{
    value by = tn_jj_arg(a, 1, "by");
    bool by_value = by.kind == JJ_STRING && tn_jj_is(by.u.s, "value");
    order_key k = {.by_case = tn_jj_arg_flag(a, 0, "case_sensitive", false),
                   .reverse = tn_jj_arg_flag(a, 2, "reverse", false),
                   .attribute = tn_jj_int(by_value)};
    return sort_items(j, filter_items(j, v, a), &k);
}

static value filter_unique(tn_jj *j, value v, const tn_jj_args *a)
{
    order_key k = {.by_case = tn_jj_arg_flag(a, 0, "case_sensitive", false),
                   .attribute = tn_jj_arg(a, 1, "attribute")};
    const value *items;
    size_t n;
    value seen = tn_jj_list(j), out = tn_jj_list(j);
    if (!tn_jj_items(j, v, &items, &n)) return tn_jj_undefined();
    for (size_t i = 0; i < n && tn_jj_step(j); i++) {
        value key = key_of(j, &k, items[i]);
        if (tn_jj_contains(j, seen, key)) continue;
        tn_jj_append(j, seen, key);
        tn_jj_append(j, out, items[i]);
    }
    return out;
}

static value extreme(tn_jj *j, value v, const tn_jj_args *a, int sign)
{
    order_key k = {.by_case = tn_jj_arg_flag(a, 0, "case_sensitive", false),
                   .attribute = tn_jj_arg(a, 1, "attribute")};
    const value *items;
    size_t n, best = 0;
    if (!tn_jj_items(j, v, &items, &n) || n == 0) return tn_jj_undefined();
    for (size_t i = 1; i < n && tn_jj_step(j); i++)
        if (tn_jj_compare(j, key_of(j, &k, items[i]), key_of(j, &k, items[best])) * sign > 0) best = i;
    return items[best];
}

static value filter_max(tn_jj *j, value v, const tn_jj_args *a)
{
    return extreme(j, v, a, 1);
}

static value filter_min(tn_jj *j, value v, const tn_jj_args *a)
{
    return extreme(j, v, a, -1);
}

static value filter_groupby(tn_jj *j, value v, const tn_jj_args *a)
{
    order_key k = {.by_case = tn_jj_arg_flag(a, 2, "case_sensitive", false),
                   .attribute = tn_jj_arg(a, 0, "attribute")};
    value sorted = sort_items(j, v, &k), out = tn_jj_list(j), group = tn_jj_undefined(), last = group;
    for (size_t i = 0; sorted.kind == JJ_LIST && i < sorted.u.list->n && tn_jj_step(j); i++) {
        value item = sorted.u.list->items[i], key = key_of(j, &k, item);
        if (i == 0 || !tn_jj_equal(j, key, last)) {
            group = tn_jj_list(j);
            tn_jj_append(j, out, pair(j, tn_jj_path(j, item, k.attribute), group));
        }
        tn_jj_append(j, group, item);
        last = key;
    }
    return out;
}

// --- map and select ----------------------------------------------------------------------------------------

// The arguments behind the first `skip`, for a filter or test that is named by an argument.
static tn_jj_args rest_of(const tn_jj_args *a, size_t skip)
{
    tn_jj_args rest = *a;
    skip = TN_MIN(skip, a->n);
    rest.pos += skip;
    rest.n -= skip;
    return rest;
}

static value filter_map(tn_jj *j, value v, const tn_jj_args *a)
{
    value attribute = a->n ? tn_jj_undefined() : tn_jj_arg(a, 0, "attribute");
    value standard = tn_jj_arg(a, SIZE_MAX, "default"), out = tn_jj_list(j);
    const value *items;
    size_t n;
    str name = attribute.kind == JJ_UNDEFINED ? tn_jj_arg_string(j, a, 0, "filter") : &tn_jj_empty;
    const tn_jj_function *row = name ? j->tables->filter(name) : NULL;
    if (!row && attribute.kind == JJ_UNDEFINED)
        return tn_jj_error(j, "map: no filter '%.*s'", name ? (int)TN_MIN(name->n, 60) : 0,
                           name ? name->data : "");
    tn_jj_args rest = rest_of(a, 1);
    if (!tn_jj_items(j, v, &items, &n)) return tn_jj_undefined();
    for (size_t i = 0; i < n && tn_jj_step(j); i++)
        tn_jj_append(j, out,
                     row ? row->fn(j, items[i], &rest) : tn_jj_path_or(j, items[i], attribute, standard));
    return out;
}

// select(test, ...), selectattr(attribute, test, ...): without a test, by truth.
static value choose(tn_jj *j, value v, const tn_jj_args *a, bool by_attribute, bool wanted)
{
    value attribute = by_attribute ? tn_jj_arg(a, 0, "attribute") : tn_jj_undefined(), out = tn_jj_list(j);
    const tn_jj_function *row = NULL;
    const value *items;
    size_t n;
    if (a->n > by_attribute) {
        str name = tn_jj_arg_string(j, a, by_attribute, "test");
        row = name ? j->tables->test(name) : NULL;
        if (!row)
            return tn_jj_error(j, "no test '%.*s'", name ? (int)TN_MIN(name->n, 60) : 0,
                               name ? name->data : "");
    }
    tn_jj_args rest = rest_of(a, 1 + (size_t)by_attribute);
    if (!tn_jj_items(j, v, &items, &n)) return tn_jj_undefined();
    for (size_t i = 0; i < n && tn_jj_step(j); i++) {
        value key = by_attribute ? tn_jj_path(j, items[i], attribute) : items[i];
        if (tn_jj_truth(row ? row->fn(j, key, &rest) : key) == wanted) tn_jj_append(j, out, items[i]);
    }
    return out;
}

static value filter_select(tn_jj *j, value v, const tn_jj_args *a)
{
    return choose(j, v, a, false, true);
}

static value filter_reject(tn_jj *j, value v, const tn_jj_args *a)
{
    return choose(j, v, a, false, false);
}

static value filter_selectattr(tn_jj *j, value v, const tn_jj_args *a)
{
    return choose(j, v, a, true, true);
}

static value filter_rejectattr(tn_jj *j, value v, const tn_jj_args *a)
{
    return choose(j, v, a, true, false);
}

static value filter_batch(tn_jj *j, value v, const tn_jj_args *a)
{
    int64_t size = tn_jj_arg_int(j, a, 0, "linecount", 0);
    const value *items;
    size_t n;
    value out = tn_jj_list(j), line = out;
    if (size < 1) return tn_jj_error(j, "batch: lines of %lld items", (long long)size);
    if (!tn_jj_items(j, v, &items, &n)) return tn_jj_undefined();
    for (size_t i = 0; i < n && tn_jj_step(j); i++) {
        if (i % (size_t)size == 0) tn_jj_append(j, out, line = tn_jj_list(j));
        tn_jj_append(j, line, items[i]);
    }
    for (size_t i = n; tn_jj_has_arg(a, 1, "fill_with") && n && i % (size_t)size != 0 && tn_jj_step(j); i++)
        tn_jj_append(j, line, tn_jj_arg(a, 1, "fill_with"));
    return out;
}

// clang-format off
const tn_jj_function tn_jj_list_filters[] = {
    {"batch", filter_batch, 0}, {"dictsort", filter_dictsort, 0}, {"first", filter_first, 0},
    {"groupby", filter_groupby, 0},
    {"items", filter_items, 0}, {"join", filter_join, 0}, {"last", filter_last, 0}, {"list", filter_list, 0},
    {"map", filter_map, 0}, {"max", filter_max, 0}, {"min", filter_min, 0}, {"reject", filter_reject, 0},
    {"rejectattr", filter_rejectattr, 0}, {"reverse", filter_reverse, 0}, {"select", filter_select, 0},
    {"selectattr", filter_selectattr, 0}, {"sort", filter_sort, 0}, {"sum", filter_sum, 0},
    {"unique", filter_unique, 0},
};
// clang-format on
const size_t tn_jj_n_list_filters = TN_COUNT(tn_jj_list_filters);
