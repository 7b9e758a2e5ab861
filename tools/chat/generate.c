// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/chat/generate.h"

#include "tools/interrupt.h"
#include "tools/json/json.h"
#include "tools/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

enum { NGRAM_DEFAULT = 4, NGRAM_MAX = 16, PROMPT_END = 16 };
enum { SCHEMA = 1 }; // of --json and --jsonl; incremented when a key changes its meaning

// --- options ---------------------------------------------------------------------------------------------

// Steele, Lea and Flood 2014 (splitmix64): spreads the changing low bits of the time over the whole seed.
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// "off", "ngram" or "ngram:3".
static int parse_spec(run_state *r)
{
    const char *text = opt_text(r->t.opt, OPT_SPEC);
    char *end = "";
    long n = NGRAM_DEFAULT;
    if (strcmp(text, "off") == 0) return 0;
    bool ok = strncmp(text, "ngram", 5) == 0;
    if (ok && text[5] == ':')
        n = strtol(text + 6, &end, 10);
    else
        ok = ok && text[5] == 0;
    if (!ok || *end || n < 1 || n > NGRAM_MAX)
        return fail(EXIT_USAGE, "--spec: '%s' is not off, ngram or ngram:N with N from 1 to %d", text,
                    NGRAM_MAX);
    if (opt_is_set(r->t.opt, OPT_MODEL_DRAFT))
        return fail(EXIT_USAGE, "--spec %s and --model-draft exclude each other; give one of them", text);
    r->spec_ngram = (int32_t)n;
    return 0;
}

static int parse_full(run_state *r)
{
    const options *o = r->t.opt;
    bool shift = opt_flag(o, OPT_CONTEXT_SHIFT), stop = opt_flag(o, OPT_NO_CONTEXT_SHIFT);
    if (shift + stop + opt_is_set(o, OPT_CONTEXT_FULL) > 1)
        return fail(EXIT_USAGE, "--context-full, --context-shift and --no-context-shift exclude each other; "
                                "give one of them");
    r->full = shift ? FULL_SHIFT : stop ? FULL_STOP : (full_policy)opt_int(o, OPT_CONTEXT_FULL);
    return 0;
}

int answer_options(run_state *r)
{
    const options *o = r->t.opt;
    int64_t seed = opt_int(o, OPT_SEED);
    r->seed = seed >= 0 ? (uint64_t)seed
                        : mix(now_ns() ^ (sys_process_id() << 40)) >> 32; // short enough to type again
    size_t n = (size_t)o->n_items + 1;
    r->stops = calloc(n, sizeof *r->stops);
    if (!r->stops) return fail(EXIT_MEMORY, "out of memory for the options");
    const char *text;
    for (int k = 0; (text = opt_item_get(o, OPT_STOP, k)) != NULL; k++) {
        if (!*text)
            return fail(EXIT_USAGE, "--stop: the text is empty; leave the flag away to stop at the end only");
        r->stops[r->n_stops++] = text;
    }
    r->bans = calloc(n, sizeof *r->bans);
    if (!r->bans) return fail(EXIT_MEMORY, "out of memory for the options");
    for (int k = 0; (text = opt_item_get(o, OPT_BAN, k)) != NULL; k++) r->bans[r->n_bans++] = text;
    int code = sampling_options(r);
    if (!code) code = chat_options(r);
    if (!code) code = parse_full(r);
    return code ? code : parse_spec(r);
}

void answer_fini(run_state *r)
{
    free(r->stops);
    free(r->bans);
    free(r->logprobs);
    free(r->likely);
    sampling_fini(r);
    chat_fini(r);
    thoughts_fini(&r->thoughts);
    free(r->text);
    free(r->whole);
    free(r->ids);
}

// --- collecting ------------------------------------------------------------------------------------------

static bool grow(void **data, size_t *capacity, size_t wanted, size_t item)
{
    if (wanted <= *capacity) return true;
    size_t more = wanted * 2 + 64;
    void *p = realloc(*data, more * item);
    if (!p) return false;
    *data = p;
    *capacity = more;
    return true;
}

static bool keep_id(run_state *r, const tn_piece *piece)
{
    void *ids = r->ids, *logprobs = r->logprobs, *likely = r->likely;
    size_t width = (size_t)piece->n_logprobs;
    bool ok = grow(&ids, &r->ids_capacity, r->n_ids + 1, sizeof *r->ids);
    r->ids = ids;
    ok = ok && grow(&logprobs, &r->logprobs_capacity, r->n_ids + 1, sizeof *r->logprobs);
    r->logprobs = logprobs;
    ok = ok && grow(&likely, &r->likely_capacity, (r->n_ids + 1) * width, sizeof *r->likely);
    r->likely = likely;
    if (!ok) return false;
    if (width) memcpy(r->likely + r->n_ids * width, piece->logprobs, width * sizeof *r->likely);
    r->n_likely = piece->n_logprobs;
    r->logprobs[r->n_ids] = piece->logprob;
    r->ids[r->n_ids++] = piece->token;
    return true;
}

static bool keep_text(char **text, size_t *n, size_t *capacity, const tn_piece *piece)
{
    void *data = *text;
    bool ok = grow(&data, capacity, *n + piece->n_text + 1, 1);
    *text = data;
    if (!ok) return false;
    if (piece->n_text) memcpy(*text + *n, piece->text, piece->n_text);
    (*text)[ *n += piece->n_text] = 0;
    return true;
}

// The text of the piece is replaced by the part that is printed.
static bool keep(run_state *r, tn_piece *piece)
{
    bool ok = keep_text(&r->whole, &r->n_whole, &r->whole_capacity, piece) &&
              thoughts_feed(&r->thoughts, piece->text, piece->n_text, piece->stop != TN_STOP_NONE);
    if (!ok) return false;
    piece->text = r->thoughts.out;
    piece->n_text = r->thoughts.n_out;
    ok = keep_text(&r->text, &r->n_text, &r->text_capacity, piece);
    return ok && (piece->token < 0 || piece->stop == TN_STOP_END || keep_id(r, piece));
}

// --- showing ---------------------------------------------------------------------------------------------

const char *answer_stop_name(int32_t stop)
{
    static const char *const names[] = {
        [TN_STOP_NONE] = "none",       [TN_STOP_END] = "end",         [TN_STOP_STRING] = "string",
        [TN_STOP_LIMIT] = "limit",     [TN_STOP_CONTEXT] = "context", [TN_STOP_CANCELLED] = "cancelled",
        [TN_STOP_BLOCKED] = "blocked",
    };
    return stop >= 0 && (size_t)stop < sizeof names / sizeof *names ? names[stop] : "none";
}

static double per_second(int64_t n, uint64_t ns)
{
    return ns ? (double)n * 1e9 / (double)ns : 0;
}

static void put_figures(const run_state *r, json *j)
{
    const tn_generation_stats *s = &r->stats;
    json_text(j, "stop", answer_stop_name(r->stop));
    json_size(j, "prompt_tokens", r->n_prompt);
    json_int(j, "reused_tokens", s->n_reused);
    if (s->n_dropped > 0) json_int(j, "dropped_tokens", s->n_dropped);
    json_size(j, "seed", r->answer_seed);
    json_object(j, "timings");
    json_number(j, "load_ms", (double)r->t.load_ns * 1e-6);
    json_number(j, "prompt_ms", (double)s->prompt_ns * 1e-6);
    json_number(j, "prompt_per_second", per_second(s->n_prompt, s->prompt_ns));
    json_int(j, "generated", s->n_generated);
    json_number(j, "generated_ms", (double)s->generate_ns * 1e-6);
    json_number(j, "generated_per_second", per_second(s->n_generated, s->generate_ns));
    json_number(j, "first_token_ms", (double)s->first_token_ns * 1e-6);
    if (r->spec_ngram > 0 || r->draft) {
        json_int(j, "drafted", s->n_drafted);
        json_int(j, "accepted", s->n_accepted);
    }
    json_end_object(j);
    json_object(j, "memory");
    json_size(j, "peak_rss", peak_rss());
    json_size(j, "peak_library", tn_context_memory_peak(r->t.ctx));
    json_end_object(j);
}

static void put_text_of(const run_state *r, json *j, int32_t id)
{
    char *text = NULL;
    size_t n = 0;
    if (!r->info.has_tokenizer) return;
    if (tn_detokenize(r->model, &id, 1, TN_TEXT_PRINT_SPECIAL, &text, &n) == TN_OK)
        json_bytes(j, "text", text, n);
    tn_text_free(r->t.ctx, text);
}

static void put_likely(const run_state *r, json *j, const tn_logprob *likely, int32_t n)
{
    json_array(j, "top");
    for (int32_t i = 0; i < n; i++) {
        json_object(j, NULL);
        json_int(j, "id", likely[i].token);
        put_text_of(r, j, likely[i].token);
        json_number(j, "logprob", (double)likely[i].logprob);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_logprobs(const run_state *r, json *j)
{
    json_array(j, "logprobs");
    for (size_t i = 0; i < r->n_ids; i++) {
        json_object(j, NULL);
        json_int(j, "id", r->ids[i]);
        put_text_of(r, j, r->ids[i]);
        json_number(j, "logprob", (double)r->logprobs[i]);
        put_likely(r, j, r->likely + i * (size_t)r->n_likely, r->n_likely);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_json(const run_state *r)
{
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_int(&j, "schema", SCHEMA);
    json_text(&j, "model", r->path);
    json_text(&j, "device", r->info.device);
    json_bytes(&j, "text", r->text ? r->text : "", r->n_text);
    json_array(&j, "tokens");
    for (size_t i = 0; i < r->n_ids; i++) json_int(&j, NULL, r->ids[i]);
    json_end_array(&j);
    if (opt_int(r->t.opt, OPT_LOGPROBS) > 0) put_logprobs(r, &j);
    put_figures(r, &j);
    json_end_object(&j);
    out_flush();
}

static void begin_event(json *j, const char *name)
{
    json_init(j, stdout);
    json_object(j, NULL);
    json_text(j, "event", name);
}

void answer_load_event(const run_state *r)
{
    if (r->form != FORM_JSONL) return;
    json j;
    begin_event(&j, "load");
    json_int(&j, "schema", SCHEMA);
    json_text(&j, "model", r->path);
    json_text(&j, "arch", r->info.arch);
    json_text(&j, "device", r->info.device);
    json_int(&j, "device_layers", r->info.device_layers);
    json_int(&j, "context", tn_session_n_ctx(r->session));
    json_number(&j, "load_ms", (double)r->t.load_ns * 1e-6);
    json_end_object(&j);
    out_flush();
}

void answer_error_event(const run_state *r, int code)
{
    json j;
    if (r->form != FORM_JSONL) return;
    begin_event(&j, "error");
    json_int(&j, "code", code);
    json_text(&j, "message", failure_text());
    json_end_object(&j);
    out_flush();
}

// False when the reader of the output is gone.
static bool show_piece(const run_state *r, const tn_piece *piece)
{
    char id[16];
    json j;
    bool is_token = piece->token >= 0 && piece->stop != TN_STOP_END;
    switch (r->form) {
    case FORM_TEXT:
        return piece->n_text == 0 || out_write(piece->text, piece->n_text);
    case FORM_IDS:
        if (!is_token) return true;
        snprintf(id, sizeof id, "%s%d", r->n_ids > 1 ? " " : "", piece->token);
        return out_write(id, strlen(id));
    case FORM_JSONL:
        if (!is_token && piece->n_text == 0) return true;
        begin_event(&j, "token");
        if (is_token) json_int(&j, "id", piece->token);
        json_bytes(&j, "text", piece->n_text ? piece->text : "", piece->n_text);
        if (is_token) json_number(&j, "logprob", (double)piece->logprob);
        if (is_token && piece->n_logprobs > 0) put_likely(r, &j, piece->logprobs, piece->n_logprobs);
        json_end_object(&j);
        return out_flush();
    case FORM_JSON:
        break;
    }
    return true;
}

static void show_end(const run_state *r)
{
    json j;
    bool open_line = r->n_text > 0 && r->text[r->n_text - 1] != '\n';
    // Behind an interruption the terminal shows ^C.
    bool end_line = open_line || r->stop == TN_STOP_CANCELLED;
    if (r->form == FORM_IDS || (r->form == FORM_TEXT && end_line && is_terminal(stdout))) out_write("\n", 1);
    if (r->form == FORM_JSON) put_json(r);
    if (r->form == FORM_JSONL) {
        begin_event(&j, "stats");
        put_figures(r, &j);
        json_end_object(&j);
        out_flush();
    }
    if (r->stop == TN_STOP_BLOCKED)
        note("no token is allowed here by the grammar and the excluded texts: the answer is not complete");
    if (r->stop == TN_STOP_CONTEXT)
        note("the context is full (%d tokens), the answer ends here; a larger -c gives it room",
             tn_session_n_ctx(r->session));
}

bool answer_wants_stats(const run_state *r)
{
    return opt_flag(r->t.opt, OPT_STATS) || is_terminal(stderr);
}

void answer_stats(const run_state *r)
{
    const tn_generation_stats *s = &r->stats;
    char peak[32];
    bool color = use_color(r->t.opt, stderr);
    // If both streams go to one log, the figures get a line of their own.
    bool open_line = r->form == FORM_TEXT && r->n_text > 0 && r->text[r->n_text - 1] != '\n';
    if (open_line && !is_terminal(stdout)) fputc('\n', stderr);
    char guesses[80] = "";
    if (r->spec_ngram > 0 || r->draft)
        snprintf(guesses, sizeof guesses, "drafted %d, accepted %d (%.0f %%) | ", s->n_drafted, s->n_accepted,
                 s->n_drafted > 0 ? 100.0 * s->n_accepted / s->n_drafted : 0.0);
    fprintf(
        stderr,
        "%s[prompt %d tokens %.1f t/s | generated %d tokens %.1f t/s | %sfirst token %.0f ms | peak RAM %s "
        "| seed %llu]%s\n",
        color ? "\033[2m" : "", s->n_prompt, per_second(s->n_prompt, s->prompt_ns), s->n_generated,
        per_second(s->n_generated, s->generate_ns), guesses, (double)s->first_token_ns * 1e-6,
        size_text(peak_rss(), peak, sizeof peak), (unsigned long long)r->answer_seed, color ? "\033[0m" : "");
}

// --- generating ------------------------------------------------------------------------------------------

void answer_config(const run_state *r, uint64_t seed, tn_sampling *sampling, tn_generation_config *cfg)
{
    const options *o = r->t.opt;
    tn_generation_config_default(cfg);
    tn_sampling_default(sampling);
    sampling_fill(r, seed, sampling);
    cfg->sampling = sampling;
    int64_t n = opt_int(o, OPT_PREDICT);
    cfg->max_tokens = n < 0 ? -1 : (int32_t)n; // -2 is another tool's word for "until the context is full"
    cfg->stops = r->stops;
    cfg->n_stops = r->n_stops;
    cfg->bans = r->bans;
    cfg->n_bans = r->n_bans;
    cfg->grammar = r->grammar;
    cfg->json_schema = opt_flag(o, OPT_JSON_OBJECT) ? "{\"type\":\"object\"}" : r->schema;
    cfg->ignore_end = opt_flag(o, OPT_IGNORE_EOS);
    cfg->print_special = opt_flag(o, OPT_SHOW_SPECIAL);
}

static int make_generation(run_state *r, uint64_t seed, tn_generation **out)
{
    const options *o = r->t.opt;
    tn_generation_config cfg;
    tn_sampling sampling;
    answer_config(r, seed, &sampling, &cfg);
    cfg.spec_ngram = r->spec_ngram;
    cfg.draft = r->draft;
    cfg.draft_max = (int32_t)opt_int(o, OPT_DRAFT_MAX);
    cfg.draft_min = (int32_t)opt_int(o, OPT_DRAFT_MIN);
    cfg.context_full = r->full == FULL_SHIFT ? TN_CONTEXT_SHIFT : TN_CONTEXT_STOP;
    cfg.n_keep = (int32_t)opt_int(o, OPT_KEEP);
    tn_status status = tn_generation_create(r->session, &cfg, out);
    if (status == TN_OK) return 0;
    int code = tool_fail(&r->t, status, "%s", r->path);
    // Grammars and schemas are texts of the caller: with them no message is about the model file.
    return code == EXIT_MODEL && (r->grammar || cfg.json_schema) ? EXIT_USAGE : code;
}

static int generate(run_state *r, tn_generation *g)
{
    while (r->stop == TN_STOP_NONE) {
        tn_piece piece = {.struct_size = sizeof piece};
        tn_status status = tn_generation_step(g, &piece);
        if (piece.text) tool_trace_text(&r->t, piece.text, piece.n_text);
        if (status != TN_OK) return tool_fail(&r->t, status, "generating");
        if (!keep(r, &piece)) return fail(EXIT_MEMORY, "out of memory for the answer");
        r->stop = piece.stop;
        if (piece.n_dropped > 0)
            tool_info(&r->t, "the context was full: %d tokens behind the first ones were dropped",
                      piece.n_dropped);
        if (!show_piece(r, &piece) && r->stop == TN_STOP_NONE) r->stop = TN_STOP_CANCELLED;
    }
    return 0;
}

tn_status answer_prompt_end(const run_state *r, const int32_t *prompt, size_t n, char **end)
{
    size_t n_end, n_last = n < PROMPT_END ? n : PROMPT_END;
    *end = NULL;
    return tn_detokenize(r->model, prompt + n - n_last, n_last, TN_TEXT_PRINT_SPECIAL, end, &n_end);
}

// With a chat template the end of the prompt determines how the answer begins.
static int begin_thoughts(run_state *r, const int32_t *prompt, size_t n)
{
    char *end = NULL;
    bool look = r->templated && r->info.has_tokenizer && !opt_flag(r->t.opt, OPT_SHOW_SPECIAL);
    tn_status status = look ? answer_prompt_end(r, prompt, n, &end) : TN_OK;
    if (status != TN_OK) return tool_fail(&r->t, status, "the prompt");
    thoughts_begin(&r->thoughts, look ? end : "", look && opt_int(r->t.opt, OPT_THOUGHTS) == 1);
    tn_text_free(r->t.ctx, end);
    return 0;
}

int answer_generate(run_state *r, const int32_t *prompt, size_t n, uint64_t seed)
{
    tn_generation *g = NULL;
    int code = begin_thoughts(r, prompt, n);
    if (!code) code = make_generation(r, seed, &g);
    if (code) return code;
    r->n_text = r->n_whole = r->n_ids = 0;
    r->answer_seed = seed;
    r->n_prompt = n;
    r->stop = opt_int(r->t.opt, OPT_PREDICT) == 0 ? TN_STOP_LIMIT : TN_STOP_NONE;
    tn_status status = tn_generation_start(g, prompt, n);
    if (status == TN_ERR_CANCELLED)
        r->stop = TN_STOP_CANCELLED;
    else if (status != TN_OK)
        code = tool_fail(&r->t, status, "the prompt");
    if (!code) code = generate(r, g);
    tool_debug(&r->t, "%zu tokens of prompt, %zu of answer, stop: %s", n, r->n_ids,
               answer_stop_name(r->stop));
    r->stats.struct_size = sizeof r->stats;
    tn_generation_stats_get(g, &r->stats);
    tn_generation_destroy(&g);
    if (!code) show_end(r);
    return code;
}
