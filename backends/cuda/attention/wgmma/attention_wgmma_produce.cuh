// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel of attention_wgmma.cuh keeps in shared memory, and the warps that fill it: which row tile
// is next, its queries in 16 bits, keys and values.
//
// Caches of f16 and bf16 are copied page by page by tensor copies, which swizzle. Pages of q8_0 and q4_0 are
// contiguous: bulk copies bring them as they are, and a warpgroup of its own expands them to f16, each thread
// 64 or 128 elements of a row. 64 elements of q8_0 take some 150 instructions, so a tile of 128 x 128 keys
// and values some 600 of the 2800 issue slots that a scheduler has in the time of its products.
//
// Queries are converted one row tile ahead. They are asked into the L2 cache first, and a warp reads 512
// adjacent bytes at a time. With pieces of 32 bytes from memory the conversion of a tile took longer than
// short tiles last (NVIDIA H200, 2026-11-23, 8 sequences of 2048 tokens: 763 us, now 607).
#ifndef TN_CUDA_ATTENTION_WGMMA_PRODUCE_CUH
#define TN_CUDA_ATTENTION_WGMMA_PRODUCE_CUH

#include "backends/cuda/attention/attention_convert.cuh"
#include "backends/cuda/attention/mma_attention.cuh"
#include "backends/cuda/attention/wgmma/attention_wgmma_work.cuh"

enum {
    GROUP = 128, // threads of a warpgroup
    CONSUMER_WARPS = 8,
    WARP_ROWS = 16,
    // Floats from row to row of staged results: 64 columns, and 16 bytes against bank conflicts.
    RESULT_PITCH = 64 + 4,
    CONVERT_WARPS = 3, // of the producer's warpgroup
    CONVERT_THREADS = CONVERT_WARPS * TN_WARP,
    EXPAND_WARPS = 4,
    STAGES = 2, // of keys, of values and of descriptions of row tiles
    // Named barriers; each consumer has its own of the first and the last kind.
    QUERIES_BARRIER = 1,
    CONVERT_BARRIER = 3,
    TURN_BARRIER = 4,
};

// Heads of D elements in a cache of type TYPE (TN_CUDA_CACHE_*).
template <int D, int TYPE> struct shape {
    static constexpr bool BF16 = TYPE == TN_CUDA_CACHE_BF16,
                          QUANTS = TYPE == TN_CUDA_CACHE_Q8_0 || TYPE == TN_CUDA_CACHE_Q4_0;
    static constexpr int KEYS =
        D == 256 ? 64 : 128; // registers have to hold 64 x D of o and 64 x KEYS scores
    static constexpr int Q_STAGES = D == 256 ? 1 : 2;
    // Pages of blocks that are on their way or being expanded.
    static constexpr int PAGE_BYTES = QUANTS ? PAGE * (D / 32) * tn_cache_block_bytes<TYPE>() : 16,
                         PAGES = QUANTS ? 4 : 1;
    static constexpr bool STAGED = !QUANTS; // results go through shared memory
    // Two consumers, one that produces, one that expands; registers of a thread after setmaxnreg, which are
    // at most the 65536 / 128 of a multiprocessor for all warpgroups.
    static constexpr int THREADS = (QUANTS ? 4 : 3) * GROUP;
    static constexpr int CONSUMER_REGISTERS = 224, PRODUCER_REGISTERS = QUANTS ? 32 : 56;
};

template <int D, int TYPE> struct alignas(1024) shared_storage {
    typedef shape<D, TYPE> S;
    uint4 q[S::Q_STAGES][ROWS * D / 8], k[STAGES][S::KEYS * D / 8], v[STAGES][S::KEYS * D / 8];
    uint4 page[S::PAGES][S::PAGE_BYTES / 16];
    float result[S::STAGED ? CONSUMER_WARPS : 1][WARP_ROWS][S::STAGED ? RESULT_PITCH : 4];
    work_tile tile[STAGES];
    uint64_t q_full[2], q_empty[2], k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES],
        tile_full[STAGES], tile_empty[STAGES], page_full[S::PAGES], page_empty[S::PAGES], tail;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The address of a row of the tile's queries. Rows behind the last one are taken for the last one.
static __device__ __forceinline__ const char *query_row(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                        int r)
{
    int row = min(p.row + r, p.n_rows - 1);
    return a.q + (int64_t)(p.first_token + row / p.group) * a.q_token +
           (int64_t)(p.kv_head * p.group + row % p.group) * a.q_head;
}

// Asks for the tile's queries, so that they are in the L2 cache when they are converted.
template <int D>
static __device__ __forceinline__ void prefetch_queries(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                        int me, int threads)
{
    for (int r = me; r < min((int)ROWS, p.n_rows - p.row); r += threads) {
        const char *row = query_row(a, p, r);
        for (int i = 0; i < D; i += 32) tn_prefetch(row + (int64_t)i * a.q_elem); // lines of 128 bytes
    }
}

static __device__ __forceinline__ const char *address_of_lane(const char *x, int lane)
{
    uint64_t at = (uint64_t)x;
    uint32_t low = __shfl_sync(0xffffffffu, (uint32_t)at, lane),
             high = __shfl_sync(0xffffffffu, (uint32_t)(at >> 32), lane);
    return (const char *)((uint64_t)high << 32 | low);
}

// Four elements of row r of the tile's queries, from element e on, to 16 bits.
template <bool BF16> static __device__ __forceinline__ void put_query(uint4 *to, int r, int e, float4 x)
{
    uint4 *chunk = &to[e / 64 * ROWS * 8 + r * 8 + (e / 8 % 8 ^ r % 8)];
    reinterpret_cast<uint2 *>(chunk)[e / 4 % 2] =
        make_uint2(tn_pack16<BF16>(x.x, x.y), tn_pack16<BF16>(x.z, x.w));
}

// Converts rows first + warp, first + warp + warps, ... of the tile's queries to 16 bits, n / warps of them.
// A lane finds the address of every 32nd row and converts four elements at a time, so that a warp reads 512
// adjacent bytes and has UNROLL of these loads in flight.
template <int D, bool BF16, int UNROLL>
static __device__ __forceinline__ void convert_queries(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                       uint4 *to, int first, int n, int warp, int warps)
{
    bool wide = a.q_elem == 4 && ((uintptr_t)a.q | (uintptr_t)a.q_token | (uintptr_t)a.q_head) % 16 == 0;
    int lane = threadIdx.x % TN_WARP;
    for (int base = warp; base < n; base += TN_WARP * warps) {
        int end = min((n - base + warps - 1) / warps, (int)TN_WARP) * (D / 4); // in units of four elements
        const char *mine = query_row(a, p, first + min(base + lane * warps, n - 1));
        for (int at = 0; at < end && wide; at += UNROLL * TN_WARP) {
            float4 x[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                int i = at + u * TN_WARP + lane;
                x[u] = *reinterpret_cast<const float4 *>(address_of_lane(mine, i / (D / 4) % TN_WARP) +
                                                         i % (D / 4) * 16);
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                int i = at + u * TN_WARP + lane;
                if (i < end) put_query<BF16>(to, first + base + i / (D / 4) * warps, i % (D / 4) * 4, x[u]);
            }
        }
        for (int at = 0; at < end && !wide; at += TN_WARP) {
            int i = at + lane;
            const char *from =
                address_of_lane(mine, i / (D / 4) % TN_WARP) + (int64_t)(i % (D / 4) * 4) * a.q_elem;
            float4 x =
                make_float4(*(const float *)from, *(const float *)(from + a.q_elem),
                            *(const float *)(from + 2 * a.q_elem), *(const float *)(from + 3 * a.q_elem));
            if (i < end) put_query<BF16>(to, first + base + i / (D / 4) * warps, i % (D / 4) * 4, x);
        }
    }
    tn_async_proxy_fence();
}

// The same where the step before has left them in 16 bits: copies of 16 bytes, all of them in flight at once.
// This thread is `me` of `threads`.
template <int D>
static __device__ __forceinline__ void copy_queries(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                    uint4 *to, int first, int n, int me, int threads)
{
    for (int i = me; i < n * (D / 8); i += threads) {
        int r = first + i / (D / 8), c = i % (D / 8);
        tn_copy_async(tn_shared_address(&to[c / 8 * ROWS * 8 + r * 8 + (c % 8 ^ r % 8)]),
                      query_row(a, p, r) + c * 16, true);
    }
    tn_copy_commit();
    tn_copy_wait<0>();
    tn_async_proxy_fence();
}

// --- keys and values -----------------------------------------------------------------------------------

// Clears the rows of the tile's values from `from` on, which belong to no key. Their memory may hold NaN,
// which a weight of 0 would not remove.
template <int D, int KEYS> static __device__ __forceinline__ void clear_rows(uint4 *v, int from)
{
    int lane = threadIdx.x % TN_WARP;
    for (int r = max(from, 0); r < KEYS; r++)
        for (int i = lane; i < D / 8; i += TN_WARP)
            v[i / 8 * KEYS * 8 + r * 8 + i % 8] = make_uint4(0, 0, 0, 0);
    tn_async_proxy_fence();
    __syncwarp();
}

// Starts the copies of a tile: its pages begin at the rows `row` of the cache.
template <int D, int KEYS>
static __device__ __forceinline__ void load_rows(uint4 *to, const void *map, const int (&row)[2],
                                                 uint64_t *full)
{
#pragma unroll
    for (int h = 0; h < KEYS / PAGE; h++)
#pragma unroll
        for (int i = 0; i < D / 64; i++)
            tn_tensor_load(to + (i * KEYS + h * PAGE) * 8, map, i * 64, row[h], full);
}

// The rows of the cache where the pages of a row tile begin: lane l holds that of page `first` + l of the
// sequence.
struct page_rows {
    int first, row;
};

// Called by a whole warp.
static __device__ __forceinline__ page_rows page_rows_get(const tn_cuda_attention_args &a,
                                                          const tn_row_tile &p, int first)
{
    return {first, page_begin(a, p, first + (int)threadIdx.x % TN_WARP)};
}

// The row of the page that key `key` is in. Those of the first two pages are known already, so that nothing
// waits for the table. Called by a whole warp with rising keys.
template <bool CUTS>
static __device__ __forceinline__ int page_row(const tn_cuda_attention_args &a, const work_tile &w,
                                               page_rows &r, int key)
{
    const tn_row_tile &p = w.t;
    int page = min(key, p.end - 1) / PAGE, at = (key - p.key) / PAGE;
    if (CUTS && at < 2) return w.rows[at];
    if (page >= r.first + TN_WARP) r = page_rows_get(a, p, page);
    return __shfl_sync(0xffffffffu, r.row, page - r.first);
}

// How many tiles of keys the producer has copied in all of the block's work, and how many of these were the
// incomplete last tile of a sequence. The values of the last of those are not complete yet if `open`: rows
// from `from` on have to be cleared.
struct produced {
    int n, tails, from;
    bool open;
};

// Completes the values of the tile of keys before. By then the keys of the next tile are on their way.
template <int D, int TYPE>
static __device__ __forceinline__ void close_tail(shared_storage<D, TYPE> &s, produced &at)
{
    if (!at.open) return;
    int stage = (at.n - 1) % STAGES;
    tn_barrier_wait(&s.tail, at.tails++ % 2);
    clear_rows<D, shape<D, TYPE>::KEYS>(s.v[stage], at.from);
    if (threadIdx.x % TN_WARP == 0) tn_barrier_arrive(&s.v_full[stage]);
    at.open = false;
}

// Copies the keys and values of one row tile.
template <int D, int TYPE, bool CUTS>
static __device__ __forceinline__ void copy_tile(const tn_cuda_attention_mapped &m, const work_tile &w,
                                                 shared_storage<D, TYPE> &s, produced &at)
{
    constexpr int KEYS = shape<D, TYPE>::KEYS, BYTES = KEYS * D * 2;
    int lane = threadIdx.x % TN_WARP;
    const tn_row_tile &p = w.t;
    page_rows r = {0, 0};
    if (p.key < p.end) r = page_rows_get(m.a, p, p.key / PAGE);
    for (int key = p.key; key < p.end; key += KEYS, at.n++) {
        int row[2], stage = at.n % STAGES;
#pragma unroll
        for (int h = 0; h < KEYS / PAGE; h++) row[h] = page_row<CUTS>(m.a, w, r, key + h * PAGE);
        bool tail = key + KEYS > p.kv_len;
        if (CUTS && at.n == 0) tn_pdl_wait();
        tn_barrier_wait(&s.k_empty[stage], at.n / STAGES % 2 ^ 1);
        if (lane == 0) {
            tn_barrier_expect(&s.k_full[stage], BYTES);
            load_rows<D, KEYS>(s.k[stage], m.k, row, &s.k_full[stage]);
        }
        if (CUTS) close_tail<D, TYPE>(s, at);
        tn_barrier_wait(&s.v_empty[stage], at.n / STAGES % 2 ^ 1);
        uint64_t *full = tail ? &s.tail : &s.v_full[stage];
        if (lane == 0) {
            tn_barrier_expect(full, BYTES);
            load_rows<D, KEYS>(s.v[stage], m.v, row, full);
        }
        at.open = tail, at.from = p.kv_len - key;
        if (!CUTS && tail) at.n++, close_tail<D, TYPE>(s, at), at.n--;
    }
}

// Copies the pages of keys and values of one row tile as they are; at.n counts pages.
template <int D, int TYPE, bool CUTS>
static __device__ __forceinline__ void copy_pages(const tn_cuda_attention_mapped &m, const work_tile &w,
                                                  shared_storage<D, TYPE> &s, produced &at)
{
    typedef shape<D, TYPE> S;
    constexpr int PARTS = S::KEYS / PAGE;
    const tn_row_tile &p = w.t;
    page_rows r = {0, 0};
    if (p.key < p.end) r = page_rows_get(m.a, p, p.key / PAGE);
    for (int key = p.key; key < p.end; key += S::KEYS) {
        int64_t row[PARTS];
#pragma unroll
        for (int h = 0; h < PARTS; h++) row[h] = page_row<CUTS>(m.a, w, r, key + h * PAGE);
        if (CUTS && at.n == 0) tn_pdl_wait();
#pragma unroll
        for (int h = 0; h < 2 * PARTS; h++, at.n++) {
            int slot = at.n % S::PAGES;
            tn_barrier_wait(&s.page_empty[slot], at.n / S::PAGES % 2 ^ 1);
            if (threadIdx.x % TN_WARP != 0) continue;
            tn_async_proxy_fence();
            tn_barrier_expect(&s.page_full[slot], S::PAGE_BYTES);
            tn_bulk_copy(s.page[slot],
                         (h < PARTS ? m.a.k.data : m.a.v.data) + row[h % PARTS] * m.a.k.row_size,
                         S::PAGE_BYTES, &s.page_full[slot]);
        }
    }
}

// Calls `work` for each row tile of the block in order. Each warp says when it has read the description.
template <int D, int TYPE, typename F>
static __device__ __forceinline__ void for_each_tile(shared_storage<D, TYPE> &s, const F &work)
{
    for (int n = 0;; n++) {
        int slot = n % STAGES;
        tn_barrier_wait(&s.tile_full[slot], n / STAGES % 2);
        work_tile w = s.tile[slot];
        __syncwarp();
        if (threadIdx.x % TN_WARP == 0) tn_barrier_arrive(&s.tile_empty[slot]);
        if (w.t.seq < 0) return;
        work(w);
    }
}

// Three warps convert the queries of all row tiles but the first, and the first of these warps finds the
// tiles, for the others too. The queries of the first tile are converted by the consumers, which have nothing
// else to do yet and are more threads.
template <int D, int TYPE, bool CUTS>
static __device__ __forceinline__ void produce_queries(const tn_cuda_attention_wgmma_args &args,
                                                       shared_storage<D, TYPE> &s)
{
    const tn_cuda_attention_args &a = args.mapped.a;
    typedef shape<D, TYPE> S;
    int warp = threadIdx.x % GROUP / TN_WARP, lane = threadIdx.x % TN_WARP;
    int n_tiles = 0;
    work_list list = {0, 0, 0};
    // In most programs no predecessor writes lengths and tables, so the first tile is found before the wait.
    if (CUTS && (warp != 1 || !args.early)) tn_pdl_wait();
    if (CUTS && warp == 1) list = list_work<S::KEYS>(a, args.part_cost);
    if (!CUTS && warp == 1) n_tiles = tn_count_row_tiles<ROWS>(a);
    for (int n = 0;; n++) {
        int slot = n % STAGES, stage = n % S::Q_STAGES;
        if (warp == 1) {
            tn_barrier_wait(&s.tile_empty[slot], n / STAGES % 2 ^ 1);
            work_tile p;
            if (CUTS)
                find_work<S::KEYS>(a, n, list, p);
            else
                find_whole<S::KEYS>(a, n, n_tiles, p);
            if (lane == 0) s.tile[slot] = p, tn_barrier_arrive(&s.tile_full[slot]);
            if (CUTS && n == 0) tn_pdl_wait();
        }
        tn_named_sync(CONVERT_BARRIER, CONVERT_THREADS);
        const tn_row_tile &p = s.tile[slot].t;
        bool end = p.seq < 0;
        int me = (int)threadIdx.x % GROUP - TN_WARP;
        bool packed = a.q_elem == 2, wanted = n > 0 && !end;
        if (wanted && !packed) prefetch_queries<D>(a, p, me, CONVERT_THREADS);
        tn_barrier_wait(&s.q_empty[stage], n / S::Q_STAGES % 2 ^ 1);
        int rows = CUTS && is_idle(p, 1) ? GROUP_ROWS : ROWS;
        if (wanted && packed)
            copy_queries<D>(a, p, s.q[stage], 0, rows, me, CONVERT_THREADS);
        else if (wanted)
            convert_queries<D, S::BF16, S::QUANTS ? 2 : 4>(a, p, s.q[stage], 0, rows, warp - 1,
                                                           CONVERT_WARPS);
        __syncwarp();
        if (lane == 0) tn_barrier_arrive(&s.q_full[stage]);
        if (end) return;
    }
}

// --- blocks to f16 -------------------------------------------------------------------------------------

// Eight elements of 8 bits, without their offset (1024 + `zero` of q8_0 or q4_0), times their scale. CLAMP:
// products may exceed f16, and an infinity times a weight of 0 would give NaN.
template <bool CLAMP>
static __device__ __forceinline__ uint4 scale_codes(uint32_t a, uint32_t b, uint32_t zero, __half2 scale)
{
    const uint32_t pairs[4] = {__byte_perm(a, 0x64646464u, 0x4140), __byte_perm(a, 0x64646464u, 0x4342),
                               __byte_perm(b, 0x64646464u, 0x4140), __byte_perm(b, 0x64646464u, 0x4342)};
    uint32_t out[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
        __half2 x =
            __hsub2(*reinterpret_cast<const __half2 *>(&pairs[e]), *reinterpret_cast<const __half2 *>(&zero));
        if (CLAMP) {
            constexpr float MOST = 65504.0f; // the largest finite f16
            float2 f = __half22float2(x);
            float d = __half2float(__low2half(scale));
            out[e] = tn_pack16<false>(fminf(fmaxf(f.x * d, -MOST), MOST), fminf(fmaxf(f.y * d, -MOST), MOST));
        } else {
            out[e] = tn_half2_bits(__hmul2(x, scale));
        }
    }
    return make_uint4(out[0], out[1], out[2], out[3]);
}

// A block of 32 elements, given as the bits of its scale and its codes: 8 words of q8_0, 4 of q4_0.
template <int TYPE, bool CLAMP>
static __device__ __forceinline__ void expand_block(uint32_t scale, const uint32_t *codes, uint4 (&x)[4])
{
    uint32_t twice = scale | scale << 16;
    __half2 d = *reinterpret_cast<__half2 *>(&twice);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (TYPE == TN_CUDA_CACHE_Q8_0)
            x[i] = scale_codes<CLAMP>(codes[2 * i] ^ 0x80808080u, codes[2 * i + 1] ^ 0x80808080u, 0x64806480u,
                                      d);
        else
            x[i] = scale_codes<CLAMP>(codes[i % 2 * 2] >> i / 2 * 4 & 0x0f0f0f0fu,
                                      codes[i % 2 * 2 + 1] >> i / 2 * 4 & 0x0f0f0f0fu, 0x64086408u, d);
    }
}

// Expands 64 elements, which are two blocks, to eight chunks of a row of 128 bytes; `swap` is the row % 8.
template <int TYPE>
static __device__ __forceinline__ void expand_pair(const uint32_t *word, uint4 *row, int swap)
{
    constexpr int CODES = TYPE == TN_CUDA_CACHE_Q8_0 ? 8 : 4; // words of a block
    uint32_t first[CODES];
#pragma unroll
    for (int i = 0; i < CODES; i++) first[i] = __byte_perm(word[i], word[i + 1], 0x5432);
    const uint32_t scale[2] = {word[0] & 0xffffu, word[CODES] >> 16};
#pragma unroll
    for (int b = 0; b < 2; b++) {
        const uint32_t *codes = b ? word + CODES + 1 : first;
        uint4 x[4];
        // Codes have magnitudes of up to 128, and 128 times this scale is the largest finite f16.
        if ((scale[b] & 0x7fffu) > 0x5fffu)
            expand_block<TYPE, true>(scale[b], codes, x);
        else
            expand_block<TYPE, false>(scale[b], codes, x);
#pragma unroll
        for (int i = 0; i < 4; i++) row[b * 4 + i ^ swap] = x[i];
    }
}

// Loads pair `i` of blocks of a row, by 8 bytes where that begins at a multiple of 8: an odd pair of an odd
// number of words begins in the middle of such a unit.
template <int WORDS, bool WIDE>
static __device__ __forceinline__ void load_words(const char *from, int i, uint32_t (&word)[WORDS])
{
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        int at = i * WORDS + w;
        if (WIDE && at % 2 == 0 && w + 1 < WORDS) {
            uint2 x = *(const uint2 *)(from + at * 4);
            word[w] = x.x, word[w + 1] = x.y;
        } else if (!WIDE || w == 0 || at % 2 == 0) {
            word[w] = *(const uint32_t *)(from + at * 4);
        }
    }
}

// Expands a tile of keys, or of values, whose pages are the next ones. Rows from `n` on become zero.
template <int D, int TYPE>
static __device__ __forceinline__ void expand_tile(shared_storage<D, TYPE> &s, uint4 *to, uint64_t *full,
                                                   int &page, int n)
{
    typedef shape<D, TYPE> S;
    constexpr int PARTS = S::KEYS / PAGE, PAIR_WORDS = TYPE == TN_CUDA_CACHE_Q8_0 ? 17 : 9;
    constexpr int PAIRS = S::KEYS * D / 64 / GROUP; // of a thread
    int t = threadIdx.x % GROUP, row = t % S::KEYS, pair = t / S::KEYS * PAIRS;
    int at = page + row / PAGE, slot = at % S::PAGES;
    tn_barrier_wait(&s.page_full[slot], at / S::PAGES % 2);
    // A row of 64 elements is a multiple of 4 bytes, one of 128 a multiple of 8. An odd number of such units
    // from row to row leaves no bank conflicts.
    const char *from = (const char *)s.page[slot] + (row % PAGE * (D / 64) + pair) * PAIR_WORDS * 4;
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        uint4 *out = to + ((pair + i) * S::KEYS + row) * 8;
        uint32_t word[PAIR_WORDS];
        load_words<PAIR_WORDS, PAIRS == 2>(from, i, word);
        if (row < n) {
            expand_pair<TYPE>(word, out, row % 8);
        } else {
#pragma unroll
            for (int c = 0; c < 8; c++) out[c] = make_uint4(0, 0, 0, 0);
        }
    }
    page += PARTS;
    tn_async_proxy_fence();
    __syncwarp();
    if (t % TN_WARP == 0) tn_barrier_arrive(&s.page_empty[slot]), tn_barrier_arrive(full);
}

// Expands the keys and values of one row tile; at.n counts tiles of keys.
template <int D, int TYPE>
static __device__ __forceinline__ void expand(const tn_row_tile &p, shared_storage<D, TYPE> &s, produced &at,
                                              int &page)
{
    constexpr int KEYS = shape<D, TYPE>::KEYS;
    for (int key = p.key; key < p.end; key += KEYS, at.n++) {
        int stage = at.n % STAGES, parity = at.n / STAGES % 2 ^ 1;
        tn_barrier_wait(&s.k_empty[stage], parity);
        expand_tile<D, TYPE>(s, s.k[stage], &s.k_full[stage], page, KEYS);
        tn_barrier_wait(&s.v_empty[stage], parity);
        expand_tile<D, TYPE>(s, s.v[stage], &s.v_full[stage], page, p.kv_len - key);
    }
}

#endif

#endif
