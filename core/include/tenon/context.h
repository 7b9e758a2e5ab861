// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The context: everything that other libraries keep in globals. A program makes one (or several, they
// are independent), and every other object belongs to one.
//
//     tn_context_config cfg;
//     tn_context_config_default(&cfg);
//     tn_context *ctx;
//     if (tn_context_create(&cfg, &ctx) != TN_OK) return 1;
//     ...
//     tn_context_destroy(&ctx);
#ifndef TENON_CONTEXT_H
#define TENON_CONTEXT_H

#include <tenon/base.h>

TN_EXTERN_C_BEGIN

typedef struct tn_context tn_context;
typedef struct tn_device tn_device;

// Memory callbacks, called from any thread that calls the library, never from inside a kernel.
typedef struct tn_allocator {
    void *user;
    // Returns `size` bytes aligned to `align` (a power of two), or NULL. size is never 0.
    void *(*alloc)(void *user, size_t size, size_t align);
    void (*free)(void *user, void *ptr);
} tn_allocator;

// Threads of the host program in place of those of the context. run() must call task(arg, i) once for each i
// in [0, n_tasks) and return when all have returned. They may run at the same time or one after the other: no
// task waits for another one to begin, and one that begins when all is done returns at once.
typedef struct tn_executor {
    void *user;
    void (*run)(void *user, int32_t n_tasks, void (*task)(void *arg, int32_t i), void *arg);
} tn_executor;

// Whose threads compute. A context's own ones start with its first work and end in tn_context_destroy; they
// sleep when there is no work, and leave cores that other programs keep busy. OpenMP is for programs that use
// it themselves and want one set of threads: they wait and sleep as its environment variables say, and never
// end. TN_ERR_UNSUPPORTED where the library was built without it.
enum { TN_THREADS_OWN, TN_THREADS_OPENMP };
// Of a context's own threads: as the thread that created them, or only where no other program needs the core.
// The thread that calls keeps its own priority.
enum { TN_THREADS_NORMAL, TN_THREADS_BACKGROUND };

enum { TN_LOG_ERROR, TN_LOG_WARN, TN_LOG_INFO, TN_LOG_DEBUG };
// Called on the thread that logs; must not call back into the library.
typedef void (*tn_log_fn)(void *user, int32_t level, const char *text);

// Things that a user would want to know although nothing failed. Same rules as the log callback.
enum {
    TN_EVENT_DEVICE_FALLBACK = 1, // an op runs on another device than requested
    TN_EVENT_MODEL_WARNING,       // the file has something odd that was worked around
    TN_EVENT_CONTEXT_TRUNCATED,   // context reduced to fit
    TN_EVENT_LAYERS_ON_HOST,      // not all layers fit on the device: the first ones run on the CPU
    TN_EVENT_KERNEL_REPLACED,     // a driver compiles a kernel wrongly: another one runs instead
    // No degradation, and no error in a strict context:
    // a driver compiles kernels that the cache does not have yet; the text gives the progress; repeated
    TN_EVENT_COMPILING,
    TN_EVENT_COMPILED, // it has done so
    // A degradation: memory is too short to keep weights as a precision multiplies them, so that they are
    // converted again in each run
    TN_EVENT_WEIGHTS_CONVERTED,
    TN_EVENT_MEMORY_NOT_LOCKED, // a degradation: weights may be swapped out
    // a degradation: sequences may become longer than the texts that the model was trained with
    TN_EVENT_CONTEXT_BEYOND_TRAINING,
};
typedef void (*tn_event_fn)(void *user, int32_t code, const char *text);

// --- timelines: what threads did and when, for tools that draw it ---
// Times are nanoseconds of the monotonic clock of the system (CLOCK_MONOTONIC, QueryPerformanceCounter).

enum { TN_SPAN_LOAD, TN_SPAN_PLAN, TN_SPAN_TEXT, TN_SPAN_SAMPLE, TN_SPAN_RUN, TN_SPAN_WORK };
typedef struct tn_span {
    size_t struct_size;
    int32_t kind;              // TN_SPAN_
    int32_t pool_thread;       // of TN_SPAN_WORK: number of the thread of the pool; 0: the thread that called
    const char *name;          // valid during the call
    uint64_t begin_ns, end_ns; // spans of a thread contain each other or lie apart
    int64_t count;             // of what was done, as tokens; 0: not known
} tn_span;
// Called on the thread whose span ended, also on threads of the context's own pool, but not for each thread
// of an executor or of OpenMP. Must not call back into the library. TN_SPAN_WORK comes only with passes whose
// steps are timed.
typedef void (*tn_span_fn)(void *user, const tn_span *span);

// A pass: one plan of a model that is run once.
typedef struct tn_pass_info {
    size_t struct_size;
    uint64_t session;                 // passes of different sessions may lie at the same time
    int32_t n_tokens, n_seq;          // that are evaluated, of how many sequences
    int32_t n_blocks, n_blocks_used;  // of the cache; 0: there is none
    int64_t depth;                    // tokens that a sequence had before, on average
    uint64_t begin_ns, submit_ns;     // submit_ns: its steps began then at the earliest
    uint64_t end_ns;                  // 0 before its end
    const struct tn_plan *plan;       // <tenon/graph.h>; tn_plan_ref keeps it
    const uint64_t *step_ns;          // of each step, valid during the call; NULL: not timed, or failed
    int32_t n_steps;                  // of step_ns
    int32_t reserved;
} tn_pass_info;
// Called before a pass on the thread that starts it; non-zero: its steps are timed one by one, which takes
// longer. Must not call back into the library.
typedef int32_t (*tn_pass_begin_fn)(void *user, const tn_pass_info *pass);
// Called after it. Of the library, only functions that ask a plan may be called.
typedef void (*tn_pass_end_fn)(void *user, const tn_pass_info *pass);

typedef struct tn_context_config {
    size_t struct_size;      // sizeof(tn_context_config), set by tn_context_config_default
    tn_allocator allocator;  // default: aligned system allocator
    tn_executor executor;    // default (run = NULL): the threads of threads_by
    tn_log_fn log;           // default NULL: no log
    tn_event_fn event;       // default NULL
    void *user;              // passed to log, event, span, pass_begin and pass_end
    int32_t log_level;       // highest level passed on, default TN_LOG_WARN
    int32_t n_threads;       // 1..512; default 0 = one per core that this process may use. The most: a
                             // context's own threads are used as far as there are free cores for them
    int32_t strict;          // non-zero: events of silent degradation become errors; default 0
    const char *isa;         // highest CPU level: "reference", "generic", "avx2", "avxvnni", "avx512",
                             // "avx512vnni", "amx"; for aarch64 "neon", "dotprod", "i8mm", "bf16". NULL
                             // (default) = the best this machine has. With amx the system is asked to let
                             // this process use tile registers, once and for good
    size_t memory_limit;     // bytes the library may allocate in this context; 0 (default) = no limit
    const char *cache_dir;   // existing directory for results that were measured on this machine; copied.
                             // NULL (default): none is used
    // non-zero: time the kernels that could run a step, once, and keep the fastest; default 0
    int32_t tune;
    // "cuda": the only backend that is opened besides the CPU and the one that computes nothing, which always
    // are; saves the time that other drivers need to start. Only read while creating. A name that no backend
    // has is TN_ERR_ARG; one that is not part of this build, or finds no device, is among the absent ones.
    // NULL (default): all
    const char *backend;
    // non-zero: every bit of a result depends on the texts alone, not on how they are cut into batches
    // (slower for long prompts). Backends without that mode are absent. The number of threads never changes a
    // bit, in any mode. Default 0
    int32_t deterministic;
    // non-zero: once a backend has a device with memory of its own, less preferred backends are not started;
    // models that name no device use that one. Only read while creating. Default 0
    int32_t one_backend;
    int32_t threads_by;      // TN_THREADS_OWN (default) or TN_THREADS_OPENMP
    int32_t thread_priority; // TN_THREADS_NORMAL (default) or TN_THREADS_BACKGROUND
    // A library with matrix products that the CPU may use besides its own: name or path of an OpenBLAS, or
    // "off". NULL (default): one that is installed, where it was measured to be faster (`tune`), and on
    // processors for which this library has portable C only. The number of threads of such a library belongs
    // to the whole program: docs/threads.md. Only read while creating; TN_ERR_DEVICE if it cannot be used
    const char *blas;
    // Default NULL: nobody watches, which costs a comparison
    tn_span_fn span;
    tn_pass_begin_fn pass_begin;
    tn_pass_end_fn pass_end;
    // How long a call waits for one piece of a device's work before it gives the device up, in milliseconds;
    // see below. 0 (default): 300000. Negative: without a limit
    int64_t device_timeout_ms;
} tn_context_config;

// --- devices that are lost ---
// A call that fails with TN_ERR_DEVICE may have lost its device: a kernel or the driver failed, the device
// was reset, or work that was submitted to it did not end within device_timeout_ms, as a kernel in an endless
// loop. Then every later use of this device in this context fails with TN_ERR_DEVICE and a message that says
// so; the context's other devices, and other contexts, work on. All that lies on it is to be destroyed as
// always: models, sessions, engines, graphs, the context. On Vulkan the device is made anew when nothing is
// left on it, on CUDA by a new context, except that:
//
// A device that was given up, because its work did not end, is left alone: nothing of this context calls its
// driver any more, not even to destroy what is there, because such a call may wait for the same work. So
// destroying returns at once and frees the memory of the host, but what the driver had made (memory of the
// device and memory of the host that it reaches, streams, pipelines, the driver itself) is knowingly leaked,
// until the process ends. A new context may try the device again, and so may a new process.
//
// The limit is that of one piece of work: on CUDA a pass (one run of a plan), on Vulkan a submission, and a
// long pass has one of those for about every 0.1 s. A lower limit suits servers on fast devices, and a higher
// one or none a debugger that stops kernels. Time in which this process itself is stopped does not count.
// Only waiting is limited: a call of a driver that does not return by itself is not cut off.

TN_API void tn_context_config_init(tn_context_config *cfg, size_t struct_size);
static inline void tn_context_config_default(tn_context_config *cfg)
{
    tn_context_config_init(cfg, sizeof *cfg);
}

// Creates a context; cfg may be NULL for the defaults. On failure *out stays unchanged.
// TN_ERR_ARG: a field is out of range; TN_ERR_MEMORY; TN_ERR_UNSUPPORTED: this CPU lacks `isa`.
TN_API TN_MUST_USE tn_status tn_context_create(const tn_context_config *cfg, tn_context **out);
// Destroys and clears *ctx; NULL is fine. Every object of the context must be gone before.
TN_API void tn_context_destroy(tn_context **ctx);

// Copies the message of the last failure of a call on this thread (what failed, where) into buf, cut at
// size - 1 bytes and terminated; "" if none has failed. Returns the length of the whole message. It needs no
// context, so it also has what tn_context_create failed at, or a call that was given NULL.
TN_API size_t tn_last_error(char *buf, size_t size);
// The same for calls with this context. If the last failure on this thread was of another one, the last
// failure in this context on any thread. NULL: like tn_last_error. Thread-safe.
TN_API size_t tn_context_error(tn_context *ctx, char *buf, size_t size);

// Bytes allocated now, and the highest value so far. Any thread.
TN_API size_t tn_context_memory(const tn_context *ctx);
TN_API size_t tn_context_memory_peak(const tn_context *ctx);
// Number of allocations made so far; the difference over a token shows that none happened. Any thread.
TN_API uint64_t tn_context_n_allocs(const tn_context *ctx);
// Threads that kernels use.
TN_API int32_t tn_context_n_threads(const tn_context *ctx);

// Devices that were found, in order of preference. Valid as long as the context.
TN_API int32_t tn_context_n_devices(const tn_context *ctx);
TN_API tn_device *tn_context_device_get(const tn_context *ctx, int32_t i);
// Device by name ("cpu", "cuda", "cuda:1"), NULL if there is none.
TN_API tn_device *tn_context_device_by_name(const tn_context *ctx, const char *name);

typedef struct tn_device_info {
    size_t struct_size;      // set by the caller
    const char *name;        // "cpu", "cuda:0"; valid as long as the context
    const char *description; // "Intel(R) Xeon(R), avx512vnni, 2 threads"
    const char *backend;     // "cpu"
    uint64_t memory_total;   // bytes
    uint64_t memory_free;    // bytes, when asked
} tn_device_info;
TN_API tn_status tn_device_info_get(const tn_device *device, tn_device_info *info);

// What a device uses besides itself, in lines for people: for the CPU whether OpenBLAS was found, and in
// which matrix products it is faster, where that was measured. Opens such libraries. Cut like
// tn_context_error.
TN_API size_t tn_device_details(tn_device *device, char *buf, size_t size);

// Backends without a device: a line "cuda: why" for each, cut like tn_context_error.
TN_API size_t tn_context_absent_backends(const tn_context *ctx, char *buf, size_t size);

TN_EXTERN_C_END
#endif
