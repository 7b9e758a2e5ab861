// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How attention is cut into pieces of work, the same at every level.
//
// The rows of a sequence are its (token, head of the group) pairs for one KV head; a tile is a run of them,
// cut to suit the number of threads. Keys go in tiles of ATTN_KEYS and splits of ATTN_SPLIT, both at absolute
// positions. Every split gives a partial result (maximum, sum, unnormalised output); partial results are
// merged in rising order. So a row's bits depend neither on the rows it shares a tile with nor on the
// threads. An item is a tile with all its splits, or with one of them if there are too few tiles for the
// threads. With a token or two per sequence an item is one split of the tiles of several KV heads, whose keys
// and values take turns: they are neighbours in the cache, and memory is read fastest in the order of
// addresses.
#ifndef TN_CPU_ATTENTION_PLAN_H
#define TN_CPU_ATTENTION_PLAN_H

#include "backends/cpu/kernel.h"
#include "ops/operands.h"

enum {
    // Rows that pass from scores to output at once: a multiple of 12 and of 16, so that micro-kernels are
    // full;
    // scores of 24 KiB stay in L1.
    ATTN_ROW_GROUP = 48,
    // Most rows that share a converted tile of keys and values, and most where larger tiles could not be
    // divided evenly among threads; multiples of ATTN_ROW_GROUP.
    ATTN_ROWS = 192,
    ATTN_ROWS_LESS = 96,
    ATTN_KEYS = 128,           // per score tile; V panel of 32 columns: 16 KiB of L1
    ATTN_STRIP = 32,           // keys converted at a time in decode: 16 KiB at 128 elements
    ATTN_SPLIT = 1024,         // keys; multiple of ATTN_KEYS. Merging costs 1/1024 of the products
    ATTN_DECODE_ROWS = 8,      // up to so many rows keys lie in the lanes instead of rows
    ATTN_HEADS = 8,            // most KV heads that take turns in decode
    ATTN_HEAD_ROWS = 16,       // places for the numbers of rows of each: VEC_N at most
    ATTN_PAD = 16,             // row lengths in scratch are rounded up to it
    ATTN_PARTIALS = 32768,     // most partial rows kept in scratch (18 MiB at 128 elements)
    ATTN_ITEMS_PER_THREAD = 4, // with fewer tiles than this per thread, split along the keys too
    ATTN_LARGE_PER_THREAD = 8, // with fewer large tiles than this per thread, use smaller ones
};

// Per-row numbers in scratch, ATTN_ROWS floats each. "Safe" is the maximum, or 0 where nothing was visible.
enum {
    ROW_MAX,
    ROW_SUM,
    ROW_SAFE,
    ROW_ALPHA,
    ROW_TILE,
    ROW_TOTAL_MAX,
    ROW_TOTAL_SUM,
    ROW_TOTAL_SCALE,
    ROW_LOW,  // first visible key
    ROW_HIGH, // one past the last
    ROW_POS,
    ROW_SLOPE,
    ROW_SINK,
    ROW_NUMBERS
};

typedef struct attention_shape {
    int64_t n_tokens, n_heads, n_kv, group, n_seq;
    int64_t d, dv, d_pad, dv_pad; // of keys and of values
    int64_t block, max_keys;      // keys per block, most keys of a sequence
    int64_t n_splits;             // for max_keys
    bool partials;                // there is scratch for partial results
} attention_shape;

typedef struct attention_item {
    int64_t seq, kv_head, n_heads;          // KV heads [kv_head, kv_head + n_heads)
    int64_t first_token, first_row, n_rows; // row r: token first_token + (first_row + r) / group
    int64_t last_token, kv_len;             // one past; the position of token t is kv_len - (last_token - t)
    int64_t key_low, key_high;              // keys that any row sees
    int64_t split_first, split_last;
} attention_item;

static inline int64_t attention_round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

// The blocks of a sequence in the caches, in order.
static inline const int32_t *attention_table(const tn_step *step, int64_t seq)
{
    const tn_view *table = &step->src[TN_SRC_attention_block_table];
    return (const int32_t *)table->data + seq * table->ne[3];
}

static inline attention_shape attention_shape_get(const tn_step *step)
{
    tn_attention_views in = tn_attention_views_get(step);
    const tn_view *q = in.q, *k = in.k;
    attention_shape s = {
        .n_tokens = q->ne[1],
        .n_heads = q->ne[2],
        .n_kv = k->ne[1],
        .group = q->ne[2] / k->ne[1],
        .n_seq = in.kv_len->ne[3],
        .d = k->ne[3], // rows of k may be longer than those of q: padded to whole quantisation blocks
        .dv = in.v->ne[3],
        .block = k->ne[2],
        .max_keys = in.block_table->ne[3] * k->ne[2],
    };
    s.d_pad = attention_round_up(s.d, ATTN_PAD);
    s.dv_pad = attention_round_up(s.dv, ATTN_PAD);
    s.n_splits = (s.max_keys + ATTN_SPLIT - 1) / ATTN_SPLIT;
    s.partials = s.n_splits > 1 && s.n_tokens * s.n_heads <= ATTN_PARTIALS / s.n_splits;
    return s;
}

// Floats of scratch: per thread q, keys, values, scores, their integers, output, total, row numbers; shared
// partial rows, each ATTN_PAD numbers (maximum and sum first) and an output.
static inline int64_t attention_thread_floats(const attention_shape *s)
{
    return (ATTN_ROWS + ATTN_KEYS + 1) * s->d_pad + (2 * ATTN_ROWS + ATTN_KEYS + 1) * s->dv_pad +
           (ATTN_KEYS + ATTN_KEYS / 2 + 1) * ATTN_ROW_GROUP + ROW_NUMBERS * ATTN_ROWS;
}

static inline int64_t attention_partial_floats(const attention_shape *s)
{
    return s->partials ? s->n_tokens * s->n_heads * s->n_splits * (ATTN_PAD + s->dv_pad) : 0;
}

// Keys [*low, *high) that a token at this position sees.
static inline void attention_visible(const tn_attention_params *p, int64_t position, int64_t kv_len,
                                     int64_t *low, int64_t *high)
{
    *low = 0;
    if (p->window > 0) *low = TN_MAX(*low, position - p->window + 1);
    if (p->chunk > 0) *low = TN_MAX(*low, position / p->chunk * p->chunk);
    *high = p->causal ? TN_MIN(position + 1, kv_len) : kv_len;
    *high = TN_MAX(*high, 0);
    *low = TN_MIN(*low, *high);
}

typedef struct attention_iter {
    const tn_step *step;
    const attention_shape *shape;
    bool by_split;
    int64_t tile_rows, heads;
    int64_t seq, kv_head, row, split; // of the next item; split < 0: that tile has not begun
} attention_iter;

// How the items of a step are made.
typedef struct attention_cut {
    int64_t tile_rows; // most rows of a tile
    int64_t heads;     // most KV heads of a split, where they have few rows
    bool by_split;     // items are single splits, whose partial results are merged in a second phase
    int64_t n_tiles;
} attention_cut;
attention_cut attention_cut_get(const tn_step *step, const attention_shape *shape, int32_t n_threads);

static inline attention_iter attention_iter_begin(const tn_step *step, const attention_shape *shape,
                                                  const attention_cut *cut, bool by_split)
{
    return (attention_iter){.step = step,
                            .shape = shape,
                            .by_split = by_split,
                            .tile_rows = cut->tile_rows,
                            .heads = by_split ? cut->heads : 1,
                            .split = -1};
}

// Rows of each KV head of a sequence
static inline int64_t attention_seq_rows(const tn_step *step, const attention_shape *s, int64_t seq)
{
    const int32_t *q_start = step->src[TN_SRC_attention_q_start].data;
    return (TN_MIN(q_start[seq + 1], s->n_tokens) - TN_MAX(q_start[seq], 0)) * s->group;
}

// KV heads of the next item
static inline int64_t attention_iter_heads(const attention_iter *it)
{
    bool decodes = attention_seq_rows(it->step, it->shape, it->seq) <= ATTN_DECODE_ROWS;
    return decodes ? TN_MIN(it->heads, it->shape->n_kv - it->kv_head) : 1;
}

// The tile at the iterator with all its splits; false if the sequence has no such rows.
static inline bool attention_tile_get(const attention_iter *it, attention_item *item)
{
    const attention_shape *s = it->shape;
    const tn_attention_params *p = it->step->params;
    tn_attention_views in = tn_attention_views_get(it->step);
    const int32_t *q_start = in.q_start->data, *kv_len = in.kv_len->data;
    int64_t first = TN_MAX(q_start[it->seq], 0), last = TN_MIN(q_start[it->seq + 1], s->n_tokens);
    int64_t n_rows = (last - first) * s->group;
    if (it->row >= n_rows) return false;
    *item = (attention_item){
        .seq = it->seq,
        .kv_head = it->kv_head,
        .n_heads = attention_iter_heads(it),
        .first_token = first,
        .first_row = it->row,
        .n_rows = TN_MIN(n_rows - it->row, it->tile_rows),
        .last_token = last,
        .kv_len = TN_MAX(0, TN_MIN(kv_len[it->seq], s->max_keys)),
    };
    // Both ends of the visible range rise with the position.
    int64_t position = item->kv_len - (last - first), unused;
    attention_visible(p, position + it->row / s->group, item->kv_len, &item->key_low, &unused);
    attention_visible(p, position + (it->row + item->n_rows - 1) / s->group, item->kv_len, &unused,
                      &item->key_high);
    item->split_first = item->key_low / ATTN_SPLIT;
    item->split_last = (item->key_high + ATTN_SPLIT - 1) / ATTN_SPLIT;
    return true;
}

// Next item in the order sequence, KV head, tile, split; false at the end.
static inline bool attention_iter_next(attention_iter *it, attention_item *item)
{
    while (it->seq < it->shape->n_seq) {
        if (!attention_tile_get(it, item)) {
            it->row = 0;
            it->kv_head += attention_iter_heads(it);
            if (it->kv_head == it->shape->n_kv) it->kv_head = 0, it->seq++;
            continue;
        }
        if (!it->by_split) {
            it->row += it->tile_rows;
            return true;
        }
        it->split = it->split < 0 ? item->split_first : it->split + 1;
        if (it->split < item->split_last) {
            item->split_first = it->split;
            item->split_last = it->split + 1;
            return true;
        }
        it->split = -1;
        it->row += it->tile_rows;
    }
    return false;
}

// Work of an item in about multiply-adds per element of a head: products, plus converting keys and values
// (measured: as much as 24 rows), plus a constant for setting up.
static inline int64_t attention_cost(const attention_item *item)
{
    int64_t low = TN_MAX(item->key_low, item->split_first * ATTN_SPLIT);
    int64_t high = TN_MIN(item->key_high, item->split_last * ATTN_SPLIT);
    return TN_MAX(high - low, 0) * (item->n_rows + 24) * item->n_heads + 1024;
}

#endif
