// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of adapters (LoRA) and importance matrices for a small model. The first byte picks what the rest is;
// an adapter that is accepted is used for a token, and an importance matrix is read for each weight.
#define _GNU_SOURCE // memfd_create
#include "models/quantize/imatrix.h"
#include "tests/fuzz/fuzz.h"
#include "tests/models/adapter_files.h"
#include "tests/unit/gguf_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MODE_ADAPTER, MODE_IMATRIX, MODES, DATA_MAX = 64 << 10 };

static struct {
    tn_context *ctx;
    tn_model *model;
    tiny_file *file;
} fixture;

static void fixture_init(void)
{
    size_t size;
    if (fixture.ctx) return;
    fixture.ctx = fuzz_context(NULL);
    fixture.file = malloc(sizeof *fixture.file);
    fuzz_must(fixture.file != NULL);
    tiny_describe(&tiny_shapes[TINY_QWEN3MOE], fixture.file);
    void *file = tiny_write(fixture.ctx, fixture.file, &size);
    tiny_must(tn_model_open_memory(fixture.ctx, file, size, "tiny", NULL, &fixture.model));
}

// A pass of as many tokens as the session takes at once uses the plan that the session has made.
static void use_adapter(const void *file, size_t size, bool one_token)
{
    static const int32_t tokens[] = {5, 6};
    int32_t n = one_token ? 1 : 2;
    tn_adapter *adapter = NULL;
    tn_session *s = NULL;
    tn_session_config cfg;
    if (tn_adapter_open_memory(fixture.model, file, size, "fuzz", &adapter) != TN_OK) return;
    tn_adapter_use use = {.struct_size = sizeof use, .adapter = adapter, .scale = 0.5f};
    tn_session_config_default(&cfg);
    cfg.n_ctx = 70;
    cfg.n_batch = n;
    cfg.adapters = &use;
    cfg.n_adapters = 1;
    tn_status status = tn_session_create(fixture.model, &cfg, &s);
    if (status == TN_OK) status = tn_session_feed(s, 0, tokens, n);
    fuzz_must(status == TN_OK || status == TN_ERR_UNSUPPORTED || status == TN_ERR_MODEL);
    tn_session_destroy(&s);
    tn_adapter_unref(&adapter);
}

// It takes a path: the bytes become a file without a name.
static void use_imatrix(const void *file, size_t size)
{
    static float *out;
    static int fd = -1;
    char path[64];
    tn_imatrix *im = NULL;
    if (fd < 0) fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (!out) out = malloc(sizeof *out * 64 * 1024);
    fuzz_must(out && fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, file, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (tn_imatrix_open(fixture.ctx, path, &im) == TN_OK)
        for (int32_t i = 0; i < fixture.file->n_tensors; i++) {
            const tiny_tensor *t = &fixture.file->tensors[i];
            int64_t n = t->n_dims > 2 ? t->ne[0] : 1, cols = t->ne[t->n_dims - 1];
            if (n * cols > 64 * 1024 || tn_imatrix_read(im, t->name, n, cols, out) != TN_OK) continue;
            for (int64_t k = 0; k < n * cols; k++) fuzz_must(out[k] > 0.0f);
        }
    tn_imatrix_close(&im);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    fixture_init();
    fuzz_cost cost = fuzz_begin(fixture.ctx);
    // Zeros stand for data that is cut off, so that inputs stay small.
    size_t n = size - 1 + (data[0] & 2 ? DATA_MAX : 0);
    uint8_t *copy = calloc(1, n + 1);
    fuzz_must(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    if (data[0] % MODES == MODE_ADAPTER)
        use_adapter(copy, n, data[0] & 4);
    else
        use_imatrix(copy, n);
    free(copy);
    fuzz_end(&cost, n);
    return 0;
}

// --- inputs --------------------------------------------------------------------------------------

static size_t make_adapter(uint64_t *state, uint8_t *out, size_t max)
{
    static const tn_dtype types[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0};
    size_t size;
    adapter_file *f = malloc(sizeof *f);
    fuzz_must(f != NULL);
    adapter_describe(f, fixture.file, 1 + (int64_t)(fuzz_random(state) % 4), 2.0f,
                     types[fuzz_random(state) % 8 ? 0 : fuzz_random(state) % 3]);
    // Two or four tensors are enough, and small.
    f->n_tensors = TN_MIN(f->n_tensors, 2 + 2 * (int32_t)(fuzz_random(state) % 2));
    void *file = adapter_write(fixture.ctx, f, &size);
    size = TN_MIN(size, max);
    memcpy(out, file, size);
    tn_free(fixture.ctx, file);
    free(f);
    return size;
}

// Records of the older form: count; length of the name, name, calls, number of values, values.
static size_t make_imatrix(uint64_t *state, uint8_t *out, size_t max)
{
    bytes b = {0};
    uint32_t n = 1 + (uint32_t)(fuzz_random(state) % 3);
    bytes_num(&b, n, 4);
    for (uint32_t i = 0; i < n; i++) {
        const tiny_tensor *t = &fixture.file->tensors[fuzz_random(state) % (uint64_t)fixture.file->n_tensors];
        uint32_t cols = (uint32_t)t->ne[t->n_dims - 1];
        bytes_num(&b, strlen(t->name), 4);
        bytes_put(&b, t->name, strlen(t->name));
        bytes_num(&b, 3, 4);
        bytes_num(&b, cols, 4);
        for (uint32_t k = 0; k < cols; k++) bytes_put(&b, &(float){(float)(k % 7)}, 4);
    }
    size_t size = TN_MIN(b.size, max);
    memcpy(out, b.data, size);
    free(b.data);
    return size;
}

static size_t make_gguf_imatrix(uint64_t *state, uint8_t *out, size_t max)
{
    static const float values[64] = {1.0f, 2.0f, 3.0f};
    tn_gguf_writer *w;
    void *data;
    size_t size;
    char name[96];
    const tiny_tensor *t = &fixture.file->tensors[fuzz_random(state) % (uint64_t)fixture.file->n_tensors];
    tiny_must(tn_gguf_writer_open_memory(fixture.ctx, &w));
    tiny_must(tn_gguf_writer_put_str(w, "general.type", "imatrix"));
    snprintf(name, sizeof name, "%s.in_sum2", t->name);
    tiny_must(tn_gguf_writer_add_tensor(w, name, TN_TYPE_F32, 1, (int64_t[]){64}));
    snprintf(name, sizeof name, "%s.counts", t->name);
    tiny_must(tn_gguf_writer_add_tensor(w, name, TN_TYPE_F32, 1, (int64_t[]){1}));
    tiny_must(tn_gguf_writer_begin(w));
    tiny_must(tn_gguf_writer_data(w, values, 64 * sizeof *values));
    tiny_must(tn_gguf_writer_data(w, values, sizeof *values));
    tiny_must(tn_gguf_writer_commit(&w, &data, &size));
    size = TN_MIN(size, max);
    memcpy(out, data, size);
    tn_free(fixture.ctx, data);
    return size;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    fixture_init();
    if (max < 2) return 0;
    out[0] = (uint8_t)(fuzz_random(state) >> 8);
    bool old = fuzz_random(state) % 2;
    size_t n = out[0] % MODES == MODE_ADAPTER ? make_adapter(state, out + 1, max - 1)
               : old                          ? make_imatrix(state, out + 1, max - 1)
                                              : make_gguf_imatrix(state, out + 1, max - 1);
    return 1 + (fuzz_random(state) % 8 == 0 ? n : fuzz_damage(state, out + 1, n, n));
}

#include "tests/fuzz/fuzz_main.h"
