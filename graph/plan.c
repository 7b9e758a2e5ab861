// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiling: the passes over a clone of the graph, then the immutable list of steps.
#include "graph/graph.h"


#include <stdatomic.h>
#include <string.h>

static const struct {
    const char *name;
    tn_status (*run)(tn_pass_state *s);
} passes[] = {
#define TN_PASS(name, what) {#name, tn_pass_##name},
#include "graph/passes.def"
};

void tn_plan_config_init(tn_plan_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_plan_config, cfg, struct_size, {.fusion = 1});
}

void tn_plan_unref(tn_plan **plan)
{
    if (!plan || !*plan) return;
    tn_plan *p = *plan;
    *plan = NULL;
    // acq_rel: the last owner must see all writes of the other owners before it frees the object.
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
    tn_context *ctx = p->ctx;
    tn_free(ctx, p->steps);
    tn_free(ctx, p->ops);
    tn_free(ctx, (void *)p->launches);
    tn_free(ctx, p->inputs);
    tn_free(ctx, p->outputs);
    tn_free(ctx, p->bound);
    tn_free(ctx, p->places);
    tn_free(ctx, p->arena_size);
    tn_free(ctx, p->devices);
    tn_graph_destroy(&p->graph);
    tn_free(ctx, p);
}

tn_plan *tn_plan_ref(tn_plan *plan)
{
    if (!plan) return NULL;
    atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
    return plan;
}

// Alignment of each input within the buffer of all inputs, in bytes: one cache line.
enum { INPUT_ALIGN = 64 };

static tn_status set_devices(tn_plan *p, const tn_plan_config *cfg)
{
    tn_device *host = tn_device_of_role(p->ctx, TN_BACKEND_HOST);
    int32_t n = cfg->devices ? cfg->n_devices : 0;
    bool has_host = false;
    p->devices = tn_calloc(p->ctx, (size_t)n + 1, sizeof *p->devices);
    if (!p->devices) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        p->devices[p->n_devices++] = cfg->devices[i];
        has_host |= cfg->devices[i] == host;
    }
    // Steps for which the other devices have no kernel fall back to the host, with an event.
    if (!has_host && host) p->devices[p->n_devices++] = host;
    if (p->n_devices == 0) return tn_fail(p->ctx, TN_ERR_DEVICE, "no device to plan for");
    // tn_plan_port.devices has one bit per device.
    if (p->n_devices > 32) return tn_fail(p->ctx, TN_ERR_ARG, "a plan for %d devices", p->n_devices);
    for (int32_t i = 0; i < p->graph->n_nodes; i++)
        if (p->graph->nodes[i]->wanted >= p->n_devices)
            return tn_fail(p->ctx, TN_ERR_INTERNAL, "%s is wanted on device %d of %d",
                           p->graph->nodes[i]->dst[0]->name, p->graph->nodes[i]->wanted, p->n_devices);
    return TN_OK;
}

// Every device for which matmuls are requested must have kernels of that precision.
static tn_status set_precision(tn_plan *p, int32_t precision)
{
    if (precision < 0 || precision >= TN_PRECISION_COUNT)
        return tn_fail(p->ctx, TN_ERR_ARG, "a plan of precision %d", precision);
    for (int32_t i = 0; i < p->graph->n_nodes; i++) {
        tn_node *n = p->graph->nodes[i];
        if (!(tn_op_info_get(n->op)->flags & TN_OP_PRODUCT)) continue;
        n->precision = precision;
        const tn_device *d = p->devices[n->wanted];
        if (tn_device_has_precision(d, precision)) continue;
        tn_strbuf has;
        tn_strbuf_init(&has, p->ctx);
        for (int32_t k = 0; k < TN_PRECISION_COUNT; k++)
            if (tn_device_has_precision(d, k)) tn_strbuf_printf(&has, " %s", tn_precision_name(k));
        tn_status status = has.status;
        if (status == TN_OK)
            status =
                tn_fail(p->ctx, TN_ERR_UNSUPPORTED, "%s has no matrix products of precision %s; it has%s",
                        d->name, tn_precision_name(precision), has.data);
        tn_strbuf_fini(&has);
        return status;
    }
    p->precision = precision;
    return TN_OK;
}

static tn_status record_text(tn_plan *p)
{
    tn_strbuf text;
    tn_strbuf_init(&text, p->ctx);
    tn_graph_print(p->graph, &text);
    tn_status status = text.status;
    if (status == TN_OK) {
        p->recorded = tn_arena_strdup(&p->graph->arena, text.data ? text.data : "");
        if (!p->recorded) status = TN_ERR_MEMORY;
    }
    tn_strbuf_fini(&text);
    return status;
}

// The ops of the graph before the passes.
static tn_status record_ops(tn_plan *p)
{
    const tn_graph *g = p->graph;
    p->ops = tn_calloc(p->ctx, (size_t)g->n_nodes + 1, sizeof *p->ops);
    int32_t *index = tn_calloc(p->ctx, (size_t)g->n_values + 1, sizeof *index); // of the op of a value, + 1
    if (!p->ops || !index) {
        tn_free(p->ctx, index);
        return TN_ERR_MEMORY;
    }
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        tn_recorded *r = &p->ops[p->n_ops];
        bool view = tn_node_is_view(n);
        for (int32_t k = 0; k < n->n_dst; k++)
            index[n->dst[k]->id] = view ? index[n->src[0]->id] : p->n_ops + 1;
        if (view) continue;
        *r = (tn_recorded){.value = n->dst[0], .op = n->op, .step = -1, .n_src = n->n_src};
        for (int32_t k = 0; k < n->n_src; k++) r->src[k] = n->src[k] ? index[n->src[k]->id] - 1 : -1;
        p->n_ops++;
    }
    tn_free(p->ctx, index);
    return TN_OK;
}

// Which step does the work of each recorded op: that which makes its result, else that of one which reads it.
static tn_status find_steps_of_ops(tn_plan *p)
{
    const tn_graph *g = p->graph;
    int32_t *step = tn_calloc(p->ctx, (size_t)g->n_values + 1, sizeof *step); // that makes a value, + 1
    if (!step) return TN_ERR_MEMORY;
    for (int32_t i = 0, s = 0; i < g->n_nodes; i++) {
        if (tn_node_is_view(g->nodes[i])) continue;
        s++;
        for (int32_t k = 0; k < g->nodes[i]->n_dst; k++) step[g->nodes[i]->dst[k]->id] = s;
    }
    for (int32_t i = p->n_ops - 1; i >= 0; i--) {
        int32_t id = p->ops[i].value->id;
        bool kept = id < g->n_values && g->values[id] == p->ops[i].value;
        if (kept && step[id] > 0) p->ops[i].step = step[id] - 1;
        if (p->ops[i].step < 0) continue;
        for (int32_t k = 0; k < p->ops[i].n_src; k++) { // results that are gone were made here
            int32_t from = p->ops[i].src[k];
            if (from >= 0 && p->ops[from].step < 0) p->ops[from].step = p->ops[i].step;
        }
    }
    tn_free(p->ctx, step);
    return TN_OK;
}

static tn_status run_passes(tn_plan *p, const tn_plan_config *cfg, const size_t *arena_there, int32_t n_there)
{
    size_t n_devices = (size_t)p->n_devices;
    p->arena_size = tn_calloc(p->ctx, 7 * n_devices, sizeof *p->arena_size);
    if (!p->arena_size) return TN_ERR_MEMORY;
    p->arena_bound = p->arena_size + n_devices;
    p->scratch_size = p->arena_bound + n_devices;
    p->weight_size = p->scratch_size + n_devices;
    p->state_size = p->weight_size + n_devices;
    p->input_size = p->state_size + n_devices;
    p->derived_size = p->input_size + n_devices;
    tn_pass_state s = {
        .ctx = p->ctx,
        .graph = p->graph,
        .devices = p->devices,
        .n_devices = p->n_devices,
        .fusion = cfg->fusion != 0,
        .fallback = cfg->fallback,
        .arena_size = p->arena_size,
        .arena_bound = p->arena_bound,
        .arena_there = arena_there,
        .n_there = n_there,
    };
    s.notes_end = &s.notes;
    tn_status status = tn_graph_verify(p->graph, "recording");
    for (size_t i = 0; i < TN_COUNT(passes) && status == TN_OK; i++) {
        status = passes[i].run(&s);
        if (status == TN_OK) status = tn_graph_verify(p->graph, passes[i].name);
    }
    p->places = s.places;
    p->notes = s.notes;
    p->info.n_fused = s.n_fused;
    p->info.n_joined = s.n_joined;
    return status;
}

static tn_plan_operand operand(const tn_tensor *t)
{
    return t ? (tn_plan_operand){t->root->id, t->view.offset} : (tn_plan_operand){-1, 0};
}

static tn_status make_steps(tn_plan *p)
{
    tn_graph *g = p->graph;
    size_t n_steps = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) n_steps += !tn_node_is_view(g->nodes[i]);
    p->steps = tn_calloc(p->ctx, n_steps + 1, sizeof *p->steps);
    if (!p->steps) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        if (tn_node_is_view(n)) continue;
        tn_plan_step *s = &p->steps[p->n_steps++];
        s->device = n->device;
        tn_node_step(n, &s->step);
        for (int32_t k = 0; k < n->n_src; k++) s->src[k] = operand(n->src[k]);
        for (int32_t k = 0; k < n->n_dst; k++) s->dst[k] = operand(n->dst[k]);
        s->staged_x = operand(n->staged_x);
        s->staged_y = operand(n->staged_y);
        s->staged_norm = operand(n->staged_norm);
        const tn_device *d = p->devices[n->device];
        s->kernel = n->op == TN_OP_transfer ? "transfer" : d->backend->kernel_name(d, &s->step);
        bool product = (tn_op_info_get(n->op)->flags & TN_OP_PRODUCT) != 0;
        s->rounding = product && d->backend->rounding ? d->backend->rounding(d, &s->step) : TN_PRECISION_auto;
    }
    return TN_OK;
}

// For each value: a bit per device whose steps read or write its storage.
static void find_users(const tn_plan *p, uint32_t *users)
{
    for (int32_t i = 0; i < p->n_steps; i++) {
        const tn_plan_step *s = &p->steps[i];
        for (int32_t k = 0; k < s->step.n_src; k++)
            if (s->src[k].root >= 0) users[s->src[k].root] |= 1u << s->device;
    }
}

static void find_port_sizes(tn_plan *p)
{
    for (int32_t d = 0; d < p->n_devices; d++) {
        for (int32_t i = 0; i < p->n_inputs; i++)
            if (p->inputs[i].devices >> d & 1) p->input_size[d] = p->inputs_size;
        for (int32_t i = 0; i < p->n_bound; i++) {
            const tn_tensor *t = p->graph->values[p->bound[i].value];
            size_t *size = t->kind == TN_VALUE_STATE ? &p->state_size[d] : &p->weight_size[d];
            if (p->bound[i].devices >> d & 1) *size += tn_tensor_size(t);
        }
    }
}

static tn_status make_ports(tn_plan *p)
{
    const tn_graph *g = p->graph;
    size_t n_inputs = 0, n_outputs = 0, n_bound = 0;
    for (int32_t i = 0; i < g->n_values; i++) {
        n_inputs += g->values[i]->kind == TN_VALUE_INPUT;
        n_outputs += g->values[i]->output != NULL;
        n_bound += tn_tensor_external(g->values[i]);
    }
    p->inputs = tn_calloc(p->ctx, n_inputs + 1, sizeof *p->inputs);
    p->outputs = tn_calloc(p->ctx, n_outputs + 1, sizeof *p->outputs);
    p->bound = tn_calloc(p->ctx, n_bound + 1, sizeof *p->bound);
    uint32_t *users = tn_calloc(p->ctx, (size_t)g->n_values + 1, sizeof *users);
    if (!p->inputs || !p->outputs || !p->bound || !users) {
        tn_free(p->ctx, users);
        return TN_ERR_MEMORY;
    }
    find_users(p, users);
    p->inputs_size = INPUT_ALIGN;
    for (int32_t i = 0; i < g->n_values; i++) {
        const tn_tensor *t = g->values[i];
        tn_plan_port port = {.name = t->name, .value = i, .view = t->view, .devices = users[i]};
        if (t->kind == TN_VALUE_INPUT) {
            port.offset = p->inputs_size;
            p->inputs_size += (tn_tensor_size(t) + INPUT_ALIGN - 1) / INPUT_ALIGN * INPUT_ALIGN;
            p->info.input_size += tn_tensor_size(t);
            p->inputs[p->n_inputs++] = port;
        } else if (tn_tensor_external(t)) {
            p->bound[p->n_bound++] = port;
        }
        if (t->output)
            p->outputs[p->n_outputs++] = (tn_plan_port){.name = t->output, .value = i, .view = t->view};
    }
    tn_free(p->ctx, users);
    find_port_sizes(p);
    return TN_OK;
}

// The steps of a device, in order; returns how many.
static int32_t device_steps(const tn_plan *p, int32_t device, tn_step *steps)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_steps; i++)
        if (tn_plan_step_runs_on(&p->steps[i], device)) steps[n++] = p->steps[i].step;
    return n;
}

// Scratch of each device, the largest amount that any of its steps needs, and weights in another form.
static tn_status find_scratch(tn_plan *p)
{
    tn_step *steps = tn_calloc(p->ctx, (size_t)p->n_steps + 1, sizeof *steps);
    if (!steps) return TN_ERR_MEMORY;
    for (int32_t d = 0; d < p->n_devices; d++) {
        tn_program program = {.n_steps = device_steps(p, d, steps), .steps = steps};
        p->scratch_size[d] = p->devices[d]->backend->scratch_size(p->devices[d], &program);
        if (p->devices[d]->backend->derived_size)
            p->derived_size[d] = p->devices[d]->backend->derived_size(p->devices[d], &program);
        p->info.scratch_size += p->scratch_size[d];
        p->info.arena_size += p->arena_size[d];
        p->info.arena_bound += p->arena_bound[d];
    }
    tn_free(p->ctx, steps);
    return TN_OK;
}

// --- launches ----------------------------------------------------------------------------------------

// Appends the name of an entry point; it need not stay.
static tn_status put_launch(void *user, const char *entry)
{
    tn_plan *p = user;
    if (p->n_launches == p->launches_capacity) {
        int32_t more = p->launches_capacity ? 2 * p->launches_capacity : 256;
        size_t size = sizeof *p->launches;
        void *list =
            tn_realloc(p->ctx, (void *)p->launches, (size_t)p->n_launches * size, (size_t)more * size);
        if (!list) return TN_ERR_MEMORY;
        p->launches = list;
        p->launches_capacity = more;
    }
    const char *name = tn_arena_strdup(&p->graph->arena, entry);
    if (!name) return TN_ERR_MEMORY;
    p->launches[p->n_launches++] = name;
    return TN_OK;
}

static tn_status list_step(tn_plan *p, tn_device *d, const tn_program *program, int32_t i, tn_plan_step *s)
{
    tn_launch_sink sink = {put_launch, p};
    s->first_launch = p->n_launches;
    s->n_launches = 1; // named by the kernel
    if (!d->backend->launches) return TN_OK;
    tn_status status = d->backend->launches(d, program, i, &sink);
    s->n_launches = p->n_launches - s->first_launch;
    return status;
}

// Names of all launches, device by device.
static tn_status list_launches(tn_plan *p)
{
    tn_step *steps = tn_calloc(p->ctx, (size_t)p->n_steps + 1, sizeof *steps);
    if (!steps) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (int32_t d = 0; d < p->n_devices && status == TN_OK; d++) {
        tn_program program = {.n_steps = device_steps(p, d, steps), .steps = steps};
        for (int32_t i = 0, k = 0; i < p->n_steps && status == TN_OK; i++)
            if (tn_plan_step_runs_on(&p->steps[i], d))
                status = list_step(p, p->devices[d], &program, k++, &p->steps[i]);
        for (int32_t i = 0; i < p->n_steps; i++)
            if (tn_plan_step_runs_on(&p->steps[i], d)) p->info.n_launches += p->steps[i].n_launches;
        tn_plan_copies copies = tn_plan_copies_get(p, d);
        p->info.n_launches += copies.uploads + copies.downloads;
    }
    tn_free(p->ctx, steps);
    return status;
}

tn_status tn_plan_create(const tn_graph *graph, const tn_plan_config *cfg, tn_plan **out)
{
    return tn_plan_create_within(graph, cfg, NULL, 0, out);
}

tn_status tn_plan_create_within(const tn_graph *graph, const tn_plan_config *cfg, const size_t *arena_there,
                                int32_t n_there, tn_plan **out)
{
    TN_NEED(NULL, graph);
    TN_NEED(graph->ctx, out);
    tn_plan_config c;
    tn_plan_config_default(&c);
    tn_context *ctx = graph->ctx;
    tn_status status = TN_STRUCT_READ(ctx, tn_plan_config, cfg, &c);
    if (status != TN_OK) return status;
    if (graph->status != TN_OK) return tn_fail(ctx, graph->status, "%s", graph->error);
    tn_plan *p = tn_calloc(ctx, 1, sizeof *p);
    if (!p) return TN_ERR_MEMORY;
    p->ctx = ctx;
    atomic_init(&p->refs, 1);
    status = tn_graph_clone(graph, &p->graph);
    if (status == TN_OK) status = set_devices(p, &c);
    if (status == TN_OK) status = set_precision(p, c.precision);
    for (int32_t i = 0; i < graph->n_nodes; i++) p->info.n_recorded += !tn_node_is_view(graph->nodes[i]);
    if (status == TN_OK) status = record_text(p);
    if (status == TN_OK) status = record_ops(p);
    if (status == TN_OK) status = run_passes(p, &c, arena_there, n_there);
    if (status == TN_OK) status = make_steps(p);
    if (status == TN_OK) status = find_steps_of_ops(p);
    if (status == TN_OK) status = make_ports(p);
    if (status == TN_OK) status = find_scratch(p);
    if (status == TN_OK) status = list_launches(p);
    p->info.n_steps = p->n_steps;
    if (status != TN_OK) tn_plan_unref(&p);
    else *out = p;
    return status;
}

tn_status tn_plan_info_get(const tn_plan *plan, tn_plan_info *info)
{
    TN_NEED(NULL, plan);
    return TN_STRUCT_WRITE(plan->ctx, tn_plan_info, info, &plan->info);
}

static int32_t find_port(const tn_plan_port *ports, int32_t n, const char *name)
{
    for (int32_t i = 0; i < n; i++)
        if (strcmp(ports[i].name, name) == 0) return i;
    return -1;
}

int32_t tn_plan_find_input(const tn_plan *plan, const char *name)
{
    return find_port(plan->inputs, plan->n_inputs, name);
}

int32_t tn_plan_find_output(const tn_plan *plan, const char *name)
{
    return find_port(plan->outputs, plan->n_outputs, name);
}
