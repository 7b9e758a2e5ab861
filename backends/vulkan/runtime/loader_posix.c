// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/loader.h"

#include <dlfcn.h>
#include <string.h>

void *tn_vk_library_open(void)
{
    return dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
}

PFN_vkGetInstanceProcAddr tn_vk_library_entry(void *library)
{
    void *address = dlsym(library, "vkGetInstanceProcAddr");
    PFN_vkGetInstanceProcAddr entry = NULL;
    // POSIX gives functions as data pointers of the same size.
    memcpy(&entry, &address, sizeof entry);
    return entry;
}

void tn_vk_library_close(void *library)
{
    dlclose(library);
}
