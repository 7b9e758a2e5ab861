// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The PTX that kernels use for matrix products and for moving tiles: one thin function per instruction, with
// the section of the PTX ISA that describes it. Addresses in shared memory are 32-bit (tn_shared). Nothing
// here loops over tiles or decides how work is split; the kernels that include this file say what bounds
// them.
#ifndef TN_CUDA_MMA_CUH
#define TN_CUDA_MMA_CUH

#include "backends/cuda/common.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TN_HOPPER 1
#endif

enum { TN_BF16 = 0, TN_F16 = 1, TN_TF32 = 2, TN_E4M3 = 3 }; // element types of the operands

static __device__ __forceinline__ uint32_t tn_shared(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

// --- copies and matrix products of all architectures ------------------------------------------------------

// cp.async: copies 16 bytes, or writes zeros where !full. Compute capability 8.0; before that a plain load
// and store.
static __device__ __forceinline__ void tn_copy16(void *to, const void *from, bool full)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(tn_shared(to)), "l"(from),
                 "r"(full ? 16 : 0)
                 : "memory");
#else
    *(uint4 *)to = full ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
#endif
}

// cp.async with .L2::128B: copies 16 bytes of a line of 128 whose others are wanted soon, so that L2 requests
// all of it at once. Compute capability 8.0. product/matvec/matvec_mma_ring.cuh has the measurement behind
// it.
static __device__ __forceinline__ void tn_copy16_line(void *to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(tn_shared(to)), "l"(from)
                 : "memory");
#else
    *(uint4 *)to = *(const uint4 *)from;
#endif
}

// cp.async: copies the first n of 16 bytes and writes zeros behind them.
static __device__ __forceinline__ void tn_copy16_partial(void *to, const void *from, int n)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(tn_shared(to)), "l"(from), "r"(n)
                 : "memory");
#else
    for (int i = 0; i < 16; i++) ((char *)to)[i] = i < n ? ((const char *)from)[i] : 0;
#endif
}

// cp.async.commit_group
static __device__ __forceinline__ void tn_copy_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// cp.async.wait_group: waits until all but the last `pending` groups have arrived.
template <int pending> static __device__ __forceinline__ void tn_copy_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// ldmatrix: loads four 8x8 matrices of 16-bit elements. Lane l gives the address of row l % 8 of matrix l /
// 8.
static __device__ __forceinline__ void tn_ldmatrix4(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(tn_shared(row))
                 : "memory");
}

// ldmatrix.trans
static __device__ __forceinline__ void tn_ldmatrix4_trans(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(tn_shared(row))
                 : "memory");
}

// mma.m16n8k16, f32 += f16 x f16. Lane l holds a[0] = (row l/4, k 2(l%4)), a[1] = row + 8, a[2] = k + 8, a[3]
// both; b[0] = (k 2(l%4), column l/4), b[1] = k + 8; d[0], d[1] = (row l/4, columns 2(l%4) + 0, 1), d[2],
// d[3] = row + 8.
static __device__ __forceinline__ void tn_mma_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                  uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else // mma.m16n8k8
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

// mma.m16n8k16, f32 += bf16 x bf16, operands as in tn_mma_f16. Compute capability 8.0.
static __device__ __forceinline__ void tn_mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                   uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    __trap();
#endif
}

// mma.m16n8k8, f32 += tf32 x tf32. The lower 13 bits of operands are ignored. Lane l holds a[0] = (row l/4, k
// l%4), a[1] = row + 8, a[2] = k + 4, a[3] both; b0 = (k l%4, column l/4), b1 = k + 4. Counted in bytes this
// is the same layout as with 16 bits. Compute capability 8.0.
static __device__ __forceinline__ void tn_mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                   uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    __trap();
#endif
}

// mma.m16n8k32, f32 += e4m3 x e4m3. Lane l holds a[0] = (row l/4, k 4(l%4)..), a[1] = row + 8, a[2] = k + 16,
// a[3] both; b0 = (k 4(l%4).., column l/4), b1 = k + 16. The sum inside keeps fewer bits than f32. Compute
// capability 8.9.
static __device__ __forceinline__ void tn_mma_e4m3(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                   uint32_t b1)
{
#if __CUDA_ARCH__ >= 890
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    __trap();
#endif
}

// cvt.rn.satfinite.e4m3x2: a goes to the lower byte, b to the upper one, rounded to nearest, ties to even;
// NaN stays NaN. Compute capability 8.9.
static __device__ __forceinline__ uint32_t tn_pack_e4m3(float a, float b)
{
#if __CUDA_ARCH__ >= 890
    uint16_t v;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(v) : "f"(b), "f"(a));
    return v;
#else
    __trap();
    return 0;
#endif
}

#ifdef TN_HOPPER
// --- mbarrier (Parallel Synchronization and Communication Instructions: mbarrier) -------------------------

static __device__ __forceinline__ void tn_mbar_init(uint64_t *bar, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tn_shared(bar)), "r"(count) : "memory");
}

// fence.mbarrier_init: needed after the last init, before other blocks of the cluster or copies use the
// barriers.
static __device__ __forceinline__ void tn_mbar_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ void tn_mbar_arrive(uint64_t *bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(tn_shared(bar)) : "memory");
}

// mapa and mbarrier.arrive.shared::cluster: arrives at the same barrier of another block of the cluster.
static __device__ __forceinline__ void tn_mbar_arrive_at(uint64_t *bar, uint32_t rank)
{
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [at];\n}\n" ::"r"(tn_shared(bar)),
                 "r"(rank)
                 : "memory");
}

static __device__ __forceinline__ void tn_mbar_expect(uint64_t *bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(tn_shared(bar)), "r"(bytes)
                 : "memory");
}

// mbarrier.try_wait: waits until the phase of this parity is complete.
static __device__ __forceinline__ void tn_mbar_wait(uint64_t *bar, uint32_t parity)
{
    asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra "
                 "DONE;\nbra WAIT;\nDONE:\n}\n" ::"r"(tn_shared(bar)),
                 "r"(parity)
                 : "memory");
}

// The same where other blocks of the cluster arrive: what they wrote before is visible afterwards.
static __device__ __forceinline__ void tn_mbar_wait_cluster(uint64_t *bar, uint32_t parity)
{
    asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], "
                 "%1;\n@p bra DONE;\nbra WAIT;\nDONE:\n}\n" ::"r"(tn_shared(bar)),
                 "r"(parity)
                 : "memory");
}

// --- tensor copies (Data Movement and Conversion Instructions: cp.async.bulk.tensor) ----------------------

static __device__ __forceinline__ void tn_tma_prefetch(const void *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

static __device__ __forceinline__ void tn_tma_load(void *to, const void *map, int x, int y, uint64_t *bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%2, %3}], [%4];" ::"r"(tn_shared(to)),
                 "l"(map), "r"(x), "r"(y), "r"(tn_shared(bar))
                 : "memory");
}

// Copies to the same place in every block of the cluster whose bit is set in `mask`.
static __device__ __forceinline__ void tn_tma_load_multicast(void *to, const void *map, int x, int y,
                                                             uint64_t *bar, uint16_t mask)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(tn_shared(to)),
        "l"(map), "r"(x), "r"(y), "r"(tn_shared(bar)), "h"(mask)
        : "memory");
}

static __device__ __forceinline__ void tn_tma_store(const void *map, const void *from, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x),
        "r"(y), "r"(tn_shared(from))
        : "memory");
}

// cp.async.bulk: copies contiguous bytes. Addresses and size are multiples of 16.
static __device__ __forceinline__ void tn_bulk_load(void *to, const void *from, uint32_t bytes, uint64_t *bar)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            tn_shared(to)),
        "l"(from), "r"(bytes), "r"(tn_shared(bar))
        : "memory");
}

// cp.async.bulk.commit_group, and wait_group.read: after the wait the sources of all but `pending` groups may
// be overwritten.
static __device__ __forceinline__ void tn_bulk_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

template <int pending> static __device__ __forceinline__ void tn_bulk_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

template <int pending> static __device__ __forceinline__ void tn_bulk_wait()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

// fence.proxy.async: makes what this thread has stored to shared memory visible to copies and wgmma.
static __device__ __forceinline__ void tn_fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// --- clusters, registers, named barriers ------------------------------------------------------------------

static __device__ __forceinline__ uint32_t tn_cluster_rank()
{
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

// barrier.cluster
static __device__ __forceinline__ void tn_cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

// mapa and ld.shared::cluster: reads the float at the same place in another block of the cluster.
static __device__ __forceinline__ float tn_cluster_load(const float *at, uint32_t rank)
{
    float v;
    asm volatile(
        "{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %1, %2;\nld.shared::cluster.f32 %0, [at];\n}\n"
        : "=f"(v)
        : "r"(tn_shared(at)), "r"(rank)
        : "memory");
    return v;
}

// setmaxnreg: changes the number of registers of each thread. All warps of a warpgroup call it.
template <int n> static __device__ __forceinline__ void tn_registers_less()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n));
}

template <int n> static __device__ __forceinline__ void tn_registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n));
}

// bar.sync: barrier number `id` for `threads` threads.
static __device__ __forceinline__ void tn_named_barrier(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// --- wgmma (Asynchronous Warpgroup Level Matrix Instructions) ---------------------------------------------

static __device__ __forceinline__ void tn_wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void tn_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int pending> static __device__ __forceinline__ void tn_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Descriptor of a K-major tile in rows of 128 bytes with the 128-byte swizzle, starting at a multiple of
// 1024: groups of eight rows are 1024 bytes apart. Along K, the 32 bytes of one instruction add 2 to the
// descriptor, whose addresses count 16 bytes, whatever the element type.
static __device__ __forceinline__ uint64_t tn_wgmma_tile(const void *tile)
{
    return (uint64_t)((tn_shared(tile) & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

// d[64 x n] = a b^T + (accumulate ? d : 0), with a [64 x 32 bytes] and b [n x 32 bytes] in shared memory: 16
// of K for 16 bits, 8 for tf32, 32 for e4m3, whose sums keep fewer bits than f32. Warp w of the warpgroup
// holds rows 16 w to 16 w + 15: lane l has d[4j + 0, 1] = (row l/4, columns 8j + 2(l%4) + 0, 1), d[4j + 2, 3]
// = row + 8.
// clang-format off
#define TN_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                 "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define TN_D32(i) TN_D8(i), TN_D8(i + 8), TN_D8(i + 16), TN_D8(i + 24)

#define TN_R64 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TN_R96 TN_R64 ", " \
               "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
               "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TN_R128 TN_R96 ", " \
                "%96, %97, %98, %99, %100, %101, %102, %103, " \
                "%104, %105, %106, %107, %108, %109, %110, %111, " \
                "%112, %113, %114, %115, %116, %117, %118, %119, " \
                "%120, %121, %122, %123, %124, %125, %126, %127"

#define TN_WGMMA_N256(type) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" TN_R128 "}, " \
                 "%128, %129, p, 1, 1, 0, 0;\n}\n" \
                 : TN_D32(0), TN_D32(32), TN_D32(64), TN_D32(96) : "l"(a), "l"(b), "r"(accumulate))
#define TN_WGMMA_N192(type) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n192k16.f32." type "." type " {" TN_R96 "}, " \
                 "%96, %97, p, 1, 1, 0, 0;\n}\n" \
                 : TN_D32(0), TN_D32(32), TN_D32(64) : "l"(a), "l"(b), "r"(accumulate))
#define TN_WGMMA_N128(k, type, major) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n128" k ".f32." type "." type " {" TN_R64 "}, " \
                 "%64, %65, p, 1, 1" major ";\n}\n" \
                 : TN_D32(0), TN_D32(32) : "l"(a), "l"(b), "r"(accumulate))
#define TN_WGMMA_REGISTERS_N256 \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %133, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" TN_R128 "}, " \
                 "{%128, %129, %130, %131}, %132, p, 1, 1, 0;\n}\n" \
                 : TN_D32(0), TN_D32(32), TN_D32(64), TN_D32(96) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))
#define TN_WGMMA_REGISTERS_N128 \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" TN_R64 "}, " \
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}\n" \
                 : TN_D32(0), TN_D32(32) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))
// clang-format on

template <int type>
static __device__ __forceinline__ void tn_wgmma(float (&d)[128], uint64_t a, uint64_t b, int accumulate)
{
    if constexpr (type == TN_BF16) TN_WGMMA_N256("bf16");
    else TN_WGMMA_N256("f16");
}

template <int type>
static __device__ __forceinline__ void tn_wgmma(float (&d)[96], uint64_t a, uint64_t b, int accumulate)
{
    if constexpr (type == TN_BF16) TN_WGMMA_N192("bf16");
    else TN_WGMMA_N192("f16");
}

template <int type>
static __device__ __forceinline__ void tn_wgmma(float (&d)[64], uint64_t a, uint64_t b, int accumulate)
{
    // Operands of 16 bits may be K-major or MN-major, which the immediates 0, 0 select as K-major. Other
    // types must be K-major and have no such immediates.
    if constexpr (type == TN_BF16) TN_WGMMA_N128("k16", "bf16", ", 0, 0");
    else if constexpr (type == TN_F16) TN_WGMMA_N128("k16", "f16", ", 0, 0");
    else if constexpr (type == TN_TF32) TN_WGMMA_N128("k8", "tf32", "");
    else TN_WGMMA_N128("k32", "e4m3", "");
}

// The same with f16 operands, of which a is in registers, in the layout of mma.m16n8k16: warp w of the
// warpgroup has rows 16 w to 16 w + 15, lane l has of rows l/4 (a[0], a[2]) and l/4 + 8 (a[1], a[3]) the
// values 2(l%4) and 2(l%4) + 1, in a[2] and a[3] those 8 further on.
static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[64], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    TN_WGMMA_REGISTERS_N128;
}

static __device__ __forceinline__ void tn_wgmma_from_registers(float (&d)[128], const uint32_t (&a)[4],
                                                               uint64_t b, int accumulate)
{
    TN_WGMMA_REGISTERS_N256;
}

// The same wait, with the sums as operands, so that the compiler moves nothing that reads them before it.
template <int pending> static __device__ __forceinline__ void tn_wgmma_wait_for(float (&d)[64])
{
    asm volatile("wgmma.wait_group.sync.aligned %64;" : TN_D32(0), TN_D32(32) : "n"(pending) : "memory");
}
#undef TN_WGMMA_REGISTERS_N128
#undef TN_WGMMA_REGISTERS_N256
#undef TN_WGMMA_N128
#undef TN_WGMMA_N192
#undef TN_WGMMA_N256
#undef TN_R128
#undef TN_R96
#undef TN_R64
#undef TN_D32
#undef TN_D8
#endif // TN_HOPPER

#endif
