// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products in portable C: the kernels that every processor can run.
//
// Quantised types: a tile of 4 rows of w is unpacked to int8 [rows][k] with a scale and a minimum per 16
// elements, y += d_x * scale * (q_w . q_x) + min * d_x * sum(q_x); integer products of fixed length, which
// compilers turn into vector code. Other types: the tile becomes f32 [rows][k] through tn_quant_info and is
// multiplied in f32 with 16 partial sums. Bytes moved: w once, x once per 4 rows (it stays in cache);
// operations: 2 m n k. Bound by arithmetic.
#include "backends/cpu/c/vec_generic.h"
// after the vectors
#include "backends/cpu/product_tmpl.h"
#include "backends/cpu/c/convert_tmpl.h"
#include "ops/quant.h"

enum {
    ROWS = 16,      // of a tile
    QUANT_K = 1024, // 16 sub-blocks of 16 in each group of 256: 4 groups fill the scales of a tile
    FLOAT_K = 512,  // ROWS * FLOAT_K floats fill a tile
};

// One group of 256 weights: values, and per 16 elements value = q * scale + min.
typedef struct unpacked {
    int8_t q[TN_MATMUL_GROUP];
    float scale[16], min[16];
} unpacked;

typedef void (*unpack_fn)(const uint8_t *b, unpacked *u);

static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t fp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void set_block(unpacked *u, int b, float scale, float min)
{
    u->scale[2 * b] = u->scale[2 * b + 1] = scale;
    u->min[2 * b] = u->min[2 * b + 1] = min;
}

// Nibbles of 32 elements: byte j holds element j below and j + 16 above.
static void nibbles(const uint8_t *p, int8_t *q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t)(p[i] & 15);
        q[i + 16] = (int8_t)(p[i] >> 4);
    }
}

static void fifth_bits(uint32_t h, int8_t *q)
{
    for (int i = 0; i < 32; i++) q[i] = (int8_t)(q[i] + ((h >> i & 1) << 4));
}

static void map_values(const int8_t *values, int8_t *q, int n)
{
    for (int i = 0; i < n; i++) q[i] = values[q[i]];
}

static void add_all(int8_t *q, int value)
{
    for (int i = 0; i < TN_MATMUL_GROUP; i++) q[i] = (int8_t)(q[i] + value);
}

static void unpack_q4_0(const uint8_t *b, unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 18) {
        set_block(u, i, tn_load_f16(b), 0.0f);
        nibbles(b + 2, u->q + 32 * i);
    }
    add_all(u->q, -8);
}

static void unpack_q4_1(const uint8_t *b, unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 20) {
        set_block(u, i, tn_load_f16(b), tn_load_f16(b + 2));
        nibbles(b + 4, u->q + 32 * i);
    }
}

static void unpack_q5_0(const uint8_t *b, unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 22) {
        set_block(u, i, tn_load_f16(b), 0.0f);
        nibbles(b + 6, u->q + 32 * i);
        fifth_bits(tn_load_u32(b + 2), u->q + 32 * i);
    }
    add_all(u->q, -16);
}

static void unpack_q5_1(const uint8_t *b, unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 24) {
        set_block(u, i, tn_load_f16(b), tn_load_f16(b + 2));
        nibbles(b + 8, u->q + 32 * i);
        fifth_bits(tn_load_u32(b + 4), u->q + 32 * i);
    }
}

static void unpack_q8_0(const uint8_t *b, unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 34) {
        set_block(u, i, tn_load_f16(b), 0.0f);
        memcpy(u->q + 32 * i, b + 2, 32);
    }
}

static void unpack_iq4_nl(const uint8_t *b, unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 18) {
        set_block(u, i, tn_load_f16(b), 0.0f);
        nibbles(b + 2, u->q + 32 * i);
    }
    map_values(iq4_values, u->q, TN_MATMUL_GROUP);
}

static void unpack_mxfp4(const uint8_t *b, unpacked *u)
{
    for (int i = 0; i < 8; i++, b += 17) {
        uint32_t e = b[0]; // 2^(e - 128); below 2^-126 as a subnormal
        set_block(u, i, tn_f32_from_bits(e >= 2 ? (e - 1) << 23 : 0x200000u << e), 0.0f);
        nibbles(b + 1, u->q + 32 * i);
    }
    map_values(fp4_values, u->q, TN_MATMUL_GROUP);
}

static void unpack_q2_k(const uint8_t *b, unpacked *u)
{
    float d = tn_load_f16(b + 80), dmin = tn_load_f16(b + 82);
    for (int i = 0; i < 256; i++) u->q[i] = (int8_t)(b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
    for (int i = 0; i < 16; i++) {
        u->scale[i] = d * (float)(b[i] & 15);
        u->min[i] = -dmin * (float)(b[i] >> 4);
    }
}

static void unpack_q3_k(const uint8_t *b, unpacked *u)
{
    float d = tn_load_f16(b + 108);
    const uint8_t *k = b + 96;
    for (int i = 0; i < 256; i++) {
        int low = b[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        u->q[i] = (int8_t)(low + (b[i % 32] >> (i / 32) & 1) * 4 - 4);
    }
    for (int i = 0; i < 16; i++) {
        int low = i < 8 ? k[i] & 15 : k[i - 8] >> 4;
        u->scale[i] = d * (float)(low + (k[8 + i % 4] >> (2 * (i / 4)) & 3) * 16 - 32);
        u->min[i] = 0.0f;
    }
}

// Scales and minima of Q4_K and Q5_K: d, dmin, then eight 6-bit pairs in 12 bytes.
static void scales_k(const uint8_t *b, unpacked *u)
{
    float d = tn_load_f16(b), dmin = tn_load_f16(b + 2);
    const uint8_t *k = b + 4;
    for (int g = 0; g < 8; g++) {
        int scale = g < 4 ? k[g] & 63 : (k[g + 4] & 15) + (k[g - 4] >> 6) * 16;
        int min = g < 4 ? k[g + 4] & 63 : (k[g + 4] >> 4) + (k[g] >> 6) * 16;
        set_block(u, g, d * (float)scale, -dmin * (float)min);
    }
}

static void unpack_q4_k(const uint8_t *b, unpacked *u)
{
    scales_k(b, u);
    for (int i = 0; i < 256; i++) u->q[i] = (int8_t)(b[16 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15);
}

static void unpack_q5_k(const uint8_t *b, unpacked *u)
{
    scales_k(b, u);
    for (int i = 0; i < 256; i++) {
        int low = b[48 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
        u->q[i] = (int8_t)(low + (b[16 + i % 32] >> (i / 32) & 1) * 16);
    }
}

static void unpack_q6_k(const uint8_t *b, unpacked *u)
{
    float d = tn_load_f16(b + 208);
    for (int i = 0; i < 256; i++) {
        int low = b[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        int high = b[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        u->q[i] = (int8_t)(low + high * 16 - 32);
    }
    for (int i = 0; i < 16; i++) {
        u->scale[i] = d * (float)(int8_t)b[192 + i];
        u->min[i] = 0.0f;
    }
}

static void unpack_iq4_xs(const uint8_t *b, unpacked *u)
{
    float d = tn_load_f16(b);
    uint32_t high = tn_load_u16(b + 2);
    for (int g = 0; g < 8; g++) {
        int s = (b[4 + g / 2] >> (g % 2 * 4) & 15) + (int)(high >> (2 * g) & 3) * 16 - 32;
        set_block(u, g, d * (float)s, 0.0f);
        nibbles(b + 8 + 16 * g, u->q + 32 * g);
    }
    map_values(iq4_values, u->q, TN_MATMUL_GROUP);
}

static const unpack_fn unpackers[TN_TYPE_COUNT] = {
    [TN_TYPE_Q4_0] = unpack_q4_0,   [TN_TYPE_Q4_1] = unpack_q4_1,     [TN_TYPE_Q5_0] = unpack_q5_0,
    [TN_TYPE_Q5_1] = unpack_q5_1,   [TN_TYPE_Q8_0] = unpack_q8_0,     [TN_TYPE_Q2_K] = unpack_q2_k,
    [TN_TYPE_Q3_K] = unpack_q3_k,   [TN_TYPE_Q4_K] = unpack_q4_k,     [TN_TYPE_Q5_K] = unpack_q5_k,
    [TN_TYPE_Q6_K] = unpack_q6_k,   [TN_TYPE_IQ4_NL] = unpack_iq4_nl, [TN_TYPE_IQ4_XS] = unpack_iq4_xs,
    [TN_TYPE_MXFP4] = unpack_mxfp4,
};

// Tile: q int8 [ROWS][n_k], scale and min [ROWS][n_k / 16].
static void pack_quant(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    int64_t n_sub = t->n_k / 16, block = tn_dtype_block_elems(t->type);
    size_t group_size = tn_dtype_row_size(t->type, TN_MATMUL_GROUP);
    for (int64_t r = 0; r < t->n_rows; r++) {
        const uint8_t *w = t->w + r * t->w_stride + tn_dtype_row_size(t->type, t->k0);
        for (int64_t k = 0; k < t->n_k; k += TN_MATMUL_GROUP, w += group_size) {
            uint8_t tail[TN_MATMUL_GROUP * 2] = {0}; // a group that ends early goes through a padded copy
            int64_t left = l->k - t->k0 - k;
            if (left < TN_MATMUL_GROUP) memcpy(tail, w, tn_dtype_row_size(t->type, left / block * block));
            unpacked u;
            unpackers[t->type](left < TN_MATMUL_GROUP ? tail : w, &u);
            memcpy(t->q + r * t->n_k + k, u.q, sizeof u.q);
            memcpy(t->scale + r * n_sub + k / 16, u.scale, sizeof u.scale);
            memcpy(t->min + r * n_sub + k / 16, u.min, sizeof u.min);
        }
    }
}

static int32_t dot_16(const int8_t *a, const int8_t *b)
{
    int32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += a[i] * b[i];
    return sum;
}

static void tile_quant(const tn_matmul_tile_args *a)
{
    const tn_matmul_tile *t = a->tile;
    int64_t n_sub = t->n_k / 16, s0 = t->k0 / 16;
    for (int64_t i = 0; i < a->n_x; i++) {
        const uint8_t *rec = a->x[i];
        const int8_t *x = (const int8_t *)rec + t->k0;
        const float *d = (const float *)(const void *)(rec + a->layout->d_off) + s0;
        const float *sum = (const float *)(const void *)(rec + a->layout->sum_off) + s0;
        for (int64_t r = 0; r < t->n_rows; r++) {
            const int8_t *q = (const int8_t *)t->q + r * t->n_k;
            const float *scale = t->scale + r * n_sub, *min = t->min + r * n_sub;
            float y = a->first ? 0.0f : a->acc[i * ROWS + r];
            for (int64_t s = 0; s < n_sub; s++)
                y += scale[s] * (float)dot_16(q + 16 * s, x + 16 * s) * d[s] + min[s] * sum[s];
            a->acc[i * ROWS + r] = y;
        }
        for (int64_t r = t->n_rows; r < ROWS; r++) a->acc[i * ROWS + r] = 0.0f;
    }
}

// Tile: f32 [ROWS][n_k].
static void pack_float(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    tn_dequant_fn to_f32 = tn_quant_info_get(t->type)->to_f32;
    int64_t n = TN_MIN(l->k - t->k0, t->n_k);
    size_t off = tn_dtype_row_size(t->type, t->k0);
    for (int64_t r = 0; r < t->n_rows; r++) {
        float *q = (float *)(void *)t->q + r * t->n_k;
        to_f32(t->w + r * t->w_stride + off, q, n);
        for (int64_t i = n; i < t->n_k; i++) q[i] = 0.0f;
    }
}

static float dot_f32(const float *a, const float *b, int64_t n)
{
    float part[16] = {0}, sum = 0.0f;
    for (int64_t k = 0; k < n; k += 16)
        for (int i = 0; i < 16; i++) part[i] += a[k + i] * b[k + i];
    for (int i = 0; i < 16; i++) sum += part[i];
    return sum;
}

static void tile_float(const tn_matmul_tile_args *a)
{
    const tn_matmul_tile *t = a->tile;
    for (int64_t i = 0; i < a->n_x; i++) {
        const float *x = (const float *)(const void *)a->x[i] + t->k0;
        for (int64_t r = 0; r < ROWS; r++) {
            float y = a->first || r >= t->n_rows ? 0.0f : a->acc[i * ROWS + r];
            if (r < t->n_rows) y += dot_f32((const float *)(const void *)t->q + r * t->n_k, x, t->n_k);
            a->acc[i * ROWS + r] = y;
        }
    }
}

static const tn_matmul_format natural = {.order = TN_MATMUL_ORDER_NATURAL, .chunk = 16, .sub = 16};
static const tn_matmul_kernel quant = {
    .tile_format = &natural, .pack = pack_quant, .tile = tile_quant, .tile_rows = ROWS, .tile_k = QUANT_K};
static const tn_matmul_kernel any = {
    .pack = pack_float, .tile = tile_float, .tile_rows = ROWS, .tile_k = FLOAT_K};

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
    [TN_TYPE_Q4_0] = &quant,  [TN_TYPE_Q4_1] = &quant, [TN_TYPE_Q5_0] = &quant,   [TN_TYPE_Q5_1] = &quant,
    [TN_TYPE_Q8_0] = &quant,  [TN_TYPE_Q2_K] = &quant, [TN_TYPE_Q3_K] = &quant,   [TN_TYPE_Q4_K] = &quant,
    [TN_TYPE_Q5_K] = &quant,  [TN_TYPE_Q6_K] = &quant, [TN_TYPE_IQ4_NL] = &quant, [TN_TYPE_IQ4_XS] = &quant,
    [TN_TYPE_MXFP4] = &quant,
};

const tn_matmul_isa tn_matmul_isa_generic = {.kernels = kernels,
                                             .any = &any,
                                             .quantise = quantise_record,
                                             .act = act_values,
                                             .glu = glu_values,
                                             .decoder = to_f32_get};

void tn_matmul_quantise_row(const float *x, float *y, int64_t k)
{
    for (int64_t b = 0; b + BLOCK <= k; b += BLOCK) {
        int8_t q[BLOCK];
        int32_t sums[2];
        float d = round_block(x + b, q, sums);
        for (int i = 0; i < BLOCK; i++) y[b + i] = d * (float)q[i];
    }
}
