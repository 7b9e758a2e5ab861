// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The paged store by itself: which bytes a new block clears, and which state is lost first.
#include "models/run/cache/cache.h"
#include "tests/unit/test.h"

#include <string.h>
#include <tenon/context.h>

static tn_context *ctx;

// K and V of layers whose rows differ, so that equal parts are not at equal distances.
static void test_clear(void)
{
    static const size_t rows[] = {64, 64, 64, 128, 64, 64, 64, 64, 128, 64};
    static const uint8_t devices[TN_COUNT(rows)] = {0};
    enum { N_PARTS = TN_COUNT(rows), BLOCKS = 4 };
    tn_device *host[] = {tn_context_device_by_name(ctx, "cpu"), NULL};
    tn_cache c;
    tn_cache_config cfg = {.n_ctx = BLOCKS * TN_CACHE_BLOCK,
                           .n_seq = 1,
                           .n_parts = N_PARTS,
                           .n_ctx_seq = BLOCKS * TN_CACHE_BLOCK,
                           .row_sizes = rows,
                           .devices = devices};
    if (!TEST_CHECK_STATUS(tn_cache_init(&c, ctx, &cfg), TN_OK)) return;
    if (TEST_CHECK_STATUS(tn_cache_reserve(&c, host), TN_OK)) {
        uint8_t *bytes = c.buffers[0].data;
        memset(bytes, 0xff, c.sizes[0]);
        memset(c.all.used, 1, (size_t)c.all.n_blocks * sizeof *c.all.used);
        TEST_CHECK_STATUS(tn_cache_clear_used(&c, &c.all, (int32_t[]){2, 1}, 2), TN_OK);
        for (int32_t p = 0; p < N_PARTS; p++)
            for (int32_t b = 0; b < c.all.n_blocks; b++) {
                size_t size = c.parts[p].block_size, n = 0;
                const uint8_t *block = bytes + c.parts[p].offset + (size_t)b * size;
                for (size_t i = 0; i < size; i++) n += block[i] == 0;
                TEST_CHECK(n == (b == 1 || b == 2 ? size : 0));
            }
        for (size_t i = 0; i < c.parts[3].block_size; i++) bytes[c.parts[3].offset + i] = (uint8_t)(i % 251);
        TEST_CHECK_STATUS(tn_cache_copy_block(&c, &c.all, 0, 2), TN_OK);
        const uint8_t *from = bytes + c.parts[3].offset, *to = from + 2 * c.parts[3].block_size;
        TEST_CHECK(memcmp(from, to, c.parts[3].block_size) == 0 && to[-1] == 0 &&
                   to[c.parts[3].block_size] == 0xff);
    }
    tn_cache_fini(&c);
}

// Sizes that no address has.
static void test_huge(void)
{
    tn_cache c;
    tn_cache_config cfg = {.n_ctx = 4 * TN_CACHE_BLOCK,
                           .n_seq = 1,
                           .n_parts = 1,
                           .n_ctx_seq = 4 * TN_CACHE_BLOCK,
                           .row_sizes = (size_t[]){SIZE_MAX / 128},
                           .devices = (uint8_t[]){0},
                           .n_states = 1,
                           .n_slots = 4,
                           .state_sizes = (size_t[]){64},
                           .state_devices = (uint8_t[]){0}};
    TEST_CHECK(tn_cache_part_size(4, SIZE_MAX / 128) == SIZE_MAX && tn_cache_part_size(4, 64) < SIZE_MAX);
    TEST_CHECK_STATUS(tn_cache_init(&c, ctx, &cfg), TN_ERR_MEMORY);
    tn_cache_fini(&c);
    cfg.row_sizes = (size_t[]){64};
    cfg.state_sizes = (size_t[]){SIZE_MAX / 2};
    TEST_CHECK_STATUS(tn_cache_init(&c, ctx, &cfg), TN_ERR_MEMORY);
    tn_cache_fini(&c);
    cfg.state_sizes = (size_t[]){SIZE_MAX / 4 - 64}; // alone it fits, but not behind the blocks
    TEST_CHECK_STATUS(tn_cache_init(&c, ctx, &cfg), TN_ERR_MEMORY);
    tn_cache_fini(&c);
}

// Blocks that a window and the tokens of a step take: 128 positions and 63 to go back lie in 3, one more at
// each end, for each sequence; as many for the step; and the windows of half of the texts that ended.
static void test_window_blocks(void)
{
    tn_cache_config cfg = {.n_ctx = 65536, .n_seq = 2, .window = 128, .n_batch = 512};
    TEST_CHECK(tn_cache_window_blocks(&cfg) == 2 * (3 + 2) + 8 + 3);
    cfg.n_ctx = 16 * TN_CACHE_BLOCK; // not fewer than all
    TEST_CHECK(tn_cache_window_blocks(&cfg) == 0);
}

// A text of one block, all of the same token, with the state behind it; then nobody holds it any more.
// A branch holds the window of the sequence wherever that still has it, and nothing elsewhere.
static void test_window_branches(void)
{
    enum { BLOCKS = 64, WINDOW = 100 };
    tn_cache c;
    tn_cache_config cfg = {.n_ctx = BLOCKS * TN_CACHE_BLOCK,
                           .n_seq = 2,
                           .n_parts = 1,
                           .n_ctx_seq = BLOCKS * TN_CACHE_BLOCK,
                           .row_sizes = (size_t[]){4},
                           .devices = (uint8_t[]){0},
                           .window = WINDOW,
                           .slides = (bool[]){true},
                           .n_batch = TN_CACHE_BLOCK};
    if (!TEST_CHECK_STATUS(tn_cache_init(&c, ctx, &cfg), TN_OK)) return;
    if (TEST_CHECK_STATUS(tn_cache_reserve(&c, (tn_device *[]){tn_context_device_by_name(ctx, "cpu"), NULL}),
                          TN_OK)) {
        int32_t first = 0, length = 0, n_held = 0;
        for (int32_t i = 0; i < BLOCKS && first < 4; i++) {
            TEST_CHECK_STATUS(tn_cache_window_extend(&c, 0, TN_CACHE_BLOCK), TN_OK);
            tn_cache_window_settle(&c, 0);
            first = c.seqs[0].window_first;
            length = c.seqs[0].window_length;
        }
        TEST_CHECK(first >= 4);
        for (int32_t n = 1; n <= length; n++) {
            bool held = TN_MAX(n - WINDOW + 1, 0) / TN_CACHE_BLOCK >= first;
            tn_cache_window_branch(&c, 0, 1, n);
            TEST_CHECK(c.seqs[1].window_length == (held ? n : 0));
            n_held += held;
            tn_cache_window_truncate(&c, 1, 0);
        }
        TEST_CHECK(n_held > 0 && n_held < length);
        tn_cache_window_truncate(&c, 0, 0);
    }
    tn_cache_fini(&c);
}

static void leave_text(tn_cache *c, int32_t token)
{
    int32_t tokens[TN_CACHE_BLOCK];
    for (int32_t i = 0; i < TN_CACHE_BLOCK; i++) tokens[i] = token;
    TEST_CHECK(tn_cache_attach(c, 0, 0, tokens, TN_CACHE_BLOCK) == 0);
    if (!TEST_CHECK_STATUS(tn_cache_extend(c, 0, TN_CACHE_BLOCK), TN_OK)) return;
    for (int32_t i = 0; i < TN_CACHE_BLOCK; i++) c->ids[tn_cache_slot(c, 0, i)] = token;
    tn_cache_state_keep(c, 0, tn_cache_state_take(c), TN_CACHE_BLOCK, true);
    tn_cache_list(c, 0);
    tn_cache_truncate(c, 0, 0);
}

static bool can_be_found(const tn_cache *c, int32_t token)
{
    int32_t tokens[TN_CACHE_BLOCK], n_idle;
    for (int32_t i = 0; i < TN_CACHE_BLOCK; i++) tokens[i] = token;
    return tn_cache_find(c, 0, tokens, TN_CACHE_BLOCK, NULL, &n_idle) == 1;
}

// Of texts that are as long as each other the one that was not used for longest loses its state.
static void test_states(void)
{
    tn_cache c;
    tn_cache_config cfg = {.n_ctx = 16 * TN_CACHE_BLOCK,
                           .n_seq = 1,
                           .n_parts = 1,
                           .n_ctx_seq = 16 * TN_CACHE_BLOCK,
                           .row_sizes = (size_t[]){4},
                           .devices = (uint8_t[]){0},
                           .n_states = 1,
                           .n_slots = 4,
                           .state_sizes = (size_t[]){64},
                           .state_devices = (uint8_t[]){0}};
    if (!TEST_CHECK_STATUS(tn_cache_init(&c, ctx, &cfg), TN_OK)) return;
    if (TEST_CHECK_STATUS(tn_cache_index_create(&c), TN_OK)) {
        for (int32_t token = 1; token <= 9; token++) {
            leave_text(&c, token);
            for (int32_t t = 1; t <= token; t++) TEST_CHECK(can_be_found(&c, t) == (t > token - 4));
        }
    }
    tn_cache_fini(&c);
}

// Lists n tokens of one kind behind what sequence 0 holds, 64 at a time.
static void append(tn_cache *c, int32_t token, int32_t n)
{
    for (int32_t k; n > 0; n -= k) {
        int32_t length = c->seqs[0].length;
        k = TN_MIN(n, TN_CACHE_BLOCK);
        if (!TEST_CHECK_STATUS(tn_cache_extend(c, 0, k), TN_OK)) return;
        for (int32_t i = 0; i < k; i++) c->ids[tn_cache_slot(c, 0, length + i)] = token;
        tn_cache_window_settle(c, 0);
        tn_cache_list(c, 0);
    }
}

// A listed block that is used again, or written again after a cut, takes the block of its window along: that
// one is free if no sequence holds it. In the end each can be had once.
static void test_listed_windows(void)
{
    enum { BLOCKS = 20 };
    tn_cache c;
    tn_cache_config cfg = {.n_ctx = BLOCKS * TN_CACHE_BLOCK,
                           .n_seq = 2,
                           .n_parts = 1,
                           .n_ctx_seq = BLOCKS * TN_CACHE_BLOCK,
                           .row_sizes = (size_t[]){4},
                           .devices = (uint8_t[]){0},
                           .window = 100,
                           .slides = (bool[]){true},
                           .n_batch = TN_CACHE_BLOCK};
    for (int32_t cut = 0; cut < 2; cut++) {
        int32_t n = 0;
        if (!TEST_CHECK_STATUS(tn_cache_init(&c, ctx, &cfg), TN_OK)) return;
        TEST_CHECK_STATUS(tn_cache_reserve(&c, (tn_device *[]){tn_context_device_by_name(ctx, "cpu"), NULL}),
                          TN_OK);
        TEST_CHECK_STATUS(tn_cache_index_create(&c), TN_OK);
        TEST_CHECK(tn_cache_has_window(&c) && tn_cache_attach(&c, 0, 0, NULL, 0) == 0);
        append(&c, 1, cut ? TN_CACHE_BLOCK : (BLOCKS - 2) * TN_CACHE_BLOCK);
        TEST_CHECK(can_be_found(&c, 1) ==
                   cut); // the window of the first block is lost, if others are behind it
        if (cut) {
            tn_cache_truncate(&c, 0, 30);
            append(&c, 2, 10);
            TEST_CHECK(!can_be_found(&c, 1) && c.sliding.refs[c.seqs[0].window_blocks[0]] == 1);
        } else {
            tn_cache_truncate(&c, 0, 0);
            TEST_CHECK(tn_cache_attach(&c, 0, 0, NULL, 0) == 0);
            append(&c, 2, 6 * TN_CACHE_BLOCK);
            TEST_CHECK(tn_cache_n_evicted(&c) == 3);
        }
        tn_cache_truncate(&c, 0, 0);
        while (n <= c.sliding.n_blocks && tn_cache_window_take(&c) >= 0) n++;
        TEST_CHECK(n == c.sliding.n_blocks);
        tn_cache_fini(&c);
    }
}

int main(void)
{
    if (tn_context_create(NULL, &ctx) != TN_OK) return 1;
    test_clear();
    test_huge();
    test_window_blocks();
    test_window_branches();
    test_states();
    test_listed_windows();
    tn_context_destroy(&ctx);
    return test_done();
}
