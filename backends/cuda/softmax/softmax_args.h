// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the kernels in softmax/: softmax and reduce, top_k, argmax, sample.
#ifndef TN_CUDA_SOFTMAX_ARGS_H
#define TN_CUDA_SOFTMAX_ARGS_H

#include "backends/cuda/runtime/args.h"

enum {
    TN_CUDA_SOFTMAX_RUNS = 4, // of four floats
    TN_CUDA_TOP_K_WARPS = 4,
    TN_CUDA_TOP_K_THREADS = 1024,
    TN_CUDA_MAX_GROUPS = 256,
};

typedef struct tn_cuda_softmax_args {
    tn_cuda_view x, mask, y; // mask without data: none
    float scale;
    int32_t kind; // TN_REDUCE_*
    int32_t aligned;
} tn_cuda_softmax_args;

typedef struct tn_cuda_top_k_args {
    tn_cuda_view x, y;
    const float *bias; // [n] or NULL
    uint32_t n_rows;
    int32_t k, n_groups, n_groups_used;
} tn_cuda_top_k_args;

enum {
    TN_CUDA_ARGMAX_THREADS = 256,
    TN_CUDA_ARGMAX_PART = 16 * TN_CUDA_ARGMAX_THREADS, // elements of a block
    TN_CUDA_ARGMAX_ROWS = 4096,                        // of a launch, where rows have several parts
};

// Best value of a part of a row, and the sum of exp(x - max) over the others of the part.
typedef struct tn_cuda_argmax_part {
    float max, sum;
    int32_t index, pad;
} tn_cuda_argmax_part;

typedef struct tn_cuda_argmax_args {
    tn_cuda_view x;
    tn_cuda_argmax_part *parts; // [rows, n_parts]
    uint32_t n_parts, first_row;
    int32_t aligned;
    int32_t *best;
    float *logprob; // NULL: argmax
} tn_cuda_argmax_args;

enum {
    TN_CUDA_SAMPLE_THREADS = 1024,
    TN_CUDA_SAMPLE_WEIGHT_BITS = 40,
    TN_CUDA_SAMPLE_BEST = 1,
    TN_CUDA_SAMPLE_DRAW = 2,
    TN_CUDA_SAMPLE_TOP = 20,
};

// The rows of the operands of `sample`, as ops/sample.h describes them.
typedef struct tn_cuda_sample_row {
    int32_t kind;
    float filter_temperature, temperature;
    int32_t top_k;
    float top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    int32_t first_edit, n_edits, mask;
    uint32_t random_low, random_high;
    int32_t n_top, unused;
} tn_cuda_sample_row;

typedef struct tn_cuda_sample_edit {
    int32_t token, count;
    float bias;
    int32_t unused;
} tn_cuda_sample_edit;

typedef struct tn_cuda_sample_result {
    int32_t token;
    float logit, max;
    uint32_t sum_low, sum_high;
    int32_t n_top, unused[2];
    struct {
        int32_t token;
        float logit;
    } top[TN_CUDA_SAMPLE_TOP];
} tn_cuda_sample_result;

typedef struct tn_cuda_sample_args {
    tn_cuda_view x;
    const tn_cuda_sample_row *rows;
    const tn_cuda_sample_edit *edits; // NULL: none
    const uint32_t *masks;            // NULL: none
    tn_cuda_sample_result *y;
    float *edited; // scratch for rows with edits or a mask, each of edited_row floats
    int64_t edited_row;
    int32_t mask_words, n_edits, n_masks; // rows of edits and masks
    int32_t aligned;                      // rows of x
} tn_cuda_sample_args;

#endif
