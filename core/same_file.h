// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether two paths mean the same file. Callers check this before they write one file while reading another.
#ifndef TN_CORE_SAME_FILE_H
#define TN_CORE_SAME_FILE_H

#include <stdbool.h>

// True if both exist and are one file, links followed. A path whose status cannot be read is no file.
bool tn_same_file(const char *a, const char *b);

#endif
