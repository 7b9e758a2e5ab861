// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Loading a vocabulary.
#include "models/text/tokenizer/tokenizer_impl.h"

#include <string.h>

// clang-format off
static const tn_tokenizer_kind kinds[] = {
    // model    pre       bos eos unk sep pad mask  add_bos add_eos space_prefix clean framed newline
    {"llama",   "",         1,  2,  0, -1, -1, -1,  true,  false, true,  false, false, TN_NEWLINE_BYTE,
     tn_spm_load, tn_spm_encode, tn_spm_pair},
    {"gpt2",    NULL,      11, 11, -1, -1, -1, -1,  false, false, false, true,  false, TN_NEWLINE_TEXT,
     tn_bpe_load, tn_bpe_encode, tn_bpe_pair},
    {"gemma4",  "gemma4",  -1, -1, -1, -1, -1, -1,  true,  false, false, true,  false, TN_NEWLINE_TEXT,
     tn_bpe_load, tn_bpe_encode, tn_bpe_pair},
    {"bert",    "",       101, -1, 100, 102, 0, 103, true, false, false, true,  true,  TN_NEWLINE_PAD,
     tn_wpm_load, tn_wpm_encode, NULL},
    {"t5",      "",        -1,  1,  2, -1,  0, -1,  false, true,  false, false, false, TN_NEWLINE_TEXT,
     tn_ugm_load, tn_ugm_encode, NULL},
};
// clang-format on

static tn_status load_texts(tn_tokenizer *t, const tn_gguf *gguf)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, "tokenizer.ggml.tokens");
    if (kv == NULL || kv->type != TN_GGUF_ARRAY || kv->elem_type != TN_GGUF_STRING)
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.tokens is missing or not an array of strings");
    if (kv->count == 0 || kv->count > INT32_MAX / 4)
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.tokens has %llu tokens",
                       (unsigned long long)kv->count);
    t->n_tokens = (int32_t)kv->count;
    tn_status status = tn_text_map_init(&t->map, t->ctx, (size_t)kv->count + 512);
    size_t cursor = 0;
    for (int32_t i = 0; i < t->n_tokens && status == TN_OK; i++) {
        tn_gguf_str text;
        status = tn_gguf_array_next_str(gguf, kv, &cursor, &text);
        if (status != TN_OK) break;
        if (text.size == 0) {
            text.data = tn_arena_printf(&t->arena, "[EMPTY_%d]", (int)i);
            if (text.data == NULL) return TN_ERR_MEMORY;
            text.size = strlen(text.data);
        }
        bool added;
        int32_t index;
        status = tn_text_map_add(&t->map, text, &index, &added);
        if (status == TN_OK && !added)
            return tn_fail(t->ctx, TN_ERR_FORMAT,
                           "tokenizer.ggml.tokens: tokens %d and %d have the same text", (int)index, (int)i);
        t->text_max = TN_MAX(t->text_max, text.size);
    }
    return status;
}

static tn_status load_types(tn_tokenizer *t, const tn_gguf *gguf)
{
    t->tokens = tn_arena_array(&t->arena, (size_t)t->n_tokens, sizeof *t->tokens);
    if (t->tokens == NULL) return TN_ERR_MEMORY;
    const tn_gguf_kv *kv = tn_gguf_find(gguf, "tokenizer.ggml.token_type");
    if (kv != NULL && (kv->type != TN_GGUF_ARRAY || kv->count != (uint64_t)t->n_tokens))
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.token_type: %llu values for %d tokens",
                       (unsigned long long)kv->count, (int)t->n_tokens);
    for (int32_t i = 0; i < t->n_tokens; i++) {
        int64_t type = TN_TOKEN_NORMAL;
        tn_status status = kv == NULL ? TN_OK : tn_gguf_array_i64(gguf, kv, (uint64_t)i, &type);
        if (status != TN_OK) return status;
        if (type < 0 || type >= TN_TOKEN_TYPE_COUNT)
            return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.token_type: token %d has type %lld", (int)i,
                           (long long)type);
        if (type == TN_TOKEN_BYTE && tn_byte_token_value(t->map.texts[i]) < 0)
            return tn_fail(t->ctx, TN_ERR_FORMAT, "token %d is a byte but its text is not <0xHH>", (int)i);
        bool control = type == TN_TOKEN_CONTROL || type == TN_TOKEN_UNKNOWN;
        t->tokens[i].type = (uint8_t)type;
        t->tokens[i].attr = control ? TN_ATTR_CONTROL : type == TN_TOKEN_USER ? TN_ATTR_USER : 0;
    }
    return TN_OK;
}

static void find_byte_tokens(tn_tokenizer *t)
{
    static const char hex[] = "0123456789ABCDEF";
    for (uint32_t b = 0; b < 256; b++) {
        char c = (char)b, text[6] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
        t->char_token[b] = tn_tokenizer_find(t, &c, 1);
        t->byte_token[b] = tn_tokenizer_find(t, text, sizeof text);
        if (t->byte_token[b] < 0) t->byte_token[b] = t->char_token[b];
    }
}

// Selects the row of the pre-tokenizer: the caller's, else the file's, else "default" with a warning.
static tn_status choose_pre(tn_tokenizer *t, const tn_gguf *gguf, const char *wanted)
{
    tn_gguf_str name = {"", 0};
    tn_status status = TN_OK;
    if (t->kind->pre != NULL)
        name = (tn_gguf_str){t->kind->pre, strlen(t->kind->pre)};
    else if (wanted != NULL)
        name = (tn_gguf_str){wanted, strlen(wanted)};
    else
        status = tn_gguf_get_str(gguf, "tokenizer.ggml.pre", &name);
    if (status == TN_OK && t->kind->pre == NULL && name.size == 0) {
        name = (tn_gguf_str){"default", 7};
        status = tn_event(
            t->ctx, TN_EVENT_MODEL_WARNING,
            "tokenizer.ggml.pre is missing: text is split in a generic way, which may lower quality; "
            "name the right one with --pre");
    }
    if (status != TN_OK) return status;
    char *copy = tn_arena_alloc(&t->arena, name.size + 1);
    if (copy == NULL) return TN_ERR_MEMORY;
    memcpy(copy, name.data, name.size);
    t->pre_name = copy;
    if (name.size == 0) return TN_OK;
    t->pre = tn_pre_find(name.data, name.size);
    if (t->pre != NULL) return TN_OK;
    char near[160];
    tn_pre_nearest(name.data, name.size, near, sizeof near);
    return tn_fail(t->ctx, TN_ERR_MODEL,
                   "unknown pre-tokenizer '%.*s'; choose a known one with --pre NAME, the nearest: %s",
                   (int)TN_MIN(name.size, (size_t)64), name.data, near);
}

static void set_defaults(tn_tokenizer *t)
{
    uint32_t flags = t->pre == NULL ? 0 : t->pre->flags;
    for (size_t i = 0; i < TN_SPECIAL_COUNT; i++) t->special[i] = -1;
    t->special[TN_SPECIAL_BOS] = flags & TN_PRE_NO_DEFAULT_BOS ? -1 : t->kind->bos;
    t->special[TN_SPECIAL_EOS] = t->kind->eos;
    t->special[TN_SPECIAL_UNK] = t->kind->unk;
    t->special[TN_SPECIAL_SEP] = t->kind->sep;
    t->special[TN_SPECIAL_PAD] = t->kind->pad;
    t->special[TN_SPECIAL_MASK] = t->kind->mask;
    for (size_t i = 0; i < TN_SPECIAL_COUNT; i++)
        if (t->special[i] >= t->n_tokens) t->special[i] = -1;
    t->add_bos = t->kind->add_bos || (flags & (TN_PRE_BOS | TN_PRE_BOS_FORCED)) != 0;
    t->add_eos = t->kind->add_eos;
    t->add_sep = t->kind->framed || (flags & TN_PRE_SEP) != 0;
    t->add_space_prefix = t->kind->space_prefix;
    t->clean_spaces = t->kind->clean && !(flags & TN_PRE_NO_CLEAN);
    t->space_mark = (flags & (TN_PRE_SPACE_MARK | TN_PRE_DROP_SPACES)) != 0;
}

static tn_status load_flags(tn_tokenizer *t, const tn_gguf *gguf)
{
    tn_status status = tn_gguf_get_bool(gguf, "tokenizer.ggml.add_bos_token", &t->add_bos);
    if (status == TN_OK) status = tn_gguf_get_bool(gguf, "tokenizer.ggml.add_eos_token", &t->add_eos);
    if (status == TN_OK)
        status = tn_gguf_get_bool(gguf, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix);
    if (status == TN_OK) status = tn_gguf_get_bool(gguf, "tokenizer.ggml.add_sep_token", &t->add_sep);
    if (t->pre != NULL && t->pre->flags & TN_PRE_BOS_FORCED) t->add_bos = true;
    if (t->kind->framed) t->add_bos = t->add_sep = true, t->add_eos = false; // sep is at the end
    return status;
}

static tn_status find_kind(tn_context *ctx, tn_gguf_str model, const tn_tokenizer_kind **out)
{
    for (size_t i = 0; i < TN_COUNT(kinds); i++) {
        if (strlen(kinds[i].model) != model.size || memcmp(kinds[i].model, model.data, model.size) != 0)
            continue;
        *out = &kinds[i];
        return TN_OK;
    }
    return tn_fail(ctx, TN_ERR_MODEL, "tokenizer kind '%.*s' is not supported",
                   (int)TN_MIN(model.size, (size_t)64), model.data);
}

static bool names_none(tn_gguf_str model)
{
    return model.size == 0 || (model.size == 4 && memcmp(model.data, "none", 4) == 0) ||
           (model.size == 8 && memcmp(model.data, "no_vocab", 8) == 0);
}

tn_status tn_tokenizer_create(tn_context *ctx, const tn_gguf *gguf, const char *pre, tn_tokenizer **out)
{
    tn_gguf_str model = {"", 0};
    const tn_tokenizer_kind *kind = NULL;
    tn_status status = tn_gguf_get_str(gguf, "tokenizer.ggml.model", &model);
    if (status != TN_OK) return status;
    if (names_none(model)) {
        *out = NULL;
        return TN_OK;
    }
    status = find_kind(ctx, model, &kind);
    if (status != TN_OK) return status;
    tn_tokenizer *t = tn_calloc(ctx, 1, sizeof *t);
    if (t == NULL) return TN_ERR_MEMORY;
    t->ctx = ctx;
    t->kind = kind;
    tn_arena_init(&t->arena, ctx);
    t->trie = tn_arena_alloc(&t->arena, sizeof *t->trie);
    status = TN_ERR_MEMORY;
    if (!t->trie) goto fail;
    atomic_init(t->trie, NULL);
    if ((status = load_texts(t, gguf)) != TN_OK) goto fail;
    if ((status = load_types(t, gguf)) != TN_OK) goto fail;
    if ((status = choose_pre(t, gguf, pre)) != TN_OK) goto fail;
    set_defaults(t);
    find_byte_tokens(t);
    if ((status = load_flags(t, gguf)) != TN_OK) goto fail;
    if ((status = kind->load(t, gguf)) != TN_OK) goto fail;
    if ((status = tn_special_load(t, gguf)) != TN_OK) goto fail;
    *out = t;
    return TN_OK;
fail:
    tn_tokenizer_destroy(&t);
    return status;
}

void tn_tokenizer_destroy(tn_tokenizer **t)
{
    if (*t == NULL) return;
    tn_vocab_trie *trie = (*t)->trie ? atomic_load_explicit((*t)->trie, memory_order_acquire) : NULL;
    tn_vocab_trie_destroy(&trie);
    tn_text_map_fini(&(*t)->map);
    tn_pair_map_fini(&(*t)->pairs);
    tn_arena_fini(&(*t)->arena);
    tn_free((*t)->ctx, *t);
    *t = NULL;
}
