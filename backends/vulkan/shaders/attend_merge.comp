// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts together what attend.comp left of the splits of keys, in their order: a workgroup per token and head. At args.n: 2 not 0: leaves
// the result as bytes too.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/attention.glsl"
#define LEFT_GROUPS 32
#include "backends/vulkan/shaders/rounding.glsl"

const uint THREADS = 64;
layout(local_size_x = 64) in;

uint row_here, group_first;
ivec2 left_at(uint i) { return ivec2(int(row_here), int(group_first + i)); }

void main()
{
    uint heads = uint(args.src[0].ne[2]), d_v = uint(args.src[2].ne[3]), g = group_index(), token = g / heads, h = g % heads;
    if (token >= uint(args.src[0].ne[1])) return;
    Span span = span_of(int(token));
    if (span.none) return;
    uint splits = uint(args.n[0]), per = keys_per_split(span, splits), used = max(1u, (uint(span.to - span.from) + per - 1) / per);
    uint64_t parts = args.scratch + int64_t(g) * splits * (d_v + 2) * 4, y = args.dst[0].data + int64_t(token) * args.dst[0].nb[1] + int64_t(h) * args.dst[0].nb[2];
    int64_t size = 4 * int64_t(d_v + 2);
    float top = LOWEST, sum = 0.0;
    for (uint i = 0; i < used; i++) top = max(top, load_f32(parts + i * size));
    for (uint i = 0; i < used; i++) {
        float each = load_f32(parts + i * size);
        sum += each > LOWEST ? load_f32(parts + i * size + 4) * exp(each - top) : 0.0;
    }
    float before = top;
    add_sink(h, top, sum);
    for (uint e = gl_LocalInvocationID.x; e < d_v; e += THREADS) {
        float value = 0.0;
        for (uint i = 0; i < used; i++) {
            float each = load_f32(parts + i * size);
            if (each > LOWEST) value = fma(load_f32(parts + i * size + 8 + 4 * e), exp(each - top), value);
        }
        value = sum > 0.0 && before > LOWEST ? value / sum : 0.0;
        store_f32(y + 4 * e, value);
        left_values[e] = value;
    }
    if (args.n[2] <= 0) return;
    row_here = token;
    group_first = h * d_v / 32;
    barrier();
    leave(d_v / 32, heads * d_v);
}
