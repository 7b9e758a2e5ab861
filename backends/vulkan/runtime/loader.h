// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan loader, opened at run time, and the functions got from it (Vulkan 1.2 specification, 4.1
// "Command Function Pointers"). Nothing links against it, so the program starts on machines that have none.
#ifndef TN_VULKAN_LOADER_H
#define TN_VULKAN_LOADER_H

#include "core/context.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

// An extension of devices whose driver is a layer over another interface (MoltenVK): it has to be enabled
// where a device lists it. Headers have it behind VK_ENABLE_BETA_EXTENSIONS.
#define TN_VK_PORTABILITY_SUBSET "VK_KHR_portability_subset"

// One instance, shared by the devices of a context.
typedef struct tn_vk_instance {
    void *library;
    VkInstance handle;
    int32_t refs;  // devices, and whoever lists them; only used while a context is opened or closed
    bool given_up; // a device of it was: the driver keeps it
    PFN_vkGetInstanceProcAddr get_proc;
#define TN_VK_GLOBAL(name)   PFN_vk##name name;
#define TN_VK_INSTANCE(name) PFN_vk##name name;
#include "backends/vulkan/runtime/loader.def"
} tn_vk_instance;

typedef struct tn_vk_functions {
#define TN_VK_DEVICE(name) PFN_vk##name name;
#include "backends/vulkan/runtime/loader.def"
} tn_vk_functions;

// Makes an instance with one reference. On failure *out is NULL and `why` says what is missing; TN_ERR_MEMORY
// only if this process has none.
TN_MUST_USE tn_status tn_vk_instance_create(tn_context *ctx, tn_vk_instance **out, char *why,
                                            size_t why_size);
void tn_vk_instance_unref(tn_context *ctx, tn_vk_instance *instance);
// All functions of a device; false if one is missing.
bool tn_vk_functions_get(const tn_vk_instance *instance, VkDevice device, tn_vk_functions *out);

#endif
