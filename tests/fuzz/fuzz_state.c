// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of session files, of a model with attention and recurrent layers. The last byte of an input is
// dropped; if it is odd, the checksum is made right first, so that what lies behind it is reached. Whatever
// loads must be usable; whatever does not must leave the session as it was.
#include "core/hash.h"
#include "models/run/state.h"
#include "tests/fuzz/fuzz.h"
#include "tests/models/tiny_model.h"

#include <tenon/graph.h>

enum { N_CTX = 150, SEQ = 3 };

static struct {
    tn_context *ctx;
    tn_model *model;
    tn_session *session;
    char *good; // of a session with three sequences that share blocks
    size_t good_size;
} fixture;

static void fixture_init(void)
{
    if (fixture.ctx) return;
    static const int32_t tokens[N_CTX] = {3, 1, 4, 1, 5};
    tn_context_config cfg;
    tn_session_config session;
    tn_context_config_default(&cfg);
    tn_session_config_default(&session);
    cfg.n_threads = 1;
    session.n_ctx = N_CTX;
    session.n_seq = SEQ;
    fuzz_must(tn_context_create(&cfg, &fixture.ctx) == TN_OK);
    fixture.model = tiny_model_open(fixture.ctx, &tiny_shapes[TINY_QWEN35]);
    fuzz_must(tn_session_create(fixture.model, &session, &fixture.session) == TN_OK);
    fuzz_must(tn_session_feed(fixture.session, 0, tokens, 100) == TN_OK);
    fuzz_must(tn_session_branch(fixture.session, 0, 2, 90) == TN_OK);
    fuzz_must(tn_session_feed(fixture.session, 1, tokens, 1) == TN_OK);
    fuzz_must(tn_session_save_memory(fixture.session, &fixture.good, &fixture.good_size) == TN_OK);
}

static void seal(uint8_t *bytes, size_t size)
{
    tn_hash h;
    if (size < TN_STATE_CHECKSUM_SIZE) return;
    size -= TN_STATE_CHECKSUM_SIZE;
    tn_hash_init(&h);
    tn_hash_add(&h, bytes, size);
    uint64_t v = tn_hash_value(&h);
    for (size_t i = 0; i < TN_STATE_CHECKSUM_SIZE; i++) bytes[size + i] = (uint8_t)(v >> 8 * i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    fixture_init();
    bool sealed = data[--size] & 1;
    tn_session *s = fixture.session;
    uint8_t *copy = fuzz_copy(data, size);
    if (sealed) seal(copy, size);
    fuzz_cost cost = fuzz_begin(fixture.ctx);
    int32_t lengths[SEQ];
    for (int32_t q = 0; q < SEQ; q++) lengths[q] = tn_session_length(s, q);
    tn_status status = tn_session_load_memory(s, copy, size);
    if (status == TN_OK) {
        int32_t token, next = 7, n_free = s->cache.all.n_free;
        for (int32_t q = 0; q < SEQ; q++)
            for (int32_t i = 0; i < tn_session_length(s, q); i++)
                fuzz_must(tn_session_tokens(s, q, i, &token, 1) == 1 && token >= 0);
        int32_t has_space = tn_session_length(s, 0) < N_CTX && n_free > 0;
        tn_status fed = tn_session_feed(s, 0, &next, 1);
        fuzz_must(fed == TN_OK || !has_space);
        if (fed == TN_OK) fuzz_must(tn_session_truncate(s, 0, tn_session_length(s, 0) - 1) == TN_OK);
    } else {
        for (int32_t q = 0; q < SEQ; q++) fuzz_must(tn_session_length(s, q) == lengths[q]);
    }
    fuzz_end(&cost, size);
    free(copy);
    return 0;
}

// --- inputs ------------------------------------------------------------------------------------------------

// One to four changes: bits, extreme numbers, numbers of the file elsewhere, a cut. Mostly before the data.
static size_t mutate(uint8_t *b, size_t size, uint64_t *state)
{
    static const uint32_t extremes[] = {0,   1,   2,   3,          63,         64,         65,        150,
                                        151, 255, 256, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
    for (uint64_t n = fuzz_random(state) % 4 + 1; n > 0; n--) {
        size_t range = fuzz_random(state) % 4 ? TN_MIN(size, 160) : size, at = fuzz_random(state) % range;
        uint32_t v = extremes[fuzz_random(state) % TN_COUNT(extremes)];
        if (fuzz_random(state) % 2) at = at / 4 * 4; // numbers are at multiples of 4
        switch (fuzz_random(state) % 8) {
        case 0:
            if (fuzz_random(state) % 4 == 0) size = TN_MAX(at, 1);
            break;
        case 1:
        case 2:
        case 3:
            for (size_t i = 0; i < 4 && at + i < size; i++) b[at + i] = (uint8_t)(v >> 8 * i);
            break;
        case 4:
            if (at + 4 < size) memmove(b + at, b + fuzz_random(state) % (size - 4), 4);
            break;
        default:
            b[at] ^= (uint8_t)(1u << fuzz_random(state) % 8);
            break;
        }
    }
    return size;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    fixture_init();
    size_t size = TN_MIN(fixture.good_size, max - 1);
    memcpy(out, fixture.good, size);
    if (fuzz_random(state) % 16 != 0) size = mutate(out, size, state);
    out[size] = fuzz_random(state) % 8 != 0;
    return size + 1;
}

#include "tests/fuzz/fuzz_main.h"
