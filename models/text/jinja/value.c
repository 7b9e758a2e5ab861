// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Values of the template engine: lists, dictionaries, truth, equality, order, items of containers.
#include "models/text/jinja/jinja_impl.h"

const tn_jj_string tn_jj_empty = {.data = ""};

// As Python calls them.
static const char *const kind_names[] = {"undefined", "NoneType", "bool",   "int",       "float", "str",
                                         "list",      "tuple",    "dict",   "namespace", "loop",  "function",
                                         "method",    "macro",    "cycler", "joiner"};

value tn_jj_missing(str name)
{
    return (value){.kind = JJ_UNDEFINED, .u.s = name};
}

value tn_jj_none(void)
{
    return (value){.kind = JJ_NONE};
}

value tn_jj_bool(bool b)
{
    return (value){.kind = JJ_BOOL, .u.b = b};
}

value tn_jj_int(int64_t i)
{
    return (value){.kind = JJ_INT, .u.i = i};
}

value tn_jj_float(double f)
{
    return (value){.kind = JJ_FLOAT, .u.f = f};
}

const char *tn_jj_kind_name(value v)
{
    return kind_names[v.kind];
}

void tn_jj_refuse(tn_jj *j, value v)
{
    str name = v.u.s ? v.u.s : &tn_jj_empty;
    if (name->n)
        tn_jj_error(j, "'%.*s' is undefined", (int)TN_MIN(name->n, 100), name->data);
    else
        tn_jj_error(j, "a value that is undefined was used");
}

// --- containers --------------------------------------------------------------------------------------------

value tn_jj_sized(tn_jj *j, tn_jj_kind kind, size_t n)
{
    jj_list *l = tn_jj_alloc(j, sizeof *l);
    if (!l || !tn_jj_steps(j, n / 16)) return tn_jj_undefined();
    l->items = tn_jj_array(j, n, sizeof *l->items);
    if (!l->items) return tn_jj_undefined();
    l->n = l->capacity = n;
    return (value){.kind = kind, .u.list = l};
}

value tn_jj_list(tn_jj *j)
{
    return tn_jj_sized(j, JJ_LIST, 0);
}

void tn_jj_append(tn_jj *j, value list, value item)
{
    if (list.kind != JJ_LIST && list.kind != JJ_TUPLE) return; // an earlier failure
    jj_list *l = list.u.list;
    if (l->n == l->capacity) {
        size_t capacity = l->capacity * 2 + 4;
        value *items = tn_jj_grow(j, l->items, l->n * sizeof *items, capacity * sizeof *items);
        if (!items) return;
        l->items = items;
        l->capacity = capacity;
    }
    l->items[l->n++] = item;
}

value tn_jj_dict(tn_jj *j)
{
    jj_dict *d = tn_jj_alloc(j, sizeof *d);
    return d ? (value){.kind = JJ_DICT, .u.dict = d} : tn_jj_undefined();
}

size_t tn_jj_index_of(tn_jj *j, const jj_dict *d, value key)
{
    if (!tn_jj_steps(j, d->n / 16)) return SIZE_MAX;
    for (size_t i = 0; i < d->n; i++) {
        value k = d->entries[i].key;
        bool strings = k.kind == JJ_STRING && key.kind == JJ_STRING;
        if (strings ? tn_jj_same(k.u.s, key.u.s) : tn_jj_equal(j, k, key)) return i;
    }
    return SIZE_MAX;
}

bool tn_jj_lookup(tn_jj *j, const jj_dict *d, value key, value *out)
{
    size_t i = tn_jj_index_of(j, d, key);
    if (i == SIZE_MAX) return false;
    *out = d->entries[i].value;
    return true;
}

void tn_jj_set(tn_jj *j, jj_dict *d, value key, value v)
{
    size_t i = tn_jj_index_of(j, d, key);
    if (j->status != TN_OK) return;
    if (i != SIZE_MAX) {
        d->entries[i].value = v;
        return;
    }
    if (d->n == d->capacity) {
        size_t capacity = d->capacity * 2 + 4;
        tn_jj_entry *entries = tn_jj_grow(j, d->entries, d->n * sizeof *entries, capacity * sizeof *entries);
        if (!entries) return;
        d->entries = entries;
        d->capacity = capacity;
    }
    d->entries[d->n++] = (tn_jj_entry){key, v};
}

void tn_jj_remove(jj_dict *d, size_t i)
{
    memmove(d->entries + i, d->entries + i + 1, (d->n - i - 1) * sizeof *d->entries);
    d->n--;
}

void tn_jj_put(tn_jj *j, value dict, const char *key, value v)
{
    value name = tn_jj_literal(j, key);
    if (dict.kind == JJ_DICT && name.kind == JJ_STRING) tn_jj_set(j, dict.u.dict, name, v);
}

void tn_jj_global(tn_jj *j, const char *name, value v)
{
    value key = tn_jj_literal(j, name);
    if (key.kind == JJ_STRING) tn_jj_set(j, &j->globals.names, key, v);
}

void tn_jj_globals(tn_jj *j, value dict)
{
    for (size_t i = 0; dict.kind == JJ_DICT && i < dict.u.dict->n; i++)
        tn_jj_set(j, &j->globals.names, dict.u.dict->entries[i].key, dict.u.dict->entries[i].value);
}

// --- numbers and truth -------------------------------------------------------------------------------------

bool tn_jj_integer(value v, int64_t *out)
{
    if (v.kind != JJ_INT && v.kind != JJ_BOOL) return false;
    *out = v.kind == JJ_INT ? v.u.i : v.u.b;
    return true;
}

bool tn_jj_number(value v, double *out)
{
    int64_t i = 0;
    if (!tn_jj_integer(v, &i) && v.kind != JJ_FLOAT) return false;
    *out = v.kind == JJ_FLOAT ? v.u.f : (double)i;
    return true;
}

bool tn_jj_count(tn_jj *j, value v, size_t *n)
{
    switch (v.kind) {
    case JJ_UNDEFINED:
        *n = 0;
        return true;
    case JJ_STRING:
        *n = tn_jj_length(j, v.u.s);
        return true;
    case JJ_LIST:
    case JJ_TUPLE:
        *n = v.u.list->n;
        return true;
    case JJ_DICT:
        *n = v.u.dict->n;
        return true;
    case JJ_LOOP:
        *n = v.u.loop->n;
        return true;
    default:
        return false;
    }
}

bool tn_jj_truth(value v)
{
    switch (v.kind) {
    case JJ_UNDEFINED:
    case JJ_NONE:
        return false;
    case JJ_BOOL:
        return v.u.b;
    case JJ_INT:
        return v.u.i != 0;
    case JJ_FLOAT:
        return v.u.f != 0;
    case JJ_STRING:
        return v.u.s->n > 0;
    case JJ_LIST:
    case JJ_TUPLE:
        return v.u.list->n > 0;
    case JJ_DICT:
        return v.u.dict->n > 0;
    default:
        return true;
    }
}

// --- comparing ---------------------------------------------------------------------------------------------

static bool equal_lists(tn_jj *j, const jj_list *a, const jj_list *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = tn_jj_step(j) && tn_jj_equal(j, a->items[i], b->items[i]);
    return same;
}

static bool equal_dicts(tn_jj *j, const jj_dict *a, const jj_dict *b)
{
    bool same = a->n == b->n;
    value other;
    for (size_t i = 0; same && i < a->n; i++)
        same = tn_jj_step(j) && tn_jj_lookup(j, b, a->entries[i].key, &other) &&
               tn_jj_equal(j, a->entries[i].value, other);
    return same;
}

static bool equal_containers(tn_jj *j, value a, value b)
{
    bool same = tn_jj_enter(j) &&
                (a.kind == JJ_DICT ? equal_dicts(j, a.u.dict, b.u.dict) : equal_lists(j, a.u.list, b.u.list));
    tn_jj_leave(j);
    return same;
}

bool tn_jj_equal(tn_jj *j, value a, value b)
{
    double x, y;
    if (a.kind == JJ_INT && b.kind == JJ_INT) return a.u.i == b.u.i;
    if (tn_jj_number(a, &x) && tn_jj_number(b, &y)) return x == y;
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case JJ_UNDEFINED:
    case JJ_NONE:
        return true;
    case JJ_STRING:
        return tn_jj_work(j, TN_MIN(a.u.s->n, b.u.s->n)) && tn_jj_same(a.u.s, b.u.s);
    case JJ_LIST:
    case JJ_TUPLE:
    case JJ_DICT:
        return equal_containers(j, a, b);
    case JJ_METHOD:
        return false;
    default:
        return a.u.dict == b.u.dict; // the same object
    }
}

static int compare_lists(tn_jj *j, const jj_list *a, const jj_list *b)
{
    for (size_t i = 0; i < a->n && i < b->n && tn_jj_step(j); i++)
        if (!tn_jj_equal(j, a->items[i], b->items[i])) return tn_jj_compare(j, a->items[i], b->items[i]);
    return (a->n > b->n) - (a->n < b->n);
}

int tn_jj_compare(tn_jj *j, value a, value b)
{
    double x, y;
    int order = 0;
    if (a.kind == JJ_UNDEFINED || b.kind == JJ_UNDEFINED) {
        tn_jj_refuse(j, a.kind == JJ_UNDEFINED ? a : b);
    } else if (a.kind == JJ_INT && b.kind == JJ_INT) {
        order = (a.u.i > b.u.i) - (a.u.i < b.u.i);
    } else if (tn_jj_number(a, &x) && tn_jj_number(b, &y)) {
        order = (x > y) - (x < y);
    } else if (a.kind == JJ_STRING && b.kind == JJ_STRING) {
        if (tn_jj_work(j, TN_MIN(a.u.s->n, b.u.s->n))) order = tn_jj_order(a.u.s, b.u.s);
    } else if (a.kind == b.kind && (a.kind == JJ_LIST || a.kind == JJ_TUPLE)) {
        if (tn_jj_enter(j)) order = compare_lists(j, a.u.list, b.u.list);
        tn_jj_leave(j);
    } else {
        tn_jj_error(j, "cannot order '%s' and '%s'", tn_jj_kind_name(a), tn_jj_kind_name(b));
    }
    return order;
}

bool tn_jj_contains(tn_jj *j, value container, value item)
{
    const value *items;
    size_t n;
    if (container.kind == JJ_STRING) {
        if (item.kind == JJ_STRING) return tn_jj_find(j, container.u.s, item.u.s, 0) != SIZE_MAX;
        if (item.kind == JJ_UNDEFINED)
            tn_jj_refuse(j, item);
        else
            tn_jj_error(j, "'in <string>' needs a string, not '%s'", tn_jj_kind_name(item));
        return false;
    }
    if (container.kind == JJ_DICT) return tn_jj_index_of(j, container.u.dict, item) != SIZE_MAX;
    if (!tn_jj_items(j, container, &items, &n)) return false;
    for (size_t i = 0; i < n && tn_jj_step(j); i++)
        if (tn_jj_equal(j, items[i], item)) return true;
    return false;
}

// --- items -------------------------------------------------------------------------------------------------

// The characters of a string, the keys of a dictionary.
static value list_of(tn_jj *j, value v)
{
    value list = tn_jj_list(j);
    if (v.kind == JJ_DICT)
        for (size_t i = 0; i < v.u.dict->n; i++) tn_jj_append(j, list, v.u.dict->entries[i].key);
    if (v.kind == JJ_STRING)
        for (size_t i = 0, size; i < v.u.s->n && tn_jj_step(j); i += size) {
            tn_utf8_decode(v.u.s->data + i, v.u.s->n - i, &size);
            tn_jj_append(j, list, tn_jj_part(j, v.u.s, i, i + size));
        }
    return list;
}

bool tn_jj_items(tn_jj *j, value v, const value **items, size_t *n)
{
    *n = 0;
    *items = NULL;
    if (v.kind == JJ_UNDEFINED) return j->status == TN_OK;
    if (v.kind == JJ_DICT || v.kind == JJ_STRING) v = list_of(j, v);
    if (v.kind != JJ_LIST && v.kind != JJ_TUPLE) {
        tn_jj_error(j, "'%s' cannot be iterated over", tn_jj_kind_name(v));
        return false;
    }
    *items = v.u.list->items;
    *n = v.u.list->n;
    return j->status == TN_OK;
}
