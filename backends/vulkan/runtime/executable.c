// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Running of executables. Their steps are one command buffer, recorded once and submitted as often as the
// program runs; several where there is much work, which are then submitted one after the other: no submission
// takes too long for a device with a display, and the work can be cancelled between them. If the caller
// wants times, another one is recorded that has timestamps between the steps.
#include "backends/vulkan/runtime/executable.h"
#include "core/device.h"

bool tn_vk_accepts(const tn_device *device, const tn_step *step)
{
    return tn_vk_find_kernel(tn_vk_of(device), step, NULL) != NULL;
}

const char *tn_vk_kernel_name(const tn_device *device, const tn_step *step)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(tn_vk_of(device), step, NULL);
    return k ? k->name : "none";
}

void tn_vk_executable_destroy(tn_device *device, tn_executable *e)
{
    if (!e) return;
    tn_vk *v = tn_vk_of(device);
    tn_vk_settle(v);
    if (e->n_parts > 0) tn_vk_free_parts(v, e);
    tn_vk_commands_free(v, &e->timed);
    if (e->queries && !tn_vk_is_given_up(v)) v->f.DestroyQueryPool(v->handle, e->queries, NULL);
    tn_vk_memory_destroy(v, &e->args);
    tn_free(device->ctx, e->parts);
    tn_free(device->ctx, e->part_end);
    tn_free(device->ctx, e->ticks);
    tn_free(device->ctx, e->work);
    tn_free(device->ctx, e->runs);
    if (e->is_object) tn_vk_end_object(v);
    tn_free(device->ctx, e);
}

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
    return status == TN_OK ? tn_vk_record(v, e, 0, e->n_steps, true, &e->timed) : status;
}

// Parts of a submission are as many as take SUBMISSION_NS together by the times of the last run; of the first
// run each part is a submission of its own. So the 2 s after which Windows resets a device that has a display
// are far away. A part that took LONG_NS by itself is divided.
enum { SUBMISSION_NS = 100000000, LONG_NS = 300000000 };

static tn_status divide_long(tn_vk *v, tn_executable *e)
{
    if (e->part_ns <= LONG_NS || e->n_parts >= e->n_steps) return TN_OK;
    e->part_ns = 0;
    return tn_vk_divide_parts(v, e);
}

static int32_t parts_in(const tn_executable *e, uint64_t ns)
{
    return e->part_ns == 0 ? 1 : (int32_t)TN_MIN(TN_MAX(ns / e->part_ns, 1), (uint64_t)e->n_parts);
}

static tn_status submit_measured(tn_vk *v, tn_executable *e)
{
    int32_t each = parts_in(e, SUBMISSION_NS);
    tn_status status = TN_OK;
    e->submit_ns = tn_time_ns();
    for (int32_t i = 0, n; i < e->n_parts && status == TN_OK; i += n) {
        n = TN_MIN(each, e->n_parts - i);
        status = tn_vk_submit_commands(v, n, &e->parts[i], &e->value);
    }
    return status;
}

// After the end of a run. What had ended before it was waited for may have been much shorter than it seems.
static void keep_time(tn_executable *e, bool waited)
{
    uint64_t took = tn_time_ns() - e->submit_ns;
    if (e->submit_ns != 0 && (waited || took < SUBMISSION_NS))
        e->part_ns = TN_MAX(took / (uint64_t)e->n_parts, 1);
    e->submit_ns = 0;
}

static bool has_ended(tn_vk *v, uint64_t value)
{
    uint64_t reached = 0;
    return v->f.GetSemaphoreCounterValue(v->handle, v->timeline, &reached) == VK_SUCCESS && reached >= value;
}

// AHEAD submissions are made before the first one has to be done, so that the device does not wait for the
// host, however late that wakes up. Each takes about CANCEL_NS: less costs the device time, because it idles
// between two submissions, and more delays cancelling. The time of a submission that was waited for, between
// the end of the one before and its own, says how many parts the next has.
static tn_status submit_parts(tn_vk *v, tn_executable *e, const _Atomic int32_t *cancel)
{
    enum { AHEAD = 3, GROWTH = 4, CANCEL_NS = 10000000 };
    uint64_t ends[AHEAD] = {0}, start = tn_time_ns(),
             last = 0; // last: when one was seen to end, 0: not known
    int32_t sizes[AHEAD] = {0}, most = parts_in(e, CANCEL_NS);
    tn_status status = TN_OK;
    for (int32_t i = 0, turn = 0; i < e->n_parts && status == TN_OK; turn = (turn + 1) % AHEAD) {
        bool waits = ends[turn] != 0 && !has_ended(v, ends[turn]);
        status = tn_vk_wait_for(v, ends[turn]);
        uint64_t now = tn_time_ns();
        if (waits && last != 0) {
            e->part_ns = TN_MAX((now - last) / (uint64_t)sizes[turn], 1);
            most = TN_MIN(parts_in(e, CANCEL_NS), GROWTH * sizes[turn]);
        }
        last = waits ? now : 0;
        // Relaxed: the flag carries no data.
        if (status == TN_OK && atomic_load_explicit(cancel, memory_order_relaxed) != 0)
            return tn_fail(v->device->ctx, TN_ERR_CANCELLED, "cancelled");
        sizes[turn] = TN_MIN(most, e->n_parts - i);
        if (status == TN_OK) status = tn_vk_submit_commands(v, sizes[turn], &e->parts[i], &e->value);
        ends[turn] = e->value;
        i += sizes[turn];
    }
    e->submit_ns = start;
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
    status = divide_long(v, e);
    if (status != TN_OK) return status;
    if (cancel && e->n_parts > 1) return submit_parts(v, e, cancel);
    if (e->n_parts > 1) return submit_measured(v, e);
    return tn_vk_submit_commands(v, e->n_parts, e->parts, &e->value);
}

tn_status tn_vk_wait(tn_device *device, tn_executable *e)
{
    tn_vk *v = tn_vk_of(device);
    tn_status status = tn_vk_enter(v);
    bool waits = status == TN_OK && e->submit_ns != 0 && !has_ended(v, e->value);
    if (status == TN_OK) status = tn_vk_wait_for(v, e->value);
    if (status == TN_OK) keep_time(e, waits);
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
