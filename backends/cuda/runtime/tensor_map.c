// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensor maps of matrices.
#include "backends/cuda/runtime/tensor_map.h"

#include <assert.h>
#include <string.h>

tn_status tn_cuda_map_boxes(const tn_cuda_launch *l, const tn_cuda_boxes *b, void *to)
{
    // Elements of 16 bits, because a swizzle wants boxes of at most 128 bytes and sizes count elements.
    cuuint64_t dims[2] = {(cuuint64_t)b->row_bytes / 2, (cuuint64_t)b->rows},
               strides[1] = {(cuuint64_t)b->row_stride};
    cuuint32_t box[2] = {(cuuint32_t)b->box_bytes / 2, (cuuint32_t)b->box_rows}, one[2] = {1, 1};
    CUtensorMapSwizzle swizzle = b->box_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                 : b->box_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                 : b->box_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                      : CU_TENSOR_MAP_SWIZZLE_NONE;
    CUtensorMapL2promotion l2 =
        b->l2_bytes == 256 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    if (l->sink) return TN_OK;
    CUtensorMap map;
    CUresult r = l->cuda->driver.tensor_map_tiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, (void *)(uintptr_t)b->data, dims, strides, box, one,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, l2, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    static_assert(sizeof map == 128, "arguments of kernels have 128 bytes for a tensor map");
    memcpy(to, &map, sizeof map);
    return tn_cuda_check(l->cuda, r, "describing a matrix for tensor copies");
}
