// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sizes that the host code and the kernels for 2 to 8 rows of x share (matvec_rows.cuh). Their arguments are
// those of the other GEMV kernels.
#ifndef TN_CUDA_MATVEC_ROWS_ARGS_H
#define TN_CUDA_MATVEC_ROWS_ARGS_H

#include "backends/cuda/product/matvec/matvec_args.h"

// Bytes of sums of a block, at most.
enum { TN_MATVEC_ROWS_SUMS = 60 * 1024 };
// Blocks of a cluster that share k (matvec_halves.cu), and floats before x that one leaves for the other.
enum { TN_MATVEC_HALVES = 2 };
#define TN_MATVEC_HALVES_LEFT(a) (((a).block_rows + (a).row_multiple) * TN_MATVEC_MAX_COLUMNS)

// Types with minimums whose products with x need the sums of x.
#define TN_MATVEC_ROWS_HAS_SUMS(t)                                                                           \
    ((t) == TN_TYPE_Q4_K || (t) == TN_TYPE_Q5_K || (t) == TN_TYPE_Q4_1 || (t) == TN_TYPE_Q5_1 ||             \
     (t) == TN_TYPE_Q2_K)
// Types that warps unpack to shared memory half a tile at a time, and the bytes of that.
#define TN_MATVEC_ROWS_EXPANDS(t)                                                                            \
    ((t) == TN_TYPE_NVFP4 || (t) == TN_TYPE_IQ2_XXS || (t) == TN_TYPE_IQ2_XS || (t) == TN_TYPE_IQ2_S ||      \
     (t) == TN_TYPE_IQ3_XXS || (t) == TN_TYPE_IQ3_S || (t) == TN_TYPE_IQ1_S || (t) == TN_TYPE_IQ1_M ||       \
     (t) == TN_TYPE_TQ2_0 || (t) == TN_TYPE_Q1_0 || (t) == TN_TYPE_Q2_0)
#define TN_MATVEC_ROWS_EXPANDED(t) (TN_MATVEC_ROWS_EXPANDS(t) ? TN_MATVEC_MMA_ROWS * (128 + 8 * 4) : 0)

// Bytes from one int8 row of x in shared memory to the next, and of all rows with their scales and sums.
#define TN_MATVEC_ROWS_Q(k) ((k) + 16)
#define TN_MATVEC_ROWS_X(k, n_rows, has_sums)                                                                \
    ((n_rows)*TN_MATVEC_ROWS_Q(k) + (k) / 32 * TN_MATVEC_MAX_COLUMNS * ((has_sums) ? 12 : 8))

// A tile is 16 rows of weights times TN_MATVEC_MMA_K elements. 16-byte chunks of a row of a tile in a plane
// with `bytes` bytes of the row: those that are copied, and those that shared memory has. Fewer than 16
// bytes may begin anywhere in a chunk, and 12 bytes may end in the next.
#define TN_MATVEC_ROWS_CHUNKS(bytes) ((bytes) == 12 ? 2 : ((bytes) + 15) / 16)
#define TN_MATVEC_ROWS_SLOTS(bytes)  (TN_MATVEC_ROWS_CHUNKS(bytes) == 6 ? 8 : TN_MATVEC_ROWS_CHUNKS(bytes))

#endif
