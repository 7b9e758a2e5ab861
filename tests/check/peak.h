// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Loops that do nothing but arithmetic, per level: n rounds of CHECK_PEAK_CHAINS independent vector
// operations.
#ifndef TN_TESTS_CHECK_PEAK_H
#define TN_TESTS_CHECK_PEAK_H

#include <stdint.h>

// More than latency times units of any core (4 cycles, 2 units), fewer than its registers.
enum { CHECK_PEAK_CHAINS = 12 };
#define CHECK_PEAK_REPEAT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

// Each returns something of the result, so that the loop stays.
float check_peak_fma_sse2(int64_t n);   // 4 elements per vector
float check_peak_fma_avx2(int64_t n);   // 8
float check_peak_fma_avx512(int64_t n); // 16
// Products of 8-bit integers summed in 32 bits.
int32_t check_peak_dot_avx2(int64_t n);       // 32
int32_t check_peak_dot_avx512(int64_t n);     // 64
int32_t check_peak_dot_avx512vnni(int64_t n); // 64

#endif
