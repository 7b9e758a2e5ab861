// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Loading that can be shown, stopped and trusted: every source gives the same model; each read, each piece
// and each allocation fails once; files are cut while they load and while they are used. pread64 and madvise
// of the library are those below (meson.build wraps them), so that a test can let them fail.
#define _GNU_SOURCE
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tenon/graph.h>
#include <tenon/session.h>
#include <tenon/text.h>
#include <unistd.h>

static tn_context *ctx;
static counting count;
static char folder[] = "/tmp/tenon_loading_XXXXXX", path[64];
static char *bytes; // the file
static size_t size;
static float expected[TINY_MODEL_VOCAB];

// --- the system --------------------------------------------------------------------------------------

// The preads of the library, counted from 0.
static struct {
    long n, fails_at; // -1: none
    long interrupted_every;
    size_t most; // bytes a read gives at most; 0: as many as it is asked for
    bool no_populate;
    uint64_t available;    // bytes of memory; 0: what the machine has
    long n_locks, no_lock; // the lock that is refused, counted from 1; 0: none is
} calls = {.fails_at = -1};

ssize_t __real_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at);
int __real_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice);

ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at)
{
    long k = calls.n++;
    if (k == calls.fails_at) {
        errno = EIO;
        return -1;
    }
    if (calls.interrupted_every && k % calls.interrupted_every == 1) {
        errno = EINTR;
        return -1;
    }
    return __real_pread64(fd, to, calls.most && n > calls.most ? calls.most : n, at);
}

int __wrap_madvise(void *at, size_t n, int advice)
{
    if (!calls.no_populate) return __real_madvise(at, n, advice);
    errno = EINVAL;
    return -1;
}

void __real_tn_system_memory(uint64_t *total, uint64_t *available);
void __wrap_tn_system_memory(uint64_t *total, uint64_t *available);

void __wrap_tn_system_memory(uint64_t *total, uint64_t *available)
{
    __real_tn_system_memory(total, available);
    if (calls.available) *available = calls.available;
}

bool __real_tn_memory_lock(const void *data, size_t n);
bool __wrap_tn_memory_lock(const void *data, size_t n);

bool __wrap_tn_memory_lock(const void *data, size_t n)
{
    return ++calls.n_locks != calls.no_lock && __real_tn_memory_lock(data, n);
}

static void write_file(void)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) abort();
}

static bool message_has(const char *part)
{
    char text[1024];
    tn_context_error(ctx, text, sizeof text);
    bool has = strstr(text, part) != NULL;
    if (!has) printf("    message: %s\n", text);
    return has;
}

// --- using a model -----------------------------------------------------------------------------------

static tn_status use(tn_model *model, float *logits)
{
    static const int32_t prompt[] = {3, 1, 4, 1, 5, 9, 2, 6};
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 70;
    tn_session *s = NULL;
    tn_status status = tn_session_create(model, &cfg, &s);
    if (status == TN_OK) status = tn_session_feed(s, 0, prompt, 8);
    const float *row = status == TN_OK ? tn_session_logits(s, 0) : NULL;
    if (status == TN_OK && !row) status = TN_ERR_INTERNAL;
    if (status == TN_OK) memcpy(logits, row, sizeof expected);
    tn_session_destroy(&s);
    return status;
}

static bool is_same(tn_model *model)
{
    float got[TINY_MODEL_VOCAB];
    return TEST_CHECK_STATUS(use(model, got), TN_OK) && memcmp(got, expected, sizeof got) == 0;
}

// --- a function that reads ---------------------------------------------------------------------------

typedef struct reader {
    long n, fails_at, ends_at, most;
    bool too_many;
} reader;

static int64_t give(void *user, uint64_t offset, void *to, size_t n)
{
    reader *r = user;
    long k = r->n++;
    if (k == r->fails_at) return -5;
    if (k == r->ends_at) return 0;
    if (r->too_many) return (int64_t)n + 1;
    if (offset > size || n > size - offset) abort(); // never asked for more than there is
    if (r->most && n > (size_t)r->most) n = (size_t)r->most;
    memcpy(to, bytes + offset, n);
    return (int64_t)n;
}

static tn_status open_reader(reader *r, const tn_model_config *cfg, tn_model **out)
{
    tn_source source;
    tn_source_default(&source);
    source.read = give;
    source.user = r;
    source.size = size;
    return tn_model_open_source(ctx, &source, cfg, out);
}

// --- tests -------------------------------------------------------------------------------------------

static void open_and_compare(const tn_source *source, int32_t load)
{
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.load = load;
    if (!TEST_CHECK_STATUS(tn_model_open_source(ctx, source, &cfg, &model), TN_OK)) return;
    TEST_CHECK(is_same(model));
    tn_model_unref(&model);
}

static void test_sources(void)
{
    tn_source source;
    for (int32_t load = TN_LOAD_MAP; load <= TN_LOAD_READ; load++) {
        tn_source_default(&source);
        source.path = path;
        open_and_compare(&source, load);
        source.path = NULL;
        source.data = bytes;
        source.size = size;
        open_and_compare(&source, load);
        tn_source_default(&source);
        source.descriptor = open(path, O_RDONLY);
        if (lseek(source.descriptor, 5, SEEK_SET) != 5) abort();
        open_and_compare(&source, load);
        TEST_CHECK(lseek(source.descriptor, 0, SEEK_CUR) == 5); // neither used nor changed
        TEST_CHECK(close(source.descriptor) == 0);
    }
    for (long most = 0; most < 5000; most = most * 9 + 7) {
        reader r = {.fails_at = -1, .ends_at = -1, .most = most};
        tn_model *model = NULL;
        if (!TEST_CHECK_STATUS(open_reader(&r, NULL, &model), TN_OK)) continue;
        long n = r.n;
        TEST_CHECK(is_same(model) && r.n == n); // never called later
        tn_model_unref(&model);
    }
}

static void test_refused(void)
{
    tn_model *model = NULL;
    tn_source source;
    tn_source_default(&source);
    TEST_CHECK_STATUS(tn_model_open_source(ctx, &source, NULL, &model), TN_ERR_ARG);
    source.path = path;
    source.data = bytes;
    TEST_CHECK_STATUS(tn_model_open_source(ctx, &source, NULL, &model), TN_ERR_ARG);
    tn_source_default(&source);
    source.data = bytes + 1;
    source.size = size - 1;
    TEST_CHECK_STATUS(tn_model_open_source(ctx, &source, NULL, &model), TN_ERR_ARG);
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.load = 2;
    TEST_CHECK_STATUS(tn_model_open(ctx, path, &cfg, &model), TN_ERR_ARG);
    int ends[2], dir = open(folder, O_RDONLY), to_write = open(path, O_WRONLY);
    if (pipe(ends) != 0) abort();
    const int32_t bad[] = {ends[0], dir, to_write, 9999};
    for (size_t i = 0; i < TN_COUNT(bad); i++) {
        tn_source_default(&source);
        source.descriptor = bad[i];
        TEST_CHECK_STATUS(tn_model_open_source(ctx, &source, NULL, &model), TN_ERR_IO);
    }
    close(ends[0]);
    close(ends[1]);
    close(dir);
    close(to_write);
    tn_source_default(&source); // a file of no bytes is not read
    source.read = give;
    TEST_CHECK_STATUS(tn_model_open_source(ctx, &source, NULL, &model), TN_ERR_FORMAT);
    TEST_CHECK(message_has("the file is empty"));
    reader r = {.fails_at = -1, .ends_at = -1, .too_many = true};
    TEST_CHECK_STATUS(open_reader(&r, NULL, &model), TN_ERR_IO);
    TEST_CHECK(!model);
}

// Each call of a function that reads fails once, and the file ends there once.
static void test_failing_reader(void)
{
    long live = count.live, n_failed = 0;
    tn_status status = TN_ERR_IO;
    for (long k = 0; k < 10000 && status != TN_OK; k++) {
        reader r = {.fails_at = k % 2 ? k / 2 : -1, .ends_at = k % 2 ? -1 : k / 2, .most = 4000};
        tn_model *model = NULL;
        status = open_reader(&r, NULL, &model);
        n_failed += status == TN_ERR_IO && message_has(k % 2 ? "gave -5" : "ends at byte");
        TEST_CHECK(status == TN_ERR_IO || status == TN_OK);
        tn_model_unref(&model);
        TEST_CHECK(count.live == live);
        if (status == TN_OK) TEST_CHECK(n_failed == k);
    }
    TEST_CHECK(status == TN_OK && n_failed > 40);
}

// The same for reads of the system, which are also interrupted and short.
static void test_failing_system(int32_t load)
{
    long live = count.live, n_failed = 0;
    tn_status status = TN_ERR_IO;
    calls.most = 3000;
    calls.interrupted_every = 3;
    for (long k = 0; k < 10000 && status != TN_OK; k++) {
        tn_model *model = NULL;
        tn_model_config cfg;
        tn_model_config_default(&cfg);
        cfg.load = load;
        calls.n = 0;
        calls.fails_at = k;
        status = tn_model_open(ctx, path, &cfg, &model);
        n_failed += status == TN_ERR_IO && message_has("cannot read: Input/output error");
        if (status == TN_OK) TEST_CHECK(is_same(model) && n_failed == k);
        tn_model_unref(&model);
        TEST_CHECK(count.live == live);
    }
    TEST_CHECK(status == TN_OK && n_failed > 20);
    calls.most = 0;
    calls.interrupted_every = 0;
    calls.fails_at = -1;
}

static void test_no_memory(int32_t load)
{
    long live = count.live, k = 0;
    for (tn_status status = TN_ERR_MEMORY; status != TN_OK && k < 10000; k++) {
        tn_model *model = NULL;
        tn_model_config cfg;
        tn_model_config_default(&cfg);
        cfg.load = load;
        count.fail_from = count.calls + k;
        count.fail_to = count.fail_from + 1;
        status = tn_model_open(ctx, path, &cfg, &model);
        count.fail_from = count.fail_to = 0;
        TEST_CHECK(status == TN_OK || status == TN_ERR_MEMORY);
        tn_model_unref(&model);
        TEST_CHECK(count.live == live);
    }
    TEST_CHECK(k > 20 && k < 10000);
}

// --- progress and cancelling -------------------------------------------------------------------------

typedef struct watched {
    long n, stop_at;
    uint64_t first, last, total;
    bool falls;
} watched;

static int32_t watch(void *user, uint64_t done, uint64_t total)
{
    watched *w = user;
    if (w->n == 0) w->first = done;
    w->falls = w->falls || done < w->last || (w->n > 0 && total != w->total);
    w->last = done;
    w->total = total;
    return w->n++ == w->stop_at;
}

static tn_status open_watched(watched *w, int32_t load, bool metadata)
{
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.load = load;
    cfg.metadata_only = metadata;
    cfg.progress = watch;
    cfg.progress_user = w;
    tn_status status = tn_model_open(ctx, path, &cfg, &model);
    tn_model_unref(&model);
    return status;
}

// The bytes that are counted are those that are read: all tensors, and nothing twice.
static void test_progress(void)
{
    for (int32_t load = TN_LOAD_MAP; load <= TN_LOAD_READ; load++) {
        watched w = {.stop_at = -1};
        TEST_CHECK_STATUS(open_watched(&w, load, false), TN_OK);
        TEST_CHECK(w.first == 0 && w.last == w.total && !w.falls && w.n >= 2);
        TEST_CHECK(w.total > size / 2 && w.total <= size);
        long n = w.n, live = count.live;
        for (long k = 0; k < n; k++) {
            w = (watched){.stop_at = k};
            TEST_CHECK_STATUS(open_watched(&w, load, false), TN_ERR_CANCELLED);
            TEST_CHECK(w.n == k + 1 && count.live == live);
        }
        w = (watched){.stop_at = -1};
        TEST_CHECK_STATUS(open_watched(&w, load, true), TN_OK);
        TEST_CHECK(w.n == 1 && w.last == size);
    }
}

static _Atomic int reading; // 1: a read waits, 2: it may go on

static int64_t give_slowly(void *user, uint64_t offset, void *to, size_t n)
{
    (void)user;
    if (offset > 0) { // the tensors
        atomic_store(&reading, 1);
        while (atomic_load(&reading) != 2) usleep(100);
    }
    memcpy(to, bytes + offset, n);
    return (int64_t)n;
}

static void *cancel(void *user)
{
    (void)user;
    while (atomic_load(&reading) != 1) usleep(100);
    tn_model_open_cancel(ctx, 1);
    atomic_store(&reading, 2);
    return NULL;
}

static void test_cancel_from_thread(void)
{
    pthread_t thread;
    tn_model *model = NULL;
    tn_source source;
    long live = count.live;
    tn_source_default(&source);
    source.read = give_slowly;
    source.size = size;
    if (pthread_create(&thread, NULL, cancel, NULL) != 0) abort();
    TEST_CHECK_STATUS(tn_model_open_source(ctx, &source, NULL, &model), TN_ERR_CANCELLED);
    pthread_join(thread, NULL);
    TEST_CHECK_STATUS(tn_model_open(ctx, path, NULL, &model), TN_ERR_CANCELLED); // until it is switched off
    tn_model_open_cancel(ctx, 0);
    TEST_CHECK(count.live == live && !model);
    TEST_CHECK_STATUS(tn_model_open(ctx, path, NULL, &model), TN_OK);
    tn_model_unref(&model);
}

// --- files that change -------------------------------------------------------------------------------

// A file that is cut while the model is open: an error where it is mapped, and no matter where it was read.
static void test_cut_in_use(void)
{
    for (int32_t load = TN_LOAD_MAP; load <= TN_LOAD_READ; load++) {
        tn_model *model = NULL;
        tn_session *s = NULL;
        tn_model_config cfg;
        tn_model_config_default(&cfg);
        cfg.load = load;
        if (!TEST_CHECK_STATUS(tn_model_open(ctx, path, &cfg, &model), TN_OK)) return;
        if (!TEST_CHECK_STATUS(tn_session_create(model, NULL, &s), TN_OK)) return;
        TEST_CHECK_STATUS(tn_session_feed(s, 0, (int32_t[]){1, 2}, 2), TN_OK);
        if (truncate(path, (off_t)size / 3) != 0) abort();
        tn_status want = load == TN_LOAD_MAP ? TN_ERR_IO : TN_OK;
        TEST_CHECK_STATUS(tn_session_feed(s, 0, (int32_t[]){3}, 1), want);
        if (want != TN_OK) TEST_CHECK(message_has("has become shorter") && message_has(path));
        TEST_CHECK(tn_session_length(s, 0) == (want == TN_OK ? 3 : 2)); // as before the failure
        char *saved = NULL;
        size_t n;
        TEST_CHECK_STATUS(tn_session_save_memory(s, &saved, &n), want);
        tn_text_free(ctx, saved);
        int32_t *ids = NULL;
        TEST_CHECK_STATUS(tn_tokenize(model, "ab", 2, 0, &ids, &n), TN_OK); // what it read is its own
        tn_tokens_free(model, ids);
        tn_session_destroy(&s);
        tn_model_unref(&model);
        write_file();
    }
}

static int32_t cut(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    (void)total;
    if (done == 0 && truncate(path, 4096) != 0) abort();
    return 0;
}

static void test_cut_in_loading(void)
{
    for (int k = 0; k < 3; k++) { // mapped, mapped on an old system, read
        tn_model *model = NULL;
        tn_model_config cfg;
        tn_model_config_default(&cfg);
        cfg.load = k == 2 ? TN_LOAD_READ : TN_LOAD_MAP;
        cfg.progress = cut;
        calls.no_populate = k == 1;
        TEST_CHECK_STATUS(tn_model_open(ctx, path, &cfg, &model), TN_ERR_IO);
        TEST_CHECK(message_has("has become shorter"));
        write_file();
    }
    calls.no_populate = false;
}

// A file of every length: never more than an error.
static void test_cut_before(void)
{
    for (size_t n = 1; n < size; n += n < 3000 ? 97 : 9973) {
        for (int32_t load = TN_LOAD_MAP; load <= TN_LOAD_READ; load++) {
            tn_model *model = NULL;
            tn_model_config cfg;
            tn_model_config_default(&cfg);
            cfg.load = load;
            if (truncate(path, (off_t)n) != 0) abort();
            TEST_CHECK_STATUS(tn_model_open(ctx, path, &cfg, &model), TN_ERR_FORMAT);
            write_file();
        }
    }
}

// --- memory ------------------------------------------------------------------------------------------

static void test_limits(void)
{
    size_t peak = tn_context_memory_peak(ctx);
    tn_session *s = NULL;
    tn_model *model = NULL;
    count.fail_from = count.calls;
    count.fail_to = count.fail_from + 1000000;
    TEST_CHECK(!tn_alloc(ctx, peak + ((size_t)64 << 20)));
    count.fail_from = count.fail_to = 0;
    TEST_CHECK(tn_context_memory_peak(ctx) == peak); // what failed was never in use
    if (!TEST_CHECK_STATUS(tn_model_open(ctx, path, NULL, &model), TN_OK)) return;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 2000000000;
    peak = tn_context_memory_peak(ctx);
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_ERR_ARG);
    cfg.n_ctx = 1 << 16;
    calls.available = (uint64_t)1 << 20;
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_ERR_MEMORY);
    TEST_CHECK(message_has("1 MiB are available"));
    TEST_CHECK(!s && tn_context_memory_peak(ctx) < peak + ((size_t)16 << 20));
    tn_model_unref(&model);
    tn_model_config load;
    tn_model_config_default(&load);
    load.load = TN_LOAD_READ;
    calls.available = size / 4;
    TEST_CHECK_STATUS(tn_model_open(ctx, path, &load, &model), TN_ERR_MEMORY);
    TEST_CHECK(message_has("map the file instead"));
    watched w = {.stop_at = -1};
    TEST_CHECK_STATUS(open_watched(&w, TN_LOAD_MAP, false), TN_OK); // not read ahead
    TEST_CHECK(w.total == 0);
    calls.available = 0;
}

typedef struct heard {
    int32_t code, n;
} heard;

static void hear(void *user, int32_t code, const char *text)
{
    (void)text;
    *(heard *)user = (heard){code, ((heard *)user)->n + 1};
}

// A name that no backend has is an error; one without a device is told before the CPU takes its place.
static void test_backend_names(void)
{
    static const char *const absent[] = {"cuda", "vulkan"};
    tn_context *c = NULL;
    tn_model *model = NULL;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.backend = "metal";
    TEST_CHECK_STATUS(tn_context_create(&cfg, &c), TN_ERR_ARG);
    cfg.backend = NULL;
    cfg.isa = "sse99";
    TEST_CHECK_STATUS(tn_context_create(&cfg, &c), TN_ERR_ARG);
    for (size_t i = 0; i < 2 * TN_COUNT(absent); i++) {
        heard h = {0};
        tn_context_config_default(&cfg);
        cfg.backend = absent[i / 2];
        cfg.event = hear;
        cfg.user = &h;
        cfg.strict = i % 2;
        if (!TEST_CHECK_STATUS(tn_context_create(&cfg, &c), TN_OK)) continue;
        if (!tn_context_device_by_name(c, absent[i / 2])) {
            TEST_CHECK_STATUS(tn_model_open(c, path, NULL, &model), i % 2 ? TN_ERR_UNSUPPORTED : TN_OK);
            if (i % 2 == 0) TEST_CHECK(h.code == TN_EVENT_DEVICE_FALLBACK && h.n == 1);
            tn_model_unref(&model);
        }
        tn_context_destroy(&c);
    }
}

static void test_lock(void)
{
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.lock_memory = 1;
    for (cfg.load = TN_LOAD_MAP; cfg.load <= TN_LOAD_READ; cfg.load++) {
        if (!TEST_CHECK_STATUS(tn_model_open(ctx, path, &cfg, &model), TN_OK)) return;
        TEST_CHECK(is_same(model));
        tn_model_unref(&model);
    }
    // Where the system locks no more, that is told once, and nothing behind is tried.
    heard h = {0};
    tn_context *mine = ctx, *c = NULL;
    tn_context_config hearing;
    tn_context_config_default(&hearing);
    hearing.event = hear;
    hearing.user = &h;
    tiny_must(tn_context_create(&hearing, &c));
    for (calls.no_lock = 1; calls.no_lock < 4; calls.no_lock++) {
        h.n = 0;
        calls.n_locks = 0;
        cfg.load = TN_LOAD_MAP;
        if (!TEST_CHECK_STATUS(tn_model_open(c, path, &cfg, &model), TN_OK)) break;
        ctx = c;
        TEST_CHECK(h.n == 1 && h.code == TN_EVENT_MEMORY_NOT_LOCKED && is_same(model));
        TEST_CHECK(calls.n_locks <= calls.no_lock);
        ctx = mine;
        tn_model_unref(&model);
    }
    calls.no_lock = 0;
    tn_context_destroy(&c);
}

int main(void)
{
    tiny_shape shape = tiny_shapes[TINY_LLAMA];
    tiny_file *f = malloc(sizeof *f);
    if (!f || !mkdtemp(folder)) abort();
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    ctx = counting_context(&count);
    shape.tokenizer = true;
    tiny_describe(&shape, f);
    bytes = tiny_write(ctx, f, &size);
    free(f);
    write_file();
    tn_model *model = NULL;
    tiny_must(tn_model_open(ctx, path, NULL, &model));
    tiny_must(use(model, expected));
    tn_model_unref(&model);
    test_sources();
    test_refused();
    test_failing_reader();
    test_failing_system(TN_LOAD_READ);
    calls.no_populate = true;
    test_failing_system(TN_LOAD_MAP);
    calls.no_populate = false;
    test_no_memory(TN_LOAD_MAP);
    test_no_memory(TN_LOAD_READ);
    test_progress();
    test_cancel_from_thread();
    test_cut_in_use();
    test_cut_in_loading();
    test_cut_before();
    test_limits();
    test_backend_names();
    test_lock();
    unlink(path);
    TEST_CHECK(rmdir(folder) == 0);
    tn_free(ctx, bytes);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
