// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The pool of a context: every part runs once and phases follow each other, whoever takes part; it sleeps
// when there is no work; it follows the free cores; it works in forked children; no thread that cannot be
// started, no failing part and no caller beside another does harm. Arguments: rounds of each.
#define _GNU_SOURCE
#include "core/context_impl.h"
#include "core/threads/thread.h"
#include "tests/unit/counting.h"
#include "tests/unit/lent.h"
#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, PHASES = 40, MOST_PARTS = 24 };
// As core/threads/thread_posix.c: other C libraries let threads begin with the mask of their caller.
#if !defined(TN_PORTABLE_OS) && defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#define BLOCKS_SIGNALS __GLIBC_PREREQ(2, 32)
#else
#define BLOCKS_SIGNALS 0
#endif
// A nice value of each thread; a build with -Dportable_os=true does not ask for it.
#ifdef TN_PORTABLE_OS
#define HAS_NICE_THREADS false
#else
#define HAS_NICE_THREADS true
#endif

// --- threads that cannot be started ----------------------------------------------------------------------

static int creations_left = -1; // -1: all succeed

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg)
{
    if (creations_left == 0) return EAGAIN;
    if (creations_left > 0) creations_left--;
    return __real_pthread_create(thread, attributes, run, arg);
}

// --- a work of many phases -------------------------------------------------------------------------------

// Each phase adds 1 to the values of the phase before, in another order, so a part that is left out, runs
// twice or comes too early shows.
typedef struct chain {
    tn_context *ctx;
    int32_t phase, n;                // of the current phase
    int64_t values[MOST_PARTS];      // plain memory: the pool orders it
    _Atomic int32_t in_use[THREADS]; // slots
    bool wrong;
    uint64_t busy_ns; // of each part
} chain;

static int32_t chain_next(void *arg, int32_t width)
{
    chain *c = arg;
    if (width < 1 || width > THREADS) c->wrong = true;
    for (int32_t i = 0; i < MOST_PARTS && c->phase >= 0; i++) c->wrong = c->wrong || c->values[i] < c->phase;
    if (++c->phase == PHASES) return 0;
    for (int32_t i = 0; i < MOST_PARTS; i++) c->values[i] = c->phase;
    return c->n = 1 + c->phase * 7 % MOST_PARTS;
}

static void work_for(uint64_t ns)
{
    uint64_t start = tn_time_ns();
    while (tn_time_ns() - start < ns) continue;
}

static void chain_part(void *arg, int32_t part, int32_t slot)
{
    chain *c = arg;
    if (atomic_fetch_add(&c->in_use[slot], 1) != 0) c->wrong = true;
    if (c->busy_ns > 0) work_for(c->busy_ns);
    for (int32_t i = part; i < MOST_PARTS; i += c->n) {
        if (c->values[i] != c->phase) c->wrong = true;
        c->values[i]++;
    }
    atomic_fetch_sub(&c->in_use[slot], 1);
}

static bool run_chain_of(tn_context *ctx, uint64_t busy_ns)
{
    chain c = {.ctx = ctx, .phase = -1, .busy_ns = busy_ns};
    tn_work work = {&c, chain_next, chain_part};
    return tn_pool_run(ctx, &work) == TN_OK && c.phase == PHASES && !c.wrong;
}

// Threads take no signals of the host, but those that they cause themselves reach its handlers.
typedef struct masks {
    int32_t phase;
    atomic_int wrong, n_other; // n_other: parts that ran on threads of the pool
    pthread_t caller;
} masks;

static int32_t masks_next(void *arg, int32_t width)
{
    masks *m = arg;
    TN_UNUSED(width);
    return m->phase++ < PHASES ? MOST_PARTS : 0;
}

static void masks_part(void *arg, int32_t part, int32_t slot)
{
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    masks *m = arg;
    sigset_t blocked;
    TN_UNUSED(part), TN_UNUSED(slot);
    work_for(100000);
    if (pthread_equal(pthread_self(), m->caller)) return;
    atomic_fetch_add(&m->n_other, 1);
    if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0) atomic_fetch_add(&m->wrong, 1);
    for (size_t i = 0; i < TN_COUNT(own); i++)
        if (sigismember(&blocked, own[i])) atomic_fetch_add(&m->wrong, 1);
    if (BLOCKS_SIGNALS && (!sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM)))
        atomic_fetch_add(&m->wrong, 1);
}

static bool run_chain(tn_context *ctx)
{
    return run_chain_of(ctx, 0);
}

// --- contexts --------------------------------------------------------------------------------------------

static int n_lent;

typedef enum { OWN, LENT, LENT_IN_TURN, OPENMP, KINDS } kind;
static const char *const kind_names[KINDS] = {"own", "lent", "lent, one after the other", "openmp"};

// A host that has no thread to spare: its tasks run one after the other, backwards.
static void run_in_turn(void *user, int32_t n_tasks, void (*task)(void *arg, int32_t i), void *arg)
{
    *(int *)user += 1;
    for (int32_t i = n_tasks - 1; i >= 0; i--) task(arg, i);
}

static tn_context *context(kind k, int32_t n_threads, bool fixed)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = n_threads;
    cfg.backend = "cpu";
    if (k == LENT) cfg.executor = (tn_executor){&n_lent, lent_run};
    if (k == LENT_IN_TURN) cfg.executor = (tn_executor){&n_lent, run_in_turn};
    if (k == OPENMP) cfg.threads_by = TN_THREADS_OPENMP;
    tn_context *ctx = NULL;
    if (tn_context_create(&cfg, &ctx) != TN_OK) return NULL;
    if (fixed) tn_pool_fix_width(ctx, n_threads);
    return ctx;
}

static void test_phases(kind k, int rounds)
{
    tn_context *ctx = context(k, THREADS, true);
    if (!ctx && k == OPENMP) return; // not in this build
    if (!TEST_CHECK(ctx != NULL)) return;
    bool right = true;
    n_lent = 0;
    for (int i = 0; i < rounds; i++) right = right && run_chain(ctx);
    if (!TEST_CHECK(right)) printf("    threads: %s\n", kind_names[k]);
    TEST_CHECK(n_lent == (k == LENT || k == LENT_IN_TURN ? rounds : 0));
    tn_context_destroy(&ctx);
}

static void test_signals(void)
{
    tn_context *ctx = context(OWN, THREADS, true);
    masks m = {.caller = pthread_self()};
    tn_work work = {&m, masks_next, masks_part};
    if (!TEST_CHECK(ctx != NULL)) return;
    TEST_CHECK(tn_pool_run(ctx, &work) == TN_OK);
    TEST_CHECK(atomic_load(&m.n_other) > 0);
    TEST_CHECK(atomic_load(&m.wrong) == 0);
    tn_context_destroy(&ctx);
}

// --- callers ---------------------------------------------------------------------------------------------

static int caller_rounds;

static void *call_often(void *arg)
{
    bool right = true;
    for (int i = 0; i < caller_rounds; i++) right = right && run_chain(arg);
    return right ? arg : NULL;
}

static void test_callers(int rounds)
{
    enum { CALLERS = 3 };
    tn_context *ctx = context(OWN, THREADS, true);
    pthread_t callers[CALLERS];
    caller_rounds = rounds;
    for (int i = 0; i < CALLERS; i++) pthread_create(&callers[i], NULL, call_often, ctx);
    for (int i = 0; i < CALLERS; i++) {
        void *result;
        pthread_join(callers[i], &result);
        TEST_CHECK(result == ctx);
    }
    tn_context_destroy(&ctx);
}

typedef struct nested {
    tn_context *ctx;
    _Atomic int32_t n_right;
} nested;

static void count(void *arg, int32_t i, int32_t n)
{
    nested *o = arg;
    if (i >= 0 && i < n) atomic_fetch_add(&o->n_right, 1);
}

static void nest(void *arg, int32_t i, int32_t n)
{
    nested *o = arg;
    TN_UNUSED(i);
    if (tn_parallel(o->ctx, n, count, o) == TN_OK && run_chain(o->ctx)) atomic_fetch_add(&o->n_right, 1);
}

static void test_nested(void)
{
    nested o = {.ctx = context(OWN, THREADS, true)};
    TEST_CHECK_STATUS(tn_parallel(o.ctx, 5, nest, &o), TN_OK);
    TEST_CHECK(o.n_right == 30);
    tn_context_destroy(&o.ctx);
}

typedef struct failing {
    tn_context *ctx;
    uint64_t ns; // that a part takes
} failing;

static void fail_one(void *arg, int32_t i, int32_t n)
{
    failing *f = arg;
    TN_UNUSED(n);
    work_for(f->ns);
    if (i == 5) (void)tn_fail(f->ctx, TN_ERR_ARG, "part number %d", (int)i);
}

// Two phases, of eight parts and of one, which fails, and whichever thread ended the first one does it.
typedef struct two_phases {
    tn_context *ctx;
    int phase;
} two_phases;

static int32_t next_of_two(void *arg, int32_t width)
{
    two_phases *w = arg;
    TN_UNUSED(width);
    return ++w->phase == 1 ? 8 : w->phase == 2 ? 1 : 0;
}

static void fail_in_second(void *arg, int32_t i, int32_t slot)
{
    two_phases *w = arg;
    TN_UNUSED(slot);
    if (w->phase == 2) (void)tn_fail(w->ctx, TN_ERR_ARG, "the only part, %d", (int)i);
}

static void test_messages_of_one_part(int rounds)
{
    char text[200];
    tn_context *ctx = context(OWN, THREADS, true);
    int lost = 0;
    for (int i = 0; i < rounds; i++) {
        two_phases w = {.ctx = ctx};
        (void)tn_fail(NULL, TN_ERR_ARG, "before");
        TEST_CHECK_STATUS(tn_pool_run(ctx, &(tn_work){&w, next_of_two, fail_in_second}), TN_OK);
        tn_last_error(text, sizeof text);
        lost += strcmp(text, "the only part, 0") != 0;
    }
    TEST_CHECK(lost == 0);
    tn_context_destroy(&ctx);
}

// With long parts other threads do some. With short ones they sometimes do all, before the caller takes any.
static void test_messages(int rounds)
{
    char text[200];
    failing f = {context(OWN, THREADS, true), 200000};
    int lost = 0;
    for (int i = 0; i < rounds; i++, f.ns = 0) {
        (void)tn_fail(NULL, TN_ERR_ARG, "before");
        TEST_CHECK_STATUS(tn_parallel(f.ctx, 8, fail_one, &f), TN_OK);
        tn_last_error(text, sizeof text);
        lost += strcmp(text, "part number 5") != 0;
    }
    TEST_CHECK(lost == 0);
    tn_context_destroy(&f.ctx);
}

// --- threads ---------------------------------------------------------------------------------------------

static void test_no_threads(void)
{
    char text[200];
    for (int n = 0; n < THREADS - 1; n++) {
        tn_context *ctx = context(OWN, THREADS, true);
        size_t memory = tn_context_memory(ctx);
        creations_left = n;
        chain c = {.phase = -1};
        TEST_CHECK_STATUS(tn_pool_run(ctx, &(tn_work){&c, chain_next, chain_part}), TN_ERR_MEMORY);
        creations_left = -1;
        tn_context_error(ctx, text, sizeof text);
        TEST_CHECK(strstr(text, "cannot start a thread") != NULL && c.phase == -1);
        TEST_CHECK(tn_context_memory(ctx) == memory);
        TEST_CHECK(run_chain(ctx)); // it tries again
        tn_context_destroy(&ctx);
    }
}

static void test_no_memory(void)
{
    counting count;
    tn_status status = TN_ERR_MEMORY;
    int n_failed = 0;
    for (int point = 0; point < 20 && status != TN_OK; point++) {
        tn_context_config cfg;
        tn_context_config_default(&cfg);
        count = (counting){0};
        cfg.n_threads = THREADS, cfg.backend = "cpu";
        cfg.allocator = (tn_allocator){&count, counting_alloc, counting_free};
        tn_context *ctx = NULL;
        if (!TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_OK)) return;
        tn_pool_fix_width(ctx, THREADS);
        long live = count.live;
        size_t memory = tn_context_memory(ctx);
        count.fail_from = count.calls + point, count.fail_to = count.fail_from + 1;
        chain c = {.phase = -1};
        status = tn_pool_run(ctx, &(tn_work){&c, chain_next, chain_part});
        if (status != TN_OK) {
            n_failed++;
            TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
            TEST_CHECK(c.phase == -1 && count.live == live && tn_context_memory(ctx) == memory);
        }
        TEST_CHECK(run_chain(ctx));
        tn_context_destroy(&ctx);
        TEST_CHECK(count.live == 0);
    }
    TEST_CHECK_STATUS(status, TN_OK);
    TEST_CHECK(n_failed == THREADS); // the list of the threads, and each thread but the calling one
}

static void note_nice(void *arg, int32_t i, int32_t n)
{
    _Atomic int32_t *lowest = arg;
    TN_UNUSED(i);
    TN_UNUSED(n);
    work_for(2000000); // long enough for the others to wake up
    int32_t value = getpriority(PRIO_PROCESS, (id_t)gettid());
    if (value > atomic_load(lowest)) atomic_store(lowest, value);
}

static void test_priority(void)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = 2, cfg.backend = "cpu", cfg.thread_priority = TN_THREADS_BACKGROUND;
    tn_context *ctx = NULL;
    if (!TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_OK)) return;
    tn_pool_fix_width(ctx, 2);
    int32_t before = getpriority(PRIO_PROCESS, 0);
    _Atomic int32_t lowest = -100;
    // A thread in the background may come late where other programs keep the cores busy.
    for (int i = 0; i < 200 && lowest <= before && before < 19 && HAS_NICE_THREADS; i++)
        TEST_CHECK_STATUS(tn_parallel(ctx, 4, note_nice, &lowest), TN_OK);
    TEST_CHECK(before >= 19 || !HAS_NICE_THREADS || lowest > before);
    TEST_CHECK(getpriority(PRIO_PROCESS, 0) == before); // the caller's own
    tn_context_destroy(&ctx);
    cfg.thread_priority = 2;
    TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_ERR_ARG);
    cfg.thread_priority = 0, cfg.threads_by = 2;
    TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_ERR_ARG);
}

// --- time ------------------------------------------------------------------------------------------------

static double clock_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// Processor time of thread `id` of this process if its name is that of a pool's threads. < 0: not known.
static double pool_thread_ms(const char *id)
{
    char path[300], name[32] = "";
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.200s/comm", id);
    FILE *f = fopen(path, "r");
    bool mine = f && fgets(name, sizeof name, f) && strncmp(name, "tenon-", 6) == 0;
    if (f) fclose(f);
    if (!mine) return 0.0;
    snprintf(path, sizeof path, "/proc/self/task/%.200s/schedstat", id);
    f = fopen(path, "r");
    bool known = f && fscanf(f, "%llu", &ns) == 1;
    if (f) fclose(f);
    return known ? (double)ns * 1e-6 : -1.0;
}

// Processor time of the pools' threads. Sanitizers have threads of their own, which do not count; where the
// system does not tell threads apart, the whole process does.
static double pools_ms(void)
{
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    double sum = 0.0;
    bool known = true;
    for (struct dirent *d; known && (d = readdir(tasks));) {
        double ms = d->d_name[0] == '.' ? 0.0 : pool_thread_ms(d->d_name);
        known = ms >= 0.0;
        sum += ms;
    }
    closedir(tasks);
    return known ? sum : clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

// A pool without work uses no time at all, and works that come now and then cost little more than what they
// compute. Processor time, so other programs change it little.
static void test_sleeps(void)
{
    tn_context *ctx = context(OWN, THREADS, true);
    TEST_CHECK(run_chain(ctx));
    pause_ms(20);
    double start = pools_ms();
    pause_ms(300);
    double paused = pools_ms() - start;
    if (!TEST_CHECK(paused < 0.5)) printf("    %.2f ms in a pause of 300\n", paused);
    start = pools_ms() + clock_ms(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < 10; i++) {
        TEST_CHECK(run_chain(ctx));
        pause_ms(30);
    }
    double spaced = clock_ms(CLOCK_THREAD_CPUTIME_ID) + pools_ms() - start;
    // 10 works, after each of which three threads poll for 50 us; sanitizers take longer for the parts.
    if (!TEST_CHECK(spaced < 40.0)) printf("    %.2f ms for 10 works with pauses\n", spaced);
    tn_context_destroy(&ctx);
}

// A thread that loses its core makes the pool smaller; when the core is free again, it grows.
static void test_width(void)
{
    static tn_pool_width w;
    tn_pool_width_init(&w, 1);
    w.n_threads = THREADS;
    atomic_store(&w.most, THREADS), atomic_store(&w.now, THREADS);
    uint64_t now = tn_time_ns();
    tn_pool_meter meter = {0};
    tn_pool_meter_begin(&meter, now);
    pause_ms(8); // off the processor, as if another program had it
    work_for(200000);
    tn_pool_meter_update(&meter, &w, tn_time_ns());
    TEST_CHECK(atomic_load(&w.now) == THREADS - 1);
    now = tn_time_ns();
    atomic_store(&w.cores_ns, now); // not counted again: the cores of this machine do not matter here
    TEST_CHECK(!tn_pool_width_update(&w, now) && atomic_load(&w.now) == THREADS - 1);
    now += 30000000;
    TEST_CHECK(tn_pool_width_update(&w, now) && atomic_load(&w.now) == THREADS);
    uint64_t hold = atomic_load(&w.hold_ns);
    pause_ms(8);
    work_for(200000);
    tn_pool_meter_update(&meter, &w, now + 20000000); // in vain: the next attempt comes later
    TEST_CHECK(atomic_load(&w.now) == THREADS - 1 && atomic_load(&w.hold_ns) > hold);
}

// --- the width falls while a phase is opened -------------------------------------------------------------

typedef struct narrowing {
    tn_pool *pool;
    int32_t phase; // that `next` opened last
    _Atomic int32_t worker_started, n_done;
} narrowing;

// The thread of the pool ends the first phase while the calling thread sleeps. The width falls to one thread
// after it was read for the second phase, and no bell rings for that phase, because one has just rung.
static int32_t narrowing_next(void *arg, int32_t width)
{
    narrowing *n = arg;
    TN_UNUSED(width);
    if (++n->phase > 2) return 0;
    if (n->phase == 2) {
        atomic_store(&n->pool->width.now, 1);
        atomic_store(&n->pool->first_phase, false);
        atomic_store(&n->pool->rung_ns, tn_time_ns());
    }
    return 2;
}

static void narrowing_part(void *arg, int32_t part, int32_t slot)
{
    narrowing *n = arg;
    TN_UNUSED(part);
    atomic_fetch_add(&n->n_done, 1);
    if (n->phase != 1) return;
    if (slot == 0) {
        while (!atomic_load(&n->worker_started)) TN_PAUSE();
        return;
    }
    atomic_store(&n->worker_started, 1);
    while (!atomic_load(&n->pool->caller_sleeps)) TN_PAUSE();
    work_for(1000000); // until the calling thread has looked at the phase and sleeps
}

// Parts that a thread leaves behind because the width has no place for it are done by the calling thread.
static void test_narrowing(int rounds)
{
    bool right = true;
    for (int i = 0; i < rounds / 10 + 1; i++) {
        tn_context *ctx = context(OWN, 2, true);
        if (!TEST_CHECK(ctx != NULL)) return;
        narrowing n = {.pool = &ctx->pool};
        tn_work work = {.arg = &n, .next = narrowing_next, .part = narrowing_part};
        right = right && tn_pool_run(ctx, &work) == TN_OK && atomic_load(&n.n_done) == 4;
        tn_context_destroy(&ctx);
    }
    TEST_CHECK(right);
}

// --- forked children -------------------------------------------------------------------------------------

// ThreadSanitizer ends a forked child that starts threads.
#if defined(__SANITIZE_THREAD__)
enum { FORKS = 0 };
#else
enum { FORKS = 1 };
#endif
// The allocator of AddressSanitizer does not hold its locks during a fork before LLVM 17 and GCC 14. A thread
// that is starting allocates with it, and a child that inherits such a lock waits for it without end.
#if defined(__SANITIZE_ADDRESS__)
enum { FORKS_BESIDE_STARTING_THREADS = 0 };
#elif defined(__has_feature)
enum { FORKS_BESIDE_STARTING_THREADS = !__has_feature(address_sanitizer) };
#else
enum { FORKS_BESIDE_STARTING_THREADS = 1 };
#endif

static void wait_until_asleep(tn_context *ctx)
{
    while (atomic_load(&ctx->pool.n_sleeping) < ctx->pool.n_workers) pause_ms(1);
}

// Whether the child, which has no thread but its own, can use a context of its own, and that of its parent.
static bool child_works(tn_context *inherited)
{
    if (!FORKS_BESIDE_STARTING_THREADS) wait_until_asleep(inherited);
    pid_t child = fork();
    if (child == 0) {
        tn_context *own = context(OWN, THREADS, true);
        bool right = own && run_chain(own) && run_chain(inherited);
        tn_context_destroy(&own);
        tn_context_destroy(&inherited);
        _exit(right ? 0 : 1);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_life(int rounds)
{
    bool right = true;
    for (int i = 0; i < rounds && right; i++) {
        tn_context *ctx = context(OWN, 2 + i % 3, true);
        right = ctx != NULL && (i % 5 == 0 || run_chain(ctx)) && (!FORKS || child_works(ctx));
        tn_context_destroy(&ctx);
        right = right && ctx == NULL;
    }
    TEST_CHECK(right);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    test_signals();
    for (kind k = 0; k < KINDS; k++)
        if (k != OPENMP || argc < 3) test_phases(k, rounds);
    test_callers(rounds);
    test_nested();
    test_messages(100 * rounds);
    test_messages_of_one_part(10 * rounds);
    test_no_threads();
    test_no_memory();
    test_priority();
    test_sleeps();
    test_width();
    test_narrowing(rounds);
    test_life(rounds);
    return test_done();
}
