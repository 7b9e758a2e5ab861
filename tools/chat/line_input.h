// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Lines of a chat: from a terminal with an editor and a history, or plain from any other input.
#ifndef TENON_TOOLS_LINE_INPUT_H
#define TENON_TOOLS_LINE_INPUT_H

#include "tools/options.h"

typedef enum line_result { LINE_READ, LINE_END, LINE_INTERRUPTED, LINE_FAILED } line_result;

enum { LINE_MAX_SIZE = 16 << 20 }; // bytes

typedef struct line_editor line_editor;

typedef struct line_input {
    const options *opt;
    bool terminal;
    line_editor *editor; // NULL: plain input
    char *data;          // `used` bytes of `capacity`; the last returned line has `taken` of them
    size_t used, capacity, taken;
    char *text; // the last returned line
} line_input;

// False: out of memory.
bool line_open(line_input *in, const options *o, bool terminal);
void line_close(line_input *in);
// The next line without its newline, valid until the next call. On a terminal what was pasted is one line,
// whatever newlines it has.
line_result line_get(line_input *in, const char *prompt, char **line);

// line_editor.c: NULL if there is no libedit, or the terminal cannot be edited on.
line_editor *line_editor_open(const options *o);
// *text comes from malloc.
line_result line_editor_read(line_editor *e, const char *prompt, char **text);
void line_editor_close(line_editor **e);

#define PASTE_ON    "\033[?2004h" // the terminal marks what is pasted
#define PASTE_OFF   "\033[?2004l"
#define PASTE_BEGIN "\033[200~"
#define PASTE_END   "\033[201~"

#endif
