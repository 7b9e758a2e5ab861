// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "script.h"

#include "pulse.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

enum { BEGIN_MS = 1500, STOP_MS = 300, STEP_MAX_S = 60, TOKENS = 120, TOKENS_LONG = 1600 };

typedef enum step {
    STEP_OPEN,
    STEP_ASK,
    STEP_ASK_MORE,
    STEP_STOP,        // an answer that is stopped
    STEP_CANCEL_LOAD, // opening that is stopped, if it is not faster
    STEP_REOPEN,
    STEP_NO_MEMORY,
    STEP_AFTER_MEMORY,
    STEP_OPEN_LOSING, // on the device that is to be lost, where there is one
    STEP_LOST,
    STEP_OTHER_DEVICE, // opens anew, as after the loss of a device
    STEP_LAST,
    STEP_COUNT,
} step;

// clang-format off
static const char *const names[STEP_COUNT] = {
    "open", "first answer", "second answer", "stopped answer", "stopped opening", "open again",
    "memory runs out", "answer after it", "open to lose", "lost device", "open on a named device",
    "third answer"};
// clang-format on

struct script {
    window *w;
    char *path, *lose;
    void (*done)(void *user);
    void *user;
    pulse *pulse;
    gint64 end_us, begun_us;
    guint pieces, rounds, n_done, timer;
    step at;
    gboolean failed, over;
};

static void begin_step(script *s);

static gboolean on_begin(gpointer user)
{
    script *s = user;
    s->timer = 0;
    begin_step(s);
    return G_SOURCE_REMOVE;
}

static gboolean on_stop(gpointer user)
{
    script *s = user;
    s->timer = 0;
    talk_stop(window_talk(s->w));
    return G_SOURCE_REMOVE;
}

static void finish(script *s)
{
    if (s->over) return;
    s->over = TRUE;
    window_watch(s->w, NULL, NULL);
    s->done(s->user);
}

static void begin_step(script *s)
{
    static const char question[] = "Where does Mia live?", story[] = "Tell me a long story about a fox.";
    talk *t = window_talk(s->w);
    s->begun_us = g_get_monotonic_time();
    s->pieces = 0;
    switch (s->at) {
    case STEP_OPEN:
    case STEP_REOPEN:
        window_open(s->w, s->path, s->lose ? "cpu" : NULL);
        break;
    case STEP_OPEN_LOSING:
        window_open(s->w, s->path, NULL);
        break;
    case STEP_OTHER_DEVICE:
        window_open(s->w, s->path, "cpu");
        break;
    case STEP_CANCEL_LOAD:
        window_open(s->w, s->path, s->lose ? "cpu" : NULL);
        talk_stop(t);
        break;
    case STEP_NO_MEMORY:
        talk_fail_memory(t, TRUE);
        window_ask(s->w, question, TOKENS);
        break;
    case STEP_STOP:
        window_ask(s->w, story, 10 * TOKENS);
        break;
    case STEP_LOST:
        window_ask(s->w, story, s->lose ? TOKENS_LONG : TOKENS);
        if (!s->lose) talk_lose_device(t);
        break;
    default:
        window_ask(s->w, s->at == STEP_ASK ? question : story, TOKENS);
        break;
    }
}

// Whether the report ends the step, and whether as it should.
static gboolean is_end(script *s, const talk_report *r, gboolean *good)
{
    gboolean opened = r->what == TALK_OPENED, failed = r->what == TALK_FAILED;
    gboolean answered = r->what == TALK_ANSWERED;
    switch (s->at) {
    case STEP_OPEN:
    case STEP_REOPEN:
    case STEP_OPEN_LOSING:
    case STEP_OTHER_DEVICE:
        *good = opened;
        break;
    case STEP_CANCEL_LOAD:
        *good = opened || r->status == TN_ERR_CANCELLED;
        break;
    case STEP_NO_MEMORY:
        *good = failed && r->status == TN_ERR_MEMORY;
        break;
    case STEP_LOST:
        *good = failed && r->status == TN_ERR_DEVICE;
        break;
    case STEP_STOP:
        *good = answered && s->pieces > 0;
        break;
    default:
        *good = answered && s->pieces > 0;
        break;
    }
    return opened || failed || answered;
}

static void on_report(void *user, const talk_report *r)
{
    script *s = user;
    gboolean good;
    s->pieces += r->what == TALK_PIECE;
    if (s->at == STEP_STOP && r->what == TALK_PIECE && s->pieces == 1)
        s->timer = g_timeout_add(STOP_MS, on_stop, s);
    if (s->at == STEP_LOST && s->lose && r->what == TALK_ASKED) // while the answer is made
        s->failed = !g_file_set_contents(s->lose, "", 0, NULL);
    if (!is_end(s, r, &good)) return;
    if (s->timer) g_source_remove(s->timer);
    s->timer = 0;
    talk_fail_memory(window_talk(s->w), FALSE);
    if (!good) {
        printf("step '%s' ended otherwise: %s\n", names[s->at], r->text ? r->text : "");
        s->failed = TRUE;
    }
    if (s->lose && s->at == STEP_OTHER_DEVICE) g_remove(s->lose); // what was on the lost device is gone
    s->n_done++;
    s->at = (s->at + 1) % STEP_COUNT;
    s->rounds += s->at == 0;
    gint64 now = g_get_monotonic_time();
    if (s->failed || (now >= s->end_us && s->rounds > 0))
        finish(s);
    else
        s->timer = g_timeout_add(200, on_begin, s); // what a person needs at least
}

static gboolean on_watchdog(gpointer user)
{
    script *s = user;
    if (s->over) return G_SOURCE_REMOVE;
    if (g_get_monotonic_time() - s->begun_us < STEP_MAX_S * G_USEC_PER_SEC) return G_SOURCE_CONTINUE;
    printf("step '%s' does not end\n", names[s->at]);
    s->failed = TRUE;
    finish(s);
    return G_SOURCE_REMOVE;
}

// The first frames, for which GTK reads themes and fonts, are before the measurement.
static gboolean on_drawn(gpointer user)
{
    script *s = user;
    s->timer = 0;
    s->end_us += g_get_monotonic_time();
    s->pulse = pulse_start();
    begin_step(s);
    return G_SOURCE_REMOVE;
}

script *script_start(window *w, const char *path, const char *lose, int seconds, void (*done)(void *user),
                     void *user)
{
    script *s = g_new0(script, 1);
    *s = (script){.w = w, .path = g_strdup(path), .lose = g_strdup(lose), .done = done, .user = user};
    s->end_us = seconds * G_USEC_PER_SEC;
    s->begun_us = g_get_monotonic_time();
    window_watch(w, on_report, s);
    s->timer = g_timeout_add(BEGIN_MS, on_drawn, s);
    g_timeout_add_seconds(1, on_watchdog, s);
    return s;
}

static void print_classes(const char *name, const guint *n)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < PULSE_CLASSES; i++) printf("%s%u", i ? ", " : "", n[i]);
    printf("]");
}

int script_end(script *s)
{
    int code = s->failed || !s->pulse;
    if (s->pulse) {
        pulse_result r = pulse_stop(s->pulse);
        printf("{\"steps\": %u, \"rounds\": %u, \"failed\": %s, \"longest_ms\": %.1f, \"late\": %u, "
               "\"longest_with_a_free_core_ms\": %.1f, \"late_with_a_free_core\": %u, "
               "\"longest_work_ms\": %.1f, \"late_by_work\": %u, \"machine_stalled_ms\": %.1f, "
               "\"longest_own_ms\": %.1f, \"late_own\": %u",
               s->n_done, s->rounds, s->failed ? "true" : "false", (double)r.longest_us / 1e3, r.n_late,
               (double)r.longest_alone_us / 1e3, r.n_late_alone, (double)r.longest_work_us / 1e3,
               r.n_late_work, (double)r.starved_us / 1e3, (double)r.longest_own_us / 1e3, r.n_late_own);
        print_classes("loop_up_to_1_2_4_ms", r.loop);
        print_classes("control_up_to_1_2_4_ms", r.control);
        printf("}\n");
    }
    g_free(s->path);
    g_free(s->lose);
    g_free(s);
    return code;
}
