// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/chat/thoughts.h"

#include <stdlib.h>
#include <string.h>

// HEADER: from <|end|>, or from "<|start|>assistant" in the prompt, to <|message|>. CALL: a message to a
// tool, as it is.
enum { PLAIN, START, THOUGHT, BEHIND, HEADER, ANSWER, CALL };
enum { HEADER_MAX = 512 }; // bytes; whatever is longer is no header

#define OPEN    "<think>"
#define CLOSE   "</think>"
#define CHANNEL "<|channel|>"
#define MESSAGE "<|message|>"
#define END     "<|end|>"
#define FINAL   CHANNEL "final" MESSAGE

static bool append(char **data, size_t *n, size_t *capacity, const char *text, size_t more)
{
    if (*n + more + 1 > *capacity) {
        size_t size = 2 * (*n + more) + 64;
        char *p = realloc(*data, size);
        if (!p) return false;
        *data = p;
        *capacity = size;
    }
    if (more) memcpy(*data + *n, text, more);
    (*data)[ *n += more] = 0;
    return true;
}

static bool put(thoughts *t, const char *text, size_t n)
{
    return append(&t->out, &t->n_out, &t->out_capacity, text, n);
}

static size_t blanks(const char *text)
{
    return strspn(text, " \t\r\n");
}

static void drop(thoughts *t, size_t n)
{
    memmove(t->held, t->held + n, t->n_held - n + 1);
    t->n_held -= n;
}

// Releases the first n held bytes, to be printed or not.
static bool release(thoughts *t, size_t n, bool seen)
{
    bool ok = !seen || put(t, t->held, n);
    drop(t, n);
    return ok;
}

// Releases the first n held bytes of a hidden thought. Blanks at its end wait for what follows.
static bool release_thought(thoughts *t, size_t n, bool last)
{
    if (!t->keep) return release(t, n, false);
    if (!t->begun) {
        size_t skip = blanks(t->held) < n ? blanks(t->held) : n;
        drop(t, skip);
        n -= skip;
    }
    size_t rest = n;
    while (n > 0 && blanks(t->held + n - 1) > 0) n--;
    t->begun = t->begun || n > 0;
    bool ok = append(&t->inner, &t->n_inner, &t->inner_capacity, t->held, n);
    drop(t, last ? rest : n);
    return ok;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && memcmp(text + n - m, with, m) == 0;
}

// Bytes that surely come before `marker`: all, but for its beginning at the very end.
static size_t before(const thoughts *t, const char *marker)
{
    for (size_t n = t->n_held < strlen(marker) ? t->n_held : strlen(marker) - 1; n > 0; n--)
        if (memcmp(t->held + t->n_held - n, marker, n) == 0) return t->n_held - n;
    return t->n_held;
}

void thoughts_begin(thoughts *t, const char *prompt_end, bool hide)
{
    size_t n = strlen(prompt_end);
    while (n > 0 && blanks(prompt_end + n - 1)) n--;
    bool open = n >= strlen(OPEN) && begins(prompt_end + n - strlen(OPEN), OPEN);
    t->channels = ends(prompt_end, "<|start|>assistant");
    t->hide = hide;
    t->state = t->channels ? HEADER : !hide ? PLAIN : open ? THOUGHT : START;
    t->n_held = t->n_out = t->n_inner = 0;
    t->keep = t->begun = false;
}

bool thoughts_inside(const thoughts *t)
{
    return t->state == THOUGHT;
}

// --- states: each decides what it can; *more: another state may go on ----------------------------

// Where thoughts may begin; anything but blanks before them makes it an answer.
static bool at_start(thoughts *t, bool last, bool *more)
{
    size_t n = blanks(t->held);
    const char *text = t->held + n;
    bool thought = begins(text, OPEN);
    if (!thought && !last && n + strlen(text) == t->n_held && begins(OPEN, text)) return true; // perhaps
    t->state = thought ? THOUGHT : ANSWER;
    *more = true;
    return thought ? release(t, n + strlen(OPEN), false) : true;
}

static bool in_thought(thoughts *t, bool *more)
{
    const char *marker = t->channels ? END : CLOSE, *at = strstr(t->held, marker);
    if (!at)
        return t->hide ? release_thought(t, before(t, marker), false) : release(t, before(t, marker), true);
    size_t n = (size_t)(at - t->held);
    bool ok = t->hide ? release_thought(t, n, true) : release(t, n, true);
    drop(t, strlen(marker));
    if (ok && t->channels && !t->hide) ok = put(t, "\n" CLOSE "\n\n", strlen(CLOSE) + 3);
    t->state = t->channels ? HEADER : BEHIND;
    *more = true;
    return ok;
}

static bool behind(thoughts *t, bool *more)
{
    drop(t, blanks(t->held));
    if (t->n_held == 0) return true;
    t->state = ANSWER;
    *more = true;
    return true;
}

// Whether the text can begin a header: "<|channel|>", "<|start|>assistant", or who is called.
static bool is_header(const char *text)
{
    return begins(text, "<|") || begins("<|", text) || begins(text, " to=") || begins(" to=", text);
}

// "assistant<|channel|>analysis": decides whether a thought, the answer, or a call of a tool follows.
static bool in_header(thoughts *t, bool last, bool *more)
{
    const char *at = strstr(t->held, MESSAGE);
    bool header = is_header(t->held);
    if (header && !at && !last && t->n_held < HEADER_MAX) return true;
    *more = true;
    if (!header || !at) { // of a text that was cut there, nothing is to be seen
        t->state = ANSWER;
        return header && last ? release(t, t->n_held, false) : true;
    }
    size_t n = (size_t)(at - t->held);
    t->held[n] = 0;
    const char *channel = strstr(t->held, CHANNEL);
    bool final = !channel || begins(channel + strlen(CHANNEL), "final"),
         call = strstr(t->held, " to=") != NULL;
    // What a model says before it calls a tool; where thoughts are kept apart, it is a part of the answer.
    if (t->keep && channel && begins(channel + strlen(CHANNEL), "commentary")) final = true;
    t->held[n] = MESSAGE[0];
    t->state = call ? CALL : final ? ANSWER : THOUGHT;
    bool ok = release(t, n + strlen(MESSAGE), call);
    return ok && t->state == THOUGHT && !t->hide ? put(t, OPEN "\n", strlen(OPEN) + 1) : ok;
}

static bool in_answer(thoughts *t, bool *more)
{
    const char *at = t->channels && t->state == ANSWER ? strstr(t->held, END) : NULL;
    if (!at) return release(t, t->channels && t->state == ANSWER ? before(t, END) : t->n_held, true);
    bool ok = release(t, (size_t)(at - t->held), true);
    drop(t, strlen(END));
    t->state = HEADER;
    *more = true;
    return ok;
}

bool thoughts_feed(thoughts *t, const char *text, size_t n, bool last)
{
    t->n_out = t->n_inner = 0;
    bool more = true, ok = append(&t->held, &t->n_held, &t->held_capacity, text, n) && put(t, "", 0);
    while (ok && more) {
        more = false;
        ok = t->state == START     ? at_start(t, last, &more)
             : t->state == THOUGHT ? in_thought(t, &more)
             : t->state == BEHIND  ? behind(t, &more)
             : t->state == HEADER  ? in_header(t, last, &more)
                                   : in_answer(t, &more);
        more = more && t->n_held > 0;
    }
    // A marker that was cut is text.
    if (!ok || !last || t->n_held == 0) return ok;
    bool hidden = t->state == THOUGHT && t->hide;
    return hidden ? release_thought(t, t->n_held, true) : release(t, t->n_held, true);
}

void thoughts_fini(thoughts *t)
{
    free(t->held);
    free(t->out);
    free(t->inner);
    *t = (thoughts){0};
}

// --- whole answers -------------------------------------------------------------------------------

void thoughts_split(const char *text, const char **thought, size_t *n_thought, const char **answer)
{
    const char *first = text + blanks(text), *final = strstr(text, FINAL), *close = strstr(text, CLOSE),
               *end = NULL;
    bool channels = begins(first, CHANNEL);
    *thought = NULL;
    *n_thought = 0;
    *answer = text;
    if (channels) {
        const char *message = strstr(first, MESSAGE), *call = strstr(first, " to=");
        if (call && !final && (!message || call < message)) return; // of a tool: as it is
        if (!begins(first, FINAL)) *thought = message ? message + strlen(MESSAGE) : first + strlen(first);
        end = *thought ? strstr(*thought, END) : NULL;
        *answer = final ? final + strlen(FINAL) : first + strlen(first);
    } else if (close || begins(first, OPEN)) { // the template may have written the opening marker
        *thought = begins(first, OPEN) ? first + strlen(OPEN) : text;
        end = close;
        *answer = close ? close + strlen(CLOSE) : first + strlen(first);
    }
    if (!*thought) return;
    if (!end) end = *thought + strlen(*thought);
    *answer += strspn(*answer, " \n");
    *thought += blanks(*thought) < (size_t)(end - *thought) ? blanks(*thought) : (size_t)(end - *thought);
    while (end > *thought && blanks(end - 1)) end--;
    *n_thought = (size_t)(end - *thought);
}
