// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts of mixed lengths to batches of one embedder. Texts of a batch stand one behind the other, without
// padding to the longest.
//
// A plan is made for one number of tokens and of texts, and takes milliseconds: as long as a batch of a small
// model. So batches of a window get nearly equal numbers of both, by dealing the texts out, and fillers round
// them up to a small set of values: short texts that nobody reads, 1 to 2 % of the tokens.
#ifndef TN_MODELS_PACKING_H
#define TN_MODELS_PACKING_H

#include <tenon/embed.h>

enum { TN_PACKING_TEXTS = 4096 }; // of a window, at most

typedef struct tn_packing_limits {
    int32_t tokens, texts;         // of a batch; a longer text has a batch to itself
    int32_t all_tokens, all_texts; // of a batch with its fillers
    int32_t filler;                // tokens of a filler
} tn_packing_limits;

typedef struct tn_packing_batch {
    int32_t first, last; // texts, linked by tn_packing.next
    int32_t n_texts, n_tokens;
    int32_t n_fillers, filler; // tokens of the first filler; the others have one
} tn_packing_batch;

typedef struct tn_packing {
    int32_t n_batches;
    tn_packing_batch batches[TN_PACKING_TEXTS];
    int32_t next[TN_PACKING_TEXTS];  // the text behind this one in its batch, -1: none
    int32_t order[TN_PACKING_TEXTS]; // of the texts, the longest first
} tn_packing;

// The multiple that tokens of batches are rounded up to, where texts have up to `tokens` of them.
int32_t tn_packing_step(int32_t tokens);
// The number of texts that n, which is at least 1, is rounded up to.
int32_t tn_packing_count(int32_t n);
// n from 1 to TN_PACKING_TEXTS. Batches of long texts come first.
void tn_packing_make(tn_packing *p, const tn_text_ids *texts, int32_t n, const tn_packing_limits *limits);

#endif
