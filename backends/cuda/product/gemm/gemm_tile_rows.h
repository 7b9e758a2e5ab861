// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of x of a tile of gemm_wgmma.cu, for host and device code.
#ifndef TN_CUDA_GEMM_TILE_ROWS_H
#define TN_CUDA_GEMM_TILE_ROWS_H

// Without groups of rows and in 16 bits or tf32, m rows are divided among the tiles, in runs of the 16 rows
// of a warp: rows behind the last one, which tensor copies fill with zeros, cost more time than rows that
// exist. Otherwise a tile has TN_GEMM_ROWS.
#define TN_GEMM_TILE_ROWS(m, tiles_m) (((m) + 16 * (tiles_m)-1) / (16 * (tiles_m)) * 16)

#endif
