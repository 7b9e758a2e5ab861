// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/barriers.h"

// From the first to the last byte of a view, with the gaps between rows. Blocks in planes lie within the same
// bytes.
static tn_vk_range range_of(const tn_view *v)
{
    uint64_t from = (uint64_t)(uintptr_t)v->data, to = from;
    if (tn_view_n_elems(v) == 0) return (tn_vk_range){0, 0};
    for (int32_t d = 0; d < TN_MAX_DIMS - 1; d++) to += (uint64_t)((v->ne[d] - 1) * v->nb[d]);
    int64_t last = v->ne[TN_MAX_DIMS - 1] / tn_dtype_block_elems(v->dtype);
    return (tn_vk_range){from, to + (uint64_t)((last - 1) * v->nb[TN_MAX_DIMS - 1]) +
                                   tn_dtype_block_size(v->dtype)};
}

static bool meets(tn_vk_range r, const tn_vk_range *list, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (r.from < list[i].to && list[i].from < r.to) return true;
    return false;
}

static void add(tn_vk_range r, tn_vk_range *list, int32_t *n)
{
    if (r.to > r.from) list[(*n)++] = r;
}

static void add_operands(const tn_step *step, tn_vk_range *reads, int32_t *n_reads, tn_vk_range *writes,
                         int32_t *n_writes)
{
    for (int32_t i = 0; i < step->n_src; i++)
        if (step->src[i].ne[TN_MAX_DIMS - 1] > 0) add(range_of(&step->src[i]), reads, n_reads);
    for (int32_t i = 0; i < step->n_dst; i++) add(range_of(&step->dst[i]), writes, n_writes);
}

bool tn_vk_barrier_needed(tn_vk_barriers *o, const tn_step *step, const tn_step *folded, tn_vk_range scratch)
{
    tn_vk_range reads[2 * TN_MAX_SRC + 1], writes[2 * TN_MAX_DST + 2];
    int32_t n_reads = 0, n_writes = 0;
    add_operands(step, reads, &n_reads, writes, &n_writes);
    if (folded) add_operands(folded, reads, &n_reads, writes, &n_writes);
    add(range_of(&step->join.staged_x), reads, &n_reads);
    add(range_of(&step->join.staged_y), writes, &n_writes);
    add(scratch, writes, &n_writes);
    bool waits = o->n_reads + n_reads > TN_VK_MAX_RANGES || o->n_writes + n_writes > TN_VK_MAX_RANGES;
    for (int32_t i = 0; i < n_reads && !waits; i++) waits = meets(reads[i], o->writes, o->n_writes);
    for (int32_t i = 0; i < n_writes && !waits; i++)
        waits = meets(writes[i], o->writes, o->n_writes) || meets(writes[i], o->reads, o->n_reads);
    if (waits) o->n_reads = o->n_writes = 0;
    for (int32_t i = 0; i < n_reads; i++) add(reads[i], o->reads, &o->n_reads);
    for (int32_t i = 0; i < n_writes; i++) add(writes[i], o->writes, &o->n_writes);
    return waits;
}
