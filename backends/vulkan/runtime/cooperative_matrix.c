// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/cooperative_matrix.h"
#include "backends/vulkan/runtime/device.h"
#include "core/device.h"

#include <string.h>

// Sizes in shaders/coopmat.glsl; what the tiles of GEMM need of a workgroup, and what those of few rows and
// attention/attention_coopmat.comp do.
enum { SIZE = 16, MAX_SHAPES = 128, MIN_THREADS = 256, MIN_SHARED = 32 << 10, LARGE_SHARED = 48 << 10 };

// Shapes that there are shaders for, and the size of the subgroups that hold one: of NVIDIA and AMD, and of
// Intel's Xe 2. The first one that a device lists is used.
static const tn_vk_coopmat known_shapes[] = {{16, 32}, {8, 16}};

// Component types and scopes have the same numbers in both extensions.
static bool is_wanted(const tn_vk_coopmat *shape, uint32_t m, uint32_t n, uint32_t k, int32_t c,
                      int32_t result, int32_t scope)
{
    return m == (uint32_t)shape->rows && n == SIZE && k == SIZE && c == VK_COMPONENT_TYPE_FLOAT32_KHR &&
           result == VK_COMPONENT_TYPE_FLOAT32_KHR && scope == VK_SCOPE_SUBGROUP_KHR;
}

// Whether pipelines have, or can ask for, subgroups of that size.
static bool has_subgroup(const tn_vk *v, uint32_t size)
{
    return v->subgroup == size ||
           (v->subgroup > 0 && v->sizes.can_require && v->sizes.least <= size && size <= v->sizes.most);
}

// The bit for operands of a type: TN_VK_COOPMAT_F16 or TN_VK_COOPMAT_BF16, or 0.
static int32_t bit_of(int32_t a, int32_t b)
{
    if (a != b) return 0;
    return a == VK_COMPONENT_TYPE_FLOAT16_KHR    ? TN_VK_COOPMAT_F16
           : a == VK_COMPONENT_TYPE_BFLOAT16_KHR ? TN_VK_COOPMAT_BF16
                                                 : 0;
}

static int32_t shapes_khr(const tn_vk *v, const tn_vk_coopmat *shape)
{
    VkCooperativeMatrixPropertiesKHR all[MAX_SHAPES] = {{0}};
    uint32_t n = MAX_SHAPES;
    int32_t found = 0;
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR get;
    PFN_vkVoidFunction f =
        v->instance->get_proc(v->instance->handle, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    if (!f) return 0;
    memcpy(&get, &f, sizeof get);
    for (uint32_t i = 0; i < n; i++) all[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (get(v->physical, &n, all) < VK_SUCCESS) return 0;
    for (uint32_t i = 0; i < n; i++) {
        const VkCooperativeMatrixPropertiesKHR *p = &all[i];
        if (is_wanted(shape, p->MSize, p->NSize, p->KSize, (int32_t)p->CType, (int32_t)p->ResultType,
                      (int32_t)p->scope))
            found |= bit_of((int32_t)p->AType, (int32_t)p->BType);
    }
    return found;
}

static int32_t shapes_nv(const tn_vk *v, const tn_vk_coopmat *shape)
{
    VkCooperativeMatrixPropertiesNV all[MAX_SHAPES] = {{0}};
    uint32_t n = MAX_SHAPES;
    int32_t found = 0;
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesNV get;
    PFN_vkVoidFunction f =
        v->instance->get_proc(v->instance->handle, "vkGetPhysicalDeviceCooperativeMatrixPropertiesNV");
    if (!f) return 0;
    memcpy(&get, &f, sizeof get);
    for (uint32_t i = 0; i < n; i++) all[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV;
    if (get(v->physical, &n, all) < VK_SUCCESS) return 0;
    for (uint32_t i = 0; i < n; i++) {
        const VkCooperativeMatrixPropertiesNV *p = &all[i];
        if (is_wanted(shape, p->MSize, p->NSize, p->KSize, (int32_t)p->CType, (int32_t)p->DType,
                      (int32_t)p->scope))
            found |= bit_of((int32_t)p->AType, (int32_t)p->BType);
    }
    if (shape->rows != SIZE) return 0;
    return found & TN_VK_COOPMAT_F16; // newer drivers may list the other too; there is no shader for it
}

// The extensions; the first one that a driver has is used.
static const struct {
    const char *extension;
    VkStructureType features;
    int32_t bit; // of tn_vk.has
    // Which types of operands it lists for a shape: bits of tn_vk.has.
    int32_t (*types)(const tn_vk *v, const tn_vk_coopmat *shape);
} forms[] = {{VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, TN_VK_COOPMAT_KHR,
              shapes_khr},
             {VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV, TN_VK_COOPMAT_NV, shapes_nv}};
_Static_assert(sizeof(VkPhysicalDeviceCooperativeMatrixFeaturesNV) ==
                   sizeof(VkPhysicalDeviceCooperativeMatrixFeaturesKHR),
               "tn_vk_coopmat_features has both");

static void link_features(tn_vk_coopmat_features *f, VkStructureType matrix, bool bf16)
{
    *f = (tn_vk_coopmat_features){
        .matrix.sType = matrix, .bf16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
    if (bf16) f->matrix.pNext = &f->bf16;
}

void tn_vk_coopmat_find(tn_vk *v)
{
    bool has_bf16 = tn_vk_has_extension(v, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
    size_t form = 0;
    while (form < TN_COUNT(forms) && !tn_vk_has_extension(v, forms[form].extension)) form++;
    if (v->max_shared < MIN_SHARED || v->max_threads < MIN_THREADS || form == TN_COUNT(forms)) return;
    tn_vk_coopmat_features f;
    link_features(&f, forms[form].features, has_bf16);
    VkPhysicalDeviceVulkan12Features v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .pNext = &f.matrix};
    VkPhysicalDeviceFeatures2 core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v12};
    v->instance->GetPhysicalDeviceFeatures2(v->physical, &core);
    if (!f.matrix.cooperativeMatrix || !v12.vulkanMemoryModel) return;
    int32_t found = 0;
    for (size_t i = 0; i < TN_COUNT(known_shapes) && !found; i++) {
        v->coopmat = known_shapes[i];
        if (has_subgroup(v, (uint32_t)v->coopmat.subgroup)) found = forms[form].types(v, &v->coopmat);
    }
    if (!v12.shaderFloat16) found &= ~TN_VK_COOPMAT_F16;
    if (!has_bf16 || !f.bf16.shaderBFloat16Type || !f.bf16.shaderBFloat16CooperativeMatrix)
        found &= ~TN_VK_COOPMAT_BF16;
    if (found & TN_VK_COOPMAT_F16 && v->coopmat.rows == SIZE && v->max_shared >= LARGE_SHARED)
        found |= TN_VK_COOPMAT_16;
    if (!found) return;
    v->has |= found | forms[form].bit;
    // Where a device has several sizes, the one of matrices is native (16 on Xe 2, 32 on RDNA 3).
    if (v->sizes.can_require && v->sizes.least != v->sizes.most) v->subgroup = (uint32_t)v->coopmat.subgroup;
}

void tn_vk_coopmat_enable(const tn_vk *v, VkPhysicalDeviceVulkan12Features *v12, tn_vk_coopmat_features *f)
{
    bool bf16 = (v->has & TN_VK_COOPMAT_BF16) != 0;
    size_t form = 0;
    while (form < TN_COUNT(forms) && !(v->has & forms[form].bit)) form++;
    if (form == TN_COUNT(forms)) return;
    link_features(f, forms[form].features, bf16);
    f->matrix.cooperativeMatrix = VK_TRUE;
    f->bf16.shaderBFloat16Type = f->bf16.shaderBFloat16CooperativeMatrix = VK_TRUE;
    v12->vulkanMemoryModel = VK_TRUE;
    v12->shaderFloat16 = (v->has & TN_VK_COOPMAT_F16) ? VK_TRUE : VK_FALSE;
    void **end = bf16 ? &f->bf16.pNext : &f->matrix.pNext;
    *end = v12->pNext;
    v12->pNext = &f->matrix;
}
