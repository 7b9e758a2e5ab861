// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the values of headers mean, where the library behind transport.c only hands them over.
#ifndef TENON_TOOLS_SERVER_HEAD_H
#define TENON_TOOLS_SERVER_HEAD_H

#include <stdbool.h>
#include <stdint.h>

// Why the HTTP of a request is refused.
typedef enum http_fault {
    HTTP_FINE,
    HTTP_BAD_LENGTH,    // Content-Length
    HTTP_CHUNKED,       // a body that has no length
    HTTP_BAD_CODING,    // Transfer-Encoding
    HTTP_OTHER_CODING,  // a coding before chunked
    HTTP_BAD_VERSION,   // no version of HTTP
    HTTP_OTHER_VERSION, // not 1.0 and not 1.1
    HTTP_BAD_EXPECT,    // something else than 100-continue
    HTTP_REPEATED,      // a header that may occur once
    HTTP_BAD_PATH,
    HTTP_LONG_PATH,
    HTTP_FAULTS
} http_fault;

// Removes blanks at both ends.
void head_trim(char *value);
// Whether a list "a, b" has the token, in any case; NULL: an empty list.
bool head_lists(const char *list, const char *token);
// The same for a list of types that may have parameters: "text/html;q=0.9".
bool head_lists_type(const char *list, const char *type);
http_fault head_version(const char *version, bool *http10);
// Of Content-Length and Transfer-Encoding; NULL: there is none. *announced: bytes of the body, -1: not known.
http_fault head_length(const char *length, const char *coding, int64_t *announced);

#endif
