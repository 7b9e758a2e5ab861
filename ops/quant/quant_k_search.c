// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Scale searches of the K formats. For fixed codes q the best scale in the least-squares sense is
// sum(w x q) / sum(w q^2), and the error falls by sum(w x q)^2 / sum(w q^2): that quotient is maximised.
//
// Sums run in element order in f32: other orders are as good but give other bytes.
#include "ops/quant/quant_k_search.h"

#include "ops/quant/quant_formats.h"

enum { GROUP_MAX = 32, N_SWEEPS = 5 };

// sum(w x q) and sum(w q^2).
typedef struct fit {
    float xq, qq;
} fit;

static float fit_scale(fit f)
{
    return f.qq > 0.0f ? f.xq / f.qq : 0.0f;
}

static fit fit_codes(int n, const float *x, const float *w, const int8_t *q)
{
    fit f = {0.0f, 0.0f};
    for (int i = 0; i < n; i++) {
        float weight = w ? w[i] : x[i] * x[i], code = (float)q[i];
        f.xq += weight * x[i] * code;
        f.qq += weight * code * code;
    }
    return f;
}

static void round_codes(int n, int n_max, const float *x, float inverse, int8_t *q)
{
    for (int i = 0; i < n; i++) {
        q[i] = (int8_t)tn_round_even(inverse * x[i], (float)-n_max, (float)(n_max - 1));
    }
}

float tn_search_symmetric(int n, int n_max, const float *x, const float *w, int8_t *q)
{
    float max = tn_signed_max(n, x);
    if (fabsf(max) < TN_SEARCH_EPS) {
        memset(q, 0, (size_t)n);
        return 0.0f;
    }
    round_codes(n, n_max, x, (float)-n_max / max, q);
    fit f = fit_codes(n, x, w, q);
    float scale = fit_scale(f), best = scale * f.xq;
    for (int k = -9; k <= 9; k++) {
        if (k == 0) continue;
        int8_t trial[GROUP_MAX];
        round_codes(n, n_max, x, -((float)n_max + 0.1f * (float)k) / max, trial);
        f = fit_codes(n, x, w, trial);
        if (f.qq > 0.0f && f.xq * f.xq > best * f.qq) {
            memcpy(q, trial, (size_t)n);
            scale = fit_scale(f);
            best = scale * f.xq;
        }
    }
    return scale;
}

// One pass of coordinate descent; says whether a code changed.
static bool refine_sweep(int n, int n_max, const float *x, int8_t *q, fit *f)
{
    bool changed = false;
    for (int i = 0; i < n; i++) {
        float w = x[i] * x[i], code = (float)q[i];
        fit rest = {f->xq - w * x[i] * code, f->qq - w * code * code};
        if (!(rest.xq > 0.0f)) continue;
        int32_t next = tn_round_even(x[i] * rest.qq / rest.xq, (float)-n_max, (float)(n_max - 1));
        if (next == q[i]) continue;
        rest.xq += w * x[i] * (float)next;
        rest.qq += w * (float)next * (float)next;
        if (rest.qq > 0.0f && rest.xq * rest.xq * f->qq > f->xq * f->xq * rest.qq) {
            q[i] = (int8_t)next;
            *f = rest;
            changed = true;
        }
    }
    return changed;
}

float tn_search_refine(int n, int n_max, const float *x, int8_t *q)
{
    float max = tn_signed_max(n, x);
    if (fabsf(max) < TN_SEARCH_EPS) {
        memset(q, 0, (size_t)n);
        return 0.0f;
    }
    round_codes(n, n_max, x, (float)-n_max / max, q);
    fit f = fit_codes(n, x, NULL, q);
    int k = 0;
    while (k < N_SWEEPS && refine_sweep(n, n_max, x, q, &f)) k++;
    return fit_scale(f);
}

// --- scale and minimum -----------------------------------------------------------------------------

// Codes of one trial, kept as floats: all arithmetic on them is.
static void trial_codes(const tn_search_range *r, const float *x, float inverse, float lo, float *q)
{
    for (int i = 0; i < r->n; i++) {
        q[i] = (float)tn_round_even(inverse * (x[i] - lo), 0.0f, (float)r->n_max);
    }
}

static float weighted_error(const tn_search_range *r, const float *x, const float *w, const float *q,
                            float scale, float lo)
{
    float sum = 0.0f;
    for (int i = 0; i < r->n; i++) {
        float diff = scale * q[i] + lo - x[i];
        sum += w[i] * (r->absolute ? fabsf(diff) : diff * diff);
    }
    return sum;
}

// Weighted linear regression of x on q; false if the codes do not determine it.
static bool regress(const tn_search_range *r, const float *x, const float *w, const float *q, float *scale,
                    float *lo)
{
    float sum_w = 0.0f, sum_x = 0.0f, sum_q = 0.0f, sum_qq = 0.0f, sum_xq = 0.0f;
    for (int i = 0; i < r->n; i++) {
        float wq = w[i] * q[i];
        sum_w += w[i];
        sum_x += w[i] * x[i];
        sum_q += wq;
        sum_qq += wq * q[i];
        sum_xq += wq * x[i];
    }
    float det = sum_w * sum_qq - sum_q * sum_q;
    if (!(det > 0.0f)) return false;
    *scale = (sum_w * sum_xq - sum_x * sum_q) / det;
    *lo = (sum_qq * sum_x - sum_q * sum_xq) / det;
    if (*lo > 0.0f) {
        *lo = 0.0f;
        *scale = sum_xq / sum_qq;
    }
    return true;
}

float tn_search_scale_min(const tn_search_range *range, const float *x, const float *w, uint8_t *q,
                          float *min)
{
    const tn_search_range r = *range;
    float lo = 0.0f, hi = x[0], best_q[GROUP_MAX], trial[GROUP_MAX];
    for (int i = 0; i < r.n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    if (!(hi > lo)) {
        memset(q, 0, (size_t)r.n);
        *min = -lo;
        return 0.0f;
    }
    float inverse = (float)r.n_max / (hi - lo), scale = 1.0f / inverse;
    trial_codes(&r, x, inverse, lo, best_q);
    float best = weighted_error(&r, x, w, best_q, scale, lo);
    for (int k = 0; k <= r.n_steps; k++) {
        float trial_scale, trial_lo;
        inverse = (r.step_min + r.step * (float)k + (float)r.n_max) / (hi - lo);
        trial_codes(&r, x, inverse, lo, trial);
        if (!regress(&r, x, w, trial, &trial_scale, &trial_lo)) continue;
        float error = weighted_error(&r, x, w, trial, trial_scale, trial_lo);
        if (error < best) {
            memcpy(best_q, trial, (size_t)r.n * sizeof *trial);
            best = error;
            scale = trial_scale;
            lo = trial_lo; // later trials start from the better minimum
        }
    }
    for (int i = 0; i < r.n; i++) q[i] = (uint8_t)best_q[i];
    *min = -lo;
    return scale;
}

// --- scales of scales ------------------------------------------------------------------------------

static float positive_error(int n, int n_max, const float *x, const float *w, float inverse)
{
    float sum = 0.0f, scale = 1.0f / inverse;
    for (int i = 0; i < n; i++) {
        float diff = x[i] - scale * (float)tn_round_even(inverse * x[i], 0.0f, (float)n_max);
        sum += w[i] * diff * diff;
    }
    return sum;
}

static bool positive_sweep(int n, int n_max, const float *x, const float *w, uint8_t *q, fit *f)
{
    bool changed = false;
    for (int i = 0; i < n; i++) {
        float code = (float)q[i];
        fit rest = {f->xq - w[i] * x[i] * code, f->qq - w[i] * code * code};
        if (!(rest.xq > 0.0f && rest.qq > 0.0f)) continue;
        int32_t next = tn_round_even(x[i] * rest.qq / rest.xq, 0.0f, (float)n_max);
        if (next == q[i]) continue;
        rest.xq += w[i] * x[i] * (float)next;
        rest.qq += w[i] * (float)next * (float)next;
        if (rest.xq * rest.xq * f->qq > f->xq * f->xq * rest.qq) {
            q[i] = (uint8_t)next;
            *f = rest;
            changed = true;
        }
    }
    return changed;
}

float tn_search_positive(int n, int n_max, const float *x, const float *w, uint8_t *q)
{
    float max = 0.0f;
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    if (max < TN_SEARCH_EPS) {
        memset(q, 0, (size_t)n);
        return 0.0f;
    }
    float inverse = (float)n_max / max, best = positive_error(n, n_max, x, w, inverse);
    for (int k = -4; k <= 4; k++) {
        if (k == 0) continue;
        float trial = (0.1f * (float)k + (float)n_max) / max;
        float error = positive_error(n, n_max, x, w, trial);
        if (error < best) {
            best = error;
            inverse = trial;
        }
    }
    fit f = {0.0f, 0.0f};
    for (int i = 0; i < n; i++) {
        int32_t code = tn_round_even(inverse * x[i], 0.0f, (float)n_max);
        q[i] = (uint8_t)code;
        f.xq += w[i] * x[i] * (float)code;
        f.qq += w[i] * (float)code * (float)code;
    }
    int k = 0;
    while (k < N_SWEEPS && positive_sweep(n, n_max, x, w, q, &f)) k++;
    return fit_scale(f);
}
