// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM of up to 64 rows with cooperative matrices (gemm_skinny.comp, gemm_fragment.comp,
// gemm_fragment_k.comp). convert_16bit.comp writes x to scratch first, a norm included. Operands are bf16 if
// all weights are BF16, and f16 otherwise, as in gemm_coopmat.c.
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"

enum {
    MAX_ROWS = 64,   // gemm_coopmat.c runs what has more
    SIZE = 16,       // rows and columns of a matrix
    DEPTH = 128,     // of a slice of the common dimension
    VECTOR = 16,     // bytes
    ALIGNMENT = 256, // of sums in scratch, bytes
    TOP = 14         // the largest exponent of f16 is 15: rows are scaled to one below it
};
// GEMV runs what has fewer rows. Tokens/s of an 8B model on an H200 with 2, 3, 4, 6, 8 rows: Q4_K_M by GEMV
// with int8 activations 453, 486, 639, 607, 791, by gemm_skinny.comp 243, 366, 486, 720, 954; BF16 with 4, 8
// rows by GEMV 301, 317, by this 572, 1121. Of eight layers on an H100 with 3, 4, 5 rows: GEMV 1625, 2141,
// 1743, gemm_fragment.comp 1819, 2407, 2986.
enum { MIN_ROWS_QUANTISED = 5, MIN_ROWS_FRAGMENTS = 3, MIN_ROWS_PLAIN = 3 };
enum { MIN_SLICES = 2 }; // of a part
// gemm_fragment_k.comp: vectors of a row of x in half a block of weights; invocations of a subgroup.
enum { ROW_OF_HALF = 18, LANES = 32 };
// Constants of the shader.
enum { C_TILE = 2, C_THREADS = 4, C_FORM };
// Of fragment_sums.glsl: the bits of C_TILE from there on; a bit of TN_VK_LAYOUT.
enum { TILE_PARTS = 20, ROWS_ALIGNED = 2 };
// A bit of C_FORM beside those of finish.glsl, of gemm_fragment.comp and gemm_fragment_k.comp.
enum { DIRECT = 128, ORDERED = 128 };

// Blocks of 16 rows, matrices of 16 columns of a subgroup, subgroups, pieces of x of 128 elements in shared
// memory (gemm_fragment.comp has two such buffers), and workgroups that a product is divided into if its
// common dimension is long enough: enough for the 132 multiprocessors of the largest devices of 2025.
// Measured on an H200 with eight layers of an 8B model in Q4_K_M, gemm_skinny.comp: other tiles were 1 to 40
// % slower, and twice as many workgroups 0 to 7 %.
typedef struct tile {
    int32_t m, n, teams, pieces, groups;
} tile;
typedef enum operands { IN_MEMORY, FRAGMENTS, K_QUANTS } operands;
typedef struct form {
    int32_t shader;
    operands operands; // but for IN_MEMORY weights stay in registers, and x has an order of its own
    tile first;        // of up to 16 rows; the others are those of `tiles`
} form;
static const tile tiles[] = {
    {2, 1, 16, 1, 132}, // 32 x 256
    {2, 1, 8, 1, 132},  // 32 x 128, where workgroups are smaller
    {4, 1, 8, 1, 132},  // 64 x 128
};
enum { N_TILES = 1 + TN_COUNT(tiles) };
// In registers, other tiles were up to 17 % slower on an H100.
static const form in_memory = {TN_VK_SHADER_gemm_skinny_f16, IN_MEMORY, {1, 1, 8, 1, 264}}; // 16 x 128
static const form in_memory_bf16 = {TN_VK_SHADER_gemm_skinny_bf16, IN_MEMORY, {1, 1, 8, 1, 264}};
static const form in_registers = {TN_VK_SHADER_gemm_fragment_f16, FRAGMENTS, {1, 1, 16, 2, 132}}; // 16 x 256
static const form in_registers_bf16 = {TN_VK_SHADER_gemm_fragment_bf16, FRAGMENTS, {1, 1, 16, 2, 132}};

static const form of_k_quants = {TN_VK_SHADER_gemm_fragment_k, K_QUANTS, {1, 1, 8, 2, 264}}; // 16 x 128

static bool accepts(const tn_step *step, tn_dtype element, int32_t min_quantised)
{
    tn_product p = tn_product_get(step);
    int64_t rows = tn_view_n_rows(&step->dst[0]);
    bool quantised = p.n_weights > 0 && tn_dtype_block_elems(p.w[0]->dtype) > 1;
    return p.n_weights > 0 && !p.ids && rows >= (quantised ? min_quantised : MIN_ROWS_PLAIN) &&
           rows <= MAX_ROWS && tn_vk_fits_coopmat(step, &p, element);
}

bool tn_vk_accepts_gemm_skinny_bf16(const tn_step *step)
{
    return accepts(step, TN_TYPE_BF16, MIN_ROWS_QUANTISED);
}

bool tn_vk_accepts_gemm_skinny_f16(const tn_step *step)
{
    return accepts(step, TN_TYPE_F16, MIN_ROWS_QUANTISED);
}

bool tn_vk_accepts_gemm_fragment_bf16(const tn_step *step)
{
    return accepts(step, TN_TYPE_BF16, MIN_ROWS_FRAGMENTS);
}

bool tn_vk_accepts_gemm_fragment_f16(const tn_step *step)
{
    return accepts(step, TN_TYPE_F16, MIN_ROWS_FRAGMENTS);
}

// Gate and up have the same type.
bool tn_vk_accepts_gemm_fragment_k(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    bool all = !p.glu || p.w[0]->dtype == p.w[1]->dtype;
    for (int32_t i = 0; i < p.n_weights; i++) all = all && tn_vk_is_in_chunks(p.w[i]->dtype);
    return all && accepts(step, TN_TYPE_F16, MIN_ROWS_FRAGMENTS);
}

static int32_t tile_threads(const tn_vk *v, const tile *t)
{
    return v->coopmat.subgroup * t->teams;
}

// Shared memory as the shaders have it: half a slice of weights of each subgroup and pieces of x, or two
// buffers of pieces of x and later in their place the sums.
static bool fits(const tn_vk *v, const form *f, const tile *t)
{
    int64_t weights = (int64_t)t->teams * SIZE * t->n * (DEPTH / 16 + 1),
            x = (int64_t)SIZE * t->m * (t->pieces * DEPTH / 8 + 1),
            row_x = f->operands == K_QUANTS ? ROW_OF_HALF + 1 : t->pieces * DEPTH / 8 + 1,
            row_sums = (int64_t)t->teams * 4 * t->n + 1,
            size =
                f->operands == IN_MEMORY ? weights + x : (int64_t)SIZE * t->m * TN_MAX(2 * row_x, row_sums);
    return (size + 1) * VECTOR <= v->max_shared && tile_threads(v, t) <= (int32_t)v->max_threads;
}

static const tile *tile_at(const form *f, int32_t i)
{
    return i == 0 ? &f->first : &tiles[i - 1];
}

// The first tile that has all rows.
static const tile *select_tile(const tn_vk *v, const form *f, const tn_product *p)
{
    int64_t rows = tn_view_n_rows(p->y[0]);
    int32_t i = 0, given = v->tile - 1;
    if (given >= 0 && given < N_TILES && fits(v, f, tile_at(f, given))) return tile_at(f, given);
    while (i + 1 < N_TILES && (SIZE * tile_at(f, i)->m < rows || !fits(v, f, tile_at(f, i)))) i++;
    return tile_at(f, i);
}

static int64_t tiles_of(const tn_product *p, int32_t i, const tile *t)
{
    int64_t columns = p->w[i]->ne[2] * (p->glu ? 2 : 1);
    return tn_vk_div_up(tn_view_n_rows(p->y[i]), SIZE * t->m) * tn_vk_div_up(columns, SIZE * t->n * t->teams);
}

// Into how many parts the common dimension is divided: all results of the step run side by side.
static int64_t parts_of(const tn_product *p, const tile *t)
{
    int64_t groups = 0;
    for (int32_t i = 0; i < p->n_results; i++) groups += tiles_of(p, i, t);
    int64_t most = tn_vk_div_up(p->k, DEPTH) / MIN_SLICES, wanted = t->groups / TN_MAX(groups, 1);
    return TN_MAX(1, TN_MIN(most, wanted));
}

// Bytes of the sums of result i.
static int64_t sums_of(const tn_product *p, int32_t i, const tile *t, int64_t parts)
{
    int64_t size = (int64_t)SIZE * SIZE * t->m * t->n * t->teams * (int64_t)sizeof(float);
    return tn_vk_div_up(tiles_of(p, i, t) * parts * size, ALIGNMENT) * ALIGNMENT;
}

// One order for all results.
static int32_t order_of_k_quants(const tn_product *p)
{
    for (int32_t j = 0; j < p->n_results; j++)
        if (p->w[j]->dtype != TN_TYPE_Q6_K) return TN_VK_ORDER_K_QUANT;
    return TN_VK_ORDER_Q6_K;
}

// The order of x for the weights of result i: what gemm_fragment.comp has an invocation load of them.
static int32_t order_of(const tn_product *p, int32_t i, const form *f, tn_dtype element)
{
    const tn_view *w = p->w[i], *up = p->glu ? p->w[1] : w;
    enum { RUN = 16, RUN_K_QUANT = 32, RUN_Q6_K = 64 };
    if (f->operands == IN_MEMORY) return TN_VK_ORDER_NONE;
    if (f->operands == K_QUANTS) return order_of_k_quants(p);
    if (w->dtype != up->dtype) return RUN;
    if (w->dtype == element && tn_vk_aligned_elems(w, 8) && tn_vk_aligned_elems(up, 8))
        return TN_VK_ORDER_VECTORS;
    switch (w->dtype) {
    case TN_TYPE_Q2_K:
    case TN_TYPE_Q3_K:
    case TN_TYPE_Q4_K:
    case TN_TYPE_Q5_K:
        return RUN_K_QUANT;
    case TN_TYPE_Q6_K:
        return RUN_Q6_K;
    default:
        return RUN;
    }
}

// Copies of x in scratch: one for each order that a result needs. `p` is the product whose extents decide.
typedef struct copies {
    int32_t n, order[TN_MAX_DST], of[TN_MAX_DST]; // of: the copy of a result
    int64_t size;                                 // bytes of one
} copies;
static copies find_copies(const tn_step *step, const tn_product *p, const form *f, const tile *t,
                          tn_dtype element)
{
    copies c = {0};
    for (int32_t i = 0; i < p->n_results; i++) {
        int32_t order = order_of(p, i, f, element), k = 0;
        while (k < c.n && c.order[k] != order) k++;
        if (k == c.n) c.order[c.n++] = order;
        c.of[i] = k;
        c.size = TN_MAX(c.size, tn_vk_convert_16bit_size(step, order));
    }
    // What a workgroup loads behind the last rows of the last half block.
    if (f->operands == K_QUANTS) c.size += (t->teams * LANES / SIZE + SIZE * t->m) * ROW_OF_HALF * VECTOR;
    c.size = tn_vk_div_up(c.size, ALIGNMENT) * ALIGNMENT;
    return c;
}

static void launch_result(const tn_step *step, const tn_product *p, int32_t i, const form *f, const tile *t,
                          int64_t parts, const copies *x, tn_vk_dispatch *d)
{
    int32_t *c = d->constants, *n = d->args.n, order = x->order[x->of[i]];
    int64_t at = x->n * x->size, counter = 0;
    for (int32_t r = 0; r < i; r++) {
        at += sums_of(p, r, t, parts);
        counter += tiles_of(p, r, t);
    }
    tn_vk_product_bind(step, p, i, d);
    n[TN_VK_N_PRODUCT_NORM] = -1; // it is in the copy of x
    bool gated = p->glu != NULL;
    c[C_TILE] = t->m | t->n << 4 | t->teams << 8 | t->pieces << 16;
    c[C_THREADS] = tile_threads(d->v, t);
    c[C_FORM] = tn_vk_finish_form(p, d) | (order == TN_VK_ORDER_VECTORS ? DIRECT : 0) |
                (order == TN_VK_ORDER_Q6_K ? ORDERED : 0);
    c[TN_VK_LAYOUT] = tn_vk_aligned_elems(p->w[i], 8) && (!gated || tn_vk_aligned_elems(p->w[1], 8));
    if (f->operands != IN_MEMORY) {
        bool aligned =
            tn_vk_aligned_elems(p->y[i], 4) && (!p->residual || tn_vk_aligned_elems(p->residual, 4));
        c[C_TILE] |= (int32_t)parts << TILE_PARTS;
        c[TN_VK_LAYOUT] |= aligned ? ROWS_ALIGNED : 0;
    }
    n[TN_VK_N_PRODUCT_SPLITS] = (int32_t)parts;
    n[TN_VK_N_PRODUCT_SUMS] = (int32_t)(at / ALIGNMENT);
    n[TN_VK_N_PRODUCT_COUNTERS] = (int32_t)counter;
    n[TN_VK_N_PRODUCT_COPY] = (int32_t)(x->of[i] * x->size / ALIGNMENT);
    d->groups = tiles_of(p, i, t) * parts;
    d->waits = i == 0;
}

static int32_t launch(const tn_step *step, int32_t i, tn_dtype element, const form *f, tn_vk_dispatch *d)
{
    tn_product p = tn_product_get(step), like = tn_product_get(d->like);
    const tile *t = select_tile(d->v, f, &like);
    copies x = find_copies(step, &like, f, t, element);
    int64_t parts = parts_of(&like, t);
    d->scratch = x.n * x.size;
    for (int32_t r = 0; r < p.n_results; r++) {
        d->scratch += sums_of(&p, r, t, parts);
        d->counters += tiles_of(&p, r, t);
    }
    if (i < x.n) {
        tn_vk_launch_convert_16bit(step, element, TOP, x.order[i], d);
        d->args.n[TN_VK_N_PRODUCT_COPY] = (int32_t)(i * x.size / ALIGNMENT);
    } else {
        launch_result(step, &p, i - x.n, f, t, parts, &x, d);
        d->shader = f->shader;
    }
    return x.n + p.n_results;
}

int32_t tn_vk_launch_gemm_skinny_f16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_F16, &in_memory, d);
}

int32_t tn_vk_launch_gemm_skinny_bf16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_BF16, &in_memory_bf16, d);
}

int32_t tn_vk_launch_gemm_fragment_f16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_F16, &in_registers, d);
}

int32_t tn_vk_launch_gemm_fragment_bf16(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_BF16, &in_registers_bf16, d);
}

int32_t tn_vk_launch_gemm_fragment_k(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    return launch(step, i, TN_TYPE_F16, &of_k_quants, d);
}
