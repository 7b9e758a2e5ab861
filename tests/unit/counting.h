// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A context whose allocator counts what is alive and fails where a test wants it to.
#ifndef TN_TESTS_UNIT_COUNTING_H
#define TN_TESTS_UNIT_COUNTING_H

#include "core/context.h"

#include <stdlib.h>

typedef struct counting {
    long live, calls;
    long fail_from, fail_to; // calls in [fail_from, fail_to) fail
} counting;

static inline void *counting_alloc(void *user, size_t size, size_t align)
{
    counting *c = user;
    long call = c->calls++;
    if (call >= c->fail_from && call < c->fail_to) return NULL;
    if (size > SIZE_MAX / 4) return NULL; // a sanitizer would end the process
    void *p = tn_system_alloc(size, align);
    if (p) c->live++;
    return p;
}

static inline void counting_free(void *user, void *ptr)
{
    counting *c = user;
    if (ptr) c->live--;
    tn_system_free(ptr);
}

static inline tn_context *counting_context(counting *c)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    *c = (counting){0};
    cfg.allocator = (tn_allocator){c, counting_alloc, counting_free};
    tn_context *ctx = NULL;
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
    return ctx;
}

static inline void counting_nothing(void *arg, int32_t i, int32_t n)
{
    (void)arg, (void)i, (void)n;
}

// Starts the threads of a context, which it does itself with the first work of several parts. They stay, so
// what is alive afterwards is a baseline for calls that must leave nothing.
static inline void counting_start_threads(tn_context *ctx)
{
    if (tn_parallel(ctx, 2, counting_nothing, NULL) != TN_OK) abort();
}

#endif
