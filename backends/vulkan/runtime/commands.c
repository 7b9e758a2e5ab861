// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Command buffers: recorded once, and submitted as often as the program runs. A timeline semaphore tells
// their end.
#include "backends/vulkan/runtime/executable.h"
#include "core/device.h"
#include "ops/cost.h"

// --- submission ------------------------------------------------------------------------------------------

tn_status tn_vk_submit_commands(tn_vk *v, int32_t n, const VkCommandBuffer *commands, uint64_t *value)
{
    tn_mutex_lock(&v->lock);
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
    tn_mutex_unlock(&v->lock);
    return status;
}

// A sleeping thread wakes about 10 us late, which would cost that much for every token. So the host polls for
// up to MOST_NS, about the time of a token, before it sleeps. A software driver needs the processor itself:
// there the host sleeps at once.
static bool ends_soon(tn_vk *v, uint64_t value)
{
    enum { PAUSES = 16, MOST_NS = 10000000 };
    uint64_t reached = 0, until = tn_time_ns() + MOST_NS;
    while (!v->device->software && tn_time_ns() < until) {
        if (v->f.GetSemaphoreCounterValue(v->handle, v->timeline, &reached) != VK_SUCCESS) return false;
        if (reached >= value) return true;
        for (int32_t i = 0; i < PAUSES; i++) TN_PAUSE();
    }
    return false;
}

// The timeline as far as the device has come; 0 if it cannot be asked.
static uint64_t reached_value(tn_vk *v)
{
    uint64_t reached = 0;
    return v->f.GetSemaphoreCounterValue(v->handle, v->timeline, &reached) == VK_SUCCESS ? reached : 0;
}

tn_status tn_vk_wait_for(tn_vk *v, uint64_t value)
{
    if (value == 0 || ends_soon(v, value)) return TN_OK;
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &v->timeline,
                                .pValues = &value};
    tn_device_wait w = tn_device_wait_begin(v->device);
    uint64_t seen = reached_value(v), now;
    for (;;) {
        VkResult r = v->f.WaitSemaphores(v->handle, &info, tn_device_wait_slice(&w));
        if (r != VK_TIMEOUT) return tn_vk_check(v, r, "running");
        if (tn_vk_is_lost(v)) return tn_vk_fail_lost(v); // another thread has found it so
        now = reached_value(v);
        if (now != seen) // a submission has ended: the next one has the whole limit
            w = tn_device_wait_begin(v->device);
        else if (tn_device_wait_over(&w))
            return tn_vk_give_up(v, &w, "running");
        seen = now;
    }
}

void tn_vk_commands_free(tn_vk *v, VkCommandBuffer *commands)
{
    tn_mutex_lock(&v->lock);
    if (*commands && !tn_vk_is_given_up(v)) v->f.FreeCommandBuffers(v->handle, v->pool, 1, commands);
    tn_mutex_unlock(&v->lock);
    *commands = NULL;
}

tn_status tn_vk_drain(tn_vk *v)
{
    tn_mutex_lock(&v->lock);
    uint64_t value = v->n_submitted;
    tn_mutex_unlock(&v->lock);
    return tn_vk_wait_for(v, value);
}

void tn_vk_settle(tn_vk *v)
{
    if (tn_vk_is_lost(v)) return;
    tn_status status = tn_vk_drain(v);
    TN_UNUSED(status); // the next use of the device tells
}

// --- recording -------------------------------------------------------------------------------------------

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

static void dispatch(tn_vk *v, VkCommandBuffer commands, const tn_vk_run *r)
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

tn_status tn_vk_record(tn_vk *v, const tn_executable *e, int32_t first, int32_t end, bool timed,
                       VkCommandBuffer *out)
{
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = v->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    // The same work may be submitted again before the last run has ended.
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
    tn_mutex_lock(&v->lock);
    tn_status status = tn_vk_check(v, v->f.AllocateCommandBuffers(v->handle, &info, out), "making commands");
    if (status == TN_OK) status = tn_vk_check(v, v->f.BeginCommandBuffer(*out, &begin), "recording");
    if (status == TN_OK) {
        record_runs(v, e, first, end, *out, timed);
        status = tn_vk_check(v, v->f.EndCommandBuffer(*out), "recording");
    }
    tn_mutex_unlock(&v->lock);
    return status;
}

// Divides the steps into parts of no more than `most` multiplications, or of one step.
static int32_t split(const tn_executable *e, double most)
{
    double sum = 0.0;
    int32_t n = 0;
    for (int32_t i = 0; i < e->n_steps; i++) {
        if (sum > 0.0 && sum + e->work[i] > most) {
            e->part_end[n++] = i;
            sum = 0.0;
        }
        sum += e->work[i];
    }
    e->part_end[n++] = e->n_steps;
    return n;
}

static tn_status record_parts(tn_vk *v, tn_executable *e)
{
    tn_context *ctx = v->device->ctx;
    int32_t n = split(e, e->part_work);
    VkCommandBuffer *parts = tn_calloc(ctx, (size_t)n, sizeof *parts);
    if (!parts) return TN_ERR_MEMORY;
    tn_free(ctx, e->parts);
    e->parts = parts;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < n && status == TN_OK; i++) {
        status = tn_vk_record(v, e, i > 0 ? e->part_end[i - 1] : 0, e->part_end[i], false, &e->parts[i]);
        e->n_parts = i + 1; // one that failed may be there too
    }
    return status;
}

void tn_vk_free_parts(tn_vk *v, tn_executable *e)
{
    for (int32_t i = 0; i < e->n_parts; i++) tn_vk_commands_free(v, &e->parts[i]);
    e->n_parts = 0;
}

// A part has as many multiplications as a large device does in some milliseconds, and the slowest ones in
// some hundred: parts are what a submission is made of, and between them the work can be cancelled. Each
// costs some time: on an H100 512 tokens of an 8B model in Q4_K_M ran at 11650 tokens/s in parts of 1e11,
// each a submission of its own, at 11745 in one submission of such parts, and at 11970 in parts of 4e11.
tn_status tn_vk_record_parts(tn_vk *v, tn_executable *e, const tn_program *program)
{
    const tn_device *d = v->device;
    size_t n = (size_t)program->n_steps + 1;
    e->part_work = d->software ? 5e7 : d->n_batch > 0 ? 4e11 : 1e10; // n_batch: a card of its own
    e->part_end = tn_calloc(d->ctx, n, sizeof *e->part_end);
    e->work = tn_calloc(d->ctx, n, sizeof *e->work);
    if (!e->part_end || !e->work) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < program->n_steps; i++) e->work[i] = tn_step_work(&program->steps[i]);
    return record_parts(v, e);
}

tn_status tn_vk_divide_parts(tn_vk *v, tn_executable *e)
{
    enum { FINER = 4 };
    tn_status status = tn_vk_drain(v);
    if (status != TN_OK) return status;
    tn_vk_free_parts(v, e);
    e->part_work /= FINER;
    return record_parts(v, e);
}
