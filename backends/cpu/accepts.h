// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Limits of the kernels that their functions in c/accepts.c look at, and the scratch that some need. The
// prototypes of those functions come from kernels.def (kernels.h).
#ifndef TN_CPU_ACCEPTS_H
#define TN_CPU_ACCEPTS_H

#include "backends/cpu/kernel.h"

// c/parts.c, for steps with one phase: parts for so many units (rows, chunks) that cannot be cut, which read
// and write so many bytes in all.
int32_t tn_cpu_parts(const tn_cpu_task *task, int64_t n_units, int64_t size);
int32_t tn_cpu_parts_one(const tn_cpu_task *task); // one phase of one part

// Shared scratch of attention: tiles of each thread, and partial results of key ranges.
size_t tn_cpu_scratch_attention(const tn_step *step, int32_t n_threads);

// Of delta_rule: for each thread some columns of a head's matrix, a query and a key.
size_t tn_cpu_scratch_delta_rule(const tn_step *step, int32_t n_threads);

// Columns that one thread keeps at a time, a multiple of all vector lengths; most weights of a channel.
enum { TN_CPU_DELTA_COLUMNS = 32, TN_CPU_MAX_CONV = 16 };

// Channels of an item of short_conv.
enum { TN_CPU_CONV_CHANNELS = 128 };

// Most rotated elements of a head, and most results of top_k: tables of that size lie on the stack.
enum { TN_CPU_MAX_ROT = 1024, TN_CPU_MAX_K = 1024, TN_CPU_MAX_GROUPS = 256 };

#endif
