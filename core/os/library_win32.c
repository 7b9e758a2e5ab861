// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/compiler.h"
#include "core/os/library.h"

#include <string.h>
#include <windows.h>

void *tn_library_load(const char *name, bool *was_loaded)
{
    *was_loaded = GetModuleHandleA(name) != NULL;
    // Never the current folder or PATH, where anybody may have put a file of this name.
    return (void *)LoadLibraryExA(name, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
}

void *tn_library_address(void *library, const char *symbol)
{
    FARPROC function = GetProcAddress((HMODULE)library, symbol);
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

void tn_library_close(void *library)
{
    FreeLibrary(library);
}

const char *tn_library_name(const tn_library_names *names)
{
    return names->dll;
}

void tn_library_keep(void (*function)(void))
{
    HMODULE library;
    LPCWSTR address;
    memcpy(&address, &function, sizeof address);
    (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, address,
                             &library);
}
