// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Text to ids: special tokens are cut out first, longest texts first, then the code of the vocabulary kind
// turns the raw text between them into ids.
#include "models/text/tokenizer/tokenizer_impl.h"

// The longest text: positions and lengths stay in 31 bits even when every space takes three bytes.
enum { TEXT_MAX = 1 << 29 };

typedef struct fragment {
    size_t start, end; // bytes of raw text
    int32_t id;        // a special token, or -1
} fragment;

typedef struct fragments {
    fragment *items;
    size_t count, capacity;
} fragments;

static tn_status push(tn_encoder *e, fragments *list, fragment f)
{
    if (f.id < 0 && f.start == f.end) return TN_OK;
    void *array = list->items;
    tn_status status = tn_encoder_reserve(e, &array, &list->capacity, list->count + 1, sizeof *list->items);
    list->items = array;
    if (status == TN_OK) list->items[list->count++] = f;
    return status;
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

// Cuts the special tokens of one length out of raw fragment f.
static tn_status cut_fragment(tn_encoder *e, const char *text, const tn_special_length *length, fragment f,
                              const tn_spans *spans, fragments *out)
{
    const tn_tokenizer *t = e->t;
    tn_status status = TN_OK;
    size_t span = 0, start = f.start, pos = f.start;
    while (status == TN_OK && f.end - pos >= length->size) {
        uint8_t c = (uint8_t)text[pos];
        int32_t id = -1;
        if (length->first[c >> 6] >> (c & 63) & 1) id = tn_tokenizer_find(t, text + pos, length->size);
        if (id < 0 || !may_cut(t, id, spans, &span, pos, length->size)) {
            pos++;
            continue;
        }
        size_t left = pos;
        while (t->tokens[id].attr & TN_ATTR_LSTRIP && left > start && is_space(text[left - 1])) left--;
        status = push(e, out, (fragment){start, left, -1});
        if (status == TN_OK) status = push(e, out, (fragment){pos, pos, id});
        pos += length->size;
        while (t->tokens[id].attr & TN_ATTR_RSTRIP && pos < f.end && is_space(text[pos])) pos++;
        start = pos;
    }
    return status == TN_OK ? push(e, out, (fragment){start, f.end, -1}) : status;
}

// Fragments of the text in *list; *spare is scratch.
static tn_status cut_specials(tn_encoder *e, const char *text, size_t n, const tn_spans *spans,
                              fragments *list, fragments *spare)
{
    tn_status status = push(e, list, (fragment){0, n, -1});
    for (size_t k = 0; k < e->t->n_special_lengths && status == TN_OK; k++) {
        if (e->t->special_lengths[k].size > n) continue;
        spare->count = 0;
        for (size_t i = 0; i < list->count && status == TN_OK; i++) {
            if (list->items[i].id >= 0)
                status = push(e, spare, list->items[i]);
            else
                status = cut_fragment(e, text, &e->t->special_lengths[k], list->items[i], spans, spare);
        }
        fragments swap = *list;
        *list = *spare;
        *spare = swap;
    }
    return status;
}

tn_status tn_encode_spans(const tn_tokenizer *t, const char *text, size_t n, const tn_spans *spans,
                          tn_tokens *out)
{
    if (n > TEXT_MAX) return tn_fail(t->ctx, TN_ERR_ARG, "text of %zu bytes is too long to tokenize", n);
    if (n == 0) return TN_OK;
    tn_encoder e = {.t = t, .ctx = t->ctx, .out = out, .pieces = {.ctx = t->ctx}};
    tn_strbuf_init(&e.text, t->ctx);
    fragments list = {0}, spare = {0};
    tn_status status = cut_specials(&e, text, n, spans, &list, &spare);
    bool at_start = true;
    for (size_t i = 0; i < list.count && status == TN_OK; i++) {
        const fragment *f = &list.items[i];
        at_start = at_start || f->id >= 0;
        if (f->id >= 0) {
            status = tn_tokens_push(out, f->id);
            continue;
        }
        status = t->kind->encode(&e, text + f->start, f->end - f->start, at_start);
        at_start = false;
    }
    tn_free(t->ctx, list.items);
    tn_free(t->ctx, spare.items);
    tn_free(t->ctx, e.symbols);
    tn_free(t->ctx, e.heap);
    tn_free(t->ctx, e.cps);
    tn_free(t->ctx, e.ways);
    tn_pieces_fini(&e.pieces);
    tn_strbuf_fini(&e.text);
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
