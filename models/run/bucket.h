// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sizes that come again. A plan is made for one number of tokens and sequences, and making and capturing one
// takes a device some 10 ms. So counts are rounded up to a small set of values: `parts` steps from each power
// of two to the next.
//     parts 1: 1 2 4 8 16 32         at most half of the rows are added
//     parts 2: 1 2 3 4 6 8 12 16 24  at most a third
//     parts 4: 1 2 3 4 5 6 7 8 10 12 14 16 20 24 28 32 40  at most a fifth
#ifndef TN_MODELS_BUCKET_H
#define TN_MODELS_BUCKET_H

#include "core/compiler.h"

#include <stdint.h>

static inline int32_t tn_bucket_step(int32_t n, int32_t parts)
{
    int32_t power = 1;
    while (power <= n / 2) power *= 2;
    return TN_MAX(power / parts, 1);
}

// The smallest of these values from n on; n is at least 1.
static inline int32_t tn_bucket(int32_t n, int32_t parts)
{
    int32_t step = tn_bucket_step(n, parts);
    return (n + step - 1) / step * step;
}

#endif
