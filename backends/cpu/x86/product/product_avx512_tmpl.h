// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 kernels of one float weight type; included once per type with TYPE (lower case) and SIZE (bytes)
// defined, and load_TYPE(w, k, mask): 16 weights from k on as f32, zeros where the mask is clear.
#define CAT2(a, b) a##_##b
#define CAT(a, b)  CAT2(a, b)
#define NAME(what) CAT(TYPE, what)

TN_INLINE void NAME(rows_n)(const tn_matmul_rows_args *a, int n_x)
{
    const float *x[TN_MATMUL_ROWS_X];
    int64_t k = a->layout->k;
    for (int t = 0; t < n_x; t++) x[t] = (const float *)(const void *)a->x[t];
    for (int64_t r = 0; r < a->n_rows; r++) {
        const uint8_t *w = a->w + r * a->w_stride;
        __m512 acc[TN_MATMUL_ROWS_X][4];
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) acc[t][0] = acc[t][1] = acc[t][2] = acc[t][3] = _mm512_setzero_ps();
        int64_t i = 0;
        for (; i + 64 <= k; i += 64) {
            TN_MATMUL_PREFETCH(w + i * SIZE, 64 * SIZE);
            TN_MATMUL_UNROLL
            for (int j = 0; j < 4; j++) {
                __m512 v = CAT(load, TYPE)(w, i + 16 * j, 0xffff);
                TN_MATMUL_UNROLL
                for (int t = 0; t < n_x; t++)
                    acc[t][j] = _mm512_fmadd_ps(v, _mm512_loadu_ps(x[t] + i + 16 * j), acc[t][j]);
            }
        }
        for (; i < k; i += 16) { // records are padded with zeros to 16
            __m512 v = CAT(load, TYPE)(w, i, mask_of(k - i));
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++)
                acc[t][0] = _mm512_fmadd_ps(v, _mm512_loadu_ps(x[t] + i), acc[t][0]);
        }
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            __m512 s =
                _mm512_add_ps(_mm512_add_ps(acc[t][0], acc[t][1]), _mm512_add_ps(acc[t][2], acc[t][3]));
            a->y[t * a->y_stride + r] = _mm512_reduce_add_ps(s);
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
        const uint8_t *w[16];
        for (int r = 0; r < 16; r++) // rows past the end repeat the last one
            w[r] = t->w + TN_MIN(half * 16 + r, t->n_rows - 1) * t->w_stride + t->k0 * SIZE;
        for (int64_t k = 0; k < t->n_k; k += 16) {
            __mmask16 m = mask_of(l->k - t->k0 - k);
            __m512 in[16], out[16];
            TN_MATMUL_UNROLL
            for (int r = 0; r < 16; r++) in[r] = CAT(load, TYPE)(w[r], k, m);
            transpose_f32(in, out);
            float *q = (float *)(void *)t->q + k * TN_MATMUL_TILE_ROWS + half * 16;
            TN_MATMUL_UNROLL
            for (int i = 0; i < 16; i++) _mm512_store_ps(q + i * TN_MATMUL_TILE_ROWS, out[i]);
        }
    }
}

#undef TYPE
#undef SIZE
#undef NAME
#undef CAT
#undef CAT2
