// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention over a paged cache (the contract is at the head of ops/attention/attention.c), any mix of
// prefill and decode. Work: items of plan.h, which the parts divide among themselves; two phases if
// items are single splits. Scratch: per thread 1.3 KiB * D + 2 KiB * Dv + 46 KiB; no scores beyond 128 keys
// by 48 rows exist. Operations: 2 (D + Dv) per visible (query, key, head). Bytes: each K and V row once per
// tile of 192 (query, head) rows. Limit: multiply-adds for prefill, memory for decode; numbers in
// backends/cpu/README.md. Masked keys count as weight 0, so a NaN or infinity in a value row reaches every
// row of its tile.
#include "backends/cpu/c/attention/decode_tmpl.h"
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"

static void work_init(attention_work *w, const tn_cpu_task *task)
{
    *w = (attention_work){
        .step = task->step, .p = task->step->params, .shape = attention_shape_get(task->step)};
    const attention_shape *s = &w->shape;
    float *p = (float *)task->scratch + task->thread * attention_thread_floats(s);
    w->q = p, p += ATTN_ROWS * s->d_pad;
    w->strip = p - ATTN_STRIP * s->d_pad;
    w->k = p, p += (ATTN_KEYS + 1) * s->d_pad;
    w->v = p, p += (ATTN_KEYS + 1) * s->dv_pad;
    w->s = p, p += ATTN_KEYS * ATTN_ROW_GROUP;
    w->weights = p, p += (ATTN_KEYS / 2 + 1) * ATTN_ROW_GROUP;
    w->o = p, p += ATTN_ROWS * s->dv_pad;
    w->total = p, p += ATTN_ROWS * s->dv_pad;
    for (int i = 0; i < ROW_NUMBERS; i++) w->row[i] = p, p += ATTN_ROWS;
}

// Slope of a head: powers of two by the largest power of two of heads, odd half steps for the heads beyond.
static float alibi_slope(double max_bias, int64_t n_heads, int64_t head)
{
    int64_t n2 = 1;
    while (n2 * 2 <= n_heads) n2 *= 2;
    double exponent = head < n2 ? (double)(head + 1) : (double)(2 * (head - n2) + 1) / 2.0;
    return (float)pow(2.0, -max_bias / (double)n2 * exponent);
}

// Row numbers of the tile; rows that only fill up the tile see everything and are dropped at the end.
static void rows_init(attention_work *w, const attention_item *item)
{
    const attention_shape *s = &w->shape;
    const float *sinks = row_optional(w->step, 6);
    w->decode = item->n_rows <= ATTN_DECODE_ROWS;
    w->dots = dot_has(w, TN_SRC_attention_k);
    w->dot_values = dot_has(w, TN_SRC_attention_v);
    w->rows4 = attention_round_up(item->n_rows, 4);
    w->rows_vec = attention_round_up(item->n_rows, VEC_N);
    w->low_max = 0.0f;
    w->high_min = INFINITY;
    for (int64_t r = 0; r < TN_MAX(w->rows4, w->rows_vec); r++) {
        bool real = r < item->n_rows;
        int64_t row = item->first_row + r, head = item->kv_head * s->group + row % s->group, low = 0,
                high = 0;
        int64_t position = item->kv_len - (item->last_token - item->first_token) + row / s->group;
        attention_visible(w->p, position, item->kv_len, &low, &high);
        w->row[ROW_LOW][r] = real ? (float)low : 0.0f;
        w->row[ROW_HIGH][r] = real ? (float)high : INFINITY;
        w->row[ROW_POS][r] = (float)position;
        w->row[ROW_SLOPE][r] =
            real && w->p->max_bias > 0.0f ? alibi_slope(w->p->max_bias, s->n_heads, head) : 0.0f;
        w->row[ROW_SINK][r] = real && sinks ? sinks[head] : -INFINITY;
        w->row[ROW_TILE][r] = 0.0f;
        w->row[ROW_MAX][r] = -INFINITY;
        w->row[ROW_SUM][r] = 0.0f;
        w->low_max = TN_MAX(w->low_max, w->row[ROW_LOW][r]);
        w->high_min = TN_MIN(w->high_min, w->row[ROW_HIGH][r]);
    }
}

static const float *query_row(const attention_work *w, const attention_item *item, int64_t r)
{
    const tn_view *q = &w->step->src[TN_SRC_attention_q];
    int64_t row = item->first_row + r, group = w->shape.group;
    return (const float *)((const char *)q->data + (item->first_token + row / group) * q->nb[1] +
                           (item->kv_head * group + row % group) * q->nb[2]);
}

static void query_scale(const float *x, float *y, int64_t n, float scale)
{
    vf m = vf_set1(scale);
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) vf_store(y + i, vf_mul(vf_load(x + i), m));
    for (; i < n; i++) y[i] = x[i] * scale;
}

// Row r of the item times scale, and zeros behind it; all zeros if the item has no such row.
static void query_get(const attention_work *w, const attention_item *item, int64_t r, float *y)
{
    int64_t n = r < item->n_rows ? w->step->src[TN_SRC_attention_q].ne[3] : 0;
    if (n > 0) query_scale(query_row(w, item, r), y, n, w->p->scale);
    for (int64_t i = n; i < w->shape.d_pad; i++) y[i] = 0.0f;
}

// Queries times scale: in decode as they are, otherwise transposed in groups of ATTN_ROW_GROUP rows.
static void queries_load(attention_work *w, const attention_item *item)
{
    int64_t d = w->shape.d, d_pad = w->shape.d_pad, n = w->decode ? w->rows4 : w->rows_vec;
    for (int64_t first = 0; first < n; first += ATTN_ROW_GROUP) {
        float *rows = w->decode ? w->q : w->k;
        int64_t n_rows = TN_MIN(n - first, ATTN_ROW_GROUP);
        for (int64_t r = 0; r < n_rows; r++) {
            float *y = w->dots ? dot_query_buffer(w) : rows + r * d_pad;
            query_get(w, item, first + r, y);
            if (w->dots) dot_query(w, first, r, y);
        }
        if (w->dots)
            dot_queries_end(w, first, n_rows);
        else if (!w->decode)
            transpose(rows, d_pad, w->q + first * d_pad, ATTN_ROW_GROUP, n_rows, d);
    }
    if (!w->decode) return;
    memset(w->k, 0, (size_t)d_pad * sizeof *w->k); // the row of zeros
    memset(w->v, 0, (size_t)w->shape.dv_pad * sizeof *w->v);
}

static void rows_begin(attention_work *w)
{
    for (int64_t r = 0; r < w->rows_vec; r++) {
        w->row[ROW_MAX][r] = -INFINITY;
        w->row[ROW_SUM][r] = 0.0f;
    }
}

// Partial result of a split into o, ROW_MAX and ROW_SUM.
static void split_run(attention_work *w, const attention_item *item, int64_t split)
{
    int64_t first = TN_MAX(split * ATTN_SPLIT, item->key_low / ATTN_KEYS * ATTN_KEYS);
    int64_t last = TN_MIN((split + 1) * ATTN_SPLIT, item->key_high);
    // Rows that see none of the first keys are left out there, so o has to start somewhere.
    if (!w->decode) memset(w->o, 0, (size_t)(w->rows4 * w->shape.dv_pad) * sizeof *w->o);
    rows_begin(w);
    if (w->decode && split == item->split_first) decode_prefetch(w, item, first);
    for (int64_t key = first; key < last; key += ATTN_KEYS) {
        key_tile t = {.key = key, .n_keys = TN_MIN(ATTN_KEYS, last - key), .first = key == first};
        if (w->decode)
            decode_step(w, item, &t, &(decode_next){item, key + ATTN_KEYS});
        else
            many_step(w, item, &t);
    }
}

static void total_init(attention_work *w)
{
    memset(w->total, 0, (size_t)(w->rows4 * w->shape.dv_pad) * sizeof *w->total);
    for (int64_t r = 0; r < w->rows_vec; r++) {
        w->row[ROW_TOTAL_MAX][r] = -INFINITY;
        w->row[ROW_TOTAL_SUM][r] = 0.0f;
    }
}

// The first partial result is the total so far. Merging it with nothing would give the same values.
static void total_begin(attention_work *w)
{
    float *o = w->o;
    w->o = w->total;
    w->total = o;
    for (int64_t r = 0; r < w->rows_vec; r++) {
        w->row[ROW_TOTAL_MAX][r] = w->row[ROW_MAX][r];
        w->row[ROW_TOTAL_SUM][r] = w->row[ROW_SUM][r];
    }
}

// total = total * a + o * b with a = exp(total max - max), b = exp(split max - max)
static void total_merge(attention_work *w)
{
    for (int64_t r = 0; r < w->rows_vec; r += VEC_N) {
        vf m0 = vf_load(w->row[ROW_TOTAL_MAX] + r), m1 = vf_load(w->row[ROW_MAX] + r), max = vf_max(m1, m0);
        vf safe = vf_select(vm_eq(max, vf_set1(-INFINITY)), vf_zero(), max);
        vf a = vf_exp(vf_sub(m0, safe)), b = vf_exp(vf_sub(m1, safe));
        vf sum = vf_mul(vf_load(w->row[ROW_TOTAL_SUM] + r), a);
        vf_store(w->row[ROW_TOTAL_MAX] + r, max);
        vf_store(w->row[ROW_TOTAL_SUM] + r, vf_fma(vf_load(w->row[ROW_SUM] + r), b, sum));
        vf_store(w->row[ROW_TOTAL_SCALE] + r, a);
        vf_store(w->row[ROW_ALPHA] + r, b);
    }
    int64_t n = w->shape.dv_pad;
    for (int64_t r = 0; r < w->rows4; r++) {
        vf a = vf_set1(w->row[ROW_TOTAL_SCALE][r]), b = vf_set1(w->row[ROW_ALPHA][r]);
        float *total = w->total + r * n;
        const float *o = w->o + r * n;
        for (int64_t i = 0; i < n; i += VEC_N)
            vf_store(total + i, vf_fma(vf_load(o + i), b, vf_mul(vf_load(total + i), a)));
    }
}

// y = total * exp(max - m) / (sum * exp(max - m) + exp(sink - m)), m = max(max, sink); nothing visible: 0
static void total_write(const attention_work *w, const attention_item *item)
{
    const tn_view *y = &w->step->dst[0];
    for (int64_t r = 0; r < w->rows_vec; r += VEC_N) {
        vf top = vf_load(w->row[ROW_TOTAL_MAX] + r), sink = vf_load(w->row[ROW_SINK] + r),
           max = vf_max(sink, top);
        vf safe = vf_select(vm_eq(max, vf_set1(-INFINITY)), vf_zero(), max);
        vf a = vf_exp(vf_sub(top, safe)), b = vf_exp(vf_sub(sink, safe));
        vf sum = vf_fma(vf_load(w->row[ROW_TOTAL_SUM] + r), a, b);
        vf_store(w->row[ROW_TOTAL_SCALE] + r, vf_select(vm_eq(sum, vf_zero()), vf_zero(), vf_div(a, sum)));
    }
    int64_t group = w->shape.group, n = w->shape.dv;
    for (int64_t r = 0; r < item->n_rows; r++) {
        int64_t row = item->first_row + r;
        float *out = (float *)((char *)y->data + (item->first_token + row / group) * y->nb[1] +
                               (item->kv_head * group + row % group) * y->nb[2]);
        // Adding 0 makes -0 from an underflow +0, which is what the same row gets where it meets masked keys.
        const float *total = w->total + r * w->shape.dv_pad;
        float scale = w->row[ROW_TOTAL_SCALE][r];
        vf m = vf_set1(scale);
        int64_t i = 0;
        for (; i + VEC_N <= n; i += VEC_N)
            vf_store(out + i, vf_add(vf_mul(vf_load(total + i), m), vf_zero()));
        for (; i < n; i++) out[i] = total[i] * scale + 0.0f;
    }
}

// Partial row of row r of the tile and a split, in the scratch behind that of the threads.
static float *partial_row(const attention_work *w, const tn_cpu_task *task, const attention_item *item,
                          int64_t r, int64_t split)
{
    const attention_shape *s = &w->shape;
    int64_t row = item->first_row + r, token = item->first_token + row / s->group;
    int64_t i = (token * s->n_heads + item->kv_head * s->group + row % s->group) * s->n_splits + split;
    return (float *)task->scratch + task->n_threads * attention_thread_floats(s) + i * (ATTN_PAD + s->dv_pad);
}

static void partial_store(const attention_work *w, const tn_cpu_task *task, const attention_item *item)
{
    for (int64_t r = 0; r < item->n_rows; r++) {
        float *p = partial_row(w, task, item, r, item->split_first);
        p[0] = w->row[ROW_MAX][r];
        p[1] = w->row[ROW_SUM][r];
        memcpy(p + ATTN_PAD, w->o + r * w->shape.dv_pad, (size_t)w->shape.dv_pad * sizeof *p);
    }
}

static void partial_load(attention_work *w, const tn_cpu_task *task, const attention_item *item,
                         int64_t split)
{
    for (int64_t r = 0; r < item->n_rows; r++) {
        const float *p = partial_row(w, task, item, r, split);
        w->row[ROW_MAX][r] = p[0];
        w->row[ROW_SUM][r] = p[1];
        memcpy(w->o + r * w->shape.dv_pad, p + ATTN_PAD, (size_t)w->shape.dv_pad * sizeof *p);
    }
}

// What differs between KV heads that take turns
static void heads_begin(const attention_work *w, const attention_item *item, attention_work *works,
                        attention_item *items)
{
    for (int64_t h = 0; h < item->n_heads; h++) {
        items[h] = *item;
        items[h].kv_head += h;
        works[h] = *w;
        works[h].q += h * ATTN_DECODE_ROWS * w->shape.d_pad;
        works[h].o += h * ATTN_DECODE_ROWS * w->shape.dv_pad;
        for (int i = 0; i < ROW_NUMBERS; i++) works[h].row[i] += h * ATTN_HEAD_ROWS;
        rows_init(&works[h], &items[h]);
        queries_load(&works[h], &items[h]);
        rows_begin(&works[h]);
    }
}

// A split of several KV heads, tile by tile
static void heads_run(const attention_work *w, const tn_cpu_task *task, const attention_item *item)
{
    attention_work works[ATTN_HEADS];
    attention_item items[ATTN_HEADS];
    int64_t n = item->n_heads, split = item->split_first;
    int64_t first = TN_MAX(split * ATTN_SPLIT, item->key_low / ATTN_KEYS * ATTN_KEYS);
    int64_t last = TN_MIN((split + 1) * ATTN_SPLIT, item->key_high);
    heads_begin(w, item, works, items);
    decode_prefetch(&works[0], &items[0], first);
    for (int64_t key = first; key < last; key += ATTN_KEYS) {
        key_tile t = {.key = key, .n_keys = TN_MIN(ATTN_KEYS, last - key), .first = key == first};
        for (int64_t h = 0; h < n; h++) {
            decode_next next = {&items[(h + 1) % n], h + 1 < n ? key : key + ATTN_KEYS};
            decode_step(&works[h], &items[h], &t, &next);
        }
    }
    for (int64_t h = 0; h < n; h++) partial_store(&works[h], task, &items[h]);
}

enum { PHASE_WHOLE, PHASE_SPLITS, PHASE_MERGE };

static void item_run(attention_work *w, const tn_cpu_task *task, const attention_item *item, int32_t phase)
{
    if (item->n_heads > 1) {
        heads_run(w, task, item);
        return;
    }
    rows_init(w, item);
    if (phase == PHASE_SPLITS) {
        queries_load(w, item);
        split_run(w, item, item->split_first);
        partial_store(w, task, item);
        return;
    }
    if (phase == PHASE_WHOLE) queries_load(w, item);
    if (item->split_first == item->split_last) total_init(w);
    for (int64_t split = item->split_first; split < item->split_last; split++) {
        if (phase == PHASE_WHOLE)
            split_run(w, item, split);
        else
            partial_load(w, task, item, split);
        if (split == item->split_first)
            total_begin(w);
        else
            total_merge(w);
    }
    total_write(w, item);
}

// Runs items of a phase until no part has any left.
static void phase_run(attention_work *w, const tn_cpu_task *task, const attention_cut *cut, int32_t phase)
{
    attention_item item;
    int64_t mine = tn_cpu_next_item(task), i = 0;
    attention_iter it = attention_iter_begin(task->step, &w->shape, cut, phase == PHASE_SPLITS);
    for (; attention_iter_next(&it, &item); i++) {
        if (i < mine) continue;
        item_run(w, task, &item, phase);
        mine = tn_cpu_next_item(task);
    }
}

void VEC_NAME(attention_f32)(const tn_cpu_task *task)
{
    attention_work w;
    work_init(&w, task);
    attention_cut cut = attention_cut_get(task->step, &w.shape, task->width);
    phase_run(&w, task, &cut, !cut.by_split ? PHASE_WHOLE : task->phase == 0 ? PHASE_SPLITS : PHASE_MERGE);
}
