// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights on their way to a cache before they are wanted. Attention of a decoding step waits for latencies
// and leaves memory idle meanwhile: beside it runs a dispatch that reads what the products after it read
// first.
#ifndef TN_VULKAN_AHEAD_H
#define TN_VULKAN_AHEAD_H

#include "backends/vulkan/args.h"
#include "backends/vulkan/device.h"

enum { TN_VK_MAX_AHEAD = 2 }; // dispatches beside a step

// Dispatch k < TN_VK_MAX_AHEAD beside step i: its workgroups and its record; 0: there is none.
int64_t tn_vk_ahead(const tn_vk *v, const tn_program *program, int32_t i, int32_t k, tn_vk_args *record);

#endif
