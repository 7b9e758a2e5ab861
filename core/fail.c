// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The messages of failures.
#include "core/context_impl.h"

#include <stdio.h>
#include <string.h>

static void lock_error(tn_context *ctx)
{
    // Guards error_text; held for a string copy only. Acquire/release order the text.
    while (atomic_flag_test_and_set_explicit(&ctx->error_lock, memory_order_acquire)) TN_PAUSE();
}

static void unlock_error(tn_context *ctx)
{
    atomic_flag_clear_explicit(&ctx->error_lock, memory_order_release);
}

tn_status tn_fail(tn_context *ctx, tn_status status, const char *fmt, ...)
{
    if (!ctx) return status;
    char text[TN_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lock_error(ctx);
    memcpy(ctx->error_text, text, sizeof text);
    unlock_error(ctx);
    return status;
}

tn_status tn_fail_at(tn_context *ctx, tn_status status, const char *fmt, ...)
{
    if (!ctx) return status;
    char where[TN_ERROR_SIZE / 2], text[TN_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(where, sizeof where, fmt, args);
    va_end(args);
    lock_error(ctx);
    size_t n = (size_t)snprintf(text, sizeof text, "%s: ", where);
    if (n >= sizeof text) n = sizeof text - 1;
    size_t rest = strlen(ctx->error_text);
    if (rest > sizeof text - 1 - n) rest = sizeof text - 1 - n;
    memcpy(text + n, ctx->error_text, rest);
    text[n + rest] = 0;
    memcpy(ctx->error_text, text, n + rest + 1);
    unlock_error(ctx);
    return status;
}

size_t tn_context_error(tn_context *ctx, char *buf, size_t size)
{
    lock_error(ctx);
    size_t n = strlen(ctx->error_text);
    if (size > 0) {
        size_t k = n < size - 1 ? n : size - 1;
        memcpy(buf, ctx->error_text, k);
        buf[k] = 0;
    }
    unlock_error(ctx);
    return n;
}
