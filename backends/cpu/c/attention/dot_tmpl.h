// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores of keys in q8_0 and q4_0 by integers, at levels that define VEC_DOTS (x86/vec_dot_*.h). Each block
// of 32 elements of a query gets a scale and int16 numbers, so that an element is off by 2^-16 of the largest
// one of its block. Codes of keys become int16 too, and two neighbours of both are multiplied and added at
// once. The sum of a block (below 2^28) is exact, so one chain of a multiply-add for each block gives the
// same bits in both layouts of scores:
//   many rows  a: keys, [key][d];     b: queries, [pair of d][row]
//   decode     a: queries, [row][d];  b: keys, [pair of d][key]; both in an order within four elements that
//   spares shuffles: 0 2 1 3

enum { DOT_PAIRS = QUANT_BLOCK / 2, DOT_MAX = 127 * 257 }; // two signed bytes hold it

// c [m, n] = a b, both with a scale for each row or column and block; m a multiple of 4, n of VEC_N.
typedef struct dot_args {
    const int16_t *a;
    const int32_t *b;     // pairs of int16, rows ldb apart
    const float *a_scale; // [m][n_blocks]
    const float *b_scale; // [n_blocks], rows ldb apart
    float *c;
    int64_t ldb, ldc, m, n, n_blocks;
} dot_args;

// Lists of statements without semicolons between them
// clang-format off
#define ROW_PAIR(i) ((i) < 3 ? row0 : (i) < 6 ? row3 : (i) < 9 ? row6 : row9) + (i) % 3 * a_row
#define ZERO2(i)    vi d##i##0 = vi_zero(), d##i##1 = vi_zero();
#define ZERO1(i)    vi d##i##0 = vi_zero();
#define DOT2(i)                                                                                              \
    {                                                                                                        \
        vi x = vi_set1_pair(ROW_PAIR(i));                                                                    \
        d##i##0 = vi_dot(d##i##0, b0, x);                                                                    \
        d##i##1 = vi_dot(d##i##1, b1, x);                                                                    \
    }
#define DOT1(i) d##i##0 = vi_dot(d##i##0, b0, vi_set1_pair(ROW_PAIR(i)));
#define SUM(i, v)                                                                                            \
    {                                                                                                        \
        vf scale = vf_mul(vf_set1(a_scale[(i) * g->n_blocks]), vf_load(b_scale + (v) * VEC_N));              \
        float *at = c + (i) * g->ldc + (v) * VEC_N;                                                          \
        vf_store(at, vf_fma(vf_from_i32(d##i##v), scale, first ? vf_zero() : vf_load(at)));                  \
    }
#define SUM2(i) SUM(i, 0) SUM(i, 1)
#define SUM1(i) SUM(i, 0)
#define REP_4(F) F(0) F(1) F(2) F(3)

// Rows [i, i + rows), columns [j, j + width vectors).
#define DOT_KERNEL(name, rows, rep, width, load_b)                                                           \
    static void name(const dot_args *g, int64_t i, int64_t j)                                                \
    {                                                                                                        \
        const int64_t a_row = g->n_blocks * QUANT_BLOCK, ldb = g->ldb;                                       \
        const int32_t *b = g->b + j;                                                                         \
        const int16_t *row0 = g->a + i * a_row, *row3 = (rows) > 3 ? row0 + 3 * a_row : row0;                \
        const int16_t *row6 = (rows) > 6 ? row0 + 6 * a_row : row0;                                          \
        const int16_t *row9 = (rows) > 9 ? row0 + 9 * a_row : row0;                                          \
        const float *a_scale = g->a_scale + i * g->n_blocks, *b_scale = g->b_scale + j;                      \
        float *c = g->c + i * g->ldc + j;                                                                    \
        for (int64_t block = 0; block < g->n_blocks; block++, a_scale++, b_scale += ldb) {                   \
            const bool first = block == 0;                                                                   \
            rep(ZERO##width)                                                                                 \
            for (const int16_t *end = row0 + QUANT_BLOCK; row0 != end;) {                                    \
                load_b;                                                                                      \
                rep(DOT##width)                                                                              \
                b += ldb;                                                                                    \
                row0 += 2;                                                                                   \
                row3 += 2;                                                                                   \
                row6 += 2;                                                                                   \
                row9 += 2;                                                                                   \
            }                                                                                                \
            rep(SUM##width)                                                                                  \
        }                                                                                                    \
    }
DOT_KERNEL(dot_rows_2, VEC_ROWS, VEC_REP_ROWS, 2, vi b0 = vi_load(b); vi b1 = vi_load(b + VEC_N))
DOT_KERNEL(dot_rows_1, VEC_ROWS, VEC_REP_ROWS, 1, vi b0 = vi_load(b))
DOT_KERNEL(dot_4_2, 4, REP_4, 2, vi b0 = vi_load(b); vi b1 = vi_load(b + VEC_N))
DOT_KERNEL(dot_4_1, 4, REP_4, 1, vi b0 = vi_load(b))
// clang-format on
#undef ROW_PAIR
#undef ZERO2
#undef ZERO1
#undef DOT2
#undef DOT1
#undef SUM
#undef SUM2
#undef SUM1
#undef REP_4
#undef DOT_KERNEL

// Rows in twelves, as gemm has them, then in fours.
static void dot_gemm(const dot_args *g)
{
    for (int64_t j = 0; j < g->n; j += 2 * VEC_N) {
        bool two = j + 2 * VEC_N <= g->n;
        int64_t i = 0;
        for (; i + 12 <= g->m; i += 12)
            for (int64_t r = i; r < i + 12; r += VEC_ROWS) {
                if (two)
                    dot_rows_2(g, r, j);
                else
                    dot_rows_1(g, r, j);
            }
        for (; i < g->m; i += 4) {
            if (two)
                dot_4_2(g, i, j);
            else
                dot_4_1(g, i, j);
        }
    }
}

// One block of a query; its scale is NaN if any element is no number or infinite. Below 1e-30 it is zero:
// that adds far less to a score than would change a weight.
static float dot_quantise(const float *x, int16_t *q)
{
    vf max = vf_zero(), bad = vf_zero();
    for (int i = 0; i < QUANT_BLOCK; i += VEC_N) {
        vf v = vf_load(x + i);
        max = vf_max(max, vf_abs(v));
        bad = vf_fma(v, vf_zero(), bad);
    }
    float top = vf_hmax(max);
    bool any = top > 1e-30f && top < INFINITY;
    vf inverse = vf_set1(any ? (float)DOT_MAX / top : 0.0f);
    int32_t wide[QUANT_BLOCK];
    for (int i = 0; i < QUANT_BLOCK; i += VEC_N)
        vf_store_i32(wide + i, vf_round(vf_mul(vf_load(x + i), inverse)));
    for (int i = 0; i < QUANT_BLOCK; i++) q[i] = (int16_t)wide[i];
    return (any ? top * (1.0f / (float)DOT_MAX) : 0.0f) + vf_sum(bad);
}

// A key in the order of its elements, and its scales.
static void dot_key(const attention_work *w, const uint8_t *row, int16_t *dst, float *scale)
{
    bool q8 = w->step->src[TN_SRC_attention_k].dtype == TN_TYPE_Q8_0;
    int64_t size = q8 ? Q8_0_SIZE : Q4_0_SIZE;
    for (int64_t b = 0; b < w->shape.d / QUANT_BLOCK; b++, row += size, dst += QUANT_BLOCK) {
        scale[b] = tn_load_f16(row);
        if (q8)
            vec_row_q8_0(row, dst);
        else
            vec_row_q4_0(row, dst);
    }
}

// Columns of VEC_N keys: pairs [d / 2] and scales [d / QUANT_BLOCK], rows ATTN_STRIP apart.
// With rows that are read next, of which so many lines are prefetched for each vector of blocks.
typedef struct dot_columns {
    int32_t *pairs;
    float *scale;
    next_rows *next;
    int64_t n_lines;
} dot_columns;

// Scales of blocks of `size` bytes of VEC_N rows, from byte `first` of each on: [block][row], blocks `stride`
// floats apart. First they are gathered as f16, then converted where they lie: a load of what was just stored
// in pieces would wait. Where a level can take them apart (VEC_SCALES), the scales of four blocks of a row
// are stored at once, those of the first VEC_N / 2 rows in place of the first block and the others in that of
// the second.
static void dot_scales_gather(const uint8_t *const *at, int64_t first, int64_t n_blocks, int64_t size,
                              float *scale, int64_t stride)
{
    int64_t b = 0;
#ifdef VEC_SCALES
    for (; b + 4 <= n_blocks; b += 4)
        for (int64_t i = 0; i < VEC_N; i++) {
            const uint8_t *x = at[i] + first + b * size;
            uint64_t low = tn_load_u16(x) | (uint32_t)tn_load_u16(x + size) << 16;
            uint64_t high = tn_load_u16(x + 2 * size) | (uint32_t)tn_load_u16(x + 3 * size) << 16;
            uint64_t four = low | high << 32;
            memcpy((uint8_t *)(scale + (b + 2 * i / VEC_N) * stride) + i % (VEC_N / 2) * 8, &four,
                   sizeof four);
        }
#endif
    for (; b < n_blocks; b++)
        for (int64_t i = 0; i < VEC_N; i++)
            memcpy((uint8_t *)(scale + b * stride) + 2 * i, at[i] + first + b * size, sizeof(uint16_t));
}

static void dot_scales_convert(int64_t n_blocks, float *scale, int64_t stride)
{
    int64_t b = 0;
#ifdef VEC_SCALES
    for (; b + 4 <= n_blocks; b += 4) vec_scales_4(scale + b * stride, stride);
#endif
    for (; b < n_blocks; b++)
        vf_store(scale + b * stride, vf_load_f16((const uint8_t *)(scale + b * stride)));
}

// Blocks [b, b + n) of VEC_N keys, no more than fill a vector, each with so many groups of four bytes.
// clang-format off
#define DOT_COLUMNS(name, block_size, groups)                                                                \
    TN_INLINE void dot_part_##name(const uint8_t *const *at, int64_t b, int64_t n, dot_columns to)           \
    {                                                                                                        \
        const int64_t size = block_size;                                                                     \
        float codes[VEC_N * VEC_N];                                                                          \
        next_prefetch(to.next, to.n_lines);                                                                  \
        VEC_TRANSPOSE(ROW_##name, codes, (int64_t)VEC_N);                                                    \
        for (int64_t i = 0; i < n * (groups); i++) {                                                         \
            int64_t first = (b + i / (groups)) * DOT_PAIRS + i % (groups) * 2;                               \
            vec_pairs_##name(codes + i * VEC_N, to.pairs + first * ATTN_STRIP, ATTN_STRIP);                  \
        }                                                                                                    \
    }                                                                                                        \
    static void dot_columns_##name(const uint8_t *const *at, int64_t n_blocks, dot_columns to)               \
    {                                                                                                        \
        enum { AT_ONCE = VEC_N / (groups) };                                                                 \
        int64_t b = 0;                                                                                       \
        dot_scales_gather(at, 0, n_blocks, block_size, to.scale, ATTN_STRIP);                                \
        for (; b + AT_ONCE <= n_blocks; b += AT_ONCE) dot_part_##name(at, b, AT_ONCE, to);                   \
        if (b < n_blocks) dot_part_##name(at, b, n_blocks - b, to);                                          \
        dot_scales_convert(n_blocks, to.scale, ATTN_STRIP);                                                  \
    }
#define ROW_q8_0(r) vec_codes_q8_0(at[r] + b * size, n)
#define ROW_q4_0(r) vec_codes_q4_0(at[r] + b * size, n)
DOT_COLUMNS(q8_0, Q8_0_SIZE, 8)
DOT_COLUMNS(q4_0, Q4_0_SIZE, 4)
#undef ROW_q8_0
#undef ROW_q4_0
#undef DOT_COLUMNS
// clang-format on

// --- where it lies: q and k of the work (tile_tmpl.h) can hold f32 of all, and this takes less

// Of keys or values
static bool dot_has(const attention_work *w, int32_t src)
{
    tn_dtype type = w->step->src[src].dtype;
    return type == TN_TYPE_Q8_0 || type == TN_TYPE_Q4_0;
}

// Of decode: queries [ATTN_DECODE_ROWS][d] and their scales; a strip of keys and its scales.
static int16_t *dot_decode_q(const attention_work *w)
{
    return (int16_t *)(void *)w->q;
}

static float *dot_decode_q_scale(const attention_work *w)
{
    return w->q + ATTN_DECODE_ROWS / 2 * w->shape.d;
}

static dot_columns dot_decode_strip(const attention_work *w)
{
    float *pairs = w->strip;
    return (dot_columns){.pairs = (int32_t *)(void *)pairs, .scale = pairs + ATTN_STRIP / 2 * w->shape.d};
}

// Of many rows: keys [ATTN_KEYS][d], their scales, and behind all keys a row of zeros, or while queries are
// loaded one as f32; ATTN_ROW_GROUP queries at a time, first in order (in place of keys), then transposed.
static int16_t *dot_many_k(const attention_work *w)
{
    return (int16_t *)(void *)w->k;
}

static float *dot_many_k_scale(const attention_work *w)
{
    return w->k + ATTN_KEYS / 2 * w->shape.d;
}

static float *dot_many_row(const attention_work *w)
{
    return w->k + ATTN_KEYS * w->shape.d;
}

static float *dot_many_q(const attention_work *w, int64_t first)
{
    return w->q + first * w->shape.d;
}

static float *dot_many_q_scale(const attention_work *w, int64_t first)
{
    return dot_many_q(w, first) + ATTN_ROW_GROUP / 2 * w->shape.d;
}

// --- queries ---------------------------------------------------------------------------------------------

static float *dot_query_buffer(const attention_work *w)
{
    return w->decode ? w->strip : dot_many_row(w);
}

#ifdef VEC_BYTES
#include "backends/cpu/c/attention/bytes_tmpl.h"
#endif

// Block b of row r, in the order of the scores of decode
static void dot_decode_query(const attention_work *w, int64_t r, int64_t b, const int16_t *q, float scale)
{
#ifdef VEC_BYTES
    bytes_split(w, r, b, q, scale);
#else
    int16_t *to = dot_decode_q(w) + r * w->shape.d + b * QUANT_BLOCK;
    for (int i = 0; i < QUANT_BLOCK; i++) to[i] = q[i / 4 * 4 + (i % 4 == 1 ? 2 : i % 4 == 2 ? 1 : i % 4)];
    dot_decode_q_scale(w)[r * (w->shape.d / QUANT_BLOCK) + b] = scale;
#endif
}

// Row r of the group that begins with row `first`.
static void dot_query(const attention_work *w, int64_t first, int64_t r, const float *x)
{
    int64_t d = w->shape.d, n_blocks = d / QUANT_BLOCK;
    int16_t *row = (w->decode ? dot_decode_q(w) : dot_many_k(w)) + r * d, q[QUANT_BLOCK];
    for (int64_t b = 0; b < n_blocks; b++, row += QUANT_BLOCK) {
        float scale = dot_quantise(x + b * QUANT_BLOCK, q);
        if (w->decode) {
            dot_decode_query(w, r, b, q, scale);
        } else {
            dot_many_q_scale(w, first)[b * ATTN_ROW_GROUP + r] = scale;
            memcpy(row, q, sizeof q);
        }
    }
}

static void dot_queries_end(const attention_work *w, int64_t first, int64_t n_rows)
{
    int64_t n = w->shape.d / 2; // pairs
    if (!w->decode) transpose(w->k, n, dot_many_q(w, first), ATTN_ROW_GROUP, n_rows, n);
}

// --- keys and scores -------------------------------------------------------------------------------------

static void dot_decode_scores(const attention_work *w, const uint8_t *const *at, next_rows *next,
                              int64_t n_keys)
{
#ifdef VEC_BYTES
    bytes_decode_scores(w, at, next, n_keys);
    return;
#endif
    bool q8 = w->step->src[TN_SRC_attention_k].dtype == TN_TYPE_Q8_0;
    dot_columns strip = dot_decode_strip(w);
    int64_t n_blocks = w->shape.d / QUANT_BLOCK, at_once = VEC_N / (q8 ? 8 : 4);
    int64_t n_parts = (n_blocks + at_once - 1) / at_once * (ATTN_KEYS / VEC_N);
    int64_t n_lines = next_share(next, n_parts);
    for (int64_t j = 0; j < n_keys; j += ATTN_STRIP) {
        int64_t n_vec = attention_round_up(TN_MIN(n_keys - j, ATTN_STRIP), VEC_N);
        for (int64_t i = 0; i < n_vec; i += VEC_N) {
            dot_columns to = {strip.pairs + i, strip.scale + i, next, n_lines};
            if (q8)
                dot_columns_q8_0(at + j + i, n_blocks, to);
            else
                dot_columns_q4_0(at + j + i, n_blocks, to);
        }
        dot_gemm(&(dot_args){.a = dot_decode_q(w),
                             .a_scale = dot_decode_q_scale(w),
                             .b = strip.pairs,
                             .b_scale = strip.scale,
                             .c = w->s + j,
                             .ldb = ATTN_STRIP,
                             .ldc = ATTN_KEYS,
                             .m = w->rows4,
                             .n = n_vec,
                             .n_blocks = n_blocks});
    }
}

// The keys of a tile, those that nobody sees or has as zeros.
static void dot_load_keys(const attention_work *w, const attention_item *item, const key_tile *t)
{
    key_rows at;
    float *zeros = dot_many_row(w);
    int64_t d = w->shape.d, n_blocks = d / QUANT_BLOCK;
    memset(zeros, 0, (size_t)d * sizeof *zeros);
    rows_find(w, TN_SRC_attention_k, item, t->key, zeros, at);
    for (int64_t i = 0; i < attention_round_up(t->n_keys, 4); i++)
        dot_key(w, at[i], dot_many_k(w) + i * d, dot_many_k_scale(w) + i * n_blocks);
}

static void dot_many_scores(const attention_work *w, int64_t n_keys, const row_range *rows)
{
    dot_gemm(&(dot_args){.a = dot_many_k(w),
                         .a_scale = dot_many_k_scale(w),
                         .b = (const int32_t *)(const void *)dot_many_q(w, rows->first),
                         .b_scale = dot_many_q_scale(w, rows->first),
                         .c = w->s,
                         .ldb = ATTN_ROW_GROUP,
                         .ldc = ATTN_ROW_GROUP,
                         .m = attention_round_up(n_keys, 4),
                         .n = rows->n_vec,
                         .n_blocks = w->shape.d / QUANT_BLOCK});
}
