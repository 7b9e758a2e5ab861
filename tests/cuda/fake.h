// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Steers the fake driver library; fake_get is looked up in it with dlsym. What a launch does is left to the
// two functions below: nothing (fake_kernels.c), or the emulated kernels (emulated/).
#ifndef TN_TESTS_CUDA_FAKE_H
#define TN_TESTS_CUDA_FAKE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_state {
    size_t memory, used; // bytes of the device
    int compute;         // 90: capability 9.0
    int n_sms, l2_size; // bytes
    int64_t n_calls;
    int64_t n_alive;    // contexts, streams, memory, graphs, events, modules
    int64_t n_captures; // begun and not ended
    int64_t n_launches; // of kernels, captured ones too
    int64_t n_captured; // launches of kernels, and functions of the host, into what a stream captures
    int64_t n_alone;    // kernels launched so that they start when those before have ended
    int64_t n_host;     // functions of the host that have run (fake_launch_host)
    float host_ms;      // between events with such a function between them; 0.5 without
    int64_t fail_at;    // number of the call that fails, 0: none
    CUresult error;     // what it gives
    bool fail_stays;    // and every call after it
    CUresult lost;      // not CUDA_SUCCESS: all calls fail
    char failed[64];    // name of the call that failed
    int64_t n_works;    // launches, copies and fills that a stream was given
    int64_t hang_at;    // number of the one that never ends, 0: none. Then the stream is not ready for good
    int64_t asked_at;   // number of the last call that was answered so
    int64_t n_blocked;  // calls that would have waited for it without a limit; they fail
} fake_state;

fake_state *fake_get(void);
// What the end of a process does: all that is left is freed. Looked up with dlsym.
void fake_end(void);

// What a library with kernels of its own launches: a function of the host on a stream, or into what it
// captures. It writes n bytes of device memory. Looked up in the driver library with dlsym.
typedef void fake_host_function(const void *args);
CUresult fake_launch_host(CUstream stream, fake_host_function *function, const void *args, size_t args_size,
                          void *written, size_t n);

typedef struct fake_grid {
    uint32_t x, y, z, threads;
    uint32_t shared;  // bytes of dynamic shared memory
    uint32_t cluster; // blocks along x, at least 1
} fake_grid;

// The entry point of that name in an image, NULL: none; the bytes of its argument.
const void *fake_find(const char *image, const char *name);
size_t fake_args_size(const void *function);
CUresult fake_run(const fake_grid *grid, const void *function, const void *args);
bool fake_runs_host(void); // or leaves out functions of the host like all kernels
// Device memory begins, unwritten, and ends; is written; has a copy from the host, in which poison
// (tests/check/poison.h) counts as not written.
void fake_memory_begin(void *at, size_t size);
void fake_memory_end(void *at);
void fake_memory_written(void *at, size_t n);
void fake_memory_copied(void *at, size_t n);

// What cuTensorMapEncodeTiled writes.
typedef struct fake_tensor_map {
    uint64_t magic;
    char *data;
    uint64_t dims[2], stride; // elements; bytes
    uint32_t box[2], element, swizzle;
} fake_tensor_map;
#define FAKE_TENSOR_MAP_MAGIC 0x70616d726f736e74u

#endif
