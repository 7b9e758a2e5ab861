// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which steps have to wait for those before them: a barrier stands only where a step reads or overwrites what
// was written since the last one, or overwrites what was read since.
#ifndef TN_VULKAN_BARRIERS_H
#define TN_VULKAN_BARRIERS_H

#include "ops/step.h"

#include <stdint.h>

enum { TN_VK_MAX_RANGES = 64 };

typedef struct tn_vk_range { // bytes of the device's memory
    uint64_t from, to;
} tn_vk_range;

// What was used since the last barrier. Zeroed: nothing.
typedef struct tn_vk_barriers {
    tn_vk_range reads[TN_VK_MAX_RANGES], writes[TN_VK_MAX_RANGES];
    int32_t n_reads, n_writes;
} tn_vk_barriers;

// Adds a step, staged results included, that also has `scratch` for itself; folded: the step whose work it
// does too, or NULL. True: a barrier belongs before it.
bool tn_vk_barrier_needed(tn_vk_barriers *o, const tn_step *step, const tn_step *folded, tn_vk_range scratch);

#endif
