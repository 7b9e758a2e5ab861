// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// get_rows of tables of every type, and copy from block types: y[r] = table[id(r)] * scale.
//
// A block of threads has a chunk of one row of the result, or several short rows; a thread has 16 elements of
// block types (dequant.cuh) or four elements of plain types. An index outside the table gives zeros. Bytes
// moved: one row of the table read and one row of floats written per row. Limit: the launch with one row;
// the writes in prefill.
#include "backends/cuda/move/move_args.h"
#include "backends/cuda/dequant.cuh"
#include "backends/cuda/rows.cuh"

enum { THREADS = TN_CUDA_SPLIT_THREADS };

// The row of the table for a row of the result, or -1 if there is none.
static __device__ __forceinline__ int64_t table_row(const tn_cuda_table_args &a, uint32_t row)
{
    if (a.ids) {
        int64_t id = a.ids[row];
        return id >= 0 && id < a.n_table ? id : -1;
    }
    uint32_t n2 = (uint32_t)a.y.ne[2], n1 = (uint32_t)a.y.ne[1], q = row / n2;
    return q / n1 * a.row_step[0] + q % n1 * a.row_step[1] + row % n2 * a.row_step[2];
}

static __device__ __forceinline__ void store16(const tn_cuda_table_args &a, char *y, int64_t k,
                                               const float (&v)[16])
{
    if (a.to == TN_TYPE_F32) {
#pragma unroll
        for (int i = 0; i < 16; i += 4)
            tn_store_floats(y, k + i, k + 16, a.aligned, make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]));
        return;
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        if (a.to == TN_TYPE_F16) ((__half *)y)[k + i] = __float2half_rn(v[i]);
        else ((__nv_bfloat16 *)y)[k + i] = __float2bfloat16_rn(v[i]);
    }
}

// Types whose rows are blocks of quantised elements.
template <int TYPE> static __device__ __forceinline__ void block_rows(const tn_cuda_table_args &a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t row;
    int64_t k;
    if (!tn_split_position(a.split, a.y.ne[3] / 16, &row, &k)) return;
    int64_t from = table_row(a, row);
    k *= 16;
    float v[16] = {0.0f};
    if (from >= 0) tn_dequant16<TYPE>(a.table, from, k, v);
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] *= a.scale;
    store16(a, tn_row32(a.y, row), k, v);
}

#define TN_TABLE(type)                                                                                       \
    TN_ENTRY __launch_bounds__(THREADS) tn_table_##type(const __grid_constant__ tn_cuda_table_args a)        \
    {                                                                                                        \
        block_rows<TN_TYPE_##type>(a);                                                                       \
    }
TN_EACH_BLOCK_TYPE(TN_TABLE)

// Elements k .. k + 3 of an aligned row of F32, F16 or BF16.
template <int TYPE> static __device__ __forceinline__ float4 plain_four(const char *row, int64_t k)
{
    if constexpr (TYPE == TN_TYPE_F32) return *(const float4 *)(row + 4 * k);
    uint2 bits = *(const uint2 *)(row + 2 * k);
    if constexpr (TYPE == TN_TYPE_F16)
        return make_float4(tn_half_bits(bits.x & 0xffffu), tn_half_bits(bits.x >> 16),
                           tn_half_bits(bits.y & 0xffffu), tn_half_bits(bits.y >> 16));
    return make_float4(__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
                       __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u));
}

// Types whose elements stand alone.
template <int TYPE> static __device__ __forceinline__ void plain_rows(const tn_cuda_table_args &a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t row;
    int64_t k, n = a.y.ne[3];
    if (!tn_split_columns4(a.split, n, &row, &k)) return;
    int64_t from = table_row(a, row);
    constexpr bool vector = TYPE == TN_TYPE_F32 || TYPE == TN_TYPE_F16 || TYPE == TN_TYPE_BF16;
    const char *x = a.table.plane[0] + from * a.table.row_size[0];
    float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (from >= 0 && vector && a.aligned && k + 4 <= n) {
        float4 u = plain_four<vector ? TYPE : TN_TYPE_F32>(x, k);
        v[0] = u.x, v[1] = u.y, v[2] = u.z, v[3] = u.w;
    } else if (from >= 0) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (k + i < n) v[i] = tn_plain<TYPE>(x, k + i);
    }
    tn_store_floats(tn_row32(a.y, row), k, n, a.aligned,
                    make_float4(v[0] * a.scale, v[1] * a.scale, v[2] * a.scale, v[3] * a.scale));
}

#define TN_TABLE_PLAIN(type)                                                                                 \
    TN_ENTRY __launch_bounds__(THREADS) tn_table_##type(const __grid_constant__ tn_cuda_table_args a)        \
    {                                                                                                        \
        plain_rows<TN_TYPE_##type>(a);                                                                       \
    }
TN_EACH_PLAIN_TYPE(TN_TABLE_PLAIN)
