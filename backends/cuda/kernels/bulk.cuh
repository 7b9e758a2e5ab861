// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies from global to shared memory with an mbarrier that counts their bytes, for one warp: PTX ISA, Data
// Movement and Conversion Instructions: cp.async.bulk; Parallel Synchronization: mbarrier. Compute capability 9.0;
// before that the warp copies itself, at once.
#ifndef TN_CUDA_BULK_CUH
#define TN_CUDA_BULK_CUH

#include "backends/cuda/kernels/common.cuh"

#if __CUDA_ARCH__ >= 900
#define TN_BULK 1
#else
#define TN_BULK 0
#endif

static __device__ __forceinline__ uint32_t tn_bulk_at(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

// So many calls of tn_bulk_expect make a phase.
static __device__ __forceinline__ void tn_bulk_init(uint64_t *bar, uint32_t count)
{
#if TN_BULK
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tn_bulk_at(bar)), "r"(count) : "memory");
#endif
}

// After the last init, before the first copy; by the thread that did both.
static __device__ __forceinline__ void tn_bulk_fence()
{
#if TN_BULK
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// The phase ends when so many bytes more have arrived.
static __device__ __forceinline__ void tn_bulk_expect(uint64_t *bar, uint32_t bytes)
{
#if TN_BULK
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(tn_bulk_at(bar)), "r"(bytes) : "memory");
#endif
}

// Addresses and size are multiples of 16. Before compute capability 9.0 by all lanes of the warp, with the same arguments.
static __device__ __forceinline__ void tn_bulk_copy(char *to, const char *from, uint32_t bytes, uint64_t *bar)
{
#if TN_BULK
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(tn_bulk_at(to)), "l"(from),
                 "r"(bytes), "r"(tn_bulk_at(bar))
                 : "memory");
#else
    for (uint32_t i = threadIdx.x % TN_WARP * 16; i < bytes; i += TN_WARP * 16) *(uint4 *)(to + i) = tn_load_stream(from + i);
#endif
}

// By all lanes: until the phase of this parity is complete.
static __device__ __forceinline__ void tn_bulk_wait(uint64_t *bar, uint32_t parity)
{
#if TN_BULK
    asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}\n" ::"r"(tn_bulk_at(bar)),
                 "r"(parity)
                 : "memory");
#else
    __syncwarp();
#endif
}

#endif
