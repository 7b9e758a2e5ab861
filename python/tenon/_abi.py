# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The public headers of libtenon for ctypes. Made by python/make_abi.py: do not edit."""
# mypy: ignore-errors
import ctypes
from ctypes import c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict

POINTER = ctypes.POINTER

VERSION = "0.1.0"

# Constants
TN_OK = 0
TN_ERR_ARG = -1
TN_ERR_MEMORY = -2
TN_ERR_IO = -3
TN_ERR_FORMAT = -4
TN_ERR_MODEL = -5
TN_ERR_SHAPE = -6
TN_ERR_TYPE = -7
TN_ERR_DEVICE = -8
TN_ERR_UNSUPPORTED = -9
TN_ERR_CONTEXT_FULL = -10
TN_ERR_CANCELLED = -11
TN_ERR_STATE = -12
TN_ERR_INTERNAL = -13
TN_ERR_BUSY = -14
TN_TYPE_F32 = 0
TN_TYPE_F16 = 1
TN_TYPE_BF16 = 2
TN_TYPE_F64 = 3
TN_TYPE_I8 = 4
TN_TYPE_I16 = 5
TN_TYPE_I32 = 6
TN_TYPE_I64 = 7
TN_TYPE_Q4_0 = 8
TN_TYPE_Q4_1 = 9
TN_TYPE_Q5_0 = 10
TN_TYPE_Q5_1 = 11
TN_TYPE_Q8_0 = 12
TN_TYPE_Q8_1 = 13
TN_TYPE_Q2_K = 14
TN_TYPE_Q3_K = 15
TN_TYPE_Q4_K = 16
TN_TYPE_Q5_K = 17
TN_TYPE_Q6_K = 18
TN_TYPE_Q8_K = 19
TN_TYPE_IQ4_NL = 20
TN_TYPE_IQ4_XS = 21
TN_TYPE_MXFP4 = 22
TN_TYPE_IQ2_XXS = 23
TN_TYPE_IQ2_XS = 24
TN_TYPE_IQ2_S = 25
TN_TYPE_IQ3_XXS = 26
TN_TYPE_IQ3_S = 27
TN_TYPE_IQ1_S = 28
TN_TYPE_IQ1_M = 29
TN_TYPE_TQ1_0 = 30
TN_TYPE_TQ2_0 = 31
TN_TYPE_NVFP4 = 32
TN_TYPE_Q1_0 = 33
TN_TYPE_Q2_0 = 34
TN_TYPE_COUNT = 35
TN_THREADS_OWN = 0
TN_THREADS_OPENMP = 1
TN_THREADS_NORMAL = 0
TN_THREADS_BACKGROUND = 1
TN_LOG_ERROR = 0
TN_LOG_WARN = 1
TN_LOG_INFO = 2
TN_LOG_DEBUG = 3
TN_EVENT_DEVICE_FALLBACK = 1
TN_EVENT_MODEL_WARNING = 2
TN_EVENT_CONTEXT_TRUNCATED = 3
TN_EVENT_LAYERS_ON_HOST = 4
TN_EVENT_KERNEL_REPLACED = 5
TN_EVENT_COMPILING = 6
TN_EVENT_COMPILED = 7
TN_EVENT_WEIGHTS_CONVERTED = 8
TN_EVENT_MEMORY_NOT_LOCKED = 9
TN_EVENT_CONTEXT_BEYOND_TRAINING = 10
TN_SPAN_LOAD = 0
TN_SPAN_PLAN = 1
TN_SPAN_TEXT = 2
TN_SPAN_SAMPLE = 3
TN_SPAN_RUN = 4
TN_SPAN_WORK = 5
TN_PRECISION_auto = 0
TN_PRECISION_f32 = 1
TN_PRECISION_tf32 = 2
TN_PRECISION_bf16 = 3
TN_PRECISION_f16 = 4
TN_PRECISION_fp8 = 5
TN_PRECISION_int8 = 6
TN_PRECISION_COUNT = 7
TN_UNARY_AFFINE = 0
TN_UNARY_SILU = 1
TN_UNARY_GELU = 2
TN_UNARY_GELU_ERF = 3
TN_UNARY_RELU = 4
TN_UNARY_TANH = 5
TN_UNARY_SIGMOID = 6
TN_UNARY_EXP = 7
TN_UNARY_LOG = 8
TN_UNARY_SQRT = 9
TN_UNARY_SQUARE = 10
TN_UNARY_ABS = 11
TN_UNARY_SOFTCAP = 12
TN_UNARY_SOFTPLUS = 13
TN_UNARY_CLAMP = 14
TN_UNARY_COUNT = 15
TN_UNARY_NONE = -1
TN_BINARY_ADD = 0
TN_BINARY_SUB = 1
TN_BINARY_MUL = 2
TN_BINARY_DIV = 3
TN_BINARY_MAX = 4
TN_BINARY_MIN = 5
TN_BINARY_COUNT = 6
TN_REDUCE_SUM = 0
TN_REDUCE_MEAN = 1
TN_REDUCE_MAX = 2
TN_REDUCE_COUNT = 3
TN_ROPE_NORM = 0
TN_ROPE_NEOX = 1
TN_GATING_SOFTMAX = 1
TN_GATING_SIGMOID = 2
TN_GATING_SOFTMAX_SELECTED = 3
TN_GATING_NONE = 0
TN_OP_reshape = 0
TN_OP_permute = 1
TN_OP_slice = 2
TN_OP_copy = 3
TN_OP_transfer = 4
TN_OP_concat = 5
TN_OP_unary = 6
TN_OP_binary = 7
TN_OP_reduce = 8
TN_OP_softmax = 9
TN_OP_argmax = 10
TN_OP_top_k = 11
TN_OP_get_rows = 12
TN_OP_rms_norm = 13
TN_OP_layer_norm = 14
TN_OP_glu = 15
TN_OP_rope = 16
TN_OP_cache_write = 17
TN_OP_attention = 18
TN_OP_matmul = 19
TN_OP_matmul_id = 20
TN_OP_moe_weights = 21
TN_OP_moe_sum = 22
TN_OP_linear = 23
TN_OP_matmul_multi = 24
TN_OP_matmul_glu = 25
TN_OP_matmul_id_glu = 26
TN_OP_add_rms_norm = 27
TN_OP_norm_rope = 28
TN_OP_argmax_logprob = 29
TN_OP_rope_cache = 30
TN_OP_short_conv = 31
TN_OP_delta_rule = 32
TN_OP_moe_route = 33
TN_OP_moe_combine = 34
TN_OP_sample = 35
TN_OP_COUNT = 36
TN_QUERIES_ANY = 0
TN_QUERIES_ONE = 1
TN_QUERIES_UNEVEN = 2
TN_QUERIES_SHORT = 3
TN_QUERIES_MIXED = 4
TN_FALLBACK_EVENT = 0
TN_FALLBACK_ERROR = 1
TN_FALLBACK_QUIET = 2
TN_PLAN_TEXT = 0
TN_PLAN_JSON = 1
TN_PLAN_DOT = 2
TN_PLAN_SVG = 3
TN_LOAD_MAP = 0
TN_LOAD_READ = 1
TN_RESULT_LOGITS = 0
TN_RESULT_HIDDEN = 1
TN_RESULT_SCORES = 2
TN_MEMORY_DEVICES = 8
TN_OUTPUT_NONE = 0
TN_OUTPUT_LAST = 1
TN_OUTPUT_ALL = 2
TN_OUTPUT_FIRST = 3
TN_STOP_NONE = 0
TN_STOP_END = 1
TN_STOP_STRING = 2
TN_STOP_LIMIT = 3
TN_STOP_CONTEXT = 4
TN_STOP_CANCELLED = 5
TN_STOP_BLOCKED = 6
TN_CONTEXT_STOP = 0
TN_CONTEXT_SHIFT = 1
TN_TEXT_ADD_SPECIAL = 1
TN_TEXT_PARSE_SPECIAL = 2
TN_TEXT_PRINT_SPECIAL = 4
TN_TEXT_REMOVE_SPECIAL = 8
TN_POOLING_NONE = 0
TN_POOLING_MEAN = 1
TN_POOLING_CLS = 2
TN_POOLING_LAST = 3
TN_POOLING_RANK = 4
TN_POOLING_DEFAULT = -1
TN_TOOL_CONTENT = 0
TN_TOOL_CALL = 1
TN_TOOL_BEGIN = 2
TN_TOOL_ARGUMENTS = 3
TN_TOOL_BROKEN = 4
TN_SESSION_ADAPTERS = 16


class tn_allocator(ctypes.Structure):
    _fields_ = [
        ("user", c_void_p), ("alloc", ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t)),
        ("free", ctypes.CFUNCTYPE(None, c_void_p, c_void_p)),
    ]


class tn_executor(ctypes.Structure):
    _fields_ = [
        ("user", c_void_p), ("run", ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_void_p, c_void_p)),
    ]

tn_log_fn: Any = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)

tn_event_fn: Any = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class tn_span(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("kind", c_int32), ("pool_thread", c_int32), ("name", c_char_p),
        ("begin_ns", c_uint64), ("end_ns", c_uint64), ("count", c_int64),
    ]

tn_span_fn: Any = ctypes.CFUNCTYPE(None, c_void_p, POINTER(tn_span))


class tn_pass_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("session", c_uint64), ("n_tokens", c_int32), ("n_seq", c_int32),
        ("n_blocks", c_int32), ("n_blocks_used", c_int32), ("depth", c_int64), ("begin_ns", c_uint64),
        ("submit_ns", c_uint64), ("end_ns", c_uint64), ("plan", POINTER(None)),
        ("step_ns", POINTER(c_uint64)), ("n_steps", c_int32), ("reserved", c_int32),
    ]

tn_pass_begin_fn: Any = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(tn_pass_info))

tn_pass_end_fn: Any = ctypes.CFUNCTYPE(None, c_void_p, POINTER(tn_pass_info))


class tn_context_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("allocator", tn_allocator), ("executor", tn_executor), ("log", tn_log_fn),
        ("event", tn_event_fn), ("user", c_void_p), ("log_level", c_int32), ("n_threads", c_int32),
        ("strict", c_int32), ("isa", c_char_p), ("memory_limit", c_size_t), ("cache_dir", c_char_p),
        ("tune", c_int32), ("backend", c_char_p), ("deterministic", c_int32), ("one_backend", c_int32),
        ("threads_by", c_int32), ("thread_priority", c_int32), ("blas", c_char_p), ("span", tn_span_fn),
        ("pass_begin", tn_pass_begin_fn), ("pass_end", tn_pass_end_fn), ("device_timeout_ms", c_int64),
    ]


class tn_device_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("name", c_char_p), ("description", c_char_p), ("backend", c_char_p),
        ("memory_total", c_uint64), ("memory_free", c_uint64),
    ]


class tn_reshape_params(ctypes.Structure):
    _fields_ = [
        ("n_dims", c_int32), ("shape", c_int64 * 4),
    ]


class tn_permute_params(ctypes.Structure):
    _fields_ = [
        ("axes", c_int32 * 4),
    ]


class tn_slice_params(ctypes.Structure):
    _fields_ = [
        ("axis", c_int32), ("start", c_int64), ("length", c_int64),
    ]


class tn_copy_params(ctypes.Structure):
    _fields_ = [
        ("dtype", c_int32),
    ]


class tn_concat_params(ctypes.Structure):
    _fields_ = [
        ("axis", c_int32),
    ]


class tn_unary_params(ctypes.Structure):
    _fields_ = [
        ("kind", c_int32), ("a", c_float), ("b", c_float),
    ]


class tn_binary_params(ctypes.Structure):
    _fields_ = [
        ("kind", c_int32),
    ]


class tn_reduce_params(ctypes.Structure):
    _fields_ = [
        ("kind", c_int32),
    ]


class tn_softmax_params(ctypes.Structure):
    _fields_ = [
        ("scale", c_float),
    ]


class tn_top_k_params(ctypes.Structure):
    _fields_ = [
        ("k", c_int32), ("n_groups", c_int32), ("n_groups_used", c_int32),
    ]


class tn_get_rows_params(ctypes.Structure):
    _fields_ = [
        ("scale", c_float),
    ]


class tn_rms_norm_params(ctypes.Structure):
    _fields_ = [
        ("eps", c_float),
    ]


class tn_layer_norm_params(ctypes.Structure):
    _fields_ = [
        ("eps", c_float),
    ]


class tn_glu_params(ctypes.Structure):
    _fields_ = [
        ("act", c_int32), ("limit", c_float), ("alpha", c_float),
    ]


class tn_rope_params(ctypes.Structure):
    _fields_ = [
        ("mode", c_int32), ("n_rot", c_int32), ("base", c_float), ("freq_scale", c_float),
        ("attn_factor", c_float), ("yarn_ext", c_float), ("yarn_low", c_float), ("yarn_high", c_float),
    ]


class tn_attention_params(ctypes.Structure):
    _fields_ = [
        ("scale", c_float), ("causal", c_int32), ("window", c_int32), ("chunk", c_int32),
        ("softcap", c_float), ("max_bias", c_float),
    ]


class tn_moe_weights_params(ctypes.Structure):
    _fields_ = [
        ("gating", c_int32), ("normalise", c_int32), ("scale", c_float),
    ]


class tn_linear_params(ctypes.Structure):
    _fields_ = [
        ("act", c_int32), ("has_bias", c_int32), ("has_residual", c_int32), ("has_norm", c_int32),
        ("eps", c_float),
    ]


class tn_matmul_multi_params(ctypes.Structure):
    _fields_ = [
        ("n_weights", c_int32), ("has_bias", c_int32 * 3), ("has_norm", c_int32), ("eps", c_float),
    ]


class tn_moe_route_params(ctypes.Structure):
    _fields_ = [
        ("top_k", tn_top_k_params), ("weights", tn_moe_weights_params), ("choice", c_int32),
        ("has_choice_bias", c_int32), ("has_product", c_int32), ("has_bias", c_int32), ("has_norm", c_int32),
        ("eps", c_float),
    ]


class tn_moe_combine_params(ctypes.Structure):
    _fields_ = [
        ("n_added", c_int32), ("has_factor", c_int32),
    ]


class tn_matmul_glu_params(ctypes.Structure):
    _fields_ = [
        ("glu", tn_glu_params), ("has_norm", c_int32), ("eps", c_float),
    ]


class tn_matmul_id_glu_params(ctypes.Structure):
    _fields_ = [
        ("glu", tn_glu_params),
    ]


class tn_add_rms_norm_params(ctypes.Structure):
    _fields_ = [
        ("eps", c_float),
    ]


class tn_rope_cache_params(ctypes.Structure):
    _fields_ = [
        ("has_norm", c_int32 * 2), ("eps", c_float), ("rope", tn_rope_params),
    ]


class tn_delta_rule_params(ctypes.Structure):
    _fields_ = [
        ("scale", c_float), ("normalise", c_int32), ("eps", c_float), ("grouped", c_int32),
    ]


class tn_norm_rope_params(ctypes.Structure):
    _fields_ = [
        ("eps", c_float), ("rope", tn_rope_params),
    ]


class tn_short_conv_args(ctypes.Structure):
    _fields_ = [
        ("state", c_void_p), ("x", c_void_p), ("w", c_void_p), ("q_start", c_void_p), ("slots", c_void_p),
    ]


class tn_delta_rule_args(ctypes.Structure):
    _fields_ = [
        ("state", c_void_p), ("q", c_void_p), ("k", c_void_p), ("v", c_void_p), ("g", c_void_p),
        ("beta", c_void_p), ("q_start", c_void_p), ("slots", c_void_p),
    ]


class tn_attention_args(ctypes.Structure):
    _fields_ = [
        ("q", c_void_p), ("k", c_void_p), ("v", c_void_p), ("q_start", c_void_p), ("kv_len", c_void_p),
        ("block_table", c_void_p), ("sinks", c_void_p), ("one_query", c_int32),
    ]


class tn_plan_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("devices", POINTER(c_void_p)), ("n_devices", c_int32),
        ("fusion", c_int32), ("fallback", c_int32), ("precision", c_int32),
    ]


class tn_plan_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("n_recorded", c_int32), ("n_steps", c_int32), ("n_fused", c_int32),
        ("n_joined", c_int32), ("n_launches", c_int32), ("reserved", c_int32), ("arena_size", c_uint64),
        ("arena_bound", c_uint64), ("scratch_size", c_uint64), ("input_size", c_uint64),
    ]


class tn_plan_step_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("op", c_char_p), ("family", c_char_p), ("kernel", c_char_p),
        ("name", c_char_p), ("device", c_char_p), ("n_launches", c_int32), ("done_by_next", c_int32),
        ("weights_read", c_uint64), ("cache_read", c_uint64), ("cache_written", c_uint64), ("read", c_uint64),
        ("written", c_uint64), ("ops", c_double), ("product_ops", c_double), ("precision", c_int32),
        ("reserved", c_int32),
    ]


class tn_binding(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p), ("data", c_void_p), ("size", c_size_t),
    ]

tn_progress_fn: Any = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64, c_uint64)


class tn_model_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("device", c_void_p), ("pre", c_char_p), ("metadata_only", c_int32),
        ("tokenizer_only", c_int32), ("check_tensors", c_int32), ("progress", tn_progress_fn),
        ("progress_user", c_void_p), ("device_layers", c_int32), ("no_fallback", c_int32),
        ("reserve_size", c_uint64), ("session", POINTER(None)), ("load", c_int32), ("no_read_ahead", c_int32),
        ("lock_memory", c_int32), ("host_experts", c_int32),
        ("place", ctypes.CFUNCTYPE(c_void_p, c_void_p, c_char_p)), ("place_user", c_void_p),
        ("overrides", POINTER(c_char_p)), ("n_overrides", c_int32), ("reserved", c_int32),
    ]


class tn_source(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("name", c_char_p), ("path", c_char_p), ("data", c_void_p),
        ("size", c_uint64), ("read", ctypes.CFUNCTYPE(c_int64, c_void_p, c_uint64, c_void_p, c_size_t)),
        ("user", c_void_p), ("descriptor", c_int32), ("reserved", c_int32),
    ]


class tn_model_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("arch", c_char_p), ("name", c_char_p), ("device", c_char_p),
        ("n_layers", c_int32), ("n_embd", c_int32), ("n_vocab", c_int32), ("n_ctx_train", c_int32),
        ("n_heads", c_int32), ("n_kv_heads", c_int32), ("head_dim", c_int32), ("n_ff", c_int32),
        ("n_experts", c_int32), ("n_experts_used", c_int32), ("has_tokenizer", c_int32),
        ("is_encoder", c_int32), ("n_params", c_uint64), ("n_active_params", c_uint64),
        ("weight_size", c_uint64), ("active_weight_size", c_uint64), ("file_size", c_uint64),
        ("owned_size", c_uint64), ("device_layers", c_int32), ("host_device", c_char_p), ("pooling", c_int32),
        ("n_classes", c_int32), ("device_size", c_uint64), ("placed_size", c_uint64),
    ]


class tn_model_shape(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("arch", c_char_p), ("n_layers", c_int32), ("n_embd", c_int32),
        ("n_heads", c_int32), ("n_kv_heads", c_int32), ("head_dim", c_int32), ("n_ff", c_int32),
        ("n_vocab", c_int32), ("n_ctx", c_int32), ("n_experts", c_int32), ("n_experts_used", c_int32),
        ("n_ff_expert", c_int32), ("tied", c_int32), ("type", c_char_p), ("seed", c_uint32),
        ("n_classes", c_int32),
    ]


class tn_session_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("n_ctx", c_int32), ("n_batch", c_int32), ("n_seq", c_int32),
        ("cache_type_k", c_int32), ("cache_type_v", c_int32), ("fusion", c_int32),
        ("progress", tn_progress_fn), ("progress_user", c_void_p), ("result", c_int32),
        ("n_checkpoints", c_int32), ("precision", c_int32), ("n_ctx_seq", c_int32), ("n_adapters", c_int32),
        ("adapters", POINTER(None)), ("free_windows", c_int32), ("reserved_windows", c_int32),
    ]


class tn_device_memory(ctypes.Structure):
    _fields_ = [
        ("device", c_char_p), ("weights", c_uint64), ("cache", c_uint64), ("arena", c_uint64),
        ("scratch", c_uint64), ("other", c_uint64), ("total", c_uint64),
    ]


class tn_device_memory_parts(ctypes.Structure):
    _fields_ = [
        ("converted", c_uint64), ("sampling_arena", c_uint64), ("sampling_scratch", c_uint64),
        ("sampling_other", c_uint64),
    ]


class tn_session_memory(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("cache", c_uint64), ("arena", c_uint64), ("scratch", c_uint64),
        ("other", c_uint64), ("total", c_uint64), ("n_devices", c_int32), ("reserved", c_int32),
        ("devices", tn_device_memory * 8), ("parts", tn_device_memory_parts * 8),
    ]


class tn_feed(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("seq", c_int32), ("n_tokens", c_int32), ("tokens", POINTER(c_int32)),
        ("outputs", c_int32), ("reserved", c_int32),
    ]


class tn_step_time(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("op", c_char_p), ("kernel", c_char_p), ("name", c_char_p),
        ("ns", c_uint64),
    ]


class tn_sampling(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("samplers", c_char_p), ("temperature", c_float), ("top_k", c_int32),
        ("top_p", c_float), ("min_p", c_float), ("typical_p", c_float), ("top_n_sigma", c_float),
        ("xtc_probability", c_float), ("xtc_threshold", c_float), ("dynatemp_range", c_float),
        ("dynatemp_exponent", c_float), ("repeat_penalty", c_float), ("presence_penalty", c_float),
        ("frequency_penalty", c_float), ("penalty_last_n", c_int32), ("dry_multiplier", c_float),
        ("dry_base", c_float), ("dry_allowed_length", c_int32), ("dry_penalty_last_n", c_int32),
        ("dry_breakers", POINTER(c_char_p)), ("n_dry_breakers", c_int32), ("mirostat", c_int32),
        ("mirostat_tau", c_float), ("mirostat_eta", c_float), ("seed", c_uint64),
        ("bias_tokens", POINTER(c_int32)), ("bias_values", POINTER(c_float)), ("n_bias", c_int32),
        ("n_logprobs", c_int32),
    ]


class tn_generation_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("sampling", POINTER(tn_sampling)), ("seq", c_int32),
        ("max_tokens", c_int32), ("stops", POINTER(c_char_p)), ("n_stops", c_int32), ("ignore_end", c_int32),
        ("print_special", c_int32), ("spec_ngram", c_int32), ("draft", c_void_p), ("draft_max", c_int32),
        ("draft_min", c_int32), ("grammar", c_char_p), ("bans", POINTER(c_char_p)), ("n_bans", c_int32),
        ("min_tokens", c_int32), ("json_schema", c_char_p), ("context_full", c_int32), ("n_keep", c_int32),
    ]


class tn_logprob(ctypes.Structure):
    _fields_ = [
        ("token", c_int32), ("logprob", c_float),
    ]


class tn_piece(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("token", c_int32), ("stop", c_int32), ("text", c_void_p),
        ("n_text", c_size_t), ("logprobs", POINTER(tn_logprob)), ("n_logprobs", c_int32),
        ("logprob", c_float), ("n_dropped", c_int32), ("reserved", c_int32),
    ]


class tn_generation_stats(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("n_prompt", c_int32), ("n_generated", c_int32), ("prompt_ns", c_uint64),
        ("generate_ns", c_uint64), ("first_token_ns", c_uint64), ("n_reused", c_int32),
        ("n_drafted", c_int32), ("n_accepted", c_int32), ("n_dropped", c_int32),
    ]


class tn_turn(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("role", c_char_p), ("content", c_char_p), ("content_parts", c_char_p),
        ("name", c_char_p), ("tool_call_id", c_char_p), ("reasoning_content", c_char_p),
        ("tool_calls", c_char_p),
    ]


class tn_chat_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("chat_template", c_char_p), ("tools", c_char_p), ("variables", c_char_p),
        ("local_time", c_int64), ("no_generation_prompt", c_int32), ("max_depth", c_int32),
        ("max_steps", c_uint64), ("max_memory", c_size_t), ("max_output", c_size_t),
    ]


class tn_embedder_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("pooling", c_int32), ("normalize", c_int32), ("max_tokens", c_int32),
        ("n_batch", c_int32), ("n_seq", c_int32), ("fusion", c_int32), ("cache_type_k", c_int32),
        ("cache_type_v", c_int32), ("precision", c_int32), ("reserved", c_int32),
    ]


class tn_text_ids(ctypes.Structure):
    _fields_ = [
        ("ids", POINTER(c_int32)), ("n", c_int32),
    ]


class tn_engine_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("session", POINTER(tn_session_config)), ("n_waiting", c_int32),
        ("waiting_tokens", c_int64), ("prompt_tokens", c_int32), ("reserved", c_int32),
        ("host_cache", c_uint64), ("gap_limit", c_double),
    ]


class tn_request_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("tokens", POINTER(c_int32)), ("n_tokens", c_int32),
        ("generation", POINTER(tn_generation_config)), ("priority", c_int32), ("user", c_void_p),
        ("salt", c_uint64),
    ]


class tn_engine_event(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("id", c_uint64), ("user", c_void_p), ("piece", POINTER(tn_piece)),
        ("status", c_int32), ("reserved", c_int32), ("message", c_char_p),
        ("stats", POINTER(tn_generation_stats)), ("queue_ns", c_uint64),
    ]


class tn_engine_stats(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("n_waiting", c_int32), ("n_running", c_int32), ("n_blocks", c_int32),
        ("n_free", c_int32), ("n_steps", c_uint64), ("n_prompt", c_uint64), ("n_reused", c_uint64),
        ("n_generated", c_uint64), ("n_preempted", c_uint64), ("n_cached", c_int32), ("reserved", c_int32),
        ("n_hits", c_uint64), ("n_evicted", c_uint64), ("n_plans", c_uint64), ("n_sampled", c_uint64),
        ("step_ns", c_uint64), ("wait_ns", c_uint64), ("n_host", c_int32), ("reserved_host", c_int32),
        ("n_host_saved", c_uint64), ("n_host_loaded", c_uint64), ("n_timed", c_uint64),
    ]


class tn_tool_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("format", c_char_p), ("tools", c_char_p), ("stream_arguments", c_int32),
        ("reserved", c_int32),
    ]


class tn_tool_event(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("kind", c_int32), ("reserved", c_int32), ("text", c_void_p),
        ("n_text", c_size_t), ("name", c_char_p), ("id", c_char_p),
    ]


class tn_tool_grammar_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("format", c_char_p), ("tools", c_char_p), ("json_schema", c_char_p),
        ("text", c_int32), ("single", c_int32), ("in_thought", c_int32), ("may_think", c_int32),
    ]


class tn_file_tensor(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("name", c_char_p), ("dtype", c_int32), ("n_dims", c_int32),
        ("shape", c_int64 * 4), ("size", c_uint64), ("offset", c_uint64), ("file", c_int32),
        ("reserved", c_int32),
    ]


class tn_quantize_config(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("type", c_char_p), ("report", ctypes.CFUNCTYPE(c_int32, c_void_p,
        c_char_p, c_char_p, c_char_p, c_double, c_int64, c_int64)), ("user", c_void_p), ("imatrix", c_char_p),
        ("tensor_types", POINTER(c_char_p)), ("n_tensor_types", c_int32), ("reserved", c_int32),
        ("output_type", c_char_p), ("embedding_type", c_char_p), ("rmse", POINTER(c_double)),
    ]


class tn_adapter_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("name", c_char_p), ("n_weights", c_int32), ("rank", c_int32),
        ("alpha", c_float), ("reserved", c_int32), ("file_size", c_uint64), ("device_size", c_uint64),
    ]


class tn_adapter_use(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("adapter", c_void_p), ("scale", c_float), ("reserved", c_int32),
    ]


# Result and arguments of each function.
FUNCTIONS: Dict[str, Any] = {
    "tn_status_text": (c_char_p, [c_int32]),
    "tn_dtype_name": (c_char_p, [c_int32]),
    "tn_dtype_block_elems": (c_int64, [c_int32]),
    "tn_dtype_block_size": (c_size_t, [c_int32]),
    "tn_dtype_by_name": (c_int32, [c_char_p]),
    "tn_dtype_by_file_id": (c_int32, [c_int64]),
    "tn_dtype_file_id": (c_int32, [c_int32]),
    "tn_dtype_row_size": (c_size_t, [c_int32, c_int64]),
    "tn_version": (c_char_p, []),
    "tn_context_config_init": (None, [POINTER(tn_context_config), c_size_t]),
    "tn_context_create": (c_int32, [POINTER(tn_context_config), POINTER(c_void_p)]),
    "tn_context_destroy": (None, [POINTER(c_void_p)]),
    "tn_last_error": (c_size_t, [c_void_p, c_size_t]),
    "tn_context_error": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "tn_context_memory": (c_size_t, [c_void_p]),
    "tn_context_memory_peak": (c_size_t, [c_void_p]),
    "tn_context_n_allocs": (c_uint64, [c_void_p]),
    "tn_context_n_threads": (c_int32, [c_void_p]),
    "tn_context_n_devices": (c_int32, [c_void_p]),
    "tn_context_device_get": (c_void_p, [c_void_p, c_int32]),
    "tn_context_device_by_name": (c_void_p, [c_void_p, c_char_p]),
    "tn_device_info_get": (c_int32, [c_void_p, POINTER(tn_device_info)]),
    "tn_device_details": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "tn_context_absent_backends": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "tn_precision_name": (c_char_p, [c_int32]),
    "tn_precision_by_name": (c_int32, [c_char_p]),
    "tn_precision_nmse": (c_double, [c_int32]),
    "tn_precision_text": (c_char_p, [c_int32]),
    "tn_device_has_precision": (c_int32, [c_void_p, c_int32]),
    "tn_op_name": (c_char_p, [c_int32]),
    "tn_graph_create": (c_int32, [c_void_p, POINTER(c_void_p)]),
    "tn_graph_destroy": (None, [POINTER(c_void_p)]),
    "tn_graph_status": (c_int32, [c_void_p]),
    "tn_graph_input": (c_void_p, [c_void_p, c_char_p, c_int32, c_int32, POINTER(c_int64)]),
    "tn_graph_weight": (c_void_p, [c_void_p, c_char_p, c_int32, c_int32, POINTER(c_int64)]),
    "tn_graph_state": (c_void_p, [c_void_p, c_char_p, c_int32, c_int32, POINTER(c_int64)]),
    "tn_graph_output": (None, [c_void_p, c_char_p, c_void_p]),
    "tn_graph_name": (c_void_p, [c_void_p, c_void_p, c_char_p]),
    "tn_tensor_dtype": (c_int32, [c_void_p]),
    "tn_tensor_n_dims": (c_int32, [c_void_p]),
    "tn_tensor_dim": (c_int64, [c_void_p, c_int32]),
    "tn_op_reshape": (c_void_p, [c_void_p, c_void_p, c_int32, POINTER(c_int64)]),
    "tn_op_permute": (c_void_p, [c_void_p, c_void_p, POINTER(c_int32)]),
    "tn_op_slice": (c_void_p, [c_void_p, c_void_p, c_int32, c_int64, c_int64]),
    "tn_op_copy": (c_void_p, [c_void_p, c_void_p, c_int32]),
    "tn_op_concat": (c_void_p, [c_void_p, c_void_p, c_void_p, c_int32]),
    "tn_op_unary": (c_void_p, [c_void_p, c_void_p, POINTER(tn_unary_params)]),
    "tn_op_binary": (c_void_p, [c_void_p, c_int32, c_void_p, c_void_p]),
    "tn_op_add": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tn_op_mul": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tn_op_scale": (c_void_p, [c_void_p, c_void_p, c_float]),
    "tn_op_reduce": (c_void_p, [c_void_p, c_void_p, c_int32]),
    "tn_op_softmax": (c_void_p, [c_void_p, c_void_p, c_void_p, c_float]),
    "tn_op_argmax": (c_void_p, [c_void_p, c_void_p]),
    "tn_op_argmax_logprob": (c_void_p, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "tn_op_top_k": (c_void_p, [c_void_p, c_void_p, c_void_p, POINTER(tn_top_k_params)]),
    "tn_op_get_rows": (c_void_p, [c_void_p, c_void_p, c_void_p, c_float]),
    "tn_op_rms_norm": (c_void_p, [c_void_p, c_void_p, c_void_p, c_float]),
    "tn_op_layer_norm": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, c_float]),
    "tn_op_glu": (c_void_p, [c_void_p, c_void_p, c_void_p, POINTER(tn_glu_params)]),
    "tn_op_rope": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(tn_rope_params)]),
    "tn_op_cache_write": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "tn_op_short_conv": (c_void_p, [c_void_p, POINTER(tn_short_conv_args), POINTER(c_void_p)]),
    "tn_op_delta_rule": (c_void_p, [c_void_p, POINTER(tn_delta_rule_args), POINTER(tn_delta_rule_params),
        POINTER(c_void_p)]),
    "tn_op_attention": (c_void_p, [c_void_p, POINTER(tn_attention_args), POINTER(tn_attention_params)]),
    "tn_op_matmul": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tn_op_matmul_id": (c_void_p, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "tn_op_moe_weights": (c_void_p, [c_void_p, c_void_p, c_void_p, POINTER(tn_moe_weights_params)]),
    "tn_op_moe_sum": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "tn_graph_op": (c_void_p, [c_void_p, c_int32, c_int32, POINTER(c_void_p), c_void_p, POINTER(c_void_p)]),
    "tn_plan_config_init": (None, [POINTER(tn_plan_config), c_size_t]),
    "tn_plan_create": (c_int32, [c_void_p, POINTER(tn_plan_config), POINTER(c_void_p)]),
    "tn_plan_ref": (c_void_p, [c_void_p]),
    "tn_plan_unref": (None, [POINTER(c_void_p)]),
    "tn_plan_info_get": (c_int32, [c_void_p, POINTER(tn_plan_info)]),
    "tn_plan_step_get": (c_int32, [c_void_p, c_int32, c_int64, POINTER(tn_plan_step_info)]),
    "tn_plan_step_shapes": (c_size_t, [c_void_p, c_int32, c_void_p, c_size_t]),
    "tn_plan_dump": (c_int32, [c_void_p, c_int32, POINTER(c_void_p)]),
    "tn_text_free": (None, [c_void_p, c_void_p]),
    "tn_runner_create": (c_int32, [c_void_p, POINTER(tn_binding), c_int32, POINTER(c_void_p)]),
    "tn_runner_destroy": (None, [POINTER(c_void_p)]),
    "tn_runner_write": (c_int32, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "tn_runner_read": (c_int32, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "tn_runner_run": (c_int32, [c_void_p]),
    "tn_runner_profile": (c_int32, [c_void_p, c_int32]),
    "tn_runner_step_ns": (c_uint64, [c_void_p, c_int32]),
    "tn_model_config_init": (None, [POINTER(tn_model_config), c_size_t]),
    "tn_model_open": (c_int32, [c_void_p, c_char_p, POINTER(tn_model_config), POINTER(c_void_p)]),
    "tn_source_init": (None, [POINTER(tn_source), c_size_t]),
    "tn_model_open_source": (c_int32, [c_void_p, POINTER(tn_source), POINTER(tn_model_config),
        POINTER(c_void_p)]),
    "tn_model_open_cancel": (None, [c_void_p, c_int32]),
    "tn_model_ref": (c_void_p, [c_void_p]),
    "tn_model_unref": (None, [POINTER(c_void_p)]),
    "tn_model_info_get": (c_int32, [c_void_p, POINTER(tn_model_info)]),
    "tn_model_shape_init": (None, [POINTER(tn_model_shape), c_size_t]),
    "tn_model_shape_get": (c_int32, [c_void_p, c_char_p, POINTER(tn_model_shape)]),
    "tn_model_create_random": (c_int32, [c_void_p, POINTER(tn_model_shape), POINTER(tn_model_config),
        POINTER(c_void_p)]),
    "tn_session_config_init": (None, [POINTER(tn_session_config), c_size_t]),
    "tn_session_predict": (c_int32, [c_void_p, POINTER(tn_session_config), POINTER(tn_session_memory)]),
    "tn_session_create": (c_int32, [c_void_p, POINTER(tn_session_config), POINTER(c_void_p)]),
    "tn_session_memory_get": (c_int32, [c_void_p, POINTER(tn_session_memory)]),
    "tn_session_destroy": (None, [POINTER(c_void_p)]),
    "tn_session_n_ctx": (c_int32, [c_void_p]),
    "tn_session_n_ctx_seq": (c_int32, [c_void_p]),
    "tn_session_n_batch": (c_int32, [c_void_p]),
    "tn_session_width": (c_int32, [c_void_p]),
    "tn_session_result": (c_int32, [c_void_p]),
    "tn_session_eval": (c_int32, [c_void_p, POINTER(tn_feed), c_int32]),
    "tn_session_feed": (c_int32, [c_void_p, c_int32, POINTER(c_int32), c_int32]),
    "tn_session_logits": (POINTER(c_float), [c_void_p, c_int32]),
    "tn_session_best": (c_int32, [c_void_p, c_int32, POINTER(c_int32), POINTER(c_float)]),
    "tn_session_n_outputs": (c_int32, [c_void_p]),
    "tn_session_length": (c_int32, [c_void_p, c_int32]),
    "tn_session_truncate": (c_int32, [c_void_p, c_int32, c_int32]),
    "tn_session_branch": (c_int32, [c_void_p, c_int32, c_int32, c_int32]),
    "tn_session_tokens": (c_int32, [c_void_p, c_int32, c_int32, POINTER(c_int32), c_int32]),
    "tn_session_reuse": (c_int32, [c_void_p, c_int32, POINTER(c_int32), c_int32, POINTER(c_int32)]),
    "tn_session_save": (c_int32, [c_void_p, c_char_p]),
    "tn_session_load": (c_int32, [c_void_p, c_char_p]),
    "tn_session_save_memory": (c_int32, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "tn_session_load_memory": (c_int32, [c_void_p, c_void_p, c_size_t]),
    "tn_session_cancel": (None, [c_void_p, c_int32]),
    "tn_session_profile": (None, [c_void_p, c_int32]),
    "tn_session_step_time": (c_int32, [c_void_p, c_int32, POINTER(tn_step_time)]),
    "tn_session_plan_get": (c_void_p, [c_void_p]),
    "tn_model_plan_create": (c_int32, [c_void_p, POINTER(tn_session_config), c_int32, c_int32,
        POINTER(c_void_p)]),
    "tn_model_plan_dump": (c_int32, [c_void_p, POINTER(tn_session_config), c_int32, c_int32,
        POINTER(c_void_p)]),
    "tn_model_host_overhead": (c_int32, [c_void_p, POINTER(tn_session_config), POINTER(c_double)]),
    "tn_sampling_init": (None, [POINTER(tn_sampling), c_size_t]),
    "tn_generation_config_init": (None, [POINTER(tn_generation_config), c_size_t]),
    "tn_generation_create": (c_int32, [c_void_p, POINTER(tn_generation_config), POINTER(c_void_p)]),
    "tn_generation_destroy": (None, [POINTER(c_void_p)]),
    "tn_generation_prompt": (c_int32, [c_void_p, POINTER(c_int32), c_size_t]),
    "tn_generation_start": (c_int32, [c_void_p, POINTER(c_int32), c_size_t]),
    "tn_generation_step": (c_int32, [c_void_p, POINTER(tn_piece)]),
    "tn_generation_stats_get": (c_int32, [c_void_p, POINTER(tn_generation_stats)]),
    "tn_tokenize": (c_int32, [c_void_p, c_char_p, c_size_t, c_int32, POINTER(POINTER(c_int32)),
        POINTER(c_size_t)]),
    "tn_tokenize_pair": (c_int32, [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_size_t,
        POINTER(POINTER(c_int32)), POINTER(c_size_t)]),
    "tn_tokens_free": (None, [c_void_p, POINTER(c_int32)]),
    "tn_detokenize": (c_int32, [c_void_p, POINTER(c_int32), c_size_t, c_int32, POINTER(c_void_p),
        POINTER(c_size_t)]),
    "tn_chat_config_init": (None, [POINTER(tn_chat_config), c_size_t]),
    "tn_chat_tokenize": (c_int32, [c_void_p, POINTER(tn_turn), c_size_t, POINTER(tn_chat_config),
        POINTER(POINTER(c_int32)), POINTER(c_size_t)]),
    "tn_chat_tokenize_last": (c_int32, [c_void_p, POINTER(tn_turn), c_size_t, POINTER(tn_chat_config),
        c_size_t, POINTER(c_size_t), POINTER(POINTER(c_int32)), POINTER(c_size_t)]),
    "tn_chat_render": (c_int32, [c_void_p, POINTER(tn_turn), c_size_t, POINTER(tn_chat_config),
        POINTER(c_void_p), POINTER(c_size_t)]),
    "tn_chat_template_name": (c_char_p, [c_void_p]),
    "tn_chat_tool_format": (c_char_p, [c_void_p, POINTER(tn_chat_config)]),
    "tn_model_has_chat_template": (c_int32, [c_void_p]),
    "tn_token_is_end": (c_int32, [c_void_p, c_int32]),
    "tn_embedder_config_init": (None, [POINTER(tn_embedder_config), c_size_t]),
    "tn_embedder_create": (c_int32, [c_void_p, POINTER(tn_embedder_config), POINTER(c_void_p)]),
    "tn_embedder_destroy": (None, [POINTER(c_void_p)]),
    "tn_embedder_pooling": (c_int32, [c_void_p]),
    "tn_embedder_width": (c_int32, [c_void_p]),
    "tn_embedder_max_tokens": (c_int32, [c_void_p]),
    "tn_embedder_n_batch": (c_int32, [c_void_p]),
    "tn_embedder_run": (c_int32, [c_void_p, POINTER(tn_text_ids), c_int32, POINTER(c_float)]),
    "tn_embedder_cancel": (None, [c_void_p, c_int32]),
    "tn_model_class_label": (c_char_p, [c_void_p, c_int32]),
    "tn_engine_config_init": (None, [POINTER(tn_engine_config), c_size_t]),
    "tn_engine_predict": (c_int32, [c_void_p, POINTER(tn_engine_config), POINTER(tn_session_memory)]),
    "tn_engine_create": (c_int32, [c_void_p, POINTER(tn_engine_config), POINTER(c_void_p)]),
    "tn_engine_destroy": (None, [POINTER(c_void_p)]),
    "tn_request_config_init": (None, [POINTER(tn_request_config), c_size_t]),
    "tn_engine_submit": (c_int32, [c_void_p, POINTER(tn_request_config), POINTER(c_uint64)]),
    "tn_engine_cancel": (None, [c_void_p, c_uint64]),
    "tn_engine_pending": (c_int32, [c_void_p]),
    "tn_engine_step": (c_int32, [c_void_p, POINTER(POINTER(POINTER(tn_engine_event))), POINTER(c_int32)]),
    "tn_engine_start": (c_int32, [c_void_p]),
    "tn_engine_stop": (None, [c_void_p]),
    "tn_engine_descriptor": (c_int32, [c_void_p]),
    "tn_engine_take": (c_int32, [c_void_p, POINTER(POINTER(POINTER(tn_engine_event))), POINTER(c_int32)]),
    "tn_engine_memory_get": (c_int32, [c_void_p, POINTER(tn_session_memory)]),
    "tn_engine_stats_get": (c_int32, [c_void_p, POINTER(tn_engine_stats)]),
    "tn_tool_format": (c_char_p, [c_char_p]),
    "tn_tool_config_init": (None, [POINTER(tn_tool_config), c_size_t]),
    "tn_tool_parser_create": (c_int32, [c_void_p, POINTER(tn_tool_config), POINTER(c_void_p)]),
    "tn_tool_parser_destroy": (None, [POINTER(c_void_p)]),
    "tn_tool_parser_feed": (c_int32, [c_void_p, c_char_p, c_size_t, POINTER(POINTER(POINTER(tn_tool_event))),
        POINTER(c_int32)]),
    "tn_tool_parser_end": (c_int32, [c_void_p, POINTER(POINTER(POINTER(tn_tool_event))), POINTER(c_int32)]),
    "tn_tool_grammar_config_init": (None, [POINTER(tn_tool_grammar_config), c_size_t]),
    "tn_tool_grammar": (c_int32, [c_void_p, POINTER(tn_tool_grammar_config), POINTER(c_void_p)]),
    "tn_file_open": (c_int32, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "tn_file_close": (None, [POINTER(c_void_p)]),
    "tn_file_n_keys": (c_int64, [c_void_p]),
    "tn_file_key": (c_int32, [c_void_p, c_int64, c_int64, POINTER(c_void_p), POINTER(c_char_p),
        POINTER(c_char_p)]),
    "tn_file_n_tensors": (c_int64, [c_void_p]),
    "tn_file_tensor_get": (c_int32, [c_void_p, c_int64, POINTER(tn_file_tensor)]),
    "tn_file_find_tensor": (c_int64, [c_void_p, c_char_p]),
    "tn_file_read_tensor": (c_int32, [c_void_p, c_int64, c_int64, c_int64, POINTER(c_float)]),
    "tn_file_export_tensor": (c_int32, [c_void_p, c_int64, c_char_p]),
    "tn_file_size": (c_uint64, [c_void_p]),
    "tn_file_version": (c_uint32, [c_void_p]),
    "tn_file_n_parts": (c_int32, [c_void_p]),
    "tn_file_check": (c_int32, [c_void_p]),
    "tn_quantize_config_init": (None, [POINTER(tn_quantize_config), c_size_t]),
    "tn_quantize_types": (c_char_p, []),
    "tn_quantize": (c_int32, [c_void_p, c_char_p, c_char_p, POINTER(tn_quantize_config)]),
    "tn_adapter_open": (c_int32, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "tn_adapter_ref": (c_void_p, [c_void_p]),
    "tn_adapter_unref": (None, [POINTER(c_void_p)]),
    "tn_adapter_info_get": (c_int32, [c_void_p, POINTER(tn_adapter_info)]),
    "tn_session_adapter_scale": (c_int32, [c_void_p, c_int32, c_int32, c_float]),
}
