// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/compiler.h"
#include "core/os/library.h"

#include <string.h>
#include <windows.h>

void *tn_library_open(const tn_library_names *names, const tn_library_symbol *symbols, size_t n, void *table,
                      const char **missing)
{
    // Never the current folder or PATH, where anybody may have put a file of this name.
    HMODULE library = LoadLibraryExA(names->dll, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    for (size_t i = 0; library && i < n; i++) {
        FARPROC address = GetProcAddress(library, symbols[i].symbol);
        if (!address) {
            *missing = symbols[i].symbol;
            FreeLibrary(library);
            return NULL;
        }
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
    }
    return library;
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
