// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels need beyond the shape rules of ops/: types that have a fast path, rows without gaps,
// tables that fit the stack. Data pointers may be NULL here, so nothing reads them.
#include "backends/cpu/accepts.h"

#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"
#include "ops/operands.h"
#include "ops/quant.h"

static bool f32_rows(const tn_view *v)
{
    return v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v);
}

static bool i32_run(const tn_view *v)
{
    return v->dtype == TN_TYPE_I32 && tn_view_contiguous(v);
}

// Results and all sources that exist. Ops whose kernels need nothing else name this in kernels.def.
bool tn_cpu_accepts_f32_rows(const tn_step *step)
{
    for (int32_t i = 0; i < step->n_src; i++)
        if (row_has_src(step, i) && !f32_rows(&step->src[i])) return false;
    for (int32_t i = 0; i < step->n_dst; i++)
        if (!f32_rows(&step->dst[i])) return false;
    return true;
}

// Types that convert_tmpl.h reads and writes on vectors.
static bool cache_type(tn_dtype type)
{
    return type == TN_TYPE_F32 || type == TN_TYPE_F16 || type == TN_TYPE_BF16 || type == TN_TYPE_Q8_0 ||
           type == TN_TYPE_Q4_0;
}

bool tn_cpu_accepts_copy(const tn_step *step)
{
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    bool to_float = y->dtype == TN_TYPE_F32 || y->dtype == TN_TYPE_F16 || y->dtype == TN_TYPE_BF16;
    if (!tn_view_rows_contiguous(y)) return false;
    if (x->dtype == TN_TYPE_I32) return y->dtype == TN_TYPE_I32;
    if (!to_float || !tn_quant_info_get(x->dtype)->to_f32) return false;
    // Strided elements are gathered by 2 or 4 bytes.
    return tn_view_rows_contiguous(x) || x->dtype == TN_TYPE_F32 || x->dtype == TN_TYPE_F16 ||
           x->dtype == TN_TYPE_BF16;
}

bool tn_cpu_accepts_concat(const tn_step *step)
{
    const tn_view *a = &step->src[0], *b = &step->src[1], *y = &step->dst[0];
    return (y->dtype == TN_TYPE_F32 || y->dtype == TN_TYPE_I32) && tn_view_rows_contiguous(a) &&
           tn_view_rows_contiguous(b) && tn_view_rows_contiguous(y);
}

// One column of a source may stand for all of them.
bool tn_cpu_accepts_elementwise(const tn_step *step)
{
    const tn_view *y = &step->dst[0];
    for (int32_t i = 0; i < step->n_src; i++) {
        const tn_view *v = &step->src[i];
        bool repeats = v->ne[3] == 1 && y->ne[3] > 1;
        if (v->dtype != TN_TYPE_F32 || (!repeats && !tn_view_rows_contiguous(v))) return false;
    }
    return f32_rows(y);
}

bool tn_cpu_accepts_argmax(const tn_step *step)
{
    return f32_rows(&step->src[0]) && step->src[0].ne[3] <= INT32_MAX && step->dst[0].dtype == TN_TYPE_I32;
}

bool tn_cpu_accepts_top_k(const tn_step *step)
{
    const tn_top_k_params *p = step->params;
    const tn_view *y = &step->dst[0];
    tn_top_k_views in = tn_top_k_views_get(step);
    return f32_rows(in.x) && (!in.bias || f32_rows(in.bias)) && y->dtype == TN_TYPE_I32 &&
           tn_view_rows_contiguous(y) && in.x->ne[3] <= INT32_MAX && p->k <= TN_CPU_MAX_K &&
           p->n_groups <= TN_CPU_MAX_GROUPS;
}

bool tn_cpu_accepts_get_rows(const tn_step *step)
{
    tn_get_rows_views in = tn_get_rows_views_get(step);
    const tn_view *table = in.table;
    return tn_quant_info_get(table->dtype)->to_f32 && tn_view_rows_contiguous(table) && table->ne[0] == 1 &&
           table->ne[1] == 1 && i32_run(in.ids) && f32_rows(&step->dst[0]);
}

// in: the operands that rope and norm_rope share.
static bool rope_common(const tn_step *step, const tn_rope_params *p, const tn_rope_views *in)
{
    return f32_rows(in->x) && f32_rows(&step->dst[0]) && in->x->ne[0] == 1 && i32_run(in->pos) &&
           (!in->factors || f32_rows(in->factors)) && p->n_rot <= TN_CPU_MAX_ROT;
}

bool tn_cpu_accepts_rope(const tn_step *step)
{
    tn_rope_views in = tn_rope_views_get(step);
    return rope_common(step, step->params, &in);
}

bool tn_cpu_accepts_norm_rope(const tn_step *step)
{
    const tn_norm_rope_params *p = step->params;
    tn_norm_rope_views in = tn_norm_rope_views_get(step);
    tn_rope_views rope = {.x = in.x, .pos = in.pos, .factors = in.factors};
    return in.w->ne[3] > 0 && f32_rows(in.w) && rope_common(step, &p->rope, &rope);
}

bool tn_cpu_accepts_cache_write(const tn_step *step)
{
    tn_cache_write_views in = tn_cache_write_views_get(step);
    const tn_view *cache = &step->dst[0], *x = in.x;
    return cache_type(cache->dtype) && tn_view_rows_contiguous(cache) && f32_rows(x) && x->ne[0] == 1 &&
           x->ne[3] <= cache->ne[3] && i32_run(in.slots);
}

bool tn_cpu_accepts_attention(const tn_step *step)
{
    tn_attention_views in = tn_attention_views_get(step);
    const tn_view *q = in.q, *k = in.k, *v = in.v;
    bool caches =
        cache_type(k->dtype) && cache_type(v->dtype) && tn_view_contiguous(k) && tn_view_rows_contiguous(v);
    bool tables = i32_run(in.q_start) && i32_run(in.kv_len) && i32_run(in.block_table);
    bool sinks = !in.sinks || f32_rows(in.sinks);
    // Positions are compared as f32.
    bool exact = in.block_table->ne[3] * k->ne[2] < 1 << 24;
    return caches && tables && sinks && exact && f32_rows(q) && q->ne[0] == 1 && f32_rows(&step->dst[0]) &&
           k->ne[1] > 0 && k->ne[2] > 0 && q->ne[3] <= k->ne[3] && q->ne[2] % k->ne[1] == 0;
}

bool tn_cpu_accepts_moe_weights(const tn_step *step)
{
    tn_moe_weights_views in = tn_moe_weights_views_get(step);
    const tn_view *ids = in.ids;
    return f32_rows(in.x) && f32_rows(&step->dst[0]) && ids->dtype == TN_TYPE_I32 &&
           tn_view_rows_contiguous(ids);
}

bool tn_cpu_accepts_moe_sum(const tn_step *step)
{
    const tn_view *x = &step->src[0];
    return tn_cpu_accepts_f32_rows(step) && x->ne[0] == 1 && x->nb[2] % (int64_t)sizeof(float) == 0;
}

// A step that includes the router's product is refused: the kernels of products divide that among threads.
bool tn_cpu_accepts_moe_route(const tn_step *step)
{
    const tn_moe_route_params *p = step->params;
    const tn_view *ids = &step->dst[TN_DST_moe_route_ids];
    tn_moe_route_sources at = tn_moe_route_sources_get(p);
    return !p->has_product && f32_rows(&step->src[at.x]) &&
           (!p->has_choice_bias || f32_rows(&step->src[at.choice_bias])) && ids->dtype == TN_TYPE_I32 &&
           tn_view_rows_contiguous(ids) && f32_rows(&step->dst[TN_DST_moe_route_weights]) &&
           p->top_k.k <= TN_CPU_MAX_K && p->top_k.n_groups <= TN_CPU_MAX_GROUPS;
}

bool tn_cpu_accepts_moe_combine(const tn_step *step)
{
    return tn_cpu_accepts_moe_sum(step);
}

bool tn_cpu_accepts_short_conv(const tn_step *step)
{
    tn_short_conv_views in = tn_short_conv_views_get(step);
    return in.state->dtype == TN_TYPE_F32 && tn_view_contiguous(in.state) && f32_rows(in.x) &&
           f32_rows(in.w) && f32_rows(&step->dst[TN_DST_short_conv_y]) && i32_run(in.q_start) &&
           i32_run(in.slots) && in.state->ne[2] < TN_CPU_MAX_CONV;
}

bool tn_cpu_accepts_delta_rule(const tn_step *step)
{
    tn_delta_rule_views in = tn_delta_rule_views_get(step);
    bool rows = f32_rows(in.q) && f32_rows(in.k) && f32_rows(in.v) && f32_rows(in.g) && f32_rows(in.beta);
    return rows && in.state->dtype == TN_TYPE_F32 && tn_view_contiguous(in.state) &&
           f32_rows(&step->dst[TN_DST_delta_rule_y]) && i32_run(in.q_start) && i32_run(in.slots);
}

size_t tn_cpu_scratch_delta_rule(const tn_step *step, int32_t n_threads)
{
    size_t floats = (size_t)step->src[TN_SRC_delta_rule_state].ne[2] * (TN_CPU_DELTA_COLUMNS + 2);
    return (floats + 15) / 16 * 16 * sizeof(float) * (size_t)n_threads;
}
