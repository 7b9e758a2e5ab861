// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/matrices.h"
#include "backends/vulkan/device.h"
#include "core/device.h"

#include <string.h>

// shaders/matrix.glsl; what attention needs of a workgroup, and the tiles of products.
enum { SIZE = 16, SUBGROUP = 32, MAX_SHAPES = 128, MIN_SHARED = 48 << 10, MIN_THREADS = 256 };

static bool lists(const VkCooperativeMatrixPropertiesKHR *all, uint32_t n, int32_t type)
{
    for (uint32_t i = 0; i < n; i++) {
        const VkCooperativeMatrixPropertiesKHR *p = &all[i];
        if (p->MSize == SIZE && p->NSize == SIZE && p->KSize == SIZE && (int32_t)p->AType == type &&
            (int32_t)p->BType == type && (int32_t)p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            (int32_t)p->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            (int32_t)p->scope == VK_SCOPE_SUBGROUP_KHR)
            return true;
    }
    return false;
}

static void find_shapes(tn_vk *v, bool f16, bool bf16)
{
    VkCooperativeMatrixPropertiesKHR all[MAX_SHAPES] = {{0}};
    uint32_t n = MAX_SHAPES;
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR get;
    PFN_vkVoidFunction f =
        v->instance->get_proc(v->instance->handle, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    if (!f) return;
    memcpy(&get, &f, sizeof get);
    for (uint32_t i = 0; i < n; i++) all[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (get(v->physical, &n, all) < VK_SUCCESS) return;
    if (f16 && lists(all, n, VK_COMPONENT_TYPE_FLOAT16_KHR)) v->has |= TN_VK_MATRIX_F16;
    if (bf16 && lists(all, n, VK_COMPONENT_TYPE_BFLOAT16_KHR)) v->has |= TN_VK_MATRIX_BF16;
}

static void link_features(tn_vk_matrix_features *f, bool bf16)
{
    *f = (tn_vk_matrix_features){
        .matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .bf16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
    if (bf16) f->matrix.pNext = &f->bf16;
}

void tn_vk_matrices_find(tn_vk *v)
{
    bool has_bf16 = tn_vk_has_extension(v, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
    if (v->subgroup != SUBGROUP || v->max_shared < MIN_SHARED || v->max_threads < MIN_THREADS ||
        !tn_vk_has_extension(v, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        return;
    tn_vk_matrix_features f;
    link_features(&f, has_bf16);
    VkPhysicalDeviceVulkan12Features v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .pNext = &f.matrix};
    VkPhysicalDeviceFeatures2 core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v12};
    v->instance->GetPhysicalDeviceFeatures2(v->physical, &core);
    if (!f.matrix.cooperativeMatrix || !v12.vulkanMemoryModel) return;
    find_shapes(v, v12.shaderFloat16 != VK_FALSE,
                has_bf16 && f.bf16.shaderBFloat16Type && f.bf16.shaderBFloat16CooperativeMatrix);
}

void tn_vk_matrices_enable(const tn_vk *v, VkPhysicalDeviceVulkan12Features *v12, tn_vk_matrix_features *f)
{
    if (!(v->has & (TN_VK_MATRIX_F16 | TN_VK_MATRIX_BF16))) return;
    bool bf16 = (v->has & TN_VK_MATRIX_BF16) != 0;
    link_features(f, bf16);
    f->matrix.cooperativeMatrix = VK_TRUE;
    f->bf16.shaderBFloat16Type = f->bf16.shaderBFloat16CooperativeMatrix = VK_TRUE;
    v12->vulkanMemoryModel = VK_TRUE;
    v12->shaderFloat16 = (v->has & TN_VK_MATRIX_F16) ? VK_TRUE : VK_FALSE;
    void **end = bf16 ? &f->bf16.pNext : &f->matrix.pNext;
    *end = v12->pNext;
    v12->pNext = &f->matrix;
}
