// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/prefix_key.h"

#include <stdio.h>

enum { BLOCK = 64 }; // tokens of a block of the prefix cache, see docs/batches.md

// FNV-1a over the bytes of the value, the lowest first. The key must be the same on every server, so neither
// a seed nor the order of bytes of the machine may enter it.
static uint64_t add(uint64_t hash, uint64_t value, int n_bytes)
{
    static const uint64_t prime = 0x100000001b3u;
    for (int i = 0; i < n_bytes; i++) hash = (hash ^ (value >> 8 * i & 0xff)) * prime;
    return hash;
}

void prefix_key_add(exchange *x, const int32_t *tokens, size_t n, uint64_t salt)
{
    uint64_t hash = 0xcbf29ce484222325u;
    char text[24];
    if (n < BLOCK) return;
    hash = add(hash, salt, 8);
    for (int i = 0; i < BLOCK; i++) hash = add(hash, (uint32_t)tokens[i], 4);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    exchange_header(x, "x-prefix-key", text);
}
