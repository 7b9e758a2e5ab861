// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/os/library.h"

#include <string.h>

void *tn_library_open(const tn_library_names *names, const tn_library_symbol *symbols, size_t n, void *table,
                      const char **missing)
{
    bool was_loaded;
    const char *name = tn_library_name(names);
    void *library = name ? tn_library_load(name, &was_loaded) : NULL;
    for (size_t i = 0; library && i < n; i++) {
        void *address = tn_library_address(library, symbols[i].symbol);
        if (!address) {
            *missing = symbols[i].symbol;
            tn_library_close(library);
            return NULL;
        }
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
    }
    return library;
}
