// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which tokens begin a text: the token texts in byte order, walked byte by byte.
#ifndef TN_MODELS_PREFIX_H
#define TN_MODELS_PREFIX_H

#include "core/memory/arena.h"
#include "models/gguf/gguf.h"

typedef struct tn_prefix_entry {
    tn_gguf_str text; // borrowed
    int32_t id;
} tn_prefix_entry;

typedef struct tn_prefix_map {
    tn_prefix_entry *entries; // sorted by text, no two the same
    size_t count;
    size_t first[257]; // where the texts that start with a byte begin; they end at first[byte + 1]
} tn_prefix_map;

// Entries that start with the bytes walked so far: [lo, hi), all of more than depth bytes but the first,
// which may have just depth.
typedef struct tn_prefix_walk {
    size_t lo, hi, depth;
} tn_prefix_walk;

// `entries` come from an arena that outlives the map; they are sorted in place, empty texts must not be
// there.
void tn_prefix_map_init(tn_prefix_map *map, tn_prefix_entry *entries, size_t count);
// A walk before its first byte.
tn_prefix_walk tn_prefix_begin(const tn_prefix_map *map);
// Continues with one byte; false if no token starts with these bytes. *id: the token whose text ends here, or
// -1.
bool tn_prefix_step(const tn_prefix_map *map, tn_prefix_walk *walk, char byte, int32_t *id);

#endif
