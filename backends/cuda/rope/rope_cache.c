// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope_cache: norm and rotation of q and k and the write of k and v to the caches, in one launch.
#include "backends/cuda/attention/attention.h"
#include "backends/cuda/runtime/rows.h"
#include "ops/operands.h"
#include "ops/rope.h"

enum {
    CACHE_K = TN_SRC_rope_cache_cache_k,
    CACHE_V = TN_SRC_rope_cache_cache_v,
    Q = TN_SRC_rope_cache_q,
    K = TN_SRC_rope_cache_k,
    V = TN_SRC_rope_cache_v,
    POS = TN_SRC_rope_cache_pos,
    SLOTS = TN_SRC_rope_cache_slots,
    NORM_Q = TN_SRC_rope_cache_norm_q,
    FACTORS = TN_SRC_rope_cache_factors,
};
// Warps that fill the device: where there would be more, each rotates several heads and computes the angles
// once.
enum { ROPE_WARPS = 4, ROPE_ENOUGH_WARPS = 8192, ROPE_MOST_HEADS = 8 };

static bool is_cache_type(tn_dtype t)
{
    return t == TN_TYPE_F32 || t == TN_TYPE_F16 || t == TN_TYPE_BF16 || t == TN_TYPE_Q8_0 ||
           t == TN_TYPE_Q4_0;
}

bool tn_cuda_rope_cache_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_rope_cache_params *p = step->params;
    bool ok = p->rope.n_rot / 2 <= TN_CUDA_MAX_PAIRS && step->src[Q].ne[1] <= 65535;
    for (int32_t i = Q; i <= V; i++)
        ok = ok && step->src[i].dtype == TN_TYPE_F32 && step->src[i].ne[0] == 1 &&
             step->src[i].ne[3] <= TN_CUDA_ROPE_CACHE_HEAD;
    for (int32_t i = CACHE_K; i <= CACHE_V; i++) {
        const tn_view *c = &step->src[i];
        ok = ok && is_cache_type(c->dtype) && tn_view_rows_contiguous(c) && c->ne[0] * c->ne[2] <= INT32_MAX;
    }
    return ok && tn_view_rows_contiguous(&step->dst[TN_DST_rope_cache_q]) &&
           step->src[CACHE_K].ne[2] == step->src[CACHE_V].ne[2];
}

static void put_cache(tn_cuda_rope_cache_args *a, int32_t i, const tn_view *c)
{
    a->cache[i] = c->data;
    for (int32_t d = 0; d < 3; d++) a->cache_nb[i][d] = c->nb[d];
    a->cache_type[i] = c->dtype;
    a->cache_row[i] = (int32_t)c->ne[3];
    a->block = (int32_t)c->ne[2];
    a->n_slots = (int32_t)(c->ne[0] * c->ne[2]);
}

// Elements are adjacent and rows aligned to 8 bytes, so that pairs can be read at once.
static bool is_even(const tn_cuda_view *v)
{
    return v->nb[3] == 4 && ((int64_t)(uintptr_t)v->data | v->nb[1] | v->nb[2]) % 8 == 0;
}

tn_cuda_rope_cache_args tn_cuda_rope_cache_args_of(const tn_step *s)
{
    const tn_rope_cache_params *p = s->params;
    tn_cuda_rope_cache_args a = {
        .q = tn_cuda_view_of(&s->src[Q]),
        .k = tn_cuda_view_of(&s->src[K]),
        .v = tn_cuda_view_of(&s->src[V]),
        .out = tn_cuda_view_of(&s->dst[TN_DST_rope_cache_q]),
        .out_type = TN_TYPE_F32,
        .pos = s->src[POS].data,
        .pos_nb = s->src[POS].nb[3],
        .slots = s->src[SLOTS].data,
        .slots_nb = s->src[SLOTS].nb[3],
        .factors = tn_step_has_src(s, FACTORS) ? s->src[FACTORS].data : NULL,
        .eps = p->eps,
        .m = p->rope.attn_factor != 0.0f ? p->rope.attn_factor : 1.0f,
        .neox = p->rope.mode == TN_ROPE_NEOX,
        .n_rot = p->rope.n_rot,
    };
    for (int32_t i = 0; i < 2; i++) {
        put_cache(&a, i, &s->src[CACHE_K + i]);
        a.norm[i] = p->has_norm[i] ? s->src[NORM_Q + i].data : NULL;
    }
    a.pairs = !a.neox && is_even(&a.q) && is_even(&a.k) && is_even(&a.out);
    // The angle is linear in the position, with scaling and YaRN too.
    for (int32_t t = 0; t < p->rope.n_rot / 2; t++)
        a.half_turns[t] = tn_scalar_rope_angle(&p->rope, 1, t, 1.0) / 3.14159265358979323846;
    return a;
}

// Elements are adjacent, and rows start at multiples of 16 bytes.
static bool is_wide(const tn_cuda_view *v)
{
    return v->nb[3] == 4 && ((int64_t)(uintptr_t)v->data | v->nb[1] | v->nb[2]) % 16 == 0;
}

// Whether a block can have a whole token (tn_rope_cache_token).
static bool whole_tokens(const tn_step *s, const tn_cuda_rope_cache_args *a)
{
    int64_t d = a->q.ne[3];
    bool fits = d >= 32 && d <= 256 && (d & (d - 1)) == 0 && a->n_rot == d && a->k.ne[3] == d &&
                a->v.ne[3] == d && is_wide(&a->q) && is_wide(&a->k) && is_wide(&a->v) && is_wide(&a->out);
    for (int32_t i = 0; i < 2; i++) {
        const tn_view *c = &s->src[CACHE_K + i];
        int64_t bits = (int64_t)(uintptr_t)c->data | c->nb[0] | c->nb[1] | c->nb[2];
        fits = fits && (c->dtype == TN_TYPE_F16 || c->dtype == TN_TYPE_BF16) && c->ne[3] == d &&
               bits % 16 == 0 && (uintptr_t)a->norm[i] % 16 == 0;
    }
    return fits;
}

bool tn_cuda_rope_cache_packs(const tn_step *step)
{
    tn_cuda_rope_cache_args a = tn_cuda_rope_cache_args_of(step);
    return step->op == TN_OP_rope_cache && whole_tokens(step, &a) &&
           tn_view_contiguous(&step->dst[TN_DST_rope_cache_q]);
}

// As many warps as have ROPE_ROWS rows for each lane.
static tn_status launch_tokens(const tn_cuda_launch *l, tn_cuda_rope_cache_args *a)
{
    if (l->writes_packed16) {
        a->out_type = l->step->src[CACHE_K].dtype;
        a->out.nb[1] /= 2, a->out.nb[2] /= 2;
    }
    int64_t rows = a->q.ne[2] + 2 * a->k.ne[2], per_warp = 32 / (a->q.ne[3] / 8);
    int64_t warps = tn_div_up(rows, TN_CUDA_ROPE_ROWS * per_warp), most = TN_CUDA_ROPE_TOKEN_THREADS / 32;
    tn_cuda_grid grid = {
        .x = (uint32_t)a->q.ne[1], .y = 1, .z = 1, .threads = (uint32_t)TN_MIN(warps, most) * 32};
    return tn_cuda_run(l, TN_CUDA_MODULE_rope_cache, "tn_rope_cache_token", &grid, a);
}

tn_status tn_cuda_rope_cache_launch(const tn_cuda_launch *l)
{
    const tn_view *q = &l->step->src[Q], *k = &l->step->src[K];
    tn_cuda_rope_cache_args a = tn_cuda_rope_cache_args_of(l->step);
    if (whole_tokens(l->step, &a)) return launch_tokens(l, &a);
    int64_t n_heads = q->ne[2] + 2 * k->ne[2], per_warp = q->ne[1] * n_heads / ROPE_ENOUGH_WARPS;
    a.heads = (int32_t)TN_MAX(TN_MIN(per_warp, (int64_t)ROPE_MOST_HEADS), (int64_t)1);
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(tn_div_up(n_heads, a.heads), ROPE_WARPS),
                         .y = (uint32_t)q->ne[1],
                         .z = 1,
                         .threads = ROPE_WARPS * 32};
    return tn_cuda_run(l, TN_CUDA_MODULE_rope_cache, "tn_rope_cache", &grid, &a);
}
