// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "core/compiler.h"
#include "core/os/library.h"

#include <dlfcn.h>
#include <string.h>

void *tn_library_open(const tn_library_names *names, const tn_library_symbol *symbols, size_t n, void *table,
                      const char **missing)
{
    void *library = dlopen(names->shared_object, RTLD_NOW | RTLD_LOCAL);
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

void tn_library_close(void *library)
{
    dlclose(library);
}

const char *tn_library_name(const tn_library_names *names)
{
    return names->shared_object;
}

void tn_library_keep(void (*function)(void))
{
#if defined(RTLD_NODELETE) && defined(RTLD_NOLOAD)
    Dl_info info;
    void *address;
    memcpy(&address, &function, sizeof address);
    if (dladdr(address, &info) == 0 || !info.dli_fname) return;
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (library) dlclose(library);
#else
    TN_UNUSED(function);
#endif
}
