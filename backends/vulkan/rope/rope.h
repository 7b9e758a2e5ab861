// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_VULKAN_ROPE_H
#define TN_VULKAN_ROPE_H

#include "backends/vulkan/runtime/kernel.h"

// Puts into the record of the dispatch what shaders need to know of that rope_cache (N_ROPE_*), whose
// operands are there already.
void tn_vk_bind_rope_cache(const tn_step *step, tn_vk_dispatch *d);

#endif
