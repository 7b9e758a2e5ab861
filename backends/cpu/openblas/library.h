// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared libraries that are opened at run time.
#ifndef TN_CPU_LIBRARY_H
#define TN_CPU_LIBRARY_H

#include <stdbool.h>

// NULL: there is none of that name, or it cannot be loaded. *was_loaded: the program had it already.
void *tn_cpu_library_open(const char *name, bool *was_loaded);
void *tn_cpu_library_symbol(void *library, const char *symbol);
void tn_cpu_library_close(void *library);
// Names under which OpenBLAS is installed on this system, the best first; ends with NULL.
extern const char *const tn_openblas_names[];

#endif
