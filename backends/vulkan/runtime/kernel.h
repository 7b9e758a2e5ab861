// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a row of kernels.def consists of: which steps it takes, and the dispatches that run one.
#ifndef TN_VULKAN_KERNEL_H
#define TN_VULKAN_KERNEL_H

#include "backends/vulkan/runtime/args.h"
#include "backends/vulkan/runtime/device.h"

typedef struct tn_vk_dispatch {
    const tn_vk *v;      // given
    const tn_step *like; // given: the step whose extents choose the tiles
    int32_t shader;      // TN_VK_SHADER_*
    int32_t constants[TN_VK_CONSTANTS];
    int64_t groups;
    int64_t scratch;  // bytes that the step wants, the same for all of its dispatches
    int64_t counters; // at args.counters, that it wants
    bool after;       // sees what the dispatch before it wrote
    // Activations as bytes (shaders/rounding.glsl) that one step leaves to the next.
    bool leaves;                // given: the reader of the result wants them
    bool left;                  // set by the dispatch that leaves them, at args.left
    bool reads_left;            // given: those of x lie at args.scratch already
    const tn_rope_params *rope; // not NULL: args.tables are to be their angles
    tn_vk_args args;            // operands and parameters are there already, n is all -1
} tn_vk_dispatch;

typedef bool (*tn_vk_accepts_fn)(const tn_step *step); // data pointers are NULL
// Fills dispatch i of the step and returns how many there are. Operands are bound.
typedef int32_t (*tn_vk_launch_fn)(const tn_step *step, int32_t i, tn_vk_dispatch *d);

typedef struct tn_vk_kernel {
    int32_t op;
    const char *name;
    tn_vk_accepts_fn accepts;
    tn_vk_launch_fn launch;
    int32_t needs; // of the device: TN_VK_SUBGROUPS ...
} tn_vk_kernel;

// Dispatches of one step; index of the constant that says how data lie.
enum { TN_VK_MAX_DISPATCHES = 4, TN_VK_LAYOUT = 3 };

// The first row of kernels.def behind `after` (NULL: of all) that takes the step on this device; NULL: none.
const tn_vk_kernel *tn_vk_find_kernel(const tn_vk *v, const tn_step *step, const tn_vk_kernel *after);
// Runs a step by that kernel, with the pipelines that it has for step `like`, and waits; `leaves` as in a
// dispatch. TN_ERR_UNSUPPORTED without a message: the step would have others.
TN_MUST_USE tn_status tn_vk_run_once(tn_vk *v, const tn_step *step, const tn_step *like,
                                     const tn_vk_kernel *kernel, bool leaves);
// Operands and parameters of a step, as kernels get them.
void tn_vk_args_of(const tn_step *step, tn_vk_args *out);
// Whether shaders can count the elements of all operands in 32 bits.
bool tn_vk_accepts_indexable(const tn_step *step);
// Whether rows of the cache of keys and values may have that type.
bool tn_vk_is_cache_type(tn_dtype type);

static inline int64_t tn_vk_div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#define TN_VK_KERNEL(op, name, accepts, launch, needs)                                                       \
    bool accepts(const tn_step *step);                                                                       \
    int32_t launch(const tn_step *step, int32_t i, tn_vk_dispatch *d);
#include "backends/vulkan/kernels.def"

#endif
