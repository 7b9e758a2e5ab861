// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const tn_cuda_symbol functions[] = {
#define TN_CUDA_FN(member, symbol, params) {symbol, offsetof(tn_cuda_driver, member)},
#include "backends/cuda/runtime/driver.def"
};

void *tn_cuda_library_open(const char *name, const tn_cuda_symbol *symbols, size_t n, void *table,
                           const char **missing)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < n; i++) {
        void *address = dlsym(library, symbols[i].symbol);
        if (!address) {
            *missing = symbols[i].symbol;
            dlclose(library);
            return NULL;
        }
        // POSIX gives functions as data pointers of the same size.
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
    }
    return library;
}

bool tn_cuda_driver_open(tn_cuda_driver *driver, char *why, size_t why_size)
{
    const char *missing = NULL;
    *driver = (tn_cuda_driver){0};
    void *library = tn_cuda_library_open("libcuda.so.1", functions, TN_COUNT(functions), driver, &missing);
    if (library) {
        driver->library = library;
        return true;
    }
    *driver = (tn_cuda_driver){0};
    if (missing)
        snprintf(why, why_size, "the NVIDIA driver is too old: it has no %s; version 12.0 or newer is needed",
                 missing);
    else
        snprintf(why, why_size, "no NVIDIA driver on this machine (libcuda.so.1 cannot be opened)");
    return false;
}

void tn_cuda_driver_close(tn_cuda_driver *driver)
{
    if (driver->library) dlclose(driver->library);
    *driver = (tn_cuda_driver){0};
}
