// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared libraries that are opened at run time (library.c; library_posix.c, library_win32.c).
#ifndef TN_CORE_LIBRARY_H
#define TN_CORE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

// What one library is called on each system; NULL: it is not there on that one.
typedef struct tn_library_names {
    const char *shared_object; // "libx.so.1"
    const char *dll;           // "x.dll"; the folders of the program and of the system, and those that the
                               // program added (AddDllDirectory), are searched
    const char *dylib;         // "libx.1.dylib", of macOS
} tn_library_names;

// A function of a library, and where its address goes in a table.
typedef struct tn_library_symbol {
    const char *symbol;
    size_t offset;
} tn_library_symbol;

// Opens a library and fills the table. NULL: it is not there, or lacks the function whose name *missing then
// is.
void *tn_library_open(const tn_library_names *names, const tn_library_symbol *symbols, size_t n, void *table,
                      const char **missing);
// One step of it: by a name or a path, NULL: there is none, or it cannot be loaded. *was_loaded: the program
// had it already, or may have had it.
void *tn_library_load(const char *name, bool *was_loaded);
// The address of a function, as a data pointer of the same size; NULL: there is none.
void *tn_library_address(void *library, const char *symbol);
void tn_library_close(void *library);
const char *tn_library_name(const tn_library_names *names); // of this system; NULL: none

// Where a shared library has threads of its own that outlive its users: keeps it loaded until the process
// ends. `function` is one of that library.
void tn_library_keep(void (*function)(void));

#endif
