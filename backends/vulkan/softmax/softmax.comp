// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax, reduce, argmax and argmax_logprob, with one workgroup for each row of n elements: y = exp(scale
// x + mask - max) / sum; sum, mean or maximum of a row; index of the largest value and its log
// probability. NaN counts as absent in argmax.
//
// Bytes: softmax 4 read and 4 written for each element, which later passes find in the cache; the others
// 4. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

const uint THREADS = 128;
layout(local_size_x = 128) in;
layout(constant_id = 0) const int OP = OP_softmax;
#include "backends/vulkan/shaders/reduce.glsl"

shared uint best_space[THREADS];
#define LOWEST uintBitsToFloat(0xff800000u) // -inf

void softmax(uint r, uint t)
{
    View m = args.src[1], v = args.src[0];
    uint n2 = uint(v.ne[2]), n1 = uint(v.ne[1]), n = uint(v.ne[3]);
    uint64_t x = row_of(v, r), y = row_of(args.dst[0], r), mask = 0;
    bool masked = has_src(1);
    if (masked)
        mask = m.data + (m.ne[0] == 1 ? int64_t(0) : int64_t(r / n2 / n1) * m.nb[0]) +
               (m.ne[1] == 1 ? int64_t(0) : int64_t(r / n2 % n1) * m.nb[1]) +
               (m.ne[2] == 1 ? int64_t(0) : int64_t(r % n2) * m.nb[2]);
    float scale = scale_or_1(param_f(0)), top = LOWEST, sum = 0.0;
    for (uint j = t; j < n; j += THREADS)
        top = max(top, load_f32(x + 4 * j) * scale + (masked ? load_f32(mask + 4 * j) : 0.0));
    top = reduce_max(top);
    for (uint j = t; j < n; j += THREADS) {
        float s = load_f32(x + 4 * j) * scale + (masked ? load_f32(mask + 4 * j) : 0.0);
        float e = top > LOWEST ? exp(s - top) : 0.0;
        store_f32(y + 4 * j, e);
        sum += e;
    }
    sum = reduce_sum(sum);
    for (uint j = t; j < n; j += THREADS)
        store_f32(y + 4 * j, top > LOWEST ? load_f32(y + 4 * j) / sum : 0.0);
}

void reduce(uint r, uint t)
{
    uint n = uint(args.src[0].ne[3]);
    uint64_t x = row_of(args.src[0], r);
    int kind = args.params[0];
    float v = kind == REDUCE_MAX ? LOWEST : 0.0;
    for (uint j = t; j < n; j += THREADS) {
        float e = load_f32(x + 4 * j);
        v = kind == REDUCE_MAX ? (e > v ? e : v) : v + e;
    }
    v = kind == REDUCE_MAX ? reduce_max(v) : reduce_sum(v);
    if (t == 0) store_f32(row_of(args.dst[0], r), kind == REDUCE_MEAN ? v / float(n) : v);
}

void argmax(uint r, uint t)
{
    uint n = uint(args.src[0].ne[3]), best = 0xffffffffu;
    uint64_t x = row_of(args.src[0], r);
    float top = LOWEST;
    for (uint j = t; j < n; j += THREADS) {
        float v = load_f32(x + 4 * j);
        if (v > top) top = v, best = j;
    }
    float all = reduce_max(top);
    best_space[t] = top == all ? best : 0xffffffffu;
    for (uint k = THREADS / 2; k > 0; k >>= 1) {
        barrier();
        if (t < k) best_space[t] = min(best_space[t], best_space[t + k]);
    }
    barrier();
    best = best_space[0] == 0xffffffffu ? 0 : best_space[0];
    if (t == 0) store_u32(row_of(args.dst[0], r), best);
    if (OP == OP_argmax) return;
    float sum = 0.0, ref = load_f32(x + 4 * best);
    for (uint j = t; j < n; j += THREADS) {
        float v = load_f32(x + 4 * j);
        if (!isnan(v)) sum += v == ref ? 1.0 : exp(v - ref);
    }
    sum = reduce_sum(sum);
    if (t == 0) store_f32(row_of(args.dst[1], r), -log(sum));
}

void main()
{
    uint r = group_index();
    if (r >= n_rows(args.src[0])) return;
    if (OP == OP_softmax) softmax(r, gl_LocalInvocationID.x);
    else if (OP == OP_reduce) reduce(r, gl_LocalInvocationID.x);
    else argmax(r, gl_LocalInvocationID.x);
}
