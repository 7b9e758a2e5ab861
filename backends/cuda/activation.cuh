// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations and GLU in f32, as tn_scalar_unary and tn_scalar_glu of ops/ define them.
#ifndef TN_CUDA_ACTIVATION_CUH
#define TN_CUDA_ACTIVATION_CUH

#include "backends/cuda/common.cuh"

#include <tenon/params.h>

// From here on log1p(exp(x)) is x in f32: exp(-30) is too small to change 30.
static constexpr float TN_SOFTPLUS_LINEAR = 30.0f;

// The activation of kind TN_UNARY_* with all parameters 0, as fused ops have it; TN_UNARY_NONE returns x.
static __device__ __forceinline__ float tn_act(int kind, float x)
{
    switch (kind) {
    case TN_UNARY_SILU: return x / (1.0f + expf(-x));
    // gelu is x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), and gelu_erf is x (1 + erf u) / 2
    // with u = x / sqrt(2). 1 + tanh u and 1 + erf u cancel at negative x, so the equal forms without
    // cancellation are used: (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)) and (1 + erf u) / 2 = erfc(-u) / 2.
    case TN_UNARY_GELU: return x / (1.0f + expf(-1.59576912160573071176f * (x + 0.044715f * x * x * x)));
    case TN_UNARY_GELU_ERF: return 0.5f * x * erfcf(x * -0.70710678118654752440f);
    case TN_UNARY_RELU: return x > 0.0f || isnan(x) ? x : 0.0f;
    case TN_UNARY_TANH: return tanhf(x);
    case TN_UNARY_SIGMOID: return 1.0f / (1.0f + expf(-x));
    case TN_UNARY_EXP: return expf(x);
    case TN_UNARY_LOG: return logf(x);
    case TN_UNARY_SQRT: return sqrtf(x);
    case TN_UNARY_SQUARE: return x * x;
    case TN_UNARY_ABS: return fabsf(x);
    case TN_UNARY_SOFTPLUS: return x > TN_SOFTPLUS_LINEAR ? x : log1pf(expf(x));
    case TN_UNARY_AFFINE: return 0.0f * x;
    case TN_UNARY_SOFTCAP: return 0.0f * tanhf(x / 0.0f);
    case TN_UNARY_CLAMP: return x != x ? x : 0.0f;
    default: return x;
    }
}

// act(gate) * up, with the limits of gpt-oss where p has them: values are clamped, and where alpha is given
// the result is gate * sigmoid(alpha * gate) * (up + 1).
static __device__ __forceinline__ float tn_glu_of(const tn_glu_params &p, float gate, float up)
{
    if (p.limit > 0.0f) {
        if (gate > p.limit) gate = p.limit;
        up = up > p.limit ? p.limit : up < -p.limit ? -p.limit : up;
    }
    if (p.alpha > 0.0f) return gate / (1.0f + expf(-p.alpha * gate)) * (up + 1.0f);
    return tn_act(p.act, gate) * up;
}

#endif
