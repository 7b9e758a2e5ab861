// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A libvulkan.so.1 that passes every call on to the real one, and makes calls fail, counts and miscompiles on
// request. It can lend a device cooperative matrices.
#include "backends/vulkan/runtime/cooperative_matrix.h"
#include "tests/vulkan/between.h"
#include "tests/vulkan/profile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    state.n_after++;
    if (state.lost) return true;
    if (state.fail_name && strcmp(state.fail_name, name) == 0) return true;
    if (state.fail_at == 0 || call < state.fail_at) return false;
    if (call > state.fail_at && !state.fail_stays) return false;
    if (call == state.fail_at) snprintf(state.failed, sizeof state.failed, "%s", name);
    return true;
}

// What a device of a profile answers to a request beyond its limits.
static VkResult beyond(const char *what)
{
    snprintf(state.broken, sizeof state.broken, "%s", what);
    fprintf(stderr, "beyond the limits of %s: %s\n", state.profile->name, what);
    return VK_ERROR_INITIALIZATION_FAILED;
}

// Functions of a device that give a result: what is made (+1), or nothing (0).
#define CALLS(X)                                                                                             \
    X(AllocateCommandBuffers, 0, (VkDevice d, const VkCommandBufferAllocateInfo *i, VkCommandBuffer *o),     \
      (d, i, o))                                                                                             \
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
    X(CreateQueryPool, 1,                                                                                    \
      (VkDevice d, const VkQueryPoolCreateInfo *i, const VkAllocationCallbacks *a, VkQueryPool *o),          \
      (d, i, a, o))                                                                                          \
    X(CreateSemaphore, 1,                                                                                    \
      (VkDevice d, const VkSemaphoreCreateInfo *i, const VkAllocationCallbacks *a, VkSemaphore *o),          \
      (d, i, a, o))                                                                                          \
    X(EndCommandBuffer, 0, (VkCommandBuffer c), (c))                                                         \
    X(GetPipelineCacheData, 0, (VkDevice d, VkPipelineCache c, size_t * n, void *o), (d, c, n, o))           \
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
        state.n_after++;                                                                                     \
        if (object) state.n_alive--;                                                                         \
        real_##name(d, object, a);                                                                           \
    }
GONE(DEFINE_GONE)

static PFN_vkAllocateMemory real_AllocateMemory;
static VKAPI_ATTR VkResult VKAPI_CALL AllocateMemory(VkDevice d, const VkMemoryAllocateInfo *i,
                                                     const VkAllocationCallbacks *a, VkDeviceMemory *o)
{
    VkMemoryAllocateInfo own = *i;
    if (fails("AllocateMemory")) return state.error;
    if (state.profile) {
        if (i->allocationSize > PROFILE_ALLOCATION) return beyond("the size of an allocation");
        own.memoryTypeIndex = 0; // the driver has one
    }
    VkResult r = real_AllocateMemory(d, &own, a, o);
    if (r == VK_SUCCESS) state.n_alive++;
    return r;
}

static PFN_vkGetBufferMemoryRequirements real_GetBufferMemoryRequirements;
static VKAPI_ATTR void VKAPI_CALL GetBufferMemoryRequirements(VkDevice d, VkBuffer b, VkMemoryRequirements *o)
{
    real_GetBufferMemoryRequirements(d, b, o);
    if (state.profile) o->memoryTypeBits = 3;
}

static PFN_vkCreatePipelineLayout real_CreatePipelineLayout;
static VKAPI_ATTR VkResult VKAPI_CALL CreatePipelineLayout(VkDevice d, const VkPipelineLayoutCreateInfo *i,
                                                           const VkAllocationCallbacks *a,
                                                           VkPipelineLayout *o)
{
    if (fails("CreatePipelineLayout")) return state.error;
    for (uint32_t k = 0; state.profile && k < i->pushConstantRangeCount; k++)
        if (i->pPushConstantRanges[k].offset + i->pPushConstantRanges[k].size > PROFILE_PUSH)
            return beyond("push constants");
    VkResult r = real_CreatePipelineLayout(d, i, a, o);
    if (r == VK_SUCCESS) state.n_alive++;
    return r;
}

static PFN_vkCmdCopyBuffer real_CmdCopyBuffer;
static VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer(VkCommandBuffer c, VkBuffer from, VkBuffer to, uint32_t n,
                                                const VkBufferCopy *regions)
{
    state.n_copies += n;
    real_CmdCopyBuffer(c, from, to, n, regions);
}

// The work ends in any case: otherwise a device that counts as lost would still work on memory that is freed.
static PFN_vkWaitSemaphores real_WaitSemaphores;
static VKAPI_ATTR VkResult VKAPI_CALL WaitSemaphores(VkDevice d, const VkSemaphoreWaitInfo *i, uint64_t t)
{
    enum { LONG_NS = 2000000000 };
    if (state.hung && t > LONG_NS) {
        state.waits_forever = true;
        return VK_ERROR_UNKNOWN;
    }
    if (state.n_late > 0) {
        struct timespec limit = {.tv_nsec = (long)(t % 1000000000u), .tv_sec = (time_t)(t / 1000000000u)};
        nanosleep(&limit, NULL);
        state.n_late--;
        state.n_moved++;
        return VK_TIMEOUT;
    }
    VkResult r = real_WaitSemaphores(d, i, state.hang_at != 0 && !state.hung ? UINT64_MAX : t);
    if (fails("WaitSemaphores")) return state.error;
    if (r == VK_TIMEOUT) state.n_after = 0;
    return r;
}

static PFN_vkGetSemaphoreCounterValue real_GetSemaphoreCounterValue;
static VKAPI_ATTR VkResult VKAPI_CALL GetSemaphoreCounterValue(VkDevice d, VkSemaphore s, uint64_t *value)
{
    state.n_after++;
    VkResult r = real_GetSemaphoreCounterValue(d, s, value);
    if (state.n_moved > 0) *value = (1u << 20) + (uint64_t)state.n_moved;
    return r;
}

static PFN_vkGetQueryPoolResults real_GetQueryPoolResults;
static VKAPI_ATTR VkResult VKAPI_CALL GetQueryPoolResults(VkDevice d, VkQueryPool p, uint32_t first,
                                                          uint32_t n, size_t size, void *o,
                                                          VkDeviceSize stride, VkQueryResultFlags flags)
{
    state.n_after++;
    return real_GetQueryPoolResults(d, p, first, n, size, o, stride, flags);
}

static PFN_vkFreeCommandBuffers real_FreeCommandBuffers;
static VKAPI_ATTR void VKAPI_CALL FreeCommandBuffers(VkDevice d, VkCommandPool p, uint32_t n,
                                                     const VkCommandBuffer *c)
{
    state.n_after++;
    real_FreeCommandBuffers(d, p, n, c);
}

static PFN_vkQueueSubmit real_QueueSubmit;
static PFN_vkQueueWaitIdle wait_idle;
static VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit(VkQueue q, uint32_t n, const VkSubmitInfo *i, VkFence f)
{
    if (state.lose_at != 0 && state.n_submits + 1 == state.lose_at) {
        state.lost = true;
        state.lose_at = 0;
        state.error = VK_ERROR_DEVICE_LOST;
        wait_idle(q); // what was submitted before
    }
    if (fails("QueueSubmit")) return state.error;
    state.n_submits++;
    if (state.hang_at != 0 && state.n_submits >= state.hang_at) {
        state.hung = true;
        if (state.submitted) state.submitted();
        return VK_SUCCESS;
    }
    uint64_t took = state.slow_ns * i->commandBufferCount;
    if (took > state.longest_ns) state.longest_ns = took;
    struct timespec pause = {.tv_nsec = (long)(took % 1000000000u), .tv_sec = (time_t)(took / 1000000000u)};
    if (took > 0) nanosleep(&pause, NULL);
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
    if (state.profile && (x > PROFILE_GROUPS || y > PROFILE_GROUPS || z > PROFILE_GROUPS))
        beyond("workgroups of a dispatch");
    real_CmdDispatch(c, x, y, z);
}

// The code of modules that are there, as the backend gave it, for the limits of a profile.
typedef struct given_module {
    VkShaderModule handle;
    uint32_t *code;
    size_t size;
    struct given_module *next;
} given_module;
static given_module *given;
static pthread_mutex_t given_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_module(VkShaderModule handle, const VkShaderModuleCreateInfo *i)
{
    given_module *m = malloc(sizeof *m);
    if (!m) return;
    *m = (given_module){.handle = handle, .code = malloc(i->codeSize), .size = i->codeSize};
    if (m->code) memcpy(m->code, i->pCode, i->codeSize);
    pthread_mutex_lock(&given_lock);
    m->next = given;
    given = m;
    pthread_mutex_unlock(&given_lock);
}

static void forget_module(VkShaderModule handle)
{
    pthread_mutex_lock(&given_lock);
    for (given_module **m = &given; *m; m = &(*m)->next)
        if ((*m)->handle == handle) {
            given_module *gone = *m;
            *m = gone->next;
            free(gone->code);
            free(gone);
            break;
        }
    pthread_mutex_unlock(&given_lock);
}

// What the pipeline needs; false: its module is not known.
static bool needs_of(const VkComputePipelineCreateInfo *i, spirv_needs *out)
{
    bool known = false;
    pthread_mutex_lock(&given_lock);
    for (const given_module *m = given; m && !known; m = m->next)
        if (m->handle == i->stage.module && m->code)
            known = spirv_needs_of(m->code, m->size, i->stage.pSpecializationInfo, out);
    pthread_mutex_unlock(&given_lock);
    return known;
}

// Whether a device of the profile can make the pipeline, and its subgroups are those that this device has
// here: sums of the driver, and matrices of the emulation.
static VkResult check_limits(const between_profile *p, const VkComputePipelineCreateInfo *i)
{
    spirv_needs needs;
    if (!needs_of(i, &needs)) return beyond("a module that cannot be read");
    uint32_t threads = needs.size[0] * needs.size[1] * needs.size[2], size = p->subgroup;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo *wanted = i->stage.pNext;
    bool full = (i->stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT) != 0;
    if (needs.shared > p->shared) return beyond("shared memory");
    if (threads > p->invocations) return beyond("invocations of a workgroup");
    if (wanted) {
        size = wanted->requiredSubgroupSize;
        state.n_required++;
        if (!p->can_require || size < p->least || size > p->most) return beyond("the size of subgroups");
        if (threads > size * p->most_subgroups) return beyond("subgroups of a workgroup");
    }
    if (full && threads % size != 0) return beyond("full subgroups");
    if (p->least != p->most && !full && (needs.has_subgroups || needs.has_matrices))
        return beyond("subgroups that may not be full");
    if (needs.has_matrices && size != 2 * p->matrix_rows) return beyond("the size of subgroups of matrices");
    if (needs.has_subgroups && !needs.has_matrices && size != p->lanes) return beyond("subgroups of sums");
    return VK_SUCCESS;
}

static PFN_vkCreateComputePipelines real_CreateComputePipelines;
static VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(VkDevice d, VkPipelineCache c, uint32_t n,
                                                             const VkComputePipelineCreateInfo *i,
                                                             const VkAllocationCallbacks *a, VkPipeline *o)
{
    if (fails("CreateComputePipelines")) return state.error;
    VkComputePipelineCreateInfo changed = *i;
    if (state.profile && check_limits(state.profile, i) != VK_SUCCESS) return VK_ERROR_INITIALIZATION_FAILED;
    if (state.profile) changed.stage.pNext = NULL, changed.stage.flags = 0; // the driver has one size
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
    PFN_vkVoidFunction idle = real_device(d, "vkQueueWaitIdle");
    memcpy(&wait_idle, &idle, sizeof idle);
    return find(name, real_device(d, name));
}

// --- cooperative matrices ------------------------------------------------------------------------

enum { LENT_KHR, LENT_BF16, LENT_NV, LENT_SUBSET, LENT_BUDGET, LENT };
static const char *const lent[LENT] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                                       VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
                                       VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME, "VK_KHR_portability_subset",
                                       VK_EXT_MEMORY_BUDGET_EXTENSION_NAME};

// Index in lent; LENT: none of them.
static uint32_t lent_index(const char *name)
{
    uint32_t i = 0;
    while (i < LENT && strcmp(name, lent[i]) != 0) i++;
    return i;
}

// Whether the device has an extension that the driver may not have.
static bool lends(uint32_t i)
{
    if (i == LENT_SUBSET) return state.profile && state.profile->portability;
    if (i == LENT_BUDGET) return state.others > 0;
    return state.matrices && (i == LENT_NV || !state.matrices_nv);
}

static PFN_vkEnumerateDeviceExtensionProperties real_EnumerateDeviceExtensionProperties;
static VKAPI_ATTR VkResult VKAPI_CALL EnumerateDeviceExtensionProperties(VkPhysicalDevice p,
                                                                         const char *layer, uint32_t *n,
                                                                         VkExtensionProperties *o)
{
    uint32_t capacity = *n, more = 0, kept = 0;
    if (fails("EnumerateDeviceExtensionProperties")) return state.error;
    for (uint32_t i = 0; i < LENT; i++) more += lends(i);
    if (o && more > capacity) return VK_INCOMPLETE;
    *n = o ? capacity - more : 0;
    VkResult r = real_EnumerateDeviceExtensionProperties(p, layer, n, o);
    for (uint32_t i = 0; o && i < *n; i++)
        if (!state.hidden || !strstr(state.hidden, o[i].extensionName)) o[kept++] = o[i];
    if (o) *n = kept;
    for (uint32_t i = 0; i < LENT; i++) {
        if (!lends(i)) continue;
        if (o) {
            o[*n] = (VkExtensionProperties){.specVersion = 1};
            strcpy(o[*n].extensionName, lent[i]);
        }
        ++*n;
    }
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
        if (state.profile) o[i].MSize = state.profile->matrix_rows;
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
    for (VkBaseOutStructure *s = o->pNext; s && state.no_addresses; s = s->pNext)
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
            ((VkPhysicalDeviceVulkan12Features *)(void *)s)->bufferDeviceAddress = VK_FALSE;
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
// matrices, with its feature, and the portability subset where the device has it.
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
    if (asked[LENT_SUBSET] != lends(LENT_SUBSET)) return VK_ERROR_EXTENSION_NOT_PRESENT;
    if (!state.matrices) return VK_SUCCESS;
    if (asked[LENT_KHR] == state.matrices_nv || asked[LENT_NV] != state.matrices_nv)
        return VK_ERROR_EXTENSION_NOT_PRESENT;
    return feature ? VK_SUCCESS : VK_ERROR_FEATURE_NOT_PRESENT;
}

static PFN_vkCreateDevice real_CreateDevice;
static VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice p, const VkDeviceCreateInfo *i,
                                                   const VkAllocationCallbacks *a, VkDevice *o)
{
    if (fails("CreateDevice")) return state.error;
    VkDeviceCreateInfo own = *i;
    const char *names[16];
    VkResult r = state.matrices || state.profile ? take_back(&own, names) : VK_SUCCESS;
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
    if (r == VK_SUCCESS && state.profile) keep_module(*o, i);
    return r;
}

static PFN_vkDestroyShaderModule real_DestroyShaderModule;
static VKAPI_ATTR void VKAPI_CALL DestroyShaderModule(VkDevice d, VkShaderModule m,
                                                      const VkAllocationCallbacks *a)
{
    state.n_after++;
    if (m) state.n_alive--;
    if (state.profile) forget_module(m);
    real_DestroyShaderModule(d, m, a);
}

static PFN_vkDestroyDevice real_DestroyDevice;
static VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice d, const VkAllocationCallbacks *a)
{
    state.n_after++;
    if (d) state.n_alive--;
    state.lost = false;
    real_DestroyDevice(d, a);
}

static bool shows_layered; // the instance also lists layered drivers
static PFN_vkCreateInstance real_CreateInstance;
static VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo *i,
                                                     const VkAllocationCallbacks *a, VkInstance *o)
{
    if (fails("CreateInstance")) return state.error;
    shows_layered = (i->flags & VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR) != 0;
    VkResult r = real_CreateInstance(i, a, o);
    if (r == VK_SUCCESS) state.n_alive++;
    return r;
}

static PFN_vkDestroyInstance real_DestroyInstance;
static VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance i, const VkAllocationCallbacks *a)
{
    state.n_after++;
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
    if (state.no_devices || (state.profile && state.profile->portability && !shows_layered)) *n = 0;
    return r;
}

static PFN_vkGetPhysicalDeviceProperties2 real_GetPhysicalDeviceProperties2;
static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties2(VkPhysicalDevice p,
                                                               VkPhysicalDeviceProperties2 *o)
{
    real_GetPhysicalDeviceProperties2(p, o);
    static const char *wanted;
    if (!wanted) wanted = getenv("TN_BETWEEN_AS_GPU") ? "yes" : "no";
    bool as_gpu = state.as_gpu || *wanted == 'y' || state.profile;
    if (as_gpu) o->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    if (state.matrices && !state.profile)
        o->properties.limits.maxComputeSharedMemorySize = 48 << 10; // lavapipe accepts more than it states
    if (state.matrices && !state.profile)
        o->properties.vendorID = 0x10de; // emulated matrices lie as NVIDIA's
    for (VkBaseOutStructure *s = o->pNext; s; s = s->pNext) {
        VkPhysicalDeviceVulkan11Properties *p11 = (void *)s;
        VkPhysicalDeviceSubgroupSizeControlProperties *sizes = (void *)s;
        if (as_gpu && s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES)
            ((VkPhysicalDeviceShaderIntegerDotProductProperties *)(void *)s)
                ->integerDotProduct4x8BitPackedSignedAccelerated = VK_TRUE;
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) {
            if (state.no_subgroups || (state.profile ? state.profile->lanes == 0 : state.matrices))
                p11->subgroupSupportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
            if (state.matrices && !state.profile)
                p11->subgroupSize = 32; // the size that the emulation has, without real subgroups
        }
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES && state.matrices)
            sizes->minSubgroupSize = sizes->maxSubgroupSize = 32;
    }
    if (state.profile) profile_properties(state.profile, o);
}

static PFN_vkGetPhysicalDeviceMemoryProperties real_GetPhysicalDeviceMemoryProperties;
static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties(VkPhysicalDevice p,
                                                                    VkPhysicalDeviceMemoryProperties *o)
{
    real_GetPhysicalDeviceMemoryProperties(p, o);
    if (state.profile) profile_memory(state.profile, o);
}

// The budget is what other programs leave.
static PFN_vkGetPhysicalDeviceMemoryProperties2 real_GetPhysicalDeviceMemoryProperties2;
static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties2(VkPhysicalDevice p,
                                                                     VkPhysicalDeviceMemoryProperties2 *o)
{
    state.n_after++;
    real_GetPhysicalDeviceMemoryProperties2(p, o);
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = o->pNext;
    for (uint32_t i = 0; budget && i < o->memoryProperties.memoryHeapCount; i++) {
        uint64_t size = o->memoryProperties.memoryHeaps[i].size;
        budget->heapBudget[i] = size > state.others ? size - state.others : 0;
        budget->heapUsage[i] = 0;
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
    SAME(AllocateMemory)
    SAME(CmdCopyBuffer)
    SAME(CmdDispatch)
    SAME(CmdPipelineBarrier)
    SAME(QueueSubmit)
    SAME(WaitSemaphores)
    SAME(FreeCommandBuffers)
    SAME(GetQueryPoolResults)
    SAME(GetSemaphoreCounterValue)
    SAME(CreateComputePipelines)
    SAME(CreatePipelineLayout)
    SAME(CreateShaderModule)
    SAME(DestroyShaderModule)
    SAME(GetBufferMemoryRequirements)
    SAME(EnumerateDeviceExtensionProperties)
    SAME(GetPhysicalDeviceFeatures2)
    SAME(CreateDevice)
    SAME(DestroyDevice)
    SAME(CreateInstance)
    SAME(DestroyInstance)
    SAME(EnumerateInstanceVersion)
    SAME(EnumeratePhysicalDevices)
    SAME(GetPhysicalDeviceMemoryProperties)
    SAME(GetPhysicalDeviceMemoryProperties2)
    SAME(GetPhysicalDeviceProperties2)
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        memcpy(&real_device, &real, sizeof real);
        PFN_vkGetDeviceProcAddr mine = get_device_proc;
        memcpy(&real, &mine, sizeof real);
    }
    return real;
}

// llvmpipe has subgroups of as many invocations as a vector has floats.
static void take_profile(const char *name)
{
    char bits[16];
    if (!name) return;
    state.profile = profile_find(name);
    if (!state.profile) abort(); // the name of a test that does not exist
    state.matrices = state.profile->matrix_rows > 0;
    snprintf(bits, sizeof bits, "%u", 32 * state.profile->lanes);
    if (state.profile->lanes > 0) setenv("LP_NATIVE_VECTOR_WIDTH", bits, 1);
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
        take_profile(getenv("TN_BETWEEN_PROFILE"));
        const char *lose_at = getenv("TN_BETWEEN_LOSES_AT");
        if (lose_at) state.lose_at = atoll(lose_at);
        const char *hang_at = getenv("TN_BETWEEN_HANGS_AT");
        if (hang_at) state.hang_at = atoll(hang_at);
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
