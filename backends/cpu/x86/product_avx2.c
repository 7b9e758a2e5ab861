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
    [TN_TYPE_F32] = &tn_matmul_f32_avx2,         [TN_TYPE_F16] = &tn_matmul_f16_avx2,
    [TN_TYPE_BF16] = &tn_matmul_bf16_avx2,       [TN_TYPE_Q4_0] = &tn_matmul_q4_0_avx2,
    [TN_TYPE_Q4_1] = &tn_matmul_q4_1_avx2,       [TN_TYPE_Q5_0] = &tn_matmul_q5_0_avx2,
    [TN_TYPE_Q5_1] = &tn_matmul_q5_1_avx2,       [TN_TYPE_Q8_0] = &tn_matmul_q8_0_avx2,
    [TN_TYPE_Q2_K] = &tn_matmul_q2_k_avx2,       [TN_TYPE_Q3_K] = &tn_matmul_q3_k_avx2,
    [TN_TYPE_Q4_K] = &tn_matmul_q4_k_avx2,       [TN_TYPE_Q5_K] = &tn_matmul_q5_k_avx2,
    [TN_TYPE_Q6_K] = &tn_matmul_q6_k_avx2,       [TN_TYPE_IQ4_NL] = &tn_matmul_iq4_nl_avx2,
    [TN_TYPE_IQ4_XS] = &tn_matmul_iq4_xs_avx2,   [TN_TYPE_MXFP4] = &tn_matmul_mxfp4_avx2,
    [TN_TYPE_IQ1_S] = &tn_matmul_iq1_s_avx2,     [TN_TYPE_IQ1_M] = &tn_matmul_iq1_m_avx2,
    [TN_TYPE_IQ2_XXS] = &tn_matmul_iq2_xxs_avx2, [TN_TYPE_IQ2_XS] = &tn_matmul_iq2_xs_avx2,
    [TN_TYPE_IQ2_S] = &tn_matmul_iq2_s_avx2,     [TN_TYPE_IQ3_XXS] = &tn_matmul_iq3_xxs_avx2,
    [TN_TYPE_IQ3_S] = &tn_matmul_iq3_s_avx2,     [TN_TYPE_TQ1_0] = &tn_matmul_tq1_0_avx2,
    [TN_TYPE_TQ2_0] = &tn_matmul_tq2_0_avx2,     [TN_TYPE_Q1_0] = &tn_matmul_q1_0_avx2,
    [TN_TYPE_Q2_0] = &tn_matmul_q2_0_avx2,       [TN_TYPE_NVFP4] = &tn_matmul_nvfp4_avx2,
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
