// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/interrupt.h"

#include "tools/common.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

// A signal handler has no argument, so its data is global. All of it is lock-free.
static _Atomic(tn_session *) watched;
static _Atomic(tn_embedder *) watched_embedder;
static atomic_bool polled, seen;
static atomic_int ended_by; // SIGTERM or SIGHUP
static atomic_llong last_ms;
static struct termios terminal; // as it was before an editor changed it
static atomic_bool keeps_terminal, keeps_paste, line_drawn;

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void restore_terminal(void)
{
    static const char paste_off[] = "\033[?2004l";
    if (!atomic_load(&keeps_terminal)) return;
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
    if (!atomic_load(&keeps_paste)) return;
    if (write(STDERR_FILENO, paste_off, sizeof paste_off - 1) < 0) _exit(EXIT_INTERRUPTED);
}

// The shell's prompt begins a line of its own: behind "^C" of the terminal, or where progress stood.
static void end_line(void)
{
    static const char clear[] = "\r\033[K";
    bool drawn = atomic_load(&line_drawn);
    if (!drawn && !isatty(STDERR_FILENO)) return;
    if (write(STDERR_FILENO, drawn ? clear : "\n", drawn ? sizeof clear - 1 : 1) < 0) return;
}

static void leave(void)
{
    restore_terminal();
    end_line();
    _exit(EXIT_INTERRUPTED);
}

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    long long now = now_ms();
    long long before = atomic_exchange(&last_ms, now);
    tn_session *session = atomic_load(&watched);
    tn_embedder *embedder = atomic_load(&watched_embedder);
    bool again = before != 0 && now - before < 1000;
    atomic_store(&seen, true);
    if (again || (!session && !embedder && !atomic_load(&polled))) leave();
    if (session) tn_session_cancel(session, 1);
    if (embedder) tn_embedder_cancel(embedder, 1);
}

// Commands that poll interrupted() can still remove an incomplete file; all others end as the signal ends
// them.
static void on_end(int signal_number)
{
    int first = 0;
    if (atomic_load(&polled) && atomic_compare_exchange_strong(&ended_by, &first, signal_number)) {
        atomic_store(&seen, true);
        return;
    }
    restore_terminal();
    signal(signal_number, SIG_DFL);
    raise(signal_number); // delivered when this handler returns
}

// A mapped file was cut while it was read, or its disk failed. Nothing can go on without those bytes.
static void on_lost_page(int signal_number)
{
    static const char text[] =
        "tenon: a mapped file was cut or cannot be read any more; --no-mmap reads models "
        "into memory\n";
    (void)signal_number;
    restore_terminal();
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(EXIT_FAILED);
    _exit(EXIT_FAILED);
}

void interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = on_end;
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_lost_page;
    sigaction(SIGBUS, &action, NULL);
    action.sa_handler = on_end;
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) // nohup
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); // a file over the size limit: the write reports it
}

void interrupt_keep_terminal(void)
{
    const char *term = getenv("TERM");
    atomic_store(&keeps_paste, term && *term && strcmp(term, "dumb") != 0);
    if (tcgetattr(STDIN_FILENO, &terminal) == 0) atomic_store(&keeps_terminal, true);
}

void interrupt_watch(tn_session *session)
{
    atomic_store(&watched, session);
    // A Ctrl-C that came before the session was set counts as well.
    if (session && atomic_load(&seen)) tn_session_cancel(session, 1);
}

void interrupt_watch_embedder(tn_embedder *embedder)
{
    atomic_store(&watched_embedder, embedder);
    if (embedder && atomic_load(&seen)) tn_embedder_cancel(embedder, 1);
}

void interrupt_line(bool drawn)
{
    atomic_store(&line_drawn, drawn);
}

bool interrupt_line_drawn(void)
{
    return atomic_load(&line_drawn);
}

void interrupt_poll(bool on)
{
    atomic_store(&polled, on);
}

bool interrupted(void)
{
    return atomic_load(&seen);
}

void interrupt_clear(void)
{
    atomic_store(&seen, false);
}

int interrupt_code(int code)
{
    int by = atomic_load(&ended_by);
    return code == EXIT_INTERRUPTED && by > 0 ? 128 + by : code;
}
