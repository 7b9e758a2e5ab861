// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the products of experts (product/experts/experts*.cu*).
#ifndef TN_CUDA_EXPERTS_ARGS_H
#define TN_CUDA_EXPERTS_ARGS_H

#include "backends/cuda/product/gemm/gemm_blocks_args.h"

enum {
    TN_EXPERTS_CONSUMERS = 4, // warpgroups that multiply, 64 rows of weights each
    TN_EXPERTS_THREADS = 128 * (1 + TN_EXPERTS_CONSUMERS),
    TN_EXPERTS_TILE = 64 * TN_EXPERTS_CONSUMERS, // rows of weights of a tile
    TN_EXPERTS_MAX_STAGES = 8,
    TN_EXPERTS_PREPARE_THREADS = 512,
};

// Bytes of a row of x as experts_prepare.cu writes it: k values of f16, of each 16 the even ones first, and
// for each 32 of them the pair of f16 of a 32nd of their sum, what f16 holds of it and the rest.
#define TN_EXPERTS_ROW(k) (2 * (int64_t)(k) + (k) / 8)

typedef struct tn_cuda_experts_seg {
    tn_cuda_tensor_map map[TN_CUDA_MAX_PLANES];
    tn_cuda_weight w;
} tn_cuda_experts_seg;

// The ids sorted by expert, each of which begins a tile of rows: rows of y of each row of each tile
// (negative: none), the expert of each tile, and how many tiles there are.
typedef struct tn_cuda_experts_table {
    int32_t *rows, *tile_group, *n_tiles;
    int32_t tile_rows;
} tn_cuda_experts_table;

typedef struct tn_cuda_experts_args {
    tn_cuda_experts_seg seg[2]; // of one type: gate and up, or one alone
    const char *x;              // rows of TN_EXPERTS_ROW(k) bytes
    const float *x_scale;       // a power of two, or NaN; results of a row of x are multiplied by it
    char *y;                    // rows of n f32, or of TN_EXPERTS_ROW(n) bytes for the next product
    const float *y_power; // for the next product: the power of two of the results of each row of x
    const int32_t *ids;   // rows of f32 whose id is no expert are zeroed
    int32_t n_ids, n_groups;
    tn_cuda_experts_table table;
    uint32_t x_factor; // row r of y has row r times this / 2^32 of x; 0: row r
    int32_t n, n_rows; // rows of the weight of an expert, and of all
    int32_t k, tiles_n, stages;
    int32_t glu, act; // TN_UNARY_*; of gate, for a gated pair
    float glu_limit, glu_alpha;
} tn_cuda_experts_args;

// experts_prepare.cu: rows of x, and the ids sorted by expert.
typedef struct tn_cuda_experts_prepare_args {
    tn_cuda_view x;
    char *to;
    float *scale;
    int32_t m, k;        // rows of x
    int32_t finite_rows; // a row with values that are not finite gets a scale of NaN
    // For results that are x of the next product: the largest norms of rows of gate and up, the power of two
    // of the results of each row of x, and its reciprocal for each of the `slots` rows of y; NULL: none.
    const float *norm_gate, *norm_up;
    float *y_power, *y_scale;
    int32_t slots;
    const int32_t *ids;
    int32_t n_ids, n_groups;
    int32_t sorters; // blocks that sort
    tn_cuda_experts_table table;
} tn_cuda_experts_prepare_args;

#endif
