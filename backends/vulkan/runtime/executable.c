// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps become one command buffer, recorded once and submitted as often as wanted; several where there is
// much work, so that it can be cancelled between them. With times wanted another one is recorded that has
// timestamps between the steps.
#include "backends/vulkan/runtime/staged.h"
#include "backends/vulkan/runtime/kernel.h"
#include "backends/vulkan/runtime/barriers.h"
#include "backends/vulkan/runtime/probe.h"
#include "core/device.h"
#include "ops/ops.h"

#include <string.h>

typedef struct host_copy { // shaders/copies.comp
    uint64_t to, from, words;
} host_copy;

typedef struct run { // one dispatch
    VkPipeline pipeline;
    tn_vk_push push;
    uint32_t x, y;
    int32_t step;
    bool waits; // for those before it
} run;

// Behind the records: shaders ask for those of the next dispatches too (touch_record).
enum { NEXT_RECORDS = 2 * sizeof(tn_vk_args) };

struct tn_executable {
    int32_t n_steps, n_runs, n_uploads, n_downloads;
    tn_vk_range scratch;
    tn_vk_barriers order;            // while steps are prepared
    tn_vk_staged hand;               // of the step that is prepared
    tn_vk_pipeline_requests *wishes; // not NULL: pipelines are only noted there
    uint64_t left[2];                // where steps leave bytes, by turns; 0: nowhere
    run *runs;
    run up, down;
    uint64_t counters;             // of all steps: those that want scratch too run one after the other
    tn_vk_memory args;             // all records, then the lists of copies, then the counters
    VkCommandBuffer *parts, timed; // each part has some of the steps
    int32_t *part_end;             // the first step that is not in it
    int32_t n_parts;
    VkQueryPool queries; // n_steps + 1, made when times are first wanted
    uint64_t *ticks;
    uint64_t *step_ns; // of the last submission, NULL: none wanted
    uint64_t value;    // of the timeline at its end
};

// --- submission --------------------------------------------------------------------------------------

tn_status tn_vk_submit_commands(tn_vk *v, int32_t n, const VkCommandBuffer *commands, uint64_t *value)
{
    mtx_lock(&v->lock);
    uint64_t next = v->n_submitted + 1;
    VkTimelineSemaphoreSubmitInfo signal = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                            .signalSemaphoreValueCount = 1,
                                            .pSignalSemaphoreValues = &next};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &signal,
                         .commandBufferCount = (uint32_t)n,
                         .pCommandBuffers = commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &v->timeline};
    tn_status status = tn_vk_check(v, v->f.QueueSubmit(v->queue, 1, &info, VK_NULL_HANDLE), "submitting");
    if (status == TN_OK) *value = v->n_submitted = next;
    mtx_unlock(&v->lock);
    return status;
}

// Who sleeps is woken some ten microseconds late, of each token: what takes about as long as a token is
// looked for first. Not on a software driver, which needs the processor itself.
static bool seen_soon(tn_vk *v, uint64_t value)
{
    enum { LOOKS = 16, MOST_NS = 10000000 };
    uint64_t reached = 0, until = tn_time_ns() + MOST_NS;
    while (!v->device->software && tn_time_ns() < until) {
        if (v->f.GetSemaphoreCounterValue(v->handle, v->timeline, &reached) != VK_SUCCESS) return false;
        if (reached >= value) return true;
        for (int32_t i = 0; i < LOOKS; i++) TN_PAUSE();
    }
    return false;
}

tn_status tn_vk_wait_for(tn_vk *v, uint64_t value)
{
    if (value == 0 || seen_soon(v, value)) return TN_OK;
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &v->timeline,
                                .pValues = &value};
    return tn_vk_check(v, v->f.WaitSemaphores(v->handle, &info, UINT64_MAX), "running");
}

tn_status tn_vk_drain(tn_vk *v)
{
    mtx_lock(&v->lock);
    uint64_t value = v->n_submitted;
    mtx_unlock(&v->lock);
    return tn_vk_wait_for(v, value);
}

// --- recording -----------------------------------------------------------------------------------------

// What follows sees what was written before.
static void barrier(tn_vk *v, VkCommandBuffer commands, bool to_host)
{
    VkMemoryBarrier b = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                         .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                         .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                          (to_host ? VK_ACCESS_HOST_READ_BIT : 0u)};
    v->f.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                (to_host ? VK_PIPELINE_STAGE_HOST_BIT : 0u),
                            0, 1, &b, 0, NULL, 0, NULL);
}

static void dispatch(tn_vk *v, VkCommandBuffer commands, const run *r)
{
    if (r->x == 0) return;
    v->f.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, r->pipeline);
    v->f.CmdPushConstants(commands, v->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof r->push, &r->push);
    v->f.CmdDispatch(commands, r->x, r->y, 1);
}

// Steps [first, end).
static void record_runs(tn_vk *v, const tn_executable *e, int32_t first, int32_t end,
                        VkCommandBuffer commands, bool timed)
{
    barrier(v, commands, false); // against what was submitted before
    if (timed) v->f.CmdResetQueryPool(commands, e->queries, 0, (uint32_t)e->n_steps + 1);
    if (first == 0) {
        dispatch(v, commands, &e->up);
        barrier(v, commands, false);
    }
    if (timed) v->f.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, e->queries, 0);
    int32_t next = 0;
    while (next < e->n_runs && e->runs[next].step < first) next++;
    for (int32_t s = first; s < end; s++) {
        for (; next < e->n_runs && e->runs[next].step == s; next++) {
            if (e->runs[next].waits) barrier(v, commands, false);
            dispatch(v, commands, &e->runs[next]);
        }
        if (!timed) continue;
        barrier(v, commands, false);
        v->f.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, e->queries, (uint32_t)s + 1);
    }
    if (end < e->n_steps) return;
    barrier(v, commands, false);
    dispatch(v, commands, &e->down);
    barrier(v, commands, true);
}

static tn_status record(tn_vk *v, const tn_executable *e, int32_t first, int32_t end, bool timed,
                        VkCommandBuffer *out)
{
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = v->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    // The same work may be submitted again before the last run has ended.
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
    mtx_lock(&v->lock);
    tn_status status = tn_vk_check(v, v->f.AllocateCommandBuffers(v->handle, &info, out), "making commands");
    if (status == TN_OK) status = tn_vk_check(v, v->f.BeginCommandBuffer(*out, &begin), "recording");
    if (status == TN_OK) {
        record_runs(v, e, first, end, *out, timed);
        status = tn_vk_check(v, v->f.EndCommandBuffer(*out), "recording");
    }
    mtx_unlock(&v->lock);
    return status;
}

// Parts of a size that takes some milliseconds on a large device, and some ten on others.
static int32_t split(const tn_vk *v, const tn_program *program, int32_t *ends)
{
    const double most = v->device->software ? 5e7 : 4e11;
    double sum = 0.0;
    int32_t n = 0;
    for (int32_t i = 0; i < program->n_steps; i++) {
        double work = tn_step_work(&program->steps[i]);
        if (sum > 0.0 && sum + work > most) {
            ends[n++] = i;
            sum = 0.0;
        }
        sum += work;
    }
    ends[n++] = program->n_steps;
    return n;
}

static tn_status record_parts(tn_vk *v, tn_executable *e, const tn_program *program)
{
    e->part_end = tn_calloc(v->device->ctx, (size_t)program->n_steps + 1, sizeof *e->part_end);
    if (!e->part_end) return TN_ERR_MEMORY;
    int32_t n = split(v, program, e->part_end);
    e->parts = tn_calloc(v->device->ctx, (size_t)n, sizeof(VkCommandBuffer));
    if (!e->parts) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        status = record(v, e, i > 0 ? e->part_end[i - 1] : 0, e->part_end[i], false, &e->parts[i]);
        e->n_parts = i + 1; // one that failed may be there too
    }
    return status;
}

// --- preparation ---------------------------------------------------------------------------------------

bool tn_vk_accepts(const tn_device *device, const tn_step *step)
{
    return tn_vk_find_kernel(tn_vk_of(device), step, NULL) != NULL;
}

const char *tn_vk_kernel_name(const tn_device *device, const tn_step *step)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(tn_vk_of(device), step, NULL);
    return k ? k->name : "none";
}

// What a step wants beside its operands, which may be unbound; returns the bytes of scratch.
static size_t scratch_of(const tn_vk *v, const tn_step *step, const tn_step *like, const tn_vk_kernel *k,
                         int64_t *counters)
{
    tn_vk_dispatch d = {.v = v, .like = like};
    tn_vk_args_of(step, &d.args);
    k->launch(step, 0, &d);
    if (counters) *counters = d.counters;
    return (size_t)d.scratch;
}

static size_t aligned(size_t size)
{
    enum { ALIGNMENT = 256 };
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// The most that a step has for itself, and *left: that one leaves to the next.
static size_t own_scratch(const tn_vk *v, const tn_program *program, size_t *left)
{
    size_t most = 0;
    *left = 0;
    for (int32_t i = 0; i < program->n_steps; i++) {
        const tn_step *step = &program->steps[i];
        for (const tn_vk_kernel *k = tn_vk_find_kernel(v, step, NULL); k; k = tn_vk_find_kernel(v, step, k))
            most = TN_MAX(most, scratch_of(v, step, step, k, NULL));
        if (v->has & TN_VK_INT8_DOT) *left = TN_MAX(*left, tn_vk_staged_size(step));
    }
    return aligned(most);
}

size_t tn_vk_scratch_size(tn_device *device, const tn_program *program)
{
    size_t left;
    return own_scratch(tn_vk_of(device), program, &left) + 2 * left;
}

void tn_vk_executable_destroy(tn_device *device, tn_executable *e)
{
    if (!e) return;
    tn_vk *v = tn_vk_of(device);
    tn_status status = tn_vk_drain(v);
    TN_UNUSED(status);
    mtx_lock(&v->lock);
    for (int32_t i = 0; i < e->n_parts; i++)
        if (e->parts[i]) v->f.FreeCommandBuffers(v->handle, v->pool, 1, &e->parts[i]);
    if (e->timed) v->f.FreeCommandBuffers(v->handle, v->pool, 1, &e->timed);
    mtx_unlock(&v->lock);
    if (e->queries) v->f.DestroyQueryPool(v->handle, e->queries, NULL);
    tn_vk_memory_destroy(v, &e->args);
    tn_free(device->ctx, e->parts);
    tn_free(device->ctx, e->part_end);
    tn_free(device->ctx, e->ticks);
    tn_free(device->ctx, e->runs);
    tn_free(device->ctx, e);
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

static void spread(const tn_vk *v, int64_t groups, run *r)
{
    r->x = (uint32_t)TN_MIN(groups, (int64_t)v->max_groups);
    r->y = r->x > 0 ? (uint32_t)((groups + r->x - 1) / r->x) : 0;
}

// Takes the constants of the pipeline that the kernel has for another step of the same kind. What only says
// how data lie (TN_VK_LAYOUT) may differ: there the other step promises less.
static tn_status constants_like(const tn_step *like, const tn_vk_kernel *k, int32_t i, tn_vk_dispatch *d)
{
    tn_vk_dispatch l = {.v = d->v, .like = like, .leaves = d->leaves};
    tn_vk_args_of(like, &l.args);
    k->launch(like, i, &l);
    d->constants[TN_VK_LAYOUT] = l.constants[TN_VK_LAYOUT];
    if (l.shader != d->shader || memcmp(l.constants, d->constants, sizeof l.constants) != 0)
        return TN_ERR_UNSUPPORTED;
    return TN_OK;
}

static tn_status no_scratch(tn_vk *v, const tn_step *step)
{
    return tn_fail(v->device->ctx, TN_ERR_INTERNAL, "%s: too little scratch for %s", v->device->name,
                   tn_op_name(step->op));
}

static tn_vk_push push_of(const tn_vk_args *a)
{
    tn_vk_push p = {.scratch = a->scratch, .n = {a->n[0], a->n[1]}, .k = a->src[0].ne[3], .ids = a->n[7]};
    for (int32_t w = 0; w < TN_VK_MAX_WEIGHTS; w++)
        for (int32_t i = 0; i < TN_VK_MAX_PLANES; i++) {
            p.plane[w][i] = a->weight[w].plane[i];
            p.row_size[w][i] = (uint32_t)a->weight[w].row_size[i];
        }
    return p;
}

// The dispatches of one step by one kernel, their records into `records`, and their pipelines. How many: *n.
static tn_status launch(tn_vk *v, tn_executable *e, const tn_step *step, const tn_step *like,
                        const tn_vk_kernel *k, tn_vk_args *records, tn_vk_pipeline **pipelines, int32_t *n)
{
    tn_status status = TN_OK;
    int32_t used = 0;
    *n = 1;
    e->hand.left = false;
    for (int32_t i = 0; i < *n && status == TN_OK; i++) {
        tn_vk_dispatch d = {.v = v, .like = like};
        d.leaves = e->hand.write != 0;
        d.reads_left = e->hand.read != 0 && k->needs & TN_VK_INT8_DOT;
        tn_vk_args_of(step, &d.args);
        *n = k->launch(step, i, &d);
        d.args.tables = v->tables.address;
        d.args.counters = e->counters;
        d.args.scratch = d.reads_left ? e->hand.read : e->scratch.from;
        if (d.left) {
            d.args.left = e->hand.write;
            d.args.left_norm = e->hand.norm;
            e->hand.left = true;
        }
        if (e->scratch.to - e->scratch.from < (uint64_t)d.scratch) status = no_scratch(v, step);
        if (status == TN_OK && like != step) status = constants_like(like, k, i, &d);
        if (status == TN_OK && d.rope) status = tn_vk_rope_angles_get(v, d.rope, &d.args.tables);
        run *r = &e->runs[e->n_runs + i];
        *r = (run){.push = push_of(&d.args), .waits = d.after};
        r->push.args = e->args.address + (uint64_t)(e->n_runs + i) * sizeof *records;
        records[e->n_runs + i] = d.args;
        spread(v, d.groups, r);
        if (status != TN_OK || d.groups == 0) continue;
        if (e->wishes) {
            tn_vk_pipeline_request_add(e->wishes, d.shader, d.constants);
            continue;
        }
        status = tn_vk_pipeline_get(v, d.shader, d.constants, &pipelines[used]);
        if (status == TN_OK) r->pipeline = pipelines[used++]->handle;
    }
    if (status == TN_OK) e->n_runs += *n;
    *n = used;
    return status;
}

// The verdict about the pipelines of a step, found out if nobody has yet.
static tn_status judge(tn_vk *v, const tn_step *step, const tn_vk_kernel *k, bool leaves,
                       tn_vk_pipeline *const *pipelines, int32_t n, tn_vk_verdict *verdict)
{
    double error = 0.0;
    *verdict = tn_vk_verdict_get(v, pipelines, n);
    if (*verdict != TN_VK_UNKNOWN) return TN_OK;
    tn_status status = tn_vk_probe(v, step, k, leaves, verdict, &error);
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

// By the first kernel that the driver compiled right.
static tn_status prepare_step(tn_vk *v, tn_executable *e, const tn_step *step, int32_t index,
                              tn_vk_args *records)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(v, step, NULL);
    tn_vk_pipeline *pipelines[TN_VK_MAX_DISPATCHES];
    int32_t first_run = e->n_runs;
    if (!k)
        return tn_fail(v->device->ctx, TN_ERR_INTERNAL, "%s: no kernel for %s", v->device->name,
                       tn_op_name(step->op));
    tn_status status = check_weights(v, step);
    while (k && status == TN_OK) {
        int32_t first = e->n_runs, n = 0;
        tn_vk_verdict verdict = TN_VK_GOOD;
        status = launch(v, e, step, step, k, records, pipelines, &n);
        for (int32_t i = first; i < e->n_runs; i++) e->runs[i].step = index;
        if (status == TN_OK) status = judge(v, step, k, e->hand.left, pipelines, n, &verdict);
        if (status != TN_OK || verdict != TN_VK_BAD) break;
        const tn_vk_kernel *instead = tn_vk_find_kernel(v, step, k);
        status = reject(v, step, k, instead);
        e->n_runs = first;
        k = instead;
    }
    if (status != TN_OK || e->n_runs == first_run) return status;
    size_t used = scratch_of(v, step, step, k, NULL);
    tn_vk_range scratch = {e->scratch.from, e->scratch.from + used};
    if (e->hand.left || e->hand.read != 0) scratch = e->scratch;
    e->runs[first_run].waits = tn_vk_barrier_needed(&e->order, step, scratch);
    return TN_OK;
}

// Dispatches, and *counters: the most that a step wants.
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

static tn_status prepare_copies(tn_vk *v, int32_t n, const tn_host_copy *copies, bool up, host_copy *list,
                                uint64_t address, run *r)
{
    enum { COPY_THREADS = 256, MAX_BLOCKS = 64 };
    uint64_t most = 0;
    for (int32_t i = 0; i < n; i++) {
        uint64_t host = tn_vk_host_address(v, copies[i].host), device = (uint64_t)(uintptr_t)copies[i].device;
        if (host == 0)
            return tn_fail(v->device->ctx, TN_ERR_INTERNAL, "%s: copy of memory that it does not reach",
                           v->device->name);
        list[i] = (host_copy){up ? device : host, up ? host : device, copies[i].size / 4};
        most = TN_MAX(most, list[i].words);
    }
    *r = (run){.push.args = address};
    if (n == 0) return TN_OK;
    r->x = (uint32_t)TN_MIN((most + COPY_THREADS - 1) / COPY_THREADS, (uint64_t)MAX_BLOCKS);
    r->y = (uint32_t)n;
    tn_vk_pipeline *p = NULL;
    tn_status status = tn_vk_pipeline_get(v, TN_VK_SHADER_host_copy, (int32_t[TN_VK_CONSTANTS]){0}, &p);
    if (status == TN_OK) r->pipeline = p->handle;
    return status;
}

// What step i reads of the one before, and may leave to the one after it.
static void set_hand(const tn_vk *v, tn_executable *e, const tn_program *program, int32_t i)
{
    const tn_step *step = &program->steps[i];
    bool more = i + 1 < program->n_steps && e->left[i % 2] != 0;
    tn_vk_staged hand = {.read = i > 0 && e->hand.left ? e->hand.write : 0};
    if (more && tn_vk_reads_staged(v, step, step + 1, &hand.norm)) hand.write = e->left[i % 2];
    e->hand = hand;
}

// The pipelines of all steps, on all threads: drivers take long for one.
static tn_status make_pipelines(tn_vk *v, tn_executable *e, const tn_program *program, tn_vk_args *records)
{
    tn_vk_pipeline *none[TN_VK_MAX_DISPATCHES];
    tn_status status = TN_OK;
    e->wishes = tn_calloc(v->device->ctx, 1, sizeof *e->wishes);
    if (!e->wishes) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < program->n_steps && status == TN_OK; i++) {
        const tn_vk_kernel *k = tn_vk_find_kernel(v, &program->steps[i], NULL);
        int32_t n;
        set_hand(v, e, program, i);
        if (k) status = launch(v, e, &program->steps[i], &program->steps[i], k, records, none, &n);
    }
    if (status == TN_OK) status = tn_vk_pipelines_make(v, e->wishes);
    tn_free(v->device->ctx, e->wishes);
    e->wishes = NULL;
    e->hand = (tn_vk_staged){0};
    e->n_runs = 0;
    return status;
}

// Compiled and checked so far, that no earlier process left.
static int32_t n_first(tn_vk *v)
{
    mtx_lock(&v->lock);
    int32_t n = v->n_compiled + v->n_new;
    mtx_unlock(&v->lock);
    return n;
}

static tn_status prepare(tn_vk *v, tn_executable *e, const tn_program *program)
{
    int64_t n_counters;
    int32_t n_runs = count_runs(v, program, &n_counters),
            n_copies = program->n_uploads + program->n_downloads;
    size_t lists = (size_t)n_runs * sizeof(tn_vk_args),
           counters = lists + (size_t)n_copies * sizeof(host_copy),
           size = counters + (size_t)n_counters * sizeof(uint32_t);
    e->runs = tn_calloc(v->device->ctx, (size_t)n_runs + 1, sizeof *e->runs);
    char *records = tn_calloc(v->device->ctx, size + 1, 1);
    tn_status status =
        e->runs && records ? tn_vk_memory_create(v, size + NEXT_RECORDS, false, &e->args) : TN_ERR_MEMORY;
    e->counters = e->args.address + counters;
    int32_t before = tn_vk_n_compiled(v);
    if (status == TN_OK) status = make_pipelines(v, e, program, (tn_vk_args *)(void *)records);
    int32_t seen = n_first(v);
    for (int32_t i = 0; i < program->n_steps && status == TN_OK; i++) {
        set_hand(v, e, program, i);
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
    host_copy *list = (host_copy *)(void *)(records + lists);
    uint64_t at = e->args.address + lists;
    if (status == TN_OK)
        status = prepare_copies(v, program->n_uploads, program->uploads, true, list, at, &e->up);
    list += program->n_uploads;
    at += (uint64_t)program->n_uploads * sizeof *list;
    if (status == TN_OK)
        status = prepare_copies(v, program->n_downloads, program->downloads, false, list, at, &e->down);
    if (status == TN_OK) status = tn_vk_memory_write(v, &e->args, 0, records, size);
    if (status == TN_OK) status = record_parts(v, e, program);
    tn_free(v->device->ctx, records);
    return status;
}

tn_status tn_vk_prepare(tn_device *device, const tn_program *program, const tn_buffer *scratch,
                        tn_executable **out)
{
    tn_vk *v = tn_vk_of(device);
    tn_status status = tn_vk_enter(v);
    if (status != TN_OK) return status;
    tn_executable *e = tn_calloc(device->ctx, 1, sizeof *e);
    if (!e) return TN_ERR_MEMORY;
    e->n_steps = program->n_steps;
    if (scratch && scratch->data) {
        e->scratch.from = (uint64_t)(uintptr_t)scratch->data;
        e->scratch.to = e->scratch.from + scratch->size;
        size_t left, own = own_scratch(v, program, &left);
        for (int32_t i = 0; i < 2 && left > 0 && own + 2 * left <= scratch->size; i++)
            e->left[i] = e->scratch.from + own + (size_t)i * left;
    }
    status = prepare(v, e, program);
    if (status != TN_OK)
        tn_vk_executable_destroy(device, e);
    else
        *out = e;
    return status;
}

tn_status tn_vk_run_once(tn_vk *v, const tn_step *step, const tn_step *like, const tn_vk_kernel *k,
                         bool leaves)
{
    tn_executable *e = tn_calloc(v->device->ctx, 1, sizeof *e);
    tn_vk_args *records = tn_calloc(v->device->ctx, TN_VK_MAX_DISPATCHES, sizeof *records);
    tn_vk_pipeline *pipelines[TN_VK_MAX_DISPATCHES];
    tn_vk_memory scratch = {0};
    int32_t n = 0;
    int64_t counters;
    size_t wanted = scratch_of(v, step, like, k, &counters), lists = TN_VK_MAX_DISPATCHES * sizeof *records;
    tn_status status = TN_ERR_MEMORY;
    if (e) e->runs = tn_calloc(v->device->ctx, TN_VK_MAX_DISPATCHES, sizeof *e->runs);
    if (e && e->runs && records)
        status = tn_vk_memory_create(v, lists + (size_t)counters * sizeof(uint32_t) + NEXT_RECORDS, true,
                                     &e->args);
    if (status == TN_OK) {
        e->n_steps = 1;
        e->counters = e->args.address + lists;
        size_t own = aligned(wanted), size = own + (leaves ? tn_vk_staged_size(step) : 0);
        if (size > 0) status = tn_vk_memory_create(v, size, false, &scratch);
        e->scratch = (tn_vk_range){scratch.address, scratch.address + size};
        if (size > own) e->hand.write = scratch.address + own;
    }
    if (status == TN_OK) {
        status = launch(v, e, step, like, k, records, pipelines, &n);
    }
    if (status == TN_OK) {
        memcpy(e->args.mapped, records, lists);
        status = record_parts(v, e, &(tn_program){.n_steps = 1, .steps = step});
    }
    if (status == TN_OK) status = tn_vk_submit_commands(v, e->n_parts, e->parts, &e->value);
    if (status == TN_OK) status = tn_vk_wait_for(v, e->value);
    tn_free(v->device->ctx, records);
    tn_vk_executable_destroy(v->device, e);
    tn_vk_memory_destroy(v, &scratch);
    return status;
}

// --- running -------------------------------------------------------------------------------------------

static tn_status make_timed(tn_vk *v, tn_executable *e)
{
    if (e->timed) return TN_OK;
    if (v->tick_ns == 0.0f)
        return tn_fail(v->device->ctx, TN_ERR_UNSUPPORTED, "%s has no clock for single steps",
                       v->device->name);
    VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                  .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                  .queryCount = (uint32_t)e->n_steps + 1};
    tn_status status = TN_OK;
    if (!e->ticks) e->ticks = tn_calloc(v->device->ctx, (size_t)e->n_steps + 1, sizeof *e->ticks);
    if (!e->ticks) return TN_ERR_MEMORY;
    if (!e->queries)
        status = tn_vk_check(v, v->f.CreateQueryPool(v->handle, &info, NULL, &e->queries), "making queries");
    return status == TN_OK ? record(v, e, 0, e->n_steps, true, &e->timed) : status;
}

// A few parts are with the driver at any time, so that the device never waits for the host, however late that
// wakes up.
static tn_status submit_parts(tn_vk *v, tn_executable *e, const _Atomic int32_t *cancel)
{
    enum { AHEAD = 3 };
    uint64_t ends[AHEAD] = {0};
    tn_status status = TN_OK;
    for (int32_t i = 0; i < e->n_parts && status == TN_OK; i++) {
        status = tn_vk_wait_for(v, ends[i % AHEAD]);
        // Relaxed: the flag carries no data.
        if (status == TN_OK && atomic_load_explicit(cancel, memory_order_relaxed) != 0)
            return tn_fail(v->device->ctx, TN_ERR_CANCELLED, "cancelled");
        if (status == TN_OK) status = tn_vk_submit_commands(v, 1, &e->parts[i], &e->value);
        ends[i % AHEAD] = e->value;
    }
    return status;
}

tn_status tn_vk_submit(tn_device *device, tn_executable *e, const tn_submit_options *options)
{
    tn_vk *v = tn_vk_of(device);
    const _Atomic int32_t *cancel = options ? options->cancel : NULL;
    if (cancel && atomic_load_explicit(cancel, memory_order_relaxed) != 0)
        return tn_fail(device->ctx, TN_ERR_CANCELLED, "cancelled");
    tn_status status = tn_vk_enter(v);
    e->step_ns = options ? options->step_ns : NULL;
    if (status == TN_OK && e->step_ns) status = make_timed(v, e);
    if (status != TN_OK) return status;
    if (e->step_ns) return tn_vk_submit_commands(v, 1, &e->timed, &e->value);
    if (cancel && e->n_parts > 1) return submit_parts(v, e, cancel);
    return tn_vk_submit_commands(v, e->n_parts, e->parts, &e->value);
}

tn_status tn_vk_wait(tn_device *device, tn_executable *e)
{
    tn_vk *v = tn_vk_of(device);
    tn_status status = tn_vk_enter(v);
    if (status == TN_OK) status = tn_vk_wait_for(v, e->value);
    uint64_t *step_ns = e->step_ns;
    e->step_ns = NULL;
    if (status != TN_OK || !step_ns) return status;
    uint32_t n = (uint32_t)e->n_steps + 1;
    status = tn_vk_check(v,
                         v->f.GetQueryPoolResults(v->handle, e->queries, 0, n, n * sizeof *e->ticks, e->ticks,
                                                  sizeof *e->ticks,
                                                  VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
                         "reading times");
    for (int32_t i = 0; i < e->n_steps && status == TN_OK; i++)
        step_ns[i] += (uint64_t)((double)(e->ticks[i + 1] - e->ticks[i]) * (double)v->tick_ns);
    return status;
}
