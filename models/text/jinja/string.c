// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Text of the template engine: immutable strings in which each byte knows whether a user wrote it, and the
// builder that makes them. Appending to the last string of a buffer extends the buffer, so that a text built
// piece by piece costs linear time and memory.
#include "models/text/jinja/jinja_impl.h"

enum { CAPACITY_MIN = 64, TAIL_MIN = 256 };

// --- builder -----------------------------------------------------------------------------------------------

void tn_jj_build(tn_jj_builder *b, tn_jj *j)
{
    *b = (tn_jj_builder){.j = j};
}

void tn_jj_drop(tn_jj_builder *b)
{
    tn_jj_release(b->j, b->data);
    tn_jj_release(b->j, b->mask);
    tn_jj_build(b, b->j);
}

static bool reserve(tn_jj_builder *b, size_t n)
{
    if (b->j->status != TN_OK) return false;
    if (n <= b->capacity - b->n) return true;
    size_t most = b->j->limits.heap_size;
    if (n > most - TN_MIN(b->n, most)) {
        tn_jj_error(b->j, "a text of more than %zu MiB", most >> 20);
        return false;
    }
    size_t capacity = TN_MAX(b->n + n, TN_MAX(b->capacity + b->capacity / 2, (size_t)CAPACITY_MIN));
    void *data = b->data, *mask = b->mask;
    bool ok = tn_jj_resize(b->j, &data, b->n, capacity);
    b->data = data;
    if (ok && b->mask) {
        ok = tn_jj_resize(b->j, &mask, b->n, capacity);
        b->mask = mask;
    }
    if (ok) b->capacity = capacity;
    return ok;
}

// Marks are kept byte by byte from the first byte on that differs from those before.
static bool need_mask(tn_jj_builder *b)
{
    void *mask = NULL;
    if (b->mask) return true;
    if (!tn_jj_resize(b->j, &mask, 0, b->capacity)) return false;
    b->mask = mask;
    memset(b->mask, b->user, b->n);
    return true;
}

void tn_jj_add(tn_jj_builder *b, const char *text, size_t n, bool user)
{
    if (n == 0 || !reserve(b, n) || !tn_jj_work(b->j, n)) return;
    if (b->n == 0 && !b->mask) b->user = user;
    if (user != b->user && !need_mask(b)) return;
    memcpy(b->data + b->n, text, n);
    if (b->mask) memset(b->mask + b->n, user, n);
    b->n += n;
}

void tn_jj_adds(tn_jj_builder *b, const char *text)
{
    tn_jj_add(b, text, strlen(text), false);
}

void tn_jj_add_part(tn_jj_builder *b, str s, size_t from, size_t to)
{
    if (!s->mask) {
        tn_jj_add(b, s->data + from, to - from, s->user);
        return;
    }
    for (size_t i = from; i < to && b->j->status == TN_OK;) {
        size_t end = i;
        while (end < to && !s->mask[end] == !s->mask[i]) end++;
        tn_jj_add(b, s->data + i, end - i, s->mask[i] != 0);
        i = end;
    }
}

void tn_jj_add_string(tn_jj_builder *b, str s)
{
    tn_jj_add_part(b, s, 0, s->n);
}

static value wrap(tn_jj *j, tn_jj_string s)
{
    tn_jj_string *own = tn_jj_alloc(j, sizeof *own);
    if (!own) return tn_jj_undefined();
    *own = s;
    return (value){.kind = JJ_STRING, .u.s = own};
}

value tn_jj_built(tn_jj_builder *b)
{
    tn_jj_string s = {.data = b->n ? b->data : "", .n = b->n, .mask = b->mask, .user = b->user};
    tn_jj *j = b->j;
    if (b->n && !b->mask && b->n < CAPACITY_MIN) { // most texts are short: they get no buffer of their own
        char *data = tn_jj_alloc(j, b->n);
        if (!data) return tn_jj_undefined();
        s.data = memcpy(data, b->data, b->n);
        tn_jj_drop(b);
        return wrap(j, s);
    }
    if (b->n >= TAIL_MIN && !b->mask && (s.tail = tn_jj_alloc(j, sizeof *s.tail)) != NULL)
        *s.tail = (tn_jj_tail){b->data + b->n, b->capacity - b->n};
    tn_jj_build(b, j);
    return wrap(j, s);
}

// --- strings -----------------------------------------------------------------------------------------------

value tn_jj_literal(tn_jj *j, const char *text)
{
    return wrap(j, (tn_jj_string){.data = text, .n = strlen(text)});
}

value tn_jj_text(tn_jj *j, const char *text, size_t n, bool user)
{
    char *copy = tn_jj_alloc(j, n);
    if (!copy) return tn_jj_undefined();
    if (n) memcpy(copy, text, n);
    return wrap(j, (tn_jj_string){.data = copy, .n = n, .user = user});
}

value tn_jj_part(tn_jj *j, str s, size_t from, size_t to)
{
    tn_jj_string part = *s;
    part.data += from;
    part.n = to - from;
    if (part.mask) part.mask += from;
    return wrap(j, part);
}

value tn_jj_concat(tn_jj *j, str a, str b)
{
    tn_jj_builder out;
    if (b->n == 0) return (value){.kind = JJ_STRING, .u.s = a};
    if (a->n == 0) return (value){.kind = JJ_STRING, .u.s = b};
    bool alike = !a->mask && !b->mask && a->user == b->user;
    if (alike && a->tail && a->tail->end == a->data + a->n && a->tail->capacity >= b->n) {
        if (!tn_jj_work(j, b->n)) return tn_jj_undefined();
        memcpy(a->tail->end, b->data, b->n);
        a->tail->end += b->n;
        a->tail->capacity -= b->n;
        tn_jj_string s = *a;
        s.n += b->n;
        return wrap(j, s);
    }
    tn_jj_build(&out, j);
    // Spare capacity: a template that appends to a long text usually does so again.
    if (a->n >= TAIL_MIN) reserve(&out, a->n + b->n + (a->n + b->n) / 2);
    tn_jj_add_string(&out, a);
    tn_jj_add_string(&out, b);
    return tn_jj_built(&out);
}

bool tn_jj_is(str s, const char *text)
{
    return s->n == strlen(text) && memcmp(s->data, text, s->n) == 0;
}

bool tn_jj_same(str a, str b)
{
    return a->n == b->n && (a->data == b->data || memcmp(a->data, b->data, a->n) == 0);
}

// By code points, which is the order of the bytes of UTF-8.
int tn_jj_order(str a, str b)
{
    size_t n = TN_MIN(a->n, b->n);
    int order = n ? memcmp(a->data, b->data, n) : 0;
    return order ? (order > 0) - (order < 0) : (a->n > b->n) - (a->n < b->n);
}

// --- searching ---------------------------------------------------------------------------------------------

size_t tn_jj_find(tn_jj *j, str s, str what, size_t from)
{
    if (from > s->n || what->n > s->n - from) return SIZE_MAX;
    if (what->n == 0) return from;
    const char *p = s->data + from, *last = s->data + s->n - what->n;
    while (p <= last) {
        const char *start = p;
        p = memchr(p, what->data[0], (size_t)(last - p) + 1);
        if (!tn_jj_work(j, (size_t)((p ? p : last) - start) + what->n) || !p) return SIZE_MAX;
        if (memcmp(p, what->data, what->n) == 0) return (size_t)(p - s->data);
        p++;
    }
    return SIZE_MAX;
}

size_t tn_jj_find_last(tn_jj *j, str s, str what)
{
    if (what->n > s->n) return SIZE_MAX;
    for (size_t i = s->n - what->n + 1; i-- > 0;) {
        if (!tn_jj_work(j, 1 + (what->n && s->data[i] == what->data[0] ? what->n : 0))) return SIZE_MAX;
        if (what->n == 0 || memcmp(s->data + i, what->data, what->n) == 0) return i;
    }
    return SIZE_MAX;
}

size_t tn_jj_length(tn_jj *j, str s)
{
    size_t n = 0, size;
    if (!tn_jj_work(j, s->n)) return 0;
    for (size_t i = 0; i < s->n; i += size, n++) tn_utf8_decode(s->data + i, s->n - i, &size);
    return n;
}

size_t tn_jj_offset(tn_jj *j, str s, size_t i)
{
    size_t at = 0, size;
    if (!tn_jj_work(j, TN_MIN(i, s->n))) return s->n;
    for (; i > 0 && at < s->n; i--, at += size) tn_utf8_decode(s->data + at, s->n - at, &size);
    return at;
}

// Python also strips the four separators of ASCII.
static bool in_set(uint32_t cp, const tn_jj_string *set)
{
    if (!set) return tn_unicode_is_space(cp) || (cp >= 0x1c && cp <= 0x1f);
    for (size_t i = 0, size; i < set->n; i += size)
        if (tn_utf8_decode(set->data + i, set->n - i, &size) == cp) return true;
    return false;
}

value tn_jj_strip(tn_jj *j, str s, const tn_jj_string *set, int sides)
{
    size_t from = 0, to = s->n, size, per_char = set ? set->n : 1;
    while (sides & 1 && from < to && tn_jj_work(j, per_char) &&
           in_set(tn_utf8_decode(s->data + from, to - from, &size), set))
        from += size;
    while (sides & 2 && from < to && tn_jj_work(j, per_char)) {
        size_t start = to - 1;
        while (start > from && to - start < 4 && ((uint8_t)s->data[start] & 0xc0) == 0x80) start--;
        uint32_t cp = tn_utf8_decode(s->data + start, to - start, &size);
        if (start + size != to) { // a stray byte
            start = to - 1;
            cp = TN_UNICODE_REPLACEMENT;
        }
        if (!in_set(cp, set)) break;
        to = start;
    }
    return tn_jj_part(j, s, from, to);
}

// Between all characters, as Python does for an empty text.
static value spread(tn_jj *j, str s, str with, int64_t count)
{
    tn_jj_builder b;
    tn_jj_build(&b, j);
    for (size_t i = 0, size; j->status == TN_OK && tn_jj_step(j); i += size) {
        if (count != 0) tn_jj_add_string(&b, with);
        if (count > 0) count--;
        if (i >= s->n) break;
        tn_utf8_decode(s->data + i, s->n - i, &size);
        tn_jj_add_part(&b, s, i, i + size);
    }
    return tn_jj_built(&b);
}

value tn_jj_replace(tn_jj *j, str s, str old, str with, int64_t count)
{
    if (old->n == 0) return spread(j, s, with, count);
    tn_jj_builder b;
    tn_jj_build(&b, j);
    size_t from = 0, at;
    while (count != 0 && (at = tn_jj_find(j, s, old, from)) != SIZE_MAX && tn_jj_step(j)) {
        tn_jj_add_part(&b, s, from, at);
        tn_jj_add_string(&b, with);
        from = at + old->n;
        if (count > 0) count--;
    }
    if (from == 0) {
        tn_jj_drop(&b);
        return (value){.kind = JJ_STRING, .u.s = s};
    }
    tn_jj_add_part(&b, s, from, s->n);
    return tn_jj_built(&b);
}
