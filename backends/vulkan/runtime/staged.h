// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Staged results: int8 activations (shaders/quantise_int8.glsl) that a step writes next to its result in f32,
// where the products that read it would otherwise begin with quantising it. That saves a dispatch and a
// barrier for most products of a decoding step, with experts too. A pass of the graph decides which steps do
// (TN_JOIN_STAGE of ops/step.h).
#ifndef TN_VULKAN_STAGED_H
#define TN_VULKAN_STAGED_H

#include "backends/vulkan/runtime/kernel.h"

enum { TN_VK_QUANTISED_GROUP = 32 }; // activations that share a scale

typedef struct tn_vk_staged {
    uint64_t write; // where the step may write them; 0: nowhere
    uint64_t norm;  // weight of the norm of the step that reads them; 0: it has none
    uint64_t read;  // where those of its own x are; 0: nowhere
    bool written;   // the step does write them
} tn_vk_staged;

// Bytes of a row of k activations with their scales.
int64_t tn_vk_quantised_size(int64_t k);
// core/backend.h, joins and staged_size: bytes of the staged result of a step; 0: it has none.
uint32_t tn_vk_joins(const tn_device *device, const tn_step_pair *pair);
size_t tn_vk_staged_size(const tn_device *device, const tn_step *step);
// Whether eight neighbouring invocations can stage a group, four elements each (stage_four).
bool tn_vk_stages_fours(const tn_vk *v);
// out[1]: a step as planned, with addresses that nobody reads: operands lie where they would if every storage
// began at an address that is aligned for all loads. out[0]: the same of the step that it is to do too; NULL:
// there is none.
void tn_vk_steps_nowhere(const tn_step *step, const tn_step *folded, tn_step out[2]);

#endif
