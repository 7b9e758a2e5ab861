// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Grids of the codebook formats; see quant_tables.h.
#include "ops/quant_tables.h"

#include "ops/quant/iq_grids.h"

#define GRID_CODE(code) code,

const uint16_t tn_iq2xxs_grid[256] = {TN_IQ2XXS_GRID(GRID_CODE)};
const uint16_t tn_iq2xs_grid[512] = {TN_IQ2XS_GRID(GRID_CODE)};
const uint16_t tn_iq2s_grid[1024] = {TN_IQ2S_GRID(GRID_CODE)};
const uint16_t tn_iq3xxs_grid[256] = {TN_IQ3XXS_GRID(GRID_CODE)};
const uint16_t tn_iq3s_grid[512] = {TN_IQ3S_GRID(GRID_CODE)};
const uint16_t tn_iq1_grid[2048] = {TN_IQ1_GRID(GRID_CODE)};

#undef GRID_CODE
