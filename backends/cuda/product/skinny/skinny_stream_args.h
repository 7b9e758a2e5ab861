// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the matrix products of 9 to 88 rows whose warps stream their own weights, on compute
// capability 9.0 (product/skinny/skinny_stream*.cu).
#ifndef TN_CUDA_SKINNY_STREAM_ARGS_H
#define TN_CUDA_SKINNY_STREAM_ARGS_H

#include "backends/cuda/product/skinny/skinny_args.h"

enum {
    TN_SKINNY_STREAM_ROWS = 16,  // rows of weights of a warp
    TN_SKINNY_STREAM_MAX_X = 24, // stages of x in shared memory at most
    TN_SKINNY_STREAM_WARPS = 4,  // a warpgroup, which has the same stages of x
};

// A stage of x is 256 of k for `columns` rows: four matrices of 64 k, with rows of 128 bytes in the 128-byte
// swizzle. Within 16 of k even values stand before odd ones: the piece of 16 bytes with the even (part 0) or
// odd (part 1) values of run r of 16, row c, is number TN_SKINNY_STREAM_PIECE.
#define TN_SKINNY_STREAM_PIECE(r, part, c, columns)                                                          \
    ((r) / 4 * (columns)*8 + (c)*8 + (((r) % 4 * 2 + (part)) ^ (c) % 8))
#define TN_SKINNY_STREAM_X(columns) ((columns)*TN_SKINNY_K * 2)
// A fifth matrix, which types without minimums do not read, has the sums of the 8 runs of 32 in 16 k, with
// rows of 32 bytes in the 32-byte swizzle: a pair of f16 of a 32nd of the sum, what f16 holds of it and the
// rest. Lane q reads runs q and q + 4. This is the byte of the pair of run r, row c.
#define TN_SKINNY_STREAM_SUM(r, c, columns)                                                                  \
    (TN_SKINNY_STREAM_X(columns) + (c)*32 + ((r) / 4 ^ (c) / 4 % 2) * 16 + (r) % 4 * 4)
#define TN_SKINNY_STREAM_SUMS(columns) ((columns)*32)
// Matrices with a swizzle of 128 bytes begin at multiples of 1024.
#define TN_SKINNY_STREAM_STAGE(columns)                                                                      \
    ((TN_SKINNY_STREAM_X(columns) + TN_SKINNY_STREAM_SUMS(columns) + 1023) / 1024 * 1024)

enum {
    TN_SKINNY_STREAM_SLOTS = 2, // of weights of a warp; three leave less shared memory for x
};

// Warps of a block at most, as registers allow.
#define TN_SKINNY_STREAM_LIGHT(t) ((t) == TN_TYPE_Q4_K || (t) == TN_TYPE_Q5_K)
#define TN_SKINNY_STREAM_MAX_WARPS(t, other, columns)                                                        \
    ((columns) <= 64 || (TN_SKINNY_STREAM_LIGHT(t) && (t) == (other)) ? 16 : 12)

// Where the step before leaves the stages of x (TN_CUDA_READS_QUANTISED of runtime/kernel.h): the factors of
// the results of its rows stand behind them.
#define TN_SKINNY_STAGED_SCALE(columns, k) ((int64_t)(k) / TN_SKINNY_K * TN_SKINNY_STREAM_STAGE(columns))
#define TN_SKINNY_STAGED_SIZE(columns, k)  (TN_SKINNY_STAGED_SCALE(columns, k) + 4 * (columns))

typedef struct tn_cuda_skinny_stream_args {
    tn_cuda_skinny_seg seg[3]; // weights of one type or two; with GLU gate and up
    const void *x;             // stages
    const float *row_scale;    // y row r is multiplied by it
    const float *residual;     // NULL: none
    int64_t residual_ld;       // elements
    int32_t m, k_stages;       // rows of x; stages of 256 k
    int32_t n_segs, n_tiles;   // tiles: the rows of weights of a warp
    int32_t other_tile;        // first tile of the second type, of kernels with two: a multiple of 4
    // Warps of a block: side by side, and those that take turns with the stages of the same rows. Blocks of a
    // cluster that have a part of k each. Only blocks with one of each run through several tiles.
    int32_t row_warps, k_warps, splits; // row_warps: a multiple of 4
    int32_t x_slots; // stages of x in shared memory; less than all stages: a multiple of k_warps
    int32_t glu;
    int32_t act; // TN_UNARY_*; of gate, for GLU
    float glu_limit, glu_alpha;
} tn_cuda_skinny_stream_args;

#endif
