// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// mmap for reading; temporary file, fsync, rename, fsync of the folder for writing.
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
    uint8_t *base;
    size_t size;
    int fd;
} open_file;

enum { READ_AHEAD = 64 << 20 }; // bytes: some 10 ms of a fast disk

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

tn_status tn_file_map_open(tn_context *ctx, const char *path, tn_file_map *out)
{
    // O_NONBLOCK: opening a pipe must not wait for a writer.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return io_error(ctx, path, "cannot open");
    struct stat st;
    tn_status status = TN_OK;
    void *p = MAP_FAILED;
    open_file *file = tn_calloc(ctx, 1, sizeof *file);
    if (!file) {
        status = TN_ERR_MEMORY;
    } else if (fstat(fd, &st) != 0) {
        status = io_error(ctx, path, "cannot read");
    } else if (!S_ISREG(st.st_mode)) {
        status = tn_fail(ctx, TN_ERR_IO, "%s: not a regular file", path);
    } else if (st.st_size == 0) {
        status = tn_fail(ctx, TN_ERR_FORMAT, "%s: the file is empty", path);
    } else {
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) status = io_error(ctx, path, "cannot map");
    }
    if (status != TN_OK) {
        close(fd);
        tn_free(ctx, file);
        return status;
    }
    *file = (open_file){NULL, p, (size_t)st.st_size, fd};
    lock_files(ctx);
    file->next = ctx->files;
    ctx->files = file;
    unlock_files(ctx);
    *out = (tn_file_map){.data = p, .size = file->size, .handle = file};
    return TN_OK;
}

void tn_file_map_close(tn_context *ctx, tn_file_map *map)
{
    open_file *file = map->handle;
    *map = (tn_file_map){0};
    if (!file) return;
    lock_files(ctx);
    open_file **link = &ctx->files;
    while (*link != file) link = &(*link)->next;
    *link = file->next;
    unlock_files(ctx);
    munmap(file->base, file->size);
    close(file->fd);
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

tn_status tn_file_map_copy(tn_context *ctx, void *to, const void *from, size_t n)
{
    const open_file *f = find_file(ctx, from);
    if (!f) {
        if (n > 0) memcpy(to, from, n);
        return TN_OK;
    }
    size_t at = (size_t)((const uint8_t *)from - f->base);
    // Only a hint: bytes that could not be read ahead are read when they are needed.
    (void)posix_fadvise(f->fd, (off_t)(at + READ_AHEAD), (off_t)n, POSIX_FADV_WILLNEED);
    for (char *p = to; n > 0;) {
        ssize_t got = pread(f->fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error(ctx, "a mapped file", "cannot read");
        if (got == 0) return tn_fail(ctx, TN_ERR_IO, "a mapped file has become shorter");
        p += got;
        at += (size_t)got;
        n -= (size_t)got;
    }
    return TN_OK;
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
