// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// XXH64 (Yann Collet, xxHash specification 0.1.1), a fast hash that finds damage; it does not resist somebody
// who wants two inputs to collide. Seed 0. The pieces of an input may be cut anywhere.
#ifndef TN_CORE_HASH_H
#define TN_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct tn_hash {
    uint64_t lanes[4], total; // total: bytes so far
    uint8_t rest[32];         // the last total % 32 of them
} tn_hash;

void tn_hash_init(tn_hash *h);
void tn_hash_add(tn_hash *h, const void *bytes, size_t n);
uint64_t tn_hash_value(const tn_hash *h); // of all bytes so far; more may follow

#endif
