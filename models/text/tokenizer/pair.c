// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A query and a document as one input: by the file's template for that, or with the vocabulary's separators.
#include "models/text/tokenizer/tokenizer_impl.h"

#include <string.h>

enum { SPANS_MAX = 5 };

typedef struct pair_text {
    tn_strbuf text;
    tn_text_span spans[SPANS_MAX]; // those of the template are trusted, those of the caller are not
    size_t n_spans;
} pair_text;

static void append(pair_text *p, tn_gguf_str s, bool trusted)
{
    tn_strbuf_append(&p->text, s.data, s.size);
    if (s.size > 0 && p->n_spans < SPANS_MAX) p->spans[p->n_spans++] = (tn_text_span){p->text.size, trusted};
}

// Where `name` stands in the text, or its size.
static size_t place_of(tn_gguf_str text, const char *name)
{
    size_t n = strlen(name), at = 0;
    while (at + n <= text.size && memcmp(text.data + at, name, n) != 0) at++;
    return at + n <= text.size ? at : text.size;
}

static tn_status encode_template(const tn_tokenizer *t, const tn_text_pair *in, tn_gguf_str document,
                                 tn_tokens *out)
{
    static const char query_name[] = "{query}", document_name[] = "{document}";
    tn_gguf_str f = in->format;
    size_t q = place_of(f, query_name), d = place_of(f, document_name);
    if (q == f.size || d == f.size)
        return tn_fail(t->ctx, TN_ERR_FORMAT,
                       "tokenizer.chat_template.rerank has no {query} or no {document}");
    bool swapped = d < q;
    size_t first = swapped ? d : q, second = swapped ? q : d;
    size_t after_first = first + strlen(swapped ? document_name : query_name);
    size_t after_second = second + strlen(swapped ? query_name : document_name);
    pair_text p = {.n_spans = 0};
    tn_strbuf_init(&p.text, t->ctx);
    append(&p, (tn_gguf_str){f.data, first}, true);
    append(&p, swapped ? document : in->query, false);
    append(&p, (tn_gguf_str){f.data + after_first, second - after_first}, true);
    append(&p, swapped ? in->query : document, false);
    append(&p, (tn_gguf_str){f.data + after_second, f.size - after_second}, true);
    tn_spans spans = {.spans = p.spans, .count = p.n_spans};
    tn_status status = p.text.status;
    if (status == TN_OK && p.text.size > 0)
        status = tn_encode_spans(t, p.text.data, p.text.size, &spans, out);
    tn_strbuf_fini(&p.text);
    return status;
}

static tn_status push_special(const tn_tokenizer *t, bool wanted, int32_t which, tn_tokens *out)
{
    int32_t id = t->special[which];
    return wanted && id >= 0 ? tn_tokens_push(out, id) : TN_OK;
}

// bos query eos sep document eos, of these what the vocabulary adds; word pieces: bos query sep document sep.
static tn_status encode_separated(const tn_tokenizer *t, const tn_text_pair *in, tn_gguf_str document,
                                  tn_tokens *out)
{
    bool sep = t->add_sep && t->special[TN_SPECIAL_SEP] >= 0,
         eos = t->add_eos && t->special[TN_SPECIAL_EOS] >= 0;
    if (!sep && !eos)
        return tn_fail(
            t->ctx, TN_ERR_UNSUPPORTED,
            "the vocabulary has no separator for pairs and the file no tokenizer.chat_template.rerank; give "
            "the whole prompt as one text");
    tn_status status = push_special(t, t->add_bos, TN_SPECIAL_BOS, out);
    if (status == TN_OK) status = tn_tokenizer_encode(t, in->query.data, in->query.size, 0, out);
    if (status == TN_OK) status = push_special(t, eos, TN_SPECIAL_EOS, out);
    if (status == TN_OK) status = push_special(t, sep, TN_SPECIAL_SEP, out);
    if (status == TN_OK) status = tn_tokenizer_encode(t, document.data, document.size, 0, out);
    if (status == TN_OK) status = push_special(t, eos, TN_SPECIAL_EOS, out);
    return status == TN_OK ? push_special(t, t->kind->framed, TN_SPECIAL_SEP, out) : status;
}

static tn_status encode_cut(const tn_tokenizer *t, const tn_text_pair *in, size_t n_document, tn_tokens *out)
{
    tn_gguf_str document = {in->document.data, n_document};
    out->count = 0;
    return in->format.size > 0 ? encode_template(t, in, document, out)
                               : encode_separated(t, in, document, out);
}

tn_status tn_tokenizer_encode_pair(const tn_tokenizer *t, const tn_text_pair *in, tn_tokens *out)
{
    // bytes of the document: a size that fits; a size that may not fit
    size_t low = 0, high = in->document.size;
    tn_status status = encode_cut(t, in, high, out);
    if (status != TN_OK || in->max_tokens == 0 || out->count <= in->max_tokens) return status;
    status = encode_cut(t, in, 0, out);
    if (status == TN_OK && out->count > in->max_tokens)
        return tn_fail(t->ctx, TN_ERR_CONTEXT_FULL, "the query alone has %zu tokens, at most %zu fit",
                       out->count, in->max_tokens);
    // The whole input is tokenised, because the tokens of its parts may differ.
    while (status == TN_OK && high - low > 1) {
        size_t mid = low + (high - low) / 2;
        status = encode_cut(t, in, mid, out);
        if (status == TN_OK && out->count <= in->max_tokens)
            low = mid;
        else
            high = mid;
    }
    while (low > 0 && ((uint8_t)in->document.data[low] & 0xc0) == 0x80) low--; // no half characters
    return status == TN_OK ? encode_cut(t, in, low, out) : status;
}
