// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels are given, seen by C and by device code: plain structs of fixed layout, passed by value.
// Pointers are addresses on the device. Here are the parts that all families share; each family has an
// <...>_args.h.
#ifndef TN_CUDA_ARGS_H
#define TN_CUDA_ARGS_H

#include <stdint.h>

// A strided view like tn_view: four extents in elements, outermost first, and strides in bytes.
typedef struct tn_cuda_view {
    char *data;
    int64_t ne[4];
    int64_t nb[4];
} tn_cuda_view;

// A weight whose blocks were split into planes when it was written (layout.h): plane p of row r starts at
// plane[p] + r * row_size[p]. Types that are not split have everything in plane 0. Rows run over all leading
// dimensions in order: row n of expert e is e * rows_per_expert + n.
enum { TN_CUDA_MAX_PLANES = 4 };
typedef struct tn_cuda_weight {
    const char *plane[TN_CUDA_MAX_PLANES];
    int64_t row_size[TN_CUDA_MAX_PLANES]; // bytes
} tn_cuda_weight;

// Quantised activations: the kernel that computes rows writes them in this form too, for the product of
// quantised weights that reads them next (quantise.cuh). They are int8 with one scale per group of 16
// elements, x = d q. A row is q [k], then d [k / 16] f32, sums of q [k / 16] i16, and sums of x^2 [k / 16]
// f32; k is a multiple of 32.
typedef struct tn_cuda_quantised {
    char *rows;        // NULL: none
    int64_t row_size;  // bytes
    const float *norm; // weight of the reader's norm: q is of x times it; NULL: no norm, no sums of squares
    int32_t k;
} tn_cuda_quantised;
enum { TN_QUANTISED_GROUP = 16 };
#define TN_QUANTISED_D(k) (k)
#define TN_QUANTISED_SUM(k) ((k) + (k) / 4)
#define TN_QUANTISED_SQUARES(k) ((k) + (k) / 4 + (k) / 8)
#define TN_QUANTISED_ROW_SIZE(k) (((k) + (k) / 2 + (k) / 8 + 15) / 16 * 16)

// runtime/pack.cu: n_blocks blocks as in a file become planes.
typedef struct tn_cuda_pack_args {
    const uint8_t *from;
    uint8_t *plane[TN_CUDA_MAX_PLANES]; // where this run of blocks goes in each plane
    int64_t n_blocks;
    int32_t block_size; // bytes
    int32_t n_pieces;   // of a block, in file order
    // Bytes [start, start + size) of a block go to byte `at` of what plane `plane` has of the block.
    struct {
        int16_t start, size, plane, at;
    } piece[6];
    int16_t plane_bytes[TN_CUDA_MAX_PLANES]; // bytes of a block in each plane
} tn_cuda_pack_args;

// runtime/copy_list.cu: between memory of the device and host memory that it can reach.
enum { TN_CUDA_COPIES = 16 };
typedef struct tn_cuda_copy_args {
    int32_t n;
    struct {
        uint32_t *to;
        const uint32_t *from;
        int64_t n; // words of 4 bytes
    } copy[TN_CUDA_COPIES];
} tn_cuda_copy_args;

#endif
