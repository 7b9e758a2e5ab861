// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the fake OpenBLAS counts, and how it behaves.
#ifndef TN_TESTS_FAKE_OPENBLAS_H
#define TN_TESTS_FAKE_OPENBLAS_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct fake_openblas {
    int parallel; // 0: no threads, 1: its own, 2: OpenMP
    _Atomic int n_threads;
    _Atomic long n_calls, n_wrong; // of sgemm; those with parameters that the backend must not give
    _Atomic bool sleeps, does_nothing;
} fake_openblas;

#endif
