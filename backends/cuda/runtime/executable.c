// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of a program become one captured graph, so that a submission is one launch. If the caller asks
// for times, the same launches run one by one with events between them.
#include "backends/cuda/runtime/derived.h"
#include "backends/cuda/runtime/select.h"
#include "backends/cuda/runtime/staged.h"
#include "backends/cuda/runtime/tune.h"
#include "core/device.h"
#include "ops/ops.h"

#include <string.h>

struct tn_executable {
    int32_t n_steps, first_step; // the first that launches anything
    tn_step *steps;
    const tn_cuda_kernel **kernels;       // of the steps
    char *scratch;                        // of kernels
    tn_cuda_copy_args uploads, downloads; // before the first step, after the last
    CUgraph graph;
    CUgraphExec exec;
    CUevent *events; // n_steps + 1, created when times are first asked for
    bool timed;      // the last submission has recorded them
    uint64_t *step_ns;
};

void tn_cuda_executable_destroy(tn_device *device, tn_executable *e)
{
    if (!e) return;
    tn_cuda *c = tn_cuda_of(device);
    bool there = tn_cuda_settle(c);
    for (int32_t i = 0; there && e->events && i <= e->n_steps; i++)
        if (e->events[i]) c->driver.event_destroy(e->events[i]);
    if (there && e->exec) c->driver.graph_exec_destroy(e->exec);
    if (there && e->graph) c->driver.graph_destroy(e->graph);
    tn_free(device->ctx, e->events);
    tn_free(device->ctx, e->steps);
    tn_free(device->ctx, (void *)e->kernels);
    tn_free(device->ctx, e);
}

// A quantised operand is a weight in planes, or a part of one: raw blocks would be read wrongly. Matmuls
// load whole rows of planes, 16 bytes at a time.
static tn_status check_weight(tn_cuda *c, const tn_step *step, const tn_view *v)
{
    bool moves = step->op == TN_OP_copy || step->op == TN_OP_get_rows;
    if (!tn_cuda_weight_holds(v))
        return tn_fail(c->device->ctx, TN_ERR_UNSUPPORTED,
                       "%s: %s operand of %s is no weight: other quantised tensors cannot be used on %s",
                       step->name ? step->name : "", tn_dtype_name(v->dtype), tn_op_name(step->op),
                       c->device->name);
    if (!moves && v->buffer && !tn_cuda_weight_aligned(v))
        return tn_fail(c->device->ctx, TN_ERR_UNSUPPORTED,
                       "%s: %s operand of %s is a part of a weight that does not start at 16 bytes of every "
                       "field on %s; copy it first",
                       step->name ? step->name : "", tn_dtype_name(v->dtype), tn_op_name(step->op),
                       c->device->name);
    return TN_OK;
}

// What the launch function of a step is given, with what it points to.
typedef struct step_launch {
    tn_cuda_launch launch;
    tn_cuda_quantised x, y;
} step_launch;

// `step` follows, in its program, the step that it may be joined with.
static void set_launch(step_launch *l, const tn_step *step)
{
    const tn_step_join *j = &step->join;
    const tn_step *folded = j->previous & TN_JOIN_FOLD ? step - 1 : NULL;
    bool sums = folded && folded->op == TN_OP_matmul_id;
    l->x = tn_cuda_quantised_x(sums ? folded : step);
    l->y = tn_cuda_quantised_y(step);
    l->launch = (tn_cuda_launch){.step = step,
                                 .quantised_x = l->x.rows ? &l->x : NULL,
                                 .quantised_y = l->y.rows ? &l->y : NULL,
                                 .rope = sums ? NULL : folded,
                                 .product = sums ? folded : NULL,
                                 .route = j->previous & TN_JOIN_DEFER ? step - 1 : NULL,
                                 .defers_route = (j->next & TN_JOIN_DEFER) != 0,
                                 .writes_packed16 = (j->next & TN_JOIN_PACK) != 0,
                                 .reads_packed16 = (j->previous & TN_JOIN_PACK) != 0,
                                 .early = j->early};
}

static tn_status launch_step(tn_cuda *c, const tn_executable *e, int32_t i)
{
    const tn_step *step = &e->steps[i];
    if (step->join.next & TN_JOIN_FOLD) return TN_OK;
    step_launch l;
    set_launch(&l, step);
    l.launch.cuda = c;
    l.launch.scratch = e->scratch;
    l.launch.alone = i == e->first_step || step->join.computed_weights;
    l.launch.packs_f16 = l.launch.writes_packed16 && (e->kernels[i + 1]->flags & TN_CUDA_ROUNDS_F16);
    tn_status status = e->kernels[i]->launch(&l.launch);
    return status == TN_OK ? TN_OK : tn_fail_at(c->device->ctx, status, "%s", e->kernels[i]->name);
}

tn_status tn_cuda_launches(tn_device *device, const tn_program *program, int32_t i,
                           const tn_launch_sink *sink)
{
    tn_cuda *c = tn_cuda_of(device);
    const tn_cuda_kernel *k = tn_cuda_kernel_find(c, &program->steps[i]);
    if (!k || (program->steps[i].join.next & TN_JOIN_FOLD)) return TN_OK;
    tn_step steps[2] = {{0}};
    if (i > 0) steps[0] = tn_cuda_step_nowhere(&program->steps[i - 1]);
    steps[1] = tn_cuda_step_nowhere(&program->steps[i]);
    step_launch l;
    set_launch(&l, &steps[1]);
    l.launch.cuda = c;
    l.launch.sink = sink;
    l.launch.scratch = (char *)(uintptr_t)TN_CUDA_NOWHERE;
    return k->launch(&l.launch);
}

static tn_status set_copies(tn_cuda *c, tn_cuda_copy_args *a, int32_t n, const tn_host_copy *copies, bool up)
{
    if (n > TN_CUDA_COPIES)
        return tn_fail(c->device->ctx, TN_ERR_UNSUPPORTED, "%s: %d copies of a run", c->device->name, n);
    a->n = n;
    for (int32_t i = 0; i < n; i++) {
        a->copy[i].to = up ? copies[i].device : copies[i].host;
        a->copy[i].from = up ? copies[i].host : copies[i].device;
        a->copy[i].n = (int64_t)(copies[i].size / 4);
    }
    return TN_OK;
}

static tn_status launch_copies(tn_cuda *c, const tn_cuda_copy_args *a)
{
    enum { COPY_THREADS = 256, COPY_BLOCKS = 16 };
    int64_t most = 0;
    for (int32_t i = 0; i < a->n; i++) most = TN_MAX(most, a->copy[i].n);
    tn_cuda_launch l = {.cuda = c};
    tn_cuda_grid grid = {.x = (uint32_t)TN_MIN(tn_div_up(most, COPY_THREADS), COPY_BLOCKS),
                         .y = 1,
                         .z = 1,
                         .threads = COPY_THREADS};
    return tn_cuda_run(&l, TN_CUDA_MODULE_copy_list, "tn_copy_list", &grid, a);
}

// Relaxed, because launches load modules at first use, which is safe here: nothing of it touches the stream.
static tn_status capture(tn_cuda *c, tn_executable *e)
{
    tn_status status =
        tn_cuda_check(c, c->driver.capture_begin(c->stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capturing");
    if (status != TN_OK) return status;
    status = launch_copies(c, &e->uploads);
    for (int32_t i = 0; i < e->n_steps && status == TN_OK; i++) status = launch_step(c, e, i);
    if (status == TN_OK) status = launch_copies(c, &e->downloads);
    CUresult ended = c->driver.capture_end(c->stream, &e->graph);
    if (status == TN_OK) status = tn_cuda_check(c, ended, "capturing");
    if (status == TN_OK)
        status = tn_cuda_check(c, c->driver.graph_instantiate(&e->exec, e->graph, 0), "making the graph");
    if (status == TN_OK)
        status = tn_cuda_check(c, c->driver.graph_upload(e->exec, c->stream), "making the graph");
    return status;
}

size_t tn_cuda_scratch_size(tn_device *device, const tn_program *program)
{
    return tn_cuda_kernel_scratch_size(tn_cuda_of(device), program);
}

size_t tn_cuda_derived_size(tn_device *device, const tn_program *program)
{
    tn_cuda *c = tn_cuda_of(device);
    size_t size = 0;
    for (int32_t i = 0; i < program->n_steps; i++) {
        const tn_cuda_kernel *k = tn_cuda_kernel_find(c, &program->steps[i]);
        if (k) size += c->kernels->derived_size(&program->steps[i], k);
    }
    return size;
}

uint64_t tn_cuda_derived_used(tn_device *device, const void *from, size_t n)
{
    return tn_cuda_derived_kept(tn_cuda_of(device), from, n);
}

// Kernels of all steps. What was tuned since the plan was made may no longer do what steps share: then
// another kernel runs, or there is none.
static tn_status select_kernels(tn_cuda *c, tn_executable *e, const tn_program *program,
                                const tn_buffer *scratch)
{
    size_t size = scratch ? scratch->size : 0;
    e->scratch = scratch ? scratch->data : NULL;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < e->n_steps && status == TN_OK; i++) {
        const tn_step *step = &program->steps[i];
        e->steps[i] = *step;
        e->kernels[i] = tn_cuda_kernel_select(c, step, size);
        if (!e->kernels[i])
            status = tn_fail(c->device->ctx, TN_ERR_INTERNAL, "%s: no kernel for %s", c->device->name,
                             tn_op_name(step->op));
        else if (!c->kernels->join_holds(c, step))
            status = tn_fail(c->device->ctx, TN_ERR_UNSUPPORTED,
                             "%s: weights or caches of %s do not lie at multiples of 16 bytes on %s",
                             tn_op_name(step->op), step->name ? step->name : "", c->device->name);
        for (int32_t k = 0; k < step->n_src && tn_op_takes_weights(step->op) && status == TN_OK; k++)
            status = check_weight(c, step, &step->src[k]);
        if (status == TN_OK) status = c->kernels->derive_weights(c, step, e->kernels[i]);
    }
    while (e->first_step < e->n_steps && (e->steps[e->first_step].join.next & TN_JOIN_FOLD)) e->first_step++;
    return status == TN_OK ? tn_cuda_derived_report(c) : status;
}

tn_status tn_cuda_prepare(tn_device *device, const tn_program *program, const tn_buffer *scratch,
                          tn_executable **out)
{
    tn_context *ctx = device->ctx;
    tn_cuda *c = tn_cuda_of(device);
    tn_status status = tn_cuda_enter(c);
    if (status != TN_OK) return status;
    tn_executable *e = tn_calloc(ctx, 1, sizeof *e);
    if (!e) return TN_ERR_MEMORY;
    size_t n = (size_t)program->n_steps + 1;
    e->n_steps = program->n_steps;
    e->steps = tn_calloc(ctx, n, sizeof *e->steps);
    e->kernels = tn_calloc(ctx, n, sizeof *e->kernels);
    if (!e->steps || !e->kernels) status = TN_ERR_MEMORY;
    if (status == TN_OK) status = set_copies(c, &e->uploads, program->n_uploads, program->uploads, true);
    if (status == TN_OK)
        status = set_copies(c, &e->downloads, program->n_downloads, program->downloads, false);
    if (status == TN_OK && tn_context_tunes(ctx)) status = tn_cuda_tune(c, program, scratch);
    if (status == TN_OK) status = select_kernels(c, e, program, scratch);
    if (status == TN_OK) status = capture(c, e);
    if (status != TN_OK)
        tn_cuda_executable_destroy(device, e);
    else
        *out = e;
    return status;
}

static tn_status submit_timed(tn_cuda *c, tn_executable *e)
{
    if (!e->events) {
        e->events = tn_calloc(c->device->ctx, (size_t)e->n_steps + 1, sizeof *e->events);
        if (!e->events) return TN_ERR_MEMORY;
    }
    tn_status status = launch_copies(c, &e->uploads);
    for (int32_t i = 0; i <= e->n_steps && status == TN_OK; i++) {
        if (!e->events[i])
            status =
                tn_cuda_check(c, c->driver.event_create(&e->events[i], CU_EVENT_DEFAULT), "making an event");
        if (status == TN_OK)
            status = tn_cuda_check(c, c->driver.event_record(e->events[i], c->stream), "recording an event");
        if (status == TN_OK && i < e->n_steps) status = launch_step(c, e, i);
    }
    return status == TN_OK ? launch_copies(c, &e->downloads) : status;
}

tn_status tn_cuda_submit(tn_device *device, tn_executable *e, const tn_submit_options *options)
{
    tn_cuda *c = tn_cuda_of(device);
    // Relaxed: the flag carries no data. A graph is short: once launched it runs to its end.
    if (options && options->cancel && atomic_load_explicit(options->cancel, memory_order_relaxed) != 0)
        return tn_fail(device->ctx, TN_ERR_CANCELLED, "cancelled");
    tn_status status = tn_cuda_enter(c);
    if (status != TN_OK) return status;
    e->step_ns = options ? options->step_ns : NULL;
    e->timed = e->step_ns != NULL;
    if (e->timed) return submit_timed(c, e);
    return tn_cuda_check(c, c->driver.graph_launch(e->exec, c->stream), "launching");
}

tn_status tn_cuda_wait(tn_device *device, tn_executable *e)
{
    tn_cuda *c = tn_cuda_of(device);
    tn_status status = tn_cuda_enter(c);
    if (status == TN_OK) status = tn_cuda_wait_all(c, "running");
    for (int32_t i = 0; i < e->n_steps && status == TN_OK && e->timed; i++) {
        float ms = 0.0f;
        status =
            tn_cuda_check(c, c->driver.event_elapsed(&ms, e->events[i], e->events[i + 1]), "reading a time");
        e->step_ns[i] += (uint64_t)((double)ms * 1e6);
    }
    e->timed = false;
    return status;
}
