// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of everything that is read of a model before its weights: keys, tokenizer, shapes. With libFuzzer
// (and the dictionary that fuzz_dictionary prints), or with -DTN_FUZZ_STANDALONE for a number of seconds
// (first argument) on small models with damaged bytes; the second argument is the first seed (default 1).
#include "models/keys/keys.h"
#include "tests/models/tiny_model.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_context *ctx = NULL;
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.metadata_only = 1;
    if (tn_context_create(NULL, &ctx) != TN_OK) return 0;
    size_t before = tn_context_memory(ctx);
    uint8_t *copy = tn_alloc(ctx, size > 0 ? size : 1);
    if (!copy) abort();
    if (size > 0) memcpy(copy, data, size);
    tn_status status = tn_model_open_memory(ctx, copy, size, "fuzz", &cfg, &model);
    if (status == TN_ERR_INTERNAL) abort(); // such as a key that is read and has no row
    tn_model_unref(&model);
    if (tn_context_memory(ctx) != before) abort(); // a leak
    tn_context_destroy(&ctx);
    return 0;
}

#ifdef TN_FUZZ_STANDALONE
#include "core/context.h"

// xorshift64*, Vigna 2016
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

// Bytes of the metadata change, or the value behind a key of the table becomes an end of its range.
static void mutate(uint8_t *bytes, size_t n, uint64_t *state)
{
    for (uint64_t i = next_random(state) % 3 + 1; i > 0; i--) {
        size_t at = next_random(state) % n, k = next_random(state) % 128;
        const tn_key_row *row = tn_key_row_at(k);
        if (!row || next_random(state) % 2) {
            bytes[at] ^= (uint8_t)(1u << next_random(state) % 8);
            continue;
        }
        size_t length = strlen(row->name);
        for (size_t p = 0; p + length + 12 < n; p++) {
            if (memcmp(bytes + p, row->name, length) != 0) continue;
            int64_t v = next_random(state) % 2 ? row->most + (row->most < INT64_MAX) : row->least - 1;
            uint8_t type = (uint8_t)(next_random(state) % TN_GGUF_TYPE_COUNT);
            if (next_random(state) % 4 == 0) bytes[p + length] = type;
            for (size_t b = 0; b < 4; b++) bytes[p + length + 4 + b] = (uint8_t)((uint64_t)v >> 8 * b);
            break;
        }
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, n = 0;
    uint64_t end = tn_time_ns() + (uint64_t)(seconds * 1e9);
    tn_context *ctx = NULL;
    tiny_file *f = malloc(sizeof *f);
    if (!f) abort();
    tiny_must(tn_context_create(NULL, &ctx));
    while (tn_time_ns() < end) {
        size_t size;
        tiny_describe(&tiny_shapes[n % TINY_ARCHS], f);
        f->shape.tokenizer = n % 2 == 0;
        uint8_t *good = tiny_write(ctx, f, &size), *bytes = malloc(size);
        if (!bytes) abort();
        size_t metadata = size < 16384 ? size : 16384;
        for (int k = 0; k < 64; k++, n++) {
            uint64_t state = (seed + n) * 0x9e3779b97f4a7c15u | 1;
            memcpy(bytes, good, size);
            mutate(bytes, metadata, &state);
            LLVMFuzzerTestOneInput(bytes, size);
        }
        tn_free(ctx, good);
        free(bytes);
    }
    printf("%llu executions\n", (unsigned long long)n);
    free(f);
    tn_context_destroy(&ctx);
    return 0;
}
#endif
