// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Models of a few hundred kilobytes in the shape of real architectures, made in memory. A tiny_file lists the
// keys and tensors first, so that a test can damage them before the file is written.
#ifndef TN_TESTS_MODELS_TINY_MODEL_H
#define TN_TESTS_MODELS_TINY_MODEL_H

#include "models/model.h"
#include "ops/quant.h"
#include "tests/unit/counting.h"
#include "tests/unit/tiny_vocab.h"

#include <math.h>

typedef struct tiny_shape {
    const char *arch;
    int32_t n_layers, n_embd, n_heads, n_kv, head_dim, n_ff, n_ctx;
    int32_t n_experts, n_used, n_ff_expert; // 0: dense
    tn_dtype dtype;                         // of matrices: F32, Q8_0, ..; vectors are F32
    bool tokenizer;
    int32_t kv_rank; // of latent attention
} tiny_shape;

// n_vocab is that of tiny_spm, with and without the tokenizer.
enum { TINY_MODEL_VOCAB = 276 };
enum {
    TINY_LLAMA,
    TINY_QWEN3MOE,
    TINY_GPT2,
    TINY_GEMMA3,
    TINY_PHI3,
    TINY_GPT_OSS,
    TINY_DEEPSEEK2,
    TINY_LLAMA4,
    TINY_GEMMA4,
    TINY_QWEN35,
    TINY_QWEN3NEXT,
    TINY_QWEN35MOE,
    TINY_ARCHS
};
// Gated delta nets: heads of keys and of values, weights of the convolution, rotated dimensions.
enum {
    TINY_DELTA_KEYS = 2,
    TINY_DELTA_HEADS = 4,
    TINY_DELTA_DIM = 32,
    TINY_DELTA_CONV = 4,
    TINY_DELTA_ROT = 16
};
// Latent attention: rank of queries, rotated and value sizes.
enum { TINY_Q_RANK = 96, TINY_MLA_ROT = 8, TINY_MLA_VALUE = 32 };

// clang-format off
static const tiny_shape tiny_shapes[TINY_ARCHS] = {
    /* arch, layers, width, heads, kv heads, head, ffn, context, experts, used, expert ffn, type,
       tokenizer, rank */
    [TINY_LLAMA]    = {"llama",    2, 64, 4, 2, 16,  96, 512, 0, 0,  0, TN_TYPE_F32, false, 0},
    [TINY_QWEN3MOE] = {"qwen3moe", 2, 64, 4, 2, 32,  96, 512, 8, 2, 32, TN_TYPE_F32, false, 0},
    [TINY_GPT2]     = {"gpt2",     2, 64, 4, 4, 16, 128, 512, 0, 0,  0, TN_TYPE_F32, false, 0},
    [TINY_GEMMA3]   = {"gemma3",   7, 64, 4, 1, 32,  96, 512, 0, 0,  0, TN_TYPE_F32, false, 0},
    [TINY_PHI3]     = {"phi3",     2, 64, 4, 2, 16,  96, 512, 0, 0,  0, TN_TYPE_F32, false, 0},
    [TINY_GPT_OSS]  = {"gpt-oss",  2, 64, 4, 2, 32,  96, 512, 8, 4, 32, TN_TYPE_F32, false, 0},
    [TINY_DEEPSEEK2] = {"deepseek2", 3, 64, 4, 1, 40, 96, 512, 8, 8, 32, TN_TYPE_F32, false, 64},
    [TINY_LLAMA4]   = {"llama4",   4, 64, 4, 2, 16,  96, 512, 4, 2, 32, TN_TYPE_F32, false, 0},
    [TINY_GEMMA4]   = {"gemma4",   4, 64, 4, 2, 32,  96, 512, 4, 4, 32, TN_TYPE_F32, false, 0},
    [TINY_QWEN35]   = {"qwen35",   5, 64, 4, 2, 32,  96, 512, 0, 0,  0, TN_TYPE_F32, false, 0},
    [TINY_QWEN3NEXT] = {"qwen3next", 4, 64, 4, 2, 32, 96, 512, 4, 4, 32, TN_TYPE_F32, false, 0},
    [TINY_QWEN35MOE] = {"qwen35moe", 3, 64, 4, 2, 32, 96, 512, 4, 4, 32, TN_TYPE_F32, false, 0},
};
// clang-format on

typedef struct tiny_key {
    char name[64];
    int32_t type; // TN_GGUF_U32, F32, BOOL, STRING, ARRAY
    uint32_t u32;
    float f32;
    const char *text;
    int32_t elem_type; // of arrays
    const void *elems;
    uint64_t count;
} tiny_key;

typedef struct tiny_tensor {
    char name[64];
    tn_dtype dtype;
    int32_t n_dims;
    int64_t ne[TN_MAX_DIMS]; // outermost first
} tiny_tensor;

typedef struct tiny_file {
    tiny_shape shape;
    int32_t n_keys, n_tensors;
    tiny_key keys[48];
    tiny_tensor tensors[128];
} tiny_file;

// --- description -----------------------------------------------------------------------------------

// Key "<arch>.<name>", or `name` itself when it has a namespace of its own.
static inline tiny_key *tiny_key_at(tiny_file *f, const char *name)
{
    char full[64];
    bool own = strncmp(name, "general.", 8) == 0 || strncmp(name, "tokenizer.", 10) == 0 ||
               strncmp(name, "adapter.", 8) == 0;
    snprintf(full, sizeof full, "%s%s%s", own ? "" : f->shape.arch, own ? "" : ".", name);
    for (int32_t i = 0; i < f->n_keys; i++)
        if (strcmp(f->keys[i].name, full) == 0) return &f->keys[i];
    if (f->n_keys == (int32_t)TN_COUNT(f->keys)) abort();
    tiny_key *k = &f->keys[f->n_keys++];
    *k = (tiny_key){.type = TN_GGUF_U32};
    memcpy(k->name, full, sizeof full);
    return k;
}

static inline void tiny_u32(tiny_file *f, const char *name, int64_t v)
{
    tiny_key *k = tiny_key_at(f, name);
    k->type = TN_GGUF_U32;
    k->u32 = (uint32_t)v;
}

static inline void tiny_f32(tiny_file *f, const char *name, float v)
{
    tiny_key *k = tiny_key_at(f, name);
    k->type = TN_GGUF_F32;
    k->f32 = v;
}

static inline void tiny_str(tiny_file *f, const char *name, const char *v)
{
    tiny_key *k = tiny_key_at(f, name);
    k->type = TN_GGUF_STRING;
    k->text = v;
}

static inline void tiny_array(tiny_file *f, const char *name, int32_t elem_type, const void *elems,
                              uint64_t n)
{
    tiny_key *k = tiny_key_at(f, name);
    k->type = TN_GGUF_ARRAY;
    k->elem_type = elem_type;
    k->elems = elems;
    k->count = n;
}

static inline void tiny_drop_key(tiny_file *f, const char *name)
{
    tiny_key *k = tiny_key_at(f, name);
    *k = f->keys[--f->n_keys];
}

static inline tiny_tensor *tiny_tensor_at(tiny_file *f, const char *name)
{
    for (int32_t i = 0; i < f->n_tensors; i++)
        if (strcmp(f->tensors[i].name, name) == 0) return &f->tensors[i];
    abort();
}

static inline void tiny_drop_tensor(tiny_file *f, const char *name)
{
    tiny_tensor *t = tiny_tensor_at(f, name);
    *t = f->tensors[--f->n_tensors];
}

// layer < 0: a tensor of the whole model. Dimensions of 0 are not there.
static inline void tiny_add_tensor(tiny_file *f, int32_t layer, const char *name, int64_t d0, int64_t d1,
                                   int64_t d2)
{
    if (f->n_tensors == (int32_t)TN_COUNT(f->tensors)) abort();
    tiny_tensor *t = &f->tensors[f->n_tensors++];
    *t = (tiny_tensor){.n_dims = 1 + (d1 > 0) + (d2 > 0), .ne = {d0, d1, d2}};
    // The router stays F32 in quantised files too.
    t->dtype = t->n_dims == 1 || strcmp(name, "ffn_gate_inp.weight") == 0 ||
                       strcmp(name, "ssm_conv1d.weight") == 0 || strstr(name, ".bias")
                   ? TN_TYPE_F32
                   : f->shape.dtype;
    if (layer < 0)
        snprintf(t->name, sizeof t->name, "%s", name);
    else
        snprintf(t->name, sizeof t->name, "blk.%d.%s", layer, name);
}

static inline bool tiny_is(const tiny_file *f, const char *arch)
{
    return strcmp(f->shape.arch, arch) == 0;
}

static inline void tiny_bool(tiny_file *f, const char *name, bool v)
{
    tiny_key *k = tiny_key_at(f, name);
    k->type = TN_GGUF_BOOL;
    k->u32 = v;
}

static inline bool tiny_is_mla(const tiny_file *f)
{
    return strcmp(f->shape.arch, "deepseek2") == 0;
}

// Compressed cache, YaRN, a dense layer first, keys of the routing. Its choices are close, and rounding would
// change them: all experts are used.
static inline void tiny_describe_mla_keys(tiny_file *f)
{
    tiny_u32(f, "attention.q_lora_rank", TINY_Q_RANK);
    tiny_u32(f, "attention.kv_lora_rank", f->shape.kv_rank);
    tiny_u32(f, "attention.key_length_mla", f->shape.head_dim);
    tiny_u32(f, "attention.value_length_mla", TINY_MLA_VALUE);
    tiny_u32(f, "attention.key_length", f->shape.kv_rank + TINY_MLA_ROT);
    tiny_u32(f, "attention.value_length", f->shape.kv_rank);
    tiny_u32(f, "rope.dimension_count", TINY_MLA_ROT);
    tiny_str(f, "rope.scaling.type", "yarn");
    tiny_f32(f, "rope.scaling.factor", 4.0f);
    tiny_u32(f, "rope.scaling.original_context_length", 64);
    tiny_f32(f, "rope.scaling.yarn_log_multiplier", 0.0707f);
    tiny_u32(f, "leading_dense_block_count", 1);
    tiny_u32(f, "expert_shared_count", 2);
    tiny_f32(f, "expert_weights_scale", 2.5f);
    tiny_bool(f, "expert_weights_norm", true);
    tiny_u32(f, "expert_gating_func", 2);
    tiny_u32(f, "expert_group_count", 4);
    tiny_u32(f, "expert_group_used_count", 4);
}

// Layers 0 and 2 slide, the last two read K and V of the first two; heads, KV heads and widths of layers
// differ.
enum { TINY_GEMMA4_SHARED = 2, TINY_GEMMA4_HEAD = 16, TINY_GEMMA4_P = 32 };
static const uint32_t tiny_gemma4_kv[] = {2, 1, 2, 1}, tiny_gemma4_ff[] = {96, 64, 96, 128};
static const uint8_t tiny_gemma4_sliding[] = {1, 0, 1, 0};

static inline void tiny_describe_gemma4_keys(tiny_file *f)
{
    tiny_array(f, "attention.head_count_kv", TN_GGUF_U32, tiny_gemma4_kv, 4);
    tiny_array(f, "feed_forward_length", TN_GGUF_U32, tiny_gemma4_ff, 4);
    tiny_array(f, "attention.sliding_window_pattern", TN_GGUF_BOOL, tiny_gemma4_sliding, 4);
    tiny_u32(f, "attention.sliding_window", 24);
    tiny_u32(f, "attention.key_length_swa", TINY_GEMMA4_HEAD);
    tiny_u32(f, "attention.value_length_swa", TINY_GEMMA4_HEAD);
    tiny_u32(f, "rope.dimension_count_swa", TINY_GEMMA4_HEAD);
    tiny_u32(f, "attention.shared_kv_layers", TINY_GEMMA4_SHARED);
    tiny_u32(f, "embedding_length_per_layer_input", TINY_GEMMA4_P);
}

// Delta nets with heads in tiles, and names of their tensors: qwen35, qwen35moe.
static inline bool tiny_is_tiled(const tiny_file *f)
{
    return tiny_is(f, "qwen35") || tiny_is(f, "qwen35moe");
}

static inline bool tiny_is_delta(const tiny_file *f)
{
    return tiny_is_tiled(f) || tiny_is(f, "qwen3next");
}

static inline void tiny_describe_delta_keys(tiny_file *f)
{
    tiny_u32(f, "rope.dimension_count", TINY_DELTA_ROT);
    tiny_u32(f, "ssm.conv_kernel", TINY_DELTA_CONV);
    tiny_u32(f, "ssm.state_size", TINY_DELTA_DIM);
    tiny_u32(f, "ssm.group_count", TINY_DELTA_KEYS);
    tiny_u32(f, "ssm.time_step_rank", TINY_DELTA_HEADS);
    tiny_u32(f, "ssm.inner_size", TINY_DELTA_HEADS * TINY_DELTA_DIM);
    tiny_u32(f, "full_attention_interval", tiny_is_tiled(f) ? 3 : 2);
    if (f->shape.n_experts > 0) tiny_u32(f, "expert_shared_feed_forward_length", 64);
}

// The tensors of a layer without attention; qwen3next has them interleaved by key heads.
static inline void tiny_describe_delta(tiny_file *f, int32_t i)
{
    int64_t e = f->shape.n_embd, s = TINY_DELTA_DIM, nk = TINY_DELTA_KEYS, nv = TINY_DELTA_HEADS;
    if (tiny_is_tiled(f)) {
        tiny_add_tensor(f, i, "attn_qkv.weight", (2 * nk + nv) * s, e, 0);
        tiny_add_tensor(f, i, "attn_gate.weight", nv * s, e, 0);
        tiny_add_tensor(f, i, "ssm_beta.weight", nv, e, 0);
        tiny_add_tensor(f, i, "ssm_alpha.weight", nv, e, 0);
    } else {
        tiny_add_tensor(f, i, "ssm_in.weight", (2 * nk + 2 * nv) * s, e, 0);
        tiny_add_tensor(f, i, "ssm_ba.weight", 2 * nv, e, 0);
    }
    tiny_add_tensor(f, i, "ssm_conv1d.weight", (2 * nk + nv) * s, TINY_DELTA_CONV, 0);
    tiny_add_tensor(f, i, "ssm_dt.bias", nv, 0, 0);
    tiny_add_tensor(f, i, "ssm_a", nv, 0, 0);
    tiny_add_tensor(f, i, "ssm_norm.weight", s, 0, 0);
    tiny_add_tensor(f, i, "ssm_out.weight", e, nv * s, 0);
}

static inline void tiny_describe_keys(tiny_file *f)
{
    const tiny_shape *s = &f->shape;
    bool gpt2 = strcmp(s->arch, "gpt2") == 0, gemma3 = strcmp(s->arch, "gemma3") == 0;
    tiny_str(f, "general.architecture", s->arch);
    tiny_str(f, "general.name", "tiny");
    tiny_u32(f, "vocab_size", TINY_MODEL_VOCAB);
    tiny_u32(f, "context_length", s->n_ctx);
    tiny_u32(f, "embedding_length", s->n_embd);
    tiny_u32(f, "block_count", s->n_layers);
    tiny_u32(f, "feed_forward_length", s->n_ff);
    tiny_u32(f, "attention.head_count", s->n_heads);
    tiny_f32(f, gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5f);
    if (gpt2) return;
    tiny_u32(f, "attention.head_count_kv", s->n_kv);
    tiny_u32(f, "attention.key_length", s->head_dim);
    tiny_u32(f, "attention.value_length", s->head_dim);
    tiny_u32(f, "rope.dimension_count", s->head_dim);
    tiny_f32(f, "rope.freq_base", 10000.0f);
    if (gemma3 || tiny_is(f, "gpt-oss")) tiny_u32(f, "attention.sliding_window", 24);
    if (tiny_is(f, "llama4")) tiny_u32(f, "interleave_moe_layer_step", 2);
    if (tiny_is(f, "gpt-oss")) {
        tiny_str(f, "rope.scaling.type", "yarn");
        tiny_f32(f, "rope.scaling.factor", 8.0f);
        tiny_u32(f, "rope.scaling.original_context_length", 64);
    }
    if (s->n_experts > 0) {
        tiny_u32(f, "expert_count", s->n_experts);
        tiny_u32(f, "expert_used_count", s->n_used);
        tiny_u32(f, "expert_feed_forward_length", s->n_ff_expert);
    }
    if (tiny_is_mla(f)) tiny_describe_mla_keys(f);
    if (tiny_is(f, "gemma4")) tiny_describe_gemma4_keys(f);
    if (tiny_is_delta(f)) tiny_describe_delta_keys(f);
}

static inline void tiny_describe_mla(tiny_file *f, int32_t i)
{
    const tiny_shape *s = &f->shape;
    int64_t nope = s->head_dim - TINY_MLA_ROT;
    tiny_add_tensor(f, i, "attn_norm.weight", s->n_embd, 0, 0);
    tiny_add_tensor(f, i, "attn_q_a.weight", TINY_Q_RANK, s->n_embd, 0);
    tiny_add_tensor(f, i, "attn_q_a_norm.weight", TINY_Q_RANK, 0, 0);
    tiny_add_tensor(f, i, "attn_q_b.weight", (int64_t)s->n_heads * s->head_dim, TINY_Q_RANK, 0);
    tiny_add_tensor(f, i, "attn_kv_a_mqa.weight", f->shape.kv_rank + TINY_MLA_ROT, s->n_embd, 0);
    tiny_add_tensor(f, i, "attn_kv_a_norm.weight", f->shape.kv_rank, 0, 0);
    tiny_add_tensor(f, i, "attn_k_b.weight", s->n_heads, f->shape.kv_rank, nope);
    tiny_add_tensor(f, i, "attn_v_b.weight", s->n_heads, TINY_MLA_VALUE, f->shape.kv_rank);
    tiny_add_tensor(f, i, "attn_output.weight", s->n_embd, (int64_t)s->n_heads * TINY_MLA_VALUE, 0);
}

static inline void tiny_describe_gemma4(tiny_file *f, int32_t i)
{
    static const char *const norms[] = {
        "attn_norm.weight",       "post_attention_norm.weight", "ffn_norm.weight",
        "post_ffw_norm.weight",   "post_ffw_norm_1.weight",     "pre_ffw_norm_2.weight",
        "post_ffw_norm_2.weight", "post_norm.weight",           "ffn_gate_inp.scale"};
    const tiny_shape *s = &f->shape;
    int64_t head = tiny_gemma4_sliding[i] ? TINY_GEMMA4_HEAD : s->head_dim, q = s->n_heads * head,
            n_ff = tiny_gemma4_ff[i];
    for (size_t k = 0; k < TN_COUNT(norms); k++) tiny_add_tensor(f, i, norms[k], s->n_embd, 0, 0);
    tiny_add_tensor(f, i, "attn_q.weight", q, s->n_embd, 0);
    tiny_add_tensor(f, i, "attn_q_norm.weight", head, 0, 0);
    tiny_add_tensor(f, i, "attn_output.weight", s->n_embd, q, 0);
    if (i < s->n_layers - TINY_GEMMA4_SHARED) {
        tiny_add_tensor(f, i, "attn_k.weight", tiny_gemma4_kv[i] * head, s->n_embd, 0);
        tiny_add_tensor(f, i, "attn_k_norm.weight", head, 0, 0);
        if (i != 1) tiny_add_tensor(f, i, "attn_v.weight", tiny_gemma4_kv[i] * head, s->n_embd, 0);
    }
    tiny_add_tensor(f, i, "ffn_gate.weight", n_ff, s->n_embd, 0);
    tiny_add_tensor(f, i, "ffn_up.weight", n_ff, s->n_embd, 0);
    tiny_add_tensor(f, i, "ffn_down.weight", s->n_embd, n_ff, 0);
    tiny_add_tensor(f, i, "ffn_gate_inp.weight", s->n_experts, s->n_embd, 0);
    tiny_add_tensor(f, i, "ffn_gate_up_exps.weight", s->n_experts, 2 * s->n_ff_expert, s->n_embd);
    tiny_add_tensor(f, i, "ffn_down_exps.weight", s->n_experts, s->n_embd, s->n_ff_expert);
    tiny_add_tensor(f, i, "ffn_down_exps.scale", s->n_experts, 0, 0);
    tiny_add_tensor(f, i, "inp_gate.weight", TINY_GEMMA4_P, s->n_embd, 0);
    tiny_add_tensor(f, i, "proj.weight", s->n_embd, TINY_GEMMA4_P, 0);
    if (i % 2 == 0) tiny_add_tensor(f, i, "layer_output_scale.weight", 1, 0, 0);
}

static inline void tiny_describe_attention(tiny_file *f, int32_t i)
{
    const tiny_shape *s = &f->shape;
    int64_t q = (int64_t)s->n_heads * s->head_dim, kv = (int64_t)s->n_kv * s->head_dim;
    bool gpt2 = strcmp(s->arch, "gpt2") == 0, gemma3 = strcmp(s->arch, "gemma3") == 0;
    if (tiny_is_mla(f)) {
        tiny_describe_mla(f, i);
        return;
    }
    tiny_add_tensor(f, i, "attn_norm.weight", s->n_embd, 0, 0);
    if (tiny_is_delta(f)) tiny_add_tensor(f, i, "post_attention_norm.weight", s->n_embd, 0, 0);
    if (tiny_is_delta(f) && (i + 1) % (tiny_is_tiled(f) ? 3 : 2) != 0) {
        tiny_describe_delta(f, i);
        return;
    }
    if (gpt2 || strcmp(s->arch, "phi3") == 0) {
        tiny_add_tensor(f, i, "attn_qkv.weight", q + 2 * kv, s->n_embd, 0);
    } else {
        tiny_add_tensor(f, i, "attn_q.weight", tiny_is_delta(f) ? 2 * q : q, s->n_embd, 0);
        tiny_add_tensor(f, i, "attn_k.weight", kv, s->n_embd, 0);
        tiny_add_tensor(f, i, "attn_v.weight", kv, s->n_embd, 0);
    }
    if (gemma3 || tiny_is_delta(f) || strcmp(s->arch, "qwen3moe") == 0) {
        tiny_add_tensor(f, i, "attn_q_norm.weight", s->head_dim, 0, 0);
        tiny_add_tensor(f, i, "attn_k_norm.weight", s->head_dim, 0, 0);
    }
    tiny_add_tensor(f, i, "attn_output.weight", s->n_embd, q, 0);
    if (gemma3 || tiny_is(f, "gpt-oss")) tiny_add_tensor(f, i, "post_attention_norm.weight", s->n_embd, 0, 0);
    if (tiny_is(f, "gpt-oss")) {
        tiny_add_tensor(f, i, "attn_q.bias", q, 0, 0);
        tiny_add_tensor(f, i, "attn_k.bias", kv, 0, 0);
        tiny_add_tensor(f, i, "attn_v.bias", kv, 0, 0);
        tiny_add_tensor(f, i, "attn_output.bias", s->n_embd, 0, 0);
        tiny_add_tensor(f, i, "attn_sinks.weight", s->n_heads, 0, 0);
    }
    if (!gpt2) return;
    tiny_add_tensor(f, i, "attn_norm.bias", s->n_embd, 0, 0);
    tiny_add_tensor(f, i, "attn_qkv.bias", q + 2 * kv, 0, 0);
    tiny_add_tensor(f, i, "attn_output.bias", s->n_embd, 0, 0);
}

static inline void tiny_describe_ffn(tiny_file *f, int32_t i)
{
    const tiny_shape *s = &f->shape;
    bool gpt2 = strcmp(s->arch, "gpt2") == 0, phi3 = strcmp(s->arch, "phi3") == 0;
    if (!tiny_is(f, "gpt-oss") && !tiny_is_delta(f))
        tiny_add_tensor(f, i, "ffn_norm.weight", s->n_embd, 0, 0);
    if (tiny_is(f, "gpt-oss")) {
        tiny_add_tensor(f, i, "ffn_gate_inp.bias", s->n_experts, 0, 0);
        tiny_add_tensor(f, i, "ffn_gate_exps.bias", s->n_experts, s->n_ff_expert, 0);
        tiny_add_tensor(f, i, "ffn_up_exps.bias", s->n_experts, s->n_ff_expert, 0);
        tiny_add_tensor(f, i, "ffn_down_exps.bias", s->n_experts, s->n_embd, 0);
    }
    if (tiny_is(f, "llama4") && i % 2 == 1) {
        tiny_add_tensor(f, i, "ffn_gate_shexp.weight", s->n_ff_expert, s->n_embd, 0);
        tiny_add_tensor(f, i, "ffn_up_shexp.weight", s->n_ff_expert, s->n_embd, 0);
        tiny_add_tensor(f, i, "ffn_down_shexp.weight", s->n_embd, s->n_ff_expert, 0);
    }
    bool dense = (tiny_is_mla(f) && i == 0) || (tiny_is(f, "llama4") && i % 2 == 0);
    if (s->n_experts > 0 && !dense) {
        tiny_add_tensor(f, i, "ffn_gate_inp.weight", s->n_experts, s->n_embd, 0);
        tiny_add_tensor(f, i, "ffn_gate_exps.weight", s->n_experts, s->n_ff_expert, s->n_embd);
        tiny_add_tensor(f, i, "ffn_up_exps.weight", s->n_experts, s->n_ff_expert, s->n_embd);
        tiny_add_tensor(f, i, "ffn_down_exps.weight", s->n_experts, s->n_embd, s->n_ff_expert);
        if (tiny_is_delta(f)) tiny_add_tensor(f, i, "ffn_gate_inp_shexp.weight", s->n_embd, 0, 0);
        if (!tiny_is_mla(f) && !tiny_is_delta(f)) return;
        if (tiny_is_mla(f)) tiny_add_tensor(f, i, "exp_probs_b.bias", s->n_experts, 0, 0);
        tiny_add_tensor(f, i, "ffn_gate_shexp.weight", 2 * s->n_ff_expert, s->n_embd, 0);
        tiny_add_tensor(f, i, "ffn_up_shexp.weight", 2 * s->n_ff_expert, s->n_embd, 0);
        tiny_add_tensor(f, i, "ffn_down_shexp.weight", s->n_embd, 2 * s->n_ff_expert, 0);
        return;
    }
    if (!gpt2 && !phi3) tiny_add_tensor(f, i, "ffn_gate.weight", s->n_ff, s->n_embd, 0);
    tiny_add_tensor(f, i, "ffn_up.weight", phi3 ? 2 * s->n_ff : s->n_ff, s->n_embd, 0);
    tiny_add_tensor(f, i, "ffn_down.weight", s->n_embd, s->n_ff, 0);
    if (strcmp(s->arch, "gemma3") == 0) tiny_add_tensor(f, i, "post_ffw_norm.weight", s->n_embd, 0, 0);
    if (!gpt2) return;
    tiny_add_tensor(f, i, "ffn_norm.bias", s->n_embd, 0, 0);
    tiny_add_tensor(f, i, "ffn_up.bias", s->n_ff, 0, 0);
    tiny_add_tensor(f, i, "ffn_down.bias", s->n_embd, 0, 0);
}

static inline void tiny_describe(const tiny_shape *shape, tiny_file *f)
{
    *f = (tiny_file){.shape = *shape};
    bool gpt2 = strcmp(shape->arch, "gpt2") == 0;
    tiny_describe_keys(f);
    tiny_add_tensor(f, -1, "token_embd.weight", TINY_MODEL_VOCAB, shape->n_embd, 0);
    tiny_add_tensor(f, -1, "output_norm.weight", shape->n_embd, 0, 0);
    if (gpt2) tiny_add_tensor(f, -1, "output_norm.bias", shape->n_embd, 0, 0);
    if (gpt2)
        tiny_add_tensor(f, -1, "position_embd.weight", shape->n_ctx, shape->n_embd, 0);
    else if (strncmp(shape->arch, "gemma", 5) != 0)
        tiny_add_tensor(f, -1, "output.weight", TINY_MODEL_VOCAB, shape->n_embd, 0);
    if (strcmp(shape->arch, "phi3") == 0) {
        tiny_add_tensor(f, -1, "rope_factors_long.weight", shape->head_dim / 2, 0, 0);
        tiny_add_tensor(f, -1, "rope_factors_short.weight", shape->head_dim / 2, 0, 0);
    }
    if (tiny_is(f, "gemma4")) {
        int64_t width = (int64_t)shape->n_layers * TINY_GEMMA4_P;
        tiny_add_tensor(f, -1, "rope_freqs.weight", shape->head_dim / 2, 0, 0);
        tiny_add_tensor(f, -1, "per_layer_token_embd.weight", TINY_MODEL_VOCAB, width, 0);
        tiny_add_tensor(f, -1, "per_layer_model_proj.weight", width, shape->n_embd, 0);
        tiny_add_tensor(f, -1, "per_layer_proj_norm.weight", TINY_GEMMA4_P, 0, 0);
    }
    for (int32_t i = 0; i < shape->n_layers; i++) {
        if (tiny_is(f, "gemma4")) {
            tiny_describe_gemma4(f, i);
            continue;
        }
        tiny_describe_attention(f, i);
        tiny_describe_ffn(f, i);
    }
}

// --- bytes -----------------------------------------------------------------------------------------

static inline void tiny_put_key(tn_gguf_writer *w, const tiny_key *k)
{
    if (k->type == TN_GGUF_U32)
        tiny_must(tn_gguf_writer_put_u32(w, k->name, k->u32));
    else if (k->type == TN_GGUF_F32)
        tiny_must(tn_gguf_writer_put_f32(w, k->name, k->f32));
    else if (k->type == TN_GGUF_BOOL)
        tiny_must(tn_gguf_writer_put_bool(w, k->name, k->u32 != 0));
    else if (k->type == TN_GGUF_STRING)
        tiny_must(tn_gguf_writer_put_str(w, k->name, k->text));
    else if (k->elem_type == TN_GGUF_STRING)
        tiny_must(tn_gguf_writer_put_strs(w, k->name, k->elems, k->count));
    else
        tiny_must(tn_gguf_writer_put_array(w, k->name, k->elem_type, k->elems, k->count));
}

static inline void tiny_put_vocab(tn_gguf_writer *w)
{
    tiny_vocab *v = malloc(sizeof *v);
    if (!v) abort();
    tiny_spm(v);
    if (v->n_tokens != TINY_MODEL_VOCAB) abort();
    tiny_must(tn_gguf_writer_put_str(w, "tokenizer.ggml.model", v->model));
    tiny_must(tn_gguf_writer_put_strs(w, "tokenizer.ggml.tokens", v->tokens, v->n_tokens));
    tiny_must(tn_gguf_writer_put_array(w, "tokenizer.ggml.scores", TN_GGUF_F32, v->scores, v->n_scores));
    tiny_must(tn_gguf_writer_put_array(w, "tokenizer.ggml.token_type", TN_GGUF_I32, v->types, v->n_types));
    free(v);
}

// Values that keep activations near 1: norms around 1, matrices with a deviation of about 1 / sqrt(columns).
static inline void tiny_fill(const tiny_tensor *t, void *place)
{
    uint32_t state = 1;
    int64_t n = 1, n_in = t->ne[t->n_dims - 1];
    for (const char *p = t->name; *p; p++) state = state * 31 + (uint32_t)*p;
    for (int32_t d = 0; d < t->n_dims; d++) n *= t->ne[d];
    bool norm = t->n_dims == 1 && !strstr(t->name, ".bias"), table = strstr(t->name, "_embd.") != NULL;
    bool decay = t->n_dims == 1 && strstr(t->name, ".ssm_a"); // negative
    float middle = decay ? -1.0f : norm ? 1.0f : 0.0f, size = t->n_dims == 1 ? 0.1f
                                              : table        ? 1.0f
                                                             : 1.7f / sqrtf((float)n_in);
    float *row = malloc((size_t)n * sizeof *row);
    if (!row) abort();
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u; // Numerical Recipes, 3rd edition, section 7.1
        row[i] = middle + size * ((float)(state >> 8) / 8388608.0f - 1.0f);
    }
    tn_quant_fn from_f32 = tn_quant_info_get(t->dtype)->from_f32;
    if (from_f32) from_f32(row, place, n, NULL); // else zeros
    free(row);
}

// The file in memory of the context; freed by tn_free, or taken by tn_model_open_memory.
static inline void *tiny_write(tn_context *ctx, const tiny_file *f, size_t *size)
{
    tn_gguf_writer *w;
    void *data = NULL, *place;
    tiny_must(tn_gguf_writer_open_memory(ctx, &w));
    for (int32_t i = 0; i < f->n_keys; i++) tiny_put_key(w, &f->keys[i]);
    if (f->shape.tokenizer) tiny_put_vocab(w);
    for (int32_t i = 0; i < f->n_tensors; i++)
        tiny_must(tn_gguf_writer_add_tensor(w, f->tensors[i].name, f->tensors[i].dtype, f->tensors[i].n_dims,
                                            f->tensors[i].ne));
    tiny_must(tn_gguf_writer_begin(w));
    for (int32_t i = 0; i < f->n_tensors; i++) {
        tiny_must(tn_gguf_writer_place(w, i, &place));
        tiny_fill(&f->tensors[i], place);
    }
    tiny_must(tn_gguf_writer_commit(&w, &data, size));
    return data;
}

static inline tn_model *tiny_model_open(tn_context *ctx, const tiny_shape *shape)
{
    tiny_file *f = malloc(sizeof *f);
    tn_model *model = NULL;
    size_t size;
    if (!f) abort();
    tiny_describe(shape, f);
    void *data = tiny_write(ctx, f, &size);
    free(f);
    tiny_must(tn_model_open_memory(ctx, data, size, "tiny", NULL, &model));
    return model;
}

#endif
