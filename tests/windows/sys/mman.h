// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Protection of pages, for tests that are built for Windows.
#ifndef TN_TESTS_WINDOWS_MMAN_H
#define TN_TESTS_WINDOWS_MMAN_H

#include <stddef.h>

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2 };

__declspec(dllimport) int __stdcall VirtualProtect(void *, size_t, unsigned long, unsigned long *);

static inline int mprotect(void *at, size_t n, int how)
{
    enum { PAGE_NOACCESS = 1, PAGE_READONLY = 2, PAGE_READWRITE = 4 };
    unsigned long old;
    return VirtualProtect(at, n,
                          how == PROT_NONE   ? PAGE_NOACCESS
                          : how == PROT_READ ? PAGE_READONLY
                                             : PAGE_READWRITE,
                          &old)
               ? 0
               : -1;
}

#endif
