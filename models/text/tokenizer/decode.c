// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Ids to bytes.
#include "models/text/tokenizer/tokenizer_impl.h"
#include "models/text/tokenizer/unicode.h"

#include <string.h>

// Token text with every space mark replaced by a space.
static void append_unmarked(tn_gguf_str text, tn_strbuf *out)
{
    for (size_t i = 0; i < text.size;) {
        bool mark = text.size - i >= TN_SPACE_MARK_SIZE &&
                    memcmp(text.data + i, TN_SPACE_MARK, TN_SPACE_MARK_SIZE) == 0;
        if (mark)
            tn_strbuf_append(out, " ", 1);
        else
            tn_strbuf_append(out, text.data + i, 1);
        i += mark ? TN_SPACE_MARK_SIZE : 1;
    }
}

// Token text with every mapped character replaced by its byte; other characters are unchanged.
static void append_unmapped(tn_gguf_str text, tn_strbuf *out)
{
    for (size_t i = 0, size; i < text.size; i += size) {
        int32_t byte = tn_bpe_cp_byte(tn_utf8_decode(text.data + i, text.size - i, &size));
        char c = (char)byte;
        if (byte >= 0)
            tn_strbuf_append(out, &c, 1);
        else
            tn_strbuf_append(out, text.data + i, size);
    }
}

tn_status tn_tokenizer_piece(const tn_tokenizer *t, int32_t id, bool print_special, tn_strbuf *out)
{
    if (id < 0 || id >= t->n_tokens)
        return tn_fail(t->ctx, TN_ERR_ARG, "token %d: there are %d tokens", (int)id, (int)t->n_tokens);
    tn_token token = t->tokens[id];
    tn_gguf_str text = t->map.texts[id];
    if (token.attr & TN_ATTR_SPECIAL) {
        if (print_special || !(token.attr & TN_ATTR_CONTROL)) tn_strbuf_append(out, text.data, text.size);
    } else if (token.type == TN_TOKEN_BYTE) {
        char c = (char)tn_byte_token_value(text);
        tn_strbuf_append(out, &c, 1);
    } else if (token.type == TN_TOKEN_NORMAL) {
        if (t->pre == NULL || t->space_mark)
            append_unmarked(text, out);
        else
            append_unmapped(text, out);
    }
    return out->status;
}

// --- clean-up of English text, as the vocabularies' authors did it -----------------------------------
// Each pass copies s[0..n) onto itself and returns the new length.

static size_t drop_before_punctuation(char *s, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool drop = s[i] == ' ' && i + 1 < n &&
                    (s[i + 1] == '?' || s[i + 1] == '!' || s[i + 1] == '.' || s[i + 1] == ',');
        if (!drop) s[kept++] = s[i];
    }
    return kept;
}

static size_t drop_around_apostrophe(char *s, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ' && i + 2 < n && s[i + 1] == '\'' && s[i + 2] == ' ') {
            s[kept++] = '\'';
            i += 2;
        } else {
            s[kept++] = s[i];
        }
    }
    return kept;
}

static size_t drop_before_suffix(char *s, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool drop = false;
        if (s[i] == ' ' && i + 2 < n && s[i + 1] == '\'') {
            char a = s[i + 2];
            drop = a == 's' || a == 'm' || ((a == 'r' || a == 'v') && i + 3 < n && s[i + 3] == 'e');
        }
        if (!drop) s[kept++] = s[i];
    }
    return kept;
}

static void drop_leading_space(tn_strbuf *out, size_t start)
{
    if (out->size == start || out->data[start] != ' ') return;
    memmove(out->data + start, out->data + start + 1, out->size - start - 1);
    out->data[--out->size] = 0;
}

tn_status tn_tokenizer_decode(const tn_tokenizer *t, const int32_t *ids, size_t n, int32_t flags,
                              tn_strbuf *out)
{
    size_t start = out->size;
    bool drop_space = t->add_space_prefix, remove = flags & TN_DETOKENIZE_REMOVE_SPECIAL;
    if (remove && t->add_bos && n > 0 && ids[0] == t->special[TN_SPECIAL_BOS]) {
        drop_space = false;
        ids++;
        n--;
    }
    if (remove && t->add_eos && n > 0 && ids[n - 1] == t->special[TN_SPECIAL_EOS]) n--;
    for (size_t i = 0; i < n; i++) {
        tn_status status = tn_tokenizer_piece(t, ids[i], flags & TN_DETOKENIZE_PRINT_SPECIAL, out);
        if (status != TN_OK) return status;
        if (i == 0 && drop_space) drop_leading_space(out, start);
    }
    if (!t->clean_spaces || out->size == start) return out->status;
    char *s = out->data + start;
    size_t size = drop_before_punctuation(s, out->size - start);
    size = drop_before_suffix(s, drop_around_apostrophe(s, size));
    out->size = start + size;
    out->data[out->size] = 0;
    return out->status;
}

// --- streaming ---------------------------------------------------------------------------------------

// How many bytes a sequence with this lead needs; 0: no valid lead.
static size_t needed(uint8_t lead)
{
    if (lead >= 0xc2 && lead <= 0xdf) return 2;
    if (lead >= 0xe0 && lead <= 0xef) return 3;
    return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

// Whether `byte` can be number i (from 1) of a valid sequence with this lead (RFC 3629, section 4).
static bool continues(uint8_t lead, size_t i, uint8_t byte)
{
    uint8_t low = 0x80, high = 0xbf;
    if (i == 1) {
        if (lead == 0xe0) low = 0xa0;
        if (lead == 0xed) high = 0x9f;
        if (lead == 0xf0) low = 0x90;
        if (lead == 0xf4) high = 0x8f;
    }
    return byte >= low && byte <= high;
}

size_t tn_utf8_printable(const char *bytes, size_t n)
{
    const uint8_t *b = (const uint8_t *)bytes;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const uint8_t *lead = b + n - back;
        if ((*lead & 0xc0) == 0x80) continue;
        if (needed(*lead) <= back) return n;
        for (size_t i = 1; i < back; i++)
            if (!continues(*lead, i, lead[i])) return n;
        return n - back;
    }
    return n;
}
