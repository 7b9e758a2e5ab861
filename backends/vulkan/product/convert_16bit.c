// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"

// Constants of the shader; elements to a multiple of which it fills rows; alignment of the rows after their
// factors.
enum {
    C_ELEMENT,
    C_TOP,
    C_ORDER,
    C_HAS_NORM = 5,
    ROW_ELEMS = 64,
    ORDERED_ELEMS = 256,
    SUMS_OF_BLOCK = 32,
    ALIGNMENT = 256
};

void tn_vk_launch_convert_16bit(const tn_step *step, tn_dtype element, int32_t top, int32_t order,
                                tn_vk_dispatch *d)
{
    const tn_view *x = &step->src[0];
    tn_product p = tn_product_get(step);
    d->shader = TN_VK_SHADER_convert_16bit;
    d->constants[C_ELEMENT] = element;
    d->constants[C_TOP] = top;
    d->constants[C_ORDER] = order;
    d->constants[TN_VK_LAYOUT] = tn_vk_aligned_elems(x, 4) && (!p.norm || tn_vk_aligned_elems(p.norm, 4));
    d->constants[C_HAS_NORM] = p.norm != NULL;
    if (p.norm) {
        d->args.n[TN_VK_N_PRODUCT_NORM] = p.at.norm;
        d->args.n[TN_VK_N_PRODUCT_EPS] = tn_product_form_get(step->op)->eps_off / (int32_t)sizeof(int32_t);
    }
    d->args.n[TN_VK_N_PRODUCT_ROWS] = (int32_t)tn_view_n_rows(x);
    d->args.n[TN_VK_N_PRODUCT_X_STRIDE] = (int32_t)tn_vk_row_stride(x);
    d->groups = tn_view_n_rows(x);
}

int64_t tn_vk_convert_16bit_size(const tn_step *step, int32_t order)
{
    int64_t rows = tn_view_n_rows(&step->src[0]),
            multiple = order == TN_VK_ORDER_NONE ? ROW_ELEMS : ORDERED_ELEMS,
            sums = order == TN_VK_ORDER_K_QUANT || order == TN_VK_ORDER_Q6_K ? SUMS_OF_BLOCK : 0,
            row = tn_vk_div_up(step->src[0].ne[3], multiple) * (multiple + sums) * 2;
    return tn_vk_div_up(rows * (int64_t)sizeof(float), ALIGNMENT) * ALIGNMENT + rows * row;
}
