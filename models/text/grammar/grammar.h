// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Grammars that generated text has to follow: GBNF text to a program over bytes, and the tokens that may
// follow the text so far. GBNF: rules `name ::= alternatives`, literals "..", classes [a-z] and [^..], any
// character ., groups, | * + ? {m} {m,} {m,n}, comments from #; `root` is the whole text.
#ifndef TN_MODELS_GRAMMAR_H
#define TN_MODELS_GRAMMAR_H

#include "models/text/tokenizer/vocab_trie.h"

enum {
    TN_GRAMMAR_SIZE_MAX = 4 << 20,  // bytes of GBNF text
    TN_GRAMMAR_DEPTH_MAX = 256,     // groups within groups
    TN_GRAMMAR_RULES_MAX = 50000,   // named rules and those of repetitions
    TN_GRAMMAR_STATES_MAX = 100000, // instructions of the program
};

// Immutable after creation; any thread may use it.
typedef struct tn_grammar tn_grammar;

// TN_ERR_ARG with line and column of what is wrong: syntax, rules that are missing or there twice, left
// recursion, a bound exceeded. TN_ERR_MEMORY. `what` names the text in messages.
TN_MUST_USE tn_status tn_grammar_create(tn_context *ctx, const char *what, const char *gbnf, size_t n,
                                        tn_grammar **out);
void tn_grammar_destroy(tn_grammar **grammar);

// The state of a grammar after a text, token by token; tokens can be removed again. Allocates nothing after
// creation. Belongs to one thread at a time. Both arguments must outlive it.
typedef struct tn_matcher tn_matcher;
// max_tokens: of the longest text.
TN_MUST_USE tn_status tn_matcher_create(tn_context *ctx, const tn_grammar *grammar, const tn_vocab_trie *trie,
                                        int32_t max_tokens, tn_matcher **out);
void tn_matcher_destroy(tn_matcher **matcher);

// Bit i % 64 of word i / 64: token i is allowed next; tokens that end generation are allowed if the text is
// complete. Valid until the next call. *any: at least one token is allowed. TN_ERR_UNSUPPORTED: the grammar
// is so ambiguous that its states exceed the bound.
TN_MUST_USE tn_status tn_matcher_mask(tn_matcher *m, const uint64_t **bits, bool *any);
// Appends a token. After a token that is not allowed (or -1) no token is allowed any more.
// TN_ERR_UNSUPPORTED as above.
TN_MUST_USE tn_status tn_matcher_accept(tn_matcher *m, int32_t token);
// Keeps the first n tokens only.
void tn_matcher_truncate(tn_matcher *m, int32_t n);
int32_t tn_matcher_length(const tn_matcher *m);
int32_t tn_matcher_n_tokens(const tn_matcher *m); // of the vocabulary
// The text may end here; it has ended (with an end token), or can still be completed.
bool tn_matcher_complete(const tn_matcher *m);
// For tests: whether bytes lead to a complete text (1), to the beginning of one (0) or to none (-1) from
// here. TN_ERR_UNSUPPORTED as above.
TN_MUST_USE tn_status tn_matcher_try(tn_matcher *m, const char *bytes, size_t n, int32_t *result);

#endif
