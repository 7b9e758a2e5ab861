// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/openblas/library.h"

#include <stddef.h>
#include <string.h>
#include <windows.h>

const char *const tn_openblas_names[] = {"libopenblas.dll", "openblas.dll", NULL};

void *tn_cpu_library_open(const char *name, bool *was_loaded)
{
    *was_loaded = GetModuleHandleA(name) != NULL;
    // Never the current folder or PATH, where anybody may have put a file of this name.
    return (void *)LoadLibraryExA(name, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
}

void *tn_cpu_library_symbol(void *library, const char *symbol)
{
    FARPROC function = GetProcAddress((HMODULE)library, symbol);
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

void tn_cpu_library_close(void *library)
{
    FreeLibrary((HMODULE)library);
}
