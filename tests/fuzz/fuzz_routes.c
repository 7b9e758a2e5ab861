// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the server behind HTTP: `tenon serve` with a small model runs on a thread, and what stands here
// in place of its transport gives it requests. The first byte picks the path, the second the method and
// headers, the rest is the body. Every request is answered, never with the status of a failure of the server,
// errors are JSON, and the server goes on.
#include "models/text/grammar/json_read.h"
#include "tests/fuzz/fuzz.h"
#include "tests/models/tiny_model.h"
#include "tools/common.h"
#include "tools/server/http/transport.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WATCHES = 8, ANSWER_MS = 400, LOAD_MS = 60000 };

static const char *const route_paths[] = {"/v1/chat/completions",
                                          "/v1/completions",
                                          "/v1/responses",
                                          "/v1/embeddings",
                                          "/v1/rerank",
                                          "/tokenize",
                                          "/detokenize",
                                          "/apply-template",
                                          "/v1/chat/completions/input_tokens",
                                          "/api/chat",
                                          "/api/generate",
                                          "/api/embed",
                                          "/api/show",
                                          "/v1/models",
                                          "/v1/models/tiny",
                                          "/health",
                                          "/metrics",
                                          "/api/tags",
                                          "/api/ps",
                                          "/",
                                          "/nothing"};

struct transport {
    transport_config cfg;
    int wake, input, watches[WATCHES];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const uint8_t *data; // of the input that is being answered, NULL: none
    size_t size;
    transport *t;
    int status; // of the last answer
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

// --- in place of the transport -------------------------------------------------------------------

int transport_open(const transport_config *cfg, transport **out)
{
    transport *t = calloc(1, sizeof *t);
    fuzz_must(t != NULL);
    t->cfg = *cfg;
    t->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    t->input = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (int i = 0; i < WATCHES; i++) t->watches[i] = -1;
    fuzz_must(t->wake >= 0 && t->input >= 0);
    shared.t = t;
    *out = t;
    return 0;
}

void transport_close(transport **t)
{
    free(*t);
    *t = NULL;
}

void *transport_watch(transport *t, int fd)
{
    for (int i = 0; i < WATCHES; i++)
        if (t->watches[i] < 0) {
            t->watches[i] = fd;
            return &t->watches[i];
        }
    return NULL;
}

void transport_unwatch(void *watch)
{
    *(int *)watch = -1;
}

static void raise_fd(int fd)
{
    uint64_t one = 1;
    fuzz_must(write(fd, &one, sizeof one) == sizeof one);
}

void transport_wake(transport *t)
{
    raise_fd(t->wake);
}

void transport_drain(transport *t)
{
    (void)t;
}

int transport_n_open(const transport *t)
{
    (void)t;
    return 1;
}

int transport_n_busy(const transport *t)
{
    (void)t;
    return 1;
}

const char *transport_address(const transport *t)
{
    (void)t;
    return "http://127.0.0.1:1";
}

void exchange_begin(exchange *x, int status, const char *type, int64_t length)
{
    (void)type;
    fuzz_must(!x->status && status >= 200 && status < 600);
    x->status = status;
    x->streams = length < 0;
}

void exchange_write(exchange *x, const void *data, size_t n)
{
    fuzz_must(x->status && !x->ended && exchange_append(x, data, n));
}

void exchange_end(exchange *x)
{
    x->ended = true;
}

void exchange_abort(exchange *x)
{
    x->ended = x->closes = true;
}

// Lets the server do what is due, for some milliseconds at most.
static void work(transport *t, int wait_ms)
{
    uint64_t count;
    struct pollfd fds[WATCHES + 1];
    int n = 1;
    fds[0] = (struct pollfd){.fd = t->wake, .events = POLLIN};
    for (int i = 0; i < WATCHES; i++)
        if (t->watches[i] >= 0) fds[n++] = (struct pollfd){.fd = t->watches[i], .events = POLLIN};
    if (poll(fds, (nfds_t)n, wait_ms) > 0) {
        if (fds[0].revents) fuzz_must(read(t->wake, &count, sizeof count) == sizeof count);
        t->cfg.wake(t->cfg.user);
    }
    t->cfg.tick(t->cfg.user);
}

// --- requests ------------------------------------------------------------------------------------

static char *copy_text(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    fuzz_must(copy != NULL);
    return strcpy(copy, text);
}

static exchange *make_exchange(transport *t, const uint8_t *data, size_t size)
{
    exchange *x = calloc(1, sizeof *x);
    fuzz_must(x && size >= 2);
    const char *path = route_paths[data[0] % TN_COUNT(route_paths)];
    bool get = data[1] & 1 || data[0] % TN_COUNT(route_paths) >= 13;
    x->method = data[1] & 1 && data[1] & 2 ? HTTP_OPTIONS : get ? HTTP_GET : HTTP_POST;
    memcpy(x->path, path, strlen(path) + 1);
    x->headers[HEADER_HOST] = copy_text(data[1] & 4 && data[1] & 8 ? "elsewhere.example" : "127.0.0.1");
    if (data[1] & 16) x->headers[HEADER_ORIGIN] = copy_text(data[1] & 32 ? "http://evil.example" : "null");
    if (data[1] & 64) x->headers[HEADER_REQUEST_ID] = copy_text(data[1] & 128 ? "a\nb" : "id-1");
    x->headers[HEADER_CONTENT_TYPE] = copy_text("application/json");
    x->announced = get ? -1 : (int64_t)(size - 2);
    x->from_loopback = true;
    x->start_ns = tn_time_ns();
    x->owner = t;
    x->connection = x;
    return x;
}

// Text of an answer that is not a stream is JSON, of all but pages and metrics.
static void check_answer(const exchange *x)
{
    tn_arena arena;
    static tn_context *ctx;
    const tn_json *root;
    char message[300] = "";
    if (!ctx) fuzz_must(tn_context_create(NULL, &ctx) == TN_OK);
    if (x->status == 500 || (x->status >= 400 && !x->n_out && x->method != HTTP_HEAD)) {
        fprintf(stderr, "%s: status %d\n", x->path, x->status);
        abort();
    }
    if (x->status < 400) return;
    tn_arena_init(&arena, ctx);
    if (tn_json_read(&arena, "answer", x->out + EXCHANGE_PRE, x->n_out, &root) != TN_OK) {
        tn_context_error(ctx, message, sizeof message);
        fprintf(stderr, "%s: %s: %.*s\n", x->path, message, (int)x->n_out, x->out + EXCHANGE_PRE);
        abort();
    }
    tn_arena_fini(&arena);
}

static void answer(transport *t, const uint8_t *data, size_t size)
{
    exchange *x = make_exchange(t, data, size);
    t->cfg.head(t->cfg.user, x);
    if (!x->ended && x->method == HTTP_POST)
        fuzz_must(exchange_add_body(x, data + 2, size - 2, t->cfg.body_max));
    if (!x->ended && !x->body) fuzz_must(exchange_add_body(x, "", 0, 1));
    if (!x->ended) t->cfg.request(t->cfg.user, x);
    for (uint64_t end = tn_time_ns() + ANSWER_MS * 1000000ull; !x->ended && tn_time_ns() < end;) work(t, 2);
    if (x->ended && !x->closes) check_answer(x);
    shared.status = x->status;
    t->cfg.gone(t->cfg.user, x); // or the client leaves before the answer is complete
    exchange_free(x);
    work(t, 0);
}

void transport_run(transport *t, const volatile int *stop)
{
    while (!*stop) {
        pthread_mutex_lock(&shared.lock);
        const uint8_t *data = shared.data;
        pthread_mutex_unlock(&shared.lock);
        if (!data) {
            uint64_t count;
            struct pollfd fd = {.fd = t->input, .events = POLLIN};
            if (poll(&fd, 1, 5) > 0) (void)!read(t->input, &count, sizeof count);
            work(t, 0);
            continue;
        }
        answer(t, data, shared.size);
        pthread_mutex_lock(&shared.lock);
        shared.data = NULL;
        pthread_cond_signal(&shared.changed);
        pthread_mutex_unlock(&shared.lock);
    }
}

static void request(const uint8_t *data, size_t size)
{
    pthread_mutex_lock(&shared.lock);
    shared.data = data;
    shared.size = size;
    if (shared.t) raise_fd(shared.t->input);
    while (shared.data) pthread_cond_wait(&shared.changed, &shared.lock);
    pthread_mutex_unlock(&shared.lock);
}

// --- the server ----------------------------------------------------------------------------------

static void *serve(void *path)
{
    char *args[] = {path, "-c", "96", "-np", "2", "-t", "1", "-n", "8"};
    options o;
    fuzz_must(options_parse(&o, CMD_SERVE, (int)TN_COUNT(args), args) == 0);
    int code = cmd_serve(&o);
    fprintf(stderr, "the server has ended: %d\n", code);
    abort();
}

static void start(void)
{
    static char folder[] = "/tmp/tenon-fuzz-XXXXXX", path[64];
    static const uint8_t models[] = {13, 1};
    tn_context *ctx = NULL;
    tiny_file *f = malloc(sizeof *f);
    pthread_t thread;
    size_t size;
    fuzz_must(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/tiny.gguf", folder);
    FILE *file = fopen(path, "wb");
    fuzz_must(f && file && tn_context_create(NULL, &ctx) == TN_OK);
    tiny_shape shape = tiny_shapes[TINY_LLAMA];
    shape.tokenizer = true;
    tiny_describe(&shape, f);
    void *bytes = tiny_write(ctx, f, &size);
    fuzz_must(fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    tn_free(ctx, bytes);
    tn_context_destroy(&ctx);
    free(f);
    fuzz_must(pthread_create(&thread, NULL, serve, path) == 0);
    pthread_detach(thread);
    for (uint64_t end = tn_time_ns() + LOAD_MS * 1000000ull; shared.status != 200;) {
        fuzz_must(tn_time_ns() < end);
        request(models, sizeof models);
    }
    unlink(path);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    if (size < 2) return 0;
    if (!started) start();
    started = true;
    request(data, size);
    return 0;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    static const char *const fields[] = {
        "\"messages\":[{\"role\":\"user\",\"content\":\"he\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"he\"}]}]",
        "\"prompt\":\"hello\"",
        "\"prompt\":[1,2,3]",
        "\"input\":\"hello\"",
        "\"input\":[\"a\",\"b\"]",
        "\"query\":\"a\",\"documents\":[\"b\",\"c\"]",
        "\"content\":\"hello\"",
        "\"tokens\":[1,2,300]",
        "\"max_tokens\":4",
        "\"stream\":true",
        "\"temperature\":0.5",
        "\"n\":2",
        "\"stop\":[\"a\"]",
        "\"logprobs\":true,\"top_logprobs\":2",
        "\"response_format\":{\"type\":\"json_object\"}",
        "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a\",\"schema\":{}}}",
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{}}}]",
        "\"tool_choice\":\"required\"",
        "\"options\":{\"num_predict\":3,\"top_k\":4}",
        "\"format\":\"json\"",
        "\"logit_bias\":{\"5\":-100}",
        "\"seed\":-1",
        "\"model\":\"tiny\"",
        "\"grammar\":\"root ::= [a-z]\"",
        "\"keep_alive\":\"5m\"",
        "\"stream_options\":{\"include_usage\":true}",
        "\"a\":{\"b\":[null]}"};
    if (max < 64) return 0;
    size_t n = 2;
    out[0] = (uint8_t)(fuzz_random(state) >> 8);
    out[1] = fuzz_random(state) % 4 ? 0 : (uint8_t)(fuzz_random(state) >> 8);
    n = fuzz_put(out, n, max, "{");
    for (uint64_t k = 1 + fuzz_random(state) % 5; k > 0; k--) {
        n = fuzz_put(out, n, max, fields[fuzz_random(state) % TN_COUNT(fields)]);
        n = fuzz_put(out, n, max, k > 1 ? "," : "}");
    }
    return n;
}

#include "tests/fuzz/fuzz_main.h"
