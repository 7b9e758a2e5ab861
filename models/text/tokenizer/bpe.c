// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE (Radford et al. 2019): expressions cut text into pieces, bytes are written as printable
// characters, listed pairs merge in the order of the list. With TN_PRE_SPACE_MARK only spaces are rewritten.
#include "models/text/tokenizer/tokenizer_impl.h"
#include "models/text/tokenizer/unicode.h"

#include <string.h>

enum { MAPPED_FIRST = 0x100, MAPPED_COUNT = 68 }; // bytes that are not printable stand at U+0100 and up

static bool is_printable(uint32_t c)
{
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

uint32_t tn_bpe_byte_cp(uint8_t byte)
{
    if (is_printable(byte)) return byte;
    if (byte <= 0x20) return MAPPED_FIRST + byte;
    if (byte <= 0xa0) return MAPPED_FIRST + 0x21 + (byte - 0x7fu);
    return MAPPED_FIRST + MAPPED_COUNT - 1; // AD
}

int32_t tn_bpe_cp_byte(uint32_t cp)
{
    if (cp < 0x100) return is_printable(cp) ? (int32_t)cp : -1;
    uint32_t i = cp - MAPPED_FIRST;
    if (i >= MAPPED_COUNT) return -1;
    if (i <= 0x20) return (int32_t)i;
    return i == MAPPED_COUNT - 1 ? 0xad : (int32_t)(0x7f + i - 0x21);
}

// --- loading -----------------------------------------------------------------------------------------

// Index of a text that need not be a token. Bytes are copied only when the text is new.
static tn_status intern(tn_tokenizer *t, const char *text, size_t n, bool lasting, int32_t *index)
{
    *index = tn_text_map_find(&t->map, text, n);
    if (*index >= 0) return TN_OK;
    const char *data = text;
    if (!lasting) {
        char *copy = tn_arena_alloc(&t->arena, n);
        if (copy == NULL) return TN_ERR_MEMORY;
        memcpy(copy, text, n);
        data = copy;
    }
    bool added;
    return tn_text_map_add(&t->map, (tn_gguf_str){data, n}, index, &added);
}

static tn_status load_merge(tn_tokenizer *t, tn_gguf_str line, uint32_t rank, tn_strbuf *joined)
{
    const char *space = line.size < 2 ? NULL : memchr(line.data + 1, ' ', line.size - 1);
    if (space == NULL)
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.merges: line %u has no blank", (unsigned)rank);
    size_t n_left = (size_t)(space - line.data), n_right = line.size - n_left - 1;
    if (n_right == 0)
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.merges: line %u has no right part",
                       (unsigned)rank);
    int32_t left, right, merged;
    tn_status status = intern(t, line.data, n_left, true, &left);
    if (status == TN_OK) status = intern(t, space + 1, n_right, true, &right);
    if (status != TN_OK) return status;
    tn_strbuf_clear(joined);
    tn_strbuf_append(joined, line.data, n_left);
    tn_strbuf_append(joined, space + 1, n_right);
    if (joined->status != TN_OK) return joined->status;
    status = intern(t, joined->data, joined->size, false, &merged);
    if (status == TN_OK) tn_pair_map_add(&t->pairs, left, right, rank, merged);
    return status;
}

static tn_status load_merges(tn_tokenizer *t, const tn_gguf *gguf)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, "tokenizer.ggml.merges");
    if (kv == NULL && !(t->pre->flags & TN_PRE_MERGES_OPTIONAL))
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.merges is missing");
    if (kv != NULL && (kv->type != TN_GGUF_ARRAY || kv->elem_type != TN_GGUF_STRING || kv->count > INT32_MAX))
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.merges is not an array of strings");
    uint64_t n = kv == NULL ? 0 : kv->count;
    tn_status status = tn_pair_map_init(&t->pairs, t->ctx, (size_t)n);
    tn_strbuf joined;
    tn_strbuf_init(&joined, t->ctx);
    size_t cursor = 0;
    for (uint64_t i = 0; i < n && status == TN_OK; i++) {
        tn_gguf_str line;
        status = tn_gguf_array_next_str(gguf, kv, &cursor, &line);
        if (status == TN_OK) status = load_merge(t, line, (uint32_t)i, &joined);
    }
    tn_strbuf_fini(&joined);
    return status;
}

tn_status tn_bpe_load(tn_tokenizer *t, const tn_gguf *gguf)
{
    for (; t->n_patterns < TN_PRE_EXPRESSIONS && t->pre->expressions[t->n_patterns] != NULL;
         t->n_patterns++) {
        tn_status status =
            tn_pattern_compile(&t->arena, t->pre->expressions[t->n_patterns], &t->patterns[t->n_patterns]);
        if (status != TN_OK) return status;
    }
    for (uint32_t b = 0; b < 256 && !t->space_mark; b++) {
        char text[4];
        tn_status status =
            intern(t, text, tn_utf8_encode(tn_bpe_byte_cp((uint8_t)b), text), false, &t->byte_symbol[b]);
        if (status != TN_OK) return status;
    }
    tn_status status = TN_OK;
    if (t->pre->flags & TN_PRE_DROP_SPACES)
        status = tn_gguf_get_bool(gguf, "tokenizer.ggml.normalizer.lowercase", &t->lowercase);
    return status == TN_OK ? load_merges(t, gguf) : status;
}

// --- encoding ----------------------------------------------------------------------------------------

bool tn_bpe_pair(const tn_encoder *e, size_t left, size_t right, tn_merge *out)
{
    int32_t l = e->symbols[left].id, r = e->symbols[right].id;
    const tn_pair *pair = l < 0 || r < 0 ? NULL : tn_pair_map_find(&e->t->pairs, l, r);
    if (pair == NULL) return false;
    *out = (tn_merge){pair->rank, pair->merged - 1};
    return true;
}

static tn_status decode_text(tn_encoder *e, const char *text, size_t n)
{
    void *array = e->cps;
    tn_status status = tn_encoder_reserve(e, &array, &e->cps_capacity, n, sizeof *e->cps);
    e->cps = array;
    if (status != TN_OK) return status;
    e->n_cps = 0;
    for (size_t i = 0, size; i < n; i += size) {
        uint32_t cp = tn_utf8_decode(text + i, n - i, &size);
        if (cp == ' ' && e->t->pre->flags & TN_PRE_SPACE_MARK) cp = 0x2581;
        if (e->t->lowercase) cp = tn_unicode_lower(cp);
        e->cps[e->n_cps++] = cp | tn_unicode_category(cp) << TN_CP_GC_SHIFT;
    }
    return TN_OK;
}

// Ids of the bytes of a text as the vocabulary writes it; bytes without a token are dropped.
static tn_status push_bytes(tn_encoder *e, tn_gguf_str text)
{
    const int32_t *by_byte = e->t->space_mark ? e->t->byte_token : e->t->char_token;
    for (size_t i = 0; i < text.size; i++) {
        int32_t id = by_byte[(uint8_t)text.data[i]];
        tn_status status = id < 0 ? TN_OK : tn_tokens_push(e->out, id);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

// A symbol that is no token.
static tn_status spell(tn_encoder *e, const char *text, size_t n)
{
    const tn_tokenizer *t = e->t;
    if (t->space_mark) return push_bytes(e, (tn_gguf_str){text, n});
    tn_status status = TN_OK;
    for (size_t i = 0; i < n && status == TN_OK; i++)
        status = push_bytes(e, t->map.texts[t->byte_symbol[(uint8_t)text[i]]]);
    return status;
}

// The text of a piece in e->text.
static tn_status start_piece(tn_encoder *e, size_t from, size_t to)
{
    char utf8[4];
    size_t size = 0;
    for (size_t i = from; i < to; i++) size += tn_utf8_encode(e->cps[i] & TN_CP_MASK, utf8);
    tn_strbuf_clear(&e->text);
    tn_strbuf_reserve(&e->text, size);
    for (size_t i = from; i < to; i++)
        tn_strbuf_append(&e->text, utf8, tn_utf8_encode(e->cps[i] & TN_CP_MASK, utf8));
    return e->text.status;
}

// A piece that is a token as a whole, for pre-tokenizers that check this before merging.
static tn_status whole_token(tn_encoder *e, int32_t *id)
{
    const tn_tokenizer *t = e->t;
    *id = -1;
    if (e->text.size > t->text_max) return TN_OK;
    if (t->pre->flags & TN_PRE_NEWLINES_WHOLE) {
        for (size_t i = 0; i < e->text.size; i++)
            if (e->text.data[i] != '\n') return TN_OK;
    } else if (!(t->pre->flags & TN_PRE_IGNORE_MERGES)) {
        return TN_OK;
    }
    tn_strbuf *mapped = t->space_mark ? &e->text : &e->mapped;
    if (!t->space_mark) {
        tn_strbuf_clear(mapped);
        for (size_t i = 0; i < e->text.size; i++) {
            tn_gguf_str text = t->map.texts[t->byte_symbol[(uint8_t)e->text.data[i]]];
            tn_strbuf_append(mapped, text.data, text.size);
        }
        if (mapped->status != TN_OK) return mapped->status;
    }
    int32_t found = tn_text_map_find(&t->map, mapped->data, mapped->size);
    if (found < t->n_tokens) *id = found;
    return TN_OK;
}

// The symbols that merges start from: characters, or bytes.
static tn_status add_symbols(tn_encoder *e)
{
    const tn_tokenizer *t = e->t;
    tn_status status = tn_symbols_begin(e);
    for (size_t i = 0, size; i < e->text.size && status == TN_OK; i += size) {
        const char *text = e->text.data + i;
        size = t->space_mark ? tn_utf8_size(*text) : 1;
        tn_symbols_add(e,
                       t->space_mark ? tn_text_map_find(&t->map, text, size) : t->byte_symbol[(uint8_t)*text],
                       i, size);
    }
    return status;
}

static tn_status encode_piece(tn_encoder *e, size_t from, size_t to)
{
    int32_t whole = -1;
    tn_status status = start_piece(e, from, to);
    if (status == TN_OK) status = whole_token(e, &whole);
    if (status == TN_OK && whole >= 0) return tn_tokens_push(e->out, whole);
    if (status == TN_OK) status = add_symbols(e);
    if (status == TN_OK) status = tn_symbols_merge(e);
    return status == TN_OK ? tn_symbols_emit(e, 2, spell) : status; // a byte has up to two when it is mapped
}

tn_status tn_bpe_encode(tn_encoder *e, const char *text, size_t n, bool at_start)
{
    TN_UNUSED(at_start);
    tn_status status = decode_text(e, text, n);
    if (status != TN_OK) return status;
    tn_pattern_split(e->t->patterns, e->t->n_patterns, e->cps, e->n_cps);
    for (size_t from = 0, to; from < e->n_cps && status == TN_OK; from = to) {
        to = tn_piece_end(e->cps, from);
        bool dropped =
            e->t->pre->flags & TN_PRE_DROP_SPACES && tn_unicode_is_space(e->cps[from] & TN_CP_MASK);
        if (!dropped) status = encode_piece(e, from, to);
    }
    return status;
}
