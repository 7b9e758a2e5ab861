// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Devices that the library between pretends, and what their limits are compared with.
#ifndef TN_TESTS_VULKAN_PROFILE_H
#define TN_TESTS_VULKAN_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

typedef struct between_profile {
    const char *name;
    VkPhysicalDeviceType type;
    uint32_t subgroup, least, most;
    bool can_require;
    uint32_t most_subgroups; // of a workgroup
    uint32_t lanes;          // the size of subgroups that pipelines of sums are expected to have, 0: none
    uint32_t shared, invocations;
    uint32_t matrix_rows;
    bool unified, portability;
} between_profile;

enum { PROFILE_PUSH = 128, PROFILE_ALLOCATION = 1 << 30, PROFILE_GROUPS = 65535 };

// NULL: there is none of that name.
const between_profile *profile_find(const char *name);
// Puts limits and sizes of subgroups in the place of those of the driver.
void profile_properties(const between_profile *p, VkPhysicalDeviceProperties2 *o);
// Types of memory: 0 of the device alone, 1 what the host sees too.
void profile_memory(const between_profile *p, VkPhysicalDeviceMemoryProperties *o);

// What a compute shader needs of a workgroup with these specialisation constants (spirv_needs.c). false: the
// module has something that this does not know.
typedef struct spirv_needs {
    uint64_t shared;    // bytes of Workgroup storage
    uint32_t size[3];   // of a workgroup
    bool has_subgroups; // sums or exchanges of subgroups
    bool has_matrices;  // cooperative matrices
} spirv_needs;
bool spirv_needs_of(const uint32_t *code, size_t size, const VkSpecializationInfo *constants,
                    spirv_needs *out);

#endif
