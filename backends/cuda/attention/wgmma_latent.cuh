// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The matrix product of attention over compressed caches on compute capability 9.0 (PTX ISA, wgmma).
#ifndef TN_CUDA_WGMMA_LATENT_CUH
#define TN_CUDA_WGMMA_LATENT_CUH

#include "backends/cuda/attention/wgmma_attention.cuh"

#define TN_WGMMA_N16(type)                                                                                   \
    asm volatile("{\n"                                                                                       \
                 ".reg .pred p;\n"                                                                           \
                 "setp.ne.b32 p, %10, 0;\n"                                                                  \
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32." type "." type                                 \
                 " {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, %11, 0;\n"                             \
                 "}"                                                                                         \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),       \
                   "+f"(d[7])                                                                                \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(TRANS ? 1 : 0))

// d[64 x 16] = a b^T, plus d if `accumulate`, both of f16 or both of bf16 in shared memory, with the summed
// dimension of b contiguous; that of a is contiguous too, or with TRANS the other one. Registers 4 j and
// 4 j + 1 of lane l of warp w are row 16 w + l / 4, columns 8 j + 2 (l % 4) + {0, 1}; 4 j + 2 and 4 j + 3 are
// the same columns of row + 8.
template <bool BF16, bool TRANS>
static __device__ __forceinline__ void tn_wgmma_n16(float (&d)[8], uint64_t a, uint64_t b, int accumulate)
{
    if constexpr (BF16)
        TN_WGMMA_N16("bf16");
    else
        TN_WGMMA_N16("f16");
}

#endif
