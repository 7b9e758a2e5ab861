// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/os/windows_text.h"

#include <string.h>
#include <windows.h>

// Folders are limited to MAX_PATH less the 12 characters of a name; forms with the prefix are not.
enum { LONGEST_PLAIN = MAX_PATH - 12, PREFIX = 8 };

// The absolute form of a path. \\server\share becomes \\?\UNC\server\share.
static wchar_t *long_form(const wchar_t *path)
{
    DWORD n = GetFullPathNameW(path, 0, NULL, NULL);
    wchar_t *full = tn_system_alloc(((size_t)n + PREFIX) * sizeof *full, sizeof *full);
    if (!full) return NULL;
    wchar_t *at = full + PREFIX;
    n = GetFullPathNameW(path, n, at, NULL);
    bool server = n > 2 && at[0] == L'\\' && at[1] == L'\\';
    const wchar_t *prefix = server ? L"\\\\?\\UNC" : L"\\\\?\\";
    size_t skip = server ? 1 : 0, k = wcslen(prefix);
    memmove(full, prefix, k * sizeof *full);
    memmove(full + k, at + skip, ((size_t)n - skip + 1) * sizeof *full);
    return full;
}

wchar_t *tn_windows_path(tn_context *ctx, const char *path)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    if (n <= 0) {
        (void)!tn_fail(ctx, TN_ERR_IO, "%s: the path is no UTF-8", path);
        return NULL;
    }
    wchar_t *wide = tn_system_alloc((size_t)n * sizeof *wide, sizeof *wide);
    if (!wide) return NULL;
    MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, n);
    if (n < LONGEST_PLAIN || wcsncmp(wide, L"\\\\?\\", 4) == 0) return wide;
    wchar_t *full = long_form(wide);
    tn_system_free(wide);
    return full;
}

tn_status tn_windows_fail(tn_context *ctx, unsigned long error, const char *name, const char *what)
{
    wchar_t wide[256];
    char text[3 * 256] = "";
    DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
                                 FORMAT_MESSAGE_MAX_WIDTH_MASK,
                             NULL, error, 0, wide, sizeof wide / sizeof *wide, NULL);
    while (n > 0 && (wide[n - 1] == L' ' || wide[n - 1] == L'.')) wide[--n] = 0;
    if (n > 0) WideCharToMultiByte(CP_UTF8, 0, wide, (int)n + 1, text, sizeof text, NULL, NULL);
    bool memory =
        error == ERROR_NOT_ENOUGH_MEMORY || error == ERROR_OUTOFMEMORY || error == ERROR_COMMITMENT_LIMIT;
    return tn_fail(ctx, memory ? TN_ERR_MEMORY : TN_ERR_IO, "%s: %s: %s (error %lu)", name, what, text,
                   error);
}
