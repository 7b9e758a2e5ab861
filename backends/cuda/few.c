// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of 9 to 64 rows (kernels/few.cuh): one launch for the weights of each type.
#include "backends/cuda/gemm.h"
#include "core/compiler.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 64, ALIGN = 256, THREADS = 256, BLOCKS_PER_SM = 2 };

// --- steps that are taken ----------------------------------------------------------------------------

static bool takes(const tn_cuda *cuda, const tn_step *step)
{
    // Copies to shared memory, and more of it than 64 KiB: compute capability 8.0.
    if (cuda->compute < 80 || tn_view_n_rows(&step->src[0]) > MAX_ROWS || !tn_cuda_gemm_takes(cuda, step)) return false;
    return step->op != TN_OP_matmul_glu || step->src[1].dtype == step->src[2].dtype;
}

bool tn_cuda_few_f16_type(tn_dtype type)
{
    return type == TN_TYPE_F16 || (tn_dtype_block_elems(type) > 1 && type != TN_TYPE_Q8_1 && type != TN_TYPE_Q8_K);
}

bool tn_cuda_few_accepts_bf16(const tn_cuda *cuda, const tn_step *step)
{
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++)
        if (step->src[1 + i].dtype != TN_TYPE_BF16) return false;
    return takes(cuda, step);
}

bool tn_cuda_few_accepts_f16(const tn_cuda *cuda, const tn_step *step)
{
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++)
        if (!tn_cuda_few_f16_type(step->src[1 + i].dtype)) return false;
    return takes(cuda, step);
}

static int64_t row_elems(const tn_step *step)
{
    return tn_div_up(step->src[0].ne[3], 8) * 8;
}

static size_t x_size(const tn_step *step)
{
    return (size_t)tn_div_up(tn_view_n_rows(&step->src[0]) * row_elems(step) * 2, ALIGN) * ALIGN;
}

// Tiles of a step, over all its weights, at most.
static int64_t count_tiles(const tn_step *step)
{
    int64_t n = 0;
    for (int32_t i = 0; i < tn_cuda_gemm_n_weights(step); i++) n += tn_div_up(step->src[1 + i].ne[2], TN_FEW_ROWS / 2);
    return n;
}

static size_t aligned(int64_t size)
{
    return (size_t)(tn_div_up(size, ALIGN) * ALIGN);
}

// x, scales of its rows, counters, sums of blocks that share tiles: as many blocks as are resident.
size_t tn_cuda_few_scratch(const tn_cuda *cuda, const tn_step *step)
{
    int64_t m = tn_view_n_rows(&step->src[0]), blocks = (int64_t)BLOCKS_PER_SM * cuda->n_sms;
    return x_size(step) + aligned(m * 4) + aligned(4 * count_tiles(step)) + aligned(blocks * m * TN_FEW_ROWS * 4);
}

// --- launches ----------------------------------------------------------------------------------------

// Blocks that share a tile: the fewest waves of stages, each block adding the cost of about two for its start and end.
static int32_t choose_splits(const tn_cuda *cuda, int64_t n_tiles, int64_t n_stages)
{
    int32_t best = 1;
    int64_t least = INT64_MAX, slots = (int64_t)BLOCKS_PER_SM * cuda->n_sms;
    for (int32_t s = 1; s <= TN_FEW_MAX_SPLITS && s <= n_stages; s++) {
        int64_t cost = tn_div_up(n_tiles * s, slots) * (tn_div_up(n_stages, s) + 2);
        if (cost < least && (s == 1 || n_tiles * s <= slots)) best = s, least = cost;
    }
    return best;
}

static void set_seg(const tn_step *step, const tn_cuda_gemm_operands *o, int32_t i, tn_cuda_few_args *a)
{
    const tn_view *w = &step->src[1 + i], *y = &step->dst[a->glu ? 0 : i];
    tn_cuda_few_seg *s = &a->seg[a->n_segs++];
    *s = (tn_cuda_few_seg){.w = tn_cuda_weight_planes(w), .y = y->data, .ld = y->ne[3], .n = (int32_t)w->ne[2], .first_tile = a->n_tiles};
    if (o->bias[i]) s->bias = o->bias[i]->data;
    bool plain = tn_dtype_block_elems(w->dtype) == 1;
    if (plain && ((uintptr_t)w->data % 16 != 0 || w->ne[3] % 16 != 0)) a->wide = 0;
    if (a->glu) a->n_tiles = (int32_t)tn_div_up(w->ne[2], TN_FEW_ROWS / 2);
    else a->n_tiles += (int32_t)tn_div_up(w->ne[2], TN_FEW_ROWS);
}

static tn_cuda_few_args make_args(const tn_cuda_launch *l, const tn_cuda_gemm_operands *o, bool f16)
{
    const tn_step *step = l->step;
    tn_cuda_few_args a;
    memset(&a, 0, sizeof a);
    a.x = l->scratch;
    a.row_scale = f16 ? (const float *)(const void *)(l->scratch + x_size(step)) : NULL;
    a.ld = row_elems(step);
    if (o->residual) {
        a.residual = o->residual->data;
        a.residual_ld = tn_cuda_row_stride(o->residual) / (int64_t)sizeof(float);
    }
    a.m = (int32_t)tn_view_n_rows(&step->src[0]);
    a.k = (int32_t)step->src[0].ne[3];
    a.wide = 1;
    a.act = o->act;
    if (step->op == TN_OP_matmul_glu) {
        const tn_matmul_glu_params *p = step->params;
        a.glu = 1;
        a.glu_limit = p->glu.limit;
        a.glu_alpha = p->glu.alpha;
    }
    return a;
}

// Types of kernels/few_codebook.cu.
static bool is_codebook(tn_dtype type)
{
    static const tn_dtype types[] = {
        TN_TYPE_NVFP4, TN_TYPE_IQ2_XXS, TN_TYPE_IQ2_XS, TN_TYPE_IQ2_S, TN_TYPE_IQ3_XXS, TN_TYPE_IQ3_S,
        TN_TYPE_IQ1_S, TN_TYPE_IQ1_M,   TN_TYPE_TQ1_0,  TN_TYPE_TQ2_0, TN_TYPE_Q1_0,    TN_TYPE_Q2_0,
    };
    for (size_t i = 0; i < TN_COUNT(types); i++)
        if (types[i] == type) return true;
    return false;
}

tn_status tn_cuda_few_run(const tn_cuda_launch *l, tn_cuda_few_args *a, tn_dtype type, int64_t row_tiles)
{
    int32_t columns = a->m <= 32 ? 32 : 64;
    size_t stages = (size_t)TN_FEW_STAGES * (size_t)columns * (TN_FEW_K + TN_FEW_PAD) * 2;
    size_t sums = (size_t)4 * TN_FEW_ROWS * (size_t)(columns + TN_FEW_PAD) * sizeof(float);
    a->splits = row_tiles == 1 && a->arrived ? choose_splits(l->cuda, a->n_tiles, tn_div_up(a->k, TN_FEW_K)) : 1;
    char name[48];
    snprintf(name, sizeof name, "tn_few_%s_%d", tn_dtype_name(type), columns);
    tn_cuda_grid grid = {.x = (uint32_t)(a->n_tiles * a->splits), .y = (uint32_t)row_tiles, .z = 1, .threads = THREADS, .shared = (uint32_t)TN_MAX(stages, sums)};
    return tn_cuda_run(l, is_codebook(type) ? TN_CUDA_MODULE_few_codebook : TN_CUDA_MODULE_few, name, &grid, a);
}

tn_status tn_cuda_few_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    tn_cuda_gemm_operands o = tn_cuda_gemm_find(step);
    bool f16 = step->src[1].dtype != TN_TYPE_BF16;
    tn_cuda_gemm_x_args x = {
        .to = l->scratch, .m = (int32_t)tn_view_n_rows(&step->src[0]), .ld = row_elems(step), .mode = f16 ? TN_GEMM_F16 : TN_GEMM_BF16};
    if (f16) x.row_scale = (float *)(void *)(l->scratch + x_size(step));
    char *at = l->scratch + x_size(step) + aligned((int64_t)x.m * 4);
    x.zero = (int32_t *)(void *)at;
    x.n_zero = (int32_t)count_tiles(step);
    at += aligned(4 * count_tiles(step));
    tn_status status = tn_cuda_gemm_prepare_x(l, x, &o);
    int32_t n = tn_cuda_gemm_n_weights(step), first_tile = 0;
    bool done[TN_GEMM_MAX_SEGS] = {false};
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        if (done[i]) continue;
        tn_cuda_few_args a = make_args(l, &o, f16);
        tn_dtype type = step->src[1 + i].dtype;
        for (int32_t k = i; k < n; k++) {
            if (step->src[1 + k].dtype != type) continue;
            set_seg(step, &o, k, &a);
            done[k] = true;
        }
        a.partial = (float *)(void *)at;
        a.arrived = x.zero + first_tile;
        first_tile += a.n_tiles;
        status = tn_cuda_few_run(l, &a, type, 1);
    }
    return status;
}
