// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The logical device with its queue, made when a device is first used.
#include "backends/vulkan/runtime/args.h"
#include "backends/vulkan/runtime/cooperative_matrix.h"
#include "backends/vulkan/runtime/device.h"
#include "core/device.h"

// Extensions that are enabled where a device has them, and what they bring.
static const struct {
    const char *name;
    int32_t brings;
} extensions[] = {{VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, TN_VK_INT8_DOT},
                  {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, TN_VK_COOPMAT_KHR},
                  {VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME, TN_VK_COOPMAT_NV},
                  {VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, TN_VK_COOPMAT_BF16}};

static tn_status make_device(tn_vk *v)
{
    tn_vk_features f;
    tn_vk_features_link(&f);
    f.core.features.shaderInt16 = f.core.features.shaderInt64 = VK_TRUE;
    f.v11.storageBuffer16BitAccess = f.v12.storageBuffer8BitAccess = f.v12.shaderInt8 = VK_TRUE;
    f.v12.bufferDeviceAddress = f.v12.timelineSemaphore = f.v12.scalarBlockLayout = VK_TRUE;
    const char *names[TN_COUNT(extensions) + 2];
    uint32_t n_names = 0;
    for (size_t i = 0; i < TN_COUNT(extensions); i++)
        if (v->has & extensions[i].brings) names[n_names++] = extensions[i].name;
    if (v->is_portability) names[n_names++] = TN_VK_PORTABILITY_SUBSET;
    VkPhysicalDeviceSubgroupSizeControlFeatures sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .subgroupSizeControl = VK_TRUE,
        .computeFullSubgroups = VK_TRUE};
    if (tn_vk_asks_for_subgroups(v)) {
        names[n_names++] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
        sizes.pNext = f.v11.pNext;
        f.v11.pNext = &sizes;
    }
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

void tn_vk_logical_destroy(tn_vk *v)
{
    if (!v->handle) return;
    tn_vk_memory_destroy(v, &v->staging);
    tn_vk_memory_destroy(v, &v->tables);
    tn_vk_pipeline_cache_save(v);
    tn_vk_rope_angles_free(v);
    tn_vk_pipelines_free(v);
    tn_vk_pipeline_cache_free(v);
    tn_vk_blocks_free(v);
    if (!tn_vk_is_given_up(v)) {
        v->f.DestroyPipelineLayout(v->handle, v->layout, NULL);
        v->f.DestroySemaphore(v->handle, v->timeline, NULL);
        v->f.DestroyCommandPool(v->handle, v->pool, NULL);
        v->f.DestroyDevice(v->handle, NULL);
    }
    v->layout = NULL, v->timeline = NULL, v->pool = NULL, v->handle = NULL;
}

tn_status tn_vk_logical_create(tn_vk *v)
{
    tn_vk_logical_destroy(v); // one that was lost
    v->n_submitted = 0;
    tn_status status = make_device(v);
    if (status == TN_OK) status = make_objects(v);
    if (status != TN_OK) tn_vk_logical_destroy(v);
    return status;
}
