// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a device can do, found out when it is listed.
#include "backends/vulkan/runtime/args.h"
#include "backends/vulkan/runtime/cooperative_matrix.h"
#include "backends/vulkan/runtime/device.h"
#include "core/device.h"

#include <stdio.h>

// Tokens of a prompt at a time on cards of their own; as on CUDA, where it was measured.
enum { BATCH = 2048, VENDOR_NVIDIA = 0x10de };
_Static_assert(sizeof(tn_vk_push) <= 128, "every device has 128 bytes of push constants");

// NULL, or the name of what the device lacks.
static const char *missing_feature(const tn_vk_features *f)
{
    return !f->v12.bufferDeviceAddress        ? "bufferDeviceAddress"
           : !f->v12.timelineSemaphore        ? "timelineSemaphore"
           : !f->v12.scalarBlockLayout        ? "scalarBlockLayout"
           : !f->v12.storageBuffer8BitAccess  ? "storageBuffer8BitAccess"
           : !f->v11.storageBuffer16BitAccess ? "storageBuffer16BitAccess"
           : !f->v12.shaderInt8               ? "shaderInt8"
           : !f->core.features.shaderInt16    ? "shaderInt16"
           : !f->core.features.shaderInt64    ? "shaderInt64"
                                              : NULL;
}

// The first memory type with all of `want`, of those without `avoid` if there are any; -1: none.
static int32_t memory_type(const VkPhysicalDeviceMemoryProperties *m, VkMemoryPropertyFlags want,
                           VkMemoryPropertyFlags avoid)
{
    for (int32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < m->memoryTypeCount; i++) {
            VkMemoryPropertyFlags flags = m->memoryTypes[i].propertyFlags;
            if ((flags & want) == want && (round > 0 || !(flags & avoid))) return (int32_t)i;
        }
    return -1;
}

// Memory of the device that the host sees, on integrated devices and where all memory is the device's own
// (Apple): then nothing has to be copied through staging memory. -1: there is none.
static int32_t unified_type(const VkPhysicalDeviceMemoryProperties *m, bool integrated)
{
    const VkMemoryPropertyFlags seen =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (uint32_t i = 0; i < m->memoryHeapCount; i++)
        if (!integrated && !(m->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) return -1;
    int32_t cached =
        memory_type(m, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | seen | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 0);
    return cached >= 0 ? cached : memory_type(m, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | seen, 0);
}

static bool find_queue(tn_vk *v)
{
    VkQueueFamilyProperties families[16];
    uint32_t n = TN_COUNT(families);
    v->instance->GetPhysicalDeviceQueueFamilyProperties(v->physical, &n, families);
    for (uint32_t i = 0; i < n; i++) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        v->family = i;
        if (families[i].timestampValidBits == 0) v->tick_ns = 0.0f;
        return true;
    }
    return false;
}

// Lists the extensions once, because drivers need some time for it.
static bool list_extensions(tn_vk *v)
{
    uint32_t n = 0;
    if (v->instance->EnumerateDeviceExtensionProperties(v->physical, NULL, &n, NULL) != VK_SUCCESS)
        return false;
    v->extensions = tn_calloc(v->device->ctx, n, sizeof *v->extensions);
    if (!v->extensions ||
        v->instance->EnumerateDeviceExtensionProperties(v->physical, NULL, &n, v->extensions) != VK_SUCCESS)
        return n == 0;
    v->n_extensions = n;
    return true;
}

// The size that pipelines ask for where subgroups have several.
static uint32_t wanted_size(uint32_t least, uint32_t most)
{
    enum { WANTED = 32 };
    return most < WANTED ? most : TN_MAX(least, WANTED);
}

// What pipelines may ask for (VK_EXT_subgroup_size_control).
static void find_size_control(tn_vk *v, const VkPhysicalDeviceSubgroupSizeControlProperties *p)
{
    VkPhysicalDeviceSubgroupSizeControlFeatures may = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceFeatures2 f = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &may};
    v->sizes = (tn_vk_subgroup_sizes){.least = p->minSubgroupSize, .most = p->maxSubgroupSize};
    if (!tn_vk_has_extension(v, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) return;
    v->instance->GetPhysicalDeviceFeatures2(v->physical, &f);
    v->sizes.full = may.subgroupSizeControl && may.computeFullSubgroups;
    v->sizes.can_require = v->sizes.full && (p->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
}

// Kernels are divided by the size of subgroups, so it has to be known. Where there are several (16 to 32 on
// Intel, 32 to 64 on AMD), each pipeline asks for one of them. Where none can be asked for (MoltenVK),
// pipelines have the size that the device names, if subgroups are full.
static void find_subgroups(tn_vk *v, uint32_t version)
{
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceVulkan11Properties p11 = {.sType =
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &p11};
    if (version >= VK_API_VERSION_1_3 || tn_vk_has_extension(v, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME))
        p11.pNext = &sizes;
    v->instance->GetPhysicalDeviceProperties2(v->physical, &p);
    uint32_t size = p11.subgroupSize;
    bool all_same = sizes.minSubgroupSize == size && sizes.maxSubgroupSize == size;
    find_size_control(v, &sizes);
    if (!all_same && v->sizes.can_require) {
        size = wanted_size(sizes.minSubgroupSize, sizes.maxSubgroupSize);
        uint64_t threads = (uint64_t)size * sizes.maxComputeWorkgroupSubgroups;
        v->max_threads = (uint32_t)TN_MIN(threads, v->max_threads);
    }
    bool whole = size >= 8 && size <= 128 && (size & (size - 1)) == 0;
    v->subgroup = (all_same || v->sizes.full) && whole ? size : 0;
    VkSubgroupFeatureFlags want = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    if (v->subgroup > 0 && (p11.subgroupSupportedOperations & want) == want &&
        (p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
        v->has |= TN_VK_SUBGROUPS |
                  (p11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT ? TN_VK_SHUFFLE : 0);
}

// A processor gains by int8 activations too: they need a quarter of the loads.
static void find_dot(tn_vk *v)
{
    VkPhysicalDeviceShaderIntegerDotProductProperties dot = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &dot};
    tn_vk_features f;
    if (!tn_vk_has_extension(v, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) return;
    tn_vk_features_link(&f);
    f.v12.pNext = &f.dot;
    v->instance->GetPhysicalDeviceFeatures2(v->physical, &f.core);
    v->instance->GetPhysicalDeviceProperties2(v->physical, &p);
    bool fast = dot.integerDotProduct4x8BitPackedSignedAccelerated || v->device->software;
    if (f.dot.shaderIntegerDotProduct && fast) v->has |= TN_VK_INT8_DOT;
}

// Vulkan itself does not say how many there are.
static void find_processors(tn_vk *v)
{
    enum { LARGE = 132 }; // as the largest devices of 2025 have, if the driver does not say it either
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
    VkPhysicalDeviceShaderCoreProperties2AMD amd = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    if (tn_vk_has_extension(v, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
        p.pNext = &nvidia;
    else if (tn_vk_has_extension(v, VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME))
        p.pNext = &amd;
    if (p.pNext) v->instance->GetPhysicalDeviceProperties2(v->physical, &p);
    uint32_t n = TN_MAX(nvidia.shaderSMCount, amd.activeComputeUnitCount);
    v->n_processors = n > 0 && n <= INT16_MAX ? (int32_t)n : LARGE;
}

// The largest buffer of a device whose allocations have at most that size. maxStorageBufferRange (128 MiB on
// some devices) limits bindings of descriptors only, and there are none.
static uint64_t most_bytes(const tn_vk *v, uint64_t allocation)
{
    VkPhysicalDeviceMaintenance4Properties limits = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                     .pNext = &limits};
    if (!tn_vk_has_extension(v, VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) return allocation;
    v->instance->GetPhysicalDeviceProperties2(v->physical, &p);
    return limits.maxBufferSize > 0 ? TN_MIN(limits.maxBufferSize, allocation) : allocation;
}

static const char *find_all(tn_vk *v, int32_t ordinal)
{
    tn_device *d = v->device;
    VkPhysicalDeviceMaintenance3Properties limits = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
                                               .pNext = &limits};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                     .pNext = &driver};
    VkPhysicalDeviceMemoryProperties memory;
    v->instance->GetPhysicalDeviceProperties2(v->physical, &p);
    v->instance->GetPhysicalDeviceMemoryProperties(v->physical, &memory);
    const VkPhysicalDeviceProperties *of = &p.properties;
    snprintf(d->name, sizeof d->name, "vulkan:%d", ordinal);
    snprintf(d->description, sizeof d->description, "%.64s, %.32s %.32s, Vulkan %u.%u", of->deviceName,
             driver.driverName, driver.driverInfo, VK_API_VERSION_MAJOR(of->apiVersion),
             VK_API_VERSION_MINOR(of->apiVersion));
    d->software = of->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    // Integrated devices have fewer units to keep busy, and share memory with the rest of the machine.
    d->n_batch = of->deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? BATCH : 0;
    d->max_buffer_size = (size_t)TN_MIN(most_bytes(v, limits.maxMemoryAllocationSize), SIZE_MAX);
    v->max_groups = TN_MIN(of->limits.maxComputeWorkGroupCount[0], of->limits.maxComputeWorkGroupCount[1]);
    v->tick_ns = of->limits.timestampPeriod;
    v->max_shared = of->limits.maxComputeSharedMemorySize;
    v->max_threads = TN_MIN(of->limits.maxComputeWorkGroupInvocations, of->limits.maxComputeWorkGroupSize[0]);
    if (of->apiVersion < VK_API_VERSION_1_2) return "Vulkan 1.2";
    if (!find_queue(v)) return "a queue for compute";
    int32_t unified = unified_type(&memory, of->deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU),
            on_device = unified >= 0 ? unified : memory_type(&memory, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0);
    int32_t on_host =
        memory_type(&memory, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    if (on_device < 0 || on_host < 0) return "memory of the kinds needed";
    if (of->limits.maxPushConstantsSize < sizeof(tn_vk_push)) return "128 bytes of push constants";
    v->is_portability = tn_vk_has_extension(v, TN_VK_PORTABILITY_SUBSET);
    v->device_type = (uint32_t)on_device;
    v->device_heap = memory.memoryTypes[on_device].heapIndex;
    v->tells_budget = tn_vk_has_extension(v, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    find_subgroups(v, of->apiVersion);
    find_dot(v);
    find_processors(v);
    tn_vk_coopmat_find(v);
    if (of->vendorID == VENDOR_NVIDIA && v->has & TN_VK_COOPMAT_16) v->has |= TN_VK_COOPMAT_LAYOUT;
    v->host_type = (uint32_t)on_host;
    VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    v->device_visible = (memory.memoryTypes[on_device].propertyFlags & visible) == visible;
    d->memory_total = memory.memoryHeaps[v->device_heap].size;
    tn_vk_features f;
    tn_vk_features_link(&f);
    v->instance->GetPhysicalDeviceFeatures2(v->physical, &f.core);
    if (f.v12.shaderFloat16 && !d->software) v->has |= TN_VK_F16_ARITHMETIC;
    return missing_feature(&f);
}

const char *tn_vk_describe(tn_vk *v, int32_t ordinal)
{
    bool listed = list_extensions(v);
    const char *lacks = find_all(v, ordinal);
    if (!lacks && !listed) lacks = "a list of its extensions: the driver failed, or memory";
    tn_free(v->device->ctx, v->extensions);
    v->extensions = NULL;
    v->n_extensions = 0;
    return lacks;
}
