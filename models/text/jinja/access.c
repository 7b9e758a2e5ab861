// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// a.b and a[b] of every kind of value, and the members of `loop`. A member that does not exist is undefined,
// and only using that is an error.
#include "models/text/jinja/jinja_impl.h"

// --- loop --------------------------------------------------------------------------------------------------

typedef enum loop_member {
    INDEX,
    INDEX0,
    REVINDEX,
    REVINDEX0,
    FIRST,
    LAST,
    LENGTH,
    PREVIOUS,
    NEXT,
    DEPTH,
    DEPTH0
} loop_member;

static const char *const loop_members[] = {"index",  "index0",   "revindex", "revindex0", "first", "last",
                                           "length", "previtem", "nextitem", "depth",     "depth0"};

static value loop_attr(const tn_jj_loop *l, loop_member member, str name)
{
    int64_t i = (int64_t)l->index, n = (int64_t)l->n;
    switch (member) {
    case INDEX:
        return tn_jj_int(i + 1);
    case INDEX0:
        return tn_jj_int(i);
    case REVINDEX:
        return tn_jj_int(n - i);
    case REVINDEX0:
        return tn_jj_int(n - i - 1);
    case FIRST:
        return tn_jj_bool(i == 0);
    case LAST:
        return tn_jj_bool(i + 1 == n);
    case LENGTH:
        return tn_jj_int(n);
    case PREVIOUS:
        return i > 0 ? l->items[i - 1] : tn_jj_missing(name);
    case NEXT:
        return i + 1 < n ? l->items[i + 1] : tn_jj_missing(name);
    case DEPTH:
        return tn_jj_int(l->level + 1);
    case DEPTH0:
        return tn_jj_int(l->level);
    }
    return tn_jj_missing(name);
}

// --- attributes --------------------------------------------------------------------------------------------

static value bind(tn_jj *j, const tn_jj_function *row, value self)
{
    tn_jj_method *m = tn_jj_alloc(j, sizeof *m);
    if (!m) return tn_jj_undefined();
    *m = (tn_jj_method){row, self};
    return (value){.kind = JJ_METHOD, .u.method = m};
}

static bool own_attr(tn_jj *j, value v, str name, value *out)
{
    if (v.kind == JJ_LOOP)
        for (size_t i = 0; i < TN_COUNT(loop_members); i++)
            if (tn_jj_is(name, loop_members[i])) {
                *out = loop_attr(v.u.loop, (loop_member)i, name);
                return true;
            }
    if (v.kind == JJ_NAMESPACE)
        return tn_jj_lookup(j, v.u.dict, (value){.kind = JJ_STRING, .u.s = name}, out);
    const tn_jj_function *row = j->tables->method(v.kind, name);
    if (row) *out = bind(j, row, v);
    return row != NULL;
}

static bool own_item(tn_jj *j, value v, value key, value *out)
{
    int64_t i, n;
    if (v.kind == JJ_DICT) return tn_jj_lookup(j, v.u.dict, key, out);
    bool list = v.kind == JJ_LIST || v.kind == JJ_TUPLE;
    if ((!list && v.kind != JJ_STRING) || !tn_jj_integer(key, &i)) return false;
    n = list ? (int64_t)v.u.list->n : (int64_t)v.u.s->n;
    if (!list && i < 0) n = (int64_t)tn_jj_length(j, v.u.s);
    if (i < 0) i += n;
    if (i < 0 || i >= n) return false;
    if (list) {
        *out = v.u.list->items[i];
        return true;
    }
    str s = v.u.s;
    size_t at = tn_jj_offset(j, s, (size_t)i), size;
    if (at >= s->n) return false;
    tn_utf8_decode(s->data + at, s->n - at, &size);
    *out = tn_jj_part(j, s, at, at + size);
    return true;
}

value tn_jj_attr(tn_jj *j, value v, value name)
{
    value out;
    if (v.kind == JJ_UNDEFINED) {
        tn_jj_refuse(j, v);
        return v;
    }
    str text = name.kind == JJ_STRING ? name.u.s : &tn_jj_empty;
    if (own_attr(j, v, text, &out) || own_item(j, v, name, &out)) return out;
    return tn_jj_missing(text);
}

value tn_jj_item(tn_jj *j, value v, value key)
{
    value out;
    if (v.kind == JJ_UNDEFINED) {
        tn_jj_refuse(j, v);
        return v;
    }
    if (own_item(j, v, key, &out)) return out;
    if (key.kind != JJ_STRING) return tn_jj_undefined();
    return own_attr(j, v, key.u.s, &out) ? out : tn_jj_missing(key.u.s);
}

static bool is_number(str s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->data[i] < '0' || s->data[i] > '9') return false;
    return s->n > 0 && s->n < 10;
}

value tn_jj_path_or(tn_jj *j, value v, value path, value standard)
{
    if (path.kind != JJ_STRING) return tn_jj_item(j, v, path);
    str s = path.u.s;
    for (size_t from = 0; from <= s->n && j->status == TN_OK;) {
        const char *dot = s->n > from ? memchr(s->data + from, '.', s->n - from) : NULL;
        size_t to = dot ? (size_t)(dot - s->data) : s->n;
        value part = tn_jj_part(j, s, from, to);
        int64_t i = 0;
        if (part.kind == JJ_STRING && is_number(part.u.s)) {
            for (size_t k = from; k < to; k++) i = i * 10 + (s->data[k] - '0');
            part = tn_jj_int(i);
        }
        v = tn_jj_item(j, v, part);
        if (v.kind == JJ_UNDEFINED && standard.kind != JJ_UNDEFINED) v = standard;
        from = to + 1;
    }
    return v;
}

value tn_jj_path(tn_jj *j, value v, value path)
{
    return tn_jj_path_or(j, v, path, tn_jj_undefined());
}
