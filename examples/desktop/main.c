// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A desktop program: a chat with a model, in GTK 4, over the public headers of the library.
//
//     tenon-desktop [--dark] [--script SECONDS [--lose FILE]] [MODEL]
#include "script.h"

#include <stdlib.h>

typedef struct program {
    GtkApplication *app;
    window *w;
    script *script;
    gboolean dark;
    int seconds, code;
    char *lose;
    char **files;
} program;

static void on_done(void *user)
{
    program *p = user;
    gtk_window_close(GTK_WINDOW(window_widget(p->w)));
}

static void on_activate(GtkApplication *app, gpointer user)
{
    program *p = user;
    const char *path = p->files ? p->files[0] : NULL;
    if (p->w) return;
    p->w = window_new(app, p->dark);
    if (p->seconds > 0 && path)
        p->script = script_start(p->w, path, p->lose, p->seconds, on_done, p);
    else if (path)
        window_open(p->w, path, NULL);
}

int main(int argc, char **argv)
{
    program p = {0};
    const GOptionEntry entries[] = {
        {"dark", 0, 0, G_OPTION_ARG_NONE, &p.dark, "dark colours", NULL},
        {"script", 0, 0, G_OPTION_ARG_INT, &p.seconds, "run by itself and measure the main loop", "SECONDS"},
        {"lose", 0, 0, G_OPTION_ARG_FILENAME, &p.lose, "for a driver that loses its device with it", "FILE"},
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &p.files, NULL, "[MODEL]"},
        {0}};
    GOptionContext *options = g_option_context_new(NULL);
    GError *error = NULL;
    g_option_context_add_main_entries(options, entries, NULL);
    if (!g_option_context_parse(options, &argc, &argv, &error)) {
        g_printerr("tenon-desktop: %s\n", error->message);
        g_error_free(error);
        g_option_context_free(options);
        return 2;
    }
    g_option_context_free(options);
    p.app = gtk_application_new(NULL, G_APPLICATION_DEFAULT_FLAGS);
    g_signal_connect(p.app, "activate", G_CALLBACK(on_activate), &p);
    p.code = g_application_run(G_APPLICATION(p.app), 1, argv);
    if (p.script && script_end(p.script)) p.code = 1;
    window_free(p.w);
    g_object_unref(p.app);
    g_strfreev(p.files);
    g_free(p.lose);
    return p.code;
}
