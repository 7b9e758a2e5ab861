// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The merge loop against its definition: as long as two neighbours may merge, those of the first rank do, the
// leftmost ones first. Vocabularies and texts are random and of two letters, so that every merge makes others
// possible or impossible, and pairs of the same rank are common (SPM).
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

enum { TEXTS = 24, LONGEST = 12, TEXT_MAX = 400, ROUNDS = 400 };

// A text that may be made of two others. The rank of BPE is that of the pair, that of SPM the score.
typedef struct word {
    char text[LONGEST + 1], merge[LONGEST + 2];
    size_t size, left; // bytes; of the left part
    int32_t rank;
} word;

typedef struct setup {
    tiny_vocab v;
    word words[TEXTS];
    int32_t n_words;
    bool spm;
} setup;

static tn_context *ctx;
static uint64_t state = 1;

static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

static void add_word(setup *s, const char *text, size_t n, size_t left)
{
    for (int32_t i = 0; i < s->n_words; i++)
        if (s->words[i].size == n && memcmp(s->words[i].text, text, n) == 0) return;
    word *w = &s->words[s->n_words];
    *w = (word){.size = n, .left = left, .rank = s->spm ? (int32_t)below(4) : s->n_words};
    memcpy(w->text, text, n);
    memcpy(w->merge, text, left);
    w->merge[left] = ' ';
    memcpy(w->merge + left + 1, text + left, n - left);
    s->n_words++;
    if (n == 1 && !s->spm) return; // a token of tiny_bpe
    tiny_add(&s->v, w->text, TN_TOKEN_NORMAL, -(float)w->rank);
    if (!s->spm) s->v.merges[s->v.n_merges++] = w->merge;
}

static void make_setup(setup *s, bool spm)
{
    *s = (setup){.spm = spm};
    if (spm) {
        s->v.model = "llama";
        tiny_add(&s->v, "<unk>", TN_TOKEN_UNKNOWN, 0);
        tiny_flag(&s->v, "tokenizer.ggml.add_space_prefix", false);
    } else {
        tiny_bpe(&s->v);
        s->v.n_tokens = 256; // without its words
        s->v.n_merges = 0;
        s->v.n_ids = 0;
        s->v.n_scores = s->v.n_types = 256;
    }
    add_word(s, "a", 1, 1);
    add_word(s, "b", 1, 1);
    for (int32_t i = 0; i < 200 && s->n_words < TEXTS; i++) {
        const word *x = &s->words[below((uint32_t)s->n_words)], *y = &s->words[below((uint32_t)s->n_words)];
        char text[2 * LONGEST + 1];
        if (x->size + y->size > LONGEST) continue;
        snprintf(text, sizeof text, "%s%s", x->text, y->text);
        add_word(s, text, x->size + y->size, x->size);
    }
}

// What two neighbours make, or -1. BPE: only by the two parts of its merge.
static int32_t joined(const setup *s, const char *left, size_t n, size_t m)
{
    for (int32_t i = 2; i < s->n_words; i++) {
        const word *w = &s->words[i];
        if (w->size == n + m && memcmp(w->text, left, n + m) == 0 && (s->spm || w->left == n)) return i;
    }
    return -1;
}

// Sizes of the symbols in which the definition ends; returns how many.
static size_t define(const setup *s, const char *text, size_t n, size_t *sizes)
{
    for (size_t i = 0; i < n; i++) sizes[i] = 1;
    for (;;) {
        size_t best = n, offset = 0;
        int32_t rank = INT32_MAX;
        for (size_t i = 0; i + 1 < n; offset += sizes[i++]) {
            int32_t w = joined(s, text + offset, sizes[i], sizes[i + 1]);
            if (w < 0 || s->words[w].rank >= rank) continue;
            rank = s->words[w].rank;
            best = i;
        }
        if (best == n) return n;
        sizes[best] += sizes[best + 1];
        memmove(&sizes[best + 1], &sizes[best + 2], (n - best - 2) * sizeof *sizes);
        n--;
    }
}

static bool same(const setup *s, const tn_tokenizer *t, const char *text, size_t n)
{
    static size_t sizes[TEXT_MAX];
    size_t want = define(s, text, n, sizes);
    tn_tokens ids;
    tn_tokens_init(&ids, ctx);
    bool ok = TEST_CHECK_STATUS(tn_tokenizer_encode(t, text, n, 0, &ids), TN_OK) && ids.count == want;
    for (size_t i = 0; i < want && ok; text += sizes[i++])
        ok = ids.ids[i] == tn_tokenizer_find(t, text, sizes[i]);
    tn_tokens_fini(&ids);
    return ok;
}

static void run_round(bool spm, int32_t round)
{
    static setup s;
    char text[TEXT_MAX];
    tn_tokenizer *t = NULL;
    make_setup(&s, spm);
    tiny_open(ctx, &s.v);
    if (!TEST_CHECK_STATUS(tn_tokenizer_create(ctx, s.v.gguf, NULL, &t), TN_OK)) return;
    for (int32_t k = 0; k < 6; k++) {
        size_t n = 1 + below(TEXT_MAX);
        uint32_t kind = below(3); // all "a", "ab" by turns, or random
        for (size_t i = 0; i < n; i++) text[i] = (char)('a' + (kind == 0 ? 0 : kind == 1 ? i % 2 : below(2)));
        if (!TEST_CHECK(same(&s, t, text, n)))
            printf("    %s, round %d: %.*s\n", spm ? "SPM" : "BPE", round, (int)n, text);
    }
    tn_tokenizer_destroy(&t);
    tiny_close(ctx, &s.v);
}

int main(void)
{
    if (tn_context_create(NULL, &ctx) != TN_OK) return 1;
    for (int32_t round = 0; round < ROUNDS; round++) {
        run_round(false, round);
        run_round(true, round);
    }
    tn_context_destroy(&ctx);
    return test_done();
}
