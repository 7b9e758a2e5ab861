// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the matrix products of 9 to 64 rows (product/skinny/skinny*.cu).
#ifndef TN_CUDA_SKINNY_ARGS_H
#define TN_CUDA_SKINNY_ARGS_H

#include "backends/cuda/product/gemm/gemm_args.h"

// 16-bit weights: product/skinny/skinny.cuh.
enum {
    TN_SKINNY_ROWS = 64,  // rows of weights of a block; with GLU 32 of gate and 32 of up
    TN_SKINNY_K = 256,    // elements of k of a stage
    TN_SKINNY_STAGES = 3,
    TN_SKINNY_PAD = 8,    // packed16 behind a row of a stage, and floats behind a row of sums
    TN_SKINNY_MAX_SPLITS = 8,
};

// Blocks of integers and scales: skinny_blocks.cuh.
enum {
    TN_SKINNY_BLOCK_COLUMNS = 32,    // rows of x of a tile
    TN_SKINNY_BLOCK_TILES = 2,       // tiles of 16 rows of weights that a warp has at most
    TN_SKINNY_BLOCK_MAX_WARPS = 8,
    TN_SKINNY_BLOCK_MAX_SLOTS = 6,   // stages in shared memory
    TN_SKINNY_EARLY = 2,             // stages whose weights are loaded before the predecessor has ended
    // A stage of x is 256 values of 32 rows as f16, then for each row the sums of its 16 runs of 16 values.
    // A sum is a pair of f16 of a sixteenth of it: what f16 holds, and the rest. Eight values are a piece
    // of 16 bytes, in the order 0 2 1 3 4 6 5 7. Piece u of row c lies at c * 32 + TN_SKINNY_PIECE(u, c), so
    // that lanes which read pieces of different rows and parts of k meet different banks.
    TN_SKINNY_BLOCK_X = TN_SKINNY_BLOCK_COLUMNS * TN_SKINNY_K * 2,
    TN_SKINNY_BLOCK_STAGE = TN_SKINNY_BLOCK_X + TN_SKINNY_BLOCK_COLUMNS * (TN_SKINNY_K / 16) * 4,
};
#define TN_SKINNY_PIECE(u, c) ((u) ^ ((u) >> 3 & 1) ^ ((u) >> 4 & 1) * 4 ^ ((c) & 1) * 7 ^ ((c) & 2))
// Bytes, and pieces of 16 bytes in shared memory, of a row of a stage, for a plane with `bytes` bytes of
// each block of `elems` values. Planes whose blocks are multiples of 16 bytes lie there as they are; of
// others all aligned pieces that the bytes may touch.
#define TN_SKINNY_PLANE_BYTES(bytes, elems) ((bytes) * (TN_SKINNY_K / (elems)))
#define TN_SKINNY_PLANE_PIECES(bytes, elems)                                                                 \
    ((bytes) % 16 == 0 ? TN_SKINNY_PLANE_BYTES(bytes, elems) / 16                                            \
     : (elems) == TN_SKINNY_K && 16 % ((bytes) ? (bytes) : 1) == 0                                           \
         ? 1                                                                                                 \
         : (TN_SKINNY_PLANE_BYTES(bytes, elems) + 30) / 16)
// Bytes of all planes: an odd number of pieces, so that adjacent rows meet different banks.
#define TN_SKINNY_ROW_BYTES(pieces) (((pieces) | 1) * 16)

typedef struct tn_cuda_skinny_seg {
    tn_cuda_weight w;
    float *y;
    const float *bias; // NULL: none
    int64_t ld;        // elements of a row of y
    int32_t n;
    int32_t first_tile;
} tn_cuda_skinny_seg;

typedef struct tn_cuda_skinny_args {
    tn_cuda_skinny_seg seg[3]; // weights of one type; with GLU gate and up
    const void *x; // rows of ld packed16, zeros behind k; block types: stages [32 rows][256 of k]
    const float *row_scale; // y row r is multiplied by it; NULL: 1
    const float *residual;  // NULL: none
    // Rows of x in groups, as in product/gemm/gemm_args.h, in tiles of m rows (for blocks of 32); NULL: no
    // groups.
    const int32_t *tile_group, *row_to, *n_row_tiles;
    int64_t group_rows;
    int64_t ld, residual_ld;
    int32_t m, k;
    int32_t n_segs, n_tiles;
    int32_t splits; // blocks that share the columns of k of a tile
    int32_t slots;  // block types: stages in shared memory
    // Sums of each block that shares a tile: [tile][split][row of x][TN_SKINNY_ROWS]; for block types [tile
    // of x][block][0: tile of the block before, 1: tile of the next][32 rows of x times rows of weights, as
    // lanes have them].
    float *partial;
    int32_t *arrived; // of each tile (and tile of x), zero before; the last block finishes
    int32_t wide;   // plain weights: rows start at multiples of 16 bytes, k is a multiple of 16
    int32_t glu;
    int32_t act; // TN_UNARY_*; of gate, for GLU
    float glu_limit, glu_alpha;
} tn_cuda_skinny_args;

#endif
