// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// PTX of the attention kernels: warp-wide matrix products, transposes, asynchronous copies and the
// conversions around them.
#ifndef TN_CUDA_MMA_ATTENTION_CUH
#define TN_CUDA_MMA_ATTENTION_CUH

#include "backends/cuda/common.cuh"

// c[16 x 8] += a[16 x 16] b[16 x 8], 16-bit in, f32 out (PTX ISA, mma.m16n8k16). Lane l = 4 g + i holds
//   a: {row g, k 2i..}, {row g + 8, k 2i..}, {row g, k 2i + 8..}, {row g + 8, k 2i + 8..}, two adjacent k in
//   a register b: {k 2i.., column g}, {k 2i + 8.., column g} c: (row g, columns 2i, 2i + 1), (row g + 8,
//   columns 2i, 2i + 1)
// Compute capability 7.5 has only m16n8k8, so it does this in two halves, and has no bf16.
template <bool BF16>
static __device__ __forceinline__ void tn_mma_16816(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                                    uint32_t a3, uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    if (BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    if (BF16) __trap();
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(b0));
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a2), "r"(a3), "r"(b1));
#endif
}

// An 8 x 8 matrix of 16-bit elements, two adjacent columns of row l / 4 in each lane, transposed (PTX ISA,
// movmatrix).
static __device__ __forceinline__ uint32_t tn_transpose_8x8(uint32_t x)
{
    uint32_t y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// 2^x within 2 ulp, with 2^-inf = 0 (PTX ISA, ex2).
static __device__ __forceinline__ float tn_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ uint32_t tn_half2_bits(__half2 h)
{
    return *reinterpret_cast<uint32_t *>(&h);
}

// Two floats as a pair of f16 or bf16, x in the lower half (PTX ISA, cvt).
template <bool BF16> static __device__ __forceinline__ uint32_t tn_pack16(float x, float y)
{
    if (BF16) {
        __nv_bfloat162 p = __floats2bfloat162_rn(x, y);
        return *reinterpret_cast<uint32_t *>(&p);
    }
    __half2 p = __floats2half2_rn(x, y);
    return *reinterpret_cast<uint32_t *>(&p);
}

// A pair of f16 or bf16 as two floats.
template <bool BF16> static __device__ __forceinline__ float2 tn_unpack16(uint32_t x)
{
    if (BF16) return make_float2(__uint_as_float(x << 16), __uint_as_float(x & 0xffff0000u));
    return __half22float2(*reinterpret_cast<__half2 *>(&x));
}

// The 32-bit address of shared memory that PTX instructions want.
static __device__ __forceinline__ uint32_t tn_shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

// Loads four 8 x 8 matrices of 16-bit elements; lanes 8 i .. 8 i + 7 give the addresses of the rows of matrix
// i. Lane l gets the elements (row l / 4, columns 2 (l % 4) and the next), with TRANS (rows 2 (l % 4) and the
// next, column l / 4) (PTX ISA, ldmatrix).
template <bool TRANS> static __device__ __forceinline__ void tn_load_matrices(uint32_t (&x)[4], uint32_t at)
{
    if (TRANS)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}

// Copies 16 bytes to shared memory, or writes zeros if not `valid` (PTX ISA, cp.async). Before compute
// capability 8.0 the copy is synchronous.
static __device__ __forceinline__ void tn_copy_async(uint32_t to, const char *from, bool valid)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
#else
    uint4 x = valid ? *reinterpret_cast<const uint4 *>(from) : make_uint4(0, 0, 0, 0);
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
#endif
}

// Ends a group of asynchronous copies.
static __device__ __forceinline__ void tn_copy_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all but the last PENDING groups of copies have arrived.
template <int PENDING> static __device__ __forceinline__ void tn_copy_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

#endif
