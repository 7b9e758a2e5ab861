// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/openblas/library.h"
#include "core/compiler.h"
#include "core/os/library.h"

// With threads of its own in Fedora, where the plain name is the build without; the plain name elsewhere.
static const tn_library_names usual[] = {
    {"libopenblasp.so.0", "libopenblas.dll", "libopenblas.0.dylib"},
    {"libopenblas.so.0", "openblas.dll", "libopenblas.dylib"},
};

const char *tn_openblas_name(size_t i)
{
    return i < TN_COUNT(usual) ? tn_library_name(&usual[i]) : NULL;
}

void *tn_cpu_library_open(const char *name, bool *was_loaded)
{
    return tn_library_load(name, was_loaded);
}

void *tn_cpu_library_symbol(void *library, const char *symbol)
{
    return tn_library_address(library, symbol);
}

void tn_cpu_library_close(void *library)
{
    tn_library_close(library);
}
