// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes an executable of a program: chooses a kernel for each step, has it checked at its first use, and
// places what it needs.
#include "backends/vulkan/runtime/executable.h"
#include "backends/vulkan/runtime/probe.h"
#include "core/device.h"
#include "ops/ops.h"

size_t tn_vk_scratch_size(tn_device *device, const tn_program *program)
{
    const tn_vk *v = tn_vk_of(device);
    size_t most = 0;
    for (int32_t i = 0; i < program->n_steps; i++) {
        const tn_step *step = &program->steps[i];
        for (const tn_vk_kernel *k = tn_vk_find_kernel(v, step, NULL); k; k = tn_vk_find_kernel(v, step, k))
            most = TN_MAX(most, tn_vk_scratch_of(v, step, step, k, NULL));
    }
    return tn_vk_align_scratch(most);
}

tn_status tn_vk_launches(tn_device *device, const tn_program *program, int32_t i, const tn_launch_sink *sink)
{
    const tn_vk *v = tn_vk_of(device);
    const tn_vk_kernel *k = tn_vk_find_kernel(v, &program->steps[i], NULL);
    tn_step steps[2], *step = &steps[1];
    tn_vk_steps_nowhere(&program->steps[i], tn_vk_folded_of(&program->steps[i]), steps);
    tn_status status = TN_OK;
    if (step->join.next & TN_JOIN_FOLD) return TN_OK;
    for (int32_t j = 0, n = 1; k && j < n && status == TN_OK; j++) {
        tn_vk_dispatch d = {.v = v, .like = step};
        d.wants_staged = step->join.staged_y.ne[3] > 0;
        d.x_staged = step->join.staged_x.ne[3] > 0;
        tn_vk_args_of(step, &d.args);
        n = k->launch(step, j, &d);
        if (d.groups > 0) status = sink->put(sink->user, tn_vk_shader_name(d.shader));
    }
    return status;
}

// Planes hold the part, which is as aligned in all of them as the whole: to 16 bytes.
static bool holds(const tn_view *w, const tn_vk_weight *planes)
{
    const tn_buffer *b = w->buffer;
    size_t block = tn_dtype_block_size(w->dtype), row = tn_dtype_row_size(w->dtype, w->ne[3]),
           before = w->offset - b->weight_offset;
    bool inside = w->offset >= b->weight_offset &&
                  before + row * (size_t)tn_view_n_rows(w) <= b->weight_size && before % block == 0;
    for (int32_t p = 0; p < TN_VK_MAX_PLANES && inside; p++)
        inside = (int64_t)(before / block) * (planes->row_size[p] / (int64_t)(row / block)) % 16 == 0;
    return inside;
}

// A quantised operand is a weight in planes, or a part of one: raw blocks would be read wrongly.
static tn_status check_weights(tn_vk *v, const tn_step *step)
{
    for (int32_t i = 0; i < step->n_src && tn_op_takes_weights(step->op); i++) {
        const tn_view *w = &step->src[i];
        tn_vk_weight planes;
        if (!w->buffer || w->ne[3] == 0 || !tn_vk_weight_planes(w, &planes) || holds(w, &planes)) continue;
        return tn_fail(
            v->device->ctx, TN_ERR_UNSUPPORTED,
            "%s: %s operand of %s is no weight, or a part of one that does not start at 16 bytes of every "
            "field: copy it first on %s",
            step->name ? step->name : "", tn_dtype_name(w->dtype), tn_op_name(step->op), v->device->name);
    }
    return TN_OK;
}

// The verdict about the pipelines of a step. If there is none yet, a probe finds it.
static tn_status judge(tn_vk *v, const tn_step *step, const tn_vk_kernel *k, bool stages,
                       tn_vk_pipeline *const *pipelines, int32_t n, tn_vk_verdict *verdict)
{
    double error = 0.0;
    *verdict = tn_vk_verdict_get(v, pipelines, n);
    if (*verdict != TN_VK_UNKNOWN) return TN_OK;
    tn_status status = tn_vk_probe(v, step, k, stages, verdict, &error);
    if (status != TN_OK) return status;
    if (*verdict == TN_VK_UNKNOWN)
        tn_log(v->device->ctx, TN_LOG_WARN, "%s: kernel %s of %s cannot be checked", v->device->name, k->name,
               tn_op_name(step->op));
    else
        tn_vk_verdict_set(v, pipelines, n, *verdict);
    return TN_OK;
}

static tn_status reject(tn_vk *v, const tn_step *step, const tn_vk_kernel *k, const tn_vk_kernel *instead)
{
    if (!instead)
        return tn_fail(v->device->ctx, TN_ERR_DEVICE,
                       "%s: its driver compiles the kernel %s of %s wrongly, and there is no other one: "
                       "another version of "
                       "the driver, or another device, is needed",
                       v->device->name, k->name, tn_op_name(step->op));
    return tn_event(v->device->ctx, TN_EVENT_KERNEL_REPLACED,
                    "%s: its driver compiles the kernel %s of %s wrongly: %s runs instead", v->device->name,
                    k->name, tn_op_name(step->op), instead->name);
}

static tn_status prepare_step(tn_vk *v, tn_executable *e, const tn_step *step, int32_t index,
                              tn_vk_args *records);

// Prepares a step and the one that was to be folded into it one after the other, because the driver compiled
// the kernel that does both wrongly.
static tn_status prepare_apart(tn_vk *v, tn_executable *e, const tn_step *step, const tn_vk_kernel *k,
                               int32_t index, tn_vk_args *records)
{
    tn_step alone = *step;
    alone.join.previous = 0;
    tn_status status = tn_event(v->device->ctx, TN_EVENT_KERNEL_REPLACED,
                                "%s: its driver compiles the kernel %s of %s with %s wrongly: they run apart",
                                v->device->name, k->name, tn_op_name(step->op), tn_op_name(step[-1].op));
    if (status == TN_OK) status = prepare_step(v, e, step - 1, index - 1, records);
    return status == TN_OK ? prepare_step(v, e, &alone, index, records) : status;
}

// Prepares a step by the first kernel that the driver compiled right. Where that one cannot do a step that
// was to be folded into it, that step is prepared before it.
static tn_status prepare_step(tn_vk *v, tn_executable *e, const tn_step *step, int32_t index,
                              tn_vk_args *records)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(v, step, NULL);
    tn_vk_pipeline *pipelines[TN_VK_MAX_DISPATCHES];
    const tn_step *folded = tn_vk_folded_of(step);
    int32_t first_run = e->n_runs;
    if (!k)
        return tn_fail(v->device->ctx, TN_ERR_INTERNAL, "%s: no kernel for %s", v->device->name,
                       tn_op_name(step->op));
    tn_status status = check_weights(v, step);
    while (k && status == TN_OK) {
        if (folded && !tn_vk_folds(v, step, k)) {
            status = prepare_step(v, e, folded, index - 1, records);
            folded = NULL;
            first_run = e->n_runs;
            if (status != TN_OK) break;
        }
        int32_t first = e->n_runs, n = 0;
        tn_vk_verdict verdict = TN_VK_GOOD;
        status = tn_vk_launch(v, e, step, step, k, records, pipelines, &n);
        for (int32_t i = first; i < e->n_runs; i++) e->runs[i].step = index;
        if (status == TN_OK) status = judge(v, step, k, e->staged.written, pipelines, n, &verdict);
        if (status != TN_OK || verdict != TN_VK_BAD) break;
        if (folded) {
            e->n_runs = first;
            return prepare_apart(v, e, step, k, index, records);
        }
        const tn_vk_kernel *instead = tn_vk_find_kernel(v, step, k);
        status = reject(v, step, k, instead);
        e->n_runs = first;
        k = instead;
    }
    if (status != TN_OK || e->n_runs == first_run) return status;
    size_t used = tn_vk_scratch_of(v, step, step, k, NULL);
    tn_vk_range scratch = {e->scratch.from, e->scratch.from + used};
    e->runs[first_run].waits = tn_vk_barrier_needed(&e->order, step, folded, scratch);
    return TN_OK;
}

// How many dispatches all steps have at most; *counters: the most that a step needs.
static int32_t count_runs(const tn_vk *v, const tn_program *program, int64_t *counters)
{
    int32_t n = 0;
    *counters = 0;
    for (int32_t i = 0; i < program->n_steps; i++) {
        const tn_step *step = &program->steps[i];
        int32_t most = 0;
        for (const tn_vk_kernel *k = tn_vk_find_kernel(v, step, NULL); k; k = tn_vk_find_kernel(v, step, k)) {
            tn_vk_dispatch d = {.v = v, .like = step};
            most = TN_MAX(most, k->launch(step, 0, &d));
            *counters = TN_MAX(*counters, d.counters);
        }
        n += most;
    }
    return n;
}

static tn_status prepare_copies(tn_vk *v, int32_t n, const tn_host_copy *copies, bool up,
                                tn_vk_host_copy *list, uint64_t address, tn_vk_run *r)
{
    enum { COPY_THREADS = 256, MAX_BLOCKS = 64 };
    uint64_t most = 0;
    for (int32_t i = 0; i < n; i++) {
        uint64_t host = tn_vk_host_address(v, copies[i].host), device = (uint64_t)(uintptr_t)copies[i].device;
        if (host == 0)
            return tn_fail(v->device->ctx, TN_ERR_INTERNAL, "%s: copy of memory that it does not reach",
                           v->device->name);
        list[i] = (tn_vk_host_copy){up ? device : host, up ? host : device, copies[i].size / 4};
        most = TN_MAX(most, list[i].words);
    }
    *r = (tn_vk_run){.push.args = address};
    if (n == 0) return TN_OK;
    r->x = (uint32_t)TN_MIN((most + COPY_THREADS - 1) / COPY_THREADS, (uint64_t)MAX_BLOCKS);
    r->y = (uint32_t)n;
    tn_vk_pipeline *p = NULL;
    tn_status status = tn_vk_pipeline_get(v, TN_VK_SHADER_host_copy, (int32_t[TN_VK_CONSTANTS]){0}, &p);
    if (status == TN_OK) r->pipeline = p->handle;
    return status;
}

static uint64_t address_of(const tn_view *v)
{
    return (uint64_t)(uintptr_t)v->data;
}

// Where step i finds the staged result of an earlier step, and where it writes its own. Where a kernel that
// cannot write one had to replace the planned one, the reader quantises x itself.
static void set_staged(tn_executable *e, const tn_program *program, int32_t i)
{
    const tn_step_join *j = &program->steps[i].join;
    if (i > 0) e->has_staged[i - 1] = e->staged.written;
    int32_t maker = j->staged_x.ne[3] > 0 ? i - 1 : -1;
    while (maker >= 0 && address_of(&program->steps[maker].join.staged_y) != address_of(&j->staged_x))
        maker--;
    bool written = maker >= 0 && e->has_staged[maker];
    e->staged = (tn_vk_staged){.read = written ? address_of(&j->staged_x) : 0,
                               .write = address_of(&j->staged_y),
                               .norm = address_of(&j->staged_norm)};
}

// Makes the pipelines of all steps on all threads, because a driver needs long for one: on an H200 that
// shortened the first start with a small model from 3.6 s to 1.35 s.
static tn_status make_pipelines(tn_vk *v, tn_executable *e, const tn_program *program, tn_vk_args *records)
{
    tn_vk_pipeline *none[TN_VK_MAX_DISPATCHES];
    tn_status status = TN_OK;
    e->requests = tn_calloc(v->device->ctx, 1, sizeof *e->requests);
    if (!e->requests) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < program->n_steps && status == TN_OK; i++) {
        const tn_vk_kernel *k = tn_vk_find_kernel(v, &program->steps[i], NULL);
        int32_t n;
        set_staged(e, program, i);
        if (program->steps[i].join.next & TN_JOIN_FOLD) continue;
        if (k) status = tn_vk_launch(v, e, &program->steps[i], &program->steps[i], k, records, none, &n);
    }
    if (status == TN_OK) status = tn_vk_pipelines_make(v, e->requests);
    tn_free(v->device->ctx, e->requests);
    e->requests = NULL;
    e->staged = (tn_vk_staged){0};
    e->n_runs = 0;
    return status;
}

// How many pipelines this process has compiled or judged so far.
static int32_t n_first(tn_vk *v)
{
    tn_mutex_lock(&v->lock);
    int32_t n = v->n_compiled + v->n_new;
    tn_mutex_unlock(&v->lock);
    return n;
}

static tn_status prepare(tn_vk *v, tn_executable *e, const tn_program *program)
{
    int64_t n_counters;
    int32_t n_runs = count_runs(v, program, &n_counters),
            n_copies = program->n_uploads + program->n_downloads;
    size_t lists = (size_t)n_runs * sizeof(tn_vk_args),
           counters = lists + (size_t)n_copies * sizeof(tn_vk_host_copy),
           size = counters + (size_t)n_counters * sizeof(uint32_t);
    e->runs = tn_calloc(v->device->ctx, (size_t)n_runs + 1, sizeof *e->runs);
    e->has_staged = tn_calloc(v->device->ctx, (size_t)program->n_steps + 1, sizeof *e->has_staged);
    char *records = tn_calloc(v->device->ctx, size + 1, 1);
    tn_status status = e->runs && e->has_staged && records
                           ? tn_vk_memory_create(v, size + TN_VK_NEXT_RECORDS, false, &e->args)
                           : TN_ERR_MEMORY;
    e->counters = e->args.address + counters;
    int32_t before = tn_vk_n_compiled(v);
    if (status == TN_OK) status = make_pipelines(v, e, program, (tn_vk_args *)(void *)records);
    int32_t seen = n_first(v);
    for (int32_t i = 0; i < program->n_steps && status == TN_OK; i++) {
        set_staged(e, program, i);
        if (program->steps[i].join.next & TN_JOIN_FOLD) continue; // the next one does its work
        status = prepare_step(v, e, &program->steps[i], i, (tn_vk_args *)(void *)records);
        int32_t now = n_first(v);
        if (now != seen)
            tn_notice(v->device->ctx, TN_EVENT_COMPILING,
                      "%s: checking kernels for the first time: %d of %d steps have theirs", v->device->name,
                      i + 1, program->n_steps);
        seen = now;
    }
    int32_t compiled = tn_vk_n_compiled(v) - before;
    if (compiled > 0)
        tn_notice(v->device->ctx, TN_EVENT_COMPILED, "%s: %d kernels were compiled for the first time",
                  v->device->name, compiled);
    tn_vk_host_copy *list = (tn_vk_host_copy *)(void *)(records + lists);
    uint64_t at = e->args.address + lists;
    if (status == TN_OK)
        status = prepare_copies(v, program->n_uploads, program->uploads, true, list, at, &e->up);
    list += program->n_uploads;
    at += (uint64_t)program->n_uploads * sizeof *list;
    if (status == TN_OK)
        status = prepare_copies(v, program->n_downloads, program->downloads, false, list, at, &e->down);
    if (status == TN_OK) status = tn_vk_memory_write(v, &e->args, 0, records, size);
    if (status == TN_OK) status = tn_vk_record_parts(v, e, program);
    tn_free(v->device->ctx, records);
    tn_free(v->device->ctx, e->has_staged);
    e->has_staged = NULL;
    return status;
}

tn_status tn_vk_prepare(tn_device *device, const tn_program *program, const tn_buffer *scratch,
                        tn_executable **out)
{
    tn_vk *v = tn_vk_of(device);
    tn_status status = tn_vk_begin_object(v);
    if (status != TN_OK) return status;
    tn_executable *e = tn_calloc(device->ctx, 1, sizeof *e);
    if (!e) {
        tn_vk_end_object(v);
        return TN_ERR_MEMORY;
    }
    e->is_object = true;
    e->n_steps = program->n_steps;
    if (scratch && scratch->data) {
        e->scratch.from = (uint64_t)(uintptr_t)scratch->data;
        e->scratch.to = e->scratch.from + scratch->size;
    }
    status = prepare(v, e, program);
    if (status != TN_OK)
        tn_vk_executable_destroy(device, e);
    else
        *out = e;
    return status;
}
