// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope_cache: q and k go through an rms_norm per head, if there is one, and rope (Su et al. 2021, eq. 34); k
// and v are written into the paged cache.
//
// One warp has one token and some of its heads, which are numbered q first, then k, then v (rope_rows.cuh).
// It computes the angles once for all of them. Bytes moved: every row is read once and written once. Limit:
// at one token the launch (2.7 us on an NVIDIA H200), with many tokens memory. NVIDIA H200, 2026-11-21: 4096
// tokens of 32 + 8 + 8 heads of 128 at 2.5 TB/s, 57 % of what a plain read reaches.
#include "backends/cuda/rope/rope_rows.cuh"

enum { WARPS = 4 };

// Processes one head of a token; `item` counts the heads of q, then those of k, then those of v.
static __device__ __forceinline__ void process_head(const tn_cuda_rope_cache_args &a, int64_t token, int item,
                                                    float *row, const float2 *turn, int lane)
{
    int n_q = (int)a.q.ne[2], n_kv = (int)a.k.ne[2], other = item - n_q;
    if (item < n_q)
        tn_rotate(a, a.q, a.q.data + token * a.q.nb[1] + item * a.q.nb[2], a.norm[0], turn,
                  (float *)(a.out.data + token * a.out.nb[1] + item * a.out.nb[2]), lane);
    else
        tn_rope_cache_row(a, token, other / n_kv, other % n_kv, row, turn, lane);
}

TN_ENTRY __launch_bounds__(WARPS *TN_WARP) tn_rope_cache(const __grid_constant__ tn_cuda_rope_cache_args a)
{
    __shared__ __align__(16) float rows[WARPS][TN_CUDA_ROPE_CACHE_HEAD];
    __shared__ float2 turns[WARPS][TN_CUDA_MAX_PAIRS];
    tn_pdl_trigger();
    tn_pdl_wait();
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP, n_rotated = (int)(a.q.ne[2] + a.k.ne[2]);
    int first = (blockIdx.x * WARPS + warp) * a.heads,
        last = min(first + a.heads, n_rotated + (int)a.k.ne[2]);
    int64_t token = blockIdx.y;
    if (first < n_rotated)
        tn_find_angles(a, *(const int32_t *)(a.pos + token * a.pos_nb), turns[warp], lane, TN_WARP);
    __syncwarp();
    for (int item = first; item < last; item++) {
        process_head(a, token, item, rows[warp], turns[warp], lane);
        __syncwarp();
    }
}
