// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads and descriptors of a POSIX system. Linux has eventfd(2), one descriptor with a counter; elsewhere a
// pipe does the same.
#define _GNU_SOURCE
#include "models/engine/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

struct tn_os_thread {
    tn_context *ctx;
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
};

static void *run_thread(void *arg)
{
    tn_os_thread *t = arg;
    t->run(t->arg);
    return NULL;
}

tn_status tn_os_thread_create(tn_context *ctx, void (*run)(void *arg), void *arg, tn_os_thread **out)
{
    sigset_t all, before;
    tn_os_thread *t = tn_calloc(ctx, 1, sizeof *t);
    if (!t) return TN_ERR_MEMORY;
    *t = (tn_os_thread){.ctx = ctx, .run = run, .arg = arg};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // a new thread inherits the mask
    int code = pthread_create(&t->id, NULL, run_thread, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        tn_free(ctx, t);
        return tn_fail(ctx, TN_ERR_MEMORY, "cannot start a thread: error %d", code);
    }
    *out = t;
    return TN_OK;
}

void tn_os_thread_join(tn_os_thread **thread)
{
    if (!*thread) return;
    pthread_join((*thread)->id, NULL);
    tn_free((*thread)->ctx, *thread);
    *thread = NULL;
}

tn_status tn_os_signal_open(tn_context *ctx, tn_os_signal *out)
{
#if defined(__linux__)
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ok = fd >= 0;
    if (ok) *out = (tn_os_signal){fd, fd};
#else
    int ends[2];
    bool ok = pipe(ends) == 0;
    for (int i = 0; ok && i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    if (ok) *out = (tn_os_signal){ends[0], ends[1]};
#endif
    return ok ? TN_OK : tn_fail(ctx, TN_ERR_IO, "cannot open a descriptor for events: error %d", errno);
}

void tn_os_signal_close(tn_os_signal *s)
{
    if (s->read >= 0) close(s->read);
    if (s->write >= 0 && s->write != s->read) close(s->write);
    *s = (tn_os_signal){-1, -1};
}

void tn_os_signal_raise(const tn_os_signal *s)
{
    // The 8 bytes that eventfd wants. A full counter or pipe is readable already.
    uint64_t one = 1;
    while (write(s->write, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void tn_os_signal_clear(const tn_os_signal *s)
{
    uint64_t bytes[16];
    ssize_t n;
    do n = read(s->read, bytes, sizeof bytes);
    while (n == (ssize_t)sizeof bytes || (n < 0 && errno == EINTR));
}
