// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of one quantised weight type at one level; types.h includes this once per type, after defining
//   TYPE         name in lower case
//   SUB          16 or 32: elements per scale
//   MOST         the largest magnitude of a byte
//   BIAS, HAS_MIN
//                value = scale * (byte - BIAS), + min with HAS_MIN
//   GROUP_SIZE   bytes of 256 weights
//   BLOCK_ELEMS  elements per block of the type: below 256 rows may end within a group
// and each level before that
//   ROWS_X       2 or 4: rows of x of a call of the rows kernels
//   QUANT_K      elements along k of a tile
//   sums_4(u, x, sub, most)       sums over four sub-blocks of products of bytes, one per lane
//   place_group(rows, q, k, n_k)  16 rows of 256 bytes to their places in a tile
//   TILE_FN(sub, most, has_min)   the tile product
//
// rows: per row of w and row of x one accumulator, whose lane i adds the sub-blocks i, i + 4 and so on; so
// only one multiply-add follows each four sub-blocks, and x and the scales are read in natural order. A bias
// of sub-blocks of 32 is subtracted as a minimum: one multiply-add with the sums of x per four sub-blocks,
// instead of one subtraction per 16 bytes. Of sub-blocks of 16 the subtraction is cheaper.
#define CAT2(a, b) a##_##b
#define CAT(a, b)  CAT2(a, b)
#define NAME(what) CAT(TYPE, what)

enum {
    NAME(bias_is_min) = BIAS != 0 && SUB == 32,
    NAME(n_sub) = TN_MATMUL_GROUP / SUB,
    NAME(tile_most) = BIAS ? TN_MAX(BIAS, MOST - BIAS) : MOST,
    NAME(rows_most) = SUB == 16 ? NAME(tile_most) : MOST,
};

// u[8] less the bias
TN_INLINE void NAME(centre)(int8x16_t *u)
{
    TN_UNROLL
    for (int z = 0; z < 8; z++) u[z] = vsubq_s8(u[z], vdupq_n_s8(BIAS));
}

TN_INLINE void NAME(rows_group)(const uint8_t *w, const uint8_t *const *x, const tn_matmul_layout *l,
                                int64_t g, int n_x, float32x4_t *acc)
{
    enum { PARTS = NAME(n_sub) / 4 }; // of four sub-blocks
    float32x4_t scale[PARTS], min[PARTS];
    NAME(scales)(w, scale, min);
    TN_UNROLL
    for (int h = 0; h < 2; h++) {
        int8x16_t u[8];
        NAME(unpack)(w, h, u);
        if (BIAS && SUB == 16) NAME(centre)(u);
        TN_UNROLL
        for (int t = 0; t < n_x; t++) {
            const int8_t *q = (const int8_t *)x[t] + g * TN_MATMUL_GROUP + h * 128;
            TN_UNROLL
            for (int i = 0; i < PARTS / 2; i++) {
                int p = h * PARTS / 2 + i;
                size_t at = (size_t)(g * NAME(n_sub) + 4 * p) * sizeof(float);
                int32x4_t dots = sums_4(u + i * SUB / 4, q + i * SUB * 4, SUB, NAME(rows_most));
                float32x4_t s = vmulq_f32(scale[p], load_subs(x[t], l->d_off + at));
                acc[t] = vfmaq_f32(acc[t], vcvtq_f32_s32(dots), s);
                if (!HAS_MIN && !NAME(bias_is_min)) continue;
                float32x4_t m = HAS_MIN ? min[p] : vmulq_n_f32(scale[p], -(float)BIAS);
                acc[t] = vfmaq_f32(acc[t], m, load_subs(x[t], l->sum_off + at));
            }
        }
    }
}

TN_INLINE void NAME(rows_n)(const tn_matmul_rows_args *a, int n_x)
{
    const uint8_t *x[ARM_PASS_X];
    const tn_matmul_layout l = *a->layout;
    for (int t = 0; t < n_x; t++) x[t] = a->x[t];
    int64_t n_groups = l.k / TN_MATMUL_GROUP, tail = l.k % TN_MATMUL_GROUP;
    for (int64_t r = 0; r < a->n_rows; r++) {
        const uint8_t *w = a->w + r * a->w_stride;
        float32x4_t acc[ARM_PASS_X];
        TN_UNROLL
        for (int t = 0; t < n_x; t++) acc[t] = vdupq_n_f32(0.0f);
        for (int64_t g = 0; g < n_groups; g++) {
            ARM_FETCH(w + g * GROUP_SIZE, GROUP_SIZE);
            NAME(rows_group)(w + g * GROUP_SIZE, x, &l, g, n_x, acc);
        }
        if (BLOCK_ELEMS < TN_MATMUL_GROUP && tail) {
            uint8_t padded[GROUP_SIZE] = {0};
            memcpy(padded, w + n_groups * GROUP_SIZE,
                   (size_t)(tail / BLOCK_ELEMS * (GROUP_SIZE * BLOCK_ELEMS / 256)));
            NAME(rows_group)(padded, x, &l, n_groups, n_x, acc);
        }
        TN_UNROLL
        for (int t = 0; t < n_x; t++) a->y[t * a->y_stride + r] = vaddvq_f32(acc[t]);
    }
}

static void NAME(rows)(const tn_matmul_rows_args *a)
{
    if (a->n_x == 1)
        NAME(rows_n)(a, 1);
    else if (a->n_x == 2)
        NAME(rows_n)(a, 2);
    else if (ROWS_X == 4 && a->n_x == 3)
        NAME(rows_n)(a, 3);
    else if (ROWS_X == 4)
        NAME(rows_n)(a, 4);
}

// A row of one group: bytes less the bias, scales and minima in natural order.
TN_INLINE void NAME(unpack_row)(const uint8_t *w, int8_t *q, float *scale, float *min)
{
    float32x4_t s[NAME(n_sub) / 4], m[NAME(n_sub) / 4];
    NAME(scales)(w, s, m);
    TN_UNROLL
    for (int i = 0; i < NAME(n_sub) / 4; i++) {
        vst1q_f32(scale + 4 * i, s[i]);
        if (HAS_MIN) vst1q_f32(min + 4 * i, m[i]);
    }
    TN_UNROLL
    for (int h = 0; h < 2; h++) {
        int8x16_t u[8];
        NAME(unpack)(w, h, u);
        if (BIAS) NAME(centre)(u);
        TN_UNROLL
        for (int z = 0; z < 8; z++) vst1q_s8(q + h * 128 + z * 16, u[z]);
    }
}

// All rows, elements [k, k + 256) of the tile; left: elements of the row from there on.
static void NAME(pack_group)(const tn_matmul_tile *t, int64_t k, int64_t left)
{
    int8_t q[ARM_TILE_ROWS][TN_MATMUL_GROUP] TN_ALIGNED(16);
    float scale[ARM_TILE_ROWS][16] TN_ALIGNED(16), min[ARM_TILE_ROWS][16] TN_ALIGNED(16);
    for (int64_t r = 0; r < ARM_TILE_ROWS; r++) { // rows past the end repeat the last one
        const uint8_t *w =
            t->w + TN_MIN(r, t->n_rows - 1) * t->w_stride + (t->k0 + k) / TN_MATMUL_GROUP * GROUP_SIZE;
        uint8_t padded[GROUP_SIZE];
        if (BLOCK_ELEMS < TN_MATMUL_GROUP && left < TN_MATMUL_GROUP) {
            memset(padded, 0, GROUP_SIZE);
            memcpy(padded, w, (size_t)(left / BLOCK_ELEMS * (GROUP_SIZE * BLOCK_ELEMS / 256)));
            w = padded;
        }
        NAME(unpack_row)(w, q[r], scale[r], min[r]);
    }
    place_group(q, t->q, k, t->n_k);
    int64_t at = k / SUB * ARM_TILE_ROWS;
    place_subs(scale, NAME(n_sub), t->scale + at);
    if (HAS_MIN) place_subs(min, NAME(n_sub), t->min + at);
}

static void NAME(pack)(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    for (int64_t k = 0; k < t->n_k; k += TN_MATMUL_GROUP) NAME(pack_group)(t, k, l->k - t->k0 - k);
}

static const tn_matmul_kernel NAME(kernel) = {
    .rows_format = SUB == 16 ? &arm_format_16 : &arm_format_32,
    .tile_format = SUB == 16 ? &arm_format_16 : &arm_format_32,
    .rows = NAME(rows),
    .pack = NAME(pack),
    .tile = TILE_FN(SUB, NAME(tile_most), HAS_MIN),
    .tile_rows = ARM_TILE_ROWS,
    .tile_k = QUANT_K,
    .rows_x = ROWS_X,
    .rows_x_max = TN_MATMUL_ROWS_ALIKE,
};

#undef TYPE
#undef SUB
#undef MOST
#undef BIAS
#undef HAS_MIN
#undef GROUP_SIZE
#undef BLOCK_ELEMS
#undef NAME
#undef CAT
#undef CAT2
