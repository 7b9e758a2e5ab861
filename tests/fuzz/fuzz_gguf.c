// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the GGUF reader: opens the bytes, walks over everything they offer. With libFuzzer, or with
// -DTN_FUZZ_STANDALONE for a number of seconds (first argument) on mutations of a built-in file; the second
// argument is the first seed (default 1). Same seeds, same bytes.
#include "tests/unit/gguf_bytes.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_context *ctx = NULL;
    tn_gguf *gguf = NULL;
    if (tn_context_create(NULL, &ctx) != TN_OK) return 0;
    size_t before = tn_context_memory(ctx);
    // A copy of exactly this size: aligned, and a read behind it is seen by the sanitizer.
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (!copy) abort();
    if (size > 0) memcpy(copy, data, size);
    if (tn_gguf_open_memory(ctx, copy, size, "fuzz", &gguf) == TN_OK) {
        volatile uint64_t sum = walk_all(gguf);
        TN_UNUSED(sum);
    }
    tn_gguf_close(&gguf);
    if (tn_context_memory(ctx) != before) abort(); // a leak
    tn_context_destroy(&ctx);
    free(copy);
    return 0;
}

#ifdef TN_FUZZ_STANDALONE
// xorshift64*, Vigna 2016
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

// One to four changes: a bit, a byte, an extreme number, a cut, bytes moved elsewhere.
static void mutate(bytes *b, uint64_t *state)
{
    static const uint64_t extremes[] = {0,          1,          4,          13,
                                        0xff,       0x7fffffff, 0xffffffff, 1u << 30,
                                        1ull << 61, INT64_MAX,  1ull << 63, UINT64_MAX - 31,
                                        UINT64_MAX};
    for (uint64_t n = next_random(state) % 4 + 1; n > 0 && b->size > 8; n--) {
        size_t at = next_random(state) % b->size, from = next_random(state) % b->size;
        uint64_t v = extremes[next_random(state) % TN_COUNT(extremes)];
        size_t width = (size_t)1 << next_random(state) % 4;
        switch (next_random(state) % 8) {
        case 0:
            b->data[at] = (uint8_t)next_random(state);
            break;
        case 1:
            b->size = next_random(state) % 8 == 0 ? at : b->size;
            break;
        case 2:
            memmove(b->data + at, b->data + from, TN_MIN(width * 4, b->size - TN_MAX(at, from)));
            break;
        case 3:
        case 4:
            for (size_t i = 0; i < width && at + i < b->size; i++) b->data[at + i] = (uint8_t)(v >> 8 * i);
            break;
        default:
            b->data[at] ^= (uint8_t)(1u << next_random(state) % 8);
            break;
        }
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, n = 0;
    uint64_t end = tn_time_ns() + (uint64_t)(seconds * 1e9);
    bytes good = {0}, b = {0};
    bytes_good_file(&good);
    for (; tn_time_ns() < end; n++) {
        uint64_t state = (seed + n) * 0x9e3779b97f4a7c15u | 1;
        b.size = 0;
        bytes_put(&b, good.data, good.size);
        mutate(&b, &state);
        LLVMFuzzerTestOneInput(b.data, b.size);
    }
    printf("%llu executions\n", (unsigned long long)n);
    free(good.data);
    free(b.data);
    return 0;
}
#endif
