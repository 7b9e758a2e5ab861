// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/vulkan/profile.h"

#include <string.h>

static const between_profile profiles[] = {
#define TN_VK_PROFILE(name, type, subgroup, least, most, can_require, most_subgroups, lanes, shared,         \
                      invocations, rows, unified, portability)                                               \
    {#name,          VK_PHYSICAL_DEVICE_TYPE_##type##_GPU,                                                   \
     subgroup,       least,                                                                                  \
     most,           can_require,                                                                            \
     most_subgroups, lanes,                                                                                  \
     shared,         invocations,                                                                            \
     rows,           unified,                                                                                \
     portability},
#include "tests/vulkan/profiles.def"
};

const between_profile *profile_find(const char *name)
{
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if (strcmp(profiles[i].name, name) == 0) return &profiles[i];
    return NULL;
}

void profile_properties(const between_profile *p, VkPhysicalDeviceProperties2 *o)
{
    VkPhysicalDeviceLimits *limits = &o->properties.limits;
    o->properties.deviceType = p->type;
    limits->maxComputeSharedMemorySize = p->shared;
    limits->maxComputeWorkGroupInvocations = p->invocations;
    limits->maxComputeWorkGroupSize[0] = limits->maxComputeWorkGroupSize[1] = p->invocations;
    limits->maxPushConstantsSize = PROFILE_PUSH;
    limits->maxStorageBufferRange = 128 << 20;
    for (int i = 0; i < 3; i++) limits->maxComputeWorkGroupCount[i] = PROFILE_GROUPS;
    for (VkBaseOutStructure *s = o->pNext; s; s = s->pNext) {
        VkPhysicalDeviceVulkan11Properties *p11 = (void *)s;
        VkPhysicalDeviceSubgroupSizeControlProperties *sizes = (void *)s;
        VkPhysicalDeviceMaintenance3Properties *allocation = (void *)s;
        VkPhysicalDeviceMaintenance4Properties *buffer = (void *)s;
        switch ((int)s->sType) {
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES:
            p11->subgroupSize = p->subgroup;
            break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES:
            sizes->minSubgroupSize = p->least;
            sizes->maxSubgroupSize = p->most;
            sizes->maxComputeWorkgroupSubgroups = p->most_subgroups;
            sizes->requiredSubgroupSizeStages = p->can_require ? VK_SHADER_STAGE_COMPUTE_BIT : 0;
            break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES:
            allocation->maxMemoryAllocationSize = PROFILE_ALLOCATION;
            break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES:
            buffer->maxBufferSize = PROFILE_ALLOCATION;
            break;
        }
    }
}

void profile_memory(const between_profile *p, VkPhysicalDeviceMemoryProperties *o)
{
    const VkMemoryPropertyFlags seen =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    o->memoryTypeCount = 2;
    o->memoryTypes[0] = (VkMemoryType){.propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    o->memoryTypes[1] = (VkMemoryType){.propertyFlags = seen, .heapIndex = p->unified ? 0 : 1};
    if (p->unified) o->memoryTypes[1].propertyFlags |= VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    o->memoryHeapCount = p->unified ? 1 : 2;
    o->memoryHeaps[1] = (VkMemoryHeap){.size = o->memoryHeaps[0].size};
    o->memoryHeaps[0].flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
}
