// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of matrix products have in common on the host.
#ifndef TN_VULKAN_PRODUCT_H
#define TN_VULKAN_PRODUCT_H

#include "backends/vulkan/runtime/kernel.h"
#include "ops/product.h"

// Rows of x up to which a GEMV kernel runs a product without experts.
enum { TN_VK_GEMV_MAX_ROWS = 8 };

// Sets the operands of result i of the product, and the types of its weights as constants 0 and 1.
void tn_vk_product_bind(const tn_step *step, const tn_product *p, int32_t i, tn_vk_dispatch *d);
// The constant FORM of finish.glsl.
int32_t tn_vk_finish_form(const tn_product *p, const tn_vk_dispatch *d);
// Whether GEMV kernels run it: each row has experts of its own, or there are not many rows.
bool tn_vk_product_is_gemv(const tn_step *step, const tn_product *p);
// Bytes from one row to the next; 0: the rows are not evenly spaced, or further apart than shaders count.
int64_t tn_vk_row_stride(const tn_view *v);

// convert_16bit.c: the dispatch that writes x as f16 or bf16 to scratch, and the scratch that it needs. f16:
// the largest finite value of a row is scaled to 2^top .. 2^(top + 1). order: of the elements, TN_VK_ORDER_*,
// or how far runs are apart.
void tn_vk_launch_convert_16bit(const tn_step *step, tn_dtype element, int32_t top, int32_t order,
                                tn_vk_dispatch *d);
int64_t tn_vk_convert_16bit_size(const tn_step *step, int32_t order);
// gemm_coopmat.c: whether a product without experts can be computed with cooperative matrices of that type of
// element (BF16 or F16): by its types, strides and precision. Rows and norm are not looked at.
bool tn_vk_fits_coopmat(const tn_step *step, const tn_product *p, tn_dtype element);
// gemv_k_quant.c: whether it knows a type of weights, whether it runs a product of int8 activations with
// weights of that type, and its launch.
bool tn_vk_is_in_chunks(tn_dtype type);
bool tn_vk_gemv_k_quant_runs(const tn_vk_dispatch *d, tn_dtype type, int64_t rows);
// i: the result. rows: of x that each weight is multiplied by.
void tn_vk_launch_gemv_k_quant(const tn_product *p, int32_t i, int32_t rows, tn_vk_dispatch *d);
// gemv_row.c: the same for weights of F32, F16 and BF16. d->constants[TN_VK_LAYOUT] is set.
bool tn_vk_gemv_row_runs(const tn_vk_dispatch *d, const tn_product *like, int32_t rows);
void tn_vk_launch_gemv_row(const tn_product *p, const tn_product *like, int32_t i, tn_vk_dispatch *d);

#endif
