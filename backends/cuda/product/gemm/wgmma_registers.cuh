// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// wgmma with its first operand in registers (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions), for
// gemm_blocks.cuh: d[64 x n] += a b^T, 16 of k, f16 operands, sums in f32. An instruction is 2 * 64 * n * 16
// operations and reads n * 32 bytes of shared memory; 4096 operations a clock are its limit.
#ifndef TN_CUDA_GEMM_WGMMA_REGISTERS_CUH
#define TN_CUDA_GEMM_WGMMA_REGISTERS_CUH

#include "backends/cuda/mma.cuh"

#ifdef TN_HOPPER
// clang-format off
#define GEMM_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                   "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define GEMM_D32(i) GEMM_D8(i), GEMM_D8(i + 8), GEMM_D8(i + 16), GEMM_D8(i + 24)
#define GEMM_FROM_REGISTERS_N128 \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63" "}, " \
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}\n" \
                 : GEMM_D32(0), GEMM_D32(32) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))
#define GEMM_FROM_REGISTERS_N256 \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %133, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
                 "%96, %97, %98, %99, %100, %101, %102, %103, " \
                 "%104, %105, %106, %107, %108, %109, %110, %111, " \
                 "%112, %113, %114, %115, %116, %117, %118, %119, " \
                 "%120, %121, %122, %123, %124, %125, %126, %127" "}, " \
                 "{%128, %129, %130, %131}, %132, p, 1, 1, 0;\n}\n" \
                 : GEMM_D32(0), GEMM_D32(32), GEMM_D32(64), GEMM_D32(96) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))
// clang-format on

// d[64 x n] = a b^T + (accumulate ? d : 0) with f16 operands, 16 of K. a is in registers, in the layout of
// mma.m16n8k16: warp w of the warpgroup has rows 16 w to 16 w + 15, lane l has of rows l/4 (a[0], a[2]) and
// l/4 + 8 (a[1], a[3]) the values 2(l%4) and 2(l%4) + 1, in a[2] and a[3] those 8 further on.
static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[64], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    GEMM_FROM_REGISTERS_N128;
}

static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[128], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    GEMM_FROM_REGISTERS_N256;
}

#undef GEMM_FROM_REGISTERS_N256
#undef GEMM_FROM_REGISTERS_N128
#undef GEMM_D32
#undef GEMM_D8
#endif // TN_HOPPER

#endif
