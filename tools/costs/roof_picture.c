// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The roofline as a picture. Both axes are logarithmic: to the right operations per byte, upwards operations
// per second. The slanted roof is the read peak, the level ones are the peaks of the precisions. Each family
// of ops is a circle in each phase, its area the share of the time of the phase; the legend says which.
#include "tools/costs/roofline.h"

#include "tools/costs/svg.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 1000,
    HEIGHT = 640,
    LEFT = 78,
    RIGHT = 640,
    TOP = 84,
    BOTTOM = 580,
    LEGEND = 664,
    POINTS = 32,
    LABELS = 160
};

typedef struct point {
    const char *family;
    int32_t phase, colour;
    int number; // beside its circle; 0: it has none
    double seconds, limit;
    cost_sum cost;
    double x, y, radius; // in the picture; radius 0: nothing is computed, so there is no place for it
} point;

typedef struct picture {
    const roofline *r;
    FILE *f;
    point points[POINTS];
    int n;
    double x0, x1, y0, y1; // decades at the edges
    svg_box labels[LABELS];
    int n_labels;
} picture;

// --- points ----------------------------------------------------------------------------------------------

static point *find_point(picture *p, const char *family, int32_t phase)
{
    int32_t colour = 0;
    for (int i = 0; i < p->n; i++) {
        bool same = strcmp(p->points[i].family, family) == 0;
        if (same && p->points[i].phase == phase) return &p->points[i];
        if (same)
            colour = p->points[i].colour;
        else if (p->points[i].colour >= colour)
            colour = p->points[i].colour + 1;
    }
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->points[i].family, family) == 0) colour = p->points[i].colour;
    if (p->n == POINTS) return NULL;
    p->points[p->n] = (point){.family = family, .phase = phase, .colour = colour % SVG_COLOURS};
    return &p->points[p->n++];
}

static void collect(picture *p)
{
    for (int32_t k = 0; k < ROOF_PHASES; k++)
        for (int32_t i = 0; i < p->r->phases[k].n_rows; i++) {
            const roof_row *row = &p->r->phases[k].rows[i];
            point *at = find_point(p, row->family, k);
            if (!at) continue;
            at->seconds += row->seconds;
            at->limit += row->limit;
            cost_add_sum(&at->cost, &row->cost);
        }
    for (int i = 1; i < p->n; i++) // the longest time of a phase first
        for (int k = i; k > 0 && p->points[k].phase == p->points[k - 1].phase &&
                        p->points[k].seconds > p->points[k - 1].seconds;
             k--) {
            point swap = p->points[k];
            p->points[k] = p->points[k - 1];
            p->points[k - 1] = swap;
        }
}

static double rate_of(const point *q)
{
    return q->seconds > 0 ? cost_ops(&q->cost) / q->seconds : 0;
}

static double intensity_of(const point *q)
{
    return cost_bytes(&q->cost) > 0 ? cost_ops(&q->cost) / cost_bytes(&q->cost) : 0;
}

static void find_ranges(picture *p)
{
    const peaks *k = &p->r->peaks;
    double least_x = 0.5, most_x = 2, least_y = k->read, most_y = 0;
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++)
        if (k->rate[i] > most_y) most_y = k->rate[i];
    most_x = fmax(most_x, 4 * most_y / k->read); // the level roofs have some length
    for (int i = 0; i < p->n; i++) {
        double x = intensity_of(&p->points[i]), y = rate_of(&p->points[i]);
        if (x <= 0 || y <= 0) continue;
        least_x = fmin(least_x, x), most_x = fmax(most_x, x);
        least_y = fmin(least_y, y), most_y = fmax(most_y, y);
    }
    p->x0 = floor(log10(least_x)), p->x1 = ceil(log10(most_x * 2));
    p->y0 = floor(log10(least_y)), p->y1 = ceil(log10(most_y * 1.3));
}

static double px(const picture *p, double intensity)
{
    return LEFT + (log10(intensity) - p->x0) / (p->x1 - p->x0) * (RIGHT - LEFT);
}

static double py(const picture *p, double rate)
{
    return BOTTOM - (log10(rate) - p->y0) / (p->y1 - p->y0) * (BOTTOM - TOP);
}

static void place(picture *p)
{
    int number = 0;
    for (int i = 0; i < p->n; i++) {
        point *q = &p->points[i];
        const roof_phase *phase = &p->r->phases[q->phase];
        if (intensity_of(q) <= 0 || rate_of(q) <= 0) continue;
        q->x = px(p, intensity_of(q)), q->y = py(p, rate_of(q));
        q->radius = 3 + 27 * sqrt(phase->wall > 0 ? fmin(q->seconds / phase->wall, 1) : 0);
        q->number = ++number;
    }
}

// --- drawing ---------------------------------------------------------------------------------------------

static void draw_axes(const picture *p)
{
    char text[32];
    for (double d = p->x0; d <= p->x1; d++) {
        double x = px(p, pow(10, d));
        svg_line(p->f, x, TOP, x, BOTTOM, "grid");
        svg_text(p->f, x, BOTTOM + 18, "middle", "dim", "%g", pow(10, d));
    }
    for (double d = p->y0; d <= p->y1; d++) {
        double y = py(p, pow(10, d));
        svg_line(p->f, LEFT, y, RIGHT, y, "grid");
        static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
        int prefix = (int)fmax(0, fmin(5, floor(d / 3)));
        snprintf(text, sizeof text, "%g %s", pow(10, d - 3 * prefix), prefixes[prefix]);
        svg_text(p->f, LEFT - 8, y + 4, "end", "dim", "%s", text);
    }
    svg_line(p->f, LEFT, BOTTOM, RIGHT, BOTTOM, "sfg");
    svg_line(p->f, LEFT, TOP, LEFT, BOTTOM, "sfg");
    svg_text(p->f, (LEFT + RIGHT) / 2.0, BOTTOM + 40, "middle", "fg", "operations per byte that is moved");
    svg_text(p->f, LEFT - 62, TOP - 12, "start", "fg", "operations per second");
}

static bool is_free(const picture *p, const svg_box *box, int of)
{
    if (box->x < LEFT || box->x + box->w > RIGHT || box->y < TOP || box->y + box->h > BOTTOM) return false;
    for (int i = 0; i < p->n_labels; i++)
        if (svg_overlap(box, &p->labels[i])) return false;
    for (int i = 0; i < p->n; i++) {
        const point *q = &p->points[i];
        double r = q->radius;
        if (i != of && r > 0 && svg_overlap(box, &(svg_box){q->x - r, q->y - r, 2 * r, 2 * r})) return false;
    }
    return true;
}

// Along the slope: the first place from below, above the line or below it, where nothing is.
static void label_slope(picture *p, const double from[2], const double to[2], const char *text)
{
    enum { LETTER = 7, PARTS = 8, PLACES = 20 };
    double length = hypot(to[0] - from[0], to[1] - from[1]), w = LETTER * (double)strlen(text),
           dx = (to[0] - from[0]) / length, dy = (to[1] - from[1]) / length;
    double best = 0.05 * length, side = -7;
    for (int k = 0; k < 2 * PLACES; k++) {
        double at = (0.03 + 0.9 * (k / 2) / PLACES) * length, away = k % 2 ? 16 : -7;
        bool ok = at + w < length;
        for (int i = 0; i <= PARTS && ok; i++) { // small boxes along the text
            double t = at + w * i / PARTS, middle = away - 4;
            svg_box box = {from[0] + dx * t - dy * middle - 5, from[1] + dy * t + dx * middle - 5, 10, 10};
            ok = is_free(p, &box, -1);
        }
        if (!ok) continue;
        best = at, side = away;
        break;
    }
    fprintf(p->f, "<text class=\"fg\" transform=\"translate(%.1f %.1f) rotate(%.1f)\">%s</text>\n",
            from[0] + dx * best - dy * side, from[1] + dy * best + dx * side, atan2(dy, dx) * 57.29578, text);
    for (int i = 0; i <= PARTS && p->n_labels < LABELS; i++) {
        double t = best + w * i / PARTS, middle = side - 4;
        p->labels[p->n_labels++] =
            (svg_box){from[0] + dx * t - dy * middle - 5, from[1] + dy * t + dx * middle - 5, 10, 10};
    }
}

// Beside a level roof: the first place from the right where nothing is, above the line or below it, in the
// first row or in the second; at most BEFORE left of where the roof begins.
static void label_roof(picture *p, double y, double from, const char *text)
{
    enum { LETTER = 7, H = 13, STEP = 20, BEFORE = 60 };
    static const double rows[] = {-15, 3, -30, 18};
    double w = LETTER * (double)strlen(text);
    svg_box box = {RIGHT - 4 - w, y - 15, w, H};
    bool found = false;
    for (double before = 0; before <= BEFORE && !found; before += BEFORE)
        for (size_t k = 0; k < sizeof rows / sizeof *rows && !found; k++)
            for (double x = RIGHT - 4 - w; x > from - w - before && !found; x -= STEP) {
                svg_box place = {x, y + rows[k], w, H};
                found = is_free(p, &place, -1);
                if (found) box = place;
            }
    svg_text(p->f, box.x + w, box.y + H - 2, "end", "fg", "%s", text);
    p->labels[p->n_labels++] = box;
}

// A line, and boxes along it that labels keep away from.
static void draw_roof(picture *p, const double from[2], const double to[2], int parts)
{
    svg_line(p->f, from[0], from[1], to[0], to[1], "roof");
    for (int i = 0; i < parts && p->n_labels < LABELS; i++) {
        double x1 = from[0] + (to[0] - from[0]) * i / parts,
               x2 = from[0] + (to[0] - from[0]) * (i + 1) / parts,
               y1 = from[1] + (to[1] - from[1]) * i / parts,
               y2 = from[1] + (to[1] - from[1]) * (i + 1) / parts;
        p->labels[p->n_labels++] = (svg_box){x1, fmin(y1, y2) - 1, x2 - x1, fabs(y2 - y1) + 2};
    }
}

// Peaks whose lines would lie within two pixels have one roof, at the highest of them.
#define EQUAL 0.93
typedef struct roof {
    double rate;
    char text[96]; // each precision with its own peak
} roof;

// The highest roof below a rate; `rate` 0: there is none.
static roof next_roof(const peaks *k, double below)
{
    roof r = {.rate = 0};
    char rate[32];
    size_t n = 0;
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++)
        if (k->rate[i] > r.rate && k->rate[i] < below) r.rate = k->rate[i];
    for (int32_t i = 0; i < TN_PRECISION_COUNT && r.rate > 0; i++) {
        if (k->rate[i] >= below || k->rate[i] > r.rate || k->rate[i] < EQUAL * r.rate) continue;
        const char *suffix = i == TN_PRECISION_int8 ? "OP/s" : "FLOP/s";
        if (n < sizeof r.text)
            n += (size_t)snprintf(r.text + n, sizeof r.text - n, "%s%s %s", n > 0 ? ", " : "",
                                  tn_precision_name(i), roof_rate(k->rate[i], suffix, rate, sizeof rate));
    }
    return r;
}

static void draw_roofs(picture *p)
{
    enum { PARTS = 48 };
    const peaks *k = &p->r->peaks;
    roof roofs[TN_PRECISION_COUNT];
    char rate[32], text[128];
    int n = 0;
    for (roof r = next_roof(k, 1e300); r.rate > 0 && n < TN_PRECISION_COUNT; r = next_roof(k, EQUAL * r.rate))
        roofs[n++] = r;
    double top = n > 0 ? roofs[0].rate : k->read, least = fmax(pow(10, p->x0), pow(10, p->y0) / k->read),
           from[2] = {px(p, least), py(p, least * k->read)}, to[2] = {px(p, top / k->read), py(p, top)};
    draw_roof(p, from, to, PARTS);
    for (int i = 0; i < n; i++) {
        double y = py(p, roofs[i].rate), x = fmax(px(p, roofs[i].rate / k->read), LEFT);
        draw_roof(p, (double[]){x, y}, (double[]){RIGHT, y}, 1);
    }
    for (int i = 0; i < n; i++)
        label_roof(p, py(p, roofs[i].rate), fmax(px(p, roofs[i].rate / k->read), LEFT), roofs[i].text);
    snprintf(text, sizeof text, "read %s", roof_rate(k->read, "B/s", rate, sizeof rate));
    label_slope(p, from, to, text);
}

// The number of a point: inside if it is large enough and nothing else is there, or beside it, with a line if
// it is far.
static void draw_number(picture *p, int i)
{
    const point *q = &p->points[i];
    enum { W = 18, H = 14, DIRECTIONS = 16, RINGS = 6 };
    svg_box box = {q->x - W / 2.0, q->y - H / 2.0, W, H};
    bool inside = q->radius > 12 && is_free(p, &box, i);
    for (int k = 0; k < DIRECTIONS * RINGS && !inside; k++) {
        double far = q->radius + 10 + 9 * (double)(k / DIRECTIONS),
               angle = (k % DIRECTIONS) * 6.2831853 / DIRECTIONS;
        box.x = q->x + far * cos(angle) - W / 2.0, box.y = q->y + far * sin(angle) - H / 2.0;
        if (is_free(p, &box, i)) break;
    }
    double x = box.x + W / 2.0, y = box.y + H / 2.0, away = hypot(x - q->x, y - q->y);
    if (away > q->radius + 14) svg_line(p->f, q->x, q->y, x, y, "sfg");
    svg_text(p->f, x, y + 4, "middle", "fg b", "%d", q->number);
    p->labels[p->n_labels++] = box;
}

static void draw_points(picture *p)
{
    for (int i = 0; i < p->n; i++) {
        const point *q = &p->points[i];
        if (q->radius == 0) continue;
        fprintf(p->f,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"c%d\" fill-opacity=\"%s\" "
                "stroke-width=\"1.8\"><title>%s, %s: %.3f ms</title></circle>\n",
                q->x, q->y, q->radius, q->colour, q->phase == 0 ? "0.55" : "0.08", q->family,
                p->r->phases[q->phase].name, q->seconds * 1e3);
    }
    for (int i = 0; i < p->n; i++)
        if (p->points[i].radius > 0) draw_number(p, i);
}

static void draw_legend(const picture *p)
{
    double y = TOP;
    for (int32_t k = 0; k < ROOF_PHASES; k++) {
        const roof_phase *phase = &p->r->phases[k];
        svg_text(p->f, LEGEND, y, "start", "fg b", "%s, %d token%s behind %lld", phase->name, phase->n_tokens,
                 phase->n_tokens > 1 ? "s" : "", (long long)phase->depth);
        svg_text(p->f, LEGEND, y += 16, "start", "dim", "%.3f ms, %.0f %% of the limit; circles are %s",
                 phase->wall * 1e3, phase->wall > 0 ? 100 * phase->limit / phase->wall : 0,
                 k == 0 ? "filled" : "open");
        svg_text(p->f, LEGEND + 200, y += 20, "end", "dim", "time");
        svg_text(p->f, LEGEND + 312, y, "end", "dim", "share of its limit");
        for (int i = 0; i < p->n; i++) {
            const point *q = &p->points[i];
            if (q->phase != k) continue;
            y += 18;
            fprintf(p->f,
                    "<circle cx=\"%d\" cy=\"%.1f\" r=\"6\" class=\"c%d\" fill-opacity=\"%s\" "
                    "stroke-width=\"1.8\"/>\n",
                    LEGEND + 28, y - 4, q->colour, k == 0 ? "0.55" : "0.08");
            if (q->number > 0) svg_text(p->f, LEGEND + 14, y, "end", "fg b", "%d", q->number);
            svg_text(p->f, LEGEND + 42, y, "start", "fg", "%s", q->family);
            svg_text(p->f, LEGEND + 200, y, "end", "fg", "%.1f %%",
                     phase->wall > 0 ? 100 * q->seconds / phase->wall : 0);
            svg_text(p->f, LEGEND + 312, y, "end", "fg", "%.0f %%",
                     q->seconds > 0 ? 100 * q->limit / q->seconds : 0);
        }
        for (int i = 0; i < ROOF_RESTS; i++) {
            double rest = roof_rest(phase, i);
            const char *name = i == ROOF_AROUND   ? "around the steps"
                               : i == ROOF_DELAYS ? "delays"
                               : rest >= 0        ? "more if untimed"
                                                  : "saved if untimed";
            svg_text(p->f, LEGEND + 42, y += 18, "start", "fg", "%s", name);
            double share = phase->wall > 0 ? 100 * rest / phase->wall : 0;
            svg_text(p->f, LEGEND + 200, y, "end", "fg", "%.1f %%", fabs(share) < 0.05 ? 0 : share);
        }
        y += 34;
    }
    svg_text(p->f, LEGEND, y, "start", "dim", "The area of a circle is its share of the time.");
    svg_text(p->f, LEGEND, y + 16, "start", "dim", "The nearer to a roof, the less there is to gain.");
    svg_text(p->f, LEGEND, y + 32, "start", "dim", "Without a number: nothing is computed, only moved.");
}

void roof_picture(const roofline *r, FILE *f)
{
    picture p = {.r = r, .f = f};
    collect(&p);
    find_ranges(&p);
    place(&p);
    svg_begin(f, WIDTH, HEIGHT, "roofline");
    svg_text(f, 16, 28, "start", "fg b h", "%s", r->model);
    svg_text(f, 16, 48, "start", "dim", "%s; peaks measured %s", r->device, r->peaks.date);
    draw_axes(&p);
    draw_roofs(&p);
    draw_points(&p);
    draw_legend(&p);
    svg_end(f);
}
