// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the steps of a plan cost: the costs of the ops (ops/cost.h), added up by what the operands are in this
// graph, and by the arithmetic of the kernels that were selected.
#include "graph/graph.h"
#include "ops/cost.h"
#include "ops/operands.h"

#include <stdio.h>
#include <string.h>

// The roof under which the matrix product of a step stands. Kernels of attention are not asked for what they
// round to: where a device multiplies 16-bit numbers and the cache has no more than these, they could.
static int32_t product_precision(const tn_plan *p, const tn_plan_step *s)
{
    const tn_device *d = p->devices[s->device];
    if (s->rounding != TN_PRECISION_auto) return s->rounding;
    if (tn_op_info_get(s->step.op)->family != TN_FAMILY_attention) return TN_PRECISION_f32;
    bool narrow = s->step.src[TN_SRC_attention_k].dtype != TN_TYPE_F32;
    return narrow && tn_device_has_precision(d, TN_PRECISION_bf16) ? TN_PRECISION_bf16 : TN_PRECISION_f32;
}

static void add_operands(const tn_plan *p, const tn_plan_step *s, const tn_cost *c, tn_plan_step_info *out)
{
    for (int32_t k = 0; k < s->step.n_src; k++) {
        if (s->src[k].root < 0) continue;
        int32_t kind = p->graph->values[s->src[k].root]->kind;
        if (kind == TN_VALUE_WEIGHT)
            out->weights_read += (uint64_t)c->read[k];
        else if (kind == TN_VALUE_STATE)
            out->cache_read += (uint64_t)c->read[k];
        else
            out->read += (uint64_t)c->read[k];
    }
    for (int32_t k = 0; k < s->step.n_dst; k++) {
        bool state = s->dst[k].root >= 0 && p->graph->values[s->dst[k].root]->kind == TN_VALUE_STATE;
        *(state ? &out->cache_written : &out->written) += (uint64_t)c->written[k];
    }
}

void tn_plan_cost(const tn_plan *p, int32_t i, int64_t depth, tn_plan_step_info *out)
{
    const tn_plan_step *s = &p->steps[i];
    tn_cost c = tn_step_cost(&s->step, &(tn_cost_lengths){.depth = depth});
    out->op = tn_op_name(s->step.op);
    out->family = tn_family_name(tn_op_info_get(s->step.op)->family);
    out->kernel = s->kernel;
    out->name = s->step.name;
    out->device = p->devices[s->device]->name;
    out->n_launches = s->n_launches;
    out->done_by_next = (s->step.join.next & TN_JOIN_FOLD) != 0;
    out->precision = product_precision(p, s);
    out->ops = c.ops - c.product_ops;
    out->product_ops = c.product_ops;
    add_operands(p, s, &c, out);
}

int32_t tn_plan_step_get(const tn_plan *plan, int32_t i, int64_t depth, tn_plan_step_info *out)
{
    if (!plan) return 0;
    if (depth < 0) return tn_fail(plan->ctx, TN_ERR_ARG, "a depth of %lld", (long long)depth);
    if (i < 0 || i >= plan->n_steps) return 0;
    tn_plan_step_info info = {.struct_size = sizeof info};
    tn_plan_cost(plan, i, depth, &info);
    tn_status status = TN_STRUCT_WRITE(plan->ctx, tn_plan_step_info, out, &info);
    return status == TN_OK ? 1 : status;
}

size_t tn_plan_step_shapes(const tn_plan *plan, int32_t i, char *buf, size_t size)
{
    char text[96];
    size_t n = 0;
    if (size > 0 && buf) buf[0] = '\0';
    if (!plan || i < 0 || i >= plan->n_steps) return 0;
    const tn_step *s = &plan->steps[i].step;
    for (int32_t k = 0; k < s->n_src + s->n_dst; k++) {
        const tn_view *v = k < s->n_src ? &s->src[k] : &s->dst[k - s->n_src];
        if (v->n_dims == 0) continue; // absent
        const char *gap = k == s->n_src ? " -> " : n > 0 ? ", " : "";
        bool fits = buf && n < size;
        int m = snprintf(fits ? buf + n : NULL, fits ? size - n : 0, "%s%s", gap,
                         tn_view_text(v, text, sizeof text));
        n += m > 0 ? (size_t)m : 0;
    }
    return n;
}
