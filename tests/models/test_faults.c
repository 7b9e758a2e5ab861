// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Every call of the system fails once: opening a model, a prompt and eight tokens, saving and loading the
// session, starting an engine, quantising the file, and the end. For each call and each way of failing: an
// error that names what failed, or success where the call is only a hint; nothing leaks, no descriptor and no
// file stays; a file that is written is there whole or as it was; and the same context then does all of it.
// Calls that were interrupted or gave less than they were asked for change nothing. The calls are those below
// (meson.build wraps them).
//
//     test_faults [STEP]   only every STEP-th use of a call (default 1)
#define _GNU_SOURCE
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tenon/engine.h>
#include <tenon/file.h>
#include <tenon/session.h>
#include <unistd.h>

// --- the system --------------------------------------------------------------------------------------

enum { OPEN, STAT, FSTAT, READ, PREAD, WRITE, MAP, ADVISE, SYNC, CLOSE, RENAME, THREAD, CALLS };
static const char *const names[CALLS] = {"open", "stat",    "fstat", "read",  "pread",  "write",
                                         "mmap", "madvise", "fsync", "close", "rename", "pthread_create"};

enum { SHORT = -1 }; // in place of an errno: less than was asked for

static struct {
    long n[CALLS];
    int call; // which fails, -1: none
    long at;  // which use of it
    int error;
    bool failed;
} faults = {.call = -1};

// The error that this use of the call has to give, 0: none.
static int fault(int call)
{
    long k = faults.n[call]++;
    if (call != faults.call || k != faults.at) return 0;
    faults.failed = true;
    return faults.error;
}

#define FAILS(call)                                                                                          \
    do {                                                                                                     \
        int error_ = fault(call);                                                                            \
        if (error_ > 0) return errno = error_, -1;                                                           \
    } while (0)

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode)
{
    FAILS(OPEN);
    return __real_open64(path, flags, mode);
}

int __real_stat64(const char *path, void *st);
int __wrap_stat64(const char *path, void *st);
int __wrap_stat64(const char *path, void *st)
{
    FAILS(STAT);
    return __real_stat64(path, st);
}

int __real_fstat64(int fd, void *st);
int __wrap_fstat64(int fd, void *st);
int __wrap_fstat64(int fd, void *st)
{
    FAILS(FSTAT);
    return __real_fstat64(fd, st);
}

// Half of what was asked for, at least one byte.
#define TRANSFER(call, name, args, n)                                                                        \
    do {                                                                                                     \
        int error_ = fault(call);                                                                            \
        if (error_ > 0) return errno = error_, -1;                                                           \
        if (error_ == SHORT) (n) = ((n) + 1) / 2;                                                            \
        return __real_##name args;                                                                           \
    } while (0)

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
    TRANSFER(READ, read, (fd, to, n), n);
}

ssize_t __real_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at)
{
    TRANSFER(PREAD, pread64, (fd, to, n, at), n);
}

ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    TRANSFER(WRITE, write, (fd, from, n), n);
}

void *__real_mmap64(void *at, size_t n, int access, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int access, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int access, int flags, int fd, off_t offset)
{
    int error = fault(MAP);
    if (error > 0) return errno = error, MAP_FAILED;
    return __real_mmap64(at, n, access, flags, fd, offset);
}

int __real_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice)
{
    FAILS(ADVISE);
    return __real_madvise(at, n, advice);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    FAILS(SYNC);
    return __real_fsync(fd);
}

// The descriptor is gone, whatever close says.
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int error = fault(CLOSE), result = __real_close(fd);
    return error > 0 ? (errno = error, -1) : result;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    FAILS(RENAME);
    return __real_rename(from, to);
}

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg)
{
    int error = fault(THREAD);
    return error > 0 ? error : __real_pthread_create(t, a, run, arg);
}

// --- a life ------------------------------------------------------------------------------------------

static char folder[] = "/tmp/tenon_faults_XXXXXX";
static char model_path[64], state_path[64], small_path[64];

static int count_entries(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    if (!d) abort();
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static int n_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

static tn_status open_model(tn_context *ctx, bool mapped, tn_model **model)
{
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.load = mapped ? TN_LOAD_MAP : TN_LOAD_READ;
    return tn_model_open(ctx, model_path, &cfg, model);
}

static tn_status use_session(tn_session *s, float *logits)
{
    static const int32_t prompt[] = {3, 1, 4, 1, 5, 9, 2};
    tn_status status = tn_session_feed(s, 0, prompt, 7);
    for (int32_t i = 0; i < 8 && status == TN_OK; i++) status = tn_session_feed(s, 0, prompt + i % 7, 1);
    if (status == TN_OK) memcpy(logits, tn_session_logits(s, 0), TINY_MODEL_VOCAB * sizeof *logits);
    if (status == TN_OK) status = tn_session_save(s, state_path);
    if (status == TN_OK) status = tn_session_load(s, state_path);
    return status;
}

// An engine with a thread of its own.
static tn_status use_engine(tn_model *model)
{
    tn_engine *e = NULL;
    tn_engine_config cfg;
    tn_engine_config_default(&cfg);
    tn_status status = tn_engine_create(model, &cfg, &e);
    if (status == TN_OK) status = tn_engine_start(e);
    tn_engine_destroy(&e);
    return status;
}

static tn_status live(tn_context *ctx, bool mapped, float *logits)
{
    tn_model *model = NULL;
    tn_session *s = NULL;
    tn_session_config cfg;
    tn_quantize_config quantize;
    tn_session_config_default(&cfg);
    tn_quantize_config_default(&quantize);
    cfg.n_ctx = 70;
    quantize.type = "Q8_0";
    tn_status status = open_model(ctx, mapped, &model);
    if (status == TN_OK) status = tn_session_create(model, &cfg, &s);
    if (status == TN_OK) status = use_session(s, logits);
    tn_session_destroy(&s);
    if (status == TN_OK) status = use_engine(model);
    tn_model_unref(&model);
    if (status == TN_OK) status = tn_quantize(ctx, model_path, small_path, &quantize);
    return status;
}

static tn_context *new_context(counting *count)
{
    tn_context_config cfg;
    tn_context *ctx = NULL;
    tn_context_config_default(&cfg);
    *count = (counting){0};
    cfg.allocator = (tn_allocator){count, counting_alloc, counting_free};
    cfg.n_threads = 4;
    return tn_context_create(&cfg, &ctx) == TN_OK ? ctx : NULL;
}

// --- faults ------------------------------------------------------------------------------------------

typedef struct kind {
    int call, error;
    bool harmless; // the work succeeds all the same, with the same results
    bool may_pass; // or may: some uses of the call are hints
} kind;

static const kind kinds[] = {
    {OPEN, EMFILE, false, true}, // the folder of a file that was written is opened to sync it
    {OPEN, EINTR, true, false},    {STAT, EIO, false, true},      {FSTAT, EIO, false, true},
    {READ, EIO, false, true},      {READ, EINTR, true, false},    {READ, SHORT, false, true},
    {PREAD, EIO, false, false},    {PREAD, EINTR, true, false},   {PREAD, SHORT, true, false},
    {WRITE, ENOSPC, false, true},  {WRITE, EINTR, true, false},   {WRITE, SHORT, true, false},
    {WRITE, EIO, false, true},     {MAP, ENOMEM, false, true},    {ADVISE, EIO, false, true},
    {ADVISE, EINTR, true, false},  {ADVISE, ENOSYS, false, true}, {SYNC, EIO, false, true},
    {SYNC, EINTR, true, false},    {CLOSE, EIO, false, true},     {RENAME, EACCES, false, false},
    {THREAD, EAGAIN, false, true},
};

static float expected[TINY_MODEL_VOCAB];
static long totals[CALLS];

static bool message_names(tn_context *ctx, int call)
{
    char text[1024] = "";
    tn_context_error(ctx, text, sizeof text);
    bool named = strstr(text, folder) || (call == THREAD && strstr(text, "thread"));
    if (!named) printf("    message: %s\n", text);
    return named;
}

// The first work of a context starts its threads: a new context for each fault.
static void check_fault(const kind *k, long at, bool mapped)
{
    counting count;
    float logits[TINY_MODEL_VOCAB] = {0};
    int descriptors = n_descriptors();
    tn_context *ctx = new_context(&count);
    if (!TEST_CHECK(ctx != NULL)) return;
    faults.call = k->call, faults.error = k->error, faults.at = at, faults.failed = false;
    memset(faults.n, 0, sizeof faults.n);
    tn_status status = live(ctx, mapped, logits);
    faults.call = -1;
    bool ok = status == TN_OK ? k->harmless || k->may_pass || !faults.failed : !k->harmless;
    ok = TEST_CHECK(ok);
    if (status == TN_OK) ok = TEST_CHECK(memcmp(logits, expected, sizeof logits) == 0) && ok;
    if (status != TN_OK) {
        ok = TEST_CHECK(status == TN_ERR_IO || status == TN_ERR_MEMORY || status == TN_ERR_UNSUPPORTED ||
                        status == TN_ERR_STATE) &&
             ok;
        ok = TEST_CHECK(message_names(ctx, k->call)) && ok;
    }
    ok = TEST_CHECK(count_entries(folder) <= 5) && ok; // . .. and three files
    ok = TEST_CHECK_STATUS(live(ctx, mapped, logits), TN_OK) && ok;
    ok = TEST_CHECK(memcmp(logits, expected, sizeof logits) == 0) && ok;
    tn_context_destroy(&ctx);
    ok = TEST_CHECK(count.live == 0) && ok;
    ok = TEST_CHECK(n_descriptors() == descriptors) && ok;
    totals[k->call]++;
    if (!ok)
        printf("    %s %ld, %s: %s\n", names[k->call], at, k->error > 0 ? strerror(k->error) : "short",
               tn_status_text(status));
}

static void check_all(bool mapped, long step)
{
    counting count;
    tn_context *ctx = new_context(&count);
    long uses[CALLS];
    memset(faults.n, 0, sizeof faults.n);
    TEST_CHECK(ctx && live(ctx, mapped, expected) == TN_OK);
    memcpy(uses, faults.n, sizeof uses);
    tn_context_destroy(&ctx);
    for (size_t i = 0; i < TN_COUNT(kinds); i++)
        for (long at = 0; at < uses[kinds[i].call]; at += step) check_fault(&kinds[i], at, mapped);
}

// A target that is there already is replaced whole or stays.
static void check_target(void)
{
    static const kind one[] = {
        {WRITE, ENOSPC, false, false}, {SYNC, EIO, false, false}, {RENAME, EIO, false, false}};
    counting count;
    tn_context *ctx = new_context(&count);
    struct stat before, after;
    tn_quantize_config quantize;
    tn_quantize_config_default(&quantize);
    quantize.type = "F16";
    TEST_CHECK(ctx && stat(small_path, &before) == 0);
    for (size_t i = 0; i < TN_COUNT(one); i++) {
        faults.call = one[i].call, faults.error = one[i].error, faults.at = 0;
        memset(faults.n, 0, sizeof faults.n);
        TEST_CHECK_STATUS(tn_quantize(ctx, model_path, small_path, &quantize), TN_ERR_IO);
        faults.call = -1;
        TEST_CHECK(stat(small_path, &after) == 0 && after.st_ino == before.st_ino &&
                   after.st_size == before.st_size);
    }
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
}

static void write_model(void)
{
    counting count;
    size_t size;
    tiny_file *f = malloc(sizeof *f);
    tn_context *ctx = new_context(&count);
    if (!f || !ctx) abort();
    tiny_describe(&tiny_shapes[TINY_LLAMA], f);
    void *bytes = tiny_write(ctx, f, &size);
    FILE *out = fopen(model_path, "wb");
    if (!out || fwrite(bytes, 1, size, out) != size || fclose(out) != 0) abort();
    tn_free(ctx, bytes);
    tn_context_destroy(&ctx);
    free(f);
}

int main(int argc, char **argv)
{
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    if (!mkdtemp(folder)) abort();
    snprintf(model_path, sizeof model_path, "%s/model.gguf", folder);
    snprintf(state_path, sizeof state_path, "%s/state", folder);
    snprintf(small_path, sizeof small_path, "%s/small.gguf", folder);
    write_model();
    check_all(true, step);
    check_all(false, step);
    check_target();
    long all = 0;
    for (int i = 0; i < CALLS; i++) {
        printf("%s: %ld faults\n", names[i], totals[i]);
        all += totals[i];
    }
    printf("%ld faults in all\n", all);
    remove(model_path);
    remove(state_path);
    remove(small_path);
    rmdir(folder);
    return test_done();
}
