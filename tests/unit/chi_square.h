// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_TESTS_UNIT_CHI_SQUARE_H
#define TN_TESTS_UNIT_CHI_SQUARE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// Whether n_draws counted in `seen` come from p: Pearson's statistic over the classes with at least 5
// expected draws; the rest is one class.
static inline bool chi_square_fits(const double *p, const int32_t *seen, int32_t n, int32_t n_draws)
{
    double sum = 0, rest_p = 0;
    int32_t rest_seen = 0, classes = 0;
    for (int32_t i = 0; i < n; i++) {
        double want = p[i] * n_draws;
        if (p[i] <= 0 && seen[i] > 0) return false;
        if (want >= 5) {
            sum += (seen[i] - want) * (seen[i] - want) / want;
            classes++;
        } else {
            rest_p += p[i];
            rest_seen += seen[i];
        }
    }
    if (rest_p * n_draws >= 5) {
        sum += (rest_seen - rest_p * n_draws) * (rest_seen - rest_p * n_draws) / (rest_p * n_draws);
        classes++;
    }
    if (classes < 2) return true;
    // Wilson and Hilferty 1931: the quantile at 5 standard deviations.
    double df = classes - 1, t = 1 - 2 / (9 * df) + 5 * sqrt(2 / (9 * df));
    return sum < df * t * t * t;
}

#endif
