// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the processor and the system under it can do.
#ifndef TN_CORE_CPU_FEATURES_H
#define TN_CORE_CPU_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_cpu_features {
    bool avx2;       // AVX2 + FMA + F16C, usable (the system saves the registers)
    bool avx512;     // F, BW, DQ, VL
    bool avx512vnni; // + VNNI
    bool avx512bf16;
    bool avxvnni;  // sums of four byte pairs at once, without AVX-512
    bool amx;      // tiles of int8 and bf16, and avx512bf16; only after tn_cpu_tiles_permit
    bool dotprod;  // aarch64: SDOT, and the fp16 arithmetic that comes with it
    bool i8mm;     // + SMMLA
    bool bf16;     // + BFMMLA
    char name[64]; // brand text, trimmed
} tn_cpu_features;

void tn_cpu_features_get(tn_cpu_features *f);
// Asks the system to let all threads of this process use tile registers. 0, or the number of the error.
int tn_cpu_tiles_permit(void);
// Of an aarch64 processor, as the system reports it; what the system does not report stays false.
void tn_cpu_features_arm(tn_cpu_features *f);
// Cores that this process may run on, at least 1.
int32_t tn_cpu_count(void);
// Physical memory in bytes, total and available now; 0 if unknown.
void tn_system_memory(uint64_t *total, uint64_t *available);

#endif
