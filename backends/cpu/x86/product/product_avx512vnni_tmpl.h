// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of one quantised weight type with AVX-512 VNNI; included once per type, after defining
//   TYPE         name in lower case
//   SUB          16 or 32: elements per scale
//   HAS_MIN      1: value = scale * q + min, 0: scale * q
//   BIAS         added to q to make it unsigned
//   ORDER, SUBS  order of the weights and sub-blocks of the lanes: ORDER_* and SUBS_* in product_avx512vnni.h
//   GROUP_SIZE   bytes of 256 weights
//   BLOCK_ELEMS  elements per block of the type: below 256 rows may end within a group
//   PAIRS        1: a single row of x goes against two rows of w at a time, which share the loads of x and
//                one prefetch stream: Q4_0 went from 83.7 to 88.3 % of the read peak, Q4_K from 83.6 to
//                91.6 % (two threads, weights in memory); four rows at a time gave no more
// and functions for a group of 256 weights:
//   TYPE_unpack(w, u)        u[4]: bytes q + BIAS in that order
//   TYPE_scales(w, &min)     scale per sub-block in natural order, zeros above; min only with HAS_MIN
//   TYPE_scales_2(v, w, &min) with PAIRS: the scales of two groups, 8 each; SUB is 32
//
// rows: y = sum over groups of scale * d_x * (init + dpbusd of four vectors) + min * sum_x; init undoes BIAS
// exactly. Per group and row of x: 4 dpbusd and 3 (with min 4) float operations on two ports, 6 (7) loads.
// One core of a Xeon (Sapphire Rapids), w [512, 2048] in L2, best of 960 runs, other programs running, GB/s
// of w with 1, 2, 4, 6 and 8 rows of x; before: each vector was scaled alone, 11 to 17 operations for a row
// of x.
//   Q8_0  before 31.3 21.2 12.4  9.1  9.4   since 32.3 26.5 18.5 14.9 11.7
//   Q4_0         21.7 14.7  9.0  6.4  5.4         21.5 17.0 11.0  8.3  6.7
//   Q4_K         20.0 11.0  7.3  5.5  5.0         20.0 12.8  8.9  7.1  5.5
//   Q6_K         22.7 15.7  8.8  6.9  7.1         23.8 19.6 13.4  9.6  8.5
//
// pack: 2 x 16 rows, each vector set transposed so that 64 bytes hold 4 consecutive k of 16 rows.
#define CAT2(a, b) a##_##b
#define CAT(a, b)  CAT2(a, b)
#define NAME(what) CAT(TYPE, what)

static const uint8_t NAME(subs)[16] = SUBS;

// The lanes of one group of a row of x times u.
TN_INLINE __m512 NAME(dot)(const __m512i *u, const uint8_t *q, const uint8_t *init)
{
    __m512i dot = BIAS ? _mm512_load_si512(init) : _mm512_setzero_si512();
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) dot = _mm512_dpbusd_epi32(dot, u[z], _mm512_load_si512(q + 64 * z));
    return _mm512_cvtepi32_ps(dot);
}

TN_INLINE void NAME(rows_group)(const uint8_t *w, const uint8_t *const *x, const tn_matmul_layout *l,
                                int64_t g, int n_x, __m512 *acc, __m512 *acc_min)
{
    const size_t q_at = (size_t)g * TN_MATMUL_GROUP, lanes_at = (size_t)g * 64;
    const size_t sum_at = l->sum_off + (size_t)g * (TN_MATMUL_GROUP / SUB * 4);
    __m512i u[4];
    __m512 min = _mm512_setzero_ps(), scale = NAME(scales)(w, &min);
    scale = _mm512_permutexvar_ps(lanes_of(NAME(subs), 0), scale);
    NAME(unpack)(w, u);
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        __m512 s = _mm512_mul_ps(scale, load_lanes(x[t] + l->d_off + lanes_at));
        acc[t] = _mm512_fmadd_ps(NAME(dot)(u, x[t] + q_at, x[t] + l->init_off + lanes_at), s, acc[t]);
        if (HAS_MIN) acc_min[t] = _mm512_fmadd_ps(min, load_subs(x[t] + sum_at, SUB), acc_min[t]);
    }
}

#if PAIRS
// One group of two rows of w: their scales share vectors, and they share the loads of x. Every sum is made of
// the same operations in the same order as in rows_group.
TN_INLINE void NAME(pair_group)(const uint8_t *const *w, const uint8_t *x, const tn_matmul_layout *l,
                                int64_t g, __m512 *acc, __m512 *acc_min)
{
    const size_t q_at = (size_t)g * TN_MATMUL_GROUP, lanes_at = (size_t)g * 64;
    const size_t sum_at = l->sum_off + (size_t)g * (TN_MATMUL_GROUP / SUB * 4);
    __m512 min = _mm512_setzero_ps(), scale = NAME(scales_2)(w[0], w[1], &min);
    TN_MATMUL_UNROLL
    for (int i = 0; i < 2; i++) {
        __m512i u[4];
        NAME(unpack)(w[i], u);
        __m512 s = _mm512_permutexvar_ps(lanes_of(NAME(subs), 8 * i), scale);
        s = _mm512_mul_ps(s, load_lanes(x + l->d_off + lanes_at));
        acc[i] = _mm512_fmadd_ps(NAME(dot)(u, x + q_at, x + l->init_off + lanes_at), s, acc[i]);
    }
    if (HAS_MIN) *acc_min = _mm512_fmadd_ps(min, load_subs_twice(x + sum_at), *acc_min);
}

TN_INLINE void NAME(pair)(const uint8_t *const *w, const uint8_t *x, const tn_matmul_layout *l, float *y)
{
    int64_t n_groups = l->k / TN_MATMUL_GROUP, tail = l->k % TN_MATMUL_GROUP;
    __m512 acc[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()}, acc_min = _mm512_setzero_ps();
    for (int64_t g = 0; g < n_groups; g++) {
        const uint8_t *at[2] = {w[0] + g * GROUP_SIZE, w[1] + g * GROUP_SIZE};
        TN_MATMUL_PREFETCH(w[0] + 2 * g * GROUP_SIZE, 2 * GROUP_SIZE); // the rows are neighbours: one stream
        NAME(pair_group)(at, x, l, g, acc, &acc_min);
    }
    if (BLOCK_ELEMS < TN_MATMUL_GROUP && tail) {
        uint8_t padded[2][GROUP_SIZE] = {{0}};
        const uint8_t *const at[2] = {padded[0], padded[1]};
        for (int i = 0; i < 2; i++)
            memcpy(padded[i], w[i] + n_groups * GROUP_SIZE,
                   (size_t)(tail / BLOCK_ELEMS * (GROUP_SIZE * BLOCK_ELEMS / 256)));
        NAME(pair_group)(at, x, l, n_groups, acc, &acc_min);
    }
    if (HAS_MIN) {
        acc[0] = _mm512_add_ps(acc[0], _mm512_zextps256_ps512(_mm512_castps512_ps256(acc_min)));
        acc[1] = _mm512_add_ps(acc[1], _mm512_zextps256_ps512(_mm512_extractf32x8_ps(acc_min, 1)));
    }
    y[0] = add_lanes(acc[0]);
    y[1] = add_lanes(acc[1]);
}
#endif

// Rows in pairs; how many are done.
TN_INLINE int64_t NAME(pairs)(const tn_matmul_rows_args *a)
{
    int64_t r = 0;
#if PAIRS
    const tn_matmul_layout l = *a->layout;
    for (; r + 2 <= a->n_rows; r += 2) {
        const uint8_t *const w[2] = {a->w + r * a->w_stride, a->w + (r + 1) * a->w_stride};
        NAME(pair)(w, a->x[0], &l, a->y + r);
    }
#else
    TN_UNUSED(a);
#endif
    return r;
}

// One row of w against n_x rows of x: the lanes of the sums.
TN_INLINE void NAME(row)(const uint8_t *w, const uint8_t *const *x, const tn_matmul_layout *l, int n_x,
                         __m512 *acc)
{
    int64_t n_groups = l->k / TN_MATMUL_GROUP, tail = l->k % TN_MATMUL_GROUP;
    __m512 acc_min[TN_MATMUL_ROWS_X];
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) acc[t] = acc_min[t] = _mm512_setzero_ps();
    for (int64_t g = 0; g < n_groups; g++) {
        TN_MATMUL_PREFETCH(w + g * GROUP_SIZE, GROUP_SIZE);
        NAME(rows_group)(w + g * GROUP_SIZE, x, l, g, n_x, acc, acc_min);
    }
    if (BLOCK_ELEMS < TN_MATMUL_GROUP && tail) {
        uint8_t padded[GROUP_SIZE] = {0};
        memcpy(padded, w + n_groups * GROUP_SIZE,
               (size_t)(tail / BLOCK_ELEMS * (GROUP_SIZE * BLOCK_ELEMS / 256)));
        NAME(rows_group)(padded, x, l, n_groups, n_x, acc, acc_min);
    }
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++)
        if (HAS_MIN) acc[t] = _mm512_add_ps(acc[t], acc_min[t]);
}

TN_INLINE void NAME(rows_n)(const tn_matmul_rows_args *a, int n_x)
{
    const uint8_t *x[TN_MATMUL_ROWS_X];
    const tn_matmul_layout l = *a->layout;
    for (int t = 0; t < n_x; t++) x[t] = a->x[t];
    int64_t r = n_x == 1 ? NAME(pairs)(a) : 0;
    // With short rows adding up the lanes is a third of the work: sums of four rows of w go together.
    for (; n_x > 1 && r + 4 <= a->n_rows; r += 4) {
        __m512 sums[TN_MATMUL_ROWS_X][4], acc[TN_MATMUL_ROWS_X];
        for (int i = 0; i < 4; i++) {
            NAME(row)(a->w + (r + i) * a->w_stride, x, &l, n_x, acc);
            TN_MATMUL_UNROLL
            for (int t = 0; t < n_x; t++) sums[t][i] = acc[t];
        }
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) _mm_storeu_ps(a->y + t * a->y_stride + r, add_lanes_4(sums[t]));
    }
    for (; r < a->n_rows; r++) {
        __m512 acc[TN_MATMUL_ROWS_X];
        NAME(row)(a->w + r * a->w_stride, x, &l, n_x, acc);
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) a->y[t * a->y_stride + r] = add_lanes(acc[t]);
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
    else if (a->n_x == 4)
        NAME(rows_n)(a, 4);
    else if (a->n_x == 5)
        NAME(rows_n)(a, 5);
    else if (a->n_x == 6)
        NAME(rows_n)(a, 6);
    else if (a->n_x == 7)
        NAME(rows_n)(a, 7);
    else
        NAME(rows_n)(a, 8);
}

// 16 rows, one group: w[r] -> bytes and scales at their places in the tile.
TN_INLINE void NAME(pack_group)(const uint8_t *const *w, uint8_t *q, float *scale, float *min)
{
    uint8_t bytes[4][16][64] TN_ALIGNED(64);
    float scales[16][16] TN_ALIGNED(64), mins[16][16] TN_ALIGNED(64);
    for (int r = 0; r < 16; r++) {
        __m512i u[4];
        __m512 m = _mm512_setzero_ps();
        _mm512_store_ps(scales[r], NAME(scales)(w[r], &m));
        if (HAS_MIN) _mm512_store_ps(mins[r], m);
        NAME(unpack)(w[r], u);
        for (int z = 0; z < 4; z++) _mm512_store_si512(bytes[z][r], u[z]);
    }
    static const uint8_t order[64] = ORDER;
    for (int z = 0; z < 4; z++) {
        __m512i v[16];
        transpose_16(bytes[z][0], v);
        TN_MATMUL_UNROLL
        for (int i = 0; i < 16; i++) _mm512_store_si512(q + order[z * 16 + i] * TILE_STEP, v[i]);
    }
    pack_subs(scales[0], scale, TN_MATMUL_GROUP / SUB);
    if (HAS_MIN) pack_subs(mins[0], min, TN_MATMUL_GROUP / SUB);
}

static void NAME(pack)(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    for (int half = 0; half < 2; half++) {
        for (int64_t k = 0; k < t->n_k; k += TN_MATMUL_GROUP) {
            const uint8_t *w[16];
            uint8_t padded[16][GROUP_SIZE];
            int64_t left = l->k - t->k0 - k, at = (t->k0 + k) / TN_MATMUL_GROUP * GROUP_SIZE;
            for (int r = 0; r < 16; r++) { // rows past the end repeat the last one
                w[r] = t->w + TN_MIN(half * 16 + r, t->n_rows - 1) * t->w_stride + at;
                if (BLOCK_ELEMS == TN_MATMUL_GROUP || left >= TN_MATMUL_GROUP) continue;
                memset(padded[r], 0, GROUP_SIZE);
                memcpy(padded[r], w[r], (size_t)(left / BLOCK_ELEMS * (GROUP_SIZE * BLOCK_ELEMS / 256)));
                w[r] = padded[r];
            }
            int64_t sub = k / SUB * TN_MATMUL_TILE_ROWS + half * 16;
            NAME(pack_group)(w, t->q + k / 4 * TILE_STEP + half * 64, t->scale + sub, t->min + sub);
        }
    }
}

static const tn_matmul_format NAME(rows_format) = {
    .order = ORDER, .chunk = 4, .sub = SUB, .bias = BIAS, .lanes = 16, .chain = 4, .subs = NAME(subs)};

static const tn_matmul_format NAME(tile_format) = {
    .order = TN_MATMUL_ORDER_NATURAL, .chunk = 16, .sub = SUB, .bias = BIAS};

const tn_matmul_kernel CAT(tn_matmul, NAME(avx512vnni)) = {
    .rows_format = &NAME(rows_format),
    .tile_format = &NAME(tile_format),
    .rows = NAME(rows),
    .pack = NAME(pack),
    .tile = SUB == 16 ? (HAS_MIN ? tn_matmul_tile_16_min_avx512vnni : tn_matmul_tile_16_avx512vnni)
                      : (HAS_MIN ? tn_matmul_tile_32_min_avx512vnni : tn_matmul_tile_32_avx512vnni),
    .has_min = HAS_MIN,
    .tile_rows = TN_MATMUL_TILE_ROWS,
    .tile_k = TN_MATMUL_TILE_SIZE / TN_MATMUL_TILE_ROWS,
    .rows_x = TN_MATMUL_ROWS_X,
    .rows_x_max = TN_MATMUL_ROWS_X,
};

#undef TYPE
#undef SUB
#undef HAS_MIN
#undef BIAS
#undef ORDER
#undef SUBS
#undef GROUP_SIZE
#undef BLOCK_ELEMS
#undef PAIRS
#undef NAME
#undef CAT
#undef CAT2
