// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of kernels (kernels.def). runtime/ gets it as data, so that it does not depend on the families.
#include "backends/vulkan/kernels.h"
#include "ops/ops.h"

static const tn_vk_kernel rows[] = {
#define TN_VK_KERNEL(set, name, accepts, needs)                                                              \
    {TN_SET_##set, #name, tn_vk_accepts_##accepts, tn_vk_launch_##name, needs},
#include "backends/vulkan/kernels.def"
};

const tn_vk_kernel *tn_vk_kernels_get(int32_t *n)
{
    *n = (int32_t)TN_COUNT(rows);
    return rows;
}
