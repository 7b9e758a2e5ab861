// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the rings of tiles of 16 rows have in common (matvec_mma_ring.cuh for one row of x,
// matvec_rows_ring.cuh for 2 to 8): how a warp counts the copies of its slots. Layouts of slots and the order
// of tiles differ. It moves no bytes of its own; the files of the rings say what limits them.
#ifndef TN_CUDA_MATVEC_TILE_RING_CUH
#define TN_CUDA_MATVEC_TILE_RING_CUH

#include "backends/cuda/product/matvec/matvec.cuh"

// Returns v, hidden from the optimiser: otherwise the compiler would compute values that follow from a few
// bits again in every round of a loop, instead of keeping them in registers.
static __device__ __forceinline__ int mt_opaque(int v)
{
    int kept;
    asm volatile("mov.u32 %0, %1;" : "=r"(kept) : "r"(v));
    return kept;
}

// Ends the copies of a slot. With two slots each copy is followed by an empty group, so that mt_wait_oldest
// needs no branch.
static __device__ __forceinline__ void mt_commit_tile(const tn_cuda_matvec_args &a)
{
    tn_copy_commit();
    if (a.n_slots == TN_MATVEC_LEAST_SLOTS) tn_copy_commit();
}

// Waits until the oldest of the copies under way, those of all slots but one, has arrived.
static __device__ __forceinline__ void mt_wait_oldest()
{
    static_assert(TN_MATVEC_LEAST_SLOTS == 2 && TN_MATVEC_MMA_SLOTS == 3, "two slots or three");
    tn_copy_wait<1>();
}

#endif
