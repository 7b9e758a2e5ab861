// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The public declarations of the ABI TENON_1 as they were when it began, made by freeze.sh. Never edited.
// clang-format off
#include <stddef.h>
#include <stdint.h>
 typedef int32_t tn_status; enum { TN_OK = (0), TN_ERR_ARG = (-1), TN_ERR_MEMORY = (-2), TN_ERR_IO =
(-3), TN_ERR_FORMAT = (-4), TN_ERR_MODEL = (-5), TN_ERR_SHAPE = (-6), TN_ERR_TYPE = (-7), TN_ERR_DEVICE
= (-8), TN_ERR_UNSUPPORTED = (-9), TN_ERR_CONTEXT_FULL = (-10), TN_ERR_CANCELLED = (-11), TN_ERR_STATE =
(-12), TN_ERR_INTERNAL = (-13), TN_ERR_BUSY = (-14), }; typedef int32_t tn_dtype; enum { TN_TYPE_F32,
TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_F64, TN_TYPE_I8, TN_TYPE_I16, TN_TYPE_I32, TN_TYPE_I64, TN_TYPE_Q4_0,
TN_TYPE_Q4_1, TN_TYPE_Q5_0, TN_TYPE_Q5_1, TN_TYPE_Q8_0, TN_TYPE_Q8_1, TN_TYPE_Q2_K, TN_TYPE_Q3_K,
TN_TYPE_Q4_K, TN_TYPE_Q5_K, TN_TYPE_Q6_K, TN_TYPE_Q8_K, TN_TYPE_IQ4_NL, TN_TYPE_IQ4_XS, TN_TYPE_MXFP4,
TN_TYPE_IQ2_XXS, TN_TYPE_IQ2_XS, TN_TYPE_IQ2_S, TN_TYPE_IQ3_XXS, TN_TYPE_IQ3_S, TN_TYPE_IQ1_S,
TN_TYPE_IQ1_M, TN_TYPE_TQ1_0, TN_TYPE_TQ2_0, TN_TYPE_NVFP4, TN_TYPE_Q1_0, TN_TYPE_Q2_0, TN_TYPE_COUNT };
const char *tn_status_text(tn_status status); const char *tn_dtype_name(tn_dtype type); int64_t
tn_dtype_block_elems(tn_dtype type); size_t tn_dtype_block_size(tn_dtype type); tn_dtype
tn_dtype_by_name(const char *name); tn_dtype tn_dtype_by_file_id(int64_t file_id); int32_t
tn_dtype_file_id(tn_dtype type); size_t tn_dtype_row_size(tn_dtype type, int64_t n); typedef struct
tn_context tn_context; typedef struct tn_device tn_device; typedef struct tn_allocator { void *user;
void *(*alloc)(void *user, size_t size, size_t align); void (*free)(void *user, void *ptr); }
tn_allocator; typedef struct tn_executor { void *user; void (*run)(void *user, int32_t n_tasks, void
(*task)(void *arg, int32_t i), void *arg); } tn_executor; enum { TN_LOG_ERROR, TN_LOG_WARN, TN_LOG_INFO,
TN_LOG_DEBUG }; typedef void (*tn_log_fn)(void *user, int32_t level, const char *text); enum {
TN_EVENT_DEVICE_FALLBACK = 1, TN_EVENT_MODEL_WARNING, TN_EVENT_CONTEXT_TRUNCATED,
TN_EVENT_LAYERS_ON_HOST, TN_EVENT_KERNEL_REPLACED, TN_EVENT_COMPILING, TN_EVENT_COMPILED,
TN_EVENT_WEIGHTS_CONVERTED, }; typedef void (*tn_event_fn)(void *user, int32_t code, const char *text);
typedef struct tn_context_config { size_t struct_size; tn_allocator allocator; tn_executor executor;
tn_log_fn log; tn_event_fn event; void *user; int32_t log_level; int32_t n_threads; int32_t strict;
const char *isa; size_t memory_limit; const char *cache_dir; int32_t tune; const char *backend; int32_t
deterministic; int32_t one_backend; } tn_context_config; void tn_context_config_init(tn_context_config
*cfg, size_t struct_size); static inline void tn_context_config_default(tn_context_config *cfg) {
tn_context_config_init(cfg, sizeof *cfg); } tn_status tn_context_create(const tn_context_config *cfg,
tn_context **out); void tn_context_destroy(tn_context **ctx); size_t tn_last_error(char *buf, size_t
size); size_t tn_context_error(tn_context *ctx, char *buf, size_t size); size_t tn_context_memory(const
tn_context *ctx); size_t tn_context_memory_peak(const tn_context *ctx); uint64_t
tn_context_n_allocs(const tn_context *ctx); int32_t tn_context_n_threads(const tn_context *ctx); int32_t
tn_context_n_devices(const tn_context *ctx); tn_device *tn_context_device_get(const tn_context *ctx,
int32_t i); tn_device *tn_context_device_by_name(const tn_context *ctx, const char *name); typedef
struct tn_device_info { size_t struct_size; const char *name; const char *description; const char
*backend; uint64_t memory_total; uint64_t memory_free; } tn_device_info; tn_status
tn_device_info_get(const tn_device *device, tn_device_info *info); size_t
tn_context_absent_backends(const tn_context *ctx, char *buf, size_t size); enum { TN_PRECISION_auto,
TN_PRECISION_f32, TN_PRECISION_tf32, TN_PRECISION_bf16, TN_PRECISION_f16, TN_PRECISION_fp8,
TN_PRECISION_int8, TN_PRECISION_COUNT }; const char *tn_precision_name(int32_t precision); int32_t
tn_precision_by_name(const char *name); double tn_precision_nmse(int32_t precision); const char
*tn_precision_text(int32_t precision); int32_t tn_device_has_precision(const tn_device *device, int32_t
precision); const char *tn_version(void); typedef struct tn_reshape_params { int32_t n_dims; int64_t
shape[4]; } tn_reshape_params; typedef struct tn_permute_params { int32_t axes[4]; } tn_permute_params;
typedef struct tn_slice_params { int32_t axis; int64_t start, length; } tn_slice_params; typedef struct
tn_copy_params { tn_dtype dtype; } tn_copy_params; typedef struct tn_concat_params { int32_t axis; }
tn_concat_params; enum { TN_UNARY_AFFINE, TN_UNARY_SILU, TN_UNARY_GELU, TN_UNARY_GELU_ERF,
TN_UNARY_RELU, TN_UNARY_TANH, TN_UNARY_SIGMOID, TN_UNARY_EXP, TN_UNARY_LOG, TN_UNARY_SQRT,
TN_UNARY_SQUARE, TN_UNARY_ABS, TN_UNARY_SOFTCAP, TN_UNARY_SOFTPLUS, TN_UNARY_CLAMP, TN_UNARY_COUNT,
TN_UNARY_NONE = -1 }; typedef struct tn_unary_params { int32_t kind; float a, b; } tn_unary_params; enum
{ TN_BINARY_ADD, TN_BINARY_SUB, TN_BINARY_MUL, TN_BINARY_DIV, TN_BINARY_MAX, TN_BINARY_MIN,
TN_BINARY_COUNT }; typedef struct tn_binary_params { int32_t kind; } tn_binary_params; enum {
TN_REDUCE_SUM, TN_REDUCE_MEAN, TN_REDUCE_MAX, TN_REDUCE_COUNT }; typedef struct tn_reduce_params {
int32_t kind; } tn_reduce_params; typedef struct tn_softmax_params { float scale; } tn_softmax_params;
typedef struct tn_top_k_params { int32_t k; int32_t n_groups; int32_t n_groups_used; } tn_top_k_params;
typedef struct tn_get_rows_params { float scale; } tn_get_rows_params; typedef struct tn_rms_norm_params
{ float eps; } tn_rms_norm_params; typedef struct tn_layer_norm_params { float eps; }
tn_layer_norm_params; typedef struct tn_glu_params { int32_t act; float limit; float alpha; }
tn_glu_params; enum { TN_ROPE_NORM, TN_ROPE_NEOX }; typedef struct tn_rope_params { int32_t mode;
int32_t n_rot; float base; float freq_scale; float attn_factor; float yarn_ext; float yarn_low; float
yarn_high; } tn_rope_params; typedef struct tn_attention_params { float scale; int32_t causal; int32_t
window; int32_t chunk; float softcap; float max_bias; } tn_attention_params; enum { TN_GATING_SOFTMAX =
1, TN_GATING_SIGMOID = 2, TN_GATING_SOFTMAX_SELECTED = 3, TN_GATING_NONE = 0 }; typedef struct
tn_moe_weights_params { int32_t gating; int32_t normalise; float scale; } tn_moe_weights_params; typedef
struct tn_linear_params { int32_t act; int32_t has_bias; int32_t has_residual; int32_t has_norm; float
eps; } tn_linear_params; typedef struct tn_matmul_multi_params { int32_t n_weights; int32_t has_bias[3];
int32_t has_norm; float eps; } tn_matmul_multi_params; typedef struct tn_moe_route_params {
tn_top_k_params top_k; tn_moe_weights_params weights; int32_t choice; int32_t has_choice_bias; int32_t
has_product; int32_t has_bias; int32_t has_norm; float eps; } tn_moe_route_params; typedef struct
tn_moe_combine_params { int32_t n_added; int32_t has_factor; } tn_moe_combine_params; typedef struct
tn_matmul_glu_params { tn_glu_params glu; int32_t has_norm; float eps; } tn_matmul_glu_params; typedef
struct tn_matmul_id_glu_params { tn_glu_params glu; } tn_matmul_id_glu_params; typedef struct
tn_add_rms_norm_params { float eps; } tn_add_rms_norm_params; typedef struct tn_rope_cache_params {
int32_t has_norm[2]; float eps; tn_rope_params rope; } tn_rope_cache_params; typedef struct
tn_delta_rule_params { float scale; int32_t normalise; float eps; int32_t grouped; }
tn_delta_rule_params; typedef struct tn_norm_rope_params { float eps; tn_rope_params rope; }
tn_norm_rope_params; enum { TN_OP_reshape, TN_OP_permute, TN_OP_slice, TN_OP_copy, TN_OP_transfer,
TN_OP_concat, TN_OP_unary, TN_OP_binary, TN_OP_reduce, TN_OP_softmax, TN_OP_argmax, TN_OP_top_k,
TN_OP_get_rows, TN_OP_rms_norm, TN_OP_layer_norm, TN_OP_glu, TN_OP_rope, TN_OP_cache_write,
TN_OP_attention, TN_OP_matmul, TN_OP_matmul_id, TN_OP_moe_weights, TN_OP_moe_sum, TN_OP_linear,
TN_OP_matmul_multi, TN_OP_matmul_glu, TN_OP_matmul_id_glu, TN_OP_add_rms_norm, TN_OP_norm_rope,
TN_OP_argmax_logprob, TN_OP_rope_cache, TN_OP_short_conv, TN_OP_delta_rule, TN_OP_moe_route,
TN_OP_moe_combine, TN_OP_COUNT }; const char *tn_op_name(int32_t op); typedef struct tn_graph tn_graph;
typedef struct tn_tensor tn_tensor; typedef struct tn_plan tn_plan; typedef struct tn_runner tn_runner;
tn_status tn_graph_create(tn_context *ctx, tn_graph **out); void tn_graph_destroy(tn_graph **graph);
tn_status tn_graph_status(const tn_graph *graph); tn_tensor *tn_graph_input(tn_graph *g, const char
*name, tn_dtype dtype, int32_t n_dims, const int64_t *shape); tn_tensor *tn_graph_weight(tn_graph *g,
const char *name, tn_dtype dtype, int32_t n_dims, const int64_t *shape); tn_tensor
*tn_graph_state(tn_graph *g, const char *name, tn_dtype dtype, int32_t n_dims, const int64_t *shape);
void tn_graph_output(tn_graph *g, const char *name, tn_tensor *value); tn_tensor *tn_graph_name(tn_graph
*g, tn_tensor *value, const char *name); tn_dtype tn_tensor_dtype(const tn_tensor *t); int32_t
tn_tensor_n_dims(const tn_tensor *t); int64_t tn_tensor_dim(const tn_tensor *t, int32_t i); tn_tensor
*tn_op_reshape(tn_graph *g, tn_tensor *x, int32_t n_dims, const int64_t *shape); tn_tensor
*tn_op_permute(tn_graph *g, tn_tensor *x, const int32_t *axes); tn_tensor *tn_op_slice(tn_graph *g,
tn_tensor *x, int32_t axis, int64_t start, int64_t length); tn_tensor *tn_op_copy(tn_graph *g, tn_tensor
*x, tn_dtype dtype); tn_tensor *tn_op_concat(tn_graph *g, tn_tensor *a, tn_tensor *b, int32_t axis);
tn_tensor *tn_op_unary(tn_graph *g, tn_tensor *x, const tn_unary_params *p); tn_tensor
*tn_op_binary(tn_graph *g, int32_t kind, tn_tensor *a, tn_tensor *b); tn_tensor *tn_op_add(tn_graph *g,
tn_tensor *a, tn_tensor *b); tn_tensor *tn_op_mul(tn_graph *g, tn_tensor *a, tn_tensor *b); tn_tensor
*tn_op_scale(tn_graph *g, tn_tensor *x, float factor); tn_tensor *tn_op_reduce(tn_graph *g, tn_tensor
*x, int32_t kind); tn_tensor *tn_op_softmax(tn_graph *g, tn_tensor *x, tn_tensor *mask_or_null, float
scale); tn_tensor *tn_op_argmax(tn_graph *g, tn_tensor *x); tn_tensor *tn_op_argmax_logprob(tn_graph *g,
tn_tensor *x, tn_tensor **logprob); tn_tensor *tn_op_top_k(tn_graph *g, tn_tensor *x, tn_tensor
*bias_or_null, const tn_top_k_params *p); tn_tensor *tn_op_get_rows(tn_graph *g, tn_tensor *table,
tn_tensor *ids, float scale); tn_tensor *tn_op_rms_norm(tn_graph *g, tn_tensor *x, tn_tensor *w_or_null,
float eps); tn_tensor *tn_op_layer_norm(tn_graph *g, tn_tensor *x, tn_tensor *w_or_null, tn_tensor
*b_or_null, float eps); tn_tensor *tn_op_glu(tn_graph *g, tn_tensor *gate, tn_tensor *up, const
tn_glu_params *p); tn_tensor *tn_op_rope(tn_graph *g, tn_tensor *x, tn_tensor *pos, tn_tensor
*factors_or_null, const tn_rope_params *p); tn_tensor *tn_op_cache_write(tn_graph *g, tn_tensor *cache,
tn_tensor *x, tn_tensor *slots); typedef struct tn_short_conv_args { tn_tensor *state; tn_tensor *x;
tn_tensor *w; tn_tensor *q_start; tn_tensor *slots; } tn_short_conv_args; tn_tensor
*tn_op_short_conv(tn_graph *g, const tn_short_conv_args *a, tn_tensor **next); typedef struct
tn_delta_rule_args { tn_tensor *state; tn_tensor *q, *k; tn_tensor *v; tn_tensor *g, *beta; tn_tensor
*q_start; tn_tensor *slots; } tn_delta_rule_args; tn_tensor *tn_op_delta_rule(tn_graph *g, const
tn_delta_rule_args *a, const tn_delta_rule_params *p, tn_tensor **next); typedef struct
tn_attention_args { tn_tensor *q; tn_tensor *k, *v; tn_tensor *q_start; tn_tensor *kv_len; tn_tensor
*block_table; tn_tensor *sinks; int32_t one_query; } tn_attention_args; tn_tensor
*tn_op_attention(tn_graph *g, const tn_attention_args *args, const tn_attention_params *p); tn_tensor
*tn_op_matmul(tn_graph *g, tn_tensor *x, tn_tensor *w); tn_tensor *tn_op_matmul_id(tn_graph *g,
tn_tensor *x, tn_tensor *w, tn_tensor *ids); tn_tensor *tn_op_moe_weights(tn_graph *g, tn_tensor *x,
tn_tensor *ids, const tn_moe_weights_params *p); tn_tensor *tn_op_moe_sum(tn_graph *g, tn_tensor *x,
tn_tensor *weights); tn_tensor *tn_graph_op(tn_graph *g, int32_t op, int32_t n_src, tn_tensor *const
*src, const void *params, tn_tensor **results); enum { TN_FALLBACK_EVENT, TN_FALLBACK_ERROR,
TN_FALLBACK_QUIET, }; typedef struct tn_plan_config { size_t struct_size; tn_device *const *devices;
int32_t n_devices; int32_t fusion; int32_t fallback; int32_t precision; } tn_plan_config; void
tn_plan_config_init(tn_plan_config *cfg, size_t struct_size); static inline void
tn_plan_config_default(tn_plan_config *cfg) { tn_plan_config_init(cfg, sizeof *cfg); } tn_status
tn_plan_create(const tn_graph *graph, const tn_plan_config *cfg, tn_plan **out); tn_plan
*tn_plan_ref(tn_plan *plan); void tn_plan_unref(tn_plan **plan); typedef struct tn_plan_info { size_t
struct_size; int32_t n_recorded; int32_t n_steps; int32_t n_fused; int32_t n_joined; int32_t n_launches;
int32_t reserved; uint64_t arena_size; uint64_t arena_bound; uint64_t scratch_size; uint64_t input_size;
} tn_plan_info; tn_status tn_plan_info_get(const tn_plan *plan, tn_plan_info *info); enum {
TN_PLAN_TEXT, TN_PLAN_JSON, TN_PLAN_DOT, TN_PLAN_SVG }; tn_status tn_plan_dump(const tn_plan *plan,
int32_t format, char **out); void tn_text_free(tn_context *ctx, char *text); typedef struct tn_binding {
const char *name; const void *data; size_t size; } tn_binding; tn_status tn_runner_create(tn_plan *plan,
const tn_binding *bindings, int32_t n, tn_runner **out); void tn_runner_destroy(tn_runner **runner);
tn_status tn_runner_write(tn_runner *runner, const char *input, const void *data, size_t size);
tn_status tn_runner_read(tn_runner *runner, const char *output, void *data, size_t size); tn_status
tn_runner_run(tn_runner *runner); typedef struct tn_model tn_model; typedef int32_t
(*tn_progress_fn)(void *user, uint64_t bytes_done, uint64_t bytes_total); typedef struct tn_model_config
{ size_t struct_size; tn_device *device; const char *pre; int32_t metadata_only; int32_t tokenizer_only;
int32_t check_tensors; tn_progress_fn progress; void *progress_user; int32_t device_layers; int32_t
no_fallback; uint64_t reserve_size; const struct tn_session_config *session; } tn_model_config; void
tn_model_config_init(tn_model_config *cfg, size_t struct_size); static inline void
tn_model_config_default(tn_model_config *cfg) { tn_model_config_init(cfg, sizeof *cfg); } tn_status
tn_model_open(tn_context *ctx, const char *path, const tn_model_config *cfg, tn_model **out); tn_model
*tn_model_ref(tn_model *model); void tn_model_unref(tn_model **model); typedef struct tn_model_info {
size_t struct_size; const char *arch; const char *name; const char *device; int32_t n_layers, n_embd,
n_vocab, n_ctx_train, n_heads, n_kv_heads, head_dim, n_ff; int32_t n_experts, n_experts_used; int32_t
has_tokenizer; int32_t is_encoder; uint64_t n_params; uint64_t n_active_params; uint64_t weight_size;
uint64_t active_weight_size; uint64_t file_size; uint64_t owned_size; int32_t device_layers; const char
*host_device; int32_t pooling; int32_t n_classes; uint64_t device_size; } tn_model_info; tn_status
tn_model_info_get(const tn_model *model, tn_model_info *info); typedef struct tn_model_shape { size_t
struct_size; const char *arch; int32_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab,
n_ctx; int32_t n_experts, n_experts_used, n_ff_expert; int32_t tied; const char *type; uint32_t seed;
int32_t n_classes; } tn_model_shape; void tn_model_shape_init(tn_model_shape *shape, size_t
struct_size); static inline void tn_model_shape_default(tn_model_shape *shape) {
tn_model_shape_init(shape, sizeof *shape); } tn_status tn_model_shape_get(tn_context *ctx, const char
*name, tn_model_shape *out); tn_status tn_model_create_random(tn_context *ctx, const tn_model_shape
*shape, const tn_model_config *cfg, tn_model **out); enum { TN_POOLING_NONE, TN_POOLING_MEAN,
TN_POOLING_CLS, TN_POOLING_LAST, TN_POOLING_RANK, TN_POOLING_DEFAULT = -1 }; typedef struct
tn_embedder_config { size_t struct_size; int32_t pooling; int32_t normalize; int32_t max_tokens; int32_t
n_batch; int32_t n_seq; int32_t fusion; tn_dtype cache_type_k, cache_type_v; int32_t precision; int32_t
reserved; } tn_embedder_config; void tn_embedder_config_init(tn_embedder_config *cfg, size_t
struct_size); static inline void tn_embedder_config_default(tn_embedder_config *cfg) {
tn_embedder_config_init(cfg, sizeof *cfg); } typedef struct tn_embedder tn_embedder; tn_status
tn_embedder_create(tn_model *model, const tn_embedder_config *cfg, tn_embedder **out); void
tn_embedder_destroy(tn_embedder **embedder); int32_t tn_embedder_pooling(const tn_embedder *embedder);
int32_t tn_embedder_width(const tn_embedder *embedder); int32_t tn_embedder_max_tokens(const tn_embedder
*embedder); int32_t tn_embedder_n_batch(const tn_embedder *embedder); typedef struct tn_text_ids { const
int32_t *ids; int32_t n; } tn_text_ids; tn_status tn_embedder_run(tn_embedder *embedder, const
tn_text_ids *texts, int32_t n, float *out); void tn_embedder_cancel(tn_embedder *embedder, int32_t on);
const char *tn_model_class_label(const tn_model *model, int32_t i); typedef struct tn_session
tn_session; enum { TN_RESULT_LOGITS, TN_RESULT_HIDDEN, TN_RESULT_SCORES }; typedef struct
tn_session_config { size_t struct_size; int32_t n_ctx; int32_t n_batch; int32_t n_seq; tn_dtype
cache_type_k, cache_type_v; int32_t fusion; tn_progress_fn progress; void *progress_user; int32_t
result; int32_t n_checkpoints; int32_t precision; int32_t n_ctx_seq; } tn_session_config; void
tn_session_config_init(tn_session_config *cfg, size_t struct_size); static inline void
tn_session_config_default(tn_session_config *cfg) { tn_session_config_init(cfg, sizeof *cfg); } typedef
struct tn_device_memory { const char *device; uint64_t weights, cache, arena, scratch, other, total; }
tn_device_memory; enum { TN_MEMORY_DEVICES = 8 }; typedef struct tn_session_memory { size_t struct_size;
uint64_t cache, arena, scratch, other, total; int32_t n_devices; int32_t reserved; tn_device_memory
devices[TN_MEMORY_DEVICES]; } tn_session_memory; tn_status tn_session_predict(tn_model *model, const
tn_session_config *cfg, tn_session_memory *out); tn_status tn_session_create(tn_model *model, const
tn_session_config *cfg, tn_session **out); void tn_session_destroy(tn_session **session); int32_t
tn_session_n_ctx(const tn_session *session); int32_t tn_session_n_ctx_seq(const tn_session *session);
int32_t tn_session_n_batch(const tn_session *session); int32_t tn_session_width(const tn_session
*session); int32_t tn_session_result(const tn_session *session); enum { TN_OUTPUT_NONE, TN_OUTPUT_LAST,
TN_OUTPUT_ALL, TN_OUTPUT_FIRST }; typedef struct tn_feed { size_t struct_size; int32_t seq; int32_t
n_tokens; const int32_t *tokens; int32_t outputs; int32_t reserved; } tn_feed; tn_status
tn_session_eval(tn_session *session, const tn_feed *feeds, int32_t n_feeds); tn_status
tn_session_feed(tn_session *session, int32_t seq, const int32_t *tokens, int32_t n); const float
*tn_session_logits(tn_session *session, int32_t i); tn_status tn_session_best(tn_session *session,
int32_t i, int32_t *token, float *logprob); int32_t tn_session_n_outputs(const tn_session *session);
int32_t tn_session_length(const tn_session *session, int32_t seq); tn_status
tn_session_truncate(tn_session *session, int32_t seq, int32_t n); tn_status tn_session_branch(tn_session
*session, int32_t from, int32_t to, int32_t n); int32_t tn_session_tokens(const tn_session *session,
int32_t seq, int32_t first, int32_t *out, int32_t n); tn_status tn_session_reuse(tn_session *session,
int32_t seq, const int32_t *tokens, int32_t n, int32_t *n_reused); tn_status tn_session_save(tn_session
*session, const char *path); tn_status tn_session_load(tn_session *session, const char *path); tn_status
tn_session_save_memory(tn_session *session, char **bytes, size_t *n); tn_status
tn_session_load_memory(tn_session *session, const void *bytes, size_t n); void
tn_session_cancel(tn_session *session, int32_t on); void tn_session_profile(tn_session *session, int32_t
on); typedef struct tn_step_time { size_t struct_size; const char *op, *kernel, *name; uint64_t ns; }
tn_step_time; int32_t tn_session_step_time(const tn_session *session, int32_t i, tn_step_time *out);
tn_status tn_model_plan_dump(tn_model *model, const tn_session_config *cfg, int32_t n_tokens, int32_t
format, char **out); tn_status tn_model_host_overhead(tn_model *model, const tn_session_config *cfg,
double *ns_per_step); typedef struct tn_sampling { size_t struct_size; const char *samplers; float
temperature; int32_t top_k; float top_p; float min_p; float typical_p; float top_n_sigma; float
xtc_probability; float xtc_threshold; float dynatemp_range; float dynatemp_exponent; float
repeat_penalty; float presence_penalty, frequency_penalty; int32_t penalty_last_n; float dry_multiplier;
float dry_base; int32_t dry_allowed_length; int32_t dry_penalty_last_n; const char *const *dry_breakers;
int32_t n_dry_breakers; int32_t mirostat; float mirostat_tau, mirostat_eta; uint64_t seed; const int32_t
*bias_tokens; const float *bias_values; int32_t n_bias; int32_t n_logprobs; } tn_sampling; void
tn_sampling_init(tn_sampling *s, size_t struct_size); static inline void tn_sampling_default(tn_sampling
*s) { tn_sampling_init(s, sizeof *s); } enum { TN_STOP_NONE, TN_STOP_END, TN_STOP_STRING, TN_STOP_LIMIT,
TN_STOP_CONTEXT, TN_STOP_CANCELLED, TN_STOP_BLOCKED, }; typedef struct tn_generation_config { size_t
struct_size; const tn_sampling *sampling; int32_t seq; int32_t max_tokens; const char *const *stops;
int32_t n_stops; int32_t ignore_end; int32_t print_special; int32_t spec_ngram; tn_session *draft;
int32_t draft_max; int32_t draft_min; const char *grammar; const char *const *bans; int32_t n_bans;
int32_t reserved; const char *json_schema; } tn_generation_config; void
tn_generation_config_init(tn_generation_config *cfg, size_t struct_size); static inline void
tn_generation_config_default(tn_generation_config *cfg) { tn_generation_config_init(cfg, sizeof *cfg); }
typedef struct tn_generation tn_generation; tn_status tn_generation_create(tn_session *session, const
tn_generation_config *cfg, tn_generation **out); void tn_generation_destroy(tn_generation **generation);
tn_status tn_generation_prompt(tn_generation *g, const int32_t *ids, size_t n); tn_status
tn_generation_start(tn_generation *g, const int32_t *ids, size_t n); typedef struct tn_logprob { int32_t
token; float logprob; } tn_logprob; typedef struct tn_piece { size_t struct_size; int32_t token; int32_t
stop; const char *text; size_t n_text; const tn_logprob *logprobs; int32_t n_logprobs; float logprob; }
tn_piece; tn_status tn_generation_step(tn_generation *g, tn_piece *out); typedef struct
tn_generation_stats { size_t struct_size; int32_t n_prompt, n_generated; uint64_t prompt_ns,
generate_ns, first_token_ns; int32_t n_reused; int32_t n_drafted, n_accepted; int32_t reserved; }
tn_generation_stats; tn_status tn_generation_stats_get(const tn_generation *g, tn_generation_stats
*out); typedef struct tn_engine tn_engine; typedef struct tn_engine_config { size_t struct_size; const
tn_session_config *session; int32_t n_waiting; int64_t waiting_tokens; int32_t prompt_tokens; int32_t
reserved; } tn_engine_config; void tn_engine_config_init(tn_engine_config *cfg, size_t struct_size);
static inline void tn_engine_config_default(tn_engine_config *cfg) { tn_engine_config_init(cfg, sizeof
*cfg); } tn_status tn_engine_create(tn_model *model, const tn_engine_config *cfg, tn_engine **out); void
tn_engine_destroy(tn_engine **engine); typedef struct tn_request_config { size_t struct_size; const
int32_t *tokens; int32_t n_tokens; const tn_generation_config *generation; int32_t priority; void *user;
uint64_t salt; } tn_request_config; void tn_request_config_init(tn_request_config *cfg, size_t
struct_size); static inline void tn_request_config_default(tn_request_config *cfg) {
tn_request_config_init(cfg, sizeof *cfg); } tn_status tn_engine_submit(tn_engine *engine, const
tn_request_config *cfg, uint64_t *id); void tn_engine_cancel(tn_engine *engine, uint64_t id); int32_t
tn_engine_pending(tn_engine *engine); typedef struct tn_engine_event { size_t struct_size; uint64_t id;
void *user; const tn_piece *piece; tn_status status; int32_t reserved; const char *message; const
tn_generation_stats *stats; } tn_engine_event; tn_status tn_engine_step(tn_engine *engine, const
tn_engine_event *const **events, int32_t *n); tn_status tn_engine_start(tn_engine *engine); void
tn_engine_stop(tn_engine *engine); int32_t tn_engine_descriptor(const tn_engine *engine); tn_status
tn_engine_take(tn_engine *engine, const tn_engine_event *const **events, int32_t *n); typedef struct
tn_engine_stats { size_t struct_size; int32_t n_waiting, n_running; int32_t n_blocks, n_free; uint64_t
n_steps; uint64_t n_prompt, n_reused, n_generated; uint64_t n_preempted; int32_t n_cached; int32_t
reserved; uint64_t n_hits, n_evicted; uint64_t n_plans; } tn_engine_stats; tn_status
tn_engine_stats_get(tn_engine *engine, tn_engine_stats *out); typedef struct tn_file tn_file; tn_status
tn_file_open(tn_context *ctx, const char *path, tn_file **out); void tn_file_close(tn_file **file);
int64_t tn_file_n_keys(const tn_file *file); tn_status tn_file_key(const tn_file *file, int64_t i,
int64_t max_items, char **name, const char **type, const char **value); typedef struct tn_file_tensor {
size_t struct_size; const char *name; tn_dtype dtype; int32_t n_dims; int64_t shape[4]; uint64_t size,
offset; int32_t file; int32_t reserved; } tn_file_tensor; int64_t tn_file_n_tensors(const tn_file
*file); tn_status tn_file_tensor_get(const tn_file *file, int64_t i, tn_file_tensor *out); int64_t
tn_file_find_tensor(const tn_file *file, const char *name); tn_status tn_file_read_tensor(const tn_file
*file, int64_t i, int64_t first, int64_t n, float *out); tn_status tn_file_export_tensor(const tn_file
*file, int64_t i, const char *path); uint64_t tn_file_size(const tn_file *file); uint32_t
tn_file_version(const tn_file *file); int32_t tn_file_n_parts(const tn_file *file); tn_status
tn_file_check(const tn_file *file); typedef struct tn_quantize_config { size_t struct_size; const char
*type; int32_t (*report)(void *user, const char *tensor, const char *from, const char *to, double rmse,
int64_t done, int64_t total); void *user; const char *imatrix; const char *const *tensor_types; int32_t
n_tensor_types; int32_t reserved; const char *output_type; const char *embedding_type; double *rmse; }
tn_quantize_config; void tn_quantize_config_init(tn_quantize_config *cfg, size_t struct_size); static
inline void tn_quantize_config_default(tn_quantize_config *cfg) { tn_quantize_config_init(cfg, sizeof
*cfg); } const char *tn_quantize_types(void); tn_status tn_quantize(tn_context *ctx, const char *in,
const char *out, const tn_quantize_config *cfg); enum { TN_TEXT_ADD_SPECIAL = 1, TN_TEXT_PARSE_SPECIAL =
2, TN_TEXT_PRINT_SPECIAL = 4, TN_TEXT_REMOVE_SPECIAL = 8 }; tn_status tn_tokenize(const tn_model *model,
const char *text, size_t n, int32_t flags, int32_t **ids, size_t *n_ids); tn_status
tn_tokenize_pair(const tn_model *model, const char *query, size_t n_query, const char *document, size_t
n_document, size_t max_tokens, int32_t **ids, size_t *n_ids); void tn_tokens_free(const tn_model *model,
int32_t *ids); tn_status tn_detokenize(const tn_model *model, const int32_t *ids, size_t n_ids, int32_t
flags, char **text, size_t *n); typedef struct tn_turn { size_t struct_size; const char *role; const
char *content; const char *content_parts; const char *name; const char *tool_call_id; const char
*reasoning_content; const char *tool_calls; } tn_turn; typedef struct tn_chat_config { size_t
struct_size; const char *chat_template; const char *tools; const char *variables; int64_t local_time;
int32_t no_generation_prompt; int32_t max_depth; uint64_t max_steps; size_t max_memory, max_output; }
tn_chat_config; void tn_chat_config_init(tn_chat_config *cfg, size_t struct_size); static inline void
tn_chat_config_default(tn_chat_config *cfg) { tn_chat_config_init(cfg, sizeof *cfg); } tn_status
tn_chat_tokenize(const tn_model *model, const tn_turn *turns, size_t n_turns, const tn_chat_config *cfg,
int32_t **ids, size_t *n_ids); tn_status tn_chat_render(const tn_model *model, const tn_turn *turns,
size_t n_turns, const tn_chat_config *cfg, char **text, size_t *n); const char
*tn_chat_template_name(const tn_model *model); const char *tn_chat_tool_format(const tn_model *model,
const tn_chat_config *cfg); int32_t tn_model_has_chat_template(const tn_model *model); int32_t
tn_token_is_end(const tn_model *model, int32_t id); typedef struct tn_tool_parser tn_tool_parser; const
char *tn_tool_format(const char *chat_template); typedef struct tn_tool_config { size_t struct_size;
const char *format; const char *tools; } tn_tool_config; void tn_tool_config_init(tn_tool_config *cfg,
size_t struct_size); static inline void tn_tool_config_default(tn_tool_config *cfg) {
tn_tool_config_init(cfg, sizeof *cfg); } tn_status tn_tool_parser_create(tn_context *ctx, const
tn_tool_config *cfg, tn_tool_parser **out); void tn_tool_parser_destroy(tn_tool_parser **parser); enum {
TN_TOOL_CONTENT, TN_TOOL_CALL, }; typedef struct tn_tool_event { size_t struct_size; int32_t kind;
int32_t reserved; const char *text; size_t n_text; const char *name; const char *id; } tn_tool_event;
tn_status tn_tool_parser_feed(tn_tool_parser *parser, const char *text, size_t n, const tn_tool_event
*const **events, int32_t *n_events); tn_status tn_tool_parser_end(tn_tool_parser *parser, const
tn_tool_event *const **events, int32_t *n_events); typedef struct tn_tool_grammar_config { size_t
struct_size; const char *format; const char *tools; const char *json_schema; int32_t text; int32_t
single; int32_t in_thought; int32_t reserved; } tn_tool_grammar_config; void
tn_tool_grammar_config_init(tn_tool_grammar_config *cfg, size_t struct_size); static inline void
tn_tool_grammar_config_default(tn_tool_grammar_config *cfg) { tn_tool_grammar_config_init(cfg, sizeof
*cfg); } tn_status tn_tool_grammar(tn_context *ctx, const tn_tool_grammar_config *cfg, char **gbnf);
