// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of data types, from dtypes.def.
#include <tenon/base.h>

typedef struct dtype_row {
    const char *name;
    int32_t block_elems, block_size, file_id;
} dtype_row;

static const dtype_row rows[TN_TYPE_COUNT] = {
#define TN_DTYPE(name, block, bytes, file_id) {#name, block, bytes, file_id},
#include <tenon/dtypes.def>
};

static const dtype_row *row(tn_dtype type)
{
    static const dtype_row none = {"?", 0, 0, -1};
    return type >= 0 && type < TN_TYPE_COUNT ? &rows[type] : &none;
}

const char *tn_dtype_name(tn_dtype type)
{
    return row(type)->name;
}

int64_t tn_dtype_block_elems(tn_dtype type)
{
    return row(type)->block_elems;
}

size_t tn_dtype_block_size(tn_dtype type)
{
    return (size_t)row(type)->block_size;
}

int32_t tn_dtype_file_id(tn_dtype type)
{
    return row(type)->file_id;
}

static int upper(int c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
}

tn_dtype tn_dtype_by_name(const char *name)
{
    if (!name) return -1;
    for (tn_dtype t = 0; t < TN_TYPE_COUNT; t++) {
        const char *a = rows[t].name, *b = name;
        while (*a && upper((unsigned char)*b) == *a) a++, b++;
        if (!*a && !*b) return t;
    }
    return -1;
}

tn_dtype tn_dtype_by_file_id(int64_t file_id)
{
    for (tn_dtype t = 0; t < TN_TYPE_COUNT; t++)
        if (rows[t].file_id == file_id && file_id >= 0) return t;
    return -1;
}

size_t tn_dtype_row_size(tn_dtype type, int64_t n)
{
    const dtype_row *r = row(type);
    if (r->block_elems == 0 || n < 0 || n % r->block_elems != 0) return 0;
    uint64_t blocks = (uint64_t)(n / r->block_elems);
    if (blocks > SIZE_MAX / (uint64_t)r->block_size) return 0;
    return (size_t)blocks * (size_t)r->block_size;
}
