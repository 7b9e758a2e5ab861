// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/chat/line_input.h"

#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/terminal/progress.h"

#include <stdlib.h>
#include <string.h>

enum { READ_SIZE = 65536 };

bool line_open(line_input *in, const options *o, bool terminal)
{
    *in = (line_input){.opt = o, .terminal = terminal};
    in->data = malloc(READ_SIZE);
    in->capacity = in->data ? READ_SIZE : 0;
    if (terminal) {
        interrupt_keep_terminal();
        in->editor = line_editor_open(o);
    }
    return in->data != NULL;
}

void line_close(line_input *in)
{
    line_editor_close(&in->editor);
    free(in->data);
    free(in->text);
    *in = (line_input){0};
}

// More bytes into the buffer. Not by stdio, so that Ctrl-C ends the wait.
static line_result read_more(line_input *in)
{
    if (in->capacity - in->used < READ_SIZE) {
        if (in->capacity > LINE_MAX_SIZE) return LINE_FAILED;
        char *more = realloc(in->data, in->capacity * 2 + READ_SIZE);
        if (!more) return LINE_FAILED;
        in->data = more;
        in->capacity = in->capacity * 2 + READ_SIZE;
    }
    if (interrupted() || sys_input_wait(-1) == SYS_INTERRUPTED) return LINE_INTERRUPTED;
    long n = sys_input_read(in->data + in->used, in->capacity - in->used - 1);
    if (n < 0) return n == SYS_INTERRUPTED ? LINE_INTERRUPTED : LINE_FAILED;
    in->used += (size_t)n;
    return n == 0 ? LINE_END : LINE_READ;
}

static line_result read_line(line_input *in, char **line)
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

// Removes the marks of pasting from the text; returns whether a paste is still open.
static bool strip_marks(char *text)
{
    static const char *const marks[] = {PASTE_BEGIN, PASTE_END};
    bool open = false;
    char *w = text;
    for (char *p = text; *p;) {
        bool begin = strncmp(p, marks[0], strlen(marks[0])) == 0,
             end = strncmp(p, marks[1], strlen(marks[1])) == 0;
        if (begin || end) {
            open = begin;
            p += strlen(marks[0]);
        } else {
            *w++ = *p++;
        }
    }
    *w = 0;
    return open;
}

// A terminal without an editor: lines are joined as long as a paste goes on.
static line_result read_pasted(line_input *in, const char *prompt, char **line)
{
    size_t n = 0;
    bool marks = terminal_moves(stderr);
    if (marks) fputs(PASTE_ON, stderr);
    fputs(prompt, stderr);
    for (bool open = true; open;) {
        char *part;
        line_result result = read_line(in, &part);
        size_t size = result == LINE_READ ? strlen(part) : 0;
        char *more = result == LINE_READ ? realloc(in->text, n + size + 2) : NULL;
        if (!more) {
            if (marks) fputs(PASTE_OFF, stderr);
            return result == LINE_READ ? LINE_FAILED : result;
        }
        in->text = more;
        if (n) more[n++] = '\n';
        memcpy(more + n, part, size + 1);
        // Marks count from the beginning: stripped ones of earlier lines left the paste open.
        char *copy = n ? malloc(size + strlen(PASTE_BEGIN) + 1) : NULL;
        if (copy) {
            memcpy(copy, PASTE_BEGIN, strlen(PASTE_BEGIN));
            memcpy(copy + strlen(PASTE_BEGIN), part, size + 1);
            open = strip_marks(copy);
            memcpy(more + n, copy, strlen(copy) + 1);
            free(copy);
        } else {
            open = strip_marks(more + n);
        }
        n += strlen(more + n);
    }
    if (marks) fputs(PASTE_OFF, stderr);
    *line = in->text;
    return LINE_READ;
}

line_result line_get(line_input *in, const char *prompt, char **line)
{
    if (!in->terminal) return read_line(in, line);
    if (!in->editor) return read_pasted(in, prompt, line);
    free(in->text);
    in->text = NULL;
    line_result result = line_editor_read(in->editor, prompt, &in->text);
    *line = in->text;
    return result;
}
