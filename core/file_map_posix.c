// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// mmap for reading; temporary file, fsync, rename, fsync of the folder for writing.
#define _GNU_SOURCE
#include "core/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool tn_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static tn_status io_error(tn_context *ctx, const char *path, const char *what)
{
    char text[128];
    // The GNU form returns the text and may ignore the buffer.
    const char *why = strerror_r(errno, text, sizeof text);
    return tn_fail(ctx, errno == ENOMEM ? TN_ERR_MEMORY : TN_ERR_IO, "%s: %s: %s", path, what, why);
}

tn_status tn_file_map_open(tn_context *ctx, const char *path, tn_file_map *out)
{
    // O_NONBLOCK: opening a pipe must not wait for a writer.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return io_error(ctx, path, "cannot open");
    struct stat st;
    tn_status status = TN_OK;
    void *p = NULL;
    if (fstat(fd, &st) != 0) {
        status = io_error(ctx, path, "cannot read");
    } else if (!S_ISREG(st.st_mode)) {
        status = tn_fail(ctx, TN_ERR_IO, "%s: not a regular file", path);
    } else if (st.st_size == 0) {
        status = tn_fail(ctx, TN_ERR_FORMAT, "%s: the file is empty", path);
    } else {
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) status = io_error(ctx, path, "cannot map");
    }
    close(fd);
    if (status != TN_OK) return status;
    *out = (tn_file_map){.data = p, .size = (size_t)st.st_size, .handle = p};
    return TN_OK;
}

void tn_file_map_close(tn_context *ctx, tn_file_map *map)
{
    TN_UNUSED(ctx);
    if (map->handle) munmap(map->handle, map->size);
    *map = (tn_file_map){0};
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
    struct stat st;
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
    if (status == TN_OK && rename(w->temp, w->path) != 0) status = io_error(w->ctx, w->path, "cannot rename to");
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
