// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = act(norm(x) w^T + bias) + residual, and the same for all six product ops (several weights, gated pairs,
// experts), in f32 for weights of any type, any strides and any number of rows. It is the fallback for
// everything that no faster kernel accepts.
//
// Operands: x [n_rows, k] f32 with strides, w [n, k] in planes (dequant.cuh), y [n_rows, n] f32. With
// experts, w is [experts, n, k] and ids [tokens, used] selects the matrix of each row of the result.
//
// One warp computes one column of the result for ROWS rows of it (with experts: one row). The lanes share the
// row of the weight: each takes runs of 16 elements in turn (single elements of plain types), dequantises
// them once and multiplies them with each row of x, which comes from the caches.
//
// Bytes: the weights are read n_rows / ROWS times; x is read once per column, from the caches. Operations: 2
// n_rows n k, and the unpacking of each weight. The limit is the arithmetic of unpacking. The share that is
// reached was not measured.
#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/activation.cuh"
#include "backends/cuda/dequant.cuh"

enum { WARPS = 8, ROWS = 4 };

struct x_rows {
    const float *row[ROWS]; // those past n repeat the first one
    const float *norm;
    float scale[ROWS];
    int n;
};

// The lane's part of the dot products of row `row` of a weight with the rows of x.
template <int TYPE>
static __device__ void dot(const tn_cuda_weight &w, int64_t row, int k, const x_rows &x, float (&sum)[ROWS])
{
    int lane = threadIdx.x % TN_WARP;
    if constexpr (tn_is_plain(TYPE)) {
        const char *at = w.plane[0] + row * w.row_size[0];
        for (int i = lane; i < k; i += TN_WARP) {
            float v = tn_plain<TYPE>(at, i), g = x.norm ? x.norm[i] : 1.0f;
#pragma unroll
            for (int r = 0; r < ROWS; r++) sum[r] += x.row[r][i] * x.scale[r] * g * v;
        }
    } else {
        for (int i = 16 * lane; i < k; i += 16 * TN_WARP) {
            float v[16];
            tn_dequant16<TYPE>(w, row, i, v);
#pragma unroll
            for (int j = 0; j < 16; j++) {
                float g = x.norm ? x.norm[i + j] : 1.0f;
#pragma unroll
                for (int r = 0; r < ROWS; r++) sum[r] += x.row[r][i + j] * x.scale[r] * g * v[j];
            }
        }
    }
}

// The dot products, summed over the lanes of the warp; every lane gets them. Not inlined: the switch over all
// types is long, and a GLU needs it twice.
static __device__ __noinline__ void dot_any(const tn_cuda_matmul_weight &p, int64_t row, int k,
                                            const x_rows &x, float (&sum)[ROWS])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) sum[r] = 0.0f;
    switch (p.type) {
#define CASE(T) case TN_TYPE_##T: dot<TN_TYPE_##T>(p.w, row, k, x, sum); break;
        TN_EACH_PLAIN_TYPE(CASE)
        TN_EACH_BLOCK_TYPE(CASE)
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) sum[r] = tn_warp_sum(sum[r]);
}

static __device__ void norm_scales(x_rows &x, int k, float eps)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        x.scale[r] = 1.0f;
        if (!x.norm) continue;
        float sum = 0.0f;
        for (int i = threadIdx.x % TN_WARP; i < k; i += TN_WARP) sum += x.row[r][i] * x.row[r][i];
        x.scale[r] = 1.0f / sqrtf(tn_warp_sum(sum) / (float)k + eps);
    }
}

// Column j of part p, for up to ROWS rows of the result from r0 on.
static __device__ void column(const tn_cuda_matmul_args &a, int p, int j, int64_t r0)
{
    const tn_cuda_matmul_weight &part = a.part[p];
    x_rows x;
    int64_t row = j;
    x.norm = a.norm;
    x.n = 1;
    bool none = false;
    if (a.ids.data) {
        int64_t used = a.ids.ne[3], t = r0 / used, u = r0 % used;
        int e = *(const int *)(a.ids.data + t * a.ids.nb[2] + u * a.ids.nb[3]);
        none = e < 0 || e >= a.n_experts;
        row += (int64_t)(none ? 0 : e) * part.n;
        x.row[0] = (const float *)tn_row(a.x, t * a.x_used + (a.x_used > 1 ? u : 0));
    } else {
        x.n = (int)min((int64_t)ROWS, a.n_rows - r0);
        x.row[0] = (const float *)tn_row(a.x, r0);
    }
#pragma unroll
    for (int r = 1; r < ROWS; r++) x.row[r] = r < x.n ? (const float *)tn_row(a.x, r0 + r) : x.row[0];
    norm_scales(x, a.k, a.eps);
    float sum[ROWS], up[ROWS];
    dot_any(part, row, a.k, x, sum);
    if (a.is_glu) dot_any(a.part[1], row, a.k, x, up);
    if (threadIdx.x % TN_WARP != 0) return;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (r >= x.n) break;
        float v = none ? 0.0f : sum[r];
        if (part.bias) v += part.bias[j];
        v = a.is_glu ? tn_glu_of(a.glu, v, none ? 0.0f : up[r]) : tn_act(a.act, v);
        if (a.residual.data) v += ((const float *)tn_row(a.residual, r0 + r))[j];
        ((float *)tn_row(part.y, r0 + r))[j] = v;
    }
}

TN_ENTRY __launch_bounds__(WARPS * TN_WARP) tn_matmul_any(const __grid_constant__ tn_cuda_matmul_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    int j = blockIdx.x * WARPS + threadIdx.x / TN_WARP, p = 0, step = a.ids.data ? 1 : ROWS;
    while (!a.is_glu && p < a.n_parts && j >= a.part[p].n) j -= a.part[p++].n;
    if (p >= a.n_parts || j >= a.part[p].n) return;
    for (int64_t r = (int64_t)blockIdx.y * step; r < a.n_rows; r += (int64_t)gridDim.y * step)
        column(a, p, j, r);
}
