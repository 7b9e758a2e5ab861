// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// wgmma of e4m3 with 64 columns (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions), for
// gemm_e4m3.cu: d[64 x 64] = a b^T, 32 of k, both operands in shared memory, sums in f32 of few bits. An
// instruction is 2 * 64 * 64 * 32 operations and reads 4096 bytes of shared memory, as many as its 32 clocks
// allow; 8192 operations a clock are its limit.
#ifndef TN_CUDA_GEMM_WGMMA_E4M3_CUH
#define TN_CUDA_GEMM_WGMMA_E4M3_CUH

#include "backends/cuda/mma.cuh"

#ifdef TN_HOPPER
// clang-format off
#define GEMM_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                   "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define GEMM_D32 GEMM_D8(0), GEMM_D8(8), GEMM_D8(16), GEMM_D8(24)
static __device__ __forceinline__ void gemm_e4m3_n64(float (&d)[32], uint64_t a, uint64_t b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, p, 1, 1;\n}\n"
                 : GEMM_D32 : "l"(a), "l"(b), "r"(0));
}

// Waits until all but `pending` groups have ended, with the sums as operands, so that the compiler moves
// nothing that reads them before it.
template <int pending> static __device__ __forceinline__ void gemm_wait_for(float (&d)[32])
{
    asm volatile("wgmma.wait_group.sync.aligned %32;" : GEMM_D32 : "n"(pending) : "memory");
}
// clang-format on
#undef GEMM_D32
#undef GEMM_D8
#endif

#endif
