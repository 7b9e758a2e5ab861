// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the matmuls of experts use of routing.
#ifndef TN_CUDA_MOE_H
#define TN_CUDA_MOE_H

#include "backends/cuda/moe/moe_args.h"
#include "ops/step.h"

// How the logits of a moe_route step become experts and their weights.
tn_cuda_expert_route tn_cuda_expert_route_of(const tn_step *route);

#endif
