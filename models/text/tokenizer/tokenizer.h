// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Text to token ids and back, from the tokenizer.* keys of a GGUF file. Immutable after creation; any
// thread may use it.
#ifndef TN_MODELS_TOKENIZER_H
#define TN_MODELS_TOKENIZER_H

#include "core/strbuf.h"
#include "models/gguf/gguf.h"

typedef struct tn_tokenizer tn_tokenizer;

// A growing list of ids, owned by the caller (tn_free of ctx on .ids, or tn_tokens_fini).
typedef struct tn_tokens {
    tn_context *ctx;
    int32_t *ids;
    size_t count, capacity;
} tn_tokens;
void tn_tokens_init(tn_tokens *t, tn_context *ctx);
void tn_tokens_fini(tn_tokens *t);
TN_MUST_USE tn_status tn_tokens_push(tn_tokens *t, int32_t id);
TN_MUST_USE tn_status tn_tokens_reserve(tn_tokens *t, size_t n); // n more ids will be pushed

enum { TN_TOKENIZE_ADD_SPECIAL = 1, TN_TOKENIZE_PARSE_SPECIAL = 2 };
enum { TN_DETOKENIZE_REMOVE_SPECIAL = 1, TN_DETOKENIZE_PRINT_SPECIAL = 2 };

// `pre` overrides tokenizer.ggml.pre, NULL: as the file says. A file without a tokenizer gives TN_OK and
// *out = NULL. Strings are borrowed from the gguf, which must outlive the tokenizer.
// TN_ERR_FORMAT: keys contradict each other; TN_ERR_MODEL: unknown kind or pre-tokenizer, named.
TN_MUST_USE tn_status tn_tokenizer_create(tn_context *ctx, const tn_gguf *gguf, const char *pre,
                                          tn_tokenizer **out);
void tn_tokenizer_destroy(tn_tokenizer **t);

// Appends the ids of `text` (n bytes, any bytes) to `out`.
TN_MUST_USE tn_status tn_tokenizer_encode(const tn_tokenizer *t, const char *text, size_t n, int32_t flags,
                                          tn_tokens *out);

// A query and a document in one input. `format` is the file's template with {query} and {document}, empty:
// separators of the vocabulary. With max_tokens > 0 the document is cut at its end to fit.
typedef struct tn_text_pair {
    tn_gguf_str query, document, format;
    size_t max_tokens;
} tn_text_pair;
// Replaces the contents of `out`. TN_ERR_UNSUPPORTED: the file has neither template nor separators for pairs;
// TN_ERR_CONTEXT_FULL: the query does not fit.
TN_MUST_USE tn_status tn_tokenizer_encode_pair(const tn_tokenizer *t, const tn_text_pair *in, tn_tokens *out);

// Bytes of a whole sequence, with the leading-space and clean-up rules of the file.
TN_MUST_USE tn_status tn_tokenizer_decode(const tn_tokenizer *t, const int32_t *ids, size_t n, int32_t flags,
                                          tn_strbuf *out);
// Raw bytes of one token (may be part of a character); special tokens have none unless print_special.
TN_MUST_USE tn_status tn_tokenizer_piece(const tn_tokenizer *t, int32_t id, bool print_special,
                                         tn_strbuf *out);

int32_t tn_tokenizer_n_tokens(const tn_tokenizer *t);
const char *tn_tokenizer_model(const tn_tokenizer *t); // "llama", "gpt2"
const char *tn_tokenizer_pre(const tn_tokenizer *t);   // pre-tokenizer in use, "" if none
// The id whose text is exactly `text`, or -1.
int32_t tn_tokenizer_find(const tn_tokenizer *t, const char *text, size_t n);
tn_gguf_str tn_tokenizer_text(const tn_tokenizer *t, int32_t id); // as stored
int32_t tn_tokenizer_type(const tn_tokenizer *t, int32_t id);     // token type 0..6

// Special ids, -1 if none.
enum { TN_SPECIAL_BOS, TN_SPECIAL_EOS, TN_SPECIAL_EOT, TN_SPECIAL_EOM, TN_SPECIAL_UNK, TN_SPECIAL_SEP,
       TN_SPECIAL_PAD, TN_SPECIAL_MASK, TN_SPECIAL_NL, TN_SPECIAL_FIM_PRE, TN_SPECIAL_FIM_SUF,
       TN_SPECIAL_FIM_MID, TN_SPECIAL_FIM_PAD, TN_SPECIAL_FIM_REP, TN_SPECIAL_FIM_SEP, TN_SPECIAL_COUNT };
int32_t tn_tokenizer_special(const tn_tokenizer *t, int32_t which);
bool tn_tokenizer_is_eog(const tn_tokenizer *t, int32_t id);
// the file says that it must never be generated
bool tn_tokenizer_is_suppressed(const tn_tokenizer *t, int32_t id);
bool tn_tokenizer_add_bos(const tn_tokenizer *t);
bool tn_tokenizer_add_eos(const tn_tokenizer *t);
// Leading space of the first printed token is dropped by decode (SPM); programs that print token by token
// need to know.
bool tn_tokenizer_add_space_prefix(const tn_tokenizer *t);

// Splits a byte stream at UTF-8 borders: how many of the n bytes can be printed now without cutting a
// character that the next bytes could complete. Invalid bytes are never held back.
size_t tn_utf8_printable(const char *bytes, size_t n);

#endif
