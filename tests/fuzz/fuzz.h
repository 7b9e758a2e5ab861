// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets share: random numbers, inputs in memory of exactly their size, what an input may
// cost, and the frame around LLVMFuzzerTestOneInput. A target defines make_input, which makes an input that
// is mostly valid, and includes fuzz_main.h last. README.md says how they are run.
#ifndef TN_TESTS_FUZZ_FUZZ_H
#define TN_TESTS_FUZZ_FUZZ_H

#include "core/context.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Sanitizers make code some ten times slower, and the machine may do other things.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUZZ_SANITIZED 1
#elif defined(__has_feature)
#define FUZZ_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define FUZZ_SANITIZED 0
#endif

// Ends the process with a finding that names the condition.
#define fuzz_must(ok) fuzz_must_at((ok), #ok, __FILE__, __LINE__)
static inline void fuzz_must_at(bool ok, const char *what, const char *file, int line)
{
    if (ok) return;
    fprintf(stderr, "%s:%d: must hold: %s\n", file, line, what);
    abort();
}

// xorshift64*, Vigna 2016
static inline uint64_t fuzz_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

static inline uint64_t fuzz_seed(uint64_t n)
{
    return n * 0x9e3779b97f4a7c15u | 1;
}

// A copy of exactly this size, aligned: a read behind it is seen by the sanitizer.
static inline void *fuzz_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    fuzz_must(copy != NULL);
    if (size > 0) memcpy(copy, data, size);
    return copy;
}

// Appends a word unless it would not fit; returns the new size.
static inline size_t fuzz_put(uint8_t *out, size_t n, size_t max, const char *word)
{
    size_t size = strlen(word);
    if (n + size > max) return n;
    memcpy(out + n, word, size);
    return n + size;
}

// One to four changes: a bit, a byte, an extreme number, bytes moved elsewhere, a cut. The changes lie within
// the first `range` bytes.
static inline size_t fuzz_damage(uint64_t *state, uint8_t *b, size_t size, size_t range)
{
    static const uint64_t extremes[] = {0,          1,          4,          13,
                                        0xff,       0x7fffffff, 0xffffffff, 1u << 30,
                                        1ull << 61, INT64_MAX,  1ull << 63, UINT64_MAX - 31,
                                        UINT64_MAX};
    range = TN_MIN(size, range);
    for (uint64_t n = fuzz_random(state) % 4 + 1; n > 0 && range > 8; n--) {
        size_t at = fuzz_random(state) % range, from = fuzz_random(state) % range;
        uint64_t v = extremes[fuzz_random(state) % TN_COUNT(extremes)];
        size_t width = (size_t)1 << fuzz_random(state) % 4;
        switch (fuzz_random(state) % 8) {
        case 0:
            b[at] = (uint8_t)fuzz_random(state);
            break;
        case 1:
            if (fuzz_random(state) % 8 == 0) size = range = at;
            break;
        case 2:
            memmove(b + at, b + from, TN_MIN(width * 4, range - TN_MAX(at, from)));
            break;
        case 3:
        case 4:
            for (size_t i = 0; i < width && at + i < range; i++) b[at + i] = (uint8_t)(v >> 8 * i);
            break;
        default:
            b[at] ^= (uint8_t)(1u << fuzz_random(state) % 8);
            break;
        }
    }
    return size;
}

// --- memory ------------------------------------------------------------------------------------------------

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

// An allocator that keeps large blocks for later ones of the same size. The sanitizer's own takes each of
// them from the system, and in some targets the pages then took two thirds of the time. Until it is used
// again a block is poisoned, so that a use behind its end is seen.
enum { FUZZ_LARGE = 128 << 10, FUZZ_BLOCKS = 24 };
typedef struct fuzz_blocks {
    atomic_flag lock;
    struct fuzz_block {
        void *p;
        size_t size, align;
        bool used;
    } blocks[FUZZ_BLOCKS];
    int next; // the one that makes place
} fuzz_blocks;

static inline void *fuzz_alloc(void *user, size_t size, size_t align)
{
    fuzz_blocks *all = user;
    struct fuzz_block *to = NULL;
    if (size > SIZE_MAX / 4) return NULL;
    if (size < FUZZ_LARGE) return tn_system_alloc(size, align);
    while (atomic_flag_test_and_set_explicit(&all->lock, memory_order_acquire)) {
    }
    for (int i = 0; i < FUZZ_BLOCKS; i++) {
        struct fuzz_block *b = &all->blocks[i];
        bool same = b->p && !b->used && b->size == size && b->align == align;
        if (same || (!b->p && (!to || to->p))) to = b;
        if (same) break;
    }
    for (int i = 0; i < FUZZ_BLOCKS && !to; i++) {
        struct fuzz_block *b = &all->blocks[all->next++ % FUZZ_BLOCKS];
        if (!b->used) to = b;
    }
    if (to && to->p && (to->size != size || to->align != align)) {
        ASAN_UNPOISON_MEMORY_REGION(to->p, to->size);
        tn_system_free(to->p);
        to->p = NULL;
    }
    void *p = to && to->p ? to->p : tn_system_alloc(size, align);
    if (to) *to = (struct fuzz_block){p, size, align, p != NULL};
    if (to && p) ASAN_UNPOISON_MEMORY_REGION(p, size);
    atomic_flag_clear_explicit(&all->lock, memory_order_release);
    return p;
}

static inline void fuzz_free(void *user, void *p)
{
    fuzz_blocks *all = user;
    bool kept = false;
    if (!p) return;
    while (atomic_flag_test_and_set_explicit(&all->lock, memory_order_acquire)) {
    }
    for (int i = 0; i < FUZZ_BLOCKS && !kept; i++) {
        struct fuzz_block *b = &all->blocks[i];
        kept = b->p == p;
        if (!kept) continue;
        b->used = false;
        ASAN_POISON_MEMORY_REGION(p, b->size);
    }
    atomic_flag_clear_explicit(&all->lock, memory_order_release);
    if (!kept) tn_system_free(p);
}

// A context of one thread with this allocator; isa as in tn_context_config.
static inline tn_context *fuzz_context(const char *isa)
{
    tn_context *ctx = NULL;
    tn_context_config cfg;
    fuzz_blocks *blocks = calloc(1, sizeof *blocks);
    fuzz_must(blocks != NULL);
    atomic_flag_clear(&blocks->lock);
    tn_context_config_default(&cfg);
    cfg.n_threads = 1;
    cfg.isa = isa;
    cfg.allocator = (tn_allocator){blocks, fuzz_alloc, fuzz_free};
    fuzz_must(tn_context_create(&cfg, &ctx) == TN_OK);
    return ctx;
}

// --- cost of an input --------------------------------------------------------------------------------------

// The bounds that SECURITY.md states: what an input of a parser may take of memory beyond its own size, and
// of the time of the processor.
enum { FUZZ_MEMORY_BYTES = 64 << 20, FUZZ_MEMORY_PER_BYTE = 8, FUZZ_NS_PER_BYTE = 1000 };
static const double fuzz_seconds_base = 1;

typedef struct fuzz_cost {
    tn_context *ctx;
    size_t memory;
    double seconds;
} fuzz_cost;

// Of the whole process, so that threads of the context count.
static inline double fuzz_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static inline fuzz_cost fuzz_begin(tn_context *ctx)
{
    return (fuzz_cost){ctx, tn_context_memory(ctx), fuzz_seconds()};
}

// Ends the process if the input of n bytes left memory behind or cost more than the bounds.
static inline void fuzz_end(const fuzz_cost *c, size_t n)
{
    double seconds = fuzz_seconds() - c->seconds;
    double most = (fuzz_seconds_base + 1e-9 * FUZZ_NS_PER_BYTE * (double)n) * (FUZZ_SANITIZED ? 20 : 2);
    size_t peak = tn_context_memory_peak(c->ctx) - c->memory;
    if (tn_context_memory(c->ctx) != c->memory) {
        fprintf(stderr, "%zu bytes were left behind\n", tn_context_memory(c->ctx) - c->memory);
        abort();
    }
    if (peak > FUZZ_MEMORY_BYTES + FUZZ_MEMORY_PER_BYTE * n || seconds > most) {
        fprintf(stderr, "an input of %zu bytes took %zu bytes and %.2f s\n", n, peak, seconds);
        abort();
    }
}

#endif
