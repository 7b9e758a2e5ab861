// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensor maps (CUtensorMap): what tensor copies of compute capability 9.0 have to know of a matrix in memory.
#ifndef TN_CUDA_TENSOR_MAP_H
#define TN_CUDA_TENSOR_MAP_H

#include "backends/cuda/runtime/kernel.h"

// A matrix that is copied in boxes of box_rows rows by box_bytes bytes. Copies need not know what the bits
// mean; what lies outside of the matrix is copied as 0. Rows of a box are swizzled in shared memory over
// box_bytes if that is 32, 64 or 128.
typedef struct tn_cuda_boxes {
    const void *data;                    // on the device, aligned to 16 bytes
    int64_t rows, row_bytes, row_stride; // bytes of a row, and between rows: a multiple of 16
    int32_t box_bytes, box_rows;         // at most 256 rows
    int32_t l2_bytes;                    // that L2 reads from memory at a time: 128 or 256
} tn_cuda_boxes;

// to: 128 bytes of the arguments of a kernel. Where launches are only listed nothing is written.
TN_MUST_USE tn_status tn_cuda_map_boxes(const tn_cuda_launch *l, const tn_cuda_boxes *b, void *to);

#endif
