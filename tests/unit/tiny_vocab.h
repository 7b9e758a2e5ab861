// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Vocabularies of a few hundred tokens, built in memory: for the unit test and the fuzzer of the tokenizers.
#ifndef TN_TESTS_UNIT_TINY_VOCAB_H
#define TN_TESTS_UNIT_TINY_VOCAB_H

#include "models/text/tokenizer_impl.h"
#include "models/text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TINY_TOKENS = 512, TINY_MERGES = 64, TINY_KEYS = 8 };

typedef struct tiny_vocab {
    const char *model, *pre, *name; // NULL: the key is left out
    const char *tokens[TINY_TOKENS];
    float scores[TINY_TOKENS];
    int32_t types[TINY_TOKENS];
    uint64_t n_tokens, n_scores, n_types; // 0 scores or types: the key is left out
    const char *merges[TINY_MERGES];
    uint64_t n_merges;
    struct {
        const char *key;
        uint32_t value;
    } ids[TINY_KEYS];
    size_t n_ids;
    struct {
        const char *key;
        bool value;
    } flags[TINY_KEYS];
    size_t n_flags;
    char byte_texts[256][8];
    void *data; // the file, freed by tiny_close
    tn_gguf *gguf;
} tiny_vocab;

static inline int32_t tiny_add(tiny_vocab *v, const char *text, int32_t type, float score)
{
    if (v->n_tokens == TINY_TOKENS) abort();
    v->tokens[v->n_tokens] = text;
    v->scores[v->n_tokens] = score;
    v->types[v->n_tokens++] = type;
    v->n_scores = v->n_types = v->n_tokens;
    return (int32_t)v->n_tokens - 1;
}

static inline void tiny_id(tiny_vocab *v, const char *key, uint32_t value)
{
    v->ids[v->n_ids].key = key;
    v->ids[v->n_ids++].value = value;
}

static inline void tiny_flag(tiny_vocab *v, const char *key, bool value)
{
    v->flags[v->n_flags].key = key;
    v->flags[v->n_flags++].value = value;
}

// <unk> <s> </s>, the 256 byte tokens from id 3, then letters and words; enough to say "hello".
static inline void tiny_spm(tiny_vocab *v)
{
    static const char *const words[] = {"▁",  "h",    "e",     "l",      "o",  "a",  "b",  "he", "ll",
                                        "lo", "hell", "hello", "▁hello", "▁a", "▁▁", "ab", "é"};
    *v = (tiny_vocab){.model = "llama"};
    tiny_add(v, "<unk>", TN_TOKEN_UNKNOWN, 0);
    tiny_add(v, "<s>", TN_TOKEN_CONTROL, 0);
    tiny_add(v, "</s>", TN_TOKEN_CONTROL, 0);
    for (unsigned b = 0; b < 256; b++) {
        snprintf(v->byte_texts[b], sizeof v->byte_texts[b], "<0x%02X>", b);
        tiny_add(v, v->byte_texts[b], TN_TOKEN_BYTE, 0);
    }
    for (size_t i = 0; i < TN_COUNT(words); i++) tiny_add(v, words[i], TN_TOKEN_NORMAL, -(float)i);
}

// The 256 mapped bytes as ids 0..255, words made by merges, <|endoftext|> as the last id and eos.
static inline void tiny_bpe(tiny_vocab *v)
{
    static const char *const words[] = {"he", "ll",   "hell", "hello", "Ġhello",
                                        "aa", "aaaa", "ĠĠ",   "12",    "ĊĊ"};
    static const char *const merges[] = {"h e", "l l",   "he ll", "hell o", "Ġ hello",
                                         "a a", "aa aa", "Ġ Ġ",   "1 2",    "Ċ Ċ"};
    *v = (tiny_vocab){.model = "gpt2", .pre = "gpt-2"};
    for (unsigned b = 0; b < 256; b++) {
        tn_utf8_encode(tn_bpe_byte_cp((uint8_t)b), v->byte_texts[b]);
        tiny_add(v, v->byte_texts[b], TN_TOKEN_NORMAL, 0);
    }
    for (size_t i = 0; i < TN_COUNT(words); i++) tiny_add(v, words[i], TN_TOKEN_NORMAL, 0);
    for (size_t i = 0; i < TN_COUNT(merges); i++) v->merges[v->n_merges++] = merges[i];
    int32_t end = tiny_add(v, "<|endoftext|>", TN_TOKEN_CONTROL, 0);
    tiny_id(v, "tokenizer.ggml.bos_token_id", (uint32_t)end);
    tiny_id(v, "tokenizer.ggml.eos_token_id", (uint32_t)end);
}

// Ids 0 to 4 are [PAD] [UNK] [CLS] [SEP] [MASK]; words, pieces inside of words, letters, signs.
static inline void tiny_wpm(tiny_vocab *v)
{
    static const char *const words[] = {"▁hello", "▁he", "llo", "llo!", "▁e", "e", "▁l", "l",
                                        "▁o",     "o",   "▁中", "▁,",   "▁!", "▁", "é",  "▁straße"};
    static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    static const char *const keys[] = {"padding", "unknown", "cls", "seperator", "mask"};
    static char texts[TN_COUNT(keys)][64];
    *v = (tiny_vocab){.model = "bert"};
    for (size_t i = 0; i < TN_COUNT(specials); i++) {
        snprintf(texts[i], sizeof texts[i], "tokenizer.ggml.%s_token_id", i == 2 ? "bos" : keys[i]);
        tiny_id(v, texts[i], (uint32_t)tiny_add(v, specials[i], TN_TOKEN_CONTROL, 0));
    }
    for (size_t i = 0; i < TN_COUNT(words); i++) tiny_add(v, words[i], TN_TOKEN_NORMAL, 0);
}

static inline void tiny_must(tn_status status)
{
    if (status != TN_OK) abort();
}

// Writes the file and opens it. The vocabulary must stay as long as the file.
static inline void tiny_open(tn_context *ctx, tiny_vocab *v)
{
    tn_gguf_writer *w;
    size_t size;
    tiny_must(tn_gguf_writer_open_memory(ctx, &w));
    tiny_must(tn_gguf_writer_put_str(w, "general.architecture", "llama"));
    if (v->name) tiny_must(tn_gguf_writer_put_str(w, "general.name", v->name));
    if (v->model) tiny_must(tn_gguf_writer_put_str(w, "tokenizer.ggml.model", v->model));
    if (v->pre) tiny_must(tn_gguf_writer_put_str(w, "tokenizer.ggml.pre", v->pre));
    if (v->n_tokens) tiny_must(tn_gguf_writer_put_strs(w, "tokenizer.ggml.tokens", v->tokens, v->n_tokens));
    if (v->n_scores)
        tiny_must(tn_gguf_writer_put_array(w, "tokenizer.ggml.scores", TN_GGUF_F32, v->scores, v->n_scores));
    if (v->n_types)
        tiny_must(
            tn_gguf_writer_put_array(w, "tokenizer.ggml.token_type", TN_GGUF_I32, v->types, v->n_types));
    if (v->n_merges) tiny_must(tn_gguf_writer_put_strs(w, "tokenizer.ggml.merges", v->merges, v->n_merges));
    for (size_t i = 0; i < v->n_ids; i++)
        tiny_must(tn_gguf_writer_put_u32(w, v->ids[i].key, v->ids[i].value));
    for (size_t i = 0; i < v->n_flags; i++)
        tiny_must(tn_gguf_writer_put_bool(w, v->flags[i].key, v->flags[i].value));
    tiny_must(tn_gguf_writer_begin(w));
    tiny_must(tn_gguf_writer_commit(&w, &v->data, &size));
    tiny_must(tn_gguf_open_memory(ctx, v->data, size, "tiny", &v->gguf));
}

static inline void tiny_close(tn_context *ctx, tiny_vocab *v)
{
    tn_gguf_close(&v->gguf);
    tn_free(ctx, v->data);
    v->data = NULL;
}

#endif
