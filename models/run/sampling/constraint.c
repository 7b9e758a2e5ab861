// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/run/sampling/constraint.h"

#include "models/text/grammar/schema.h"

#include <string.h>

static tn_status make_grammar(tn_context *ctx, const tn_generation_config *cfg, tn_grammar **out)
{
    if (cfg->grammar) return tn_grammar_create(ctx, "grammar", cfg->grammar, strlen(cfg->grammar), out);
    tn_strbuf gbnf;
    tn_strbuf_init(&gbnf, ctx);
    tn_status status = tn_schema_to_gbnf(ctx, cfg->json_schema, strlen(cfg->json_schema), &gbnf);
    if (status == TN_OK) status = tn_grammar_create(ctx, "grammar of the schema", gbnf.data, gbnf.size, out);
    tn_strbuf_fini(&gbnf);
    return status;
}

tn_status tn_constraint_init(tn_constraint *c, tn_context *ctx, const tn_tokenizer *tokenizer,
                             const tn_generation_config *cfg, int32_t max_tokens)
{
    const tn_vocab_trie *trie = NULL;
    *c = (tn_constraint){0};
    if (!cfg->grammar && !cfg->json_schema) return TN_OK;
    if (cfg->grammar && cfg->json_schema)
        return tn_fail(ctx, TN_ERR_ARG, "generation: grammar and json_schema exclude each other");
    if (!tokenizer)
        return tn_fail(ctx, TN_ERR_MODEL,
                       "generation: a grammar is about text, and this model has no tokenizer");
    tn_status status = make_grammar(ctx, cfg, &c->grammar);
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
