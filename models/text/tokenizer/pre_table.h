// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The pre-tokenizers that tokenizer.ggml.pre can name.
#ifndef TN_MODELS_PRE_TABLE_H
#define TN_MODELS_PRE_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum {
    TN_PRE_IGNORE_MERGES = 1,   // a piece that is a token needs no merges
    TN_PRE_BOS = 2,             // add_bos by default
    TN_PRE_BOS_FORCED = 4,      // add_bos whatever the file says
    TN_PRE_NO_CLEAN = 8,        // decode leaves spaces alone
    TN_PRE_NO_DEFAULT_BOS = 16, // no bos id unless the file has one
    TN_PRE_SPACE_MARK = 32,     // spaces are written U+2581, other bytes are not mapped
    TN_PRE_NEWLINES_WHOLE = 64, // a run of newlines that is a token is not split
    TN_PRE_MERGES_OPTIONAL = 128,
    TN_PRE_SEP = 256,         // sep stands between the two texts of a pair
    // white space becomes no tokens, other bytes are not mapped; text may become lower case
    TN_PRE_DROP_SPACES = 512,
};

enum { TN_PRE_EXPRESSIONS = 6 };

typedef struct tn_pre {
    const char *names;                           // separated by one blank
    const char *expressions[TN_PRE_EXPRESSIONS]; // applied in order; NULL ends the list
    uint32_t flags;
} tn_pre;

// The row of a name, NULL if unknown.
const tn_pre *tn_pre_find(const char *name, size_t n);
// The known names nearest to an unknown one, with commas, for a message.
void tn_pre_nearest(const char *name, size_t n, char *text, size_t size);

#endif
