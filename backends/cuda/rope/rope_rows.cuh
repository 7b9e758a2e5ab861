// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One warp takes one head of one token through rms_norm and rope (Su et al. 2021, eq. 34), or writes it into
// the paged cache. Pairs are rotated in registers. Rows of k go through shared memory, because a lane encodes
// other elements than it rotates. Angles come from the host as multiples of pi and are reduced in double
// precision, because position * angle loses its fraction in single precision from positions of some 10^5 on.
#ifndef TN_CUDA_ROPE_ROWS_CUH
#define TN_CUDA_ROPE_ROWS_CUH

#include "backends/cuda/rope/rope_cache_args.h"
#include "backends/cuda/rope/cache_row.cuh"
#include "backends/cuda/common.cuh"

// The factor of an rms_norm over the n elements of x, which lie nb bytes apart.
static __device__ __forceinline__ float tn_norm_scale(const char *x, int64_t nb, int n, float eps, int lane)
{
    float sum = 0.0f;
    for (int j = lane; j < n; j += TN_WARP) {
        float v = *(const float *)(x + j * nb);
        sum += v * v;
    }
    return 1.0f / sqrtf(tn_warp_sum(sum) / (float)n + eps);
}

// Cosine and sine, times a.m, of the pairs first, first + step, ...
static __device__ __forceinline__ void tn_find_angles(const tn_cuda_rope_cache_args &a, int position,
                                                      float2 *turn, int first, int step)
{
    for (int t = first; t < a.n_rot / 2; t += step) {
        double turns = position * a.half_turns[t];
        if (a.factors) turns /= (double)a.factors[t];
        float s, c;
        sincospif((float)(turns - 2.0 * rint(0.5 * turns)), &s, &c);
        turn[t] = make_float2(c * a.m, s * a.m);
    }
}

// Two elements of a row that are rotated together. Elements that are not rotated form pairs too. An index of
// n or more means that the element does not exist.
struct tn_rope_pair {
    int first, second;
    float x, y;
};

static __device__ __forceinline__ tn_rope_pair tn_load_pair(const tn_cuda_rope_cache_args &a, const char *x,
                                                            int64_t nb, int t, int n)
{
    tn_rope_pair p = {2 * t, 2 * t + 1, 0.0f, 0.0f};
    if (a.pairs && 2 * t + 1 < n) {
        float2 v = *(const float2 *)(x + 8 * t);
        p.x = v.x, p.y = v.y;
        return p;
    }
    if (a.neox && t < a.n_rot / 2) p.first = t, p.second = t + a.n_rot / 2;
    if (p.first < n) p.x = *(const float *)(x + p.first * nb);
    if (p.second < n) p.y = *(const float *)(x + p.second * nb);
    return p;
}

static __device__ __forceinline__ void tn_store_pair(const tn_cuda_rope_cache_args &a, float *y,
                                                     const tn_rope_pair &p, int n)
{
    if (a.pairs && p.second < n) {
        *(float2 *)(y + p.first) = make_float2(p.x, p.y);
        return;
    }
    if (p.first < n) y[p.first] = p.x;
    if (p.second < n) y[p.second] = p.y;
}

// Writes row x of q or k to y, normed and rotated, 64 pairs at a time so that loads overlap.
static __device__ __forceinline__ void tn_rotate(const tn_cuda_rope_cache_args &a, const tn_cuda_view &view,
                                                 const char *x, const float *norm, const float2 *turn,
                                                 float *y, int lane)
{
    int n = (int)view.ne[3];
    float scale = norm ? tn_norm_scale(x, view.nb[3], n, a.eps, lane) : 1.0f;
    for (int base = lane; 2 * base < n; base += 2 * TN_WARP) {
        tn_rope_pair p[2];
#pragma unroll
        for (int i = 0; i < 2; i++) p[i] = tn_load_pair(a, x, view.nb[3], base + i * TN_WARP, n);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int t = base + i * TN_WARP;
            if (norm && p[i].first < n) p[i].x *= scale * norm[p[i].first];
            if (norm && p[i].second < n) p[i].y *= scale * norm[p[i].second];
            if (t < a.n_rot / 2) {
                float u = p[i].x, v = p[i].y, c = turn[t].x, s = turn[t].y;
                p[i].x = u * c - v * s;
                p[i].y = u * s + v * c;
            }
            tn_store_pair(a, y, p[i], n);
        }
    }
}

// Writes head `head` of k (which 0) or v (which 1) of a token to its place in the cache. `row` is shared
// memory of the warp for the rotated row.
static __device__ __forceinline__ void tn_rope_cache_row(const tn_cuda_rope_cache_args &a, int64_t token,
                                                         int which, int head, float *row, const float2 *turn,
                                                         int lane)
{
    const tn_cuda_view &x = which == 0 ? a.k : a.v;
    const char *from = x.data + token * x.nb[1] + head * x.nb[2];
    int slot = *(const int32_t *)(a.slots + token * a.slots_nb), n = (int)x.ne[3];
    if (slot < 0 || slot >= a.n_slots) return;
    const float *values = row;
    if (which == 0) tn_rotate(a, x, from, a.norm[1], turn, row, lane);
    else if (x.nb[3] == 4) values = (const float *)from;
    else
        for (int j = lane; j < n; j += TN_WARP) row[j] = *(const float *)(from + j * x.nb[3]);
    __syncwarp();
    const int64_t *nb = a.cache_nb[which];
    char *out = a.cache[which] + slot / a.block * nb[0] + head * nb[1] + slot % a.block * nb[2];
    tn_write_cache_row(out, a.cache_type[which], a.cache_row[which], values, n, lane);
}

#endif
