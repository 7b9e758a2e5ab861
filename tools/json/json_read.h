// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON text from front to back, for files that the tool wrote itself or a user did by hand:
//     json_in in = {.p = text, .end = text + n};
//     if (json_open(&in, '{'))
//         while (json_key(&in, &key)) ... json_string(&in), json_skip(&in) ...
// The first error sets `failed`; all calls then return false.
#ifndef TENON_TOOLS_JSON_READ_H
#define TENON_TOOLS_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

typedef struct json_in {
    const char *p, *end;
    bool failed;
    bool first; // no item of the current container was read
    int depth;
} json_in;

// Whether a value that begins with this character is next: { [ " n t f
bool json_is(json_in *in, char c);
// Enters an object or a list.
bool json_open(json_in *in, char c);
// The next key of an object (from malloc), or the next item of a list; false at the end, which is consumed.
bool json_key(json_in *in, char **key);
bool json_item(json_in *in);
// From malloc, NULL on failure.
char *json_string(json_in *in);
// The same into `out`, terminated, which is as long as the string is in the input with its quotes. False on
// failure.
bool json_decode(json_in *in, char *out, size_t *n);
// Skips any value; the copy of its text comes from malloc.
void json_skip(json_in *in);
char *json_copy(json_in *in);

#endif
