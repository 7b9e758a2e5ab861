// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products with up to 8 rows of x (matvec.cuh, matvec_mma.cuh): which steps are accepted, and which
// kernels of which columns run them.
#include "backends/cuda/product/matvec/matvec.h"

#include "backends/cuda/product/matmul_any.h"
#include "core/compiler.h"

#include <stdio.h>

enum {
    MAX_PAIRS = 256, // of token and expert
    // With no more pairs than experts few are read twice. 30B-A3B with 9, 12, 14 and 16 tokens, 12 layers,
    // H200, tok/s: 6275, 7988, 8630, 9480 for 5217, 6306, 7063, 7830 with product/experts; with 20: 8789 for
    // 9113.
    MAX_TOKENS = 16,
};

// Entry points by type of the weights. A column is a row of x.
/* clang-format off */
static const struct {
    tn_dtype dtype;
    int32_t module[2];    // one column, more
    int32_t rows;         // module of the kernel for 2 to 8 columns on tensor cores; 0: none
    const char *entry[4]; // 1, 2, 4, 8 columns; NULL: the one for 4 runs them
    // Whether there are also kernels on tensor cores for 2 and for 3 and 4 columns, which multiply several
    // groups of k at a time in the columns that are left.
    bool narrow;
} entries[] = {
#define ENTRY(type, n) "tn_matvec_" #type "_" #n
#define PLAIN(type)                                                                                          \
    {TN_TYPE_##type,                                                                                         \
     {TN_CUDA_MODULE_matvec_common, TN_CUDA_MODULE_matvec_common_rows}, 0,                                   \
     {ENTRY(type, 1), ENTRY(type, 2), ENTRY(type, 4), ENTRY(type, 8)}, false}
// Kernels for 4 columns serve what those on tensor cores do not: compute capability 7.5, and weights that are
// not whole tiles.
#define BLOCKS(type, one, four, rows, narrow)                                                                \
    {TN_TYPE_##type,                                                                                         \
     {TN_CUDA_MODULE_##one, TN_CUDA_MODULE_##four}, TN_CUDA_MODULE_##rows,                                   \
     {ENTRY(type, 1), NULL, ENTRY(type, 4), NULL}, narrow}
    PLAIN(F16), PLAIN(BF16),
    {TN_TYPE_F32, {TN_CUDA_MODULE_matvec_blocks, TN_CUDA_MODULE_matvec_blocks}, 0,
     {ENTRY(F32, 1), NULL, ENTRY(F32, 4), NULL}, false},
    BLOCKS(Q4_0, matvec_common, matvec_common_rows, matvec_rows, true),
    BLOCKS(Q8_0, matvec_common, matvec_common_rows, matvec_rows, true),
    BLOCKS(Q4_K, matvec_common, matvec_common_rows, matvec_rows, true),
    BLOCKS(Q6_K, matvec_common, matvec_common_rows, matvec_rows, true),
    BLOCKS(Q5_K, matvec_blocks, matvec_blocks, matvec_rows, true),
    BLOCKS(Q4_1, matvec_blocks, matvec_blocks, matvec_rows_blocks, false),
    BLOCKS(Q5_0, matvec_blocks, matvec_blocks, matvec_rows_blocks, false),
    BLOCKS(Q5_1, matvec_blocks, matvec_blocks, matvec_rows_blocks, false),
    BLOCKS(Q2_K, matvec_blocks, matvec_blocks, matvec_rows_blocks, false),
    BLOCKS(Q3_K, matvec_blocks, matvec_blocks, matvec_rows_blocks, false),
    BLOCKS(IQ4_NL, matvec_blocks, matvec_blocks, matvec_rows_blocks, false),
    BLOCKS(IQ4_XS, matvec_blocks, matvec_blocks, matvec_rows_blocks, true),
    BLOCKS(MXFP4, matvec_blocks, matvec_blocks, matvec_rows_blocks, true),
    BLOCKS(NVFP4, matvec_blocks, matvec_blocks, matvec_rows_blocks, false),
    BLOCKS(IQ2_XXS, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(IQ2_XS, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(IQ2_S, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(IQ3_XXS, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(IQ3_S, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(IQ1_S, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(IQ1_M, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(TQ2_0, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(Q1_0, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
    BLOCKS(Q2_0, matvec_codebook, matvec_codebook, matvec_rows_codebook, false),
};
#undef ENTRY
#undef PLAIN
#undef BLOCKS
/* clang-format on */

static int32_t entry_of(tn_dtype t)
{
    for (int32_t i = 0; i < (int32_t)TN_COUNT(entries); i++)
        if (entries[i].dtype == t) return i;
    return -1;
}

// --- what is accepted --------------------------------------------------------------------------------

static bool columns_fit(const tn_product *p, int64_t max_tokens)
{
    int64_t n_rows = tn_view_n_rows(p->y[0]);
    if (p->ids)
        return p->ids->ne[2] <= max_tokens && n_rows <= MAX_PAIRS && p->ids->nb[2] % 4 == 0 &&
               p->ids->nb[3] % 4 == 0;
    return n_rows <= TN_MATVEC_MAX_COLUMNS && tn_cuda_row_distance(p->x) >= 0;
}

// Whether one row of x times this weight has a plan.
static bool has_plan(const tn_cuda *cuda, const tn_product *p, const tn_view *w)
{
    tn_cuda_matvec_args a = {.n_parts = 1,
                             .k = (int32_t)w->ne[3],
                             .n_virtual = (int32_t)w->ne[2],
                             .is_glu = p->glu != NULL,
                             .row_multiple = 1};
    tn_cuda_grid grid = {.y = 1};
    return tn_cuda_matvec_plan(cuda, cuda->n_sms, &a, w->dtype, 1, &grid);
}

static bool weight_fits(const tn_cuda *cuda, const tn_product *p, int32_t i, bool quantises)
{
    const tn_view *w = p->w[i];
    if (tn_cuda_row_distance(p->y[i]) < 0 || entry_of(w->dtype) < 0 || (p->glu && w->dtype != p->w[0]->dtype))
        return false;
    if (quantises ? !tn_cuda_matvec_quantises(w->dtype) : !tn_cuda_matvec_plain(w->dtype)) return false;
    // Weights without planes are copied in whole pieces of 16 bytes.
    bool whole = quantises || (w->ne[3] * (int64_t)tn_dtype_block_size(w->dtype)) % TN_MATVEC_ALIGN == 0;
    return whole && has_plan(cuda, p, w);
}

static bool accepts(const tn_cuda *cuda, const tn_step *step, bool quantises, int64_t max_tokens)
{
    tn_product p = tn_product_get(step);
    if (!tn_cuda_product_addressable(&p) || tn_view_n_elems(p.y[0]) == 0 || p.k == 0) return false;
    if (!columns_fit(&p, max_tokens)) return false;
    if (p.residual && tn_cuda_row_distance(p.residual) < 0) return false;
    for (int32_t i = 0; i < p.n_weights; i++)
        if (!weight_fits(cuda, &p, i, quantises)) return false;
    return true;
}

bool tn_cuda_matvec_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, false, TN_MATVEC_MAX_COLUMNS);
}

bool tn_cuda_matvec_i8_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, true, TN_MATVEC_MAX_COLUMNS);
}

// More tokens than matvec_i8 takes, before the kernels of whole tiles do.
bool tn_cuda_matvec_experts_accepts(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    if (!p.ids || p.ids->ne[2] <= TN_MATVEC_MAX_COLUMNS || tn_view_n_rows(p.y[0]) > p.n_experts) return false;
    tn_cuda_matvec_args a = tn_cuda_matvec_args_get(&p, p.w[0]->dtype);
    return tn_cuda_matvec_has_tiles(cuda, &a, p.w[0]->dtype) && accepts(cuda, step, true, MAX_TOKENS);
}

// --- quantised rows ----------------------------------------------------------------------------------

// Whether the kernels for 2 to 8 rows run this product of one result; those of vectors write quantised rows
// of one row alone.
static bool runs_rows(const tn_cuda *cuda, const tn_product *p)
{
    tn_dtype type = p->w[0]->dtype;
    int32_t entry = entry_of(type);
    if (entry < 0 || entries[entry].rows == 0) return false;
    tn_cuda_matvec_args a = tn_cuda_matvec_args_get(p, type);
    tn_cuda_grid grid = {.y = 1, .z = 1};
    bool planned = false;
    for (; a.n_columns > 1 && !planned; a.n_columns /= 2)
        planned = tn_cuda_matvec_plan_rows(cuda, cuda->n_sms, &a, type, &grid);
    return planned;
}

// The sums of a group of elements have to be in one block.
bool tn_cuda_matvec_writes_quantised(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    if (!tn_cuda_matvec_aligned(&p) || p.n_results != 1) return false;
    return p.ids || tn_view_n_rows(p.y[0]) == 1 || runs_rows(cuda, &p);
}

// Rows of x have to lie one after another.
bool tn_cuda_matvec_reads_quantised(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return tn_cuda_matvec_quantises(p.w[0]->dtype) && p.x->dtype == TN_TYPE_F32 && tn_view_contiguous(p.x);
}

// --- weights of one type -----------------------------------------------------------------------------

// Moves on to the columns behind those of the last launch.
static void skip_columns(tn_cuda_matvec_args *a)
{
    a->x += a->n_columns * a->x_stride;
    if (a->quantised_x.rows) a->quantised_x.rows += a->n_columns * a->quantised_x.row_size;
    if (a->quantised_y.rows) a->quantised_y.rows += a->n_columns * a->quantised_y.row_size;
    if (a->residual) a->residual += a->n_columns * a->residual_stride;
    for (int32_t i = 0; i < a->n_parts; i++) a->part[i].y += a->n_columns * a->part[i].y_stride;
}

// The kernel of 2 to 8 columns: its module, and its name up to the type.
static int32_t rows_module(tn_dtype type, int32_t n_columns, const char **name)
{
    int32_t entry = entry_of(type);
    if (entries[entry].narrow && n_columns <= 2)
        return *name = "tn_matvec_2_rows_", TN_CUDA_MODULE_matvec_2_rows;
    if (entries[entry].narrow && n_columns <= 4)
        return *name = "tn_matvec_4_rows_", TN_CUDA_MODULE_matvec_4_rows;
    return *name = "tn_matvec_rows_", entries[entry].rows;
}

// The first columns of those left, as many as one launch on tensor cores can do. False: none, and nothing was
// launched.
static bool launch_tiles(const tn_cuda_launch *l, tn_cuda_matvec_args *a, tn_dtype type, tn_cuda_grid *grid,
                         tn_status *status)
{
    char name[48];
    int32_t rest = a->n_columns, module = entries[entry_of(type)].rows;
    bool planned = false;
    while (a->n_columns > 1 && module > 0 && !planned) {
        planned = tn_cuda_matvec_plan_rows(l->cuda, l->cuda->n_sms, a, type, grid);
        if (!planned) a->n_columns /= 2;
    }
    if (planned) {
        const char *kernel = "tn_matvec_halves_";
        bool halves = tn_cuda_matvec_plan_halves(l->cuda, a, type, grid);
        module = halves ? TN_CUDA_MODULE_matvec_halves : rows_module(type, a->n_columns, &kernel);
        snprintf(name, sizeof name, "%s%s", kernel, tn_dtype_name(type));
    } else {
        planned = rest == 1 && tn_cuda_matvec_plan_tiles(l->cuda, l->cuda->n_sms, a, type, grid);
        module = TN_CUDA_MODULE_matvec_mma;
        snprintf(name, sizeof name, "tn_matvec_tiles_%s", tn_dtype_name(type));
    }
    if (planned)
        *status = tn_cuda_run(l, module, name, grid, a);
    else
        a->n_columns = rest;
    return planned;
}

// All columns, in launches of as many columns as the registers hold.
static tn_status launch_columns(const tn_cuda_launch *l, tn_cuda_matvec_args *a, tn_dtype type,
                                int64_t n_pairs)
{
    int32_t rest = a->n_columns, entry = entry_of(type);
    tn_status status = TN_OK;
    while (rest > 0 && status == TN_OK) {
        int32_t log = rest > 4 ? 3 : rest > 2 ? 2 : rest > 1 ? 1 : 0;
        tn_cuda_grid grid = {.y = (uint32_t)n_pairs, .z = 1};
        a->n_columns = rest;
        if (!launch_tiles(l, a, type, &grid, &status)) {
            if (!entries[entry].entry[log]) log = 2;
            while (!entries[entry].entry[log] ||
                   !tn_cuda_matvec_plan(l->cuda, l->cuda->n_sms, a, type, 1 << log, &grid))
                log--;
            a->n_columns = TN_MIN(rest, 1 << log);
            status = tn_cuda_run(l, entries[entry].module[log > 0], entries[entry].entry[log], &grid, a);
        }
        rest -= a->n_columns;
        skip_columns(a);
    }
    return status;
}

// --- weights of two types in one launch --------------------------------------------------------------

static const struct {
    tn_dtype dtype[2];
    const char *entry[2]; // PAIR_VECTORS, PAIR_TILES
} pairs[] = {
#define PAIR(a, b)                                                                                           \
    {                                                                                                        \
        {TN_TYPE_##a, TN_TYPE_##b},                                                                          \
        {                                                                                                    \
            "tn_matvec_" #a "_" #b, "tn_matvec_tiles_" #a "_" #b                                             \
        }                                                                                                    \
    }
    PAIR(Q4_K, Q6_K),
    PAIR(Q5_K, Q6_K),
#undef PAIR
};

// One row of x with dot products of vectors, or on tensor cores; more rows on tensor cores.
typedef enum pair_form { PAIR_VECTORS, PAIR_TILES, PAIR_ROWS } pair_form;
static const int32_t pair_module[] = {TN_CUDA_MODULE_matvec_pairs, TN_CUDA_MODULE_matvec_mma};

// The row of `pairs` that has exactly the types of the weights; -1: none.
static int32_t pair_of(const tn_product *p)
{
    for (int32_t i = 0; i < (int32_t)TN_COUNT(pairs); i++) {
        bool has[2] = {false, false}, other = false;
        for (int32_t k = 0; k < p->n_weights; k++) {
            bool first = p->w[k]->dtype == pairs[i].dtype[0], second = p->w[k]->dtype == pairs[i].dtype[1];
            has[0] |= first, has[1] |= second, other |= !first && !second;
        }
        if (has[0] && has[1] && !other) return i;
    }
    return -1;
}

// Multiprocessors for the weights of the first type that make the block with most bytes of either type short.
static int32_t share_sms(const tn_cuda_matvec_pair *a, int32_t pair, int32_t n_sms, int64_t share_rows)
{
    int32_t best = 1;
    int64_t least = INT64_MAX;
    for (int32_t n = 1; n < n_sms; n++) {
        int64_t bytes[2]; // of the block that has most
        for (int32_t i = 0; i < 2; i++) {
            int64_t row_size = (int64_t)tn_dtype_row_size(pairs[pair].dtype[i], a->of[i].k);
            bytes[i] =
                tn_div_up(a->of[i].n_virtual / share_rows, i == 0 ? n : n_sms - n) * share_rows * row_size;
        }
        if (TN_MAX(bytes[0], bytes[1]) < least) best = n, least = TN_MAX(bytes[0], bytes[1]);
    }
    return best;
}

static bool plan_of_form(const tn_cuda *cuda, pair_form form, int32_t max_blocks, tn_cuda_matvec_args *a,
                         tn_dtype type, tn_cuda_grid *grid)
{
    if (form == PAIR_VECTORS) return tn_cuda_matvec_plan(cuda, max_blocks, a, type, 1, grid);
    return form == PAIR_TILES ? tn_cuda_matvec_plan_tiles(cuda, max_blocks, a, type, grid)
                              : tn_cuda_matvec_plan_rows(cuda, max_blocks, a, type, grid);
}

// False where there is no plan, or blocks of the two types would differ in threads.
static bool plan_pair(const tn_cuda_launch *l, const tn_product *p, int32_t pair, pair_form form,
                      tn_cuda_matvec_pair *a, tn_cuda_grid *grid)
{
    for (int32_t i = 0; i < 2; i++) a->of[i] = tn_cuda_matvec_launch_args(l, p, pairs[pair].dtype[i]);
    int32_t n_sms = l->cuda->n_sms, share = form == PAIR_VECTORS ? 1 : TN_MATVEC_MMA_ROWS;
    int32_t first = share_sms(a, pair, n_sms, share);
    *grid = (tn_cuda_grid){.y = 1, .z = 1};
    for (int32_t i = 0; i < 2; i++) {
        tn_cuda_grid part = {.y = 1, .z = 1};
        tn_dtype t = pairs[pair].dtype[i];
        int32_t max_blocks = i == 0 ? first : n_sms - first;
        bool planned = plan_of_form(l->cuda, form, max_blocks, &a->of[i], t, &part);
        if (!planned || (i > 0 && part.threads != grid->threads)) return false;
        if (i == 0) a->first_blocks = (int32_t)part.x;
        grid->x += part.x;
        grid->threads = part.threads;
        grid->shared = TN_MAX(grid->shared, part.shared);
    }
    return true;
}

// False where there is no plan, and then nothing was launched.
static bool launch_pair(const tn_cuda_launch *l, const tn_product *p, int32_t pair, tn_status *status)
{
    tn_cuda_matvec_pair a;
    tn_cuda_grid grid;
    bool one_row = tn_view_n_rows(p->y[0]) == 1;
    pair_form form = one_row ? PAIR_TILES : PAIR_ROWS;
    bool planned = plan_pair(l, p, pair, form, &a, &grid);
    if (!planned && one_row) planned = plan_pair(l, p, pair, form = PAIR_VECTORS, &a, &grid);
    if (!planned) return false;
    if (form != PAIR_ROWS) {
        *status = tn_cuda_run(l, pair_module[form], pairs[pair].entry[form], &grid, &a);
    } else {
        char name[48];
        const char *kernel;
        const tn_dtype *types = pairs[pair].dtype;
        int32_t module = rows_module(types[0], a.of[0].n_columns, &kernel);
        snprintf(name, sizeof name, "%s%s_%s", kernel, tn_dtype_name(types[0]), tn_dtype_name(types[1]));
        *status = tn_cuda_run(l, module, name, &grid, &a);
    }
    return true;
}

// --- launch ------------------------------------------------------------------------------------------

tn_status tn_cuda_matvec_launch(const tn_cuda_launch *l)
{
    tn_product p = tn_product_get(l->step);
    tn_status status = TN_OK;
    if (!tn_cuda_matvec_aligned(&p)) return tn_cuda_matmul_any_launch(l);
    if (p.ids && p.glu && tn_cuda_matvec_glu_launch(l, &p, &status)) return status;
    int64_t n_rows = tn_view_n_rows(p.y[0]);
    int32_t pair = p.ids ? -1 : pair_of(&p);
    if (pair >= 0 && launch_pair(l, &p, pair, &status)) return status;
    bool done[TN_PRODUCT_MAX_WEIGHTS] = {false};
    for (int32_t i = 0; i < p.n_weights && status == TN_OK; i++) {
        if (done[i]) continue;
        tn_cuda_matvec_args a = tn_cuda_matvec_launch_args(l, &p, p.w[i]->dtype);
        for (int32_t j = i; j < p.n_weights; j++) done[j] |= p.w[j]->dtype == p.w[i]->dtype;
        status = launch_columns(l, &a, p.w[i]->dtype, p.ids ? n_rows : 1);
    }
    return status;
}
