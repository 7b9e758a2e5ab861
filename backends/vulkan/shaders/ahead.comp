// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Asks for memory that the work after this reads, so that a cache has it by then, beside work that leaves memory idle (ahead.c): at
// args.n, 0 how many runs of 16 bytes from src[0] on. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x = 256) in;
const uint LOADS = 8;

void main()
{
    uint64_t from = args.src[0].data;
    uint n = uint(args.n[0]), all = gl_NumWorkGroups.x * 256;
    uvec4 seen = uvec4(0);
    [[unroll]] for (uint i = 0; i < LOADS; i++) seen |= load_u128(from + 16 * uint64_t(min(group_index() * 256 + gl_LocalInvocationID.x + i * all, n - 1)));
    // Never: the padding is 0. Without a use there would be no loads.
    if (((seen.x | seen.y | seen.z | seen.w) & uint(args.src[0].pad)) != 0) store_u32(args.scratch, 0);
}
