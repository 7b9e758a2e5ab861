// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Word-piece vocabularies (Devlin et al. 2018): text is split into words, each word into the longest pieces
// from the left. A word that pieces do not cover is one unknown token.
#include "models/text/tokenizer/tokenizer_impl.h"
#include "models/text/tokenizer/unicode.h"

tn_status tn_wpm_load(tn_tokenizer *t, const tn_gguf *gguf)
{
    tn_prefix_entry *entries = tn_arena_array(&t->arena, (size_t)t->n_tokens, sizeof *entries);
    if (entries == NULL) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < t->n_tokens; i++) entries[i] = (tn_prefix_entry){t->map.texts[i], i};
    tn_prefix_map_init(&t->prefixes, entries, (size_t)t->n_tokens);
    t->lowercase = true;
    tn_status status = tn_gguf_get_bool(gguf, "tokenizer.ggml.normalizer.lowercase", &t->lowercase);
    t->strip_accents = t->lowercase; // the default of the original
    if (status == TN_OK)
        status = tn_gguf_get_bool(gguf, "tokenizer.ggml.normalizer.strip_accents", &t->strip_accents);
    return status;
}

static bool is_ideograph(uint32_t cp)
{
    static const uint32_t ranges[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                         {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                         {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < TN_COUNT(ranges); i++)
        if (cp >= ranges[i][0] && cp <= ranges[i][1]) return true;
    return false;
}

static bool in(uint32_t category, uint32_t first, uint32_t last)
{
    return category >= first && category <= last;
}

// Emits the word in e->text, which starts with a space mark, and empties it.
static tn_status end_word(tn_encoder *e)
{
    const tn_tokenizer *t = e->t;
    tn_status status = e->text.status;
    size_t count = e->out->count, n = e->text.size;
    if (n == 0) return TN_OK;
    for (size_t i = 0; i < n && status == TN_OK;) {
        tn_prefix_walk walk = tn_prefix_begin(&t->prefixes);
        int32_t id, best = -1;
        size_t end = i;
        while (i + walk.depth < n && tn_prefix_step(&t->prefixes, &walk, e->text.data[i + walk.depth], &id)) {
            if (id < 0) continue;
            best = id;
            end = i + walk.depth;
        }
        if (best < 0) { // the pieces before it are dropped as well
            e->out->count = count;
            if (t->special[TN_SPECIAL_UNK] >= 0) status = tn_tokens_push(e->out, t->special[TN_SPECIAL_UNK]);
            break;
        }
        status = tn_tokens_push(e->out, best);
        i = end;
    }
    tn_strbuf_clear(&e->text);
    return status;
}

static void append_cp(tn_encoder *e, uint32_t cp)
{
    char bytes[4];
    if (e->text.size == 0) tn_strbuf_append(&e->text, TN_SPACE_MARK, TN_SPACE_MARK_SIZE);
    tn_strbuf_append(&e->text, bytes, tn_utf8_encode(cp, bytes));
}

tn_status tn_wpm_encode(tn_encoder *e, const char *text, size_t n, bool at_start)
{
    TN_UNUSED(at_start);
    const tn_tokenizer *t = e->t;
    tn_status status = TN_OK;
    tn_strbuf_clear(&e->text);
    for (size_t i = 0, size; i < n && status == TN_OK; i += size) {
        uint32_t cp = tn_utf8_decode(text + i, n - i, &size);
        if (t->strip_accents) cp = tn_unicode_nfd_first(cp);
        uint32_t category = tn_unicode_category(cp);
        if (tn_unicode_is_space(cp)) {
            status = end_word(e);
            continue;
        }
        bool dropped = cp == 0 || cp == TN_UNICODE_REPLACEMENT ||
                       (in(category, TN_GC_CC, TN_GC_CS) && category != TN_GC_CN);
        if (dropped || (t->strip_accents && in(category, TN_GC_MC, TN_GC_MN))) continue;
        bool symbol = cp < 0x7f && in(category, TN_GC_SC, TN_GC_SO);
        bool alone = symbol || in(category, TN_GC_PC, TN_GC_PS) || is_ideograph(cp);
        if (alone) status = end_word(e);
        append_cp(e, t->lowercase ? tn_unicode_lower(cp) : cp);
        if (alone && status == TN_OK) status = end_word(e);
    }
    return status == TN_OK ? end_word(e) : status;
}
