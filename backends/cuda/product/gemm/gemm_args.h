// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the matrix products on tensor cores (product/gemm/gemm*.cu).
#ifndef TN_CUDA_GEMM_ARGS_H
#define TN_CUDA_GEMM_ARGS_H

#include "backends/cuda/runtime/args.h"

#include <tenon/params.h>

enum {
    TN_GEMM_MAX_SEGS = 3,
    // Columns that tiles of the result are counted in: the rows of a weight in one tensor copy.
    TN_GEMM_TILE64 = 64,
    TN_GEMM_ROWS = 128, // of a tile of the result
    // Values of a row of x that share a scale in TN_GEMM_E4M3: the k of a stage of gemm_e4m3.cu.
    TN_GEMM_RUN = 128,
    TN_GEMM_SPLIT_TILES = 512, // tiles whose k several blocks share, at most
};

// A CUtensorMap, whose header device code does without.
typedef struct tn_cuda_tensor_map {
#ifdef __cplusplus
    alignas(64)
#else
    _Alignas(64)
#endif
        uint64_t opaque[16];
} tn_cuda_tensor_map;

// How operands stand for f32 values. In all modes a row is counted in packed16, elements of 16 bits.
enum {
    TN_GEMM_BF16,   // rounded to bf16
    TN_GEMM_F16,    // rounded to f16; rows of x are first scaled by a power of two
    TN_GEMM_BF16X3, // split into bf16 terms: k becomes 3 k, x = [hi, hi, lo] and w = [hi, lo, hi]
    TN_GEMM_TF32,   // f32 rounded to 11 significant bits, two packed16 each
    // e4m3, two in a packed16. Runs of TN_GEMM_RUN values of x and rows of w are first scaled by a power of
    // two; the scale of run i of row r of x is at [i * m + r].
    TN_GEMM_E4M3,
};

// Columns of the result that come from one weight: y[r * ld + c] for c in [0, n).
typedef struct tn_cuda_gemm_seg {
    float *y;
    const float *bias;  // NULL: none
    const void *w;      // rows of packed16
    const float *w_scale; // columns of y are multiplied by it, counted as the rows of w; TN_GEMM_E4M3 only
    int64_t ld;         // elements
    int32_t n;
    int32_t first_tile64; // tiles of 64 columns (TN_GEMM_TILE64) of the segments before
    int32_t wide;       // rows of y start at multiples of 16 bytes
} tn_cuda_gemm_seg;

typedef struct tn_cuda_gemm_args {
    tn_cuda_tensor_map x_map, w_map[TN_GEMM_MAX_SEGS];
    tn_cuda_gemm_seg seg[TN_GEMM_MAX_SEGS];
    const float *residual;  // NULL: none. Starts at the first column of segment 0
    int64_t residual_ld;    // elements
    int32_t residual_wide;  // its rows start at multiples of 16 bytes
    const float *row_scale; // y row r is multiplied by it; NULL: 1. TN_GEMM_E4M3: the scales of runs of x
    const void *x;          // rows of packed16
    int64_t ld;             // packed16 of a row of x and of the weights, a multiple of 8
    // Rows in groups, each with a weight of its own (matmul_id), NULL if not: the group of each tile of
    // rows, where row r of x goes in y (negative: nowhere), and how many tiles of rows there are.
    const int32_t *tile_group, *row_to, *n_tiles;
    int64_t group_rows; // rows of a weight
    int32_t m, k;     // rows of x; packed16 of k
    int32_t n_groups; // 0: no groups
    int32_t n_segs;
    int32_t tiles_m, tiles_n;
    int32_t group_m; // rows of tiles that are walked through together, so that their operands stay in L2
    // Blocks that share the k of a tile, 16-bit modes without groups only, and where they leave their sums:
    // [tile][block][TN_GEMM_ROWS x columns of a tile]. At most TN_GEMM_SPLIT_TILES tiles.
    int32_t splits;
    float *partial;
    // No step of the plan and no launch before this one makes the weights, so they can be fetched before the
    // predecessor has ended. Without groups only.
    int32_t w_early;
    int32_t act;     // TN_UNARY_*; of gate, for GLU
    float glu_limit, glu_alpha;
    // With GLU only: y is bf16, or e4m3 with scales of runs as x of the next product has them. ld and n count
    // elements of y.
    int32_t writes_packed16;
    float *y_scale; // TN_GEMM_E4M3 with writes_packed16: of the first column of segment 0
} tn_cuda_gemm_args;

// gemm_prepare.cu: rows of f32 -> rows of packed16.
typedef struct tn_cuda_gemm_x_args {
    tn_cuda_view x;
    void *to;
    float *row_scale;        // 1 / the power of two of each row, or of each run; NULL: no scaling
    const int32_t *row_from; // source row of each row, negative: none; NULL: the same
    const int32_t *n_tiles;  // of tile_rows rows that are there; NULL: all
    int32_t tile_rows;
    // Rows of y whose id is no group are zeroed: ids NULL, or n_ids of them, and y with rows of y_n.
    const int32_t *ids;
    int32_t n_ids, n_groups;
    float *y;
    int64_t y_n;
    const float *norm;       // weight of an rms_norm that rows go through first; NULL: none
    float eps;
    int32_t *zero; // n_zero integers that later kernels count in
    int32_t n_zero;
    int32_t m, k;
    int64_t ld; // packed16 of a row of `to`; what lies behind k is zeroed
    int32_t mode;
    int32_t finite_rows; // skinny/skinny_prepare.cu: a row with a value that is not finite has a scale of NaN
} tn_cuda_gemm_x_args;

// gemm_prepare.cu: rows of a weight -> rows of packed16.
typedef struct tn_cuda_gemm_w_args {
    tn_cuda_weight w;
    void *to;
    float *row_scale; // 1 / the power of two of each row of `to`; NULL: no scaling
    int64_t first_row, n_rows; // of each group
    int64_t group_rows;        // rows of a group in the weight
    const int32_t *counts;     // rows of x of each group, which needs no weights if 0; NULL: one group
    int32_t k;
    int64_t ld;
    int32_t mode;
} tn_cuda_gemm_w_args;

// Rows of x sorted by what their id says, each group beginning a tile of its own.
enum { TN_GEMM_MAX_GROUPS = 1024 };
typedef struct tn_cuda_gemm_groups_args {
    const int32_t *ids; // n_ids, `used` of each row of x, or of each group of `used` rows if per_id
    int32_t n_ids, used, per_id;
    int32_t n_groups, tile_rows;
    int32_t *tile_group, *row_from, *row_to, *n_tiles, *counts;
} tn_cuda_gemm_groups_args;

#endif
