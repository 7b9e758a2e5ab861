// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Timing one step. Operands are copied until they exceed every cache, and one submission runs a step on each
// copy, as a model does with its layers; what is reported is the time of one step, the median of several
// submissions, and its share of what memory and arithmetic of this device allow (roofline: the larger of
// bytes / peak and operations / peak). What is timed: bench_shapes.c.
#include "tests/check/bench.h"

#include "ops/operands.h"
#if TN_HAVE_VULKAN
#include "backends/vulkan/runtime/device.h"
#endif

#include <stdlib.h>
#include <string.h>

enum {
    WORKING_SET = 640 << 20, // bytes: more than the last-level cache of any machine we know
    MAX_COPIES = 256,
    MAX_RUNS = 31,
    MIN_RUNS = 5,
    DEVICE_STEPS = 32, // of a submission at least, on devices that work while the host waits: waking it takes
                       // as long as a short step
    TEMPLATE_ROWS =
        32, // rows of random data that are repeated: generating all would take longer than the run
};
#define MIN_SECONDS      0.4
#define MIN_SWEEP        0.1
#define MAX_FLOPS        2e10 // of one submission
#define MAX_FLOPS_DEVICE 4e12 // of one submission to a device, where starting it costs as much as small steps

typedef struct copies {
    int32_t n, n_steps; // steps beyond n use the copies again
    tn_buffer (*src)[TN_MAX_SRC], (*dst)[TN_MAX_DST];
    tn_step *steps;
    tn_buffer scratch;
} copies;

typedef struct timing {
    double median, spread; // seconds per step, and (slowest - fastest of the middle 80 %) / median
} timing;

// --- operands --------------------------------------------------------------------------------------

// Big operands repeat their first rows.
static void fill(const check_case *c, int32_t src, uint8_t *bytes)
{
    const check_operand *o = &c->src[src];
    size_t row = tn_dtype_row_size(o->dtype, o->parent[3]), size = check_operand_size(o);
    bool big = size > TEMPLATE_ROWS * row && o->fill != CHECK_DATA && o->fill != CHECK_INT &&
               o->axes[2] == 2 && o->axes[3] == 3;
    if (!big) {
        check_operand_fill(c, src, bytes);
        return;
    }
    check_case one = {.op = c->op, .seed = c->seed, .n_src = c->n_src};
    one.src[src] = *o;
    check_operand *p = &one.src[src];
    for (int32_t d = 0; d < 2; d++) p->ne[d] = p->parent[d] = 1;
    p->ne[2] = p->parent[2] = TEMPLATE_ROWS;
    p->start[2] = 0;
    check_operand_fill(&one, src, bytes);
    for (size_t at = TEMPLATE_ROWS * row; at < size; at += row)
        memcpy(bytes + at, bytes + at % (TEMPLATE_ROWS * row), row);
}

static void copies_destroy(copies *s)
{
    for (int32_t i = 0; i < s->n; i++) {
        for (int32_t j = 0; s->src && j < TN_MAX_SRC; j++) tn_buffer_destroy(&s->src[i][j]);
        for (int32_t j = 0; s->dst && j < TN_MAX_DST; j++) tn_buffer_destroy(&s->dst[i][j]);
    }
    tn_buffer_destroy(&s->scratch);
    free(s->src);
    free(s->dst);
    free(s->steps);
    *s = (copies){0};
}

static size_t result_size(const tn_view *v)
{
    return tn_dtype_row_size(v->dtype, v->ne[3]) * (size_t)tn_view_n_rows(v);
}

static tn_status step_create(tn_device *device, const bench_case *b, copies *s, int32_t i,
                             uint8_t *const *data)
{
    tn_status status = TN_OK;
    tn_step *step = &s->steps[i];
    for (int32_t j = 0; j < b->c.n_src && status == TN_OK; j++) {
        size_t size = check_operand_size(&b->c.src[j]);
        tn_buffer *at = &s->src[i][b->c.src[j].shared ? j - 1 : j];
        if (size == 0) continue;
        if (!b->c.src[j].shared) status = tn_buffer_create(device, size, at);
        step->src[j] = check_operand_view(&b->c.src[j], at->data);
        step->src[j].buffer = at;
        if (b->c.src[j].shared) continue;
        bool weight = tn_dtype_block_elems(b->c.src[j].dtype) > 1 && tn_op_takes_weights(b->c.op);
        if (status != TN_OK) break;
        if (weight)
            status = tn_buffer_write_weight(at, 0, &step->src[j], data[j], size);
        else
            status = tn_buffer_write(at, 0, data[j], size);
    }
    for (int32_t j = 0; j < step->n_dst && status == TN_OK; j++) {
        tn_view *v = &step->dst[j];
        bool alias = tn_op_aliases(tn_op_info_get(b->c.op)->flags, j);
        if (!alias) status = tn_buffer_create(device, result_size(v), &s->dst[i][j]);
        v->buffer = alias ? &s->src[i][j] : &s->dst[i][j];
        v->data = v->buffer->data;
        v->offset = 0;
    }
    return status;
}

static tn_status copies_create(tn_device *device, const bench_case *b, const tn_step *shape, copies *s)
{
    size_t size = 0;
    uint8_t *data[TN_MAX_SRC] = {NULL};
    for (int32_t j = 0; j < b->c.n_src; j++) size += check_operand_size(&b->c.src[j]);
    for (int32_t j = 0; j < shape->n_dst; j++) size += result_size(&shape->dst[j]);
    double most = strcmp(device->backend->name, "cpu") == 0 ? MAX_FLOPS : MAX_FLOPS_DEVICE;
    double n = TN_MIN((double)WORKING_SET / (double)size + 1.0, most / (b->cost.ops + 1.0));
    s->n = n < 1.0 ? 1 : n > MAX_COPIES ? MAX_COPIES : (int32_t)n;
    s->src = calloc((size_t)s->n, sizeof *s->src);
    s->dst = calloc((size_t)s->n, sizeof *s->dst);
    s->n_steps = device->backend->weight_write ? TN_MAX(s->n, DEVICE_STEPS) : s->n;
    s->steps = calloc((size_t)s->n_steps, sizeof *s->steps);
    tn_status status = s->src && s->dst && s->steps ? TN_OK : TN_ERR_MEMORY;
    for (int32_t j = 0; j < b->c.n_src && status == TN_OK; j++) {
        data[j] = calloc(1, check_operand_size(&b->c.src[j]) + 1);
        if (!data[j])
            status = TN_ERR_MEMORY;
        else if (b->c.src[j].n_dims > 0)
            fill(&b->c, j, data[j]);
    }
    for (int32_t i = 0; i < s->n && status == TN_OK; i++) {
        s->steps[i] = *shape;
        s->steps[i].join.early = true; // as in the plan of a model: no step writes integers
        status = step_create(device, b, s, i, data);
    }
    for (int32_t i = s->n; i < s->n_steps && status == TN_OK; i++) s->steps[i] = s->steps[i - s->n];
    for (int32_t j = 0; j < TN_MAX_SRC; j++) free(data[j]);
    return status;
}

// --- timing ----------------------------------------------------------------------------------------

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tn_status measure(tn_device *device, copies *s, double least, timing *out)
{
    const tn_backend *backend = device->backend;
    tn_program program = {.n_steps = s->n_steps, .steps = s->steps};
    tn_executable *e = NULL;
    double seconds[MAX_RUNS], total = 0.0;
    int32_t n = 0;
    tn_status status = tn_buffer_create(device, backend->scratch_size(device, &program), &s->scratch);
    if (status == TN_OK) status = backend->prepare(device, &program, &s->scratch, &e);
    // The first run is not counted: it touches memory and wakes threads.
    for (int32_t i = -1; status == TN_OK && i < MAX_RUNS && (i < MIN_RUNS || total < least); i++) {
        uint64_t start = tn_time_ns();
        status = backend->submit(device, e, NULL);
        if (status == TN_OK) status = backend->wait(device, e);
        if (i < 0) continue;
        seconds[n] = (double)(tn_time_ns() - start) * 1e-9 / s->n_steps;
        total += seconds[n++] * s->n_steps;
    }
    if (e) backend->executable_destroy(device, e);
    if (status != TN_OK) return status;
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    *out = (timing){seconds[n / 2], (seconds[n - 1 - n / 10] - seconds[n / 10]) / seconds[n / 2]};
    return TN_OK;
}

// --- reporting -------------------------------------------------------------------------------------

static void print_result(const bench_run *r, const bench_case *b, const char *kernel, bool rounds,
                         const timing *t)
{
    double peak = rounds && r->peaks.dot > 0.0 ? r->peaks.dot : r->peaks.fma;
    double bytes = tn_cost_bytes(&b->cost), product = b->cost.product_ops, ops = b->cost.ops;
    double memory = r->peaks.read > 0.0 ? bytes / r->peaks.read : 0.0,
           arithmetic = peak > 0.0 ? product / peak + (ops - product) / r->peaks.fma : 0.0;
    const char *limit = memory >= arithmetic ? "read" : peak == r->peaks.dot ? "int8" : "f32";
    double share = 100.0 * TN_MAX(memory, arithmetic) / t->median;
    const char *op = tn_op_name(b->c.op), *type = tn_dtype_name(b->c.type);
    double us = t->median * 1e6, gb = bytes / t->median * 1e-9, gf = ops / t->median * 1e-9;
    if (r->run->options.json) {
        printf("{\"op\": \"%s\", \"type\": \"%s\", \"shape\": \"%s\", \"kernel\": \"%s\", \"us\": %.2f, "
               "\"spread\": %.3f, "
               "\"gb_s\": %.2f, \"gflop_s\": %.2f, \"percent\": %.1f, \"of\": \"%s\"}\n",
               op, type, b->c.note, kernel, us, t->spread, gb, gf, share, limit);
    } else {
        printf("| %s | %s | %s | %s | %.1f | %.0f %% | %.1f | %.1f |", op, type, b->c.note, kernel, us,
               100.0 * t->spread, gb, gf);
        if (r->peaks.read > 0.0)
            printf(" %.0f %% of %s |\n", share, limit);
        else
            printf(" - |\n");
    }
    fflush(stdout);
}

static void set_variant(tn_device *device, int32_t variant)
{
#if TN_HAVE_VULKAN
    if (strcmp(device->backend->name, "vulkan") == 0) tn_vk_of(device)->tile = variant;
#endif
    TN_UNUSED(device);
    TN_UNUSED(variant);
}

// The lengths of attention are among the integers of the case.
static tn_cost cost_of(const bench_case *b, const tn_step *shape)
{
    tn_cost_lengths lengths = {0};
    if (b->c.op == TN_OP_attention) {
        lengths.q_start = b->c.ints + b->c.src[TN_SRC_attention_q_start].ints_off;
        lengths.kv_len = b->c.ints + b->c.src[TN_SRC_attention_kv_len].ints_off;
    }
    return tn_step_cost(shape, &lengths);
}

void check_bench_case(bench_run *r, bench_case *b)
{
    const check_options *o = &r->run->options;
    const check_target *t = r->target;
    tn_step shape;
    if ((o->op >= 0 && o->op != b->c.op) || (o->type >= 0 && o->type != b->c.type)) return;
    if (o->shape && !strstr(b->c.note, o->shape)) return;
    b->c.seed = o->seed;
    if (o->precision >= 0) b->c.precision = o->precision;
    if (check_step(t->ctx, &b->c, &shape) != TN_OK) {
        printf("%s %s: refused\n", tn_op_name(b->c.op), b->c.note);
        return;
    }
    if (!t->device->backend->accepts(t->device, &shape)) return;
    b->cost = cost_of(b, &shape);
    copies s = {0};
    timing time;
    tn_status status = copies_create(t->device, b, &shape, &s);
    size_t length = strlen(b->c.note);
    for (int32_t i = 0; i <= o->sweep; i++) {
        if (i > 0) set_variant(t->device, i);
        if (i > 0) snprintf(b->c.note + length, sizeof b->c.note - length, ", variant %d", i);
        if (status == TN_OK) status = measure(t->device, &s, o->sweep > 0 ? MIN_SWEEP : MIN_SECONDS, &time);
        tn_buffer_destroy(&s.scratch);
        if (status == TN_OK)
            print_result(r, b, t->device->backend->kernel_name(t->device, &shape),
                         check_rounding(t->device, &shape) != NULL, &time);
        else
            printf("%s %s: %s\n", tn_op_name(b->c.op), b->c.note, tn_status_text(status));
    }
    set_variant(t->device, o->variant);
    copies_destroy(&s);
}

void check_bench(check_run *run)
{
    bench_run r = {.run = run, .target = &run->targets[run->n_targets - 1]};
    r.peaks = check_peaks_measure(r.target);
    int32_t n = tn_context_n_threads(r.target->ctx);
    if (run->options.json) {
        printf("{\"level\": \"%s\", \"threads\": %d, \"read_gb_s\": %.1f, \"f32_gflop_s\": %.1f, "
               "\"int8_gop_s\": %.1f}\n",
               r.target->label, n, r.peaks.read * 1e-9, r.peaks.fma * 1e-9, r.peaks.dot * 1e-9);
    } else {
        printf("%s, %d threads; peaks measured: read %.1f GB/s, f32 %.1f GFLOP/s, int8 %.1f GOP/s\n\n",
               r.target->label, n, r.peaks.read * 1e-9, r.peaks.fma * 1e-9, r.peaks.dot * 1e-9);
        printf("| op | type | shape | kernel | us | spread | GB/s | GFLOP/s | share of peak |\n"
               "|---|---|---|---|---|---|---|---|---|\n");
    }
    check_bench_shapes(&r);
}
