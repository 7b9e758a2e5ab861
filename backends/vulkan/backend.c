// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan backend: which devices there are, and the logical device that is made when one is first used.
#include "core/backend.h"

#include "backends/vulkan/kernels.h"
#include "backends/vulkan/runtime/staged.h"
#include "core/device.h"

#include <tenon/precision.h>

#include <stdio.h>
#include <string.h>

extern const tn_backend tn_backend_vulkan;

enum { MAX_PHYSICAL = 16 };

static void destroy(tn_vk *v)
{
    tn_context *ctx = v->device->ctx;
    tn_vk_logical_destroy(v);
    if (tn_vk_is_given_up(v)) v->instance->given_up = true;
    tn_vk_instance_unref(ctx, v->instance);
    tn_free(ctx, v);
}

// *lacks: what the device has not, or NULL; then it was not added.
static tn_status open_device(tn_context *ctx, tn_vk_instance *instance, VkPhysicalDevice physical,
                             int32_t ordinal, char *lacks, size_t lacks_size)
{
    tn_device *d = tn_calloc(ctx, 1, sizeof *d);
    tn_vk *v = tn_calloc(ctx, 1, sizeof *v);
    if (!d || !v) {
        tn_free(ctx, v);
        tn_free(ctx, d);
        return TN_ERR_MEMORY;
    }
    *d = (tn_device){.backend = &tn_backend_vulkan, .ctx = ctx, .impl = v};
    v->device = d;
    v->physical = physical;
    v->kernels = tn_vk_kernels_get(&v->n_kernels);
    v->create_logical = tn_vk_logical_create;
    v->instance = instance;
    instance->refs++;
    atomic_init(&v->lost, 0);
    const char *without = tn_vk_describe(v, ordinal);
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

// Devices come first, then software drivers: one of these is used only if the caller asks for it, or if it is
// alone.
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

// The core of Vulkan does not report free memory: without the extension it is all that the device has.
static uint64_t vulkan_memory_free(const tn_device *device)
{
    const tn_vk *v = tn_vk_of(device);
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    if (tn_vk_is_given_up(v)) return 0;
    if (!v->tells_budget) return device->memory_total;
    v->instance->GetPhysicalDeviceMemoryProperties2(v->physical, &memory);
    uint64_t may = budget.heapBudget[v->device_heap], used = budget.heapUsage[v->device_heap];
    return may > used ? TN_MIN(may - used, device->memory_total) : 0;
}

// The precision of products by what their kernels need of the device; f32 otherwise. is_mode: whether the
// kernel keeps what the mode of that name promises. Arithmetic in f16 rounds sums too, so it runs only where
// the caller leaves the choice to the device.
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
    .joins = tn_vk_joins,
    .staged_size = tn_vk_staged_size,
    .executable_destroy = tn_vk_executable_destroy,
    .kernel_name = tn_vk_kernel_name,
    .launches = tn_vk_launches,
    .copy_kernel = "host_copy",
    .rounding = vulkan_rounding,
    .submit = tn_vk_submit,
    .wait = tn_vk_wait,
};
