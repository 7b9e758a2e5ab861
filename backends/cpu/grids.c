// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of ops/quant/iq_grids.h as bytes. The codes and their values: ops/quant_tables.h.
#include "backends/cpu/grids.h"

#include "ops/quant/iq_grids.h"

#define CODE_2(code, i)   ((code) >> 2 * (i)&3)
#define CODE_3(code, i)   ((code) >> 3 * (i)&7)
#define BYTES_4(value, c) value(c, 0) | value(c, 1) << 8 | value(c, 2) << 16 | value(c, 3) << 24
#define BYTES_8(value, c)                                                                                    \
    BYTES_4(value, c) | value(c, 4) << 32 | value(c, 5) << 40 | value(c, 6) << 48 | value(c, 7) << 56
#define IQ2(c, i)     ((uint64_t)(TN_IQ2_BIAS + 8 + 17 * CODE_2(c, i) + CODE_2(c, i) / 2))
#define IQ3XXS(c, i)  ((uint32_t)(TN_IQ3XXS_BIAS + 4 + 8 * CODE_3(c, i) + 2 * (CODE_3(c, i) / 7)))
#define IQ3S(c, i)    ((uint32_t)(TN_IQ3S_BIAS + 1 + 2 * CODE_3(c, i)))
#define IQ1(c, i)     ((uint64_t)CODE_2(c, i))
#define ROW_IQ2(c)    BYTES_8(IQ2, c),
#define ROW_IQ3XXS(c) BYTES_4(IQ3XXS, c),
#define ROW_IQ3S(c)   BYTES_4(IQ3S, c),
#define ROW_IQ1(c)    BYTES_8(IQ1, c),

const uint64_t tn_cpu_iq2xxs_rows[256] = {TN_IQ2XXS_GRID(ROW_IQ2)};
const uint64_t tn_cpu_iq2xs_rows[512] = {TN_IQ2XS_GRID(ROW_IQ2)};
const uint64_t tn_cpu_iq2s_rows[1024] = {TN_IQ2S_GRID(ROW_IQ2)};
const uint32_t tn_cpu_iq3xxs_rows[256] = {TN_IQ3XXS_GRID(ROW_IQ3XXS)};
const uint32_t tn_cpu_iq3s_rows[512] = {TN_IQ3S_GRID(ROW_IQ3S)};
const uint64_t tn_cpu_iq1_rows[2048] = {TN_IQ1_GRID(ROW_IQ1)};
