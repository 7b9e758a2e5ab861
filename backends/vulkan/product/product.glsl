// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows the multiplication in the products that have no code of their own for it: GLU, bias,
// activation, residual. Which of them a step has, and where, stands in args.n (N_PRODUCT_* in
// runtime/args.h).

float residual_of(uint r, uint j)
{
    return args.n[N_PRODUCT_RESIDUAL] >= 0
               ? load_f32(row_of(args.src[args.n[N_PRODUCT_RESIDUAL]], r) + 4 * int64_t(j))
               : 0.0;
}

// Finishes row r, column j of the result, stores it and returns it. v, up: sums of the weight, or of gate and
// up; residual: what is added, or 0.
float finish(uint r, uint j, float v, float up, float residual)
{
    if (args.n[N_PRODUCT_GLU] >= 0) v = glu(args.n[N_PRODUCT_GLU], v, up);
    if (args.n[N_PRODUCT_BIAS] >= 0) v += load_f32(args.src[args.n[N_PRODUCT_BIAS]].data + 4 * int64_t(j));
    if (args.n[N_PRODUCT_ACT] >= 0) v = unary(args.n[N_PRODUCT_ACT], v, 0.0, 0.0);
    v += residual;
    store_f32(row_of(args.dst[args.n[N_PRODUCT_RESULT]], r) + 4 * int64_t(j), v);
    return v;
}
