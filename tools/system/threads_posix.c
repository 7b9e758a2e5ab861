// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"

#include <pthread.h>
#include <stdlib.h>

struct sys_thread {
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
};

struct sys_barrier {
    pthread_barrier_t barrier;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run_thread(void *arg)
{
    sys_thread *t = arg;
    t->run(t->arg);
    return NULL;
}

sys_thread *sys_thread_start(void (*run)(void *arg), void *arg)
{
    sys_thread *t = malloc(sizeof *t);
    if (!t) return NULL;
    *t = (sys_thread){.run = run, .arg = arg};
    if (pthread_create(&t->id, NULL, run_thread, t) == 0) return t;
    free(t);
    return NULL;
}

void sys_thread_join(sys_thread *t)
{
    pthread_join(t->id, NULL);
    free(t);
}

void sys_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sys_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

sys_barrier *sys_barrier_create(int32_t n_threads)
{
    sys_barrier *b = malloc(sizeof *b);
    if (b && pthread_barrier_init(&b->barrier, NULL, (unsigned)n_threads) == 0) return b;
    free(b);
    return NULL;
}

void sys_barrier_wait(sys_barrier *b)
{
    pthread_barrier_wait(&b->barrier);
}

void sys_barrier_destroy(sys_barrier *b)
{
    if (!b) return;
    pthread_barrier_destroy(&b->barrier);
    free(b);
}
