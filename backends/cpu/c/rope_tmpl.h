// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope (Su et al. 2021, eq. 34; YaRN, Peng et al. 2023, section 3.2) and norm_rope (RMS norm of each head
// first). x [T, H, D] f32, pos I32 [T], factors f32 [n_rot/2] optional -> like x.
// theta_t = pos * phi_t * (freq_scale (1 - g_t) + g_t), phi_t = base^(-2t/n_rot) / factor_t, g_t = 0 without
// YaRN: the part without pos is computed once per thread, the sines of a token once for all its heads. Work:
// one token. No scratch. Angles are reduced to an eighth turn in double, so errors do not grow with the
// position; sine and cosine then to 1 ulp of f32. Bytes: 8 per element; limit: L2 or memory.
#include "backends/cpu/accepts.h"
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"

#include <string.h>

// What of the rotation does not depend on the token: quarter turns per position of each pair.
typedef struct rope_plan {
    const tn_rope_params *p;
    float magnitude;
    double quarters[TN_CPU_MAX_ROT / 2];
} rope_plan;

// cos and sin of a token as they are multiplied: NEOX [n_rot/2] each; NORM [n_rot] each, every value twice
// and the first sine of each pair negated.
typedef struct rope_table {
    float cos[TN_CPU_MAX_ROT], sin[TN_CPU_MAX_ROT];
} rope_table;

static void rope_plan_init(rope_plan *plan, const tn_rope_params *p, const float *factors)
{
    const double quarters_per_radian = 0.63661977236758134308; // 2 / pi
    double scale = p->freq_scale != 0.0f ? p->freq_scale : 1.0;
    double width = fmax(0.001, (double)p->yarn_high - (double)p->yarn_low);
    plan->p = p;
    plan->magnitude = p->attn_factor != 0.0f ? p->attn_factor : 1.0f;
    for (int32_t t = 0; t < p->n_rot / 2; t++) {
        double phi = pow((double)p->base, -2.0 * t / p->n_rot);
        if (factors) phi /= (double)factors[t];
        double x = (t - (double)p->yarn_low) / width, g = x < 0.0 ? 1.0 : x > 1.0 ? 0.0 : 1.0 - x;
        g *= (double)p->yarn_ext;
        plan->quarters[t] = phi * (scale * (1.0 - g) + g) * quarters_per_radian;
    }
}

// sin and cos of r quarter turns, |r| <= 1/2: minimax polynomials in radians, errors 4e-9 and 1e-10.
TN_INLINE void sin_cos_eighth(vf r, vf *s, vf *c)
{
    vf x = vf_mul(r, vf_set1(1.57079632679f)), z = vf_mul(x, x);
    vf p = vf_fma(vf_set1(-0.0001951697723f), z, vf_set1(0.008332175844f));
    p = vf_fma(p, z, vf_set1(-0.1666665491f));
    *s = vf_fma(vf_mul(p, z), x, x);
    p = vf_fma(vf_set1(2.443809177e-5f), z, vf_set1(-0.001388736449f));
    p = vf_fma(p, z, vf_set1(0.04166664681f));
    *c = vf_fma(vf_mul(p, z), z, vf_fma(vf_set1(-0.5f), z, vf_set1(1.0f)));
}

// c, s of VEC_N pairs from their distance r to the nearest quarter turn and its number modulo 4 (as floats).
TN_INLINE void rope_sin_cos(const float *r, const float *quarter, float magnitude, float *c, float *s)
{
    vf sr, cr, q = vf_load(quarter), one = vf_set1(1.0f), m = vf_set1(magnitude);
    sin_cos_eighth(vf_load(r), &sr, &cr);
    vm swap = vm_eq(vf_abs(vf_sub(q, vf_set1(2.0f))), one); // 1 and 3: sine and cosine change places
    vf minus_c = vf_select(vm_eq(vf_abs(vf_sub(q, vf_set1(1.5f))), vf_set1(0.5f)), vf_set1(-1.0f), one);
    vf minus_s = vf_select(vm_lt(one, q), vf_set1(-1.0f), one);
    vf_store(c, vf_mul(vf_mul(vf_select(swap, sr, cr), minus_c), m));
    vf_store(s, vf_mul(vf_mul(vf_select(swap, cr, sr), minus_s), m));
}

static void rope_table_init(rope_table *table, const rope_plan *plan, int32_t pos)
{
    int32_t n = plan->p->n_rot / 2;
    bool pairs = plan->p->mode == TN_ROPE_NORM;
    for (int32_t t = 0; t < n; t += VEC_N) {
        float r[VEC_N] = {0}, quarter[VEC_N] = {0}, c[VEC_N], s[VEC_N];
        for (int32_t i = 0; i < VEC_N && t + i < n; i++) {
            // 1.5 * 2^52: the sum is rounded to a whole number, whose low bits are those of the mantissa.
            double q = plan->quarters[t + i] * (double)pos, sum = q + 6755399441055744.0;
            uint64_t bits;
            memcpy(&bits, &sum, sizeof bits);
            r[i] = (float)(q - (sum - 6755399441055744.0));
            quarter[i] = (float)(int32_t)(bits & 3);
        }
        rope_sin_cos(r, quarter, plan->magnitude, c, s);
        for (int32_t i = 0; i < VEC_N && t + i < n; i++) {
            if (pairs) {
                table->cos[2 * (t + i)] = table->cos[2 * (t + i) + 1] = c[i];
                table->sin[2 * (t + i)] = -s[i];
                table->sin[2 * (t + i) + 1] = s[i];
            } else {
                table->cos[t + i] = c[i];
                table->sin[t + i] = s[i];
            }
        }
    }
}

// (x0, x1) -> (x0 c - x1 s, x1 c + x0 s) for neighbours: x * c + swapped(x) * s with the signs in the table
static void rotate_pairs(const float *x, float *y, const rope_table *t, int32_t n_rot)
{
    int32_t i = 0;
    for (; i + VEC_N <= n_rot; i += VEC_N) {
        vf v = vf_load(x + i);
        vf_store(y + i, vf_fma(v, vf_load(t->cos + i), vf_mul(vf_swap_pairs(v), vf_load(t->sin + i))));
    }
    for (; i < n_rot; i += 2) {
        float a = x[i], b = x[i + 1];
        y[i] = a * t->cos[i] + b * t->sin[i];
        y[i + 1] = b * t->cos[i + 1] + a * t->sin[i + 1];
    }
}

static void rotate_halves(const float *x, float *y, const rope_table *t, int32_t n_rot)
{
    int32_t half = n_rot / 2, i = 0;
    for (; i + VEC_N <= half; i += VEC_N) {
        vf a = vf_load(x + i), b = vf_load(x + half + i), c = vf_load(t->cos + i), s = vf_load(t->sin + i);
        vf_store(y + i, vf_fnma(b, s, vf_mul(a, c)));
        vf_store(y + half + i, vf_fma(a, s, vf_mul(b, c)));
    }
    for (; i < half; i++) {
        float a = x[i], b = x[half + i];
        y[i] = a * t->cos[i] - b * t->sin[i];
        y[half + i] = b * t->cos[i] + a * t->sin[i];
    }
}

// y may be x.
static void rotate_head(const float *x, float *y, int64_t n, const rope_table *t, const tn_rope_params *p)
{
    if (p->mode == TN_ROPE_NORM)
        rotate_pairs(x, y, t, p->n_rot);
    else
        rotate_halves(x, y, t, p->n_rot);
    if (x != y) memcpy(y + p->n_rot, x + p->n_rot, (size_t)(n - p->n_rot) * sizeof *y);
}

void VEC_NAME(rope_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_view *x = &step->src[TN_SRC_rope_x], *y = &step->dst[0];
    const int32_t *pos = step->src[TN_SRC_rope_pos].data;
    int64_t first, last;
    rows_split(task, y->ne[1], &first, &last);
    if (first == last) return;
    rope_plan plan;
    rope_table table;
    rope_plan_init(&plan, step->params, row_optional(step, TN_SRC_rope_factors));
    for (int64_t t = first; t < last; t++) {
        rope_table_init(&table, &plan, pos[t]);
        for (int64_t h = 0; h < y->ne[2]; h++) {
            int64_t row = t * y->ne[2] + h;
            rotate_head(tn_view_row(x, row), tn_view_row(y, row), y->ne[3], &table, plan.p);
        }
    }
}

// y = x / sqrt(mean(x^2) + eps) * w
static void normalise_head(const float *x, const float *w, float *y, int64_t n, float eps)
{
    vd s = vd_zero();
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) s = vd_add_square(s, vf_load(x + i), 0.0);
    double sum = vd_sum(s);
    for (; i < n; i++) sum += (double)x[i] * (double)x[i];
    float scale = (float)(1.0 / sqrt(sum / (double)n + (double)eps));
    vf vs = vf_set1(scale);
    for (i = 0; i + VEC_N <= n; i += VEC_N)
        vf_store(y + i, vf_mul(vf_mul(vf_load(x + i), vs), vf_load(w + i)));
    for (; i < n; i++) y[i] = x[i] * scale * w[i];
}

void VEC_NAME(norm_rope_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_norm_rope_params *p = step->params;
    const tn_view *x = &step->src[TN_SRC_norm_rope_x], *y = &step->dst[0];
    const float *w = step->src[TN_SRC_norm_rope_w].data;
    const int32_t *pos = step->src[TN_SRC_norm_rope_pos].data;
    int64_t first, last;
    rows_split(task, y->ne[1], &first, &last);
    if (first == last) return;
    rope_plan plan;
    rope_table table;
    rope_plan_init(&plan, &p->rope, row_optional(step, TN_SRC_norm_rope_factors));
    for (int64_t t = first; t < last; t++) {
        rope_table_init(&table, &plan, pos[t]);
        for (int64_t h = 0; h < y->ne[2]; h++) {
            int64_t row = t * y->ne[2] + h;
            float *out = tn_view_row(y, row);
            normalise_head(tn_view_row(x, row), w, out, y->ne[3], p->eps);
            rotate_head(out, out, y->ne[3], &table, &p->rope);
        }
    }
}
