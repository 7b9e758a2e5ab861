// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// copy between plain types with any strides, and concat along any dimension.
//
// Each thread moves four adjacent elements of a row of the result, or 16 bytes where source and result have
// the same type and no gaps (tn_copy_bytes). Bytes moved: each element is read once and written once. Limit:
// memory, except for transposes, which read four bytes of a 32-byte sector at a time and rely on the caches
// for the rest of it.
#include "backends/cuda/move/move_args.h"
#include "backends/cuda/rows.cuh"

#include <tenon/base.h>

enum { THREADS = TN_CUDA_SPLIT_THREADS };

// The element at p as a float; of I32 the same 32 bits, because it is only copied to I32.
static __device__ __forceinline__ float element(int type, const char *p)
{
    switch (type) {
    case TN_TYPE_F16: return __half2float(*(const __half *)p);
    case TN_TYPE_BF16: return __bfloat162float(*(const __nv_bfloat16 *)p);
    case TN_TYPE_F64: return (float)*(const double *)p;
    case TN_TYPE_I8: return (float)*(const int8_t *)p;
    case TN_TYPE_I16: return (float)*(const int16_t *)p;
    case TN_TYPE_I64: return (float)*(const int64_t *)p;
    default: return *(const float *)p; // F32 and I32
    }
}

static __device__ __forceinline__ void store_element(int type, char *row, int64_t j, float v)
{
    if (type == TN_TYPE_F16) ((__half *)row)[j] = __float2half_rn(v);
    else if (type == TN_TYPE_BF16) ((__nv_bfloat16 *)row)[j] = __float2bfloat16_rn(v);
    else ((float *)row)[j] = v;
}

TN_ENTRY __launch_bounds__(THREADS) tn_copy(const __grid_constant__ tn_cuda_move_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    int64_t j, n = a.y.ne[3];
    uint32_t row;
    if (!tn_split_columns4(a.split, n, &row, &j)) return;
    const char *x = tn_row32(a.x, row) + j * a.x.nb[3];
    char *y = tn_row32(a.y, row);
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = j + i < n ? element(a.from, x + i * a.x.nb[3]) : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (j + i < n) store_element(a.to, y, j + i, v[i]);
}

// Copies F32 to F16 or BF16 where rows are aligned and a multiple of four elements long.
TN_ENTRY __launch_bounds__(THREADS) tn_copy_narrow(const __grid_constant__ tn_cuda_move_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    int64_t j, n = a.y.ne[3];
    uint32_t row;
    if (!tn_split_columns4(a.split, n, &row, &j)) return;
    float4 v = *(const float4 *)(tn_row32(a.x, row) + 4 * j);
    char *y = tn_row32(a.y, row) + 2 * j;
    if (a.to == TN_TYPE_F16) {
        __half2 out[2] = {__floats2half2_rn(v.x, v.y), __floats2half2_rn(v.z, v.w)};
        *(uint2 *)y = *(const uint2 *)out;
    } else {
        __nv_bfloat162 out[2] = {__floats2bfloat162_rn(v.x, v.y), __floats2bfloat162_rn(v.z, v.w)};
        *(uint2 *)y = *(const uint2 *)out;
    }
}

// Copies rows as they are. Extents of the views count chunks of 16 bytes here.
TN_ENTRY __launch_bounds__(THREADS) tn_copy_bytes(const __grid_constant__ tn_cuda_move_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    int64_t j;
    uint32_t row;
    if (tn_split_position(a.split, a.y.ne[3], &row, &j))
        ((uint4 *)tn_row32(a.y, row))[j] = ((const uint4 *)tn_row32(a.x, row))[j];
}

TN_ENTRY __launch_bounds__(THREADS) tn_concat(const __grid_constant__ tn_cuda_move_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    int64_t j, n = a.y.ne[3], index[3];
    uint32_t row;
    if (!tn_split_columns4(a.split, n, &row, &j)) return;
    uint32_t q = row / (uint32_t)a.y.ne[2];
    index[2] = row % (uint32_t)a.y.ne[2], index[1] = q % (uint32_t)a.y.ne[1],
    index[0] = q / (uint32_t)a.y.ne[1];
    char *y = tn_row32(a.y, row);
    const char *p[2] = {a.x.data, a.x2.data};
    bool second = a.axis < 3 && index[a.axis < 3 ? a.axis : 0] >= a.x.ne[a.axis];
#pragma unroll
    for (int d = 0; d < 3; d++) {
        p[0] += index[d] * a.x.nb[d];
        p[1] += (index[d] - (d == a.axis ? a.x.ne[d] : 0)) * a.x2.nb[d];
    }
    if (a.axis < 3) {
        const tn_cuda_view &x = second ? a.x2 : a.x;
        bool aligned = second ? a.aligned2 : a.aligned;
        tn_store_floats(y, j, n, aligned, tn_load_floats(p[second], x.nb[3], j, n, aligned));
        return;
    }
    int64_t border = a.x.ne[3];
    if (a.aligned && a.aligned2 && border % 4 == 0) { // four elements never cross the border
        float4 v = j < border ? tn_load_floats(p[0], 4, j, border, true)
                              : tn_load_floats(p[1], 4, j - border, n - border, true);
        tn_store_floats(y, j, n, true, v);
        return;
    }
    for (int i = 0; i < 4 && j + i < n; i++) {
        const char *from = j + i < border ? p[0] + (j + i) * a.x.nb[3] : p[1] + (j + i - border) * a.x2.nb[3];
        ((float *)y)[j + i] = *(const float *)from;
    }
}
