// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One CUDA device of one tenon context: its own driver context, one stream, the modules loaded so far, its
// memory.
#ifndef TN_CUDA_DEVICE_H
#define TN_CUDA_DEVICE_H

#include "backends/cuda/runtime/driver.h"
#include "core/backend.h"

enum {
#define TN_CUDA_MODULE(folder, stem, capabilities) TN_CUDA_MODULE_##stem,
#include "backends/cuda/modules.def"
    TN_CUDA_MODULE_COUNT
};

// What tenon-check --variant overrides, to check and time kernels that would not be selected. All zero:
// nothing.
typedef struct tn_cuda_variant {
    int32_t skinny_shape; // row 1 to 3 of the shapes in product/skinny/skinny_shape.c; 0: the one estimated
                          // to be the fastest
    bool skinny_switch_dependent; // programmatic dependent launch where product/skinny/skinny.c does without,
                                  // and the other way round
    bool skinny_without_wgmma;
    bool cublas_first; // cuBLASLt for every product that it accepts
} tn_cuda_variant;

enum { TN_CUDA_GIVEN_UP = -1 }; // work of the device did not end in time

typedef struct tn_cuda {
    tn_device *device;
    tn_cuda_driver driver;
    CUdevice id;
    CUcontext context;
    CUstream stream; // all work and all copies, in order
    int32_t compute; // compute capability: 90 is 9.0
    int32_t n_sms;
    int32_t max_shared; // bytes of shared memory that a block can ask for
    size_t l2_size;
    // First error after which the driver context answers nothing else: every later call fails with it. Or
    // TN_CUDA_GIVEN_UP: then nothing calls the driver any more.
    _Atomic int32_t lost;
    CUmodule modules[TN_CUDA_MODULE_COUNT];     // loaded at first use
    const struct tn_cuda_kernel_table *kernels; // kernel.h
    struct tn_cuda_tuning *tuning;              // tune.h; NULL: none
    struct tn_cuda_blas *blas;                  // product/gemm/cublas.h; NULL: none
    struct tn_cuda_upload *upload;              // upload.c; NULL until a weight is written
    struct tn_cuda_derived *derived;            // derived.h; NULL until a weight is derived
    tn_cuda_variant variant;
} tn_cuda;

static inline tn_cuda *tn_cuda_of(const tn_device *device)
{
    return device->impl;
}

// TN_OK, or a failure with the driver's name for it and what was tried. Remembers errors that end the
// context.
tn_status tn_cuda_check(tn_cuda *c, CUresult result, const char *what);
// Makes the driver context current for this thread; fails if the device is lost.
TN_MUST_USE tn_status tn_cuda_enter(tn_cuda *c);
// Waits for all that was submitted, or until an event. If the limit of the context passes the device is given
// up, and with it all that lies there.
TN_MUST_USE tn_status tn_cuda_wait_all(tn_cuda *c, const char *what);
TN_MUST_USE tn_status tn_cuda_wait_event(tn_cuda *c, CUevent event, const char *what);
bool tn_cuda_is_given_up(const tn_cuda *c);
// Before something of the device is destroyed: makes its context current, and waits for work that may still
// use it. False: the device was given up, and the driver keeps what it has.
bool tn_cuda_settle(tn_cuda *c);
void tn_cuda_memory_drop(tn_cuda *c, CUdeviceptr at); // nothing if the device was given up
// A kernel by module and name; loads the module at first use.
TN_MUST_USE tn_status tn_cuda_function(tn_cuda *c, int32_t module, const char *name, CUfunction *out);

// --- memory (device.c) -------------------------------------------------------------------------------
// The functions of core/backend.h with these names.

uint64_t tn_cuda_memory_free(const tn_device *device);
tn_status tn_cuda_buffer_create(tn_device *device, size_t size, tn_buffer *out);
void tn_cuda_buffer_destroy(tn_buffer *buffer);
tn_status tn_cuda_buffer_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n);
tn_status tn_cuda_buffer_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n);
tn_status tn_cuda_buffer_zero(tn_buffer *buffer, size_t offset, size_t n, size_t pitch, size_t rows);
tn_status tn_cuda_host_create(tn_device *device, size_t size, void **out);
void tn_cuda_host_destroy(tn_device *device, void *host);

// --- weights (upload.c) ------------------------------------------------------------------------------

struct tn_view;
// Writes a whole weight, given as the bytes of a file, to `offset` of the buffer, in the layout of layout.h.
TN_MUST_USE tn_status tn_cuda_weight_write(tn_buffer *buffer, size_t offset, const struct tn_view *weight,
                                           const void *bytes);
void tn_cuda_upload_free(tn_cuda *c);

// --- kernels (select.c) ------------------------------------------------------------------------------

struct tn_step;
struct tn_program;
uint32_t tn_cuda_precisions(const tn_device *device);
int32_t tn_cuda_rounding(const tn_device *device, const struct tn_step *step);
bool tn_cuda_accepts(const tn_device *device, const struct tn_step *step);
const char *tn_cuda_kernel_name(const tn_device *device, const struct tn_step *step);

// --- executables (executable.c) ----------------------------------------------------------------------

size_t tn_cuda_scratch_size(tn_device *device, const struct tn_program *program);
size_t tn_cuda_derived_size(tn_device *device, const struct tn_program *program);
uint64_t tn_cuda_derived_used(tn_device *device, const void *from, size_t n);
tn_status tn_cuda_launches(tn_device *device, const struct tn_program *program, int32_t i,
                           const tn_launch_sink *sink);
tn_status tn_cuda_prepare(tn_device *device, const struct tn_program *program, const tn_buffer *scratch,
                          tn_executable **out);
void tn_cuda_executable_destroy(tn_device *device, tn_executable *executable);
tn_status tn_cuda_submit(tn_device *device, tn_executable *executable, const tn_submit_options *options);
tn_status tn_cuda_wait(tn_device *device, tn_executable *executable);

#endif
