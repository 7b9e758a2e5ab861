// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that the emulation has to complain of (mistakes.h).
#include "backends/cuda/mma.cuh"
#include "tests/cuda/emulated/mistakes.h"

#define KERNEL(name) TN_ENTRY __launch_bounds__(64) mistake_##name(const __grid_constant__ mistake_args a)

// x reversed; right.
KERNEL(none)
{
    extern __shared__ __align__(16) float memory[];
    __shared__ float first;
    int i = threadIdx.x;
    memory[i] = a.x[i];
    if (i == 0) first = memory[i];
    __syncthreads();
    a.x[i] = memory[a.n - 1 - i] + first;
}

KERNEL(barrier)
{
    tn_named_barrier(1, a.n + 32);
}

// Half of the lanes that are named come.
KERNEL(exchange)
{
    if (threadIdx.x % 2) a.x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, a.x[threadIdx.x], 2);
    else __syncthreads();
}

KERNEL(mbarrier)
{
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) tn_mbar_init(&bar, 2);
    __syncthreads();
    if (threadIdx.x == 0) tn_mbar_arrive(&bar);
    tn_mbar_wait(&bar, 0);
}

KERNEL(no_mbarrier)
{
    __shared__ uint64_t bar;
    tn_mbar_arrive(&bar);
}

KERNEL(mask)
{
    a.x[threadIdx.x] = __shfl_sync(1, a.x[threadIdx.x], 0);
}

KERNEL(behind_dynamic)
{
    extern __shared__ __align__(16) float memory[];
    memory[threadIdx.x + (a.n - 63)] = 1.0f;
    a.x[0] = memory[0];
}

KERNEL(behind_variable)
{
    __shared__ float memory[64];
    memory[threadIdx.x + (a.n - 63)] = 1.0f;
    a.x[0] = memory[0];
}

KERNEL(copy_outside)
{
    extern __shared__ __align__(16) float memory[];
    tn_copy16(memory + a.n, a.x, true);
}

KERNEL(read_outside)
{
    a.x[0] = a.x[a.n * 64];
}

KERNEL(write_outside)
{
    a.x[-a.n * 16 * 4] = 1.0f;
}

KERNEL(unwritten)
{
    if (threadIdx.x == 0 && a.x[a.n] > 0.0f) a.x[0] = 0.0f;
}

KERNEL(unwritten_copy)
{
    extern __shared__ __align__(16) float memory[];
    tn_copy16(memory + threadIdx.x / 4 * 4, a.x + 4 + threadIdx.x / 4 * 4, true);
    tn_copy_commit();
    tn_copy_wait<0>();
}

KERNEL(misaligned)
{
    *(float4 *)(a.x + (a.n - 63)) = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
}

// Two copies to one place, which all threads read in between.
static __device__ void refill(const mistake_args &a, bool fence)
{
    extern __shared__ __align__(16) float memory[];
    __shared__ uint64_t bar;
    float sum = 0.0f;
    if (threadIdx.x == 0) {
        tn_mbar_init(&bar, 1);
        tn_mbar_init_fence();
    }
    for (uint32_t turn = 0; turn < 2; turn++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            if (turn > 0 && fence) tn_fence_async();
            tn_mbar_expect(&bar, 256);
            tn_bulk_load(memory, a.x, 256, &bar);
        }
        __syncthreads();
        tn_mbar_wait(&bar, turn);
        sum += memory[a.n - 1 - threadIdx.x];
    }
    __syncthreads();
    a.x[threadIdx.x] = sum / 2;
}

KERNEL(refilled)
{
    refill(a, true);
}

KERNEL(no_proxy_fence)
{
    refill(a, false);
}

KERNEL(trap)
{
    if (a.n == 64) __trap();
}

KERNEL(unknown)
{
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(a.x) : "memory");
}

KERNEL(nothing_there)
{
    extern __shared__ __align__(16) float memory[];
    if (threadIdx.x == 1) memory[1] = 1.0f;
    __syncthreads();
    a.x[0] = memory[0];
}

KERNEL(no_wait)
{
    extern __shared__ __align__(16) float memory[];
    if (threadIdx.x < 16) tn_copy16(memory + 4 * threadIdx.x, a.x + 4 * threadIdx.x, true);
    tn_copy_commit();
    __syncthreads();
    float x = memory[0];
    tn_copy_wait<0>();
    __syncthreads();
    if (threadIdx.x == 0) a.x[0] = x;
}

KERNEL(no_bulk_wait)
{
    extern __shared__ __align__(16) float memory[];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        tn_mbar_init(&bar, 1);
        tn_mbar_init_fence();
        tn_mbar_expect(&bar, 256);
        tn_bulk_load(memory, a.x, 256, &bar);
    }
    __syncthreads();
    float x = memory[0];
    tn_mbar_wait(&bar, 0);
    if (threadIdx.x == 0) a.x[0] = x;
}
