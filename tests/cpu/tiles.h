// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// backends/cpu/x86/product/tiles.h in plain C, in its place (the same guard): Intel SDM vol. 2, TDPBF16PS,
// TILELOADD, TILESTORED. Each thread has its registers. A register that is used while none is configured ends
// the program, as on a processor that has them.
#ifndef TN_CPU_X86_TILES_H
#define TN_CPU_X86_TILES_H

#include <stddef.h>

void tiles_configure(void);
void tiles_release(void);
void tile_zero(int t);
void tile_load(int t, const void *p, ptrdiff_t stride);
void tile_store(int t, void *p, ptrdiff_t stride);
void tile_dot_bf16(int c, int a, int b);

static inline void tiles_fence(void) {}

#endif
