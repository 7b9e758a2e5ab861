// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The interface that a backend implements; the rest of the library sees nothing else of it. Steps are opaque
// to core (ops/step.h); a backend sees ops, never graphs or models.
#ifndef TN_CORE_BACKEND_H
#define TN_CORE_BACKEND_H

#include "core/context.h"

#include <stdatomic.h>

struct tn_step;
struct tn_step_pair;
struct tn_view;
struct tn_program;
typedef struct tn_backend tn_backend;
typedef struct tn_buffer tn_buffer;
typedef struct tn_executable tn_executable; // owned by the backend

enum { TN_BATCH_DEFAULT = 512 };

// Memory on a device. `data` is what steps address: a host pointer, or an address on the device.
struct tn_buffer {
    tn_device *device;
    void *data;
    size_t size;
    bool borrowed; // the bytes belong to somebody else (a mapped file)
    size_t weight_offset, weight_size; // where a weight was written in the device's own layout; size 0: none
    void *handle;  // private to the backend; of the whole buffer if this is a part of one
};

struct tn_device {
    const tn_backend *backend;
    tn_context *ctx;
    char name[32], description[160];
    uint64_t memory_total;
    size_t max_buffer_size; // bytes of one buffer; 0: no limit but memory
    bool host_memory; // buffers are plain host memory: mapped files can be used in place
    bool software;    // runs on the processor (a software driver): never chosen by default, only by name
    // The most multiplications that go into one executable, unless a single step has more. Work can be
    // cancelled between executables, so this bounds how long a cancellation takes. 0: no limit, submit polls
    // the flag itself.
    double max_work;
    // tokens of a prompt that must be evaluated at once to keep it busy; 0: TN_BATCH_DEFAULT
    int32_t n_batch;
    void *impl;       // private to the backend
};

// What one submission is given.
typedef struct tn_submit_options {
    const _Atomic int32_t *cancel; // checked between steps; non-zero ends with TN_ERR_CANCELLED. May be NULL
    uint64_t *step_ns;             // NULL, or n_steps values: time of each step is added
} tn_submit_options;

// What a backend is for. The layers above ask for this, so that none of them names a backend.
typedef enum tn_backend_role {
    TN_BACKEND_ACCELERATOR, // devices that are used where they accept the work
    // the processor: always opened; runs every op, so it is the fallback of all others
    TN_BACKEND_HOST,
    // always opened, accepts every op and computes nothing: tests of passes, measuring what the host spends
    TN_BACKEND_NOOP,
} tn_backend_role;

// Where the names of the launches of a step go.
typedef struct tn_launch_sink {
    tn_status (*put)(void *user, const char *entry); // a failure ends the listing
    void *user;
} tn_launch_sink;

struct tn_backend {
    const char *name;
    tn_backend_role role;
    // With at most this many rows (tokens) in a step, each row of the result has exactly the bits that it has
    // when it is computed alone, whatever the other rows are. 0: no promise.
    int32_t rows_alike;
    // The same holds for any number of rows in contexts that request it (tn_context_deterministic).
    bool deterministic;
    // Opens the devices of this backend and hands each to tn_device_add. A backend that finds nothing
    // returns TN_OK and says why through tn_backend_absent.
    tn_status (*open)(tn_context *ctx);
    void (*close)(tn_device *device);
    uint64_t (*memory_free)(const tn_device *device);
    // Lines for people about libraries that the device may use, and what was measured with them; may open
    // them. Returns the length of the whole text. NULL: nothing to say.
    size_t (*details)(tn_device *device, char *buf, size_t size);

    // Buffers start undefined. write and read are synchronous.
    tn_status (*buffer_create)(tn_device *device, size_t size, tn_buffer *out);
    void (*buffer_destroy)(tn_buffer *buffer);
    tn_status (*buffer_write)(tn_buffer *buffer, size_t offset, const void *bytes, size_t n);
    tn_status (*buffer_read)(const tn_buffer *buffer, size_t offset, void *bytes, size_t n);
    // Zeros `rows` runs of n bytes that begin `pitch` bytes apart, in order with the submitted work. NULL:
    // the host writes zeros.
    tn_status (*buffer_zero)(tn_buffer *buffer, size_t offset, size_t n, size_t pitch, size_t rows);
    // Writes a whole weight, given with the bytes of a file, in the layout that the kernels read; the size is
    // the same. One weight per buffer. NULL: the kernels read the layout of the file.
    tn_status (*weight_write)(tn_buffer *buffer, size_t offset, const struct tn_view *weight,
                              const void *bytes);

    // Zeroed host memory that the device reads and writes itself, for the copies of a program. NULL: the
    // device has no such memory.
    tn_status (*host_create)(tn_device *device, size_t size, void **out);
    void (*host_destroy)(tn_device *device, void *host);

    // Bit per TN_PRECISION_* that the device has kernels for. NULL: AUTO alone.
    uint32_t (*precisions)(const tn_device *device);
    // Whether the device can run the step as it is (types, shapes, strides; data pointers are NULL).
    bool (*accepts)(const tn_device *device, const struct tn_step *step);

    // TN_JOIN_* (ops/step.h): in which ways the kernels that run the two steps of a pair can share work, as
    // far as types and sizes decide it. Whether the data allow it is the caller's to know. NULL: in none.
    uint32_t (*joins)(const tn_device *device, const struct tn_step_pair *pair);
    // Bytes that the step writes as TN_JOIN_STAGE, next to its result. NULL only without `joins`.
    size_t (*staged_size)(const tn_device *device, const struct tn_step *step);

    // Prepares steps that are then submitted many times. Operands are bound. The program may be freed
    // afterwards; parameter structs, buffers and scratch must stay. Executables that never run at the same
    // time may share their scratch.
    tn_status (*prepare)(tn_device *device, const struct tn_program *program, const tn_buffer *scratch,
                         tn_executable **out);
    // Bytes of scratch that the program needs.
    size_t (*scratch_size)(tn_device *device, const struct tn_program *program);
    // Bytes at most in which `prepare` keeps weights of the program in another form, as long as their buffers
    // exist: for all programs with these weights together. NULL: none.
    size_t (*derived_size)(tn_device *device, const struct tn_program *program);
    // Bytes in which it keeps the weights in [from, from + n) in another form now. NULL: none.
    uint64_t (*derived_used)(tn_device *device, const void *from, size_t n);
    void (*executable_destroy)(tn_device *device, tn_executable *executable);
    // Name of the kernel that runs step i, for plans and profiles.
    const char *(*kernel_name)(const tn_device *device, const struct tn_step *step);
    // Launches of step i of a program whose data pointers are NULL: `put` is called with the name of the
    // entry point of each, in order; not at all if the step after it does the work. Nothing runs. NULL: one a
    // step, named by kernel_name.
    tn_status (*launches)(tn_device *device, const struct tn_program *program, int32_t i,
                          const tn_launch_sink *sink);
    // The launch that does all uploads of a program, or all its downloads. NULL: it has no such.
    const char *copy_kernel;
    // The precision to which the kernel of this matmul rounds its operands, for the text of plans:
    // TN_PRECISION_*, f32 if it does not round. NULL: not known.
    int32_t (*rounding)(const tn_device *device, const struct tn_step *step);
    // Starts the work. Errors of the work itself are returned by wait.
    tn_status (*submit)(tn_device *device, tn_executable *executable, const tn_submit_options *options);
    tn_status (*wait)(tn_device *device, tn_executable *executable);
};

// --- waiting for work that may never end (device.c) ------------------------------------------------------

// A wait for a piece of the work of a device. Backends poll, or wait in slices, and ask between them.
typedef struct tn_device_wait {
    uint64_t limit_ns; // UINT64_MAX: none
    uint64_t waited_ns, last_ns; // so far; when that was counted
} tn_device_wait;
enum { TN_DEVICE_WAIT_SLICE = 1000000000 }; // ns: the most between two questions

tn_device_wait tn_device_wait_begin(const tn_device *device);
// Whether the limit has passed. More than a slice since the last question does not count: then this process
// was stopped, by a debugger for example.
bool tn_device_wait_over(tn_device_wait *w);
// How long to wait before the next question.
uint64_t tn_device_wait_slice(const tn_device_wait *w);
// The failure of a wait that is over, for `what`; and of each later use of the device that was given up.
tn_status tn_device_wait_fail(const tn_device *device, const tn_device_wait *w, const char *what);
tn_status tn_device_fail_given_up(const tn_device *device);

// NULL-terminated; backends/registry.c lists what was built in.
extern const tn_backend *const tn_backends[];
// Names of backends known to the project but not built in, NULL-terminated.
extern const char *const tn_backends_not_built[];

// For open(): takes a zeroed tn_calloc'ed device on success.
TN_MUST_USE tn_status tn_device_add(tn_context *ctx, tn_device *device);
// For open(): why this backend has no device.
void tn_backend_absent(tn_context *ctx, const char *backend, const char *why);

#endif
