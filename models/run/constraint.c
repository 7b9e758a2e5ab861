// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/constraint.h"

#include <string.h>

tn_status tn_constraint_init(tn_constraint *c, tn_context *ctx, const tn_tokenizer *tokenizer,
                             const tn_generation_config *cfg, int32_t max_tokens)
{
    const tn_vocab_trie *trie = NULL;
    *c = (tn_constraint){0};
    if (!cfg->grammar) return TN_OK;
    if (!tokenizer)
        return tn_fail(ctx, TN_ERR_MODEL,
                       "generation: a grammar is about text, and this model has no tokenizer");
    tn_status status = tn_grammar_create(ctx, "grammar", cfg->grammar, strlen(cfg->grammar), &c->grammar);
    if (status == TN_OK) status = tn_vocab_trie_of(tokenizer, &trie);
    if (status == TN_OK) status = tn_matcher_create(ctx, c->grammar, trie, max_tokens, &c->matcher);
    if (status != TN_OK) tn_constraint_fini(c);
    return status;
}

void tn_constraint_fini(tn_constraint *c)
{
    tn_matcher_destroy(&c->matcher);
    tn_grammar_destroy(&c->grammar);
}
