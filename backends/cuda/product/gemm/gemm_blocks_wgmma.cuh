// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The instructions of gemm_blocks.cuh for 160 to 240 rows of x, as tn_wgmma_from_registers (mma.cuh) has
// them for 128 and 256.
#ifndef TN_CUDA_GEMM_BLOCKS_WGMMA_CUH
#define TN_CUDA_GEMM_BLOCKS_WGMMA_CUH

#include "backends/cuda/mma.cuh"

#ifdef TN_HOPPER
// clang-format off
#define GEMM_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                   "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define GEMM_D32(i) GEMM_D8(i), GEMM_D8(i + 8), GEMM_D8(i + 16), GEMM_D8(i + 24)

#define GEMM_R80 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define GEMM_R88 GEMM_R80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define GEMM_R96 GEMM_R88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define GEMM_R104 GEMM_R96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define GEMM_R112 GEMM_R104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define GEMM_R120 GEMM_R112 ", %112, %113, %114, %115, %116, %117, %118, %119"

// n rows of x. The other numbers are those of the operands behind the sums.
#define GEMM_WGMMA(n, sums, a0, a1, a2, a3, b0, begun, ...) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #begun ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.f16.f16 {" sums "}, " \
                 "{%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b0 ", p, 1, 1, 0;\n}\n" \
                 : __VA_ARGS__ \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))
// clang-format on

static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[80], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    GEMM_WGMMA(160, GEMM_R80, 80, 81, 82, 83, 84, 85, GEMM_D32(0), GEMM_D32(32), GEMM_D8(64), GEMM_D8(72));
}

static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[88], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    GEMM_WGMMA(176, GEMM_R88, 88, 89, 90, 91, 92, 93, GEMM_D32(0), GEMM_D32(32), GEMM_D8(64), GEMM_D8(72),
               GEMM_D8(80));
}

static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[96], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    GEMM_WGMMA(192, GEMM_R96, 96, 97, 98, 99, 100, 101, GEMM_D32(0), GEMM_D32(32), GEMM_D32(64));
}

static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[104], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    GEMM_WGMMA(208, GEMM_R104, 104, 105, 106, 107, 108, 109, GEMM_D32(0), GEMM_D32(32), GEMM_D32(64),
               GEMM_D8(96));
}

static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[112], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    GEMM_WGMMA(224, GEMM_R112, 112, 113, 114, 115, 116, 117, GEMM_D32(0), GEMM_D32(32), GEMM_D32(64),
               GEMM_D8(96), GEMM_D8(104));
}

static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[120], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    GEMM_WGMMA(240, GEMM_R120, 120, 121, 122, 123, 124, 125, GEMM_D32(0), GEMM_D32(32), GEMM_D32(64),
               GEMM_D8(96), GEMM_D8(104), GEMM_D8(112));
}

#undef GEMM_WGMMA
#undef GEMM_R120
#undef GEMM_R112
#undef GEMM_R104
#undef GEMM_R96
#undef GEMM_R88
#undef GEMM_R80
#undef GEMM_D32
#undef GEMM_D8
#endif // TN_HOPPER

#endif
