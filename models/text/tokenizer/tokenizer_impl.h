// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of the tokenizer share. Loading: tokenizer.c, special.c, bpe.c. Encoding: encode.c cuts out
// special tokens; spm.c and bpe.c turn the rest into symbols that merge.c joins, wpm.c into words, ugm.c into
// tokens. Decoding: decode.c.
#ifndef TN_MODELS_TOKENIZER_IMPL_H
#define TN_MODELS_TOKENIZER_IMPL_H

#include "core/memory/arena.h"
#include "models/text/tokenizer/pre_pattern.h"
#include "models/text/tokenizer/pre_table.h"
#include "models/text/tokenizer/prefix.h"
#include "models/text/tokenizer/text_map.h"
#include "models/text/tokenizer/vocab_trie.h"

#include <stdatomic.h>

// Token types as files number them.
// clang-format off
enum {
    TN_TOKEN_UNDEFINED, TN_TOKEN_NORMAL, TN_TOKEN_UNKNOWN, TN_TOKEN_CONTROL, TN_TOKEN_USER, TN_TOKEN_UNUSED,
    TN_TOKEN_BYTE, TN_TOKEN_TYPE_COUNT
};
// clang-format on

// Attributes that the loader derives from type and text.
enum {
    TN_ATTR_CONTROL = 1, // control or unknown: cut out of trusted text only, printed only on request
    TN_ATTR_USER = 2,    // user defined: always cut out
    TN_ATTR_EOG = 4,     // ends generation
    TN_ATTR_LSTRIP = 8,  // removes white space before it
    TN_ATTR_RSTRIP = 16, // and after it
    TN_ATTR_NEVER = 32,  // never generated
};
enum { TN_ATTR_SPECIAL = TN_ATTR_CONTROL | TN_ATTR_USER };

typedef struct tn_token {
    uint8_t type, attr;
} tn_token;

// Special tokens of one text length; longer ones are cut out first.
typedef struct tn_special_length {
    size_t size, count;
    uint64_t first[4]; // bit per byte that such a token starts with
    uint64_t *filter;  // bits of their hashes, at least 64 for each of them
    uint32_t shift;    // of a hash: what is left counts bits of the filter
    uint64_t power;    // what the first byte of a text counts in its hash
} tn_special_length;

// Symbols while merging, one entry for each byte of the text: that of a symbol's first byte holds the symbol,
// that of its last byte its size, by which the symbol before another one is found.
enum { TN_ID_UNKNOWN = -1, TN_ID_INSIDE = -2 };
typedef struct tn_symbol {
    int32_t id;    // index of its text, TN_ID_UNKNOWN if the vocabulary does not have it, or TN_ID_INSIDE
    uint32_t size; // in bytes
} tn_symbol;

// Two neighbours that may merge. Its entry in the heap is stale when they have another priority now.
typedef struct tn_candidate {
    uint32_t priority; // lowest first, then leftmost
    uint32_t left;     // first byte
} tn_candidate;

// What two neighbours give.
typedef struct tn_merge {
    uint32_t priority;
    int32_t id; // index of the text of both
} tn_merge;

// Unigram: the replacements that normalise text before it is cut into tokens. Borrowed from the file; its
// layout is described in ugm.c.
typedef struct tn_charsmap {
    const uint8_t *nodes; // n_nodes of u32, any alignment
    uint32_t n_nodes;     // 0: there is none
    const char *texts;    // each with a 0 byte behind it
    size_t texts_size;
} tn_charsmap;

// Scratch of one call of encode. A prompt is a text of anyone, so what it takes for each byte of it is
// bounded: 64 bytes with all arrays and the ids (tests/unit/test_costs.c).
typedef struct tn_encoder {
    const tn_tokenizer *t;
    tn_context *ctx;
    tn_tokens *out;
    tn_strbuf text;     // SPM: the fragment with marked spaces; BPE: a piece; WPM: a word; unigram: the
                        // normalised fragment
    tn_strbuf mapped;   // BPE: a piece in the characters that stand for its bytes
    tn_symbol *symbols; // of `text`
    size_t n_symbols, symbols_capacity;
    tn_candidate *heap;
    size_t n_heap, heap_capacity;
    tn_cp *cps;
    size_t n_cps, cps_capacity;
    int32_t *ways; // unigram: the best way to each offset of `text`, see ugm.c
    size_t ways_capacity;
} tn_encoder;

// Which token represents a line break; the pad token if the vocabulary has no such token.
enum { TN_NEWLINE_BYTE, TN_NEWLINE_PAD, TN_NEWLINE_TEXT };

// How a kind of vocabulary works; one row per value of tokenizer.ggml.model, in tokenizer.c.
typedef struct tn_tokenizer_kind {
    const char *model;
    const char *pre; // the only pre-tokenizer of the kind, NULL: the file says; "": has none
    int32_t bos, eos, unk, sep, pad, mask; // default ids, -1 none
    bool add_bos, add_eos, space_prefix, clean;
    bool framed;     // bos before and sep after every text, whatever the file says
    int32_t newline; // TN_NEWLINE_*
    tn_status (*load)(tn_tokenizer *t, const tn_gguf *gguf);
    // Appends the ids of raw text; `at_start`: nothing or a special token comes before it.
    tn_status (*encode)(tn_encoder *e, const char *text, size_t n, bool at_start);
    // What the symbols that begin at two bytes of e->text make together; false if they never merge. NULL: the
    // kind has no merges.
    bool (*pair)(const tn_encoder *e, size_t left, size_t right, tn_merge *out);
} tn_tokenizer_kind;

struct tn_tokenizer {
    tn_context *ctx;
    const tn_tokenizer_kind *kind;
    const tn_pre *pre; // NULL if the kind has none
    char *pre_name;    // "" if none
    tn_arena arena;
    _Atomic(tn_vocab_trie *) *trie; // made for the first grammar
    tn_text_map map;                // tokens first, then other texts that merges mention
    tn_token *tokens;
    int32_t n_tokens;
    size_t text_max;               // bytes of the longest token
    uint32_t *priority;            // SPM, per token: ascending with falling score
    tn_prefix_map prefixes;        // WPM, unigram
    bool lowercase, strip_accents; // WPM
    double *scores, unknown_score; // unigram, per token
    tn_charsmap charsmap;
    bool merge_spaces; // unigram: runs of spaces count as one, those at the ends as none
    tn_pair_map pairs; // BPE
    tn_pattern patterns[TN_PRE_EXPRESSIONS];
    size_t n_patterns;
    int32_t byte_symbol[256];           // BPE: the text that represents a byte
    int32_t byte_token[256];            // token <0xHH>, else the token of that one byte, else -1
    int32_t char_token[256];            // token whose text is that one byte, or -1
    tn_special_length *special_lengths; // longest first
    size_t n_special_lengths;
    int32_t special[TN_SPECIAL_COUNT];
    bool add_bos, add_eos, add_sep, add_space_prefix, clean_spaces, space_mark;
};

// One stretch of the text to encode; up to `end`.
typedef struct tn_text_span {
    size_t end;
    bool trusted; // control tokens are recognised
} tn_text_span;

typedef struct tn_spans {
    const tn_text_span *spans; // cover the text, in order
    size_t count;
    const int32_t *denied; // user-defined tokens not recognised where text is not trusted
    size_t n_denied;
} tn_spans;

// tn_tokenizer_encode without the add_special part, with trust by spans. A special token never crosses
// the border of a span; merges may.
TN_MUST_USE tn_status tn_encode_spans(const tn_tokenizer *t, const char *text, size_t n,
                                      const tn_spans *spans, tn_tokens *out);

// merge.c: symbols of e->text are added from its start to its end, then neighbours are joined until no pair
// is left, then the ids are appended; a symbol that is no token is spelled by its bytes, in at most
// `ids_per_byte` for each.
TN_MUST_USE tn_status tn_symbols_begin(tn_encoder *e);
void tn_symbols_add(tn_encoder *e, int32_t id, size_t start, size_t size);
TN_MUST_USE tn_status tn_symbols_merge(tn_encoder *e);
TN_MUST_USE tn_status tn_symbols_emit(tn_encoder *e, size_t ids_per_byte,
                                      tn_status (*spell)(tn_encoder *e, const char *text, size_t n));
// Makes the array at least `need` elements of `size` bytes large. What it held is lost.
TN_MUST_USE tn_status tn_encoder_reserve(tn_encoder *e, void **array, size_t *capacity, size_t need,
                                         size_t size);

tn_status tn_spm_load(tn_tokenizer *t, const tn_gguf *gguf);
tn_status tn_spm_encode(tn_encoder *e, const char *text, size_t n, bool at_start);
bool tn_spm_pair(const tn_encoder *e, size_t left, size_t right, tn_merge *out);

tn_status tn_wpm_load(tn_tokenizer *t, const tn_gguf *gguf);
tn_status tn_wpm_encode(tn_encoder *e, const char *text, size_t n, bool at_start);

tn_status tn_ugm_load(tn_tokenizer *t, const tn_gguf *gguf);
tn_status tn_ugm_encode(tn_encoder *e, const char *text, size_t n, bool at_start);

tn_status tn_bpe_load(tn_tokenizer *t, const tn_gguf *gguf);
tn_status tn_bpe_encode(tn_encoder *e, const char *text, size_t n, bool at_start);
bool tn_bpe_pair(const tn_encoder *e, size_t left, size_t right, tn_merge *out);
// The code point that represents a byte in token texts, and the reverse (-1 if there is none).
uint32_t tn_bpe_byte_cp(uint8_t byte);
int32_t tn_bpe_cp_byte(uint32_t cp);

// A polynomial of the bytes, highest power first: that of the next place follows from that of a place, so
// that texts of one length are found in time that does not grow with the length.
#define TN_SPECIAL_HASH_BASE 0x9e3779b97f4a7c15u
uint64_t tn_special_hash(const char *text, size_t n);
// Whether a special token of this length may have this hash.
bool tn_special_may_be(const tn_special_length *length, uint64_t hash);

// special.c: ids by key and by text, end-of-generation marks, strip marks, the list of special lengths.
TN_MUST_USE tn_status tn_special_load(tn_tokenizer *t, const tn_gguf *gguf);

// U+2581, which represents a space.
#define TN_SPACE_MARK "\xe2\x96\x81"
enum { TN_SPACE_MARK_SIZE = 3 };

// The byte of a text <0xHH>, or -1.
int32_t tn_byte_token_value(tn_gguf_str text);

#endif
