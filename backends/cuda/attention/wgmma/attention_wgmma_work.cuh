// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the blocks of attention_wgmma.cuh work on: pairs of a row tile and a KV head, or parts of the keys of
// one. Keys are cut where the tiles of a few queries over many keys would otherwise keep a few
// multiprocessors busy long after the others, as a piece of a prompt does beside the single tokens of other
// sequences (flash decoding, Dao et al. 2023). How long parts are follows from the work of the whole launch,
// which only the device knows: every block computes the same from the lengths.
//
// The results of parts go through memory, and the warp that arrives last of a tile merges those of its rows
// in the order of the keys, so that results are the same in every run.
#ifndef TN_CUDA_ATTENTION_WGMMA_WORK_CUH
#define TN_CUDA_ATTENTION_WGMMA_WORK_CUH

#include "backends/cuda/attention/attention_rows.cuh"
#include "backends/cuda/attention/wgmma/attention_wgmma_args.h"
#include "backends/cuda/attention/wgmma_attention.cuh"

enum {
    GROUP_ROWS = 64, // rows of a consumer
    ROWS = 2 * GROUP_ROWS,
    PAGE = 64, // rows of a tensor copy; blocks of the cache are multiples of it
};

// A row tile with the keys of one part of it, and the keys [from, to) that all rows of each consumer see.
// Part number `part` of `n_parts` leaves its result in slot `slot` + `part` * `stride`.
struct work_tile {
    tn_row_tile t;
    int from[2], to[2];
    int part, n_parts, slot, stride;
    int rows[2]; // of the cache, where the first two pages of these keys begin
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// How many units of work the blocks of a launch have taken beyond their first ones. It is 0 between launches.
static __device__ uint32_t taken;

// Parts of each cut row tile whose warps have arrived at the merge, for each warp; the number of a tile is
// that of the slot of its first part. They are 0 between launches.
static __device__ uint32_t arrived[TN_CUDA_ATTENTION_WGMMA_SLOTS][ROWS / 16];

// Whether consumer `group` has no rows in a tile.
static __device__ __forceinline__ bool is_idle(const tn_row_tile &p, int group)
{
    return p.row + group * GROUP_ROWS >= p.n_rows;
}

// The work of a launch: tiles of keys that a part has at least; row tiles times parts of the sequences whose
// keys are cut, and row tiles of the others. Each of both is a unit of work for each KV head.
struct work_list {
    int length, n_cut, n_whole;
};

// Sets what follows from the sequence and the first row of a tile.
template <int ROWS, int KEYS>
static __device__ __forceinline__ void tn_row_tile_complete(const tn_cuda_attention_args &a, tn_row_tile &p)
{
    p.group = a.n_heads / a.n_kv;
    p.n_rows = p.n_tokens * p.group;
    // Both bounds of the keys that a token sees grow with its position, so the first and the last row of the
    // tile decide.
    int position = p.kv_len - p.n_tokens, last = min(p.row + ROWS, p.n_rows) - 1;
    tn_attention_range(a, position + p.row / p.group, p.kv_len, &p.key, &p.all_to);
    tn_attention_range(a, position + last / p.group, p.kv_len, &p.all_from, &p.end);
    p.key = p.key / KEYS * KEYS;
}

// A sequence: its queries, the row tiles of these, and the tiles of keys of the last one.
struct sequence {
    int start, tokens, length, tiles, keys;
};

template <int KEYS>
static __device__ __forceinline__ sequence sequence_get(const tn_cuda_attention_args &a, int s)
{
    sequence q;
    int group = a.n_heads / a.n_kv, lo, hi, unused;
    q.start = a.q_start[s], q.tokens = a.q_start[s + 1] - q.start, q.length = a.kv_len[s];
    q.tiles = tn_count_tiles_of<ROWS>(a, q.tokens, group);
    int last = max(q.tiles - 1, 0) * ROWS / group; // the first query of the last tile
    tn_attention_range(a, q.length - q.tokens + last, q.length, &lo, &unused);
    tn_attention_range(a, q.length - 1, q.length, &unused, &hi);
    q.keys = max(0, (hi - lo / KEYS * KEYS + KEYS - 1) / KEYS);
    return q;
}

static __device__ __forceinline__ int count_parts(const sequence &q, int length)
{
    return max(1, q.keys / length);
}

// Called by a whole warp. Shorter parts are dealt out more evenly, but each costs something besides its own
// tiles of keys, so the best length grows with the root of the tiles of keys of a multiprocessor. There
// are as many slots as parts of total / n_slots, because the number of parts is rounded down.
template <int KEYS>
static __device__ __forceinline__ work_list list_work(const tn_cuda_attention_args &a, float part_cost)
{
    int lane = threadIdx.x % TN_WARP;
    work_list w = {INT_MAX, 0, 0};
    if (a.n_slots > 0) {
        float total = 0.0f;
        for (int s = lane; s < a.n_seq; s += TN_WARP) {
            sequence q = sequence_get<KEYS>(a, s);
            total += (float)q.tiles * (float)q.keys;
        }
        total = tn_warp_sum(total) * (float)a.n_kv;
        float even = sqrtf(part_cost * total / (float)gridDim.x), least = total / (float)a.n_slots * 1.001f;
        w.length = max((int)TN_CUDA_ATTENTION_WGMMA_PART, (int)ceilf(fmaxf(even, least)));
    }
    for (int s = lane; s < a.n_seq; s += TN_WARP) {
        sequence q = sequence_get<KEYS>(a, s);
        int parts = count_parts(q, w.length);
        if (parts > 1)
            w.n_cut += q.tiles * parts;
        else
            w.n_whole += q.tiles;
    }
    for (int i = TN_WARP / 2; i > 0; i /= 2) {
        w.n_cut += __shfl_xor_sync(0xffffffffu, w.n_cut, i);
        w.n_whole += __shfl_xor_sync(0xffffffffu, w.n_whole, i);
    }
    return w;
}

// Finds the sequence that item u of those that are cut, or of the others, belongs to: a unit of work, or a
// row tile. `before` items belong to earlier sequences. Called by a whole warp.
template <int KEYS>
static __device__ __forceinline__ sequence find_sequence(const tn_cuda_attention_args &a, int length,
                                                         bool cut, int u, int &before, tn_row_tile &p)
{
    int lane = threadIdx.x % TN_WARP;
    sequence q;
    before = 0;
    for (int first = 0;; first += TN_WARP) {
        q = sequence_get<KEYS>(a, min(first + lane, a.n_seq - 1));
        int parts = count_parts(q, length), n = q.tiles * (cut ? parts * a.n_kv : 1);
        if (first + lane >= a.n_seq || (parts > 1) != cut) n = 0;
        int upto = n;
        for (int i = 1; i < TN_WARP; i *= 2) {
            int x = __shfl_up_sync(0xffffffffu, upto, i);
            if (lane >= i) upto += x;
        }
        uint32_t holds = __ballot_sync(0xffffffffu, u < before + upto);
        int which = holds ? __ffs((int)holds) - 1 : TN_WARP - 1;
        before += __shfl_sync(0xffffffffu, holds ? upto - n : upto, which);
        if (!holds && first + TN_WARP < a.n_seq) continue;
        p.seq = first + which;
        q.start = __shfl_sync(0xffffffffu, q.start, which);
        q.tokens = __shfl_sync(0xffffffffu, q.tokens, which);
        q.length = __shfl_sync(0xffffffffu, q.length, which);
        q.tiles = __shfl_sync(0xffffffffu, q.tiles, which);
        q.keys = __shfl_sync(0xffffffffu, q.keys, which);
        return q;
    }
}

// Unit of work number w of all. Those of cut sequences come first: the tiles of one sequence innermost, which
// read the same keys at the same time, then KV heads, then parts. Returns false if the unit has no keys, as
// in tiles that are shorter than the last one of their sequence. Called by a whole warp.
template <int KEYS>
static __device__ __forceinline__ bool find_unit(const tn_cuda_attention_args &a, const work_list &list,
                                                 int w, work_tile &p)
{
    bool cut = w < list.n_cut * a.n_kv;
    int rest = w - list.n_cut * a.n_kv, before;
    sequence q =
        find_sequence<KEYS>(a, list.length, cut, cut ? w : list.n_whole - 1 - rest / a.n_kv, before, p.t);
    int at = cut ? w - before : 0,
        tile = cut ? q.tiles - 1 - at % q.tiles : list.n_whole - 1 - rest / a.n_kv - before;
    p.t.kv_head = cut ? at / q.tiles % a.n_kv : rest % a.n_kv;
    p.t.first_token = q.start, p.t.n_tokens = q.tokens, p.t.kv_len = q.length;
    p.t.row = tile * ROWS;
    tn_row_tile_complete<ROWS, KEYS>(a, p.t);
    p.part = 0, p.n_parts = 1;
    if (cut) {
        int count = max(0, (p.t.end - p.t.key + KEYS - 1) / KEYS), parts = count_parts(q, list.length),
            each = (count + parts - 1) / parts;
        p.part = at / q.tiles / a.n_kv;
        p.n_parts = count > 0 ? (count + each - 1) / each : 1;
        p.slot = before + at % (q.tiles * a.n_kv), p.stride = q.tiles * a.n_kv;
        if (p.part >= p.n_parts) return false;
        p.t.key += p.part * each * KEYS;
        p.t.end = min(p.t.end, p.t.key + each * KEYS);
    }
    return true;
}

// The row of the cache where page number `page` of a row tile begins; pages behind the last one are taken for
// the last one.
static __device__ __forceinline__ int page_begin(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                 int page)
{
    int j = min(page, (p.end - 1) / PAGE) * PAGE;
    return (a.table[(int64_t)p.seq * a.max_blocks + j / a.block] * a.n_kv + p.kv_head) * a.block +
           j % a.block;
}

// The keys that all rows of each consumer see.
static __device__ __forceinline__ void find_seen(const tn_cuda_attention_args &a, work_tile &p)
{
    for (int g = 0; g < 2; g++) {
        p.from[g] = tn_row_info_get(a, p.t, p.t.row + g * GROUP_ROWS + GROUP_ROWS - 1).lo;
        p.to[g] = tn_row_info_get(a, p.t, p.t.row + g * GROUP_ROWS).hi;
    }
}

// The same without cuts, for launches of whole row tiles.
template <int KEYS>
static __device__ __forceinline__ void find_whole(const tn_cuda_attention_args &a, int n, int n_tiles,
                                                  work_tile &p)
{
    int w = n * gridDim.x + (n % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x), total = n_tiles * a.n_kv;
    if (a.n_seq > 1 && n > 0) {
        if (threadIdx.x % TN_WARP == 0) w = gridDim.x + tn_take_number(&taken, total - 1);
        w = __shfl_sync(0xffffffffu, w, 0);
    }
    bool any = w < total && tn_find_row_tile<ROWS, KEYS>(a, n_tiles - 1 - w / a.n_kv, w % a.n_kv, p.t);
    if (any)
        find_seen(a, p);
    else
        p.t.seq = -1;
}

// Finds the n-th unit of work of this block; seq is -1 if there are no more. The tiles of one sequence get
// shorter in order, so that alternating direction gives blocks equal work. Those of several, and parts, do
// not, so a block takes the next one whenever it has started another. All blocks together take as many
// numbers as there are units, with which the counter wraps to 0. Called by a whole warp.
template <int KEYS>
static __device__ __forceinline__ void find_work(const tn_cuda_attention_args &a, int n,
                                                 const work_list &list, work_tile &p)
{
    int w = n * gridDim.x + (n % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x),
        total = (list.n_cut + list.n_whole) * a.n_kv;
    bool take = n > 0 && (a.n_seq > 1 || list.n_cut > 0);
    for (;; take = true) {
        if (take) {
            tn_pdl_wait(); // the counter may still be in use
            if (threadIdx.x % TN_WARP == 0) w = gridDim.x + tn_take_number(&taken, total - 1);
            w = __shfl_sync(0xffffffffu, w, 0);
        }
        if (w >= total) break;
        if (!find_unit<KEYS>(a, list, w, p)) continue;
        for (int h = 0; h < 2 && p.t.key < p.t.end; h++) p.rows[h] = page_begin(a, p.t, p.t.key / PAGE + h);
        find_seen(a, p);
        return;
    }
    p.t.seq = -1;
}

#endif

#endif
