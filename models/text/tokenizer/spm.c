// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece vocabularies: any two neighbours whose joined text is a token may merge, best score first
// (Kudo and Richardson 2018, the BPE mode). What stays unknown is spelled in bytes.
#include "core/fp16.h"
#include "models/text/tokenizer/tokenizer_impl.h"
#include "models/text/tokenizer/unicode.h"

#include <string.h>

// Ascending with falling score, so that both kinds of vocabulary merge the lowest number first.
static uint32_t priority_of(float score)
{
    uint32_t bits = tn_f32_bits(score + 0.0f); // -0 counts as 0
    uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ~ascending;
}

tn_status tn_spm_load(tn_tokenizer *t, const tn_gguf *gguf)
{
    t->priority = tn_arena_array(&t->arena, (size_t)t->n_tokens, sizeof *t->priority);
    if (t->priority == NULL) return TN_ERR_MEMORY;
    const tn_gguf_kv *kv = tn_gguf_find(gguf, "tokenizer.ggml.scores");
    if (kv != NULL && (kv->type != TN_GGUF_ARRAY || kv->count != (uint64_t)t->n_tokens))
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.scores: %llu values for %d tokens",
                       (unsigned long long)kv->count, (int)t->n_tokens);
    for (int32_t i = 0; i < t->n_tokens; i++) {
        double score = 0;
        tn_status status = kv == NULL ? TN_OK : tn_gguf_array_f64(gguf, kv, (uint64_t)i, &score);
        if (status != TN_OK) return status;
        if (score != score)
            return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.scores: value %d is NaN", (int)i);
        t->priority[i] = priority_of((float)score);
    }
    return TN_OK;
}

bool tn_spm_pair(const tn_encoder *e, size_t left, size_t right, tn_merge *out)
{
    const tn_tokenizer *t = e->t;
    size_t n = (size_t)e->symbols[left].size + e->symbols[right].size;
    if (n > t->text_max) return false;
    out->id = tn_text_map_find(&t->map, e->text.data + left, n);
    if (out->id < 0) return false;
    out->priority = t->priority[out->id];
    return true;
}

static tn_status push_bytes(tn_encoder *e, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id = e->t->byte_token[(uint8_t)text[i]];
        if (id < 0) id = e->t->special[TN_SPECIAL_UNK];
        if (id < 0) continue;
        tn_status status = tn_tokens_push(e->out, id);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

tn_status tn_spm_encode(tn_encoder *e, const char *text, size_t n, bool at_start)
{
    tn_strbuf_clear(&e->text);
    if (at_start && e->t->add_space_prefix) tn_strbuf_append(&e->text, TN_SPACE_MARK, TN_SPACE_MARK_SIZE);
    for (size_t i = 0; i < n;) {
        const char *space = memchr(text + i, ' ', n - i);
        size_t plain = space == NULL ? n - i : (size_t)(space - (text + i));
        tn_strbuf_append(&e->text, text + i, plain);
        if (space != NULL) tn_strbuf_append(&e->text, TN_SPACE_MARK, TN_SPACE_MARK_SIZE);
        i += plain + 1;
    }
    if (e->text.status != TN_OK) return e->text.status;

    tn_status status = tn_symbols_begin(e);
    for (size_t i = 0, size; i < e->text.size && status == TN_OK; i += size) {
        size = TN_MIN(tn_utf8_size(e->text.data[i]), e->text.size - i);
        tn_symbols_add(e, tn_text_map_find(&e->t->map, e->text.data + i, size), i, size);
    }
    if (status == TN_OK) status = tn_symbols_merge(e);
    return status == TN_OK ? tn_symbols_emit(e, 1, push_bytes) : status;
}
