// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by OpenBLAS: y = x w^T, then the op's epilogue, for the ops without experts.
//
//   x [m, k] f32 in one stride, w [n, k] -> y [m, n] f32
//
// An item is W_ROWS rows of w against up to X_ROWS rows of x: one call of sgemm if w is F32, else one for
// each K_BLOCK elements of k, after these have been decoded into scratch. Sums go to scratch, and from there
// through the epilogue to y. Items depend on shapes alone, and each is computed by one thread, so results do
// not depend on the number of threads. They do depend on the number of rows: what the library does at the
// edges of a matrix is its own affair.
//
// Bytes moved: w once per X_ROWS rows of x, x once per item (the library packs both). Bound by arithmetic. A
// call of 512 x 128 x 1024 reaches 96 % of one with four times the rows of w on a core with AVX-512 (91 and
// 95 GFLOP/s, OpenBLAS 0.3.21, 2026-11-26); it packs x again for each item, which costs more with fewer rows.
#include "backends/cpu/kernels.h"
#include "backends/cpu/openblas/openblas.h"
#include "backends/cpu/product.h"
#include "ops/product.h"

#include <string.h>

enum {
    X_ROWS = 512,
    W_ROWS = 128,
    K_BLOCK = 1024,      // a multiple of all blocks
    W_LD = K_BLOCK + 16, // floats from row to row: rows of 2^n floats would share few cache sets
};

// The scratch of one thread, in floats.
enum { SUMS = X_ROWS * W_ROWS, DECODED = W_ROWS * W_LD, LOCAL = 2 * SUMS + DECODED };

typedef struct item {
    int32_t w;              // weight, or gate of gate and up
    int64_t r0, n, x0, n_x; // rows of w and of x
} item;

// Bytes from row to row of x if one stride leads through all of them, else 0.
static int64_t row_stride(const tn_view *x)
{
    if (x->ne[0] * x->ne[1] == 1 || (x->nb[1] == x->ne[2] * x->nb[2] && x->nb[0] == x->ne[1] * x->nb[1]))
        return tn_view_n_rows(x) > 1 ? x->nb[2] : x->ne[3] * (int64_t)sizeof(float);
    return 0;
}

static bool fits_int(int64_t n)
{
    return n > 0 && n <= INT32_MAX;
}

bool tn_openblas_accepts(const tn_step *step)
{
    if (step->precision != TN_PRECISION_auto && step->precision != TN_PRECISION_f32) return false;
    if (!tn_matmul_accepts_plain(step) && !tn_matmul_accepts_quantising(step)) return false;
    tn_product p = tn_product_get(step);
    int64_t stride = row_stride(p.x), size = sizeof(float);
    return !p.ids && p.m > 0 && p.k > 0 && stride >= p.k * size && stride % size == 0 &&
           fits_int(stride / size);
}

size_t tn_openblas_scratch(const tn_step *step, int32_t n_threads)
{
    TN_UNUSED(step);
    return (size_t)n_threads * LOCAL * sizeof(float);
}

// --- levels --------------------------------------------------------------------------------------------

// That of a level, or the one below it.
static const tn_matmul_isa *isa_get(int32_t level)
{
    static const struct {
        int32_t level;
        const tn_matmul_isa *isa;
    } rows[] = {
#if defined(__x86_64__)
        {TN_ISA_AVX512VNNI, &tn_matmul_isa_avx512vnni},
        {TN_ISA_AVX512, &tn_matmul_isa_avx512},
        {TN_ISA_AVX2, &tn_matmul_isa_avx2},
#endif
#if defined(TN_CPU_ARM)
        {TN_ISA_NEON, &tn_matmul_isa_neon},
#endif
        {TN_ISA_GENERIC, &tn_matmul_isa_generic},
    };
    size_t i = 0;
    while (i + 1 < TN_COUNT(rows) && rows[i].level > level) i++;
    return rows[i].isa;
}

static tn_matmul_decode_fn decoder_get(int32_t level, tn_dtype type)
{
    const tn_matmul_isa *isa = isa_get(level);
    while (!isa->decoder) isa = isa->below;
    return isa->decoder(type);
}

// --- items -----------------------------------------------------------------------------------------------

static int64_t x_blocks(const tn_product *p)
{
    return (p->m + X_ROWS - 1) / X_ROWS;
}

static int64_t count_items(const tn_product *p)
{
    int64_t n = 0;
    for (int32_t i = 0; i < p->n_results; i++) n += (p->w[i]->ne[2] + W_ROWS - 1) / W_ROWS;
    return n * x_blocks(p);
}

static item item_get(const tn_product *p, int64_t i)
{
    item it = {0};
    int64_t blocks = x_blocks(p), chunk = i / blocks, block = i % blocks;
    for (;; it.w++) {
        int64_t n = (p->w[it.w]->ne[2] + W_ROWS - 1) / W_ROWS;
        if (chunk < n) break;
        chunk -= n;
    }
    it.r0 = chunk * W_ROWS;
    it.n = TN_MIN(W_ROWS, p->w[it.w]->ne[2] - it.r0);
    it.x0 = p->m * block / blocks;
    it.n_x = p->m * (block + 1) / blocks - it.x0;
    return it;
}

// Rows in the form that sgemm reads.
typedef struct matrix {
    const float *data;
    int64_t ld; // floats
} matrix;

static void multiply(const tn_openblas_api *api, const item *it, const matrix *x, const matrix *w, int64_t k,
                     float beta, float *sums)
{
    api->sgemm(TN_CBLAS_ROW_MAJOR, TN_CBLAS_PLAIN, TN_CBLAS_TRANSPOSED, (int)it->n_x, (int)it->n, (int)k,
               1.0f, x->data, (int)x->ld, w->data, (int)w->ld, beta, sums, W_ROWS);
}

static bool is_direct(const tn_view *w, const uint8_t *row)
{
    int64_t size = sizeof(float);
    return w->dtype == TN_TYPE_F32 && (uintptr_t)row % (uintptr_t)size == 0 && w->nb[2] % size == 0 &&
           w->nb[2] >= w->ne[3] * size && fits_int(w->nb[2] / size);
}

// sums [n_x][W_ROWS] of weight `i`
static void sums_get(const tn_cpu_task *task, const tn_product *p, const item *it, int32_t i, float *decoded,
                     float *sums)
{
    const tn_view *w = p->w[i];
    const uint8_t *row = (const uint8_t *)w->data + it->r0 * w->nb[2];
    int64_t stride = row_stride(p->x), size = sizeof(float);
    matrix x = {(const float *)(const void *)((const char *)p->x->data + it->x0 * stride), stride / size};
    if (is_direct(w, row)) {
        matrix in_place = {(const float *)(const void *)row, w->nb[2] / size};
        multiply(task->openblas, it, &x, &in_place, p->k, 0.0f, sums);
        return;
    }
    tn_matmul_decode_fn decode = decoder_get(task->level, w->dtype);
    matrix block = {decoded, W_LD};
    for (int64_t k = 0; k < p->k; k += K_BLOCK) {
        int64_t n_k = TN_MIN(p->k - k, K_BLOCK);
        matrix x_block = {x.data + k, x.ld};
        for (int64_t r = 0; r < it->n; r++)
            decode(row + r * w->nb[2] + tn_dtype_row_size(w->dtype, k), decoded + r * W_LD, n_k);
        multiply(task->openblas, it, &x_block, &block, n_k, k > 0 ? 1.0f : 0.0f, sums);
    }
}

static void run_item(const tn_cpu_task *task, const tn_product *p, const item *it)
{
    float *local = (float *)task->scratch + (size_t)task->thread * LOCAL;
    float *sums[2] = {local, local + SUMS}, *decoded = local + 2 * SUMS;
    for (int32_t i = 0; i < (p->glu ? 2 : 1); i++) {
        if (it->n % 16) memset(sums[i], 0, SUMS * sizeof(float)); // epilogues work on multiples of 16
        sums_get(task, p, it, it->w + i, decoded, sums[i]);
    }
    tn_matmul_place at = {.product = p, .isa = isa_get(task->level), .w = it->w, .r0 = it->r0, .n = it->n};
    for (int64_t t = 0; t < it->n_x; t++) {
        at.row = it->x0 + t;
        tn_matmul_finish(&at, sums[0] + t * W_ROWS, sums[1] + t * W_ROWS);
    }
}

int32_t tn_openblas_parts(const tn_cpu_task *task)
{
    if (task->phase > 0) return 0;
    tn_product p = tn_product_get(task->step);
    return (int32_t)TN_MAX(TN_MIN(count_items(&p), task->nth), 1);
}

void tn_matmul_openblas_generic(const tn_cpu_task *task)
{
    tn_product p = tn_product_get(task->step);
    int64_t n = count_items(&p);
    for (int64_t i = tn_cpu_next_item(task); i < n && !tn_cpu_stopped(task); i = tn_cpu_next_item(task)) {
        item it = item_get(&p, i);
        run_item(task, &p, &it);
    }
}
