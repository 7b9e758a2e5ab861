// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Loaded before the C library of a program (LD_PRELOAD), it makes allocations fail. On SIGUSR2 it reads the
// file that TN_FAIL_FILE names: "N" fails the N-th allocation from now on, "threads" fails all that are not
// made by the first thread, "0" none.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static atomic_long countdown;
static atomic_bool threads_fail;

static void on_signal(int number)
{
    char text[32] = "";
    int before = errno, fd = open(getenv("TN_FAIL_FILE"), O_RDONLY | O_CLOEXEC);
    (void)number;
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof text - 1);
        (void)n;
        close(fd);
    }
    atomic_store(&threads_fail, text[0] == 't');
    atomic_store(&countdown, atol(text));
    errno = before;
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    if (getenv("TN_FAIL_FILE")) sigaction(SIGUSR2, &action, NULL);
}

static int fails(void)
{
    int now = atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1;
    if (!now) now = atomic_load(&threads_fail) && gettid() != getpid();
    if (now) errno = ENOMEM;
    return now;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    void *p = fails() ? NULL : __libc_memalign(align, size);
    if (p) *out = p;
    return p ? 0 : ENOMEM;
}
