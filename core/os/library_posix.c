// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "core/compiler.h"
#include "core/os/library.h"

#include <dlfcn.h>
#include <string.h>

// Flags of dlopen and a call that POSIX does not have.
#if defined(__linux__) || defined(__APPLE__)
#define HAS_NOLOAD
#endif

void *tn_library_load(const char *name, bool *was_loaded)
{
#ifdef HAS_NOLOAD
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    *was_loaded = library != NULL;
    return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
#else
    *was_loaded = true; // not known, so the library is treated as the program's
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
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
#if defined(__APPLE__)
    return names->dylib;
#else
    return names->shared_object;
#endif
}

void tn_library_keep(void (*function)(void))
{
#ifdef HAS_NOLOAD
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
