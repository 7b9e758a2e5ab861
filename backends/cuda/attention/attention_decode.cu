// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for small batches of queries per sequence, o = softmax(scale q K^T + mask) V per (token, head):
// the keys of a sequence are split over blocks (flash decoding, Dao et al. 2023), and the query heads of a KV
// head share each load of its cache. One token of each sequence has a kernel of its own (attention_token.cu).
//
// Grid (splits, KV heads, sequences). The number of splits in use follows from the length, which only the
// device knows; the blocks of other splits return at once. A warp takes every WARPS-th tile of 16 keys of its
// block's range (attention_warp.cuh), and loads the next tile while it works on one. The warps merge their
// results in shared memory. The splits are merged by the block that arrives last (a counter per (sequence, KV
// head), which is zero when the module is loaded and which that block sets back), in the order of the splits,
// so that results are the same in every run.
//
// Scratch: splits * T * H * (Dv + 2) floats. Bytes moved: the visible rows of both caches, once per 8 NT rows
// of queries. Operations: 2 (D + Dv) per visible (row, key), twice that for D because Q has two parts. Limit:
// memory. NVIDIA H200, 2026-11-20, 32 heads over 8 KV heads of 128, f16: 90 % of the rate of pure reads (4.42
// TB/s) with 32 sequences of 4096 keys, 75 % with one of 32768.
//
// What the choices below rest on (NVIDIA H200, 2026-11-20, one sequence of 512 keys if not stated):
// - Of 7.8 us, 4.3 are those of 16 keys (one warp, nothing to merge), and about 2 are the way of eight
//   partial results through memory. Merging in clusters of 8 instead saved 0.6 us there and cost 70 % at
//   32768 keys, because 16 clusters do not fit at once.
// - Fewer and longer splits took 10.6 us (12 tiles) and 11.5 us (one block).
// - Loading table entries together with the lengths, and keys before queries: 8.3 to 7.7 us.
// - Three blocks of 4 warps instead of one of 12, with 32 sequences: 30 us instead of 28 at 512 keys, the
//   same at 4096, so a block has a multiprocessor for itself.
#include "backends/cuda/attention/attention_warp.cuh"

enum {
    MIN_TILES = 4,   // of a split, because merging a shorter one costs more than it saves
    MAX_PAIRS = 4096 // (sequence, KV head) pairs with a counter
};

// Blocks of each (sequence, KV head) that have arrived at the merge.
static __device__ uint32_t arrived[MAX_PAIRS];

// Finds the tiles of this block; returns false if it has none.
static __device__ __forceinline__ bool find_part(const tn_cuda_attention_args &a, part &p)
{
    p.split = blockIdx.x;
    p.kv_head = blockIdx.y;
    p.seq = blockIdx.z;
    p.group = a.n_heads / a.n_kv;
    p.first_token = a.q_start[p.seq];
    int n = a.q_start[p.seq + 1] - p.first_token, lo, hi, unused;
    p.kv_len = a.kv_len[p.seq];
    p.first_pages =
        a.table[(int64_t)p.seq * a.max_blocks + min((int)threadIdx.x % TN_WARP, a.max_blocks - 1)];
    p.n_rows = n * p.group;
    tn_attention_range(a, p.kv_len - n, p.kv_len, &lo, &unused);
    tn_attention_range(a, p.kv_len - 1, p.kv_len, &unused, &hi);
    int first = lo / KEYS, n_tiles = max(0, (hi + KEYS - 1) / KEYS - first);
    int splits = min(a.n_splits, max(1, n_tiles / MIN_TILES));
    int per = (n_tiles + splits - 1) / splits;
    p.n_splits = per > 0 ? (n_tiles + per - 1) / per : 1;
    p.tile = first + p.split * per;
    p.end = min(first + n_tiles, p.tile + per);
    return n > 0 && p.split < p.n_splits;
}

// --- a warp's tiles ------------------------------------------------------------------------------------

// The address of row 0 of the block's queries, and the distances in bytes of tokens, heads and elements.
struct query_rows {
    const char *first;
    int64_t token, head, elem;
};

// Splits the block's queries into two 16-bit parts and stores them in the order in which mma reads them.
template <int TYPE, int DK, int NT, int WARPS>
static __device__ void load_queries(const tn_cuda_attention_args &a, const part &p, const query_rows &q,
                                    int row0, query_storage<DK, NT> &shared)
{
    constexpr bool BF16 = tn_cache_traits<TYPE>::BF16;
    for (int at = threadIdx.x; at < NT * DK; at += WARPS * TN_WARP) {
        int lane = at % TN_WARP, i = at / TN_WARP % (DK / 32), nt = at / DK;
        int row = row0 + nt * 8 + lane / 4;
        const char *from = q.first + row / p.group * q.token + row % p.group * q.head;
        uint32_t hi[4], lo[4];
#pragma unroll
        for (int e = 0; e < 8; e += 2) {
            float x[2];
#pragma unroll
            for (int k = 0; k < 2; k++) {
                int d = tn_key_element<TYPE>(i, lane % 4, e + k);
                x[k] = row < p.n_rows && d < a.k.dim ? *(const float *)(from + (int64_t)d * q.elem) : 0.0f;
            }
            hi[e / 2] = tn_pack16<BF16>(x[0], x[1]);
            float2 back = tn_unpack16<BF16>(hi[e / 2]);
            lo[e / 2] = tn_pack16<BF16>(x[0] - back.x, x[1] - back.y);
        }
        shared.hi[nt][i][lane] = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        shared.lo[nt][i][lane] = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    }
}

// Starts the loads of a warp's first tile, before the warp needs the queries.
template <int TYPE, int DK, int DV, int NT, int WARPS>
static __device__ __forceinline__ void load_first_tile(const tn_cuda_attention_args &a, const part &p,
                                                       cursor &at, warp_state<TYPE, DK, DV, NT> &w)
{
    at.tile = p.tile + (int)threadIdx.x / TN_WARP;
    at.k = a.k.data + p.kv_head * a.k.head_size, at.v = a.v.data + p.kv_head * a.v.head_size;
    if (at.tile >= p.end) return;
    int first = at.tile * KEYS / a.block, index = at.tile * KEYS % a.block;
    find_pages<WARPS>(a, p, at);
    // In a short sequence the dependent loads of length, table entry and keys are the longest chain, so the
    // first pages were loaded together with the length.
    int64_t page = first < TN_WARP ? __shfl_sync(0xffffffffu, p.first_pages, first) : page_of<WARPS>(at);
    load_keys(a, w, at.k + page * a.k.block_size + index * a.k.row_size);
    load_values(a, w, at.v + page * a.v.block_size + index * a.v.row_size, p.kv_len - at.tile * KEYS);
}

template <int TYPE, int DK, int DV, int NT, int WARPS>
static __device__ __forceinline__ void attend(const tn_cuda_attention_args &a, const part &p, int row0,
                                              const query_storage<DK, NT> &shared, cursor &at,
                                              warp_state<TYPE, DK, DV, NT> &w)
{
    int lane = threadIdx.x % TN_WARP;
    column col[NT][2];
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int h = 0; h < 2; h++) col[nt][h] = find_column(a, p, row0 + nt * 8 + lane % 4 * 2 + h);
    while (at.tile < p.end) {
        float s[NT][4];
        int key = at.tile * KEYS;
        if (tn_cache_traits<TYPE>::QUANT) multiply_quants(w, shared, s);
        else multiply_keys(w, shared, s);
        at.tile += WARPS;
        if (at.tile - at.base == WARPS * TN_WARP) find_pages<WARPS>(a, p, at);
        int64_t page = page_of<WARPS>(at);
        int index = at.tile * KEYS % a.block;
        if (at.tile < p.end) load_keys(a, w, at.k + page * a.k.block_size + index * a.k.row_size);
        weigh(a, w, col, key + lane / 4, s);
        add_values(w, s);
        if (at.tile < p.end)
            load_values(a, w, at.v + page * a.v.block_size + index * a.v.row_size, p.kv_len - at.tile * KEYS);
    }
}

// --- merging -------------------------------------------------------------------------------------------

template <int DV, int NT, int WARPS> struct merge_storage {
    float max[WARPS][NT * 8], sum[WARPS][NT * 8];
    float o[WARPS][8][DV + 4]; // of one tile of 8 rows, relative to the maximum of all warps
};

// Maximum and sum of each partial result; they lie behind the partial results themselves.
static __device__ __forceinline__ float2 *partial_ends(const tn_cuda_attention_args &a)
{
    return (float2 *)(a.partial + (int64_t)a.n_splits * a.n_tokens * a.n_heads * a.v.dim);
}

// Stores a warp's o, times the factor that makes it relative to the maximum of all warps.
template <int TYPE, int DK, int DV, int NT, int WARPS>
static __device__ __forceinline__ void store_scaled(const warp_state<TYPE, DK, DV, NT> &w, int nt,
                                                    const float (&factor)[2],
                                                    merge_storage<DV, NT, WARPS> &shared, int n_valid)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (2 * c + h >= n_valid) continue;
        float *to = shared.o[warp][2 * c + h];
#pragma unroll
        for (int j = 0; j < DV / 64; j++)
#pragma unroll
            for (int e = 0; e < 8; e++)
                to[tn_value_element<TYPE>(j, g, e)] = w.o[4 * j + e / 2][nt][e % 2 * 2 + h] * factor[h];
    }
}

// Adds the warps' results for one tile of 8 rows, and stores the sum as the result or, if there are several
// splits, as a partial result for the block that merges them.
template <int DV, int NT, int WARPS>
static __device__ __forceinline__ void sum_warps(const tn_cuda_attention_args &a, const part &p, int row0,
                                                 int nt, const merge_storage<DV, NT, WARPS> &shared,
                                                 int n_warps)
{
    for (int at = threadIdx.x; at < 8 * (DV / 4); at += WARPS * TN_WARP) {
        int n = at / (DV / 4), d = at % (DV / 4) * 4, row = row0 + nt * 8 + n;
        if (row >= p.n_rows || d >= a.v.dim) continue;
        float max = -INFINITY, sum = 0.0f;
        float4 o = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
        for (int i = 0; i < n_warps; i++) max = fmaxf(max, shared.max[i][nt * 8 + n]);
#pragma unroll 4
        for (int i = 0; i < n_warps; i++) {
            float m = shared.max[i][nt * 8 + n];
            float4 x = *reinterpret_cast<const float4 *>(&shared.o[i][n][d]);
            if (m > -INFINITY) sum += shared.sum[i][nt * 8 + n] * tn_exp2(m - max - WEIGHT_SHIFT);
            o.x += x.x, o.y += x.y, o.z += x.z, o.w += x.w;
        }
        int token = p.first_token + row / p.group, head = p.kv_head * p.group + row % p.group;
        if (p.n_splits == 1) {
            store_result(a, token, head, d, max, sum, o);
            continue;
        }
        int64_t to = ((int64_t)p.split * a.n_tokens + token) * a.n_heads + head;
        *reinterpret_cast<float4 *>(a.partial + to * a.v.dim + d) = o;
        if (d == 0) partial_ends(a)[to] = make_float2(max, sum);
    }
}

template <int TYPE, int DK, int DV, int NT, int WARPS>
static __device__ __forceinline__ void merge_warps(const tn_cuda_attention_args &a, const part &p, int row0,
                                                   warp_state<TYPE, DK, DV, NT> &w,
                                                   merge_storage<DV, NT, WARPS> &shared)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP,
        n_warps = min((int)WARPS, max(0, p.end - p.tile));
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            for (int i = 4; i < TN_WARP; i *= 2)
                w.sum[nt][h] += __shfl_xor_sync(0xffffffffu, w.sum[nt][h], i);
            if (lane < 4) {
                shared.max[warp][nt * 8 + lane * 2 + h] = w.max[nt][h];
                shared.sum[warp][nt * 8 + lane * 2 + h] = w.sum[nt][h];
            }
        }
    __syncthreads();
#pragma unroll
    for (int nt = 0; nt < NT; nt++) {
        float factor[2];
        if (nt > 0) __syncthreads();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = -INFINITY;
            for (int i = 0; i < n_warps; i++) top = fmaxf(top, shared.max[i][nt * 8 + lane % 4 * 2 + h]);
            factor[h] = w.max[nt][h] > -INFINITY ? tn_exp2(w.max[nt][h] - top - WEIGHT_SHIFT) : 0.0f;
        }
        if (warp < n_warps) store_scaled<TYPE>(w, nt, factor, shared, p.n_rows - row0 - nt * 8);
        __syncthreads();
        sum_warps(a, p, row0, nt, shared, n_warps);
    }
}

// Merges the results of all splits in their order, with BATCH loads in flight at once.
template <int WARPS> static __device__ void merge_splits(const tn_cuda_attention_args &a, const part &p)
{
    enum { BATCH = 16 };
    int quads = a.v.dim / 4;
    int64_t step = (int64_t)a.n_tokens * a.n_heads;
    for (int at = threadIdx.x; at < p.n_rows * quads; at += WARPS * TN_WARP) {
        int row = at / quads, d = at % quads * 4;
        int token = p.first_token + row / p.group, head = p.kv_head * p.group + row % p.group;
        int64_t from = (int64_t)token * a.n_heads + head;
        float max = -INFINITY, sum = 0.0f;
        float4 o = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int first = 0; first < p.n_splits; first += BATCH) {
            float2 end[BATCH];
            float4 x[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                int64_t k = from + min(first + i, p.n_splits - 1) * step;
                end[i] = __ldcg(partial_ends(a) + k);
                x[i] = __ldcg(reinterpret_cast<const float4 *>(a.partial + k * a.v.dim + d));
            }
            float top = max;
#pragma unroll
            for (int i = 0; i < BATCH; i++) top = fmaxf(top, end[i].x);
            float keep = max > -INFINITY ? tn_exp2(max - top) : 0.0f;
            sum *= keep, o.x *= keep, o.y *= keep, o.z *= keep, o.w *= keep;
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                float f = first + i < p.n_splits && end[i].x > -INFINITY ? tn_exp2(end[i].x - top) : 0.0f;
                sum += f * end[i].y, o.x += f * x[i].x, o.y += f * x[i].y, o.z += f * x[i].z,
                    o.w += f * x[i].w;
            }
            max = top;
        }
        store_result(a, token, head, d, max, sum, o);
    }
}

// Returns true in all threads of the block that arrives last of its (sequence, KV head). The counter wraps to
// 0 by itself.
static __device__ __forceinline__ bool arrives_last(const part &p, int n_kv)
{
    __shared__ uint32_t before;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        before = atomicInc(&arrived[p.seq * n_kv + p.kv_head], (uint32_t)p.n_splits - 1);
        __threadfence();
    }
    __syncthreads();
    return before == (uint32_t)p.n_splits - 1;
}

// --- a block -------------------------------------------------------------------------------------------

template <int TYPE, int DK, int DV, int NT, int WARPS>
static __device__ __forceinline__ void decode(const tn_cuda_attention_decode_args &d)
{
    extern __shared__ uint4 shared_bytes[];
    const tn_cuda_attention_args &a = d.a;
    query_storage<DK, NT> &queries = *reinterpret_cast<query_storage<DK, NT> *>(shared_bytes);
    merge_storage<DV, NT, WARPS> &merging = *reinterpret_cast<merge_storage<DV, NT, WARPS> *>(&queries + 1);
    part p;
    // In most programs no predecessor writes lengths and tables (d.early), so they are read before the wait.
    if (!d.early) tn_pdl_wait();
    bool any = find_part(a, p);
    if (d.early) tn_pdl_wait();
    if (!any) return;
    query_rows q = {a.q + (int64_t)p.first_token * a.q_token + (int64_t)p.kv_head * p.group * a.q_head,
                    a.q_token, a.q_head, a.q_elem};
    for (int row0 = 0; row0 < p.n_rows; row0 += 8 * NT) {
        warp_state<TYPE, DK, DV, NT> w;
        cursor at;
        load_first_tile<TYPE, DK, DV, NT, WARPS>(a, p, at, w);
#pragma unroll
        for (int nt = 0; nt < NT; nt++) {
#pragma unroll
            for (int h = 0; h < 2; h++) w.max[nt][h] = -INFINITY, w.sum[nt][h] = 0.0f;
#pragma unroll
            for (int i = 0; i < DV / 16; i++)
#pragma unroll
                for (int e = 0; e < 4; e++) w.o[i][nt][e] = 0.0f;
        }
        load_queries<TYPE, DK, NT, WARPS>(a, p, q, row0, queries);
        __syncthreads();
        attend<TYPE, DK, DV, NT, WARPS>(a, p, row0, queries, at, w);
        // Triggered only now, because the copies of weights of the next kernel would delay the keys.
        tn_pdl_trigger();
        merge_warps<TYPE, DK, DV, NT, WARPS>(a, p, row0, w, merging);
        __syncthreads();
    }
    if (p.n_splits > 1 && arrives_last(p, a.n_kv)) merge_splits<WARPS>(a, p);
}

// --- entries -------------------------------------------------------------------------------------------

// attention_decode.c has the same sizes and selects an entry by its name. A block has a multiprocessor for
// itself.
#define ENTRY(name, type, d, nt, warps)                                                                      \
    TN_ENTRY __launch_bounds__(warps *TN_WARP, 1)                                                            \
        tn_attention_decode_##name##_##d##_##nt(const __grid_constant__ tn_cuda_attention_decode_args a)     \
    {                                                                                                        \
        decode<type, d, d, nt, warps>(a);                                                                    \
    }
#define ENTRIES(name, type)       \
    ENTRY(name, type, 64, 1, 12)  \
    ENTRY(name, type, 64, 2, 12)  \
    ENTRY(name, type, 128, 1, 12) \
    ENTRY(name, type, 128, 2, 8)  \
    ENTRY(name, type, 256, 1, 8)

ENTRIES(f16, TN_CUDA_CACHE_F16)
ENTRIES(bf16, TN_CUDA_CACHE_BF16)
ENTRIES(q8_0, TN_CUDA_CACHE_Q8_0)
ENTRIES(q4_0, TN_CUDA_CACHE_Q4_0)
