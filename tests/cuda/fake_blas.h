// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Steers the fake cuBLASLt; fake_blas_get is looked up in it with dlsym.
#ifndef TN_TESTS_CUDA_FAKE_BLAS_H
#define TN_TESTS_CUDA_FAKE_BLAS_H

#include <stdint.h>

typedef struct fake_blas {
    int64_t n_calls;    // that have a status
    int64_t n_alive;    // handles, products, layouts, preferences
    int64_t n_asked;    // for algorithms
    int64_t n_products; // multiplied, or captured
    int64_t fail_at;    // number of the call that fails, 0: none
    int32_t error;      // what it gives
    char failed[64];    // name of the call that failed
} fake_blas;

fake_blas *fake_blas_get(void);

#endif
