// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Engines on a device with memory of its own, which samples: each request gets exactly the tokens and log
// probabilities that the sampler of the host gives it alone, in batches of all kinds of samplers. Requests
// whose samplers the device does not have are among them.
#include "tests/models/engine_requests.h"
#include "tests/models/far_device.h"

#include <math.h>

enum { N_REQUESTS = 24, N_SEQ = 7, N_CTX = 256, TOP = 5, N_BIASES = 3 };
// The sampler of the host; the device, for one text; an engine.
enum { ON_HOST, ALONE, IN_ENGINE, RUNS };

typedef struct chat {
    int32_t prompt[40], n_prompt;
    tn_sampling sampling;
    int32_t bias_tokens[N_BIASES];
    float bias_values[N_BIASES];
    tn_generation_config cfg;
    int32_t tokens[RUNS][MAX_TEXT], n[RUNS], stops[RUNS];
    float logprobs[RUNS][MAX_TEXT];
    tn_logprob top[RUNS][MAX_TEXT][TOP];
    int32_t n_top[RUNS][MAX_TEXT];
    uint64_t id;
} chat;

static void describe_sampling(chat *c)
{
    static const char *const orders[] = {
        NULL,          "temperature;top_k;top_p;min_p", "top_k;top_p", "penalties;min_p;temperature",
        "temperature", "min_p;top_p;top_k;temperature"}; // the last one only the host has
    tn_sampling *s = &c->sampling;
    tn_sampling_default(s);
    s->samplers = orders[below(TN_COUNT(orders))];
    s->temperature = below(4) == 0 ? 0.0f : 0.2f * (float)(1 + below(12));
    s->top_k = below(2) * below(50);
    s->top_p = below(3) == 0 ? 1.0f : 0.1f * (float)below(10);
    s->min_p = below(2) == 0 ? 0.0f : 0.02f * (float)below(10);
    s->penalty_last_n = below(3) * 40 - 1;
    s->repeat_penalty = below(3) == 0 ? 1.2f : 1.0f;
    s->presence_penalty = below(3) == 0 ? 0.7f : 0.0f;
    s->frequency_penalty = below(3) == 0 ? -0.3f : 0.0f;
    s->typical_p = below(8) == 0 ? 0.8f : 1.0f; // the host's
    s->n_logprobs = below(3) == 0 ? below(TOP + 1) : 0;
    s->seed = (uint64_t)below(100000);
    s->n_bias = below(3) == 0 ? N_BIASES : 0;
    for (int32_t i = 0; i < N_BIASES; i++) {
        c->bias_tokens[i] = 10 * i + below(10);
        c->bias_values[i] = i == 0 ? -INFINITY : (float)below(9) - 4.0f;
    }
    s->bias_tokens = c->bias_tokens;
    s->bias_values = c->bias_values;
}

static void make_chat(chat *c, bool text)
{
    static const char *const grammars[] = {NULL, NULL, "root ::= [a-z ]{8,40}",
                                           "root ::= (\"a\" | \"b\")+ \"c\""};
    static const char *const stops[] = {"e", "th", "s "}; // found behind the launch of the next pass
    *c = (chat){.n_prompt = 1 + below(39)};
    for (int32_t i = 0; i < c->n_prompt; i++) c->prompt[i] = below(250);
    describe_sampling(c);
    tn_generation_config_default(&c->cfg);
    c->cfg.sampling = &c->sampling;
    c->cfg.max_tokens = 1 + below(60);
    if (text && below(2) == 0) c->cfg.stops = stops, c->cfg.n_stops = TN_COUNT(stops);
    c->cfg.grammar = text ? grammars[below(TN_COUNT(grammars))] : NULL;
}

static void keep(chat *c, int32_t which, const tn_piece *piece)
{
    int32_t at = c->n[which];
    c->stops[which] = piece->stop;
    if (piece->token < 0 || !TEST_CHECK(at < MAX_TEXT && piece->n_logprobs <= TOP)) return;
    c->tokens[which][at] = piece->token;
    c->logprobs[which][at] = piece->logprob;
    c->n_top[which][at] = piece->n_logprobs;
    for (int32_t i = 0; i < piece->n_logprobs; i++) c->top[which][at][i] = piece->logprobs[i];
    c->n[which]++;
}

// Returns whether the device of the session sampled.
static bool run_by_itself(tn_model *model, chat *c, int32_t which)
{
    tn_session_config scfg = session_config(N_CTX, 1);
    tn_session *s = NULL;
    tn_generation *g = NULL;
    TEST_CHECK_STATUS(tn_session_create(model, &scfg, &s), TN_OK);
    TEST_CHECK_STATUS(tn_generation_create(s, &c->cfg, &g), TN_OK);
    TEST_CHECK_STATUS(tn_generation_start(g, c->prompt, (size_t)c->n_prompt), TN_OK);
    for (tn_piece piece = {.struct_size = sizeof piece, .stop = TN_STOP_NONE}; piece.stop == TN_STOP_NONE;) {
        if (!TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK)) break;
        keep(c, which, &piece);
    }
    bool samples = s->sampling.n_rows > 0;
    tn_generation_destroy(&g);
    tn_session_destroy(&s);
    return samples;
}

static void compare(const chat *c, int32_t which, int32_t i)
{
    bool same = c->n[0] == c->n[which] && c->stops[0] == c->stops[which];
    for (int32_t k = 0; k < c->n[0] && same; k++) {
        same = c->tokens[0][k] == c->tokens[which][k] && c->n_top[0][k] == c->n_top[which][k];
        // The most probable token of a device comes with a probability that was added up in floats.
        float apart = c->sampling.temperature > 0.0f ? 0.0f : 1e-6f;
        same = same && fabsf(c->logprobs[0][k] - c->logprobs[which][k]) <= apart;
        for (int32_t t = 0; t < c->n_top[0][k] && same; t++)
            same = c->top[0][k][t].token == c->top[which][k][t].token &&
                   c->top[0][k][t].logprob == c->top[which][k][t].logprob;
    }
    if (!TEST_CHECK(same))
        printf("    request %d, run %d: %d tokens, by the host %d\n", i, which, c->n[which], c->n[0]);
}

static void submit_chat(tn_engine *e, chat *c)
{
    tn_request_config r;
    tn_request_config_default(&r);
    r.tokens = c->prompt, r.n_tokens = c->n_prompt, r.generation = &c->cfg, r.user = c;
    TEST_CHECK_STATUS(tn_engine_submit(e, &r, &c->id), TN_OK);
}

// What a session takes of the device was predicted, with what its sampling takes.
static void check_memory(tn_model *model, const tn_session_config *cfg, size_t used)
{
    tn_session_config padded = *cfg; // an engine has one sequence more on such a device
    tn_session_memory m = {.struct_size = sizeof m};
    padded.n_seq++;
    TEST_CHECK_STATUS(tn_session_predict(model, &padded, &m), TN_OK);
    const tn_device_memory *row = &m.devices[0];
    if (!TEST_CHECK(strcmp(row->device, "far") == 0 && row->total == used))
        printf("    %zu bytes used, %llu predicted\n", used, (unsigned long long)row->total);
}

// Returns how many rows the device sampled.
static int64_t run_all(tn_model *model, chat *chats)
{
    tn_session_config scfg = session_config(N_CTX * N_SEQ, N_SEQ);
    scfg.n_ctx_seq = N_CTX;
    tn_engine *e = make_engine(model, &scfg, 8);
    for (int32_t step = 0; step < 4000 && (step < N_REQUESTS || tn_engine_pending(e) > 0); step++) {
        const tn_engine_event *const *events;
        int32_t n;
        if (step < N_REQUESTS) submit_chat(e, &chats[step]);
        if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) break;
        for (int32_t i = 0; i < n; i++) {
            TEST_CHECK_STATUS(events[i]->status, TN_OK);
            keep(events[i]->user, IN_ENGINE, events[i]->piece);
        }
    }
    TEST_CHECK(tn_engine_pending(e) == 0);
    check_memory(model, &scfg, far.used);
    tn_engine_stats stats = {.struct_size = sizeof stats};
    tn_engine_stats_get(e, &stats);
    tn_engine_destroy(&e);
    return (int64_t)stats.n_sampled;
}

static tn_model *open_on(tn_context *ctx, tn_device *device, const tiny_shape *shape)
{
    size_t size;
    tn_model *model = NULL;
    tn_model_config cfg;
    tiny_file *f = malloc(sizeof *f);
    if (!f) abort();
    tn_model_config_default(&cfg);
    cfg.device = device;
    cfg.device_layers = shape->n_layers;
    tiny_describe(shape, f);
    void *data = tiny_write(ctx, f, &size);
    free(f);
    tiny_must(tn_model_open_memory(ctx, data, size, "tiny", &cfg, &model));
    return model;
}

enum { ROUNDS = 4 }; // in which the device samples; then one in which it cannot make the kernel

static struct {
    int64_t n_sampled, n_tokens;
    int32_t n_alone, n_strings;
} sums;

// Random requests, each by the host, alone and in an engine. Returns how many rows the device sampled.
static int64_t run_round(tn_context *ctx, int32_t round)
{
    tn_device *device = tn_context_device_by_name(ctx, "far"),
              *host = tn_device_of_role(ctx, TN_BACKEND_HOST);
    chat *chats = calloc(N_REQUESTS, sizeof *chats);
    if (!chats) abort();
    tiny_shape shape = tiny_shapes[TINY_LLAMA];
    shape.tokenizer = round % 2 == 0;
    tn_model *model = open_on(ctx, device, &shape), *by_host = open_on(ctx, host, &shape);
    random_state = 77u + (uint32_t)round;
    far.fails = round == ROUNDS ? FAR_REFUSE(sample) : 0;
    for (int32_t i = 0; i < N_REQUESTS; i++) {
        make_chat(&chats[i], shape.tokenizer);
        TEST_CHECK(!run_by_itself(by_host, &chats[i], ON_HOST));
        sums.n_alone += run_by_itself(model, &chats[i], ALONE) && round < ROUNDS;
    }
    int64_t sampled = run_all(model, chats);
    for (int32_t i = 0; i < N_REQUESTS; i++) {
        compare(&chats[i], ALONE, i);
        compare(&chats[i], IN_ENGINE, i);
        sums.n_tokens += round < ROUNDS ? chats[i].n[IN_ENGINE] : 0;
        sums.n_strings += chats[i].stops[IN_ENGINE] == TN_STOP_STRING;
    }
    tn_model_unref(&by_host);
    tn_model_unref(&model);
    free(chats);
    return sampled;
}

// The same requests where the device tunes: a plan that is made between the launch of a pass and its results
// would overwrite what that has computed.
static void test_tuning(void)
{
    tn_context *ctx = NULL;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.isa = "generic";
    cfg.blas = "off";
    cfg.n_threads = 1;
    cfg.tune = 1;
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    far_add(ctx, (size_t)1 << 28);
    for (int32_t round = 0; round < 2; round++) run_round(ctx, round);
    TEST_CHECK(far.n_tuned > 0);
    tn_context_destroy(&ctx);
}

// More penalised tokens than a pass has places for: the host selects, in an engine as alone.
static void test_many_penalised(tn_context *ctx)
{
    enum { N = 270, ANSWER = 20 };
    tn_device *devices[] = {tn_device_of_role(ctx, TN_BACKEND_HOST), tn_context_device_by_name(ctx, "far")};
    int32_t prompt[N], tokens[2][ANSWER] = {{0}};
    tn_sampling sampling;
    tn_generation_config cfg;
    tn_sampling_default(&sampling);
    tn_generation_config_default(&cfg);
    cfg.sampling = &sampling;
    sampling.temperature = 1.5f;
    sampling.repeat_penalty = 1.3f;
    sampling.penalty_last_n = -1;
    for (int32_t i = 0; i < N; i++) prompt[i] = i;
    for (int32_t d = 0; d < 2; d++) {
        tn_model *model = open_on(ctx, devices[d], &tiny_shapes[TINY_LLAMA]);
        tn_session_config scfg = session_config(2 * N, 1);
        tn_session *s = NULL;
        tn_generation *g = NULL;
        TEST_CHECK_STATUS(tn_session_create(model, &scfg, &s), TN_OK);
        TEST_CHECK_STATUS(tn_generation_create(s, &cfg, &g), TN_OK);
        TEST_CHECK_STATUS(tn_generation_start(g, prompt, N), TN_OK);
        for (int32_t i = 0; i < ANSWER; i++) {
            tn_piece piece = {.struct_size = sizeof piece};
            TEST_CHECK_STATUS(tn_generation_step(g, &piece), TN_OK);
            tokens[d][i] = piece.token;
            TEST_CHECK(tn_session_sampled(s, 0) == NULL && s->sampling.n_edits == 0);
        }
        tn_generation_destroy(&g);
        tn_session_destroy(&s);
        tn_model_unref(&model);
    }
    TEST_CHECK(memcmp(tokens[0], tokens[1], sizeof tokens[0]) == 0);
}

// A row that cannot be read ends its request, and the engine goes on. Banned texts need the row at once.
static void test_failing_read(tn_context *ctx)
{
    const char *ban = "e";
    tiny_shape shape = tiny_shapes[TINY_LLAMA];
    shape.tokenizer = true;
    tn_model *model = open_on(ctx, tn_context_device_by_name(ctx, "far"), &shape);
    tn_session_config scfg = session_config(N_CTX, 2);
    tn_engine *e = make_engine(model, &scfg, 0);
    for (int32_t round = 0; round < 2; round++) {
        plan p = {.n_prompt = 5, .max_tokens = 4, .prompt = {1, 2, 3, 4, 5}, .ban = ban};
        int32_t n_failed = 0;
        tn_sampling_default(&p.sampling);
        submit(e, &p);
        far.read_fails = round == 0 ? 3 : 0; // behind the most probable tokens and their probabilities
        for (int32_t step = 0; step < 100 && tn_engine_pending(e) > 0; step++) {
            const tn_engine_event *const *events;
            int32_t n;
            if (!TEST_CHECK_STATUS(tn_engine_step(e, &events, &n), TN_OK)) break;
            for (int32_t i = 0; i < n; i++) {
                if (round == 1) take_event(&p, 1, events[i]);
                if (round == 1 || events[i]->status == TN_OK) continue;
                n_failed++;
                const char *message = events[i]->message ? events[i]->message : "none";
                if (!TEST_CHECK(strstr(message, "a copy from far failed"))) printf("    %s\n", message);
            }
        }
        TEST_CHECK(tn_engine_pending(e) == 0 && far.read_fails == 0);
        TEST_CHECK(round == 0 ? n_failed == 1 : p.ended && p.n_got == 4);
    }
    tn_engine_destroy(&e);
    tn_model_unref(&model);
}

static char last_log[256];
static void note_log(void *user, int32_t level, const char *text)
{
    TN_UNUSED(user), TN_UNUSED(level);
    snprintf(last_log, sizeof last_log, "%s", text);
}

int main(void)
{
    counting count = {0};
    tn_context *ctx = NULL;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.isa = "generic";
    cfg.n_threads = 1;
    cfg.allocator = (tn_allocator){&count, counting_alloc, counting_free};
    cfg.log = note_log;
    cfg.user = &count;
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    far_add(ctx, (size_t)1 << 28);
    for (int32_t round = 0; round < ROUNDS; round++) sums.n_sampled += run_round(ctx, round);
    TEST_CHECK(run_round(ctx, ROUNDS) < sums.n_sampled / ROUNDS / 2); // what is left are argmax tokens
    TEST_CHECK(strstr(last_log, "far does not select tokens: the processor does") != NULL);
    printf("%lld of %lld tokens were sampled on the device, and by %d of %d texts alone\n",
           (long long)sums.n_sampled, (long long)sums.n_tokens, sums.n_alone, ROUNDS * N_REQUESTS);
    TEST_CHECK(sums.n_sampled > sums.n_tokens / 3 && sums.n_sampled < sums.n_tokens);
    TEST_CHECK(sums.n_strings > 0);
    TEST_CHECK(sums.n_alone > N_REQUESTS && sums.n_alone < ROUNDS * N_REQUESTS);
    test_many_penalised(ctx);
    test_failing_read(ctx);
    TEST_CHECK(far.n_tuned == 0);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    test_tuning();
    return test_done();
}
