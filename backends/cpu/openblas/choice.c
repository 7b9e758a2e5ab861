// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which products run by OpenBLAS: those of a class in which it was measured to be faster than the kernel
// here, on this machine, with this build of it. A class is an op with types, columns and inner length, and
// its number of rows down to a power of two: so prompts of any length find what was measured for a few.
#include "backends/cpu/openblas/state.h"
#include "backends/cpu/product.h"
#include "backends/cpu/run.h"
#include "core/tuning/tuning_file.h"
#include "ops/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_ROWS = 16,            // with fewer a product is bound by reading w; also more than rows_alike
    MIN_ROWS_UNMEASURED = 32, // at the level generic: docs/log/cpu.md
    MAX_CLASS_ROWS = 512,     // more rows are cut into blocks of so many
    TIMED_COLUMNS = 2048,     // of each weight: more only take longer
    TIMED_RUNS = 5,
    FILE_VERSION = 1,
    MIN_GAIN = 105, // percent: below it the difference may be noise, and the own kernel needs no library
};

_Static_assert((int)MIN_ROWS > (int)TN_MATMUL_ROWS_ALIKE, "few rows must not depend on each other");

// --- classes ---------------------------------------------------------------------------------------------

static void class_text(const tn_step *step, const tn_product *p, char text[128])
{
    char types[48] = "";
    int64_t n = 0, m = MIN_ROWS;
    for (int32_t i = 0; i < p->n_weights; i++) {
        size_t at = strlen(types);
        snprintf(types + at, sizeof types - at, "%s%s", i > 0 ? "+" : "", tn_dtype_name(p->w[i]->dtype));
        n += p->w[i]->ne[2];
    }
    while (2 * m <= TN_MIN(p->m, MAX_CLASS_ROWS)) m *= 2;
    snprintf(text, 128, "%s %s m %lld n %lld k %lld", tn_op_name(step->op), types, (long long)m, (long long)n,
             (long long)p->k);
}

static bool is_faster(const tn_openblas_choice *c)
{
    return 100 * c->own_ns > MIN_GAIN * c->blas_ns;
}

// 1: OpenBLAS, 0: not, -1: not timed.
static int lookup(tn_openblas *b, const char *text)
{
    int result = -1;
    tn_openblas_lock(b);
    for (int32_t i = 0; i < b->n_choices && result < 0; i++)
        if (strcmp(b->choices[i].text, text) == 0) result = is_faster(&b->choices[i]);
    tn_openblas_unlock(b);
    return result;
}

static bool accepts(const tn_openblas *b, const tn_step *step)
{
    return tn_op_set_has(b->of.kernel->set, step->op) && b->of.kernel->accepts(step);
}

// Opens the library at the first call. What was measured with another one is forgotten then.
static bool is_usable(tn_openblas *b)
{
    if (!tn_openblas_is_open(b)) return false;
    char config[TN_OPENBLAS_CONFIG_SIZE];
    snprintf(config, sizeof config, "%s", b->api.get_config());
    tn_openblas_lock(b);
    bool other = b->n_choices > 0 && strcmp(config, b->measured_with) != 0;
    if (other)
        tn_log(b->ctx, TN_LOG_WARN,
               "cpu: OpenBLAS was timed as \"%s\" and is \"%s\" now; run bench --tune again",
               b->measured_with, config);
    if (other) b->n_choices = 0;
    memcpy(b->measured_with, config, sizeof config);
    tn_openblas_unlock(b);
    return true;
}

bool tn_openblas_runs(tn_openblas *b, const tn_step *step)
{
    char text[128];
    if (!b || !accepts(b, step)) return false;
    if (b->forced) return true;
    tn_product p = tn_product_get(step);
    if (p.m < MIN_ROWS) return false;
    class_text(step, &p, text);
    int timed = lookup(b, text);
    if (timed == 0) return false;
    // An explicit level is the highest that may be used, and OpenBLAS uses what it finds, unless it was
    // named.
    bool unmeasured = b->of.level == TN_ISA_GENERIC && (!b->of.capped || b->wanted[0]);
    if (timed < 0 && !(unmeasured && p.m >= MIN_ROWS_UNMEASURED)) return false;
    // Opening may show that another build was measured.
    return is_usable(b) && (timed < 0 || lookup(b, text) == 1);
}

// --- file ------------------------------------------------------------------------------------------------

static tn_tuning_file file_of(const tn_openblas *b)
{
    return (tn_tuning_file){
        .backend = "cpu", .description = b->of.device->description, .version = FILE_VERSION};
}

// Without memory for it, or beyond the most: the class stays untimed, and the own kernel runs.
static void choice_add(tn_openblas *b, const tn_openblas_choice *c)
{
    if (!b->choices) b->choices = tn_calloc(b->ctx, TN_OPENBLAS_MAX_CHOICES, sizeof *b->choices);
    if (b->choices && b->n_choices < TN_OPENBLAS_MAX_CHOICES) b->choices[b->n_choices++] = *c;
}

static const char library_word[] = "library ";
static const int64_t most_ns = 1000000000000000; // 11 days: a file with longer times is none of ours

// "library <configuration>", then "<class>: <ns> <ns>", the times of the own kernel and of OpenBLAS.
static void read_line(void *user, const char *text)
{
    tn_openblas *b = user;
    size_t word = sizeof library_word - 1;
    if (strncmp(text, library_word, word) == 0) {
        snprintf(b->measured_with, sizeof b->measured_with, "%s", text + word);
        return;
    }
    const char *colon = strchr(text, ':');
    tn_openblas_choice c = {0};
    if (!colon || (size_t)(colon - text) >= sizeof c.text) return;
    memcpy(c.text, text, (size_t)(colon - text));
    char *end;
    c.own_ns = strtoll(colon + 1, &end, 10);
    c.blas_ns = strtoll(end, NULL, 10);
    bool possible = c.own_ns > 0 && c.own_ns < most_ns && c.blas_ns > 0 && c.blas_ns < most_ns;
    if (possible) choice_add(b, &c);
}

static bool write_line(const void *user, int32_t i, char text[TN_TUNING_LINE_SIZE])
{
    const tn_openblas *b = user;
    if (i > b->n_choices) return false;
    const tn_openblas_choice *c = i > 0 ? &b->choices[i - 1] : NULL;
    if (c)
        snprintf(text, TN_TUNING_LINE_SIZE, "%s: %lld %lld", c->text, (long long)c->own_ns,
                 (long long)c->blas_ns);
    if (!c) snprintf(text, TN_TUNING_LINE_SIZE, "%s%s", library_word, b->measured_with);
    return true;
}

static void choices_read(tn_openblas *b)
{
    tn_tuning_file f = file_of(b);
    tn_tuning_file_read(b->ctx, &f, read_line, b);
}

// --- timing ----------------------------------------------------------------------------------------------

bool tn_openblas_may_time(tn_openblas *b, const tn_step *step)
{
    char text[128];
    if (!b || !accepts(b, step) || step->precision != TN_PRECISION_auto) return false;
    tn_product p = tn_product_get(step);
    if (p.m < MIN_ROWS) return false;
    class_text(step, &p, text);
    return lookup(b, text) < 0 && is_usable(b);
}

// The first TIMED_COLUMNS of each weight, and what belongs to them.
static void cut(tn_step *step)
{
    tn_product p = tn_product_get(step);
    for (int32_t i = 0; i < p.n_weights; i++) {
        int64_t n = TN_MIN(p.w[i]->ne[2], TIMED_COLUMNS);
        step->src[p.at.w[i]].ne[2] = n;
        if (p.bias[i]) step->src[p.at.bias[i]].ne[3] = n;
        if (i < step->n_dst) step->dst[i].ne[3] = n;
        if (i == 0 && p.residual) step->src[p.at.residual].ne[3] = n;
    }
}

static tn_status time_once(const tn_openblas *b, const tn_cpu_kernel *k, const tn_step *step, void *scratch,
                           int64_t *ns)
{
    tn_cpu_step one = {.step = *step, .launch = k->launch, .parts = k->parts};
    tn_cpu_program program = {.steps = &one, .n_steps = 1, .scratch = scratch};
    program.level = b->of.level;
    program.has_bf16 = b->of.has_bf16;
    program.openblas = &b->api;
    uint64_t start = tn_time_ns();
    tn_status status = tn_cpu_run(b->ctx, &program, NULL);
    *ns = (int64_t)(tn_time_ns() - start);
    return status;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Medians of runs in turn, after one that is not counted: it touches memory and wakes threads.
static tn_status time_step(tn_openblas *b, const tn_step *whole, void *scratch, bool *changed)
{
    int64_t ns[2][TIMED_RUNS + 1];
    tn_openblas_choice c = {0};
    tn_product p = tn_product_get(whole);
    tn_step step = *whole;
    tn_status status = TN_OK;
    class_text(whole, &p, c.text);
    cut(&step);
    const tn_cpu_kernel *kernels[2] = {b->of.own(b->of.level, &step), b->of.kernel};
    if (!kernels[0] || !tn_openblas_is_alone(b)) return TN_OK;
    for (int32_t i = 0; i <= TIMED_RUNS && status == TN_OK; i++)
        for (int32_t k = 0; k < 2 && status == TN_OK; k++)
            status = time_once(b, kernels[k], &step, scratch, &ns[k][i]);
    if (status != TN_OK) return status;
    for (int32_t k = 0; k < 2; k++) qsort(ns[k] + 1, TIMED_RUNS, sizeof **ns, by_value);
    c.own_ns = ns[0][1 + TIMED_RUNS / 2], c.blas_ns = ns[1][1 + TIMED_RUNS / 2];
    tn_log(b->ctx, TN_LOG_INFO, "tuning %s: %lld us, by OpenBLAS %lld us", c.text, (long long)c.own_ns / 1000,
           (long long)c.blas_ns / 1000);
    tn_openblas_lock(b);
    choice_add(b, &c);
    tn_openblas_unlock(b);
    *changed = true;
    return TN_OK;
}

tn_status tn_openblas_tune(tn_openblas *b, const tn_program *program, void *scratch)
{
    bool changed = false;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < program->n_steps && status == TN_OK; i++)
        if (tn_openblas_may_time(b, &program->steps[i]))
            status = time_step(b, &program->steps[i], scratch, &changed);
    if (status != TN_OK || !changed) return status;
    tn_tuning_file f = file_of(b);
    return tn_tuning_file_write(b->ctx, &f, write_line, b);
}

// --- of a device ----------------------------------------------------------------------------------------

tn_status tn_openblas_create(const tn_openblas_device *d, tn_openblas **out)
{
    tn_context *ctx = d->device->ctx;
    const char *wanted = tn_context_blas(ctx);
    if (wanted && strcmp(wanted, "off") == 0) return TN_OK;
    if (d->alike || d->level == TN_ISA_REFERENCE) return TN_OK;
    if (wanted && strlen(wanted) >= TN_OPENBLAS_NAME_SIZE)
        return tn_fail(ctx, TN_ERR_ARG, "cpu: the path of the BLAS library is too long");
    tn_openblas *b = tn_calloc(ctx, 1, sizeof *b);
    if (!b) return TN_ERR_MEMORY;
    b->of = *d;
    b->ctx = ctx;
    atomic_flag_clear(&b->lock);
    snprintf(b->wanted, sizeof b->wanted, "%s", wanted ? wanted : "");
    choices_read(b);
    if (wanted && !is_usable(b)) {
        tn_status status = tn_fail(ctx, TN_ERR_DEVICE, "cpu: BLAS library: %s", b->why_not);
        tn_openblas_destroy(b);
        return status;
    }
    *out = b;
    return TN_OK;
}

bool tn_openblas_force(tn_openblas *b)
{
    return b && (b->forced = is_usable(b));
}

// The length of the text, as far as it fits.
static size_t put(char *buf, size_t size, size_t at, const char *line)
{
    if (at < size) snprintf(buf + at, size - at, "%s\n", line);
    return at + strlen(line) + 1;
}

size_t tn_openblas_details(tn_openblas *b, char *buf, size_t size)
{
    char line[2 * TN_OPENBLAS_NAME_SIZE];
    size_t n = 0;
    if (size > 0) buf[0] = 0;
    if (!b) return put(buf, size, 0, "OpenBLAS: switched off");
    if (!is_usable(b)) {
        snprintf(line, sizeof line, "OpenBLAS: %s", b->why_not);
        return put(buf, size, 0, line);
    }
    snprintf(line, sizeof line, "OpenBLAS: %s; core %s; %s", b->name, b->api.get_corename(),
             b->api.get_config());
    n = put(buf, size, n, line);
    tn_openblas_lock(b);
    if (b->n_choices == 0)
        n = put(buf, size, n, "  not timed against the kernels here; 'tenon bench --tune' does");
    for (int32_t i = 0; i < b->n_choices; i++) {
        const tn_openblas_choice *c = &b->choices[i];
        snprintf(line, sizeof line, "  %s: %lld us here, %lld us by OpenBLAS%s", c->text,
                 (long long)c->own_ns / 1000, (long long)c->blas_ns / 1000,
                 is_faster(c) ? ", which runs" : "");
        n = put(buf, size, n, line);
    }
    tn_openblas_unlock(b);
    return n;
}
