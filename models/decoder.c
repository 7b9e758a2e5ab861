// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The decoder: embeddings, blocks, head. What differs between architectures is in the config.
#include "models/decoder.h"

#include "models/builder.h"

#include <math.h>

static void make_inputs(tn_builder *b)
{
    const tn_plan_key *k = b->key;
    int64_t t = k->n_tokens, s = k->n_seq, s1 = s + 1,
            table[2] = {s, k->max_blocks > 0 ? k->max_blocks : b->setup->max_blocks}, out = k->n_outputs;
    b->tokens = tn_graph_input(b->g, "tokens", TN_TYPE_I32, 1, &t);
    b->positions = tn_graph_input(b->g, "positions", TN_TYPE_I32, 1, &t);
    if (!b->c->whole_texts) b->slots = tn_graph_input(b->g, "slots", TN_TYPE_I32, 1, &t);
    b->q_start = tn_graph_input(b->g, "q_start", TN_TYPE_I32, 1, &s1);
    b->kv_len = tn_graph_input(b->g, "kv_len", TN_TYPE_I32, 1, &s);
    b->block_table = tn_graph_input(b->g, "block_table", TN_TYPE_I32, 2, table);
    if (b->setup->n_window_blocks > 0) {
        b->window_slots = tn_graph_input(b->g, "window_slots", TN_TYPE_I32, 1, &t);
        b->window_table = tn_graph_input(b->g, "window_table", TN_TYPE_I32, 2, table);
    }
    if (out > 0 && out < t) b->out_rows = tn_graph_input(b->g, "out_rows", TN_TYPE_I32, 1, &out);
    if (b->c->temperature_scale != 0.0f)
        b->q_scale = tn_graph_input(b->g, "q_scale", TN_TYPE_F32, 3, (int64_t[]){t, 1, 1});
    if (b->c->delta.dim > 0)
        b->state_slots = tn_graph_input(b->g, "state_slots", TN_TYPE_I32, 2, (int64_t[]){s, 2});
    tn_builder_adapter_inputs(b);
    if (b->c->mla.kv_rank > 0)
        b->head_ids =
            tn_graph_input(b->g, "head_ids", TN_TYPE_I32, 2, (int64_t[]){t, b->c->layers[0].n_heads});
}

// Long or short factors are selected once for the session, by its context rounded up to a multiple of 256:
// other programs that read these files round the same way.
bool tn_decoder_long_rope(const tn_config *c, int32_t n_ctx)
{
    return c->longrope && ((int64_t)n_ctx + 255) / 256 * 256 > c->n_ctx_original;
}

static void find_rope_factors(tn_builder *b)
{
    const tn_config *c = b->c;
    int64_t n = c->rope.n_rot / 2;
    const char *longrope =
        tn_decoder_long_rope(c, b->setup->n_ctx) ? "rope_factors_long.weight" : "rope_factors_short.weight";
    if (c->longrope) b->rope_factors = tn_builder_weight(b, -1, longrope, TN_WEIGHT_OPTIONAL, 1, n, 0, 0);
    if (!b->rope_factors && c->rope_freqs)
        b->rope_factors = tn_builder_weight(b, -1, "rope_freqs.weight", TN_WEIGHT_OPTIONAL, 1, n, 0, 0);
}

static tn_tensor *add_positions(tn_builder *b, tn_tensor *x)
{
    const tn_config *c = b->c;
    tn_tensor *positions = tn_builder_weight(b, -1, "position_embd.weight", 0, 2, 0, c->n_embd, 0);
    if (positions && tn_tensor_dim(positions, 0) < c->n_ctx_train)
        tn_builder_refuse(b, tn_fail(b->model->ctx, TN_ERR_MODEL,
                                     "position_embd.weight has %lld rows for a context of %d",
                                     (long long)tn_tensor_dim(positions, 0), c->n_ctx_train));
    return tn_op_add(b->g, x, tn_op_get_rows(b->g, positions, b->positions, 1.0f));
}

// Every token is in segment 0, as in other programs that read these files.
static tn_tensor *add_segments(tn_builder *b, tn_tensor *x)
{
    tn_tensor *table = tn_builder_weight(b, -1, "token_types.weight", 0, 2, 0, b->c->n_embd, 0);
    int64_t t = b->key->n_tokens;
    tn_tensor *types = tn_graph_input(b->g, "token_types", TN_TYPE_I32, 1, &t);
    return tn_op_add(b->g, x, tn_op_get_rows(b->g, table, types, 1.0f));
}

static tn_tensor *embed(tn_builder *b)
{
    const tn_config *c = b->c;
    tn_tensor *table = tn_builder_weight(b, -1, "token_embd.weight", 0, 2, c->n_vocab, c->n_embd, 0);
    tn_tensor *x = tn_op_get_rows(b->g, table, b->tokens, c->embed_scale);
    tn_product_input in = {.x = b->tokens, .scale = c->embed_scale};
    x = tn_builder_adapt(b, tn_builder_index(b, -1, "token_embd.weight"), &in, x);
    if (c->arch->encoder) x = add_segments(b, x);
    bool positions = c->arch->positions || tn_builder_has(b, -1, "position_embd.weight");
    if (positions) x = add_positions(b, x);
    return c->arch->embed_norm ? tn_builder_norm(b, -1, "token_embd_norm", x, c->n_embd) : x;
}

// gemma4: experts run beside the ordinary feed-forward. x is the residual stream, h the input of the
// ordinary feed-forward. The router reads x normalised without the weights of a norm, times a weight vector
// of its own.
static tn_tensor *feed_forward_beside(tn_builder *b, int32_t layer, tn_tensor *x, tn_tensor *h)
{
    const tn_config *c = b->c;
    tn_tensor *y = tn_builder_norm(b, layer, "post_ffw_norm_1", tn_mixer_ffn(b, layer, h), c->n_embd);
    tn_tensor *route =
        tn_op_scale(b->g, tn_op_rms_norm(b->g, x, NULL, c->eps), (float)(1.0 / sqrt((double)c->n_embd)));
    route = tn_op_mul(b->g, route, tn_builder_weight(b, layer, "ffn_gate_inp.scale", 0, 1, c->n_embd, 0, 0));
    tn_tensor *moe = tn_mixer_moe(b, layer, tn_builder_norm(b, layer, "pre_ffw_norm_2", x, c->n_embd), route);
    return tn_op_add(b->g, y, tn_builder_norm(b, layer, "post_ffw_norm_2", moe, c->n_embd));
}

// x: the residual stream, h: normed.
static tn_tensor *feed_forward(tn_builder *b, int32_t layer, tn_tensor *x, tn_tensor *h)
{
    const tn_config *c = b->c;
    bool experts = tn_builder_has(b, layer, "ffn_gate_inp.weight");
    if (c->arch->moe_step) experts = c->n_experts > 0 && !c->layers[layer].dense;
    if (experts && c->arch->moe_beside) return feed_forward_beside(b, layer, x, h);
    return experts ? tn_mixer_moe(b, layer, h, h) : tn_mixer_ffn(b, layer, h);
}

// The input of a mixer; some architectures norm only its result.
static tn_tensor *enter(tn_builder *b, int32_t layer, const char *norm, tn_tensor *x)
{
    return b->c->arch->no_pre_norm ? x : tn_builder_norm(b, layer, norm, x, b->c->n_embd);
}

static tn_tensor *mix(tn_builder *b, int32_t layer, tn_tensor *h, bool select)
{
    if (b->c->layers[layer].recurrent) return tn_mixer_delta(b, layer, h, select);
    return b->c->mla.kv_rank > 0 ? tn_mixer_mla(b, layer, h, select)
                                 : tn_mixer_attention(b, layer, h, select);
}

// The result of a mixer before it is added to the residual stream: a norm behind it, granite's scale.
static tn_tensor *leave(tn_builder *b, int32_t layer, const char *norm, tn_tensor *y)
{
    if (b->c->arch->post_norm) y = tn_builder_norm(b, layer, norm, y, b->c->n_embd);
    float r = b->c->residual_scale;
    return r != 0.0f && r != 1.0f ? tn_op_scale(b->g, y, r) : y;
}

static tn_tensor *sequential_block(tn_builder *b, int32_t layer, tn_tensor *x, bool select)
{
    tn_tensor *h = enter(b, layer, "attn_norm", x);
    tn_tensor *a = leave(b, layer, "post_attention_norm", mix(b, layer, h, select));
    if (select) x = tn_builder_out_rows(b, x);
    x = tn_op_add(b->g, x, a);
    bool renamed = b->c->arch->ffn_norm_renamed;
    h = enter(b, layer, renamed ? "post_attention_norm" : "ffn_norm", x);
    return tn_op_add(b->g, x, leave(b, layer, "post_ffw_norm", feed_forward(b, layer, x, h)));
}

// x + attn(h) + ffn(h'), with one norm or two.
static tn_tensor *parallel_block(tn_builder *b, int32_t layer, tn_tensor *x, bool select)
{
    int64_t width = b->c->n_embd;
    tn_tensor *h = tn_builder_norm(b, layer, "attn_norm", x, width), *in = h;
    if (b->c->arch->attn_norm_2 && tn_builder_has(b, layer, "attn_norm_2.weight"))
        in = tn_builder_norm(b, layer, "attn_norm_2", x, width);
    tn_tensor *a = mix(b, layer, in, select);
    if (b->c->arch->parallel_key) h = tn_builder_norm(b, layer, "ffn_norm", x, width);
    if (select) h = tn_builder_out_rows(b, h), x = tn_builder_out_rows(b, x);
    return tn_op_add(b->g, tn_op_add(b->g, x, a), feed_forward(b, layer, x, h));
}

// A block whose norms follow the residual additions.
static tn_tensor *encoder_block(tn_builder *b, int32_t layer, tn_tensor *x, bool select)
{
    int64_t width = b->c->n_embd;
    tn_tensor *a = tn_mixer_attention(b, layer, x, select);
    if (select) x = tn_builder_out_rows(b, x);
    x = tn_builder_norm(b, layer, "attn_output_norm", tn_op_add(b->g, x, a), width);
    return tn_builder_norm(b, layer, "layer_output_norm", tn_op_add(b->g, x, feed_forward(b, layer, x, x)),
                           width);
}

// The results of a model that does not predict tokens: the rows of the last layer, or the scores of a head.
static void result(tn_builder *b, tn_tensor *x)
{
    const tn_config *c = b->c;
    if (!c->arch->encoder) x = tn_builder_norm(b, -1, "output_norm", x, c->n_embd);
    int64_t width = c->n_embd;
    if (b->setup->result == TN_RESULT_SCORES) {
        if (tn_builder_has(b, -1, "cls.weight")) {
            tn_tensor *w = tn_builder_weight(b, -1, "cls.weight", 0, 2, 0, width, 0);
            if (w) width = tn_tensor_dim(w, 0);
            x = tn_op_unary(b->g, tn_builder_linear(b, -1, "cls", x, width, c->n_embd),
                            &(tn_unary_params){.kind = TN_UNARY_TANH});
        }
        if (tn_builder_has(b, -1, "cls.output.weight"))
            x = tn_builder_linear(b, -1, "cls.output", x, tn_result_width(b->model, TN_RESULT_SCORES), width);
    }
    if (b->key->n_outputs > 0) tn_graph_output(b->g, tn_result_name(b->setup->result), x);
}

static void head(tn_builder *b, tn_tensor *x)
{
    const tn_config *c = b->c;
    x = tn_builder_norm(b, -1, "output_norm", x, c->n_embd);
    int32_t optional = c->arch->untied ? 0 : TN_WEIGHT_OPTIONAL;
    tn_tensor *w = tn_builder_weight(b, -1, "output.weight", optional, 2, c->n_vocab, c->n_embd, 0);
    if (!w && optional) w = tn_builder_weight(b, -1, "token_embd.weight", 0, 2, c->n_vocab, c->n_embd, 0);
    tn_tensor *logits = tn_op_matmul(b->g, x, w), *scale = tn_builder_scale(b, -1, "output", w, 1);
    if (scale) logits = tn_op_mul(b->g, logits, scale);
    logits =
        tn_builder_adapt(b, tn_builder_index(b, -1, "output.weight"), &(tn_product_input){.x = x}, logits);
    tn_tensor *bias = tn_builder_weight(b, -1, "output.bias", TN_WEIGHT_OPTIONAL, 1, c->n_vocab, 0, 0);
    if (bias) logits = tn_op_add(b->g, logits, bias);
    if (c->logit_scale != 0.0f) logits = tn_op_scale(b->g, logits, c->logit_scale);
    if (c->logit_softcap > 0.0f)
        logits = tn_op_unary(b->g, logits, &(tn_unary_params){TN_UNARY_SOFTCAP, c->logit_softcap, 0.0f});
    if (b->key->n_outputs < 1) return;
    tn_graph_output(b->g, "logits", logits);
    if (!b->setup->best) return;
    tn_tensor *logprob, *best = tn_op_argmax_logprob(b->g, logits, &logprob);
    tn_graph_output(b->g, "best", best);
    tn_graph_output(b->g, "best_logprob", logprob);
}

static bool is_parallel(const tn_builder *b, int32_t layer)
{
    if (b->c->arch->parallel_key) return b->c->parallel;
    return b->c->arch->parallel && !tn_builder_has(b, layer, "ffn_norm.weight");
}

// The second embeddings of all layers, [T, L * P]: a table, and a projection of the first embedding x.
static tn_tensor *layer_inputs(tn_builder *b, tn_tensor *x)
{
    const tn_config *c = b->c;
    int64_t p = c->n_per_layer, width = p * c->n_layers, n_tokens = b->key->n_tokens;
    tn_tensor *table = tn_builder_weight(b, -1, "per_layer_token_embd.weight", 0, 2, c->n_vocab, width, 0);
    tn_tensor *t = tn_op_get_rows(b->g, table, b->tokens, (float)sqrt((double)p));
    tn_tensor *u = tn_builder_linear(b, -1, "per_layer_model_proj", x, width, c->n_embd);
    u = tn_op_reshape(b->g, tn_op_scale(b->g, u, (float)(1.0 / sqrt((double)c->n_embd))), 3,
                      (int64_t[]){n_tokens, c->n_layers, p});
    u = tn_op_reshape(b->g, tn_builder_norm(b, -1, "per_layer_proj_norm", u, p), 2,
                      (int64_t[]){n_tokens, width});
    return tn_op_scale(b->g, tn_op_add(b->g, u, t), 0.70710678f); // 1/sqrt(2)
}

// The end of a block: the second embedding of the layer is added through a gate, then a factor is applied.
static tn_tensor *add_layer_input(tn_builder *b, int32_t layer, tn_tensor *x, tn_tensor *inputs, bool select)
{
    const tn_config *c = b->c;
    int64_t p = c->n_per_layer, n_embd = c->n_embd;
    if (inputs) {
        tn_tensor *in = tn_op_slice(b->g, inputs, 1, layer * p, p);
        if (select) in = tn_builder_out_rows(b, in);
        tn_tensor *gate = tn_builder_linear(b, layer, "inp_gate", x, p, n_embd);
        in = tn_op_glu(b->g, gate, in, &(tn_glu_params){.act = c->arch->act});
        in = tn_builder_linear(b, layer, "proj", in, n_embd, p);
        x = tn_op_add(b->g, x, tn_builder_norm(b, layer, "post_norm", in, n_embd));
    }
    tn_tensor *scale =
        tn_builder_weight(b, layer, "layer_output_scale.weight", TN_WEIGHT_OPTIONAL, 1, 1, 0, 0);
    return scale ? tn_op_mul(b->g, x, scale) : x;
}

static tn_status record(tn_builder *b)
{
    const tn_config *c = b->c;
    make_inputs(b);
    find_rope_factors(b);
    tn_builder_enter(b, 0);
    tn_tensor *x = embed(b), *inputs = b->c->n_per_layer > 0 ? layer_inputs(b, x) : NULL;
    for (int32_t i = 0; i < c->n_layers && b->status == TN_OK && tn_graph_status(b->g) == TN_OK; i++) {
        // Rows without a requested result end with the cache writes of the last layer.
        bool select = i + 1 == c->n_layers && b->key->n_outputs > 0;
        tn_builder_enter(b, i);
        if (c->arch->encoder)
            x = encoder_block(b, i, x, select);
        else
            x = is_parallel(b, i) ? parallel_block(b, i, x, select) : sequential_block(b, i, x, select);
        x = add_layer_input(b, i, x, inputs, select);
    }
    tn_builder_enter(b, c->n_layers);
    if (b->setup->result == TN_RESULT_LOGITS)
        head(b, x);
    else
        result(b, x);
    tn_status status = tn_graph_status(b->g);
    // A shape rule that fails here was broken by the file, so the failure is one of the model.
    if (status == TN_ERR_SHAPE || status == TN_ERR_TYPE || status == TN_ERR_ARG) status = TN_ERR_MODEL;
    if (status != TN_OK) return tn_fail(b->model->ctx, status, "%s", b->g->error);
    return TN_OK;
}

tn_status tn_decoder_record(const tn_model *model, const tn_decoder_setup *setup, const tn_plan_key *key,
                            tn_graph **out)
{
    tn_context *ctx = model->ctx;
    tn_builder b = {.model = model, .c = &model->config, .setup = setup, .key = key, .status = TN_OK};
    tn_status status = tn_graph_create(ctx, &b.g);
    if (status != TN_OK) return status;
    b.recorded = tn_calloc(ctx, (size_t)model->n_weights + 1, sizeof(tn_tensor *));
    b.caches = tn_calloc(ctx, 2 * (size_t)model->config.n_layers, sizeof(tn_tensor *));
    status = b.recorded && b.caches ? record(&b) : TN_ERR_MEMORY;
    tn_free(ctx, b.caches);
    tn_free(ctx, b.recorded);
    if (status != TN_OK)
        tn_graph_destroy(&b.g);
    else
        *out = b.g;
    return status;
}

tn_status tn_decoder_check(const tn_model *model, tn_adapter *adapter, bool *used)
{
    tn_decoder_setup setup = {.n_blocks = 1,
                              .block_size = 16,
                              .max_blocks = 1,
                              .n_ctx = 16,
                              .n_state_slots = 2,
                              .cache_type_k = TN_TYPE_F16,
                              .cache_type_v = TN_TYPE_F16,
                              .adapters = &adapter,
                              .n_adapters = adapter != NULL,
                              .pairs_used = used};
    if (model->config.whole_texts) setup.result = TN_RESULT_HIDDEN;
    if (model->config.pooling == TN_POOLING_RANK) setup.result = TN_RESULT_SCORES;
    tn_plan_key key = {.n_tokens = 1, .n_seq = 1, .n_outputs = 1, .adapters = adapter != NULL};
    tn_graph *g;
    tn_status status = tn_decoder_record(model, &setup, &key, &g);
    if (status != TN_OK) return status;
    tn_graph_destroy(&g);
    return TN_OK;
}
