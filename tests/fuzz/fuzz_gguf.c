// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the GGUF reader: opens the bytes, walks over everything they offer.
#include "tests/fuzz/fuzz.h"
#include "tests/unit/gguf_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_context *ctx = NULL;
    tn_gguf *gguf = NULL;
    if (tn_context_create(NULL, &ctx) != TN_OK) return 0;
    uint8_t *copy = fuzz_copy(data, size);
    fuzz_cost cost = fuzz_begin(ctx);
    if (tn_gguf_open_memory(ctx, copy, size, "fuzz", &gguf) == TN_OK) {
        volatile uint64_t sum = walk_all(gguf);
        TN_UNUSED(sum);
    }
    tn_gguf_close(&gguf);
    fuzz_end(&cost, size);
    tn_context_destroy(&ctx);
    free(copy);
    return 0;
}

// A file with every type of value, damaged.
static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    bytes good = {0};
    bytes_good_file(&good);
    size_t size = TN_MIN(good.size, max);
    memcpy(out, good.data, size);
    free(good.data);
    return fuzz_random(state) % 16 == 0 ? size : fuzz_damage(state, out, size, size);
}

#include "tests/fuzz/fuzz_main.h"
