// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What ran where: the summary of a check, and the table op x type x level as Markdown.
#include "core/strbuf.h"
#include "tests/check/check.h"

#include <math.h>
#include <string.h>

static bool any(const check_result *r)
{
    return r->n_cases > 0 || r->n_skipped > 0;
}

// "kernel", "kernel, reference", "-" where the device accepts none of the cases.
static void kernels_text(tn_strbuf *s, const check_result *r)
{
    if (r->n_cases == 0) tn_strbuf_puts(s, "-");
    for (int32_t i = 0; i < CHECK_MAX_KERNELS && r->kernels[i]; i++)
        tn_strbuf_printf(s, "%s%s", i > 0 ? ", " : "", r->kernels[i]);
    if (r->n_cases > 0 && r->n_skipped > 0) tn_strbuf_puts(s, " (partly)");
}

static bool same_kernels(const check_result *a, const check_result *b)
{
    if ((a->n_cases > 0) != (b->n_cases > 0) || (a->n_skipped > 0) != (b->n_skipped > 0)) return false;
    for (int32_t i = 0; i < CHECK_MAX_KERNELS; i++) {
        bool found = a->kernels[i] == NULL;
        for (int32_t j = 0; j < CHECK_MAX_KERNELS && !found; j++)
            found = b->kernels[j] && strcmp(a->kernels[i], b->kernels[j]) == 0;
        if (!found || (a->kernels[i] == NULL) != (b->kernels[i] == NULL)) return false;
    }
    return true;
}

static bool same_row(const check_run *run, int32_t op, int32_t a, int32_t b)
{
    for (int32_t t = 0; t < run->n_targets; t++)
        if (!same_kernels(&run->results[op][a][t], &run->results[op][b][t])) return false;
    return true;
}

static void print_op(const check_run *run, int32_t op, tn_strbuf *s)
{
    bool done[TN_TYPE_COUNT] = {false};
    for (int32_t type = 0; type < TN_TYPE_COUNT; type++) {
        if (done[type] || !any(&run->results[op][type][0])) continue;
        tn_strbuf_clear(s);
        tn_strbuf_printf(s, "| %s |", tn_op_name(op));
        for (int32_t other = type; other < TN_TYPE_COUNT; other++) {
            if (!any(&run->results[op][other][0]) || !same_row(run, op, type, other)) continue;
            done[other] = true;
            tn_strbuf_printf(s, " %s", tn_dtype_name(other));
        }
        for (int32_t t = 0; t < run->n_targets; t++) {
            tn_strbuf_puts(s, " | ");
            kernels_text(s, &run->results[op][type][t]);
        }
        printf("%s |\n", s->data);
    }
}

void check_coverage_print(const check_run *run)
{
    tn_strbuf s;
    tn_strbuf_init(&s, run->targets[0].ctx);
    printf("<!-- Generated: tenon-check --coverage --backend %s -->\n", run->options.backend);
    printf("Types are those of the weights or of the cache (of its keys), else of the data. "
           "`reference` means that no\n"
           "kernel exists and the reference runs; `-` means that the device does not accept the op, "
           "and a fused op\n"
           "then runs as its parts.\n\n| op | types |");
    for (int32_t t = 0; t < run->n_targets; t++) printf(" %s |", run->targets[t].label);
    printf("\n|---|---|");
    for (int32_t t = 0; t < run->n_targets; t++) printf("---|");
    printf("\n");
    for (int32_t op = 0; op < TN_OP_COUNT; op++) print_op(run, op, &s);
    tn_strbuf_fini(&s);
}

// --- summary ---------------------------------------------------------------------------------------

static void add_result(check_result *sum, const check_result *r)
{
    sum->n_cases += r->n_cases;
    sum->n_failed += r->n_failed;
    sum->n_skipped += r->n_skipped;
    sum->worst = fmax(sum->worst, r->worst);
    for (int32_t i = 0; i < CHECK_MAX_KERNELS && r->kernels[i]; i++) {
        int32_t j = 0;
        while (j < CHECK_MAX_KERNELS && sum->kernels[j] && strcmp(sum->kernels[j], r->kernels[i]) != 0) j++;
        if (j == CHECK_MAX_KERNELS) continue;
        sum->kernels[j] = r->kernels[i];
        sum->n_kernels[j] += r->n_kernels[i];
    }
}

static void print_json(const check_run *run, int32_t op, int32_t type, int32_t t)
{
    const check_result *r = &run->results[op][type][t];
    if (!any(r)) return;
    printf("{\"op\": \"%s\", \"type\": \"%s\", \"level\": \"%s\", \"cases\": %d, \"failed\": %d, "
           "\"skipped\": %d, ",
           tn_op_name(op), tn_dtype_name(type), run->targets[t].label, r->n_cases, r->n_failed, r->n_skipped);
    if (isfinite(r->worst))
        printf("\"worst_nmse\": %.3g, \"kernels\": {", r->worst);
    else
        printf("\"worst_nmse\": null, \"kernels\": {");
    for (int32_t i = 0; i < CHECK_MAX_KERNELS && r->kernels[i]; i++)
        printf("%s\"%s\": %d", i > 0 ? ", " : "", r->kernels[i], r->n_kernels[i]);
    printf("}}\n");
}

static void print_text(const check_run *run, int32_t op, int32_t t)
{
    check_result sum = {0};
    for (int32_t type = 0; type < TN_TYPE_COUNT; type++) add_result(&sum, &run->results[op][type][t]);
    if (!any(&sum)) return;
    printf("%-13s %-10s %5d cases, worst NMSE %-8.2g", tn_op_name(op), run->targets[t].label, sum.n_cases,
           sum.worst);
    for (int32_t i = 0; i < CHECK_MAX_KERNELS && sum.kernels[i]; i++)
        printf(" %s (%d)", sum.kernels[i], sum.n_kernels[i]);
    if (sum.n_skipped > 0) printf(" not taken (%d)", sum.n_skipped);
    if (sum.n_failed > 0) printf(" FAILED %d", sum.n_failed);
    printf("\n");
}

void check_summary_print(const check_run *run)
{
    for (int32_t op = 0; op < TN_OP_COUNT; op++) {
        for (int32_t t = 0; t < run->n_targets; t++) {
            if (!run->options.json) {
                print_text(run, op, t);
                continue;
            }
            for (int32_t type = 0; type < TN_TYPE_COUNT; type++) print_json(run, op, type, t);
        }
    }
}
