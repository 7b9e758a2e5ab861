// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/json/json_read.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static void skip_blanks(json_in *in)
{
    while (in->p < in->end && (*in->p == ' ' || *in->p == '\t' || *in->p == '\n' || *in->p == '\r')) in->p++;
}

bool json_is(json_in *in, char c)
{
    skip_blanks(in);
    return !in->failed && in->p < in->end && *in->p == c;
}

static bool take(json_in *in, char c)
{
    bool is = json_is(in, c);
    in->p += is;
    return is;
}

static bool expect(json_in *in, char c)
{
    if (take(in, c)) return true;
    in->failed = true;
    return false;
}

bool json_open(json_in *in, char c)
{
    in->first = true;
    return expect(in, c);
}

// Whether another member follows; otherwise the end is consumed.
static bool more(json_in *in, char close)
{
    if (take(in, close)) {
        in->first = false;
        return false;
    }
    bool ok = in->first || expect(in, ',');
    in->first = false;
    return ok && !in->failed;
}

bool json_key(json_in *in, char **key)
{
    if (!more(in, '}')) return false;
    *key = json_string(in);
    if (*key && expect(in, ':')) return true;
    free(*key);
    *key = NULL;
    return false;
}

bool json_item(json_in *in)
{
    return more(in, ']');
}

static bool read_hex(json_in *in, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        char c = in->p < in->end ? *in->p++ : 0, l = (char)(c | 32);
        if (c >= '0' && c <= '9')
            *out = *out << 4 | (uint32_t)(c - '0');
        else if (l >= 'a' && l <= 'f')
            *out = *out << 4 | (uint32_t)(l - 'a' + 10);
        else
            return false;
    }
    return true;
}

static size_t put_utf8(uint32_t c, char *out)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 63));
    out[0] = (char)(lead[n] | c);
    return n;
}

// Behind the backslash. A zero byte, which no C text can hold, and half a pair become U+FFFD.
static size_t read_escape(json_in *in, char *out)
{
    static const char letters[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    char c = in->p < in->end ? *in->p++ : 0;
    const char *at = c ? strchr(letters, c) : NULL;
    uint32_t cp, low;
    if (at) {
        *out = plain[at - letters];
        return 1;
    }
    if (c != 'u' || !read_hex(in, &cp)) {
        in->failed = true;
        return 0;
    }
    if (cp >= 0xd800 && cp < 0xdc00 && in->end - in->p >= 6 && in->p[0] == '\\' && in->p[1] == 'u') {
        const char *before = in->p;
        in->p += 2;
        if (read_hex(in, &low) && low >= 0xdc00 && low < 0xe000)
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        else
            in->p = before;
    }
    return put_utf8(cp == 0 || (cp >= 0xd800 && cp < 0xe000) ? 0xfffd : cp, out);
}

bool json_decode(json_in *in, char *out, size_t *n)
{
    *n = 0;
    if (!expect(in, '"')) return false;
    while (!in->failed && in->p < in->end && *in->p != '"') {
        if (*in->p == '\\') {
            in->p++;
            *n += read_escape(in, out + *n);
        } else if ((out[(*n)++] = *in->p++) == 0) {
            in->failed = true;
        }
    }
    out[*n] = 0;
    return !in->failed && expect(in, '"');
}

// Bytes of a string from its opening quote to its closing one, or to the end of the input.
static size_t string_size(const json_in *in)
{
    const char *p = in->p + 1;
    while (p < in->end && *p != '"') p += *p == '\\' ? 2 : 1;
    return (size_t)((p < in->end ? p + 1 : in->end) - in->p);
}

char *json_string(json_in *in)
{
    enum { ESCAPE_CUT = 4 }; // an escape that the end of the input cuts may still give a character
    if (!json_is(in, '"')) {
        in->failed = true;
        return NULL;
    }
    size_t n;
    char *out = malloc(string_size(in) + ESCAPE_CUT);
    if (out && json_decode(in, out, &n)) return out;
    in->failed = true;
    free(out);
    return NULL;
}

void json_skip(json_in *in)
{
    char *key;
    if (++in->depth > DEPTH_MAX) in->failed = true;
    if (json_is(in, '"')) {
        free(json_string(in));
    } else if (json_is(in, '{')) {
        for (json_open(in, '{'); json_key(in, &key); json_skip(in)) free(key);
    } else if (json_is(in, '[')) {
        for (json_open(in, '['); json_item(in);) json_skip(in);
    } else {
        const char *from = in->p;
        while (in->p < in->end && *in->p && strchr("+-.0123456789Eaeflnrstu", *in->p)) in->p++;
        if (in->p == from) in->failed = true;
    }
    in->first = false;
    in->depth--;
}

char *json_copy(json_in *in)
{
    skip_blanks(in);
    const char *from = in->p;
    json_skip(in);
    size_t n = (size_t)(in->p - from);
    char *out = in->failed ? NULL : malloc(n + 1);
    if (!out) return NULL;
    memcpy(out, from, n);
    out[n] = 0;
    return out;
}
