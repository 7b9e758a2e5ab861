// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The peaks of a device: the roofs of a roofline model, which `tenon bench` and `tenon roofline` compare
// with.
#ifndef TENON_TOOLS_PEAK_H
#define TENON_TOOLS_PEAK_H

#include "tools/common.h"

#include <tenon/precision.h>

typedef struct peaks {
    double read, copy; // bytes per second; copied bytes count as read and as written. 0: not measured
    double rate[TN_PRECISION_COUNT]; // operations per second by TN_PRECISION_*; multiply and add are two
    double core_read, core_f32;      // of the processor: one thread alone
    char f32_isa[16], int8_isa[16];  // of the processor
    char date[16];                   // "2026-11-26"
} peaks;

// Of the processor, with all threads of the context and with one. Needs some seconds. False if there was no
// memory or thread for it.
bool peaks_measure(int32_t n_threads, peaks *out);
// Of another device: what its fastest kernels reach on long rows and large matmuls. False if nothing ran.
bool peaks_measure_device(const tool *t, tn_device *device, peaks *out);
// Those that an earlier call kept beside the tuning files of this machine, for this description of the device
// (with its driver) and number of threads. False: there are none.
bool peaks_load(const tool *t, const tn_device *device, peaks *out);
// Measures them; `keep`: for peaks_load.
bool peaks_make(const tool *t, tn_device *device, bool keep, peaks *out);
// The roof of a precision: its own, else that of the next one that is not slower; 0: none at all.
double peaks_rate(const peaks *p, int32_t precision);

#endif
