// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads of a POSIX system.
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "core/threads/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <pthread/qos.h>
#endif
#if defined(__linux__) && defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
#define BLOCKS_SIGNALS
#endif
#endif

enum {
    STACK_SIZE = 2 << 20, // bytes: kernels have at most some 64 KiB of locals, sanitizers need more
    BACKGROUND_NICE = 10, // Linux
};

struct tn_thread {
    tn_context *ctx;
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
    char name[16];
};

static void *run_thread(void *arg)
{
    tn_thread *t = arg;
#if defined(__linux__)
    pthread_setname_np(pthread_self(), t->name);
#elif defined(__APPLE__)
    pthread_setname_np(t->name);
    // The class of a thread decides whether it gets the fast cores; there is no affinity.
    (void)pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
#endif
    t->run(t->arg);
    return NULL;
}

// All signals that others cause are blocked on threads with these attributes. Without glibc 2.32 a thread has
// the mask of the one that starts it: that one is the host's, and its mask is not changed here.
static int block_signals(pthread_attr_t *attributes)
{
#ifdef BLOCKS_SIGNALS
    // Signals that a thread causes itself. The system ends the program if they are blocked, even if the host
    // has a handler for them: SIGBUS when a mapped file was cut, SIGSYS when a sandbox refuses a call.
    static const int own_signals[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < TN_COUNT(own_signals); i++) sigdelset(&all, own_signals[i]);
    return pthread_attr_setsigmask_np(attributes, &all);
#else
    TN_UNUSED(attributes);
    return 0;
#endif
}

tn_status tn_thread_create(tn_context *ctx, const char *name, void (*run)(void *arg), void *arg,
                           tn_thread **out)
{
    pthread_attr_t attributes;
    tn_thread *t = tn_calloc(ctx, 1, sizeof *t);
    if (!t) return TN_ERR_MEMORY;
    *t = (tn_thread){.ctx = ctx, .run = run, .arg = arg};
    strncpy(t->name, name, sizeof t->name - 1);
    int code = pthread_attr_init(&attributes);
    if (code == 0) {
        code = block_signals(&attributes);
        if (code == 0) code = pthread_attr_setstacksize(&attributes, STACK_SIZE);
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

void tn_thread_join(tn_thread **thread)
{
    if (!*thread) return;
    pthread_join((*thread)->id, NULL);
    tn_thread_forget(thread);
}

void tn_thread_forget(tn_thread **thread)
{
    if (!*thread) return;
    tn_free((*thread)->ctx, *thread);
    *thread = NULL;
}

void tn_thread_set_background(void)
{
#if defined(__linux__)
    // Both are of a thread on Linux. SCHED_BATCH: it does not preempt others when it wakes up.
    struct sched_param none = {0};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
    id_t self = (id_t)syscall(SYS_gettid);
    // A thread begins with the nice value of its creator. The system cuts values above the highest one to it.
    (void)setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + BACKGROUND_NICE);
#elif defined(__APPLE__)
    (void)pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
#endif
}

uint64_t tn_thread_cpu_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t tn_process_id(void)
{
    return (uint64_t)getpid();
}
