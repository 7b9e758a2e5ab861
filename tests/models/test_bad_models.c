// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Files that are sound GGUF but no sound model: a missing or misshapen tensor, a key that is missing, of the
// wrong type or out of range. Each is refused with a message that names the culprit. Then random damage to
// the metadata bytes, of which nothing is asked but to end well.
//
//     test_bad_models [MUTATIONS [SEED]]
#include "models/keys/keys.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <tenon/session.h>

static counting count;
static tn_context *ctx;
static tiny_file *f; // the model of the current case
static long base_live;

static void begin(int32_t arch)
{
    tiny_describe(&tiny_shapes[arch], f);
}

static bool message_has(const char *part)
{
    char text[1024];
    tn_context_error(ctx, text, sizeof text);
    bool found = strstr(text, part) != NULL;
    if (!found) printf("    message without \"%s\": %s\n", part, text);
    return found;
}

// A session, one token, five more.
static tn_status try_tokens(tn_model *model)
{
    static const int32_t tokens[] = {1, 275, 3, 4, 5, 6};
    tn_session *s = NULL;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 70;
    tn_status status = tn_session_create(model, &cfg, &s);
    if (status == TN_OK) status = tn_session_feed(s, 0, tokens, 1);
    if (status == TN_OK) status = tn_session_feed(s, 0, tokens, 6);
    tn_session_destroy(&s);
    return status;
}

static tn_status try_model(void)
{
    size_t size;
    tn_model *model = NULL;
    void *data = tiny_write(ctx, f, &size);
    tn_status status = tn_model_open_memory(ctx, data, size, "bad.gguf", NULL, &model);
    if (status == TN_OK) status = try_tokens(model);
    tn_model_unref(&model);
    return status;
}

static void check_refused(int line, const char *culprit)
{
    tn_status status = try_model();
    bool ok = TEST_CHECK(status == TN_ERR_MODEL || status == TN_ERR_FORMAT);
    if (!ok) printf("    status: %s\n", tn_status_text(status));
    ok = (status == TN_OK || TEST_CHECK(message_has(culprit))) && ok;
    ok = TEST_CHECK(count.live == base_live) && ok;
    if (!ok) printf("    case of line %d\n", line);
}

// What is done to a model of an architecture makes it refused, with a message about `culprit`.
#define REFUSED(arch, damage, culprit)                                                                       \
    do {                                                                                                     \
        begin(arch);                                                                                         \
        damage;                                                                                              \
        check_refused(__LINE__, culprit);                                                                    \
    } while (0)

#define ACCEPTED(arch, change)                                                                               \
    do {                                                                                                     \
        begin(arch);                                                                                         \
        change;                                                                                              \
        if (!TEST_CHECK_STATUS(try_model(), TN_OK)) message_has("-");                                        \
        TEST_CHECK(count.live == base_live);                                                                 \
    } while (0)

// --- tensors ---------------------------------------------------------------------------------------

// Every tensor of every architecture: missing, then with another shape. What may be absent is left out.
static void test_every_tensor(void)
{
    static const char *const optional[] = {"output.weight", "rope_factors",       "_norm.bias", ".bias",
                                           "rope_freqs",    "layer_output_scale", "exps.scale"};
    for (int32_t arch = 0; arch < TINY_ARCHS; arch++) {
        begin(arch);
        int32_t n = f->n_tensors;
        for (int32_t i = 0; i < n; i++) {
            char name[64];
            bool may_miss = false;
            begin(arch);
            memcpy(name, f->tensors[i].name, sizeof name);
            for (size_t k = 0; k < TN_COUNT(optional); k++) may_miss |= strstr(name, optional[k]) != NULL;
            // V is K then, and what stands beside the feed-forward is not looked for.
            may_miss |=
                arch == TINY_GEMMA4 && (strstr(name, "attn_v") || strstr(name, "ffn_gate_inp.weight"));
            // Without its qkv or router the layer is taken for one of another kind: then that kind's tensor
            // is named.
            bool kind = strstr(name, "attn_qkv.weight") || strstr(name, "ffn_gate_inp") ||
                        strstr(name, "ffn_gate_up_exps");
            if (!may_miss) {
                tiny_drop_tensor(f, name);
                check_refused(i, kind ? "blk." : name);
            }
            if (strstr(name, "rope_factors_long")) continue; // only read in long contexts
            begin(arch);
            tiny_tensor *t = tiny_tensor_at(f, name);
            if (strcmp(name, "position_embd.weight") == 0)
                t->ne[1] += 32;
            else
                t->ne[0] += strstr(name, "ffn_up") && arch == TINY_PHI3 ? 32 : 1;
            check_refused(i, name);
            begin(arch);
            t = tiny_tensor_at(f, name);
            t->ne[t->n_dims++] = 2;
            check_refused(i, name);
        }
    }
}

static void test_tensors(void)
{
    // Types that no model has: a clean answer, whichever.
    static const tn_dtype strange[] = {TN_TYPE_I8, TN_TYPE_I32, TN_TYPE_I64, TN_TYPE_F64};
    static const char *const where[] = {"token_embd.weight", "blk.1.attn_q.weight", "blk.1.ffn_norm.weight",
                                        "blk.0.ffn_up_exps.weight"};
    for (size_t i = 0; i < TN_COUNT(strange) * TN_COUNT(where); i++) {
        begin(i % 4 == 3 ? TINY_QWEN3MOE : TINY_LLAMA);
        tiny_tensor_at(f, where[i % 4])->dtype = strange[i / 4];
        tn_status status = try_model();
        TEST_CHECK(status == TN_OK || (status == TN_ERR_MODEL && message_has(where[i % 4])));
    }
    // Fewer learned positions than the context says.
    REFUSED(TINY_GPT2, tiny_tensor_at(f, "position_embd.weight")->ne[0] = 3, "position_embd.weight");
    REFUSED(TINY_LLAMA, tiny_add_tensor(f, -1, "rope_freqs.weight", 3, 0, 0), "rope_freqs.weight");
    REFUSED(TINY_LLAMA, tiny_add_tensor(f, 0, "attn_q.bias", 65, 0, 0), "blk.0.attn_q.bias");
    ACCEPTED(TINY_LLAMA, tiny_add_tensor(f, -1, "unheard_of.weight", 5, 32, 0));
    ACCEPTED(TINY_LLAMA, tiny_drop_tensor(f, "output.weight")); // tied to the embeddings
    ACCEPTED(TINY_LLAMA, tiny_tensor_at(f, "blk.0.attn_norm.weight")->dtype = TN_TYPE_F16);
    ACCEPTED(TINY_LLAMA, tiny_tensor_at(f, "blk.0.attn_norm.weight")->dtype = TN_TYPE_Q8_0);
}

// --- keys ------------------------------------------------------------------------------------------

static void test_required_keys(void)
{
    static const char *const keys[] = {"context_length",       "embedding_length", "block_count",
                                       "attention.head_count", "vocab_size",       "feed_forward_length"};
    for (size_t i = 0; i < TN_COUNT(keys); i++) {
        for (int32_t arch = 0; arch < TINY_ARCHS; arch++) {
            if (tiny_shapes[arch].n_experts > 0 && i == 5) continue; // its experts have a width of their own
            REFUSED(arch, tiny_drop_key(f, keys[i]), keys[i]);
        }
        REFUSED(TINY_LLAMA, tiny_u32(f, keys[i], 0), keys[i]);
        REFUSED(TINY_LLAMA, tiny_u32(f, keys[i], UINT32_MAX), keys[i]);
        if (i > 0) REFUSED(TINY_LLAMA, tiny_u32(f, keys[i], INT32_MAX), keys[i]); // but a context may be long
        REFUSED(TINY_LLAMA, tiny_f32(f, keys[i], 64.5f), keys[i]);
        REFUSED(TINY_LLAMA, tiny_str(f, keys[i], "64"), keys[i]);
        REFUSED(TINY_LLAMA, tiny_array(f, keys[i], TN_GGUF_U32, NULL, 0), keys[i]);
    }
    REFUSED(TINY_LLAMA, tiny_drop_key(f, "general.architecture"), "general.architecture");
    REFUSED(TINY_LLAMA, tiny_u32(f, "general.architecture", 3), "general.architecture");
    REFUSED(TINY_LLAMA, tiny_str(f, "general.architecture", "lama"), "llama");
    REFUSED(TINY_LLAMA, tiny_str(f, "general.architecture", ""), "not supported");
    REFUSED(TINY_LLAMA, tiny_u32(f, "general.name", 3), "general.name");
}

static void test_sizes(void)
{
    static const uint32_t two[] = {4, 4}, three[] = {4, 4, 4}, zero[] = {4, 0}, odd[] = {4, 3};
    static const float floats[] = {4.0f, 4.0f};
    REFUSED(TINY_LLAMA, tiny_u32(f, "block_count", 1025), "block_count");
    REFUSED(TINY_LLAMA, tiny_u32(f, "block_count", 3), "blk.2.");
    REFUSED(TINY_LLAMA, tiny_u32(f, "embedding_length", 32), "[");
    REFUSED(TINY_LLAMA, tiny_u32(f, "attention.head_count", 8), "blk.0.attn_q.weight");
    REFUSED(TINY_LLAMA, tiny_u32(f, "attention.head_count_kv", 0), "attention.head_count_kv");
    REFUSED(TINY_LLAMA, tiny_u32(f, "attention.head_count_kv", 3), "heads");
    REFUSED(TINY_LLAMA, tiny_u32(f, "attention.head_count_kv", 8), "heads");
    REFUSED(TINY_LLAMA, tiny_u32(f, "attention.key_length", 0), "attention.key_length");
    REFUSED(TINY_LLAMA, tiny_u32(f, "attention.key_length", 4097), "attention.key_length");
    REFUSED(TINY_LLAMA, tiny_u32(f, "attention.value_length", 0), "attention.value_length");
    REFUSED(TINY_LLAMA, tiny_u32(f, "attention.value_length", 24), "blk.0.attn_v.weight");
    REFUSED(TINY_LLAMA, tiny_array(f, "attention.head_count", TN_GGUF_U32, three, 3), "attention.head_count");
    REFUSED(TINY_LLAMA, tiny_array(f, "attention.head_count", TN_GGUF_U32, zero, 2), "attention.head_count");
    REFUSED(TINY_LLAMA, tiny_array(f, "attention.head_count", TN_GGUF_F32, floats, 2),
            "attention.head_count");
    REFUSED(TINY_LLAMA, tiny_array(f, "attention.head_count_kv", TN_GGUF_U32, odd, 2), "heads");
    REFUSED(TINY_LLAMA, tiny_array(f, "feed_forward_length", TN_GGUF_U32, two, 1), "feed_forward_length");
    ACCEPTED(TINY_LLAMA, tiny_array(f, "attention.head_count", TN_GGUF_U32, two, 2));
    // The width leaves nothing for a head.
    REFUSED(TINY_LLAMA, (tiny_u32(f, "attention.head_count", 66), tiny_drop_key(f, "attention.key_length")),
            "head size 0 of width 64 and 66 heads");
    // Latent attention: the same heads in all layers, and a causal mask.
    static const uint32_t heads[] = {4, 2, 4};
    REFUSED(TINY_DEEPSEEK2, tiny_array(f, "attention.head_count", TN_GGUF_U32, heads, 3),
            "attention.head_count differs between layers");
    REFUSED(TINY_DEEPSEEK2, tiny_bool(f, "attention.causal", false),
            "attention.causal is false: latent attention has a causal mask only");
}

static void test_numbers(void)
{
    const char *eps = "attention.layer_norm_rms_epsilon", *layer_eps = "attention.layer_norm_epsilon";
    static const float bad_eps[] = {NAN, INFINITY, -1e-5f, 1.0f},
                       bad_base[] = {NAN, INFINITY, 0.0f, -10000.0f};
    for (size_t i = 0; i < 4; i++) {
        REFUSED(TINY_LLAMA, tiny_f32(f, eps, bad_eps[i]), eps);
        REFUSED(TINY_GPT2, tiny_f32(f, layer_eps, bad_eps[i]), layer_eps);
        REFUSED(TINY_LLAMA, tiny_f32(f, "rope.freq_base", bad_base[i]), i < 2 ? "rope.freq_base" : "base");
        REFUSED(TINY_LLAMA, tiny_f32(f, "rope.scaling.factor", i == 2 ? -2.0f : bad_base[i]),
                "rope.scaling.factor");
    }
    REFUSED(TINY_LLAMA, tiny_drop_key(f, eps), eps);
    REFUSED(TINY_GPT2, tiny_drop_key(f, layer_eps), layer_eps);
    REFUSED(TINY_LLAMA, tiny_str(f, eps, "1e-5"), eps);
    REFUSED(TINY_LLAMA, tiny_u32(f, "rope.dimension_count", 18), "rope.dimension_count");
    REFUSED(TINY_LLAMA, tiny_u32(f, "rope.dimension_count", 0), "rope.dimension_count");
    REFUSED(TINY_LLAMA, tiny_u32(f, "rope.dimension_count", 15), "15");
    REFUSED(TINY_LLAMA, tiny_str(f, "rope.scaling.type", "stretch"), "stretch");
    REFUSED(TINY_LLAMA, tiny_str(f, "rope.scaling.type", "a name of a scaling that is very long"),
            "rope scaling \"a name of a scaling that is very\" is not known"); // 32 bytes of it
    REFUSED(TINY_LLAMA, tiny_u32(f, "rope.scaling.type", 1), "rope.scaling.type");
    REFUSED(TINY_PHI3, tiny_u32(f, "rope.scaling.original_context_length", 0),
            "rope.scaling.original_context_length");
    REFUSED(TINY_GEMMA3, tiny_f32(f, "attention.sliding_window", 1.5f), "attention.sliding_window");
    REFUSED(TINY_GEMMA3, tiny_u32(f, "attention.sliding_window", UINT32_MAX), "attention.sliding_window");
    ACCEPTED(TINY_GEMMA3, tiny_u32(f, "attention.sliding_window", 0));
    ACCEPTED(TINY_GEMMA3, tiny_u32(f, "attention.sliding_window", 1));
    REFUSED(TINY_GPT_OSS, tiny_drop_key(f, "attention.sliding_window"), "attention.sliding_window");
    REFUSED(TINY_GPT_OSS, tiny_drop_tensor(f, "blk.1.post_attention_norm.weight"),
            "blk.1.post_attention_norm");
    REFUSED(TINY_GPT_OSS, tiny_u32(f, "rope.dimension_count", 16),
            "blk.0.attn_q.weight"); // that is the size of heads
}

// Layers of two kinds that share keys.
static void test_kinds(void)
{
    static const uint8_t same[] = {1, 1, 1, 1}, swapped[] = {0, 1, 1, 0}, early[] = {1, 0, 0, 1};
    static const uint32_t odd[] = {2, 3, 2, 1}, two[] = {1, 2, 1, 2}, heads[] = {4, 4, 3, 4},
                          ones[] = {2, 1, 1, 1};
    const char *pattern = "attention.sliding_window_pattern", *shared = "attention.shared_kv_layers";
    REFUSED(TINY_GEMMA4, tiny_drop_key(f, pattern), pattern);
    REFUSED(TINY_GEMMA4, tiny_array(f, pattern, TN_GGUF_BOOL, same, 3), pattern);
    REFUSED(TINY_GEMMA4, tiny_array(f, pattern, TN_GGUF_U32, odd, 4), pattern);
    REFUSED(TINY_GEMMA4, tiny_array(f, pattern, TN_GGUF_BOOL, same, 4), "blk.1.attn_q.weight");
    REFUSED(TINY_GEMMA4, tiny_array(f, pattern, TN_GGUF_BOOL, swapped, 4), "layer 2 shares");
    REFUSED(TINY_GEMMA4, tiny_array(f, pattern, TN_GGUF_BOOL, early, 4), "blk.2.attn_q.weight");
    REFUSED(TINY_GEMMA4, tiny_u32(f, pattern, 0), "blk.1.attn_q.weight"); // all slide
    ACCEPTED(TINY_GEMMA4, tiny_u32(f, pattern, 2));
    REFUSED(TINY_GEMMA4, tiny_drop_key(f, "attention.sliding_window"), "attention.sliding_window");
    REFUSED(TINY_GEMMA4, tiny_u32(f, shared, 4), shared);
    REFUSED(TINY_GEMMA4, tiny_u32(f, shared, 3), "layer 1 shares");
    REFUSED(TINY_GEMMA4, tiny_u32(f, shared, 1), "layer 3 shares");
    REFUSED(TINY_GEMMA4, tiny_drop_key(f, shared), "blk.2.attn_k.weight");
    REFUSED(TINY_GEMMA4, tiny_array(f, "attention.head_count_kv", TN_GGUF_U32, odd, 4), "heads");
    REFUSED(TINY_GEMMA4, tiny_array(f, "attention.head_count_kv", TN_GGUF_U32, two, 4),
            "blk.0.attn_k.weight");
    REFUSED(TINY_GEMMA4,
            (tiny_array(f, "attention.head_count", TN_GGUF_U32, heads, 4),
             tiny_array(f, "attention.head_count_kv", TN_GGUF_U32, ones, 4)),
            "layer 2: 3 heads are no multiple of the 2 KV heads of layer 0");
    REFUSED(TINY_GEMMA4, tiny_u32(f, "attention.key_length_swa", 32), "blk.0.attn_q.weight");
    REFUSED(TINY_GEMMA4, tiny_u32(f, "attention.value_length_swa", 32), "blk.0.attn_v.weight");
    REFUSED(TINY_GEMMA4, tiny_u32(f, "rope.dimension_count_swa", 18), "rope.dimension_count_swa");
    REFUSED(TINY_GEMMA4, tiny_u32(f, "rope.dimension_count_swa", 15), "15");
    REFUSED(TINY_GEMMA4, tiny_u32(f, "embedding_length_per_layer_input", 31), "per_layer_token_embd.weight");
    REFUSED(TINY_GEMMA4, tiny_u32(f, "embedding_length_per_layer_input", 1 << 19),
            "embedding_length_per_layer_input");
    ACCEPTED(TINY_GEMMA4, tiny_u32(f, "embedding_length_per_layer_input", 0));
}

static void test_experts(void)
{
    REFUSED(TINY_QWEN3MOE, tiny_u32(f, "expert_count", 4097), "expert_count");
    REFUSED(TINY_QWEN3MOE, tiny_u32(f, "expert_count", 7), "blk.0.ffn_gate_inp.weight");
    REFUSED(TINY_QWEN3MOE, tiny_u32(f, "expert_count", 0), "expert_count");
    REFUSED(TINY_QWEN3MOE, tiny_drop_key(f, "expert_count"), "expert_count");
    REFUSED(TINY_QWEN3MOE, tiny_u32(f, "expert_used_count", 0), "expert_used_count");
    REFUSED(TINY_QWEN3MOE, tiny_u32(f, "expert_used_count", 9), "expert_used_count");
    REFUSED(TINY_QWEN3MOE, tiny_drop_key(f, "expert_used_count"), "expert_used_count");
    REFUSED(TINY_QWEN3MOE, tiny_u32(f, "expert_feed_forward_length", 0), "expert_feed_forward_length");
    REFUSED(TINY_QWEN3MOE, tiny_u32(f, "expert_feed_forward_length", 64), "blk.0.ffn_gate_exps.weight");
    REFUSED(TINY_QWEN3MOE,
            (tiny_drop_key(f, "expert_feed_forward_length"), tiny_u32(f, "feed_forward_length", 1)),
            "feed_forward_length");
    REFUSED(TINY_QWEN3MOE, (tiny_drop_key(f, "expert_count"), tiny_drop_key(f, "expert_used_count")),
            "key qwen3moe.expert_count is missing");
    REFUSED(TINY_QWEN35MOE,
            (tiny_drop_key(f, "expert_shared_feed_forward_length"), tiny_drop_key(f, "feed_forward_length")),
            "qwen35moe.feed_forward_length and expert_shared_feed_forward_length are missing");
    ACCEPTED(TINY_QWEN3MOE, tiny_u32(f, "expert_used_count", 8));
    ACCEPTED(TINY_QWEN3MOE, tiny_drop_key(f, "feed_forward_length"));
    REFUSED(TINY_LLAMA4, tiny_drop_key(f, "interleave_moe_layer_step"), "interleave_moe_layer_step");
    REFUSED(TINY_LLAMA4, tiny_drop_key(f, "expert_feed_forward_length"), "expert_feed_forward_length");
    REFUSED(TINY_LLAMA4, tiny_u32(f, "interleave_moe_layer_step", 1), "blk.0.ffn_gate_inp.weight");
    REFUSED(TINY_LLAMA4, tiny_u32(f, "interleave_moe_layer_step", 3), "blk.1.ffn_up.weight");
    ACCEPTED(TINY_LLAMA4, tiny_u32(f, "attention.sliding_window", 0));
}

// Files that an earlier version accepted: each one is well formed, and means nothing.
static void test_hostile(void)
{
    static const int32_t whole[TINY_MODEL_VOCAB] = {0};
    static const uint32_t text_of_scores[TINY_MODEL_VOCAB] = {0};
    static const double wide[TINY_MODEL_VOCAB] = {0};
    static const tn_dtype types[] = {TN_TYPE_I8, TN_TYPE_I16, TN_TYPE_I32, TN_TYPE_I64};
    static const char *const read[] = {"token_embd.weight",     "output.weight",
                                       "output_norm.weight",    "blk.0.attn_norm.weight",
                                       "blk.1.attn_q.weight",   "blk.1.attn_output.weight",
                                       "blk.0.ffn_down.weight", "blk.0.ffn_norm.weight"};
    static const char *const scores = "tokenizer.ggml.scores";
    REFUSED(TINY_LLAMA, tiny_array(f, scores, TN_GGUF_I32, whole, TINY_MODEL_VOCAB), scores);
    REFUSED(TINY_LLAMA, tiny_array(f, scores, TN_GGUF_U32, text_of_scores, TINY_MODEL_VOCAB), scores);
    REFUSED(TINY_LLAMA, tiny_array(f, scores, TN_GGUF_F64, wide, TINY_MODEL_VOCAB), scores);
    REFUSED(TINY_LLAMA, tiny_f32(f, scores, 1.0f), scores);
    REFUSED(TINY_LLAMA, tiny_u32(f, "expert_used_count", 2), "expert_used_count");
    ACCEPTED(TINY_LLAMA, (tiny_u32(f, "expert_count", 0), tiny_u32(f, "expert_used_count", 0)));
    for (size_t i = 0; i < TN_COUNT(types) * TN_COUNT(read); i++) {
        const char *name = read[i % TN_COUNT(read)];
        REFUSED(TINY_LLAMA, tiny_tensor_at(f, name)->dtype = types[i / TN_COUNT(read)], name);
    }
    REFUSED(TINY_QWEN3MOE, tiny_tensor_at(f, "blk.0.ffn_up_exps.weight")->dtype = TN_TYPE_I8,
            "blk.0.ffn_up_exps.weight");
    REFUSED(TINY_GPT_OSS, tiny_tensor_at(f, "blk.0.attn_q.bias")->dtype = TN_TYPE_I32, "blk.0.attn_q.bias");
    ACCEPTED(TINY_LLAMA, (tiny_add_tensor(f, -1, "never.read", 5, 0, 0),
                          tiny_tensor_at(f, "never.read")->dtype = TN_TYPE_I32));
    static const char *const others[] = {"adapter", "mmproj", "imatrix", "", "models"};
    for (size_t i = 0; i < TN_COUNT(others); i++)
        REFUSED(TINY_LLAMA, tiny_str(f, "general.type", others[i]), "general.type");
    REFUSED(TINY_LLAMA, tiny_u32(f, "general.type", 1), "general.type");
    ACCEPTED(TINY_LLAMA, tiny_str(f, "general.type", "model"));
    REFUSED(TINY_LLAMA, f->n_tensors = 0, "the file has no tensors: a vocabulary only");
}

static uint32_t dice(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

// --- the table of keys -----------------------------------------------------------------------------

static const char *const arch_names[] = {
#define TN_ARCH(id, ...) id,
#include "models/archs.def"
};

// A value that does not fit the row; false: there are no more of them.
static bool spoil(const tn_key_row *row, int32_t how)
{
    static const float floats[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    static const uint64_t many[] = {1, 2, 3};
    const char *name = row->name + (row->name[0] == '.');
    bool number = row->kind == TN_KEY_INT || row->kind == TN_KEY_LAYERS;
    bool text = row->kind == TN_KEY_TEXT;
    if (how == 0) { // a number for a text, a text for all others
        if (text)
            tiny_f32(f, name, 1.0f);
        else
            tiny_str(f, name, "x");
    } else if (how == 1) { // arrays of arrays exist nowhere; an array of no kind that is read
        tiny_array(f, name, TN_GGUF_F64, many, 3);
    } else if (how == 2 && number && row->least > INT32_MIN) {
        int32_t v = (int32_t)(row->least - 1);
        tiny_array(f, name, TN_GGUF_I32, &v, 0); // replaced below: scalars of the writer have no sign
        tiny_key_at(f, name)->type = TN_GGUF_U32;
        tiny_key_at(f, name)->u32 = row->least > 0 ? (uint32_t)v : UINT32_MAX;
        return row->least > 0 || row->most < UINT32_MAX;
    } else if (how == 3 && number && row->most < UINT32_MAX) {
        tiny_u32(f, name, row->most + 1);
    } else if (how >= 4 && how < 9 && row->kind == TN_KEY_FLOAT) {
        tiny_f32(f, name, floats[how - 4]);
    } else {
        return false;
    }
    return true;
}

// The keys are those of the tiny model; only their prefix and general.architecture change.
static void rename_arch(const char *arch)
{
    for (int32_t i = 0; i < f->n_keys; i++) {
        char rest[64];
        const char *dot = strchr(f->keys[i].name, '.');
        if (strncmp(f->keys[i].name, "general.", 8) == 0 || !dot) continue;
        memcpy(rest, dot, strlen(dot) + 1);
        snprintf(f->keys[i].name, sizeof f->keys[i].name, "%.24s%.39s", arch, rest);
    }
    f->shape.arch = arch;
    tiny_str(f, "general.architecture", arch);
}

// Model number k for a test that wants some model whose architecture reads a key: every tiny one, then the
// keys of some of them under the name of each architecture.
static bool begin_any(size_t k)
{
    static const int32_t like[] = {TINY_LLAMA, TINY_GPT2, TINY_DEEPSEEK2, TINY_QWEN3NEXT, TINY_GEMMA4};
    if (k < TINY_ARCHS) {
        begin((int32_t)k);
        return true;
    }
    k -= TINY_ARCHS;
    if (k >= TN_COUNT(like) * TN_COUNT(arch_names)) return false;
    begin(like[k / TN_COUNT(arch_names)]);
    rename_arch(arch_names[k % TN_COUNT(arch_names)]);
    return true;
}

// Every row of the table: some architecture reads the key, and refuses each value that does not fit.
static void test_table(void)
{
    const tn_key_row *row;
    long n_values = 0;
    for (size_t i = 0; (row = tn_key_row_at(i)) != NULL; i++) {
        // The reader of files checks these itself: test_gguf_files.
        if (strncmp(row->name, "split.", 6) == 0 || strcmp(row->name, "general.alignment") == 0) continue;
        for (int32_t how = 0; how < 9; how++) {
            bool refused = false, tried = false;
            char key[96] = "";
            for (size_t k = 0; !refused && begin_any(k); k++) {
                if (!spoil(row, how)) break;
                tried = true;
                snprintf(key, sizeof key, "%s%s", row->name[0] == '.' ? f->shape.arch : "", row->name);
                size_t size;
                char text[1024];
                tn_model *model = NULL;
                void *data = tiny_write(ctx, f, &size);
                tn_model_config cfg;
                tn_model_config_default(&cfg);
                cfg.metadata_only = 1;
                tn_status status = tn_model_open_memory(ctx, data, size, "bad.gguf", &cfg, &model);
                tn_context_error(ctx, text, sizeof text);
                refused = status == TN_ERR_FORMAT && strstr(text, key) != NULL;
                tn_model_unref(&model);
            }
            n_values += tried;
            if (tried && !TEST_CHECK(refused)) printf("    %s, value %d\n", row->name, how);
        }
    }
    printf("%ld values of keys refused\n", n_values);
    TEST_CHECK(count.live == base_live);
}

// Divided by the scale, logits would be infinite.
static void test_logit_scale(void)
{
    ACCEPTED(TINY_LLAMA, (rename_arch("granite"), tiny_f32(f, "logit_scale", 8.0f)));
    REFUSED(TINY_LLAMA, (rename_arch("granite"), tiny_f32(f, "logit_scale", 0.0f)),
            "granite.logit_scale is 0");
}

// A mistake of the program: the key has no row, or a row of another kind.
static void test_no_row(void)
{
    int32_t v = 7;
    size_t size;
    tn_gguf *gguf = NULL;
    begin(TINY_LLAMA);
    void *data = tiny_write(ctx, f, &size);
    tiny_must(tn_gguf_open_memory(ctx, data, size, "tiny", &gguf));
    tn_keys k = {ctx, gguf, "llama", NULL};
    TEST_CHECK_STATUS(tn_keys_i32(&k, "block_count_of_none", 0, &v), TN_ERR_INTERNAL);
    TEST_CHECK(message_has("key llama.block_count_of_none has no row of its kind"));
    TEST_CHECK_STATUS(tn_keys_i32(&k, "logit_scale", 0, &v), TN_ERR_INTERNAL);
    TEST_CHECK(message_has("key llama.logit_scale has no row of its kind") && v == 7);
    tn_gguf_close(&gguf);
    tn_free(ctx, data);
}

// --- values given as text --------------------------------------------------------------------------

// Allocation `fails` of opening the model fails, -1: none.
static tn_status try_overrides(const char *const *texts, int32_t n, long fails)
{
    size_t size;
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.overrides = texts;
    cfg.n_overrides = n;
    void *data = tiny_write(ctx, f, &size);
    count.fail_from = fails < 0 ? 0 : count.calls + fails;
    count.fail_to = fails < 0 ? 0 : count.fail_from + 1;
    tn_status status = tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model);
    count.fail_from = count.fail_to = 0;
    tn_model_unref(&model);
    TEST_CHECK(count.live == base_live);
    return status;
}

static void check_override(int line, const char *const *texts, int32_t n, tn_status want, const char *part)
{
    tn_status status = try_overrides(texts, n, -1);
    test_report(status == want && (status == TN_OK || message_has(part)), __FILE__, line, part);
}
#define OVERRIDE(text, status, part)                                                                         \
    check_override(__LINE__, (const char *const[]){text}, 1, (status), (part))

static void test_overrides(void)
{
    char key[200] = ".";
    static const char *many[257];
    begin(TINY_LLAMA);
    OVERRIDE(".context_length=int:100", TN_OK, "");
    OVERRIDE("=int:100", TN_ERR_ARG, "a key of 0 bytes, must be 1 to 159");
    memset(key + 1, 'x', 154);
    memcpy(key + 155, "=int:1", 7); // llama, the dot and these
    OVERRIDE(key, TN_ERR_ARG, "a key of 160 bytes, must be 1 to 159");
    memmove(key + 1, key + 2, strlen(key + 1));
    OVERRIDE(key, TN_ERR_ARG, "is none that is read");
    OVERRIDE(".context_length=int:1.5", TN_ERR_ARG, "'1.5' is no integer");
    OVERRIDE(".context_length=int:1e16", TN_ERR_ARG, "'1e16' is no integer");
    for (size_t i = 0; i < TN_COUNT(many); i++) many[i] = ".context_length=int:100";
    check_override(__LINE__, many, 256, TN_OK, "");
    check_override(__LINE__, many, 257, TN_ERR_ARG, "257 overrides, must be 0 to 256 and not NULL");
    check_override(__LINE__, NULL, 1, TN_ERR_ARG, "1 overrides");
    long n_failed = 0;
    while (n_failed < 1000 && try_overrides(many, 1, n_failed) == TN_ERR_MEMORY) n_failed++;
    TEST_CHECK(n_failed > 20 && n_failed < 1000);
}

// Keys of the table with random types and values around the ends of their ranges.
static void test_random_keys(int32_t arch, long n, uint32_t seed)
{
    static const float floats[] = {0.0f, -0.0f, 1.0f, 1e-38f, 1e12f, 3e38f, NAN, INFINITY, -1.0f};
    static const uint8_t zeros[64 * 8] = {0};
    size_t n_rows = 0;
    long n_ran = 0;
    while (tn_key_row_at(n_rows)) n_rows++;
    for (long i = 0; i < n; i++) {
        begin(arch);
        for (uint32_t k = 1 + dice(&seed, 3); k > 0; k--) {
            const tn_key_row *row = tn_key_row_at(dice(&seed, (uint32_t)n_rows));
            const char *name = row->name + (row->name[0] == '.');
            const int64_t ends[] = {row->least, row->most, 0, 1, 2, INT32_MAX, row->most / 2, 64, 7};
            uint32_t how = dice(&seed, 8);
            if (strcmp(name, "general.alignment") == 0) continue; // the writer refuses wrong ones
            if (how < 4)
                tiny_u32(f, name, ends[dice(&seed, TN_COUNT(ends))]);
            else if (how == 4)
                tiny_f32(f, name, floats[dice(&seed, TN_COUNT(floats))]);
            else if (how == 5)
                tiny_str(f, name, "model");
            else if (how == 6)
                tiny_bool(f, name, true);
            else
                tiny_array(f, name, dice(&seed, TN_GGUF_STRING), zeros, dice(&seed, 64));
        }
        n_ran += try_model() == TN_OK;
        if (!TEST_CHECK(count.live == base_live)) break;
    }
    printf("%s: %ld of %ld files with random keys ran\n", tiny_shapes[arch].arch, n_ran, n);
}

static void test_tokenizer(void)
{
    begin(TINY_LLAMA);
    f->shape.tokenizer = true;
    TEST_CHECK_STATUS(try_model(), TN_OK);
    tiny_tensor_at(f, "token_embd.weight")->ne[0]--; // one row less than tokens
    check_refused(__LINE__, "token_embd.weight");
    REFUSED(TINY_LLAMA,
            (tiny_str(f, "tokenizer.ggml.model", "llama"),
             tiny_array(f, "tokenizer.ggml.tokens", TN_GGUF_STRING, NULL, 0)),
            "tokenizer.ggml.tokens has 0 tokens");
    REFUSED(TINY_LLAMA, tiny_str(f, "tokenizer.ggml.tokens", "a"),
            "key tokenizer.ggml.tokens is string, must be an array of str");
    REFUSED(TINY_LLAMA, tiny_array(f, "tokenizer.ggml.tokens", TN_GGUF_U32, (uint32_t[]){1}, 1),
            "key tokenizer.ggml.tokens is an array of u32, must be an array of str");
}

// --- random damage ---------------------------------------------------------------------------------

// Changes a few bytes of the metadata: bits, interesting values, copies of other places.
static void mutate(uint8_t *bytes, size_t n, uint32_t *state)
{
    static const uint8_t values[] = {0, 1, 2, 4, 7, 8, 9, 16, 31, 32, 63, 64, 127, 128, 254, 255};
    for (uint32_t i = 1 + dice(state, 3); i > 0; i--) {
        size_t at = dice(state, (uint32_t)n);
        uint32_t how = dice(state, 4);
        if (how == 0)
            bytes[at] ^= (uint8_t)(1u << dice(state, 8));
        else if (how == 1)
            bytes[at] = values[dice(state, TN_COUNT(values))];
        else if (how == 2)
            bytes[at] = bytes[dice(state, (uint32_t)n)];
        else
            memset(bytes + at, 0xff, TN_MIN((size_t)(1 + dice(state, 8)), n - at));
    }
}

static void test_mutations(int32_t arch, long n_mutations, uint32_t seed)
{
    long n_opened = 0, n_ran = 0, n_leaks = 0;
    size_t size;
    tn_gguf *gguf = NULL;
    begin(arch);
    f->shape.tokenizer = arch == TINY_LLAMA;
    uint8_t *sound = tiny_write(ctx, f, &size);
    tiny_must(tn_gguf_open_memory(ctx, sound, size, "sound", &gguf));
    size_t metadata = (size_t)(tn_gguf_tensor_at(gguf, 0)->data - sound);
    tn_gguf_close(&gguf);
    long live = count.live;
    for (long i = 0; i < n_mutations; i++) {
        tn_model *model = NULL;
        uint8_t *bytes = tn_alloc(ctx, size);
        if (!bytes) abort();
        memcpy(bytes, sound, size);
        mutate(bytes, metadata, &seed);
        if (tn_model_open_memory(ctx, bytes, size, "mutated", NULL, &model) == TN_OK) {
            n_opened++;
            n_ran += try_tokens(model) == TN_OK;
        }
        tn_model_unref(&model);
        n_leaks += count.live != live;
    }
    TEST_CHECK(n_leaks == 0 && n_opened < n_mutations);
    printf("%s: %ld mutations, %ld opened, %ld ran\n", tiny_shapes[arch].arch, n_mutations, n_opened, n_ran);
    tn_free(ctx, sound);
}

int main(int argc, char **argv)
{
    long n_mutations = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    ctx = counting_context(&count);
    counting_start_threads(ctx);
    f = malloc(sizeof *f);
    if (!f) abort();
    base_live = count.live;
    for (int32_t arch = 0; arch < TINY_ARCHS; arch++) ACCEPTED(arch, (void)0);
    test_every_tensor();
    test_tensors();
    test_required_keys();
    test_sizes();
    test_numbers();
    test_kinds();
    test_experts();
    test_hostile();
    test_table();
    test_logit_scale();
    test_no_row();
    test_overrides();
    test_tokenizer();
    for (int32_t arch = 0; arch < TINY_ARCHS; arch++)
        test_random_keys(arch, n_mutations / TINY_ARCHS, seed + (uint32_t)arch);
    for (int32_t arch = 0; arch < TINY_ARCHS; arch++)
        test_mutations(arch, n_mutations / TINY_ARCHS, seed + (uint32_t)arch);
    free(f);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
