// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Clusters of thread blocks, whose blocks reach each other's shared memory (PTX ISA, barrier.cluster, mapa,
// st.shared::cluster). Before compute capability 9.0 there are none; there the functions treat a block as a
// cluster of its own.
#ifndef TN_CUDA_ATTENTION_CLUSTER_CUH
#define TN_CUDA_ATTENTION_CLUSTER_CUH

#include "backends/cuda/attention/mma_attention.cuh"

// The number of this block in its cluster.
static __device__ __forceinline__ uint32_t cluster_rank()
{
    uint32_t r = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
#endif
    return r;
}

// A barrier over the threads of a cluster in two halves; between them a thread may do other work.
static __device__ __forceinline__ void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// The address of `at` in the shared memory of block `rank` of the cluster.
static __device__ __forceinline__ uint32_t cluster_address(const void *at, uint32_t rank)
{
    uint32_t to = tn_shared_address(at);
#if __CUDA_ARCH__ >= 900
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(to), "r"(rank));
#endif
    return to;
}

// Stores to an address that cluster_address() gave.
static __device__ __forceinline__ void cluster_store(uint32_t to, float4 x)
{
    uint32_t a = __float_as_uint(x.x), b = __float_as_uint(x.y), c = __float_as_uint(x.z),
             d = __float_as_uint(x.w);
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
#else
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
#endif
}

static __device__ __forceinline__ void cluster_store(uint32_t to, float x)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(to), "r"(__float_as_uint(x)) : "memory");
#else
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(__float_as_uint(x)) : "memory");
#endif
}

#endif
