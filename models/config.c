// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/config.h"

#include "models/keys/keys.h"
#include "models/quantize/nearest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Feed-forward: SwiGLU, GeGLU, or a plain gelu.
#define SILU  .act = TN_UNARY_SILU, .gated = true
#define GEGLU .act = TN_UNARY_GELU, .gated = true
#define GELU  .act = TN_UNARY_GELU

static const tn_arch archs[] = {
#define TN_ARCH(id, pairs, kind, ffn, ...)                                                                   \
    {.name = id, .rope = TN_ARCH_ROPE_##pairs, .norm = TN_ARCH_NORM_##kind, ffn, __VA_ARGS__},
#include "models/archs.def"
};

// --- the architecture ------------------------------------------------------------------------------

static tn_status unknown_arch(tn_context *ctx, tn_gguf_str name)
{
    char near[160] = "";
    int best = 1 << 20;
    for (size_t i = 0; i < TN_COUNT(archs); i++)
        best = TN_MIN(best, tn_name_distance(name.data, name.size, archs[i].name, strlen(archs[i].name)));
    for (size_t i = 0; i < TN_COUNT(archs); i++) {
        if (tn_name_distance(name.data, name.size, archs[i].name, strlen(archs[i].name)) > best + 1) continue;
        size_t n = strlen(near);
        snprintf(near + n, sizeof near - n, "%s%s", n ? ", " : "", archs[i].name);
    }
    return tn_fail(ctx, TN_ERR_MODEL, "architecture \"%.*s\" is not supported; the nearest known: %s",
                   (int)TN_MIN(name.size, 64), name.data, near);
}

static tn_status find_arch(tn_context *ctx, const tn_gguf *gguf, const tn_arch **out)
{
    tn_gguf_str name = {NULL, 0};
    tn_status status = tn_gguf_get_str(gguf, "general.architecture", &name);
    if (status != TN_OK) return status;
    if (!name.data)
        return tn_fail(ctx, TN_ERR_FORMAT, "the file has no general.architecture: it is no model");
    for (size_t i = 0; i < TN_COUNT(archs); i++)
        if (strlen(archs[i].name) == name.size && memcmp(archs[i].name, name.data, name.size) == 0) {
            *out = &archs[i];
            return TN_OK;
        }
    return unknown_arch(ctx, name);
}

// --- sizes -----------------------------------------------------------------------------------------

static tn_status read_sizes(const tn_keys *k, tn_config *c)
{
    tn_status status = tn_keys_i32(k, "block_count", TN_KEY_REQUIRED, &c->n_layers);
    if (status == TN_OK) status = tn_keys_i32(k, "embedding_length", TN_KEY_REQUIRED, &c->n_embd);
    if (status == TN_OK) status = tn_keys_i32(k, "context_length", TN_KEY_REQUIRED, &c->n_ctx_train);
    if (status != TN_OK) return status;
    const tn_gguf_kv *tokens = tn_gguf_find(k->gguf, "tokenizer.ggml.tokens");
    if (tokens && tokens->type == TN_GGUF_ARRAY && tokens->count >= 1 && tokens->count <= TN_MAX_VOCAB) {
        c->n_vocab = (int32_t)tokens->count;
        return TN_OK;
    }
    return tn_keys_i32(k, "vocab_size", TN_KEY_REQUIRED, &c->n_vocab);
}

static tn_status read_layers(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    c->layers = tn_calloc(ctx, (size_t)c->n_layers, sizeof *c->layers);
    if (!c->layers) return TN_ERR_MEMORY;
    // An MoE file may omit feed_forward_length; dense layers check it where they use it.
    for (int32_t i = 0; i < c->n_layers; i++) {
        tn_layer_config *l = &c->layers[i];
        tn_status status = tn_keys_layer_i32(k, "attention.head_count", i, c->n_layers, 1, TN_MAX_WIDTH,
                                             TN_KEY_REQUIRED, &l->n_heads);
        l->n_kv_heads = l->n_heads;
        if (status == TN_OK)
            status = tn_keys_layer_i32(k, "attention.head_count_kv", i, c->n_layers, c->arch->delta ? 0 : 1,
                                       TN_MAX_WIDTH, 0, &l->n_kv_heads);
        if (status == TN_OK)
            status =
                tn_keys_layer_i32(k, "feed_forward_length", i, c->n_layers, 0, TN_MAX_WIDTH, 0, &l->n_ff);
        if (status != TN_OK) return status;
        if (l->n_kv_heads > 0 && l->n_heads % l->n_kv_heads != 0)
            return tn_fail(ctx, TN_ERR_FORMAT, "layer %d: %d heads are no multiple of %d KV heads", i,
                           l->n_heads, l->n_kv_heads);
    }
    c->head_dim = c->head_dim_v = c->n_embd / c->layers[0].n_heads;
    tn_status status = tn_keys_i32(k, "attention.key_length", 0, &c->head_dim);
    if (status == TN_OK) status = tn_keys_i32(k, "attention.value_length", 0, &c->head_dim_v);
    if (status == TN_OK && c->arch->head_rot) {
        status = tn_keys_i32(k, "rope.dimension_count", 0, &c->head_dim);
        c->head_dim_v = c->head_dim;
    }
    if (status == TN_OK &&
        (c->head_dim < 1 || c->head_dim_v < 1 || c->head_dim > TN_MAX_HEAD || c->head_dim_v > TN_MAX_HEAD))
        status = tn_fail(ctx, TN_ERR_FORMAT, "head size %d of width %d and %d heads", c->head_dim, c->n_embd,
                         c->layers[0].n_heads);
    return status;
}

// Older files give the sizes of heads in key_length and value_length, files with the compressed form in
// *_mla.
static tn_status read_mla(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    if (!c->arch->mla) return TN_OK;
    int32_t n_rot = 0;
    tn_mla_config *m = &c->mla;
    *m = (tn_mla_config){.dim_q = c->head_dim, .dim_v = c->head_dim_v};
    tn_status status = tn_keys_i32(k, "attention.kv_lora_rank", TN_KEY_REQUIRED, &m->kv_rank);
    if (status == TN_OK) status = tn_keys_i32(k, "attention.q_lora_rank", 0, &m->q_rank);
    if (status == TN_OK) status = tn_keys_i32(k, "attention.key_length_mla", 0, &m->dim_q);
    if (status == TN_OK) status = tn_keys_i32(k, "attention.value_length_mla", 0, &m->dim_v);
    if (status == TN_OK) status = tn_keys_i32(k, "rope.dimension_count", TN_KEY_REQUIRED, &n_rot);
    if (status != TN_OK) return status;
    if (n_rot >= m->dim_q)
        return tn_fail(ctx, TN_ERR_FORMAT, "%s: heads of %d with %d rotated dimensions", c->arch->name,
                       m->dim_q, n_rot);
    for (int32_t i = 0; i < c->n_layers; i++) {
        if (c->layers[i].n_heads != c->layers[0].n_heads)
            return tn_fail(ctx, TN_ERR_FORMAT, "%s.attention.head_count differs between layers",
                           c->arch->name);
        c->layers[i].n_kv_heads = 1;
    }
    c->head_dim = m->kv_rank + n_rot;
    c->head_dim_v = m->kv_rank;
    return TN_OK;
}

// Which layers are recurrent: an array, or all but the last of each group.
static tn_status read_recurrent(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    int32_t interval = 4, n_extra = 0;
    bool listed = tn_keys_find(k, "attention.recurrent_layers") != NULL;
    tn_status status = tn_keys_i32(k, "full_attention_interval", 0, &interval);
    for (int32_t i = 0; i < c->n_layers && status == TN_OK; i++) {
        int32_t recurrent = (i + 1) % interval != 0;
        if (listed)
            status = tn_keys_layer_i32(k, "attention.recurrent_layers", i, c->n_layers, 0, 1, 0, &recurrent);
        c->layers[i].recurrent = recurrent != 0;
        if (status == TN_OK && !recurrent && c->layers[i].n_kv_heads < 1)
            status =
                tn_fail(ctx, TN_ERR_FORMAT, "%s.attention.head_count_kv of layer %d is 0", c->arch->name, i);
    }
    // The last layers may be extra layers that predict further tokens. They are not evaluated.
    if (status == TN_OK)
        status = tn_keys_i32_within(k, "nextn_predict_layers", 0, c->n_layers - 1, 0, &n_extra);
    c->n_layers -= n_extra;
    return status;
}

static tn_status read_delta(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    tn_delta_config *d = &c->delta;
    int32_t inner = 0;
    if (c->arch->delta == TN_DELTA_NONE) return TN_OK;
    tn_status status = tn_keys_i32(k, "ssm.conv_kernel", TN_KEY_REQUIRED, &d->n_conv);
    if (status == TN_OK) status = tn_keys_i32(k, "ssm.state_size", TN_KEY_REQUIRED, &d->dim);
    if (status == TN_OK) status = tn_keys_i32(k, "ssm.group_count", TN_KEY_REQUIRED, &d->n_key_heads);
    if (status == TN_OK) status = tn_keys_i32(k, "ssm.time_step_rank", TN_KEY_REQUIRED, &d->n_heads);
    if (status != TN_OK) return status;
    inner = d->n_heads * d->dim;
    status = tn_keys_i32(k, "ssm.inner_size", 0, &inner);
    if (status != TN_OK) return status;
    if (d->n_heads % d->n_key_heads != 0 || inner != d->n_heads * d->dim)
        return tn_fail(ctx, TN_ERR_FORMAT,
                       "%s: %d value heads of %d with %d key heads and an inner size of %d", c->arch->name,
                       d->n_heads, d->dim, d->n_key_heads, inner);
    if (c->head_dim != c->head_dim_v)
        return tn_fail(ctx, TN_ERR_FORMAT, "%s: heads of %d with values of %d", c->arch->name, c->head_dim,
                       c->head_dim_v);
    d->n_channels = (2 * d->n_key_heads + d->n_heads) * d->dim;
    d->scale = (float)(1.0 / sqrt(d->dim));
    return read_recurrent(ctx, k, c);
}

// How experts are selected and weighted, for architectures whose files have keys for it.
static tn_status read_routing(const tn_keys *k, tn_config *c)
{
    bool normalise = c->moe.normalise != 0;
    int32_t gating = 0, n_shared = 0;
    tn_status status = tn_keys_bool(k, "expert_weights_norm", &normalise);
    if (status == TN_OK) status = tn_keys_f32(k, "expert_weights_scale", 0, &c->moe.scale);
    if (status == TN_OK) status = tn_keys_i32(k, "expert_gating_func", 0, &gating);
    if (status == TN_OK)
        status = tn_keys_i32_within(k, "expert_group_count", 0, c->n_experts, 0, &c->n_expert_groups);
    c->n_expert_groups_used = c->n_expert_groups;
    if (status == TN_OK)
        status =
            tn_keys_i32_within(k, "expert_group_used_count", 0, c->n_experts, 0, &c->n_expert_groups_used);
    if (status == TN_OK)
        status = tn_keys_i32_within(k, "expert_shared_count", 0, TN_MAX_WIDTH / c->n_ff_expert, 0, &n_shared);
    c->n_ff_shared = n_shared * c->n_ff_expert;
    c->moe.normalise = normalise;
    if (gating != 0) c->moe.gating = gating;
    return status;
}

static tn_status read_moe_step(const tn_keys *k, tn_config *c)
{
    int32_t step = 0;
    tn_status status = tn_keys_i32(k, "interleave_moe_layer_step", TN_KEY_REQUIRED, &step);
    for (int32_t i = 0; i < c->n_layers; i++) c->layers[i].dense = step == 0 || (i + 1) % step != 0;
    c->n_ff_shared = c->n_ff_expert;
    return status;
}

// A file without experts that says how many of them are used contradicts itself as much as one that uses more
// than there are.
static tn_status read_experts_used(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    int32_t flags = c->n_experts > 0 ? TN_KEY_REQUIRED : 0, least = c->n_experts > 0;
    tn_status status =
        tn_keys_i32_within(k, "expert_used_count", least, INT32_MAX, flags, &c->n_experts_used);
    if (status != TN_OK || c->n_experts_used <= c->n_experts) return status;
    return tn_fail(ctx, TN_ERR_FORMAT, "key %s.expert_used_count is %d, but expert_count is %d", k->arch,
                   c->n_experts_used, c->n_experts);
}

static tn_status read_experts(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    tn_status status = tn_keys_i32(k, "expert_count", 0, &c->n_experts);
    if (status == TN_OK) status = read_experts_used(ctx, k, c);
    if (status != TN_OK || c->n_experts == 0) return status;
    int32_t n_ff = c->layers[0].n_ff;
    bool full = c->arch->moe_ff_full;
    c->n_ff_expert = full ? n_ff : n_ff / c->n_experts_used;
    int32_t need = c->arch->moe_step ? TN_KEY_REQUIRED : 0;
    if (!full) status = tn_keys_i32(k, "expert_feed_forward_length", need, &c->n_ff_expert);
    if (status == TN_OK && c->n_ff_expert < 1)
        status = tn_fail(ctx, TN_ERR_FORMAT,
                         "%s.feed_forward_length and expert_feed_forward_length are missing", c->arch->name);
    c->moe = (tn_moe_weights_params){.gating = TN_GATING_SOFTMAX, .normalise = c->arch->moe_norm};
    if (c->arch->gating != 0) c->moe.gating = c->arch->gating;
    c->expert_glu =
        (tn_glu_params){.act = c->arch->act, .limit = c->arch->glu_limit, .alpha = c->arch->glu_alpha};
    if (status == TN_OK && c->arch->moe_keys) status = read_routing(k, c);
    if (status == TN_OK && c->arch->moe_step) status = read_moe_step(k, c);
    if (status == TN_OK) status = tn_keys_i32(k, "expert_shared_feed_forward_length", 0, &c->n_ff_shared);
    if (status != TN_OK || c->n_ff_shared > 0 || !c->arch->shared_gate) return status;
    c->n_ff_shared = n_ff;
    return n_ff > 0 ? TN_OK
                    : tn_fail(ctx, TN_ERR_FORMAT,
                              "%s.feed_forward_length and expert_shared_feed_forward_length are missing",
                              c->arch->name);
}

// --- attention and positions -----------------------------------------------------------------------

static tn_status read_window(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    int32_t period = c->arch->period;
    if (period == 0 || c->arch->chunk > 0) return TN_OK;
    c->window = c->arch->window;
    tn_status status =
        tn_keys_i32(k, "attention.sliding_window", c->window < 0 ? TN_KEY_REQUIRED : 0, &c->window);
    // Only one architecture reads an array of the pattern; the others keep their default period if the key is
    // an array.
    const char *key = "attention.sliding_window_pattern";
    const tn_gguf_kv *pattern = tn_keys_find(k, key);
    bool array = pattern && pattern->type == TN_GGUF_ARRAY;
    if (status == TN_OK && c->arch->swa_heads && !pattern)
        return tn_fail(ctx, TN_ERR_FORMAT, "key %s.%s is missing", c->arch->name, key);
    if (status == TN_OK && pattern && !array) status = tn_keys_i32(k, key, 0, &period);
    for (int32_t i = 0; i < c->n_layers && status == TN_OK; i++) {
        int32_t slides = period == 0 || i % period < period - 1;
        if (array && c->arch->swa_heads) status = tn_keys_layer_i32(k, key, i, c->n_layers, 0, 1, 0, &slides);
        c->layers[i].sliding = slides && (c->window > 0 || c->arch->swa_heads);
        c->layers[i].no_rope = !slides && c->arch->swa_rope;
    }
    return status;
}

// The last layers may have no K and V of their own. They read those of the last layer of their kind (sliding
// or not) that has some: of the two layers before them the first one slides, the second one does not.
static tn_status share_keys(tn_context *ctx, tn_config *c, int32_t n_shared)
{
    int32_t first = c->n_layers - n_shared;
    for (int32_t i = first; i < c->n_layers; i++) {
        tn_layer_config *l = &c->layers[i];
        l->kv_layer = first - (l->sliding ? 2 : 1);
        if (l->kv_layer < 0 || c->layers[l->kv_layer].sliding != l->sliding)
            return tn_fail(ctx, TN_ERR_FORMAT, "layer %d shares keys of layer %d, which is none of its kind",
                           i, l->kv_layer);
        l->n_kv_heads = c->layers[l->kv_layer].n_kv_heads;
        if (l->n_heads % l->n_kv_heads != 0)
            return tn_fail(ctx, TN_ERR_FORMAT,
                           "layer %d: %d heads are no multiple of the %d KV heads of layer %d", i, l->n_heads,
                           l->n_kv_heads, l->kv_layer);
    }
    return TN_OK;
}

static tn_status read_heads(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    int32_t dim_v = c->head_dim_v, n_shared = 0;
    tn_status status = TN_OK;
    c->head_dim_swa = c->head_dim;
    if (c->arch->swa_heads) {
        status = tn_keys_i32(k, "attention.key_length_swa", 0, &c->head_dim_swa);
        if (status == TN_OK) status = tn_keys_i32(k, "attention.value_length_swa", 0, &dim_v);
        if (status == TN_OK)
            status = tn_keys_i32_within(k, "attention.shared_kv_layers", 0, c->n_layers - 1, 0, &n_shared);
        if (status == TN_OK)
            status = tn_keys_i32_within(k, "embedding_length_per_layer_input", 0, TN_MAX_WIDTH / c->n_layers,
                                        0, &c->n_per_layer);
    }
    for (int32_t i = 0; i < c->n_layers; i++) {
        tn_layer_config *l = &c->layers[i];
        l->head_dim = l->sliding ? c->head_dim_swa : c->head_dim;
        l->head_dim_v = l->sliding ? dim_v : c->head_dim_v;
        l->kv_layer = i;
    }
    return status == TN_OK ? share_keys(ctx, c, n_shared) : status;
}

static tn_status read_alibi(const tn_keys *k, tn_config *c)
{
    c->max_bias = c->arch->max_bias;
    if (!c->arch->alibi_keys) return TN_OK;
    tn_status status = tn_keys_f32(k, "attention.max_alibi_bias", 0, &c->max_bias);
    return status == TN_OK ? tn_keys_f32(k, "attention.clamp_kqv", 0, &c->clamp_kqv) : status;
}

// Some layers have no rope, and their queries are multiplied by a temperature that grows with the position;
// the others see one chunk of positions. A window of 0 means that all layers see everything: then only the
// last layer of each period has no rope, and there is no temperature (as in llama.cpp, llama4).
static tn_status read_chunks(const tn_keys *k, tn_config *c)
{
    const tn_arch *arch = c->arch;
    int32_t nope = arch->nope_period, window = arch->chunk;
    tn_status status = arch->chunk > 0 ? tn_keys_i32(k, "attention.sliding_window", 0, &window) : TN_OK;
    c->chunk = window > 0 ? arch->chunk : 0;
    if (arch->chunk > 0 && c->chunk == 0) nope = c->n_layers;
    for (int32_t i = 0; i < c->n_layers; i++) {
        c->layers[i].no_rope |= nope > 0 && (i + 1) % nope == 0;
        if (arch->chunk > 0) c->layers[i].sliding = c->chunk > 0 && i % arch->period < arch->period - 1;
    }
    if (c->chunk > 0 && arch->temperature > 0.0f) {
        c->temperature_scale = arch->temperature;
        c->temperature_length = c->chunk;
        c->temperature_start = 1;
    }
    return status;
}

static tn_status read_attention(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    double dim = c->n_layers == c->arch->n_layers_by_width ? (double)c->n_embd / c->layers[0].n_heads
                 : c->mla.kv_rank > 0                      ? c->mla.dim_q
                                                           : c->head_dim;
    c->attn_scale = c->arch->attn_scale > 0.0f ? c->arch->attn_scale : (float)(1.0 / sqrt(dim));
    c->attn_softcap = c->arch->attn_softcap;
    c->logit_softcap = c->arch->logit_softcap;
    tn_status status = TN_OK;
    if (c->attn_softcap > 0.0f) status = tn_keys_f32(k, "attn_logit_softcapping", 0, &c->attn_softcap);
    if (status == TN_OK && c->arch->softcap)
        status = tn_keys_f32(k, "final_logit_softcapping", 0, &c->logit_softcap);
    const char *eps = c->arch->norm == TN_ARCH_NORM_RMS ? "attention.layer_norm_rms_epsilon"
                                                        : "attention.layer_norm_epsilon";
    if (status == TN_OK) status = tn_keys_f32(k, eps, TN_KEY_REQUIRED, &c->eps);
    if (status == TN_OK && !(c->eps >= 0.0f && c->eps < 1.0f))
        status = tn_fail(ctx, TN_ERR_FORMAT, "%s.%s is %g", c->arch->name, eps, (double)c->eps);
    if (status == TN_OK && c->arch->parallel_key) {
        if (!tn_keys_find(k, "use_parallel_residual"))
            return tn_fail(ctx, TN_ERR_FORMAT, "key %s.use_parallel_residual is missing", c->arch->name);
        status = tn_keys_bool(k, "use_parallel_residual", &c->parallel);
    }
    if (status == TN_OK) status = read_alibi(k, c);
    if (status == TN_OK) status = read_window(ctx, k, c);
    if (status == TN_OK) status = read_chunks(k, c);
    return status == TN_OK ? read_heads(ctx, k, c) : status;
}

// The number of rotations within the original context above which a pair keeps its angle, and below which its
// angle is scaled (section 3.2 of the YaRN paper).
#define YARN_FAST 32.0f
#define YARN_SLOW 1.0f

// YaRN (Peng et al. 2023, eq. 18-23): pair indices between which angles go from unscaled to scaled.
static void yarn_ramp(tn_rope_params *r, double n_original, double beta_fast, double beta_slow)
{
    const double two_pi = 6.283185307179586476925;
    double scale = r->n_rot / (2.0 * log(r->base));
    double low = floor(scale * log(n_original / (beta_fast * two_pi)));
    double high = ceil(scale * log(n_original / (beta_slow * two_pi)));
    r->yarn_ext = 1.0f;
    r->yarn_low = (float)fmax(0.0, low);
    r->yarn_high = (float)fmin(r->n_rot - 1, high);
}

// With latent attention (deepseek2) the magnitude that scaled positions would give to queries and keys is
// multiplied into the scale of the scores instead.
static tn_status read_mla_scale(const tn_keys *k, tn_config *c, double factor, bool yarn)
{
    double ln = factor > 1.0 ? log(factor) : 0.0, m = c->rope.attn_factor;
    float lambda = 0.0f;
    tn_status status = tn_keys_f32(k, "rope.scaling.yarn_log_multiplier", 0, &lambda);
    if (!yarn && factor != 1.0) m *= 1.0 + 0.1 * ln;
    if (factor != 1.0) m *= 1.0 + (double)lambda * ln; // the file holds 0.1 times the multiplier
    if (yarn || factor != 1.0) c->attn_scale = (float)((double)c->attn_scale * m * m);
    return status;
}

// Most architectures do not read these keys from a file, but all of them when a caller gives the value.
static tn_status read_beta(const tn_keys *k, const tn_config *c, const char *name, float *beta)
{
    return c->arch->yarn_keys || tn_keys_is_given(k, name) ? tn_keys_f32(k, name, 0, beta) : TN_OK;
}

static tn_status read_yarn(const tn_keys *k, tn_config *c, double factor, float fast, float slow)
{
    float lambda = 0.0f, lambda_mla = 0.0f;
    tn_status status =
        c->arch->mla ? tn_keys_f32(k, "rope.scaling.yarn_log_multiplier", 0, &lambda_mla) : TN_OK;
    if (c->arch->yarn_keys) status = tn_keys_f32(k, "rope.scaling.yarn_log_multiplier", 0, &lambda);
    yarn_ramp(&c->rope, c->n_ctx_original, fast, slow);
    double ln = factor > 1.0 ? log(factor) : 0.0;
    // Latent attention with a multiplier has no magnitude in its rotation, see read_mla_scale.
    double m = lambda_mla != 0.0f ? 1.0
               : lambda == 0.0f   ? 1.0 + 0.1 * ln
                                  : (1.0 + 0.1 * ln) / (1.0 + 0.1 * (double)lambda * ln);
    c->rope.attn_factor = (float)(c->rope.attn_factor * m);
    return status;
}

static bool is(tn_gguf_str s, const char *text)
{
    return s.data && s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

static tn_status read_scaling(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    tn_gguf_str type = {"linear", 6};
    float factor = 0.0f, fast = YARN_FAST, slow = YARN_SLOW;
    tn_status status = tn_keys_str(k, "rope.scaling.type", &type);
    if (status == TN_OK) status = tn_keys_f32(k, "rope.scale_linear", 0, &factor);
    if (status == TN_OK) status = tn_keys_f32(k, "rope.scaling.factor", 0, &factor);
    if (status == TN_OK) status = tn_keys_f32(k, "rope.scaling.attn_factor", 0, &c->rope.attn_factor);
    if (status == TN_OK) status = read_beta(k, c, "rope.scaling.yarn_beta_fast", &fast);
    if (status == TN_OK) status = read_beta(k, c, "rope.scaling.yarn_beta_slow", &slow);
    c->n_ctx_original = c->n_ctx_train;
    if (status == TN_OK)
        status = tn_keys_i32(k, "rope.scaling.original_context_length", 0, &c->n_ctx_original);
    if (status != TN_OK) return status;
    if (factor == 0.0f || is(type, "none")) factor = 1.0f; // models/keys/keys.def: not negative
    c->rope.freq_scale = 1.0f / factor;
    c->longrope = c->arch->longrope || (c->arch->longrope_by_type && is(type, "longrope"));
    bool yarn = is(type, "yarn");
    if (yarn) status = read_yarn(k, c, factor, fast, slow);
    if (status == TN_OK && c->mla.kv_rank > 0) status = read_mla_scale(k, c, factor, yarn);
    if (yarn || status != TN_OK) return status;
    if (!is(type, "none") && !is(type, "linear") && !is(type, "longrope"))
        return tn_fail(ctx, TN_ERR_MODEL, "rope scaling \"%.*s\" is not known", (int)TN_MIN(type.size, 32),
                       type.data);
    return TN_OK;
}

static tn_status read_sliding_rope(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    const tn_arch *arch = c->arch;
    tn_rope_params *r = &c->rope_sliding;
    *r = c->rope;
    // positions are not scaled, so there is no interpolation
    if (arch->swa_base > 0.0f || arch->swa_unscaled) {
        float base = arch->swa_unscaled ? r->base : arch->swa_base;
        *r = (tn_rope_params){
            .mode = r->mode, .n_rot = r->n_rot, .base = base, .freq_scale = 1.0f, .attn_factor = 1.0f};
    }
    tn_status status = TN_OK;
    if (!arch->swa_unscaled && arch->swa_base > 0.0f)
        status = tn_keys_f32(k, "rope.scaling.attn_factor", 0, &r->attn_factor);
    if (arch->swa_heads) {
        r->n_rot = c->head_dim_swa;
        if (status == TN_OK)
            status = tn_keys_i32_within(k, "rope.dimension_count_swa", 2, c->head_dim_swa, 0, &r->n_rot);
    }
    if (status == TN_OK && !arch->swa_unscaled) status = tn_keys_f32(k, "rope.freq_base_swa", 0, &r->base);
    if (status == TN_OK && (r->n_rot % 2 != 0 || !(r->base > 1.0f)))
        status = tn_fail(ctx, TN_ERR_FORMAT, "%s: %d rotated dimensions with base %g in sliding layers",
                         arch->name, r->n_rot, (double)r->base);
    // which depends on the base
    if (r->yarn_ext > 0.0f) yarn_ramp(r, c->n_ctx_original, YARN_FAST, YARN_SLOW);
    return status;
}

// Keys that say which elements form a pair, or that nothing is rotated at all.
static tn_status read_rope_kind(const tn_keys *k, tn_config *c)
{
    const tn_gguf_kv *sections = NULL;
    int64_t first[2] = {0, 0};
    bool finetuned = true;
    tn_status status = c->arch->scales ? tn_keys_bool(k, "rope.scaling.finetuned", &finetuned) : TN_OK;
    if (status == TN_OK && c->arch->rope_sections)
        status = tn_keys_ints(k, "rope.dimension_sections", &sections);
    for (uint64_t i = 0; i < 2 && sections && sections->count >= 2 && status == TN_OK; i++)
        status = tn_gguf_array_i64(k->gguf, sections, i, &first[i]);
    if (first[0] > 0 && first[1] > 0) c->rope.mode = TN_ROPE_NEOX;
    if (!finetuned) { // the model has no encoding of positions
        c->rope.n_rot = 0;
        c->rope_freqs = false;
    }
    return status;
}

static tn_status read_rope(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    if (c->arch->rope == TN_ARCH_ROPE_NONE) return TN_OK;
    c->rope =
        (tn_rope_params){.mode = c->arch->rope, .n_rot = c->head_dim, .base = 10000.0f, .attn_factor = 1.0f};
    c->rope_freqs = c->arch->rope_freqs;
    tn_status status = tn_keys_i32_within(k, "rope.dimension_count", 2, c->head_dim, 0, &c->rope.n_rot);
    if (status == TN_OK) status = tn_keys_f32(k, "rope.freq_base", 0, &c->rope.base);
    if (status == TN_OK && (c->rope.n_rot % 2 != 0 || !(c->rope.base > 1.0f)))
        status = tn_fail(ctx, TN_ERR_FORMAT, "%s: %d rotated dimensions with base %g", c->arch->name,
                         c->rope.n_rot, (double)c->rope.base);
    if (status == TN_OK) status = read_scaling(ctx, k, c);
    if (status == TN_OK) status = read_rope_kind(k, c);
    return status == TN_OK && c->arch->period > 0 ? read_sliding_rope(ctx, k, c) : status;
}

static tn_status read_scales(tn_context *ctx, const tn_keys *k, tn_config *c)
{
    if (c->arch->embed_sqrt) c->embed_scale = (float)sqrt((double)c->n_embd);
    tn_status status = TN_OK;
    if (c->arch->yarn_keys) {
        status = tn_keys_f32(k, "attention.temperature_scale", 0, &c->temperature_scale);
        c->temperature_length = c->n_ctx_original;
    }
    if (c->arch->logit_scale && status == TN_OK) {
        int32_t need = c->arch->logit_scale == TN_ARCH_REQUIRED ? TN_KEY_REQUIRED : 0;
        status = tn_keys_f32(k, "logit_scale", need, &c->logit_scale);
    }
    if (!c->arch->scales || status != TN_OK) return status;
    float attn = 0.0f, logit = 0.0f;
    status = tn_keys_f32(k, "embedding_scale", 0, &c->embed_scale);
    if (status == TN_OK) status = tn_keys_f32(k, "residual_scale", 0, &c->residual_scale);
    if (status == TN_OK) status = tn_keys_f32(k, "attention.scale", 0, &attn);
    if (status == TN_OK) status = tn_keys_f32(k, "logit_scale", TN_KEY_REQUIRED, &logit);
    if (status == TN_OK && !(logit != 0.0f))
        status = tn_fail(ctx, TN_ERR_FORMAT, "%s.logit_scale is 0", c->arch->name);
    if (attn != 0.0f) c->attn_scale = attn;
    c->logit_scale = status == TN_OK ? 1.0f / logit : 0.0f;
    return status;
}

static tn_status read_pooling(const tn_keys *k, tn_config *c)
{
    bool causal = !c->arch->encoder;
    tn_status status = tn_keys_bool(k, "attention.causal", &causal);
    c->whole_texts = c->arch->encoder || !causal;
    if (status == TN_OK && c->whole_texts && c->arch->mla)
        return tn_fail(k->ctx, TN_ERR_MODEL,
                       "%s.attention.causal is false: latent attention has a causal mask only",
                       c->arch->name);
    return status == TN_OK ? tn_keys_i32(k, "pooling_type", 0, &c->pooling) : status;
}

tn_status tn_config_read(tn_context *ctx, const tn_gguf *gguf, tn_config *out)
{
    tn_config c = {0};
    tn_status status = find_arch(ctx, gguf, &c.arch);
    if (status != TN_OK) return status;
    tn_keys k = {ctx, gguf, c.arch->name, NULL};
    status = tn_keys_watch(&k);
    if (status == TN_OK) status = read_sizes(&k, &c);
    if (status == TN_OK) status = read_layers(ctx, &k, &c);
    if (status == TN_OK) status = read_mla(ctx, &k, &c);
    if (status == TN_OK) status = read_delta(ctx, &k, &c);
    if (status == TN_OK) status = read_experts(ctx, &k, &c);
    if (status == TN_OK) status = read_attention(ctx, &k, &c);
    if (status == TN_OK) status = read_rope(ctx, &k, &c);
    if (status == TN_OK) status = read_scales(ctx, &k, &c);
    if (status == TN_OK) status = read_pooling(&k, &c);
    status = tn_keys_unwatch(&k, status);
    if (status != TN_OK)
        tn_config_fini(ctx, &c);
    else
        *out = c;
    return status;
}

void tn_config_fini(tn_context *ctx, tn_config *cfg)
{
    tn_free(ctx, cfg->layers);
    cfg->layers = NULL;
}
