// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset; // of the member in the table
} functions[] = {
#define TN_CUDA_FN(member, symbol, params) {symbol, offsetof(tn_cuda_driver, member)},
#include "backends/cuda/driver.def"
};

bool tn_cuda_driver_open(tn_cuda_driver *driver, char *why, size_t why_size)
{
    *driver = (tn_cuda_driver){.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!driver->library) {
        snprintf(why, why_size, "no NVIDIA driver on this machine (libcuda.so.1 cannot be opened)");
        return false;
    }
    for (size_t i = 0; i < TN_COUNT(functions); i++) {
        void *address = dlsym(driver->library, functions[i].symbol);
        if (!address) {
            snprintf(why, why_size, "the NVIDIA driver is too old: it has no %s; version 12.0 or newer is needed", functions[i].symbol);
            tn_cuda_driver_close(driver);
            return false;
        }
        // POSIX gives functions as data pointers of the same size.
        memcpy((char *)driver + functions[i].offset, &address, sizeof address);
    }
    return true;
}

void tn_cuda_driver_close(tn_cuda_driver *driver)
{
    if (driver->library) dlclose(driver->library);
    *driver = (tn_cuda_driver){0};
}
