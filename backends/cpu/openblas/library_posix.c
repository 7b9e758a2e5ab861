// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/openblas/library.h"

#include <dlfcn.h>
#include <stddef.h>

// With threads of its own in Fedora, where the plain name is the build without; the plain name elsewhere.
const char *const tn_openblas_names[] = {"libopenblasp.so.0", "libopenblas.so.0", NULL};

void *tn_cpu_library_open(const char *name, bool *was_loaded)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    *was_loaded = library != NULL;
    return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *tn_cpu_library_symbol(void *library, const char *symbol)
{
    return dlsym(library, symbol);
}

void tn_cpu_library_close(void *library)
{
    dlclose(library);
}
