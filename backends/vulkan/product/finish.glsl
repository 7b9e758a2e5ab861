// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows the sums of a product, as in product.glsl, but known before: which parts a product has are
// bits of the constant FORM, and most addresses come with the dispatch. So there is little code, and what the
// end needs can be loaded while weights are in flight. Rows are evenly spaced.
const bool GATED = (FORM & 1) != 0; // gate and up of a GLU
const bool STAGES = (FORM & 2) != 0; // the workgroup also writes a staged result
const bool NORMED = (FORM & 4) != 0, BIASED = (FORM & 8) != 0, ACTS = (FORM & 16) != 0;
const bool EXPERTS = (FORM & 32) != 0, ADDS = (FORM & 64) != 0; // a residual
const int GATE_ACT = (FORM >> 8) - 1; // of a plain GLU, so that a shader has the code of one function; or -1

// What is the same for all columns, and where the result of row r and column j goes.
struct Finish {
    uint64_t to;
    float eps;
    int act;
    Glu gate;
};

// Bytes to row r of the result or the residual, whose rows are evenly spaced: N_PRODUCT_*_STRIDE.
uint64_t row_offset(uint r, int stride)
{
    return r > 0 ? uint64_t(r) * uint64_t(uint(args.n[stride])) : uint64_t(0);
}

Finish find_finish(uint r, uint j)
{
    Finish f;
    f.to = given_result + row_offset(r, N_PRODUCT_RESULT_STRIDE) + 4 * uint64_t(j);
    if (NORMED) f.eps = param_f(args.n[N_PRODUCT_EPS]);
    if (ACTS) f.act = args.n[N_PRODUCT_ACT];
    if (GATED && GATE_ACT < 0) f.gate = glu_params(args.n[N_PRODUCT_GLU]);
    return f;
}

float bias_of(uint j)
{
    return BIASED ? load_f32(args.src[args.n[N_PRODUCT_BIAS]].data + 4 * uint64_t(j)) : 0.0;
}

float early_residual_of(uint r, uint j)
{
    return ADDS ? load_f32(given_residual + row_offset(r, N_PRODUCT_RESIDUAL_STRIDE) + 4 * uint64_t(j)) : 0.0;
}

// The result from the sums of the weight, or of gate and up, and the sum of the squares of x.
float finish_one(Finish f, float value, float up, float squares, float k, float bias, float residual)
{
    if (NORMED) {
        float factor = inversesqrt(squares / k + f.eps);
        value *= factor;
        up *= factor;
    }
    if (GATED && GATE_ACT >= 0) value = unary(GATE_ACT, value, 0.0, 0.0) * up;
    else if (GATED) value = glu_of(f.gate, value, up);
    value += bias;
    if (ACTS) value = unary(f.act, value, 0.0, 0.0);
    return value + residual;
}
