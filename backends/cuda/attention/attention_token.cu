// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for one token of each sequence, o = softmax(scale q K^T + mask) V per head, fused with the
// rope_cache step before it if there is one. Its time is bound by latency, not by bandwidth: each stage is
// written to shorten the chain of dependent steps. What a warp does with a tile of keys stands in
// attention_warp.cuh, the rows of the token in attention_token_row.cuh; this file has the way of the keys to
// the warps and the way of the results to memory.
//
// Grid (splits, KV heads times parts of 8 query heads, sequences), in clusters of C splits (1 where there are
// no clusters). Before the wait for the predecessor, a block loads what earlier runs wrote: lengths, table,
// angles, and the keys and values of the first tiles of each warp. After it come the rows of this token, one
// warp per row. The warps store their results into shared memory of the block of the cluster that finishes
// the row, where one warp merges them. The results of several clusters go through memory, to the warp that
// arrives last (a counter per head and sequence, which is zero when the module is loaded and which that warp
// sets back). Sums are in the order of the splits, so results are the same in every run.
//
// Short sequences take one cluster, so that nothing goes through memory, where clusters of two or more blocks
// fit. Others on compute capability 9.0 and 10.0 (STAGES > 0) take clusters of one block, whose warps copy
// their tiles through rings in shared memory. Where there are more pairs of sequence and KV head than
// multiprocessors, blocks have fewer warps, so that two or four of them share a multiprocessor. Each pair has
// one block then; where the host says that lengths differ much, more blocks take parts of long sequences
// (attention_token_share.cuh). Beside pieces of prompts single tokens of many sequences have a launch of
// their own, which runs at the same time as that of the pieces (wgmma/attention_wgmma.c).
//
// Scratch: splits / C * H * (Dv + 2) floats. Bytes moved: the visible rows of both caches once. Operations: 2
// (2 D + Dv) per visible (head, key), because Q has two parts. Limit: latency of the stages below; memory
// with long sequences.
//
// NVIDIA H200, 2026-11-22, heads of 128 in f16, us:
// - 512 keys take 6.6, where attention_decode.cu takes 7.8. 4096 keys in one cluster of 8 took 14.2, in 16
//   single blocks 12.9, so from a capacity of 2048 keys on single blocks are used.
// - A layer of 8B takes 6.6 to 7.4 with the fused step (11.2 before), one of Qwen3-MoE 6.4 to 7.5 (11.7
//   before). In ns after the predecessor's end: lengths 325, angles 2070, rope 2870, matrix products 4060,
//   result sent 4435, barrier of the cluster 5530, result 7340. The largest stage is the result's 1.8 us:
//   reductions over 32 slots, divisions, rounding.
// - 32000 keys over 8 KV heads add 38.8 to a layer with rings of 8 warps with 3 tiles each, and 44.1 with
//   tiles straight into registers; the copies alone take 35.1, the bytes at the read peak of the memory
//   29.7. On the way there: 12 warps with 2 tiles 41.8, evict-first 40.5, tiles interleaved over the blocks
//   and pages read before the wait 41.0. L2 prefetch of 1 or 2 tiles ahead instead of rings took 45.1
//   and 51.3.
// - Tiles of 16-bit caches in rings take half the instructions since 2026-11-28 (attention_token_tile.cuh).
// - Many sequences, 2026-11-23 (docs/log/cuda-attention.md): a block that has a multiprocessor for itself
//   takes some 5 us even for a few keys.
#include "backends/cuda/attention/attention_token_merge.cuh"
#include "backends/cuda/attention/attention_token_row.cuh"
#include "backends/cuda/attention/attention_token_share.cuh"
#include "backends/cuda/attention/attention_token_tile.cuh"
#include "backends/cuda/attention/wgmma_attention.cuh"

// Tiles of a split where there are several clusters: merging a shorter one costs more than it saves.
enum { MIN_TILES = 4 };

// --- what a block works on -------------------------------------------------------------------------------

// The pages of a sequence.
static __device__ __forceinline__ const int32_t *table_of(const tn_cuda_attention_token_args &d, int seq)
{
    return d.a.table + (int64_t)seq * d.a.max_blocks;
}

static __device__ __forceinline__ int warps_of_block()
{
    return (int)blockDim.x / TN_WARP;
}

// Finds the tiles of this block; returns false if it has none. INTERLEAVED is for clusters of one block:
// there the splits take turns, tile by tile, so that all are equally long and read adjacent memory. Neither
// that case nor the case of one cluster for all keys divides, because a division takes as long as a read of
// shared memory and the loads of keys wait for it. EXTRA: there may be blocks for parts of long sequences.
template <bool INTERLEAVED, bool EXTRA>
static __device__ __forceinline__ bool find_work(const tn_cuda_attention_token_args &d, const share &s,
                                                 part &p, cluster_work &u)
{
    const tn_cuda_attention_args &a = d.a;
    const bool single = EXTRA && are_single(a);
    p.seq = s.seq, p.first_token = s.query;
    int n = a.q_start[p.seq + 1] - a.q_start[p.seq], lo, hi, row = 0, longest = 0;
    p.kv_len = a.kv_len[p.seq];
    if (EXTRA) {
        longest = tiles_of_token(a, p.kv_len);
        if (are_apart(a)) p.kv_len -= a.q_start[p.seq + 1] - 1 - p.first_token;
    }
    p.first_pages = table_of(d, p.seq)[min((int)threadIdx.x % TN_WARP, a.max_blocks - 1)];
    p.split = s.split, p.kv_head = blockIdx.y, p.group = d.group;
    if (d.parts > 1) p.kv_head = blockIdx.y / d.parts, row = blockIdx.y % d.parts * MAX_ROWS;
    p.n_rows = min((int)MAX_ROWS, d.group - row);
    u.head = p.kv_head * d.group + row;
    u.rank = cluster_rank(), u.cluster = p.split >> d.cluster_shift;
    u.most_clusters = a.n_splits >> d.cluster_shift;
    tn_attention_range(a, p.kv_len - 1, p.kv_len, &lo, &hi);
    u.first = lo / KEYS, u.n_tiles = max(0, (hi + KEYS - 1) / KEYS - u.first);
    if (INTERLEAVED) {
        int most = s.n_splits;
        if (EXTRA && s.split == 0 && longest > least_limit()) most = splits_within(a, longest, find_limit(d));
        u.n_clusters = p.n_splits = min(most, max(1, u.n_tiles / MIN_TILES));
        p.tile = u.first + p.split, p.end = u.first + u.n_tiles;
        return (single ? n == 1 : n > 0) && p.split < p.n_splits;
    }
    int size = 1 << d.cluster_shift;
    u.n_clusters = 1, u.per = max(1, (u.n_tiles + size - 1) >> d.cluster_shift);
    if (u.n_tiles > d.alone) {
        int clusters = min(a.n_splits >> d.cluster_shift, max(1, u.n_tiles / (size * MIN_TILES)));
        u.per = (u.n_tiles + clusters * size - 1) / (clusters * size);
        u.n_clusters = (u.n_tiles + u.per * size - 1) / (u.per * size);
    }
    p.n_splits = u.n_clusters * size;
    p.tile = u.first + p.split * u.per;
    p.end = min(u.first + u.n_tiles, p.tile + u.per);
    return n > 0 && u.cluster < u.n_clusters;
}

// The number of warps of this cluster that have tiles, each of which sends a result.
template <bool INTERLEAVED>
static __device__ __forceinline__ int count_slots(const tn_cuda_attention_token_args &d, const part &p,
                                                  const cluster_work &u)
{
    if (INTERLEAVED) return min(warps_of_block(), (p.end - p.tile + p.n_splits - 1) / p.n_splits);
    int n = 0, remaining = u.n_tiles - (u.cluster << d.cluster_shift) * u.per;
    for (int i = 0; i < 1 << d.cluster_shift; i++, remaining -= u.per)
        n += min(warps_of_block(), max(0, min(u.per, remaining)));
    return n;
}

// --- tiles -------------------------------------------------------------------------------------------------

// Row 0 of a tile of the block's KV head.
static __device__ __forceinline__ const char *
tile_of(const tn_cuda_attention_token_args &d, const tn_cuda_cache &c, const part &p, int page, int tile)
{
    return c.data + p.kv_head * c.head_size + page * c.block_size + (tile * KEYS & d.block_mask) * c.row_size;
}

template <int TYPE, int DK>
static __device__ __forceinline__ void load_tile_keys(const tn_cuda_attention_token_args &d, const part &p,
                                                      int tile, int page, warp_state<TYPE, DK, DK, 1> &w)
{
    load_keys(d.a, w, tile_of(d, d.a.k, p, page, tile));
}

template <int TYPE, int DK>
static __device__ __forceinline__ void load_tile_values(const tn_cuda_attention_token_args &d, const part &p,
                                                        int tile, int page, warp_state<TYPE, DK, DK, 1> &w)
{
    load_values(d.a, w, tile_of(d, d.a.v, p, page, tile), p.kv_len - tile * KEYS);
}

// Which rows of a tile a lane has as operands of mma: 2 of keys and 4 of values. Any order is right in which
// both matrix products have the same key at the same place of the sum. For tiles in rings, a lane has four
// adjacent values: with a gap behind each four (ring_gap) they are read from shared memory without bank
// conflicts.
template <bool RING> static __device__ __forceinline__ int key_row(int i)
{
    int g = threadIdx.x % TN_WARP / 4;
    return RING ? g / 2 * 4 + g % 2 + 2 * i : g + 8 * i;
}

template <bool RING> static __device__ __forceinline__ int value_row(int i)
{
    int c = threadIdx.x % 4;
    return RING ? 4 * c + i : 2 * c + i % 2 + i / 2 * 8;
}

// Replaces the token's own key and value, if they are in this tile: they come from shared memory, because the
// cache does not have them yet.
template <bool RING, int TYPE, int DK>
static __device__ __forceinline__ void load_own(const tn_cuda_attention_args &a,
                                                const token_storage<DK> &shared, int own, int end,
                                                warp_state<TYPE, DK, DK, 1> &w)
{
    int lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (own == key_row<RING>(i)) w.key[i].load((const char *)shared.encoded[0], c, a.k.dim);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (own == value_row<RING>(i) && own < end)
            w.value[i].load((const char *)shared.encoded[1], g, a.v.dim);
}

// Where a warp is: its next tile, which is number `index` of the 32 tiles whose pages the lanes have.
struct tile_cursor {
    int tile, index, pages;
};

// The pages of the warp's next 32 tiles, one in each lane.
static __device__ __forceinline__ void find_tile_pages(const tn_cuda_attention_token_args &d, const part &p,
                                                       tile_cursor &at)
{
    int tile = at.tile + warps_of_block() * ((int)threadIdx.x % TN_WARP);
    at.index = 0;
    at.pages = table_of(d, p.seq)[min(tile, p.end - 1) * KEYS >> d.block_shift];
}

static __device__ __forceinline__ void find_columns(const tn_cuda_attention_args &a, const part &p, int head,
                                                    column (&col)[1][2])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        column &u = col[0][h];
        int row = (int)threadIdx.x % 4 * 2 + h;
        u = {0, 0, p.kv_len - 1, row < p.n_rows ? tn_attention_slope(a, head + row) : 0.0f};
        if (row < p.n_rows) tn_attention_range(a, u.position, p.kv_len, &u.lo, &u.hi);
    }
}

// --- tiles by way of shared memory ----------------------------------------------------------------------

// For long sequences: each warp has a ring of STAGES tiles, which bulk copies fill. Loads into registers are
// then short, because they come from shared memory. The barriers of all rings lie behind the rings.
template <int DK, int STAGES> struct tile_ring {
    struct {
        uint4 k[KEYS * DK / 8 + 6], v[KEYS * DK / 8 + 6]; // with gaps (ring_gap)
    } tile[STAGES];
};
template <int STAGES> struct tile_barriers {
    uint64_t full[STAGES];
};

// The pages of the warp's next 32 tiles from `tile` on, one in each lane. A tile that does not exist gets the
// page of the last one.
static __device__ __forceinline__ int pages_from(const tn_cuda_attention_token_args &d, const part &p,
                                                 int tile)
{
    tile += warps_of_block() * p.n_splits * ((int)threadIdx.x % TN_WARP);
    return table_of(d, p.seq)[min(tile, p.end - 1) * KEYS >> d.block_shift];
}

// Returns the page of the warp's next tile, which exists, and moves on to the tile after it.
static __device__ __forceinline__ int next_page(const tn_cuda_attention_token_args &d, const part &p,
                                                tile_cursor &at)
{
    if (at.index == TN_WARP) at.pages = pages_from(d, p, at.tile), at.index = 0;
    at.tile += warps_of_block() * p.n_splits;
    return __shfl_sync(0xffffffffu, at.pages, at.index++);
}

// Copies the rows of a tile, with the gaps.
template <int TYPE>
static __device__ __forceinline__ void copy_rows(char *to, const char *from, uint32_t row_size,
                                                 uint64_t *full)
{
    enum { PIECES = ring_gap<TYPE>() > 0 ? 4 : 1 };
    uint32_t piece = row_size * (KEYS / PIECES);
#pragma unroll
    for (int i = 0; i < PIECES; i++)
        tn_bulk_copy_once(to + i * (piece + ring_gap<TYPE>()), from + i * piece, piece, full);
}

// Starts the copy of the warp's next tile, if there is one, and returns its page.
template <int TYPE, int DK, int STAGES>
static __device__ __forceinline__ int copy_next_tile(const tn_cuda_attention_token_args &d, const part &p,
                                                     tile_cursor &at, int stage, tile_ring<DK, STAGES> &ring,
                                                     tile_barriers<STAGES> &barriers)
{
    int tile = at.tile;
    if (tile >= p.end) return 0;
    int page = next_page(d, p, at);
    const char *k = tile_of(d, d.a.k, p, page, tile), *v = tile_of(d, d.a.v, p, page, tile);
    if (!tn_elect_lane()) return page;
    // Orders what the lanes did with the previous tile in this place before the copy (PTX ISA, "Async
    // proxy").
    tn_async_proxy_fence();
    uint32_t k_row = (uint32_t)d.a.k.row_size, v_row = (uint32_t)d.a.v.row_size;
    uint64_t *full = &barriers.full[stage];
    tn_barrier_expect(full, (k_row + v_row) * KEYS);
    copy_rows<TYPE>((char *)ring.tile[stage].k, k, k_row, full);
    copy_rows<TYPE>((char *)ring.tile[stage].v, v, v_row, full);
    return page;
}

// Goes through the warp's tiles of block types in its ring.
template <int TYPE, int DK, int STAGES>
static __device__ __forceinline__ void
attend_quants(const tn_cuda_attention_token_args &d, const part &p, int head, const token_storage<DK> &shared,
              int slot, tile_cursor &at, tile_cursor &ahead, tile_ring<DK, STAGES> &ring,
              tile_barriers<STAGES> &barriers, warp_state<TYPE, DK, DK, 1> &w)
{
    const tn_cuda_attention_args &a = d.a;
    int g = threadIdx.x % TN_WARP / 4, c = threadIdx.x % 4;
    column col[1][2];
    find_columns(a, p, head, col);
    for (int i = 0; at.tile < p.end; i++) {
        int stage = i % STAGES, key = at.tile * KEYS, page = next_page(d, p, at), end = p.kv_len - key;
        int own = slot - (page << d.block_shift) - (key & d.block_mask);
        const char *k = (const char *)ring.tile[stage].k, *v = (const char *)ring.tile[stage].v;
        float s[1][4];
        tn_barrier_wait(&barriers.full[stage], i / STAGES & 1);
#pragma unroll
        for (int r = 0; r < 2; r++) w.key[r].load(k + key_row<true>(r) * (int)a.k.row_size, c, a.k.dim);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (value_row<true>(r) < end)
                w.value[r].load(v + value_row<true>(r) * (int)a.v.row_size, g, a.v.dim);
            else
                w.value[r].clear();
        }
        if (own >= 0 && own < KEYS) load_own<true, TYPE, DK>(a, shared, own, end, w);
        multiply_quants(w, shared.queries, s);
        weigh(a, w, col, key + key_row<true>(0), s, 2);
        __syncwarp(); // all lanes have read what they need of the tile
        copy_next_tile<TYPE>(d, p, ahead, stage, ring, barriers);
        add_values(w, s);
    }
}

// Goes through the warp's tiles of 16-bit types in its ring. FOUR: there are up to four query heads.
template <bool FOUR, int TYPE, int DK, int STAGES>
static __device__ __forceinline__ void
attend_tiles(const tn_cuda_attention_token_args &d, const part &p, int head, const token_storage<DK> &shared,
             int slot, tile_cursor &at, tile_cursor &ahead, int (&pages)[STAGES], tile_ring<DK, STAGES> &ring,
             tile_barriers<STAGES> &barriers, warp_state<TYPE, DK, DK, 1> &w)
{
    tile_queries<DK, FOUR> q;
    load_queries<TYPE>(d.a, p, head, shared.queries, q);
    for (int stage = 0, parity = 0; at.tile < p.end; at.tile += warps_of_block() * p.n_splits) {
        int key = at.tile * KEYS, own = slot - (pages[0] << d.block_shift) - (key & d.block_mask),
            end = p.kv_len - key;
        char *k = (char *)ring.tile[stage].k, *v = (char *)ring.tile[stage].v;
        float x[FOUR ? 1 : 2][2];
        uint32_t values[DK / 16][4];
        tn_barrier_wait(&barriers.full[stage], parity);
        if ((own >= 0 && own < KEYS) || end < KEYS) complete_tile<TYPE>(d.a, shared, own, end, k, v);
        score<TYPE>(d.a, tn_shared_address(k), q, x);
#pragma unroll
        for (int i = 0; i < DK / 16; i++)
            tn_load_matrices<true>(values[i], tn_shared_address(v) + q.v_at + 32 * i);
        weigh_tile<TYPE>(d.a, key, q, w.o, x);
        add_tile<TYPE, DK, FOUR>(values, x, w.o);
        __syncwarp(); // all lanes have read what they need of the tile
#pragma unroll
        for (int i = 1; i < STAGES; i++) pages[i - 1] = pages[i];
        pages[STAGES - 1] = copy_next_tile<TYPE>(d, p, ahead, stage, ring, barriers);
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    finish_tiles(q, w.o, w.max, w.sum);
}

// Goes through the warp's tiles in its ring.
template <int TYPE, int DK, int STAGES>
static __device__ __forceinline__ void
attend_ring(const tn_cuda_attention_token_args &d, const part &p, int head, const token_storage<DK> &shared,
            int slot, tile_cursor &at, tile_cursor &ahead, int (&pages)[STAGES], tile_ring<DK, STAGES> &ring,
            tile_barriers<STAGES> &barriers, warp_state<TYPE, DK, DK, 1> &w)
{
    if constexpr (tn_cache_traits<TYPE>::QUANT)
        attend_quants(d, p, head, shared, slot, at, ahead, ring, barriers, w);
    else if (p.group <= FOUR_ROWS)
        attend_tiles<true>(d, p, head, shared, slot, at, ahead, pages, ring, barriers, w);
    else
        attend_tiles<false>(d, p, head, shared, slot, at, ahead, pages, ring, barriers, w);
}

// --- tiles straight into registers ----------------------------------------------------------------------

// Goes through the warp's tiles, the first of which is already loaded.
template <int TYPE, int DK>
static __device__ __forceinline__ void attend(const tn_cuda_attention_token_args &d, const part &p, int head,
                                              const token_storage<DK> &shared, int slot, int page,
                                              tile_cursor &at, warp_state<TYPE, DK, DK, 1> &w)
{
    const tn_cuda_attention_args &a = d.a;
    int lane = threadIdx.x % TN_WARP;
    column col[1][2];
    find_columns(a, p, head, col);
    while (at.tile < p.end) {
        float s[1][4];
        int key = at.tile * KEYS, own = slot - (page << d.block_shift) - (key & d.block_mask);
        if (own >= 0 && own < KEYS) load_own<false, TYPE, DK>(a, shared, own, p.kv_len - key, w);
        if (tn_cache_traits<TYPE>::QUANT)
            multiply_quants(w, shared.queries, s);
        else
            multiply_keys(w, shared.queries, s);
        at.tile += warps_of_block();
        bool more = at.tile < p.end;
        if (more) {
            if (++at.index == TN_WARP) find_tile_pages(d, p, at);
            page = __shfl_sync(0xffffffffu, at.pages, at.index);
            load_tile_keys(d, p, at.tile, page, w);
        }
        weigh(a, w, col, key + lane / 4, s);
        add_values(w, s);
        if (more) load_tile_values(d, p, at.tile, page, w);
    }
}

// --- a block --------------------------------------------------------------------------------------------

// The pages of this warp's tiles in a ring, one in each lane, in the usual case in which all splits have
// tiles and start at the first key. They are read together with the lengths.
static __device__ __forceinline__ int usual_pages(const tn_cuda_attention_token_args &d, const share &s)
{
    int warp = threadIdx.x / TN_WARP;
    int tile = s.split + s.n_splits * (warp + warps_of_block() * ((int)threadIdx.x % TN_WARP));
    return table_of(d, s.seq)[min(tile * KEYS >> d.block_shift, d.a.max_blocks - 1)];
}

// Starts the copies of a warp's first tiles. Pages that the caller read are right if there are as many splits
// as it expected, and all start at the first key.
template <int TYPE, int DK, int STAGES>
static __device__ __forceinline__ void
start_ring(const tn_cuda_attention_token_args &d, const part &p, const cluster_work &u, int expected_splits,
           tile_cursor &now, tile_cursor &ahead, int (&pages)[STAGES], tile_ring<DK, STAGES> &ring,
           tile_barriers<STAGES> &barriers)
{
    if (threadIdx.x % TN_WARP == 0) {
        for (int i = 0; i < STAGES; i++) tn_barrier_init(&barriers.full[i], 1);
        tn_barrier_init_fence();
    }
    if (u.first > 0 || p.n_splits != expected_splits) now.pages = pages_from(d, p, now.tile);
    ahead = now;
#pragma unroll
    for (int i = 0; i < STAGES; i++) pages[i] = copy_next_tile<TYPE>(d, p, ahead, i, ring, barriers);
}

// Loads a warp's first tile into registers and returns its page.
template <int TYPE, int DK>
static __device__ __forceinline__ int load_first_tile(const tn_cuda_attention_token_args &d, const part &p,
                                                      tile_cursor &at, warp_state<TYPE, DK, DK, 1> &w)
{
    int first = at.tile * KEYS >> d.block_shift;
    find_tile_pages(d, p, at);
    // In a short sequence the dependent loads of length, table entry and keys are the longest chain, so the
    // first pages were loaded together with the length. The branch keeps the usual case from waiting for
    // at.pages.
    int page;
    if (first < TN_WARP)
        page = __shfl_sync(0xffffffffu, p.first_pages, first);
    else
        page = __shfl_sync(0xffffffffu, at.pages, 0);
    load_tile_keys(d, p, at.tile, page, w);
    load_tile_values(d, p, at.tile, page, w);
    return page;
}

template <int TYPE, int DK>
static __device__ __forceinline__ void clear_results(warp_state<TYPE, DK, DK, 1> &w)
{
#pragma unroll
    for (int h = 0; h < 2; h++) w.max[0][h] = -INFINITY, w.sum[0][h] = 0.0f;
#pragma unroll
    for (int i = 0; i < DK / 16; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) w.o[i][0][e] = 0.0f;
}

// Prepares the row of the token that this warp processes first.
template <int DK>
static __device__ __forceinline__ void prepare_first_row(const tn_cuda_rope_cache_args &r, const part &p,
                                                         int head, int position, token_row<DK> &token)
{
    prepare_row(r, p, head, threadIdx.x / TN_WARP, token);
    find_angles<DK>(r, position, token.turn);
}

// Prepares all rows of the token, the first of which `token` already describes. AHEAD: the next row of a warp
// is loaded before one is stored, for blocks whose warps have several rows.
template <bool AHEAD, bool PACKED, bool MATRICES, int TYPE, int DK>
static __device__ __forceinline__ void process_rows(const tn_cuda_rope_cache_args &r, const part &p, int head,
                                                    int n_items, token_row<DK> &token,
                                                    token_storage<DK> &shared)
{
    int item = threadIdx.x / TN_WARP;
    if constexpr (!AHEAD) {
        for (int first = item; item < n_items; item += warps_of_block()) {
            if (item != first) prepare_row(r, p, head, item, token);
            process_row<MATRICES, TYPE>(r, p, token, load_token_row<PACKED, TYPE>(r, p, token), shared);
        }
        return;
    }
    if (item >= n_items) return;
    row_pairs<DK> x = load_token_row<PACKED, TYPE>(r, p, token);
    for (;;) {
        int next = item + warps_of_block();
        token_row<DK> following = token;
        row_pairs<DK> y = x;
        if (next < n_items) {
            prepare_row(r, p, head, next, following);
            y = load_token_row<PACKED, TYPE>(r, p, following);
        }
        process_row<MATRICES, TYPE>(r, p, token, x, shared);
        if (next >= n_items) return;
        item = next, token = following, x = y;
    }
}

// Results lie behind the token, or over the tiles of the ring, each warp's over its own.
template <int DK, int STAGES, int PITCH, class RING>
static __device__ __forceinline__ result_storage<DK, PITCH>
place_results(const tn_cuda_attention_token_args &d, RING *rings, int n_rows)
{
    int rows = (n_rows + (1 << d.cluster_shift) - 1) >> d.cluster_shift; // that a block finishes
    result_storage<DK, PITCH> results = {(float2 *)rings, (float *)rings, rows};
    if constexpr (STAGES > 0)
        results.end = (float2 *)((tile_barriers<STAGES> *)(rings + warps_of_block()) + warps_of_block());
    else
        results.o += ((rows * warps_of_block() << d.cluster_shift) + 1) / 2 * 4;
    return results;
}

// The number of the warp in its block. For RING the compiler learns that it is the same in all lanes: what
// follows from it, as places in the ring, is then computed once for the warp.
template <bool RING> static __device__ __forceinline__ int number_of_warp()
{
    int warp = (int)threadIdx.x / TN_WARP;
    return RING ? __shfl_sync(0xffffffffu, warp, 0) : warp;
}

// Rings lie behind the token (token_storage).
template <bool MATRICES, class RING, int DK>
static __device__ __forceinline__ RING *place_rings(const tn_cuda_attention_token_args &d,
                                                    token_storage<DK> &shared)
{
    return MATRICES && d.group <= FOUR_ROWS ? (RING *)shared.queries.lo : (RING *)(&shared + 1);
}

// Finds which sequence the block has; returns false if there is none for it. With d.early no predecessor
// writes lengths, tables, and, with rope_cache in this launch, earlier rows. Beside a launch for the other
// sequences all that came before has ended.
template <bool EXTRA>
static __device__ __forceinline__ bool begin(const tn_cuda_attention_token_args &d, bool single, share &s)
{
    if (!d.early && !single) tn_pdl_wait();
    if (EXTRA && !find_share(d, s)) return false;
    if (single) s.query = d.a.q_start[s.seq];
    return true;
}

// What a block does. With STAGES 0, tiles are loaded straight into registers. WARPS > 0: there is one
// sequence, and blocks have so many warps. That saves instructions on the way to the result of one token.
// EXTRA: there are blocks for parts of long sequences.
template <int TYPE, int DK, int STAGES, int WARPS, bool EXTRA>
static __device__ __forceinline__ void attend_block(const tn_cuda_attention_token_args &d, bool single)
{
    extern __shared__ uint4 shared_bytes[];
    const tn_cuda_attention_args &a = d.a;
    const tn_cuda_rope_cache_args &r = d.rope;
    token_storage<DK> &shared = *reinterpret_cast<token_storage<DK> *>(shared_bytes);
    int warp = number_of_warp<(STAGES > 0)>(), slot = -1, position = 0, page = 0;
    part p;
    cluster_work u;
    share s = {(int)blockIdx.z, (int)blockIdx.z, (int)blockIdx.x, a.n_splits};
    if (!begin<EXTRA>(d, single, s)) return;
    cluster_arrive();
    if (r.pos) position = *(const int32_t *)(r.pos + s.query * r.pos_nb);
    if (r.slots) slot = *(const int32_t *)(r.slots + s.query * r.slots_nb);
    int pages = STAGES > 0 ? usual_pages(d, s) : 0;
    bool any = find_work<(STAGES > 0), EXTRA>(d, s, p, u);
    warp_state<TYPE, DK, DK, 1> w;
    int pages_ahead[STAGES > 0 ? STAGES : 1];
    tile_cursor at = {p.tile + (STAGES > 0 ? warp * p.n_splits : warp), 0, pages}, ahead;
    bool works = any && at.tile < p.end;
    if (d.early && !r.slots && !single) tn_pdl_wait();
    typedef tile_ring<DK, (STAGES > 0 ? STAGES : 1)> ring_type;
    constexpr bool MATRICES = STAGES > 0 && !tn_cache_traits<TYPE>::QUANT;
    ring_type *rings = place_rings<MATRICES, ring_type>(d, shared);
    tile_barriers<(STAGES > 0 ? STAGES : 1)> *barriers = nullptr;
    if constexpr (STAGES > 0) {
        barriers = (tile_barriers<STAGES> *)(rings + warps_of_block()) + warp;
        if (works) start_ring<TYPE>(d, p, u, s.n_splits, at, ahead, pages_ahead, rings[warp], *barriers);
    } else if (works) {
        page = load_first_tile<TYPE, DK>(d, p, at, w);
    }
    if (slot < 0 || slot >= r.n_slots) slot = -KEYS << d.block_shift; // belongs to no tile
    int n_items = p.n_rows + (r.slots ? 2 : 0), n_slots = count_slots<(STAGES > 0)>(d, p, u);
    token_row<DK> token;
    if (warp < n_items) prepare_first_row(r, p, u.head, position, token);
    constexpr int PITCH = STAGES > 0 ? (int)sizeof(ring_type) / 4 : 0;
    result_storage<DK, PITCH> results = place_results<DK, STAGES, PITCH>(d, rings, p.n_rows);
    // Makes the compiler load these arguments here, before they are needed.
    asm volatile("" ::"l"(a.y), "l"(a.quantised_y.rows), "l"(a.sinks), "r"(a.v.dim));
    cluster_wait(); // all blocks of the cluster have begun
    if (d.early && r.slots) tn_pdl_wait();
    if (!any) return;
    process_rows<WARPS == 0, EXTRA, MATRICES, TYPE>(r, p, u.head, n_items, token, shared);
    __syncthreads();
    clear_results(w);
    if constexpr (STAGES > 0)
        attend_ring<TYPE, DK, STAGES>(d, p, u.head, shared, slot, at, ahead, pages_ahead, rings[warp],
                                      *barriers, w);
    else
        attend<TYPE, DK>(d, p, u.head, shared, slot, page, at, w);
    // Triggered only now, because the copies of weights of the next kernel would delay the keys.
    tn_pdl_trigger();
    if (works)
        send_result(p, d.cluster_shift, STAGES > 0 ? warp : u.rank * min(warps_of_block(), u.per) + warp, w,
                    results);
    cluster_arrive();
    if (p.split == 0 && u.head == p.kv_head * p.group) write_rows(d, p, slot, shared);
    cluster_wait();
    for (int at = warp, row; (row = u.rank + (at << d.cluster_shift)) < p.n_rows; at += warps_of_block())
        finish_row(a, p, u, row, at, n_slots, results);
}

// A launch for single tokens ends behind the one for the other sequences, because the step after them waits
// for this one alone.
template <int TYPE, int DK, int STAGES, int WARPS, bool EXTRA>
static __device__ __forceinline__ void attend_token(const tn_cuda_attention_token_args &d)
{
    const bool single = EXTRA && are_single(d.a);
    attend_block<TYPE, DK, STAGES, WARPS, EXTRA>(d, single);
    if (single) tn_pdl_wait();
}

// --- entries --------------------------------------------------------------------------------------------

#ifdef __NVCC__
#define ASSUME(x) __builtin_assume(x)
#else // the emulated device
#define ASSUME(x)
#endif
// attention_token.c has the same sizes. Entries `one` have the stated warps and one sequence, entries `many`
// up to so many warps: fewer leave a multiprocessor to several blocks. Rings are compiled for compute
// capabilities 9.0 to 10.x, whose shared memory has the capacity for them.
// `extra`: for sequences of which some are much longer than others. `blocks` share a multiprocessor.
#define MANY_ENTRY(kind, extra, name, type, d, warps, stages, blocks)                                        \
    TN_ENTRY __launch_bounds__(warps *TN_WARP, blocks) tn_attention_token_##kind##_##name##_##d##_##stages(  \
        const __grid_constant__ tn_cuda_attention_token_args a)                                              \
    {                                                                                                        \
        attend_token<type, d, stages, 0, extra>(a);                                                          \
    }
#define ENTRY(name, type, d, warps, stages)                                                                  \
    TN_ENTRY __launch_bounds__(warps *TN_WARP, 1) tn_attention_token_one_##name##_##d##_##stages(            \
        const __grid_constant__ tn_cuda_attention_token_args a)                                              \
    {                                                                                                        \
        ASSUME(blockDim.x == warps * TN_WARP && blockIdx.z == 0);                                            \
        attend_token<type, d, stages, warps, false>(a);                                                      \
    }                                                                                                        \
    MANY_ENTRY(many, false, name, type, d, warps, stages, 1)
#define RING_ENTRY(name, type, d, warps, stages)                                                             \
    ENTRY(name, type, d, warps, stages) MANY_ENTRY(uneven, true, name, type, d, warps, stages, 1)
// Blocks of which four share a multiprocessor.
#define QUARTER_ENTRY(name, type, d, warps, stages)                                                          \
    MANY_ENTRY(many, false, name, type, d, warps, stages, 4)                                                 \
    MANY_ENTRY(uneven, true, name, type, d, warps, stages, 4)
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
#define RING_ENTRIES(name, type)                                                                             \
    RING_ENTRY(name, type, 64, 8, 6)                                                                         \
    RING_ENTRY(name, type, 128, 8, 3) QUARTER_ENTRY(name, type, 64, 3, 4) QUARTER_ENTRY(name, type, 128, 3, 2)
#else
#define RING_ENTRIES(name, type)
#endif
#define ENTRIES(name, type)                                                                                  \
    ENTRY(name, type, 64, 12, 0)                                                                             \
    ENTRY(name, type, 128, 12, 0) ENTRY(name, type, 256, 8, 0) RING_ENTRIES(name, type)

ENTRIES(f16, TN_CUDA_CACHE_F16)
ENTRIES(bf16, TN_CUDA_CACHE_BF16)
ENTRIES(q8_0, TN_CUDA_CACHE_Q8_0)
ENTRIES(q4_0, TN_CUDA_CACHE_Q4_0)
