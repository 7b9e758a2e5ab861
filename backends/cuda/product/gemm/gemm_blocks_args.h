// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the products of many rows with weights of block types (product/gemm/gemm_blocks.cuh).
#ifndef TN_CUDA_GEMM_BLOCKS_ARGS_H
#define TN_CUDA_GEMM_BLOCKS_ARGS_H

#include "backends/cuda/product/gemm/gemm_args.h"

enum {
    // A mode of tn_gemm_x beside those of gemm_args.h: TN_GEMM_F16 with even values before odd ones within 16
    // of k.
    TN_GEMM_F16_EVEN_FIRST = 16,
    // A mode of tn_gemm_w_*_any, which then writes no rows: row_scale becomes the largest Euclidean norm of a
    // row of the weight, and is 0 before.
    TN_GEMM_NORM,
    TN_GEMM_BLOCK_K = 256, // elements of k that weights are fetched for at a time
    TN_GEMM_X_K = 64,      // elements of k of a stage of x
};

// Columns of the result that come from one weight. Planes whose bytes for TN_GEMM_BLOCK_K elements are
// multiples of 16 are fetched through the maps, the others through `w`.
typedef struct tn_cuda_gemm_blocks_seg {
    tn_cuda_tensor_map map[TN_CUDA_MAX_PLANES];
    tn_cuda_weight w;
    float *y;
    const float *bias;  // NULL: none
    int64_t ld;         // elements of a row of y
    int32_t n, n_rows;  // rows of the weight, of a group and of all
    int32_t first_tile; // tiles of the segments before
} tn_cuda_gemm_blocks_seg;

typedef struct tn_cuda_gemm_blocks_args {
    tn_cuda_tensor_map x_map;
    tn_cuda_gemm_blocks_seg seg[TN_GEMM_MAX_SEGS]; // of one type, or two; gate and up for a gated pair
    const float *residual;                         // NULL: none
    int64_t residual_ld;                           // elements
    const float *row_scale;                        // y row r is multiplied by it; NULL: by 1
    const void *x;                                 // rows of f16
    // A gated pair is left as f16 rows of the next product, in the order of TN_GEMM_F16_EVEN_FIRST, row r
    // times y_power[r]; NULL: as f32. Without groups and without `any` only.
    const float *y_power;
    // Rows in groups, each with a weight of its own (matmul_id), as in gemm_args.h; NULL if not.
    const int32_t *tile_group, *row_to, *n_tiles;
    int32_t group_rows; // rows of a weight
    int32_t m, k;
    int32_t n_segs, tiles_m, tiles_n, group_m;
    int32_t slots, stages; // of weights and of x in shared memory
    int32_t x_rows;        // that are copied for a tile
    // Slices of tiles, TN_GEMM_BLOCK_K of k each, that a block multiplies, one tile after another. The
    // sums of each tile go to `partial`, to be added by tn_gemm_blocks_add_*. 0: blocks multiply whole tiles.
    int32_t share;
    float *partial;
    // Columns of tiles before the weights of a second type, and blocks that share those before; 0: one type.
    // With a share only, and at most group_m rows of tiles.
    int32_t other_tile, first_blocks;
    int32_t any;      // an activation other than SiLU of a gated pair; if not shared, a block has one tile
    int32_t glu, act; // TN_UNARY_*; of gate, for a gated pair
    float glu_limit, glu_alpha;
} tn_cuda_gemm_blocks_args;

// gemm_blocks_x.cu: rows of x as f16 in the order of TN_GEMM_F16_EVEN_FIRST.
typedef struct tn_cuda_gemm_blocks_x_args {
    const char *x;
    int64_t stride; // bytes from row to row; rows start at multiples of 16 bytes
    uint16_t *to;
    float *row_scale;  // 1 / the power of two of each row
    const float *norm; // weight of an rms_norm that rows go through first; NULL: none
    float eps;
    int32_t m, k; // k is a multiple of 8
    // Of a gated pair that is left as f16 rows: the largest Euclidean norms of rows of gate and of up, and
    // where the powers of two that bring the rows of the result into the range of f16 go, and their
    // reciprocals; NULL: none.
    const float *norm_gate, *norm_up;
    float *y_power, *y_scale;
} tn_cuda_gemm_blocks_x_args;

#endif
