// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"

#include <process.h>
#include <stdlib.h>
#include <windows.h>

struct sys_thread {
    HANDLE handle;
    void (*run)(void *arg);
    void *arg;
};

struct sys_barrier {
    SRWLOCK lock; // guards the rest
    CONDITION_VARIABLE opened;
    int32_t n_threads, n_waiting;
    uint32_t n_opened;
};

static SRWLOCK lock = SRWLOCK_INIT;

static unsigned __stdcall run_thread(void *arg)
{
    sys_thread *t = arg;
    t->run(t->arg);
    return 0;
}

sys_thread *sys_thread_start(void (*run)(void *arg), void *arg)
{
    sys_thread *t = malloc(sizeof *t);
    if (!t) return NULL;
    *t = (sys_thread){.run = run, .arg = arg};
    t->handle = (HANDLE)_beginthreadex(NULL, 0, run_thread, t, 0, NULL);
    if (t->handle) return t;
    free(t);
    return NULL;
}

void sys_thread_join(sys_thread *t)
{
    WaitForSingleObject(t->handle, INFINITE);
    CloseHandle(t->handle);
    free(t);
}

void sys_lock(void)
{
    AcquireSRWLockExclusive(&lock);
}

void sys_unlock(void)
{
    ReleaseSRWLockExclusive(&lock);
}

sys_barrier *sys_barrier_create(int32_t n_threads)
{
    sys_barrier *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    InitializeSRWLock(&b->lock);
    InitializeConditionVariable(&b->opened);
    b->n_threads = n_threads;
    return b;
}

void sys_barrier_wait(sys_barrier *b)
{
    AcquireSRWLockExclusive(&b->lock);
    uint32_t n = b->n_opened;
    if (++b->n_waiting == b->n_threads) {
        b->n_waiting = 0;
        b->n_opened++;
        WakeAllConditionVariable(&b->opened);
    }
    while (b->n_opened == n) SleepConditionVariableSRW(&b->opened, &b->lock, INFINITE, 0);
    ReleaseSRWLockExclusive(&b->lock);
}

void sys_barrier_destroy(sys_barrier *b)
{
    free(b);
}
