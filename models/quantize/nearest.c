// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/quantize/nearest.h"

#include "core/compiler.h"

// Levenshtein 1966; names are cut to a length that no known name reaches.
int tn_name_distance(const char *a, size_t na, const char *b, size_t nb)
{
    enum { MAX = 32 };
    int row[MAX + 1];
    if (na > MAX) na = MAX;
    if (nb > MAX) nb = MAX;
    for (size_t j = 0; j <= nb; j++) row[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int above = row[j], change = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = TN_MIN(change, TN_MIN(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[nb];
}
