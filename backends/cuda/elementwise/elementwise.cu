// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// unary, binary and glu in f32: y = f(a), y = f(a, b), y = act(a) * b.
//
// Operands are rows with any outer strides; tensors without gaps are treated as one row, and a source that
// repeats along a dimension has stride 0 there. Each thread computes four adjacent elements of a row. y may
// be the storage of a, because a thread reads its elements before it writes them and reads no others.
//
// Bytes moved: 4 per element of each operand. Limit: memory from some 10^6 elements on, below that the
// launch. NVIDIA H200, 2026-11-21, 4096 x 11008: glu 4.35 TB/s, which is 98 % of what a plain read reaches;
// binary 96 %, unary 70 to 90 % depending on the function.
#include "backends/cuda/elementwise/elementwise_args.h"
#include "backends/cuda/activation.cuh"
#include "backends/cuda/rows.cuh"

enum { THREADS = TN_CUDA_SPLIT_THREADS };

// Waits for the predecessor and finds the row and the first column of this thread's four elements. Returns
// false if the thread has none.
static __device__ __forceinline__ bool find_elements(const tn_cuda_elementwise_args &a, uint32_t *row,
                                                     int64_t *j)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    return tn_split_columns4(a.split, a.op.dst[0].ne[3], row, j);
}

// Elements j .. j + 3 of a row of n elements of source i; those beyond the row are zero.
static __device__ __forceinline__ float4 load(const tn_cuda_elementwise_args &a, int i, uint32_t row,
                                              int64_t j, int64_t n)
{
    const tn_cuda_view &x = a.op.src[i];
    return tn_load_floats(tn_row32(x, row), x.nb[3], j, n, a.aligned_src[i]);
}

static __device__ __forceinline__ void store(const tn_cuda_elementwise_args &a, uint32_t row, int64_t j,
                                             int64_t n, float4 y)
{
    tn_store_floats(tn_row32(a.op.dst[0], row), j, n, a.aligned_dst, y);
}

static __device__ __forceinline__ float unary(const tn_unary_params &p, float x)
{
    switch (p.kind) {
    case TN_UNARY_AFFINE: return fmaf(p.a, x, p.b);
    case TN_UNARY_SOFTCAP: return p.a * tanhf(x / p.a);
    case TN_UNARY_CLAMP: return x < p.a ? p.a : x > p.b ? p.b : x;
    default: return tn_act(p.kind, x);
    }
}

TN_ENTRY __launch_bounds__(THREADS) tn_unary(const __grid_constant__ tn_cuda_elementwise_args a)
{
    int64_t j, n = a.op.dst[0].ne[3];
    uint32_t row;
    if (!find_elements(a, &row, &j)) return;
    float4 x = load(a, 0, row, j, n);
    // The loop rotates v instead of being unrolled, so that the code of all kinds exists once and not four
    // times. The kind is the same for the whole launch, so the switch does not diverge.
    float v[4] = {x.x, x.y, x.z, x.w};
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        float y = unary(a.op.params.unary, v[0]);
        v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = y;
    }
    store(a, row, j, n, make_float4(v[0], v[1], v[2], v[3]));
}

static __device__ __forceinline__ float binary(int kind, float a, float b)
{
    switch (kind) {
    case TN_BINARY_ADD: return a + b;
    case TN_BINARY_SUB: return a - b;
    case TN_BINARY_MUL: return a * b;
    case TN_BINARY_DIV: return a / b;
    case TN_BINARY_MAX: return a > b ? a : b;
    default: return a < b ? a : b;
    }
}

TN_ENTRY __launch_bounds__(THREADS) tn_binary(const __grid_constant__ tn_cuda_elementwise_args a)
{
    int64_t j, n = a.op.dst[0].ne[3];
    uint32_t row;
    if (!find_elements(a, &row, &j)) return;
    float4 u = load(a, 0, row, j, n), v = load(a, 1, row, j, n);
    int kind = a.op.params.binary.kind;
    u.x = binary(kind, u.x, v.x), u.y = binary(kind, u.y, v.y);
    u.z = binary(kind, u.z, v.z), u.w = binary(kind, u.w, v.w);
    store(a, row, j, n, u);
}

// GENERAL: any activation and the clamped forms. Otherwise silu(a) * b, the form of most models, with fast
// division and exponential.
template <bool GENERAL>
static __device__ __forceinline__ float glu(const tn_cuda_elementwise_args &a, float gate, float up)
{
    if (GENERAL) return tn_glu_of(a.op.params.glu, gate, up);
    return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

template <bool GENERAL> static __device__ __forceinline__ void glu_four(const tn_cuda_elementwise_args &a)
{
    int64_t j, n = a.op.dst[0].ne[3];
    uint32_t row;
    if (!find_elements(a, &row, &j)) return;
    float4 u = load(a, 0, row, j, n), v = load(a, 1, row, j, n);
    u.x = glu<GENERAL>(a, u.x, v.x), u.y = glu<GENERAL>(a, u.y, v.y);
    u.z = glu<GENERAL>(a, u.z, v.z), u.w = glu<GENERAL>(a, u.w, v.w);
    store(a, row, j, n, u);
}

TN_ENTRY __launch_bounds__(THREADS) tn_swiglu(const __grid_constant__ tn_cuda_elementwise_args a)
{
    glu_four<false>(a);
}

TN_ENTRY __launch_bounds__(THREADS) tn_glu(const __grid_constant__ tn_cuda_elementwise_args a)
{
    glu_four<true>(a);
}
