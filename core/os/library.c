// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/os/library.h"

#include <string.h>

void *tn_library_open(const tn_library_names *names, const tn_library_symbol *symbols, size_t n, void *table,
                      const char **missing)
{
    bool was_loaded;
    void *library = tn_library_load(tn_library_name(names), &was_loaded);
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
