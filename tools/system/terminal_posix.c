// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool is_terminal(FILE *f)
{
    return isatty(fileno(f)) == 1;
}

bool sys_terminal_moves(void)
{
    const char *term = getenv("TERM");
    return term && *term && strcmp(term, "dumb") != 0;
}

int sys_input_wait(int wait_ms)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&fd, 1, wait_ms);
    return ready < 0 ? (errno == EINTR ? SYS_INTERRUPTED : 1) : ready > 0;
}

long sys_input_read(char *to, size_t n)
{
    ssize_t got = read(STDIN_FILENO, to, n);
    return got >= 0 ? (long)got : errno == EINTR ? SYS_INTERRUPTED : SYS_FAILED;
}

bool sys_output_is_lost(void)
{
    struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR);
}
