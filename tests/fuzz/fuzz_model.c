// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of everything that is read of a model before its weights: keys, tokenizer, shapes. The input is the
// metadata of a file; memory that nobody reads stands for the weights.
#include "core/context.h"
#include "models/keys/keys.h"
#include "tests/fuzz/fuzz.h"
#include "tests/models/tiny_model.h"

enum { WEIGHTS = 1 << 20 }; // bytes, more than any of the models has

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_context *ctx;
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.metadata_only = 1;
    if (!ctx) ctx = fuzz_context(NULL);
    fuzz_cost cost = fuzz_begin(ctx);
    uint8_t *copy = tn_alloc(ctx, size + WEIGHTS);
    fuzz_must(copy != NULL);
    if (size > 0) memcpy(copy, data, size);
    tn_status status = tn_model_open_memory(ctx, copy, size + WEIGHTS, "fuzz", &cfg, &model);
    if (status == TN_ERR_INTERNAL) abort(); // such as a key that is read and has no row
    tn_model_unref(&model);
    fuzz_end(&cost, size + WEIGHTS);
    return 0;
}

// --- inputs ------------------------------------------------------------------------------------------------

// Bytes of the metadata change, or the value behind a key of the table becomes an end of its range.
static void mutate(uint8_t *bytes, size_t n, uint64_t *state)
{
    if (n == 0) return;
    for (uint64_t i = fuzz_random(state) % 3 + 1; i > 0; i--) {
        size_t at = fuzz_random(state) % n, k = fuzz_random(state) % 128;
        const tn_key_row *row = tn_key_row_at(k);
        if (!row || fuzz_random(state) % 2) {
            bytes[at] ^= (uint8_t)(1u << fuzz_random(state) % 8);
            continue;
        }
        size_t length = strlen(row->name);
        for (size_t p = 0; p + length + 12 < n; p++) {
            if (memcmp(bytes + p, row->name, length) != 0) continue;
            int64_t v = fuzz_random(state) % 2 ? row->most + (row->most < INT64_MAX) : row->least - 1;
            uint8_t type = (uint8_t)(fuzz_random(state) % TN_GGUF_TYPE_COUNT);
            if (fuzz_random(state) % 4 == 0) bytes[p + length] = type;
            for (size_t b = 0; b < 4; b++) bytes[p + length + 4 + b] = (uint8_t)((uint64_t)v >> 8 * b);
            break;
        }
    }
}

// The metadata of a small model of that architecture.
static size_t write_metadata(int32_t arch, bool tokenizer, uint8_t *out, size_t max)
{
    tn_context *ctx = NULL;
    tn_gguf *gguf = NULL;
    size_t size;
    tiny_file *f = malloc(sizeof *f);
    fuzz_must(f && tn_context_create(NULL, &ctx) == TN_OK);
    tiny_describe(&tiny_shapes[arch], f);
    f->shape.tokenizer = tokenizer;
    void *bytes = tiny_write(ctx, f, &size);
    tiny_must(tn_gguf_open_memory(ctx, bytes, size, "made", &gguf));
    size_t n = TN_MIN((size_t)tn_gguf_tensor_at(gguf, 0)->file_offset, max);
    memcpy(out, bytes, n);
    tn_gguf_close(&gguf);
    tn_free(ctx, bytes);
    free(f);
    tn_context_destroy(&ctx);
    return n;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    enum { METADATA_MAX = 32 << 10 };
    static struct {
        size_t size;
        uint8_t bytes[METADATA_MAX];
    } made[TINY_ARCHS][2];
    int32_t arch = (int32_t)(fuzz_random(state) % TINY_ARCHS), tokenizer = (int32_t)(fuzz_random(state) % 2);
    if (made[arch][tokenizer].size == 0)
        made[arch][tokenizer].size =
            write_metadata(arch, tokenizer, made[arch][tokenizer].bytes, METADATA_MAX);
    size_t size = TN_MIN(made[arch][tokenizer].size, max);
    memcpy(out, made[arch][tokenizer].bytes, size);
    if (fuzz_random(state) % 16 != 0) mutate(out, size, state);
    return size;
}

#include "tests/fuzz/fuzz_main.h"
