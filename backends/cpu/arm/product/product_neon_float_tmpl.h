// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// NEON kernels of one float weight type; included once per type with TYPE (lower case) and SIZE (bytes)
// defined, and load_TYPE(w, k): 4 weights from k on as f32.
#define CAT2(a, b) a##_##b
#define CAT(a, b)  CAT2(a, b)
#define NAME(what) CAT(TYPE, what)

// n < 4 weights from k on, then zeros.
TN_INLINE float32x4_t NAME(load_tail)(const uint8_t *w, int64_t k, int64_t n)
{
    uint8_t padded[4 * SIZE] TN_ALIGNED(16) = {0};
    if (n > 0) memcpy(padded, w + k * SIZE, (size_t)TN_MIN(n, 4) * SIZE);
    return CAT(load, TYPE)(padded, 0);
}

TN_INLINE void NAME(rows_n)(const tn_matmul_rows_args *a, int n_x)
{
    const float *x[ARM_PASS_X];
    int64_t k = a->layout->k;
    for (int t = 0; t < n_x; t++) x[t] = (const float *)(const void *)a->x[t];
    for (int64_t r = 0; r < a->n_rows; r++) {
        const uint8_t *w = a->w + r * a->w_stride;
        float32x4_t acc[ARM_PASS_X][4];
        TN_UNROLL
        for (int t = 0; t < n_x; t++) acc[t][0] = acc[t][1] = acc[t][2] = acc[t][3] = vdupq_n_f32(0.0f);
        int64_t i = 0;
        for (; i + 32 <= k; i += 32) {
            ARM_FETCH(w + i * SIZE, 32 * SIZE);
            TN_UNROLL
            for (int j = 0; j < 8; j++) {
                float32x4_t v = CAT(load, TYPE)(w, i + 4 * j);
                TN_UNROLL
                for (int t = 0; t < n_x; t++)
                    acc[t][j % 4] = vfmaq_f32(acc[t][j % 4], v, vld1q_f32(x[t] + i + 4 * j));
            }
        }
        for (; i < k; i += 4) { // records are padded with zeros to 16
            float32x4_t v = NAME(load_tail)(w, i, k - i);
            TN_UNROLL
            for (int t = 0; t < n_x; t++) acc[t][0] = vfmaq_f32(acc[t][0], v, vld1q_f32(x[t] + i));
        }
        TN_UNROLL
        for (int t = 0; t < n_x; t++) {
            float32x4_t s = vaddq_f32(vaddq_f32(acc[t][0], acc[t][1]), vaddq_f32(acc[t][2], acc[t][3]));
            a->y[t * a->y_stride + r] = vf_sum(s);
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
    for (int r = 0; r < ARM_TILE_ROWS; r += 4) {
        const uint8_t *w[4];
        for (int i = 0; i < 4; i++) // rows past the end repeat the last one
            w[i] = t->w + TN_MIN(r + i, t->n_rows - 1) * t->w_stride + t->k0 * SIZE;
        for (int64_t k = 0; k < t->n_k; k += 4) {
            int64_t left = l->k - t->k0 - k;
            float32x4_t in[4];
            TN_UNROLL
            for (int i = 0; i < 4; i++)
                in[i] = left >= 4 ? CAT(load, TYPE)(w[i], k) : NAME(load_tail)(w[i], k, left);
            store_columns(in, column_at(t, k, r));
        }
    }
}

#undef TYPE
#undef SIZE
#undef NAME
#undef CAT
#undef CAT2
