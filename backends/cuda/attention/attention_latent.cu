// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention over compressed caches (DeepSeek-V2, 2024, section 2.1) for up to 16 rows of queries on compute
// capability 9.0: o = softmax(scale q K^T + mask) V, where all heads share a key of up to 576 elements in f16
// or bf16, and the value is the first part of the same row.
//
// Grid (splits, row tiles, KV heads); row tiles as in attention_rows.cuh. A block is a warpgroup that
// multiplies and a warp that copies. Tiles of 64 keys come as boxes of 64 keys by 64 elements (128 bytes,
// 128-byte swizzle) into a ring of SLOTS boxes. The long side of both products is the cache's:
//   S^T[64 keys, 16 rows] = K Q^T, wgmma m64n16k16, K as A from shared memory;
//   O^T[512, 16 rows] += V^T P^T, V as A with the other dimension contiguous: box i of the ring has elements
//   [64 i, 64 i + 64) of all keys, so it serves both products and is released after the second.
// Lane l of warp w has of S the keys 16 w + l / 4 + {0, 8}, of O elements 64 i + 16 w + l / 4 + {0, 8}, both
// for the rows 8 j + 2 (l % 4) + {0, 1}: maxima and factors of a lane are of the same rows in both. Maxima
// and weights of the four warps meet in shared memory.
//
// With a small number of row tiles the keys are split over blocks, and a second kernel (attention_wide.cu)
// adds their results in the order of the splits. Rounded to f16: Q (declared in kernels.def) and P. With a
// cache of bf16 each of them is a sum of two numbers in bf16 (8 + 8 bits, so at least as exact as f16), and a
// product is two instructions: nothing of the cache has to be converted.
//
// Bytes moved: the visible rows of the cache once. Operations: 2 (D + Dv) per visible (row, key). A tile has
// 73.7 KB, 2.2 us at a multiprocessor's share of the memory's rate; its products read A of 2 KB in 16 clocks
// each, 68 times (136 with bf16): 0.65 us (1.3). Limit: memory. NVIDIA H200, 2026-11-23, 16 heads of 576 in
// f16: 12.7 us for 1 query and 4096 keys, 25.4 us for 32768, 51.6 us for 32 sequences of 4096 keys (67 % of
// the rate of pure reads). bf16 was not timed.
#include "backends/cuda/attention/attention_latent_args.h"
#include "backends/cuda/attention/attention_rows.cuh"
#include "backends/cuda/attention/attention_wide.cuh"
#include "backends/cuda/attention/wgmma_latent.cuh"

enum {
    ROWS = 16,
    KEYS = 64,  // of a tile; divides the rows of a page
    BOXES = 9,  // of a key, 64 elements each; beyond its end the copies give zeros
    VALUES = 8, // boxes of a value, the last of which may be incomplete
    GROUP = 128,
    THREADS = GROUP + TN_WARP,
    MIN_TILES = 2, // of a split, as in attention_wide.cu
};
template <bool BF16> static constexpr int SLOTS = BF16 ? 23 : 24; // of the ring
// Numbers in 16 bits whose sum is an element of Q or P.
template <bool BF16> static constexpr int PARTS = BF16 ? 2 : 1;

// 16-byte chunk c of row r of a box lies at c ^ r % 8.
template <bool BF16> struct shared_storage {
    uint4 slot[SLOTS<BF16>][KEYS * 8];
    uint4 q[PARTS<BF16>][BOXES][ROWS * 8], p[PARTS<BF16>][ROWS * 8];
    float part[4][ROWS]; // maxima of the warps, in the end their sums
    uint64_t full[SLOTS<BF16>], empty[SLOTS<BF16>];
};

// The keys [key, end) that a block works on, of the row tile.
struct work {
    tn_row_tile rows;
    int key, end;
};

static __device__ __forceinline__ void find_part(const tn_cuda_attention_args &a, work &w)
{
    const tn_row_tile &p = w.rows;
    int n_tiles = max(0, (p.end - p.key + KEYS - 1) / KEYS),
        splits = min(a.n_splits, max(1, n_tiles / MIN_TILES)), per = (n_tiles + splits - 1) / splits;
    w.key = p.key + (int)blockIdx.x * per * KEYS;
    w.end = min(p.end, w.key + per * KEYS);
}

// --- copies ------------------------------------------------------------------------------------------------

template <bool BF16>
static __device__ __forceinline__ void produce(const tn_cuda_attention_latent_args &m, const work &w,
                                               shared_storage<BF16> &s)
{
    const tn_cuda_attention_args &a = m.a;
    int lane = threadIdx.x % TN_WARP, rows = 0, n = 0;
    for (int key = w.key; key < w.end; key += KEYS) {
        int tile = (key - w.key) / KEYS % TN_WARP;
        // Lane l holds the row of the cache where the l-th tile from here on begins.
        if (tile == 0) {
            int j = min(key + lane * KEYS, (w.end - 1) / KEYS * KEYS);
            rows = (a.table[(int64_t)w.rows.seq * a.max_blocks + j / a.block] * a.n_kv + w.rows.kv_head) *
                       a.block +
                   j % a.block;
            if (key == w.key && m.early) tn_pdl_wait();
        }
        int row = __shfl_sync(0xffffffffu, rows, tile);
        for (int i = 0; i < BOXES; i++, n++) {
            int slot = n % SLOTS<BF16>;
            tn_barrier_wait(&s.empty[slot], n / SLOTS<BF16> % 2 ^ 1);
            if (lane != 0) continue;
            tn_barrier_expect(&s.full[slot], sizeof s.slot[0]);
            tn_tensor_load(s.slot[slot], m.k, i * 64, row, &s.full[slot]);
        }
    }
}

// --- products ----------------------------------------------------------------------------------------------

// What a thread keeps in registers. Registers 4 j + {0, 1} are row l / 4 of the warp's 16, columns 8 j + 2 (l
// % 4) + {0, 1}; 4 j + {2, 3} are the same columns of row l / 4 + 8.
struct state {
    float o[VALUES][8], s[8];
    float max[4], sum[4]; // of columns 8 j + 2 (l % 4) + e at 2 j + e; sums of this lane's keys
};

// Two floats as pairs in 16 bits, in which they are the sums of the parts.
static __device__ __forceinline__ void to_parts(float x, float y, uint32_t (&part)[1])
{
    part[0] = tn_pack16<false>(x, y);
}

static __device__ __forceinline__ void to_parts(float x, float y, uint32_t (&part)[2])
{
    part[0] = tn_pack16<true>(x, y);
    float2 high = tn_unpack16<true>(part[0]);
    part[1] = tn_pack16<true>(x - high.x, y - high.y);
}

template <bool BF16>
static __device__ __forceinline__ void load_queries(const tn_cuda_attention_args &a, const work &w,
                                                    shared_storage<BF16> &s)
{
    const tn_row_tile &p = w.rows;
    bool wide = a.q_elem == 4 && ((uintptr_t)a.q | (uintptr_t)a.q_token | (uintptr_t)a.q_head) % 16 == 0;
#pragma unroll 3
    for (int n = threadIdx.x; n < ROWS * BOXES * 8; n += GROUP) {
        int r = n / (BOXES * 8), i = n % (BOXES * 8), row = min(p.row + r, p.n_rows - 1);
        const char *from = a.q + (int64_t)(p.first_token + row / p.group) * a.q_token +
                           (int64_t)(p.kv_head * p.group + row % p.group) * a.q_head;
        float x[8];
        if (wide && i * 8 + 8 <= a.k.dim) {
            *reinterpret_cast<float4 *>(x) = *reinterpret_cast<const float4 *>(from + i * 32);
            *reinterpret_cast<float4 *>(x + 4) = *reinterpret_cast<const float4 *>(from + i * 32 + 16);
        } else {
#pragma unroll
            for (int e = 0; e < 8; e++)
                x[e] = i * 8 + e < a.k.dim ? *(const float *)(from + (int64_t)(i * 8 + e) * a.q_elem) : 0.0f;
        }
        uint32_t pairs[4][PARTS<BF16>];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float2 f16 = tn_unpack16<false>(tn_pack16<false>(x[2 * e], x[2 * e + 1]));
            to_parts(f16.x, f16.y, pairs[e]);
        }
#pragma unroll
        for (int part = 0; part < PARTS<BF16>; part++)
            s.q[part][i / 8][r * 8 + (i % 8 ^ r % 8)] =
                make_uint4(pairs[0][part], pairs[1][part], pairs[2][part], pairs[3][part]);
    }
    tn_async_proxy_fence();
}

// The scores of the tile whose first box is number n.
template <bool BF16>
static __device__ __forceinline__ void multiply_keys(shared_storage<BF16> &m, int n, state &w)
{
    uint64_t q = tn_wgmma_matrix(m.q, 16, 1024);
    for (int b = n; b < n + BOXES; b++) tn_barrier_wait(&m.full[b % SLOTS<BF16>], b / SLOTS<BF16> % 2);
    tn_wgmma_keep(w.s);
    tn_wgmma_fence();
#pragma unroll
    for (int b = 0; b < BOXES; b++) {
        uint64_t k = tn_wgmma_matrix(m.slot[(n + b) % SLOTS<BF16>], 16, 1024);
#pragma unroll
        for (int i = 0; i < 4 * PARTS<BF16>; i++)
            tn_wgmma_n16<BF16, false>(w.s, k + i % 4 * 2, q + (i / 4 * BOXES + b) * (ROWS * 8) + i % 4 * 2,
                                      b + i > 0);
    }
    tn_wgmma_commit();
    tn_wgmma_wait<0>();
    tn_wgmma_keep(w.s);
}

// Applies scale, softcap, bias and mask to the scores, as exponents of 2.
static __device__ __forceinline__ void mask_scores(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                   int key, state &w)
{
    int lane = threadIdx.x % TN_WARP, first = key + (int)threadIdx.x / TN_WARP * 16 + lane / 4;
    bool plain = a.softcap <= 0.0f && a.max_bias <= 0.0f,
         masked = key < p.all_from || key + KEYS > p.all_to;
    if (plain && !masked) {
#pragma unroll
        for (int i = 0; i < 8; i++) w.s[i] *= a.scale * TN_LOG2E;
        return;
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
        tn_row_info u = tn_row_info_get(a, p, p.row + c / 2 * 8 + lane % 4 * 2 + c % 2);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float &x = w.s[c / 2 * 4 + 2 * h + c % 2];
            int j = first + 8 * h;
            x = tn_attention_bias(a, x * a.scale, u.slope, u.position - j) * TN_LOG2E;
            if (j < u.lo || j >= u.hi) x = -INFINITY;
        }
    }
}

// Turns the scores of a tile into weights in shared memory, times 2^WEIGHT_SHIFT, and rescales o and the sums
// to the new maxima.
template <bool BF16> static __device__ __forceinline__ void weigh(shared_storage<BF16> &m, state &w)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
    float shrink[4];
    bool rescale = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float top = fmaxf(w.s[i / 2 * 4 + i % 2], w.s[i / 2 * 4 + 2 + i % 2]);
        for (int x = 4; x < TN_WARP; x *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, x));
        if (g == 0) m.part[warp][i / 2 * 8 + 2 * c + i % 2] = top;
    }
    tn_named_sync(1, GROUP);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float top = w.max[i];
#pragma unroll
        for (int x = 0; x < 4; x++) top = fmaxf(top, m.part[x][i / 2 * 8 + 2 * c + i % 2]);
        float base = top > -INFINITY ? WEIGHT_SHIFT - top : 0.0f;
        shrink[i] = w.max[i] > -INFINITY ? tn_exp2(w.max[i] - top) : 1.0f;
        rescale = rescale || shrink[i] != 1.0f;
        w.max[i] = top;
        float &lo = w.s[i / 2 * 4 + i % 2], &hi = w.s[i / 2 * 4 + 2 + i % 2];
        lo = tn_exp2(lo + base), hi = tn_exp2(hi + base);
        w.sum[i] = w.sum[i] * shrink[i] + lo + hi;
    }
    // Rows of P are rows of queries, with the keys of the tile along them.
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t pair[PARTS<BF16>];
            to_parts(w.s[4 * j + 2 * h], w.s[4 * j + 2 * h + 1], pair);
#pragma unroll
            for (int part = 0; part < PARTS<BF16>; part++)
                reinterpret_cast<uint32_t *>(m.p[part])[((8 * j + g) * 8 + ((2 * warp + h) ^ g)) * 4 + c] =
                    tn_transpose_8x8(pair[part]);
        }
    tn_async_proxy_fence();
    if (!__any_sync(0xffffffffu, rescale)) return;
#pragma unroll
    for (int v = 0; v < VALUES; v++)
#pragma unroll
        for (int i = 0; i < 8; i++) w.o[v][i] *= shrink[i / 4 * 2 + i % 2];
}

// Clears the rows of the values' boxes that belong to no key: their memory may hold NaN, which a weight of 0
// would not remove.
template <bool BF16>
static __device__ __forceinline__ void clear_rows(shared_storage<BF16> &m, int n, int from)
{
    for (int at = threadIdx.x; at < (KEYS - from) * VALUES * 8; at += GROUP) {
        int r = from + at / (VALUES * 8), i = at % (VALUES * 8);
        m.slot[(n + i / 8) % SLOTS<BF16>][r * 8 + i % 8] = make_uint4(0, 0, 0, 0);
    }
    tn_async_proxy_fence();
}

template <bool BF16>
static __device__ __forceinline__ void add_values(shared_storage<BF16> &m, int n, state &w)
{
    uint64_t p = tn_wgmma_matrix(m.p, 16, 1024);
#pragma unroll
    for (int v = 0; v < VALUES; v++) tn_wgmma_keep(w.o[v]);
    tn_wgmma_fence();
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
        uint64_t x = tn_wgmma_matrix(m.slot[(n + v) % SLOTS<BF16>], KEYS * 128, 1024);
#pragma unroll
        for (int i = 0; i < KEYS / 16 * PARTS<BF16>; i++) {
            int part = i / (KEYS / 16), step = i % (KEYS / 16);
            tn_wgmma_n16<BF16, true>(w.o[v], x + step * 128, p + part * (ROWS * 8) + step * 2, 1);
        }
    }
    tn_wgmma_commit();
    tn_wgmma_wait<0>();
#pragma unroll
    for (int v = 0; v < VALUES; v++) tn_wgmma_keep(w.o[v]);
}

// --- results -----------------------------------------------------------------------------------------------

template <bool BF16>
static __device__ __forceinline__ void store(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                             shared_storage<BF16> &m, state &w)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
    tn_named_sync(1, GROUP);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float sum = w.sum[i];
        for (int x = 4; x < TN_WARP; x *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, x);
        if (g == 0) m.part[warp][i / 2 * 8 + 2 * c + i % 2] = sum;
    }
    tn_named_sync(1, GROUP);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int in_tile = i / 2 * 8 + 2 * c + i % 2, row = p.row + in_tile;
        if (row >= p.n_rows) continue;
        int token = p.first_token + row / p.group, head = p.kv_head * p.group + row % p.group;
        float sum = m.part[0][in_tile] + m.part[1][in_tile] + m.part[2][in_tile] + m.part[3][in_tile],
              factor = 1.0f, *y = (float *)(a.y + (int64_t)token * a.y_token + (int64_t)head * a.y_head);
        if (a.n_splits > 1) {
            int64_t to = ((int64_t)blockIdx.x * a.n_tokens + token) * a.n_heads + head;
            y = a.partial + to * a.v.dim;
            if (warp == 0 && g == 0) partial_ends(a)[to] = make_float2(w.max[i], sum);
            if (!(w.max[i] > -INFINITY)) continue; // the merge does not read it
        } else {
            factor = final_factor(a, head, w.max[i], sum);
        }
#pragma unroll
        for (int v = 0; v < VALUES; v++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int d = v * 64 + warp * 16 + h * 8 + g;
                if (d < a.v.dim) y[d] = w.o[v][i / 2 * 4 + 2 * h + i % 2] * factor;
            }
    }
}

// --- a block -----------------------------------------------------------------------------------------------

template <bool BF16>
static __device__ __forceinline__ void consume(const tn_cuda_attention_args &a, const work &u,
                                               shared_storage<BF16> &m)
{
    state w;
    int n = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) w.max[i] = -INFINITY, w.sum[i] = 0.0f;
#pragma unroll
    for (int v = 0; v < VALUES; v++)
#pragma unroll
        for (int i = 0; i < 8; i++) w.o[v][i] = 0.0f;
    load_queries(a, u, m);
    tn_named_sync(1, GROUP);
    for (int key = u.key; key < u.end; key += KEYS, n += BOXES) {
        multiply_keys(m, n, w);
        mask_scores(a, u.rows, key, w);
        weigh(m, w);
        if (key + KEYS > u.rows.kv_len) clear_rows(m, n, u.rows.kv_len - key);
        tn_named_sync(1, GROUP); // the weights of all warps are stored
        add_values(m, n, w);
        int box = threadIdx.x % TN_WARP;
        if (box < BOXES) tn_barrier_arrive(&m.empty[(n + box) % SLOTS<BF16>]);
    }
    store(a, u.rows, m, w);
}

template <bool BF16> static __device__ __forceinline__ void run(const tn_cuda_attention_latent_args &d)
{
    extern __shared__ uint4 shared_bytes[];
    auto &m = *reinterpret_cast<shared_storage<BF16> *>(
        (char *)shared_bytes + (1024 - (tn_shared_address(shared_bytes) & 1023)) % 1024);
    const tn_cuda_attention_args &a = d.a;
    work u;
    if (threadIdx.x == GROUP) {
        tn_tensor_prefetch(d.k);
        for (int i = 0; i < SLOTS<BF16>; i++)
            tn_barrier_init(&m.full[i], 1), tn_barrier_init(&m.empty[i], GROUP / TN_WARP);
        tn_barrier_init_fence();
    }
    __syncthreads();
    tn_pdl_trigger();
    // In most programs no predecessor writes lengths and tables (d.early), so they are read before the wait.
    if (!d.early) tn_pdl_wait();
    bool any = tn_find_row_tile<ROWS, KEYS>(a, gridDim.y - 1 - blockIdx.y, blockIdx.z, u.rows);
    if (any) find_part(a, u);
    if (threadIdx.x >= GROUP && any && u.key < u.end) {
        produce(d, u, m);
        return;
    }
    if (d.early) tn_pdl_wait();
    if (threadIdx.x < GROUP && any) consume(a, u, m);
}

TN_ENTRY __launch_bounds__(THREADS, 1)
    tn_attention_latent_f16(const __grid_constant__ tn_cuda_attention_latent_args d)
{
    run<false>(d);
}

TN_ENTRY __launch_bounds__(THREADS, 1)
    tn_attention_latent_bf16(const __grid_constant__ tn_cuda_attention_latent_args d)
{
    run<true>(d);
}
