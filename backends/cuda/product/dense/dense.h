// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What dense.c and other products of 16-bit operands share.
#ifndef TN_CUDA_DENSE_H
#define TN_CUDA_DENSE_H

#include "backends/cuda/product/dense/dense_args.h"
#include "backends/cuda/runtime/kernel.h"
#include "ops/product.h"

// x of the product, normed if it has a norm, to rows of 16 bits on compute capability 9.0: `a` says where and
// how.
TN_MUST_USE tn_status tn_cuda_dense_prepare_x(const tn_cuda_launch *l, tn_cuda_dense_x_args a,
                                              const tn_product *p);

#endif
