// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the matrix products that read weights as they are (product/matmul_any.cu,
// product/matvec/matvec*.cu): all six ops.
#ifndef TN_CUDA_MATVEC_ARGS_H
#define TN_CUDA_MATVEC_ARGS_H

#include "backends/cuda/runtime/args.h"
#include "backends/cuda/moe/moe_args.h"

#include <tenon/params.h>

enum { TN_MATVEC_MAX_WEIGHTS = 3 };

// --- any size: matmul_any ----------------------------------------------------------------------------

// One weight [n, k], or [experts, n, k], and what its matmul becomes. Gate and up: both have the same y.
typedef struct tn_cuda_matmul_weight {
    tn_cuda_weight w;
    tn_cuda_view y;
    const float *bias; // NULL: none
    int32_t type;      // TN_TYPE_*
    int32_t n;
} tn_cuda_matmul_weight;

typedef struct tn_cuda_matmul_args {
    tn_cuda_view x; // rows over the outer dimensions in order
    tn_cuda_matmul_weight part[TN_MATVEC_MAX_WEIGHTS];
    tn_cuda_view residual; // data NULL: none
    tn_cuda_view ids;      // I32 [tokens, used]; data NULL: no experts
    const float *norm;     // NULL: none; else x goes through rms_norm with this weight first
    tn_glu_params glu;
    float eps;
    int32_t act; // TN_UNARY_*
    int32_t n_parts;
    int32_t is_glu; // two parts: gate and up
    int32_t k;
    int32_t n_rows;    // rows of the results: of x, or tokens x used
    int32_t n_experts;
    int32_t x_used;    // experts: rows of x per token, 1 or used
} tn_cuda_matmul_args;

// --- up to 8 rows: matvec --------------------------------------------------------------------------------

enum {
    TN_MATVEC_MAX_COLUMNS = 8, // rows of x that share one reading of the weights
    TN_MATVEC_WARPS = 16, // of a block; half of them where shared memory is small
    TN_MATVEC_ROWS = 2, // of the weight that a warp multiplies at a time
};

// Elements of a row that a lane multiplies at a time: those of 16 bytes, in types that have a loop of their
// own.
#define TN_MATVEC_LANE_ELEMS(t)                                                                              \
    ((t) == TN_TYPE_F32 ? 4                                                                                  \
     : (t) == TN_TYPE_F16 || (t) == TN_TYPE_BF16 ? 8                                                         \
     : (t) == TN_TYPE_Q4_0 || (t) == TN_TYPE_Q4_1 || (t) == TN_TYPE_Q5_0 || (t) == TN_TYPE_Q5_1 ||           \
             (t) == TN_TYPE_IQ4_NL || (t) == TN_TYPE_IQ4_XS || (t) == TN_TYPE_MXFP4 ||                       \
             (t) == TN_TYPE_Q4_K || (t) == TN_TYPE_Q5_K || (t) == TN_TYPE_Q6_K                               \
         ? 32                                                                                                \
         : 16)
#define TN_MATVEC_BLOCK_ELEMS(t)                                                                             \
    ((t) == TN_TYPE_F32 || (t) == TN_TYPE_F16 || (t) == TN_TYPE_BF16 ? TN_MATVEC_LANE_ELEMS(t)               \
     : (t) == TN_TYPE_Q4_0 || (t) == TN_TYPE_Q4_1 || (t) == TN_TYPE_Q5_0 || (t) == TN_TYPE_Q5_1 ||           \
             (t) == TN_TYPE_Q8_0 || (t) == TN_TYPE_IQ4_NL || (t) == TN_TYPE_MXFP4                            \
         ? 32                                                                                                \
     : (t) == TN_TYPE_NVFP4 || (t) == TN_TYPE_Q2_0 ? 64                                                      \
     : (t) == TN_TYPE_Q1_0                         ? 128                                                     \
                                                   : 256)
// A tile is what the lanes of a warp multiply of a row at a time: its blocks, and the bytes of shared
// memory for a plane with `bytes` bytes of each block. Those are more where the bytes may begin between
// multiples of 16.
#define TN_MATVEC_TILE_BLOCKS(t) (32 * TN_MATVEC_LANE_ELEMS(t) / TN_MATVEC_BLOCK_ELEMS(t))
#define TN_MATVEC_TILE_BYTES(t, bytes)                                                                       \
    ((bytes) == 0 ? 0 : (TN_MATVEC_TILE_BLOCKS(t) * (bytes) + 15) / 16 * 16 + ((bytes) % 16 == 0 ? 0 : 16))
// Slots of the ring of a warp, each with two tiles, and bytes of the sums of a block.
enum { TN_MATVEC_LEAST_SLOTS = 2, TN_MATVEC_MOST_SLOTS = 8, TN_MATVEC_SUMS = 8 * 1024 };
// Slots filled before the predecessor has ended, with tiles of 16 rows and with plain types. Filling all of
// them would delay the load of x, filling none would leave the memory idle (H200, tok/s: 8B Q4_K_M 503 with
// none, 531 with 1, 523 with both; 1B BF16 1136, 1174, 1187, 1162, 1168 with none, 1, 2, 4, all).
enum { TN_MATVEC_EARLY = 1, TN_MATVEC_PLAIN_EARLY = 2 };
// Bytes of a ring, about. Plain types keep the memory busy with fewer.
#define TN_MATVEC_RING(t) (TN_MATVEC_BLOCK_ELEMS(t) < 32 ? 4608 : 9216)

typedef struct tn_cuda_matvec_part {
    const char *plane[TN_CUDA_MAX_PLANES];
    int64_t row_size[TN_CUDA_MAX_PLANES];
    const float *bias; // NULL: none
    float *y;
    int64_t y_stride;      // floats, from one row of the result to the next
    int32_t n;             // rows of the weight, per expert
    int32_t first;         // in the sequence of all rows of all parts; gate and up: 0
    int32_t type;
} tn_cuda_matvec_part;

typedef struct tn_cuda_matvec_args {
    tn_cuda_matvec_part part[TN_MATVEC_MAX_WEIGHTS];
    const float *x;
    int64_t x_stride;      // floats, from one row of x (or token) to the next
    int64_t x_used_stride; // experts: from one slot of a token to the next, 0 if they share the row
    const float *residual; // NULL: none
    int64_t residual_stride;
    const float *norm;     // NULL: none
    const int32_t *ids;    // NULL: no experts
    int64_t ids_stride[2]; // ints: tokens, slots
    tn_glu_params glu;
    float eps;
    int32_t act, n_parts, is_glu, k, n_columns, n_experts, n_used;
    int32_t n_virtual; // rows of all parts, which blocks share; of gate, if is_glu
    // Rows are cut into slices along k, one for each of `n_slices` warps; the other warps have other rows.
    int32_t n_slices, slice_shift, group_shift; // powers of two; 2^group_shift groups of warps
    int32_t n_lane_runs, n_tiles, slice_tiles;      // of a row; of a slice
    int32_t sums_stride;             // floats, from the sums of a row of weights to those of the next
    int32_t n_slots, ring_size;      // of the ring of a warp; bytes
    // Slots filled before the predecessor has ended. The copies of those after them begin after that of x,
    // which would wait behind them.
    int32_t n_early;
    int32_t x_at, sums_at, rings_at; // in shared memory
    int32_t late; // the next kernel may start when the sums are complete, not when the block begins
    int32_t row_multiple;              // blocks have multiples of so many rows
    int32_t block_rows, more_rows; // rows of a block; the first more_rows blocks have row_multiple more
    // Quantised rows that are read instead of x, and those that are written besides y.
    tn_cuda_quantised quantised_x, quantised_y;
} tn_cuda_matvec_args;

// Weights of two types in one launch.
typedef struct tn_cuda_matvec_pair {
    tn_cuda_matvec_args of[2];
    int32_t first_blocks;
} tn_cuda_matvec_pair;

// --- experts, tensor cores: matvec_experts -----------------------------------------------------------

enum { TN_MATVEC_CHOICE = 128 }; // experts up to which blocks can do the routing

typedef struct tn_cuda_matvec_glu_args {
    tn_cuda_matvec_args of;
    const float *logits;   // of the router [T, E], to be routed here; NULL: experts are in of.ids
    tn_cuda_expert_route choice; // without groups and bias
    int32_t filled; // slots filled before the first is read: all that the warp needs, or all but one
} tn_cuda_matvec_glu_args;

typedef struct tn_cuda_matvec_sum_args {
    tn_cuda_matvec_args of; // one part; rows of x of all experts of a token count as one row
    const float *factors;   // of the sum
    int64_t factors_stride[2]; // floats: tokens, slots
    int32_t k, n_tiles;     // of one expert
    int32_t filled;         // as above
} tn_cuda_matvec_sum_args;

// --- one row, tensor cores: matvec_tiles -------------------------------------------------------------

// Tiles of 16 rows times so many elements.
enum { TN_MATVEC_MMA_ROWS = 16, TN_MATVEC_MMA_SLOTS = 3, TN_MATVEC_MMA_SUMS = 16 * 1024 };
#define TN_MATVEC_MMA_K(t) ((t) == TN_TYPE_Q8_0 ? 128 : 256)
// Pieces of 16 bytes of a row of a tile, in a plane with `bytes` bytes of each block.
#define TN_MATVEC_MMA_PIECES(t, bytes) ((TN_MATVEC_MMA_K(t) / TN_MATVEC_BLOCK_ELEMS(t) * (bytes) + 15) / 16)
// Bytes of a row of x in shared memory: int8, and 16 bytes for each 32 elements.
#define TN_MATVEC_MMA_X(k) ((k) + (k) / 2)

#endif
