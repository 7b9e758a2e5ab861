// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The public functions of text.h over the tokenizer and the chat template of a model.
#include "models/model.h"
#include "models/text/chat.h"

#include <stdio.h>
#include <string.h>
#include <tenon/text.h>
#include <tenon/tools.h>

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

// On success the caller owns the ids; on failure they are freed.
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
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), ids);
    TN_NEED(tn_model_context(model), n_ids);
    tn_context *ctx = tn_model_context(model);
    const tn_tokenizer *t = NULL;
    int32_t mapped = 0;
    if (n > 0 && !text) return tn_fail(ctx, TN_ERR_ARG, "tokenize: %zu bytes at NULL", n);
    tn_status status = map_flags(ctx, encode_flags, TN_COUNT(encode_flags), flags, &mapped);
    if (status == TN_OK) status = get_tokenizer(model, &t);
    if (status != TN_OK) return status;
    tn_tokens tokens;
    uint64_t begin = tn_span_begin(ctx);
    tn_tokens_init(&tokens, ctx);
    status = tn_tokenizer_encode(t, text ? text : "", n, mapped, &tokens);
    tn_span_end(ctx, TN_SPAN_TEXT, "text to tokens", begin, (int64_t)tokens.count);
    return give_tokens(status, &tokens, ids, n_ids);
}

tn_status tn_tokenize_pair(const tn_model *model, const char *query, size_t n_query, const char *document,
                           size_t n_document, size_t max_tokens, int32_t **ids, size_t *n_ids)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), ids);
    TN_NEED(tn_model_context(model), n_ids);
    tn_context *ctx = tn_model_context(model);
    const tn_tokenizer *t = NULL;
    if ((n_query > 0 && !query) || (n_document > 0 && !document))
        return tn_fail(ctx, TN_ERR_ARG, "tokenize: a text at NULL");
    tn_text_pair pair = {.query = {query ? query : "", n_query},
                         .document = {document ? document : "", n_document},
                         .max_tokens = max_tokens};
    tn_status status = get_tokenizer(model, &t);
    const tn_gguf *gguf = tn_model_gguf(model);
    if (status == TN_OK && gguf)
        status = tn_gguf_get_str(gguf, "tokenizer.chat_template.rerank", &pair.format);
    if (status != TN_OK) return status;
    tn_tokens tokens;
    uint64_t begin = tn_span_begin(ctx);
    tn_tokens_init(&tokens, ctx);
    status = tn_tokenizer_encode_pair(t, &pair, &tokens);
    tn_span_end(ctx, TN_SPAN_TEXT, "texts to tokens", begin, (int64_t)tokens.count);
    return give_tokens(status, &tokens, ids, n_ids);
}

void tn_tokens_free(const tn_model *model, int32_t *ids)
{
    if (!model) return;
    tn_free(tn_model_context(model), ids);
}

tn_status tn_detokenize(const tn_model *model, const int32_t *ids, size_t n_ids, int32_t flags, char **text,
                        size_t *n)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), text);
    TN_NEED(tn_model_context(model), n);
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

// A text of the file; size 0 if there is none.
static tn_gguf_str file_text(const tn_model *model, const char *key)
{
    tn_gguf_str text = {NULL, 0};
    const tn_gguf *gguf = tn_model_gguf(model);
    const tn_gguf_kv *kv = gguf ? tn_gguf_find(gguf, key) : NULL;
    if (!kv || kv->type != TN_GGUF_STRING) return text;
    if (tn_gguf_get_str(gguf, key, &text) != TN_OK) text.size = 0;
    return text;
}

static bool template_of_file(const tn_model *model, const char *name, tn_chat_template *out)
{
    char key[128] = CHAT_TEMPLATE_KEY;
    if (name && strlen(name) > 64) return false;
    if (name) snprintf(key, sizeof key, CHAT_TEMPLATE_KEY ".%s", name);
    tn_gguf_str text = file_text(model, key);
    if (text.size == 0) return false;
    *out = (tn_chat_template){text.data, text.size, name ? name : "of the file"};
    return true;
}

static void builtin(const char *name, tn_chat_template *out)
{
    const char *text = tn_chat_builtin(name, strlen(name));
    *out = (tn_chat_template){text, strlen(text), name};
}

static tn_status unknown_template(const tn_model *model, const char *name)
{
    tn_context *ctx = tn_model_context(model);
    tn_strbuf known;
    tn_strbuf_init(&known, ctx);
    for (size_t i = 0; tn_chat_builtin_name(i); i++)
        tn_strbuf_printf(&known, "%s%s", i ? " " : "", tn_chat_builtin_name(i));
    tn_status status = known.status;
    if (status == TN_OK)
        status =
            tn_fail(ctx, TN_ERR_ARG, "there is no chat template '%.60s'; built in are: %s", name, known.data);
    tn_strbuf_fini(&known);
    return status;
}

static tn_status find_template(const tn_model *model, const tn_tokenizer *t, const tn_chat_config *cfg,
                               tn_chat_template *out)
{
    const char *asked = cfg->chat_template;
    if (asked && (strstr(asked, "{%") || strstr(asked, "{{") || strstr(asked, "{#"))) {
        *out = (tn_chat_template){asked, strlen(asked), "given"};
    } else if (asked && tn_chat_builtin(asked, strlen(asked))) {
        builtin(asked, out);
    } else if (asked) {
        return template_of_file(model, asked, out) ? TN_OK : unknown_template(model, asked);
    } else if (!(cfg->tools && template_of_file(model, "tool_use", out)) &&
               !template_of_file(model, NULL, out)) {
        builtin(tn_chat_builtin_for(t), out);
    }
    return TN_OK;
}

void tn_chat_config_init(tn_chat_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_chat_config, cfg, struct_size, {.local_time = TN_CHAT_NO_TIME});
}

// The turns of the caller in this version's form; *out is freed by tn_free.
static tn_status read_turns(tn_context *ctx, const tn_turn *turns, size_t n, tn_turn **out)
{
    if (!turns && n > 0) return tn_fail(ctx, TN_ERR_ARG, "chat: turns is NULL");
    tn_turn *own = tn_calloc(ctx, n + 1, sizeof *own);
    if (!own) return TN_ERR_MEMORY;
    tn_status status = TN_STRUCT_READ_ARRAY(ctx, tn_turn, turns, n, own);
    if (status == TN_OK)
        *out = own;
    else
        tn_free(ctx, own);
    return status;
}

static tn_status apply(const tn_model *model, const tn_turn *turns, size_t n_turns, const tn_chat_config *cfg,
                       tn_tokens *tokens, tn_strbuf *text)
{
    const tn_tokenizer *t = NULL;
    tn_chat_template chosen;
    tn_chat_config own;
    tn_turn *own_turns = NULL;
    tn_context *ctx = tn_model_context(model);
    tn_chat_config_default(&own);
    uint64_t begin = tn_span_begin(ctx);
    tn_status status = get_tokenizer(model, &t);
    if (status == TN_OK) status = TN_STRUCT_READ(ctx, tn_chat_config, cfg, &own);
    if (status == TN_OK) status = read_turns(ctx, turns, n_turns, &own_turns);
    if (status == TN_OK) status = find_template(model, t, &own, &chosen);
    if (status == TN_OK) status = tn_chat_apply(t, &chosen, own_turns, n_turns, &own, tokens, text);
    tn_free(ctx, own_turns);
    tn_span_end(ctx, TN_SPAN_TEXT, "turns of a chat to tokens", begin, tokens ? (int64_t)tokens->count : 0);
    return status;
}

tn_status tn_chat_tokenize(const tn_model *model, const tn_turn *turns, size_t n_turns,
                           const tn_chat_config *cfg, int32_t **ids, size_t *n_ids)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), ids);
    TN_NEED(tn_model_context(model), n_ids);
    tn_tokens tokens;
    tn_tokens_init(&tokens, tn_model_context(model));
    tn_status status = apply(model, turns, n_turns, cfg, &tokens, NULL);
    return give_tokens(status, &tokens, ids, n_ids);
}

// --- conversations that are too long ---------------------------------------------------------------------

static bool is_system(const tn_turn *t)
{
    return t->role && (strcmp(t->role, "system") == 0 || strcmp(t->role, "developer") == 0);
}

static bool is_user(const tn_turn *t)
{
    return t->role && strcmp(t->role, "user") == 0;
}

typedef struct long_chat {
    const tn_model *model;
    const tn_turn *turns; // [n]
    size_t n, n_system;   // all turns, system turns at the beginning
    tn_turn *scratch;     // [n]
    const tn_chat_config *cfg;
} long_chat;

// The tokens of the system turns and of the turns from `first` on.
static tn_status tokenize_from(const long_chat *c, size_t first, tn_tokens *out)
{
    out->count = 0;
    memcpy(c->scratch, c->turns, c->n_system * sizeof *c->turns);
    memcpy(c->scratch + c->n_system, c->turns + first, (c->n - first) * sizeof *c->turns);
    return apply(c->model, c->scratch, c->n_system + c->n - first, c->cfg, out, NULL);
}

// The next user turn behind `at`; n if there is none.
static size_t next_exchange(const long_chat *c, size_t at)
{
    do at++;
    while (at < c->n && !is_user(&c->turns[at]));
    return at;
}

static tn_status drop_oldest(const long_chat *c, size_t max_tokens, size_t *n_dropped, tn_tokens *out)
{
    size_t first = c->n_system, next;
    tn_status status = tokenize_from(c, first, out);
    bool fits = status == TN_OK && out->count <= max_tokens;
    while (status == TN_OK && !fits && (next = next_exchange(c, first)) < c->n) {
        first = next;
        status = tokenize_from(c, first, out);
        // Space for more than one answer: dropping the oldest turns makes the rest be evaluated anew.
        bool last = next_exchange(c, first) >= c->n;
        fits = out->count <= (last ? max_tokens : max_tokens / 4 * 3);
    }
    *n_dropped = first - c->n_system;
    if (status != TN_OK || fits) return status;
    return tn_fail(tn_model_context(c->model), TN_ERR_CONTEXT_FULL,
                   "chat: the last exchange has %zu tokens with the system turn, of which %zu fit",
                   out->count, max_tokens);
}

tn_status tn_chat_tokenize_last(const tn_model *model, const tn_turn *turns, size_t n_turns,
                                const tn_chat_config *cfg, size_t max_tokens, size_t *n_dropped,
                                int32_t **ids, size_t *n_ids)
{
    TN_NEED(NULL, model);
    tn_context *ctx = tn_model_context(model);
    TN_NEED(ctx, n_dropped);
    TN_NEED(ctx, ids);
    TN_NEED(ctx, n_ids);
    tn_tokens tokens;
    tn_turn *own = tn_calloc(ctx, n_turns + 1, 2 * sizeof *own);
    if (!own) return TN_ERR_MEMORY;
    long_chat c = {.model = model, .turns = own, .n = n_turns, .scratch = own + n_turns, .cfg = cfg};
    size_t dropped = 0;
    for (size_t i = 0; i < n_turns; i++) own[i].struct_size = sizeof *own;
    tn_status status = TN_STRUCT_READ_ARRAY(ctx, tn_turn, turns, n_turns, own);
    while (c.n_system < n_turns && is_system(&own[c.n_system])) c.n_system++;
    tn_tokens_init(&tokens, ctx);
    if (status == TN_OK) status = drop_oldest(&c, max_tokens, &dropped, &tokens);
    tn_free(ctx, own);
    status = give_tokens(status, &tokens, ids, n_ids);
    if (status == TN_OK) *n_dropped = dropped;
    return status;
}

tn_status tn_chat_render(const tn_model *model, const tn_turn *turns, size_t n_turns,
                         const tn_chat_config *cfg, char **text, size_t *n)
{
    TN_NEED(NULL, model);
    TN_NEED(tn_model_context(model), text);
    TN_NEED(tn_model_context(model), n);
    tn_strbuf out;
    tn_strbuf_init(&out, tn_model_context(model));
    tn_strbuf_append(&out, "", 0);
    tn_status status = apply(model, turns, n_turns, cfg, NULL, &out);
    if (status == TN_OK) status = out.status;
    if (status != TN_OK) {
        tn_strbuf_fini(&out);
        return status;
    }
    *text = out.data;
    *n = out.size;
    return TN_OK;
}

const char *tn_chat_template_name(const tn_model *model)
{
    if (!model) return NULL;
    const tn_tokenizer *t = tn_model_tokenizer(model);
    if (!t) return NULL;
    return tn_model_has_chat_template(model) ? "file" : tn_chat_builtin_for(t);
}

const char *tn_chat_tool_format(const tn_model *model, const tn_chat_config *cfg)
{
    if (!model) return NULL;
    const tn_tokenizer *t = tn_model_tokenizer(model);
    tn_chat_template chosen;
    tn_chat_config own;
    tn_chat_config_default(&own);
    if (!t || TN_STRUCT_READ(tn_model_context(model), tn_chat_config, cfg, &own) != TN_OK) return NULL;
    if (!own.tools) own.tools = "[]"; // a template of the file for tools
    if (find_template(model, t, &own, &chosen) != TN_OK) return NULL;
    tn_strbuf text; // terminated
    tn_strbuf_init(&text, tn_model_context(model));
    tn_strbuf_append(&text, chosen.text, chosen.n);
    const char *format =
        text.status == TN_OK && strstr(text.data, "tools") ? tn_tool_format(text.data) : NULL;
    tn_strbuf_fini(&text);
    return format;
}

int32_t tn_model_has_chat_template(const tn_model *model)
{
    if (!model) return 0;
    return file_text(model, CHAT_TEMPLATE_KEY).size > 0;
}

int32_t tn_token_is_end(const tn_model *model, int32_t id)
{
    if (!model) return 0;
    const tn_tokenizer *t = tn_model_tokenizer(model);
    return t && tn_tokenizer_is_eog(t, id);
}
