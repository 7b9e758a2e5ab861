// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Line editing by libedit, where the build found it. A paste of several lines is shown as a short
// label, which is replaced when the line is complete: the editor would redraw the whole text at each key.
#include "tools/chat/line_input.h"

#include "tools/common.h"
#include "tools/interrupt.h"

#if TN_HAVE_LIBEDIT

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER_SIZE = 4096,
    PASTES_MAX = 64,
    LABEL_SIZE = 96,
    HISTORY_LINES = 1000,
    ENTRY_MAX = 8192,      // bytes; longer texts are not kept in the history
    PASTE_PLAIN_MAX = 256, // a shorter paste of one line is treated as typed text
    MARK_WAIT_MS = 30,     // for the rest of an escape sequence
};

typedef struct paste {
    char label[LABEL_SIZE];
    char *text;
} paste;

struct line_editor {
    EditLine *el;
    History *history;
    char path[1024]; // of the history, "": none is kept
    const char *prompt;
    char buffer[BUFFER_SIZE]; // from the terminal
    size_t at, used;
    char *queue; // bytes that the editor reads before those of the terminal
    size_t queue_at;
    paste pastes[PASTES_MAX];
    int n_pastes;
};

// --- bytes -----------------------------------------------------------------------------------------------

// Reads more bytes into the buffer; wait_ms -1: without a limit. 1, 0: none came or the end, -1:
// interrupted.
static int fill(line_editor *e, int wait_ms)
{
    if (e->at > 0) {
        memmove(e->buffer, e->buffer + e->at, e->used - e->at);
        e->used -= e->at;
        e->at = 0;
    }
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    if (interrupted()) return -1;
    int ready = poll(&fd, 1, wait_ms);
    if (ready < 0) return -1;
    if (ready == 0 || e->used == BUFFER_SIZE) return 0;
    ssize_t n = read(STDIN_FILENO, e->buffer + e->used, BUFFER_SIZE - e->used);
    if (n > 0) e->used += (size_t)n;
    return n < 0 ? -1 : n > 0;
}

// The text up to the mark that ends a paste, newlines made alike; NULL on failure or interruption.
static char *read_paste(line_editor *e)
{
    size_t n = 0, capacity = BUFFER_SIZE, mark = strlen(PASTE_END);
    char *text = malloc(capacity);
    bool ended = false;
    while (text && !ended) {
        if (e->at == e->used && fill(e, -1) <= 0) break;
        if (n + 2 > capacity) {
            char *more = capacity < LINE_MAX_SIZE ? realloc(text, capacity *= 2) : NULL;
            if (!more) break;
            text = more;
        }
        text[n++] = e->buffer[e->at++];
        ended = n >= mark && memcmp(text + n - mark, PASTE_END, mark) == 0;
    }
    if (!ended) {
        free(text);
        return NULL;
    }
    n -= mark;
    size_t w = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n') continue;
        if (text[i]) text[w++] = text[i] == '\r' ? '\n' : text[i];
    }
    text[w] = 0;
    return text;
}

static bool is_plain(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) return false;
    return n <= PASTE_PLAIN_MAX;
}

// Appends the part of a paste that the editor shows to the queue.
static void take_paste(line_editor *e)
{
    char *text = read_paste(e);
    if (!text) return;
    if (!is_plain(text) && e->n_pastes < PASTES_MAX) {
        paste *p = &e->pastes[e->n_pastes];
        int lines = 1;
        for (const char *c = text; *c; c++) lines += *c == '\n' && c[1];
        snprintf(p->label, sizeof p->label, "[paste %d: %d line%s, %zu bytes]", ++e->n_pastes, lines,
                 lines == 1 ? "" : "s", strlen(text));
        p->text = text;
        text = malloc(LABEL_SIZE);
        if (text) memcpy(text, p->label, LABEL_SIZE);
    }
    free(e->queue);
    e->queue = text;
    e->queue_at = 0;
}

// Whether a paste begins here; an escape sequence may still be on its way.
static bool at_paste(line_editor *e)
{
    size_t n = strlen(PASTE_BEGIN), have;
    while ((have = e->used - e->at) < n && memcmp(e->buffer + e->at, PASTE_BEGIN, have) == 0)
        if (fill(e, MARK_WAIT_MS) <= 0) return false;
    if (have < n || memcmp(e->buffer + e->at, PASTE_BEGIN, n) != 0) return false;
    e->at += n;
    return true;
}

// The next byte: 1, 0: the end, -1: interrupted.
static int next_byte(line_editor *e, unsigned char *out)
{
    for (;;) {
        if (e->queue && e->queue[e->queue_at]) {
            *out = (unsigned char)e->queue[e->queue_at++];
            return 1;
        }
        if (e->at == e->used) {
            int got = fill(e, -1);
            if (got <= 0) return got;
        }
        if (e->buffer[e->at] != '\033' || !at_paste(e)) break;
        take_paste(e);
    }
    *out = (unsigned char)e->buffer[e->at++];
    return 1;
}

// For the editor: one character, UTF-8 decoded.
static int next_char(EditLine *el, wchar_t *out)
{
    line_editor *e = NULL;
    unsigned char byte;
    el_get(el, EL_CLIENTDATA, &e);
    int got = next_byte(e, &byte);
    if (got <= 0) {
        errno = got < 0 ? EINTR : 0;
        return got;
    }
    int more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
    unsigned long c = more == 3 ? byte & 7u : more == 2 ? byte & 15u : more == 1 ? byte & 31u : byte;
    if (byte >= 0x80 && byte < 0xc0) c = 0xfffd;
    for (; more > 0; more--) {
        if ((got = next_byte(e, &byte)) <= 0) return got;
        c = c << 6 | (byte & 63u);
    }
    *out = c > 0x10ffff ? 0xfffd : (wchar_t)c;
    return 1;
}

static char *get_prompt(EditLine *el)
{
    line_editor *e = NULL;
    el_get(el, EL_CLIENTDATA, &e);
    return (char *)e->prompt;
}

// --- history ---------------------------------------------------------------------------------------------

// $XDG_STATE_HOME/tenon/history, or below ~/.local/state; folders are made.
static bool history_path(char *path, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = state && state[0] == '/' ? snprintf(path, size, "%s/tenon/history", state)
            : home && home[0] == '/' ? snprintf(path, size, "%s/.local/state/tenon/history", home)
                                     : -1;
    if (n < 0 || (size_t)n >= size) return false;
    for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *p = '/';
        if (!made) return false;
    }
    return true;
}

// Written beside and renamed after each line, so that nothing is lost however the program ends.
static void save_history(line_editor *e)
{
    char temp[sizeof e->path + 16];
    HistEvent event;
    if (!e->path[0]) return;
    snprintf(temp, sizeof temp, "%s.%ld", e->path, (long)getpid());
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return;
    close(fd);
    if (history(e->history, &event, H_SAVE, temp) < 0 || rename(temp, e->path) != 0) unlink(temp);
}

static void open_history(line_editor *e, const options *o)
{
    HistEvent event;
    e->history = history_init();
    if (!e->history) return;
    history(e->history, &event, H_SETSIZE, HISTORY_LINES);
    history(e->history, &event, H_SETUNIQUE, 1);
    el_set(e->el, EL_HIST, history, e->history);
    if (opt_flag(o, OPT_NO_HISTORY) || !history_path(e->path, sizeof e->path)) {
        e->path[0] = 0;
        return;
    }
    history(e->history, &event, H_LOAD, e->path);
}

// --- the editor ------------------------------------------------------------------------------------------

line_editor *line_editor_open(const options *o)
{
    const char *term = getenv("TERM");
    if (!term || strcmp(term, "dumb") == 0) return NULL;
    // Only the class of characters (LC_CTYPE): the format of numbers in the output must not change.
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0 && !setlocale(LC_CTYPE, "C.UTF-8")) return NULL;
    line_editor *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->el = el_init("tenon", stdin, stderr, stderr);
    if (!e->el) {
        free(e);
        return NULL;
    }
    el_set(e->el, EL_CLIENTDATA, e);
    el_set(e->el, EL_EDITOR, "emacs");
    el_set(e->el, EL_SIGNAL, 0);
    el_set(e->el, EL_PROMPT_ESC, get_prompt, '\1');
    el_set(e->el, EL_GETCFN, next_char);
    open_history(e, o);
    el_source(e->el, NULL);
    return e;
}

static void drop_pastes(line_editor *e)
{
    while (e->n_pastes > 0) free(e->pastes[--e->n_pastes].text);
    free(e->queue);
    e->queue = NULL;
}

// The line with the pastes in the places of their labels.
static char *expand(const line_editor *e, const char *line, size_t n)
{
    char *out = malloc(n + 1);
    if (!out) return NULL;
    memcpy(out, line, n);
    out[n] = 0;
    size_t from = 0;
    for (int i = 0; i < e->n_pastes; i++) {
        const paste *p = &e->pastes[i];
        char *at = strstr(out + from, p->label);
        if (!at) continue; // deleted by hand
        size_t before = (size_t)(at - out), label = strlen(p->label), text = strlen(p->text);
        char *more = malloc(n - label + text + 1);
        if (!more) {
            free(out);
            return NULL;
        }
        memcpy(more, out, before);
        memcpy(more + before, p->text, text);
        memcpy(more + before + text, out + before + label, n - before - label + 1);
        free(out);
        out = more;
        n = n - label + text;
        from = before + text;
    }
    return out;
}

line_result line_editor_read(line_editor *e, const char *prompt, char **text)
{
    int n = 0;
    HistEvent event;
    e->prompt = prompt;
    fputs(PASTE_ON, stderr);
    fflush(stderr);
    const char *line = el_gets(e->el, &n);
    fputs(PASTE_OFF, stderr);
    if (!line || n <= 0) {
        drop_pastes(e);
        return interrupted() ? LINE_INTERRUPTED : LINE_END;
    }
    size_t size = (size_t)n - (line[n - 1] == '\n');
    *text = expand(e, line, size);
    drop_pastes(e);
    if (!*text) return LINE_FAILED;
    if (e->history && (*text)[strspn(*text, " \t")] && strlen(*text) <= ENTRY_MAX) {
        history(e->history, &event, H_ENTER, *text);
        save_history(e);
    }
    return LINE_READ;
}

void line_editor_close(line_editor **e)
{
    if (!*e) return;
    drop_pastes(*e);
    el_end((*e)->el);
    if ((*e)->history) history_end((*e)->history);
    free(*e);
    *e = NULL;
}

#else

line_editor *line_editor_open(const options *o)
{
    (void)o;
    return NULL;
}

line_result line_editor_read(line_editor *e, const char *prompt, char **text)
{
    (void)e;
    (void)prompt;
    (void)text;
    return LINE_FAILED;
}

void line_editor_close(line_editor **e)
{
    (void)e;
}

#endif
