// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/batch.h"

#include "tools/terminal/progress.h"

#include "tools/common.h"

#include <stdlib.h>

enum { PROGRESS_NS = 250000000 };

void batch_times_add(batch_times *t, uint64_t ns)
{
    if (t->n == t->capacity) {
        size_t capacity = t->capacity * 2 + 1024;
        float *more = realloc(t->ms, capacity * sizeof *more);
        if (!more) return;
        t->ms = more;
        t->capacity = capacity;
    }
    t->ms[t->n++] = (float)((double)ns * 1e-6);
}

static double seconds(const batch_figures *f)
{
    return (double)(now_ns() - f->start_ns) * 1e-9;
}

void batch_progress(batch_figures *f, bool end)
{
    if (!terminal_moves(stderr)) return;
    if (end) {
        fputs("\r\033[K", stderr);
        return;
    }
    if (now_ns() - f->shown_ns < PROGRESS_NS) return;
    f->shown_ns = now_ns();
    fprintf(stderr, "\r%zu of %zu answers, %.0f tokens/s\033[K", f->n_before + f->n_answers, f->n_total,
            (double)f->n_generated / seconds(f));
    fflush(stderr);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void put_percentiles(const char *what, batch_times *t)
{
    if (t->n == 0) return;
    qsort(t->ms, t->n, sizeof *t->ms, by_value);
    fprintf(stderr, "%s: median %.1f ms, 90 %% %.1f, 99 %% %.1f, most %.1f\n", what, (double)t->ms[t->n / 2],
            (double)t->ms[t->n * 9 / 10], (double)t->ms[t->n * 99 / 100], (double)t->ms[t->n - 1]);
}

static void put_passes(const tn_engine_stats *e)
{
    if (e->n_timed == 0) return;
    double ms = (double)e->step_ns * 1e-6, host = ms - (double)e->wait_ns * 1e-6, n = (double)e->n_timed;
    fprintf(stderr,
            "passes: %llu without new plans, %.2f ms each, %.2f of the processor; %.1f %% of the tokens were "
            "selected on the device\n",
            (unsigned long long)e->n_timed, ms / n, host / n,
            e->n_generated ? 100.0 * (double)e->n_sampled / (double)e->n_generated : 0.0);
}

void batch_report(batch_figures *f, const tn_engine_stats *engine)
{
    double s = seconds(f);
    uint64_t prompts = f->n_prompt + f->n_reused;
    fprintf(stderr, "answers: %zu in %.1f s, %.2f per second; %zu failed, %zu were there before\n",
            f->n_answers, s, (double)f->n_answers / s, f->n_failed, f->n_before);
    fprintf(stderr,
            "tokens: %llu generated, %.1f per second; %llu of prompts, %.1f %% of them in the cache\n",
            (unsigned long long)f->n_generated, (double)f->n_generated / s, (unsigned long long)prompts,
            prompts ? 100.0 * (double)f->n_reused / (double)prompts : 0.0);
    put_percentiles("first token", &f->first);
    put_percentiles("gap between tokens", &f->gaps);
    put_passes(engine);
}

void batch_figures_fini(batch_figures *f)
{
    free(f->first.ms);
    free(f->gaps.ms);
}
