// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences of different lengths in attention for one token of each (attention_token.cu). Where each pair of
// sequence and KV head has one block, the block of the longest sequence would run on while the others have
// ended. So the grid has blocks for n_extra sequences more, and these come first (blockIdx.z below n_extra):
// they take splits of sequences that are longer than a limit, whose own blocks keep the first split. All
// blocks compute the same limit from the lengths: twice the mean, or that doubled until the extra blocks
// suffice. If no sequence exceeds the limit, the extra blocks end at once.
//
// The same blocks take sequences that have several queries, as pieces of prompts do: each query like the
// token of a sequence of its own that ends with it. That is faster than tiles of 128 rows, of which the
// single tokens of other sequences take one each, as long as the pieces are small and see few keys.
//
// NVIDIA H200, 2026-11-26, f16, 32 heads over 8 of 128, lengths of an exponential distribution, us without
// and with it (docs/log/cuda-attention.md): 32 sequences of 1000 keys in the mean 89 and 61, 48 183 and 96,
// 128 292 and 188; 128 of 250 84 and 63.
#ifndef TN_CUDA_ATTENTION_TOKEN_SHARE_CUH
#define TN_CUDA_ATTENTION_TOKEN_SHARE_CUH

#include "backends/cuda/attention/attention_warp.cuh"

#include <limits.h>

// Tiles of a warp up to which splitting costs more, by the merge through memory, than it saves.
enum { LEAST_TILES = 6 };

// Which part of which query a block has. Queries are numbered through all sequences; where each sequence has
// one, a query has the number of its sequence.
struct share {
    int query, seq, split, n_splits;
};

// Whether the launch has the sequences with one query only, of a step that has others, too.
static __device__ __forceinline__ bool are_single(const tn_cuda_attention_args &a)
{
    return a.which == TN_CUDA_ATTENTION_SINGLE;
}

// Whether sequences may have several queries. Then each is treated like the only one of a sequence that ends
// with it, and lengths below are those of the sequences' last queries.
static __device__ __forceinline__ bool are_apart(const tn_cuda_attention_args &a)
{
    return a.n_tokens != a.n_seq && !are_single(a);
}

static __device__ __forceinline__ int count_queries(const tn_cuda_attention_args &a, int seq)
{
    if (seq >= a.n_seq) return 0;
    return are_apart(a) ? a.q_start[seq + 1] - a.q_start[seq] : 1;
}

// Tiles of keys that the last token of a sequence of n sees.
static __device__ __forceinline__ int tiles_of_token(const tn_cuda_attention_args &a, int n)
{
    int lo, hi;
    tn_attention_range(a, n - 1, n, &lo, &hi);
    return max(0, (hi + KEYS - 1) / KEYS - lo / KEYS);
}

// Sequences that a lane counts at a time: their lengths are loaded together, because each load takes as long
// as all.
enum { COUNTED = 8 };

// Tiles of keys that the last tokens of the lane's sequences of `first` and the next 32 * COUNTED see; 0 for
// a sequence that does not exist or that the launch does not have.
static __device__ __forceinline__ void count_tiles(const tn_cuda_attention_args &a, int first,
                                                   int (&tiles)[COUNTED])
{
    const int own = first + (int)threadIdx.x % TN_WARP;
    int lo[COUNTED];
#pragma unroll
    for (int k = 0; k < COUNTED; k++)
        tiles[k] = own + k * TN_WARP < a.n_seq ? a.kv_len[own + k * TN_WARP] : 0;
    if (are_single(a)) {
#pragma unroll
        for (int k = 0; k < COUNTED; k++)
            if (own + k * TN_WARP < a.n_seq &&
                a.q_start[own + k * TN_WARP + 1] - a.q_start[own + k * TN_WARP] != 1)
                tiles[k] = 0;
    }
    // As tn_attention_range() has it for the last token.
#pragma unroll
    for (int k = 0; k < COUNTED; k++) lo[k] = a.window > 0 ? max(0, tiles[k] - a.window) : 0;
    if (a.chunk > 0) {
#pragma unroll
        for (int k = 0; k < COUNTED; k++) lo[k] = max(lo[k], max(0, tiles[k] - 1) / a.chunk * a.chunk);
    }
#pragma unroll
    for (int k = 0; k < COUNTED; k++) tiles[k] = (tiles[k] + KEYS - 1) / KEYS - lo[k] / KEYS;
}

static __device__ __forceinline__ int splits_within(const tn_cuda_attention_args &a, int tiles, int limit)
{
    return tiles <= limit ? 1 : min(a.n_splits, (tiles + limit - 1) / limit);
}

static __device__ __forceinline__ int sum_of_lanes(int x)
{
#pragma unroll
    for (int i = 1; i < TN_WARP; i *= 2) x += __shfl_xor_sync(0xffffffffu, x, i);
    return x;
}

// The least number of tiles of a split.
static __device__ __forceinline__ int least_limit()
{
    return LEAST_TILES * ((int)blockDim.x / TN_WARP);
}

// Tiles of a split at most; INT_MAX if no sequence is longer than that.
static __device__ __forceinline__ int find_limit(const tn_cuda_attention_token_args &d)
{
    const tn_cuda_attention_args &a = d.a;
    int lane = threadIdx.x % TN_WARP, sum = 0, longest = 0, tiles[COUNTED];
    for (int first = 0; first < a.n_seq; first += COUNTED * TN_WARP) {
        count_tiles(a, first, tiles);
#pragma unroll
        for (int k = 0; k < COUNTED; k++) sum += tiles[k], longest = max(longest, tiles[k]);
    }
    // Blocks of single queries are small, so more of them find place at the same time.
    int limit = max(least_limit(), (are_apart(a) ? 3 : 4) * sum_of_lanes(sum) / (2 * a.n_seq));
    for (; __ballot_sync(0xffffffffu, longest > limit) != 0; limit *= 2) {
        int more = 0;
        for (int first = 0; first < a.n_seq; first += COUNTED * TN_WARP) {
            // As a rule the tiles of all sequences are still there from above.
            if (a.n_seq > COUNTED * TN_WARP) count_tiles(a, first, tiles);
#pragma unroll
            for (int k = 0; k < COUNTED; k++)
                if (tiles[k] > limit)
                    more += count_queries(a, first + lane + k * TN_WARP) *
                            (splits_within(a, tiles[k], limit) - 1);
        }
        if (sum_of_lanes(more) <= d.n_extra) return limit;
    }
    return INT_MAX;
}

// Finds the sequence of a query; returns false if there is none.
static __device__ __forceinline__ bool find_sequence(const tn_cuda_attention_args &a, share &s)
{
    int lane = threadIdx.x % TN_WARP;
    for (int first = 0; first < a.n_seq; first += TN_WARP) {
        uint32_t holds =
            __ballot_sync(0xffffffffu, first + lane < a.n_seq && s.query < a.q_start[first + lane + 1]);
        s.seq = first + __ffs((int)holds) - 1;
        if (holds) return s.query >= a.q_start[s.seq];
    }
    return false;
}

// Finds what the block has; returns false if it has nothing to do. The block of the first split of a sequence
// is told that it is the only one, so that its loads do not wait for the lengths; find_work() corrects that.
static __device__ __forceinline__ bool find_share(const tn_cuda_attention_token_args &d, share &s)
{
    const tn_cuda_attention_args &a = d.a;
    int number = (int)blockIdx.z - d.n_extra;
    s = {number, number, 0, 1};
    if (number >= 0) return !are_apart(a) || find_sequence(a, s);
    int lane = threadIdx.x % TN_WARP, limit = find_limit(d), tiles[COUNTED];
    number = blockIdx.z;
    if (limit == INT_MAX) return false;
    for (int first = 0; first < a.n_seq; first += TN_WARP) {
        if (first % (COUNTED * TN_WARP) == 0) count_tiles(a, first, tiles);
        int n = splits_within(a, tiles[0], limit), own = count_queries(a, first + lane) * (n - 1), upto = own;
#pragma unroll
        for (int k = 1; k < COUNTED; k++) tiles[k - 1] = tiles[k];
        if (!__any_sync(0xffffffffu, own > 0)) continue;
        for (int i = 1; i < TN_WARP; i *= 2) {
            int x = __shfl_up_sync(0xffffffffu, upto, i);
            if (lane >= i) upto += x;
        }
        uint32_t holds = __ballot_sync(0xffffffffu, number < upto);
        if (holds) {
            int which = __ffs((int)holds) - 1;
            s.seq = s.query = first + which, s.n_splits = __shfl_sync(0xffffffffu, n, which);
            number -= __shfl_sync(0xffffffffu, upto - own, which);
            if (are_apart(a)) s.query = a.q_start[s.seq] + number / (s.n_splits - 1);
            s.split = 1 + number % (s.n_splits - 1);
            return true;
        }
        number -= __shfl_sync(0xffffffffu, upto, TN_WARP - 1);
    }
    return false;
}

#endif
