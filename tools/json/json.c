// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/json/json.h"

#include <math.h>
#include <string.h>

enum {
    DIGITS = 24, // of 64 bits, with a point
    SHORT = 256, // bytes that are written at once
};
static const double INTEGRAL = 1e9; // below it, "%.9g" has all digits of whole numbers

// It belongs to the process, as stdout does.
static bool began_stdout;

bool json_on_stdout(void)
{
    return began_stdout;
}

void json_init(json *j, FILE *f)
{
    if (f == stdout) began_stdout = true;
    memset(j, 0, sizeof *j);
    j->f = f;
}

// Length of the UTF-8 character at p, 0 if the bytes are none (RFC 3629: no overlong forms, no surrogates).
static size_t char_length(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80) return 1;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) return 0;
    if (p[0] == 0xed && p[1] > 0x9f) return 0;
    if (p[0] == 0xf0 && p[1] < 0x90) return 0;
    if (p[0] == 0xf4 && p[1] > 0x8f) return 0;
    return len;
}

bool json_is_text(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0, len; i < n; i += len)
        if ((len = char_length(p + i, n - i)) == 0) return false;
    return true;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_char(FILE *f, unsigned char c)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = c ? strchr(escaped, c) : NULL;
    if (at)
        fprintf(f, "\\%c", letters[at - escaped]);
    else
        fprintf(f, "\\u%04x", c);
}

// A short string without escapes, between two others: in one write, because each one locks the stream.
static bool put_short(FILE *f, const char *before, const char *text, size_t n, const char *after)
{
    char line[SHORT];
    size_t n_before = strlen(before), n_after = strlen(after);
    if (n_before + n + n_after > sizeof line) return false;
    for (size_t i = 0; i < n; i++)
        if (!is_plain((unsigned char)text[i])) return false;
    memcpy(line, before, n_before);
    memcpy(line + n_before, text, n);
    memcpy(line + n_before + n, after, n_after);
    fwrite(line, 1, n_before + n + n_after, f);
    return true;
}

static void put_string(FILE *f, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    if (put_short(f, "\"", text, n, "\"")) return;
    fputc('"', f);
    for (size_t i = 0; i < n;) {
        size_t len = 0;
        while (i + len < n && is_plain(p[i + len])) len++;
        if (len == 0 && (len = char_length(p + i, n - i)) == 1) {
            put_char(f, p[i]);
        } else if (len == 0) {
            fputs("\xef\xbf\xbd", f);
            len = 1;
        } else {
            fwrite(p + i, 1, len, f);
        }
        i += len;
    }
    fputc('"', f);
}

static void begin(json *j, const char *key)
{
    const char *gap = !j->filled[j->depth] ? "" : j->compact ? "," : ", ";
    size_t n = key ? strlen(key) : 0;
    j->filled[j->depth] = true;
    if (!key) {
        fputs(gap, j->f);
    } else if (!put_short(j->f, *gap ? j->compact ? ",\"" : ", \"" : "\"", key, n,
                          j->compact ? "\":" : "\": ")) {
        fputs(gap, j->f);
        put_string(j->f, key, n);
        fputs(j->compact ? ":" : ": ", j->f);
    }
}

static void open_level(json *j, const char *key, char c)
{
    begin(j, key);
    fputc(c, j->f);
    if (j->depth + 1 < JSON_DEPTH) j->depth++;
    j->filled[j->depth] = false;
}

static void close_level(json *j, char c)
{
    fputc(c, j->f);
    if (j->depth > 0) j->depth--;
    if (j->depth > 0) return;
    if (!j->compact) fputc('\n', j->f);
    j->filled[0] = false;
}

void json_object(json *j, const char *key)
{
    open_level(j, key, '{');
}

void json_array(json *j, const char *key)
{
    open_level(j, key, '[');
}

void json_end_object(json *j)
{
    close_level(j, '}');
}

void json_end_array(json *j)
{
    close_level(j, ']');
}

void json_bytes(json *j, const char *key, const char *text, size_t n)
{
    begin(j, key);
    put_string(j->f, text, n);
}

void json_text(json *j, const char *key, const char *text)
{
    if (text)
        json_bytes(j, key, text, strlen(text));
    else
        json_null(j, key);
}

// Digits without printf, which takes a third of the time to write a trace. `point`: so many behind a point.
static void put_digits(FILE *f, uint64_t value, int point)
{
    char text[DIGITS];
    size_t at = sizeof text;
    for (int n = 0; value > 0 || n <= point; n++, value /= 10) {
        if (n == point && point > 0) text[--at] = '.';
        text[--at] = (char)('0' + value % 10);
    }
    fwrite(text + at, 1, sizeof text - at, f);
}

void json_int(json *j, const char *key, int64_t value)
{
    begin(j, key);
    if (value < 0) fputc('-', j->f);
    put_digits(j->f, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 0);
}

void json_size(json *j, const char *key, uint64_t value)
{
    begin(j, key);
    put_digits(j->f, value, 0);
}

void json_thousandths(json *j, const char *key, uint64_t value)
{
    begin(j, key);
    put_digits(j->f, value, 3);
}

void json_number(json *j, const char *key, double value)
{
    begin(j, key);
    if (value >= 0 && value < INTEGRAL && value == floor(value) && !signbit(value))
        put_digits(j->f, (uint64_t)value, 0);
    else if (isfinite(value))
        fprintf(j->f, "%.9g", value);
    else
        fputs("null", j->f);
}

void json_bool(json *j, const char *key, bool value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->f);
}

void json_raw(json *j, const char *key, const char *value)
{
    begin(j, key);
    fputs(value, j->f);
}

void json_null(json *j, const char *key)
{
    begin(j, key);
    fputs("null", j->f);
}

void json_members(json *j, const char *object)
{
    size_t n = strlen(object);
    if (n <= 2) return;
    begin(j, NULL);
    fwrite(object + 1, 1, n - 2, j->f);
}

void json_one_line(char *text)
{
    char *to = text;
    bool quoted = false;
    for (const char *p = text; *p; p++) {
        if (quoted && *p == '\\' && p[1])
            *to++ = *p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && strchr(" \t\r\n", *p))
            continue;
        *to++ = *p;
    }
    *to = 0;
}
