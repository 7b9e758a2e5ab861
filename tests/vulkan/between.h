// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Controls the library between the backend and the Vulkan loader; tests find between_get in it with dlsym.
#ifndef TN_TESTS_VULKAN_BETWEEN_H
#define TN_TESTS_VULKAN_BETWEEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

typedef struct between_state {
    _Atomic int64_t n_calls; // of functions that can fail
    int64_t fail_at;         // number of the call that fails, 0: none
    VkResult error;          // what it gives
    bool fail_stays;         // and every call after it
    const char *fail_name;   // a function of which every call fails, NULL: none
    char failed[64];         // name of the call that failed
    _Atomic int64_t n_alive; // instances, devices, buffers, memory, pipelines, semaphores
    _Atomic int64_t n_submits, n_pipelines, n_barriers, n_dispatches;
    uint32_t version; // of the loader, 0: the real one
    bool no_devices;
    bool no_subgroups; // the device has none
    bool no_kernels;   // shaders are exchanged for one that does nothing: their compilation takes long
    bool as_gpu;       // the device says that it is no processor; TN_BETWEEN_AS_GPU sets it from the start
    // The device has cooperative matrices: their shaders are exchanged for emulated ones. It has what newer
    // drivers have (VK_KHR_cooperative_matrix, with bf16, and VK_NV_cooperative_matrix), or with matrices_nv
    // only the last one. The environment variable TN_BETWEEN_MATRICES sets matrices, with "nv" both.
    bool matrices, matrices_nv;
    _Atomic int64_t n_emulated; // modules that were exchanged, of the extension that is to be used
    const char *hidden;         // extensions of the driver that the device hides; TN_BETWEEN_HIDES sets it
    // A device with limits of its own, of the process: TN_BETWEEN_PROFILE names it. A request beyond them
    // fails, and broken says which.
    const struct between_profile *profile;
    char broken[128];
    _Atomic int64_t n_copies;   // between buffers
    _Atomic int64_t n_required; // pipelines that asked for a size of subgroups
    bool no_addresses;          // the device has no buffer device addresses
    // The N-th submission finds the device lost, and all calls after it until the device is destroyed; 0:
    // none. TN_BETWEEN_LOSES_AT sets it.
    int64_t lose_at;
    bool lost;
    // The N-th submission never ends, and none after it; 0: none. TN_BETWEEN_HANGS_AT sets it. Waits for what
    // was submitted before take as long as they need.
    int64_t hang_at;
    bool hung;
    bool waits_forever;      // a wait for it had no limit
    _Atomic int64_t n_after; // calls since a wait for it ended
    // So many waits end by their limit, before the work does, and each time the timeline is one further.
    int64_t n_late, n_moved;
    // Each command buffer takes that long; the longest submission since.
    uint64_t slow_ns, longest_ns;
    uint64_t others; // bytes of the device's memory that other programs have; 0: it does not tell
    // Called with the specialisation constants of each pipeline, which it may change.
    void (*constants)(int32_t *values, uint32_t n);
    void (*submitted)(void); // after each submission
} between_state;

between_state *between_get(void);

#endif
