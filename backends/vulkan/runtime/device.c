// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/device.h"
#include "core/device.h"

#include <string.h>

tn_status tn_vk_check(tn_vk *v, VkResult r, const char *what)
{
    if (r == VK_SUCCESS) return TN_OK;
    int32_t none = 0;
    if (r == VK_ERROR_DEVICE_LOST) // relaxed: it orders nothing
        atomic_compare_exchange_strong_explicit(&v->lost, &none, TN_VK_LOST, memory_order_relaxed,
                                                memory_order_relaxed);
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

bool tn_vk_is_lost(const tn_vk *v)
{
    return atomic_load_explicit(&v->lost, memory_order_relaxed) != 0; // orders nothing
}

bool tn_vk_is_given_up(const tn_vk *v)
{
    return atomic_load_explicit(&v->lost, memory_order_relaxed) == TN_VK_GIVEN_UP;
}

tn_status tn_vk_give_up(tn_vk *v, const tn_device_wait *w, const char *what)
{
    atomic_store_explicit(&v->lost, TN_VK_GIVEN_UP, memory_order_relaxed);
    return tn_device_wait_fail(v->device, w, what);
}

tn_status tn_vk_fail_lost(tn_vk *v)
{
    if (tn_vk_is_given_up(v)) return tn_device_fail_given_up(v->device);
    return tn_fail(
        v->device->ctx, TN_ERR_DEVICE,
        "%s: the device was lost; models and sessions on it have to be closed before others are opened",
        v->device->name);
}

tn_status tn_vk_enter(tn_vk *v)
{
    if (tn_vk_is_lost(v)) return tn_vk_fail_lost(v);
    tn_mutex_lock(&v->lock);
    tn_status status = v->handle ? TN_OK : v->create_logical(v);
    tn_mutex_unlock(&v->lock);
    return status;
}

tn_status tn_vk_begin_object(tn_vk *v)
{
    tn_status status = TN_OK;
    tn_mutex_lock(&v->lock);
    bool anew = tn_vk_is_lost(v) && !tn_vk_is_given_up(v) && v->n_objects == 0;
    if (anew) atomic_store_explicit(&v->lost, 0, memory_order_relaxed);
    if (tn_vk_is_lost(v))
        status = tn_vk_fail_lost(v);
    else if (anew || !v->handle)
        status = v->create_logical(v);
    v->n_objects += status == TN_OK;
    tn_mutex_unlock(&v->lock);
    return status;
}

void tn_vk_end_object(tn_vk *v)
{
    tn_mutex_lock(&v->lock);
    v->n_objects--;
    tn_mutex_unlock(&v->lock);
}
