// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The instructions of experts.cuh: wgmma with 64 rows of weights in registers and 16, 32, 64 or 96 rows of x
// in shared memory, f16 with sums in f32. Nothing here moves bytes; that file says what bounds its kernels.
#ifndef TN_CUDA_EXPERTS_PRODUCTS_CUH
#define TN_CUDA_EXPERTS_PRODUCTS_CUH

#include "backends/cuda/mma.cuh"

#ifdef TN_HOPPER
template <int N> using experts_sums = float[N / 8][4];

// Descriptor of a K-major tile in rows of 32 bytes with the 32-byte swizzle, starting at a multiple of 256:
// the halves of a row change places in rows 4 to 7 of eight.
static __device__ __forceinline__ uint64_t experts_tile32(const void *tile)
{
    return (uint64_t)((tn_shared(tile) & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(256 >> 4) << 32 |
           (uint64_t)3 << 62;
}

// clang-format off
#define EXPERTS_D4(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define EXPERTS_D16(j) EXPERTS_D4(j), EXPERTS_D4(j + 1), EXPERTS_D4(j + 2), EXPERTS_D4(j + 3)
#define EXPERTS_A "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate)
// d[64 x N] = a b^T + (accumulate ? d : 0), 16 of k; a in the layout of mma.m16n8k16.
static __device__ __forceinline__ void experts_wgmma(float (&d)[2][4], const uint32_t (&a)[4], uint64_t b,
                                                     int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %13, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, "
                 "{%8, %9, %10, %11}, %12, p, 1, 1, 0;\n}\n"
                 : EXPERTS_D4(0), EXPERTS_D4(1) : EXPERTS_A);
}
static __device__ __forceinline__ void experts_wgmma(float (&d)[4][4], const uint32_t (&a)[4], uint64_t b,
                                                     int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
                 "%15}, "
                 "{%16, %17, %18, %19}, %20, p, 1, 1, 0;\n}\n"
                 : EXPERTS_D16(0) : EXPERTS_A);
}
static __device__ __forceinline__ void experts_wgmma(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b,
                                                     int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
                 "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, "
                 "%29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}\n"
                 : EXPERTS_D16(0), EXPERTS_D16(4) : EXPERTS_A);
}
static __device__ __forceinline__ void experts_wgmma(float (&d)[12][4], const uint32_t (&a)[4], uint64_t b,
                                                     int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %53, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, "
                 "{%48, %49, %50, %51}, %52, p, 1, 1, 0;\n}\n"
                 : EXPERTS_D16(0), EXPERTS_D16(4), EXPERTS_D16(8) : EXPERTS_A);
}
#undef EXPERTS_A
#undef EXPERTS_D16
#undef EXPERTS_D4
// clang-format on

// Waits for all products. The sums are operands, so that the compiler moves nothing that reads them before.
template <int N> static __device__ __forceinline__ void experts_wait(experts_sums<N> &d)
{
    tn_wgmma_wait<0>();
#pragma unroll
    for (int j = 0; j < N / 8; j++)
        asm volatile("" : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])::"memory");
}
#endif

#endif
