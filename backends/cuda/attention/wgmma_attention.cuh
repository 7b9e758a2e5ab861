// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// PTX of attention on compute capability 9.0: products of a warpgroup (PTX ISA, wgmma), tensor copies (cp.async.bulk.tensor)
// and the barriers between them (mbarrier, bar, setmaxnreg). Only code for sm_90a may call them; barriers and tn_bulk_copy_once() any from 9.0 on.
#ifndef TN_CUDA_WGMMA_ATTENTION_CUH
#define TN_CUDA_WGMMA_ATTENTION_CUH

#include "backends/cuda/attention/mma_attention.cuh"

// --- barriers --------------------------------------------------------------------------------------------

static __device__ __forceinline__ void tn_barrier_init(uint64_t *b, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tn_shared_address(b)), "r"(count) : "memory");
}

// So that tensor copies see the initialised barriers.
static __device__ __forceinline__ void tn_barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ void tn_barrier_expect(uint64_t *b, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(tn_shared_address(b)), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void tn_barrier_arrive(uint64_t *b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(tn_shared_address(b)) : "memory");
}

// Until the phase of this parity is over. try_wait may return early: it is asked again.
static __device__ __forceinline__ void tn_barrier_wait(uint64_t *b, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(tn_shared_address(b)), "r"(parity) : "memory");
}

// Barriers by number, of n threads: 0 is __syncthreads.
static __device__ __forceinline__ void tn_named_sync(int id, int n)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory");
}

static __device__ __forceinline__ void tn_named_arrive(int id, int n)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory");
}

// What this thread stored in shared memory is seen by wgmma and tensor copies.
static __device__ __forceinline__ void tn_async_proxy_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Registers of each thread of the warpgroup from here on.
template <int N> static __device__ __forceinline__ void tn_registers_give()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> static __device__ __forceinline__ void tn_registers_take()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

// --- tensor copies ---------------------------------------------------------------------------------------

// `bytes` bytes, of which the barrier is told; all multiples of 16. They are read once: the L2 cache drops them before others.
static __device__ __forceinline__ void tn_bulk_copy_once(void *to, const void *from, uint32_t bytes, uint64_t *b)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(tn_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(tn_shared_address(b)), "l"(policy) : "memory");
}

// The box at column x, row y of a matrix; its bytes are counted by the barrier.
static __device__ __forceinline__ void tn_tensor_load(void *to, const void *map, int x, int y, uint64_t *b)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     tn_shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(tn_shared_address(b)) : "memory");
}

static __device__ __forceinline__ void tn_tensor_prefetch(const void *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// --- products --------------------------------------------------------------------------------------------

// Matrix descriptor of rows of 128 bytes, swizzled by 128 bytes (layout 1); offsets in bytes.
static __device__ __forceinline__ uint64_t tn_wgmma_matrix(const void *at, uint32_t leading, uint32_t stride)
{
    return (uint64_t)(tn_shared_address(at) >> 4 & 0x3fff) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | (uint64_t)1 << 62;
}

static __device__ __forceinline__ void tn_wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void tn_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> static __device__ __forceinline__ void tn_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Accumulators are read after what stands before this, and written before what stands behind it.
template <int N> static __device__ __forceinline__ void tn_wgmma_keep(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

#define TN_F8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

// d[64 x N] = a b^T, plus d if `more`; f16, both with the summed dimension contiguous, 16 of it. Registers 4 j, 4 j + 1 of lane l
// of warp w are row 16 w + l / 4, columns 8 j + 2 (l % 4) + {0, 1}; 4 j + 2, 4 j + 3 the same in row + 8.
template <int N> static __device__ __forceinline__ void tn_wgmma_ss(float (&d)[N / 2], uint64_t a, uint64_t b, int more)
{
    if constexpr (N == 64)
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "setp.ne.b32 p, %34, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                     "}, %32, %33, p, 1, 1, 0, 0;\n"
                     "}"
                     : TN_F8(0), TN_F8(8), TN_F8(16), TN_F8(24)
                     : "l"(a), "l"(b), "r"(more));
    else
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "setp.ne.b32 p, %66, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                     "}, %64, %65, p, 1, 1, 0, 0;\n"
                     "}"
                     : TN_F8(0), TN_F8(8), TN_F8(16), TN_F8(24), TN_F8(32), TN_F8(40), TN_F8(48), TN_F8(56)
                     : "l"(a), "l"(b), "r"(more));
}

// The same with a in registers, as of mma.m16n8k16, and b's other dimension contiguous.
template <int N>
static __device__ __forceinline__ void tn_wgmma_rs(float (&d)[N / 2], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint64_t b, int more)
{
    if constexpr (N == 64)
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "setp.ne.b32 p, %37, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                     "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n"
                     "}"
                     : TN_F8(0), TN_F8(8), TN_F8(16), TN_F8(24)
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(more));
    else if constexpr (N == 128)
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "setp.ne.b32 p, %69, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                     "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                     "}"
                     : TN_F8(0), TN_F8(8), TN_F8(16), TN_F8(24), TN_F8(32), TN_F8(40), TN_F8(48), TN_F8(56)
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(more));
    else
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "setp.ne.b32 p, %133, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                     "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                     "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
                     "}, {%128, %129, %130, %131}, %132, p, 1, 1, 1;\n"
                     "}"
                     : TN_F8(0), TN_F8(8), TN_F8(16), TN_F8(24), TN_F8(32), TN_F8(40), TN_F8(48), TN_F8(56), TN_F8(64), TN_F8(72), TN_F8(80), TN_F8(88), TN_F8(96), TN_F8(104), TN_F8(112), TN_F8(120)
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(more));
}
#undef TN_F8

#endif
