// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/terminal/progress.h"

#include "tools/interrupt.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 100, CELLS = 20, LINE_SIZE = 256 };

bool terminal_moves(FILE *f)
{
    return is_terminal(f) && sys_terminal_moves();
}

void progress_begin(progress *p, uint32_t after_ms)
{
    *p = (progress){.start_ns = now_ns(), .after_ms = after_ms, .on = terminal_moves(stderr)};
}

void progress_show(progress *p, double share, const char *fmt, ...)
{
    char bar[CELLS + 1], text[LINE_SIZE];
    uint64_t now = now_ns();
    if (!p->on || now - p->start_ns < p->after_ms * 1000000ull ||
        (p->drawn && now - p->drawn_ns < EVERY_MS * 1000000ull))
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    clean_text(text);
    double part = share > 1 ? 1 : share;
    memset(bar, '.', CELLS);
    if (part > 0) memset(bar, '#', (size_t)lround(part * CELLS));
    bar[CELLS] = 0;
    interrupt_line(true); // first: a signal between the two removes a line that is not there yet
    if (share < 0)
        fprintf(stderr, "\r%s\033[K", text);
    else
        fprintf(stderr, "\r[%s] %3.0f %% %s\033[K", bar, part * 100, text);
    fflush(stderr);
    p->drawn_ns = now;
    p->drawn = true;
}

void progress_forget(void)
{
    if (!interrupt_line_drawn()) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    interrupt_line(false);
}

void progress_clear(progress *p)
{
    if (!p->drawn) return;
    progress_forget();
    p->drawn = false;
}

const char *progress_left(const progress *p, double share, char *buf, size_t size)
{
    double seconds = (double)(now_ns() - p->start_ns) * 1e-9;
    buf[0] = 0;
    if (share < 0.01 || seconds < 1) return buf;
    int left = (int)fmin(seconds / share * (1 - share), 1e8);
    if (left >= 60)
        snprintf(buf, size, ", %d min %d s left", left / 60, left % 60);
    else
        snprintf(buf, size, ", %d s left", left);
    return buf;
}
