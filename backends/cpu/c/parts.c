// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Into how many parts the steps of kernels with rows or chunks are cut. kernels.def names one function for
// each kernel; those of products and attention are beside their kernels.
#include "backends/cpu/accepts.h"

#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"

enum {
    // Bytes that a part reads and writes at least: some microseconds. To share less takes longer than the
    // second thread saves: it learns of the parts through a cache line, and fetches its data from the cache
    // of the first one.
    PART_SIZE = 32 << 10,
    // A thread that is late or slow leaves some of these to the others.
    PARTS_PER_THREAD = 4,
};

int32_t tn_cpu_parts(const tn_cpu_task *task, int64_t n_units, int64_t size)
{
    if (task->phase > 0) return 0;
    int64_t n = task->nth == 1 ? 1 : TN_MIN(size / PART_SIZE, task->nth * PARTS_PER_THREAD);
    return (int32_t)TN_MAX(TN_MIN(n, n_units), 1);
}

static int64_t view_size(const tn_view *v)
{
    return (int64_t)tn_dtype_row_size(v->dtype, v->ne[3]) * tn_view_n_rows(v);
}

static int64_t moved_size(const tn_step *step)
{
    return view_size(&step->src[0]) + view_size(&step->dst[0]);
}

int32_t tn_cpu_parts_one(const tn_cpu_task *task)
{
    return task->phase == 0;
}

int32_t tn_cpu_parts_rows(const tn_cpu_task *task)
{
    return tn_cpu_parts(task, tn_view_n_rows(&task->step->dst[0]), moved_size(task->step));
}

int32_t tn_cpu_parts_chunks(const tn_cpu_task *task)
{
    const tn_view *y = &task->step->dst[0];
    return tn_cpu_parts(task, tn_view_n_rows(y) * row_chunks(y->ne[3]), moved_size(task->step));
}

// The table is much larger than what is read of it.
int32_t tn_cpu_parts_get_rows(const tn_cpu_task *task)
{
    const tn_view *y = &task->step->dst[0];
    return tn_cpu_parts(task, tn_view_n_rows(y), 2 * view_size(y));
}

int32_t tn_cpu_parts_tokens(const tn_cpu_task *task)
{
    return tn_cpu_parts(task, task->step->dst[0].ne[1], moved_size(task->step));
}

int32_t tn_cpu_parts_cache_write(const tn_cpu_task *task)
{
    const tn_view *x = &task->step->src[TN_SRC_cache_write_x];
    return tn_cpu_parts(task, x->ne[1] * x->ne[2], 2 * view_size(x));
}

int32_t tn_cpu_parts_short_conv(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    int64_t width = step->src[TN_SRC_short_conv_state].ne[3];
    int64_t n_chunks = (width + TN_CPU_CONV_CHANNELS - 1) / TN_CPU_CONV_CHANNELS;
    return tn_cpu_parts(task, step->src[TN_SRC_short_conv_slots].ne[2] * n_chunks, moved_size(step));
}

// Each token reads and writes the whole state of a head.
int32_t tn_cpu_parts_delta_rule(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_view *m = &step->src[TN_SRC_delta_rule_state], *y = &step->dst[TN_DST_delta_rule_y];
    int64_t blocks = (m->ne[3] + TN_CPU_DELTA_COLUMNS - 1) / TN_CPU_DELTA_COLUMNS;
    return tn_cpu_parts(task, step->src[TN_SRC_delta_rule_slots].ne[2] * m->ne[1] * blocks,
                        view_size(y) * m->ne[2]);
}
