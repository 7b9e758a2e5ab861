// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods of strings, as in Python.
#include "models/text/jinja/jinja_impl.h"

static value as_value(str s)
{
    return (value){.kind = JJ_STRING, .u.s = s};
}

// --- cutting -----------------------------------------------------------------------------------------------

static value optional_strip(tn_jj *j, value v, const tn_jj_args *a, int sides)
{
    value set = tn_jj_arg(a, 0, "chars");
    if (set.kind != JJ_STRING && set.kind != JJ_UNDEFINED && set.kind != JJ_NONE)
        return tn_jj_error(j, "strip needs a string, not '%s'", tn_jj_kind_name(set));
    return tn_jj_strip(j, v.u.s, set.kind == JJ_STRING ? set.u.s : NULL, sides);
}

static value method_strip(tn_jj *j, value v, const tn_jj_args *a)
{
    return optional_strip(j, v, a, 3);
}

static value method_lstrip(tn_jj *j, value v, const tn_jj_args *a)
{
    return optional_strip(j, v, a, 1);
}

static value method_rstrip(tn_jj *j, value v, const tn_jj_args *a)
{
    return optional_strip(j, v, a, 2);
}

static bool is_space(str s, size_t i, size_t *size)
{
    uint32_t cp = tn_utf8_decode(s->data + i, s->n - i, size);
    return tn_unicode_is_space(cp) || (cp >= 0x1c && cp <= 0x1f);
}

// At runs of white space, none at the ends.
static value split_words(tn_jj *j, str s, int64_t most)
{
    value out = tn_jj_list(j);
    size_t i = 0, size;
    while (tn_jj_step(j)) {
        for (; i < s->n && is_space(s, i, &size) && tn_jj_work(j, 4); i += size) continue;
        if (i >= s->n) break;
        size_t from = i;
        if (most == 0) {
            tn_jj_append(j, out, tn_jj_part(j, s, from, s->n));
            break;
        }
        for (; i < s->n && !is_space(s, i, &size) && tn_jj_work(j, 4); i += size) continue;
        tn_jj_append(j, out, tn_jj_part(j, s, from, i));
        most -= most > 0;
    }
    return out;
}

static value method_split(tn_jj *j, value v, const tn_jj_args *a)
{
    value separator = tn_jj_arg(a, 0, "sep");
    int64_t most = tn_jj_arg_int(j, a, 1, "maxsplit", -1);
    str s = v.u.s;
    if (separator.kind == JJ_UNDEFINED || separator.kind == JJ_NONE) return split_words(j, s, most);
    str by = tn_jj_arg_string(j, a, 0, "sep");
    if (!by) return tn_jj_undefined();
    if (by->n == 0) return tn_jj_error(j, "split: the separator is empty");
    value out = tn_jj_list(j);
    size_t from = 0, at;
    for (; most != 0 && tn_jj_step(j) && (at = tn_jj_find(j, s, by, from)) != SIZE_MAX; most -= most > 0) {
        tn_jj_append(j, out, tn_jj_part(j, s, from, at));
        from = at + by->n;
    }
    tn_jj_append(j, out, tn_jj_part(j, s, from, s->n));
    return out;
}

static void reverse(value list)
{
    for (size_t i = 0; list.kind == JJ_LIST && i < list.u.list->n / 2; i++) {
        value *items = list.u.list->items, *other = &items[list.u.list->n - 1 - i], kept = items[i];
        items[i] = *other;
        *other = kept;
    }
}

static value method_rsplit(tn_jj *j, value v, const tn_jj_args *a)
{
    int64_t most = tn_jj_arg_int(j, a, 1, "maxsplit", -1);
    value separator = tn_jj_arg(a, 0, "sep");
    if (most < 0 || separator.kind != JJ_STRING || separator.u.s->n == 0) return method_split(j, v, a);
    value out = tn_jj_list(j), rest = v;
    for (size_t at;
         most > 0 && tn_jj_step(j) && (at = tn_jj_find_last(j, rest.u.s, separator.u.s)) != SIZE_MAX;
         most--) {
        value head = tn_jj_part(j, rest.u.s, 0, at);
        tn_jj_append(j, out, tn_jj_part(j, rest.u.s, at + separator.u.s->n, rest.u.s->n));
        if (head.kind != JJ_STRING) break;
        rest = head;
    }
    tn_jj_append(j, out, rest);
    reverse(out);
    return out;
}

static value method_splitlines(tn_jj *j, value v, const tn_jj_args *a)
{
    bool keep = tn_jj_arg_flag(a, 0, "keepends", false);
    value out = tn_jj_list(j);
    str s = v.u.s;
    for (size_t from = 0, i = 0; from < s->n && tn_jj_work(j, 1); i++) {
        bool end = i >= s->n, newline = !end && (s->data[i] == '\n' || s->data[i] == '\r');
        if (!end && !newline) continue;
        size_t next = end ? i : i + 1 + (s->data[i] == '\r' && i + 1 < s->n && s->data[i + 1] == '\n');
        tn_jj_append(j, out, tn_jj_part(j, s, from, keep ? next : i));
        from = next;
        i = next - 1;
    }
    return out;
}

static value partition(tn_jj *j, value v, const tn_jj_args *a, bool last)
{
    str by = tn_jj_arg_string(j, a, 0, "sep"), s = v.u.s;
    value out = tn_jj_sized(j, JJ_TUPLE, 0);
    if (!by || by->n == 0)
        return by ? tn_jj_error(j, "partition: the separator is empty") : tn_jj_undefined();
    size_t at = last ? tn_jj_find_last(j, s, by) : tn_jj_find(j, s, by, 0);
    bool found = at != SIZE_MAX;
    if (!found) at = last ? 0 : s->n;
    tn_jj_append(j, out, tn_jj_part(j, s, 0, at));
    tn_jj_append(j, out, found ? as_value(by) : as_value(&tn_jj_empty));
    tn_jj_append(j, out, tn_jj_part(j, s, found ? at + by->n : at, s->n));
    return out;
}

static value method_partition(tn_jj *j, value v, const tn_jj_args *a)
{
    return partition(j, v, a, false);
}

static value method_rpartition(tn_jj *j, value v, const tn_jj_args *a)
{
    return partition(j, v, a, true);
}

static bool begins(str s, str with)
{
    return with->n <= s->n && memcmp(s->data, with->data, with->n) == 0;
}

static bool ends(str s, str with)
{
    return with->n <= s->n && memcmp(s->data + s->n - with->n, with->data, with->n) == 0;
}

static value method_removeprefix(tn_jj *j, value v, const tn_jj_args *a)
{
    str part = tn_jj_arg_string(j, a, 0, "prefix"), s = v.u.s;
    return part && begins(s, part) ? tn_jj_part(j, s, part->n, s->n) : v;
}

static value method_removesuffix(tn_jj *j, value v, const tn_jj_args *a)
{
    str part = tn_jj_arg_string(j, a, 0, "suffix"), s = v.u.s;
    return part && ends(s, part) ? tn_jj_part(j, s, 0, s->n - part->n) : v;
}

// --- looking -----------------------------------------------------------------------------------------------

// With one text, or with any of a tuple.
static value any_matches(tn_jj *j, value v, const tn_jj_args *a, bool (*matches)(str s, str with))
{
    value with = tn_jj_arg(a, 0, "prefix");
    const value *items = &with;
    size_t n = 1;
    if (with.kind == JJ_TUPLE && !tn_jj_items(j, with, &items, &n)) return tn_jj_undefined();
    for (size_t i = 0; i < n && tn_jj_step(j); i++) {
        if (items[i].kind != JJ_STRING)
            return tn_jj_error(j, "a string or a tuple of strings is needed, not '%s'",
                               tn_jj_kind_name(items[i]));
        if (tn_jj_work(j, items[i].u.s->n) && matches(v.u.s, items[i].u.s)) return tn_jj_bool(true);
    }
    return tn_jj_bool(false);
}

static value method_startswith(tn_jj *j, value v, const tn_jj_args *a)
{
    return any_matches(j, v, a, begins);
}

static value method_endswith(tn_jj *j, value v, const tn_jj_args *a)
{
    return any_matches(j, v, a, ends);
}

// Character where the text is, or -1.
static value position(tn_jj *j, value v, const tn_jj_args *a, bool last, bool needed)
{
    str what = tn_jj_arg_string(j, a, 0, "sub"), s = v.u.s;
    if (!what) return tn_jj_undefined();
    size_t at = last ? tn_jj_find_last(j, s, what) : tn_jj_find(j, s, what, 0);
    if (at == SIZE_MAX) return needed ? tn_jj_error(j, "the text was not found") : tn_jj_int(-1);
    tn_jj_string head = {.data = s->data, .n = at};
    return tn_jj_int((int64_t)tn_jj_length(j, &head));
}

static value method_find(tn_jj *j, value v, const tn_jj_args *a)
{
    return position(j, v, a, false, false);
}

static value method_rfind(tn_jj *j, value v, const tn_jj_args *a)
{
    return position(j, v, a, true, false);
}

static value method_index(tn_jj *j, value v, const tn_jj_args *a)
{
    return position(j, v, a, false, true);
}

static value method_count(tn_jj *j, value v, const tn_jj_args *a)
{
    str what = tn_jj_arg_string(j, a, 0, "sub");
    int64_t n = 0;
    if (!what) return tn_jj_undefined();
    if (what->n == 0) return tn_jj_int((int64_t)tn_jj_length(j, v.u.s) + 1);
    for (size_t at = 0; tn_jj_step(j) && (at = tn_jj_find(j, v.u.s, what, at)) != SIZE_MAX; at += what->n)
        n++;
    return tn_jj_int(n);
}

#define PREDICATE(name, what)                                                                                \
    static value method_##name(tn_jj *j, value v, const tn_jj_args *a)                                       \
    {                                                                                                        \
        (void)a;                                                                                             \
        return tn_jj_bool(tn_jj_all(j, v.u.s, what));                                                        \
    }
PREDICATE(isalpha, 'a')
PREDICATE(isalnum, 'n')
PREDICATE(isdigit, 'd')
PREDICATE(isspace, 's')
PREDICATE(isupper, 'u')
PREDICATE(islower, 'l')

// --- changing ----------------------------------------------------------------------------------------------

#define CASE(name, how)                                                                                      \
    static value method_##name(tn_jj *j, value v, const tn_jj_args *a)                                       \
    {                                                                                                        \
        (void)a;                                                                                             \
        return tn_jj_change_case(j, v.u.s, how);                                                             \
    }
CASE(upper, 'u')
CASE(lower, 'l')
CASE(title, 't')
CASE(capitalize, 'c')
CASE(swapcase, 's')

static value method_replace(tn_jj *j, value v, const tn_jj_args *a)
{
    str old = tn_jj_arg_string(j, a, 0, "old"), with = tn_jj_arg_string(j, a, 1, "new");
    return old && with ? tn_jj_replace(j, v.u.s, old, with, tn_jj_arg_int(j, a, 2, "count", -1))
                       : tn_jj_undefined();
}

static value method_join(tn_jj *j, value v, const tn_jj_args *a)
{
    const value *items;
    size_t n;
    tn_jj_builder b;
    if (!tn_jj_items(j, tn_jj_arg(a, 0, "iterable"), &items, &n)) return tn_jj_undefined();
    tn_jj_build(&b, j);
    for (size_t i = 0; i < n && tn_jj_step(j); i++) {
        if (items[i].kind != JJ_STRING)
            return tn_jj_error(j, "join: item %zu is '%s', no string", i, tn_jj_kind_name(items[i]));
        if (i) tn_jj_add_string(&b, v.u.s);
        tn_jj_add_string(&b, items[i].u.s);
    }
    return tn_jj_built(&b);
}

static value method_format(tn_jj *j, value v, const tn_jj_args *a)
{
    return tn_jj_format_braces(j, v.u.s, a);
}

// Filled up to a width: left and right say on which sides.
static value fill(tn_jj *j, value v, const tn_jj_args *a, bool left, bool right)
{
    value with = tn_jj_arg(a, 1, "fillchar");
    int64_t width = tn_jj_arg_int(j, a, 0, "width", 0), missing = width - (int64_t)tn_jj_length(j, v.u.s);
    int64_t before = left && right ? missing / 2 + (missing & width & 1) : left ? missing : 0;
    tn_jj_builder b;
    if (missing <= 0) return v;
    tn_jj_build(&b, j);
    for (int64_t i = 0; i <= missing && tn_jj_step(j); i++) {
        if (i == before) tn_jj_add_string(&b, v.u.s);
        if (i == missing) break;
        if (with.kind == JJ_STRING)
            tn_jj_add_string(&b, with.u.s);
        else
            tn_jj_adds(&b, " ");
    }
    return tn_jj_built(&b);
}

static value method_ljust(tn_jj *j, value v, const tn_jj_args *a)
{
    return fill(j, v, a, false, true);
}

static value method_rjust(tn_jj *j, value v, const tn_jj_args *a)
{
    return fill(j, v, a, true, false);
}

static value method_center(tn_jj *j, value v, const tn_jj_args *a)
{
    return fill(j, v, a, true, true);
}

static value method_zfill(tn_jj *j, value v, const tn_jj_args *a)
{
    str s = v.u.s;
    int64_t missing = tn_jj_arg_int(j, a, 0, "width", 0) - (int64_t)tn_jj_length(j, s);
    size_t sign = s->n && (s->data[0] == '-' || s->data[0] == '+');
    tn_jj_builder b;
    tn_jj_build(&b, j);
    tn_jj_add_part(&b, s, 0, sign);
    for (; missing > 0 && tn_jj_step(j); missing--) tn_jj_adds(&b, "0");
    tn_jj_add_part(&b, s, sign, s->n);
    return tn_jj_built(&b);
}

// clang-format off
static const tn_jj_function rows[] = {
    {"capitalize", method_capitalize, 0}, {"casefold", method_lower, 0}, {"center", method_center, 0},
    {"count", method_count, 0},
    {"endswith", method_endswith, 0}, {"find", method_find, 0}, {"format", method_format, 0},
    {"index", method_index, 0},
    {"isalnum", method_isalnum, 0}, {"isalpha", method_isalpha, 0}, {"isdecimal", method_isdigit, 0},
    {"isdigit", method_isdigit, 0}, {"islower", method_islower, 0}, {"isnumeric", method_isdigit, 0},
    {"isspace", method_isspace, 0}, {"isupper", method_isupper, 0}, {"join", method_join, 0},
    {"ljust", method_ljust, 0},
    {"lower", method_lower, 0}, {"lstrip", method_lstrip, 0}, {"partition", method_partition, 0},
    {"removeprefix", method_removeprefix, 0}, {"removesuffix", method_removesuffix, 0},
    {"replace", method_replace, 0},
    {"rfind", method_rfind, 0}, {"rjust", method_rjust, 0}, {"rpartition", method_rpartition, 0},
    {"rsplit", method_rsplit, 0},
    {"rstrip", method_rstrip, 0}, {"split", method_split, 0}, {"splitlines", method_splitlines, 0},
    {"startswith", method_startswith, 0}, {"strip", method_strip, 0}, {"swapcase", method_swapcase, 0},
    {"title", method_title, 0}, {"upper", method_upper, 0}, {"zfill", method_zfill, 0},
};
// clang-format on

const tn_jj_function *tn_jj_find_text_method(str name)
{
    return tn_jj_row(rows, TN_COUNT(rows), name, JJ_STRING);
}
