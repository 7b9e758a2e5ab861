// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// cache_write: writes x [T, KV, D] F32 into the paged cache, whose rows may be longer than D: the rest
// becomes zeros. One invocation for each block, or for each 4 elements of a row where the cache is not
// quantised. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/cache_row.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const int TYPE = TYPE_F16;
const uint RUN = TYPE == TYPE_Q8_0 || TYPE == TYPE_Q4_0 ? 32 : 4;

void main()
{
    View cache = args.src[SRC_cache_write_cache], x = args.src[SRC_cache_write_x];
    uint width = uint(cache.ne[3]), runs = (width + RUN - 1) / RUN,
         e = group_index() * 64 + gl_LocalInvocationID.x;
    uint heads = uint(x.ne[2]), row = e / runs, d0 = e % runs * RUN;
    if (row >= uint(x.ne[1]) * heads) return;
    uint64_t to = cache_slot(cache, args.src[SRC_cache_write_slots], row / heads, row % heads);
    if (to == 0) return;
    uint64_t from = x.data + int64_t(row / heads) * x.nb[1] + int64_t(row % heads) * x.nb[2];
    float v[32];
    [[unroll]] for (uint i = 0; i < RUN; i++)
        v[i] = d0 + i < x.ne[3] ? load_f32(from + 4 * int64_t(d0 + i)) : 0.0;
    if (TYPE == TYPE_Q8_0 || TYPE == TYPE_Q4_0) {
        store_block(TYPE, to + (TYPE == TYPE_Q8_0 ? 34 : 18) * (d0 / 32), v);
        return;
    }
    [[unroll]] for (uint i = 0; i < RUN; i++)
        if (d0 + i < width) store_cached(TYPE, to, d0 + i, v[i]);
}
