// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The public functions of text.h over the tokenizer and the chat shapes of a model.
#include "models/model.h"
#include "models/text/chat.h"

#include <tenon/text.h>

#define CHAT_TEMPLATE_KEY "tokenizer.chat_template"

typedef struct flag_pair {
    int32_t public_flag, flag;
} flag_pair;

// clang-format off
static const flag_pair encode_flags[] = {
    {TN_TEXT_ADD_SPECIAL,    TN_TOKENIZE_ADD_SPECIAL},
    {TN_TEXT_PARSE_SPECIAL,  TN_TOKENIZE_PARSE_SPECIAL},
};
static const flag_pair decode_flags[] = {
    {TN_TEXT_PRINT_SPECIAL,  TN_DETOKENIZE_PRINT_SPECIAL},
    {TN_TEXT_REMOVE_SPECIAL, TN_DETOKENIZE_REMOVE_SPECIAL},
};
// clang-format on

static tn_status map_flags(tn_context *ctx, const flag_pair *pairs, size_t n, int32_t flags, int32_t *out)
{
    int32_t known = 0, mapped = 0;
    for (size_t i = 0; i < n; i++) {
        known |= pairs[i].public_flag;
        if (flags & pairs[i].public_flag) mapped |= pairs[i].flag;
    }
    if (flags & ~known)
        return tn_fail(ctx, TN_ERR_ARG, "text: flags %d are not for this call", (int)(flags & ~known));
    *out = mapped;
    return TN_OK;
}

static tn_status get_tokenizer(const tn_model *model, const tn_tokenizer **out)
{
    *out = tn_model_tokenizer(model);
    if (*out) return TN_OK;
    return tn_fail(tn_model_context(model), TN_ERR_MODEL, "the model has no tokenizer");
}

// Hands the ids over on success, frees them on failure.
static tn_status give_tokens(tn_status status, tn_tokens *tokens, int32_t **ids, size_t *n_ids)
{
    if (status != TN_OK) {
        tn_tokens_fini(tokens);
        return status;
    }
    *ids = tokens->ids;
    *n_ids = tokens->count;
    return TN_OK;
}

tn_status tn_tokenize(const tn_model *model, const char *text, size_t n, int32_t flags, int32_t **ids,
                      size_t *n_ids)
{
    tn_context *ctx = tn_model_context(model);
    const tn_tokenizer *t = NULL;
    int32_t mapped = 0;
    if (n > 0 && !text) return tn_fail(ctx, TN_ERR_ARG, "tokenize: %zu bytes at NULL", n);
    tn_status status = map_flags(ctx, encode_flags, TN_COUNT(encode_flags), flags, &mapped);
    if (status == TN_OK) status = get_tokenizer(model, &t);
    if (status != TN_OK) return status;
    tn_tokens tokens;
    tn_tokens_init(&tokens, ctx);
    status = tn_tokenizer_encode(t, text ? text : "", n, mapped, &tokens);
    return give_tokens(status, &tokens, ids, n_ids);
}

void tn_tokens_free(const tn_model *model, int32_t *ids)
{
    tn_free(tn_model_context(model), ids);
}

tn_status tn_detokenize(const tn_model *model, const int32_t *ids, size_t n_ids, int32_t flags, char **text,
                        size_t *n)
{
    tn_context *ctx = tn_model_context(model);
    const tn_tokenizer *t = NULL;
    int32_t mapped = 0;
    if (n_ids > 0 && !ids) return tn_fail(ctx, TN_ERR_ARG, "detokenize: %zu tokens at NULL", n_ids);
    tn_status status = map_flags(ctx, decode_flags, TN_COUNT(decode_flags), flags, &mapped);
    if (status == TN_OK) status = get_tokenizer(model, &t);
    if (status != TN_OK) return status;
    tn_strbuf out;
    tn_strbuf_init(&out, ctx);
    tn_strbuf_append(&out, "", 0); // a terminated text also where no token gives any
    status = tn_tokenizer_decode(t, ids, n_ids, mapped, &out);
    if (status == TN_OK) status = out.status;
    if (status != TN_OK) {
        tn_strbuf_fini(&out);
        return status;
    }
    *text = out.data;
    *n = out.size;
    return TN_OK;
}

// --- chat --------------------------------------------------------------------------------------------

// The template in the file; size 0 if there is none.
static tn_gguf_str chat_template(const tn_model *model)
{
    tn_gguf_str text = {NULL, 0};
    const tn_gguf *gguf = tn_model_gguf(model);
    const tn_gguf_kv *kv = gguf ? tn_gguf_find(gguf, CHAT_TEMPLATE_KEY) : NULL;
    if (!kv || kv->type != TN_GGUF_STRING) return text;
    if (tn_gguf_get_str(gguf, CHAT_TEMPLATE_KEY, &text) != TN_OK) text.size = 0;
    return text;
}

static tn_status chat_shape(const tn_model *model, const tn_tokenizer *t, const char **name)
{
    tn_gguf_str text = chat_template(model);
    return tn_chat_shape(tn_model_context(model), t, text.data, text.size, name);
}

static tn_status copy_turns(tn_context *ctx, const tn_turn *turns, size_t n, tn_chat_turn **out)
{
    if (n > 0 && !turns) return tn_fail(ctx, TN_ERR_ARG, "chat: %zu turns at NULL", n);
    tn_chat_turn *copy = tn_calloc(ctx, n, sizeof *copy);
    if (!copy) return TN_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        if (!turns[i].role || !turns[i].content) {
            tn_free(ctx, copy);
            return tn_fail(ctx, TN_ERR_ARG, "chat: turn %zu has no role or no content", i);
        }
        copy[i] = (tn_chat_turn){turns[i].role, turns[i].content};
    }
    *out = copy;
    return TN_OK;
}

tn_status tn_chat_tokenize(const tn_model *model, const tn_turn *turns, size_t n_turns, int32_t **ids,
                           size_t *n_ids)
{
    tn_context *ctx = tn_model_context(model);
    const tn_tokenizer *t = NULL;
    const char *shape = NULL;
    tn_chat_turn *copy = NULL;
    tn_status status = get_tokenizer(model, &t);
    if (status == TN_OK) status = chat_shape(model, t, &shape);
    if (status == TN_OK) status = copy_turns(ctx, turns, n_turns, &copy);
    if (status != TN_OK) return status;
    tn_tokens tokens;
    tn_tokens_init(&tokens, ctx);
    status = tn_chat_render(ctx, t, shape, copy, n_turns, true, &tokens, NULL);
    tn_free(ctx, copy);
    return give_tokens(status, &tokens, ids, n_ids);
}

const char *tn_chat_shape_name(const tn_model *model)
{
    const tn_tokenizer *t = tn_model_tokenizer(model);
    const char *name = NULL;
    return t && chat_shape(model, t, &name) == TN_OK ? name : NULL;
}

int32_t tn_model_has_chat_template(const tn_model *model)
{
    return chat_template(model).size > 0;
}

int32_t tn_token_is_end(const tn_model *model, int32_t id)
{
    const tn_tokenizer *t = tn_model_tokenizer(model);
    return t && tn_tokenizer_is_eog(t, id);
}
