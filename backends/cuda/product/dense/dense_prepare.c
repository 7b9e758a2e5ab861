// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of x in 16 bits (dense_prepare.cu), for dense.c and for the products of more rows in gemm/gemm.c.
#include "backends/cuda/product/dense/dense.h"

#include "core/compiler.h"

enum { ROW_ELEMS = 8, WARP = 32 }; // elements that a thread handles at a time

tn_status tn_cuda_dense_prepare_x(const tn_cuda_launch *l, tn_cuda_dense_x_args a, const tn_product *p)
{
    a.x = tn_cuda_view_of(p->x);
    a.norm = p->norm ? p->norm->data : NULL;
    a.eps = p->eps;
    a.m = (int32_t)p->m;
    a.k = (int32_t)p->k;
    int64_t threads = tn_div_up(tn_div_up(p->k, ROW_ELEMS), WARP) * WARP;
    tn_cuda_grid grid = {
        .x = (uint32_t)a.m, .y = 1, .z = 1, .threads = (uint32_t)TN_MIN(threads, TN_DENSE_PREPARE)};
    return tn_cuda_run(l, TN_CUDA_MODULE_dense_prepare, "tn_dense_x", &grid, &a);
}
