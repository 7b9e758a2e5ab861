// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of the ops, one struct per op that has any. What an op computes stands at the head of
// ops/<op>.c and, for callers, in graph.h. Zero-initialise, then set what matters: 0 is "off" everywhere.
#ifndef TENON_PARAMS_H
#define TENON_PARAMS_H

#include <tenon/base.h>

TN_EXTERN_C_BEGIN

// Highest rank of a tensor. Shapes are outermost first; the last dimension is contiguous.
#define TN_MAX_DIMS 4

typedef struct tn_reshape_params {
    int32_t n_dims;
    int64_t shape[TN_MAX_DIMS]; // same number of elements; one entry may be -1 (computed)
} tn_reshape_params;

typedef struct tn_permute_params {
    int32_t axes[TN_MAX_DIMS]; // result axis i is source axis axes[i]; as many as the source has
} tn_permute_params;

typedef struct tn_slice_params {
    int32_t axis;
    int64_t start, length; // elements along axis
} tn_slice_params;

typedef struct tn_copy_params {
    tn_dtype dtype; // F32, F16 or BF16: type of the contiguous result
} tn_copy_params;

typedef struct tn_concat_params {
    int32_t axis;
} tn_concat_params;

enum {
    TN_UNARY_AFFINE,   // a*x + b
    TN_UNARY_SILU,     // x * sigmoid(x)
    TN_UNARY_GELU,     // tanh form, Hendrycks and Gimpel 2016, eq. 2
    TN_UNARY_GELU_ERF, // exact form
    TN_UNARY_RELU,
    TN_UNARY_TANH,
    TN_UNARY_SIGMOID,
    TN_UNARY_EXP,
    TN_UNARY_LOG,
    TN_UNARY_SQRT,
    TN_UNARY_SQUARE,
    TN_UNARY_ABS,
    TN_UNARY_SOFTCAP, // a * tanh(x / a)
    TN_UNARY_SOFTPLUS,
    TN_UNARY_CLAMP, // min(max(x, a), b)
    TN_UNARY_COUNT,
    TN_UNARY_NONE = -1 // in fused ops: no activation
};
typedef struct tn_unary_params {
    int32_t kind;
    float a, b;
} tn_unary_params;

enum {
    TN_BINARY_ADD,
    TN_BINARY_SUB,
    TN_BINARY_MUL,
    TN_BINARY_DIV,
    TN_BINARY_MAX,
    TN_BINARY_MIN,
    TN_BINARY_COUNT
};
typedef struct tn_binary_params {
    int32_t kind;
} tn_binary_params;

enum { TN_REDUCE_SUM, TN_REDUCE_MEAN, TN_REDUCE_MAX, TN_REDUCE_COUNT };
typedef struct tn_reduce_params {
    int32_t kind; // over the last dimension, which becomes 1
} tn_reduce_params;

typedef struct tn_softmax_params {
    float scale; // of x before the mask is added; 0 means 1
} tn_softmax_params;

typedef struct tn_top_k_params {
    int32_t k;
    int32_t n_groups;      // 0 or 1: off. Split each row in that many runs, and
    int32_t n_groups_used; // keep the runs with the largest sum of their two best values
} tn_top_k_params;

typedef struct tn_get_rows_params {
    float scale; // of the result; 0 means 1
} tn_get_rows_params;

typedef struct tn_rms_norm_params {
    float eps;
} tn_rms_norm_params;

typedef struct tn_layer_norm_params {
    float eps;
} tn_layer_norm_params;

typedef struct tn_glu_params {
    int32_t act; // TN_UNARY_*: result is act(gate) * up
    float limit; // > 0: gate = min(gate, limit), up = clamp(up, -limit, limit)
    float alpha; // > 0: result is gate * sigmoid(alpha * gate) * (up + 1), act unused
} tn_glu_params;

enum { TN_ROPE_NORM, TN_ROPE_NEOX };
// RoPE, Su et al. 2021, eq. 34; YaRN, Peng et al. 2023, section 3.
typedef struct tn_rope_params {
    int32_t mode;        // TN_ROPE_NORM: pairs (2t, 2t+1); TN_ROPE_NEOX: pairs (t, t + n_rot/2)
    int32_t n_rot;       // rotated elements of each head, even; the rest passes through
    float base;          // theta base
    float freq_scale;    // positions are multiplied by it; 0 means 1
    float attn_factor;   // multiplies cos and sin; 0 means 1
    float yarn_ext;      // 0: no YaRN; 1: full ramp between scaled and unscaled angles
    float yarn_low;      // ramp borders as pair indices
    float yarn_high;
} tn_rope_params;

typedef struct tn_attention_params {
    float scale;
    int32_t causal;   // non-zero: a query sees positions up to its own
    int32_t window;   // > 0: and only the last `window` of them
    int32_t chunk;    // > 0: only positions >= floor(p / chunk) * chunk
    float softcap;    // > 0: s = softcap * tanh(s / softcap)
    float max_bias;   // > 0: ALiBi (Press et al. 2021) with slopes from this bias
} tn_attention_params;

enum { TN_GATING_SOFTMAX = 1, TN_GATING_SIGMOID = 2, TN_GATING_SOFTMAX_SELECTED = 3, TN_GATING_NONE = 0 };
typedef struct tn_moe_weights_params {
    int32_t gating;    // how router logits become weights
    int32_t normalise; // non-zero: divide by max(sum, 2^-14)
    float scale;       // of the weights; 0 means 1
} tn_moe_weights_params;

// Fused: act(norm(x) w^T + bias) + residual. Sources: x, w, then those of bias, residual and norm weight that
// exist.
typedef struct tn_linear_params {
    int32_t act;          // TN_UNARY_* or TN_UNARY_NONE
    int32_t has_bias;
    int32_t has_residual;
    int32_t has_norm; // x goes through rms_norm first
    float eps;        // of the norm
} tn_linear_params;

// Fused: up to three matmuls of the same x. Sources: x, w0, w1 [, w2], then the biases that exist, then the
// norm weight.
typedef struct tn_matmul_multi_params {
    int32_t n_weights;   // 2 or 3
    int32_t has_bias[3]; // biases follow the weights in this order
    int32_t has_norm;    // x goes through rms_norm first
    float eps;
} tn_matmul_multi_params;

// Most experts of a router that moe_route accepts.
#define TN_MOE_MAX_EXPERTS 4096

// Fused: the experts to which each row of x is routed, and their weights. x holds the logits of the experts,
// or the rows that the router is multiplied with. Sources: x, then those of router, its bias, bias of the
// ranking and norm weight that exist.
typedef struct tn_moe_route_params {
    tn_top_k_params top_k;
    tn_moe_weights_params weights;
    int32_t choice; // ranked by: TN_GATING_NONE logits, _SIGMOID or _SOFTMAX of them
    int32_t has_choice_bias;
    int32_t has_product; // x goes through the router first
    int32_t has_bias;    // which has a bias
    int32_t has_norm;    // x goes through rms_norm before, and what that makes is a result, too
    float eps;           // of the norm
} tn_moe_route_params;

// Fused: moe_sum and what is added to it. Sources: x, w, one or two tensors like the result, then the factor
// if there is one.
typedef struct tn_moe_combine_params {
    int32_t n_added;
    int32_t has_factor; // [T, 1] of the first that is added
} tn_moe_combine_params;

// Fused. Sources: x, gate, up, then the norm weight if there is one.
typedef struct tn_matmul_glu_params {
    tn_glu_params glu;
    int32_t has_norm; // x goes through rms_norm first
    float eps;
} tn_matmul_glu_params;

typedef struct tn_matmul_id_glu_params {
    tn_glu_params glu;
} tn_matmul_id_glu_params;

typedef struct tn_add_rms_norm_params {
    float eps;
} tn_add_rms_norm_params;

// Fused: q and k of an attention through their norms and rope, k and v into the cache.
typedef struct tn_rope_cache_params {
    int32_t has_norm[2]; // of q, of k: rms_norm per head first
    float eps;
    tn_rope_params rope;
} tn_rope_cache_params;

// Gated delta rule (Yang et al. 2024, eq. 10)
typedef struct tn_delta_rule_params {
    float scale;       // of queries
    int32_t normalise; // non-zero: queries and keys of each head are divided by max(length, eps) first
    float eps;
    int32_t grouped; // value head a reads query and key head a / (H / Hk), else a mod Hk
} tn_delta_rule_params;

// Fused: rms_norm per head, then rope
typedef struct tn_norm_rope_params {
    float eps;
    tn_rope_params rope;
} tn_norm_rope_params;

TN_EXTERN_C_END
#endif
