// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One line on standard error that is written again and again while something takes long. Only on a terminal
// that can move its cursor: not with TERM=dumb, and not in a file.
#ifndef TENON_TOOLS_PROGRESS_H
#define TENON_TOOLS_PROGRESS_H

#include "tools/common.h"

typedef struct progress {
    uint64_t start_ns, drawn_ns;
    uint32_t after_ms; // nothing is shown before
    bool on, drawn;
} progress;

// Whether escape sequences may be written to the stream.
bool terminal_moves(FILE *f);

void progress_begin(progress *p, uint32_t after_ms);
// Shows a bar for `share` (0 to 1; below 0: none) and a text, at most ten times a second.
void progress_show(progress *p, double share, const char *fmt, ...) PRINTF_LIKE(3, 4);
// Removes the line, before other text and at the end. A Ctrl-C that ends the program removes it too.
void progress_clear(progress *p);
// Removes any line of progress: messages begin at the left edge.
void progress_forget(void);
// ", 2 min 5 s left" until the end, from the time that `share` took; "" while nothing can be said.
const char *progress_left(const progress *p, double share, char *buf, size_t size);

#endif
