// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiler hints of the x86 kernels of matrix products.
#ifndef TN_CPU_X86_MATMUL_LOOPS_H
#define TN_CPU_X86_MATMUL_LOOPS_H

#include "core/compiler.h"

// Full unrolling of the short loop that follows: accumulators in arrays then live in registers at -O2.
#if defined(__clang__)
#define TN_MATMUL_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define TN_MATMUL_UNROLL _Pragma("GCC unroll 16")
#else
#define TN_MATMUL_UNROLL
#endif

// Fetches the lines of the `size` bytes that follow p by PREFETCH_AHEAD. The rows kernels run too many
// instructions per line for the core to look far enough ahead by itself: measured with Q4_K and m = 1 on
// Sapphire Rapids, 8.1 GB/s per core without and 15.3 with it, 2 to 8 KiB alike.
#define TN_MATMUL_PREFETCH_AHEAD 4096
#define TN_MATMUL_PREFETCH(p, size)                                                                            \
    do {                                                                                                       \
        TN_MATMUL_UNROLL                                                                                       \
        for (int line_ = 0; line_ < (size); line_ += 64) TN_PREFETCH((p) + TN_MATMUL_PREFETCH_AHEAD + line_);  \
    } while (0)

#endif
