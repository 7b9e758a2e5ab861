// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope_cache (fused): what stands between the projections and attention. q and k go through rms_norm per head
// (if they have weights) and rope; k and v are put into the cache as cache_write does.
// Sources: cache k, cache v, q [T, H, D], k [T, KV, D], v [T, KV, Dv], pos I32 [T], slots I32 [T], norm
// weight of q [D] or absent, norm weight of k [D] or absent, rope factors or absent. Results: cache k, cache
// v, q.
#include "ops/rope.h"

// Short names for the sources that this file treats alike.
enum {
    Q = TN_SRC_rope_cache_q,
    K = TN_SRC_rope_cache_k,
    CACHE_K = TN_SRC_rope_cache_cache_k,
    CACHE_V = TN_SRC_rope_cache_cache_v
};
enum { MAX_HEAD = 4096 }; // elements; rows of that size lie on the stack of the reference

// The step that one of q and k goes through: rope, or norm_rope.
static tn_step rotation(const tn_step *step, int32_t src, tn_norm_rope_params *params)
{
    const tn_rope_cache_params *p = step->params;
    int32_t which = src == K;
    tn_rope_cache_views in = tn_rope_cache_views_get(step);
    *params = (tn_norm_rope_params){p->eps, p->rope};
    tn_step s = {.op = TN_OP_rope, .n_dst = 1, .params = &params->rope, .name = step->name};
    s.src[s.n_src++] = step->src[src];
    if (p->has_norm[which]) {
        s.op = TN_OP_norm_rope;
        s.params = params;
        s.src[s.n_src++] = which ? *in.norm_k : *in.norm_q;
    }
    s.src[s.n_src++] = *in.pos;
    if (in.factors) s.src[s.n_src++] = *in.factors;
    return s;
}

static tn_status infer_rotation(tn_context *ctx, tn_step *step)
{
    return step->op == TN_OP_norm_rope ? tn_infer_norm_rope(ctx, step) : tn_infer_rope(ctx, step);
}

static void ref_rotation(const tn_step *step)
{
    if (step->op == TN_OP_norm_rope)
        tn_ref_norm_rope(step);
    else
        tn_ref_rope(step);
}

static tn_step cache_step(const tn_step *step, int32_t cache, const tn_view *x)
{
    tn_step s = {.op = TN_OP_cache_write, .n_src = 3, .n_dst = 1, .name = step->name};
    s.src[TN_SRC_cache_write_cache] = step->src[cache];
    s.src[TN_SRC_cache_write_x] = *x;
    s.src[TN_SRC_cache_write_slots] = step->src[TN_SRC_rope_cache_slots];
    s.dst[0] = step->dst[cache]; // for both caches, result i is source i
    return s;
}

tn_status tn_infer_rope_cache(tn_context *ctx, tn_step *step)
{
    const tn_rope_cache_params *p = step->params;
    tn_norm_rope_params params;
    tn_rope_cache_views in = tn_rope_cache_views_get(step);
    if (in.k->ne[3] > MAX_HEAD)
        return tn_fail(ctx, TN_ERR_SHAPE, "rope_cache: heads of %lld", (long long)in.k->ne[3]);
    if ((p->has_norm[0] != 0) != (in.norm_q != NULL) || (p->has_norm[1] != 0) != (in.norm_k != NULL))
        return tn_fail(ctx, TN_ERR_ARG, "rope_cache: norm weights");
    for (int32_t src = Q; src <= K; src++) {
        tn_step s = rotation(step, src, &params);
        tn_status status = infer_rotation(ctx, &s);
        if (status == TN_OK && src == K) {
            tn_step w = cache_step(step, CACHE_K, &s.dst[0]);
            status = tn_infer_cache_write(ctx, &w);
        }
        if (status != TN_OK) return status;
        if (src == Q) step->dst[TN_DST_rope_cache_q] = s.dst[0];
    }
    tn_step w = cache_step(step, CACHE_V, in.v);
    tn_status status = tn_infer_cache_write(ctx, &w);
    if (status != TN_OK) return status;
    step->dst[TN_DST_rope_cache_cache_k] = *in.cache_k;
    step->dst[TN_DST_rope_cache_cache_v] = *in.cache_v;
    return TN_OK;
}

// One rotated head at a time goes through a buffer into the cache.
static void write_k(const tn_step *step)
{
    tn_rope_cache_views in = tn_rope_cache_views_get(step);
    const tn_view *k = in.k;
    for (int64_t t = 0; t < k->ne[1]; t++)
        for (int64_t h = 0; h < k->ne[2]; h++) {
            float row[MAX_HEAD];
            tn_norm_rope_params params;
            tn_step r = rotation(step, K, &params);
            tn_step head = *step;
            // The same head alone: one token, one head, and the cache of that head.
            r.src[0].data = (char *)k->data + t * k->nb[1] + h * k->nb[2];
            r.src[0].ne[1] = r.src[0].ne[2] = 1;
            int32_t pos = r.op == TN_OP_norm_rope ? TN_SRC_norm_rope_pos : TN_SRC_rope_pos;
            r.src[pos].data = (char *)in.pos->data + t * in.pos->nb[3];
            r.src[pos].ne[3] = 1;
            tn_step_set_dst(&r, 0, TN_TYPE_F32, 3, r.src[0].ne);
            r.dst[0].data = row;
            ref_rotation(&r);
            head.src[TN_SRC_rope_cache_slots].data = (char *)in.slots->data + t * in.slots->nb[3];
            head.src[TN_SRC_rope_cache_slots].ne[3] = 1;
            tn_step w = cache_step(&head, CACHE_K, &r.dst[0]);
            w.src[0].data = (char *)w.src[0].data + h * w.src[0].nb[1];
            w.dst[0].data = w.src[0].data;
            tn_ref_cache_write(&w);
        }
}

void tn_ref_rope_cache(const tn_step *step)
{
    tn_norm_rope_params params;
    tn_step q = rotation(step, Q, &params);
    q.dst[0] = step->dst[TN_DST_rope_cache_q];
    ref_rotation(&q);
    write_k(step);
    tn_step v = cache_step(step, CACHE_V, &step->src[TN_SRC_rope_cache_v]);
    tn_ref_cache_write(&v);
}
