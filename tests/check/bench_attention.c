// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of attention: prompts and single tokens over caches of several lengths.
#include "ops/operands.h"
#include "tests/check/bench.h"

#include <math.h>
#include <string.h>

typedef struct heads {
    int32_t n, kv, dim, v_dim; // v_dim below dim: values are the first part of the keys' rows
} heads;

static const heads usual = {32, 8, 128, 128}, narrow = {32, 8, 64, 64}, wide = {32, 8, 256, 256},
                   compressed = {16, 1, 576, 512};

// Keys of all caches together at most, of sequences of single tokens: these share the pages of more, which
// lie so far apart in the order of reading that they have left every cache of the device in between.
enum { MOST_KEYS = 1 << 18 };

// n_seqs sequences of n_tokens queries and kv_len keys each; `what` is printed before the shape.
static void time_named(bench_run *r, tn_dtype type, const heads *h, int32_t n_seqs, int32_t n_tokens,
                       int32_t kv_len, const char *what)
{
    bench_case b;
    bench_begin(&b, TN_OP_attention, type);
    int32_t block = 64; // as in the cache of a model; the table has to fit the pool of integers of a case
    while (n_seqs * (kv_len / block + 2) + n_seqs + 1 > CHECK_POOL) block *= 2;
    int32_t n_blocks = (kv_len + block - 1) / block, start = n_seqs + 1, all = n_seqs * n_tokens,
            pages = n_seqs * n_blocks;
    if (n_tokens == 1) pages = TN_MIN(pages, TN_MAX(MOST_KEYS / block, n_blocks));
    b.c.params.attention = (tn_attention_params){.scale = 0.08838834764f, .causal = 1};
    b.c.one_query = n_tokens == 1;
    check_cube(&b.c, TN_TYPE_F32, all, h->n, h->dim);
    check_src(&b.c, type, 4, (int64_t[]){pages, h->kv, block, h->dim});
    check_operand *v = check_src(&b.c, type, 4, (int64_t[]){pages, h->kv, block, h->v_dim});
    v->parent[3] = h->dim;
    v->shared = h->v_dim < h->dim;
    check_vec(&b.c, TN_TYPE_I32, start)->fill = CHECK_DATA;
    check_vec(&b.c, TN_TYPE_I32, n_seqs)->fill = CHECK_DATA;
    check_mat(&b.c, TN_TYPE_I32, n_seqs, n_blocks)->fill = CHECK_DATA;
    b.c.src[TN_SRC_attention_kv_len].ints_off = start;
    b.c.src[TN_SRC_attention_block_table].ints_off = start + n_seqs;
    for (int32_t i = 0; i < n_seqs; i++) b.c.ints[i + 1] = (i + 1) * n_tokens, b.c.ints[start + i] = kv_len;
    for (int32_t i = 0; i < n_seqs * n_blocks; i++) b.c.ints[start + n_seqs + i] = i % pages;
    snprintf(b.c.note, sizeof b.c.note, "%s%d x %d queries, %d keys, %d/%d heads of %d", what, n_seqs,
             n_tokens, kv_len, h->n, h->kv, h->dim);
    check_bench_case(r, &b);
}

static void time_heads(bench_run *r, tn_dtype type, const heads *h, int32_t n_seqs, int32_t n_tokens,
                       int32_t kv_len)
{
    time_named(r, type, h, n_seqs, n_tokens, kv_len, "");
}

static void time_attention(bench_run *r, tn_dtype type, int32_t n_seqs, int32_t n_tokens, int32_t kv_len)
{
    time_heads(r, type, &usual, n_seqs, n_tokens, kv_len);
}

// How the time of single tokens grows with sequences and keys: a curve without steps is wanted. It runs only
// on demand (--shape sweep), because it takes minutes.
static void sweep_attention(bench_run *r, tn_dtype type)
{
    static const int32_t n_seqs[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 100, 128, 200, 256},
                         n_keys[] = {100, 500, 1024, 2048, 4096, 8192};
    for (size_t i = 0; i < TN_COUNT(n_seqs); i++)
        for (size_t j = 0; j < TN_COUNT(n_keys); j++)
            time_named(r, type, &usual, n_seqs[i], 1, n_keys[j], "sweep ");
}

enum { MOST_SEQS = 256 };

// n sequences of lengths[i] keys with a query each, but the last one has `last` queries; `note` says what
// they are.
static void time_lengths(bench_run *r, tn_dtype type, int32_t n, const int32_t *lengths, int32_t last,
                         bool apart, const char *note)
{
    const heads *h = &usual;
    bench_case b;
    bench_begin(&b, TN_OP_attention, type);
    int32_t block = 64, longest = 0, start = n + 1, pages = 0, all = n - 1 + last;
    for (int32_t i = 0; i < n; i++) longest = TN_MAX(longest, lengths[i]);
    while (n * (longest / block + 3) + n + 2 > CHECK_POOL) block *= 2;
    int32_t n_blocks = (longest + block - 1) / block;
    for (int32_t i = 0; i < n; i++) {
        b.c.ints[i + 1] = b.c.ints[i] + (i < n - 1 ? 1 : last);
        b.c.ints[start + i] = lengths[i];
        for (int32_t j = 0; j < n_blocks; j++)
            b.c.ints[start + n + i * n_blocks + j] = j * block < lengths[i] ? pages++ : 0;
    }
    b.c.params.attention = (tn_attention_params){.scale = 0.08838834764f, .causal = 1};
    b.c.one_query = b.c.uneven = last == 1;
    b.c.apart = apart, b.c.mixed = !apart && last > 1;
    check_cube(&b.c, TN_TYPE_F32, all, h->n, h->dim);
    for (int32_t i = 0; i < 2; i++) check_src(&b.c, type, 4, (int64_t[]){pages, h->kv, block, h->dim});
    check_vec(&b.c, TN_TYPE_I32, n + 1)->fill = CHECK_DATA;
    check_vec(&b.c, TN_TYPE_I32, n)->fill = CHECK_DATA;
    check_mat(&b.c, TN_TYPE_I32, n, n_blocks)->fill = CHECK_DATA;
    b.c.src[TN_SRC_attention_kv_len].ints_off = start;
    b.c.src[TN_SRC_attention_block_table].ints_off = start + n;
    snprintf(b.c.note, sizeof b.c.note, "%s, %d/%d heads of %d", note, h->n, h->kv, h->dim);
    check_bench_case(r, &b);
}

// A pass of a server: n sequences continue, with 200 to 2000 keys, and a piece of a prompt is evaluated whose
// queries see `depth` keys before their own.
static void time_mixed(bench_run *r, tn_dtype type, int32_t n, int32_t piece, int32_t depth, bool apart)
{
    enum { LEAST = 200, MOST = 2000 };
    int32_t lengths[MOST_SEQS + 1];
    char note[80];
    for (int32_t i = 0; i < n; i++) lengths[i] = LEAST + (MOST - LEAST) * i / TN_MAX(n - 1, 1);
    lengths[n] = depth + piece;
    snprintf(note, sizeof note, "mixed%s %d + %d queries at %d", apart ? ", apart," : "", n, piece, depth);
    time_lengths(r, type, n + 1, lengths, piece, apart, note);
}

// Sequences whose lengths are the quantiles of an exponential distribution, in an order that is no order of
// length.
static void time_uneven(bench_run *r, tn_dtype type, int32_t n, int32_t mean)
{
    int32_t lengths[MOST_SEQS];
    char note[80];
    for (int32_t i = 0; i < n; i++) lengths[i * 13 % n] = 1 + (int32_t)(-mean * log(1.0 - (i + 0.5) / n));
    snprintf(note, sizeof note, "uneven %d queries, %d keys in the mean", n, mean);
    time_lengths(r, type, n, lengths, 1, false, note);
}

// What a file of prompts gives: n texts whose prompts have 220 keys in the mean, log-normal with a deviation
// of 0.7, and 0 to 200 tokens of their answers. Both parts are quantiles, in orders that have nothing to do
// with each other. A new prompt of `piece` tokens may stand beside them.
static void time_file(bench_run *r, tn_dtype type, int32_t n, int32_t piece)
{
    enum { PROMPT = 220, ANSWER = 200 };
    int32_t lengths[MOST_SEQS + 1];
    char note[80];
    for (int32_t i = 0; i < n; i++) {
        double p = (i + 0.5) / n, sigma = 0.7;
        // The quantile of the logistic distribution of the same deviation is close to that of the normal one.
        double normal = log(p / (1 - p)) * 0.5513, prompt = exp(sigma * normal - sigma * sigma / 2);
        lengths[i * 13 % n] = (int32_t)(PROMPT * prompt) + 1 + i * 29 % n * ANSWER / n;
    }
    lengths[n] = piece;
    snprintf(note, sizeof note, "file %d queries + %d", n, piece);
    time_lengths(r, type, piece > 0 ? n + 1 : n, lengths, piece > 0 ? piece : 1, false, note);
}

// On demand (--shape file).
static void file_attention(bench_run *r, tn_dtype type)
{
    static const int32_t pieces[] = {0, 320, 1856};
    for (int32_t n = 32; n <= MOST_SEQS; n += n < 64 ? 32 : 64)
        for (size_t i = 0; i < TN_COUNT(pieces); i++) time_file(r, type, n, pieces[i]);
}

// On demand (--shape uneven).
static void uneven_attention(bench_run *r, tn_dtype type)
{
    static const int32_t n_seqs[] = {8, 12, 16, 32, 48, 64, 128, 256}, means[] = {60, 250, 1000};
    for (size_t i = 0; i < TN_COUNT(n_seqs); i++)
        for (size_t j = 0; j < TN_COUNT(means); j++) time_uneven(r, type, n_seqs[i], means[j]);
}

// On demand (--shape mixed), because there are many.
static void mixed_attention(bench_run *r, tn_dtype type)
{
    static const int32_t n_seqs[] = {32, 128}, pieces[] = {8, 16, 32, 64, 96, 224},
                         depths[] = {0, 200, 2000, 16000};
    for (size_t i = 0; i < TN_COUNT(n_seqs); i++)
        for (size_t j = 0; j < TN_COUNT(pieces); j++)
            for (size_t k = 0; k < TN_COUNT(depths); k++)
                for (int32_t apart = 0; apart < 2; apart++)
                    if (!apart || pieces[j] * (depths[k] + pieces[j]) <= 65536)
                        time_mixed(r, type, n_seqs[i], pieces[j], depths[k], apart);
}

// Shapes that would keep a CPU busy for minutes.
static void device_attention(bench_run *r, tn_dtype type)
{
    time_attention(r, type, 1, 1, 512);
    time_attention(r, type, 1, 4, 4096);
    time_attention(r, type, 32, 1, 512);
    time_attention(r, type, 32, 1, 4096);
    if (type == TN_TYPE_F16) time_attention(r, type, 32, 1, 32768);
    time_attention(r, type, 1, 2048, 2048);
    time_attention(r, type, 1, 4096, 4096);
    time_heads(r, type, &compressed, 1, 1, 4096);
    time_heads(r, type, &compressed, 1, 1, 32768);
    time_heads(r, type, &compressed, 32, 1, 4096);
    time_heads(r, type, &compressed, 1, 512, 4096);
}

// Long prompts, several prompts at once, many and very long caches, other widths of heads: the shapes that
// tests/bench compares with other libraries.
static void device_shapes(bench_run *r, tn_dtype type)
{
    time_attention(r, type, 1, 8192, 8192);
    time_attention(r, type, 1, 16384, 16384);
    time_attention(r, type, 8, 2048, 2048);
    time_heads(r, type, &narrow, 1, 16384, 16384);
    time_heads(r, type, &wide, 1, 16384, 16384);
    time_attention(r, type, 128, 1, 2048);
    time_attention(r, type, 1, 1, 131072);
}

void check_bench_attention(bench_run *r)
{
    for (size_t i = 0; i < CHECK_N_CACHE_TYPES; i++) {
        tn_dtype type = check_cache_types[i];
        time_attention(r, type, 1, 1, 4096);
        time_attention(r, type, 1, 1, 32768);
        time_attention(r, type, 1, 512, 512);
        time_attention(r, type, 1, BENCH_PREFILL, 4096);
        if (bench_is_device(r) && type != TN_TYPE_F32) device_attention(r, type);
        const char *shape = r->run->options.shape;
        if (shape && strncmp(shape, "sweep", 5) == 0 && type != TN_TYPE_F32) sweep_attention(r, type);
        if (shape && strncmp(shape, "mixed", 5) == 0 && bench_is_device(r) && type != TN_TYPE_F32)
            mixed_attention(r, type);
        if (shape && strncmp(shape, "file", 4) == 0 && bench_is_device(r) && type != TN_TYPE_F32)
            file_attention(r, type);
        if (shape && strncmp(shape, "uneven", 6) == 0 && type != TN_TYPE_F32) uneven_attention(r, type);
        if (bench_is_device(r) && (type == TN_TYPE_F16 || type == TN_TYPE_BF16)) device_shapes(r, type);
    }
}
