// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: the table of the level. Its kernels are in the other files of this folder.
#include "backends/cpu/x86/product/product_avx512vnni.h"

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
#define TN_CPU_QUANT_TYPE(type, name) [TN_TYPE_##type] = &tn_matmul_##name##_avx512vnni,
#include "backends/cpu/quant_types.def"
};

const tn_matmul_isa tn_matmul_isa_avx512vnni = {.below = &tn_matmul_isa_avx512, .kernels = kernels};

void tn_matmul_avx512vnni(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_avx512vnni);
}
