// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the matrix products of 9 to 64 rows (kernels/few*.cu).
#ifndef TN_CUDA_ARGS_FEW_H
#define TN_CUDA_ARGS_FEW_H

#include "backends/cuda/args.h"

#include <tenon/params.h>

enum {
    TN_FEW_ROWS = 64,  // rows of weights of a block; with GLU 32 of gate and 32 of up
    TN_FEW_K = 256,    // elements of k of a stage
    TN_FEW_STAGES = 3,
    TN_FEW_PAD = 8,    // 16-bit elements behind a row of a stage, and floats behind a row of sums
    TN_FEW_MAX_SPLITS = 8,
};

typedef struct tn_cuda_few_seg {
    tn_cuda_weight w;
    float *y;
    const float *bias; // NULL: none
    int64_t ld;        // elements of a row of y
    int32_t n;
    int32_t first_tile;
} tn_cuda_few_seg;

typedef struct tn_cuda_few_args {
    tn_cuda_few_seg seg[3]; // weights of one type; with GLU gate and up
    const void *x;          // 16-bit rows of ld elements, zeros behind k
    const float *row_scale; // y row r is multiplied by it; NULL: 1
    const float *residual;  // NULL: none
    // Rows of x in groups, as in args_gemm.h, in tiles of m rows; NULL: no groups.
    const int32_t *tile_group, *row_to, *n_row_tiles;
    int64_t group_rows;
    int64_t ld, residual_ld;
    int32_t m, k;
    int32_t n_segs, n_tiles;
    int32_t splits; // blocks that share the columns of k of a tile
    float *partial;   // sums of each of them [tile][split][row of x][TN_FEW_ROWS], if there are several
    int32_t *arrived; // of each tile, zero before; the last block finishes
    int32_t wide;   // plain weights: rows start at multiples of 16 bytes, k is a multiple of 16
    int32_t glu;
    int32_t act; // TN_UNARY_*; of gate, for GLU
    float glu_limit, glu_alpha;
} tn_cuda_few_args;

#endif
