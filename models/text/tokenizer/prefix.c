// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A sorted list in place of a trie: it only needs sorting, and each byte narrows the range by two binary
// searches.
#include "models/text/tokenizer/prefix.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
    const tn_gguf_str *x = &((const tn_prefix_entry *)a)->text, *y = &((const tn_prefix_entry *)b)->text;
    int order = memcmp(x->data, y->data, TN_MIN(x->size, y->size));
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

void tn_prefix_map_init(tn_prefix_map *map, tn_prefix_entry *entries, size_t count)
{
    qsort(entries, count, sizeof *entries, by_text);
    map->entries = entries;
    map->count = count;
    size_t i = 0;
    for (size_t b = 0; b < 257; b++) {
        while (i < count && (uint8_t)entries[i].text.data[0] < b) i++;
        map->first[b] = i;
    }
}

tn_prefix_walk tn_prefix_begin(const tn_prefix_map *map)
{
    return (tn_prefix_walk){0, map->count, 0};
}

// First entry of [lo, hi) whose byte at `depth` is at least `byte`. All are longer than depth.
static size_t lower_bound(const tn_prefix_map *map, size_t lo, size_t hi, size_t depth, uint32_t byte)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if ((uint8_t)map->entries[mid].text.data[depth] < byte)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool tn_prefix_step(const tn_prefix_map *map, tn_prefix_walk *walk, char byte, int32_t *id)
{
    uint8_t b = (uint8_t)byte;
    *id = -1;
    if (walk->depth == 0) {
        walk->lo = map->first[b];
        walk->hi = map->first[b + 1];
    } else {
        size_t lo = walk->lo + (walk->lo < walk->hi && map->entries[walk->lo].text.size == walk->depth);
        walk->lo = lower_bound(map, lo, walk->hi, walk->depth, b);
        walk->hi = lower_bound(map, walk->lo, walk->hi, walk->depth, (uint32_t)b + 1);
    }
    walk->depth++;
    if (walk->lo == walk->hi) return false;
    if (map->entries[walk->lo].text.size == walk->depth) *id = map->entries[walk->lo].id;
    return true;
}
