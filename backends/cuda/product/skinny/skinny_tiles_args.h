// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the matrix products of 9 to 64 rows whose tiles come by tensor copies, on compute
// capability 9.0 (product/skinny/skinny_tiles*.cu).
#ifndef TN_CUDA_SKINNY_TILES_ARGS_H
#define TN_CUDA_SKINNY_TILES_ARGS_H

#include "backends/cuda/product/skinny/skinny_args.h"

// A stage of x is 256 values of `columns` rows: the four matrices of TN_SKINNY_MATRIX_PIECE, for as many
// rows.
#define TN_SKINNY_TILES_STAGE(columns) ((columns)*TN_SKINNY_K * 2)
#define TN_SKINNY_TILES_PIECE(r, part, c, columns)                                                           \
    ((r) / 4 * (columns)*8 + (c)*8 + (((r) % 4 * 2 + (part)) ^ (c) % 8))

enum {
    TN_SKINNY_STAGE_ROWS = 256, // rows of weights of a stage, times 256 k; fewer rows with more k groups
    TN_SKINNY_TILES_GROUPS = 4, // warpgroups that multiply
    TN_SKINNY_TILES_THREADS = TN_SKINNY_TILES_GROUPS * 128,
    TN_SKINNY_TILES_SLOTS = 8,    // stages in shared memory at most
    TN_SKINNY_TILES_COLUMNS = 64, // rows of x at most
};

typedef struct tn_cuda_skinny_tiles_args {
    tn_cuda_tensor_map map[3][3]; // of each weight, the planes with 16 and more bytes of 256 values
    tn_cuda_skinny_seg seg[3];    // weights of one type; with GLU gate and up
    const void *x;                // stages [256 of k], as TN_SKINNY_TILES_PIECE says
    const float *row_scale;       // y row r is multiplied by it
    const float *residual;        // NULL: none
    int64_t residual_ld;          // elements
    float *partial;      // [block][0: tile of the block before, 1: tile of the next][sums as lanes have them]
    int32_t *arrived;    // of each tile, zero before; the last block finishes
    int32_t m, k_stages; // rows of x; stages of 256 k
    int32_t n_segs, n_tiles;
    int32_t row_groups, k_groups; // of warpgroups: rows of a tile / 64, and 4 / row_groups
    int32_t slots;                // stages in shared memory
    int32_t early;                // stages whose weights are requested before the predecessor has ended
    int32_t glu;
    int32_t act; // TN_UNARY_*; of gate, for GLU
    float glu_limit, glu_alpha;
} tn_cuda_skinny_tiles_args;

#endif
