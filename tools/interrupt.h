// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C: the first one stops what runs, a second within a second leaves with 130. SIGTERM and SIGHUP stop commands that
// ask, others at once. SIGPIPE is ignored: writing reports it.
#ifndef TENON_TOOLS_INTERRUPT_H
#define TENON_TOOLS_INTERRUPT_H

#include <stdbool.h>
#include <tenon/embed.h>
#include <tenon/session.h>

void interrupt_install(void);
// The session to cancel; NULL before it is destroyed.
void interrupt_watch(tn_session *session);
// Leaving by Ctrl-C gives the terminal back as it is now.
void interrupt_keep_terminal(void);
void interrupt_watch_embedder(tn_embedder *embedder);
// on: the command asks interrupted() often enough. Otherwise, and without a session, Ctrl-C leaves at once.
void interrupt_poll(bool on);
bool interrupted(void);
// The exit code, as a shell would say it of the signal that ended the command.
int interrupt_code(int code);
void interrupt_clear(void);

#endif
