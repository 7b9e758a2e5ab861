// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for many queries per sequence over a cache of bf16 on compute capability 9.0: instances of the
// kernel of attention_wgmma.cuh.
#include "backends/cuda/attention/wgmma/attention_wgmma.cuh"

TN_ATTENTION_WGMMA(64, bf16, TN_CUDA_CACHE_BF16)
TN_ATTENTION_WGMMA(128, bf16, TN_CUDA_CACHE_BF16)
TN_ATTENTION_WGMMA(256, bf16, TN_CUDA_CACHE_BF16)
