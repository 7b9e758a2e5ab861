// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/driver.h"

#include <stdio.h>

static const tn_library_symbol functions[] = {
#define TN_CUDA_FN(member, symbol, params) {symbol, offsetof(tn_cuda_driver, member)},
#include "backends/cuda/runtime/driver.def"
};

static const tn_library_names names = {"libcuda.so.1", "nvcuda.dll", "libcuda.dylib"};

bool tn_cuda_driver_open(tn_cuda_driver *driver, char *why, size_t why_size)
{
    const char *missing = NULL;
    *driver = (tn_cuda_driver){0};
    void *library = tn_library_open(&names, functions, TN_COUNT(functions), driver, &missing);
    if (library) {
        driver->library = library;
        return true;
    }
    *driver = (tn_cuda_driver){0};
    if (missing)
        snprintf(why, why_size, "the NVIDIA driver is too old: it has no %s; version 12.0 or newer is needed",
                 missing);
    else
        snprintf(why, why_size, "no NVIDIA driver on this machine (%s cannot be opened)",
                 tn_library_name(&names));
    return false;
}

void tn_cuda_driver_close(tn_cuda_driver *driver)
{
    if (driver->library) tn_library_close(driver->library);
    *driver = (tn_cuda_driver){0};
}
