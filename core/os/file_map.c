// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of the mapped files of a context, and the buffer of files that are written; file_os.h does the
// rest.
#include "core/os/file_map.h"

#include "core/context_impl.h"
#include "core/os/file_os.h"

#include <string.h>

// A mapped file stays open, so that its bytes can also be read.
typedef struct tn_open_file {
    struct tn_open_file *next;
    uint8_t *base; // NULL: not mapped, and not in the list
    size_t size;
    tn_os_file file;
    char *name; // for messages
} open_file;

enum { READ_AHEAD = 64 << 20 }; // bytes: some 10 ms of a fast disk

// Held for a handful of instructions only, so waiting threads spin.
static void lock_files(tn_context *ctx)
{
    while (atomic_flag_test_and_set_explicit(&ctx->files_lock, memory_order_acquire)) TN_PAUSE();
}

static void unlock_files(tn_context *ctx)
{
    atomic_flag_clear_explicit(&ctx->files_lock, memory_order_release);
}

static void list_file(tn_context *ctx, open_file *file)
{
    lock_files(ctx);
    file->next = ctx->files;
    ctx->files = file;
    unlock_files(ctx);
}

tn_status tn_file_map_open_as(tn_context *ctx, const char *name, int32_t descriptor, bool mapped,
                              tn_file_map *out)
{
    tn_os_file os_file = TN_OS_FILE_NONE;
    size_t size = 0;
    void *p = NULL;
    open_file *file = tn_calloc(ctx, 1, sizeof *file);
    char *copy = file ? tn_strdup(ctx, name) : NULL;
    tn_status status = copy ? tn_os_file_open(ctx, name, descriptor, &os_file, &size) : TN_ERR_MEMORY;
    if (status == TN_OK && mapped) status = tn_os_file_map(ctx, name, os_file, size, &p);
    if (status != TN_OK) {
        tn_os_file_close(os_file);
        tn_free(ctx, copy);
        tn_free(ctx, file);
        return status;
    }
    *file = (open_file){NULL, p, size, os_file, copy};
    if (mapped) list_file(ctx, file);
    *out = (tn_file_map){.data = p, .size = size, .handle = file};
    return TN_OK;
}

tn_status tn_file_map_open(tn_context *ctx, const char *path, tn_file_map *out)
{
    return tn_file_map_open_as(ctx, path, -1, true, out);
}

static void unlist_file(tn_context *ctx, const open_file *file)
{
    lock_files(ctx);
    open_file **link = &ctx->files;
    while (*link != file) link = &(*link)->next;
    *link = file->next;
    unlock_files(ctx);
}

void tn_file_map_close(tn_context *ctx, tn_file_map *map)
{
    open_file *file = map->handle;
    *map = (tn_file_map){0};
    if (!file) return;
    if (file->base) {
        unlist_file(ctx, file);
        tn_os_file_unmap(file->base, file->size);
    }
    tn_os_file_close(file->file);
    tn_free(ctx, file->name);
    tn_free(ctx, file);
}

// The mapped file that holds these bytes, or NULL. It stays open while its map is in use.
static const open_file *find_file(tn_context *ctx, const void *bytes)
{
    uintptr_t at = (uintptr_t)bytes;
    lock_files(ctx);
    const open_file *f = ctx->files;
    while (f && (at < (uintptr_t)f->base || at - (uintptr_t)f->base >= f->size)) f = f->next;
    unlock_files(ctx);
    return f;
}

static tn_status shorter(tn_context *ctx, const open_file *f)
{
    return tn_fail(ctx, TN_ERR_IO, "%s: the file has become shorter than the %zu bytes it had", f->name,
                   f->size);
}

static tn_status read_file(tn_context *ctx, const open_file *f, size_t at, void *to, size_t n)
{
    // Bytes that could not be read ahead are read when they are needed.
    tn_os_file_ahead(f->file, at + READ_AHEAD, n);
    for (char *p = to; n > 0;) {
        size_t got = 0;
        tn_status status = tn_os_file_read(ctx, f->name, f->file, at, p, n, &got);
        if (status != TN_OK) return status;
        if (got == 0) return shorter(ctx, f);
        p += got;
        at += got;
        n -= got;
    }
    return TN_OK;
}

tn_status tn_file_map_copy(tn_context *ctx, void *to, const void *from, size_t n)
{
    const open_file *f = find_file(ctx, from);
    if (f) return read_file(ctx, f, (size_t)((const uint8_t *)from - f->base), to, n);
    if (n > 0) memcpy(to, from, n);
    return TN_OK;
}

static tn_status check_range(tn_context *ctx, const tn_file_map *map, size_t at, size_t n)
{
    if (at <= map->size && n <= map->size - at) return TN_OK;
    return tn_fail(ctx, TN_ERR_INTERNAL, "bytes %zu + %zu of a file of %zu", at, n, map->size);
}

tn_status tn_file_map_read(tn_context *ctx, const tn_file_map *map, size_t at, void *to, size_t n)
{
    tn_status status = check_range(ctx, map, at, n);
    if (status != TN_OK || n == 0) return status;
    if (map->handle) return read_file(ctx, map->handle, at, to, n);
    memcpy(to, map->data + at, n);
    return TN_OK;
}

tn_status tn_file_map_check(tn_context *ctx, const tn_file_map *map)
{
    const open_file *f = map->handle;
    size_t size = 0;
    if (!f) return TN_OK;
    tn_status status = tn_os_file_size(ctx, f->name, f->file, &size);
    if (status != TN_OK) return status;
    return size < f->size ? shorter(ctx, f) : TN_OK;
}

// Where pages cannot be read into a mapping: they are in memory then, though not yet in the mapping.
static tn_status read_through(tn_context *ctx, const open_file *f, size_t at, size_t n)
{
    char bytes[65536];
    tn_status status = TN_OK;
    for (size_t done = 0; done < n && status == TN_OK; done += sizeof bytes)
        status = read_file(ctx, f, at + done, bytes, TN_MIN(n - done, sizeof bytes));
    return status;
}

tn_status tn_file_map_fetch(tn_context *ctx, const tn_file_map *map, size_t at, size_t n)
{
    const open_file *f = map->handle;
    tn_status status = check_range(ctx, map, at, n);
    if (status != TN_OK || n == 0 || !f || !f->base) return status;
    tn_os_file_ahead(f->file, at + READ_AHEAD, n);
    if (tn_os_file_populate(f->base, at, n)) return TN_OK;
    status = read_through(ctx, f, at, n);
    return status == TN_OK ? tn_file_map_check(ctx, map) : status;
}

// --- writing ---------------------------------------------------------------------------------------

enum { WRITE_BUFFER = 1 << 20 };

struct tn_file_writer {
    tn_context *ctx;
    char *target, *temp; // temp is given the name of target at the end
    tn_os_file file;
    size_t used;
    char *buffer;
};

static void writer_free(tn_file_writer *w)
{
    tn_os_file_close(w->file);
    tn_free(w->ctx, w->buffer);
    tn_free(w->ctx, w->temp);
    tn_free(w->ctx, w->target);
    tn_free(w->ctx, w);
}

tn_status tn_file_writer_open(tn_context *ctx, const char *path, tn_file_writer **out)
{
    tn_file_writer *w = tn_calloc(ctx, 1, sizeof *w);
    if (!w) return TN_ERR_MEMORY;
    *w = (tn_file_writer){.ctx = ctx, .file = TN_OS_FILE_NONE};
    w->buffer = tn_alloc(ctx, WRITE_BUFFER);
    tn_status status =
        w->buffer ? tn_os_file_create(ctx, path, &w->target, &w->temp, &w->file) : TN_ERR_MEMORY;
    if (status != TN_OK) {
        writer_free(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

static tn_status write_all(tn_file_writer *w, const void *bytes, size_t n)
{
    return tn_os_file_write(w->ctx, w->target, w->file, bytes, n);
}

static tn_status writer_flush(tn_file_writer *w)
{
    size_t n = w->used;
    w->used = 0;
    return write_all(w, w->buffer, n);
}

tn_status tn_file_writer_write(tn_file_writer *w, const void *bytes, size_t n)
{
    if (n > WRITE_BUFFER - w->used) {
        tn_status status = writer_flush(w);
        if (status != TN_OK) return status;
        if (n >= WRITE_BUFFER) return write_all(w, bytes, n);
    }
    if (n > 0) memcpy(w->buffer + w->used, bytes, n);
    w->used += n;
    return TN_OK;
}

tn_status tn_file_writer_commit(tn_file_writer **writer)
{
    tn_file_writer *w = *writer;
    tn_status status = writer_flush(w);
    if (status == TN_OK) {
        status = tn_os_file_replace(w->ctx, w->file, w->temp, w->target);
        w->file = TN_OS_FILE_NONE;
    }
    if (status != TN_OK) {
        tn_file_writer_abort(writer);
        return status;
    }
    writer_free(w);
    *writer = NULL;
    return TN_OK;
}

void tn_file_writer_abort(tn_file_writer **writer)
{
    if (!writer || !*writer) return;
    tn_file_writer *w = *writer;
    tn_os_file_close(w->file); // some systems do not remove files that are open
    w->file = TN_OS_FILE_NONE;
    tn_os_file_remove(w->temp);
    writer_free(w);
    *writer = NULL;
}
