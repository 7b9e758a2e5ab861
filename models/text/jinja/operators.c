// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic, comparisons and slices with the rules of Python. Whole numbers have 64 bits here: a result
// that does not fit is an error.
#include "models/text/jinja/jinja_impl.h"

#include <math.h>

static value no_operator(tn_jj *j, int op, value a, value b)
{
    static const char *const names[] = {"", "+", "-", "*", "/", "//", "%", "**", "~"};
    if (a.kind == JJ_UNDEFINED || b.kind == JJ_UNDEFINED) {
        tn_jj_refuse(j, a.kind == JJ_UNDEFINED ? a : b);
        return tn_jj_undefined();
    }
    return tn_jj_error(j, "'%s' does not go with '%s' and '%s'", names[op], tn_jj_kind_name(a),
                       tn_jj_kind_name(b));
}

static value too_large(tn_jj *j)
{
    return tn_jj_error(j, "a whole number of more than 63 bits");
}

// --- numbers -----------------------------------------------------------------------------------------------

static bool multiply(int64_t a, int64_t b, int64_t *out)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    bool negative = (a < 0) != (b < 0);
    if (x != 0 && y > UINT64_MAX / x) return false;
    uint64_t product = x * y;
    if (product > (uint64_t)INT64_MAX) return false;
    *out = negative ? -(int64_t)product : (int64_t)product;
    return true;
}

static bool power(int64_t base, int64_t n, int64_t *out)
{
    int64_t result = 1;
    for (; n > 0; n >>= 1) {
        if (n & 1 && !multiply(result, base, &result)) return false;
        if (n > 1 && !multiply(base, base, &base)) return false;
    }
    *out = result;
    return true;
}

// Rounds down, as Python does.
static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static value int_op(tn_jj *j, int op, int64_t a, int64_t b)
{
    int64_t out = 0;
    bool fits = true;
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
        return tn_jj_error(j, "division by zero");
    if ((op == OP_FLOORDIV || op == OP_MOD) && b == -1) {
        fits = op == OP_MOD || a != INT64_MIN;
        out = op == OP_MOD || !fits ? 0 : -a;
    } else if (op == OP_ADD) {
        fits = b >= 0 ? a <= INT64_MAX - b : a >= INT64_MIN - b;
        out = fits ? a + b : 0;
    } else if (op == OP_SUB) {
        fits = b >= 0 ? a >= INT64_MIN + b : a <= INT64_MAX + b;
        out = fits ? a - b : 0;
    } else if (op == OP_MUL) {
        fits = multiply(a, b, &out);
    } else if (op == OP_FLOORDIV) {
        out = floor_div(a, b);
    } else if (op == OP_MOD) {
        out = a - floor_div(a, b) * b;
    } else if (op == OP_POW && b >= 0) {
        fits = power(a, b, &out);
    } else {
        return tn_jj_float(op == OP_POW ? pow((double)a, (double)b) : (double)a / (double)b);
    }
    return fits ? tn_jj_int(out) : too_large(j);
}

static value float_op(tn_jj *j, int op, double a, double b)
{
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
        return tn_jj_error(j, "division by zero");
    switch (op) {
    case OP_ADD:
        return tn_jj_float(a + b);
    case OP_SUB:
        return tn_jj_float(a - b);
    case OP_MUL:
        return tn_jj_float(a * b);
    case OP_DIV:
        return tn_jj_float(a / b);
    case OP_FLOORDIV:
        return tn_jj_float(floor(a / b));
    case OP_MOD: {
        double r = fmod(a, b);
        return tn_jj_float(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    default:
        return tn_jj_float(pow(a, b));
    }
}

// --- sequences ---------------------------------------------------------------------------------------------

static value join_lists(tn_jj *j, value a, value b)
{
    size_t n = a.u.list->n, m = b.u.list->n;
    value out = tn_jj_sized(j, a.kind, n + m);
    if (out.kind == JJ_UNDEFINED) return out;
    if (n) memcpy(out.u.list->items, a.u.list->items, n * sizeof(value));
    if (m) memcpy(out.u.list->items + n, b.u.list->items, m * sizeof(value));
    return out;
}

static value repeat(tn_jj *j, value v, int64_t times)
{
    bool text = v.kind == JJ_STRING;
    size_t n = text ? v.u.s->n : v.u.list->n;
    if (times < 0 || n == 0) times = 0;
    if (n && (uint64_t)times > j->limits.heap_size / n)
        return tn_jj_error(j, "the template needs more than %zu MiB of memory", j->limits.heap_size >> 20);
    if (text && times < 2) return times ? v : (value){.kind = JJ_STRING, .u.s = &tn_jj_empty};
    if (text) {
        value half = repeat(j, v, times / 2);
        if (half.kind != JJ_STRING) return half;
        value both = tn_jj_concat(j, half.u.s, half.u.s);
        return times % 2 && both.kind == JJ_STRING ? tn_jj_concat(j, both.u.s, v.u.s) : both;
    }
    value out = tn_jj_sized(j, v.kind, n * (size_t)times);
    for (size_t i = 0; out.kind != JJ_UNDEFINED && i < out.u.list->n; i++)
        out.u.list->items[i] = v.u.list->items[i % n];
    return out;
}

static bool is_sequence(value v)
{
    return v.kind == JJ_STRING || v.kind == JJ_LIST || v.kind == JJ_TUPLE;
}

value tn_jj_binary(tn_jj *j, int op, value a, value b)
{
    int64_t x, y;
    double f, g;
    if (op == OP_CONCAT) return tn_jj_concat(j, tn_jj_str(j, a), tn_jj_str(j, b));
    if (op == OP_ADD && a.kind == JJ_STRING && b.kind == JJ_STRING) return tn_jj_concat(j, a.u.s, b.u.s);
    if (tn_jj_integer(a, &x) && tn_jj_integer(b, &y)) return int_op(j, op, x, y);
    if (tn_jj_number(a, &f) && tn_jj_number(b, &g)) return float_op(j, op, f, g);
    if (op == OP_ADD && a.kind == b.kind && (a.kind == JJ_LIST || a.kind == JJ_TUPLE))
        return join_lists(j, a, b);
    if (op == OP_MUL && is_sequence(a) && tn_jj_integer(b, &y)) return repeat(j, a, y);
    if (op == OP_MUL && is_sequence(b) && tn_jj_integer(a, &x)) return repeat(j, b, x);
    if (op == OP_MOD && a.kind == JJ_STRING)
        return b.kind == JJ_TUPLE ? tn_jj_format_percent(j, a.u.s, b.u.list->items, b.u.list->n)
                                  : tn_jj_format_percent(j, a.u.s, &b, 1);
    return no_operator(j, op, a, b);
}

bool tn_jj_compare_op(tn_jj *j, int op, value a, value b)
{
    switch (op) {
    case OP_EQ:
        return tn_jj_equal(j, a, b);
    case OP_NE:
        return !tn_jj_equal(j, a, b);
    case OP_LT:
        return tn_jj_compare(j, a, b) < 0;
    case OP_LE:
        return tn_jj_compare(j, a, b) <= 0;
    case OP_GT:
        return tn_jj_compare(j, a, b) > 0;
    case OP_GE:
        return tn_jj_compare(j, a, b) >= 0;
    default:
        return tn_jj_contains(j, b, a) == (op == OP_IN);
    }
}

// --- slices ------------------------------------------------------------------------------------------------

// An index of Python, clamped to [low, high].
static int64_t clip(int64_t i, int64_t n, int64_t low, int64_t high)
{
    if (i < 0) i = i < -n ? low : i + n;
    return i < low ? low : i > high ? high : i;
}

// The parts of a slice of n items: first item, step and how many.
static bool slice_bounds(tn_jj *j, const value part[3], int64_t n, int64_t *from, int64_t *step,
                         int64_t *count)
{
    int64_t index[3] = {0, n, 1};
    bool given[3];
    for (int i = 2; i >= 0; i--) {
        given[i] = part[i].kind != JJ_UNDEFINED && part[i].kind != JJ_NONE;
        if (given[i] && !tn_jj_integer(part[i], &index[i])) {
            tn_jj_error(j, "a slice needs whole numbers, not '%s'", tn_jj_kind_name(part[i]));
            return false;
        }
    }
    bool back = index[2] < 0;
    if (index[2] == 0) {
        tn_jj_error(j, "a slice of step 0");
        return false;
    }
    int64_t low = back ? -1 : 0, high = back ? n - 1 : n;
    int64_t start = given[0] ? clip(index[0], n, low, high) : (back ? high : low);
    int64_t stop = given[1] ? clip(index[1], n, low, high) : (back ? low : high);
    int64_t length = back ? start - stop : stop - start;
    *step = index[2] > n + 1 ? n + 1 : index[2] < -n - 1 ? -n - 1 : index[2];
    int64_t stride = *step < 0 ? -*step : *step;
    *count = length > 0 ? (length - 1) / stride + 1 : 0;
    *from = start;
    return true;
}

static value slice_text(tn_jj *j, str s, int64_t from, int64_t step, int64_t count)
{
    if (step == 1) {
        size_t start = tn_jj_offset(j, s, (size_t)from);
        tn_jj_string rest = {.data = s->data + start, .n = s->n - start};
        return tn_jj_part(j, s, start, start + tn_jj_offset(j, &rest, (size_t)count));
    }
    const value *items;
    size_t n;
    tn_jj_builder b;
    value all = {.kind = JJ_STRING, .u.s = s};
    if (!tn_jj_items(j, all, &items, &n)) return tn_jj_undefined();
    tn_jj_build(&b, j);
    for (int64_t i = 0; i < count && tn_jj_step(j); i++) tn_jj_add_string(&b, items[from + i * step].u.s);
    return tn_jj_built(&b);
}

value tn_jj_slice(tn_jj *j, value v, const value part[3])
{
    size_t n = 0;
    int64_t from, step, count;
    if (v.kind == JJ_UNDEFINED) tn_jj_refuse(j, v);
    if (!is_sequence(v) || !tn_jj_count(j, v, &n)) return tn_jj_undefined();
    if (!slice_bounds(j, part, (int64_t)n, &from, &step, &count)) return tn_jj_undefined();
    if (v.kind == JJ_STRING) return slice_text(j, v.u.s, from, step, count);
    value out = tn_jj_sized(j, v.kind, (size_t)count);
    for (int64_t i = 0; out.kind != JJ_UNDEFINED && i < count; i++)
        out.u.list->items[i] = v.u.list->items[from + i * step];
    return out;
}
