// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Text to ids: special tokens are cut out first, longest texts first, then the code of the vocabulary kind
// turns the raw text between them into ids.
#include "models/text/tokenizer/tokenizer_impl.h"

// The longest text: positions and lengths stay in 31 bits even when every space takes three bytes.
enum { TEXT_MAX = 1 << 29 };

// A stretch of raw text out of which the special tokens of one length are being cut.
typedef struct level {
    size_t start, end; // what is not done yet
    size_t span;       // of the last place that was searched; places only move forward
    size_t hashed;     // the place whose bytes, as many as the length, have this hash; SIZE_MAX: none
    uint64_t hash;
    int32_t id; // a token that comes next, -1: none
} level;

// The special token of this length at a place, or -1.
static int32_t special_at(const tn_tokenizer *t, const char *text, const tn_special_length *length, level *l,
                          size_t pos)
{
    uint8_t c = (uint8_t)text[pos];
    if (!(length->first[c >> 6] >> (c & 63) & 1)) return -1;
    if (l->hashed == SIZE_MAX || pos - l->hashed >= length->size) {
        l->hashed = pos;
        l->hash = tn_special_hash(text + pos, length->size);
    }
    for (; l->hashed < pos; l->hashed++) {
        uint64_t first = (uint8_t)text[l->hashed], last = (uint8_t)text[l->hashed + length->size];
        l->hash = (l->hash - first * length->power) * TN_SPECIAL_HASH_BASE + last;
    }
    return tn_special_may_be(length, l->hash) ? tn_tokenizer_find(t, text + pos, length->size) : -1;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Whether token id may be cut out of [pos, pos + size); *span moves forward to the span of pos.
static bool may_cut(const tn_tokenizer *t, int32_t id, const tn_spans *spans, size_t *span, size_t pos,
                    size_t size)
{
    uint8_t attr = t->tokens[id].attr;
    if (!(attr & TN_ATTR_SPECIAL)) return false;
    while (pos >= spans->spans[*span].end) ++*span;
    if (pos + size > spans->spans[*span].end) return false;
    if (spans->spans[*span].trusted) return true;
    if (attr & TN_ATTR_CONTROL) return false;
    for (size_t i = 0; i < spans->n_denied; i++)
        if (spans->denied[i] == id) return false;
    return true;
}

// The text before the next special token of this length in *l, whose id is kept there; all of it if there is
// none.
static level next_raw(const tn_tokenizer *t, const char *text, const tn_special_length *length,
                      const tn_spans *spans, level *l)
{
    for (size_t pos = l->start; l->end - pos >= length->size; pos++) {
        int32_t id = special_at(t, text, length, l, pos);
        if (id < 0 || !may_cut(t, id, spans, &l->span, pos, length->size)) continue;
        level raw = {.start = l->start, .end = pos, .hashed = SIZE_MAX, .id = -1};
        while (t->tokens[id].attr & TN_ATTR_LSTRIP && raw.end > raw.start && is_space(text[raw.end - 1]))
            raw.end--;
        pos += length->size;
        while (t->tokens[id].attr & TN_ATTR_RSTRIP && pos < l->end && is_space(text[pos])) pos++;
        l->start = pos;
        l->id = id;
        return raw;
    }
    level raw = {.start = l->start, .end = l->end, .hashed = SIZE_MAX, .id = -1};
    l->start = l->end;
    return raw;
}

// levels[k]: a stretch without special tokens longer than those of length k; below the last length it is raw
// text. The text is done from its start to its end, so nothing is kept of what was cut.
static tn_status encode_levels(tn_encoder *e, const char *text, const tn_spans *spans, level *levels)
{
    const tn_tokenizer *t = e->t;
    size_t depth = t->n_special_lengths, k = 0;
    bool at_start = true;
    tn_status status = TN_OK;
    while (status == TN_OK) {
        level *l = &levels[k];
        if (l->id >= 0) {
            status = tn_tokens_push(e->out, l->id);
            l->id = -1;
            at_start = true;
        } else if (l->start == l->end) {
            if (k-- == 0) break;
        } else if (k == depth) {
            status = t->kind->encode(e, text + l->start, l->end - l->start, at_start);
            l->start = l->end;
            at_start = false;
        } else {
            level raw = next_raw(t, text, &t->special_lengths[k], spans, l);
            raw.span = levels[k + 1].span;
            levels[++k] = raw;
        }
    }
    return status;
}

tn_status tn_encode_spans(const tn_tokenizer *t, const char *text, size_t n, const tn_spans *spans,
                          tn_tokens *out)
{
    if (n > TEXT_MAX) return tn_fail(t->ctx, TN_ERR_ARG, "text of %zu bytes is too long to tokenize", n);
    if (n == 0) return TN_OK;
    level *levels = tn_calloc(t->ctx, t->n_special_lengths + 1, sizeof *levels);
    if (levels == NULL) return TN_ERR_MEMORY;
    levels[0] = (level){.end = n, .hashed = SIZE_MAX, .id = -1};
    tn_encoder e = {.t = t, .ctx = t->ctx, .out = out};
    tn_strbuf_init(&e.text, t->ctx);
    tn_strbuf_init(&e.mapped, t->ctx);
    tn_status status = encode_levels(&e, text, spans, levels);
    tn_free(t->ctx, levels);
    tn_free(t->ctx, e.symbols);
    tn_free(t->ctx, e.heap);
    tn_free(t->ctx, e.cps);
    tn_free(t->ctx, e.ways);
    tn_strbuf_fini(&e.text);
    tn_strbuf_fini(&e.mapped);
    return status;
}

tn_status tn_tokenizer_encode(const tn_tokenizer *t, const char *text, size_t n, int32_t flags,
                              tn_tokens *out)
{
    size_t count = out->count;
    int32_t bos = t->special[TN_SPECIAL_BOS], eos = t->add_eos ? t->special[TN_SPECIAL_EOS] : -1;
    if (t->kind->framed) eos = t->special[TN_SPECIAL_SEP];
    bool add_special = flags & TN_TOKENIZE_ADD_SPECIAL;
    tn_text_span span = {n, (flags & TN_TOKENIZE_PARSE_SPECIAL) != 0};
    tn_spans spans = {.spans = &span, .count = 1};
    tn_status status = TN_OK;
    if (add_special && t->add_bos && bos >= 0) status = tn_tokens_push(out, bos);
    if (status == TN_OK) status = tn_encode_spans(t, text, n, &spans, out);
    if (status == TN_OK && add_special && eos >= 0) status = tn_tokens_push(out, eos);
    if (status != TN_OK) out->count = count;
    return status;
}
