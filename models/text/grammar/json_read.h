// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON (RFC 8259) to a tree of values. Strict: no comments, no trailing commas, UTF-8 only, no half
// surrogates, no object with the same key twice; depth, size and number of values are bounded.
#ifndef TN_MODELS_JSON_READ_H
#define TN_MODELS_JSON_READ_H

#include "core/memory/arena.h"

enum {
    TN_JSON_DEPTH_MAX = 64,
    TN_JSON_VALUES_MAX = 1 << 20,
    TN_JSON_SIZE_MAX = 32 << 20, // bytes of text
};

typedef enum tn_json_kind {
    TN_JSON_NULL,
    TN_JSON_BOOL,
    TN_JSON_NUMBER,
    TN_JSON_STRING,
    TN_JSON_ARRAY,
    TN_JSON_OBJECT,
} tn_json_kind;

// Lives as long as the arena.
typedef struct tn_json {
    tn_json_kind kind;
    bool is_true;    // BOOL
    bool is_integer; // NUMBER written without fraction and exponent that fits `integer`
    int64_t integer;
    double number;    // NUMBER, accurate to some ulp
    const char *text; // STRING: its bytes; NUMBER: as written. Terminated; a string may hold zeros itself
    size_t size;      // bytes of text
    const char *key;  // in an object: the name of this value, terminated
    size_t key_size;
    struct tn_json *first, *next; // ARRAY, OBJECT: values in order; the next value beside this one
    size_t count;                 // of values in it
} tn_json;

// TN_ERR_FORMAT naming line and column: "schema: line 3, column 7: a ',' or '}' is missing". `what` names
// the text in messages. TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_json_read(tn_arena *arena, const char *what, const char *text, size_t n,
                                   const tn_json **out);

// The value of a key; NULL if there is none, or if the value is no object.
const tn_json *tn_json_get(const tn_json *object, const char *key);
bool tn_json_is(const tn_json *string, const char *text); // a string that is exactly this
const char *tn_json_kind_name(tn_json_kind kind);         // "an object"

#endif
