// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A tile of at most ATTN_DECODE_ROWS rows (decode: the query heads of one KV head) against ATTN_KEYS keys,
// scores [row][key]. Keys and values are read from the store once, without a copy in f32: keys are converted
// while they are transposed (strips of ATTN_STRIP keys stay in L1), values while they are multiplied. During
// the work on keys the values of the tile are prefetched, then the keys of the next tile: blocks are not
// neighbours, and hardware prefetchers stop at pages.
#include "backends/cpu/c/attention/tile_tmpl.h"

// Scales of packed blocks as f32, [n][d / QUANT_BLOCK]: a multiplication then reads them from memory.
static void decode_scales(const uint8_t *const *at, int64_t n, int64_t d, int64_t block_size, float *scales)
{
    uint16_t packed[VEC_N];
    int64_t n_blocks = d / QUANT_BLOCK, total = n * n_blocks, filled = 0, out = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < n_blocks; b++) {
            packed[filled++] = tn_load_u16(at[i] + b * block_size);
            if (filled < VEC_N && out + filled < total) continue;
            vf_store_n(scales + out, vf_load_f16((const uint8_t *)packed), filled);
            out += filled;
            filled = 0;
        }
}

// Elements [j, j + VEC_N) of a row; scale: of the row's blocks
TN_INLINE vf decode_load_f32(const uint8_t *row, int64_t j, const float *scale)
{
    TN_UNUSED(scale);
    return vf_load((const float *)(const void *)row + j);
}

TN_INLINE vf decode_load_f16(const uint8_t *row, int64_t j, const float *scale)
{
    TN_UNUSED(scale);
    return vf_load_f16(row + 2 * j);
}

TN_INLINE vf decode_load_bf16(const uint8_t *row, int64_t j, const float *scale)
{
    TN_UNUSED(scale);
    return vf_load_bf16(row + 2 * j);
}

TN_INLINE vf decode_load_q8_0(const uint8_t *row, int64_t j, const float *scale)
{
    int64_t b = j / QUANT_BLOCK;
    return vf_mul(vf_set1(scale[b]), vf_load_i8(row + j + 2 * b + 2)); // 34 b + 2 + (j - 32 b)
}

TN_INLINE vf decode_load_q4_0(const uint8_t *row, int64_t j, const float *scale)
{
    int64_t b = j / QUANT_BLOCK, in_block = j % QUANT_BLOCK;
    const uint8_t *q = row + b * Q4_0_SIZE + 2 + in_block % (QUANT_BLOCK / 2);
    return vf_mul(vf_set1(scale[b]), in_block < QUANT_BLOCK / 2 ? vf_load_low4(q) : vf_load_high4(q));
}

typedef struct decode_keys_args {
    const uint8_t *const *at; // n rows, a multiple of VEC_N
    next_rows *next;          // whose lines are prefetched meanwhile,
    int64_t n_lines;          // so many for VEC_N elements of VEC_N rows
    const float *scale;       // [n][n_scales]
    int64_t n_scales, n, d;
    float *strip; // [d][ATTN_STRIP]
} decode_keys_args;

typedef struct decode_values_args {
    const float *s;                   // [4][ATTN_KEYS]
    const uint8_t *const *at;         // n_keys rows
    next_rows *next;                  // whose lines are prefetched meanwhile,
    int64_t n_lines;                  // so many for 8 rows
    const float *scale;               // [n_keys][n_scales]
    float *o;                         // [4], rows ldo apart
    const float *alpha;               // [4], NULL: o starts at 0
    int64_t n_scales, ldo, n_keys, n; // n elements of a row, a multiple of VEC_N
} decode_values_args;

// Lists of statements without semicolons between them
// clang-format off
#define FOUR(F) F(0) F(1) F(2) F(3)
#define START(i)                                                                                             \
    vf a##i = vf_zero(), b##i = vf_zero();                                                                   \
    if (g->alpha) {                                                                                          \
        vf alpha = vf_set1(g->alpha[i]);                                                                     \
        a##i = vf_mul(vf_load(o + (i) * g->ldo), alpha);                                                     \
        if (two) b##i = vf_mul(vf_load(o + (i) * g->ldo + VEC_N), alpha);                                    \
    }
#define ADD(i)                                                                                               \
    {                                                                                                        \
        vf p = vf_set1(s[(i) * ATTN_KEYS]);                                                                  \
        a##i = vf_fma(p, v0, a##i);                                                                          \
        if (two) b##i = vf_fma(p, v1, b##i);                                                                 \
    }
#define FINISH(i)                                                                                            \
    vf_store(o + (i) * g->ldo, a##i);                                                                        \
    if (two) vf_store(o + (i) * g->ldo + VEC_N, b##i);

// keys: strip[d][key] = row[key][d]
// values: o = o * alpha + s . rows, elements [j, j + one or two vectors) of four rows.
#define DECODE_TYPE(name)                                                                                    \
    static void decode_keys_##name(const decode_keys_args *g)                                                \
    {                                                                                                        \
        for (int64_t i = 0; i < g->n; i += VEC_N) {                                                          \
            const uint8_t *const *row = g->at + i;                                                           \
            const float *scale = g->scale + i * g->n_scales;                                                 \
            const int64_t ns = g->n_scales;                                                                  \
            for (int64_t j = 0; j < g->d; j += VEC_N) {                                                      \
                next_prefetch(g->next, g->n_lines);                                                          \
                VEC_TRANSPOSE(ROW_##name, g->strip + j * ATTN_STRIP + i, (int64_t)ATTN_STRIP);               \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    TN_INLINE void decode_values_part_##name(const decode_values_args *g, int64_t j, const bool two)         \
    {                                                                                                        \
        const float *s = g->s, *scale = g->scale;                                                            \
        float *o = g->o + j;                                                                                 \
        FOUR(START)                                                                                          \
        for (int64_t k = 0; k < g->n_keys; k++, s++, scale += g->n_scales) {                                 \
            if (k % 2 == 0) next_prefetch(g->next, g->n_lines);                                              \
            vf v0 = decode_load_##name(g->at[k], j, scale);                                                  \
            vf v1 = two ? decode_load_##name(g->at[k], j + VEC_N, scale) : v0;                               \
            FOUR(ADD)                                                                                        \
        }                                                                                                    \
        FOUR(FINISH)                                                                                         \
    }                                                                                                        \
    static void decode_values_##name(const decode_values_args *g)                                            \
    {                                                                                                        \
        int64_t j = 0;                                                                                       \
        for (; j + 2 * VEC_N <= g->n; j += 2 * VEC_N) decode_values_part_##name(g, j, true);                 \
        if (j < g->n) decode_values_part_##name(g, j, false);                                                \
    }
#define ROW_f32(r)  decode_load_f32(row[r], j, scale + (r) * ns)
#define ROW_f16(r)  decode_load_f16(row[r], j, scale + (r) * ns)
#define ROW_bf16(r) decode_load_bf16(row[r], j, scale + (r) * ns)
#define ROW_q8_0(r) decode_load_q8_0(row[r], j, scale + (r) * ns)
#define ROW_q4_0(r) decode_load_q4_0(row[r], j, scale + (r) * ns)
DECODE_TYPE(f32)
DECODE_TYPE(f16)
DECODE_TYPE(bf16)
DECODE_TYPE(q8_0)
DECODE_TYPE(q4_0)
#undef ROW_f32
#undef ROW_f16
#undef ROW_bf16
#undef ROW_q8_0
#undef ROW_q4_0
#undef DECODE_TYPE
#undef FOUR
#undef START
#undef ADD
#undef FINISH
// clang-format on

typedef struct decode_type {
    void (*keys)(const decode_keys_args *g);
    void (*values)(const decode_values_args *g);
} decode_type;

static const decode_type decode_types[TN_TYPE_COUNT] = {
    [TN_TYPE_F32] = {decode_keys_f32, decode_values_f32},
    [TN_TYPE_F16] = {decode_keys_f16, decode_values_f16},
    [TN_TYPE_BF16] = {decode_keys_bf16, decode_values_bf16},
    [TN_TYPE_Q8_0] = {decode_keys_q8_0, decode_values_q8_0},
    [TN_TYPE_Q4_0] = {decode_keys_q4_0, decode_values_q4_0},
};

// Makes the rows of a tile readable by a decode_type, which it returns. Behind the zero row of the tile
// buffer go scales of packed blocks, or padded f32 copies of rows whose length is no multiple of VEC_N.
static const decode_type *decode_prepare(const attention_work *w, int32_t src, int64_t n, key_rows at)
{
    const tn_view *c = &w->step->src[src];
    int64_t d = c->ne[3], stride = attention_round_up(d, ATTN_PAD);
    float *buffer = (src == TN_SRC_attention_k ? w->k : w->v) + stride;
    if (tn_dtype_block_elems(c->dtype) > 1) decode_scales(at, n, d, c->nb[3], buffer);
    if (d % VEC_N == 0) return &decode_types[c->dtype];
    for (int64_t i = 0; i < n; i++) {
        float *row = buffer + i * stride;
        to_f32_get(c->dtype)(at[i], row, d);
        for (int64_t j = d; j < stride; j++) row[j] = 0.0f;
        at[i] = (const uint8_t *)row;
    }
    return &decode_types[TN_TYPE_F32];
}

static void decode_scores(const attention_work *w, key_rows at, next_rows *next, int64_t n_keys)
{
    const attention_shape *s = &w->shape;
    if (w->dots) {
        dot_decode_scores(w, at, next, n_keys);
        return;
    }
    if (half_has(w)) {
        half_decode_scores(w, at, next, n_keys);
        return;
    }
    float *strip = w->strip;
    const float *scales = w->k + s->d_pad;
    const decode_type *type = decode_prepare(w, 1, attention_round_up(n_keys, VEC_N), at);
    int64_t n_scales = s->d / QUANT_BLOCK;
    int64_t n_lines = next_share(next, s->d_pad / VEC_N * (ATTN_KEYS / VEC_N));
    for (int64_t j = 0; j < n_keys; j += ATTN_STRIP) {
        int64_t n_vec = attention_round_up(TN_MIN(n_keys - j, ATTN_STRIP), VEC_N);
        type->keys(&(decode_keys_args){.at = at + j,
                                       .next = next,
                                       .n_lines = n_lines,
                                       .scale = scales + j * n_scales,
                                       .n_scales = n_scales,
                                       .n = n_vec,
                                       .d = s->d,
                                       .strip = strip});
        gemm(&(gemm_args){.a = w->q,
                          .a_row = s->d_pad,
                          .a_k = 1,
                          .b = strip,
                          .ldb = ATTN_STRIP,
                          .c = w->s + j,
                          .ldc = ATTN_KEYS,
                          .m = w->rows4,
                          .n = n_vec,
                          .k = s->d});
    }
}

static void decode_adjust_max(const attention_work *w, int64_t key, int64_t n_keys)
{
    score_rule rule = score_rule_get(w, key, n_keys);
    for (int64_t r = 0; r < w->rows4; r++) {
        score_lanes l = {vf_zero(), vf_set1(w->row[ROW_POS][r]), vf_set1(w->row[ROW_SLOPE][r]),
                         vf_set1(w->row[ROW_LOW][r]), vf_set1(w->row[ROW_HIGH][r])};
        vf max = vf_set1(-INFINITY);
        for (int64_t j = 0; j < n_keys; j += VEC_N) {
            float *s = w->s + r * ATTN_KEYS + j;
            l.key = vf_add(vf_set1((float)(key + j)), vf_iota());
            vf v = score_adjust(vf_load(s), &l, &rule);
            vf_store(s, v);
            max = vf_max(v, max);
        }
        w->row[ROW_TILE][r] = vf_hmax(max);
    }
}

static void decode_exp(const attention_work *w, int64_t n_keys)
{
    for (int64_t r = 0; r < w->rows4; r++) {
        vf safe = vf_set1(w->row[ROW_SAFE][r]), buckets = vf_zero();
        for (int64_t j = 0; j < n_keys; j += VEC_N) {
            float *s = w->s + r * ATTN_KEYS + j;
            vf e = vf_exp(vf_sub(vf_load(s), safe));
            vf_store(s, e);
            buckets = vf_add(buckets, e);
        }
        w->row[ROW_TILE][r] = vf_sum(buckets);
    }
}

// Values times weights, while the rows `next` are prefetched
static void decode_values(const attention_work *w, key_rows at, next_rows *next, const key_tile *t)
{
    int64_t n = w->shape.dv_pad;
    if (w->dot_values) {
        dot_decode_values(w, at, next, t);
        return;
    }
    const decode_type *type = decode_prepare(w, TN_SRC_attention_v, t->n_keys, at);
    int64_t n_parts = (w->shape.dv + 2 * VEC_N - 1) / (2 * VEC_N) * (w->rows4 / 4);
    int64_t n_lines = next_share(next, n_parts * (ATTN_KEYS / 2));
    for (int64_t r = 0; r < w->rows4; r += 4)
        type->values(&(decode_values_args){.s = w->s + r * ATTN_KEYS,
                                           .at = at,
                                           .next = next,
                                           .n_lines = n_lines,
                                           .scale = w->v + n,
                                           .n_scales = w->shape.dv / QUANT_BLOCK,
                                           .o = w->o + r * n,
                                           .alpha = t->first ? NULL : w->row[ROW_ALPHA] + r,
                                           .ldo = n,
                                           .n_keys = t->n_keys,
                                           .n = attention_round_up(w->shape.dv, VEC_N)});
}

static next_rows next_rows_get(const attention_work *w, int32_t src, key_rows at)
{
    const tn_view *c = &w->step->src[src];
    return (next_rows){.at = at, .bytes = (int64_t)tn_dtype_row_size(c->dtype, c->ne[3])};
}

// The keys of the tile at `key` into L2
static void decode_prefetch(const attention_work *w, const attention_item *item, int64_t key)
{
    key_rows at;
    rows_find(w, TN_SRC_attention_k, item, key, w->k, at);
    next_rows next = next_rows_get(w, TN_SRC_attention_k, at);
    next_prefetch(&next, next_share(&next, 1));
}

// Whose keys are read after a tile
typedef struct decode_next {
    const attention_item *item;
    int64_t key;
} decode_next;

static void decode_step(const attention_work *w, const attention_item *item, const key_tile *t,
                        const decode_next *after)
{
    key_rows keys, values;
    row_range all = {0, item->n_rows, w->rows_vec, w->rows4};
    rows_find(w, TN_SRC_attention_k, item, t->key, w->k, keys);
    rows_find(w, TN_SRC_attention_v, item, t->key, w->v, values);
    next_rows next = next_rows_get(w, TN_SRC_attention_v, values);
    decode_scores(w, keys, &next, t->n_keys);
    decode_adjust_max(w, t->key, t->n_keys);
    update_max(w, &all);
    decode_exp(w, t->n_keys);
    update_sum(w, &all);
    rows_find(w, TN_SRC_attention_k, after->item, after->key, w->k, keys);
    next = next_rows_get(w, TN_SRC_attention_k, keys);
    decode_values(w, values, &next, t);
}
