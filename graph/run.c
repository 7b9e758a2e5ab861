// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Running a plan: operands are bound once, the steps of each device become executables, and every run
// submits the same executables again. Nothing is allocated after creation.
#include "graph/graph.h"

#include <string.h>

// Consecutive steps of one device, or one transfer (executable NULL).
typedef struct segment {
    int32_t first, n_steps, device;
    tn_executable *executable;
} segment;

struct tn_runner {
    tn_context *ctx;
    tn_plan *plan;
    tn_buffer *own_arena, *own_scratch; // per device, NULL if they belong to somebody else
    const tn_buffer *arena, *scratch;
    tn_buffer inputs; // all inputs in one buffer of the first device
    size_t *input_offsets;
    tn_runner_binding *bound; // per bound port
    tn_view *roots;           // per value id: where its storage is
    tn_step *steps;           // resolved
    int32_t n_segments;
    segment *segments;
    tn_buffer *host_buffers; // of tn_runner_create: the caller's memory as buffers
    tn_status status; // first failure of the submitted work, for wait
};

enum { INPUT_ALIGN = 64 };

void tn_runner_destroy(tn_runner **runner)
{
    if (!runner || !*runner) return;
    tn_runner *r = *runner;
    tn_plan *p = r->plan;
    for (int32_t i = 0; i < r->n_segments; i++) {
        tn_device *d = p->devices[r->segments[i].device];
        if (r->segments[i].executable) d->backend->executable_destroy(d, r->segments[i].executable);
    }
    for (int32_t d = 0; d < p->n_devices; d++) {
        if (r->own_arena) tn_buffer_destroy(&r->own_arena[d]);
        if (r->own_scratch) tn_buffer_destroy(&r->own_scratch[d]);
    }
    tn_buffer_destroy(&r->inputs);
    tn_free(r->ctx, r->own_arena);
    tn_free(r->ctx, r->own_scratch);
    tn_free(r->ctx, r->input_offsets);
    tn_free(r->ctx, r->bound);
    tn_free(r->ctx, r->roots);
    tn_free(r->ctx, r->steps);
    tn_free(r->ctx, r->segments);
    tn_free(r->ctx, r->host_buffers);
    tn_plan_unref(&r->plan);
    tn_free(r->ctx, r);
    *runner = NULL;
}

static tn_status make_buffers(tn_runner *r, const size_t *sizes, const tn_buffer *given, tn_buffer **own,
                              const tn_buffer **use)
{
    int32_t n = r->plan->n_devices;
    bool enough = given != NULL;
    for (int32_t d = 0; d < n && enough; d++) enough = given[d].size >= sizes[d];
    if (enough) {
        *use = given;
        return TN_OK;
    }
    *own = tn_calloc(r->ctx, (size_t)n, sizeof **own);
    if (!*own) return TN_ERR_MEMORY;
    *use = *own;
    for (int32_t d = 0; d < n; d++) {
        if (sizes[d] == 0) continue;
        tn_status status = tn_buffer_create(r->plan->devices[d], sizes[d], &(*own)[d]);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

static tn_status make_inputs(tn_runner *r)
{
    const tn_plan *p = r->plan;
    size_t size = INPUT_ALIGN;
    r->input_offsets = tn_calloc(r->ctx, (size_t)p->n_inputs + 1, sizeof *r->input_offsets);
    if (!r->input_offsets) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_inputs; i++) {
        r->input_offsets[i] = size;
        size += (tn_tensor_size(p->graph->values[p->inputs[i].value]) + INPUT_ALIGN - 1) / INPUT_ALIGN * INPUT_ALIGN;
    }
    tn_status status = tn_buffer_create(p->devices[0], size, &r->inputs);
    if (status != TN_OK) return status;
    static const char zeros[4096];
    for (size_t at = 0; at < size && status == TN_OK; at += sizeof zeros)
        status = tn_buffer_write(&r->inputs, at, zeros, TN_MIN(sizeof zeros, size - at));
    return status;
}

static void set_root(tn_runner *r, int32_t value, const tn_buffer *buffer, size_t offset)
{
    r->roots[value] = (tn_view){
        .data = (char *)buffer->data + offset,
        // A view names the buffer for backends that address by (buffer, offset); they never resize it.
        .buffer = (tn_buffer *)(uintptr_t)buffer,
        .offset = offset,
    };
}

static tn_status bind_all(tn_runner *r, const tn_runner_config *cfg)
{
    tn_plan *p = r->plan;
    size_t n_values = (size_t)p->graph->n_values;
    r->roots = tn_calloc(r->ctx, n_values + 1, sizeof *r->roots);
    r->bound = tn_calloc(r->ctx, (size_t)p->n_bound + 1, sizeof *r->bound);
    if (!r->roots || !r->bound) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_inputs; i++) set_root(r, p->inputs[i].value, &r->inputs, r->input_offsets[i]);
    for (int32_t i = 0; i < p->n_bound; i++) {
        tn_status status = cfg->bind(cfg->user, p->bound[i].name, &p->bound[i].view, &r->bound[i]);
        if (status != TN_OK) return status;
        size_t size = tn_tensor_size(p->graph->values[p->bound[i].value]);
        const tn_buffer *b = r->bound[i].buffer;
        if (r->bound[i].offset > b->size || size > b->size - r->bound[i].offset)
            return tn_fail(r->ctx, TN_ERR_ARG, "%s: %zu bytes bound, the tensor has %zu", p->bound[i].name,
                           b->size - TN_MIN(b->size, r->bound[i].offset), size);
        set_root(r, p->bound[i].value, b, r->bound[i].offset);
    }
    for (size_t i = 0; i < n_values; i++)
        if (p->places[i].in_arena) set_root(r, (int32_t)i, &r->arena[p->places[i].device], p->places[i].offset);
    return TN_OK;
}

static void resolve(const tn_runner *r, tn_view *v, const tn_plan_operand *o)
{
    if (o->root < 0) return;
    const tn_view *root = &r->roots[o->root];
    v->data = (char *)root->data + o->offset;
    v->buffer = root->buffer;
    v->offset = root->offset + o->offset;
}

static tn_status make_segments(tn_runner *r)
{
    tn_plan *p = r->plan;
    r->steps = tn_calloc(r->ctx, (size_t)p->n_steps + 1, sizeof *r->steps);
    r->segments = tn_calloc(r->ctx, (size_t)p->n_steps + 1, sizeof *r->segments);
    if (!r->steps || !r->segments) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_steps; i++) {
        const tn_plan_step *ps = &p->steps[i];
        r->steps[i] = ps->step;
        for (int32_t k = 0; k < ps->step.n_src; k++) resolve(r, &r->steps[i].src[k], &ps->src[k]);
        for (int32_t k = 0; k < ps->step.n_dst; k++) resolve(r, &r->steps[i].dst[k], &ps->dst[k]);
        segment *last = r->n_segments > 0 ? &r->segments[r->n_segments - 1] : NULL;
        bool transfer = ps->step.op == TN_OP_transfer;
        bool joins = last && !transfer && last->device == ps->device && p->steps[last->first].step.op != TN_OP_transfer;
        if (joins) last->n_steps++;
        else r->segments[r->n_segments++] = (segment){.first = i, .n_steps = 1, .device = ps->device};
    }
    bool transfers = false;
    for (int32_t i = 0; i < r->n_segments; i++) {
        segment *s = &r->segments[i];
        if (r->steps[s->first].op == TN_OP_transfer) {
            transfers = true;
            continue;
        }
        tn_device *d = p->devices[s->device];
        tn_program program = {s->n_steps, &r->steps[s->first]};
        tn_status status = d->backend->prepare(d, &program, &r->scratch[s->device], &s->executable);
        if (status != TN_OK) return status;
    }
    if (!transfers) { // the executables have copies; only transfers are run from here
        tn_free(r->ctx, r->steps);
        r->steps = NULL;
    }
    return TN_OK;
}

tn_status tn_runner_create_with(tn_plan *plan, const tn_runner_config *cfg, tn_runner **out)
{
    tn_runner *r = tn_calloc(plan->ctx, 1, sizeof *r);
    if (!r) return TN_ERR_MEMORY;
    r->ctx = plan->ctx;
    r->plan = tn_plan_ref(plan);
    tn_status status = make_buffers(r, plan->arena_size, cfg->arena, &r->own_arena, &r->arena);
    if (status == TN_OK) status = make_buffers(r, plan->scratch_size, cfg->scratch, &r->own_scratch, &r->scratch);
    if (status == TN_OK) status = make_inputs(r);
    if (status == TN_OK) status = bind_all(r, cfg);
    if (status == TN_OK) status = make_segments(r);
    if (status != TN_OK) tn_runner_destroy(&r);
    else *out = r;
    return status;
}

// --- creation from host memory ---------------------------------------------------------------------

typedef struct host_bindings {
    tn_context *ctx;
    tn_device *device;
    const tn_binding *bindings;
    int32_t n;
    tn_buffer *buffers; // one per binding
} host_bindings;

static tn_status bind_host(void *user, const char *name, const tn_view *view, tn_runner_binding *out)
{
    TN_UNUSED(view);
    host_bindings *h = user;
    for (int32_t i = 0; i < h->n; i++) {
        if (strcmp(h->bindings[i].name, name) != 0) continue;
        h->buffers[i] = tn_buffer_borrow(h->device, h->bindings[i].data, h->bindings[i].size);
        *out = (tn_runner_binding){name, &h->buffers[i], 0};
        return TN_OK;
    }
    return tn_fail(h->ctx, TN_ERR_ARG, "%s: nothing is bound to it", name);
}

tn_status tn_runner_create(tn_plan *plan, const tn_binding *bindings, int32_t n, tn_runner **out)
{
    if (!plan->devices[0]->host_memory)
        return tn_fail(plan->ctx, TN_ERR_UNSUPPORTED, "binding host memory on %s", plan->devices[0]->name);
    tn_buffer *buffers = tn_calloc(plan->ctx, (size_t)n + 1, sizeof *buffers);
    if (!buffers) return TN_ERR_MEMORY;
    host_bindings h = {plan->ctx, plan->devices[0], bindings, n, buffers};
    tn_runner_config cfg = {.bind = bind_host, .user = &h};
    tn_runner *r;
    tn_status status = tn_runner_create_with(plan, &cfg, &r);
    if (status != TN_OK) {
        tn_free(plan->ctx, buffers);
        return status;
    }
    r->host_buffers = buffers;
    *out = r;
    return TN_OK;
}

// --- use -------------------------------------------------------------------------------------------

tn_status tn_runner_write_at(tn_runner *r, int32_t input, const void *data, size_t size)
{
    const tn_plan_port *port = &r->plan->inputs[input];
    size_t want = tn_tensor_size(r->plan->graph->values[port->value]);
    if (size != want) return tn_fail(r->ctx, TN_ERR_ARG, "input %s has %zu bytes, not %zu", port->name, want, size);
    return tn_buffer_write(&r->inputs, r->input_offsets[input], data, size);
}

tn_status tn_runner_read_at(tn_runner *r, int32_t output, size_t offset, void *data, size_t size)
{
    const tn_plan_port *port = &r->plan->outputs[output];
    const tn_tensor *t = r->plan->graph->values[port->value];
    size_t have = tn_tensor_size(t);
    if (offset > have || size > have - offset)
        return tn_fail(r->ctx, TN_ERR_ARG, "output %s has %zu bytes, not %zu + %zu", port->name, have, offset, size);
    const tn_view *root = &r->roots[t->root->id];
    return tn_buffer_read(root->buffer, root->offset + t->view.offset + offset, data, size);
}

const void *tn_runner_output_data(const tn_runner *r, int32_t output)
{
    const tn_tensor *t = r->plan->graph->values[r->plan->outputs[output].value];
    const tn_view *root = &r->roots[t->root->id];
    return root->buffer->device->host_memory ? (const char *)root->data + t->view.offset : NULL;
}

size_t tn_runner_size(const tn_plan *p)
{
    size_t n_values = (size_t)p->graph->n_values + 1, n_steps = (size_t)p->n_steps + 1;
    size_t inputs = INPUT_ALIGN;
    for (int32_t i = 0; i < p->n_inputs; i++)
        inputs += (tn_tensor_size(p->graph->values[p->inputs[i].value]) + INPUT_ALIGN - 1) / INPUT_ALIGN * INPUT_ALIGN;
    return sizeof(tn_runner) + inputs + n_values * sizeof(tn_view) + (size_t)p->n_bound * sizeof(tn_runner_binding) +
           n_steps * (sizeof(tn_step) + sizeof(segment)); // the steps are in the backend's executable
}

tn_status tn_runner_write(tn_runner *r, const char *input, const void *data, size_t size)
{
    int32_t i = tn_plan_find_input(r->plan, input);
    if (i < 0) return tn_fail(r->ctx, TN_ERR_ARG, "%s: no such input", input);
    return tn_runner_write_at(r, i, data, size);
}

tn_status tn_runner_read(tn_runner *r, const char *output, void *data, size_t size)
{
    int32_t i = tn_plan_find_output(r->plan, output);
    if (i < 0) return tn_fail(r->ctx, TN_ERR_ARG, "%s: no such output", output);
    size_t have = tn_tensor_size(r->plan->graph->values[r->plan->outputs[i].value]);
    if (size != have) return tn_fail(r->ctx, TN_ERR_ARG, "output %s has %zu bytes, not %zu", output, have, size);
    return tn_runner_read_at(r, i, 0, data, size);
}

// Between devices bytes go through the host, in pieces on the stack.
static tn_status run_transfer(const tn_step *step)
{
    char piece[16384];
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    size_t size = tn_dtype_row_size(x->dtype, x->ne[3]) * (size_t)tn_view_n_rows(x);
    for (size_t at = 0; at < size; at += sizeof piece) {
        size_t n = TN_MIN(sizeof piece, size - at);
        tn_status status = tn_buffer_read(x->buffer, x->offset + at, piece, n);
        if (status == TN_OK) status = tn_buffer_write(y->buffer, y->offset + at, piece, n);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

tn_status tn_runner_submit(tn_runner *r, const tn_submit_options *options)
{
    r->status = TN_OK;
    for (int32_t i = 0; i < r->n_segments; i++) {
        const segment *s = &r->segments[i];
        tn_device *d = r->plan->devices[s->device];
        if (!s->executable) {
            r->status = run_transfer(&r->steps[s->first]);
            if (r->status != TN_OK) return r->status;
            continue;
        }
        tn_submit_options o = options ? *options : (tn_submit_options){0};
        if (o.step_ns) o.step_ns += s->first;
        tn_status status = d->backend->submit(d, s->executable, &o);
        // The next segment reads what this one made through the host, or on another device.
        if (status == TN_OK && i + 1 < r->n_segments) status = d->backend->wait(d, s->executable);
        if (status != TN_OK) return r->status = status;
    }
    return TN_OK;
}

tn_status tn_runner_wait(tn_runner *r)
{
    if (r->status != TN_OK || r->n_segments == 0) return r->status;
    const segment *s = &r->segments[r->n_segments - 1];
    tn_device *d = r->plan->devices[s->device];
    return s->executable ? d->backend->wait(d, s->executable) : TN_OK;
}

tn_status tn_runner_run(tn_runner *r)
{
    tn_status status = tn_runner_submit(r, NULL);
    return status == TN_OK ? tn_runner_wait(r) : status;
}
