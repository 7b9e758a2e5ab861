// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of recurrent/recurrent.cu: states and the tokens of several sequences.
#ifndef TN_CUDA_RECURRENT_ARGS_H
#define TN_CUDA_RECURRENT_ARGS_H

#include "backends/cuda/runtime/args.h"

#include <tenon/params.h>

enum {
    TN_CUDA_CONV_THREADS = 128, // channels of a block
    TN_CUDA_CONV_TOKENS = 32,   // of a block; more than a state has rows
    TN_CUDA_CONV_KERNEL = 8,    // taps at most
    TN_CUDA_DELTA_THREADS = 256,
    TN_CUDA_DELTA_COLUMNS = 32, // of a matrix, in a block
};

// Tokens q_start[s] .. q_start[s + 1] - 1 read slot slots[s][0] and write slots[s][1]; slots outside [0,
// n_slots) do not exist.
typedef struct tn_cuda_runs {
    const int32_t *q_start; // [n_seq + 1]
    const int32_t *slots;   // [n_seq, 2]
    int32_t n_seq, n_slots;
} tn_cuda_runs;

typedef struct tn_cuda_conv_args {
    tn_cuda_runs runs;
    float *state;               // [n_slots, kernel - 1, n]
    const char *x, *w;          // [T, n], [n, kernel]
    char *y;                    // [T, n]
    int64_t x_row, w_row, y_row; // bytes
    int32_t n, kernel;
} tn_cuda_conv_args;

typedef struct tn_cuda_delta_args {
    tn_cuda_runs runs;
    float *state;                  // [n_slots, heads, dim, columns]
    tn_cuda_view q, k, v, y;       // [T, heads, elements], heads of q and k are n_key_heads
    const char *g, *beta;          // [T, heads]
    int64_t g_row, beta_row;       // bytes
    int32_t n_heads, n_key_heads, dim, columns;
    tn_delta_rule_params p;
} tn_cuda_delta_args;

#endif
