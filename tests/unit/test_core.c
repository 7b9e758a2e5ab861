// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the rest relies on and hardly ever meets: texts that are not UTF-8, sizes that no memory has, ranges
// outside of buffers, waits that never end, libraries without a function, mutexes that several threads want,
// and files of tuning that are cut, foreign or too long.
#include "core/device.h"
#include "core/os/library.h"
#include "core/strbuf.h"
#include "core/threads/mutex.h"
#include "core/tuning/tuning_file.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <pthread.h>
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
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, add_often, NULL) != 0) abort();
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
    test_ranges(ctx);
    tn_context_destroy(&ctx);
    test_waits();
    test_library();
    test_mutex();
    test_tuning();
    TEST_CHECK(count.live == 0);
    return test_done();
}
