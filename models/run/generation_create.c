// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Making a generation: its configuration is read, and all the memory that its steps need is allocated.
#include "models/model.h"
#include "models/run/generation.h"
#include "models/run/sample.h"

#include <tenon/session.h>

enum { EXCLUDED_MAX = 4096, STOPS_MAX = 1024, SEQ_MAX = 255 };

// clang-format off
static const tn_param_range generation_ranges[] = {
    {"seq",        offsetof(tn_generation_config, seq),        true,  0, SEQ_MAX},
    {"max_tokens", offsetof(tn_generation_config, max_tokens), true, -1, INT32_MAX},
    {"n_bans",     offsetof(tn_generation_config, n_bans),     true,  0, TN_BANS_MAX},
    {"n_stops",    offsetof(tn_generation_config, n_stops),    true,  0, STOPS_MAX},
    {"spec_ngram", offsetof(tn_generation_config, spec_ngram), true,  0, 16},
    {"draft_max",  offsetof(tn_generation_config, draft_max),  true,  0, 64},
    {"draft_min",  offsetof(tn_generation_config, draft_min),  true,  0, 64},
    {"context_full", offsetof(tn_generation_config, context_full), true,  0, TN_CONTEXT_SHIFT},
    {"n_keep",     offsetof(tn_generation_config, n_keep),     true, -1, INT32_MAX},
};
// clang-format on

void tn_generation_config_init(tn_generation_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_generation_config, cfg, struct_size, {.max_tokens = -1});
}

// --- creation ----------------------------------------------------------------------------------------

// The longest text that can be held back: a nearly complete character, a nearly complete stop string and one
// token.
static tn_status reserve_text(tn_generation *g)
{
    static const char zeros[64];
    size_t token = 0, stop = 0;
    int32_t n = g->tokenizer ? tn_tokenizer_n_tokens(g->tokenizer) : 0;
    for (int32_t i = 0; i < n; i++) token = TN_MAX(token, tn_tokenizer_text(g->tokenizer, i).size);
    stop = tn_stops_longest(&g->stops);
    while (g->text.status == TN_OK && g->text.size < token + stop + 4)
        tn_strbuf_append(&g->text, zeros, sizeof zeros);
    tn_strbuf_clear(&g->text);
    return g->text.status;
}

static tn_status make_bans(tn_generation *g)
{
    static const char zeros[64];
    size_t most = 1;
    if (g->cfg.n_bans == 0) return TN_OK;
    if (!g->tokenizer || !g->cfg.bans)
        return tn_fail(g->ctx, TN_ERR_ARG,
                       "generation: n_bans is %d, but bans is NULL or there is no tokenizer",
                       (int)g->cfg.n_bans);
    int32_t n = tn_tokenizer_n_tokens(g->tokenizer);
    for (int32_t i = 0; i < n; i++) most = TN_MAX(most, tn_tokenizer_text(g->tokenizer, i).size);
    while (g->ban_piece.status == TN_OK && g->ban_piece.capacity <= most)
        tn_strbuf_append(&g->ban_piece, zeros, sizeof zeros);
    tn_status status = g->ban_piece.status;
    if (status == TN_OK) status = tn_sampler_reserve_excluded(g->sampler, EXCLUDED_MAX);
    if (status == TN_OK)
        status = tn_bans_create(g->ctx, g->cfg.bans, g->cfg.n_bans, most, g->sampling.n_logprobs, &g->bans);
    g->cfg.bans = NULL;
    return status;
}

static tn_status read_config(tn_generation *g, const tn_generation_config *cfg)
{
    if (tn_session_result(g->session) != TN_RESULT_LOGITS)
        return tn_fail(g->ctx, TN_ERR_UNSUPPORTED,
                       "generation: the model or session gives embeddings, no logits");
    tn_generation_config_default(&g->cfg);
    tn_sampling_default(&g->sampling);
    tn_status status = TN_STRUCT_READ(g->ctx, tn_generation_config, cfg, &g->cfg);
    if (status == TN_OK) status = TN_STRUCT_READ(g->ctx, tn_sampling, g->cfg.sampling, &g->sampling);
    g->cfg.sampling = NULL; // the caller's
    if (status == TN_OK)
        status =
            tn_params_check(g->ctx, "generation", &g->cfg, generation_ranges, TN_COUNT(generation_ranges));
    if (status == TN_OK && g->cfg.n_stops > 0 && !g->cfg.stops)
        status =
            tn_fail(g->ctx, TN_ERR_ARG, "generation: n_stops is %d, but stops is NULL", (int)g->cfg.n_stops);
    return status;
}

static tn_status prepare(tn_generation *g)
{
    tn_status status = tn_sampler_create(g->ctx, &g->sampling, g->n_vocab, g->n_ctx + 1, &g->sampler);
    if (status == TN_OK) status = tn_sampler_set_tokenizer(g->sampler, g->tokenizer);
    if (status == TN_OK)
        status = tn_constraint_init(&g->constraint, g->ctx, g->tokenizer, &g->cfg, g->n_ctx + 1);
    if (status == TN_OK) status = make_bans(g);
    if (status != TN_OK) return status;
    status = tn_speculation_create(g->session, &g->cfg, &g->speculation);
    if (status != TN_OK) return status;
    g->max_rows = g->speculation ? tn_speculation_max(g->speculation) + 1 : 1;
    size_t rows = (size_t)g->max_rows;
    g->logits = tn_calloc(g->ctx, rows * (size_t)g->n_vocab, sizeof *g->logits);
    g->best = tn_arena_array(&g->arena, rows, sizeof *g->best);
    g->best_logprob = tn_arena_array(&g->arena, rows, sizeof *g->best_logprob);
    g->batch = tn_arena_array(&g->arena, rows, sizeof *g->batch);
    tn_sampler_set_matcher(g->sampler, g->constraint.matcher);
    g->fits_device = !g->bans && !g->speculation && tn_sampler_fits_device(g->sampler);
    if (g->fits_device && !tn_sampler_is_greedy(g->sampler)) g->samples = tn_session_samples(g->session);
    if (!g->logits || !g->best || !g->best_logprob || !g->batch) return TN_ERR_MEMORY;
    if (g->cfg.context_full == TN_CONTEXT_SHIFT) {
        if (g->constraint.matcher || g->n_ctx < 2)
            return tn_fail(g->ctx, TN_ERR_UNSUPPORTED,
                           "generation: a context is not shifted under a grammar, or with one token");
        g->shift =
            (tn_shift){tn_arena_array(&g->arena, (size_t)g->n_ctx, sizeof *g->shift.kept), g->n_ctx, 0};
        if (!g->shift.kept) return TN_ERR_MEMORY;
    }
    status = tn_stops_init(&g->stops, g->ctx, &g->arena, g->cfg.stops, g->cfg.n_stops);
    if (status == TN_OK) status = reserve_text(g);
    g->cfg.stops = NULL;
    g->cfg.grammar = NULL;
    g->cfg.json_schema = NULL;
    g->sampling.samplers = NULL;
    g->sampling.dry_breakers = NULL;
    g->sampling.bias_tokens = NULL;
    g->sampling.bias_values = NULL;
    return status;
}

tn_status tn_generation_create(tn_session *session, const tn_generation_config *cfg, tn_generation **out)
{
    TN_NEED(NULL, session);
    TN_NEED(tn_model_context(tn_session_model(session)), out);
    tn_model *model = tn_session_model(session);
    tn_context *ctx = tn_model_context(model);
    tn_generation *g = tn_calloc(ctx, 1, sizeof *g);
    if (!g) return TN_ERR_MEMORY;
    tn_model_info info = {.struct_size = sizeof info};
    tn_model_info_get(model, &info);
    g->session = session;
    g->ctx = ctx;
    g->tokenizer = tn_model_tokenizer(model);
    g->n_ctx = tn_session_n_ctx_seq(session);
    g->n_vocab = info.n_vocab;
    g->pending = -1;
    tn_arena_init(&g->arena, ctx);
    tn_strbuf_init(&g->text, ctx);
    tn_strbuf_init(&g->ban_piece, ctx);
    tn_status status = read_config(g, cfg);
    if (status == TN_OK) status = prepare(g);
    if (status != TN_OK) goto fail;
    *out = g;
    return TN_OK;
fail:
    tn_generation_destroy(&g);
    return status;
}
