// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Drives the window without a person and measures how long its main loop stalls: open, three answers, one of
// them stopped, memory that runs out, a lost device, another device; again until the time is over.
#ifndef DESKTOP_SCRIPT_H
#define DESKTOP_SCRIPT_H

#include "window.h"

typedef struct script script;

// `done` is called at the end. lose: the file that makes a driver for tests lose its device, which then is
// the first one that computes; NULL: the loss is only played, and everything is on that device.
script *script_start(window *w, const char *path, const char *lose, int seconds, void (*done)(void *user),
                     void *user);
// Prints the result; 0 if each step ended as it should, else 1. Frees it.
int script_end(script *s);

#endif
