// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_VULKAN_PROBE_H
#define TN_VULKAN_PROBE_H

#include "backends/vulkan/runtime/kernel.h"

// Runs the kernel, with the pipelines that it has for `step`, on a small step of the same kind and compares
// the results with the reference. stages: as in a dispatch. TN_VK_UNKNOWN: there is no small step for it.
// *error: NMSE of the worst result.
TN_MUST_USE tn_status tn_vk_probe(tn_vk *v, const tn_step *step, const tn_vk_kernel *kernel, bool stages,
                                  tn_vk_verdict *verdict, double *error);

#endif
