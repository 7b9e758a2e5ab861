// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/chat/conversation.h"

#include "tools/json/json.h"
#include "tools/json/json_read.h"
#include "tools/output.h"
#include "tools/chat/thoughts.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEMA = 1 };

static char *copy_part(const char *text, size_t n)
{
    char *p = malloc(n + 1);
    if (!p) return NULL;
    if (n) memcpy(p, text, n);
    p[n] = 0;
    return p;
}

static void free_turn(tn_turn *t)
{
    const char *texts[] = {t->role,         t->content,           t->content_parts, t->name,
                           t->tool_call_id, t->reasoning_content, t->tool_calls};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free((char *)texts[i]);
    *t = (tn_turn){0};
}

// Owns the texts of the turn from the call on, also if it fails.
static int take_turn(conversation *c, tn_turn turn)
{
    if (c->n == c->capacity) {
        size_t capacity = c->capacity * 2 + 8;
        tn_turn *more = realloc(c->turns, capacity * sizeof *more);
        if (!more) {
            free_turn(&turn);
            return fail(EXIT_MEMORY, "out of memory for the conversation");
        }
        c->turns = more;
        c->capacity = capacity;
    }
    turn.struct_size = sizeof turn;
    c->turns[c->n++] = turn;
    return 0;
}

int conversation_add(conversation *c, const char *role, const char *content)
{
    tn_turn turn = {.role = copy_part(role, strlen(role)), .content = copy_part(content, strlen(content))};
    if (turn.role && turn.content) return take_turn(c, turn);
    free_turn(&turn);
    return fail(EXIT_MEMORY, "out of memory for the conversation");
}

bool conversation_has_system(const conversation *c)
{
    return c->n > 0 && strcmp(c->turns[0].role, "system") == 0;
}

int conversation_set_system(conversation *c, const char *text)
{
    bool has = conversation_has_system(c);
    int code = conversation_add(c, "system", text);
    if (code) return code;
    tn_turn turn = c->turns[--c->n];
    if (has)
        free_turn(&c->turns[0]);
    else
        memmove(c->turns + 1, c->turns, c->n++ * sizeof turn);
    c->turns[0] = turn;
    return 0;
}

void conversation_drop(conversation *c, size_t n)
{
    while (c->n > n) free_turn(&c->turns[--c->n]);
}

void conversation_fini(conversation *c)
{
    conversation_drop(c, 0);
    free(c->turns);
    *c = (conversation){0};
}

int conversation_add_answer(conversation *c, const char *text)
{
    const char *thought, *answer;
    size_t n_thought;
    thoughts_split(text, &thought, &n_thought, &answer);
    tn_turn turn = {.role = copy_part("assistant", 9), .content = copy_part(answer, strlen(answer))};
    if (thought) turn.reasoning_content = copy_part(thought, n_thought);
    if (turn.role && turn.content && (!thought || turn.reasoning_content)) return take_turn(c, turn);
    free_turn(&turn);
    return fail(EXIT_MEMORY, "out of memory for the conversation");
}

// --- saving ----------------------------------------------------------------------------------------------

bool is_setting(opt_id id)
{
    opt_kind kind = opt_rows[id].kind;
    bool value = kind == KIND_INT || kind == KIND_FLOAT || kind == KIND_CHOICE;
    return value &&
           ((id >= OPT_TEMP && id <= OPT_SEED && (opt_rows[id].commands & C_GENERATE) == C_GENERATE) ||
            id == OPT_PREDICT || id == OPT_SEED);
}

static void put_settings(json *j, const options *o)
{
    char name[64], word[64];
    json_object(j, "settings");
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!is_setting((opt_id)i) || !opt_is_set(o, (opt_id)i)) continue;
        const char *key = opt_name((opt_id)i, name, sizeof name) + 2;
        if (opt_rows[i].kind == KIND_FLOAT)
            json_number(j, key, opt_float(o, (opt_id)i));
        else if (opt_rows[i].kind == KIND_INT)
            json_int(j, key, opt_int(o, (opt_id)i));
        else
            json_text(j, key, opt_word(o, (opt_id)i, word, sizeof word));
    }
    json_end_object(j);
}

static void put_turn(json *j, const tn_turn *t)
{
    json_object(j, NULL);
    json_text(j, "role", t->role);
    if (!t->content_parts) json_text(j, "content", t->content);
    if (t->content_parts) json_raw(j, "content", t->content_parts);
    if (t->name) json_text(j, "name", t->name);
    if (t->tool_call_id) json_text(j, "tool_call_id", t->tool_call_id);
    if (t->reasoning_content) json_text(j, "reasoning_content", t->reasoning_content);
    if (t->tool_calls) json_raw(j, "tool_calls", t->tool_calls);
    json_end_object(j);
}

int conversation_save(const conversation *c, const run_state *r, const char *path)
{
    out_file out;
    json j;
    int code = out_file_open(&out, path);
    if (code) return code;
    json_init(&j, out.f);
    json_object(&j, NULL);
    json_int(&j, "schema", SCHEMA);
    json_text(&j, "model", r->path);
    put_settings(&j, r->t.opt);
    json_array(&j, "messages");
    for (size_t i = 0; i < c->n; i++) put_turn(&j, &c->turns[i]);
    json_end_array(&j);
    json_end_object(&j);
    return out_file_commit(&out);
}

// --- loading ---------------------------------------------------------------------------------------------

// A text, or nothing for null.
static const char *read_text(json_in *in)
{
    if (json_is(in, '"')) return json_string(in);
    if (json_is(in, 'n'))
        json_skip(in);
    else
        in->failed = true;
    return NULL;
}

static void read_field(json_in *in, const char *key, tn_turn *t)
{
    const struct {
        const char *name;
        const char **text;
    } fields[] = {{"role", &t->role},
                  {"content", &t->content},
                  {"name", &t->name},
                  {"tool_call_id", &t->tool_call_id},
                  {"reasoning_content", &t->reasoning_content}};
    if (strcmp(key, "tool_calls") == 0 && !t->tool_calls && json_is(in, '[')) {
        t->tool_calls = json_copy(in);
        return;
    }
    if (strcmp(key, "content") == 0 && !t->content_parts && json_is(in, '[')) {
        t->content_parts = json_copy(in);
        return;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(key, fields[i].name) == 0) {
            free((char *)*fields[i].text);
            *fields[i].text = read_text(in);
            return;
        }
    json_skip(in);
}

static int read_turns(json_in *in, conversation *c)
{
    char *key;
    int code = 0;
    json_open(in, '[');
    while (!code && json_item(in)) {
        tn_turn turn = {0};
        for (json_open(in, '{'); json_key(in, &key);) {
            read_field(in, key, &turn);
            free(key);
        }
        if (!turn.role || (turn.content && turn.content_parts)) in->failed = true;
        if (in->failed)
            free_turn(&turn);
        else
            code = take_turn(c, turn);
    }
    return code;
}

// Unknown settings, as of other versions, are ignored.
static int read_settings(json_in *in, options *o)
{
    char *key, name[64];
    int code = 0;
    for (json_open(in, '{'); !code && json_key(in, &key);) {
        snprintf(name, sizeof name, "--%s", key);
        int id = opt_by_name(o->cmd, name);
        char *text = json_is(in, '"') ? json_string(in) : json_copy(in);
        if (text && id >= 0 && is_setting((opt_id)id)) code = options_set(o, (opt_id)id, text);
        free(text);
        free(key);
    }
    return code;
}

int conversation_load(conversation *c, options *o, const char *path)
{
    char *text = NULL, *key;
    size_t n;
    int code = read_input(path, &text, &n);
    if (code) return code;
    json_in in = {.p = text, .end = text + n};
    conversation loaded = {0};
    options settings = *o;
    if (json_is(&in, '['))
        code = read_turns(&in, &loaded);
    else
        for (json_open(&in, '{'); !code && json_key(&in, &key);) {
            if (strcmp(key, "messages") == 0)
                code = read_turns(&in, &loaded);
            else if (strcmp(key, "settings") == 0)
                code = read_settings(&in, &settings);
            else
                json_skip(&in);
            free(key);
        }
    if (!code && in.failed)
        code = fail(EXIT_FAILED, "%s: no conversation: unexpected text at byte %zu; /save writes such files",
                    path, (size_t)(in.p - text));
    free(text);
    if (code) {
        conversation_fini(&loaded);
        return code;
    }
    conversation_fini(c);
    *c = loaded;
    *o = settings;
    return 0;
}
