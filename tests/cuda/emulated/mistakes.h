// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels with one mistake each, and what becomes of their launch: one block of 64 threads, 64 floats of
// dynamic shared memory, x of 128 floats, 64 of which hold their index; nobody has written the others.
// MISTAKE(name, what the launch gives: FINE, NANS (x[0] is NaN afterwards), FAILS)
#ifndef TN_TESTS_EMULATED_MISTAKES_H
#define TN_TESTS_EMULATED_MISTAKES_H

#define MISTAKES(MISTAKE)            \
    MISTAKE(none, FINE)              \
    MISTAKE(barrier, FAILS)          \
    MISTAKE(exchange, FAILS)         \
    MISTAKE(mbarrier, FAILS)         \
    MISTAKE(no_mbarrier, FAILS)      \
    MISTAKE(mask, FAILS)             \
    MISTAKE(behind_dynamic, FAILS)   \
    MISTAKE(behind_variable, FAILS)  \
    MISTAKE(copy_outside, FAILS)     \
    MISTAKE(read_outside, FAILS)     \
    MISTAKE(write_outside, FAILS)    \
    MISTAKE(unwritten, FAILS)        \
    MISTAKE(unwritten_copy, FAILS)   \
    MISTAKE(misaligned, FAILS)       \
    MISTAKE(refilled, FINE)          \
    MISTAKE(no_proxy_fence, FAILS)   \
    MISTAKE(trap, FAILS)             \
    MISTAKE(unknown, FAILS)          \
    MISTAKE(nothing_there, NANS)     \
    MISTAKE(no_wait, NANS)           \
    MISTAKE(no_bulk_wait, NANS)

typedef struct mistake_args {
    float *x;
    int n; // 64, which the compiler does not know
} mistake_args;

#endif
