// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The instructions of dense.cu: wgmma with 16 to 112 columns, and tensor copies of weights.
#ifndef TN_CUDA_DENSE_WGMMA_CUH
#define TN_CUDA_DENSE_WGMMA_CUH

#include "backends/cuda/mma.cuh"

#ifdef TN_HOPPER
// createpolicy: weights are read once, so they leave L2 before anything else does.
static __device__ __forceinline__ uint64_t dense_evict_first()
{
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// cp.async.bulk.tensor with a cache policy.
static __device__ __forceinline__ void dense_load(void *to, const void *map, int x, int y, uint64_t *bar,
                                                  uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(tn_shared(to)),
                 "l"(map), "r"(x), "r"(y), "r"(tn_shared(bar)), "l"(policy)
                 : "memory");
}

// mapa and ld.shared::cluster: four floats at the same place in another block of the cluster.
static __device__ __forceinline__ float4 dense_cluster_load(const float4 *at, uint32_t rank)
{
    float4 v;
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [at];\n}\n"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(tn_shared(at)), "r"(rank)
                 : "memory");
    return v;
}

// d[64 x n] = a b^T + (accumulate ? d : 0), operands and sums as in tn_wgmma (mma.cuh).
// clang-format off
#define DENSE_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define DENSE_D32(i) DENSE_D8(i), DENSE_D8(i + 8), DENSE_D8(i + 16), DENSE_D8(i + 24)
#define DENSE_WGMMA_N16(type) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32." type "." type " {" \
                 "%0, %1, %2, %3, %4, %5, %6, %7}, " \
                 "%8, %9, p, 1, 1, 0, 0;\n}\n" \
                 : DENSE_D8(0) : "l"(a), "l"(b), "r"(accumulate))
#define DENSE_WGMMA_N32(type) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type " {" \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, " \
                 "%16, %17, p, 1, 1, 0, 0;\n}\n" \
                 : DENSE_D8(0), DENSE_D8(8) : "l"(a), "l"(b), "r"(accumulate))
#define DENSE_WGMMA_N64(type) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, " \
                 "%32, %33, p, 1, 1, 0, 0;\n}\n" \
                 : DENSE_D32(0) : "l"(a), "l"(b), "r"(accumulate))
#define DENSE_WGMMA_N96(type) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n96k16.f32." type "." type " {" \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, " \
                 "%48, %49, p, 1, 1, 0, 0;\n}\n" \
                 : DENSE_D32(0), DENSE_D8(32), DENSE_D8(40) : "l"(a), "l"(b), "r"(accumulate))
#define DENSE_WGMMA_N112(type) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %58, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n112k16.f32." type "." type " {" \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
                 "%48, %49, %50, %51, %52, %53, %54, %55}, " \
                 "%56, %57, p, 1, 1, 0, 0;\n}\n" \
                 : DENSE_D32(0), DENSE_D8(32), DENSE_D8(40), DENSE_D8(48) \
                 : "l"(a), "l"(b), "r"(accumulate))
// clang-format on

template <int type>
static __device__ __forceinline__ void dense_wgmma(float (&d)[8], uint64_t a, uint64_t b, int accumulate)
{
    if constexpr (type == TN_BF16)
        DENSE_WGMMA_N16("bf16");
    else
        DENSE_WGMMA_N16("f16");
}

template <int type>
static __device__ __forceinline__ void dense_wgmma(float (&d)[16], uint64_t a, uint64_t b, int accumulate)
{
    if constexpr (type == TN_BF16)
        DENSE_WGMMA_N32("bf16");
    else
        DENSE_WGMMA_N32("f16");
}

template <int type>
static __device__ __forceinline__ void dense_wgmma(float (&d)[32], uint64_t a, uint64_t b, int accumulate)
{
    if constexpr (type == TN_BF16)
        DENSE_WGMMA_N64("bf16");
    else
        DENSE_WGMMA_N64("f16");
}

template <int type>
static __device__ __forceinline__ void dense_wgmma(float (&d)[48], uint64_t a, uint64_t b, int accumulate)
{
    if constexpr (type == TN_BF16)
        DENSE_WGMMA_N96("bf16");
    else
        DENSE_WGMMA_N96("f16");
}

template <int type>
static __device__ __forceinline__ void dense_wgmma(float (&d)[56], uint64_t a, uint64_t b, int accumulate)
{
    if constexpr (type == TN_BF16)
        DENSE_WGMMA_N112("bf16");
    else
        DENSE_WGMMA_N112("f16");
}

// Called after all products have been waited for. The sums are operands, so that the compiler moves nothing
// that reads them before the wait. They are no operands of the wait itself: with two sets of sums ptxas then
// runs one product after the other (C7515).
static __device__ __forceinline__ void dense_settle(float (&d)[8])
{
    asm volatile("" : DENSE_D8(0) : : "memory");
}

static __device__ __forceinline__ void dense_settle(float (&d)[16])
{
    asm volatile("" : DENSE_D8(0), DENSE_D8(8) : : "memory");
}

static __device__ __forceinline__ void dense_settle(float (&d)[32])
{
    asm volatile("" : DENSE_D32(0) : : "memory");
}

static __device__ __forceinline__ void dense_settle(float (&d)[48])
{
    asm volatile("" : DENSE_D32(0), DENSE_D8(32), DENSE_D8(40) : : "memory");
}

static __device__ __forceinline__ void dense_settle(float (&d)[56])
{
    asm volatile("" : DENSE_D32(0), DENSE_D8(32), DENSE_D8(40), DENSE_D8(48) : : "memory");
}
#undef DENSE_WGMMA_N16
#undef DENSE_WGMMA_N32
#undef DENSE_WGMMA_N64
#undef DENSE_WGMMA_N96
#undef DENSE_WGMMA_N112
#undef DENSE_D32
#undef DENSE_D8
#endif // TN_HOPPER

#endif
