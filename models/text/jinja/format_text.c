// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Patterns filled in: "%s" % x, "{}".format(x), and dates.
#include "core/number.h"
#include "models/text/jinja/jinja_impl.h"

#include <stdio.h>

enum { NUMBER_SIZE = 400, WIDTH_MAX = 1000 };

// --- %s ----------------------------------------------------------------------------------------------------

typedef struct pattern {
    bool left, zero, plus, blank;
    int width, precision; // -1: none
    char kind;
} pattern;

static int read_int(const char **p, const char *end)
{
    int n = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p) n = TN_MIN(n * 10 + (**p - '0'), WIDTH_MAX);
    return n;
}

// Behind the %.
static bool read_pattern(const char **p, const char *end, pattern *out)
{
    *out = (pattern){.precision = -1};
    for (; *p < end && strchr("-0+ #", **p) && **p; ++*p) {
        out->left |= **p == '-';
        out->zero |= **p == '0';
        out->plus |= **p == '+';
        out->blank |= **p == ' ';
    }
    out->width = read_int(p, end);
    if (*p < end && **p == '.') {
        ++*p;
        out->precision = read_int(p, end);
    }
    if (*p >= end) return false;
    out->kind = *(*p)++;
    return true;
}

static void add_padded(tn_jj_builder *b, const pattern *f, str s)
{
    int64_t missing = f->width - (int64_t)tn_jj_length(b->j, s);
    bool number = strchr("dixXofFeEgG", f->kind) != NULL;
    size_t sign = number && f->zero && !f->left && s->n && (s->data[0] == '-' || s->data[0] == '+');
    if (sign) tn_jj_add_part(b, s, 0, 1);
    for (int64_t i = 0; i < missing && !f->left; i++) tn_jj_adds(b, number && f->zero ? "0" : " ");
    tn_jj_add_part(b, s, sign, s->n);
    for (int64_t i = 0; i < missing && f->left; i++) tn_jj_adds(b, " ");
}

static const tn_jj_string *number_text(tn_jj *j, const pattern *f, value v)
{
    char text[NUMBER_SIZE], form[16];
    double d = 0;
    if (!tn_jj_number(v, &d)) {
        tn_jj_error(j, "%%%c needs a number, not '%s'", f->kind, tn_jj_kind_name(v));
        return &tn_jj_empty;
    }
    int64_t i = v.kind == JJ_FLOAT ? (d > -9.2e18 && d < 9.2e18 ? (int64_t)d : 0)
                : v.kind == JJ_INT ? v.u.i
                                   : v.u.b;
    const char *sign = f->plus ? "+" : f->blank ? " " : "";
    if (strchr("di", f->kind)) {
        snprintf(form, sizeof form, "%%%slld", sign);
        snprintf(text, sizeof text, form, (long long)i);
    } else if (strchr("xXo", f->kind)) {
        snprintf(form, sizeof form, "%s%%ll%c", i < 0 ? "-" : "", f->kind);
        snprintf(text, sizeof text, form, (unsigned long long)(i < 0 ? 0 - (uint64_t)i : (uint64_t)i));
    } else {
        snprintf(form, sizeof form, "%%%s.*%c", sign, f->kind);
        snprintf(text, sizeof text, form, TN_MIN(f->precision < 0 ? 6 : f->precision, 60), d);
        tn_number_point(text);
    }
    value s = tn_jj_text(j, text, strlen(text), false);
    return s.kind == JJ_STRING ? s.u.s : &tn_jj_empty;
}

static void add_formatted(tn_jj_builder *b, const pattern *f, value v)
{
    tn_jj *j = b->j;
    tn_jj_builder text;
    if (strchr("dixXofFeEgG", f->kind)) {
        add_padded(b, f, number_text(j, f, v));
    } else if (f->kind == 's' || f->kind == 'r') {
        tn_jj_build(&text, j);
        if (f->kind == 's')
            tn_jj_print(&text, v);
        else
            tn_jj_repr(&text, v);
        value s = tn_jj_built(&text);
        if (s.kind == JJ_STRING && f->precision >= 0)
            s = tn_jj_part(j, s.u.s, 0, tn_jj_offset(j, s.u.s, (size_t)f->precision));
        if (s.kind == JJ_STRING) add_padded(b, f, s.u.s);
    } else {
        tn_jj_error(j, "a pattern with '%c' that has no meaning", f->kind >= 0x20 ? f->kind : '?');
    }
}

value tn_jj_format_percent(tn_jj *j, str format, const value *items, size_t n)
{
    tn_jj_builder b;
    size_t used = 0, from = 0, at;
    const tn_jj_string percent = {.data = "%", .n = 1};
    tn_jj_build(&b, j);
    while ((at = tn_jj_find(j, format, &percent, from)) != SIZE_MAX && tn_jj_step(j)) {
        const char *p = format->data + at + 1, *end = format->data + format->n;
        pattern f;
        tn_jj_add_part(&b, format, from, at);
        if (!read_pattern(&p, end, &f)) return tn_jj_error(j, "a pattern without its end");
        from = (size_t)(p - format->data);
        if (f.kind == '%') {
            tn_jj_adds(&b, "%");
            continue;
        }
        if (used == n) return tn_jj_error(j, "more patterns than values");
        add_formatted(&b, &f, items[used++]);
    }
    if (used < n) return tn_jj_error(j, "more values than patterns");
    tn_jj_add_part(&b, format, from, format->n);
    return tn_jj_built(&b);
}

// --- {} ----------------------------------------------------------------------------------------------------

// The value of a field: "", "0", "name", "name.member".
static value field_value(tn_jj *j, str field, const tn_jj_args *a, size_t *next)
{
    const char *dot = field->n ? memchr(field->data, '.', field->n) : NULL;
    size_t n = dot ? (size_t)(dot - field->data) : field->n, i = 0;
    value v = tn_jj_undefined();
    bool number = true;
    for (size_t k = 0; k < n; k++) {
        number = number && field->data[k] >= '0' && field->data[k] <= '9' && i < 100000;
        i = i * 10 + (size_t)(field->data[k] - '0');
    }
    if (n == 0) i = (*next)++;
    if (number && i >= a->n) return tn_jj_error(j, "format: there is no value %zu", i);
    if (number) v = a->pos[i];
    for (size_t k = 0; k < a->n_named && !number; k++) {
        str name = a->pos[a->n + 2 * k].u.s;
        if (name->n != n || memcmp(name->data, field->data, n) != 0) continue;
        v = a->pos[a->n + 2 * k + 1];
        number = true;
    }
    if (!number) return tn_jj_error(j, "format: there is no value '%.*s'", (int)TN_MIN(n, 60), field->data);
    return dot ? tn_jj_path(j, v, tn_jj_part(j, field, n + 1, field->n)) : v;
}

static void add_field(tn_jj_builder *b, str field, const tn_jj_args *a, size_t *next)
{
    const char *colon = field->n ? memchr(field->data, ':', field->n) : NULL;
    tn_jj_string name = *field;
    pattern f = {.precision = -1, .kind = 's'};
    if (colon) {
        const char *p = colon + 1, *end = field->data + field->n;
        name.n = (size_t)(colon - field->data);
        bool right = p < end && *p == '>';
        f.left = p < end && *p == '<';
        if (right || f.left) p++;
        if (p < end && *p == '0') f.zero = true;
        f.width = read_int(&p, end);
        if (p < end && *p == '.') {
            p++;
            f.precision = read_int(&p, end);
        }
        if (p < end) f.kind = *p++;
        if (p < end) tn_jj_error(b->j, "format: a pattern that is not supported");
        f.left = f.left || (f.kind == 's' && !right);
    }
    add_formatted(b, &f, field_value(b->j, &name, a, next));
}

value tn_jj_format_braces(tn_jj *j, str format, const tn_jj_args *a)
{
    tn_jj_builder b;
    size_t next = 0;
    tn_jj_build(&b, j);
    for (size_t i = 0; i < format->n && tn_jj_work(j, 1); i++) {
        char c = format->data[i];
        bool twice = i + 1 < format->n && format->data[i + 1] == c;
        if (c != '{' && c != '}') {
            tn_jj_add_part(&b, format, i, i + 1);
            continue;
        }
        if (twice) {
            tn_jj_add_part(&b, format, i, i + 1);
            i++;
            continue;
        }
        const char *close = c == '{' ? memchr(format->data + i, '}', format->n - i) : NULL;
        if (!close) return tn_jj_error(j, "format: a single '%c'", c);
        tn_jj_string field = {.data = format->data + i + 1, .n = (size_t)(close - format->data) - i - 1};
        add_field(&b, &field, a, &next);
        i += field.n + 1;
    }
    return tn_jj_built(&b);
}

// --- dates -------------------------------------------------------------------------------------------------

typedef struct date {
    int64_t year, month, day, week_day, year_day, hour, minute, second; // month 0..11, week_day 0: Sunday
} date;

// Days since 1970 to a date of the Gregorian calendar, in eras of 400 years that begin with March.
static date to_date(int64_t seconds)
{
    int64_t days = seconds / 86400, rest = seconds % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    date d = {.hour = rest / 3600, .minute = rest / 60 % 60, .second = rest % 60};
    d.week_day = ((days % 7) + 11) % 7;
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    d.day = of_year - (153 * month + 2) / 5 + 1;
    d.month = (month + 2) % 12;
    d.year = year + era * 400 + (d.month < 2);
    bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;
    d.year_day = d.month < 2 ? of_year - 306 : of_year + 59 + leap;
    return d;
}

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const week_days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

static void add_date_part(tn_jj_builder *b, const date *d, char c, bool padded)
{
    int64_t hour12 = d->hour % 12 ? d->hour % 12 : 12;
    char text[NUMBER_SIZE] = "";
    int width = padded ? 2 : 1;
    // clang-format off
    switch (c) {
    case 'a': snprintf(text, sizeof text, "%.3s", week_days[d->week_day]); break;
    case 'A': snprintf(text, sizeof text, "%s", week_days[d->week_day]); break;
    case 'b':
    case 'h': snprintf(text, sizeof text, "%.3s", months[d->month]); break;
    case 'B': snprintf(text, sizeof text, "%s", months[d->month]); break;
    case 'd': snprintf(text, sizeof text, "%0*d", width, (int)d->day); break;
    case 'e': snprintf(text, sizeof text, "%*d", width, (int)d->day); break;
    case 'H': snprintf(text, sizeof text, "%0*d", width, (int)d->hour); break;
    case 'I': snprintf(text, sizeof text, "%0*d", width, (int)hour12); break;
    case 'j': snprintf(text, sizeof text, "%0*d", padded ? 3 : 1, (int)d->year_day + 1); break;
    case 'm': snprintf(text, sizeof text, "%0*d", width, (int)d->month + 1); break;
    case 'M': snprintf(text, sizeof text, "%0*d", width, (int)d->minute); break;
    case 'p': snprintf(text, sizeof text, "%s", d->hour < 12 ? "AM" : "PM"); break;
    case 'S': snprintf(text, sizeof text, "%0*d", width, (int)d->second); break;
    case 'u': snprintf(text, sizeof text, "%d", (int)(d->week_day ? d->week_day : 7)); break;
    case 'w': snprintf(text, sizeof text, "%d", (int)d->week_day); break;
    case 'y': snprintf(text, sizeof text, "%0*d", width, (int)(d->year % 100)); break;
    case 'Y': snprintf(text, sizeof text, "%lld", (long long)d->year); break;
    case 'n': snprintf(text, sizeof text, "\n"); break;
    case 't': snprintf(text, sizeof text, "\t"); break;
    case '%': snprintf(text, sizeof text, "%%"); break;
    case 'z': case 'Z': break; // the time zone is not known
    default: tn_jj_error(b->j, "strftime_now: '%%%c' is not supported", c >= 0x20 ? c : '?');
    }
    // clang-format on
    tn_jj_adds(b, text);
}

// Directives that abbreviate others.
static const char *long_form(char c)
{
    return c == 'F'               ? "%Y-%m-%d"
           : c == 'T' || c == 'X' ? "%H:%M:%S"
           : c == 'R'             ? "%H:%M"
           : c == 'D' || c == 'x' ? "%m/%d/%y"
           : c == 'c'             ? "%a %b %e %H:%M:%S %Y"
                                  : NULL;
}

static void add_date(tn_jj_builder *b, const date *d, str format)
{
    for (size_t i = 0; i < format->n && tn_jj_work(b->j, 16); i++) {
        char c = format->data[i];
        if (c != '%' || i + 1 >= format->n) {
            tn_jj_add_part(b, format, i, i + 1);
            continue;
        }
        c = format->data[++i];
        bool padded = c != '-' || i + 1 >= format->n;
        if (!padded) c = format->data[++i];
        const char *others = long_form(c);
        if (others)
            add_date(b, d, &(tn_jj_string){.data = others, .n = strlen(others)});
        else
            add_date_part(b, d, c, padded);
    }
}

value tn_jj_strftime(tn_jj *j, str format)
{
    const int64_t most = 253402300799; // the year 9999
    date d = to_date(TN_MAX(-most, TN_MIN(j->clock, most)));
    tn_jj_builder b;
    tn_jj_build(&b, j);
    add_date(&b, &d, format);
    return tn_jj_built(&b);
}
