// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts to batches: every text is in one batch, limits hold, few different sizes, few fillers.
#include "models/run/packing.h"
#include "tests/unit/test.h"

#include <string.h>

enum { MOST = TN_PACKING_TEXTS };

static tn_packing packing;
static tn_text_ids texts[MOST];
static int32_t id;

typedef struct found {
    int32_t sizes; // different pairs of tokens and texts, fillers included
    int64_t tokens, fillers;
} found;

static found check(int32_t n, const tn_packing_limits *l)
{
    static bool seen[MOST];
    static int32_t sizes[MOST][2];
    found f = {0};
    memset(seen, 0, sizeof seen);
    tn_packing_make(&packing, texts, n, l);
    int32_t n_texts = 0;
    for (int32_t i = 0; i < packing.n_batches; i++) {
        const tn_packing_batch *b = &packing.batches[i];
        int32_t tokens = 0, count = 0, fillers = b->n_fillers > 0 ? b->filler + b->n_fillers - 1 : 0, k = 0;
        for (int32_t t = b->first; t >= 0; t = packing.next[t], count++) {
            TEST_CHECK(!seen[t]);
            seen[t] = true;
            tokens += texts[t].n;
        }
        TEST_CHECK(count == b->n_texts && tokens == b->n_tokens && count > 0);
        TEST_CHECK(tokens <= l->tokens || (count == 1 && fillers == 0));
        TEST_CHECK(count <= l->texts && count + b->n_fillers <= l->all_texts);
        if (fillers > 0)
            TEST_CHECK(tokens + fillers <= l->all_tokens && b->filler >= 1 && b->filler <= l->filler);
        n_texts += count;
        f.tokens += tokens;
        f.fillers += fillers;
        while (k < f.sizes && (sizes[k][0] != tokens + fillers || sizes[k][1] != count + b->n_fillers)) k++;
        sizes[k][0] = tokens + fillers;
        sizes[k][1] = count + b->n_fillers;
        f.sizes += k == f.sizes;
    }
    TEST_CHECK(n_texts == n);
    return f;
}

static tn_packing_limits limits(int32_t tokens, int32_t n_texts)
{
    int32_t step = tn_packing_step(tokens);
    return (tn_packing_limits){tokens, n_texts, tokens + step, tn_packing_count(n_texts + 1), step};
}

static void make(int32_t n, int32_t least, int32_t most, uint32_t seed)
{
    for (int32_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        texts[i] = (tn_text_ids){&id, least + (int32_t)((seed >> 8) % (uint32_t)(most - least + 1))};
    }
}

static void test_mixed(void)
{
    tn_packing_limits l = limits(2048, 64);
    static const int32_t ranges[][2] = {{5, 75}, {100, 600}, {1, 2048}, {1, 3}, {1000, 1100}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        make(2000, ranges[i][0], ranges[i][1], (uint32_t)i);
        found f = check(2000, &l);
        int64_t least = (f.tokens + l.tokens - 1) / l.tokens, large = 0;
        for (int32_t k = 0; k < 2000; k++) large += texts[k].n > l.tokens / 2; // no two of them in a batch
        if (least < large) least = large;
        if (!TEST_CHECK(f.sizes <= 24 && packing.n_batches <= least + least / 8 + 2000 / 64 + 1))
            printf("    %d to %d tokens: %d sizes, %d batches of at least %lld\n", ranges[i][0], ranges[i][1],
                   f.sizes, packing.n_batches, (long long)least);
        // Where the number of texts bounds batches, short ones are rounded up by more.
        if (ranges[i][1] > 50) TEST_CHECK(f.fillers * 100 <= f.tokens * 4);
    }
}

static void test_equal(void)
{
    tn_packing_limits l = limits(2048, 64);
    make(256, 512, 512, 1);
    found f = check(256, &l);
    TEST_CHECK(packing.n_batches == 64 && f.sizes == 1 && f.fillers == 0);
    make(1, 7, 7, 1);
    f = check(1, &l);
    TEST_CHECK(packing.n_batches == 1 && f.fillers == 0);
    make(5, 100, 300, 1); // one batch: as it is
    f = check(5, &l);
    TEST_CHECK(packing.n_batches == 1 && f.fillers == 0);
}

static void test_edges(void)
{
    make(MOST, 1, 1, 1);
    tn_packing_limits one = {1, 1, 1, 1, 1}, l = limits(64, 3), narrow = limits(2048, 1);
    TEST_CHECK(check(MOST, &one).fillers == 0 && packing.n_batches == MOST);
    make(MOST, 1, 200, 2); // most are longer than a batch
    check(MOST, &l);
    make(500, 1, 2048, 3);
    check(500, &narrow);
    TEST_CHECK(packing.n_batches == 500);
    for (uint32_t seed = 0; seed < 300; seed++) {
        int32_t n = 1 + (int32_t)(seed * 7 % 97), tokens = 1 + (int32_t)(seed * 131 % 900);
        make(n, 1, 1 + (int32_t)(seed * 37 % 600), seed);
        l = limits(tokens, 1 + (int32_t)seed % 40);
        check(n, &l);
    }
}

int main(void)
{
    static const int32_t counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    for (size_t i = 0; i + 1 < sizeof counts / sizeof *counts; i++) {
        TEST_CHECK(tn_packing_count(counts[i]) == counts[i]);
        TEST_CHECK(tn_packing_count(counts[i] + 1) == counts[i + 1]);
    }
    test_mixed();
    test_equal();
    test_edges();
    return test_done();
}
