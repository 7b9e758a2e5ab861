// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Hyper-parameters of a model: the row of archs.def and the keys of the file, checked against each other.
#ifndef TN_MODELS_CONFIG_H
#define TN_MODELS_CONFIG_H

#include "models/gguf/gguf.h"

#include <tenon/params.h>

enum { TN_MAX_LAYERS = 1024, TN_MAX_EXPERTS = 4096, TN_MAX_WIDTH = 1 << 20, TN_MAX_VOCAB = 1 << 24, TN_MAX_MLA_RANK = 1 << 14 };

enum { TN_ARCH_ROPE_NORM = TN_ROPE_NORM, TN_ARCH_ROPE_NEOX = TN_ROPE_NEOX, TN_ARCH_ROPE_NONE };
enum { TN_ARCH_NORM_RMS, TN_ARCH_NORM_LAYER };

// What a row of archs.def switches on. Everything that a tensor's presence or a key tells is no flag.
enum {
    TN_ARCH_ROPE_FREQS = 1 << 0,      // reads rope_freqs.weight
    TN_ARCH_LONGROPE_TYPE = 1 << 1,   // reads rope_factors_* if the scaling type is longrope
    TN_ARCH_LONGROPE_ALWAYS = 1 << 2, // reads them whenever they exist
    TN_ARCH_MOE_NORM = 1 << 3,        // weights of the chosen experts are normalised
    TN_ARCH_MOE_FF_FULL = 1 << 4,     // experts are as wide as feed_forward_length
    TN_ARCH_EMBED_SQRT = 1 << 5,      // embeddings times sqrt(width)
    TN_ARCH_POSITIONS = 1 << 6,       // must have learned positions; where they exist, all architectures use them
    TN_ARCH_PARALLEL = 1 << 7,        // x + attn(h) + ffn(h)
    TN_ARCH_PARALLEL_KEY = 1 << 8,    // the same with a norm each, if use_parallel_residual
    TN_ARCH_ATTN_NORM_2 = 1 << 9,     // attention reads attn_norm_2 if it exists
    TN_ARCH_SCALES = 1 << 10,         // granite's four scales
    TN_ARCH_YARN_KEYS = 1 << 11,      // mistral3: own YaRN keys and query temperature
    TN_ARCH_SOFTCAP = 1 << 12,        // reads final_logit_softcapping
    TN_ARCH_FFN_NORM_NAME = 1 << 24,  // the norm before the feed-forward is called post_attention_norm
    TN_ARCH_SINKS = 1 << 25,          // a logit more for each head: attn_sinks.weight
    TN_ARCH_HEAD_ROT = 1 << 26,       // heads are as large as rope.dimension_count
    TN_ARCH_QK_UNIT = 1 << 27,        // q and k of rotated layers are normed after rope, without weights; not with 128 experts
    TN_ARCH_MOE_STEP = 1 << 28,       // every interleave_moe_layer_step-th layer has experts, and one for all tokens beside them
    TN_ARCH_MOE_INPUT = 1 << 29,      // weights of experts multiply what they take
    TN_ARCH_QK_NORM = 1 << 13,        // must have norms of q and k; where they exist, all architectures use them
    TN_ARCH_POST_NORM = 1 << 14,      // norms of what attention and feed-forward give
    TN_ARCH_NO_PRE_NORM = 1 << 15,    // and none of what they take
    TN_ARCH_SWA_UNSCALED = 1 << 16,   // rope scaling is not for sliding layers, which have no base of their own
    TN_ARCH_UNTIED = 1 << 17,         // must have output.weight
    TN_ARCH_EMBED_NORM = 1 << 18,     // embeddings are normed
    TN_ARCH_ALIBI_KEYS = 1 << 19,     // mpt: reads attention.max_alibi_bias and attention.clamp_kqv
    TN_ARCH_MLA = 1 << 20,            // latent attention over a compressed cache, its YaRN factor in the attention scale
    TN_ARCH_MOE_KEYS = 1 << 21,       // gating, scale, norm and groups of the experts come from keys
    TN_ARCH_SHARED_GATE = 1 << 22,    // experts have a shared one with a gate, without a key of its own as wide as feed_forward_length
};

typedef struct tn_arch {
    const char *name;
    int32_t rope, norm, act; // TN_ARCH_ROPE_*, TN_ARCH_NORM_*, TN_UNARY_*
    int32_t flags;
    int32_t period, window; // sliding layers: all but the last of each `period`; defaults of the keys. 0: no keys, no window; window -1: its key is required
    int32_t chunk;          // sliding layers see the run of so many positions that they are in; 0: the last `window` ones
    int32_t nope_period;    // the last layer of each so many has no rope; 0: all have
    float temperature;      // of queries in layers without rope, see tn_config; 0: off, or by keys
    float swa_base;         // rope base of sliding layers, whose positions are not scaled then; 0: as the others
    float attn_softcap, logit_softcap; // defaults of the keys; attn_logit_softcapping is not read where this is 0
    float max_bias;                    // of ALiBi
    int32_t n_layers_by_width;         // a model of so many layers has scores times 1/sqrt(width / heads)
    int32_t gating;                    // TN_GATING_*, 0: softmax
    float glu_limit, glu_alpha;        // of experts, see tn_glu_params
} tn_arch;

typedef struct tn_layer_config {
    int32_t n_heads, n_kv_heads, n_ff;
    bool sliding; // window applies
    bool no_rope; // q and k are not rotated
    bool dense;   // where a key tells: no experts
} tn_layer_config;

// Multi-head latent attention (DeepSeek-V2, 2024, section 2.1). The cache holds one row a token: the compressed vector,
// whose rank counts as the size of values, then the rotated part of the keys.
typedef struct tn_mla_config {
    int32_t kv_rank;      // 0: ordinary attention
    int32_t q_rank;       // of compressed queries; 0: attn_q makes them whole
    int32_t dim_q, dim_v; // head sizes before compression: dim_q with the rotated part
} tn_mla_config;

typedef struct tn_config {
    const tn_arch *arch;
    int32_t n_layers, n_embd, n_vocab, n_ctx_train;
    int32_t head_dim, head_dim_v; // of K and V in the cache
    tn_mla_config mla;
    tn_layer_config *layers;      // n_layers
    float eps;
    bool parallel;
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
    // Ends
    float embed_scale, residual_scale, logit_scale, logit_softcap; // 0: off
} tn_config;

// Reads and checks everything. layers come from tn_alloc; tn_config_fini frees them.
// TN_ERR_MODEL: unknown architecture (the nearest known ones are named), TN_ERR_FORMAT: a key that is
// missing, of the wrong type, or out of range.
TN_MUST_USE tn_status tn_config_read(tn_context *ctx, const tn_gguf *gguf, tn_config *out);
void tn_config_fini(tn_context *ctx, tn_config *cfg);

#endif
