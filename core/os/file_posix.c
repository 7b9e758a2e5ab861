// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// mmap and pread for reading; temporary file, fsync, rename, fsync of the folder for writing.
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "core/os/file_map.h"
#include "core/os/file_os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Reads pages of a mapping like touching them, but a page that cannot be read gives EFAULT instead of a
// signal. Linux 5.14; older headers lack the name.
#if defined(__linux__) && !defined(MADV_POPULATE_READ)
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

// strerror_r returns the text, which need not be in the buffer, in glibc with its extensions, and a number in
// POSIX, musl and macOS.
static const char *gnu_text(const char *result, const char *buffer)
{
    TN_UNUSED(buffer);
    return result;
}

static const char *posix_text(int result, const char *buffer)
{
    return result == 0 ? buffer : "error without a text";
}

#define TEXT_OF(result, buffer) _Generic((result), char * : gnu_text, int : posix_text)(result, buffer)

static tn_status io_error(tn_context *ctx, const char *path, const char *what)
{
    char text[128];
    (void)gnu_text, (void)posix_text; // one of them is used
    const char *why = TEXT_OF(strerror_r(errno, text, sizeof text), text);
    return tn_fail(ctx, errno == ENOMEM ? TN_ERR_MEMORY : TN_ERR_IO, "%s: %s: %s", path, what, why);
}

// Network file systems can be interrupted in open and fsync too.
static int open_again(const char *name, int flags)
{
    int fd;
    do fd = open(name, flags | O_CLOEXEC, 0644);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static int sync_again(int fd)
{
    int failed;
#if defined(__APPLE__)
    // There fsync leaves the bytes in the cache of the disk. Some file systems know only fsync.
    do failed = fcntl(fd, F_FULLFSYNC);
    while (failed && errno == EINTR);
    if (!failed) return 0;
#endif
    do failed = fsync(fd);
    while (failed && errno == EINTR);
    return failed;
}

// O_NONBLOCK: opening a pipe must not wait for a writer.
static int open_descriptor(const char *name, int32_t descriptor)
{
    if (descriptor < 0) return open_again(name, O_RDONLY | O_NONBLOCK);
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

tn_status tn_os_file_open(tn_context *ctx, const char *name, int32_t descriptor, tn_os_file *out,
                          size_t *size)
{
    int fd = open_descriptor(name, descriptor);
    if (fd < 0) return io_error(ctx, name, "cannot open");
    tn_status status = check_file(ctx, name, fd, size);
    if (status == TN_OK)
        *out = fd;
    else
        close(fd);
    return status;
}

void tn_os_file_close(tn_os_file file)
{
    if (file != TN_OS_FILE_NONE) close((int)file);
}

tn_status tn_os_file_size(tn_context *ctx, const char *name, tn_os_file file, size_t *size)
{
    struct stat st;
    if (fstat((int)file, &st) != 0) return io_error(ctx, name, "cannot read");
    *size = (size_t)st.st_size;
    return TN_OK;
}

tn_status tn_os_file_read(tn_context *ctx, const char *name, tn_os_file file, size_t at, void *to, size_t n,
                          size_t *got)
{
    ssize_t k;
    do k = pread((int)file, to, n, (off_t)at);
    while (k < 0 && errno == EINTR);
    if (k < 0) return io_error(ctx, name, "cannot read");
    *got = (size_t)k;
    return TN_OK;
}

void tn_os_file_ahead(tn_os_file file, size_t at, size_t n)
{
#if defined(__linux__)
    (void)posix_fadvise((int)file, (off_t)at, (off_t)n, POSIX_FADV_WILLNEED);
#elif defined(__APPLE__)
    struct radvisory soon = {.ra_offset = (off_t)at, .ra_count = (int)TN_MIN(n, INT_MAX)};
    (void)fcntl((int)file, F_RDADVISE, &soon);
#else
    TN_UNUSED(file), TN_UNUSED(at), TN_UNUSED(n);
#endif
}

tn_status tn_os_file_map(tn_context *ctx, const char *name, tn_os_file file, size_t size, void **out)
{
    void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, (int)file, 0);
    if (p == MAP_FAILED) return io_error(ctx, name, "cannot map");
    *out = p;
    return TN_OK;
}

void tn_os_file_unmap(void *base, size_t size)
{
    munmap(base, size);
}

bool tn_os_file_populate(const uint8_t *base, size_t at, size_t n)
{
#if defined(__linux__)
    size_t page = (size_t)sysconf(_SC_PAGESIZE), first = at & ~(page - 1);
    int failed;
    do failed = madvise((uint8_t *)(uintptr_t)base + first, n + (at - first), MADV_POPULATE_READ);
    while (failed && (errno == EINTR || errno == EAGAIN));
    return !failed;
#else
    TN_UNUSED(base), TN_UNUSED(at), TN_UNUSED(n);
    return false;
#endif
}

// --- writing ---------------------------------------------------------------------------------------

tn_status tn_os_file_create(tn_context *ctx, const char *path, char **target, char **temp, tn_os_file *out)
{
    char real[PATH_MAX];
    struct stat st;
    // A link stays, and the file that it names is replaced: /dev/stdout is a link to what a shell redirects.
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, real)) path = real;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return tn_fail(ctx, TN_ERR_IO, "%s: exists and is not a regular file", path);
    size_t n = strlen(path) + 32;
    char *name = tn_alloc(ctx, n), *copy = name ? tn_strdup(ctx, path) : NULL;
    tn_status status = copy ? TN_OK : TN_ERR_MEMORY;
    if (copy) {
        snprintf(name, n, "%s.tmp-%ld", path, (long)getpid());
        int fd = open_again(name, O_WRONLY | O_CREAT | O_TRUNC);
        if (fd < 0) status = io_error(ctx, name, "cannot create");
        *out = fd;
    }
    if (status != TN_OK) {
        *out = TN_OS_FILE_NONE;
        tn_free(ctx, copy);
        tn_free(ctx, name);
        return status;
    }
    *target = copy;
    *temp = name;
    return TN_OK;
}

tn_status tn_os_file_write(tn_context *ctx, const char *path, tn_os_file file, const void *bytes, size_t n)
{
    for (const char *p = bytes; n > 0;) {
        ssize_t k = write((int)file, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return io_error(ctx, path, "cannot write");
        p += k;
        n -= (size_t)k;
    }
    return TN_OK;
}

// The rename is durable only when the folder is synced too. Folders that cannot be opened for that
// (permissions, odd file systems) keep the rename, which already happened.
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n = slash == path ? 1 : slash ? (int)(slash - path) : 1;
    if (snprintf(folder, sizeof folder, "%.*s", n, slash ? path : ".") >= (int)sizeof folder) return;
    int fd = open_again(folder, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return;
    (void)sync_again(fd);
    close(fd);
}

tn_status tn_os_file_replace(tn_context *ctx, tn_os_file file, const char *temp, const char *target)
{
    tn_status status = TN_OK;
    if (sync_again((int)file) != 0 && errno != EINVAL && errno != EROFS)
        status = io_error(ctx, target, "cannot write");
    int closed = close((int)file);
    if (status == TN_OK && closed != 0) status = io_error(ctx, target, "cannot write");
    if (status == TN_OK && rename(temp, target) != 0) status = io_error(ctx, target, "cannot rename to");
    if (status == TN_OK) sync_folder(target);
    return status;
}

void tn_os_file_remove(const char *path)
{
    unlink(path);
}
