// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// `tenon roofline` as text, CSV, JSON and a page.
#include "tools/costs/roofline.h"

#include "tools/costs/svg.h"
#include "tools/json/json.h"

#include <string.h>

enum { ROWS = 12 }; // of a phase in text; CSV and JSON have all

static double share(double limit, double seconds)
{
    return seconds > 0 ? 100 * limit / seconds : 0;
}

// "read", or the name of the precision: the roof that limits the row.
static const char *bound(const roofline *r, const cost_sum *c)
{
    return cost_compute_time(c, &r->peaks) > cost_memory_time(c, &r->peaks)
               ? tn_precision_name(cost_precision(c))
               : "read";
}

static double intensity(const cost_sum *c)
{
    return cost_bytes(c) > 0 ? cost_ops(c) / cost_bytes(c) : 0;
}

static const char *ops_suffix(const cost_sum *c)
{
    return cost_precision(c) == TN_PRECISION_int8 ? "OP/s" : "FLOP/s";
}

static void peaks_line(const peaks *p, char *buf, size_t size)
{
    char text[32];
    size_t n = (size_t)snprintf(buf, size, "read %s", roof_rate(p->read, "B/s", text, sizeof text));
    if (p->copy > 0 && n < size)
        n += (size_t)snprintf(buf + n, size - n, ", copy %s", roof_rate(p->copy, "B/s", text, sizeof text));
    for (int32_t i = 0; i < TN_PRECISION_COUNT && n < size; i++)
        if (p->rate[i] > 0)
            n += (size_t)snprintf(
                buf + n, size - n, ", %s %s", tn_precision_name(i),
                roof_rate(p->rate[i], i == TN_PRECISION_int8 ? "OP/s" : "FLOP/s", text, sizeof text));
    if (p->core_read > 0 && n < size)
        n += (size_t)snprintf(buf + n, size - n, "; one thread: read %s",
                              roof_rate(p->core_read, "B/s", text, sizeof text));
    if (p->core_f32 > 0 && n < size)
        n += (size_t)snprintf(buf + n, size - n, ", f32 %s",
                              roof_rate(p->core_f32, "FLOP/s", text, sizeof text));
    if (n < size) snprintf(buf + n, size - n, " (measured %s)", p->date);
}

static void phase_line(const roof_phase *p, char *buf, size_t size)
{
    char what[64];
    if (p->n_seq > 1)
        snprintf(what, sizeof what, "%d tokens of %d sequences", p->n_tokens, p->n_seq);
    else
        snprintf(what, sizeof what, "%d token%s", p->n_tokens, p->n_tokens > 1 ? "s" : "");
    snprintf(buf, size,
             "%s of %s behind %lld: %.3f ms, %.1f tokens/s; the limits of its steps add up to %.3f "
             "ms (%.0f %%)",
             p->name, what, (long long)p->depth, p->wall * 1e3, p->wall > 0 ? p->n_tokens / p->wall : 0,
             p->limit * 1e3, share(p->limit, p->wall));
}

// --- text ------------------------------------------------------------------------------------------------

static void print_row(const roofline *r, const roof_row *row)
{
    char rate[32], bytes[32];
    printf(
        "| %.3f | %.3f | %.0f | %s | %.2f | %s | %s | %d | %s | %s | %s |\n",
        (row->seconds - row->limit) * 1e3, row->seconds * 1e3, share(row->limit, row->seconds),
        bound(r, &row->cost), intensity(&row->cost),
        roof_rate(row->seconds > 0 ? cost_ops(&row->cost) / row->seconds : 0, ops_suffix(&row->cost), rate,
                  sizeof rate),
        roof_rate(row->seconds > 0 ? cost_bytes(&row->cost) / row->seconds : 0, "B/s", bytes, sizeof bytes),
        row->n, row->op, row->kernel, row->shapes);
}

static void print_phase(const roofline *r, const roof_phase *p)
{
    char text[512];
    phase_line(p, text, sizeof text);
    printf("\n%s\n\n", text);
    printf("| lost ms | ms | %% of limit | limit | op/B | ops | bytes | x | step | kernel | operands |\n"
           "| ---: | ---: | ---: | :--- | ---: | ---: | ---: | ---: | :--- | :--- | :--- |\n");
    int32_t n = p->n_rows < ROWS ? p->n_rows : ROWS;
    double seconds = 0, limit = 0;
    for (int32_t i = 0; i < p->n_rows; i++) {
        if (i < n) print_row(r, &p->rows[i]);
        if (i >= n) seconds += p->rows[i].seconds, limit += p->rows[i].limit;
    }
    if (p->n_rows > n)
        printf("| %.3f | %.3f | %.0f | | | | | | %d more | | |\n", (seconds - limit) * 1e3, seconds * 1e3,
               share(limit, seconds), p->n_rows - n);
    for (int i = 0; i < ROOF_RESTS; i++)
        printf("| %.3f | %.3f | | | | | | | %s | | |\n", roof_rest(p, i) * 1e3, roof_rest(p, i) * 1e3,
               roof_rest_name(p, i));
    printf("\n");
    for (int32_t i = 0; i < ROOF_LOSSES && i < p->n_rows; i++) {
        roof_lever(r, p, &p->rows[i], text, sizeof text);
        printf("%d. %s\n", i + 1, text);
    }
}

void roof_print_text(const roofline *r)
{
    char text[512];
    peaks_line(&r->peaks, text, sizeof text);
    printf("%s; %s\npeaks: %s\n", r->model, r->device, text);
    for (int i = 0; i < ROOF_PHASES; i++) print_phase(r, &r->phases[i]);
}

// --- CSV and JSON ----------------------------------------------------------------------------------------

static void csv_text(const char *text)
{
    putchar('"');
    for (; *text; text++) printf(*text == '"' ? "\"\"" : "%c", *text);
    putchar('"');
}

static void csv_numbers(const roofline *r, const roof_row *row)
{
    const cost_sum *c = &row->cost;
    printf(",%d,%.3f,%.3f,%.2f,%s,%.0f,%.0f,%.0f,%.0f,%.0f", row->n, row->seconds * 1e6, row->limit * 1e6,
           share(row->limit, row->seconds), bound(r, c), c->weights, c->cache_read, c->cache_written, c->read,
           c->written);
    for (int32_t i = TN_PRECISION_f32; i < TN_PRECISION_COUNT; i++) printf(",%.0f", c->ops[i]);
    printf(",%.4f\n", intensity(c));
}

void roof_print_csv(const roofline *r)
{
    printf("phase,tokens,depth,family,step,kernel,operands,steps,us,limit_us,percent_of_limit,limit,weight_"
           "bytes,"
           "cache_bytes_read,cache_bytes_written,bytes_read,bytes_written");
    for (int32_t i = TN_PRECISION_f32; i < TN_PRECISION_COUNT; i++) printf(",ops_%s", tn_precision_name(i));
    printf(",ops_per_byte\n");
    for (int k = 0; k < ROOF_PHASES; k++) {
        const roof_phase *p = &r->phases[k];
        for (int32_t i = 0; i < p->n_rows; i++) {
            const roof_row *row = &p->rows[i];
            printf("%s,%d,%lld,%s,", p->name, p->n_tokens, (long long)p->depth, row->family);
            csv_text(row->op);
            putchar(',');
            csv_text(row->kernel);
            putchar(',');
            csv_text(row->shapes);
            csv_numbers(r, row);
        }
        for (int i = 0; i < ROOF_RESTS; i++) {
            roof_row rest = {.n = 1, .seconds = roof_rest(p, i)};
            printf("%s,%d,%lld,,", p->name, p->n_tokens, (long long)p->depth);
            csv_text(roof_rest_name(p, i));
            printf(",,");
            csv_numbers(r, &rest);
        }
    }
}

static void json_cost(json *j, const cost_sum *c)
{
    json_object(j, "bytes");
    json_number(j, "weights_read", c->weights);
    json_number(j, "cache_read", c->cache_read);
    json_number(j, "cache_written", c->cache_written);
    json_number(j, "read", c->read);
    json_number(j, "written", c->written);
    json_end_object(j);
    json_object(j, "operations");
    for (int32_t i = TN_PRECISION_f32; i < TN_PRECISION_COUNT; i++)
        if (c->ops[i] > 0) json_number(j, tn_precision_name(i), c->ops[i]);
    json_end_object(j);
}

static void json_phase(json *j, const roofline *r, const roof_phase *p)
{
    char text[512];
    json_object(j, NULL);
    json_text(j, "phase", p->name);
    json_int(j, "tokens", p->n_tokens);
    json_int(j, "sequences", p->n_seq);
    json_int(j, "depth", p->depth);
    json_number(j, "seconds", p->wall);
    json_number(j, "steps_seconds", p->steps);
    json_number(j, "around_seconds", roof_rest(p, ROOF_AROUND));
    json_number(j, "delays_seconds", roof_rest(p, ROOF_DELAYS));
    json_number(j, "untimed_seconds", roof_rest(p, ROOF_UNTIMED));
    json_object(j, "fastest");
    json_number(j, "seconds", p->fastest.wall);
    json_number(j, "timed_seconds", p->fastest.timed);
    json_number(j, "steps_seconds", p->fastest.steps);
    json_end_object(j);
    json_number(j, "limit_seconds", p->limit);
    json_array(j, "steps");
    for (int32_t i = 0; i < p->n_rows; i++) {
        const roof_row *row = &p->rows[i];
        json_object(j, NULL);
        json_text(j, "op", row->op);
        json_text(j, "family", row->family);
        json_text(j, "kernel", row->kernel);
        json_text(j, "operands", row->shapes);
        json_int(j, "steps", row->n);
        json_number(j, "seconds", row->seconds);
        json_number(j, "limit_seconds", row->limit);
        json_text(j, "limit", bound(r, &row->cost));
        json_cost(j, &row->cost);
        json_end_object(j);
    }
    json_end_array(j);
    json_array(j, "levers");
    for (int32_t i = 0; i < ROOF_LOSSES && i < p->n_rows; i++) {
        roof_lever(r, p, &p->rows[i], text, sizeof text);
        json_text(j, NULL, text);
    }
    json_end_array(j);
    json_end_object(j);
}

void roof_print_json(const roofline *r)
{
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_text(&j, "model", r->bench->name);
    json_text(&j, "device", r->device);
    json_object(&j, "peaks");
    json_text(&j, "date", r->peaks.date);
    json_number(&j, "read_bytes_per_second", r->peaks.read);
    json_number(&j, "copy_bytes_per_second", r->peaks.copy);
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++)
        if (r->peaks.rate[i] > 0) json_number(&j, tn_precision_name(i), r->peaks.rate[i]);
    json_end_object(&j);
    json_array(&j, "phases");
    for (int i = 0; i < ROOF_PHASES; i++) json_phase(&j, r, &r->phases[i]);
    json_end_array(&j);
    json_end_object(&j);
}

// --- page ------------------------------------------------------------------------------------------------

static void page_cell(FILE *f, const char *text)
{
    fputs("<td>", f);
    svg_escaped(f, text);
    fputs("</td>", f);
}

static void page_phase(const roofline *r, const roof_phase *p, FILE *f)
{
    char text[512];
    phase_line(p, text, sizeof text);
    fprintf(f, "<h2>%s</h2>\n<p>", p->name);
    svg_escaped(f, text);
    fputs(".</p>\n<ol>\n", f);
    for (int32_t i = 0; i < ROOF_LOSSES && i < p->n_rows; i++) {
        roof_lever(r, p, &p->rows[i], text, sizeof text);
        fputs("<li>", f);
        svg_escaped(f, text);
        fputs("</li>\n", f);
    }
    fputs("</ol>\n<table>\n<tr><th>lost, ms</th><th>time, ms</th><th>% of limit</th><th>limit</th>"
          "<th>operations per byte</th><th>times</th><th>step</th><th>kernel</th><th>operands</th></tr>\n",
          f);
    for (int32_t i = 0; i < p->n_rows; i++) {
        const roof_row *row = &p->rows[i];
        fprintf(f,
                "<tr><td class=\"n\">%.3f</td><td class=\"n\">%.3f</td><td class=\"n\">%.0f</td><td>%s</td>"
                "<td>%.2f</td><td>%d</td>",
                (row->seconds - row->limit) * 1e3, row->seconds * 1e3, share(row->limit, row->seconds),
                bound(r, &row->cost), intensity(&row->cost), row->n);
        page_cell(f, row->op);
        page_cell(f, row->kernel);
        page_cell(f, row->shapes);
        fputs("</tr>\n", f);
    }
    for (int i = 0; i < ROOF_RESTS; i++)
        fprintf(f,
                "<tr><td class=\"n\">%.3f</td><td class=\"n\">%.3f</td><td></td><td></td><td></td><td></td>"
                "<td colspan=\"3\">%s</td></tr>\n",
                roof_rest(p, i) * 1e3, roof_rest(p, i) * 1e3, roof_rest_name(p, i));
    fputs("</table>\n", f);
}

void roof_section(const roofline *r, FILE *f)
{
    roof_picture(r, f);
    for (int i = 0; i < ROOF_PHASES; i++) page_phase(r, &r->phases[i], f);
}

void roof_page(const roofline *r, FILE *f)
{
    char text[512];
    svg_page_begin(f, r->model);
    fputs("<h1>", f);
    svg_escaped(f, r->model);
    fputs("</h1>\n<p>", f);
    svg_escaped(f, r->device);
    fputs("<br>peaks: ", f);
    peaks_line(&r->peaks, text, sizeof text);
    svg_escaped(f, text);
    fputs("</p>\n", f);
    roof_section(r, f);
    svg_page_end(f);
}
