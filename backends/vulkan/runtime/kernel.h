// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a row of kernels.def consists of: which steps it accepts, and the dispatches that run one.
#ifndef TN_VULKAN_KERNEL_H
#define TN_VULKAN_KERNEL_H

#include "backends/vulkan/runtime/args.h"
#include "backends/vulkan/runtime/device.h"

// One dispatch of a step. The caller sets v, like, wants_staged, x_staged, and in args operands and
// parameters (all of args.n is -1); the launch function sets the rest.
typedef struct tn_vk_dispatch {
    const tn_vk *v;
    const tn_step *like; // the step whose extents choose tiles: the step itself, but for a probe (probe.h)
                         // the step it stands for
    int32_t shader;      // TN_VK_SHADER_*
    int32_t constants[TN_VK_CONSTANTS];
    int64_t groups;   // workgroups
    int64_t scratch;  // bytes that the step needs, the same for all of its dispatches
    int64_t counters; // how many it needs at args.counters
    bool waits;       // it reads what the dispatch before it wrote
    bool folds;       // it does the work of the step before too (TN_JOIN_FOLD)
    bool expanded;    // the planes in args.weight are offsets into the scratch
    // Staged results: int8 activations that one step leaves to later ones (staged.h).
    bool wants_staged;          // a later step reads the staged result
    bool stages;                // this dispatch writes it, at args.staged
    bool x_staged;              // that of x lies at args.scratch: x need not be quantised
    const tn_rope_params *rope; // not NULL: args.tables is to be the address of their angles
    tn_vk_args args;
} tn_vk_dispatch;

typedef bool (*tn_vk_accepts_fn)(const tn_step *step); // data pointers are NULL
// Fills dispatch i of the step and returns how many there are. Operands are bound.
typedef int32_t (*tn_vk_launch_fn)(const tn_step *step, int32_t i, tn_vk_dispatch *d);

typedef struct tn_vk_kernel {
    int32_t set; // of ops: TN_SET_*
    const char *name;
    tn_vk_accepts_fn accepts;
    tn_vk_launch_fn launch;
    int32_t needs; // of the device: TN_VK_SUBGROUPS ...
} tn_vk_kernel;

// Most dispatches of one step. Index of the constant that promises how operands are aligned: a probe, whose
// operands have other addresses, may differ in it.
enum { TN_VK_MAX_DISPATCHES = 8, TN_VK_LAYOUT = 3 };

// The first row of kernels.def behind `after` (NULL: of all) that accepts the step on this device; NULL:
// none.
const tn_vk_kernel *tn_vk_find_kernel(const tn_vk *v, const tn_step *step, const tn_vk_kernel *after);
// Operands and parameters of a step, as kernels get them.
void tn_vk_args_of(const tn_step *step, tn_vk_args *out);
// Whether shaders can count the elements of all operands in 32 bits.
bool tn_vk_accepts_indexable(const tn_step *step);
// Whether rows are whole runs of that many elements and start at multiples of 16 bytes, the widest load of
// shaders.
bool tn_vk_aligned_elems(const tn_view *v, int64_t elems);
// Whether rows of the cache of keys and values may have that type.
bool tn_vk_is_cache_type(tn_dtype type);

// The step before, which is to be done with this one (TN_JOIN_FOLD) if the kernel can; NULL: there is none.
static inline const tn_step *tn_vk_folded_of(const tn_step *step)
{
    return step->join.previous & TN_JOIN_FOLD ? step - 1 : NULL;
}

static inline int64_t tn_vk_div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#define TN_VK_KERNEL(set, name, accepts, needs)                                                              \
    bool tn_vk_accepts_##accepts(const tn_step *step);                                                       \
    int32_t tn_vk_launch_##name(const tn_step *step, int32_t i, tn_vk_dispatch *d);
#include "backends/vulkan/kernels.def"

#endif
