// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// unary, binary and glu: y = f(x), f(a, b), act(gate) up. One invocation for each element of the result;
// operands F32, strided and broadcast.
//
// Bytes: 8 to 12 for each element. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const int OP = OP_unary;

float at(int s, ivec4 i)
{
    View v = args.src[s];
    int64_t off = 0;
    [[unroll]] for (int d = 0; d < 4; d++) off += v.ne[d] == 1 ? int64_t(0) : int64_t(i[d]) * v.nb[d];
    return load_f32(v.data + off);
}

float binary(int kind, float a, float b)
{
    switch (kind) {
    case BINARY_ADD: return a + b;
    case BINARY_SUB: return a - b;
    case BINARY_MUL: return a * b;
    case BINARY_DIV: return a / b;
    case BINARY_MAX: return a > b ? a : b;
    default: return a < b ? a : b;
    }
}

void main()
{
    uint e = group_index() * 256 + gl_LocalInvocationID.x;
    View y = args.dst[0];
    uint n3 = uint(y.ne[3]), n2 = uint(y.ne[2]), n1 = uint(y.ne[1]);
    if (e >= n_rows(y) * n3) return;
    uint r = e / n3;
    ivec4 i = ivec4(r / n2 / n1, r / n2 % n1, r % n2, e % n3);
    float v;
    if (OP == OP_unary) v = unary(args.params[0], at(0, i), param_f(1), param_f(2));
    else if (OP == OP_binary) v = binary(args.params[0], at(0, i), at(1, i));
    else v = glu(0, at(0, i), at(1, i));
    store_f32(row_of(y, r) + 4 * int64_t(i.w), v);
}
