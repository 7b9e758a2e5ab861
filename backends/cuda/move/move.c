// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// copy, concat, get_rows.
#include "backends/cuda/move/move_args.h"
#include "backends/cuda/runtime/rows.h"
#include "ops/quant.h"

static bool fits(const tn_view *y)
{
    return tn_view_n_rows(y) * tn_div_up(y->ne[3], 4 * TN_CUDA_SPLIT_THREADS) <= INT32_MAX &&
           tn_view_n_elems(y) / (4 * TN_CUDA_SPLIT_THREADS) <= INT32_MAX;
}

static bool is_float(tn_dtype t)
{
    return t == TN_TYPE_F32 || t == TN_TYPE_F16 || t == TN_TYPE_BF16;
}

// --- get_rows, copy from block types -----------------------------------------------------------------

static tn_status run_table(const tn_cuda_launch *l, tn_cuda_table_args *a)
{
    const tn_view *table = &l->step->src[0], *y = &l->step->dst[0];
    bool plain = tn_dtype_block_elems(table->dtype) == 1;
    char entry[32];
    a->from = table->dtype;
    a->to = y->dtype;
    a->n_table = table->ne[2];
    a->y = tn_cuda_view_of(y);
    a->table = tn_cuda_weight_planes(table);
    if (!a->ids) { // rows of a copy are counted in blocks
        tn_cuda_pack_args layout;
        tn_cuda_layout_get(table->dtype, &layout);
        for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++) a->table.row_size[p] = layout.plane_bytes[p];
    }
    a->aligned = tn_cuda_aligned(&a->y, (int64_t)tn_dtype_block_size(y->dtype));
    if (plain) {
        tn_cuda_view x = tn_cuda_view_of(table);
        a->table.row_size[0] = table->nb[2];
        a->aligned = a->aligned && tn_cuda_aligned(&x, (int64_t)tn_dtype_block_size(table->dtype));
    }
    a->split = tn_cuda_split_of(&a->y, tn_div_up(y->ne[3], plain ? 4 : 16));
    tn_cuda_grid grid = tn_cuda_split_grid(&a->split);
    snprintf(entry, sizeof entry, "tn_table_%s", tn_dtype_name(table->dtype));
    return tn_cuda_run(l, TN_CUDA_MODULE_get_rows, entry, &grid, a);
}

bool tn_cuda_get_rows_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *table = &step->src[0];
    return tn_quant_info_get(table->dtype)->to_f32 && tn_view_rows_contiguous(table) && table->ne[0] == 1 &&
           table->ne[1] == 1 && tn_cuda_i32_run(&step->src[1]) && tn_cuda_f32_rows(&step->dst[0]) &&
           fits(&step->dst[0]);
}

tn_status tn_cuda_get_rows_launch(const tn_cuda_launch *l)
{
    const tn_get_rows_params *p = l->step->params;
    tn_cuda_table_args a = {.ids = l->step->src[1].data, .scale = p->scale != 0.0f ? p->scale : 1.0f};
    return run_table(l, &a);
}

bool tn_cuda_copy_blocks_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    return tn_dtype_block_elems(x->dtype) > 1 && tn_quant_info_get(x->dtype)->to_f32 &&
           tn_view_rows_contiguous(x) && is_float(y->dtype) && tn_view_contiguous(y) && fits(y);
}

tn_status tn_cuda_copy_blocks_launch(const tn_cuda_launch *l)
{
    const tn_view *x = &l->step->src[0];
    tn_cuda_table_args a = {.scale = 1.0f};
    for (int32_t d = 0; d < 3; d++) a.row_step[d] = x->nb[d] / (int64_t)tn_dtype_block_size(x->dtype);
    return run_table(l, &a);
}

// --- copy, concat ------------------------------------------------------------------------------------

bool tn_cuda_copy_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    if (tn_dtype_block_elems(x->dtype) > 1 || !tn_view_contiguous(y) || !fits(y)) return false;
    if (x->dtype == TN_TYPE_I32) return y->dtype == TN_TYPE_I32;
    return is_float(y->dtype) && tn_quant_info_get(x->dtype)->to_f32;
}

tn_status tn_cuda_copy_launch(const tn_cuda_launch *l)
{
    const tn_view *x = &l->step->src[0], *y = &l->step->dst[0];
    int64_t size = (int64_t)tn_dtype_block_size(x->dtype), per_thread = 4;
    tn_cuda_move_args a = {
        .x = tn_cuda_view_of(x), .y = tn_cuda_view_of(y), .from = x->dtype, .to = y->dtype};
    tn_cuda_view *views[] = {&a.y, &a.x};
    tn_cuda_views_merge(views, 2, true);
    const char *entry = "tn_copy";
    bool aligned =
        tn_cuda_aligned(&a.x, size) && tn_cuda_aligned(&a.y, (int64_t)tn_dtype_block_size(y->dtype));
    if (aligned && x->dtype == y->dtype && a.x.ne[3] * size % 16 == 0) {
        entry = "tn_copy_bytes";
        a.x.ne[3] = a.y.ne[3] = a.x.ne[3] * size / 16;
        per_thread = 1;
    } else if (aligned && x->dtype == TN_TYPE_F32 && size != (int64_t)tn_dtype_block_size(y->dtype) &&
               a.x.ne[3] % 4 == 0) {
        entry = "tn_copy_narrow";
    }
    a.split = tn_cuda_split_of(&a.y, tn_div_up(a.y.ne[3], per_thread));
    tn_cuda_grid grid = tn_cuda_split_grid(&a.split);
    return tn_cuda_run(l, TN_CUDA_MODULE_move, entry, &grid, &a);
}

bool tn_cuda_concat_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *y = &step->dst[0];
    return (y->dtype == TN_TYPE_F32 || y->dtype == TN_TYPE_I32) && step->src[0].dtype == y->dtype &&
           step->src[1].dtype == y->dtype && tn_view_contiguous(y) && fits(y);
}

tn_status tn_cuda_concat_launch(const tn_cuda_launch *l)
{
    const tn_concat_params *p = l->step->params;
    const tn_view *y = &l->step->dst[0];
    tn_cuda_move_args a = {.x = tn_cuda_view_of(&l->step->src[0]),
                           .x2 = tn_cuda_view_of(&l->step->src[1]),
                           .y = tn_cuda_view_of(y),
                           .axis = TN_MAX_DIMS - y->n_dims + p->axis};
    bool aligned = tn_cuda_aligned(&a.y, 4);
    a.aligned = aligned && tn_cuda_aligned(&a.x, 4);
    a.aligned2 = aligned && tn_cuda_aligned(&a.x2, 4);
    a.split = tn_cuda_split_of(&a.y, tn_div_up(y->ne[3], 4));
    tn_cuda_grid grid = tn_cuda_split_grid(&a.split);
    return tn_cuda_run(l, TN_CUDA_MODULE_move, "tn_concat", &grid, &a);
}
