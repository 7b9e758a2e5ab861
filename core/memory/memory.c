// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory of a context: its allocator, with what is in use counted and limited.
#include "core/context_impl.h"

#include <string.h>

// In front of every allocation: its size, so that memory in use is known. It keeps the alignment.
enum { ALLOC_HEADER = TN_ALLOC_ALIGN };

// Counts memory that is about to be requested, unless that exceeds the limit.
static tn_status account(tn_context *ctx, size_t size, size_t *now)
{
    *now = atomic_fetch_add_explicit(&ctx->memory, size, memory_order_relaxed) + size;
    if (ctx->cfg.memory_limit == 0 || *now <= ctx->cfg.memory_limit) return TN_OK;
    atomic_fetch_sub_explicit(&ctx->memory, size, memory_order_relaxed);
    return tn_fail(ctx, TN_ERR_MEMORY, "out of memory: %zu bytes wanted, %zu of the limit of %zu in use",
                   size, *now - size, ctx->cfg.memory_limit);
}

// Only requests that succeeded raise the peak.
static void raise_peak(tn_context *ctx, size_t now)
{
    // A statistic only: relaxed, and a lost race is repaired by the loop.
    size_t peak = atomic_load_explicit(&ctx->memory_peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(&ctx->memory_peak, &peak, now,
                                                                memory_order_relaxed, memory_order_relaxed)) {
    }
}

void *tn_alloc(tn_context *ctx, size_t size)
{
    size_t now;
    if (size > SIZE_MAX - 2 * ALLOC_HEADER) {
        tn_fail(ctx, TN_ERR_MEMORY, "out of memory: %zu bytes wanted", size);
        return NULL;
    }
    if (account(ctx, size, &now) != TN_OK) return NULL;
    // One byte at least, so that what is returned lies in the block: tools that look for leaks take a block
    // for lost if pointers lead to its end only.
    size_t all = (size > 0 ? size : 1) + ALLOC_HEADER;
    char *base = ctx->cfg.allocator.alloc(ctx->cfg.allocator.user, all, TN_ALLOC_ALIGN);
    if (!base) {
        atomic_fetch_sub_explicit(&ctx->memory, size, memory_order_relaxed);
        tn_fail(ctx, TN_ERR_MEMORY, "out of memory: %zu bytes wanted, %zu in use", size,
                tn_context_memory(ctx));
        return NULL;
    }
    raise_peak(ctx, now);
    atomic_fetch_add_explicit(&ctx->n_allocs, 1, memory_order_relaxed);
    memcpy(base, &size, sizeof size);
    return base + ALLOC_HEADER;
}

static size_t alloc_size(const void *ptr)
{
    size_t size;
    memcpy(&size, (const char *)ptr - ALLOC_HEADER, sizeof size);
    return size;
}

void *tn_calloc(tn_context *ctx, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        tn_fail(ctx, TN_ERR_MEMORY, "out of memory: %zu items of %zu bytes wanted", count, size);
        return NULL;
    }
    void *p = tn_alloc(ctx, count * size);
    if (p) memset(p, 0, count * size);
    return p;
}

void *tn_realloc(tn_context *ctx, void *ptr, size_t old_size, size_t new_size)
{
    void *p = tn_alloc(ctx, new_size);
    if (!p) return NULL;
    if (ptr) memcpy(p, ptr, TN_MIN(old_size, new_size));
    tn_free(ctx, ptr);
    return p;
}

void tn_free(tn_context *ctx, void *ptr)
{
    if (!ptr) return;
    atomic_fetch_sub_explicit(&ctx->memory, alloc_size(ptr), memory_order_relaxed);
    ctx->cfg.allocator.free(ctx->cfg.allocator.user, (char *)ptr - ALLOC_HEADER);
}

char *tn_strndup(tn_context *ctx, const char *text, size_t n)
{
    char *p = n == SIZE_MAX ? NULL : tn_alloc(ctx, n + 1);
    if (!p) return NULL;
    if (n > 0) memcpy(p, text, n);
    p[n] = 0;
    return p;
}

char *tn_strdup(tn_context *ctx, const char *text)
{
    return tn_strndup(ctx, text, strlen(text));
}

size_t tn_context_memory(const tn_context *ctx)
{
    if (!ctx) return 0;
    return atomic_load_explicit(&ctx->memory, memory_order_relaxed);
}

size_t tn_context_memory_peak(const tn_context *ctx)
{
    if (!ctx) return 0;
    return atomic_load_explicit(&ctx->memory_peak, memory_order_relaxed);
}

uint64_t tn_context_n_allocs(const tn_context *ctx)
{
    if (!ctx) return 0;
    return atomic_load_explicit(&ctx->n_allocs, memory_order_relaxed);
}
