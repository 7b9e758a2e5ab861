// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention over the paged cache that runs on every device: y = softmax(scale q k^T + mask) v for each
// token and head, with an online softmax (Dao et al. 2022, algorithm 1; Milakov and Gimelshein 2018).
// Sources: attention.glsl.
//
// Work: one workgroup for each token and head. Keys come in tiles of 64, one for each invocation; then the
// invocations divide the elements of the values among them. No score leaves the workgroup.
//
// Bytes: the keys and values of a token once for each query head. Limit: latency of single loads; the
// other two kernels are for speed.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/attention/attention.glsl"
#include "backends/vulkan/shaders/cache_row.glsl"

const uint THREADS = 64;
layout(local_size_x = 64) in;
layout(constant_id = 0) const int TYPE_K = TYPE_F16;
layout(constant_id = 1) const int TYPE_V = TYPE_F16;
const uint MAX_HEAD = 1024, SLOTS = MAX_HEAD / THREADS;
#include "backends/vulkan/shaders/reduce.glsl"

shared float query[MAX_HEAD], weights[THREADS];

uint64_t cached(View cache, uint seq, int j, uint kv_head)
{
    View table = args.src[5];
    int block = load_i32(table.data + int64_t(seq) * table.nb[2] + int64_t(j / cache.ne[2]) * table.nb[3]);
    return cache.data + int64_t(block) * cache.nb[0] + int64_t(kv_head) * cache.nb[1] +
           int64_t(j % cache.ne[2]) * cache.nb[2];
}

void main()
{
    View q = args.src[0], k = args.src[1], v = args.src[2];
    uint heads = uint(q.ne[2]), t = gl_LocalInvocationID.x, g = group_index();
    if (g >= uint(q.ne[1]) * heads) return;
    int token = int(g / heads);
    uint h = g % heads, kv_head = h / (heads / uint(k.ne[1])), d_q = uint(q.ne[3]), d_v = uint(v.ne[3]);
    uint64_t y = args.dst[0].data + int64_t(token) * args.dst[0].nb[1] + int64_t(h) * args.dst[0].nb[2];
    Span span = span_of(token, false);
    if (span.none) return;
    int from = span.from, to = span.to;
    uint seq = uint(span.seq);
    float scale = param_f(0), softcap = param_f(4), max_bias = param_f(5);
    float slope = max_bias > 0.0 ? alibi_slope(max_bias, heads, h) : 0.0;

    uint64_t q_row = q.data + int64_t(token) * q.nb[1] + int64_t(h) * q.nb[2];
    for (uint d = t; d < d_q; d += THREADS) query[d] = load_f32(q_row + 4 * d);
    barrier();
    bool sinks = has_src(6);
    float top = sinks ? load_f32(args.src[6].data + 4 * h) : LOWEST, sum = sinks ? 1.0 : 0.0, acc[SLOTS];
    for (uint i = 0; i < SLOTS; i++) acc[i] = 0.0;
    for (int j0 = from; j0 < to; j0 += int(THREADS)) {
        int j = j0 + int(t);
        float s = LOWEST;
        if (j < to) {
            uint64_t row = cached(k, seq, j, kv_head);
            float dot = 0.0;
            for (uint d = 0; d < d_q; d++) dot += query[d] * load_cached(TYPE_K, row, d);
            s = dot * scale;
            if (softcap > 0.0) s = unary(UNARY_SOFTCAP, s, softcap, 0.0);
            s -= slope * float(abs(span.position - j));
        }
        float now = max(top, reduce_max(s)), shrink = top == now ? 1.0 : exp(top - now);
        float w = s > LOWEST ? exp(s - now) : 0.0;
        weights[t] = w;
        sum = sum * shrink + reduce_sum(w); // its barriers also make the weights visible to all
        top = now;
        int n = min(int(THREADS), to - j0);
        for (uint i = 0, d = t; d < d_v; i++, d += THREADS) acc[i] *= shrink;
        for (int i = 0; i < n; i++) {
            float p = weights[i];
            uint64_t row = cached(v, seq, j0 + i, kv_head);
            for (uint c = 0, d = t; d < d_v; c++, d += THREADS) acc[c] += p * load_cached(TYPE_V, row, d);
        }
    }
    for (uint i = 0, d = t; d < d_v; i++, d += THREADS) store_f32(y + 4 * d, sum > 0.0 ? acc[i] / sum : 0.0);
}
