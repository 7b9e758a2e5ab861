// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/packing.h"

#include "models/run/bucket.h"

#include <stdbool.h>
#include <stdlib.h>

enum { STEPS = 32 }; // multiples that tokens are rounded to: half of one is wasted per batch, 1.6 %

typedef struct sized {
    int32_t n, text;
} sized;

int32_t tn_packing_step(int32_t tokens)
{
    return TN_MAX(tokens / STEPS, 1);
}

static int longer_first(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->text > y->text) - (x->text < y->text);
}

static void sort(tn_packing *p, const tn_text_ids *texts, int32_t n)
{
    sized list[TN_PACKING_TEXTS];
    for (int32_t i = 0; i < n; i++) list[i] = (sized){texts[i].n, i};
    qsort(list, (size_t)n, sizeof *list, longer_first);
    for (int32_t i = 0; i < n; i++) p->order[i] = list[i].text;
}

static void append(tn_packing *p, tn_packing_batch *b, int32_t text, int32_t n_tokens)
{
    p->next[text] = -1;
    if (b->n_texts == 0)
        b->first = text;
    else
        p->next[b->last] = text;
    b->last = text;
    b->n_texts++;
    b->n_tokens += n_tokens;
}

// Deals the texts out to `count` batches: the longest first, each to the batch with the fewest tokens (R. L.
// Graham, Bounds on multiprocessing timing anomalies, 1969), so that all get nearly the same. False: more
// batches are needed.
static bool deal(tn_packing *p, const tn_text_ids *texts, int32_t from, int32_t n, int32_t count,
                 const tn_packing_limits *limits)
{
    tn_packing_batch *batches = p->batches + p->n_batches;
    for (int32_t b = 0; b < count; b++) batches[b] = (tn_packing_batch){0};
    for (int32_t i = from; i < n; i++) {
        int32_t text = p->order[i];
        tn_packing_batch *least = NULL;
        for (tn_packing_batch *b = batches; b < batches + count; b++)
            if (b->n_texts < limits->texts && (!least || b->n_tokens < least->n_tokens)) least = b;
        if (!least || least->n_tokens + texts[text].n > limits->tokens) return false;
        append(p, least, text, texts[text].n);
    }
    return true;
}

// The fewest batches that the texts can need.
static int32_t fewest(const tn_packing *p, const tn_text_ids *texts, int32_t from, int32_t n,
                      const tn_packing_limits *limits)
{
    int64_t tokens = 0, large = 0;
    for (int32_t i = from; i < n; i++) {
        int32_t length = texts[p->order[i]].n;
        tokens += length;
        large += length > limits->tokens / 2;
    }
    int64_t by_tokens = (tokens + limits->tokens - 1) / limits->tokens;
    int64_t by_texts = (n - from + limits->texts - 1) / limits->texts;
    return (int32_t)TN_MAX(TN_MAX(by_tokens, by_texts), large);
}

int32_t tn_packing_count(int32_t n)
{
    return tn_bucket(n, 2);
}

static void add_fillers(tn_packing_batch *b, const tn_packing_limits *limits)
{
    int32_t step = tn_packing_step(limits->tokens), count = tn_packing_count(b->n_texts), tokens = 0;
    // Tokens alone cannot be rounded up: they need a filler to be in.
    for (int32_t pass = 0; pass < 2; pass++) {
        int32_t least = b->n_tokens + count - b->n_texts;
        tokens = (least + step - 1) / step * step;
        if (count > b->n_texts || tokens == b->n_tokens) break;
        count = tn_packing_count(count + 1);
    }
    int32_t n_fillers = count - b->n_texts, filler = tokens - b->n_tokens - (n_fillers - 1);
    bool fits = tokens <= limits->all_tokens && count <= limits->all_texts && filler <= limits->filler;
    if (n_fillers < 1 || !fits) return;
    b->n_fillers = n_fillers;
    b->filler = filler;
}

void tn_packing_make(tn_packing *p, const tn_text_ids *texts, int32_t n, const tn_packing_limits *limits)
{
    int32_t from = 0;
    p->n_batches = 0;
    sort(p, texts, n);
    for (; from < n && texts[p->order[from]].n > limits->tokens; from++) {
        tn_packing_batch *b = &p->batches[p->n_batches++];
        *b = (tn_packing_batch){0};
        append(p, b, p->order[from], texts[p->order[from]].n);
    }
    if (from == n) return;
    int32_t count = fewest(p, texts, from, n, limits);
    // n - from batches always do. The step grows with the count, so that the attempts stay below a hundred.
    while (!deal(p, texts, from, n, count, limits)) count = TN_MIN(count + 1 + count / 16, n - from);
    for (int32_t i = 0; i < count && count > 1; i++) add_fillers(&p->batches[p->n_batches + i], limits);
    p->n_batches += count;
}
