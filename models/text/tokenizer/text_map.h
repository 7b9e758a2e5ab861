// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The two hash tables of a vocabulary: text -> index, and pair of indices -> merge.
#ifndef TN_MODELS_TEXT_MAP_H
#define TN_MODELS_TEXT_MAP_H

#include "models/gguf/gguf.h"

typedef struct tn_text_slot {
    uint32_t hash;
    int32_t index; // plus one; 0 = free
} tn_text_slot;

// Distinct texts, numbered in the order they came. The bytes are borrowed.
typedef struct tn_text_map {
    tn_context *ctx;
    tn_gguf_str *texts;
    size_t count, capacity;
    tn_text_slot *slots; // n_slots is a power of two, at least 1.5 * capacity
    size_t n_slots;
} tn_text_map;

TN_MUST_USE tn_status tn_text_map_init(tn_text_map *map, tn_context *ctx, size_t n_expected);
void tn_text_map_fini(tn_text_map *map);
// Index of a text, or -1.
int32_t tn_text_map_find(const tn_text_map *map, const char *text, size_t n);
// Index of a text, which is added if it is new; *added says whether.
TN_MUST_USE tn_status tn_text_map_add(tn_text_map *map, tn_gguf_str text, int32_t *index, bool *added);

typedef struct tn_pair {
    int32_t left, right; // indices of texts
    uint32_t rank;       // 0 merges first
    int32_t merged;      // index of the joined text plus one; 0 = free slot
} tn_pair;

typedef struct tn_pair_map {
    tn_context *ctx;
    tn_pair *slots;
    size_t n_slots; // power of two
} tn_pair_map;

// A table for up to `n` pairs; it does not grow.
TN_MUST_USE tn_status tn_pair_map_init(tn_pair_map *map, tn_context *ctx, size_t n);
void tn_pair_map_fini(tn_pair_map *map);
// The first rank of a pair stays.
void tn_pair_map_add(tn_pair_map *map, int32_t left, int32_t right, uint32_t rank, int32_t merged);
// NULL if the pair never merges.
const tn_pair *tn_pair_map_find(const tn_pair_map *map, int32_t left, int32_t right);

#endif
