// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The peaks of this machine (the roofs of a roofline model) that `tenon bench` compares with.
#ifndef TENON_TOOLS_PEAK_H
#define TENON_TOOLS_PEAK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct peaks {
    double read_gbps;  // GB/s, all threads, 640 MB; 0: not measured
    double f32_gflops; // multiply and add counted as two
    double int8_gops;
    const char *f32_isa, *int8_isa;
} peaks;

// Needs about a second. False if there was no memory or thread for it.
bool peaks_measure(int32_t n_threads, peaks *out);

#endif
