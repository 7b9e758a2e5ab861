// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan backend: which devices there are, and the logical device that is made when one is first used.
#include "core/backend.h"

#include "backends/vulkan/kernels.h"
#include "backends/vulkan/runtime/cooperative_matrix.h"
#include "core/device.h"

#include <tenon/precision.h>

#include <stdio.h>
#include <string.h>

extern const tn_backend tn_backend_vulkan;

enum { MAX_PHYSICAL = 16 };
// Tokens of a prompt at a time on cards of their own; as on CUDA, where it was measured.
enum { BATCH = 2048 };

// --- errors ----------------------------------------------------------------------------------------

tn_status tn_vk_check(tn_vk *v, VkResult r, const char *what)
{
    if (r == VK_SUCCESS) return TN_OK;
    if (r == VK_ERROR_DEVICE_LOST) atomic_store_explicit(&v->lost, 1, memory_order_relaxed); // orders nothing
    if (r == VK_ERROR_OUT_OF_HOST_MEMORY || r == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        return tn_fail(v->device->ctx, TN_ERR_MEMORY, "%s: %s: out of memory", v->device->name, what);
    return tn_fail(v->device->ctx, TN_ERR_DEVICE, "%s: %s: %s (VkResult %d)", v->device->name, what,
                   r == VK_ERROR_DEVICE_LOST ? "the device was lost" : "the driver failed", (int)r);
}

// --- the logical device ------------------------------------------------------------------------------

// All that shaders rely on. Core of Vulkan 1.2, optional there.
typedef struct features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot; // linked where the extension is there
} features;

// Extensions that are enabled where a device has them, and what they bring.
static const struct {
    const char *name;
    int32_t brings;
} extensions[] = {{VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, TN_VK_INT8_DOT},
                  {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, TN_VK_COOPMAT_KHR},
                  {VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME, TN_VK_COOPMAT_NV},
                  {VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, TN_VK_COOPMAT_BF16}};

static void link_features(features *f)
{
    *f = (features){.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                    .v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                    .v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                    .dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
    f->core.pNext = &f->v11;
    f->v11.pNext = &f->v12;
}

// NULL, or the name of what the device lacks.
static const char *missing_feature(const features *f)
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

static tn_status make_device(tn_vk *v)
{
    features f;
    link_features(&f);
    f.core.features.shaderInt16 = f.core.features.shaderInt64 = VK_TRUE;
    f.v11.storageBuffer16BitAccess = f.v12.storageBuffer8BitAccess = f.v12.shaderInt8 = VK_TRUE;
    f.v12.bufferDeviceAddress = f.v12.timelineSemaphore = f.v12.scalarBlockLayout = VK_TRUE;
    const char *names[TN_COUNT(extensions)];
    uint32_t n_names = 0;
    for (size_t i = 0; i < TN_COUNT(extensions); i++)
        if (v->has & extensions[i].brings) names[n_names++] = extensions[i].name;
    if (v->has & TN_VK_INT8_DOT) {
        f.v12.pNext = &f.dot;
        f.dot.shaderIntegerDotProduct = VK_TRUE;
    }
    tn_vk_coopmat_features matrices;
    tn_vk_coopmat_enable(v, &f.v12, &matrices);
    if (v->has & TN_VK_F16_ARITHMETIC) f.v12.shaderFloat16 = VK_TRUE;
    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = v->family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &f.core,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = n_names,
                               .ppEnabledExtensionNames = names};
    VkDevice device;
    tn_status status =
        tn_vk_check(v, v->instance->CreateDevice(v->physical, &info, NULL, &device), "making a device");
    if (status != TN_OK) return status;
    v->handle = device;
    if (tn_vk_functions_get(v->instance, device, &v->f)) return TN_OK;
    // Without its functions it cannot even be destroyed properly; this driver is broken.
    v->handle = NULL;
    return tn_fail(v->device->ctx, TN_ERR_DEVICE, "%s: the driver lacks functions of Vulkan 1.2",
                   v->device->name);
}

static tn_status make_objects(tn_vk *v)
{
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .queueFamilyIndex = v->family};
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = sizeof(tn_vk_push)};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .pushConstantRangeCount = 1,
                                         .pPushConstantRanges = &range};
    v->f.GetDeviceQueue(v->handle, v->family, 0, &v->queue);
    tn_status status =
        tn_vk_check(v, v->f.CreateCommandPool(v->handle, &pool, NULL, &v->pool), "making a command pool");
    if (status == TN_OK)
        status = tn_vk_check(v, v->f.CreateSemaphore(v->handle, &semaphore, NULL, &v->timeline),
                             "making a semaphore");
    if (status == TN_OK)
        status = tn_vk_check(v, v->f.CreatePipelineLayout(v->handle, &layout, NULL, &v->layout),
                             "making a layout");
    if (status == TN_OK) status = tn_vk_pipeline_cache_create(v);
    return status == TN_OK ? tn_vk_tables_create(v) : status;
}

static void destroy_objects(tn_vk *v)
{
    if (!v->handle) return;
    tn_vk_memory_destroy(v, &v->staging);
    tn_vk_memory_destroy(v, &v->tables);
    tn_vk_pipeline_cache_save(v);
    tn_vk_rope_angles_free(v);
    tn_vk_pipelines_free(v);
    tn_vk_pipeline_cache_free(v);
    tn_vk_blocks_free(v);
    v->f.DestroyPipelineLayout(v->handle, v->layout, NULL);
    v->f.DestroySemaphore(v->handle, v->timeline, NULL);
    v->f.DestroyCommandPool(v->handle, v->pool, NULL);
    v->f.DestroyDevice(v->handle, NULL);
    v->layout = NULL, v->timeline = NULL, v->pool = NULL, v->handle = NULL;
}

tn_status tn_vk_enter(tn_vk *v)
{
    if (atomic_load_explicit(&v->lost, memory_order_relaxed) != 0)
        return tn_fail(v->device->ctx, TN_ERR_DEVICE,
                       "%s: the device was lost; sessions on it have to be made anew in a new context",
                       v->device->name);
    mtx_lock(&v->lock);
    tn_status status = TN_OK;
    if (!v->handle) {
        status = make_device(v);
        if (status == TN_OK) status = make_objects(v);
        if (status != TN_OK) destroy_objects(v);
    }
    mtx_unlock(&v->lock);
    return status;
}

// --- devices ---------------------------------------------------------------------------------------

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

// Asked for once: it takes drivers some time. Without memory the device has none.
static void list_extensions(tn_vk *v)
{
    uint32_t n = 0;
    if (v->instance->EnumerateDeviceExtensionProperties(v->physical, NULL, &n, NULL) != VK_SUCCESS) return;
    v->extensions = tn_calloc(v->device->ctx, n, sizeof *v->extensions);
    if (v->extensions &&
        v->instance->EnumerateDeviceExtensionProperties(v->physical, NULL, &n, v->extensions) == VK_SUCCESS)
        v->n_extensions = n;
}

bool tn_vk_has_extension(const tn_vk *v, const char *name)
{
    for (uint32_t i = 0; i < v->n_extensions; i++)
        if (strcmp(v->extensions[i].extensionName, name) == 0) return true;
    return false;
}

// Subgroups count only where all have the same size: else a pipeline would have to ask for one.
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
    bool whole = size >= 8 && size <= 128 && (size & (size - 1)) == 0;
    v->subgroup = all_same && whole ? size : 0;
    VkSubgroupFeatureFlags want = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    if (v->subgroup > 0 && (p11.subgroupSupportedOperations & want) == want &&
        (p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
        v->has |= TN_VK_SUBGROUPS |
                  (p11.subgroupSupportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT ? TN_VK_SHUFFLE : 0);
}

// A processor gains too: activations take a quarter of the loads.
static void find_dot(tn_vk *v)
{
    VkPhysicalDeviceShaderIntegerDotProductProperties dot = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &dot};
    features f;
    if (!tn_vk_has_extension(v, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) return;
    link_features(&f);
    f.v12.pNext = &f.dot;
    v->instance->GetPhysicalDeviceFeatures2(v->physical, &f.core);
    v->instance->GetPhysicalDeviceProperties2(v->physical, &p);
    bool fast = dot.integerDotProduct4x8BitPackedSignedAccelerated || v->device->software;
    if (f.dot.shaderIntegerDotProduct && fast) v->has |= TN_VK_INT8_DOT;
}

// NULL, or why the device cannot be used.
static const char *describe(tn_vk *v, int32_t ordinal)
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
    // Integrated ones have less to keep busy, and share memory with the rest.
    d->n_batch = of->deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? BATCH : 0;
    d->max_buffer_size = (size_t)TN_MIN(limits.maxMemoryAllocationSize, SIZE_MAX);
    v->max_groups = TN_MIN(of->limits.maxComputeWorkGroupCount[0], of->limits.maxComputeWorkGroupCount[1]);
    v->tick_ns = of->limits.timestampPeriod;
    v->max_shared = of->limits.maxComputeSharedMemorySize;
    v->max_threads = TN_MIN(of->limits.maxComputeWorkGroupInvocations, of->limits.maxComputeWorkGroupSize[0]);
    if (of->apiVersion < VK_API_VERSION_1_2) return "Vulkan 1.2";
    if (!find_queue(v)) return "a queue for compute";
    int32_t on_device = memory_type(&memory, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0);
    int32_t on_host =
        memory_type(&memory, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    if (on_device < 0 || on_host < 0) return "memory of the kinds wanted";
    v->device_type = (uint32_t)on_device;
    v->device_heap = memory.memoryTypes[on_device].heapIndex;
    v->tells_budget = tn_vk_has_extension(v, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    find_subgroups(v, of->apiVersion);
    find_dot(v);
    tn_vk_coopmat_find(v);
    v->host_type = (uint32_t)on_host;
    VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    v->device_visible = (memory.memoryTypes[on_device].propertyFlags & visible) == visible;
    d->memory_total = memory.memoryHeaps[v->device_heap].size;
    features f;
    link_features(&f);
    v->instance->GetPhysicalDeviceFeatures2(v->physical, &f.core);
    if (f.v12.shaderFloat16 && !d->software) v->has |= TN_VK_F16_ARITHMETIC;
    return missing_feature(&f);
}

static void destroy(tn_vk *v)
{
    tn_context *ctx = v->device->ctx;
    destroy_objects(v);
    mtx_destroy(&v->lock);
    mtx_destroy(&v->staging_lock);
    mtx_destroy(&v->blocks_lock);
    tn_vk_instance_unref(ctx, v->instance);
    tn_free(ctx, v);
}

static bool make_locks(tn_vk *v)
{
    mtx_t *locks[] = {&v->lock, &v->staging_lock, &v->blocks_lock};
    size_t n = 0;
    while (n < TN_COUNT(locks) && mtx_init(locks[n], mtx_plain) == thrd_success) n++;
    if (n == TN_COUNT(locks)) return true;
    while (n > 0) mtx_destroy(locks[--n]);
    return false;
}

// *lacks: what the device has not, or NULL; then it was not added.
static tn_status open_device(tn_context *ctx, tn_vk_instance *instance, VkPhysicalDevice physical,
                             int32_t ordinal, char *lacks, size_t lacks_size)
{
    tn_device *d = tn_calloc(ctx, 1, sizeof *d);
    tn_vk *v = tn_calloc(ctx, 1, sizeof *v);
    if (!d || !v || !make_locks(v)) {
        tn_free(ctx, v);
        tn_free(ctx, d);
        return TN_ERR_MEMORY;
    }
    *d = (tn_device){.backend = &tn_backend_vulkan, .ctx = ctx, .impl = v};
    v->device = d;
    v->physical = physical;
    v->kernels = tn_vk_kernels_get(&v->n_kernels);
    v->instance = instance;
    instance->refs++;
    atomic_init(&v->lost, 0);
    list_extensions(v);
    const char *without = describe(v, ordinal);
    tn_free(ctx, v->extensions);
    v->extensions = NULL;
    v->n_extensions = 0;
    tn_status status = TN_OK;
    if (without)
        snprintf(lacks, lacks_size, "%s: it lacks %s", d->description, without);
    else
        status = tn_device_add(ctx, d);
    if (!without && status == TN_OK) return TN_OK;
    destroy(v);
    tn_free(ctx, d);
    return status;
}

// Real devices first: a software driver is taken only when it is asked for, or alone.
static tn_status vulkan_open(tn_context *ctx)
{
    char why[256] = "";
    tn_vk_instance *instance;
    tn_status status = tn_vk_instance_create(ctx, &instance, why, sizeof why);
    if (status != TN_OK || !instance) {
        if (status == TN_OK) tn_backend_absent(ctx, "vulkan", why);
        return status;
    }
    VkPhysicalDevice found[MAX_PHYSICAL];
    uint32_t n = MAX_PHYSICAL;
    int32_t ordinal = 0;
    VkResult r = instance->EnumeratePhysicalDevices(instance->handle, &n, found);
    if (r != VK_SUCCESS && r != VK_INCOMPLETE) n = 0;
    for (int32_t software = 0; software < 2; software++)
        for (uint32_t i = 0; i < n && status == TN_OK; i++) {
            VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
            instance->GetPhysicalDeviceProperties2(found[i], &p);
            if ((p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) != (software != 0)) continue;
            char lacks[256] = "";
            status = open_device(ctx, instance, found[i], ordinal, lacks, sizeof lacks);
            if (*lacks)
                tn_backend_absent(ctx, "vulkan", lacks);
            else
                ordinal++;
        }
    if (n == 0) tn_backend_absent(ctx, "vulkan", "the Vulkan loader finds no device");
    tn_vk_instance_unref(ctx, instance);
    return status;
}

static void vulkan_close(tn_device *device)
{
    destroy(tn_vk_of(device));
}

// The core of Vulkan tells no free memory: without the extension it is what exists.
static uint64_t vulkan_memory_free(const tn_device *device)
{
    const tn_vk *v = tn_vk_of(device);
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    if (!v->tells_budget) return device->memory_total;
    v->instance->GetPhysicalDeviceMemoryProperties2(v->physical, &memory);
    uint64_t may = budget.heapBudget[v->device_heap], used = budget.heapUsage[v->device_heap];
    return may > used ? TN_MIN(may - used, device->memory_total) : 0;
}

// What products round to, by what their kernels need of the device; f32 otherwise. Whether they keep what
// that mode promises: arithmetic in f16 rounds sums too, and only runs where any precision will do.
static const struct {
    int32_t needs, precision;
    bool is_mode;
} rounds[] = {{TN_VK_SUBGROUPS | TN_VK_INT8_DOT, TN_PRECISION_int8, true},
              {TN_VK_COOPMAT_F16, TN_PRECISION_f16, true},
              {TN_VK_F16_ARITHMETIC, TN_PRECISION_f16, false},
              {TN_VK_COOPMAT_BF16, TN_PRECISION_bf16, true}};

static uint32_t vulkan_precisions(const tn_device *device)
{
    uint32_t has = 1u << TN_PRECISION_f32;
    for (size_t i = 0; i < TN_COUNT(rounds); i++)
        if (rounds[i].is_mode && !(rounds[i].needs & ~tn_vk_of(device)->has))
            has |= 1u << rounds[i].precision;
    return has;
}

static int32_t vulkan_rounding(const tn_device *device, const struct tn_step *step)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(tn_vk_of(device), step, NULL);
    for (size_t i = 0; k && i < TN_COUNT(rounds); i++)
        if (k->needs == rounds[i].needs) return rounds[i].precision;
    return TN_PRECISION_f32;
}

const tn_backend tn_backend_vulkan = {
    .name = "vulkan",
    .open = vulkan_open,
    .close = vulkan_close,
    .memory_free = vulkan_memory_free,
    .buffer_create = tn_vk_buffer_create,
    .buffer_destroy = tn_vk_buffer_destroy,
    .buffer_write = tn_vk_buffer_write,
    .buffer_read = tn_vk_buffer_read,
    .buffer_zero = tn_vk_buffer_zero,
    .weight_write = tn_vk_weight_write,
    .host_create = tn_vk_host_create,
    .host_destroy = tn_vk_host_destroy,
    .precisions = vulkan_precisions,
    .accepts = tn_vk_accepts,
    .prepare = tn_vk_prepare,
    .scratch_size = tn_vk_scratch_size,
    .executable_destroy = tn_vk_executable_destroy,
    .kernel_name = tn_vk_kernel_name,
    .rounding = vulkan_rounding,
    .submit = tn_vk_submit,
    .wait = tn_vk_wait,
};
