// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/tune.h"

#include "core/hash.h"
#include "core/tuning/tuning_file.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 4096, NAME_SIZE = 48, TIMED_RUNS = 7, MAX_CANDIDATES = 16 };

typedef struct entry {
    uint64_t key;
    const char *kernel; // name of rows, of kernels.def
} entry;

struct tn_cuda_tuning {
    atomic_flag lock; // guards the rest: sessions of several threads prepare plans at the same time
    int32_t n;
    entry entries[MAX_ENTRIES];
};

static void lock(struct tn_cuda_tuning *t)
{
    while (atomic_flag_test_and_set_explicit(&t->lock, memory_order_acquire)) {
    }
}

static void unlock(struct tn_cuda_tuning *t)
{
    atomic_flag_clear_explicit(&t->lock, memory_order_release);
}

// Op, types and extents of all operands.
static uint64_t key_of(const tn_step *step)
{
    tn_hash h;
    tn_hash_init(&h);
    tn_hash_add(&h, &step->op, sizeof step->op);
    for (int32_t i = 0; i < step->n_src; i++) {
        tn_hash_add(&h, &step->src[i].dtype, sizeof step->src[i].dtype);
        tn_hash_add(&h, step->src[i].ne, sizeof step->src[i].ne);
    }
    return tn_hash_value(&h);
}

// --- file --------------------------------------------------------------------------------------------

// To be raised when a kernel of an earlier file gets another name, or when key_of() gets another meaning.
// Files of version 1 had no number in their header, and some of their kernels have other names now.
enum { FILE_VERSION = 2 };

static tn_tuning_file file_of(const tn_cuda *c)
{
    return (tn_tuning_file){
        .backend = "cuda", .description = c->device->description, .version = FILE_VERSION};
}

// The name as it stands in kernels.def, NULL if no row has it (any more).
static const char *known_name(const tn_cuda *c, const char *name)
{
    const tn_cuda_kernel *rows = c->kernels->rows;
    for (int32_t i = 0; i < c->kernels->n_rows; i++)
        if (strcmp(rows[i].name, name) == 0) return rows[i].name;
    return NULL;
}

// A line is "key kernel".
static void read_line(void *user, const char *text)
{
    tn_cuda *c = user;
    const char *name = strlen(text) > 17 ? known_name(c, text + 17) : NULL;
    if (name && c->tuning->n < MAX_ENTRIES)
        c->tuning->entries[c->tuning->n++] = (entry){strtoull(text, NULL, 16), name};
}

static bool write_line(const void *user, int32_t i, char text[TN_TUNING_LINE_SIZE])
{
    const struct tn_cuda_tuning *t = user;
    if (i >= t->n) return false;
    snprintf(text, TN_TUNING_LINE_SIZE, "%016" PRIx64 " %s", t->entries[i].key, t->entries[i].kernel);
    return true;
}

void tn_cuda_tuning_load(tn_cuda *c)
{
    c->tuning = tn_calloc(c->device->ctx, 1, sizeof *c->tuning);
    if (!c->tuning) return; // works without
    atomic_flag_clear(&c->tuning->lock);
    tn_tuning_file f = file_of(c);
    tn_tuning_file_read(c->device->ctx, &f, read_line, c);
}

void tn_cuda_tuning_free(tn_cuda *c)
{
    tn_free(c->device->ctx, c->tuning);
    c->tuning = NULL;
}

static tn_status save(const tn_cuda *c)
{
    tn_tuning_file f = file_of(c);
    return tn_tuning_file_write(c->device->ctx, &f, write_line, c->tuning);
}

// --- selection ---------------------------------------------------------------------------------------

const tn_cuda_kernel *tn_cuda_tuned(const tn_cuda *c, const tn_step *step)
{
    struct tn_cuda_tuning *t = c->tuning;
    if (!t) return NULL;
    uint64_t key = key_of(step);
    const char *name = NULL;
    lock(t);
    for (int32_t i = 0; i < t->n && !name; i++)
        if (t->entries[i].key == key) name = t->entries[i].kernel;
    unlock(t);
    for (int32_t i = 0; i < c->kernels->n_rows && name; i++) {
        const tn_cuda_kernel *k = &c->kernels->rows[i];
        if (tn_op_set_has(k->set, step->op) && strcmp(k->name, name) == 0 && k->accepts(c, step)) return k;
    }
    return NULL;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

typedef struct timer {
    CUevent start, end;
    CUdeviceptr flush; // as large as two L2 caches: what lies in the cache then is none of the operands
} timer;

// Median of TIMED_RUNS runs, each with a cold cache, in milliseconds.
static tn_status time_kernel(tn_cuda *c, const timer *t, const tn_cuda_kernel *k, const tn_cuda_launch *l,
                             float *out)
{
    float ms[TIMED_RUNS];
    tn_status status = TN_OK;
    for (int32_t i = -1; i < TIMED_RUNS && status == TN_OK; i++) { // the first one loads code
        status = tn_cuda_check(c, c->driver.fill(t->flush, 0, 2 * c->l2_size, c->stream), "tuning");
        if (status == TN_OK) status = tn_cuda_check(c, c->driver.event_record(t->start, c->stream), "tuning");
        if (status == TN_OK) status = k->launch(l);
        if (status == TN_OK) status = tn_cuda_check(c, c->driver.event_record(t->end, c->stream), "tuning");
        if (status == TN_OK) status = tn_cuda_wait_event(c, t->end, "tuning");
        if (status == TN_OK && i >= 0)
            status = tn_cuda_check(c, c->driver.event_elapsed(&ms[i], t->start, t->end), "tuning");
    }
    if (status != TN_OK) return status;
    qsort(ms, TIMED_RUNS, sizeof *ms, compare_floats);
    *out = ms[TIMED_RUNS / 2];
    return TN_OK;
}

static int32_t candidates(const tn_cuda *c, const tn_step *step, const tn_cuda_kernel **out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->kernels->n_rows && n < MAX_CANDIDATES; i++) {
        const tn_cuda_kernel *k = &c->kernels->rows[i];
        if (tn_op_set_has(k->set, step->op) && k->accepts(c, step)) out[n++] = k;
    }
    return n;
}

// Ops whose time depends on shapes alone: what routes tokens or counts keys has no sensible values yet.
static bool is_tunable(int32_t op)
{
    return op == TN_OP_matmul || op == TN_OP_linear || op == TN_OP_matmul_multi || op == TN_OP_matmul_glu;
}

static tn_status tune_step(tn_cuda *c, const timer *t, const tn_step *step, const tn_buffer *scratch,
                           bool *changed)
{
    const tn_cuda_kernel *rows[MAX_CANDIDATES], *best = NULL;
    int32_t n = candidates(c, step, rows);
    if (n < 2 || !is_tunable(step->op) || step->precision != TN_PRECISION_auto || tn_cuda_tuned(c, step) ||
        c->tuning->n == MAX_ENTRIES)
        return TN_OK;
    tn_cuda_launch l = {.cuda = c, .step = step, .scratch = scratch ? scratch->data : NULL};
    float best_ms = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        float ms;
        if (rows[i]->scratch(c, step) > (scratch ? scratch->size : 0)) continue;
        bool may_fail = (rows[i]->flags & TN_CUDA_ONLY_TUNED) != 0; // then others run
        tn_status status = may_fail ? c->kernels->prepare_tuned(c, step) : TN_OK;
        if (status == TN_OK) status = time_kernel(c, t, rows[i], &l, &ms);
        if (status != TN_OK && may_fail && !tn_cuda_is_given_up(c)) {
            char why[300];
            tn_context_error(c->device->ctx, why, sizeof why);
            tn_log(c->device->ctx, TN_LOG_INFO, "tuning %s %s: %s left out: %s", tn_op_name(step->op),
                   step->name ? step->name : "", rows[i]->name, why);
            continue;
        }
        if (status != TN_OK) return tn_fail_at(c->device->ctx, status, "%s", rows[i]->name);
        tn_log(c->device->ctx, TN_LOG_INFO, "tuning %s %s: %s %.1f us", tn_op_name(step->op),
               step->name ? step->name : "", rows[i]->name, (double)ms * 1e3);
        if (!best || ms < best_ms) best = rows[i], best_ms = ms;
    }
    if (!best) return TN_OK;
    lock(c->tuning);
    if (c->tuning->n < MAX_ENTRIES) c->tuning->entries[c->tuning->n++] = (entry){key_of(step), best->name};
    unlock(c->tuning);
    *changed = true;
    return TN_OK;
}

tn_status tn_cuda_tune(tn_cuda *c, const tn_program *program, const tn_buffer *scratch)
{
    if (!c->tuning) return TN_OK;
    timer t = {0};
    bool changed = false;
    tn_status status = tn_cuda_check(c, c->driver.mem_alloc(&t.flush, 2 * c->l2_size), "tuning");
    if (status == TN_OK)
        status = tn_cuda_check(c, c->driver.event_create(&t.start, CU_EVENT_DEFAULT), "tuning");
    if (status == TN_OK)
        status = tn_cuda_check(c, c->driver.event_create(&t.end, CU_EVENT_DEFAULT), "tuning");
    for (int32_t i = 0; i < program->n_steps && status == TN_OK; i++)
        status = tune_step(c, &t, &program->steps[i], scratch, &changed);
    bool there = tn_cuda_settle(c);
    if (there && t.end) c->driver.event_destroy(t.end);
    if (there && t.start) c->driver.event_destroy(t.start);
    if (there && t.flush) c->driver.mem_free(t.flush);
    return status == TN_OK && changed ? save(c) : status;
}
