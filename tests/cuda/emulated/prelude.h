// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Included before each file of device code when it is compiled as C++ for the host: the words of CUDA C++, so
// far as the kernels use them. rewrite.py turns the words that begin with tn_emulated_ into C++ after
// preprocessing; what the functions do when threads meet stands in emulator.h.
#ifndef TN_TESTS_EMULATED_PRELUDE_H
#define TN_TESTS_EMULATED_PRELUDE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cuda_fp16.h>

#include <cuda_bf16.h>
#include <vector_functions.h>

#include "tests/cuda/emulated/emulator.h"

// The code of capability 9.0 is compiled; what the driver reports decides which kernels the host chooses.
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_FEAT_SM90_ALL 1

#undef __device__
#undef __host__
#undef __forceinline__
#undef __noinline__
#undef __global__
#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#undef __align__
#undef __restrict__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __global__ tn_emulated_global
#define __shared__ tn_emulated_shared
#define __launch_bounds__(...) tn_emulated_bounds(__VA_ARGS__)
#define __grid_constant__ tn_emulated_param
#define __align__(n) alignas(n)

#define threadIdx (tn_emulated_now->thread)
#define blockIdx (tn_emulated_now->block)
#define blockDim (tn_emulated_now->n_threads)
#define gridDim (tn_emulated_now->n_blocks)

template <typename T, typename... Rest> static constexpr T tn_emulated_first(T first, Rest...)
{
    return first;
}

// --- threads that meet ---------------------------------------------------------------------------

template <typename T> static inline T tn_emulated_shuffle(int kind, uint32_t mask, T x, int at)
{
    static_assert(sizeof x == 4 || sizeof x == 8, "");
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    bits = tn_emulated_exchange(kind, mask, bits, at);
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define __shfl_sync(mask, x, lane) tn_emulated_shuffle(TN_EMULATED_FROM, mask, x, lane)
#define __shfl_xor_sync(mask, x, bits) tn_emulated_shuffle(TN_EMULATED_XOR, mask, x, bits)
#define __shfl_up_sync(mask, x, by) tn_emulated_shuffle(TN_EMULATED_UP, mask, x, by)
#define __shfl_down_sync(mask, x, by) tn_emulated_shuffle(TN_EMULATED_DOWN, mask, x, by)
#define __ballot_sync(mask, x) (uint32_t)tn_emulated_exchange(TN_EMULATED_BALLOT, mask, (x) ? 1 : 0, 0)
#define __any_sync(mask, x) (int)(tn_emulated_exchange(TN_EMULATED_BALLOT, mask, (x) ? 1 : 0, 0) != 0)
#define __all_sync(mask, x) (int)(tn_emulated_exchange(TN_EMULATED_BALLOT, mask, (x) ? 0 : 1, 0) == 0)
#define __reduce_max_sync(mask, x) (uint32_t)tn_emulated_exchange(TN_EMULATED_MAX, mask, x, 0)

static inline void __syncwarp(uint32_t mask = 0xffffffffu)
{
    tn_emulated_exchange(TN_EMULATED_MEET, mask, 0, 0);
}

static inline void __syncthreads()
{
    tn_emulated_barrier(0, 0, 1);
}

// Threads change only where they meet: the order of memory is that of the program.
static inline void __threadfence() {}
static inline void __threadfence_block() {}
#define __trap() tn_emulated_trap("__trap()")

static inline size_t __cvta_generic_to_shared(const void *p)
{
    return tn_emulated_shared_offset(p);
}

template <typename T> static inline T atomicAdd(T *at, T x)
{
    T before = *at;
    *at = before + x;
    return before;
}

static inline unsigned atomicInc(unsigned *at, unsigned last)
{
    unsigned before = *at;
    *at = before >= last ? 0 : before + 1;
    return before;
}

template <typename T> static inline T atomicMax(T *at, T x)
{
    T before = *at;
    if (x > before) *at = x;
    return before;
}

template <typename T> static inline T __ldcg(const T *at)
{
    return *at;
}

template <typename T> static inline T __ldg(const T *at)
{
    return *at;
}

// --- numbers -------------------------------------------------------------------------------------

template <typename To, typename From> static inline To tn_emulated_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

#define __float_as_uint(x) tn_emulated_bits<uint32_t>((float)(x))
#define __float_as_int(x) tn_emulated_bits<int32_t>((float)(x))
#define __uint_as_float(x) tn_emulated_bits<float>((uint32_t)(x))
#define __int_as_float(x) tn_emulated_bits<float>((int32_t)(x))
#define __double_as_longlong(x) tn_emulated_bits<long long>((double)(x))
#define __longlong_as_double(x) tn_emulated_bits<double>((long long)(x))

// Nothing is contracted when this is compiled, so each operation rounds by itself.
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __ull2double_rn(unsigned long long x) { return (double)x; }
static inline unsigned long long __double2ull_rz(double x) { return (unsigned long long)x; }
static inline unsigned long long __float2ull_rn(float x) { return (unsigned long long)rintf(x); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
// Within a few units in the last place of these (CUDA Programming Guide, intrinsic functions).
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
static inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }

// One rounding: a product of two f16 and the sum are exact in double, but for a term that is 2^40 times the
// other.
static inline __half tn_emulated_hfma(__half a, __half b, __half c)
{
    return __double2half((double)__half2float(a) * (double)__half2float(b) + (double)__half2float(c));
}
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    return __half2(tn_emulated_hfma(a.x, b.x, c.x), tn_emulated_hfma(a.y, b.y, c.y));
}

// cvt.rni.s32.f32 saturates, and gives 0 for NaN.
static inline int __float2int_rn(float x)
{
    if (x != x) return 0;
    if (x >= 2147483648.0f) return INT32_MAX;
    return x < -2147483648.0f ? INT32_MIN : (int)rintf(x);
}

static inline void sincospif(float x, float *s, float *c)
{
    double turn = fmod((double)x, 2.0) * 3.14159265358979323846;
    *s = (float)sin(turn), *c = (float)cos(turn);
}

static inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t which)
{
    uint64_t bytes = (uint64_t)y << 32 | x;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t n = which >> 4 * i, byte = (uint32_t)(bytes >> (n & 7) * 8) & 0xff;
        if (n & 8) byte = byte & 0x80 ? 0xff : 0; // the sign, copied
        out |= byte << 8 * i;
    }
    return out;
}

static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++) c += (int)(int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
    return c;
}

static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 4; i++) c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}

static inline uint32_t __vsub4(uint32_t a, uint32_t b)
{
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) out |= ((a >> 8 * i) - (b >> 8 * i) & 0xff) << 8 * i;
    return out;
}

static inline uint32_t __vadd4(uint32_t a, uint32_t b)
{
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) out |= ((a >> 8 * i) + (b >> 8 * i) & 0xff) << 8 * i;
    return out;
}

static inline int __popc(uint32_t x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline uint32_t __brev(uint32_t x)
{
    uint32_t y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
    return y;
}

#define TN_EMULATED_MINMAX(T)                                         \
    static inline T min(T a, T b) { return b < a ? b : a; }           \
    static inline T max(T a, T b) { return a < b ? b : a; }
TN_EMULATED_MINMAX(int)
TN_EMULATED_MINMAX(unsigned)
TN_EMULATED_MINMAX(long)
TN_EMULATED_MINMAX(unsigned long)
TN_EMULATED_MINMAX(long long)
TN_EMULATED_MINMAX(unsigned long long)
static inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
static inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
static inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
static inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }

#endif
