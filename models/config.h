// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Hyper-parameters of a model: the row of archs.def and the keys of the file, checked against each other.
#ifndef TN_MODELS_CONFIG_H
#define TN_MODELS_CONFIG_H

#include "models/gguf/gguf.h"

#include <tenon/embed.h>
#include <tenon/params.h>

enum {
    TN_MAX_LAYERS = 1024,
    TN_MAX_EXPERTS = 4096,
    TN_MAX_WIDTH = 1 << 20,
    TN_MAX_VOCAB = 1 << 24,
    TN_MAX_MLA_RANK = 1 << 14,
    TN_MAX_HEAD = 4096 // dimensions of a head
};

enum { TN_ARCH_ROPE_NORM = TN_ROPE_NORM, TN_ARCH_ROPE_NEOX = TN_ROPE_NEOX, TN_ARCH_ROPE_NONE };
enum { TN_ARCH_NORM_RMS, TN_ARCH_NORM_LAYER };
enum { TN_ARCH_REQUIRED = -1 }; // in place of the default of a key: the file must have it

// Some layers are gated delta nets, the others have gated attention: which query and key head a value head
// reads (params.h).
enum { TN_DELTA_NONE, TN_DELTA_TILED, TN_DELTA_GROUPED };

// A row of archs.def. A row has no fields for facts that the file states by a key or by the presence of a
// tensor.
typedef struct tn_arch {
    const char *name;
    int32_t rope, norm, act; // TN_ARCH_ROPE_*, TN_ARCH_NORM_*, TN_UNARY_*
    bool gated; // the feed-forward must have a gate; a gate in the file is used by all architectures
    // Embedding and head
    bool embed_sqrt;     // embeddings times sqrt(width)
    bool embed_norm;     // embeddings are normed
    bool positions;      // must have learned positions; positions in the file are used by all architectures
    bool untied;         // must have output.weight
    bool softcap;        // reads final_logit_softcapping
    float logit_softcap; // its default
    int32_t logit_scale; // logits times the key: 1, or TN_ARCH_REQUIRED
    bool scales;         // granite's four scales, rope.scaling.finetuned
    // Blocks
    bool no_pre_norm;      // attention and feed-forward read x without a norm
    bool post_norm;        // norms of the results of attention and feed-forward
    bool ffn_norm_renamed; // the norm before the feed-forward is called post_attention_norm
    bool parallel;         // x + attn(h) + ffn(h) in layers without ffn_norm
    bool parallel_key;     // the same with a norm each, if use_parallel_residual
    bool attn_norm_2;      // attention reads attn_norm_2 if it exists
    // every token sees all of its text, norms follow the additions; the results are embeddings
    bool encoder;
    // Attention
    // 1: q and k must have norms; more: models with this many layers must. Norms in the file are used by all
    // architectures
    int32_t qk_norm;
    // q and k of rotated layers are normed after rope, without weights; not with 128 experts
    bool qk_norm_after_rope;
    // v goes through a norm without weights, and is k as projected where there is no attn_v
    bool v_norm;
    bool head_rot;             // heads are as large as rope.dimension_count
    bool sinks;                // one more logit for each head, without a value: attn_sinks.weight
    // latent attention over a compressed cache, its YaRN factor in the attention scale
    bool mla;
    float attn_scale;          // of scores; 0: 1/sqrt(head size), or by keys
    float attn_softcap;        // default of attn_logit_softcapping, which is not read where this is 0
    int32_t n_layers_by_width; // models with this many layers multiply scores by 1/sqrt(width / heads)
    float max_bias;            // of ALiBi
    bool alibi_keys;           // reads attention.max_alibi_bias and attention.clamp_kqv
    int32_t delta;             // TN_DELTA_*
    // Sliding layers
    // of each `period` layers all but the last slide; default of the key. 0: none slide, keys are not read
    int32_t period;
    int32_t window;    // default of its key, or TN_ARCH_REQUIRED
    // they see the chunk of this many positions that contains the token; 0: the last `window` positions
    int32_t chunk;
    // their default rope base, with which positions are not scaled; 0: that of the other layers
    float swa_base;
    bool swa_rope;     // only they have rope
    bool swa_heads;    // their heads have a size of their own; an array may say which layers slide
    bool swa_unscaled; // rope scaling does not apply to them, and they have no base of their own
    // Rope
    bool rope_sections;    // the first two rope.dimension_sections > 0: NEOX pairs
    bool rope_freqs;       // reads rope_freqs.weight
    bool longrope;         // reads rope_factors_*.weight
    bool longrope_by_type; // if the scaling type is longrope
    bool yarn_keys;        // mistral3: own YaRN keys and query temperature
    int32_t nope_period;   // the last of each `nope_period` layers has no rope; 0: all layers have it
    float temperature;     // of queries in layers without rope, see tn_config; 0: off, or by keys
    // Experts
    bool moe_norm;              // the weights of the selected experts are normalised
    bool moe_ff_full;           // experts are as wide as feed_forward_length
    bool moe_keys;              // gating, scale, norm and groups come from keys
    // every interleave_moe_layer_step-th layer has experts, and a shared expert for all tokens
    bool moe_step;
    bool moe_input;             // weights multiply the input of the experts, not their results
    bool moe_beside;            // experts beside an ordinary feed-forward, with norms of their own
    // a shared expert with a gate; without a key it is as wide as feed_forward_length
    bool shared_gate;
    int32_t gating;             // TN_GATING_*, 0: softmax
    float glu_limit, glu_alpha; // see tn_glu_params
} tn_arch;

typedef struct tn_layer_config {
    int32_t n_heads, n_kv_heads, n_ff;
    int32_t head_dim, head_dim_v; // of K and V in the cache
    // the layer whose K and V are read: itself, or an earlier one; then it has no cache
    int32_t kv_layer;
    bool sliding; // window applies
    bool no_rope; // q and k are not rotated
    bool dense;   // a key says that it has no experts
    bool recurrent; // it has a gated delta net instead of attention
} tn_layer_config;

// Multi-head latent attention (DeepSeek-V2, 2024, section 2.1). The cache holds one row per token: the
// compressed vector, whose rank is the size of values, then the rotated part of the keys.
typedef struct tn_mla_config {
    int32_t kv_rank;      // 0: ordinary attention
    int32_t q_rank;       // of compressed queries; 0: attn_q computes queries from x directly
    int32_t dim_q, dim_v; // head sizes before compression: dim_q with the rotated part
} tn_mla_config;

// Gated delta net (Yang et al. 2024).
typedef struct tn_delta_config {
    int32_t n_key_heads, n_heads, dim; // 0: no such layers; heads of values, size of all heads
    int32_t n_conv, n_channels;        // of the convolution before it
    float scale;                       // of queries
} tn_delta_config;

typedef struct tn_config {
    const tn_arch *arch;
    int32_t n_layers, n_embd, n_vocab, n_ctx_train;
    int32_t head_dim, head_dim_v; // of layers that do not slide
    int32_t head_dim_swa;         // of K in those that do
    int32_t n_per_layer;          // width of the second embedding of each layer, 0: none
    tn_mla_config mla;
    tn_delta_config delta;
    tn_layer_config *layers;      // n_layers
    float eps;
    bool parallel; // attention and feed-forward read the same x, by the key use_parallel_residual
    bool whole_texts; // no causal mask and no cache: a text is evaluated at once
    int32_t pooling;  // TN_POOLING_* of embed.h
    // Attention
    float attn_scale, attn_softcap, max_bias, clamp_kqv;
    int32_t window, chunk; // of sliding layers, 0: none
    // Positions
    tn_rope_params rope, rope_sliding; // n_rot 0: none
    int32_t n_ctx_original;            // of rope scaling
    bool longrope;                     // rope_factors_long / _short are read
    bool rope_freqs;
    // Queries at position p are multiplied by 1 + scale * ln(floor((p + start) / length) + 1). scale 0: off
    float temperature_scale;
    int32_t temperature_length, temperature_start;
    // Experts
    int32_t n_experts, n_experts_used, n_ff_expert;
    int32_t n_ff_shared; // of the expert that serves every token; 0: none
    tn_moe_weights_params moe;
    tn_glu_params expert_glu;
    int32_t n_expert_groups, n_expert_groups_used; // 0 or 1: none
    // Embedding and head
    float embed_scale, residual_scale, logit_scale, logit_softcap; // 0: off
} tn_config;

// Reads and checks everything. layers come from tn_alloc; tn_config_fini frees them.
// TN_ERR_MODEL: unknown architecture (the nearest known ones are named), TN_ERR_FORMAT: a key that is
// missing, of the wrong type, or out of range.
TN_MUST_USE tn_status tn_config_read(tn_context *ctx, const tn_gguf *gguf, tn_config *out);
void tn_config_fini(tn_context *ctx, tn_config *cfg);

#endif
