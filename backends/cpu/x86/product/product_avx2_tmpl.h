// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of one quantised weight type with AVX2; included once per type, after defining
//   TYPE         name in lower case
//   SUB          16 or 32: elements per scale
//   CHAIN        vectors that share their scales and go through one accumulator: 1 or 2
//   HAS_MIN      1: value = scale * q + min, 0: scale * q
//   SIGNED       1: bytes are q from -128 to 127, 0: bytes are q + BIAS from 0 to 127 (63 with CHAIN 2)
//   BIAS         see there; 0 with SIGNED
//   ORDER        order of the format, ORDER_* in product_avx2.h
//   LANES        lanes_of_1 or lanes_of_2: sub-blocks of the lanes of an accumulator
//   GROUP_SIZE   bytes of 256 weights
//   BLOCK_ELEMS  elements per block of the type: below 256 rows may end within a group
//   TILE         tile product
//   ROWS_X_MAX   see tn_matmul_kernel
// and two functions for a group of 256 weights:
//   TYPE_unpack(w, u)           u[8]: bytes in that order
//   TYPE_scales(w, scale, min)  8 (SUB 32) or 16 values in natural order; min only with HAS_MIN
// Dot products are those of dot_avx2.h or dot_avxvnni.h.
#define CAT2(a, b) a##_##b
#define CAT(a, b)  CAT2(a, b)
#define NAME(what) CAT(TYPE, what)

#define USED_BIAS (SIGNED ? SIGNED_BIAS : BIAS)
#define STEP_SIZE (SIGNED ? SIGNED_STEP : AVX2_TILE_STEP) // bytes of a tile per 4 k

// The bytes of a group, as dot_rows and dot_tile want them.
TN_INLINE void NAME(bytes)(const uint8_t *w, __m256i *u)
{
    NAME(unpack)(w, u);
    if (SIGNED) prepare_signed(u);
}

TN_INLINE void NAME(rows_group)(const uint8_t *w, const uint8_t *const *x, const tn_matmul_layout *l,
                                int64_t g, int n_x, __m256 *acc, __m256 *acc_min)
{
    enum { N_SUB = TN_MATMUL_GROUP / SUB };
    const size_t q_at = (size_t)g * TN_MATMUL_GROUP, subs_at = (size_t)g * N_SUB * 4;
    const size_t init_at = l->init_off + (size_t)g * (TN_MATMUL_GROUP / CHAIN);
    __m256i u[8];
    __m256 scale[N_SUB / 8], min[N_SUB / 8];
    NAME(scales)(w, scale, min);
    NAME(bytes)(w, u);
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        __m256 s[N_SUB / 8];
        TN_MATMUL_UNROLL
        for (int i = 0; i < N_SUB / 8; i++) {
            s[i] = _mm256_mul_ps(scale[i], load_subs(x[t] + l->d_off + subs_at + 32 * i));
            if (HAS_MIN)
                acc_min[t] =
                    _mm256_fmadd_ps(min[i], load_subs(x[t] + l->sum_off + subs_at + 32 * i), acc_min[t]);
        }
        TN_MATMUL_UNROLL
        for (int c = 0; c < 8 / CHAIN; c++) {
            const uint8_t *init = USED_BIAS ? x[t] + init_at + c * 32 : NULL;
            __m256i dot = dot_rows(u + c * CHAIN, x[t] + q_at + c * CHAIN * 32, init, CHAIN, SIGNED);
            acc[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), LANES(s, c), acc[t]);
        }
    }
}

TN_INLINE void NAME(rows_n)(const tn_matmul_rows_args *a, int n_x)
{
    const uint8_t *x[TN_MATMUL_ROWS_X];
    const tn_matmul_layout l = *a->layout;
    for (int t = 0; t < n_x; t++) x[t] = a->x[t];
    int64_t n_groups = l.k / TN_MATMUL_GROUP, tail = l.k % TN_MATMUL_GROUP;
    for (int64_t r = 0; r < a->n_rows; r++) {
        const uint8_t *w = a->w + r * a->w_stride;
        __m256 acc[TN_MATMUL_ROWS_X], acc_min[TN_MATMUL_ROWS_X];
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) acc[t] = acc_min[t] = _mm256_setzero_ps();
        for (int64_t g = 0; g < n_groups; g++) {
            TN_MATMUL_PREFETCH(w + g * GROUP_SIZE, GROUP_SIZE);
            NAME(rows_group)(w + g * GROUP_SIZE, x, &l, g, n_x, acc, acc_min);
        }
        if (BLOCK_ELEMS < TN_MATMUL_GROUP && tail) {
            uint8_t padded[GROUP_SIZE] = {0};
            memcpy(padded, w + n_groups * GROUP_SIZE,
                   (size_t)(tail / BLOCK_ELEMS * (GROUP_SIZE * BLOCK_ELEMS / 256)));
            NAME(rows_group)(padded, x, &l, n_groups, n_x, acc, acc_min);
        }
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++)
            a->y[t * a->y_stride + r] = sum_8(HAS_MIN ? _mm256_add_ps(acc[t], acc_min[t]) : acc[t]);
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

// 8 rows, one group: w[r] -> bytes and scales at their places in the tile.
TN_INLINE void NAME(pack_group)(const uint8_t *const *w, uint8_t *q, float *scale, float *min)
{
    enum { N_SUB = TN_MATMUL_GROUP / SUB };
    __m256i bytes[8][8];
    float scales[8][N_SUB] TN_ALIGNED(32), mins[8][N_SUB] TN_ALIGNED(32);
    for (int r = 0; r < 8; r++) {
        __m256i u[8];
        __m256 s[N_SUB / 8], m[N_SUB / 8];
        NAME(scales)(w[r], s, m);
        for (int i = 0; i < N_SUB / 8; i++) {
            _mm256_store_ps(scales[r] + 8 * i, s[i]);
            if (HAS_MIN) _mm256_store_ps(mins[r] + 8 * i, m[i]);
        }
        NAME(bytes)(w[r], u);
        for (int z = 0; z < 8; z++) bytes[z][r] = u[z];
    }
    static const uint8_t order[16] = ORDER;
    __m256i negatives[N_SUB];
    for (int s = 0; s < N_SUB; s++) negatives[s] = _mm256_setzero_si256();
    for (int z = 0; z < 8; z++) {
        __m256 v[8], in[8];
        for (int r = 0; r < 8; r++) in[r] = _mm256_castsi256_ps(bytes[z][r]);
        transpose_8(in, v);
        for (int i = 0; i < 8; i++) { // 16-byte chunk order[z * 2 + i / 4] is natural, 4 vectors of k each
            int step = order[z * 2 + i / 4] * 4 + i % 4;
            if (SIGNED)
                pack_signed(q + step * STEP_SIZE, _mm256_castps_si256(v[i]), &negatives[step * 4 / SUB]);
            else
                _mm256_store_ps((float *)(void *)(q + step * STEP_SIZE), v[i]);
        }
    }
    for (int s = 0; s < N_SUB; s++) {
        if (SIGNED) pack_negatives(min + s * AVX2_TILE_ROWS, negatives[s]);
        for (int r = 0; r < 8; r++) {
            scale[s * AVX2_TILE_ROWS + r] = scales[r][s];
            if (HAS_MIN) min[s * AVX2_TILE_ROWS + r] = mins[r][s];
        }
    }
}

static void NAME(pack)(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    for (int half = 0; half < 2; half++) {
        for (int64_t k = 0; k < t->n_k; k += TN_MATMUL_GROUP) {
            const uint8_t *w[8];
            uint8_t padded[8][GROUP_SIZE];
            int64_t left = l->k - t->k0 - k, at = (t->k0 + k) / TN_MATMUL_GROUP * GROUP_SIZE;
            for (int r = 0; r < 8; r++) { // rows past the end repeat the last one
                w[r] = t->w + TN_MIN(half * 8 + r, t->n_rows - 1) * t->w_stride + at;
                if (BLOCK_ELEMS == TN_MATMUL_GROUP || left >= TN_MATMUL_GROUP) continue;
                memset(padded[r], 0, GROUP_SIZE);
                memcpy(padded[r], w[r], (size_t)(left / BLOCK_ELEMS * (GROUP_SIZE * BLOCK_ELEMS / 256)));
                w[r] = padded[r];
            }
            int64_t sub = k / SUB * AVX2_TILE_ROWS + half * 8;
            uint8_t *q = t->q + k / 4 * STEP_SIZE + half * (STEP_SIZE / 2);
            NAME(pack_group)(w, q, t->scale + sub, t->min + sub);
        }
    }
}

static const tn_matmul_format NAME(rows_format) = {
    .order = ORDER, .chunk = 16, .sub = SUB, .bias = USED_BIAS, .lanes = 8, .chain = CHAIN};
static const tn_matmul_format NAME(tile_format) = {
    .order = TN_MATMUL_ORDER_NATURAL, .chunk = 16, .sub = SUB, .bias = USED_BIAS};

const tn_matmul_kernel AT_LEVEL(CAT(tn_matmul, TYPE)) = {
    .rows_format = &NAME(rows_format),
    .tile_format = &NAME(tile_format),
    .rows = NAME(rows),
    .pack = NAME(pack),
    .tile = TILE,
    .tile_rows = AVX2_TILE_ROWS,
    .tile_k = SIGNED ? AVX2_SIGNED_K : AVX2_QUANT_K,
    .rows_x = 4,
    .rows_x_max = ROWS_X_MAX,
};

#undef TYPE
#undef SUB
#undef CHAIN
#undef HAS_MIN
#undef SIGNED
#undef BIAS
#undef ORDER
#undef LANES
#undef GROUP_SIZE
#undef BLOCK_ELEMS
#undef TILE
#undef ROWS_X_MAX
#undef USED_BIAS
#undef STEP_SIZE
#undef NAME
#undef CAT
#undef CAT2
