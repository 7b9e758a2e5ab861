// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of kernels.def for matmuls on tensor cores: skinny_* (9 to 64 rows) and gemm_* (9 and more).
// Matmuls without experts and those of experts have code of their own below the same row.
#include "backends/cuda/product/skinny/skinny.h"

// --- skinny ------------------------------------------------------------------------------------------

bool tn_cuda_skinny_bf16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return tn_cuda_skinny_fits(cuda, &p) && tn_cuda_weights_are(&p, TN_TYPE_BF16);
}

bool tn_cuda_skinny_f16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return tn_cuda_skinny_fits(cuda, &p) && tn_cuda_weights_are(&p, TN_TYPE_F16);
}

// `is`: of which types all weights have to be.
static bool accepts_blocks(const tn_cuda *cuda, const tn_step *step, bool (*is)(tn_dtype type))
{
    tn_product p = tn_product_get(step);
    bool fits =
        p.ids ? tn_cuda_gemm_id_fits(cuda, &p) && tn_cuda_gemm_id_is_skinny_blocks(cuda, &p, step->precision)
              : tn_cuda_skinny_fits(cuda, &p);
    return fits && tn_cuda_weights_all(&p, is);
}

bool tn_cuda_skinny_blocks_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_blocks(cuda, step, tn_cuda_skinny_block_type);
}

bool tn_cuda_skinny_exact_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_blocks(cuda, step, tn_cuda_skinny_exact_type);
}

// Products with weights of Q6_K, which skinny/skinny_stream.cuh rounds.
bool tn_cuda_skinny_q6_k_accepts(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    bool any = false;
    for (int32_t i = 0; i < p.n_weights; i++) any = any || p.w[i]->dtype == TN_TYPE_Q6_K;
    return any && tn_cuda_skinny_uses_stream(cuda, &p) && tn_cuda_skinny_exact_accepts(cuda, step);
}

size_t tn_cuda_skinny_scratch(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return p.ids ? tn_cuda_gemm_id_scratch(cuda, &p, step->precision)
                 : tn_cuda_skinny_dense_scratch(cuda, &p);
}

tn_status tn_cuda_skinny_launch(const tn_cuda_launch *l)
{
    tn_product p = tn_product_get(l->step);
    return p.ids ? tn_cuda_gemm_id_launch(l, &p) : tn_cuda_skinny_dense_launch(l, &p);
}

// --- gemm --------------------------------------------------------------------------------------------

static bool accepts_mode(const tn_cuda *cuda, const tn_step *step, int32_t mode)
{
    tn_product p = tn_product_get(step);
    bool fits = p.ids ? tn_cuda_gemm_id_fits(cuda, &p) : tn_cuda_gemm_fits(cuda, &p);
    return fits && tn_cuda_gemm_mode(cuda, &p, step->precision) == mode;
}

bool tn_cuda_gemm_bf16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_mode(cuda, step, TN_GEMM_BF16);
}

bool tn_cuda_gemm_f32_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_mode(cuda, step, TN_GEMM_BF16X3);
}

bool tn_cuda_gemm_f16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_mode(cuda, step, TN_GEMM_F16);
}

bool tn_cuda_gemm_tf32_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_mode(cuda, step, TN_GEMM_TF32);
}

bool tn_cuda_gemm_e4m3_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts_mode(cuda, step, TN_GEMM_E4M3);
}

size_t tn_cuda_gemm_scratch(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return p.ids ? tn_cuda_gemm_id_scratch(cuda, &p, step->precision)
                 : tn_cuda_gemm_dense_scratch(cuda, &p, step->precision);
}

tn_status tn_cuda_gemm_launch(const tn_cuda_launch *l)
{
    tn_product p = tn_product_get(l->step);
    return p.ids ? tn_cuda_gemm_id_launch(l, &p) : tn_cuda_gemm_dense_launch(l, &p);
}
