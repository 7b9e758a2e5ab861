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
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
#define BLOCKS_SIGNALS
#endif
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

// All signals are blocked on threads with these attributes. Without glibc 2.32 a thread has the mask of the
// one that starts it: that one is the host's, and its mask is not changed here, not even for a moment.
static int block_signals(pthread_attr_t *attributes)
{
#ifdef BLOCKS_SIGNALS
    sigset_t all;
    sigfillset(&all);
    return pthread_attr_setsigmask_np(attributes, &all);
#else
    TN_UNUSED(attributes);
    return 0;
#endif
}

tn_status tn_os_thread_create(tn_context *ctx, void (*run)(void *arg), void *arg, tn_os_thread **out)
{
    pthread_attr_t attributes;
    tn_os_thread *t = tn_calloc(ctx, 1, sizeof *t);
    if (!t) return TN_ERR_MEMORY;
    *t = (tn_os_thread){.ctx = ctx, .run = run, .arg = arg};
    int code = pthread_attr_init(&attributes);
    if (code == 0) {
        code = block_signals(&attributes);
        if (code == 0) code = pthread_create(&t->id, &attributes, run_thread, t);
        pthread_attr_destroy(&attributes);
    }
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
