// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores of keys in f16 and bf16 in decode, at levels that define VEC_HALVES: keys are transposed as 16-bit
// numbers, which takes half as many shuffles and stores as f32, and are converted where they are multiplied,
// once for four rows. A score is one chain of multiply-adds over the head, as in gemm_tmpl.h.

// c [m, ATTN_STRIP or less] = a [m, k] strip; m a multiple of 4, n of 2 VEC_N
typedef struct half_args {
    const float *a;
    const uint16_t *strip; // [k][ATTN_STRIP]
    float *c;
    int64_t lda, ldc, m, n, k;
    next_rows *next; // whose lines are prefetched meanwhile
} half_args;

enum { HALF_SHARE = 3 }; // transposing keys takes a third of the time, so a third of the lines

// Lists of statements without semicolons between them
// clang-format off
#define FOUR(F) F(0) F(1) F(2) F(3)
#define ZERO(i) vf c##i##0 = vf_zero(), c##i##1 = vf_zero();
#define ADD(i)                                                                                               \
    {                                                                                                        \
        vf x = vf_set1(((i) < 3 ? a : a3)[(i) % 3 * g->lda]);                                                \
        c##i##0 = vf_fma(x, b0, c##i##0);                                                                    \
        c##i##1 = vf_fma(x, b1, c##i##1);                                                                    \
    }
#define STORE(i)                                                                                             \
    vf_store(c + (i) * g->ldc, c##i##0);                                                                     \
    vf_store(c + (i) * g->ldc + VEC_N, c##i##1);

// Rows [i, i + 4), columns [j, j + 2 VEC_N)
#define HALF_KERNEL(name)                                                                                    \
    static void half_product_##name(const half_args *g, int64_t i, int64_t j)                                \
    {                                                                                                        \
        const float *a = g->a + i * g->lda, *a3 = a + 3 * g->lda;                                            \
        const uint8_t *b = (const uint8_t *)(g->strip + j);                                                  \
        float *c = g->c + i * g->ldc + j;                                                                    \
        FOUR(ZERO)                                                                                           \
        for (const float *end = a + g->k; a != end; a++, a3++, b += 2 * ATTN_STRIP) {                        \
            if ((end - a) % 2 == 0) next_prefetch(g->next, 1);                                               \
            vf b0 = vf_load_##name(b), b1 = vf_load_##name(b + 2 * VEC_N);                                   \
            FOUR(ADD)                                                                                        \
        }                                                                                                    \
        FOUR(STORE)                                                                                          \
    }
HALF_KERNEL(f16)
HALF_KERNEL(bf16)
// clang-format on
#undef FOUR
#undef ZERO
#undef ADD
#undef STORE
#undef HALF_KERNEL

static bool half_has(const attention_work *w)
{
    tn_dtype type = w->step->src[TN_SRC_attention_k].dtype;
    return (type == TN_TYPE_F16 || type == TN_TYPE_BF16) && w->shape.d % VEC_N == 0;
}

// strip[d][key] = the rows of n keys, a multiple of VEC_N
static void half_keys(const uint8_t *const *at, next_rows *next, int64_t n, int64_t d, uint16_t *strip)
{
    int64_t n_pieces = (d + 2 * VEC_N - 1) / (2 * VEC_N);
    int64_t n_lines = next_share(next, HALF_SHARE * n_pieces * (ATTN_KEYS / VEC_N));
    for (int64_t i = 0; i < n; i += VEC_N)
        for (int64_t piece = 0; piece < n_pieces; piece++) {
            int64_t j = piece * 2 * VEC_N;
            next_prefetch(next, n_lines);
            vec_transpose_halves(at + i, 2 * j, d - j == VEC_N, strip + j * ATTN_STRIP + i, ATTN_STRIP);
        }
}

static void half_decode_scores(const attention_work *w, key_rows at, next_rows *next, int64_t n_keys)
{
    const attention_shape *s = &w->shape;
    bool f16 = w->step->src[TN_SRC_attention_k].dtype == TN_TYPE_F16;
    uint16_t *strip = (uint16_t *)(void *)w->strip;
    for (int64_t j = 0; j < n_keys; j += ATTN_STRIP) {
        int64_t n = attention_round_up(TN_MIN(n_keys - j, ATTN_STRIP), 2 * VEC_N); // rows of zeros fill it up
        half_keys(at + j, next, n, s->d, strip);
        half_args g = {.a = w->q,
                       .strip = strip,
                       .c = w->s + j,
                       .lda = s->d_pad,
                       .ldc = ATTN_KEYS,
                       .m = w->rows4,
                       .n = n,
                       .k = s->d,
                       .next = next};
        for (int64_t c = 0; c < g.n; c += 2 * VEC_N)
            for (int64_t r = 0; r < g.m; r += 4) {
                if (f16)
                    half_product_f16(&g, r, c);
                else
                    half_product_bf16(&g, r, c);
            }
    }
}
