// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/worker.h"

#include "tools/common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIES = 3, MESSAGE_SIZE = 512 };

// Records of the queue: this, then the text, then the logprobs, at multiples of RECORD_ALIGN.
typedef struct record {
    worker_item item;
    size_t size; // with all that follows
} record;
enum { RECORD_ALIGN = 16 };

typedef struct records {
    char *data;
    size_t n, capacity, at;
} records;

struct worker {
    worker_config cfg;
    pthread_t thread;
    tn_engine *engine;
    tn_context *ctx;
    pthread_mutex_t lock; // guards all below
    pthread_cond_t work;
    bool stops, opened, lost;
    int code;
    worker_task *tasks, *last_task;
    int32_t n_tasks;
    records filling;
    worker_figures figures;
    char message[MESSAGE_SIZE];
    // of the thread of HTTP
    records reading;
};

// --- the queue -------------------------------------------------------------------------------------------

static size_t aligned(size_t n)
{
    return (n + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

static char *reserve(records *q, size_t n)
{
    if (q->n + n > q->capacity) {
        size_t capacity = (q->n + n) * 2 + 4096;
        char *more = realloc(q->data, capacity);
        if (!more) return NULL;
        q->data = more;
        q->capacity = capacity;
    }
    char *out = q->data + q->n;
    q->n += n;
    return out;
}

// With the lock. Pointers of an item become offsets from its record, so that the queue may move.
static bool put_item(worker *w, const worker_item *item)
{
    const tn_piece *piece = &item->event.piece;
    const char *message = item->event.message ? item->event.message : item->message;
    size_t n_text = item->kind == WORKER_EVENT ? piece->n_text : 0;
    size_t n_tops = item->kind == WORKER_EVENT ? (size_t)piece->n_logprobs * sizeof *piece->logprobs : 0;
    size_t n_message = message ? strlen(message) + 1 : 0;
    size_t at_tops = aligned(sizeof(record)), at_text = at_tops + aligned(n_tops);
    size_t at_message = at_text + n_text, size = aligned(at_message + n_message);
    char *to = reserve(&w->filling, size);
    if (!to) return false;
    record r = {.item = *item, .size = size};
    memcpy(to, &r, sizeof r);
    if (n_tops) memcpy(to + at_tops, piece->logprobs, n_tops);
    if (n_text) memcpy(to + at_text, piece->text, n_text);
    if (n_message) memcpy(to + at_message, message, n_message);
    return true;
}

int worker_next(worker *w, worker_item *out)
{
    records *q = &w->reading;
    if (q->at >= q->n) {
        pthread_mutex_lock(&w->lock);
        records empty = *q;
        *q = w->filling;
        empty.n = empty.at = 0;
        w->filling = empty;
        pthread_mutex_unlock(&w->lock);
        q->at = 0;
    }
    *out = (worker_item){.kind = WORKER_NOTHING};
    if (q->at >= q->n) return WORKER_NOTHING;
    const char *from = q->data + q->at;
    record r;
    memcpy(&r, from, sizeof r);
    q->at += r.size;
    *out = r.item;
    tn_piece *piece = &out->event.piece;
    if (r.item.kind == WORKER_EVENT) {
        size_t at_tops = aligned(sizeof r);
        size_t at_text = at_tops + aligned((size_t)piece->n_logprobs * sizeof *piece->logprobs);
        piece->logprobs = (const tn_logprob *)(const void *)(from + at_tops);
        piece->text = from + at_text;
        if (out->event.message) out->event.message = piece->text + piece->n_text;
    } else if (r.item.message) {
        out->message = from + aligned(sizeof r);
    }
    return out->kind;
}

// --- the thread ------------------------------------------------------------------------------------------

static bool is_idle(worker *w)
{
    return !w->tasks && (!w->engine || w->lost || tn_engine_pending(w->engine) == 0);
}

// Waits for work; false: the thread ends.
static bool wait_for_work(worker *w, worker_task **task)
{
    pthread_mutex_lock(&w->lock);
    while (!w->stops && is_idle(w)) pthread_cond_wait(&w->work, &w->lock);
    bool goes_on = !w->stops;
    *task = w->tasks;
    if (*task) {
        w->tasks = (*task)->next;
        if (!w->tasks) w->last_task = NULL;
    }
    pthread_mutex_unlock(&w->lock);
    return goes_on;
}

static void run_task(worker *w, worker_task *task)
{
    worker_item item = {.kind = WORKER_TASK, .task = task};
    task->run(task);
    pthread_mutex_lock(&w->lock);
    w->n_tasks--;
    w->figures.step_ns = now_ns();
    bool kept = put_item(w, &item);
    pthread_mutex_unlock(&w->lock);
    (void)kept; // without memory for a record of 300 bytes the client waits until it leaves
    w->cfg.wake(w->cfg.user);
}

// False: the engine gives no memory or its device is gone.
static bool run_step(worker *w, int *failures)
{
    const tn_engine_event *events;
    int32_t n = 0;
    uint64_t start = now_ns();
    tn_status status = tn_engine_step(w->engine, &events, &n);
    uint64_t end = now_ns();
    tn_engine_stats stats = {.struct_size = sizeof stats};
    tn_engine_stats_get(w->engine, &stats);
    *failures = status == TN_OK ? 0 : *failures + 1;
    bool lost = status != TN_OK && (status != TN_ERR_MEMORY || *failures >= TRIES);
    pthread_mutex_lock(&w->lock);
    for (int32_t i = 0; i < n && !lost; i++) {
        worker_item item = {.kind = WORKER_EVENT, .event = events[i], .time_ns = end};
        lost = !put_item(w, &item);
    }
    w->figures.stats = stats;
    w->figures.step_ns = end;
    if (end - start > w->figures.longest_ns) w->figures.longest_ns = end - start;
    if (lost) {
        if (status != TN_OK) (void)tn_context_error(w->ctx, w->message, sizeof w->message);
        if (!w->message[0]) snprintf(w->message, sizeof w->message, "%s", tn_status_text(status));
        worker_item item = {.kind = WORKER_LOST, .message = w->message};
        w->lost = true;
        (void)!put_item(w, &item);
    }
    pthread_mutex_unlock(&w->lock);
    if (n > 0 || lost) w->cfg.wake(w->cfg.user);
    return !lost;
}

static void *run(void *user)
{
    worker *w = user;
    worker_task *task;
    int failures = 0;
    tn_engine *engine = NULL;
    int code = w->cfg.open(w->cfg.user, &engine, &w->ctx);
    pthread_mutex_lock(&w->lock);
    w->engine = engine;
    w->code = code;
    w->opened = true;
    pthread_mutex_unlock(&w->lock);
    w->cfg.wake(w->cfg.user);
    while (!code && wait_for_work(w, &task)) {
        if (task) run_task(w, task);
        if (w->engine && !w->lost && tn_engine_pending(w->engine) > 0) (void)run_step(w, &failures);
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
    *out = w; // the thread may ask for it at once
    if (pthread_create(&w->thread, NULL, run, w) != 0) {
        free(w);
        *out = NULL;
        return fail(EXIT_FAILED, "no thread for the engine can be started");
    }
    return 0;
}

void worker_stop(worker **out)
{
    worker *w = *out;
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stops = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->work);
    free(w->filling.data);
    free(w->reading.data);
    free(w);
    *out = NULL;
}

// --- the other thread ------------------------------------------------------------------------------------

static void signal_work(worker *w)
{
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

int worker_opened(worker *w, int *code)
{
    pthread_mutex_lock(&w->lock);
    bool opened = w->opened;
    *code = w->code;
    pthread_mutex_unlock(&w->lock);
    return !opened ? 0 : *code ? -1 : 1;
}

tn_status worker_submit(worker *w, const tn_request_config *cfg, uint64_t *id)
{
    tn_status status = tn_engine_submit(w->engine, cfg, id);
    if (status == TN_OK) signal_work(w);
    return status;
}

void worker_cancel(worker *w, uint64_t id)
{
    tn_engine_cancel(w->engine, id);
    signal_work(w);
}

void worker_add_task(worker *w, worker_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->last_task)
        w->last_task->next = task;
    else
        w->tasks = task;
    w->last_task = task;
    w->n_tasks++;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

void worker_figures_get(worker *w, worker_figures *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->figures;
    out->pending = w->n_tasks;
    pthread_mutex_unlock(&w->lock);
    if (w->engine) out->pending += tn_engine_pending(w->engine);
}
