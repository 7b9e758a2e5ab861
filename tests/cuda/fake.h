// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Steers the fake driver library; fake_get is looked up in it with dlsym.
#ifndef TN_TESTS_CUDA_FAKE_H
#define TN_TESTS_CUDA_FAKE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_state {
    size_t memory, used; // bytes of the device
    int compute;         // 90: capability 9.0
    int64_t n_calls;
    int64_t n_alive;    // contexts, streams, memory, graphs, events, modules
    int64_t n_captures; // begun and not ended
    int64_t fail_at;    // number of the call that fails, 0: none
    CUresult error;     // what it gives
    bool fail_stays;    // and every call after it
    CUresult lost;      // not CUDA_SUCCESS: all calls fail
    char failed[64];    // name of the call that failed
} fake_state;

fake_state *fake_get(void);

#endif
