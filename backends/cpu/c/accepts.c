// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels need beyond the shape rules of ops/: types that have a fast path, rows without gaps,
// tables that fit the stack. Data pointers are not looked at.
#include "backends/cpu/accepts.h"

#include "backends/cpu/c/rows.h"
#include "ops/quant.h"

static bool f32_rows(const tn_view *v)
{
    return v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v);
}

static bool i32_run(const tn_view *v)
{
    return v->dtype == TN_TYPE_I32 && tn_view_contiguous(v);
}

// Result and all sources that exist.
static bool all_f32_rows(const tn_step *step)
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

bool tn_cpu_accepts_unary(const tn_step *step)
{
    return all_f32_rows(step);
}

bool tn_cpu_accepts_binary(const tn_step *step)
{
    const tn_view *y = &step->dst[0];
    for (int32_t i = 0; i < 2; i++) {
        const tn_view *v = &step->src[i];
        if (v->dtype != TN_TYPE_F32 || (v->ne[3] > 1 && !tn_view_rows_contiguous(v))) return false;
        if (v->ne[3] == 1 && y->ne[3] == 1 && !tn_view_rows_contiguous(v)) return false;
    }
    return f32_rows(y);
}

bool tn_cpu_accepts_reduce(const tn_step *step)
{
    return all_f32_rows(step);
}

bool tn_cpu_accepts_softmax(const tn_step *step)
{
    return all_f32_rows(step);
}

bool tn_cpu_accepts_argmax(const tn_step *step)
{
    return f32_rows(&step->src[0]) && step->src[0].ne[3] <= INT32_MAX && step->dst[0].dtype == TN_TYPE_I32;
}

bool tn_cpu_accepts_top_k(const tn_step *step)
{
    const tn_top_k_params *p = step->params;
    const tn_view *y = &step->dst[0];
    return f32_rows(&step->src[0]) && (!row_has_src(step, 1) || f32_rows(&step->src[1])) &&
           y->dtype == TN_TYPE_I32 && tn_view_rows_contiguous(y) && step->src[0].ne[3] <= INT32_MAX &&
           p->k <= TN_CPU_MAX_K && p->n_groups <= TN_CPU_MAX_GROUPS;
}

bool tn_cpu_accepts_get_rows(const tn_step *step)
{
    const tn_view *table = &step->src[0];
    return tn_quant_info_get(table->dtype)->to_f32 && tn_view_rows_contiguous(table) && table->ne[0] == 1 &&
           table->ne[1] == 1 && i32_run(&step->src[1]) && f32_rows(&step->dst[0]);
}

bool tn_cpu_accepts_rms_norm(const tn_step *step)
{
    return all_f32_rows(step);
}

bool tn_cpu_accepts_layer_norm(const tn_step *step)
{
    return all_f32_rows(step);
}

bool tn_cpu_accepts_add_rms_norm(const tn_step *step)
{
    return all_f32_rows(step);
}

bool tn_cpu_accepts_glu(const tn_step *step)
{
    const tn_glu_params *p = step->params;
    bool known = p->alpha > 0.0f || (p->act >= 0 && p->act < TN_UNARY_COUNT);
    return known && all_f32_rows(step);
}

static bool rope_common(const tn_step *step, const tn_rope_params *p, int32_t pos)
{
    return f32_rows(&step->src[0]) && f32_rows(&step->dst[0]) && step->src[0].ne[0] == 1 &&
           i32_run(&step->src[pos]) && (!row_has_src(step, pos + 1) || f32_rows(&step->src[pos + 1])) &&
           p->n_rot <= TN_CPU_MAX_ROT;
}

bool tn_cpu_accepts_rope(const tn_step *step)
{
    return rope_common(step, step->params, 1);
}

bool tn_cpu_accepts_norm_rope(const tn_step *step)
{
    const tn_norm_rope_params *p = step->params;
    return row_has_src(step, 1) && f32_rows(&step->src[1]) && rope_common(step, &p->rope, 2);
}

bool tn_cpu_accepts_cache_write(const tn_step *step)
{
    const tn_view *cache = &step->dst[0], *x = &step->src[1];
    return cache_type(cache->dtype) && tn_view_rows_contiguous(cache) && f32_rows(x) && x->ne[0] == 1 &&
           x->ne[3] <= cache->ne[3] && i32_run(&step->src[2]);
}

bool tn_cpu_accepts_attention(const tn_step *step)
{
    const tn_view *q = &step->src[0], *k = &step->src[1], *v = &step->src[2];
    bool caches =
        cache_type(k->dtype) && cache_type(v->dtype) && tn_view_contiguous(k) && tn_view_rows_contiguous(v);
    bool tables = i32_run(&step->src[3]) && i32_run(&step->src[4]) && i32_run(&step->src[5]);
    bool sinks = !row_has_src(step, 6) || f32_rows(&step->src[6]);
    // Positions are compared as f32.
    bool exact = step->src[5].ne[3] * k->ne[2] < 1 << 24;
    return caches && tables && sinks && exact && f32_rows(q) && q->ne[0] == 1 && f32_rows(&step->dst[0]) &&
           k->ne[1] > 0 && k->ne[2] > 0 && q->ne[3] <= k->ne[3] && q->ne[2] % k->ne[1] == 0;
}

bool tn_cpu_accepts_moe_weights(const tn_step *step)
{
    const tn_view *ids = &step->src[1];
    return f32_rows(&step->src[0]) && f32_rows(&step->dst[0]) && ids->dtype == TN_TYPE_I32 &&
           tn_view_rows_contiguous(ids);
}

bool tn_cpu_accepts_moe_sum(const tn_step *step)
{
    const tn_view *x = &step->src[0];
    return all_f32_rows(step) && x->ne[0] == 1 && x->nb[2] % (int64_t)sizeof(float) == 0;
}

// The router's product is left to the kernels of products, which divide it among threads.
bool tn_cpu_accepts_moe_route(const tn_step *step)
{
    const tn_moe_route_params *p = step->params;
    const tn_view *ids = &step->dst[0];
    return !p->has_product && f32_rows(&step->src[0]) && (!p->has_choice_bias || f32_rows(&step->src[1])) &&
           ids->dtype == TN_TYPE_I32 && tn_view_rows_contiguous(ids) && f32_rows(&step->dst[1]) &&
           p->top_k.k <= TN_CPU_MAX_K && p->top_k.n_groups <= TN_CPU_MAX_GROUPS;
}

bool tn_cpu_accepts_moe_combine(const tn_step *step)
{
    return tn_cpu_accepts_moe_sum(step);
}

// States and their tables: I32 runs behind the operands.
static bool slots_run(const tn_step *step, int32_t src)
{
    return i32_run(&step->src[src]) && i32_run(&step->src[src + 1]);
}

bool tn_cpu_accepts_short_conv(const tn_step *step)
{
    const tn_view *state = &step->src[0];
    return state->dtype == TN_TYPE_F32 && tn_view_contiguous(state) && f32_rows(&step->src[1]) && f32_rows(&step->src[2]) &&
           f32_rows(&step->dst[1]) && slots_run(step, 3) && state->ne[2] < TN_CPU_MAX_CONV;
}

bool tn_cpu_accepts_delta_rule(const tn_step *step)
{
    const tn_view *state = &step->src[0];
    bool rows = state->dtype == TN_TYPE_F32 && tn_view_contiguous(state) && f32_rows(&step->dst[1]);
    for (int32_t i = 1; i < 6; i++) rows = rows && f32_rows(&step->src[i]);
    return rows && slots_run(step, 6);
}

size_t tn_cpu_scratch_delta_rule(const tn_step *step, int32_t n_threads)
{
    size_t floats = (size_t)step->src[0].ne[2] * (TN_CPU_DELTA_COLUMNS + 2);
    return (floats + 15) / 16 * 16 * sizeof(float) * (size_t)n_threads;
}
