// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The way of the results in attention for one token: from the warps of a cluster into shared memory of the
// block that finishes a row, where one warp merges them, and from the clusters through global memory to the
// warp that arrives last. With softmax parts (m_i, s_i, o_i): m = max m_i, s = sum 2^(m_i - m) s_i, o = sum
// 2^(m_i - m) o_i; the result is o / s.
#ifndef TN_CUDA_ATTENTION_TOKEN_MERGE_CUH
#define TN_CUDA_ATTENTION_TOKEN_MERGE_CUH

#include "backends/cuda/attention/attention_cluster.cuh"
#include "backends/cuda/attention/attention_warp.cuh"

enum {
    MAX_ROWS = 8,     // query heads of a KV head that a block has: the columns of mma
    MAX_HEADS = 16384 // of all sequences, where there are several clusters
};

// Clusters that have arrived at the merge, for each head of each sequence.
static __device__ uint32_t arrived[MAX_HEADS];

// What a block works on, beside `part`.
struct cluster_work {
    int head;                      // of row 0
    int cluster, n_clusters, rank; // number of this cluster, of clusters in use, of this block in its cluster
    int most_clusters;             // of the grid, for a sequence
    int first, n_tiles, per;       // tiles of all splits; tiles of each, if splits are not interleaved
};

// Results of the warps of a cluster, by slot. A block finishes the rows rank, rank + C, ...
template <int DK, int PITCH> struct result_storage {
    float2 *end; // [slots, rows]: maximum and sum
    float *o; // [slots, rows, DK], relative to that maximum; slots are PITCH floats apart if PITCH is not 0
    int rows;

    __device__ __forceinline__ float *row(int slot, int i) const
    {
        return o + (PITCH > 0 ? slot * PITCH + i * DK : (slot * rows + i) * DK);
    }
};

// Stores a warp's result for each row into shared memory of the block of the cluster that finishes the row.
template <int TYPE, int DK, int PITCH>
static __device__ __forceinline__ void send_result(const part &p, int shift, int slot,
                                                   warp_state<TYPE, DK, DK, 1> &w,
                                                   const result_storage<DK, PITCH> &shared)
{
    int lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        for (int i = 4; i < TN_WARP; i *= 2) w.sum[0][h] += __shfl_xor_sync(0xffffffffu, w.sum[0][h], i);
        int row = 2 * c + h;
        if (row >= p.n_rows) continue;
        int at = slot * shared.rows + (row >> shift), rank = row & ((1 << shift) - 1);
        uint32_t to = cluster_address(shared.row(slot, row >> shift), rank),
                 end = cluster_address(shared.end + at, rank);
        if (g == 0) cluster_store(end, w.max[0][h]), cluster_store(end + 4, w.sum[0][h]);
#pragma unroll
        for (int j = 0; j < DK / 64; j++) {
            if (PITCH > 0 && !tn_cache_traits<TYPE>::QUANT) { // of tiles as matrices
#pragma unroll
                for (int e = 0; e < 8; e++)
                    cluster_store(to + 4 * (j * 64 + e * 8 + g), w.o[4 * j + e / 2][0][e % 2 * 2 + h]);
            } else if (!tn_cache_traits<TYPE>::QUANT) {
#pragma unroll
                for (int e = 0; e < 2; e++)
                    cluster_store(to + 4 * (j * 64 + g * 8 + e * 4),
                                  make_float4(w.o[4 * j + 2 * e][0][h], w.o[4 * j + 2 * e][0][2 + h],
                                              w.o[4 * j + 2 * e + 1][0][h],
                                              w.o[4 * j + 2 * e + 1][0][2 + h]));
            } else {
#pragma unroll
                for (int e = 0; e < 8; e++)
                    cluster_store(to + 4 * tn_value_element<TYPE>(j, g, e),
                                  w.o[4 * j + e / 2][0][e % 2 * 2 + h]);
            }
        }
    }
}

// Merges n results of a row. Each lane sums the groups of four elements with the numbers lane, lane + 32,
// ...; for the maxima and sums, each lane has one of 32 results.
template <int DK, class END, class QUAD>
static __device__ __forceinline__ void merge_shared(int n, END end_of, QUAD quad_of, float &max, float &sum,
                                                    float4 (&o)[DK / 64])
{
    int lane = threadIdx.x % TN_WARP;
    max = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < (DK + 127) / 128; k++) o[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int first = 0; first < n; first += TN_WARP) {
        float2 end = first + lane < n ? end_of(first + lane) : make_float2(-INFINITY, 0.0f);
        float top = fmaxf(max, tn_warp_max(end.x)), keep = max > -INFINITY ? tn_exp2(max - top) : 0.0f;
        float f = end.x > -INFINITY ? tn_exp2(end.x - top) : 0.0f;
        sum = sum * keep + tn_warp_sum(f * end.y);
        max = top;
#pragma unroll
        for (int k = 0; k < (DK + 127) / 128; k++)
            o[k].x *= keep, o[k].y *= keep, o[k].z *= keep, o[k].w *= keep;
        int last = min(TN_WARP, n - first);
#pragma unroll 8
        for (int i = 0; i < last; i++) {
            float g = __shfl_sync(0xffffffffu, f, i);
#pragma unroll
            for (int k = 0; k < (DK + 127) / 128; k++) {
                float4 x = quad_of(first + i, k);
                o[k].x += g * x.x, o[k].y += g * x.y, o[k].z += g * x.z, o[k].w += g * x.w;
            }
        }
    }
}

// The same for results in global memory, with loads of BATCH results in flight at once. It needs more
// registers.
template <int DK, class END, class QUAD>
static __device__ __forceinline__ void merge_memory(int n, END end_of, QUAD quad_of, float &max, float &sum,
                                                    float4 (&o)[DK / 64])
{
    enum { BATCH = 16, N = (DK + 127) / 128 };
    int lane = threadIdx.x % TN_WARP;
    max = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < N; k++) o[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int first = 0; first < n; first += BATCH) {
        float2 end = end_of(min(first + lane, n - 1));
        float4 x[BATCH][N];
#pragma unroll
        for (int i = 0; i < BATCH; i++)
#pragma unroll
            for (int k = 0; k < N; k++) x[i][k] = quad_of(min(first + i, n - 1), k);
        if (lane >= BATCH || first + lane >= n) end = make_float2(-INFINITY, 0.0f);
        float top = fmaxf(max, tn_warp_max(end.x)), keep = max > -INFINITY ? tn_exp2(max - top) : 0.0f;
        float f = end.x > -INFINITY ? tn_exp2(end.x - top) : 0.0f;
        sum = sum * keep + tn_warp_sum(f * end.y);
        max = top;
#pragma unroll
        for (int k = 0; k < N; k++) o[k].x *= keep, o[k].y *= keep, o[k].z *= keep, o[k].w *= keep;
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            float g = __shfl_sync(0xffffffffu, f, i);
#pragma unroll
            for (int k = 0; k < N; k++)
                o[k].x += g * x[i][k].x, o[k].y += g * x[i][k].y, o[k].z += g * x[i][k].z,
                    o[k].w += g * x[i][k].w;
        }
    }
}

// Increments the counter, which wraps to 0 after `last`, and returns its value before. Warps that arrive
// later see what this warp wrote before.
static __device__ __forceinline__ uint32_t arrive(uint32_t *counter, uint32_t last)
{
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(last)
                 : "memory");
    return before;
}

// One warp merges row `row` from the results of this cluster, and from those of the other clusters if this
// one is the last.
template <int DK, int PITCH>
static __device__ __forceinline__ void finish_row(const tn_cuda_attention_args &a, const part &p,
                                                  const cluster_work &u, int row, int at, int n_slots,
                                                  const result_storage<DK, PITCH> &shared)
{
    int lane = threadIdx.x % TN_WARP, head = u.head + row;
    int quad = min(lane, DK / 4 - 1); // heads of 64 have 16 groups of four: the other lanes repeat the last
    float max, sum;
    float4 o[DK / 64];
    merge_shared<DK>(
        n_slots, [&](int i) { return shared.end[i * shared.rows + at]; },
        [&](int i, int k) { return *(const float4 *)(shared.row(i, at) + 4 * (quad + 32 * k)); }, max, sum,
        o);
    float unshift = tn_exp2(-WEIGHT_SHIFT);
    sum *= unshift;
#pragma unroll
    for (int k = 0; k < (DK + 127) / 128; k++)
        o[k].x *= unshift, o[k].y *= unshift, o[k].z *= unshift, o[k].w *= unshift;
    if (u.n_clusters > 1) {
        // Rows of results: where only some sequences are there, by sequence, which are fewer than the tokens.
        const bool single = a.which == TN_CUDA_ATTENTION_SINGLE;
        const int n = (single ? a.n_seq : a.n_tokens) * a.n_heads;
        const int own = (single ? p.seq : p.first_token) * a.n_heads + head;
        float2 *ends = (float2 *)(a.partial + (int64_t)u.most_clusters * n * DK);
        float *to = a.partial + ((int64_t)u.cluster * n + own) * DK;
#pragma unroll
        for (int k = 0; k < (DK + 127) / 128; k++) *(float4 *)(to + 4 * (quad + 32 * k)) = o[k];
        if (lane == 0) ends[u.cluster * n + own] = make_float2(max, sum);
        __syncwarp();
        uint32_t before = 0;
        if (lane == 0) before = arrive(&arrived[own], (uint32_t)u.n_clusters - 1);
        if (__shfl_sync(0xffffffffu, before, 0) != (uint32_t)u.n_clusters - 1) return;
        __syncwarp();
        auto end_of = [&](int i) { return __ldcg(ends + i * n + own); };
        auto quad_of = [&](int i, int k) {
            return __ldcg((const float4 *)(a.partial + ((int64_t)i * n + own) * DK + 4 * (quad + 32 * k)));
        };
        if (PITCH > 0)
            merge_memory<DK>(u.n_clusters, end_of, quad_of, max, sum, o);
        else
            merge_shared<DK>(u.n_clusters, end_of, quad_of, max, sum, o);
    }
#pragma unroll
    for (int k = 0; k < (DK + 127) / 128; k++) {
        int d = 4 * (lane + 32 * k);
        if (d < a.v.dim) store_result(a, p.first_token, head, d, max, sum, o[k]);
    }
}

#endif
