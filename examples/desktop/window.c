// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "window.h"

#include <string.h>

enum {
    REFRESH_MS = 100,
    TEXT_MS = 33,
    WIDTH = 720,
    HEIGHT = 520,
    MARGIN = 8,
    ANSWER_TOKENS = 400,
    TALK_CHARS = 20000
};

struct window {
    talk *talk;
    window_fn fn;
    void *fn_user;
    GtkWidget *self, *open, *stop, *bar, *view, *entry, *state, *figures, *devices;
    GtkTextBuffer *text;
    GString *pending; // text that came since the last frame
    char *path, *device, *name;
    gboolean busy, filling; // filling: the list of devices is being set, not chosen from
    guint refresh, flush, pieces;
    gint64 first_us, last_us; // of the answer's pieces
};

// --- what is shown -----------------------------------------------------------------------------------------

// A long talk is cut at its beginning: laying out all of it would take longer than a frame.
static void append(window *w, const char *text)
{
    GtkTextIter start, end;
    gtk_text_buffer_get_end_iter(w->text, &end);
    gtk_text_buffer_insert(w->text, &end, text, -1);
    int n = gtk_text_buffer_get_char_count(w->text);
    if (n > TALK_CHARS) {
        gtk_text_buffer_get_start_iter(w->text, &start);
        gtk_text_buffer_get_iter_at_offset(w->text, &end, n - TALK_CHARS / 2);
        gtk_text_buffer_delete(w->text, &start, &end);
    }
    gtk_text_buffer_get_end_iter(w->text, &end);
    gtk_text_buffer_place_cursor(w->text, &end);
    gtk_text_view_scroll_mark_onscreen(GTK_TEXT_VIEW(w->view), gtk_text_buffer_get_insert(w->text));
}

static gboolean on_flush(gpointer user)
{
    window *w = user;
    w->flush = 0;
    if (w->pending->len) append(w, w->pending->str);
    g_string_truncate(w->pending, 0);
    return G_SOURCE_REMOVE;
}

// Text that comes faster than frames are drawn is laid out once for several pieces.
static void append_later(window *w, const char *text)
{
    g_string_append(w->pending, text);
    if (!w->flush) w->flush = g_timeout_add(TEXT_MS, on_flush, w);
}

static void set_busy(window *w, gboolean busy)
{
    w->busy = busy;
    gtk_widget_set_sensitive(w->stop, busy);
    gtk_widget_set_sensitive(w->entry, !busy);
    gtk_widget_set_sensitive(w->devices, !busy);
}

static void show_devices(window *w, const char *names)
{
    char **list = g_strsplit(names ? names : "", ",", -1);
    w->filling = TRUE;
    gtk_drop_down_set_model(GTK_DROP_DOWN(w->devices),
                            G_LIST_MODEL(gtk_string_list_new((const char *const *)list)));
    for (guint i = 0; list[i]; i++)
        if (w->device && strcmp(list[i], w->device) == 0)
            gtk_drop_down_set_selected(GTK_DROP_DOWN(w->devices), i);
    w->filling = FALSE;
    g_strfreev(list);
}

static void show_failure(window *w, const talk_report *r)
{
    char *line = g_strdup_printf("\n[%s]\n", r->text);
    append_later(w, line);
    g_free(line);
    gtk_label_set_text(GTK_LABEL(w->state), tn_status_text(r->status));
    gtk_widget_set_visible(w->bar, FALSE);
    set_busy(w, FALSE);
}

static void on_report(void *user, const talk_report *r)
{
    window *w = user;
    switch (r->what) {
    case TALK_OPENED:
        g_free(w->name);
        w->name = g_strdup(r->text);
        gtk_label_set_text(GTK_LABEL(w->state), w->name);
        gtk_widget_set_visible(w->bar, FALSE);
        show_devices(w, r->devices);
        set_busy(w, FALSE);
        gtk_widget_grab_focus(w->entry);
        break;
    case TALK_PIECE:
        if (w->pieces++ == 0) w->first_us = g_get_monotonic_time();
        w->last_us = g_get_monotonic_time();
        append_later(w, r->text);
        break;
    case TALK_ANSWERED:
        append_later(w, strcmp(r->text, "stopped") == 0 ? " [stopped]\n\n" : "\n\n");
        set_busy(w, FALSE);
        break;
    case TALK_FAILED:
        show_failure(w, r);
        break;
    case TALK_ASKED:
        gtk_label_set_text(GTK_LABEL(w->state), w->name ? w->name : "");
        break;
    case TALK_CLOSED:
        break;
    }
    if (w->fn) w->fn(w->fn_user, r);
}

static gboolean on_refresh(gpointer user)
{
    window *w = user;
    char text[128];
    double seconds = (double)(w->last_us - w->first_us) * 1e-6;
    if (gtk_widget_get_visible(w->bar))
        gtk_progress_bar_set_fraction(GTK_PROGRESS_BAR(w->bar), talk_progress(w->talk));
    int n = g_snprintf(text, sizeof text, "%.0f MiB", (double)talk_memory(w->talk) / 1048576.0);
    if (w->pieces > 1 && seconds > 0)
        g_snprintf(text + n, sizeof text - (gsize)n, "   %.1f pieces/s", (w->pieces - 1) / seconds);
    gtk_label_set_text(GTK_LABEL(w->figures), text);
    return G_SOURCE_CONTINUE;
}

// --- what is done ------------------------------------------------------------------------------------------

void window_open(window *w, const char *path, const char *device)
{
    char *new_path = g_strdup(path), *new_device = g_strdup(device);
    g_free(w->path);
    g_free(w->device);
    w->path = new_path;
    w->device = new_device;
    gtk_label_set_text(GTK_LABEL(w->state), "opening ...");
    gtk_widget_set_visible(w->bar, TRUE);
    set_busy(w, TRUE);
    talk_open(w->talk, w->path, w->device);
}

void window_ask(window *w, const char *question, int max_tokens)
{
    char *line = g_strdup_printf("> %s\n", question);
    append_later(w, line);
    g_free(line);
    w->pieces = 0;
    set_busy(w, TRUE);
    talk_ask(w->talk, question, max_tokens);
}

static void on_entry(GtkEntry *entry, gpointer user)
{
    char *text = g_strdup(gtk_editable_get_text(GTK_EDITABLE(entry)));
    if (*text) window_ask(user, text, ANSWER_TOKENS);
    gtk_editable_set_text(GTK_EDITABLE(entry), "");
    g_free(text);
}

static void on_stop(GtkButton *button, gpointer user)
{
    (void)button;
    talk_stop(((window *)user)->talk);
}

static void on_device(GObject *list, GParamSpec *spec, gpointer user)
{
    window *w = user;
    GtkStringObject *item = gtk_drop_down_get_selected_item(GTK_DROP_DOWN(list));
    (void)spec;
    if (w->filling || !item || !w->path) return;
    char *name = g_strdup(gtk_string_object_get_string(item));
    window_open(w, w->path, name);
    g_free(name);
}

static void on_chosen(GtkNativeDialog *dialog, int response, gpointer user)
{
    GFile *file =
        response == GTK_RESPONSE_ACCEPT ? gtk_file_chooser_get_file(GTK_FILE_CHOOSER(dialog)) : NULL;
    char *path = file ? g_file_get_path(file) : NULL;
    if (path) window_open(user, path, NULL);
    g_free(path);
    g_clear_object(&file);
    g_object_unref(dialog);
}

static void on_open(GtkButton *button, gpointer user)
{
    window *w = user;
    (void)button;
    GtkFileChooserNative *dialog = gtk_file_chooser_native_new(
        "Open a model", GTK_WINDOW(w->self), GTK_FILE_CHOOSER_ACTION_OPEN, "_Open", "_Cancel");
    g_signal_connect(dialog, "response", G_CALLBACK(on_chosen), w);
    gtk_native_dialog_show(GTK_NATIVE_DIALOG(dialog));
}

// --- the window --------------------------------------------------------------------------------------------

static GtkWidget *make_header(window *w)
{
    GtkWidget *header = gtk_header_bar_new();
    w->open = gtk_button_new_with_mnemonic("_Open");
    w->stop = gtk_button_new_with_mnemonic("_Stop");
    w->devices = gtk_drop_down_new(NULL, NULL);
    gtk_widget_set_tooltip_text(w->devices, "Where the model runs");
    g_signal_connect(w->open, "clicked", G_CALLBACK(on_open), w);
    g_signal_connect(w->stop, "clicked", G_CALLBACK(on_stop), w);
    g_signal_connect(w->devices, "notify::selected", G_CALLBACK(on_device), w);
    gtk_header_bar_pack_start(GTK_HEADER_BAR(header), w->open);
    gtk_header_bar_pack_start(GTK_HEADER_BAR(header), w->devices);
    gtk_header_bar_pack_end(GTK_HEADER_BAR(header), w->stop);
    return header;
}

static GtkWidget *make_body(window *w)
{
    GtkWidget *body = gtk_box_new(GTK_ORIENTATION_VERTICAL, MARGIN);
    GtkWidget *scroll = gtk_scrolled_window_new(), *line = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, MARGIN);
    w->view = gtk_text_view_new();
    w->text = gtk_text_view_get_buffer(GTK_TEXT_VIEW(w->view));
    w->bar = gtk_progress_bar_new();
    w->entry = gtk_entry_new();
    w->state = gtk_label_new("No model is open");
    w->figures = gtk_label_new("");
    gtk_text_view_set_editable(GTK_TEXT_VIEW(w->view), FALSE);
    gtk_text_view_set_wrap_mode(GTK_TEXT_VIEW(w->view), GTK_WRAP_WORD_CHAR);
    gtk_text_view_set_left_margin(GTK_TEXT_VIEW(w->view), MARGIN);
    gtk_text_view_set_right_margin(GTK_TEXT_VIEW(w->view), MARGIN);
    gtk_text_view_set_top_margin(GTK_TEXT_VIEW(w->view), MARGIN);
    gtk_entry_set_placeholder_text(GTK_ENTRY(w->entry), "Ask something");
    gtk_label_set_ellipsize(GTK_LABEL(w->state), PANGO_ELLIPSIZE_END);
    gtk_label_set_xalign(GTK_LABEL(w->state), 0);
    gtk_widget_set_hexpand(w->state, TRUE);
    gtk_widget_set_vexpand(scroll, TRUE);
    gtk_widget_set_visible(w->bar, FALSE);
    g_signal_connect(w->entry, "activate", G_CALLBACK(on_entry), w);
    gtk_scrolled_window_set_child(GTK_SCROLLED_WINDOW(scroll), w->view);
    gtk_box_append(GTK_BOX(line), w->state);
    gtk_box_append(GTK_BOX(line), w->figures);
    gtk_box_append(GTK_BOX(body), scroll);
    gtk_box_append(GTK_BOX(body), w->bar);
    gtk_box_append(GTK_BOX(body), w->entry);
    gtk_box_append(GTK_BOX(body), line);
    gtk_widget_set_margin_start(body, MARGIN);
    gtk_widget_set_margin_end(body, MARGIN);
    gtk_widget_set_margin_top(body, MARGIN);
    gtk_widget_set_margin_bottom(body, MARGIN);
    return body;
}

window *window_new(GtkApplication *app, gboolean dark)
{
    window *w = g_new0(window, 1);
    w->self = gtk_application_window_new(app);
    g_object_ref(w->self);
    g_object_set(gtk_settings_get_default(), "gtk-application-prefer-dark-theme", dark, NULL);
    gtk_window_set_title(GTK_WINDOW(w->self), "tenon");
    gtk_window_set_default_size(GTK_WINDOW(w->self), WIDTH, HEIGHT);
    gtk_window_set_titlebar(GTK_WINDOW(w->self), make_header(w));
    gtk_window_set_child(GTK_WINDOW(w->self), make_body(w));
    w->pending = g_string_new(NULL);
    set_busy(w, FALSE);
    append(w, "Open a model, then ask it something below.\n\n"); // also reads the fonts before anything runs
    w->talk = talk_new(on_report, w);
    w->refresh = g_timeout_add(REFRESH_MS, on_refresh, w);
    gtk_window_present(GTK_WINDOW(w->self));
    return w;
}

void window_free(window *w)
{
    if (!w) return;
    w->fn = NULL;
    g_source_remove(w->refresh);
    if (w->flush) g_source_remove(w->flush);
    talk_free(w->talk);
    g_object_unref(w->self);
    g_string_free(w->pending, TRUE);
    g_free(w->name);
    g_free(w->path);
    g_free(w->device);
    g_free(w);
}

void window_watch(window *w, window_fn fn, void *user)
{
    w->fn = fn;
    w->fn_user = user;
}

talk *window_talk(window *w)
{
    return w->talk;
}

GtkWidget *window_widget(window *w)
{
    return w->self;
}
