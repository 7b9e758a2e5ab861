// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// An engine on a thread of its own. The thread runs passes while there are requests, and sleeps otherwise.
// The events of each pass go into a bundle, with copies of their texts, because those of a generation live
// until its next step only. Bundles wait in a list until the host takes them, and are used again afterwards,
// so that nothing is allocated once the largest ones exist.
#include "models/engine/engine.h"

#include <string.h>

// The thread pauses while so many passes wait to be taken, so that a host that stands still does not fill the
// memory.
enum { MOST_BUNDLES = 256 };

struct tn_event_bundle {
    tn_event_bundle *next;
    int32_t n, n_ended, capacity;
    tn_engine_note *events;
    const tn_engine_event **list;
    char *text;
    size_t text_size, text_capacity;
    tn_logprob *logprobs;
    size_t n_logprobs, logprobs_capacity, list_capacity;
};

// --- bundles -------------------------------------------------------------------------------------------

static void destroy_bundles(tn_context *ctx, tn_event_bundle **list)
{
    while (*list) {
        tn_event_bundle *b = *list;
        *list = b->next;
        tn_free(ctx, b->events);
        tn_free(ctx, (void *)b->list);
        tn_free(ctx, b->text);
        tn_free(ctx, b->logprobs);
        tn_free(ctx, b);
    }
}

// Makes *array hold n elements; what it held is lost. Powers of two, so that sizes settle soon.
static bool reserve(tn_context *ctx, void **array, size_t *capacity, size_t n, size_t size)
{
    size_t most = 64;
    if (*array && n <= *capacity) return true;
    while (most < n) most *= 2;
    void *more = tn_alloc(ctx, most * size);
    if (!more) return false;
    tn_free(ctx, *array);
    *array = more;
    *capacity = most;
    return true;
}

static bool reserve_bundle(tn_engine *e, tn_event_bundle *b)
{
    size_t text = 0, logprobs = 0, n = (size_t)b->capacity;
    for (int32_t i = 0; i < e->n_events; i++) {
        const tn_piece *piece = &e->events[i].piece;
        const char *message = e->events[i].event.message;
        text += piece->n_text + (message ? strlen(message) + 1 : 0);
        logprobs += (size_t)piece->n_logprobs;
    }
    bool ok = reserve(e->ctx, (void **)&b->events, &n, (size_t)e->n_events, sizeof *b->events);
    b->capacity = (int32_t)n;
    ok = ok && reserve(e->ctx, (void **)&b->list, &b->list_capacity, (size_t)e->n_events, sizeof *b->list);
    return ok && reserve(e->ctx, (void **)&b->text, &b->text_capacity, text, 1) &&
           reserve(e->ctx, (void **)&b->logprobs, &b->logprobs_capacity, logprobs, sizeof *b->logprobs);
}

static const char *copy_text(tn_event_bundle *b, const char *text, size_t n)
{
    char *place = b->text + b->text_size;
    if (n > 0) memcpy(place, text, n);
    b->text_size += n;
    return place;
}

static void fill_bundle(const tn_engine *e, tn_event_bundle *b)
{
    b->n = e->n_events;
    b->n_ended = 0;
    b->text_size = b->n_logprobs = 0;
    for (int32_t i = 0; i < b->n; i++) {
        tn_engine_note *note = &b->events[i];
        *note = e->events[i];
        tn_piece *piece = &note->piece;
        const char *message = note->event.message;
        piece->text = copy_text(b, piece->text, piece->n_text);
        if (message) note->event.message = copy_text(b, message, strlen(message) + 1);
        size_t n = (size_t)piece->n_logprobs;
        if (n > 0) memcpy(b->logprobs + b->n_logprobs, piece->logprobs, n * sizeof *b->logprobs);
        piece->logprobs = b->logprobs + b->n_logprobs;
        b->n_logprobs += n;
        b->n_ended += tn_engine_note_ends(note);
    }
    tn_engine_list_events(b->events, b->n, b->list);
}

static tn_event_bundle *free_bundle(tn_engine *e)
{
    tn_engine_lock(e);
    tn_event_bundle *b = e->free_bundles;
    if (b) e->free_bundles = b->next;
    tn_engine_unlock(e);
    return b ? b : tn_calloc(e->ctx, 1, sizeof *b);
}

// Puts the events of the last pass into the list. TN_ERR_MEMORY: they are still to be put there.
static tn_status pass_on_events(tn_engine *e)
{
    if (e->n_events == 0) return TN_OK;
    e->keeps_events = true;
    tn_event_bundle *b = free_bundle(e);
    if (!b) return TN_ERR_MEMORY;
    bool ok = reserve_bundle(e, b);
    if (ok) fill_bundle(e, b);
    tn_engine_lock(e);
    tn_event_bundle **at = ok ? &e->last_bundle : &e->free_bundles;
    b->next = ok ? NULL : *at;
    if (ok && *at) (*at)->next = b;
    if (ok && !e->bundles) e->bundles = b;
    *at = b;
    e->n_bundles += ok;
    tn_engine_unlock(e);
    if (!ok) return TN_ERR_MEMORY;
    e->keeps_events = false;
    tn_os_signal_raise(&e->signal);
    return TN_OK;
}

// --- the thread ----------------------------------------------------------------------------------------

// The host is given the failure, and the thread waits until it has taken it: a pass that fails again and
// again keeps no processor busy.
static void report(tn_engine *e, tn_status status)
{
    (void)tn_context_error(e->ctx, e->failure_text, sizeof e->failure_text);
    tn_engine_lock(e);
    e->failure = status;
    tn_engine_unlock(e);
    tn_os_signal_raise(&e->signal);
}

static bool may_step(tn_engine *e)
{
    tn_engine_lock(e);
    bool may = e->failure == TN_OK && e->n_bundles < MOST_BUNDLES && (e->n_alive > 0 || e->keeps_events);
    tn_engine_unlock(e);
    return may;
}

static void run(void *arg)
{
    tn_engine *e = arg;
    for (;;) {
        // Acquire: what was done before the bell rang is seen below. A ring after this line makes the wait
        // return at once.
        uint32_t bell = atomic_load_explicit(&e->bell, memory_order_acquire);
        if (atomic_load_explicit(&e->stopping, memory_order_acquire)) return;
        if (!may_step(e)) {
            tn_wait_while(&e->bell, bell);
            continue;
        }
        // Events that could not be passed on come first: a pass would replace them.
        tn_status status = e->keeps_events ? TN_OK : tn_engine_run_step(e);
        tn_status passed_on = pass_on_events(e);
        if (status == TN_OK) status = passed_on;
        if (status != TN_OK) report(e, status);
    }
}

tn_status tn_engine_start(tn_engine *e)
{
    TN_NEED(NULL, e);
    if (e->thread) return tn_fail(e->ctx, TN_ERR_STATE, "engine: its thread runs already");
    tn_status status = e->signal.read < 0 ? tn_os_signal_open(e->ctx, &e->signal) : TN_OK;
    if (status != TN_OK) return status;
    atomic_store_explicit(&e->stopping, false, memory_order_relaxed);
    atomic_store_explicit(&e->threaded, true, memory_order_relaxed);
    status = tn_thread_create(e->ctx, "tenon-engine", run, e, &e->thread);
    if (status != TN_OK) atomic_store_explicit(&e->threaded, false, memory_order_relaxed);
    return status;
}

void tn_engine_stop(tn_engine *e)
{
    if (!e) return;
    if (!e->thread) return;
    atomic_store_explicit(&e->stopping, true, memory_order_release);
    tn_engine_ring(e);
    tn_thread_join(&e->thread);
    atomic_store_explicit(&e->threaded, false, memory_order_relaxed);
}

void tn_engine_thread_fini(tn_engine *e)
{
    if (e->thread) tn_session_cancel(e->session, 1); // the present pass
    tn_engine_stop(e);
    destroy_bundles(e->ctx, &e->bundles);
    destroy_bundles(e->ctx, &e->free_bundles);
    destroy_bundles(e->ctx, &e->taken);
    tn_os_signal_close(&e->signal);
}

// --- the host ------------------------------------------------------------------------------------------

int32_t tn_engine_descriptor(const tn_engine *e)
{
    if (!e) return -1;
    return e->signal.read;
}

// The bundle behind the one that was taken last, which is free now. NULL: none waits.
static tn_event_bundle *next_bundle(tn_engine *e)
{
    tn_event_bundle *b = e->bundles;
    if (e->taken) {
        e->taken->next = e->free_bundles;
        e->free_bundles = e->taken;
    }
    e->taken = b;
    if (!b) return NULL;
    e->bundles = b->next;
    if (!b->next) e->last_bundle = NULL;
    b->next = NULL;
    e->n_bundles--;
    e->n_pending -= b->n_ended;
    return b;
}

tn_status tn_engine_take(tn_engine *e, const tn_engine_event *const **events, int32_t *n)
{
    TN_NEED(NULL, e);
    TN_NEED(e->ctx, events);
    TN_NEED(e->ctx, n);
    char text[sizeof e->failure_text] = "";
    *n = 0;
    if (e->signal.read < 0) return tn_fail(e->ctx, TN_ERR_STATE, "engine: it was never started");
    // Before the list is read: what comes later raises it again.
    tn_os_signal_clear(&e->signal);
    tn_engine_lock(e);
    bool paused = e->n_bundles >= MOST_BUNDLES;
    tn_event_bundle *b = next_bundle(e);
    tn_status failure = b ? TN_OK : e->failure;
    if (failure != TN_OK) {
        memcpy(text, e->failure_text, sizeof text);
        e->failure = TN_OK;
    }
    bool more = e->bundles || e->failure != TN_OK;
    tn_engine_unlock(e);
    if (more) tn_os_signal_raise(&e->signal);
    if (paused || failure != TN_OK) tn_engine_ring(e);
    if (failure != TN_OK) return tn_fail(e->ctx, failure, "%s", text);
    if (!b) return TN_OK;
    *events = b->list;
    *n = b->n;
    return TN_OK;
}
