// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512: matrix products in f32 for weights F32, F16, BF16, and tiles of every type without kernels of
// its own. y[t, r] = sum over k of w[r, k] * x[t, k], all products exact FMA.
//
// rows: 4 accumulators of 16 along k per row of w and row of x; tails of k by masks. Bytes moved: w once;
//       bound by memory.
// tile: f32 [n_k][32 rows], 32 KiB; one pass multiplies 12 rows of x with 32 rows: 24 accumulators, x
// broadcast
//       from L1. Bound by the two FMA ports. bf16 dot products (vdpbf16ps) are not used: measured on Sapphire
//       Rapids they do 86 Gop/s per core where FMA does 175. Numbers: backends/cpu/README.md.
#include "backends/cpu/product.h"
#include "backends/cpu/x86/vec_avx512.h"
#include "backends/cpu/x86/product/product_loops.h"
#include "ops/quant.h"

#include <immintrin.h>

enum { BLOCK = 32, CHUNK = 16 }; // elements of a block, of a chunk

// round_block of product_tmpl.h.
#define TN_MATMUL_ROUND_BLOCK
static inline float round_block(const float *x, int8_t *q, int32_t *sums)
{
    const __m512 sign = _mm512_set1_ps(-0.0f);
    __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
    __m512i bits = _mm512_max_epu32(_mm512_castps_si512(_mm512_andnot_ps(sign, a)),
                                    _mm512_castps_si512(_mm512_andnot_ps(sign, b)));
    uint32_t top = _mm512_reduce_max_epu32(bits); // the order of magnitudes is that of their bits
    __m512i va = _mm512_setzero_si512(), vb = va;
    float amax = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)top))), d = 0.0f;
    if (top >= 0x7f800000u) {
        d = NAN;
    } else if (amax >= 1e-35f) {
        __m512 inverse = _mm512_set1_ps(127.0f / amax);
        va = _mm512_cvtps_epi32(_mm512_mul_ps(a, inverse));
        vb = _mm512_cvtps_epi32(_mm512_mul_ps(b, inverse));
        d = amax / 127.0f;
    }
    _mm_storeu_si128((void *)q, _mm512_cvtepi32_epi8(va));
    _mm_storeu_si128((void *)(q + 16), _mm512_cvtepi32_epi8(vb));
    sums[0] = _mm512_reduce_add_epi32(va);
    sums[1] = _mm512_reduce_add_epi32(vb);
    return d;
}

// The greatest of each of eight vectors; lane 4j + i: of vector j (i < 2) or j + 4.
TN_INLINE __m512i max_of_8(const __m512i *m)
{
    __m512i p[4], q[2];
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++)
        p[i] = _mm512_max_epu32(_mm512_shuffle_i64x2(m[2 * i], m[2 * i + 1], 0x44),
                                _mm512_shuffle_i64x2(m[2 * i], m[2 * i + 1], 0xee));
    TN_MATMUL_UNROLL
    for (int i = 0; i < 2; i++)
        q[i] = _mm512_max_epu32(_mm512_shuffle_i64x2(p[2 * i], p[2 * i + 1], 0x88),
                                _mm512_shuffle_i64x2(p[2 * i], p[2 * i + 1], 0xdd));
    __m512i t = _mm512_max_epu32(_mm512_unpacklo_epi64(q[0], q[1]), _mm512_unpackhi_epi64(q[0], q[1]));
    return _mm512_max_epu32(t, _mm512_shuffle_epi32(t, 0xb1));
}

// Sums of each 4 bytes.
TN_INLINE __m512i sums_of_4(__m512i q)
{
    return _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_set1_epi8(1), q), _mm512_set1_epi16(1));
}

// 64 elements, of two blocks with their inverses.
TN_INLINE __m512i round_64(const float *x, __m512 inverse, int b)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i v[4];
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) {
        int block = b + i / 2, lane = block % 4 * 4 + block / 4 * 2; // as in max_of_8
        __m512 scale = _mm512_permutexvar_ps(_mm512_set1_epi32(lane), inverse);
        v[i] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + b * BLOCK + i * 16), scale));
    }
    __m512i low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
    return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high));
}

// round_block of all 8 blocks of a group; false, and nothing written, if one needs a case of its own.
#define TN_MATMUL_ROUND_GROUP
static inline bool round_group(const float *x, int8_t *q, float *d, int32_t *sums)
{
    const __m512 sign = _mm512_set1_ps(-0.0f);
    __m512i m[8], s[4];
    TN_MATMUL_UNROLL
    for (int b = 0; b < 8; b++)
        m[b] = _mm512_max_epu32(
            _mm512_castps_si512(_mm512_andnot_ps(sign, _mm512_loadu_ps(x + b * BLOCK))),
            _mm512_castps_si512(_mm512_andnot_ps(sign, _mm512_loadu_ps(x + b * BLOCK + 16))));
    __m512i top = max_of_8(m);
    __m512 amax = _mm512_castsi512_ps(top), limit = _mm512_set1_ps(127.0f);
    __mmask16 plain = _mm512_cmp_ps_mask(amax, _mm512_set1_ps(1e-35f), _CMP_GE_OQ);
    if (_mm512_mask_cmplt_epu32_mask(plain, top, _mm512_set1_epi32(0x7f800000)) != 0xffff) return false;
    __m512 inverse = _mm512_div_ps(limit, amax);
    const __m512i natural = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 4, 8, 12, 2, 6, 10, 14);
    __m512 scales = _mm512_permutexvar_ps(natural, _mm512_div_ps(amax, limit));
    _mm256_storeu_ps(d, _mm512_castps512_ps256(scales));
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m512i v = round_64(x, inverse, 2 * z);
        _mm512_store_si512(q + 64 * z, v);
        s[z] = sums_of_4(v);
    }
    __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(s[0], s[1]), _mm512_unpackhi_epi32(s[0], s[1]));
    __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(s[2], s[3]), _mm512_unpackhi_epi32(s[2], s[3]));
    a = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b),
                         _mm512_unpackhi_epi64(a, b)); // chunk 4z + j in lane 4j + z
    const __m512i chunks = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(sums, _mm512_permutexvar_epi32(chunks, a));
    return true;
}

// For place_group: formats of AVX-512 VNNI, 16 lanes that each sum up four chunks.
#define TN_MATMUL_PLACE_CHUNKS
static inline void place_chunks(const tn_matmul_format *f, const int8_t *q, const float *d,
                                const int32_t *sums, const tn_matmul_record_group *to)
{
    __m512i in[4], sum = _mm512_setzero_si512();
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) in[z] = _mm512_load_si512(q + 64 * z);
    TN_MATMUL_UNROLL
    for (int z = 0; z < 4; z++) {
        __m512i from = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(f->order + 16 * z)));
        __m512i low = _mm512_permutex2var_epi32(in[0], from, in[1]); // by the lower 5 bits
        __m512i high = _mm512_permutex2var_epi32(in[2], from, in[3]);
        __mmask16 is_high = _mm512_test_epi32_mask(from, _mm512_set1_epi32(32));
        __m512i v = _mm512_mask_mov_epi32(low, is_high, high);
        _mm512_store_si512(to->q + 64 * z, v);
        sum = _mm512_add_epi32(sum, sums_of_4(v));
    }
    _mm512_store_si512(to->init, _mm512_mullo_epi32(sum, _mm512_set1_epi32(-f->bias)));
    __m512 scales = _mm512_zextps256_ps512(_mm256_loadu_ps(d));
    __m512i lanes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)f->subs));
    const __m512i natural = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i chunks = _mm512_loadu_si512(sums);
    if (f->sub == CHUNK) {
        __m512 each = _mm512_permutexvar_ps(_mm512_srli_epi32(natural, 1), scales);
        _mm512_store_ps(to->d, _mm512_permutexvar_ps(_mm512_srli_epi32(lanes, 1), scales));
        _mm512_storeu_ps(to->sum, _mm512_mul_ps(each, _mm512_cvtepi32_ps(chunks)));
        return;
    }
    _mm512_store_ps(to->d, _mm512_permutexvar_ps(lanes, scales));
    chunks = _mm512_add_epi32(chunks, _mm512_srli_epi64(chunks, 32)); // of pairs, in even lanes
    __m256 pairs = _mm256_cvtepi32_ps(_mm512_cvtepi64_epi32(chunks));
    _mm256_storeu_ps(to->sum, _mm256_mul_ps(_mm512_castps512_ps256(scales), pairs));
}

// after the vectors and functions of this file that it uses
#include "backends/cpu/product_tmpl.h"
#include "backends/cpu/c/convert_tmpl.h"

enum {
    PASS_X = 12,                                            // rows of x per pass
    TILE_K = TN_MATMUL_TILE_SIZE / TN_MATMUL_TILE_ROWS / 4, // 256
    ANY_K = TN_MATMUL_GROUP,                                // multiple of every block
};

TN_INLINE __m512 load_f32(const uint8_t *w, int64_t k, __mmask16 m)
{
    return _mm512_maskz_loadu_ps(m, (const float *)(const void *)w + k);
}

TN_INLINE __m512 load_f16(const uint8_t *w, int64_t k, __mmask16 m)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, (const uint16_t *)(const void *)w + k));
}

TN_INLINE __m512 load_bf16(const uint8_t *w, int64_t k, __mmask16 m)
{
    __m256i h = _mm256_maskz_loadu_epi16(m, (const uint16_t *)(const void *)w + k);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

TN_INLINE __mmask16 mask_of(int64_t n) // the first n lanes, n >= 0
{
    return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1u);
}

// v[i] = column i of 16 rows r of 16 floats.
TN_INLINE void transpose_f32(const __m512 *r, __m512 *v)
{
    __m512 a[16], b[16];
    TN_MATMUL_UNROLL
    for (int i = 0; i < 8; i++) {
        a[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    TN_MATMUL_UNROLL
    for (int i = 0; i < 4; i++) { // b[4i + c]: column c of each lane, rows 4i..4i+3
        b[4 * i] = _mm512_shuffle_ps(a[4 * i], a[4 * i + 2], 0x44);
        b[4 * i + 1] = _mm512_shuffle_ps(a[4 * i], a[4 * i + 2], 0xee);
        b[4 * i + 2] = _mm512_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0x44);
        b[4 * i + 3] = _mm512_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0xee);
    }
    TN_MATMUL_UNROLL
    for (int c = 0; c < 4; c++) {
        __m512 p = _mm512_shuffle_f32x4(b[c], b[4 + c], 0x88), q = _mm512_shuffle_f32x4(b[c], b[4 + c], 0xdd);
        __m512 s = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0x88),
               t = _mm512_shuffle_f32x4(b[8 + c], b[12 + c], 0xdd);
        v[c] = _mm512_shuffle_f32x4(p, s, 0x88);
        v[4 + c] = _mm512_shuffle_f32x4(q, t, 0x88);
        v[8 + c] = _mm512_shuffle_f32x4(p, s, 0xdd);
        v[12 + c] = _mm512_shuffle_f32x4(q, t, 0xdd);
    }
}

#define TYPE f32
#define SIZE 4
#include "backends/cpu/x86/product/product_avx512_tmpl.h"
#define TYPE f16
#define SIZE 2
#include "backends/cpu/x86/product/product_avx512_tmpl.h"
#define TYPE bf16
#define SIZE 2
#include "backends/cpu/x86/product/product_avx512_tmpl.h"

// Through tn_quant_info, 16 rows at a time.
static void any_pack(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    tn_dequant_fn to_f32 = tn_quant_info_get(t->type)->to_f32;
    for (int half = 0; half < 2; half++) {
        float rows[16][ANY_K] TN_ALIGNED(64);
        int64_t n = TN_MIN(l->k - t->k0, t->n_k);
        for (int64_t r = 0; r < 16; r++) { // rows past the end repeat the last one
            int64_t from = TN_MIN(half * 16 + r, t->n_rows - 1);
            to_f32(t->w + from * t->w_stride + tn_dtype_row_size(t->type, t->k0), rows[r], n);
            for (int64_t i = n; i < t->n_k; i++) rows[r][i] = 0.0f;
        }
        for (int64_t k = 0; k < t->n_k; k += 16) {
            __m512 in[16], out[16];
            for (int r = 0; r < 16; r++) in[r] = _mm512_load_ps(rows[r] + k);
            transpose_f32(in, out);
            float *q = (float *)(void *)t->q + k * TN_MATMUL_TILE_ROWS + half * 16;
            for (int i = 0; i < 16; i++) _mm512_store_ps(q + i * TN_MATMUL_TILE_ROWS, out[i]);
        }
    }
}

TN_INLINE void tile_pass(const float *q, int64_t n_k, const float *const *x, float *acc, bool first, int n_x)
{
    __m512 sum[2][PASS_X];
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        sum[0][t] = first ? _mm512_setzero_ps() : _mm512_load_ps(acc + t * TN_MATMUL_TILE_ROWS);
        sum[1][t] = first ? _mm512_setzero_ps() : _mm512_load_ps(acc + t * TN_MATMUL_TILE_ROWS + 16);
    }
    for (int64_t k = 0; k < n_k; k++) {
        __m512 a = _mm512_load_ps(q + k * TN_MATMUL_TILE_ROWS),
               b = _mm512_load_ps(q + k * TN_MATMUL_TILE_ROWS + 16);
        TN_MATMUL_UNROLL
        for (int t = 0; t < n_x; t++) {
            __m512 v = _mm512_set1_ps(x[t][k]);
            sum[0][t] = _mm512_fmadd_ps(a, v, sum[0][t]);
            sum[1][t] = _mm512_fmadd_ps(b, v, sum[1][t]);
        }
    }
    TN_MATMUL_UNROLL
    for (int t = 0; t < n_x; t++) {
        _mm512_store_ps(acc + t * TN_MATMUL_TILE_ROWS, sum[0][t]);
        _mm512_store_ps(acc + t * TN_MATMUL_TILE_ROWS + 16, sum[1][t]);
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
        n = left >= PASS_X ? PASS_X : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        for (int64_t j = 0; j < n; j++) x[j] = (const float *)(const void *)a->x[i + j] + t->k0;
        float *acc = a->acc + i * TN_MATMUL_TILE_ROWS;
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
        .rows = rows_fn, .pack = pack_fn, .tile = tile, .tile_rows = TN_MATMUL_TILE_ROWS, .tile_k = TILE_K,  \
        .rows_x = 4, .rows_x_max = 8                                                                         \
    }
static const tn_matmul_kernel f32_kernel = KERNEL(f32_rows, f32_pack);
static const tn_matmul_kernel f16_kernel = KERNEL(f16_rows, f16_pack);
static const tn_matmul_kernel bf16_kernel = KERNEL(bf16_rows, bf16_pack);
static const tn_matmul_kernel any_kernel = KERNEL(NULL, any_pack);

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
    [TN_TYPE_F32] = &f32_kernel, [TN_TYPE_F16] = &f16_kernel, [TN_TYPE_BF16] = &bf16_kernel};

const tn_matmul_isa tn_matmul_isa_avx512 = {.below = &tn_matmul_isa_avx2,
                                            .kernels = kernels,
                                            .any = &any_kernel,
                                            .quantise = quantise_record,
                                            .act = act_values,
                                            .glu = glu_values,
                                            .decoder = to_f32_get};

void tn_matmul_avx512(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_avx512);
}
