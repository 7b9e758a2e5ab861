// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Prototypes of all launch functions, from the table.
#ifndef TN_CPU_KERNELS_H
#define TN_CPU_KERNELS_H

#include "backends/cpu/kernel.h"

#define TN_CPU_KERNEL(op, level, name, accepts, scratch, flags) void tn_##name(const tn_cpu_task *task);
#include "backends/cpu/kernels.def"

#endif
