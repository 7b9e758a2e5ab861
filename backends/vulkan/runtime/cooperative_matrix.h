// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a device has cooperative matrices, which subgroups hold together: VK_KHR_cooperative_matrix with
// VK_KHR_shader_bfloat16, which older headers of Vulkan do not know; on drivers without them
// VK_NV_cooperative_matrix, f16 only.
#ifndef TN_VULKAN_COOPERATIVE_MATRIX_H
#define TN_VULKAN_COOPERATIVE_MATRIX_H

#include "backends/vulkan/runtime/loader.h"

#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME                          "VK_KHR_cooperative_matrix"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR ((VkStructureType)1000506000)
#define VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR               ((VkStructureType)1000506001)
typedef struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
    VkStructureType sType;
    void *pNext;
    VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
} VkPhysicalDeviceCooperativeMatrixFeaturesKHR;
enum { VK_COMPONENT_TYPE_FLOAT16_KHR = 0, VK_COMPONENT_TYPE_FLOAT32_KHR = 1, VK_SCOPE_SUBGROUP_KHR = 3 };
typedef struct VkCooperativeMatrixPropertiesKHR {
    VkStructureType sType;
    void *pNext;
    uint32_t MSize, NSize, KSize;
    int32_t AType, BType, CType, ResultType;
    VkBool32 saturatingAccumulation;
    int32_t scope;
} VkCooperativeMatrixPropertiesKHR;
typedef VkResult(VKAPI_PTR *PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)(
    VkPhysicalDevice, uint32_t *, VkCooperativeMatrixPropertiesKHR *);
#endif
#ifndef VK_KHR_shader_bfloat16
#define VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME                          "VK_KHR_shader_bfloat16"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR ((VkStructureType)1000141000)
enum { VK_COMPONENT_TYPE_BFLOAT16_KHR = 1000141000 };
typedef struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
    VkStructureType sType;
    void *pNext;
    VkBool32 shaderBFloat16Type, shaderBFloat16DotProduct, shaderBFloat16CooperativeMatrix;
} VkPhysicalDeviceShaderBfloat16FeaturesKHR;
#endif

struct tn_vk;
typedef struct tn_vk_coopmat_features {
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix; // or that of NV, which is laid out alike
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16;
} tn_vk_coopmat_features;

// Adds to v->has what the device can do with matrices, and sets v->coopmat. Its subgroups and limits have to
// be known.
void tn_vk_coopmat_find(struct tn_vk *v);
// Enables the features that v->has stands for: sets those of v12, and links the others behind it.
void tn_vk_coopmat_enable(const struct tn_vk *v, VkPhysicalDeviceVulkan12Features *v12,
                          tn_vk_coopmat_features *f);

#endif
