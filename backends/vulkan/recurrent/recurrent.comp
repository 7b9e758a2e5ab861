// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// short_conv: y[t, c] = sum over u of w[c, u] x[t - kernel + 1 + u, c], for each sequence, whose last
// inputs are its state. One invocation for each sequence and channel, with the last inputs in registers.
//
// delta_rule (gated delta rule): for each token M = decay M + k (beta (v - decay M^T k))^T, y = M^T q. One
// workgroup for each sequence and value head; invocations have columns of the matrix M, which stays in
// memory between tokens.
//
// Limit: the chain of tokens; delta_rule reads and writes the matrix once for each token.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

const uint THREADS = 64, MAX_KERNEL = 8, MAX_WIDTH = 256;
layout(local_size_x = 64) in;
layout(constant_id = 0) const int OP = OP_short_conv;
#include "backends/vulkan/shaders/reduce.glsl"

shared float key[MAX_WIDTH], query[MAX_WIDTH];

struct Run {
    int first, last, read, write;
};

// Sequence s; the starts are source `src`, the slots the next one.
Run run_of(int src, uint s)
{
    View start = args.src[src], slots = args.src[src + 1];
    int n = OP == OP_short_conv ? args.src[0].ne[1] : args.src[0].ne[0];
    Run r;
    r.first = load_i32(start.data + int64_t(s) * start.nb[3]);
    r.last = load_i32(start.data + int64_t(s + 1) * start.nb[3]);
    r.read = load_i32(slots.data + int64_t(s) * slots.nb[2]);
    r.write = load_i32(slots.data + int64_t(s) * slots.nb[2] + slots.nb[3]);
    if (r.read < 0 || r.read >= n) r.read = -1;
    if (r.write < 0 || r.write >= n) r.write = -1;
    return r;
}

void short_conv(uint e)
{
    View state = args.src[0], x = args.src[1], w = args.src[2], y = args.dst[1];
    uint channels = uint(x.ne[3]), s = e / channels, c = e % channels;
    if (s >= uint(args.src[4].ne[2])) return;
    Run r = run_of(3, s);
    int kernel = w.ne[3];
    uint64_t slot = state.data + 4 * int64_t(c);
    float past[MAX_KERNEL], weight[MAX_KERNEL]; // past[kernel - 1] is the newest
    for (int u = 0; u < kernel; u++) {
        weight[u] = load_f32(w.data + int64_t(c) * w.nb[2] + 4 * u);
        past[u] = u > 0 && r.read >= 0
                      ? load_f32(slot + int64_t(r.read) * state.nb[1] + int64_t(u - 1) * state.nb[2])
                      : 0.0;
    }
    for (int t = r.first; t < r.last; t++) {
        float sum = 0.0;
        for (int u = 0; u + 1 < kernel; u++) past[u] = past[u + 1];
        past[kernel - 1] = load_f32(x.data + int64_t(t) * x.nb[2] + 4 * int64_t(c));
        for (int u = 0; u < kernel; u++) sum += weight[u] * past[u];
        store_f32(y.data + int64_t(t) * y.nb[2] + 4 * int64_t(c), r.write >= 0 ? sum : 0.0);
    }
    for (int u = 0; u + 1 < kernel && r.write >= 0; u++)
        store_f32(slot + int64_t(r.write) * state.nb[1] + int64_t(u) * state.nb[2], past[u + 1]);
}

// Row of head h of token t.
uint64_t head_of(View v, int t, uint h) { return v.data + int64_t(t) * v.nb[1] + int64_t(h) * v.nb[2]; }

float unit(float squares)
{
    return args.params[1] != 0 ? 1.0 / max(sqrt(squares), param_f(2)) : 1.0;
}

void delta_rule(uint g, uint t)
{
    View m = args.src[0], q = args.src[1], k = args.src[2], v = args.src[3], y = args.dst[1];
    uint heads = uint(v.ne[2]), s = g / heads, h = g % heads, width = uint(q.ne[3]), columns = uint(v.ne[3]);
    if (s >= uint(args.src[7].ne[2])) return;
    Run r = run_of(6, s);
    uint kh = args.params[3] != 0 ? h / (heads / uint(q.ne[2])) : h % uint(q.ne[2]);
    uint64_t to = m.data + int64_t(r.write) * m.nb[0] + int64_t(h) * m.nb[1],
             from = m.data + int64_t(r.read) * m.nb[0] + int64_t(h) * m.nb[1];
    for (uint j = t; j < columns && r.write >= 0; j += THREADS) // columns do not touch each other
        for (uint i = 0; i < width; i++)
            store_f32(to + int64_t(i) * m.nb[2] + 4 * j,
                      r.read >= 0 ? load_f32(from + int64_t(i) * m.nb[2] + 4 * j) : 0.0);
    for (int token = r.first; token < r.last; token++) {
        float qs = 0.0, ks = 0.0;
        barrier();
        for (uint i = t; i < width; i += THREADS) {
            query[i] = load_f32(head_of(q, token, kh) + 4 * i);
            key[i] = load_f32(head_of(k, token, kh) + 4 * i);
            qs += query[i] * query[i];
            ks += key[i] * key[i];
        }
        float q_scale = unit(reduce_sum(qs)) * param_f(0), k_scale = unit(reduce_sum(ks));
        float decay = exp(load_f32(args.src[4].data + int64_t(token) * args.src[4].nb[2] + 4 * h));
        float beta = load_f32(args.src[5].data + int64_t(token) * args.src[5].nb[2] + 4 * h);
        for (uint j = t; j < columns; j += THREADS) {
            float recalled = 0.0, o = 0.0;
            for (uint i = 0; i < width && r.write >= 0; i++)
                recalled += decay * load_f32(to + int64_t(i) * m.nb[2] + 4 * j) * key[i] * k_scale;
            float d = beta * (load_f32(head_of(v, token, h) + 4 * j) - recalled);
            for (uint i = 0; i < width && r.write >= 0; i++) {
                uint64_t at = to + int64_t(i) * m.nb[2] + 4 * j;
                float now = decay * load_f32(at) + key[i] * k_scale * d;
                store_f32(at, now);
                o += now * query[i] * q_scale;
            }
            store_f32(head_of(y, token, h) + 4 * j, o);
        }
    }
}

void main()
{
    if (OP == OP_short_conv) short_conv(group_index() * THREADS + gl_LocalInvocationID.x);
    else delta_rule(group_index(), gl_LocalInvocationID.x);
}
