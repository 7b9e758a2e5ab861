// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "pulse.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_MS = 1, STARVED_US = 4000, SPANS = 1024 };

typedef struct span {
    gint64 from, to;
} span;

struct pulse {
    guint source;
    gint64 last, last_work, last_delay;
    int schedstat; // of the main loop's thread, -1: this system has none
    pulse_result result;
    GThread *thread;
    gint end;
    GMutex lock; // guards what follows: the last times at which the thread was late
    span late[SPANS];
    guint n_late;
    gint64 starved_us;
    guint control[PULSE_CLASSES]; // of the thread alone
};

// The class of a gap: 0 for up to 1 ms, each next one for twice as long.
static guint class_of(gint64 gap_us)
{
    guint i = 0;
    while (i < PULSE_CLASSES - 1 && gap_us > (G_GINT64_CONSTANT(1000) << i)) i++;
    return i;
}

static gpointer watch(gpointer user)
{
    pulse *p = user;
    gint64 last = g_get_monotonic_time();
    while (!g_atomic_int_get(&p->end)) {
        g_usleep(EVERY_MS * 1000);
        gint64 now = g_get_monotonic_time();
        p->control[class_of(now - last)]++;
        if (now - last > STARVED_US) {
            g_mutex_lock(&p->lock);
            p->late[p->n_late++ % SPANS] = (span){last, now};
            p->starved_us = MAX(p->starved_us, now - last);
            g_mutex_unlock(&p->lock);
        }
        last = now;
    }
    return NULL;
}

// Time in [from, to) in which the thread did not run either.
static gint64 starved_in(pulse *p, gint64 from, gint64 to)
{
    gint64 sum = 0;
    g_mutex_lock(&p->lock);
    for (guint i = 0; i < MIN(p->n_late, SPANS); i++) {
        gint64 a = MAX(from, p->late[i].from), b = MIN(to, p->late[i].to);
        if (b > a) sum += b - a;
    }
    g_mutex_unlock(&p->lock);
    return sum;
}

static gint64 work_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (gint64)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

// Time for which the thread could run and got no core.
static gint64 delay_us(const pulse *p)
{
    char text[96] = "";
    if (p->schedstat < 0 || pread(p->schedstat, text, sizeof text - 1, 0) <= 0) return 0;
    const char *second = strchr(text, ' ');
    return second ? g_ascii_strtoll(second, NULL, 10) / 1000 : 0;
}

static gboolean beat(gpointer user)
{
    pulse *p = user;
    gint64 now = g_get_monotonic_time(), gap = now - p->last;
    p->result.loop[class_of(gap)]++;
    p->result.longest_us = MAX(p->result.longest_us, gap);
    p->result.n_late += gap > PULSE_LIMIT_US;
    gint64 alone = gap > STARVED_US ? gap - starved_in(p, p->last, now) : gap;
    p->result.longest_alone_us = MAX(p->result.longest_alone_us, alone);
    p->result.n_late_alone += alone > PULSE_LIMIT_US;
    gint64 delay = delay_us(p), own = gap - (delay - p->last_delay);
    p->result.longest_own_us = MAX(p->result.longest_own_us, own);
    p->result.n_late_own += own > PULSE_LIMIT_US;
    p->last_delay = delay;
    gint64 work = work_us();
    p->result.longest_work_us = MAX(p->result.longest_work_us, work - p->last_work);
    p->result.n_late_work += work - p->last_work > PULSE_LIMIT_US;
    p->last_work = work;
    p->last = now;
    return G_SOURCE_CONTINUE;
}

pulse *pulse_start(void)
{
    pulse *p = g_new0(pulse, 1);
    g_mutex_init(&p->lock);
    p->last = g_get_monotonic_time();
    p->last_work = work_us();
    p->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    p->last_delay = delay_us(p);
    p->thread = g_thread_new("pulse", watch, p);
    p->source = g_timeout_add_full(G_PRIORITY_HIGH, EVERY_MS, beat, p, NULL);
    return p;
}

pulse_result pulse_stop(pulse *p)
{
    g_source_remove(p->source);
    g_atomic_int_set(&p->end, 1);
    g_thread_join(p->thread);
    if (p->schedstat >= 0) close(p->schedstat);
    pulse_result result = p->result;
    result.starved_us = p->starved_us;
    memcpy(result.control, p->control, sizeof result.control);
    g_mutex_clear(&p->lock);
    g_free(p);
    return result;
}
