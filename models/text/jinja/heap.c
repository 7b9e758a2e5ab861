// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory of the template engine: small pieces from chunks, large ones alone, all freed together. Every byte
// and every step is counted here against the limits, so that no template can use more than they allow.
#include "models/text/jinja/jinja_impl.h"

#include "core/checked.h"

#include <stdio.h>

enum { CHUNK_SIZE = 64 * 1024, LARGE = 4096, ALIGN = 16, WORK_PER_STEP = 512, MESSAGE_SIZE = 700 };

struct tn_jj_block {
    tn_jj_block *prev, *next;
    size_t size; // of the bytes that follow the header
    TN_ALIGNED(16) char data[];
};

static void *block_new(tn_jj *j, size_t size)
{
    size_t all = size + sizeof(tn_jj_block);
    if (size > j->limits.heap_size || all > j->limits.heap_size - TN_MIN(j->heap_used, j->limits.heap_size)) {
        tn_jj_error(j, "the template needs more than %zu MiB of memory", j->limits.heap_size >> 20);
        return NULL;
    }
    tn_jj_block *b = tn_alloc(j->ctx, all);
    if (!b) {
        if (j->status == TN_OK) j->status = TN_ERR_MEMORY;
        return NULL;
    }
    *b = (tn_jj_block){.next = j->blocks, .size = size};
    if (j->blocks) j->blocks->prev = b;
    j->blocks = b;
    j->heap_used += all;
    return b->data;
}

static tn_jj_block *block_of(void *p)
{
    return (tn_jj_block *)(void *)((char *)p - offsetof(tn_jj_block, data));
}

void tn_jj_release(tn_jj *j, void *p)
{
    if (!p) return;
    tn_jj_block *b = block_of(p);
    if (b->prev)
        b->prev->next = b->next;
    else
        j->blocks = b->next;
    if (b->next) b->next->prev = b->prev;
    j->heap_used -= b->size + sizeof *b;
    tn_free(j->ctx, b);
}

void *tn_jj_alloc(tn_jj *j, size_t size)
{
    size_t need;
    if (j->status != TN_OK) return NULL;
    if (!tn_round_up_size(size ? size : 1, ALIGN, &need)) need = SIZE_MAX / 2;
    if (need >= LARGE) {
        void *p = block_new(j, need);
        return p ? memset(p, 0, need) : NULL;
    }
    if (need > j->chunk_left) {
        j->chunk = block_new(j, CHUNK_SIZE);
        j->chunk_left = j->chunk ? CHUNK_SIZE : 0;
        if (!j->chunk) return NULL;
    }
    void *p = j->chunk;
    j->chunk += need;
    j->chunk_left -= need;
    return memset(p, 0, need);
}

void *tn_jj_array(tn_jj *j, size_t count, size_t size)
{
    size_t bytes;
    return tn_jj_alloc(j, tn_mul_size(count, size, &bytes) ? bytes : SIZE_MAX / 2);
}

void *tn_jj_grow(tn_jj *j, const void *old, size_t old_size, size_t new_size)
{
    void *p = tn_jj_alloc(j, new_size);
    if (p && old_size) memcpy(p, old, old_size);
    return p;
}

bool tn_jj_resize(tn_jj *j, void **p, size_t old_size, size_t new_size)
{
    if (j->status != TN_OK) return false;
    void *more = block_new(j, new_size);
    if (!more) return false;
    if (old_size) memcpy(more, *p, old_size);
    tn_jj_release(j, *p);
    *p = more;
    return true;
}

// --- limits ------------------------------------------------------------------------------------------------

bool tn_jj_steps(tn_jj *j, size_t n)
{
    if (j->status != TN_OK) return false;
    if (n <= j->limits.steps && j->steps <= j->limits.steps - n) {
        j->steps += n;
        return true;
    }
    tn_jj_error(j, "the template takes more than %llu steps", (unsigned long long)j->limits.steps);
    return false;
}

bool tn_jj_step(tn_jj *j)
{
    return tn_jj_steps(j, 1);
}

bool tn_jj_work(tn_jj *j, size_t bytes)
{
    j->work += bytes;
    size_t steps = j->work / WORK_PER_STEP;
    j->work %= WORK_PER_STEP;
    return tn_jj_steps(j, steps);
}

bool tn_jj_enter(tn_jj *j)
{
    if (++j->depth <= j->limits.depth * JJ_FRAMES && j->status == TN_OK) return true;
    tn_jj_error(j, "nested too deeply");
    return false;
}

void tn_jj_leave(tn_jj *j)
{
    j->depth--;
}

// --- errors ------------------------------------------------------------------------------------------------

static value keep_error(tn_jj *j, tn_status status, const char *fmt, va_list args)
{
    if (j->status != TN_OK) return tn_jj_undefined();
    char text[MESSAGE_SIZE];
    vsnprintf(text, sizeof text, fmt, args);
    if (!j->source) {
        j->status = tn_fail(j->ctx, status, "%s", text);
        return tn_jj_undefined();
    }
    size_t line = 1, column = 1;
    for (size_t i = 0; i < j->pos && i < j->n_source; i++) {
        bool newline = j->source[i] == '\n';
        line += newline;
        column = newline ? 1 : column + (((uint8_t)j->source[i] & 0xc0) != 0x80);
    }
    j->status = tn_fail(j->ctx, status, "line %zu, column %zu: %s", line, column, text);
    return tn_jj_undefined();
}

value tn_jj_error(tn_jj *j, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    value v = keep_error(j, TN_ERR_MODEL, fmt, args);
    va_end(args);
    return v;
}

value tn_jj_error_as(tn_jj *j, tn_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    value v = keep_error(j, status, fmt, args);
    va_end(args);
    return v;
}

// --- the engine --------------------------------------------------------------------------------------------

void tn_jj_limits_default(tn_jj_limits *limits)
{
    *limits = (tn_jj_limits){
        .steps = 1000000, .heap_size = (size_t)64 << 20, .output_size = (size_t)16 << 20, .depth = 128};
}

tn_status tn_jj_open(tn_context *ctx, const tn_jj_limits *limits, tn_jj **out)
{
    tn_jj *j = tn_calloc(ctx, 1, sizeof *j);
    if (!j) return TN_ERR_MEMORY;
    j->ctx = ctx;
    tn_jj_limits_default(&j->limits);
    if (limits) j->limits = *limits;
    j->scope = &j->globals;
    *out = j;
    return TN_OK;
}

void tn_jj_close(tn_jj **j)
{
    if (!*j) return;
    for (tn_jj_block *b = (*j)->blocks, *next; b; b = next) {
        next = b->next;
        tn_free((*j)->ctx, b);
    }
    tn_free((*j)->ctx, *j);
    *j = NULL;
}

void tn_jj_clock(tn_jj *j, int64_t local_seconds)
{
    j->has_clock = true;
    j->clock = local_seconds;
}
