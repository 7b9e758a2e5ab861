// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Operands of the products on tensor cores: rows of f32 activations, and weights of any type, become rows of
// packed16 (elements of 16 bits) whose length is a multiple of 8. gemm_args.h says what the modes mean.
//
// tn_gemm_x: to[m, ld] from x [m, k] f32, through an rms_norm if the product has one, scaled by a power of
// two where the mode asks for it (e4m3: by one for each 128 values). tn_gemm_w_<type>: to[n, ld] from a
// weight [n, k] in planes. tn_gemm_groups: the rows of each expert, sorted so that each expert begins a tile
// of its own.
//
// A block makes one row after another; a thread handles 8 values (activations, plain weights) or 16 (block
// types) at a time. Bytes for each value: activations 4 + 2, weights their size + 2. The limit is memory.
// Expansion of Q4_K to f16 runs at 3.1 TB/s of reads and writes (45 million weights in 36.6 us), 70 % of the
// read peak of 4.42 TB/s and a third of the time of a product of 512 rows (H200, 2026-11-20).
#include "backends/cuda/product/gemm/gemm_blocks_args.h"
#include "backends/cuda/common.cuh"
#include "backends/cuda/dequant.cuh"
#include "backends/cuda/mma.cuh"
#include "backends/cuda/product/prepare.cuh"

enum { THREADS = 256 };

static __device__ __forceinline__ uint32_t pack_f16(float a, float b)
{
    __half2 h = __floats2half2_rn(a, b);
    return *(uint32_t *)&h;
}

static __device__ __forceinline__ uint32_t pack_bf16(float a, float b)
{
    __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
    return *(uint32_t *)&h;
}

static __device__ __forceinline__ uint4 pack8(const float (&v)[8], bool bf16)
{
    return bf16 ? make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]),
                             pack_bf16(v[6], v[7]))
                : make_uint4(pack_f16(v[0], v[1]), pack_f16(v[2], v[3]), pack_f16(v[4], v[5]),
                             pack_f16(v[6], v[7]));
}

// What rounding v to bf16 leaves over; 0 for values that are not finite.
static __device__ __forceinline__ void remainder8(const float (&v)[8], float (&remainder)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        remainder[i] = fabsf(v[i]) <= 3.0e38f ? v[i] - __bfloat162float(__float2bfloat16_rn(v[i])) : 0.0f;
}

// Rounds to 11 significant bits, ties to even; NaN stays NaN.
static __device__ __forceinline__ uint32_t round_tf32(float v)
{
    uint32_t u = __float_as_uint(v);
    if (!(fabsf(v) <= 3.4028235e38f)) return v != v ? u | 0x400000 : u;
    return (u + 0xfff + (u >> 13 & 1)) & ~0x1fffu;
}

static __device__ __forceinline__ uint32_t pack_e4m3x4(float a, float b, float c, float d)
{
    return tn_round_e4m3(a, b) | tn_round_e4m3(c, d) << 16;
}

// Number of values in a row of `ld` packed16; the three terms of a split count once.
static __device__ __forceinline__ int64_t row_length(int64_t ld, int mode)
{
    return mode == TN_GEMM_BF16X3 ? ld / 3
           : mode == TN_GEMM_TF32 ? ld / 2
           : mode == TN_GEMM_E4M3 ? 2 * ld
                                  : ld;
}

// Stores values k to k + 7 in a row of `length` values, in the form of the mode.
static __device__ __forceinline__ void store8(void *to, int64_t length, int64_t k, const float (&v)[8],
                                              int mode, bool weight)
{
    if (mode == TN_GEMM_E4M3) {
        *(uint2 *)((char *)to + k) =
            make_uint2(pack_e4m3x4(v[0], v[1], v[2], v[3]), pack_e4m3x4(v[4], v[5], v[6], v[7]));
        return;
    }
    if (mode == TN_GEMM_TF32) {
        uint4 *at = (uint4 *)((uint32_t *)to + k);
        at[0] = make_uint4(round_tf32(v[0]), round_tf32(v[1]), round_tf32(v[2]), round_tf32(v[3]));
        if (k + 4 < length)
            at[1] = make_uint4(round_tf32(v[4]), round_tf32(v[5]), round_tf32(v[6]), round_tf32(v[7]));
        return;
    }
    uint4 *at = (uint4 *)((uint16_t *)to + k);
    *at = pack8(v, mode != TN_GEMM_F16);
    if (mode != TN_GEMM_BF16X3) return;
    float remainder[8], second[8];
    remainder8(v, remainder);
    // x = [hi, hi, lo], w = [hi, lo, hi]. Infinities of x are multiplied with hi of w alone, so that they do
    // not meet a 0 and become NaN.
#pragma unroll
    for (int i = 0; i < 8; i++) second[i] = fabsf(v[i]) <= 3.0e38f ? v[i] : 0.0f;
    uint4 high = pack8(second, true), low = pack8(remainder, true);
    at[length / 8] = weight ? low : high;
    at[2 * length / 8] = weight ? high : low;
}

// Stores values k to k + 7 as f16. Of each 16 values the even ones come first.
static __device__ __forceinline__ void store_even_first(uint16_t *to, int64_t k, const float (&v)[8])
{
    uint2 *at = (uint2 *)(to + (k & ~15)) + (k >> 3 & 1);
    at[0] = make_uint2(pack_f16(v[0], v[2]), pack_f16(v[4], v[6]));
    at[2] = make_uint2(pack_f16(v[1], v[3]), pack_f16(v[5], v[7]));
}

// Values k to k + 7 of a row after its norm.
static __device__ __forceinline__ void load_normed8(const tn_cuda_gemm_x_args &a, const float *row, int64_t k,
                                                    bool wide, float factor, float (&v)[8])
{
    tn_load8(row, k, a.k, wide, v);
    if (!a.norm) return;
    float g[8];
    tn_load8(a.norm, k, a.k, (uintptr_t)a.norm % 16 == 0, g);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = v[i] * factor * g[i];
}

// What an rms_norm multiplies a row by, before the weight.
static __device__ __forceinline__ float norm_factor(const tn_cuda_gemm_x_args &a, const float *row, bool wide,
                                                    float *shared)
{
    float sum = 0.0f;
#pragma unroll 4
    for (int64_t k = 8 * threadIdx.x; k < a.k; k += 8 * THREADS) {
        float v[8];
        tn_load8(row, k, a.k, wide, v);
#pragma unroll
        for (int i = 0; i < 8; i++) sum += v[i] * v[i];
    }
    return (float)(1.0 / sqrt((double)tn_block_sum(sum, shared) / a.k + (double)a.eps));
}

// Eight values of row r in e4m3: each TN_GEMM_RUN values, those of 16 threads, have a scale. All threads of a
// run call it together.
static __device__ __forceinline__ void store_e4m3(const tn_cuda_gemm_x_args &a, int r, int64_t k,
                                                  float (&v)[8])
{
    constexpr int lanes = TN_GEMM_RUN / 8;
    uint32_t mask = ((1u << lanes) - 1) << (threadIdx.x % TN_WARP & ~(lanes - 1));
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) largest = tn_max_finite(largest, v[i]);
#pragma unroll
    for (int i = 1; i < lanes; i *= 2) largest = fmaxf(largest, __shfl_xor_sync(mask, largest, i));
    float power = tn_power_of_two_for(largest, TN_E4M3_EXPONENT);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= power;
    if (threadIdx.x % lanes == 0) a.row_scale[k / TN_GEMM_RUN * a.m + r] = 1.0f / power;
    if (k < 2 * a.ld) store8((uint16_t *)a.to + r * a.ld, 2 * a.ld, k, v, TN_GEMM_E4M3, false);
}

// Eight values of row r, scaled, in any other mode.
static __device__ __forceinline__ void store_scaled(const tn_cuda_gemm_x_args &a, int r, int64_t length,
                                                    int64_t k, float power, float (&v)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= power;
    if (a.mode == TN_GEMM_F16_EVEN_FIRST) store_even_first((uint16_t *)a.to + r * a.ld, k, v);
    else store8((uint16_t *)a.to + r * a.ld, length, k, v, a.mode, false);
}

// The power of two that brings the largest value of the row into the range of f16.
static __device__ __forceinline__ float row_power(const tn_cuda_gemm_x_args &a, int r, float largest,
                                                  float *shared)
{
    float power = tn_power_of_two_for(tn_block_max(largest, shared), TN_F16_EXPONENT);
    if (threadIdx.x == 0) a.row_scale[r] = 1.0f / power;
    return power;
}

// Row r from a row of at most N * 8 * THREADS values, which stay in registers: memory is read once. The row
// and the norm's weight are aligned to 16 bytes, and k is a multiple of 8.
template <int N>
static __device__ __forceinline__ void make_held_row(const tn_cuda_gemm_x_args &a, int r, const float *row,
                                                     float (&shared)[2][TN_WARP])
{
    int64_t length = row_length(a.ld, a.mode),
            end = a.mode == TN_GEMM_E4M3 ? (length + TN_GEMM_RUN - 1) / TN_GEMM_RUN * TN_GEMM_RUN : length;
    float v[N][8], factor = 1.0f, power = 1.0f, largest = 0.0f;
#pragma unroll
    for (int c = 0; c < N; c++) tn_load8(row, 8 * (threadIdx.x + c * THREADS), a.k, true, v[c]);
    if (a.norm) {
        float sum = 0.0f;
#pragma unroll
        for (int c = 0; c < N; c++)
#pragma unroll
            for (int i = 0; i < 8; i++) sum += v[c][i] * v[c][i];
        factor = (float)(1.0 / sqrt((double)tn_block_sum(sum, shared[0]) / a.k + (double)a.eps));
#pragma unroll
        for (int c = 0; c < N; c++) {
            float g[8];
            tn_load8(a.norm, 8 * (threadIdx.x + c * THREADS), a.k, true, g);
#pragma unroll
            for (int i = 0; i < 8; i++) v[c][i] = v[c][i] * factor * g[i];
        }
    }
    if (a.row_scale && a.mode != TN_GEMM_E4M3) {
#pragma unroll
        for (int c = 0; c < N; c++)
#pragma unroll
            for (int i = 0; i < 8; i++) largest = tn_max_finite(largest, v[c][i]);
        power = row_power(a, r, largest, shared[1]);
    }
#pragma unroll
    for (int c = 0; c < N; c++) {
        int64_t k = 8 * (threadIdx.x + c * THREADS);
        if (k >= end) break;
        if (a.mode == TN_GEMM_E4M3) store_e4m3(a, r, k, v[c]);
        else store_scaled(a, r, length, k, power, v[c]);
    }
}

// The same from a row of any length. Loads of one pass do not wait for each other; passes after the first
// find the row in the caches.
static __device__ void make_any_row(const tn_cuda_gemm_x_args &a, int r, const float *row,
                                    float (&shared)[2][TN_WARP])
{
    int64_t length = row_length(a.ld, a.mode);
    bool wide = (uintptr_t)row % 16 == 0;
    float factor = a.norm ? norm_factor(a, row, wide, shared[0]) : 1.0f, power = 1.0f;
    if (a.mode == TN_GEMM_E4M3) {
        int64_t end = (length + TN_GEMM_RUN - 1) / TN_GEMM_RUN * TN_GEMM_RUN;
        for (int64_t k = 8 * threadIdx.x; k < end; k += 8 * THREADS) {
            float v[8];
            load_normed8(a, row, k, wide, factor, v);
            store_e4m3(a, r, k, v);
        }
        return;
    }
    if (a.row_scale) {
        float largest = 0.0f;
#pragma unroll 4
        for (int64_t k = 8 * threadIdx.x; k < a.k; k += 8 * THREADS) {
            float v[8];
            load_normed8(a, row, k, wide, factor, v);
#pragma unroll
            for (int i = 0; i < 8; i++) largest = tn_max_finite(largest, v[i]);
        }
        power = row_power(a, r, largest, shared[1]);
    }
#pragma unroll 2
    for (int64_t k = 8 * threadIdx.x; k < length; k += 8 * THREADS) {
        float v[8];
        load_normed8(a, row, k, wide, factor, v);
        store_scaled(a, r, length, k, power, v);
    }
}

// Makes row r of the result from row `from` of x.
static __device__ __forceinline__ void make_row(const tn_cuda_gemm_x_args &a, int r, int from,
                                                float (&shared)[2][TN_WARP])
{
    const float *row = (const float *)tn_row(a.x, from);
    bool wide = ((uintptr_t)row | (uintptr_t)a.norm) % 16 == 0 && a.k % 8 == 0;
    if (wide && a.k <= 8 * THREADS) make_held_row<1>(a, r, row, shared);
    else if (wide && a.k <= 2 * 8 * THREADS) make_held_row<2>(a, r, row, shared);
    else make_any_row(a, r, row, shared);
}

TN_ENTRY __launch_bounds__(THREADS) tn_gemm_x(const __grid_constant__ tn_cuda_gemm_x_args a)
{
    __shared__ float shared[2][TN_WARP];
    tn_pdl_trigger();
    tn_pdl_wait();
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < a.n_zero; i += gridDim.x * THREADS) a.zero[i] = 0;
    int m = a.n_tiles ? *a.n_tiles * a.tile_rows : a.m;
    for (int r = blockIdx.x; r < m; r += gridDim.x) {
        int from = a.row_from ? a.row_from[r] : r;
        if (from >= 0) make_row(a, r, from, shared);
        // the product reads it, but its row goes nowhere
        else if (a.row_scale) {
            int n = a.mode == TN_GEMM_E4M3 ? (a.k + TN_GEMM_RUN - 1) / TN_GEMM_RUN : 1;
            for (int g = threadIdx.x; g < n; g += THREADS) a.row_scale[(int64_t)g * a.m + r] = 1.0f;
        }
    }
    for (int i = blockIdx.x; a.ids && i < a.n_ids; i += gridDim.x) {
        if (a.ids[i] >= 0 && a.ids[i] < a.n_groups) continue;
        for (int64_t c = threadIdx.x; c < a.y_n; c += THREADS) a.y[i * a.y_n + c] = 0.0f;
    }
}

// --- groups ------------------------------------------------------------------------------------------

// Sorts rows by group, in one block. The order of rows inside a group depends on the order of atomics;
// results do not depend on it, because each row is multiplied on its own.
TN_ENTRY __launch_bounds__(TN_GEMM_MAX_GROUPS)
    tn_gemm_groups(const __grid_constant__ tn_cuda_gemm_groups_args a)
{
    __shared__ int count[TN_GEMM_MAX_GROUPS], next[TN_GEMM_MAX_GROUPS], shared[TN_WARP];
    int g = threadIdx.x;
    count[g] = 0;
    tn_pdl_trigger();
    tn_pdl_wait();
    __syncthreads();
    for (int i = g; i < a.n_ids; i += TN_GEMM_MAX_GROUPS) {
        int id = a.ids[i];
        if (id >= 0 && id < a.n_groups) atomicAdd(&count[id], 1);
    }
    __syncthreads();
    int tiles = (count[g] + a.tile_rows - 1) / a.tile_rows, first = tn_sum_before(tiles, shared);
    next[g] = first * a.tile_rows;
    if (g < a.n_groups) a.counts[g] = count[g];
    if (g == TN_GEMM_MAX_GROUPS - 1) *a.n_tiles = first + tiles;
    for (int t = 0; t < tiles; t++) a.tile_group[first + t] = g;
    for (int r = count[g]; r < tiles * a.tile_rows; r++)
        a.row_from[first * a.tile_rows + r] = a.row_to[first * a.tile_rows + r] = -1;
    __syncthreads();
    for (int i = g; i < a.n_ids; i += TN_GEMM_MAX_GROUPS) {
        int id = a.ids[i];
        if (id < 0 || id >= a.n_groups) continue;
        int r = atomicAdd(&next[id], 1);
        a.row_to[r] = i;
        a.row_from[r] = a.per_id ? i : i / a.used;
    }
}

// --- weights -----------------------------------------------------------------------------------------

// Values k to k + 7 of a row of a plain type, with zeros behind its end.
template <int TYPE>
static __device__ __forceinline__ void weight8(const tn_cuda_gemm_w_args &a, int64_t from, int64_t k,
                                               float (&v)[8])
{
    const char *row = a.w.plane[0] + from * a.w.row_size[0];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = k + i < a.k ? tn_plain<TYPE>(row, k + i) : 0.0f;
}

template <int TYPE>
static __device__ __forceinline__ void weight16(const tn_cuda_gemm_w_args &a, int64_t from, int64_t k,
                                                float (&v)[2][8])
{
    float all[16] = {};
    if (k < a.k) tn_dequant16<TYPE>(a.w, from, k, all);
#pragma unroll
    for (int i = 0; i < 16; i++) v[i / 8][i % 8] = all[i];
}

// A row in any mode: plain types 8 values at a time, block types 16. With scales the row is read twice, first
// for its largest value.
template <int TYPE>
static __device__ __forceinline__ void weight_row_any_mode(const tn_cuda_gemm_w_args &a, int64_t from,
                                                           int64_t r, float *shared)
{
    constexpr int n = tn_is_plain(TYPE) ? 1 : 2;
    int64_t length = row_length(a.ld, a.mode);
    float power = 1.0f, largest = 0.0f;
    for (int pass = a.row_scale ? 0 : 1; pass < 2; pass++) {
        for (int64_t k = 8 * n * threadIdx.x; k < length; k += 8 * n * THREADS) {
            float v[n][8];
            if constexpr (n == 1) weight8<TYPE>(a, from, k, v[0]);
            else weight16<TYPE>(a, from, k, v);
#pragma unroll
            for (int h = 0; h < n; h++) {
                if (pass == 1 && k + 8 * h >= length) break;
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    if (pass == 0) largest = tn_max_finite(largest, v[h][i]);
                    v[h][i] *= power;
                }
                if (pass == 1) store8((uint16_t *)a.to + r * a.ld, length, k + 8 * h, v[h], a.mode, true);
            }
        }
        if (pass == 1) break;
        power = tn_power_of_two_for(tn_block_max(largest, shared), TN_E4M3_EXPONENT);
        if (threadIdx.x == 0) a.row_scale[r] = 1.0f / power;
    }
}

// The Euclidean norm of a row, into the largest of all rows. Maxima do not depend on their order.
template <int TYPE>
static __device__ __forceinline__ void weight_row_norm(const tn_cuda_gemm_w_args &a, int64_t from,
                                                       float *shared)
{
    constexpr int n = tn_is_plain(TYPE) ? 1 : 2;
    float sum = 0.0f;
    for (int64_t k = 8 * n * threadIdx.x; k < a.k; k += 8 * n * THREADS) {
        float v[n][8];
        if constexpr (n == 1) weight8<TYPE>(a, from, k, v[0]);
        else weight16<TYPE>(a, from, k, v);
#pragma unroll
        for (int i = 0; i < 8 * n; i++) sum += v[i / 8][i % 8] * v[i / 8][i % 8];
    }
    sum = tn_block_sum(sum, shared);
    if (threadIdx.x == 0) atomicMax((int *)a.row_scale, __float_as_int(sqrtf(sum))); // not negative
}

// A row of f16. Two neighbouring threads exchange halves, so that one store of the warp fills whole sectors
// of 32 bytes.
template <int TYPE>
static __device__ __forceinline__ void weight_row_f16(const tn_cuda_gemm_w_args &a, int64_t from, int64_t r)
{
    bool odd = threadIdx.x % 2;
    for (int64_t start = 0; start < a.k; start += 16 * THREADS) {
        int64_t k = start + 16 * threadIdx.x;
        bool inside = k < a.k; // so for both threads: blocks have at least 32 elements
        uint4 half[2] = {};
        if (inside) {
            float v[16], part[8];
            tn_dequant16<TYPE>(a.w, from, k, v);
#pragma unroll
            for (int h = 0; h < 2; h++) {
#pragma unroll
                for (int i = 0; i < 8; i++) part[i] = v[8 * h + i];
                half[h] = pack8(part, false);
            }
        }
        uint4 sent = odd ? half[0] : half[1], received;
        received.x = __shfl_xor_sync(0xffffffffu, sent.x, 1),
        received.y = __shfl_xor_sync(0xffffffffu, sent.y, 1);
        received.z = __shfl_xor_sync(0xffffffffu, sent.z, 1),
        received.w = __shfl_xor_sync(0xffffffffu, sent.w, 1);
        if (!inside) continue;
        uint4 *to = (uint4 *)((uint16_t *)a.to + r * a.ld + (k & ~31)) + odd;
        to[0] = odd ? received : half[0];
        to[2] = odd ? half[1] : received;
    }
}

// Group g is blockIdx.y. `f16` selects a kernel of its own for block types to f16, the mode that matters
// most: the other modes need twice the registers.
template <int TYPE, bool f16>
static __device__ __forceinline__ void make_weights(const tn_cuda_gemm_w_args &a)
{
    __shared__ float shared[TN_WARP];
    int64_t g = blockIdx.y;
    tn_pdl_trigger();
    tn_pdl_wait();
    if (a.counts && a.counts[g] == 0) return;
    for (int64_t r = blockIdx.x; r < a.n_rows; r += gridDim.x) {
        int64_t from = g * a.group_rows + a.first_row + r, to = g * a.n_rows + r;
        if constexpr (f16)
            weight_row_f16<TYPE>(a, from, to);
        else if (a.mode == TN_GEMM_NORM)
            weight_row_norm<TYPE>(a, from, shared);
        else
            weight_row_any_mode<TYPE>(a, from, to, shared);
    }
}

#define WEIGHTS(name, TYPE, f16)                                                                         \
    TN_ENTRY __launch_bounds__(THREADS) tn_gemm_w_##name(const __grid_constant__ tn_cuda_gemm_w_args a)  \
    {                                                                                                    \
        make_weights<TN_TYPE_##TYPE, f16>(a);                                                            \
    }
#define BLOCK_WEIGHTS(TYPE)   \
    WEIGHTS(TYPE, TYPE, true) \
    WEIGHTS(TYPE##_any, TYPE, false)
WEIGHTS(F32_any, F32, false)
WEIGHTS(F16_any, F16, false)
WEIGHTS(BF16_any, BF16, false)
TN_EACH_BLOCK_TYPE(BLOCK_WEIGHTS)
