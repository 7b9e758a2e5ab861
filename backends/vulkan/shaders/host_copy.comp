// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies between memory of the device and memory of the host that the device reaches: workgroups with y =
// g copy entry g of the list at push constant `args`, (to, from, 32-bit words). One dispatch copies all
// inputs or all results of a program. Limit: the bus.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x = 256) in;

struct Copy {
    uint64_t to, from, words;
};
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Copies { Copy at[]; };

void main()
{
    Copy c = Copies(uint64_t(args)).at[gl_WorkGroupID.y];
    for (uint64_t i = gl_GlobalInvocationID.x; i < c.words; i += 256 * gl_NumWorkGroups.x)
        store_u32(c.to + 4 * i, load_u32(c.from + 4 * i));
}
