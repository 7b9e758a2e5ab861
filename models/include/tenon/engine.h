// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Many requests at once: an engine evaluates the next token of all running requests in one pass, together
// with pieces of the prompts of new ones.
//
//     tn_engine *e;
//     tn_engine_create(model, NULL, &e);
//     tn_request_config r;
//     tn_request_config_default(&r);
//     r.tokens = ids, r.n_tokens = n_ids;
//     tn_engine_submit(e, &r, &id);                      // from any thread
//     while (tn_engine_step(e, &events, &n) == TN_OK) {  // from one thread
//         for (int32_t i = 0; i < n; i++) use(events[i]->id, events[i]->piece->text,
//         events[i]->piece->n_text); if (tn_engine_pending(e) == 0) break;
//     }
//     tn_engine_destroy(&e);
//
// One thread at a time steps and destroys. tn_engine_submit, tn_engine_cancel, tn_engine_pending and
// tn_engine_stats_get may come from any thread while another one steps.
//
// Instead of being stepped by the host, an engine may run on a thread of its own. A server waits for its
// descriptor together with those of its sockets:
//
//     tn_engine_start(e);
//     struct pollfd p = {tn_engine_descriptor(e), POLLIN, 0};
//     while (tn_engine_pending(e) > 0 && poll(&p, 1, -1) > 0)
//         for (;;) {
//             tn_status status = tn_engine_take(e, &events, &n); // of one pass
//             if (status != TN_OK || n == 0) break;
//             for (int32_t i = 0; i < n; i++) use(events[i]);
//         }
//     tn_engine_stop(e);
#ifndef TENON_ENGINE_H
#define TENON_ENGINE_H

#include <tenon/session.h>

TN_EXTERN_C_BEGIN

typedef struct tn_engine tn_engine;

typedef struct tn_engine_config {
    size_t struct_size;
    // The session that the engine makes for itself; NULL (default): defaults, but 8 sequences. n_seq is the
    // number of requests that run at a time, n_ctx the tokens of the cache that they share, n_ctx_seq those
    // of one of them, and n_batch the tokens of a pass.
    const tn_session_config *session;
    int32_t n_waiting;      // requests that wait at most, 1..65536; default 256
    int64_t waiting_tokens; // prompt tokens of the requests that wait, at most; default 16777216
    // prompt tokens of a pass in which other requests continue their texts, 1..65536; 0 (default): the number
    // with the lowest cost for each, as measured, within gap_limit
    int32_t prompt_tokens;
    int32_t reserved;
    // bytes of host memory for blocks that the cache of prefixes has no place for any more; they are copied
    // back when a prompt begins with them. 0 (default): none. TN_ERR_ARG: not enough for one block;
    // TN_ERR_UNSUPPORTED: the model has recurrent layers
    uint64_t host_cache;
    // A text that continues waits for a pass with pieces of prompts at most so many times as long as for the
    // median pass, as measured; 1.25..1000000, default 3. Large numbers give the most tokens a second.
    double gap_limit;
} tn_engine_config;
TN_API void tn_engine_config_init(tn_engine_config *cfg, size_t struct_size);
static inline void tn_engine_config_default(tn_engine_config *cfg)
{
    tn_engine_config_init(cfg, sizeof *cfg);
}

// Bytes of the session of such an engine, as tn_session_predict has them; works on metadata-only models. cfg
// may be NULL.
TN_API TN_MUST_USE tn_status tn_engine_predict(tn_model *model, const tn_engine_config *cfg,
                                               tn_session_memory *out);
// cfg may be NULL. The statuses of tn_session_create; TN_ERR_UNSUPPORTED: the model gives no logits.
TN_API TN_MUST_USE tn_status tn_engine_create(tn_model *model, const tn_engine_config *cfg, tn_engine **out);
// Requests that have not ended end without an event.
TN_API void tn_engine_destroy(tn_engine **engine); // clears *engine; NULL is fine

typedef struct tn_request_config {
    size_t struct_size;
    const int32_t *tokens; // the prompt, copied; at least one, and fewer than the cache holds
    int32_t n_tokens;
    // How the text is generated; NULL (default): defaults. `seq` is not used; drafts (spec_ngram, draft) are
    // refused with TN_ERR_UNSUPPORTED. Strings are copied.
    const tn_generation_config *generation;
    // A request with a higher priority starts before others that wait: each step up counts as much as having
    // been submitted 16 requests earlier, so nothing waits forever. -1000..1000, default 0
    int32_t priority;
    void *user; // returned with each event
    // Requests take the keys and values of a prefix from each other only if their salts are equal, so that no
    // one learns from the time of an answer what others have asked; default 0
    uint64_t salt;
} tn_request_config;
TN_API void tn_request_config_init(tn_request_config *cfg, size_t struct_size);
static inline void tn_request_config_default(tn_request_config *cfg)
{
    tn_request_config_init(cfg, sizeof *cfg);
}

// Adds a request behind those that wait. *id: never 0 and never used again. TN_ERR_ARG: a bad prompt,
// sampling parameter, grammar or schema; TN_ERR_CONTEXT_FULL: the prompt does not fit into the cache;
// TN_ERR_BUSY: too many requests wait; TN_ERR_MEMORY. On failure nothing was added.
TN_API TN_MUST_USE tn_status tn_engine_submit(tn_engine *engine, const tn_request_config *cfg, uint64_t *id);
// The request ends with TN_STOP_CANCELLED in one of the next steps. An unknown or ended id is ignored.
TN_API void tn_engine_cancel(tn_engine *engine, uint64_t id);
// Requests whose last event was not returned yet.
TN_API int32_t tn_engine_pending(tn_engine *engine);

typedef struct tn_engine_event {
    size_t struct_size; // of the library: fields behind it are not there
    uint64_t id;
    void *user;
    const tn_piece *piece; // its stop other than TN_STOP_NONE, or a status other than TN_OK, ends the request
    tn_status status;      // TN_OK, or why this request failed; the others continue
    int32_t reserved;
    const char *message;              // of the failure, else NULL
    const tn_generation_stats *stats; // so far; n_reused: tokens of the prompt that were in the cache already
    uint64_t queue_ns; // that the request waited before it ran for the first time; 0: it did not run
} tn_engine_event;
// One pass: at most one event for each request. The n events are valid until the next call with this engine
// from the stepping thread. With nothing to do it returns at once with *n = 0. On a device with memory of its
// own it returns while its pass runs, and the events are those of the pass before, for which it waited: the
// first step of a request has none, and the step behind a pass returns its failure. TN_ERR_MEMORY and
// TN_ERR_DEVICE concern all requests: the pass may be tried again, and the device may be lost. TN_ERR_STATE:
// the engine runs on a thread of its own.
TN_API TN_MUST_USE tn_status tn_engine_step(tn_engine *engine, const tn_engine_event *const **events,
                                            int32_t *n);

// Starts a thread that runs passes while there are requests and sleeps otherwise. The calls that follow here,
// and tn_engine_destroy, come from one thread of the host at a time. Signals are not handled on the new
// thread (without glibc 2.32 or later: those that the calling thread blocks). TN_ERR_STATE: it runs already;
// TN_ERR_MEMORY; TN_ERR_IO: the process may open no more files.
TN_API TN_MUST_USE tn_status tn_engine_start(tn_engine *engine);
// Ends the thread after its present pass. Requests stay as they are: the engine may be started again, or
// stepped by the host. Events that wait can still be taken.
TN_API void tn_engine_stop(tn_engine *engine);
// A descriptor that is readable while events wait to be taken, from the first start until the engine is
// destroyed. Only wait for it: poll, epoll, select; -1: never started. On Windows it is the value of a
// HANDLE, of an event that is set then: WaitForMultipleObjects((HANDLE)(intptr_t)tn_engine_descriptor(e),
// ...).
TN_API int32_t tn_engine_descriptor(const tn_engine *engine);
// The events of one pass, oldest first, valid until the next call; *n = 0: none wait. Does not block. The
// thread pauses while 256 passes wait to be taken. A failure of a pass is returned behind the events before
// it, as tn_engine_step would return it, and the pass is tried again afterwards. TN_ERR_STATE: never started.
TN_API TN_MUST_USE tn_status tn_engine_take(tn_engine *engine, const tn_engine_event *const **events,
                                            int32_t *n);

typedef struct tn_engine_stats {
    size_t struct_size;           // set by the caller
    int32_t n_waiting, n_running; // requests now
    int32_t n_blocks, n_free;     // blocks of the cache in all, and those that no running request holds
    uint64_t n_steps;             // passes
    uint64_t n_prompt, n_reused, n_generated; // tokens in all: evaluated, found in the cache, selected
    uint64_t n_preempted; // times that a running request had to wait again because the cache was full
    // The cache of prefixes: those of the free blocks whose tokens can still be found; requests that found a
    // part of their prompt; blocks that were found no longer because they were needed
    int32_t n_cached;
    int32_t reserved;
    uint64_t n_hits, n_evicted;
    // Plans that were made, each for one size of passes. It stops growing when all sizes of a load were seen.
    uint64_t n_plans;
    uint64_t n_sampled; // of n_generated: selected on the device; also the most probable tokens it found
    // Time of the steps with a pass that made no plans, in nanoseconds, and the part of it in which the host
    // waited for the devices. What a device without a queue of its own computes counts as the host's.
    uint64_t step_ns, wait_ns;
    // Blocks in the memory of the host: now; copied there; copied back for a request
    int32_t n_host;
    int32_t reserved_host;
    uint64_t n_host_saved, n_host_loaded;
    uint64_t n_timed; // steps whose times are in step_ns
} tn_engine_stats;
// Bytes of the buffers of its session, as tn_session_memory_get has them; blocks in host memory are not among
// them. Any thread.
TN_API TN_MUST_USE tn_status tn_engine_memory_get(const tn_engine *engine, tn_session_memory *out);
// After the last pass. From any thread, also while a pass runs.
TN_API tn_status tn_engine_stats_get(tn_engine *engine, tn_engine_stats *out);

TN_EXTERN_C_END
#endif
