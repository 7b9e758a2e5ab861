// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// In the place of library_opened.c in builds with -Dopenblas=linked: the OpenBLAS that the linker found, for
// programs that cannot open libraries or ship their own copy. It counts as ours, not as the program's.
#include "backends/cpu/openblas/library.h"
#include "backends/cpu/openblas/openblas.h"

#include <string.h>

#define TN_OPENBLAS_FN(result, member, symbol, params) extern result symbol params;
#include "backends/cpu/openblas/openblas.def"

static const tn_openblas_api linked = {
#define TN_OPENBLAS_FN(result, member, symbol, params) .member = symbol,
#include "backends/cpu/openblas/openblas.def"
};

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
#define TN_OPENBLAS_FN(result, member, symbol, params) {#symbol, offsetof(tn_openblas_api, member)},
#include "backends/cpu/openblas/openblas.def"
};

const char *tn_openblas_name(size_t i)
{
    return i == 0 ? "linked" : NULL;
}

void *tn_cpu_library_open(const char *name, bool *was_loaded)
{
    *was_loaded = false;
    return strcmp(name, tn_openblas_name(0)) == 0 ? (void *)(uintptr_t)&linked : NULL;
}

void *tn_cpu_library_symbol(void *library, const char *symbol)
{
    void *address = NULL;
    for (size_t i = 0; i < TN_COUNT(symbols); i++)
        if (strcmp(symbols[i].symbol, symbol) == 0)
            memcpy(&address, (const char *)library + symbols[i].offset, sizeof address);
    return address;
}

void tn_cpu_library_close(void *library)
{
    TN_UNUSED(library);
}
