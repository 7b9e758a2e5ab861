// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which steps the kernels of each op take, for kernels.def; the same at every level. Matrix products:
// product.h.
#ifndef TN_CPU_ACCEPTS_H
#define TN_CPU_ACCEPTS_H

#include "backends/cpu/kernel.h"

bool tn_cpu_accepts_copy(const tn_step *step);
bool tn_cpu_accepts_concat(const tn_step *step);
bool tn_cpu_accepts_unary(const tn_step *step);
bool tn_cpu_accepts_binary(const tn_step *step);
bool tn_cpu_accepts_reduce(const tn_step *step);
bool tn_cpu_accepts_softmax(const tn_step *step);
bool tn_cpu_accepts_argmax(const tn_step *step);
bool tn_cpu_accepts_top_k(const tn_step *step);
bool tn_cpu_accepts_get_rows(const tn_step *step);
bool tn_cpu_accepts_rms_norm(const tn_step *step);
bool tn_cpu_accepts_layer_norm(const tn_step *step);
bool tn_cpu_accepts_glu(const tn_step *step);
bool tn_cpu_accepts_rope(const tn_step *step);
bool tn_cpu_accepts_cache_write(const tn_step *step);
bool tn_cpu_accepts_attention(const tn_step *step);
bool tn_cpu_accepts_moe_weights(const tn_step *step);
bool tn_cpu_accepts_moe_sum(const tn_step *step);
bool tn_cpu_accepts_moe_route(const tn_step *step);
bool tn_cpu_accepts_moe_combine(const tn_step *step);
bool tn_cpu_accepts_add_rms_norm(const tn_step *step);
bool tn_cpu_accepts_norm_rope(const tn_step *step);
bool tn_cpu_accepts_short_conv(const tn_step *step);
bool tn_cpu_accepts_delta_rule(const tn_step *step);

// Shared scratch of attention: tiles of each thread, and partial results of key ranges.
size_t tn_cpu_scratch_attention(const tn_step *step, int32_t n_threads);

// Of delta_rule: for each thread some columns of a head's matrix, a query and a key.
size_t tn_cpu_scratch_delta_rule(const tn_step *step, int32_t n_threads);

// Columns that one thread keeps at a time, a multiple of all vector lengths; most weights of a channel.
enum { TN_CPU_DELTA_COLUMNS = 32, TN_CPU_MAX_CONV = 16 };

// Most rotated elements of a head, and most results of top_k: tables of that size lie on the stack.
enum { TN_CPU_MAX_ROT = 1024, TN_CPU_MAX_K = 1024, TN_CPU_MAX_GROUPS = 256 };

#endif
