// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon bench --texts: how many texts of a length an embedder turns into vectors, or a classification head
// into scores, per second. An embedder is given N texts at a time, as a caller with batches of N would do.
#include "tools/commands/bench.h"
#include "tools/interrupt.h"

#include <stdlib.h>

static tn_status run_texts(bench_state *s, const bench_result *r, uint64_t *ns)
{
    size_t n = (size_t)r->n_seq;
    bool per_token = tn_embedder_pooling(s->embedder) == TN_POOLING_NONE;
    size_t rows = per_token ? n * (size_t)r->n : n;
    tn_text_ids *texts = malloc(n * sizeof *texts);
    float *out = malloc(rows * (size_t)tn_embedder_width(s->embedder) * sizeof *out);
    tn_status status = texts && out ? TN_OK : TN_ERR_MEMORY;
    // Texts begin at different ids, so that no two of them are alike.
    for (size_t i = 0; i < n && texts; i++)
        texts[i] = (tn_text_ids){s->tokens + i % (size_t)(s->n_tokens - r->n + 1), (int32_t)r->n};
    uint64_t start = now_ns();
    if (status == TN_OK) status = tn_embedder_run(s->embedder, texts, r->n_seq, out);
    *ns = now_ns() - start;
    free(texts);
    free(out);
    return status;
}

static int open_embedder(bench_state *s, int64_t longest)
{
    tn_embedder_config cfg;
    tool_embedder_config(&s->t, &cfg);
    cfg.pooling = s->info.n_classes > 0 ? TN_POOLING_RANK : TN_POOLING_DEFAULT;
    tn_status status = tn_embedder_create(s->model, &cfg, &s->embedder);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->name);
    interrupt_watch_embedder(s->embedder);
    if (longest > tn_embedder_max_tokens(s->embedder))
        return fail(EXIT_CONTEXT, "%s: -p %lld: the model takes texts of at most %d tokens", s->name,
                    (long long)longest, tn_embedder_max_tokens(s->embedder));
    // The output layer does not run. What is left multiplies every token.
    s->active_params -= (double)s->info.n_embd * s->info.n_vocab;
    return 0;
}

int bench_texts(bench_state *s, const int64_t *pp, int n_pp)
{
    int64_t counts[BENCH_NUMS], longest = 0;
    int n = opt_nums(s->t.opt, OPT_TEXTS, counts, BENCH_NUMS);
    for (int i = 0; i < n_pp; i++) longest = pp[i] > longest ? pp[i] : longest;
    if (longest == 0)
        return fail(EXIT_USAGE, "nothing to measure: --texts needs their length in tokens, as in -p 512");
    int code = open_embedder(s, longest);
    if (!code) code = bench_make_tokens(s, longest + BENCH_TEXTS);
    for (int i = 0; i < n_pp && !code; i++)
        for (int k = 0; k < n && !code; k++) {
            bench_result r = {.kind = BENCH_EMBED, .n = pp[i], .n_seq = (int32_t)counts[k]};
            if (r.n > 0) code = bench_repeat(s, &r, run_texts);
        }
    interrupt_watch_embedder(NULL);
    return code;
}
