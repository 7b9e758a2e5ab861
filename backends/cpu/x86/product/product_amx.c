// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AMX: products of many rows of x with BF16 and quantised weights, both rounded to bf16.
//
//   acc[t][r] += sum over k of bf16(w[r, k]) * bf16(x[t, k]), in f32
//
// Why not int8: a product of int8 tiles ends after 32 elements, where the scales change, so that it uses half
// of the unit, the same 8192 products in 16 cycles as bf16; but its 256 sums then take 48 to 64 operations
// (convert, scale, add, minimum) on two ports, 24 to 32 cycles, where those of bf16 stay in the registers.
// And x rounded to 8 significant bits has less error than as int8 with a scale per 32 (docs/precision.md).
//
// Tile: 32 rows of w times n_k as [n_k / 32][2 x 16 rows][16 pairs of k][16 rows][2] bf16; TN_MATMUL_TILES of
// them stay in L2, and 32 rows of x times n_k go through all of them. Registers: 2 x 2 of sums, 2 of x, 2 of
// w: 4 loads for 4 products of 16 x 16 x 32. Operations: 2 m n k, at 1024 a cycle of one core; bytes: w once
// for each 512 rows of x, and x once for each 32 to 128 rows of w. Packing takes 0.2 ns per weight. All
// operands come from L2, and passes are as long as k allows: each loads and stores sums. With 16 threads of
// a shared Xeon each reaches 400 of the 1140 GMAC/s that operands in L1 allow; where another program runs on
// the second thread of its core, tile instructions are 2.4 to 4 times as slow (docs/log/cpu.md).
#include "backends/cpu/x86/product/product_avx512vnni.h"
#include "backends/cpu/x86/product/tiles.h"

enum {
    TILE_K = TN_MATMUL_LONG_K,
    PIECE_K = 512,            // of w, unpacked at a time
    BLOCK = 1024,             // bytes of a register: 16 rows of 32 bf16
    HALF_X = 16,              // rows of x in a register
    BLOCK_ROWS = 2 * HALF_X,  // of a pass
    W_AHEAD = 4,              // steps of 32 k
    ROW = 32 * sizeof(float), // bytes of the sums of a row of x
};

// --- weights -----------------------------------------------------------------------------------------------

TN_INLINE __m512 value_of(__m512i byte, __m512 scale, __m512 min)
{
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(byte), scale, min);
}

// Values a and b of 16 rows, as pairs.
TN_INLINE __m512i pairs_of(__m512 a, __m512 b)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, //
                                           23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(b, a));
}

// A sub-block of 16 rows: bytes at u, 4 elements of each row in each 64 -> pairs at q.
TN_INLINE void convert_sub(const uint8_t *u, int64_t sub, __m512 scale, __m512 min, uint8_t *q)
{
    const __m512i low = _mm512_set1_epi32(255);
    for (int64_t i = 0; i < sub / 4; i++) {
        __m512i v = _mm512_load_si512(u + i * TILE_STEP);
        __m512 a = value_of(_mm512_and_si512(v, low), scale, min);
        __m512 b = value_of(_mm512_and_si512(_mm512_srli_epi32(v, 8), low), scale, min);
        __m512 c = value_of(_mm512_and_si512(_mm512_srli_epi32(v, 16), low), scale, min);
        __m512 d = value_of(_mm512_srli_epi32(v, 24), scale, min);
        _mm512_store_si512(q + i * 128, pairs_of(a, b));
        _mm512_store_si512(q + i * 128 + 64, pairs_of(c, d));
    }
}

// Pieces of the tile of AVX-512 VNNI that stay in L1, and from their bytes, scales and minima those of this
// level.
static void pack_quant(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    const tn_matmul_kernel *kernel = tn_matmul_isa_avx512vnni.kernels[t->type];
    int64_t sub = kernel->tile_format->sub;
    tn_matmul_tile bytes = *t;
    bytes.q = t->spare;
    __m512 bias = _mm512_set1_ps((float)-kernel->tile_format->bias);
    for (int64_t k0 = 0; k0 < t->n_k; k0 += PIECE_K) {
        bytes.k0 = t->k0 + k0;
        bytes.n_k = TN_MIN(t->n_k - k0, PIECE_K);
        kernel->pack(&bytes, l);
        for (int64_t k = 0; k < bytes.n_k; k += sub) {
            for (int64_t half = 0; half < 2; half++) {
                int64_t at = k / sub * TN_MATMUL_TILE_ROWS + half * 16;
                __m512 scale = _mm512_load_ps(t->scale + at), min = _mm512_mul_ps(scale, bias);
                if (kernel->has_min) min = _mm512_load_ps(t->min + at);
                convert_sub(bytes.q + k / 4 * TILE_STEP + half * 64, sub, scale, min,
                            t->q + ((k0 + k) / 32 * 2 + half) * BLOCK + k % 32 * 32);
            }
        }
    }
}

TN_INLINE __mmask32 mask_of(int64_t n) // the first n words
{
    return n >= 32 ? 0xffffffffu : n <= 0 ? 0 : (1u << n) - 1u;
}

static void pack_bf16(const tn_matmul_tile *t, const tn_matmul_layout *l)
{
    for (int64_t half = 0; half < 2; half++) {
        for (int64_t k = 0; k < t->n_k; k += 32) {
            uint8_t rows[16][64] TN_ALIGNED(64);
            __mmask32 mask = mask_of(l->k - t->k0 - k);
            for (int64_t r = 0; r < 16; r++) { // rows past the end repeat the last one
                const uint8_t *w = t->w + TN_MIN(half * 16 + r, t->n_rows - 1) * t->w_stride;
                _mm512_store_si512(rows[r], _mm512_maskz_loadu_epi16(mask, w + (t->k0 + k) * 2));
            }
            __m512i v[16];
            transpose_16(rows[0], v);
            uint8_t *q = t->q + (k / 32 * 2 + half) * BLOCK;
            for (int i = 0; i < 16; i++) _mm512_store_si512(q + 64 * i, v[i]);
        }
    }
}

// --- rows of x ---------------------------------------------------------------------------------------------

static void round_record(const tn_matmul_format *f, const tn_matmul_layout *l, const float *x, uint8_t *rec,
                         int64_t k0, int64_t k1)
{
    TN_UNUSED(f);
    for (int64_t k = k0; k < k1; k += 32) {
        __mmask32 mask = mask_of(l->k - k);
        __m512 a = _mm512_maskz_loadu_ps((__mmask16)mask, x + k);
        __m512 b = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + k + 16);
        _mm512_store_si512(rec + k / 32 * BLOCK, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
}

// Records i to i + 15 as blocks one after the other: in place if they are neighbours, else copied to `to`.
// Rows past the last one hold anything; so do their sums, which nobody reads.
static const uint8_t *block_of(const tn_matmul_tile_args *a, int64_t i, uint8_t *to)
{
    int64_t n = TN_MIN(a->n_x - i, HALF_X), same = 1;
    const uint8_t *first = a->x[i] + a->tile->k0 / 32 * BLOCK;
    while (same < n && a->x[i + same] == a->x[i] + same * 64) same++;
    if (same == n) return first;
    for (int64_t t = 0; t < n; t++) {
        const uint8_t *from = a->x[i + t] + a->tile->k0 / 32 * BLOCK;
        for (int64_t c = 0; c < a->tile->n_k / 32; c++)
            _mm512_store_si512(to + c * BLOCK + t * 64, _mm512_load_si512(from + c * BLOCK));
    }
    return to;
}

// The operands of a pass, and what it fetches meanwhile: w of the pass after it, and `lines` of 64 bytes for
// each step from both blocks of x that come later.
typedef struct pass {
    const uint8_t *x[2], *q, *q_next, *x_later[2];
    int32_t lines;
} pass;

TN_INLINE void fetch(const uint8_t *p)
{
    TN_MATMUL_UNROLL
    for (int i = 0; i < 8; i++) TN_PREFETCH(p + i * 64);
}

// Registers 0 to 3: sums of rows 0..15 and 16..31 of x with rows 0..15 and 16..31 of w. Registers are loaded
// a step ahead, w is fetched into L1 W_AHEAD steps ahead, and x, which other cores wrote, into L2 a block
// ahead.
static void pass_32(const pass *p, int64_t n_k, float *acc, bool first)
{
    float *acc_1 = acc + HALF_X * TN_MATMUL_TILE_ROWS;
    const uint8_t *a = p->x[0], *b = p->x[1], *q = p->q, *ahead = q + 2 * (1 + W_AHEAD) * BLOCK;
    const uint8_t *later[2] = {p->x_later[0], p->x_later[1]};
    tile_load(4, a, 64);
    tile_load(6, q, 64);
    if (first) {
        tile_zero(0);
        tile_zero(1);
        tile_zero(2);
        tile_zero(3);
    } else {
        tile_load(0, acc, ROW);
        tile_load(1, acc + 16, ROW);
        tile_load(2, acc_1, ROW);
        tile_load(3, acc_1 + 16, ROW);
    }
    tile_load(7, q + BLOCK, 64);
    tile_load(5, b, 64);
    int64_t n = n_k / 32; // at least 8
    for (int64_t c = 1;; c++, ahead += 2 * BLOCK) {
        if (c == n - W_AHEAD) ahead = p->q_next;
        a += BLOCK, b += BLOCK, q += 2 * BLOCK;
        tile_dot_bf16(0, 4, 6);
        fetch(ahead);
        tile_dot_bf16(1, 4, 7);
        fetch(ahead + 512);
        if (c < n) tile_load(4, a, 64);
        tile_dot_bf16(2, 5, 6);
        fetch(ahead + BLOCK);
        if (c < n) tile_load(6, q, 64);
        tile_dot_bf16(3, 5, 7);
        fetch(ahead + BLOCK + 512);
        for (int32_t i = 0; i < p->lines; i++, later[0] += 64, later[1] += 64) {
            TN_PREFETCH_L2(later[0]);
            TN_PREFETCH_L2(later[1]);
        }
        if (c == n) break;
        tile_load(7, q + BLOCK, 64);
        tile_load(5, b, 64);
    }
    tile_store(0, acc, ROW);
    tile_store(1, acc + 16, ROW);
    tile_store(2, acc_1, ROW);
    tile_store(3, acc_1 + 16, ROW);
}

// The same with 16 rows of x.
static void pass_16(const uint8_t *x, const uint8_t *q, int64_t n_k, float *acc, bool first)
{
    if (first) {
        tile_zero(0);
        tile_zero(1);
    } else {
        tile_load(0, acc, ROW);
        tile_load(1, acc + 16, ROW);
    }
    for (int64_t k = 0; k < n_k; k += 32, x += BLOCK, q += 2 * BLOCK) {
        tile_load(4, x, 64);
        tile_load(6, q, 64);
        tile_dot_bf16(0, 4, 6);
        tile_load(7, q + BLOCK, 64);
        tile_dot_bf16(1, 4, 7);
    }
    tile_store(0, acc, ROW);
    tile_store(1, acc + 16, ROW);
}

// Whether rows i to i + 31 of x are two blocks as they are.
static bool neighbours(const tn_matmul_tile_args *a, int64_t i)
{
    if (i + BLOCK_ROWS > a->n_x) return false;
    for (int64_t t = 0; t < BLOCK_ROWS; t++)
        if (a->x[i + t] != a->x[i + t / HALF_X * HALF_X] + t % HALF_X * 64) return false;
    return true;
}

static void tile(const tn_matmul_tile_args *a)
{
    const tn_matmul_tile *t = a->tile;
    int64_t share = t->n_k / 32 * BLOCK / a->n_tiles; // of a block of x, which a pass fetches
    for (int64_t i = 0; i < a->n_x; i += BLOCK_ROWS) {
        bool whole = a->n_x - i > HALF_X, fetches = neighbours(a, i + BLOCK_ROWS);
        pass p = {.x = {block_of(a, i, t->spare)}};
        if (whole) p.x[1] = block_of(a, i + HALF_X, t->spare + t->n_k / 32 * BLOCK);
        if (fetches) p.lines = (HALF_X + a->n_tiles - 1) / a->n_tiles;
        tiles_fence();
        for (int32_t j = 0; j < a->n_tiles; j++) {
            float *acc = a->acc + j * a->acc_size + i * TN_MATMUL_TILE_ROWS;
            p.q = t[j].q;
            p.q_next = t[j + 1 < a->n_tiles ? j + 1 : 0].q;
            for (int h = 0; h < 2 && fetches; h++)
                p.x_later[h] = a->x[i + BLOCK_ROWS + h * HALF_X] + t->k0 / 32 * BLOCK + j * share;
            if (whole)
                pass_32(&p, t->n_k, acc, a->first);
            else
                pass_16(p.x[0], p.q, t->n_k, acc, a->first);
        }
        tiles_fence();
    }
}

// --- table -------------------------------------------------------------------------------------------------

static const tn_matmul_format records = {.is_bf16 = true};
#define KERNEL(pack_fn)                                                                                      \
    {                                                                                                        \
        .tile_format = &records, .pack = pack_fn, .tile = tile, .tile_rows = TN_MATMUL_TILE_ROWS,            \
        .tile_k = TILE_K, .n_tiles = TN_MATMUL_TILES                                                         \
    }
static const tn_matmul_kernel from_bf16 = KERNEL(pack_bf16);
static const tn_matmul_kernel from_quant = KERNEL(pack_quant);

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
    [TN_TYPE_BF16] = &from_bf16,
#define TN_CPU_QUANT_TYPE(type, name) [TN_TYPE_##type] = &from_quant,
#include "backends/cpu/quant_types.def"
};

static const tn_matmul_isa amx = {
    .below = &tn_matmul_isa_avx512vnni, .kernels = kernels, .quantise = round_record};

void tn_matmul_amx(const tn_cpu_task *task)
{
    if (task->phase == 1) tiles_configure();
    tn_matmul_run(task, &amx);
    if (task->phase == 1) tiles_release();
}
