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

// macOS has no pthread_barrier.
struct sys_barrier {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int32_t n_threads, n_waiting;
    uint32_t round; // so many times all were here
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
    if (!b) return NULL;
    *b = (sys_barrier){.n_threads = n_threads};
    if (pthread_mutex_init(&b->lock, NULL) == 0) {
        if (pthread_cond_init(&b->all_here, NULL) == 0) return b;
        pthread_mutex_destroy(&b->lock);
    }
    free(b);
    return NULL;
}

void sys_barrier_wait(sys_barrier *b)
{
    pthread_mutex_lock(&b->lock);
    uint32_t round = b->round;
    if (++b->n_waiting == b->n_threads) {
        b->n_waiting = 0;
        b->round++;
        pthread_cond_broadcast(&b->all_here);
    }
    while (b->round == round) pthread_cond_wait(&b->all_here, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

void sys_barrier_destroy(sys_barrier *b)
{
    if (!b) return;
    pthread_cond_destroy(&b->all_here);
    pthread_mutex_destroy(&b->lock);
    free(b);
}
