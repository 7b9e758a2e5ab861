// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels.h"

#include "backends/cuda/join.h"
#include "backends/cuda/product/gemm/cublas.h"
#include "backends/cuda/product/gemm/gemm.h"
#include "core/compiler.h"
#include "ops/operands.h"
#include "ops/ops.h"

// The `none` in the scratch column of kernels.def.
size_t tn_cuda_none_scratch(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    TN_UNUSED(step);
    return 0;
}

#define TN_CUDA_FLAG(or, name) or TN_CUDA_##name
static const tn_cuda_kernel rows[] = {
#define TN_CUDA_KERNEL(set, kernel, scratch, launch, ...)                                                    \
    {TN_SET_##set,                                                                                           \
     #kernel,                                                                                                \
     tn_cuda_##kernel##_accepts,                                                                             \
     tn_cuda_##scratch##_scratch,                                                                            \
     tn_cuda_##launch##_launch,                                                                              \
     0 TN_LIST(TN_CUDA_FLAG, |, __VA_ARGS__)},
#include "backends/cuda/kernels.def"
};

const tn_cuda_kernel_table tn_cuda_kernels = {
    .rows = rows,
    .n_rows = TN_COUNT(rows),
    .prepare_tuned = tn_cuda_cublas_prepare,
    .derive_weights = tn_cuda_gemm_derive_weights,
    .derived_size = tn_cuda_gemm_derived_size,
    .join_holds = tn_cuda_join_holds,
};
