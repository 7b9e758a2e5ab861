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

enum { CTX_MIN = 64, CACHE_TOKENS = 1024 }; // multiples of the blocks of a cache
static const double int8_bits = 9;          // kernels multiply weights with at most this many bits as int8

typedef struct sizes {
    int64_t pp[BENCH_NUMS], tg[BENCH_NUMS], depth[BENCH_NUMS];
    int n_pp, n_tg, n_depth;
    int64_t longest; // tokens that the largest test needs
    int64_t each;    // that each of several sequences has: only decoding takes more than one
} sizes;

// One session serves all counts of sequences: weights and a deep cache are made once. It is made for the
// largest count.
static void read_sequences(bench_state *s)
{
    s->n_counts = opt_nums(s->t.opt, OPT_SEQUENCES, s->counts, BENCH_SEQUENCES);
    for (int i = 0; i < s->n_counts; i++)
        if (s->counts[i] > s->cfg.n_seq) s->cfg.n_seq = (int32_t)s->counts[i];
}

static int64_t largest(const int64_t *x, int n)
{
    int64_t most = 0;
    for (int i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

static int read_sizes(const options *o, sizes *z)
{
    z->n_pp = opt_nums(o, OPT_PP, z->pp, BENCH_NUMS);
    z->n_tg = opt_nums(o, OPT_TG, z->tg, BENCH_NUMS);
    z->n_depth = opt_nums(o, OPT_DEPTH, z->depth, 8);
    int64_t depth = largest(z->depth, z->n_depth), decoded = largest(z->tg, z->n_tg),
            prompt = largest(z->pp, z->n_pp), most = prompt > decoded ? prompt : decoded;
    z->longest = depth + most;
    z->each = depth + decoded;
    int64_t ctx = opt_int(o, OPT_CTX);
    if (most == 0)
        return fail(EXIT_USAGE, "nothing to measure: -p and -n are both 0; give sizes, as in -p 512 -n 128");
    if (ctx > 0 && z->longest > ctx)
        return fail(EXIT_CONTEXT, "the largest test needs %lld tokens, -c gives %lld; leave -c away",
                    (long long)z->longest, (long long)ctx);
    return 0;
}

// --- model -----------------------------------------------------------------------------------------------

typedef struct shape_row {
    opt_id id;
    size_t offset;
} shape_row;

static const shape_row shape_rows[] = {
    {OPT_LAYERS, offsetof(tn_model_shape, n_layers)},
    {OPT_WIDTH, offsetof(tn_model_shape, n_embd)},
    {OPT_HEADS, offsetof(tn_model_shape, n_heads)},
    {OPT_KV_HEADS, offsetof(tn_model_shape, n_kv_heads)},
    {OPT_HEAD_DIM, offsetof(tn_model_shape, head_dim)},
    {OPT_FFN, offsetof(tn_model_shape, n_ff)},
    {OPT_VOCAB, offsetof(tn_model_shape, n_vocab)},
    {OPT_EXPERTS, offsetof(tn_model_shape, n_experts)},
    {OPT_EXPERTS_USED, offsetof(tn_model_shape, n_experts_used)},
    {OPT_EXPERT_FFN, offsetof(tn_model_shape, n_ff_expert)},
    {OPT_CLASSES, offsetof(tn_model_shape, n_classes)},
};
enum { SHAPE_ROWS = sizeof shape_rows / sizeof *shape_rows };

static bool is_random(const options *o)
{
    bool random = opt_is_set(o, OPT_SHAPE) || opt_is_set(o, OPT_ARCH);
    for (int i = 0; i < SHAPE_ROWS; i++) random = random || opt_is_set(o, shape_rows[i].id);
    return random;
}

// Whole blocks of the cache.
static int32_t blocks(int64_t tokens)
{
    return (int32_t)((tokens + CTX_MIN - 1) / CTX_MIN * CTX_MIN);
}

// One sequence of several has the longest prompt as well. A cache with blocks for it in all of them would
// leave less of a device to the layers.
static void make_config(bench_state *s, const sizes *z)
{
    tool_session_config(&s->t, &s->cfg);
    read_sequences(s);
    if (s->cfg.n_ctx > 0) return;
    s->cfg.n_ctx_seq = blocks(z->longest);
    s->cfg.n_ctx = (s->cfg.n_seq - 1) * blocks(z->each) + s->cfg.n_ctx_seq;
}

static int make_random(bench_state *s, const sizes *z)
{
    const options *o = s->t.opt;
    const char *name = opt_text(o, OPT_SHAPE);
    tn_model_shape shape;
    tn_model_shape_default(&shape);
    tn_status status = name ? tn_model_shape_get(s->t.ctx, name, &shape) : TN_OK;
    if (status != TN_OK) return tool_fail(&s->t, status, "--shape %s", name);
    for (int i = 0; i < SHAPE_ROWS; i++) {
        if (!opt_is_set(o, shape_rows[i].id)) continue;
        int32_t value = (int32_t)opt_int(o, shape_rows[i].id);
        memcpy((char *)&shape + shape_rows[i].offset, &value, sizeof value);
    }
    if (opt_is_set(o, OPT_ARCH) || !name) shape.arch = opt_text(o, OPT_ARCH);
    if (opt_is_set(o, OPT_TYPE) || !shape.type) shape.type = opt_text(o, OPT_TYPE);
    if (!name && shape.head_dim == 0 && shape.n_heads > 0) shape.head_dim = shape.n_embd / shape.n_heads;
    if (!name && shape.n_kv_heads == 0) shape.n_kv_heads = shape.n_heads;
    if (shape.n_ctx < z->longest) shape.n_ctx = (int32_t)z->longest;
    shape.seed = opt_int(o, OPT_SEED) >= 0 ? (uint32_t)opt_int(o, OPT_SEED) : 1;
    tn_model_config cfg;
    make_config(s, z);
    tool_model_config(&s->t, &s->cfg, &cfg);
    s->name = name ? name : "random";
    status = tn_model_create_random(s->t.ctx, &shape, &cfg, &s->model);
    return status == TN_OK ? 0 : tool_fail(&s->t, status, "%s", s->name);
}

int bench_make_tokens(bench_state *s, int64_t n)
{
    s->n_tokens = n;
    s->tokens = malloc((size_t)n * sizeof *s->tokens + 1);
    if (!s->tokens) return fail(EXIT_MEMORY, "out of memory for %lld tokens", (long long)n);
    uint32_t x = 12345; // any ids will do, but equal ones would all use the same experts
    for (int64_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        s->tokens[i] = (int32_t)((x >> 8) % (uint32_t)s->info.n_vocab);
    }
    return 0;
}

// Of a token of one sequence. Several sequences have blocks that are partly filled, which no step reads.
static tn_status find_cache_bytes(bench_state *s)
{
    tn_session_memory memory = {.struct_size = sizeof memory};
    tn_session_config one = s->cfg;
    one.n_seq = 1;
    one.n_ctx_seq = 0;
    one.n_ctx = s->info.n_ctx_train < CACHE_TOKENS ? s->info.n_ctx_train : CACHE_TOKENS;
    one.n_batch = 1;
    tn_status status = tn_session_predict(s->model, &one, &memory);
    if (status == TN_OK) s->cache_bytes = (double)memory.cache / one.n_ctx;
    return status;
}

static int make_session(bench_state *s, const sizes *z)
{
    make_config(s, z);
    tn_status status = find_cache_bytes(s);
    if (status == TN_OK) status = tn_session_create(s->model, &s->cfg, &s->session);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s: a context of %d tokens", s->name, s->cfg.n_ctx);
    return bench_make_tokens(s, z->longest);
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

static tn_status truncate_all(bench_state *s, int64_t n)
{
    tn_status status = TN_OK;
    for (int32_t q = 0; q < s->cfg.n_seq && status == TN_OK; q++)
        status = tn_session_truncate(s->session, q, (int32_t)n);
    return status;
}

static tn_status run_once(bench_state *s, const bench_result *r, uint64_t *ns)
{
    tn_status status = truncate_all(s, r->depth);
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

static void summarize(const bench_state *s, bench_result *r, double *speeds)
{
    qsort(speeds, (size_t)r->n_reps, sizeof *speeds, compare_doubles);
    r->min = speeds[0];
    r->max = speeds[r->n_reps - 1];
    r->median = (speeds[(r->n_reps - 1) / 2] + speeds[r->n_reps / 2]) / 2;
    r->spread = (r->max - r->min) / 2;
    if (r->kind == BENCH_DECODE) {
        double cached = (double)r->depth + (double)(r->n + 1) / 2; // positions read, on average
        // Weights once a step, the cache once a sequence.
        r->rate =
            r->median * ((double)s->info.active_weight_size / r->n_seq + cached * s->cache_bytes) * 1e-9;
        if (s->has_peaks) r->share = 100 * r->rate / s->peaks.read_gbps;
    } else {
        r->rate = r->median * 2 * s->active_params * 1e-9;
        if (s->has_peaks) r->share = 100 * r->rate / (s->int8 ? s->peaks.int8_gops : s->peaks.f32_gflops);
    }
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
        if (terminal)
            fprintf(stderr, "\r%s: %d of %d\033[K", bench_test_name(s, r, name, sizeof name), i + 1,
                    r->n_reps);
        tn_status status = i < 0 && opt_flag(s->t.opt, OPT_NO_WARMUP) ? TN_OK : run(s, r, &ns);
        if (status != TN_OK && terminal) fputs(clear, stderr);
        if (status != TN_OK) return eval_fail(s, status);
        if (i >= 0) speeds[i] = ns ? tokens * 1e9 / (double)ns : 0;
    }
    if (terminal) fputs(clear, stderr);
    r->end_ns = now_ns();
    summarize(s, r, speeds);
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
    tn_status status = truncate_all(s, 0);
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
    // The peaks are those of the processor.
    if (!opt_flag(s->t.opt, OPT_NO_PEAKS) && strcmp(s->info.device, "cpu") == 0) {
        s->has_peaks = peaks_measure(tn_context_n_threads(s->t.ctx), &s->peaks);
        if (!s->has_peaks)
            note("the peaks of this machine could not be measured: no memory or no threads for it");
    }
}

static int measure(bench_state *s, const sizes *z)
{
    int code = make_session(s, z);
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

static void get_info(bench_state *s)
{
    const tn_model_info *m = &s->info;
    s->info.struct_size = sizeof s->info;
    tn_model_info_get(s->model, &s->info);
    if (m->weight_size == 0) return;
    s->active_params = (double)m->n_active_params;
    s->int8 = (double)m->weight_size * 8 / (double)m->n_params < int8_bits;
}

static int bench(bench_state *s)
{
    const options *o = s->t.opt;
    const char *const *args = o->args;
    int n_args = o->n_args;
    sizes z;
    int code = read_sizes(o, &z);
    bool random = is_random(o);
    if (!code && !random) code = tool_model_path(o, &s->name, &args, &n_args);
    if (!code && n_args > 0)
        code = fail(EXIT_USAGE, "unexpected argument '%s'; bench takes one model, or --shape", args[0]);
    if (!code) code = tool_open(&s->t, o);
    if (!code) code = random ? make_random(s, &z) : tool_load(&s->t, s->name, LOAD_WEIGHTS, &s->model);
    if (code) return code;
    get_info(s);
    bool texts = opt_is_set(o, OPT_TEXTS);
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
    free(s->tokens);
    tn_session_destroy(&s->session);
    tn_embedder_destroy(&s->embedder);
    tn_model_unref(&s->model);
    tool_close(&s->t);
    free(s);
    return code;
}
