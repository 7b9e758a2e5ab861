// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Full unrolling of the short loop that follows: accumulators in arrays then live in registers at -O2.
#ifndef TN_CPU_MATMUL_UNROLL_H
#define TN_CPU_MATMUL_UNROLL_H

#if defined(__clang__)
#define TN_MATMUL_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define TN_MATMUL_UNROLL _Pragma("GCC unroll 16")
#else
#define TN_MATMUL_UNROLL
#endif

#ifndef AHEAD
#define AHEAD 4096
#endif
#ifndef HINT
#define HINT 3
#endif
#define TN_MATMUL_PREFETCH(p, size)                                     \
    do {                                                                \
        TN_MATMUL_UNROLL                                                \
        for (int line_ = 0; line_ < (size); line_ += 64) __builtin_prefetch((p) + AHEAD + line_, 0, HINT); \
    } while (0)

#endif
