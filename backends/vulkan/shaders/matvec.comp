// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows, and those with an expert for each row: one workgroup per column and up to ROWS rows. Bytes: the
// weights once per ROWS rows. At args.n see product.glsl. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/shaders/product.glsl"

const uint THREADS = 32;
layout(local_size_x = 32) in;
layout(constant_id = 0) const int TYPE = TYPE_F32;
layout(constant_id = 1) const int TYPE_UP = -1; // of the second product of a gated pair
layout(constant_id = 2) const uint ROWS = 1;
#include "backends/vulkan/shaders/reduce.glsl"

const uint MAX_ROWS = 4;

void add(int type, Weight w, int64_t row, uint k, uint n, const uint64_t x[MAX_ROWS], inout float acc[MAX_ROWS])
{
    float v[16];
    if (is_plain(type)) {
        uint64_t at = w.plane[0] + row * w.row_size[0];
        for (uint i = 0; i < 16; i++) v[i] = k + i < n ? load_plain(type, at, k + i) : 0.0;
    } else dequant16(type, w, row, k, v);
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        [[unroll]] for (uint i = 0; i < 16; i++)
            if (!is_plain(type) || k + i < n) acc[r] += v[i] * load_f32(x[r] + 4 * int64_t(k + i));
}

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x, columns = uint(args.n[0]), n = uint(args.src[0].ne[3]);
    uint j = g % columns, r0 = g / columns * ROWS, rows = uint(args.n[1]);
    if (r0 >= rows) return;
    int64_t at = j;
    uint64_t x[MAX_ROWS];
    float a[MAX_ROWS], b[MAX_ROWS];
    bool none = false;
    if (args.n[7] >= 0) { // one row: an expert each
        View ids = args.src[args.n[7]];
        uint used = uint(ids.ne[3]), token = r0 / used, u = r0 % used;
        int e = load_i32(ids.data + int64_t(token) * ids.nb[2] + int64_t(u) * ids.nb[3]);
        none = e < 0 || e >= args.n[8];
        at += int64_t(none ? 0 : e) * columns;
        x[0] = args.src[0].data + int64_t(token) * args.src[0].nb[1] + (args.src[0].ne[2] > 1 ? int64_t(u) * args.src[0].nb[2] : int64_t(0));
    } else
        for (uint r = 0; r < ROWS; r++) x[r] = row_of(args.src[0], min(r0 + r, rows - 1));
    for (uint r = 0; r < MAX_ROWS; r++) a[r] = b[r] = 0.0;
    for (uint k = 16 * t; k < n && !none; k += 16 * THREADS) {
        add(TYPE, args.weight[0], at, k, n, x, a);
        if (TYPE_UP >= 0) add(TYPE_UP, args.weight[1], at, k, n, x, b);
    }
    for (uint r = 0; r < ROWS; r++) {
        float v = reduce_sum(a[r]), up = TYPE_UP >= 0 ? reduce_sum(b[r]) : 0.0;
        if (t == 0 && r0 + r < rows) finish(r0 + r, j, v, up);
    }
}
