// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The general kernel of matrix products, which the others use where their own conditions do not hold.
#ifndef TN_CUDA_MATMUL_ANY_H
#define TN_CUDA_MATMUL_ANY_H

#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/runtime/kernel.h"
#include "ops/product.h"

// Whether types and strides of all operands are what the kernels that read weights as they are can address.
bool tn_cuda_product_addressable(const tn_product *p);

#endif
