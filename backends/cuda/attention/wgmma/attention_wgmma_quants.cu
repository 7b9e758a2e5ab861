// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for many queries per sequence over a cache of q8_0 or q4_0 on compute capability 9.0: instances
// of the kernel of attention_wgmma.cuh. Heads of 256 are missing, because the results of two of four
// warpgroups would need more registers than a kernel of 512 threads starts with.
#include "backends/cuda/attention/wgmma/attention_wgmma.cuh"

TN_ATTENTION_WGMMA(64, q8_0, TN_CUDA_CACHE_Q8_0)
TN_ATTENTION_WGMMA(128, q8_0, TN_CUDA_CACHE_Q8_0)
TN_ATTENTION_WGMMA(64, q4_0, TN_CUDA_CACHE_Q4_0)
TN_ATTENTION_WGMMA(128, q4_0, TN_CUDA_CACHE_Q4_0)
