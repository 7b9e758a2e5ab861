// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The activations that matrix products apply to their sums before they write them: y = act(v), or for a gated
// pair (GLU) y = act(gate) * up. The lane that holds an element of the result calls this in registers, so no
// bytes move.
//
// It is a small part of a product (one call against 2 k operations of a sum), but its code size matters:
// inlined in an unrolled loop over all sums of a lane it outgrows the instruction cache
// (product/gemm/gemm_epilogue.cuh has the numbers).
#ifndef TN_CUDA_EPILOGUE_CUH
#define TN_CUDA_EPILOGUE_CUH

#include "backends/cuda/common.cuh"

#include <tenon/params.h>

static __device__ __forceinline__ float gemm_act(int kind, float x)
{
    switch (kind) {
    case TN_UNARY_SILU: return x / (1.0f + __expf(-x));
    case TN_UNARY_GELU:
        return 0.5f * x * (1.0f + tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x)));
    case TN_UNARY_GELU_ERF: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752440f));
    case TN_UNARY_RELU: return x > 0.0f || x != x ? x : 0.0f;
    case TN_UNARY_TANH: return tanhf(x);
    case TN_UNARY_SIGMOID: return 1.0f / (1.0f + __expf(-x));
    default: return x;
    }
}

static __device__ __forceinline__ float gemm_glu(int act, float limit, float alpha, float gate, float up)
{
    if (limit > 0.0f) {
        if (gate > limit) gate = limit;
        up = up > limit ? limit : up < -limit ? -limit : up;
    }
    if (alpha > 0.0f) return gate / (1.0f + __expf(-alpha * gate)) * (up + 1.0f);
    return gemm_act(act, gate) * up;
}

#endif
