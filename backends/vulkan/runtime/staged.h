// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations that a step leaves as bytes (shaders/rounding.glsl) next to its result, where the step after it
// would otherwise begin with rounding them: a dispatch and a barrier less for most products of a decoding
// step.
#ifndef TN_VULKAN_STAGED_H
#define TN_VULKAN_STAGED_H

#include "backends/vulkan/runtime/kernel.h"

typedef struct tn_vk_staged {
    uint64_t write,
        norm;      // where the step may leave them, with the weight of its reader's norm or 0; 0: nowhere
    uint64_t read; // where those of its x are; 0: nowhere
    bool left;     // it does leave them
} tn_vk_staged;

// Bytes that the result of a step takes so; 0: it never leaves any.
size_t tn_vk_staged_size(const tn_step *step);
// Whether `next`, by its first kernel, would read what `step` leaves; *norm: the weight of its norm, or 0.
bool tn_vk_reads_staged(const tn_vk *v, const tn_step *step, const tn_step *next, uint64_t *norm);

#endif
