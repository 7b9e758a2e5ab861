// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the rest relies on and hardly ever meets: texts that are not UTF-8, sizes that no memory has, limits
// and configurations that are refused, ranges outside of buffers, waits that never end, libraries without a
// function, mutexes that several threads want, and files of tuning that are cut, foreign or too long.
#include "core/device.h"
#include "core/memory/arena.h"
#include "core/os/library.h"
#include "core/strbuf.h"
#include "core/threads/mutex.h"
#include "core/tuning/tuning_file.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static counting count;

static tn_context *new_context(const char *folder)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    cfg.allocator = (tn_allocator){&count, counting_alloc, counting_free};
    cfg.n_threads = 1;
    cfg.backend = "cpu";
    cfg.cache_dir = folder;
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    return ctx;
}

static bool message_has(tn_context *ctx, const char *part)
{
    char text[512] = "";
    tn_context_error(ctx, text, sizeof text);
    if (!strstr(text, part)) printf("    message: %s\n", text);
    return strstr(text, part) != NULL;
}

// --- texts and memory ----------------------------------------------------------------------------

// Valid sequences stay, each byte of others becomes U+FFFD (table 3-7 of the Unicode standard, version 15).
static void test_json(tn_context *ctx)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"a\"b\\c\n\t\x7f", "a\\\"b\\\\c\\n\\u0009\\u007f"},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
         "\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
        {"\x80", "\\ufffd"},
        {"\xc1\xbf", "\\ufffd\\ufffd"},
        {"\xc3", "\\ufffd"},
        {"\xc3x", "\\ufffdx"},
        {"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"},            // too long for its number
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},            // half of a pair
        {"\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"}, // too long for its number
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, // above U+10FFFF
        {"\xf5\x80", "\\ufffd\\ufffd"},
        {"\xff", "\\ufffd"},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_strbuf s;
        tn_strbuf_init(&s, ctx);
        tn_strbuf_json(&s, rows[i].text, strlen(rows[i].text));
        if (!TEST_CHECK(s.status == TN_OK && strcmp(s.data, rows[i].want) == 0))
            printf("    row %zu: %s\n", i, s.data);
        tn_strbuf_fini(&s);
    }
}

static void test_sizes(tn_context *ctx)
{
    tn_strbuf s;
    tn_strbuf_init(&s, ctx);
    tn_strbuf_puts(&s, "text");
    tn_strbuf_append(&s, NULL, SIZE_MAX / 2); // refused before it is read
    TEST_CHECK(s.status == TN_ERR_MEMORY && message_has(ctx, "out of memory"));
    tn_strbuf_puts(&s, "more");
    tn_strbuf_printf(&s, "%d", 1);
    TEST_CHECK(s.size == 4 && strcmp(s.data, "text") == 0);
    tn_strbuf_fini(&s);
    TEST_CHECK(!tn_alloc(ctx, SIZE_MAX) && message_has(ctx, "out of memory"));
    TEST_CHECK(!tn_calloc(ctx, SIZE_MAX / 8, 16) && message_has(ctx, "items of 16 bytes"));
}

// Sizes that no arena has, and the limit of a context: what fails leaves all of it usable.
static void test_limits(tn_context *ctx)
{
    tn_arena arena;
    tn_arena_init(&arena, ctx);
    TEST_CHECK(!tn_arena_alloc(&arena, SIZE_MAX) && message_has(ctx, "bytes wanted"));
    TEST_CHECK(!tn_arena_alloc(&arena, SIZE_MAX - 100) && message_has(ctx, "bytes wanted"));
    TEST_CHECK(!tn_arena_array(&arena, SIZE_MAX / 8, 16) && message_has(ctx, "items of 16 bytes"));
    TEST_CHECK(tn_arena_array(&arena, 4, 0) && tn_arena_alloc(&arena, 100000));
    tn_arena_fini(&arena);
    TEST_CHECK(!tn_strndup(ctx, "text", SIZE_MAX));
    char *none = tn_strndup(ctx, "text", 0);
    TEST_CHECK(none && none[0] == 0);
    tn_free(ctx, none);

    enum { LIMIT = 1 << 20 };
    tn_context_config cfg;
    tn_context *small = NULL;
    tn_context_config_default(&cfg);
    cfg.memory_limit = LIMIT;
    cfg.n_threads = 1;
    cfg.backend = "cpu";
    TEST_CHECK_STATUS(tn_context_create(&cfg, &small), TN_OK);
    size_t before = tn_context_memory(small);
    TEST_CHECK(!tn_alloc(small, LIMIT) && message_has(small, "of the limit of 1048576"));
    TEST_CHECK(tn_context_memory(small) == before);
    void *most = tn_alloc(small, LIMIT - before);
    TEST_CHECK(most && tn_context_memory(small) == LIMIT && tn_context_memory_peak(small) == LIMIT);
    TEST_CHECK(!tn_alloc(small, 1));
    tn_free(small, most);
    tn_context_destroy(&small);
}

static void *no_memory(void *user, size_t size, size_t align)
{
    TN_UNUSED(user);
    TN_UNUSED(size);
    TN_UNUSED(align);
    return NULL;
}

// Each field of a configuration that a context refuses, by a message that names it.
static void test_configs(void)
{
    static char path[70000];
    memset(path, 'x', sizeof path - 1);
    tn_context_config rows[7];
    static const char *const words[TN_COUNT(rows)] = {
        "lacks a function", "lacks a function", "n_threads", "n_threads",
        "threads_by",       "thread_priority",  "cache_dir"};
    for (size_t i = 0; i < TN_COUNT(rows); i++) tn_context_config_default(&rows[i]);
    rows[0].allocator.alloc = NULL;
    rows[1].allocator.free = NULL;
    rows[2].n_threads = -1;
    rows[3].n_threads = 1 << 20;
    rows[4].threads_by = 77;
    rows[5].thread_priority = -1;
    rows[6].cache_dir = path;
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_context *ctx = NULL;
        TEST_CHECK_STATUS(tn_context_create(&rows[i], &ctx), TN_ERR_ARG);
        TEST_CHECK(!ctx && message_has(NULL, words[i]));
    }
    tn_context *ctx = NULL;
    tn_context_config_default(&rows[0]);
    rows[0].allocator.alloc = no_memory;
    TEST_CHECK_STATUS(tn_context_create(&rows[0], &ctx), TN_ERR_MEMORY);
    TEST_CHECK(!ctx && strcmp(tn_status_text((tn_status)12345), "unknown status") == 0);
}

// --- types and devices ---------------------------------------------------------------------------

static void test_types(void)
{
    TEST_CHECK(tn_dtype_by_name("q8_0") == TN_TYPE_Q8_0 && tn_dtype_by_name("Q8_0") == TN_TYPE_Q8_0);
    TEST_CHECK(tn_dtype_by_name("Q8") < 0 && tn_dtype_by_name("Q8_00") < 0 && tn_dtype_by_name("") < 0);
    TEST_CHECK(tn_dtype_by_name(NULL) < 0 && tn_dtype_by_file_id(-1) < 0 && tn_dtype_by_file_id(9999) < 0);
    TEST_CHECK(tn_dtype_row_size(TN_TYPE_Q8_0, 64) == 68 && tn_dtype_row_size(TN_TYPE_Q8_0, 33) == 0);
    TEST_CHECK(tn_dtype_row_size(TN_TYPE_F32, -1) == 0 && tn_dtype_row_size(TN_TYPE_F32, 0) == 0);
    TEST_CHECK(tn_dtype_row_size(TN_TYPE_F32, INT64_MAX) == 0);
}

static void test_devices(tn_context *ctx)
{
    char text[64] = "x";
    TEST_CHECK(!tn_context_device_get(ctx, -1) && !tn_context_device_get(NULL, 0));
    TEST_CHECK(!tn_context_device_get(ctx, tn_context_n_devices(ctx)));
    TEST_CHECK(!tn_context_device_by_name(ctx, "none") && !tn_context_device_by_name(ctx, NULL));
    TEST_CHECK(!tn_device_of_role(ctx, (tn_backend_role)1000));
    tn_device *device = tn_context_device_by_name(ctx, "cpu");
    size_t n = tn_device_details(device, NULL, 0);
    TEST_CHECK(n > 0 && tn_device_details(device, text, sizeof text) == n && strlen(text) < sizeof text);
    TEST_CHECK(tn_device_details(NULL, text, sizeof text) == 0 && text[0] == 0);
    n = tn_context_absent_backends(ctx, NULL, 0);
    TEST_CHECK(tn_context_absent_backends(ctx, text, 0) == n);
    TEST_CHECK(tn_context_absent_backends(ctx, text, 4) == n && strlen(text) < 4);
    tn_alloc(ctx, SIZE_MAX);
    n = tn_context_error(ctx, NULL, 0);
    TEST_CHECK(n > 0 && tn_context_error(ctx, text, 0) == n && tn_context_error(ctx, text, 4) == n);
    TEST_CHECK(strlen(text) == 3);
}

static void count_part(void *arg, int32_t i, int32_t n)
{
    TN_UNUSED(i);
    TN_UNUSED(n);
    atomic_fetch_add((_Atomic int32_t *)arg, 1);
}

// Threads that get time only where others leave it do all of the work too.
static void test_background(void)
{
    _Atomic int32_t n = 0;
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    cfg.n_threads = 3;
    cfg.thread_priority = TN_THREADS_BACKGROUND;
    cfg.backend = "cpu";
    TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_OK);
    for (int i = 0; i < 20; i++) TEST_CHECK_STATUS(tn_parallel(ctx, 8, count_part, &n), TN_OK);
    TEST_CHECK(atomic_load(&n) == 160);
    tn_context_destroy(&ctx);
}

// --- buffers -------------------------------------------------------------------------------------

static void test_ranges(tn_context *ctx)
{
    enum { SIZE = 64 };
    static const struct {
        size_t at, n;
        bool inside;
    } rows[] = {{0, SIZE, true},      {SIZE, 0, true},      {60, 4, true},        {60, 5, false},
                {SIZE + 1, 0, false}, {0, SIZE + 1, false}, {1, SIZE_MAX, false}, {SIZE_MAX, 2, false}};
    char bytes[SIZE] = {0};
    tn_buffer b;
    TEST_CHECK_STATUS(tn_buffer_create(tn_context_device_by_name(ctx, "cpu"), SIZE, &b), TN_OK);
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        size_t at = rows[i].at, n = rows[i].n;
        tn_status want = rows[i].inside ? TN_OK : TN_ERR_ARG;
        TEST_CHECK_STATUS(tn_buffer_write(&b, at, bytes, n), want);
        TEST_CHECK_STATUS(tn_buffer_read(&b, at, bytes, n), want);
        TEST_CHECK_STATUS(tn_buffer_zero(&b, at, n), n == 0 ? TN_OK : want);
        if (!rows[i].inside) TEST_CHECK_STATUS(tn_buffer_write_weight(&b, at, NULL, bytes, n), want);
        if (!rows[i].inside) TEST_CHECK(message_has(ctx, "exceeds 64 bytes") || n == 0);
    }
    TEST_CHECK_STATUS(tn_buffer_zero_rows(&b, 0, 8, 16, 4), TN_OK);
    TEST_CHECK_STATUS(tn_buffer_zero_rows(&b, 9, 8, 16, 4), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_buffer_zero_rows(&b, 9, 8, 16, 0), TN_OK);
    tn_buffer_destroy(&b);
    tn_buffer_destroy(&b); // cleared
}

// --- the system ----------------------------------------------------------------------------------

static void test_library(void)
{
    static const tn_library_names math = {"libm.so.6", "msvcrt.dll", "libSystem.B.dylib"},
                                  none = {"libnone.so.0", "none.dll", "libnone.0.dylib"}, no_name = {0};
    static const tn_library_symbol symbols[] = {{"cos", 0}, {"no_such_function", sizeof(void *)}};
    const char *missing = NULL;
    void *table[2] = {0};
    TEST_CHECK(!tn_library_open(&none, symbols, 1, table, &missing) && !missing);
    TEST_CHECK(!tn_library_open(&no_name, symbols, 1, table, &missing) && !missing);
    TEST_CHECK(!tn_library_open(&math, symbols, 2, table, &missing));
    TEST_CHECK(missing && strcmp(missing, "no_such_function") == 0);
    void *library = tn_library_open(&math, symbols, 1, table, &missing);
    if (TEST_CHECK(library && table[0])) tn_library_close(library);
}

enum { THREADS = 4, TURNS = 20000 };
static struct {
    tn_mutex mutex;
    long n;
} shared;

static void *add_often(void *arg)
{
    TN_UNUSED(arg);
    for (int i = 0; i < TURNS; i++) {
        tn_mutex_lock(&shared.mutex);
        for (volatile int wait = 0; wait < 20; wait++) shared.n += wait == 0; // so that others have to wait
        tn_mutex_unlock(&shared.mutex);
    }
    return NULL;
}

static void test_mutex(void)
{
    pthread_t threads[THREADS];
    tn_mutex_lock(&shared.mutex);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, add_often, NULL) != 0) abort();
    while (atomic_load(&shared.mutex.word) != 2) sched_yield(); // until one of them waits
    tn_mutex_unlock(&shared.mutex);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    TEST_CHECK(shared.n == (long)THREADS * TURNS);
}

// --- tuning --------------------------------------------------------------------------------------

enum { LINES = 3 };
static const char *const lines[LINES] = {"first 1", "", "third 3"};

static bool give_line(const void *user, int32_t i, char text[TN_TUNING_LINE_SIZE])
{
    TN_UNUSED(user);
    if (i >= LINES) return false;
    snprintf(text, TN_TUNING_LINE_SIZE, "%s", lines[i]);
    return true;
}

static void take_line(void *user, const char *text)
{
    int32_t *n = user;
    TEST_CHECK(*n < LINES && strcmp(text, lines[*n]) == 0);
    ++*n;
}

static int32_t lines_of(tn_context *ctx, const tn_tuning_file *f)
{
    int32_t n = 0;
    tn_tuning_file_read(ctx, f, take_line, &n);
    return n;
}

static void find_file(const char *folder, char path[256])
{
    char command[256];
    snprintf(command, sizeof command, "ls %s/tuning-*", folder);
    FILE *list = popen(command, "r");
    if (!list || !fgets(path, 256, list)) abort();
    pclose(list);
    path[strcspn(path, "\n")] = 0;
}

// A file counts whole or not at all.
static void test_tuning(void)
{
    static const tn_tuning_file file = {"core", "a device", 1};
    static char long_text[2 * TN_TUNING_LINE_SIZE], text[4096];
    char folder[] = "/tmp/tenon-core-XXXXXX", path[256];
    if (!mkdtemp(folder)) abort();
    tn_context *ctx = new_context(folder), *without = new_context(NULL);
    TEST_CHECK(lines_of(ctx, &file) == 0);
    TEST_CHECK_STATUS(tn_tuning_file_write(without, &file, give_line, NULL), TN_OK);
    TEST_CHECK(lines_of(without, &file) == 0);
    TEST_CHECK_STATUS(tn_tuning_file_write(ctx, &file, give_line, NULL), TN_OK);
    TEST_CHECK(lines_of(ctx, &file) == LINES);
    find_file(folder, path);
    FILE *f = fopen(path, "rb");
    size_t size = f ? fread(text, 1, sizeof text, f) : 0;
    if (f) fclose(f);
    for (size_t n = 0; n < size; n++) { // cut anywhere
        f = fopen(path, "wb");
        if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0) abort();
        TEST_CHECK(lines_of(ctx, &file) == 0);
    }
    tn_tuning_file other = file;
    other.version = 2;
    TEST_CHECK_STATUS(tn_tuning_file_write(ctx, &file, give_line, NULL), TN_OK);
    TEST_CHECK(lines_of(ctx, &other) == 0 && lines_of(ctx, &file) == LINES);
    memset(long_text, 'x', sizeof long_text - 1); // a description for which a line has no space
    other = (tn_tuning_file){"core", long_text, 1};
    TEST_CHECK(lines_of(ctx, &other) == 0);
    tn_context_destroy(&ctx);
    tn_context_destroy(&without);
    snprintf(text, sizeof text, "rm -r %s", folder);
    TEST_CHECK(system(text) == 0);
}

// --- waiting for devices -----------------------------------------------------------------------------------

// Of a wait that began `ago` ns ago, in a context with that limit: whether it is over, and what it has
// counted.
static bool wait_over(int64_t timeout_ms, uint64_t ago, tn_device_wait *w)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    TEST_CHECK(cfg.device_timeout_ms == 0);
    cfg.device_timeout_ms = timeout_ms;
    cfg.backend = "cpu";
    TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_OK);
    *w = tn_device_wait_begin(tn_context_device_get(ctx, 0));
    w->last_ns -= ago;
    bool over = tn_device_wait_over(w);
    if (over) {
        tn_status status = tn_device_wait_fail(tn_context_device_get(ctx, 0), w, "running");
        TEST_CHECK(status == TN_ERR_DEVICE && message_has(ctx, "cpu: running: the device was lost"));
    }
    tn_context_destroy(&ctx);
    return over;
}

static void test_waits(void)
{
    const uint64_t ms = 1000000, slice = TN_DEVICE_WAIT_SLICE;
    tn_device_wait w;
    TEST_CHECK(wait_over(100, 100 * ms, &w) && w.waited_ns >= 100 * ms);
    TEST_CHECK(!wait_over(5000, 100 * ms, &w) && w.waited_ns >= 100 * ms && w.waited_ns <= slice);
    // What is longer than a slice is a time in which the process was stopped.
    TEST_CHECK(!wait_over(5000, 60000 * ms, &w) && w.waited_ns == slice && tn_device_wait_slice(&w) == slice);
    w.last_ns -= 60000 * ms;
    TEST_CHECK(!tn_device_wait_over(&w) && w.waited_ns == 2 * slice);
    w.waited_ns = 4900 * ms;
    TEST_CHECK(tn_device_wait_slice(&w) == 100 * ms);
    w.waited_ns = 5100 * ms;
    TEST_CHECK(tn_device_wait_slice(&w) == 0 && tn_device_wait_over(&w));
    wait_over(0, 0, &w); // by default five minutes
    TEST_CHECK(w.limit_ns == 300000 * ms);
    const int64_t none[] = {-1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < TN_COUNT(none); i++) {
        TEST_CHECK(!wait_over(none[i], 0, &w) && w.limit_ns == UINT64_MAX);
        w.waited_ns = UINT64_MAX / 2;
        TEST_CHECK(!tn_device_wait_over(&w) && tn_device_wait_slice(&w) == slice);
    }
}

int main(void)
{
    tn_context *ctx = new_context(NULL);
    test_json(ctx);
    test_sizes(ctx);
    test_limits(ctx);
    test_types();
    test_devices(ctx);
    test_ranges(ctx);
    tn_context_destroy(&ctx);
    test_configs();
    test_background();
    test_waits();
    test_library();
    test_mutex();
    test_tuning();
    TEST_CHECK(count.live == 0);
    return test_done();
}
