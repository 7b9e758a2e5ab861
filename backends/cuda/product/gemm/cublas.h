// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt, opened at run time where it is installed: one more kernel for matmuls of 64 and more rows with
// BF16 and F16 weights, which runs only where tuning has measured it to be faster. Types and values of the
// functions in cublas.def are those of its documentation (cuBLAS library, "Using the cuBLASLt API"), the same
// in versions 11 to 13; tests/cuda/fake_blas.c compares them with the header of the toolkit.
#ifndef TN_CUDA_BLAS_H
#define TN_CUDA_BLAS_H

#include "backends/cuda/runtime/kernel.h"

enum {
    TN_BLAS_SUCCESS = 0,
    TN_BLAS_NOT_INITIALIZED = 1,
    TN_BLAS_ALLOC_FAILED = 3,
    TN_BLAS_INVALID_VALUE = 7,
    TN_BLAS_ARCH_MISMATCH = 8,
    TN_BLAS_MAPPING_ERROR = 11,
    TN_BLAS_EXECUTION_FAILED = 13,
    TN_BLAS_INTERNAL_ERROR = 14,
    TN_BLAS_NOT_SUPPORTED = 15,
    TN_BLAS_LICENSE_ERROR = 16,

    TN_BLAS_F32 = 0, // cudaDataType
    TN_BLAS_F16 = 2,
    TN_BLAS_BF16 = 14,
    TN_BLAS_COMPUTE_F32 = 68, // cublasComputeType_t
    TN_BLAS_TRANSPOSED = 1,   // cublasOperation_t

    TN_BLAS_PRODUCT_TRANSA = 3,   // cublasLtMatmulDescAttributes_t
    TN_BLAS_PREFER_WORKSPACE = 1, // cublasLtMatmulPreferenceAttributes_t
    TN_BLAS_PREFER_ALIGN_A = 5,
    TN_BLAS_PREFER_ALIGN_B = 6,
    TN_BLAS_PREFER_ALIGN_C = 7,
    TN_BLAS_PREFER_ALIGN_D = 8,
};

// cublasLtMatmulAlgo_t
typedef struct tn_blas_algorithm {
    uint64_t data[8];
} tn_blas_algorithm;

// cublasLtMatmulHeuristicResult_t
typedef struct tn_blas_heuristic {
    tn_blas_algorithm algorithm;
    size_t workspace;
    int32_t state; // other members mean something if this is TN_BLAS_SUCCESS
    float waves;
    int32_t reserved[4];
} tn_blas_heuristic;

// Opens nothing yet. c->blas stays NULL if there is no memory: the backend works without.
void tn_cuda_cublas_init(tn_cuda *c);
// With the driver context current, if there is one.
void tn_cuda_cublas_free(tn_cuda *c);
// Makes what the product of a step needs besides the scratch: the handle, and an algorithm for its shape. To
// be called outside of captures, operands bound. After a failure, whose message stays, the step has to run by
// another kernel.
TN_MUST_USE tn_status tn_cuda_cublas_prepare(const tn_cuda *c, const tn_step *step);

#endif
