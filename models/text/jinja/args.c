// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of filters, tests, functions and methods, and rows of their tables.
#include "models/text/jinja/jinja_impl.h"

const tn_jj_function *tn_jj_row(const tn_jj_function *rows, size_t n, str name, tn_jj_kind kind)
{
    for (size_t i = 0; i < n; i++)
        if (tn_jj_is(name, rows[i].name) && (rows[i].kinds == 0 || rows[i].kinds >> kind & 1))
            return &rows[i];
    return NULL;
}

static const value *find_arg(const tn_jj_args *a, size_t i, const char *name)
{
    if (i < a->n) return &a->pos[i];
    for (size_t k = 0; k < a->n_named; k++)
        if (tn_jj_is(a->pos[a->n + 2 * k].u.s, name)) return &a->pos[a->n + 2 * k + 1];
    return NULL;
}

bool tn_jj_has_arg(const tn_jj_args *a, size_t i, const char *name)
{
    return find_arg(a, i, name) != NULL;
}

value tn_jj_arg(const tn_jj_args *a, size_t i, const char *name)
{
    const value *v = find_arg(a, i, name);
    return v ? *v : tn_jj_undefined();
}

str tn_jj_arg_string(tn_jj *j, const tn_jj_args *a, size_t i, const char *name)
{
    value v = tn_jj_arg(a, i, name);
    if (v.kind == JJ_STRING) return v.u.s;
    if (v.kind == JJ_UNDEFINED && v.u.s)
        tn_jj_refuse(j, v);
    else
        tn_jj_error(j, "argument '%s' needs a string, not '%s'", name, tn_jj_kind_name(v));
    return NULL;
}

int64_t tn_jj_arg_int(tn_jj *j, const tn_jj_args *a, size_t i, const char *name, int64_t standard)
{
    value v = tn_jj_arg(a, i, name);
    int64_t out = standard;
    if (v.kind != JJ_UNDEFINED && v.kind != JJ_NONE && !tn_jj_integer(v, &out))
        tn_jj_error(j, "argument '%s' needs a whole number, not '%s'", name, tn_jj_kind_name(v));
    return out;
}

bool tn_jj_arg_flag(const tn_jj_args *a, size_t i, const char *name, bool standard)
{
    return tn_jj_has_arg(a, i, name) ? tn_jj_truth(tn_jj_arg(a, i, name)) : standard;
}
