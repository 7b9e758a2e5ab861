// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope, norm_rope and cache_write: one warp per head of a token.
#include "backends/cuda/rope/rope_args.h"
#include "backends/cuda/runtime/rows.h"
#include "ops/operands.h"
#include "ops/rope.h"

#include <assert.h>

// Warps that fill the device: where there would be more, each rotates several heads and computes the angles
// once.
enum { WARP = 32, ENOUGH_WARPS = 8192, MOST_HEADS = 8 };

// rope and norm_rope: x is their first source, and factors come right after pos.
static_assert(TN_SRC_rope_factors == TN_SRC_rope_pos + 1 &&
                  TN_SRC_norm_rope_factors == TN_SRC_norm_rope_pos + 1,
              "");

static bool accepts_rope(const tn_step *step, const tn_rope_params *p, int32_t pos)
{
    const tn_view *x = &step->src[0];
    return tn_cuda_f32_rows(x) && tn_cuda_f32_rows(&step->dst[0]) && x->ne[0] == 1 && x->ne[1] <= INT32_MAX &&
           x->ne[2] <= 65535 && tn_cuda_i32_run(&step->src[pos]) &&
           (!tn_step_has_src(step, pos + 1) || tn_cuda_f32_rows(&step->src[pos + 1])) &&
           x->ne[3] <= 2 * WARP * TN_CUDA_ROPE_LANE_PAIRS && p->n_rot <= 2 * TN_CUDA_ROPE_PAIRS;
}

static tn_status run(const tn_cuda_launch *l, const tn_rope_params *p, int32_t pos, tn_cuda_rope_args *a)
{
    const tn_step *s = l->step;
    const tn_view *x = &s->src[0];
    a->x = tn_cuda_view_of(x);
    a->y = tn_cuda_view_of(&s->dst[0]);
    a->pos = s->src[pos].data;
    a->factors = tn_cuda_vector(s, pos + 1);
    a->scale = p->attn_factor != 0.0f ? p->attn_factor : 1.0f;
    a->neox = p->mode == TN_ROPE_NEOX;
    a->n_rot = p->n_rot;
    // Scaling and YaRN keep the angle linear in the position.
    for (int32_t t = 0; t < p->n_rot / 2; t++)
        a->half_turns[t] = tn_scalar_rope_angle(p, 1, t, 1.0) / 3.14159265358979323846;
    int64_t per_warp = x->ne[1] * x->ne[2] / ENOUGH_WARPS;
    a->heads = (int32_t)TN_MAX(TN_MIN(per_warp, (int64_t)MOST_HEADS), (int64_t)1);
    tn_cuda_grid grid = {.x = (uint32_t)x->ne[1],
                         .y = (uint32_t)tn_div_up(tn_div_up(x->ne[2], a->heads), TN_CUDA_ROPE_WARPS),
                         .z = 1,
                         .threads = WARP * TN_CUDA_ROPE_WARPS};
    int64_t pairs = tn_div_up(x->ne[3], 2 * WARP);
    char entry[32];
    snprintf(entry, sizeof entry, "tn_%srope_%d", a->weight ? "norm_" : "",
             pairs <= 2   ? (int)pairs
             : pairs <= 4 ? 4
                          : TN_CUDA_ROPE_LANE_PAIRS);
    return tn_cuda_run(l, TN_CUDA_MODULE_rope, entry, &grid, a);
}

bool tn_cuda_rope_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return accepts_rope(step, step->params, TN_SRC_rope_pos);
}

tn_status tn_cuda_rope_launch(const tn_cuda_launch *l)
{
    tn_cuda_rope_args a = {.weight = NULL};
    return run(l, l->step->params, TN_SRC_rope_pos, &a);
}

bool tn_cuda_norm_rope_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_norm_rope_params *p = step->params;
    return tn_step_has_src(step, TN_SRC_norm_rope_w) && tn_cuda_f32_rows(&step->src[TN_SRC_norm_rope_w]) &&
           accepts_rope(step, &p->rope, TN_SRC_norm_rope_pos);
}

tn_status tn_cuda_norm_rope_launch(const tn_cuda_launch *l)
{
    const tn_norm_rope_params *p = l->step->params;
    tn_cuda_rope_args a = {.weight = l->step->src[TN_SRC_norm_rope_w].data, .eps = p->eps};
    return run(l, &p->rope, TN_SRC_norm_rope_pos, &a);
}

bool tn_cuda_cache_write_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *cache = &step->dst[0], *x = &step->src[TN_SRC_cache_write_x];
    bool known = cache->dtype == TN_TYPE_F32 || cache->dtype == TN_TYPE_F16 || cache->dtype == TN_TYPE_BF16 ||
                 cache->dtype == TN_TYPE_Q8_0 || cache->dtype == TN_TYPE_Q4_0;
    return known && tn_view_rows_contiguous(cache) && tn_cuda_f32_rows(x) && x->ne[0] == 1 &&
           x->ne[3] <= cache->ne[3] && tn_cuda_i32_run(&step->src[TN_SRC_cache_write_slots]) &&
           cache->ne[2] > 0 && cache->ne[3] <= INT32_MAX / 4 && x->ne[1] * x->ne[2] <= INT32_MAX;
}

tn_status tn_cuda_cache_write_launch(const tn_cuda_launch *l)
{
    const tn_view *x = &l->step->src[TN_SRC_cache_write_x];
    tn_cuda_cache_write_args a = {.cache = tn_cuda_view_of(&l->step->dst[0]),
                                  .x = tn_cuda_view_of(x),
                                  .slots = l->step->src[TN_SRC_cache_write_slots].data,
                                  .type = l->step->dst[0].dtype,
                                  .n_rows = (uint32_t)(x->ne[1] * x->ne[2])};
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(a.n_rows, TN_CUDA_ROPE_WARPS),
                         .y = 1,
                         .z = 1,
                         .threads = WARP * TN_CUDA_ROPE_WARPS};
    return tn_cuda_run(l, TN_CUDA_MODULE_cache_write, "tn_cache_write", &grid, &a);
}
