// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A conversation through its template and the tokenizer. The prompt is encoded as one text in which each span
// is marked as text of the template or text from outside. So words merge across these borders as they did in
// training, and text of a turn still cannot become a marker.
#include "models/text/chat.h"

#include "models/text/jinja/jinja.h"
#include "models/text/tokenizer/tokenizer_impl.h"

#include <string.h>

enum { CHAT_DENIED = 128, OUTPUT_MAX = 16 << 20 }; // more marker tokens than any template has; bytes

// --- variables -----------------------------------------------------------------------------------

// Templates build special tokens of these words ("<|" + role + "|>"); other roles stay plain text.
static bool is_known_role(const char *role)
{
    static const char *const known[] = {"system", "user",    "assistant", "tool",        "developer",
                                        "model",  "ipython", "function",  "environment", "observation"};
    for (size_t i = 0; i < TN_COUNT(known); i++)
        if (strcmp(role, known[i]) == 0) return true;
    return false;
}

static void put_text(tn_jj *j, tn_jj_value turn, const char *key, const char *text)
{
    if (text) tn_jj_put(j, turn, key, tn_jj_text(j, text, strlen(text), true));
}

static tn_status put_json(tn_jj *j, tn_jj_value turn, const char *key, const char *json)
{
    tn_jj_value v;
    if (!json) return TN_OK;
    tn_status status = tn_jj_json(j, json, strlen(json), key, true, &v);
    if (status == TN_OK) tn_jj_put(j, turn, key, v);
    return status;
}

static tn_status add_turn(tn_context *ctx, tn_jj *j, tn_jj_value list, const tn_turn *t, size_t i)
{
    if (!t->role) return tn_fail(ctx, TN_ERR_ARG, "chat: turn %zu has no role", i);
    if (t->content && t->content_parts)
        return tn_fail(ctx, TN_ERR_ARG, "chat: turn %zu has a content and parts of a content", i);
    tn_jj_value turn = tn_jj_dict(j);
    tn_jj_put(j, turn, "role", tn_jj_text(j, t->role, strlen(t->role), !is_known_role(t->role)));
    tn_jj_put(j, turn, "content", tn_jj_none());
    put_text(j, turn, "content", t->content);
    put_text(j, turn, "name", t->name);
    put_text(j, turn, "tool_call_id", t->tool_call_id);
    put_text(j, turn, "reasoning_content", t->reasoning_content);
    put_text(j, turn, "thinking", t->reasoning_content); // the same under its other name
    tn_status status = put_json(j, turn, "content", t->content_parts);
    if (status == TN_OK) status = put_json(j, turn, "tool_calls", t->tool_calls);
    tn_jj_append(j, list, turn);
    return status;
}

static void set_special(tn_jj *j, const tn_tokenizer *t, const char *name, int32_t which)
{
    tn_gguf_str text = {"", 0};
    if (t->special[which] >= 0) text = tn_tokenizer_text(t, t->special[which]);
    tn_jj_global(j, name, tn_jj_text(j, text.data, text.size, false));
}

static tn_status set_variables(const tn_tokenizer *t, tn_jj *j, const tn_turn *turns, size_t n_turns,
                               const tn_chat_config *cfg)
{
    tn_jj_value messages = tn_jj_list(j), v;
    tn_status status = TN_OK;
    for (size_t i = 0; i < n_turns && status == TN_OK; i++)
        status = add_turn(t->ctx, j, messages, &turns[i], i);
    tn_jj_global(j, "messages", messages);
    tn_jj_global(j, "add_generation_prompt", tn_jj_bool(!cfg->no_generation_prompt));
    set_special(j, t, "bos_token", TN_SPECIAL_BOS);
    set_special(j, t, "eos_token", TN_SPECIAL_EOS);
    set_special(j, t, "unk_token", TN_SPECIAL_UNK);
    set_special(j, t, "pad_token", TN_SPECIAL_PAD);
    if (status == TN_OK && cfg->tools) {
        status = tn_jj_json(j, cfg->tools, strlen(cfg->tools), "the text of the tools", true, &v);
        if (status == TN_OK) tn_jj_global(j, "tools", v);
    }
    if (status == TN_OK && cfg->variables) {
        status = tn_jj_json(j, cfg->variables, strlen(cfg->variables), "the text of the template variables",
                            true, &v);
        if (status == TN_OK && v.kind != JJ_DICT)
            status = tn_fail(t->ctx, TN_ERR_ARG, "the template variables are no JSON object");
        if (status == TN_OK) tn_jj_globals(j, v);
    }
    if (cfg->local_time != TN_CHAT_NO_TIME) tn_jj_clock(j, cfg->local_time);
    return status;
}

// --- tokens ------------------------------------------------------------------------------------------------

static bool is_blank(tn_gguf_str s)
{
    for (size_t i = 0; i < s.size; i++) {
        if (s.size - i >= 3 && memcmp(s.data + i, "\xe2\x96\x81", 3) == 0)
            i += 2;
        else if (s.data[i] != ' ' && (s.data[i] < '\t' || s.data[i] > '\r'))
            return false;
    }
    return true;
}

typedef struct denied_list {
    int32_t ids[CHAT_DENIED];
    size_t n;
} denied_list;

static void deny(const tn_tokenizer *t, denied_list *list, int32_t id)
{
    if (id < 0 || !(t->tokens[id].attr & TN_ATTR_USER) || is_blank(tn_tokenizer_text(t, id))) return;
    for (size_t i = 0; i < list->n; i++)
        if (list->ids[i] == id) return;
    if (list->n < CHAT_DENIED) list->ids[list->n++] = id;
}

// Files often type markers as user-defined tokens, which plain text may contain. Those that the template has,
// or that it made, must not result from the text of a turn.
static tn_status deny_markers(const tn_tokenizer *t, const tn_chat_template *source, const tn_jj_output *out,
                              denied_list *list)
{
    static const int32_t ends[] = {TN_SPECIAL_BOS, TN_SPECIAL_EOS, TN_SPECIAL_EOT, TN_SPECIAL_EOM};
    tn_tokens ids;
    tn_tokens_init(&ids, t->ctx);
    tn_status status = tn_tokenizer_encode(t, source->text, source->n, TN_TOKENIZE_PARSE_SPECIAL, &ids);
    for (size_t i = 0, from = 0; i < out->n_runs && status == TN_OK; from = out->runs[i++].end)
        if (!out->runs[i].user)
            status = tn_tokenizer_encode(t, out->text + from, out->runs[i].end - from,
                                         TN_TOKENIZE_PARSE_SPECIAL, &ids);
    for (size_t i = 0; i < ids.count && status == TN_OK; i++) deny(t, list, ids.ids[i]);
    for (size_t i = 0; i < TN_COUNT(ends); i++) deny(t, list, t->special[ends[i]]);
    tn_tokens_fini(&ids);
    return status;
}

static tn_status encode_output(const tn_tokenizer *t, const tn_chat_template *source, const tn_jj_output *r,
                               tn_tokens *out)
{
    denied_list denied = {.n = 0};
    tn_status status = deny_markers(t, source, r, &denied);
    tn_text_span *list = status == TN_OK ? tn_calloc(t->ctx, r->n_runs, sizeof *list) : NULL;
    if (!list) return status == TN_OK ? TN_ERR_MEMORY : status;
    for (size_t i = 0; i < r->n_runs; i++) list[i] = (tn_text_span){r->runs[i].end, !r->runs[i].user};
    tn_spans spans = {.spans = list, .count = r->n_runs, .denied = denied.ids, .n_denied = denied.n};
    status = tn_encode_spans(t, r->text, r->n, &spans, out);
    tn_free(t->ctx, list);
    return status;
}

// Whether the template itself printed the token first.
static bool begins_with(const tn_jj_output *r, tn_gguf_str text)
{
    return r->n_runs > 0 && !r->runs[0].user && r->runs[0].end >= text.size &&
           memcmp(r->text, text.data, text.size) == 0;
}

static tn_status give(const tn_tokenizer *t, const tn_chat_template *source, const tn_jj_output *r,
                      tn_tokens *out, tn_strbuf *text)
{
    int32_t bos = t->special[TN_SPECIAL_BOS];
    tn_gguf_str name = {"", 0};
    tn_status status = TN_OK;
    if (bos >= 0) name = tn_tokenizer_text(t, bos);
    bool add_bos = bos >= 0 && t->add_bos && !begins_with(r, name) && (!out || out->count == 0);
    if (out && add_bos) status = tn_tokens_push(out, bos);
    if (out && status == TN_OK) status = encode_output(t, source, r, out);
    if (status != TN_OK || !text) return status;
    if (add_bos) tn_strbuf_append(text, name.data, name.size);
    tn_strbuf_append(text, r->text, r->n);
    return text->status;
}

static size_t size_of(const char *text)
{
    return text ? strlen(text) : 0;
}

// The limit of the rendered text. Real templates stay far below it; a malicious one could make a prompt so
// much longer than its inputs that tokenising it takes minutes. text.h has the numbers.
static size_t output_limit(const tn_chat_template *source, const tn_turn *turns, size_t n_turns,
                              const tn_chat_config *cfg)
{
    double size = (double)source->n + (double)size_of(cfg->tools) + (double)size_of(cfg->variables);
    for (size_t i = 0; i < n_turns; i++) {
        const tn_turn *t = &turns[i];
        size += 256.0 + (double)size_of(t->content) + (double)size_of(t->content_parts) +
                (double)size_of(t->reasoning_content) + (double)size_of(t->tool_calls);
    }
    size = 16.0 * size + (256 << 10);
    return size < (double)OUTPUT_MAX ? (size_t)size : OUTPUT_MAX;
}

static void fill_limits(const tn_chat_config *cfg, tn_jj_limits *limits)
{
    tn_jj_limits_default(limits);
    if (cfg->max_steps) limits->steps = cfg->max_steps;
    if (cfg->max_memory) limits->heap_size = cfg->max_memory;
    if (cfg->max_output) limits->output_size = cfg->max_output;
    if (cfg->max_depth > 0) limits->depth = TN_MIN(cfg->max_depth, 128);
}

tn_status tn_chat_apply(const tn_tokenizer *t, const tn_chat_template *source, const tn_turn *turns,
                        size_t n_turns, const tn_chat_config *cfg, tn_tokens *out, tn_strbuf *text)
{
    tn_jj *j = NULL;
    tn_jj_limits limits;
    tn_jj_output r;
    size_t count = out ? out->count : 0;
    if (n_turns > 0 && !turns) return tn_fail(t->ctx, TN_ERR_ARG, "chat: %zu turns at NULL", n_turns);
    fill_limits(cfg, &limits);
    if (!cfg->max_output) limits.output_size = output_limit(source, turns, n_turns, cfg);
    tn_status status = tn_jj_open(t->ctx, &limits, &j);
    if (status != TN_OK) return status;
    status = set_variables(t, j, turns, n_turns, cfg);
    if (status == TN_OK) {
        status = tn_jj_render(j, source->text, source->n, &r);
        if (status != TN_OK && status != TN_ERR_MEMORY)
            status = tn_fail_at(t->ctx, status, "template %s", source->name);
    }
    if (status == TN_OK) status = give(t, source, &r, out, text);
    if (status != TN_OK && out) out->count = count;
    tn_jj_close(&j);
    return status;
}
