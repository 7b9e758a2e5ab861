// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The chat loop of `tenon run`: lines in, answers out, commands that begin with a slash.
#include "tools/generate.h"
#include "tools/interrupt.h"
#include "tools/output.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_SIZE = 16 << 20, READ_SIZE = 65536 };

typedef enum line_result { LINE_READ, LINE_END, LINE_INTERRUPTED, LINE_FAILED } line_result;

// Lines of standard input. read() instead of stdio, so that Ctrl-C ends the wait.
typedef struct line_reader {
    char *data;
    size_t used, room, taken; // bytes read; bytes of the line handed out last
} line_reader;

typedef struct chat {
    run_state *r;
    tn_turn *turns; // contents from malloc
    size_t n_turns, room;
    bool has_system;
    uint64_t n_answers; // answers made so far: each has its own seed
    line_reader in;
    bool terminal;
} chat;

// --- lines -----------------------------------------------------------------------------------------------

// More bytes into the buffer.
static line_result read_more(line_reader *in)
{
    if (in->room - in->used < READ_SIZE) {
        if (in->room > LINE_MAX_SIZE) return LINE_FAILED;
        char *more = realloc(in->data, in->room * 2 + READ_SIZE);
        if (!more) return LINE_FAILED;
        in->data = more;
        in->room = in->room * 2 + READ_SIZE;
    }
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    if (interrupted() || (poll(&fd, 1, -1) < 0 && errno == EINTR)) return LINE_INTERRUPTED;
    ssize_t n = read(STDIN_FILENO, in->data + in->used, in->room - in->used - 1);
    if (n < 0) return errno == EINTR ? LINE_INTERRUPTED : LINE_FAILED;
    in->used += (size_t)n;
    return n == 0 ? LINE_END : LINE_READ;
}

// The next line without its newline, valid until the next call.
static line_result read_line(line_reader *in, char **line)
{
    memmove(in->data, in->data + in->taken, in->used - in->taken);
    in->used -= in->taken;
    in->taken = 0;
    size_t seen = 0;
    for (;;) {
        char *end = in->used > seen ? memchr(in->data + seen, '\n', in->used - seen) : NULL;
        if (end) {
            in->taken = (size_t)(end - in->data) + 1;
            *end = 0;
            if (end > in->data && end[-1] == '\r') end[-1] = 0;
            break;
        }
        seen = in->used;
        line_result result = read_more(in);
        if (result == LINE_READ) continue;
        if (result != LINE_END || in->used == 0) return result;
        in->data[in->used] = 0; // a last line without newline
        in->taken = in->used;
        break;
    }
    *line = in->data;
    return LINE_READ;
}

// --- turns -----------------------------------------------------------------------------------------------

static char *copy(const char *text)
{
    size_t n = strlen(text) + 1;
    char *p = malloc(n);
    if (p) memcpy(p, text, n);
    return p;
}

static int add_turn(chat *c, const char *role, const char *content)
{
    if (c->n_turns == c->room) {
        size_t room = c->room * 2 + 8;
        tn_turn *more = realloc(c->turns, room * sizeof *more);
        if (!more) return fail(EXIT_MEMORY, "out of memory for the conversation");
        c->turns = more;
        c->room = room;
    }
    char *text = copy(content);
    if (!text) return fail(EXIT_MEMORY, "out of memory for the conversation");
    c->turns[c->n_turns++] = (tn_turn){.role = role, .content = text};
    return 0;
}

static void drop_turns(chat *c, size_t n)
{
    while (c->n_turns > n) free((char *)c->turns[--c->n_turns].content);
}

static int set_system(chat *c, const char *text)
{
    if (!c->has_system) {
        int code = add_turn(c, "system", text);
        if (code) return code;
        tn_turn turn = c->turns[c->n_turns - 1];
        memmove(c->turns + 1, c->turns, (c->n_turns - 1) * sizeof *c->turns);
        c->turns[0] = turn;
        c->has_system = true;
        return 0;
    }
    char *own = copy(text);
    if (!own) return fail(EXIT_MEMORY, "out of memory for the conversation");
    free((char *)c->turns[0].content);
    c->turns[0].content = own;
    return 0;
}

int run_chat_prompt(run_state *r, const char *text, int32_t **ids, size_t *n)
{
    const char *system = opt_text(r->t.opt, OPT_SYSTEM);
    tn_turn turns[2] = {{.role = "system", .content = system}, {.role = "user", .content = text}};
    tn_status status =
        tn_chat_tokenize(r->model, system ? turns : turns + 1, system ? 2 : 1, &r->chat, ids, n);
    return status == TN_OK ? 0 : tool_fail(&r->t, status, "%s: chat template (--raw does without)", r->path);
}

// --- answers ---------------------------------------------------------------------------------------------

// The answer to the turns so far becomes one more turn.
static int answer(chat *c)
{
    run_state *r = c->r;
    int32_t *ids;
    size_t n;
    tn_status status = tn_chat_tokenize(r->model, c->turns, c->n_turns, &r->chat, &ids, &n);
    if (status != TN_OK) return tool_fail(&r->t, status, "%s: chat template", r->path);
    if (n > (size_t)tn_session_n_ctx(r->session)) {
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
    return add_turn(c, "assistant", r->text ? r->text : "");
}

// Failures of one turn leave the conversation as it was; only lasting ones end the chat.
static int ask(chat *c, const char *text)
{
    size_t before = c->n_turns;
    int code = add_turn(c, "user", text);
    if (!code) code = answer(c);
    if (code) drop_turns(c, before);
    if (interrupted()) {
        interrupt_clear();
        tn_session_cancel(c->r->session, 0);
    }
    return code == EXIT_CONTEXT && c->terminal ? 0 : code;
}

// --- commands --------------------------------------------------------------------------------------------

static int command_help(chat *c, const char *rest)
{
    (void)c;
    (void)rest;
    fputs("/system TEXT  set the system turn\n/clear        forget the conversation\n"
          "/regen        answer the last turn again\n/stats        speed and memory of the last answer\n"
          "/exit, /bye   leave (or Ctrl-D)\n\"\"\"           begins and ends a text of several lines\n"
          "Ctrl-C stops an answer; twice within a second leaves.\n",
          stderr);
    return 0;
}

static int command_clear(chat *c, const char *rest)
{
    (void)rest;
    drop_turns(c, c->has_system ? 1 : 0);
    return 0;
}

static int command_system(chat *c, const char *rest)
{
    if (*rest) return set_system(c, rest);
    note("/system needs a text: /system You answer in one sentence.");
    return 0;
}

static int command_regen(chat *c, const char *rest)
{
    (void)rest;
    if (c->n_turns < 2 || strcmp(c->turns[c->n_turns - 1].role, "assistant") != 0) {
        note("there is no answer yet that could be made again");
        return 0;
    }
    char *question = copy(c->turns[c->n_turns - 2].content);
    if (!question) return fail(EXIT_MEMORY, "out of memory for the conversation");
    drop_turns(c, c->n_turns - 2);
    int code = ask(c, question);
    free(question);
    return code;
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
} command_row;

static const command_row command_rows[] = {
    {"/help", command_help},   {"/?", command_help},
    {"/clear", command_clear}, {"/system", command_system},
    {"/regen", command_regen}, {"/stats", command_stats},
    {"/exit", NULL},           {"/bye", NULL},
};

static int command(chat *c, const char *line, bool *leave)
{
    size_t n = strcspn(line, " \t");
    const char *rest = line + n + strspn(line + n, " \t");
    for (size_t i = 0; i < sizeof command_rows / sizeof *command_rows; i++) {
        const command_row *row = &command_rows[i];
        if (strlen(row->name) != n || memcmp(row->name, line, n) != 0) continue;
        *leave = !row->run;
        return row->run ? row->run(c, rest) : 0;
    }
    note("unknown command %.*s; /help lists them", (int)(n < 64 ? n : 64), line);
    return 0;
}

// --- the loop --------------------------------------------------------------------------------------------

static void show_prompt(const chat *c, const char *text)
{
    if (!c->terminal) return;
    bool color = use_color(c->r->t.opt, stderr);
    fprintf(stderr, "%s%s%s", color ? "\033[1m" : "", text, color ? "\033[0m" : "");
}

// """ begins a text that ends with the next """; what lies between is one turn.
static line_result read_block(chat *c, const char *first, char **text)
{
    size_t n = strlen(first);
    char *out = malloc(n + 1), *line;
    if (!out) return LINE_FAILED;
    memcpy(out, first, n + 1);
    char *end;
    while ((end = strstr(out, "\"\"\"")) == NULL) {
        show_prompt(c, "... ");
        line_result result = read_line(&c->in, &line);
        size_t more = result == LINE_READ ? strlen(line) : 0;
        char *p = result == LINE_READ ? realloc(out, n + more + 2) : NULL;
        if (!p) {
            free(out);
            return result == LINE_READ ? LINE_FAILED : result;
        }
        out = p;
        out[n] = '\n';
        memcpy(out + n + 1, line, more + 1);
        n += more + 1;
    }
    *end = 0;
    *text = out;
    return LINE_READ;
}

// One line, or a block: a turn or a command.
static line_result take_line(chat *c, int *code, bool *leave)
{
    char *line, *block = NULL;
    show_prompt(c, ">>> ");
    line_result result = read_line(&c->in, &line);
    if (result == LINE_READ && strncmp(line, "\"\"\"", 3) == 0) {
        char *first = copy(line + 3);
        result = first ? read_block(c, first, &block) : LINE_FAILED;
        free(first);
        line = block;
    }
    if (result != LINE_READ) return result;
    if (!block && line[0] == '/')
        *code = command(c, line, leave);
    else if (line[strspn(line, " \t")])
        *code = ask(c, line);
    else
        *leave = false;
    if (opt_flag(c->r->t.opt, OPT_SINGLE) && c->n_answers > 0) *leave = true;
    if (!out_flush()) *leave = true; // nobody reads the answers any more
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

int run_chat(run_state *r)
{
    chat c = {.r = r, .terminal = is_terminal(stdin) && is_terminal(stderr)};
    const char *system = opt_text(r->t.opt, OPT_SYSTEM);
    // Fails now rather than after the first line if the model has no template that can be used.
    int32_t *ids;
    size_t n;
    int code = run_chat_prompt(r, "?", &ids, &n);
    if (code) return code;
    tn_tokens_free(r->model, ids);
    c.in.data = malloc(READ_SIZE);
    c.in.room = c.in.data ? READ_SIZE : 0;
    if (!c.in.data) code = fail(EXIT_MEMORY, "out of memory for the conversation");
    if (!code && system) code = set_system(&c, system);
    if (!code && c.terminal)
        fprintf(stderr, "%s, context %d tokens; /help lists the commands\n", r->path,
                tn_session_n_ctx(r->session));
    if (!code) code = chat_loop(&c);
    drop_turns(&c, 0);
    free(c.turns);
    free(c.in.data);
    return code;
}
