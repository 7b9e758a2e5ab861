// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The grammar that the text of a generation has to follow: from GBNF or from a JSON schema.
#ifndef TN_MODELS_CONSTRAINT_H
#define TN_MODELS_CONSTRAINT_H

#include "models/text/grammar/grammar.h"

#include <tenon/session.h>

typedef struct tn_constraint {
    tn_grammar *grammar;
    tn_matcher *matcher; // NULL: no constraint
} tn_constraint;

// Reads the grammar or schema of cfg; both fields stay NULL if there is none. max_tokens: of the longest
// text. TN_ERR_ARG: the grammar or the schema is wrong, or both are given; TN_ERR_UNSUPPORTED: a keyword of
// the schema that is not supported; TN_ERR_MODEL: there is no tokenizer.
TN_MUST_USE tn_status tn_constraint_init(tn_constraint *c, tn_context *ctx, const tn_tokenizer *tokenizer,
                                         const tn_generation_config *cfg, int32_t max_tokens);
void tn_constraint_fini(tn_constraint *c);

#endif
