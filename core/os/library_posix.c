// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "core/compiler.h"
#include "core/os/library.h"

#include <dlfcn.h>
#include <string.h>

void *tn_library_load(const char *name, bool *was_loaded)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    *was_loaded = library != NULL;
    return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *tn_library_address(void *library, const char *symbol)
{
    return dlsym(library, symbol);
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
