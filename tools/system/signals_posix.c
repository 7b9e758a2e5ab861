// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

// A signal handler has no argument, so its data is global. All of it is lock-free.
static void (*on_interrupt)(void); // set before the handlers are installed
static bool (*on_end)(int number);
static struct termios terminal; // as it was before an editor changed it
static atomic_bool keeps_terminal, keeps_paste;

static void handle_interrupt(int number)
{
    (void)number;
    on_interrupt();
}

static void handle_end(int number)
{
    if (on_end(number)) return;
    sys_terminal_restore();
    signal(number, SIG_DFL);
    raise(number); // delivered when this handler returns
}

// A mapped file was cut while it was read, or its disk failed. Nothing can go on without those bytes.
static void handle_lost_page(int number)
{
    static const char text[] =
        "tenon: a mapped file was cut or cannot be read any more; --no-mmap reads models "
        "into memory\n";
    (void)number;
    sys_terminal_restore();
    sys_error_write(text, sizeof text - 1);
    _exit(1);
}

void sys_signals_install(void (*interrupt)(void), bool (*end)(int number))
{
    struct sigaction action;
    on_interrupt = interrupt;
    on_end = end;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = handle_interrupt;
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = handle_end;
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = handle_lost_page;
    sigaction(SIGBUS, &action, NULL);
    action.sa_handler = handle_end;
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) // nohup
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); // a file over the size limit: the write reports it
}

void sys_terminal_keep(void)
{
    atomic_store(&keeps_paste, sys_terminal_moves());
    if (tcgetattr(STDIN_FILENO, &terminal) == 0) atomic_store(&keeps_terminal, true);
}

void sys_terminal_restore(void)
{
    static const char paste_off[] = "\033[?2004l";
    if (!atomic_load(&keeps_terminal)) return;
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
    if (atomic_load(&keeps_paste)) sys_error_write(paste_off, sizeof paste_off - 1);
}

void sys_error_write(const char *text, size_t n)
{
    if (write(STDERR_FILENO, text, n) < 0) return;
}

_Noreturn void sys_leave(int code)
{
    _exit(code);
}
