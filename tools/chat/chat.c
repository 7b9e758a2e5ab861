// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The chat loop of `tenon run`: messages in, answers out, commands that begin with a slash.
#include "tools/chat/conversation.h"
#include "tools/interrupt.h"
#include "tools/chat/line_input.h"
#include "tools/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct chat {
    run_state *r;
    options opt; // those of r, with what /set changed
    conversation c;
    size_t n_left_out;  // of the oldest turns behind the system turn: the context was full
    uint64_t n_answers; // answers made so far: each has its own seed
    line_input in;
    bool terminal;
} chat;

int run_chat_prompt(run_state *r, const char *text, int32_t **ids, size_t *n)
{
    const char *system = r->system;
    tn_turn turns[2] = {{.struct_size = sizeof *turns, .role = "system", .content = system},
                        {.struct_size = sizeof *turns, .role = "user", .content = text}};
    tn_status status =
        tn_chat_tokenize(r->model, system ? turns : turns + 1, system ? 2 : 1, &r->chat, ids, n);
    return status == TN_OK ? 0 : tool_fail(&r->t, status, "%s: chat template (--raw does without)", r->path);
}

// --- answers ---------------------------------------------------------------------------------------------

// Tokens of the context that a prompt leaves to its answer.
static size_t answer_space(const run_state *r, size_t n_ctx)
{
    int64_t wanted = opt_int(r->t.opt, OPT_PREDICT);
    size_t most = n_ctx / 4;
    return wanted >= 0 && (size_t)wanted < most ? (size_t)wanted : most;
}

// The prompt of all turns but those that were left out before. With --context-full drop the oldest of them
// are left out as well if they do not fit.
static tn_status tokenize_turns(chat *c, int32_t **ids, size_t *n)
{
    run_state *r = c->r;
    size_t n_system = conversation_has_system(&c->c) ? 1 : 0, n_turns = c->c.n - c->n_left_out, dropped = 0;
    size_t n_ctx = (size_t)tn_session_n_ctx(r->session);
    if (c->n_left_out == 0 && r->full != FULL_DROP)
        return tn_chat_tokenize(r->model, c->c.turns, c->c.n, &r->chat, ids, n);
    tn_turn *turns = calloc(n_turns, sizeof *turns);
    if (!turns) return TN_ERR_MEMORY;
    memcpy(turns, c->c.turns, n_system * sizeof *turns);
    memcpy(turns + n_system, c->c.turns + n_system + c->n_left_out, (n_turns - n_system) * sizeof *turns);
    tn_status status = tn_chat_tokenize_last(r->model, turns, n_turns, &r->chat,
                                             n_ctx - answer_space(r, n_ctx), &dropped, ids, n);
    free(turns);
    if (status != TN_OK || dropped == 0) return status;
    if (c->n_left_out == 0)
        note("the context is full: from now on the oldest messages are left out; a larger -c holds more");
    c->n_left_out += dropped;
    tool_info(&r->t, "the oldest %zu messages are left out", c->n_left_out);
    return TN_OK;
}

// The answer to the turns so far becomes one more turn. An interrupted answer is kept as far as it came.
static int answer(chat *c)
{
    run_state *r = c->r;
    int32_t *ids;
    size_t n;
    tn_status status = tokenize_turns(c, &ids, &n);
    if (status == TN_ERR_CONTEXT_FULL)
        return tool_fail(&r->t, status, "the message is too long, the context holds %d tokens",
                         tn_session_n_ctx(r->session));
    if (status != TN_OK) return tool_fail(&r->t, status, "%s: chat template", r->path);
    if (n > (size_t)tn_session_n_ctx(r->session) && r->full != FULL_SHIFT) {
        tn_tokens_free(r->model, ids);
        return fail(
            EXIT_CONTEXT,
            "the conversation has %zu tokens, the context holds %d; /clear starts anew, -c gives more room",
            n, tn_session_n_ctx(r->session));
    }
    int code = answer_generate(r, ids, n, r->seed + c->n_answers++);
    tn_tokens_free(r->model, ids);
    if (code) return code;
    if (r->form == FORM_TEXT && !is_terminal(stdout)) out_write("\n", 1);
    if (answer_wants_stats(r)) answer_stats(r);
    return conversation_add_answer(&c->c, r->whole ? r->whole : "");
}

// Keeps the first n turns.
static void drop_turns(chat *c, size_t n)
{
    size_t n_system = conversation_has_system(&c->c) ? 1 : 0;
    conversation_drop(&c->c, n);
    if (c->n_left_out + n_system > n) c->n_left_out = n > n_system ? n - n_system : 0;
}

// Answers the last turn, which is that of the user. After a failure the conversation is as before; only
// failures that would occur again end the chat.
static int ask(chat *c, size_t before)
{
    int code = answer(c);
    if (code) drop_turns(c, before);
    if (interrupted()) {
        interrupt_clear();
        tn_session_cancel(c->r->session, 0);
    }
    return code == EXIT_CONTEXT && c->terminal ? 0 : code;
}

static int say(chat *c, const char *text)
{
    size_t before = c->c.n;
    int code = conversation_add(&c->c, "user", text);
    return code ? code : ask(c, before);
}

// --- commands --------------------------------------------------------------------------------------------

static int command_help(chat *c, const char *rest);

static int command_clear(chat *c, const char *rest)
{
    (void)rest;
    drop_turns(c, conversation_has_system(&c->c) ? 1 : 0);
    return 0;
}

static int command_system(chat *c, const char *rest)
{
    if (*rest) return conversation_set_system(&c->c, rest);
    note("/system needs a text: /system You answer in one sentence.");
    return 0;
}

static int command_regen(chat *c, const char *rest)
{
    (void)rest;
    size_t n = c->c.n;
    if (n < 2 || strcmp(c->c.turns[n - 1].role, "assistant") != 0) {
        note("there is no answer yet that could be made again");
        return 0;
    }
    drop_turns(c, n - 1);
    return ask(c, n - 2);
}

// A failure is reported, and the chat continues.
static int command_save(chat *c, const char *rest)
{
    if (!*rest)
        note("/save needs a file: /save talk.json");
    else if (conversation_save(&c->c, c->r, rest) == 0)
        note("saved %zu messages in %s", c->c.n, rest);
    return 0;
}

// The seed of the options, or a new one for each answer if none is given.
static void take_settings(chat *c)
{
    int64_t seed = opt_int(&c->opt, OPT_SEED);
    if (opt_is_set(&c->opt, OPT_SEED) && seed >= 0) c->r->seed = (uint64_t)seed;
}

static int command_load(chat *c, const char *rest)
{
    if (!*rest) {
        note("/load needs a file: /load talk.json");
    } else if (conversation_load(&c->c, &c->opt, rest) == 0) {
        take_settings(c);
        c->n_left_out = 0;
        note("loaded %zu messages from %s", c->c.n, rest);
    }
    return 0;
}

static void list_settings(const options *o)
{
    char name[64], word[64];
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!is_setting((opt_id)i)) continue;
        fprintf(stderr, "  %-20s ", opt_name((opt_id)i, name, sizeof name) + 2);
        if (opt_rows[i].kind == KIND_FLOAT)
            fprintf(stderr, "%g\n", opt_float(o, (opt_id)i));
        else if (opt_rows[i].kind == KIND_INT)
            fprintf(stderr, "%lld\n", (long long)opt_int(o, (opt_id)i));
        else
            fprintf(stderr, "%s\n", opt_word(o, (opt_id)i, word, sizeof word));
    }
}

static int command_set(chat *c, const char *rest)
{
    char name[64], shown_name[64];
    size_t n = strcspn(rest, " \t");
    const char *text = rest + n + strspn(rest + n, " \t");
    if (n == 0) {
        list_settings(&c->opt);
        return 0;
    }
    snprintf(name, sizeof name, "%s%.*s", rest[0] == '-' ? "" : "--", (int)(n < 48 ? n : 48), rest);
    int id = opt_by_name(c->opt.cmd, name);
    if (id < 0 || !is_setting((opt_id)id))
        note("there is no setting %s; /set lists them", shown(name, shown_name, sizeof shown_name));
    else if (!*text)
        note("/set needs a value: /set %s 0.5", name + 2);
    else if (options_set(&c->opt, (opt_id)id, text) == 0)
        take_settings(c);
    return 0;
}

static int command_stats(chat *c, const char *rest)
{
    (void)rest;
    answer_stats(c->r);
    fprintf(stderr, "context: %d of %d tokens\n", tn_session_length(c->r->session, 0),
            tn_session_n_ctx(c->r->session));
    return 0;
}

typedef struct command_row {
    const char *name;
    int (*run)(chat *c, const char *rest); // NULL: leave
    const char *help;                      // NULL: another name of the row before
} command_row;

static const command_row command_rows[] = {
    {"/help", command_help, "this list"},
    {"/?", command_help, NULL},
    {"/clear", command_clear, "forget the conversation, but not the system turn"},
    {"/system TEXT", command_system, "set the system turn"},
    {"/regen", command_regen, "answer the last turn again"},
    {"/save FILE", command_save, "write the conversation and the settings to FILE"},
    {"/load FILE", command_load, "go on with those of FILE"},
    {"/set NAME VALUE", command_set, "change a setting: /set temp 0.2; alone: list them"},
    {"/stats", command_stats, "speed and memory of the last answer"},
    {"/exit", NULL, "leave (or /bye, or Ctrl-D)"},
    {"/bye", NULL, NULL},
};

static int command_help(chat *c, const char *rest)
{
    (void)c;
    (void)rest;
    for (size_t i = 0; i < sizeof command_rows / sizeof *command_rows; i++)
        if (command_rows[i].help) fprintf(stderr, "%-16s %s\n", command_rows[i].name, command_rows[i].help);
    fputs("\"\"\"              begins and ends a text of several lines; a paste is one text anyway\n"
          "Ctrl-C           stops an answer; twice within a second leaves\n",
          stderr);
    return 0;
}

static int command(chat *c, const char *line, bool *leave)
{
    char name[64];
    size_t n = strcspn(line, " \t");
    const char *rest = line + n + strspn(line + n, " \t");
    for (size_t i = 0; i < sizeof command_rows / sizeof *command_rows; i++) {
        const command_row *row = &command_rows[i];
        if (strcspn(row->name, " ") != n || memcmp(row->name, line, n) != 0) continue;
        *leave = !row->run;
        return row->run ? row->run(c, rest) : 0;
    }
    snprintf(name, sizeof name, "%.*s", (int)(n < 60 ? n : 60), line);
    note("unknown command %s; /help lists them", name);
    return 0;
}

// --- the loop --------------------------------------------------------------------------------------------

// Plain for the editor: it drops an escape sequence that no character follows, and so the end of bold text.
static const char *prompt(const chat *c, bool more)
{
    if (c->in.editor || !use_color(c->r->t.opt, stderr)) return more ? "... " : ">>> ";
    return more ? "\033[1m... \033[0m" : "\033[1m>>> \033[0m";
}

static char *join(char *text, const char *line)
{
    size_t n = strlen(text), more = strlen(line);
    char *p = realloc(text, n + more + 2);
    if (!p) {
        free(text);
        return NULL;
    }
    p[n] = '\n';
    memcpy(p + n + 1, line, more + 1);
    return p;
}

// """ begins a text that ends with the next """; the text between them is one turn.
static line_result read_block(chat *c, const char *first, char **text)
{
    char *end, *line, *out = malloc(strlen(first) + 1);
    if (!out) return LINE_FAILED;
    memcpy(out, first, strlen(first) + 1);
    while ((end = strstr(out, "\"\"\"")) == NULL) {
        line_result result = line_get(&c->in, prompt(c, true), &line);
        if (result != LINE_READ) {
            free(out);
            return result;
        }
        out = join(out, line);
        if (!out) return LINE_FAILED;
    }
    *end = 0;
    *text = out;
    return LINE_READ;
}

// One line, or a block: a turn or a command.
static line_result take_line(chat *c, int *code, bool *leave)
{
    char *line, *block = NULL;
    line_result result = line_get(&c->in, prompt(c, false), &line);
    if (result == LINE_READ && strncmp(line, "\"\"\"", 3) == 0) {
        result = read_block(c, line + 3, &block);
        line = block;
    }
    if (result != LINE_READ) return result;
    if (!block && line[0] == '/' && !strchr(line, '\n'))
        *code = command(c, line, leave);
    else if (line[strspn(line, " \t\n")])
        *code = say(c, line);
    if (opt_flag(c->r->t.opt, OPT_SINGLE) && c->n_answers > 0) *leave = true;
    if (!out_flush()) *leave = true; // the reader of the output is gone
    free(block);
    return result;
}

static int chat_loop(chat *c)
{
    int code = 0;
    for (bool leave = false; !leave && !code;) {
        line_result result = take_line(c, &code, &leave);
        if (result == LINE_FAILED)
            return fail(EXIT_FAILED, "cannot read the next line: %s", errno ? strerror(errno) : "too long");
        if (result == LINE_END) {
            if (c->terminal) fputc('\n', stderr);
            break;
        }
        if (result != LINE_INTERRUPTED) continue;
        if (!c->terminal) return EXIT_INTERRUPTED;
        fputs("\n(Ctrl-D or /exit leaves)\n", stderr);
        interrupt_clear();
        tn_session_cancel(c->r->session, 0);
    }
    return code;
}

int run_chat(run_state *r, const char *first)
{
    const options *given = r->t.opt;
    chat c = {.r = r, .opt = *given, .terminal = is_terminal(stdin) && is_terminal(stderr)};
    if (r->full == FULL_AUTO) r->full = FULL_DROP;
    // Fails now rather than after the first line if the model has no template that can be used.
    int32_t *ids;
    size_t n;
    int code = run_chat_prompt(r, "?", &ids, &n);
    if (code) return code;
    tn_tokens_free(r->model, ids);
    r->t.opt = &c.opt;
    if (!line_open(&c.in, given, c.terminal)) code = fail(EXIT_MEMORY, "out of memory for the conversation");
    if (!code && r->system) code = conversation_set_system(&c.c, r->system);
    if (!code && c.terminal)
        fprintf(stderr, "%s, context %d tokens; /help lists the commands\n", r->path,
                tn_session_n_ctx(r->session));
    if (!code && first) code = say(&c, first);
    if (!code) code = chat_loop(&c);
    conversation_fini(&c.c);
    line_close(&c.in);
    r->t.opt = given;
    return code;
}
