// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The rule for structs that cross the public border (base.h).
#include "core/context.h"

#include <string.h>

// Every struct begins with its struct_size.
enum { HEAD = sizeof(size_t) };
// Larger than any struct will be: a struct_size above it is memory that nobody has initialised.
enum { STRUCT_MAX = 65536 };

static size_t size_of(const void *caller)
{
    size_t size;
    memcpy(&size, caller, sizeof size);
    return size;
}

void tn_struct_init(void *caller, size_t caller_size, const void *defaults, size_t size)
{
    if (!caller || caller_size < HEAD) return;
    size_t known = TN_MIN(caller_size, size);
    memcpy(caller, defaults, known);
    memset((char *)caller + known, 0, caller_size - known);
    memcpy(caller, &caller_size, sizeof caller_size);
}

tn_status tn_struct_check(tn_context *ctx, const char *name, const void *caller)
{
    if (!caller) return tn_fail(ctx, TN_ERR_ARG, "%s: NULL", name);
    size_t size = size_of(caller);
    // The size of a struct is a multiple of its alignment, which is at least that of its first field.
    if (size >= HEAD && size <= STRUCT_MAX && size % HEAD == 0) return TN_OK;
    return tn_fail(ctx, TN_ERR_ARG,
                   "%s: struct_size is %zu; set it to sizeof(%s), or start from the defaults", name, size,
                   name);
}

static tn_status read_one(tn_context *ctx, const char *name, const void *caller, void *out, size_t size)
{
    tn_status status = tn_struct_check(ctx, name, caller);
    if (status != TN_OK) return status;
    size_t given = size_of(caller), known = TN_MIN(given, size);
    for (size_t i = known; i < given; i++)
        if (((const char *)caller)[i])
            return tn_fail(ctx, TN_ERR_UNSUPPORTED,
                           "%s: byte %zu belongs to a field that this version of the library does not know",
                           name, i);
    memcpy((char *)out + HEAD, (const char *)caller + HEAD, known - HEAD);
    return TN_OK;
}

tn_status tn_struct_read(tn_context *ctx, const char *name, const void *caller, void *out, size_t size)
{
    return caller ? read_one(ctx, name, caller, out, size) : TN_OK;
}

tn_status tn_struct_read_array(tn_context *ctx, const char *name, const void *caller, size_t n, void *out,
                               size_t size)
{
    if (n == 0) return TN_OK;
    tn_status status = tn_struct_check(ctx, name, caller);
    size_t step = status == TN_OK ? size_of(caller) : 0;
    for (size_t i = 0; i < n && status == TN_OK; i++) {
        const char *from = (const char *)caller + i * step;
        if (size_of(from) != step)
            return tn_fail(ctx, TN_ERR_ARG, "%s: struct_size of number %zu is %zu, of the first one %zu",
                           name, i, size_of(from), step);
        status = read_one(ctx, name, from, (char *)out + i * size, size);
    }
    return status;
}

tn_status tn_struct_write(tn_context *ctx, const char *name, void *caller, const void *from, size_t size)
{
    tn_status status = tn_struct_check(ctx, name, caller);
    if (status != TN_OK) return status;
    size_t given = size_of(caller), known = TN_MIN(given, size);
    memcpy((char *)caller + HEAD, (const char *)from + HEAD, known - HEAD);
    memset((char *)caller + known, 0, given - known);
    return TN_OK;
}
