// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What dense.c and other products of 16-bit operands share.
#ifndef TN_CUDA_DENSE_H
#define TN_CUDA_DENSE_H

#include "backends/cuda/product/dense/dense_args.h"
#include "backends/cuda/runtime/kernel.h"
#include "ops/product.h"

// Whether the step is a product of up to TN_DENSE_SPLIT rows by weights in bf16: a gated pair leaves its
// result as high and low parts, and others read x so, if the weights are aligned.
bool tn_cuda_dense_packs(const tn_cuda *cuda, const tn_step *step);
bool tn_cuda_dense_aligned(const tn_product *p);
// x of the product, normed if it has a norm, to rows of 16 bits on compute capability 9.0: `a` says where and
// how.
TN_MUST_USE tn_status tn_cuda_dense_prepare_x(const tn_cuda_launch *l, tn_cuda_dense_x_args a,
                                              const tn_product *p);

#endif
