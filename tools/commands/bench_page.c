// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon bench --html: all that one run measured as a page that needs no scripts and no other files.
#include "tools/commands/bench.h"
#include "tools/costs/chart.h"
#include "tools/costs/roofline.h"
#include "tools/costs/svg.h"

#include <stdlib.h>
#include <string.h>

// The lines of one picture; points of all of them lie in one array.
typedef struct lines {
    chart_series series[CHART_SERIES];
    int n, left_out; // series that the picture has no place for
    chart_point *points;
    int n_points;
} lines;

static void head(const bench_set *set, FILE *f)
{
    char text[512], size[32];
    for (int c = 0; c < set->n; c++) {
        const bench_state *s = set->cases[c];
        tn_device_info device = {.struct_size = sizeof device};
        tn_device *d = bench_device(s);
        if (d) tn_device_info_get(d, &device);
        fputs("<p><b>", f);
        svg_escaped(f, s->name);
        fputs("</b>: ", f);
        svg_escaped(f, s->info.arch);
        fprintf(f, ", %.2f B parameters, %s<br>", (double)s->info.n_params * 1e-9,
                size_text(s->info.weight_size, size, sizeof size));
        svg_escaped(f, device.description ? device.description : s->info.device);
        fprintf(f, "; %d threads", tn_context_n_threads(s->t.ctx));
        if (s->host_ns > 0) fprintf(f, "; host overhead %.1f us per decode step", s->host_ns * 1e-3);
        if (s->has_peaks) {
            bench_peaks_line(&s->peaks, text, sizeof text);
            fprintf(f, "<br>peaks measured %s: ", s->peaks.date);
            svg_escaped(f, text);
        }
        fputs("</p>\n", f);
    }
}

static void table_row(const bench_set *set, int c, int i, const char *tag, FILE *f)
{
    char cells[BENCH_COLUMNS][BENCH_CELL];
    bench_table_row(set, c, i, cells);
    fputs("<tr>", f);
    for (int k = 0; k < bench_table_columns(set); k++) {
        fprintf(f, "<%s%s>", tag, k > 1 ? " class=\"n\"" : "");
        svg_escaped(f, cells[k]);
        fprintf(f, "</%s>", tag);
    }
    fputs("</tr>\n", f);
}

static void table(const bench_set *set, FILE *f)
{
    fputs(
        "<h2>Speeds</h2>\n<p>Medians; ± is half of the range. pp: tokens of a prompt; tg: tokens one "
        "after another; @ d: with so many in the cache; x: so many sequences or texts at "
        "once.</p>\n<table>\n",
        f);
    table_row(set, 0, -1, "th", f);
    for (int c = 0; c < set->n; c++)
        for (int i = 0; i < set->cases[c]->n_results; i++) table_row(set, c, i, "td", f);
    fputs("</table>\n", f);
}

// --- pictures --------------------------------------------------------------------------------------------

// Speed over what varies while the rest of a test stays the same: its depth, or how many at once.
static bool is_like(const bench_result *a, const bench_result *b, bool over_depth)
{
    if (a->kind != b->kind || a->n != b->n) return false;
    return over_depth ? a->n_seq == b->n_seq : a->depth == b->depth;
}

static double position(const bench_result *r, bool over_depth)
{
    return over_depth ? (double)r->depth : (double)r->n_seq;
}

static int by_x(const void *a, const void *b)
{
    double x = ((const chart_point *)a)->x, y = ((const chart_point *)b)->x;
    return (x > y) - (x < y);
}

// All results like result i, if that is the first of them and there are several positions.
static void add_line(lines *l, const bench_set *set, int c, int i, bool over_depth)
{
    const bench_state *s = set->cases[c];
    const bench_result *r = &s->results[i];
    chart_point *points = l->points + l->n_points;
    int n = 0;
    for (int k = 0; k < s->n_results; k++) {
        const bench_result *q = &s->results[k];
        if (!is_like(r, q, over_depth)) continue;
        if (k < i) return;
        points[n++] = (chart_point){position(q, over_depth), q->median, q->spread};
    }
    qsort(points, (size_t)n, sizeof *points, by_x);
    if (n < 2 || points[0].x == points[n - 1].x) return;
    if (l->n == CHART_SERIES) {
        l->left_out++;
        return;
    }
    chart_series *line = &l->series[l->n++];
    bench_result shown_test = *r;
    char test[64];
    if (over_depth)
        shown_test.depth = 0;
    else if (r->kind == BENCH_DECODE)
        shown_test.n_seq = 1;
    bench_test_name(s, &shown_test, test, sizeof test);
    snprintf(line->name, sizeof line->name, "%.40s%s%.30s", test, set->n > 1 ? ", " : "",
             set->n > 1 ? path_base(s->name) : "");
    clean_text(line->name);
    line->points = points;
    line->n = n;
    l->n_points += n;
}

static void draw(const lines *l, const char *title, const char *x, const char *y, bool doubling, FILE *f)
{
    chart c = {
        .title = title, .x_label = x, .y_label = y, .doubling = doubling, .series = l->series, .n = l->n};
    chart_draw(&c, f);
    if (l->left_out > 0)
        fprintf(f, "<p>%d more lines have no place in the picture; the table has them.</p>\n", l->left_out);
}

typedef struct speed_kind {
    bool over_depth, decode; // decode: of results of decoding only; else of the others only
    const char *title, *x_label, *y_label, *absent;
} speed_kind;

static const speed_kind speed_kinds[] = {
    {true, false, "Prompts over depth", "tokens that are in the cache before", "tokens per second",
     "Prompts over depth: needs several depths, as -d 0,1024,4096."},
    {true, true, "Decoding over depth", "tokens that are in the cache before",
     "tokens per second, of all sequences together", "Decoding over depth: needs several depths."},
    {false, true, "Decoding over batch", "sequences at once", "tokens per second, of all sequences together",
     "Decoding over batch: needs several numbers of sequences, as --sequences 1,2,4,8."},
    {false, false, "Texts over batch", "texts at once", "tokens per second", NULL},
};

static void speed_picture(const bench_set *set, const speed_kind *kind, FILE *f)
{
    lines l = {.n = 0};
    size_t most = 1;
    for (int c = 0; c < set->n; c++) most += (size_t)set->cases[c]->n_results;
    l.points = calloc(most, sizeof *l.points);
    for (int c = 0; c < set->n && l.points; c++)
        for (int i = 0; i < set->cases[c]->n_results; i++)
            if ((set->cases[c]->results[i].kind == BENCH_DECODE) == kind->decode)
                add_line(&l, set, c, i, kind->over_depth);
    if (l.n > 0)
        draw(&l, kind->title, kind->x_label, kind->y_label, !kind->over_depth, f);
    else if (kind->absent)
        fprintf(f, "<p>%s</p>\n", kind->absent);
    free(l.points);
}

// What is allocated; of files that are mapped also with the weights, which are pages of the file.
static void add_memory(lines *l, const bench_set *set, int c, bool weights)
{
    enum { MIB = 1 << 20 };
    const bench_state *s = set->cases[c];
    bool mapped = !bench_is_random(set->opt) && !opt_flag(set->opt, OPT_NO_MMAP);
    if (l->n == CHART_SERIES || s->n_samples == 0 || (weights && !mapped)) return;
    chart_series *line = &l->series[l->n++];
    snprintf(line->name, sizeof line->name, "%s%s%.30s", weights ? "and mapped weights" : "allocated",
             set->n > 1 ? ", " : "", set->n > 1 ? path_base(s->name) : "");
    clean_text(line->name);
    line->points = l->points + l->n_points;
    line->n = s->n_samples;
    line->steps = true;
    double more = weights ? (double)(s->info.weight_size - s->info.device_size) : 0;
    for (int i = 0; i < s->n_samples; i++)
        l->points[l->n_points++] = (chart_point){(double)(s->samples[i].at - set->cases[0]->begin_ns) * 1e-9,
                                                 (s->samples[i].allocated + more) / MIB, 0};
}

static void memory_picture(const bench_set *set, FILE *f)
{
    lines l = {.n = 0};
    l.points = calloc(2 * (size_t)set->n * BENCH_SAMPLES, sizeof *l.points);
    for (int c = 0; c < set->n && l.points; c++)
        for (int weights = 0; weights < 2; weights++) add_memory(&l, set, c, weights);
    draw(&l, "Memory over time", "seconds since the start", "MiB", false, f);
    fputs("<p>Allocated by the library, on all devices together.</p>\n", f);
    free(l.points);
}

static void rooflines(const bench_set *set, FILE *f)
{
    fputs("<h2>Where the time goes</h2>\n", f);
    bool any = false;
    for (int c = 0; c < set->n; c++) {
        if (!set->cases[c]->roofline) continue;
        any = true;
        roof_section(set->cases[c]->roofline, f);
    }
    if (!any)
        fputs("<p>No rooflines: they need peaks (without --no-peaks; on a GPU `tenon roofline` measures them "
              "once), and a model that makes tokens.</p>\n",
              f);
}

void bench_page(const bench_set *set, FILE *f)
{
    svg_page_begin(f, "tenon bench");
    fputs("<h1>tenon bench</h1>\n", f);
    head(set, f);
    table(set, f);
    fputs("<h2>Pictures</h2>\n", f);
    for (size_t i = 0; i < sizeof speed_kinds / sizeof *speed_kinds; i++)
        speed_picture(set, &speed_kinds[i], f);
    memory_picture(set, f);
    rooflines(set, f);
    svg_page_end(f);
}
