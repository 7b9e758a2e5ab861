// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A libvulkan.so.1 that passes every call on to the real one, and makes calls fail, counts and miscompiles on
// request. It can lend a device cooperative matrices.
#include "backends/vulkan/runtime/cooperative_matrix.h"
#include "tests/vulkan/between.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static between_state state;
static PFN_vkGetInstanceProcAddr real_instance;
static PFN_vkGetDeviceProcAddr real_device;

EXPORT between_state *between_get(void)
{
    return &state;
}

// Whether this call fails.
static bool fails(const char *name)
{
    int64_t call = ++state.n_calls; // pipelines are made on several threads
    if (state.fail_name && strcmp(state.fail_name, name) == 0) return true;
    if (state.fail_at == 0 || call < state.fail_at) return false;
    if (call > state.fail_at && !state.fail_stays) return false;
    if (call == state.fail_at) snprintf(state.failed, sizeof state.failed, "%s", name);
    return true;
}

// Functions of a device that give a result: what is made (+1), or nothing (0).
#define CALLS(X)                                                                                             \
    X(AllocateCommandBuffers, 0, (VkDevice d, const VkCommandBufferAllocateInfo *i, VkCommandBuffer *o),     \
      (d, i, o))                                                                                             \
    X(AllocateMemory, 1,                                                                                     \
      (VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a, VkDeviceMemory *o),        \
      (d, i, a, o))                                                                                          \
    X(BeginCommandBuffer, 0, (VkCommandBuffer c, const VkCommandBufferBeginInfo *i), (c, i))                 \
    X(BindBufferMemory, 0, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize o), (d, b, m, o))         \
    X(CreateBuffer, 1,                                                                                       \
      (VkDevice d, const VkBufferCreateInfo *i, const VkAllocationCallbacks *a, VkBuffer *o), (d, i, a, o))  \
    X(CreateCommandPool, 1,                                                                                  \
      (VkDevice d, const VkCommandPoolCreateInfo *i, const VkAllocationCallbacks *a, VkCommandPool *o),      \
      (d, i, a, o))                                                                                          \
    X(CreatePipelineCache, 1,                                                                                \
      (VkDevice d, const VkPipelineCacheCreateInfo *i, const VkAllocationCallbacks *a, VkPipelineCache *o),  \
      (d, i, a, o))                                                                                          \
    X(CreatePipelineLayout, 1,                                                                               \
      (VkDevice d, const VkPipelineLayoutCreateInfo *i, const VkAllocationCallbacks *a,                      \
       VkPipelineLayout *o),                                                                                 \
      (d, i, a, o))                                                                                          \
    X(CreateQueryPool, 1,                                                                                    \
      (VkDevice d, const VkQueryPoolCreateInfo *i, const VkAllocationCallbacks *a, VkQueryPool *o),          \
      (d, i, a, o))                                                                                          \
    X(CreateSemaphore, 1,                                                                                    \
      (VkDevice d, const VkSemaphoreCreateInfo *i, const VkAllocationCallbacks *a, VkSemaphore *o),          \
      (d, i, a, o))                                                                                          \
    X(EndCommandBuffer, 0, (VkCommandBuffer c), (c))                                                         \
    X(GetPipelineCacheData, 0, (VkDevice d, VkPipelineCache c, size_t *n, void *o), (d, c, n, o))            \
    X(MapMemory, 0,                                                                                          \
      (VkDevice d, VkDeviceMemory m, VkDeviceSize o, VkDeviceSize n, VkMemoryMapFlags f, void **p),          \
      (d, m, o, n, f, p))

#define GONE(X)                                                                                              \
    X(DestroyBuffer, VkBuffer)                                                                               \
    X(DestroyCommandPool, VkCommandPool)                                                                     \
    X(DestroyPipeline, VkPipeline)                                                                           \
    X(DestroyPipelineCache, VkPipelineCache)                                                                 \
    X(DestroyPipelineLayout, VkPipelineLayout)                                                               \
    X(DestroyQueryPool, VkQueryPool)                                                                         \
    X(DestroySemaphore, VkSemaphore)                                                                         \
    X(DestroyShaderModule, VkShaderModule)                                                                   \
    X(FreeMemory, VkDeviceMemory)

#define DEFINE_CALL(name, made, parameters, arguments)                                                       \
    static PFN_vk##name real_##name;                                                                         \
    static VKAPI_ATTR VkResult VKAPI_CALL name parameters                                                    \
    {                                                                                                        \
        if (fails(#name)) return state.error;                                                                \
        VkResult r = real_##name arguments;                                                                  \
        if (r == VK_SUCCESS) state.n_alive += made;                                                          \
        return r;                                                                                            \
    }
CALLS(DEFINE_CALL)
#define DEFINE_GONE(name, type)                                                                              \
    static PFN_vk##name real_##name;                                                                         \
    static VKAPI_ATTR void VKAPI_CALL name(VkDevice d, type object, const VkAllocationCallbacks *a)          \
    {                                                                                                        \
        if (object) state.n_alive--;                                                                         \
        real_##name(d, object, a);                                                                           \
    }
GONE(DEFINE_GONE)

// The work ends in any case: otherwise a device that counts as lost would still work on memory that is freed.
static PFN_vkWaitSemaphores real_WaitSemaphores;
static VKAPI_ATTR VkResult VKAPI_CALL WaitSemaphores(VkDevice d, const VkSemaphoreWaitInfo *i, uint64_t t)
{
    VkResult r = real_WaitSemaphores(d, i, t);
    return fails("WaitSemaphores") ? state.error : r;
}

static PFN_vkQueueSubmit real_QueueSubmit;
static VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit(VkQueue q, uint32_t n, const VkSubmitInfo *i, VkFence f)
{
    if (fails("QueueSubmit")) return state.error;
    state.n_submits++;
    VkResult r = real_QueueSubmit(q, n, i, f);
    if (state.submitted) state.submitted();
    return r;
}

static PFN_vkCmdPipelineBarrier real_CmdPipelineBarrier;
static VKAPI_ATTR void VKAPI_CALL CmdPipelineBarrier(VkCommandBuffer c, VkPipelineStageFlags from,
                                                     VkPipelineStageFlags to, VkDependencyFlags flags,
                                                     uint32_t n, const VkMemoryBarrier *m, uint32_t n_buffers,
                                                     const VkBufferMemoryBarrier *buffers, uint32_t n_images,
                                                     const VkImageMemoryBarrier *images)
{
    state.n_barriers++;
    real_CmdPipelineBarrier(c, from, to, flags, n, m, n_buffers, buffers, n_images, images);
}

static PFN_vkCmdDispatch real_CmdDispatch;
static VKAPI_ATTR void VKAPI_CALL CmdDispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z)
{
    state.n_dispatches++;
    real_CmdDispatch(c, x, y, z);
}

static PFN_vkCreateComputePipelines real_CreateComputePipelines;
static VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(VkDevice d, VkPipelineCache c, uint32_t n,
                                                             const VkComputePipelineCreateInfo *i,
                                                             const VkAllocationCallbacks *a, VkPipeline *o)
{
    if (fails("CreateComputePipelines")) return state.error;
    VkComputePipelineCreateInfo changed = *i;
    VkSpecializationInfo special = *i->stage.pSpecializationInfo;
    int32_t values[16] = {0};
    if (n == 1 && special.dataSize <= sizeof values) {
        memcpy(values, special.pData, special.dataSize);
        if (state.constants) state.constants(values, special.mapEntryCount);
        special.pData = values;
        changed.stage.pSpecializationInfo = &special;
    }
    state.n_pipelines++;
    VkResult r = real_CreateComputePipelines(d, c, n, &changed, a, o);
    if (r == VK_SUCCESS) state.n_alive++;
    return r;
}

static PFN_vkVoidFunction find(const char *name, PFN_vkVoidFunction real);
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice d, const char *name)
{
    return find(name, real_device(d, name));
}

// --- cooperative matrices ------------------------------------------------------------------------

enum { LENT = 3 };
static const char *const lent[LENT] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                                       VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
                                       VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME};

// Index in lent; LENT: none of them.
static uint32_t lent_index(const char *name)
{
    uint32_t i = 0;
    while (i < LENT && strcmp(name, lent[i]) != 0) i++;
    return i;
}

static uint32_t first_lent(void)
{
    return !state.matrices ? LENT : state.matrices_nv ? 2 : 0;
}

static PFN_vkEnumerateDeviceExtensionProperties real_EnumerateDeviceExtensionProperties;
static VKAPI_ATTR VkResult VKAPI_CALL EnumerateDeviceExtensionProperties(VkPhysicalDevice p,
                                                                         const char *layer, uint32_t *n,
                                                                         VkExtensionProperties *o)
{
    uint32_t capacity = *n, more = LENT - first_lent(), kept = 0;
    if (fails("EnumerateDeviceExtensionProperties")) return state.error;
    if (o && more > capacity) return VK_INCOMPLETE;
    *n = o ? capacity - more : 0;
    VkResult r = real_EnumerateDeviceExtensionProperties(p, layer, n, o);
    for (uint32_t i = 0; o && i < *n; i++)
        if (!state.hidden || !strstr(state.hidden, o[i].extensionName)) o[kept++] = o[i];
    if (o) *n = kept;
    for (uint32_t i = 0; o && i < more; i++) {
        o[*n + i] = (VkExtensionProperties){.specVersion = 1};
        strcpy(o[*n + i].extensionName, lent[first_lent() + i]);
    }
    *n += more;
    return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL get_matrices(VkPhysicalDevice p, uint32_t *n,
                                                   VkCooperativeMatrixPropertiesKHR *o)
{
    static const int32_t types[] = {VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_BFLOAT16_KHR};
    (void)p;
    if (!o || *n > 2) *n = 2;
    for (uint32_t i = 0; o && i < *n; i++) {
        o[i].MSize = o[i].NSize = o[i].KSize = 16;
        o[i].AType = o[i].BType = types[i];
        o[i].CType = o[i].ResultType = VK_COMPONENT_TYPE_FLOAT32_KHR;
        o[i].scope = VK_SCOPE_SUBGROUP_KHR;
    }
    return VK_SUCCESS;
}

// The shape that the backend uses, among others.
static VKAPI_ATTR VkResult VKAPI_CALL get_matrices_nv(VkPhysicalDevice p, uint32_t *n,
                                                      VkCooperativeMatrixPropertiesNV *o)
{
    static const struct {
        uint32_t n;
        VkComponentTypeNV sums;
    } shapes[] = {{8, VK_COMPONENT_TYPE_FLOAT32_NV},
                  {16, VK_COMPONENT_TYPE_FLOAT16_NV},
                  {16, VK_COMPONENT_TYPE_FLOAT32_NV}};
    (void)p;
    if (!o || *n > 3) *n = 3;
    for (uint32_t i = 0; o && i < *n; i++) {
        o[i].MSize = o[i].KSize = 16;
        o[i].NSize = shapes[i].n;
        o[i].AType = o[i].BType = VK_COMPONENT_TYPE_FLOAT16_NV;
        o[i].CType = o[i].DType = shapes[i].sums;
        o[i].scope = VK_SCOPE_SUBGROUP_NV;
    }
    return VK_SUCCESS;
}

static bool is_matrix(VkStructureType type)
{
    return type == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR ||
           type == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV;
}

static bool is_lent(VkStructureType type)
{
    return is_matrix(type) || type == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
}

static PFN_vkGetPhysicalDeviceFeatures2 real_GetPhysicalDeviceFeatures2;
static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceFeatures2(VkPhysicalDevice p, VkPhysicalDeviceFeatures2 *o)
{
    real_GetPhysicalDeviceFeatures2(p, o);
    for (VkBaseOutStructure *s = o->pNext; s && state.matrices; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
            ((VkPhysicalDeviceVulkan12Features *)(void *)s)->shaderFloat16 = VK_TRUE;
        if (is_matrix(s->sType)) // both are laid out alike
            ((VkPhysicalDeviceCooperativeMatrixFeaturesKHR *)(void *)s)->cooperativeMatrix = VK_TRUE;
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR) {
            VkPhysicalDeviceShaderBfloat16FeaturesKHR *f = (void *)s;
            f->shaderBFloat16Type = f->shaderBFloat16CooperativeMatrix = VK_TRUE;
        }
    }
}

// Removes what was lent from the request. Fails unless it has exactly the right extension of cooperative
// matrices, with its feature.
static VkResult take_back(VkDeviceCreateInfo *own, const char *names[16])
{
    bool asked[LENT] = {0}, feature = false;
    uint32_t n = 0;
    for (uint32_t k = 0; k < own->enabledExtensionCount && n < 16; k++) {
        uint32_t which = lent_index(own->ppEnabledExtensionNames[k]);
        if (which == LENT)
            names[n++] = own->ppEnabledExtensionNames[k];
        else
            asked[which] = true;
    }
    own->enabledExtensionCount = n;
    own->ppEnabledExtensionNames = names;
    VkStructureType type = state.matrices_nv
                               ? VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV
                               : VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    for (VkBaseOutStructure *s = (VkBaseOutStructure *)own; s; s = s->pNext)
        while (s->pNext && is_lent(s->pNext->sType)) {
            feature = feature || s->pNext->sType == type;
            s->pNext = s->pNext->pNext;
        }
    if (asked[0] == state.matrices_nv || asked[2] != state.matrices_nv) return VK_ERROR_EXTENSION_NOT_PRESENT;
    return feature ? VK_SUCCESS : VK_ERROR_FEATURE_NOT_PRESENT;
}

static PFN_vkCreateDevice real_CreateDevice;
static VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice p, const VkDeviceCreateInfo *i,
                                                   const VkAllocationCallbacks *a, VkDevice *o)
{
    if (fails("CreateDevice")) return state.error;
    VkDeviceCreateInfo own = *i;
    const char *names[16];
    VkResult r = state.matrices ? take_back(&own, names) : VK_SUCCESS;
    if (r == VK_SUCCESS) r = real_CreateDevice(p, &own, a, o);
    if (r == VK_SUCCESS) state.n_alive++;
    return r;
}

// Modules with cooperative matrices, and the same emulated.
#define TN_VK_SHADER(module, source, macro)
#define DECLARE_MODULE(module) extern const uint32_t tn_vk_code_##module[], tn_vk_code_end_##module[];
#define TN_VK_SHADER_COOPMAT(module, source, macro)                                                          \
    DECLARE_MODULE(module)                                                                                   \
    DECLARE_MODULE(module##_emulated)
#define TN_VK_SHADER_COOPMAT_NV(module, source, macro)                                                       \
    TN_VK_SHADER_COOPMAT(module, source, macro)                                                              \
    DECLARE_MODULE(module##_nv)
#include "backends/vulkan/shaders.def"
static const struct {
    const uint32_t *code, *end, *emulated, *emulated_end;
    bool nv;
} modules[] = {
#define TN_VK_SHADER(module, source, macro)
#define MODULE_ROW(module, other, nv)                                                                        \
    {tn_vk_code_##module, tn_vk_code_end_##module, tn_vk_code_##other, tn_vk_code_end_##other, nv},
#define TN_VK_SHADER_COOPMAT(module, source, macro) MODULE_ROW(module, module##_emulated, false)
#define TN_VK_SHADER_COOPMAT_NV(module, source, macro)                                                       \
    TN_VK_SHADER_COOPMAT(module, source, macro)                                                              \
    MODULE_ROW(module##_nv, module##_emulated, true)
#include "backends/vulkan/shaders.def"
};

// clang-format off
// A compute shader that does nothing: void main() {} with one invocation (SPIR-V specification, chapter 3).
static const uint32_t nothing[] = {
    0x07230203, 0x00010300, 0, 5, 0,             // magic number, version 1.3, generator, bound of ids, 0
    2u << 16 | 17, 1,                            // OpCapability Shader
    3u << 16 | 14, 0, 1,                         // OpMemoryModel Logical GLSL450
    5u << 16 | 15, 5, 1, 0x6e69616d, 0,          // OpEntryPoint GLCompute %1 "main"
    6u << 16 | 16, 1, 17, 1, 1, 1,               // OpExecutionMode %1 LocalSize 1 1 1
    2u << 16 | 19, 2, 3u << 16 | 33, 3, 2,       // %2 = OpTypeVoid, %3 = OpTypeFunction %2
    5u << 16 | 54, 2, 1, 0, 3, 2u << 16 | 248, 4, // %1 = OpFunction %2 None %3, %4 = OpLabel
    1u << 16 | 253, 1u << 16 | 56,                // OpReturn, OpFunctionEnd
};
// clang-format on

static PFN_vkCreateShaderModule real_CreateShaderModule;
static VKAPI_ATTR VkResult VKAPI_CALL CreateShaderModule(VkDevice d, const VkShaderModuleCreateInfo *i,
                                                         const VkAllocationCallbacks *a, VkShaderModule *o)
{
    if (fails("CreateShaderModule")) return state.error;
    VkShaderModuleCreateInfo own = *i;
    for (size_t k = 0; state.matrices && k < sizeof modules / sizeof *modules; k++) {
        size_t size = (size_t)((const char *)modules[k].end - (const char *)modules[k].code);
        if (size != i->codeSize || memcmp(modules[k].code, i->pCode, size) != 0) continue;
        if (modules[k].nv != state.matrices_nv) return VK_ERROR_INITIALIZATION_FAILED;
        state.n_emulated++;
        own.pCode = modules[k].emulated;
        own.codeSize = (size_t)((const char *)modules[k].emulated_end - (const char *)modules[k].emulated);
    }
    if (state.no_kernels) own.pCode = nothing, own.codeSize = sizeof nothing;
    VkResult r = real_CreateShaderModule(d, &own, a, o);
    if (r == VK_SUCCESS) state.n_alive++;
    return r;
}

static PFN_vkDestroyDevice real_DestroyDevice;
static VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice d, const VkAllocationCallbacks *a)
{
    if (d) state.n_alive--;
    real_DestroyDevice(d, a);
}

static PFN_vkCreateInstance real_CreateInstance;
static VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo *i,
                                                     const VkAllocationCallbacks *a, VkInstance *o)
{
    if (fails("CreateInstance")) return state.error;
    VkResult r = real_CreateInstance(i, a, o);
    if (r == VK_SUCCESS) state.n_alive++;
    return r;
}

static PFN_vkDestroyInstance real_DestroyInstance;
static VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance i, const VkAllocationCallbacks *a)
{
    if (i) state.n_alive--;
    real_DestroyInstance(i, a);
}

static PFN_vkEnumerateInstanceVersion real_EnumerateInstanceVersion;
static VKAPI_ATTR VkResult VKAPI_CALL EnumerateInstanceVersion(uint32_t *version)
{
    VkResult r = real_EnumerateInstanceVersion(version);
    if (state.version != 0) *version = state.version;
    return r;
}

static PFN_vkEnumeratePhysicalDevices real_EnumeratePhysicalDevices;
static VKAPI_ATTR VkResult VKAPI_CALL EnumeratePhysicalDevices(VkInstance i, uint32_t *n, VkPhysicalDevice *o)
{
    if (fails("EnumeratePhysicalDevices")) return state.error;
    VkResult r = real_EnumeratePhysicalDevices(i, n, o);
    if (state.no_devices) *n = 0;
    return r;
}

static PFN_vkGetPhysicalDeviceProperties2 real_GetPhysicalDeviceProperties2;
static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties2(VkPhysicalDevice p,
                                                               VkPhysicalDeviceProperties2 *o)
{
    real_GetPhysicalDeviceProperties2(p, o);
    static const char *wanted;
    if (!wanted) wanted = getenv("TN_BETWEEN_AS_GPU") ? "yes" : "no";
    bool as_gpu = state.as_gpu || *wanted == 'y';
    if (as_gpu) o->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    if (state.matrices)
        o->properties.limits.maxComputeSharedMemorySize = 48 << 10; // lavapipe accepts more than it states
    for (VkBaseOutStructure *s = o->pNext; s; s = s->pNext) {
        VkPhysicalDeviceVulkan11Properties *p11 = (void *)s;
        VkPhysicalDeviceSubgroupSizeControlProperties *sizes = (void *)s;
        if (as_gpu && s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES)
            ((VkPhysicalDeviceShaderIntegerDotProductProperties *)(void *)s)
                ->integerDotProduct4x8BitPackedSignedAccelerated = VK_TRUE;
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) {
            if (state.no_subgroups || state.matrices)
                p11->subgroupSupportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
            if (state.matrices)
                p11->subgroupSize = 32; // the size that the emulation has, without real subgroups
        }
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES && state.matrices)
            sizes->minSubgroupSize = sizes->maxSubgroupSize = 32;
    }
}

// The function of this file if it has one of that name, which keeps the real one; else the real one.
static PFN_vkVoidFunction find(const char *name, PFN_vkVoidFunction real)
{
    if (!real) return NULL;
#define SAME(function)                                                                                       \
    if (strcmp(name, "vk" #function) == 0) {                                                                 \
        memcpy(&real_##function, &real, sizeof real);                                                        \
        PFN_vk##function mine = function;                                                                    \
        memcpy(&real, &mine, sizeof real);                                                                   \
        return real;                                                                                         \
    }
#define SAME_CALL(function, made, parameters, arguments) SAME(function)
#define SAME_GONE(function, type)                        SAME(function)
    CALLS(SAME_CALL)
    GONE(SAME_GONE)
    SAME(CmdDispatch)
    SAME(CmdPipelineBarrier)
    SAME(QueueSubmit)
    SAME(WaitSemaphores)
    SAME(CreateComputePipelines)
    SAME(CreateShaderModule)
    SAME(EnumerateDeviceExtensionProperties)
    SAME(GetPhysicalDeviceFeatures2)
    SAME(CreateDevice)
    SAME(DestroyDevice)
    SAME(CreateInstance)
    SAME(DestroyInstance)
    SAME(EnumerateInstanceVersion)
    SAME(EnumeratePhysicalDevices)
    SAME(GetPhysicalDeviceProperties2)
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        memcpy(&real_device, &real, sizeof real);
        PFN_vkGetDeviceProcAddr mine = get_device_proc;
        memcpy(&real, &mine, sizeof real);
    }
    return real;
}

PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name);
EXPORT PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name)
{
    if (!real_instance) {
        void *library = dlopen(REAL_VULKAN, RTLD_NOW | RTLD_LOCAL);
        void *entry = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
        if (!entry) return NULL;
        memcpy(&real_instance, &entry, sizeof entry);
        const char *wanted = getenv("TN_BETWEEN_MATRICES");
        state.matrices = wanted != NULL;
        state.matrices_nv = wanted && strcmp(wanted, "nv") == 0;
        state.hidden = getenv("TN_BETWEEN_HIDES");
    }
    PFN_vkVoidFunction any;
    if (state.matrices && strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR") == 0) {
        PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR mine = get_matrices;
        memcpy(&any, &mine, sizeof any);
        return any;
    }
    if (state.matrices && strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesNV") == 0) {
        PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesNV mine = get_matrices_nv;
        memcpy(&any, &mine, sizeof any);
        return any;
    }
    return find(name, real_instance(instance, name));
}
