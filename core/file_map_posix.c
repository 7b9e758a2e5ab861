// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// mmap and pread for reading; temporary file, fsync, rename, fsync of the folder for writing.
#define _GNU_SOURCE
#include "core/context_impl.h"
#include "core/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// A mapped file stays open, so that its bytes can also be read.
typedef struct tn_open_file {
    struct tn_open_file *next;
    uint8_t *base; // NULL: not mapped, and not in the list
    size_t size;
    int fd;
    char *name; // for messages
} open_file;

enum { READ_AHEAD = 64 << 20 }; // bytes: some 10 ms of a fast disk

// Reads pages of a mapping like touching them, but a page that cannot be read gives EFAULT instead of a
// signal. Linux 5.14; older headers lack the name.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

bool tn_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

// A file is its device and inode, whatever it is called.
bool tn_same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    if (stat(a, &sa) != 0 || stat(b, &sb) != 0) return false;
    return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static tn_status io_error(tn_context *ctx, const char *path, const char *what)
{
    char text[128];
    // The GNU form returns the text and may ignore the buffer.
    const char *why = strerror_r(errno, text, sizeof text);
    return tn_fail(ctx, errno == ENOMEM ? TN_ERR_MEMORY : TN_ERR_IO, "%s: %s: %s", path, what, why);
}

// Held for a handful of instructions only, so waiting threads spin.
static void lock_files(tn_context *ctx)
{
    while (atomic_flag_test_and_set_explicit(&ctx->files_lock, memory_order_acquire)) TN_PAUSE();
}

static void unlock_files(tn_context *ctx)
{
    atomic_flag_clear_explicit(&ctx->files_lock, memory_order_release);
}

// O_NONBLOCK: opening a pipe must not wait for a writer.
static int open_file_of(const char *name, int32_t descriptor)
{
    if (descriptor < 0) return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

static tn_status check_file(tn_context *ctx, const char *name, int fd, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return io_error(ctx, name, "cannot read");
    if (!S_ISREG(st.st_mode)) return tn_fail(ctx, TN_ERR_IO, "%s: not a regular file", name);
    if (st.st_size == 0) return tn_fail(ctx, TN_ERR_FORMAT, "%s: the file is empty", name);
    *size = (size_t)st.st_size;
    return TN_OK;
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
    int fd = open_file_of(name, descriptor);
    if (fd < 0) return io_error(ctx, name, "cannot open");
    size_t size = 0;
    void *p = NULL;
    open_file *file = tn_calloc(ctx, 1, sizeof *file);
    char *copy = file ? tn_strdup(ctx, name) : NULL;
    tn_status status = copy ? check_file(ctx, name, fd, &size) : TN_ERR_MEMORY;
    if (status == TN_OK && mapped) {
        p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) status = io_error(ctx, name, "cannot map");
    }
    if (status != TN_OK) {
        close(fd);
        tn_free(ctx, copy);
        tn_free(ctx, file);
        return status;
    }
    *file = (open_file){NULL, p, size, fd, copy};
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
        munmap(file->base, file->size);
    }
    close(file->fd);
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
    // Only a hint: bytes that could not be read ahead are read when they are needed.
    (void)posix_fadvise(f->fd, (off_t)(at + READ_AHEAD), (off_t)n, POSIX_FADV_WILLNEED);
    for (char *p = to; n > 0;) {
        ssize_t got = pread(f->fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error(ctx, f->name, "cannot read");
        if (got == 0) return shorter(ctx, f);
        p += got;
        at += (size_t)got;
        n -= (size_t)got;
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
    struct stat st;
    if (!f) return TN_OK;
    if (fstat(f->fd, &st) != 0) return io_error(ctx, f->name, "cannot read");
    return (size_t)st.st_size < f->size ? shorter(ctx, f) : TN_OK;
}

// On systems without MADV_POPULATE_READ: the pages are in memory then, though not yet in the mapping.
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
    size_t page = (size_t)sysconf(_SC_PAGESIZE), first = at & ~(page - 1);
    (void)posix_fadvise(f->fd, (off_t)(at + READ_AHEAD), (off_t)n, POSIX_FADV_WILLNEED);
    int failed;
    do failed = madvise(f->base + first, n + (at - first), MADV_POPULATE_READ);
    while (failed && (errno == EINTR || errno == EAGAIN));
    if (!failed) return TN_OK;
    // Where the call is not known, and for the reason where a page could not be read.
    status = read_through(ctx, f, at, n);
    return status == TN_OK ? tn_file_map_check(ctx, map) : status;
}

// --- writing ---------------------------------------------------------------------------------------

enum { WRITE_BUFFER = 1 << 20 };

struct tn_file_writer {
    tn_context *ctx;
    char *path, *temp;
    int fd;
    size_t used;
    char *buffer;
};

static void writer_free(tn_file_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    tn_free(w->ctx, w->buffer);
    tn_free(w->ctx, w->temp);
    tn_free(w->ctx, w->path);
    tn_free(w->ctx, w);
}

tn_status tn_file_writer_open(tn_context *ctx, const char *path, tn_file_writer **out)
{
    char real[PATH_MAX];
    struct stat st;
    // A link stays, and the file that it names is replaced: /dev/stdout is a link to what a shell redirects.
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, real)) path = real;
    tn_file_writer *w = tn_calloc(ctx, 1, sizeof *w);
    if (!w) return TN_ERR_MEMORY;
    w->ctx = ctx;
    w->fd = -1;
    size_t n = strlen(path) + 32;
    w->path = tn_strdup(ctx, path);
    w->temp = tn_alloc(ctx, n);
    w->buffer = tn_alloc(ctx, WRITE_BUFFER);
    if (!w->path || !w->temp || !w->buffer) {
        writer_free(w);
        return TN_ERR_MEMORY;
    }
    snprintf(w->temp, n, "%s.tmp-%ld", path, (long)getpid());
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        writer_free(w);
        return tn_fail(ctx, TN_ERR_IO, "%s: exists and is not a regular file", path);
    }
    w->fd = open(w->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (w->fd < 0) {
        tn_status status = io_error(ctx, w->temp, "cannot create");
        writer_free(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

static tn_status write_all(tn_file_writer *w, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(w->fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return io_error(w->ctx, w->path, "cannot write");
        p += k;
        n -= (size_t)k;
    }
    return TN_OK;
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

// The rename is durable only when the folder is synced too. Folders that cannot be opened for that
// (permissions, odd file systems) keep the rename, which already happened.
static void sync_folder(const char *path, char *scratch)
{
    strcpy(scratch, path);
    char *slash = strrchr(scratch, '/');
    if (slash == scratch) slash[1] = 0;
    else if (slash) *slash = 0;
    else strcpy(scratch, ".");
    int fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

tn_status tn_file_writer_commit(tn_file_writer **writer)
{
    tn_file_writer *w = *writer;
    tn_status status = writer_flush(w);
    if (status == TN_OK && fsync(w->fd) != 0 && errno != EINVAL && errno != EROFS)
        status = io_error(w->ctx, w->path, "cannot write");
    int closed = close(w->fd);
    w->fd = -1;
    if (status == TN_OK && closed != 0) status = io_error(w->ctx, w->path, "cannot write");
    if (status == TN_OK && rename(w->temp, w->path) != 0)
        status = io_error(w->ctx, w->path, "cannot rename to");
    if (status == TN_OK) sync_folder(w->path, w->temp);
    else unlink(w->temp);
    writer_free(w);
    *writer = NULL;
    return status;
}

void tn_file_writer_abort(tn_file_writer **writer)
{
    if (!writer || !*writer) return;
    tn_file_writer *w = *writer;
    unlink(w->temp);
    writer_free(w);
    *writer = NULL;
}
