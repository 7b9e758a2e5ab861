// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Open addressing with linear probing. The stored hash avoids most reads of the text itself, which is in the
// mapped file: a failed lookup costs one cache miss.
#include "models/text/tokenizer/text_map.h"

#include "core/checked.h"

#include <string.h>

enum { TEXTS_MIN = 64 };

// Multiplies 8 bytes at a time; the constants are the odd ones of SplitMix64 (Steele et al. 2014).
static uint32_t text_hash(const char *text, size_t n)
{
    uint64_t h = n * 0x9e3779b97f4a7c15u;
    while (n > 0) {
        uint64_t v = 0;
        size_t take = n < 8 ? n : 8;
        memcpy(&v, text, take);
        h = (h ^ v) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 29;
        text += take;
        n -= take;
    }
    h *= 0x94d049bb133111ebu;
    return (uint32_t)(h >> 32);
}

static uint64_t pair_hash(int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    return (h ^ h >> 32) * 0xbf58476d1ce4e5b9u >> 20;
}

// The power of two that holds n entries at most 2/3 full; 0 if that overflows.
static size_t slots_for(size_t n)
{
    size_t slots = 16;
    while (slots / 3 * 2 < n) {
        if (slots > SIZE_MAX / 64) return 0;
        slots *= 2;
    }
    return slots;
}

static void place(tn_text_map *map, uint32_t hash, size_t index)
{
    size_t mask = map->n_slots - 1, i = hash & mask;
    while (map->slots[i].index != 0) i = (i + 1) & mask;
    map->slots[i] = (tn_text_slot){hash, (int32_t)index + 1};
}

static tn_status resize(tn_text_map *map, size_t capacity)
{
    if (capacity > INT32_MAX - 1)
        return tn_fail(map->ctx, TN_ERR_FORMAT, "too many token texts: %zu", capacity);
    size_t n_slots = slots_for(capacity), size;
    if (n_slots == 0 || !tn_mul_size(capacity, sizeof *map->texts, &size))
        return tn_fail(map->ctx, TN_ERR_MEMORY, "too many token texts: %zu", capacity);
    tn_text_slot *slots = tn_calloc(map->ctx, n_slots, sizeof *slots);
    if (slots == NULL) return TN_ERR_MEMORY;
    tn_gguf_str *texts = tn_realloc(map->ctx, map->texts, map->count * sizeof *texts, size);
    if (texts == NULL) {
        tn_free(map->ctx, slots);
        return TN_ERR_MEMORY;
    }
    tn_text_slot *old = map->slots;
    size_t n_old = map->n_slots;
    map->texts = texts;
    map->capacity = capacity;
    map->slots = slots;
    map->n_slots = n_slots;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].index != 0) place(map, old[i].hash, (size_t)old[i].index - 1);
    tn_free(map->ctx, old);
    return TN_OK;
}

static int32_t find_hashed(const tn_text_map *map, uint32_t hash, const char *text, size_t n)
{
    size_t mask = map->n_slots - 1;
    for (size_t i = hash & mask; map->slots[i].index != 0; i = (i + 1) & mask) {
        if (map->slots[i].hash != hash) continue;
        const tn_gguf_str *s = &map->texts[map->slots[i].index - 1];
        if (s->size == n && (n == 0 || memcmp(s->data, text, n) == 0)) return map->slots[i].index - 1;
    }
    return -1;
}

tn_status tn_text_map_init(tn_text_map *map, tn_context *ctx, size_t n_expected)
{
    *map = (tn_text_map){.ctx = ctx};
    return resize(map, n_expected < TEXTS_MIN ? TEXTS_MIN : n_expected);
}

void tn_text_map_fini(tn_text_map *map)
{
    if (map->ctx == NULL) return;
    tn_free(map->ctx, map->texts);
    tn_free(map->ctx, map->slots);
    *map = (tn_text_map){0};
}

int32_t tn_text_map_find(const tn_text_map *map, const char *text, size_t n)
{
    return find_hashed(map, text_hash(text, n), text, n);
}

tn_status tn_text_map_add(tn_text_map *map, tn_gguf_str text, int32_t *index, bool *added)
{
    uint32_t hash = text_hash(text.data, text.size);
    int32_t known = find_hashed(map, hash, text.data, text.size);
    *added = known < 0;
    *index = known;
    if (known >= 0) return TN_OK;
    if (map->count == map->capacity) {
        tn_status status = resize(map, map->capacity * 2);
        if (status != TN_OK) return status;
    }
    map->texts[map->count] = text;
    place(map, hash, map->count);
    *index = (int32_t)map->count++;
    return TN_OK;
}

tn_status tn_pair_map_init(tn_pair_map *map, tn_context *ctx, size_t n)
{
    *map = (tn_pair_map){.ctx = ctx, .n_slots = slots_for(n)};
    if (map->n_slots == 0) return tn_fail(ctx, TN_ERR_MEMORY, "too many merges: %zu", n);
    map->slots = tn_calloc(ctx, map->n_slots, sizeof *map->slots);
    return map->slots == NULL ? TN_ERR_MEMORY : TN_OK;
}

void tn_pair_map_fini(tn_pair_map *map)
{
    if (map->ctx == NULL) return;
    tn_free(map->ctx, map->slots);
    *map = (tn_pair_map){0};
}

// The slot of a pair, or the free one where it belongs.
static tn_pair *pair_slot(const tn_pair_map *map, int32_t left, int32_t right)
{
    size_t mask = map->n_slots - 1, i = (size_t)pair_hash(left, right) & mask;
    while (map->slots[i].merged != 0 && (map->slots[i].left != left || map->slots[i].right != right))
        i = (i + 1) & mask;
    return &map->slots[i];
}

void tn_pair_map_add(tn_pair_map *map, int32_t left, int32_t right, uint32_t rank, int32_t merged)
{
    tn_pair *slot = pair_slot(map, left, right);
    if (slot->merged == 0) *slot = (tn_pair){left, right, rank, merged + 1};
}

const tn_pair *tn_pair_map_find(const tn_pair_map *map, int32_t left, int32_t right)
{
    const tn_pair *slot = pair_slot(map, left, right);
    return slot->merged == 0 ? NULL : slot;
}
