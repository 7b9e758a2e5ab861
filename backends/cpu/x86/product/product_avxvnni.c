// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-VNNI: the table of the level. Its kernels are in the other files of this folder.
#include "backends/cpu/x86/product/dot_avxvnni.h"
// after the dot products
#include "backends/cpu/x86/product/product_avx2.h"

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
#define TN_CPU_QUANT_TYPE(type, name) [TN_TYPE_##type] = &AT_LEVEL(tn_matmul_##name),
#include "backends/cpu/quant_types.def"
};

static const tn_matmul_isa isa = {.below = &tn_matmul_isa_avx2, .kernels = kernels};

void AT_LEVEL(tn_matmul)(const tn_cpu_task *task)
{
    tn_matmul_run(task, &isa);
}
