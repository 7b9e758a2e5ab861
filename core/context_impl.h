// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of tn_context, for core only.
#ifndef TN_CORE_CONTEXT_IMPL_H
#define TN_CORE_CONTEXT_IMPL_H

#include "core/context.h"
#include "core/threads/thread_pool.h"

#include <stdatomic.h>

enum { TN_ALLOC_ALIGN = 64 }; // bytes, of every allocation

enum { TN_ERROR_SIZE = 1024, TN_MAX_DEVICES = 32 };

struct tn_context {
    tn_context_config cfg; // constant after creation
    uint64_t id;           // the time of creation
    atomic_flag error_lock;
    char error_text[TN_ERROR_SIZE];
    _Atomic size_t memory, memory_peak;
    _Atomic uint64_t n_allocs;
    tn_device *devices[TN_MAX_DEVICES]; // constant after creation
    int32_t n_devices;
    char cache_dir[1024];       // copy of cfg.cache_dir, "": none
    char absent[512];           // one line per backend without a device: why
    atomic_flag files_lock;     // of the list
    struct tn_open_file *files; // that are mapped (os/file_map.c)
    _Atomic int32_t loading_cancelled;
    char missing_backend[32]; // cfg.backend if it has no device, else ""
    tn_pool pool;
};

// A failure on another thread that does work for a call, for the thread that made the call. Zeros at first.
typedef struct tn_failure {
    atomic_flag taken;
    _Atomic bool ready;
    char text[TN_ERROR_SIZE];
} tn_failure;
// Failures on this thread so far.
uint64_t tn_fail_count(void);
// Keeps the message of this thread's last failure, unless another thread's is kept already.
void tn_fail_take(tn_context *ctx, tn_failure *out);
// It becomes this thread's.
void tn_fail_give(tn_context *ctx, const tn_failure *failure);

#endif
