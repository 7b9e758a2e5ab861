// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A plan as SVG. Above, the arena: a rectangle for each value, to the right the steps during which it lives,
// upwards its bytes; arenas of several devices lie above each other. Below, the ops as recorded beside the
// steps that do their work, repeated layers once.
#include "core/number.h"
#include "graph/dump.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 1000,
    LEFT = 92,
    RIGHT = 976,
    TOP = 84,
    CHART = 330,
    BOTTOM = TOP + CHART,
    LINE = 15,
    GAP = 8
};
enum {
    OPS_X = 92,
    OPS_W = 400,
    STEPS_X = 532,
    STEPS_W = 444,
    TEXT_W = 7
}; // TEXT_W: width of a letter, about
enum { STEPS_MAX = 500 };

// Blue, orange, green, violet by device; the colours of values are lighter than their text in both schemes.
static const char style[] =
    "<style>svg{font-family:monospace;font-size:11px}.bg{fill:#fff}.fg{fill:#1a1a1a}.dim{fill:#666}"
    ".b{font-weight:bold}.h{font-size:15px}.line{stroke:#1a1a1a;fill:none}.grid{stroke:#ddd}"
    ".bound{stroke:#c00;stroke-dasharray:6 3;fill:none}.red{fill:#c00}.run{stroke:#888;stroke-dasharray:3 "
    "3;fill:none}"
    ".v{stroke:#555;stroke-width:.4}.v0{fill:#9ecae1}.v1{fill:#fdae6b}.v2{fill:#a1d99b}.v3{fill:#bcbddc}"
    ".v4{fill:#fdd0a2}.v5{fill:#c7e9c0}.on{fill:#1a1a1a}"
    ".d0{fill:#dbe9f6;stroke:#4a7fb0}.d1{fill:#fbe3c8;stroke:#c77a1e}.d2{fill:#d9ecd2;stroke:#4f8f3a}"
    ".d3{fill:#e6dcef;stroke:#7a5195}.op{fill:none;stroke:#999}.fused{fill:none;stroke:#d55e00;stroke-width:"
    "1.6}"
    ".why{fill:#c04e00}.move{stroke-width:3}"
    "@media screen and (prefers-color-scheme:dark){.bg{fill:#16181c}.fg{fill:#e8e8e8}.dim{fill:#a8a8a8}"
    ".line{stroke:#e8e8e8}.grid{stroke:#3a3d44}.bound{stroke:#ff7070}.red{fill:#ff8080}.why{fill:#ffa060}"
    ".d0{fill:#1d3348}.d1{fill:#46331c}.d2{fill:#223a1c}.d3{fill:#35283f}}</style>\n";

static void put_escaped(tn_strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            tn_strbuf_puts(out, "&lt;");
        else if (*text == '&')
            tn_strbuf_puts(out, "&amp;");
        else if (*text == '"')
            tn_strbuf_puts(out, "&quot;");
        else
            tn_strbuf_append(out, text, 1);
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

typedef struct spot {
    double x, y;
    const char *class, *anchor;
} spot;

// Text that is cut, with a sign that it is, at `most` letters.
static void put_label(tn_strbuf *out, const spot *at, int32_t most, const char *text)
{
    char cut[256];
    size_t n = strlen(text), limit = TN_MIN((size_t)most, sizeof cut - 4);
    snprintf(cut, sizeof cut, "%.*s%s", (int)(n > limit ? limit - 2 : n), text, n > limit ? ".." : "");
    tn_strbuf_printf(out, "<text class=\"%s\" text-anchor=\"%s\"", at->class, at->anchor);
    put_length(out, "x", at->x);
    put_length(out, "y", at->y);
    tn_strbuf_puts(out, ">");
    put_escaped(out, cut);
    tn_strbuf_puts(out, "</text>\n");
}

static void put_line(tn_strbuf *out, double x1, double y1, double x2, double y2, const char *class)
{
    tn_strbuf_printf(out, "<line class=\"%s\"", class);
    put_length(out, "x1", x1);
    put_length(out, "y1", y1);
    put_length(out, "x2", x2);
    put_length(out, "y2", y2);
    tn_strbuf_puts(out, "/>\n");
}

static void put_box(tn_strbuf *out, double x, double y, double w, double h, const char *class)
{
    tn_strbuf_printf(out, "<rect class=\"%s\" rx=\"3\"", class);
    put_length(out, "x", x);
    put_length(out, "y", y);
    put_length(out, "width", w);
    put_length(out, "height", h);
    tn_strbuf_puts(out, "/>\n");
}

static const char *bytes_text(double bytes, char *buf, size_t size)
{
    static const char *const suffixes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    while (bytes >= 1024 && i + 1 < TN_COUNT(suffixes)) bytes /= 1024, i++;
    bool fine = bytes < 10 && i > 0;
    char number[24];
    snprintf(number, sizeof number, "%.*f", fine, bytes);
    if (fine) tn_number_point(number);
    snprintf(buf, size, "%s %s", number, suffixes[i]);
    return buf;
}

// --- arena -------------------------------------------------------------------------------------------------

// Bytes of the arenas below that of a device.
static size_t arena_base(const tn_plan *p, int32_t device)
{
    size_t base = 0;
    for (int32_t d = 0; d < device; d++) base += p->arena_size[d];
    return base;
}

typedef struct scale {
    double step, byte;    // width and height of one
    const int32_t *steps; // steps before each node: lifetimes are in nodes, of which views are no steps
    double peak;          // where the line of the device's peak is; no name crosses it
} scale;

static void put_storage(const tn_plan *p, int32_t value, const scale *s, tn_strbuf *out)
{
    const tn_place *pl = &p->places[value];
    const char *name = p->graph->values[value]->name ? p->graph->values[value]->name : "?";
    int32_t first = s->steps[pl->first], last = s->steps[pl->last + 1] - 1;
    double h = (double)pl->size * s->byte, w = (TN_MAX(last - first, 0) + 1) * s->step,
           x = LEFT + first * s->step,
           y = BOTTOM - (double)(arena_base(p, pl->device) + pl->offset) * s->byte - h;
    tn_strbuf_printf(out, "<rect class=\"v v%d\"", value % 6);
    put_length(out, "x", x);
    put_length(out, "y", y);
    put_length(out, "width", w);
    put_length(out, "height", h);
    tn_strbuf_puts(out, "><title>");
    put_escaped(out, name);
    tn_strbuf_printf(out, ": %zu bytes at %zu of %s, steps %d to %d</title></rect>\n", pl->size, pl->offset,
                     p->devices[pl->device]->name, first, last);
    double letters = TEXT_W * (double)strlen(name), at = x + 3;
    if (at < s->peak + 3 && at + letters > s->peak - 3) at = s->peak + 4;
    if (h >= 13 && at + letters + 3 <= x + w)
        put_label(out, &(spot){at, y + h / 2 + 4, "on", "start"}, 64, name);
}

// The step at which most bytes are alive, of the device with the largest arena.
static int32_t peak_step(const tn_plan *p, int32_t device, size_t *bytes)
{
    int32_t best = 0;
    *bytes = 0;
    for (int32_t i = 0; i < p->graph->n_nodes; i++) {
        size_t sum = 0;
        for (int32_t v = 0; v < p->graph->n_values; v++) {
            const tn_place *pl = &p->places[v];
            if (pl->in_arena && pl->device == device && pl->first <= i && i <= pl->last) sum += pl->size;
        }
        if (sum > *bytes) *bytes = sum, best = i;
    }
    return best;
}

static double nice_step(double most, int32_t n)
{
    double step = 1;
    while (step * n < most) step *= 2;
    return step;
}

static void put_axes(const tn_plan *p, const scale *s, tn_strbuf *out)
{
    char text[32];
    double bytes = (double)p->info.arena_size, steps = p->n_steps;
    for (double b = 0, by = nice_step(bytes, 6); b <= bytes; b += by) {
        double y = BOTTOM - b * s->byte;
        put_line(out, LEFT, y, RIGHT, y, "grid");
        put_label(out, &(spot){LEFT - 6, y + 4, "dim", "end"}, 32, bytes_text(b, text, sizeof text));
    }
    for (double i = 0, by = nice_step(steps, 12); i <= steps; i += by) {
        double x = LEFT + i * s->step;
        put_line(out, x, BOTTOM, x, BOTTOM + 4, "line");
        snprintf(text, sizeof text, "%.0f", i);
        put_label(out, &(spot){x, BOTTOM + 17, "dim", "middle"}, 32, text);
    }
    put_label(out, &(spot){(LEFT + RIGHT) / 2.0, BOTTOM + 34, "fg", "middle"}, 64,
              "steps, in the order in which they run");
    put_label(out, &(spot){12, TOP - 10, "fg", "start"}, 64, "bytes of the arena");
}

// The lower bound of each arena, and the step that decides it.
static void put_bounds(const tn_plan *p, const scale *s, tn_strbuf *out)
{
    char text[96], size[32];
    for (int32_t d = 0; d < p->n_devices; d++) {
        if (p->arena_size[d] == 0) continue;
        size_t bytes;
        int32_t at = s->steps[peak_step(p, d, &bytes)];
        double base = BOTTOM - (double)arena_base(p, d) * s->byte,
               y = base - (double)p->arena_bound[d] * s->byte, x = LEFT + (at + 0.5) * s->step;
        put_line(out, LEFT, base, RIGHT, base, "line");
        put_line(out, LEFT, y, RIGHT, y, "bound");
        put_line(out, x, base, x, y - 6, "bound");
        bytes_text((double)p->arena_bound[d], size, sizeof size);
        snprintf(text, sizeof text, "%s: lower bound %s, reached at step %d", p->devices[d]->name, size, at);
        bool right = x > (LEFT + RIGHT) / 2.0;
        double start = TN_MAX(x + 5, LEFT + 60.0); // right of the name of the axis
        put_label(out, &(spot){right ? x - 5 : start, y - 5, "red", right ? "end" : "start"}, 90, text);
    }
}

static void put_arena(const tn_plan *p, const int32_t *steps, tn_strbuf *out)
{
    char text[160], size[32];
    size_t most;
    scale s = {(double)(RIGHT - LEFT) / (double)TN_MAX(p->n_steps, 1),
               p->info.arena_size ? (double)CHART / (double)p->info.arena_size : 0.0, steps, LEFT};
    bytes_text((double)p->info.arena_size, size, sizeof size);
    snprintf(text, sizeof text, "%d ops recorded, %d steps, %d launches; arena %s", p->info.n_recorded,
             p->n_steps, p->info.n_launches, size);
    put_label(out, &(spot){12, 28, "fg b h", "start"}, 110, text);
    put_label(out, &(spot){12, 48, "dim", "start"}, 140,
              "A rectangle is a value: as wide as the steps that it lives, as high as its bytes. Hover for "
              "its name.");
    put_axes(p, &s, out);
    for (int32_t d = 0; d < p->n_devices; d++) {
        s.peak = LEFT + (steps[peak_step(p, d, &most)] + 0.5) * s.step;
        for (int32_t v = 0; v < p->graph->n_values; v++)
            if (p->places[v].in_arena && p->places[v].device == d) put_storage(p, v, &s, out);
    }
    put_bounds(p, &s, out);
    put_line(out, LEFT, TOP - 4, LEFT, BOTTOM, "line");
}

// --- ops and steps -----------------------------------------------------------------------------------------

static int32_t count_ops(const tn_plan *p, int32_t step)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++) n += p->ops[i].step == step;
    return n;
}

// Lines of a row: the ops and the reason on the left, two lines and the launches on the right.
static int32_t row_lines(const tn_plan *p, int32_t step)
{
    int32_t ops = count_ops(p, step);
    return TN_MAX(ops + (ops > 1), p->steps[step].n_launches > 1 ? 3 : 2);
}

static void put_ops(const tn_plan *p, int32_t step, double y, double height, tn_strbuf *out)
{
    char text[256], shape[96];
    int32_t n = count_ops(p, step);
    if (n == 0) return;
    put_box(out, OPS_X, y, OPS_W, height, n > 1 ? "fused" : "op");
    double at = y + LINE - 2;
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (p->ops[i].step != step) continue;
        snprintf(text, sizeof text, "%-12s %s", tn_op_name(p->ops[i].op),
                 tn_view_text(&p->ops[i].value->view, shape, sizeof shape));
        put_label(out, &(spot){OPS_X + 6, at, "fg", "start"}, OPS_W / TEXT_W, text);
        at += LINE;
    }
    if (n < 2) return;
    tn_strbuf why;
    tn_strbuf_init(&why, p->ctx);
    tn_dump_reason(p, step, &why);
    if (why.status == TN_OK && why.data)
        put_label(out, &(spot){OPS_X + 6, at, "why", "start"}, OPS_W / TEXT_W, why.data);
    if (why.status != TN_OK) out->status = why.status;
    tn_strbuf_fini(&why);
}

static void put_step(const tn_plan *p, int32_t i, double y, double height, tn_strbuf *out)
{
    const tn_plan_step *s = &p->steps[i];
    char text[256], shape[96], class[32];
    bool move = s->step.op == TN_OP_transfer;
    snprintf(class, sizeof class, "d%d%s", s->device % 4, move ? " move" : "");
    put_line(out, OPS_X + OPS_W, y + height / 2, STEPS_X, y + height / 2, "line");
    put_box(out, STEPS_X, y, STEPS_W, height, class);
    snprintf(text, sizeof text, "%d  %s  %s", i, tn_op_name(s->step.op),
             tn_view_text(&s->step.dst[0], shape, sizeof shape));
    put_label(out, &(spot){STEPS_X + 6, y + LINE - 2, "fg b", "start"}, STEPS_W / TEXT_W, text);
    snprintf(text, sizeof text, "%s on %s: %s%s", s->step.name, p->devices[s->device]->name, s->kernel,
             s->step.join.next & TN_JOIN_FOLD ? " (done by the next step)" : "");
    put_label(out, &(spot){STEPS_X + 6, y + 2 * LINE - 2, "dim", "start"}, STEPS_W / TEXT_W, text);
    if (s->n_launches < 2) return;
    size_t n = (size_t)snprintf(text, sizeof text, "%d launches:", s->n_launches);
    for (int32_t k = 0; k < s->n_launches && n < sizeof text; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s", tn_plan_launch_name(p, s, k));
    put_label(out, &(spot){STEPS_X + 6, y + 3 * LINE - 2, "dim", "start"}, STEPS_W / TEXT_W, text);
}

// Draws the runs from y on, or only measures them (out NULL). Returns where they end.
static double put_runs(const tn_plan *p, const tn_dump_run *runs, int32_t n_runs, double y, tn_strbuf *out)
{
    int32_t n = 0;
    for (int32_t r = 0; r < n_runs; r++) {
        double begin = y;
        for (int32_t k = 0; k < runs[r].length && n < STEPS_MAX; k++, n++) {
            int32_t step = runs[r].first + k;
            double height = row_lines(p, step) * LINE + 4;
            if (out) put_ops(p, step, y, height, out);
            if (out) put_step(p, step, y, height, out);
            y += height + GAP;
        }
        if (runs[r].times == 1 || !out) continue;
        char text[32];
        put_box(out, OPS_X - 10, begin - 4, WIDTH - OPS_X - 4, y - begin, "run");
        snprintf(text, sizeof text, "x %d", runs[r].times);
        put_label(out, &(spot){OPS_X - 16, (begin + y) / 2, "fg b h", "end"}, 32, text);
    }
    return y;
}

static void put_legend(const tn_plan *p, double y, tn_strbuf *out)
{
    put_label(out, &(spot){OPS_X, y, "fg b", "start"}, 64, "as recorded (framed: fused, and why)");
    put_label(out, &(spot){STEPS_X, y, "fg b", "start"}, 64, "the plan");
    double x = STEPS_X + 90;
    for (int32_t d = 0; d < p->n_devices; d++) {
        char class[8];
        snprintf(class, sizeof class, "d%d", d % 4);
        put_box(out, x, y - 10, 14, 12, class);
        put_label(out, &(spot){x + 20, y, "fg", "start"}, 24, p->devices[d]->name);
        x += 40 + TEXT_W * (double)strlen(p->devices[d]->name);
    }
}

void tn_plan_dump_svg(const tn_plan *p, tn_strbuf *out)
{
    enum { LEGEND_Y = BOTTOM + 66, RUNS_Y = LEGEND_Y + 16 };
    tn_dump_run *runs = tn_calloc(p->ctx, (size_t)p->n_steps + 1, sizeof *runs);
    int32_t n_nodes = p->graph->n_nodes, *steps = tn_calloc(p->ctx, (size_t)n_nodes + 2, sizeof *steps);
    if (!runs || !steps) {
        tn_free(p->ctx, runs);
        tn_free(p->ctx, steps);
        out->status = TN_ERR_MEMORY;
        return;
    }
    for (int32_t i = 0; i < n_nodes; i++) steps[i + 1] = steps[i] + !tn_node_is_view(p->graph->nodes[i]);
    steps[n_nodes + 1] = steps[n_nodes];
    int32_t n_runs = tn_dump_runs(p, runs);
    int height = (int)put_runs(p, runs, n_runs, RUNS_Y, NULL) + 16;
    tn_strbuf_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                     "height=\"%d\">\n%s<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n",
                     WIDTH, height, WIDTH, height, style, WIDTH, height);
    put_arena(p, steps, out);
    put_legend(p, LEGEND_Y, out);
    put_runs(p, runs, n_runs, RUNS_Y, out);
    tn_strbuf_puts(out, "</svg>\n");
    tn_free(p->ctx, runs);
    tn_free(p->ctx, steps);
}
