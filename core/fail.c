// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The messages of failures: kept by the thread on which a call failed, and by the context.
#include "core/context_impl.h"

#include <stdio.h>
#include <string.h>

// The last failure on this thread. This is the one thing in the library that can change and belongs to no
// context: a call may fail before there is one, and what two threads fail at must not mix. It has no
// destructor, so that the library can be unloaded while threads exist.
typedef struct last_failure {
    const tn_context *context;
    uint64_t context_id; // a later context may have the same address
    uint64_t n;          // failures so far
    char text[TN_ERROR_SIZE];
} last_failure;
static _Thread_local last_failure thread_failure;

static void lock_error(tn_context *ctx)
{
    // Guards error_text; held for a string copy only. Acquire/release order the text.
    while (atomic_flag_test_and_set_explicit(&ctx->error_lock, memory_order_acquire)) TN_PAUSE();
}

static void unlock_error(tn_context *ctx)
{
    atomic_flag_clear_explicit(&ctx->error_lock, memory_order_release);
}

static void copy_text(char *to, const char *from)
{
    size_t n = strlen(from);
    if (n >= TN_ERROR_SIZE) n = TN_ERROR_SIZE - 1;
    memmove(to, from, n);
    to[n] = 0;
}

static void keep(tn_context *ctx, const char *text)
{
    thread_failure.n++;
    thread_failure.context = ctx;
    thread_failure.context_id = ctx ? ctx->id : 0;
    copy_text(thread_failure.text, text);
    if (!ctx) return;
    lock_error(ctx);
    copy_text(ctx->error_text, text);
    unlock_error(ctx);
}

tn_status tn_fail(tn_context *ctx, tn_status status, const char *fmt, ...)
{
    char text[TN_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    keep(ctx, text);
    return status;
}

tn_status tn_fail_at(tn_context *ctx, tn_status status, const char *fmt, ...)
{
    char text[TN_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text / 2, fmt, args);
    va_end(args);
    size_t used = TN_MIN(n < 0 ? 0 : (size_t)n, sizeof text / 2 - 1);
    snprintf(text + used, sizeof text - used, ": ");
    used += 2;
    (void)tn_context_error(ctx, text + used, sizeof text - used);
    keep(ctx, text);
    return status;
}

tn_status tn_fail_null(tn_context *ctx, const char *function, const char *arg)
{
    return tn_fail(ctx, TN_ERR_ARG, "%s: %s is NULL", function, arg);
}

uint64_t tn_fail_count(void)
{
    return thread_failure.n;
}

void tn_fail_take(tn_context *ctx, tn_failure *out)
{
    if (atomic_flag_test_and_set_explicit(&out->taken, memory_order_relaxed)) return;
    (void)tn_context_error(ctx, out->text, sizeof out->text);
    // Release: the text for the thread that reads it after the team has ended.
    atomic_store_explicit(&out->ready, true, memory_order_release);
}

void tn_fail_give(tn_context *ctx, const tn_failure *failure)
{
    if (atomic_load_explicit(&failure->ready, memory_order_acquire)) keep(ctx, failure->text);
}

static size_t give_text(const char *text, char *buf, size_t size)
{
    size_t n = strlen(text);
    if (buf && size > 0) {
        size_t k = TN_MIN(n, size - 1);
        memmove(buf, text, k);
        buf[k] = 0;
    }
    return n;
}

size_t tn_last_error(char *buf, size_t size)
{
    return give_text(thread_failure.text, buf, size);
}

size_t tn_context_error(tn_context *ctx, char *buf, size_t size)
{
    if (!ctx || (thread_failure.context == ctx && thread_failure.context_id == ctx->id))
        return give_text(thread_failure.text, buf, size);
    lock_error(ctx);
    size_t n = give_text(ctx->error_text, buf, size);
    unlock_error(ctx);
    return n;
}
