// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A growing arena: allocations die together. All memory comes zeroed.
#ifndef TN_CORE_ARENA_H
#define TN_CORE_ARENA_H

#include "core/context.h"

typedef struct tn_arena_chunk tn_arena_chunk;

typedef struct tn_arena {
    tn_context *ctx;
    tn_arena_chunk *chunks; // newest first
} tn_arena;

void tn_arena_init(tn_arena *arena, tn_context *ctx);
void tn_arena_fini(tn_arena *arena);
// Zeroed bytes, 16-byte aligned; NULL (with a message on the context) if memory is out.
void *tn_arena_alloc(tn_arena *arena, size_t size);
// The same for count * size with an overflow check.
void *tn_arena_array(tn_arena *arena, size_t count, size_t size);
char *tn_arena_strdup(tn_arena *arena, const char *text);
char *tn_arena_printf(tn_arena *arena, const char *fmt, ...) TN_PRINTF(2, 3);

#endif
