// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows the sums of a product of up to 8 rows, as in product.glsl, but known or loaded while weights
// are in flight: which parts a product has are bits of the constant FORM, and most addresses come with the
// dispatch.
const bool GATED = (FORM & 1) != 0; // gate and up of a GLU
const bool STAGES = (FORM & 2) != 0; // the workgroup also writes a staged result
const bool NORMED = (FORM & 4) != 0, BIASED = (FORM & 8) != 0, ACTS = (FORM & 16) != 0;
const int GATE_ACT = (FORM >> 8) - 1; // of a plain GLU, so that a shader has the code of one function; or -1

// What is the same for all columns, and where the result of row r and column j goes.
struct Finish {
    uint64_t to;
    float eps;
    int act;
    Glu gate;
};

Finish find_finish(uint r, uint j)
{
    Finish f;
    f.to = 4 * int64_t(j) +
           (r > 0 ? row_of(args.dst[args.n[N_PRODUCT_RESULT]], r) : given_result);
    if (NORMED) f.eps = param_f(args.n[N_PRODUCT_EPS]);
    if (ACTS) f.act = args.n[N_PRODUCT_ACT];
    if (GATED && GATE_ACT < 0) f.gate = glu_params(args.n[N_PRODUCT_GLU]);
    return f;
}

float bias_of(uint j)
{
    return BIASED ? load_f32(args.src[args.n[N_PRODUCT_BIAS]].data + 4 * int64_t(j)) : 0.0;
}

float early_residual_of(uint r, uint j)
{
    if (given_residual == 0) return 0.0;
    return r > 0 ? residual_of(r, j) : load_f32(given_residual + 4 * int64_t(j));
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
