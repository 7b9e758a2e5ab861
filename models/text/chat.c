// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Chat turns by a table of known shapes. The prompt is rendered as one text with stretches of trusted
// markers and untrusted content, so that words merge over the border as they did in training, while nobody
// can write a marker into a turn.
#include "models/text/chat.h"

#include "models/text/tokenizer_impl.h"

#include <string.h>

enum {
    CHAT_BOS = 1,             // starts with bos whatever the file says
    CHAT_BOS_PER_USER = 2,    // and so does every later user turn
    CHAT_TRIM = 4,            // content loses white space at both ends
    CHAT_SYSTEM_IN_FIRST = 8, // no system turns: their text goes into the first user turn
    CHAT_SYSTEM_IN_LAST = 16, // or into the last
    CHAT_SYSTEM_ALWAYS = 32,  // an empty system turn is added if there is none
};

// Markers may say {eos}: the text of that token of the file.
typedef struct chat_shape {
    const char *name;
    const char *with[2]; // texts that the template has; a newline may be written \\n there
    const char *without; // and one that it has not
    const char *token;   // token that tells the shape of a file without template, NULL: not told so
    const char *system[2], *user[2], *assistant[2]; // before and after the content
    const char *open;                               // begins the answer; mostly assistant[0]
    const char *stop;                               // "" = eos
    uint32_t flags;
} chat_shape;

#define IM(role)      "<|im_start|>" role "\n"
#define HEADER(role)  "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define DATES         "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
#define COMMAND(role) "<|START_OF_TURN_TOKEN|><|" role "_TOKEN|>"

// Rows are tried in order. A file without template takes the first row whose token it has.
// clang-format off
static const chat_shape shapes[] = {
    {.name = "phi4", .with = {"<|im_start|>", "<|im_sep|>"}, .token = "<|im_sep|>",
     .system = {"<|im_start|>system<|im_sep|>", "<|im_end|>"}, .user = {"<|im_start|>user<|im_sep|>", "<|im_end|>"},
     .assistant = {"<|im_start|>assistant<|im_sep|>", "<|im_end|>"}, .open = "<|im_start|>assistant<|im_sep|>",
     .stop = "<|im_end|>"},
    {.name = "chatml", .with = {"<|im_start|>"}, .token = "<|im_start|>",
     .system = {IM("system"), "<|im_end|>\n"}, .user = {IM("user"), "<|im_end|>\n"},
     .assistant = {IM("assistant"), "<|im_end|>\n"}, .open = IM("assistant"), .stop = "<|im_end|>"},
    {.name = "llama3.1", .with = {"<|start_header_id|>", "Cutting Knowledge Date"},
     .system = {HEADER("system") DATES, "<|eot_id|>"}, .user = {HEADER("user"), "<|eot_id|>"},
     .assistant = {HEADER("assistant"), "<|eot_id|>"}, .open = HEADER("assistant"), .stop = "<|eot_id|>",
     .flags = CHAT_BOS | CHAT_TRIM | CHAT_SYSTEM_ALWAYS},
    {.name = "llama3", .with = {"<|start_header_id|>", "<|end_header_id|>"}, .token = "<|start_header_id|>",
     .system = {HEADER("system"), "<|eot_id|>"}, .user = {HEADER("user"), "<|eot_id|>"},
     .assistant = {HEADER("assistant"), "<|eot_id|>"}, .open = HEADER("assistant"), .stop = "<|eot_id|>",
     .flags = CHAT_BOS | CHAT_TRIM},
    {.name = "gemma", .with = {"<start_of_turn>"}, .token = "<start_of_turn>",
     .system = {"", "\n\n"}, .user = {"<start_of_turn>user\n", "<end_of_turn>\n"},
     .assistant = {"<start_of_turn>model\n", "<end_of_turn>\n"}, .open = "<start_of_turn>model\n",
     .stop = "<end_of_turn>", .flags = CHAT_BOS | CHAT_TRIM | CHAT_SYSTEM_IN_FIRST},
    {.name = "phi4-mini", .with = {"'|>' + message['content'] + '<|end|>'"},
     .system = {"<|system|>", "<|end|>"}, .user = {"<|user|>", "<|end|>"}, .assistant = {"<|assistant|>", "<|end|>"},
     .open = "<|assistant|>", .stop = "<|end|>"},
    {.name = "phi3", .with = {"<|assistant|>", "<|end|>"}, .without = "<|start|>", .token = "<|end|>",
     .system = {"<|system|>\n", "<|end|>\n"}, .user = {"<|user|>\n", "<|end|>\n"},
     .assistant = {"<|assistant|>\n", "<|end|>\n"}, .open = "<|assistant|>\n", .stop = "<|end|>"},
    {.name = "zephyr", .with = {"<|assistant|>", "<|user|>\n' + message['content'] + eos_token"}, .token = "<|assistant|>",
     .system = {"<|system|>\n", "{eos}\n"}, .user = {"<|user|>\n", "{eos}\n"},
     .assistant = {"<|assistant|>\n", "{eos}\n"}, .open = "<|assistant|>\n", .stop = ""},
    {.name = "deepseek", .with = {"<｜User｜>", "<｜Assistant｜>"}, .token = "<｜User｜>",
     .system = {"", ""}, .user = {"<｜User｜>", ""}, .assistant = {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
     .open = "<｜Assistant｜>", .stop = "<｜end▁of▁sentence｜>", .flags = CHAT_BOS},
    {.name = "deepseek2", .with = {"'User: '", "'Assistant: '"},
     .system = {"", "\n\n"}, .user = {"User: ", "\n\n"}, .assistant = {"Assistant: ", "{eos}"},
     .open = "Assistant:", .stop = "", .flags = CHAT_BOS},
    {.name = "command-r", .with = {"<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>"}, .token = "<|START_OF_TURN_TOKEN|>",
     .system = {COMMAND("SYSTEM"), "<|END_OF_TURN_TOKEN|>"}, .user = {COMMAND("USER"), "<|END_OF_TURN_TOKEN|>"},
     .assistant = {COMMAND("CHATBOT"), "<|END_OF_TURN_TOKEN|>"}, .open = COMMAND("CHATBOT"),
     .stop = "<|END_OF_TURN_TOKEN|>", .flags = CHAT_BOS},
    {.name = "mistral-v7", .with = {"[INST]", "[SYSTEM_PROMPT] "},
     .system = {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"}, .user = {"[INST] ", "[/INST]"}, .assistant = {" ", "</s>"},
     .open = "", .stop = "</s>", .flags = CHAT_BOS},
    {.name = "mistral-v7-tekken", .with = {"[INST]", "[SYSTEM_PROMPT]"}, .token = "[SYSTEM_PROMPT]",
     .system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}, .user = {"[INST]", "[/INST]"}, .assistant = {"", "</s>"},
     .open = "", .stop = "</s>", .flags = CHAT_BOS},
    {.name = "llama2", .with = {"[INST]", "<<SYS>>"},
     .system = {"<<SYS>>\n", "\n<</SYS>>\n\n"}, .user = {"[INST] ", " [/INST]"}, .assistant = {" ", " {eos}"},
     .open = "", .stop = "", .flags = CHAT_BOS | CHAT_BOS_PER_USER | CHAT_TRIM | CHAT_SYSTEM_IN_FIRST},
    {.name = "mistral-v1", .with = {" [INST]"},
     .system = {"", "\n\n"}, .user = {" [INST] ", " [/INST]"}, .assistant = {" ", "</s>"},
     .open = "", .stop = "</s>", .flags = CHAT_BOS | CHAT_SYSTEM_IN_FIRST},
    {.name = "mistral-v3-tekken", .with = {"\"[INST]\"", "[AVAILABLE_TOOLS]"},
     .system = {"", "\n\n"}, .user = {"[INST]", "[/INST]"}, .assistant = {"", "</s>"},
     .open = "", .stop = "</s>", .flags = CHAT_BOS | CHAT_SYSTEM_IN_LAST},
    {.name = "mistral-v3", .with = {"[INST]", "[AVAILABLE_TOOLS]"}, .token = "[INST]",
     .system = {"", "\n\n"}, .user = {"[INST] ", "[/INST]"}, .assistant = {" ", "</s>"},
     .open = "", .stop = "</s>", .flags = CHAT_BOS | CHAT_SYSTEM_IN_LAST},
    {.name = "mistral", .with = {"[INST]"},
     .system = {"", "\n\n"}, .user = {"[INST] ", " [/INST]"}, .assistant = {" ", "</s>"},
     .open = "", .stop = "</s>", .flags = CHAT_BOS | CHAT_SYSTEM_IN_FIRST},
};
// clang-format on

enum { CHAT_DENIED = 64 }; // more marker tokens than any shape has

// --- recognising -------------------------------------------------------------------------------------

// Whether the needle is at p; its newlines may be newlines there, or a backslash and an n.
static bool is_at(const char *p, const char *end, const char *needle)
{
    for (; *needle != 0; needle++, p++) {
        if (*needle == '\n' && end - p >= 2 && p[0] == '\\' && p[1] == 'n')
            p++;
        else if (p == end || *p != *needle)
            return false;
    }
    return true;
}

static bool contains(const char *text, size_t n, const char *needle)
{
    const char *end = text + n;
    for (const char *p = text; p < end && (p = memchr(p, needle[0], (size_t)(end - p))) != NULL; p++)
        if (is_at(p, end, needle)) return true;
    return false;
}

static const chat_shape *shape_by_name(const char *name)
{
    for (size_t i = 0; name != NULL && i < TN_COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

static const char *shape_by_tokens(const tn_tokenizer *t)
{
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        const char *token = shapes[i].token;
        if (token != NULL && tn_tokenizer_find(t, token, strlen(token)) >= 0) return shapes[i].name;
    }
    return "chatml";
}

tn_status tn_chat_shape(tn_context *ctx, const tn_tokenizer *t, const char *chat_template, size_t n,
                        const char **name)
{
    if (chat_template == NULL || n == 0) {
        *name = shape_by_tokens(t);
        return TN_OK;
    }
    tn_strbuf known;
    tn_strbuf_init(&known, ctx);
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        const chat_shape *s = &shapes[i];
        tn_strbuf_printf(&known, "%s%s", i == 0 ? "" : " ", s->name);
        if (!contains(chat_template, n, s->with[0])) continue;
        if (s->with[1] != NULL && !contains(chat_template, n, s->with[1])) continue;
        if (s->without != NULL && contains(chat_template, n, s->without)) continue;
        *name = s->name;
        tn_strbuf_fini(&known);
        return TN_OK;
    }
    tn_status status = known.status;
    if (status == TN_OK)
        status = tn_fail(ctx, TN_ERR_UNSUPPORTED, "the chat template has none of the known shapes: %s",
                         known.data);
    tn_strbuf_fini(&known);
    return status;
}

const char *tn_chat_stop(const char *shape)
{
    const chat_shape *s = shape_by_name(shape);
    return s == NULL ? NULL : s->stop;
}

// --- rendering ---------------------------------------------------------------------------------------

typedef struct renderer {
    const tn_tokenizer *t;
    const chat_shape *shape;
    tn_strbuf text;
    tn_strbuf spans; // of tn_text_span
    int32_t denied[CHAT_DENIED];
    size_t n_denied;
} renderer;

static void end_span(renderer *r, bool trusted)
{
    tn_text_span span = {.end = r->text.size, .trusted = trusted};
    tn_strbuf_append(&r->spans, &span, sizeof span);
}

static void put_special(renderer *r, int32_t which)
{
    tn_gguf_str text = tn_tokenizer_text(r->t, r->t->special[which]);
    tn_strbuf_append(&r->text, text.data, text.size);
}

// Marker text with {eos} filled in.
static void put_marker(renderer *r, const char *marker)
{
    if (*marker == 0) return;
    for (const char *p = marker; *p != 0;) {
        const char *eos = strstr(p, "{eos}");
        size_t plain = eos == NULL ? strlen(p) : (size_t)(eos - p);
        tn_strbuf_append(&r->text, p, plain);
        p += plain;
        if (eos == NULL) break;
        put_special(r, TN_SPECIAL_EOS);
        p += strlen("{eos}");
    }
    end_span(r, true);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void put_content(renderer *r, const char *content)
{
    size_t n = strlen(content);
    if (r->shape->flags & CHAT_TRIM) {
        while (n > 0 && is_space(content[n - 1])) n--;
        while (n > 0 && is_space(*content)) content++, n--;
    }
    if (n == 0) return;
    tn_strbuf_append(&r->text, content, n);
    end_span(r, false);
}

static void put_turn(renderer *r, const char *const markers[2], const char *content)
{
    put_marker(r, markers[0]);
    put_content(r, content);
    put_marker(r, markers[1]);
}

static bool has_role(const tn_chat_turn *turn, const char *role)
{
    return strcmp(turn->role, role) == 0;
}

// A user turn, with the texts of all system turns in it if `take_system`.
static void put_user(renderer *r, const tn_chat_turn *turns, size_t n_turns, size_t i, bool take_system)
{
    if (r->shape->flags & CHAT_BOS_PER_USER && r->text.size > 0) {
        put_special(r, TN_SPECIAL_BOS);
        end_span(r, true);
    }
    put_marker(r, r->shape->user[0]);
    for (size_t k = 0; take_system && k < n_turns; k++)
        if (has_role(&turns[k], "system")) put_turn(r, r->shape->system, turns[k].content);
    put_content(r, turns[i].content);
    put_marker(r, r->shape->user[1]);
}

// Which user turn takes the system texts: n_turns if none does. Also checks roles.
static tn_status find_system_place(const renderer *r, const tn_chat_turn *turns, size_t n_turns,
                                   size_t *place)
{
    bool any_system = false;
    *place = n_turns;
    for (size_t i = 0; i < n_turns; i++) {
        if (turns[i].role == NULL || turns[i].content == NULL)
            return tn_fail(r->t->ctx, TN_ERR_ARG, "chat: turn %zu has no role or content", i);
        if (has_role(&turns[i], "user")) {
            if (*place == n_turns || r->shape->flags & CHAT_SYSTEM_IN_LAST) *place = i;
        } else if (has_role(&turns[i], "system")) {
            any_system = true;
        } else if (!has_role(&turns[i], "assistant")) {
            return tn_fail(r->t->ctx, TN_ERR_ARG, "chat: role '%s' is not system, user or assistant",
                           turns[i].role);
        }
    }
    if (!(r->shape->flags & (CHAT_SYSTEM_IN_FIRST | CHAT_SYSTEM_IN_LAST)))
        any_system = false;
    else if (any_system && *place == n_turns)
        return tn_fail(r->t->ctx, TN_ERR_ARG, "chat: '%s' needs a user turn for the system text",
                       r->shape->name);
    if (!any_system) *place = n_turns;
    return TN_OK;
}

static tn_status put_turns(renderer *r, const tn_chat_turn *turns, size_t n_turns, bool open_assistant)
{
    size_t place;
    tn_status status = find_system_place(r, turns, n_turns, &place);
    if (status != TN_OK) return status;
    bool in_user = r->shape->flags & (CHAT_SYSTEM_IN_FIRST | CHAT_SYSTEM_IN_LAST);
    if (r->shape->flags & CHAT_SYSTEM_ALWAYS && (n_turns == 0 || !has_role(&turns[0], "system")))
        put_turn(r, r->shape->system, "");
    for (size_t i = 0; i < n_turns; i++) {
        if (has_role(&turns[i], "user"))
            put_user(r, turns, n_turns, i, i == place);
        else if (has_role(&turns[i], "assistant"))
            put_turn(r, r->shape->assistant, turns[i].content);
        else if (!in_user)
            put_turn(r, r->shape->system, turns[i].content);
    }
    if (open_assistant) put_marker(r, r->shape->open);
    return r->text.status != TN_OK ? r->text.status : r->spans.status;
}

// The markers' own tokens must not come out of content, even where the file types them user-defined.
static tn_status deny_markers(renderer *r)
{
    const chat_shape *s = r->shape;
    const char *const markers[] = {s->system[0],    s->system[1],    s->user[0], s->user[1],
                                   s->assistant[0], s->assistant[1], s->open};
    tn_tokens ids;
    tn_tokens_init(&ids, r->t->ctx);
    tn_status status = TN_OK;
    for (size_t i = 0; i < TN_COUNT(markers) && status == TN_OK; i++)
        status = tn_tokenizer_encode(r->t, markers[i], strlen(markers[i]), TN_TOKENIZE_PARSE_SPECIAL, &ids);
    static const int32_t turn_ends[] = {TN_SPECIAL_BOS, TN_SPECIAL_EOS, TN_SPECIAL_EOT, TN_SPECIAL_EOM};
    for (size_t i = 0; i < TN_COUNT(turn_ends) && status == TN_OK; i++)
        if (r->t->special[turn_ends[i]] >= 0) status = tn_tokens_push(&ids, r->t->special[turn_ends[i]]);
    for (size_t i = 0; i < ids.count && r->n_denied < CHAT_DENIED; i++)
        if (r->t->tokens[ids.ids[i]].attr & TN_ATTR_USER) r->denied[r->n_denied++] = ids.ids[i];
    tn_tokens_fini(&ids);
    return status;
}

static tn_status encode_rendered(renderer *r, tn_tokens *out, tn_strbuf *text)
{
    tn_status status = deny_markers(r);
    if (status != TN_OK) return status;
    int32_t bos = r->t->special[TN_SPECIAL_BOS];
    bool want_bos = out->count == 0 && bos >= 0 && (r->t->add_bos || r->shape->flags & CHAT_BOS);
    tn_spans spans = {.spans = (const tn_text_span *)(const void *)r->spans.data,
                      .count = r->spans.size / sizeof(tn_text_span),
                      .denied = r->denied,
                      .n_denied = r->n_denied};
    if (want_bos) status = tn_tokens_push(out, bos);
    if (status == TN_OK) status = tn_encode_spans(r->t, r->text.data, r->text.size, &spans, out);
    if (status != TN_OK || text == NULL) return status;
    if (want_bos) {
        tn_gguf_str name = tn_tokenizer_text(r->t, bos);
        tn_strbuf_append(text, name.data, name.size);
    }
    tn_strbuf_append(text, r->text.data, r->text.size);
    return text->status;
}

tn_status tn_chat_render(tn_context *ctx, const tn_tokenizer *t, const char *shape, const tn_chat_turn *turns,
                         size_t n_turns, bool open_assistant, tn_tokens *out, tn_strbuf *text)
{
    renderer r = {.t = t, .shape = shape_by_name(shape)};
    if (r.shape == NULL)
        return tn_fail(ctx, TN_ERR_ARG, "chat: unknown shape '%s'", shape == NULL ? "" : shape);
    size_t count = out->count;
    tn_strbuf_init(&r.text, ctx);
    tn_strbuf_init(&r.spans, ctx);
    tn_status status = put_turns(&r, turns, n_turns, open_assistant);
    if (status == TN_OK) status = encode_rendered(&r, out, text);
    if (status != TN_OK) out->count = count;
    tn_strbuf_fini(&r.text);
    tn_strbuf_fini(&r.spans);
    return status;
}
