// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Embedders: texts are put together to batches (packing.h) for a session whose rows are hidden states or
// scores, and the rows of each text become one.
#include "models/run/packing.h"
#include "models/run/session.h"

#include <math.h>
#include <string.h>
#include <tenon/embed.h>

enum {
    BATCH_MAX = 65536,
    TEXTS_MAX = 256, // of a batch
    // Of a batch at least, if the caller does not say it, and tokens of the texts that still fill one then.
    // In a causal model each text has blocks of the cache to itself, so many short ones would take much
    // memory.
    TEXTS_AUTO = 32,
    TEXT_SHORT = 32,
    TEXT_SHORT_WHOLE = 8,        // of models without a cache
    FILLER_MAX = BATCH_MAX / 32, // tokens
};

struct tn_embedder {
    tn_context *ctx;
    tn_model *model;
    tn_embedder_config cfg;
    int32_t width;
    int32_t capacity, budget; // tokens of the longest text and of the texts of a batch
    tn_session *session;      // NULL: not made yet
    tn_feed feeds[TEXTS_MAX];
    double *sum; // [width], of a mean
    // Of the window that is evaluated: its texts, where their rows go, and its batches.
    const tn_text_ids *texts;
    float *rows[TN_PACKING_TEXTS];
    tn_packing packing;
    int32_t filler[FILLER_MAX]; // the tokens of fillers: all 0
    _Atomic int32_t cancel;
};

void tn_embedder_config_init(tn_embedder_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_embedder_config, cfg, struct_size,
                   {.pooling = TN_POOLING_DEFAULT,
                    .normalize = 1,
                    .fusion = 1,
                    .cache_type_k = TN_TYPE_F16,
                    .cache_type_v = TN_TYPE_F16});
}

// Models with learned positions accept no text longer than the trained context.
static bool has_positions(const tn_model *m)
{
    return tn_model_find_weight(m, "position_embd.weight") >= 0;
}

static tn_status read_config(tn_model *m, const tn_embedder_config *given, tn_embedder_config *c)
{
    tn_context *ctx = m->ctx;
    tn_embedder_config_default(c);
    tn_status status = TN_STRUCT_READ(ctx, tn_embedder_config, given, c);
    if (status != TN_OK) return status;
    if (m->metadata_only) return tn_fail(ctx, TN_ERR_STATE, "the model was opened without its weights");
    if (c->pooling < TN_POOLING_DEFAULT || c->pooling > TN_POOLING_RANK)
        return tn_fail(ctx, TN_ERR_ARG, "embedder: pooling %d", c->pooling);
    if (c->n_batch < 0 || c->n_batch > BATCH_MAX)
        return tn_fail(ctx, TN_ERR_ARG,
                       "embedder: batch of %d, must be 1 to %d, or 0 for what suits the device", c->n_batch,
                       BATCH_MAX);
    if (c->n_batch == 0) c->n_batch = m->n_batch;
    if (c->n_seq < 0 || c->n_seq > TEXTS_MAX)
        return tn_fail(ctx, TN_ERR_ARG,
                       "embedder: %d texts at a time, must be 1 to %d, or 0 for what fills a batch", c->n_seq,
                       TEXTS_MAX);
    if (c->n_seq == 0) {
        int32_t shortest = m->config.whole_texts ? TEXT_SHORT_WHOLE : TEXT_SHORT;
        c->n_seq = TN_MIN(TN_MAX(c->n_batch / shortest, TEXTS_AUTO), TEXTS_MAX);
    }
    if (c->precision < 0 || c->precision >= TN_PRECISION_COUNT)
        return tn_fail(ctx, TN_ERR_ARG, "embedder: precision %d", c->precision);
    if (c->max_tokens < 0) return tn_fail(ctx, TN_ERR_ARG, "embedder: texts of %d tokens", c->max_tokens);
    const tn_config *mc = &m->config;
    if (c->max_tokens == 0) c->max_tokens = mc->n_ctx_train;
    if (mc->whole_texts) c->max_tokens = TN_MIN(c->max_tokens, BATCH_MAX);
    if (has_positions(m)) c->max_tokens = TN_MIN(c->max_tokens, mc->n_ctx_train);
    if (c->pooling == TN_POOLING_DEFAULT) c->pooling = mc->pooling;
    if (c->pooling == TN_POOLING_NONE && (!given || given->pooling == TN_POOLING_DEFAULT))
        c->pooling = mc->whole_texts ? TN_POOLING_MEAN : TN_POOLING_LAST;
    if (c->pooling == TN_POOLING_RANK && tn_result_width(m, TN_RESULT_SCORES) < 1)
        return tn_fail(ctx, TN_ERR_UNSUPPORTED,
                       "the model has no classification head (cls.weight or cls.output.weight)");
    return TN_OK;
}

tn_status tn_embedder_create(tn_model *model, const tn_embedder_config *cfg, tn_embedder **out)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), out);
    tn_embedder_config c;
    tn_status status = read_config(model, cfg, &c);
    if (status != TN_OK) return status;
    tn_embedder *e = tn_calloc(model->ctx, 1, sizeof *e);
    if (!e) return TN_ERR_MEMORY;
    e->ctx = model->ctx;
    e->model = tn_model_ref(model);
    e->cfg = c;
    atomic_init(&e->cancel, 0);
    e->width = tn_result_width(model, c.pooling == TN_POOLING_RANK ? TN_RESULT_SCORES : TN_RESULT_HIDDEN);
    e->sum = tn_calloc(e->ctx, (size_t)e->width, sizeof *e->sum);
    if (!e->sum) {
        tn_embedder_destroy(&e);
        return TN_ERR_MEMORY;
    }
    *out = e;
    return TN_OK;
}

void tn_embedder_destroy(tn_embedder **embedder)
{
    if (!embedder || !*embedder) return;
    tn_embedder *e = *embedder;
    tn_session_destroy(&e->session);
    tn_free(e->ctx, e->sum);
    tn_model_unref(&e->model);
    tn_free(e->ctx, e);
    *embedder = NULL;
}

int32_t tn_embedder_pooling(const tn_embedder *e)
{
    if (!e) return 0;
    return e->cfg.pooling;
}

int32_t tn_embedder_width(const tn_embedder *e)
{
    if (!e) return 0;
    return e->width;
}

int32_t tn_embedder_max_tokens(const tn_embedder *e)
{
    if (!e) return 0;
    return e->cfg.max_tokens;
}

int32_t tn_embedder_n_batch(const tn_embedder *e)
{
    if (!e) return 0;
    return e->cfg.n_batch;
}

// --- evaluating --------------------------------------------------------------------------------------

// A session for a text of n tokens. A text that does not fit the last session gets a new one of its size.
static tn_status make_session(tn_embedder *e, int32_t n)
{
    if (e->session && n <= e->capacity) return TN_OK;
    tn_session_destroy(&e->session);
    bool whole = e->model->config.whole_texts;
    tn_session_config c;
    tn_session_config_default(&c);
    e->capacity = TN_MAX(n, e->cfg.n_batch);
    e->budget = whole ? e->capacity : e->cfg.n_batch;
    // Batches have fillers beside the texts.
    int32_t step = tn_packing_step(e->budget);
    c.n_ctx = whole ? TN_MIN(e->capacity, e->cfg.max_tokens) : e->capacity + step;
    c.n_batch = TN_MIN(e->budget + step, BATCH_MAX);
    c.n_seq = TN_MIN(TN_MIN(tn_packing_count(e->cfg.n_seq + 1), TEXTS_MAX), c.n_batch);
    c.fusion = e->cfg.fusion;
    c.cache_type_k = e->cfg.cache_type_k;
    c.cache_type_v = e->cfg.cache_type_v;
    c.precision = e->cfg.precision;
    c.result = e->cfg.pooling == TN_POOLING_RANK ? TN_RESULT_SCORES : TN_RESULT_HIDDEN;
    if (!whole) c.n_ctx_seq = TN_MIN(e->capacity, e->cfg.max_tokens);
    tn_status status = tn_session_create(e->model, &c, &e->session);
    if (status == TN_OK) e->session->cancelled = &e->cancel;
    return status;
}

// The rows of a text that pooling reads.
static int32_t wanted_rows(const tn_embedder *e)
{
    static const int32_t by_pooling[] = {
        [TN_POOLING_NONE] = TN_OUTPUT_ALL,  [TN_POOLING_MEAN] = TN_OUTPUT_ALL,
        [TN_POOLING_CLS] = TN_OUTPUT_FIRST, [TN_POOLING_LAST] = TN_OUTPUT_LAST,
        [TN_POOLING_RANK] = TN_OUTPUT_LAST,
    };
    // In a causal model only the last token has seen the whole text; an encoder was trained to use the first
    // token.
    if (e->cfg.pooling == TN_POOLING_RANK && e->model->config.whole_texts) return TN_OUTPUT_FIRST;
    return by_pooling[e->cfg.pooling];
}

static void normalise(const tn_embedder *e, float *row)
{
    double norm = 0.0;
    for (int32_t i = 0; i < e->width; i++) norm += (double)row[i] * row[i];
    double factor = norm > 0.0 ? 1.0 / sqrt(norm) : 0.0;
    for (int32_t i = 0; i < e->width; i++) row[i] = (float)(row[i] * factor);
}

static tn_status copy_row(tn_embedder *e, int32_t i, float *out)
{
    const float *row = tn_session_logits(e->session, i);
    if (!row) return tn_fail(e->ctx, TN_ERR_MEMORY, "embedder: not enough memory for the rows of the result");
    memcpy(out, row, (size_t)e->width * sizeof *out);
    return TN_OK;
}

static tn_status add_row(tn_embedder *e, int32_t i)
{
    const float *row = tn_session_logits(e->session, i);
    if (!row) return tn_fail(e->ctx, TN_ERR_MEMORY, "embedder: not enough memory for the rows of the result");
    for (int32_t k = 0; k < e->width; k++) e->sum[k] += row[k];
    return TN_OK;
}

static void end_mean(tn_embedder *e, int32_t n_tokens, float *out)
{
    for (int32_t k = 0; k < e->width; k++) out[k] = (float)(e->sum[k] / n_tokens);
    memset(e->sum, 0, (size_t)e->width * sizeof *e->sum);
}

// The number of output rows of a text.
static int64_t rows_of(const tn_embedder *e, const tn_text_ids *text)
{
    return e->cfg.pooling == TN_POOLING_NONE ? text->n : 1;
}

// A text of a causal model that is longer than a batch, in parts.
static tn_status run_long(tn_embedder *e, const tn_text_ids *text, float *out)
{
    int32_t wanted = wanted_rows(e), batch = tn_session_n_batch(e->session);
    float *next = out;
    tn_status status = tn_session_truncate(e->session, 0, 0);
    for (int32_t at = 0; at < text->n && status == TN_OK; at += batch) {
        int32_t n = TN_MIN(batch, text->n - at);
        bool edge = wanted == TN_OUTPUT_ALL || (wanted == TN_OUTPUT_FIRST ? at == 0 : at + n == text->n);
        e->feeds[0] = (tn_feed){.struct_size = sizeof(tn_feed),
                                .n_tokens = n,
                                .tokens = text->ids + at,
                                .outputs = edge ? wanted : TN_OUTPUT_NONE};
        status = tn_session_eval(e->session, e->feeds, 1);
        for (int32_t i = 0; i < tn_session_n_outputs(e->session) && status == TN_OK; i++) {
            if (e->cfg.pooling == TN_POOLING_MEAN) {
                status = add_row(e, i);
            } else {
                status = copy_row(e, i, next);
                next += e->width;
            }
        }
    }
    if (status == TN_OK && e->cfg.pooling == TN_POOLING_MEAN) end_mean(e, text->n, out);
    return status;
}

static tn_status run_together(tn_embedder *e, const tn_packing_batch *b)
{
    tn_status status = TN_OK;
    int32_t n = b->n_texts + b->n_fillers;
    for (int32_t i = 0, text = b->first; i < n && status == TN_OK; i++) {
        status = tn_session_truncate(e->session, i, 0);
        e->feeds[i] = (tn_feed){.struct_size = sizeof(tn_feed),
                                .seq = i,
                                .n_tokens = i == b->n_texts ? b->filler : 1,
                                .tokens = e->filler,
                                .outputs = wanted_rows(e)};
        if (i >= b->n_texts) continue;
        e->feeds[i].n_tokens = e->texts[text].n;
        e->feeds[i].tokens = e->texts[text].ids;
        text = e->packing.next[text];
    }
    if (status == TN_OK) status = tn_session_eval(e->session, e->feeds, n);
    for (int32_t row = 0, i = b->first; i >= 0 && status == TN_OK; i = e->packing.next[i]) {
        const tn_text_ids *text = &e->texts[i];
        if (e->cfg.pooling == TN_POOLING_MEAN) {
            for (int32_t k = 0; k < text->n && status == TN_OK; k++) status = add_row(e, row++);
            end_mean(e, text->n, e->rows[i]);
            continue;
        }
        for (int64_t k = 0; k < rows_of(e, text) && status == TN_OK; k++)
            status = copy_row(e, row++, e->rows[i] + k * e->width);
    }
    return status;
}

static tn_status check_texts(const tn_embedder *e, const tn_text_ids *texts, int32_t n)
{
    if (n < 0 || (n > 0 && !texts)) return tn_fail(e->ctx, TN_ERR_ARG, "embedder: %d texts at NULL", n);
    for (int32_t i = 0; i < n; i++) {
        if (texts[i].n < 1 || !texts[i].ids)
            return tn_fail(e->ctx, TN_ERR_ARG, "embedder: text %d has no tokens", i);
        if (texts[i].n > e->cfg.max_tokens)
            return tn_fail(e->ctx, TN_ERR_CONTEXT_FULL, "text %d has %d tokens, at most %d fit", i,
                           texts[i].n, e->cfg.max_tokens);
    }
    return TN_OK;
}

// The first n texts, at most TN_PACKING_TEXTS; *out moves on behind their rows.
static tn_status run_window(tn_embedder *e, const tn_text_ids *texts, int32_t n, float **out)
{
    float *first = *out;
    int32_t longest = 0;
    e->texts = texts;
    for (int32_t i = 0; i < n; i++) {
        longest = TN_MAX(longest, texts[i].n);
        e->rows[i] = *out;
        *out += rows_of(e, &texts[i]) * e->width;
    }
    tn_status status = make_session(e, longest);
    if (status != TN_OK) return status;
    int32_t batch = tn_session_n_batch(e->session), n_seq = e->session->cfg.n_seq;
    tn_packing_limits limits = {
        .tokens = TN_MIN(e->budget, batch),
        .texts = TN_MIN(e->cfg.n_seq, n_seq),
        .all_tokens = batch,
        .all_texts = n_seq,
        .filler = TN_MIN(e->cfg.max_tokens, FILLER_MAX),
    };
    tn_packing_make(&e->packing, texts, n, &limits);
    for (int32_t i = 0; i < e->packing.n_batches && status == TN_OK; i++) {
        const tn_packing_batch *b = &e->packing.batches[i];
        bool is_long = b->n_tokens > limits.tokens;
        status = is_long ? run_long(e, &texts[b->first], e->rows[b->first]) : run_together(e, b);
    }
    bool vectors = e->cfg.normalize && e->cfg.pooling != TN_POOLING_RANK && status == TN_OK;
    for (float *row = first; vectors && row < *out; row += e->width) normalise(e, row);
    return status;
}

tn_status tn_embedder_run(tn_embedder *e, const tn_text_ids *texts, int32_t n, float *out)
{
    TN_NEED(NULL, e);
    if (n > 0) TN_NEED(e->ctx, texts);
    TN_NEED(e->ctx, out);
    uint64_t begin = tn_span_begin(e->ctx);
    tn_status status = check_texts(e, texts, n);
    for (int32_t i = 0; i < n && status == TN_OK; i += TN_PACKING_TEXTS)
        status = run_window(e, texts + i, TN_MIN(n - i, TN_PACKING_TEXTS), &out);
    if (status != TN_OK) memset(e->sum, 0, (size_t)e->width * sizeof *e->sum);
    tn_span_end(e->ctx, TN_SPAN_RUN, "embed texts", begin, n);
    return status;
}

void tn_embedder_cancel(tn_embedder *e, int32_t on)
{
    if (!e) return;
    // As for sessions: lock-free, and relaxed because it carries no data.
    atomic_store_explicit(&e->cancel, on, memory_order_relaxed);
}
