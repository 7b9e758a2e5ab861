// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Values as text: as Python prints them, as it writes them in containers, and as JSON.
#include "core/number.h"
#include "models/text/jinja/jinja_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_SIZE = 64, ESCAPE_WORK = 32 }; // bytes; bytes of work that an escaped character counts for

// --- numbers -----------------------------------------------------------------------------------------------

// Significant digits of |f| and the power of ten of the first, the shortest that read back as f.
static int shortest_digits(double f, char digits[NUMBER_SIZE], int *exponent)
{
    char text[NUMBER_SIZE];
    for (int precision = 0; precision < 18; precision++) {
        double back = 0;
        snprintf(text, sizeof text, "%.*e", precision, fabs(f));
        tn_number_point(text);
        if (tn_number_read(text, strlen(text), &back) && back == fabs(f)) break;
    }
    int n = 0;
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    *exponent = (int)strtol(e + 1, NULL, 10);
    while (n > 1 && digits[n - 1] == '0') n--;
    return n;
}

size_t tn_jj_format_float(double f, char *out, size_t size)
{
    char digits[NUMBER_SIZE], text[NUMBER_SIZE * 2];
    int exponent, k = 0;
    if (isnan(f)) return (size_t)snprintf(out, size, "nan");
    if (isinf(f)) return (size_t)snprintf(out, size, f < 0 ? "-inf" : "inf");
    int n = shortest_digits(f, digits, &exponent);
    if (signbit(f)) text[k++] = '-';
    if (exponent < -4 || exponent >= 16) {
        text[k++] = digits[0];
        if (n > 1) text[k++] = '.';
        for (int i = 1; i < n; i++) text[k++] = digits[i];
        snprintf(text + k, sizeof text - (size_t)k, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return (size_t)snprintf(out, size, "%s", text);
    }
    for (int i = TN_MIN(exponent, 0); i <= TN_MAX(n - 1, exponent + 1); i++) {
        if (i == exponent + 1) text[k++] = '.';
        text[k++] = i >= 0 && i < n ? digits[i] : '0';
    }
    text[k] = 0;
    return (size_t)snprintf(out, size, "%s", text);
}

static void add_int(tn_jj_builder *b, int64_t i)
{
    char text[NUMBER_SIZE];
    snprintf(text, sizeof text, "%lld", (long long)i);
    tn_jj_adds(b, text);
}

static void add_float(tn_jj_builder *b, double f)
{
    char text[NUMBER_SIZE];
    tn_jj_format_float(f, text, sizeof text);
    tn_jj_adds(b, text);
}

// --- as Python ---------------------------------------------------------------------------------------------

static void repr_string(tn_jj_builder *b, str s)
{
    static const char plain[] = "\n\t\r\\'\"", letters[] = "ntr\\'\"";
    bool single = memchr(s->data, '\'', s->n) && !memchr(s->data, '"', s->n);
    char quote = single ? '"' : '\'', text[8];
    size_t from = 0;
    tn_jj_add(b, &quote, 1, false);
    for (size_t i = 0; i < s->n; i++) {
        uint8_t c = (uint8_t)s->data[i];
        if (c >= 0x20 && c != 0x7f && c != '\\' && c != quote) continue;
        tn_jj_add_part(b, s, from, i);
        from = i + 1;
        const char *at = c ? strchr(plain, c) : NULL;
        if (at)
            snprintf(text, sizeof text, "\\%c", letters[at - plain]);
        else
            snprintf(text, sizeof text, "\\x%02x", c);
        tn_jj_add(b, text, strlen(text), s->mask ? s->mask[i] != 0 : s->user);
    }
    tn_jj_add_part(b, s, from, s->n);
    tn_jj_add(b, &quote, 1, false);
}

static void repr_list(tn_jj_builder *b, value v)
{
    bool tuple = v.kind == JJ_TUPLE;
    const jj_list *l = v.u.list;
    tn_jj_adds(b, tuple ? "(" : "[");
    for (size_t i = 0; i < l->n && tn_jj_step(b->j); i++) {
        if (i) tn_jj_adds(b, ", ");
        tn_jj_repr(b, l->items[i]);
    }
    tn_jj_adds(b, tuple && l->n == 1 ? ",)" : tuple ? ")" : "]");
}

static void repr_dict(tn_jj_builder *b, const jj_dict *d)
{
    tn_jj_adds(b, "{");
    for (size_t i = 0; i < d->n && tn_jj_step(b->j); i++) {
        if (i) tn_jj_adds(b, ", ");
        tn_jj_repr(b, d->entries[i].key);
        tn_jj_adds(b, ": ");
        tn_jj_repr(b, d->entries[i].value);
    }
    tn_jj_adds(b, "}");
}

void tn_jj_repr(tn_jj_builder *b, value v)
{
    bool in = tn_jj_enter(b->j);
    if (in && v.kind == JJ_STRING)
        repr_string(b, v.u.s);
    else if (in && (v.kind == JJ_LIST || v.kind == JJ_TUPLE))
        repr_list(b, v);
    else if (in && v.kind == JJ_DICT)
        repr_dict(b, v.u.dict);
    else if (in && v.kind == JJ_UNDEFINED)
        tn_jj_adds(b, "Undefined");
    else if (in)
        tn_jj_print(b, v);
    tn_jj_leave(b->j);
}

void tn_jj_print(tn_jj_builder *b, value v)
{
    switch (v.kind) {
    case JJ_UNDEFINED:
        break;
    case JJ_NONE:
        tn_jj_adds(b, "None");
        break;
    case JJ_BOOL:
        tn_jj_adds(b, v.u.b ? "True" : "False");
        break;
    case JJ_INT:
        add_int(b, v.u.i);
        break;
    case JJ_FLOAT:
        add_float(b, v.u.f);
        break;
    case JJ_STRING:
        tn_jj_add_string(b, v.u.s);
        break;
    case JJ_LIST:
    case JJ_TUPLE:
    case JJ_DICT:
        tn_jj_repr(b, v);
        break;
    default: // no template depends on these texts
        tn_jj_adds(b, "<");
        tn_jj_adds(b, tn_jj_kind_name(v));
        tn_jj_adds(b, ">");
    }
}

str tn_jj_str(tn_jj *j, value v)
{
    tn_jj_builder b;
    if (v.kind == JJ_STRING) return v.u.s;
    if (v.kind == JJ_UNDEFINED) return &tn_jj_empty;
    tn_jj_build(&b, j);
    tn_jj_print(&b, v);
    v = tn_jj_built(&b);
    return v.kind == JJ_STRING ? v.u.s : &tn_jj_empty;
}

// --- JSON --------------------------------------------------------------------------------------------------

typedef struct json_style {
    str indent; // NULL: one line
    str comma, colon;
    bool ascii, sorted;
} json_style;

static void json_value(tn_jj_builder *b, value v, const json_style *style, int level);

// The escape of the character at data[i]; its length in bytes, 0: none needed.
static size_t json_escape(str s, size_t i, bool ascii, char out[16])
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    uint8_t c = (uint8_t)s->data[i];
    size_t size = 1;
    const char *at = c ? strchr(plain, c) : NULL;
    if (c < 0x80) {
        if (at)
            memcpy(out, (char[]){'\\', letters[at - plain], 0}, 3);
        else if (c < 0x20)
            snprintf(out, 16, "\\u%04x", c);
        else
            size = 0;
        return size;
    }
    if (!ascii) return 0;
    uint32_t cp = tn_utf8_decode(s->data + i, s->n - i, &size);
    if (cp >= 0x10000)
        snprintf(out, 16, "\\u%04x\\u%04x", 0xd800 + (((cp - 0x10000) >> 10) & 0x3ff), 0xdc00 + (cp & 0x3ff));
    else
        snprintf(out, 16, "\\u%04x", cp);
    return size;
}

static void json_string(tn_jj_builder *b, str s, bool ascii)
{
    char text[16];
    size_t from = 0, size;
    tn_jj_adds(b, "\"");
    for (size_t i = 0; i < s->n && b->j->status == TN_OK; i++) {
        if ((size = json_escape(s, i, ascii, text)) == 0) continue;
        if (!tn_jj_work(b->j, ESCAPE_WORK)) return;
        tn_jj_add_part(b, s, from, i);
        tn_jj_add(b, text, strlen(text), s->mask ? s->mask[i] != 0 : s->user);
        i += size - 1;
        from = i + 1;
    }
    tn_jj_add_part(b, s, from, s->n);
    tn_jj_adds(b, "\"");
}

static void new_line(tn_jj_builder *b, const json_style *style, int level)
{
    if (!style->indent) return;
    tn_jj_adds(b, "\n");
    for (int i = 0; i < level; i++) tn_jj_add_string(b, style->indent);
}

static void json_key(tn_jj_builder *b, value key, const json_style *style, int level)
{
    bool plain = key.kind == JJ_STRING;
    if (!plain) tn_jj_adds(b, "\"");
    if (key.kind == JJ_LIST || key.kind == JJ_TUPLE || key.kind == JJ_DICT)
        tn_jj_error(b->j, "tojson: a key of type '%s'", tn_jj_kind_name(key));
    json_value(b, key, style, level);
    if (!plain) tn_jj_adds(b, "\"");
}

static void json_dict(tn_jj_builder *b, const jj_dict *d, const json_style *style, int level)
{
    tn_jj_adds(b, "{");
    for (size_t i = 0; i < d->n && tn_jj_step(b->j); i++) {
        if (i) tn_jj_add_string(b, style->comma);
        new_line(b, style, level + 1);
        json_key(b, d->entries[i].key, style, level);
        tn_jj_add_string(b, style->colon);
        json_value(b, d->entries[i].value, style, level + 1);
    }
    if (d->n) new_line(b, style, level);
    tn_jj_adds(b, "}");
}

static void json_list(tn_jj_builder *b, const jj_list *l, const json_style *style, int level)
{
    tn_jj_adds(b, "[");
    for (size_t i = 0; i < l->n && tn_jj_step(b->j); i++) {
        if (i) tn_jj_add_string(b, style->comma);
        new_line(b, style, level + 1);
        json_value(b, l->items[i], style, level + 1);
    }
    if (l->n) new_line(b, style, level);
    tn_jj_adds(b, "]");
}

static int by_key(const void *a, const void *b)
{
    const value *x = &((const tn_jj_entry *)a)->key, *y = &((const tn_jj_entry *)b)->key;
    return x->kind == JJ_STRING && y->kind == JJ_STRING ? tn_jj_order(x->u.s, y->u.s)
                                                        : (int)x->kind - (int)y->kind;
}

static jj_dict sorted_dict(tn_jj *j, const jj_dict *d)
{
    jj_dict copy = {0};
    if (!tn_jj_steps(j, 4 * d->n)) return copy;
    copy.entries = tn_jj_grow(j, d->entries, d->n * sizeof *d->entries, d->n * sizeof *d->entries);
    copy.n = copy.entries ? d->n : 0;
    if (copy.n > 1) qsort(copy.entries, copy.n, sizeof *copy.entries, by_key);
    return copy;
}

static void json_container(tn_jj_builder *b, value v, const json_style *style, int level)
{
    bool in = tn_jj_enter(b->j);
    if (in && v.kind == JJ_DICT) {
        jj_dict d = style->sorted ? sorted_dict(b->j, v.u.dict) : *v.u.dict;
        json_dict(b, &d, style, level);
    } else if (in) {
        json_list(b, v.u.list, style, level);
    }
    tn_jj_leave(b->j);
}

static void json_value(tn_jj_builder *b, value v, const json_style *style, int level)
{
    switch (v.kind) {
    case JJ_NONE:
        tn_jj_adds(b, "null");
        break;
    case JJ_BOOL:
        tn_jj_adds(b, v.u.b ? "true" : "false");
        break;
    case JJ_INT:
        add_int(b, v.u.i);
        break;
    case JJ_FLOAT:
        if (isfinite(v.u.f))
            add_float(b, v.u.f);
        else
            tn_jj_adds(b, isnan(v.u.f) ? "NaN" : v.u.f < 0 ? "-Infinity" : "Infinity");
        break;
    case JJ_STRING:
        json_string(b, v.u.s, style->ascii);
        break;
    case JJ_LIST:
    case JJ_TUPLE:
    case JJ_DICT:
        json_container(b, v, style, level);
        break;
    case JJ_UNDEFINED:
        tn_jj_refuse(b->j, v);
        break;
    default:
        tn_jj_error(b->j, "tojson: a value of type '%s'", tn_jj_kind_name(v));
    }
}

void tn_jj_tojson(tn_jj_builder *b, value v, const tn_jj_args *a)
{
    static const tn_jj_string comma = {.data = ",", .n = 1}, comma_blank = {.data = ", ", .n = 2},
                              colon = {.data = ": ", .n = 2};
    value indent = tn_jj_arg(a, 1, "indent"), first = tn_jj_arg(a, 0, "ensure_ascii");
    value separators = tn_jj_arg(a, 2, "separators");
    json_style style = {.colon = &colon, .sorted = tn_jj_arg_flag(a, 3, "sort_keys", false)};
    int64_t n;
    // The first argument is ensure_ascii in the libraries that train models, and indent in the filter of
    // Jinja2.
    if (first.kind == JJ_INT || first.kind == JJ_STRING)
        indent = first;
    else
        style.ascii = tn_jj_truth(first);
    if (indent.kind == JJ_INT && indent.u.i >= 0) {
        n = TN_MIN(indent.u.i, 1000);
        tn_jj_builder blanks;
        tn_jj_build(&blanks, b->j);
        for (; n > 0; n--) tn_jj_adds(&blanks, " ");
        indent = tn_jj_built(&blanks);
    }
    if (indent.kind == JJ_STRING) style.indent = indent.u.s;
    style.comma = style.indent ? &comma : &comma_blank;
    if ((separators.kind == JJ_TUPLE || separators.kind == JJ_LIST) && separators.u.list->n == 2) {
        style.comma = tn_jj_str(b->j, separators.u.list->items[0]);
        style.colon = tn_jj_str(b->j, separators.u.list->items[1]);
    }
    json_value(b, v, &style, 0);
}
