// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// OpenBLAS as a library that is opened at run time (library_opened.c) or linked (library_linked.c).
#ifndef TN_CPU_LIBRARY_H
#define TN_CPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

// NULL: there is none of that name, or it cannot be loaded. *was_loaded: the program had it already.
void *tn_cpu_library_open(const char *name, bool *was_loaded);
void *tn_cpu_library_symbol(void *library, const char *symbol);
void tn_cpu_library_close(void *library);
// Names under which OpenBLAS is installed on this system, the best first; NULL: no more.
const char *tn_openblas_name(size_t i);

#endif
