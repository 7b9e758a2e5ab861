// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef DESKTOP_WINDOW_H
#define DESKTOP_WINDOW_H

#include "talk.h"

#include <gtk/gtk.h>

typedef struct window window;

// Called after each report was shown; for the script.
typedef void (*window_fn)(void *user, const talk_report *report);

window *window_new(GtkApplication *app, gboolean dark);
void window_free(window *w);
void window_watch(window *w, window_fn fn, void *user);
talk *window_talk(window *w);
// As the buttons do.
void window_open(window *w, const char *path, const char *device);
void window_ask(window *w, const char *question, int max_tokens);
GtkWidget *window_widget(window *w);

#endif
