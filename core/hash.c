// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#include <string.h>

// The five primes of the specification.
static const uint64_t p1 = 0x9e3779b185ebca87u, p2 = 0xc2b2ae3d27d4eb4fu, p3 = 0x165667b19e3779f9u,
                      p4 = 0x85ebca77c2b2ae63u, p5 = 0x27d4eb2f165667c5u;

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

// Little endian; compilers make one load of it.
static uint64_t load(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static uint64_t round_lane(uint64_t lane, uint64_t v)
{
    return rotate(lane + v * p2, 31) * p1;
}

static void add_stripe(tn_hash *h, const uint8_t *p)
{
    for (int i = 0; i < 4; i++) h->lanes[i] = round_lane(h->lanes[i], load(p + 8 * i, 8));
}

void tn_hash_init(tn_hash *h)
{
    *h = (tn_hash){.lanes = {p1 + p2, p2, 0, 0 - p1}};
}

void tn_hash_add(tn_hash *h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t used = h->total % 32;
    h->total += n;
    if (used + n < 32) {
        if (n > 0) memcpy(h->rest + used, p, n);
        return;
    }
    if (used > 0) {
        memcpy(h->rest + used, p, 32 - used);
        add_stripe(h, h->rest);
        p += 32 - used;
        n -= 32 - used;
    }
    for (; n >= 32; p += 32, n -= 32) add_stripe(h, p);
    if (n > 0) memcpy(h->rest, p, n);
}

uint64_t tn_hash_value(const tn_hash *h)
{
    static const int turns[4] = {1, 7, 12, 18};
    const uint8_t *p = h->rest;
    uint64_t v = p5, n_rest = h->total % 32;
    if (h->total >= 32) {
        v = 0;
        for (int i = 0; i < 4; i++) v += rotate(h->lanes[i], turns[i]);
        for (int i = 0; i < 4; i++) v = (v ^ round_lane(0, h->lanes[i])) * p1 + p4;
    }
    v += h->total;
    for (; n_rest >= 8; p += 8, n_rest -= 8) v = rotate(v ^ round_lane(0, load(p, 8)), 27) * p1 + p4;
    for (; n_rest >= 4; p += 4, n_rest -= 4) v = rotate(v ^ load(p, 4) * p1, 23) * p2 + p3;
    for (; n_rest > 0; p++, n_rest--) v = rotate(v ^ *p * p5, 11) * p1;
    v = (v ^ v >> 33) * p2;
    v = (v ^ v >> 29) * p3;
    return v ^ v >> 32;
}
