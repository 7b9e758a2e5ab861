// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The context: configuration, log, events, devices.
#include "core/context.h"

#include "core/context_impl.h"
#include "core/cpu_features.h"
#include "core/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/version.h>

enum { MAX_THREADS = 512 };

static void *default_alloc(void *user, size_t size, size_t align)
{
    TN_UNUSED(user);
    return tn_system_alloc(size, align);
}

static void default_free(void *user, void *ptr)
{
    TN_UNUSED(user);
    tn_system_free(ptr);
}

const char *tn_version(void)
{
    return TENON_VERSION;
}

const char *tn_status_text(tn_status status)
{
    static const struct {
        tn_status value;
        const char *text;
    } rows[] = {
#define TN_STATUS(name, value, text) {value, text},
#include <tenon/status.def>
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        if (rows[i].value == status) return rows[i].text;
    return "unknown status";
}

void tn_context_config_init(tn_context_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_context_config, cfg, struct_size,
                   {.allocator = {NULL, default_alloc, default_free}, .log_level = TN_LOG_WARN});
}

static tn_status read_config(const tn_context_config *cfg, tn_context_config *out)
{
    tn_context_config_default(out);
    tn_status status = TN_STRUCT_READ(NULL, tn_context_config, cfg, out);
    if (status != TN_OK) return status;
    if (!out->allocator.alloc || !out->allocator.free)
        return tn_fail(NULL, TN_ERR_ARG, "context: the allocator lacks a function");
    if (out->cache_dir && strlen(out->cache_dir) >= sizeof((tn_context *)NULL)->cache_dir)
        return tn_fail(NULL, TN_ERR_ARG, "context: the path of cache_dir is too long");
    if (out->n_threads < 0 || out->n_threads > MAX_THREADS)
        return tn_fail(NULL, TN_ERR_ARG, "context: n_threads is %d, must be 0 to %d", out->n_threads,
                       MAX_THREADS);
    if (out->threads_by < TN_THREADS_OWN || out->threads_by > TN_THREADS_OPENMP)
        return tn_fail(NULL, TN_ERR_ARG, "context: threads_by is %d, must be 0 or 1", out->threads_by);
    if (out->thread_priority < TN_THREADS_NORMAL || out->thread_priority > TN_THREADS_BACKGROUND)
        return tn_fail(NULL, TN_ERR_ARG, "context: thread_priority is %d, must be 0 or 1",
                       out->thread_priority);
#ifndef _OPENMP
    if (out->threads_by == TN_THREADS_OPENMP)
        return tn_fail(NULL, TN_ERR_UNSUPPORTED, "context: this build has no OpenMP");
#endif
    return TN_OK;
}

static void note_missing_backend(tn_context *ctx)
{
    const char *name = ctx->cfg.backend;
    if (name && !tn_context_device_by_name(ctx, name))
        snprintf(ctx->missing_backend, sizeof ctx->missing_backend, "%s", name);
}

tn_status tn_context_create(const tn_context_config *cfg, tn_context **out)
{
    tn_context_config c;
    TN_NEED(NULL, out);
    tn_status status = read_config(cfg, &c);
    if (status != TN_OK) return status;
    tn_context *ctx = c.allocator.alloc(c.allocator.user, sizeof *ctx, TN_ALLOC_ALIGN);
    if (!ctx) return tn_fail(NULL, TN_ERR_MEMORY, "out of memory for a context");
    memset(ctx, 0, sizeof *ctx);
    ctx->cfg = c;
    ctx->id = tn_time_ns();
    if (c.cache_dir) memcpy(ctx->cache_dir, c.cache_dir, strlen(c.cache_dir) + 1);
    if (ctx->cfg.n_threads == 0) ctx->cfg.n_threads = TN_MIN(tn_cpu_count(), MAX_THREADS);
    atomic_flag_clear(&ctx->error_lock);
    atomic_flag_clear(&ctx->files_lock);
    tn_pool_init(ctx);
    status = tn_devices_open(ctx);
    if (status == TN_OK) note_missing_backend(ctx);
    ctx->cfg.backend = ctx->cfg.blas = NULL; // the caller's
    if (status != TN_OK) {
        tn_context_destroy(&ctx);
        return status;
    }
    *out = ctx;
    return TN_OK;
}

void tn_context_destroy(tn_context **ctx)
{
    if (!ctx || !*ctx) return;
    tn_context *c = *ctx;
    tn_devices_close(c);
    tn_pool_fini(c);
    c->cfg.allocator.free(c->cfg.allocator.user, c);
    *ctx = NULL;
}

// --- log, events, settings -------------------------------------------------------------------------

void tn_log(tn_context *ctx, int32_t level, const char *fmt, ...)
{
    if (!ctx->cfg.log || level > ctx->cfg.log_level) return;
    char text[TN_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ctx->cfg.log(ctx->cfg.user, level, text);
}

tn_status tn_event(tn_context *ctx, int32_t code, const char *fmt, ...)
{
    char text[TN_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (ctx->cfg.strict) return tn_fail(ctx, TN_ERR_UNSUPPORTED, "%s", text);
    if (ctx->cfg.event) ctx->cfg.event(ctx->cfg.user, code, text);
    return TN_OK;
}

void tn_notice(tn_context *ctx, int32_t code, const char *fmt, ...)
{
    char text[TN_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (ctx->cfg.event) ctx->cfg.event(ctx->cfg.user, code, text);
}

int32_t tn_context_n_threads(const tn_context *ctx)
{
    if (!ctx) return 0;
    return ctx->cfg.n_threads;
}

const char *tn_context_isa(const tn_context *ctx)
{
    return ctx->cfg.isa;
}

const char *tn_context_blas(const tn_context *ctx)
{
    return ctx->cfg.blas;
}

const char *tn_context_cache_dir(const tn_context *ctx)
{
    return ctx->cache_dir[0] ? ctx->cache_dir : NULL;
}

bool tn_context_tunes(const tn_context *ctx)
{
    return ctx->cfg.tune != 0;
}

bool tn_context_strict(const tn_context *ctx)
{
    return ctx->cfg.strict != 0;
}

bool tn_context_deterministic(const tn_context *ctx)
{
    return ctx->cfg.deterministic != 0;
}

uint64_t tn_context_device_timeout(const tn_context *ctx)
{
    enum { DEFAULT_MS = 300000, NS_OF_MS = 1000000 };
    int64_t ms = ctx->cfg.device_timeout_ms;
    if (ms < 0 || ms > INT64_MAX / NS_OF_MS) return UINT64_MAX;
    return (uint64_t)(ms == 0 ? DEFAULT_MS : ms) * NS_OF_MS;
}

const char *tn_context_missing_backend(const tn_context *ctx)
{
    return ctx->missing_backend[0] ? ctx->missing_backend : NULL;
}

void tn_context_cancel_loading(tn_context *ctx, int32_t on)
{
    // Lock-free on every supported machine, so safe in a signal handler. Relaxed: it carries no data.
    atomic_store_explicit(&ctx->loading_cancelled, on, memory_order_relaxed);
}

bool tn_context_loading_cancelled(const tn_context *ctx)
{
    return atomic_load_explicit(&ctx->loading_cancelled, memory_order_relaxed) != 0;
}
