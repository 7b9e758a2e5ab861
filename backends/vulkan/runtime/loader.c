// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/loader.h"

#include "core/os/library.h"

#include <stdio.h>
#include <string.h>

typedef struct entry {
    const char *symbol;
    size_t offset; // of the member in its table
} entry;

static const entry globals[] = {
#define TN_VK_GLOBAL(name) {"vk" #name, offsetof(tn_vk_instance, name)},
#include "backends/vulkan/runtime/loader.def"
};
static const entry of_instance[] = {
#define TN_VK_INSTANCE(name) {"vk" #name, offsetof(tn_vk_instance, name)},
#include "backends/vulkan/runtime/loader.def"
};
static const entry of_device[] = {
#define TN_VK_DEVICE(name) {"vk" #name, offsetof(tn_vk_functions, name)},
#include "backends/vulkan/runtime/loader.def"
};

static bool put(void *table, const entry *e, PFN_vkVoidFunction f)
{
    memcpy((char *)table + e->offset, &f, sizeof f);
    return f != NULL;
}

static bool get_instance_functions(tn_vk_instance *v, const entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!put(v, &entries[i], v->get_proc(v->handle, entries[i].symbol))) return false;
    return true;
}

bool tn_vk_functions_get(const tn_vk_instance *v, VkDevice device, tn_vk_functions *out)
{
    for (size_t i = 0; i < TN_COUNT(of_device); i++)
        if (!put(out, &of_device[i], v->GetDeviceProcAddr(device, of_device[i].symbol))) return false;
    return true;
}

// Whether the loader hides layered drivers (VK_KHR_portability_enumeration) unless it is asked for them.
static bool hides_layered(const tn_vk_instance *v)
{
    enum { MOST = 128 };
    VkExtensionProperties all[MOST];
    uint32_t n = MOST;
    if (v->EnumerateInstanceExtensionProperties(NULL, &n, all) < VK_SUCCESS) return false;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(all[i].extensionName, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME) == 0) return true;
    return false;
}

static bool make_instance(tn_vk_instance *v, char *why, size_t why_size)
{
    // The loader, or the one driver of macOS without it.
    static const tn_library_names names[] = {{"libvulkan.so.1", "vulkan-1.dll", "libvulkan.1.dylib"},
                                             {NULL, NULL, "libMoltenVK.dylib"}};
    static const tn_library_symbol first = {"vkGetInstanceProcAddr", offsetof(tn_vk_instance, get_proc)};
    const char *missing = NULL;
    for (size_t i = 0; i < TN_COUNT(names) && !v->library && !missing; i++)
        v->library = tn_library_open(&names[i], &first, 1, v, &missing);
    if (!v->library && !missing) {
        snprintf(why, why_size, "no Vulkan loader on this machine (%s cannot be opened)",
                 tn_library_name(&names[0]));
        return false;
    }
    uint32_t version = 0;
    if (!v->library || !get_instance_functions(v, globals, TN_COUNT(globals)) ||
        v->EnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_2) {
        snprintf(why, why_size, "the Vulkan loader is too old; version 1.2 or newer is needed");
        return false;
    }
    VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                             .pApplicationName = "tenon",
                             .pEngineName = "tenon",
                             .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
    static const char *const layered[] = {VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME};
    if (hides_layered(v)) {
        info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
        info.enabledExtensionCount = TN_COUNT(layered);
        info.ppEnabledExtensionNames = layered;
    }
    VkResult r = v->CreateInstance(&info, NULL, &v->handle);
    if (r != VK_SUCCESS) {
        snprintf(why, why_size, "the Vulkan loader finds no driver (vkCreateInstance: %d)", r);
        return false;
    }
    if (get_instance_functions(v, of_instance, TN_COUNT(of_instance))) return true;
    snprintf(why, why_size, "the Vulkan loader lacks functions of version 1.2");
    return false;
}

tn_status tn_vk_instance_create(tn_context *ctx, tn_vk_instance **out, char *why, size_t why_size)
{
    *out = NULL;
    tn_vk_instance *v = tn_calloc(ctx, 1, sizeof *v);
    if (!v) return TN_ERR_MEMORY;
    v->refs = 1;
    if (make_instance(v, why, why_size))
        *out = v;
    else
        tn_vk_instance_unref(ctx, v);
    return TN_OK;
}

void tn_vk_instance_unref(tn_context *ctx, tn_vk_instance *v)
{
    if (!v || --v->refs > 0) return;
    if (v->handle && v->DestroyInstance && !v->given_up) v->DestroyInstance(v->handle, NULL);
    if (v->library && !v->given_up) tn_library_close(v->library);
    tn_free(ctx, v);
}
