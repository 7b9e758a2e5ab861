// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Special tokens: ids by key, else by text; which tokens end generation; which remove white space beside
// them. Files often give such tokens a wrong type, so their texts decide.
#include "models/text/tokenizer/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name "_token_id"

// clang-format off
static const struct {
    int32_t which;
    const char *key, *older_key;
    const char *texts[12]; // the first that exists, if no key is there
} specials[] = {
    {TN_SPECIAL_BOS, KEY("bos"), NULL, {NULL}},
    {TN_SPECIAL_EOS, KEY("eos"), NULL, {NULL}},
    {TN_SPECIAL_UNK, KEY("unknown"), NULL, {NULL}},
    {TN_SPECIAL_SEP, KEY("seperator"), NULL, {NULL}}, // the format's spelling
    {TN_SPECIAL_PAD, KEY("padding"), NULL, {NULL}},
    {TN_SPECIAL_MASK, KEY("mask"), NULL, {NULL}},
    {TN_SPECIAL_EOT, KEY("eot"), NULL,
     {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>",
      "_<EOT>",
      "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}},
    {TN_SPECIAL_EOM, KEY("eom"), NULL, {"<|eom_id|>"}},
    {TN_SPECIAL_FIM_PRE, KEY("fim_pre"), KEY("prefix"),
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
      "<|prefix|>"}},
    {TN_SPECIAL_FIM_SUF, KEY("fim_suf"), KEY("suffix"),
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
      "<|suffix|>"}},
    {TN_SPECIAL_FIM_MID, KEY("fim_mid"), KEY("middle"),
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
      "<|middle|>"}},
    {TN_SPECIAL_FIM_PAD, KEY("fim_pad"), NULL, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {TN_SPECIAL_FIM_REP, KEY("fim_rep"), NULL,
     {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {TN_SPECIAL_FIM_SEP, KEY("fim_sep"), NULL, {"<|file_sep|>"}},
};

static const int32_t ends_by_id[] = {TN_SPECIAL_EOS, TN_SPECIAL_EOT, TN_SPECIAL_EOM, TN_SPECIAL_FIM_PAD,
                                     TN_SPECIAL_FIM_REP, TN_SPECIAL_FIM_SEP};
static const char *const ends_by_text[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~["};
// Parts of a message in the harmony format: programs that read the output need them, so they are printed.
static const char *const always_shown[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};
// clang-format on

static int32_t find(const tn_tokenizer *t, const char *text)
{
    return tn_tokenizer_find(t, text, strlen(text));
}

// -1 in a file, in any width, means none; any other id must exist.
static tn_status load_id(tn_tokenizer *t, const tn_gguf *gguf, const char *key, int32_t which, bool *given)
{
    if (key == NULL || *given || tn_gguf_find(gguf, key) == NULL) return TN_OK;
    int64_t id = -1;
    tn_status status = tn_gguf_get_i64(gguf, key, &id);
    if (status != TN_OK) return status;
    *given = true;
    if (id == -1 || id == UINT32_MAX) {
        t->special[which] = -1;
        return TN_OK;
    }
    if (id < 0 || id >= t->n_tokens)
        return tn_fail(t->ctx, TN_ERR_FORMAT, "%s: %lld, but there are %d tokens", key, (long long)id,
                       (int)t->n_tokens);
    t->special[which] = (int32_t)id;
    return TN_OK;
}

static tn_status load_ids(tn_tokenizer *t, const tn_gguf *gguf)
{
    for (size_t i = 0; i < TN_COUNT(specials); i++) {
        int32_t which = specials[i].which;
        bool given = false;
        tn_status status = load_id(t, gguf, specials[i].key, which, &given);
        if (status == TN_OK) status = load_id(t, gguf, specials[i].older_key, which, &given);
        if (status != TN_OK) return status;
        for (size_t k = 0; !given && k < TN_COUNT(specials[i].texts) && specials[i].texts[k] != NULL; k++) {
            int32_t id = find(t, specials[i].texts[k]);
            if (id < 0) continue;
            t->special[which] = id;
            t->tokens[id].attr |= TN_ATTR_CONTROL;
            given = true;
        }
    }
    return TN_OK;
}

static bool is_end(const tn_tokenizer *t, const char *text)
{
    return tn_tokenizer_is_eog(t, find(t, text));
}

static void force_type(tn_tokenizer *t, const char *text, uint8_t type)
{
    int32_t id = find(t, text);
    if (id >= 0) t->tokens[id] = (tn_token){type, type == TN_TOKEN_USER ? TN_ATTR_USER : 0};
}

static void mark_ends(tn_tokenizer *t)
{
    for (size_t i = 0; i < TN_COUNT(ends_by_text); i++) {
        int32_t id = find(t, ends_by_text[i]);
        if (id >= 0) t->tokens[id].attr |= TN_ATTR_EOG | TN_ATTR_CONTROL;
    }
    for (size_t i = 0; i < TN_COUNT(ends_by_id); i++) {
        int32_t id = t->special[ends_by_id[i]];
        if (id >= 0) t->tokens[id].attr |= TN_ATTR_EOG;
    }
    // In these formats <|end|> closes a part of an answer, and </s> means nothing.
    bool calls = is_end(t, "<|call|>") || is_end(t, "<|calls|>");
    if (is_end(t, "<|end|>") && calls && (is_end(t, "<|return|>") || is_end(t, "<|flush|>")))
        force_type(t, "<|end|>", TN_TOKEN_USER);
    if (is_end(t, "<|tool_response>")) force_type(t, "</s>", TN_TOKEN_NORMAL);
    for (size_t i = 0; i < TN_COUNT(always_shown); i++) force_type(t, always_shown[i], TN_TOKEN_USER);
}

// Tokens that stand for pictures and sounds, for example. Ids beyond the vocabulary mean nothing.
static tn_status mark_suppressed(tn_tokenizer *t, const tn_gguf *gguf)
{
    static const char key[] = "tokenizer.ggml.suppress_tokens";
    const tn_gguf_kv *kv = tn_gguf_find(gguf, key);
    if (!kv) return TN_OK;
    if (kv->type != TN_GGUF_ARRAY) return tn_fail(t->ctx, TN_ERR_FORMAT, "%s is no list", key);
    for (uint64_t i = 0; i < kv->count; i++) {
        int64_t id = -1;
        tn_status status = tn_gguf_array_i64(gguf, kv, i, &id);
        if (status != TN_OK) return status;
        if (id >= 0 && id < t->n_tokens) t->tokens[id].attr |= TN_ATTR_NEVER;
    }
    return TN_OK;
}

// --- white space around special tokens, which files do not say: known by name ------------------------

static bool contains(tn_gguf_str s, const char *needle)
{
    size_t n = strlen(needle);
    for (size_t i = 0; i + n <= s.size; i++) {
        size_t k = 0;
        while (k < n && (s.data[i + k] == needle[k] ||
                         (s.data[i + k] >= 'A' && s.data[i + k] <= 'Z' && s.data[i + k] + 32 == needle[k])))
            k++;
        if (k == n) return true;
    }
    return false;
}

static bool equals(tn_gguf_str s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

static void mark_left(tn_tokenizer *t, const char *text)
{
    int32_t id = find(t, text);
    if (id >= 0) t->tokens[id].attr |= TN_ATTR_LSTRIP;
}

static tn_status mark_strips(tn_tokenizer *t, const tn_gguf *gguf)
{
    tn_gguf_str arch = {"", 0}, name = {"", 0}, pre = {t->pre_name, strlen(t->pre_name)};
    tn_status status = tn_gguf_get_str(gguf, "general.architecture", &arch);
    if (status == TN_OK) status = tn_gguf_get_str(gguf, "general.name", &name);
    if (status != TN_OK) return status;
    if (equals(pre, "jina-v2-de") || equals(pre, "jina-v2-es") || equals(pre, "jina-v2-code") ||
        equals(arch, "nomic-bert-moe") || equals(arch, "jina-bert-v3"))
        mark_left(t, "<mask>");
    if (contains(name, "modern-bert")) mark_left(t, "[MASK]");
    if (!contains(name, "phi-3") && !contains(name, "phi3")) return TN_OK;
    for (int32_t i = 0; i < t->n_tokens; i++) {
        tn_gguf_str text = t->map.texts[i];
        if (!(t->tokens[i].attr & TN_ATTR_SPECIAL) || equals(text, "<unk>") || equals(text, "<s>") ||
            equals(text, "<|endoftext|>"))
            continue;
        t->tokens[i].attr |= TN_ATTR_RSTRIP;
    }
    return TN_OK;
}

// --- lengths of special tokens -----------------------------------------------------------------------

uint64_t tn_special_hash(const char *text, size_t n)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) hash = hash * TN_SPECIAL_HASH_BASE + (uint8_t)text[i];
    return hash;
}

static uint64_t filter_bit(const tn_special_length *length, uint64_t hash)
{
    return (hash ^ hash >> 32) * TN_SPECIAL_HASH_BASE >> length->shift;
}

bool tn_special_may_be(const tn_special_length *length, uint64_t hash)
{
    uint64_t bit = filter_bit(length, hash);
    return length->filter[bit / 64] >> bit % 64 & 1;
}

static int by_size_descending(const void *a, const void *b)
{
    size_t x = ((const tn_special_length *)a)->size, y = ((const tn_special_length *)b)->size;
    return (x < y) - (x > y);
}

static tn_status make_filters(tn_tokenizer *t, tn_special_length *lengths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t words = 1;
        for (lengths[i].shift = 64 - 6; words < lengths[i].count; words *= 2) lengths[i].shift--;
        lengths[i].filter = tn_arena_array(&t->arena, words, sizeof *lengths[i].filter);
        if (lengths[i].filter == NULL) return TN_ERR_MEMORY;
        lengths[i].power = 1;
        for (size_t k = 1; k < lengths[i].size; k++) lengths[i].power *= TN_SPECIAL_HASH_BASE;
    }
    for (int32_t i = 0; i < t->n_tokens; i++) {
        if (!(t->tokens[i].attr & TN_ATTR_SPECIAL)) continue;
        tn_special_length key = {.size = t->map.texts[i].size};
        tn_special_length *of = bsearch(&key, lengths, n, sizeof key, by_size_descending);
        uint64_t bit = filter_bit(of, tn_special_hash(t->map.texts[i].data, key.size));
        of->filter[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    return TN_OK;
}

static tn_status list_lengths(tn_tokenizer *t)
{
    size_t n = 0, kept = 0;
    for (int32_t i = 0; i < t->n_tokens; i++) n += (t->tokens[i].attr & TN_ATTR_SPECIAL) != 0;
    tn_special_length *list = tn_arena_array(&t->arena, n, sizeof *list);
    if (list == NULL) return TN_ERR_MEMORY;
    n = 0;
    for (int32_t i = 0; i < t->n_tokens; i++) {
        if (!(t->tokens[i].attr & TN_ATTR_SPECIAL)) continue;
        uint8_t c = (uint8_t)t->map.texts[i].data[0];
        list[n].size = t->map.texts[i].size;
        list[n].count = 1;
        list[n++].first[c >> 6] = (uint64_t)1 << (c & 63);
    }
    qsort(list, n, sizeof *list, by_size_descending);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || list[kept - 1].size != list[i].size) {
            list[kept++] = list[i];
            continue;
        }
        list[kept - 1].count++;
        for (size_t k = 0; k < TN_COUNT(list[i].first); k++) list[kept - 1].first[k] |= list[i].first[k];
    }
    t->special_lengths = list;
    t->n_special_lengths = kept;
    return make_filters(t, list, kept);
}

static tn_status find_newline(tn_tokenizer *t)
{
    int32_t *nl = &t->special[TN_SPECIAL_NL];
    if (t->kind->newline == TN_NEWLINE_BYTE) {
        *nl = t->byte_token['\n'];
    } else if (t->kind->newline == TN_NEWLINE_TEXT) {
        tn_tokens ids;
        tn_tokens_init(&ids, t->ctx);
        tn_status status = tn_tokenizer_encode(t, "\n", 1, 0, &ids);
        if (status == TN_OK && ids.count > 0) *nl = ids.ids[0];
        tn_tokens_fini(&ids);
        if (status != TN_OK) return status;
    }
    if (*nl < 0) *nl = t->special[TN_SPECIAL_PAD];
    return TN_OK;
}

tn_status tn_special_load(tn_tokenizer *t, const tn_gguf *gguf)
{
    tn_status status = load_ids(t, gguf);
    if (status != TN_OK) return status;
    mark_ends(t);
    status = mark_suppressed(t, gguf);
    if (status == TN_OK) status = mark_strips(t, gguf);
    if (status == TN_OK) status = list_lengths(t);
    return status == TN_OK ? find_newline(t) : status;
}
