// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tiles of query rows, for kernels that attend with many queries. The rows of a (sequence, KV head) pair are
// its (token, head of the group) pairs, with the heads innermost, and a tile is ROWS of them one after
// another. The tiles of all sequences are numbered one after another. The grid has blocks for as many tiles
// as there can be: T * group / ROWS, and one more per sequence.
#ifndef TN_CUDA_ATTENTION_ROWS_CUH
#define TN_CUDA_ATTENTION_ROWS_CUH

#include "backends/cuda/attention/attention.cuh"

struct tn_row_tile {
    int seq, kv_head, group;
    int first_token, n_tokens, kv_len; // of the sequence
    int row, n_rows;                   // first row of the tile in the sequence, rows of the sequence
    int key, end;                      // keys [key, end) that any of its rows sees; key is a multiple of KEYS
    int all_from, all_to;              // keys that all of them see
};

// The tiles of a sequence of so many queries; none if it is left to another launch.
template <int ROWS>
static __device__ __forceinline__ int tn_count_tiles_of(const tn_cuda_attention_args &a, int queries,
                                                        int group)
{
    return a.which == TN_CUDA_ATTENTION_PIECES && queries == 1 ? 0 : (queries * group + ROWS - 1) / ROWS;
}

// The number of tiles of all sequences. Called by whole warps.
template <int ROWS> static __device__ __forceinline__ int tn_count_row_tiles(const tn_cuda_attention_args &a)
{
    int n = 0, group = a.n_heads / a.n_kv;
    for (int s = threadIdx.x % TN_WARP; s < a.n_seq; s += TN_WARP)
        n += tn_count_tiles_of<ROWS>(a, a.q_start[s + 1] - a.q_start[s], group);
    for (int i = 16; i > 0; i /= 2) n += __shfl_xor_sync(0xffffffffu, n, i);
    return n;
}

// Finds tile number t; returns false if there is none. Called by whole warps: each lane counts the tiles of
// one of 32 sequences, and a prefix sum over the lanes finds the sequence that has tile t. All that is read
// of memory is read at once, because nothing hides the time that it takes.
template <int ROWS, int KEYS>
static __device__ __forceinline__ bool tn_find_row_tile(const tn_cuda_attention_args &a, int t, int kv_head,
                                                        tn_row_tile &p)
{
    int lane = threadIdx.x % TN_WARP, before = 0;
    p.kv_head = kv_head;
    p.group = a.n_heads / a.n_kv;
    p.seq = -1;
    for (int first = 0; first < a.n_seq && p.seq < 0; first += TN_WARP) {
        int s = min(first + lane, a.n_seq - 1), start = a.q_start[s], tokens = a.q_start[s + 1] - start,
            length = a.kv_len[s];
        int n = first + lane < a.n_seq ? tn_count_tiles_of<ROWS>(a, tokens, p.group) : 0;
        int upto = n;
        for (int i = 1; i < TN_WARP; i *= 2) {
            int x = __shfl_up_sync(0xffffffffu, upto, i);
            if (lane >= i) upto += x;
        }
        uint32_t holds = __ballot_sync(0xffffffffu, t < before + upto);
        int which = holds ? __ffs((int)holds) - 1 : TN_WARP - 1;
        int skipped = __shfl_sync(0xffffffffu, holds ? upto - n : upto, which);
        if (holds) p.seq = first + which, p.row = (t - before - skipped) * ROWS;
        p.first_token = __shfl_sync(0xffffffffu, start, which);
        p.n_tokens = __shfl_sync(0xffffffffu, tokens, which);
        p.kv_len = __shfl_sync(0xffffffffu, length, which);
        before += skipped;
    }
    if (p.seq < 0) return false;
    p.n_rows = p.n_tokens * p.group;
    // Both bounds of the keys that a token sees grow with its position, so the first and the last row of the
    // tile decide.
    int position = p.kv_len - p.n_tokens, last = min(p.row + ROWS, p.n_rows) - 1;
    tn_attention_range(a, position + p.row / p.group, p.kv_len, &p.key, &p.all_to);
    tn_attention_range(a, position + last / p.group, p.kv_len, &p.all_from, &p.end);
    p.key = p.key / KEYS * KEYS;
    return true;
}

// The keys [lo, hi) that a row sees, its position and its slope. Rows behind the last one are treated like
// the last one.
struct tn_row_info {
    int lo, hi, position;
    float slope;
};

static __device__ __forceinline__ tn_row_info tn_row_info_get(const tn_cuda_attention_args &a,
                                                              const tn_row_tile &p, int row)
{
    tn_row_info r;
    row = min(row, p.n_rows - 1);
    r.position = p.kv_len - p.n_tokens + row / p.group;
    r.slope = tn_attention_slope(a, p.kv_head * p.group + row % p.group);
    tn_attention_range(a, r.position, p.kv_len, &r.lo, &r.hi);
    return r;
}

#endif
