// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The expressions that cut text into pieces before BPE merges. Only the syntax that the table in
// pre_table.c uses is supported, compiled to short item lists:
//     alternatives `a|b`; literals; classes `[^\s\p{L}a-z]`, `[\p{Lu}&&[^\p{Han}]]`; \s \S \d \r \n \p{Name};
//     ? * + {n} {n,m} after a class or literal; `(?!class)`; `$`; and the whole groups named in
//     pre_pattern.c.
#ifndef TN_MODELS_PRE_PATTERN_H
#define TN_MODELS_PRE_PATTERN_H

#include "core/memory/arena.h"

// A code point with its general category, which is looked up once per text, and whether a piece ends behind
// it. Pieces are marked here because a list of them could take twice the memory of the text.
typedef uint32_t tn_cp;
enum { TN_CP_MASK = 0x1fffff, TN_CP_GC_SHIFT = 24, TN_CP_GC_MASK = 0x1f };
#define TN_CP_END 0x80000000u

typedef struct tn_cp_set {
    const char *name;
    uint32_t gc_mask;            // bit per general category
    const uint32_t (*ranges)[2]; // sorted, inclusive
    size_t n_ranges;
} tn_cp_set;

enum { TN_CP_CLASS_RANGES = 16, TN_CP_CLASS_SETS = 2 };

typedef struct tn_cp_class {
    uint64_t ascii[2]; // the members below U+0080; the other fields are for code points from there on
    uint32_t gc_mask;
    bool negated, space;
    uint32_t n_ranges, n_sets;
    uint32_t ranges[TN_CP_CLASS_RANGES][2];
    const tn_cp_set *sets[TN_CP_CLASS_SETS];
    const tn_cp_set *except; // code points that are removed after all other fields were applied, or NULL
} tn_cp_class;

bool tn_cp_class_has(const tn_cp_class *c, tn_cp cp);

enum {
    TN_ITEM_RUN,        // min..max code points of the class, as many as possible
    TN_ITEM_SUFFIX,     // English contraction suffix, any case
    TN_ITEM_WORDS,      // letters with marks, joined by single spaces
    TN_ITEM_NOT_BEFORE, // the next code point is not of the class
    TN_ITEM_END,        // end of the piece
};

typedef struct tn_pattern_item {
    int32_t kind;
    uint32_t min, max; // max UINT32_MAX = unbounded
    tn_cp_class cls;
} tn_pattern_item;

enum {
    TN_PATTERN_ALTERNATIVES,
    TN_PATTERN_DIGIT_GROUPS, // runs of digits in groups of three from the right
    TN_PATTERN_DIGIT_CUTS,   // cuts where the number of remaining digits is a multiple of three; no matches
};

enum { TN_PATTERN_ITEMS = 64, TN_PATTERN_BRANCHES = 32 };

typedef struct tn_pattern {
    int32_t kind;
    size_t n_items, n_branches;
    tn_pattern_item *items;
    size_t branch_end[TN_PATTERN_BRANCHES]; // items of branch b: from branch_end[b - 1] to here
} tn_pattern;

// TN_ERR_INTERNAL: the expression uses other syntax than the above.
TN_MUST_USE tn_status tn_pattern_compile(tn_arena *arena, const char *text, tn_pattern *out);

// Marks the ends of the pieces into which the patterns cut n code points, each applied to the pieces of the
// one before. The code points have no marks before.
void tn_pattern_split(const tn_pattern *patterns, size_t n_patterns, tn_cp *cps, size_t n);
// Where the piece that starts at `from` ends; n > from code points were split.
size_t tn_piece_end(const tn_cp *cps, size_t from);

#endif
