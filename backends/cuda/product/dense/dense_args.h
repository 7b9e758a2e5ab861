// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the matrix products of 3 to 112 rows with 16-bit weights on compute capability 9.0
// (product/dense/dense*.cu).
#ifndef TN_CUDA_DENSE_ARGS_H
#define TN_CUDA_DENSE_ARGS_H

#include "backends/cuda/product/gemm/gemm_args.h"

enum {
    TN_DENSE_K = 64,         // elements of k of a panel: 128 bytes, the width of the swizzle
    TN_DENSE_PANEL_ROW = 2 * TN_DENSE_K, // bytes
    TN_DENSE_BOX = 64,       // rows of weights that one wgmma multiplies
    TN_DENSE_GROUPS = 2,     // warpgroups that multiply
    TN_DENSE_SUMMING = 256,  // their threads
    TN_DENSE_THREADS = 384,  // and a warpgroup of which one thread copies
    TN_DENSE_PREPARE = 512,  // threads of the kernel that makes rows of x, at most
    TN_DENSE_MAX_SLOTS = 12, // stages in shared memory
    TN_DENSE_MAX_SPLITS = 2, // blocks of a cluster
    TN_DENSE_ALIGN = 1024,   // bytes that swizzled tiles are aligned to
    // Up to this many rows of x are split into a high and a low part of 16 bits: the low part of row r is row
    // r + TN_DENSE_SPLIT, of 2 * TN_DENSE_SPLIT rows.
    TN_DENSE_SPLIT = 8,
};

// Columns of the result that come from one weight: y[r * ld + c] for c in [0, n).
typedef struct tn_cuda_dense_seg {
    void *y;
    const float *bias; // NULL: none
    int64_t ld;        // elements
    int32_t n;
    int32_t first_tile;
} tn_cuda_dense_seg;

typedef struct tn_cuda_dense_args {
    tn_cuda_tensor_map x_map, w_map[TN_GEMM_MAX_SEGS]; // boxes of rows by TN_DENSE_K
    tn_cuda_dense_seg seg[TN_GEMM_MAX_SEGS];           // with GLU gate and up
    const float *row_scale;                            // y row r is multiplied by it; NULL: 1
    const float *residual;                             // NULL: none
    int64_t residual_ld;                               // elements
    int32_t m;
    int32_t n_segs, n_tiles;
    int32_t box_rows;    // rows of weights of a box, a multiple of 8
    int32_t panels;      // of a stage
    int32_t n_stages;    // of a tile
    int32_t splits;      // blocks of a cluster, which share the stages of a tile
    int32_t shares_box;  // the warpgroups share the one box of a tile, not with GLU
    int32_t slots;       // stages in shared memory
    int32_t x_rows;      // of x that are copied at a time
    int32_t x_low;       // the row at which low parts of x begin, if they are copied apart; else 0
    int32_t panel_bytes; // of weights and x
    int32_t splits_x;    // x has high and low parts
    int32_t glu;
    int32_t act; // TN_UNARY_*; of gate, for GLU
    float glu_limit, glu_alpha;
    // y is bf16, ld counts such; with splits_x its low parts are m rows further. With GLU only.
    int32_t writes_packed16;
} tn_cuda_dense_args;

// dense_prepare.cu: rows of f32 -> rows of 16 bits.
typedef struct tn_cuda_dense_x_args {
    tn_cuda_view x;
    void *to;           // rows of ld elements, zeros behind k
    float *row_scale;   // 1 / the power of two of each row; NULL: no scaling
    const float *norm;  // weight of an rms_norm that rows go through first; NULL: none
    float eps;
    int32_t m, k;
    int64_t ld;
    int32_t f16;   // else bf16
    int32_t split; // also what rounding leaves of each value, TN_DENSE_SPLIT rows further
} tn_cuda_dense_x_args;

#endif
