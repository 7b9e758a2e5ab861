// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Values in q8_0 and q4_0 by integers, at levels that define VEC_DOTS. What a code of a value is multiplied
// with, the exponential of the score times the scale of the code's block, becomes an int16 with a scale for
// each row, block and tile of keys: it is off by 2^-16 of the largest one of the tile. Codes become int16
// too, and those of two keys are multiplied and added at once. The sum of a tile (below 2^29) is exact, so
// one chain of a multiply-add for each tile gives the same bits for many rows and in decode:
//   weights  pairs of keys; many rows [pair][row], decode [row][pair]
//   codes    pairs of keys, for each 2 VEC_N elements two vectors, in the order in which unpacking leaves
//            them; many rows [pair][dv], decode in registers
enum { DOT_PIECE = 2 * VEC_N, DOT_PIECES = QUANT_BLOCK / DOT_PIECE }; // elements of a block at a time

// Rows of o, DOT_PIECE elements: o = o * alpha + scale * (weights . codes).
typedef struct dot_values_args {
    const int32_t *weights; // pairs; row r, pair k at r * row + k * pair
    int64_t row, pair;
    const float *scale, *alpha;   // of each row; alpha NULL: o starts at 0
    float *o;                     // rows ldo apart
    int64_t ldo, n_pairs, n_rows; // n_rows: a multiple of 4
    const int32_t *codes;         // many rows: pairs ldc apart
    int64_t ldc;                  //
    const uint8_t *const *at;     // decode: 2 n_pairs rows, n_pairs even
    next_rows *next;              // whose lines are prefetched meanwhile,
    int64_t n_lines;              // so many for two pairs
    int64_t offset;               // of the block in the rows
    int64_t half;                 // piece in the block
    bool q8;
} dot_values_args;

// Results of row r as the unpacking left them
TN_INLINE void dot_values_add(const dot_values_args *g, int64_t r, vi low, vi high)
{
    float *o = g->o + r * g->ldo;
    vf scale = vf_set1(g->scale[r]), o0 = vf_zero(), o1 = vf_zero();
    if (g->alpha) {
        vf alpha = vf_set1(g->alpha[r]);
        o0 = vf_mul(vf_load(o), alpha);
        o1 = vf_mul(vf_load(o + VEC_N), alpha);
    }
    vf_store(o, vf_fma(vf_from_i32(vi_repack_first(low, high)), scale, o0));
    vf_store(o + VEC_N, vf_fma(vf_from_i32(vi_repack_second(low, high)), scale, o1));
}

// Lists of statements without semicolons between them
// clang-format off
#define WEIGHTS(i) ((i) < 3 ? row0 : (i) < 6 ? row3 : (i) < 9 ? row6 : row9) + (i) % 3 * g->row
#define ZERO(i)    vi low##i = vi_zero(), high##i = vi_zero();
#define DOT(i)                                                                                               \
    {                                                                                                        \
        vi x = vi_set1_i32(WEIGHTS(i));                                                                      \
        low##i = vi_dot(low##i, low, x);                                                                     \
        high##i = vi_dot(high##i, high, x);                                                                  \
    }
#define ADD(i)     dot_values_add(g, first + (i), low##i, high##i);
#define REP_4(F)   F(0) F(1) F(2) F(3)

// Rows [first, first + rows); load: two vectors of codes of the pair k
#define DOT_VALUES(name, rows, rep, load)                                                                    \
    static void name(const dot_values_args *g, int64_t first)                                                \
    {                                                                                                        \
        const int32_t *row0 = g->weights + first * g->row, *row3 = (rows) > 3 ? row0 + 3 * g->row : row0;    \
        const int32_t *row6 = (rows) > 6 ? row0 + 6 * g->row : row0;                                         \
        const int32_t *row9 = (rows) > 9 ? row0 + 9 * g->row : row0;                                         \
        rep(ZERO)                                                                                            \
        for (int64_t k = 0; k < g->n_pairs; k++) {                                                           \
            load;                                                                                            \
            rep(DOT)                                                                                         \
            row0 += g->pair;                                                                                 \
            row3 += g->pair;                                                                                 \
            row6 += g->pair;                                                                                 \
            row9 += g->pair;                                                                                 \
        }                                                                                                    \
        rep(ADD)                                                                                             \
    }
#define LOAD_PAIRS                                                                                           \
    const int32_t *codes = g->codes + k * g->ldc;                                                            \
    vi low = vi_load(codes), high = vi_load(codes + VEC_N)
DOT_VALUES(dot_values_rows, VEC_ROWS, VEC_REP_ROWS, LOAD_PAIRS)
DOT_VALUES(dot_values_4, 4, REP_4, LOAD_PAIRS)
// clang-format on
#undef WEIGHTS
#undef ZERO
#undef DOT
#undef ADD
#undef REP_4
#undef DOT_VALUES
#undef LOAD_PAIRS

// What turns weights below `top` into integers; 0 where there is nothing to add, or no number
TN_INLINE vf dot_weight_inverse(vf top)
{
    vm any = vm_and(vm_lt(vf_set1(1e-30f), top), vm_lt(top, vf_set1(INFINITY)));
    return vf_select(any, vf_div(vf_set1((float)DOT_MAX), top), vf_zero());
}

// What turns sums of integers back; `bad` is NaN where a weight is no number or infinite, else 0
TN_INLINE vf dot_weight_scale(vf top, vf bad)
{
    vm any = vm_and(vm_lt(vf_set1(1e-30f), top), vm_lt(top, vf_set1(INFINITY)));
    return vf_add(vf_select(any, vf_mul(top, vf_set1(1.0f / (float)DOT_MAX)), vf_zero()), bad);
}

// Scales of n rows, and of some of zeros behind them: [block][ATTN_KEYS]
static void dot_value_scales(const attention_work *w, const uint8_t *const *at, int64_t n, float *scales)
{
    int64_t n_blocks = w->shape.dv / QUANT_BLOCK, size = w->step->src[TN_SRC_attention_v].nb[3];
    for (int64_t i = 0; i < n; i += VEC_N)
        dot_scales_gather(at + i, 0, n_blocks, size, scales + i, ATTN_KEYS);
    for (int64_t i = 0; i < n; i += VEC_N) dot_scales_convert(n_blocks, scales + i, ATTN_KEYS);
}

// --- decode ----------------------------------------------------------------------------------------------

// Four rows of weights, with pairs that are neighbours, against a piece of a block.
TN_INLINE void dot_values_part(const dot_values_args *g, const bool q8)
{
    const int32_t *row0 = g->weights, *row3 = row0 + 3 * g->row;
    const uint8_t *const *at = g->at;
    vi low[4], high[4];
    TN_UNROLL
    for (int r = 0; r < 4; r++) low[r] = high[r] = vi_zero();
    for (int64_t k = 0; k < g->n_pairs; k += 2, at += 4, row0 += 2, row3 += 2) {
        next_prefetch(g->next, g->n_lines);
        TN_UNROLL
        for (int i = 0; i < 2; i++) {
            const uint8_t *x = at[2 * i] + g->offset, *y = at[2 * i + 1] + g->offset;
            vi a = q8 ? vec_words_q8_0(x, g->half) : vec_words_q4_0(x, g->half);
            vi b = q8 ? vec_words_q8_0(y, g->half) : vec_words_q4_0(y, g->half);
            vi first = vi_unpack_low(a, b), second = vi_unpack_high(a, b);
            TN_UNROLL
            for (int r = 0; r < 4; r++) {
                vi weight = vi_set1_i32((r < 3 ? row0 + r * g->row : row3) + i);
                low[r] = vi_dot(low[r], first, weight);
                high[r] = vi_dot(high[r], second, weight);
            }
        }
    }
    TN_UNROLL
    for (int r = 0; r < 4; r++) dot_values_add(g, r, low[r], high[r]);
}

static TN_NOINLINE void dot_values_decode(const dot_values_args *g)
{
    if (g->q8)
        dot_values_part(g, true);
    else
        dot_values_part(g, false);
}

// So many blocks that their rows of weights fill a vector of scales
typedef struct dot_weights {
    int64_t n_rows, n_blocks, n_keys; // n_keys: a multiple of VEC_N
    const float *e, *s;               // exponentials [row][ATTN_KEYS], scales [block][ATTN_KEYS]
    int16_t *weights;                 // [block][row][ATTN_KEYS]
    float scale[VEC_N];               // [block][row]
} dot_weights;

// The largest weight of each row for each block, and NaN where one is no number or infinite, in lanes that
// still have to be brought together.
static void dot_weights_top(const dot_weights *g, float *lanes)
{
    for (int64_t b = 0; b < g->n_blocks; b++)
        for (int64_t r = 0; r < g->n_rows; r++, lanes += VEC_N) {
            vf max = vf_zero(), bad = vf_zero();
            for (int64_t i = 0; i < g->n_keys; i += VEC_N) {
                vf v = vf_mul(vf_load(g->e + r * ATTN_KEYS + i), vf_load(g->s + b * ATTN_KEYS + i));
                max = vf_max(vf_abs(v), max);
                bad = vf_fma(v, vf_zero(), bad);
            }
            vf_store(lanes, vf_add(max, bad));
        }
}

// Weights and their scales
static void dot_weights_get(dot_weights *g)
{
    float lanes[VEC_N * VEC_N], columns[VEC_N * VEC_N], inverses[VEC_N];
    int64_t used = g->n_blocks * g->n_rows;
    dot_weights_top(g, lanes);
    for (int64_t i = used * VEC_N; i < VEC_N * VEC_N; i++) lanes[i] = 0.0f;
#define ROW(r) vf_load(lanes + (r)*VEC_N)
    VEC_TRANSPOSE(ROW, columns, (int64_t)VEC_N);
#undef ROW
    vf top = vf_zero(), bad = vf_zero();
    for (int64_t i = 0; i < VEC_N; i++) {
        vf v = vf_load(columns + i * VEC_N);
        top = vf_max(v, top);
        bad = vf_fma(v, vf_zero(), bad);
    }
    vf_store(inverses, dot_weight_inverse(top));
    vf_store(g->scale, dot_weight_scale(top, bad));
    for (int64_t row = 0; row < used; row++) {
        const float *e = g->e + row % g->n_rows * ATTN_KEYS, *s = g->s + row / g->n_rows * ATTN_KEYS;
        int16_t *weights = g->weights + row * ATTN_KEYS;
        vf inverse = vf_set1(inverses[row]);
        for (int64_t i = 0; i < g->n_keys; i += VEC_N)
            vf_store_i16(weights + i, vf_mul(vf_mul(vf_load(e + i), vf_load(s + i)), inverse));
    }
}

static void dot_decode_values(const attention_work *w, const uint8_t *const *at, next_rows *next,
                              const key_tile *t)
{
    const tn_view *v = &w->step->src[TN_SRC_attention_v];
    int64_t n = w->shape.dv_pad, n_blocks = w->shape.dv / QUANT_BLOCK, n_rows = w->rows4;
    dot_weights g = {.n_rows = n_rows,
                     .n_keys = attention_round_up(t->n_keys, VEC_N),
                     .e = w->s,
                     .s = w->v + n,
                     .weights = (int16_t *)(void *)w->weights};
    dot_values_args part = {.row = ATTN_KEYS / 2,
                            .ldo = n,
                            .n_pairs = attention_round_up(t->n_keys, 4) / 2,
                            .at = at,
                            .next = next,
                            .n_lines =
                                next_share(next, n_blocks * DOT_PIECES * (ATTN_KEYS / 4) * (n_rows / 4)),
                            .q8 = v->dtype == TN_TYPE_Q8_0};
    dot_value_scales(w, at, g.n_keys, w->v + n);
    for (int64_t first = 0; first < n_blocks; first += g.n_blocks, g.s += g.n_blocks * ATTN_KEYS) {
        g.n_blocks = TN_MIN(VEC_N / n_rows, n_blocks - first);
        dot_weights_get(&g);
        for (int64_t piece = 0; piece < g.n_blocks * DOT_PIECES; piece++)
            for (int64_t r = 0; r < n_rows; r += 4) {
                int64_t row = piece / DOT_PIECES * n_rows + r;
                part.weights = (const int32_t *)(const void *)(g.weights + row * ATTN_KEYS);
                part.scale = g.scale + row;
                part.alpha = t->first ? NULL : w->row[ROW_ALPHA] + r;
                part.o = w->o + r * n + first * QUANT_BLOCK + piece * DOT_PIECE;
                part.offset = (first + piece / DOT_PIECES) * v->nb[3];
                part.half = piece % DOT_PIECES;
                dot_values_decode(&part);
            }
    }
}

// --- many rows -------------------------------------------------------------------------------------------

// In place of values as f32: pairs of codes [ATTN_KEYS / 2][dv], then scales [block][ATTN_KEYS], and behind
// ATTN_KEYS rows of f32 a row of zeros.
static float *dot_many_v_scale(const attention_work *w)
{
    return w->v + ATTN_KEYS / 2 * w->shape.dv;
}

// The values of a tile, those that nobody sees or has as zeros.
static void dot_load_values(const attention_work *w, const attention_item *item, const key_tile *t)
{
    const tn_view *v = &w->step->src[TN_SRC_attention_v];
    bool q8 = v->dtype == TN_TYPE_Q8_0;
    key_rows at;
    int64_t dv = w->shape.dv, n_blocks = dv / QUANT_BLOCK;
    float *zeros = w->v + ATTN_KEYS * w->shape.dv_pad;
    int32_t *codes = (int32_t *)(void *)w->v;
    memset(zeros, 0, (size_t)dv * sizeof *zeros);
    rows_find(w, TN_SRC_attention_v, item, t->key, zeros, at);
    dot_value_scales(w, at, t->n_keys, dot_many_v_scale(w));
    for (int64_t i = 0; i < t->n_keys; i += 2)
        for (int64_t piece = 0; piece < n_blocks * DOT_PIECES; piece++, codes += DOT_PIECE) {
            int64_t offset = piece / DOT_PIECES * v->nb[3], half = piece % DOT_PIECES;
            const uint8_t *x = at[i] + offset, *y = at[i + 1] + offset;
            vi a = q8 ? vec_words_q8_0(x, half) : vec_words_q4_0(x, half);
            vi b = q8 ? vec_words_q8_0(y, half) : vec_words_q4_0(y, half);
            vi_store(codes, vi_unpack_low(a, b));
            vi_store(codes + VEC_N, vi_unpack_high(a, b));
        }
}

// Weights of VEC_N rows for a block: e [key][ATTN_ROW_GROUP] times s [key]; n_keys is a multiple of 4.
// Pairs go to weights [n_keys / 2][ATTN_ROW_GROUP]. Returns their scales.
static vf dot_many_weights(const float *e, const float *s, int64_t n_keys, int32_t *weights)
{
    vf max[4], bad[4]; // four chains hide the latency
    for (int i = 0; i < 4; i++) max[i] = bad[i] = vf_zero();
    for (int64_t k = 0; k < n_keys; k += 4)
        for (int64_t i = 0; i < 4; i++) {
            vf v = vf_mul(vf_load(e + (k + i) * ATTN_ROW_GROUP), vf_set1(s[k + i]));
            max[i] = vf_max(vf_abs(v), max[i]);
            bad[i] = vf_fma(v, vf_zero(), bad[i]);
        }
    vf top = vf_max(vf_max(max[0], max[1]), vf_max(max[2], max[3])), inverse = dot_weight_inverse(top);
    for (int64_t k = 0; k < n_keys; k += 2, e += 2 * ATTN_ROW_GROUP, weights += ATTN_ROW_GROUP) {
        vf a = vf_mul(vf_mul(vf_load(e), vf_set1(s[k])), inverse);
        vf b = vf_mul(vf_mul(vf_load(e + ATTN_ROW_GROUP), vf_set1(s[k + 1])), inverse);
        vi_store(weights, vi_pair_i16(a, b));
    }
    return dot_weight_scale(top, vf_add(vf_add(bad[0], bad[1]), vf_add(bad[2], bad[3])));
}

// o of a group of rows = o * alpha + exponentials . values
static void dot_many_values(const attention_work *w, int64_t n_keys, const row_range *rows)
{
    int64_t dv = w->shape.dv, ldo = w->shape.dv_pad, n4 = attention_round_up(n_keys, 4);
    const float *scales = dot_many_v_scale(w);
    float *weight_scale = w->weights + ATTN_KEYS / 2 * ATTN_ROW_GROUP;
    int32_t *weights = (int32_t *)(void *)w->weights;
    for (int64_t i = n_keys * ATTN_ROW_GROUP; i < n4 * ATTN_ROW_GROUP; i++) w->s[i] = 0.0f;
    for (int64_t j = 0; j < dv; j += DOT_PIECE) {
        const float *s = scales + j / QUANT_BLOCK * ATTN_KEYS;
        for (int64_t i = 0; j % QUANT_BLOCK == 0 && i < rows->n_vec; i += VEC_N)
            vf_store(weight_scale + i, dot_many_weights(w->s + i, s, n4, weights + i));
        dot_values_args g = {.weights = weights,
                             .row = 1,
                             .pair = ATTN_ROW_GROUP,
                             .scale = weight_scale,
                             .alpha = w->row[ROW_ALPHA] + rows->first,
                             .o = w->o + rows->first * ldo + j,
                             .ldo = ldo,
                             .n_pairs = (n_keys + 1) / 2,
                             .codes = (const int32_t *)(const void *)w->v + j,
                             .ldc = dv};
        int64_t r = 0;
        for (; r + 12 <= rows->n4; r += 12)
            for (int64_t i = r; i < r + 12; i += VEC_ROWS) dot_values_rows(&g, i);
        for (; r < rows->n4; r += 4) dot_values_4(&g, r);
    }
}
