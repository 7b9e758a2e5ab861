// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON to a stream. Keys are NULL inside arrays. Bytes that are no UTF-8 become U+FFFD.
#ifndef TENON_TOOLS_JSON_H
#define TENON_TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16 };

typedef struct json {
    FILE *f;
    int depth;
    bool compact;            // no blanks, no newline at the end
    bool filled[JSON_DEPTH]; // whether the level has an item
} json;

void json_init(json *j, FILE *f);
// Whether anything was begun on standard output.
bool json_on_stdout(void);
void json_object(json *j, const char *key);
void json_array(json *j, const char *key);
void json_end_object(json *j); // after the outermost: a newline
void json_end_array(json *j);
void json_text(json *j, const char *key, const char *text);
void json_bytes(json *j, const char *key, const char *text, size_t n);
void json_int(json *j, const char *key, int64_t value);
void json_size(json *j, const char *key, uint64_t value);
// Whether the bytes are UTF-8.
bool json_is_text(const char *text, size_t n);
// A number of thousandths, with three digits behind the point.
void json_thousandths(json *j, const char *key, uint64_t value);
void json_number(json *j, const char *key, double value); // not finite: null
void json_bool(json *j, const char *key, bool value);
// `value` is JSON already.
void json_raw(json *j, const char *key, const char *value);
void json_null(json *j, const char *key);
// The members of `object`, which is JSON of an object.
void json_members(json *j, const char *object);
// Removes the blanks between the tokens of JSON, so that it is one line.
void json_one_line(char *text);

#endif
