// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts and failures of Windows, for *_win32.c. <windows.h> is included only there: its
// macros rename functions and constants of other files.
#ifndef TN_CORE_WINDOWS_TEXT_H
#define TN_CORE_WINDOWS_TEXT_H

#include "core/context.h"

#include <wchar.h>

// UTF-16 of a path in UTF-8, absolute and with the prefix \\?\ where it is too long for other forms; freed by
// tn_system_free, because some callers have no context. NULL without memory, or if it is no UTF-8.
wchar_t *tn_windows_path(tn_context *ctx, const char *path);
// "name: what: text of the system (error number)", TN_ERR_IO or TN_ERR_MEMORY.
tn_status tn_windows_fail(tn_context *ctx, unsigned long error, const char *name, const char *what);

#endif
