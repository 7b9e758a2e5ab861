// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What is asked about the launches of a finished plan: their names, and the copies before and after its
// steps.
#include "graph/graph.h"

bool tn_plan_step_runs_on(const tn_plan_step *s, int32_t device)
{
    return s->device == device && s->step.op != TN_OP_transfer;
}

const char *tn_plan_launch_name(const tn_plan *p, const tn_plan_step *s, int32_t k)
{
    bool listed = p->devices[s->device]->backend->launches != NULL;
    return listed ? p->launches[s->first_launch + k] : s->kernel;
}

int32_t tn_plan_host_device(const tn_plan *p)
{
    for (int32_t d = 0; d < p->n_devices; d++)
        if (p->devices[d]->backend->host_create) return d;
    return -1;
}

bool tn_plan_fetches(const tn_plan *p, int32_t output)
{
    // Outputs up to so many bytes are copied to the host in every run: that costs less than a separate read.
    // Larger ones (logits) are read on demand.
    enum { FETCH_MAX = 16384 };
    const tn_tensor *t = p->graph->values[p->outputs[output].value];
    const tn_place *place = &p->places[t->root->id];
    size_t n = tn_tensor_size(t);
    return place->in_arena && place->device == tn_plan_host_device(p) && n <= FETCH_MAX && n % 4 == 0;
}

tn_plan_copies tn_plan_copies_get(const tn_plan *p, int32_t device)
{
    tn_plan_copies c = {.kernel = p->devices[device]->backend->copy_kernel};
    int32_t n_steps = 0;
    for (int32_t i = 0; i < p->n_steps; i++) n_steps += tn_plan_step_runs_on(&p->steps[i], device);
    if (!c.kernel || n_steps == 0 || device != tn_plan_host_device(p)) return c;
    c.uploads = p->input_size[device] > 0;
    for (int32_t i = 0; i < p->n_outputs; i++) c.downloads = c.downloads || tn_plan_fetches(p, i);
    return c;
}
