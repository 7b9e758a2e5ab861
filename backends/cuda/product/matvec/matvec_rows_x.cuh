// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How the GEMV for 2 to 8 rows of x (matvec_rows.cuh) brings x to shared memory: copied as it was stored
// quantised by the kernel that made it, or quantised by the block itself from f32.
//
// x lies there as int8 rows, k + 16 bytes apart, so that ldmatrix reads all banks at once; then for each 32
// elements the scales of two groups of 16 for 8 columns; then, for types with minimums, two sums of int8 of 8
// columns. Where shared memory does not hold all of k, x comes in chunks, of which one is copied while the
// one before is multiplied.
//
// All threads of a block share a chunk; a thread copies 16 bytes of a row, the scales of 32 elements, or
// quantises 8 values at a time. Bytes: 1.375 k (4 k from f32) for each column and block, mostly from L2.
#ifndef TN_CUDA_MATVEC_ROWS_X_CUH
#define TN_CUDA_MATVEC_ROWS_X_CUH

#include "backends/cuda/product/matvec/matvec_rows_ring.cuh"

enum { MR_COLUMNS = TN_MATVEC_MAX_COLUMNS };

// What lies where of some tiles of x in shared memory.
struct mr_layout {
    char *q;
    float2 *d; // [k / 32][column]
    int *sums; // [k / 32][column]
    int q_stride;
};

// Tiles of x come in chunks of a.slice_tiles, where shared memory does not hold all, in two places in turns.
template <int TYPE>
static __device__ __forceinline__ mr_layout mr_layout_of(const tn_cuda_matvec_args &a, char *shared,
                                                         int place)
{
    int k = a.slice_tiles * mr_tile<TYPE>::k;
    char *x = shared + a.x_at + place * TN_MATVEC_ROWS_X(k, a.n_columns, TN_MATVEC_ROWS_HAS_SUMS(TYPE));
    float2 *d = (float2 *)(x + a.n_columns * TN_MATVEC_ROWS_Q(k));
    return {x, d, (int *)(d + k / 32 * MR_COLUMNS), TN_MATVEC_ROWS_Q(k)};
}

// cp.async: copies 4 or 8 bytes. Compute capability 8.0.
template <int N> static __device__ __forceinline__ void mr_copy_small(void *to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(tn_shared(to)), "l"(from), "n"(N)
                 : "memory");
#else
    __trap();
#endif
}

// All threads: starts the copies of a chunk of rows that were stored quantised to one of the two places.
template <int TYPE>
static __device__ __forceinline__ void mr_copy_x(const tn_cuda_matvec_args &a, char *shared, int chunk,
                                                 int place)
{
    mr_layout x = mr_layout_of<TYPE>(a, shared, place);
    int first = chunk * a.slice_tiles * mr_tile<TYPE>::k;
    int n = min(a.slice_tiles * mr_tile<TYPE>::k, a.k - first);
    const char *row = a.quantised_x.rows + first;
    char *to = x.q;
    for (int i = threadIdx.x, column = 0; column < a.n_columns; i += blockDim.x) {
        for (; i >= n / 16 && column < a.n_columns; column++)
            i -= n / 16, row += a.quantised_x.row_size, to += x.q_stride;
        if (column < a.n_columns) tn_copy16(to + i * 16, row + i * 16, true);
    }
    int column = threadIdx.x % MR_COLUMNS;
    if (column >= a.n_columns) return;
    row = a.quantised_x.rows + column * a.quantised_x.row_size;
    const char *d = row + TN_QUANTISED_D(a.k) + first / 4, *sums = row + TN_QUANTISED_SUM(a.k) + first / 8;
    for (int i = threadIdx.x / MR_COLUMNS; i < n / 32; i += blockDim.x / MR_COLUMNS) {
        mr_copy_small<8>(x.d + i * MR_COLUMNS + column, d + i * 8);
        if (TN_MATVEC_ROWS_HAS_SUMS(TYPE)) mr_copy_small<4>(x.sums + i * MR_COLUMNS + column, sums + i * 4);
    }
}

// The last warps: the sums of squares of rows that were stored quantised.
static __device__ __forceinline__ void mr_add_squares(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                      float (*squares)[TN_WARP])
{
    int own = (int)blockDim.x / TN_WARP - 1 - (int)threadIdx.x / TN_WARP;
    if (!a.norm || own >= a.n_columns) return;
    float s = mv_sum_squares(a.quantised_x.rows + own * a.quantised_x.row_size, a.k, w.lane);
    if (w.lane == 0) squares[own][0] = s;
}

// All threads: quantises a chunk of rows of f32, which are read one after another, times the weight of a
// norm. Half a warp has elements of one row.
template <int TYPE>
static __device__ __forceinline__ void mr_quantise_x(const tn_cuda_matvec_args &a, char *shared, int chunk,
                                                     float (*squares)[TN_WARP])
{
    mr_layout x = mr_layout_of<TYPE>(a, shared, chunk % 2);
    int first = chunk * a.slice_tiles * mr_tile<TYPE>::k;
    int k = min(a.slice_tiles * mr_tile<TYPE>::k, a.k - first), n = a.n_columns * (k / 8), column = 0;
    const float *norm = a.norm ? a.norm + first : nullptr;
    bool aligned = (((uintptr_t)a.x | (uintptr_t)a.norm) & 15u) == 0 && a.x_stride % 4 == 0;
    for (int i = threadIdx.x, at = i * 8; i - (int)threadIdx.x < n; i += blockDim.x, at += blockDim.x * 8) {
        while (at >= k) at -= k, column++;
        bool valid = i < n;
        float4 v[2], g[2];
        mv_load8(v, a.x + column * a.x_stride + first + at, aligned, valid);
        if (norm) {
            float s = 0.0f;
            mv_load8(g, norm + at, aligned, valid);
#pragma unroll
            for (int j = 0; j < 2; j++) {
                s += v[j].x * v[j].x + v[j].y * v[j].y + v[j].z * v[j].z + v[j].w * v[j].w;
                v[j].x *= g[j].x, v[j].y *= g[j].y, v[j].z *= g[j].z, v[j].w *= g[j].w;
            }
#pragma unroll
            for (int j = 8; j > 0; j >>= 1) s += __shfl_xor_sync(0xffffffffu, s, j);
            if (valid && threadIdx.x % 16 == 0) squares[column][threadIdx.x / 16] += s;
        }
        mv_quantised8 r = mv_quantise8(v);
        float d1 = __shfl_xor_sync(0xffffffffu, r.d, 2);
        int sum1 = __shfl_xor_sync(0xffffffffu, r.sum, 2);
        if (!valid) continue;
        *(int2 *)(x.q + column * x.q_stride + at) = r.words;
        if (at % 32 != 0) continue;
        x.d[at / 32 * MR_COLUMNS + column] = make_float2(r.d, d1);
        if (TN_MATVEC_ROWS_HAS_SUMS(TYPE))
            x.sums[at / 32 * MR_COLUMNS + column] = (r.sum & 0xffff) | (int)((uint32_t)sum1 << 16);
    }
}

#endif
