// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs compiled expressions over code points: leftmost match, first alternative that fits, greedy runs
// that backtrack one code point at a time.
//
// Why this is linear: when an unbounded run that starts at p and ends at e cannot be continued from any
// place it could stop at, neither can a run of the same item that starts between p and e. That range is
// remembered per item, so no part of the text is scanned in vain more than once per item.
#include "models/text/tokenizer/pre_pattern.h"
#include "models/text/tokenizer/unicode.h"

typedef struct matcher {
    const tn_pattern *pattern;
    tn_cp *cps;
    size_t end; // of the piece
    struct {
        size_t from, to;
    } failed[TN_PATTERN_ITEMS]; // unbounded runs of the item that start here fail
} matcher;

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
    uint32_t gc = cp >> TN_CP_GC_SHIFT & TN_CP_GC_MASK;
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

// A piece ends before pos, which is not the start of the text.
static void cut_before(matcher *m, size_t pos)
{
    m->cps[pos - 1] |= TN_CP_END;
}

// Cuts [start, m->end) into matches and gaps. Marks stand behind what is matched next, so they change no
// match.
static void split_alternatives(matcher *m, size_t start)
{
    size_t gap = start, pos = start, end;
    while (pos < m->end) {
        if (!match_pattern(m, pos, &end)) {
            pos++;
            continue;
        }
        if (gap < pos) cut_before(m, pos);
        cut_before(m, end);
        gap = pos = end;
    }
}

// Cuts [start, m->end) inside runs of digits; with DIGIT_GROUPS also before and after the runs.
static void split_digits(matcher *m, size_t start)
{
    bool whole_runs = m->pattern->kind == TN_PATTERN_DIGIT_GROUPS;
    for (size_t pos = start; pos < m->end;) {
        size_t stop = pos;
        while (stop < m->end && is_gc(m->cps[stop], TN_GC_ND, TN_GC_ND)) stop++;
        if (stop == pos) {
            pos++;
            continue;
        }
        if (whole_runs && pos > start) cut_before(m, pos);
        for (size_t p = pos + (stop - pos) % 3; p < stop; p += 3)
            if (p > start) cut_before(m, p);
        if (whole_runs) cut_before(m, stop);
        pos = stop;
    }
}

size_t tn_piece_end(const tn_cp *cps, size_t from)
{
    while (!(cps[from] & TN_CP_END)) from++;
    return from + 1;
}

void tn_pattern_split(const tn_pattern *patterns, size_t n_patterns, tn_cp *cps, size_t n)
{
    if (n == 0) return;
    cps[n - 1] |= TN_CP_END;
    for (size_t i = 0; i < n_patterns; i++) {
        matcher m = {.pattern = &patterns[i], .cps = cps};
        for (size_t start = 0; start < n; start = m.end) {
            m.end = tn_piece_end(cps, start);
            if (patterns[i].kind == TN_PATTERN_ALTERNATIVES)
                split_alternatives(&m, start);
            else
                split_digits(&m, start);
        }
    }
}
