// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/worker.h"

#include "tools/common.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct task_list {
    worker_task *first, *last;
} task_list;

struct worker {
    worker_config cfg;
    pthread_t thread;
    pthread_mutex_t lock; // guards all below
    pthread_cond_t work;
    bool stops, joined;
    task_list waiting, ended;
};

static void push(task_list *list, worker_task *task)
{
    task->next = NULL;
    if (list->last)
        list->last->next = task;
    else
        list->first = task;
    list->last = task;
}

static worker_task *pop(task_list *list)
{
    worker_task *task = list->first;
    if (!task) return NULL;
    list->first = task->next;
    if (!list->first) list->last = NULL;
    return task;
}

// The next task, for which it waits; NULL: the thread ends.
static worker_task *wait_for_task(worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->stops && !w->waiting.first) pthread_cond_wait(&w->work, &w->lock);
    worker_task *task = w->stops ? NULL : pop(&w->waiting);
    pthread_mutex_unlock(&w->lock);
    return task;
}

static void *run(void *user)
{
    worker *w = user;
    worker_task *task;
    while ((task = wait_for_task(w)) != NULL) {
        task->run(task);
        pthread_mutex_lock(&w->lock);
        push(&w->ended, task);
        pthread_mutex_unlock(&w->lock);
        w->cfg.wake(w->cfg.user);
    }
    return NULL;
}

int worker_start(const worker_config *cfg, worker **out)
{
    worker *w = calloc(1, sizeof *w);
    if (!w) return fail(EXIT_MEMORY, "out of memory for the server");
    w->cfg = *cfg;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    if (pthread_create(&w->thread, NULL, run, w) != 0) {
        free(w);
        return fail(EXIT_FAILED, "no further thread can be started");
    }
    *out = w;
    return 0;
}

void worker_stop(worker *w)
{
    if (!w || w->joined) return;
    pthread_mutex_lock(&w->lock);
    w->stops = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->joined = true;
}

void worker_destroy(worker **out)
{
    worker *w = *out;
    worker_task *task;
    if (!w) return;
    worker_stop(w);
    while ((task = pop(&w->ended)) != NULL || (task = pop(&w->waiting)) != NULL) task->done(task);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->work);
    free(w);
    *out = NULL;
}

void worker_add_task(worker *w, worker_task *task)
{
    pthread_mutex_lock(&w->lock);
    push(&w->waiting, task);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

void worker_end_tasks(worker *w)
{
    for (;;) {
        pthread_mutex_lock(&w->lock);
        worker_task *task = pop(&w->ended);
        pthread_mutex_unlock(&w->lock);
        if (!task) return;
        task->done(task);
    }
}
