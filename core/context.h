// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the layers above use of a context: failing with a message, allocating, logging.
#ifndef TN_CORE_CONTEXT_H
#define TN_CORE_CONTEXT_H

#include "core/compiler.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/context.h>

// Stores the message and returns `status`, so that a failure is one line:
//     return tn_fail(ctx, TN_ERR_SHAPE, "rms_norm: weight has %zu values, row has %zu", a, b);
// ctx may be NULL (then only the status travels). Thread-safe.
tn_status tn_fail(tn_context *ctx, tn_status status, const char *fmt, ...) TN_PRINTF(3, 4);
// Puts "where: " in front of the message of a failure that a callee reported; returns `status`.
tn_status tn_fail_at(tn_context *ctx, tn_status status, const char *fmt, ...) TN_PRINTF(3, 4);
// The failure of a public function that was given NULL where it must not be.
tn_status tn_fail_null(tn_context *ctx, const char *function, const char *arg);
#define TN_NEED(ctx, arg)                                                                                    \
    do {                                                                                                     \
        if (!(arg)) return tn_fail_null((ctx), __func__, #arg);                                              \
    } while (0)

// Memory from the context's allocator, 64-byte aligned; failure stores a message and gives NULL.
// tn_alloc leaves the bytes undefined, tn_calloc zeroes. size 0 gives a valid pointer.
void *tn_alloc(tn_context *ctx, size_t size);
void *tn_calloc(tn_context *ctx, size_t count, size_t size);
// Grows or shrinks; NULL on failure, and then ptr is still valid. old_size bytes are kept at most.
void *tn_realloc(tn_context *ctx, void *ptr, size_t old_size, size_t new_size);
void tn_free(tn_context *ctx, void *ptr); // NULL is fine
char *tn_strdup(tn_context *ctx, const char *text);
char *tn_strndup(tn_context *ctx, const char *text, size_t n);

// Whether models that are being opened shall end (tn_model_open_cancel).
void tn_context_cancel_loading(tn_context *ctx, int32_t on);
bool tn_context_loading_cancelled(const tn_context *ctx);
// The backend that was asked for at creation if it has no device, else NULL.
const char *tn_context_missing_backend(const tn_context *ctx);

void tn_log(tn_context *ctx, int32_t level, const char *fmt, ...) TN_PRINTF(3, 4);
// Raises an event; in strict mode it returns TN_ERR_UNSUPPORTED with the text as message, else TN_OK.
tn_status tn_event(tn_context *ctx, int32_t code, const char *fmt, ...) TN_PRINTF(3, 4);
// An event that is no degradation.
void tn_notice(tn_context *ctx, int32_t code, const char *fmt, ...) TN_PRINTF(3, 4);

// CPU level cap given at creation ("avx2"), NULL if none.
const char *tn_context_isa(const tn_context *ctx);
// The BLAS library that was asked for at creation, NULL if none; only valid until the context is created.
const char *tn_context_blas(const tn_context *ctx);
bool tn_context_strict(const tn_context *ctx);
// Rows of a result must not depend on how many others the call has.
bool tn_context_deterministic(const tn_context *ctx);
// Directory where tuning results (the fastest kernel per step) are kept, NULL if none; whether to measure.
const char *tn_context_cache_dir(const tn_context *ctx);
bool tn_context_tunes(const tn_context *ctx);

// The most that a call waits for a piece of a device's work, in nanoseconds; UINT64_MAX: without a limit.
uint64_t tn_context_device_timeout(const tn_context *ctx);

// Timelines (tn_span): the time at which a span begins, 0 if nobody watches; its end, which is nothing then.
uint64_t tn_span_begin(const tn_context *ctx);
void tn_span_end(const tn_context *ctx, int32_t kind, const char *name, uint64_t begin, int64_t count);
// Whether steps of a pass shall be timed, which the callback of the context says; what became of the pass.
bool tn_pass_begin(const tn_context *ctx, const tn_pass_info *pass);
void tn_pass_end(const tn_context *ctx, const tn_pass_info *pass);
bool tn_passes_watched(const tn_context *ctx);
// From the first to the second call, spans of the pool's threads are given as well. The calls nest.
void tn_pool_watch(tn_context *ctx);
void tn_pool_unwatch(tn_context *ctx);

// Sleeps while *word == value, until it is woken; may return early. For loops that have polled for a while.
void tn_wait_while(_Atomic uint32_t *word, uint32_t value);
void tn_wake(_Atomic uint32_t *word, int32_t n); // so many of those that sleep
void tn_wake_all(_Atomic uint32_t *word);
// Lets other threads run for about that long.
void tn_sleep(uint64_t ns);
// Keeps pages in physical memory; false: the system refuses, as by a limit of the user.
bool tn_memory_lock(const void *bytes, size_t n);
void tn_memory_unlock(const void *bytes, size_t n);
// Memory at a multiple of `align`, a power of two; NULL: there is none. What an allocator of the host may
// replace.
void *tn_system_alloc(size_t size, size_t align);
void tn_system_free(void *memory);
// Monotonic time in nanoseconds.
uint64_t tn_time_ns(void);

// Runs task(arg, i, n) once for each i in [0, n), on as many threads as are free: tasks must not wait for
// each other. What the tasks wrote is seen by the caller, and so is the message of one that failed. A failure
// of tn_parallel itself (no thread could be started) means that no task has run (core/threads/thread_pool.h).
typedef void (*tn_parallel_fn)(void *arg, int32_t i, int32_t n);
TN_MUST_USE tn_status tn_parallel(tn_context *ctx, int32_t n, tn_parallel_fn task, void *arg);

// --- structs that cross the public border ----------------------------------------------------------------
// The one rule for them stands in base.h. Every public function reads and writes structs of its caller
// through these functions, and every _init function fills them.

// Fills a struct of caller_size bytes with the defaults of this version, `size` bytes; the rest with zeros.
void tn_struct_init(void *caller, size_t caller_size, const void *defaults, size_t size);

// Copies the fields that the caller has over `out`, which holds the defaults of this version. NULL changes
// nothing. TN_ERR_ARG: struct_size is none; TN_ERR_UNSUPPORTED: a field that this version does not know is
// not zero.
TN_MUST_USE tn_status tn_struct_read(tn_context *ctx, const char *name, const void *caller, void *out,
                                     size_t size);
// The same for n structs one after the other, whose struct_size is the same. `out` has n of `size` bytes.
TN_MUST_USE tn_status tn_struct_read_array(tn_context *ctx, const char *name, const void *caller, size_t n,
                                           void *out, size_t size);

// Whether a result can be written to the caller's struct. TN_ERR_ARG: it is NULL or its struct_size is none.
TN_MUST_USE tn_status tn_struct_check(tn_context *ctx, const char *name, const void *caller);
// Writes the fields of `from` that the caller has, and zeros to those that this version does not know.
tn_status tn_struct_write(tn_context *ctx, const char *name, void *caller, const void *from, size_t size);

// The forms that are used: the type gives name and size, and the compiler checks the pointers.
#define TN_STRUCT_INIT(type, caller, caller_size, ...)                                                       \
    tn_struct_init(1 ? (caller) : (type *)NULL, (caller_size), &(type)__VA_ARGS__, sizeof(type))
#define TN_STRUCT_READ(ctx, type, caller, out)                                                               \
    tn_struct_read((ctx), #type, 1 ? (caller) : (const type *)NULL, 1 ? (out) : (type *)NULL, sizeof(type))
#define TN_STRUCT_READ_ARRAY(ctx, type, caller, n, out)                                                      \
    tn_struct_read_array((ctx), #type, 1 ? (caller) : (const type *)NULL, (n), 1 ? (out) : (type *)NULL,     \
                         sizeof(type))
#define TN_STRUCT_CHECK(ctx, type, caller) tn_struct_check((ctx), #type, 1 ? (caller) : (const type *)NULL)
#define TN_STRUCT_WRITE(ctx, type, caller, from)                                                             \
    tn_struct_write((ctx), #type, 1 ? (caller) : (type *)NULL, 1 ? (from) : (const type *)NULL, sizeof(type))

#endif
