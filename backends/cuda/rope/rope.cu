// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope and norm_rope: the pairs (u, v) of each head of x [T, H, D] are rotated by position * angle (Su et al.
// 2021, eq. 34): u' = u cos - v sin, v' = u sin + v cos. norm_rope applies an rms_norm over the head before.
//
// One warp has one token and some of its heads (a.heads). Lane l holds pairs l, l + 32, ... in registers, and
// their sine and cosine, which all its heads share. Elements that are not rotated form pairs too, which pass
// through.
//
// The angles at position 1 come from the host in double precision, as multiples of pi. So position * angle is
// reduced with enough digits at positions of some 10^6, for three operations in double precision. Bytes
// moved: 8 per element. Limit: memory. NVIDIA H200, 2026-11-21: 4096 tokens of 32 heads of 128 at 3.3 TB/s,
// 74 % of what a plain read reaches.
#include "backends/cuda/rope/rope_args.h"
#include "backends/cuda/common.cuh"

enum { THREADS = TN_CUDA_ROPE_WARPS * TN_WARP };

// The elements of pair t; the second is -1 if the pair has only one, which happens where D is odd.
static __device__ __forceinline__ int2 pair_of(const tn_cuda_rope_args &a, int t, int n)
{
    int j0 = 2 * t, j1 = 2 * t + 1;
    if (a.neox && t < a.n_rot / 2) j0 = t, j1 = t + a.n_rot / 2;
    return make_int2(j0, j1 < n ? j1 : -1);
}

// Cosine and sine of this lane's P pairs, times a.scale.
template <int P>
static __device__ __forceinline__ void find_angles(const tn_cuda_rope_args &a, int position, int lane,
                                                   float (&c)[P], float (&s)[P])
{
#pragma unroll
    for (int i = 0; i < P; i++) {
        int t = lane + i * TN_WARP;
        c[i] = 1.0f, s[i] = 0.0f;
        if (t >= a.n_rot / 2) continue;
        double turns = position * a.half_turns[t];
        if (a.factors) turns /= (double)a.factors[t];
        sincospif((float)(turns - 2.0 * rint(0.5 * turns)), &s[i], &c[i]);
        s[i] *= a.scale, c[i] *= a.scale;
    }
}

template <bool NORM, int P> static __device__ __forceinline__ void rope(const tn_cuda_rope_args &a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    int lane = threadIdx.x % TN_WARP, n = (int)a.y.ne[3], n_heads = (int)a.y.ne[2];
    int first = (blockIdx.y * TN_CUDA_ROPE_WARPS + threadIdx.x / TN_WARP) * a.heads,
        last = min(first + a.heads, n_heads);
    int64_t token = blockIdx.x;
    if (first >= n_heads) return;
    float c[P], s[P];
    find_angles<P>(a, a.pos[token], lane, c, s);
    for (int head = first; head < last; head++) {
        const float *x = (const float *)(a.x.data + token * a.x.nb[1] + head * a.x.nb[2]);
        float *y = (float *)(a.y.data + token * a.y.nb[1] + head * a.y.nb[2]);
        float u[P], v[P], sum = 0.0f;
#pragma unroll
        for (int i = 0; i < P; i++) {
            int2 j = pair_of(a, lane + i * TN_WARP, n);
            u[i] = j.x < n ? x[j.x] : 0.0f;
            v[i] = j.x < n && j.y >= 0 ? x[j.y] : 0.0f;
            sum += u[i] * u[i] + v[i] * v[i];
        }
        float scale = NORM ? rsqrtf(tn_warp_sum(sum) / (float)n + a.eps) : 1.0f;
#pragma unroll
        for (int i = 0; i < P; i++) {
            int2 j = pair_of(a, lane + i * TN_WARP, n);
            if (j.x >= n) continue;
            if (NORM) {
                u[i] *= scale * a.weight[j.x];
                if (j.y >= 0) v[i] *= scale * a.weight[j.y];
            }
            y[j.x] = u[i] * c[i] - v[i] * s[i];
            if (j.y >= 0) y[j.y] = u[i] * s[i] + v[i] * c[i];
        }
    }
}

#define TN_ROPE(pairs)                                                                                       \
    TN_ENTRY __launch_bounds__(THREADS) tn_rope_##pairs(const __grid_constant__ tn_cuda_rope_args a)         \
    {                                                                                                        \
        rope<false, pairs>(a);                                                                               \
    }                                                                                                        \
    TN_ENTRY __launch_bounds__(THREADS) tn_norm_rope_##pairs(const __grid_constant__ tn_cuda_rope_args a)    \
    {                                                                                                        \
        rope<true, pairs>(a);                                                                                \
    }

TN_ROPE(1)
TN_ROPE(2)
TN_ROPE(4)
TN_ROPE(16)
