// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations and gated units in f32, as tn_scalar_unary and tn_scalar_glu of ops/ define them.
#ifndef TN_CUDA_ACTIVATION_CUH
#define TN_CUDA_ACTIVATION_CUH

#include "backends/cuda/common.cuh"

#include <tenon/params.h>

// kind: TN_UNARY_*; parameters are 0, as they are in fused ops. TN_UNARY_NONE is x.
static __device__ __forceinline__ float tn_act(int kind, float x)
{
    switch (kind) {
    case TN_UNARY_SILU: return x / (1.0f + expf(-x));
    // (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)), and (1 + erf u) / 2 = erfc(-u) / 2: without the cancellation at negative x.
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
    case TN_UNARY_SOFTPLUS: return x > 30.0f ? x : log1pf(expf(x));
    case TN_UNARY_AFFINE: return 0.0f * x;
    case TN_UNARY_SOFTCAP: return 0.0f * tanhf(x / 0.0f);
    case TN_UNARY_CLAMP: return x != x ? x : 0.0f;
    default: return x;
    }
}

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
