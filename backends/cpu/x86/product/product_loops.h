// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiler hints of the x86 kernels of matrix products.
#ifndef TN_CPU_X86_PRODUCT_LOOPS_H
#define TN_CPU_X86_PRODUCT_LOOPS_H

#include "core/compiler.h"

#include <immintrin.h>

#define TN_MATMUL_UNROLL TN_UNROLL

// Fetches the lines of `size` bytes that the rows kernels read next: far ahead into L2, near into L1. They
// run too many instructions per line for the core to look far enough ahead by itself. Measured with m = 1 and
// two threads on Sapphire Rapids (28 to 31 GB/s read rate), GB/s:       Q4_K  Q4_0  Q8_0
//   none                                                    16.2  16.7  18.9
//   L1 only, 4 KiB ahead                                    23.2  23.0  25.5
//   L2 8 KiB and L1 1 KiB ahead                             24.0  24.3  27.0
// Since then Q4_0 and Q4_K run fewer instructions; L1 2 KiB ahead reads 1 to 2 % faster than 1 KiB with them
// and the same with Q8_0; 512 bytes, 3 or 4 KiB, and 4, 12 or 16 KiB for L2 are no better.
enum { MATMUL_PREFETCH_L2 = 8192, MATMUL_PREFETCH_L1 = 2048 };
#define TN_MATMUL_PREFETCH(p, size)                                                                          \
    do {                                                                                                     \
        TN_MATMUL_UNROLL                                                                                     \
        for (int line_ = 0; line_ < (size); line_ += 64) {                                                   \
            _mm_prefetch((const char *)(p) + MATMUL_PREFETCH_L2 + line_, _MM_HINT_T1);                       \
            _mm_prefetch((const char *)(p) + MATMUL_PREFETCH_L1 + line_, _MM_HINT_T0);                       \
        }                                                                                                    \
    } while (0)

#endif
