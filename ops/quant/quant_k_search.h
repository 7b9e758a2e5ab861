// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Searches for the scale (and minimum) of a group of up to 32 values that gives the least weighted error.
// Any float is accepted; codes always stay in range.
#ifndef TN_OPS_QUANT_K_SEARCH_H
#define TN_OPS_QUANT_K_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

// Groups with no larger magnitude count as zero.
#define TN_SEARCH_EPS 1e-15f

// x ~ scale * q, q in [-n_max, n_max - 1]. Weights w, or NULL for x^2. Returns the scale, of either sign.
float tn_search_symmetric(int n, int n_max, const float *x, const float *w, int8_t *q);

// The same with weights x^2, found by improving one code at a time.
float tn_search_refine(int n, int n_max, const float *x, int8_t *q);

// Trials of tn_search_scale_min: codes up to n_max + step_min + k * step for k = 0 .. n_steps.
typedef struct tn_search_range {
    int n, n_max; // n <= 32
    float step_min, step;
    int n_steps;
    bool absolute; // error |x - y| instead of its square
} tn_search_range;

// x ~ scale * q - *min, q in [0, n_max]. Returns the scale; scale and *min are >= 0.
float tn_search_scale_min(const tn_search_range *range, const float *x, const float *w, uint8_t *q,
                          float *min);

// x >= 0: x ~ scale * q, q in [0, n_max]. Returns the scale.
float tn_search_positive(int n, int n_max, const float *x, const float *w, uint8_t *q);

#endif
