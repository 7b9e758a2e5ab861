// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions on vectors, over the vec_*.h that was included before. Errors are those measured
// against double over all magnitudes; polynomials are minimax fits (Remez) of the functions named, except
// where a series is named. NaN in gives NaN out.
#ifndef TN_CPU_VEC_MATH_H
#define TN_CPU_VEC_MATH_H

// e^x = 2^n e^r, |r| <= ln(2)/2; error <= 1.5 ulp, subnormal results and infinities included.
TN_INLINE vf vf_exp(vf x)
{
    // Below -104 the result is 0. Masked scores are there: computing with them would underflow, which costs
    // ten times the whole function.
    vm vanishes = vm_lt(x, vf_set1(-104.0f));
    x = vf_min(vf_set1(89.0f), vf_select(vanishes, vf_zero(), x)); // above 89 infinity
    vf n = vf_round(vf_mul(x, vf_set1(1.44269504f)));
    // ln 2 in two parts, the first short enough that n times it is exact
    vf r = vf_fnma(n, vf_set1(-2.12194440e-4f), vf_fnma(n, vf_set1(0.693359375f), x));
    vf p = vf_set1(0.00139447585f); // (e^r - 1 - r) / r^2, relative error 5e-11
    p = vf_fma(vf_set1(0.0001979026225f), r, p);
    p = vf_fma(p, r, vf_set1(0.00833349764f));
    p = vf_fma(p, r, vf_set1(0.04166629364f));
    p = vf_fma(p, r, vf_set1(0.1666666586f));
    p = vf_fma(p, r, vf_set1(0.5000000068f));
    p = vf_add(vf_fma(p, vf_mul(r, r), r), vf_set1(1.0f));
    return vf_select(vanishes, vf_zero(), vf_scale2(p, n));
}

// ln x = e ln 2 + 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.172; series up to s^9. Error <= 2 ulp.
TN_INLINE vf vf_log(vf x)
{
    vm tiny = vm_lt(x, vf_set1(1.17549435e-38f)); // subnormal: scaled by 2^24
    vf e, m = vf_frexp(vf_select(tiny, vf_mul(x, vf_set1(16777216.0f)), x), &e);
    e = vf_sub(e, vf_select(tiny, vf_set1(24.0f), vf_zero()));
    vf f = vf_sub(m, vf_set1(1.0f)), s = vf_div(f, vf_add(m, vf_set1(1.0f))), z = vf_mul(s, s);
    vf p = vf_fma(vf_set1(1.0f / 9.0f), z, vf_set1(1.0f / 7.0f));
    p = vf_fma(p, z, vf_set1(0.2f));
    p = vf_fma(p, z, vf_set1(1.0f / 3.0f));
    // 2 s = f - s f, so that the leading term f has no rounding
    vf tail = vf_mul(s, vf_fnma(vf_mul(vf_set1(2.0f), z), p, f));
    vf y = vf_sub(f, tail);
    y = vf_fma(e, vf_set1(0.693359375f), vf_fma(e, vf_set1(-2.12194440e-4f), y));
    y = vf_select(vm_eq(x, vf_zero()), vf_set1(-INFINITY), y);
    y = vf_select(vm_eq(x, vf_set1(INFINITY)), x, y);
    // negative and NaN: x - x is 0 for the first, hence the division
    return vf_select(vm_le(vf_zero(), x), y, vf_div(vf_sub(x, x), vf_zero()));
}

// 1 / (1 + e^-x)
TN_INLINE vf vf_sigmoid(vf x)
{
    vf one = vf_set1(1.0f);
    return vf_div(one, vf_add(one, vf_exp(vf_sub(vf_zero(), x))));
}

// tanh x = x + x^3 P(x^2) up to 0.625, beyond 1 - 2 / (e^2x + 1) with the sign of x. Error <= 2 ulp.
TN_INLINE vf vf_tanh(vf x)
{
    vf a = vf_abs(x), z = vf_mul(x, x);
    vf p = vf_fma(vf_set1(-0.005717043378f), z, vf_set1(0.0206505861f));
    p = vf_fma(p, z, vf_set1(-0.05374349787f));
    p = vf_fma(p, z, vf_set1(0.1333149129f));
    p = vf_fma(p, z, vf_set1(-0.3333328393f));
    vf small = vf_fma(vf_mul(p, z), x, x);
    vf e = vf_exp(vf_add(a, a)), one = vf_set1(1.0f);
    vf large = vf_sub(one, vf_div(vf_set1(2.0f), vf_add(e, one)));
    return vf_select(vm_lt(a, vf_set1(0.625f)), small, vf_copysign(large, x));
}

// e^(z^2) erfc(z) (1 + 2z) as a polynomial in u = (z - 2) / (z + 2), z >= 0; relative error 1.5e-8.
TN_INLINE vf vec_erfc_scaled(vf u)
{
    vf p = vf_fma(vf_set1(-0.0003961036657f), u, vf_set1(-0.00122233721f));
    p = vf_fma(p, u, vf_set1(0.001312567908f));
    p = vf_fma(p, u, vf_set1(0.008625353201f));
    p = vf_fma(p, u, vf_set1(-0.008060887293f));
    p = vf_fma(p, u, vf_set1(-0.05420262064f));
    p = vf_fma(p, u, vf_set1(0.1640556544f));
    p = vf_fma(p, u, vf_set1(-0.1660315719f));
    p = vf_fma(p, u, vf_set1(-0.09276399737f));
    return vf_fma(p, u, vf_set1(1.276978396f));
}

// Normal distribution function (1 + erf(x / sqrt 2)) / 2, precise in the lower tail too.
TN_INLINE vf vf_normal_cdf(vf x)
{
    vf one = vf_set1(1.0f), two = vf_set1(2.0f);
    vf z = vf_min(vf_set1(10.5f), vf_mul(vf_abs(x), vf_set1(0.707106781f)));
    vf p = vec_erfc_scaled(vf_div(vf_sub(z, two), vf_add(z, two)));
    vf e = vf_exp(vf_mul(vf_mul(x, x), vf_set1(-0.5f)));
    vf tail = vf_div(vf_mul(p, e), vf_fma(z, vf_set1(4.0f), two));
    return vf_select(vm_lt(x, vf_zero()), tail, vf_sub(one, tail));
}

// ln(1 + e^x) = max(x, 0) + ln(1 + y), y = e^-|x|; the lost part of 1 + y is added back divided by it.
TN_INLINE vf vf_softplus(vf x)
{
    vf one = vf_set1(1.0f), y = vf_exp(vf_sub(vf_zero(), vf_abs(x))), u = vf_add(one, y);
    vf lost = vf_sub(y, vf_sub(u, one));
    return vf_add(vf_max(vf_zero(), x), vf_add(vf_log(u), vf_div(lost, u)));
}

#endif
