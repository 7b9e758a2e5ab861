// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A loaded vocabulary: lists of ids, and the properties of tokens.
#include "models/text/tokenizer/tokenizer_impl.h"

#include <string.h>

// --- lists of ids ----------------------------------------------------------------------------------

void tn_tokens_init(tn_tokens *t, tn_context *ctx)
{
    *t = (tn_tokens){.ctx = ctx};
}

void tn_tokens_fini(tn_tokens *t)
{
    tn_free(t->ctx, t->ids);
    *t = (tn_tokens){.ctx = t->ctx};
}

tn_status tn_tokens_reserve(tn_tokens *t, size_t n)
{
    if (n <= t->capacity - t->count) return TN_OK;
    if (t->capacity > SIZE_MAX / 16 || n > SIZE_MAX / 16)
        return tn_fail(t->ctx, TN_ERR_MEMORY, "too many tokens");
    size_t capacity = TN_MAX(t->count + n, TN_MAX(2 * t->capacity, (size_t)64));
    int32_t *ids = tn_realloc(t->ctx, t->ids, t->count * sizeof *ids, capacity * sizeof *ids);
    if (ids == NULL) return TN_ERR_MEMORY;
    t->ids = ids;
    t->capacity = capacity;
    return TN_OK;
}

tn_status tn_tokens_push(tn_tokens *t, int32_t id)
{
    tn_status status = t->count == t->capacity ? tn_tokens_reserve(t, 1) : TN_OK;
    if (status == TN_OK) t->ids[t->count++] = id;
    return status;
}

// --- byte tokens -----------------------------------------------------------------------------------

static int32_t hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int32_t tn_byte_token_value(tn_gguf_str text)
{
    if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') return -1;
    int32_t high = hex_digit(text.data[3]), low = hex_digit(text.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// --- questions -------------------------------------------------------------------------------------

int32_t tn_tokenizer_n_tokens(const tn_tokenizer *t)
{
    return t->n_tokens;
}

const char *tn_tokenizer_model(const tn_tokenizer *t)
{
    return t->kind->model;
}

const char *tn_tokenizer_pre(const tn_tokenizer *t)
{
    return t->pre_name;
}

int32_t tn_tokenizer_find(const tn_tokenizer *t, const char *text, size_t n)
{
    int32_t id = tn_text_map_find(&t->map, text, n);
    return id < t->n_tokens ? id : -1;
}

tn_gguf_str tn_tokenizer_text(const tn_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_tokens ? t->map.texts[id] : (tn_gguf_str){"", 0};
}

int32_t tn_tokenizer_type(const tn_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_tokens ? t->tokens[id].type : TN_TOKEN_UNDEFINED;
}

int32_t tn_tokenizer_special(const tn_tokenizer *t, int32_t which)
{
    return which >= 0 && which < TN_SPECIAL_COUNT ? t->special[which] : -1;
}

bool tn_tokenizer_is_eog(const tn_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_tokens && (t->tokens[id].attr & TN_ATTR_EOG);
}

bool tn_tokenizer_is_suppressed(const tn_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_tokens && (t->tokens[id].attr & TN_ATTR_NEVER);
}

bool tn_tokenizer_add_bos(const tn_tokenizer *t)
{
    return t->add_bos;
}

bool tn_tokenizer_add_eos(const tn_tokenizer *t)
{
    return t->add_eos;
}

bool tn_tokenizer_add_space_prefix(const tn_tokenizer *t)
{
    return t->add_space_prefix;
}
