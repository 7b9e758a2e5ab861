// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The executor of a host program for tests: a thread for each task, all at the same time.
//     int n_runs = 0;
//     cfg.executor = (tn_executor){&n_runs, lent_run};
#ifndef TN_TESTS_UNIT_LENT_H
#define TN_TESTS_UNIT_LENT_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct lent_call {
    void (*task)(void *arg, int32_t i);
    void *arg;
    int32_t i;
} lent_call;

static inline void *lent_thread(void *arg)
{
    const lent_call *c = arg;
    c->task(c->arg, c->i);
    return NULL;
}

// user: an int that counts the runs.
static inline void lent_run(void *user, int32_t n_tasks, void (*task)(void *arg, int32_t i), void *arg)
{
    enum { MOST = 16 };
    pthread_t threads[MOST];
    lent_call calls[MOST];
    *(int *)user += 1;
    if (n_tasks > MOST) abort();
    for (int32_t i = 1; i < n_tasks; i++) {
        calls[i] = (lent_call){task, arg, i};
        if (pthread_create(&threads[i], NULL, lent_thread, &calls[i]) != 0) abort();
    }
    task(arg, 0);
    for (int32_t i = 1; i < n_tasks; i++) pthread_join(threads[i], NULL);
}

#endif
