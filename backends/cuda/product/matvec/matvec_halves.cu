// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = act(x w^T + bias) + residual for 6 to 8 stored rows of x so long that one block cannot hold them: the
// two blocks of a cluster share the rows of a block of matvec_rows.cuh, and each multiplies half of k.
//
// Operands, tiles, rings and sums are those of matvec_rows.cuh. The second block adds up its slices, and the
// first reads these sums from its shared memory, adds them to its own, always in this order, and finishes all
// rows of both. They wait for each other at the end alone, so a block needs no chunks of x, between which all
// of its warps would wait.
//
// Bytes: weights + 0.7 k for each column and block + 4 n for each column. The limit was not measured: a tile
// is that of matvec_rows.cuh, and the exchange was not timed alone. `down` of 8B with 8 rows has 3.9 rows of
// tiles of 28 tiles for 16 warps, so warps have seven tiles each, where chunks leave up to eight.
#include "backends/cuda/product/matvec/matvec_rows.cuh"

template <int TYPE> static __device__ __forceinline__ void mr_run_half(const tn_cuda_matvec_args &a)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ float rms[MR_COLUMNS];
    const int half = (int)tn_cluster_rank();
    mv_warp w = mv_warp_of(a, blockIdx.x / TN_MATVEC_HALVES, shared);
    w.end = min(w.end, a.n_virtual);
    if (threadIdx.x < MR_COLUMNS) rms[threadIdx.x] = 1.0f;
    mr_loader loader;
    w.lane = mt_opaque(w.lane), w.slice = mt_opaque(w.slice);
    mr_loader_start<TYPE, true>(a, w, loader, half);
    // As in mr_run: one tile before the predecessor has ended, the others behind the requests for x.
#pragma unroll 1
    for (int i = 0;; i++) {
        if (i == a.n_early) {
            tn_pdl_wait();
            mr_copy_x<TYPE>(a, shared, half, 0);
            mt_commit_tile(a);
        }
        if (i == a.n_slots - 1) break;
        mr_loader_copy_next<TYPE, true>(a, w, loader, w.ring + i * mr_tile<TYPE>::size);
    }
    const int n = (w.end - w.first) * a.n_columns;
    mv_prefetched prefetched = {0.0f, 0.0f, 1.0f};
    if (half == 0 && (int)threadIdx.x < n)
        prefetched = mv_prefetch_result(a, mv_result_of<MR_COLUMNS>(a, w, threadIdx.x), 0);
    tn_copy_wait<1>();
    __syncthreads();
    mr_lane x = mr_lane_of<TYPE, 1>(a, mr_layout_of<TYPE>(a, shared, 0), shared, nullptr, w.lane);
    float *sums = (float *)(shared + a.sums_at),
          *left = (float *)(shared + a.x_at) - TN_MATVEC_HALVES_LEFT(a);
    int at = 0;
    mr_run_parts<TYPE, 1, true>(a, w, x, sums, half, loader, at);
    if (a.late) tn_pdl_trigger();
    __syncthreads();
    if (half > 0) {
#pragma unroll 1
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            mv_result r = mv_result_of<MR_COLUMNS>(a, w, i);
            left[i] = mv_sum_slices(a, sums + r.v * a.sums_stride + r.c, MR_COLUMNS);
        }
    }
    tn_cluster_sync();
    if (half == 0) mr_finish<true>(a, w, sums, rms, prefetched, left);
    tn_cluster_sync(); // what the other block left has been read
}

#define TN_MATVEC_HALVES_OF(TYPE)                                                                            \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS *TN_WARP, 1)                                                  \
        tn_matvec_halves_##TYPE(const __grid_constant__ tn_cuda_matvec_args a)                               \
    {                                                                                                        \
        mr_run_half<TN_TYPE_##TYPE>(a);                                                                      \
    }

TN_MATVEC_HALVES_OF(Q4_0)
TN_MATVEC_HALVES_OF(Q8_0)
TN_MATVEC_HALVES_OF(Q4_K)
TN_MATVEC_HALVES_OF(Q5_K)
TN_MATVEC_HALVES_OF(Q6_K)
