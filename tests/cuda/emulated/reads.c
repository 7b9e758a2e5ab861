// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads of device memory that nobody has written. The compiler calls __tsan_* around loads and stores of
// kernels
// (-fsanitize=thread without its library); each byte of device memory has a byte here that says whether it
// was written.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "core/compiler.h"
#include "tests/check/poison.h"
#include "tests/cuda/emulated/machine.h"
#include "tests/cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Allocations lie a fence of 1 MiB from each other, so that one of them at most is in a granule.
enum { GRANULE = 20, ADDRESS = 47 };

typedef struct tracked {
    char *at, *written; // written: size bytes, 0 or 1
    size_t size;
} tracked;

static tracked **granules; // by address; reserved, not filled

static size_t granule_of(const void *p)
{
    return (uintptr_t)p >> GRANULE;
}

static tracked *find(const void *p)
{
    return granules && (uintptr_t)p >> ADDRESS == 0 ? granules[granule_of(p)] : NULL;
}

static void enter(const tracked *t, tracked *value)
{
    for (size_t g = granule_of(t->at); g <= granule_of(t->at + t->size - 1); g++) granules[g] = value;
}

void fake_memory_begin(void *at, size_t size)
{
    if (!granules) {
        void *p = mmap(NULL, sizeof *granules << (ADDRESS - GRANULE), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) return;
        granules = p;
    }
    tracked *t = malloc(sizeof *t);
    char *written = calloc(size, 1);
    if (!t || !written) {
        free(t);
        free(written);
        return;
    }
    *t = (tracked){at, written, size};
    enter(t, t);
}

void fake_memory_end(void *at)
{
    tracked *t = find(at);
    if (!t) return;
    enter(t, NULL);
    free(t->written);
    free(t);
}

// The part of n bytes at p that lies in an allocation: its place there, and its length.
static tracked *part_of(const void *p, size_t *n, size_t *offset)
{
    tracked *t = find(p);
    size_t at = t ? (size_t)((const char *)p - t->at) : 0;
    if (!t || at >= t->size) return NULL; // also in front of it
    if (*n > t->size - at) *n = t->size - at;
    *offset = at;
    return t;
}

void fake_memory_written(void *at, size_t n)
{
    size_t offset;
    tracked *t = part_of(at, &n, &offset);
    if (t) memset(t->written + offset, 1, n);
}

// Poison follows poison or, where a result is one word, a fence; a word of random blocks may look like it
// too.
static bool is_poison(const char *words, size_t i, size_t n)
{
    static const uint32_t poisons[] = {CHECK_POISONS};
    uint32_t word, before = UINT32_MAX, after = 0;
    memcpy(&word, words + i, sizeof word);
    bool found = false;
    for (size_t k = 0; k < TN_COUNT(poisons); k++) found |= word == poisons[k];
    if (!found) return false;
    if (i >= 4) memcpy(&before, words + i - 4, sizeof before);
    if (i + 8 <= n) memcpy(&after, words + i + 4, sizeof after);
    return before == word || after == word || before == UINT32_MAX;
}

void fake_memory_copied(void *at, size_t n)
{
    size_t offset;
    tracked *t = part_of(at, &n, &offset);
    if (!t) return;
    memset(t->written + offset, 1, n);
    for (size_t i = (size_t) - (uintptr_t)at % 4; i + 4 <= n; i += 4)
        if (is_poison(at, i, n)) memset(t->written + offset + i, 0, 4);
}

void tn_emulated_will_read(const void *p, size_t n)
{
    size_t offset;
    tn_emulated_shared_used(p, n);
    const tracked *t = part_of(p, &n, &offset);
    const char *hole = t ? memchr(t->written + offset, 0, n) : NULL;
    if (hole)
        tn_emulated_fail("%zu bytes read of which byte %zu of an allocation of %zu was never written", n,
                         (size_t)(hole - t->written), t->size);
}

// --- what the compiler calls ------------------------------------------------------------------------------

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_read_range(const void *p, size_t n);
void __tsan_read_range(const void *p, size_t n)
{
    tn_emulated_will_read(p, n);
}
void __tsan_write_range(void *p, size_t n);
void __tsan_write_range(void *p, size_t n)
{
    tn_emulated_shared_used(p, n);
    fake_memory_written(p, n);
}
#define ACCESS(n)                                                                                            \
    void __tsan_read##n(const void *p);                                                                      \
    void __tsan_read##n(const void *p)                                                                       \
    {                                                                                                        \
        tn_emulated_will_read(p, n);                                                                         \
    }                                                                                                        \
    void __tsan_write##n(void *p);                                                                           \
    void __tsan_write##n(void *p)                                                                            \
    {                                                                                                        \
        tn_emulated_shared_used(p, n);                                                                       \
        fake_memory_written(p, n);                                                                           \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
