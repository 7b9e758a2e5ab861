// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of many rows: tiles of 64 columns and 32 rows, 16 of the common dimension at a time, expanded to f32 in shared
// memory; an invocation has 4 x 2 results. Limit: arithmetic of f32. At args.n see product.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/shaders/product.glsl"

const uint COLUMNS = 64, ROWS = 32, DEPTH = 16;
layout(local_size_x = 256) in;
layout(constant_id = 0) const int TYPE = TYPE_F32;
layout(constant_id = 1) const int TYPE_UP = TYPE_F32; // of the second product of a gated pair; mostly the same

shared float tile_w[COLUMNS][DEPTH + 1], tile_x[ROWS][DEPTH + 1];

void expand(int type, Weight w, int64_t row, uint k, uint n, bool inside, out float v[16])
{
    if (!inside) {
        for (uint i = 0; i < 16; i++) v[i] = 0.0;
    } else if (is_plain(type)) {
        uint64_t at = w.plane[0] + row * w.row_size[0];
        for (uint i = 0; i < 16; i++) v[i] = k + i < n ? load_plain(type, at, k + i) : 0.0;
    } else dequant16(type, w, row, k, v);
}

void main()
{
    uint columns = uint(args.n[0]), rows = uint(args.n[1]), n = uint(args.src[0].ne[3]), t = gl_LocalInvocationID.x;
    uint across = (columns + COLUMNS - 1) / COLUMNS, g = group_index();
    uint j0 = g % across * COLUMNS, r0 = g / across * ROWS;
    if (r0 >= rows) return;
    uint tc = t % 16, tr = t / 16; // columns tc + 16 i, rows tr + 16 i
    float acc[2][4], gate[2][4];
    uint products = args.n[6] >= 0 ? 2 : 1;
    [[dont_unroll]] for (uint p = 0; p < products; p++) {
        [[unroll]] for (uint i = 0; i < 8; i++) {
            gate[i / 4][i % 4] = p == 0 ? 0.0 : acc[i / 4][i % 4];
            acc[i / 4][i % 4] = 0.0;
        }
        for (uint k0 = 0; k0 < n; k0 += DEPTH) {
            barrier();
            if (t < COLUMNS) {
                float v[16];
                if (TYPE_UP == TYPE || p == 0) expand(TYPE, args.weight[p], j0 + t, k0, n, j0 + t < columns, v);
                else expand(TYPE_UP, args.weight[p], j0 + t, k0, n, j0 + t < columns, v);
                [[unroll]] for (uint i = 0; i < DEPTH; i++) tile_w[t][i] = v[i];
            }
            for (uint e = t; e < ROWS * DEPTH; e += 256) {
                uint r = r0 + e / DEPTH, k = k0 + e % DEPTH;
                tile_x[e / DEPTH][e % DEPTH] = r < rows && k < n ? load_f32(row_of(args.src[0], r) + 4 * int64_t(k)) : 0.0;
            }
            barrier();
            for (uint k = 0; k < DEPTH; k++)
                [[unroll]] for (uint b = 0; b < 4; b++) {
                    float w = tile_w[tc + 16 * b][k];
                    [[unroll]] for (uint a = 0; a < 2; a++) acc[a][b] += w * tile_x[tr + 16 * a][k];
                }
        }
    }
    [[dont_unroll]] for (uint e = 0; e < 8; e++) { // one copy of the code that follows a product
        uint r = r0 + tr + 16 * (e / 4), j = j0 + tc + 16 * (e % 4);
        float v = 0.0, other = 0.0;
        [[unroll]] for (uint i = 0; i < 8; i++)
            if (i == e) v = acc[i / 4][i % 4], other = gate[i / 4][i % 4];
        if (r < rows && j < columns) finish(r, j, products == 2 ? other : v, v, residual_of(r, j));
    }
}
