// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C: the first one stops what runs, a second within a second leaves with 130. SIGTERM and SIGHUP stop
// commands that poll interrupted(); others end at once. SIGPIPE is ignored: the write reports it.
#ifndef TENON_TOOLS_INTERRUPT_H
#define TENON_TOOLS_INTERRUPT_H

#include <stdbool.h>
#include <tenon/embed.h>
#include <tenon/session.h>

void interrupt_install(void);
// The session to cancel; NULL before it is destroyed.
void interrupt_watch(tn_session *session);
// Ending by Ctrl-C restores the terminal as it is at this call.
void interrupt_keep_terminal(void);
void interrupt_watch_embedder(tn_embedder *embedder);
// on: the command polls interrupted() often enough. Otherwise, and without a session, Ctrl-C leaves at once.
void interrupt_poll(bool on);
// Whether a line of progress is on the terminal, which a Ctrl-C that leaves removes.
void interrupt_line(bool drawn);
bool interrupt_line_drawn(void);
bool interrupted(void);
// The exit code that a shell gives a command that was ended by that signal.
int interrupt_code(int code);
void interrupt_clear(void);

#endif
