// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the host sides of the matrix products that read weights as they are share.
#ifndef TN_CUDA_MATVEC_H
#define TN_CUDA_MATVEC_H

#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/runtime/kernel.h"

// A matrix product of any of the six ops, taken apart. Pointers into the step, NULL if absent.
typedef struct tn_matvec_operands {
    const tn_view *x, *w[TN_MATVEC_MAX_WEIGHTS], *bias[TN_MATVEC_MAX_WEIGHTS];
    const tn_view *residual, *norm, *ids;
    float eps;
    int32_t n_w, act;
    const tn_glu_params *glu; // gate and up
} tn_matvec_operands;

tn_matvec_operands tn_matvec_operands_get(const tn_step *step);
// Whether types and strides are what the kernels can address.
bool tn_matvec_addressable(const tn_step *step, const tn_matvec_operands *o);
tn_cuda_matmul_args tn_matmul_args_get(const tn_step *step, const tn_matvec_operands *o);

// --- rows handed on as int8 (handover.h), of the kernels in matvec.c -------------------------------------

// Whether a step can make them of its result, and take them as its x; data of its views are bound.
bool tn_cuda_matvec_writes_quantised(const tn_step *step);
bool tn_cuda_matvec_reads_quantised(const tn_step *step);
const tn_view *tn_cuda_matvec_norm(const tn_step *step); // weight of the norm of x, NULL: none

// --- experts: steps that share work with the one before --------------------------------------------------

// Whether a matmul_id_glu step can choose the experts of the moe_route step before it.
bool tn_cuda_matvec_runs_route(const tn_cuda *cuda, const tn_step *step, const tn_step *route);
tn_cuda_expert_route tn_cuda_expert_route_of(const tn_step *route);

// A product of experts and the moe_sum or moe_combine after it in one launch:
// whether it can be, as to types and sizes; data of the views are bound. The sum may not overwrite what the product reads.
bool tn_cuda_matvec_fuses_sum(const tn_cuda *cuda, const tn_step *product, const tn_step *sum);
// l->step is the sum, l->product the product.
tn_status tn_cuda_launch_matvec_sum(const tn_cuda_launch *l);

#endif
