// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Timelines: spans and passes are given to the callbacks of the context. Nothing is kept here.
#include "core/context_impl.h"

uint64_t tn_span_begin(const tn_context *ctx)
{
    return ctx->cfg.span ? tn_time_ns() : 0;
}

void tn_span_end(const tn_context *ctx, int32_t kind, const char *name, uint64_t begin, int64_t count)
{
    if (begin == 0) return;
    tn_span span = {.struct_size = sizeof span,
                    .kind = kind,
                    .name = name,
                    .begin_ns = begin,
                    .end_ns = tn_time_ns(),
                    .count = count};
    ctx->cfg.span(ctx->cfg.user, &span);
}

bool tn_passes_watched(const tn_context *ctx)
{
    return ctx->cfg.pass_begin || ctx->cfg.pass_end;
}

bool tn_pass_begin(const tn_context *ctx, const tn_pass_info *pass)
{
    return ctx->cfg.pass_begin && ctx->cfg.pass_begin(ctx->cfg.user, pass) != 0;
}

void tn_pass_end(const tn_context *ctx, const tn_pass_info *pass)
{
    if (ctx->cfg.pass_end) ctx->cfg.pass_end(ctx->cfg.user, pass);
}

void tn_pool_watch(tn_context *ctx)
{
    if (ctx->cfg.span) atomic_fetch_add_explicit(&ctx->pool.n_watchers, 1, memory_order_relaxed);
}

void tn_pool_unwatch(tn_context *ctx)
{
    if (ctx->cfg.span) atomic_fetch_sub_explicit(&ctx->pool.n_watchers, 1, memory_order_relaxed);
}
