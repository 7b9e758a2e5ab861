// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Scratch of attention, from shapes alone: a plan is prepared before lengths are known. And how its work is
// cut, when they are.
#include "backends/cpu/c/attention/plan.h"

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernels.h"

// Multiply-adds of a part at least: some microseconds.
enum { ATTN_PART_WORK = 100000 };

size_t tn_cpu_scratch_attention(const tn_step *step, int32_t n_threads)
{
    attention_shape s = attention_shape_get(step);
    // A step with fewer tokens keeps more partial rows than one that exceeds the limit: whoever reserves for
    // the scratch of the largest step must hold all.
    int64_t rows = s.n_splits > 1 ? TN_MIN(s.n_tokens * s.n_heads * s.n_splits, ATTN_PARTIALS) : 0;
    int64_t floats = n_threads * attention_thread_floats(&s) + rows * (ATTN_PAD + s.dv_pad);
    return (size_t)floats * sizeof(float);
}

// Number of tiles; *most_splits: of the tile with the longest range of keys.
static int64_t count_tiles(const tn_step *step, const attention_shape *shape, int64_t tile_rows,
                           int64_t *most_splits)
{
    attention_item item;
    int64_t n = 0;
    *most_splits = 0;
    attention_cut cut = {.tile_rows = tile_rows};
    attention_iter it = attention_iter_begin(step, shape, &cut, false);
    while (attention_iter_next(&it, &item)) {
        n++;
        *most_splits = TN_MAX(*most_splits, item.split_last - item.split_first);
    }
    return n;
}

static int64_t count_splits(const tn_step *step, const attention_shape *shape, const attention_cut *cut)
{
    attention_item item;
    int64_t n = 0;
    attention_iter it = attention_iter_begin(step, shape, cut, true);
    while (attention_iter_next(&it, &item)) n++;
    return n;
}

// Whether each sequence has a token or two
static bool all_short(const tn_step *step, const attention_shape *shape)
{
    for (int64_t i = 0; i < shape->n_seq; i++)
        if (attention_seq_rows(step, shape, i) > ATTN_DECODE_ROWS) return false;
    return true;
}

attention_cut attention_cut_get(const tn_step *step, const attention_shape *shape, int32_t n_threads)
{
    int64_t most_splits, least = ATTN_ITEMS_PER_THREAD * n_threads;
    attention_cut cut = {.tile_rows = ATTN_ROWS, .heads = 1};
    cut.n_tiles = count_tiles(step, shape, cut.tile_rows, &most_splits);
    if (n_threads > 1 && cut.n_tiles < ATTN_LARGE_PER_THREAD * n_threads) {
        cut.tile_rows = ATTN_ROWS_LESS;
        cut.n_tiles = count_tiles(step, shape, cut.tile_rows, &most_splits);
    }
    if (!shape->partials || most_splits <= 1) return cut;
    // Otherwise tiles alone keep the threads busy.
    cut.by_split = n_threads > 1 && cut.n_tiles < least;
    if (shape->n_kv == 1 || !all_short(step, shape)) return cut;
    cut.by_split = true;
    cut.heads = ATTN_HEADS;
    while (n_threads > 1 && cut.heads > 1 && count_splits(step, shape, &cut) < least) cut.heads /= 2;
    return cut;
}

// Each part goes on until no item is left, so as many parts as threads will do.
int32_t tn_cpu_parts_attention(const tn_cpu_task *task)
{
    if (task->phase > 1) return 0;
    attention_shape s = attention_shape_get(task->step);
    attention_cut cut = attention_cut_get(task->step, &s, task->width);
    if (task->phase == 1) return cut.by_split ? (int32_t)TN_MIN(task->nth, cut.n_tiles) : 0;
    if (task->nth == 1) return 1;
    attention_item item;
    int64_t cost = 0, n = 0;
    attention_iter it = attention_iter_begin(task->step, &s, &cut, cut.by_split);
    for (; attention_iter_next(&it, &item); n++) cost += attention_cost(&item);
    n = TN_MIN(n, cost * (s.d + s.dv) / ATTN_PART_WORK);
    return (int32_t)TN_MAX(TN_MIN(n, task->nth), 1);
}
