// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The dispatches of one step by one kernel.
#include "backends/vulkan/runtime/executable.h"
#include "core/device.h"
#include "ops/ops.h"

#include <string.h>

size_t tn_vk_scratch_of(const tn_vk *v, const tn_step *step, const tn_step *like, const tn_vk_kernel *k,
                        int64_t *counters)
{
    tn_vk_dispatch d = {.v = v, .like = like};
    tn_vk_args_of(step, &d.args);
    k->launch(step, 0, &d);
    if (counters) *counters = d.counters;
    return (size_t)d.scratch;
}

bool tn_vk_folds(const tn_vk *v, const tn_step *step, const tn_vk_kernel *k)
{
    tn_vk_dispatch d = {.v = v, .like = step};
    tn_vk_args_of(step, &d.args);
    if (tn_vk_folded_of(step)) k->launch(step, 0, &d);
    return d.folds;
}

size_t tn_vk_align_scratch(size_t size)
{
    enum { ALIGNMENT = 256 };
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void spread(const tn_vk *v, int64_t groups, tn_vk_run *r)
{
    r->x = (uint32_t)TN_MIN(groups, (int64_t)v->max_groups);
    r->y = r->x > 0 ? (uint32_t)((groups + r->x - 1) / r->x) : 0;
}

// Takes the constants of the pipeline that the kernel has for another step of the same kind. What only says
// how data lie (TN_VK_LAYOUT) may differ: there the other step promises less.
static tn_status constants_like(const tn_step *like, const tn_vk_kernel *k, int32_t i, tn_vk_dispatch *d)
{
    tn_vk_dispatch l = {.v = d->v, .like = like, .wants_staged = d->wants_staged};
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
    tn_vk_push p = {.scratch = a->scratch,
                    .n = {a->n[TN_VK_N_PRODUCT_COLUMNS], a->n[TN_VK_N_PRODUCT_ROWS]},
                    .k = a->src[0].ne[3],
                    .ids = a->n[TN_VK_N_PRODUCT_IDS]};
    int32_t result = a->n[TN_VK_N_PRODUCT_RESULT], residual = a->n[TN_VK_N_PRODUCT_RESIDUAL];
    if (result >= 0 && result < TN_MAX_DST) p.result = a->dst[result].data;
    if (residual >= 0 && residual < TN_MAX_SRC) p.residual = a->src[residual].data;
    for (int32_t i = 0; i < TN_VK_MAX_PLANES; i++) {
        for (int32_t w = 0; w < TN_VK_MAX_WEIGHTS; w++) p.plane[w][i] = a->weight[w].plane[i];
        p.row_size[i] = (uint32_t)a->weight[0].row_size[i];
    }
    return p;
}

tn_status tn_vk_launch(tn_vk *v, tn_executable *e, const tn_step *step, const tn_step *like,
                       const tn_vk_kernel *k, tn_vk_args *records, tn_vk_pipeline **pipelines, int32_t *n)
{
    tn_status status = TN_OK;
    int32_t used = 0;
    *n = 1;
    e->staged.written = false;
    for (int32_t i = 0; i < *n && status == TN_OK; i++) {
        tn_vk_dispatch d = {.v = v, .like = like};
        d.wants_staged = e->staged.write != 0;
        d.x_staged = e->staged.read != 0 && k->needs & TN_VK_INT8_DOT;
        tn_vk_args_of(step, &d.args);
        *n = k->launch(step, i, &d);
        d.args.tables = v->tables.address;
        d.args.counters = e->counters;
        d.args.scratch = d.x_staged ? e->staged.read : e->scratch.from;
        for (int32_t w = 0; d.expanded && w < TN_VK_MAX_WEIGHTS; w++)
            for (int32_t p = 0; p < TN_VK_MAX_PLANES; p++)
                if (d.args.weight[w].row_size[p] > 0) d.args.weight[w].plane[p] += d.args.scratch;
        if (d.stages) {
            d.args.staged = e->staged.write;
            d.args.staged_norm = e->staged.norm;
            e->staged.written = true;
        }
        if (e->scratch.to - e->scratch.from < (uint64_t)d.scratch) status = no_scratch(v, step);
        if (status == TN_OK && like != step) status = constants_like(like, k, i, &d);
        if (status == TN_OK && d.rope) status = tn_vk_rope_angles_get(v, d.rope, &d.args.tables);
        tn_vk_run *r = &e->runs[e->n_runs + i];
        *r = (tn_vk_run){.push = push_of(&d.args), .waits = d.waits};
        r->push.args = e->args.address + (uint64_t)(e->n_runs + i) * sizeof *records;
        records[e->n_runs + i] = d.args;
        spread(v, d.groups, r);
        if (status != TN_OK || d.groups == 0) continue;
        if (e->requests) {
            tn_vk_pipeline_request_add(e->requests, d.shader, d.constants);
            continue;
        }
        status = tn_vk_pipeline_get(v, d.shader, d.constants, &pipelines[used]);
        if (status == TN_OK) r->pipeline = pipelines[used++]->handle;
    }
    if (status == TN_OK) e->n_runs += *n;
    *n = used;
    return status;
}
