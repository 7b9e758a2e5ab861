// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Judging a result: NMSE = sum (a - b)^2 / sum b^2 over the finite elements of the reference, and what no
// tolerance covers: NaN, infinities, integers.
#include "core/fp16.h"
#include "ops/quant.h"
#include "tests/check/check.h"

#include <math.h>
#include <string.h>

// Below this, values may be flushed to zero: f32 has no full precision there.
#define TINY 1e-34

typedef struct sums {
    double error, total;
    double worst; // largest squared error so far
    double floor;
    bool relative;
} sums;

static void problem(check_diff *d, int64_t i, double got, double want, const char *text)
{
    if (d->problem) return;
    d->problem = text;
    d->worst = i;
    d->got = got;
    d->want = want;
}

static void add(check_diff *d, sums *s, int64_t i, double got, double want)
{
    if (isnan(want)) {
        if (!isnan(got)) problem(d, i, got, want, "no NaN where the reference has one");
        return;
    }
    if (isnan(got)) {
        problem(d, i, got, want, "NaN");
        return;
    }
    if (isinf(want) || isinf(got)) {
        if (got != want) problem(d, i, got, want, "infinities differ");
        return;
    }
    double diff = got - want, scale = fmax(fabs(want), s->floor);
    double error = s->relative ? diff / scale * (diff / scale) : diff * diff;
    s->error += error;
    s->total += s->relative ? 1.0 : scale * scale;
    if (!d->problem && error > s->worst) {
        s->worst = error;
        d->worst = i;
        d->got = got;
        d->want = want;
    }
}

static bool same_bits(const tn_view *a, const tn_view *b)
{
    size_t size = tn_dtype_row_size(a->dtype, a->ne[3]) * (size_t)tn_view_n_rows(a);
    return memcmp(a->data, b->data, size) == 0;
}

static void compare_ints(check_diff *d, const tn_view *got, const tn_view *want)
{
    const int32_t *a = got->data, *b = want->data;
    for (int64_t i = 0; i < d->n; i++)
        if (a[i] != b[i]) problem(d, i, a[i], b[i], "integers differ");
}

static void compare_exact(check_diff *d, const tn_view *got, const tn_view *want)
{
    const float *a = got->data, *b = want->data;
    for (int64_t i = 0; i < d->n; i++)
        if (tn_f32_bits(a[i]) != tn_f32_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            problem(d, i, (double)a[i], (double)b[i], "not the same bits");
}

check_diff check_compare(const tn_view *got, const tn_view *want, const check_rule *rule)
{
    check_diff d = {.n = tn_view_n_elems(want)};
    sums s = {.relative = rule->relative, .floor = fmax(rule->floor, TINY)};
    if (same_bits(got, want)) return d;
    if (want->dtype == TN_TYPE_I32) {
        compare_ints(&d, got, want);
        return d;
    }
    if (rule->exact && want->dtype == TN_TYPE_F32) {
        compare_exact(&d, got, want);
        return d;
    }
    const tn_quant_info *info = tn_quant_info_get(want->dtype);
    int64_t step = tn_dtype_block_elems(want->dtype);
    const char *a = got->data, *b = want->data;
    for (int64_t i = 0; i < d.n; i += step) {
        float x[256], y[256];
        info->to_f32(a, x, step);
        info->to_f32(b, y, step);
        for (int64_t j = 0; j < step; j++) add(&d, &s, i + j, (double)x[j], (double)y[j]);
        a += tn_dtype_block_size(want->dtype);
        b += tn_dtype_block_size(want->dtype);
    }
    d.nmse = s.total > 0.0 ? s.error / s.total : 0.0;
    d.worst_nse = s.total > 0.0 ? s.worst / (s.total / (double)d.n) : 0.0;
    return d;
}
