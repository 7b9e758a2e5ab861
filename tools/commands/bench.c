// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon bench: speed of prefill (pp) and decoding (tg), and the share of the peak of the machine. Speed of an
// embedder: bench_texts.c.
#include "tools/commands/bench.h"

#include "tools/terminal/progress.h"
#include "tools/interrupt.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 512 }; // tokens of the plans whose costs are added up; every device takes so many at once

typedef struct sizes {
    int64_t pp[BENCH_NUMS], tg[BENCH_NUMS], depth[BENCH_NUMS];
    int n_pp, n_tg, n_depth;
} sizes;

static int64_t largest(const int64_t *x, int n)
{
    int64_t most = 0;
    for (int i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

static int read_sizes(bench_state *s, sizes *z)
{
    const options *o = s->t.opt;
    z->n_pp = opt_nums(o, OPT_PP, z->pp, BENCH_NUMS);
    z->n_tg = opt_nums(o, OPT_TG, z->tg, BENCH_NUMS);
    z->n_depth = opt_nums(o, OPT_DEPTH, z->depth, 8);
    int64_t depth = largest(z->depth, z->n_depth), decoded = largest(z->tg, z->n_tg),
            prompt = largest(z->pp, z->n_pp), most = prompt > decoded ? prompt : decoded;
    s->longest = depth + most;
    s->each = depth + decoded;
    int64_t ctx = opt_int(o, OPT_CTX);
    if (most == 0)
        return fail(EXIT_USAGE, "nothing to measure: -p and -n are both 0; give sizes, as in -p 512 -n 128");
    if (ctx > 0 && s->longest > ctx)
        return fail(EXIT_CONTEXT, "the largest test needs %lld tokens, -c gives %lld; leave -c away",
                    (long long)s->longest, (long long)ctx);
    return 0;
}

// --- measuring -------------------------------------------------------------------------------------------

static int eval_fail(const bench_state *s, tn_status status)
{
    return tool_fail(&s->t, status, "%s", s->name);
}

// One token for each of the first n_seq sequences; greedy: the next step starts from the token of this one.
static tn_status decode_step(bench_state *s, int32_t n_seq, int32_t *tokens)
{
    tn_feed feeds[BENCH_SEQUENCES];
    for (int32_t q = 0; q < n_seq; q++)
        feeds[q] = (tn_feed){sizeof(tn_feed), q, 1, &tokens[q], TN_OUTPUT_LAST, 0};
    tn_status status = tn_session_eval(s->session, feeds, n_seq);
    for (int32_t q = 0; q < n_seq && status == TN_OK; q++)
        status = tn_session_best(s->session, q, &tokens[q], NULL);
    return status;
}

tn_status bench_truncate(bench_state *s, int64_t n)
{
    tn_status status = TN_OK;
    for (int32_t q = 0; q < s->cfg.n_seq && status == TN_OK; q++)
        status = tn_session_truncate(s->session, q, (int32_t)n);
    return status;
}

static tn_status run_once(bench_state *s, const bench_result *r, uint64_t *ns)
{
    tn_status status = bench_truncate(s, r->depth);
    bool profile = opt_is_set(s->t.opt, OPT_PROFILE), decode = r->kind == BENCH_DECODE;
    int32_t chosen[BENCH_SEQUENCES];
    for (int32_t q = 0; q < r->n_seq; q++) chosen[q] = s->tokens[q % s->n_tokens];
    uint64_t start = now_ns();
    if (status == TN_OK && !decode) {
        if (profile) tn_session_profile(s->session, 1);
        status = tn_session_feed(s->session, 0, s->tokens + r->depth, (int32_t)r->n);
    }
    for (int64_t i = 0; decode && i < r->n && status == TN_OK; i++) {
        if (profile) tn_session_profile(s->session, 1);
        status = decode_step(s, r->n_seq, chosen);
    }
    *ns = now_ns() - start;
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The costs of plans: of a step in the middle of the test.
static tn_status decode_cost(bench_state *s, const bench_result *r, cost_sum *sum)
{
    tn_plan *plan = NULL;
    tn_status status = tn_model_plan_create(s->model, &s->cfg, r->n_seq, r->n_seq, &plan);
    if (status == TN_OK) cost_add_plan(sum, plan, r->depth + (r->n - 1) / 2);
    tn_plan_unref(&plan);
    return status;
}

// Of all pieces: what is computed for a token depends only on its position.
static tn_status prefill_cost(bench_state *s, const bench_result *r, cost_sum *sum)
{
    tn_plan *plan = NULL;
    tn_status status = TN_OK;
    int64_t most = s->cfg.n_batch > 0 && s->cfg.n_batch < PIECE ? s->cfg.n_batch : PIECE, planned = 0;
    for (int64_t at = 0, n; at < r->n && status == TN_OK; at += n) {
        n = r->n - at < most ? r->n - at : most;
        if (n != planned) {
            tn_plan_unref(&plan);
            status = tn_model_plan_create(s->model, &s->cfg, (int32_t)n, 1, &plan);
            planned = n;
        }
        if (status == TN_OK) cost_add_plan(sum, plan, r->depth + at);
    }
    tn_plan_unref(&plan);
    return status;
}

static tn_status summarize(bench_state *s, bench_result *r, double *speeds)
{
    qsort(speeds, (size_t)r->n_reps, sizeof *speeds, compare_doubles);
    r->min = speeds[0];
    r->max = speeds[r->n_reps - 1];
    r->median = (speeds[(r->n_reps - 1) / 2] + speeds[r->n_reps / 2]) / 2;
    r->spread = (r->max - r->min) / 2;
    if (r->kind == BENCH_EMBED) {
        r->rate = r->median * 2 * s->active_params * 1e-9;
        if (s->has_peaks) r->share = 100e9 * r->rate / peaks_rate(&s->peaks, s->precision);
        return TN_OK;
    }
    cost_sum cost = {.weights = 0};
    tn_status status = r->kind == BENCH_DECODE ? decode_cost(s, r, &cost) : prefill_cost(s, r, &cost);
    if (r->kind == BENCH_DECODE) { // per step, which gives a token to each sequence
        double bytes = cost.weights + cost.cache_read;
        r->rate = r->median / r->n_seq * bytes * 1e-9;
        if (s->has_peaks) r->share = 100e9 * r->rate / s->peaks.read;
    } else {
        double seconds = (double)r->n / r->median;
        r->rate = cost_ops(&cost) / seconds * 1e-9;
        s->precision = cost_precision(&cost);
        if (s->has_peaks) r->share = 100 * cost_compute_time(&cost, &s->peaks) / seconds;
    }
    return status;
}

int bench_repeat(bench_state *s, const bench_result *test, bench_run *run)
{
    static const char clear[] = "\r\033[K";
    if (s->n_results == BENCH_TESTS) return 0;
    bench_result *r = &s->results[s->n_results];
    *r = *test;
    r->n_reps = (int32_t)opt_int(s->t.opt, OPT_REPS);
    double speeds[BENCH_REPS], tokens = (double)r->n * (r->kind == BENCH_PREFILL ? 1 : r->n_seq);
    char name[64];
    bool terminal = terminal_moves(stderr);
    for (int32_t i = -1; i < r->n_reps; i++) { // -1: warms up
        uint64_t ns;
        if (i == 0) r->begin_ns = now_ns();
        if (terminal) {
            fprintf(stderr, "\r%s: %d of %d\033[K", bench_test_name(s, r, name, sizeof name), i + 1,
                    r->n_reps);
            fflush(stderr);
        }
        tn_status status = i < 0 && opt_flag(s->t.opt, OPT_NO_WARMUP) ? TN_OK : run(s, r, &ns);
        if (status != TN_OK && terminal) fputs(clear, stderr);
        if (status != TN_OK) return eval_fail(s, status);
        if (i >= 0) speeds[i] = ns ? tokens * 1e9 / (double)ns : 0;
    }
    if (terminal) fputs(clear, stderr);
    r->end_ns = now_ns();
    tn_status status = summarize(s, r, speeds);
    if (status != TN_OK) return eval_fail(s, status);
    s->n_results++;
    return 0;
}

static int run_test(bench_state *s, bench_kind kind, int64_t n, int64_t depth, int64_t n_seq)
{
    bench_result r = {.kind = kind, .n = n, .depth = depth, .n_seq = (int32_t)n_seq};
    return n > 0 ? bench_repeat(s, &r, run_once) : 0;
}

static int run_depth(bench_state *s, const sizes *z, int64_t depth)
{
    tn_status status = bench_truncate(s, 0);
    for (int32_t q = 0; q < s->cfg.n_seq && depth > 0 && status == TN_OK; q++)
        status = tn_session_feed(s->session, q, s->tokens, (int32_t)depth);
    if (status != TN_OK) return eval_fail(s, status);
    int code = 0;
    for (int i = 0; i < z->n_pp && !code; i++) code = run_test(s, BENCH_PREFILL, z->pp[i], depth, 1);
    for (int k = 0; k < s->n_counts; k++)
        for (int i = 0; i < z->n_tg && !code; i++)
            code = run_test(s, BENCH_DECODE, z->tg[i], depth, s->counts[k]);
    return code;
}

static void measure_peaks(bench_state *s)
{
    if (opt_flag(s->t.opt, OPT_NO_PEAKS)) return;
    // Those of the processor are measured anew: other programs may have it just now. Those of other devices
    // are there after `tenon roofline`, which takes longer to measure them.
    tn_device *device = bench_device(s);
    if (strcmp(s->info.device, "cpu") != 0) {
        s->has_peaks = device && peaks_load(&s->t, device, &s->peaks);
        return;
    }
    s->has_peaks = device && peaks_make(&s->t, device, false, &s->peaks);
    if (!s->has_peaks)
        note("the peaks of this machine could not be measured: no memory or no threads for it");
}

static int measure(bench_state *s, const sizes *z)
{
    int code = bench_make_session(s);
    if (code) return code;
    measure_peaks(s);
    interrupt_watch(s->session); // until here a signal ends the program at once
    if (tn_model_host_overhead(s->model, &s->cfg, &s->host_ns) != TN_OK) s->host_ns = 0;
    for (int i = 0; i < z->n_depth && !code; i++) code = run_depth(s, z, z->depth[i]);
    return code;
}

static void print_results(const bench_state *s)
{
    char format[16];
    opt_word(s->t.opt, OPT_FORMAT, format, sizeof format);
    if (opt_flag(s->t.opt, OPT_JSON) || strcmp(format, "json") == 0)
        bench_print_json(s);
    else if (opt_flag(s->t.opt, OPT_CSV) || strcmp(format, "csv") == 0)
        bench_print_csv(s);
    else
        bench_print_text(s);
}

static int bench(bench_state *s)
{
    sizes z;
    int code = read_sizes(s, &z);
    if (!code) code = bench_open(s);
    if (code) return code;
    bool texts = opt_is_set(s->t.opt, OPT_TEXTS);
    if (s->info.is_encoder && !texts)
        return fail(EXIT_FAILED, "%s: an encoder evaluates whole texts; give --texts, as in -p 512 --texts 8",
                    s->name);
    if (texts) {
        measure_peaks(s);
        code = bench_texts(s, z.pp, z.n_pp);
    } else {
        code = measure(s, &z);
    }
    if (!code) print_results(s);
    return code || texts ? code : tool_profile(&s->t, s->session);
}

int cmd_bench(const options *o)
{
    bench_state *s = calloc(1, sizeof *s); // too large for a stack
    if (!s) return fail(EXIT_MEMORY, "out of memory at the start");
    s->t.opt = o;
    int code = bench(s);
    interrupt_watch(NULL);
    bench_close(s);
    return code;
}
