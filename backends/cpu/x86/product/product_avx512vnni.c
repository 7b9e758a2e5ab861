// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 VNNI: the table of the level. Its kernels are in the other files of this folder.
#include "backends/cpu/x86/product/product_avx512vnni.h"

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
    [TN_TYPE_Q4_0] = &tn_matmul_q4_0_avx512vnni,       [TN_TYPE_Q4_1] = &tn_matmul_q4_1_avx512vnni,
    [TN_TYPE_Q5_0] = &tn_matmul_q5_0_avx512vnni,       [TN_TYPE_Q5_1] = &tn_matmul_q5_1_avx512vnni,
    [TN_TYPE_Q8_0] = &tn_matmul_q8_0_avx512vnni,       [TN_TYPE_Q2_K] = &tn_matmul_q2_k_avx512vnni,
    [TN_TYPE_Q3_K] = &tn_matmul_q3_k_avx512vnni,       [TN_TYPE_Q4_K] = &tn_matmul_q4_k_avx512vnni,
    [TN_TYPE_Q5_K] = &tn_matmul_q5_k_avx512vnni,       [TN_TYPE_Q6_K] = &tn_matmul_q6_k_avx512vnni,
    [TN_TYPE_IQ4_NL] = &tn_matmul_iq4_nl_avx512vnni,   [TN_TYPE_IQ4_XS] = &tn_matmul_iq4_xs_avx512vnni,
    [TN_TYPE_MXFP4] = &tn_matmul_mxfp4_avx512vnni,     [TN_TYPE_IQ1_S] = &tn_matmul_iq1_s_avx512vnni,
    [TN_TYPE_IQ1_M] = &tn_matmul_iq1_m_avx512vnni,     [TN_TYPE_IQ2_XXS] = &tn_matmul_iq2_xxs_avx512vnni,
    [TN_TYPE_IQ2_XS] = &tn_matmul_iq2_xs_avx512vnni,   [TN_TYPE_IQ2_S] = &tn_matmul_iq2_s_avx512vnni,
    [TN_TYPE_IQ3_XXS] = &tn_matmul_iq3_xxs_avx512vnni, [TN_TYPE_IQ3_S] = &tn_matmul_iq3_s_avx512vnni,
    [TN_TYPE_TQ1_0] = &tn_matmul_tq1_0_avx512vnni,     [TN_TYPE_TQ2_0] = &tn_matmul_tq2_0_avx512vnni,
    [TN_TYPE_Q1_0] = &tn_matmul_q1_0_avx512vnni,       [TN_TYPE_Q2_0] = &tn_matmul_q2_0_avx512vnni,
    [TN_TYPE_NVFP4] = &tn_matmul_nvfp4_avx512vnni,
};

const tn_matmul_isa tn_matmul_isa_avx512vnni = {.below = &tn_matmul_isa_avx512, .kernels = kernels};

void tn_matmul_avx512vnni(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_avx512vnni);
}
