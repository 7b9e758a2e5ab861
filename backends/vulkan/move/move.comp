// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// copy and concat: one invocation for each element of the result. copy converts between number types
// (FROM, TO), strided; concat moves words of 32 bits, the axis is args.n[N_MOVE_AXIS]. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const int OP = OP_copy;
layout(constant_id = 1) const int FROM = TYPE_F32;
layout(constant_id = 2) const int TO = TYPE_F32;

uint64_t address(View v, ivec4 i)
{
    return v.data + int64_t(i.x) * v.nb[0] + int64_t(i.y) * v.nb[1] + int64_t(i.z) * v.nb[2] +
           int64_t(i.w) * v.nb[3];
}

void main()
{
    uint e = group_index() * 256 + gl_LocalInvocationID.x;
    View y = args.dst[0];
    uint n3 = uint(y.ne[3]), n2 = uint(y.ne[2]), n1 = uint(y.ne[1]);
    if (e >= n_rows(y) * n3) return;
    uint r = e / n3;
    ivec4 i = ivec4(r / n2 / n1, r / n2 % n1, r % n2, e % n3);
    uint64_t to = address(y, i);
    if (OP == OP_concat) {
        int d = args.n[N_MOVE_AXIS];
        View a = args.src[0];
        if (i[d] < a.ne[d]) store_u32(to, load_u32(address(a, i)));
        else {
            i[d] -= a.ne[d];
            store_u32(to, load_u32(address(args.src[1], i)));
        }
        return;
    }
    uint64_t from = address(args.src[0], i);
    if (FROM == TYPE_I32 && TO == TYPE_I32) store_u32(to, load_u32(from));
    else {
        float v = load_plain(FROM, from, 0);
        if (TO == TYPE_F32) store_f32(to, v);
        else store_u16(to, TO == TYPE_F16 ? to_half(v) : to_bf16(v));
    }
}
