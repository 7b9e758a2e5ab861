// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// top_k:       x [T, E] f32 (+ bias [E] for the choice only) -> indices I32 [T, k], largest first, ties:
// lower
//              index first, NaN like -inf; groups as in DeepSeek-V3 (2024), section 2.1.2
// moe_weights: x [T, E], ids I32 [T, U] -> weights [T, U] by the gating kind
// moe_route:   both from logits [T, E], the choice by them or their probabilities
// moe_sum:     x [T, U, n], w [T, U] -> [T, n], sum over u in order
// moe_combine: the same + f [T, 1] a [T, n] + b [T, n]
// Work: one row for the first three, ROW_CHUNK elements for the sums. No scratch. top_k compares a vector
// with the k-th best so far and compares one by one only if one is larger: one pass over the row whatever k
// is.
#include "backends/cpu/accepts.h"
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/vec_math.h"

typedef struct top_list {
    int32_t n, k;
    double value[TN_CPU_MAX_K]; // sums with the bias are compared unrounded
    int32_t index[TN_CPU_MAX_K];
} top_list;

// Candidates come in rising index, so an equal value goes behind.
static void top_insert(top_list *l, double value, int32_t index)
{
    if (l->n == l->k && !(value > l->value[l->k - 1])) return;
    int32_t i = l->n < l->k ? l->n++ : l->k - 1;
    for (; i > 0 && l->value[i - 1] < value; i--) {
        l->value[i] = l->value[i - 1];
        l->index[i] = l->index[i - 1];
    }
    l->value[i] = value;
    l->index[i] = index;
}

TN_INLINE double choice_value(const float *x, const float *bias, int64_t j)
{
    double v = bias ? (double)x[j] + (double)bias[j] : (double)x[j];
    return v == v ? v : -INFINITY;
}

// Elements [first, last) of a row into the list.
static void top_scan(top_list *l, const float *x, const float *bias, int64_t first, int64_t last)
{
    for (int64_t j = first; j < last; j += VEC_N) {
        int64_t n = TN_MIN(VEC_N, last - j);
        bool skip = n == VEC_N && l->n == l->k && !bias;
        if (skip && !vm_any(vm_lt(vf_set1((float)l->value[l->k - 1]), vf_load(x + j)))) continue;
        for (int64_t i = j; i < j + n; i++) top_insert(l, choice_value(x, bias, i), (int32_t)i);
    }
}

// keep[g]: whether group g is among the n_groups_used with the largest sum of their two best values
static void keep_groups(const tn_top_k_params *p, const float *x, const float *bias, int64_t size, bool *keep)
{
    double score[TN_CPU_MAX_GROUPS];
    for (int64_t g = 0; g < p->n_groups; g++) {
        double a = -INFINITY, b = -INFINITY;
        for (int64_t j = g * size; j < (g + 1) * size; j++) {
            double v = choice_value(x, bias, j);
            if (v > a)
                b = a, a = v;
            else if (v > b)
                b = v;
        }
        score[g] = size > 1 ? a + b : a;
    }
    for (int32_t g = 0; g < p->n_groups; g++) {
        int32_t better = 0;
        for (int32_t o = 0; o < p->n_groups; o++)
            better += score[o] > score[g] || (score[o] == score[g] && o < g);
        keep[g] = better < p->n_groups_used;
    }
}

static void top_k_row(const tn_top_k_params *p, const float *x, const float *bias, int64_t n, int32_t *y)
{
    top_list l = {.n = 0, .k = p->k};
    if (p->n_groups > 1) {
        bool keep[TN_CPU_MAX_GROUPS];
        int64_t size = n / p->n_groups;
        keep_groups(p, x, bias, size, keep);
        for (int64_t g = 0; g < p->n_groups; g++)
            if (keep[g]) top_scan(&l, x, bias, g * size, (g + 1) * size);
    } else {
        top_scan(&l, x, bias, 0, n);
    }
    for (int32_t i = 0; i < p->k; i++) y[i] = l.index[i];
}

void VEC_NAME(top_k_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    int64_t first, last;
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++)
        top_k_row(step->params, tn_view_row(x, r), row_optional(step, 1), x->ne[3], tn_view_row(y, r));
}

// --- moe_weights -----------------------------------------------------------------------------------

// Maximum and sum of exp(x - max) over a row; the maximum ignores NaN, the sum does not.
static void softmax_terms(const float *x, int64_t n, float *max, float *sum)
{
    vf m = vf_set1(-INFINITY);
    for (int64_t i = 0; i < n; i += VEC_N) {
        vf v = n - i >= VEC_N ? vf_load(x + i) : vf_load_n(x + i, n - i);
        vm valid = vm_lt(vf_iota(), vf_set1((float)TN_MIN(n - i, VEC_N)));
        m = vf_max(vf_select(valid, v, m), m);
    }
    *max = vf_hmax(m);
    vf s = vf_zero(), top = vf_set1(*max);
    for (int64_t i = 0; i < n; i += VEC_N) {
        vf v = n - i >= VEC_N ? vf_load(x + i) : vf_load_n(x + i, n - i);
        vm valid = vm_lt(vf_iota(), vf_set1((float)TN_MIN(n - i, VEC_N)));
        s = vf_add(s, vf_select(valid, vf_exp(vf_sub(v, top)), vf_zero()));
    }
    *sum = vf_sum(s);
}

// y[i] = f(y[i]) for a short row
static void gate_row(int32_t gating, float *y, int64_t n, float max, float sum)
{
    vf top = vf_set1(max), total = vf_set1(sum);
    for (int64_t i = 0; i < n; i += VEC_N) {
        int64_t left = TN_MIN(n - i, VEC_N);
        vf v = vf_load_n(y + i, left);
        v = gating == TN_GATING_SIGMOID ? vf_sigmoid(v) : vf_div(vf_exp(vf_sub(v, top)), total);
        vf_store_n(y + i, v, left);
    }
}

static void moe_weights_row(const tn_moe_weights_params *p, const float *x, int64_t n_experts,
                            const int32_t *ids, float *y, int64_t n)
{
    float max = 0.0f, sum = 1.0f;
    for (int64_t u = 0; u < n; u++) y[u] = ids[u] >= 0 && ids[u] < n_experts ? x[ids[u]] : -INFINITY;
    if (p->gating == TN_GATING_SOFTMAX) softmax_terms(x, n_experts, &max, &sum);
    if (p->gating == TN_GATING_SOFTMAX_SELECTED) softmax_terms(y, n, &max, &sum);
    if (p->gating != TN_GATING_NONE) gate_row(p->gating, y, n, max, sum);
    float total = 0.0f, scale = p->scale != 0.0f ? p->scale : 1.0f;
    for (int64_t u = 0; u < n; u++) total += y[u];
    if (p->normalise)
        scale /= total > 6.103515625e-5f ? total : 6.103515625e-5f; // 2^-14, smallest normal f16
    for (int64_t u = 0; u < n; u++) y[u] *= scale;
}

void VEC_NAME(moe_weights_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_view *x = &step->src[0], *ids = &step->src[1], *y = &step->dst[0];
    int64_t first, last;
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++)
        moe_weights_row(step->params, tn_view_row(x, r), x->ne[3], tn_view_row(ids, r), tn_view_row(y, r),
                        y->ne[3]);
}

// --- moe_route -------------------------------------------------------------------------------------

// y[i] = f(x[i]) of a whole row
static void choice_row(int32_t choice, const float *x, float *y, int64_t n)
{
    float max = 0.0f, sum = 1.0f;
    if (choice == TN_GATING_SOFTMAX) softmax_terms(x, n, &max, &sum);
    for (int64_t i = 0; i < n; i++) y[i] = x[i];
    gate_row(choice, y, n, max, sum);
}

void VEC_NAME(moe_route_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_moe_route_params *p = step->params;
    const tn_moe_route_sources at = tn_moe_route_sources_get(p);
    const tn_view *x = &step->src[at.x];
    const tn_view *ids = &step->dst[TN_DST_moe_route_ids], *y = &step->dst[TN_DST_moe_route_weights];
    const float *bias = p->has_choice_bias ? step->src[at.choice_bias].data : NULL;
    int64_t first, last, n = x->ne[3];
    float scores[TN_MOE_MAX_EXPERTS];
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++) {
        const float *logits = tn_view_row(x, r);
        if (p->choice != TN_GATING_NONE) choice_row(p->choice, logits, scores, n);
        top_k_row(&p->top_k, p->choice != TN_GATING_NONE ? scores : logits, bias, n, tn_view_row(ids, r));
        moe_weights_row(&p->weights, logits, n, tn_view_row(ids, r), tn_view_row(y, r), y->ne[3]);
    }
}

// --- moe_sum, moe_combine --------------------------------------------------------------------------

// y[n] = sum_u w[u] x[u][n]; x_stride in floats
static void weighted_sum(const float *x, int64_t x_stride, const float *w, int64_t n_terms, float *y,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i += VEC_N) {
        int64_t left = TN_MIN(n - i, VEC_N);
        vf s = vf_zero();
        for (int64_t u = 0; u < n_terms; u++) {
            const float *p = x + u * x_stride + i;
            s = vf_fma(vf_set1(w[u]), left == VEC_N ? vf_load(p) : vf_load_n(p, left), s);
        }
        if (left == VEC_N)
            vf_store(y + i, s);
        else
            vf_store_n(y + i, s, left);
    }
}

void VEC_NAME(moe_sum_f32)(const tn_cpu_task *task)
{
    const tn_view *x = &task->step->src[0], *w = &task->step->src[1], *y = &task->step->dst[0];
    int64_t first, last, n = y->ne[3];
    rows_split(task, tn_view_n_rows(y) * row_chunks(n), &first, &last);
    for (int64_t i = first; i < last; i++) {
        row_chunk c = row_chunk_get(i, n);
        const float *terms = (const float *)((const char *)x->data + c.row * x->nb[1]) + c.first;
        weighted_sum(terms, x->nb[2] / (int64_t)sizeof(float), tn_view_row(w, c.row), w->ne[3],
                     (float *)tn_view_row(y, c.row) + c.first, c.n);
    }
}

// y[n] += f a[n] + b[n]; b may be NULL
static void add_rows(const float *a, float f, const float *b, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += VEC_N) {
        int64_t left = TN_MIN(n - i, VEC_N);
        vf v = left == VEC_N ? vf_load(y + i) : vf_load_n(y + i, left);
        v = vf_fma(vf_set1(f), left == VEC_N ? vf_load(a + i) : vf_load_n(a + i, left), v);
        if (b) v = vf_add(v, left == VEC_N ? vf_load(b + i) : vf_load_n(b + i, left));
        if (left == VEC_N)
            vf_store(y + i, v);
        else
            vf_store_n(y + i, v, left);
    }
}

void VEC_NAME(moe_combine_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_moe_combine_params *p = step->params;
    const tn_moe_combine_sources at = tn_moe_combine_sources_get(p);
    const tn_view *x = &step->src[at.x], *w = &step->src[at.w], *y = &step->dst[0];
    int64_t first, last, n = y->ne[3];
    rows_split(task, tn_view_n_rows(y) * row_chunks(n), &first, &last);
    for (int64_t i = first; i < last; i++) {
        row_chunk c = row_chunk_get(i, n);
        const float *terms = (const float *)((const char *)x->data + c.row * x->nb[1]) + c.first;
        const float *a = (const float *)tn_view_row(&step->src[at.added[0]], c.row) + c.first, *b = NULL;
        if (p->n_added > 1) b = (const float *)tn_view_row(&step->src[at.added[1]], c.row) + c.first;
        float f = p->has_factor ? *(const float *)tn_view_row(&step->src[at.factor], c.row) : 1.0f;
        float *out = (float *)tn_view_row(y, c.row) + c.first;
        weighted_sum(terms, x->nb[2] / (int64_t)sizeof(float), tn_view_row(w, c.row), w->ne[3], out, c.n);
        add_rows(a, f, b, out, c.n);
    }
}
