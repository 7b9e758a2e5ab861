// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Size arithmetic that says when it overflows. Sizes that come from files or callers go through here.
#ifndef TN_CORE_CHECKED_H
#define TN_CORE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each returns false on overflow and leaves *out unchanged.
static inline bool tn_mul_size(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

static inline bool tn_add_size(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}

// Rounds up to a multiple of align, a power of two.
static inline bool tn_round_up_size(size_t a, size_t align, size_t *out)
{
    size_t sum;
    if (!tn_add_size(a, align - 1, &sum)) return false;
    *out = sum & ~(align - 1);
    return true;
}

#endif
