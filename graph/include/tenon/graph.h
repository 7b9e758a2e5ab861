// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Any network as a graph: record ops, compile them once into a plan, run the plan many times.
//
//     tn_graph *g;
//     tn_graph_create(ctx, &g);
//     int64_t sx[] = {4, 8}, sw[] = {16, 8};
//     tn_tensor *x = tn_graph_input(g, "x", TN_TYPE_F32, 2, sx);
//     tn_tensor *w = tn_graph_weight(g, "w", TN_TYPE_F32, 2, sw);
//     tn_tensor *y = tn_op_unary(g, tn_op_matmul(g, x, w), &(tn_unary_params){.kind = TN_UNARY_RELU});
//     tn_graph_output(g, "y", y);
//     tn_plan *plan;
//     if (tn_plan_create(g, NULL, &plan) != TN_OK) ...     // all recording errors appear here
//     tn_graph_destroy(&g);
//     tn_binding weights[] = {{"w", w_data, sizeof w_data}};
//     tn_runner *run;
//     tn_runner_create(plan, weights, 1, &run);
//     tn_runner_write(run, "x", x_data, sizeof x_data);
//     tn_runner_run(run);
//     tn_runner_read(run, "y", y_data, sizeof y_data);
//
// Shapes are outermost first; the last dimension is contiguous. Matmul is y[m,n] = x[m,k] w[n,k]^T.
// A graph and a runner belong to one thread at a time; a plan is immutable and shared.
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include <tenon/context.h>
#include <tenon/ops.h>
#include <tenon/precision.h>

TN_EXTERN_C_BEGIN

typedef struct tn_graph tn_graph;
typedef struct tn_tensor tn_tensor; // a value of a graph; dies with it
typedef struct tn_plan tn_plan;
typedef struct tn_runner tn_runner;

// --- recording -------------------------------------------------------------------------------------
// Recording functions return NULL after a failure, and NULL for a NULL operand; the first failure is kept
// and returned by tn_graph_status and tn_plan_create. A chain of calls needs one check at its end.

TN_API TN_MUST_USE tn_status tn_graph_create(tn_context *ctx, tn_graph **out);
TN_API void tn_graph_destroy(tn_graph **graph);
TN_API tn_status tn_graph_status(const tn_graph *graph);

// Changes with every run; written by tn_runner_write. Names are unique in a graph and copied.
TN_API tn_tensor *tn_graph_input(tn_graph *g, const char *name, tn_dtype dtype, int32_t n_dims,
                                 const int64_t *shape);
// Constant; bound once, when a runner is created.
TN_API tn_tensor *tn_graph_weight(tn_graph *g, const char *name, tn_dtype dtype, int32_t n_dims,
                                  const int64_t *shape);
// State that ops write in place (cache_write, short_conv, delta_rule) and that stays from run to run; bound
// like a weight. What such an op gives is the next version of the state, which ops that are recorded after it
// have to read; values of an earlier version are copied before they are overwritten.
TN_API tn_tensor *tn_graph_state(tn_graph *g, const char *name, tn_dtype dtype, int32_t n_dims,
                                 const int64_t *shape);
// Marks a value as a result; it must be contiguous F32 or I32, and computed: no input, weight or state, and
// no view of one, which tn_op_copy turns into such a value.
TN_API void tn_graph_output(tn_graph *g, const char *name, tn_tensor *value);
// Gives a result of an op a name for plans, messages and profiles; inputs, weights and states keep theirs.
// Returns the value.
TN_API tn_tensor *tn_graph_name(tn_graph *g, tn_tensor *value, const char *name);

TN_API tn_dtype tn_tensor_dtype(const tn_tensor *t);
TN_API int32_t tn_tensor_n_dims(const tn_tensor *t);
TN_API int64_t tn_tensor_dim(const tn_tensor *t, int32_t i); // outermost is 0; 1 if out of range

// One function per op; parameters are copied. What each op computes is said beside its parameters in
// params.h; its definition is the reference in the sources, ops/<op>.c.
TN_API tn_tensor *tn_op_reshape(tn_graph *g, tn_tensor *x, int32_t n_dims, const int64_t *shape);
TN_API tn_tensor *tn_op_permute(tn_graph *g, tn_tensor *x, const int32_t *axes);
TN_API tn_tensor *tn_op_slice(tn_graph *g, tn_tensor *x, int32_t axis, int64_t start, int64_t length);
TN_API tn_tensor *tn_op_copy(tn_graph *g, tn_tensor *x, tn_dtype dtype);
TN_API tn_tensor *tn_op_concat(tn_graph *g, tn_tensor *a, tn_tensor *b, int32_t axis);
TN_API tn_tensor *tn_op_unary(tn_graph *g, tn_tensor *x, const tn_unary_params *p);
TN_API tn_tensor *tn_op_binary(tn_graph *g, int32_t kind, tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_op_add(tn_graph *g, tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_op_mul(tn_graph *g, tn_tensor *a, tn_tensor *b);
TN_API tn_tensor *tn_op_scale(tn_graph *g, tn_tensor *x, float factor);
TN_API tn_tensor *tn_op_reduce(tn_graph *g, tn_tensor *x, int32_t kind);
TN_API tn_tensor *tn_op_softmax(tn_graph *g, tn_tensor *x, tn_tensor *mask_or_null, float scale);
TN_API tn_tensor *tn_op_argmax(tn_graph *g, tn_tensor *x);
TN_API tn_tensor *tn_op_argmax_logprob(tn_graph *g, tn_tensor *x, tn_tensor **logprob);
TN_API tn_tensor *tn_op_top_k(tn_graph *g, tn_tensor *x, tn_tensor *bias_or_null, const tn_top_k_params *p);
TN_API tn_tensor *tn_op_get_rows(tn_graph *g, tn_tensor *table, tn_tensor *ids, float scale);
TN_API tn_tensor *tn_op_rms_norm(tn_graph *g, tn_tensor *x, tn_tensor *w_or_null, float eps);
TN_API tn_tensor *tn_op_layer_norm(tn_graph *g, tn_tensor *x, tn_tensor *w_or_null, tn_tensor *b_or_null,
                                   float eps);
TN_API tn_tensor *tn_op_glu(tn_graph *g, tn_tensor *gate, tn_tensor *up, const tn_glu_params *p);
TN_API tn_tensor *tn_op_rope(tn_graph *g, tn_tensor *x, tn_tensor *pos, tn_tensor *factors_or_null,
                             const tn_rope_params *p);
TN_API tn_tensor *tn_op_cache_write(tn_graph *g, tn_tensor *cache, tn_tensor *x, tn_tensor *slots);

// Operands of ops that keep a state per sequence: sequence s has the tokens q_start[s] .. q_start[s+1]-1,
// reads slot slots[s][0] of the state (negative: starts anew) and writes slots[s][1]. The result is the value
// for each token; *next (may be NULL): the next version of the state.
typedef struct tn_short_conv_args {
    tn_tensor *state; // F32 [slots, C - 1, N]: the last rows of x
    tn_tensor *x;     // [tokens, N]
    tn_tensor *w;     // F32 [N, C]
    tn_tensor *q_start; // I32 [sequences + 1]
    tn_tensor *slots;   // I32 [sequences, 2]
} tn_short_conv_args;
// Causal convolution of each channel by itself.
TN_API tn_tensor *tn_op_short_conv(tn_graph *g, const tn_short_conv_args *a, tn_tensor **next);
typedef struct tn_delta_rule_args {
    tn_tensor *state;    // F32 [slots, heads, Sk, Sv]
    tn_tensor *q, *k;    // [tokens, key heads, Sk]
    tn_tensor *v;        // [tokens, heads, Sv]
    tn_tensor *g, *beta; // [tokens, heads]: logarithm of the decay, strength of the update
    tn_tensor *q_start;  // I32 [sequences + 1]
    tn_tensor *slots;    // I32 [sequences, 2]
} tn_delta_rule_args;
TN_API tn_tensor *tn_op_delta_rule(tn_graph *g, const tn_delta_rule_args *a, const tn_delta_rule_params *p,
                                   tn_tensor **next);

// What is known of the queries of an attention when it is recorded.
enum {
    TN_QUERIES_ANY,    // nothing
    TN_QUERIES_ONE,    // a promise: each sequence has exactly one, so that q_start is 0, 1, 2, ...
    TN_QUERIES_UNEVEN, // as ONE, and some sequences are so much longer than the mean that dividing them pays
    TN_QUERIES_SHORT,  // no promise: most have one, the others so short that each query reads keys by itself
    TN_QUERIES_MIXED,  // no promise: most have one, the others are longer pieces
};
// Operands of attention over a paged cache.
typedef struct tn_attention_args {
    tn_tensor *q;           // [tokens, heads, D]
    tn_tensor *k, *v;       // [blocks, kv_heads, block tokens, D or Dv]
    tn_tensor *q_start;     // I32 [sequences + 1]: first token of each sequence in q
    tn_tensor *kv_len;      // I32 [sequences]: positions in the cache, those of q included
    tn_tensor *block_table; // I32 [sequences, blocks per sequence]
    tn_tensor *sinks;       // [heads] or NULL
    // TN_QUERIES_*. Apart from the promise of ONE and UNEVEN, results are right whatever the lengths are
    int32_t one_query;
} tn_attention_args;
TN_API tn_tensor *tn_op_attention(tn_graph *g, const tn_attention_args *args, const tn_attention_params *p);
TN_API tn_tensor *tn_op_matmul(tn_graph *g, tn_tensor *x, tn_tensor *w);
TN_API tn_tensor *tn_op_matmul_id(tn_graph *g, tn_tensor *x, tn_tensor *w, tn_tensor *ids);
TN_API tn_tensor *tn_op_moe_weights(tn_graph *g, tn_tensor *x, tn_tensor *ids,
                                    const tn_moe_weights_params *p);
TN_API tn_tensor *tn_op_moe_sum(tn_graph *g, tn_tensor *x, tn_tensor *weights);
// Any op by its number (TN_OP_*), for ops without a function of their own: n_src sources in the order of the
// op, NULL where an optional one is absent, and its parameters (tn_<op>_params, NULL if it has none). Returns
// the first result; results (may be NULL) receives all of them, at most 3, with NULL for those that there are
// not.
TN_API tn_tensor *tn_graph_op(tn_graph *g, int32_t op, int32_t n_src, tn_tensor *const *src,
                              const void *params, tn_tensor **results);

// --- plans -----------------------------------------------------------------------------------------

// What happens to ops for which the requested device has no kernel.
enum {
    TN_FALLBACK_EVENT, // they run on another device; one TN_EVENT_DEVICE_FALLBACK for each kind of op
    TN_FALLBACK_ERROR, // TN_ERR_UNSUPPORTED; the message lists all of them
    TN_FALLBACK_QUIET, // they run on another device, without an event
};

typedef struct tn_plan_config {
    size_t struct_size;
    tn_device *const *devices; // in order of preference, at most 31; NULL (default): the CPU
    int32_t n_devices;
    int32_t fusion;   // default 1; 0 keeps every op as recorded
    // TN_FALLBACK_*; default TN_FALLBACK_EVENT. A strict context makes every fallback an error
    int32_t fallback;
    int32_t precision; // TN_PRECISION_* (precision.h) of all matmuls; default TN_PRECISION_auto
} tn_plan_config;
TN_API void tn_plan_config_init(tn_plan_config *cfg, size_t struct_size);
static inline void tn_plan_config_default(tn_plan_config *cfg)
{
    tn_plan_config_init(cfg, sizeof *cfg);
}

// Compiles the graph, which stays as it is. cfg may be NULL. The plan starts with one reference.
// Statuses: the first recording failure; TN_ERR_UNSUPPORTED: ops that no device accepts, fallbacks that the
// configuration forbids, or a precision for which a device has no matmul kernels; TN_ERR_ARG: no such
// precision; TN_ERR_MEMORY.
TN_API TN_MUST_USE tn_status tn_plan_create(const tn_graph *graph, const tn_plan_config *cfg, tn_plan **out);
TN_API tn_plan *tn_plan_ref(tn_plan *plan);
TN_API void tn_plan_unref(tn_plan **plan);

typedef struct tn_plan_info {
    size_t struct_size;      // set by the caller
    int32_t n_recorded;      // ops as recorded, views not counted
    int32_t n_steps;         // steps of the plan
    int32_t n_fused;         // patterns of fusion that fired
    int32_t n_joined;        // pairs of steps that share a launch or staged activations
    int32_t n_launches; // kernels that one run launches on all devices, copies of inputs and results included
    int32_t reserved;
    uint64_t arena_size;     // bytes of activations
    uint64_t arena_bound;    // lower bound: largest sum of live tensors at one step
    uint64_t scratch_size;   // bytes of kernel scratch
    uint64_t input_size;     // bytes of inputs
} tn_plan_info;
TN_API tn_status tn_plan_info_get(const tn_plan *plan, tn_plan_info *info);

// Step i of a plan and what it costs. Bytes are those that have to be read and written at least once,
// whatever kernel runs; weights and caches (states) apart from what steps give to each other. Operations are
// multiplications and additions.
typedef struct tn_plan_step_info {
    size_t struct_size; // set by the caller
    const char *op, *family, *kernel, *name, *device; // valid as long as the plan
    int32_t n_launches;
    int32_t done_by_next; // not 0: the launch of the next step does this one's work as well
    uint64_t weights_read, cache_read, cache_written, read, written;
    double ops;         // in f32
    double product_ops; // of matrix products and attention, in `precision`
    int32_t precision;  // TN_PRECISION_*, to which operands of the product are rounded
    int32_t reserved;
} tn_plan_step_info;
// `depth`: how many keys each sequence has in the cache before the tokens of this pass, which decides what
// attention costs; 0 if there is no cache. Returns 1, 0 past the end, or a negative status.
TN_API int32_t tn_plan_step_get(const tn_plan *plan, int32_t i, int64_t depth, tn_plan_step_info *out);
// Its operands, as "F32 [1, 4096], Q4_K [4096, 4096] -> F32 [1, 4096]", cut at size - 1 bytes and terminated.
// Returns the length of the whole text; 0 past the end.
TN_API size_t tn_plan_step_shapes(const tn_plan *plan, int32_t i, char *buf, size_t size);

enum { TN_PLAN_TEXT, TN_PLAN_JSON, TN_PLAN_DOT, TN_PLAN_SVG };
// The plan as text for people or programs; *out is freed by tn_text_free.
TN_API TN_MUST_USE tn_status tn_plan_dump(const tn_plan *plan, int32_t format, char **out);
TN_API void tn_text_free(tn_context *ctx, char *text);

// --- running ---------------------------------------------------------------------------------------
// Integers that say where to read or write are checked on the host before anything is submitted: weights by
// tn_runner_create, inputs by the next tn_runner_run after a write. TN_ERR_ARG names the element and its
// bounds; nothing has run then, and the runner works again after valid integers were written. A negative slot
// is none: nothing is stored, or a sequence starts anew. Of a block table only the blocks with keys that a
// query sees are checked. ids and slots that the graph itself computes may be anything: outside of the table
// zeros are read, and nothing is written. q_start, kv_len and block_table must not be computed, nor be states
// (TN_ERR_UNSUPPORTED of tn_runner_create).

typedef struct tn_binding {
    const char *name;
    const void *data; // weights: read only, must outlive the runner; states: read and written
    size_t size;      // bytes, at least those of the tensor
} tn_binding;

// Prepares the plan with its weights and states in host memory. Inputs start as zeros.
TN_API TN_MUST_USE tn_status tn_runner_create(tn_plan *plan, const tn_binding *bindings, int32_t n,
                                              tn_runner **out);
TN_API void tn_runner_destroy(tn_runner **runner);
// Copies an input in or a result out; size must be that of the tensor.
TN_API TN_MUST_USE tn_status tn_runner_write(tn_runner *runner, const char *input, const void *data,
                                             size_t size);
TN_API TN_MUST_USE tn_status tn_runner_read(tn_runner *runner, const char *output, void *data, size_t size);
// Runs all steps and waits. Allocates nothing.
TN_API TN_MUST_USE tn_status tn_runner_run(tn_runner *runner);
// Whether the following runs are timed step by step. Devices with memory of their own then run their steps
// one by one instead of as one executable. Sets the times to 0.
TN_API TN_MUST_USE tn_status tn_runner_profile(tn_runner *runner, int32_t on);
// Nanoseconds of step i, summed over the runs since tn_runner_profile; 0 past the end.
TN_API uint64_t tn_runner_step_ns(const tn_runner *runner, int32_t i);

TN_EXTERN_C_END
#endif
