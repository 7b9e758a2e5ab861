// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Open addressing with linear probing, filled to 2/3: 12 bytes per name. Names come from files that may
// be hostile, so the hash is keyed: SipHash-1-3 (Aumasson and Bernstein 2012) with a key that no file can
// know. Only the speed depends on the key.
#include "models/gguf/names.h"

#include "core/checked.h"
#include "models/gguf/cursor.h"

#include <string.h>

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static uint64_t hash_name(const uint64_t seed[2], tn_gguf_str s)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                     seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    const uint8_t *p = (const uint8_t *)s.data;
    size_t left = s.size;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word = tn_load_le(p, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)s.size << 56 | tn_load_le(p, left);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static bool same(tn_gguf_str a, tn_gguf_str b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

// The slot that holds the name, or the free slot where it belongs.
static tn_name_slot *probe(const tn_name_index *index, const tn_name_list *list, tn_gguf_str name,
                           uint32_t *tag)
{
    uint64_t hash = hash_name(index->seed, name);
    *tag = (uint32_t)(hash >> 32);
    // Maps 32 bits to [0, n_slots) without a division.
    size_t i = (size_t)((uint64_t)(uint32_t)hash * index->n_slots >> 32);
    for (;;) {
        tn_name_slot *slot = &index->slots[i];
        if (slot->item == 0) return slot;
        if (slot->tag == *tag && same(list->name(list->items, slot->item - 1), name)) return slot;
        if (++i == index->n_slots) i = 0;
    }
}

tn_status tn_name_index_build(tn_context *ctx, tn_name_index *index, const tn_name_list *list,
                              size_t *duplicate)
{
    *duplicate = list->n;
    if (list->n == 0) return TN_OK;
    if (list->n > TN_NAMES_MAX) return tn_fail(ctx, TN_ERR_MEMORY, "%zu names: too many", list->n);
    size_t n_slots;
    if (!tn_add_size(list->n, list->n / 2, &n_slots) || !tn_add_size(n_slots, 1, &n_slots))
        return tn_fail(ctx, TN_ERR_MEMORY, "%zu names: too many", list->n);
    index->slots = tn_calloc(ctx, n_slots, sizeof *index->slots);
    if (!index->slots) return TN_ERR_MEMORY;
    index->n_slots = n_slots;
    index->seed[0] = tn_time_ns();
    index->seed[1] = (uint64_t)(uintptr_t)index->slots;
    for (size_t i = 0; i < list->n; i++) {
        uint32_t tag;
        tn_name_slot *slot = probe(index, list, list->name(list->items, i), &tag);
        if (slot->item != 0) {
            *duplicate = i;
            return TN_OK;
        }
        *slot = (tn_name_slot){.item = (uint32_t)i + 1, .tag = tag};
    }
    return TN_OK;
}

int64_t tn_name_index_find(const tn_name_index *index, const tn_name_list *list, tn_gguf_str name)
{
    if (index->n_slots == 0) return -1;
    uint32_t tag;
    return (int64_t)probe(index, list, name, &tag)->item - 1;
}

void tn_name_index_fini(tn_context *ctx, tn_name_index *index)
{
    tn_free(ctx, index->slots);
    *index = (tn_name_index){0};
}
