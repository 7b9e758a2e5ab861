// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax: y_j = exp(s_j - max s) / sum, s = scale * x (+ mask); a row of -inf gives zeros
// reduce:  sum, mean or maximum of each row (a maximum ignores NaN); argmax: index of the first maximum
// Rows [.., n] f32; the mask is broadcast over the outer dimensions. Work: one row. No scratch. Sums are
// doubles. softmax moves 8 n bytes per row (12 n with a mask) in three passes over a row that stays in L2;
// limit: the exponential, about 1 element per cycle and core (AVX2).
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/vec_math.h"

// NaN does not count; -inf for an empty row
static float max_row(const float *x, int64_t n)
{
    vf m0 = vf_set1(-INFINITY), m1 = m0;
    int64_t i = 0;
    for (; i + 2 * VEC_N <= n; i += 2 * VEC_N) {
        m0 = vf_max(vf_load(x + i), m0);
        m1 = vf_max(vf_load(x + i + VEC_N), m1);
    }
    float max = vf_hmax(vf_max(m0, m1));
    for (; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

// y = scale * x + mask
static void score_row(const float *x, const float *mask, float *y, int64_t n, float scale)
{
    vf s = vf_set1(scale);
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) {
        vf v = vf_mul(vf_load(x + i), s);
        vf_store(y + i, mask ? vf_add(v, vf_load(mask + i)) : v);
    }
    for (; i < n; i++) y[i] = x[i] * scale + (mask ? mask[i] : 0.0f);
}

// y = exp(y - max); returns the sum
static double exp_row(float *y, int64_t n, float max)
{
    vd s = vd_zero();
    vf m = vf_set1(max);
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) {
        vf e = vf_exp(vf_sub(vf_load(y + i), m));
        vf_store(y + i, e);
        s = vd_add(s, e);
    }
    if (i == n) return vd_sum(s);
    vf e = vf_exp(vf_sub(vf_load_n(y + i, n - i), m));
    vf_store_n(y + i, e, n - i);
    return vd_sum(vd_add(s, vf_select(vm_lt(vf_iota(), vf_set1((float)(n - i))), e, vf_zero())));
}

static void scale_row(float *y, int64_t n, float scale)
{
    vf s = vf_set1(scale);
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) vf_store(y + i, vf_mul(vf_load(y + i), s));
    for (; i < n; i++) y[i] *= scale;
}

void VEC_NAME(softmax_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_softmax_params *p = step->params;
    const tn_view *y = &step->dst[0], *mask = row_has_src(step, 1) ? &step->src[1] : NULL;
    int64_t first, last, n = y->ne[3];
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++) {
        float *out = tn_view_row(y, r);
        score_row(tn_view_row(&step->src[0], r), mask ? row_broadcast(mask, y, r) : NULL, out, n,
                  p->scale != 0.0f ? p->scale : 1.0f);
        float max = max_row(out, n);
        if (max > -INFINITY) {
            double sum = exp_row(out, n, max);
            scale_row(out, n, (float)(1.0 / sum));
        } else {
            for (int64_t i = 0; i < n; i++) out[i] = 0.0f;
        }
    }
}

static float reduce_row(int32_t kind, const float *x, int64_t n)
{
    if (kind == TN_REDUCE_MAX) return max_row(x, n);
    vd s = vd_zero();
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) s = vd_add(s, vf_load(x + i));
    double sum = vd_sum(s);
    for (; i < n; i++) sum += (double)x[i];
    return (float)(kind == TN_REDUCE_MEAN ? sum / (double)n : sum);
}

void VEC_NAME(reduce_f32)(const tn_cpu_task *task)
{
    const tn_reduce_params *p = task->step->params;
    const tn_view *x = &task->step->src[0], *y = &task->step->dst[0];
    int64_t first, last;
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++)
        *(float *)tn_view_row(y, r) = reduce_row(p->kind, tn_view_row(x, r), x->ne[3]);
}

// The maximum first, then its first place: two passes without branches in the loops of the first.
static int32_t argmax_row(const float *x, int64_t n)
{
    float max = max_row(x, n);
    vf m = vf_set1(max);
    int64_t i = 0;
    while (i + VEC_N <= n && !vm_any(vm_eq(vf_load(x + i), m))) i += VEC_N;
    while (i < n && x[i] != max) i++;
    // No value above -inf: index 0 by definition, also where -inf comes after a NaN.
    return i < n && max > -INFINITY ? (int32_t)i : 0;
}

void VEC_NAME(argmax_f32)(const tn_cpu_task *task)
{
    const tn_view *x = &task->step->src[0], *y = &task->step->dst[0];
    int64_t first, last;
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++)
        *(int32_t *)tn_view_row(y, r) = argmax_row(tn_view_row(x, r), x->ne[3]);
}
