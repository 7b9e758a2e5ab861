// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_CUDA_ATTENTION_WGMMA_ARGS_H
#define TN_CUDA_ATTENTION_WGMMA_ARGS_H

// What attention_wgmma.cuh leaves in y (tn_cuda_attention_args.y_packed): f32, bf16, or f16 in the order in
// which product/gemm/gemm_blocks.cuh multiplies, of each 16 values the even ones first.
enum { TN_CUDA_PACKED_NOT, TN_CUDA_PACKED_BF16, TN_CUDA_PACKED_F16_EVEN_FIRST };

#endif
