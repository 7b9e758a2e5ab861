// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON body of a request as a tree. Strict: UTF-8, no key twice in an object, bounded depth and number of
// values.
//
//     body b;
//     if (!body_parse(&b, text, n)) ... b.why, b.at ...
//     const node *model = node_get(b.root, "model");
//     body_fini(&b);
#ifndef TENON_TOOLS_SERVER_BODY_H
#define TENON_TOOLS_SERVER_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum node_kind { NODE_NULL, NODE_BOOL, NODE_NUMBER, NODE_TEXT, NODE_LIST, NODE_OBJECT } node_kind;

// Strings are terminated and live as long as the body.
typedef struct node {
    node_kind kind;
    bool truth;
    bool seen;  // node_get has found it; what no handler reads has a name that is not known
    bool whole; // a number without fraction that fits into `integer`
    int64_t integer;
    double number;
    const char *key; // in an object
    const char *text;
    size_t n_text;
    const char *raw; // the JSON text of the value; not terminated
    size_t n_raw;
    size_t n;                 // items
    const struct node *first; // item
    const struct node *next;  // in the same container
} node;

typedef struct body {
    const node *root;
    const char *why; // of the failure, a sentence
    size_t at;       // byte of the failure
    bool no_memory;  // the text may be fine
    // memory of the tree
    struct node_block *blocks;
    size_t n_nodes;
    char *strings;
    size_t n_strings;
} body;

// text[0 .. n) must live as long as the tree (node.raw).
bool body_parse(body *b, const char *text, size_t n);
void body_fini(body *b);
// The value of a key; NULL: there is none, it is null, or `object` is no object.
const node *node_get(const node *object, const char *key);
// The JSON text of a node, terminated, from malloc.
char *node_copy(const node *value);
// "a string", "a list": how messages name the kind.
const char *node_kind_name(const node *value);

#endif
