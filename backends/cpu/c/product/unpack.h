// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Groups of 256 weights as integers and scales, for the matrix products in portable C.
#ifndef TN_CPU_C_PRODUCT_UNPACK_H
#define TN_CPU_C_PRODUCT_UNPACK_H

#include "backends/cpu/product.h"

// Values, and per 16 elements value = q * scale + min.
typedef struct tn_cpu_unpacked {
    int8_t q[TN_MATMUL_GROUP];
    float scale[16], min[16];
} tn_cpu_unpacked;

// b: whole blocks of 256 weights together.
typedef void (*tn_cpu_unpack_fn)(const uint8_t *b, tn_cpu_unpacked *u);

static inline void add_all(int8_t *q, int value)
{
    for (int i = 0; i < TN_MATMUL_GROUP; i++) q[i] = (int8_t)(q[i] + value);
}

// Of block b of 32 elements.
static inline void set_block(tn_cpu_unpacked *u, int b, float scale, float min)
{
    u->scale[2 * b] = u->scale[2 * b + 1] = scale;
    u->min[2 * b] = u->min[2 * b + 1] = min;
}

extern const tn_cpu_unpack_fn tn_cpu_unpackers[TN_TYPE_COUNT]; // NULL for plain types

// The rows of the table that are in unpack_grids.c.
void tn_cpu_unpack_iq1_s(const uint8_t *b, tn_cpu_unpacked *u);
void tn_cpu_unpack_iq1_m(const uint8_t *b, tn_cpu_unpacked *u);
void tn_cpu_unpack_iq2_xxs(const uint8_t *b, tn_cpu_unpacked *u);
void tn_cpu_unpack_iq2_xs(const uint8_t *b, tn_cpu_unpacked *u);
void tn_cpu_unpack_iq2_s(const uint8_t *b, tn_cpu_unpacked *u);
void tn_cpu_unpack_iq3_xxs(const uint8_t *b, tn_cpu_unpacked *u);
void tn_cpu_unpack_iq3_s(const uint8_t *b, tn_cpu_unpacked *u);

#endif
