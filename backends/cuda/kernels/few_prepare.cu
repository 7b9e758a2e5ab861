// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of x for kernels/few_blocks.cuh, one block a row. Bytes moved: 4 (rows of more than 16384 values: again from the caches) and 2 for each
// value; latency is the limit.
#include "backends/cuda/kernels/few_rows.cuh"

TN_ENTRY __launch_bounds__(1024) tn_few_x(const __grid_constant__ tn_cuda_gemm_x_args a)
{
    __shared__ float room[2][TN_WARP];
    bool once = (a.k + TN_FEW_K - 1) / TN_FEW_K * TN_FEW_K <= 16 * (int)blockDim.x;
    float gain[16] = {};
    if (once && a.norm) few_load16(a.norm, 16 * threadIdx.x, a.k, (uintptr_t)a.norm % 16 == 0, gain);
    tn_pdl_trigger();
    tn_pdl_wait();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n_zero; i += gridDim.x * blockDim.x) a.zero[i] = 0;
    int n = (a.n_tiles ? *a.n_tiles : (a.m + TN_FEW_BLOCK_COLUMNS - 1) / TN_FEW_BLOCK_COLUMNS) * TN_FEW_BLOCK_COLUMNS;
    for (int r = blockIdx.x; r < n; r += gridDim.x) {
        int from = r >= a.m ? -1 : a.row_from ? a.row_from[r] : r;
        if (once) few_make_row<1, false>(a, r, from, gain, room);
        else few_make_long_row<false>(a, r, from, room);
    }
    for (int i = blockIdx.x; a.ids && i < a.n_ids; i += gridDim.x) {
        if (a.ids[i] >= 0 && a.ids[i] < a.n_groups) continue;
        for (int64_t c = threadIdx.x; c < a.y_n; c += blockDim.x) a.y[i * a.y_n + c] = 0.0f;
    }
}
