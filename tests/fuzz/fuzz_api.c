// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the public functions: sequences of calls with valid, borderline and invalid arguments, of two
// threads at once that share a context and its models. Each thread has sessions, generations and an engine of
// its own. Statuses are those that the headers name; what fails leaves sequences as they were; the logits of
// a sequence are those of a session of its own, in another context, that was fed the same tokens, bit for
// bit; nothing leaks. A call takes three bytes of the input.
//
// Most of the time goes into plans: those of a new session, and one for each number of tokens that are fed at
// once. So the models have one or two layers and short contexts, few numbers of tokens are common, and
// sessions and engines that a sequence of calls leaves behind are emptied and used by later ones. After some
// sequences all of them are closed, and nothing may be left.
#include "tests/fuzz/fuzz.h"
#include "tests/models/tiny_model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/engine.h>
#include <tenon/graph.h>
#include <tenon/text.h>

// LONGEST: the context of the models, which a session has that asks for none.
enum { MODELS = 3, SESSIONS = 3, SEQS = 3, CONTEXT = 70, LONGEST = 96, CALLS_MAX = 48, THREADS = 2 };
// KEPT: sessions that a thread keeps for later sequences, for at most EPOCH sequences.
enum { KEPT = 40, EPOCH = 1024 };
// What a sequence of calls may take of the processor, and all that is open of memory.
enum { SECONDS_MAX = 10, MEMORY_MAX = 256 << 20 };

// What a session was created with.
typedef struct session_shape {
    int32_t model, n_ctx, n_seq, n_batch;
} session_shape;

static struct {
    tn_context *ctx;
    tn_model *models[MODELS];
    tn_context *other; // of the sessions that results are compared with
    struct kept {
        tn_session *references[MODELS], *sessions[KEPT];
        session_shape shapes[KEPT];
        tn_engine *engines[MODELS];
        int32_t next; // the session that makes place for another one
    } kept[THREADS];
    size_t memory; // of the context without sessions
    int32_t n_sequences;
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

// One or two layers: plain attention; a window and none; a recurrent layer and attention.
static tn_model *open_model(tn_context *ctx, int32_t i)
{
    static const int32_t archs[MODELS] = {TINY_LLAMA, TINY_GEMMA3, TINY_QWEN3NEXT},
                         layers[MODELS] = {1, 2, 2};
    static const uint8_t slides[] = {1, 0};
    tiny_shape shape = tiny_shapes[archs[i]];
    tn_model *model = NULL;
    size_t size;
    tiny_file *f = malloc(sizeof *f);
    fuzz_must(f != NULL);
    shape.tokenizer = true;
    shape.n_layers = layers[i];
    shape.n_ctx = LONGEST;
    shape.n_ff = 32;
    tiny_describe(&shape, f);
    if (archs[i] == TINY_GEMMA3)
        tiny_array(f, "attention.sliding_window_pattern", TN_GGUF_BOOL, slides, TN_COUNT(slides));
    void *file = tiny_write(ctx, f, &size);
    tiny_must(tn_model_open_memory(ctx, file, size, "tiny", NULL, &model));
    free(f);
    return model;
}

static tn_context *new_context(void)
{
    tn_context *ctx = NULL;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = 2;
    cfg.deterministic = 1; // so that logits do not depend on how tokens come in batches
    fuzz_must(tn_context_create(&cfg, &ctx) == TN_OK);
    counting_start_threads(ctx);
    return ctx;
}

static void fixture_init(void)
{
    if (fixture.ctx) return;
    fixture.ctx = new_context();
    fixture.other = new_context();
    for (int32_t i = 0; i < MODELS; i++) {
        fixture.models[i] = open_model(fixture.ctx, i);
        warm_up(fixture.models[i]);
        tn_model *model = open_model(fixture.other, i);
        for (int32_t t = 0; t < THREADS; t++)
            fuzz_must(tn_session_create(model, NULL, &fixture.kept[t].references[i]) == TN_OK);
    }
    fixture.memory = tn_context_memory(fixture.ctx);
}

// A session, and what its sequences hold.
typedef struct held {
    tn_session *s;
    tn_generation *g;
    session_shape shape;
    bool common;      // its shape
    bool known[SEQS]; // tokens[] are those of the sequence, else a generation has added some
    int32_t n[SEQS], tokens[SEQS][LONGEST];
} held;

typedef struct actor {
    int32_t thread;
    const uint8_t *data;
    size_t size;
    held sessions[SESSIONS];
    tn_engine *engine;
    int32_t engine_model, n_submitted;
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

// --- sessions ------------------------------------------------------------------------------------

static void close_session(held *h)
{
    tn_generation_destroy(&h->g);
    tn_session_destroy(&h->s);
    *h = (held){0};
}

// A session of this shape that an earlier sequence has used, or NULL.
static tn_session *take_kept(struct kept *k, const session_shape *shape)
{
    for (int32_t i = 0; i < KEPT; i++) {
        tn_session *s = k->sessions[i];
        if (!s || memcmp(&k->shapes[i], shape, sizeof *shape) != 0) continue;
        k->sessions[i] = NULL;
        return s;
    }
    return NULL;
}

// Empties the session for a later one of the same shape. Those of rare shapes are closed.
static void keep_session(struct kept *k, held *h)
{
    tn_generation_destroy(&h->g);
    if (!h->s || !h->common) {
        close_session(h);
        return;
    }
    tn_session_cancel(h->s, 0);
    for (int32_t q = 0; q < h->shape.n_seq; q++) fuzz_must(tn_session_truncate(h->s, q, 0) == TN_OK);
    int32_t at = 0;
    while (at < KEPT && k->sessions[at]) at++;
    if (at == KEPT) at = k->next++ % KEPT;
    tn_session_destroy(&k->sessions[at]);
    k->sessions[at] = h->s;
    k->shapes[at] = h->shape;
    *h = (held){0};
}

static void open_session(actor *x, held *h, uint8_t a, uint8_t b)
{
    // Mostly one of few valid shapes: these are found among the sessions that earlier sequences kept.
    static const session_shape common[16] = {
        {0, CONTEXT, 3, 0}, {0, CONTEXT, 3, 0}, {1, CONTEXT, 3, 0}, {1, CONTEXT, 3, 0},
        {2, CONTEXT, 3, 0}, {2, CONTEXT, 3, 0}, {0, CONTEXT, 1, 0}, {1, CONTEXT, 1, 3},
        {2, CONTEXT, 1, 3}, {0, 64, 2, 0},      {1, 65, 2, 16},     {2, 64, 2, 1},
        {0, 0, 3, 3},       {1, 0, 1, 64},      {2, 1, 1, 0},       {0, 16, 1, 0}};
    static const int32_t sizes[] = {CONTEXT, 1, 64, 65, 0, -1, 16}, batches[] = {0, 1, 3, 64, -1, 65537};
    close_session(h);
    session_shape shape = common[b % 16];
    h->common = a < 248;
    if (!h->common)
        shape =
            (session_shape){b % MODELS, sizes[b % TN_COUNT(sizes)], b / 64, batches[a % TN_COUNT(batches)]};
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = shape.n_ctx;
    cfg.n_seq = shape.n_seq;
    cfg.n_batch = shape.n_batch;
    h->shape = shape;
    h->s = take_kept(&fixture.kept[x->thread], &shape);
    tn_status status = h->s ? TN_OK : tn_session_create(fixture.models[shape.model], &cfg, &h->s);
    check_status(status, "tn_session_create");
    fuzz_must((status == TN_OK) == (h->s != NULL));
    fuzz_must(!h->s || (shape.n_seq > 0 && shape.n_ctx >= 0));
    for (int32_t q = 0; q < SEQS; q++) h->known[q] = true;
}

// The sequence has the length that it should have; where it does not because a batch failed, it is shorter.
static void check_length(held *h, int32_t q)
{
    int32_t n = tn_session_length(h->s, q);
    if (q < h->shape.n_seq && h->known[q]) fuzz_must(n == h->n[q]);
}

static void check_all(held *h)
{
    for (int32_t q = 0; q < SEQS && h->s; q++) check_length(h, q);
}

// Numbers of tokens that are mostly the same, so that their plans are there.
static int32_t count_of(uint8_t b)
{
    static const uint8_t common[] = {1, 4, 16, 1, 2, 4, 16, 1};
    return b < 224 ? common[b % TN_COUNT(common)] : b - 224;
}

static void feed(held *h, uint8_t a, uint8_t b)
{
    int32_t tokens[16], q = a % 4 - (a > 250), n = count_of(b) - (b > 250 ? 30 : 0);
    bool valid = q >= 0 && q < h->shape.n_seq && n > 0 && n <= 16;
    for (int32_t i = 0; i < 16; i++) tokens[i] = (a * 7 + b * 3 + i * 5) % TINY_MODEL_VOCAB;
    if (a % 16 == 15) tokens[b % 16] = b % 2 ? TINY_MODEL_VOCAB : -1, valid = false;
    if (n > 16) n = 16, valid = valid || (q >= 0 && q < h->shape.n_seq && a % 16 != 15);
    tn_status status = tn_session_feed(h->s, q, tokens, n);
    check_status(status, "tn_session_feed");
    if (q < 0 || q >= SEQS || !h->known[q]) return;
    if (status == TN_OK && n > 0) {
        fuzz_must(q < h->shape.n_seq && h->n[q] + n <= (h->shape.n_ctx ? h->shape.n_ctx : LONGEST));
        memcpy(h->tokens[q] + h->n[q], tokens, (size_t)n * sizeof *tokens);
        h->n[q] += n;
    } else if (q < h->shape.n_seq) { // complete batches stay
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
    fuzz_must(n >= 0 && q < h->shape.n_seq);
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
    fuzz_must(n >= 0 && from < h->shape.n_seq && to < h->shape.n_seq);
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
    for (int32_t q = 0; q < SEQS && q < other->shape.n_seq; q++) {
        other->known[q] = q < h->shape.n_seq && h->known[q];
        other->n[q] = q < h->shape.n_seq ? h->n[q] : 0;
        if (q >= h->shape.n_seq) other->known[q] = true;
        memcpy(other->tokens[q], h->tokens[q], sizeof h->tokens[q]);
    }
}

// The logits behind one more token, against those of a session that has only this sequence.
static void compare(actor *x, held *h, uint8_t a)
{
    int32_t q = a % SEQS, token = a % TINY_MODEL_VOCAB, best = -1;
    if (q >= h->shape.n_seq || !h->known[q] || h->n[q] + 1 > LONGEST) return;
    tn_status status = tn_session_feed(h->s, q, &token, 1);
    check_status(status, "tn_session_feed");
    if (status != TN_OK) return;
    h->tokens[q][h->n[q]++] = token;
    tn_session *s = fixture.kept[x->thread].references[h->shape.model];
    fuzz_must(tn_session_truncate(s, 0, 0) == TN_OK);
    for (int32_t at = 0, n; at < h->n[q]; at += n) {
        n = h->n[q] - at >= 16 ? 16 : h->n[q] - at >= 4 ? 4 : 1;
        fuzz_must(tn_session_feed(s, 0, h->tokens[q] + at, n) == TN_OK);
    }
    const float *ours = tn_session_logits(h->s, 0), *theirs = tn_session_logits(s, 0);
    fuzz_must(ours && theirs && memcmp(ours, theirs, TINY_MODEL_VOCAB * sizeof *ours) == 0);
    check_status(tn_session_best(h->s, 0, &best, NULL), "tn_session_best");
    fuzz_must(best >= 0 && best < TINY_MODEL_VOCAB);
    fuzz_must(tn_session_best(h->s, 1, &best, NULL) == TN_ERR_STATE);
}

// --- generations and engines -------------------------------------------------------------------------------

static void set_generation(tn_generation_config *cfg, tn_sampling *sampling, uint8_t a, uint8_t b)
{
    // A generation with a grammar takes 10 MB, so most have none.
    static const char *const grammars[] = {"root ::= [a-z]+", "root ::= (", "", "root ::= \"hello\""};
    static const char *const stops[] = {"he", "", "o"};
    tn_generation_config_default(cfg);
    tn_sampling_default(sampling);
    cfg->sampling = sampling;
    cfg->seq = b % 8 == 7 ? -1 : b % SEQS;
    cfg->max_tokens = b % 16 - 1;
    cfg->grammar = a < 16 ? grammars[a % TN_COUNT(grammars)] : NULL;
    cfg->context_full = b / 16 % 3;
    cfg->n_keep = b / 32 - 1;
    if (a & 16) cfg->stops = stops, cfg->n_stops = b % 4;
    if (a & 32) cfg->bans = stops + 2, cfg->n_bans = 1;
    cfg->spec_ngram = a % 8 == 0 ? b % 4 : 0;
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
    int32_t n = TN_MIN(count_of(b), 8);
    tn_status status = a % 2 ? tn_generation_prompt(h->g, ids, n) : tn_generation_start(h->g, ids, n);
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

static void open_engine(actor *x, uint8_t a, uint8_t b)
{
    tn_engine_config e;
    tn_session_config s;
    tn_engine **kept = &fixture.kept[x->thread].engines[b % MODELS];
    x->engine = *kept;
    x->engine_model = b % MODELS;
    x->n_submitted = 0;
    *kept = NULL;
    if (x->engine) return;
    tn_engine_config_default(&e);
    tn_session_config_default(&s);
    s.n_ctx = 192;
    s.n_seq = 1 + a % 4;
    e.session = &s;
    e.n_waiting = 3;
    check_status(tn_engine_create(fixture.models[x->engine_model], &e, &x->engine), "tn_engine_create");
}

// An engine whose requests end soon is used by later sequences; others are closed amid their requests.
static void keep_engine(actor *x)
{
    for (int32_t i = 0; i < 8 && x->n_submitted > 0; i++) step_engine(x, 1);
    tn_engine **kept = &fixture.kept[x->thread].engines[x->engine_model];
    if (x->n_submitted > 0 || *kept) {
        tn_engine_destroy(&x->engine);
        return;
    }
    *kept = x->engine;
    x->engine = NULL;
}

static void submit(actor *x, uint8_t a, uint8_t b)
{
    int32_t ids[40];
    uint64_t id = 0;
    tn_request_config r;
    tn_generation_config cfg;
    tn_sampling sampling;
    if (!x->engine) open_engine(x, a, b);
    if (!x->engine) return;
    set_generation(&cfg, &sampling, a, b);
    if (cfg.max_tokens < 0) cfg.max_tokens = 4;
    for (int32_t i = 0; i < 40; i++) ids[i] = (a * i + b) % (TINY_MODEL_VOCAB + (b % 16 == 1));
    tn_request_config_default(&r);
    r.tokens = ids;
    r.n_tokens = count_of((uint8_t)(a * 5)) + (a < 32 ? 9 : 0);
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
    static const uint8_t which[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2};
    held *h = &x->sessions[which[op / 16]], *other = &x->sessions[a % SESSIONS];
    if (!h->s) {
        open_session(x, h, a, b);
        return;
    }
    switch (op % 16) {
    case 0: // most others of a shape are emptied: making one takes longer than all calls of a sequence
        if (a % 8 == 5)
            close_session(h);
        else
            keep_session(&fixture.kept[x->thread], h);
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
        compare(x, h, a);
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
    if (x->engine) keep_engine(x);
    for (int32_t i = 0; i < SESSIONS; i++) keep_session(&fixture.kept[x->thread], &x->sessions[i]);
    return NULL;
}

// Closes what the sequences have kept: what is left then was lost by one of them.
static void end_epoch(void)
{
    for (int32_t t = 0; t < THREADS; t++) {
        for (int32_t i = 0; i < KEPT; i++) tn_session_destroy(&fixture.kept[t].sessions[i]);
        for (int32_t i = 0; i < MODELS; i++) tn_engine_destroy(&fixture.kept[t].engines[i]);
    }
    fuzz_must(tn_context_memory(fixture.ctx) == fixture.memory);
    fixture.n_sequences = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static actor actors[THREADS];
    pthread_t thread;
    if (size < 6) return 0;
    fixture_init();
    double begin = fuzz_seconds();
    size_t half = data[0] % 2 ? (size - 1) / 2 : size - 1; // one thread, or two
    uint8_t *copy = fuzz_copy(data + 1, size - 1);
    actors[0] = (actor){.thread = 0, .data = copy, .size = half};
    actors[1] = (actor){.thread = 1, .data = copy + half, .size = size - 1 - half};
    bool two = actors[1].size > 0 && pthread_create(&thread, NULL, run_actor, &actors[1]) == 0;
    run_actor(&actors[0]);
    if (two) pthread_join(thread, NULL);
    free(copy);
    if (++fixture.n_sequences == EPOCH) end_epoch();
    fuzz_must(fuzz_seconds() - begin < SECONDS_MAX);
    fuzz_must(tn_context_memory_peak(fixture.ctx) < MEMORY_MAX);
    return 0;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    size_t n = 1 + 3 * (2 + fuzz_random(state) % 40);
    if (max < n) return 0;
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(fuzz_random(state) >> 16);
    for (size_t i = 1; i + 3 <= n && i < 10; i += 3) out[i + 1] &= 0x7f; // sessions that are
    return n;
}

#include "tests/fuzz/fuzz_main.h"
