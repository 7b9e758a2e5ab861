// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/interrupt.h"

#include "tools/common.h"

#include <stdatomic.h>

// A signal handler has no argument, so its data is global. All of it is lock-free.
static _Atomic(tn_session *) watched;
static _Atomic(tn_embedder *) watched_embedder;
static atomic_bool polled, seen, line_drawn;
static atomic_int ended_by; // SIGTERM or SIGHUP
static atomic_ullong last_ns;

// The shell's prompt begins a line of its own: behind "^C" of the terminal, or where progress stood.
static void end_line(void)
{
    static const char clear[] = "\r\033[K";
    if (atomic_load(&line_drawn))
        sys_error_write(clear, sizeof clear - 1);
    else if (is_terminal(stderr))
        sys_error_write("\n", 1);
}

static void on_interrupt(void)
{
    unsigned long long now = now_ns(), before = atomic_exchange(&last_ns, now);
    tn_session *session = atomic_load(&watched);
    tn_embedder *embedder = atomic_load(&watched_embedder);
    bool again = before != 0 && now - before < 1000000000u;
    atomic_store(&seen, true);
    if (again || (!session && !embedder && !atomic_load(&polled))) {
        sys_terminal_restore();
        end_line();
        sys_leave(EXIT_INTERRUPTED);
    }
    if (session) tn_session_cancel(session, 1);
    if (embedder) tn_embedder_cancel(embedder, 1);
}

// Commands that poll interrupted() can still remove an incomplete file; all others end at once.
static bool on_end(int number)
{
    int first = 0;
    if (!atomic_load(&polled) || !atomic_compare_exchange_strong(&ended_by, &first, number)) return false;
    atomic_store(&seen, true);
    return true;
}

void interrupt_install(void)
{
    sys_signals_install(on_interrupt, on_end);
}

void interrupt_keep_terminal(void)
{
    sys_terminal_keep();
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
