// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of quantised weights with activations rounded to bytes: first round.comp, once for all products of
// the step, then dot.comp.
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"

#include <string.h>

enum { FEW_ROWS = 8, GROUP = 32, GROUPS = 32, SUBGROUPS = 4 };
// Constants of dot.comp.
enum { C_TYPE, C_PAIRED, C_ROWS, C_ALIGNED, C_THREADS, C_COLUMNS, C_SPLIT, C_DEPTH, C_TURNS };
// Constants of single.comp.
enum { S_TYPE, S_FORM, S_SPLIT, S_THREADS = 4, S_RESULTS, S_DEPTH, S_LANES };

int64_t tn_vk_quantised_size(int64_t k)
{
    return (k + k / 4 + k / 8 + 15) / 16 * 16;
}

typedef struct unit { // shaders/units.glsl
    tn_dtype type;
    int32_t elems, words; // words: that a lane holds of it
} unit;

// NULL: the type has none.
static const unit *unit_of(tn_dtype type)
{
    static const unit units[] = {
        {TN_TYPE_Q4_0, 32, 5},  {TN_TYPE_Q4_1, 32, 5},  {TN_TYPE_Q5_0, 32, 6},   {TN_TYPE_Q5_1, 32, 6},
        {TN_TYPE_Q8_0, 16, 5},  {TN_TYPE_Q2_K, 64, 7},  {TN_TYPE_Q3_K, 64, 12},  {TN_TYPE_Q4_K, 32, 8},
        {TN_TYPE_Q5_K, 32, 12}, {TN_TYPE_Q6_K, 32, 11}, {TN_TYPE_IQ4_NL, 32, 5}, {TN_TYPE_IQ4_XS, 32, 6},
        {TN_TYPE_MXFP4, 32, 5},
    };
    for (size_t i = 0; i < TN_COUNT(units); i++)
        if (units[i].type == type) return &units[i];
    return NULL;
}

static bool is_paired(const tn_step *step)
{
    return step->op == TN_OP_matmul_glu || step->op == TN_OP_matmul_id_glu;
}

static int32_t n_weights(const tn_step *step)
{
    return step->op == TN_OP_matmul_multi ? ((const tn_matmul_multi_params *)step->params)->n_weights
                                          : 1 + is_paired(step);
}

bool tn_vk_accepts_gemv_int8_any(const tn_step *step)
{
    bool may_round = step->precision == TN_PRECISION_auto || step->precision == TN_PRECISION_int8;
    for (int32_t i = 0; i < n_weights(step) && may_round; i++)
        may_round = unit_of(step->src[1 + i].dtype) != NULL;
    if (is_paired(step)) may_round = may_round && step->src[1].dtype == step->src[2].dtype;
    return may_round && tn_vk_accepts_indexable(step);
}

bool tn_vk_accepts_gemv_int8(const tn_step *step)
{
    return tn_view_n_rows(&step->src[0]) <= FEW_ROWS && tn_vk_accepts_gemv_int8_any(step);
}

bool tn_vk_accepts_gemv_float_any(const tn_step *step)
{
    tn_dtype type = step->src[1].dtype;
    bool plain = type == TN_TYPE_F32 || type == TN_TYPE_F16 || type == TN_TYPE_BF16;
    for (int32_t i = 0; i < n_weights(step) && plain; i++) {
        tn_dtype t = step->src[1 + i].dtype;
        plain = t == TN_TYPE_F32 || t == TN_TYPE_F16 || t == TN_TYPE_BF16;
    }
    if (is_paired(step)) plain = plain && step->src[2].dtype == type;
    return plain && tn_vk_accepts_indexable(step);
}

bool tn_vk_accepts_gemv_float(const tn_step *step)
{
    return tn_view_n_rows(&step->src[0]) <= FEW_ROWS && tn_vk_accepts_gemv_float_any(step);
}

// How the work is cut. A large device wants some thousand subgroups, and several loads of each lane on their
// way; a software driver has little to fill, compiles slowly, and gains by every load of x that is saved.
static void choose(tn_vk_dispatch *d, const tn_view *w, const unit *u, int32_t rows, bool paired)
{
    enum { MANY = 4096, WIDE = 4096, VERY_WIDE = 8192, LOADS = 4, FEW_WORDS = 8 };
    int32_t *c = d->constants;
    int64_t columns = w->ne[2], turns = w->ne[3] / u->elems / d->v->subgroup;
    bool software = d->v->device->software;
    c[C_ROWS] = rows <= 2 ? rows : rows <= 4 || software ? 4 : FEW_ROWS;
    c[C_COLUMNS] = paired || columns >= WIDE || software ? 2 : 1;
    c[C_SPLIT] = c[C_DEPTH] = 1;
    if (software) return;
    // Activations that are not rounded cost as many loads as weights: four columns share them.
    if (d->shader == TN_VK_SHADER_gemv_float && columns >= VERY_WIDE && rows <= 2) c[C_COLUMNS] = 4;
    // Each result needs a lane that finishes it.
    if (!paired && c[C_ROWS] * c[C_COLUMNS] > (int32_t)d->v->subgroup) c[C_COLUMNS] = 1;
    while (!d->left && c[C_SPLIT] < SUBGROUPS && columns * c[C_SPLIT] < MANY && turns >= 4 * c[C_SPLIT])
        c[C_SPLIT] *= 2;
    // Short matrices have few subgroups, and plain units take few registers: more of them at a time.
    bool plain = d->shader == TN_VK_SHADER_gemv_float,
         deep = plain || (!paired && columns < VERY_WIDE && u->words <= FEW_WORDS);
    int32_t most = rows > 2 ? 2 : TN_MIN((deep ? 2 * LOADS : LOADS) / c[C_COLUMNS], LOADS);
    while (c[C_DEPTH] < most && turns >= 2 * c[C_SPLIT] * c[C_DEPTH]) c[C_DEPTH] *= 2;
}

static bool may_leave(const tn_vk_dispatch *d)
{
    int32_t op = d->like->op;
    bool one = op == TN_OP_matmul || op == TN_OP_linear || op == TN_OP_matmul_glu;
    return one && d->like->dst[0].ne[3] % GROUP == 0;
}

// Subgroups of a workgroup that leaves its results. Those of short matrices have a multiprocessor to
// themselves on a large device, and need all that it can have on its way.
static int32_t leaving_subgroups(const tn_vk_dispatch *d, int32_t wide)
{
    enum { MANY = 8192, OF_MANY = 8, OF_FEW = 16 };
    if (d->v->device->software) return SUBGROUPS;
    int32_t n = d->like->dst[0].ne[3] >= MANY ? OF_MANY : OF_FEW;
    while (n > 1 && (n * wide > GROUP || n * (int32_t)d->v->subgroup > (int32_t)d->v->max_threads)) n /= 2;
    return n;
}

// single.comp takes it.
static bool is_single(const tn_vk_dispatch *d, tn_dtype type, int32_t rows)
{
    bool in_chunks = type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K || type == TN_TYPE_Q6_K;
    return in_chunks && rows == 1 && d->v->has & TN_VK_SHUFFLE && d->v->subgroup >= 4;
}

typedef struct single { // how single.comp cuts a product
    int32_t subgroups, results, depth;
} single;

// A large device hides what is on its way behind other subgroups, not behind more rows of one: measured on an
// H200. Who leaves results as bytes has a whole group of them.
static const single *choose_single(const tn_vk_dispatch *d, int64_t columns, bool paired)
{
    enum { MANY = 8192 };
    static const single of_software = {SUBGROUPS, GROUP, 2}, gated = {8, GROUP, 2}, leaving = {8, GROUP, 2},
                        few_leaving = {32, GROUP, 1}, few = {8, 16, 2}, many = {4, 16, 1},
                        few_gated = {8, 8, 2};
    if (d->v->device->software) return &of_software;
    if (paired) return d->left ? &gated : &few_gated;
    if (d->left) return columns < MANY ? &few_leaving : &leaving;
    return columns < MANY ? &few : &many;
}

static void launch_single(const tn_step *step, const tn_view *w, tn_vk_dispatch *d)
{
    enum { CHUNK = 64 };
    int32_t *c = d->constants, *n = d->args.n, subgroup = (int32_t)d->v->subgroup;
    bool paired = is_paired(step), software = d->v->device->software;
    const single *form = choose_single(d, w->ne[2], paired);
    int32_t subgroups = form->subgroups, results = form->results, depth = form->depth;
    int32_t positions = (int32_t)((w->ne[3] / CHUNK + subgroup - 1) / subgroup);
    while (subgroups * subgroup > (int32_t)d->v->max_threads) subgroups /= 2;
    int32_t split = software ? 1 : TN_MAX(1, TN_MIN(positions, subgroups)), teams = 1;
    int32_t rows = paired ? 2 * results : results;
    while (2 * teams * split <= subgroups && 2 * teams * depth <= rows) teams *= 2;
    memset(c, 0, sizeof d->constants);
    c[S_TYPE] = w->dtype;
    c[S_FORM] = (paired ? 1 : 0) | (d->left ? 2 : 0);
    c[S_SPLIT] = split;
    c[S_THREADS] = teams * split * subgroup;
    c[S_RESULTS] = results;
    c[S_DEPTH] = depth;
    c[S_LANES] = subgroup;
    d->shader = TN_VK_SHADER_gemv_k_quant;
    d->groups = (int64_t)n[TN_VK_N_ROWS] * ((n[TN_VK_N_COLUMNS] + results - 1) / results);
}

static void launch_product(const tn_step *step, int32_t i, const unit *u, tn_vk_dispatch *d)
{
    int32_t *n = d->args.n, *c = d->constants, weight = step->op == TN_OP_matmul_multi ? 1 + i : 1;
    int32_t rows = n[TN_VK_N_IDS] >= 0 ? 1 : n[TN_VK_N_ROWS];
    bool paired = is_paired(step);
    d->left = d->leaves && may_leave(d);
    if (d->shader == TN_VK_SHADER_gemv_int8 && is_single(d, (tn_dtype)c[C_TYPE], rows)) {
        launch_single(step, &d->like->src[weight], d);
        return;
    }
    c[C_PAIRED] = paired;
    choose(d, &d->like->src[weight], u, rows, paired);
    int32_t wide = paired ? c[C_COLUMNS] / 2 : c[C_COLUMNS];
    int32_t subgroups = d->left ? leaving_subgroups(d, wide) : SUBGROUPS,
            each = wide * subgroups / c[C_SPLIT];
    c[C_THREADS] = subgroups * (int32_t)d->v->subgroup;
    if (d->left) {
        c[C_TURNS] = GROUP / each;
        each = GROUP;
    }
    int64_t blocks = (n[TN_VK_N_ROWS] + c[C_ROWS] - 1) / c[C_ROWS];
    d->groups = blocks * ((n[TN_VK_N_COLUMNS] + each - 1) / each);
}

int32_t tn_vk_launch_gemv_float(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int32_t count = tn_vk_set_product(step, i, d), weight = step->op == TN_OP_matmul_multi ? 1 + i : 1;
    bool aligned = tn_vk_aligned_rows(&step->src[0]) && tn_vk_aligned_rows(&step->src[weight]);
    if (is_paired(step)) aligned = aligned && tn_vk_aligned_rows(&step->src[2]);
    if (d->args.n[TN_VK_N_NORM] >= 0)
        aligned = aligned && tn_vk_aligned_rows(&step->src[d->args.n[TN_VK_N_NORM]]);
    d->shader = TN_VK_SHADER_gemv_float;
    d->constants[C_ALIGNED] = aligned;
    unit u = {.elems = step->src[weight].dtype == TN_TYPE_F32 ? 4 : 8, .words = 4};
    launch_product(step, i, &u, d);
    return count;
}

int32_t tn_vk_launch_gemv_int8(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int64_t k = step->src[0].ne[3], rows = tn_view_n_rows(&step->src[0]);
    int32_t product = TN_MAX(i - 1, 0);
    int32_t count = tn_vk_set_product(step, product, d) + 1;
    d->scratch = d->reads_left ? 0 : tn_vk_quantised_size(k) * rows;
    if (i == 0) {
        memset(d->constants, 0, sizeof d->constants);
        d->shader = TN_VK_SHADER_quantise_int8;
        d->groups = d->reads_left ? 0 : (rows * (k / GROUP) + GROUPS - 1) / GROUPS;
        return count;
    }
    d->shader = TN_VK_SHADER_gemv_int8;
    d->after = i == 1 && !d->reads_left; // products of one step do not wait for each other
    launch_product(step, product, unit_of((tn_dtype)d->constants[C_TYPE]), d);
    return count;
}
