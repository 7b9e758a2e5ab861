// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of the grids of the codebook formats (IQ1 to IQ3) as the unsigned bytes that dot products of bytes
// take, the first element in the lowest byte. 33 KB.
#ifndef TN_CPU_GRIDS_H
#define TN_CPU_GRIDS_H

#include <stdint.h>

// Added to the values of IQ2 and IQ3, so that both signs of each are not negative. A row has the positive
// values u; those of the other sign are 2 * bias - u.
enum { TN_IQ2_BIAS = 43, TN_IQ3XXS_BIAS = 62, TN_IQ3S_BIAS = 15 };

extern const uint64_t tn_cpu_iq2xxs_rows[256], tn_cpu_iq2xs_rows[512], tn_cpu_iq2s_rows[1024];
extern const uint32_t tn_cpu_iq3xxs_rows[256], tn_cpu_iq3s_rows[512];
extern const uint64_t tn_cpu_iq1_rows[2048]; // 0, 1, 2 for -1, 0, 1

#endif
