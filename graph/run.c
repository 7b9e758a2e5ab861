// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Running a plan: operands are bound once, the steps of each device become executables, and every run
// submits the same executables again. Nothing is allocated after creation.
#include "graph/graph.h"
#include "ops/cost.h"

#include <string.h>

// Consecutive steps of one device that form one executable, or one transfer (executable NULL).
typedef struct segment {
    int32_t first, n_steps, device;
    int32_t transfer; // index of the transfer
    tn_executable *executable;
} segment;

typedef struct location {
    const tn_buffer *buffer; // NULL: not used there
    size_t offset;
} location;

struct tn_runner {
    tn_context *ctx;
    tn_plan *plan;
    tn_buffer *own_arena, *own_scratch; // per device, NULL if the caller owns them
    const tn_buffer *arena, *scratch;
    tn_device *host_device; // that allocated host_inputs and reads them directly; NULL: plain memory
    char *host_outputs;     // of that device: copies of small outputs that it writes there in every run
    size_t *fetched;        // per output: its offset in host_outputs, or NOT_FETCHED
    char *host_inputs; // all inputs: used in place by devices with host memory, copied at once to the others
    tn_buffer *inputs; // per device: empty, host_inputs borrowed, or a buffer of the device
    bool shared_inputs, inputs_changed;
    location *roots;   // per device and value id: where its storage is
    int32_t n_segments, n_transfers;
    segment *segments;
    tn_step *transfers; // resolved; other steps are in the executables
    tn_buffer *host_buffers; // of tn_runner_create: the caller's memory as buffers, or copies of it
    int32_t n_host_buffers;
    tn_run_checks *checks; // of tn_runner_create; NULL: no input needs one
    bool unchecked;        // inputs were written since they were checked
    tn_status status; // first failure of the submitted work, for wait
    uint64_t *step_ns; // NULL: never profiled
    bool profile;
};

enum { NOT_FETCHED = -1, FETCH_ALIGN = 64 };

static void free_host(tn_runner *r, void *host)
{
    if (host && r->host_device) r->host_device->backend->host_destroy(r->host_device, host);
    else tn_free(r->ctx, host);
}

static void free_bound(tn_context *ctx, tn_buffer *buffers, int32_t n)
{
    for (int32_t i = 0; buffers && i < n; i++) tn_buffer_destroy(&buffers[i]);
    tn_free(ctx, buffers);
}

void tn_runner_destroy(tn_runner **runner)
{
    if (!runner || !*runner) return;
    tn_runner *r = *runner;
    tn_plan *p = r->plan;
    for (int32_t i = 0; i < r->n_segments; i++) {
        tn_device *d = p->devices[r->segments[i].device];
        if (r->segments[i].executable) d->backend->executable_destroy(d, r->segments[i].executable);
    }
    free_bound(r->ctx, r->own_arena, p->n_devices);
    free_bound(r->ctx, r->own_scratch, p->n_devices);
    free_bound(r->ctx, r->inputs, p->n_devices);
    free_host(r, r->host_inputs);
    free_host(r, r->host_outputs);
    tn_run_checks_destroy(&r->checks);
    tn_free(r->ctx, r->fetched);
    tn_free(r->ctx, r->step_ns);
    tn_free(r->ctx, r->roots);
    tn_free(r->ctx, r->transfers);
    tn_free(r->ctx, r->segments);
    free_bound(r->ctx, r->host_buffers, r->n_host_buffers);
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

static tn_status host_create(tn_runner *r, size_t size, char **out)
{
    void *host = NULL;
    tn_status status = TN_OK;
    if (r->host_device) status = r->host_device->backend->host_create(r->host_device, size, &host);
    else host = tn_calloc(r->ctx, 1, size);
    *out = host;
    return status == TN_OK && !host ? TN_ERR_MEMORY : status;
}

// The host memory in which inputs are written and small outputs arrive.
static tn_status make_host(tn_runner *r)
{
    const tn_plan *p = r->plan;
    int32_t host = tn_plan_host_device(p);
    if (host >= 0) r->host_device = p->devices[host];
    r->fetched = tn_calloc(r->ctx, (size_t)p->n_outputs + 1, sizeof *r->fetched);
    if (!r->fetched) return TN_ERR_MEMORY;
    size_t size = 0;
    for (int32_t i = 0; i < p->n_outputs; i++) {
        size_t n = tn_tensor_size(p->graph->values[p->outputs[i].value]);
        bool fetched = tn_plan_fetches(p, i);
        r->fetched[i] = fetched ? size : (size_t)NOT_FETCHED;
        if (fetched) size += (n + FETCH_ALIGN - 1) / FETCH_ALIGN * FETCH_ALIGN;
    }
    tn_status status = host_create(r, p->inputs_size, &r->host_inputs);
    return status == TN_OK && size > 0 ? host_create(r, size, &r->host_outputs) : status;
}

static tn_status make_inputs(tn_runner *r, const tn_buffer *given)
{
    const tn_plan *p = r->plan;
    r->inputs = tn_calloc(r->ctx, (size_t)p->n_devices, sizeof *r->inputs);
    if (!r->inputs) return TN_ERR_MEMORY;
    tn_status made = make_host(r);
    if (made != TN_OK) return made;
    for (int32_t d = 0; d < p->n_devices; d++) {
        if (p->input_size[d] == 0) continue;
        if (p->devices[d]->host_memory) {
            r->inputs[d] = tn_buffer_borrow(p->devices[d], r->host_inputs, p->inputs_size);
        } else if (given && given[d].size >= p->inputs_size) {
            r->inputs[d] = given[d];
            r->inputs[d].borrowed = r->shared_inputs = true;
        } else {
            tn_status status = tn_buffer_create(p->devices[d], p->inputs_size, &r->inputs[d]);
            if (status != TN_OK) return status;
        }
    }
    r->inputs_changed = true; // the zeros of the beginning count as a change
    return TN_OK;
}

static location *root_at(const tn_runner *r, int32_t device, int32_t value)
{
    return &r->roots[(size_t)device * (size_t)r->plan->graph->n_values + (size_t)value];
}

static const location *output_root(const tn_runner *r, const tn_tensor *t)
{
    return root_at(r, r->plan->places[t->root->id].device, t->root->id);
}

static tn_status bind_port(tn_runner *r, const tn_runner_config *cfg, const tn_plan_port *port,
                           int32_t device)
{
    tn_runner_binding b;
    tn_status status = cfg->bind(cfg->user, r->plan->devices[device], port, &b);
    if (status != TN_OK) return status;
    size_t size = tn_tensor_size(r->plan->graph->values[port->value]);
    if (b.offset > b.buffer->size || size > b.buffer->size - b.offset)
        return tn_fail(r->ctx, TN_ERR_ARG, "%s: %zu bytes bound, the tensor has %zu", port->name,
                       b.buffer->size - TN_MIN(b.buffer->size, b.offset), size);
    *root_at(r, device, port->value) = (location){b.buffer, b.offset};
    return TN_OK;
}

static tn_status bind_all(tn_runner *r, const tn_runner_config *cfg)
{
    const tn_plan *p = r->plan;
    int32_t n_values = p->graph->n_values;
    r->roots = tn_calloc(r->ctx, (size_t)n_values * (size_t)p->n_devices + 1, sizeof *r->roots);
    if (!r->roots) return TN_ERR_MEMORY;
    for (int32_t d = 0; d < p->n_devices; d++) {
        for (int32_t i = 0; i < p->n_inputs; i++)
            if (p->inputs[i].devices >> d & 1)
                *root_at(r, d, p->inputs[i].value) = (location){&r->inputs[d], p->inputs[i].offset};
        for (int32_t i = 0; i < p->n_bound; i++) {
            tn_status status = p->bound[i].devices >> d & 1 ? bind_port(r, cfg, &p->bound[i], d) : TN_OK;
            if (status != TN_OK) return status;
        }
    }
    for (int32_t i = 0; i < n_values; i++) {
        const tn_place *place = &p->places[i];
        if (place->in_arena)
            *root_at(r, place->device, i) = (location){&r->arena[place->device], place->offset};
    }
    return TN_OK;
}

// Storage in an arena lies on the device that computes it; weights, states and inputs on each device that
// uses them.
static void resolve(const tn_runner *r, int32_t device, tn_view *v, const tn_plan_operand *o)
{
    if (o->root < 0) return;
    const tn_place *place = &r->plan->places[o->root];
    const location *root = root_at(r, place->in_arena ? place->device : device, o->root);
    v->data = (char *)root->buffer->data + root->offset + o->offset;
    // A view names the buffer for backends that address by (buffer, offset); they never resize it.
    v->buffer = (tn_buffer *)(uintptr_t)root->buffer;
    v->offset = root->offset + o->offset;
}

static void resolve_step(const tn_runner *r, const tn_plan_step *s, tn_step *out)
{
    *out = s->step;
    for (int32_t k = 0; k < s->step.n_src; k++) resolve(r, s->device, &out->src[k], &s->src[k]);
    for (int32_t k = 0; k < s->step.n_dst; k++) resolve(r, s->device, &out->dst[k], &s->dst[k]);
    resolve(r, s->device, &out->join.staged_x, &s->staged_x);
    resolve(r, s->device, &out->join.staged_y, &s->staged_y);
    resolve(r, s->device, &out->join.staged_norm, &s->staged_norm);
}

static void find_segments(tn_runner *r)
{
    const tn_plan *p = r->plan;
    bool open = false; // further steps of the same device join the last segment
    double sum = 0.0;  // multiplications of the last segment
    for (int32_t i = 0; i < p->n_steps; i++) {
        const tn_plan_step *s = &p->steps[i];
        segment *last = r->n_segments > 0 ? &r->segments[r->n_segments - 1] : NULL;
        bool transfer = s->step.op == TN_OP_transfer;
        double most = p->devices[s->device]->max_work, work = most > 0.0 ? tn_step_work(&s->step) : 0.0;
        // What shares a launch, or leaves something in the scratch memory, stays together.
        bool fits = most <= 0.0 || sum + work <= most || s->step.join.previous != 0;
        if (!open || !fits) sum = 0.0;
        sum += work;
        if (open && !transfer && last->device == s->device && fits) last->n_steps++;
        else
            r->segments[r->n_segments++] =
                (segment){.first = i, .n_steps = transfer ? 0 : 1, .device = s->device};
        r->n_transfers += transfer;
        open = !transfer;
    }
}

static bool first_of_device(const tn_runner *r, const segment *s)
{
    for (const segment *t = r->segments; t < s; t++)
        if (t->device == s->device && t->n_steps > 0) return false;
    return true;
}

static bool last_of_device(const tn_runner *r, const segment *s)
{
    for (const segment *t = s + 1; t < r->segments + r->n_segments; t++)
        if (t->device == s->device && t->n_steps > 0) return false;
    return true;
}

static int32_t list_downloads(const tn_runner *r, tn_host_copy *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < r->plan->n_outputs; i++) {
        const tn_tensor *t = r->plan->graph->values[r->plan->outputs[i].value];
        if (r->fetched[i] == (size_t)NOT_FETCHED) continue;
        const location *root = output_root(r, t);
        out[n++] =
            (tn_host_copy){r->host_outputs + r->fetched[i],
                           (char *)root->buffer->data + root->offset + t->view.offset, tn_tensor_size(t)};
    }
    return n;
}

static tn_status prepare_segment(tn_runner *r, segment *s, tn_step *steps)
{
    tn_device *d = r->plan->devices[s->device];
    for (int32_t i = 0; i < s->n_steps; i++) resolve_step(r, &r->plan->steps[s->first + i], &steps[i]);
    tn_program program = {.n_steps = s->n_steps, .steps = steps};
    tn_host_copy upload = {r->host_inputs, NULL, r->plan->inputs_size}, *downloads = NULL;
    if (d == r->host_device) {
        downloads = tn_calloc(r->ctx, (size_t)r->plan->n_outputs + 1, sizeof *downloads);
        if (!downloads) return TN_ERR_MEMORY;
        program.n_uploads = first_of_device(r, s) && r->plan->input_size[s->device] > 0;
        upload.device = r->inputs[s->device].data;
        program.uploads = &upload;
        program.n_downloads = last_of_device(r, s) ? list_downloads(r, downloads) : 0;
        program.downloads = downloads;
    }
    tn_status status = d->backend->prepare(d, &program, &r->scratch[s->device], &s->executable);
    tn_free(r->ctx, downloads);
    return status;
}

static tn_status make_segments(tn_runner *r)
{
    const tn_plan *p = r->plan;
    r->segments = tn_calloc(r->ctx, (size_t)p->n_steps + 1, sizeof *r->segments);
    tn_step *steps = tn_calloc(r->ctx, (size_t)p->n_steps + 1, sizeof *steps);
    if (r->segments) find_segments(r);
    if (r->n_transfers > 0) r->transfers = tn_calloc(r->ctx, (size_t)r->n_transfers, sizeof *r->transfers);
    bool ok = r->segments && steps && (r->transfers || r->n_transfers == 0);
    tn_status status = ok ? TN_OK : TN_ERR_MEMORY;
    int32_t n = 0;
    for (int32_t i = 0; i < r->n_segments && status == TN_OK; i++) {
        segment *s = &r->segments[i];
        if (s->n_steps > 0) {
            status = prepare_segment(r, s, steps);
            continue;
        }
        resolve_step(r, &p->steps[s->first], &r->transfers[n]);
        s->transfer = n++;
    }
    tn_free(r->ctx, steps);
    return status;
}

tn_status tn_runner_create_with(tn_plan *plan, const tn_runner_config *cfg, tn_runner **out)
{
    tn_runner *r = tn_calloc(plan->ctx, 1, sizeof *r);
    if (!r) return TN_ERR_MEMORY;
    r->ctx = plan->ctx;
    r->plan = tn_plan_ref(plan);
    tn_status status = make_buffers(r, plan->arena_size, cfg->arena, &r->own_arena, &r->arena);
    if (status == TN_OK)
        status = make_buffers(r, plan->scratch_size, cfg->scratch, &r->own_scratch, &r->scratch);
    if (status == TN_OK) status = make_inputs(r, cfg->inputs);
    if (status == TN_OK) status = bind_all(r, cfg);
    if (status == TN_OK) status = make_segments(r);
    if (status != TN_OK) tn_runner_destroy(&r);
    else *out = r;
    return status;
}

// --- creation from host memory ---------------------------------------------------------------------

typedef struct host_bindings {
    const tn_plan *plan;
    const tn_binding *bindings;
    int32_t n;
    tn_buffer *buffers; // n for each device
} host_bindings;

// Devices with memory of their own get a copy; a state stays there from then on. They may store weights in a
// layout of their own, but a state keeps the layout of its type, because steps write parts of it.
static tn_status bind_copy(tn_device *device, const tn_binding *from, const tn_plan_port *port, bool is_state,
                           tn_buffer *out)
{
    const tn_view *v = &port->view;
    size_t size = tn_dtype_row_size(v->dtype, v->ne[3]) * (size_t)tn_view_n_rows(v);
    if (from->size < size)
        return tn_fail(device->ctx, TN_ERR_ARG, "%s: %zu bytes bound, the tensor has %zu", from->name,
                       from->size, size);
    tn_status status = tn_buffer_create(device, size, out);
    if (status != TN_OK) return status;
    return is_state ? tn_buffer_write(out, 0, from->data, size)
                    : tn_buffer_write_weight(out, 0, v, from->data, size);
}

static tn_status bind_host(void *user, tn_device *device, const tn_plan_port *port, tn_runner_binding *out)
{
    host_bindings *h = user;
    int32_t d = 0;
    while (h->plan->devices[d] != device) d++;
    for (int32_t i = 0; i < h->n; i++) {
        if (strcmp(h->bindings[i].name, port->name) != 0) continue;
        tn_buffer *b = &h->buffers[d * h->n + i];
        *out = (tn_runner_binding){b, 0};
        bool is_state = h->plan->graph->values[port->value]->kind == TN_VALUE_STATE;
        if (!device->host_memory) return bind_copy(device, &h->bindings[i], port, is_state, b);
        *b = tn_buffer_borrow(device, h->bindings[i].data, h->bindings[i].size);
        return TN_OK;
    }
    return tn_fail(device->ctx, TN_ERR_ARG, "%s: nothing is bound to it", port->name);
}

tn_status tn_runner_create(tn_plan *plan, const tn_binding *bindings, int32_t n, tn_runner **out)
{
    TN_NEED(NULL, plan);
    if (n > 0) TN_NEED(plan->ctx, bindings);
    TN_NEED(plan->ctx, out);
    int32_t n_buffers = n * plan->n_devices;
    tn_buffer *buffers = tn_calloc(plan->ctx, (size_t)n_buffers + 1, sizeof *buffers);
    if (!buffers) return TN_ERR_MEMORY;
    host_bindings h = {plan, bindings, n, buffers};
    tn_runner_config cfg = {.bind = bind_host, .user = &h};
    tn_runner *r;
    tn_status status = tn_runner_create_with(plan, &cfg, &r);
    if (status != TN_OK) {
        free_bound(plan->ctx, buffers, n_buffers);
        return status;
    }
    r->host_buffers = buffers;
    r->n_host_buffers = n_buffers;
    r->unchecked = true;
    status = tn_run_checks_create(plan, r->host_inputs, bindings, n, &r->checks);
    if (status != TN_OK) tn_runner_destroy(&r);
    else *out = r;
    return status;
}

// --- use -------------------------------------------------------------------------------------------

tn_status tn_runner_write_at(tn_runner *r, int32_t input, const void *data, size_t size)
{
    const tn_plan_port *port = &r->plan->inputs[input];
    size_t want = tn_tensor_size(r->plan->graph->values[port->value]);
    if (size != want)
        return tn_fail(r->ctx, TN_ERR_ARG, "input %s has %zu bytes, not %zu", port->name, want, size);
    if (size > 0) memcpy(r->host_inputs + port->offset, data, size);
    r->inputs_changed = r->unchecked = true;
    return TN_OK;
}

tn_status tn_runner_read_at(tn_runner *r, int32_t output, size_t offset, void *data, size_t size)
{
    const tn_plan_port *port = &r->plan->outputs[output];
    const tn_tensor *t = r->plan->graph->values[port->value];
    size_t have = tn_tensor_size(t);
    if (offset > have || size > have - offset)
        return tn_fail(r->ctx, TN_ERR_ARG, "output %s has %zu bytes, not %zu + %zu", port->name, have, offset,
                       size);
    if (r->fetched[output] != (size_t)NOT_FETCHED) {
        if (size > 0) memcpy(data, r->host_outputs + r->fetched[output] + offset, size);
        return TN_OK;
    }
    const location *root = output_root(r, t);
    return tn_buffer_read(root->buffer, root->offset + t->view.offset + offset, data, size);
}

tn_runner_binding tn_runner_output_place(const tn_runner *r, int32_t output)
{
    const tn_tensor *t = r->plan->graph->values[r->plan->outputs[output].value];
    const location *root = output_root(r, t);
    return (tn_runner_binding){root->buffer, root->offset + t->view.offset};
}

const void *tn_runner_output_data(const tn_runner *r, int32_t output)
{
    const tn_tensor *t = r->plan->graph->values[r->plan->outputs[output].value];
    const location *root = output_root(r, t);
    return root->buffer->device->host_memory
               ? (const char *)root->buffer->data + root->offset + t->view.offset
               : NULL;
}

size_t tn_runner_size(const tn_plan *p)
{
    size_t n_values = (size_t)p->graph->n_values, n_steps = (size_t)p->n_steps + 1,
           n_devices = (size_t)p->n_devices, n_transfers = 0;
    for (int32_t i = 0; i < p->n_steps; i++) n_transfers += p->steps[i].step.op == TN_OP_transfer;
    return sizeof(tn_runner) + p->inputs_size +
           n_devices * (n_values * sizeof(location) + sizeof(tn_buffer)) +
           // the steps are in the backend's executables
           n_transfers * sizeof(tn_step) + n_steps * (sizeof(tn_step) + sizeof(segment));
}

tn_status tn_runner_write(tn_runner *r, const char *input, const void *data, size_t size)
{
    TN_NEED(NULL, r);
    TN_NEED(r->ctx, input);
    if (size > 0) TN_NEED(r->ctx, data);
    int32_t i = tn_plan_find_input(r->plan, input);
    if (i < 0) return tn_fail(r->ctx, TN_ERR_ARG, "%s: no such input", input);
    return tn_runner_write_at(r, i, data, size);
}

tn_status tn_runner_read(tn_runner *r, const char *output, void *data, size_t size)
{
    TN_NEED(NULL, r);
    TN_NEED(r->ctx, output);
    if (size > 0) TN_NEED(r->ctx, data);
    int32_t i = tn_plan_find_output(r->plan, output);
    if (i < 0) return tn_fail(r->ctx, TN_ERR_ARG, "%s: no such output", output);
    size_t have = tn_tensor_size(r->plan->graph->values[r->plan->outputs[i].value]);
    if (size != have)
        return tn_fail(r->ctx, TN_ERR_ARG, "output %s has %zu bytes, not %zu", output, have, size);
    return tn_runner_read_at(r, i, 0, data, size);
}

// Bytes travel between devices through the host: directly if one of them has host memory, else in pieces on
// the stack.
static tn_status move_bytes(const tn_step *step)
{
    char piece[16384];
    const tn_view *x = &step->src[0], *y = &step->dst[0];
    size_t size = tn_dtype_row_size(x->dtype, x->ne[3]) * (size_t)tn_view_n_rows(x);
    if (y->buffer->device->host_memory) return tn_buffer_read(x->buffer, x->offset, y->data, size);
    if (x->buffer->device->host_memory) return tn_buffer_write(y->buffer, y->offset, x->data, size);
    for (size_t at = 0; at < size; at += sizeof piece) {
        size_t n = TN_MIN(sizeof piece, size - at);
        tn_status status = tn_buffer_read(x->buffer, x->offset + at, piece, n);
        if (status == TN_OK) status = tn_buffer_write(y->buffer, y->offset + at, piece, n);
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

static tn_status run_transfer(const tn_step *step, uint64_t *ns)
{
    uint64_t start = ns ? tn_time_ns() : 0;
    tn_status status = move_bytes(step);
    if (ns) *ns += tn_time_ns() - start;
    return status;
}

static tn_status send_inputs(tn_runner *r)
{
    if (!r->inputs_changed && !r->shared_inputs) return TN_OK;
    for (int32_t d = 0; d < r->plan->n_devices; d++) {
        tn_buffer *b = &r->inputs[d];
        if (!b->device || b->device->host_memory || b->device == r->host_device) continue;
        tn_status status = tn_buffer_write(b, 0, r->host_inputs, r->plan->inputs_size);
        if (status != TN_OK) return status;
    }
    r->inputs_changed = false;
    return TN_OK;
}

static tn_status run_segment(tn_runner *r, int32_t i, const tn_submit_options *options)
{
    const segment *s = &r->segments[i];
    tn_device *d = r->plan->devices[s->device];
    tn_submit_options o = options ? *options : (tn_submit_options){0};
    if (o.step_ns) o.step_ns += s->first;
    if (!s->executable) return run_transfer(&r->transfers[s->transfer], o.step_ns);
    tn_status status = d->backend->submit(d, s->executable, &o);
    // Wait: the next segment reads results of this one on another device or on the host.
    return status == TN_OK && i + 1 < r->n_segments ? d->backend->wait(d, s->executable) : status;
}

tn_status tn_runner_submit(tn_runner *r, const tn_submit_options *options)
{
    r->status = send_inputs(r);
    for (int32_t i = 0; i < r->n_segments && r->status == TN_OK; i++) r->status = run_segment(r, i, options);
    return r->status;
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
    TN_NEED(NULL, r);
    tn_submit_options options = {.step_ns = r->profile ? r->step_ns : NULL};
    tn_status status = r->checks && r->unchecked ? tn_run_checks_run(r->checks) : TN_OK;
    if (status != TN_OK) return status;
    r->unchecked = false;
    status = tn_runner_submit(r, &options);
    return status == TN_OK ? tn_runner_wait(r) : status;
}

tn_status tn_runner_profile(tn_runner *r, int32_t on)
{
    TN_NEED(NULL, r);
    size_t n = (size_t)r->plan->n_steps + 1;
    if (on && !r->step_ns) r->step_ns = tn_calloc(r->ctx, n, sizeof *r->step_ns);
    if (on && !r->step_ns) return TN_ERR_MEMORY;
    r->profile = on != 0;
    if (r->step_ns) memset(r->step_ns, 0, n * sizeof *r->step_ns);
    return TN_OK;
}

uint64_t tn_runner_step_ns(const tn_runner *r, int32_t i)
{
    return r && r->step_ns && i >= 0 && i < r->plan->n_steps ? r->step_ns[i] : 0;
}
