// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of an engine. engine.c: requests come; requests.c: they end; schedule.c: which of them run, and
// on which sequences of the session;
// compose.c: what a pass takes, by costs.c; step.c: one pass; thread.c: passes on a thread of the engine;
// cache_host.c: blocks in the memory of the host.
//
// When a request has ended, its blocks stay in the index of the cache until they are needed
// (models/run/cache/cache_index.c). A new request starts from the blocks there that hold the beginning of its
// prompt.
#ifndef TN_MODELS_ENGINE_H
#define TN_MODELS_ENGINE_H

#include "core/threads/thread.h"
#include "models/engine/costs.h"
#include "models/engine/os.h"
#include "models/run/generation.h"
#include "models/run/session.h"

#include <tenon/engine.h>

typedef struct tn_request {
    struct tn_request *next; // in the list of those that wait, or have ended
    uint64_t id;
    int64_t order; // the smallest starts first: its number, less 16 for each step of priority
    void *user;
    tn_generation *generation;
    int32_t *tokens; // those that the sequence holds when the request is ready to continue
    int32_t n_tokens, capacity;
    uint64_t salt; // requests with different salts share no blocks
    int32_t seq;   // -1: it waits
    int32_t n_reused;
    uint64_t submitted_ns, queue_ns; // queue_ns: until it ran for the first time, 0: it did not yet
    bool cancelled;                  // written by any thread under the lock
    char message[256];               // why it failed; "" until then
} tn_request;

// What the host is given points to the other two.
typedef struct tn_engine_note {
    tn_engine_event event;
    tn_piece piece;
    tn_generation_stats stats;
} tn_engine_note;

// A request whose prompt is not complete.
typedef struct tn_prompt {
    tn_request *request;
    int32_t at;   // tokens of it that the sequence holds
    int32_t most; // further ones that a pass may take
    int32_t n;    // of these, the present pass
} tn_prompt;

// So many passes without prompts at most follow each other while a prompt waits for others that make its
// tokens cheaper.
enum { TN_ENGINE_MOST_HELD = 8 };

typedef struct tn_event_bundle tn_event_bundle; // the events of a pass, see thread.c

struct tn_engine {
    tn_context *ctx;
    tn_session *session;
    tn_engine_config cfg;
    int32_t n_seq;
    // Guards the links of `waiting`, the entries of `running`, the counts below, and the bundles of events.
    // Held for a search or some stores, never while something is evaluated or allocated.
    atomic_flag lock;
    tn_request *waiting;
    int32_t n_waiting;
    int32_t n_alive, n_pending; // requests that wait or run; also those whose end the host was not given yet
    int64_t waiting_tokens;
    uint64_t last_id;
    tn_engine_stats published; // `stats` after the last step, for any thread
    tn_request **running;      // [n_seq] by sequence; NULL: the sequence is free
    tn_request *ended;         // their texts stay valid until the next step
    uint64_t *last_use;        // [n_seq] step in which the sequence was used last
    // Of the present pass: [n_seq]
    tn_feed *feeds;
    tn_request **fed; // NULL: the request has ended since
    int32_t *pending; // tokens of requests that continue
    int32_t n_feeds, n_continued;
    tn_pass_size pass;
    tn_prompt *prompts; // [n_seq]
    int32_t n_prompts, oldest_prompt;
    int64_t prompt_tokens; // that a pass could take of them
    int32_t *masked;       // feeds whose grammars are asked for masks, and the rows of their outputs
    int32_t n_masked;
    // Passes of a device run while the texts of the pass before are made, see step.c.
    bool overlaps;
    bool launched;               // the feeds are on the device
    uint64_t launch_ns, n_plans; // since it was launched, within steps; of the session before that
    tn_request **selecting;      // [n_seq] they have a row of the last pass to select a token from
    int32_t n_selecting;
    tn_piece *pieces; // what each selected, and whether that failed
    tn_status *statuses;
    _Atomic int32_t next_row;           // that a thread takes to select a token, or to make a mask
    tn_engine_note *events;             // [2 * n_seq]
    const tn_engine_event **event_list; // the same, as they are returned
    int32_t n_events, max_events;
    tn_pass_costs costs; // measured
    double arrival;      // tokens of prompts that come for each pass, in the mean of the last ones
    int64_t arrived;     // since the last pass
    int32_t n_held;      // passes without prompts since a prompt waits
    tn_engine_stats stats;
    // A thread of the engine; NULL: the host calls tn_engine_step.
    tn_thread *thread;
    _Atomic bool threaded, stopping; // it exists; it shall end
    _Atomic uint32_t bell;           // rung when the thread may have something to do, see tn_engine_ring
    tn_os_signal signal;             // raised while bundles or a failure wait; -1: never started
    tn_event_bundle *bundles, *last_bundle; // to be taken, oldest first
    tn_event_bundle *free_bundles, *taken;  // `taken` is the one that the host reads
    int32_t n_bundles;
    bool keeps_events; // `events` have not become a bundle yet
    tn_status failure; // of a pass of the thread, until it is taken
    char failure_text[512];
};

static inline void tn_engine_lock(tn_engine *e)
{
    // Acquire and release order the lists with the threads that submit and cancel.
    while (atomic_flag_test_and_set_explicit(&e->lock, memory_order_acquire)) TN_PAUSE();
}

static inline void tn_engine_unlock(tn_engine *e)
{
    atomic_flag_clear_explicit(&e->lock, memory_order_release);
}

static inline bool tn_engine_note_ends(const tn_engine_note *note)
{
    return note->event.status != TN_OK || note->piece.stop != TN_STOP_NONE;
}
// The first n notes as the host is given them.
void tn_engine_list_events(tn_engine_note *notes, int32_t n, const tn_engine_event **list);

// One pass, whose events are then in e->events.
TN_MUST_USE tn_status tn_engine_run_step(tn_engine *e);
// Wakes the thread of the engine, if it has one.
static inline void tn_engine_ring(tn_engine *e)
{
    // Relaxed: the lock orders this with the start of the thread, which reads the queue before it sleeps.
    if (!atomic_load_explicit(&e->threaded, memory_order_relaxed)) return;
    atomic_fetch_add_explicit(&e->bell, 1, memory_order_release);
    tn_wake_all(&e->bell);
}
void tn_engine_destroy_requests(tn_context *ctx, tn_request **list);
void tn_engine_thread_fini(tn_engine *e);
// A further event of a request, which it continues or, with a piece that stops or a failure, ends.
tn_engine_note *tn_engine_add_event(tn_engine *e, const tn_request *r, const tn_piece *piece,
                                    tn_status status);
// The request ends with this event; status other than TN_OK: the message of the context becomes its own.
void tn_engine_end(tn_engine *e, tn_request *r, const tn_piece *piece, tn_status status);
// Requests that were cancelled end.
void tn_engine_end_cancelled(tn_engine *e);
// Requests that wait get free sequences, as long as there are blocks for their prompts.
void tn_engine_admit(tn_engine *e);
int32_t tn_engine_n_running(const tn_engine *e);
tn_request *tn_engine_newest(const tn_engine *e); // of those that run
// The request waits again. TN_ERR_MEMORY: it still runs.
TN_MUST_USE tn_status tn_engine_preempt(tn_engine *e, tn_request *r);
// Where a pass over the prompt ends so that recurrent states exist behind its last full block.
int32_t tn_engine_last_block_end(const tn_request *r);
// Chooses the feeds of the next pass, and frees the blocks that they need.
TN_MUST_USE tn_status tn_engine_compose(tn_engine *e);
// The same before the tokens are selected that a device has chosen; none is preempted. False: there are not
// enough blocks, and tn_engine_compose has to follow.
TN_MUST_USE bool tn_engine_compose_ahead(tn_engine *e);

#endif
