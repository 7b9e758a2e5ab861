// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Hash index from names to positions in a table that stays where it is. It finds keys and tensors by name,
// and detects duplicates.
#ifndef TN_MODELS_GGUF_NAMES_H
#define TN_MODELS_GGUF_NAMES_H

#include "models/gguf/gguf.h"

// The table seen as a list of names.
typedef struct tn_name_list {
    const void *items;
    size_t n;
    tn_gguf_str (*name)(const void *items, size_t i);
} tn_name_list;

typedef struct tn_name_slot {
    uint32_t item; // position + 1; 0: free
    uint32_t tag;  // upper half of the hash: almost every comparison of names is avoided
} tn_name_slot;

typedef struct tn_name_index {
    tn_name_slot *slots;
    size_t n_slots;
    uint64_t seed[2];
} tn_name_index;

enum { TN_NAMES_MAX = INT32_MAX }; // positions and slots stay below 2^32

// Fills an empty index. *duplicate: position of the first name that occurred before, or list->n.
TN_MUST_USE tn_status tn_name_index_build(tn_context *ctx, tn_name_index *index, const tn_name_list *list,
                                          size_t *duplicate);
// Position of a name, or -1.
int64_t tn_name_index_find(const tn_name_index *index, const tn_name_list *list, tn_gguf_str name);
void tn_name_index_fini(tn_context *ctx, tn_name_index *index);

#endif
