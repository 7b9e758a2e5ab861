// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for many queries per sequence over an f16 cache on compute capability 9.0 (flash attention 3,
// Shah et al. 2024): the same mathematics, row tiles and roundings as attention_prefill.cu.
//
// One block per multiprocessor goes through the (row tile, KV head) pairs, the longest first and in
// alternating direction, so that blocks get equal work. A producer warp copies keys and values page by page
// (tensor maps over all rows of a cache; pages are multiples of 64 rows) into stages of KEYS rows; three more
// warps convert the queries of the next tile. Two warpgroups of 64 rows each multiply: S = Q K^T of the next
// keys is issued before P V of the current ones, and the softmax of S runs while P V does. The two warpgroups
// issue in turns (named barriers), so that one computes weights while the other has the tensor cores. In
// shared memory, rows of 64 elements have 128 bytes, swizzled by 128 bytes; blocks of 64 columns follow one
// after another.
//
// Bytes moved: the visible rows of the caches once per 128 rows. Operations: 4 D per visible (row, key).
// Limit: tensor cores. NVIDIA H200, 2026-11-20, 4096 tokens, D 128, causal: 453 to 473 TFLOP/s in five runs
// (masked half not counted), about two thirds of what matrix products reach; 393 to 397 at 2048 tokens.
//
// What the choices below rest on (same device and date): issuing in turns took it from 444 to 472 TFLOP/s,
// converting the next queries in the idle producer warps from 452 to 472. A third stage of keys or values and
// shorter dependency chains in the softmax gave nothing. 32 blocks alone take 1.93 us for 128 x 128 scores,
// twice the time of the matrix products; the reason is not known.
#include "backends/cuda/attention/attention_rows.cuh"
#include "backends/cuda/attention/wgmma_attention.cuh"

enum {
    GROUP = 128,         // threads of a warpgroup
    THREADS = 3 * GROUP, // two consumers and the producer
    GROUP_ROWS = 64,     // rows of a consumer
    ROWS = 2 * GROUP_ROWS,
    PAGE = 64, // rows of a tensor copy; blocks of the cache are multiples of it
    CONSUMER_WARPS = 8,
    CONVERT_WARPS = 3, // of the producer's warpgroup
    // Registers of a thread after setmaxnreg: 2 * 224 + 56 is at most the 65536 / 128 of a multiprocessor.
    CONSUMER_REGISTERS = 224,
    PRODUCER_REGISTERS = 56,
    // Named barriers; each consumer has its own of both kinds.
    QUERIES_BARRIER = 1,
    TURN_BARRIER = 3,
};
// Weights are scaled to at most 2^WEIGHT_SHIFT, so that small ones keep their bits in f16.
#define WEIGHT_SHIFT 8.0f

template <int D> struct tile_keys {
    static constexpr int N = D == 256 ? 64 : 128; // registers have to hold 64 x D of o and 64 x N of scores
    static constexpr int Q_STAGES = D == 256 ? 1 : 2;
    static constexpr int K_STAGES = 2, V_STAGES = 2; // a third of either gave nothing
};

template <int D> struct alignas(1024) shared_storage {
    static constexpr int KEYS = tile_keys<D>::N;
    uint4 q[tile_keys<D>::Q_STAGES][ROWS * D / 8], k[tile_keys<D>::K_STAGES][KEYS * D / 8],
        v[tile_keys<D>::V_STAGES][KEYS * D / 8];
    uint64_t q_full[2], q_empty[2], k_full[2], k_empty[2], v_full[2], v_empty[2], tail;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// --- work ----------------------------------------------------------------------------------------------

// Finds the n-th (row tile, KV head) pair of this block; returns false if there are no more. Called by whole
// warps.
template <int D>
static __device__ __forceinline__ bool find_work(const tn_cuda_attention_args &a, int n, int n_tiles,
                                                 tn_row_tile &p)
{
    int w = n * gridDim.x + (n % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    if (w >= n_tiles * a.n_kv) return false;
    return tn_find_row_tile<ROWS, tile_keys<D>::N>(a, n_tiles - 1 - w / a.n_kv, w % a.n_kv, p);
}

// Converts rows [first, first + n) of the tile's queries to f16, with `threads` threads of which this is
// number `me`.
template <int D, int UNROLL>
static __device__ __forceinline__ void convert_queries(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                       uint4 *to, int first, int n, int me, int threads)
{
    bool wide = a.q_elem == 4 && ((uintptr_t)a.q | (uintptr_t)a.q_token | (uintptr_t)a.q_head) % 16 == 0;
#pragma unroll UNROLL
    for (int at = me; at < n * (D / 8); at += threads) {
        int r = first + at / (D / 8), i = at % (D / 8), row = min(p.row + r, p.n_rows - 1);
        const char *from = a.q + (int64_t)(p.first_token + row / p.group) * a.q_token +
                           (int64_t)(p.kv_head * p.group + row % p.group) * a.q_head;
        float x[8];
        if (wide) {
            *reinterpret_cast<float4 *>(x) = *reinterpret_cast<const float4 *>(from + i * 32);
            *reinterpret_cast<float4 *>(x + 4) = *reinterpret_cast<const float4 *>(from + i * 32 + 16);
        } else {
#pragma unroll
            for (int e = 0; e < 8; e++) x[e] = *(const float *)(from + (int64_t)(i * 8 + e) * a.q_elem);
        }
        to[i / 8 * ROWS * 8 + r * 8 + (i % 8 ^ r % 8)] =
            make_uint4(tn_pack16<false>(x[0], x[1]), tn_pack16<false>(x[2], x[3]),
                       tn_pack16<false>(x[4], x[5]), tn_pack16<false>(x[6], x[7]));
    }
    tn_async_proxy_fence();
}

// --- producer ------------------------------------------------------------------------------------------

// Clears the rows of the tile's values from `from` on, which belong to no key. Their memory may hold NaN,
// which a weight of 0 would not remove.
template <int D> static __device__ __forceinline__ void clear_rows(uint4 *v, int from)
{
    constexpr int KEYS = tile_keys<D>::N;
    int lane = threadIdx.x % TN_WARP;
    for (int r = max(from, 0); r < KEYS; r++)
        for (int i = lane; i < D / 8; i += TN_WARP)
            v[i / 8 * KEYS * 8 + r * 8 + i % 8] = make_uint4(0, 0, 0, 0);
    tn_async_proxy_fence();
    __syncwarp();
}

// Starts the copies of a tile: its pages begin at the rows `row` of the cache.
template <int D>
static __device__ __forceinline__ void load_rows(uint4 *to, const void *map, const int (&row)[2],
                                                 uint64_t *full)
{
    constexpr int KEYS = tile_keys<D>::N;
#pragma unroll
    for (int h = 0; h < KEYS / PAGE; h++)
#pragma unroll
        for (int i = 0; i < D / 64; i++)
            tn_tensor_load(to + (i * KEYS + h * PAGE) * 8, map, i * 64, row[h], full);
}

// How many tiles of keys the producer has copied in all of the block's work, and how many of these were the
// incomplete last tile of a sequence.
struct produced {
    int n, tails;
};

// Copies the keys and values of one row tile.
template <int D>
static __device__ __forceinline__ void produce(const tn_cuda_attention_mapped &m, const tn_row_tile &p,
                                               shared_storage<D> &s, produced &at)
{
    constexpr int KEYS = tile_keys<D>::N, BYTES = KEYS * D * 2, K_STAGES = tile_keys<D>::K_STAGES,
                  V_STAGES = tile_keys<D>::V_STAGES;
    const tn_cuda_attention_args &a = m.a;
    int lane = threadIdx.x % TN_WARP, last = (p.end - 1) / PAGE, rows = 0, first = 0;
    for (int key = p.key; key < p.end; key += KEYS, at.n++) {
        // Lane l holds the row of the cache where page `first` + l of the sequence starts.
        if (key == p.key || key / PAGE >= first + TN_WARP) {
            first = key / PAGE;
            int j = min(first + lane, last) * PAGE;
            rows = (a.table[(int64_t)p.seq * a.max_blocks + j / a.block] * a.n_kv + p.kv_head) * a.block +
                   j % a.block;
        }
        int row[2], ks = at.n % K_STAGES, vs = at.n % V_STAGES;
#pragma unroll
        for (int h = 0; h < 2; h++) row[h] = __shfl_sync(0xffffffffu, rows, key / PAGE + h - first);
        bool tail = key + KEYS > p.kv_len;
        tn_barrier_wait(&s.k_empty[ks], at.n / K_STAGES % 2 ^ 1);
        if (lane == 0) {
            tn_barrier_expect(&s.k_full[ks], BYTES);
            load_rows<D>(s.k[ks], m.k, row, &s.k_full[ks]);
        }
        tn_barrier_wait(&s.v_empty[vs], at.n / V_STAGES % 2 ^ 1);
        uint64_t *full = tail ? &s.tail : &s.v_full[vs];
        if (lane == 0) {
            tn_barrier_expect(full, BYTES);
            load_rows<D>(s.v[vs], m.v, row, full);
        }
        if (!tail) continue;
        tn_barrier_wait(&s.tail, at.tails++ % 2);
        clear_rows<D>(s.v[vs], p.kv_len - key);
        if (lane == 0) tn_barrier_arrive(&s.v_full[vs]);
    }
}

// Converts the queries of all row tiles but the first. Those of the first are converted by the consumers,
// which have nothing else to do yet and are more threads.
template <int D>
static __device__ __forceinline__ void produce_queries(const tn_cuda_attention_args &a, int n_tiles,
                                                       shared_storage<D> &s)
{
    constexpr int STAGES = tile_keys<D>::Q_STAGES;
    tn_row_tile p;
    for (int n = 0; find_work<D>(a, n, n_tiles, p); n++) {
        int stage = n % STAGES;
        tn_barrier_wait(&s.q_empty[stage], n / STAGES % 2 ^ 1);
        if (n > 0)
            convert_queries<D, 2>(a, p, s.q[stage], 0, ROWS, (int)threadIdx.x % GROUP - TN_WARP,
                                  GROUP - TN_WARP);
        __syncwarp();
        if (threadIdx.x % TN_WARP == 0) tn_barrier_arrive(&s.q_full[stage]);
    }
}

// --- consumers -----------------------------------------------------------------------------------------

// What a consumer keeps in registers.
template <int D> struct state {
    static constexpr int KEYS = tile_keys<D>::N;
    float o[D / 2], s[KEYS / 2];
    uint32_t p[KEYS / 4]; // weights as operand A
    // Of rows l / 4 and l / 4 + 8 of the warp; maxima are times log2(e), sums are of this lane's keys.
    float max[2], sum[2];
};

template <int D>
static __device__ __forceinline__ void issue_scores(const shared_storage<D> &m, state<D> &w,
                                                    const uint4 *queries, int stage)
{
    constexpr int KEYS = tile_keys<D>::N;
    uint64_t q = tn_wgmma_matrix(queries, 16, 1024), k = tn_wgmma_matrix(m.k[stage], 16, 1024);
    tn_wgmma_keep(w.s);
    tn_wgmma_fence();
#pragma unroll
    for (int i = 0; i < D / 16; i++)
        tn_wgmma_ss<KEYS>(w.s, q + i / 4 * (ROWS * 8) + i % 4 * 2, k + i / 4 * (KEYS * 8) + i % 4 * 2, i > 0);
    tn_wgmma_commit();
}

template <int D>
static __device__ __forceinline__ void issue_values(const shared_storage<D> &m, state<D> &w, int stage)
{
    constexpr int KEYS = tile_keys<D>::N;
    uint64_t v = tn_wgmma_matrix(m.v[stage], KEYS * 128, 1024);
    tn_wgmma_keep(w.o);
    tn_wgmma_fence();
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        tn_wgmma_rs<D>(w.o, w.p[4 * i], w.p[4 * i + 1], w.p[4 * i + 2], w.p[4 * i + 3], v + i * 128, 1);
    tn_wgmma_commit();
}

// Whether scores need only a positive factor: then it can be applied together with the exponential.
static __device__ __forceinline__ bool is_plain(const tn_cuda_attention_args &a)
{
    return a.softcap <= 0.0f && a.max_bias <= 0.0f && a.scale > 0.0f;
}

// Applies the mask and, unless scores are plain, scale, softcap and bias. This lane has the rows `row` and
// `row` + 8 of the sequence.
template <int D>
static __device__ __forceinline__ void mask_scores(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                   state<D> &w, int row, int key)
{
    bool plain = is_plain(a);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        tn_row_info u = tn_row_info_get(a, p, row + 8 * h);
        if (!plain) {
#pragma unroll
            for (int j = 0; j < tile_keys<D>::N / 8; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &x = w.s[4 * j + 2 * h + e];
                    x = tn_attention_bias(a, x * a.scale, u.slope,
                                          u.position - (key + j * 8 + (int)threadIdx.x % 4 * 2 + e)) *
                        TN_LOG2E;
                }
        }
        int lo = u.lo - key - (int)threadIdx.x % 4 * 2, hi = u.hi - key - (int)threadIdx.x % 4 * 2;
#pragma unroll
        for (int j = 0; j < tile_keys<D>::N / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (j * 8 + e < lo || j * 8 + e >= hi) w.s[4 * j + 2 * h + e] = -INFINITY;
    }
}

// Turns scores into weights, times 2^WEIGHT_SHIFT. `factor` is the factor that the scores still need;
// `shrink` is the factor by which o has to be multiplied (shrink_result).
template <int D> static __device__ __forceinline__ void weigh(state<D> &w, float factor, float (&shrink)[2])
{
    constexpr int KEYS = tile_keys<D>::N;
    // Two chains of maxima and sums per row, because a warp has little else to do during the latency of one.
    float base[2], top[2][2], sum[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
#pragma unroll
    for (int e = 0; e < 4; e++) top[e / 2][e % 2] = w.s[e];
#pragma unroll
    for (int j = 4; j < KEYS / 2; j++) top[j / 2 % 2][j % 2] = fmaxf(top[j / 2 % 2][j % 2], w.s[j]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float most = fmaxf(top[h][0], top[h][1]);
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2)) * factor;
        most = fmaxf(most, w.max[h]);
        base[h] = most > -INFINITY ? WEIGHT_SHIFT - most : 0.0f;
        shrink[h] = w.max[h] > -INFINITY ? tn_exp2(w.max[h] - most) : 1.0f;
        w.max[h] = most;
    }
#pragma unroll
    for (int j = 0; j < KEYS / 2; j++) {
        w.s[j] = tn_exp2(fmaf(w.s[j], factor, base[j / 2 % 2]));
        sum[j / 2 % 2][j % 2] += w.s[j];
    }
#pragma unroll
    for (int h = 0; h < 2; h++) w.sum[h] = w.sum[h] * shrink[h] + (sum[h][0] + sum[h][1]);
}

template <int D> static __device__ __forceinline__ void pack_weights(state<D> &w)
{
#pragma unroll
    for (int i = 0; i < tile_keys<D>::N / 4; i++) w.p[i] = tn_pack16<false>(w.s[2 * i], w.s[2 * i + 1]);
}

template <int D> static __device__ __forceinline__ void shrink_result(state<D> &w, const float (&shrink)[2])
{
#pragma unroll
    for (int j = 0; j < D / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) w.o[4 * j + e] *= shrink[e / 2];
}

template <int D> static __device__ __forceinline__ void clear_results(state<D> &w)
{
#pragma unroll
    for (int i = 0; i < D / 2; i++) w.o[i] = 0.0f;
#pragma unroll
    for (int h = 0; h < 2; h++) w.max[h] = -INFINITY, w.sum[h] = 0.0f;
}

template <int D>
static __device__ __forceinline__ void store(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                             const state<D> &w, int first)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int row = first + 8 * h;
        float sum = w.sum[h], keep = 1.0f;
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (row >= p.n_rows) continue;
        int head = p.kv_head * p.group + row % p.group;
        if (a.sinks) {
            float sink = a.sinks[head] * TN_LOG2E, top = fmaxf(w.max[h], sink);
            keep = w.max[h] > -INFINITY ? tn_exp2(w.max[h] - top) : 0.0f;
            sum = sum * keep + (top > -INFINITY ? tn_exp2(sink - top + WEIGHT_SHIFT) : 0.0f);
        }
        keep = sum > 0.0f ? keep / sum : 0.0f;
        char *y = a.y + (int64_t)(p.first_token + row / p.group) * a.y_token + (int64_t)head * a.y_head +
                  (int)threadIdx.x % 4 * 8;
#pragma unroll
        for (int j = 0; j < D / 8; j++)
            *reinterpret_cast<float2 *>(y + j * 32) =
                make_float2(w.o[4 * j + 2 * h] * keep, w.o[4 * j + 2 * h + 1] * keep);
    }
}

// What a consumer warpgroup does with a row tile; `at` counts tiles of keys like produced::n.
template <int D>
static __device__ __forceinline__ void consume(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                               shared_storage<D> &m, int group, int n, int &at)
{
    constexpr int KEYS = tile_keys<D>::N, STAGES = tile_keys<D>::Q_STAGES, K_STAGES = tile_keys<D>::K_STAGES,
                  V_STAGES = tile_keys<D>::V_STAGES;
    const uint4 *queries = m.q[n % STAGES] + group * GROUP_ROWS * 8;
    int lane = threadIdx.x % TN_WARP,
        row = p.row + group * GROUP_ROWS + threadIdx.x % GROUP / TN_WARP * 16 + lane / 4;
    bool plain = is_plain(a);
    float factor = plain ? a.scale * TN_LOG2E : 1.0f, shrink[2];
    // [from, to) are the keys that all rows of the warpgroup see.
    int from = tn_row_info_get(a, p, p.row + group * GROUP_ROWS + GROUP_ROWS - 1).lo,
        to = tn_row_info_get(a, p, p.row + group * GROUP_ROWS).hi;
    state<D> w;
    clear_results<D>(w);
    if (n == 0) {
        convert_queries<D, 4>(a, p, m.q[0], group * GROUP_ROWS, GROUP_ROWS, threadIdx.x % GROUP, GROUP);
        tn_named_sync(QUERIES_BARRIER + group, GROUP);
    } else {
        tn_barrier_wait(&m.q_full[n % STAGES], n / STAGES % 2);
    }
    if (p.key < p.end) {
        tn_barrier_wait(&m.k_full[at % K_STAGES], at / K_STAGES % 2);
        issue_scores<D>(m, w, queries, at % K_STAGES);
        tn_wgmma_wait<0>();
        tn_wgmma_keep(w.s);
        if (lane == 0) tn_barrier_arrive(&m.k_empty[at % K_STAGES]);
        if (!plain || p.key < from || p.key + KEYS > to) mask_scores<D>(a, p, w, row, p.key);
        weigh<D>(w, factor, shrink);
        pack_weights<D>(w);
    }
    for (int key = p.key + KEYS; key < p.end; key += KEYS, at++) {
        int next = (at + 1) % K_STAGES, now = at % V_STAGES;
        tn_barrier_wait(&m.k_full[next], (at + 1) / K_STAGES % 2);
        tn_named_sync(TURN_BARRIER + group, 2 * GROUP); // waits for its turn to issue
        issue_scores<D>(m, w, queries, next);
        tn_barrier_wait(&m.v_full[now], at / V_STAGES % 2);
        issue_values<D>(m, w, now);
        tn_named_arrive(TURN_BARRIER + 1 - group, 2 * GROUP); // gives the turn to the other warpgroup
        tn_wgmma_wait<1>();
        tn_wgmma_keep(w.s);
        if (lane == 0) tn_barrier_arrive(&m.k_empty[next]);
        if (!plain || key < from || key + KEYS > to) mask_scores<D>(a, p, w, row, key);
        weigh<D>(w, factor, shrink);
        tn_wgmma_wait<0>();
        tn_wgmma_keep(w.o);
        if (lane == 0) tn_barrier_arrive(&m.v_empty[now]);
        shrink_result<D>(w, shrink);
        pack_weights<D>(w);
    }
    if (lane == 0) tn_barrier_arrive(&m.q_empty[n % STAGES]);
    if (p.key < p.end) {
        tn_barrier_wait(&m.v_full[at % V_STAGES], at / V_STAGES % 2);
        issue_values<D>(m, w, at % V_STAGES);
        tn_wgmma_wait<0>();
        tn_wgmma_keep(w.o);
        if (lane == 0) tn_barrier_arrive(&m.v_empty[at % V_STAGES]);
        at++;
    }
    store<D>(a, p, w, row);
}

template <int D> static __device__ __forceinline__ void attend(const tn_cuda_attention_mapped &m)
{
    extern __shared__ char shared_bytes[];
    shared_storage<D> &s = *reinterpret_cast<shared_storage<D> *>(
        (reinterpret_cast<uintptr_t>(shared_bytes) + 1023) & ~(uintptr_t)1023);
    int role = threadIdx.x / GROUP;
    tn_pdl_trigger();
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; i++) {
            tn_barrier_init(&s.q_full[i], CONVERT_WARPS), tn_barrier_init(&s.q_empty[i], CONSUMER_WARPS);
            tn_barrier_init(&s.k_full[i], 1), tn_barrier_init(&s.v_full[i], 1);
            tn_barrier_init(&s.k_empty[i], CONSUMER_WARPS), tn_barrier_init(&s.v_empty[i], CONSUMER_WARPS);
        }
        tn_barrier_init(&s.tail, 1);
        tn_barrier_init_fence();
        tn_tensor_prefetch(m.k), tn_tensor_prefetch(m.v);
    }
    __syncthreads();
    tn_pdl_wait();
    int n_tiles = tn_count_row_tiles<ROWS>(m.a);
    tn_row_tile p;
    if (role == 2) {
        tn_registers_release<PRODUCER_REGISTERS>();
        if (threadIdx.x / TN_WARP % 4 != 0) {
            produce_queries<D>(m.a, n_tiles, s);
            return;
        }
        produced at = {0, 0};
        for (int n = 0; find_work<D>(m.a, n, n_tiles, p); n++) produce<D>(m, p, s, at);
        return;
    }
    tn_registers_acquire<CONSUMER_REGISTERS>();
    int at = 0;
    if (role == 1) tn_named_arrive(TURN_BARRIER, 2 * GROUP); // warpgroup 0 has the first turn
    for (int n = 0; find_work<D>(m.a, n, n_tiles, p); n++) consume<D>(m.a, p, s, role, n, at);
}
#else
template <int D> static __device__ __forceinline__ void attend(const tn_cuda_attention_mapped &)
{
    __trap();
}
#endif

TN_ENTRY __launch_bounds__(THREADS, 1)
    tn_attention_wgmma_64(const __grid_constant__ tn_cuda_attention_mapped m)
{
    attend<64>(m);
}

TN_ENTRY __launch_bounds__(THREADS, 1)
    tn_attention_wgmma_128(const __grid_constant__ tn_cuda_attention_mapped m)
{
    attend<128>(m);
}

TN_ENTRY __launch_bounds__(THREADS, 1)
    tn_attention_wgmma_256(const __grid_constant__ tn_cuda_attention_mapped m)
{
    attend<256>(m);
}
