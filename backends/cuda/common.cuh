// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What all device code shares: dependent launches, reductions over warps and blocks, loads and small
// conversions.
#ifndef TN_CUDA_COMMON_CUH
#define TN_CUDA_COMMON_CUH

#include "backends/cuda/runtime/args.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define TN_ENTRY extern "C" __global__ void

// Programmatic dependent launch (PTX ISA, griddepcontrol): a kernel may start while the kernel before it
// still runs. Every kernel therefore waits before it reads anything that another kernel of the chain writes,
// and before it writes anything at all. Weights do not change, so they may be read earlier.
static __device__ __forceinline__ void tn_pdl_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// A hint that the next kernel of the chain may start, up to its own wait. A kernel calls it where its blocks
// leave registers and shared memory for the blocks of the next kernel.
static __device__ __forceinline__ void tn_pdl_trigger()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

enum { TN_WARP = 32 };

static __device__ __forceinline__ float tn_warp_sum(float x)
{
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) x += __shfl_xor_sync(0xffffffffu, x, i);
    return x;
}

static __device__ __forceinline__ float tn_warp_max(float x)
{
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, i));
    return x;
}

// The sum over all threads of a block of at most 1024 threads; every thread gets the result. `shared` is 32
// floats of shared memory. Calls with the same `shared` need no barrier between them.
static __device__ __forceinline__ float tn_block_sum(float x, float *shared)
{
    x = tn_warp_sum(x);
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP, n = (blockDim.x + TN_WARP - 1) / TN_WARP;
    __syncthreads();
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    x = lane < n ? shared[lane] : 0.0f;
    return tn_warp_sum(x);
}

static __device__ __forceinline__ float tn_block_max(float x, float *shared)
{
    x = tn_warp_max(x);
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP, n = (blockDim.x + TN_WARP - 1) / TN_WARP;
    __syncthreads();
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    x = lane < n ? shared[lane] : -INFINITY;
    return tn_warp_max(x);
}

// The address of row r of a view; rows are counted over the three outer dimensions in order.
static __device__ __forceinline__ char *tn_row(const tn_cuda_view &v, int64_t r)
{
    int64_t i2 = r % v.ne[2], q = r / v.ne[2];
    int64_t i1 = q % v.ne[1], i0 = q / v.ne[1];
    return v.data + i0 * v.nb[0] + i1 * v.nb[1] + i2 * v.nb[2];
}

// Loads 16 bytes that are read only once, such as weights: they do not displace anything from L1.
static __device__ __forceinline__ uint4 tn_load_stream(const void *at)
{
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at));
    return v;
}

// Returns sum plus the dot product of four unsigned bytes (a) and four signed bytes (b) (PTX ISA, dp4a).
static __device__ __forceinline__ int tn_dp4a_mixed(uint32_t a, int b, int sum)
{
    int result;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

// Requests the cache line of `at` into L2.
static __device__ __forceinline__ void tn_prefetch(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// The value of an f16 that is given as its bits.
static __device__ __forceinline__ float tn_half_bits(uint32_t bits)
{
    return __half2float(__ushort_as_half((unsigned short)bits));
}

#endif
