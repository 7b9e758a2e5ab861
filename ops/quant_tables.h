// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Value tables of the codebook formats. A grid row holds the values of 8 (IQ2*, IQ1*) or 4 (IQ3*) elements
// as codes of 2 or 3 bits, element 0 in the lowest bits.
#ifndef TN_OPS_QUANT_TABLES_H
#define TN_OPS_QUANT_TABLES_H

#include "core/fp16.h"

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

// The f16 scale of a block of IQ1_M, whose four 16-bit words at 48 have a nibble of it above, the lowest
// first.
static inline uint16_t tn_iq1m_scale(const uint8_t *block)
{
    uint32_t low = tn_load_u32(block + 48), high = tn_load_u32(block + 52);
    return (uint16_t)((low >> 12 & 0xf) | (low >> 24 & 0xf0) | (high >> 4 & 0xf00) | (high >> 16 & 0xf000));
}

// Half of an unsigned E4M3 value; 0x7f is no number and reads as 0, bit 7 is not used.
static inline float tn_half_ue4m3(uint8_t s)
{
    int exp = s >> 3 & 15, man = s & 7;
    if ((s & 0x7f) == 0x7f) return 0.0f;
    if (exp == 0) return (float)man * 0.0009765625f; // man * 2^-10
    return (float)(8 + man) * tn_f32_from_bits((uint32_t)(exp + 127 - 11) << 23);
}

#endif
