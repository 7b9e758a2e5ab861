// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One tile of queries against one tile of keys, by online softmax (Milakov and Gimelshein 2018): with m the
// maximum so far and l the sum of exp(s - m),
//   m' = max(m, max s), a = exp(m - m'), l' = l a + sum exp(s - m'), o' = o a + sum exp(s - m') v.
//
// Two layouts that give the same bits, since every score is one chain over d, every output element one chain
// over the keys, and sums of exponentials go to VEC_N buckets by key:
//   many rows  scores [key][row], ATTN_ROW_GROUP rows at a time: rows in the lanes; k is read by broadcast,
//   so no transposing (this file) decode     scores [row][key]: keys in the lanes; k is transposed
//   (decode_tmpl.h)
#include "backends/cpu/c/attention/plan.h"
#include "backends/cpu/c/convert_tmpl.h"
#include "backends/cpu/c/attention/gemm_tmpl.h"
#include "backends/cpu/vec_math.h"

typedef struct attention_work {
    const tn_step *step;
    const tn_attention_params *p;
    attention_shape shape;
    // Scratch of this thread: q [ATTN_ROWS / ATTN_ROW_GROUP][d_pad][ATTN_ROW_GROUP], or for decode
    // [ATTN_DECODE_ROWS][d_pad] and a strip of keys [d][ATTN_STRIP]; k [ATTN_KEYS + 1][d_pad], v [ATTN_KEYS +
    // 1][dv_pad] (for decode the first row is 0), s [ATTN_KEYS][ATTN_ROW_GROUP] scores, o and total
    // [ATTN_ROWS][dv_pad]
    float *q, *k, *v, *s, *o, *total;
    float *strip;   // of decode, the end of q: keys that are converted or transposed
    float *weights; // (ATTN_KEYS / 2 + 1) * ATTN_ROW_GROUP, of dot_values_tmpl.h
    float *row[ROW_NUMBERS];
    bool dots;               // scores by integers (dot_tmpl.h)
    bool dot_values;         // values by integers (dot_values_tmpl.h)
    bool decode;             // at most ATTN_DECODE_ROWS rows: the layouts for a token or two
    int64_t rows4, rows_vec; // rows rounded up to 4 and to VEC_N
    float low_max, high_min; // keys in [low_max, high_min) are visible to all rows
} attention_work;

typedef struct key_tile {
    int64_t key, n_keys; // first key, at most ATTN_KEYS
    bool first;          // of its split: nothing is in o yet
} key_tile;

// Rows [first, first + n) that are worked on at once; n_vec, n4: rounded up to VEC_N, to 4.
typedef struct row_range {
    int64_t first, n, n_vec, n4;
} row_range;

// What happens to scores between product and softmax.
typedef struct score_rule {
    vf cap, cap_inverse;
    bool has_cap, has_slope, has_mask;
} score_rule;

typedef struct score_lanes {
    vf key, pos, slope, low, high;
} score_lanes;

TN_INLINE vf score_adjust(vf s, const score_lanes *l, const score_rule *r)
{
    if (r->has_cap) s = vf_mul(r->cap, vf_tanh(vf_mul(s, r->cap_inverse)));
    if (r->has_slope) s = vf_fnma(l->slope, vf_abs(vf_sub(l->pos, l->key)), s);
    if (r->has_mask)
        s = vf_select(vm_and(vm_le(l->low, l->key), vm_lt(l->key, l->high)), s, vf_set1(-INFINITY));
    return s;
}

static score_rule score_rule_get(const attention_work *w, int64_t key, int64_t n_keys)
{
    const tn_attention_params *p = w->p;
    bool padded = w->decode && n_keys % VEC_N != 0;
    return (score_rule){
        .cap = vf_set1(p->softcap),
        .cap_inverse = vf_set1(p->softcap > 0.0f ? 1.0f / p->softcap : 0.0f),
        .has_cap = p->softcap > 0.0f,
        .has_slope = p->max_bias > 0.0f,
        .has_mask = padded || (float)key < w->low_max || (float)(key + n_keys) > w->high_min,
    };
}

// Rows [key, key + n) of the keys or values.
typedef struct row_span {
    int32_t src; // TN_SRC_attention_k or TN_SRC_attention_v
    int64_t key, n;
} row_span;

// A span as f32. A block number outside the store reads as zeros.
static void load_rows(const attention_work *w, const attention_item *item, const row_span *span, float *dst)
{
    const tn_view *c = &w->step->src[span->src];
    const int32_t *table = attention_table(w->step, item->seq);
    int64_t d = c->ne[3], stride = attention_round_up(d, ATTN_PAD), run;
    to_f32_fn to_f32 = to_f32_get(c->dtype);
    bool one_run = d == stride &&
                   (size_t)c->nb[2] == tn_dtype_row_size(c->dtype, d); // values may be a part of longer rows
    for (int64_t i = 0; i < span->n; i += run) {
        int64_t block = table[(span->key + i) / c->ne[2]], index = (span->key + i) % c->ne[2];
        run = TN_MIN(span->n - i, c->ne[2] - index);
        if (block < 0 || block >= c->ne[0]) {
            memset(dst + i * stride, 0, (size_t)(run * stride) * sizeof *dst);
            continue;
        }
        const char *x = (const char *)c->data + block * c->nb[0] + item->kv_head * c->nb[1];
        x += index * c->nb[2];
        if (one_run) {
            to_f32(x, dst + i * stride, run * d);
            continue;
        }
        for (int64_t r = i; r < i + run; r++, x += c->nb[2]) {
            to_f32(x, dst + r * stride, d);
            for (int64_t j = d; j < stride; j++) dst[r * stride + j] = 0.0f;
        }
    }
}

// The keys or values of a tile, and zeros for rows before the first visible one (they may be gone from the
// store) and up to a multiple of 4 rows.
static void load_tile(const attention_work *w, const attention_item *item, const key_tile *t, int32_t src)
{
    float *dst = src == TN_SRC_attention_k ? w->k : w->v;
    int64_t stride = attention_round_up(w->step->src[src].ne[3], ATTN_PAD);
    int64_t skip = TN_MAX(0, TN_MIN(item->key_low - t->key, t->n_keys)),
            n4 = attention_round_up(t->n_keys, 4);
    memset(dst, 0, (size_t)(skip * stride) * sizeof *dst);
    load_rows(w, item, &(row_span){src, t->key + skip, t->n_keys - skip}, dst + skip * stride);
    memset(dst + t->n_keys * stride, 0, (size_t)((n4 - t->n_keys) * stride) * sizeof *dst);
}

// Where the rows of a tile lie; rows that nobody sees or has are a row of zeros.
typedef const uint8_t *key_rows[ATTN_KEYS];

static void rows_find(const attention_work *w, int32_t src, const attention_item *item, int64_t key,
                      const float *zeros, key_rows at)
{
    const tn_view *c = &w->step->src[src];
    const int32_t *table = attention_table(w->step, item->seq);
    const uint8_t *zero = (const uint8_t *)zeros;
    int64_t high = TN_MIN(item->key_high, item->split_last * ATTN_SPLIT);
    int64_t n = TN_MIN(ATTN_KEYS, high - key), i = TN_MAX(0, TN_MIN(item->key_low - key, n)), run;
    for (int64_t j = 0; j < i; j++) at[j] = zero;
    for (; i < n; i += run) {
        int64_t id = table[(key + i) / c->ne[2]], index = (key + i) % c->ne[2];
        bool there = id >= 0 && id < c->ne[0];
        int64_t stride = there ? c->nb[2] : 0;
        const uint8_t *x = zero;
        if (there) x = (const uint8_t *)c->data + id * c->nb[0] + item->kv_head * c->nb[1] + index * c->nb[2];
        run = TN_MIN(n - i, c->ne[2] - index);
        for (int64_t j = i; j < i + run; j++, x += stride) at[j] = x;
    }
    for (; i < ATTN_KEYS; i++) at[i] = zero;
}

// A tile of rows that are read next. Loops over other rows prefetch them into L2, a line or some for each
// piece of their own work: a core waits for a limited number of lines, so they have to be asked for evenly.
typedef struct next_rows {
    const uint8_t *const *at;  // ATTN_KEYS rows
    int64_t bytes, row;        // bytes of a row; index of the next one
    const uint8_t *line, *end; // next line of the rows before that, which follow each other, and their end
} next_rows;

enum { LINE_BYTES = 64 };

// Lines for each of n pieces of work
static int64_t next_share(const next_rows *next, int64_t n)
{
    return (next->bytes * ATTN_KEYS + n * LINE_BYTES - 1) / (n * LINE_BYTES);
}

// The next rows that follow each other; false: there are none
static TN_NOINLINE bool next_run(next_rows *next)
{
    if (next->row == ATTN_KEYS) return false;
    const uint8_t *at = next->at[next->row], *end = at;
    int64_t row = next->row;
    while (row + 8 <= ATTN_KEYS && next->at[row + 7] == end + 7 * next->bytes)
        row += 8, end += 8 * next->bytes;
    for (; row < ATTN_KEYS && next->at[row] == end; row++) end += next->bytes;
    next->row = row;
    next->line = at + (-(uintptr_t)at & (LINE_BYTES - 1)); // a line that begins before was of the last row
    next->end = end;
    return true;
}

// The first of the next lines, for a caller that prefetches so many. Beyond the end of rows that follow each
// other, and when there are none left, that are lines of other rows, which does no harm.
TN_INLINE const uint8_t *next_take(next_rows *next, int64_t n_lines)
{
    if (next->line >= next->end && !next_run(next)) return next->line;
    const uint8_t *line = next->line;
    next->line = line + n_lines * LINE_BYTES;
    return line;
}

TN_INLINE void next_prefetch(next_rows *next, int64_t n_lines)
{
    if (next->line >= next->end && !next_run(next)) return;
    const uint8_t *line = next->line;
    for (int64_t i = 0; i < n_lines; i++, line += LINE_BYTES) TN_PREFETCH_L2(line);
    next->line = line;
}

#ifdef VEC_HALVES
#include "backends/cpu/c/attention/half_tmpl.h"
#else
#include "backends/cpu/c/attention/no_half_tmpl.h"
#endif

#ifdef VEC_DOTS
#include "backends/cpu/c/attention/dot_tmpl.h"
#include "backends/cpu/c/attention/dot_values_tmpl.h"
#else
#include "backends/cpu/c/attention/no_dot_tmpl.h"
#endif

// ROW_TILE holds the tile's maxima: new maximum, its safe form and the factor of what was summed before.
static void update_max(const attention_work *w, const row_range *rows)
{
    for (int64_t r = rows->first; r < rows->first + rows->n_vec; r += VEC_N) {
        vf old = vf_load(w->row[ROW_MAX] + r), max = vf_max(vf_load(w->row[ROW_TILE] + r), old);
        vf safe = vf_select(vm_eq(max, vf_set1(-INFINITY)), vf_zero(), max);
        vf_store(w->row[ROW_MAX] + r, max);
        vf_store(w->row[ROW_SAFE] + r, safe);
        vf_store(w->row[ROW_ALPHA] + r, vf_exp(vf_sub(old, safe)));
    }
}

// ROW_TILE holds the tile's sums.
static void update_sum(const attention_work *w, const row_range *rows)
{
    for (int64_t r = rows->first; r < rows->first + rows->n_vec; r += VEC_N) {
        vf sum = vf_load(w->row[ROW_SUM] + r), alpha = vf_load(w->row[ROW_ALPHA] + r);
        vf_store(w->row[ROW_SUM] + r, vf_fma(sum, alpha, vf_load(w->row[ROW_TILE] + r)));
    }
}

// --- many rows: scores [key][ATTN_ROW_GROUP] ------------------------------------------------------------

static void many_adjust(const attention_work *w, const key_tile *t, const row_range *rows)
{
    score_rule rule = score_rule_get(w, t->key, t->n_keys);
    if (!rule.has_cap && !rule.has_slope && !rule.has_mask) return;
    for (int64_t i = 0; i < rows->n_vec; i += VEC_N) {
        int64_t r = rows->first + i;
        score_lanes l = {vf_zero(), vf_load(w->row[ROW_POS] + r), vf_load(w->row[ROW_SLOPE] + r),
                         vf_load(w->row[ROW_LOW] + r), vf_load(w->row[ROW_HIGH] + r)};
        float *s = w->s + i;
        for (int64_t j = 0; j < t->n_keys; j++, s += ATTN_ROW_GROUP) {
            l.key = vf_set1((float)(t->key + j));
            vf_store(s, score_adjust(vf_load(s), &l, &rule));
        }
    }
}

static void many_max(const attention_work *w, int64_t n_keys, const row_range *rows)
{
    for (int64_t i = 0; i < rows->n_vec; i += VEC_N) {
        vf m0 = vf_set1(-INFINITY), m1 = m0, m2 = m0, m3 = m0; // four chains hide the latency
        const float *s = w->s + i;
        int64_t j = 0;
        for (; j + 4 <= n_keys; j += 4, s += 4 * ATTN_ROW_GROUP) {
            m0 = vf_max(vf_load(s), m0);
            m1 = vf_max(vf_load(s + ATTN_ROW_GROUP), m1);
            m2 = vf_max(vf_load(s + 2 * ATTN_ROW_GROUP), m2);
            m3 = vf_max(vf_load(s + 3 * ATTN_ROW_GROUP), m3);
        }
        for (; j < n_keys; j++, s += ATTN_ROW_GROUP) m0 = vf_max(vf_load(s), m0);
        vf_store(w->row[ROW_TILE] + rows->first + i, vf_max(vf_max(m0, m1), vf_max(m2, m3)));
    }
}

static void many_exp(const attention_work *w, int64_t n_keys, const row_range *rows)
{
    for (int64_t i = 0; i < rows->n_vec; i += VEC_N) {
        vf safe = vf_load(w->row[ROW_SAFE] + rows->first + i), bucket[VEC_N];
        for (int b = 0; b < VEC_N; b++) bucket[b] = vf_zero();
        float *s = w->s + i;
        for (int64_t j = 0; j < n_keys; j++, s += ATTN_ROW_GROUP) {
            vf e = vf_exp(vf_sub(vf_load(s), safe));
            vf_store(s, e);
            bucket[j % VEC_N] = vf_add(bucket[j % VEC_N], e);
        }
        for (int half = VEC_N / 2; half > 0; half /= 2) // the tree of vf_sum
            for (int b = 0; b < half; b++) bucket[b] = vf_add(bucket[b], bucket[b + half]);
        vf_store(w->row[ROW_TILE] + rows->first + i, bucket[0]);
    }
}

// Rows go by token, so both ends of what they see rise.
static bool many_blind(const attention_work *w, const key_tile *t, const row_range *rows)
{
    return w->row[ROW_HIGH][rows->first + rows->n - 1] <= (float)t->key ||
           w->row[ROW_LOW][rows->first] >= (float)(t->key + t->n_keys);
}

static void many_unit(const attention_work *w, const key_tile *tile, const row_range *rows)
{
    const attention_shape *s = &w->shape;
    // Not beyond what the last row sees: with few tokens a tile of keys is mostly diagonal.
    int64_t high = (int64_t)w->row[ROW_HIGH][rows->first + rows->n - 1];
    key_tile cut = {.key = tile->key, .n_keys = TN_MIN(tile->n_keys, high - tile->key)}, *t = &cut;
    if (w->dots)
        dot_many_scores(w, t->n_keys, rows);
    else
        gemm(&(gemm_args){.a = w->k,
                          .a_row = s->d_pad,
                          .a_k = 1,
                          .b = w->q + rows->first * s->d_pad,
                          .ldb = ATTN_ROW_GROUP,
                          .c = w->s,
                          .ldc = ATTN_ROW_GROUP,
                          .m = attention_round_up(t->n_keys, 4),
                          .n = rows->n_vec,
                          .k = s->d});
    many_adjust(w, t, rows);
    many_max(w, t->n_keys, rows);
    update_max(w, rows);
    many_exp(w, t->n_keys, rows);
    update_sum(w, rows);
    if (w->dot_values)
        dot_many_values(w, t->n_keys, rows);
    else
        gemm(&(gemm_args){.a = w->s,
                          .a_row = 1,
                          .a_k = ATTN_ROW_GROUP,
                          .b = w->v,
                          .ldb = s->dv_pad,
                          .c = w->o + rows->first * s->dv_pad,
                          .ldc = s->dv_pad,
                          .alpha = w->row[ROW_ALPHA] + rows->first,
                          .m = rows->n4,
                          .n = s->dv_pad,
                          .k = t->n_keys});
}

static void many_step(const attention_work *w, const attention_item *item, const key_tile *t)
{
    if (w->dots)
        dot_load_keys(w, item, t);
    else
        load_tile(w, item, t, TN_SRC_attention_k);
    if (w->dot_values)
        dot_load_values(w, item, t);
    else
        load_tile(w, item, t, TN_SRC_attention_v);
    for (int64_t r = 0; r < item->n_rows; r += ATTN_ROW_GROUP) {
        row_range rows = {.first = r, .n = TN_MIN(item->n_rows - r, ATTN_ROW_GROUP)};
        rows.n_vec = attention_round_up(rows.n, VEC_N);
        rows.n4 = attention_round_up(rows.n, 4);
        if (!many_blind(w, t, &rows)) many_unit(w, t, &rows);
    }
}
