// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// PTX of attention on compute capability 9.0: matrix products of a warpgroup (PTX ISA, wgmma), tensor copies
// (cp.async.bulk.tensor) and the barriers between them (mbarrier, bar, setmaxnreg). Only code for sm_90a may
// call these functions; the barriers and tn_bulk_copy_once() work from compute capability 9.0 on.
#ifndef TN_CUDA_WGMMA_ATTENTION_CUH
#define TN_CUDA_WGMMA_ATTENTION_CUH

#include "backends/cuda/attention/mma_attention.cuh"

// --- barriers --------------------------------------------------------------------------------------------

static __device__ __forceinline__ void tn_barrier_init(uint64_t *b, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tn_shared_address(b)), "r"(count)
                 : "memory");
}

// Makes the initialised barriers visible to tensor copies.
static __device__ __forceinline__ void tn_barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives at the barrier, whose phase then also waits for this many bytes of copies.
static __device__ __forceinline__ void tn_barrier_expect(uint64_t *b, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(tn_shared_address(b)),
                 "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void tn_barrier_arrive(uint64_t *b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(tn_shared_address(b)) : "memory");
}

// Waits until the phase of this parity is over. try_wait may return early, so it is repeated.
static __device__ __forceinline__ void tn_barrier_wait(uint64_t *b, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(tn_shared_address(b)),
                 "r"(parity)
                 : "memory");
}

// Barriers that have a number, for n threads; number 0 is that of __syncthreads.
static __device__ __forceinline__ void tn_named_sync(int id, int n)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory");
}

static __device__ __forceinline__ void tn_named_arrive(int id, int n)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory");
}

// Orders what this thread read and stored in shared memory before later wgmma and tensor copies. mma.cuh has
// the same instruction as tn_fence_async().
static __device__ __forceinline__ void tn_async_proxy_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Whether this is the one lane of the warp that does something for all, which have to call this together. Of
// this condition the compiler knows that it holds for one lane, and needs no loop over the lanes around an
// instruction whose operands are the same for all of a warp, as a bulk copy is.
static __device__ __forceinline__ bool tn_elect_lane()
{
#ifdef __NVCC__
    uint32_t elected;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(elected));
    return elected;
#else // the emulated device
    return threadIdx.x % TN_WARP == 0;
#endif
}

// Changes the number of registers that each thread of the warpgroup has from here on: fewer, or more.
template <int N> static __device__ __forceinline__ void tn_registers_release()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> static __device__ __forceinline__ void tn_registers_acquire()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

// Increments the counter, which wraps to 0 after `last`, and returns its value before.
static __device__ __forceinline__ uint32_t tn_take_number(uint32_t *counter, uint32_t last)
{
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(last)
                 : "memory");
    return before;
}

// --- tensor copies ---------------------------------------------------------------------------------------

// Copies `bytes` bytes and reports them to the barrier; addresses and size are multiples of 16. The bytes are
// read only once, so the L2 cache evicts them first.
static __device__ __forceinline__ void tn_bulk_copy_once(void *to, const void *from, uint32_t bytes,
                                                         uint64_t *b)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                 "[%1], %2, [%3], %4;" ::"r"(tn_shared_address(to)),
                 "l"(from), "r"(bytes), "r"(tn_shared_address(b)), "l"(policy)
                 : "memory");
}

// The same of bytes that other blocks read too.
static __device__ __forceinline__ void tn_bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *b)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            tn_shared_address(to)),
        "l"(from), "r"(bytes), "r"(tn_shared_address(b))
        : "memory");
}

// Copies the box at column x and row y of a matrix and reports its bytes to the barrier.
static __device__ __forceinline__ void tn_tensor_load(void *to, const void *map, int x, int y, uint64_t *b)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%2, %3}], [%4];" ::"r"(tn_shared_address(to)),
                 "l"(map), "r"(x), "r"(y), "r"(tn_shared_address(b))
                 : "memory");
}

static __device__ __forceinline__ void tn_tensor_prefetch(const void *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// --- matrix products -------------------------------------------------------------------------------------

// The descriptor of a matrix in shared memory with rows of 128 bytes and the swizzle of 128 bytes (layout
// type 1). Offsets are in bytes.
static __device__ __forceinline__ uint64_t tn_wgmma_matrix(const void *at, uint32_t leading, uint32_t stride)
{
    return (uint64_t)(tn_shared_address(at) >> 4 & 0x3fff) | (uint64_t)(leading >> 4) << 16 |
           (uint64_t)(stride >> 4) << 32 | (uint64_t)1 << 62;
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

// Keeps the compiler from moving accesses to the accumulators across this point: wgmma reads and writes them
// asynchronously, which the compiler does not know.
template <int N> static __device__ __forceinline__ void tn_wgmma_keep(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// A copy of x that is made here, behind the waits before it: wgmma may still read the register that the copy
// goes to.
static __device__ __forceinline__ uint32_t tn_after(uint32_t x)
{
    uint32_t y;
    asm volatile("mov.u32 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// The registers of the sums in an instruction, and their operands.
// clang-format off
#define TN_NAMES_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
                    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TN_NAMES_64 TN_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, " \
                    "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TN_NAMES_128 TN_NAMES_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, " \
                     "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, " \
                     "%95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, " \
                     "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, " \
                     "%124, %125, %126, %127"
#define TN_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                 "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define TN_D32(i) TN_D8(i), TN_D8(i + 8), TN_D8(i + 16), TN_D8(i + 24)
#define TN_D64(i) TN_D32(i), TN_D32(i + 32)
#define TN_D128(i) TN_D64(i), TN_D64(i + 64)
// The instruction for N columns; the other arguments are the names of its operands, of a to `accumulate`.
#define TN_WGMMA_SS(n, type, names, sums, a, b, p) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" p ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" names "}, %" a ", %" b \
                 ", p, 1, 1, 0, 0;\n}" \
                 : sums(0) : "l"(qa), "l"(qb), "r"(accumulate))
#define TN_WGMMA_RS(n, type, names, sums, a0, a1, a2, a3, b, p) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" p ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" names "}, {%" a0 \
                 ", %" a1 ", %" a2 ", %" a3 "}, %" b ", p, 1, 1, 1;\n}" \
                 : sums(0) : "r"(pa[0]), "r"(pa[1]), "r"(pa[2]), "r"(pa[3]), "l"(qb), "r"(accumulate))
// clang-format on

// d[64 x N] = a b^T, plus d if `accumulate`. a and b are f16 or bf16 in shared memory, with 16 elements of
// the summed dimension, which is contiguous. Registers 4 j and 4 j + 1 of lane l of warp w are row 16 w + l /
// 4, columns 8 j + 2 (l % 4) + {0, 1}; registers 4 j + 2 and 4 j + 3 are the same columns of row + 8.
template <int N, bool BF16>
static __device__ __forceinline__ void tn_wgmma_ss(float (&d)[N / 2], uint64_t qa, uint64_t qb,
                                                   int accumulate)
{
    static_assert(N == 64 || N == 128, "");
    if constexpr (N == 64 && BF16)
        TN_WGMMA_SS("64", "bf16", TN_NAMES_32, TN_D32, "32", "33", "34");
    else if constexpr (N == 64)
        TN_WGMMA_SS("64", "f16", TN_NAMES_32, TN_D32, "32", "33", "34");
    else if constexpr (BF16)
        TN_WGMMA_SS("128", "bf16", TN_NAMES_64, TN_D64, "64", "65", "66");
    else
        TN_WGMMA_SS("128", "f16", TN_NAMES_64, TN_D64, "64", "65", "66");
}

// The same with a in registers, laid out as for mma.m16n8k16, and with the other dimension of b contiguous.
template <int N, bool BF16>
static __device__ __forceinline__ void tn_wgmma_rs(float (&d)[N / 2], const uint32_t *pa, uint64_t qb,
                                                   int accumulate)
{
    static_assert(N == 64 || N == 128 || N == 256, "");
    if constexpr (N == 64 && BF16)
        TN_WGMMA_RS("64", "bf16", TN_NAMES_32, TN_D32, "32", "33", "34", "35", "36", "37");
    else if constexpr (N == 64)
        TN_WGMMA_RS("64", "f16", TN_NAMES_32, TN_D32, "32", "33", "34", "35", "36", "37");
    else if constexpr (N == 128 && BF16)
        TN_WGMMA_RS("128", "bf16", TN_NAMES_64, TN_D64, "64", "65", "66", "67", "68", "69");
    else if constexpr (N == 128)
        TN_WGMMA_RS("128", "f16", TN_NAMES_64, TN_D64, "64", "65", "66", "67", "68", "69");
    else if constexpr (BF16)
        TN_WGMMA_RS("256", "bf16", TN_NAMES_128, TN_D128, "128", "129", "130", "131", "132", "133");
    else
        TN_WGMMA_RS("256", "f16", TN_NAMES_128, TN_D128, "128", "129", "130", "131", "132", "133");
}
#undef TN_WGMMA_SS
#undef TN_WGMMA_RS
#undef TN_NAMES_32
#undef TN_NAMES_64
#undef TN_NAMES_128
#undef TN_D8
#undef TN_D32
#undef TN_D64
#undef TN_D128

#endif
