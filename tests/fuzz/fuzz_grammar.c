// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Grammars, JSON and JSON schemas of any bytes: they compile or are refused within a second; a grammar that
// came of a schema always compiles; what its masks allow can be accepted; nothing leaks.
#include "models/text/grammar/grammar.h"
#include "models/text/grammar/schema.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/tiny_vocab.h"

// Follows the grammar at random.
static void walk(tn_context *ctx, const tn_grammar *g, const tn_vocab_trie *trie, const uint8_t *data,
                 size_t size)
{
    tn_matcher *m = NULL;
    const uint64_t *bits;
    bool any = true;
    if (tn_matcher_create(ctx, g, trie, 64, &m) != TN_OK) return;
    for (size_t i = 0; i < 24 && any; i++) {
        if (tn_matcher_mask(m, &bits, &any) != TN_OK || !any) break;
        int32_t token = (int32_t)((size ? data[i % size] : i) * 7919 % (size_t)trie->n_tokens);
        while (!(bits[token / 64] >> (token % 64) & 1)) token = (token + 1) % trie->n_tokens;
        if (tn_matcher_accept(m, token) != TN_OK) break;
        if (i % 5 == 4) tn_matcher_truncate(m, (int32_t)(i / 2));
        // Behind what was allowed the text is not impossible: it has ended, or a mask can be asked for.
        int32_t result = -1;
        bool ended = tn_matcher_complete(m);
        if (!ended && tn_matcher_try(m, "", 0, &result) == TN_OK && result < 0) abort();
    }
    tn_matcher_destroy(&m);
}

static void run(tn_context *ctx, const tn_vocab_trie *trie, const uint8_t *data, size_t size)
{
    tn_grammar *g = NULL;
    tn_strbuf gbnf;
    const char *text = (const char *)data + 1;
    size_t n = size - 1;
    tn_strbuf_init(&gbnf, ctx);
    if (data[0] % 2 == 0) {
        if (tn_grammar_create(ctx, "grammar", text, n, &g) == TN_OK) walk(ctx, g, trie, data, size);
    } else if (tn_schema_to_gbnf(ctx, text, n, &gbnf) == TN_OK) {
        tn_status status = tn_grammar_create(ctx, "grammar", gbnf.data, gbnf.size, &g);
        char message[512] = "";
        tn_context_error(ctx, message, sizeof message);
        // Schemas that lead to themselves and large ones are refused here.
        if (status != TN_OK && !strstr(message, "left recursion") && !strstr(message, "more than") &&
            !strstr(message, "bytes")) {
            printf("%s\n%.*s\n%s\n", message, (int)n, text, gbnf.data);
            abort();
        }
        if (status == TN_OK) walk(ctx, g, trie, data, size);
    }
    tn_strbuf_fini(&gbnf);
    tn_grammar_destroy(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tiny_vocab vocab; // one for all inputs: it only is read
    static tn_context *ctx;
    static tn_tokenizer *tokenizer;
    static tn_vocab_trie *trie;
    if (!ctx) {
        ctx = fuzz_context(NULL);
        tiny_spm(&vocab);
        tiny_open(ctx, &vocab);
        tiny_must(tn_tokenizer_create(ctx, vocab.gguf, NULL, &tokenizer));
        tiny_must(tn_vocab_trie_create(ctx, tokenizer, &trie));
    }
    if (size < 1) return 0;
    uint8_t *copy = fuzz_copy(data, size);
    fuzz_cost cost = fuzz_begin(ctx);
    run(ctx, trie, copy, size);
    fuzz_end(&cost, size);
    free(copy);
    return 0;
}

// --- inputs ------------------------------------------------------------------------------------------------

static const char *const gbnf_words[] = {
    "root ::= ",  "\na ::= ",  "\nb ::= ",
    "a ",         "b ",        "root ",
    "\"hello\" ", "\"(\" ",    "\"\\x41\\u00e9\" ",
    "[a-z] ",     "[^a\\]-] ", ". ",
    "( ",         ") ",        "| ",
    "* ",         "+ ",        "? ",
    "{2} ",       "{1,3} ",    "{0,} ",
    "{99999} ",   "# x\n",     "\"",
    "[",          "\\",        "{",
    "::=",        "\n",        "\"\" ",
};
static const char *const schema_words[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"type\":",
    "\"string\"",
    "\"object\"",
    "\"integer\"",
    "\"properties\":{\"a\":",
    "\"required\":[\"a\"]",
    "\"items\":",
    "\"anyOf\":[",
    "\"oneOf\":[",
    "\"allOf\":[",
    "\"$ref\":\"#\"",
    "\"$ref\":\"#/properties/a\"",
    "\"enum\":[1,\"a\"]",
    "\"const\":null",
    "\"pattern\":\"^a[b-d]*$\"",
    "\"pattern\":\"(\"",
    "\"minimum\":5",
    "\"maximum\":-3.5",
    "\"maximum\":1234",
    "\"minLength\":3",
    "\"maxItems\":2",
    "\"prefixItems\":[{}]",
    "\"additionalProperties\":{}",
    "\"additionalProperties\":false",
    "true",
    "false",
    "{}",
    "1e5",
    "\"format\":\"date\"",
    "\"\\u00e9\"",
    "{\"type\":\"array\",\"items\":{",
    "}}",
    "},",
    "]}",
};

// A run of words; schemas keep their brackets in pairs most of the time.
static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    if (max < 100) return 0;
    bool schema = fuzz_random(state) % 2;
    const char *const *words = schema ? schema_words : gbnf_words;
    size_t n_words = schema ? TN_COUNT(schema_words) : TN_COUNT(gbnf_words), n = 1;
    out[0] = schema;
    if (!schema) n += (size_t)sprintf((char *)out + n, "root ::= ");
    char open[64];
    size_t depth = 0;
    if (schema) out[n++] = '{', open[depth++] = '}';
    for (uint64_t k = fuzz_random(state) % 24; k > 0; k--) {
        const char *w = words[fuzz_random(state) % n_words];
        size_t size = strlen(w);
        if (n + size + 70 > max) break;
        memcpy(out + n, w, size);
        n += size;
        for (size_t i = 0; schema && i < size; i++) {
            if ((w[i] == '{' || w[i] == '[') && depth < sizeof open) open[depth++] = w[i] == '{' ? '}' : ']';
            if ((w[i] == '}' || w[i] == ']') && depth > 0) depth--;
        }
        if (schema && w[size - 1] != ':' && w[size - 1] != '{' && w[size - 1] != '[' &&
            fuzz_random(state) % 4)
            out[n++] = ',';
        if (fuzz_random(state) % 64 == 0) out[n++] = (uint8_t)fuzz_random(state);
    }
    if (schema && out[n - 1] == ',') n--;
    if (schema && out[n - 1] == ':') n += (size_t)sprintf((char *)out + n, "{}");
    while (schema && depth > 0) out[n++] = (uint8_t)open[--depth];
    return n;
}

#include "tests/fuzz/fuzz_main.h"
