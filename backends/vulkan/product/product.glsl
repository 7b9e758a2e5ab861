// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows a matrix product. At args.n: 0 columns, 1 rows, 2 bias source (-1 none), 3 residual source (-1 none),
// 4 activation, 5 result, 6 glu parameters (first word, -1: not gated), 7 ids source (-1 none), 8 experts, 9 norm weight source
// (-1 none), 10 word of its epsilon.

float residual_of(uint r, uint j) { return args.n[N_PRODUCT_RESIDUAL] >= 0 ? load_f32(row_of(args.src[args.n[N_PRODUCT_RESIDUAL]], r) + 4 * int64_t(j)) : 0.0; }

// Row r, column j of the result, which it returns, from the products and the residual, or 0.
float finish(uint r, uint j, float v, float up, float residual)
{
    if (args.n[N_PRODUCT_GLU] >= 0) v = glu(args.n[N_PRODUCT_GLU], v, up);
    if (args.n[N_PRODUCT_BIAS] >= 0) v += load_f32(args.src[args.n[N_PRODUCT_BIAS]].data + 4 * int64_t(j));
    if (args.n[N_PRODUCT_ACT] >= 0) v = unary(args.n[N_PRODUCT_ACT], v, 0.0, 0.0);
    v += residual;
    store_f32(row_of(args.dst[args.n[N_PRODUCT_RESULT]], r) + 4 * int64_t(j), v);
    return v;
}
