// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// wgmma with 64 rows of weights in registers and 16 to 88 rows of x in shared memory, for
// skinny_stream.cuh: one function for each number of columns, and the waits for their
// sums. Nothing here moves bytes; those files say what bounds their kernels.
#ifndef TN_CUDA_SKINNY_PRODUCTS_CUH
#define TN_CUDA_SKINNY_PRODUCTS_CUH

#include "backends/cuda/mma.cuh"

#ifdef TN_HOPPER
// clang-format off
#define SKINNY_D4(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define SKINNY_D16(j) SKINNY_D4(j), SKINNY_D4(j + 1), SKINNY_D4(j + 2), SKINNY_D4(j + 3)
#define SKINNY_A "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate)
// d[64 x N] = a b^T + (accumulate ? d : 0), 16 of k; a in registers in the layout of mma.m16n8k16.
static __device__ __forceinline__ void skinny_wgmma(float (&d)[2][4], const uint32_t (&a)[4], uint64_t b,
                                                    int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %13, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                 "{%8, %9, %10, %11}, %12, p, 1, 1, 0;\n}\n"
                 : SKINNY_D4(0), SKINNY_D4(1) : SKINNY_A);
}
static __device__ __forceinline__ void skinny_wgmma(float (&d)[4][4], const uint32_t (&a)[4], uint64_t b,
                                                    int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                 "%9, %10, %11, %12, %13, %14, %15}, "
                 "{%16, %17, %18, %19}, %20, p, 1, 1, 0;\n}\n"
                 : SKINNY_D16(0) : SKINNY_A);
}
static __device__ __forceinline__ void skinny_wgmma(float (&d)[5][4], const uint32_t (&a)[4], uint64_t b,
                                                    int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %25, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                 "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19}, "
                 "{%20, %21, %22, %23}, %24, p, 1, 1, 0;\n}\n"
                 : SKINNY_D16(0), SKINNY_D4(4) : SKINNY_A);
}
static __device__ __forceinline__ void skinny_wgmma(float (&d)[6][4], const uint32_t (&a)[4], uint64_t b,
                                                    int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %29, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                 "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23}, "
                 "{%24, %25, %26, %27}, %28, p, 1, 1, 0;\n}\n"
                 : SKINNY_D16(0), SKINNY_D4(4), SKINNY_D4(5) : SKINNY_A);
}
static __device__ __forceinline__ void skinny_wgmma(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b,
                                                    int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                 "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                 "%27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}\n"
                 : SKINNY_D16(0), SKINNY_D16(4) : SKINNY_A);
}
static __device__ __forceinline__ void skinny_wgmma(float (&d)[9][4], const uint32_t (&a)[4], uint64_t b,
                                                    int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %41, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n72k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
                 "%25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35}, "
                 "{%36, %37, %38, %39}, %40, p, 1, 1, 0;\n}\n"
                 : SKINNY_D16(0), SKINNY_D16(4), SKINNY_D4(8) : SKINNY_A);
}
static __device__ __forceinline__ void skinny_wgmma(float (&d)[10][4], const uint32_t (&a)[4], uint64_t b,
                                                    int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %45, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
                 "%25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, "
                 "{%40, %41, %42, %43}, %44, p, 1, 1, 0;\n}\n"
                 : SKINNY_D16(0), SKINNY_D16(4), SKINNY_D4(8), SKINNY_D4(9) : SKINNY_A);
}
static __device__ __forceinline__ void skinny_wgmma(float (&d)[11][4], const uint32_t (&a)[4], uint64_t b,
                                                    int accumulate)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %49, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n88k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
                 "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
                 "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43}, "
                 "{%44, %45, %46, %47}, %48, p, 1, 1, 0;\n}\n"
                 : SKINNY_D16(0), SKINNY_D16(4), SKINNY_D4(8), SKINNY_D4(9), SKINNY_D4(10) : SKINNY_A);
}

// Waits until all but the last `pending` batches are done. The sums are operands, so that the compiler moves
// nothing that reads them before this.
template <int pending> static __device__ __forceinline__ void skinny_wgmma_wait(float (&d)[2][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %8;" : SKINNY_D4(0), SKINNY_D4(1) : "n"(pending) : "memory");
}
template <int pending> static __device__ __forceinline__ void skinny_wgmma_wait(float (&d)[4][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %16;" : SKINNY_D16(0) : "n"(pending) : "memory");
}
template <int pending> static __device__ __forceinline__ void skinny_wgmma_wait(float (&d)[5][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %20;"
                 : SKINNY_D16(0), SKINNY_D4(4) : "n"(pending) : "memory");
}
template <int pending> static __device__ __forceinline__ void skinny_wgmma_wait(float (&d)[6][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %24;"
                 : SKINNY_D16(0), SKINNY_D4(4), SKINNY_D4(5) : "n"(pending) : "memory");
}
template <int pending> static __device__ __forceinline__ void skinny_wgmma_wait(float (&d)[8][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %32;"
                 : SKINNY_D16(0), SKINNY_D16(4) : "n"(pending) : "memory");
}
template <int pending> static __device__ __forceinline__ void skinny_wgmma_wait(float (&d)[9][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %36;"
                 : SKINNY_D16(0), SKINNY_D16(4), SKINNY_D4(8) : "n"(pending) : "memory");
}
template <int pending> static __device__ __forceinline__ void skinny_wgmma_wait(float (&d)[10][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %40;"
                 : SKINNY_D16(0), SKINNY_D16(4), SKINNY_D4(8), SKINNY_D4(9) : "n"(pending) : "memory");
}
template <int pending> static __device__ __forceinline__ void skinny_wgmma_wait(float (&d)[11][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %44;"
                 : SKINNY_D16(0), SKINNY_D16(4), SKINNY_D4(8), SKINNY_D4(9), SKINNY_D4(10)
                 : "n"(pending) : "memory");
}
#undef SKINNY_A
#undef SKINNY_D16
#undef SKINNY_D4
// clang-format on
#endif

#endif
