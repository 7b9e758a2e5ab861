// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of matrix products have in common on the host.
#ifndef TN_VULKAN_PRODUCT_H
#define TN_VULKAN_PRODUCT_H

#include "backends/vulkan/runtime/kernel.h"

// args.n (shaders/product.glsl).
enum {
    TN_VK_N_COLUMNS,
    TN_VK_N_ROWS,
    TN_VK_N_BIAS,
    TN_VK_N_RESIDUAL,
    TN_VK_N_ACT,
    TN_VK_N_RESULT,
    TN_VK_N_GLU,
    TN_VK_N_IDS,
    TN_VK_N_EXPERTS,
    TN_VK_N_NORM,
    TN_VK_N_EPS
};

// Operands of product i of the step, and the types of its weights as constants 0 and 1; returns how many
// products there are.
int32_t tn_vk_set_product(const tn_step *step, int32_t i, tn_vk_dispatch *d);
// Whether rows are runs of 16 elements that start at multiples of 16 bytes.
bool tn_vk_aligned_rows(const tn_view *v);
// Rounds x to f16 or bf16 (shaders/round16.comp): the dispatch before those of a product, and the scratch
// that it takes. f16: the largest finite value of a row comes to 2^top .. 2^(top + 1).
void tn_vk_launch_convert_16bit(const tn_step *step, tn_dtype element, int32_t top, tn_vk_dispatch *d);
int64_t tn_vk_convert_16bit_size(const tn_step *step);
// Bytes of a row of k activations that were made bytes (shaders/rounding.glsl).
int64_t tn_vk_quantised_size(int64_t k);

#endif
