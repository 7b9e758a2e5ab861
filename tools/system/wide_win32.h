// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Between UTF-8 and the UTF-16 of Windows, for *_win32.c. Results are freed by free(); NULL
// without memory or if the text is not valid, with errno set.
#ifndef TENON_TOOLS_WIDE_WIN32_H
#define TENON_TOOLS_WIDE_WIN32_H

#include <stddef.h>
#include <wchar.h>

wchar_t *wide_of(const char *text);
char *utf8_of(const wchar_t *text);
// The same with "/" for "\".
char *utf8_path_of(const wchar_t *text);
// Into a buffer; returns bytes without the final zero, 0 if it does not fit.
size_t utf8_into(const wchar_t *text, char *to, size_t size);

#endif
