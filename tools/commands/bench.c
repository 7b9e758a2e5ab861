// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon bench: speed of prefill (pp) and decoding (tg), and the share of the peak of the machine. Speed of an
// embedder: bench_texts.c.
#include "tools/commands/bench.h"

#include "tools/costs/roofline.h"
#include "tools/store/store.h"
#include "tools/terminal/progress.h"
#include "tools/interrupt.h"
#include "tools/output.h"

#include <stdlib.h>
#include <string.h>

enum { ROOF_TOKENS = 512 }; // of the prompt of a roofline in a report, at most
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
    if (opt_text(o, OPT_BENCH_HTML)) s->longest++; // the roofline decodes one token behind the prompt
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
    bool decode = r->kind == BENCH_DECODE;
    int32_t chosen[BENCH_SEQUENCES];
    for (int32_t q = 0; q < r->n_seq; q++) chosen[q] = s->tokens[q % s->n_tokens];
    uint64_t start = now_ns();
    if (status == TN_OK && !decode)
        status = tn_session_feed(s->session, 0, s->tokens + r->depth, (int32_t)r->n);
    for (int64_t i = 0; decode && i < r->n && status == TN_OK; i++)
        status = decode_step(s, r->n_seq, chosen);
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
        bench_sample_memory(s);
    }
    if (terminal) fputs(clear, stderr);
    r->end_ns = now_ns();
    bench_sample_memory(s);
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
    const bench_state *first = s->set->cases[0];
    if (s != first && first->has_peaks && strcmp(first->device, s->device) == 0) {
        s->peaks = first->peaks;
        s->has_peaks = true;
        return;
    }
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

static void measure_host(bench_state *s)
{
    char message[512];
    if (tn_model_host_overhead(s->model, &s->cfg, &s->host_ns) == TN_OK) return;
    s->host_ns = 0;
    (void)tn_context_error(s->t.ctx, message, sizeof message);
    note("what the host adds to a step is not known: %s", message);
}

static int measure(bench_state *s, const sizes *z)
{
    int code = bench_make_session(s);
    if (code) return code;
    measure_peaks(s);
    tool_trace_loaded(&s->t);
    interrupt_watch(s->session); // until here a signal ends the program at once
    measure_host(s);
    for (int i = 0; i < z->n_depth && !code; i++) code = run_depth(s, z, z->depth[i]);
    return code;
}

// --- the report ------------------------------------------------------------------------------------------

void bench_sample_memory(bench_state *s)
{
    if (s->n_samples == BENCH_SAMPLES || !s->t.ctx) return;
    s->samples[s->n_samples++] = (bench_sample){now_ns(), (double)tn_context_memory(s->t.ctx)};
}

// For a report: where the time of a prompt and of a token goes, behind the deepest cache.
static int measure_roofline(bench_state *s, const sizes *z)
{
    if (!opt_text(s->t.opt, OPT_BENCH_HTML) || !s->has_peaks) return 0;
    int64_t tokens = largest(z->pp, z->n_pp), most = tn_session_n_batch(s->session);
    if (most > ROOF_TOKENS) most = ROOF_TOKENS;
    if (tokens > most) tokens = most;
    s->roofline = calloc(1, sizeof *s->roofline);
    if (!s->roofline) return fail(EXIT_MEMORY, "out of memory for the report");
    s->roofline->bench = s;
    s->roofline->peaks = s->peaks;
    roof_describe(s->roofline);
    int code =
        roof_measure(s->roofline, (int32_t)(tokens > 0 ? tokens : 1), 1, largest(z->depth, z->n_depth));
    bench_sample_memory(s);
    return code;
}

static int print_results(const bench_set *set)
{
    const options *o = set->opt;
    const char *path = opt_text(o, OPT_BENCH_HTML);
    char format[16];
    opt_word(o, OPT_FORMAT, format, sizeof format);
    if (opt_flag(o, OPT_JSON) || strcmp(format, "json") == 0)
        bench_print_json(set);
    else if (opt_flag(o, OPT_CSV) || strcmp(format, "csv") == 0)
        bench_print_csv(set);
    else if (set->n > 1 || set->peers.n > 0)
        bench_compare_text(set);
    else
        bench_print_text(set->cases[0]);
    if (!path) return 0;
    out_file out;
    int code = out_file_open(&out, path);
    if (code) return code;
    bench_page(set, out.f);
    return out_file_commit(&out);
}

// --- the command -----------------------------------------------------------------------------------------

static int bench(bench_state *s)
{
    sizes z;
    s->begin_ns = now_ns();
    int code = read_sizes(s, &z);
    if (!code) code = bench_open(s);
    if (code) return code;
    bench_sample_memory(s);
    bool texts = opt_is_set(s->t.opt, OPT_TEXTS);
    if (s->info.is_encoder && !texts)
        return fail(EXIT_FAILED, "%s: an encoder evaluates whole texts; give --texts, as in -p 512 --texts 8",
                    s->name);
    if (texts) {
        measure_peaks(s);
        code = bench_texts(s, z.pp, z.n_pp);
        s->classes = s->embedder && tn_embedder_pooling(s->embedder) == TN_POOLING_RANK;
    } else {
        code = measure(s, &z);
        if (!code) code = tool_profile(&s->t);
        if (!code) code = measure_roofline(s, &z);
    }
    bench_sample_memory(s);
    return code;
}

static bench_state *add_case(bench_set *set)
{
    if (set->n == BENCH_CASES) {
        fail(EXIT_USAGE, "more than %d models in one run", BENCH_CASES);
        return NULL;
    }
    bench_state *s = calloc(1, sizeof *s); // too large for a stack
    if (!s) {
        fail(EXIT_MEMORY, "out of memory at the start");
        return NULL;
    }
    s->t.opt = set->opt;
    s->set = set;
    set->cases[set->n++] = s;
    return s;
}

// The types of --type with commas: one case each.
static int add_types(bench_set *set, const char *types)
{
    for (const char *p = types;;) {
        int n = (int)strcspn(p, ",");
        bench_state *s = add_case(set);
        if (!s) return EXIT_USAGE;
        char *type = set->types[set->n - 1];
        snprintf(type, sizeof set->types[0], "%.*s", n < 31 ? n : 31, p);
        s->type = type;
        if (!p[n]) return 0;
        p += n + 1;
    }
}

static int add_files(bench_set *set)
{
    const options *o = set->opt;
    for (int i = 0; i < o->n_args; i++) {
        bench_state *s = add_case(set);
        int code = s ? store_resolve(o->args[i], false, &s->path) : EXIT_USAGE;
        if (code) return code;
    }
    return 0;
}

static int add_cases(bench_set *set)
{
    const options *o = set->opt;
    const char *types = opt_text(o, OPT_TYPE);
    bool random = bench_is_random(o);
    int code = 0;
    if (random && types && strchr(types, ','))
        code = add_types(set, types);
    else if (!random && o->n_args > 1 && !opt_is_set(o, OPT_MODEL) && !opt_is_set(o, OPT_HF_REPO))
        code = add_files(set);
    else
        code = add_case(set) ? 0 : EXIT_MEMORY;
    if (!code && set->n > 1 && opt_text(o, OPT_PROFILE))
        code = fail(EXIT_USAGE, "--profile records one model; %d are given", set->n);
    return code;
}

int cmd_bench(const options *o)
{
    bench_set set = {.opt = o};
    int code = peers_open(&set.peers, o);
    if (!code) code = add_cases(&set);
    for (int i = 0; i < set.n && !code; i++) {
        code = bench(set.cases[i]);
        interrupt_watch(NULL);
        bench_release(set.cases[i]);
    }
    if (!code) code = print_results(&set);
    for (int i = 0; i < set.n; i++) {
        roof_close(set.cases[i]->roofline);
        bench_close(set.cases[i]);
    }
    peers_close(&set.peers);
    return code;
}
