// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies blocks as they stand in a file into planes (backends/planes.def). One thread moves one byte of the
// input at a time, and consecutive threads read consecutive bytes. Bytes moved: 2 n. It runs while the next
// part of the file is on the bus, which is 80 times slower than the memory of the device (NVIDIA H200,
// 2026-11-21).
#include "backends/cuda/common.cuh"

TN_ENTRY tn_pack(const __grid_constant__ tn_cuda_pack_args a)
{
    int64_t n = a.n_blocks * a.block_size, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        int64_t block = i / a.block_size;
        int byte = (int)(i - block * a.block_size);
        uint8_t value = a.from[i];
#pragma unroll
        for (int k = 0; k < 6; k++) {
            int at = byte - a.piece[k].start;
            if (k < a.n_pieces && at >= 0 && at < a.piece[k].size)
                a.plane[a.piece[k].plane][block * a.plane_bytes[a.piece[k].plane] + a.piece[k].at + at] =
                    value;
        }
    }
}
