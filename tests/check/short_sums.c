// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How far tensor cores that multiply e4m3 may move one element of a product. One instruction takes 32 of k.
// With 2^e the power of two of the largest of its products and of the sum so far, these are cut, towards
// zero, to multiples of 2^(e - 13); then their sum is cut to 13 bits behind its own leading one
// (arXiv:2412.19437, section 3.3.2, measured again in docs/log/cuda-gemm.md; tests/cuda/emulated computes the
// same). So the loss of each product is known exactly once e is, a sum loses less than its last bit, and
// where e is not certain the larger one loses more. The kernel adds up in f32 what it has after `run` of k.
//
// An activation or a gate is evaluated at the ends of what the sums may be. No number here is a choice.
#include "ops/product.h"
#include "tests/check/check.h"

#include <limits.h>
#include <math.h>

enum { STEP = 32, BITS = 13 }; // of k; kept behind the leading one

// The exponent of |x|, that of 0 below all others.
static int exponent(double x)
{
    return x == 0.0 ? INT_MIN : ilogb(x);
}

typedef struct short_sum {
    double value, bound; // the exact sum, and how far the computed one may be off
} short_sum;

// One instruction.
static void add_products(short_sum *s, const float *x, const float *w, int64_t n, bool first)
{
    int e = exponent(fabs(s->value) + s->bound);
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0.0f && w[i] != 0.0f) e = TN_MAX(e, ilogbf(x[i]) + ilogbf(w[i]));
    if (e == INT_MIN) return;
    double unit = ldexp(1.0, e - BITS);
    if (!first) s->bound += unit;
    for (int64_t i = 0; i < n; i++) {
        double p = (double)x[i] * (double)w[i];
        s->bound += fmod(fabs(p), unit);
        s->value += p;
    }
    s->bound += ldexp(1.0, exponent(fabs(s->value) + s->bound) - BITS);
}

static short_sum dot(const float *x, const float *w, int64_t k, int64_t run)
{
    short_sum all = {0.0, 0.0};
    for (int64_t from = 0; from < k; from += run) {
        short_sum s = {0.0, 0.0};
        int64_t end = TN_MIN(from + run, k);
        for (int64_t i = from; i < end; i += STEP)
            add_products(&s, x + i, w + i, TN_MIN(end - i, (int64_t)STEP), i == from);
        all.value += s.value;
        all.bound += s.bound;
    }
    return all;
}

// Element (row, column) of the product with weight i; operands are rounded, f32 and without a norm.
static short_sum dot_at(const tn_product *p, int32_t i, int64_t row, int64_t column, int64_t run)
{
    const tn_view *w = p->w[i];
    int64_t expert = 0;
    if (p->ids) {
        int64_t token = row / p->ids->ne[3], slot = row % p->ids->ne[3];
        expert = (int64_t)tn_view_get(p->ids, 0, 0, token, slot);
        if (expert < 0 || expert >= p->n_experts) return (short_sum){0.0, 0.0};
        row = token * p->x->ne[2] + (p->x->ne[2] > 1 ? slot : 0);
    }
    const char *at = (const char *)w->data + expert * w->nb[1] + column * w->nb[2];
    return dot((const float *)(const void *)tn_view_row(p->x, row), (const float *)(const void *)at, p->k,
               run);
}

// What becomes of the sums; the residual is the same for all of them.
static double finish(const tn_product *p, int32_t i, int64_t column, double first, double second)
{
    if (p->glu) return tn_scalar_glu(p->glu, first, second);
    if (p->bias[i]) first += tn_view_get_row(p->bias[i], 0, column);
    return p->act == TN_UNARY_NONE ? first : tn_scalar_unary(p->act, first, 0.0, 0.0);
}

double check_short_sums_bound(const tn_step *step, int32_t result, int64_t element, int64_t run)
{
    tn_product p = tn_product_get(step);
    int64_t n = p.y[result]->ne[3], row = element / n, column = element % n;
    short_sum s[2] = {dot_at(&p, result, row, column, run), {0.0, 0.0}};
    if (p.glu) s[1] = dot_at(&p, 1, row, column, run);
    double exact = finish(&p, result, column, s[0].value, s[1].value), most = 0.0;
    for (int32_t corner = 0; corner < 4; corner++) {
        double a = s[0].value + (corner & 1 ? s[0].bound : -s[0].bound),
               b = s[1].value + (corner & 2 ? s[1].bound : -s[1].bound);
        most = fmax(most, fabs(finish(&p, result, column, a, b) - exact));
    }
    return most;
}
