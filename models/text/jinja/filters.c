// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters for text and single values: value | name(arguments). Those for lists are in filters_list.c.
#include "core/number.h"
#include "models/text/jinja/jinja_impl.h"

#include <math.h>

static value as_value(str s)
{
    return (value){.kind = JJ_STRING, .u.s = s};
}

// --- any value ---------------------------------------------------------------------------------------------

static value filter_default(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)j;
    bool falsy = tn_jj_arg_flag(a, 1, "boolean", false) && !tn_jj_truth(v);
    if (v.kind != JJ_UNDEFINED && !falsy) return v;
    return tn_jj_has_arg(a, 0, "default_value") ? tn_jj_arg(a, 0, "default_value") : as_value(&tn_jj_empty);
}

static value filter_length(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    size_t n;
    if (tn_jj_count(j, v, &n)) return tn_jj_int((int64_t)n);
    return tn_jj_error(j, "'%s' has no length", tn_jj_kind_name(v));
}

static value filter_string(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    return as_value(tn_jj_str(j, v));
}

static value filter_tojson(tn_jj *j, value v, const tn_jj_args *a)
{
    tn_jj_builder b;
    tn_jj_build(&b, j);
    tn_jj_tojson(&b, v, a);
    return tn_jj_built(&b);
}

static value filter_pprint(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    tn_jj_builder b;
    tn_jj_build(&b, j);
    tn_jj_repr(&b, v);
    return tn_jj_built(&b);
}

static value filter_attr(tn_jj *j, value v, const tn_jj_args *a)
{
    str name = tn_jj_arg_string(j, a, 0, "name");
    return name ? tn_jj_attr(j, v, as_value(name)) : tn_jj_undefined();
}

// --- numbers -----------------------------------------------------------------------------------------------

static value filter_int(tn_jj *j, value v, const tn_jj_args *a)
{
    int64_t base = tn_jj_arg_int(j, a, 1, "base", 10), i = 0;
    value standard = tn_jj_has_arg(a, 0, "default") ? tn_jj_arg(a, 0, "default") : tn_jj_int(0);
    double f;
    if (tn_jj_integer(v, &i)) return tn_jj_int(i);
    if (v.kind == JJ_STRING) {
        value s = tn_jj_strip(j, v.u.s, NULL, 3);
        if (s.kind != JJ_STRING) return s;
        const char *p = s.u.s->data, *end = p + s.u.s->n;
        bool negative = p < end && *p == '-', ok = true;
        p += p < end && (*p == '-' || *p == '+');
        if (base == 16 && end - p > 2 && p[0] == '0' && (p[1] | 32) == 'x') p += 2;
        ok = p < end && base >= 2 && base <= 36;
        for (; ok && p < end; p++) {
            int64_t d = *p >= '0' && *p <= '9'                 ? *p - '0'
                        : (*p | 32) >= 'a' && (*p | 32) <= 'z' ? (*p | 32) - 'a' + 10
                                                               : 99;
            if (*p == '_') continue;
            ok = d < base && i <= (INT64_MAX - d) / base;
            if (ok) i = i * base + d;
        }
        if (ok) return tn_jj_int(negative ? -i : i);
        if (!tn_number_read(s.u.s->data, s.u.s->n, &f)) return standard;
    } else if (!tn_jj_number(v, &f)) {
        return standard;
    }
    return f >= -0x1p63 && f < 0x1p63 ? tn_jj_int((int64_t)f) : standard;
}

static value filter_float(tn_jj *j, value v, const tn_jj_args *a)
{
    double f;
    value standard = tn_jj_has_arg(a, 0, "default") ? tn_jj_arg(a, 0, "default") : tn_jj_float(0);
    if (tn_jj_number(v, &f)) return tn_jj_float(f);
    if (v.kind != JJ_STRING) return standard;
    value s = tn_jj_strip(j, v.u.s, NULL, 3);
    return s.kind == JJ_STRING && tn_number_read(s.u.s->data, s.u.s->n, &f) ? tn_jj_float(f) : standard;
}

static value filter_abs(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    int64_t i;
    if (v.kind == JJ_FLOAT) return tn_jj_float(fabs(v.u.f));
    if (tn_jj_integer(v, &i)) return i < 0 ? tn_jj_binary(j, OP_SUB, tn_jj_int(0), v) : tn_jj_int(i);
    return tn_jj_error(j, "'%s' is no number", tn_jj_kind_name(v));
}

// To the even neighbour at a tie, as Python does.
static value filter_round(tn_jj *j, value v, const tn_jj_args *a)
{
    int64_t digits = tn_jj_arg_int(j, a, 0, "precision", 0);
    value method = tn_jj_arg(a, 1, "method");
    double f;
    if (!tn_jj_number(v, &f)) return tn_jj_error(j, "'%s' is no number", tn_jj_kind_name(v));
    if (v.kind != JJ_FLOAT && digits >= 0 && method.kind == JJ_UNDEFINED) return v;
    double scale = pow(10, (double)TN_MAX(TN_MIN(digits, 300), -300)), x = f * scale, rounded = floor(x);
    if (method.kind == JJ_STRING && tn_jj_is(method.u.s, "ceil"))
        rounded = ceil(x);
    else if (method.kind != JJ_STRING || !tn_jj_is(method.u.s, "floor"))
        rounded = x - rounded > 0.5 || (x - rounded == 0.5 && fmod(rounded, 2) != 0) ? rounded + 1 : rounded;
    return isfinite(x) ? tn_jj_float(rounded / scale) : tn_jj_float(f);
}

// --- text --------------------------------------------------------------------------------------------------

static value filter_trim(tn_jj *j, value v, const tn_jj_args *a)
{
    value set = tn_jj_arg(a, 0, "chars");
    return tn_jj_strip(j, tn_jj_str(j, v), set.kind == JJ_STRING ? set.u.s : NULL, 3);
}

static value filter_upper(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    return tn_jj_change_case(j, tn_jj_str(j, v), 'u');
}

static value filter_lower(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    return tn_jj_change_case(j, tn_jj_str(j, v), 'l');
}

static value filter_title(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    return tn_jj_change_case(j, tn_jj_str(j, v), 't');
}

static value filter_capitalize(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    return tn_jj_change_case(j, tn_jj_str(j, v), 'c');
}

static value filter_replace(tn_jj *j, value v, const tn_jj_args *a)
{
    str old = tn_jj_str(j, tn_jj_arg(a, 0, "old")), with = tn_jj_str(j, tn_jj_arg(a, 1, "new"));
    return tn_jj_replace(j, tn_jj_str(j, v), old, with, tn_jj_arg_int(j, a, 2, "count", -1));
}

static value filter_indent(tn_jj *j, value v, const tn_jj_args *a)
{
    value width = tn_jj_arg(a, 0, "width");
    bool first = tn_jj_arg_flag(a, 1, "first", false), blank = tn_jj_arg_flag(a, 2, "blank", false);
    str s = tn_jj_str(j, v);
    tn_jj_builder b, pad;
    tn_jj_build(&pad, j);
    for (int64_t n = width.kind == JJ_INT ? TN_MIN(width.u.i, 1000) : 4; n > 0; n--) tn_jj_adds(&pad, " ");
    value blanks = tn_jj_built(&pad);
    if (width.kind == JJ_STRING) blanks = width;
    if (blanks.kind != JJ_STRING) return blanks;
    tn_jj_build(&b, j);
    for (size_t from = 0; from <= s->n && tn_jj_step(j);) {
        const char *newline = s->n > from ? memchr(s->data + from, '\n', s->n - from) : NULL;
        size_t to = newline ? (size_t)(newline - s->data) : s->n;
        if (from == 0 ? first : blank || to > from) tn_jj_add_string(&b, blanks.u.s);
        tn_jj_add_part(&b, s, from, newline ? to + 1 : to);
        from = to + 1;
    }
    return tn_jj_built(&b);
}

static value filter_escape(tn_jj *j, value v, const tn_jj_args *a)
{
    static const char plain[] = "&<>'\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    (void)a;
    str s = tn_jj_str(j, v);
    tn_jj_builder b;
    tn_jj_build(&b, j);
    for (size_t i = 0; i < s->n && tn_jj_work(j, 1); i++) {
        const char *at = s->data[i] ? strchr(plain, s->data[i]) : NULL;
        if (at)
            tn_jj_add(&b, names[at - plain], strlen(names[at - plain]), s->mask ? s->mask[i] != 0 : s->user);
        else
            tn_jj_add_part(&b, s, i, i + 1);
    }
    return tn_jj_built(&b);
}

static value filter_center(tn_jj *j, value v, const tn_jj_args *a)
{
    str s = tn_jj_str(j, v);
    int64_t width = TN_MIN(tn_jj_arg_int(j, a, 0, "width", 80), 100000), n = (int64_t)tn_jj_length(j, s);
    tn_jj_builder b;
    tn_jj_build(&b, j);
    int64_t left = width > n ? (width - n) / 2 + ((width - n) & width & 1) : 0;
    for (int64_t i = 0; i < left; i++) tn_jj_adds(&b, " ");
    tn_jj_add_string(&b, s);
    for (int64_t i = left; i < width - n; i++) tn_jj_adds(&b, " ");
    return tn_jj_built(&b);
}

static value filter_format(tn_jj *j, value v, const tn_jj_args *a)
{
    return tn_jj_format_percent(j, tn_jj_str(j, v), a->pos, a->n);
}

static value filter_wordcount(tn_jj *j, value v, const tn_jj_args *a)
{
    (void)a;
    str s = tn_jj_str(j, v);
    int64_t n = 0;
    bool in = false;
    for (size_t i = 0; i < s->n && tn_jj_work(j, 1); i++) {
        char c = s->data[i];
        bool word =
            (uint8_t)c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        n += word && !in;
        in = word;
    }
    return tn_jj_int(n);
}

// clang-format off
static const tn_jj_function filters[] = {
    {"abs", filter_abs, 0}, {"attr", filter_attr, 0}, {"capitalize", filter_capitalize, 0},
    {"center", filter_center, 0},
    {"count", filter_length, 0}, {"d", filter_default, 0}, {"default", filter_default, 0},
    {"e", filter_escape, 0},
    {"escape", filter_escape, 0}, {"float", filter_float, 0}, {"forceescape", filter_escape, 0},
    {"format", filter_format, 0},
    {"indent", filter_indent, 0}, {"int", filter_int, 0}, {"length", filter_length, 0},
    {"lower", filter_lower, 0},
    {"pprint", filter_pprint, 0}, {"replace", filter_replace, 0}, {"round", filter_round, 0},
    {"safe", filter_string, 0},
    {"string", filter_string, 0}, {"title", filter_title, 0}, {"tojson", filter_tojson, 0},
    {"trim", filter_trim, 0},
    {"upper", filter_upper, 0}, {"wordcount", filter_wordcount, 0},
};
// clang-format on

const tn_jj_function *tn_jj_find_filter(str name)
{
    const tn_jj_function *row = tn_jj_row(filters, TN_COUNT(filters), name, JJ_UNDEFINED);
    return row ? row : tn_jj_row(tn_jj_list_filters, tn_jj_n_list_filters, name, JJ_UNDEFINED);
}
