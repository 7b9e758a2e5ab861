// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon perplexity: exp of the mean negative log-probability of a text, in fixed windows of which the
// second half is scored. The comparison of two runs is in kl.c.
#include "tools/commands/perplexity.h"

#include "tools/interrupt.h"
#include "tools/json/json.h"
#include "tools/output.h"
#include "tools/terminal/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_DEFAULT = 512, WINDOW_MIN = 4 };

// The token that the model puts in front of a text, -1 if none: the only token of an empty text.
static int find_bos(ppl_state *s, int32_t *bos)
{
    int32_t *ids;
    size_t n;
    *bos = -1;
    tn_status status = tn_tokenize(s->model, "", 0, TN_TEXT_ADD_SPECIAL, &ids, &n);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->path);
    if (n > 0) *bos = ids[0];
    tn_tokens_free(s->model, ids);
    return 0;
}

static int read_tokens(ppl_state *s)
{
    char *text;
    size_t n_text;
    const char *path = opt_text(s->t.opt, OPT_FILE);
    int code = read_input(path, &text, &n_text);
    if (code) return code;
    int32_t *ids;
    tn_status status = tn_tokenize(s->model, text, n_text, TN_TEXT_ADD_SPECIAL, &ids, &s->n_ids);
    free(text);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", path);
    s->ids = malloc((s->n_ids + 1) * sizeof *s->ids);
    if (s->ids && s->n_ids) memcpy(s->ids, ids, s->n_ids * sizeof *ids);
    tn_tokens_free(s->model, ids);
    return s->ids ? 0 : fail(EXIT_MEMORY, "out of memory for %zu tokens", s->n_ids);
}

static int choose_windows(ppl_state *s)
{
    const options *o = s->t.opt;
    int64_t window = opt_int(o, OPT_WINDOW), trained = s->info.n_ctx_train, chunks = opt_int(o, OPT_CHUNKS);
    if (s->window == 0)
        s->window = (int32_t)(window                                    ? window
                              : trained > 0 && trained < WINDOW_DEFAULT ? trained
                                                                        : WINDOW_DEFAULT);
    if (s->window < WINDOW_MIN)
        return fail(EXIT_USAGE, "-c: a window of %d tokens is too short; it takes %d or more", s->window,
                    WINDOW_MIN);
    int64_t n = (int64_t)s->n_ids / s->window;
    if (n == 0)
        return fail(EXIT_USAGE,
                    "the text has %zu tokens, one window needs %d; give a longer text or a smaller -c",
                    s->n_ids, s->window);
    s->n_chunks = (int32_t)(chunks >= 0 && chunks < n ? chunks : n);
    if (s->n_chunks == 0)
        return fail(EXIT_USAGE, "--chunks 0: nothing to score; give 1 or more, or -1 for all");
    return 0;
}

static int open_session(ppl_state *s)
{
    tn_session_config cfg;
    tool_session_config(&s->t, &cfg);
    cfg.n_ctx = s->window;
    if (cfg.n_batch > s->window) cfg.n_batch = s->window;
    tn_status status = tn_session_create(s->model, &cfg, &s->session);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s: windows of %d tokens", s->path, s->window);
    tool_trace_loaded(&s->t);
    interrupt_watch(s->session);
    return 0;
}

// --- scoring ---------------------------------------------------------------------------------------------

double log_sum_exp(const float *logits, int32_t n)
{
    double max = -INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++) max = logits[i] > max ? logits[i] : max;
    if (!isfinite(max)) return max;
    for (int32_t i = 0; i < n; i++) sum += exp(logits[i] - max);
    return max + log(sum);
}

static void score_row(ppl_state *s, const float *logits, int32_t next)
{
    double total = log_sum_exp(logits, s->info.n_vocab);
    double nll = total - logits[next];
    s->sum += nll;
    s->sum_squares += nll * nll;
    s->n_scored++;
    s->failed = s->failed || !kl_row(s, logits, total, next);
}

// Feeds tokens [from, from + n) of the window; scores those rows that predict the second half.
static int score_batch(ppl_state *s, const int32_t *window, int32_t from, int32_t n)
{
    int32_t first = s->window / 2;
    int32_t outputs = from + n > first ? TN_OUTPUT_ALL : TN_OUTPUT_NONE;
    tn_feed feed = {
        .struct_size = sizeof feed, .seq = 0, .n_tokens = n, .tokens = window + from, .outputs = outputs};
    tn_status status = tn_session_eval(s->session, &feed, 1);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->path);
    if (outputs == TN_OUTPUT_NONE) return 0;
    for (int32_t i = 0; i < n; i++)
        if (from + i >= first && from + i + 1 < s->window)
            score_row(s, tn_session_logits(s->session, i), window[from + i + 1]);
    return s->failed ? fail(EXIT_FAILED, "cannot read or write the log-probabilities of the base run") : 0;
}

static int score_window(ppl_state *s, int32_t chunk)
{
    int32_t *window = s->ids + (size_t)chunk * (size_t)s->window;
    int32_t batch = tn_session_n_batch(s->session), replaced = window[0];
    tn_status status = tn_session_truncate(s->session, 0, 0);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->path);
    if (s->bos >= 0) window[0] = s->bos;
    int code = 0;
    // Rows of logits exist for whole batches, so a batch border at the half avoids the logits of the first
    // half.
    for (int32_t i = 0, n; i < s->window && !code; i += n) {
        n = s->window - i < batch ? s->window - i : batch;
        int32_t half = s->window / 2;
        if (i < half && i + n > half) n = half - i;
        code = score_batch(s, window, i, n);
    }
    window[0] = replaced;
    return code;
}

double ppl_value(const ppl_state *s, double *error)
{
    double n = (double)s->n_scored, mean = s->sum / n;
    double variance = s->sum_squares / n - mean * mean;
    double ppl = exp(mean);
    // The error of the mean, carried through exp to first order.
    *error = n > 1 && variance > 0 ? ppl * sqrt(variance / (n - 1)) : 0;
    return ppl;
}

static int score_all(ppl_state *s)
{
    progress bar;
    progress_begin(&bar, 0);
    progress_show(&bar, 0, "%d windows", s->n_chunks);
    for (int32_t i = 0; i < s->n_chunks; i++) {
        int code = score_window(s, i);
        if (code) {
            progress_clear(&bar);
            return code;
        }
        char left[48];
        double error, share = (double)(i + 1) / s->n_chunks;
        progress_show(&bar, share, "window %d of %d, perplexity %.4f%s", i + 1, s->n_chunks,
                      ppl_value(s, &error), progress_left(&bar, share, left, sizeof left));
    }
    progress_clear(&bar);
    return 0;
}

static void print_result(const ppl_state *s)
{
    double error, ppl = ppl_value(s, &error);
    if (!opt_flag(s->t.opt, OPT_JSON)) {
        printf("perplexity = %.4f ± %.4f (%lld tokens)\n", ppl, error, (long long)s->n_scored);
        kl_print(s, NULL);
        return;
    }
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_text(&j, "model", s->path);
    json_number(&j, "perplexity", ppl);
    json_number(&j, "error", error);
    json_number(&j, "nll", s->sum / (double)s->n_scored);
    json_int(&j, "tokens", s->n_scored);
    json_int(&j, "window", s->window);
    json_int(&j, "windows", s->n_chunks);
    kl_print(s, &j);
    json_end_object(&j);
}

static int check_flags(const options *o)
{
    if (opt_is_set(o, OPT_KL) && opt_is_set(o, OPT_KL_BASE))
        return fail(EXIT_USAGE, "--kl-base writes and --kl compares; give one of them");
    if (!opt_is_set(o, OPT_FILE) && !opt_is_set(o, OPT_KL))
        return fail(EXIT_USAGE, "perplexity: no text; give -f FILE");
    return 0;
}

static int perplexity(ppl_state *s)
{
    const options *o = s->t.opt;
    int code = check_flags(o);
    if (!code) code = tool_open(&s->t, o);
    if (!code) code = tool_load(&s->t, s->path, LOAD_WEIGHTS, &s->model);
    if (!code) code = tool_load_adapters(&s->t, s->model);
    if (code) return code;
    s->info.struct_size = sizeof s->info;
    tn_model_info_get(s->model, &s->info);
    if (!s->info.has_tokenizer) return fail(EXIT_MODEL, "%s has no tokenizer, and a text is needed", s->path);
    if (s->info.is_encoder)
        return fail(EXIT_FAILED, "%s: %s models predict no tokens; see 'tenon help embed'", s->path,
                    s->info.arch);
    code = find_bos(s, &s->bos);
    if (!code && opt_is_set(o, OPT_FILE)) code = read_tokens(s);
    if (!code) code = kl_open_base(s);
    if (!code) code = choose_windows(s);
    if (!code) code = kl_open_new(s);
    if (!code) code = open_session(s);
    if (!code) code = score_all(s);
    if (!code) code = kl_commit(s);
    if (!code) print_result(s);
    return code ? code : tool_profile(&s->t);
}

int cmd_perplexity(const options *o)
{
    ppl_state s = {.t.opt = o};
    const char *const *args;
    int n_args;
    int code = tool_model_path(o, &s.path, &args, &n_args);
    if (!code && n_args > 0)
        code = fail(EXIT_USAGE, "unexpected argument '%s'; the text is given as -f FILE", args[0]);
    if (!code) code = perplexity(&s);
    interrupt_watch(NULL);
    kl_close(&s);
    free(s.ids);
    tn_session_destroy(&s.session);
    tn_model_unref(&s.model);
    tool_close(&s.t);
    return code;
}
