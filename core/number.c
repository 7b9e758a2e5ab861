// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char numerals[] = "0123456789";

void tn_number_point(char *text)
{
    char *point = text + strcspn(text, numerals);
    if (!*point) return; // no digits: infinite, not a number
    point += strspn(point, numerals);
    size_t n = strcspn(point, "0123456789eE");
    if (n == 0) return;
    *point = '.';
    memmove(point + 1, point + n, strlen(point + n) + 1);
}

bool tn_number_read(const char *text, size_t n, double *out)
{
    char half[16], copy[TN_NUMBER_MAX + sizeof half], *end;
    // The point of the locale as printf writes it; localeconv is not safe in threads. 0: between "0" and "5".
    int n_half = snprintf(half, sizeof half, "%.1f", 0.5);
    size_t n_point = n_half > 2 && (size_t)n_half < sizeof half ? (size_t)n_half - 2 : 0, k = 0;
    if (n == 0 || n > TN_NUMBER_MAX || n_point == 0) return false;
    const char *dot = memchr(text, '.', n);
    size_t before = dot ? (size_t)(dot - text) : n;
    memcpy(copy, text, before);
    k = before;
    if (dot) {
        memcpy(copy + k, half + 1, n_point);
        k += n_point;
        memcpy(copy + k, dot + 1, n - before - 1);
        k += n - before - 1;
    }
    copy[k] = 0;
    // strtod accepts more than numbers of JSON: hexadecimal, white space and the point of the locale are
    // refused here.
    if (strcspn(copy, "xX( \t\n\v\f\r") != k || (half[1] != '.' && memchr(text, half[1], n))) return false;
    double v = strtod(copy, &end);
    if (end != copy + k) return false;
    *out = v;
    return true;
}
