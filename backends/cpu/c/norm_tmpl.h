// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rms_norm:     y = x / sqrt(mean(x^2) + eps) * w                     (Zhang and Sennrich 2019, eq. 4)
// layer_norm:   y = (x - mean) / sqrt(var + eps) * w + b              (Ba et al. 2016)
// add_rms_norm: s = a + b, y = rms_norm(s) * w
// Rows [.., n] f32, w and b [n] optional. Work: one row. No scratch. Sums are doubles: squares of any f32
// fit, and the order of a row's sum is fixed. Bytes: 8 n per row, 16 n for add_rms_norm; limit: L2 or memory.
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"

// sum of (x - c)^2
static double sum_squares(const float *x, int64_t n, double c)
{
    vd s0 = vd_zero(), s1 = vd_zero();
    int64_t i = 0;
    for (; i + 2 * VEC_N <= n; i += 2 * VEC_N) {
        s0 = vd_add_square(s0, vf_load(x + i), c);
        s1 = vd_add_square(s1, vf_load(x + i + VEC_N), c);
    }
    double sum = vd_sum(s0) + vd_sum(s1);
    for (; i < n; i++) sum += ((double)x[i] - c) * ((double)x[i] - c);
    return sum;
}

static double sum_row(const float *x, int64_t n)
{
    vd s0 = vd_zero(), s1 = vd_zero();
    int64_t i = 0;
    for (; i + 2 * VEC_N <= n; i += 2 * VEC_N) {
        s0 = vd_add(s0, vf_load(x + i));
        s1 = vd_add(s1, vf_load(x + i + VEC_N));
    }
    double sum = vd_sum(s0) + vd_sum(s1);
    for (; i < n; i++) sum += (double)x[i];
    return sum;
}

// y = (x - mean) * scale * w + b; w, b NULL: 1 and 0
typedef struct norm_row {
    const float *x, *w, *b;
    float *y;
    int64_t n;
    float mean, mean_low, scale; // the mean in two parts: rows whose spread is small beside it need both
} norm_row;

TN_INLINE vf norm_apply(const norm_row *r, vf x, vf w, vf b)
{
    vf centred = vf_sub(vf_sub(x, vf_set1(r->mean)), vf_set1(r->mean_low));
    vf y = vf_mul(vf_mul(centred, vf_set1(r->scale)), w);
    return r->b ? vf_add(y, b) : y;
}

static void norm_write(const norm_row *r)
{
    vf one = vf_set1(1.0f), zero = vf_zero();
    int64_t i = 0;
    for (; i + VEC_N <= r->n; i += VEC_N) {
        vf w = r->w ? vf_load(r->w + i) : one, b = r->b ? vf_load(r->b + i) : zero;
        vf_store(r->y + i, norm_apply(r, vf_load(r->x + i), w, b));
    }
    int64_t left = r->n - i;
    if (left == 0) return;
    vf w = r->w ? vf_load_n(r->w + i, left) : one, b = r->b ? vf_load_n(r->b + i, left) : zero;
    vf_store_n(r->y + i, norm_apply(r, vf_load_n(r->x + i, left), w, b), left);
}

static void rms_norm_row(const float *x, const float *w, float *y, int64_t n, float eps)
{
    double scale = 1.0 / sqrt(sum_squares(x, n, 0.0) / (double)n + (double)eps);
    norm_write(&(norm_row){.x = x, .w = w, .y = y, .n = n, .scale = (float)scale});
}

void VEC_NAME(rms_norm_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_rms_norm_params *p = step->params;
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    int64_t first, last;
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++)
        rms_norm_row(tn_view_row(x, r), row_optional(step, 1), tn_view_row(y, r), y->ne[3], p->eps);
}

void VEC_NAME(add_rms_norm_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_add_rms_norm_params *p = step->params;
    const tn_view *y = &step->dst[TN_DST_add_rms_norm_normed];
    int64_t first, last, n = y->ne[3];
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++) {
        const float *a = tn_view_row(&step->src[TN_SRC_add_rms_norm_a], r),
                    *b = tn_view_row(&step->src[TN_SRC_add_rms_norm_b], r);
        float *sum = tn_view_row(&step->dst[TN_DST_add_rms_norm_sum], r);
        int64_t i = 0;
        for (; i + VEC_N <= n; i += VEC_N) vf_store(sum + i, vf_add(vf_load(a + i), vf_load(b + i)));
        for (; i < n; i++) sum[i] = a[i] + b[i];
        rms_norm_row(sum, row_optional(step, TN_SRC_add_rms_norm_w), tn_view_row(y, r), n, p->eps);
    }
}

void VEC_NAME(layer_norm_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_layer_norm_params *p = step->params;
    const tn_view *y = &step->dst[0];
    int64_t first, last, n = y->ne[3];
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++) {
        const float *x = tn_view_row(&step->src[TN_SRC_layer_norm_x], r);
        double mean = sum_row(x, n) / (double)n;
        double scale = 1.0 / sqrt(sum_squares(x, n, mean) / (double)n + (double)p->eps);
        norm_write(&(norm_row){
            .x = x,
            .w = row_optional(step, TN_SRC_layer_norm_w),
            .b = row_optional(step, TN_SRC_layer_norm_bias),
            .y = tn_view_row(y, r),
            .n = n,
            .mean = (float)mean,
            .mean_low = (float)(mean - (double)(float)mean),
            .scale = (float)scale,
        });
    }
}
