// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// moe_route: the experts of each token and their weights, from router logits [T, E], or for up to 16 tokens
// from the rows [T, n] themselves, including the router's product and the norm before it.
//
// From logits, a warp per token holds the row of logits in registers. From rows, there is a block per expert
// and token. It uses w_e . norm(x) = scale(x) sum_j w_ej g_j x_j: the weights w and g are read and multiplied
// before the predecessor has ended, and one pass over x gives both the product and the scale of the norm.
// Each block writes a part of the normed row. The block of a token that ends last selects the experts with
// one warp; it knows that it is the last by a counter of the token, which it sets back to zero. If the
// experts' product is the next step, it selects the experts itself in each of its blocks (defers_route).
//
// Bytes moved: 4 E n of weights, which stay in L2 from step to step where they fit, and 8 n of the row.
// Limit: the latency of one read of x, one reduction, one counter and one read of E logits. NVIDIA H200,
// 2026-11-22: 2.9 us in a layer of Qwen3-MoE 30B-A3B.
#include "backends/cuda/moe/moe_route.cuh"
#include "backends/cuda/quantise.cuh"
#include "backends/cuda/rows.cuh"

enum { THREADS = TN_CUDA_ROUTE_THREADS, WARPS = THREADS / TN_WARP };

// Blocks of each token that have ended.
static __device__ uint32_t ended[TN_CUDA_ROUTE_TOKENS];

template <int R> static __device__ __forceinline__ void from_logits(const tn_cuda_route_args &a)
{
    __shared__ tn_group_scratch shared[TN_CUDA_TOP_K_WARPS];
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t warp = threadIdx.x / TN_WARP, t = blockIdx.x * TN_CUDA_TOP_K_WARPS + warp;
    if (t >= a.n_tokens) return;
    const float *x = (const float *)(a.x.data + t * a.x.nb[2]);
    tn_route_experts<R, false>(a.choice, t, true, &shared[warp], [=](int j) { return x[j]; });
}

static __device__ __forceinline__ float4 mul(float4 u, float4 v)
{
    return make_float4(u.x * v.x, u.y * v.y, u.z * v.z, u.w * v.w);
}

static __device__ __forceinline__ float dot(float4 u, float4 v)
{
    return fmaf(u.x, v.x, u.y * v.y) + fmaf(u.z, v.z, u.w * v.w);
}

// Elements j to j + 3 of a row; zeros behind its end. ALIGNED: n is a multiple of 4 and rows start at
// multiples of 16 bytes, so there is no branch.
template <bool ALIGNED> static __device__ __forceinline__ float4 four(const void *row, int64_t j, int64_t n)
{
    if (!ALIGNED) return tn_load_floats((const char *)row, 4, j, n, false);
    return j < n ? *(const float4 *)((const float *)row + j) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// A thread has V times four elements of a row; a lane has R of the E logits.
template <int V, int R, bool ALIGNED>
static __device__ __forceinline__ void from_rows(const tn_cuda_route_args &a)
{
    __shared__ float sums[2][WARPS];
    __shared__ tn_group_scratch shared;
    __shared__ bool last;
    uint32_t e = blockIdx.x, t = blockIdx.y, thread = threadIdx.x;
    int64_t n = a.x.ne[3];
    float4 w[V], x[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        int64_t j = (int64_t)(thread + i * THREADS) * 4;
        w[i] = four<ALIGNED>(a.w + e * n, j, n);
        if (a.norm) w[i] = mul(w[i], four<ALIGNED>(a.norm, j, n));
    }
    tn_pdl_trigger();
    tn_pdl_wait();
    float product = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < V; i++)
        x[i] = four<ALIGNED>(a.x.data + t * a.x.nb[2], (int64_t)(thread + i * THREADS) * 4, n);
#pragma unroll
    for (int i = 0; i < V; i++) product += dot(w[i], x[i]), squares += dot(x[i], x[i]);
    product = tn_warp_sum(product);
    squares = tn_warp_sum(squares);
    if (thread % TN_WARP == 0) sums[0][thread / TN_WARP] = product, sums[1][thread / TN_WARP] = squares;
    __syncthreads();
    product = squares = 0.0f;
#pragma unroll
    for (int i = 0; i < WARPS; i++) product += sums[0][i], squares += sums[1][i];
    float scale = a.norm ? rsqrtf(squares / (float)n + a.eps) : 1.0f;
    if (a.norm) {
#pragma unroll
        for (int i = 0; i < V; i++) {
            uint32_t quad = thread + i * THREADS; // four elements
            // Blocks take turns by 16 elements, which are quantised together.
            if (quad / 4 % gridDim.x != e || (int64_t)quad * 4 >= n) continue;
            float4 g = four<ALIGNED>(a.norm, (int64_t)quad * 4, n);
            float4 v = make_float4(x[i].x * scale, x[i].y * scale, x[i].z * scale, x[i].w * scale);
            v = mul(v, g);
            tn_store_floats(a.normed.data + t * a.normed.nb[2], (int64_t)quad * 4, n, ALIGNED, v);
            if (a.quantised_y.rows)
                tn_quantised_store4(a.quantised_y, t, (int)quad * 4, v, 15u << (thread & 28));
        }
    }
    float *logits = a.logits + (int64_t)t * a.choice.n_experts;
    if (thread == 0) logits[e] = product * scale + (a.bias ? a.bias[e] : 0.0f);
    if (a.defers_route) return;
    if (thread == 0) {
        __threadfence();
        last = atomicInc(&ended[t], gridDim.x - 1) == gridDim.x - 1; // wraps to 0
    }
    __syncthreads();
    if (!last || thread >= TN_WARP) return;
    __threadfence();
    tn_route_experts<R, false>(a.choice, t, true, &shared, [=](int j) { return __ldcg(logits + j); });
}

#define TN_ROUTE(R)                                                                                          \
    TN_ENTRY __launch_bounds__(TN_CUDA_TOP_K_WARPS *TN_WARP)                                                 \
        tn_moe_route_##R(const __grid_constant__ tn_cuda_route_args a)                                       \
    {                                                                                                        \
        from_logits<R>(a);                                                                                   \
    }
#define TN_ROUTE_ROWS(NAME, V, R, ALIGNED)                                                                   \
    TN_ENTRY __launch_bounds__(THREADS)                                                                      \
        tn_moe_route_rows_##NAME(const __grid_constant__ tn_cuda_route_args a)                               \
    {                                                                                                        \
        from_rows<V, R, ALIGNED>(a);                                                                         \
    }

TN_ROUTE(4)
TN_ROUTE(8)
TN_ROUTE(32)
TN_ROUTE_ROWS(2_4, 2, 4, true)
TN_ROUTE_ROWS(2_16, 2, 16, true)
TN_ROUTE_ROWS(4_4, 4, 4, true)
TN_ROUTE_ROWS(4_16, 4, 16, true)
TN_ROUTE_ROWS(8_4, 8, 4, true)
TN_ROUTE_ROWS(8_16, 8, 16, true)
TN_ROUTE_ROWS(any, 8, 16, false)
