// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tile registers of AMX: eight of 16 rows of 64 bytes (Intel SDM vol. 1, chapter 18). Numbers of registers
// are literals. tests/cpu/tiles.h has the same in plain C, for processors without them.
#ifndef TN_CPU_X86_TILES_H
#define TN_CPU_X86_TILES_H

#include "core/compiler.h"

#include <immintrin.h>

// All eight at full size. Before the first use in a part of a step, and released at its end: the system saves
// 8 KiB less with each switch of threads.
TN_INLINE void tiles_configure(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_size[16];
        uint8_t rows[16];
    } config = {
        .palette = 1, .row_size = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config);
}

TN_INLINE void tiles_release(void)
{
    _tile_release();
}

// What was stored before is in memory: compilers do not know that tile_load reads it.
TN_INLINE void tiles_fence(void)
{
    __asm__ volatile("" ::: "memory");
}

#define tile_zero(t) _tile_zero(t)
// Not _tile_loadd and _tile_stored: with gcc their stride is a long, which has 32 bits on Windows.
#define tile_load(t, p, stride)                                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                                                         \
                     :                                                                                       \
                     : "r"((const void *)(p)), "r"((int64_t)(stride))                                        \
                     : "memory")
#define tile_store(t, p, stride)                                                                             \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)"                                                     \
                     :                                                                                       \
                     : "r"((void *)(p)), "r"((int64_t)(stride))                                              \
                     : "memory")
// c [16][16] f32 += a [16][32] b^T, b as pairs [16][16][2]: row i holds elements 2i, 2i + 1 of its 16
// columns.
#define tile_dot_bf16(c, a, b) _tile_dpbf16ps(c, a, b)

#endif
