// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers as text in the form of C and JSON: the functions of the C library write and read the decimal
// point of the locale that the host program has set.
#ifndef TN_CORE_NUMBER_H
#define TN_CORE_NUMBER_H

#include "core/context.h"

enum { TN_NUMBER_MAX = 63 }; // the longest text that tn_number_read accepts, in bytes

// Text that begins with one number, just written by printf's e, f or g (no grouping): what stands there as
// decimal point becomes '.'; it never grows.
void tn_number_point(char *text);

// All n bytes as a decimal number, "inf" or "nan", as strtod reads them in the locale "C". False if there is
// more or less than a number, or more than TN_NUMBER_MAX bytes; *out is then unchanged.
bool tn_number_read(const char *text, size_t n, double *out);

#endif
