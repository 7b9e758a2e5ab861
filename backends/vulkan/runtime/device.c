// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/device.h"
#include "core/device.h"

#include <string.h>

tn_status tn_vk_check(tn_vk *v, VkResult r, const char *what)
{
    if (r == VK_SUCCESS) return TN_OK;
    if (r == VK_ERROR_DEVICE_LOST) atomic_store_explicit(&v->lost, 1, memory_order_relaxed); // orders nothing
    if (r == VK_ERROR_OUT_OF_HOST_MEMORY || r == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        return tn_fail(v->device->ctx, TN_ERR_MEMORY, "%s: %s: out of memory", v->device->name, what);
    return tn_fail(v->device->ctx, TN_ERR_DEVICE, "%s: %s: %s (VkResult %d)", v->device->name, what,
                   r == VK_ERROR_DEVICE_LOST ? "the device was lost" : "the driver failed", (int)r);
}

bool tn_vk_has_extension(const tn_vk *v, const char *name)
{
    for (uint32_t i = 0; i < v->n_extensions; i++)
        if (strcmp(v->extensions[i].extensionName, name) == 0) return true;
    return false;
}

tn_status tn_vk_enter(tn_vk *v)
{
    if (atomic_load_explicit(&v->lost, memory_order_relaxed) != 0)
        return tn_fail(v->device->ctx, TN_ERR_DEVICE,
                       "%s: the device was lost; sessions on it have to be made anew in a new context",
                       v->device->name);
    tn_mutex_lock(&v->lock);
    tn_status status = v->handle ? TN_OK : v->create_logical(v);
    tn_mutex_unlock(&v->lock);
    return status;
}
