// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX2: the table of the level. Its kernels are in product/.
#include "backends/cpu/x86/product/product_avx2.h"
#include "backends/cpu/x86/vec_avx2.h"
// after the vectors
#include "backends/cpu/product_tmpl.h"
#include "backends/cpu/c/convert_tmpl.h"

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
    [TN_TYPE_F32] = &tn_matmul_f32_avx2,
    [TN_TYPE_F16] = &tn_matmul_f16_avx2,
    [TN_TYPE_BF16] = &tn_matmul_bf16_avx2,
#define TN_CPU_QUANT_TYPE(type, name) [TN_TYPE_##type] = &AT_LEVEL(tn_matmul_##name),
#include "backends/cpu/quant_types.def"
};

const tn_matmul_isa tn_matmul_isa_avx2 = {.below = &tn_matmul_isa_generic,
                                          .kernels = kernels,
                                          .any = &tn_matmul_any_avx2,
                                          .quantise = quantise_record,
                                          .act = act_values,
                                          .glu = glu_values,
                                          .decoder = to_f32_get};

void tn_matmul_avx2(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_avx2);
}
