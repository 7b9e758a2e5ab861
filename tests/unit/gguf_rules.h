// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One malformed file for each rule of the format on each field that it is about, made from one valid file
// whose fields are known by place: a field is overwritten, or the file ends in it. For test_gguf.c.
#ifndef TN_TESTS_UNIT_GGUF_RULES_H
#define TN_TESTS_UNIT_GGUF_RULES_H

#include "tests/unit/gguf_bytes.h"
#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdio.h>

// What a field holds. Lengths are those of strings.
typedef enum rules_kind {
    RULES_MAGIC,
    RULES_VERSION,
    RULES_N_TENSORS,
    RULES_N_KEYS,
    RULES_KEY_LENGTH,
    RULES_KEY,
    RULES_TYPE,   // of a value
    RULES_ELEM,   // type of an array's elements
    RULES_COUNT,  // of them
    RULES_LENGTH, // of a value
    RULES_VALUE,
    RULES_ALIGNMENT,
    RULES_NAME_LENGTH,
    RULES_NAME,
    RULES_N_DIMS,
    RULES_DIM,
    RULES_ROW, // the dimension that blocks lie along
    RULES_DTYPE,
    RULES_OFFSET,
    RULES_KINDS
} rules_kind;

typedef struct rules_field {
    rules_kind kind;
    const char *owner; // key or tensor
    size_t at, size;
    size_t unit;  // of counts: least bytes of an element. Of offsets: bytes of the tensor
    size_t named; // where the record, or the string that the field is of, begins
} rules_field;

enum { RULES_MAX = 256, RULES_TENSORS = 4, RULES_ALIGN = 64, RULES_SPACE = 2048 };

typedef struct rules_file {
    bytes b;
    rules_field fields[RULES_MAX];
    int n;
    const char *owner;
    size_t named, data, end; // where the data begins, and the last tensor ends
} rules_file;

static inline void rules_num(rules_file *f, rules_kind kind, uint64_t v, size_t size, size_t unit)
{
    if (f->n == RULES_MAX) abort();
    f->fields[f->n++] = (rules_field){kind, f->owner, f->b.size, size, unit, f->named};
    bytes_num(&f->b, v, size);
}

static inline void rules_str(rules_file *f, rules_kind length, rules_kind text, const char *s)
{
    f->named = f->b.size;
    rules_num(f, length, strlen(s), 8, 1);
    f->fields[f->n++] = (rules_field){text, f->owner, f->b.size, strlen(s), 1, f->named};
    bytes_put(&f->b, s, strlen(s));
}

static inline void rules_key(rules_file *f, const char *key, uint32_t type)
{
    f->owner = key;
    rules_str(f, RULES_KEY_LENGTH, RULES_KEY, key);
    rules_num(f, RULES_TYPE, type, 4, 0);
}

// A value of a type, as key or as element: an array has two elements.
static inline void rules_value(rules_file *f, uint32_t type, int depth)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == TN_GGUF_STRING) {
        rules_str(f, RULES_LENGTH, RULES_VALUE, "text");
    } else if (type == TN_GGUF_ARRAY) {
        rules_num(f, RULES_ELEM, depth > 0 ? TN_GGUF_ARRAY : TN_GGUF_U16, 4, 0);
        rules_num(f, RULES_COUNT, 2, 8, depth > 0 ? 12 : 2);
        for (int i = 0; i < 2; i++) rules_value(f, depth > 0 ? TN_GGUF_ARRAY : TN_GGUF_U16, depth - 1);
    } else {
        rules_num(f, RULES_VALUE, 1, sizes[type], 0);
    }
}

static inline void rules_tensor(rules_file *f, int i)
{
    static const struct {
        const char *name;
        uint32_t n_dims, dtype;
        uint64_t dims[4], offset, size;
    } rows[RULES_TENSORS] = {{"t.0", 1, 0, {5}, 0, 20},                 // F32
                             {"t.1", 2, 8, {64, 3}, 320, 204},          // Q8_0
                             {"t.2", 3, 1, {3, 2, 4}, 64, 48},          // F16
                             {"t.3", 4, 12, {256, 1, 1, 1}, 128, 144}}; // Q4_K
    f->owner = rows[i].name;
    rules_str(f, RULES_NAME_LENGTH, RULES_NAME, rows[i].name);
    rules_num(f, RULES_N_DIMS, rows[i].n_dims, 4, 0);
    for (uint32_t d = 0; d < rows[i].n_dims; d++)
        rules_num(f, d == 0 ? RULES_ROW : RULES_DIM, rows[i].dims[d], 8, 0);
    rules_num(f, RULES_DTYPE, rows[i].dtype, 4, 0);
    rules_num(f, RULES_OFFSET, rows[i].offset, 8, rows[i].size);
}

// Every type of value, arrays of every type, and arrays of arrays; keys are of one length, as names are.
static inline void rules_make(rules_file *f)
{
    static const char *const keys[] = {"k.00", "k.01", "k.02", "k.03", "k.04", "k.05", "k.06", "k.07", "k.08",
                                       "k.09", "k.10", "k.11", "k.12", "a.00", "a.01", "a.02", "a.03", "a.04",
                                       "a.05", "a.06", "a.07", "a.08", "a.09", "a.10", "a.11", "a.12"};
    static const uint8_t least[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
    f->n = 0;
    f->b.size = f->named = 0;
    f->owner = NULL;
    rules_num(f, RULES_MAGIC, 0x46554747, 4, 0);
    rules_num(f, RULES_VERSION, 3, 4, 0);
    rules_num(f, RULES_N_TENSORS, RULES_TENSORS, 8, 24);
    rules_num(f, RULES_N_KEYS, 2 * TN_GGUF_TYPE_COUNT + 1, 8, 13);
    rules_key(f, "general.alignment", TN_GGUF_U32);
    rules_num(f, RULES_ALIGNMENT, RULES_ALIGN, 4, 0);
    for (uint32_t type = 0; type < TN_GGUF_TYPE_COUNT; type++) {
        rules_key(f, keys[type], type);
        rules_value(f, type, 2);
    }
    for (uint32_t type = 0; type < TN_GGUF_TYPE_COUNT; type++) {
        rules_key(f, keys[TN_GGUF_TYPE_COUNT + type], TN_GGUF_ARRAY);
        rules_num(f, RULES_ELEM, type, 4, 0);
        rules_num(f, RULES_COUNT, 2, 8, least[type]);
        for (int i = 0; i < 2; i++) rules_value(f, type, 0);
    }
    for (int i = 0; i < RULES_TENSORS; i++) rules_tensor(f, i);
    bytes_pad(&f->b, RULES_ALIGN);
    f->data = f->b.size;
    f->end = f->data + 320 + 204;
    for (size_t i = 0; i < RULES_SPACE; i++) bytes_num(&f->b, 0, 1);
}

// What the message of a refusal has to name: the key, the tensor, or the byte at which its record begins.
static inline void rules_names(const rules_field *f, char *buf, size_t size)
{
    switch (f->kind) {
    case RULES_MAGIC:
        snprintf(buf, size, "not a GGUF file");
        break;
    case RULES_VERSION:
        snprintf(buf, size, "GGUF");
        break;
    case RULES_N_TENSORS:
    case RULES_N_KEYS:
        snprintf(buf, size, "%s, but only", f->kind == RULES_N_KEYS ? "keys" : "tensors");
        break;
    case RULES_KEY_LENGTH:
    case RULES_KEY:
    case RULES_NAME_LENGTH:
    case RULES_NAME:
        snprintf(buf, size, "at byte %zu", f->named);
        break;
    default:
        snprintf(buf, size, "%s \"%s\"", f->kind > RULES_NAME ? "tensor" : "key", f->owner);
    }
}

// Values that a field must not have, and some next to them that it may; `rule` as in the list of validity
// rules of the format. PAST: one more than the rest of the file can hold, counted as the field counts.
#define RULES_PAST UINT64_C(0x8000000000000123)
typedef struct rules_row {
    int rule;
    rules_kind kind;
    int n_bad, n_good;
    uint64_t bad[13], good[6];
} rules_row;

// clang-format off
#define B(n) (UINT64_C(1) << (n))
static const rules_row rules_rows[] = {
    {1, RULES_MAGIC, 4, 0, {0, 0x47475546, 0x46554767, UINT32_MAX}, {0}},
    {1, RULES_VERSION, 8, 2, {0, 1, 4, 5, 0x10003, 0x03000000, 0x02000000, UINT32_MAX}, {2, 3}},
    {2, RULES_N_TENSORS, 5, 0, {RULES_PAST, INT32_MAX, B(32), B(63), UINT64_MAX}, {0}},
    {2, RULES_N_KEYS, 5, 0, {RULES_PAST, INT32_MAX, B(32), B(63), UINT64_MAX}, {0}},
    {3, RULES_KEY_LENGTH, 5, 0, {RULES_PAST, B(30) + 1, B(32), B(63), UINT64_MAX}, {0}},
    {3, RULES_LENGTH, 5, 0, {RULES_PAST, B(30) + 1, B(32), B(63), UINT64_MAX}, {0}},
    {3, RULES_NAME_LENGTH, 5, 0, {RULES_PAST, B(30) + 1, B(32), B(63), UINT64_MAX}, {0}},
    {4, RULES_TYPE, 5, 0, {13, 14, 255, B(31), UINT32_MAX}, {0}},
    {4, RULES_ELEM, 5, 0, {13, 14, 255, B(31), UINT32_MAX}, {0}},
    {4, RULES_COUNT, 6, 0, {RULES_PAST, B(30) + 1, B(60), B(62), B(63), UINT64_MAX}, {0}},
    {5, RULES_KEY_LENGTH, 1, 0, {0}, {0}},
    {6, RULES_VALUE, 0, 3, {0}, {0, 2, 255}}, // booleans are normalised; other values may be any
    {7, RULES_ALIGNMENT, 11, 4, {0, 1, 2, 3, 4, 12, 24, 65, B(21), B(31), UINT32_MAX}, {8, 16, 32, 64}},
    {8, RULES_NAME_LENGTH, 2, 0, {0, 64}, {0}},
    {9, RULES_N_DIMS, 4, 0, {5, 64, B(31), UINT32_MAX}, {0}},
    {10, RULES_DIM, 3, 1, {0, B(63), UINT64_MAX}, {1}},
    {10, RULES_ROW, 3, 0, {0, B(63), UINT64_MAX}, {0}},
    {11, RULES_DIM, 3, 0, {INT64_MAX, B(62), B(61)}, {0}},
    {11, RULES_ROW, 2, 0, {INT64_MAX, B(63) - 256}, {0}},
    {12, RULES_DTYPE, 13, 0, {4, 5, 31, 32, 33, 36, 37, 38, 43, 44, 255, B(31), UINT32_MAX}, {0}},
    {14, RULES_OFFSET, 7, 2, {1, 8, 32, 65, B(32), B(63), UINT64_MAX - 63}, {1024, 1088}},
    {14, RULES_DIM, 1, 0, {1 << 20}, {0}},
    {14, RULES_ROW, 1, 0, {1 << 20}, {0}},
};
#undef B
// clang-format on

// --- checks ----------------------------------------------------------------------------------------

typedef tn_status (*rules_open)(const uint8_t *data, size_t size);
typedef struct rules_run {
    tn_context *ctx;
    rules_open open;
    rules_file file; // valid
    bytes b;         // the same, changed
    int refused, accepted;
} rules_run;

// As a slow device gives them: pieces of any size, of which the last has one byte.
static int64_t rules_read(void *user, uint64_t at, void *to, size_t n)
{
    size_t piece = n > 1 ? TN_MIN(n - 1, (size_t)(1 + at * 977 % 100000)) : n;
    memcpy(to, ((const bytes *)user)->data + at, piece);
    return (int64_t)piece;
}

static tn_status rules_open_by_reading(tn_context *ctx, bytes *b, tn_gguf **out)
{
    const tn_gguf_source source = {
        .name = "test", .size = b->size, .descriptor = -1, .read = rules_read, .user = b};
    return tn_gguf_open_source(ctx, &source, out);
}

// The verdict and the message are the same when the bytes come from a function, as they do from a file.
static bool rules_same_when_read(rules_run *r, tn_status want, const char *message)
{
    char text[1024] = "";
    tn_gguf *g = NULL;
    tn_status status = rules_open_by_reading(r->ctx, &r->b, &g);
    if (status != TN_OK) tn_context_error(r->ctx, text, sizeof text);
    tn_gguf_close(&g);
    return status == want && strcmp(text, message) == 0;
}

// Part of the message of the refusal, which is one line that begins with the name of the file; NULL: the file
// is accepted.
static void rules_expect(rules_run *r, int rule, const rules_field *f, uint64_t value, const char *part)
{
    char text[1024] = "";
    tn_status status = r->open(r->b.data, r->b.size);
    if (status != TN_OK) tn_context_error(r->ctx, text, sizeof text);
    bool ok = !part ? status == TN_OK
                    : status == TN_ERR_FORMAT && strncmp(text, "test: ", 6) == 0 && !strchr(text, '\n') &&
                          strstr(text, part);
    bool same = r->b.size == 0 || rules_same_when_read(r, status, text); // nothing is "empty" there
    if (!TEST_CHECK(ok && same))
        printf("    rule %d, field %d of %s at byte %zu, value %" PRIu64 ": \"%s\" has not \"%s\"\n", rule,
               (int)f->kind, f->owner ? f->owner : "the header", f->at, value, text, part ? part : "opened");
    r->refused += part != NULL;
    r->accepted += part == NULL;
}

static void rules_set(rules_run *r, const rules_field *f, uint64_t value)
{
    for (size_t i = 0; i < f->size && i < 8; i++) r->b.data[f->at + i] = (uint8_t)(value >> 8 * i);
}

// The first n bytes of the valid file again.
static void rules_again(rules_run *r, size_t n)
{
    r->b.size = 0;
    bytes_put(&r->b, r->file.b.data, n);
}

static void rules_value_row(rules_run *r, const rules_row *row, const rules_field *f)
{
    char part[96];
    rules_names(f, part, sizeof part);
    for (int k = 0; k < row->n_bad + row->n_good; k++) {
        uint64_t v = k < row->n_bad ? row->bad[k] : row->good[k - row->n_bad];
        if (v == RULES_PAST) v = (r->file.b.size - f->at - f->size) / f->unit + 1;
        rules_again(r, r->file.b.size);
        rules_set(r, f, v);
        rules_expect(r, row->rule, f, v, k < row->n_bad ? part : NULL);
    }
}

// Rule 1 everywhere: the file ends before a field, and one byte before the end of one. Rules 14 and 16: it
// ends in the data, and before it.
static void rules_of_ends(rules_run *r)
{
    static const rules_field data = {.kind = RULES_KINDS};
    const size_t ends[] = {r->file.data - 1, r->file.data, r->file.end - 1, r->file.end};
    for (int i = 0; i < r->file.n; i++) {
        const rules_field *f = &r->file.fields[i];
        for (int last = 0; last < 2; last++) {
            rules_again(r, last ? f->at + f->size - 1 : f->at);
            rules_expect(r, 1, f, r->b.size, r->b.size < 4 ? "not a GGUF file" : "byte");
        }
    }
    for (size_t i = 0; i < TN_COUNT(ends); i++) {
        rules_again(r, ends[i]);
        rules_expect(r, i == 0 ? 16 : 14, &data, ends[i], ends[i] < r->file.end ? "bytes" : NULL);
    }
}

// Rules 5 and 8: a zero byte at each place of a key or name, and every two of them the same.
static void rules_of_names(rules_run *r, const rules_field *f)
{
    int rule = f->kind == RULES_KEY ? 5 : 8;
    char part[96];
    rules_names(f, part, sizeof part);
    for (size_t k = 0; k < f->size; k++) {
        rules_again(r, r->file.b.size);
        r->b.data[f->at + k] = 0;
        rules_expect(r, rule, f, k, part);
        r->b.data[f->at + k] = 0xff; // no ASCII, which does no harm; the alignment is then not given
        if (f->size == 4 || rule == 8) rules_expect(r, rule, f, k, NULL);
    }
    for (const rules_field *other = r->file.fields; other < f; other++) {
        if (other->kind != f->kind || other->size != f->size) continue;
        rules_again(r, r->file.b.size);
        memcpy(r->b.data + f->at, other->owner, f->size);
        snprintf(part, sizeof part, "\"%s\"", other->owner);
        rules_expect(r, rule, f, (uint64_t)(other - r->file.fields), part);
    }
}

// Rule 13: rows of whole blocks, of every type. The fields before a type are the dimensions.
static void rules_of_blocks(rules_run *r, const rules_field *f)
{
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        uint64_t block = (uint64_t)tn_dtype_block_elems(type);
        if (tn_dtype_file_id(type) < 0) continue;
        for (uint64_t n = block - 1; n < block + 2; n++) {
            rules_again(r, r->file.b.size);
            rules_set(r, f, (uint64_t)tn_dtype_file_id(type));
            rules_set(r, f + 1, 1024); // the offset, behind all others
            for (const rules_field *d = f - 1; d->kind == RULES_DIM || d->kind == RULES_ROW; d--)
                rules_set(r, d, d->kind == RULES_ROW ? n : 1);
            rules_expect(r, n > 0 ? 13 : 10, f, n, n == 0 || n % block ? f->owner : NULL);
        }
    }
}

// Rule 15: the tensor lies at the beginning, and at the last aligned byte, of each other one.
static void rules_of_places(rules_run *r, const rules_field *f)
{
    for (int i = 0; i < r->file.n; i++) {
        const rules_field *other = &r->file.fields[i];
        if (other == f || other->kind != RULES_OFFSET) continue;
        uint64_t at = 0;
        memcpy(&at, r->file.b.data + other->at, 8);
        for (int last = 0; last < 2; last++) {
            rules_again(r, r->file.b.size);
            rules_set(r, f, last ? at + (other->unit - 1) / RULES_ALIGN * RULES_ALIGN : at);
            rules_expect(r, 15, f, (uint64_t)i, "overlap");
        }
    }
}

static void rules_test(tn_context *ctx, rules_open open)
{
    rules_run r = {.ctx = ctx, .open = open};
    rules_make(&r.file);
    rules_again(&r, r.file.b.size);
    rules_expect(&r, 0, r.file.fields, 0, NULL);
    rules_of_ends(&r);
    for (int i = 0; i < r.file.n; i++) {
        const rules_field *f = &r.file.fields[i];
        for (size_t k = 0; k < TN_COUNT(rules_rows); k++)
            if (rules_rows[k].kind == f->kind) rules_value_row(&r, &rules_rows[k], f);
        if (f->kind == RULES_KEY || f->kind == RULES_NAME) rules_of_names(&r, f);
        if (f->kind == RULES_DTYPE) rules_of_blocks(&r, f);
        if (f->kind == RULES_OFFSET) rules_of_places(&r, f);
        // Rule 7: the alignment is a U32.
        bool alignment = f->kind == RULES_TYPE && strcmp(f->owner, "general.alignment") == 0;
        for (uint64_t type = 0; alignment && type < TN_GGUF_TYPE_COUNT; type++) {
            rules_again(&r, r.file.b.size);
            rules_set(&r, f, type);
            if (type != TN_GGUF_U32) rules_expect(&r, 7, f, type, "key \"general.alignment\"");
        }
    }
    printf("%d fields: %d malformed files are refused, %d next to them open\n", r.file.n, r.refused,
           r.accepted);
    free(r.file.b.data);
    free(r.b.data);
}

#endif
