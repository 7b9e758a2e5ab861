// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the levels dotprod and i8mm share: dot products of bytes by SDOT, for rows of w.
#ifndef TN_CPU_ARM_SDOT_H
#define TN_CPU_ARM_SDOT_H

#include "backends/cpu/arm/product/unpack_low_bits.h"

// Per sub-block SUB / 16 SDOT into four lanes, then three pairwise additions for the four.
TN_INLINE int32x4_t sums_4(const int8x16_t *u, const int8_t *x, int sub, int most)
{
    int32x4_t s[4];
    TN_UNUSED(most);
    TN_UNROLL
    for (int i = 0; i < 4; i++) {
        int at = i * sub / 16;
        s[i] = vdotq_s32(vdupq_n_s32(0), u[at], vld1q_s8(x + 16 * at));
        if (sub == 32) s[i] = vdotq_s32(s[i], u[at + 1], vld1q_s8(x + 16 * at + 16));
    }
    return vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3]));
}

// The tile products that types.h asks for.
#define ARM_TILE_FUNCTION(name, sub, has_min)                                                                \
    static void name(const tn_matmul_tile_args *a)                                                           \
    {                                                                                                        \
        tile_passes(a, sub, has_min);                                                                        \
    }
#define ARM_TILE_FUNCTIONS                                                                                   \
    ARM_TILE_FUNCTION(tile_16, 16, false)                                                                    \
    ARM_TILE_FUNCTION(tile_16_min, 16, true)                                                                 \
    ARM_TILE_FUNCTION(tile_32, 32, false)                                                                    \
    ARM_TILE_FUNCTION(tile_32_min, 32, true)
#define TILE_FN(sub, most, has_min)                                                                          \
    ((sub) == 16 ? ((has_min) ? tile_16_min : tile_16) : ((has_min) ? tile_32_min : tile_32))

#endif
