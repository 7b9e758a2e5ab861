// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a team share while they walk a step list: the barrier between steps, and the flag that
// stops them early. Kernels only call the functions of kernel.h; backend.c sets both up.
#ifndef TN_CPU_TEAM_H
#define TN_CPU_TEAM_H

#include "backends/cpu/kernel.h"

#include <stdatomic.h>

struct tn_cpu_barrier {
    TN_ALIGNED(64) _Atomic int32_t arrived;
    TN_ALIGNED(64) _Atomic uint32_t round;
    _Atomic uint32_t sleepers;
};

typedef struct tn_cpu_stop {
    const _Atomic int32_t *cancel; // of the submission; NULL: none
    _Atomic bool seen;             // some step was left incomplete
} tn_cpu_stop;

#endif
