// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the public functions: sequences of calls with valid, borderline and invalid arguments, of two
// threads at once that share a context and its models. Each thread has sessions, generations and an engine of
// its own. Statuses are those that the headers name; what fails leaves sequences as they were; the logits of
// a sequence are those of a session of its own that was fed the same tokens, bit for bit; nothing leaks. A
// call takes three bytes of the input.
#include "tests/fuzz/fuzz.h"
#include "tests/models/tiny_model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/engine.h>
#include <tenon/graph.h>
#include <tenon/text.h>

// LONGEST: the context of the models, which a session has that asks for none.
enum { MODELS = 3, SESSIONS = 3, SEQS = 3, CONTEXT = 70, LONGEST = 512, CALLS_MAX = 48, THREADS = 2 };

static struct {
    tn_context *ctx;
    tn_model *models[MODELS];
} fixture;

// What a model makes at its first use stays: the index of its vocabulary for grammars.
static void warm_up(tn_model *model)
{
    tn_session *s = NULL;
    tn_generation *g = NULL;
    tn_generation_config cfg;
    tn_generation_config_default(&cfg);
    cfg.grammar = "root ::= [a-z]+";
    fuzz_must(tn_session_create(model, NULL, &s) == TN_OK && tn_generation_create(s, &cfg, &g) == TN_OK);
    tn_generation_destroy(&g);
    tn_session_destroy(&s);
}

static void fixture_init(void)
{
    static const int32_t archs[MODELS] = {TINY_LLAMA, TINY_GEMMA3, TINY_QWEN35};
    tn_context_config cfg;
    if (fixture.ctx) return;
    tn_context_config_default(&cfg);
    cfg.n_threads = 2;
    cfg.deterministic = 1; // so that logits do not depend on how tokens come in batches
    fuzz_must(tn_context_create(&cfg, &fixture.ctx) == TN_OK);
    counting_start_threads(fixture.ctx);
    for (int32_t i = 0; i < MODELS; i++) {
        tiny_shape shape = tiny_shapes[archs[i]];
        shape.tokenizer = true;
        fixture.models[i] = tiny_model_open(fixture.ctx, &shape);
        warm_up(fixture.models[i]);
    }
}

// A session, and what its sequences hold.
typedef struct held {
    tn_session *s;
    tn_generation *g;
    const tn_model *model;
    int32_t n_ctx, n_seq;
    bool known[SEQS]; // tokens[] are those of the sequence, else a generation has added some
    int32_t n[SEQS], tokens[SEQS][LONGEST];
} held;

typedef struct actor {
    const uint8_t *data;
    size_t size;
    held sessions[SESSIONS];
    tn_engine *engine;
    int n_submitted;
} actor;

static void check_status(tn_status status, const char *call)
{
    char text[300] = "";
    bool documented = status == TN_OK || status == TN_ERR_ARG || status == TN_ERR_STATE ||
                      status == TN_ERR_CONTEXT_FULL || status == TN_ERR_UNSUPPORTED ||
                      status == TN_ERR_CANCELLED || status == TN_ERR_FORMAT || status == TN_ERR_MODEL ||
                      status == TN_ERR_TYPE || status == TN_ERR_BUSY;
    if (documented) return;
    tn_context_error(fixture.ctx, text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", call, tn_status_text(status), text);
    abort();
}

static tn_session *new_session(tn_model *model, int32_t n_ctx, int32_t n_seq, int32_t n_batch)
{
    tn_session *s = NULL;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = n_ctx;
    cfg.n_seq = n_seq;
    cfg.n_batch = n_batch;
    tn_status status = tn_session_create(model, &cfg, &s);
    check_status(status, "tn_session_create");
    fuzz_must((status == TN_OK) == (s != NULL));
    return s;
}

// --- sessions ------------------------------------------------------------------------------------

static void close_session(held *h)
{
    tn_generation_destroy(&h->g);
    tn_session_destroy(&h->s);
    *h = (held){0};
}

static void open_session(held *h, uint8_t a, uint8_t b)
{
    static const int32_t sizes[] = {CONTEXT, 1, 64, 65, 0, -1, 16}, batches[] = {0, 1, 3, 64, -1, 65537};
    close_session(h);
    h->model = fixture.models[a % MODELS];
    h->n_ctx = sizes[b % TN_COUNT(sizes)];
    h->n_seq = b / 64;
    h->s = new_session(fixture.models[a % MODELS], h->n_ctx, h->n_seq,
                       a < 200 ? 0 : batches[a % TN_COUNT(batches)]);
    fuzz_must(!h->s || (h->n_seq > 0 && h->n_ctx >= 0));
    for (int32_t q = 0; q < SEQS; q++) h->known[q] = true;
}

// The sequence has the length that it should have; where it does not because a batch failed, it is shorter.
static void check_length(held *h, int32_t q)
{
    int32_t n = tn_session_length(h->s, q);
    if (q < h->n_seq && h->known[q]) fuzz_must(n == h->n[q]);
}

static void check_all(held *h)
{
    for (int32_t q = 0; q < SEQS && h->s; q++) check_length(h, q);
}

static void feed(held *h, uint8_t a, uint8_t b)
{
    int32_t tokens[16], q = a % 4 - (a > 250), n = b % 20 - (b > 250 ? 30 : 0);
    bool valid = q >= 0 && q < h->n_seq && n > 0 && n <= 16;
    for (int32_t i = 0; i < 16; i++) tokens[i] = (a * 7 + b * 3 + i * 5) % TINY_MODEL_VOCAB;
    if (a % 16 == 15) tokens[b % 16] = b % 2 ? TINY_MODEL_VOCAB : -1, valid = false;
    if (n > 16) n = 16, valid = valid || (q >= 0 && q < h->n_seq && a % 16 != 15);
    tn_status status = tn_session_feed(h->s, q, tokens, n);
    check_status(status, "tn_session_feed");
    if (q < 0 || q >= SEQS || !h->known[q]) return;
    if (status == TN_OK && n > 0) {
        fuzz_must(q < h->n_seq && h->n[q] + n <= (h->n_ctx ? h->n_ctx : LONGEST));
        memcpy(h->tokens[q] + h->n[q], tokens, (size_t)n * sizeof *tokens);
        h->n[q] += n;
    } else if (q < h->n_seq) { // complete batches stay
        int32_t kept = tn_session_length(h->s, q);
        fuzz_must(kept >= h->n[q] && kept <= h->n[q] + TN_MAX(n, 0));
        if (kept > h->n[q]) memcpy(h->tokens[q] + h->n[q], tokens, (size_t)(kept - h->n[q]) * sizeof *tokens);
        h->n[q] = kept;
    }
    TN_UNUSED(valid);
}

static void cut(held *h, uint8_t a, uint8_t b)
{
    int32_t q = a % 4, n = b % (CONTEXT + 4) - 2;
    tn_status status = tn_session_truncate(h->s, q, n);
    check_status(status, "tn_session_truncate");
    if (status != TN_OK || q >= SEQS) return;
    fuzz_must(n >= 0 && q < h->n_seq);
    if (h->known[q]) fuzz_must(n <= h->n[q]);
    h->n[q] = n;
    if (n == 0) h->known[q] = true;
}

static void branch(held *h, uint8_t a, uint8_t b)
{
    int32_t from = a % 4, to = a / 4 % 4, n = b % (CONTEXT + 4) - 2;
    tn_status status = tn_session_branch(h->s, from, to, n);
    check_status(status, "tn_session_branch");
    if (status != TN_OK || from >= SEQS || to >= SEQS) return;
    fuzz_must(n >= 0 && from < h->n_seq && to < h->n_seq);
    if (from != to) memcpy(h->tokens[to], h->tokens[from], sizeof h->tokens[to]);
    h->known[to] = h->known[from] || n == 0;
    h->n[to] = n;
}

static void reuse(held *h, uint8_t a, uint8_t b)
{
    int32_t q = a % 4, from = a / 4 % SEQS, n = b % (CONTEXT + 2), n_reused = -1, tokens[LONGEST] = {0};
    memcpy(tokens, h->tokens[from], sizeof h->tokens[from]);
    tn_status status = tn_session_reuse(h->s, q, tokens, n, &n_reused);
    check_status(status, "tn_session_reuse");
    if (status != TN_OK || q >= SEQS) return;
    fuzz_must(n_reused >= 0 && n_reused <= n && n_reused == tn_session_length(h->s, q));
    memcpy(h->tokens[q], tokens, sizeof h->tokens[q]);
    h->known[q] = true;
    h->n[q] = n_reused;
}

static void save_and_load(held *h, held *other)
{
    char *bytes = NULL;
    size_t n = 0;
    if (!other->s) return;
    tn_status status = tn_session_save_memory(h->s, &bytes, &n);
    check_status(status, "tn_session_save_memory");
    if (status != TN_OK) return;
    status = tn_session_load_memory(other->s, bytes, n);
    check_status(status, "tn_session_load_memory");
    tn_text_free(fixture.ctx, bytes);
    if (h == other) fuzz_must(status == TN_OK);
    if (status != TN_OK || h == other) return;
    for (int32_t q = 0; q < SEQS && q < other->n_seq; q++) {
        other->known[q] = q < h->n_seq && h->known[q];
        other->n[q] = q < h->n_seq ? h->n[q] : 0;
        if (q >= h->n_seq) other->known[q] = true;
        memcpy(other->tokens[q], h->tokens[q], sizeof h->tokens[q]);
    }
}

// The logits behind one more token, against those of a session that has only this sequence.
static void compare(held *h, uint8_t a)
{
    int32_t q = a % SEQS, token = a % TINY_MODEL_VOCAB, best = -1;
    if (q >= h->n_seq || !h->known[q] || h->n[q] + 1 > LONGEST) return;
    tn_status status = tn_session_feed(h->s, q, &token, 1);
    check_status(status, "tn_session_feed");
    if (status != TN_OK) return;
    h->tokens[q][h->n[q]++] = token;
    tn_model *model = NULL;
    for (int32_t i = 0; i < MODELS; i++)
        if (fixture.models[i] == h->model) model = fixture.models[i];
    tn_session *s = new_session(model, LONGEST, 1, 0);
    fuzz_must(s && tn_session_feed(s, 0, h->tokens[q], h->n[q]) == TN_OK);
    const float *x = tn_session_logits(h->s, 0), *y = tn_session_logits(s, 0);
    fuzz_must(x && y && memcmp(x, y, TINY_MODEL_VOCAB * sizeof *x) == 0);
    check_status(tn_session_best(h->s, 0, &best, NULL), "tn_session_best");
    fuzz_must(best >= 0 && best < TINY_MODEL_VOCAB);
    fuzz_must(tn_session_best(h->s, 1, &best, NULL) == TN_ERR_STATE);
    tn_session_destroy(&s);
}

// --- generations and engines -------------------------------------------------------------------------------

static void set_generation(tn_generation_config *cfg, tn_sampling *sampling, uint8_t a, uint8_t b)
{
    static const char *const grammars[] = {NULL, "root ::= [a-z]+", "root ::= \"hello\"", "root ::= (", ""};
    static const char *const stops[] = {"he", "", "o"};
    tn_generation_config_default(cfg);
    tn_sampling_default(sampling);
    cfg->sampling = sampling;
    cfg->seq = b % 8 == 7 ? -1 : b % SEQS;
    cfg->max_tokens = b % 16 - 1;
    cfg->grammar = grammars[a % TN_COUNT(grammars)];
    cfg->context_full = b / 16 % 3;
    cfg->n_keep = b / 32 - 1;
    if (a & 16) cfg->stops = stops, cfg->n_stops = b % 4;
    if (a & 32) cfg->bans = stops + 2, cfg->n_bans = 1;
    cfg->spec_ngram = a & 64 ? b % 4 : 0;
    sampling->temperature = a & 128 ? (float)b / 64.0f : 0.0f;
    sampling->top_k = b % 5 - 1;
    sampling->n_logprobs = b % 3;
}

static void open_generation(held *h, uint8_t a, uint8_t b)
{
    tn_generation_config cfg;
    tn_sampling sampling;
    tn_generation_destroy(&h->g);
    set_generation(&cfg, &sampling, a, b);
    tn_status status = tn_generation_create(h->s, &cfg, &h->g);
    check_status(status, "tn_generation_create");
    fuzz_must((status == TN_OK) == (h->g != NULL));
}

static void generate(held *h, uint8_t a, uint8_t b)
{
    int32_t ids[8];
    tn_piece piece = {.struct_size = sizeof piece};
    if (!h->g) return;
    for (int32_t i = 0; i < 8; i++) ids[i] = (a + b * i) % (TINY_MODEL_VOCAB + (a % 16 == 0));
    for (int32_t q = 0; q < SEQS; q++) h->known[q] = false; // it may use any of them
    tn_status status = a % 2 ? tn_generation_prompt(h->g, ids, b % 9) : tn_generation_start(h->g, ids, b % 9);
    check_status(status, "tn_generation_prompt");
    for (int32_t i = 0; i < b % 6; i++) {
        status = tn_generation_step(h->g, &piece);
        check_status(status, "tn_generation_step");
        if (status != TN_OK || piece.stop != TN_STOP_NONE) break;
        fuzz_must(piece.token >= 0 && piece.token < TINY_MODEL_VOCAB);
    }
}

static void step_engine(actor *x, uint8_t n)
{
    const tn_engine_event *const *events;
    int32_t n_events = 0;
    for (int32_t i = 0; i < n && x->engine; i++) {
        tn_status status = tn_engine_step(x->engine, &events, &n_events);
        check_status(status, "tn_engine_step");
        for (int32_t k = 0; k < n_events && status == TN_OK; k++) {
            check_status(events[k]->status, "event of an engine");
            x->n_submitted -= events[k]->status != TN_OK || events[k]->piece->stop != TN_STOP_NONE;
        }
        fuzz_must(x->n_submitted >= 0);
    }
}

static void submit(actor *x, uint8_t a, uint8_t b)
{
    int32_t ids[40];
    uint64_t id = 0;
    tn_request_config r;
    tn_generation_config cfg;
    tn_sampling sampling;
    if (!x->engine) {
        tn_engine_config e;
        tn_session_config s;
        tn_engine_config_default(&e);
        tn_session_config_default(&s);
        s.n_ctx = 192;
        s.n_seq = 1 + a % 4;
        e.session = &s;
        e.n_waiting = 3;
        check_status(tn_engine_create(fixture.models[b % MODELS], &e, &x->engine), "tn_engine_create");
        x->n_submitted = 0;
        if (!x->engine) return;
    }
    set_generation(&cfg, &sampling, a, b);
    if (cfg.max_tokens < 0) cfg.max_tokens = 4;
    for (int32_t i = 0; i < 40; i++) ids[i] = (a * i + b) % (TINY_MODEL_VOCAB + (b % 16 == 1));
    tn_request_config_default(&r);
    r.tokens = ids;
    r.n_tokens = a % 42;
    r.n_tokens = TN_MIN(r.n_tokens, 40);
    r.generation = &cfg;
    r.priority = b % 3 == 0 ? 2000 : b % 7;
    tn_status status = tn_engine_submit(x->engine, &r, &id);
    check_status(status, "tn_engine_submit");
    fuzz_must((status == TN_OK) == (id != 0));
    x->n_submitted += status == TN_OK;
    if (a % 8 == 1) tn_engine_cancel(x->engine, b % 2 ? id : id + 1);
    step_engine(x, b % 4);
}

// --- texts ---------------------------------------------------------------------------------------

static void use_text(const uint8_t *text, size_t n, uint8_t a)
{
    const tn_model *model = fixture.models[a % MODELS];
    int32_t *ids = NULL, bad[] = {TINY_MODEL_VOCAB, -1, 5};
    char *out = NULL;
    size_t n_ids = 0, n_out = 0;
    tn_status status = tn_tokenize(model, (const char *)text, n, a / 4 % 8, &ids, &n_ids);
    check_status(status, "tn_tokenize");
    if (status == TN_OK) check_status(tn_detokenize(model, ids, n_ids, a % 4, &out, &n_out), "tn_detokenize");
    if (ids) tn_tokens_free(model, ids);
    if (out) tn_text_free(fixture.ctx, out);
    out = NULL;
    status = tn_detokenize(model, bad, 3, 0, &out, &n_out);
    check_status(status, "tn_detokenize");
    if (out) tn_text_free(fixture.ctx, out);
}

// --- sequences of calls --------------------------------------------------------------------------

static void act(actor *x, size_t at)
{
    uint8_t op = x->data[at], a = x->data[at + 1], b = x->data[at + 2];
    held *h = &x->sessions[op / 16 % SESSIONS], *other = &x->sessions[a % SESSIONS];
    if (!h->s) {
        open_session(h, a, b);
        return;
    }
    switch (op % 16) {
    case 0:
        close_session(h);
        break;
    case 1:
    case 2:
    case 3:
        feed(h, a, b);
        break;
    case 4:
        cut(h, a, b);
        break;
    case 5:
        branch(h, a, b);
        break;
    case 6:
        reuse(h, a, b);
        break;
    case 7:
        save_and_load(h, other);
        break;
    case 8:
    case 9:
        compare(h, a);
        break;
    case 10:
        open_generation(h, a, b);
        break;
    case 11:
        generate(h, a, b);
        break;
    case 12:
        submit(x, a, b);
        break;
    case 13:
        if (a % 8 == 0) tn_engine_destroy(&x->engine);
        step_engine(x, b % 8);
        break;
    case 14:
        tn_session_cancel(h->s, a % 2);
        break;
    default:
        use_text(x->data + at, x->size - at, a);
        break;
    }
    check_all(h);
}

static void *run_actor(void *arg)
{
    actor *x = arg;
    for (size_t at = 0; at + 3 <= x->size && at < 3 * CALLS_MAX; at += 3) act(x, at);
    tn_engine_destroy(&x->engine);
    for (int32_t i = 0; i < SESSIONS; i++) close_session(&x->sessions[i]);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static actor actors[THREADS];
    pthread_t thread;
    if (size < 6) return 0;
    fixture_init();
    fuzz_cost cost = fuzz_begin(fixture.ctx);
    size_t half = data[0] % 2 ? (size - 1) / 2 : size - 1; // one thread, or two
    uint8_t *copy = fuzz_copy(data + 1, size - 1);
    actors[0] = (actor){.data = copy, .size = half};
    actors[1] = (actor){.data = copy + half, .size = size - 1 - half};
    bool two = actors[1].size > 0 && pthread_create(&thread, NULL, run_actor, &actors[1]) == 0;
    run_actor(&actors[0]);
    if (two) pthread_join(thread, NULL);
    free(copy);
    fuzz_end(&cost, size << 12); // sequences of calls compute: their time is no matter of parsing
    return 0;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    size_t n = 1 + 3 * (2 + fuzz_random(state) % 40);
    if (max < n) return 0;
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(fuzz_random(state) >> 16);
    for (size_t i = 1; i + 3 <= n && i < 10; i += 3)
        out[i + 2] = (uint8_t)(0x40 | (out[i + 2] & 0xc0)); // sessions that are
    return n;
}

#include "tests/fuzz/fuzz_main.h"
