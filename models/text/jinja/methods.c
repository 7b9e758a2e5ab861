// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods of lists, dictionaries and loops, and the global functions.
#include "models/text/jinja/jinja_impl.h"

static value as_value(str s)
{
    return (value){.kind = JJ_STRING, .u.s = s};
}

// --- lists -------------------------------------------------------------------------------------------------

static value list_append(tn_jj *j, value v, const tn_jj_args *a)
{
    tn_jj_append(j, v, tn_jj_arg(a, 0, "object"));
    return tn_jj_none();
}

static value list_extend(tn_jj *j, value v, const tn_jj_args *a)
{
    const value *items;
    size_t n;
    if (!tn_jj_items(j, tn_jj_arg(a, 0, "iterable"), &items, &n)) return tn_jj_undefined();
    for (size_t i = 0; i < n && tn_jj_step(j); i++) tn_jj_append(j, v, items[i]);
    return tn_jj_none();
}

static value list_insert(tn_jj *j, value v, const tn_jj_args *a)
{
    jj_list *l = v.u.list;
    int64_t n = (int64_t)l->n, i = tn_jj_arg_int(j, a, 0, "index", 0);
    if (i < 0) i += n;
    i = TN_MAX((int64_t)0, TN_MIN(i, n));
    if (!tn_jj_steps(j, l->n / 16)) return tn_jj_undefined();
    tn_jj_append(j, v, tn_jj_none());
    if (j->status != TN_OK) return tn_jj_undefined();
    memmove(l->items + i + 1, l->items + i, (size_t)(n - i) * sizeof *l->items);
    l->items[i] = tn_jj_arg(a, 1, "object");
    return tn_jj_none();
}

static value list_pop(tn_jj *j, value v, const tn_jj_args *a)
{
    jj_list *l = v.u.list;
    int64_t n = (int64_t)l->n, i = tn_jj_arg_int(j, a, 0, "index", -1);
    if (i < 0) i += n;
    if (i < 0 || i >= n || !tn_jj_steps(j, l->n / 16)) return tn_jj_error(j, "pop: no such item");
    value out = l->items[i];
    // The old items are unchanged, because a loop may be iterating over them.
    value *items =
        i + 1 == n ? l->items : tn_jj_grow(j, l->items, l->n * sizeof *items, l->n * sizeof *items);
    if (!items) return tn_jj_undefined();
    memmove(items + i, items + i + 1, (size_t)(n - i - 1) * sizeof *items);
    l->items = items;
    l->n--;
    return out;
}

static value list_position(tn_jj *j, value v, const tn_jj_args *a)
{
    for (size_t i = 0; i < v.u.list->n && tn_jj_step(j); i++)
        if (tn_jj_equal(j, v.u.list->items[i], tn_jj_arg(a, 0, "value"))) return tn_jj_int((int64_t)i);
    return tn_jj_error(j, "index: the value is not in the list");
}

static value list_count(tn_jj *j, value v, const tn_jj_args *a)
{
    int64_t n = 0;
    for (size_t i = 0; i < v.u.list->n && tn_jj_step(j); i++)
        n += tn_jj_equal(j, v.u.list->items[i], tn_jj_arg(a, 0, "value"));
    return tn_jj_int(n);
}

static value list_reverse(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    value parts[3] = {tn_jj_none(), tn_jj_none(), tn_jj_int(-1)}, turned = tn_jj_slice(j, v, parts);
    if (turned.kind == JJ_LIST) *v.u.list = *turned.u.list;
    return tn_jj_none();
}

static value copy(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    value out = v.kind == JJ_DICT ? tn_jj_dict(j) : tn_jj_list(j);
    if (out.kind == JJ_DICT)
        for (size_t i = 0; i < v.u.dict->n && tn_jj_step(j); i++)
            tn_jj_set(j, out.u.dict, v.u.dict->entries[i].key, v.u.dict->entries[i].value);
    if (out.kind == JJ_LIST)
        for (size_t i = 0; i < v.u.list->n && tn_jj_step(j); i++) tn_jj_append(j, out, v.u.list->items[i]);
    return out;
}

// --- dictionaries ------------------------------------------------------------------------------------------

static value dict_items(tn_jj *j, value v, const tn_jj_args *a)
{
    return j->tables->filter(&(tn_jj_string){.data = "items", .n = 5})->fn(j, v, a);
}

static value dict_keys(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    value out = tn_jj_list(j);
    for (size_t i = 0; i < v.u.dict->n && tn_jj_step(j); i++) tn_jj_append(j, out, v.u.dict->entries[i].key);
    return out;
}

static value dict_values(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    value out = tn_jj_list(j);
    for (size_t i = 0; i < v.u.dict->n && tn_jj_step(j); i++)
        tn_jj_append(j, out, v.u.dict->entries[i].value);
    return out;
}

static value dict_get(tn_jj *j, value v, const tn_jj_args *a)
{
    value out, standard = tn_jj_has_arg(a, 1, "default") ? tn_jj_arg(a, 1, "default") : tn_jj_none();
    return tn_jj_lookup(j, v.u.dict, tn_jj_arg(a, 0, "key"), &out) ? out : standard;
}

static value dict_setdefault(tn_jj *j, value v, const tn_jj_args *a)
{
    value out, key = tn_jj_arg(a, 0, "key");
    if (tn_jj_lookup(j, v.u.dict, key, &out)) return out;
    out = tn_jj_has_arg(a, 1, "default") ? tn_jj_arg(a, 1, "default") : tn_jj_none();
    tn_jj_set(j, v.u.dict, key, out);
    return out;
}

static value dict_pop(tn_jj *j, value v, const tn_jj_args *a)
{
    size_t i = tn_jj_index_of(j, v.u.dict, tn_jj_arg(a, 0, "key"));
    if (i == SIZE_MAX) return a->n > 1 ? a->pos[1] : tn_jj_error(j, "pop: there is no such key");
    value out = v.u.dict->entries[i].value;
    if (tn_jj_steps(j, v.u.dict->n / 16)) tn_jj_remove(v.u.dict, i);
    return out;
}

static void update(tn_jj *j, jj_dict *d, value from, const tn_jj_args *a)
{
    for (size_t i = 0; from.kind == JJ_DICT && i < from.u.dict->n && tn_jj_step(j); i++)
        tn_jj_set(j, d, from.u.dict->entries[i].key, from.u.dict->entries[i].value);
    for (size_t i = 0; i < a->n_named; i++) tn_jj_set(j, d, a->pos[a->n + 2 * i], a->pos[a->n + 2 * i + 1]);
}

static value dict_update(tn_jj *j, value v, const tn_jj_args *a)
{
    update(j, v.u.dict, a->n ? a->pos[0] : tn_jj_undefined(), a);
    return tn_jj_none();
}

static value container_clear(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)j;
    (void)a;
    if (v.kind == JJ_DICT)
        *v.u.dict = (jj_dict){0};
    else
        *v.u.list = (jj_list){0};
    return tn_jj_none();
}

// --- loops and cyclers -------------------------------------------------------------------------------------

static value loop_cycle(tn_jj *j, value v, const tn_jj_args *a)
{
    if (a->n == 0) return tn_jj_error(j, "cycle needs values");
    return a->pos[v.u.loop->index % a->n];
}

static value loop_changed(tn_jj *j, value v, const tn_jj_args *a)
{
    value now = tn_jj_sized(j, JJ_TUPLE, 0);
    for (size_t i = 0; i < a->n; i++) tn_jj_append(j, now, a->pos[i]);
    bool same = tn_jj_equal(j, v.u.loop->last_changed, now);
    v.u.loop->last_changed = now;
    return tn_jj_bool(!same);
}

// A cycler is a list: the index of the next value, then its values.
static value cycler_next(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)j;
    (void)a;
    jj_list *l = v.u.list;
    int64_t i = l->items[0].u.i;
    l->items[0].u.i = (i + 1) % ((int64_t)l->n - 1);
    return l->items[1 + i];
}

static value cycler_reset(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)j;
    (void)a;
    v.u.list->items[0].u.i = 0;
    return tn_jj_none();
}

// clang-format off
#define LIST (1u << JJ_LIST)
#define SEQUENCE (1u << JJ_LIST | 1u << JJ_TUPLE)
#define DICT (1u << JJ_DICT)
static const tn_jj_function rows[] = {
    {"append", list_append, LIST}, {"changed", loop_changed, 1u << JJ_LOOP},
    {"clear", container_clear, LIST | DICT},
    {"copy", copy, LIST | DICT}, {"count", list_count, SEQUENCE}, {"cycle", loop_cycle, 1u << JJ_LOOP},
    {"extend", list_extend, LIST}, {"get", dict_get, DICT}, {"index", list_position, SEQUENCE},
    {"insert", list_insert, LIST},
    {"items", dict_items, DICT}, {"keys", dict_keys, DICT}, {"next", cycler_next, 1u << JJ_CYCLER},
    {"pop", list_pop, LIST},
    {"pop", dict_pop, DICT}, {"reset", cycler_reset, 1u << JJ_CYCLER}, {"reverse", list_reverse, LIST},
    {"setdefault", dict_setdefault, DICT}, {"update", dict_update, DICT}, {"values", dict_values, DICT},
};
// clang-format on

const tn_jj_function *tn_jj_find_method(tn_jj_kind kind, str name)
{
    return kind == JJ_STRING ? tn_jj_find_text_method(name) : tn_jj_row(rows, TN_COUNT(rows), name, kind);
}

// --- functions ---------------------------------------------------------------------------------------------

static value function_range(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)v;
    bool both = a->n > 1;
    int64_t from = both ? tn_jj_arg_int(j, a, 0, "start", 0) : 0, to = tn_jj_arg_int(j, a, both, "stop", 0);
    int64_t step = tn_jj_arg_int(j, a, 2, "step", 1);
    if (step == 0) return tn_jj_error(j, "range: a step of 0");
    uint64_t stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    uint64_t span = (step > 0 ? from < to : from > to)
                        ? (step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to)
                        : 0;
    uint64_t n = span ? (span - 1) / stride + 1 : 0;
    if (n > j->limits.steps || !tn_jj_steps(j, (size_t)n))
        return tn_jj_error(j, "range: more than %llu numbers", (unsigned long long)j->limits.steps);
    value out = tn_jj_sized(j, JJ_LIST, (size_t)n);
    for (size_t i = 0; out.kind == JJ_LIST && i < n; i++)
        out.u.list->items[i] = tn_jj_int((int64_t)((uint64_t)from + i * (uint64_t)step));
    return out;
}

static value function_dict(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)v;
    value out = tn_jj_dict(j);
    if (out.kind == JJ_DICT) update(j, out.u.dict, a->n ? a->pos[0] : tn_jj_undefined(), a);
    return out;
}

static value function_namespace(tn_jj *j, value v, const tn_jj_args *a)
{
    value out = function_dict(j, v, a);
    if (out.kind == JJ_DICT) out.kind = JJ_NAMESPACE;
    return out;
}

static value function_raise(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)v;
    str s = tn_jj_str(j, tn_jj_arg(a, 0, "message"));
    return tn_jj_error_as(j, TN_ERR_ARG, "%.*s", (int)TN_MIN(s->n, 600), s->data);
}

static value function_strftime(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)v;
    str format = tn_jj_arg_string(j, a, 0, "format");
    return format ? tn_jj_strftime(j, format) : tn_jj_undefined();
}

static value function_cycler(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)v;
    value out = tn_jj_list(j);
    if (a->n == 0) return tn_jj_error(j, "cycler needs values");
    tn_jj_append(j, out, tn_jj_int(0));
    for (size_t i = 0; i < a->n; i++) tn_jj_append(j, out, a->pos[i]);
    if (j->status == TN_OK) out.kind = JJ_CYCLER;
    return out;
}

// A joiner is the list of its text and whether it was used.
static value function_joiner(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)v;
    value out = tn_jj_list(j);
    tn_jj_append(j, out, tn_jj_has_arg(a, 0, "sep") ? tn_jj_arg(a, 0, "sep") : tn_jj_literal(j, ", "));
    tn_jj_append(j, out, tn_jj_bool(false));
    if (j->status == TN_OK) out.kind = JJ_JOINER;
    return out;
}

value tn_jj_call_joiner(tn_jj *j, value joiner)
{
    (void)j;
    value *items = joiner.u.list->items;
    bool used = items[1].u.b;
    items[1].u.b = true;
    return used ? items[0] : as_value(&tn_jj_empty);
}

// clang-format off
static const tn_jj_function functions[] = {
    {"cycler", function_cycler, 0}, {"dict", function_dict, 0}, {"joiner", function_joiner, 0},
    {"namespace", function_namespace, 0}, {"raise_exception", function_raise, 0},
    {"range", function_range, 0},
};
// clang-format on
static const tn_jj_function clock_function = {"strftime_now", function_strftime, 0};

const tn_jj_function *tn_jj_find_function(tn_jj *j, str name)
{
    if (j->has_clock && tn_jj_is(name, clock_function.name)) return &clock_function;
    return tn_jj_row(functions, TN_COUNT(functions), name, JJ_UNDEFINED);
}
