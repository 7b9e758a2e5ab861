// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention, general form: o_i = sum_j softmax_j(s_ij) v_j with s_ij = q_i . k_j, scaled, capped, biased and
// masked; for every head size, block size and cache type. The other files of this folder have faster kernels
// for the common cases.
//
// One block of 4 warps has one (token, head) pair. Keys come in tiles of 128 (online softmax, Milakov and
// Gimelshein 2018). Each warp takes keys in turn, four at a time, with its lanes along D. Then the block
// computes the maximum and the weights of the tile. Then each thread has elements of Dv and adds the values
// of the tile to its sums in shared memory.
//
// Shared memory: (D + Dv + tile) floats and the addresses of the tile's rows. Bytes moved: every (token,
// head) reads its keys and values from memory or L2 itself, T * H * keys * (row of k + row of v). Operations:
// 2 (D + Dv) per visible (token, head, key). Limit: the reads of keys and values, which heads and tokens do
// not share. The kernel exists for rare cases, and no measurement of it is recorded.
#include "backends/cuda/attention/attention.cuh"

enum { THREADS = 128, WARPS = THREADS / TN_WARP, TILE = 128, KEYS = 4 };

// The query of a block: [lo, hi) are the keys that it sees.
struct query_info {
    int seq, head, kv_head, position, lo, hi;
    float slope;
};

struct shared_storage {
    float reduce[32];
    float weight[TILE];
    const char *row[TILE]; // addresses of the tile's rows, first of k and then of v
};

// Computes the scores of the tile's keys [0, n). A warp has KEYS keys at a time so that their loads overlap.
template <int TYPE>
static __device__ void scores(const tn_cuda_attention_args &a, const query_info &u, const float *q,
                              shared_storage *shared, int first, int n)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP;
    for (int j = warp * KEYS; j < n; j += WARPS * KEYS) {
        float dot[KEYS] = {0.0f};
        for (int d = lane; d < a.k.dim; d += TN_WARP) {
#pragma unroll
            for (int i = 0; i < KEYS; i++)
                dot[i] += q[d] * tn_cache_get<TYPE>(shared->row[min(j + i, n - 1)], d);
        }
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            float s = tn_warp_sum(dot[i]) * a.scale;
            if (lane == 0 && j + i < n)
                shared->weight[j + i] = tn_attention_bias(a, s, u.slope, u.position - (first + j + i));
        }
    }
}

// acc = acc * shrink + the values of the tile times their weights.
template <int TYPE>
static __device__ void add_values(const tn_cuda_attention_args &a, const shared_storage *shared, float *acc,
                                  float shrink, int n)
{
    for (int d = threadIdx.x; d < a.v.dim; d += THREADS) {
        float sum = acc[d] * shrink;
#pragma unroll 8
        for (int j = 0; j < n; j++) sum += shared->weight[j] * tn_cache_get<TYPE>(shared->row[j], d);
        acc[d] = sum;
    }
}

// Finds the addresses of the tile's rows in one of the caches.
static __device__ void find_rows(const tn_cuda_attention_args &a, const query_info &u, const tn_cuda_cache &c,
                                 shared_storage *shared, int first, int n)
{
    int j = first + (int)threadIdx.x;
    if ((int)threadIdx.x >= n) return;
    int64_t page = a.table[(int64_t)u.seq * a.max_blocks + j / a.block];
    shared->row[threadIdx.x] = tn_cache_row(c, page, u.kv_head, j % a.block);
}

#define BY_TYPE(type, call)                                         \
    switch (type) {                                                 \
    case TN_CUDA_CACHE_F32: call(TN_CUDA_CACHE_F32); break;         \
    case TN_CUDA_CACHE_F16: call(TN_CUDA_CACHE_F16); break;         \
    case TN_CUDA_CACHE_BF16: call(TN_CUDA_CACHE_BF16); break;       \
    case TN_CUDA_CACHE_Q8_0: call(TN_CUDA_CACHE_Q8_0); break;       \
    default: call(TN_CUDA_CACHE_Q4_0); break;                       \
    }

// Turns the tile's scores into weights relative to the new maximum, which it returns, and adds them to the
// sum. `shrink` is the factor by which earlier results have to be multiplied.
static __device__ float softmax_tile(shared_storage *shared, float max, float *sum, float *shrink, int n)
{
    int j = threadIdx.x;
    float s = j < n ? shared->weight[j] : -INFINITY;
    float top = fmaxf(max, tn_block_max(s, shared->reduce));
    float w = j < n && top > -INFINITY ? exp2f((s - top) * TN_LOG2E) : 0.0f;
    *shrink = max > -INFINITY ? exp2f((max - top) * TN_LOG2E) : 0.0f;
    shared->weight[j] = w;
    *sum = *sum * *shrink + tn_block_sum(w, shared->reduce);
    return top;
}

// Goes through the tiles of the query's keys. A sink counts as one more key that has no value.
static __device__ void attend(const tn_cuda_attention_args &a, const query_info &u, const float *q,
                              float *acc, shared_storage *shared, float *sum)
{
    bool sink = a.sinks != nullptr;
    float max = sink ? a.sinks[u.head] : -INFINITY;
    *sum = sink ? 1.0f : 0.0f;
    for (int first = u.lo; first < u.hi; first += TILE) {
        int n = min((int)TILE, u.hi - first);
        float shrink;
        __syncthreads();
        find_rows(a, u, a.k, shared, first, n);
        __syncthreads();
#define CALL(type) scores<type>(a, u, q, shared, first, n)
        BY_TYPE(a.k.type, CALL)
#undef CALL
        __syncthreads();
        max = softmax_tile(shared, max, sum, &shrink, n);
        find_rows(a, u, a.v, shared, first, n);
        __syncthreads();
#define CALL(type) add_values<type>(a, shared, acc, shrink, n)
        BY_TYPE(a.v.type, CALL)
#undef CALL
    }
}

TN_ENTRY __launch_bounds__(THREADS) tn_attention_general(const __grid_constant__ tn_cuda_attention_args a)
{
    extern __shared__ float shared_q[];
    __shared__ shared_storage shared;
    float *q = shared_q, *acc = q + a.k.dim;
    tn_pdl_trigger();
    tn_pdl_wait();
    int t = blockIdx.x;
    query_info u;
    u.head = blockIdx.y;
    u.kv_head = u.head / (a.n_heads / a.n_kv);
    u.seq = tn_attention_seq(a, t);
    if (u.seq == a.n_seq) return;
    int kv_len = a.kv_len[u.seq];
    u.position = kv_len - (a.q_start[u.seq + 1] - t);
    u.slope = tn_attention_slope(a, u.head);
    tn_attention_range(a, u.position, kv_len, &u.lo, &u.hi);
    const char *from = a.q + (int64_t)t * a.q_token + (int64_t)u.head * a.q_head;
    for (int d = threadIdx.x; d < a.k.dim; d += THREADS)
        q[d] = *(const float *)(from + (int64_t)d * a.q_elem);
    for (int d = threadIdx.x; d < a.v.dim; d += THREADS) acc[d] = 0.0f;
    float sum;
    attend(a, u, q, acc, &shared, &sum);
    float *y = (float *)(a.y + (int64_t)t * a.y_token + (int64_t)u.head * a.y_head);
    for (int d = threadIdx.x; d < a.v.dim; d += THREADS) y[d] = sum > 0.0f ? acc[d] / sum : 0.0f;
}
