// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/costs/chart.h"

#include "tools/costs/svg.h"

#include <math.h>

enum { WIDTH = 1000, LEFT = 84, RIGHT = 660, TOP = 62, BOTTOM = 330, HEIGHT = 384, LEGEND = 684, ROW = 18 };
enum { TICK_GAP = 52, LEGEND_LETTERS = 42 }; // pixels between the names of two ticks, at least

typedef struct axes {
    double x0, x1, y1; // y begins at 0
    bool doubling;
} axes;

static double place(const axes *a, double x)
{
    return a->doubling ? log2(fmax(x, 1e-9)) : x;
}

static double px(const axes *a, double x)
{
    double width = place(a, a->x1) - place(a, a->x0);
    return LEFT + (width > 0 ? (place(a, x) - place(a, a->x0)) / width : 0.5) * (RIGHT - LEFT);
}

static double py(const axes *a, double y)
{
    return BOTTOM - y / a->y1 * (BOTTOM - TOP);
}

// 1, 2 or 5 times a power of ten: the distance of about `n` ticks over a length.
static double tick_step(double length, int n)
{
    double rough = fmax(length / n, 1e-9), power = pow(10, floor(log10(rough)));
    return power * (rough > 5 * power ? 10 : rough > 2 * power ? 5 : rough > power ? 2 : 1);
}

static axes find_axes(const chart *c)
{
    axes a = {.x0 = INFINITY, .x1 = -INFINITY, .doubling = c->doubling};
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->series[i].n; k++) {
            const chart_point *q = &c->series[i].points[k];
            a.x0 = fmin(a.x0, q->x), a.x1 = fmax(a.x1, q->x), a.y1 = fmax(a.y1, q->y + q->spread);
        }
    double step = tick_step(fmax(a.y1, 1e-9), 5);
    a.y1 = ceil(fmax(a.y1, 1e-9) / step) * step;
    return a;
}

static void draw_axes(const chart *c, const axes *a, FILE *f)
{
    double step = tick_step(a->y1, 5);
    for (double y = 0; y <= a->y1 * 1.0001; y += step) {
        svg_line(f, LEFT, py(a, y), RIGHT, py(a, y), "grid");
        svg_text(f, LEFT - 8, py(a, y) + 4, "end", "dim", "%.6g", y);
    }
    step = a->x1 > a->x0 ? tick_step(a->x1 - a->x0, 8) : 1;
    double first = c->doubling ? exp2(ceil(log2(fmax(a->x0, 1e-9)))) : ceil(a->x0 / step) * step, last = -1e9;
    for (double x = first; x <= a->x1 + 1e-9; x = c->doubling ? 2 * x : x + step) {
        double at = px(a, x);
        if (at - last < TICK_GAP) continue;
        last = at;
        svg_line(f, at, TOP, at, BOTTOM, "grid");
        svg_text(f, at, BOTTOM + 18, "middle", "dim", "%.6g", x);
    }
    svg_line(f, LEFT, BOTTOM, RIGHT, BOTTOM, "sfg");
    svg_line(f, LEFT, TOP, LEFT, BOTTOM, "sfg");
    svg_text(f, (LEFT + RIGHT) / 2.0, BOTTOM + 40, "middle", "fg", "%s", c->x_label);
    svg_text(f, 16, TOP - 14, "start", "fg", "%s", c->y_label);
}

// Solid for the first SVG_COLOURS series, dashed for the others.
static const char *dashes(int i)
{
    return i < SVG_COLOURS ? "none" : "5 4";
}

static void draw_series(const chart_series *s, int colour, const axes *a, FILE *f)
{
    fprintf(f, "<polyline class=\"c%d\" style=\"fill:none;stroke-width:2;stroke-dasharray:%s\" points=\"",
            colour % SVG_COLOURS, dashes(colour));
    for (int i = 0; i < s->n; i++) {
        if (s->steps && i > 0) fprintf(f, "%.1f,%.1f ", px(a, s->points[i].x), py(a, s->points[i - 1].y));
        fprintf(f, "%.1f,%.1f ", px(a, s->points[i].x), py(a, s->points[i].y));
    }
    fputs("\"/>\n", f);
    for (int i = 0; i < s->n && !s->steps; i++) {
        const chart_point *q = &s->points[i];
        char class[8];
        snprintf(class, sizeof class, "c%d", colour % SVG_COLOURS);
        if (q->spread > 0)
            svg_line(f, px(a, q->x), py(a, fmax(q->y - q->spread, 0)), px(a, q->x), py(a, q->y + q->spread),
                     class);
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"%s\"><title>", px(a, q->x), py(a, q->y),
                class);
        svg_escaped(f, s->name);
        fprintf(f, ": %.6g, spread %.3g</title></circle>\n", q->y, q->spread);
    }
}

void chart_draw(const chart *c, FILE *f)
{
    axes a = find_axes(c);
    int height = TOP + 8 + c->n * ROW > HEIGHT ? TOP + 8 + c->n * ROW : HEIGHT;
    svg_begin(f, WIDTH, height, c->title);
    svg_text(f, 16, 24, "start", "fg b h", "%s", c->title);
    draw_axes(c, &a, f);
    for (int i = 0; i < c->n; i++) {
        double y = TOP + 8 + ROW * i;
        draw_series(&c->series[i], i, &a, f);
        fprintf(f,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"c%d\" style=\"stroke-width:3;"
                "stroke-dasharray:%s\"/>\n",
                LEGEND, y - 4, LEGEND + 22, y - 4, i % SVG_COLOURS, dashes(i));
        svg_text(f, LEGEND + 30, y, "start", "fg", "%.*s", LEGEND_LETTERS, c->series[i].name);
    }
    svg_end(f);
}
