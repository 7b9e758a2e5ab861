// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2 kernels of one float weight type; included once per type with TYPE (lower case) and SIZE (bytes)
// defined, and load_TYPE(w, k): 8 weights from k on as f32.
#define CAT2(a, b) a##_##b
#define CAT(a, b)  CAT2(a, b)
#define NAME(what) CAT(TYPE, what)

// n < 8 weights from k on, then zeros.
TN_INLINE __m256 NAME(load_tail)(const uint8_t *w, int64_t k, int64_t n)
{
    uint8_t padded[8 * SIZE] = {0};
    if (n > 0) memcpy(padded, w + k * SIZE, (size_t)TN_MIN(n, 8) * SIZE);
    return CAT(load, TYPE)(padded, 0);
}

TN_INLINE void NAME(rows_n)(const tn_matmul_rows_args *a, int n_x)
{
    const float *x[TN_MATMUL_ROWS_X];
    int64_t k = a->layout->k;
    for (int t = 0; t < n_x; t++) x[t] = (const float *)(const void *)a->x[t];
    for (int64_t r = 0; r < a->n_rows; r++) {
        const uint8_t *w = a->w + r * a->w_stride;
        __m256 acc[TN_MATMUL_ROWS_X][4];
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) acc[t][0] = acc[t][1] = acc[t][2] = acc[t][3] = _mm256_setzero_ps();
        int64_t i = 0;
        for (; i + 32 <= k; i += 32) {
            TN_MATMUL_PREFETCH(w + i * SIZE, 32 * SIZE);
            TN_MATMUL_UNROLL
            for (int j = 0; j < 4; j++) {
                __m256 v = CAT(load, TYPE)(w, i + 8 * j);
                TN_MATMUL_UNROLL
                for (int t = 0; t < n_x; t++)
                    acc[t][j] = _mm256_fmadd_ps(v, _mm256_loadu_ps(x[t] + i + 8 * j), acc[t][j]);
            }
        }
        for (; i < k; i += 8) { // records are padded with zeros to 16
            __m256 v = NAME(load_tail)(w, i, k - i);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++)
                acc[t][0] = _mm256_fmadd_ps(v, _mm256_loadu_ps(x[t] + i), acc[t][0]);
        }
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            __m256 s =
                _mm256_add_ps(_mm256_add_ps(acc[t][0], acc[t][1]), _mm256_add_ps(acc[t][2], acc[t][3]));
            a->y[t * a->y_stride + r] = sum_8(s);
        }
    }
}

static void NAME(rows)(const tn_matmul_rows_args *a)
{
    if (a->n_x == 1)
        NAME(rows_n)(a, 1);
    else if (a->n_x == 2)
        NAME(rows_n)(a, 2);
    else if (a->n_x == 3)
        NAME(rows_n)(a, 3);
    else
        NAME(rows_n)(a, 4);
}

static void NAME(pack)(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    for (int half = 0; half < 2; half++) {
        const uint8_t *w[8];
        for (int r = 0; r < 8; r++) // rows past the end repeat the last one
            w[r] = t->w + TN_MIN(half * 8 + r, t->n_rows - 1) * t->w_stride + t->k0 * SIZE;
        for (int64_t k = 0; k < t->n_k; k += 8) {
            int64_t left = l->k - t->k0 - k;
            __m256 in[8];
            for (int r = 0; r < 8; r++)
                in[r] = left >= 8 ? CAT(load, TYPE)(w[r], k) : NAME(load_tail)(w[r], k, left);
            store_columns(in, (float *)(void *)t->q + k * AVX2_TILE_ROWS + half * 8);
        }
    }
}

#undef TYPE
#undef SIZE
#undef NAME
#undef CAT
#undef CAT2
