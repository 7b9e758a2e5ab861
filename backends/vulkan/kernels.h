// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_VULKAN_KERNELS_H
#define TN_VULKAN_KERNELS_H

#include "backends/vulkan/runtime/kernel.h"

// All rows of kernels.def, in their order.
const tn_vk_kernel *tn_vk_kernels_get(int32_t *n);

#endif
