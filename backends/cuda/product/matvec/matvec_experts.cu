// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of experts for few tokens, one token at a time, on tensor cores; matvec_mma.cuh has tiles and
// products.
//
// tn_matvec_glu: y[t, u] = act(W_gate x[t]) * W_up x[t] for the experts e(t, u) of a token. Blocks share the
// rows of an expert, groups of warps the tiles of both weights. Each block may compute the route (the
// selection of the experts) itself from the logits of the router, which saves a launch.
// tn_matvec_sum: y[t] = sum_u f[t, u] W_e(t, u) x[t, u] + residual[t], the last product and the weighted sum
// of the experts in one launch. Rows of x of all experts that a token uses form one long row, whose scales
// are multiplied by f, and so do rows of the experts' weights. So nothing goes through memory between product
// and sum.
//
// A predecessor decides which experts are used, so nothing can be copied before it; all copies start then, as
// many as shared memory holds. Where one block of 16 warps for each pair of token and expert would leave
// many multiprocessors idle, tn_matvec_glu has several of 8 warps, two on a multiprocessor at a time
// (matvec_experts.c): 9 sequences of 30B-A3B with 12 layers decode 7543 tokens per second with three small
// blocks for each of 72 pairs, 6701 with one large block (H200, 2026-11-24).
//
// Bytes: the weights of the experts that are used + 4 (k + n) for each row. Operations: 2 n k for each expert
// and token. The limit is latency. Measured in Qwen3-MoE Q4_K_M (H200, 2026-11-22): gate and up 11.3 us a
// layer, where the weights alone take 3.2; down and sum 6.0 to 7.7 us. Last product and sum in one launch
// took decode from 403.9 to 440.7 tokens per second, gate and up with the route inside to 466.8. Shared
// memory carve-outs and 8 warps for all gave no gain.
#include "backends/cuda/product/matvec/matvec_mma.cuh"
#include "backends/cuda/moe/moe_route.cuh"

// --- both -------------------------------------------------------------------------------------------------

// Starts the copies of tile `t` of rows `row` to `row` + 15 of a weight, counted over all experts, into a
// slot.
template <int TYPE>
static __device__ __forceinline__ void me_copy(const tn_cuda_matvec_part &p, int64_t row, int t, int lane,
                                               char *slot)
{
    typedef mt_tile<TYPE> tile;
    const char *from[TN_CUDA_MAX_PLANES];
    int row_size[TN_CUDA_MAX_PLANES];
#pragma unroll
    for (int i = 0; i < tile::planes; i++) {
        row_size[i] = (int)p.row_size[i];
        from[i] = p.plane[i] + (row + lane / tile::chunks(i)) * p.row_size[i] + t * tile::bytes(i) +
                  lane % tile::chunks(i) * 16;
    }
    mt_copy<TYPE, false>(lane, mt_copy_offsets<TYPE>(lane), from, row_size, slot);
}

// Adds the products of that tile with tile `x_tile` of x.
template <int TYPE>
static __device__ __forceinline__ void me_dot(const tn_cuda_matvec_part &p, int64_t row, int t,
                                              const char *slot, const mt_x &x, int x_tile, int lane,
                                              float (&total)[2])
{
    typedef mt_tile<TYPE> tile;
    constexpr int last = tile::planes - 1;
    uint32_t misalignment[2] = {};
    if (tile::last_unaligned)
#pragma unroll
        for (int i = 0; i < 2; i++)
            misalignment[i] = ((uint32_t)(uintptr_t)p.plane[last] +
                               ((uint32_t)row + lane / 4 + 8 * i) * (uint32_t)p.row_size[last] +
                               (uint32_t)(t * tile::bytes(last))) &
                              15u;
    mt_dot<TYPE>(slot, x, x_tile, lane, misalignment, total);
}

// Stores the sums of a row of tiles, `row` of the block, at the places of a slice.
static __device__ __forceinline__ void me_store(const tn_cuda_matvec_args &a, float *sums, int row, int lane,
                                                float (&total)[2])
{
    float sum = mt_reduce(total, lane);
    if (lane % 4 < 2) sums[(row + lane / 4 + lane % 2 * 8) * a.sums_stride] = sum;
    total[0] = total[1] = 0.0f;
}

// --- gate and up ------------------------------------------------------------------------------------------

// The expert of slot u of token t; -1: the id names none.
static __device__ __forceinline__ int mg_expert(const tn_cuda_matvec_glu_args &s, int t, int u)
{
    const tn_cuda_matvec_args &a = s.of;
    int e;
    if (s.logits) {
        const float *logits = s.logits + (int64_t)t * s.choice.n_experts;
        bool writes = blockIdx.x == 0 && u == 0 && threadIdx.x < TN_WARP;
        int own = tn_route_experts<TN_MATVEC_CHOICE / TN_WARP, true>(
            s.choice, t, writes, nullptr, [=](int j) { return __ldcg(logits + j); });
        e = __shfl_sync(0xffffffffu, own, u);
    } else {
        e = __ldcg(a.ids + t * a.ids_stride[0] + u * a.ids_stride[1]);
    }
    return e < 0 || e >= a.n_experts ? -1 : e;
}

// What a warp copies and multiplies, in this order: the tiles of its slice, of rows of tiles `v`, gate and up
// in turns.
struct mg_tile {
    int v, t;

    __device__ __forceinline__ void next(const tn_cuda_matvec_args &a, const mv_warp &w)
    {
        t += a.n_slices;
        if (t >= a.n_tiles) t = w.slice, v += 1 << w.group_shift;
    }
    __device__ __forceinline__ int row() const { return v / 2 * MT_ROWS; }
};

template <int TYPE>
static __device__ __forceinline__ void mg_loader_copy_next(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                           int n, mg_tile &f, char *slot)
{
    if (f.v < n) me_copy<TYPE>(a.part[f.v % 2], w.expert + w.first + f.row(), f.t, w.lane, slot);
    f.next(a, w);
    tn_copy_commit();
}

// The rows of tiles 0 to n - 1, with x in shared memory.
template <int TYPE>
static __device__ __forceinline__ void mg_products(const tn_cuda_matvec_glu_args &s, const mv_warp &w, int n,
                                                   char *shared, const char *zeros, mg_tile &loader)
{
    const tn_cuda_matvec_args &a = s.of;
    typedef mt_tile<TYPE> tile;
    float *sums = (float *)(shared + a.sums_at) + w.slice, total[2] = {0.0f, 0.0f};
    mt_x x = mt_x_of<TYPE>(shared + a.x_at, a.k, zeros, w.lane);
    char *slot = w.ring, *const end = w.ring + a.n_slots * tile::size;
    mg_tile now = {w.group, w.slice};
#pragma unroll 1
    while (now.v < n) {
        mv_wait_oldest(s.filled + 1);
        __syncwarp(); // all lanes have read the slot before, and see this one
        mg_loader_copy_next<TYPE>(a, w, n, loader, slot == w.ring ? end - tile::size : slot - tile::size);
        me_dot<TYPE>(a.part[now.v % 2], w.expert + w.first + now.row(), now.t, slot, x, now.t, w.lane, total);
        mg_tile was = now;
        now.next(a, w);
        if (now.v != was.v) me_store(a, sums, was.v % 2 * (w.end - w.first) + was.row(), w.lane, total);
        slot += tile::size;
        if (slot == end) slot = w.ring;
    }
}

template <int TYPE> static __device__ __forceinline__ void mg_run(const tn_cuda_matvec_glu_args &s)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ uint4 zeros; // visible to all after the barrier
    const tn_cuda_matvec_args &a = s.of;
    int pair = blockIdx.y, token = pair / a.n_used, u = pair % a.n_used;
    mv_warp w = mv_warp_of(a, blockIdx.x, shared);
    if (threadIdx.x == 0) zeros = make_uint4(0, 0, 0, 0);
    char *x = shared + a.x_at;
    tn_pdl_wait();
    // x is loaded first: weights under way would delay it.
    const char *row = a.quantised_x.rows + (a.x_used_stride ? pair : token) * a.quantised_x.row_size;
    int runs = a.quantised_x.rows ? a.k / 32 : 0; // pairs of runs of 16
    mt_pair first = mt_load_pair(row, a.k, threadIdx.x, (int)threadIdx.x < runs);
    int expert = mg_expert(s, token, u), rows = w.end - w.first, n = expert < 0 ? 0 : rows / MT_ROWS * 2;
    w.expert = (int64_t)expert * a.part[0].n;
    mg_tile loader = {w.group, w.slice};
#pragma unroll 1
    for (int i = 0; i < s.filled; i++)
        mg_loader_copy_next<TYPE>(a, w, n, loader, w.ring + i * mt_tile<TYPE>::size);
    if ((int)threadIdx.x < runs) mt_store_pair<TYPE>(first, 1.0f, x, a.k, threadIdx.x);
    for (int i = threadIdx.x + blockDim.x; i < runs; i += blockDim.x)
        mt_store_pair<TYPE>(mt_load_pair(row, a.k, i, true), 1.0f, x, a.k, i);
    if (!a.quantised_x.rows)
        mv_quantise_row(a.x + token * a.x_stride + u * a.x_used_stride, nullptr, a.k,
                        mt_store_quantised<TYPE>{x, a.k});
    __syncthreads();
    mg_products<TYPE>(s, w, n, shared, (const char *)&zeros, loader);
    tn_pdl_trigger();
    __syncthreads();
    for (int i = threadIdx.x; i < rows; i += blockDim.x) {
        const float *at = (const float *)(shared + a.sums_at) + i * a.sums_stride;
        int j = w.first + i;
        float gate = n > 0 ? mv_sum_slices(a, at, 1) : 0.0f,
              up = n > 0 ? mv_sum_slices(a, at + rows * a.sums_stride, 1) : 0.0f;
        float y = tn_glu_of(a.glu, gate, up);
        a.part[0].y[pair * a.part[0].y_stride + j] = y;
        // Whole half warps hold groups of 16, because blocks have multiples of 16 rows.
        if (a.quantised_y.rows)
            tn_quantised_store1(a.quantised_y, pair, j, y,
                                a.quantised_y.norm ? __ldg(a.quantised_y.norm + j) : 1.0f);
    }
}

// --- product and sum
// ----------------------------------------------------------------------------------------

// What a warp knows of the experts of a token: lane u has number u. -1: the id names none, which contributes
// nothing.
struct ms_experts {
    int expert;
    float factor;

    __device__ __forceinline__ int of(int u) const { return __shfl_sync(0xffffffffu, expert, u); }
};

static __device__ __forceinline__ ms_experts ms_experts_of(const tn_cuda_matvec_sum_args &s, int t, int lane)
{
    const tn_cuda_matvec_args &a = s.of;
    int u = min(lane, a.n_used - 1), e = __ldcg(a.ids + t * a.ids_stride[0] + u * a.ids_stride[1]);
    float factor = __ldcg(s.factors + t * s.factors_stride[0] + u * s.factors_stride[1]);
    return {e < 0 || e >= a.n_experts ? -1 : e, factor};
}

// What the warp copies next: a tile of the long row, of rows `row` to `row` + 15.
struct ms_loader {
    int tile, row;
};

template <int TYPE>
static __device__ __forceinline__ void ms_loader_copy_next(const tn_cuda_matvec_sum_args &s, const mv_warp &w,
                                                           const ms_experts &experts, ms_loader &f,
                                                           char *slot)
{
    const tn_cuda_matvec_args &a = s.of;
    int u = f.tile / s.n_tiles, e = experts.of(u);
    if (f.row < w.end && e >= 0)
        me_copy<TYPE>(a.part[0], (int64_t)e * a.part[0].n + f.row, f.tile - u * s.n_tiles, w.lane, slot);
    f.tile += a.n_slices;
    if (f.tile >= a.n_tiles) f.tile = w.slice, f.row += MT_ROWS << w.group_shift;
    tn_copy_commit();
}

// All threads: the long row to shared memory, times the factors of the experts, from rows that were stored
// quantised or from x. Warps stay together, because factors come by shuffles.
template <int TYPE>
static __device__ __forceinline__ void ms_load_x(const tn_cuda_matvec_sum_args &s, int t,
                                                 const ms_experts &experts, char *x)
{
    const tn_cuda_matvec_args &a = s.of;
    // lanes that share a pair of runs
    int lanes = a.quantised_x.rows ? 1 : 4, pairs = s.k / 32, n = a.n_used * pairs * lanes;
    bool aligned = ((uintptr_t)a.x & 15u) == 0 && (a.x_stride | a.x_used_stride) % 4 == 0;
    for (int base = threadIdx.x & ~(TN_WARP - 1); base < n; base += blockDim.x) {
        int at = base + threadIdx.x % TN_WARP, i = min(at, n - 1) / lanes, u = i / pairs;
        float factor = __shfl_sync(0xffffffffu, experts.factor, u);
        if (lanes == 1) {
            const char *row =
                a.quantised_x.rows + (a.x_used_stride ? t * a.n_used + u : t) * a.quantised_x.row_size;
            mt_store_pair<TYPE>(mt_load_pair(row, s.k, i - u * pairs, true), factor, x, a.k, i);
        } else {
            float4 v[2];
            mv_load8(v, a.x + t * a.x_stride + u * a.x_used_stride + (at * 8 - u * s.k), aligned, at < n);
            mt_quantise_pair<TYPE>(v, at * 8, at < n, factor, x, a.k);
        }
    }
    __syncthreads();
}

template <int TYPE>
static __device__ __forceinline__ void ms_products(const tn_cuda_matvec_sum_args &s, const mv_warp &w,
                                                   const ms_experts &experts, char *shared, const char *zeros,
                                                   ms_loader &loader)
{
    typedef mt_tile<TYPE> tile;
    const tn_cuda_matvec_args &a = s.of;
    const tn_cuda_matvec_part &p = a.part[0];
    float *sums = (float *)(shared + a.sums_at) + w.slice;
    mt_x x = mt_x_of<TYPE>(shared + a.x_at, a.k, zeros, w.lane);
    char *slot = w.ring, *const end = w.ring + a.n_slots * tile::size;
#pragma unroll 1
    for (int row = w.first + w.group * MT_ROWS; row < w.end; row += MT_ROWS << w.group_shift) {
        float total[2] = {0.0f, 0.0f};
#pragma unroll 1
        for (int t = w.slice; t < a.n_tiles; t += a.n_slices) {
            mv_wait_oldest(s.filled + 1);
            __syncwarp(); // all lanes have read the slot before, and see this one
            ms_loader_copy_next<TYPE>(s, w, experts, loader,
                                      slot == w.ring ? end - tile::size : slot - tile::size);
            int u = t / s.n_tiles, e = experts.of(u);
            if (e >= 0) me_dot<TYPE>(p, (int64_t)e * p.n + row, t - u * s.n_tiles, slot, x, t, w.lane, total);
            slot += tile::size;
            if (slot == end) slot = w.ring;
        }
        me_store(a, sums, row - w.first, w.lane, total);
    }
}

// What the result of row j needs besides its sum.
struct ms_prefetched {
    float residual, norm;
};

static __device__ __forceinline__ ms_prefetched ms_prefetch_result(const tn_cuda_matvec_args &a, int t, int j)
{
    return {a.residual ? __ldcg(a.residual + t * a.residual_stride + j) : 0.0f,
            a.quantised_y.norm ? __ldg(a.quantised_y.norm + j) : 1.0f};
}

// Writes the results of the block's rows from the sums of the slices. `prefetched` belongs to the thread's
// first result.
static __device__ __forceinline__ void ms_finish(const tn_cuda_matvec_args &a, const mv_warp &w, int t,
                                                 const float *sums, ms_prefetched prefetched)
{
    for (int i = threadIdx.x; i < w.end - w.first; i += blockDim.x) {
        int j = w.first + i;
        if (i >= blockDim.x) prefetched = ms_prefetch_result(a, t, j);
        float y = mv_sum_slices(a, sums + i * a.sums_stride, 1) + prefetched.residual;
        a.part[0].y[t * a.part[0].y_stride + j] = y;
        // Whole half warps hold groups of 16, because blocks have multiples of 16 rows.
        if (a.quantised_y.rows) tn_quantised_store1(a.quantised_y, t, j, y, prefetched.norm);
    }
}

template <int TYPE> static __device__ __forceinline__ void ms_run(const tn_cuda_matvec_sum_args &s)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ uint4 zeros; // visible to all after the barrier in ms_load_x
    const tn_cuda_matvec_args &a = s.of;
    int t = blockIdx.y;
    mv_warp w = mv_warp_of(a, blockIdx.x, shared);
    ms_loader loader = {w.slice, w.first + w.group * MT_ROWS};
    if (threadIdx.x == 0) zeros = make_uint4(0, 0, 0, 0);
    tn_pdl_wait();
    ms_experts experts = ms_experts_of(s, t, w.lane);
#pragma unroll 1
    for (int i = 0; i < s.filled; i++)
        ms_loader_copy_next<TYPE>(s, w, experts, loader, w.ring + i * mt_tile<TYPE>::size);
    ms_load_x<TYPE>(s, t, experts, shared + a.x_at);
    ms_prefetched prefetched = {0.0f, 1.0f};
    if ((int)threadIdx.x < w.end - w.first) prefetched = ms_prefetch_result(a, t, w.first + threadIdx.x);
    ms_products<TYPE>(s, w, experts, shared, (const char *)&zeros, loader);
    tn_pdl_trigger();
    __syncthreads();
    ms_finish(a, w, t, (const float *)(shared + a.sums_at), prefetched);
}

#define TN_MATVEC_EXPERTS(TYPE)                                                                              \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS *TN_WARP, 1)                                                  \
        tn_matvec_glu_##TYPE(const __grid_constant__ tn_cuda_matvec_glu_args a)                              \
    {                                                                                                        \
        mg_run<TN_TYPE_##TYPE>(a);                                                                           \
    }                                                                                                        \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS *TN_WARP, 1)                                                  \
        tn_matvec_sum_##TYPE(const __grid_constant__ tn_cuda_matvec_sum_args a)                              \
    {                                                                                                        \
        ms_run<TN_TYPE_##TYPE>(a);                                                                           \
    }

TN_MATVEC_EXPERTS(Q4_0)
TN_MATVEC_EXPERTS(Q8_0)
TN_MATVEC_EXPERTS(Q4_K)
TN_MATVEC_EXPERTS(Q5_K)
TN_MATVEC_EXPERTS(Q6_K)
