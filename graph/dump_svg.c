// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory plan as SVG: one rectangle per storage, x = the steps during which it lives, y = its bytes of
// the arena. The arenas of several devices lie above each other; below them is one line per step with its op
// and kernel.
#include "core/number.h"
#include "graph/dump.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 1200, CHART = 480, LINE = 14, MARGIN = 60, MAX_LINES = 500 };

static void put_escaped(tn_strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') tn_strbuf_puts(out, "&lt;");
        else if (*text == '&') tn_strbuf_puts(out, "&amp;");
        else if (*text == '"') tn_strbuf_puts(out, "&quot;");
        else tn_strbuf_append(out, text, 1);
    }
}

// An attribute.
static void put_length(tn_strbuf *out, const char *name, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", v);
    tn_number_point(text);
    tn_strbuf_printf(out, " %s=\"%s\"", name, text);
}

// Bytes of the arenas below that of a device.
static size_t arena_base(const tn_plan *p, int32_t device)
{
    size_t base = 0;
    for (int32_t d = 0; d < device; d++) base += p->arena_size[d];
    return base;
}

static void put_storage(const tn_plan *p, int32_t value, double per_step, double per_byte, tn_strbuf *out)
{
    static const char *const colours[] = {"#9ecae1", "#fdae6b", "#a1d99b", "#bcbddc", "#fdd0a2", "#c7e9c0"};
    const tn_place *pl = &p->places[value];
    const tn_tensor *t = p->graph->values[value];
    double h = (double)pl->size * per_byte, y = (double)(arena_base(p, pl->device) + pl->offset) * per_byte;
    tn_strbuf_puts(out, "<rect");
    put_length(out, "x", MARGIN + pl->first * per_step);
    put_length(out, "y", MARGIN + CHART - y - h);
    put_length(out, "width", (pl->last - pl->first + 1) * per_step);
    put_length(out, "height", h);
    tn_strbuf_printf(out, " fill=\"%s\" stroke=\"#555\" stroke-width=\"0.3\"><title>",
                     colours[(size_t)value % TN_COUNT(colours)]);
    put_escaped(out, t->name ? t->name : "?");
    tn_strbuf_printf(out, ": %zu bytes at %zu of %s, steps %d to %d</title></rect>\n", pl->size, pl->offset,
                     p->devices[pl->device]->name, pl->first, pl->last);
}

void tn_plan_dump_svg(const tn_plan *p, tn_strbuf *out)
{
    int32_t lines = TN_MIN(p->n_steps, MAX_LINES);
    int height = 2 * MARGIN + CHART + (lines + 2) * LINE;
    tn_strbuf_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                     "font-family=\"monospace\" font-size=\"11\">\n"
                     "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                     WIDTH + 2 * MARGIN, height);
    tn_strbuf_printf(
        out, "<text x=\"%d\" y=\"30\" font-size=\"14\">%d steps, arena %llu bytes, lower bound %llu</text>\n",
        MARGIN, p->n_steps, (unsigned long long)p->info.arena_size, (unsigned long long)p->info.arena_bound);
    double per_step = (double)WIDTH / (double)(p->graph->n_nodes + 1);
    double per_byte = p->info.arena_size ? (double)CHART / (double)p->info.arena_size : 0.0;
    for (int32_t v = 0; v < p->graph->n_values; v++)
        if (p->places[v].in_arena) put_storage(p, v, per_step, per_byte, out);
    for (int32_t d = 0; d < p->n_devices; d++) {
        if (p->arena_size[d] == 0 || p->n_devices == 1) continue;
        double y = MARGIN + CHART - (double)arena_base(p, d) * per_byte;
        tn_strbuf_printf(out, "<line x1=\"%d\" x2=\"%d\"", MARGIN, MARGIN + WIDTH);
        put_length(out, "y1", y);
        put_length(out, "y2", y);
        tn_strbuf_puts(out, " stroke=\"black\"/><text x=\"4\"");
        put_length(out, "y", y - 4);
        tn_strbuf_printf(out, ">%s</text>\n", p->devices[d]->name);
    }
    tn_strbuf_printf(out,
                     "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"black\"/>\n",
                     MARGIN, MARGIN, WIDTH, CHART);
    for (int32_t i = 0; i < lines; i++) {
        const tn_plan_step *s = &p->steps[i];
        char shape[96];
        tn_strbuf_printf(out, "<text x=\"%d\" y=\"%d\">%d %s %s %s %s ", MARGIN,
                         MARGIN + CHART + (i + 2) * LINE, i, p->devices[s->device]->name,
                         tn_op_name(s->step.op), s->kernel,
                         tn_view_text(&s->step.dst[0], shape, sizeof shape));
        put_escaped(out, s->step.name);
        for (int32_t k = 0; k < s->n_launches; k++) {
            tn_strbuf_puts(out, " &gt; ");
            put_escaped(out, tn_plan_launch_name(p, s, k));
        }
        if (s->step.join.next & TN_JOIN_FOLD) tn_strbuf_puts(out, " (done by the next step)");
        tn_strbuf_puts(out, "</text>\n");
    }
    tn_strbuf_puts(out, "</svg>\n");
}
