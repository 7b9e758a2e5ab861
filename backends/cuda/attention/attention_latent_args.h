// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel for compressed caches is given.
#ifndef TN_CUDA_ATTENTION_LATENT_ARGS_H
#define TN_CUDA_ATTENTION_LATENT_ARGS_H

#include "backends/cuda/attention/attention_args.h"

typedef struct tn_cuda_attention_latent_args {
    alignas(64) char k[128]; // CUtensorMap of the cache: a matrix of all its rows, in boxes of 64 x 64
    tn_cuda_attention_args a;
    int32_t early; // no step of the program writes lengths and tables
} tn_cuda_attention_latent_args;

#endif
