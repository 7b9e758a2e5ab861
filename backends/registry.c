// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The backends of this build in order of preference, from the Meson options.
#include "core/backend.h"

extern const tn_backend tn_backend_cpu, tn_backend_null;
#if TN_HAVE_CUDA
extern const tn_backend tn_backend_cuda;
#endif
#if TN_HAVE_VULKAN
extern const tn_backend tn_backend_vulkan;
#endif

const tn_backend *const tn_backends[] = {
#if TN_HAVE_CUDA
    &tn_backend_cuda,
#endif
#if TN_HAVE_VULKAN
    &tn_backend_vulkan,
#endif
    &tn_backend_cpu,
    &tn_backend_null,
    NULL,
};

const char *const tn_backends_not_built[] = {
#if !TN_HAVE_CUDA
    "cuda",
#endif
#if !TN_HAVE_VULKAN
    "vulkan",
#endif
    NULL,
};
