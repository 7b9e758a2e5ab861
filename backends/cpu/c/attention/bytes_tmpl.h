// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores of keys in q8_0 and q4_0 in decode, at levels that multiply bytes by signed bytes (VEC_BYTES). The
// int16 of a query (dot_tmpl.h) is 256 times a high byte and a low one, both signed, so a key is multiplied
// as it lies in the store: four neighbours of VEC_N keys in a vector, which never leaves the registers. Codes
// are used with an offset that makes them unsigned, and a sum begins with what takes it away again. Sums of a
// block are those of dot_tmpl.h, exactly, and so are the scores.
enum {
    BYTES_ROWS = 4,
    BYTES_QUADS = QUANT_BLOCK / 4,
    BYTES_KEYS = 2 * VEC_N, // at a time
    BYTES_BLOCKS = 4,       // whose scales are gathered at a time
};

// A block of BYTES_ROWS queries, which takes as much as their int16
typedef struct bytes_query {
    int8_t q[BYTES_QUADS][BYTES_ROWS][2][4]; // low bytes, high bytes
} bytes_query;

typedef struct bytes_numbers {
    int32_t begin[BYTES_ROWS]; // of sums
    float scale[BYTES_ROWS];
} bytes_numbers;

// Of the rows from r on, for each block
static bytes_query *bytes_queries(const attention_work *w, int64_t r)
{
    return (bytes_query *)(void *)w->q + r / BYTES_ROWS * (w->shape.d / QUANT_BLOCK);
}

static bytes_numbers *bytes_numbers_get(const attention_work *w, int64_t r)
{
    bytes_numbers *first = (bytes_numbers *)(void *)bytes_queries(w, ATTN_DECODE_ROWS);
    return first + r / BYTES_ROWS * (w->shape.d / QUANT_BLOCK);
}

// Block b of row r of the queries from its int16
static void bytes_split(const attention_work *w, int64_t r, int64_t b, const int16_t *q, float scale)
{
    bytes_query *to = bytes_queries(w, r) + b;
    bytes_numbers *numbers = bytes_numbers_get(w, r) + b;
    int32_t sum = 0;
    for (int i = 0; i < QUANT_BLOCK; i++) {
        int8_t low = (int8_t)(uint8_t)((uint16_t)q[i] & 255);
        to->q[i / 4][r % BYTES_ROWS][0][i % 4] = low;
        to->q[i / 4][r % BYTES_ROWS][1][i % 4] = (int8_t)((q[i] - low) / 256);
        sum += q[i];
    }
    bool q8 = w->step->src[TN_SRC_attention_k].dtype == TN_TYPE_Q8_0;
    numbers->begin[r % BYTES_ROWS] = -sum * (q8 ? VEC_OFFSET_q8_0 : VEC_OFFSET_q4_0);
    numbers->scale[r % BYTES_ROWS] = scale;
}

// A block of BYTES_KEYS keys
typedef struct bytes_keys {
    vi quads[2 * BYTES_QUADS];
    vf scale[2];
    bool first; // block of the keys
} bytes_keys;

// Two queries, from r of their four on, against a block of keys; rows of c are ATTN_KEYS apart. BYTES_QUADS
// lines are prefetched meanwhile.
TN_INLINE void bytes_product(const bytes_query *q, const bytes_numbers *numbers, int r,
                             const bytes_keys *keys, const uint8_t *line, float *c)
{
    vi low[2][2], high[2][2];
    TN_UNROLL
    for (int i = 0; i < 2; i++) {
        low[i][0] = low[i][1] = vi_set1_i32(numbers->begin + r + i);
        high[i][0] = high[i][1] = vi_zero();
    }
    TN_UNROLL
    for (int quad = 0; quad < BYTES_QUADS; quad++) {
        vi a = keys->quads[quad], b = keys->quads[BYTES_QUADS + quad];
        TN_PREFETCH_L2(line + quad * LINE_BYTES);
        TN_UNROLL
        for (int i = 0; i < 2; i++) {
            vi x = vi_set1_quad(q->q[quad][r + i][0]), y = vi_set1_quad(q->q[quad][r + i][1]);
            low[i][0] = vi_dot_bytes(low[i][0], a, x);
            low[i][1] = vi_dot_bytes(low[i][1], b, x);
            high[i][0] = vi_dot_bytes(high[i][0], a, y);
            high[i][1] = vi_dot_bytes(high[i][1], b, y);
        }
    }
    TN_UNROLL
    for (int i = 0; i < 4; i++) {
        float *at = c + (r + i / 2) * ATTN_KEYS + i % 2 * VEC_N;
        vf scale = vf_mul(vf_set1(numbers->scale[r + i / 2]), keys->scale[i % 2]);
        vf sum = vf_from_i32(vi_add_256(low[i / 2][i % 2], high[i / 2][i % 2]));
        vf_store(at, vf_fma(sum, scale, keys->first ? vf_zero() : vf_load(at)));
    }
}

// All queries against block b, while n_lines lines are prefetched
TN_INLINE void bytes_products(const attention_work *w, int64_t b, const bytes_keys *keys, const uint8_t *line,
                              int64_t n_lines, float *c)
{
    int64_t taken = 0, last = TN_MAX(n_lines - BYTES_QUADS, 0);
    for (int64_t r = 0; r < w->rows4; r += BYTES_ROWS, c += BYTES_ROWS * ATTN_KEYS) {
        const bytes_query *q = bytes_queries(w, r) + b;
        const bytes_numbers *numbers = bytes_numbers_get(w, r) + b;
        bytes_product(q, numbers, 0, keys, line + TN_MIN(taken, last) * LINE_BYTES, c);
        taken += BYTES_QUADS;
        bytes_product(q, numbers, 2, keys, line + TN_MIN(taken, last) * LINE_BYTES, c);
        taken += BYTES_QUADS;
    }
    for (; taken < n_lines; taken++) TN_PREFETCH_L2(line + taken * LINE_BYTES);
}

// Scores of BYTES_KEYS keys
TN_INLINE void bytes_scores(const attention_work *w, const uint8_t *const *at, float *c, next_rows *next,
                            int64_t n_lines, const bool q8)
{
    const int64_t n_blocks = w->shape.d / QUANT_BLOCK, size = q8 ? Q8_0_SIZE : Q4_0_SIZE;
    float scale[2][BYTES_BLOCKS * VEC_N];
    for (int64_t b = 0; b < n_blocks; b++) {
        int64_t i = b % BYTES_BLOCKS, n = TN_MIN(n_blocks - b, BYTES_BLOCKS);
        bytes_keys keys = {.first = b == 0};
        for (int half = 0; half < 2 && i == 0; half++)
            dot_scales_gather(at + half * VEC_N, b * size, n, size, scale[half], VEC_N);
        TN_UNROLL
        for (int half = 0; half < 2; half++) {
            if (q8)
                vec_quads_q8_0(at + half * VEC_N, b * size, keys.quads + half * BYTES_QUADS);
            else
                vec_quads_q4_0(at + half * VEC_N, b * size, keys.quads + half * BYTES_QUADS);
        }
        for (int half = 0; half < 2 && i == 0; half++) dot_scales_convert(n, scale[half], VEC_N);
        for (int half = 0; half < 2; half++) keys.scale[half] = vf_load(scale[half] + i * VEC_N);
        bytes_products(w, b, &keys, next_take(next, n_lines), n_lines, c);
    }
}

static TN_NOINLINE void bytes_scores_q8_0(const attention_work *w, const uint8_t *const *at, float *c,
                                          next_rows *next, int64_t n_lines)
{
    bytes_scores(w, at, c, next, n_lines, true);
}

static TN_NOINLINE void bytes_scores_q4_0(const attention_work *w, const uint8_t *const *at, float *c,
                                          next_rows *next, int64_t n_lines)
{
    bytes_scores(w, at, c, next, n_lines, false);
}

static void bytes_decode_scores(const attention_work *w, const uint8_t *const *at, next_rows *next,
                                int64_t n_keys)
{
    bool q8 = w->step->src[TN_SRC_attention_k].dtype == TN_TYPE_Q8_0;
    int64_t n_lines = next_share(next, w->shape.d / QUANT_BLOCK * (ATTN_KEYS / BYTES_KEYS));
    for (int64_t i = 0; i < n_keys; i += BYTES_KEYS) {
        if (q8)
            bytes_scores_q8_0(w, at + i, w->s + i, next, n_lines);
        else
            bytes_scores_q4_0(w, at + i, w->s + i, next, n_lines);
    }
}
