// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The bytes that tokens print, as a tree in one array: a grammar decides about all tokens with a common
// prefix at once. Immutable after creation; any thread may use it.
#ifndef TN_MODELS_VOCAB_TRIE_H
#define TN_MODELS_VOCAB_TRIE_H

#include "models/text/tokenizer/tokenizer.h"

enum { TN_PIECE_MAX = 1024, TN_TRIE_TALL = 255 }; // bytes; longer tokens are omitted

// Nodes are in depth-first order: the nodes that follow a node and are deeper are its descendants.
typedef struct tn_trie_node {
    uint32_t end;   // index behind the last node below this one
    int32_t token;  // that ends here, -1 none; more: tn_vocab_trie.same
    uint16_t depth; // bytes from the root, 1 for the first
    uint8_t byte;
    uint8_t height; // bytes from here to the deepest node below; TN_TRIE_TALL: or more
} tn_trie_node;

typedef struct tn_vocab_trie {
    tn_context *ctx;
    int32_t n_tokens;
    tn_trie_node *nodes;
    uint32_t n_nodes;
    uint32_t height; // of the root, as of nodes
    int32_t *same;   // [n_tokens] another token with the same bytes, -1 none
    uint32_t *start; // [n_tokens + 1] of each token's bytes; those of control tokens and the like are empty
    tn_strbuf bytes;
    int32_t *ends; // [n_ends] end-of-generation tokens
    int32_t n_ends;
} tn_vocab_trie;

// Control, unknown and unused tokens are omitted: they never are part of a text. TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_vocab_trie_create(tn_context *ctx, const tn_tokenizer *t, tn_vocab_trie **out);
void tn_vocab_trie_destroy(tn_vocab_trie **trie);
// The tree of a tokenizer, made at the first call and kept as long as the tokenizer. Any thread.
// TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_vocab_trie_of(const tn_tokenizer *t, const tn_vocab_trie **out);

static inline const char *tn_vocab_piece(const tn_vocab_trie *t, int32_t token, size_t *n)
{
    *n = t->start[token + 1] - t->start[token];
    return t->bytes.data + t->start[token];
}

#endif
