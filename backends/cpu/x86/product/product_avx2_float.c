// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2: matrix products in f32 for weights F32, F16, BF16, and tiles of every type without kernels of its
// own. y[t, r] = sum over k of w[r, k] * x[t, k], all products exact FMA.
//
// rows: 4 accumulators of 8 along k per row of w and row of x. Bytes moved: w once; bound by memory.
// tile: f32 [n_k][16 rows], 32 KiB; one pass multiplies 6 rows of x with 16 rows: 12 accumulators, x
// broadcast
//       from L1. Bound by the two FMA ports. Numbers: backends/cpu/README.md.
#include "backends/cpu/x86/product/product_avx2.h"
#include "ops/quant.h"

enum {
    PASS_X = 6,                                        // rows of x per pass
    TILE_K = TN_MATMUL_TILE_SIZE / AVX2_TILE_ROWS / 4, // 512
    ANY_K = TN_MATMUL_GROUP,                           // multiple of every block
};

TN_INLINE __m256 load_f32(const uint8_t *w, int64_t k)
{
    return _mm256_loadu_ps((const float *)(const void *)w + k);
}

TN_INLINE __m256 load_f16(const uint8_t *w, int64_t k)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)(w + 2 * k)));
}

TN_INLINE __m256 load_bf16(const uint8_t *w, int64_t k)
{
    __m128i h = _mm_loadu_si128((const void *)(w + 2 * k));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

// 8 rows of 8 at in[r] -> columns at q, one tile row apart.
TN_INLINE void store_columns(const __m256 *in, float *q)
{
    __m256 out[8];
    transpose_8(in, out);
    TN_MATMUL_UNROLL
    for (int i = 0; i < 8; i++) _mm256_store_ps(q + i * AVX2_TILE_ROWS, out[i]);
}

#define TYPE f32
#define SIZE 4
#include "backends/cpu/x86/product/product_avx2_float_tmpl.h"
#define TYPE f16
#define SIZE 2
#include "backends/cpu/x86/product/product_avx2_float_tmpl.h"
#define TYPE bf16
#define SIZE 2
#include "backends/cpu/x86/product/product_avx2_float_tmpl.h"

// Through tn_quant_info, 8 rows and 256 elements at a time.
static void any_pack(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    tn_dequant_fn to_f32 = tn_quant_info_get(t->type)->to_f32;
    for (int half = 0; half < 2; half++) {
        for (int64_t k0 = 0; k0 < t->n_k; k0 += ANY_K) {
            float rows[8][ANY_K] TN_ALIGNED(32);
            int64_t n = TN_MIN(l->k - t->k0 - k0, ANY_K), n_pad = TN_MIN(t->n_k - k0, ANY_K);
            for (int64_t r = 0; r < 8; r++) { // rows past the end repeat the last one
                const uint8_t *w = t->w + TN_MIN(half * 8 + r, t->n_rows - 1) * t->w_stride;
                to_f32(w + tn_dtype_row_size(t->type, t->k0 + k0), rows[r], n);
                for (int64_t i = n; i < n_pad; i++) rows[r][i] = 0.0f;
            }
            for (int64_t k = 0; k < n_pad; k += 8) {
                __m256 in[8];
                for (int r = 0; r < 8; r++) in[r] = _mm256_load_ps(rows[r] + k);
                store_columns(in, (float *)(void *)t->q + (k0 + k) * AVX2_TILE_ROWS + half * 8);
            }
        }
    }
}

TN_INLINE void tile_pass(const float *q, int64_t n_k, const float *const *x, float *acc, bool first, int n_x)
{
    __m256 sum[2][PASS_X];
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        sum[0][t] = first ? _mm256_setzero_ps() : _mm256_load_ps(acc + t * AVX2_TILE_ROWS);
        sum[1][t] = first ? _mm256_setzero_ps() : _mm256_load_ps(acc + t * AVX2_TILE_ROWS + 8);
    }
    for (int64_t k = 0; k < n_k; k++) {
        __m256 a = _mm256_load_ps(q + k * AVX2_TILE_ROWS), b = _mm256_load_ps(q + k * AVX2_TILE_ROWS + 8);
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            __m256 v = _mm256_broadcast_ss(x[t] + k);
            sum[0][t] = _mm256_fmadd_ps(a, v, sum[0][t]);
            sum[1][t] = _mm256_fmadd_ps(b, v, sum[1][t]);
        }
    }
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        _mm256_store_ps(acc + t * AVX2_TILE_ROWS, sum[0][t]);
        _mm256_store_ps(acc + t * AVX2_TILE_ROWS + 8, sum[1][t]);
    }
}

static void tile(const tn_matmul_tile_args *a)
{
    const tn_matmul_tile *t = a->tile;
    const float *q = (const float *)(const void *)t->q;
    int64_t n = 0;
    for (int64_t i = 0; i < a->n_x; i += n) {
        const float *x[PASS_X];
        int64_t left = a->n_x - i;
        // Fewer rows wait for their sums, so 8 are twice 4 and not 6 and 2.
        n = left >= PASS_X && left != 8 ? PASS_X : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        for (int64_t j = 0; j < n; j++) x[j] = (const float *)(const void *)a->x[i + j] + t->k0;
        float *acc = a->acc + i * AVX2_TILE_ROWS;
        if (n == PASS_X)
            tile_pass(q, t->n_k, x, acc, a->first, PASS_X);
        else if (n == 4)
            tile_pass(q, t->n_k, x, acc, a->first, 4);
        else if (n == 2)
            tile_pass(q, t->n_k, x, acc, a->first, 2);
        else
            tile_pass(q, t->n_k, x, acc, a->first, 1);
    }
}

#define KERNEL(rows_fn, pack_fn)                                                                             \
    {                                                                                                        \
        .rows = rows_fn, .pack = pack_fn, .tile = tile, .tile_rows = AVX2_TILE_ROWS, .tile_k = TILE_K,       \
        .rows_x = 4, .rows_x_max = 8                                                                         \
    }
const tn_matmul_kernel tn_matmul_f32_avx2 = KERNEL(f32_rows, f32_pack);
const tn_matmul_kernel tn_matmul_f16_avx2 = KERNEL(f16_rows, f16_pack);
const tn_matmul_kernel tn_matmul_bf16_avx2 = KERNEL(bf16_rows, bf16_pack);
const tn_matmul_kernel tn_matmul_any_avx2 = KERNEL(NULL, any_pack);
