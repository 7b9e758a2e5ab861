// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of graphs and plans: values, nodes, and the state that passes work on.
#ifndef TN_GRAPH_GRAPH_H
#define TN_GRAPH_GRAPH_H

#include "core/memory/arena.h"
#include "core/device.h"
#include "core/strbuf.h"
#include "ops/ops.h"

#include <tenon/graph.h>

enum { TN_VALUE_INPUT, TN_VALUE_WEIGHT, TN_VALUE_STATE, TN_VALUE_NODE };

typedef struct tn_node tn_node;

// A value. Views and in-place results share the storage of their root, at view.offset bytes.
struct tn_tensor {
    int32_t id;
    int32_t kind; // TN_VALUE_*
    const char *name;
    tn_view view;      // data NULL; offset relative to the root
    tn_tensor *root;   // itself, if it has storage of its own
    tn_node *producer; // of nodes only
    int32_t out;       // index among the producer's results
    const char *output; // name as a result of the graph, or NULL
    int32_t home; // of weights: the device that is requested for the nodes that read it; -1: any
    // Of a root, while its graph is recorded: what the last op that wrote it gave; NULL: nothing wrote it.
    const tn_tensor *latest;
};

struct tn_node {
    int32_t id;
    int32_t op;
    int32_t n_src, n_dst;
    tn_tensor *src[TN_MAX_SRC]; // NULL: absent optional source
    tn_tensor *dst[TN_MAX_DST];
    void *params;
    // Indices into the devices of the plan: the one that was requested while recording, and the one that runs
    // the node.
    int32_t wanted, device;
    int32_t precision; // TN_PRECISION_*: of the plan, for matmuls
    // What the join pass decided (tn_step_join): bits, and values for the staged rows; NULL: none. The norm
    // is a weight of the readers.
    uint32_t join_previous, join_next;
    tn_tensor *staged_x, *staged_y, *staged_norm;
    bool early, computed_weights;
    bool one_query, uneven, apart, mixed; // said by who recorded it (tn_step_join)
};

struct tn_graph {
    tn_context *ctx;
    tn_arena arena;
    tn_status status; // first failure of recording
    char error[256];  // its message
    tn_tensor **values;
    int32_t n_values, values_capacity;
    int32_t wanted; // device of the nodes that are recorded next
    tn_node **nodes; // in an order in which every source comes before its use
    int32_t n_nodes, nodes_capacity;
};

// Records one op. The results are in node->dst; params are copied.
TN_MUST_USE tn_status tn_graph_record(tn_graph *g, int32_t op, int32_t n_src, tn_tensor *const *src,
                                      const void *params, tn_node **out);
// Requests a device for the nodes that are recorded from now on: an index into the devices of the plan, 0 at
// first.
void tn_graph_want(tn_graph *g, int32_t device);
// Requests a device for all nodes recorded from now on that read the weight, whatever is requested for the
// others. NULL is fine.
void tn_graph_keep_weight(tn_tensor *weight, int32_t device);
TN_MUST_USE tn_status tn_graph_clone(const tn_graph *graph, tn_graph **out);
// The node as a backend sees it, data NULL.
void tn_node_step(const tn_node *node, tn_step *step);
bool tn_node_is_view(const tn_node *node);
// A value that no source and no op mentions: memory between two steps. NULL: no memory.
tn_tensor *tn_graph_add_staged(tn_graph *g, tn_node *maker, size_t size);
size_t tn_tensor_size(const tn_tensor *t); // bytes of the contiguous tensor
bool tn_tensor_external(const tn_tensor *root); // bound from outside: weight or state

// --- passes ----------------------------------------------------------------------------------------

// Why a pattern (of fusion, or of joining) fired or did not.
typedef struct tn_fusion_note {
    const char *pattern;
    const char *node; // name of the value where it was tried
    const char *reason; // why it was not used; NULL: it was
    struct tn_fusion_note *next;
} tn_fusion_note;

// Where the storage of a root value lies.
typedef struct tn_place {
    int32_t device;     // index
    int32_t first, last; // steps between which it lives, of arena values
    size_t offset, size;
    bool in_arena;
} tn_place;

typedef struct tn_pass_state {
    tn_context *ctx;
    tn_graph *graph; // the clone that the passes rewrite
    tn_device *const *devices;
    int32_t n_devices;
    bool fusion;
    int32_t fallback; // TN_FALLBACK_*
    tn_fusion_note *notes, **notes_end;
    int32_t n_fused, n_joined;
    tn_place *places; // per value id, from the memory pass
    size_t *arena_size, *arena_bound; // per device
    const size_t *arena_there; // of the first n_there devices: sizes that an arena need not fall below
    int32_t n_there;
} tn_pass_state;

TN_MUST_USE tn_status tn_pass_note(tn_pass_state *s, const char *pattern, const char *node,
                                   const char *reason);

#define TN_PASS(name, what) tn_status tn_pass_##name(tn_pass_state *s);
#include "graph/passes.def"

// Checks every rule of the graph: sources defined before use, shapes as the ops infer them, storage.
TN_MUST_USE tn_status tn_graph_verify(const tn_graph *graph, const char *after);

// --- plans -----------------------------------------------------------------------------------------

// A value that the caller binds, writes or reads.
typedef struct tn_plan_port {
    const char *name;
    int32_t value;    // id
    tn_view view;     // shape; offset into the root
    uint32_t devices; // bit per device of the plan whose steps read or write it
    size_t offset;    // of inputs: into a buffer of inputs_size bytes
} tn_plan_port;

typedef struct tn_plan_operand {
    int32_t root;  // value id of the storage
    size_t offset; // into it
} tn_plan_operand;

typedef struct tn_plan_step {
    tn_step step; // views without data
    tn_plan_operand src[TN_MAX_SRC], dst[TN_MAX_DST];
    tn_plan_operand staged_x, staged_y, staged_norm; // of step.join
    int32_t first_launch, n_launches;                // tn_plan_launch_name
    int32_t device;
    // TN_PRECISION_* to which the kernel of a matmul rounds its operands; AUTO: no matmul, or not known
    int32_t rounding;
    const char *kernel;
} tn_plan_step;

// An op as it was recorded, for pictures of what the passes made of it.
typedef struct tn_recorded {
    const tn_tensor *value; // its first result
    int32_t op;
    int32_t step; // that does its work; -1: none needs it
    int32_t n_src, src[TN_MAX_SRC]; // the ops whose results it reads, views left out; -1: from outside
} tn_recorded;

struct tn_plan {
    _Atomic int32_t refs;
    tn_context *ctx;
    tn_graph *graph; // after the passes: owns names and parameters
    tn_device **devices;
    int32_t n_devices;
    int32_t precision; // TN_PRECISION_*
    int32_t n_steps;
    tn_plan_step *steps;
    int32_t n_inputs, n_outputs, n_bound;
    tn_plan_port *inputs, *outputs, *bound; // bound: weights and states
    tn_place *places; // per value id
    size_t *arena_size, *arena_bound, *scratch_size; // per device
    size_t *weight_size, *state_size, *input_size;   // per device: of the tensors that its steps use
    size_t *derived_size; // per device: of weights that it keeps in another form, at most
    size_t inputs_size; // of the buffer that inputs lie in, the same on every device
    const char *recorded; // text of the graph before the passes
    tn_recorded *ops;     // the same as a list, without views
    int32_t n_ops;
    tn_fusion_note *notes;
    // Entry points of the steps whose backends list them; uploads and downloads are not among them.
    const char **launches;
    int32_t n_launches, launches_capacity;
    tn_plan_info info;
};

// The same as tn_plan_create, for a caller that has memory for the arenas of n_there devices already: an
// arena that fits into arena_there[d] bytes is not made smaller, which saves half of the time.
TN_MUST_USE tn_status tn_plan_create_within(const tn_graph *graph, const tn_plan_config *cfg,
                                            const size_t *arena_there, int32_t n_there, tn_plan **out);
// Whether a backend runs the step on this device; transfers are nobody's.
bool tn_plan_step_runs_on(const tn_plan_step *step, int32_t device);
// Entry point of launch k of a step of the plan; the kernel's name where its backend lists no launches.
const char *tn_plan_launch_name(const tn_plan *plan, const tn_plan_step *step, int32_t k);
// Whether a run leaves this result in host memory by itself, because the device writes there (core/backend.h,
// host_create).
bool tn_plan_fetches(const tn_plan *plan, int32_t output);
// Index of the device that gives such memory; -1: none.
int32_t tn_plan_host_device(const tn_plan *plan);
// Launches of a run besides those of its steps.
typedef struct tn_plan_copies {
    const char *kernel;      // NULL: the device has none
    bool uploads, downloads; // one launch each
} tn_plan_copies;
tn_plan_copies tn_plan_copies_get(const tn_plan *plan, int32_t device);

// What step i costs (ops/cost.h): fills all fields but struct_size; bytes are added to those of *out.
void tn_plan_cost(const tn_plan *plan, int32_t i, int64_t depth, tn_plan_step_info *out);

// Text form of a graph, for plans.
void tn_graph_print(const tn_graph *graph, tn_strbuf *out);

// --- running, for the layers above -----------------------------------------------------------------

typedef struct tn_runner_binding {
    const tn_buffer *buffer;
    size_t offset;
} tn_runner_binding;

// Called for each weight and state, once for each device that uses it: fills the binding with memory of that
// device, or fails.
typedef tn_status (*tn_bind_fn)(void *user, tn_device *device, const tn_plan_port *port,
                                tn_runner_binding *out);

typedef struct tn_runner_config {
    tn_bind_fn bind;
    void *user;
    const tn_buffer *arena;   // n_devices buffers of at least arena_size, or NULL: the runner makes its own
    const tn_buffer *scratch; // the same for scratch_size
    // The same for inputs_size, or NULL. Several runners may share them if every input is written before a
    // run; devices with host memory need none.
    const tn_buffer *inputs;
} tn_runner_config;

TN_MUST_USE tn_status tn_runner_create_with(tn_plan *plan, const tn_runner_config *cfg, tn_runner **out);
int32_t tn_plan_find_input(const tn_plan *plan, const char *name);  // -1 if absent
int32_t tn_plan_find_output(const tn_plan *plan, const char *name); // -1 if absent
TN_MUST_USE tn_status tn_runner_write_at(tn_runner *r, int32_t input, const void *data, size_t size);
TN_MUST_USE tn_status tn_runner_read_at(tn_runner *r, int32_t output, size_t offset, void *data, size_t size);
// Where the bytes of a result are after each run, for another runner on the same device.
tn_runner_binding tn_runner_output_place(const tn_runner *r, int32_t output);
// The result's bytes in host memory, valid until the next run; NULL if its device has memory of its own.
const void *tn_runner_output_data(const tn_runner *r, int32_t output);
// Bytes in host memory that a runner of the plan allocates besides arena, scratch and the objects of the
// backend.
size_t tn_runner_size(const tn_plan *plan);
// Ids, slots, lengths and block tables of a plan whose inputs and weights come from an application: what was
// bound is checked at once, inputs by tn_run_checks_run. *out stays unchanged if no input has to be checked.
typedef struct tn_run_checks tn_run_checks;
TN_MUST_USE tn_status tn_run_checks_create(const tn_plan *plan, const char *host_inputs,
                                           const tn_binding *bindings, int32_t n, tn_run_checks **out);
TN_MUST_USE tn_status tn_run_checks_run(const tn_run_checks *checks);
void tn_run_checks_destroy(tn_run_checks **checks);
TN_MUST_USE tn_status tn_runner_submit(tn_runner *r, const tn_submit_options *options);
TN_MUST_USE tn_status tn_runner_wait(tn_runner *r);

#endif
