// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// AVX-VNNI: the table of the level. Its kernels are in the other files of this folder.
#include "backends/cpu/x86/product/dot_avxvnni.h"
// after the dot products
#include "backends/cpu/x86/product/product_avx2.h"

static const tn_matmul_kernel *const kernels[TN_TYPE_COUNT] = {
    [TN_TYPE_Q4_0] = &AT_LEVEL(tn_matmul_q4_0),       [TN_TYPE_Q4_1] = &AT_LEVEL(tn_matmul_q4_1),
    [TN_TYPE_Q5_0] = &AT_LEVEL(tn_matmul_q5_0),       [TN_TYPE_Q5_1] = &AT_LEVEL(tn_matmul_q5_1),
    [TN_TYPE_Q8_0] = &AT_LEVEL(tn_matmul_q8_0),       [TN_TYPE_Q2_K] = &AT_LEVEL(tn_matmul_q2_k),
    [TN_TYPE_Q3_K] = &AT_LEVEL(tn_matmul_q3_k),       [TN_TYPE_Q4_K] = &AT_LEVEL(tn_matmul_q4_k),
    [TN_TYPE_Q5_K] = &AT_LEVEL(tn_matmul_q5_k),       [TN_TYPE_Q6_K] = &AT_LEVEL(tn_matmul_q6_k),
    [TN_TYPE_IQ4_NL] = &AT_LEVEL(tn_matmul_iq4_nl),   [TN_TYPE_IQ4_XS] = &AT_LEVEL(tn_matmul_iq4_xs),
    [TN_TYPE_MXFP4] = &AT_LEVEL(tn_matmul_mxfp4),     [TN_TYPE_IQ1_S] = &AT_LEVEL(tn_matmul_iq1_s),
    [TN_TYPE_IQ1_M] = &AT_LEVEL(tn_matmul_iq1_m),     [TN_TYPE_IQ2_XXS] = &AT_LEVEL(tn_matmul_iq2_xxs),
    [TN_TYPE_IQ2_XS] = &AT_LEVEL(tn_matmul_iq2_xs),   [TN_TYPE_IQ2_S] = &AT_LEVEL(tn_matmul_iq2_s),
    [TN_TYPE_IQ3_XXS] = &AT_LEVEL(tn_matmul_iq3_xxs), [TN_TYPE_IQ3_S] = &AT_LEVEL(tn_matmul_iq3_s),
    [TN_TYPE_TQ1_0] = &AT_LEVEL(tn_matmul_tq1_0),     [TN_TYPE_TQ2_0] = &AT_LEVEL(tn_matmul_tq2_0),
    [TN_TYPE_Q1_0] = &AT_LEVEL(tn_matmul_q1_0),       [TN_TYPE_Q2_0] = &AT_LEVEL(tn_matmul_q2_0),
    [TN_TYPE_NVFP4] = &AT_LEVEL(tn_matmul_nvfp4),
};

static const tn_matmul_isa isa = {.below = &tn_matmul_isa_avx2, .kernels = kernels};

void AT_LEVEL(tn_matmul)(const tn_cpu_task *task)
{
    tn_matmul_run(task, &isa);
}
