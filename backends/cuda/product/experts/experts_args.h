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

typedef struct tn_cuda_experts_args {
    tn_cuda_experts_seg seg[2]; // of one type: gate and up, or one alone
    const char *x;              // rows of TN_EXPERTS_ROW(k) bytes
    const float *x_scale;       // results of a row of x are multiplied by it
    float *y;                   // rows of n
    // Rows of y of each row of each tile of rows, negative: none; the expert of each tile, and how many tiles
    // there are.
    const int32_t *rows, *tile_group, *n_tiles;
    uint32_t x_factor; // row r of y has row r times this / 2^32 of x; 0: row r
    int32_t n, n_rows; // rows of the weight of an expert, and of all
    int32_t k, tiles_n, stages;
    int32_t glu, act; // TN_UNARY_*; of gate, for a gated pair
    float glu_limit, glu_alpha;
} tn_cuda_experts_args;

// experts_prepare.cu: rows of x, and the ids sorted by expert, each of which begins a tile of rows.
typedef struct tn_cuda_experts_prepare_args {
    tn_cuda_view x;
    char *to;
    float *scale;
    int32_t m, k;        // rows of x
    int32_t finite_rows; // a row with values that are not finite gets a scale of NaN
    const int32_t *ids;
    int32_t n_ids, n_groups, tile_rows;
    int32_t sorters; // blocks that sort
    int32_t *rows, *tile_group, *n_tiles;
    float *y; // its rows whose id is no expert are zeroed
    int64_t y_n;
} tn_cuda_experts_prepare_args;

#endif
