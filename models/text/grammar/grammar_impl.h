// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of a grammar: grammar_parse.c makes the tree, grammar_compile.c the program, grammar_check.c
// finds left recursion, grammar_match.c runs it.
#ifndef TN_MODELS_GRAMMAR_IMPL_H
#define TN_MODELS_GRAMMAR_IMPL_H

#include "core/memory/arena.h"
#include "models/text/grammar/grammar.h"

typedef enum tn_gkind { TN_G_BYTES, TN_G_CLASS, TN_G_RULE, TN_G_SEQUENCE, TN_G_CHOICE, TN_G_REPEAT } tn_gkind;

typedef struct tn_gnode {
    tn_gkind kind;
    struct tn_gnode *first, *next; // first child; next sibling
    const char *bytes;             // BYTES
    size_t n_bytes;
    int32_t index;    // CLASS, RULE
    int32_t min, max; // REPEAT; max -1: no bound
} tn_gnode;

typedef struct tn_grange {
    uint32_t lo, hi;
} tn_grange;

// Ascending ranges of code points that do not touch, without surrogates.
typedef struct tn_gclass {
    tn_grange *ranges;
    int32_t n;
    int32_t set;  // if all are ASCII: index of the set, else -1
    int32_t rule; // of its UTF-8 sequences; -1 if it has a set
} tn_gclass;

typedef struct tn_grule {
    const char *name; // NULL: the rule of a repetition or a class
    size_t size;
    const char *at;   // its first mention
    tn_gnode *body;   // NULL: not defined, or of a class
    int32_t of_class; // the class whose characters it matches, -1 none
    int32_t entry;
    bool nullable;
} tn_grule;

typedef enum tn_gop { TN_GOP_BYTE, TN_GOP_SET, TN_GOP_SPLIT, TN_GOP_JUMP, TN_GOP_CALL, TN_GOP_RETURN } tn_gop;

typedef struct tn_ginstr {
    uint8_t op, lo, hi; // BYTE: lo to hi
    bool tail;          // CALL: nothing comes after it
    int32_t x, y;       // SET: index; SPLIT: both targets; JUMP, CALL: target
} tn_ginstr;

typedef struct tn_gset {
    uint64_t bits[4];
} tn_gset;

// The position of an instruction in a counted repetition whose item has at least one byte. For texts with
// fewer than `left` bytes this position is equivalent to `first`: the same position in the first of the
// required repetitions, or of the optional ones.
typedef struct tn_gcount {
    int32_t first, left; // itself and INT32_MAX: in none
} tn_gcount;

struct tn_grammar {
    tn_context *ctx;
    tn_ginstr *code;
    tn_gcount *counts; // [n_code]; NULL: nothing is counted
    int32_t n_code;
    tn_gset *sets;
    int32_t n_sets;
    int32_t entry; // of root
};

// What parsing gives; in the arena.
typedef struct tn_gtree {
    tn_arena *arena;
    const char *what, *text;
    size_t n;
    tn_grule *rules;
    int32_t n_rules, rules_capacity;
    tn_gclass *classes;
    int32_t n_classes, classes_capacity;
    int32_t n_sets;
    int32_t root;
} tn_gtree;

// "grammar: line 3, column 7: " and the reason; `at` is within the text.
tn_status tn_grammar_fail(const tn_gtree *t, const char *at, const char *fmt, ...) TN_PRINTF(3, 4);
TN_MUST_USE tn_status tn_grammar_parse(tn_gtree *t);
// *index: a rule without a name.
TN_MUST_USE tn_status tn_grammar_add_rule(tn_gtree *t, const char *name, size_t size, const char *at,
                                          int32_t *index);
// Sorts and joins `ranges` (complement: inverts them), then finds the class or adds it.
TN_MUST_USE tn_status tn_grammar_add_class(tn_gtree *t, tn_grange *ranges, int32_t n, bool complement,
                                           const char *at, int32_t *index);
TN_MUST_USE tn_status tn_grammar_compile(tn_gtree *t, tn_grammar *g);
// Finds the rules that can match the empty text; TN_ERR_ARG for a rule that calls itself before it has
// matched any text.
TN_MUST_USE tn_status tn_grammar_check(tn_gtree *t, const tn_grammar *g);

#endif
