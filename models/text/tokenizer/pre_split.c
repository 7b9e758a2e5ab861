// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs compiled expressions over code points: leftmost match, first alternative that fits, greedy runs
// that backtrack one code point at a time.
//
// Why this is linear: when an unbounded run that starts at p and ends at e cannot be continued from any
// place it could stop at, neither can a run of the same item that starts between p and e. That range is
// remembered per item, so no part of the text is scanned in vain more than once per item.
#include "core/checked.h"
#include "models/text/tokenizer/pre_pattern.h"
#include "models/text/tokenizer/unicode.h"

#include <string.h>

typedef struct matcher {
    const tn_pattern *pattern;
    const tn_cp *cps;
    size_t end; // of the piece
    struct {
        size_t from, to;
    } failed[TN_PATTERN_ITEMS]; // unbounded runs of the item that start here fail
} matcher;

void tn_pieces_fini(tn_pieces *pieces)
{
    if (pieces->ctx == NULL) return;
    tn_free(pieces->ctx, pieces->ends);
    tn_free(pieces->ctx, pieces->spare);
    *pieces = (tn_pieces){0};
}

static uint32_t ascii_lower_at(const matcher *m, size_t pos)
{
    if (pos >= m->end) return 0;
    uint32_t cp = m->cps[pos] & TN_CP_MASK;
    return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
}

// Length of 's 't 're 've 'm 'll 'd at pos in any case, or 0.
static size_t suffix_length(const matcher *m, size_t pos)
{
    if (ascii_lower_at(m, pos) != '\'') return 0;
    uint32_t a = ascii_lower_at(m, pos + 1), b = ascii_lower_at(m, pos + 2);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

static bool is_gc(tn_cp cp, uint32_t first, uint32_t last)
{
    uint32_t gc = cp >> TN_CP_GC_SHIFT;
    return gc >= first && gc <= last;
}

static bool is_letter_at(const matcher *m, size_t pos)
{
    return pos < m->end && is_gc(m->cps[pos], TN_GC_LL, TN_GC_LU);
}

// Length of (letter, then letters, marks, and single spaces before a letter) at pos, or 0.
static size_t words_length(const matcher *m, size_t pos)
{
    size_t i = pos;
    if (!is_letter_at(m, i)) return 0;
    for (;;) {
        if (is_letter_at(m, i) || (i < m->end && is_gc(m->cps[i], TN_GC_MC, TN_GC_MN)))
            i++;
        else if (i < m->end && (m->cps[i] & TN_CP_MASK) == ' ' && is_letter_at(m, i + 1))
            i += 2;
        else
            return i - pos;
    }
}

// Whether items k..last match at pos; *end is where. Recursion is as deep as a branch has items.
static bool match_items(matcher *m, size_t k, size_t last, size_t pos, size_t *end)
{
    if (k == last) {
        *end = pos;
        return true;
    }
    const tn_pattern_item *item = &m->pattern->items[k];
    if (item->kind == TN_ITEM_NOT_BEFORE)
        return !(pos < m->end && tn_cp_class_has(&item->cls, m->cps[pos])) &&
               match_items(m, k + 1, last, pos, end);
    if (item->kind == TN_ITEM_END) return pos == m->end && match_items(m, k + 1, last, pos, end);
    if (item->kind == TN_ITEM_SUFFIX || item->kind == TN_ITEM_WORDS) {
        size_t n = item->kind == TN_ITEM_SUFFIX ? suffix_length(m, pos) : words_length(m, pos);
        return (n > 0 && match_items(m, k + 1, last, pos + n, end)) ||
               (item->min == 0 && match_items(m, k + 1, last, pos, end));
    }
    bool unbounded = item->max == UINT32_MAX;
    if (unbounded && pos >= m->failed[k].from && pos < m->failed[k].to) return false;
    size_t limit = unbounded || item->max > m->end - pos ? m->end : pos + item->max, stop = pos;
    while (stop < limit && tn_cp_class_has(&item->cls, m->cps[stop])) stop++;
    for (size_t taken = stop - pos + 1; taken-- > item->min;)
        if (match_items(m, k + 1, last, pos + taken, end)) return true;
    if (unbounded) {
        m->failed[k].from = pos;
        m->failed[k].to = stop;
    }
    return false;
}

static bool match_pattern(matcher *m, size_t pos, size_t *end)
{
    size_t first = 0;
    for (size_t b = 0; b < m->pattern->n_branches; b++) {
        size_t last = m->pattern->branch_end[b];
        if (match_items(m, first, last, pos, end) && *end > pos) return true;
        first = last;
    }
    return false;
}

// Cuts [start, m->end) into matches and gaps.
static void split_alternatives(matcher *m, size_t start, tn_pieces *out)
{
    size_t gap = start, pos = start, end;
    while (pos < m->end) {
        if (!match_pattern(m, pos, &end)) {
            pos++;
            continue;
        }
        if (gap < pos) out->spare[out->count++] = (uint32_t)pos;
        out->spare[out->count++] = (uint32_t)end;
        gap = pos = end;
    }
    if (gap < m->end) out->spare[out->count++] = (uint32_t)m->end;
}

static void cut_at(tn_pieces *out, size_t start, size_t pos)
{
    bool dup = out->count > 0 && out->spare[out->count - 1] == pos;
    if (pos > start && !dup) out->spare[out->count++] = (uint32_t)pos;
}

// Cuts [start, m->end) inside runs of digits; with DIGIT_GROUPS also before and after the runs.
static void split_digits(const matcher *m, size_t start, tn_pieces *out)
{
    bool whole_runs = m->pattern->kind == TN_PATTERN_DIGIT_GROUPS;
    for (size_t pos = start; pos < m->end;) {
        size_t stop = pos;
        while (stop < m->end && is_gc(m->cps[stop], TN_GC_ND, TN_GC_ND)) stop++;
        if (stop == pos) {
            pos++;
            continue;
        }
        if (whole_runs) cut_at(out, start, pos);
        for (size_t p = pos + (stop - pos) % 3; p < stop; p += 3) cut_at(out, start, p);
        if (whole_runs) cut_at(out, start, stop);
        pos = stop;
    }
    cut_at(out, start, m->end);
}

static tn_status reserve(tn_pieces *pieces, size_t n)
{
    if (n <= pieces->capacity) return TN_OK;
    size_t size;
    if (!tn_mul_size(n, sizeof(uint32_t), &size))
        return tn_fail(pieces->ctx, TN_ERR_MEMORY, "text of %zu characters is too long", n);
    tn_free(pieces->ctx, pieces->ends);
    tn_free(pieces->ctx, pieces->spare);
    pieces->capacity = 0;
    pieces->spare = NULL;
    pieces->ends = tn_alloc(pieces->ctx, size);
    if (pieces->ends == NULL) return TN_ERR_MEMORY;
    pieces->spare = tn_alloc(pieces->ctx, size);
    if (pieces->spare == NULL) return TN_ERR_MEMORY;
    pieces->capacity = n;
    return TN_OK;
}

static void apply(const tn_pattern *pattern, const tn_cp *cps, tn_pieces *pieces)
{
    matcher m = {.pattern = pattern, .cps = cps};
    size_t n_pieces = pieces->count, start = 0;
    pieces->count = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        m.end = pieces->ends[i];
        if (pattern->kind == TN_PATTERN_ALTERNATIVES)
            split_alternatives(&m, start, pieces);
        else
            split_digits(&m, start, pieces);
        start = m.end;
    }
    uint32_t *done = pieces->spare;
    pieces->spare = pieces->ends;
    pieces->ends = done;
}

tn_status tn_pattern_split(const tn_pattern *patterns, size_t n_patterns, const tn_cp *cps, size_t n,
                           tn_pieces *pieces)
{
    tn_status status = reserve(pieces, n);
    if (status != TN_OK) return status;
    pieces->count = 0;
    if (n == 0) return TN_OK;
    pieces->ends[pieces->count++] = (uint32_t)n;
    for (size_t i = 0; i < n_patterns; i++) apply(&patterns[i], cps, pieces);
    return TN_OK;
}
