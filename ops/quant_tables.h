// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Value tables of the codebook formats. A grid row holds the values of 8 (IQ2*, IQ1*) or 4 (IQ3*) elements
// as codes of 2 or 3 bits, element 0 in the lowest bits.
#ifndef TN_OPS_QUANT_TABLES_H
#define TN_OPS_QUANT_TABLES_H

#include <stdint.h>

extern const int8_t tn_iq4_values[16]; // IQ4_NL, IQ4_XS
extern const int8_t tn_fp4_values[16]; // MXFP4, NVFP4: E2M1 doubled

// Codes 0, 1, 2 mean 8, 25, 43.
extern const uint16_t tn_iq2xxs_grid[256];
extern const uint16_t tn_iq2xs_grid[512];
extern const uint16_t tn_iq2s_grid[1024];
// Codes 0..7 mean 4, 12, 20, 28, 36, 44, 52, 62.
extern const uint16_t tn_iq3xxs_grid[256];
// Codes 0..7 mean 1, 3, 5, .. 15.
extern const uint16_t tn_iq3s_grid[512];
// Codes 0, 1, 2 mean -1, 0, 1 (IQ1_S and IQ1_M).
extern const uint16_t tn_iq1_grid[2048];

// Sign bits of 8 elements from the 7 stored ones: bit 7 makes the number of minus signs even.
static inline uint8_t tn_iq_signs(uint32_t s)
{
    uint32_t nibble = (s ^ s >> 4) & 15u;
    return (uint8_t)(s | (0x6996u >> nibble & 1u) << 7); // 0x6996: parity of each nibble
}

#endif
