// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Many servers behind a balancer: engines whose passes compute nothing but cost time, users who hold
// conversations, and the rules by which tools/server/haproxy.cfg and others choose the server. Reported are
// the share of prompt tokens found in the cache, how full the fullest server is, and the time to the first
// token; docs/pictures/make_servers.py draws them.
//     test_servers [RULE...] [SERVERS...]     a table of these rules, or of all; without numbers: a quick
//     check
#include "tests/models/engine_requests.h"

enum {
    USERS = 24,     // of each server
    REQUESTS = 12,  // of each user
    SEQUENCES = 16, // that a server runs at a time
    CACHE = 16384,  // tokens of a server
    CONTEXT = 1024, // tokens of a conversation
    TOKENS = 250,
    DOCUMENT = 256, // tokens that all conversations about a document begin with
    DOCUMENTS = 4,  // for each server
    POINTS = 256,   // of a server on the circle
    FACTOR = 100,   // of the bounds below
    MOST = 1024,    // servers
};
// Times are of an 8B model on a large GPU: a pass, and each of its tokens beyond.
static const uint64_t pass_ns = 8000000, token_ns = 25000, think_ns = 500000000, restart_ns = 2000000000;

// Where a request goes: to the servers in turn, to the one with the least in work, or by the circle; with a
// bound, in percent of the mean, to the next one that has less in work than that.
typedef struct rule {
    const char *name;
    bool circle, least;
    int32_t bound;
} rule;
enum { IN_TURN, LEAST, PLAIN, BOUND_2, BOUND_125 };
static const rule rules[] = {
    [IN_TURN] = {"in-turn", false, false, 0},
    [LEAST] = {"least", false, true, 0},
    [PLAIN] = {"plain", true, false, 0},
    [BOUND_2] = {"bound-2", true, false, 200},
    [BOUND_125] = {"bound-1.25", true, false, 125},
};

typedef struct server {
    tn_engine *engine;
    uint64_t now_ns;
    int32_t load; // requests in work
    bool stepping, up;
} server;

typedef struct user {
    uint8_t text[CONTEXT];
    int32_t n, n_prompt, n_requests, server;
    uint64_t key, id, asked_ns; // id: of the request in work, 0: none
    bool begun;
} user;

typedef struct moment {
    uint64_t time_ns;
    int32_t who; // a user; or, below 0, server -1 - who
} moment;

typedef struct figures {
    int64_t n_prompt, n_reused, n_done, n_asked, n_lost, n_moved, n_samples;
    double fullest;   // sum over samples of the fullest server's load, relative to the mean
    double *first_ms; // of each request
    int32_t n_first;
} figures;

static struct {
    const rule *rule;
    tn_model *model;
    server *servers;
    user *users;
    moment *heap;
    struct point {
        uint64_t at;
        int32_t server;
    } * circle;
    int32_t n, n_users, n_heap, n_up, load, turn;
    bool documents, faults;
    int32_t n_faults;  // stops and restarts so far
    uint64_t fault_ns; // of the last one
    uint64_t now_ns;   // of the pass that runs
    uint32_t n_conversations;
    double *popular; // sums of the probabilities of documents
    figures f;
} world;

// --- the device ----------------------------------------------------------------------------------------

// Like fake_run.h, but nothing reads or writes the memory of a session, so that a thousand of them fit: what
// a text says does not matter here.
static float logits[64 * TINY_MODEL_VOCAB];

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

tn_status __wrap_tn_session_run(tn_session *s, const tn_plan_key *key);
tn_status __wrap_tn_session_run(tn_session *s, const tn_plan_key *key)
{
    if (key->n_outputs > (int32_t)(TN_COUNT(logits) / TINY_MODEL_VOCAB)) abort();
    world.now_ns += pass_ns + token_ns * (uint64_t)key->n_tokens;
    memset(logits, 0, (size_t)key->n_outputs * TINY_MODEL_VOCAB * sizeof *logits);
    for (int32_t i = 0; i < key->n_outputs; i++) logits[i * TINY_MODEL_VOCAB + below(TOKENS)] = 1.0f;
    s->n_outputs = key->n_outputs;
    s->logits = logits;
    return TN_OK;
}

uint64_t __wrap_tn_time_ns(void);
uint64_t __wrap_tn_time_ns(void)
{
    return world.now_ns;
}

tn_status __wrap_tn_buffer_zero(tn_buffer *b, size_t offset, size_t size);
tn_status __wrap_tn_buffer_zero(tn_buffer *b, size_t offset, size_t size)
{
    (void)b, (void)offset, (void)size;
    return TN_OK;
}

tn_status __wrap_tn_buffer_zero_rows(tn_buffer *b, size_t offset, size_t size, size_t pitch, size_t rows);
tn_status __wrap_tn_buffer_zero_rows(tn_buffer *b, size_t offset, size_t size, size_t pitch, size_t rows)
{
    (void)b, (void)offset, (void)size, (void)pitch, (void)rows;
    return TN_OK;
}

static void open_server(server *s)
{
    tn_session_config cfg = session_config(CACHE, SEQUENCES);
    tn_engine_config e;
    cfg.n_ctx_seq = CONTEXT;
    cfg.n_batch = 256;
    tn_engine_config_default(&e);
    e.session = &cfg;
    e.n_waiting = 1 << 15; // as many as there are users
    if (!TEST_CHECK_STATUS(tn_engine_create(world.model, &e, &s->engine), TN_OK)) abort();
    s->up = true;
    world.n_up++;
}

// --- moments, earliest first ---------------------------------------------------------------------------

static void add_moment(uint64_t time_ns, int32_t who)
{
    moment *h = world.heap;
    int32_t i = world.n_heap++;
    for (; i > 0 && h[(i - 1) / 2].time_ns > time_ns; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = (moment){time_ns, who};
}

static moment next_moment(void)
{
    moment *h = world.heap, first = h[0], last = h[--world.n_heap];
    int32_t i = 0;
    for (int32_t k; (k = 2 * i + 1) < world.n_heap; i = k) {
        if (k + 1 < world.n_heap && h[k + 1].time_ns < h[k].time_ns) k++;
        if (h[k].time_ns >= last.time_ns) break;
        h[i] = h[k];
    }
    h[i] = last;
    return first;
}

// --- the balancer --------------------------------------------------------------------------------------

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const struct point *)a)->at, y = ((const struct point *)b)->at;
    return (x > y) - (x < y);
}

static void make_circle(void)
{
    for (int32_t i = 0; i < world.n * POINTS; i++)
        world.circle[i] = (struct point){mix(mix(7, (uint64_t)i), 3), i / POINTS};
    qsort(world.circle, (size_t)world.n * POINTS, sizeof *world.circle, by_place);
}

// What a server may have in work, with the request that comes.
static int32_t bound(void)
{
    return (int32_t)(((int64_t)(world.load + 1) * world.rule->bound / FACTOR + world.n_up - 1) / world.n_up);
}

static int32_t on_circle(uint64_t key)
{
    int32_t n = world.n * POINTS, low = 0, high = n, most = world.rule->bound > 0 ? bound() : INT32_MAX;
    uint64_t at = mix(mix(11, key), 5);
    while (low < high) {
        int32_t half = (low + high) / 2;
        if (world.circle[half].at < at)
            low = half + 1;
        else
            high = half;
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t q = world.circle[(low + i) % n].server;
        if (world.servers[q].up && world.servers[q].load < most) return q;
    }
    abort();
}

static int32_t choose_server(uint64_t key)
{
    if (world.rule->circle) return on_circle(key);
    int32_t best = -1;
    for (int32_t i = 0; i < world.n; i++) {
        int32_t q = (world.turn + 1 + i) % world.n;
        if (!world.servers[q].up) continue;
        if (best < 0 || world.servers[q].load < world.servers[best].load) best = q;
        if (!world.rule->least) break;
    }
    world.turn = best;
    return best;
}

// --- users ---------------------------------------------------------------------------------------------

static double uniform(void)
{
    return ((double)below(1 << 23) + 0.5) / (1 << 23);
}

// Log-normal with this mean.
static int32_t length(double mean)
{
    const double sigma = 0.7, turn = 6.283185307179586;
    double normal = sqrt(-2.0 * log(uniform())) * cos(turn * uniform());
    double n = exp(log(mean) - sigma * sigma / 2 + sigma * normal);
    return n < 1 ? 1 : n > 4 * mean ? (int32_t)(4 * mean) : (int32_t)n;
}

static void say(user *u, int32_t n)
{
    for (int32_t i = 0; i < n && u->n < CONTEXT - 1; i++) u->text[u->n++] = (uint8_t)below(TOKENS);
}

static void begin_conversation(user *u)
{
    u->n = 0;
    u->key = ++world.n_conversations;
    if (!world.documents) return;
    double wanted = uniform();
    int32_t low = 0, high = DOCUMENTS * world.n - 1;
    while (low < high) {
        int32_t half = (low + high) / 2;
        if (world.popular[half] < wanted)
            low = half + 1;
        else
            high = half;
    }
    u->key = (uint64_t)low;
    for (; u->n < DOCUMENT; u->n++) u->text[u->n] = (uint8_t)(mix(u->key + 1, (uint64_t)u->n + 1) % TOKENS);
}

// Document i is asked for as often as 1 / (i + 1).
static void make_documents(void)
{
    double sum = 0.0, total = 0.0;
    for (int32_t i = 0; i < DOCUMENTS * world.n; i++) total += 1.0 / (i + 1);
    for (int32_t i = 0; i < DOCUMENTS * world.n; i++) world.popular[i] = sum += 1.0 / (i + 1) / total;
}

// The request goes to a server; also again, to another one, when it had not begun.
static void send(user *u, uint64_t now_ns)
{
    int32_t tokens[CONTEXT];
    tn_generation_config g;
    tn_request_config r;
    tn_sampling greedy;
    tn_sampling_default(&greedy);
    tn_generation_config_default(&g);
    tn_request_config_default(&r);
    greedy.temperature = 0.0f;
    g.sampling = &greedy;
    g.max_tokens = TN_MIN(length(32), CONTEXT - u->n);
    for (int32_t i = 0; i < u->n; i++) tokens[i] = u->text[i];
    r.tokens = tokens, r.n_tokens = u->n, r.generation = &g, r.user = u;
    u->server = choose_server(u->key);
    u->begun = false;
    u->n_prompt = u->n;
    server *s = &world.servers[u->server];
    if (tn_engine_submit(s->engine, &r, &u->id) != TN_OK) abort();
    s->load++, world.load++;
    if (s->stepping) return;
    s->stepping = true;
    if (s->now_ns < now_ns) s->now_ns = now_ns;
    add_moment(s->now_ns, -1 - u->server);
}

static void ask(user *u, uint64_t now_ns)
{
    bool ends = u->n == 0 || below(5) == 0 || u->n > CONTEXT - 300;
    if (ends) begin_conversation(u);
    say(u, length(100));
    u->asked_ns = now_ns;
    world.f.n_asked++;
    send(u, now_ns);
    // Not at the beginning, and not at the end, when most users are done.
    int64_t done = world.f.n_asked * 5 / ((int64_t)world.n_users * REQUESTS);
    if (world.f.n_asked % (4 * world.n) != 0 || done < 1 || done > 3) return;
    int32_t most = 0;
    for (int32_t i = 0; i < world.n; i++) most = TN_MAX(most, world.servers[i].load);
    world.f.fullest += (double)most * world.n_up / world.load;
    world.f.n_samples++;
}

static void leave(user *u, uint64_t now_ns)
{
    u->id = 0;
    world.servers[u->server].load--, world.load--;
    if (++u->n_requests < REQUESTS)
        add_moment(now_ns + (uint64_t)(-log(uniform()) * (double)think_ns), (int32_t)(u - world.users));
}

static void take(server *s, const tn_engine_event *event)
{
    user *u = event->user;
    if (&world.servers[u->server] != s || u->id != event->id) return; // it was sent to another one
    if (event->status != TN_OK) abort();
    if (!u->begun) world.f.first_ms[world.f.n_first++] = (double)(s->now_ns - u->asked_ns) * 1e-6;
    u->begun = true;
    if (event->piece->token >= 0 && u->n < CONTEXT) u->text[u->n++] = (uint8_t)event->piece->token;
    if (event->piece->stop == TN_STOP_NONE) return;
    world.f.n_prompt += u->n_prompt;
    world.f.n_reused += event->stats->n_reused;
    world.f.n_done++;
    leave(u, s->now_ns);
}

static void step(server *s)
{
    const tn_engine_event *const *events;
    int32_t n;
    world.now_ns = s->now_ns;
    if (tn_engine_step(s->engine, &events, &n) != TN_OK) abort();
    s->now_ns = world.now_ns;
    for (int32_t i = 0; i < n; i++) take(s, events[i]);
    s->stepping = tn_engine_pending(s->engine) > 0;
    if (s->stepping) add_moment(s->now_ns, -1 - (int32_t)(s - world.servers));
}

// --- servers that are killed or end --------------------------------------------------------------------

// No more requests for it; those that have not begun go elsewhere. Killed: the others are lost.
static void stop(server *s, uint64_t now_ns, bool killed)
{
    s->up = false;
    world.n_up--;
    for (int32_t i = 0; i < world.n_users; i++) {
        user *u = &world.users[i];
        if (u->id == 0 || &world.servers[u->server] != s) continue;
        if (!u->begun) {
            if (!killed) tn_engine_cancel(s->engine, u->id);
            s->load--, world.load--;
            world.f.n_moved++;
            send(u, now_ns);
        } else if (killed) {
            world.f.n_lost++;
            u->n = 0;
            leave(u, now_ns);
        }
    }
    if (killed) tn_engine_destroy(&s->engine);
    if (killed) s->stepping = false;
}

static void restart(server *s)
{
    TEST_CHECK(s->load == 0);
    tn_engine_destroy(&s->engine);
    s->stepping = false;
    open_server(s);
}

// A tenth of the servers is killed after a third of the requests, another tenth ends after two thirds. Each
// comes back later with an empty cache.
static void make_faults(uint64_t now_ns)
{
    int64_t all = (int64_t)world.n_users * REQUESTS;
    int32_t round = world.n_faults / 2;
    bool stops = world.n_faults % 2 == 0;
    bool due = stops ? world.f.n_asked * 3 > all * (round + 1) : now_ns > world.fault_ns + restart_ns;
    if (round >= 2 || !due) return;
    for (int32_t q = round == 0 ? 0 : TN_MIN(5, world.n - 1); q < world.n; q += 10)
        if (stops)
            stop(&world.servers[q], now_ns, round == 0);
        else
            restart(&world.servers[q]);
    world.fault_ns = now_ns;
    world.n_faults++;
}

// --- runs ----------------------------------------------------------------------------------------------

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void open_world(int32_t n)
{
    int32_t n_users = n * USERS;
    size_t n_requests = (size_t)n_users * REQUESTS;
    world.n = n, world.n_users = n_users;
    world.servers = calloc((size_t)n, sizeof *world.servers);
    world.users = calloc((size_t)n_users, sizeof *world.users);
    world.heap = calloc((size_t)(n_users + n), sizeof *world.heap);
    world.circle = calloc((size_t)n * POINTS, sizeof *world.circle);
    world.popular = calloc((size_t)n * DOCUMENTS, sizeof *world.popular);
    world.f.first_ms = calloc(n_requests, sizeof *world.f.first_ms);
    if (!world.servers || !world.users || !world.heap || !world.circle || !world.popular || !world.f.first_ms)
        abort();
}

static void close_world(void)
{
    for (int32_t i = 0; i < world.n; i++) {
        server *s = &world.servers[i];
        tn_engine_stats stats = {.struct_size = sizeof stats};
        tn_engine_stats_get(s->engine, &stats);
        TEST_CHECK(s->load == 0 && stats.n_free == stats.n_blocks && tn_engine_pending(s->engine) == 0);
        tn_engine_destroy(&s->engine);
    }
    free(world.servers);
    free(world.users);
    free(world.heap);
    free(world.circle);
    free(world.popular);
    free(world.f.first_ms);
    world.f.first_ms = NULL;
}

typedef struct outcome {
    double hits, fullest, first_median_ms, first_p99_ms;
    int64_t n_lost, n_moved;
} outcome;

static outcome run(tn_model *model, const rule *r, int32_t n, bool documents, bool faults)
{
    memset(&world, 0, sizeof world);
    world.model = model, world.rule = r, world.documents = documents, world.faults = faults;
    random_state = 1;
    open_world(n);
    make_circle();
    make_documents();
    for (int32_t i = 0; i < n; i++) open_server(&world.servers[i]);
    for (int32_t i = 0; i < world.n_users; i++) add_moment((uint64_t)(uniform() * 2.0 * (double)think_ns), i);
    while (world.n_heap > 0) {
        moment m = next_moment();
        server *s = m.who < 0 ? &world.servers[-1 - m.who] : NULL;
        if (world.faults) make_faults(m.time_ns);
        if (!s)
            ask(&world.users[m.who], m.time_ns);
        else if (s->engine && s->stepping && s->now_ns == m.time_ns)
            step(s);
    }
    figures *f = &world.f;
    TEST_CHECK(f->n_asked == (int64_t)world.n_users * REQUESTS && f->n_done + f->n_lost == f->n_asked);
    TEST_CHECK(world.load == 0 && world.n_up == n);
    qsort(f->first_ms, (size_t)f->n_first, sizeof *f->first_ms, by_size);
    outcome o = {(double)f->n_reused / (double)f->n_prompt,
                 f->fullest / (double)f->n_samples,
                 f->first_ms[f->n_first / 2],
                 f->first_ms[(int32_t)(f->n_first * 0.99)],
                 f->n_lost,
                 f->n_moved};
    printf("%-10s %-13s %-6s %4d  %6.3f %7.2f %9.1f %9.1f %6lld %6lld\n", r->name,
           documents ? "documents" : "conversations", faults ? "faults" : "-", n, o.hits, o.fullest,
           o.first_median_ms, o.first_p99_ms, (long long)f->n_lost, (long long)f->n_moved);
    fflush(stdout);
    close_world();
    return o;
}

static void quick_check(tn_model *model)
{
    enum { N = 20 };
    outcome one = run(model, &rules[PLAIN], 1, false, false);
    outcome turns = run(model, &rules[IN_TURN], N, false, false);
    outcome plain = run(model, &rules[PLAIN], N, false, false);
    outcome bounded = run(model, &rules[BOUND_2], N, false, false);
    TEST_CHECK(turns.hits < 0.5 * one.hits);
    TEST_CHECK(plain.hits > 0.9 * one.hits && bounded.hits > 0.9 * one.hits);
    // Many ask for the same document: without a bound one server has most of the work.
    outcome hot = run(model, &rules[PLAIN], N, true, false);
    outcome shared = run(model, &rules[BOUND_2], N, true, false);
    TEST_CHECK(hot.fullest > 4.0 && shared.fullest < 2.5);
    TEST_CHECK(shared.first_p99_ms < hot.first_p99_ms / 3 && shared.hits > 0.9 * hot.hits);
    outcome faults = run(model, &rules[BOUND_2], N, false, true);
    TEST_CHECK(faults.hits > 0.8 * one.hits && faults.n_lost > 0 && faults.n_moved > 0);
    // Only those that had begun on the two servers that were killed.
    TEST_CHECK(faults.n_lost <= 2 * SEQUENCES);
}

// Whether the name is among the arguments, or no name is.
static bool is_wanted(const char *name, int argc, char **argv)
{
    bool any = false, found = false;
    for (int i = 1; i < argc; i++) {
        any |= atoi(argv[i]) == 0;
        found |= strcmp(argv[i], name) == 0;
    }
    return found || !any;
}

int main(int argc, char **argv)
{
    tn_context *ctx = context(NULL, 1);
    tiny_shape shape = {"llama", 1, 32, 2, 1, 16, 32, 2 * CONTEXT, 0, 0, 0, TN_TYPE_F32, false, 0};
    tn_model *model = tiny_model_open(ctx, &shape);
    printf("rule       keys          faults    n    hits fullest first-p50 first-p99   lost  moved\n");
    if (argc < 2) quick_check(model);
    for (int i = 1; i < argc; i++) {
        int32_t n = TN_MIN(TN_MAX(atoi(argv[i]), 1), MOST);
        if (atoi(argv[i]) == 0) continue;
        for (size_t k = 0; k < 2 * TN_COUNT(rules); k++)
            if (is_wanted(rules[k / 2].name, argc, argv))
                (void)run(model, &rules[k / 2], n, k % 2 != 0, false);
        if (n >= 10) (void)run(model, &rules[BOUND_2], n, false, true);
    }
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    return test_done();
}
