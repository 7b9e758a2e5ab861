// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Vocabularies of a few hundred tokens, built in memory: for the unit test and the fuzzer of the tokenizers.
#ifndef TN_TESTS_UNIT_TINY_VOCAB_H
#define TN_TESTS_UNIT_TINY_VOCAB_H

#include "models/text/tokenizer/tokenizer_impl.h"
#include "models/text/tokenizer/unicode.h"

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
    int32_t suppress[TINY_KEYS];
    uint64_t n_suppress;
    char byte_texts[256][8];
    uint8_t charsmap[4 + 4 * 256 * 13 + 64];
    uint64_t n_charsmap; // 0: the key is left out
    void *data;          // the file, freed by tiny_close
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
    for (size_t i = 0; i < v->n_ids; i++)
        if (strcmp(v->ids[i].key, key) == 0) {
            v->ids[i].value = value;
            return;
        }
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

static inline void tiny_node(tiny_vocab *v, uint32_t i, uint32_t word)
{
    for (uint32_t k = 0; k < 4; k++) v->charsmap[4 + 4 * i + k] = (uint8_t)(word >> 8 * k);
}

// A trie as a double array in which the children of state s are at 256 * (s + 1): wasteful and easily built.
static inline void tiny_charsmap(tiny_vocab *v, const char *const (*rows)[2], size_t n_rows)
{
    enum { STATES = 12 };
    struct {
        uint32_t parent, value, low;
        uint8_t byte;
        bool leaf;
    } states[STATES] = {{0}};
    uint32_t n = 1, nodes_size = 4 * 256 * (STATES + 1), text = 0;
    char *texts = (char *)v->charsmap + 4 + nodes_size;
    for (size_t r = 0; r < n_rows; r++) {
        uint32_t at = 0;
        for (const char *p = rows[r][0]; *p; p++) {
            uint32_t next = 1;
            while (next < n && !(states[next].parent == at && states[next].byte == (uint8_t)*p)) next++;
            if (next == STATES) abort();
            if (next == n) states[n].parent = at, states[n++].byte = (uint8_t)*p;
            at = next;
        }
        states[at].leaf = true;
        states[at].value = text;
        memcpy(texts + text, rows[r][1], strlen(rows[r][1]) + 1);
        text += (uint32_t)strlen(rows[r][1]) + 1;
    }
    memset(v->charsmap, 0, 4 + nodes_size);
    tiny_node(v, 0, 1u << 10 | 0x200u);
    for (uint32_t s = 1; s < n; s++) {
        // Offsets are relative, by exclusive or: the low byte of an index is that of all bytes before.
        uint32_t parent = states[s].parent, low = states[parent].low ^ states[s].byte;
        uint32_t word =
            ((parent + 1) ^ (s + 1)) << 10 | 0x200u | (states[s].leaf ? 0x100u : 0u) | states[s].byte;
        states[s].low = low;
        tiny_node(v, 256 * (parent + 1) + low, word);
        if (states[s].leaf) tiny_node(v, 256 * (s + 1) + low, states[s].value | 0x80000000u);
    }
    for (uint32_t k = 0; k < 4; k++) v->charsmap[k] = (uint8_t)(nodes_size >> 8 * k);
    v->n_charsmap = 4 + nodes_size + text;
}

// Ids 0 to 2 are <pad> </s> <unk>; accents, ligatures and tabs are replaced.
static inline void tiny_ugm(tiny_vocab *v)
{
    static const struct {
        const char *text;
        float score;
    } words[] = {{"▁hello", -1}, {"▁he", -2}, {"llo", -2.5f}, {"▁", -3}, {"h", -5},  {"e", -5},
                 {"l", -5},      {"o", -5},   {"▁fi", -4},    {"X", -6}, {"he", -7}, {"fi", -4.5f}};
    static const char *const replaced[][2] = {{"\xc3\xa9", "e"}, {"\xef\xac\x81", "fi"},
                                              {"\t", " "},       {"ab", "X"},
                                              {"a", ""},         {"b\xe2\x80", "hello"}};
    *v = (tiny_vocab){.model = "t5"};
    tiny_add(v, "<pad>", TN_TOKEN_CONTROL, 0);
    tiny_add(v, "</s>", TN_TOKEN_CONTROL, 0);
    tiny_add(v, "<unk>", TN_TOKEN_UNKNOWN, 0);
    for (size_t i = 0; i < TN_COUNT(words); i++) tiny_add(v, words[i].text, TN_TOKEN_NORMAL, words[i].score);
    tiny_flag(v, "tokenizer.ggml.add_space_prefix", true);
    tiny_flag(v, "tokenizer.ggml.remove_extra_whitespaces", true);
    tiny_charsmap(v, replaced, TN_COUNT(replaced));
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
    if (v->n_charsmap)
        tiny_must(tn_gguf_writer_put_array(w, "tokenizer.ggml.precompiled_charsmap", TN_GGUF_U8, v->charsmap,
                                           v->n_charsmap));
    if (v->n_suppress)
        tiny_must(tn_gguf_writer_put_array(w, "tokenizer.ggml.suppress_tokens", TN_GGUF_I32, v->suppress,
                                           v->n_suppress));
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
