// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon logits: raw logits of given tokens, one row of little-endian f32 per token; of encoders hidden
// states, or with --pooled the vector of the text.
#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/output.h"

#include <stdlib.h>
#include <string.h>

enum { CTX_DEFAULT = 4096 };

typedef struct logits_state {
    tool t;
    const char *path;
    tn_model *model;
    tn_model_info info;
    tn_session *session;
    tn_embedder *embedder; // with --pooled
    size_t width;          // values per row
    int32_t *ids;
    size_t n_ids;
    out_file out;
} logits_state;

static bool write_row(logits_state *s, const float *logits)
{
    return out_file_floats(&s->out, logits, s->width);
}

static int eval_all(logits_state *s)
{
    bool last_only = opt_flag(s->t.opt, OPT_LAST);
    size_t batch = (size_t)tn_session_n_batch(s->session);
    for (size_t i = 0; i < s->n_ids; i += batch) {
        size_t n = s->n_ids - i < batch ? s->n_ids - i : batch;
        bool last = i + n == s->n_ids;
        int32_t outputs = !last_only ? TN_OUTPUT_ALL : last ? TN_OUTPUT_LAST : TN_OUTPUT_NONE;
        tn_feed feed = {.struct_size = sizeof feed,
                        .seq = 0,
                        .n_tokens = (int32_t)n,
                        .tokens = s->ids + i,
                        .outputs = outputs};
        tn_status status = tn_session_eval(s->session, &feed, 1);
        if (status != TN_OK) return tool_fail(&s->t, status, "%s: token %zu of %zu", s->path, i, s->n_ids);
        for (int32_t k = 0; k < tn_session_n_outputs(s->session); k++)
            if (!write_row(s, tn_session_logits(s->session, k))) return 0; // commit reports it
    }
    return 0;
}

static int write_pooled(logits_state *s)
{
    size_t rows = tn_embedder_pooling(s->embedder) == TN_POOLING_NONE ? s->n_ids : 1;
    float *out = malloc(rows * s->width * sizeof *out + 1);
    if (!out) return fail(EXIT_MEMORY, "out of memory for %zu rows", rows);
    tn_text_ids text = {s->ids, (int32_t)s->n_ids};
    tn_status status = tn_embedder_run(s->embedder, &text, 1, out);
    for (size_t i = 0; i < rows && status == TN_OK; i++)
        if (!write_row(s, out + i * s->width)) break; // commit reports it
    free(out);
    return status == TN_OK ? 0 : tool_fail(&s->t, status, "%s", s->path);
}

// The value of --pooling.
static int32_t pooling_of(const options *o)
{
    return (int32_t)opt_int(o, OPT_POOLING) + TN_POOLING_DEFAULT; // words in the order of TN_POOLING_*
}

static int open_embedder(logits_state *s)
{
    tn_session_config cfg;
    tool_session_config(&s->t, &cfg);
    tn_embedder_config e;
    tn_embedder_config_default(&e);
    e.pooling = pooling_of(s->t.opt);
    e.normalize = 0;
    e.max_tokens = (int32_t)s->n_ids;
    e.n_batch = cfg.n_batch;
    e.n_seq = 1;
    e.fusion = cfg.fusion;
    e.cache_type_k = cfg.cache_type_k;
    e.cache_type_v = cfg.cache_type_v;
    e.precision = cfg.precision;
    tn_status status = tn_embedder_create(s->model, &e, &s->embedder);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->path);
    s->width = (size_t)tn_embedder_width(s->embedder);
    interrupt_watch_embedder(s->embedder);
    return 0;
}

static int open_session(logits_state *s)
{
    tn_session_config cfg;
    tool_session_config(&s->t, &cfg);
    int64_t n = (int64_t)s->n_ids, trained = s->info.n_ctx_train;
    if (cfg.n_ctx > 0 && n > cfg.n_ctx)
        return fail(EXIT_CONTEXT, "--tokens has %zu tokens, the context holds %d; give a larger -c", s->n_ids,
                    cfg.n_ctx);
    if (n > opt_rows[OPT_CTX].max_int)
        return fail(EXIT_CONTEXT, "--tokens has %zu tokens, a context holds %lld at most", s->n_ids,
                    (long long)opt_rows[OPT_CTX].max_int);
    if (cfg.n_ctx == 0) cfg.n_ctx = trained > 0 && trained < CTX_DEFAULT ? (int32_t)trained : CTX_DEFAULT;
    if (n > cfg.n_ctx) cfg.n_ctx = (int32_t)n;
    if (s->info.is_encoder) cfg.n_batch = (int32_t)n; // every token sees all of them
    tn_status status = tn_session_create(s->model, &cfg, &s->session);
    if (status == TN_ERR_ARG && n > trained) status = TN_ERR_CONTEXT_FULL; // learned positions end there
    if (status != TN_OK) return tool_fail(&s->t, status, "%s: a context of %d tokens", s->path, cfg.n_ctx);
    s->width = (size_t)tn_session_width(s->session);
    interrupt_watch(s->session);
    return 0;
}

static int open_all(logits_state *s)
{
    const options *o = s->t.opt;
    if (!opt_is_set(o, OPT_TOKENS)) return fail(EXIT_USAGE, "logits: no tokens; give --tokens 1,2,3");
    if (!opt_is_set(o, OPT_OUT)) return fail(EXIT_USAGE, "logits: no place for the result; give --out FILE");
    int code = tool_open(&s->t, o);
    if (!code) code = tool_load(&s->t, s->path, LOAD_WEIGHTS, &s->model);
    if (!code) code = tool_load_adapters(&s->t, s->model);
    if (code) return code;
    s->info.struct_size = sizeof s->info;
    tn_model_info_get(s->model, &s->info);
    code = parse_ids(opt_text(o, OPT_TOKENS), strlen(opt_text(o, OPT_TOKENS)), s->info.n_vocab, &s->ids,
                     &s->n_ids);
    if (!code && s->n_ids == 0) code = fail(EXIT_USAGE, "--tokens: the list is empty; give at least one id");
    if (!code) code = opt_flag(o, OPT_POOLED) ? open_embedder(s) : open_session(s);
    if (code) return code;
    tool_trace_loaded(&s->t);
    return out_file_open(&s->out, opt_text(o, OPT_OUT));
}

int cmd_logits(const options *o)
{
    logits_state s = {.t.opt = o};
    const char *const *args;
    int n_args;
    int code = tool_model_path(o, &s.path, &args, &n_args);
    if (!code && n_args > 0)
        code = fail(EXIT_USAGE, "unexpected argument '%s'; ids are given as --tokens 1,2,3", args[0]);
    if (!code) code = open_all(&s);
    if (!code) code = s.embedder ? write_pooled(&s) : eval_all(&s);
    if (!code) code = out_file_commit(&s.out);
    out_file_abort(&s.out);
    if (!code) code = tool_profile(&s.t);
    interrupt_watch(NULL);
    interrupt_watch_embedder(NULL);
    free(s.ids);
    tn_session_destroy(&s.session);
    tn_embedder_destroy(&s.embedder);
    tn_model_unref(&s.model);
    tool_close(&s.t);
    return code;
}
