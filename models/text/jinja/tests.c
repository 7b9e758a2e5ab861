// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests: value is name(argument).
#include "models/text/jinja/jinja_impl.h"

#define TEST(name, condition)                                                                                \
    static value test_##name(tn_jj *j, value v, const tn_jj_args *a)                                         \
    {                                                                                                        \
        (void)j;                                                                                             \
        (void)v;                                                                                             \
        (void)a;                                                                                             \
        return tn_jj_bool(condition);                                                                        \
    }

static bool is_sequence(value v)
{
    return v.kind == JJ_STRING || v.kind == JJ_LIST || v.kind == JJ_TUPLE || v.kind == JJ_DICT ||
           v.kind == JJ_UNDEFINED;
}

// Whether a number is a multiple of n, plus `rest`.
static bool divides(tn_jj *j, value v, int64_t n, int64_t rest)
{
    int64_t i;
    if (n == 0) tn_jj_error(j, "division by zero");
    if (!tn_jj_integer(v, &i)) {
        tn_jj_error(j, "'%s' is no whole number", tn_jj_kind_name(v));
        return false;
    }
    return n == -1 || (n != 0 && (i % n == rest || i % n == rest - n));
}

static bool has_case(tn_jj *j, value v, int how)
{
    str s = tn_jj_str(j, v);
    value changed = tn_jj_change_case(j, s, how), other = tn_jj_change_case(j, s, how == 'u' ? 'l' : 'u');
    return changed.kind == JJ_STRING && other.kind == JJ_STRING && tn_jj_same(changed.u.s, s) &&
           !tn_jj_same(other.u.s, s);
}

static bool same_object(tn_jj *j, value a, value b)
{
    if (a.kind != b.kind) return false;
    if (a.kind == JJ_LIST || a.kind == JJ_TUPLE) return a.u.list == b.u.list;
    if (a.kind == JJ_DICT) return a.u.dict == b.u.dict;
    return tn_jj_equal(j, a, b);
}

static bool is_callable(value v)
{
    return v.kind == JJ_FUNCTION || v.kind == JJ_METHOD || v.kind == JJ_MACRO || v.kind == JJ_JOINER;
}

static bool names_row(value v, const tn_jj_function *(*find)(str name))
{
    return v.kind == JJ_STRING && find(v.u.s) != NULL;
}

TEST(boolean, v.kind == JJ_BOOL)
TEST(callable, is_callable(v))
TEST(defined, v.kind != JJ_UNDEFINED)
TEST(divisibleby, divides(j, v, tn_jj_arg_int(j, a, 0, "num", 0), 0))
TEST(eq, tn_jj_equal(j, v, tn_jj_arg(a, 0, "other")))
TEST(escaped, false)
TEST(even, divides(j, v, 2, 0))
TEST(false, v.kind == JJ_BOOL && !v.u.b)
TEST(filter, names_row(v, j->tables->filter))
TEST(float, v.kind == JJ_FLOAT)
TEST(ge, tn_jj_compare(j, v, tn_jj_arg(a, 0, "other")) >= 0)
TEST(gt, tn_jj_compare(j, v, tn_jj_arg(a, 0, "other")) > 0)
TEST(in, tn_jj_contains(j, tn_jj_arg(a, 0, "seq"), v))
TEST(integer, v.kind == JJ_INT)
TEST(iterable, is_sequence(v) || v.kind == JJ_LOOP)
TEST(le, tn_jj_compare(j, v, tn_jj_arg(a, 0, "other")) <= 0)
TEST(lower, has_case(j, v, 'l'))
TEST(lt, tn_jj_compare(j, v, tn_jj_arg(a, 0, "other")) < 0)
TEST(mapping, v.kind == JJ_DICT)
TEST(ne, !tn_jj_equal(j, v, tn_jj_arg(a, 0, "other")))
TEST(none, v.kind == JJ_NONE)
TEST(number, v.kind == JJ_INT || v.kind == JJ_FLOAT || v.kind == JJ_BOOL)
TEST(odd, divides(j, v, 2, 1))
TEST(sameas, same_object(j, v, tn_jj_arg(a, 0, "other")))
TEST(sequence, is_sequence(v))
TEST(string, v.kind == JJ_STRING)
TEST(test, names_row(v, j->tables->test))
TEST(true, v.kind == JJ_BOOL && v.u.b)
TEST(undefined, v.kind == JJ_UNDEFINED)
TEST(upper, has_case(j, v, 'u'))

// clang-format off
static const tn_jj_function tests[] = {
    {"boolean", test_boolean, 0}, {"callable", test_callable, 0}, {"defined", test_defined, 0},
    {"divisibleby", test_divisibleby, 0}, {"eq", test_eq, 0}, {"equalto", test_eq, 0},
    {"escaped", test_escaped, 0},
    {"even", test_even, 0}, {"false", test_false, 0}, {"filter", test_filter, 0}, {"float", test_float, 0},
    {"ge", test_ge, 0},
    {"greaterthan", test_gt, 0}, {"gt", test_gt, 0}, {"in", test_in, 0}, {"integer", test_integer, 0},
    {"iterable", test_iterable, 0}, {"le", test_le, 0}, {"lessthan", test_lt, 0}, {"lower", test_lower, 0},
    {"lt", test_lt, 0},
    {"mapping", test_mapping, 0}, {"ne", test_ne, 0}, {"none", test_none, 0}, {"number", test_number, 0},
    {"odd", test_odd, 0},
    {"sameas", test_sameas, 0}, {"sequence", test_sequence, 0}, {"string", test_string, 0},
    {"test", test_test, 0},
    {"true", test_true, 0}, {"undefined", test_undefined, 0}, {"upper", test_upper, 0},
};
// clang-format on

const tn_jj_function *tn_jj_find_test(str name)
{
    return tn_jj_row(tests, TN_COUNT(tests), name, JJ_UNDEFINED);
}
